"""Universal parts of speech, from the tagger's second head."""

from __future__ import annotations

from allonym.models.tagger import TaggerModel, load_tagger


def parts_of_speech(text: str, model: TaggerModel | None = None) -> list[tuple[int, int, str]]:
    """Return ``(start, end, part)`` of each word, half-open, with the 17 tags of Universal Dependencies.

    Words are those of the tagger: runs of letters and digits, and runs of one mark, so that "don't" has three.

    Args:
        text: any text; the model knows English only.
        model: a tagger; by default the one that ships with allonym.
    """
    model = model or load_tagger()
    result = model(text, every_word=True)
    best = result.parts.argmax(axis=1).tolist() if len(result.borders) else []
    return [(start, end, model.parts[n]) for (start, end), n in zip(result.borders, best, strict=True)]
