"""DOCX whole: tracked changes in both readings, comments, drawings, charts, embedded files, pictures, what is hidden."""

from __future__ import annotations

import io
import json
import re
import signal
import zipfile
from xml.etree import ElementTree

import pytest

pytest.importorskip("docx")
pytest.importorskip("openpyxl")


from benchmarks.office_packages import body, dele, ins, p
from benchmarks.office_packages import run as run_of
from benchmarks.redaction_docx import DOCUMENTS, left_in

from allonym.errors import RefusedContent
from allonym.files import read_documents
from allonym.files.office import Package, looks_worded
from allonym.files.pictures import make_grey_png, strip_picture_metadata
from allonym.files.rewrite import rewrite_path
from allonym.policy import Policy, TermList
from benchmarks import office_packages as packages
from benchmarks import redaction_docx as made

W = f"{{{packages.W}}}"
TOLD = TermList("PERSON", made.NAMES)
POLICY = Policy.load("default").with_(detectors=("rules", "spoken", "lexicon", "speakers"), dictionary=(TOLD,))


def part(data: bytes, name: str) -> bytes:
    with zipfile.ZipFile(io.BytesIO(data)) as package:
        return package.read(name)


def names(data: bytes) -> list[str]:
    with zipfile.ZipFile(io.BytesIO(data)) as package:
        return package.namelist()


def reading(data: bytes, without: tuple[str, ...]) -> list[str]:
    """The paragraphs as they are when changes of the given kinds are taken out."""
    root = ElementTree.fromstring(part(data, "word/document.xml"))
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag in {f"{W}{n}" for n in without} and len(child):
                parent.remove(child)
    texts, goes_on = [], False
    for paragraph in root.iter(f"{W}p"):
        text = "".join(t.text or "" for t in paragraph.iter() if t.tag in (f"{W}t", f"{W}delText"))
        texts[-1:] = [texts[-1] + text] if goes_on else [*texts[-1:], text]
        mark = paragraph.find(f"{W}pPr/{W}rPr")
        goes_on = mark is not None and any(e.tag in {f"{W}{n}" for n in without} for e in mark)
    return texts[1:]


def accepted(data: bytes) -> list[str]:
    return reading(data, ("del", "moveFrom"))


def rejected(data: bytes) -> list[str]:
    return reading(data, ("ins", "moveTo"))


@pytest.mark.parametrize("name", DOCUMENTS)
def test_no_name_can_be_read_in_any_corner(run, name):
    data = DOCUMENTS[name]()
    assert left_in(data)
    out = run(name, data, POLICY)[0]
    assert left_in(out) == []
    made.reopened(name, out)


def test_both_readings_of_tracked_changes_are_searched(run):
    data = DOCUMENTS["name_over_changes.docx"]()
    assert accepted(data)[:2] == ["My name is Gil Smithson, and I was here.", "My name is Ada Greok, and I was here."]
    assert rejected(data)[:2] == ["My name is Gil Smith, and I was here.", "My name is Ada Brook, and I was here."]
    out = run("a.docx", data, POLICY)[0]
    first, second = "My name is [PERSON_1], and I was here.", "My name is [PERSON_3], and I was here."
    assert accepted(out) == [first, second, "Write to [EMAIL_ADDRESS_1] at once."]
    assert [re.sub(r"\d", "N", t) for t in rejected(out)] == [
        "My name is [PERSON_N], and I was here.",
        "My name is [PERSON_N], and I was here.",
        "Write to [EMAIL_ADDRESS_N] at once.",
    ]
    assert accepted(out)[:2] != rejected(out)[:2], "two names stay two"


def test_changes_that_no_name_crosses_stay_as_they_are(run):
    out = run("a.docx", DOCUMENTS["inserted_and_deleted.docx"](), POLICY)[0]
    assert accepted(out) == ["My name is [PERSON_2] and I live here.", "Call [PHONE_NUMBER_1] today."] or accepted(
        out
    ) == [
        "My name is [PERSON_1] and I live here.",
        "Call [PHONE_NUMBER_1] today.",
    ]
    document = part(out, "word/document.xml").decode()
    assert document.count("<w:ins ") == document.count("<w:del ") == 2


def test_paragraphs_that_are_joined_in_one_reading_are_read_so(run):
    data = DOCUMENTS["joined_paragraphs.docx"]()
    out = run("a.docx", data, POLICY)[0]
    assert accepted(data)[0] == "My name is Ada Brook and I was here."
    assert accepted(out)[0] == "My name is [PERSON_1] and I was here."
    assert rejected(out)[-1] == "My name is [PERSON_2] and I was there."


def test_what_neither_reading_holds_goes(run):
    out = run("a.docx", DOCUMENTS["inserted_then_deleted.docx"](), POLICY)[0]
    assert accepted(out) == ["We met nobody there.", "We met nobody else."]
    assert rejected(out) == ["We met nobody there.", "We met  else."]
    assert b"delText" not in part(out, "word/document.xml")


def test_a_run_with_more_than_a_text_is_parted_where_its_readings_differ(run):
    runs = (
        '<w:r><w:rPr><w:b/></w:rPr><w:t>At home</w:t><w:br/><w:t xml:space="preserve">My name is Gil Smith</w:t></w:r>'
    )
    after = '<w:r><w:tab/><w:t xml:space="preserve"> left</w:t><w:tab/></w:r>'
    out = run("a.docx", body(p(runs, ins("son"), after)).data(), POLICY)[0]
    assert accepted(out) == ["At homeMy name is [PERSON_1] left"]
    assert rejected(out) == ["At homeMy name is [PERSON_2] left"]
    document = part(out, "word/document.xml").decode()
    assert document.count("<w:b/>") == 3 and document.count("<w:br/>") == 1 and document.count("<w:tab/>") == 2


def test_authors_are_numbered_and_times_go(run):
    out, report = run("a.docx", DOCUMENTS["comments.docx"](), POLICY)
    comments = part(out, "word/comments.xml").decode()
    assert re.findall(r'w:author="([^"]*)"', comments) == ["Author 1", "Author 2"]
    assert "date" not in comments and "initials" not in comments
    gone = {"word/people.xml", "word/commentsIds.xml", "word/commentsExtensible.xml"}
    assert not gone & set(names(out)) and "word/commentsExtended.xml" in names(out)
    assert b"people" not in part(out, "[Content_Types].xml") + part(out, "word/_rels/document.xml.rels")
    assert report.labels["PERSON"] >= 4  # the authors are looked for in the text, where one is called by her first name
    assert b"Ada" not in part(out, "word/document.xml")


def test_formatting_changes_are_accepted(run):
    document = part(run("a.docx", DOCUMENTS["changed_formats.docx"](), POLICY)[0], "word/document.xml").decode()
    assert "Change" not in document and '<w:pStyle w:val="Heading1"/>' in document and "<w:b/>" in document


def test_pictures_become_grey(run):
    data = DOCUMENTS["pictures.docx"]()
    out, report = run("a.docx", data, POLICY)
    assert [n for n in names(out) if "media" in n] == ["word/media/picture1.png", "word/media/picture2.png"]
    assert part(out, "word/media/picture1.png") == part(out, "word/media/picture2.png") == make_grey_png()
    assert report.treated["pictures left out"] == 2
    assert part(out, "word/document.xml").count(b'cx="1800000"') == 4  # as large as they were


def test_pictures_that_a_policy_keeps_lose_what_is_told_beside_them(run):
    data = DOCUMENTS["pictures.docx"]()
    out, report = run("a.docx", data, POLICY.with_(images="keep"))
    assert report.treated["pictures kept"] == 2 and left_in(out) == []
    picture, photo = part(out, "word/media/picture1.png"), part(out, "word/media/picture2.jpeg")
    assert picture == packages.png() and photo == packages.PHOTO
    assert part(data, "word/media/ada_brook.png") != picture


@pytest.mark.parametrize(
    "data", [b"", b"GIF89a", b"\x89PNG\r\n\x1a\n", packages.png()[:-20], packages.PHOTO[:60], b"\xff\xd8\xff"]
)
def test_what_is_no_whole_picture_is_not_kept(data):
    assert strip_picture_metadata(data) is None


def test_charts_diagrams_and_their_workbooks_are_treated(run):
    out = run("a.docx", DOCUMENTS["chart.docx"](), POLICY)[0]
    chart = part(out, "word/charts/chart1.xml").decode()
    assert "[PERSON_1]" in chart and "Sheet1!$A$2:$A$3" in chart and "<c:v>7</c:v>" in chart
    inner = part(out, "word/embeddings/Microsoft_Excel_Sheet1.xlsx")
    assert b"[PERSON_1]" in part(inner, "xl/worksheets/sheet1.xml")


def test_a_number_in_a_chart_stays_a_number(run):
    parts = packages.Parts(DOCUMENTS["chart.docx"]())
    parts.swap("word/charts/chart1.xml", "<c:v>7</c:v>", "<c:v>4111111111111111</c:v>")
    chart = part(run("a.docx", parts.data(), POLICY)[0], "word/charts/chart1.xml").decode()
    assert "4111111111111111" not in chart and "<c:v>0</c:v>" in chart


def test_embedded_files_are_treated_or_go(run):
    out, report = run("a.docx", DOCUMENTS["embedded.docx"](), POLICY)
    kept = [n for n in names(out) if "embeddings" in n]
    assert kept == ["word/embeddings/Microsoft_Word_Document1.docx", "word/embeddings/Microsoft_Excel_Sheet2.xlsx"]
    assert accepted(part(out, kept[0]))[1] == "Call [PHONE_NUMBER_1] today."
    document = part(out, "word/document.xml").decode()
    assert document.count("OLEObject") == 2 and document.count("imagedata") == 4
    assert report.treated["embedded objects left out"] == 2


def test_packages_in_packages_end_somewhere(run):
    data = DOCUMENTS["formats.docx"]()
    for _ in range(4):
        parts = body(p("Outside."))
        parts.default("docx", f"{packages.OFFICE}.wordprocessingml.document")
        parts.add("word/embeddings/a.docx", data, of="word/document.xml", rel="package", id="rIdE1")
        data = parts.data()
    out = run("a.docx", data, POLICY)[0]
    depth = 0
    while "word/embeddings/a.docx" in names(out):
        out, depth = part(out, "word/embeddings/a.docx"), depth + 1
    assert depth == 2 and left_in(out) == []


def test_what_is_hidden_goes(run):
    out, report = run("a.docx", DOCUMENTS["content_controls.docx"](), POLICY)
    document = part(out, "word/document.xml").decode()
    assert (
        "dataBinding" not in document and "fullDate" not in document and not any("customXml" in n for n in names(out))
    )
    assert report.treated["custom XML parts left out"] == 2
    settings = run("a.docx", DOCUMENTS["settings.docx"](), POLICY)[0]
    for gone in (b"docVar", b"mailMerge", b"rsid", b"attachedTemplate"):
        assert gone not in part(settings, "word/settings.xml") + part(settings, "word/_rels/settings.xml.rels")
    assert not any("_xmlsignatures" in n for n in names(run("a.docx", DOCUMENTS["signed.docx"](), POLICY)[0]))
    core = part(run("a.docx", DOCUMENTS["properties.docx"](), POLICY)[0], "docProps/core.xml")
    assert b"created" not in core and b"modified" not in core
    linked = run("a.docx", DOCUMENTS["linked_picture.docx"](), POLICY)[0]
    assert b'Target="NULL"' in part(linked, "word/_rels/document.xml.rels")


@pytest.mark.parametrize(
    "target", ["file:///C:\\Users\\somebody\\notes.txt", "..\\home\\somebody\\notes.txt", "../somebody/notes.txt"]
)
def test_a_link_to_a_local_file_keeps_the_name_of_the_file(run, target):
    parts = body(p('<w:hyperlink r:id="rIdH1"><w:r><w:t>x</w:t></w:r></w:hyperlink>'))
    parts.link("word/document.xml", "hyperlink", target, "rIdH1", outside=True)
    rels = part(run("a.docx", parts.data(), POLICY)[0], "word/_rels/document.xml.rels")
    assert b'Target="notes.txt"' in rels and b"somebody" not in rels


def test_an_attribute_that_nobody_knows_is_treated_when_it_holds_words(run):
    parts = body(
        p("x").replace("<w:p>", '<w:p w14:strange="Dear Ms Cyd Dale" w14:mark="a@example.com" w14:other="plain">')
    )
    document = part(run("a.docx", parts.data(), POLICY)[0], "word/document.xml").decode()
    assert 'w14:strange="Dear Ms [PERSON_1]" w14:mark="[EMAIL_ADDRESS_1]" w14:other="plain"' in document


def test_a_long_attribute_is_read_in_one_pass():
    ended = signal.signal(signal.SIGALRM, lambda *_: pytest.fail("it takes more than one pass"))
    signal.alarm(20)
    try:
        assert not looks_worded("a" * 100_000) and looks_worded("a" * 100_000 + ": b")
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, ended)


def test_same_bytes_again_and_with_workers(run):
    data = DOCUMENTS["comments.docx"]()
    assert run("a.docx", data, POLICY)[0] == run("b.docx", data, POLICY)[0]


def test_nothing_found_keeps_every_text(run, nothing):
    for name in ("name_over_changes.docx", "joined_paragraphs.docx", "moved.docx", "changed_rows.docx"):
        data = DOCUMENTS[name]()
        out = run(name, data, nothing)[0]
        assert (accepted(out), rejected(out)) == (accepted(data), rejected(data))


def test_an_anonymised_file_can_be_written_again_with_its_originals(run, tmp_path):
    data = DOCUMENTS["name_over_changes.docx"]()
    run("a.docx", data, POLICY, plans=tmp_path / "plans.jsonl", originals=True)
    (line,) = (tmp_path / "plans.jsonl").read_text().splitlines()
    plan = json.loads(line)["plan"]
    edits = (json.loads(plan) if isinstance(plan, str) else plan)["edits"]
    originals = {e["replacement"]: e["original"] for e in edits}

    def restored(number: int, document) -> tuple[str, ...]:
        back = re.compile("|".join(map(re.escape, originals)))
        return tuple(back.sub(lambda m: originals[m[0]], text) for text in document.part_texts())

    assert len(list(read_documents(tmp_path / "out-a.docx"))) == 1
    assert rewrite_path(tmp_path / "out-a.docx", tmp_path / "back.docx", restored) == 1
    back = (tmp_path / "back.docx").read_bytes()
    assert (accepted(back), rejected(back)) == (accepted(data), rejected(data))


def test_a_result_that_still_holds_a_covered_text_is_refused(run, tmp_path, monkeypatch):
    write = Package.to_bytes

    def leaking(package: Package) -> bytes:
        package.entries["word/media/picture9.bin"] = "Ada Brook".encode("utf-16-le")
        return write(package)

    monkeypatch.setattr(Package, "to_bytes", leaking)
    with pytest.raises(RefusedContent, match=r"still contains \d of .*word/media/") as caught:
        run("a.docx", DOCUMENTS["formats.docx"](), POLICY)
    assert "Ada" not in str(caught.value) and not (tmp_path / "out-a.docx").exists()
    with pytest.raises(RefusedContent, match="'Ada Brook'"):
        run("a.docx", DOCUMENTS["formats.docx"](), POLICY, quotes=True)


def test_a_name_that_runs_through_formats_and_changes_at_once(run):
    out = run(
        "a.docx",
        body(p("Dear Ms ", run_of("Cyd ", "<w:i/>"), dele("Da"), ins("Ha"), run_of("le", "<w:b/>"), ", hello")).data(),
        POLICY,
    )[0]
    assert [re.sub(r"\d", "N", t) for t in (*accepted(out), *rejected(out))] == ["Dear Ms [PERSON_N], hello"] * 2
