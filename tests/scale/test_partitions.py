"""Partitions: put together they are the bytes of an undivided run, whoever did them, however often."""

from __future__ import annotations

import random

import pytest
from tests.scale.conftest import BATCH, PARTITION, records, told, tree

from allonym.errors import AllonymError, DataError, UsageError
from allonym.files import anonymize_path
from allonym.files.items import list_items
from allonym.files.journal import journal_path
from allonym.files.record import AnonymizedChunk, Tally
from allonym.scale import anonymize_on_ray, files
from allonym.scale.partitions import (
    MANY,
    Schedule,
    append_treated_batch,
    choose_slice_size,
    iterate_group_steps,
    read_treated_batches,
)

pytestmark = pytest.mark.slow
WHAT = [
    ("", "out"),
    ("a.jsonl", "o.jsonl"),
    ("a.jsonl", "o.jsonl.gz"),
    ("b.csv", "o.csv"),
    ("d.jsonl.gz", "o.jsonl.gz"),
    ("f.parquet", "o.parquet"),
    ("c.txt", "o.txt"),
]


def run(source, target, policy, **more):
    options = {"plans": target.parent / "plans.jsonl", "batch_size": BATCH, "partition_size": PARTITION} | more
    return anonymize_on_ray(source, target, policy, **options)


@pytest.mark.parametrize(("name", "target"), WHAT, ids=[t for _, t in WHAT])
def test_partitions_give_the_bytes_of_an_undivided_run(serial, source, policy, expected, tmp_path, name, target):
    said = []
    report = run(source / name, tmp_path / target, policy, progress=lambda done, total: said.append((done, total)))
    assert (tree(tmp_path), told(report)) == expected(name, target)
    assert said[-1][0] == said[-1][1] and sorted(said) == said
    cut = {"a.jsonl"}  # the rows of a table are numbered together
    assert {s.items[0].name for s in serial if s.kind == "join"} == (cut if not name else {name} & cut)


def test_the_size_of_partitions_changes_nothing(serial, source, policy, expected, tmp_path):
    for size in (1, 3000, 1 << 30):
        (tmp_path / str(size)).mkdir()
        report = run(source, tmp_path / str(size) / "out", policy, partition_size=size)
        assert (tree(tmp_path / str(size)), told(report)) == expected("", "out")


@pytest.mark.parametrize("seed", range(3))
def test_a_run_that_breaks_off_anywhere_goes_on(serial, source, policy, expected, tmp_path, monkeypatch, seed):
    draw = random.Random(seed)
    real = files.Worker.perform_step
    left = 0

    def do(self, step):
        nonlocal left
        left -= 1
        if left == 0 and draw.random() < 0.5:
            raise KeyboardInterrupt
        outcome = real(self, step)
        if left == 0:
            raise KeyboardInterrupt  # done, and nobody was told
        return outcome

    monkeypatch.setattr(files.Worker, "perform_step", do)
    for _ in range(4):
        left = draw.randrange(1, 7)
        with pytest.raises(KeyboardInterrupt):
            run(source, tmp_path / "out", policy, resume=True)
        assert journal_path(tmp_path / "out").exists()
    left = 0
    report = run(source, tmp_path / "out", policy, resume=True)
    assert (tree(tmp_path), told(report)) == expected("", "out")


def test_steps_that_are_done_twice_change_nothing(serial, source, policy, expected, tmp_path, monkeypatch):
    real = files.Worker.perform_step
    monkeypatch.setattr(files.Worker, "perform_step", lambda self, step: (real(self, step), real(self, step))[-1])
    report = run(source, tmp_path / "out", policy)
    assert (tree(tmp_path), told(report)) == expected("", "out")


def test_resuming_does_not_treat_again_what_is_done(serial, source, policy, tmp_path, monkeypatch):
    def stop(done, total):
        if done > 50_000:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(source, tmp_path / "out", policy, progress=stop)
    treated = []
    real = files.Worker._perform_slice
    from allonym.scale import partitions

    monkeypatch.setattr(
        partitions,
        "anonymize_task",
        lambda job, task, w=partitions.anonymize_task: treated.append(task) or w(job, task),
    )
    before = {p.name for p in (tmp_path / ".out.allonym-ray").iterdir()}
    assert before
    run(source, tmp_path / "out", policy, resume=True)
    resumed = len(treated)
    treated.clear()
    run(source, tmp_path / "out", policy, overwrite=True)
    assert 0 < resumed < len(treated)
    assert real is files.Worker._perform_slice


@pytest.mark.parametrize("rest", [b"", bytes(40)], ids=["cut", "zeros"])
def test_a_part_that_lost_its_end_with_the_power_is_made_again(serial, source, policy, expected, tmp_path, rest):
    def stop(done, total):
        if done > 50_000:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(source, tmp_path / "out", policy, progress=stop)
    parts = list((tmp_path / ".out.allonym-ray").rglob("*.part"))
    assert parts
    for part in parts:
        part.write_bytes(part.read_bytes()[:-40] + rest)
    report = run(source, tmp_path / "out", policy, resume=True)
    assert (tree(tmp_path), told(report)) == expected("", "out")


def test_another_run_is_not_gone_on_with(serial, source, policy, tmp_path):
    def stop(done, total):
        raise KeyboardInterrupt

    same = {"key": b"0123456789abcdef"}
    with pytest.raises(KeyboardInterrupt):
        run(source, tmp_path / "out", policy, progress=stop, **same)
    with pytest.raises(UsageError, match="unfinished run"):
        run(source, tmp_path / "out", policy, **same)
    for change, said in (
        ({"key": b"fedcba9876543210"}, "key"),
        ({"partition_size": 99}, "partition_size"),
        ({"fields": ["text"]}, "fields"),
        ({"scope": "other"}, "scoped"),
    ):
        with pytest.raises(UsageError, match=f"differ: .*{said}"):
            run(source, tmp_path / "out", policy, resume=True, **{**same, **change})
    with pytest.raises(UsageError, match="runner"):
        anonymize_path(
            source, tmp_path / "out", policy, resume=True, plans=tmp_path / "plans.jsonl", batch_size=BATCH, **same
        )
    run(source, tmp_path / "out", policy, resume=True, **same)
    assert not list(tmp_path.glob(".*"))


def test_a_source_that_changed_is_noticed(serial, policy, tmp_path):
    (tmp_path / "a.jsonl").write_bytes(records(1500))

    def change(done, total):
        text = (tmp_path / "a.jsonl").read_bytes()
        (tmp_path / "a.jsonl").write_bytes(text.replace(b"1400", b"9999"))

    with pytest.raises(UsageError, match="has changed"):
        run(tmp_path / "a.jsonl", tmp_path / "b.jsonl", policy, progress=change)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.jsonl"]


def test_a_source_that_changed_before_it_was_gone_on_with_is_noticed(serial, policy, tmp_path):
    """Slices that were done are done again where their bytes are others."""
    source = tmp_path / "a.jsonl"
    source.write_bytes(records(1500))

    def stop(done, total):
        if len(list(tmp_path.rglob("*.part"))) > 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(source, tmp_path / "o.jsonl", policy, progress=stop)
    source.write_bytes(source.read_bytes().replace(b"Record 1:", b"Changed 1"))
    run(source, tmp_path / "o.jsonl", policy, resume=True)
    undisturbed = anonymize_path(source, tmp_path / "p.jsonl", policy, batch_size=BATCH)
    assert undisturbed.documents == 1500
    assert b"Changed 1" in (tmp_path / "o.jsonl").read_bytes()
    assert (tmp_path / "o.jsonl").read_bytes() == (tmp_path / "p.jsonl").read_bytes()


def test_a_worker_that_outlives_its_run_gives_nothing_to_the_next_one(serial, source, policy, expected, tmp_path):
    """It has another policy, here one that finds nothing, and goes on until the new run ends, and after that."""
    old = []
    do = files.Worker.perform_step

    def stop(done, total):
        raise KeyboardInterrupt

    other = policy.with_(labels=("PERSON",), detectors=("lexicon",))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files.Worker, "perform_step", lambda self, step: (old.append(self), do(self, step))[1])
        with pytest.raises(KeyboardInterrupt):
            run(source, tmp_path / "out", other, progress=stop)
    told_old = []

    def disturb(self, step):
        told_old.append(do(old[0], step).error)
        outcome = do(self, step)
        told_old.append(do(old[0], step).error)
        return outcome

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files.Worker, "perform_step", disturb)
        report = run(source, tmp_path / "out", policy, overwrite=True)
    assert any(told_old) and not any("example" in str(error) for error in told_old)
    for step in serial:
        do(old[0], step)
    assert (tree(tmp_path), told(report)) == expected("", "out")
    assert not list(tmp_path.glob(".*"))


def test_the_largest_come_first(source, tmp_path):
    items, _ = list_items(source, tmp_path / "out", None)
    schedule, order = Schedule(items, PARTITION), []
    while (step := schedule.next_step()) is not None:
        order.append(step)
    sizes = [sum(i.size for i in s.items) for s in order]
    large = [size for size in sizes if size > PARTITION]
    assert sizes[: len(large)] == sorted(large, reverse=True) and len(large) > 2
    assert sorted(order, key=lambda s: s.group) == list(iterate_group_steps(items, PARTITION))
    assert schedule.count == len(order)


def test_what_a_worker_wrote_and_somebody_changed_is_made_again(serial, source, policy, expected, tmp_path):
    def stop(done, total):
        if (tmp_path / "out" / "b.csv").exists():
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(source, tmp_path / "out", policy, progress=stop)
    (tmp_path / "out" / "b.csv").write_text("cut")
    (tmp_path / "out" / "a.jsonl").unlink()
    report = run(source, tmp_path / "out", policy, resume=True)
    assert (tree(tmp_path), told(report)) == expected("", "out")


def test_a_single_file_that_is_refused_leaves_nothing(serial, source, policy, tmp_path):
    (tmp_path / "a.txt").write_bytes(b"\xff secret")
    with pytest.raises(DataError, match=r"a\.txt") as caught:
        run(tmp_path / "a.txt", tmp_path / "b.txt", policy)
    assert "secret" not in str(caught.value)
    with pytest.raises(UsageError, match="nope"):
        run(source / "b.csv", tmp_path / "b.csv", policy, fields=["nope"])
    with pytest.raises(UsageError, match=r"no record of a\.jsonl"):
        run(source / "a.jsonl", tmp_path / "b.jsonl", policy, fields=["nope"])
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]


def test_foreign_errors_arrive_without_their_message(serial, source, policy, tmp_path, monkeypatch):
    from allonym.scale import partitions

    for error, said in ((RuntimeError("secret"), "RuntimeError in a worker"), (OSError(28, "secret"), "error 28")):

        def burst(job, task, error=error):
            raise error

        monkeypatch.setattr(partitions, "anonymize_task", burst)
        with pytest.raises(AllonymError, match=said) as caught:
            run(source, tmp_path / "out", policy, overwrite=True)
        assert "secret" not in str(caught.value)
    assert journal_path(tmp_path / "out").exists()  # a full disk is no reason to begin anew


def test_state_is_for_its_owner_alone(serial, source, policy, tmp_path):
    modes = {}

    def look(done, total):
        modes["."] = (tmp_path / ".out.allonym-ray").stat().st_mode & 0o077

    run(source, tmp_path / "out", policy, progress=look, originals=True)
    assert modes["."] == 0
    assert (tmp_path / "plans.jsonl").stat().st_mode & 0o077 == 0


def test_what_does_not_go_together(serial, source, policy, tmp_path):
    for call, said in (
        (lambda: run("-", tmp_path / "o", policy), "use a pipe"),
        (lambda: run(source, source / "o", policy), "inside the source"),
        (lambda: run(source, tmp_path / "o", policy, plans="s3://b/p"), "file of this machine"),
        (lambda: anonymize_on_ray(source, "/", policy), "not all of it"),
        (lambda: run(source, tmp_path / "o", policy, workers=0), "workers"),
        (lambda: run(source / "c.txt", tmp_path / "o.txt", policy, fields=["x"]), "no fields"),
        (lambda: run("nosuch://x/y", tmp_path / "o", policy), "nosuch:// URI"),
    ):
        with pytest.raises(UsageError, match=said):
            call()


def test_groups_are_bounded_and_whole(source, tmp_path):
    items, _ = list_items(source, tmp_path / "out", None)
    steps = list(iterate_group_steps(items, PARTITION))
    assert [i.name for s in steps for i in s.items] == [i.name for i in items]
    assert [s.group for s in steps] == list(range(len(steps)))
    assert {i.name for s in steps if s.kind == "cut" for i in s.items} == {"a.jsonl"}
    assert all(
        [i.name] == [x.name for x in s.items] for s in steps for i in s.items if i.name in ("b.csv", "f.parquet")
    )
    many = [items[2]] * 200
    assert max(len(s.items) for s in iterate_group_steps(many, 1 << 30)) == MANY


def test_the_schedule_holds_few_steps(policy, tmp_path):
    """What can be done now is handed out; a file is cut on only when its slices run out."""
    from allonym.files.record import Job
    from allonym.scale.partitions import Worker
    from allonym.scale.storage import Disk

    (tmp_path / "a.jsonl").write_bytes(b'{"x": 1}\n' * 6000)
    items, folder = list_items(tmp_path / "a.jsonl", tmp_path / "o.jsonl", None)
    worker = Worker(Job(policy), folder, Disk(), str(tmp_path / "state"), 100, 100)
    schedule = Schedule(items, 100)
    held, slices = 0, 0
    while (step := schedule.next_step()) is not None:
        if step.kind == "slice":
            slices += 1
            schedule.record_finished_step(step, files.Outcome())
        elif step.kind == "cut":
            schedule.record_finished_step(step, worker.perform_step(step))
        held = max(held, len(schedule._ready))
    assert slices > 4 * MANY and held <= 2 * MANY + 1


def test_what_a_part_keeps_comes_back(tmp_path):
    from allonym.files.record import Failure

    treated = AnonymizedChunk(
        b"\x00\n{}", Tally(documents=3), (Failure("\udcff", 2, "why"),), (("i", 1, '{"a": "\n"}'),), 7, "no"
    )
    with (tmp_path / "part").open("wb") as out:
        append_treated_batch(out, True, treated)
    with (tmp_path / "part").open("rb") as stream, pytest.raises(AllonymError, match="incomplete"):
        list(read_treated_batches(stream))
    with (tmp_path / "part").open("ab") as out:
        out.write(b'{"end": true}\n')
    with (tmp_path / "part").open("rb") as stream:
        assert list(read_treated_batches(stream)) == [(True, treated)]


@pytest.mark.parametrize(
    ("total", "size"),
    [(0, 1 << 16), (10**6, 1 << 16), (1 << 27, 1 << 19), (1 << 33, 1 << 20), (1 << 41, 1 << 23), (1 << 50, 1 << 24)],
)
def test_slices_are_small_where_there_is_little_and_few_where_there_is_much(total, size):
    assert choose_slice_size(total) == size
