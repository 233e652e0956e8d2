"""Does a promise from reviewed documents hold as often as it says?

usage: python benchmarks/promises.py FILE... [--documents 500] [--draws 500] [--policy default] [--cache FOLDER]

FILE is an annotated corpus, as for `allonym evaluate promise`. Each document is searched at every threshold once; then
500 times n documents are drawn, a promise is made from them, and the mean loss of all documents of the corpus at the
promised threshold is compared with the promise. A promise is broken if the loss is larger. Draws of n documents are
without replacement from the corpus ("of N", the size is used) and with replacement ("any", it is not).

offered     share of the draws with a promise; the others ask for more documents
limit       of the promise; with "!": the true mean loss at one of the thresholds, the hardest to tell from less
broken      share of all draws whose promise is broken: 5 % may be, and by chance up to 7 % of 500 draws are
threshold   the median of those offered, and the needless cover that it costs in the corpus
expected    conformal risk control: the mean over the draws of the loss at its threshold; at most the limit is promised
            (draws that offer none lose nothing), and in parentheses how often a single draw was above the limit

Prints a table and, last, one line of JSON with every figure.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from pathlib import Path

import numpy as np

from allonym.evaluate.promises import (
    THRESHOLDS,
    DocumentLosses,
    choose_expected_threshold,
    choose_threshold,
    group_record_texts,
    measure_losses,
)
from allonym.policy import Policy
from allonym.stats.samples import share
from allonym.train.records import read_records

SIZES = (60, 150, 300)
LIMITS = (0.01, 0.02, 0.05, 0.1, 0.2)
SHARP = [3, 7, 10, 12]
"""Numbers of the thresholds whose true mean loss is a limit too: the hardest, since every promise of it is broken."""
CONFIDENCE = 0.95


def load_losses(path: Path, policy: Policy, documents: int, cache: Path | None) -> DocumentLosses:
    """Measure the losses of a random choice of a corpus' documents, or read them from an earlier run."""
    kept = cache and cache / f"{path.name}.{policy.name}.{documents}.npz"
    if kept and kept.exists():
        with np.load(kept) as file:
            return DocumentLosses(*(file[name] for name in DocumentLosses.__slots__))
    texts = group_record_texts(read_records(path))
    random.Random(0).shuffle(texts)
    losses = measure_losses(texts[:documents], policy)
    if kept:
        kept.parent.mkdir(parents=True, exist_ok=True)
        np.savez(kept, **{name: getattr(losses, name) for name in DocumentLosses.__slots__})
    return losses


def measure_coverage(losses: DocumentLosses, size: int, limit: float, draws: int, is_whole: bool) -> dict[str, object]:
    """Draw documents many times, make promises, and compare them with all documents."""
    rng = np.random.default_rng(0)
    values = losses.missed[:, 1:]
    n, risks = len(values), values.mean(axis=0)
    needless = losses.covered[:, 1:].sum(axis=0) / losses.outside.sum()
    chosen, expected = [], []
    for _ in range(draws):
        drawn = values[rng.permutation(n)[:size] if is_whole else rng.integers(0, n, size)]
        chosen.append(choose_threshold(drawn, limit, CONFIDENCE, n if is_whole else None))
        expected.append(choose_expected_threshold(drawn, limit))
    offered = [c for c in chosen if c is not None]
    broken = sum(risks[c] > limit for c in offered)
    kept = [0.0 if c is None else float(risks[c]) for c in expected]
    middle = int(np.median(offered)) if offered else None
    wilson = share(broken, draws)
    return {
        "n": size,
        "limit": limit,
        "population": n if is_whole else None,
        "offered": len(offered) / draws,
        "broken": broken / draws,
        "broken_low": wilson.low,
        "broken_high": wilson.high,
        "threshold": None if middle is None else THRESHOLDS[middle],
        "needless": None if middle is None else float(needless[middle]),
        "expected_risk": float(np.mean(kept)),
        "expected_broken": float(np.mean([risk > limit for risk in kept])),
    }


def main() -> None:
    """Measure, print a table and a line of JSON."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--documents", type=int, default=500)
    parser.add_argument("--draws", type=int, default=500)
    parser.add_argument("--policy", default="default")
    parser.add_argument("--cache", type=Path, help="folder that keeps the losses for the next run")
    args = parser.parse_args()
    policy = Policy.load(args.policy)
    results = []
    head = ("corpus", "of", "n", "limit", "offered", "broken", "threshold", "needless", "expected")
    print("".join(f"{name:>{26 if name == 'corpus' else 11}}" for name in head))
    for path in args.files:
        losses = load_losses(path, policy, args.documents, args.cache)
        total = len(losses.missed)
        print(f"{path.name}: {total} documents, mean loss by threshold", file=sys.stderr)
        means = zip(THRESHOLDS, losses.missed[:, 1:].mean(axis=0), strict=True)
        print(" ".join(f"{threshold:g}:{mean:.3f}" for threshold, mean in means), file=sys.stderr)
        for size in SIZES:
            risks = losses.missed[:, 1:].mean(axis=0)
            sharp = sorted({float(risk) * (1 - 1e-9) for risk in risks[SHARP]} - {0.0})
            for limit in (*LIMITS, *sharp):
                for is_whole in (True, False):
                    if is_whole and size >= total:
                        continue
                    row = measure_coverage(losses, size, limit, args.draws, is_whole)
                    results.append({"corpus": path.name, **row})
                    if not row["offered"] and not row["expected_risk"]:
                        continue
                    shown = (
                        path.name[:25],
                        row["population"] or "any",
                        size,
                        f"{limit:.0%}" if limit in LIMITS else f"{limit:.2%} !",
                        f"{row['offered']:.0%}",
                        f"{row['broken']:.1%}",
                        "-" if row["threshold"] is None else f"{row['threshold']:g}",
                        "-" if row["needless"] is None else f"{row['needless']:.1%}",
                        f"{row['expected_risk']:.2%} ({row['expected_broken']:.0%})",
                    )
                    print("".join(f"{value:>{26 if i == 0 else 11}}" for i, value in enumerate(shown)), flush=True)
    worst = max(results, key=lambda row: row["broken"])
    above = sum(row["broken_low"] > 1 - CONFIDENCE for row in results)
    print(f"worst: {worst['broken']:.1%} broken; {above} of {len(results)} rows are surely above {1 - CONFIDENCE:.0%}")
    print(json.dumps({"promises": results}))


if __name__ == "__main__":
    main()
