"""Files come back in their own formats from the vault alone, and from a file of plans."""

from __future__ import annotations

import gzip
from datetime import date, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from docx import Document as Word
from openpyxl import Workbook, load_workbook

from allonym.errors import UsageError
from allonym.files import anonymize_path, read_documents
from allonym.files.restoring import is_plain_text_name, list_files_to_restore, read_plans, restore_files
from allonym.policy import Policy, Rule, TermList
from allonym.vault import Vault

SECRET = b"a secret of the tests, long enough"
TERMS = (
    TermList("PERSON", ("Ada Brook", "Tom Ellery", "José Ibarra", "Brook")),
    TermList("CITY", ("Leeds", "Gdynia")),
    TermList("ORGANIZATION", ("Ashdown Marine plc",)),
)
ROWS = [
    ("Ada Brook", "Ms Brook left Leeds for Gdynia; call +44 20 7946 0958."),
    ("Tom Ellery", "Write to tom.ellery@example.com, said Ada Brook of Ashdown Marine plc."),
]
TEXTS = {
    "a.csv": 'name,note\r\n"Ada Brook","Ms Brook left Leeds, so ""what"""\r\nTom Ellery,"in Gdynia, ask Ada Brook"\r\nBrook,Gdynia\r\n',
    "a.tsv": "name\tnote\nAda Brook\tleft Leeds\n",
    "a.json": ' [ {"name": "Ada Brook", "note": "left Leeds"} ,\n {"name": "Tom Ellery", "n": 1.0}]\n',
    "a.jsonl": '{"name": "Ada Brook",  "note": "left Leeds"}\n\n{"note":"Tom Ellery: \\"tom@example.com\\""}\n',
    "b.html": "<p class='ada-brook' id='ada_brook'>Ada Brook, <a href='#ada-brook'>Leeds</a></p>\n",
    "a.html": "<p class='x'><b>Ada Brook</b> &amp; Tom Ellery, Leeds</p>\n",
    "a.eml": "From: Ada Brook <ada.brook@example.com>\nSubject: Leeds\n\nTom Ellery is in Gdynia.\n",
    "b.eml": "MIME-Version: 1.0\nContent-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: 8bit\n\nJosé Ibarra\n",
    "a.srt": "1\n00:00:01,000 --> 00:00:02,000\nAda Brook: Leeds!\n\n",
    "deep/a.txt": "\ufeffAda Brook,\r\nLeeds. Ms Brook knows.\r\n",
}


def make_policy(preset: str) -> Policy:
    return Policy.load(preset).with_(detectors=("rules", "lexicon"), dictionary=TERMS)


def write_folder(folder: Path) -> None:
    (folder / "deep").mkdir(parents=True)
    for name, text in TEXTS.items():
        (folder / name).write_bytes(text.encode())
    (folder / "b.csv.gz").write_bytes(gzip.compress(TEXTS["a.csv"].encode()))
    pq.write_table(pa.table({"name": [r[0] for r in ROWS], "note": [r[1] for r in ROWS]}), folder / "a.parquet")
    word = Word()
    for row in ROWS:
        word.add_paragraph(row[0]).add_run(": " + row[1]).bold = True
    word.save(str(folder / "a.docx"))
    book = Workbook()
    for row in [("name", "note"), *ROWS]:
        book.active.append(row)
    book.save(folder / "a.xlsx")


def read_texts(path: Path) -> list[str]:
    return [document.text for document in read_documents(path)]


@pytest.mark.parametrize("preset", ["reversible", "pseudonyms"])
def test_a_folder_of_all_formats_comes_back_from_the_vault(tmp_path: Path, preset: str) -> None:
    source, safe, back = (tmp_path / name for name in ("in", "safe", "back"))
    write_folder(source)
    with Vault.create(tmp_path / "v.vault", SECRET) as vault:
        anonymize_path(source, safe, make_policy(preset), vault=vault, scope="s")
        files, _ = list_files_to_restore(safe, back)
        progress: list[tuple[int, int]] = []
        report = restore_files(files, vault=vault, scope="s", actor="ada", advance=lambda *at: progress.append(at))
        (entry,) = (e for e in vault.audit() if e.action == "restore")
    assert report.files == len(files) == 14 and progress[-1] == (14, 14)
    assert dict(entry.counts)["files"] == 14
    wrong = []
    for path in sorted(p for p in source.rglob("*") if p.is_file()):
        name = path.relative_to(source)
        assert "Ada Brook" not in "".join(read_texts(safe / name)), name
        if read_texts(back / name) != read_texts(path):
            wrong.append(str(name))
        elif str(name) in TEXTS and (back / name).read_bytes() != path.read_bytes():
            wrong.append(f"{name}: bytes")
    assert wrong == []


def test_a_file_of_plans_brings_each_record_back(tmp_path: Path) -> None:
    source, safe, back, plans = (tmp_path / name for name in ("a.csv", "safe.csv", "back.csv", "plans.jsonl"))
    source.write_bytes(TEXTS["a.csv"].encode())
    anonymize_path(source, safe, make_policy("reversible"), fields=["name", "note"], plans=plans, originals=True)
    files, _ = list_files_to_restore(safe, back)
    report = restore_files(files, plans=read_plans(plans), fields=["name", "note"])
    assert back.read_bytes() == source.read_bytes() and report.unknown == 0
    back.unlink()
    report = restore_files(files, plans=read_plans(plans)[:2], fields=["name", "note"])
    assert b"ask Ada Brook" in back.read_bytes() and b"\nBrook," not in back.read_bytes() and report.notes


def test_a_plan_knows_the_styles_of_a_page_again(tmp_path: Path) -> None:
    source, safe, back, plans = (tmp_path / name for name in ("a.html", "safe.html", "back.html", "plans.jsonl"))
    source.write_text("<style>#ada-brook { color: red }</style><p id='ada-brook' title='x'>Ada Brook</p>")
    anonymize_path(source, safe, make_policy("default"), plans=plans, originals=True)
    report = restore_files([(safe, back)], plans=read_plans(plans))
    assert back.read_bytes() == source.read_bytes() and (report.restored, report.unknown, report.notes) == (3, 0, ())


def test_ids_of_a_page_are_valid_whatever_the_style_of_tags_and_come_back(tmp_path: Path) -> None:
    source, safe, back, plans = (tmp_path / name for name in ("a.html", "safe.html", "back.html", "plans.jsonl"))
    source.write_text(
        "<style>.ada-brook { color: red }</style><p id='ada-brook' class='x ada-brook'>Ada Brook</p><a href='#ada-brook'>"
    )
    anonymize_path(source, safe, make_policy("reversible").with_(style="<{label} {n}>"), plans=plans, originals=True)
    assert safe.read_text() == (
        r"<style>.\<PERSON_1\> { color: red }</style><p id='&lt;PERSON_1&gt;' class='x &lt;PERSON_1&gt;'>"
        "&lt;PERSON 1&gt;</p><a href='#&lt;PERSON_1&gt;'>"
    )
    report = restore_files([(safe, back)], plans=read_plans(plans))
    assert back.read_bytes() == source.read_bytes() and (report.restored, report.unknown, report.notes) == (5, 0, ())


def test_a_rewritten_table_comes_back_where_it_can(tmp_path: Path) -> None:
    source, safe, back = (tmp_path / name for name in ("a.csv", "safe.csv", "back.csv"))
    source.write_bytes(b"name,note\nAda Brook,left Leeds\n")
    with Vault.create(tmp_path / "v.vault", SECRET) as vault:
        anonymize_path(source, safe, make_policy("reversible"), vault=vault)
        safe.write_bytes(
            safe.read_bytes().replace(b"left", b"has, they say, left".replace(b",", b"")) + b"<PERSON 9>,x\n"
        )
        report = restore_files(list_files_to_restore(safe, back)[0], vault=vault)
    assert back.read_bytes() == b"name,note\nAda Brook,has they say left Leeds\n<PERSON 9>,x\n"
    assert report.unknown == 1


@pytest.mark.parametrize("preset", ["reversible", "pseudonyms"])
def test_numbers_and_dates_come_back_as_numbers_and_dates(tmp_path: Path, preset: str) -> None:
    """A text that looks like a number stays a text."""
    folder, safe, back = (tmp_path / name for name in ("in", "safe", "back"))
    folder.mkdir()
    (folder / "a.json").write_text('[{"account": 12345678, "phone": "12345678", "name": "Ada Brook", "x": 1.50}]\n')
    book = Workbook()
    book.active.append(("name", "born", "seen", "account", "code"))
    for day in range(1, 9):
        moment = datetime(2021, day, 3, 10, 30, 15)
        book.active.append(("Ada Brook", date(1980, 2, day), moment, 12345670 + day, f"1234567{day}"))
    book.save(folder / "a.xlsx")
    policy = make_policy(preset).with_(
        columns={"account": "ACCOUNT_NUMBER", "code": "GENERIC_ID", "phone": "GENERIC_ID"}
    )
    with Vault.create(tmp_path / "v.vault", SECRET) as vault:
        anonymize_path(folder, safe, policy, vault=vault)
        restore_files(list_files_to_restore(safe, back)[0], vault=vault)
    assert (back / "a.json").read_bytes() == (folder / "a.json").read_bytes() != (safe / "a.json").read_bytes()
    rows, safe_rows, new_rows = (list(load_workbook(f / "a.xlsx").active.values) for f in (folder, safe, back))
    assert new_rows == rows and not {12345671, date(1980, 2, 1)} & {value for row in safe_rows for value in row}


def test_pictures_and_unknown_files_are_skipped(tmp_path: Path) -> None:
    folder = tmp_path / "safe"
    folder.mkdir()
    for name in ("b.pdf", "c.png", "d.bin"):
        (folder / name).write_bytes(b"x\n")
    with pytest.raises(UsageError, match=r"has only: b\.pdf, c\.png, d\.bin"):
        list_files_to_restore(folder, tmp_path / "back")
    (folder / "a.csv").write_bytes(b"x\n")
    files, skipped = list_files_to_restore(folder, tmp_path / "back")
    assert files == [(folder / "a.csv", tmp_path / "back" / "a.csv")] and skipped == ["b.pdf", "c.png", "d.bin"]
    assert is_plain_text_name("answer") and is_plain_text_name("a.md")
    assert not is_plain_text_name("a.csv") and not is_plain_text_name("answer", "csv")


def test_documents_without_text_are_written_too(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"")
    restore_files([(tmp_path / "a.txt", tmp_path / "b.txt")], key="correct horse battery")
    assert (tmp_path / "b.txt").read_bytes() == b""


def test_records_that_became_the_same_text_are_told_apart_by_their_order_or_not_at_all(tmp_path: Path) -> None:
    source, safe, back, plans = (tmp_path / name for name in ("a.jsonl", "safe.jsonl", "back.jsonl", "plans.jsonl"))
    source.write_text(
        "".join(f'{{"note": "{note}"}}\n' for note in ("Ada Brook left", "Tom Ellery left", "Leeds is far")),
        encoding="utf-8",
    )
    anonymize_path(source, safe, make_policy("default"), fields=["note"], plans=plans, originals=True)
    rows = safe.read_text(encoding="utf-8").splitlines()
    assert rows[0] == rows[1]
    report = restore_files([(safe, back)], plans=read_plans(plans), fields=["note"])
    assert back.read_text(encoding="utf-8") == source.read_text(encoding="utf-8")
    assert (report.unknown, report.notes) == (0, ())
    safe.write_text(f"{rows[2]}\n{rows[1]}\n", encoding="utf-8")
    report = restore_files([(safe, back)], plans=read_plans(plans), fields=["note"])
    restored = back.read_text(encoding="utf-8").splitlines()
    assert restored == ['{"note": "Leeds is far"}', rows[1]]  # nobody's name rather than another's
    assert report.unknown == 1 and "several plans made exactly the text" in report.notes[0]


def test_a_new_record_moves_no_originals_to_another(tmp_path: Path) -> None:
    source, safe, back, plans = (tmp_path / name for name in ("a.csv", "safe.csv", "back.csv", "plans.jsonl"))
    source.write_text("note\nAda Brook left\nTim Green left\n", encoding="utf-8")
    anonymize_path(source, safe, Policy.load("default").with_(default=Rule("mask")), plans=plans, originals=True)
    head, *rows = safe.read_text(encoding="utf-8").splitlines()
    assert rows[0] == rows[1]
    rows.insert(0, "Nothing new")
    safe.write_text("\n".join([head, *rows, ""]), encoding="utf-8")
    report = restore_files([(safe, back)], plans=read_plans(plans))
    assert back.read_text(encoding="utf-8").splitlines() == [head, *rows]
    assert report.unknown == 2 and any("several plans made exactly" in note for note in report.notes)


def test_text_files_that_became_the_same_are_told_apart_only_if_all_are_there(tmp_path: Path) -> None:
    texts = {"a.txt": "Ada Brook left", "b.txt": "Tim Green left"}
    folder, safe, plans = tmp_path / "raw", tmp_path / "safe", tmp_path / "plans.jsonl"
    folder.mkdir()
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    anonymize_path(folder, safe, Policy.load("default").with_(default=Rule("mask")), plans=plans, originals=True)
    for names, restored in ((["a.txt", "b.txt"], list(texts.values())), (["b.txt"], ["*** ***** left"])):
        pairs = [(safe / name, tmp_path / f"back-{len(names)}-{name}") for name in names]
        restore_files(pairs, plans=read_plans(plans))
        assert [target.read_text(encoding="utf-8") for _, target in pairs] == restored


@pytest.mark.parametrize("treatment", ["keep", "GENERIC_ID"])
def test_plans_restore_tables_whose_ids_are_covered_or_kept(tmp_path, treatment):
    source, safe, back, plans = (tmp_path / name for name in ("a.csv", "safe.csv", "back.csv", "plans.jsonl"))
    source.write_text("id,Comment\nP-0147,mail a@example.com\nP-0148,mail b@example.com and c@example.com\n")
    policy = Policy.load("default").with_(detectors=("rules",), columns={"id": "keep"} if treatment == "keep" else {})
    anonymize_path(source, safe, policy, plans=plans, originals=True)
    assert ("P-0147" in safe.read_text()) == (treatment == "keep")
    result = restore_files([(safe, back)], plans=read_plans(plans))
    assert back.read_bytes() == source.read_bytes() and not result.notes


@pytest.mark.parametrize("operator", ["tag", "pseudonym"])
@pytest.mark.parametrize("labels", [("PERSON",), ("PERSON", "AGE", "STREET_ADDRESS")])
def test_plans_restore_keys_and_numbers(tmp_path, operator, labels):
    source, safe, back, plans = (tmp_path / name for name in ("a.json", "safe.json", "back.json", "plans.jsonl"))
    source.write_text(
        '{"Gareth Price": {"age": "44"}, "street": "5 Leeds Road", "Priya Raman": "Priya Raman is ill", "Nkechi": "Nkechi is late", "lat": 51.5}'
    )
    policy = Policy.only(labels).with_(dictionary=TERMS, default=Rule(operator))
    anonymize_path(source, safe, policy, plans=plans, originals=True, key="k" * 32)
    assert "Gareth" not in safe.read_text() and 'Raman":' not in safe.read_text()
    result = restore_files([(safe, back)], plans=read_plans(plans), key="k" * 32)
    assert back.read_bytes() == source.read_bytes() and not result.notes
