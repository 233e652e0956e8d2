"""Corpora in columns: one token per line, the tag in a column, an empty line between sentences.

The tags may be IO, IOB1, IOB2 (BIO), BIOES, BILOU or BMES. If ``-DOCSTART-`` lines separate the documents, a record is
a document with a sentence on each line; otherwise each sentence is a record. The text is joined from the tokens, so
spacing and quotes are close to the original, but not always the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from allonym.errors import DataError
from allonym.train.records import Columns, Record, get_file_stem, make_record, read_text_file

_TAG = re.compile(r"O|[BIESLUM]-\S+")
_CLOSING = frozenset(".,;:!?%)]}…’”»")
_OPENING = frozenset("([{$£€#¿¡“«‘")
_ENCLITIC = re.compile(r"(?i)(?:n['’]t|['’](?:s|m|d|t|ll|re|ve)?)")
_PTB = {"``": '"', "''": '"', "-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}"}


def read_columns(path: Path, columns: Columns = (0, -1)) -> Iterator[Record]:
    """Read the records of a file in columns.

    Raises:
        DataError: a line has too few columns, or an invalid tag.
    """
    documents = [(marked, sentences) for marked, sentences in _read_column_documents(path, columns) if sentences]
    if any(marked for marked, _ in documents):
        pieces = [sentences for _, sentences in documents]
    else:
        pieces = [[sentence] for _, sentences in documents for sentence in sentences]
    for n, sentences in enumerate(pieces, 1):
        yield _make_record(path, f"{get_file_stem(path)}-{n}", sentences)


Sentence = list[tuple[str, str]]


def _read_column_documents(path: Path, columns: Columns) -> list[tuple[bool, list[Sentence]]]:
    out: list[tuple[bool, list[Sentence]]] = [(False, [[]])]
    text = read_text_file(path)
    tabbed = "\t" in text
    plain = 0  # first line with a tag that has no prefix
    tagged = prefixed = False
    for number, line in enumerate(text.split("\n"), 1):
        fields = line.rstrip("\r").split("\t") if tabbed else line.split()
        if not line.strip():
            out[-1][1].append([])
        elif fields[0].startswith("-DOCSTART"):
            out.append((True, [[]]))
        elif line.startswith("#") and not out[-1][1][-1] and not _has_tag_field(fields, columns):
            continue  # a comment of CoNLL-U
        else:
            token, tag = _read_token_and_tag(fields, columns, f"{path}:{number}")
            is_tag = _TAG.fullmatch(tag) is not None
            tagged, prefixed = tagged or is_tag, prefixed or (is_tag and tag != "O")
            plain = plain or (0 if is_tag else number)
            out[-1][1][-1].append((token, tag))
    if plain and (prefixed or not tagged):
        raise DataError(f"{path}:{plain}: no tag such as O, B-PER or I-PER in column {columns[1]}")
    return [(marked, [s for s in sentences if s]) for marked, sentences in out]


def _has_tag_field(fields: Sequence[str], columns: Columns) -> bool:
    return -len(fields) <= columns[1] < len(fields) > 1 and _TAG.fullmatch(fields[columns[1]]) is not None


def _read_token_and_tag(fields: Sequence[str], columns: Columns, where: str) -> tuple[str, str]:
    try:
        token, tag = (fields[column].strip() for column in columns)
    except IndexError:
        token = tag = ""
    if not token or not tag or columns[0] % len(fields) == columns[1] % len(fields):
        raise DataError(
            f"{where}: a token in column {columns[0]} and a tag in column {columns[1]} are required, "
            f"got {len(fields)} columns"
        )
    return token, tag


def _make_record(path: Path, id: str, sentences: Sequence[Sentence]) -> Record:
    lines: list[str] = []
    marks: list[tuple[object, object, object]] = []
    position = 0
    for sentence in sentences:
        text, places = detokenise([token for token, _ in sentence])
        for first, last, label in find_entities([tag for _, tag in sentence]):
            marks.append((position + places[first][0], position + places[last][1], label))
        lines.append(text)
        position += len(text) + 1
    meta = {"source": get_file_stem(path), "detokenized": True, "n_tokens": sum(map(len, sentences))}
    return make_record(str(path), id, "\n".join(lines), marks, meta=meta)


def find_entities(tags: Sequence[str]) -> list[tuple[int, int, str]]:
    """Return first token, last token and label of each entity, for any scheme of tags.

    >>> find_entities(["B-PER", "I-PER", "O", "I-LOC", "B-LOC", "S-ORG"])
    [(0, 1, 'PER'), (3, 3, 'LOC'), (4, 4, 'LOC'), (5, 5, 'ORG')]
    """
    out: list[tuple[int, int, str]] = []
    open_label = ""
    for i, tag in enumerate(tags):
        if tag == "O":
            open_label = ""
            continue
        prefix, label = (tag[0], tag[2:]) if _TAG.fullmatch(tag) else ("I", tag)
        if prefix in "BSU" or label != open_label:
            out.append((i, i, label))
        else:
            out[-1] = (out[-1][0], i, label)
        open_label = "" if prefix in "ESLU" else label
    return out


def detokenise(tokens: Sequence[str]) -> tuple[str, list[tuple[int, int]]]:
    """Join tokens to running text, and return it with the tokens' offsets. Penn Treebank brackets become plain ones.

    >>> detokenise(["She", "did", "n't", "go", "(", "yet", ")", "."])[0]
    "She didn't go (yet)."
    """
    pieces: list[str] = []
    places: list[tuple[int, int]] = []
    position = 0
    glued = True  # no space before the next token
    quoted = False
    for token in tokens:
        shown = _PTB.get(token, token)
        quote = shown == '"'
        closing = quoted if quote else shown[0] in _CLOSING or _ENCLITIC.fullmatch(shown) is not None
        if not (glued or closing):
            pieces.append(" ")
            position += 1
        places.append((position, position + len(shown)))
        pieces.append(shown)
        position += len(shown)
        if quote:
            quoted = not quoted
        glued = quoted if quote else len(shown) == 1 and shown in _OPENING
    return "".join(pieces), places


def has_tag_columns(text: str) -> bool:
    """Tell whether the first lines are columns that end in a tag."""
    first = text.split("\n", 200)[:200]
    lines = [line.split() for line in first if line.strip() and not line.startswith(("#", "-DOC"))]
    tagged = [fields for fields in lines if len(fields) > 1 and _TAG.fullmatch(fields[-1])]
    return bool(lines) and len(tagged) > 0.9 * len(lines)
