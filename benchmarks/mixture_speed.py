"""How fast the mixtures are on one thread, beside spheroids 0.4.0 and beside the machine's matrix product, in one run.

usage: OMP_NUM_THREADS=1 python benchmarks/mixture_speed.py [--spheroids PYTHON] [--rounds 3] [--n 20000]
                                                            [--families pkbd,spcauchy] [--large 1000000]

PYTHON is an interpreter that has spheroids 0.4.0 (GPL: it is run as a separate program and nothing of it is used here).
The sides take turns; ratios are medians of the rounds' ratios.

beside spheroids   n rows, d = 384, K = 20. Its generator starts from the same state in every process, so a process that
                   makes one iteration leaves the parameters from which ours begin: the same start. Its seconds per
                   iteration are those of a whole fit less those of one iteration. Ours are of 20 iterations, in float64
                   and in float32. "same log-likelihood": seconds from there until the log-likelihood that it ends with
                   (less 1e-8 of it) is reached, or EM ends in another maximum, which is said; one of our spcauchy
                   iterations does less. Components are dropped below .005 of the rows on either side. Its spcauchy
                   takes minutes and has one round. "own fit": a fit of ours with its own six starts, in float32.
large              n rows, d = 384, K = 100, float32: one iteration against 4 n d K operations at the rate of the
                   machine's own product of 2048 x 2048 matrices, measured before and after each; then the highest
                   memory of the process after a whole fit of two iterations, with the data in it. 0: left out.

Needs numpy with one thread per product: set OMP_NUM_THREADS=1. Prints a table and, last, one line of JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.sphere import sample_component

from allonym.swap.em import (
    LEAST,
    Limits,
    Parameters,
    compute_expectation_sums,
    mark_kept_components,
    run_em,
    run_maximisation_step,
)
from allonym.swap.mixture import NEAR_ONE, SphericalMixture
from allonym.swap.rows import Rows, Shard

D = 384
SMALL_K, LARGE_K = 20, 100
LEAST_SHARE = 0.005
RHO = {"pkbd": 0.5, "spcauchy": 0.25}
THEIRS = """
import json, sys, time
import numpy as np
from spheroids import cpp
data, family, k, share, most, out = sys.argv[1:]
X = np.load(data)
start = time.perf_counter()
_, rho, mu, pi, total, steps = cpp.EM(X, int(k), "softmax", family, float(share), int(most), 1e-8)
seconds = time.perf_counter() - start
np.savez(out, rho=rho, mu=np.ascontiguousarray(mu.T), pi=pi)
print(json.dumps({"seconds": seconds, "steps": int(steps), "log_likelihood": float(total)}))
"""


def fit_spheroids(python: str, folder: Path, family: str, steps: int) -> tuple[dict[str, float], Parameters]:
    """A fit by spheroids in a process of its own: what it says, and the parameters that it leaves."""
    out = folder / "theirs.npz"
    call = [python, "-c", THEIRS, str(folder / "X.npy"), family, str(SMALL_K), str(LEAST_SHARE), str(steps), str(out)]
    done = subprocess.run(call, capture_output=True, text=True, check=True)
    left = np.load(out)
    parameters = Parameters(left["pi"] / left["pi"].sum(), left["mu"], left["rho"])
    return json.loads(done.stdout.splitlines()[-1]), parameters


def draw_points(n: int, k: int, family: str, dtype: Any, seed: int = 0) -> Any:
    """``n`` draws from ``k`` components in random directions, in order of components; made in parts to save memory."""
    rng = np.random.default_rng(seed)
    X = np.empty((n, D), dtype)
    means = rng.standard_normal((k, D))
    for part in np.array_split(np.arange(n), max(1, n // 10_000)):
        X[part[0] : part[-1] + 1] = sample_component(len(part), means[int(part[0]) * k // n], RHO[family], family, rng)
    return X


def draw_overlapping_points(n: int, k: int, family: str, seed: int = 0) -> Any:
    """As :func:`draw_points`, float64, with components that overlap: every row is from one at random."""
    rng = np.random.default_rng(seed)
    means = rng.standard_normal((k, D)) + rng.standard_normal(D)
    labels = rng.choice(k, n, p=np.arange(1.0, k + 1) / (k * (k + 1) / 2))
    X = np.empty((n, D))
    for j in range(k):
        mine = labels == j
        X[mine] = sample_component(int(mine.sum()), means[j], RHO[family], family, rng)
    return X


def time_call(work: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds, and the result."""
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def time_iterations(X: Any, start: Parameters, family: str, steps: int) -> float:
    """Seconds per iteration of ours."""
    smallest = max(LEAST_SHARE * len(X), LEAST)

    def work() -> None:
        now = start
        for _ in range(steps):
            sums = compute_expectation_sums(Shard(X), now, family)
            now = run_maximisation_step(
                sums.select_components(mark_kept_components(sums.size, smallest)), family, NEAR_ONE[X.dtype.name]
            )

    return time_call(work)[0] / steps


def time_until(X: Any, start: Parameters, family: str, target: float) -> tuple[float, int, float]:
    """Seconds until ``target`` is reached, iterations, and the log-likelihood there or where EM stopped below it."""
    limits = Limits(1, 0, max(LEAST_SHARE * len(X), LEAST), NEAR_ONE[X.dtype.name])
    now, reached, steps, seconds = start, -np.inf, 0, 0.0
    while steps < 500:
        took, run = time_call(lambda: run_em(Rows(X), now, family, limits))  # noqa: B023
        seconds, steps = seconds + took, steps + 1
        settled = steps > 1 and abs(run.trace[0] - reached) <= 1e-12 * abs(reached) and not run.dropped
        reached, now = run.trace[0], run.parameters
        if reached >= target or settled:
            break
    return seconds, steps, reached


def compare_with_spheroids(python: str, n: int, family: str, rounds: int) -> dict[str, Any]:
    """The figures of one family beside spheroids."""
    ratios: dict[str, list[float]] = {"float64": [], "float32": [], "same": []}
    seconds: dict[str, list[float]] = {"spheroids": [], "float64": [], "float32": [], "theirs": [], "ours": []}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        X = draw_overlapping_points(n, SMALL_K, family)
        np.save(folder / "X.npy", X)
        single = X.astype(np.float32)
        for _ in range(rounds):
            one, start = fit_spheroids(python, folder, family, 1)
            whole, end = fit_spheroids(python, folder, family, 100)
            rest = whole["seconds"] - one["seconds"]
            each = rest / (whole["steps"] - 1)
            target = whole["log_likelihood"] - 1e-8 * abs(whole["log_likelihood"])
            double_each, single_each = time_iterations(X, start, family, 20), time_iterations(single, start, family, 20)
            took, steps, reached = time_until(X, start, family, target)
            for key, value in (
                ("spheroids", each),
                ("float64", double_each),
                ("float32", single_each),
                ("theirs", rest),
                ("ours", took),
            ):
                seconds[key].append(value)
            ratios["float64"].append(each / double_each)
            ratios["float32"].append(each / single_each)
            ratios["same"].append(rest / took)
        own_seconds, own = time_call(
            lambda: SphericalMixture(SMALL_K, family=family, min_weight=LEAST_SHARE).fit(single)
        )
    return {
        "family": family,
        "n": n,
        "seconds_per_iteration": {key: median(seconds[key]) for key in ("spheroids", "float64", "float32")},
        "times_faster_per_iteration": {key: median(ratios[key]) for key in ("float64", "float32")},
        "same_log_likelihood": {
            "theirs": whole["log_likelihood"],
            "ours": reached,
            "reached": reached >= target,
            "iterations": [whole["steps"] - 1, steps],
            "seconds": [median(seconds["theirs"]), median(seconds["ours"])],
            "times_faster": median(ratios["same"]),
            "components": [len(end.rhos), len(start.rhos)],
        },
        "own_fit": {"seconds": own_seconds, "log_likelihood": own.log_likelihood_, "components": len(own.rhos_)},
        "rounds": rounds,
    }


def product_rate(size: int = 2048) -> float:
    """Operations per second of a float32 matrix product, the best of five."""
    A = np.random.default_rng(0).standard_normal((size, size)).astype(np.float32)
    return 2 * size**3 / min(time_call(lambda: A @ A)[0] for _ in range(5))


def measure_large_data(n: int, rounds: int) -> dict[str, Any]:
    """One iteration on large data against the arithmetic limit, and the memory of a fit."""
    X = draw_points(n, LARGE_K, "spcauchy", np.float32)
    rng = np.random.default_rng(1)
    centres = X[rng.choice(n, LARGE_K, replace=False)].astype(np.float64)
    now = Parameters(np.full(LARGE_K, 1 / LARGE_K), centres, np.full(LARGE_K, 0.2))
    work = 4 * n * D * LARGE_K
    seconds, limits = [], []
    rate = product_rate()
    shard = Shard(X)
    for _ in range(rounds):
        took, now = time_call(
            lambda now=now: run_maximisation_step(
                compute_expectation_sums(shard, now, "spcauchy"), "spcauchy", NEAR_ONE["float32"]
            )
        )
        after = product_rate()
        seconds.append(took)
        limits.append(work / max(rate, after))
        rate = after
    fit_seconds, fit = time_call(lambda: SphericalMixture(LARGE_K, restarts=1, max_iter=2).fit(X))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {
        "n": n,
        "d": D,
        "K": LARGE_K,
        "seconds_per_iteration": median(seconds),
        "limit_seconds": median(limits),
        "times_limit": median(a / b for a, b in zip(seconds, limits, strict=True)),
        "product_gigaflops": work / median(limits) / 1e9,
        "data_gb": X.nbytes / 1e9,
        "memory_above_data_gb": (peak - X.nbytes) / 1e9,
        "fit_of_two_iterations_seconds": fit_seconds,
        "fit_steps": fit.n_iter_,
        "rounds": rounds,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--spheroids", metavar="PYTHON")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--n", type=int, default=20_000)
    parser.add_argument("--families", default="pkbd,spcauchy")
    parser.add_argument("--large", type=int, default=1_000_000)
    given = parser.parse_args()
    if os.environ.get("OMP_NUM_THREADS") != "1":
        parser.error("set OMP_NUM_THREADS=1: both sides have one thread")
    line: dict[str, Any] = {"benchmark": "mixture_speed"}
    if given.large:  # first: the process's highest memory is read after it
        found = line["large"] = measure_large_data(given.large, given.rounds)
        print(
            f"large: n={found['n']} d={D} K={LARGE_K} float32: {found['seconds_per_iteration']:.2f} s per iteration, "
            f"{found['times_limit']:.2f} times the limit of {found['limit_seconds']:.2f} s "
            f"({found['product_gigaflops']:.0f} GF); data {found['data_gb']:.2f} GB, "
            f"memory above it {found['memory_above_data_gb']:.2f} GB",
            flush=True,
        )
    if given.spheroids:
        line["beside"] = []
        print(f"{'n=' + str(given.n):10}{'spheroids':>11}{'float64':>10}{'float32':>10}   faster (float64, float32)")
        for family in given.families.split(","):
            found = compare_with_spheroids(given.spheroids, given.n, family, given.rounds if family == "pkbd" else 1)
            line["beside"].append(found)
            each, times = found["seconds_per_iteration"], found["times_faster_per_iteration"]
            same, own = found["same_log_likelihood"], found["own_fit"]
            short = "" if same["reached"] else f", another maximum: {same['ours']:.2f}"
            print(
                f"{family:10}{each['spheroids']:11.4f}{each['float64']:10.4f}{each['float32']:10.4f}   "
                f"{times['float64']:.2f}, {times['float32']:.2f} times per iteration\n"
                f"          same log-likelihood {same['theirs']:.2f}: {same['seconds'][0]:.2f} s in "
                f"{same['iterations'][0]} iterations, ours {same['seconds'][1]:.2f} s in {same['iterations'][1]}, "
                f"{same['times_faster']:.1f} times faster{short}\n"
                f"          own fit: {own['log_likelihood']:.2f} in {own['seconds']:.2f} s",
                flush=True,
            )
    print(json.dumps(line))
    return 0


if __name__ == "__main__":
    sys.exit(main())
