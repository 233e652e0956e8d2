"""The people of a document: given and family names, gender and language of origin, by all surfaces of each."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from allonym.document import Span
from allonym.kb import KnowledgeBase
from allonym.link.inflected import BaseForm, list_written_words
from allonym.link.name_columns import find_row_names
from allonym.protocol import Wanted
from allonym.replace import naming
from allonym.replace.cast import Cast
from allonym.replace.naming import ARTICLES, ROMAN, Piece, load_name_tables, romanise_name, split_hyphens
from allonym.text.fold import spell_out_umlauts
from allonym.text.inflection import Ending
from allonym.text.names import (
    find_given_name_variants,
    is_within_one_edit,
    list_singulars,
    make_sound_key,
    normalize_surface,
)

GIVEN, FAMILY = "given name", "family name"
FAMILY_FIRST = frozenset({"chinese", "korean", "vietnamese", "hungarian", "japanese"})
"""Origins whose family names stand first."""
TWO_FAMILY_NAMES = frozenset({"spanish", "portuguese", "latin", "filipino"})
_HE = re.compile(r"\b(?:he|him|his|himself)\b", re.I)
_SHE = re.compile(r"\b(?:she|her|hers|herself)\b", re.I)
_NEARBY = 160  # characters behind a mention in which pronouns count
_BORROWED = 9  # the greatest weight of a name that is only borrowed
_DOUBT = 0.1
"""Share of a name's bearers of another gender, up to which nothing else is asked."""
_JOINED = re.compile(r"[A-Z][a-z]+[‐‑-][a-z]+")


@dataclass(slots=True, eq=False)
class Person:
    """One person of the document and their pseudonym. Mutable while a document is prepared.

    Attributes:
        key: of the entity. Like all names here, hidden from ``repr``.
        gender: ``f``, ``m``, ``n`` (a name of either gender is required) or empty (unknown).
        origin: language of origin, as the knowledge base calls it.
        given, family: the original's words in plain form, in order.
        written: those words as they are written.
        particles: small words before the family name, such as ``van der``.
        new: word in plain form to its pseudonym, as names are written.
        letters: initials of no known word to their pseudonyms.
        middle: initials of given names of which nothing else is known.
        short: short or full forms of the given names that occur in the document, to these given names.
        plural: it is a whole family.
        family_first: the family name stands first, as its language has it.
        spellings: second spelling of a word, such as ``mueller``, to the word, ``muller``; of a person whom a register
            knows also a word of another name to the word of the fullest name that it stands for.
        salt: of a person whom a register knows.
        was_short: a register knows the person by the given name alone, too.
        inflected: words of the name in an ending of the language, as written, to the word without it and the ending.
    """

    key: str = field(repr=False)
    gender: str = ""
    origin: str = "english"
    given: list[str] = field(default_factory=list, repr=False)
    family: list[str] = field(default_factory=list, repr=False)
    written: dict[str, str] = field(default_factory=dict, repr=False)
    particles: str = ""
    new: dict[str, str] = field(default_factory=dict, repr=False)
    letters: dict[str, str] = field(default_factory=dict, repr=False)
    middle: set[str] = field(default_factory=set, repr=False)
    short: dict[str, str] = field(default_factory=dict, repr=False)
    plural: bool = False
    family_first: bool = False
    spellings: dict[str, str] = field(default_factory=dict, repr=False)
    salt: str = field(default="", repr=False)
    was_short: bool = False
    inflected: dict[str, tuple[str, Ending]] = field(default_factory=dict, repr=False)

    def list_words(self) -> Iterator[str]:
        """Yield the original's words that initials stand for, in order; hyphenated ones are divided."""
        for word in (*self.given, *self.family):
            yield from split_hyphens(word)

    def find_word(self, word: str) -> str | None:
        """Return the person's word that ``word`` is, or is a plural, part or misspelling of; None: it is none."""
        names = (*self.given, *self.family, *self.short)
        word = self.spellings.get(word, word)
        if word in names:
            return word
        if word[:2] in ("d'", "l'") and word[2:] in names:
            return word[2:]
        bases = (self.spellings.get(base, base) for base in list_singulars(word))
        forms = [name for name in names if "-" in name and word in split_hyphens(name)]
        forms += [base for base in bases if base in names]
        if not forms and len(word) >= 4 and word.isalpha():
            near = [n for n in names if len(n) >= 4 and is_within_one_edit(word, n)]
            similar = [n for n in near if make_sound_key(word) == make_sound_key(n)]
            forms = similar if len(similar) == 1 else []
        return next(iter(forms), None)

    def is_family_word(self, word: str) -> bool:
        """Whether a known word is a family name or a part of one."""
        return word in self.family or any(word in split_hyphens(w) for w in self.family)


class PersonReader:
    """Reads the surfaces of one entity. Mutable; it never leaves the call that prepares a document.

    Args:
        cast: of the document.
        target: the entity.
        base_forms: mentions of the document's people in an ending of their language, without it.

    Attributes:
        person: what is known of the person; complete once :meth:`assign_lone_words_and_origin` has been called.
        singles: words that stood alone, to given or family name; empty: unknown.
        initials: the initials of each surface.
    """

    def __init__(self, cast: Cast, target: Wanted, base_forms: Mapping[tuple[int, int], BaseForm]) -> None:
        self.cast = cast
        self.entity = target.entity
        self.neutral = target.options.get("names") == "neutral"
        self.singles: dict[str, str] = {}
        self.initials: set[str] = set()
        self.person = Person(target.entity.key, salt=target.entity.salt)
        self._sure_gender = ""  # by a title before a given name, or a relative
        self._title_gender = ""  # by any title, or a relative that may be somebody else
        self._kin_spans: set[Span] = set()  # behind "my sister"
        self._after_the: set[str] = set()  # words behind "the", which may be plurals
        own_forms = {place: base_forms[place] for s in target.entity.spans if (place := (s.start, s.end)) in base_forms}
        self.person.inflected = list_written_words(own_forms)
        bases = [
            own_forms[s.start, s.end].surface if (s.start, s.end) in own_forms else surface
            for s, surface in zip(target.entity.spans, target.surfaces, strict=True)
        ]
        parsed = [parse_person(cast.kb, surface) for surface in bases]
        titles = [naming.find_title_and_gender_before(cast.text, span.start) for span in target.entity.spans]
        surfaces = list(zip(parsed, bases, target.entity.spans, titles, strict=True))
        row_names = find_row_names(cast.setting.document)
        for _, _, span, before in surfaces[:]:
            if (name := row_names.get((span.start, span.end))) is not None:
                surfaces.append((parse_person(cast.kb, name), name, span, before))
        if names := target.entity.names:
            surfaces.append((parse_person(cast.kb, names[0]), names[0], target.entity.spans[0], ("", "")))
        for pieces, *_ in surfaces:
            for piece in pieces:
                if piece.kind == "name":
                    word = normalize_surface(piece.text)
                    self.person.written.setdefault(word, piece.text)
                    if (second := normalize_surface(spell_out_umlauts(piece.text))) != word:
                        self.person.spellings[second] = word
        fullest = max((_list_name_words(pieces) for pieces, *_ in surfaces), key=len, default=[])
        by_title = (naming.find_origin_by_titles(pieces, before[0]) for pieces, _, _, before in surfaces)
        self.home = next(filter(None, by_title), "") or naming.get_default_origin(cast.setting.policy.language)
        self.origin = guess_origin(cast, fullest, self.home)
        for name in names[1:]:
            self._read_other_name(surfaces[-1][0], parse_person(cast.kb, name))
        for span in self.entity.spans:
            gender, is_certain = naming.find_kin_gender(cast.text, span.start, span.end)
            if is_certain:
                self._sure_gender = self._sure_gender or gender
                self._kin_spans.add(span)
            self._title_gender = self._title_gender or gender
        for pieces, surface, span, before in sorted(surfaces, key=lambda s: -len(_list_name_words(s[0]))):
            self._read_surface(pieces, surface, span, before)
        if self.entity.key.endswith((" (f)", " (m)")):
            self._title_gender = self._title_gender or self.entity.key[-2]

    def _read_other_name(self, fullest: tuple[Piece, ...], other: tuple[Piece, ...]) -> None:
        """Note which words of the fullest name of a registered person those of another name stand for."""
        kb = self.cast.kb
        words: dict[str, list[str]] = {GIVEN: [], FAMILY: []}
        for word, role in _list_words_with_roles(kb, fullest, self.origin):
            words[role or GIVEN].append(word)
        first, last = (words[GIVEN] or words[FAMILY])[:1], (words[FAMILY] or words[GIVEN])[-1:]
        has_title = any(piece.kind == "title" for piece in other)
        listed = _list_words_with_roles(kb, other, self.origin)
        self.person.was_short = self.person.was_short or [word for word, _ in listed] == words[GIVEN][:1]
        for word, role in listed:
            if word in (*words[GIVEN], *words[FAMILY]):
                continue
            if any(word in find_given_name_variants(name) for name in words[GIVEN]):
                continue
            near = [w for w in (*words[GIVEN], *words[FAMILY]) if is_within_one_edit(word, w)]
            usual = last if role == FAMILY or (has_title and not role) else first
            for target in (near or usual)[:1]:
                self.person.spellings.setdefault(word, target)

    def _fold_word(self, text: str) -> str:
        """Return a word of the name in plain form; the first spelling of two."""
        return self.person.spellings.get(normalize_surface(text), normalize_surface(text))

    def _read_surface(self, pieces: tuple[Piece, ...], surface: str, span: Span, before: tuple[str, str]) -> None:
        if (letters := naming.read_spelled_word(surface)) and surface.count(".") < 2:
            self.singles.setdefault(letters, "")
            return
        person = self.person
        title, gender = naming.find_title_and_gender(pieces)
        gender = gender or before[1]
        self._title_gender = self._title_gender or gender
        names = [p for p in pieces if p.kind in ("name", "initial")]
        self.initials.add("".join(normalize_surface(p.text)[:1] for p in names))
        if not any(p.kind == "name" for p in names):
            return
        particles = (normalize_surface(p.text) for p in pieces if p.kind == "particle")
        person.particles = person.particles or " ".join(particles)
        roles = _find_name_roles(self.cast.kb, pieces, self.origin)
        if len(names) == 1:
            word = self._fold_word(names[0].text)
            title = title or (before[0] if before[0] != "the" else "")
            kind = FAMILY if title or roles == [FAMILY] else GIVEN if span in self._kin_spans else ""
            if title in load_name_tables().before_given and roles != [FAMILY]:
                kind, self._sure_gender = GIVEN, self._sure_gender or gender
            after_the = before[0] == "the" or any(p.kind == "title" and p.text.lower() == "the" for p in pieces)
            kind = {"PERSON_FIRSTNAME": GIVEN, "PERSON_LASTNAME": FAMILY}.get(span.label, kind)
            self.singles[word] = kind or self.singles.get(word, "")
            if after_the and not kind:
                self._after_the.add(word)
            return
        self._sure_gender = self._sure_gender or gender
        if roles[0] == FAMILY and FAMILY not in roles[1:] and self.origin in FAMILY_FIRST:
            person.family_first = True
        for piece, role in zip(names, roles, strict=True):
            word = self._fold_word(piece.text)
            is_new = normalize_surface(piece.text)[:1] not in {g[0] for g in person.given}
            if piece.kind == "initial" and role == GIVEN and is_new:
                person.middle.add(word[:1])
            if piece.kind != "name" or person.find_word(word) is not None:
                continue
            full = self._find_full_given_name(word) if role == GIVEN else ""
            if full:
                person.short[word] = full
            else:
                (person.family if role == FAMILY else person.given).append(word)

    def _find_full_given_name(self, word: str) -> str:
        return next((g for g in self.person.given if word in find_given_name_variants(g)), "")

    def assign_lone_words_and_origin(self, families: set[str], givens: set[str]) -> Person:
        """Return the person, once the other people's names are known.

        Words that stood alone become given or family names.

        Args:
            families, givens: family and given names of the document's people, in plain form.
        """
        person, kb, key = self.person, self.cast.kb, self.entity.key
        person.plural = key.endswith(" family")
        for word, kind in sorted(self.singles.items(), key=lambda w: (not w[1], len(w[0]), w[0])):
            if person.plural and key != f"PERSON:{word}":
                base = key.removeprefix("PERSON:").removesuffix(" family")
                if base not in person.family:
                    person.family.append(base)
            elif (full := self._find_full_given_name(word)) and word not in person.given:
                person.short[word] = full
            elif person.find_word(word) is not None:
                continue
            elif base := self._find_plural_base(word, families):
                person.family.append(base)
                person.plural = not person.given and len(person.family) == 1
            elif not self._is_initials(word):
                usual = FAMILY if word in families else GIVEN if word in givens else ""
                kind = kind or usual or self._guess_name_kind(word)
                (person.family if kind == FAMILY else person.given).append(word)
        words = [person.written.get(w, w) for w in (*person.given[:1], *person.family[-1:])]
        hint = self._guess_particle_origin()
        fits = hint and person.family and self.origin not in FAMILY_FIRST
        first_fits = not person.given or get_name_weight(kb, person.given[0], "first", hint)
        if fits and (first_fits or not kb.name_facts(words[0])):
            person.origin = hint
        elif person.family_first:
            person.origin = self.origin
        elif person.given or not person.family:
            person.origin = guess_origin(self.cast, words, self.home)
        else:
            person.origin = guess_family_name_origin(self.cast, words[-1], "", self.home)
        return person

    def _guess_particle_origin(self) -> str:
        """Return the origin that a particle or an Arabic article tells; else empty."""
        person = self.person
        hint = load_name_tables().particle_origins.get(person.particles, "")
        if person.particles and person.family and not hint:
            facts = self.cast.kb.name_facts(f"{person.particles} {person.family[-1]}")
            hint = next((fact.origin for fact in facts if fact.part == "last"), "")
        return hint or ("arabic" if any(w.startswith(("al-", "el-")) for w in person.family) else "")

    def _find_plural_base(self, word: str, families: set[str]) -> str:
        """Return the family name that a word is the plural of; empty where it is none."""
        singulars = list_singulars(word)
        for base in singulars:
            if base in families or (word in self._after_the and get_name_weight(self.cast.kb, base, "last")):
                return base
        return singulars[0] if word in self._after_the and singulars else ""

    def _is_initials(self, word: str) -> bool:
        """Whether a word is nothing but somebody's initials."""
        written = self.person.written.get(word, "")
        return 2 <= len(word) <= 4 and written.isupper() and word.isalpha() and not self.cast.kb.name_facts(word)

    def _guess_name_kind(self, word: str) -> str:
        if self.person.given and not self.person.family:
            return FAMILY
        for origin in (self.home, ""):
            first, last = (get_name_weight(self.cast.kb, word, part, origin) for part in ("first", "last"))
            if first or last:
                return FAMILY if last > first else GIVEN
        return FAMILY if len(word) > 5 and word.endswith(load_name_tables().family_endings) else GIVEN

    def guess_gender(self, others: Sequence[tuple[int, int]]) -> str:
        """Return ``f``, ``m``, ``n`` where names of either gender are required, empty where nothing tells.

        A title before a given name counts most, then the given name, then another title (``Frau Schmidt`` may be a
        relative of Ludwig Schmidt), then pronouns nearby, which also decide where a name is not of one gender only.

        Args:
            others: places of all people's mentions, sorted.
        """
        if self.neutral or self._sure_gender:
            return "n" if self.neutral else self._sure_gender
        kb, person = self.cast.kb, self.person
        given_name = romanise_name(person.given[0]) if person.given else ""
        by_name = kb.gender(given_name, person.origin) if given_name else ""
        if by_name not in ("f", "m"):
            by_name = ""
        facts = [f for f in kb.name_facts(given_name) if f.part == "first"] if by_name else []
        others_weight = sum(f.weight for f in facts if f.gender not in ("", by_name))
        if by_name and others_weight <= _DOUBT * sum(f.weight for f in facts):
            return by_name
        gender = self._title_gender or self._guess_gender_by_pronouns(others) or by_name
        if not gender and any(_is_feminine_form(kb, person.written.get(w, w)) for w in person.family):
            return "f"
        return gender

    def _guess_gender_by_pronouns(self, others: Sequence[tuple[int, int]]) -> str:
        if self.cast.setting.policy.language != "en":
            return ""
        text = self.cast.text
        for span in self.entity.spans[:3]:
            following = next((start for start, _ in others if start >= span.end), len(text))
            nearby = text[span.end : min(following, span.end + _NEARBY)]
            he, she = _HE.search(nearby) is not None, _SHE.search(nearby) is not None
            if he != she:
                return "m" if he else "f"
        return ""


def parse_person(kb: KnowledgeBase, surface: str) -> tuple[Piece, ...]:
    """Parse a name as :func:`parse` does, but the ``Van`` of ``Van Morris`` is a name, unlike that of ``Van Gogh``."""
    pieces = naming.parse_name(surface)
    if len(pieces) == 3 and pieces[0] == ("particle", "Van") and pieces[2].kind == "name":
        family = pieces[2].text
        origins = ("english", "american", "irish", "scottish", "welsh")
        english = max(get_name_weight(kb, family, "last", origin) for origin in origins)
        if english > get_name_weight(kb, family, "last", "dutch") and not kb.name_facts(f"Van {family}"):
            return (Piece("name", "Van"), *pieces[1:])
    return pieces


def _list_words_with_roles(kb: KnowledgeBase, pieces: Sequence[Piece], origin: str) -> list[tuple[str, str]]:
    """Return each name of a surface in plain form, with its role."""
    names = [piece for piece in pieces if piece.kind in ("name", "initial")]
    roles = _find_name_roles(kb, pieces, origin) if names else []
    return [(normalize_surface(p.text), role) for p, role in zip(names, roles, strict=True) if p.kind == "name"]


def _list_name_words(pieces: Sequence[Piece]) -> list[str]:
    return [p.text for p in pieces if p.kind == "name"]


def guess_origin(cast: Cast, words: Sequence[str], home: str) -> str:
    """Return the origin of a name by its words, in the order in which they stand; ``home`` where they do not tell."""
    if not words:
        return home
    by_script = next((o for w in words if (o := naming.find_origin_and_script(w)[0])), "")
    kb = cast.kb
    parts = (w if kb.name_facts(w) or _JOINED.fullmatch(w) else re.split("[‐‑-]", w)[-1] or w for w in words)
    words = [romanise_name(part) for part in parts]
    if by_script:
        origin = kb.origin(words, by_script)
        return origin if naming.find_origin_and_script(origin)[1] else by_script
    if len(words) == 1:
        exact = _find_exact_origins(kb, words[0], "first")
        if exact and home not in exact:
            return exact[0]
        if exact or (words[0].isascii() and get_name_weight(kb, words[0], "first", home)):
            return home  # many a given name is at home in many languages
        return kb.origin(words, home)
    origin = kb.origin(words, home)
    # A family name that is in no list says little, unless its ending does.
    unknown = not kb.name_facts(words[-1]) and words[-1].isascii()
    common = get_name_weight(kb, words[0], "first", home) > _BORROWED
    if unknown and common and not normalize_surface(words[-1]).endswith(load_name_tables().family_endings):
        return home
    for given_name, family in ((words[-1], words[0]), (words[0], words[-1])):
        # "Wong Ka-fai": a given name as the Latin script writes those of China and Korea.
        if _JOINED.fullmatch(given_name) and not get_name_weight(kb, given_name, "first"):
            return max(("chinese", "korean"), key=lambda o: get_name_weight(kb, family, "last", o))
    reversed_origin = kb.origin([*words[1:], words[0]], home)
    if reversed_origin in FAMILY_FIRST and get_name_weight(kb, words[0], "last", reversed_origin):
        origin = reversed_origin
    if origin in FAMILY_FIRST:
        # "Kim Gordon", "David Lee": a word that is certainly of another language tells more.
        facts = {w: {f.origin for f in kb.name_facts(w)} for w in words}
        foreign = [w for w in words if facts[w] and origin not in facts[w]]
        return kb.origin(foreign, home) if foreign else origin
    return origin


def _find_exact_origins(kb: KnowledgeBase, word: str, part: str) -> list[str]:
    """Return the origins whose names are written just so, diacritics and all; none for words without diacritics."""
    if word.isascii():
        return []
    origins = dict.fromkeys(f.origin for f in kb.name_facts(word) if f.part == part)
    return [origin for origin in origins if word in kb.names(part, origin)]


def guess_family_name_origin(cast: Cast, word: str, full_origin: str, home: str = "") -> str:
    """Return the origin of a family name: that of the full name, where it is at home there too, else its own.

    Args:
        cast: of the document.
        word: as it is written; of a hyphenated name the last word tells.
        full_origin: origin of the full name; empty: there is no more than this word.
        home: the origin where nothing tells; that of the policy's language if empty.
    """
    kb = cast.kb
    if by_script := naming.find_origin_and_script(word)[0]:
        return full_origin or by_script
    parts = [p for p in re.split("[‐‑-]", word) if p]
    if len(parts) > 1 and normalize_surface(parts[0]) in ARTICLES:
        return load_name_tables().particle_origins.get(normalize_surface(parts[0]), full_origin or "arabic")
    word = parts[-1] if parts else word
    origin = kb.origin(["", word], home or naming.get_default_origin(cast.setting.policy.language))
    exact = _find_exact_origins(kb, word, "last")
    if exact and origin not in exact:
        origin = exact[0]
    weight = get_name_weight(kb, word, "last", origin)
    if not full_origin and home and 15 * get_name_weight(kb, word, "last", home) >= weight:
        return home
    if full_origin and 2 * get_name_weight(kb, word, "last", full_origin) >= weight:
        return full_origin
    return origin


def get_name_weight(kb: KnowledgeBase, word: str, part: str, origin: str = "") -> int:
    """Return how typical a word is as a given (``first``) or family (``last``) name: 0 to 100."""
    facts = kb.name_facts(romanise_name(word))
    return max((f.weight for f in facts if f.part == part and origin in ("", f.origin)), default=0)


def _count_origins(kb: KnowledgeBase, word: str, part: str) -> int:
    """Count the languages in which a word is such a name."""
    return len({f.origin for f in kb.name_facts(word) if f.part == part and f.weight > _BORROWED})


def _is_feminine_form(kb: KnowledgeBase, word: str) -> bool:
    """Whether only women bear a family name in this form."""
    genders = {f.gender for f in kb.name_facts(word) if f.part == "last"}
    is_slavic = word.casefold().endswith("ová") or normalize_surface(word).endswith(("owska", "ewska", "inska"))
    return is_slavic or genders == {"f"}


def _find_name_roles(kb: KnowledgeBase, pieces: Sequence[Piece], origin: str) -> list[str]:
    """Return given or family name for each name and initial of a surface; empty for a word that stands alone."""
    names = [(i, p) for i, p in enumerate(pieces) if p.kind in ("name", "initial")]
    comma = next((i for i, p in enumerate(pieces) if p.kind == "between" and "," in p.text), None)
    if comma is not None and names[0][0] < comma < names[-1][0]:
        return [FAMILY if i < comma else GIVEN for i, _ in names]
    full = [p.text for _, p in names if p.kind == "name"]
    capitals = [t for t in full if t.isupper()]
    if capitals and len(capitals) < len(full) and len(capitals) <= 2 and all(len(t) > 2 for t in capitals):
        return [FAMILY if p.text in capitals else GIVEN for _, p in names]
    particle = next((i for i, p in enumerate(pieces) if p.kind == "particle"), None)
    if particle is not None and particle < names[0][0]:
        return [FAMILY] * len(names)
    between = {normalize_surface(p.text).replace(".", "") for p in pieces if p.kind == "between"}
    if len(names) == 2 and between & {"v", "vs", "versus"}:
        return [FAMILY, FAMILY]
    if len(names) == 1:
        return [""]
    if origin in ("chinese", "korean") and len(names) == 2 and _JOINED.fullmatch(names[1][1].text):
        return [FAMILY, GIVEN]
    head, tail = names[0][1].text, names[-1][1].text
    if origin in FAMILY_FIRST and names[0][1].kind == "name":
        straight = get_name_weight(kb, head, "first", origin) + get_name_weight(kb, tail, "last", origin)
        if get_name_weight(kb, head, "last", origin) + get_name_weight(kb, tail, "first", origin) > straight:
            return [FAMILY] + [GIVEN] * (len(names) - 1)
    two_words = origin in TWO_FAMILY_NAMES and len(names) == len(full) == 2
    if two_words and get_name_weight(kb, head, "last", origin) and not get_name_weight(kb, head, "first", origin):
        return [FAMILY, FAMILY]
    roles = [GIVEN] * len(names)
    number = next((p.text for p in pieces if p.kind == "suffix"), "")
    numbered = len(full) == len(names) and ROMAN.fullmatch(number)
    if numbered and _count_origins(kb, tail, "first") > _count_origins(kb, tail, "last"):
        return roles  # "John Paul II"
    roles[-1] = FAMILY
    for n in range(1, len(names) - 1):
        i, piece = names[n]
        if particle is not None and i > particle:
            roles[n] = FAMILY
        elif piece.kind == "name" and not any(p.text == "and" for p in pieces[names[n - 1][0] : i]):
            # Not so in "Bill and Hillary Clinton".
            language = origin if origin in TWO_FAMILY_NAMES else ""
            first, last = (get_name_weight(kb, piece.text, part, language) for part in ("first", "last"))
            if last > first and (language or not first):
                roles[n] = FAMILY
    if particle is not None and len(names) > 2 and pieces[particle].text in ("y", "e", "i"):
        # "Ortega y Gasset": the name before it is a family name too.
        before = max(n for n, (i, _) in enumerate(names) if i < particle)
        roles[before] = FAMILY if before else GIVEN
    return roles
