"""The detector for names that the form of a text gives away: speaker labels, introductions, address, titles.

In a conversation the label of each turn names its speaker, and these names are then looked for in the turns. In any
text, "my name is", "may I speak to", "Dear Ms" and the like announce a name (P2's hotwords). The name must be written
with capitals, so texts without capitals yield nothing here.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from allonym.detection import Detector
from allonym.detection.languages import find_other_language, is_form_field
from allonym.detection.lexicon import (
    AMBIGUOUS,
    PARTICLES,
    TITLES,
    Index,
    Kind,
    lower_alphanumerics,
    make_readings,
    shorten_person_name,
)
from allonym.detection.listed_names import has_listed_name, is_typical_name
from allonym.detection.scan import compile_pattern, compile_patterns, encode_text, find_matches
from allonym.detection.turns import FAMILY_NAMES, select_headings
from allonym.detection.words import is_calling, read_dictionary, read_ordinary_words, read_word_list
from allonym.document import Document, Interval, Reach, Span
from allonym.policy import Policy
from allonym.text.memory import remember_texts
from allonym.text.words import LETTERS

_ROLES = read_word_list("roles")
_STOP = read_word_list("no_names")
_FIELDS = read_word_list("form_fields") - FAMILY_NAMES
_PLAIN = read_ordinary_words() | read_word_list("unit_words") | _FIELDS | _ROLES
"""What names nobody where a label or a greeting has no other words: "Deposit:", "Dear Housing Association"."""
_NO_NAMES = _PLAIN | read_dictionary() | read_word_list("function_words")
_NUMBERS = frozenset(("number", "no", "nr", "ref", "reference", "code", "id", "date"))
"""What no name ends with: "NI number"."""
_RANKS = frozenset("PC WPC DC DS DI DCI PCSO Sgt Insp".split())
_ACRONYMS = read_word_list("acronyms")
_HEADINGS = frozenset(
    "role title position department date number phone email address signature company organisation status notes".split()
)
"""Headings of columns that stand beside that of the name, which reads like a field: "Name: Role"."""
_NAMES_TOO = frozenset(("will", "may", "april", "june", "august"))

# Wide but small classes: all letters by their properties make automata a hundred times the size.
_UPPER = "[A-ZÀ-ÖØ-ÞĀ-ɏΆ-ΫЀ-Я]"
_LETTER = r"[A-Za-zÀ-\x{1fff}\x{2c00}-\x{2dff}\x{3040}-\x{d7ff}]"
_W = rf"{_UPPER}(?:{_LETTER}+|['\-]{_UPPER}{_LETTER}+)(?:['\-]{_LETTER}+)*"
_PARTICLE = "(?:van|von|de|der|den|del|della|di|da|dos|la|le|el|al|bin|ibn|ter|du)"
_NAME = rf"((?:{_W}|{_UPPER}\.)(?: (?:{_PARTICLE} ){{0,2}}(?:{_W}|{_UPPER}\.|{_UPPER}\b)){{0,3}})"
_TITLE = r"(?:M(?:r|rs|s|x)\.? |Miss |Mister |Dr\.? |Doctor |Prof\.? |Professor |Sir |Dame |Madam |Herrn? |Frau )"

_STRONG = (
    r"(?:(?:full|first|last|given|family|patient|customer|client|employee|contact) )?name(?:\(s\))? ?[:=]"
    r"|(?:also known as|a\.?k\.?a\.?) ?:"
    r"|(?:my|his|her|your|their|whose) (?:first |last |full |middle |maiden |sur|nick)?name(?:'s| is| was)(?: also)?"
)
_TALK = (
    r"(?:speak|speaking|talk|spoke|talked|chat|meet) (?:to|with)|ask for|connect(?:ed)? (?:you |me )?(?:to|with)"
    r"|you've reached"
)
_KIN = (
    r"(?:my|your|his|her|our|their) (?:(?:son|daughter|brother|sister|mother|father)(?:-in-law)?|wife|husband|partner"
    r"|mum|dad|nephew|niece|cousin|(?:step|grand)(?:son|daughter)|aunt|uncle|boyfriend|girlfriend|fianc[ée]e?)"
)
_OVER = (
    r"(?:over|floor|call|conference|meeting|microphone)(?: back)? to(?: our \w+,?)?|line (?:of|is)|lines? of"
    r"|(?:hand|turn|pass|give|send|throw) (?:\w+ ){0,3}back to|questions?(?: \w+){0,2} from(?: the line of)?"
    r"|hosted by|joined by|introduc(?:e|ing)|signed[,:]|attn:?|attention:"
)
_SELF = r"(?:this is|it's|it is|i am|i'm|here is|here's)"
_HELLO = (
    "(?:hi|hello|hey|dear|good (?:morning|afternoon|evening|day)|thanks|thank you|welcome|sorry|congratulations|bye"
    "|goodbye)"
)
_AGAIN = "(?: (?:again|there|so much|very much))?"

_BEGIN = rf"{_UPPER}[A-Za-zÀ-\x{{1fff}}.'\-]"
_TITLED = compile_pattern(rf"\b{_TITLE}{_NAME}")
_QUOTE = r"[\"'“‘]?"
_AFTER_NAME = (
    r"(,? (?:calling|speaking|here|from|with|at|again|over at|on behalf|filling|your|the|our|and (?:i|i'm|with me)\b)"
    r"|[.,!?;]|\s*\n|$)?"
)
_IS_KIN = re.compile(_KIN, re.IGNORECASE)
_ANNOUNCED = compile_pattern(
    rf"(?i:\b({_STRONG}|{_TALK}|{_KIN}|{_OVER}),? ){_QUOTE}(?:{_TITLE})?{_NAME}(?i:{_AFTER_NAME})"
)
_OF_THING = re.compile(
    r"(?i)\b(?:colou?r|size|style|file|folder|domain|host|server|device|printer|brand|trade|product|model|item|report"
    r"|project|template|field|column|table|variable|package|drug|generic|event|course|module|job"
    r"|task|place|street|road|building) \Z"
)
"""Whose name is no person's."""
_CONTINUATIONS = "calling|speaking|here|from|with|again|over at|on behalf|filling".split("|")
_INTRODUCED = compile_pattern(rf"(?i:\b({_SELF}) )(?:{_TITLE})?{_NAME}(?i:{_AFTER_NAME})")
_GREETED = compile_pattern(rf"(?i:\b({_HELLO}){_AGAIN})(,? )(?:{_TITLE})?{_NAME}(\s*[.,!?;:\-]|\s*\n|\s*$)")
_UNCAPPED = compile_pattern(
    rf"(?i:\b(?:hi|hello|hey|good (?:morning|afternoon|evening)),? (?:this is|it's) )([a-z]{{3,}}) "
    r"(?:from|calling|speaking|with|here)\b"
    rf"|(?i:\bthis is )((?:{_UPPER}[a-z]+ )?[a-z]{{3,}}) (?:calling|speaking)\b"
)
_OPENS = re.compile(r"(?:^|[.!?:\n>\"]\s*|,\s|\b(?:okay|ok|yes|yeah|well|great|oh|so),?\s)\Z", re.IGNORECASE)
_FAREWELL = (
    "(?i:\\b(?:regards|sincerely|yours truly|yours faithfully|cheers|wishes|thanks|love|take care|speak soon"
    "|see you soon|hugs)|(?m:^)[ \\t>]*(?:all (?:the|my) )?(?:best|yours|warmly|ta|x{1,3}))"
)
_SIGNED = compile_pattern(rf"{_FAREWELL}[,.]?[ \t\r]*\n\s*{_NAME}[ \t\r]*(?:\n|$|,)")


_HEAD = r"(?m)^[ \t>]*(?:X ?- ?)?(?:From|To|Cc|CC|Bcc|Reply-To|Sender|Sent by|Attn)[ \t]?:[ \t]*"
_HEADER = compile_pattern(rf"{_HEAD}([^\n]{{3,1000}})")
_LISTED = re.compile(r"[^\W\d_][\w.'’\-]*(?:,? [^\W\d_][\w.'’\-]*)+(?![\w@])")
_SMALL_TITLE = compile_pattern(r"\b(?:(?:mr|mrs|dr|ms|prof) ?\. ?|(?:mr|mrs|dr) )([a-z][a-z\-]{2,})\b")


_CUES = (
    rf"\b{_TITLE}{_BEGIN}",
    rf"(?i:\b(?:{_STRONG}|{_TALK}|{_KIN}|{_OVER}),? ){_QUOTE}(?:{_TITLE})?{_BEGIN}",
    rf"(?i:\b{_SELF} )(?:{_TITLE})?{_BEGIN}",
    rf"(?i:\b{_HELLO}{_AGAIN}),? {_BEGIN}",
    rf"{_FAREWELL}[,.]?[ \t\r]*\n\s*{_BEGIN}",
    _UNCAPPED.pattern.decode("utf-8"),
    rf"{_HEAD}{_BEGIN}",
    _SMALL_TITLE.pattern.decode("utf-8"),
)
"""Patterns of the kinds of hotword, in the order of :func:`_find_announced_names`."""


def build_detector(policy: Policy) -> Detector:
    """Build the detector for a policy; it finds nothing where the policy does not look for PERSON."""
    if not policy.looks_for("PERSON"):
        return lambda document: ()
    cues = compile_patterns(_CUES)

    def find_names(document: Document) -> Iterable[Span]:
        text = document.text
        data = encode_text(text)
        present = cues.find_matching_patterns(data)
        spans = list(_find_announced_names(text, data, present)) if present else []
        if document.turns:
            spans += _find_speaker_names(document)
        return spans

    find_names.reads_technical = False  # type: ignore[attr-defined]
    return find_names


def _find_speaker_names(document: Document) -> Iterator[Span]:
    text = document.text
    names: dict[str, None] = {}
    labels: list[Interval] = []
    names_by_label: dict[str, Interval | None] = {}
    counts = Counter(text[slice(*turn.speaker)] for turn in document.turns if turn.speaker is not None)
    headings = select_headings(counts) if len(counts) > 2 else frozenset()
    for turn in document.turns:
        if turn.speaker is None:
            continue
        start, end = turn.speaker
        label = text[start:end]
        if label not in names_by_label:
            is_role = label in headings or _is_role_of_other_language(text, start, end)
            names_by_label[label] = None if is_role else locate_speaker_name(label)
        place = names_by_label[label]
        if place is not None:
            labels.append((start + place[0], start + place[1]))
            if place[1] - place[0] <= _LONGEST_NAME:
                names[label[slice(*place)]] = None
    for start, end in sorted(set(labels)):
        yield Span(start, end, "PERSON", 0.9, "speakers:label")
    if names:
        reach = Reach(labels)
        for span in _index_name_forms(tuple(sorted(names))).find(make_readings(text)):
            if not reach.touches(span.start, span.start + 1) and _is_used_as_name(text, span):
                yield span


def _is_role_of_other_language(text: str, start: int, end: int) -> bool:
    """Whether a label in a passage that is not English, whose roles no list knows, holds no listed name.

    Nor is it a name where it begins with a short word that the text has in small letters: "Der Richter".
    """
    words = LETTERS.findall(text, start, end)
    if is_form_field(text, start, end):
        return True
    is_listed = has_listed_name(words)
    if is_listed and len(words[0]) > _LONGEST_ARTICLE:
        return False
    if not find_other_language(text, start):
        return False
    return not is_listed or words[0].lower() in _list_words(text)


@remember_texts(4)
def _list_words(text: str) -> frozenset[str]:
    return frozenset(LETTERS.findall(text))


_LONGEST_ARTICLE = 3  # letters
_LONGEST_NAME = 120  # code points of a speaker label whose name is looked for in what is said
_CUT = re.compile(r"[(\[|/]|\s-+\s|:(?=\s*$)")


def locate_speaker_name(label: str) -> Interval | None:
    """The interval of the name in a speaker label, which may follow a role: "Agent (Priya)"; None for a role alone."""
    cut = _CUT.search(label)
    end = len(label[: cut.start()].rstrip()) if cut else 0
    name = _locate_name(label, end)
    if name is None and cut and end:
        rest = label[cut.end() :].rstrip(" )]")
        words = rest.lower().split()  # "Customer (on hold)"
        if not all(word in _NO_NAMES or (is_calling(word) and not is_typical_name(word)) for word in words):
            name = _locate_name(label, cut.end() + len(rest), cut.end())
    return name


def _locate_name(label: str, end: int, start: int = 0) -> Interval | None:
    end = end or len(label)
    words = list(re.compile(r"[^\s_,.#:*]+").finditer(label, start, end))
    plain = [_is_role(m[0]) or m[0].lower() in _FIELDS for m in words]
    if (
        not words
        or all(plain)
        or words[-1][0].lower() in _NUMBERS
        or (any(plain) and all(m[0].lower() in _PLAIN for m in words))
    ):
        return None
    while len(words) > 1 and (lower_alphanumerics(words[0][0]) in TITLES or words[0][0] in _RANKS or _is_office(words)):
        words.pop(0)
    return words[0].start(), words[-1].end()


def _is_office(words: Sequence[re.Match[str]]) -> bool:
    """Whether a role stands before a name, as in "Agent Jhun"."""
    first, second = words[0][0], words[1][0]
    return len(first) > _LONGEST_ARTICLE and first.lower() in _ROLES and first[0].isupper() and not _is_role(second)


def _is_role(word: str) -> bool:
    bare = word.strip("-'").lower()
    bare = bare.rstrip("0123456789").rstrip("-") or bare
    return bare in _ROLES or len(bare) < 2 or bare.isdigit() or all(p in _ROLES for p in bare.split("-"))


def _index_name_forms(names: tuple[str, ...]) -> Index:
    rows: dict[str, tuple[str, Kind]] = {}
    for name in names:
        for form, score in [(name, 0.8), *((form, min(score, 0.8)) for form, score, _ in shorten_person_name(name))]:
            bare = lower_alphanumerics(form)
            is_ordinary = bare in PARTICLES or (bare in _STOP and bare not in AMBIGUOUS)
            if len(bare) > 2 and (" " in form or not is_ordinary):
                rows.setdefault(form, (form, Kind("PERSON", score, "speakers:mention", True)))
    return Index(tuple(rows.values()))


def _is_used_as_name(text: str, span: Span) -> bool:
    word = text[span.start : span.end]
    if word.lower() not in AMBIGUOUS:
        return True
    before = text[max(0, span.start - 4) : span.start].rstrip(" ")
    opens = not before or before[-1] in ".!?:\n\"'"
    return not opens or text[span.end : span.end + 1] in (",", "!", "?", ".")


def _find_announced_names(text: str, data: bytes, present: Sequence[int]) -> Iterator[Span]:
    if 0 in present:
        for _, name in find_matches(_TITLED, text, data):
            yield from _make_name_spans(text, name, 0.8, "speakers:title")
    if 1 in present:
        for _, cue, name, _ in find_matches(_ANNOUNCED, text, data):
            strong = text[slice(*cue)].endswith((":", "=")) or "name" in text[slice(*cue)].lower()
            if strong and _OF_THING.search(text, max(0, cue[0] - 16), cue[0]):
                continue
            source = "speakers:introduction" if strong else "speakers:hotword"
            single = strong or _is_name_end(text, name[1]) or _IS_KIN.fullmatch(text, *cue) is not None
            yield from _make_name_spans(text, name, 0.8 if strong else 0.7, source, single=single)
    if 2 in present:
        for _, cue, name, after in find_matches(_INTRODUCED, text, data):
            continuation = text[slice(*after)].strip(" ,\n").lower() if after[0] >= 0 else ""
            sure = continuation in _CONTINUATIONS
            single = sure and text[slice(*cue)].lower() != "it is"
            yield from _make_name_spans(text, name, 0.75 if sure else 0.6, "speakers:introduction", single=single)
    if 3 in present:
        for (start, _), _, _, name, _ in find_matches(_GREETED, text, data):
            if _OPENS.search(text[max(0, start - 8) : start]):
                yield from _make_name_spans(text, name, 0.7, "speakers:address")
    if 4 in present:
        for _, name in find_matches(_SIGNED, text, data):
            yield from _make_name_spans(text, name, 0.7, "speakers:signature")
    if 5 in present:
        for _, greeted, called in find_matches(_UNCAPPED, text, data):
            start, end = greeted if greeted[0] >= 0 else called
            if not any(w.lower() in _STOP for w in text[start:end].split()):
                yield Span(start, end, "PERSON", 0.6, "speakers:introduction")
    if 6 in present:
        for _, (start, end) in find_matches(_HEADER, text, data):
            for listed in _LISTED.finditer(text, start, end):
                yield from _find_header_names(text, listed.start(), listed.end())
    if 7 in present:
        for _, (start, end) in find_matches(_SMALL_TITLE, text, data):
            if text[start:end] not in _STOP:
                yield Span(start, end, "PERSON", 0.65, "speakers:title")


def _find_header_names(text: str, start: int, end: int) -> Iterator[Span]:
    """Find the names in a line of addresses: "Allen, Phillip K." is one, "Jane Doe, Bob Roy" are two."""
    inverted = re.fullmatch(r"[^\s,]+, [^,]+", text[start:end])
    for part in [text[start:end]] if inverted else text[start:end].split(", "):
        words = part.split()
        bare = [w.strip(".,").lower() for w in words]
        offices = [_is_role(w) or w.upper() in _ACRONYMS for w in bare]
        is_office = any(offices) and all(o or w in read_ordinary_words() for o, w in zip(offices, bare, strict=True))
        if len(words) > 1 and not is_office and all(w[0].isupper() for w in words) and _STOP.isdisjoint(bare):
            yield Span(start, start + len(part), "PERSON", 0.7, "speakers:header")
        start += len(part) + 2


def _is_name_end(text: str, end: int) -> bool:
    ends = end == len(text) or text.startswith((".", ",", "?", "!", "'", ")", "\n"), end)
    return ends or text.startswith((" with ", " from ", " about", " pleas"), end)


def _make_name_spans(text: str, place: Interval, score: float, source: str, *, single: bool = True) -> Iterator[Span]:
    """The name at ``place`` without words that belong to no name; nothing where no word remains."""
    start, end = place
    words = list(re.finditer(r"\S+", text[start:end]))
    keep = 0
    announced = source in ("speakers:address", "speakers:hotword") or score >= 0.75
    shouted = text[start:end].isupper()
    for word in words:
        bare = word[0].removesuffix("'s")
        plain = bare.lower()
        if bare == "I" or (plain in _STOP and not (plain in _NAMES_TOO and (keep or announced))):
            break
        if not bare[0].isupper() and bare not in PARTICLES:
            break
        if bare.isupper() and len(bare) > 1 and bare[-1] != "." and not shouted:
            break
        keep += 1
    while keep and (words[keep - 1][0] in PARTICLES or (len(words[keep - 1][0]) < 3 and keep == 1)):
        keep -= 1
    if not keep or (keep == 1 and not single) or (keep == 1 and words[0][0].endswith(".")):
        return
    if keep == 1 and shouted and len(words) == 1 and score < 0.75:
        return
    is_plain = all(word[0].lower() in _PLAIN for word in words[:keep])
    if is_plain and (source == "speakers:address" or (source == "speakers:signature" and keep > 1)):
        return
    if keep == 1 and source == "speakers:introduction" and words[0][0].lower() in _HEADINGS:
        return
    last = words[keep - 1]
    stop = start + last.end() - (2 if last[0].endswith("'s") else 0)
    if source == "speakers:address" and last[0].endswith("'s") and keep == len(words):  # "Dear Fennimore's,"
        stop += 2
    yield Span(start, stop, "PERSON", score, source)
