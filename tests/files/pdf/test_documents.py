"""Each PDF of our own making: what is in it is found before, and nothing of it after; the rest stays."""

from __future__ import annotations

import io
import tracemalloc

import pytest

from allonym.files import anonymize_path
from allonym.files.record import Chunk, Draft, Job
from allonym.files.verify import find_leftovers_in_file, read_texts_by_reader
from allonym.files.verify.pdf import read_pdfium_texts
from allonym.policy import Policy, TermList

pikepdf = pytest.importorskip("pikepdf")
pytest.importorskip("pypdfium2")
pytest.importorskip("reportlab")

from allonym.files.pdf.editor import parse_pdf  # noqa: E402
from benchmarks import pdf_pages  # noqa: E402
from benchmarks import redaction_pdf as made  # noqa: E402

POLICY = Policy.load("default").with_(
    detectors=("rules", "lexicon"), dictionary=(TermList("PERSON", made.SECRETS[:3]),)
)
# These start another program; the benchmark has them, too.
SLOW = ("browser", "office", "long_report")
FAST = [name for name in made.DOCUMENTS if name not in SLOW]

STAYS = {
    "letter_page": "thank you for your call from",
    "two_columns": "for an hour about the offer",
    "rotated": "was here",
    "wide_font": "Grüße von",
    "scaled": "slanted",
    "invisible": "Shown text.",
    "hidden_layers": "Hidden:",
    "form": "Application",
    "notes": "Note by",
    "revisions": "agrees.",
    "nested_forms": "page head",
    "illustrated": "A page with a picture of a badge.",
}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[bytes, bytes]]:
    folder = tmp_path_factory.mktemp("pdf")
    out = {}
    for name in FAST:
        data = made.DOCUMENTS[name]()
        assert data is not None
        (folder / f"{name}.pdf").write_bytes(data)
        anonymize_path(folder / f"{name}.pdf", folder / f"{name}-safe.pdf", POLICY)
        out[name] = data, (folder / f"{name}-safe.pdf").read_bytes()
    return out


def parse(data: bytes) -> Draft:
    piece = parse_pdf(Chunk(data, end=len(data)), Job(POLICY)).pieces[0]
    assert isinstance(piece, Draft)
    return piece


def pages(count: int) -> bytes:
    line = "The quick brown fox jumps over the lazy dog and the letters of this line are many."
    return pdf_pages.canvas(lambda c: [(pdf_pages.lines(c, [line] * 40), c.showPage()) for _ in range(count)])


def test_few_bytes_are_kept_for_each_character_of_a_page():
    sizes = []
    for count in (2, 12):
        data = pages(count)
        tracemalloc.start()
        draft = parse(data)
        sizes.append((tracemalloc.get_traced_memory()[0], len(draft.document.text)))
        tracemalloc.stop()
    (few, short), (many, long) = sizes
    assert long - short > 30_000
    assert (many - few) / (long - short) < 80  # 580 where each is an object


def test_a_replacement_may_run_from_a_page_to_the_next():
    draft = parse(pages(3))
    parts = list(draft.document.part_texts())
    page = len(parts) // 3
    for border in (page, 2 * page):
        parts[border - 4 : border + 9] = ["[LINE_1]", *[""] * 12]
    (text, *_) = (dict(view) for view in read_texts_by_reader(draft.render(tuple(parts)), "pdf"))
    shown = "".join(text[f"page {number}"] for number in (1, 2, 3))
    assert shown.count("[LINE_1]") == 2 and shown.count("The quick brown") == 118


def everything(data: bytes) -> str:
    return "\n".join(text for view in read_texts_by_reader(data, "pdf") for _, text in view)


@pytest.mark.parametrize("name", FAST)
def test_nothing_is_left_of_what_was_there(name, results):
    before, after = results[name]
    assert made.leaks(before)
    assert made.leaks(after) == []
    for secret in made.SECRETS:
        assert secret.encode() not in after
        assert secret.encode("utf-16-be") not in after


@pytest.mark.parametrize("name", STAYS)
def test_the_rest_stays(name, results):
    before, after = results[name]
    assert STAYS[name] in everything(before)
    assert STAYS[name] in everything(after)


@pytest.mark.parametrize("name", FAST)
def test_the_result_holds_nothing_but_pages(name, results):
    with pikepdf.open(io.BytesIO(results[name][1])) as pdf:
        assert not {"/Metadata", "/Names", "/Dests", "/AcroForm", "/StructTreeRoot", "/AA", "/OpenAction"} & set(
            pdf.Root.keys()
        )
        assert "/Info" not in pdf.trailer
        assert not len(pdf.attachments)
        for page in pdf.pages:
            assert not {"/Thumb", "/PieceInfo", "/Metadata", "/AA"} & set(page.obj.keys())
            assert {str(note.Subtype) for note in page.obj.get("/Annots", [])} <= {"/Link"}


@pytest.mark.parametrize("name", FAST)
def test_the_same_file_gives_the_same_bytes(name, results, tmp_path):
    before, after = results[name]
    source, target = tmp_path / f"{name}.pdf", tmp_path / f"{name}-safe.pdf"
    source.write_bytes(before)
    anonymize_path(source, target, POLICY)
    assert target.read_bytes() == after


def boxes(data: bytes, word: str) -> list[tuple[float, ...]]:
    """Where PDFium sees the first letter of each occurrence of a word on the first page."""
    import pypdfium2

    text = pypdfium2.PdfDocument(data)[0].get_textpage()
    whole = text.get_text_range()
    places = [i for i in range(len(whole)) if whole.startswith(word, i)]
    return [tuple(round(v, 1) for v in text.get_charbox(i)) for i in places]


@pytest.mark.parametrize(("name", "word"), [("type3", "Signed"), ("table", "closed"), ("letter_page", "number")])
def test_other_lines_and_cells_stay_where_they_were(name, word, results):
    before, after = (boxes(data, word) for data in results[name])
    assert before
    assert after == before


def test_text_within_a_picture_goes_with_the_picture(results):
    with pikepdf.open(io.BytesIO(results["illustrated"][1])) as pdf:
        assert not [o for o in pdf.objects if isinstance(o, pikepdf.Stream) and o.get("/Subtype") == "/Image"]


def test_pictures_stay_where_the_policy_says_so(tmp_path):
    source, target = tmp_path / "a.pdf", tmp_path / "b.pdf"
    source.write_bytes(made.illustrated())
    anonymize_path(source, target, POLICY.with_(images="keep"))
    with pikepdf.open(io.BytesIO(target.read_bytes())) as pdf:
        assert len(pdf.pages[0].obj.Resources.XObject) == 1
    assert made.leaks(target.read_bytes()) == []


def test_a_transparent_picture_over_text_becomes_a_frame(tmp_path):
    from PIL import Image

    def draw(c):
        c.drawString(72, 700, "A line below the stamp")
        stamp = Image.new("RGBA", (40, 40), (200, 0, 0, 0))
        c.drawImage(made.ImageReader(stamp), 60, 650, 200, 100, mask="auto")
        c.drawImage(made.ImageReader(stamp), 60, 100, 200, 100, mask="auto")

    (tmp_path / "a.pdf").write_bytes(made.canvas(draw, made.A4))
    anonymize_path(tmp_path / "a.pdf", tmp_path / "b.pdf", POLICY)
    import pypdfium2

    page = pypdfium2.PdfDocument((tmp_path / "b.pdf").read_bytes())[0].render().to_pil().convert("L")
    height = round(made.A4[1])
    assert page.crop((70, height - 715, 180, height - 695)).getextrema()[0] < 100
    assert page.getpixel((200, height - 150)) == 224


def test_links_and_bookmarks_still_lead(results):
    with pikepdf.open(io.BytesIO(results["links"][1])) as pdf:
        links = pdf.pages[0].obj.Annots
        addresses = [str(link.A.URI) for link in links if "/A" in link]
        assert len(addresses) == 2
        assert addresses[0].startswith("mailto:[")
        assert [link.Dest[0].objgen for link in links if "/Dest" in link] == [pdf.pages[1].obj.objgen]
    with pikepdf.open(io.BytesIO(results["bookmarks"][1])) as pdf, pdf.open_outline() as outline:
        assert [str(item.title) for item in outline.root] == ["Chapter of [PERSON_1]", "Nobody"]
        assert [str(item.title) for item in outline.root[0].children] == ["About [PERSON_2], [US_SSN_1]"]
        assert outline.root[1].destination[0].objgen == pdf.pages[1].obj.objgen


def test_an_earlier_revision_is_gone(results):
    before, after = results["revisions"]
    assert b"Wilhelmina Farrow" in before
    assert after.count(b"%%EOF") == 1 and b"/Prev" not in after
    assert "Draft" not in "".join(text for _, text in read_pdfium_texts(after))


def test_find_leftovers_reads_what_is_drawn_letter_by_letter():
    found = find_leftovers_in_file(made.letter_by_letter(), "pdf", ["Ada Brook", "Eve Stone"], "")
    assert [one.index for one in found] == [0]


def test_strings_that_nothing_shows_are_gone(tmp_path):
    def change(pdf):
        page = pdf.pages[0].obj
        odd = pdf.make_indirect(pikepdf.Dictionary(Type=pikepdf.Name.OCG, Name=pikepdf.String("Ada Brook")))
        page.Resources.Properties = pikepdf.Dictionary(P=odd)
        page.Resources.Font.F1.Title = pikepdf.String("Ada Brook")
        page.Resources.Font.F1.Name = pikepdf.Name("/Ada Brook")
        page.Contents = pdf.make_stream(
            b"(Ada Brook) 0 0 9 9 re n [(Ada Brook)] 0 d << /A (Ada Brook) >> ri (Ada Brook) Xj "
            b"Q Q q BT /F1 12 Tf 72 700 Td (Shown.) Tj ET"
        )

    source, target = tmp_path / "a.pdf", tmp_path / "b.pdf"
    source.write_bytes(made.changed(made.bare(b""), change))
    assert made.leaks(source.read_bytes())
    anonymize_path(source, target, POLICY)
    assert made.leaks(target.read_bytes()) == []
    with pikepdf.open(target) as pdf:
        assert b"Shown" in pdf.pages[0].obj.Contents.read_bytes()
        assert b"Ada" not in b"".join(o.read_bytes() for o in pdf.objects if isinstance(o, pikepdf.Stream))


def test_a_replacement_that_no_standard_font_can_show_is_a_box(tmp_path):
    (tmp_path / "policy.toml").write_text(
        'extends = "default"\n[detect]\ndetectors = ["lexicon"]\n[dictionary]\nPERSON = ["Ada Brook"]\n'
        '[tag]\nstyle = "⟦{label}_{n}⟧"\n'
    )
    (tmp_path / "a.pdf").write_bytes(made.letter_page())
    anonymize_path(tmp_path / "a.pdf", tmp_path / "b.pdf", Policy.load(tmp_path / "policy.toml"))
    with pikepdf.open(tmp_path / "b.pdf") as pdf:
        drawn = [str(i.operator) for i in pikepdf.parse_content_stream(pdf.pages[0])]
    assert "re" in drawn
