"""Whether a change made anything slower: the speed benchmarks of two checkouts, in turn, on the same machine.

    python benchmarks/compare_speed.py BEFORE AFTER --data FOLDER --texts FOLDER [--rounds 3] [--only growth,restore]

BEFORE and AFTER are checkouts; each runs its own benchmarks with its own source. ``--data`` is a folder with
``emails/enron_emailcoref_train.jsonl`` and ``earnings/earnings21_half_shared.jsonl.gz``; ``--texts`` is the folder that
``speed.py`` describes. The checkouts take turns, each round begins with the other one, and a ratio is the median over
the rounds of AFTER divided by BEFORE: cost, so that 1.05 means 5 % slower; for rates it is the inverse. Prints a line
for each figure and, last, one line of JSON. Ends with 1 if a ratio is over ``--limit``.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median

MAILS, CALLS = "{data}/emails/enron_emailcoref_train.jsonl", "{data}/earnings/earnings21_half_shared.jsonl.gz"
BENCHMARKS = {
    "growth": ("growth.py --sizes 20000 200000", r"microseconds\."),
    "rules": ("speed.py {texts} --rounds 1", r"_pass$|per_cpu_s$|p50_ms|p95_ms|ready_s"),
    "tagger": (f"tagger_speed.py {MAILS} --rounds 1 --characters 100000 --side detect", "seconds"),
    "pseudonyms": (f"pseudonym_speed.py {MAILS} --rounds 3 --characters 50000", "_s$"),
    "restore": ("restore_speed.py --runs 3", r"(tags|people|mixed)\..*"),
    "stream": ("stream_speed.py --versions 40", r"p50"),
    "gateway": (f"gateway.py {CALLS} --prompts 24 --clients 1", r"\.0$"),
    "swap": (f"swap_growth.py {CALLS} --sizes 2000", r"sizes\."),
    "mixtures": ("mixture_speed.py --rounds 1 --large 100000", "seconds"),
}
"""The command line of each benchmark, and which of its figures are times or rates."""
RATES = re.compile(r"_pass$|per_cpu_s$")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--texts", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", help="names of benchmarks, separated by commas: " + ", ".join(BENCHMARKS))
    parser.add_argument("--least", type=float, default=0.002, help="leave out times below this, which are noise")
    parser.add_argument("--limit", type=float, default=1.05)
    options = parser.parse_args()
    checkouts = (options.before.resolve(), options.after.resolve())
    names = options.only.split(",") if options.only else list(BENCHMARKS)
    if unknown := set(names) - set(BENCHMARKS):
        parser.error(f"no benchmark {', '.join(sorted(unknown))}; there are {', '.join(BENCHMARKS)}")
    row: dict[str, dict[str, float]] = {}
    print(f"{'benchmark':11} {'figure':44} {'before':>11} {'after':>11} {'ratio':>6} {'least':>6} {'most':>6}")
    for name in names:
        rounds: list[tuple[dict[str, float], dict[str, float]]] = []
        for number in range(options.rounds):
            figures = {c: run_benchmark(c, name, options) for c in (checkouts if number % 2 else checkouts[::-1])}
            rounds.append((figures[checkouts[0]], figures[checkouts[1]]))
        row[name] = {}
        for figure in sorted(set.intersection(*(set(f) for pair in rounds for f in pair))):
            pairs = [(before[figure], after[figure]) for before, after in rounds]
            if min(map(min, pairs)) < options.least:
                continue
            ratios = sorted((b / a if RATES.search(figure) else a / b) for b, a in pairs)
            row[name][figure] = round(median(ratios), 3)
            first, second = (median(pair[side] for pair in pairs) for side in (0, 1))
            print(
                f"{name:11} {figure[-44:]:44} {first:11.4g} {second:11.4g} "
                f"{median(ratios):6.3f} {ratios[0]:6.3f} {ratios[-1]:6.3f}",
                flush=True,
            )
    print(json.dumps({"benchmark": "compare_speed", "rounds": options.rounds, "ratios": row}))
    return int(any(ratio > options.limit for figures in row.values() for ratio in figures.values()))


def run_benchmark(checkout: Path, name: str, options: argparse.Namespace) -> dict[str, float]:
    """Run a benchmark of a checkout with its own source; return its times and rates by the path of their JSON keys.

    ``processor_s`` is the processor time of the whole benchmark, start and preparation included.
    """
    command, pattern = BENCHMARKS[name]
    script, *arguments = command.format(data=options.data.resolve(), texts=options.texts.resolve()).split(" ")
    environment = {**os.environ, "PYTHONPATH": str(checkout / "src"), "OMP_NUM_THREADS": "1"}
    line = [sys.executable, str(checkout / "benchmarks" / script), *arguments]
    began = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    run = subprocess.run(line, capture_output=True, text=True, env=environment, cwd=checkout)
    if run.returncode not in (0, 1) or not run.stdout.strip():
        raise SystemExit(f"{checkout.name}: {script} failed:\n{run.stderr[-2000:]}")
    figures = walk_numbers(json.loads(run.stdout.strip().splitlines()[-1]), "")
    processor = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - began
    return {path: value for path, value in figures if re.search(pattern, path)} | {"processor_s": processor}


def walk_numbers(value: object, path: str) -> Iterator[tuple[str, float]]:
    match value:
        case dict() | list():
            for key, item in value.items() if isinstance(value, dict) else enumerate(value):
                yield from walk_numbers(item, f"{path}.{key}".removeprefix("."))
        case bool():
            pass
        case int() | float():
            yield path, float(value)


if __name__ == "__main__":
    sys.exit(main())
