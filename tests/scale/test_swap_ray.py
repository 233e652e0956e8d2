"""Swapping on Ray gives what one machine gives, to the last bit, whoever works and whoever dies."""

import json
import os
import time
from importlib.resources import files
from pathlib import Path
from threading import Lock

import numpy as np
import pytest
from benchmarks.sphere import sample_mixture

from allonym.cli import main
from allonym.errors import AllonymError, DataError, UsageError
from allonym.scale import swap_ray, swap_workers
from allonym.scale.swap_ray import AHEAD, Workers
from allonym.swap.embedding import open_embedder
from allonym.swap.mixture import SphericalMixture
from allonym.swap.rows import Rows
from allonym.swap.selection import fit_all

TEXT = "Zaphrandel"


pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),  # Ray's own: processes that it leaves to the system
]


@pytest.fixture(scope="module")
def ray(cluster):
    return cluster


@pytest.fixture(scope="module")
def three(ray):
    with swap_workers(3) as workers:
        yield workers


def points(n=2600, d=24):
    X, _ = sample_mixture(n, [0.4, 0.35, 0.25], np.eye(d)[:3], [0.6, 0.5, 0.7], "spcauchy", 4)
    X[17] = X[18]  # copies count once together, so rows have weights
    return X.astype(np.float32)


def bits(fits):
    """Everything that is fitted, as bytes; the parameters, the labels and every log-likelihood."""
    arrays = ("weights_", "means_", "rhos_", "labels_", "trace_", "degenerate_", "cosines_")
    return [
        (*(getattr(f.mixture, name).tobytes() for name in arrays), f.to_dict(), f.mixture.log_likelihood_) for f in fits
    ]


@pytest.fixture(scope="module")
def fitted():
    """Two mixtures of one family, and one of the other: shards of 200 rows, starts on 500 of them."""
    patch = pytest.MonkeyPatch()
    patch.setattr("allonym.swap.mixture.SAMPLE", 500)

    def fit(spread=None, **more):
        return fit_all(points(), (3, 5), restarts=2, seed=2, shard_size=200, max_iter=12, spread=spread, **more)

    yield fit, bits(fit())
    patch.undo()


@pytest.mark.parametrize("count", [1, 2, 3])
def test_any_number_of_workers_fits_the_same_bits(three, fitted, count, monkeypatch):
    fit, expected = fitted
    monkeypatch.setattr(three, "actors", three.actors[:count])
    assert bits(fit(three)) == expected


def test_mini_batches_end_on_the_shards(three, fitted):
    fit, expected = fitted
    assert bits(fit(three, batch_size=400)) == bits(fit(batch_size=400)) != expected


def ends_once(shard, mark):
    """The process of whoever has the sixth shard dies, the first time."""
    if shard.first == 1000 and not Path(mark).exists():
        Path(mark).touch()
        os._exit(1)
    return shard.X.sum(axis=0, dtype=np.float64)


def test_a_killed_worker_changes_no_bit(three, tmp_path):
    X, mark = points(), tmp_path / "died"
    died = Rows(X, None, 200, three).sum_shards(ends_once, str(mark))
    assert mark.exists()
    assert died.tobytes() == Rows(X, None, 200).sum_shards(ends_once, str(mark)).tobytes()


def test_a_worker_that_dies_again_and_again_ends_the_run(ray, monkeypatch):
    monkeypatch.setattr(swap_ray, "TRIES", 0)
    workers = Workers(ray, 1)
    try:
        with pytest.raises(AllonymError, match="a worker was lost"):
            list(workers.map_items(dies, None, [1]))
    finally:
        workers.close()


def dies(common, item):
    os._exit(1)


def slow_first(common, item):
    time.sleep(0.2 if item == 0 else 0)
    return common * item


def test_items_come_in_their_order_and_few_are_begun_ahead(three):
    begun = []

    def items():
        for i in range(200):
            begun.append(i)
            yield i

    out = three.map_items(slow_first, 3, items())
    assert next(out) == 0
    assert len(begun) <= AHEAD * 3 + 1
    assert list(out) == [3 * i for i in range(1, 200)]


def fails(common, item):
    if item == "own":
        raise UsageError("a setting is wrong")
    raise KeyError(common)


def fails_on(shard, text):
    raise ValueError(text)


def test_errors_are_those_of_one_machine_and_tell_no_text(three, capfd):
    with pytest.raises(UsageError, match=r"^a setting is wrong$"):
        list(three.map_items(fails, TEXT, ["own"]))
    rows = Rows(points(), None, 200, three)
    for call, kind in (
        (lambda: list(three.map_items(fails, TEXT, ["other"])), "KeyError"),
        (lambda: rows.sum_shards(fails_on, TEXT), "ValueError"),
        (lambda: list(rows.map_shards(fails_on, TEXT)), "ValueError"),
    ):
        with pytest.raises(DataError, match=f"^{kind} in a worker$") as caught:
            call()
        assert caught.value.__cause__ is None
    with pytest.raises(UsageError, match="cannot be sent"):
        list(three.map_items(fails, {TEXT: Lock()}, ["own"]))
    assert TEXT not in "".join(capfd.readouterr())


def test_who_computes_other_bits_or_does_not_start_may_not_work(three, monkeypatch):
    monkeypatch.setattr(swap_ray, "WAIT", 0.0)
    with pytest.raises(AllonymError, match="did not start within 0 s"):
        three.check_worker_arithmetic()
    monkeypatch.undo()
    three.check_worker_arithmetic()
    monkeypatch.setattr(swap_ray, "compute_arithmetic_fingerprint", lambda: b"another processor")
    with pytest.raises(UsageError, match="3 of 3 workers compute other last bits"):
        three.check_worker_arithmetic()


@pytest.mark.parametrize(("count", "said"), [(0, "1 or more"), (99, "has 5 processors; got 99")])
def test_numbers_of_workers_that_cannot_be(ray, count, said):
    with pytest.raises(UsageError, match=said), swap_workers(count):
        pass


def test_vectors_are_those_of_one_process(three, tmp_path):
    texts = [f"word{i % 40} other{i % 7} and word{i % 11} again" for i in range(700)]
    alone = open_embedder("lsa", components=10).fit(texts)
    assert alone.over(three).encode(texts).tobytes() == alone.encode(texts).tobytes()
    encoder = open_embedder("encoder", cache=tmp_path)
    told = ["The river rose at night.", "Nobody was hurt.", ""]
    assert encoder.over(three).encode(told).tobytes() == open_embedder("encoder").encode(told).tobytes()
    assert (tmp_path / "vectors.sqlite").exists()  # written by this process alone


def test_after_the_workers_went_this_process_goes_on(ray, fitted):
    gone = Workers(ray, 1)
    gone.close()
    texts = ["one two three", "two three four", "four five"]
    lsa = open_embedder("lsa").fit(texts)
    assert lsa.over(gone).encode(texts).tobytes() == lsa.encode(texts).tobytes()
    fit, expected = fitted
    assert bits(fit(gone)) == expected


def test_one_shard_stays_here(three):
    fit = SphericalMixture(3, restarts=1).fit_rows(SphericalMixture(3).rows(points(300), three))
    assert fit.means_.tobytes() == SphericalMixture(3, restarts=1).fit(points(300)).means_.tobytes()


@pytest.fixture(scope="module")
def one_machine(tmp_path_factory):
    return released(tmp_path_factory.mktemp("one"))


def released(folder, *more):
    """What ``allonym swap`` makes of the demo's calls: the released file, and all numbers but the seconds."""
    calls = str(files("allonym") / "examples" / "calls.jsonl")
    asked = ["--protect", "company", "--field", "text", "--embedder", "lsa", "--draws", "1", "--quiet"]
    asked += ["--categories", "Organization=swap,Person=swap", "--clusters", "4", "--family", "pkbd", "--no-check"]
    out = [folder / "safe.jsonl", folder / "told.json", folder / "plans.jsonl"]
    with pytest.raises(SystemExit) as ended:
        main(["swap", calls, *asked, "-o", str(out[0]), "--json", str(out[1]), "--plans", str(out[2]), *more])
    assert ended.value.code == 0
    told = json.loads(out[1].read_text())
    del told["timings"]
    return out[0].read_bytes(), out[2].read_bytes(), told


def test_the_command_writes_the_same_bytes(ray, one_machine, tmp_path):
    assert released(tmp_path, "--runner", "ray", "--workers", "2") == one_machine
