"""Rewrite content streams without removed characters; all others keep their positions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from allonym.files.pdf.content import SHOWING, Glyph, Setting, Source

_KEPT = frozenset(
    "w J j M d ri i gs q Q cm m l c v y h re S s f F f* B B* b b* n W W* BT ET Tc Tw Tz TL Tf Tr Ts Td TD Tm T* "
    "CS cs SC SCN sc scn G g RG rg K k sh Do d0 d1".split()
)
_GREY = 0.88

Gone = dict[int, dict[int, list[Glyph]]]
"""The characters to remove, by operator and string."""


def group_glyphs_by_stream(glyphs: Iterable[Glyph]) -> dict[Any, Gone]:
    """Group the characters to remove by stream."""
    out: dict[Any, Gone] = defaultdict(lambda: defaultdict(lambda: defaultdict(list)))
    for glyph in glyphs:
        out[glyph.stream][glyph.op][glyph.item].append(glyph)
    return out


@dataclass(frozen=True, slots=True)
class Insert:
    """A replacement at the position of the first character of a gap.

    Attributes:
        text: in the font's encoding.
        font: name of the font in the resources.
        size, scale: of the font; 1 is its usual width.
        width: its advance, in the units of the text.
    """

    text: bytes = field(repr=False)
    font: str
    size: float
    scale: float
    width: float


def rewrite_content(source: Source, gone: Gone, inserts: Mapping[tuple[int, int, int], Insert], pictures: str) -> bytes:
    """Rewrite a content stream without removed characters and without marks with text, with balanced states.

    Args:
        source: the stream.
        gone: the characters to remove.
        inserts: inserts by operator, string and byte.
        pictures: ``keep``, ``box`` (a grey box in their place) or ``drop``.
    """
    import pikepdf

    make = pikepdf.ContentStreamInstruction
    out: list[Any] = []
    depth = 0
    marks: list[bool] = []

    def add_operation(args: Sequence[Any], op: str) -> None:
        out.append(make(list(args), pikepdf.Operator(op)))

    for index, instruction in enumerate(source.ops):
        if isinstance(instruction, pikepdf.ContentStreamInlineImage):
            _replace_picture(instruction, pictures, out, add_operation)
            continue
        args, op = instruction.operands, str(instruction.operator)
        if op in SHOWING:
            if op == '"':
                add_operation([args[0]], "Tw")
                add_operation([args[1]], "Tc")
            if op in ("'", '"'):
                add_operation([], "T*")
            shown = args[-1]
            if index in gone:
                _remove_glyphs(shown, index, gone[index], inserts, add_operation)
            else:
                add_operation([shown], "TJ" if op == "TJ" else "Tj")
        elif op == "Do" and _is_image(args[0], source.resources):
            _replace_picture(instruction, pictures, out, add_operation)
        elif op in ("BMC", "BDC"):
            layer = op == "BDC" and str(args[0]) == "/OC" and isinstance(args[1], pikepdf.Name)
            marks.append(layer)
            if layer:
                out.append(instruction)
        elif op == "EMC":
            if marks and marks.pop():
                out.append(instruction)
        elif op in _KEPT and not _holds_text(args):
            depth += (op == "q") - (op == "Q")
            if depth < 0:
                depth = 0
                continue
            out.append(instruction)
    for layer in reversed(marks):
        if layer:
            add_operation([], "EMC")
    for _ in range(depth):
        add_operation([], "Q")
    return bytes(pikepdf.unparse_content_stream(out))


def _holds_text(args: Sequence[Any]) -> bool:
    import pikepdf

    return any(
        isinstance(a, pikepdf.String | pikepdf.Dictionary)
        or (isinstance(a, pikepdf.Array) and any(isinstance(b, pikepdf.String | pikepdf.Dictionary) for b in a))
        for a in args
    )


def _is_image(name: Any, resources: Any) -> bool:
    thing = (resources.get("/XObject") or {}).get(str(name)) if resources is not None else None
    return thing is None or thing.get("/Subtype") != "/Form"


def _replace_picture(instruction: Any, pictures: str, out: list[Any], add: Any) -> None:
    if pictures == "keep":
        out.append(instruction)
    elif pictures == "box":
        add([], "q")
        add([_GREY], "g")
        add([0, 0, 1, 1], "re")
        add([], "f")
        add([], "Q")


def _remove_glyphs(
    shown: Any, op: int, gone: dict[int, list[Glyph]], inserts: Mapping[tuple[int, int, int], Insert], add: Any
) -> None:
    """Show a string or TJ array with gaps as wide as the removed characters, and with the inserts."""
    import pikepdf

    items = list(shown) if isinstance(shown, pikepdf.Array) else [shown]
    out: list[Any] = []
    back = 0.0

    def push_piece(piece: bytes) -> None:
        nonlocal back
        if piece:
            if back:
                out.append(_format_number(back))
                back = 0.0
            out.append(pikepdf.String(piece))

    def close_piece() -> None:
        nonlocal back
        if back:
            out.append(_format_number(back))
            back = 0.0
        if out:
            add([pikepdf.Array(out)], "TJ")
            out.clear()

    for index, item in enumerate(items):
        if not isinstance(item, pikepdf.String):
            back += float(item)
            continue
        data, position = bytes(item), 0
        for glyph in sorted({g.start: g for g in gone.get(index, ())}.values(), key=lambda g: g.start):
            push_piece(data[position : glyph.start])
            insert = inserts.get((op, index, glyph.start))
            if insert is not None and glyph.setting is not None:
                close_piece()
                back = _show_insert(insert, glyph.setting, add)
            back += glyph.back
            position = glyph.end
        push_piece(data[position:])
    close_piece()


def _show_insert(insert: Insert, setting: Setting, add: Any) -> float:
    """Show a replacement and reset the text state; return the TJ number that moves back."""
    import pikepdf

    add([pikepdf.Name(insert.font), _format_number(insert.size)], "Tf")
    for value, usual, op in ((insert.scale, setting.scale, "Tz"), (0.0, setting.char, "Tc"), (0.0, setting.word, "Tw")):
        if value != usual:
            add([_format_number(value * (100 if op == "Tz" else 1))], op)
    add([pikepdf.String(insert.text)], "Tj")
    add([pikepdf.Name(setting.font), _format_number(setting.size)], "Tf")
    for value, usual, op in ((insert.scale, setting.scale, "Tz"), (0.0, setting.char, "Tc"), (0.0, setting.word, "Tw")):
        if value != usual:
            add([_format_number(usual * (100 if op == "Tz" else 1))], op)
    return 1000 * insert.width / (setting.size * setting.scale)


def _format_number(value: float) -> Decimal:
    return Decimal(f"{value:.4f}")
