"""What a text shows of the documents that it may come from, and which matches this supports.

A replacement such as a tag, a full name or a long number stands in no text by chance. A city, a given name or a date
does, and so do changed forms: one letter another, a family name alone. These need evidence of their document.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from allonym.restoration.forms import ADDRESS, CODE, DATE, LOCATION, ORGANIZATION, PERSON, TAG, split_person
from allonym.restoration.hits import Match
from allonym.restoration.index import Row
from allonym.text.names import TITLES

GIVEN, SHOWN, NAME, TITLE, TELLING, GRAMMAR = "plan", "document", "full name", "title", "replacement", "tag"
"""The kinds of evidence: the caller named the document; the text shows it; it has the full name; a title stands before;
the replacement stands in no text by chance; the grammar of tags."""

UNSUPPORTED = "may be the text's own: nothing in the text shows the document that has this replacement for {label}"
OTHER_MEANING = "a word that stands for {label} was left: after an article it means something else"

_LEAST_SIGNS = 6
"""Letters and digits of a code that hardly any text has by chance."""
_PLAINLY = frozenset({"exact", "markdown", "html", "json", "url", "invisible"})
"""Rules under which all letters are those of the replacement."""
_SLIGHTLY = _PLAINLY | {"case", "spacing", "hyphenation", "signs", "quotes", "diacritics", "number format"}
"""Rules that leave the words of a telling replacement as they are."""
_INFLECTED = _SLIGHTLY | {"inflected", "plural", "joined"}
"""The same for a name of several words."""
_WORD_BEFORE = re.compile(r"([^\W\d_]+)\.?[ \t\u00a0]+\Z")
_ARTICLES = frozenset(
    "the a an das der dem den des ein eine einem einen einer les un une el los una lo il gli ett".split()
)
_GERMAN = frozenset("das ein kein keinem einem mein meinem dein sein ihr ihrem unser unserem beim zum".split())
"""Words before a German noun that no name of a city has before it, and that no other language has before one."""
_LEAST_SEEN, _LEAST_SEEN_IN_VAULT = 1, 4
"""So many other replacements of a document in any form show it, too."""
_LONG_TEXT, _MANY_ROWS = re.compile(r"\s*+(?:\S++\s++){150}\S"), 6
"""A text of more than 150 words shows more than one of a plan's many replacements, unless it has that one by chance."""


def is_telling(row: Row) -> bool:
    """Tell whether hardly any text has a replacement by chance."""
    text = row.text
    if row.is_ordinary:
        return False
    if row.kind in (TAG, ADDRESS):
        return True
    letters = sum(map(str.isalnum, text))
    if row.kind == CODE:
        return letters >= _LEAST_SIGNS
    if row.kind == PERSON:
        given_names, family = split_person(text)
        return bool(given_names and family and len(given_names[0]) > 1)
    if row.kind == DATE:
        return False
    has_digits = any(map(str.isdigit, text))
    if row.kind in (LOCATION, ORGANIZATION):
        return has_digits and len(text.split()) > 2
    is_time = row.label == "AGE" or "DATE" in row.label  # "18 years old"
    return has_digits and letters >= _LEAST_SIGNS and any(map(str.isalpha, text)) and not is_time


class Evidence:
    """Judges the matches of one text.

    Args:
        rows: the replacements that were searched for.
        present: documents that the text is known to come from.
        is_given: the caller says that the text comes from the only document there is.
    """

    def __init__(self, rows: Sequence[Row], present: Iterable[str] = (), *, is_given: bool = False) -> None:
        self._rows = rows
        self._documents: dict[str, frozenset[str]] = {}
        self._shown = set(present)
        self._is_given = is_given
        self._whole: set[int] = set()
        self._seen: dict[str, set[int]] = {}

    def is_shown(self) -> bool:
        """Tell whether the text shows the document that was given, or the document could show nothing."""
        if self._shown or self._whole or any(len(rows) > _LEAST_SEEN for rows in self._seen.values()):
            return True
        return all(row.is_ordinary or len(row.text) < 2 for row in self._rows)

    def _list_documents(self, row: int) -> frozenset[str]:
        return self._documents.get(self._rows[row].text, frozenset({""}))

    def _note_matches(self, matches: Iterable[Match]) -> None:
        """Note what the matches show: the documents of whole, telling replacements."""
        for m in matches:
            if m.row < 0 or not m.is_sure:
                continue
            for document in self._list_documents(m.row):
                self._seen.setdefault(document, set()).add(m.row)
            rules = m.rule.split("+")
            is_tag = self._rows[m.row].kind == TAG
            if m.is_whole and (is_tag or _PLAINLY.issuperset(rules)):
                self._whole.add(m.row)
            if is_tag or self._is_telling(m, rules):
                self._shown |= self._list_documents(m.row)

    def _is_telling(self, m: Match, rules: list[str]) -> bool:
        """Tell whether a match is so close to a telling replacement that it tells as much."""
        allowed = _INFLECTED if m.words > 1 else _SLIGHTLY
        return m.is_whole and allowed.issuperset(rules) and is_telling(self._rows[m.row])

    def _is_document_shown(self, row: int) -> bool:
        """Tell whether the text shows a document of a replacement by others than this one."""
        documents = self._list_documents(row)
        if self._shown & documents:
            return True
        if self._is_given and (len(self._rows) == 1 or self._whole - {row}):
            return True
        least = _LEAST_SEEN if self._is_given else _LEAST_SEEN_IN_VAULT
        return any(len(self._seen.get(document, set()) - {row}) >= least for document in documents)

    def judge_matches(
        self, text: str, matches: Sequence[Match], documents: Mapping[str, frozenset[str]]
    ) -> list[Match]:
        """Return the matches, each with its evidence; those that nothing supports are no longer sure, and say why.

        Args:
            text: that they stand in.
            matches: all of them; of a text that arrives in chunks those that are new, which earlier ones support too.
            documents: the documents of each replacement; those of a replacement that is missing are unknown.
        """
        self._documents.update(documents)
        self._note_matches(matches)
        return [self._judge(text, m) for m in matches]

    def _judge(self, text: str, m: Match) -> Match:
        if m.row < 0 or not m.is_sure or m.out is None:
            return m
        evidence = self._find_evidence(text, m)
        if evidence:
            return m._replace(evidence=evidence)
        why = OTHER_MEANING if evidence is None else UNSUPPORTED
        return m._replace(is_sure=False, why=why.format(label=m.label))

    def _find_evidence(self, text: str, m: Match) -> str | None:
        """Return the evidence of a match, empty without any; None if an article shows that it is another word."""
        row = self._rows[m.row]
        rules = m.rule.split("+")
        if row.kind == TAG:
            return GRAMMAR
        if self._is_telling(m, rules):
            return TELLING
        before = _WORD_BEFORE.search(text, max(0, m.start - 20), m.start)
        word = before[1].lower() if before else ""
        is_shown = self._is_document_shown(m.row)
        if m.words == 1 and self._is_behind_article(m, word, is_shown):
            return None
        if m.is_whole and _PLAINLY.issuperset(rules):
            if self._is_given and not self._is_alone_in_long_text(text):
                return GIVEN
        elif m.row in self._whole:
            return NAME
        elif self._is_given and word in TITLES and "typo" not in rules:
            return TITLE
        return SHOWN if is_shown else ""

    def _is_alone_in_long_text(self, text: str) -> bool:
        """Tell whether a long text shows only one replacement of a plan with many, none of them telling."""
        is_alone = not self._shown and len(self._whole) < 2
        return is_alone and len(self._rows) >= _MANY_ROWS and _LONG_TEXT.match(text) is not None

    def _is_behind_article(self, m: Match, word: str, is_shown: bool) -> bool:
        """Tell whether the word before a single word shows that it is no name."""
        kind = self._rows[m.row].kind
        if kind == LOCATION and word in _GERMAN:
            return True
        return word in _ARTICLES and not is_shown and (kind == LOCATION or (kind == PERSON and not m.is_whole))
