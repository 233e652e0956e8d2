"""One verdict for each surface of a document: what counts, with which borders and with which label.

Detectors give chances, mention by mention. Here, where the findings of all of them are known, those that rest on a
chance (the tagger's, and the repeats of names) are weighed by what identifies:

- Words that lead to a name or follow it are no part of it: ``Hi Bram``, ``P.S. Pip``, ``first day, 2 September``.
- Departments, degrees, things that are counted (``section 6``, ``Year 5``) and names of tests identify nobody.
- A word that the text also writes in small letters is an ordinary word, unless one of its mentions is likely to be a
  name. An occupation of one word (``doctor``) identifies where the text says of somebody that this is what they are.
- All mentions of a surface have one label: that with the most chances, summed over the mentions. A part of a name of
  several words counts half.

Findings of rules are not weighed: a valid number is one, whatever stands elsewhere.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace

from allonym.detection.borders import (
    DEGREE,
    NEXT_FIELD,
    OFFICER,
    SMALL,
    SOFT,
    TITLE,
    adjust_borders,
    join_hyphenated_names,
    join_legal_forms,
    join_parts_of_people,
    part_verb_from_name,
    split_listed_people,
)
from allonym.detection.clinical import are_clinical_words, is_clinical_note
from allonym.detection.listed_names import has_listed_name, is_listed_firm, is_typical_name
from allonym.detection.mentions import NAME_LABELS, is_written_with_care, rests_on_chance, uses_capitals
from allonym.detection.nobody import (
    CERTAIN,
    FAINT,
    FIELDS,
    FUNCTION,
    LABEL_LENGTH,
    LANGUAGE_LEVEL,
    LIKELY,
    NEARLY,
    OPENS,
    STREET_OR_YEAR,
    SURE,
    UNITS,
    VERSION,
    calls_number,
    identifies_nobody,
    is_titled,
    names_number,
)
from allonym.detection.words import read_dictionary, read_ordinary_words, read_word_list
from allonym.document import Document, Span
from allonym.labels import Taxonomy
from allonym.text.words import COMPOUND, WORD, find_words

_THINGS = ("PRODUCT", "EVENT", "WORK_OF_ART", "AWARD", "LAW")
_NAMES_AND_THINGS = ("PERSON", "ORGANIZATION", "PRODUCT", "FACILITY", "EVENT")
_PLAIN_IF_CAREFUL = (*_THINGS, "ORGANIZATION", "FACILITY", "LOCATION", "CITY")
_CALLING = 0.9
"""Chance below which an occupation counts only where the text says that somebody has it."""
_PROPER_NAMES = (*NAME_LABELS, "CITY", "FACILITY", "LAW")
_DIGITS = read_word_list("digits")
_EMPLOYED = re.compile(r"\b(?:from|for|with) \Z")
_PART, _FIRM = 0.5, 1.5
"""Weights of a name of several words for the label of each of them; of a firm with a legal form, for its first word."""
_ANSWERS = re.compile(r"(?m)^([QA])\. ")
_POSTAL_NEXT = re.compile(r" \d{5}\b")
_ATTRIBUTED = re.compile(
    r"(?i)(?:(?:\b(?:am|is|are|was|were|be|been|being|became|become|becoming)|['’](?:s|m|re)) (?:[\w-]+ ){0,3}"
    r"|\b(?:as|former|ex|retired|turned|unemployed|trained|qualified)[ -](?:an? )?|,\s*an? |\b(?:and|or) an? "
    r"|\b(?:occupation|job|profession|position|post|title|trade|career)\b[^\n]{0,4}[: ]\s*)\Z"
)
_DETERMINED = re.compile(r"(?i)\b(?:the|our|this|that|its|your|their|my|each|any|said|an?) \Z")
_BODIES = read_word_list("bodies")
_JOINT_BEFORE = re.compile(r"(?:[@_/\\#=]|\w[.:])\Z")
_JOINT_AFTER = re.compile(r"[@_/\\]|[.:]\w")
"""What joins a word to others in an address, a path or code."""
_PRAISE = frozenset("bad fine good great lovely nice poor".split())
_OPENING_LENGTH = 40  # characters of a speaker's label, and of what opens a turn, at most
_OPENS_TURN = re.compile(r"(?:\A|\n|: |(?i:thank you for calling|good (?:morning|afternoon|evening)),? )\Z")
_ANSWERING = re.compile(r"[,.]? this is (?=[A-Z])|[,.] (?i:how (?:can|may) (?:i|we) help)")
_EVERYBODY = ("@channel", "@here", "@everyone", "@all")
_CODE = re.compile(r"[A-Z]{1,3}\d{1,2}")
"""A speaker's label that names nobody: "P4"."""
_AND = re.compile(r"(?:,|,? (?:and|or)) (?:an? )?")
_LEGAL_FORMS = read_word_list("legal_forms")
_INTERJECTIONS = read_word_list("interjections")
_COMMON = read_word_list("callings") | read_word_list("roles")
_EVERYDAY = read_word_list("everyday_words")
_ACRONYMS = read_word_list("acronyms")
_DAY = "(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day"
_FEAST = "(?:Christmas|Xmas|Easter|Halloween|Thanksgiving|Diwali|Ramadan|Hanukkah|New Year)"
_RECURRING = re.compile(
    rf"\b(?:(?i:every|each|most|alternate) (?:other )?{_DAY}s?|(?<![A-Z] ){_DAY}s|{_DAY} ?(?:to|-|–|through) ?{_DAY}"
    rf"|(?i:(?:the )?(?:first|second|third|fourth|last)) {_DAY} (?:of|in) (?:the|each|every) month"
    rf"|(?i:since|before|after|until|till?|by|over|around|at|last|next|this|every) (?:the )?{_FEAST}"
    r"(?!,? (?:Eve|Day|Sunday|Monday|Friday|Saturday|(?:of )?(?:19|20)\d\d)\b)"
    rf"|{_FEAST} (?=(?i:part(?:y|ies)|lights?|fayre|fair|lunch|dinner|cards?|trees?|presents?|holidays?|break"
    r"|bonus|meal|closure|concert|shopping|period|leave|jumper|raffle|term|eggs?|sales?)\b))\b"
)
"""Days and feasts that come again and again: they place nothing in time, or only before and after one another."""
_SCHOOL_YEAR = re.compile(r"(?:Year|Grade|Class|Key Stage) \d{1,2}")
_DAY_OR_FEAST = re.compile(rf"{_DAY}|{_FEAST}")
_AROUND = 30  # characters on both sides of a day or feast that may say that it recurs


def weigh_findings(document: Document, findings: Sequence[Span]) -> list[Span]:
    """Drop the findings that identify nobody, and take away the words at their ends that are no part of a name.

    Neither is done to a finding with another right beside it, for the two may be one name.
    """
    text = document.text
    findings = [span for span in findings if not (span.label == "DATE" and _recurs(text, span))]
    codes = {text[slice(*turn.speaker)] for turn in document.turns if turn.speaker is not None}
    labels_of_nobody = {*filter(_CODE.fullmatch, codes), *_EVERYBODY}
    findings = [
        span
        for span in findings
        if (text[span.start : span.end] not in labels_of_nobody or span.source.startswith("lexicon:"))
        and not _is_plain_place(text, span)
    ]
    findings = join_parts_of_people(text, join_legal_forms(text, join_hyphenated_names(text, findings)))
    if not any(map(rests_on_chance, findings)):
        return list(findings)
    is_interview = len(set(_ANSWERS.findall(text))) == 2
    starts = {s.start for s in findings if text[s.start - 1 : s.start] == " "}
    ends = {s.end for s in findings if text[s.end : s.end + 1] == " "}
    people = [s for s in findings if s.label == "PERSON"]
    names = {text[s.start : s.end] for s in people if is_titled(text, s)}
    names |= {text[s.start : s.end].split()[-1] for s in people if " " in text[s.start : s.end] and s.score >= SURE}
    ends_of_people = {s.end for s in people}
    weighed: list[Span] = []
    selected: list[Span] = []
    for span in split_listed_people(text, findings):
        if _is_rank(text, span) or (
            text[span.start : span.end] == "MD"
            and span.start - len(", ") in ends_of_people
            and not _POSTAL_NEXT.match(text, span.end)
        ):
            continue  # "Hannah Brightwater, MD"
        is_beside = span.end + 1 in starts or span.start - 1 in ends
        is_apart = any(p.match(text, span.start, span.end) for p in (DEGREE, VERSION, LANGUAGE_LEVEL))
        is_apart |= span.label == "STREET_ADDRESS" and NEXT_FIELD.search(text, span.start, span.end) is not None
        is_apart = is_apart or calls_number(text, span.start, span.end, span.label)
        is_apart = is_apart or names_number(text, span.start, span.end, span.label)
        if not rests_on_chance(span) or (is_beside and not is_apart):
            selected.append(span)
            continue
        span = _correct_label(text, span)
        start, end = adjust_borders(text, span, is_interview)
        if start < end and (text[start:end] in names or not identifies_nobody(text, start, end, span)):
            weighed.append(span if (start, end) == (span.start, span.end) else replace(span, start=start, end=end))
    is_careful = is_written_with_care(text, [turn.start for turn in document.turns])
    return selected + _drop_ordinary_words(text, weighed, selected, is_careful)


def _correct_label(text: str, span: Span) -> Span:
    """An officer whose rank was taken for a firm is a person; a listed firm is neither a person nor a town.

    One word behind "from" or "for" is no address, either: "her support worker from Mind".
    """
    span = part_verb_from_name(text, span)
    surface = text[span.start : span.end]
    if span.label == "ORGANIZATION" and (officer := OFFICER.match(surface)):
        name = surface[officer.end() :]
        if name.isalpha() and name.lower() not in read_dictionary():
            return replace(span, label="PERSON")
    if span.label in ("PERSON", "CITY", "PRODUCT") and not is_titled(text, span) and is_listed_firm(surface):
        return replace(span, label="ORGANIZATION")
    if (
        span.label == "STREET_ADDRESS"
        and surface.isalpha()
        and _EMPLOYED.search(text, max(0, span.start - 8), span.start)
    ):
        return replace(span, label="ORGANIZATION")
    return span


def give_one_label(text: str, findings: Iterable[Span], taxonomy: Taxonomy) -> list[Span]:
    """Give all mentions of a name that rest on a chance the label that has the most chances in the whole document."""
    findings = list(findings)
    names = [
        s
        for s in findings
        if s.label == "PERSON"
        or any(taxonomy.within(s.label, name) for name in NAME_LABELS[1:])
        or (s.label == "OCCUPATION" and " " in text[s.start : s.end])  # a word may be a name here and a trade there
    ]
    surfaces = {s: text[s.start : s.end].casefold() for s in names if rests_on_chance(s) or s.label == "PERSON"}
    votes: defaultdict[str, defaultdict[str, float]] = defaultdict(lambda: defaultdict(float))
    for span, surface in surfaces.items():
        votes[surface][span.label] += span.score
        if span.label == "PERSON" and _answers_call(text, span):
            votes[surface]["ORGANIZATION"] += len(surfaces)
    for span, surface in surfaces.items():
        words = surface.split()
        for word in (words if span.label == "PERSON" else words[:1]) if len(words) > 1 else ():
            if word in votes:
                is_firm = span.label == "ORGANIZATION" and words[-1].rstrip(".") in _LEGAL_FORMS
                votes[word][span.label] += (_FIRM if is_firm else _PART) * span.score
    labels = {s: min(v, key=lambda name: (-v[name], name)) for s, v in votes.items() if len(v) > 1}
    return [replace(s, label=labels.get(surfaces.get(s, ""), s.label)) if rests_on_chance(s) else s for s in findings]


def _answers_call(text: str, span: Span) -> bool:
    """Whether a name of several words is a firm that somebody answers for: "Pike Vandermolen, this is Ada speaking"."""
    first, _, rest = text[span.start : span.end].partition(" ")
    before = text[max(0, span.start - _OPENING_LENGTH) : span.start]
    is_opening = bool(_OPENS_TURN.search(before) and _ANSWERING.match(text, span.end))
    return bool(rest) and is_opening and not is_typical_name(first.lower()) and not is_titled(text, span)


def _is_plain_place(text: str, span: Span) -> bool:
    """Whether a finding is an address in small letters, where the text has capitals: "by ward for", "12 pk yr"."""
    surface = text[span.start : span.end]
    is_unlikely = span.label == "STREET_ADDRESS" and rests_on_chance(span) and span.score < SURE
    is_plain = surface.replace(" ", "").isalnum() and not STREET_OR_YEAR.search(surface)
    is_numbered = any(map(str.isdigit, surface)) and (span.score >= LIKELY or not is_plain)
    is_numbered |= surface.startswith("number ")
    return is_unlikely and surface.islower() and not is_numbered and uses_capitals(text)


def _is_rank(text: str, span: Span) -> bool:
    """Whether a finding is a rank or a title before a number or name: "PC 2217 Lacey", "Deputy Crum"."""
    if not rests_on_chance(span):
        return False
    officer, title = OFFICER.match(text, span.start), TITLE.match(text, span.start)
    is_title = title is not None and span.end in (title.end() - 1, title.end() - 2)
    return is_title or (officer is not None and span.end <= officer.end())


def _recurs(text: str, span: Span) -> bool:
    """Whether a date is a day or feast that comes again and again, or a year of a school."""
    if _SCHOOL_YEAR.fullmatch(text, span.start, span.end):
        return True
    if not _DAY_OR_FEAST.search(text, span.start, span.end):
        return False
    near = _RECURRING.finditer(text, max(0, span.start - _AROUND), span.end + _AROUND)
    return any(phrase.start() <= span.start and span.end <= phrase.end() for phrase in near)


def _drop_ordinary_words(text: str, findings: list[Span], others: list[Span], is_careful: bool) -> list[Span]:
    """The findings without surfaces that are ordinary words of this text, judged by all of their mentions together.

    A word is ordinary where it stands in small letters, but not within an address, a path or one of the ``others``.
    """
    has_capitals = uses_capitals(text)
    covered = bytearray(len(text))
    for span in (*findings, *others):
        covered[span.start : span.end] = b"\1" * (span.end - span.start)
    plain = (m for m in COMPOUND.finditer(text) if m[0].islower() and not covered[m.start()])
    small = {
        m[0]
        for m in plain
        if not _JOINT_BEFORE.search(text, max(0, m.start() - 2), m.start()) and not _JOINT_AFTER.match(text, m.end())
    } | _INTERJECTIONS
    is_clinical = is_clinical_note(text)
    meant = _find_attributed_occupations(text, findings)
    mentions: defaultdict[tuple[str, bool], list[Span]] = defaultdict(list)
    for span in findings:
        mentions[text[span.start : span.end].casefold(), _is_common_calling(text, span)].append(span)
    dropped: set[Span] = set()
    for (surface, is_common_calling), spans in mentions.items():
        words = find_words(surface)
        if is_common_calling:
            is_unsure = max(span.score for span in spans) < _CALLING
            if (len(words) < 2 or is_unsure) and meant.isdisjoint(spans):
                dropped.update(spans)
            continue
        if not has_capitals:
            continue
        opens = all(OPENS.search(text, max(0, s.start - 6), s.start) for s in spans)
        is_shouted = all(text[s.start : s.end].isupper() for s in spans)
        is_opening_word = len(words) == 1 and words[0].isalpha() and opens and not is_shouted
        is_nameless = is_opening_word and words[0] in read_dictionary() and not has_listed_name(words)
        is_fragment = is_nameless and all(s.label == "PERSON" and text[s.end : s.end + 1] in ".:;" for s in spans)
        is_opening = is_opening_word and (words[0] in read_ordinary_words() or words[0] in FUNCTION or is_fragment)
        is_ordinary = is_opening or (words and all(word in small or word in SMALL for word in words))
        chance = max(span.score for span in spans)
        is_small = all(text[s.start : s.end].islower() for s in spans)
        is_listed = has_listed_name(words) or (not is_small and any(map(is_typical_name, words)))
        is_faint = (
            chance < (LIKELY if is_small or is_opening_word else FAINT)
            and (is_careful or not is_small)
            and all(s.label in _PROPER_NAMES for s in spans)
            and _DIGITS.isdisjoint(words)
            and not is_listed
            and not any(
                _stands_alone(text, s) or not {"#", "@"}.isdisjoint(text[max(0, s.start - 1) : s.end]) for s in spans
            )
        )
        is_guess = is_opening_word and chance < LIKELY and not is_listed
        is_phrase = (
            opens
            and len(words) > 1
            and chance < CERTAIN
            and all(text[s.start + 1 : s.end].islower() and s.label in _NAMES_AND_THINGS for s in spans)
            and all(word in read_dictionary() or word in SMALL or word in _PRAISE for word in words)
            and (words[0] in _PRAISE or (words[0] in read_ordinary_words() and not has_listed_name(words[:1])))
        )
        is_abbreviation = is_shouted and surface.isalpha() and all(s.label in SOFT for s in spans)
        is_term = chance < SURE and len(words) == 1 and _is_defined_term(text, words[0], spans)
        is_heading = (
            is_shouted and chance < SURE and all(word in UNITS or word in read_ordinary_words() for word in words)
        )
        is_headline = (
            is_shouted
            and chance < NEARLY
            and all(word in read_dictionary() or word in UNITS or word in read_ordinary_words() for word in words)
            and not has_listed_name(words)
            and not any(c.islower() for s in spans for c in _read_line(text, s.start))
        )
        is_plain = (
            is_small
            and chance < SURE
            and all(s.label in (_PLAIN_IF_CAREFUL if is_careful else _THINGS) for s in spans)
            and all(word in read_dictionary() or word.removesuffix("s") in read_dictionary() for word in words)
        )
        is_clinical_word = (
            is_clinical
            and chance < CERTAIN
            and are_clinical_words(WORD.findall(surface))
            and not (words and has_listed_name(words) and any(s.label == "PERSON" for s in spans))
        )
        if (
            is_clinical_word
            or is_faint
            or is_plain
            or is_phrase
            or is_headline
            or (is_careful and (is_guess or is_heading or is_term))
        ):
            dropped.update(spans)
        if is_abbreviation and chance < LIKELY and (is_careful or surface.upper() in _ACRONYMS):
            dropped.update(spans)
        is_noun = is_fragment and words[0] in read_ordinary_words()
        bound = NEARLY if is_noun else CERTAIN if opens else LIKELY
        if is_ordinary and not _DIGITS.issuperset(words) and chance < bound:
            dropped.update(spans)
    return [span for span in findings if span not in dropped]


def _read_line(text: str, place: int) -> str:
    """The line of a place, as far as a heading is long."""
    start = text.rfind("\n", max(0, place - LABEL_LENGTH), place) + 1 or max(0, place - LABEL_LENGTH)
    end = text.find("\n", place, place + LABEL_LENGTH)
    return text[start : end if end >= 0 else place + LABEL_LENGTH]


def _stands_alone(text: str, span: Span) -> bool:
    """Whether a finding is a line of its own, as initials under a letter are."""
    return text[span.start - 1 : span.start] == "\n" and text[span.end : span.end + 1] in ("\n", "")


def _is_defined_term(text: str, word: str, spans: Sequence[Span]) -> bool:
    """Whether all mentions have an article and name a body, a party or a thing: "the Committee", "our Nation"."""
    is_general = word in _BODIES or word in UNITS or word in FIELDS or word in read_ordinary_words()
    return is_general and all(_DETERMINED.search(text, max(0, s.start - 8), s.start) for s in spans)


def _find_attributed_occupations(text: str, findings: Sequence[Span]) -> set[Span]:
    """The occupations that the text says somebody has: "he is a cook", and in a list, "... and gardener"."""
    out: set[Span] = set()
    end = -1
    for span in sorted(s for s in findings if s.label == "OCCUPATION"):
        continues = end >= 0 and _AND.fullmatch(text, end, span.start)
        end = -1
        if continues or _ATTRIBUTED.search(text, max(0, span.start - 60), span.start):
            out.add(span)
            end = span.end
    return out


def _is_common_calling(text: str, span: Span) -> bool:
    """Whether a finding is an occupation as anybody may have it, or the heading "REFEREES"."""
    if span.label != "OCCUPATION":
        return False
    surface = text[span.start : span.end]
    word = surface.lower().removesuffix("'s").removesuffix("’s")
    forms = {word, word.removesuffix("s")}
    is_alone = text[span.start - 1 : span.start] == text[span.end : span.end + 1] == "\n"
    is_known = not all(forms.isdisjoint(words) for words in (_COMMON, _EVERYDAY, read_ordinary_words()))
    is_heading = surface.isupper() and (is_alone or span.score < _CALLING)
    return is_known or surface.islower() or is_heading
