"""Forms of a replacement: the replacement itself, and the shorter ways in which people write it.

A shortened form comes with the corresponding part of the original: ``Tyler`` is to ``Emma Tyler`` what ``Connor`` is to
``Sarah Connor``. Forms are derived only for replacements with a word in the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from allonym.labels import TAXONOMY
from allonym.protocol import Traits
from allonym.replace.dates import read_date
from allonym.restoration.view import SPECIAL, View
from allonym.text.fold import fold
from allonym.text.names import normalize_organization, normalize_surface, parse_person, split_name
from allonym.text.prose import read_common_words

SPLIT = re.compile(r"([^\W_]+)")
_MARKED = re.compile(r"((?:[^\W_][\u0300-\u036f]*)+)")
_COMBINING = re.compile(r"[\u0300-\u036f]")
_NAME_WORD = re.compile(r"[^\W_]+(?:[-'’.](?=[^\W_])[^\W_]+)*")
_CODE = re.compile(r"[+(#]?[A-Z0-9][A-Z0-9 \-./(),\u00a0\u2011\u2013]*[A-Z0-9)]")
_DIGITS = re.compile(r"[0-9]")
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff]")
OPENING, CLOSING = "[({<⟦⟨«‹【「『", "])}>⟧⟩»›】」』"

AND = ("and", "und", "i", "et", "y")
"""Words for ``&``."""

TAG, PERSON, ORGANIZATION, LOCATION = "tag", "person", "organization", "location"
DATE, CODE, ADDRESS, PLAIN = "date", "code", "address", "plain"
_KINDS = {"PERSON": PERSON, "ORGANIZATION": ORGANIZATION, "LOCATION": LOCATION}


def split_words_and_gaps(text: str) -> list[str]:
    """Split a text into gap, word, gap, word, ..., gap."""
    if text.isascii() or _COMBINING.search(text) is None:
        return SPLIT.split(text)
    return _MARKED.split(text)


class Form:
    """One way to write one replacement.

    Attributes:
        text: the form.
        target: the original in this form; None if several entities share the replacement.
        label: of the entity.
        kind: the kind of replacement, which decides how its surface may differ.
        rule: how it is derived; empty for the replacement itself.
        row: number of the replacement.
        words: its words as written.
        keys: its words folded.
        gaps: the text between the words.
        head, tail: the text before the first and after the last word.
        is_ordinary: whether it is a number or word that any text may contain, so that it proves nothing alone.
    """

    __slots__ = tuple("gaps head is_ordinary keys kind label row rule tail target text words".split())

    def __init__(self, text: str, target: str | None, label: str, kind: str, row: int, rule: str = "") -> None:
        self.text = text
        self.target = target
        self.label = label
        self.kind = kind
        self.row = row
        self.rule = rule
        self.is_ordinary = False
        if text.isascii() and text.isalpha():
            self.words = [text]
            self.keys: tuple[str, ...] = (text.lower(),)
            self.gaps: list[str] = []
            self.head = self.tail = ""
            return
        shown = text if SPECIAL.search(text) is None else View(text).text
        split = split_words_and_gaps(shown)
        self.words = split[1::2]
        self.keys = tuple([fold(w) for w in self.words])
        self.gaps = split[2:-1:2]
        self.head = split[0]
        self.tail = split[-1] if len(split) > 1 else ""


def classify_replacement_form(replacement: str, original: str, label: str, traits: Traits) -> str:
    """Return the kind of a replacement that an operator with these traits wrote."""
    is_tag = traits.writes_placeholders and not traits.lossy
    if is_tag or (replacement[:1] in OPENING and replacement[-1:] in CLOSING and replacement):
        return TAG
    if "@" in replacement or "://" in replacement:
        return ADDRESS
    root = TAXONOMY.get_family(label)
    if _DIGITS.search(replacement) is not None:
        date = read_date(replacement) if root == "DATE_TIME" else None
        if date is not None and date.month is not None and read_date(original) is not None:
            return DATE
        if _CODE.fullmatch(replacement) is not None and len(_DIGITS.findall(replacement)) >= 4:
            return CODE
    return _KINDS.get(root, PLAIN)


def is_unspaced_script(text: str) -> bool:
    """Tell whether a text is in a script without spaces between words."""
    return not text.isascii() and _UNSPACED.search(text) is not None


def derive_forms(form: Form, target: str, *, rare: bool = True) -> Iterator[Form]:
    """Return the shorter forms of a replacement, each with the corresponding part of its original.

    Args:
        rare: include initials and names with the family name first.
    """
    if form.kind == PERSON:
        pairs = _pair_person_forms(form.text, target, rare)
    elif form.kind == ORGANIZATION:
        pairs = _pair_organization_forms(form.text, target)
    elif form.kind == LOCATION:
        pairs = _pair_place_forms(form.text, target)
    else:
        return
    texts = {form.text}
    for text, original, rule in pairs:
        if text and original and text not in texts:
            texts.add(text)
            yield Form(text, original, form.label, form.kind, form.row, rule)


Pairs = Iterator[tuple[str, str, str]]


def split_person(text: str) -> tuple[list[str], list[str]]:
    """Return given names and family name as written, without titles and generation marks."""
    split = text.split()
    if len(split) == 2 and text.isascii() and split[0].isalpha() and split[1].isalpha():
        form, _ = parse_person(text.lower())
        if len(form) == 2 and form[1][0] != "+":
            return split[:1], split[1:]
    words = {normalize_surface(w): w for w in _NAME_WORD.findall(text)}
    form, _ = parse_person(" ".join(normalize_surface(text).split()))
    given_names, family, _ = split_name(form)
    return [words[w] for w in given_names if w in words], [words[w] for w in family if w in words]


def _pair_person_forms(text: str, original: str, rare: bool) -> Pairs:
    given_names, family = split_person(text)
    given_, family_ = split_person(original)
    if not family or not family_:
        return
    last, last_ = " ".join(family), " ".join(family_)
    yield last, last_, "shortened"
    if len(family) > 1:
        yield family[-1], family_[-1], "shortened"
    if "-" in last and last.count("-") == last_.count("-"):
        for part, part_ in zip(last.split("-"), last_.split("-"), strict=True):
            yield part, part_, "shortened"
    if not given_names or not given_:
        return
    first, first_ = given_names[0], given_[0]
    if len(first) > 1:
        yield first, first_, "shortened"
        yield f"{first} {last}", f"{first_} {last_}", "shortened"
    if not rare:
        return
    every, every_ = " ".join(given_names), " ".join(given_)
    a, a_ = first[0], first_[0]
    short, short_ = "".join(f"{w[0]}." for w in given_names), "".join(f"{w[0]}." for w in given_)
    if len(first) > 1:
        yield f"{first} {last[0]}.", f"{first_} {last_[0]}.", "initials"
    if len(given_names) > 1:
        yield every, every_, "shortened"
        yield f"{every} {last}", f"{every_} {last_}", "shortened"
        if len(given_) > 1:
            middle, middle_ = given_names[1][0], given_[1][0]
            yield f"{first} {middle}. {last}", f"{first_} {middle_}. {last_}", "initials"
            yield f"{short} {last}", f"{short_} {last_}", "initials"
            yield f"{last}, {first} {middle}.", f"{last_}, {first_} {middle_}.", "initials"
    yield f"{a}. {last}", f"{a_}. {last_}", "initials"
    words, words_ = _strip_titles(text), _strip_titles(original)
    if len(words) == len(words_) > 2:
        yield _abbreviate_but_last(words, str.isalpha), _abbreviate_but_last(words_, str.isalpha), "initials"
        yield _abbreviate_but_last(words, str.isupper), _abbreviate_but_last(words_, str.isupper), "initials"
    yield f"{last}, {every}", f"{last_}, {every_}", "reversed"
    yield f"{last}, {first}", f"{last_}, {first_}", "reversed"
    yield f"{last}, {a}.", f"{last_}, {a_}.", "initials"
    yield f"{a}.{last[0]}.", f"{a_}.{last_[0]}.", "initials"


def _strip_titles(text: str) -> list[str]:
    """Return the words of a name after its titles."""
    words = text.split()
    while len(words) > 2 and parse_person(normalize_surface(" ".join(words[:2])))[0] == (
        normalize_surface(words[1]).strip("."),
    ):
        del words[0]
    return words


def _abbreviate_but_last(words: Sequence[str], which: Callable[[str], bool]) -> str:
    """Abbreviate all words but the last to initials, if ``which`` accepts their first letters."""
    return " ".join([*(f"{w[0]}." if which(w[0]) else w for w in words[:-1]), words[-1]])


def extract_core_words(text: str) -> list[str]:
    """Return the words of an organisation's name as written, without its legal form and a leading article."""
    core = normalize_organization(normalize_surface(text)).split()
    words = text.replace(",", " ").split()
    start = 1 if len(words) > 1 and words[0].lower() == "the" and core[:1] != ["the"] else 0
    return words[start : start + len(core)]


def _pair_organization_forms(text: str, original: str) -> Pairs:
    core, core_ = extract_core_words(text), extract_core_words(original)
    if not core or not core_:
        return
    name, name_ = " ".join(core).strip(","), " ".join(core_).strip(",")
    yield name, name_, "shortened"
    for sign in AND:
        if "&" in core:
            yield _replace_word(core, "&", sign), _replace_word(core_, "&", sign), "shortened"
        if sign in core:
            yield _replace_word(core, sign, "&"), _replace_word(core_, sign, "&"), "shortened"
    if len(core) < 2:
        return
    tail = 0
    while tail < min(len(core), len(core_)) - 1 and core[-1 - tail].lower() == core_[-1 - tail].lower():
        tail += 1
    if tail and _is_distinctive(core[: len(core) - tail]):
        yield " ".join(core[: len(core) - tail]), " ".join(core_[: len(core_) - tail]), "shortened"
    if _is_distinctive(core[:1]):
        short_ = core_[0] if len(core_) > 1 and _is_distinctive(core_[:1]) else name_
        yield core[0], short_, "shortened"
    letters = make_acronym(core)
    if len(letters) > 2:
        yield letters, make_acronym(core_) if len(make_acronym(core_)) > 2 else name_, "acronym"


def _replace_word(words: Sequence[str], old: str, new: str) -> str:
    return " ".join(new if w == old else w for w in words)


def _is_distinctive(words: Sequence[str]) -> bool:
    return any(len(w) > 3 and w[0].isupper() and fold(w.strip(".,")) not in read_common_words() for w in words)


def make_acronym(words: Sequence[str]) -> str:
    """Return the capital initials of a name's words."""
    return "".join(w[0] for w in words if w[0].isupper())


def _pair_place_forms(text: str, original: str) -> Pairs:
    parts, parts_ = text.split(", "), original.split(", ")
    if len(parts) < 2 or len(parts) != len(parts_):
        return
    for part, part_ in zip(parts, parts_, strict=True):
        if any(c.isalpha() for c in part) and _is_distinctive(part.split()):
            yield part, part_, "shortened"
