"""The journal of a run: what it says is on the disk, and it is the same run that continues."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from allonym.errors import UsageError
from allonym.files import anonymize_path
from allonym.files.journal import Journal, journal_path

KEY = b"a key only for the tests, 32 byte"
IDENTITY = {"policy": "default", "fields": ["text"]}


def begin(target: Path, key: bytes | None = KEY, **options: bool) -> Journal:
    return Journal(target, IDENTITY, key, **{"resume": False, "overwrite": False, **options})


def break_off(target: Path, *lines: dict[str, object]) -> None:
    """Leave the journal of a run that was interrupted after these lines."""
    journal = begin(target)
    for line in lines:
        journal.append(line)
    journal.close(remove=False)


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Name and size of each file whenever it was made sure that all of it is on the disk."""
    seen: list[tuple[str, int]] = []

    def sync(number: int) -> None:
        seen.append((Path(os.readlink(f"/proc/self/fd/{number}")).name, os.fstat(number).st_size))

    monkeypatch.setattr("os.fsync", sync)
    return seen


needs_proc = pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="open files are found in /proc")


@needs_proc
def test_each_line_is_on_the_disk_before_the_run_goes_on(tmp_path, synced):
    journal = begin(tmp_path / "out.txt")
    for count in range(1, 4):
        assert synced[-1] == (journal.path.name, journal.path.stat().st_size) and len(synced) == count
        journal.append({"at": count})
    journal.close(remove=True)


@needs_proc
def test_what_a_line_describes_is_on_the_disk_before_the_line(tmp_path, synced, policy, monkeypatch):
    monkeypatch.setattr("allonym.files.run.CHECKPOINT", 0)
    source, target = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_text('{"text": "Mail ada@example.com"}\n' * 900, encoding="utf-8")
    anonymize_path(source, target, policy, batch_size=4096)
    name = journal_path(target).name
    lines = [i for i, (file, _) in enumerate(synced) if file == name][1:]  # the first says what the run is
    assert len(lines) > 2
    assert all(synced[i - 1][0].endswith(".allonym-part") for i in lines)
    assert (synced[lines[-1] - 1][0], target.stat().st_size) in synced


def test_a_run_continues_after_its_last_whole_line(tmp_path):
    target = tmp_path / "out"
    break_off(target, {"done": "a"}, {"at": 1})
    whole = journal_path(target).read_bytes()
    for rest in (b'{"at": 2', b'{"at": 2}', b"[]\n", b"{]\n"):
        journal_path(target).write_bytes(whole + rest)
        journal = begin(target, resume=True)
        assert journal.resumed and [line["done"] for line in journal.file_lines] == ["a"]
        assert journal.checkpoint == {"at": 1}
        assert journal.path.read_bytes() == whole
        journal.append({"at": 3})
        journal.close(remove=False)
        assert journal_path(target).read_bytes() == whole + b'{"at":3}\n'


def test_only_the_same_run_continues(tmp_path):
    target = tmp_path / "out"
    break_off(target, {"at": 1})
    for key in (None, b"another key for the tests, 32 by."):
        with pytest.raises(UsageError, match="these differ: key;"):
            begin(target, key, resume=True)
    with pytest.raises(UsageError, match="these differ: fields;"):
        Journal(target, {**IDENTITY, "fields": []}, KEY, resume=True, overwrite=False)
    with pytest.raises(UsageError, match="an unfinished run lies at"):
        begin(target)
    journal = begin(target, overwrite=True)
    assert not journal.resumed and not journal.checkpoint
    journal.close(remove=True)
    assert not journal.path.exists()
    assert KEY not in b"".join(path.read_bytes() for path in tmp_path.iterdir())


def test_nobody_else_writes_the_target_meanwhile(tmp_path):
    journal = begin(tmp_path / "out")
    for options in ({"resume": True}, {"overwrite": True}):
        with pytest.raises(UsageError, match="another run is writing"):
            begin(tmp_path / "out", **options)
    journal.close(remove=False)
    begin(tmp_path / "out", resume=True).close(remove=True)


def test_a_full_disk_leaves_no_empty_journal(tmp_path, monkeypatch):
    def fail(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(OSError, match="space"):
        begin(tmp_path / "out")
    assert list(tmp_path.iterdir()) == []
    monkeypatch.undo()
    journal = begin(tmp_path / "out")
    whole = journal.path.read_bytes()
    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(OSError, match="space"):
        journal.append({"at": 1})
    assert journal.path.read_bytes() == whole  # no half of a line
    journal.close(remove=True)


def test_the_next_run_removes_the_part_files_that_the_journal_names(tmp_path):
    target = tmp_path / "out"
    journal = begin(target)
    for name in ("first", "other"):
        (tmp_path / f".{name}.part").write_text("x")
        journal.announce_part(tmp_path / name, tmp_path / f".{name}.part")
    journal.close(remove=False)
    journal = begin(target, resume=True)
    assert journal.find_part(tmp_path / "first") == tmp_path / ".first.part" and not journal.find_part(target)
    journal.remove_parts(tmp_path / ".first.part")
    assert {p.name for p in tmp_path.iterdir()} == {".first.part", journal.path.name}
    journal.close(remove=False)
    begin(target, overwrite=True).close(remove=True)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("options", [{"resume": True}, {"overwrite": True}, {}])
def test_a_part_file_that_no_journal_names_goes_when_its_target_is_written(tmp_path, policy, options):
    source, target = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_text('{"text": "Mail ada@example.com"}\n{', encoding="utf-8")
    token = "0123456789abcdef01234567"
    names = ("out.jsonl", "out.jsonl.quarantine.jsonl", "plans.jsonl", "other.jsonl")
    parts = [tmp_path / f".{name}.{token}.allonym-part" for name in names]
    for part in parts:
        part.write_text("the machine lost power before the journal was on the disk", encoding="utf-8")
    anonymize_path(source, target, policy, plans=tmp_path / "plans.jsonl", **options)
    assert [part.exists() for part in parts] == [False, False, False, True]
    assert target.exists()


@needs_proc
def test_outputs_have_their_names_on_the_disk_before_the_plans_have_theirs(tmp_path, synced, policy, monkeypatch):
    (tmp_path / "in" / "deep").mkdir(parents=True)
    for name in ("a.txt", "deep/b.txt"):
        (tmp_path / "in" / name).write_text("Mail ada@example.com", encoding="utf-8")
    real = os.replace

    def replace(part, target):
        synced.append((f"name of {Path(target).name}", 0))
        real(part, target)

    monkeypatch.setattr("os.replace", replace)
    anonymize_path(tmp_path / "in", tmp_path / "out", policy, plans=tmp_path / "plans.jsonl", resume=True)
    events = [name for name, _ in synced]
    named = events.index("name of plans.jsonl")
    for file, folder in (("a.txt", "out"), ("b.txt", "deep")):
        assert events.index(f"name of {file}") < events.index(folder) < named
