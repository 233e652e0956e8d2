"""Files that a person works with: read, plans carried out, and what is refused."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import io
import json
import time
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.rows import check_each_row

pytest.importorskip("fastapi")
pytest.importorskip("pikepdf")
pytest.importorskip("docx")

import docx
import pikepdf

from allonym.document import Document, Turn
from allonym.errors import DataError, RefusedContent, RequestError
from allonym.pipeline import anonymize
from allonym.plan import Plan
from allonym.server import files

CALL = "Pam: Is Ada Brook there?\nJim: No, write to ada@example.com.\n"


@pytest.fixture(scope="module")
def program(site: Any) -> Any:
    """A client with a reviewer's API key."""
    return site.program("reviewer")


def _pdf(*pages: str) -> bytes:
    """A small PDF with a line of text on each page."""
    objects = [b"<< /Type /Catalog /Pages 2 0 R >>", b"", b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"]
    kids = []
    for text in pages:
        content = f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET".encode("latin-1")
        objects.append(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(content), content))
        place = f"/Contents {len(objects)} 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 3 0 R >> >>"
        objects.append(f"<< /Type /Page /Parent 2 0 R {place} >>".encode())
        kids.append(f"{len(objects)} 0 R")
    objects[1] = f"<< /Type /Pages /Kids [{' '.join(kids)}] /Count {len(kids)} >>".encode()
    out, places = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    rows = b"".join(b"%010d 00000 n \n" % at for at in places)
    table = b"xref\n0 %d\n0000000000 65535 f \n%strailer\n<< /Size %d /Root 1 0 R >>\n" % (
        len(objects) + 1,
        rows,
        len(objects) + 1,
    )
    return out + table + b"startxref\n%d\n%%%%EOF\n" % len(out)


def _docx(*paragraphs: str) -> bytes:
    made = docx.Document()
    for text in paragraphs:
        first, _, rest = text.partition(" ")
        line = made.add_paragraph()
        line.add_run(first + " ").bold = True
        line.add_run(rest)
    out = io.BytesIO()
    made.save(out)
    return out.getvalue()


def _read(program: Any, name: str, data: bytes) -> Any:
    return program.post("/v1/files/text", files={"file": (name, data)})


def _applied(program: Any, name: str, data: bytes, plans: Any) -> Any:
    sent = plans if isinstance(plans, str) else json.dumps(plans)
    return program.post("/v1/files/apply", files={"file": (name, data)}, data={"plans": sent})


def _planned(program: Any, read: Any) -> list[dict[str, Any]]:
    made = [program.post("/v1/plans", json={"text": one["text"]}).json() for one in read["documents"]]
    return [{"id": one["id"], "plan": plan["plan"]} for one, plan in zip(read["documents"], made, strict=True)]


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("name", ["notes.txt", "notes.MD"])
def test_text(program: Any, name: str, mark: bytes) -> None:
    data = mark + "Ada Brook met Zoë.\r\nBye.\r\n".encode()
    read = _read(program, name, data).json()
    assert read["saveable"] and [one["text"] for one in read["documents"]] == ["Ada Brook met Zoë.\r\nBye.\r\n"]
    answer = _applied(program, name, data, _planned(program, read))
    assert answer.content == mark + b"[PERSON_1] met [PERSON_2].\r\nBye.\r\n"
    assert name.replace(".", "-anonymised.") in answer.headers["content-disposition"]


def test_utf_16_stays(program: Any) -> None:
    data = "\ufeffAda Brook".encode("utf-16-le")
    read = _read(program, "a.txt", data).json()
    assert read["documents"][0]["text"] == "Ada Brook"
    assert _applied(program, "a.txt", data, _planned(program, read)).content.decode("utf-16") == "[PERSON_1]"


def test_a_call_has_turns(program: Any) -> None:
    (document,) = _read(program, "call.txt", CALL.encode()).json()["documents"]
    first = document["turns"][0]
    assert CALL[first["start"] : first["end"]] == "Is Ada Brook there?"
    assert CALL[first["speaker"]["start"] : first["speaker"]["end"]] == "Pam"


def test_records(program: Any) -> None:
    rows = [{"id": "a", "text": "Ada Brook calls."}, {"id": "b", "n": 1.50, "text": "Tom Stone waits."}]
    data = b'{"id": "a", "text": "Ada Brook calls."}\n\n{"id":"b","n":1.50,"text":"Tom Stone waits."}\n'
    read = _read(program, "rows.jsonl", data).json()
    assert [one["id"] for one in read["documents"]] == [row["id"] for row in rows]
    plans = _planned(program, read)
    made = _applied(program, "rows.jsonl", data, plans)
    assert made.content == (
        b'{"id": "a", "text": "[PERSON_1] calls."}\n\n{"id":"b","n":1.50,"text":"[PERSON_1] waits."}\n'
    )
    assert _applied(program, "rows.jsonl", data, plans[:1]).status_code == 422
    assert _applied(program, "rows.jsonl", data, [*plans, {**plans[0], "id": "c"}]).status_code == 422
    assert _applied(program, "rows.jsonl", data, [plans[0], plans[0]]).status_code == 422
    wrong = [{"id": plans[0]["id"], "plan": plans[1]["plan"]}, {"id": plans[1]["id"], "plan": plans[0]["plan"]}]
    assert _applied(program, "rows.jsonl", data, wrong).json()["error"]["code"] == "PlanMismatch"


def test_records_without_ids_of_their_own(program: Any) -> None:
    data = b'{"id": "2", "text": "Ada Brook"}\n{"text": "Tom Stone"}\n'
    read = _read(program, "rows.jsonl", data).json()
    assert [one["id"] for one in read["documents"]] == ["1", "2"]
    made = _applied(program, "rows.jsonl", data, _planned(program, read))
    assert b"Brook" not in made.content and b"Stone" not in made.content


def test_a_word_document_keeps_its_formatting(program: Any) -> None:
    data = _docx("Dear Ada Brook,", "yours, Tom Stone")
    read = _read(program, "letter.docx", data).json()
    text = read["documents"][0]["text"]
    assert "Dear Ada Brook," in text.splitlines()
    made = _applied(program, "letter.docx", data, _planned(program, read))
    again = docx.Document(io.BytesIO(made.content))
    assert [p.text for p in again.paragraphs] == ["Dear [PERSON_1],", "yours, [PERSON_2]"]
    assert again.paragraphs[0].runs[0].bold and not again.paragraphs[0].runs[-1].bold


def test_a_plan_with_corrections_is_carried_out(program: Any) -> None:
    data = _docx("The flat on the hill, Ada Brook")
    (document,) = _read(program, "a.docx", data).json()["documents"]
    at = document["text"].index("hill")
    body = {"text": document["text"], "spans": [{"start": at, "end": at + 4, "label": "LOCATION"}]}
    plan = program.post("/v1/plans", json=body).json()["plan"]
    made = _applied(program, "a.docx", data, [{"id": document["id"], "plan": plan}])
    assert docx.Document(io.BytesIO(made.content)).paragraphs[0].text == "The flat on the [LOCATION_1], Ada Brook"


def test_what_was_carried_out_is_read_back(monkeypatch: pytest.MonkeyPatch) -> None:
    from allonym.files.office import Package

    data = _docx("Dear Ada Brook,")
    (one,) = files.read_file_texts(data, "a.docx", 1000).documents
    plan = anonymize(Document("", one.text)).plan
    assert plan.edits
    assert files.apply_plans_to_file(data, "a.docx", {one.id: plan}) != data
    monkeypatch.setattr(Package, "to_bytes", lambda package: data)
    with pytest.raises(RefusedContent, match="still contains 1 of 1 covered texts"):
        files.apply_plans_to_file(data, "a.docx", {one.id: plan})


def test_a_pdf_is_read_and_written(program: Any) -> None:
    data = _pdf("Ada Brook was here", "and Tom Stone")
    read = _read(program, "page.pdf", data).json()
    assert read["format"] == "pdf" and read["saveable"]
    assert read["documents"][0]["text"] == "Ada Brook was here\n\nand Tom Stone"
    answer = _applied(program, "page.pdf", data, _planned(program, read))
    assert answer.status_code == 200 and answer.content.startswith(b"%PDF")
    again = _read(program, "page.pdf", answer.content).json()["documents"][0]["text"]
    assert "Brook" not in again and "Stone" not in again and "was here" in again


def _encrypted() -> bytes:
    out = io.BytesIO()
    with pikepdf.open(io.BytesIO(_pdf("Ada Brook"))) as pdf:
        pdf.save(out, encryption=pikepdf.Encryption(owner="secret", user="secret"))
    return out.getvalue()


def _zip_bomb() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        archive.writestr("word/document.xml", b" " * (60 << 20))
    return out.getvalue()


def _loop() -> bytes:
    """A page tree that is its own child."""
    return _pdf("x").replace(b"/Kids [5 0 R]", b"/Kids [2 0 R]")


def test_a_text_in_a_legacy_encoding_is_read(program: Any) -> None:
    answer = _read(program, "latin.txt", "Zoë came at noon.".encode("latin-1"))
    assert answer.json()["documents"][0]["text"] == "Zoë came at noon."


REFUSED = [
    ("utf32.txt", "Ada".encode("utf-32"), 422, "UTF-32"),
    ("binary.txt", b"\x00\x01\x02\x03", 422, "not a text file"),
    ("rows.jsonl", b'{"text": "Ada"}\n{"text": \n', 422, "line 2"),
    ("deep.jsonl", b"[" * 100_000, 422, "line 1"),
    ("half.jsonl", b'{"text": "Ada"}\n{"text": "\\ud800"}\n', 422, "record 2"),
    ("a.docx", b"no archive", 422, "not an office file"),
    ("a.docx", b"\xd0\xcf\x11\xe0" + bytes(600), 422, "encrypted or old"),
    ("a.pdf", b"no pdf", 422, "not a PDF"),
    ("a.pdf", b"%PDF-1.4\nbroken", 422, "not a PDF that can be read"),
    ("a.pdf", _pdf(""), 422, "no text"),
    ("a.txt.gz", gzip.compress(b"Ada"), 415, "packed"),
    ("a.exe", b"MZ", 415, "no format"),
    ("a", b"Ada", 415, "without suffix"),
    ("a.parquet", b"PAR1", 415, "as a job"),
]


@check_each_row("name, data, status, says", REFUSED)
def test_refused(program: Any, name: str, data: bytes, status: int, says: str) -> None:
    answer = _read(program, name, data)
    assert answer.status_code == status and says in answer.json()["error"]["message"], answer.text


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.rtf", b"{\\rtf1 Write to ada@example.com.}"),
        ("a.xml", b"<a>Write to ada@example.com.</a>"),
        ("a.ics", b"BEGIN:VEVENT\nSUMMARY:Write to ada@example.com.\nEND:VEVENT\n"),
    ],
)
def test_other_formats_are_read_and_written(name, data):
    (document,) = files.read_file_texts(data, name, 1000).documents
    plan = anonymize(Document(document.id, document.text)).plan
    out = files.apply_plans_to_file(data, name, {document.id: plan})
    assert out == data.replace(b"ada@example.com", b"[EMAIL_ADDRESS_1]")


@pytest.mark.parametrize("make", [_encrypted, _loop])
def test_pdfs_that_hurt(program: Any, make: Any) -> None:
    answer = _read(program, "a.pdf", make())
    assert answer.status_code == 422, answer.text


def test_zip_bomb(program: Any) -> None:
    answer = _read(program, "a.docx", _zip_bomb())
    assert answer.status_code == 422 and "grows" in answer.json()["error"]["message"]


def test_names_are_never_paths(program: Any, site: Any) -> None:
    before = sorted(p for p in site.folder.rglob("*"))
    for name in ("../../etc/passwd.txt", "C:\\..\\secret.txt", "/a/b\x07c.txt", "x" * 500 + ".txt", "é漢.txt"):
        answer = _read(program, name, b"Ada Brook")
        assert answer.status_code == 200, answer.text
        shown = answer.json()["name"]
        assert shown.endswith(".txt") and len(shown) <= 120 and not set(shown) & set("/\\\x07")
    assert sorted(p for p in site.folder.rglob("*")) == before


def test_bodies_that_are_no_forms(program: Any) -> None:
    assert program.post("/v1/files/text", json={"file": "x"}).status_code == 415
    assert program.post("/v1/files/text", data={"file": "x"}).status_code in (415, 422)
    assert program.post("/v1/files/text", files={"other": ("a.txt", b"x")}).status_code == 400
    two = [("file", ("a.txt", b"x")), ("file", ("b.txt", b"y"))]
    assert program.post("/v1/files/text", files=two).status_code == 413
    headers = {"content-type": "multipart/form-data"}
    assert program.post("/v1/files/text", content=b"x", headers=headers).status_code == 400
    for plans in ("", "{", "[1]", '[{"id": "1"}]', '[{"id": "1", "plan": {}}]', "[" * 10_000):
        answer = _applied(program, "a.txt", b"Ada Brook", plans)
        assert answer.status_code == 422, answer.text
    assert program.post("/v1/files/apply", files={"file": ("a.txt", b"Ada")}).status_code == 422


def test_too_large(make_site: Any, tmp_path: Path) -> None:
    with make_site(tmp_path / "data", max_characters=100) as site:
        answer = _read(site.program("reviewer"), "a.txt", b"Ada " * 50)
        assert answer.status_code == 413 and "as a job" in answer.json()["error"]["message"]


class Upload:
    """A form with a file of 100 pieces of 1,000 bytes, and how many of them were taken; or one that never comes."""

    def __init__(self, stalls: bool = False) -> None:
        self.taken = 0
        self._stalls = stalls

    async def __call__(self) -> dict[str, Any]:
        if self._stalls:
            await asyncio.Event().wait()
        self.taken += 1
        head = b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\n'
        body = (head if self.taken == 1 else b"") + b"x" * 1000
        return {"type": "http.request", "body": body, "more_body": self.taken < 100}

    def received(self, seconds: float) -> tuple[str, bytes, str | None]:
        from starlette.requests import Request

        from allonym.server.routes.files import _receive_file

        headers = [(b"content-type", b"multipart/form-data; boundary=b")]
        request = Request({"type": "http", "method": "POST", "headers": headers}, self)
        return asyncio.run(_receive_file(request, seconds))


def test_a_file_is_refused_as_soon_as_it_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    from allonym.server.routes import files as routes

    monkeypatch.setattr(routes, "FORM", replace(routes.FORM, file_bytes=5_000))
    upload = Upload()
    with pytest.raises(RequestError, match="as a job") as caught:
        upload.received(60)
    assert caught.value.status == 413 and upload.taken == 6


def test_who_sends_nothing_keeps_no_turn() -> None:
    with pytest.raises(RequestError, match="did not come within") as caught:
        Upload(stalls=True).received(0.05)
    assert caught.value.status == 408


def test_few_files_are_held_at_once(make_site: Any, tmp_path: Path) -> None:
    with make_site(tmp_path / "data", body_timeout=1.0) as site:
        program, turns, call = site.program("reviewer"), site.services.file_turns, site._main.portal.call
        for _ in range(4):
            call(turns.acquire)
        answer = _read(program, "a.txt", b"Ada")
        assert answer.status_code == 503 and answer.json()["error"]["code"] == "Busy"
        assert _applied(program, "a.txt", b"Ada", []).status_code == 503
        call(turns.release)
        assert _read(program, "a.exe", b"Ada").status_code == 415
        assert _read(program, "a.txt", b"Ada").status_code == 200


def test_only_who_may(site: Any, anybody: Any) -> None:
    assert _read(anybody, "a.txt", b"Ada").status_code == 401
    assert _read(site.program("reviewer", "restore"), "a.txt", b"Ada").status_code == 403
    assert _applied(site.program("reviewer", "detect"), "a.txt", b"Ada", []).status_code == 403


def test_reading_takes_a_bounded_time() -> None:
    rounds = 0

    def stubborn() -> None:
        """Goes on whatever goes wrong, as packages do that read broken files."""
        nonlocal rounds
        while rounds < 3000:
            rounds += 1
            with contextlib.suppress(Exception):
                time.sleep(0.01)

    with pytest.raises(DataError, match="takes longer"), files.limit_resources(seconds=0.05):
        stubborn()
    assert rounds < 3000


def test_reading_takes_a_bounded_memory() -> None:
    with pytest.raises(DataError, match="too much memory"), files.limit_resources(memory_bytes=50 << 20):
        bytearray(500 << 20)
    assert len(bytearray(60 << 20)) == 60 << 20


def test_the_library_side_fits_the_pipeline() -> None:
    data = CALL.encode()
    (text,) = files.read_file_texts(data, "call.txt", 1000).documents
    turns = tuple(Turn(t.start, t.end, (t.speaker.start, t.speaker.end)) for t in text.turns)
    plan = anonymize(Document("", text.text, turns=turns)).plan
    sent = Plan.from_dict(json.loads(plan.to_json()))
    assert files.apply_plans_to_file(data, "call.txt", {text.id: sent}).decode() == anonymize(CALL).text
