"""What still can be read in a written PDF is covered there, also in the pictures of its pages."""

from __future__ import annotations

import io
from functools import partial

import pytest

from allonym import registry
from allonym.document import Document
from allonym.files import anonymize_path, get_format
from allonym.files.record import Draft, Job, render_and_verify_draft
from allonym.policy import Policy, TermList

pytest.importorskip("pikepdf")
pypdfium2 = pytest.importorskip("pypdfium2")
canvas = pytest.importorskip("reportlab.pdfgen.canvas")

from allonym.files.pdf.repair import cover_texts_in_pdf  # noqa: E402
from benchmarks import redaction_pdf as made  # noqa: E402

POLICY = Policy.load("default").with_(
    detectors=("rules", "lexicon"), dictionary=(TermList("PERSON", made.SECRETS[:3]),), ocr=""
)


def write_lines(*lines: str) -> bytes:
    out = io.BytesIO()
    page = canvas.Canvas(out)
    for number, line in enumerate(lines):
        page.drawString(72, 700 - 14 * number, line)
    page.save()
    return out.getvalue()


def test_texts_are_covered_where_a_line_end_divides_them():
    data = write_lines("The flood at New Fenns-", "ide was high, and Fennside saw it.")
    parse = get_format("pdf").parse
    out = cover_texts_in_pdf(data, {"New Fennside": "[CITY_1]"}, Job(POLICY), parse)
    text = pypdfium2.PdfDocument(out)[0].get_textpage().get_text_range()
    assert "enns" not in text and text.count("[CITY_1]") == 2 and "was high" in text


def test_what_ocr_reads_in_the_result_alone_is_painted_over(tmp_path, monkeypatch):
    from allonym.files.ocr import Word

    _, words = made._scan()
    calls = []

    def reader(image):
        """Read what is dark; from the second time on, one word as a name."""
        calls.append(image)
        scale = image.width / 1240
        for text, *box, row in words:
            left, top, right, bottom = (edge * scale for edge in box)
            is_dark = sum(image.convert("L").crop((left, top, right, bottom)).histogram()[:100]) > 40
            if is_dark and (len(calls) == 1 or text in ("please", "call")):  # tags cover the names
                yield Word("Brook" if text == "please" and len(calls) > 1 else text, left, top, right, bottom, row)

    monkeypatch.setattr(registry.ocr, "_table", {**registry.ocr._table, "fake": reader})
    (tmp_path / "a.pdf").write_bytes(made.scan())
    anonymize_path(tmp_path / "a.pdf", tmp_path / "b.pdf", POLICY.with_(ocr="fake"))
    image = pypdfium2.PdfDocument(tmp_path / "b.pdf")[0].render(scale=2).to_pil().convert("RGB")
    shown = [word.text for word in reader(image)]
    assert "Brook" not in shown and "call" in shown


def test_the_rest_of_a_divided_word_is_no_leftover(monkeypatch):
    text = "circumven-\ntion and Tobin"
    document = Document("", text)
    monkeypatch.setattr("allonym.files.verify.read_texts_by_reader", lambda *_: iter([[("page 1", "tion tion")]]))
    check = partial(render_and_verify_draft, Draft(document, lambda parts: b"x", verify="pdf"))
    assert check(("circumven-\n[X] and Tobin",), [(11, 15, "[X]")]) == b"x"
