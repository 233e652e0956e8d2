"""A text while it becomes more general: what may change next, what that costs, and how the text reads then.

A word gives way to a general one; a phrase or a whole sentence goes where it mostly tells who it is about. Placeholders
and function words stay as they are unless their phrase or their sentence goes.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from itertools import groupby
from typing import NamedTuple

from allonym.detection.words import read_ordinary_words
from allonym.evaluate.general_words import CONTENT, Word, list_general_replacements, list_words_and_placeholders
from allonym.evaluate.phrases import list_phrases
from allonym.evaluate.rewording import make_edits
from allonym.evaluate.roughness import measure_roughness
from allonym.plan import Edit, apply_edits, locate_replacements

_AGAIN = 0.03  # what any change costs beside the content words that it loses, such as to make a general word more so
_GENERAL = 0.8  # what it costs to make a word general that something is still known of
_CONNECTIVES = frozenset("also and besides but furthermore however moreover so then therefore".split())
_RARE_PARTS = frozenset({"NOUN", "PROPN", "ADJ", "VERB", "X"})


class Move(NamedTuple):
    """A change that a text can take.

    Attributes:
        words: numbers of the words that it changes.
        cost: in content words; part: number of the sentence or the phrase that goes, -1 for words.
        is_due: whether the part says so little that it may go whatever that is worth.
    """

    words: tuple[int, ...]
    cost: float
    part: int = -1
    is_due: bool = False


class Draft:
    """A text on its way to a general one.

    Args:
        original: the text before anonymisation; English.
        text: the anonymised text.

    Attributes:
        words: of the anonymised text, with its placeholders.
        taken: for each word, how many of its general replacements it has gone through.
        dropped: numbers of the sentences and of the phrases that went; phrases are counted on behind the sentences.
    """

    def __init__(self, original: str, text: str) -> None:
        self.text = text
        self.words = list_words_and_placeholders(text)
        self.taken = [0] * len(self.words)
        self.dropped: set[int] = set()
        self._choices = [list_general_replacements(self.words, i) for i in range(len(self.words))]
        self._roughness = [
            [measure_roughness(self.words, i, k, new) for k, new in enumerate(choices)]
            for i, choices in enumerate(self._choices)
        ]
        self._sentences = _list_sentences(text, self.words)
        phrases = [phrase for s in self._sentences for phrase in list_phrases(self.words, s[0], s[-1])]
        self._parts = [*self._sentences, *(range(first, last + 1) for first, last in phrases)]
        self._content = Counter(
            w.lower_text for w in list_words_and_placeholders(original) if w.label is None and w.part in CONTENT
        )
        self._total = sum(self._content.values())

    @property
    def state(self) -> list[list[int]]:
        """What has changed: ``taken``, and ``dropped`` in order; a draft of the same texts can be set to it."""
        return [list(self.taken), sorted(self.dropped)]

    @state.setter
    def state(self, value: Sequence[Sequence[int]]) -> None:
        self.taken, self.dropped = list(value[0]), set(value[1])

    @property
    def total(self) -> int:
        """Number of content words of the original."""
        return self._total

    def compute_share_gone(self) -> float:
        """Return the share of the original's content words that the text no longer has; NaN where there are none."""
        if not self._total:
            return float("nan")
        left = self._count_words_left()
        return 1 - sum(min(n, left[word]) for word, n in self._content.items()) / self._total

    def list_hints(self) -> list[int]:
        """List the words that people may recognise somebody by, whatever intruders make of them, and that are there
        still: rare ones, superlatives, and ``first`` or ``only``."""
        return [i for i in self._list_words_left() if self._choices[i] and is_hint(self.words[i])]

    def list_moves(self, rough_cost: float = 2.0) -> list[Move]:
        """List what can change now.

        Args:
            rough_cost: what it costs, in content words, where a sentence says nothing any more, see
                :func:`allonym.evaluate.roughness.measure_roughness`; where such words go again, it costs less.
        """
        gone = self._list_dropped_words()
        left = self._count_words_left()
        mentions: defaultdict[tuple[str, int], list[int]] = defaultdict(list)
        for i, word in enumerate(self.words):
            if i not in gone and self.taken[i] < len(self._choices[i]):
                mentions[word.lower_text, self.taken[i]].append(i)
        out = []
        for (surface, steps), places in mentions.items():
            lost = 0 if steps else self._count_lost(left, Counter({surface: len(places)}))
            rate = _GENERAL if self._choices[places[0]][0] else 1.0
            rough = sum(self._roughness[i][self.taken[i]] - self._get_roughness(i) for i in places)
            out.append(Move(tuple(places), lost * rate + _AGAIN + rough_cost * max(0.0, rough)))
        first = len(self._sentences) if self._is_last_sentence() else 0
        for k, part in enumerate(self._parts[first:], first):
            if k in self.dropped or self._is_cut(k):
                continue
            rest = [i for i in part if i not in gone]
            there = Counter(self.words[i].lower_text for i in rest if self.words[i].label is None and not self.taken[i])
            if rest:
                rough = rough_cost * sum(map(self._get_roughness, rest))
                cost = max(self._count_lost(left, there) - rough, 0.0)
                out.append(Move(tuple(rest), cost + _AGAIN, k, rough > 0 and not cost))
        return out

    def make_move(self, move: Move) -> None:
        """Make a change; what has gone in the meantime stays gone."""
        if move.part >= 0:
            is_left = move.part >= len(self._sentences) or not self._is_last_sentence()
            if is_left and not self._is_cut(move.part):
                self.dropped.add(move.part)
            return
        for i in move.words:
            self.taken[i] = min(self.taken[i] + 1, len(self._choices[i]))

    def make_edits(self) -> list[Edit]:
        """Return the edits of the anonymised text: sorted, disjoint."""
        view: list[Word] = []
        new_words: dict[int, str] = {}
        gone = self.dropped | {k for k, part in enumerate(self._parts) if self._is_empty(part)}
        if gone.issuperset(range(len(self._sentences))):
            gone -= set(range(len(self._sentences))) - self.dropped
        went = {i for k in gone for i in self._parts[k]}
        for k, sentence in enumerate(self._sentences):
            for is_gone, run in groupby(sentence, went.__contains__):
                places = list(run)
                if is_gone:
                    new_words[len(view)] = ""
                    first, last = self.words[places[0]], self.words[places[-1]]
                    view.append(Word(first.start, last.end, "." if k in gone else first.text, "PUNCT"))
                    continue
                for i in places:
                    if i == sentence[0] and k - 1 in gone and self._is_connective(i, sentence):
                        new_words[len(view)] = ""
                    elif self.taken[i]:
                        new_words[len(view)] = self._choices[i][self.taken[i] - 1]
                    view.append(self.words[i])
        return make_edits(self.text, view, new_words)

    def render(self) -> str:
        """Return the text as it reads now."""
        return apply_edits(self.text, self.make_edits())

    def sum_by_word(self, leads: Sequence[tuple[int, int, float]]) -> list[float]:
        """Return for each word what the passages of the rendered text add that stand for it; the words of an edit
        share."""
        edits = self.make_edits()
        places = locate_replacements(edits)
        ends = [edit.end for edit in edits]
        starts: list[int] = []  # where each piece of the rendered text begins
        words_of: list[list[int]] = []
        last = -1
        for i, word in enumerate(self.words):
            k = bisect_right(ends, word.start)
            if k < len(edits) and edits[k].start < word.end:
                if k != last:
                    starts.append(places[k][0])
                    words_of.append([])
                    last = k
                words_of[-1].append(i)
            else:
                starts.append(word.start + (places[k - 1][1] - ends[k - 1] if k else 0))
                words_of.append([i])
        out = [0.0] * len(self.words)
        for start, _, weight in leads:
            k = bisect_right(starts, start) - 1
            if k >= 0:
                for i in words_of[k]:
                    out[i] += weight / len(words_of[k])
        return out

    def _is_cut(self, k: int) -> bool:
        """Tell whether a phrase has lost words to one that reaches beyond it: the rest may not go alone."""
        first, last = self._parts[k][0], self._parts[k][-1]
        others = (self._parts[other] for other in self.dropped)
        return any(q[0] <= last and q[-1] >= first and not (first <= q[0] and q[-1] <= last) for q in others)

    def _get_roughness(self, i: int) -> float:
        return self._roughness[i][self.taken[i] - 1] if self.taken[i] else 0.0

    def _list_dropped_words(self) -> set[int]:
        return {i for k in self.dropped for i in self._parts[k]}

    def _list_words_left(self) -> list[int]:
        gone = self._list_dropped_words()
        return [i for i, w in enumerate(self.words) if w.label is None and not self.taken[i] and i not in gone]

    def _is_last_sentence(self) -> bool:
        return len(self._sentences) - sum(k < len(self._sentences) for k in self.dropped) <= 1

    def _is_empty(self, part: Sequence[int]) -> bool:
        """Tell whether a sentence or a phrase says nothing any more: all of its words are general ones, and of
        placeholders it has those of pronouns alone."""
        changed = [self.taken[i] > 0 for i in part if self._choices[i]]
        labels = [label for i in part if (label := self.words[i].label) is not None]
        return any(changed) and all(changed) and all(label.startswith("PRONOUN") for label in labels)

    def _is_connective(self, i: int, sentence: Sequence[int]) -> bool:
        """Tell whether the first word of a sentence only joins it to the one before."""
        after = self.words[i + 1].part if len(sentence) > 1 else "PUNCT"
        is_degree = self.words[i].lower_text == "so" and after in ("ADJ", "ADV")
        return self.words[i].lower_text in _CONNECTIVES and not is_degree

    def _count_words_left(self) -> Counter[str]:
        return Counter(self.words[i].lower_text for i in self._list_words_left())

    def _count_lost(self, left: Counter[str], gone: Counter[str]) -> int:
        """Count the content words of the original that are lost when some of the words left go."""
        return sum(min(self._content[w], left[w]) - min(self._content[w], max(0, left[w] - n)) for w, n in gone.items())


def _list_sentences(text: str, words: Sequence[Word]) -> list[list[int]]:
    """List the numbers of the words of each sentence: up to a full stop, an exclamation or a question mark, or the end
    of a line."""
    out: list[list[int]] = []
    ended = True
    for i, word in enumerate(words):
        if ended or "\n" in text[words[i - 1].end : word.start]:
            out.append([])
        out[-1].append(i)
        ended = word.label is None and word.text[:1] in ".!?" and text[word.end : word.end + 1].strip() == ""
    return out


@cache
def _read_common_words() -> frozenset[str]:
    """Return the ordinary words, and the whole words among the encoder's pieces: the commonest of a large corpus."""
    pieces = files("allonym.models.english").joinpath("vocab.txt").read_text(encoding="utf-8").split()
    return read_ordinary_words() | {piece for piece in pieces if piece.isalpha()}


@cache
def _is_common(word: str) -> bool:
    stems = (word, *(word.removesuffix(end) for end in ("s", "es", "d", "ed", "ing")), word[:-3] + "y", word[:-3] + "e")
    return any(stem in _read_common_words() for stem in stems)


_UNIQUE = frozenset("first only sole".split())
_NO_SUPERLATIVES = frozenset("best latest honest modest earnest west east".split())


def is_hint(word: Word) -> bool:
    """Tell whether somebody may be recognised by a word, whatever it means: few people use it, or it says that somebody
    is the only one or the most."""
    if word.label is not None:
        return False
    low = word.lower_text
    if low in _UNIQUE or (word.part == "ADJ" and low.endswith("est") and low not in _NO_SUPERLATIVES):
        return True
    return word.part in _RARE_PARTS and len(low) > 2 and low.isalpha() and not _is_common(low)
