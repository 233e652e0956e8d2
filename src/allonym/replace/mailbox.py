"""What stands before the @ and what people call themselves online: made of the new person's name as of the old one's.

``sarah.connor``, ``sconnor84`` and ``connors`` are read as words, initials and beginnings of the names of the
document's people. What fits one person gets the same pattern of the new name; what fits several is nobody's. What fits
nobody is read with the knowledge base's names, and what is no name at all becomes a word that is nobody's name.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import NamedTuple

from allonym.replace.cast import Cast
from allonym.replace.naming import units
from allonym.replace.network import digits_for
from allonym.replace.people import as_borne, family_name, made_up, unknown_initial
from allonym.replace.who import Person, weight
from allonym.text.fold import spell_out, to_ascii_letters
from allonym.text.names import plain, short_forms

RUN = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*|\d+|[\W_]+")
_CUT = 3  # letters that the beginning of a name needs to be told
_LONGEST = 64
_SINGLE = 12  # choices of one word; those after them are two joined


@lru_cache(maxsize=1)
def _lists() -> dict[str, str]:
    return tomllib.loads(Path(__file__).with_name("addresses.toml").read_text(encoding="utf-8"))


@lru_cache(maxsize=8)
def word_list(name: str) -> frozenset[str]:
    """The words of a list in ``addresses.toml``."""
    return frozenset(_lists()[name].split())


@lru_cache(maxsize=8)
def word_pool(name: str) -> tuple[str, ...]:
    """The same in order, to choose from."""
    return tuple(sorted(word_list(name)))


class Part(NamedTuple):
    """A stretch of a run of letters: which of the person's words it is, or begins; no word: an initial of none."""

    text: str
    word: str
    whole: bool


Parts = tuple[Part, ...]


class Mailboxes:
    """Reads and renames the local parts and user names of one document. Mutable; it belongs to one :class:`Cast`."""

    def __init__(self, cast: Cast) -> None:
        self.cast = cast
        self._by_start: dict[str, list[Person]] = {}
        seen: set[int] = set()
        for person in cast.people.values():
            if not isinstance(person, Person) or id(person) in seen or person.plural:
                continue
            seen.add(id(person))
            for word in _spellings(person):
                self._by_start.setdefault(word[:_CUT], []).append(person)
            initials = "".join(to_ascii_letters(w)[:1].lower() for w in (*person.given[:1], *person.family[-1:]))
            if len(initials) == 2:
                self._by_start.setdefault(f"={initials}", []).append(person)

    def renamed(self, local: str) -> str | None:
        """What stands for a local part or user name, in small letters; the words of a role stay.

        The same for the same local part in every address; no two get the same.
        """
        key = local.casefold()
        base, plus, tag = key.partition("+")
        runs = _runs(base)
        if not any(c.isalnum() for c in key):
            return None
        roles = word_list("roles")
        if all(r in roles for r in runs if r.isalpha()) and not any(r.isdigit() for r in runs) and not plus:
            return key
        # Read before the ledger is asked: what is given while it is read is given whether a vault knows the key or not.
        pieces = self._pieces(runs, self._person(runs) or self._half_known(runs) or self._stranger(runs))
        behind = plus + "".join(self._neutral(r) if r.isalpha() else r for r in _runs(tag))
        proposed = partial(self._proposed, key, pieces, behind)
        return self.cast.ledger.assign("local part", key, proposed, telling=_one_word)

    def made_of_a_name(self, label: str) -> str | None:
        """The same for a domain that is made of one person's name, such as ``sarah-connor``; None for others."""
        runs = _runs(label.casefold())
        found = self._person(runs) if any(len(r) > 4 for r in runs) else None
        return None if found is None else self._written(label, self._pieces(runs, found), 0)

    def _proposed(self, key: str, pieces: Sequence[str], behind: str, attempt: int) -> str | None:
        new = self._written(key, pieces, attempt)
        if attempt >= _SINGLE or (attempt and not any(p.isdigit() for p in pieces)):
            new += digits_for(self.cast, "local part", key, "00" if attempt < _SINGLE else "0000", attempt)
        new += behind
        return "" if new == key else new

    def _pieces(self, runs: Sequence[str], parts: tuple[Person, list[Parts]] | None) -> list[str]:
        """What stands for each run; a number is left, since it differs from attempt to attempt."""
        out: list[str] = []
        for at, run in enumerate(runs):
            if not run.isalpha():
                out.append(run)
            elif parts is not None:
                out.append("".join(self._part(parts[0], p) for p in parts[1][at]))
            else:
                out.append(self._neutral(run))
        return out

    def _written(self, key: str, pieces: Sequence[str], attempt: int) -> str:
        return "".join(
            digits_for(self.cast, "local part", f"{key} {at}", piece, attempt) if piece.isdigit() else piece
            for at, piece in enumerate(pieces)
        )

    def _part(self, person: Person, part: Part) -> str:
        if not part.word:
            if part.text in word_list("roles") or part.text in person.particles.split():
                return part.text
            return unknown_initial(self.cast, person, part.text).lower()
        new = person.new[part.word]
        new = to_ascii_letters(as_borne(self.cast, person, new) if person.is_family(part.word) else new).lower()
        return new if part.whole else new[: len(part.text)]

    def _neutral(self, run: str) -> str:
        if run in word_list("roles"):
            return run
        if len(run) < _CUT:
            return "".join(
                self.cast.ledger.pick("abcdefghjklmnprstvw".replace(c, ""), f"letter {i}", run)
                for i, c in enumerate(run)
            )
        return neutral_word(self.cast, run) or "x" * len(run)

    def _person(self, runs: Sequence[str]) -> tuple[Person, list[Parts]] | None:
        """The one person whose name the runs are made of, and how; the same new name for several will do too."""
        letters = [r for r in runs if r.isalpha()]
        squeezed = "".join(letters)
        if not squeezed or len(squeezed) > _LONGEST:
            return None
        starts = {squeezed[i : i + n] for i in range(len(squeezed)) for n in (2, _CUT)} | {f"={squeezed}"}
        some = {id(p): p for s in sorted(starts) for p in self._by_start.get(s, ())}
        fits = [(p, parts) for p in some.values() if (parts := _read(p, runs)) is not None]
        if len(fits) > 1:
            # Who bears every word of it is meant before who bears some.
            surest = max(_sureness(parts) for _, parts in fits)
            fits = [f for f in fits if _sureness(f[1]) == surest]
            if len({"".join(self._part(p, x) for parts in found for x in parts) for p, found in fits}) > 1:
                return None
        return fits[0] if fits else None

    def _half_known(self, runs: Sequence[str]) -> tuple[Person, list[Parts]] | None:
        """The one person of whom the document knows the given name alone, where the family name stands beside it."""
        names = [r for r in runs if len(r) > 2 and r.isalpha()]
        if len(names) != 2 or set(names) & word_list("roles"):
            return None
        for given, family in (names, names[::-1]):
            bearing = [p for p in self._by_start.get(given[:_CUT], ()) if given in _givens(p)]
            if len({id(p) for p in bearing}) == 1 and not bearing[0].family:
                person = bearing[0]
                new = family_name(self.cast, family)
                if new is not None:
                    person.family.append(family)
                    person.new[family] = new
                    parts = _read(person, runs)
                    return None if parts is None else (person, parts)
        return None

    def _stranger(self, runs: Sequence[str]) -> tuple[Person, list[Parts]] | None:
        """Somebody of whom nothing but the address is known, where it is made of names."""
        kb = self.cast.kb
        letters = [r for r in runs if r.isalpha() and r not in word_list("roles")]
        names = [r for r in letters if len(r) > 1]
        given = family = ""
        if len(names) == 2 and len(letters) < 4:
            straight = weight(kb, names[0], "first") + weight(kb, names[1], "last")
            turned = weight(kb, names[1], "first") + weight(kb, names[0], "last")
            if max(straight, turned):
                given, family = (names[0], names[1]) if straight >= turned else (names[1], names[0])
        elif len(names) == 1:
            given, family = self._taken_apart(names[0], len(letters) > 1)
        if not given and not family:
            return None
        person = made_up(self.cast, given, family)
        if any(w not in person.new for w in (*person.given, *person.family)):
            return None
        parts = _read(person, runs)
        return None if parts is None else (person, parts)

    def _taken_apart(self, run: str, initial: bool) -> tuple[str, str]:
        kb = self.cast.kb
        first, last = weight(kb, run, "first"), weight(kb, run, "last")
        if first or last:
            return ("", run) if last >= first or initial else (run, "")
        best = (0, "", "")
        for i in range(_CUT, len(run) - _CUT + 1):
            a, b = run[:i], run[i:]
            for given, family in ((a, b), (b, a)):
                first, last = weight(kb, given, "first"), weight(kb, family, "last")
                if first and last:
                    best = max(best, (min(first, last), given, family))
        if best[0]:
            return best[1], best[2]
        for family in (run[1:], run[:-1]):
            if len(family) > _CUT and weight(kb, family, "last"):
                return "", family
        return "", ""


def _runs(text: str) -> list[str]:
    """Runs of letters, of digits and of signs; an apostrophe between letters is left out."""
    return [re.sub("['’]", "", r) if r[0].isalpha() else r for r in RUN.findall(text)]


def neutral_word(cast: Cast, word: str) -> str | None:
    """A word that is nobody's name, for one that may be; the same wherever it stands in an address."""
    return cast.ledger.assign(
        "address word", plain(word), partial(word_for, cast, "address word", plain(word), "words")
    )


def word_for(cast: Cast, kind: str, key: str, pool: str, attempt: int) -> str:
    """The choice of an attempt: one word of a list, and when those become few, two joined."""
    first = cast.ledger.pick(word_pool(pool), kind, key, attempt)
    return first if attempt < _SINGLE else first + cast.ledger.pick(word_pool("words"), f"{kind} 2", key, attempt)


def _one_word(value: str) -> str:
    # Names in it may belong to the person whose address it is; it is told from others as a whole.
    return "local" + re.sub(r"[\W_]", lambda sign: f"0{ord(sign[0])}0", value)


def _spellings(person: Person) -> Iterable[str]:
    """The person's words as addresses spell them."""
    for word in dict.fromkeys((*person.words(), *person.short)):
        if word in person.new:
            yield from _spelled(person, word)


@lru_cache(maxsize=4096)
def _in_letters(written: str) -> tuple[str, ...]:
    lower = written.lower()
    return tuple(dict.fromkeys((to_ascii_letters(lower).lower(), to_ascii_letters(spell_out(lower)).lower())))


def _spelled(person: Person, word: str) -> tuple[str, ...]:
    forms = sorted(short_forms(word) - set(person.short)) if word in person.given else []
    return (*_spelled_out(person, word), *(f for f in forms if f.isascii()))


def _spelled_out(person: Person, word: str) -> tuple[str, ...]:
    written = person.written.get(word, "")
    if not written:
        written = next((u for w in person.written.values() for u in re.split("[‐‑-]", w) if plain(u) == word), word)
    return _in_letters(written)


def _read(person: Person, runs: Sequence[str]) -> list[Parts] | None:
    """The runs as words of a person's name, one entry per run (empty where it is no letters); None: they are not."""
    words = [
        (w, s)
        for w in dict.fromkeys((*person.words(), *person.short))
        if w in person.new
        for s in _spelled(person, w)
        if s
    ]
    letters = [r for r in runs if r.isalpha()]
    found = _search(letters, words, frozenset(), set(person.particles.split()))
    if not found:
        return None
    parts = max(found, key=_sureness)
    whole = [p for run in parts for p in run if p.word and ((p.whole and len(p.text) > 1) or len(p.text) >= _CUT)]
    if not whole:
        ends = [u for w in (*person.given[:1], *person.family[-1:]) for u in units(w)[:1]]
        told = [p.word for run in parts for p in run]
        if not person.given or not person.family or len(told) < 2 or not set(ends) <= set(told) or "" in told:
            return None
    unknown = sum(not p.word and len(p.text) == 1 for run in parts for p in run)
    if unknown > 1:
        return None
    if unknown and person.given and not any(p.word in _givens(person) for run in parts for p in run):
        # Another's, unless it is a middle name's initial: as known, or as two full stops tell.
        letter = next(p.text for run in parts for p in run if not p.word and len(p.text) == 1)
        if letter not in person.middle and ".." not in runs:
            return None
    out, at = [], 0
    for run in runs:
        out.append(parts[at] if run.isalpha() else ())
        at += run.isalpha()
    return out


def _givens(person: Person) -> set[str]:
    return {u for w in (*person.given, *person.short) for u in units(w)}


def _search(
    runs: Sequence[str], words: Sequence[tuple[str, str]], used: frozenset[str], particles: set[str]
) -> list[list[Parts]]:
    if not runs:
        return [[]]
    out: list[list[Parts]] = []
    for parts in _segments(runs[0], words, used, particles, True):
        taken = used | {p.word for p in parts if p.word}
        for rest in _search(runs[1:], words, taken, particles):
            out.append([parts, *rest])
            if len(out) > 200:
                return out
    return out


def _segments(
    run: str, words: Sequence[tuple[str, str]], used: frozenset[str], particles: set[str], free: bool
) -> list[Parts]:
    """The ways to read a run as words, beginnings of words and initials, each word once; one initial may be unknown."""
    if not run:
        return [()]
    out: list[Parts] = []
    options: dict[Part, frozenset[str]] = {}
    for word, spelled in words:
        if word in used:
            continue
        taken = used | {word}
        if run.startswith(spelled):
            options[Part(spelled, word, True)] = taken
        shared = _CUT
        while shared <= min(len(run), len(spelled) - 1) and run[:shared] == spelled[:shared]:
            options[Part(run[:shared], word, False)] = taken
            shared += 1
        if run[0] == spelled[0]:
            options[Part(run[0], word, len(spelled) == 1)] = taken
    for particle in particles:
        if run.startswith(particle):
            options[Part(particle, "", True)] = used
    if run in word_list("roles"):
        options[Part(run, "", True)] = used
    for part, taken in options.items():
        for rest in _segments(run[len(part.text) :], words, taken, particles, free):
            out.append((part, *rest))
    if free:
        out += [(Part(run[0], "", False), *rest) for rest in _segments(run[1:], words, used, particles, False)]
    return out


def _sureness(parts: Sequence[Parts]) -> int:
    return sum(
        (10 if p.whole else 5 if len(p.text) > 1 else 4) * len(p.text) if p.word else -8 for r in parts for p in r
    )
