"""Mixtures on Ray beside one machine: seconds, ratios, and whether the results are the same to the last bit.

    OMP_NUM_THREADS=1 python benchmarks/swap_ray.py [--n 200000] [--d 384] [--clusters 50] [--workers 1,2] [--rounds 3]

The data are drawn from a spherical Cauchy mixture, float32. Four things are measured, each on one thread of this
process and with so many Ray workers, in turn, round by round:

iterations  ten iterations of EM over all rows (r, B, C and the log-likelihood as a tree of sums), from given parameters
fit         a whole search: starts on a sample, then all rows, labels, BIC; two numbers of components
items       texts by the sentence encoder that ships with allonym, as re-embedding does it
exchange    one sequence of swaps by the preset ``default``, cluster by cluster, of --chunks chunks of invented names

Ratios are seconds of one thread over seconds with the workers; efficiency is that over their number. Starting Ray and
its workers, and bringing the rows to them, is told apart. Prints a table and, last, one line of JSON; exit code 1 where
a bit differs.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.sphere import sample_mixture

from allonym.document import Document
from allonym.plan import Plan, digest
from allonym.scale import swap_workers
from allonym.scale.cluster import connect_ray
from allonym.swap.corpus import Chunk, Corpus, Value
from allonym.swap.em import Limits, estimate_from_labels, run_em
from allonym.swap.embedding import open_embedder
from allonym.swap.exchange import exchange
from allonym.swap.mixture import NEAR_ONE, SphericalMixture
from allonym.swap.rows import Rows, Spread, ThisProcess, limit_blas_to_one_thread
from allonym.swap.selection import fit_all
from allonym.swap.settings import Settings
from allonym.swap.validity import Ground, Rules

STEPS = 10
FAMILY = "spcauchy"


def time_call(work: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds, and the result."""
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def draw_rows(n: int, d: int, k: int) -> Any:
    """(n, d) float32 unit rows from ``k`` components."""
    rng = np.random.default_rng(0)
    means = rng.standard_normal((k, d)) + rng.standard_normal(d)
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    return sample_mixture(n, np.full(k, 1 / k), means, np.full(k, 0.35), FAMILY, 1)[0].astype(np.float32)


def make_corpus(n: int) -> Corpus:
    """``n`` chunks, a hundred in a document, each with up to three names of each of two categories."""
    rng = np.random.default_rng(5)
    syllables = [a + b for a in "b d f g k l m n p r s t v z".split() for b in "a e i o u".split()]
    names = {
        category: ["".join(rng.choice(syllables, 4)).capitalize() for _ in range(max(50, n // 10))]
        for category in ("Organization", "Person")
    }
    chunks, documents = [], -(-n // 100)
    for i in range(n):
        values = []
        for category, some in names.items():
            at = (len(some) * rng.random(int(rng.integers(0, 4))) ** 2).astype(int)
            values += [Value(category, some[k].lower(), (some[k],)) for k in dict.fromkeys(at.tolist())]
        chunks.append(Chunk(i // 100, 0, 0, "", tuple(values)))
    nothing = ((),) * documents
    return Corpus(
        documents=tuple(Document(str(d), "") for d in range(documents)),
        protect="company",
        classes=tuple(map(str, range(documents))),
        categories=dict.fromkeys(names, "swap"),
        sections=nothing,
        chunks=tuple(chunks),
        entities=nothing,
        plans=tuple(Plan(digest("")) for _ in range(documents)),
    )


def list_exact_values(fits: Any) -> list[object]:
    """What must not differ."""
    names = ("weights_", "means_", "rhos_", "labels_", "trace_")
    return [(f.to_dict(), *(getattr(f.mixture, name).tobytes() for name in names)) for f in fits]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=200_000)
    parser.add_argument("--d", type=int, default=384)
    parser.add_argument("--clusters", type=int, default=50)
    parser.add_argument("--workers", default="1,2", help="numbers of workers, such as 1,2")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--texts", type=int, default=2048)
    parser.add_argument("--chunks", type=int, default=40_000)
    given = parser.parse_args()
    if os.environ.get("OMP_NUM_THREADS") != "1":
        parser.error("set OMP_NUM_THREADS=1: one thread is what workers are held against")
    counts = [int(w) for w in given.workers.split(",")]
    X = draw_rows(given.n, given.d, given.clusters)
    texts = [f"In the {i}th quarter we saw {i % 97} orders more, and margins rose to {i % 31} percent." for i in range(given.texts)]  # noqa: E501  # fmt: skip
    limits = Limits(STEPS, 0.0, 0.0, NEAR_ONE["float32"])
    encoder = open_embedder("encoder")
    encoder.encode(texts[:1])

    def iterations(rows: Rows, start: Any) -> Any:
        with limit_blas_to_one_thread():
            return run_em(rows, start, FAMILY, limits)

    def fit(spread: Spread) -> Any:
        numbers = (given.clusters // 2, given.clusters)
        return fit_all(X, numbers, (FAMILY,), restarts=2, max_iter=20, seed=1, spread=spread)

    with limit_blas_to_one_thread():
        start = estimate_from_labels(
            Rows(X), np.arange(given.n) % given.clusters, given.clusters, FAMILY, NEAR_ONE["float32"]
        )
    corpus, near = make_corpus(given.chunks), draw_rows(given.chunks, given.d, given.clusters)
    ground, labels = Ground.of(corpus), np.arange(given.chunks) % given.clusters
    how = Rules(**vars(Settings.load("default").exchange), categories=corpus.swapped)
    ground.get_entity_fit()

    def sequence(spread: Spread | None) -> Any:
        with limit_blas_to_one_thread():
            return exchange(corpus, labels, how, 1, vectors=near, ground=ground, spread=spread)

    whats = ("iterations", "fit", "items", "exchange")
    seconds: dict[str, dict[str, list[float]]] = {what: {} for what in whats}
    placing: dict[str, list[float]] = {}
    same = True

    def measure(name: str, spread: Spread, expected: dict[str, Any]) -> None:
        nonlocal same
        rows = Rows(X, None, SphericalMixture().shard_size, spread)
        placing.setdefault(name, []).append(time_call(lambda: list(rows.map_shards(count_rows)))[0])
        for what, work in (
            ("iterations", lambda: iterations(rows, start)),
            ("fit", lambda: fit(spread)),
            ("items", lambda: encoder.over(None if name == "here" else spread).encode(texts)),
            ("exchange", lambda: sequence(None if name == "here" else spread)),
        ):
            took, result = time_call(work)
            seconds[what].setdefault(name, []).append(took)
            if what == "iterations":
                told = [result.trace, *(getattr(result.parameters, p).tobytes() for p in ("weights", "means", "rhos"))]
            elif what == "exchange":
                told = [result]
            else:
                told = list_exact_values(result) if what == "fit" else [result.tobytes()]
            same = same and expected.setdefault(what, told) == told

    expected: dict[str, Any] = {}
    began = time.perf_counter()
    with connect_ray(max(counts), store_bytes=0):
        starting = time.perf_counter() - began
        for _ in range(given.rounds):
            measure("here", ThisProcess(1), expected)
            for count in counts:
                with swap_workers(count) as spread:
                    list(spread.map_items(_warm, None, range(4 * count)))
                    measure(str(count), spread, expected)
    middle = {what: {name: median(times) for name, times in some.items()} for what, some in seconds.items()}
    print(f"n={given.n} d={given.d} K={given.clusters}, Ray started in {starting:.1f} s")
    print(f"{'':12}{'one thread':>12}" + "".join(f"{f'{c} workers':>12}{'ratio':>8}{'per one':>9}" for c in counts))
    for what, found in middle.items():
        line = f"{what:12}{found['here']:10.2f} s"
        for count in counts:
            ratio = found["here"] / found[str(count)]
            line += f"{found[str(count)]:10.2f} s{ratio:8.2f}{ratio / count:9.2f}"
        print(line)
    print("bringing the rows there: " + ", ".join(f"{c}: {median(placing[str(c)]):.2f} s" for c in counts))
    print("the same bits" if same else "BITS DIFFER")
    line_ = {
        "benchmark": "swap_ray",
        "n": given.n,
        "d": given.d,
        "clusters": given.clusters,
        "texts": given.texts,
        "chunks": given.chunks,
        "swaps": len(expected["exchange"][0].swaps),
        "rounds": given.rounds,
        "seconds": middle,
        "placing": {name: median(times) for name, times in placing.items()},
        "starting": starting,
        "same_bits": same,
    }
    print(json.dumps(line_))
    return 0 if same else 1


def count_rows(shard: Any) -> int:
    """Rows of a shard."""
    return len(shard.X)


def _warm(common: Any, item: int) -> int:
    from allonym.models.encoder import load_encoder

    return len(load_encoder().encode(["warm"]))


if __name__ == "__main__":
    sys.exit(main())
