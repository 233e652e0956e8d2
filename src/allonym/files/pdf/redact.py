"""Rewrite content streams without removed characters; all others keep their positions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import chain
from typing import Any

import pikepdf

from allonym.files.pdf.content import SHOWING, ContentStream, Glyph, GlyphPlace

_KEPT = frozenset(
    "w J j M d ri i gs q Q cm m l c v y h re S s f F f* B B* b b* n W W* BT ET Tc Tw Tz TL Tf Tr Ts Td TD Tm T* "
    "CS cs SC SCN sc scn G g RG rg K k sh Do d0 d1".split()
)
_BOX: Sequence[Operation] = (([], "q"), ([Decimal("0.88")], "g"), ([0, 0, 1, 1], "re"), ([], "f"), ([], "Q"))
_FRAME: Sequence[Operation] = (
    ([], "q"), ([Decimal("0.6")], "G"), ([0], "w"), ([0, 0, 1, 1], "re"), ([], "S"), ([], "Q"),
)  # fmt: skip

Operation = tuple[Sequence[Any], str]
"""Operands and operator; floats are written with four decimals."""

GlyphsByString = dict[int, dict[int, list[Glyph]]]
"""Characters by operator and string."""


def group_glyphs_by_stream(glyphs: Iterable[Glyph]) -> dict[Any, GlyphsByString]:
    """Group characters by stream."""
    out: dict[Any, GlyphsByString] = defaultdict(lambda: defaultdict(lambda: defaultdict(list)))
    for glyph in glyphs:
        out[glyph.stream][glyph.op][glyph.item].append(glyph)
    return out


def merge_glyphs(glyphs: GlyphsByString, more: GlyphsByString) -> None:
    """Add characters to those of the same stream; a form's characters are drawn once for each page that shows it."""
    for op, by_item in more.items():
        for item, some in by_item.items():
            before = glyphs.setdefault(op, {}).get(item, [])
            glyphs[op][item] = list({glyph.start: glyph for glyph in chain(before, some)}.values())


Insert = tuple[Sequence[Operation], float]
"""The operations that show a replacement, and the number that takes its advance back in a TJ array."""


def rewrite_content_stream(
    source: ContentStream,
    changed: GlyphsByString,
    gone: Container[GlyphPlace],
    moves: Mapping[GlyphPlace, float],
    inserts: Mapping[GlyphPlace, Insert],
    pictures: str,
    frames: Container[int] = (),
) -> bytes:
    """Rewrite a content stream without removed characters and without marks with text, with balanced states.

    Args:
        source: the stream.
        changed: the characters to remove or move.
        gone: those to remove.
        moves: how far characters, and inserts in place of removed ones, move, as the number of a TJ array.
        inserts: inserts in place of removed characters.
        pictures: ``keep``, ``box`` (a grey box in their place) or ``drop``.
        frames: the operators whose pictures get a grey frame in place of a box.
    """
    out: list[Any] = []
    depth = 0
    marks: list[bool] = []
    for index, instruction in enumerate(source.ops):
        if isinstance(instruction, pikepdf.ContentStreamInlineImage):
            out += _list_picture_operations(instruction, pictures, index in frames)
            continue
        args, op = instruction.operands, str(instruction.operator)
        if op in SHOWING:
            if not args:
                continue
            if op == '"':
                out += [([args[0]], "Tw"), ([args[1]], "Tc")]
            if op in ("'", '"'):
                out.append(([], "T*"))
            if index in changed:
                out += _make_show_operations(args[-1], changed[index], gone, moves, inserts)
            else:
                out.append(([args[-1]], "TJ" if op == "TJ" else "Tj"))
        elif op == "Do" and _is_not_form(args[0], source.resources):
            out += _list_picture_operations(instruction, pictures, index in frames)
        elif op in ("BMC", "BDC"):
            layer = op == "BDC" and str(args[0]) == "/OC" and isinstance(args[1], pikepdf.Name)
            marks.append(layer)
            if layer:
                out.append(instruction)
        elif op == "EMC":
            if marks and marks.pop():
                out.append(instruction)
        elif op in _KEPT and not _may_hold_text(args):
            depth += (op == "q") - (op == "Q")
            if depth < 0:
                depth = 0
                continue
            out.append(instruction)
    out += [([], "EMC")] * sum(marks) + [([], "Q")] * depth
    return encode_operations(out)


def encode_operations(operations: Iterable[Any]) -> bytes:
    """Return the bytes of operations, which may be those of a parsed stream."""

    def to_operand(value: Any) -> Any:
        if isinstance(value, list):
            return pikepdf.Array([to_operand(v) for v in value])
        return Decimal(f"{value:.4f}") if isinstance(value, float) else value

    return bytes(
        pikepdf.unparse_content_stream(
            [([to_operand(v) for v in o[0]], pikepdf.Operator(o[1])) if isinstance(o, tuple) else o for o in operations]
        )
    )


def _may_hold_text(operands: Sequence[Any]) -> bool:
    return any(
        isinstance(a, pikepdf.String | pikepdf.Dictionary)
        or (isinstance(a, pikepdf.Array) and any(isinstance(b, pikepdf.String | pikepdf.Dictionary) for b in a))
        for a in operands
    )


def _is_not_form(name: Any, resources: Any) -> bool:
    thing = (resources.get("/XObject") or {}).get(str(name)) if resources is not None else None
    return thing is None or thing.get("/Subtype") != "/Form"


def _list_picture_operations(instruction: Any, treatment: str, is_frame: bool) -> Sequence[Any]:
    box = _FRAME if is_frame else _BOX
    return [instruction] if treatment == "keep" else box if treatment == "box" else []


def _make_show_operations(
    shown: Any,
    changed: Mapping[int, list[Glyph]],
    gone: Container[GlyphPlace],
    moves: Mapping[GlyphPlace, float],
    inserts: Mapping[GlyphPlace, Insert],
) -> Iterator[Operation]:
    """Show a string or TJ array without the removed characters, with the moves of others and the inserts."""
    items = list(shown) if isinstance(shown, pikepdf.Array) else [shown]
    out: list[Any] = []
    data, position, until = b"", 0, 0
    back = moved = move = 0.0

    def push_back() -> None:
        nonlocal back
        if abs(back) > 1e-4:
            out.append(back)
            back = 0.0

    def push_piece(piece: bytes, move: float) -> None:
        nonlocal back, moved
        if piece:
            back, moved = back + move - moved, move
            push_back()
            out.append(pikepdf.String(piece))

    def push_to(end: int) -> None:
        """Push the bytes up to an offset; those after the last character that moves stay."""
        nonlocal position, move
        if move and until < end:
            push_piece(data[position:until], move)
            position, move = until, 0.0
        push_piece(data[position:end], move)
        position = end

    for index, item in enumerate(items):
        if not isinstance(item, pikepdf.String):
            back += float(item)
            continue
        data, position, until, move = bytes(item), 0, 0, 0.0
        for glyph in sorted({g.start: g for g in changed.get(index, ())}.values(), key=lambda g: g.start):
            new_move = moves.get(glyph.place, 0.0)
            if glyph.place not in gone:
                if abs(new_move - move) > 1e-3 or glyph.start > until:
                    push_to(glyph.start)
                    move = new_move
                until = glyph.end
                continue
            push_to(glyph.start)
            insert = inserts.get(glyph.place)
            if insert is not None:
                back, moved = back + new_move - moved, new_move
                push_back()
                if out:
                    yield [out], "TJ"
                    out = []
                operations, back = insert
                yield from operations
            back += glyph.back
            position, until, move = glyph.end, glyph.end, 0.0
        push_to(len(data))
    back -= moved
    push_back()
    if out:
        yield [out], "TJ"
