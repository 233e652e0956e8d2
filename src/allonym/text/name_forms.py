"""Where a text names one person: in full, shortened, in addresses, and by a given or family name alone.

Case, diacritics and spelled-out umlauts do not matter in a full name. A part of a name counts where it is written as a
name, with a capital letter, in an address, or in a text without any capitals.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain

from allonym.text.fold import fold, fold_spellings
from allonym.text.names import PARTICLES, find_given_name_variants, list_name_spellings, split_name
from allonym.text.words import WORD

_GAP = re.compile(r"\s{0,3}[,'’‘\"“”()]?\s{0,3}|[._+‐‑-]|%20|&nbsp;")
"""What may stand between the words of one name."""
_AFTER_INITIAL = re.compile(r"\.?\s{0,3}")
_BETWEEN = 3  # words that may stand between a given and a family name
_LEAST_JOINED = 4  # letters of a family name that is known with an initial stuck to it
_DIGITS = "0123456789"
_AROUND = "@_./-\\=&?#"  # signs of addresses and names of files


@dataclass(frozen=True, slots=True, repr=False)
class NameForms:
    """The forms of one person's names.

    Attributes:
        pairs: given name (empty: none) and family name of each full name, as words in plain form.
        middle: words that may stand between them.
        parts: words that name the person alone.
        shared: words of the name that are other people's too; alone they count only where the person is named anyway.
        others: all words of other people's names.
        addresses: of the person, which count as a whole; their words (``com``) are no names.
    """

    pairs: tuple[tuple[str, str], ...]
    middle: frozenset[str]
    parts: frozenset[str]
    shared: frozenset[str] = frozenset()
    others: frozenset[str] = frozenset()
    addresses: frozenset[str] = frozenset()

    @classmethod
    def of_names(cls, names: Iterable[str], others: Collection[str] = ()) -> NameForms:
        """Return the forms of all names of a person.

        Args:
            names: as they are written, and addresses.
            others: words of other people's names in plain form; such a word alone is not this person's.
        """
        pairs: dict[tuple[str, str], None] = {}
        middle: set[str] = set()
        parts: set[str] = set()
        names = list(names)
        others = {part for word in others for part in (word, *word.split("-"))}
        addresses = frozenset(name for name in names if "@" in name or "/" in name)
        for name in (name for name in names if name not in addresses):
            for words in list_name_spellings(name):
                given_names, last, _ = split_name(words)
                firsts = [part for word in given_names for part in WORD.findall(word)]
                family = [part for word in last for part in WORD.findall(word) if part not in PARTICLES]
                middle.update(firsts)
                parts.update(part for part in (*firsts[:1], *family) if len(part) > 2 or len(words) == 1)
                if firsts and family:
                    pairs.update(dict.fromkeys((first, family[-1]) for first in _list_first_names(firsts[0])))
                    middle.update(family)
        alone = frozenset(parts - set(others))
        shared = frozenset(parts) - alone
        return cls(tuple(pairs), frozenset(middle | PARTICLES), alone, shared, frozenset(others), addresses)

    def keep_full_names(self) -> NameForms:
        """Return the forms without words that count alone, unless the name has only one word."""
        return replace(self, parts=frozenset(), shared=frozenset()) if self.pairs else self

    def find(self, text: str, least: int = 1, *, is_named: bool = False) -> list[tuple[int, int]]:
        """Return where a text names the person, as disjoint intervals in reading order.

        Args:
            text: any text.
            least: letters that a part of a name needs to count alone.
            is_named: whether the person is known to be named in the text, as after a full name: then words that others
                share count alone too, unless they stand in another's name.
        """
        in_addresses = self._find_addresses(text)
        if not self.occur_in_plain(fold(text)) and not self.occur_in_plain(" ".join(fold_spellings(text))):
            return in_addresses
        matches = list(WORD.finditer(text))
        folded = {surface: fold(surface) for surface in {match[0] for match in matches}}
        distinct = set(folded.values())
        joined = {word for word in distinct if self._is_joined(word)}
        alone = {word for word in distinct if self._has_part(word, self.parts | self.shared)}
        families = self._families
        if not joined and not alone and not any(self._has_part(word.rstrip(_DIGITS), families) for word in distinct):
            return in_addresses
        words = [(match, folded[match[0]]) for match in matches]
        has_capitals = text != text.lower()
        places = [match.span() for match, word in words if word in joined]
        places += in_addresses
        places += self._find_full_names(text, words)
        is_named = is_named or bool(places)
        for i, (match, word) in enumerate(words):
            if word not in alone:
                continue
            counts = self._has_part(word, self.parts) or (is_named and self._is_named_by(words, i))
            if counts and len(word) >= least:
                around = text[match.start() - 1 : match.start()] + text[match.end() : match.end() + 1]
                if match[0] != match[0].lower() or not has_capitals or any(sign in _AROUND for sign in around):
                    places.append(match.span())
        return _drop_overlaps(places)

    @property
    def _families(self) -> frozenset[str]:
        return frozenset(family for _, family in self.pairs)

    def occur_in_plain(self, plain: str) -> bool:
        """Tell whether a folded text may name the person; a quick test."""
        return any(word in plain for word in chain(self.parts, self.shared, self._families))

    def _find_addresses(self, text: str) -> list[tuple[int, int]]:
        patterns = (rf"(?<![\w.+-]){re.escape(address)}(?![\w-]|\.\w)" for address in sorted(self.addresses))
        return _drop_overlaps(m.span() for pattern in patterns for m in re.finditer(pattern, text, re.IGNORECASE))

    def _has_part(self, word: str, parts: frozenset[str]) -> bool:
        return word in parts or (word[-1:] == "s" and word[:-1] in parts)

    def _is_named_by(self, words: list[tuple[re.Match[str], str]], index: int) -> bool:
        """Tell whether a word that others share stands in none of their names."""
        if not self._has_part(words[index][1], self.shared):
            return False
        around = {word for _, word in (*words[max(0, index - 1) : index], *words[index + 1 : index + 2])}
        return not around & (self.others - self.shared)

    def _is_joined(self, word: str) -> bool:
        """Tell whether a word is a full name without a space, as in addresses: ``adabrook``, ``abrook``."""
        for first, family in self.pairs:
            if len(first) > 1 and (first + family in word or family + first in word):
                return True
            if len(family) >= _LEAST_JOINED and word in (first[:1] + family, family + first[:1]):
                return True
        return False

    def _find_full_names(self, text: str, words: list[tuple[re.Match[str], str]]) -> Iterator[tuple[int, int]]:
        firsts = {name for name, _ in self.pairs}
        initials = {name[:1] for name in firsts}
        families = self._families
        pairs = set(self.pairs)
        initialled = {(name[:1], family) for name, family in pairs}
        for i, (first, word) in enumerate(words):
            if word not in firsts and word not in initials and word not in families:
                continue
            previous = first
            for second, other in words[i + 1 : i + 2 + _BETWEEN]:
                gap = text[previous.end() : second.start()]
                if not (_AFTER_INITIAL if previous.end() - previous.start() == 1 else _GAP).fullmatch(gap):
                    break
                bare = other.rstrip(_DIGITS)  # "brook84" of an address
                bare = bare[:-1] if bare[-1:] == "s" and bare not in families | firsts else bare
                straight = (word, bare) in pairs or (word, bare) in initialled
                reverse = (bare, word) in pairs or ("," in gap and (bare, word) in initialled)
                if straight or reverse:
                    yield first.start(), second.end()
                    break
                if len(other) > 1 and other not in self.middle:
                    break
                previous = second


def _list_first_names(name: str) -> Iterator[str]:
    """Yield a given name and its short and long forms, which name the person before the family name."""
    yield name
    yield from sorted(find_given_name_variants(name))


def _drop_overlaps(places: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return disjoint places in reading order; those that overlap become one."""
    out: list[tuple[int, int]] = []
    for start, end in sorted(places):
        if out and start < out[-1][1]:
            out[-1] = (out[-1][0], max(end, out[-1][1]))
        else:
            out.append((start, end))
    return out
