"""Files are written in one way: under names that nobody can guess, never through a link, complete or not at all."""

from __future__ import annotations

import errno
import os
import signal
import socket
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from allonym import partfile, scratch
from allonym.errors import UsageError
from allonym.files import anonymize_path
from allonym.files.journal import journal_path
from allonym.partfile import PartFile, check_plain_target, open_part_file, remove_part_files, write_file
from allonym.scratch import open_scratch_folder


def make_hostile(kind: str, target: Path, victim: Path) -> None:
    """Put something other than a plain file where an output goes."""
    if kind == "link":
        target.symlink_to(victim)
    elif kind == "link to nothing":
        target.symlink_to(victim.with_name("nothing"))
    elif kind == "link to itself":
        target.symlink_to(target)
    elif kind == "link to a folder":
        target.symlink_to(victim.parent)
    elif kind == "link to a device":
        target.symlink_to(os.devnull)
    elif kind == "pipe":
        os.mkfifo(target)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as opened:
            opened.bind(os.path.relpath(target))
    elif kind == "folder":
        target.mkdir()


HOSTILE = (
    *("link", "link to nothing", "link to itself", "link to a folder", "link to a device"),
    *("pipe", "socket", "folder"),
)


@pytest.fixture
def victim(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # the path of a socket is short
    (tmp_path / "victims").mkdir()
    file = tmp_path / "victims" / "victim"
    file.write_text("as before")
    return file


@pytest.mark.parametrize("kind", HOSTILE)
def test_what_is_no_plain_file_is_never_written(tmp_path, policy, victim, kind):
    (tmp_path / "in.txt").write_text("a@example.com")
    target = tmp_path / "out.txt"
    make_hostile(kind, target, victim)
    before = os.lstat(target)
    with pytest.raises(UsageError):
        write_file(target, b"x")
    for where in ("target", "report", "plans", "quarantine"):
        files = {where: target} if where != "target" else {}
        out = target if where == "target" and kind not in ("folder", "link to a folder") else tmp_path / "plain.txt"
        if where == "target" and out != target:
            continue  # such a target takes a file of the source's name
        with pytest.raises(UsageError):
            anonymize_path(tmp_path / "in.txt", out, policy, overwrite=True, **files)
    after = os.lstat(target)
    assert (after.st_mode, after.st_ino) == (before.st_mode, before.st_ino)
    assert victim.read_text() == "as before" and sorted(p.name for p in victim.parent.iterdir()) == ["victim"]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in.txt", "out.txt", "victims"]


def test_a_device_is_refused_before_it_is_opened():
    with pytest.raises(UsageError, match="is a device"):
        check_plain_target(Path(os.devnull))


@pytest.mark.parametrize("kind", ["link", "link to nothing", "pipe", "socket", "folder", "second name"])
def test_what_is_no_journal_of_ours_is_never_written(tmp_path, policy, victim, kind):
    (tmp_path / "in.txt").write_text("a@example.com")
    journal = journal_path(tmp_path / "out.txt")
    if kind == "second name":
        os.link(victim, journal)
    else:
        make_hostile(kind, journal, victim)
    with pytest.raises(UsageError):
        anonymize_path(tmp_path / "in.txt", tmp_path / "out.txt", policy, overwrite=True)
    assert victim.read_text() == "as before" and not (tmp_path / "out.txt").exists()


def test_a_link_at_the_part_files_name_does_not_lead_elsewhere(tmp_path, victim, monkeypatch):
    """Even somebody who guesses the name."""
    monkeypatch.setattr(partfile.os, "urandom", lambda count: b"\0" * count)
    (tmp_path / f".out.{'00' * 12}.allonym-new").symlink_to(victim)
    with pytest.raises(FileExistsError):
        write_file(tmp_path / "out", b"x")
    assert victim.read_text() == "as before" and not (tmp_path / "out").exists()


def test_a_target_that_becomes_a_link_meanwhile_is_refused(tmp_path, victim):
    part = PartFile(tmp_path / "out")
    part.write(b"x")
    (tmp_path / "out").symlink_to(victim)
    with pytest.raises(UsageError, match="a link"):
        part.finish()
    part.close(remove=True)
    assert victim.read_text() == "as before"


def test_a_link_to_another_folder_below_the_target_is_refused(tmp_path, policy, victim):
    (tmp_path / "in" / "sub").mkdir(parents=True)
    (tmp_path / "in" / "sub" / "victim.txt").write_text("a@example.com")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "sub").symlink_to(victim.parent)
    with pytest.raises(UsageError, match="a link to another folder"):
        anonymize_path(tmp_path / "in", tmp_path / "out", policy, overwrite=True)
    assert [p.name for p in victim.parent.iterdir()] == ["victim"]


def test_names_cannot_be_guessed_and_only_the_owner_reads_unfinished_files(tmp_path):
    parts = [PartFile(tmp_path / "out") for _ in range(2)]
    assert parts[0].path != parts[1].path and {p.path.parent for p in parts} == {tmp_path}
    assert all(stat.S_IMODE(p.path.stat().st_mode) == 0o600 for p in parts)
    mask = os.umask(0o027)
    try:
        parts[0].finish()
    finally:
        os.umask(mask)
    assert stat.S_IMODE((tmp_path / "out").stat().st_mode) == 0o640
    parts[1].private = True
    parts[1].finish()
    assert stat.S_IMODE((tmp_path / "out").stat().st_mode) == 0o600


def test_long_names_have_part_files_too(tmp_path):
    for name in ("a" * 255, "ü" * 127):
        write_file(tmp_path / name, b"x")
        assert (tmp_path / name).read_bytes() == b"x"


def test_a_new_file_replaces_none(tmp_path):
    write_file(tmp_path / "a", b"1", replaces=False)
    with pytest.raises(FileExistsError):
        write_file(tmp_path / "a", b"2", replaces=False)
    assert (tmp_path / "a").read_bytes() == b"1" and [p.name for p in tmp_path.iterdir()] == ["a"]


def test_the_next_process_removes_what_a_killed_one_has_left(tmp_path):
    code = (
        "import os, sys; from pathlib import Path; from allonym.partfile import PartFile; "
        "part = PartFile(Path(sys.argv[1])); part.write(b'x'); part.stream.flush(); os.kill(os.getpid(), 9)"
    )
    child = subprocess.run([sys.executable, "-c", code, str(tmp_path / "a")], check=False)
    assert child.returncode == -signal.SIGKILL and len(list(tmp_path.iterdir())) == 1
    used = PartFile(tmp_path / "b")  # whose process is alive
    partfile._remove_abandoned_files.cache_clear()
    write_file(tmp_path / "c", b"x")
    assert {p.name for p in tmp_path.iterdir()} == {"c", used.path.name}
    used.close(remove=True)


def test_a_file_is_locked_until_it_has_its_name(tmp_path, monkeypatch):
    rename = os.replace

    def write_another_file_first(source, target):
        if Path(target).name == "a":
            partfile._remove_abandoned_files.cache_clear()
            write_file(tmp_path / "b", b"2")
        rename(source, target)

    monkeypatch.setattr(os, "replace", write_another_file_first)
    write_file(tmp_path / "a", b"1")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]


def test_where_there_are_no_locks_the_files_of_others_stay(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(errno.ENOLCK, "no locks available")

    monkeypatch.setattr("fcntl.flock", refuse)
    with open_scratch_folder(tmp_path) as folder, open_part_file(tmp_path / "a") as part:
        for clear in (partfile._remove_abandoned_files, scratch._remove_abandoned_folders):
            clear.cache_clear()
        write_file(tmp_path / "b", b"2")
        with open_scratch_folder(tmp_path):
            assert part.path.exists() and folder.exists()
        part.write(b"1")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]


def test_part_files_of_other_runs_stay(tmp_path):
    long = "interview with a participant of the second wave in "
    announced: list[Path] = []
    interrupted = PartFile(tmp_path / f"{long}1.txt", announce=announced.append)
    interrupted.close(remove=False)
    lost = PartFile(tmp_path / "a.txt", announce=announced.append)
    lost.close(remove=False)
    with closing(PartFile(tmp_path / "b.txt", announce=announced.append).stream):
        remove_part_files([tmp_path / f"{long}2.txt", tmp_path / "a.txt", tmp_path / "b.txt"])
    assert [path.exists() for path in announced] == [True, False, True]
