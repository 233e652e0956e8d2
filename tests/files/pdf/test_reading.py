"""How a PDF is read: the order of its text, what is refused, and what goes into one document."""

from __future__ import annotations

import io
import sys
import zlib

import pytest
from tests.rows import check_each_row

from allonym import registry
from allonym.errors import DataError, MissingExtra, RefusedContent, UnknownNameError
from allonym.files import anonymize_path, get_format, read_documents
from allonym.files.record import Chunk, Job
from allonym.policy import Policy, TermList

pikepdf = pytest.importorskip("pikepdf")
pytest.importorskip("pypdfium2")
pytest.importorskip("reportlab")

from benchmarks import redaction_pdf as made  # noqa: E402

POLICY = Policy.load("default").with_(
    detectors=("rules", "lexicon"), dictionary=(TermList("PERSON", made.SECRETS[:3]),), ocr=""
)


def text_of(data: bytes, policy: Policy = POLICY) -> str:
    return get_format("pdf").parse(Chunk(data), Job(policy)).pieces[0].document.text


def test_columns_are_read_one_after_the_other():
    text = text_of(made.two_columns())
    assert text.startswith(
        "The case of Ada Brook and Cyd Dale\nDr. Ada Brook met Cyd Dale at noon and they spoke for an"
    )
    assert " ".join(text.split("\n", 1)[1].split()) == " ".join((made.PROSE * 10).split())


def test_words_parted_at_the_end_of_a_line_are_one():
    text = text_of(made.hyphenation())
    assert "the name of Wilhelmina Farrow, and" in text
    assert "that of Ada Brook, who" in text


def test_cells_of_a_table_are_parted():
    rows = [line.split("\t") for line in text_of(made.table()).split("\n")]
    assert rows[0] == ["Name", "Phone", "SSN", "Mail"]
    assert rows[3] == ["Wilhelmina Farrow", "closed", "may", "none"]


def test_a_table_of_long_cells_is_read_by_rows():
    cells = [("The first cell of this row is long", "and the second one is as long as it")] * 1
    cells += [("Ada Brook", "12"), ("Cyd Dale", "13"), ("Eve Stone", "14"), ("Una Reed", "15"), ("Lea Ford", "16")]

    def draw(c):
        for i, (a, b) in enumerate(cells):
            c.drawString(72, 700 - 16 * i, a)
            c.drawString(320, 700 - 16 * i, b)

    assert [tuple(line.split("\t")) for line in text_of(made.canvas(draw)).split("\n")] == cells


@check_each_row(
    "name, text",
    [
        ("ligatures", "The first office of Ada Brook had flowers.\nStoffiel Wilhelmina Farrow filed it."),
        ("kerning", "Dr. Ada Brook met Cyd Dale\n536-22-1234"),
        ("letter_by_letter", "Ada Brook met Cyd Dale.\nNumber 536-22-1234."),
        ("spaced_out", "Ada Brook met Cyd Dale twice"),
        ("drawn_twice", "Ada Brook met Cyd Dale"),
        ("type3", "Signed: Ada Brook"),
        ("revisions", "Final: Cyd Dale agrees."),
        ("actual_text", "A. B. met C. D..\nAda Brook\nCyd Dale"),
        ("hidden_layers", "Shown: Cyd Dale\n\nHidden: Ada Brook\nShown\nNotes of Ada Brook"),
        ("wide_font", "Gr\u00fc\u00dfe von Ada Brook, \u20ac 5, \ufffd.\n\u6771\u4eac Cyd Dale \u5927\u962a"),
    ],
)
def test_text_is_read_as_people_read_it(name, text):
    data = made.DOCUMENTS[name]()
    assert data is not None
    assert text_of(data) == text


def test_the_document_has_a_part_for_each_character():
    document = get_format("pdf").parse(Chunk(made.kerning()), Job(POLICY)).pieces[0].document
    assert len(document.parts) == len("Dr. Ada Brook met Cyd Dale536-22-1234") - 3
    assert "Ada" not in repr(document)


# Scans


def test_a_scan_is_refused_and_told_why(tmp_path):
    (tmp_path / "a.pdf").write_bytes(made.scan())
    with pytest.raises(RefusedContent, match=r"page 1 is a scan.*; its text needs OCR: name an OCR") as failed:
        anonymize_path(tmp_path / "a.pdf", tmp_path / "b.pdf", POLICY)
    assert "ocrmypdf" in str(failed.value)
    assert not (tmp_path / "b.pdf").exists()


def dark(data: bytes, box: tuple[float, float, float, float]) -> int:
    """How many dark dots the first page has within a box, in dots of 1240 in 1754."""
    import pypdfium2

    image = pypdfium2.PdfDocument(data)[0].render(scale=1240 / made.A4[0]).to_pil().convert("L").crop(box)
    return sum(image.histogram()[:100])


def test_a_scan_is_read_by_the_ocr_that_the_policy_names(tmp_path, monkeypatch):
    from allonym.files.ocr import DPI, Word

    _, words = made._scan()
    seen = []

    def reader(image):
        seen.append(image.size)
        scale = image.width / 1240
        if len(seen) == 3:
            return []  # the result, which is read back
        return [Word(w, x0 * scale, y0 * scale, x1 * scale, y1 * scale, row) for w, x0, y0, x1, y1, row in words]

    monkeypatch.setattr(registry.ocr, "_table", {**registry.ocr._table, "fake": reader})
    policy = POLICY.with_(ocr="fake")
    (tmp_path / "a.pdf").write_bytes(made.scan())
    assert "Dear Ada Brook,\nplease call 212-555-0142 before noon. Cyd Dale" in text_of(made.scan(), policy)
    anonymize_path(tmp_path / "a.pdf", tmp_path / "b.pdf", policy)
    before, after = (tmp_path / "a.pdf").read_bytes(), (tmp_path / "b.pdf").read_bytes()
    assert abs(seen[0][0] - made.A4[0] * DPI / 72) < 2
    name = next(w for w in words if w[0] == "Brook,")
    kept = next(w for w in words if w[0] == "please")
    # Under the replacement, which is smaller, the letters of the scan are gone: its lower edge is white.
    assert dark(before, kept[1:5]) > 100
    assert abs(dark(before, kept[1:5]) - dark(after, kept[1:5])) < 0.2 * dark(before, kept[1:5])
    with pikepdf.open(io.BytesIO(after)) as pdf:
        from pikepdf import PdfImage

        (picture,) = [
            PdfImage(o).as_pil_image()
            for o in pdf.objects
            if isinstance(o, pikepdf.Stream) and o.get("/Subtype") == "/Image"
        ]
    scale = picture.width / 1240
    x0, y0, x1, y1 = name[1:5]
    inside = picture.convert("L").crop(tuple(round(v * scale) for v in (x0, y0, x1 - 16, y1)))  # the comma stays
    assert inside.getextrema()[0] > 200
    assert list(read_documents(tmp_path / "b.pdf", policy=policy.with_(images="keep", ocr="")))


def test_text_that_an_ocr_left_behind_is_taken_out_of_the_picture_too(tmp_path):
    (tmp_path / "a.pdf").write_bytes(made.searchable_scan())
    anonymize_path(tmp_path / "a.pdf", tmp_path / "b.pdf", POLICY)
    _, words = made._scan()
    with pikepdf.open(tmp_path / "b.pdf") as pdf:
        (picture,) = [
            pikepdf.PdfImage(o).as_pil_image()
            for o in pdf.objects
            if isinstance(o, pikepdf.Stream) and o.get("/Subtype") == "/Image"
        ]
    scale = picture.width / 1240
    lows = {}
    for word, x0, y0, x1, y1, _ in words:
        inside = picture.convert("L").crop(
            (round(x0 * scale), round(y0 * scale) + 4, round(x1 * scale), round(y1 * scale) - 4)
        )
        lows[word] = inside.getextrema()[0]
    assert lows["please"] < 100 and lows["noon."] < 100
    assert min(lows[w] for w in ("Ada", "212-555-0142", "Cyd", "Dale")) > 200


def test_a_scan_whose_text_does_not_lie_over_its_words_needs_ocr(tmp_path):
    """As some programs write it: each line begins at its place, and goes on in letters of one width."""
    picture, words = made._scan()
    scale = made.A4[0] / 1240

    def draw(c):
        c.drawImage(made.ImageReader(picture), 0, 0, *made.A4)
        for line in range(3):
            some = [word for word in words if word[5] == line]
            text = c.beginText(some[0][1] * scale, made.A4[1] - (some[0][4] - 8) * scale)
            text.setTextRenderMode(3)
            text.setFont("Courier", 34 * scale)
            text.setHorizScale(125)
            text.textOut(" ".join(word[0] for word in some))
            c.drawText(text)

    (tmp_path / "a.pdf").write_bytes(made.canvas(draw, made.A4))
    with pytest.raises(RefusedContent, match="a text that does not lie over its words; its text needs OCR"):
        anonymize_path(tmp_path / "a.pdf", tmp_path / "b.pdf", POLICY)


def test_photographs_in_which_ocr_reads_nothing_become_grey(tmp_path, monkeypatch):
    monkeypatch.setattr(registry.ocr, "_table", {**registry.ocr._table, "fake": lambda image: []})
    (tmp_path / "a.pdf").write_bytes(made.scan())
    anonymize_path(tmp_path / "a.pdf", tmp_path / "b.pdf", POLICY.with_(ocr="fake"))
    before, after = (tmp_path / "a.pdf").read_bytes(), (tmp_path / "b.pdf").read_bytes()
    assert dark(before, (0, 0, 1240, 1754)) > 1000 and dark(after, (0, 0, 1240, 1754)) == 0


def test_a_page_with_an_operator_that_cannot_be_read_is_read_by_ocr(tmp_path, monkeypatch):
    from allonym.files.ocr import Word

    seen = []

    def reader(image):
        seen.append(image)
        return (
            [] if len(seen) > 1 else [Word(w, 300 + 200 * i, 300, 480 + 200 * i, 340, 0) for i, w in enumerate(words)]
        )

    words = ("Ada", "Brook", "met", "everybody", "in", "the", "garden", "yesterday")
    monkeypatch.setattr(registry.ocr, "_table", {**registry.ocr._table, "fake": reader})
    (tmp_path / "a.pdf").write_bytes(
        made.bare(b"BT /F1 12 Tf 72 700 Td (Cyd Dale) Tj (x) Tc 0 -20 Td (Ada Brook) Tj ET")
    )
    anonymize_path(tmp_path / "a.pdf", tmp_path / "b.pdf", POLICY.with_(ocr="fake"))
    with pikepdf.open(tmp_path / "b.pdf") as pdf:
        assert b"Cyd" not in pdf.pages[0].Contents.read_bytes()
    assert len(seen) == 2


def test_an_ocr_must_be_known(tmp_path):
    path = tmp_path / "policy.toml"
    path.write_text('extends = "default"\nocr = "tesserakt"\n', encoding="utf-8")
    with pytest.raises(UnknownNameError, match="tesseract"):
        Policy.load(path)
    path.write_text('extends = "default"\nocr = "tesseract"\n', encoding="utf-8")
    assert Policy.load(path).ocr == "tesseract"
    assert Policy.load(path).fingerprint() != Policy.load("default").fingerprint()


def test_tesseract_is_called_and_its_table_read(tmp_path, monkeypatch):
    from PIL import Image

    from allonym.files.ocr import run_tesseract

    head = "level\tpage_num\tblock_num\tpar_num\tline_num\tword_num\tleft\ttop\twidth\theight\tconf\ttext"
    rows = [
        "4\t1\t1\t1\t1\t0\t0\t0\t99\t20\t-1\t",
        "5\t1\t1\t1\t1\t1\t10\t20\t30\t12\t95\tAda",
        '5\t1\t1\t1\t2\t1\t10\t40\t30\t12\t95\t"Brook',
    ]
    script = tmp_path / "tesseract"
    table = "\n".join([head, *rows])
    script.write_text(
        f"#!{sys.executable}\nimport sys\nassert sys.stdin.buffer.read(4) == b'\\x89PNG'\nprint({table!r})\n"
    )
    script.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    found = list(run_tesseract(Image.new("RGB", (100, 60))))
    assert [(w.text, w.left, w.bottom, w.line) for w in found] == [("Ada", 10.0, 32.0, 0), ('"Brook', 10.0, 52.0, 1)]
    assert "Ada" not in repr(found)
    script.write_text(f"#!{sys.executable}\nimport sys\nsys.stdin.buffer.read()\nsys.exit(3)\n")
    with pytest.raises(DataError, match="code 3"):
        list(run_tesseract(Image.new("RGB", (100, 60))))


# What is refused


def encrypted() -> bytes:
    return made.canvas(lambda c: c.drawString(72, 700, "Ada Brook"), encrypt=made.StandardEncryption("secret"))


def without_meaning() -> bytes:
    """A font that names its characters g1, g2, and so on."""
    font = pikepdf.Dictionary(
        Type=pikepdf.Name.Font, Subtype=pikepdf.Name.TrueType, BaseFont=pikepdf.Name("/ABCDEF+Own"), FirstChar=65,
        Widths=[600] * 26,
        Encoding=pikepdf.Dictionary(Differences=pikepdf.Array([65, *(pikepdf.Name(f"/g{i}") for i in range(26))])),
    )  # fmt: skip
    return made.bare(b"BT /F1 12 Tf 72 700 Td (Seen) Tj /F2 12 Tf 0 -20 Td (BEBCSPPL) Tj ET", {"/F2": font})


def without_end() -> bytes:
    def change(pdf):
        form = pdf.make_stream(b"/Me Do")
        form.Type, form.Subtype, form.BBox = pikepdf.Name.XObject, pikepdf.Name.Form, [0, 0, 9, 9]
        form.Resources = pikepdf.Dictionary(XObject=pikepdf.Dictionary(Me=form))
        pdf.pages[0].obj.Resources.XObject = pikepdf.Dictionary(Me=form)
        pdf.pages[0].obj.Contents = pdf.make_stream(b"/Me Do")

    return made.changed(made.bare(b""), change)


def bomb() -> bytes:
    def change(pdf):
        stream = pikepdf.Stream(pdf, zlib.compress(b" " * 80_000_000))
        stream.Filter = pikepdf.Name.FlateDecode
        pdf.pages[0].obj.Contents = stream

    data = made.bare(b"")
    out = io.BytesIO()
    with pikepdf.open(io.BytesIO(data)) as pdf:
        change(pdf)
        pdf.save(out, static_id=True, compress_streams=True, stream_decode_level=pikepdf.StreamDecodeLevel.none)
    return out.getvalue()


def dynamic_form() -> bytes:
    def change(pdf):
        pdf.Root.NeedsRendering = True

    return made.changed(made.form(), change)


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (encrypted, "encrypted"),
        (without_meaning, "page 1 has text in a font without a mapping to letters"),
        (without_end, "page 1 has forms that lie in one another without end"),
        (bomb, "200 times"),
        (dynamic_form, "XFA"),
        (lambda: b"PK\x03\x04", "not a PDF"),
        (lambda: b"%PDF-1.7\nAda Brook\n%%EOF", "not a PDF that can be read|damaged|broken"),
        (lambda: made.bare(b"BT (Ada Brook) Tj ET"), "page 1 shows text without a font"),
        (lambda: made.bare(b"BT /F9 12 Tf (Ada Brook) Tj ET"), "page 1 has unreadable content or an unreadable font"),
    ],
)
def test_what_cannot_be_treated_is_refused_with_a_reason(make, why, tmp_path):
    (tmp_path / "a.pdf").write_bytes(make())
    with pytest.raises(DataError, match=why) as failed:
        anonymize_path(tmp_path / "a.pdf", tmp_path / "b.pdf", POLICY)
    assert "Ada" not in str(failed.value)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.pdf"]


def test_a_folder_goes_on_without_the_scan(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.pdf").write_bytes(made.scan())
    (tmp_path / "in" / "b.pdf").write_bytes(made.letter_page())
    report = anonymize_path(tmp_path / "in", tmp_path / "out", POLICY)
    assert [name for name, _ in report.refused] == ["a.pdf"]
    assert [p.name for p in (tmp_path / "out").iterdir()] == ["b.pdf"]


def test_without_its_packages_the_extra_is_named(monkeypatch):
    data = made.bare(b"")
    monkeypatch.setitem(sys.modules, "pikepdf", None)
    with pytest.raises(MissingExtra, match=r"\[pdf\]"):
        text_of(data)


def test_an_empty_page_stays_an_empty_page(tmp_path):
    (tmp_path / "a.pdf").write_bytes(made.bare(b""))
    anonymize_path(tmp_path / "a.pdf", tmp_path / "b.pdf", POLICY)
    with pikepdf.open(tmp_path / "b.pdf") as pdf:
        assert len(pdf.pages) == 1
