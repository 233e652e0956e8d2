"""XML, YAML and notebooks: the values of a structured text form one document; all other characters are kept.

A value is read after its name. The values of one name that stands several times are looked at together, as a column is,
see :mod:`allonym.files.columns`: numbers and categories stay, identifiers are covered in each. Unusual names are
searched by rules. In notebooks the pictures of outputs become grey.
"""

from __future__ import annotations

import base64
import json
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any
from urllib.parse import quote, unquote

from allonym.batch import RECORD_ERRORS, format_lead_in
from allonym.document import CAPTION, KEPT, PROSE, TECHNICAL
from allonym.errors import DataError, RefusedContent, hide_foreign_errors, require_extra
from allonym.files import jsontext
from allonym.files.columns import SAMPLE_ROWS, UNKNOWN, decide_fields, find_role_of_number, is_number
from allonym.files.fields import FieldKeys, find_key_role, is_plain_key
from allonym.files.markup import find_xml_values
from allonym.files.pictures import make_grey_data_uri, make_grey_png
from allonym.files.record import Chunk, Format, Job, ParsedChunk
from allonym.files.segments import Segment, parse_segments
from allonym.policy import Policy

LEAST_VALUES = 3
"""Least number of values of one name that are looked at together."""

MAX_DEPTH = 500
"""Brackets of YAML that may be open at once."""

_LITERALS = frozenset("true false yes no on off null none ~".split())
_TYPES = frozenset(("!!", name) for name in ("int", "float", "timestamp", "bool", "null"))
_PLAIN_TAG = re.compile(r"[\w%!<>.:/, -]*")
_COMMENT = re.compile(r"(?m)(?:^|(?<=[ \t]))#([^\n]*)")
_BLOCK = re.compile(r"[^\n]*\n")
_SKIPPED = frozenset(
    (("cells", "cell_type"), ("cells", "id"), ("cells", "outputs", "output_type"), ("cells", "outputs", "name"))
)
_MEDIA_TYPE = re.compile(r"(?:application|audio|image|text|video)/[a-z0-9.+-]+")
_DATA = re.compile(r"(?i)data:[\w.+-]+\\?/[\w.+-]+(?:;[\w=.-]+)*,(?:[\w+/=%.-]|\\/)*")
_EMBEDDED = ("image/", "audio/", "video/", "application/pdf", "application/octet-stream")


def _parse_values(chunk: Chunk, job: Job, find_values: FindValues) -> ParsedChunk:
    return parse_segments(chunk, job, lambda source: _give_roles(list(find_values(source)), job.policy))


def _give_roles(values: Sequence[tuple[FieldKeys, Segment]], policy: Policy) -> list[Segment]:
    """Return the segments with the roles of their values, each after its name."""
    by_path: dict[FieldKeys, list[str]] = {}
    for path, segment in values:
        if path and segment.role == PROSE and len(by_path.setdefault(path, [])) < SAMPLE_ROWS:
            by_path[path].append(segment.text)
    columns = decide_fields({p: texts for p, texts in by_path.items() if len(texts) >= LEAST_VALUES}, policy)
    segments: list[Segment] = []
    for path, segment in values:
        role, text = segment.role, segment.text
        if path and role == PROSE:
            role = columns.get(path, UNKNOWN).get_cell_role(text)
            is_plain = text.strip().lower() in _LITERALS or (is_number(text) and sum(map(str.isdigit, text)) < 7)
            if path not in columns and is_number(text):
                role = find_role_of_number(path[-1], text, policy)
            role = KEPT if path not in columns and is_plain and role == PROSE else role
        lead = format_lead_in(path[-1], text) if path and is_plain_key(path[-1]) else ""
        segments.append(replace(segment, role=role, before=f"{segment.before}{lead}"))
    return segments


def _find_yaml_values(source: str) -> Iterator[tuple[FieldKeys, Segment]]:
    """Yield the scalars, unusual keys and comments of a YAML source, each with its path."""
    with require_extra("YAML", "yaml"):
        import yaml
    with hide_foreign_errors("not valid YAML", yaml.YAMLError, ValueError):
        tokens = list(_check_depth(yaml.scan(source)))
        for _ in yaml.parse(source):
            pass  # its grammar
    keys: list[str] = [""]
    is_key = False
    spans: list[tuple[int, int]] = []
    typed_from: int | None = None
    for token in tokens:
        kind = type(token).__name__
        if kind in ("TagToken", "DirectiveToken"):
            start, end = token.start_mark.index, token.end_mark.index
            typed_from = start if token.value in _TYPES else None
            if not _PLAIN_TAG.fullmatch(tag := unquote(source[start:end])):
                yield (), Segment(start, end, tag, _write_tag, "\n", role=TECHNICAL)
            continue
        if kind.endswith("StartToken") and kind not in ("StreamStartToken", "DocumentStartToken"):
            keys.append("")
        elif kind in ("BlockEndToken", "FlowSequenceEndToken", "FlowMappingEndToken"):
            keys.pop()
        elif kind in ("KeyToken", "ValueToken"):
            is_key = kind == "KeyToken"
        elif kind == "ScalarToken":
            start, end = token.start_mark.index, token.end_mark.index
            spans.append((start, end))
            tag_start, typed_from = typed_from, None
            if not is_key:
                segment = _make_yaml_segment(source, start, end, token.value, token.style)
                if tag_start is not None:  # what stands for a number is none
                    segment = replace(segment, start=tag_start, encode=_write_typed_text)
                yield tuple(filter(None, keys)), segment
                continue
            keys[-1] = token.value
            if not is_plain_key(token.value):
                yield (), _make_yaml_segment(source, start, end, token.value, token.style, find_key_role(token.value))
    starts = [start for start, _ in spans]
    for match in _COMMENT.finditer(source):
        before = bisect_right(starts, match.start()) - 1
        if before < 0 or spans[before][1] <= match.start() or _is_in_block_head(source, spans[before], match.start()):
            yield (), Segment(*match.span(1), match[1])


def _check_depth(tokens: Iterable[Any]) -> Iterator[Any]:
    """Yield tokens of YAML. Raises :class:`RefusedContent` where too many levels are open, each of which takes time."""
    depth = 0
    for token in tokens:
        depth += type(token).__name__ in ("FlowSequenceStartToken", "FlowMappingStartToken")
        depth -= type(token).__name__ in ("FlowSequenceEndToken", "FlowMappingEndToken")
        if depth > MAX_DEPTH:
            raise RefusedContent(f"more than {MAX_DEPTH} brackets of YAML are open at once")
        yield token


def _write_tag(text: str) -> str:
    return quote(text, safe=" %!<>-;/?:@&=+$,_.~*'()[]")


def _write_typed_text(text: str) -> str:
    return f"!!str {json.dumps(text, ensure_ascii=False)}"


def _is_in_block_head(source: str, span: tuple[int, int], position: int) -> bool:
    """Tell whether a position is on the line that a block of text begins with."""
    return source[span[0]] in "|>" and "\n" not in source[span[0] : position]


def _make_yaml_segment(source: str, start: int, end: int, value: str, style: str | None, role: str = PROSE) -> Segment:
    if style in ("|", ">"):
        head = _BLOCK.match(source, start)
        start = head.end() if head else end
        lines = source[start:end].splitlines(keepends=True)
        indent = min((len(line) - len(line.lstrip(" ")) for line in lines if line.strip()), default=0)
        return Segment(
            start,
            end,
            "".join(line[min(indent, len(line) - len(line.lstrip(" "))) :] for line in lines),
            lambda text: re.sub(r"(?m)^(?=.)", " " * indent, text),
            role=role,
        )

    def encode(text: str) -> str:
        if style == "'" and "\n" not in text:
            return "'" + text.replace("'", "''") + "'"
        return json.dumps(text, ensure_ascii=False)

    return Segment(start, end, value, encode, role=role)


def _find_notebook_values(source: str) -> Iterator[tuple[FieldKeys, Segment]]:
    """Yield the strings of a notebook's cells and outputs, and those of its metadata as technical text."""
    try:
        value = jsontext.parse_json(source)
        tokens = list(jsontext.find_json_tokens(source))
    except RECORD_ERRORS as error:
        raise DataError(jsontext.describe_json_error(error)) from None
    if not isinstance(value, dict) or "cells" not in value:
        raise DataError("not a notebook: it has no cells")
    quote = partial(jsontext.quote_json_string, ascii_only=source.isascii() and "\\u" in source)
    previous: tuple[int, FieldKeys] = (0, ())
    for token in tokens:
        place, name = (token.object, token.path), token.path[-1] if token.path else ""
        if token.kind == "key":
            if not is_plain_key(token.text) and not _MEDIA_TYPE.fullmatch(token.text):
                role = CAPTION if "attachments" in token.path else find_key_role(token.text)
                yield (), Segment(token.start, token.end, token.text, quote, role=role)
        elif token.kind == "number" and not jsontext.is_long_number(token.text):
            pass
        elif name.startswith(_EMBEDDED):
            grey = json.dumps(base64.b64encode(make_grey_png()).decode())
            yield (), Segment(token.start, token.end, "", fixed=grey)
        elif token.path not in _SKIPPED or "@" in token.text:
            is_technical = "metadata" in token.path[:3] or name.startswith("application/")
            is_technical = is_technical and name != "title" and "authors" not in token.path
            before = "" if place == previous and token.path[0] == "cells" else "\n"  # the lines of a cell
            yield from (
                ((), s) for s in _read_string(token, source, quote, before, TECHNICAL if is_technical else PROSE)
            )
        if token.kind != "key":
            previous = place


def _read_string(
    token: jsontext.Token, source: str, quote: Callable[[str], str], before: str, role: str
) -> Iterator[Segment]:
    """Yield a string of JSON, or a number; embedded data in it become a grey picture."""
    matches = list(_DATA.finditer(source, token.start, token.end))
    if not matches:
        yield Segment(token.start, token.end, token.text, quote, before, role=role)
        return
    ends = [token.start + 1, *(end for match in matches for end in match.span()), token.end - 1]
    for start, end in zip(ends[::2], ends[1::2], strict=True):
        if start < end:
            text = json.loads(f'"{source[start:end]}"', strict=False)
            yield Segment(start, end, text, lambda new: quote(new)[1:-1], before, role=role)
            before = ""
    yield from (Segment(*match.span(), "", fixed=make_grey_data_uri()) for match in matches)


FindValues = Callable[[str], Iterable[tuple[FieldKeys, Segment]]]
"""From a source to its values: the path of each (empty: it has no name) and its segment."""

XML = Format("xml", partial(_parse_values, find_values=find_xml_values))
YAML = Format("yaml", partial(_parse_values, find_values=_find_yaml_values))
IPYNB = Format("ipynb", partial(_parse_values, find_values=_find_notebook_values))
