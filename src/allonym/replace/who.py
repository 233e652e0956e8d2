"""Who a person of the document is: given and family names, gender, language of origin, by all their surfaces."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from allonym.document import Span
from allonym.replace.cast import Cast
from allonym.replace.mention import Wanted
from allonym.replace.naming import (
    ARTICLES,
    ROMAN,
    Piece,
    latin,
    letters_of,
    parse,
    script_of,
    tables,
    title_before,
    title_gender,
    title_origin,
    units,
)
from allonym.text.fold import spell_out
from allonym.text.names import near, plain, short_forms, singular, sound

if TYPE_CHECKING:
    from allonym.kb import KnowledgeBase

GIVEN, FAMILY = "given name", "family name"
FAMILY_FIRST = frozenset({"chinese", "korean", "vietnamese", "hungarian", "japanese"})
TWO_FAMILY_NAMES = frozenset({"spanish", "portuguese", "latin", "filipino"})
_HE = re.compile(r"\b(?:he|him|his|himself)\b", re.I)
_SHE = re.compile(r"\b(?:she|her|hers|herself)\b", re.I)
_NEARBY = 160
_SOME = 9  # weight of a name that is not only borrowed
_JOINED = re.compile(r"[A-Z][a-z]+[‐‑-][a-z]+")


@dataclass(slots=True, eq=False)
class Person:
    """One person of the document and who plays them. Mutable while a document is prepared.

    Attributes:
        key: of the entity. Like all names here, hidden from ``repr``.
        gender: ``f``, ``m``, ``n`` (a name of either gender is wanted) or empty (unknown).
        origin: language of origin, as the knowledge base calls it.
        given, family: the original's words in plain form, in order.
        written: those words as they are written.
        particles: what stands before the family name, such as ``van der``.
        new: word in plain form to what stands for it, as names are written.
        letters: initials that stand for no known word to what stands for them.
        middle: initials of given names of which nothing else is known.
        short: short or full forms of its given names that stand for them elsewhere, to these.
        plural: it is a whole family.
        turned: its family name stands first, as its language has it.
        spellings: second spelling of a word, such as ``mueller``, to the word, ``muller``.
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
    turned: bool = False
    spellings: dict[str, str] = field(default_factory=dict, repr=False)

    def words(self) -> Iterator[str]:
        """The original's words that initials stand for, in order; hyphenated ones taken apart."""
        for word in (*self.given, *self.family):
            yield from units(word)

    def known(self, word: str) -> str | None:
        """Which of the person's words ``word`` is, or a plural, part or misspelling of; None: none of them."""
        among = (*self.given, *self.family, *self.short)
        word = self.spellings.get(word, word)
        if word in among:
            return word
        if word[:2] in ("d'", "l'") and word[2:] in among:
            return word[2:]
        for part in among:
            if "-" in part and word in units(part):
                return word
        for base in singular(word):
            if (base := self.spellings.get(base, base)) in among:
                return base
        if len(word) >= 4 and word.isalpha():
            alike = [w for w in among if len(w) >= 4 and near(word, w) and sound(word) == sound(w)]
            if len(alike) == 1:
                return alike[0]
        return None

    def is_family(self, word: str) -> bool:
        """Whether a known word is a family name or a part of one."""
        return word in self.family or any(word in units(w) for w in self.family)


class Reading:
    """Takes in the surfaces of one entity. Mutable; it never leaves the call that prepares a document.

    Args:
        cast: of the document.
        wanted: the entity.
    """

    def __init__(self, cast: Cast, wanted: Wanted) -> None:
        self.cast = cast
        self.entity = wanted.entity
        self.neutral = wanted.options.get("names") == "neutral"
        self.singles: dict[str, str] = {}  # words that stood alone -> given or family, empty: not told
        self.sure = ""  # gender that a title before a given name tells
        self.told = ""  # gender that any title tells
        self.several: set[str] = set()  # words that "the" stands before, which may be plurals
        self.initials: set[str] = set()
        self.person = Person(wanted.entity.key)
        text = cast.setting.document.text
        bits = [
            (pieces_of(cast.kb, surface), surface, span, title_before(text, span.start))
            for span, surface in zip(wanted.entity.spans, wanted.surfaces, strict=True)
        ]
        for pieces, *_ in bits:
            for piece in pieces:
                if piece.kind == "name":
                    word = plain(piece.text)
                    self.person.written.setdefault(word, piece.text)
                    if (second := plain(spell_out(piece.text))) != word:
                        self.person.spellings[second] = word
        fullest = max((_names(p) for p, *_ in bits), key=len, default=[])
        told = [title_origin(pieces, before[0]) for pieces, _, _, before in bits]
        self.home = next((t for t in told if t), "") or default_origin(cast)
        self.origin = origin_of(cast, fullest, self.home)
        for pieces, surface, span, before in sorted(bits, key=lambda b: -len(_names(b[0]))):
            self._read(pieces, surface, span, before)
        if self.entity.key.endswith((" (f)", " (m)")):
            self.told = self.told or self.entity.key[-2]

    def _plain_word(self, text: str) -> str:
        """A word of the name in plain form; the first spelling of two."""
        return self.person.spellings.get(plain(text), plain(text))

    def _read(self, pieces: tuple[Piece, ...], surface: str, span: Span, before: tuple[str, str]) -> None:
        if (letters := letters_of(surface, 3)) and surface.count(".") < 2:
            self.singles.setdefault(letters, "")
            return
        person = self.person
        titled, gender = title_gender(pieces)
        gender = gender or before[1]
        self.told = self.told or gender
        names = [p for p in pieces if p.kind in ("name", "initial")]
        self.initials.add("".join(plain(p.text)[:1] for p in names))
        if not any(p.kind == "name" for p in names):
            return
        person.particles = person.particles or " ".join(plain(p.text) for p in pieces if p.kind == "particle")
        roles = _roles(self.cast.kb, pieces, self.origin)
        if len(names) == 1:
            word = self._plain_word(names[0].text)
            title = titled or (before[0] if before[0] != "the" else "")
            kind = FAMILY if title or roles == [FAMILY] else ""
            if title in tables().before_given and roles != [FAMILY]:
                kind, self.sure = GIVEN, self.sure or gender
            the = before[0] == "the" or any(p.kind == "title" and p.text.lower() == "the" for p in pieces)
            if span.label in ("PERSON_FIRSTNAME", "PERSON_LASTNAME"):
                kind = GIVEN if span.label == "PERSON_FIRSTNAME" else FAMILY
            self.singles[word] = kind or self.singles.get(word, "")
            if the and not kind:
                self.several.add(word)
            return
        self.sure = self.sure or gender
        if roles[0] == FAMILY and FAMILY not in roles[1:] and self.origin in FAMILY_FIRST:
            person.turned = True
        for piece, role in zip(names, roles, strict=True):
            word = self._plain_word(piece.text)
            if piece.kind == "initial" and role == GIVEN and plain(piece.text)[:1] not in {g[0] for g in person.given}:
                person.middle.add(word[:1])
            if piece.kind != "name" or person.known(word) is not None:
                continue
            full = next((g for g in person.given if word in short_forms(g)), "") if role == GIVEN else ""
            if full:
                person.short[word] = full
            else:
                (person.family if role == FAMILY else person.given).append(word)

    def settle(self, families: set[str], givens: set[str]) -> Person:
        """Who it is, once the other people's names are known: words that stood alone become given or family names."""
        person, kb = self.person, self.cast.kb
        person.plural = self.entity.key.endswith(" family")
        for word, kind in sorted(self.singles.items(), key=lambda w: (not w[1], len(w[0]), w[0])):
            if person.plural and self.entity.key != f"PERSON:{word}":
                base = self.entity.key.removeprefix("PERSON:").removesuffix(" family")
                if base not in person.family:
                    person.family.append(base)
            elif (full := next((g for g in person.given if word in short_forms(g)), "")) and word not in person.given:
                person.short[word] = full
            elif person.known(word) is None and (base := self._base(word, families)):
                person.family.append(base)
                person.plural = not person.given and len(person.family) == 1
            elif person.known(word) is None and not self._is_short(word):
                kind = kind or (FAMILY if word in families else GIVEN if word in givens else self._kind(word))
                (person.family if kind == FAMILY else person.given).append(word)
        words = [person.written.get(w, w) for w in (*person.given[:1], *person.family[-1:])]
        hint = tables().particle_origins.get(person.particles, "")
        if person.particles and person.family and not hint:
            whole = [f for f in kb.name_facts(f"{person.particles} {person.family[-1]}") if f.part == "last"]
            hint = whole[0].origin if whole else hint
        if any(w.startswith(("al-", "el-")) for w in person.family):
            hint = hint or "arabic"
        fits = hint and person.family and self.origin not in FAMILY_FIRST
        if fits and (not person.given or weight(kb, person.given[0], "first", hint) or not kb.name_facts(words[0])):
            person.origin = hint
        elif person.turned:
            person.origin = self.origin
        elif person.given or not person.family:
            person.origin = origin_of(self.cast, words, self.home)
        else:
            person.origin = family_origin(self.cast, words[-1], "", self.home)
        return person

    def _base(self, word: str, families: set[str]) -> str:
        """The family name that a word is the plural of; empty where it is none."""
        for base in singular(word):
            if base in families or (word in self.several and weight(self.cast.kb, base, "last")):
                return base
        return singular(word)[0] if word in self.several and singular(word) else ""

    def _is_short(self, word: str) -> bool:
        """Whether a word is nothing but somebody's initials."""
        written = self.person.written.get(word, "")
        return 2 <= len(word) <= 4 and written.isupper() and word.isalpha() and not self.cast.kb.name_facts(word)

    def _kind(self, word: str) -> str:
        person = self.person
        if person.given and not person.family:
            return FAMILY
        kb = self.cast.kb
        for origin in (self.home, ""):
            first, last = weight(kb, word, "first", origin), weight(kb, word, "last", origin)
            if first or last:
                return FAMILY if last > first else GIVEN
        return FAMILY if len(word) > 5 and word.endswith(tables().family_endings) else GIVEN

    def gender(self, others: Sequence[tuple[int, int]]) -> str:
        """``f``, ``m``, ``n`` where names of either gender are wanted, empty where nothing tells.

        A title before a given name counts most, then the given name, then another title (``Frau Schmidt`` may be a
        relative of Ludwig Schmidt), then pronouns nearby, which also decide where a name is not of one gender only.

        Args:
            others: where people are mentioned, sorted.
        """
        if self.neutral:
            return "n"
        if self.sure:
            return self.sure
        kb, person = self.cast.kb, self.person
        given = person.given[0] if person.given else ""
        by_name = kb.gender(latin(given), person.origin) if given else ""
        if by_name in ("f", "m") and not any(
            f.gender not in ("", by_name) for f in kb.name_facts(latin(given)) if f.part == "first"
        ):
            return by_name
        found = self.told or self._pronouns(others)
        if not found and by_name in ("f", "m"):
            return by_name
        if not found and any(_of_woman(kb, person.written.get(w, w)) for w in person.family):
            return "f"
        return found

    def _pronouns(self, others: Sequence[tuple[int, int]]) -> str:
        setting = self.cast.setting
        if setting.policy.language != "en":
            return ""
        text = setting.document.text
        for span in self.entity.spans[:3]:
            after = next((a for a, _ in others if a >= span.end), len(text))
            nearby = text[span.end : min(after, span.end + _NEARBY)]
            he, she = _HE.search(nearby) is not None, _SHE.search(nearby) is not None
            if he != she:
                return "m" if he else "f"
        return ""


def pieces_of(kb: KnowledgeBase, surface: str) -> tuple[Piece, ...]:
    """As :func:`parse`, but the ``Van`` of ``Van Morris`` is a name, unlike that of ``Van Gogh``."""
    pieces = parse(surface)
    if len(pieces) == 3 and pieces[0] == ("particle", "Van") and pieces[2].kind == "name":
        family = pieces[2].text
        english = max(weight(kb, family, "last", o) for o in ("english", "american", "irish", "scottish", "welsh"))
        if english > weight(kb, family, "last", "dutch") and not kb.name_facts(f"Van {family}"):
            return (Piece("name", "Van"), *pieces[1:])
    return pieces


def _names(pieces: Sequence[Piece]) -> list[str]:
    return [p.text for p in pieces if p.kind == "name"]


def default_origin(cast: Cast) -> str:
    """The origin of a name that tells nothing: that of the policy's language."""
    return tables().origins.get(cast.setting.policy.language, "english")


def origin_of(cast: Cast, words: Sequence[str], home: str) -> str:
    """The origin of a name by its words, in the order in which they stand; ``home`` where they do not tell."""
    if not words:
        return home
    by_script = next((o for w in words if (o := script_of(w)[0])), "")
    kb = cast.kb
    words = [latin(w if kb.name_facts(w) or _JOINED.fullmatch(w) else re.split("[‐‑-]", w)[-1] or w) for w in words]
    if by_script:
        found = kb.origin(words, by_script)
        return found if script_of(found)[1] else by_script
    if len(words) == 1:
        exact = _exact(kb, words[0], "first")
        if exact and home not in exact:
            return exact[0]
        if exact or (words[0].isascii() and weight(kb, words[0], "first", home)):
            return home  # many a given name is at home in many languages
    found = kb.origin(words, home)
    if len(words) > 1:
        # A family name that is in no list says little, unless its ending does.
        unknown = not kb.name_facts(words[-1]) and words[-1].isascii()
        if (
            unknown
            and weight(kb, words[0], "first", home) > _SOME
            and not plain(words[-1]).endswith(tables().family_endings)
        ):
            return home
        for given, family in ((words[-1], words[0]), (words[0], words[-1])):
            # "Wong Ka-fai": a given name as the Latin script writes those of China and Korea.
            if _JOINED.fullmatch(given) and not weight(kb, given, "first"):
                asian = {o: weight(kb, family, "last", o) for o in ("chinese", "korean")}
                return max(asian, key=lambda o: asian[o])
        turned = kb.origin([*words[1:], words[0]], home)
        if turned in FAMILY_FIRST and found != turned and weight(kb, words[0], "last", turned):
            found = turned
        if found in FAMILY_FIRST:
            # "Kim Gordon", "David Lee": what is of another language for sure tells more.
            facts = {w: {f.origin for f in kb.name_facts(w)} for w in words}
            others = [w for w in words if facts[w] and found not in facts[w]]
            return kb.origin(others, home) if others else found
    return found


def _exact(kb: KnowledgeBase, word: str, part: str) -> list[str]:
    """The origins whose names are written just so, diacritics and all; none for words without any."""
    if word.isascii():
        return []
    facts = [f for f in kb.name_facts(word) if f.part == part]
    return list(dict.fromkeys(f.origin for f in facts if word in kb.names(part, f.origin)))


def family_origin(cast: Cast, word: str, whole: str, home: str = "") -> str:
    """The origin of a family name: that of the whole name, where it is at home there too, else its own.

    Args:
        cast: of the document.
        word: as it is written; of a hyphenated name the last word tells.
        whole: origin of the whole name; empty: there is no more.
        home: the origin where nothing tells; that of the policy's language if empty.
    """
    kb = cast.kb
    if by_script := script_of(word)[0]:
        return whole or by_script
    parts = [p for p in re.split("[‐‑-]", word) if p]
    if len(parts) > 1 and plain(parts[0]) in ARTICLES:
        return tables().particle_origins.get(plain(parts[0]), whole or "arabic")
    word = parts[-1] if parts else word
    own = kb.origin(["", word], home or default_origin(cast))
    exact = _exact(kb, word, "last")
    if exact and own not in exact:
        own = exact[0]
    if not whole and home and 15 * weight(kb, word, "last", home) >= weight(kb, word, "last", own):
        return home
    if not whole or own == whole:
        return own
    return whole if 2 * weight(kb, word, "last", whole) >= weight(kb, word, "last", own) else own


def weight(kb: KnowledgeBase, word: str, part: str, origin: str = "") -> int:
    """How typical a word is as a given (``first``) or family (``last``) name: 0 to 100."""
    facts = kb.name_facts(latin(word))
    return max((f.weight for f in facts if f.part == part and origin in ("", f.origin)), default=0)


def _origins(kb: KnowledgeBase, word: str, part: str) -> int:
    """In how many languages a word is such a name."""
    return len({f.origin for f in kb.name_facts(word) if f.part == part and f.weight > _SOME})


def _of_woman(kb: KnowledgeBase, word: str) -> bool:
    genders = {f.gender for f in kb.name_facts(word) if f.part == "last"}
    return genders == {"f"} or word.casefold().endswith("ová") or plain(word).endswith(("owska", "ewska", "inska"))


def _roles(kb: KnowledgeBase, pieces: Sequence[Piece], origin: str) -> list[str]:
    """Given or family name, for each name and initial of a surface; empty for a word that stands alone."""
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
    small = {plain(p.text).replace(".", "") for p in pieces if p.kind == "between"}
    if len(names) == 2 and small & {"v", "vs", "versus"}:
        return [FAMILY, FAMILY]
    if len(names) == 1:
        return [""]
    if origin in ("chinese", "korean") and len(names) == 2 and _JOINED.fullmatch(names[1][1].text):
        return [FAMILY, GIVEN]
    if origin in FAMILY_FIRST and names[0][1].kind == "name":
        head, tail = names[0][1].text, names[-1][1].text
        as_it_stands = weight(kb, head, "first", origin) + weight(kb, tail, "last", origin)
        turned = weight(kb, head, "last", origin) + weight(kb, tail, "first", origin)
        if turned > as_it_stands:
            return [FAMILY] + [GIVEN] * (len(names) - 1)
    if origin in TWO_FAMILY_NAMES and len(names) == len(full) == 2:
        head = full[0]
        if weight(kb, head, "last", origin) and not weight(kb, head, "first", origin):
            return [FAMILY, FAMILY]
    roles = [GIVEN] * len(names)
    number = next((p.text for p in pieces if p.kind == "suffix"), "")
    final = full[-1] if len(full) == len(names) else ""
    if final and ROMAN.fullmatch(number) and _origins(kb, final, "first") > _origins(kb, final, "last"):
        return roles  # "John Paul II"
    roles[-1] = FAMILY
    for at in range(1, len(names) - 1):
        i, piece = names[at]
        if particle is not None and i > particle:
            roles[at] = FAMILY
        elif any(p.text == "and" for p in pieces[names[at - 1][0] : i]):
            pass  # "Bill and Hillary Clinton"
        elif piece.kind == "name":
            where = origin if origin in TWO_FAMILY_NAMES else ""
            first, last = weight(kb, piece.text, "first", where), weight(kb, piece.text, "last", where)
            if last > first and (where or not first):
                roles[at] = FAMILY
    if particle is not None and len(names) > 2 and pieces[particle].text in ("y", "e", "i"):
        # "Ortega y Gasset": the name before it is a family name too.
        before = max(at for at, (i, _) in enumerate(names) if i < particle)
        roles[before] = FAMILY if before else GIVEN
    return roles
