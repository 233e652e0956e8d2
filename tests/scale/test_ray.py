"""Ray: one cluster of two processors for all of it; runs whose workers and drivers are killed, S3, data sets."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from tests.scale.conftest import BATCH, PARTITION, told, tree

from allonym.cli import main
from allonym.errors import UsageError
from allonym.scale import anonymize_dataset, anonymize_on_ray

pytest.importorskip("ray")
pa = pytest.importorskip("pyarrow")
KEYS = {
    "AWS_ACCESS_KEY_ID": "testing",
    "AWS_SECRET_ACCESS_KEY": "testing",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
}

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def cluster():
    """The module ray, connected to a cluster of its own; workers inherit the keys of the pretended S3."""
    from allonym.scale.cluster import connected

    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        patch.delenv("RAY_ADDRESS", raising=False)
        for name, value in KEYS.items():
            patch.setenv(name, value)
        with connected(2) as ray:
            yield ray


def run(source, target, policy, plans, **more):
    options = {"batch_size": BATCH, "partition_size": PARTITION, "workers": 2} | more
    return anonymize_on_ray(source, target, policy, plans=plans, **options)


def seats() -> list[int]:
    """The processes of the workers."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if path.read_bytes().startswith(b"ray::_Seat"):
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
    draw, killed = random.Random(5), []

    def kill(done, total):
        if len(killed) < 3 and draw.random() < 0.3 and (found := seats()):
            os.kill(victim := draw.choice(found), signal.SIGKILL)
            killed.append(victim)

    report = run(source, tmp_path / "out", policy, tmp_path / "plans.jsonl", progress=kill)
    assert len(set(killed)) == 3
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
    options = {"batch_size": BATCH, "partition_size": PARTITION, "workers": 2}
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
    report = run(source, tmp_path / "out", policy, tmp_path / "plans.jsonl", resume=True)
    assert (tree(tmp_path), told(report)) == expected("", "out")


def test_a_document_that_fails_says_nothing(cluster, tmp_path, capfd, policy):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_bytes(b"id,text\n" + b"1,Zaphrandel \xff\n" * 200 + b"2,a@example.com\n")
    (tmp_path / "in" / "b.txt").write_bytes(b"Zaphrandel \xff")
    report = run(tmp_path / "in", tmp_path / "out", policy, None, partition_size=500, batch_size=100)
    assert report.quarantined == 200 and report.documents == 202 and len(report.refused) == 1
    shown = capfd.readouterr()
    logs = Path("/tmp/ray/session_latest/logs")
    everything = shown.out + shown.err + "".join(p.read_text("utf-8", "replace") for p in logs.glob("worker-*"))
    assert "Zaphrandel" not in everything


@pytest.fixture(scope="module")
def bucket(cluster):
    """The URI of a bucket on a server that behaves like S3, as a function of the path in it."""
    server = pytest.importorskip("moto.server")
    pytest.importorskip("flask")
    from pyarrow.fs import FileSystem

    held = server.ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    held.start()
    host, port = held.get_host_and_port()

    def uri(path: str) -> str:
        return f"s3://lake/{path}?scheme=http&endpoint_override={host}:{port}&allow_bucket_creation=true"

    filesystem, _ = FileSystem.from_uri(uri(""))
    filesystem.create_dir("lake")
    yield uri, filesystem
    held.stop()


def objects(filesystem, folder: str) -> dict[str, bytes]:
    from pyarrow.fs import FileSelector

    found = [f for f in filesystem.get_file_info(FileSelector(folder, recursive=True)) if f.is_file]
    return {f.path.removeprefix(f"{folder}/"): filesystem.open_input_file(f.path).readall() for f in found}


def test_s3(cluster, bucket, source, policy, expected, tmp_path):
    uri, filesystem = bucket
    for path in source.rglob("*"):
        if path.is_file():
            with filesystem.open_output_stream(
                f"lake/in/{path.relative_to(source).as_posix()}", compression=None
            ) as out:
                out.write(path.read_bytes())

    def stop(done, total):
        if done > 60_000:
            raise KeyboardInterrupt

    plans = tmp_path / "plans.jsonl"
    with pytest.raises(KeyboardInterrupt):
        run(uri("in"), uri("made/out"), policy, plans, progress=stop)
    assert any(name.endswith(".part") for name in objects(filesystem, "lake/made/.out.allonym-ray"))
    with pytest.raises(UsageError, match="unfinished run"):
        run(uri("in"), uri("made/out"), policy, plans)
    with pytest.raises(UsageError, match="differ: policy"):
        run(uri("in"), uri("made/out"), policy.with_(threshold=0.9), plans, resume=True)
    report = run(uri("in"), uri("made/out"), policy, plans, resume=True)
    made = objects(filesystem, "lake/made") | {"plans.jsonl": plans.read_bytes()}
    assert (made, told(report)) == expected("", "out")
    with pytest.raises(UsageError, match="exists; overwrite"):
        run(uri("in"), uri("made/out"), policy, plans, overwrite=False)
    # from there to here, and back
    run(uri("in/c.txt"), tmp_path / "c.txt", policy, None, workers=1)
    run(tmp_path / "c.txt", uri("back/"), policy, None, workers=1)
    assert objects(filesystem, "lake/back") == {"c.txt": (tmp_path / "c.txt").read_bytes()}
    assert (tmp_path / "c.txt").read_text() == "mail [EMAIL_ADDRESS_1]"
    with pytest.raises(UsageError, match="there is no file or folder lake/nothing"):
        run(uri("nothing"), uri("other"), policy, None)
    with pytest.raises(UsageError, match="never changed"):
        run(uri("in/b.csv"), uri("in/b.csv"), policy, None)
    with pytest.raises(UsageError, match="inside the source"):
        run(uri("in"), uri("in/deeper"), policy, None)


def test_the_command_line(cluster, source, untagged_file, expected, tmp_path, capsys, monkeypatch):
    call = ["anonymize", str(source / "b.csv"), str(tmp_path / "o.csv"), "--runner", "ray", "--policy"]
    with pytest.raises(SystemExit) as ended:
        main([*call, str(untagged_file), "--plans", str(tmp_path / "plans.jsonl")])
    assert ended.value.code == 1  # a row is in quarantine
    assert tree(tmp_path) == expected("b.csv", "o.csv")[0]


def test_data_sets(cluster, policy):
    rows = [{"id": i, "text": f"Mail a{i}@example.com", "note": None if i % 5 else "x"} for i in range(300)]
    cluster.data.DataContext.get_current().enable_progress_bars = False
    dataset = cluster.data.from_arrow(pa.Table.from_pylist(rows)).repartition(4)
    made = anonymize_dataset(dataset, policy, columns=["text", "note"], concurrency=(1, 2), batch_rows=40)
    found = sorted(made.take_all(), key=lambda row: row["id"])
    assert [row["id"] for row in found] == list(range(300))
    assert {row["text"] for row in found} == {"Mail [EMAIL_ADDRESS_1]"}
    assert [row["note"] for row in found] == [row["note"] for row in rows]
    assert {row["allonym_error"] for row in found} == {None}
    with pytest.raises(UsageError, match="did you mean: text"):
        anonymize_dataset(dataset.materialize(), policy, columns=["txt"])
    with pytest.raises(UsageError, match="the cluster has none"):
        anonymize_dataset(dataset, policy, columns=["text"], gpus=0.5)
