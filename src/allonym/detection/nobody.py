"""Findings that identify nobody: what a finding holds and what stands around it shows that it is no name.

Each is judged by itself; :mod:`allonym.detection.verdict` judges the mentions of a whole document together.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from allonym.detection.borders import (
    COUNTED,
    SMALL,
    SOFT,
)
from allonym.detection.clinical import is_prescription
from allonym.detection.listed_names import has_listed_name, is_typical_name
from allonym.detection.mentions import rests_on_chance
from allonym.detection.short_dates import is_nobodys_age
from allonym.detection.words import is_calling, read_common_terms, read_dictionary, read_word_list
from allonym.document import Reach, Span, merge_intervals
from allonym.text.words import find_words

FAINT, LIKELY, SURE, CERTAIN, NEARLY = 0.1, 0.3, 0.65, 0.9, 0.98
"""Chances below which a word is no name: anywhere; where its capital says nothing; where it is an ordinary word; at the
start of a sentence; there, if it is a frequent word that no list of names has, and all of the sentence. Of 1,100
findings of annotated texts that no list of names knows, 3 % were right below 0.3 where their capitals say nothing; of
110 others, 4 % below 0.1.
"""
OPENS = re.compile(r"(?:\A|[.!?:\n])[ \t\"'*#>(\[-]*\Z")
_TEST = re.compile(
    r"(?:['’]s)?(?:,| and| or)?(?: [A-Z][\w'’]+)? (?:scale|tests?|score|index|signs?|syndrome|disease|criteria"
    r"|questionnaire|inventory|manoeuvre|reflex|staging|classification|(?:(?:is|was|were) )?(?:negative|positive))\b"
)
_VERB = re.compile(r" (?:tests|signs)\b")
"""What may be a verb too: "Priya tests the pump"."""
_NAMED_TEST = re.compile(r".* (?:Scale|Score|Index|Questionnaire|Inventory|Checklist)(?: \d+)?")
_GRADE = re.compile(r" ?\([A-E]\*?[,)]")
_TITLED = re.compile(r"(?i)\b(?:Mrs?|Ms|Mx|Dr|Miss|Prof(?:essor)?|Sir|Dame|Rev)\.? \Z")
_TITLE_LENGTH = 12  # characters of a title at most, with what stands before it
_HANDLE = re.compile(r":? (?=@)|: ?(?=(?:https?://)?(?:www\.)?[\w-]+(?:\.[\w-]+)*\.[a-z]{2,}/)")
_SPECIALITIES = read_word_list("specialities")
_LANGUAGES = read_word_list("languages_of_schools")
_FORMAT = re.compile(r"(?i)(?:dd?|mm?|yyyy|yy|hh?)(?:[/:. -](?:dd?|mm?|yyyy|yy|hh?|ss?)){1,6}|yyyy|x{3,40}|#{2,40}")
"""How a form asks for a date or a number: "DD/MM/YYYY"."""
VERSION = re.compile(r"v\d+(?:\.\d+)+|\d{1,2}\.\d{1,2}\.\d|i[3579]-\d{4,5}[A-Z]*")
_NO_DATE_OF_LETTERS = re.compile(r"\d?[A-Z]{2,6}\d?")
"""A code or an abbreviation that was taken for a date: "2WW", "BRCA2"."""
_CONTRACTED = re.compile(r"['’]t\b")
_DURATION = re.compile(
    r"(?i)(?:(?:within|for|after|over|under|about|around|nearly|almost) )?"
    r"(?:an?|\d+|(?:(?:twen|thir|four|fif|six|seven|eigh|nine)(?:teen|ty)|ten|eleven|twelve)?-?"
    r"(?:one|two|three|four|five|six|seven|eight|nine)?|several|(?:a )?few|a couple of) "
    r"(?:min(?:ute)?|h(?:ou)?r|day|night|w(?:ee)?k|fortnight|month|y(?:ea)?r)s?(?:['’] (?:service|experience|notice))?"
)
_UNSURE_DATE, _NO_DATE = 0.25, re.compile(r"[^A-Z\d]*\d{1,2}(?: ?[-–] ?\d{1,2})?|[^A-Z\d]+")
_STREET_WORDS = r"(?i:\b(?:street|st|road|rd|lane|ln|avenue|ave|drive|close|way|court|place|square|terrace)\b)"
_STREET = re.compile(_STREET_WORDS)
STREET_OR_YEAR, _HOUSE_NUMBER = re.compile(r" (?:19|20)\d\d\Z|" + _STREET_WORDS), re.compile(r"\d|" + _STREET_WORDS)
_NUMBERED_FIELD = re.compile(r"([A-Z][a-z]+)\.? (?:No|no(?=[.:])|Nr|Ref|Reg|ID)\b\.?:? ?#?[A-Z]{0,4}\d")
_LINE_LABEL = re.compile(r"[ \t]*+((?:[^\W\d_][\w'’/-]*+[ \t]?+){2,7}):(?=\s)")
LABEL_LENGTH = 150  # characters of what calls a line, at most
_FIELD_BEFORE = re.compile(r"(?m)^[\w /]{1,30}: \Z")
_NO_YEAR = re.compile(r"(?!1[5-9]|20|21)\d{4}")
_CLOCK_BEFORE = re.compile(r"\d[:.]\Z")
"""The hour of a time of day."""
_NO_PLACE = re.compile(
    r"\d{1,2} ?[ap]m|(?:[01]?\d|2[0-3])(?::[0-5]\d|[.:][0-5]\d (?:sharp|prompt|SHARP))|\d{2,5}[a-z]?\(\w{1,3}\)?"
    r"|(?:EUR|USD|GBP|CHF|SEK|NOK|DKK|PLN|INR|ZAR|AUD|CAD|NZD|KES|NGN|JPY) ?\d[\d,.]*"
)
"""A time of day, a section of a law, or an amount that a tagger may take for an address or a number: "924(c)"."""
_NO_NUMBER = re.compile(
    r"\d{1,3}/100|\d{3}\.\d\d|\d{1,3}(?:,\d{3})+(?:\.\d\d)?|\d{3,}[lLg]|s\. ?\d{1,3}"
    r"|\d+(?:[.,]\d+)? ?(?:kg|ml|mm|cm|km|kW|kWh|MB|GB)"
)
"""Marks, amounts, measures and sections that it may take for a number: "64/100", "1300l"."""
_CITATION = re.compile(
    r"\b\d{1,4}\s{1,3}(?:(?:U\.\s?S\.(?:\s?C\.)?|S\.\s?Ct\.|L\.\s?Ed\.|F\.|A\.|P\.|So\.|N\.\s?Y\.|WL\b"
    r"|(?:Wheat|Wall|Cranch|Dall|Pet|How|Stat|Fed|Cal|Ariz|Conn|Ill|Ind|Kan|Ky|Mass|Md|Mich|Minn|Miss|Mo|Mont|Neb|Nev"
    r"|Okla|Pa|Tenn|Tex|Va|Wash|Wis|Wyo)\b\.?|(?:[A-Z][A-Za-z]{0,11}\.?\s){1,4}(?:L\.\s?Rev|L\.\s?J|Rptr)\.)"
    r"(?:\s?(?:[23]d|4th|Supp\.|App[.’']?x?\.?|R\.|Cas\.))*|(?:N\.\s?[EW]\.|S\.\s?[EW]\.)\s?[23]d)"
    r",?\s{0,3}(?:\d{1,8}(?!\d|st|nd|rd|th)|§|at\s{1,3}[\d_]|_{2}|[–-]{2})"
    r"|\b(?:Id\.|Ibid\.|[Aa]nte|[Ss]upra|[Ii]nfra|Tr\.|J\.?A\.?|Pet\. App\.|ECF(?: No\.)?|slip op\.),?\s{1,3}"
    r"(?:at\s{1,3})?\d"
)
"""A volume of law reports or of a journal and a page in it, or a page of what was cited: "795 F.2d 90", "Id., at 9"."""
_SMALL_LETTERS = re.compile(r"[a-z]{3}")
"""What pages, courts and years of a citation do not have."""
_HOUSE = re.compile(r"(?:Flat |Unit |Apt\.? )?\d+[A-Za-z]?,? [A-Z][a-z]{3,}\b(?!\.)")
"""How an address without a word for a street begins: "5 Kingsmead, Dover"."""
_MANY_CITATIONS = 3  # of a legal text, in which what is unlikely to be an address is none
_BESIDE_CITATION = 60  # characters, in which further pages, the court and the year stand
_TEACHER = re.compile(r" \((?:Mrs?|Ms|Miss|Dr|Mme|Mlle|Coach|Herr|Frau|Se[ñn]ora?)\b")
_REMARK = re.compile(r" [–-] [A-Z][a-z]* [a-z]")
_OPENS_CELL = re.compile(r"(?:  |\| |\t|/)\Z")
_SEX = re.compile(r"(?<=, )[MF](?=, \d{1,2}(?:[,;.\n]|\Z))")
_TOOLS = re.compile(
    r"(?im)^(?:IT|tools?|software|technologies|programming(?: languages)?|stack|(?:computer |IT |technical )?skills)"
    r"[ \t]*(?::|\n)[^\n]*\Z"
)
UNITS = read_word_list("unit_words")
_NUMBER_NEXT = re.compile(r"[.:]{0,2} ?\(?(?:[A-Z]{1,4}[ /-]?)?[\d+]")
_CODE_NEXT = re.compile(r" [A-Z]{2,4}-?\d{3}")
_QUANTITY = re.compile(r"\d+ ?[x×] |(?:K[Ss]h|KES|Rs)\.? ?\d|R\d{1,3},\d{3}")
_NUMBER_WORD = re.compile(r" (?:[Nn]o|[Nn]r|[Nn]umber|ID)\b")
LANGUAGE_LEVEL = re.compile(r"[ABC][12]")
_CODES = frozenset(name.replace("_", " ") for name in read_word_list("names_of_numbers"))
_INSURANCE = "national insurance"
_ADDRESSES = frozenset("Cllr Esq Hr Madam Sir Mr Mrs Ms Mx".split())
FIELDS = read_word_list("form_fields")
_PLATFORMS = read_word_list("platforms")
_DEPARTMENTS = read_word_list("departments")
FUNCTION = read_word_list("function_words") - read_word_list("given_names_too")
_KIN = frozenset(
    "father mother parent parents sister brother son daughter husband wife faither mither brither bairn wean".split()
)
_CHAT = read_word_list("chat_words")
_SIGNED_ROLE = re.compile(
    r"(?m)^(?:Associate|Chair|Clerk|Consultant|Director|Founder|Head|Manager|Owner|Partner|President|Principal"
    r"|Registrar|Secretary|Solicitor|Treasurer|Trustee), (?=[A-Z])"
)
_SUBJECTS = re.compile(
    r"(?im)^[ \t*•-]*(?:GCSEs?|A[ -]?levels?|O[ -]?levels?|Highers|Leaving Cert\w*|subjects|grades)\b[^\n]*\Z"
)
_MONTHS = frozenset("JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC".split())


def is_titled(text: str, span: Span) -> bool:
    """Whether a title stands before the name of a person: "Dr Page", "Mr Ta"."""
    return span.label == "PERSON" and bool(_TITLED.search(text, max(0, span.start - _TITLE_LENGTH), span.start))


def drop_citations(text: str, findings: list[Span]) -> list[Span]:
    """Return the findings without what only seems one in a citation of law: addresses, numbers, "U.S." for a country.

    Addresses and numbers of the tagger are dropped beside citations, too, and where a text has several, all that are
    unlikely.
    """
    unsure = {s for s in findings if s.label in ("STREET_ADDRESS", "GENERIC_ID") and rests_on_chance(s)}
    countries = {s for s in findings if s.label in ("COUNTRY", "US_STATE")}
    if not (unsure or countries) or not (citations := [m.span() for m in _CITATION.finditer(text)]):
        return findings
    inside = Reach(merge_intervals(citations))
    near = Reach(merge_intervals((start - 12, end + _BESIDE_CITATION) for start, end in citations))
    least = LIKELY if len(citations) >= _MANY_CITATIONS else 0.0

    def is_cited(span: Span) -> bool:
        if span not in unsure or inside.contains(span.start, span.end):
            return span in unsure | countries and inside.contains(span.start, span.end)
        if _STREET.search(text, span.start, span.end) or _HOUSE.search(text, span.start, span.end):
            return False
        is_page = near.touches(span.start, span.end) and not _SMALL_LETTERS.search(text, span.start, span.end)
        return is_page or span.score < least

    return [span for span in findings if not is_cited(span)]


def identifies_nobody(text: str, start: int, end: int, span: Span) -> bool:
    """Whether what stands between ``start`` and ``end``, the borders of a finding as corrected, names nobody."""
    surface = text[start:end]
    words = surface.replace("'", " ").lower().split()
    if span.label == "AGE" and is_nobodys_age(text, start, end):
        return True
    if (
        span.label == "DATE"
        and surface.removesuffix("pm").removesuffix("am").isdigit()
        and (text.endswith("at ", 0, start) or _CLOCK_BEFORE.search(text, max(0, start - 2), start))
    ):
        return True
    if span.label == "DATE" and _NO_YEAR.fullmatch(surface):
        return bool(_FIELD_BEFORE.search(text, max(0, start - 40), start))
    if span.label == "STREET_ADDRESS" and (
        _QUANTITY.match(text, start, end)
        or (surface.islower() and surface in read_dictionary() and _NUMBER_NEXT.match(text, end))
    ):
        return True
    if span.label in ("DATE", "STREET_ADDRESS", "GENERIC_ID") and _NO_PLACE.fullmatch(surface):
        return True
    if span.label == "GENERIC_ID" and _NO_NUMBER.fullmatch(surface):
        return True
    if span.label in ("ORGANIZATION", "PRODUCT", "LAW") and _TOOLS.search(text, max(0, start - 200), start):
        return True
    if span.label in ("PRODUCT", "ORGANIZATION", "STREET_ADDRESS") and is_prescription(surface):
        return True
    if _is_heading(text, start, end, span.label):
        return True
    if text.endswith(("{{", "{%", "`"), max(0, start - 2), start):  # a name of code
        return True
    if _is_chatter(text, start, end, span):
        return True
    if _is_school_subject(text, start, span, words):
        return True
    is_numbered = span.label != "PERSON" or not surface.isalpha()  # "Lane 4", unlike "Lane"
    if is_numbered and COUNTED.fullmatch(surface.strip("#*. ")):
        return True
    if surface.lower() in _PLATFORMS and _HANDLE.match(text, end):
        return True
    if names_number(text, start, end, span.label) or (
        span.label in ("DATE", *SOFT) and LANGUAGE_LEVEL.fullmatch(surface)
    ):
        return True
    if span.label == "PERSON" and (
        surface == "I" or (len(surface) == 1 and surface.islower()) or _SEX.match(text, start)
    ):
        return True
    if span.label == "PERSON" and _CONTRACTED.match(text, end) and surface[-1:] == "n":  # "Don't"
        return True
    if span.label == "DATE" and _NO_DATE_OF_LETTERS.fullmatch(surface) and surface[:3] not in _MONTHS:
        return True
    if span.label in ("PERSON", *SOFT) and surface.lower() in read_common_terms():
        is_name = span.label == "PERSON" and surface.lower() in read_common_terms("also_names")
        if not is_name:
            return True
    if surface.rstrip(".") in _ADDRESSES or VERSION.fullmatch(surface):
        return True
    if _FORMAT.fullmatch(surface):
        return True
    is_after_point = start > 1 and text[start - 1] in ".,"
    if is_after_point and (
        surface == "js" or (surface.replace(".", "").isdigit() and text[start - 2].isdigit())
    ):  # "11" in "3.11"
        return True
    if len(words) == 1 and words[0] in _DEPARTMENTS and span.label != "PERSON":
        return True
    if span.label == "ORGANIZATION" and len(words) == 1 and _SIGNED_ROLE.match(text, start):
        return True
    if span.label in (*SOFT, "PERSON", "LOCATION", "CITY"):
        is_unit = words != [] and all(word in UNITS or word in SMALL or word in _SPECIALITIES for word in words)
        if is_unit and not surface.islower() and (len(words) > 1 or words[0] in _DEPARTMENTS):
            return not surface.startswith("Department of")
    if span.label == "DATE" and _DURATION.fullmatch(surface):
        return True
    if span.label in ("DATE", "AGE") and span.score < _UNSURE_DATE and _NO_DATE.fullmatch(surface):
        return True
    if span.label == "STREET_ADDRESS" and span.score < LIKELY and not _HOUSE_NUMBER.search(surface):
        return all(word in read_dictionary() or word in FUNCTION for word in find_words(surface.lower()))
    if calls_number(text, start, end, span.label):
        return True
    if span.score < CERTAIN and _is_in_label(text, start, end):
        return True
    if span.label == "LAW" and (not any(map(str.isalpha, surface)) or (surface.islower() and " " not in surface)):
        return True
    if span.label == "OCCUPATION" and (surface.islower() or (len(words) == 1 and text.endswith("the ", 0, start))):
        head = words[-1].strip(".,;:").rpartition("-")[2]
        return head in _KIN or not is_calling(head)
    if _GRADE.match(text, end) or _GRADE.match(text, end - 4):
        return True
    if span.label not in ("PERSON", "ORGANIZATION", "PRODUCT"):
        return False
    is_eponym = (
        len(words) == 1
        and _TEST.match(text, end)
        and not is_titled(text, span)
        and (words[0] in read_common_terms("also_names") or not _VERB.match(text, end))
    )
    return bool(is_eponym or _NAMED_TEST.fullmatch(surface) or (len(surface) == 1 and span.label == "PRODUCT"))


def calls_number(text: str, start: int, end: int, label: str) -> bool:
    """Whether a finding calls the number behind it: "Hospital" in "Hospital No: 22"; a name may stand there, too."""
    field = _NUMBERED_FIELD.match(text, start)
    if field is None:
        return False
    word = field[1].lower()
    is_ordinary = word in read_dictionary() or word in FIELDS or word in UNITS
    return is_ordinary or (label == "PERSON" and end > field.end(1) and not is_typical_name(word))


def _is_in_label(text: str, start: int, end: int) -> bool:
    """Whether a finding stands in words of dictionaries that call a line: "Short" in "Short description: printer"."""
    least = max(0, start - LABEL_LENGTH)
    line = text.rfind("\n", least, start) + 1
    label = _LINE_LABEL.match(text, line, line + LABEL_LENGTH) if line or not least else None
    if label is None or end > label.end(1) or end - start == label.end(1) - line:
        return False
    return all(word in read_dictionary() or word in FUNCTION or word in FIELDS for word in find_words(label[1].lower()))


def _is_chatter(text: str, start: int, end: int, span: Span) -> bool:
    """Whether a finding has words of chats only, unless it is likely somebody's name: "We told Ko"."""
    surface = text[start:end]
    words = find_words(surface.lower())
    if not _CHAT.issuperset(words) or (not surface.islower() and has_listed_name(words)):
        return False
    if span.label != "PERSON" or span.score < LIKELY:
        return True
    is_marked = surface.istitle() and not OPENS.search(text, max(0, start - 6), start)
    return is_marked + any(map(is_typical_name, words)) + (span.score >= SURE) < 2


def _is_heading(text: str, start: int, end: int, label: str) -> bool:
    """Whether a finding is the name of a field, or a subject of a school report above or before what is said of it."""
    words = find_words(text[start:end].lower())
    is_field = all(word in FIELDS or word in UNITS for word in words)
    opens_line = text[start - 1 : start] in ("", "\n")
    if opens_line and (_TEACHER.match(text, end) or (label != "PERSON" and _REMARK.match(text, end))):
        return is_field or all(word in _SPECIALITIES or word in _LANGUAGES for word in words)  # "ENGLISH (Mr Lowe)"
    opens = opens_line or (label != "PERSON" and _OPENS_CELL.search(text, max(0, start - 2), start) is not None)
    return opens and text[end : end + 1] in ("", "\n", ":") and is_field


def _is_school_subject(text: str, start: int, span: Span, words: Sequence[str]) -> bool:
    """Whether a finding is a subject or a grade in a line that lists them, unlike the name of a teacher or a school."""
    if span.label in ("DATE", "AGE", "STREET_ADDRESS") or span.score >= SURE:
        return False
    if not _SUBJECTS.search(text, max(0, start - 200), start):
        return False
    return span.label in (*SOFT, "ORIGIN") or all(word in read_dictionary() for word in words)


def names_number(text: str, start: int, end: int, label: str) -> bool:
    """Whether a finding says what the number after it is called: "d.o.b." and "Hospital" in "Hospital No: D228817"."""
    surface = text[start:end].lower()
    name = surface.replace(".", "").removesuffix(" no")
    if (name in _CODES or (label == "STREET_ADDRESS" and name in FIELDS)) and not any(map(str.isdigit, name)):
        return bool(_NUMBER_NEXT.match(text, end))
    if surface.islower() and surface.endswith(" number"):
        return True
    if text[start : start + len(_INSURANCE)].lower() == _INSURANCE:
        return True
    is_called = _NUMBER_WORD.match(text, end) or (label != "PERSON" and _CODE_NEXT.match(text, end))
    return (surface in FIELDS or surface in UNITS) and bool(is_called)
