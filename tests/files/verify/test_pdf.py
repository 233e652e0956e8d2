"""The verifier is no rubber stamp: boxes over text, half a removal and every hiding place are found out."""

from __future__ import annotations

import io

import pytest
from tests.rows import check_each_row

from allonym.errors import RefusedContent
from allonym.files import anonymize_path
from allonym.files.verify import find_leftovers_in_file, find_leftovers_in_texts
from allonym.policy import Policy, TermList

pikepdf = pytest.importorskip("pikepdf")
pytest.importorskip("pypdfium2")
pytest.importorskip("reportlab")

from allonym.files.verify import pdf as readers  # noqa: E402
from benchmarks import redaction_pdf as made  # noqa: E402

POLICY = Policy.load("default").with_(detectors=("lexicon",), dictionary=(TermList("PERSON", made.SECRETS[:3]),))


def seen_by(data: bytes) -> set[str]:
    """Which readers find the name."""
    views = {"shown": readers.read_pdfium_texts, "read": readers.read_pdfminer_texts, "raw": readers.read_raw_strings}
    return {n for n, view in views.items() if find_leftovers_in_texts(view(data), ["Ada Brook"], "")}


@check_each_row(
    "make, by",
    [
        (made.covered_by_boxes, {"shown", "read", "raw"}),
        (made.invisible, {"shown", "read", "raw"}),
        (made.kerning, {"shown", "read", "raw"}),
        (made.letter_by_letter, {"shown"}),
        (made.wide_font, {"shown", "read"}),
        (made.type3, {"shown", "read"}),
        (made.metadata, {"shown", "read", "raw"}),
        (made.attachments, {"shown", "read", "raw"}),
        (made.bookmarks, {"shown", "raw"}),
        (made.links, {"raw"}),
    ],
)
def test_readers_find_what_is_hidden(make, by):
    assert seen_by(make()) >= by


def hidden_in(place: str) -> bytes:
    """A file whose page says nothing, with the name in one place of the file."""

    def change(pdf):
        name = pikepdf.String("by Ada Brook")
        page = pdf.pages[0].obj
        if place == "comment":
            page.PieceInfo = pikepdf.Dictionary(X=pikepdf.Dictionary(Y=[name]))
        elif place == "xmp":
            page.Metadata = pdf.make_stream(b"<x:xmpmeta><b>Ada Brook</b></x:xmpmeta>")
        elif place == "info":
            pdf.docinfo["/Author"] = name
        elif place == "resource":
            page.Resources.Font["/Ada Brook"] = page.Resources.Font.F1
        elif place == "utf16":
            pdf.Root.X = pikepdf.String("\u0416 Ada Brook")
        elif place == "map":
            page.Resources.Font.F1.ToUnicode = pdf.make_stream(
                b"1 beginbfchar <41> <004100640061002000420072006f006f006b> endbfchar"
            )
        elif place == "form":
            form = pdf.make_stream(b"BT /F1 9 Tf [(Ada) -300 (Bro) 5 (ok)] TJ ET")
            form.Type, form.Subtype, form.BBox = pikepdf.Name.XObject, pikepdf.Name.Form, [0, 0, 9, 9]
            page.Resources.XObject = pikepdf.Dictionary(F=form)
        elif place == "wide":
            page.Contents = pdf.make_stream(b"BT /F1 9 Tf <%s> Tj ET" % "Ada Brook".encode("utf-16-be").hex().encode())
        elif place == "mark":
            page.Contents = pdf.make_stream(b"/Span <</ActualText (Ada Brook)>> BDC EMC")

    return made.changed(made.bare(b""), change)


@check_each_row("place", ["comment", "xmp", "info", "resource", "utf16", "map", "form", "wide", "mark"])
def test_the_raw_reader_looks_everywhere(place):
    assert find_leftovers_in_file(hidden_in(place), "pdf", ["Ada Brook"], "")
    assert not find_leftovers_in_file(hidden_in(place), "pdf", ["Eve Stone"], "")


def test_the_licence_in_the_program_of_a_font_is_no_text():
    def change(pdf):
        program = pdf.make_stream(b"(URW)++, see the file COPYING (GNU Public License)")
        program.Subtype = pikepdf.Name.Type1C
        pdf.pages[0].obj.Resources.Font.F1.FontDescriptor = pikepdf.Dictionary(FontFile3=program)

    assert not find_leftovers_in_file(made.changed(made.bare(b""), change), "pdf", ["GNU Public License"], "")


def test_letters_of_two_bytes_are_read_as_words():
    def change(pdf):
        words = [text.encode("utf-16-be").hex().encode() for text in ("Record,", "erase", "play")]
        pdf.pages[0].obj.Contents = pdf.make_stream(b"BT /F1 9 Tf " + b" ".join(b"<%s> Tj" % w for w in words) + b" ET")

    assert not find_leftovers_in_file(made.changed(made.bare(b""), change), "pdf", ["Recorder"], "")


def test_a_result_that_still_holds_a_text_is_refused(tmp_path, monkeypatch):
    from allonym.files.pdf import editor

    real = editor.rewrite_content_stream
    monkeypatch.setattr(
        editor,
        "rewrite_content_stream",
        lambda source, changed, gone, moves, inserts, *pictures: real(source, {}, (), {}, {}, *pictures),
    )
    (tmp_path / "a.pdf").write_bytes(made.letter_page())
    with pytest.raises(RefusedContent, match=r"still contains 4 of 4 covered texts \(page 1") as failed:
        anonymize_path(tmp_path / "a.pdf", tmp_path / "b.pdf", POLICY)
    assert "Ada" not in str(failed.value)
    assert not (tmp_path / "b.pdf").exists()


def test_a_text_that_the_reader_missed_elsewhere_is_found(tmp_path, monkeypatch):
    """What was not swept is found by its bytes."""
    from allonym.files.pdf import clean

    monkeypatch.setattr(clean, "_keep_only_keys", lambda thing, keys: None)
    monkeypatch.setattr(clean, "_remove_keys_and_empty_strings", lambda root: None)
    (tmp_path / "a.pdf").write_bytes(made.metadata())
    with pytest.raises(RefusedContent, match="still contains"):
        anonymize_path(tmp_path / "a.pdf", tmp_path / "b.pdf", POLICY)


def test_a_word_that_stays_does_not_make_a_file_refused(tmp_path):
    (tmp_path / "a.pdf").write_bytes(
        made.bare(b"BT /F1 12 Tf 72 700 Td (Page one of May Brook: in May a brook may flow.) Tj ET")
    )
    policy = POLICY.with_(dictionary=(TermList("PERSON", ("May Brook",)),))
    anonymize_path(tmp_path / "a.pdf", tmp_path / "b.pdf", policy)
    with pikepdf.open(io.BytesIO((tmp_path / "b.pdf").read_bytes())) as pdf:
        assert len(pdf.pages) == 1


def test_a_string_of_an_object_counts_once(tmp_path):
    """A replacement may share words with what it replaces: "https", or the domain kept for examples."""
    (tmp_path / "a.pdf").write_bytes(made.links())
    policy = Policy.load("pseudonyms").with_(detectors=("rules",))
    anonymize_path(tmp_path / "a.pdf", tmp_path / "b.pdf", policy, key=bytes(range(32)))
    said = "".join(text for _, text in readers.read_raw_strings((tmp_path / "b.pdf").read_bytes()))
    assert "example" in said and "ada.brook" not in said
