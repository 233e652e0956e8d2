"""P5's decoding with a language model (section 2.2, algorithm 2), for what restoring by rules leaves unknown.

The model gets the rewritten text, the fictional names and their tags: never an original. P5 lets it rewrite the text;
here it only points at portions, and each is verified: it occurs in the text letter by letter, it names one tag only, it
shares the beginning of a word or its initials with the fictional name, and no two portions overlap. So nothing but
mentions can change, and no pronoun is taken for a name. The caller puts the originals in.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from allonym.document import Interval, merge_intervals, splice_text, subtract_intervals
from allonym.errors import EndpointError
from allonym.llm.client import Client, Reply, Request, ask_and_read
from allonym.llm.templates import TEXT, build_messages, make_list_schema, make_object_schema
from allonym.text.names import normalize_surface
from allonym.text.words import find_words

WORDS = 800
"""Words of a window."""
_OVERLAP = 40
_COVER = "[...]"
_PIECE = re.compile(r"\S+")

SCHEMA = make_object_schema({"spans": make_list_schema(make_object_schema({"tag": TEXT, "text": TEXT}))})


@dataclass(frozen=True, slots=True)
class Located:
    """A portion of a text that stands for a tag: half-open code points, and the tag."""

    start: int
    end: int
    tag: str


def decode(
    text: str, names: Mapping[str, str], client: Client, *, done: Sequence[Interval] = ()
) -> tuple[Located, ...]:
    """Locate the portions of a rewritten text that name what the tags stand for.

    Args:
        text: the rewritten text, with fictional names and without originals: it is sent.
        names: fictional name to its wild tag; two names may share a tag, no name may have two.
        client: see :func:`allonym.llm.client_for`.
        done: spans that are restored already; they are neither sent nor searched.

    Returns:
        Portions of ``text``, sorted and disjoint, outside of ``done``. What may be meant for two tags is left out.

    Raises:
        EndpointError: the endpoint gave no answer, or twice none that can be read.
    """
    if not names or not text.strip():
        return ()
    entities = "\n".join(f"{tag}: {name}" for name, tag in names.items())
    restored = merge_intervals(sorted(done))

    def ask_windows(windows: Sequence[str], again: bool) -> list[list[tuple[str, str]] | None]:
        prompts = (build_messages("decode", client.prompts, again=again, text=w, entities=entities) for w in windows)
        return ask_and_read(client, [Request(prompt, SCHEMA, "spans") for prompt in prompts], _read_portions)

    rows: list[tuple[str, str]] = []
    windows = list(_split_into_windows(splice_text(text, ((start, end, _COVER) for start, end in restored))))
    for portions, window in zip(ask_windows(windows, False), windows, strict=True):
        if portions is None:
            (portions,) = ask_windows([window], True)
        if portions is None:
            raise EndpointError("llm: twice an answer that is not the JSON that was asked for")
        rows += portions
    return _locate_portions(text, names, rows, subtract_intervals((0, len(text)), restored))


def _read_portions(reply: Reply) -> list[tuple[str, str]] | None:
    spans = (reply.answer or {}).get("spans")
    if not isinstance(spans, list):
        return None
    return [(str(s["tag"]), str(s["text"])) for s in spans if isinstance(s, Mapping) and "tag" in s and "text" in s]


def _split_into_windows(text: str) -> Iterable[str]:
    words = [m.span() for m in _PIECE.finditer(text)]
    for first in range(0, max(1, len(words) - _OVERLAP), WORDS - _OVERLAP):
        window = words[first : first + WORDS]
        if window:
            yield text[window[0][0] : window[-1][1]]


def _locate_portions(
    text: str, names: Mapping[str, str], rows: Iterable[tuple[str, str]], free: Iterable[Interval]
) -> tuple[Located, ...]:
    """Locate the portions that can be forms of their tag's names, in the free intervals of the text."""
    names_of: dict[str, list[str]] = {}
    for name, tag in names.items():
        names_of.setdefault(tag, []).append(name)
    tag_by_code = {_normalise_tag(tag): tag for tag in reversed(names_of)}
    tags: dict[str, str] = {}
    for tag, portion in rows:
        portion = portion.strip()
        known_tag = tag if tag in names_of else tag_by_code.get(_normalise_tag(tag))
        if known_tag and portion:
            scores = {t: max(_score_likeness(portion, name) for name in listed) for t, listed in names_of.items()}
            # Where it is as much like another tag's name, the model has only guessed.
            if scores[known_tag] and sum(score >= scores[known_tag] for score in scores.values()) == 1:
                tags[portion] = known_tag
    candidates = [
        Located(start, start + len(portion), tag)
        for portion, tag in tags.items()
        for start in _find_portion_starts(text, portion)
    ]
    intervals = list(free)
    located: list[Located] = []
    for candidate in sorted(candidates, key=lambda c: (c.start - c.end, c.start)):  # longer portions win
        is_free = any(a <= candidate.start and candidate.end <= b for a, b in intervals)
        if is_free and not any(other.start < candidate.end and candidate.start < other.end for other in located):
            located.append(candidate)
    return tuple(sorted(located, key=lambda portion: portion.start))


def _normalise_tag(tag: str) -> str:
    return "".join(find_words(tag)).upper()


def _find_portion_starts(text: str, portion: str) -> Iterable[int]:
    """Find where a portion starts in a text, not inside of words."""
    start = text.find(portion)
    while start >= 0:
        before, after = text[start - 1 : start], text[start + len(portion) : start + len(portion) + 1]
        is_inside = (portion[0].isalnum() and before.isalnum()) or (portion[-1].isalnum() and after.isalnum())
        if not is_inside:
            yield start
        start = text.find(portion, start + 1)


def _score_likeness(portion: str, name: str) -> int:
    """How much of a portion is in the name: 2 for each word of it, 1 for each that may be a form of one of its words.

    With 0 it cannot be a form of the name at all.
    """
    words, others = find_words(normalize_surface(portion)), find_words(normalize_surface(name))
    if not words or not others:
        return int(normalize_surface(portion) == normalize_surface(name))
    if name != name.lower() and portion == portion.lower() and portion != portion.upper():
        return 0  # a name that lost its capital is too little to tell it from a word
    score = sum(max(2 * (a == b and len(a) > 1) or int(_may_be_inflection(a, b)) for b in others) for a in words)
    initials = "".join(w[0] for w in others)
    if not score:
        return len(initials) if len(initials) > 1 and "".join(words) == initials else 0
    return score + sum(len(a) == 1 and a in initials for a in words)


def _may_be_inflection(word: str, name_word: str) -> bool:
    """Whether a word of a text can be a form of a word of a name: its ending may differ."""
    if len(word) < 4 or len(name_word) < 3 or any(c.isdigit() for c in word + name_word):
        return False
    if len(name_word) == 3:
        return word.startswith(name_word) and len(word) < 7
    shared = 4 if min(len(word), len(name_word)) > 4 else 3
    return word[:shared] == name_word[:shared]
