"""Names of uploaded files: cleaned to be shown, never paths."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rows import check_each_row

from allonym.errors import DataError, UnknownNameError
from allonym.server.jobs import names


@check_each_row(
    "sent, shown",
    [
        ("letter.txt", "letter.txt"),
        ("../../etc/passwd", "passwd"),
        ("..\\..\\boot.ini", "boot.ini"),
        ("/etc/shadow.txt", "shadow.txt"),
        ("C:\\Users\\ada\\notes.txt", "notes.txt"),
        (".bashrc", "bashrc"),
        ("...", "file-3"),
        ("", "file-3"),
        ("a\x00b\n\tc.txt", "ab c.txt"),
        ("safe\u202etxt.exe", "safetxt.exe"),
        ("e\u0301t\u00e9.txt", "\u00e9t\u00e9.txt"),
        ("CON.txt", "_CON.txt"),
        ("lpt1.tar.gz", "_lpt1.tar.gz"),
        ('a"b<c>|d?.txt', "a_b_c__d_.txt"),
        ("trailing. . .", "trailing"),
        ("%2e%2e%2fx.txt", "_2e_2e_2fx.txt"),
        ("\ud800.txt", "txt"),
    ],
)
def test_what_is_shown_of_a_name(sent, shown):
    assert names.clean_file_name(sent, 3) == shown


@given(st.text(max_size=300))
def test_no_name_is_a_path_or_hides_anything(sent):
    shown = names.clean_file_name(sent, 1)
    assert 1 <= len(shown) <= names.MOST + 20
    assert not set(shown) & set('/\\<>:"|?*%')
    assert not any(unicodedata.category(c).startswith("C") for c in shown)
    assert shown not in (".", "..") and not shown.startswith((".", " ")) and not shown.endswith((".", " "))
    assert names.clean_file_name(shown, 1) == shown


def test_a_long_name_keeps_its_suffix():
    shown = names.clean_file_name("x" * 500 + ".jsonl.gz", 1)
    assert len(shown) == names.MOST and shown.endswith(".jsonl.gz")


def test_equal_names_are_told_apart():
    taken = set()
    out = []
    for name in ("a.txt", "A.TXT", "a.txt", "\uff41.txt"):
        out.append(names.reserve_unique_name(name, taken))
    assert out == ["a.txt", "A (2).TXT", "a (3).txt", "\uff41 (4).txt"]


def test_files_lie_under_numbers():
    assert names.make_stored_name("Letter to Ada.DOCX", 7) == "file-00007.docx"
    assert names.make_stored_name("x.ndjson.gz", 1) == "file-00001.jsonl.gz"
    assert names.make_stored_name("whatever", 1, "txt") == "file-00001.txt"
    assert names.make_stored_name("packed.gz", 1, "csv") == "file-00001.csv.gz"
    with pytest.raises(DataError, match=r"\.exe"):
        names.make_stored_name("a.exe", 1)
    with pytest.raises(UnknownNameError, match="csv"):
        names.make_stored_name("a", 1, "cvs")


def test_reports_and_messages_show_names_and_no_path(tmp_path):
    from allonym.server.jobs.task import Folder, InputFile, Spec, Task

    sent = (
        InputFile("files", "raw.txt", "file-00001.txt", 1),
        InputFile("anonymised", "safe.txt", "file-00001.txt", 1),
    )
    task = Task(Folder(tmp_path / "ab12"), Spec("evaluate", "raw.txt", "ann", sent, {}))
    told = {"ids": ["file-00001.txt", "file-00001.txt:7", "file-1", 3], "more": ({"file-00001.txt": None},)}
    assert task.replace_stored_file_names(told) == {
        "ids": ["raw.txt", "raw.txt:7", "file-1", 3],
        "more": [{"file-00001.txt": None}],
    }
    place = task.folder.get_input_folder("anonymised")
    assert task.hide_paths_in_message(f"{place}/file-00001.txt: not text") == "safe.txt: not text"
    assert (
        task.hide_paths_in_message(f"{place}: 1 of 2 is missing; see {tmp_path}/ab12/out/x")
        == "anonymised: 1 of 2 is missing; see out/x"
    )
    assert task.hide_paths_in_message("file-00001.txt: line 3") == "raw.txt: line 3"


def test_a_table_names_files_as_they_are_shown(tmp_path):
    import json

    from allonym.server.jobs.task import Folder, InputFile, Spec, Task

    sent = tuple(InputFile("files", f"call {n}.txt", f"file-{n:05}.txt", 1) for n in (1, 2))
    table = InputFile("metadata", "about.csv", "file-00003.csv", 1)
    task = Task(Folder(tmp_path), Spec("swap", "call 1.txt", "ann", (*sent, table), {}))
    place = task.folder.get_input_folder("metadata")
    place.mkdir(parents=True)
    (place / table.stored).write_text("file,company\ncall 2,Quill\ncall 1.txt,Fern\nother.txt,None\n")
    rows = [json.loads(line) for line in task.get_metadata_table().read_text().splitlines()]
    assert [(r["file"], r["company"]) for r in rows] == [("file-00002.txt", "Quill"), ("file-00001.txt", "Fern")]
    (place / table.stored).write_text("file,company\nother.txt,None\n")
    with pytest.raises(DataError, match="no row names any of the 2 files"):
        task.get_metadata_table()


def test_marks_go_before_the_suffix():
    assert names.append_to_stem("a.b.txt", "safe") == "a.b-safe.txt"
    assert names.append_to_stem("rows.csv.gz", "safe") == "rows-safe.csv.gz"
    assert names.append_to_stem("bare", "safe") == "bare-safe"
