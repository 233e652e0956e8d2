"""How unusual the wording is: perplexity of texts by a language model (P3 4.1.3.3).

By default an interpolated Kneser-Ney model of words (Chen and Goodman 1999, doi:10.1006/csla.1999.0128) is trained on
the originals in folds, so that no text is judged by a model that saw it in any version. It scores words; placeholders
are passed over, and no history reaches across one. A causal language model reads the text as it is, as in P3.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from allonym.errors import DataError, UsageError, require_extra
from allonym.evaluate.pairs import Advance, check_lengths, iterate_with_progress
from allonym.evaluate.surface_measures import Change
from allonym.text.placeholders import find_placeholders

ORDER = 3
FOLDS = 5
_MOST = 300_000  # words of the training texts
_BREAK = ""  # a placeholder
_START = "\n"
NAN = float("nan")


class KneserNey:
    """An interpolated Kneser-Ney model of words with one discount, 0.75, and a uniform share for words never seen.

    Args:
        texts: sequences of words; an empty word breaks the history.
        order: words that are looked at together, the predicted one among them.
    """

    def __init__(self, texts: Sequence[Sequence[str]], order: int = ORDER) -> None:
        if order < 1:
            raise UsageError(f"perplexity: an order of 1 at least is required, got {order}")
        self.order = order
        counts: Counter[tuple[str, ...]] = Counter()
        for text in texts:
            counts.update((*history, word) for history, word in _pair_words_with_histories(text, order))
        # Below the highest order a gram counts as often as there are different words before it; at a break, as often
        # as it occurs.
        by_size: dict[int, Counter[tuple[str, ...]]] = {size: Counter() for size in range(1, order + 1)}
        for gram, n in counts.items():
            by_size[len(gram)][gram] = n
        for size in range(order, 1, -1):
            by_size[size - 1].update(gram[1:] for gram in by_size[size])
        self._grams = [by_size[size] for size in range(1, order + 1)]
        self._vocabulary = len(self._grams[0]) + 1
        self._mass: list[Counter[tuple[str, ...]]] = []
        self._kinds: list[Counter[tuple[str, ...]]] = []
        for grams in self._grams:
            mass: Counter[tuple[str, ...]] = Counter()
            for gram, n in grams.items():
                mass[gram[:-1]] += n
            self._mass.append(mass)
            self._kinds.append(Counter(gram[:-1] for gram in grams))

    def probability(self, history: tuple[str, ...], word: str) -> float:
        """Return the probability of a word after a history, of which the last ``order - 1`` words count.

        It is above 0; those of all words and of one that was never met add up to 1.
        """
        p = 1 / self._vocabulary
        for size in range(min(len(history), self.order - 1) + 1):
            before = history[len(history) - size :] if size else ()
            mass = self._mass[size].get(before)
            if not mass:
                break
            n = self._grams[size].get((*before, word), 0)
            p = (max(0.0, n - 0.75) + 0.75 * self._kinds[size][before] * p) / mass
        return p

    def perplexity(self, text: Sequence[str]) -> float:
        """Return the perplexity of a sequence of words; NaN without any."""
        logs = [math.log(self.probability(h, w)) for h, w in _pair_words_with_histories(text, self.order)]
        return math.exp(-math.fsum(logs) / len(logs)) if logs else NAN


def measure_perplexities(
    original: Sequence[str],
    anonymised: Sequence[str],
    *,
    model: str | Path | None = None,
    order: int = ORDER,
    folds: int = FOLDS,
    seed: int = 0,
    advance: Advance | None = None,
) -> tuple[list[float], list[float]]:
    """Return the perplexity of each text before and after; NaN without words, or where there are too few texts.

    Args:
        original, anonymised: the same texts in the same order.
        model: folder of a causal language model of the package transformers; None: n-grams of the originals.
        order: of the n-grams.
        folds: number of folds; both versions of a text are in one.
        seed: of the folds.
        advance: called with steps done and steps in all.

    Raises:
        DataError: unequal lengths, or no texts.
        UsageError: fewer than two folds, or the model's folder does not exist.
        MissingExtra: transformers is not installed.
    """
    n = check_lengths(original, anonymised)
    if model is not None:
        return _measure_causal_perplexities(Path(model), original, anonymised, advance)
    if folds < 2:
        raise UsageError(f"perplexity: two folds at least are required, got {folds}")
    if n < 2:
        return [NAN] * n, [NAN] * n
    import numpy as np

    before, after = [_tokenise_with_breaks(t) for t in original], [_tokenise_with_breaks(t) for t in anonymised]
    place = np.random.default_rng(seed).permutation(n) % min(folds, n)
    out: tuple[list[float], list[float]] = ([NAN] * n, [NAN] * n)
    for fold in iterate_with_progress(range(min(folds, n)), advance, min(folds, n)):
        lm = KneserNey(_thin_out_texts([before[i] for i in range(n) if place[i] != fold]), order)
        for i in range(n):
            if place[i] == fold:
                out[0][i], out[1][i] = lm.perplexity(before[i]), lm.perplexity(after[i])
    return out


def perplexity(
    original: Sequence[str],
    anonymised: Sequence[str],
    *,
    model: str | Path | None = None,
    order: int = ORDER,
    folds: int = FOLDS,
    seed: int = 0,
    advance: Advance | None = None,
) -> Change:
    """Return the mean perplexity before and after; arguments as of :func:`measure_perplexities`."""
    before, after = measure_perplexities(
        original, anonymised, model=model, order=order, folds=folds, seed=seed, advance=advance
    )
    return Change.measure(before, after, "no text has words, or there is only one text")


def _tokenise_with_breaks(text: str) -> list[str]:
    """Split a text into words and marks in small letters; a placeholder is a break."""
    from allonym.models.words import split_words

    placeholders = find_placeholders(text)
    starts, ends = [0, *(p.end for p in placeholders)], [*(p.start for p in placeholders), len(text)]
    out: list[str] = []
    for piece in (text[start:end] for start, end in zip(starts, ends, strict=True)):
        out += (_BREAK, *(piece[a:b].lower() for a, b in split_words(piece)))
    return out[1:]


def _pair_words_with_histories(text: Sequence[str], order: int) -> list[tuple[tuple[str, ...], str]]:
    """List each word with the words before it, back to the last break."""
    out = []
    history: tuple[str, ...] = (_START,)
    for word in text:
        if word == _BREAK:
            history = ()
            continue
        out.append((history[len(history) - order + 1 :] if order > 1 else (), word))
        history = (*history, word)[-order:]
    return out


def _thin_out_texts(texts: list[list[str]]) -> list[list[str]]:
    """Select texts evenly, up to about ``_MOST`` words."""
    total = sum(map(len, texts))
    step = max(1, math.ceil(total / _MOST))
    return texts[::step]


def _measure_causal_perplexities(
    folder: Path, original: Sequence[str], anonymised: Sequence[str], advance: Advance | None
) -> tuple[list[float], list[float]]:
    """Measure by a causal language model, which reads the text as it is in windows of its length."""
    if not folder.is_dir():
        raise UsageError(f"perplexity: {folder}: no such folder; one that holds a causal language model is required")
    with require_extra("perplexity by a causal language model", "transformers"):
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer
    try:
        tokenizer: Any = AutoTokenizer.from_pretrained(folder, local_files_only=True)
        model: Any = AutoModelForCausalLM
        network = model.from_pretrained(folder, local_files_only=True).eval()
    except (OSError, ValueError, KeyError) as error:
        raise DataError(f"{folder}: no causal language model: {type(error).__name__}") from None
    limit = int(getattr(network.config, "max_position_embeddings", 0) or 1024)
    first = tokenizer.bos_token_id
    values: list[float] = []
    for text in iterate_with_progress([*original, *anonymised], advance, 2 * len(original)):
        ids = tokenizer(text, add_special_tokens=False)["input_ids"]
        total, count = 0.0, 0
        for start in range(0, len(ids), limit - 1):
            piece = [first, *ids[start : start + limit - 1]] if first is not None else ids[start : start + limit]
            if len(piece) > 1:
                tokens = torch.tensor([piece])
                with torch.inference_mode():
                    total += float(network(tokens, labels=tokens).loss) * (len(piece) - 1)
                count += len(piece) - 1
        values.append(math.exp(total / count) if count else NAN)
    return values[: len(original)], values[len(original) :]
