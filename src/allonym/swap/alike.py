"""Which entities count as the same, so that none is put where it is known already.

A donor ``Acme Corporation`` is no substitute in a text of somebody who speaks of ``Acme``. Two keys are alike where the
words of one are among those of the other (legal forms and small words do not count), where one letter is all that
tells them apart, or where one abbreviates the other. Being too strict costs an exchange; being too lax gives away whose
text it is.
"""

from __future__ import annotations

from collections.abc import Sequence

from allonym.text.names import near, organization, plain
from allonym.text.words import find_words

_SMALL = frozenset("the a an of and for in on at de la le du des der die das und van von y e our".split())
_LEAST = 6
"""Letters from which on two names may be one misspelt name."""


def words_of(key: str) -> frozenset[str]:
    """The words that tell a name: without legal forms, small words and marks such as ``+jr``.

    >>> sorted(words_of("the bank of acme, inc."))
    ['acme', 'bank']
    """
    bare = plain(key) if key else ""
    for words in (find_words(organization(bare)), find_words(bare)):
        if found := [w for w in words if w not in _SMALL]:
            return frozenset(found)
    return frozenset(find_words(bare) or (bare,))


def relatives(keys: Sequence[str], exact: Sequence[bool] | None = None) -> list[frozenset[int]]:
    """For each key the indices of those that count as the same, itself among them; symmetric.

    Args:
        keys: names in normal form.
        exact: which of them are like nothing but themselves, e.g. dates; None: none.
    """
    found: list[set[int]] = [{i} for i in range(len(keys))]
    told = [words_of(k) if exact is None or not exact[i] else frozenset() for i, k in enumerate(keys)]
    holders: dict[str, list[int]] = {}
    for i, words in enumerate(told):
        for word in words:
            holders.setdefault(word, []).append(i)
    for i, words in enumerate(told):
        if words:
            rarest = min((holders[w] for w in sorted(words)), key=len)
            for j in rarest:
                if j != i and words <= told[j]:
                    found[i].add(j)
                    found[j].add(i)
    for i, j in (*_misspelt(keys, told), *_abbreviated(keys, told)):
        found[i].add(j)
        found[j].add(i)
    return [frozenset(f) for f in found]


def _misspelt(keys: Sequence[str], told: Sequence[frozenset[str]]) -> list[tuple[int, int]]:
    """Pairs that one letter tells apart, or nothing but how the words are joined."""
    letters = ["".join(w for w in find_words(plain(k)) if w in told[i]) for i, k in enumerate(keys)]
    by_rest: dict[str, list[int]] = {}
    for i, word in enumerate(letters):
        if told[i] and len(word) >= _LEAST and not any(c.isdigit() for c in word):
            for rest in {word, *(word[:at] + word[at + 1 :] for at in range(len(word)))}:
                by_rest.setdefault(rest, []).append(i)
    out = {
        (i, j)
        for group in by_rest.values()
        if 1 < len(group) <= 64
        for n, i in enumerate(group)
        for j in group[n + 1 :]
        if near(letters[i], letters[j])
    }
    return sorted(out)


def _abbreviated(keys: Sequence[str], told: Sequence[frozenset[str]]) -> list[tuple[int, int]]:
    """Pairs of a name of several words and its initials."""
    short: dict[str, list[int]] = {}
    for i, words in enumerate(told):
        if len(words) == 1 and 2 <= len(word := next(iter(words))) <= 6 and word.isalpha():
            short.setdefault(word, []).append(i)
    out = []
    for i, key in enumerate(keys):
        if len(told[i]) > 1:
            whole = find_words(plain(key))
            for initials in {"".join(w[0] for w in whole), "".join(w[0] for w in whole if w in told[i])}:
                out += [(i, j) for j in short.get(initials, ())]
    return sorted(out)
