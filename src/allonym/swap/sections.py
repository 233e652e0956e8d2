"""The documents of a corpus, the fields to read so that none is released unchanged, and the part that is chunked.

The part is all of a document, an earnings call's presentation, or the text between two markers. P1 3.1.1 keeps the
management's presentation and drops the questions and answers, which are alike in no two calls. Further sections are
added by ``sections.register(name, function)``."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

import re2

from allonym.batch import MAX_NAMED, format_lead_in, split_field_name
from allonym.detection.lexicon import fold_keeping_length
from allonym.detection.scan import compile_pattern, find_matches
from allonym.detection.turns import add_turns
from allonym.document import Document, Interval, Turn, clip_intervals, merge_intervals
from allonym.errors import DataError, UnknownNameError, UsageError
from allonym.files import read_documents
from allonym.files.fields import find_metadata_value
from allonym.files.metadata import match_metadata_rows
from allonym.registry import Registry
from allonym.swap.chunking import split_sentences
from allonym.swap.protected import list_core_words

Sectioner = Callable[[Document], Sequence[Interval] | None]
"""A document to the stretches of it that are chunked, sorted and disjoint; None if it has no such section."""

sections = Registry(
    "section",
    {"all": "allonym.swap.sections:everything", "presentation": "allonym.swap.sections:presentation"},
)
"""Sections by name; functions as :data:`Sectioner`."""

BETWEEN = ">>>"
"""Separates two patterns in one string."""

_REMARKS = 1500  # code points of a speech that is part of a presentation
_INSTRUCTIONS = 700  # code points before a marker that belong to the same announcement
_SOON = 400  # code points after an invitation within which questions must be mentioned again
_LAST = 4  # sentences at the end of a speech in which the questions are opened


@dataclass(frozen=True, slots=True)
class Speech:
    """A turn; ``speaker`` is the name, number or role that the source gives, if any. It is hidden from ``repr``."""

    start: int
    end: int
    speaker: str = field(default="", repr=False)


def get_sectioner(section: str | tuple[str, str] | Sectioner) -> Sectioner:
    """Return the function for a name, a pair of RE2 patterns (from, to), or a function.

    The section of a pair, also written as one string ``FROM >>> TO``, is from the match of the first pattern to the
    next match of the second; an empty pattern is the beginning or the end.

    Raises:
        UnknownNameError: no such section.
        UsageError: a pattern is not valid.
    """
    if isinstance(section, str) and BETWEEN in section:
        begin, _, end = (piece.strip() for piece in section.partition(BETWEEN))
        section = (begin, end)
    if isinstance(section, str):
        return cast(Sectioner, sections.get(section))
    if callable(section):
        return section
    if len(section) != 2 or not all(isinstance(p, str) for p in section):
        raise UsageError("a section is a name, a function, or two patterns: where it begins, where it ends")
    for pattern in section:
        try:
            compile_pattern(pattern)
        except re2.error as error:
            raise UsageError(f"a section's pattern is not valid RE2: {error.args[0]!r}") from None
    begin, end = section

    def find_section(document: Document) -> Sequence[Interval] | None:
        text, start, stop = document.text, 0, len(document.text)
        if begin:
            start = next((m[0][0] for m in find_matches(compile_pattern(begin), text)), -1)
        if end:
            stop = next((m[0][0] for m in find_matches(compile_pattern(end), text) if m[0][0] > start), -1)
        return None if min(start, stop) < 0 else tuple(clip_intervals(everything(document), start, stop))

    return find_section


def check_section(document: Document, section: Sequence[Interval]) -> tuple[Interval, ...]:
    """Return the result of a section function, checked.

    Raises:
        DataError: the intervals are not sorted, disjoint, and within the text.
    """
    end = 0
    for a, b in section:
        if not end <= a < b <= len(document.text):
            raise DataError(f"a section must be sorted, disjoint and within its text; the interval {a}..{b} is not")
        end = b
    return tuple((int(a), int(b)) for a, b in section)


def everything(document: Document) -> tuple[Interval, ...]:
    """Return all running text: a conversation from its first to its last turn, and parts that are no short fields; if
    there are only short fields, the longest."""
    text, parts = document.text, document.parts
    if not parts:
        return ((0, len(text)),) if text.strip() else ()
    turns = (0, 0)
    if document.turns:
        turns = (min(map(_get_turn_start, document.turns)), max(t.end for t in document.turns))
    others = [p for p in parts if not (turns[0] <= p[0] and p[1] <= turns[1])]
    running = [p for p in others if is_free_text(document, p)]
    if len(others) < len(parts):
        running.append(turns)
    running = running or [max(others, key=lambda p: (p[1] - p[0], -p[0]))]
    return tuple(merge_intervals(p for p in running if text[slice(*p)].strip()))


def _get_turn_start(turn: Turn) -> int:
    return min(turn.start, turn.speaker[0]) if turn.speaker else turn.start


def is_free_text(document: Document, part: Interval) -> bool:
    """Whether a part is text, not a field such as a name or a category: it is long, or has no field name before it."""
    (a, b), text = part, document.text
    return b - a > MAX_NAMED or "\n" in text[a:b] or text[max(0, a - 2) : a] != ": "


def list_speeches(document: Document) -> tuple[Speech, ...]:
    """Return the turns of a document: its own, those that ``meta["turns"]`` gives by offsets, or its lines."""
    text = document.text
    if document.turns:
        starts = [(t, _get_turn_start(t)) for t in document.turns]
        return tuple(Speech(start, t.end, text[slice(*t.speaker)] if t.speaker else "") for t, start in starts)
    running = everything(document)
    if not running:
        return ()
    start, end = max(running, key=lambda s: s[1] - s[0])
    if turns := _parse_turns(document.meta.get("turns"), start, end):
        return turns
    out: list[Speech] = []
    for a, b in running:
        for line in text[a:b].splitlines(keepends=True):
            if line.strip():
                out.append(Speech(a, a + len(line.rstrip())))
            a += len(line)
    return tuple(out)


def _parse_turns(turns: object, start: int, end: int) -> tuple[Speech, ...]:
    out: list[Speech] = []
    last = start
    for turn in turns if isinstance(turns, (list, tuple)) else ():
        if not isinstance(turn, Mapping):
            return ()
        a, b, speaker = turn.get("start"), turn.get("end"), turn.get("role") or turn.get("speaker")
        if not (isinstance(a, int) and isinstance(b, int) and last <= a + start <= b + start <= end):
            return ()
        if a < b:
            out.append(Speech(a + start, b + start, "" if speaker is None else str(speaker)))
        last = b + start
    return tuple(out)


@cache
def _load_patterns() -> Mapping[str, Any]:
    text = files("allonym.swap").joinpath("sections.toml").read_text(encoding="utf-8")
    rows = tomllib.loads(text)["presentation"]
    return {name: compile_pattern("(?i)" + "|".join(f"(?:{p})" for p in patterns)) for name, patterns in rows.items()}


def _has_pattern_match(pattern_name: str, text: str) -> bool:
    return next(find_matches(_load_patterns()[pattern_name], text), None) is not None


def presentation(document: Document) -> tuple[Interval, ...] | None:
    """Return the part of an earnings call before the questions; None if it is not known where they begin.

    The roles of speakers show it, if they are named, or the words: "our first question comes from", "to ask a question,
    press star one", "we will now take your questions", "thank you for taking my question".
    """
    end = _find_questions_start(document.text, list_speeches(document))
    return None if end is None else tuple(clip_intervals(everything(document), 0, end))


def _find_questions_start(text: str, speeches: Sequence[Speech]) -> int | None:
    """Return where the questions begin."""
    operators = [bool(s.speaker) and _has_pattern_match("operators", s.speaker) for s in speeches]
    for i, speech in enumerate(speeches):
        if speech.speaker and i and _has_pattern_match("analysts", speech.speaker):
            while i > 1 and operators[i - 1]:
                i -= 1
            return speeches[i].start
    for i, position in _find_question_signs(text, speeches):
        speech = speeches[i]
        if position < 0:
            return speeches[i + 1].start if i + 1 < len(speeches) else speech.end
        return position if position - speech.start > _INSTRUCTIONS // 2 else speech.start
    return None


def _find_question_signs(text: str, speeches: Sequence[Speech]) -> Iterator[tuple[int, int]]:
    """Yield (speech, position in the text) of each sign that the questions begin; -1: with the next speech."""
    for i, speech in enumerate(speeches):
        tiles = split_sentences(text, speech.start, speech.end)
        for n, (a, b) in enumerate(tiles):
            sentence = text[a:b]
            if not _has_pattern_match("about", sentence) or _has_pattern_match("later", sentence):
                continue
            if a - speeches[0].start < _REMARKS:
                if _has_pattern_match("first", sentence):
                    yield i, a
                continue
            is_instruction = a - speech.start < _INSTRUCTIONS and i > 0
            if _has_pattern_match("begins", sentence) or (is_instruction and _has_pattern_match("asks", sentence)):
                yield i, a
            elif n >= len(tiles) - _LAST and _has_pattern_match("opens", sentence):
                following = text[speech.end : speech.end + _SOON]
                if not following.strip() or _has_pattern_match("about", following):
                    yield i, -1


_NOTHING: Mapping[str, Sequence[str]] = MappingProxyType({})
_ALIASES = ("abbreviation", "abbreviations", "alias", "aliases", "ticker", "tickers", "symbol", "ticker_symbol")


def read_corpus_documents(
    source: str | Path,
    protect: str,
    fields: Sequence[str] | None = None,
    beside: Sequence[str] = (),
    format: str | None = None,
    metadata: str | Path | None = None,
) -> tuple[Document, ...]:
    """Read the documents of a source with their metadata.

    Args:
        source, protect, format, metadata: as for :func:`allonym.swap.load`.
        fields: those of :func:`list_text_fields`.
        beside: those of them that are no text of the corpus, but released with it.

    Raises:
        UsageError: no such file, format or field.
        DataError: a file cannot be read, or there is no document with text.
    """
    documents = [
        add_turns(_remove_field_names(d, [protect, *beside]) if fields else d)
        for d in read_documents(source, fields=fields, format=format)
    ]
    if metadata is not None:
        rows = match_metadata_rows(metadata, [document.id for document in documents])
        documents = [replace(d, meta={**d.meta, **row}) for d, row in zip(documents, rows, strict=True)]
    if not any(everything(d) for d in documents):
        raise DataError(f"{source}: there is no text in it" + (f" in {', '.join(fields)}" if fields else ""))
    return tuple(documents)


def list_text_fields(
    source: str | Path,
    protect: str,
    fields: Sequence[str] | None,
    format: str | None = None,
    lists: Mapping[str, Sequence[str]] = _NOTHING,
) -> tuple[str, ...] | None:
    """Return the fields to read: the named ones, the protected one, and those that list direct identifiers or further
    names, wherever any document has text in them, so that none of these is released beside the text.

    Args:
        lists: label to metadata keys, as in :attr:`allonym.Policy.metadata`.
    """
    if not fields:
        return None
    keys = (protect.rpartition(".")[2], *_ALIASES, *chain.from_iterable(lists.values()))
    names = set(map(split_field_name, keys))
    paths = dict.fromkeys(f"{outer}{protect}" for outer in ("", "meta.", "metadata.") if "." in protect)
    for document in read_documents(source, fields=fields, format=format):
        nested = ((f"{outer}.", document.meta.get(outer)) for outer in ("meta", "metadata"))
        for outer, record in (("", document.meta), *nested):
            if isinstance(record, Mapping):
                more = [k for k, value in record.items() if value and split_field_name(str(k)) in names]
                paths.update((f"{outer}{key}", None) for key in more)
    return tuple(dict.fromkeys((*fields, *(path for path in paths if _has_text_field(source, format, path)))))


def _has_text_field(source: str | Path, format: str | None, path: str) -> bool:
    """Whether any document has text in the field of this path."""
    try:
        documents = read_documents(source, fields=[path], format=format)
        return any(part.strip() for d in documents for part in d.part_texts())
    except UnknownNameError:
        return False


def is_named_in_unread_text(document: Document, value: str) -> bool:
    """Whether the record names the value in a string that is not read, such as a title, and so stays as it is."""
    words = " ".join(list_core_words(value))
    return len(words) > 2 and any(
        f" {words} " in f" {' '.join(fold_keeping_length(string).split())} " and string.strip() not in document.text
        for string in _iterate_nested_strings(document.meta)
    )


def _iterate_nested_strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (Mapping, list, tuple)):
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from _iterate_nested_strings(item)


def _remove_field_names(document: Document, kept_names: Sequence[str]) -> Document:
    """Return the document without the names of fields in front of short texts, so that these are text as others are;
    only the fields of ``kept_names`` keep theirs."""
    if document.turns or not document.parts:
        return document
    text = document.text
    pieces: list[str] = []
    parts: list[Interval] = []
    before = offset = 0
    for n, (a, b) in enumerate(document.parts):
        lead = text[before:a].lstrip("\n")
        is_kept = any(lead == format_lead_in(name.rpartition(".")[2], text[a:b]) for name in kept_names)
        between = ("\n" if n else "") + (lead if is_kept else "")
        pieces += (between, text[a:b])
        parts.append((offset + len(between), offset + len(between) + b - a))
        before, offset = b, parts[-1][1]
    return replace(document, text="".join(pieces), parts=tuple(parts))


def list_protected_values(documents: Sequence[Document], protect: str) -> tuple[str, ...]:
    """Return each document's value of the protected metadata.

    Raises:
        UsageError: no document has this key; the message names the nearest ones.
        DataError: some lack it, or there are fewer than two documents or values.
    """
    values = [get_metadata(d, protect) for d in documents]
    if not any(values):
        keys = sorted({str(k) for d in documents for k, v in d.meta.items() if isinstance(v, (str, int))})
        if not keys:
            required = f"protect: {protect!r} is required"
            raise UsageError(f"{required}, and the documents have no metadata; a table may give it")
        raise UnknownNameError("metadata key", protect, keys, "protect")
    count = len(documents)
    if lacking := [i for i, v in enumerate(values, 1) if not v]:
        raise DataError(
            f"{len(lacking)} of {count} documents have no {protect!r}, the first is number {lacking[0]}; "
            "every document needs the metadata that is protected"
        )
    if count < 2:
        required = f"two at least are required, with two values of {protect!r}"
        raise DataError(f"one document has nobody to exchange with; {required}")
    if len(set(values)) < 2:
        raise DataError(f"all {count} documents have the same {protect!r}; two values at least are required")
    return tuple(values)


def get_metadata(document: Document, key: str) -> str:
    """Return a document's metadata, by key, by key in ``lower_case_words``, or by dotted path; empty if it has none."""
    value = find_metadata_value(document.meta, key)
    if value is None and "." in key:
        value = document.meta.get(key.rpartition(".")[2])
    if isinstance(value, (list, tuple)) and len(value) == 1:
        value = value[0]
    return str(value).strip() if isinstance(value, (str, int)) and not isinstance(value, bool) else ""


def list_aliases(document: Document, value: str, kind: str, aliases: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Return further names of a document's protected value, those of the user and those of its metadata."""
    entries: list[object] = [aliases.get(value, ())]
    if kind in ("COMPANY", "ORGANIZATION"):
        entries += [document.meta.get(key) for key in _ALIASES]
    names = [n for e in entries for n in ([e] if isinstance(e, str) else e if isinstance(e, (list, tuple)) else ())]
    return tuple(dict.fromkeys(n.strip() for n in names if isinstance(n, str) and len(n.strip()) > 1))
