"""Scans, pictures, and fonts that do not tell their letters: read by OCR, painted over, read back."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from allonym.errors import MissingExtra, RefusedContent
from allonym.files import anonymize_path, get_format
from allonym.files.ocr import Word
from allonym.files.record import Chunk, Job
from allonym.files.verify import find_leftovers_in_file
from allonym.policy import Policy, TermList
from allonym.registry import ocr

pikepdf = pytest.importorskip("pikepdf")
pytest.importorskip("pypdfium2")
pytest.importorskip("reportlab")
Image = pytest.importorskip("PIL.Image")
ImageChops = pytest.importorskip("PIL.ImageChops")
ImageStat = pytest.importorskip("PIL.ImageStat")

from benchmarks import redaction_pdf as made  # noqa: E402

POLICY = Policy.load("default").with_(
    detectors=("rules", "lexicon"), dictionary=(TermList("PERSON", made.SECRETS[:3]),)
)


@pytest.fixture
def scan() -> Image.Image:
    return made._scan()[0]


@pytest.fixture
def is_read_as_drawn(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Puts an OCR in the place of RapidOCR, which knows the words of the scan, and sees those that are not covered."""
    original, words = made._scan()
    calls: list[int] = []

    def read(image):
        calls.append(1)
        scale = image.width / 1240
        same_size = original.resize(image.size)
        for text, x0, y0, x1, y1, row in words:
            box = tuple(round(v * scale) for v in (x0, y0 + 4, x1, y1 - 4))
            change = ImageChops.difference(image.crop(box), same_size.crop(box)).convert("L")
            if ImageStat.Stat(change).mean[0] < 20:
                yield Word(text, *(v * scale for v in (x0, y0, x1, y1)), row)

    monkeypatch.setattr(ocr, "_table", {**ocr._table, "drawn": read})
    return calls


def picture(image, kind: str, **options: object) -> bytes:
    out = io.BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


def test_a_picture_is_painted_over_and_loses_what_lies_beside_it(run, scan, is_read_as_drawn):
    told = Image.Exif()
    told[0x013B] = "Ada Brook"
    policy = POLICY.with_(ocr="drawn")
    for name, data in (("a.png", picture(scan, "PNG", exif=told)), ("b.jpg", picture(scan, "JPEG", exif=told))):
        assert b"Ada Brook" in data
        result, report = run(name, data, policy)
        after = Image.open(io.BytesIO(result))
        assert after.size == scan.size and not after.getexif() and b"Ada Brook" not in result
        assert report.treated["pictures read by OCR"] == 1
    assert len(is_read_as_drawn) == 4  # each is read twice


def test_a_short_form_in_a_picture_is_explained_below_it(run, scan, monkeypatch):
    reads = iter([[Word("Li", 100, 100, 130, 130), Word("and", 135, 100, 190, 130)], []])
    monkeypatch.setattr(ocr, "_table", {**ocr._table, "once": lambda image: next(reads)})
    policy = POLICY.with_(ocr="once", dictionary=(TermList("PERSON", ("Li",)),))
    result, _ = run("a.png", picture(scan, "PNG"), policy)
    after = Image.open(io.BytesIO(result))
    assert after.width == scan.width and scan.height < after.height < scan.height + 400
    assert after.crop((0, scan.height, *after.size)).convert("L").getextrema() == (0, 255)


def test_a_result_in_which_the_ocr_still_reads_a_name_is_refused(run, scan, monkeypatch):
    def read(image):
        scale = image.width / 1240
        return [Word(w, x0 * scale, y0 * scale, x1 * scale, y1 * scale, row) for w, x0, y0, x1, y1, row in words]

    words = made._scan()[1]
    monkeypatch.setattr(ocr, "_table", {**ocr._table, "drawn": read})
    for name, data in (("a.png", picture(scan, "PNG")), ("a.pdf", made.scan())):
        with pytest.raises(RefusedContent, match=r"still contains 3 of 3 covered texts .*picture") as failed:
            run(name, data, POLICY.with_(ocr="drawn"))
        assert "Ada" not in str(failed.value)


def test_a_picture_without_ocr_is_refused(tmp_path, scan, monkeypatch):
    (tmp_path / "a.png").write_bytes(picture(scan, "PNG"))
    with pytest.raises(RefusedContent, match="name one in the policy"):
        anonymize_path(tmp_path / "a.png", tmp_path / "b.png", POLICY.with_(ocr=""))
    monkeypatch.setitem(sys.modules, "rapidocr", None)
    with pytest.raises(MissingExtra, match=r"\[ocr\]"):
        anonymize_path(tmp_path / "a.png", tmp_path / "b.png", POLICY)
    (tmp_path / "a.pdf").write_bytes(made.scan())
    with pytest.raises(RefusedContent, match=r"page 1 is a scan.*pip install '.*\[ocr\]'"):
        anonymize_path(tmp_path / "a.pdf", tmp_path / "b.pdf", POLICY)
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith("b.")] == []


def without_letters() -> bytes:
    """A page whose font does not tell its letters, with a photo."""

    def change(pdf):
        font = pikepdf.Dictionary(
            Type=pikepdf.Name.Font, Subtype=pikepdf.Name.TrueType, BaseFont=pikepdf.Name("/ABCDEF+Own"), FirstChar=65,
            Widths=[600] * 26,
            Encoding=pikepdf.Dictionary(Differences=pikepdf.Array([65, *(pikepdf.Name(f"/g{i}") for i in range(26))])),
        )  # fmt: skip
        photo = pdf.make_stream(b"\0" * 48)
        photo.Type, photo.Subtype, photo.ColorSpace = map(pikepdf.Name, ("/XObject", "/Image", "/DeviceRGB"))
        photo.Width = photo.Height = 4
        photo.BitsPerComponent = 8
        page = pdf.pages[0].obj
        page.Resources.Font.F2 = pdf.make_indirect(font)
        page.Resources.XObject = pikepdf.Dictionary(Im=photo)
        page.Contents = pdf.make_stream(
            b"q 100 0 0 100 300 300 cm /Im Do Q BT /F2 12 Tf 72 700 Td (BEBCSPPL) Tj /F1 12 Tf 0 -20 Td (Ada Brook) Tj ET"
        )

    return made.changed(made.bare(b""), change)


def test_a_page_without_letters_is_read_by_ocr_and_becomes_a_picture(run, monkeypatch):
    def read(image):
        yield Word("Ada", 10, 10, 60, 40)
        yield Word("stays", 80, 10, 130, 40)

    monkeypatch.setattr(ocr, "_table", {**ocr._table, "two": read})
    policy = POLICY.with_(ocr="two", dictionary=(TermList("PERSON", ("Ada",)),))
    data = without_letters()
    document = get_format("pdf").parse(Chunk(data), Job(policy)).pieces[0].document
    assert document.text == "Ada stays"
    monkeypatch.setitem(ocr._table, "two", lambda image: [Word("stays", 80, 10, 130, 40)])
    with pytest.raises(RefusedContent, match="page 1 has text in a font without a mapping to letters"):
        run("a.pdf", data, policy.with_(ocr=""))
    result, report = run("a.pdf", data, policy)
    assert report.treated["pages read by OCR"] == 1
    with pikepdf.open(io.BytesIO(result)) as pdf:
        assert list(pdf.pages[0].obj.Resources.XObject.keys()) == ["/AllonymPage"]
        assert "/Font" not in pdf.pages[0].obj.Resources
        scale = 1 / float(pdf.pages[0].mediabox[2])
        after = pikepdf.PdfImage(pdf.pages[0].obj.Resources.XObject["/AllonymPage"]).as_pil_image().convert("L")
    # The photo, which was black, is grey.
    scale *= after.width
    assert abs(after.getpixel((round(350 * scale), after.height - round(350 * scale))) - 0xD9) < 6


# RapidOCR itself


def test_a_turned_scan_is_read_and_covered_by_rapidocr(tmp_path: Path, scan):
    pytest.importorskip("rapidocr", reason="needs the extra ocr")
    turned = scan.crop((0, 120, 1240, 480)).rotate(1.5, fillcolor=(250, 248, 244), expand=True)
    (tmp_path / "a.png").write_bytes(picture(turned, "PNG"))
    anonymize_path(tmp_path / "a.png", tmp_path / "b.png", POLICY)
    result = (tmp_path / "b.png").read_bytes()
    left = find_leftovers_in_file(result, "png+rapidocr", ["please call", "Ada Brook", "Cyd Dale", "555"], "")
    assert [leftover.index for leftover in left] == [0]
