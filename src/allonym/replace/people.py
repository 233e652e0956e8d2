"""Pseudonyms of people: one new person for each, whom all surfaces of the old one follow.

A name is divided into given names and family names, by all surfaces of the entity and the words around them. Each part
is replaced by itself, so that relatives keep sharing a family name and ``Sarah Connor``, ``Ms Connor``, ``the
Connors``, ``Connor, Sarah`` and ``S. C.`` stay one person. What is no name stays: titles, particles, ``Jr.``,
separators, order, case. Gender comes from titles, else from the given name, else from pronouns nearby, else the new
name is one of either gender; the language of origin comes from the words. No well-known person's name is given (P4,
ethics and limits).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from itertools import permutations
from typing import TYPE_CHECKING

from allonym.detection.words import read_dictionary
from allonym.document import NAMESAKE
from allonym.kb import KnowledgeBase
from allonym.link.inflected import find_base_forms_of_names
from allonym.protocol import Wanted
from allonym.replace import naming, ordinary
from allonym.replace.cast import Cast, Propose, Renderer, Telling
from allonym.replace.codes import draw_digits
from allonym.replace.naming import ARTICLES, ELIDED, ROMAN, Piece, load_name_tables, make_family_name_key, split_hyphens
from allonym.replace.person import (
    FAMILY,
    FAMILY_FIRST,
    GIVEN,
    Person,
    PersonReader,
    guess_family_name_origin,
    parse_person,
)
from allonym.replace.wording import match_case
from allonym.text.fold import to_ascii_letters
from allonym.text.inflection import inflect_word
from allonym.text.names import find_given_name_variants, is_within_one_edit, list_singulars, normalize_surface
from allonym.text.prose import read_common_words

if TYPE_CHECKING:
    from allonym.replace.mailbox import Mailboxes

# Which choices come from which pool: like the original in length and letters; of its language of origin; English; any;
# two names joined, of which there are always enough.
_SIMILAR, _SAME_ORIGIN, _ENGLISH, _ANY = 20, 34, 46, 54
_ENOUGH = 12  # names that a narrower pool must have
_DIFFERENT = 4  # choices in which a given name of anybody else in the scope is passed over
_REMEMBERED = 1 << 15  # names of the pools, which are proposed over and over in a long document
_LONG = 32  # letters from which on nobody mistakes a name for another by one of them
_LETTERS = "ABCDEGHJKLMNPRSTVW"
_WRITTEN = re.compile(r"(?:Ma?c|O['’]|D['’]|Fitz|De|Di|La|Le|Van)?[^\W\d_a-z][^\W\d_A-Z]*(?:-[^\W\d_]+)*")
_LOGIN = re.compile(r"(?P<lead>(?i:user(?:\s?name)?|login|account)\s+)?(?P<name>[a-z]{2,}[a-z0-9]*(?:[._-][a-z0-9]+)*)")
_INITIALS = re.compile(r"[A-Z]{2,4}")
_LOGIN_CONTEXT = re.compile(r"\b(?i:user(?:\s?name)?|login|account)[\s:]+\Z")
_FIRMS = ("company", "bank", "newspaper")
_DIGITS = re.compile(r"\d+")
_FEW_DIGITS = 4  # such as a year's; more may be a number of its own
_OF_WOMEN = ("ová", "ská", "cká", "ska", "cka", "dzka")
_PREFIX = re.compile(r"(?:(O['’])|(Ma?c)[A-Z])")

Names = tuple[str, ...]
_NameSort = tuple[str, str, str, str]  # part, origin, gender, particles
_NameForm = tuple[bool, bool, int, str]  # whether it has a hyphen, whether it is ASCII, its length, its prefix


def make_renderers(cast: Cast, targets: Sequence[Wanted]) -> dict[str, Renderer]:
    """Choose pseudonyms of the people of a document.

    Fills ``cast.people``: whole names and parts that only one person bears, in plain form, to
    :class:`~allonym.replace.person.Person`.

    Args:
        cast: of the document.
        targets: entities of the family PERSON in reading order.

    Returns:
        Entity key to what renders its surfaces. Forms of address (``TITLE``) are rendered as they are.
    """
    out: dict[str, Renderer] = {t.entity.key: str for t in targets if t.entity.label == "TITLE"}
    named = [t for t in targets if t.entity.label != "TITLE"]
    logins = _find_logins(cast, named)
    mentions = [s for t in named for s in t.entity.spans]
    base_forms = find_base_forms_of_names(cast.text, mentions)
    readers = [PersonReader(cast, t, base_forms) for t in named if t.entity.key not in logins]
    families = {w for r in readers for w in r.person.family}
    families |= {w for r in readers for w, kind in r.singles.items() if kind == FAMILY}
    givens = {w for r in readers for w in r.person.given} - families
    spans = sorted((s.start, s.end) for t in targets for s in t.entity.spans)
    people = [_find_person_by_initials(r, readers) or r.assign_lone_words_and_origin(families, givens) for r in readers]
    for reader in readers:
        reader.person.gender = reader.guess_gender(spans)
        for word in (*reader.person.given, *reader.person.family):
            _reserve_name(cast, word, "")
    players: dict[Person, None] = {}
    by_name: dict[tuple[Names, Names], Person] = {}
    targets_by_key = {target.entity.key: target for target in named}
    for reader, person in zip(readers, people, strict=True):
        player = _find_same_person(person, by_name)
        player.inflected |= person.inflected
        if player not in players:
            _assign_person_names(cast, player)
            players[player] = None
        out[reader.entity.key] = partial(_render_surface, cast, player)
        target = targets_by_key[reader.entity.key]
        if any(map(_INITIALS.fullmatch, target.surfaces)):
            cast.alternatives[reader.entity.key] = partial(_render_longer_initials, cast, player, target)
    _register_people(cast, tuple(players))
    if logins:
        from allonym.replace.mailbox import Mailboxes  # which needs this module

        boxes = Mailboxes(cast)
        out |= {key: partial(_render_login, boxes) for key in logins}
    return out


def _find_logins(cast: Cast, targets: Sequence[Wanted]) -> frozenset[str]:
    """Return the keys of entities that are user names: ``user kdorsey``, or ``kdorsey`` beside Kevin Dorsey."""
    candidates = {t.entity.key: t for t in targets if all(_LOGIN.fullmatch(s) for s in t.surfaces)}
    if not candidates:
        return frozenset()
    usual: set[str] = set()  # user names that are made of the document's names
    for target in targets:
        names = [normalize_surface(p.text) for p in parse_person(cast.kb, target.surfaces[0]) if p.kind == "name"]
        if len(names) > 1 and target.entity.key not in candidates:
            usual |= {names[0][0] + names[-1], names[-1] + names[0][0], names[0] + names[-1][0]}
    out = set()
    for key, target in candidates.items():
        match = _LOGIN.fullmatch(target.surfaces[0])
        assert match is not None
        start = target.entity.spans[0].start
        announced = match["lead"] or _LOGIN_CONTEXT.search(cast.text, max(0, start - 16), start)
        if match["name"] in usual or (announced and not cast.kb.name_facts(match["name"])):
            out.add(key)
    return frozenset(out)


def _render_login(boxes: Mailboxes, surface: str) -> str | None:
    match = _LOGIN.fullmatch(surface)
    new = boxes.rename_local_part(match["name"]) if match is not None else None
    return None if match is None or new is None else (match["lead"] or "") + new


def _find_person_by_initials(reader: PersonReader, readers: Sequence[PersonReader]) -> Person | None:
    """Return the one person whose initials are the only word of an entity, such as ``JFK``."""
    words = list(reader.singles)
    if len(words) != 1 or reader.person.given or reader.person.family or not 2 <= len(words[0]) <= 4:
        return None
    if not reader.person.written.get(words[0], "").isupper():
        return None
    fits = [r for r in readers if r is not reader and words[0] in r.initials]
    return fits[0].person if len(fits) == 1 and fits[0].person.family else None


def _find_same_person(person: Person, by_name: dict[tuple[Names, Names], Person]) -> Person:
    """Return the person of an earlier entity with the same names, in another order, say; else this person."""
    if person.key.endswith(")") or person.plural or not person.given or not person.family:
        return person
    other = by_name.setdefault((tuple(person.given), tuple(person.family)), person)
    return other if person.gender in ("", other.gender) else person


def choose_family_name(cast: Cast, word: str) -> str | None:
    """Return the pseudonym of a family name, the same for people, companies and addresses of the document.

    Args:
        cast: of the document.
        word: one word as it is written in the text; hyphenated names are divided.

    Returns:
        The new name as names are written; None where the word holds no letter, or nothing fits.
    """
    return _choose_masculine_family_name(cast, word, guess_family_name_origin(cast, word, ""))


def invent_person(cast: Cast, given_name: str, family_name: str) -> Person:
    """Return the pseudonym of a person whose name only an address tells: the same as the name would get elsewhere."""
    kb = cast.kb
    home = naming.get_default_origin(cast.setting.policy.language)
    origin = (
        kb.origin([given_name, family_name], home) if given_name else guess_family_name_origin(cast, family_name, "")
    )
    person = Person(f"{given_name} {family_name}".strip(), kb.gender(given_name, origin) if given_name else "", origin)
    person.given, person.family = [given_name] * bool(given_name), [family_name] * bool(family_name)
    _assign_person_names(cast, person)
    return person


# Choosing names


def _register_people(cast: Cast, people: Sequence[Person]) -> None:
    """Fill ``cast.people``."""
    bearers: dict[str, list[Person]] = {}
    for person in people:
        for word in {*person.given, *person.family, *person.list_words()} if not person.plural else ():
            bearers.setdefault(word, []).append(person)
    cast.people.update({word: people[0] for word, people in bearers.items() if len(people) == 1})
    for person in people:
        if person.given and person.family:
            cast.people.setdefault(" ".join((*person.given, *person.family)), person)
            cast.people.setdefault(f"{person.given[0]} {person.family[-1]}", person)


@lru_cache(maxsize=_REMEMBERED)
def _list_deletion_forms(name: str) -> frozenset[str]:
    """Return a name, and it without any one of its letters: near names share one of them. A long one stands alone."""
    word = normalize_surface(name)
    if not 3 < len(word) <= _LONG:
        return frozenset((word,))
    return frozenset((word, *(word[:i] + word[i + 1 :] for i in range(len(word)))))


def _reserve_name(cast: Cast, name: str, key: str) -> None:
    for form in _list_deletion_forms(name):
        cast.near_names.setdefault(form, key)


def _assign_person_names(cast: Cast, person: Person) -> None:
    written = person.written
    for word in person.family:
        old = written.get(word, word)
        keeps_origin = person.particles or person.family_first or not person.given
        origin = person.origin if keeps_origin else guess_family_name_origin(cast, old, person.origin)
        new = _choose_masculine_family_name(cast, old, origin, person.particles, person.salt)
        _record_new_word(person, word, new)
    if not person.given:
        return
    key = " ".join((*person.given[:1], *(make_family_name_key(w) for w in person.family)))
    if cast.name_owners.setdefault(key, person.key) != person.key or NAMESAKE in person.key:
        key = f"{key}\0{person.key}"
    for i, word in enumerate(person.given):
        new = _choose_given_name(cast, person, written.get(word, word), f"{key} +{word}" if i else key)
        _record_new_word(person, word, new)
        if not i and new is not None and person.family:
            cast.ledger.share(GIVEN, word, new)  # where "Margaret" stands alone, the scope's first Margaret is meant
    for word, full in person.short.items():
        if full in person.new:
            new = person.new[full]
            person.new[word] = _choose_short_given_name(cast, person, new, f"{key} {word}") or new


def _choose_short_given_name(cast: Cast, person: Person, new: str, key: str) -> str | None:
    """Return a form of the new given name that is to it as ``Bob`` to ``Robert``; None: none of its gender is known."""
    gender, usable = person.gender, _list_given_names_of_gender(cast.kb, person.gender)
    variants = (name.capitalize() for name in sorted(find_given_name_variants(normalize_surface(new))))
    forms = [f for f in variants if f in usable]
    forms = [f for f in forms if gender not in ("f", "m") or cast.kb.gender(f) in (gender, "n")]
    return cast.ledger.choose(GIVEN, f"{key} short", forms, start=cast.ledger.draw_number(GIVEN, key))


@lru_cache(maxsize=8)
def _list_given_names_of_gender(kb: KnowledgeBase, gender: str) -> frozenset[str]:
    return frozenset(kb.names("first", "", gender))


def _record_new_word(person: Person, word: str, new: str | None) -> None:
    if new is None:
        return
    person.new[word] = new
    parts, news = split_hyphens(word), new.split("-")
    if len(parts) > 1 and len(parts) == len(news):
        person.new.update(zip(parts, news, strict=True))
    elif len(parts) > 1:
        person.new.setdefault(parts[0], news[0])


def _choose_masculine_family_name(
    cast: Cast, word: str, origin: str, particles: str = "", salt: str = ""
) -> str | None:
    """Return the pseudonym of a family name, in its form for men. The salt is that of the first bearer of a scope."""
    parts = re.split("[‐‑-]", word)
    if len(parts) > 1:
        names = [p for p in parts if normalize_surface(p) not in ARTICLES]
        new_names = {name: _choose_masculine_family_name(cast, name, origin, "", salt) for name in names}
        news = [new_names.get(p, p) for p in parts]
        return None if news == parts or None in news else "-".join(filter(None, news))
    if not any(c.isalpha() for c in word):
        return None
    key = make_family_name_key(word)
    pools = _list_name_pools(cast.kb, ("last", origin, "m", particles), _describe_name_form(word))
    propose = _make_proposer(cast, pools, (FAMILY, key, salt), word)
    return _assign_name(cast, FAMILY, key, propose, telling=_join_gender_forms, prefers_last=bool(salt))


def _choose_given_name(cast: Cast, person: Person, word: str, key: str) -> str | None:
    """Return the pseudonym of a given name. With a vault no other person of the scope has the whole new name."""
    pools = _list_name_pools(cast.kb, ("first", person.origin, person.gender, ""), _describe_name_form(word))
    if normalize_surface(word) in person.short.values():
        short_forms = {n: find_given_name_variants(normalize_surface(n)) for n in pools[1]}
        fitting = tuple(n for n, forms in short_forms.items() if any(f.capitalize() != n for f in forms))
        pools = (fitting or pools[0], *pools[1:])
    families = tuple(person.new[w] for w in person.family if w in person.new)
    propose = _make_proposer(cast, pools, (GIVEN, key, person.salt), word, families)
    is_double = "-" in word and person.origin not in FAMILY_FIRST
    former = cast.ledger.recall(GIVEN, normalize_surface(word)) if person.was_short and families else None

    def propose_full_name(attempt: int) -> str:
        if former and not attempt:  # the one that the person has where nobody told the family name
            return " ".join((former, *families))
        use_two = is_double and attempt >= 3
        name = _propose_double_name(cast, pools[1], key + person.salt, attempt) if use_two else propose(attempt)
        if person.salt and families and attempt < _DIFFERENT and name and cast.ledger.has_value(GIVEN, name):
            return ""  # two people who meet in a later document could not both keep it there
        return " ".join((name, *families)) if name else name

    new = _assign_name(cast, GIVEN, key, propose_full_name, telling=_get_first_word, prefers_last=bool(person.salt))
    return None if new is None else _get_first_word(new)


@lru_cache(maxsize=_REMEMBERED)
def _join_gender_forms(name: str) -> str:
    """Return a family name and what women of any language would bear for it: none may belong to another person."""
    forms = (naming.feminise_family_name(name, origin) for origin in sorted(load_name_tables().women))
    return " ".join(dict.fromkeys((name, *forms)))


def _get_first_word(name: str) -> str:
    return name.partition(" ")[0]


def _assign_name(
    cast: Cast, kind: str, key: str, propose: Propose, *, telling: Telling, prefers_last: bool
) -> str | None:
    new = cast.ledger.assign(kind, key, propose, telling=telling, prefers_last=prefers_last)
    for name in telling(new).split() if new is not None else ():
        _reserve_name(cast, name, f"{kind}\0{key}")
    return new


def _make_proposer(
    cast: Cast, pools: tuple[Names, ...], target: tuple[str, str, str], word: str, families: Names = ()
) -> Callable[[int], str]:
    """Return what makes the choices for one name; a choice is empty where it cannot be used.

    Args:
        cast: of the document.
        pools: see :func:`_list_name_pools`.
        target: kind and key of the ledger, and the salt of a registered person.
        word: the old name.
        families: the new family names beside a given name.
    """
    kind, key, salt = target
    pick, famous, near_names, owner = cast.ledger.pick, cast.kb.famous, cast.near_names, f"{kind}\0{key}"
    drawn = f"{key}\0{salt}" if salt else key
    old, old_key = normalize_surface(word), make_family_name_key(word)

    def propose(attempt: int) -> str:
        stage = sum(attempt >= limit for limit in (_SIMILAR, _SAME_ORIGIN, _ENGLISH, _ANY))
        name = pick(pools[min(stage, 3)] or pools[3], kind, drawn, attempt)
        if stage == 4:
            name += "-" + pick(pools[2], f"{kind} 2", drawn, attempt)
        # Nobody tells names apart that one slip of the pen makes the same, so they are taken only in need.
        if attempt < _ENGLISH and any(near_names.get(f, owner) != owner for f in _list_deletion_forms(name)):
            return ""
        plain = normalize_surface(name)
        if plain in read_common_words() or plain in read_dictionary():
            return ""  # where somebody rewrites the text, nothing would tell it from the word
        if kind == FAMILY and cast.kb.find(name, _FIRMS):
            return ""  # a company that is called after its founder would be a real one
        if make_family_name_key(name) == old_key or is_within_one_edit(plain, old) or (len(old) > 3 and old in plain):
            return ""
        return "" if any(famous(name, f) or plain == normalize_surface(f) for f in families) else name

    return propose


def _propose_double_name(cast: Cast, pool: Names, key: str, attempt: int) -> str:
    """Return two names joined by a hyphen, where the knowledge base's own double names cannot be used."""
    single = [n for n in pool if "-" not in n]
    first, second = (cast.ledger.pick(single, f"{GIVEN} {i}", key, attempt) for i in (1, 2))
    return f"{first}-{second}" if first != second else ""


def _describe_name_form(word: str) -> _NameForm:
    match = _PREFIX.match(word)
    return "-" in word, word.isascii(), len(word), (match[1] or match[2])[:1] if match is not None else ""


@lru_cache(maxsize=1024)
def _list_name_pools(kb: KnowledgeBase, sort: _NameSort, look: _NameForm) -> tuple[Names, ...]:
    """Return the names that may replace one: the most similar, all of its origin, English ones, all."""
    part, origin, gender, particles = sort
    hyphen, is_ascii, length, prefix = look
    everything = _list_names_of_origin(kb, part, origin, gender, particles)
    home = ("english", "american") if part == "first" else ("english", "american", "irish", "scottish")
    english = tuple(sorted({n for o in home for n in _list_names_of_origin(kb, part, o, gender, "") if n.isascii()}))
    if len(everything) < _ENOUGH:
        everything = english
    similar, looks = everything, {name: _describe_name_form(name) for name in everything}
    tests: tuple[Callable[[_NameForm], bool], ...] = (
        lambda look: look[0] == hyphen,
        lambda look: look[1] or not is_ascii,
        lambda look: look[3] == prefix,
        lambda look: abs(look[2] - length) <= 3,
    )
    for fits in tests:
        fewer = tuple(n for n in similar if fits(looks[n]))
        similar = fewer if len(fewer) >= _ENOUGH else similar
    return similar, everything, english, _list_names_of_origin(kb, part, "", gender, "")


@lru_cache(maxsize=512)
def _list_names_of_origin(kb: KnowledgeBase, part: str, origin: str, gender: str, particles: str) -> Names:
    if part == "first":
        # Without a gender: names of these languages seldom tell a reader of another one the gender.
        names = kb.names("first", origin, gender or ("" if origin in FAMILY_FIRST else "n"))
        if gender in ("", "n") and len(names) < _ENOUGH:
            names = kb.names("first", "american", "n")
    elif origin in load_name_tables().women:
        names = tuple(n for n in kb.names("last", origin, "m") if not n.endswith(_OF_WOMEN))
    else:
        names = kb.names("last", origin, "n")
        names = names if len(names) >= _ENOUGH else kb.names("last", origin)
    if part == "last" and particles:
        if particles.split()[-1] in ("d", "l"):  # d'Arrest
            names = tuple(n for n in names if normalize_surface(n)[0] in "aeiouh") or names
        # After "van der" comes what comes after "van der", or after any small words, in other names.
        parts = [n.rpartition(" ") for n in names if " " in n]
        for same in (True, False):
            kin = (tail for head, _, tail in parts if not same or normalize_surface(head) == particles)
            tails = {tail for tail in kin if _WRITTEN.fullmatch(tail)}
            if len(tails) >= _ENOUGH:
                return tuple(sorted(tails))
    return tuple(dict.fromkeys(n for n in names if _WRITTEN.fullmatch(n)))


# Rendering


def _render_surface(cast: Cast, person: Person, surface: str) -> str | None:
    """Return the new person's form of a surface; None where a part has no pseudonym."""
    spelled = naming.read_spelled_word(surface)
    if spelled and (word := _find_new_name_by_letters(person, spelled)) is not None:
        return naming.spell_like(word, surface)
    pieces = parse_person(cast.kb, surface)
    names = [p for p in pieces if p.kind in ("name", "initial")]
    if not names or (len(names) == 1 and _is_lone_letter_or_number(person, pieces, names[0])):
        return None
    out, index = "", 0
    for piece in pieces:
        new: str | None
        if piece.kind == "name":
            new = _render_name_word(cast, person, piece.text)
        elif piece.kind == "initial":
            new = _render_initial(cast, person, piece.text, names, index)
        else:
            new = _change_few_digits(cast, piece.text)
        if new is None:
            return None
        out += new
        index += piece.kind in ("name", "initial")
    return out


def _change_few_digits(cast: Cast, text: str) -> str | None:
    """Return the text between names, with other digits for its digits; None where they are as many as a code's."""
    if sum(map(len, _DIGITS.findall(text))) > _FEW_DIGITS:
        return None
    return _DIGITS.sub(lambda run: draw_digits(cast.ledger, "number at a name", run[0], run[0]), text)


def _is_lone_letter_or_number(person: Person, pieces: Sequence[Piece], name: Piece) -> bool:
    """Whether a surface is only a number, or a letter of no known word: another one would be no better."""
    if name.kind == "name":
        return len(name.text) > 1 and ROMAN.fullmatch(name.text) is not None and person.origin != "vietnamese"
    titled = any(p.kind == "title" for p in pieces)
    initials = {word[:1] for word in person.list_words() if word in person.new}
    return not titled and normalize_surface(name.text)[:1] not in initials


def _find_new_name_by_letters(person: Person, letters: str) -> str | None:
    words = (*person.given, *person.family)
    for group in (*((w,) for w in words), *permutations(words, 2)):
        if "".join(group) == letters and all(w in person.new for w in group):
            return "".join(person.new[w] for w in group)
    return None


def _render_name_word(cast: Cast, person: Person, text: str) -> str | None:
    if (inflected := person.inflected.get(text)) is not None:
        new = _render_name_word(cast, person, inflected[0])
        kind = person.gender if person.gender in ("f", "m") else inflected[1].kind
        return None if new is None else inflect_word(new, inflected[1]._replace(kind=kind))
    word = normalize_surface(text)
    known_word = person.find_word(word)
    elided = ELIDED.match(text) if known_word != word else None
    if elided is not None and normalize_surface(text[elided.end() :]) == known_word:
        new = _render_name_word(cast, person, text[elided.end() :])
        return None if new is None else elided[0] + new
    others = [name for name in person.list_words() if name != word]
    stands_for_others = len(others) > 1 and word in ("".join(w[0] for w in others), others[0][0] + others[-1][0])
    if (known_word is None or stands_for_others) and _INITIALS.fullmatch(text):
        return _render_initials(cast, person, word)
    if known_word is None and "-" in text:
        parts = [_render_name_word(cast, person, p) if p else "" for p in text.split("-")]
        return None if None in parts else "-".join(p for p in parts if p is not None)
    new = person.new.get(known_word) if known_word is not None else None
    if new is None or known_word is None:
        if word in load_name_tables().particles:
            return text
        # A word that no surface had when the person was read, such as one with digits stuck to it.
        bare = "".join(c for c in text if c.isalpha())
        if bare and bare != text and person.find_word(normalize_surface(bare)) is not None:
            return _render_name_word(cast, person, bare)
        new = _choose_masculine_family_name(cast, bare or text, person.origin)
        return None if new is None else match_case(new, text)
    plural = known_word != word and known_word in [person.spellings.get(base, base) for base in list_singulars(word)]
    if person.is_family_word(known_word) and not plural and not naming.is_masculine_family_name(text):
        new = inflect_family_name(cast, person, new)
    if "-" in text and "-" in new and normalize_surface(text.split("-")[0]) in ARTICLES:
        new = f"{text.split('-')[0]}-{new.partition('-')[2]}"  # "al-Farsi" and "Al-Farsi"
    new = match_case(new, text)
    if plural:
        ending = naming.pluralise_name(new)[len(new) :]
        new += ending.upper() if text.isupper() else ending
    return new


def _render_longer_initials(cast: Cast, person: Person, target: Wanted, surface: str) -> str | None:
    """Return initials with the second letter of the given name, as in ``BeF``, where another person has ``BF``."""
    first, last = (person.new.get(words[0], "") if words else "" for words in (person.given, person.family[-1:]))
    if first and last and _INITIALS.fullmatch(surface):
        return to_ascii_letters(first)[:2] + to_ascii_letters(last)[:1]
    return ordinary.cover_surface(cast, target, surface)


def _render_initials(cast: Cast, person: Person, word: str) -> str:
    words = [name for name in person.list_words() if name != word]
    for group in (words, words[:1] + words[-1:]):
        if word == "".join(w[0] for w in group) and all(w in person.new for w in group):
            return "".join(to_ascii_letters(person.new[w])[:1] for w in group).upper()
    by_letter = {
        w[0]: w for w in (*person.given, *person.family) if w in person.new and w != word
    }  # Z. Rahman is ZR, too
    is_family_last = bool(person.family) and by_letter.get(word[-1]) == person.family[-1]
    names = [by_letter.get(letter, "") if is_family_last else "" for letter in word]
    return "".join(
        to_ascii_letters(person.new[w])[:1].upper() if w else choose_initial(cast, person, letter)
        for w, letter in zip(names, word, strict=True)
    )


def inflect_family_name(cast: Cast, person: Person, name: str) -> str:
    """Return the new family name in the form in which the person bears it: that for women, where there is one."""
    if person.gender != "f" or person.plural:
        return name
    parts = []
    for part in name.split("-"):
        facts = [f for f in cast.kb.name_facts(part) if f.part == "last"]
        same = [f.origin for f in facts if f.origin == person.origin]
        origins = same or [f.origin for f in facts if f.gender == "m"] or [f.origin for f in facts[:1]]
        unknown = "polish" if naming.is_masculine_family_name(part) else ""
        parts.append(naming.feminise_family_name(part, next(iter(origins), unknown)))
    return "-".join(parts)


def _render_initial(cast: Cast, person: Person, text: str, names: Sequence[Piece], index: int) -> str:
    letter = normalize_surface(text)[:1]
    words = list(person.list_words())
    word: str | None
    if len(names) == len(words) and words[index][:1] == letter:
        word = words[index]
    elif index == len(names) - 1 and person.family and person.family[-1][:1] == letter:
        word = person.family[-1]
    else:
        given_names = [u for w in person.given for u in split_hyphens(w)]
        ordered = given_names[index : index + 1] + [w for i, w in enumerate(given_names) if i != index]
        known_words = (person.find_word(normalize_surface(p.text)) for p in names if p.kind == "name")
        families = () if any(w is not None and person.is_family_word(w) for w in known_words) else person.family
        word = next((w for w in (*ordered, *families) if w[:1] == letter), None)
    new = to_ascii_letters(person.new[word])[:1] if word is not None and word in person.new else ""
    new = new or choose_initial(cast, person, letter)
    return (new.lower() if text[:1].islower() else new.upper()) + text[1:]


def choose_initial(cast: Cast, person: Person, letter: str) -> str:
    """Return a keyed capital for an initial of no known word, the same for the same person and letter.

    Other initials of the document have other capitals, as long as there are some.
    """
    if letter not in person.letters:
        used = cast.new_initials
        pool = [c for c in _LETTERS if c.lower() != letter]
        pool = [c for c in pool if used.get(c, letter) == letter] or pool
        person.letters[letter] = cast.ledger.pick(pool, "initial", f"{person.key} {letter}")
        used.setdefault(person.letters[letter], letter)
    return person.letters[letter]
