"""Pseudonyms of people: one new person for each, whom all surfaces of the old one follow.

A person is taken apart into given names and family names, by all surfaces of the entity and what stands around them.
Each part is replaced by itself, so that relatives keep sharing a family name and ``Sarah Connor``, ``Ms Connor``,
``the Connors``, ``Connor, Sarah`` and ``S. C.`` stay one person. What is no name stays: titles, particles, ``Jr.``,
separators, order, case. Gender comes from titles, else from the given name, else from pronouns nearby, else the new
name is one of either gender; the language of origin comes from the words. No well-known person's name is given (P4,
ethics and limits).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from itertools import permutations
from typing import TYPE_CHECKING

from allonym.replace.cast import Cast, Renderer
from allonym.replace.mention import Wanted
from allonym.replace.naming import (
    ARTICLES,
    ELIDED,
    ROMAN,
    Piece,
    family_key,
    for_woman,
    letters_of,
    of_man,
    plural,
    recased,
    spelled_like,
    tables,
    units,
)
from allonym.replace.network import digits_for
from allonym.replace.who import FAMILY, FAMILY_FIRST, GIVEN, Person, Reading, default_origin, family_origin, pieces_of
from allonym.text.fold import to_ascii_letters
from allonym.text.names import near, plain, short_forms, singular

if TYPE_CHECKING:
    from allonym.kb import KnowledgeBase
    from allonym.replace.mailbox import Mailboxes

# Which choices come from which pool: like the original in length and letters; of its language of origin; English; any;
# two names joined, of which there are always enough.
_ALIKE, _OWN, _ENGLISH, _ANY = 20, 34, 46, 54
_ENOUGH = 12  # names that a narrower pool must have
_LONG = 32  # letters from which on nobody mistakes a name for another by one of them
_LETTERS = "ABCDEGHJKLMNPRSTVW"
_WRITTEN = re.compile(r"(?:Ma?c|O['’]|D['’]|Fitz|De|Di|La|Le|Van)?[^\W\d_a-z][^\W\d_A-Z]*(?:-[^\W\d_]+)*")
_LOGIN = re.compile(r"(?P<lead>(?i:user(?:\s?name)?|login|account)\s+)?(?P<name>[a-z]{2,}[a-z0-9]*(?:[._-][a-z0-9]+)*)")
_CALLED = re.compile(r"\b(?i:user(?:\s?name)?|login|account)[\s:]+\Z")
_DIGITS = re.compile(r"\d+")
_FEW_DIGITS = 4  # such as a year's; more may be a number of its own
_OF_WOMEN = ("ová", "ská", "cká", "ska", "cka", "dzka")
_PREFIX = re.compile(r"(?:(O['’])|(Ma?c)[A-Z])")


@dataclass(slots=True)
class _Given:
    """What the people of a document have been given so far. Mutable; it belongs to one :class:`Cast`."""

    keys: dict[str, str] = field(default_factory=dict, repr=False)  # of given names -> the entity whose they are
    near: dict[str, str] = field(default_factory=dict, repr=False)  # names, and names less one letter -> key
    letters: dict[str, str] = field(default_factory=dict, repr=False)  # initials given -> for which


def recast(cast: Cast, wanted: Sequence[Wanted]) -> dict[str, Renderer]:
    """Who plays the people of a document.

    Fills ``cast.people``: whole names and parts that only one person bears, in plain form, to
    :class:`~allonym.replace.who.Person`; under the empty name it holds what is needed to go on.

    Args:
        cast: what is known so far.
        wanted: entities of the family PERSON in reading order.

    Returns:
        Entity key to what renders its surfaces. Forms of address (``TITLE``) are rendered as they are.
    """
    out: dict[str, Renderer] = {w.entity.key: _same for w in wanted if w.entity.label == "TITLE"}
    logins = _logins(cast, [w for w in wanted if w.entity.label != "TITLE"])
    readings = [Reading(cast, w) for w in wanted if w.entity.label != "TITLE" and w.entity.key not in logins]
    families = {w for r in readings for w in r.person.family}
    families |= {w for r in readings for w, kind in r.singles.items() if kind == FAMILY}
    givens = {w for r in readings for w in r.person.given} - families
    others = sorted((s.start, s.end) for w in wanted for s in w.entity.spans)
    meant = [_short_of(r, readings) or r.settle(families, givens) for r in readings]
    for reading in readings:
        reading.person.gender = reading.gender(others)
        for word in (*reading.person.given, *reading.person.family):
            _keep_apart(cast, word, "")
    people: dict[int, Person] = {}
    players: dict[tuple[tuple[str, ...], tuple[str, ...]], Person] = {}
    for reading, person in zip(readings, meant, strict=True):
        player = _same_as(person, players)
        if id(player) not in people:
            _name(cast, player)
            people[id(player)] = player
        out[reading.entity.key] = partial(_render, cast, player)
    _enter(cast, tuple(people.values()))
    if logins:
        from allonym.replace.mailbox import Mailboxes  # which needs this module

        boxes = Mailboxes(cast)
        out |= {key: partial(_login, boxes) for key in logins}
    return out


def _logins(cast: Cast, wanted: Sequence[Wanted]) -> frozenset[str]:
    """Keys of those who are called by a user name: ``user kdorsey``, or ``kdorsey`` where Kevin Dorsey is known."""
    text = cast.setting.document.text
    some = {w.entity.key: w for w in wanted if all(_LOGIN.fullmatch(s) for s in w.surfaces)}
    if not some:
        return frozenset()
    made: set[str] = set()
    for one in wanted:
        names = [plain(p.text) for p in pieces_of(cast.kb, one.surfaces[0]) if p.kind == "name"]
        if len(names) > 1 and one.entity.key not in some:
            made |= {names[0][0] + names[-1], names[-1] + names[0][0], names[0] + names[-1][0]}
    out = set()
    for key, one in some.items():
        match = _LOGIN.fullmatch(one.surfaces[0])
        assert match is not None
        start = one.entity.spans[0].start
        called = match["lead"] or _CALLED.search(text, max(0, start - 16), start)
        if match["name"] in made or (called and not cast.kb.name_facts(match["name"])):
            out.add(key)
    return frozenset(out)


def _login(boxes: Mailboxes, surface: str) -> str | None:
    match = _LOGIN.fullmatch(surface)
    new = boxes.renamed(match["name"]) if match is not None else None
    return None if match is None or new is None else (match["lead"] or "") + new


def _same(surface: str) -> str | None:
    return surface


def _short_of(reading: Reading, readings: Sequence[Reading]) -> Person | None:
    """The one person whose initials stand alone in this entity, such as ``JFK``."""
    words = list(reading.singles)
    if len(words) != 1 or reading.person.given or reading.person.family or not 2 <= len(words[0]) <= 4:
        return None
    if not reading.person.written.get(words[0], "").isupper():
        return None
    fits = [r for r in readings if r is not reading and words[0] in r.initials and len(words[0]) > 1]
    return fits[0].person if len(fits) == 1 and fits[0].person.family else None


def _same_as(person: Person, players: dict[tuple[tuple[str, ...], tuple[str, ...]], Person]) -> Person:
    """The person that an entity was made of before, under another key: the same names in another order, say."""
    if person.key.endswith(")") or person.plural or not person.given or not person.family:
        return person
    other = players.setdefault((tuple(person.given), tuple(person.family)), person)
    return other if person.gender in ("", other.gender) else person


def family_name(cast: Cast, word: str) -> str | None:
    """What stands for a family name wherever it does; the same for people, companies and addresses of the document.

    Args:
        cast: of the document.
        word: one word as it stands in the text; hyphenated names are taken apart.

    Returns:
        The new name as names are written; None where the word holds no letter, or nothing fits.
    """
    return _family(cast, word, family_origin(cast, word, ""))


def made_up(cast: Cast, given: str, family: str) -> Person:
    """Who plays somebody of whom only an address tells the name: the person who would be played elsewhere too."""
    kb = cast.kb
    origin = kb.origin([given, family], default_origin(cast)) if given else family_origin(cast, family, "")
    person = Person(f"{given} {family}".strip(), kb.gender(given, origin) if given else "", origin)
    person.given, person.family = [given] * bool(given), [family] * bool(family)
    _name(cast, person)
    return person


# Naming: who plays them


def _enter(cast: Cast, people: Sequence[Person]) -> None:
    bearers: dict[str, list[Person]] = {}
    for person in people:
        for word in {*person.given, *person.family, *person.words()} if not person.plural else ():
            bearers.setdefault(word, []).append(person)
    for word, bearing in bearers.items():
        if len(bearing) == 1:
            cast.people[word] = bearing[0]
    for person in people:
        if person.given and person.family:
            cast.people.setdefault(" ".join((*person.given, *person.family)), person)
            cast.people.setdefault(f"{person.given[0]} {person.family[-1]}", person)


def _given_so_far(cast: Cast) -> _Given:
    given = cast.people.setdefault("", _Given())
    assert isinstance(given, _Given)
    return given


def _forms(name: str) -> set[str]:
    """A name and what is left of it without any one letter: near names share one of them. A long one is told anyway."""
    word = plain(name)
    if not 3 < len(word) <= _LONG:
        return {word}
    return {word, *(word[:i] + word[i + 1 :] for i in range(len(word)))}


def _keep_apart(cast: Cast, name: str, key: str) -> None:
    near = _given_so_far(cast).near
    for form in _forms(name):
        near.setdefault(form, key)


def _is_near(cast: Cast, name: str, key: str) -> bool:
    near = _given_so_far(cast).near
    return any(near.get(form, key) != key for form in _forms(name))


def _name(cast: Cast, person: Person) -> None:
    written = person.written
    for word in person.family:
        old = written.get(word, word)
        whole = person.particles or person.turned or not person.given
        origin = person.origin if whole else family_origin(cast, old, person.origin)
        _plays(person, word, _family(cast, old, origin, person.particles))
    if not person.given:
        return
    key = " ".join((*person.given[:1], *(family_key(w) for w in person.family)))
    if _given_so_far(cast).keys.setdefault(key, person.key) != person.key:
        key = f"{key}\0{person.key}"
    for i, word in enumerate(person.given):
        _plays(person, word, _given(cast, person, written.get(word, word), key if not i else f"{key} +{word}"))

    for word, full in person.short.items():
        if full in person.new:
            person.new[word] = _short(cast, person, person.new[full], f"{key} {word}") or person.new[full]


def _short(cast: Cast, person: Person, new: str, key: str) -> str | None:
    """A form of the new given name that is to it as ``Bob`` to ``Robert``; None: none of its gender is known."""
    known = _usable(cast.kb, person.gender)
    forms = [f.capitalize() for f in sorted(short_forms(plain(new))) if f.capitalize() in known]
    forms = [f for f in forms if cast.kb.gender(f) in (person.gender, "n")] if person.gender in ("f", "m") else forms
    start = cast.ledger.number(GIVEN, key)
    ordered = [forms[(start + i) % len(forms)] for i in range(len(forms))]
    return cast.ledger.assign(GIVEN, f"{key} short", lambda attempt: ordered[attempt] if attempt < len(forms) else None)


def _has_short(name: str) -> bool:
    return any(f.capitalize() != name for f in short_forms(plain(name)))


@lru_cache(maxsize=8)
def _usable(kb: KnowledgeBase, gender: str) -> frozenset[str]:
    return frozenset(kb.names("first", "", gender))


def _plays(person: Person, word: str, new: str | None) -> None:
    if new is None:
        return
    person.new[word] = new
    parts, news = units(word), new.split("-")
    if len(parts) > 1 and len(parts) == len(news):
        person.new.update(zip(parts, news, strict=True))
    elif len(parts) > 1:
        person.new.setdefault(parts[0], news[0])


def _family(cast: Cast, word: str, origin: str, particles: str = "") -> str | None:
    """What stands for a family name, in its form for men."""
    parts = re.split("[‐‑-]", word)
    if len(parts) > 1:
        kept = [plain(p) in ARTICLES for p in parts]
        news = [p if k else _family(cast, p, origin) for p, k in zip(parts, kept, strict=True)]
        return None if all(kept) or None in news else "-".join(n for n in news if n is not None)
    if not any(c.isalpha() for c in word):
        return None
    key = family_key(word)
    proposed = partial(_proposed, cast, _pools(cast.kb, "last", origin, "m", word, particles), FAMILY, key, word, ())
    return _assigned(cast, FAMILY, key, proposed, telling=_with_forms)


def _given(cast: Cast, person: Person, word: str, key: str) -> str | None:
    """What stands for a given name. With a vault it is the whole new name that nobody else of the scope has."""
    pools = _pools(cast.kb, "first", person.origin, person.gender, word, "")
    if plain(word) in person.short.values():
        pools = (tuple(n for n in pools[1] if _has_short(n)) or pools[0], *pools[1:])
    families = tuple(person.new[w] for w in person.family if w in person.new)
    proposed = partial(_proposed, cast, pools, GIVEN, key, word, families)
    if "-" in word and person.origin not in FAMILY_FIRST:
        proposed = partial(_double, proposed, pools, cast, key)

    def whole(attempt: int) -> str | None:
        name = proposed(attempt)
        return " ".join((name, *families)) if name else name

    new = _assigned(cast, GIVEN, key, whole, telling=_first_word)
    return None if new is None else _first_word(new)


def _with_forms(name: str) -> str:
    """A family name and what women of any language would bear for it: none may be another's."""
    return " ".join(dict.fromkeys((name, *(for_woman(name, origin) for origin in sorted(tables().women)))))


def _first_word(name: str) -> str:
    return name.partition(" ")[0]


def _assigned(
    cast: Cast, kind: str, key: str, proposed: Callable[[int], str | None], telling: Callable[[str], str] | None = None
) -> str | None:
    new = cast.ledger.assign(kind, key, proposed, telling=telling)
    if new is not None:
        for name in (telling(new) if telling is not None else new).split():
            _keep_apart(cast, name, f"{kind}\0{key}")
    return new


def _proposed(
    cast: Cast,
    pools: tuple[tuple[str, ...], ...],
    kind: str,
    key: str,
    word: str,
    families: tuple[str, ...],
    attempt: int,
) -> str | None:
    """The choice of an attempt; empty where it will not do."""
    at = sum(attempt >= limit for limit in (_ALIKE, _OWN, _ENGLISH, _ANY))
    pool = pools[min(at, 3)] or pools[3]
    name = cast.ledger.pick(pool, kind, key, attempt)
    if at == 4:
        name += "-" + cast.ledger.pick(pools[2], f"{kind} 2", key, attempt)
    if family_key(name) == family_key(word) or near(plain(name), plain(word)):
        return ""
    # Names that one slip of the pen makes alike are told apart by nobody, so they are taken only in need.
    if attempt < _ENGLISH and _is_near(cast, name, f"{kind}\0{key}"):
        return ""
    return "" if any(cast.kb.famous(name, f) or plain(name) == plain(f) for f in families) else name


def _double(
    proposed: Callable[[int], str | None], pools: tuple[tuple[str, ...], ...], cast: Cast, key: str, attempt: int
) -> str | None:
    """A name joined by a hyphen, made of two where the knowledge base's own will not do."""
    if attempt < 3:
        return proposed(attempt)
    single = [n for n in pools[1] if "-" not in n]
    first, second = (cast.ledger.pick(single, f"{GIVEN} {i}", key, attempt) for i in (1, 2))
    return f"{first}-{second}" if first != second else ""


def _pools(
    kb: KnowledgeBase, part: str, origin: str, gender: str, word: str, particles: str
) -> tuple[tuple[str, ...], ...]:
    """Names that may stand for ``word``: the most alike, all of its origin, English ones, all."""
    return _alike(kb, part, origin, gender, particles, "-" in word, word.isascii(), len(word), _prefix(word))


def _prefix(word: str) -> str:
    found = _PREFIX.match(word)
    return (found[1] or found[2])[:1] if found is not None else ""


@lru_cache(maxsize=1024)
def _alike(
    kb: KnowledgeBase,
    part: str,
    origin: str,
    gender: str,
    particles: str,
    hyphen: bool,
    ascii_only: bool,
    length: int,
    prefix: str,
) -> tuple[tuple[str, ...], ...]:
    everything = _all(kb, part, origin, gender, particles)
    home = ("english", "american") if part == "first" else ("english", "american", "irish", "scottish")
    english = tuple(sorted({n for o in home for n in _all(kb, part, o, gender, "") if n.isascii()}))
    if len(everything) < _ENOUGH:
        everything = english
    alike = everything
    for fits in (
        lambda name: ("-" in name) == hyphen,
        lambda name: not ascii_only or name.isascii(),
        lambda name: _prefix(name) == prefix,
        lambda name: abs(len(name) - length) <= 3,
    ):
        fewer = tuple(n for n in alike if fits(n))
        alike = fewer if len(fewer) >= _ENOUGH else alike
    return alike, everything, english, _all(kb, part, "", gender, "")


@lru_cache(maxsize=512)
def _all(kb: KnowledgeBase, part: str, origin: str, gender: str, particles: str) -> tuple[str, ...]:
    if part == "first":
        names = kb.names("first", origin, gender)
        if not gender:
            # Names of these languages seldom tell a reader of another one the gender.
            names = kb.names("first", origin) if origin in FAMILY_FIRST else kb.names("first", origin, "n")
        if gender in ("", "n") and len(names) < _ENOUGH:
            names = kb.names("first", "american", "n")
    elif origin in tables().women:
        names = tuple(n for n in kb.names("last", origin, "m") if not n.endswith(_OF_WOMEN))
    else:
        names = kb.names("last", origin, "n")
        names = names if len(names) >= _ENOUGH else kb.names("last", origin)
    if part == "last" and particles:
        if particles.split()[-1] in ("d", "l"):  # d'Arrest
            names = tuple(n for n in names if plain(n)[0] in "aeiouh") or names
        # After "van der" comes what comes after "van der", or after any small words, in other names.
        behind = [n.rpartition(" ") for n in names if " " in n]
        for same in (True, False):
            some = {t for h, _, t in behind if (not same or plain(h) == particles) and _WRITTEN.fullmatch(t)}
            if len(some) >= _ENOUGH:
                return tuple(sorted(some))
    return tuple(dict.fromkeys(n for n in names if _WRITTEN.fullmatch(n)))


# Rendering: what stands for a surface


def _render(cast: Cast, person: Person, surface: str) -> str | None:
    """The new person's form of a surface; None where a part has no substitute."""
    spelled = letters_of(surface, 3)
    if spelled and (word := _by_letters(person, spelled)) is not None:
        return spelled_like(word, surface)
    pieces = pieces_of(cast.kb, surface)
    names = [p for p in pieces if p.kind in ("name", "initial")]
    if len(names) == 1 and _tells_nothing(person, pieces, names[0]):
        return None
    out, at = "", 0
    for piece in pieces:
        if piece.kind not in ("name", "initial"):
            said = _renumbered(cast, piece.text)
            if said is None:
                return None
            out += said
            continue
        initial = piece.kind == "initial"
        new = _initial(cast, person, piece.text, names, at) if initial else _word(cast, person, piece.text)
        if new is None:
            return None
        out += new
        at += 1
    return out if at else None


def _renumbered(cast: Cast, text: str) -> str | None:
    """What stands between names, with other digits for its digits; None where they are as many as those of a code."""
    runs = _DIGITS.findall(text)
    if not runs:
        return text
    if sum(map(len, runs)) > _FEW_DIGITS:
        return None
    return _DIGITS.sub(lambda run: digits_for(cast, "number at a name", run[0], run[0]), text)


def _tells_nothing(person: Person, pieces: Sequence[Piece], name: Piece) -> bool:
    """Whether all that stands there is a number, or a letter of nobody who is known: another would be no better."""
    if name.kind == "name":
        return len(name.text) > 1 and ROMAN.fullmatch(name.text) is not None and person.origin != "vietnamese"
    titled = any(p.kind == "title" for p in pieces)
    return not titled and plain(name.text)[:1] not in {w[:1] for w in person.words() if w in person.new}


def _by_letters(person: Person, letters: str) -> str | None:
    words = (*person.given, *person.family)
    for some in (*((w,) for w in words), *permutations(words, 2)):
        if "".join(some) == letters and all(w in person.new for w in some):
            return "".join(person.new[w] for w in some)
    return None


def _word(cast: Cast, person: Person, text: str) -> str | None:
    word = plain(text)
    known = person.known(word)
    if known is not None and known != word and (elided := ELIDED.match(text)) and plain(text[elided.end() :]) == known:
        new = _word(cast, person, text[elided.end() :])
        return None if new is None else elided[0] + new
    if known is None and 2 <= len(word) <= 4 and text.isupper() and text.isalpha():
        return _initials(cast, person, word)
    if known is None and "-" in text:
        parts = [_word(cast, person, p) if p else "" for p in text.split("-")]
        return None if None in parts else "-".join(p for p in parts if p is not None)
    new = person.new.get(known) if known is not None else None
    if new is None:
        if word in tables().particles:
            return text
        # A word that no surface had when the person was read, such as one with digits stuck to it.
        bare = "".join(c for c in text if c.isalpha())
        if bare and bare != text and person.known(plain(bare)) is not None:
            return _word(cast, person, bare)
        new, known = _family(cast, bare or text, person.origin), None
        return None if new is None else recased(new, text)
    many = known != word and known in [person.spellings.get(base, base) for base in singular(word)]
    family = known is not None and person.is_family(known)
    if family and not many and not of_man(text):
        new = as_borne(cast, person, new)
    if "-" in text and "-" in new and plain(text.split("-")[0]) in ARTICLES:
        new = f"{text.split('-')[0]}-{new.partition('-')[2]}"  # "al-Farsi" and "Al-Farsi"
    new = recased(new, text)
    if many:
        ending = plural(new)[len(new) :]
        new += ending.upper() if text.isupper() else ending
    return new


def _initials(cast: Cast, person: Person, word: str) -> str | None:
    olds = list(person.words())
    for some in (olds, olds[:1] + olds[-1:]):
        if word == "".join(w[0] for w in some) and all(w in person.new for w in some):
            return "".join(to_ascii_letters(person.new[w])[:1] for w in some).upper()
    return "".join(unknown_initial(cast, person, letter) for letter in word)


def as_borne(cast: Cast, person: Person, name: str) -> str:
    """The new family name in the form in which the person bears it: that for women, where its language has one."""
    if person.gender != "f" or person.plural:
        return name
    kb, parts = cast.kb, []
    for part in name.split("-"):
        facts = [f for f in kb.name_facts(part) if f.part == "last"]
        own = [f.origin for f in facts if f.origin == person.origin]
        origins = own or [f.origin for f in facts if f.gender == "m"] or [f.origin for f in facts[:1]]
        parts.append(for_woman(part, "polish" if of_man(part) and not origins else next(iter(origins), "")))
    return "-".join(parts)


def _initial(cast: Cast, person: Person, text: str, names: Sequence[Piece], at: int) -> str:
    letter = plain(text)[:1]
    olds = list(person.words())
    place: str | None = None
    if len(names) == len(olds) and olds[at][:1] == letter:
        place = olds[at]
    elif at == len(names) - 1 and person.family and person.family[-1][:1] == letter:
        place = person.family[-1]
    else:
        given = [u for w in person.given for u in units(w)]
        rest = given[at : at + 1] + [w for i, w in enumerate(given) if i != at]
        families = () if any(_names_family(person, p) for p in names) else person.family
        place = next((w for w in (*rest, *families) if w[:1] == letter), None)
    new = to_ascii_letters(person.new[place])[:1] if place is not None and place in person.new else ""
    new = new or unknown_initial(cast, person, letter)
    return (new.lower() if text[:1].islower() else new.upper()) + text[1:]


def _names_family(person: Person, piece: Piece) -> bool:
    known = person.known(plain(piece.text)) if piece.kind == "name" else None
    return known is not None and person.is_family(known)


def unknown_initial(cast: Cast, person: Person, letter: str) -> str:
    """A keyed capital for an initial that stands for no known word; the same for the same person and letter.

    Other people of the document have other ones, as long as there are some.
    """
    if letter not in person.letters:
        taken = _given_so_far(cast).letters
        pool = [c for c in _LETTERS if c.lower() != letter]
        pool = [c for c in pool if taken.get(c, letter) == letter] or pool
        person.letters[letter] = cast.ledger.pick(pool, "initial", f"{person.key} {letter}")
        taken.setdefault(person.letters[letter], letter)
    return person.letters[letter]
