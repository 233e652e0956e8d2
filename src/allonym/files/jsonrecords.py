"""JSON Lines and JSON: each record is a document made of its strings; a list of turns makes it a conversation.

Only changed strings are rewritten. Key order, number literals, escapes and whitespace keep their bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import BinaryIO, cast

from allonym.batch import RECORD_ERRORS, TEXT_KEYS, join_fields
from allonym.document import Turn
from allonym.errors import DataError
from allonym.files import jsontext
from allonym.files.encoding import Encoding, cut_stream, decode_file, detect_encoding
from allonym.files.fields import ID_NAMES, find_named_field, format_path, is_id, is_plain_key, read_metadata
from allonym.files.jsontext import Token
from allonym.files.record import Chunk, Draft, Failure, Format, Job, Parsed, Piece, Tally

TURN_LISTS = frozenset(("turns", "messages", "utterances", "dialogue", "dialog", "conversation", "transcript"))
SPEAKER_KEYS = frozenset(("speaker", "role", "from", "author", "name", "participant"))
MAX_SHOWN = 200


def draft_record(text: str, job: Job, tally: Tally, line: int = 1) -> Draft | Failure:
    """Return a record as a draft, or as a failure with its reason."""
    try:
        value = jsontext.parse_json(text)
        tokens = list(jsontext.find_tokens(text))
    except RECORD_ERRORS as error:
        return Failure("", line, jsontext.describe_json_error(error))
    record = value if isinstance(value, dict) else {}
    chosen = [token for token in tokens if _is_treated(token, job, tally)]
    order, after, turns = _order_parts(chosen)
    parts = [(_get_token_field_name(chosen[i]), chosen[i].text, end) for i, end in zip(order, after, strict=True)]
    document = join_fields(record_id(record), parts, _select_metadata(record, job))
    if turns:
        places = {i: document.parts[index] for index, i in enumerate(order)}
        document = replace(
            document,
            turns=tuple(
                Turn(*places[text_part], None if speaker_part is None else places[speaker_part])
                for speaker_part, text_part in turns
            ),
        )

    def render_record(parts: tuple[str, ...]) -> bytes:
        changed = [(chosen[i], part) for i, part in zip(order, parts, strict=bool(order)) if part != chosen[i].text]
        if not changed:
            return text.encode()
        ascii_only = jsontext.has_only_escapes(text)
        pieces: list[str] = []
        position = 0
        for token, part in sorted(changed, key=lambda c: c[0].start):
            pieces += (text[position : token.start], jsontext.quote_json(part, ascii_only))
            position = token.end
        return "".join((*pieces, text[position:])).encode()

    return Draft(document, render_record, line)


def _is_treated(token: Token, job: Job, tally: Tally) -> bool:
    if token.kind == "key":
        # A key that is not a plain name may itself be an address or a number.
        return not is_plain_key(token.text) and (
            not job.fields or find_named_field(token.path[:-1], job.fields) is not None
        )
    if job.fields:
        name = find_named_field(token.path, job.fields)
        if name is None:
            return False
        tally.treated[name] += 1
        return True
    is_left_out = is_id(token.path, token.text)
    counts = tally.left if is_left_out else tally.treated
    name = format_path(token.path) or "(text)"
    if name in counts or len(counts) < MAX_SHOWN:
        counts[name] += 1
    return not is_left_out


def _is_in_turn(token: Token) -> bool:
    return token.kind == "value" and token.listed and (len(token.path) == 1 or token.path[-2] in TURN_LISTS)


def _get_token_field_name(token: Token) -> str:
    in_turn = _is_in_turn(token) and token.path[-1] in SPEAKER_KEYS
    if token.kind == "key" or not token.path or in_turn or token.path == ("speaker",):
        return ""
    return token.path[-1] if is_plain_key(token.path[-1]) else ""


def _order_parts(chosen: list[Token]) -> tuple[list[int], list[str], list[tuple[int | None, int]]]:
    """Return the order of the parts, the separator after each, and (speaker, text) of each turn, as indexes."""
    speakers: dict[int, int] = {}
    turn_texts: dict[int, int] = {}
    for i, token in enumerate(chosen):
        if token.kind != "value" or not (_is_in_turn(token) or len(token.path) == 1):
            continue
        key = token.path[-1]
        if key in SPEAKER_KEYS and (_is_in_turn(token) or key == "speaker"):
            # A name is more specific than a role.
            if token.object not in speakers or chosen[speakers[token.object]].path[-1] == "role":
                speakers[token.object] = i
        elif key in TEXT_KEYS:
            turn_texts.setdefault(token.object, i)
    turn_texts = {turn: i for turn, i in turn_texts.items() if turn in speakers or _is_in_turn(chosen[i])}
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


def record_id(record: Mapping[str, object]) -> str:
    """Return the id of a record if it looks like one, else an empty string."""
    for name in record:
        if name.lower() in ID_NAMES and isinstance(value := record[name], (str, int)) and is_id((name,), str(value)):
            return str(value)
    return ""


def _select_metadata(record: Mapping[str, object], job: Job) -> Mapping[str, object]:
    return read_metadata(record) if job.policy.metadata else {}


def _read_line_chunks(stream: BinaryIO, job: Job, size: int, start: int) -> Iterator[Chunk]:
    head = stream.read(4)
    encoding = detect_encoding(head)
    if start:
        stream.seek(start)
        head = b""
    position = start
    for data in cut_stream(stream, encoding, size, lambda text, _: text.rfind("\n") + 1, head):
        position += len(data)
        yield Chunk(data, (encoding.codec, encoding.mark), position == len(data), position)


def _parse_lines(chunk: Chunk, job: Job) -> Parsed:
    codec, mark = chunk.head
    encoding = Encoding(cast(str, codec), cast(bytes, mark))
    data = chunk.data
    pieces: list[Piece] = []
    if chunk.first and data.startswith(encoding.mark):
        pieces.append(encoding.mark)
        data = data[len(encoding.mark) :]
    tally = Tally()
    plain = codec == "utf-8"
    lines: Sequence[bytes | str] = data.split(b"\n") if plain else encoding.decode(data).split("\n")
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
        lead = len(text) - len(text.lstrip())
        head, tail = text[:lead], text[lead + len(body) :] + end
        record = draft_record(body, job, tally, number)
        pieces.append(_wrap_draft(record, head, tail, encoding) if isinstance(record, Draft) else record)
    return Parsed(pieces, len(lines) - (not lines[-1]), tally)


def _wrap_draft(draft: Draft, head: str, tail: str, encoding: Encoding) -> Draft:
    inner = draft.render

    def render_wrapped(parts: tuple[str, ...]) -> bytes:
        body = inner(parts)
        if encoding.codec == "utf-8":
            return head.encode() + body + tail.encode()
        return encoding.encode(head + body.decode() + tail)

    return replace(draft, render=render_wrapped)


def _parse_whole(chunk: Chunk, job: Job) -> Parsed:
    text, encoding = decode_file(chunk.data)
    body = text.strip()
    try:
        value = jsontext.parse_json(body)
    except RECORD_ERRORS as error:
        raise DataError(jsontext.describe_json_error(error)) from None
    lead = len(text) - len(text.lstrip())
    tally = Tally()
    places = [(0, len(body))]
    if isinstance(value, list) and not _is_conversation(value):
        places = list(jsontext.find_items(body))
    records = [draft_record(body[a:b], job, tally, number) for number, (a, b) in enumerate(places, 1)]

    def join_items(out: list[bytes | None]) -> bytes:
        pieces: list[str] = [text[:lead]]
        if places:
            pieces.append(body[: places[0][0]])
        kept_items = [i for i, data in enumerate(out) if data is not None]
        for nth, i in enumerate(kept_items):
            if nth:
                # i is at least 1: the text between an item and the previous one
                pieces.append(body[places[i - 1][1] : places[i][0]])
            pieces.append(cast(bytes, out[i]).decode())
        pieces += (body[places[-1][1] if places else 0 :], text[lead + len(body) :])
        return encoding.mark + encoding.encode("".join(pieces))

    return Parsed(records, len(places), tally, join_items)


def _is_conversation(value: list[object]) -> bool:
    return len(value) > 1 and all(
        isinstance(v, dict) and SPEAKER_KEYS & v.keys() and TEXT_KEYS & v.keys() for v in value
    )


JSONL = Format("jsonl", _parse_lines, _read_line_chunks, many=True, fields=True, unit="line")
JSON = Format("json", _parse_whole, many=True, fields=True, unit="item")
