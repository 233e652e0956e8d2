"""Make docs/images: the picture at the top of README.md from allonym's own output, and pictures of the workbench.

python docs/build_images.py                                    # before-after.svg and badges.svg
ALLONYM_SCREENSHOTS=FOLDER pytest -m slow tests/browser && python docs/build_images.py FOLDER   # all; needs Pillow
"""

import sys
import textwrap
import tomllib
from html import escape
from pathlib import Path

import allonym
from allonym.labels import TAXONOMY

IMAGES = Path(__file__).resolve().parent / "images"
TAKEN = {
    "workbench-protect": "protect-card-1440-light",
    "workbench-restored": "protect-restored-1440-light",
    "workbench-settle": "settle-1440-light",
    "workbench-study": "study-390-dark",
}
WIDEST, COLOURS = 1152, 96
TEXT = (
    "INT: How did you find the ward? RES: I'm Moira Kesteven, I was on Ward 7 at Thornbury Infirmary from 3 to 19 "
    "March 2023. Dr Anil Deshmukh looked after me. Moira, he said, you can ring me on 07700 900 461. My sister Elspeth "
    "drove up from Dumfries every Friday, she works for Galloway Dairies."
)
KEY = b"the key of the picture in README"
LINE, TOP, LEFT, TITLES, SIGN, COLUMNS = 24, 34, 20, 104, 7.9, 92
INKS = {"PERSON": "#fde2c8", "LOCATION": "#cfe8d5", "DATE_TIME": "#d6e4fb", "other": "#ecd9f5"}


def mark_lines(text: str, intervals: list[tuple[int, int, str]]) -> list[list[tuple[str, str]]]:
    """Wrap a text into lines of (piece, colour); an empty colour is plain text."""
    colours = [""] * len(text)
    for start, end, colour in intervals:
        colours[start:end] = [colour] * (end - start)
    lines, position = [], 0
    for line in textwrap.wrap(text, COLUMNS, break_on_hyphens=False):
        position = text.index(line, position)
        pieces: list[tuple[str, str]] = []
        for sign, colour in zip(line, colours[position : position + len(line)], strict=True):
            if pieces and pieces[-1][1] == colour:
                pieces[-1] = (pieces[-1][0] + sign, colour)
            else:
                pieces.append((sign, colour))
        lines.append(pieces)
        position += len(line)
    return lines


def draw_panel(title: str, lines: list[list[tuple[str, str]]], top: int) -> list[str]:
    """Draw a title, and beside it lines with coloured boxes behind what is marked."""
    out = [f'<text x="{LEFT}" y="{top}" font-weight="600">{escape(title)}</text>']
    for row, pieces in enumerate(lines):
        x, y = float(LEFT + TITLES), top + row * LINE
        for piece, colour in pieces:
            width = len(piece) * SIGN
            if colour:
                out.append(
                    f'<rect x="{x - 2:.1f}" y="{y - 15}" width="{width + 4:.1f}" height="20" rx="4" fill="{colour}"/>'
                )
            shown = escape(piece).replace(" ", "&#160;")
            out.append(f'<text x="{x:.1f}" y="{y}" textLength="{width:.1f}">{shown}</text>')
            x += width
    return out


def draw_before_after() -> str:
    """Draw a text before and after the presets ``default`` and ``pseudonyms`` as SVG, the same in every run."""
    body: list[str] = []
    top = TOP
    for title, policy in (("Before", None), ("Pseudonyms", "pseudonyms"), ("Tags", "default")):
        plan = allonym.anonymize(TEXT, policy or "default", key=KEY).plan
        text, marks, moved = TEXT, [], 0
        for edit in plan.edits:
            colour = INKS.get(TAXONOMY.get_family(edit.label), INKS["other"])
            size = edit.end - edit.start if policy is None else len(edit.replacement)
            start = edit.start + moved
            marks.append((start, start + size, colour))
            if policy is not None:
                text = text[:start] + edit.replacement + text[start + edit.end - edit.start :]
                moved += size - (edit.end - edit.start)
        lines = mark_lines(text, marks)
        body += draw_panel(title, lines, top)
        top += len(lines) * LINE + LINE // 2
    width, height = round(LEFT * 2 + TITLES + COLUMNS * SIGN), top - LINE // 2
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'font-family="ui-monospace, Menlo, Consolas, DejaVu Sans Mono, monospace" font-size="13" fill="#1b1f24" '
        'role="img" aria-label="An interview before, with pseudonyms and with tags">'
    )
    frame = f'<rect width="{width}" height="{height}" rx="8" fill="#ffffff" stroke="#d0d7de"/>'
    return "\n".join((head, frame, *body, "</svg>", ""))


def draw_badges() -> str:
    """Draw what pyproject.toml says about Python, licence, types and state as SVG."""
    told = tomllib.loads((IMAGES.parents[1] / "pyproject.toml").read_text(encoding="utf-8"))
    project, kinds = told["project"], dict[str, list[str]]()
    for classifier in project["classifiers"]:
        kind, *_, value = classifier.split(" :: ")
        kinds.setdefault(kind, []).append(value)
    versions = [value for value in kinds["Programming Language"] if value[0] == "3"]
    badges = {
        "Python": f"{versions[0]} to {versions[-1]}",
        "code": project["license"],
        "types": "mypy, strict" if told["tool"]["mypy"]["strict"] else "mypy",
        "state": kinds["Development Status"][0].split(" - ")[1].lower(),
    }
    body, x, said = [], 0.0, []
    for name, value in badges.items():
        left, right = (len(words) * 6.7 + 14 for words in (name, value))
        body += [
            f'<rect x="{x:.1f}" width="{left:.1f}" height="20" fill="#4a5551"/>',
            f'<rect x="{x + left:.1f}" width="{right:.1f}" height="20" fill="#0b6b5f"/>',
            f'<text x="{x + left / 2:.1f}" y="14" textLength="{left - 14:.1f}">{escape(name)}</text>',
            f'<text x="{x + left + right / 2:.1f}" y="14" textLength="{right - 14:.1f}">{escape(value)}</text>',
        ]
        said.append(f"{name} {value}")
        x += left + right + 6
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{x - 6:.0f}" height="20" font-family="Verdana, DejaVu Sans, '
        f'sans-serif" font-size="11" fill="#ffffff" text-anchor="middle" role="img" aria-label="{"; ".join(said)}">'
    )
    return "\n".join((head, *body, "</svg>", ""))


def save_screenshots(folder: Path) -> None:
    """Save the screenshots that the browser tests took, smaller."""
    from PIL import Image

    for name, taken in TAKEN.items():
        picture = Image.open(folder / f"{taken}.png").convert("RGB")
        if picture.width > WIDEST:
            picture = picture.resize((WIDEST, picture.height * WIDEST // picture.width), Image.Resampling.LANCZOS)
        picture.quantize(COLOURS, dither=Image.Dither.NONE).save(IMAGES / f"{name}.png", optimize=True)


if __name__ == "__main__":
    (IMAGES / "before-after.svg").write_text(draw_before_after(), encoding="utf-8")
    (IMAGES / "badges.svg").write_text(draw_badges(), encoding="utf-8")
    if len(sys.argv) > 1:
        save_screenshots(Path(sys.argv[1]))
