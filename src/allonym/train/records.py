"""Annotated corpora: readers of all formats that training and evaluation use, and a writer of JSON lines.

A record is a text with its spans. The records of one document share its ``doc_id``, so a split keeps them together.
The format of a file is named, or recognised by its suffix or content. Messages quote file and line, never text.
"""

from __future__ import annotations

import gzip
import json
import zlib
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any, NotRequired, TypedDict, cast

from allonym.document import Span
from allonym.errors import DataError, hide_foreign_errors, require_extra
from allonym.partfile import write_file
from allonym.registry import Registry


class Mark(TypedDict):
    """A gold span: half-open offsets in code points of the record's text, and the label of the corpus.

    ``entity`` is the same for all mentions of one entity in the record. ``kind`` is ``direct`` for a direct identifier,
    ``quasi`` for a quasi-identifier, or ``none``. Both are optional.
    """

    start: int
    end: int
    label: str
    text: str
    entity: NotRequired[str]
    kind: NotRequired[str]


class Record(TypedDict):
    """An annotated text. ``tokens`` and ``upos`` (universal parts of speech) are optional.

    If there are several annotators, ``annotations`` has the spans of each by name, and ``spans`` are the first one's.
    """

    id: str
    doc_id: str
    text: str
    spans: list[Mark]
    meta: dict[str, Any]
    annotations: NotRequired[dict[str, list[Mark]]]
    tokens: NotRequired[list[str]]
    upos: NotRequired[list[str]]


_TAB_KINDS = {"DIRECT": "direct", "QUASI": "quasi", "NO_MASK": "none", "": ""}
KINDS = ("direct", "quasi", "none")
"""Allowed values of ``kind``."""

Columns = tuple[int, int]
"""The columns of the token and of the tag, from 0; negative ones count from the end."""

Reader = Callable[[Path, Columns], Iterable[Record]]

corpus_readers = Registry(
    "corpus_reader",
    {
        "jsonl": "allonym.train.records:read_jsonl",
        "conll": "allonym.train.columns:read_columns",
        "spacy": "allonym.train.records:read_docbin",
        "brat": "allonym.train.records:read_brat",
        "tab": "allonym.train.records:read_tab_benchmark",
        "presidio": "allonym.train.records:read_presidio",
    },
)
"""Readers of annotated corpora: ``(path, columns) -> records``."""

SUFFIXES = {"jsonl": "jsonl", "ndjson": "jsonl", "spacy": "spacy", "ann": "brat"} | dict.fromkeys(
    ("conll", "conllu", "iob", "iob2", "bio", "bioes", "bilou", "tsv"), "conll"
)


def read_records(path: Path | str, format: str | None = None, columns: Columns = (0, -1)) -> list[Record]:
    """Read an annotated file, or a folder of brat files. ``meta.source`` is by default the file's name.

    Args:
        path: the file or folder; ``.gz`` is unpacked.
        format: a name of :data:`corpus_readers`; by default recognised by suffix and content.
        columns: the columns of the token and the tag, for files in columns.

    Raises:
        DataError: the file does not have the format; the message names the line.
        UnknownNameError: the format is unknown.
        OSError: the file cannot be read.
    """
    where = Path(path)
    reader = cast(Reader, corpus_readers.get(format or detect_corpus_format(where)))
    with hide_foreign_errors(f"{where}: damaged gzip file", EOFError, gzip.BadGzipFile, zlib.error):
        records = list(reader(where, columns))
    for record in records:
        record["meta"].setdefault("source", get_file_stem(where))
    return records


def detect_corpus_format(path: Path) -> str:
    """Return the format of a file or folder, by its suffix, else by its content.

    Raises:
        DataError: the format is unknown.
    """
    if path.is_dir():
        if any(path.glob("*.ann")):
            return "brat"
        raise DataError(f"{path}: a folder must contain .txt and .ann files (brat); this one has no .ann")
    bare = PurePath(path.stem) if path.suffix.lower() == ".gz" else path
    suffix = bare.suffix.lower().lstrip(".")
    if suffix in SUFFIXES:
        return SUFFIXES[suffix]
    if suffix == "json":
        return _detect_json_format(path)
    if path.with_suffix(".ann").exists():
        return "brat"
    from allonym.train.columns import has_tag_columns

    if has_tag_columns(read_text_file(path)):
        return "conll"
    raise DataError(f"{path}: the corpus format is not recognised; name one of {', '.join(corpus_readers.names())}")


def read_text_file(path: Path) -> str:
    """Read a UTF-8 file, unpacked if its name ends in ``.gz``, with unchanged line ends.

    Raises:
        DataError: the file is not UTF-8.
    """
    data = gzip.decompress(path.read_bytes()) if path.suffix.lower() == ".gz" else path.read_bytes()
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not UTF-8 at byte {error.start}") from None


def get_file_stem(path: Path) -> str:
    """Return the file's name without its suffixes, for the ids of records without one."""
    return path.name.partition(".")[0] or path.name


def make_record(
    where: str,
    id: str,
    text: object,
    marks: Iterable[Sequence[object]],
    *,
    doc_id: str = "",
    meta: Mapping[str, Any] | None = None,
    annotations: Mapping[str, Iterable[Sequence[object]]] | None = None,
) -> Record:
    """Return a record after checking its spans; ``where`` begins the error message.

    Args:
        marks: (start, end, label), and the entity and its kind, which may be empty.
        annotations: the same for each annotator, if there are several.

    Raises:
        DataError: the text is not a string, a span lies outside it, or its kind is unknown.
    """
    if not isinstance(text, str):
        raise DataError(f"{where}: the text must be a string, got {type(text).__name__}")
    spans = _check_span_rows(where, text, marks)
    record: Record = {"id": id, "doc_id": doc_id or id, "text": text, "spans": spans, "meta": dict(meta or {})}
    if annotations:
        record["annotations"] = {
            name: _check_span_rows(f"{where}, annotator {n}", text, annotations[name])
            for n, name in enumerate(sorted(annotations), 1)
        }
    return record


def _check_span_rows(where: str, text: str, marks: Iterable[Sequence[object]]) -> list[Mark]:
    spans: list[Mark] = []
    for n, (start, end, label, *more) in enumerate(marks, 1):
        are_integers = all(isinstance(offset, int) and not isinstance(offset, bool) for offset in (start, end))
        if not are_integers or not isinstance(label, str) or not label:
            raise DataError(f"{where}, span {n}: start and end must be whole numbers and label a name")
        a, b = cast(int, start), cast(int, end)
        if not 0 <= a < b <= len(text):
            raise DataError(f"{where}, span {n}: 0 <= start < end <= {len(text)} is required, got {a}..{b}")
        mark: Mark = {"start": a, "end": b, "label": label, "text": text[a:b]}
        entity, kind = (*more, "", "")[:2]
        if entity:
            mark["entity"] = str(entity)
        if kind:
            if kind not in KINDS:
                raise DataError(f"{where}, span {n}: kind must be one of {', '.join(KINDS)}")
            mark["kind"] = str(kind)
        spans.append(mark)
    spans.sort(key=lambda s: (s["start"], -s["end"], s["label"]))
    return spans


def list_spans(record: Record) -> list[Span]:
    """Return the record's spans as :class:`Span`, sorted, including nested ones."""
    return sorted(Span(s["start"], s["end"], s["label"]) for s in record["spans"])


def select_outermost_spans(spans: Iterable[Span]) -> list[Span]:
    """Return disjoint sorted spans: of overlapping ones the longest stays, then the first, then by label."""
    disjoint: list[Span] = []
    for span in sorted(spans, key=lambda s: (-len(s), s.start, s.label)):
        index = bisect_left(disjoint, span.start, key=lambda s: s.start)
        if not any(span.overlaps(other) for other in disjoint[max(0, index - 1) : index + 1]):
            disjoint.insert(index, span)
    return disjoint


def write_jsonl(path: Path | str, records: Iterable[Record]) -> int:
    """Write records as JSON lines, packed if the name ends in ``.gz``; the same records give the same bytes.

    Returns:
        The number of records.
    """
    where = Path(path)
    lines = [_format_json_line(record) for record in records]
    data = "".join(line + "\n" for line in lines).encode("utf-8")
    where.parent.mkdir(parents=True, exist_ok=True)
    write_file(where, gzip.compress(data, mtime=0) if where.suffix == ".gz" else data)
    return len(lines)


def _format_json_line(record: Record) -> str:
    line = json.dumps(record, ensure_ascii=False)
    lone = not line.isascii() and any("\ud800" <= c <= "\udfff" for c in line)
    return json.dumps(record) if lone else line


# Readers


def read_jsonl(path: Path, columns: Columns = (0, -1)) -> Iterator[Record]:
    """Read JSON lines with ``text`` and ``spans`` of ``start``, ``end``, ``label``.

    ``id``, ``doc_id`` and ``meta`` are optional.
    A record with ``tokens`` and ``upos`` but no text gets one. The ``text`` of a span must equal the text at its
    offsets. Spans may have ``entity`` (or ``entity_id``, ``entity_ids``: the first counts) and ``kind``.
    ``annotations`` has the spans of several annotators by name; without ``spans``, the first annotator's are used.
    """
    for number, value in read_json_lines(path):
        yield _parse_record(value, f"{path}:{number}", f"{get_file_stem(path)}-{number}")


def read_json_lines(path: Path) -> Iterator[tuple[int, Any]]:
    """Yield the values of JSON lines with their line numbers from 1; a name in ``.gz`` is unpacked.

    Raises:
        DataError: a line is not JSON; the message names it.
    """
    for number, line in enumerate(read_text_file(path).split("\n"), 1):
        if line.strip():
            yield number, _parse_json(line, f"{path}:{number}")


def _parse_record(value: object, where: str, name: str) -> Record:
    if not isinstance(value, dict):
        raise DataError(f"{where}: an object is required, got {type(value).__name__}")
    tokens, upos = value.get("tokens"), value.get("upos")
    text = value.get("text")
    if text is None and isinstance(tokens, list) and all(isinstance(token, str) for token in tokens):
        from allonym.train.columns import detokenise

        text = detokenise(tokens)[0]
    several = value.get("annotations") or {}
    if not isinstance(several, dict):
        raise DataError(f"{where}: annotations must be an object of spans by annotator, got {type(several).__name__}")
    spans: Any = value.get("spans", several[min(several)] if several else [])
    for some in (spans, *several.values()):
        if not isinstance(some, list) or not all(isinstance(span, dict) for span in some):
            raise DataError(f"{where}: spans must be a list of objects")
    meta = value.get("meta", {})
    if not isinstance(meta, dict):
        raise DataError(f"{where}: meta must be an object, got {type(meta).__name__}")
    id = str(value.get("id") or name)
    annotations = {str(name): list(map(_parse_span_row, some)) for name, some in several.items()}
    doc_id, marks = str(value.get("doc_id") or id), map(_parse_span_row, spans)
    record = make_record(where, id, text, marks, doc_id=doc_id, meta=meta, annotations=annotations)
    for n, span in enumerate(spans, 1):
        if "text" in span and record["text"][span["start"] : span["end"]] != span["text"]:
            raise DataError(f"{where}, span {n}: the text at {span['start']}..{span['end']} is not the span's text")
    if isinstance(tokens, list) and isinstance(upos, list):
        if len(tokens) != len(upos):
            raise DataError(f"{where}: as many upos as tokens are required, got {len(upos)} and {len(tokens)}")
        record["tokens"], record["upos"] = tokens, upos
    return record


def _parse_span_row(span: Mapping[str, Any]) -> tuple[object, ...]:
    ids = span.get("entity_ids")
    entity = span.get("entity") or span.get("entity_id") or (ids[0] if isinstance(ids, list) and ids else "")
    return span.get("start"), span.get("end"), span.get("label"), entity, span.get("kind") or ""


def read_docbin(path: Path, columns: Columns = (0, -1)) -> Iterator[Record]:
    """Read ``.spacy`` files: the entities of each document, with their ``ent_id``. Requires spaCy."""
    with require_extra("reading .spacy files", "spacy"):
        import spacy
        from spacy.tokens import DocBin
    data = path.read_bytes()
    with hide_foreign_errors(f"{path}: not a .spacy file"):
        docs = list(DocBin().from_bytes(data).get_docs(spacy.blank("xx").vocab))
    for number, doc in enumerate(docs, 1):
        marks = [(e.start_char, e.end_char, e.label_, e.ent_id_) for e in doc.ents]
        yield make_record(f"{path}, document {number}", f"{get_file_stem(path)}-{number}", doc.text, marks)


def read_brat(path: Path, columns: Columns = (0, -1)) -> Iterator[Record]:
    """Read brat standoff: ``.txt`` with ``.ann`` beside it, one of them or a folder. Each fragment becomes a span.

    Mentions joined by an ``Equiv`` line or a relation ``Coref...`` share an ``entity``.
    """
    if path.is_dir():
        for file in sorted(path.glob("*.ann")):
            yield from read_brat(file)
        return
    text = read_text_file(path.with_suffix(".txt"))
    marks: list[tuple[int, int, str, str]] = []
    same = Groups()
    notes = path.with_suffix(".ann")
    for number, line in enumerate(read_text_file(notes).split("\n"), 1):
        if line.startswith(("*", "R")):
            kind, *args = line.partition("\t")[2].split() or [""]
            if kind == "Equiv" or kind.lower().startswith("coref"):
                same.join([arg.rpartition(":")[2] for arg in args])
        if not line.startswith("T"):
            continue
        fields = line.split("\t")
        label, _, places = fields[1].partition(" ") if len(fields) > 1 else ("", "", "")
        try:
            ranges = [tuple(map(int, place.split())) for place in places.split(";")]
        except ValueError:
            ranges = [()]
        if not label or any(len(place) != 2 for place in ranges):
            raise DataError(f"{notes}:{number}: 'T1<tab>LABEL START END<tab>text' is required")
        if any(not 0 <= a < b <= len(text) for a, b in ranges):
            raise DataError(f"{notes}:{number}: 0 <= start < end <= {len(text)} is required")
        marks += [(a, b, label, fields[0]) for a, b in ranges]
    named = [(a, b, label, same.find_least(name) if name in same else "") for a, b, label, name in marks]
    yield make_record(str(notes), path.stem, text, named)


class Groups(dict[str, str]):
    """Groups of names that belong together, as a forest: each name with one of its group that is no greater."""

    def join(self, names: Sequence[str]) -> None:
        """Join the groups of these names."""
        for name in names:
            low, high = sorted((self.find_least(names[0]), self.find_least(name)))
            self[high] = self.setdefault(low, low)

    def find_least(self, name: str) -> str:
        """Return the least name of the group."""
        while self.get(name, name) != name:
            self[name] = self[self[name]]
            name = self[name]
        return name


def read_tab_benchmark(path: Path, columns: Columns = (0, -1)) -> Iterator[Record]:
    """Read the JSON of the Text Anonymization Benchmark (Pilán et al. 2022, doi:10.1162/coli_a_00458).

    ``spans`` are the mentions of the first annotator, ``annotations`` those of each if there are several, and
    ``meta.annotators`` is their number. Mentions keep their ``entity``; ``kind`` is their ``identifier_type``.
    """
    for where, item in _read_json_list(path):
        annotations = item.get("annotations")
        if not isinstance(annotations, dict) or not annotations:
            raise DataError(f"{where}: annotations by annotator are required")
        marks = {str(name): _read_benchmark_spans(where, annotations[name]) for name in sorted(annotations)}
        meta = {"source": "tab", "annotators": len(annotations)}
        if isinstance(item.get("dataset_type"), str):
            meta["split"] = item["dataset_type"]
        id = str(item.get("doc_id") or where)
        several = marks if len(marks) > 1 else None
        yield make_record(where, id, item.get("text"), marks[min(marks)], meta=meta, annotations=several)


def _read_benchmark_spans(where: str, annotation: object) -> list[tuple[object, ...]]:
    mentions = annotation.get("entity_mentions") if isinstance(annotation, dict) else None
    if not isinstance(mentions, list) or not all(isinstance(mention, dict) for mention in mentions):
        raise DataError(f"{where}: entity_mentions must be a list of objects")
    out: list[tuple[object, ...]] = []
    for m in mentions:
        kind = _TAB_KINDS.get(str(m.get("identifier_type") or ""))
        if kind is None:
            raise DataError(f"{where}: identifier_type must be DIRECT, QUASI or NO_MASK")
        out.append((m.get("start_offset"), m.get("end_offset"), m.get("entity_type"), m.get("entity_id"), kind))
    return out


def read_presidio(path: Path, columns: Columns = (0, -1)) -> Iterator[Record]:
    """Read the JSON of presidio-research. Texts of one template are similar, so they form one document."""
    for number, (where, item) in enumerate(_read_json_list(path), 1):
        spans = item.get("spans")
        if not isinstance(spans, list) or not all(isinstance(span, dict) for span in spans):
            raise DataError(f"{where}: spans must be a list of objects")
        marks = [(s.get("start_position"), s.get("end_position"), s.get("entity_type")) for s in spans]
        template = item.get("template_id")
        id = f"{get_file_stem(path)}-{number}"
        doc_id = id if template is None else f"{get_file_stem(path)}-template-{template}"
        yield make_record(where, id, item.get("full_text"), marks, doc_id=doc_id, meta={"source": "presidio"})


def _detect_json_format(path: Path) -> str:
    _, item = next(iter(_read_json_list(path)), ("", {}))
    if "annotations" in item:
        return "tab"
    if "full_text" in item:
        return "presidio"
    if "text" in item:
        raise DataError(f"{path}: a list of records; write them as JSON lines (.jsonl)")
    raise DataError(f"{path}: the JSON is of no known corpus; name one of {', '.join(corpus_readers.names())}")


def _read_json_list(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    value = _parse_json(read_text_file(path), str(path))
    if not isinstance(value, list):
        raise DataError(f"{path}: a list of documents is required, got {type(value).__name__}")
    for number, item in enumerate(value, 1):
        if not isinstance(item, dict):
            raise DataError(f"{path}, item {number}: an object is required, got {type(item).__name__}")
        yield f"{path}, item {number}", item


def _parse_json(text: str, where: str) -> object:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, " if "\n" in text.strip() else ""
        raise DataError(f"{where}: not JSON at {place}column {error.colno}") from None
    except RecursionError:
        raise DataError(f"{where}: JSON is nested too deeply") from None
