"""The simulated cluster does what it says, where it can be worked out by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

np = pytest.importorskip("numpy")

from benchmarks.billion import MACHINES, Setting, read_machines, simulate  # noqa: E402

CALM = Setting(
    documents=1e6,
    giant=0.0,
    machines=4,
    cores=5,
    skew=0.0,
    uneven=0.0,
    load=0.0,
    driver=0.0,
    store=math.inf,
    latency=0.0,
    machine_life=math.inf,
    worker_life=math.inf,
)


def test_without_skew_and_failures_the_work_is_divided_evenly():
    got = simulate(CALM)
    assert got.partitions == 250
    assert got.wall == pytest.approx(math.ceil(250 / 20) * 8e6 / 30_000)
    assert got.ideal == pytest.approx(1e6 * 2000 / 30_000 / 20)
    assert (got.lost, got.failures, got.driver) == (0.0, 0, 0.0)


def test_every_partition_is_written_once_whatever_fails():
    got = simulate(replace(CALM, machine_life=2000.0, worker_life=1000.0, replace=50.0), seed=3)
    assert got.partitions == 250
    assert got.failures > 10
    assert got.lost > 0
    assert got.wall > simulate(CALM).wall


def test_a_driver_that_is_slower_than_the_workers_sets_the_pace():
    got = simulate(replace(CALM, driver=60.0))
    assert got.driver > 0.95
    assert got.wall >= 250 * 60


def test_a_large_document_that_comes_late_makes_all_wait():
    skewed = replace(CALM, giant=3e-6, giant_mean=1e8, machines=20)
    first, anywhere = simulate(skewed, seed=2), simulate(replace(skewed, largest_first=False), seed=2)
    assert first.partitions == anywhere.partitions > 250
    assert first.wall < anywhere.wall


def test_the_same_seed_gives_the_same_run():
    shaky = replace(CALM, machine_life=3000.0, skew=0.3)
    assert simulate(shaky, 5) == simulate(shaky, 5) != simulate(shaky, 6)


def test_machine_types_of_ones_own(tmp_path):
    path = tmp_path / "prices.csv"
    path.write_text("name,cores,price\nours,8,0.1\n", encoding="utf-8")
    assert read_machines(path) == [("ours", 8, 0.1)]
    assert read_machines(None) == list(MACHINES)
