"""Tags whose labels were translated: ``<OSOBA 1>`` or ``[PERSONNE_1]`` for ``<PERSON 1>``."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from allonym.restoration.forms import CLOSING, OPENING, Form
from allonym.restoration.hits import Match, find_part_original
from allonym.restoration.tag_parts import read_tag_part
from allonym.restoration.view import escape_like
from allonym.restoration.words import read_lines
from allonym.text.fold import fold

if TYPE_CHECKING:
    from allonym.restoration.scan import Scan

_MOST_WORDS = 5
_FAR = 40
_IN_TAGS = frozenset(" _-:#=.\"'“”„’»«\u00a0")
_MATES = {opener: closer for opener, closer in zip(OPENING, CLOSING, strict=True) if opener != "("}


@cache
def read_translations() -> dict[str, tuple[tuple[str, ...], ...]]:
    """Return what a translation may mean: for each meaning its labels, the likeliest first. All is folded."""
    table: dict[str, dict[tuple[str, ...], None]] = {}
    for line in read_lines("labels.tsv"):
        labels, _, translations = line.partition("\t")
        for translation in translations.split("|"):
            table.setdefault(fold(translation), {})[tuple(labels.split(", "))] = None
    return {translation: tuple(meanings) for translation, meanings in table.items()}


@cache
def _read_first_words() -> frozenset[str]:
    return frozenset(translation.split()[0] for translation in read_translations())


def may_begin_translated_tag(scan: Scan, word_index: int) -> bool:
    """Tell whether a translated tag may begin with a word: the first of a label, after a bracket or in capitals."""
    if scan.lows[word_index] not in _read_first_words():
        return False
    before = scan.gaps[word_index][-1:]
    return before == "<" or (scan.words[word_index][0].isupper() and (before in _MATES or _is_joined(scan, word_index)))


def _is_joined(scan: Scan, word_index: int) -> bool:
    is_begun = scan.gaps[word_index][-1:] == "_"
    return scan.words[word_index].isupper() and scan.gaps[word_index + 1] == "_" and not is_begun


def find_translated_tag(scan: Scan, word_index: int, covered_until: int) -> Match | None:
    """Match a tag with a translated label at a word; None if there is none, or several have its number."""
    if not may_begin_translated_tag(scan, word_index):
        return None
    text, start = scan.text, scan.starts[word_index]
    opener = text[start - 1 : start]
    is_bracketed = opener in _MATES
    for last in range(word_index + 1, word_index + _MOST_WORDS + 1):
        if last >= scan.count:
            scan.mark_if_text_short(start + _FAR)
            return None
        if len(scan.gaps[last]) > 3 or not _IN_TAGS.issuperset(scan.gaps[last]):
            return None
        if not any(map(str.isdigit, scan.words[last])):
            continue
        end = scan.ends[last]
        scan.mark_if_text_short(end + 4)
        number = scan.lows[last].lstrip("0") if scan.words[last].isdigit() else scan.lows[last]
        form = _find_only_tag(scan, " ".join(scan.lows[word_index:last]), number)
        if form is None or form.target is None:
            return None
        target: str | None = form.target
        if (part := read_tag_part(form, text, end)) is not None:
            target, end = find_part_original(scan.index, form, part.name), part.end
        scan.mark_if_text_short(end + (_FAR if is_bracketed and text[end : end + 1] != _MATES[opener] else 4))
        if target is None:
            return None
        quotes = len(text[end : end + 2]) - len(text[end : end + 2].lstrip("\"'”’»"))
        if is_bracketed:
            if text[end + quotes : end + quotes + 1] != _MATES[opener]:
                return None
            start, end = start - 1, end + quotes + 1
        elif text[end : end + 1] == "_" or tuple(scan.lows[word_index:last]) in scan.index.labels:
            return None  # a tag's own label, which is no translation
        if start < covered_until:
            return None
        a, b, escapes = scan.view.map_form_to_raw(start, end, form.text)
        out = escape_like(target, escapes) if escapes else target
        rule = "+".join(dict.fromkeys(("translated", *(kind for kind, _ in escapes))))
        return Match(a, b, out, rule, form.label, form.row, True, len(form.keys))
    return None


def _find_only_tag(scan: Scan, label: str, number: str) -> Form | None:
    """Return the tag with this number, and the likeliest label that is translated like this.

    None if it is not one, or tags for several meanings are there: ``nombre`` is a name, or a number.
    """
    tags: list[Form] = []
    for meaning in read_translations().get(label, ()):
        forms = (scan.index.full.get((*english.split(), number), ()) for english in meaning)
        tags += next(filter(None, forms), ())
    return tags[0] if len(tags) == 1 else None
