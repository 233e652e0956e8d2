"""JSON Lines and JSON: each record is a document made of its strings; a list of turns makes it a conversation.

Only changed strings are rewritten. Key order, number literals, escapes and whitespace keep their bytes. A number that
is covered becomes a string with a tab behind it, by which restoring knows that it writes a number again. The records of
a JSON list are the rows of a table: their fields are looked at first, see :mod:`allonym.files.columns`, and a value has
the same replacement in all of them. A key that is a person's name is covered as one; other
unusual keys, given names among them, are searched by rules and for what was found elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import BinaryIO, cast

from allonym.batch import RECORD_ERRORS, TEXT_KEYS, join_fields
from allonym.document import KEPT, PROSE, Turn
from allonym.errors import DataError
from allonym.files import jsontext
from allonym.files.columns import SAMPLE_ROWS, UNKNOWN, Column, decide_fields, find_role_of_id, find_role_of_number
from allonym.files.encoding import (
    SAMPLE,
    Encoding,
    count_encoding,
    cut_stream,
    decode_file,
    detect_encoding,
    make_chunks,
)
from allonym.files.fields import (
    FieldKeys,
    collect_metadata,
    find_covering_field,
    find_key_role,
    find_record_id,
    format_masked_keys,
    is_plain_key,
    is_record_id,
)
from allonym.files.jsontext import Token
from allonym.files.record import (
    Chunk,
    Draft,
    Failure,
    Format,
    Job,
    ParsedChunk,
    Piece,
    Tally,
    read_beginning,
    read_within_limit,
)
from allonym.files.segments import Segment, splice_segments

TURN_LISTS = frozenset(("turns", "messages", "utterances", "dialogue", "dialog", "conversation", "transcript"))
SPEAKER_KEYS = frozenset(("speaker", "role", "from", "author", "name", "participant"))
MAX_SHOWN = 200


Columns = Mapping[FieldKeys, Column]
"""What was decided about the fields of records, by their paths."""


def make_record_draft(
    text: str,
    job: Job,
    tally: Tally,
    line: int = 1,
    to_bytes: Callable[[str], bytes] = str.encode,
    columns: Columns = MappingProxyType({}),
) -> Draft | Failure:
    """Return a record as a draft, whose new text ``to_bytes`` writes, or as a failure with its reason.

    ``columns`` tells about the fields of a record that is the row of a table; empty: it is none.
    """
    try:
        value = jsontext.parse_json(text)
        tokens = list(jsontext.find_json_tokens(text, every_number=True))
    except RECORD_ERRORS as error:
        return Failure("", line, jsontext.describe_json_error(error))
    record = value if isinstance(value, dict) else {}
    roles = {token: _find_role(token, columns, job) for token in tokens}
    chosen = [token for token in tokens if _choose_and_count_token(token, roles[token], columns, job, tally)]
    order, after, turns = (
        ([*range(len(chosen))], ["\n"] * len(chosen), []) if columns else _order_tokens_by_turn(chosen)
    )
    parts = [(_find_field_name(chosen[i]), chosen[i].text, end) for i, end in zip(order, after, strict=True)]
    meta = collect_metadata(record) if job.policy.metadata else {}
    document = join_fields(find_record_id(record.items()), parts, meta, [roles[chosen[i]] for i in order])
    paths = tuple(".".join(chosen[i].path) for i in order)
    document = replace(document, fields=paths)
    if turns:
        places = dict(zip(order, document.parts, strict=True))
        spoken = (Turn(*places[words], None if speaker is None else places[speaker]) for speaker, words in turns)
        document = replace(document, turns=tuple(spoken))
    segments = [_make_segment(chosen[i], ascii_only=text.isascii() and "\\u" in text) for i in order]
    return Draft(document, lambda parts: to_bytes(splice_segments(text, segments, parts)), line)


def _make_segment(token: Token, *, ascii_only: bool) -> Segment:
    quote = jsontext.quote_json_string
    if token.was_number:
        quote = jsontext.write_former_number
    elif token.kind == "number":
        quote = jsontext.quote_number
    return Segment(token.start, token.end, token.text, partial(quote, ascii_only=ascii_only))


def _find_role(token: Token, columns: Columns, job: Job) -> str:
    """Return the role of a token's text in the document of its record."""
    if token.kind == "key":
        return find_key_role(token.text)
    if token.kind == "number" and token.path and not columns:
        return find_role_of_number(token.path[-1], token.text, job.policy)
    if not columns and not job.fields and is_record_id(token.path, token.text):
        return find_role_of_id(token.path[0], token.text, job.policy)
    role = columns.get(token.path, UNKNOWN).get_cell_role(token.text)
    return PROSE if role == KEPT and job.fields else role


def _choose_and_count_token(token: Token, role: str, columns: Columns, job: Job, tally: Tally) -> bool:
    """Tell whether a token's text is anonymised, and count its field in the tally."""
    is_unnamed = role == PROSE or (role == KEPT and bool(columns))
    if token.kind == "number" and is_unnamed and not jsontext.is_long_number(token.text):
        return False
    if token.kind == "key":
        # A key that is not a plain name may itself be an address, a number or a person.
        is_chosen = not job.fields or find_covering_field(token.path[:-1], job.fields) is not None
        return is_chosen and not is_plain_key(token.text)
    if job.fields:
        name = find_covering_field(token.path, job.fields)
        if name is None:
            return False
        tally.treated[name] += 1
        return True
    column = columns.get(token.path, UNKNOWN)
    is_left_out = is_record_id(token.path, token.text) and role in (PROSE, KEPT) and not column.chosen
    counts = tally.left if is_left_out or column.role == KEPT else tally.treated
    name = format_masked_keys(token.path) or "(text)"
    if name in counts or len(counts) < MAX_SHOWN:
        counts[name] += 1
    return not is_left_out


def _is_in_list_of_turns(token: Token) -> bool:
    return token.kind == "value" and token.listed and (len(token.path) == 1 or token.path[-2] in TURN_LISTS)


def _find_field_name(token: Token) -> str:
    """Return the name to show before a text; none for keys, speakers, and names that may be data."""
    in_turn = _is_in_list_of_turns(token) and token.path[-1] in SPEAKER_KEYS
    if token.kind == "key" or not token.path or in_turn or token.path == ("speaker",):
        return ""
    return token.path[-1] if is_plain_key(token.path[-1]) else ""


def _order_tokens_by_turn(chosen: list[Token]) -> tuple[list[int], list[str], list[tuple[int | None, int]]]:
    """Return the order of the parts, the separator after each, and (speaker, text) of each turn, as indexes."""
    speakers: dict[int, int] = {}
    turn_texts: dict[int, int] = {}
    for i, token in enumerate(chosen):
        if token.kind != "value" or not (_is_in_list_of_turns(token) or len(token.path) == 1):
            continue
        key = token.path[-1]
        if key in SPEAKER_KEYS and (_is_in_list_of_turns(token) or key == "speaker"):
            # A name is more specific than a role.
            if token.object not in speakers or chosen[speakers[token.object]].path[-1] == "role":
                speakers[token.object] = i
        elif key in TEXT_KEYS:
            turn_texts.setdefault(token.object, i)
    turn_texts = {turn: i for turn, i in turn_texts.items() if turn in speakers or _is_in_list_of_turns(chosen[i])}
    speaker_of = {text: speakers.get(turn) for turn, text in turn_texts.items()}
    moved = {speaker for speaker in speaker_of.values() if speaker is not None}
    order: list[int] = []
    separators: list[str] = []
    for i in range(len(chosen)):
        if i in moved:
            continue
        if (speaker := speaker_of.get(i)) is not None:
            order.append(speaker)
            separators.append(": ")
        order.append(i)
        separators.append("\n")
    return order, separators, [(speaker, text) for text, speaker in sorted(speaker_of.items())]


def _read_line_chunks(stream: BinaryIO, job: Job, size: int, start: int) -> Iterator[Chunk]:
    head = read_beginning(stream, SAMPLE)
    encoding = detect_encoding(head)
    if start:
        stream.seek(start)
        head = b""
    pieces = cut_stream(stream, encoding, size, lambda text, _: text.rfind("\n") + 1, head)
    return make_chunks(pieces, (encoding,), start)


def _parse_json_lines(chunk: Chunk, job: Job) -> ParsedChunk:
    (encoding,) = cast("tuple[Encoding]", chunk.head)
    mark = encoding.mark if chunk.first else b""
    data = chunk.data.removeprefix(mark)
    pieces: list[Piece] = [mark]
    tally = count_encoding(encoding) if chunk.first else Tally()
    utf8 = encoding.codec == "utf-8"
    lines: Sequence[bytes | str] = data.split(b"\n") if utf8 else encoding.decode(data).split("\n")
    for number, line in enumerate(lines, 1):
        end = "\n" if number < len(lines) else ""
        try:
            text = line if isinstance(line, str) else line.decode()
        except UnicodeDecodeError:
            pieces.append(Failure("", number, "not valid UTF-8"))
            continue
        body = text.strip()
        if not body:
            pieces.append((text + end).encode(encoding.codec))
            continue
        lead, _, tail = text.partition(body)
        pieces.append(make_record_draft(body, job, tally, number, partial(_encode_line, encoding, lead, tail + end)))
    return ParsedChunk(pieces, len(lines) - (not lines[-1]), tally)


def _encode_line(encoding: Encoding, lead: str, tail: str, body: str) -> bytes:
    return encoding.encode(lead + body + tail)


def _parse_json_file(chunk: Chunk, job: Job) -> ParsedChunk:
    text, encoding = decode_file(chunk.data)
    body = text.strip()
    try:
        value = jsontext.parse_json(body)
    except RECORD_ERRORS as error:
        raise DataError(jsontext.describe_json_error(error)) from None
    lead, _, tail = text.partition(body)
    tally = count_encoding(encoding)
    places = [(0, len(body))]
    if isinstance(value, list) and not _is_list_of_turns(value):
        places = list(jsontext.find_list_item_offsets(body))
    columns = _decide_columns(value, job)
    records = [
        make_record_draft(body[a:b], job, tally, number, columns=columns) for number, (a, b) in enumerate(places, 1)
    ]

    def join_items(out: list[bytes | None]) -> bytes:
        pieces: list[str] = [lead]
        if places:
            pieces.append(body[: places[0][0]])
        kept_items = [i for i, data in enumerate(out) if data is not None]
        for nth, i in enumerate(kept_items):
            if nth:
                # i is at least 1: the text between an item and the previous one
                pieces.append(body[places[i - 1][1] : places[i][0]])
            pieces.append(cast(bytes, out[i]).decode())
        pieces += (body[places[-1][1] if places else 0 :], tail)
        return encoding.encode_file("".join(pieces))

    return ParsedChunk(records, len(places), tally, join_items, shared=bool(columns))


def _decide_columns(value: object, job: Job) -> dict[FieldKeys, Column]:
    """Decide about the fields of a list of records; nothing for any other value, such as a conversation."""
    if not isinstance(value, list) or len(value) < 2 or not all(isinstance(record, dict) for record in value):
        return {}
    if _is_list_of_turns(value):
        return {}
    values: dict[FieldKeys, list[str]] = {}
    for record in value[:SAMPLE_ROWS]:
        if not _collect_values(record, (), values):
            return {}
    return decide_fields(values, job.policy)


def _collect_values(value: object, path: FieldKeys, values: dict[FieldKeys, list[str]]) -> bool:
    """Add the values of a record to those of their paths; return false where it holds a list of records itself."""
    if isinstance(value, dict):
        return all(_collect_values(inner, (*path, str(key)), values) for key, inner in value.items())
    if isinstance(value, list):
        return all(not isinstance(inner, dict) and _collect_values(inner, path, values) for inner in value)
    if isinstance(value, (str, int, float)) and not isinstance(value, bool):
        values.setdefault(path, []).append(str(value))
    return True


def _list_columns(stream: BinaryIO, job: Job) -> list[Column]:
    text, _ = decode_file(read_within_limit(stream))
    return list(_decide_columns(jsontext.parse_json(text), job).values())


def _is_list_of_turns(value: list[object]) -> bool:
    turns = [v for v in value if isinstance(v, dict) and SPEAKER_KEYS & v.keys() and TEXT_KEYS & v.keys()]
    return len(turns) == len(value) > 1


JSONL = Format("jsonl", _parse_json_lines, _read_line_chunks, many=True, fields=True, unit="line")
JSON = Format("json", _parse_json_file, many=True, fields=True, unit="item", columns=_list_columns)
