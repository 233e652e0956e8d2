"""A source written again: new texts in the documents, every other byte as it was, whole files or none."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from allonym import partfile
from allonym.document import Document
from allonym.errors import DataError, UsageError
from allonym.files import read_documents
from allonym.files.rewrite import UNCOUNTED, rewrite_path
from allonym.partfile import write_file


def same(number: int, document: Document) -> tuple[str, ...]:
    return document.part_texts()


def shouted(number: int, document: Document) -> tuple[str, ...]:
    return tuple(part.upper() for part in document.part_texts())


FILES = {
    "a.jsonl": b'{"id": "1",  "text": "caf\\u00e9 one", "n": 1.0}\n\n{"text":"two","meta":{"company":"Orlo"}}\n',
    "a.json": b' [ {"text": "one"} ,\n {"text": "two"}, {"text": "three"}]\n',
    "a.csv": b'id,text,company\r\n1,"one, ""so""",Orlo\r\n2,two,Bo\r\n',
    "a.tsv": b"text\tcompany\none\tOrlo\n",
    "a.txt": "\ufeffone line\r\nanother é\r\n".encode(),
    "a.html": b"<p class='x'>one <b>two</b></p>\n",
    "a.eml": b"From: a@example.com\nSubject: one\n\nBody two.\n",
    "a.srt": b"1\n00:00:01,000 --> 00:00:02,000\none two\n\n",
}


@pytest.mark.parametrize("name", FILES)
def test_the_same_parts_give_the_same_bytes(tmp_path: Path, name: str) -> None:
    source, target = tmp_path / name, tmp_path / "out" / name
    source.write_bytes(FILES[name])
    count = rewrite_path(source, target, same)
    assert target.read_bytes() == FILES[name]
    assert count == len(list(read_documents(source)))


def test_new_parts_stand_where_the_old_ones_did(tmp_path: Path) -> None:
    source, target = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    source.write_bytes(FILES["a.jsonl"])
    rewrite_path(source, target, shouted, fields=["text"])
    assert target.read_bytes() == (
        b'{"id": "1",  "text": "CAF\\u00c9 ONE", "n": 1.0}\n\n{"text":"TWO","meta":{"company":"Orlo"}}\n'
    )


def test_documents_are_numbered_as_they_are_read(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    (folder / "deep").mkdir(parents=True)
    (folder / "b.txt").write_text("second")
    (folder / "a.jsonl").write_text('{"text": "first"}\n{"text": "of two"}\n')
    (folder / "deep" / "c.csv").write_text("text,company\nthird,Orlo\n")
    seen: list[tuple[int, str, str]] = []

    def parts_of(number: int, document: Document) -> tuple[str, ...]:
        seen.append((number, document.id, document.text))
        return document.part_texts()

    assert rewrite_path(folder, tmp_path / "out", parts_of) == 4
    read = [(i, d.id, d.text) for i, d in enumerate(read_documents(folder))]
    assert seen == read
    assert (tmp_path / "out" / "deep" / "c.csv").read_text() == "text,company\nthird,Orlo\n"


def test_records_and_files_can_be_left_out(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.json").write_bytes(FILES["a.json"])
    (folder / "b.txt").write_text("second")
    (folder / "c.csv").write_text("text,company\none,Orlo\ntwo,Bo\n")
    out = tmp_path / "out"
    assert rewrite_path(folder, out, lambda i, d: None if i in (1, 3, 4) else d.part_texts()) == 3
    assert json.loads((out / "a.json").read_bytes()) == [{"text": "one"}, {"text": "three"}]
    assert (out / "c.csv").read_text() == "text,company\ntwo,Bo\n"
    assert sorted(p.name for p in out.iterdir()) == ["a.json", "c.csv"]


def test_a_first_row_of_data_is_asked_for(tmp_path: Path) -> None:
    source = tmp_path / "a.csv"
    source.write_text("Zorvat of Quillmar,88\n# checked by Nora\nNora,91\n")
    numbers: list[int] = []

    def parts_of(number: int, document: Document) -> tuple[str, ...]:
        numbers.append(number)
        return tuple("x" for _ in document.parts)

    rewrite_path(source, tmp_path / "b.csv", parts_of)
    assert numbers == [0, UNCOUNTED, 1]  # a comment is no record
    assert (tmp_path / "b.csv").read_text() == "x,x\n# x\nx,x\n"


def test_packed_files_stay_packed(tmp_path: Path) -> None:
    source, target = tmp_path / "a.jsonl.gz", tmp_path / "b.jsonl.gz"
    source.write_bytes(gzip.compress(FILES["a.jsonl"]))
    rewrite_path(source, target, same)
    assert gzip.decompress(target.read_bytes()) == FILES["a.jsonl"]
    rewrite_path(source, tmp_path / "b.jsonl", same)
    assert (tmp_path / "b.jsonl").read_bytes() == FILES["a.jsonl"]


def test_parquet(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    table = arrow.table({"text": ["one", "two", "three"], "n": [1, 2, 3]})
    pq.write_table(table, tmp_path / "a.parquet")
    count = rewrite_path(
        tmp_path / "a.parquet", tmp_path / "b.parquet", lambda i, d: None if i == 1 else shouted(i, d), fields=["text"]
    )
    assert count == 2
    assert pq.read_table(tmp_path / "b.parquet").to_pydict() == {"text": ["ONE", "THREE"], "n": [1, 3]}


def _fails(number: int, document: Document) -> tuple[str, ...]:
    if number == 1:
        raise DataError("no")
    return document.part_texts()


@pytest.mark.parametrize(
    ("parts_of", "told"),
    [(_fails, "^no$"), (lambda i, d: (), "a document of 1 parts needs as many, got 0")],
)
def test_nothing_is_written_where_one_fails(tmp_path: Path, parts_of: object, told: str) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    for name in ("a.txt", "b.txt", "c.txt"):
        (folder / name).write_text(name)
    with pytest.raises(DataError, match=told):
        rewrite_path(folder, tmp_path / "out", parts_of)  # type: ignore[arg-type]
    assert not [p for p in (tmp_path / "out").rglob("*") if p.is_file()]


def test_another_number_of_documents_is_an_error(tmp_path: Path) -> None:
    source, target = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    source.write_bytes(FILES["a.jsonl"])
    with pytest.raises(DataError, match="3 documents then, 2 now"):
        rewrite_path(source, target, same, count=3)
    assert [p.name for p in tmp_path.iterdir()] == ["a.jsonl"]
    assert rewrite_path(source, target, same, count=2) == 2


def test_no_file_stays_open_until_the_end(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    folder = tmp_path / "in"
    folder.mkdir()
    for i in range(200):
        (folder / f"{i}.txt").write_text("one")
    was = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (150, was[1]))
    try:
        assert rewrite_path(folder, tmp_path / "out", shouted) == 200
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, was)
    assert {p.read_text() for p in (tmp_path / "out").iterdir()} == {"ONE"}


def test_another_process_in_the_folder_removes_no_file_that_waits_for_the_others(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / "in" / f"{name}.txt").parent.mkdir(exist_ok=True)
        (tmp_path / "in" / f"{name}.txt").write_text(name)

    def write_beside(number: int, document: Document) -> tuple[str, ...]:
        partfile._remove_abandoned_files.cache_clear()
        write_file(tmp_path / "out" / "other.txt", b"x")
        return tuple(document.part_texts())

    assert rewrite_path(tmp_path / "in", tmp_path / "out", write_beside) == 2
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["a.txt", "b.txt", "other.txt"]


def test_a_broken_record_is_an_error(tmp_path: Path) -> None:
    source = tmp_path / "a.jsonl"
    source.write_text('{"text": "one"}\n{"text": \n')
    with pytest.raises(DataError, match=r"a\.jsonl: line 2"):
        rewrite_path(source, tmp_path / "b.jsonl", same)
    assert not (tmp_path / "b.jsonl").exists()


def test_targets_that_exist_and_pipes_are_refused(tmp_path: Path) -> None:
    source, target = tmp_path / "a.txt", tmp_path / "b.txt"
    source.write_text("one")
    target.write_text("here")
    with pytest.raises(UsageError, match="exists; --overwrite"):
        rewrite_path(source, target, shouted)
    assert target.read_text() == "here"
    rewrite_path(source, target, shouted, overwrite=True)
    assert target.read_text() == "ONE"
    for ends in ((source, "-"), ("-", target)):
        with pytest.raises(UsageError, match="not in a pipe"):
            rewrite_path(*ends, same)
    with pytest.raises(UsageError, match="never changed"):
        rewrite_path(source, source, same, overwrite=True)


texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=20)


@given(st.lists(st.tuples(texts, texts), min_size=1, max_size=5))
@settings(max_examples=40, deadline=None)
def test_what_is_written_is_what_is_read(tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str]]) -> None:
    folder = tmp_path_factory.mktemp("rewrite")
    source, target = folder / "a.jsonl", folder / "b.jsonl"
    source.write_text("".join(json.dumps({"text": old, "n": 1}) + "\n" for old, _ in rows))
    rewrite_path(source, target, lambda i, d: (rows[i][1],), fields=["text"])
    written = [json.loads(line) for line in target.read_bytes().split(b"\n") if line]
    assert written == [{"text": new, "n": 1} for _, new in rows]


def test_what_was_changed_is_removed_from_the_other_parts_of_an_office_file(tmp_path: Path) -> None:
    """The text of a part that another part of the package repeats, out of the reach of the reader."""
    docx = pytest.importorskip("docx")
    import zipfile

    plain = docx.Document()
    plain.add_paragraph("Ada Quorby came from Leeds.")
    plain.save(tmp_path / "plain.docx")

    def renamed(number: int, document: Document) -> tuple[str, ...]:
        return tuple(part.replace("Ada Quorby", "Eve Farrow") for part in document.part_texts())

    assert rewrite_path(tmp_path / "plain.docx", tmp_path / "out.docx", renamed) == 1
    assert docx.Document(tmp_path / "out.docx").paragraphs[0].text == "Eve Farrow came from Leeds."
    with zipfile.ZipFile(tmp_path / "plain.docx") as old, zipfile.ZipFile(tmp_path / "twice.docx", "w") as new:
        for name in old.namelist():
            data = old.read(name)
            if name == "word/fontTable.xml":
                data = data.replace(b"<w:fonts", b"<w:fonts name='Quorby'", 1)
            new.writestr(name, data)
    assert rewrite_path(tmp_path / "twice.docx", tmp_path / "twice-out.docx", renamed) == 1
    with zipfile.ZipFile(tmp_path / "twice-out.docx") as written:
        assert b"Quorby" not in written.read("word/fontTable.xml")
