"""Look up the replacements that a text may contain in a large scope of a vault, without reading all of it.

A small scope is read whole, so that a replacement is recognised in any form. In a large one, whole replacements are
looked up by their digests, as they stand in the text or as tags are written. Those that hardly any text has by chance
show their documents, and all replacements of these are looked up, too: so their other forms are recognised as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from allonym.labels import TAXONOMY
from allonym.replace.operators import list_corrected_codes
from allonym.restoration.edits import list_replacements
from allonym.restoration.evidence import is_telling
from allonym.restoration.forms import is_unspaced_script, split_words_and_gaps
from allonym.restoration.gaps import PLAIN_SIGNS
from allonym.restoration.index import Index
from allonym.restoration.translated import read_translations
from allonym.restoration.view import View
from allonym.text.fold import fold
from allonym.vault.records import Known

if TYPE_CHECKING:
    from allonym.vault import Vault

MOST_LOADED = 10_000
"""Originals up to which a scope is read whole, which takes about a second."""

_MOST_WORDS, _LONGEST = 8, 100
_LONGEST_UNSPACED = 20
_TAG_WORDS = 4
_BEFORE = re.compile(r"[^\w\s]\Z")
_CODE = re.compile(r"(?i)[0-9a-f]{6,18}")
_TAGS = ("{} {}", "{}_{}", "<{} {}>", "<{}_{}>", '<{} "{}">', "{}:{}")
"""How tags are written, after folding: words of the label, and a number or code."""


def look_up_replacements(vault: Vault, scope: str, text: str) -> list[Known]:
    """Return the replacements of a scope that occur in a text whole, and all of the documents that these show."""
    matching = vault.find_all(scope, set(list_surfaces(text)))
    telling = {row.text for row in Index(matching).rows if is_telling(row)}
    with vault.read_plans(scope) as reader:
        documents = {row for rows in reader.find_documents_of(telling).values() for row in rows}
        plans = reader.find_by_rows(documents)
    further = {entry.replacement for plan in plans for entry in list_replacements(plan.plan.edits)}
    return list(dict.fromkeys((*matching, *vault.find_all(scope, further))))


def list_surfaces(text: str) -> Iterator[str]:
    """Yield what may be a whole replacement: words in a row, with and without the signs before and after them.

    In a script without spaces, such as that of Chinese or Thai, it is any 2 to 20 characters in a row. The code of a
    wild tag is corrected behind a label that is known or in capitals, since any number may look like a code.

    >>> set(list_surfaces("Emma [Person_1]")) >= {"Emma", "Person_1", "Emma [Person_1", "person 1", "<person 1>"}
    True
    """
    shown = View(text).text
    split = split_words_and_gaps(shown)
    starts, ends, position = [], [], 0
    for i, piece in enumerate(split):
        if i % 2:
            starts.append(position)
            ends.append(position + len(piece))
        position += len(piece)
    words, translations = split[1::2], read_translations()
    for start, end, word in zip(starts, ends, words, strict=True):
        if is_unspaced_script(word):
            yield from (shown[i:j] for i in range(start, end) for j in range(i + 2, i + _LONGEST_UNSPACED + 1))
    for i, start in enumerate(starts):
        has_sign = bool(start) and _BEFORE.search(shown, start - 1, start) is not None
        for j in range(i, min(i + _MOST_WORDS, len(words))):
            end = ends[j]
            if end - start > _LONGEST:
                break
            surface = shown[start:end]
            yield surface
            if (plain := surface.translate(PLAIN_SIGNS)) != surface:
                yield plain
            follows = shown[end : end + 1]
            if follows.strip():
                yield shown[start : end + 1]
            if has_sign:
                yield shown[start - 1 : end]
                yield shown[start - 1 : end + 1]
            if i < j < i + _TAG_WORDS and any(map(str.isdigit, words[j])):
                meanings = translations.get(fold(" ".join(words[i:j])), ())
                labels = [words[i:j], *(label.split() for meaning in meanings for label in meaning)]
                codes = [words[j]]
                is_label = meanings or "_".join(words[i:j]).upper() in TAXONOMY or "".join(words[i:j]).isupper()
                if is_label and _CODE.fullmatch(words[j]):
                    codes += list_corrected_codes(words[j].upper())
                for joint in (" ", "_"):
                    for label in (joint.join(label).lower() for label in labels):
                        yield from (form.format(label, code.lower()) for form in _TAGS for code in codes)
