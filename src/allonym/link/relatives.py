"""What a text says about the relations of people: "Anna Lee is his wife" tells her from the Mr Lee before her."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache

from allonym.document import Span
from allonym.kb import KnowledgeBase
from allonym.text.names import TITLES, PersonName, find_given_name_variants

Mention = tuple[Span, PersonName]

_RELATIVES = frozenset(
    "wife husband spouse partner widow widower ex fiancé fiancée fiance fiancee bride groom girlfriend boyfriend "
    "mother father mum mom mummy mommy dad daddy parent son daughter child baby brother sister sibling twin uncle aunt "
    "auntie niece nephew cousin grandmother grandfather grandma grandpa granny nan grandson granddaughter grandchild "
    "godmother godfather godson goddaughter guardian carer boss manager supervisor colleague assistant secretary "
    "neighbour neighbor friend flatmate housemate roommate lodger landlord landlady".split()
)
_PREFIXES = ("step-", "step", "half-", "ex-", "foster-", "great-")
_POSSESSIVES = {"his": "m", "her": "f", "their": "", "my": "", "our": "", "your": ""}
_CONJUNCTIONS = frozenset({"and", "&", "or", "nor", "und", "oder", "y", "et", "ve"})
_MAIDEN = frozenset({"née", "nee", "geb", "geborene", "born", "formerly"})
_CUES = _MAIDEN | frozenset("of to is was am i'm i’m married engaged related divorced wed".split())
_CONTINUATIONS = (",", "'", "’", "(", " (", " is ", " was ")
_MARKS = " \t\n,:("
_MARRIED = (["married"], ["engaged"], ["related"], ["divorced"], ["wed"])
_INTRODUCTIONS = (["name", "is"], ["this", "is"], ["i", "am"], ["i'm"], ["i’m"])
_SENTENCE_END = re.compile(r"[!?;]\s|(?<!\b[A-Z])(?<!\b[A-Z][a-z])(?<!\bMrs)\.\s|\n\s*\n")
_CLAUSE = re.compile(r" [a-z]+(?: [a-z]+){0,5} \Z")
_SAME = frozenset("is was are were be as called named known alias born aka becomes became remains".split())
_ADVERBS = frozenset("then later afterwards again now formerly".split())
_COUPLE = re.compile(r"\b(Mr|Mister|Herr|Dr|Lord|Sir)\.? (?:and|&|und) \w+\.?\s\Z")
_WINDOW = 60  # characters before and after a mention that are read
_FAR = 240  # characters over which "his" and "her" reach back
_NAMESAKES = 9  # people of one name that are told apart; each is compared with all
_REACH = 3  # mentions that "his" and "her" reach back


@dataclass(slots=True)
class Relations:
    """Mentions by the starts of their spans: those that are different people, and maiden names with their bearers."""

    opposed: dict[int, set[int]] = field(default_factory=dict)
    maiden_names: dict[int, int] = field(default_factory=dict)
    shared_family_names: dict[int, int] = field(default_factory=dict)
    family_names_first: dict[int, int] = field(default_factory=dict)  # "Hart" to "Ada" in "Hart, Ada"
    split_names: set[str] = field(default_factory=set)  # words that two people who are opposed go by

    def oppose(self, first: Span, second: Span) -> None:
        """Note that two mentions are different people."""
        a, b = (self.maiden_names.get(span.start, span.start) for span in (first, second))
        self.opposed.setdefault(a, set()).add(b)
        self.opposed.setdefault(b, set()).add(a)


def find_relations(text: str, mentions: Sequence[Mention]) -> Relations:
    """Read from the words around the mentions of people, in reading order, who is somebody else.

    Two mentions are different people where "and" joins them, where one is called a relative, friend or colleague of
    the other ("X's wife Y", "X is married to Y", "X called. Y is his wife"), or where a full name first comes up in a
    clause that has already named its subject by a part of it ("Nurse Hart saw Ada Hart").
    """
    relations = Relations()
    speaker: Span | None = None
    known_forms: set[PersonName] = set()
    previous: Span | None = None
    subject: tuple[str, ...] = ()
    for i, (span, form) in enumerate(mentions):
        begin, names = span.start, form[0]
        is_object = len(names) > 1 and len(subject) == 1 and subject[0] in names and form not in known_forms
        known_forms.add(form)
        near, subject_before, subject = previous, subject, names
        previous = span
        is_pair = near and len(names) == len(subject_before) == 1 and text[near.end : begin] == ", "
        if near and is_pair and not _find_title(text, near):
            relations.family_names_first[near.start] = begin
        if not is_object and not _follows_cue(text, begin) and not text.startswith(_CONTINUATIONS, span.end):
            continue
        start = max(near.end if near else 0, begin - _WINDOW)
        before = text[start:begin]
        words, title = _split_words(before), ""
        while words and _is_title(words[-1]):
            title = words.pop()
        words = [word.lower() for word in words]
        following = mentions[i + 1][0].start if i + 1 < len(mentions) else len(text)
        after = text[span.end : min(following, span.end + _WINDOW)]
        if near and start == near.end and not _SENTENCE_END.search(before):
            if len(words) == 1 and words[0].rstrip(".") in _MAIDEN:
                relations.maiden_names[begin] = near.start
            elif len(words) == 1 and words[0] in _CONJUNCTIONS:
                relations.oppose(near, span)
                if not title and len(names) > 1 and len(subject_before) == 1:
                    relations.shared_family_names[near.start] = begin
            elif _is_tied(words, after) or (is_object and _is_clause(before, title)):
                relations.oppose(near, span)
        for owner in (_find_owner_before(words), _find_owner_after(after)):
            if owner == "my" and speaker:
                relations.oppose(speaker, span)
            elif owner and owner != "my":
                _oppose_owners(relations, mentions, i, owner)
        if words[-2:] in _INTRODUCTIONS or words[-1:] in _INTRODUCTIONS:
            speaker = span
    return relations


def _is_title(word: str) -> bool:
    """Whether a word is a title before a name, and not what somebody is to somebody: "Sister", not "sister"."""
    return word.rstrip(".").lower() in TITLES and not (word.islower() and is_relative(word))


def _follows_cue(text: str, begin: int) -> bool:
    """Whether the word before a place may tell something about the name there."""
    earliest = max(0, begin - _WINDOW)
    return _is_cue(text[max(earliest, text.rfind(" ", earliest, max(0, begin - 1)) + 1) : begin])


@lru_cache(maxsize=4096)
def _is_cue(word: str) -> bool:
    """Whether a word right before a name may tell something about it."""
    bare = next(reversed(word.lower().strip(_MARKS).split()), "").rstrip(".")
    return bare in TITLES or bare in _CONJUNCTIONS or bare in _CUES or is_relative(bare)


def is_relative(word: str) -> bool:
    """Return whether a word in lower case says what somebody is to somebody: ``daughter``, ``mother-in-law``."""
    word = word.removesuffix("-in-law")
    if word in _RELATIVES or word.removesuffix("s") in _RELATIVES:
        return True
    return any(word.startswith(prefix) and is_relative(word.removeprefix(prefix)) for prefix in _PREFIXES)


def is_family_name(text: str, span: Span) -> bool:
    """Return whether a name in the plural is that of a family: after ``the``, or ``Mr and Mrs``."""
    starts = text[max(0, span.start - 4) : span.start], text[span.start : span.start + 4]
    return any(start.lower() == "the " for start in starts) or follows_couple_titles(text, span.start)


def follows_couple_titles(text: str, start: int) -> bool:
    """Return whether ``Mr and Mrs`` stands right before ``start``."""
    return text[start - 1 : start].isspace() and bool(_COUPLE.search(text, max(0, start - 24), start))


def make_couple_form(words: tuple[str, ...]) -> PersonName:
    """Return the form of a name after ``Mr and Mrs``: one word is the name of a family, several are the husband's."""
    return (words if len(words) > 1 else (words[0] + "s",)), ""


_open_knowledge_base = cache(KnowledgeBase.open)


@lru_cache(maxsize=4096)
def find_given_name_gender(given_name: str) -> str:
    """Return ``m`` or ``f`` for a given name that men or women bear in four of five cases, else an empty string."""
    gender = _open_knowledge_base().gender(given_name) if len(given_name) > 1 else ""
    return gender if gender in ("m", "f") else ""


@lru_cache(maxsize=4096)
def is_only_family_name(word: str) -> bool:
    """Return whether a word is known as a family name and not as a given name."""
    return {fact.part for fact in _open_knowledge_base().name_facts(word)} == {"last"}


def settle_forms(
    text: str, people: dict[PersonName, list[Span]], mentions: Sequence[Mention], relations: Relations
) -> dict[PersonName, list[Span]]:
    """The mentions by form, where "Tobias" of "Tobias and Ines Hart" has the form of Tobias Hart.

    In "Hart, Tobias", found as two mentions, the first has it too, where Tobias Hart is named in full elsewhere.
    Somebody with that given name, or with one it may be short for, who has a full name elsewhere keeps the mention. Of
    two people of one form ("Ian Hart and his son Ian Hart", "Mrs Hart and her daughter Miss Hart") the second gets a
    mark, also where the same title stands before the name again.
    """
    full = {words[0] for words, _ in people if len(words) > 1}
    form_of = {span.start: form for span, form in mentions}
    moved: dict[int, PersonName] = {}
    for start, bearer in relations.shared_family_names.items():
        (word,), gender = form_of[start]
        words = form_of[bearer][0]
        if not full & {word, *find_given_name_variants(word)} and find_given_name_gender(word):
            end = next((i for i, w in enumerate(words) if w[0] == "+"), len(words))
            moved[start] = (word, words[end - 1]), gender
    for start, given_name in relations.family_names_first.items():
        form = form_of[given_name][0] + form_of[start][0], ""
        if form in people and given_name not in relations.opposed.get(start, ()):
            moved[start] = form
    namesakes: dict[PersonName, list[tuple[int, int]]] = {}
    for start, others in relations.opposed.items():
        form = form_of[start]
        if pairs := [(start, other) for other in others if start < other and form == form_of[other]]:
            namesakes.setdefault(form, []).extend(pairs)
    for form, pairs in namesakes.items():
        relations.split_names.add(form[0][-1])
        titles = {span.start: _find_title(text, span) for span in people[form]}
        first = titles[min(pairs)[0]]
        seconds = {titles[b] for a, b in pairs if titles[a] != titles[b]} - {first}
        moved |= {start: ((*form[0], f"+{title}"), form[1]) for start, title in titles.items() if title in seconds}
        for number, start in enumerate(sorted({b for a, b in pairs if titles[a] == titles[b]}), 2):
            moved[start] = (*form[0], f"+{min(number, _NAMESAKES)}"), form[1]
    if not moved:
        return people
    out: dict[PersonName, list[Span]] = {}
    for form, spans in people.items():
        for span in spans:
            out.setdefault(moved.get(span.start, form), []).append(span)
    return out


def _find_title(text: str, span: Span) -> str:
    """The title in a mention or right before it, in lower case; empty where there is none."""
    words = (text[max(0, span.start - 12) : span.start].split()[-1:], text[span.start : span.end].split()[:1])
    return next((title for word in words if word and (title := word[0].rstrip(".").lower()) in TITLES), "")


def _split_words(text: str) -> list[str]:
    return text.replace(",", " ").replace("(", " ").replace(":", " ").split()


def _is_tied(words: Sequence[str], after: str) -> bool:
    """Whether "'s wife", "married to", "daughter of", or "'s father" after a comma and a name, tie two names."""
    if words and is_relative(words[-1]):
        return not _POSSESSIVES.keys() & words[-4:-1]
    if words in ([], ["is"], ["was"]) and after[:1] in ("'", "’"):
        return any(map(is_relative, _split_words(after)[1:4]))
    if words[-1:] == ["of"]:
        return any(map(is_relative, words[-2:-1]))
    return words[-1:] in _MARRIED or (words[-1:] == ["to"] and words[-2:-1] in _MARRIED)


def _find_owner_before(words: Sequence[str]) -> str:
    """Whose relative the words right before a name announce: ``his`` for "his wife"; empty where they name no owner."""
    if words[-1:] in (["is"], ["was"]):
        words = words[:-1]
    if not words or not is_relative(words[-1]):
        return ""
    return next((word for word in reversed(words[-4:-1]) if word in _POSSESSIVES), "")


def _find_owner_after(after: str) -> str:
    """Whose relative the words right after a name call it: ``his`` for ", his wife" and "is his younger sister"."""
    words = _split_words(after.partition(".")[0].lower())[:5]
    if words and words[0] in ("is", "was"):
        del words[0]
    elif after[:1] not in (",", "("):
        return ""
    is_owned = bool(words) and words[0] in _POSSESSIVES and any(map(is_relative, words[1:4]))
    return words[0] if is_owned else ""


def _is_clause(before: str, title: str) -> bool:
    """Whether a verb and its like are all that stands between a subject and its object."""
    gap = before[: before.rfind(title)] if title else before
    words = gap.split()
    return bool(_CLAUSE.match(gap)) and _SAME.isdisjoint(words) and not _ADVERBS.issuperset(words)


def _oppose_owners(relations: Relations, mentions: Sequence[Mention], index: int, owner: str) -> None:
    """Note that a relative is none of the people right before whom "his" or "her" can mean.

    A full name, or one with a title, that a relation introduces is new: nobody of the last few. A bare name is not the
    last.
    """
    span, form = mentions[index]
    count = _REACH if len(form[0]) > 1 or form[1] else 1
    gender = _POSSESSIVES[owner]
    for other, other_form in reversed(mentions[max(0, index - _REACH) : index]):
        if not count or span.start - other.end > _FAR:
            break
        if len(form[0]) == 1 and len(other_form[0]) > 1 and form[0][0] == other_form[0][0]:
            continue  # "Ivy is her niece" after "Ivy Hart": "her" is somebody before
        if owner == "our" and form[0][:1] == other_form[0]:
            continue  # "Ivy, our neighbour, Ivy Hart" is one
        if owner == "your" and other_form == form:
            continue  # "Is this your assistant, ma'am?" addresses her again
        if gender and (other_form[1] or find_given_name_gender(other_form[0][0])) not in ("", gender):
            continue
        relations.oppose(other, span)
        count -= 1
