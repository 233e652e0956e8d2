"""Pseudonyms of local parts and user names: made of the new person's name as the old ones are of the old name.

``sarah.connor``, ``sconnor84`` and ``connors`` are read as words, initials and beginnings of the names of the
document's people. What fits one person gets the same pattern of the new name; what fits several is nobody's. What fits
nobody is read with the knowledge base's names, and what is no name at all becomes a word that is nobody's name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache, partial
from typing import NamedTuple

from allonym.replace.cast import Cast
from allonym.replace.codes import draw_digits
from allonym.replace.naming import split_hyphens
from allonym.replace.people import choose_family_name, choose_initial, inflect_family_name, invent_person
from allonym.replace.person import Person, get_name_weight
from allonym.replace.tables import read_word_set
from allonym.text.fold import spell_out_umlauts, to_ascii_letters
from allonym.text.names import find_given_name_variants, normalize_surface

RUN = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*|\d+|[\W_]+")
_CUT = 3  # letters that the beginning of a name needs to be recognised
_LONGEST = 64
_MOST_READINGS = 200
_SINGLE = 12  # choices of one word; those after them are two joined


def read_address_word_set(list_name: str) -> frozenset[str]:
    """Return the words of a list in ``addresses.toml``."""
    return read_word_set(list_name, file="addresses.toml")


@lru_cache(maxsize=8)
def _list_address_words(list_name: str) -> tuple[str, ...]:
    """Return the same in order, to choose from."""
    return tuple(sorted(read_address_word_set(list_name)))


class Part(NamedTuple):
    """A part of a run of letters.

    Attributes:
        text: the letters.
        word: the person's word that they are, or begin; empty: an initial of none.
        complete: whether they are all of the word.
    """

    text: str
    word: str
    complete: bool


Parts = tuple[Part, ...]
Reading = tuple[Person, list[Parts]]
"""A person, and the parts of each run; none where it is no letters."""
Spellings = Sequence[tuple[str, str]]
"""Words, each with a way in which addresses spell it."""
Used = frozenset[str]
"""The words that have been read already."""


class Mailboxes:
    """Reads and renames the local parts and user names of one document. Mutable; it belongs to one :class:`Cast`."""

    def __init__(self, cast: Cast) -> None:
        self.cast = cast
        self._by_start: dict[str, list[Person]] = {}
        self._most_initials = 0  # the longest run that needs no whole word and no beginning of one
        for person in dict.fromkeys(p for p in cast.people.values() if not p.plural):
            for _, spelling in _list_spellings(person):
                self._by_start.setdefault(spelling[:_CUT], []).append(person)
            initials = "".join(to_ascii_letters(w)[:1].lower() for w in (*person.given[:1], *person.family[-1:]))
            if len(initials) == 2:
                self._by_start.setdefault(f"={initials}", []).append(person)
            particles = len(person.particles.replace(" ", ""))
            self._most_initials = max(self._most_initials, len({w for w, _ in _list_spellings(person)}) + particles + 1)

    def rename_local_part(self, local: str) -> str | None:
        """Return the pseudonym of a local part or user name, in small letters; the words of a role stay.

        It is the same for the same local part in every address; no two get the same.
        """
        key = local.casefold()
        base, plus, tag = key.partition("+")
        runs = _split_runs(base)
        if not any(c.isalnum() for c in key):
            return None
        roles = read_address_word_set("roles")
        if all(r in roles for r in runs if r.isalpha()) and not any(r.isdigit() for r in runs) and not plus:
            return key
        # Read before the ledger is asked: what is assigned while it is read must not depend on what a vault holds.
        reading = self._find_person_by_runs(runs) or self._find_person_by_given_name(runs) or self._invent_person(runs)
        pieces = self._replace_runs(runs, reading)
        tags = [self._replace_unknown_word(run) if run.isalpha() else run for run in _split_runs(tag)]
        propose = partial(self._propose_local_part, key, pieces, [plus, *tags])
        return self.cast.ledger.assign("local part", key, propose, telling=_encode_local_part_as_word)

    def rename_domain_label(self, label: str) -> str | None:
        """Do the same for a label of a domain that is one person's name, such as ``sarah-connor``; None for others."""
        runs = _split_runs(label.casefold())
        reading = self._find_person_by_runs(runs) if any(len(r) > 4 for r in runs) else None
        return None if reading is None else self._join_with_new_numbers(label, self._replace_runs(runs, reading), 0)

    def _propose_local_part(self, key: str, pieces: Sequence[str], tail: Sequence[str], attempt: int) -> str:
        new = self._join_with_new_numbers(key, pieces, attempt)
        if attempt >= _SINGLE or (attempt and not any(p.isdigit() for p in pieces)):
            new += draw_digits(self.cast.ledger, "local part", key, "00" if attempt < _SINGLE else "0000", attempt)
        new += self._join_with_new_numbers(f"{key} +", tail, attempt)
        return "" if new == key else new

    def _replace_runs(self, runs: Sequence[str], reading: Reading | None) -> list[str]:
        """Return the replacement of each run; a number stays, since it differs from attempt to attempt."""
        if reading is None:
            return [self._replace_unknown_word(run) if run.isalpha() else run for run in runs]
        person, parts = reading
        news = ["".join(self._replace_name_part(person, p) for p in run_parts) for run_parts in parts]
        return [new if run.isalpha() else run for run, new in zip(runs, news, strict=True)]

    def _join_with_new_numbers(self, key: str, pieces: Sequence[str], attempt: int) -> str:
        draw = partial(draw_digits, self.cast.ledger, "local part")
        news = (draw(f"{key} {i}", p, attempt) if p.isdigit() else p for i, p in enumerate(pieces))
        return "".join(news)

    def _replace_name_part(self, person: Person, part: Part) -> str:
        if not part.word:
            if part.text in read_address_word_set("roles") or part.text in person.particles.split():
                return part.text
            return choose_initial(self.cast, person, part.text).lower()
        new = person.new[part.word]
        new = inflect_family_name(self.cast, person, new) if person.is_family_word(part.word) else new
        new = to_ascii_letters(new).lower()
        return new if part.complete else new[: len(part.text)]

    def _replace_unknown_word(self, run: str) -> str:
        if run in read_address_word_set("roles"):
            return run
        if len(run) < _CUT:
            pools = [("abcdefghjklmnprstvw".replace(c, ""), f"letter {i}") for i, c in enumerate(run)]
            return "".join(self.cast.ledger.pick(letters, kind, run) for letters, kind in pools)
        return choose_neutral_word(self.cast, run) or "x" * len(run)

    def _find_person_by_runs(self, runs: Sequence[str]) -> Reading | None:
        """Return the one person whose name the runs are made of; one of several who give the same new name."""
        letters = "".join(r for r in runs if r.isalpha())
        if not letters or len(letters) > _LONGEST:
            return None
        starts = _list_starts(letters) | {f"={letters}"}
        people = dict.fromkeys(p for start in sorted(starts) for p in self._by_start.get(start, ()))
        for run in runs:
            if run.isalpha() and len(run) > self._most_initials and not _ends_with_role(run):
                bearers = {p for start in _list_starts(run) for p in self._by_start.get(start, ())}
                people = dict.fromkeys(p for p in people if p in bearers)
        fits = [(p, parts) for p in people if (parts := _read_runs_as_name(p, runs)) is not None]
        if len(fits) > 1:
            # Who bears every word of it is meant before who bears some.
            best = max(_rate_reading(parts) for _, parts in fits)
            fits = [fit for fit in fits if _rate_reading(fit[1]) == best]
            if len({"".join(self._replace_name_part(p, part) for run in runs for part in run) for p, runs in fits}) > 1:
                return None
        return fits[0] if fits else None

    def _find_person_by_given_name(self, runs: Sequence[str]) -> Reading | None:
        """Return the one person of whom the document has only the given name, where a family name stands beside it."""
        names = [r for r in runs if len(r) > 2 and r.isalpha()]
        if len(names) != 2 or set(names) & read_address_word_set("roles"):
            return None
        for first, last in (names, names[::-1]):
            bearers = [p for p in self._by_start.get(first[:_CUT], ()) if first in _list_given_name_words(p)]
            if len(set(bearers)) == 1 and not bearers[0].family:
                person = bearers[0]
                new = choose_family_name(self.cast, last)
                if new is not None:
                    person.family.append(last)
                    person.new[last] = new
                    parts = _read_runs_as_name(person, runs)
                    return None if parts is None else (person, parts)
        return None

    def _invent_person(self, runs: Sequence[str]) -> Reading | None:
        """Return a person of whom nothing but the address is known, where it is made of names."""
        kb = self.cast.kb
        letters = [r for r in runs if r.isalpha() and r not in read_address_word_set("roles")]
        names = [r for r in letters if len(r) > 1]
        first = last = ""
        if len(names) == 2 and len(letters) < 4:
            a, b = names
            straight = get_name_weight(kb, a, "first") + get_name_weight(kb, b, "last")
            reverse = get_name_weight(kb, b, "first") + get_name_weight(kb, a, "last")
            if max(straight, reverse):
                first, last = (a, b) if straight >= reverse else (b, a)
        elif len(names) == 1:
            first, last = self._guess_name_division(names[0], len(letters) > 1)
        if not first and not last:
            return None
        person = invent_person(self.cast, first, last)
        if any(w not in person.new for w in (*person.given, *person.family)):
            return None
        parts = _read_runs_as_name(person, runs)
        return None if parts is None else (person, parts)

    def _guess_name_division(self, run: str, has_initial: bool) -> tuple[str, str]:
        """Divide a run of letters into a given and a family name; each may be empty."""
        kb = self.cast.kb
        first, last = get_name_weight(kb, run, "first"), get_name_weight(kb, run, "last")
        if first or last:
            return ("", run) if last >= first or has_initial else (run, "")
        halves = [(run[:i], run[i:]) for i in range(_CUT, len(run) - _CUT + 1)]
        pairs = (pair for a, b in halves for pair in ((a, b), (b, a)))
        rated = ((min(get_name_weight(kb, g, "first"), get_name_weight(kb, f, "last")), g, f) for g, f in pairs)
        best, given_name, family = max(rated, default=(0, "", ""))
        if best:
            return given_name, family
        for family in (run[1:], run[:-1]):
            if len(family) > _CUT and get_name_weight(kb, family, "last"):
                return "", family
        return "", ""


def _list_starts(letters: str) -> set[str]:
    """Return all that a name in a run of letters may begin with."""
    return {letters[i : i + n] for i in range(len(letters)) for n in (2, _CUT)}


def _ends_with_role(run: str) -> bool:
    roles = read_address_word_set("roles")
    return any(run[i:] in roles for i in range(len(run)))


def _split_runs(text: str) -> list[str]:
    """Return runs of letters, of digits and of signs; an apostrophe between letters is left out."""
    return [re.sub("['’]", "", r) if r[0].isalpha() else r for r in RUN.findall(text)]


def choose_neutral_word(cast: Cast, word: str) -> str | None:
    """Return a word that is nobody's name for one that may be; the same wherever it stands in an address."""
    key = normalize_surface(word)
    return cast.ledger.assign("address word", key, partial(pick_address_word, cast, "address word", key, "words"))


def pick_address_word(cast: Cast, kind: str, key: str, pool: str, attempt: int) -> str:
    """Return the choice of an attempt: one word of a list, and when those become few, two joined."""
    first = cast.ledger.pick(_list_address_words(pool), kind, key, attempt)
    if attempt < _SINGLE:
        return first
    return first + cast.ledger.pick(_list_address_words("words"), f"{kind} 2", key, attempt)


def _encode_local_part_as_word(value: str) -> str:
    # Names in it may belong to the person whose address it is; only as a whole it must be free.
    return "local" + re.sub(r"[\W_]", lambda sign: f"0{ord(sign[0])}0", value)


def _list_spellings(person: Person) -> Iterator[tuple[str, str]]:
    """Yield the person's words, each with a way in which addresses spell it."""
    for word in dict.fromkeys((*person.list_words(), *person.short)):
        if word in person.new:
            written = person.written.get(word, "")
            if not written:
                parts = (part for w in person.written.values() for part in re.split("[‐‑-]", w))
                written = next((part for part in parts if normalize_surface(part) == word), word)
            yield from ((word, spelling) for spelling in _list_ascii_spellings(written))
            forms = sorted(find_given_name_variants(word) - set(person.short)) if word in person.given else []
            yield from ((word, form) for form in forms if form.isascii())


@lru_cache(maxsize=4096)
def _list_ascii_spellings(written: str) -> tuple[str, ...]:
    lower = written.lower()
    return tuple(dict.fromkeys((to_ascii_letters(lower).lower(), to_ascii_letters(spell_out_umlauts(lower)).lower())))


def _read_runs_as_name(person: Person, runs: Sequence[str]) -> list[Parts] | None:
    """Read the runs as words of a person's name; None where they are not.

    Returns:
        The parts of each run; none where it is no letters.
    """
    words = [(word, spelling) for word, spelling in _list_spellings(person) if spelling]
    readings = _search_readings([r for r in runs if r.isalpha()], words, frozenset(), set(person.particles.split()))
    if not readings:
        return None
    reading = max(readings, key=_rate_reading)
    parts = [part for run in reading for part in run]
    if not any(p.word and ((p.complete and len(p.text) > 1) or len(p.text) >= _CUT) for p in parts):
        ends = {u for w in (*person.given[:1], *person.family[-1:]) for u in split_hyphens(w)[:1]}
        used = [p.word for p in parts]
        if not person.given or not person.family or len(used) < 2 or not ends <= set(used) or "" in used:
            return None
    unknown = [p.text for p in parts if not p.word and len(p.text) == 1]
    if len(unknown) > 1:
        return None
    has_given = not person.given or any(p.word in _list_given_name_words(person) for p in parts)
    if unknown and not has_given and unknown[0] not in person.middle and ".." not in runs:
        return None  # another person's, unless it is a middle name's initial: as known, or as two full stops tell
    rest = iter(reading)
    return [next(rest) if run.isalpha() else () for run in runs]


def _list_given_name_words(person: Person) -> set[str]:
    return {u for w in (*person.given, *person.short) for u in split_hyphens(w)}


def _search_readings(runs: Sequence[str], words: Spellings, used: Used, particles: set[str]) -> list[list[Parts]]:
    """Return the ways to read runs of letters as words, each word once; some where they are very many."""
    if not runs:
        return [[]]
    out: list[list[Parts]] = []
    for parts in _segment_run(runs[0], words, used, particles, True):
        rest = used | {p.word for p in parts if p.word}
        for reading in _search_readings(runs[1:], words, rest, particles):
            out.append([parts, *reading])
            if len(out) > _MOST_READINGS:
                return out
    return out


def _segment_run(run: str, words: Spellings, used: Used, particles: set[str], allows_unknown: bool) -> list[Parts]:
    """Return the ways to read a run as words, beginnings of words and initials, each word once.

    With ``allows_unknown`` one initial may be unknown.
    """
    if not run:
        return [()]
    options: dict[Part, frozenset[str]] = {}
    for word, spelled in words:
        if word in used:
            continue
        rest = used | {word}
        if run.startswith(spelled):
            options[Part(spelled, word, True)] = rest
        for shared in range(_CUT, min(len(run), len(spelled) - 1) + 1):
            if run[:shared] == spelled[:shared]:
                options[Part(run[:shared], word, False)] = rest
        if run[0] == spelled[0]:
            options[Part(run[0], word, len(spelled) == 1)] = rest
    options.update({Part(particle, "", True): used for particle in particles if run.startswith(particle)})
    if run in read_address_word_set("roles"):
        options[Part(run, "", True)] = used
    out: list[Parts] = []
    for part, rest in options.items():
        out += [(part, *tail) for tail in _segment_run(run[len(part.text) :], words, rest, particles, allows_unknown)]
    if allows_unknown:
        out += [(Part(run[0], "", False), *tail) for tail in _segment_run(run[1:], words, used, particles, False)]
    return out


def _rate_reading(parts: Iterable[Parts]) -> int:
    """Return how much of a name a reading explains: whole words count most, unknown letters against it."""
    every = [part for run in parts for part in run]
    rates = ((10 if p.complete else 5 if len(p.text) > 1 else 4) * len(p.text) if p.word else -8 for p in every)
    return sum(rates)
