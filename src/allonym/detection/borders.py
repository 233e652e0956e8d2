"""The borders of findings: words that lead to a name or follow it are no part of it, and a list is no name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from allonym.detection.languages import ENGLISH, find_other_language
from allonym.detection.lexicon import PARTICLES
from allonym.detection.listed_names import is_given_name, is_typical_name
from allonym.detection.mentions import NAME_LABELS, rests_on_chance
from allonym.detection.words import read_dictionary, read_word_list
from allonym.document import Reach, Span
from allonym.text.prose import read_number_words
from allonym.text.words import COMPOUND, find_words

SOFT = ("ORGANIZATION", "PRODUCT", "EVENT", "WORK_OF_ART", "AWARD", "LAW", "OCCUPATION", "FACILITY")
_LEAD = re.compile(
    r"(?:Hi|Hello|Hey|Dear|Cheers|Thanks|P\. ?S\.|PS|NB(?=[,:])|AOB\.)[,:]? +"
    r"|(?:esp|incl|cf|viz)\. |(?:Co|nr)\. (?=[A-Z])"
)
_NUMBERED = re.compile(r"\d{1,2}[.)] +")
_ANSWER = re.compile(r"[QA]\. ")
COUNTED = re.compile(
    r"(?i)(?:(?:meeting|conference|board|class|staff|seminar|interview|treatment|lecture) )?"
    r"(?:grade|class|form|room|seat|coach|platform|page|chapter|day|focus group|sections?|articles?|clauses?"
    r"|paragraphs?|part|schedule|speaker|footpath|dock|band|gate|block|court|pitch|desk|unit|lane|zone|aisle|shelf|ext"
    r"|key stage|log|tier|step|reviewer|referee|participant|respondent|candidate|bed|item|version|level|line|table"
    r"|figure|stage|phase|ward|bay|question|valuation|appendix|annex|build|plots?)"
    r"(?: (?:\d{1,4}(?:\.\d+)?[A-Za-z]?(?:(?:, | and | & |, and )\d{1,4}[A-Za-z]?)*|[A-Z]|[ivx]{1,4})(?:\(\w{1,4}\))*)?"
)
HYPHENS = "-‐‑"
TITLE = re.compile(
    r"(?:(?i:mrs?|ms|mx|dr|(?:a/|assoc )?prof|shri|smt|sh\.|messrs|cllrs?|engr|alhaj[ia]|hajia|councillor)|Major"
    r"|Captain|Colonel|Sergeant|Coach|Nurse|Matron|Rev(?:d|erend)?|Sr|Fr|Chief|Deputy|Sheriff|Detective|Inspector"
    r"|Ranger|Auntie|Aunty|Uncle|Grandpa|Grandma|Grandad|Granny)\.? (?=[^\W\d_a-zß-öø-ÿ])"
)
_RANK = r"W?PC|PCSO|D[CSI]|(?:Sgt|Insp)\.?"
_OFFICE_BEFORE = re.compile(
    rf"\b((?:(?:{_RANK}|(?:Cllr|Ald|Fr|Revd?|Capt|Col|Lt|Det)\.?|Sergeant|Inspector|Constable|Councillor|Alderman"
    r"|Father|Sister|Brother|Reverend|Pastor|Imam|Rabbi|Canon|Captain|Major|Colonel|Sheriff|Detective|Aunt(?:ie|y)?"
    r"|Uncle) ){1,2})\Z"
)
_RANK_BEFORE, _NAME_BEHIND = (
    re.compile(rf"\b((?:{_RANK}|Sergeant|Inspector|Constable) )\Z"),
    re.compile(r" [A-Z]"),
)
_FORM_OF_OTHERS = re.compile(r"\b((?:Frau|Herrn?) )\Z")
_LONGEST_OFFICE = 40
_ARTICLE, _ARTICLE_OF_LINE = re.compile(r"[a-z,] (The )\Z"), re.compile(r"(?:[a-z,] |\n)(The )\Z")
_INITIALS_BEFORE = re.compile(r"\bMS \Z")
"""Initials that look like a title: "MS Dhoni"; as one it has small letters, or its name has none."""
_HONOUR_AT_END = re.compile(r"(?:,? (?:Esq|[SKQ]C)\.?|[ -]ji| x{1,3})\Z")
"""What stands behind a name and is no part of it: "Pat Gunderson, Esq", "Sunita ji", a kiss."""
_PLACE_LEAD = re.compile(r"(?:number |address, |(?:the )?corner of |(?i:ward )(?=[A-Z]))")
_NUMBER_OF_PLACE = re.compile(r"\bN(?:o|r)\.? \Z")  # "No. 26 Colliery"
_DAY_LEAD = re.compile(r"an? (?=[A-Z])")
_COUNTY_AT_END = re.compile(r",? Co\.?\Z")
_LABEL_AT_END = re.compile(r"\.? ([A-Z][A-Za-z]+)\Z")
_CALLS = re.compile(r"(?:\.? No)?\.?:\s")
"""What shows that the last word of a finding calls what follows: "S. Harini Std: VII"."""
_FIELD_AT_END = re.compile(r"(?:(?: [–—-]|,)? (?:DOB|NHS|NI|MRN|Tel|Ref|ID)| [–—-] [A-Z]{2,3})\Z")
"""What begins behind a name: "Maureen Tibbs DOB", "Tom – NI"."""
_CAPITALS_BEFORE_DATE = re.compile(
    r"(?:(?!(?:JAN|FEB|MAR|APR|MAY|JUNE?|JULY?|AUG|SEPT?|OCT|NOV|DEC|MON|TUES?|WEDS?|THUR?S?|FRI|SAT|SUN) )"
    r"[A-Z]{1,4} )+(?=\d{4}\Z)"
)
"""Abbreviations of a note before a year: "TKR L 2017"."""
_VIRTUE = re.compile(rf"\b(?:{'|'.join(sorted(read_word_list('virtue_names'))).title()}) \Z")
_MONTH = re.compile(r"(?:Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)\. (?=[A-Z])")
NEXT_FIELD = re.compile(
    r"[,;.]? (?i:nhs|phone|tel(?:ephone)?|mob(?:ile)?|fax|d\.?o\.?b|e-?mail|born|ref|policy|account)\b"
)
"""What follows an address in a line: "LS6 2AB, NHS 943 476 5919"."""
_SENTENCE_END = re.compile(r"([A-Z][a-z]{2,})\. (?=[A-Z][a-z])")
_SINCE = re.compile(r"\b(?:since|in|by|from|until|till|of|before|after|to) \Z")
_JOINED = re.compile(r" (?:and|or) (?:[a-z]+|\d+)\Z")
_SHOP = re.compile(r"['’]s(?=[.,;:!?)\n]|\Z)")
_LENGTH_BEHIND = re.compile(r"(?<=\d), [a-z]+ (?:years?|months?|weeks?)\b.*\Z")
_LENGTH_AT_END = re.compile(r", \d{1,3} (?:day|week|month)s?\Z")
_HOUR, _MINUTES = re.compile(r",? \d{1,2}\Z"), re.compile(r":\d")
"""A time of day that a date was taken to end in: "December 07, 2001 5" before ":14 AM"."""
DEGREE = re.compile(
    r"(?:B\.?Sc|M\.?Sc|BA|MA|BEng|MEng|B\.?Tech|M\.?Tech|MEd|BEd|LLB|LLM|MBA|MPhil|DPhil|PhD|Hons|PGCE|BTEC|G?NVQ|HNC|HND|CIPD|GCSEs?|Matric|Abitur"
    r"|(?:Bachelor|Master)(?= of)|Diploma|(?:Postg|G)raduate (?:Diploma|Certificate))\b"
)
_SCHOOL = re.compile(r" (?:at|from) (?:the )?(?=[A-Z])")
"""What stands between a degree and who gives it: "Bachelor of Science at Hollins University"."""
_HEADED = re.compile(r"Master of .*\b(?:College|Hall|House|School)\Z")
_DEGREE_OPENS = re.compile(r"\b(?:B|M)[A-Z]?[A-Za-z]{0,3} \(\Z")
_SPECIALITIES = read_word_list("specialities")
_SUBJECT = re.compile(rf"\.?(?:,? ?\([^)]*\)?)? (?:(?:in|of) |[Ll]evel \d\b|(?i:{'|'.join(sorted(_SPECIALITIES))})\b)")
"""What follows a degree, unlike the rest of a firm's name: "in Law", "(Hons) Civil Engineering"."""
_UNITS = read_word_list("unit_words")
_FIELDS = read_word_list("form_fields")
_LEGAL_FORMS = read_word_list("legal_forms")
_CHAT = read_word_list("chat_words")
OFFICER = re.compile(rf"(?:{_RANK}|Sergeant)\b[. ]*(?:\d{{2,6}} +)?(?=[A-Z])")
_NEXT_SENTENCE = re.compile(r" (?:Ltd|Limited|LLP|Inc|plc|PLC|GmbH)(\.) ([A-Z][a-z]+)\Z")
_UNTRIMMED = ("WORK_OF_ART", "LAW", "EVENT", "AWARD", "OCCUPATION", "AGE", "NATIONALITY")
"""Labels of which small words may be the beginning."""
_PLACES_AND_BODIES = ("FACILITY", "LOCATION", "CITY", "ORGANIZATION")
_COMPASS = frozenset(
    "north south east west northern southern eastern western central upper lower inner outer nth sth".split()
)
_HANDLE_BEFORE, _HANDLE_AFTER = re.compile(r"(?<!\w)[^\W_]\w*_\Z"), re.compile(r"_\w{0,29}[^\W_]")
_DOTTED_BEFORE = re.compile(r"(?<![\w.@/])(?:[a-z]+\.)+\Z")
_DOTTED_AFTER = re.compile(r"(?:\.[a-z]{1,20}){1,2}(?![\w.@/])")
_LONGEST_HANDLE, _SHORTEST_WORD = 30, 3
_QUOTES = (' ("") ', " ('') ", " (“”) ", " (‘’) ", ' "" ', " '' ", " () ", " “” ", " ‘’ ")
_GIVEN_INITIALS = re.compile(r"(?:[A-Z]\.[ -]?){1,3}")
_OPENS_FIELD = re.compile(r"(?:\A|[\n\t]|: |  )\Z")
_LAST_PART = re.compile(r", ([^,\n]+)\Z")
_TWO_SENTENCES = re.compile(r"([^\W\d_][\w'’-]{2,})\. ([^\W\d_][\w'’-]{2,})")
_PAIR = re.compile(r"([^\W\d_][\w'’-]+), ([^\W\d_][\w'’-]+)")
SMALL = frozenset({"of", "and", "or", "the", "&", "for", "in", "to"})
_SCOTS = frozenset("o wi tae fae frae fur doon oot wee aye".split())


def join_legal_forms(text: str, findings: Sequence[Span]) -> list[Span]:
    """Return the findings, with a firm that is named like a person and its legal form as one: "Kirby Mellor LLP"."""
    forms = {span for span in findings if text[span.start : span.end].rstrip(".").lower() in _LEGAL_FORMS}
    if not forms:
        return list(findings)
    out: list[Span] = []
    for span in sorted(findings):
        if (
            out
            and span in forms
            and out[-1].label in ("PERSON", "ORGANIZATION")
            and text[out[-1].end : span.start] == " "
        ):
            out[-1] = replace(out[-1], end=span.end, label="ORGANIZATION")
        else:
            out.append(span)
    return out


def join_hyphenated_names(text: str, findings: Sequence[Span]) -> list[Span]:
    """Return the findings, with two that only a hyphen parts as one: "Tobias Lindqvist" and "-Mensah"."""
    if not any(text[span.start] in HYPHENS for span in findings):
        return list(findings)
    out: list[Span] = []
    for span in sorted(findings):
        if (
            out
            and span.start == out[-1].end
            and text[span.start] in HYPHENS
            and text[span.start + 1 : span.start + 2].isalpha()
        ):
            out[-1] = replace(out[-1], end=span.end)
        else:
            out.append(span)
    return out


def join_parts_of_people(text: str, findings: Sequence[Span]) -> list[Span]:
    """Return the findings, with the parts of a name as one: ``Ada "Bee" Brook``, and "Brook, Ada" in a field."""
    out: list[Span] = []
    for span in sorted(findings):
        before = out[-1] if out else span
        if span.label != before.label or span.label != "PERSON" or before is span:
            out.append(span)
        elif (
            len(out) > 1
            and out[-2].label == "PERSON"
            and text[out[-2].end : before.start] + text[before.end : span.start] in _QUOTES
            and not any(map(str.isspace, text[before.start : before.end]))
        ):
            out[-2:] = [replace(out[-2], end=span.end)]
        elif (
            text[before.end : span.start] == ", "
            and _OPENS_FIELD.search(text, max(0, before.start - 2), before.start)
            and text[span.end : span.end + 2] != ", "
            and " " not in text[before.start : before.end]
            and _is_filed(text[before.start : before.end], text[span.start : span.end])
        ):
            out[-1] = replace(before, end=span.end)
        else:
            out.append(span)
    return out


def _is_filed(family: str, given: str) -> bool:
    """Whether two names are one as registers have it: "BROOK, Ada", "Brook, A. B.", or "Brook, Ada" by lists."""
    is_written_so = (family.isupper() and not given.isupper()) or _GIVEN_INITIALS.fullmatch(given) is not None
    return is_written_so or (not is_given_name(family) and is_given_name(given.split()[0]))


def split_listed_people(text: str, findings: Sequence[Span]) -> Iterator[Span]:
    """Yield the findings, with two given names of a list or of two sentences as two people: "Farah, Benedikt"."""
    for span in findings:
        pair = _PAIR.fullmatch(text, span.start, span.end) if span.label == "PERSON" else None
        ended = _TWO_SENTENCES.fullmatch(text, span.start, span.end) if span.label == "PERSON" else None
        ended = None if _MONTH.match(text, span.start, span.end) else ended
        if ended and (ended[1] == ended[2] or is_given_name(ended[1]) or is_typical_name(ended[1].lower())):
            yield replace(span, end=ended.end(1))
            yield replace(span, start=ended.start(2))
            continue
        if (
            pair
            and (text.endswith(", ", 0, span.start) or text.startswith(", ", span.end))
            and is_given_name(pair[1])
            and is_given_name(pair[2])
        ):
            yield replace(span, end=pair.end(1))
            yield replace(span, start=pair.start(2))
        else:
            yield span


def include_leading_words(text: str, findings: Sequence[Span], language: str) -> list[Span]:
    """Return the findings, with the office of a person and the article of a body or place as part of the name.

    "Cllr", "Father", "PC" and "Auntie" narrow down who it is, and so does "Frau" in English; forms of courtesy and
    learning ("Mr", "Dr") do not. "The" with a capital inside a sentence, or in a line that is the name, belongs to it.
    :func:`adjust_borders` has taken all titles away, so that names are compared without them.

    Args:
        text: the text.
        findings: all of it.
        language: of the policy, ISO 639.
    """
    out = []
    others = Reach((span.start, span.end) for span in findings)
    for span in findings:
        near, before = max(0, span.start - _LONGEST_OFFICE), None
        if span.label == "PERSON":
            before = _OFFICE_BEFORE.search(text, near, span.start)
            if not before and (form := _FORM_OF_OTHERS.search(text, near, span.start)):
                is_foreign = language == ENGLISH and not find_other_language(text, span.start)
                before = form if is_foreign else None
        elif span.label == "EMPLOYEE_ID" and _NAME_BEHIND.match(text, span.end):
            before = _RANK_BEFORE.search(text, near, span.start)
        elif span.label in _PLACES_AND_BODIES and rests_on_chance(span):
            is_line = text[span.end : span.end + 1] in ("", "\n")
            before = (_ARTICLE_OF_LINE if is_line else _ARTICLE).search(text, near, span.start)
        is_free = before and not others.touches(before.start(1), span.start)
        out.append(replace(span, start=before.start(1)) if before and is_free else span)
    return out


def adjust_borders(text: str, span: Span, is_interview: bool) -> tuple[int, int]:
    start, end = span.start, span.end
    if span.label in NAME_LABELS and _SHOP.match(text, end):
        end += 2
    if span.label == "PERSON":
        if _INITIALS_BEFORE.search(text, max(0, start - 8), start) and not text[start:end].isupper():
            start -= len("MS ")
        while (title := TITLE.match(text, start, end)) and (title[0] != "MS " or text[start:end].isupper()):
            start = title.end()
        if (
            " " not in text[start:end]
            and (virtue := _VIRTUE.search(text, max(0, start - 16), start))
            and not is_given_name(text[start:end])
        ):
            start = virtue.start()
        line, _, rest = text[start:end].partition("\n")
        if rest and (
            text[end : end + 3] in (" – ", " - ")
            or all(word in read_dictionary() or word in _FIELDS for word in find_words(rest.lower()))
        ):
            end = start + len(line)  # the next line is another field
        if (month := _MONTH.match(text, start, end)) and _SINCE.search(text, max(0, start - 8), start):
            start = month.end()
        if (ended := _SENTENCE_END.match(text, start, end)) and ended[1].lower() in read_dictionary():
            start = ended.end()
    if span.label == "PERSON":
        for ending in (_FIELD_AT_END, _HONOUR_AT_END):
            if match := ending.search(text, start, end):
                end = match.start()
    elif span.label in ("CITY", "LOCATION", "REGION") and (county := _COUNTY_AT_END.search(text, start, end)):
        end = county.start()
    if (
        _CALLS.match(text, end)
        and text[start - 1 : start] not in ("", "\n")
        and (called := _LABEL_AT_END.search(text, start, end))
        and (called[1].lower() in _FIELDS or called[1].lower() in _UNITS)
    ):
        end = called.start()
    if span.label == "AGE" and (length := _LENGTH_BEHIND.search(text, start, end)):
        end = length.start()
    if span.label == "DATE" and rests_on_chance(span) and (head := _CAPITALS_BEFORE_DATE.match(text, start, end)):
        start = head.end()
    if span.label != "DATE":
        while start < end and text[start] in ".,;:) ":
            start += 1
        while start < end and text[end - 1] in ",;:( ":
            end -= 1
        start = _skip_field(text, start, end)
        if text[start - 1 : start] in ("", "\n") and (numbered := _NUMBERED.match(text, start, end)):
            start = numbered.end()
    for lead in (_LEAD, _ANSWER) if is_interview else (_LEAD,):
        if match := lead.match(text, start, end):
            start = match.end()
    if span.label == "STREET_ADDRESS" and (field := NEXT_FIELD.search(text, start, end)):
        end = field.start()
    if (
        span.label in ("STREET_ADDRESS", *_PLACES_AND_BODIES)
        and text[start].isdigit()
        and (numbered := _NUMBER_OF_PLACE.search(text, max(0, start - 5), start))
    ):
        start = numbered.start()
    if span.label == "STREET_ADDRESS" and (opening := _PLACE_LEAD.match(text, start, end)):
        start = opening.end()
    if span.label in ("ORGANIZATION", "PRODUCT") and (joined := _JOINED.search(text, start, end)):
        end = joined.start()
    if span.label in ("PERSON", "STREET_ADDRESS") and (officer := OFFICER.match(text, start, end)):
        start = officer.end()
    if span.label == "ORGANIZATION" and (sentence := _NEXT_SENTENCE.search(text, start, end)):
        end = sentence.start(1) if sentence[2].lower() in read_dictionary() else end
    if span.label not in ("DATE", "STREET_ADDRESS"):
        start, end = _trim_ordinary_words(text, start, end, span.label)
    if span.label == "DATE":
        if rests_on_chance(span) and (opening := _DAY_LEAD.match(text, start, end)):
            start = opening.end()
        parts = text[start:end].split(", ")
        if len(parts) > 1 and not any(map(str.isdigit, parts[0])) and parts[0].islower():
            start += len(parts[0]) + 2
        end -= 3 if text.endswith(" of", start, end) else 0
        if length := _LENGTH_AT_END.search(text, start, end):
            end = length.start()
        if (hour := _HOUR.search(text, start, end)) and _MINUTES.match(text, end):
            end = hour.start()
    elif (
        span.label in SOFT
        and text.startswith("Hons)", start, end)
        and _DEGREE_OPENS.search(text, max(0, start - 10), start)
    ):
        start = end
    elif span.label in SOFT and (degree := DEGREE.match(text, start, end)):
        comma = text.find(", ", degree.end(), end)
        if comma >= 0:
            start = comma + 2
        elif school := _SCHOOL.search(text, degree.end(), end):
            start = school.end()
        elif degree.end() == end or (_SUBJECT.match(text, degree.end(), end) and not _HEADED.match(text, start, end)):
            start = end
    if start < end and span.label in NAME_LABELS:
        start, end = _grow_handle(text, start, end)
    return start, end


def part_verb_from_name(text: str, span: Span) -> Span:
    """A finding that opens a line or a field with a verb before a given name is the name: "Knows Margaret"."""
    verb, _, name = text[span.start : span.end].partition(" ")
    is_verb = verb[:1].isupper() and verb.endswith("s") and verb[:-1].lower() in read_dictionary()
    opens = text[max(0, span.start - 2) : span.start].endswith(("\n", ": ")) or not span.start
    if (
        opens
        and is_verb
        and not is_typical_name(verb.lower())
        and is_given_name(name)
        and span.label in ("PERSON", *SOFT)
    ):
        return replace(span, start=span.end - len(name), label="PERSON")
    return span


def _grow_handle(text: str, start: int, end: int) -> tuple[int, int]:
    """The borders of a name with the rest of the handle that it stands in: "mossyjim_72", "hussein.k"."""
    first = max(0, start - _LONGEST_HANDLE)
    before, after = _HANDLE_BEFORE.search(text, first, start), _HANDLE_AFTER.match(text, end)
    if text[start:end].islower():  # a dot behind a capital ends a sentence, and so does one before an ordinary word
        before = before or _DOTTED_BEFORE.search(text, first, start)
        dotted = _DOTTED_AFTER.match(text, end)
        if dotted and all(len(part) < _SHORTEST_WORD or is_typical_name(part) for part in dotted[0][1:].split(".")):
            after = after or dotted
    return before.start() if before else start, after.end() if after else end


def _skip_field(text: str, start: int, end: int) -> int:
    """Where a finding starts without the name of the field before it: "Department: Legal" at the start of a line."""
    if text[start - 1 : start] not in ("", "\n") or (colon := text.find(": ", start, end)) < 0:
        return start
    is_field = all(word in _FIELDS or word in _UNITS or word in SMALL for word in find_words(text[start:colon].lower()))
    return colon + 2 if is_field else start


def _trim_ordinary_words(text: str, start: int, end: int, label: str) -> tuple[int, int]:
    """The borders of a name without words of a chat, of the sentence or of the place in it that stand at its ends."""
    words = list(COMPOUND.finditer(text, start, end))
    i, j = 0, len(words)
    has_capital = any(word[0][0].isupper() for word in words)
    while j - i > 1 and (
        _is_chat(words[i][0], label)
        or (has_capital and label not in _UNTRIMMED and _is_ordinary_lead(words[i][0], label))
    ):
        i += 1
    while j - i > 1 and (
        _is_chat(words[j - 1][0], label)
        or words[j - 1][0] in _SCOTS
        or (
            has_capital
            and (label == "CITY" or (label == "PERSON" and is_given_name(words[i][0])))
            and text[words[j - 1].start() - 1] == " "
            and _is_ordinary_end(words[j - 1][0], label)
        )
    ):
        j -= 1
    if i:
        start = words[i].start()
    if j < len(words):
        end = words[j - 1].end()
    part = _LAST_PART.search(text, start, end)
    if part and label in _PLACES_AND_BODIES:
        is_ordinary = all(
            (word.islower() and word in read_dictionary()) or (label == "ORGANIZATION" and word.lower() in _UNITS)
            for word in find_words(part[1])
        )
        if is_ordinary or COUNTED.fullmatch(part[1]):
            end = part.start()
    return start, end


def _is_chat(word: str, label: str) -> bool:
    return word in _CHAT and not (label == "PERSON" and is_typical_name(word))


def _is_ordinary_end(word: str, label: str) -> bool:
    is_listed = word == "branch" or (word in read_dictionary() and word not in PARTICLES | read_number_words())
    return word.islower() and is_listed and not (label == "PERSON" and is_typical_name(word))


def _is_ordinary_lead(word: str, label: str) -> bool:
    is_plain = word.islower() and word not in _COMPASS and word not in SMALL and word not in PARTICLES
    is_listed = word in read_dictionary() or word in _SCOTS
    return is_plain and is_listed and not (label == "PERSON" and is_typical_name(word))
