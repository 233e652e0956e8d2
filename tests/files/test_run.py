"""Runs: whole files or none, folders, pipes, quarantine, workers, resume."""

import gzip
import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from allonym.errors import DataError, EndpointError, UsageError, VaultError
from allonym.files import anonymize_path, read_documents, tasks
from allonym.files import run as runs
from allonym.files.encoding import SAMPLE
from allonym.files.journal import Journal, journal_path
from allonym.partfile import PartFile
from allonym.replace.cast import Corpus

KEY = b"0123456789abcdef"


def records(count: int) -> bytes:
    lines = [json.dumps({"id": i, "text": f"Record {i}: a{i}@example.com"}) for i in range(count)]
    lines[count // 2] = "{"
    return "\n".join(lines).encode() + b"\n"


def leftovers(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.rglob("*") if "allonym" in p.name)


def test_any_number_of_workers_gives_the_same_bytes(tmp_path, policy):
    (tmp_path / "in.jsonl").write_bytes(records(300))
    made = []
    for workers, size in ((1, 1 << 16), (1, 300), (2, 2000)):
        out = tmp_path / f"{workers}-{size}"
        report = anonymize_path(
            tmp_path / "in.jsonl", out / "o.jsonl", policy, workers=workers, batch_size=size, plans=out / "p.jsonl"
        )
        made.append(({p.name: p.read_bytes() for p in out.iterdir()}, {**report.to_dict(), "seconds": 0}))
    assert made[0] == made[1] == made[2]
    assert set(made[0][0]) == {"o.jsonl", "o.jsonl.quarantine.jsonl", "p.jsonl"}


def test_a_pass_over_a_corpus_numbers_through_whatever_the_workers(tmp_path, policy):
    rows = [{"id": i, "text": f"a{i % 7}@example.com and c{i}@example.com"} for i in range(200)]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    made = []
    for workers, size in ((1, 1 << 16), (1, 300), (2, 2000)):
        out = tmp_path / f"{workers}-{size}.jsonl"
        anonymize_path(tmp_path / "in.jsonl", out, policy, workers=workers, batch_size=size, vault=Corpus(None))
        made.append(out.read_bytes())
    assert made[0] == made[1] == made[2]
    texts = [json.loads(line)["text"] for line in made[0].splitlines()]
    assert texts[0] == "[EMAIL_ADDRESS_1] and [EMAIL_ADDRESS_2]"
    assert texts[7].split()[0] == "[EMAIL_ADDRESS_1]"
    assert len({tag for text in texts for tag in text.split(" and ")}) == 207


def test_a_pass_over_a_corpus_cannot_be_resumed(tmp_path, policy):
    (tmp_path / "in.jsonl").write_bytes(records(3))
    with pytest.raises(UsageError, match="vault"):
        anonymize_path(tmp_path / "in.jsonl", tmp_path / "o.jsonl", policy, resume=True, vault=Corpus(None))


@pytest.mark.parametrize("error", [VaultError("the disk is full"), EndpointError("no answer")])
def test_a_run_whose_vault_or_endpoint_fails_can_go_on(tmp_path, policy, monkeypatch, error):
    (tmp_path / "in").mkdir()
    for name in "abc":
        (tmp_path / "in" / f"{name}.txt").write_text(f"{name}@example.com")
    real = runs.anonymize_task

    def fail_at_second(job, task, findings=None):
        if task.place.item == 1:
            raise error
        return real(job, task, findings)

    with monkeypatch.context() as patch:
        patch.setattr(runs, "anonymize_task", fail_at_second)
        with pytest.raises(type(error)):
            anonymize_path(tmp_path / "in", tmp_path / "out", policy)
    assert [p.name for p in (tmp_path / "out").iterdir()] == ["a.txt"]
    anonymize_path(tmp_path / "in", tmp_path / "out", policy, resume=True)
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["a.txt", "b.txt", "c.txt"]


def test_plans_belong_to_the_documents(run, tmp_path):
    from allonym.plan import Plan, apply

    run("a.jsonl", b'{"id":"x","text":"mail a@example.com"}\n', plans=tmp_path / "p.jsonl")
    row = json.loads((tmp_path / "p.jsonl").read_text())
    assert row["id"] == "x" and "a@example.com" not in json.dumps(row)
    (document,) = read_documents(tmp_path / "a.jsonl")
    assert apply(document, Plan.from_dict(row["plan"])) == "mail [EMAIL_ADDRESS_1]"


def test_failure_leaves_the_old_target_alone(tmp_path, policy, failing, monkeypatch):
    source, target = tmp_path / "a.txt", tmp_path / "b.txt"
    source.write_text("KRACH my secret")
    target.write_text("old")
    with pytest.raises(UsageError, match="exists"):
        anonymize_path(source, target, policy)
    with pytest.raises(DataError, match="KeyError") as caught:
        anonymize_path(source, target, policy, overwrite=True)
    assert "secret" not in str(caught.value)

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(tasks, "anonymize_chunk", interrupted)
    with pytest.raises(KeyboardInterrupt):
        anonymize_path(source, target, policy, overwrite=True)
    assert target.read_text() == "old"


def test_programming_errors_leave_nothing_behind(tmp_path, policy, monkeypatch):
    (tmp_path / "a.txt").write_text("x")
    monkeypatch.setattr(runs.Run, "make_report", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        anonymize_path(tmp_path / "a.txt", tmp_path / "b.txt", policy)
    assert leftovers(tmp_path) == []


def test_target_may_be_a_folder(tmp_path, policy):
    (tmp_path / "a.jsonl").write_bytes(records(4))
    (tmp_path / "out").mkdir()
    anonymize_path(tmp_path / "a.jsonl", tmp_path / "out", policy)
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["a.jsonl", "a.jsonl.quarantine.jsonl"]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.jsonl", "out"]


def test_missing_key_ends_the_run(tmp_path, policy):
    from allonym.policy import Rule

    (tmp_path / "a.jsonl").write_bytes(records(3))
    keyed = policy.with_(rules={}, default=Rule("hash"))
    with pytest.raises(UsageError, match="key"):
        anonymize_path(tmp_path / "a.jsonl", tmp_path / "b.jsonl", keyed)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.jsonl"]
    assert anonymize_path(tmp_path / "a.jsonl", tmp_path / "b.jsonl", keyed, key=KEY).operators == {"hash": 2}


def test_folder(tmp_path, policy, failing):
    source = tmp_path / "in"
    (source / "deep").mkdir(parents=True)
    (source / ".hidden").write_text("x")
    (source / "a.txt").write_text("a@example.com")
    (source / "b.bin").write_text("a@example.com")
    (source / "c.md").write_text("BOOM")
    (source / "deep" / "d.jsonl").write_bytes(b'{"x":"a@example.com"}\n{\n')
    (source / "deep" / "e.txt").write_bytes(b"\xff")
    out = tmp_path / "out"
    report = anonymize_path(source, out, policy)
    written = {p.relative_to(out).as_posix(): p.read_bytes() for p in out.rglob("*") if p.is_file()}
    assert written == {"a.txt": b"[EMAIL_ADDRESS_1]", "deep/d.jsonl": b'{"x":"[EMAIL_ADDRESS_1]"}\n'}
    assert [name for name, _ in report.refused] == ["b.bin", "c.md", "deep/e.txt"]
    assert report.files == 2 and report.quarantined == 1 and report.exit_code == 1
    assert report.documents == 3  # that of a.txt, and two lines
    listed = [json.loads(line) for line in (tmp_path / "out.quarantine.jsonl").read_text().splitlines()]
    assert [(r["file"], r["id"]) for r in listed] == [
        ("b.bin", "b.bin"),
        ("c.md", "c.md"),
        ("deep/d.jsonl", "line 2"),
        ("deep/e.txt", "deep/e.txt"),
    ]
    assert leftovers(tmp_path) == []
    with pytest.raises(UsageError, match="exists"):
        anonymize_path(source, out, policy)


def test_what_does_not_go_together(tmp_path, policy):
    (tmp_path / "a.txt").write_text("x")
    (tmp_path / "d").mkdir()
    for source, target, words in (
        ("none.txt", "b.txt", "no file"),
        ("a.txt", "a.txt", "never changed"),
        ("d", "a.txt", "must be one"),
        ("d", "d/out", "inside"),
    ):
        with pytest.raises(UsageError, match=words):
            anonymize_path(tmp_path / source, tmp_path / target, policy)
    with pytest.raises(UsageError, match="standard output"):
        anonymize_path(tmp_path / "d", "-", policy)
    with pytest.raises(UsageError, match="resume"):
        anonymize_path(tmp_path / "a.txt", "-", policy, resume=True)
    (tmp_path / "a.xyz").write_text("x")
    with pytest.raises(DataError, match="no format"):
        anonymize_path(tmp_path / "a.xyz", tmp_path / "b.xyz", policy)
    assert anonymize_path(tmp_path / "a.xyz", tmp_path / "b.xyz", policy, format="txt").documents == 1


def test_field_that_no_record_has_is_an_error(tmp_path, policy, run):
    with pytest.raises(UsageError, match="txet"):
        run("a.jsonl", b'{"text":"a@example.com"}\n', fields=["txet"])
    assert not (tmp_path / "out-a.jsonl").exists() and leftovers(tmp_path) == []


def test_gzip_in_and_out(tmp_path, policy):
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(records(50)))
    anonymize_path(tmp_path / "a.jsonl.gz", tmp_path / "b.jsonl.gz", policy, batch_size=500)
    anonymize_path(tmp_path / "a.jsonl.gz", tmp_path / "c.jsonl", policy)
    assert gzip.decompress((tmp_path / "b.jsonl.gz").read_bytes()) == (tmp_path / "c.jsonl").read_bytes()
    (tmp_path / "d.jsonl.gz").write_bytes(gzip.compress(records(50))[:-20])
    with pytest.raises(DataError, match="cannot read"):
        anonymize_path(tmp_path / "d.jsonl.gz", tmp_path / "e.jsonl", policy)


def test_pipe(tmp_path, policy, monkeypatch):
    class Standard:
        def __init__(self, data: bytes = b"") -> None:
            self.buffer = io.BytesIO(data)

    class Pipe(io.BytesIO):
        def seekable(self) -> bool:
            return False

        def seek(self, *_):
            raise OSError("no seeking in a pipe")

    for name, data, expected in (
        ("txt", b"a@example.com\n", b"[EMAIL_ADDRESS_1]\n"),
        ("jsonl", b'{"a":"a@example.com"}\n', b'{"a":"[EMAIL_ADDRESS_1]"}\n'),
        ("csv", b"a,b\n1,a@example.com\n", b"a,b\n1,[EMAIL_ADDRESS_1]\n"),
    ):
        into, out = Standard(), Standard()
        into.buffer = Pipe(data)
        monkeypatch.setattr(sys, "stdin", into)
        monkeypatch.setattr(sys, "stdout", out)
        report = anonymize_path("-", "-", policy, format=name)
        assert out.buffer.getvalue() == expected and report.documents == 1


def test_progress_reaches_the_end(tmp_path, policy):
    (tmp_path / "a.jsonl").write_bytes(records(100))
    seen: list[tuple[int, int | None]] = []
    anonymize_path(
        tmp_path / "a.jsonl", tmp_path / "b.jsonl", policy, batch_size=500, progress=lambda *a: seen.append(a)
    )
    size = (tmp_path / "a.jsonl").stat().st_size
    assert seen[-1] == (size, size) and seen == sorted(seen) and len(seen) > 3


@pytest.mark.slow
def test_memory_stays_bounded(tmp_path, policy):
    """No more is read ahead of what is written than tells the encoding, and a batch."""
    (tmp_path / "a.jsonl").write_bytes(records(30_000))
    assert (tmp_path / "a.jsonl").stat().st_size > 5 * SAMPLE
    read: list[int] = []

    class Counting(io.BufferedReader):
        def read(self, size=-1):
            data = super().read(size)
            read.append(len(data))
            return data

    chunks = tasks.get_format("jsonl").chunks
    assert chunks is not None
    with Counting(io.FileIO(tmp_path / "a.jsonl")) as stream:
        next(chunks(stream, tasks.Job(policy), 1000, 0))
    assert sum(read) <= SAMPLE + 1100


def test_read_documents(tmp_path):
    (tmp_path / "a.csv").write_text("id,text,x\n7,hello,y\n")
    (document,) = read_documents(tmp_path / "a.csv", fields=["text"])
    assert document.id == "7" and document.part_texts() == ("hello",)
    with pytest.raises(UsageError):
        list(read_documents(tmp_path / "a.csv", fields=["nope"]))


# Resume

CHILD = """
import os, sys
from allonym.files import run, journal, output, anonymize_path
from allonym.policy import Policy
source, target, where, at, workers = sys.argv[1:]
run.CHECKPOINT = 0
count = 0
def dying(function, after):
    def call(*args, **options):
        global count
        count += 1
        if not after and count == int(at): os._exit(9)
        out = function(*args, **options)
        if after and count == int(at): os._exit(9)
        return out
    return call
if __name__ == "__main__":
    if where == "append": journal.Journal.append = dying(journal.Journal.append, True)
    if where == "tear":
        real = journal.Journal.append
        def tear(self, line, **options):
            global count
            count += 1
            if count == int(at):
                self._stream.write(b'{"at": 0, "offset": 99')
                self._stream.flush()
                os._exit(9)
            real(self, line, **options)
        journal.Journal.append = tear
    if where == "write": output.PartFile.write = dying(output.PartFile.write, True)
    if where == "replace": os.replace = dying(os.replace, False)
    if where == "replaced": os.replace = dying(os.replace, True)
    policy = Policy.load("default").with_(detectors=("rules", "spoken", "lexicon", "speakers"))
    r = anonymize_path(source, target, policy, resume=True, workers=int(workers), batch_size=400, plans=target + ".plans")
    sys.exit(r.exit_code)
"""


def child(tmp_path: Path, source: Path, target: Path, where: str, at: int, workers: int = 1) -> int:
    script = tmp_path / "child.py"
    script.write_text(CHILD)
    paths = os.pathsep.join(p for p in sys.path if p)
    command = [sys.executable, "-W", "ignore", str(script), str(source), str(target), where, str(at), str(workers)]
    return subprocess.run(
        command, env={**os.environ, "PYTHONPATH": paths, "PYTHONWARNINGS": "ignore"}, check=False
    ).returncode


def contents(folder: Path) -> dict[str, bytes]:
    """The files of a folder; a journal has random digits."""
    files = (p for p in folder.rglob("*") if p.is_file() and not p.name.endswith("-journal"))
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in files}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("where", "at"),
    [
        ("append", 1),
        ("append", 4),
        ("tear", 3),
        ("write", 2),
        ("write", 9),
        ("replace", 1),
        ("replaced", 1),
        ("replaced", 2),
    ],
)
def test_run_that_dies_goes_on(tmp_path, where, at):
    source = tmp_path / "in.jsonl"
    source.write_bytes(records(60))
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    assert child(tmp_path, source, whole / "o.jsonl", "", 0) == 1
    assert child(tmp_path, source, cut / "o.jsonl", where, at) == 9
    assert leftovers(cut)
    assert child(tmp_path, source, cut / "o.jsonl", "", 0) == 1
    assert contents(whole) == contents(cut)


@pytest.mark.slow
def test_folder_run_that_dies_goes_on(tmp_path):
    source = tmp_path / "in"
    source.mkdir()
    for i in range(4):
        (source / f"{i}.txt").write_text(f"a{i}@example.com")
        (source / f"{i}.jsonl").write_bytes(records(20))
        (source / f"{i}.bad").write_text("x")
    assert child(tmp_path, source, tmp_path / "whole" / "o", "", 0) == 1
    for at in (2, 9, 4, 5):
        assert child(tmp_path, source, tmp_path / "cut" / "o", "append", at) in (1, 9)
    if leftovers(tmp_path / "cut"):
        assert child(tmp_path, source, tmp_path / "cut" / "o", "", 0) == 1
    assert contents(tmp_path / "whole") == contents(tmp_path / "cut")


@pytest.mark.slow
def test_kill_from_outside_with_workers(tmp_path):
    source = tmp_path / "in.jsonl"
    source.write_bytes(records(4000))
    target = tmp_path / "cut" / "o.jsonl"
    script = tmp_path / "child.py"
    script.write_text(CHILD)
    paths = os.pathsep.join(p for p in sys.path if p)
    command = [sys.executable, "-W", "ignore", str(script), str(source), str(target), "", "0", "2"]
    process = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": paths, "PYTHONWARNINGS": "ignore"})
    journal = journal_path(target)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not (journal.exists() and journal.read_bytes().count(b"\n") > 3):
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert not target.exists()
    assert child(tmp_path, source, target, "", 0, workers=2) == 1
    assert child(tmp_path, source, tmp_path / "whole" / "o.jsonl", "", 0) == 1
    assert contents(tmp_path / "cut") == contents(tmp_path / "whole")


@pytest.fixture
def unfinished(tmp_path, policy, monkeypatch):
    """A run that was stopped after a few checkpoints."""
    (tmp_path / "a.jsonl").write_bytes(records(60))
    monkeypatch.setattr(runs, "CHECKPOINT", 0)
    calls = iter(range(100))

    def stop(*_):
        if next(calls) > 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        anonymize_path(tmp_path / "a.jsonl", tmp_path / "b.jsonl", policy, key=KEY, batch_size=400, progress=stop)
    assert (
        journal_path(tmp_path / "b.jsonl").exists() and len(list(tmp_path.glob(".b.jsonl.[0-9a-f]*.allonym-part"))) == 1
    )
    return tmp_path


def test_stopped_run_goes_on(unfinished, policy):
    args = (unfinished / "a.jsonl", unfinished / "b.jsonl", policy)
    with pytest.raises(UsageError, match="unfinished run"):
        anonymize_path(*args, key=KEY, batch_size=400)
    report = anonymize_path(*args, key=KEY, batch_size=400, resume=True)
    other = anonymize_path(args[0], unfinished / "c.jsonl", policy, key=KEY)
    assert (unfinished / "b.jsonl").read_bytes() == (unfinished / "c.jsonl").read_bytes()
    assert report.documents == other.documents == 60 and report.digest == other.digest
    assert leftovers(unfinished) == [".b.jsonl.allonym-journal"]


def test_another_run_is_not_resumed(unfinished, policy):
    source, target = unfinished / "a.jsonl", unfinished / "b.jsonl"
    same = {"key": KEY, "batch_size": 400, "resume": True}
    for change, word in (
        ({"key": b"another key of 16"}, "key"),
        ({"key": None}, "key"),
        ({"fields": ["text"]}, "fields"),
        ({"batch_size": 401}, "batch_size"),
    ):
        with pytest.raises(UsageError, match=word):
            anonymize_path(source, target, policy, **{**same, **change})
    with pytest.raises(UsageError, match="policy"):
        anonymize_path(source, target, policy.with_(threshold=0.6), **same)
    data = source.read_bytes()
    source.write_bytes(data.replace(b"Record 0", b"Record 1"))
    with pytest.raises(UsageError, match="input"):
        anonymize_path(source, target, policy, **same)
    source.write_bytes(data)
    journal = journal_path(target).read_bytes()
    assert KEY not in journal and b"example.com" not in journal
    (part,) = unfinished.glob(".b.jsonl.[0-9a-f]*.allonym-part")
    part.write_bytes(b"x" + part.read_bytes()[1:])
    with pytest.raises(DataError, match="begin again"):
        anonymize_path(source, target, policy, **same)
    assert anonymize_path(source, target, policy, overwrite=True).documents == 60
    assert leftovers(unfinished) == []


def test_a_run_that_had_ended_is_recognised(tmp_path, policy, monkeypatch):
    source, target = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    source.write_bytes(records(60) + b"{bad\n")
    settings = {"key": KEY, "resume": True, "plans": tmp_path / "plans"}
    first = anonymize_path(source, target, policy, **settings)
    before = {p: (p.read_bytes(), p.stat().st_mtime_ns) for p in tmp_path.iterdir()}
    for _ in range(2):
        again = anonymize_path(source, target, policy, **settings, report=tmp_path / "report")
        assert again.was_complete and not first.was_complete and again.exit_code == first.exit_code == 1
        assert (again.digest, again.documents, again.labels) == (first.digest, first.documents, first.labels)
        assert "already complete" in again.to_text()
    (tmp_path / "report").unlink()  # which was missing
    assert {p: (p.read_bytes(), p.stat().st_mtime_ns) for p in tmp_path.iterdir()} == before
    with pytest.raises(UsageError, match=r"had ended, and cannot be resumed, since these differ: key;"):
        anonymize_path(source, target, policy, **{**settings, "key": b"another key of 16"})
    data = source.read_bytes()
    source.write_bytes(data.replace(b"Record 0", b"Record 1"))  # as long as before
    with pytest.raises(UsageError, match="a source has changed since"):
        anonymize_path(source, target, policy, **settings)
    source.write_bytes(data)
    target.write_bytes(b"")
    with pytest.raises(UsageError, match=r"b\.jsonl has changed since"):
        anonymize_path(source, target, policy, **settings)
    with pytest.raises(UsageError, match="exists"):
        anonymize_path(source, target, policy, key=KEY)
    target.unlink()
    assert anonymize_path(source, target, policy, **settings).digest == first.digest  # what is missing is made again
    assert anonymize_path(source, target, policy, key=KEY, overwrite=True).digest == first.digest
    assert leftovers(tmp_path) == []


def test_two_runs_cannot_write_one_target(tmp_path):
    first = Journal(tmp_path / "a", {}, None, resume=False, overwrite=False)
    with pytest.raises(UsageError, match="another run"):
        Journal(tmp_path / "a", {}, None, resume=True, overwrite=True)
    first.close(remove=True)


def test_part_file_is_invisible_until_it_is_finished(tmp_path):
    part = PartFile(tmp_path / "a")
    part.write(b"xyz")
    assert not (tmp_path / "a").exists()
    part.truncate_to(1)
    part.write(b"w")
    part.finish()
    assert (tmp_path / "a").read_bytes() == b"xw" and part.length == 2


# What stands in the way


def test_no_output_is_a_source_or_another_output(tmp_path, policy):
    (tmp_path / "d" / "in" / "in").mkdir(parents=True)
    for at in ("a.txt", "d/in/a.txt", "d/in/in/a.txt"):
        (tmp_path / at).write_text("x")
    for source, target, more in (
        ("d/in", "d", {}),
        ("a.txt", "b.txt", {"report": tmp_path / "a.txt"}),
        ("a.txt", "b.txt", {"plans": tmp_path / "d" / ".." / "a.txt"}),
        ("a.txt", "b.txt", {"quarantine": tmp_path / "b.txt"}),
        ("a.txt", "b.txt", {"report": tmp_path / "c", "plans": tmp_path / "c"}),
    ):
        with pytest.raises(UsageError, match=r"source of the run|two outputs"):
            anonymize_path(tmp_path / source, tmp_path / target, policy, overwrite=True, **more)
    assert {p.read_text() for p in tmp_path.rglob("*.txt")} == {"x"}
    assert leftovers(tmp_path) == [] and not (tmp_path / "b.txt").exists()


def test_links_and_pipes_of_a_folder_are_told(tmp_path, policy):
    source = tmp_path / "in"
    source.mkdir()
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "r.txt").write_text("a@example.com")
    (source / "file.txt").symlink_to(tmp_path / "real" / "r.txt")
    (source / "folder").symlink_to(tmp_path / "real")
    (source / "lost.txt").symlink_to(tmp_path / "nowhere")
    os.mkfifo(source / "pipe.txt")
    report = anonymize_path(source, tmp_path / "out", policy)
    assert [name for name, _ in report.refused] == ["folder", "lost.txt", "pipe.txt"]
    assert [p.name for p in (tmp_path / "out").iterdir()] == ["file.txt"]


def test_damaged_packed_data_is_told(tmp_path, policy):
    packed = bytearray(gzip.compress(b"".join(b'{"x":"%d"}\n' % (i * 7919) for i in range(3000))))
    packed[10:110] = b"\xff" * 100
    (tmp_path / "a.jsonl.gz").write_bytes(packed)
    with pytest.raises(DataError, match="damaged"):
        anonymize_path(tmp_path / "a.jsonl.gz", tmp_path / "b.jsonl", policy)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.jsonl.gz"]


def test_full_disk_can_be_resumed(tmp_path, policy, monkeypatch):
    from allonym.files import output

    source = tmp_path / "in"
    source.mkdir()
    for name in ("a.txt", "b.txt"):
        (source / name).write_text("x@example.com")

    def full(self, data):
        if self.target.name == "b.txt":
            raise OSError(28, "No space left on device")
        return real(self, data)

    real = output.PartFile.write
    monkeypatch.setattr(output.PartFile, "write", full)
    with pytest.raises(OSError, match="space"):
        anonymize_path(source, tmp_path / "out", policy)
    assert not (tmp_path / "out" / "b.txt").exists()
    monkeypatch.undo()
    assert anonymize_path(source, tmp_path / "out", policy, resume=True).files == 2
    assert (tmp_path / "out" / "b.txt").read_text() == "[EMAIL_ADDRESS_1]"
    assert leftovers(tmp_path) == [".out.allonym-journal"]  # which tells the next call that nothing is left to do


def test_originals_are_for_their_owner_alone(tmp_path, policy):
    (tmp_path / "a.txt").write_text("x@example.com")
    anonymize_path(tmp_path / "a.txt", tmp_path / "b.txt", policy, plans=tmp_path / "p", originals=True)
    assert (tmp_path / "p").stat().st_mode & 0o077 == 0 and "x@example.com" in (tmp_path / "p").read_text()


def test_fields_need_a_format_that_has_them(tmp_path, policy):
    (tmp_path / "a.txt").write_text("x")
    with pytest.raises(UsageError, match="no fields"):
        anonymize_path(tmp_path / "a.txt", tmp_path / "b.txt", policy, fields=["x"])


def test_reading_tells_the_line_of_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr(tasks, "BATCH", 20)
    (tmp_path / "a.jsonl").write_bytes(records(50).replace(b"{\n{", b"{", 1) + b"{\n")
    with pytest.raises(DataError, match=r"line 50: not valid JSON"):
        list(read_documents(tmp_path / "a.jsonl"))


def test_a_file_without_any_record_that_could_be_processed_is_not_written(tmp_path, policy):
    (tmp_path / "a.jsonl").write_text("{bad}\n{worse}\n")
    report = anonymize_path(tmp_path / "a.jsonl", tmp_path / "b.jsonl", policy)
    assert not (tmp_path / "b.jsonl").exists() and report.exit_code == 1 and report.quarantined == 2
    assert report.refused == (("a.jsonl", "none of its records could be processed"),)
    assert len((tmp_path / "b.jsonl.quarantine.jsonl").read_text().splitlines()) == 2


def test_an_unknown_suffix_names_the_formats_and_the_option(tmp_path, policy):
    (tmp_path / "a.foo").write_text("x")
    with pytest.raises(DataError, match=r"\.foo; --format NAME .*: csv, .*, txt") as caught:
        anonymize_path(tmp_path / "a.foo", tmp_path / "b.foo", policy)
    assert caught.value.exit_code == 1 and leftovers(tmp_path) == []
    assert anonymize_path(tmp_path / "a.foo", tmp_path / "b.foo", policy, format="txt").files == 1
