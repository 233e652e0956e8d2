"""What a billion documents take: a simulation of partitions, failures and skew, and what it costs by machine type.

usage: python benchmarks/billion.py [--documents 1e9] [--characters 2000] [--rate 30000] [--load 2.0] [--driver 0.004]
                                    [--seed 1] [--machines PRICES.csv]

Nothing is anonymised here: a heap of events is. The numbers that go in are measured by other benchmarks on a small
machine (--rate characters per second and core, benchmarks/kernel.py; --load seconds until a new worker is ready and
--driver seconds that the driver spends on a partition, benchmarks/ray_scale.py); what comes out is what follows from
them, and no measurement of a cluster.

The model. Partitions are handed out in order, one at a time, by one driver. A partition takes its characters by the
rate, times a factor of its own (dense and sparse text: log-normal), by the speed of its machine (log-normal too; one
in fifty runs at half speed), and its way from and to the store. Documents larger than a partition are partitions of
their own. Machines fail at random (exponential), lose what their workers had in hand, and come back; a lost partition
is handed out next. A worker that dies alone costs its partition and a new load of the models. Prices are list prices
as they were known when this was written, without discounts, storage and traffic inside one region: put your own into
a CSV file with the columns name,cores,price (USD an hour). Cores are virtual ones; the rate was measured on such.

Prints tables and, last, one line of JSON.
"""

from __future__ import annotations

import argparse
import csv
import heapq
import json
import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

MACHINES = (
    ("general purpose, 8 cores, 32 GB, on demand", 8, 0.40),
    ("compute, 16 cores, 32 GB, on demand", 16, 0.71),
    ("compute, 16 cores, 32 GB, spot", 16, 0.28),
    ("compute, ARM, 16 cores, 32 GB, on demand", 16, 0.58),
    ("large, 96 cores, 192 GB, on demand", 96, 4.28),
    ("rented server, 16 cores, 64 GB, by the month", 16, 0.14),
)
"""(name, virtual cores, USD an hour): typical list prices of 2026, rounded; assumptions, not offers."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What is simulated. Times in seconds, sizes in characters (taken as bytes on the way to the store).

    Attributes:
        documents, mean: how many, and how long on average.
        giant, giant_mean: share of documents that are partitions of their own, and their mean length.
        partition: characters of a partition.
        machines, cores: of the cluster; one worker a core.
        rate: characters a core treats in a second.
        skew: standard deviation of the logarithm of a partition's cost factor.
        uneven: the same of a machine's speed; one machine in fifty is half as fast besides.
        load: until a new worker has its models.
        driver: what handing out one partition and booking it costs the driver.
        store: characters a second that one machine reads or writes; latency: of one request.
        machine_life, worker_life: mean time to failure; replace: until a failed machine is back.
        largest_first: whether large documents are handed out before all others, else in no order.
    """

    documents: float = 1e9
    mean: float = 2000.0
    giant: float = 1e-7
    giant_mean: float = 2e7
    partition: float = 8e6
    machines: int = 64
    cores: int = 16
    rate: float = 30_000.0
    skew: float = 0.35
    uneven: float = 0.1
    load: float = 2.0
    driver: float = 0.004
    store: float = 300e6
    latency: float = 0.05
    machine_life: float = 30 * 86400.0
    worker_life: float = 30 * 86400.0
    replace: float = 180.0
    largest_first: bool = True

    @property
    def workers(self) -> int:
        """Workers of the whole cluster."""
        return self.machines * self.cores


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a simulated run took.

    Attributes:
        partitions: how many were written; every one exactly once.
        wall: seconds from start to end.
        ideal: seconds if all cores had done nothing but treat text, to the end, without a failure.
        lost: core seconds of work that failures undid; failures: how many machines and workers failed.
        tail: seconds between the moment 99 % were written and the end.
        driver: share of the time that the driver was at work.
    """

    partitions: int
    wall: float
    ideal: float
    lost: float
    failures: int
    tail: float
    driver: float

    @property
    def efficiency(self) -> float:
        """Share of the paid time that was work on text."""
        return self.ideal / self.wall


def draw_costs(setting: Setting, rng: np.random.Generator) -> np.ndarray[Any, Any]:
    """Core seconds of each partition on a machine of speed 1, in the order in which they are handed out.

    The largest files' come first where ``largest_first`` says so; what is dense cannot be known ahead.
    """
    giants = int(rng.poisson(setting.documents * setting.giant))
    plain = max(setting.documents * setting.mean, setting.partition)
    sizes = np.full(max(1, round(plain / setting.partition)), setting.partition)
    factor = np.exp(rng.normal(-(setting.skew**2) / 2, setting.skew, sizes.size))
    large = rng.exponential(setting.giant_mean, giants)
    if setting.largest_first:
        return np.concatenate([np.sort(large)[::-1], sizes * factor]) / setting.rate
    return rng.permutation(np.concatenate([sizes * factor, large])) / setting.rate


def simulate(setting: Setting, seed: int = 1) -> Outcome:
    """Run the cluster of a setting through all its partitions."""
    rng = np.random.default_rng(seed)
    work = draw_costs(setting, rng)
    speed = np.exp(rng.normal(-(setting.uneven**2) / 2, setting.uneven, setting.machines))
    if setting.uneven:
        speed[rng.random(setting.machines) < 1 / 50] /= 2
    transfer = 2 * (setting.latency + setting.partition * setting.cores / setting.store)
    waiting: deque[int] = deque(range(work.size))
    # (time, kind, worker or machine, the machine's generation); what ends before the machine fails counts
    events: list[tuple[float, int, int, int]] = []
    done, generation = 0, [0] * setting.machines
    hands: list[dict[int, tuple[int, float]]] = [{} for _ in range(setting.machines)]
    idle: list[int] = []
    free_driver = busy_driver = lost = at99 = now = 0.0
    failures = 0
    END, READY, MACHINE, WORKER = 0, 1, 2, 3

    def life(mean: float) -> float:
        return float(rng.exponential(mean)) if math.isfinite(mean) else math.inf

    def fill(worker: int) -> None:
        nonlocal free_driver, busy_driver
        if not waiting:
            idle.append(worker)
            return
        part = waiting.popleft()
        machine = worker // setting.cores
        free_driver = max(free_driver, now) + setting.driver
        busy_driver += setting.driver
        takes = work[part] / speed[machine] + transfer
        hands[machine][worker] = (part, free_driver)
        dies = life(setting.worker_life)
        kind, after = (WORKER, dies) if dies < takes else (END, takes)
        heapq.heappush(events, (free_driver + after, kind, worker, generation[machine]))

    def give_back(parts: Sequence[tuple[int, float]]) -> None:
        nonlocal lost
        for part, since in parts:
            lost += max(0.0, now - since)
            waiting.appendleft(part)
        while waiting and idle:
            fill(idle.pop())

    for machine in range(setting.machines):
        heapq.heappush(events, (life(setting.machine_life), MACHINE, machine, 0))
        for core in range(setting.cores):
            heapq.heappush(events, (setting.load, READY, machine * setting.cores + core, 0))
    while done < work.size:
        now, kind, who, born = heapq.heappop(events)
        machine = who if kind == MACHINE else who // setting.cores
        if born != generation[machine]:
            continue  # of a machine that has failed since
        if kind == END:
            del hands[machine][who]
            done += 1
            if at99 == 0.0 and done >= 0.99 * work.size:
                at99 = now
            fill(who)
        elif kind == READY:
            fill(who)
        elif kind == WORKER:
            failures += 1
            taken = hands[machine].pop(who)
            heapq.heappush(events, (now + setting.load, READY, who, born))
            give_back([taken])
        else:
            failures += 1
            generation[machine] += 1
            back = now + setting.replace + setting.load
            taken_all = list(hands[machine].values())
            hands[machine].clear()
            idle[:] = [w for w in idle if w // setting.cores != machine]
            heapq.heappush(events, (back + life(setting.machine_life), MACHINE, machine, generation[machine]))
            for core in range(setting.cores):
                worker = machine * setting.cores + core
                heapq.heappush(events, (back, READY, worker, generation[machine]))
            give_back(taken_all)
    ideal = float(work.sum()) / (float(speed.sum()) * setting.cores)
    return Outcome(done, now, ideal, lost, failures, now - at99, busy_driver / now)


def print_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print columns."""
    widths = [max(len(r[i]) for r in (head, *rows)) for i in range(len(head))]
    for row in (head, *rows):
        print("  ".join(c.ljust(w) if i == 0 else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True))))
    print()


def format_row(name: str, one: Setting, got: Outcome) -> list[str]:
    return [
        name,
        f"{got.partitions:,}",
        f"{got.wall / 3600:.1f}",
        f"{100 * got.efficiency:.1f} %",
        f"{100 * got.lost / (got.wall * one.workers):.2f} %",
        f"{got.failures:,}",
        f"{got.tail / 60:.1f}",
        f"{100 * got.driver:.1f} %",
    ]


def read_machines(path: Path | None) -> list[tuple[str, int, float]]:
    """The machine types of a CSV file with the columns name, cores and price; without one those above."""
    if path is None:
        return list(MACHINES)
    with path.open(newline="", encoding="utf-8") as stream:
        return [(row["name"], int(row["cores"]), float(row["price"])) for row in csv.DictReader(stream)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=float, default=1e9)
    parser.add_argument("--characters", type=float, default=2000.0, help="mean length of a document")
    parser.add_argument("--rate", type=float, default=30_000.0, help="characters per second and core")
    parser.add_argument("--load", type=float, default=2.0, help="seconds until a new worker is ready")
    parser.add_argument("--driver", type=float, default=0.004, help="seconds of the driver for a partition")
    parser.add_argument("--machines", type=Path, help="CSV file: name,cores,price")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    base = Setting(given.documents, given.characters, rate=given.rate, load=given.load, driver=given.driver)
    spot = replace(base, machine_life=12 * 3600.0)
    cases = {
        "64 machines of 16 cores": base,
        "  spot: a machine lives 12 h": spot,
        "  spot, partitions of 1 MB": replace(spot, partition=1e6),
        "  spot, partitions of 64 MB": replace(spot, partition=64e6),
        "  spot, partitions of 256 MB": replace(spot, partition=256e6),
        "  one document in 100,000 of 20 MB": replace(base, giant=1e-5),
        "  every worker dies once an hour": replace(base, worker_life=3600.0),
        "8 machines": replace(base, machines=8),
        "256 machines": replace(base, machines=256),
        "1,024 machines": replace(base, machines=1024),
        "1,024 machines, large documents anywhere": replace(base, machines=1024, largest_first=False),
        "1,024 machines, partitions of 1 MB": replace(base, machines=1024, partition=1e6),
        "1,024 machines, rules only (30 times the rate)": replace(base, machines=1024, rate=30 * base.rate),
    }
    results = {name: simulate(one, given.seed) for name, one in cases.items()}
    head = ["cluster", "partitions", "hours", "efficiency", "lost", "failures", "tail min", "driver"]
    print_table(head, [format_row(name, one, results[name]) for name, one in cases.items()])
    rows, bill = [], []
    for name, cores, price in read_machines(given.machines):
        count = max(1, round(base.workers / cores))
        one = replace(spot if "spot" in name else base, machines=count, cores=cores)
        got = simulate(one, given.seed)
        cost = got.wall / 3600 * count * price
        per_day = math.ceil(got.wall * count / 86400)
        rows.append([name, f"{price:.2f}", f"{count}", f"{got.wall / 3600:.1f}", f"{per_day:,}", f"{cost:,.0f}"])
        bill.append({"machine": name, "price": price, "count": count, "hours": got.wall / 3600, "usd": cost})
    billion = f"USD per {given.documents:,.0f} documents"
    print_table(["machine type", "USD/h", "machines", "hours", "machine days", billion], rows)
    told = {n: {"hours": r.wall / 3600, "efficiency": r.efficiency, "lost": r.lost} for n, r in results.items()}
    print(json.dumps({"rate": given.rate, "cases": told, "costs": bill}))


if __name__ == "__main__":
    main()
