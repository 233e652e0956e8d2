"""Entities that count as the same, so that none is put where it is known already.

A donor ``Acme Corporation`` is no substitute in a text whose author speaks of ``Acme``. Two keys are related if the
words of one are among those of the other (legal forms and small words do not count), if they differ in one letter only,
or if one abbreviates the other. Being too strict costs an exchange; being too lax gives the text's author away.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from allonym.text.names import is_within_one_edit, normalize_organization, normalize_surface
from allonym.text.words import find_words

_SMALL = frozenset("the a an of and for in on at de la le du des der die das und van von y e our".split())
_LEAST = 6
"""Letters from which on two names may be one misspelt name."""


def split_name_words(key: str) -> frozenset[str]:
    """Return the words that characterise a name: without legal forms, small words and marks such as ``+jr``.

    >>> sorted(split_name_words("the bank of acme, inc."))
    ['acme', 'bank']
    """
    bare = normalize_surface(key) if key else ""
    for words in (find_words(normalize_organization(bare)), find_words(bare)):
        if significant := [w for w in words if w not in _SMALL]:
            return frozenset(significant)
    return frozenset(find_words(bare) or (bare,))


def find_related(keys: Sequence[str], exact: Sequence[bool] | None = None) -> list[frozenset[int]]:
    """Return for each key the indices of those that count as the same, itself among them; symmetric.

    Args:
        keys: names in normal form.
        exact: which of them are the same only as their equals, e.g. dates; None: none.
    """
    related: list[set[int]] = [{i} for i in range(len(keys))]
    words = [split_name_words(k) if exact is None or not exact[i] else frozenset() for i, k in enumerate(keys)]
    for i, j in (
        *_pair_contained_names(words),
        *_pair_misspelt_names(keys, words),
        *_pair_abbreviated_names(keys, words),
    ):
        related[i].add(j)
        related[j].add(i)
    return [frozenset(group) for group in related]


def _pair_contained_names(names: Sequence[frozenset[str]]) -> Iterator[tuple[int, int]]:
    """Yield pairs of which one has all words of the other."""
    holders: dict[str, list[int]] = {}
    for i, words in enumerate(names):
        for word in words:
            holders.setdefault(word, []).append(i)
    for i, words in enumerate(names):
        if words:
            rarest = min((holders[w] for w in words), key=len)
            yield from ((i, j) for j in rarest if j != i and words <= names[j])


def _pair_misspelt_names(keys: Sequence[str], names: Sequence[frozenset[str]]) -> Iterator[tuple[int, int]]:
    """Yield pairs that differ in one letter, or only in how the words are joined."""
    letters = ["".join(w for w in find_words(normalize_surface(k)) if w in names[i]) for i, k in enumerate(keys)]
    by_rest: dict[str, list[int]] = {}
    for i, word in enumerate(letters):
        if names[i] and len(word) >= _LEAST and not any(c.isdigit() for c in word):
            for rest in {word, *(word[:n] + word[n + 1 :] for n in range(len(word)))}:
                by_rest.setdefault(rest, []).append(i)
    for group in by_rest.values():
        if 1 < len(group) <= 64:
            yield from (
                (i, j)
                for n, i in enumerate(group)
                for j in group[n + 1 :]
                if is_within_one_edit(letters[i], letters[j])
            )


def _pair_abbreviated_names(keys: Sequence[str], names: Sequence[frozenset[str]]) -> Iterator[tuple[int, int]]:
    """Yield pairs of a name of several words and its initials."""
    short: dict[str, list[int]] = {}
    for i, words in enumerate(names):
        if len(words) == 1 and 2 <= len(word := next(iter(words))) <= 6 and word.isalpha():
            short.setdefault(word, []).append(i)
    for i, key in enumerate(keys):
        if len(names[i]) > 1:
            full = find_words(normalize_surface(key))
            for initials in {"".join(w[0] for w in full), "".join(w[0] for w in full if w in names[i])}:
                yield from ((i, j) for j in short.get(initials, ()))
