"""Lines are set anew: nothing is small, empty, clipped, or as wide as what stood there."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allonym.files import get_format
from allonym.files.record import Chunk, Job, anonymize_chunk
from allonym.policy import Policy, TermList

pikepdf = pytest.importorskip("pikepdf")
pypdfium2 = pytest.importorskip("pypdfium2")
pytest.importorskip("reportlab")

from allonym.files.pdf.fonts import find_standard_font_name  # noqa: E402
from allonym.files.pdf.lines import make_short_forms  # noqa: E402
from benchmarks import redaction_pdf as made  # noqa: E402

NAMES = ("Ada Brook", "Wilhelmina Farrow", "Li", "Maximiliana Throgmorton-Windlesham")
POLICY = Policy.load("default").with_(detectors=("lexicon",), dictionary=(TermList("PERSON", NAMES),), ocr="")


def treat(data: bytes, policy: Policy = POLICY) -> bytes:
    job = Job(policy)
    done = anonymize_chunk(get_format("pdf").parse(Chunk(data), job), job)
    assert not done.failures, done.failures
    return done.data


def read_characters(data: bytes, page: int = 0) -> list[tuple[str, float, float, float, float]]:
    """The characters of a page, with left, bottom, right and top."""
    text = pypdfium2.PdfDocument(data)[page].get_textpage()
    whole = text.get_text_range()
    return [(c, *(round(v, 2) for v in text.get_charbox(i))) for i, c in enumerate(whole) if not c.isspace()]


def read_lines(data: bytes, page: int = 0) -> list[str]:
    return pypdfium2.PdfDocument(data)[page].get_textpage().get_text_range().replace("\r", "").split("\n")


def draw(*lines: str, font: str = "Helvetica", size: float = 11, width: float = 595) -> bytes:
    def drawn(c):
        c.setFont(font, size)
        made.lines(c, lines)

    return made.canvas(drawn, (width, 842))


@pytest.mark.parametrize("font", ["Helvetica", "Times-Roman", "Courier"])
def test_no_gap_tells_how_wide_a_name_was(font):
    """Whoever stood there, the page is the same."""
    results = {
        str(read_characters(treat(draw(f"We met {name} in town, and {name} left.", "Nobody saw it.", font=font))))
        for name in NAMES
    }
    assert len(results) == 1


def test_a_box_is_not_as_wide_as_a_name_either(tmp_path):
    """In place of replacements whose letters the standard fonts lack."""
    (tmp_path / "policy.toml").write_text(
        'extends = "default"\n[detect]\ndetectors = ["lexicon"]\n[tag]\nstyle = "\u27e6{label}_{n}\u27e7"\n', "utf-8"
    )
    policy = Policy.load(tmp_path / "policy.toml").with_(dictionary=POLICY.dictionary)
    shown = set()
    for name in NAMES:
        data = treat(draw(f"We met {name} in town, and {name} left."), policy)
        with pikepdf.open(io.BytesIO(data)) as pdf:
            assert "re" in [str(i.operator) for i in pikepdf.parse_content_stream(pdf.pages[0])]
        shown.add(str(pypdfium2.PdfDocument(data)[0].render(scale=1).to_pil().tobytes()))
    assert len(shown) == 1


def test_a_justified_line_is_justified_again():
    from reportlab.lib.enums import TA_JUSTIFY
    from reportlab.lib.styles import ParagraphStyle
    from reportlab.platypus import Paragraph

    style = ParagraphStyle("justified", fontName="Times-Roman", fontSize=11, leading=14, alignment=TA_JUSTIFY)
    text = "The board met on the first of the month and heard Ada Brook about the state of the roof and the walls. " * 4
    data = made.flow([Paragraph(text, style)])
    before, after = read_characters(data), read_characters(treat(data))
    margin = max(c[3] for c in before)
    ends: dict[float, float] = {}
    for _, _, bottom, right, _ in after:
        row = round(bottom / 14)
        ends[row] = max(ends.get(row, 0.0), right)
    assert sum(abs(end - margin) < 3 for end in ends.values()) >= 4
    assert max(ends.values()) < margin + 1


def test_nothing_is_empty_where_a_name_breaks_over_lines():
    result = treat(
        draw("A long line that ends with the name of somebody, who is Wilhelmina", "Farrow and who lives there now.")
    )
    first, second = read_lines(result)
    assert first.endswith("[PERSON_1]") and second.strip() == "and who lives there now."
    characters = read_characters(result)
    bottom = min(c[2] for c in characters)
    assert min(c[1] for c in characters if abs(c[2] - bottom) < 6) < 74


def test_where_a_tag_has_no_room_a_short_form_stands_and_a_legend_explains_it():
    def drawn(c):
        c.setFont("Helvetica", 9)
        for x, text in ((72, "Li"), (98, "12"), (124, "ok")):
            c.rect(x - 3, 700, 26, 14)
            c.drawString(x, 704, text)

    result = treat(made.canvas(drawn))
    assert read_lines(result) == ["[P1] 12 ok"]
    assert read_lines(result, 1) == ["[P1] [PERSON_1]"]
    inside = [c for c in read_characters(result) if c[1] < 95]
    assert max(c[3] for c in inside) < 95  # within its frame
    assert max(c[4] - c[2] for c in inside) > 5.5


def test_replacements_are_as_large_as_the_text_around_them():
    for size in (6.0, 8.0, 12.0):
        line = "Li, Li and Li met Ada Brook, Li and others at the place where Li had been before they all went home."
        result = treat(draw(line, size=size, width=100 + 45 * size))
        sizes = [c[4] - c[2] for c in read_characters(result) if c[0] == "["]
        assert len(sizes) == 6 and min(sizes) > 0.85 * size


def test_line_numbers_of_a_pleading_are_read_apart():
    texts = ["The plaintiff says", "that she met Wilhelmina", "Farrow at the court", "and nobody else."] * 3

    def drawn(c):
        c.setFont("Times-Roman", 12)
        for i, text in enumerate(texts):
            c.drawRightString(60, 700 - 24 * i, str(i + 1))
            c.drawString(80, 700 - 24 * i, text)

    data = made.canvas(drawn)
    text = get_format("pdf").parse(Chunk(data), Job(POLICY)).pieces[0].document.text
    assert "\t" not in text and text.endswith("\n".join(map(str, range(1, 13))))
    assert " ".join(text.split()).startswith("The plaintiff says that she met Wilhelmina Farrow at the court")
    numbers = [c for c in read_characters(data) if c[1] < 70]
    assert [c for c in read_characters(treat(data)) if c[1] < 70] == numbers


def test_leaders_are_no_grid():
    line = "Statement of Li " + "." * 80 + " 3"
    text = get_format("pdf").parse(Chunk(draw(line, font="Times-Roman")), Job(POLICY)).pieces[0].document.text
    assert text.startswith("Statement of Li")


@given(st.lists(st.sampled_from(["PERSON", "PLACE", "PHONE_NUMBER", "PHONE_NAME", "DATE"]), max_size=12))
def test_short_forms_differ(labels):
    texts = [f"[{label}_{i}]" for i, label in enumerate(labels)] + ["Max Stone", "Eva Field"]
    short = make_short_forms(texts)
    assert len(set(short.values())) == len(set(texts))
    assert all(len(short[text]) < len(text) for text in texts)


@pytest.mark.parametrize(
    ("name", "standard"),
    [
        ("/ABCDEF+CMR10", "Times-Roman"),
        ("/CMBX12", "Times-Roman"),
        ("/SFRM1000", "Times-Roman"),
        ("/LMRoman10-Bold", "Times-Bold"),
        ("/CMSS10", "Helvetica"),
        ("/OpenSans", "Helvetica"),
        ("/Georgia,Italic", "Times-Italic"),
    ],
)
def test_a_replacement_has_serifs_where_the_text_has(name, standard):
    assert find_standard_font_name(name) == standard
