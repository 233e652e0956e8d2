"""Who is in an anonymised text, and what it still says of each person: facts, and the rule by which each is theirs.

People are placeholders and names (pseudonyms too), labels of turns, whoever says "I", relatives who are not named
("her brother"), and the person whom a description without a name is about. A fact belongs to whoever the sentence
named last before it; a pronoun counts as a mention of the last person whom its gender fits. Each fact keeps its rule,
so that a reader can judge it. The rules are for English.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from operator import attrgetter
from typing import TypeVar

from allonym.detection.turns import add_turns
from allonym.document import Document, Interval, Reach, Span
from allonym.evaluate.general_words import map_words_to_general_nouns
from allonym.kb import KnowledgeBase
from allonym.labels import TAXONOMY
from allonym.link import link
from allonym.link.relatives import is_relative
from allonym.text.names import find_title_gender
from allonym.text.placeholders import find_placeholders

AUTHOR, DESCRIBED = "the author", "the person described"
NAMED, BEFORE, AFTER, SPOKEN, KIN, ONLY = (
    "it is the name",
    "named before it in the sentence",
    "named right after it",
    "said in the first person",
    "the relation is named",
    "the only person of the text",
)
"""The rules by which a fact is a person's."""

_SUPERLATIVE = (
    "(?:only|sole|first|last|youngest|oldest|eldest|tallest|shortest|smallest|biggest|largest|fastest|strongest|richest"
    "|poorest|longest(?:[- ]serving)?|highest|lowest|heaviest)"
)
_RELATIVES = (
    "son|daughter|child|mother|father|wife|husband|partner|brother|sister|twin|uncle|aunt|grand\\w+|friend|boss"
)
_RARE_CLAIM = re.compile(
    rf"\b(?:(?:I|we|he|she|who|they|(?:my|our|his|her)\s(?:{_RELATIVES})|\[PERSON\w*\])\b[^.!?\n]{{0,30}}?"
    rf"(?:\b(?:am|is|was|are|were|be|been|became|become|remain|remained)|['’](?:m|s|re))\s+(?:still\s+)?"
    rf"(?:one\sof\s)?the\s+(?:{_SUPERLATIVE}\b|few\b|\w+\s+(?:who|whose|that)\b)"
    rf"|as\s+the\s+{_SUPERLATIVE}\b|(?:no|nobody|no\sone)\s(?:other|else)\s(?:\w+\s){{0,3}}(?:here|in|at|on)\b)"
    r"[^.!?\n]{0,60}",
    re.IGNORECASE,
)
_DENIED = re.compile(r"(?:\bnot\b|\bcannot\b|n['’]t\b|\bdoubt)[^.!?\n]{0,40}?\bthe\b", re.IGNORECASE)
_WORD = re.compile(r"[^\W_]+(?:[-'’][^\W_]+)*")
_SENTENCE_END = re.compile(r"(?<=[.!?])[\"”’)]*\s+(?=[\"“‘(\[]?[A-Z0-9])|\n+")
_HEADER = re.compile(
    r"^(?:Date|Sent|From|To|Cc|Bcc|Subject|X ?-[^:\n]*|Reply-To|Report (?:Name|Date))[ \t]*:[^\n]*", re.M | re.I
)
_SENDER = re.compile(r"\bFrom[ \t]*:[ \t]*$", re.IGNORECASE)
_OBJECT = re.compile(
    r"\b(?:of|with|to|by|for|from|about|after|like|told|saw|met)\s+(?:the\s+|Mrs?\.?\s+)?$", re.IGNORECASE
)
_ROLE = re.compile(
    r"\b(?:known for|famous for|play(?:s|ed|ing)|portray\w*|roles? (?:of|as)|part of|character|voice of|starr\w+ as)"
    r"(?:\s+(?:Dr\.?\s+)?\S+\s+and)?\s+(?:the\s+|(?:Dr|Mr|Mrs|Miss)\.?\s+)*$",
    re.IGNORECASE,
)
"""What stands before a part that somebody plays, which is nobody of the text."""
_LOOSE = frozenset({"organisation", "place", "date"})
"""Kinds that a sentence often names without saying them of anybody in it."""
_AUXILIARY = (
    r"(?:(?:have|has|had|is|was|are|were|am|be|been|being|will|would|can|could|should|may|might|must|do|does|did|not|also"
    r"|just|only|really|already|then|now|to|going|gonna|able|don['’]t|didn['’]t|doesn['’]t|can['’]t|won['’]t|[a-z]+ly)\s+)*+"
)
_ACTS = re.compile(
    rf"\W*{_AUXILIARY}(?:provid|giv|gave|send|sent|locat|forward|receiv|call|contact|ask|need|want|think|thought|believ"
    r"|guess|see|saw|seen|talk|spoke|speak|discuss|review|look|tell|told|say|said|know|knew|hear|suggest|recommend|thank"
    r"|welcom|attach|deal|flag|print|schedul|book|cop|get|got|put|use|using|find|found|show|help|understand|mean|hope"
    r"|wonder|imagin|figur|check|request|rais|approv|agree|execut|sign|negotiat|draft)[a-z]*\b",
    re.IGNORECASE,
)
"""A verb after a mention by which a person does something with what follows, which says little of the person."""
_STATES = re.compile(
    r"\W*(?:(?:am|was|have been|been)\s+)?(?:(?:also|now|still|originally)\s+)*(?:an?|the|from|in|at|with|head|based)\b"
    rf"|\W*{_AUXILIARY}(?:born|work|liv|grew|grow|stud|join|came|come|mov|start|left|leav|retir|graduat|marr|represent"
    r"|lead|led|run|ran|teach|taught|stay|serv|attend|own|found)",
    re.IGNORECASE,
)
"""What somebody who speaks says of the own life."""
_CAUSE = re.compile(r"\b(?:advocate|champion|supporter)s? (?:for|of)$", re.IGNORECASE)
_DEGREES = frozenset("very so too quite rather more most".split())
_WHO = re.compile(r",?\s+who\b", re.IGNORECASE)
_OF_A_PAPER = re.compile(
    r"\b(?:dated|effective|agreement|amendment|version|revised|sent|(?:contract|fiscal) year)\s+\(?(?:on\s+)?"
    r"(?:[\d./]+\s+-\s+)?$",
    re.IGNORECASE,
)
_OF_ANOTHER = re.compile(r"\b(?:against|versus|vs?\.?)\s+(?:the\s+)?$", re.IGNORECASE)
"""What stands before an opponent's team or home."""
_CLUB = re.compile(r"\b(?:A?FC|CF|RFC|Club)\b")
_CUT_WORDS = frozenset("cause em kay til".split())
_VAGUE = frozenset({"international", "multinational"})
"""Findings that say nothing of anybody: no origin, no organisation."""
_THIS_PERSON = re.compile(r"\bthis (?:person|man|woman|lady|actor|actress)\b", re.IGNORECASE)
_PRONOUNS = {"he": "m", "him": "m", "his": "m", "himself": "m", "she": "f", "her": "f", "hers": "f", "herself": "f"}
_FIRST_PERSON = frozenset("i me my mine myself i'm i've i'll i'd i’m i’ve i’ll i’d".split())
_POSSESSIVES = frozenset("my his her our their".split())
_NO_KIN = frozenset(
    "boss manager supervisor colleague assistant secretary neighbour neighbor friend flatmate housemate roommate "
    "lodger landlord landlady guardian carer".split()
)
_FEMALE = frozenset(
    "wife widow bride girlfriend mother mum mom mummy mommy daughter sister aunt auntie niece grandmother grandma "
    "granny nan granddaughter godmother goddaughter fiancée".split()
)
_MALE = frozenset(
    "husband widower groom boyfriend father dad daddy son brother uncle nephew grandfather grandpa grandson godfather "
    "godson fiancé".split()
)
MARITAL = frozenset("married divorced widowed separated engaged single pregnant retired".split())
_COPULAS = frozenset("is was am are were be been being as became become becoming i'm i’m he's he’s she's she’s".split())
_DETERMINERS = frozenset("a an the our my his her their its former retired new also now currently then one of".split())
_NO_WORK = frozenset("person head host partner figure character member star icon legend hero king queen lead".split())
_NO_ILLNESS = frozenset(
    "health condition operation treatment sickness illness infection therapy injury fever disability".split()
)
_CONDITIONS = frozenset("blind deaf pregnant".split())
_AGE = re.compile(
    r"\b(?:[0-9]{1,3}(?:-[0-9]{2})?(?:[- ]years?[- ]old|[- ]?y/?o\b)|aged? [0-9]{1,3}(?:-[0-9]{2}\b|\b)"
    r"|in (?:his|her|my|their) (?:(?:early |mid[- ]?|late )?(?:twenties|thirties|forties|fifties|sixties|seventies"
    r"|eighties|nineties|[2-9]0s)))\b",
    re.I,
)
_BAND = re.compile(r"[0-9]{1,2}-[0-9]{2}\b|[0-9]{2}\+")
_CHILDREN = re.compile(
    r"\b(?:(?:one|two|three|four|five|six|seven|eight|nine|ten|[0-9]{1,2}) (?:\w+ )?"
    r"(?:kids|children|sons?|daughters?|brothers?|sisters?|siblings))\b",
    re.I,
)
_NICKNAME = re.compile(
    r"\b(?:known(?: to \w+)? as|nickname(?:d| is| was|:)|a\.?k\.?a\.?|goes by|went by"
    r"|(?:calls?|called) (?:him|her|them|me|us)(?:self)?) [\"'“‘]?([A-Z][\w'’-]*\w(?: [A-Z][\w'’-]*\w)?)"
)
"""What others call somebody, which no list of names knows: "they called him Spud"."""
_EDUCATION = re.compile(
    r"\b(?:(?:degree|doctorate|diploma|PhD|Ph\.D\.?|MBA|bachelor['’]?s|master['’]?s)\b"
    r"(?-i:(?: degree)? in [A-Z][a-z]+(?: and [A-Z][a-z]+)?)?|graduated|dropped out)",
    re.I,
)
_KINDS = (
    ("DATE_OF_BIRTH", "birth"),
    ("AGE", "age"),
    ("OCCUPATION", "work"),
    ("MEDICAL_TERM", "health"),
    ("ORIGIN", "origin"),
    ("SEXUAL_ORIENTATION", "origin"),
    ("LOCATION", "place"),
    ("ORGANIZATION", "organisation"),
    ("AWARD", "honour"),
    ("WORK_OF_ART", "honour"),
    ("DATE", "date"),
    *((label, "contact") for label in ("EMAIL_ADDRESS", "PHONE_NUMBER", "ONLINE_ID", "GENERIC_ID", "GOVERNMENT_ID")),
)
_REACH, _MOST_BACK = 3, 100  # sentences and mentions over which a pronoun reaches back


@dataclass(frozen=True, slots=True)
class Statement:
    """Something that a text says of a person.

    Attributes:
        kind: ``sex``, ``age``, ``place``, ``work``, ``organisation``, ``kin``, ``health``, ``origin``, ``education``,
            ``date``, ``birth``, ``honour``, ``rare``, ``name`` or ``contact``.
        start, end: where it stands.
        value: its words. Hidden from ``repr``.
        rule: why it is the person's.
    """

    kind: str
    start: int
    end: int
    value: str = field(repr=False)
    rule: str


@dataclass(slots=True)
class Figure:
    """A person of a text. Mutable; it never leaves :func:`read_people`'s caller.

    Attributes:
        name: how the text calls the person. Hidden from ``repr``.
        sort: ``placeholder``, ``name``, ``speaker``, ``author``, ``relative`` or ``described``.
        mentions: places, without pronouns.
        gender: ``f``, ``m`` or empty.
        statements: what the text says of the person.
    """

    name: str = field(repr=False)
    sort: str
    mentions: list[Interval] = field(default_factory=list)
    gender: str = ""
    statements: list[Statement] = field(default_factory=list)


Pointer = tuple[int, int, Figure, str]
"""A mention or pronoun: start, end, whom it means, and the rule."""
_Placed = TypeVar("_Placed", tuple[int, int, Figure], Pointer)


def _select_between(items: Sequence[_Placed], low: int, high: int) -> Sequence[_Placed]:
    """Return the items that start from ``low`` on and before ``high``; they are sorted by their starts."""
    first = bisect_left(items, low, key=lambda item: item[0])
    return items[first : bisect_left(items, high, first, key=lambda item: item[0])]


def find_rare_claims(text: str) -> list[Interval]:
    """Return the stretches of a text that say of somebody what only one person can be, or very few.

    >>> text = "I am the only blind piano tuner here. The only problem is the price."
    >>> [text[start:end] for start, end in find_rare_claims(text)]
    ['I am the only blind piano tuner here']
    """
    return [match.span() for match in _RARE_CLAIM.finditer(text) if not _DENIED.search(match[0])]


def read_people(text: str, spans: Sequence[Span], altered: Sequence[Interval] = ()) -> tuple[list[Figure], int]:
    """Read who is in a text, and what it says of each.

    Args:
        text: anonymised; English.
        spans: what detectors find in it.
        altered: stretches that anonymising wrote. A name there is a pseudonym, and what else stands there is not true
            of anybody, unless it is a placeholder, a band or a year.

    Returns:
        The people in order of their first mention, and how many facts nobody could be given.
    """
    reader = _Reader(text, spans, altered)
    return reader.read_statements()


def _drop_repeated(statements: Iterable[Statement]) -> list[Statement]:
    """Return the statements without those whose words another of the same kind has too."""
    out: list[Statement] = []
    for statement in sorted(statements, key=lambda s: (-len(s.value), s.start)):
        words = f" {statement.value.lower().removesuffix('s')} "
        if not any(s.kind == statement.kind and words in f" {s.value.lower().removesuffix('s')} " for s in out):
            out.append(statement)
    return out


class _Reader:
    """One text while it is read."""

    def __init__(self, text: str, spans: Sequence[Span], altered: Sequence[Interval]) -> None:
        self.text = text
        self.altered = Reach(altered)
        self.headers = Reach(m.span() for m in _HEADER.finditer(text))
        cuts = [0, *(m.end() for m in _SENTENCE_END.finditer(text)), len(text)]
        self.starts = cuts[:-1]
        self.ends = cuts[1:]
        places = find_placeholders(text)
        covered = Reach((p.start, p.end) for p in places)
        self.spans = [s for s in spans if not covered.touches(s.start, s.end)]
        self.figures: list[Figure] = []
        self.by_name: dict[str, Figure] = {}
        self.document = add_turns(Document("text", text))
        for place in places:
            if place.label and TAXONOMY.get_family(place.label) == "PERSON":
                figure = self.add_mention(text[place.start : place.end], "placeholder", (place.start, place.end))
                figure.gender = figure.gender or find_title_gender(text, place.start)
        self._add_names()
        named = Reach((a, b) for a, b, _ in self.heads)
        for turn in self.document.turns:
            if turn.speaker is not None and not named.touches(*turn.speaker):
                self.add_mention(text[turn.speaker[0] : turn.speaker[1]].strip(), "speaker", turn.speaker)
        self.labels = Reach(turn.speaker for turn in self.document.turns if turn.speaker is not None)
        self._add_roles()
        for match in _THIS_PERSON.finditer(text):
            self.add_mention(DESCRIBED, "described", match.span())
        self.words = [(m.start(), m.end(), m[0].lower()) for m in _WORD.finditer(text)]
        self._add_relatives()
        self.pointers = self._resolve_pronouns()
        self.longest = max((b - a for a, b, _, _ in self.pointers), default=0)

    @property
    def heads(self) -> list[tuple[int, int, Figure]]:
        """All mentions with names, in reading order."""
        return sorted(((a, b, f) for f in self.figures for a, b in f.mentions), key=lambda head: head[:2])

    def add_mention(self, name: str, sort: str, place: Interval) -> Figure:
        """Add a mention of the person who goes by a name."""
        figure = self.by_name.get(name.casefold())
        if figure is None:
            figure = self.by_name[name.casefold()] = Figure(name, sort)
            self.figures.append(figure)
        figure.mentions.append(place)
        return figure

    def _add_names(self) -> None:
        names = [s for s in self.spans if TAXONOMY.get_family(s.label) == "PERSON" and s.label != "TITLE"]
        names = [s for s in names if not self._is_no_person(s.start, s.end)]
        for entity in link(self.document, names).entities:
            first = max(entity.spans, key=lambda s: s.end - s.start)
            name = self.text[first.start : first.end]
            for span in entity.spans:
                figure = self.add_mention(name, "name", (span.start, span.end))
                figure.gender = figure.gender or find_title_gender(self.text, span.start)
                if not self.altered.touches(span.start, span.end):
                    value = self.text[span.start : span.end]
                    figure.statements.append(Statement("name", span.start, span.end, value, NAMED))

    def _is_no_person(self, start: int, end: int) -> bool:
        """Tell whether a detector took a club, or a word cut short as in "'Kay", for a person."""
        is_cut = self.text[max(0, start - 1) : start] in ("'", "’") and self.text[start:end].lower() in _CUT_WORDS
        return is_cut or bool(_CLUB.search(self.text, start, end))

    def _add_roles(self) -> None:
        """Add the work of speakers whose label is a role, such as ``Project Manager``."""
        knowledge = KnowledgeBase.open()
        for figure in self.figures:
            last = figure.name.split()[-1] if figure.name.split() else ""
            if figure.sort == "speaker" and knowledge.find(last, ("occupation",)):
                start, end = figure.mentions[0]
                figure.statements.append(Statement("work", start, end, figure.name, NAMED))

    def _add_relatives(self) -> None:
        """Add relatives: "her brother", "[PERSON_1]'s wife", with the name that follows, if there is one."""
        self.kin: list[tuple[int, int, str, int, Figure]] = []
        heads = self.heads
        for i, (start, end, word) in enumerate(self.words):
            owner_at = -1
            if not is_relative(word) or word in _NO_KIN or word.removesuffix("s") in _NO_KIN or not i:
                continue
            back = [w for w in self.words[max(0, i - 2) : i] if w[0] >= self.get_sentence(start)[0]]
            owner_at = next((a for a, _, w in reversed(back) if w in _POSSESSIVES), -1)
            if owner_at < 0:
                near = self.text[max(0, start - 14) : start]
                match = re.search(r"['’]s? (?:\w+ )?$", near)
                owner_at = start - len(near) + match.start() if match else -1
            if owner_at < 0 or self.text.startswith((" tongue", "land"), end):
                continue
            following = next(iter(_select_between(heads, end, end + 3)), None)
            is_one = not (word.endswith("s") and is_relative(word.removesuffix("s")))
            leading = next(iter(_select_between(heads, owner_at - 40, owner_at)[-1:]), None)
            is_aside = leading is not None and self.text[leading[1] : owner_at].strip() in ("(", ",")
            if following is not None and self.text[end : following[0]].strip() in ("", ","):
                figure = following[2]
            elif leading is not None and is_aside and self.text[end : end + 1] in (")", ","):
                figure = leading[2]
            elif is_one:
                owner_word = self.text[owner_at:start].split(" ")[0].lower()
                name = f"{owner_word} {word}" if owner_word in _POSSESSIVES else self.text[start:end] + f" at {start}"
                figure = self.add_mention(name, "relative", (start, end))
            else:
                figure = Figure(word, "")
            figure.gender = figure.gender or ("f" if word in _FEMALE else "m" if word in _MALE else "")
            self.kin.append((start, end, word, owner_at, figure))

    def _resolve_pronouns(self) -> list[Pointer]:
        """List all mentions with whom they mean, pronouns among them, in reading order."""
        heads = self.heads
        self.senders = [h for h in heads if _SENDER.search(self.text, max(0, h[0] - 12), h[0])]
        longest = max((b - a for a, b, _ in heads), default=0)
        speakers: list[tuple[int, int, Figure | None]] = []
        for turn in self.document.turns:
            if turn.speaker is not None:
                near = _select_between(heads, turn.speaker[0] - longest, turn.speaker[1])
                owner = next((f for _, b, f in near if turn.speaker[0] < b), None)
                speakers.append((turn.start, turn.end, owner))
        named = [(a, b, f, BEFORE) for a, b, f in heads]
        pointers: list[Pointer] = []
        for start, end, word in self.words:
            if word in _FIRST_PERSON and not self.headers.touches(start, end):
                if word == "i" and self.text[start] != "I":
                    continue
                pointers.append((start, end, self._find_speaker(start, speakers), SPOKEN))
                continue
            gender = _PRONOUNS.get(re.split("['’]", word, maxsplit=1)[0])
            if gender is None or self.text[start:end].isupper():  # HE is higher education
                continue
            figure = self._find_antecedent(start, gender, (named, pointers))
            figure.gender = figure.gender or gender
            pointers.append((start, end, figure, BEFORE))
        pointers = sorted([*named, *pointers], key=lambda p: p[:2])
        first_places = {id(f): (a, b) for a, b, f, _ in reversed(pointers)}
        for figure in self.figures:
            if figure.gender:
                value = "female" if figure.gender == "f" else "male"
                figure.statements.append(Statement("sex", *first_places[id(figure)], value, BEFORE))
        return pointers

    def _find_speaker(self, start: int, speakers: Sequence[tuple[int, int, Figure | None]]) -> Figure:
        number = bisect_right(speakers, start, key=lambda turn: turn[0]) - 1
        if number >= 0 and start < speakers[number][1]:
            return speakers[number][2] or self._get_author()
        sender = bisect_left(self.senders, start, key=lambda head: head[0]) - 1
        return self.senders[sender][2] if sender >= 0 else self._get_author()

    def _get_author(self) -> Figure:
        if AUTHOR not in self.by_name:
            self.by_name[AUTHOR] = Figure(AUTHOR, "author")
            self.figures.append(self.by_name[AUTHOR])
        return self.by_name[AUTHOR]

    def _find_antecedent(self, start: int, gender: str, pointers: Sequence[Sequence[Pointer]]) -> Figure:
        """Find whom "he" or "she" means: the last who fits, who was named within a few sentences."""
        low = self.starts[max(0, self.number_sentence(start) - _REACH)]
        close = [p for some in pointers for p in _select_between(some, low, start)[-_MOST_BACK:]]
        near = [p for p in close if p[3] == BEFORE and p[2].sort != "author"]
        parts = {p[0] for p in near if _ROLE.search(self.text, max(0, p[0] - 60), p[0])}
        near = [p for p in near if p[0] not in parts]
        near = [p for p in near if not self.headers.touches(p[0], p[1])] or near
        fits = [p for p in near if p[2].gender in ("", gender)]
        if fits:
            return max(fits, key=lambda p: (p[2].gender == gender, self.starts[self.number_sentence(p[0])], -p[0]))[2]
        everyone = [f for f in self.figures if f.sort in ("placeholder", "name", "described") and not parts]
        if len(everyone) == 1 and everyone[0].gender in ("", gender):
            return everyone[0]
        name = DESCRIBED if not everyone else f'"{"she" if gender == "f" else "he"}"'
        if name not in self.by_name:
            self.by_name[name] = Figure(name, "described", gender=gender)
            self.figures.append(self.by_name[name])
        return self.by_name[name]

    def get_sentence(self, start: int) -> Interval:
        """Return the sentence around a place."""
        number = self.number_sentence(start)
        return self.starts[number], self.ends[number]

    def number_sentence(self, start: int) -> int:
        """Return the number of the sentence around a place."""
        return bisect_right(self.starts, start) - 1

    def read_statements(self) -> tuple[list[Figure], int]:
        """Give each fact to a person."""
        lost = 0
        keys: set[tuple[str, str, int]] = set()
        for start, end, word, owner_at, figure in self.kin:
            owner = self._find_owner_at(owner_at)
            if owner is not None and owner is not figure:
                owner.statements.append(Statement("kin", start, end, word, KIN))
                figure.statements.append(Statement("kin", start, end, f"{word} of {owner.name}", KIN))
        for statement in self._list_statements():
            owner, rule, end = self._find_owner(statement.start, statement.end)
            if owner is None or (statement.kind in _LOOSE and not self._says_of(rule, end, statement.start)):
                lost += 1
                continue
            if statement.value.lower() in ("married", "engaged"):
                following = self.text[statement.end : statement.end + 4].strip()
                spouse = next(iter(_select_between(self.pointers, statement.end + 1, statement.end + 5)), None)
                if following == "to" and spouse is not None and spouse[2] is not owner:
                    spouse[2].statements.append(replace(statement, rule=AFTER))
            key = (statement.kind, statement.value.lower(), id(owner))
            if key not in keys:
                keys.add(key)
                owner.statements.append(replace(statement, rule=rule))
        for figure in self.figures:
            names = {s.value: s for s in sorted(figure.statements, key=lambda s: -s.start) if s.kind == "name"}
            others = sorted(_drop_repeated(s for s in figure.statements if s.kind != "name"), key=lambda s: s.start)
            figure.statements = [*sorted(names.values(), key=lambda s: s.start), *others]
        return self.figures, lost

    def _find_owner_at(self, at: int) -> Figure | None:
        near = _select_between(self.pointers, at - self.longest, at + 1)
        return next((p[2] for p in near if at <= p[1]), None)

    def _says_of(self, rule: str, end: int, start: int) -> bool:
        """Tell whether the words from a mention's end on can say something of the person, not only name it."""
        if end < 0 or rule not in (BEFORE, SPOKEN):
            return True
        if rule == SPOKEN and self.text[end - 2 : end].lower() != "my":
            return bool(_STATES.match(self.text, end))
        return not _ACTS.match(self.text, end, start)

    def _find_owner(self, start: int, end: int) -> tuple[Figure | None, str, int]:
        """Return whose a fact is, by which rule, and where the mention before it ends that tells it, or -1."""
        low, high = self.get_sentence(start)
        before = (p for p in reversed(_select_between(self.pointers, low, start)) if p[1] <= start and self._is_said(p))
        if (last := next(before, None)) is not None:
            owner = next((p for p in chain((last,), before) if self._is_subject(p[0], p[1])), last)
            return owner[2], owner[3], owner[1]
        around = _select_between(self.pointers, max(low, start - self.longest), min(high, end))
        same = next((p for p in around if start < p[1] and self._is_said(p)), None)
        if same is not None:
            return same[2], same[3], -1
        after = next(filter(self._is_said, _select_between(self.pointers, end, min(high, end + 4))), None)
        if after is not None:
            return after[2], AFTER, -1
        turn = bisect_right(self.document.turns, start, key=attrgetter("start")) - 1
        if turn >= 0 and start < self.document.turns[turn].end and self.document.turns[turn].speaker:
            return None, "", -1
        people = [f for f in self.figures if f.sort in ("placeholder", "name", "described")]
        is_only = len(people) == 1 and not self.headers.touches(start, end)
        return (people[0], ONLY, -1) if is_only else (None, "", -1)

    def _is_said(self, pointer: Pointer) -> bool:
        """Tell whether a mention is no label of a speaker."""
        return not self.labels.touches(pointer[0], pointer[1])

    def _is_subject(self, start: int, end: int) -> bool:
        """Tell whether what follows can be about a mention: it is no object, or a relative clause follows."""
        return not _OBJECT.search(self.text, max(0, start - 16), start) or bool(_WHO.match(self.text, end))

    def _list_statements(self) -> Iterator[Statement]:
        """List facts wherever they stand, each stretch once."""
        stretches: list[Interval] = []  # sorted and disjoint
        for kind, start, end in self._find_stretches():
            value = self.text[start:end]
            if kind == "work" and _CAUSE.search(self.text, start, min(end + 4, len(self.text))):
                continue
            is_coarse = kind == "rare" or _BAND.search(value) or (kind == "date" and value.isdigit())
            is_made = self.altered.touches(start, end) and not is_coarse
            if is_made or self.headers.touches(start, end):
                continue
            place = bisect_left(stretches, (end, end))
            if place and stretches[place - 1][1] > start:
                continue
            stretches.insert(place, (start, end))
            yield Statement(kind, start, end, value, "")

    def _find_stretches(self) -> Iterator[tuple[str, int, int]]:
        yield from (("rare", a, b) for a, b in find_rare_claims(self.text))
        yield from (("age", *m.span()) for m in _AGE.finditer(self.text))
        for span in self.spans:
            lineage = TAXONOMY.lineage(span.label)
            kind = next((kind for label, kind in _KINDS if label in lineage), "")
            before = {"date": _OF_A_PAPER, "organisation": _OF_ANOTHER, "place": _OF_ANOTHER}.get(kind)
            is_of_other = before is not None and before.search(self.text, max(0, span.start - 40), span.start)
            is_vague = self.text[span.start : span.end].lower() in _VAGUE
            if kind and not is_vague and not is_of_other:
                yield kind, span.start, span.end
        yield from (("kin", *m.span()) for m in _CHILDREN.finditer(self.text))
        yield from (("name", *m.span(1)) for m in _NICKNAME.finditer(self.text))
        yield from (("education", *m.span()) for m in _EDUCATION.finditer(self.text))
        yield from self._find_listed_words()

    def _find_listed_words(self) -> Iterator[tuple[str, int, int]]:
        """Find occupations, conditions and marital status by the lists of the knowledge base and of general words."""
        general, knowledge = map_words_to_general_nouns(), KnowledgeBase.open()
        last = -9  # number of the word of the last occupation
        for i, (start, end, word) in enumerate(self.words):
            back = [w for _, _, w in self.words[max(0, i - 4) : i]]
            is_said = any(w in _COPULAS for w in back[-4:])
            after = self.words[i + 1][2] if i + 1 < len(self.words) else ""
            is_status = after in ("with", "to") or (bool(back) and back[-1] in _COPULAS | {"got"})
            if word == "twin" and is_said:
                yield "kin", start, end
            elif word in MARITAL and is_status and after not in ("out", "in", "from"):
                yield {"retired": "work", "pregnant": "health"}.get(word, "kin"), start, end
            elif (word in _CONDITIONS and is_said) or (general.get(word) == "illness" and word not in _NO_ILLNESS):
                yield "health", start, end
            elif (is_said or (i - 2 == last and back[-1:] in (["and"], ["or"]))) and (
                word not in _NO_WORK
                and not _DEGREES.intersection(back[-1:])
                and self._is_occupation(word, general, knowledge)
            ):
                first, last = start, i
                for a, _, w in reversed(self.words[max(0, i - 2) : i]):
                    if w in _COPULAS or w in _DETERMINERS or not re.fullmatch(r"[a-z-]+", w):
                        break
                    if not knowledge.find(self.text[a:end], ("occupation",)):
                        break
                    first = a
                yield "work", first, end

    def _is_occupation(self, word: str, general: Mapping[str, str], knowledge: KnowledgeBase) -> bool:
        return general.get(word) in ("worker", "performer", "athlete", "leader") or bool(
            len(word) > 3 and knowledge.find(word, ("occupation",))
        )
