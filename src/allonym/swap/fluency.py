"""How well a term reads in the place of another: what an exchange costs in a language model of the corpus.

A term's words are compared with those that stand there, by the logarithms of their probabilities after the words before
them, and of the next words after them. The model is one of word triples of all chunks, in which names count as their
category and figures as one word, so that it knows that *insurance industry* is said, and *catastrophe projects* is not.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from allonym.models.words import split_words
from allonym.replace.wording import pluralise_noun
from allonym.stats.ngrams import ORDER, KneserNey, thin_out_texts
from allonym.swap.corpus import Corpus, Slot, Value
from allonym.swap.entity_fit import compute_meaning_vectors
from allonym.swap.places import FEATURES
from allonym.swap.surfaces import is_plural, match_noun_number
from allonym.swap.terms import remove_plural_ending

CLOSE = 0.3
"""Least cosine of the meanings of a term and a noun that takes its place, and least fit of a term that does. Meanings
matter more than those of names: what was farther made no sense in most sentences that were read."""
_MEANING = 4.0  # nats that equal meanings are worth
_FOREIGN = 1.0  # nats that a term of another protected value is worth, since it misleads
_LEAST = 1.0  # nats by which a noun must go with the words before it, and with those after it, better than by chance
_OFTEN = 3  # places of a term that may stand elsewhere
_CLOSEST = 80  # nouns that are tried
_AFTER = 2  # words behind a term that are predicted from it
_NUMBER = "0"
_BARE = FEATURES.index("bare")

Context = tuple[tuple[str, ...], str, tuple[str, ...]]
"""The words before a mention, the mention as it is written, and the words after it."""


@dataclass(frozen=True, slots=True, repr=False)
class Fluency:
    """A language model of a corpus, the places of its terms, and what else may stand there.

    Attributes:
        model: of the corpus's words.
        contexts: slot of a term to the places of its mentions.
        forms: slot of a term to its fullest form.
        class_terms: slot of a term to the terms of its protected value.
        bare: slots of terms that stand without an article, not before a noun.
        nouns: all that may stand there.
        likeness: form of a term to the nouns that are closest in meaning, the closest first, as (cosine, noun, whether
            it is common).
    """

    model: KneserNey = field(repr=False)
    contexts: dict[Slot, tuple[Context, ...]] = field(repr=False)
    forms: dict[Slot, str] = field(repr=False)
    class_terms: dict[Slot, frozenset[str]] = field(repr=False)
    bare: frozenset[Slot] = field(repr=False)
    nouns: frozenset[str] = field(repr=False)
    likeness: dict[str, list[tuple[float, str, bool]]] = field(repr=False)
    _losses: dict[tuple[Slot, str], float] = field(default_factory=dict, repr=False)
    _choices: dict[Slot, str] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, corpus: Corpus) -> Fluency:
        """Read the corpus once."""
        texts: list[list[str]] = []
        contexts: dict[Slot, tuple[Context, ...]] = {}
        keys: dict[str, set[str]] = {}
        for number in range(len(corpus.chunks)):
            words, places = _read_chunk(corpus, number)
            texts.append(words)
            for slot, mentions in places.items():
                contexts[slot] = tuple(
                    (tuple(words[max(0, a - ORDER + 1) : a]), surface, tuple(words[b : b + _AFTER]))
                    for a, b, surface in mentions
                )
                keys.setdefault(corpus.class_of(number), set()).update(corpus.value_at(slot).forms)
        forms = {slot: corpus.value_at(slot).forms[0] for slot in contexts}
        by_class = {name: frozenset(map(remove_plural_ending, some)) for name, some in keys.items()}
        class_terms = {slot: by_class[corpus.class_of(slot.chunk)] for slot in contexts}
        model = KneserNey(thin_out_texts(texts) if contexts else [])
        bare = frozenset(s for s in contexts if corpus.value_at(s).place[_BARE : _BARE + 1] == (1,))
        nouns = frozenset((*corpus.common_nouns, *forms.values()))
        likeness = _find_closest_nouns(list(forms.values()), corpus.common_nouns)
        return cls(model, contexts, forms, class_terms, bare, nouns, likeness)

    def measure_loss(self, slot: Slot, donor: Slot) -> float:
        """Return what the donor costs at the slot, in nats, at the mention where it costs most; 0 if it is no term.

        How rare its words are does not count, only how well it goes with the words before and after.
        """
        if slot not in self.contexts or donor not in self.forms:
            return 0.0
        key = slot, self.forms[donor]
        if key not in self._losses:
            self._losses[key] = max(
                sum(self._score(before, surface, after))
                - sum(self._score(before, match_noun_number(surface, key[1]), after))
                for before, surface, after in self.contexts[slot]
            )
        return self._losses[key]

    def choose_noun(self, slot: Slot) -> str:
        """Return the noun that reads best at a term's place of those close to its meaning: a common noun, or, a little
        preferred, a term of another protected value; empty if there is none.

        Names and acronyms have none, and neither has what follows a figure, such as units, or a letter, as in *T-cell*.
        What stands without an article in the singular, as *insurance* does, is replaced only by what has no plural.
        """
        if slot not in self._choices:
            self._choices[slot] = self._choose_noun(slot)
        return self._choices[slot]

    def _choose_noun(self, slot: Slot) -> str:
        contexts = self.contexts.get(slot, ())
        if any(not surface[1:].islower() or before[-1:] == (_NUMBER,) for before, surface, _ in contexts):
            return ""
        if any(before[-1:] == ("-",) and len(before[-2:][0]) == 1 for before, _, _ in contexts):
            return ""
        best, highest = "", -math.inf
        for cosine, noun, is_common in self.likeness.get(self.forms.get(slot, ""), ()):
            if cosine < CLOSE:
                break
            if not is_common and remove_plural_ending(noun) in self.class_terms[slot]:
                continue
            if slot in self.bare and pluralise_noun(noun) in self.nouns:
                continue
            total = (_MEANING * cosine + (0.0 if is_common else _FOREIGN)) * len(contexts)
            total += len(contexts) * math.log(self.model.probability((), noun))  # a frequent word is likelier anywhere
            for before, surface, after in contexts:
                fit = self._score(before, noun, after)
                if is_plural(surface) != is_plural(noun) or noun in (*before, *after) or min(fit) < _LEAST:
                    break
                total += sum(fit)
            else:
                if total > highest:
                    best, highest = noun, total
        return best

    def _score(self, before: tuple[str, ...], surface: str, after: tuple[str, ...]) -> tuple[float, float]:
        """Return the logarithms of how much likelier a mention is after the words before it, and the next words are
        after it, than anywhere."""
        history = before
        words = _list_words(surface)
        scores = [0.0, 0.0]
        for n, word in enumerate((*words, *after)):
            if not 0 < n < len(words):
                ratio = self.model.probability(history, word) / self.model.probability((), word)
                scores[n > 0] += math.log(ratio)
            history = (*history, word)[-ORDER:]
        return scores[0], scores[1]


def _find_closest_nouns(forms: Sequence[str], common: Sequence[str]) -> dict[str, list[tuple[float, str, bool]]]:
    """Return each form's closest nouns in meaning, of the common nouns and of the other terms that occur often."""
    counts = Counter(forms)
    terms = [form for form, n in counts.items() if n >= _OFTEN and form.isalpha() and form.islower()]
    nouns = [*((noun, True) for noun in common), *((form, False) for form in sorted(set(terms) - set(common)))]
    if not common:
        return {}
    distinct = sorted(counts)
    vectors = compute_meaning_vectors([*distinct, *(noun for noun, _ in nouns)])
    cosines = vectors[: len(distinct)] @ vectors[len(distinct) :].T
    best = np.argsort(-cosines, axis=1, kind="stable")[:, :_CLOSEST]
    return {
        form: [(float(row[n]), *nouns[n]) for n in order]
        for form, row, order in zip(distinct, cosines, best.tolist(), strict=True)
    }


def _list_words(text: str) -> list[str]:
    return [_NUMBER if text[a].isdigit() else text[a:b].lower() for a, b in split_words(text)]


def _read_chunk(corpus: Corpus, number: int) -> tuple[list[str], dict[Slot, list[tuple[int, int, str]]]]:
    """Return a chunk's words, and the mentions of its terms as first word, end, and surface."""
    chunk = corpus.chunks[number]
    text = corpus.documents[chunk.document].text
    marks: list[tuple[int, int, Slot | None, Value | None]] = [
        (span.start, span.end, slot, value) for slot, value in corpus.slots_of(number) for span in value.spans
    ]
    edits = corpus.plans[chunk.document].edits
    marks += [(e.start, e.end, None, None) for e in edits if chunk.start <= e.start and e.end <= chunk.end]
    words: list[str] = []
    places: dict[Slot, list[tuple[int, int, str]]] = {}
    position = chunk.start
    for start, end, slot, value in sorted(marks, key=lambda mark: mark[:2]):
        if start < position:
            continue
        words += _list_words(text[position:start])
        if slot is not None and value is not None and value.category == "Term":
            first = len(words)
            words += _list_words(text[start:end])
            places.setdefault(slot, []).append((first, len(words), text[start:end]))
        else:
            words.append(f"<{value.category}>" if value is not None else "<name>")
        position = end
    words += _list_words(text[position : chunk.end])
    return words, places
