"""Language models of words: how probable a word is after others (Chen and Goodman 1999, doi:10.1006/csla.1999.0128)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from allonym.errors import UsageError

ORDER = 3
"""Words that are looked at together, the predicted one among them."""
BREAK = ""
"""Stands in a text where a placeholder does: it is not predicted, and no history reaches across it."""
_MOST = 300_000  # words of the training texts
_START = "\n"


class KneserNey:
    """An interpolated Kneser-Ney model of words with one discount, 0.75, and a uniform share for words never seen.

    Args:
        texts: sequences of words; an empty word breaks the history.
        order: words that are looked at together, the predicted one among them.
    """

    def __init__(self, texts: Sequence[Sequence[str]], order: int = ORDER) -> None:
        if order < 1:
            raise UsageError(f"n-grams: an order of 1 at least is required, got {order}")
        self.order = order
        counts: Counter[tuple[str, ...]] = Counter()
        for text in texts:
            counts.update((*history, word) for history, word in pair_words_with_histories(text, order))
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
        logs = [math.log(self.probability(h, w)) for h, w in pair_words_with_histories(text, self.order)]
        return math.exp(-math.fsum(logs) / len(logs)) if logs else math.nan


def pair_words_with_histories(text: Sequence[str], order: int) -> list[tuple[tuple[str, ...], str]]:
    """List each word with the words before it, back to the last break."""
    out = []
    history: tuple[str, ...] = (_START,)
    for word in text:
        if word == BREAK:
            history = ()
            continue
        out.append((history[len(history) - order + 1 :] if order > 1 else (), word))
        history = (*history, word)[-order:]
    return out


def thin_out_texts(texts: list[list[str]]) -> list[list[str]]:
    """Select texts evenly, up to about 300,000 words."""
    total = sum(map(len, texts))
    step = max(1, math.ceil(total / _MOST))
    return texts[::step]
