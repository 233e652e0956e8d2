"""Archives and books: every file in its own format, one replacement for a value in all of them."""

from __future__ import annotations

import io
import time
import zipfile
from pathlib import Path

import pytest

from allonym.errors import DataError, RefusedContent
from allonym.files import legacy
from allonym.files.rewrite import rewrite_path

MAIL = "[EMAIL_ADDRESS_1]"


def make_zip(**files: str | bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return out.getvalue()


def read_zip(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_a_value_has_one_replacement_in_all_files_of_an_archive(run):
    inner = make_zip(**{"b.txt": "a@example.com"})
    data = make_zip(
        **{
            "a.txt": "a@example.com, b@example.com",
            "in/rows.csv": "mail,n\nb@example.com,1\nc@example.com,2\n",
            "more.zip": inner,
            "a@example.com.txt": "x",
            "photo.raw": "a@example.com",
        }
    )
    out, report = run("a.zip", data)
    files = read_zip(out)
    assert set(files) == {"a.txt", "in/rows.csv", "more.zip", "EMAIL_ADDRESS_1.txt"}
    assert files["a.txt"].decode() == f"{MAIL}, [EMAIL_ADDRESS_2]"
    assert files["in/rows.csv"].decode() == "mail,n\n[EMAIL_ADDRESS_2],1\n[EMAIL_ADDRESS_3],2\n"
    assert read_zip(files["more.zip"])["b.txt"].decode() == MAIL
    assert report.treated["files of an unknown kind left out"] == 1
    assert run("b.zip", data)[0] == out


def test_a_file_of_an_archive_that_fails_is_left_out(run):
    out, report = run("a.zip", make_zip(**{"a.txt": "x", "b.docx": b"PK", "c.jsonl": b"{\n{}\n"}))
    assert set(read_zip(out)) == {"a.txt"} and report.quarantined == 2


def test_files_of_an_archive_stay_inside_the_folder_that_it_is_unpacked_into(run):
    names = ["../../a.txt", "/etc/b.txt", "c\\..\\d.txt", "C:/e.txt", "x/../a.txt"]
    out, _ = run("a.zip", make_zip(**dict.fromkeys(names, "x")))
    assert set(read_zip(out)) == {"a.txt", "etc/b.txt", "c/d.txt", "e.txt", "x/a.txt"}


def test_many_small_bombs_in_an_archive_are_one(run):
    bomb = make_zip(**{"a.txt": b"\0" * 1_000_000})
    data = make_zip(**{f"{n}.zip": bomb for n in range(60)})
    with pytest.raises(DataError, match="grows"):
        run("a.zip", data)


def test_what_is_no_archive_is_refused(run):
    with pytest.raises(DataError, match="not a ZIP archive"):
        run("a.zip", b"Jane")
    with pytest.raises(DataError, match="not an EPUB book"):
        run("a.epub", b"Jane")


def test_books_lose_comments_in_styles_and_metadata_are_treated(run):
    style = "/* a@example.com */p{background:url(data:image/png;base64,QUFB)}"
    out, _ = run("a.epub", make_zip(**{"s.css": style, "META-INF/metadata.xml": "<a>a@example.com</a>"}))
    assert read_zip(out) == {"s.css": b"p{background:url()}", "META-INF/metadata.xml": f"<a>{MAIL}</a>".encode()}


def test_books_are_treated_by_chapter(run):
    page = "<html xmlns='http://www.w3.org/1999/xhtml'><p>By a@example.com</p></html>"
    package = "<package><metadata><creator>a@example.com</creator></metadata></package>"
    parts = {"mimetype": "application/epub+zip", "c/1.xhtml": page, "c/2.xhtml": page, "c/p.opf": package}
    out, report = run("a.epub", make_zip(**parts, **{"c/i.jpg": b"x", "c/x.js": "a@example.com"}))
    files = read_zip(out)
    assert [*files] == ["mimetype", "c/1.xhtml", "c/2.xhtml", "c/p.opf", "c/i.jpg"]
    assert all(MAIL.encode() in files[name] and b"example.com" not in files[name] for name in (*parts,)[1:])
    assert report.treated["unknown parts left out"] == 1 and files["c/i.jpg"].startswith(b"\x89PNG")
    with pytest.raises(RefusedContent, match="protected"):
        run("b.epub", make_zip(**{"META-INF/encryption.xml": "<EncryptedData/>"}))


def test_an_old_office_file_without_libreoffice_tells_what_to_do(run, monkeypatch):
    monkeypatch.setattr(legacy.shutil, "which", lambda name: None)
    with pytest.raises(DataError, match=r"LibreOffice, which is not installed here; install it, or save .* \.docx"):
        run("a.doc", legacy.OLE + b"x")
    with pytest.raises(DataError, match="97 to 2003"):
        run("a.xls", b"x")


def test_an_old_office_file_is_converted_and_converted_back(run, monkeypatch, tmp_path):
    """The conversion is LibreOffice's; here the modern file stands for both."""
    docx = pytest.importorskip("docx")
    document, out = docx.Document(), io.BytesIO()
    document.add_paragraph("Write to a@example.com")
    document.save(out)
    steps: list[tuple[str, str]] = []

    def convert(data: bytes, old: str, new: str) -> bytes:
        steps.append((old, new))
        return out.getvalue() if new == "docx" else data

    monkeypatch.setattr(legacy, "convert_by_libreoffice", convert)
    safe = run("a.doc", legacy.OLE + b"x")[0]
    assert steps == [("doc", "docx"), ("docx", "doc")]
    source, target = tmp_path / "b.doc", tmp_path / "c.doc"
    source.write_bytes(legacy.OLE + b"x")
    rewrite_path(source, target, lambda _, document: document.part_texts(), verify=False)
    assert steps[2:] == [("doc", "docx"), ("docx", "doc")]
    assert docx.Document(io.BytesIO(safe)).paragraphs[0].text == f"Write to {MAIL}"


def test_a_conversion_that_takes_too_long_is_ended_with_all_that_it_started(run, monkeypatch, tmp_path):
    program, number = tmp_path / "soffice", tmp_path / "number"
    program.write_text(f"#!/bin/sh\nsleep 60 &\necho $! > {number}.new && mv {number}.new {number}\nwait\n")
    program.chmod(0o755)
    monkeypatch.setattr(legacy.shutil, "which", lambda name: str(program))
    monkeypatch.setattr(legacy, "SECONDS", 3)
    with pytest.raises(DataError, match="more than 3 seconds"):
        run("a.doc", legacy.OLE + b"x")
    command = Path("/proc", number.read_text().strip(), "cmdline")
    for _ in range(200):  # the end of a process takes a moment
        if not read_if_exists(command):
            break
        time.sleep(0.05)
    else:
        pytest.fail("a program that the conversion started still runs")


def read_if_exists(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
