"""Ray: runs whose workers and drivers are killed, logs, data sets. ``benchmarks/ray_scale.py kills`` kills more often."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.scale.conftest import BATCH, PARTITION, told, tree

from allonym.cli import main
from allonym.errors import UsageError
from allonym.scale import anonymize_dataset, anonymize_on_ray

pytest.importorskip("ray")
pa = pytest.importorskip("pyarrow")

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


def run(source, target, policy, plans, **more):
    options = {"batch_size": BATCH, "partition_size": PARTITION, "workers": 2} | more
    return anonymize_on_ray(source, target, policy, plans=plans, **options)


def parent(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("PPid:")[2].split()[0])


def seats() -> list[int]:
    """The processes of the workers of this process's cluster: its children's children."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if (
                path.read_bytes().startswith(b"ray::_StepActor")
                and parent(parent(int(path.parent.name))) == os.getpid()
            ):
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


def test_a_cluster_gives_the_bytes_of_one_process(cluster, source, policy, expected, tmp_path, capfd):
    said = []
    report = run(source, tmp_path / "out", policy, tmp_path / "plans.jsonl", progress=lambda *at: said.append(at))
    assert (tree(tmp_path), told(report)) == expected("", "out")
    assert said[-1][0] == said[-1][1]
    shown = capfd.readouterr()
    assert "example.com" not in shown.out + shown.err


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="processes are found in /proc")
def test_a_killed_worker_changes_nothing(cluster, source, policy, expected, tmp_path):
    killed = []

    def kill(done, total):
        if not killed and (found := seats()):
            os.kill(found[0], signal.SIGKILL)
            killed.append(found[0])

    report = run(source, tmp_path / "out", policy, tmp_path / "plans.jsonl", progress=kill)
    assert killed
    assert (tree(tmp_path), told(report)) == expected("", "out")


DRIVER = """
import os, signal, sys, json
from allonym.policy import Policy
from allonym.scale import anonymize_on_ray
source, target, plans, after, options = sys.argv[1:]
policy = Policy.load("default").with_(detectors=("rules", "spoken", "lexicon", "speakers"))
def die(done, total):
    if done > int(after): os.kill(os.getpid(), signal.SIGKILL)
anonymize_on_ray(source, target, policy, plans=plans, progress=die, **json.loads(options))
"""


def test_a_killed_driver_is_gone_on_with(cluster, source, policy, expected, tmp_path):
    options = {"batch_size": BATCH, "partition_size": PARTITION, "workers": 1}
    arguments = [str(source), str(tmp_path / "out"), str(tmp_path / "plans.jsonl"), "60000", json.dumps(options)]
    address = cluster.get_runtime_context().gcs_address
    done = subprocess.run(
        [sys.executable, "-c", DRIVER, *arguments], check=False, env={**os.environ, "RAY_ADDRESS": address}
    )
    assert done.returncode == -signal.SIGKILL
    state = tmp_path / ".out.allonym-ray"
    assert len(list(state.rglob("*.part"))) > 1
    with pytest.raises(UsageError, match="unfinished run"):
        run(source, tmp_path / "out", policy, tmp_path / "plans.jsonl")
    report = run(source, tmp_path / "out", policy, tmp_path / "plans.jsonl", resume=True, workers=1)
    assert (tree(tmp_path), told(report)) == expected("", "out")


def test_a_document_that_fails_says_nothing(cluster, tmp_path, capfd, policy):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_bytes(b"id,text\n" + b"1,Zaphrandel \xff\n" * 200 + b"2,a@example.com\n")
    (tmp_path / "in" / "b.txt").write_bytes(b"Zaphrandel \xff")
    report = run(tmp_path / "in", tmp_path / "out", policy, None, partition_size=500, batch_size=100, workers=1)
    assert report.quarantined == 200 and report.documents == 201 and len(report.refused) == 1
    shown = capfd.readouterr()
    logs = list(Path("/tmp/ray", cluster.get_runtime_context().get_session_name(), "logs").glob("worker-*"))
    assert logs
    everything = shown.out + shown.err + "".join(p.read_text("utf-8", "replace") for p in logs)
    assert "Zaphrandel" not in everything


def test_the_command_line(cluster, source, untagged_file, expected, tmp_path, capsys, monkeypatch):
    # A row with too many cells is no reason to lose it; one that cannot be read goes to quarantine.
    for name, code in (("b.csv", 0), ("i.csv", 1)):
        out = tmp_path / name
        out.mkdir()
        call = ["anonymize", str(source / name), str(out / "o.csv"), "--runner", "ray", "--workers", "1", "--policy"]
        with pytest.raises(SystemExit) as ended:
            main([*call, str(untagged_file), "--plans", str(out / "plans.jsonl")])
        assert ended.value.code == code
        assert tree(out) == expected(name, "o.csv")[0]


def test_data_sets(cluster, policy):
    rows = [{"id": i, "text": f"Mail a{i}@example.com", "note": None if i % 5 else "x"} for i in range(100)]
    cluster.data.DataContext.get_current().enable_progress_bars = False
    dataset = cluster.data.from_arrow([pa.Table.from_pylist(rows[:50]), pa.Table.from_pylist(rows[50:])])
    made = anonymize_dataset(dataset, policy, columns=["text", "note"], concurrency=1, batch_rows=40)
    found = sorted(made.take_all(), key=lambda row: row["id"])
    assert [row["id"] for row in found] == list(range(100))
    assert {row["text"] for row in found} == {"Mail [EMAIL_ADDRESS_1]"}
    assert [row["note"] for row in found] == [row["note"] for row in rows]
    assert {row["allonym_error"] for row in found} == {None}
    with pytest.raises(UsageError, match="did you mean: text"):
        anonymize_dataset(dataset, policy, columns=["txt"])
    with pytest.raises(UsageError, match="the cluster has none"):
        anonymize_dataset(dataset, policy, columns=["text"], gpus=0.5)
