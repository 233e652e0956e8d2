"""What the batch kernel adds to calling ``anonymize_many``: the same texts, interleaved in one process.

    python benchmarks/kernel.py [FILE] [--texts 1000] [--rounds 7] [--policy default]

FILE holds JSON lines with a "text"; without it texts are made up. Sides: ``anonymize_many``; ``run_records``, the
kernel that files, process pool and Ray stand on; ``anonymize_batch``, its Arrow face, which data frames, Ray Data and
Spark use. No side writes plans. Seconds are those of the processor; a ratio is the median over the rounds of the ratio
within a round, and each round begins with another side. Prints a table and, last, one line of JSON.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import pyarrow as pa
from ray_scale import make_documents

import allonym
from allonym.batch import anonymize_batch, run_records
from allonym.document import Document
from allonym.models.tagger import load_tagger
from allonym.plan import Anonymized
from allonym.policy import Policy

ROWS = 256


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("file", nargs="?", type=Path)
    options.add_argument("--texts", type=int, default=1000)
    options.add_argument("--rounds", type=int, default=7)
    options.add_argument("--policy", default="default")
    given = options.parse_args()
    policy = Policy.load(given.policy)
    texts = [row["text"] for row in make_documents(given.texts, given.file)]
    batches = [pa.record_batch({"text": texts[at : at + ROWS]}) for at in range(0, len(texts), ROWS)]

    def many() -> list[str]:
        return [made.text for made in allonym.anonymize_many(texts, policy)]

    def kernel() -> list[str]:
        made: list[str] = []
        for at in range(0, len(texts), ROWS):
            results = run_records([Document("", t) for t in texts[at : at + ROWS]], policy)
            made += [result.text if isinstance(result, Anonymized) else "" for result in results]
        return made

    def arrow() -> list[str]:
        made: list[str] = []
        for batch in batches:
            made += anonymize_batch(batch, policy, columns=["text"], plan_column=None).column("text").to_pylist()
        return made

    sides: dict[str, Callable[[], list[str]]] = {
        "anonymize_many": many,
        "run_records": kernel,
        "anonymize_batch": arrow,
    }
    results = {name: side() for name, side in sides.items()}  # the first call loads and warms up
    same = all(result == results["anonymize_many"] for result in results.values())
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    names = list(sides)
    for number in range(given.rounds):
        for name in names[number % 3 :] + names[: number % 3]:
            load_tagger()._cache.clear()  # it remembers what it read last, which would flatter the next side
            began = time.process_time()
            sides[name]()
            seconds[name].append(time.process_time() - began)
    ratios = {n: median(a / b for a, b in zip(seconds[n], seconds["anonymize_many"], strict=True)) for n in names}
    print(f"{len(texts):,} texts, {sum(map(len, texts)):,} characters, policy {policy.name}, {given.rounds} rounds")
    print(f"{'side':<18}{'seconds':>9}{'ratio':>8}{'least':>8}{'most':>8}")
    for name in names:
        each = [a / b for a, b in zip(seconds[name], seconds["anonymize_many"], strict=True)]
        print(f"{name:<18}{median(seconds[name]):>9.3f}{ratios[name]:>8.3f}{min(each):>8.3f}{max(each):>8.3f}")
    print(f"texts {'identical' if same else 'DIFFERENT'}")
    told = {name: round(ratio, 4) for name, ratio in ratios.items()}
    row = {"benchmark": "kernel", "texts": len(texts), "policy": policy.name, "rounds": given.rounds}
    print(json.dumps(row | {"ratios": told, "identical": same}))
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
