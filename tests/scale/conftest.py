"""Files to treat: records that can be cut, among them broken ones, and small files beside them."""

from __future__ import annotations

import gzip
import json
import pickle
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from allonym.errors import AllonymError
from allonym.files import RunReport, anonymize_path
from allonym.policy import Policy
from allonym.scale import files
from allonym.scale.partitions import Step

BATCH = 2048
PARTITION = 10_000


def tree(folder: Path) -> dict[str, bytes]:
    """Every file of a folder, hidden ones too."""
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def told(report: RunReport) -> dict[str, object]:
    """A report without what differs from run to run."""
    return report.to_dict() | {"seconds": 0}


def records(count: int) -> bytes:
    lines = [json.dumps({"id": i, "text": f"Record {i}: a{i}@example.com"}) for i in range(count)]
    for broken in (count // 3, count - 2):
        lines[broken] = lines[broken][:-1]
    return "\n".join(lines).encode() + b"\n"


@pytest.fixture(scope="session")
def policy(untagged: Policy) -> Policy:
    return untagged


@pytest.fixture(scope="session")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with files of each kind that a run takes differently."""
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    top = tmp_path_factory.mktemp("scale") / "in"
    (top / "deep").mkdir(parents=True)
    (top / "a.jsonl").write_bytes(records(1500))
    rows = "".join(f'{i},"two\nlines a{i}@example.com"\n' for i in range(900))
    (top / "b.csv").write_text(f"id,text\n{rows}900,one cell too many,x\n901,last c@example.com\n")
    (top / "c.txt").write_text("mail c@example.com")
    (top / "d.jsonl.gz").write_bytes(gzip.compress(records(400), mtime=0))
    (top / "e.bin").write_text("mail e@example.com")
    table = pa.table({"id": list(range(2500)), "text": [f"mail a{i}@example.com" for i in range(2500)]})
    pq.write_table(table, top / "f.parquet", row_group_size=1100)
    (top / "g.jsonl").write_text("")
    (top / "deep" / "h.json").write_text('["mail a@example.com", "b@example.com"]')
    (top / "i.csv").write_text('id,text\n1,"open\n' + "2,a@example.com\n" * 900)
    return top


@pytest.fixture(scope="session")
def expected(
    source: Path, policy: Policy, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str, str], tuple[dict[str, bytes], dict[str, object]]]:
    """What a run in one process makes of a part of the source: its files and its report."""
    made: dict[tuple[str, str], tuple[dict[str, bytes], dict[str, object]]] = {}

    def run(name: str, target: str) -> tuple[dict[str, bytes], dict[str, object]]:
        if (name, target) not in made:
            out = tmp_path_factory.mktemp("expected")
            report = anonymize_path(source / name, out / target, policy, plans=out / "plans.jsonl", batch_size=BATCH)
            made[name, target] = tree(out), told(report)
        return made[name, target]

    return run


@pytest.fixture
def serial(monkeypatch: pytest.MonkeyPatch) -> list[Step]:
    """A cluster of one worker in this process, which comes to it as it would to another one; the steps that it did."""
    seen: list[Step] = []

    @contextmanager
    def connected(workers: int) -> Iterator[None]:
        yield None

    def work(ray: object, worker: Any, schedule: Any, workers: int, report: Callable[[int], None]) -> None:
        done, worker = 0, pickle.loads(pickle.dumps(worker))
        while (step := schedule.next_step()) is not None:
            seen.append(step)
            outcome = worker.perform_step(step)
            if outcome.error is not None:
                raise outcome.error
            done += schedule.record_finished_step(step, outcome)
            report(done)

    monkeypatch.setattr(files, "connect_ray", connected)
    monkeypatch.setattr(files, "count_processors", lambda ray: 1)
    monkeypatch.setattr(files, "_run_steps", work)
    return seen


@pytest.fixture(scope="package")
def cluster() -> Iterator[Any]:
    """The module ray, connected to a cluster that counts five processors, however many there are: most tests wait."""
    if find_spec("ray") is None:
        pytest.skip("ray is not installed")
    from allonym.scale.cluster import connect_ray

    with pytest.MonkeyPatch.context() as patch, ExitStack() as stack:
        patch.delenv("RAY_ADDRESS", raising=False)
        for left in (2, 1, 0):
            try:
                ray = stack.enter_context(connect_ray(5))
                break
            except AllonymError:  # Ray gives itself half a minute, which is short on a machine that does much else
                if not left:
                    raise
        yield ray
