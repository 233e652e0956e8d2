"""How fast the rules and the default policy are, beside Presidio in the same run.

usage: python benchmarks/speed.py TEXTS [--presidio PYTHON --script presidio_speed.py] [--rounds 3] [--only-sizes]

TEXTS is a folder with earnings.txt, dense.txt (2 M characters each) and short.json (a list of texts of about 500
characters). PYTHON is an interpreter with presidio-analyzer; the script takes MODE TEXT [DOCSIZE] and prints one JSON
line with chars_per_cpu_s. Both sides run alternately, one core, and the ratio is that of the medians.
"rules" is the policy "default" without the tagger, "chain" is all of it, tagger included: both detect and link.
By document length each runs over the beginning of dense.txt: 2 MB (rules) or 400 kB (chain), in a new process and then
again ("cold", "warm"). Presidio runs its rules alone, unless the script gives it a model.
"First 2 MB" begins in a fresh process, whose automata and imports are still cold; "sustained" is the median of eight
further passes (Presidio's run takes that long). Characters per CPU second. Prints a table and, last, one line of JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import median

OURS = r"""
import json, resource, sys, time, warnings
warnings.simplefilter("ignore")
what, path = sys.argv[1], sys.argv[2]
start = time.perf_counter()
import allonym
from allonym.link import link
from allonym.policy import Policy
policy = Policy.load("default")
if what != "chain":
    policy = policy.with_(detectors=tuple(name for name in policy.detectors if name != "tagger"))
allonym.detect("warm up", policy)
ready = time.perf_counter() - start
base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
def cut(text, size):
    docs, i = [], 0
    while i < len(text):
        j = min(len(text), i + size)
        if j < len(text):
            k = text.rfind(" ", i + size // 2, j)
            j = k if k > 0 else j
        docs.append(text[i:j]); i = j
    return docs
def run(docs):
    cpu = time.process_time()
    for text in docs:
        document = allonym.Document("", text)
        link(document, allonym.detect(document, policy), policy.taxonomy)
    return sum(map(len, docs)) / (time.process_time() - cpu)
out = {"ready_s": ready, "rss_mb": base}
if what == "rate":
    text = open(path, encoding="utf-8").read()
    docs = cut(text, 2000)
    out["first_pass"] = run(docs)
    rates = [run(docs) for _ in range(8)]
    out["chars_per_cpu_s"] = sorted(rates)[len(rates) // 2]
elif what in ("rules", "chain"):
    text = open(path, encoding="utf-8").read()[:2_000_000 if what == "rules" else 400_000]
    docs = cut(text, int(sys.argv[3]))
    out["cold"] = run(docs)
    if what == "chain":
        from allonym.models.tagger import load_tagger
    rates = []
    for _ in range(5 if what == "rules" else 1):
        if what == "chain":  # what the first pass remembers would flatter the second
            load_tagger()._remember_window_outputs.cache_clear()
        rates.append(run(docs))
    out["warm"] = sorted(rates)[len(rates) // 2]
elif what == "dictionary":
    import random
    from allonym.policy import TermList
    rng = random.Random(1)
    word = lambda: "".join(rng.choices("abcdefghijklmnoprstuv", k=7)).title()
    terms = {f"{word()} {word()}" for _ in range(100_000)}
    docs = cut(open(path, encoding="utf-8").read(), 2000)
    plain, rates = policy, []
    for policy in (plain, plain.with_(dictionary=(TermList("PERSON", tuple(terms)),))):
        run(docs)
        rates.append(sorted(run(docs) for _ in range(5))[2])
    out["kept"] = rates[1] / rates[0]
elif what == "large":
    text = open(path, encoding="utf-8").read() * 5
    docs = cut(text, 2000)
    run(docs[:500])
    rates = [(run(docs), run([text])) for _ in range(2)]
    out["small"], out["large"] = (sorted(r[i] for r in rates)[-1] for i in (0, 1))
else:
    texts = json.load(open(path, encoding="utf-8"))
    for t in texts[:50]: allonym.anonymize(t, policy)
    times = []
    for t in texts:
        a = time.perf_counter(); allonym.anonymize(t, policy); times.append(time.perf_counter() - a)
    times.sort()
    out["p50_ms"], out["p95_ms"] = times[len(times) // 2] * 1e3, times[int(len(times) * .95)] * 1e3
out["peak_rss_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps(out))
"""


DOCUMENT_SIZES = (2_000, 20_000, 400_000)


def last_json(command: list[str]) -> dict[str, float]:
    env = {**os.environ, "OMP_NUM_THREADS": "1", "LIMIT": "20"}
    out = subprocess.run(command, check=True, capture_output=True, text=True, env=env).stdout
    return json.loads(out.strip().splitlines()[-1])


def measure_sizes(path: Path, presidio: str | None, script: Path | None, rounds: int) -> dict[str, float]:
    """Print the rates of rules and chain by document length, and their ratios to Presidio's."""
    figures: dict[str, float] = {}
    titles = "".join(f"{title:>12}" for title in ("rules cold", "warm", "chain cold", "warm", "Presidio"))
    print(f"{'characters a document':28}{titles}  over Presidio")
    for size in DOCUMENT_SIZES:
        rates: dict[str, list[float]] = {}
        for _ in range(rounds):
            for what in ("rules", "chain"):
                row = last_json([sys.executable, "-c", OURS, what, str(path), str(size)])
                for state in ("cold", "warm"):
                    rates.setdefault(f"{what}_{state}", []).append(row[state])
            if presidio:
                row = last_json([presidio, str(script), "all-blank", str(path), str(size)])
                rates.setdefault("presidio", []).append(row["chars_per_cpu_s"])
        medians = {what: median(values) for what, values in rates.items()}
        theirs = medians.get("presidio", 0.0)
        ratios = [medians[what] / theirs for what in medians if what != "presidio"] if theirs else []
        line = "".join(f"{rate:12,.0f}" for rate in medians.values())
        print(f"{size:<28,}{line}  " + " ".join(f"{ratio:.2f}" for ratio in ratios), flush=True)
        figures |= {f"{what}_{size}": rate for what, rate in medians.items()}
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("texts", type=Path)
    parser.add_argument("--presidio", help="python with presidio-analyzer")
    parser.add_argument("--script", type=Path, help="presidio_speed.py")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--only-sizes", action="store_true", help="only the table of rules and chain by document length"
    )
    args = parser.parse_args()
    figures = measure_sizes(args.texts / "dense.txt", args.presidio, args.script, args.rounds)
    if args.only_sizes:
        print(json.dumps({key: round(value, 4) for key, value in figures.items()}))
        return
    print(f"{'':28}{'allonym':>14}{'Presidio all':>14}{'ratio':>8}")
    for name in ("earnings", "dense"):
        path = str(args.texts / f"{name}.txt")
        ours: list[dict[str, float]] = []
        theirs: list[float] = []
        for _ in range(args.rounds):
            if args.presidio:
                theirs.append(last_json([args.presidio, str(args.script), "all-blank", path])["chars_per_cpu_s"])
            ours.append(last_json([sys.executable, "-c", OURS, "rate", path]))
        if theirs:
            figures[f"{name}_presidio"] = median(theirs)
        for key, what in (("chars_per_cpu_s", "sustained"), ("first_pass", "first 2 MB")):
            rate = figures[f"{name}_{key}"] = median(one[key] for one in ours)
            line = f"{f'{name}, {what}':28}{rate:14,.0f}"
            if theirs:
                figures[f"{name}_{key}_ratio"] = rate / median(theirs)
                line += f"{median(theirs):14,.0f}{rate / median(theirs):8.1f}"
            print(line, flush=True)
    large = last_json([sys.executable, "-c", OURS, "large", str(args.texts / "earnings.txt")])
    figures["large_over_small"] = large["large"] / large["small"]
    print(f"{'10 MB document / 2 kB ones':28}{figures['large_over_small']:14.2f}")
    listed = last_json([sys.executable, "-c", OURS, "dictionary", str(args.texts / "earnings.txt")])
    figures["rate_kept_with_dictionary"] = listed["kept"]
    print(f"{'rate with 100,000 terms':28}{listed['kept']:14.2f}")
    short = last_json([sys.executable, "-c", OURS, "latency", str(args.texts / "short.json")])
    figures |= {k: short[k] for k in ("p50_ms", "p95_ms", "ready_s", "rss_mb", "peak_rss_mb")}
    print(f"{'500 characters, p50 / p95 ms':28}{short['p50_ms']:14.3f}{short['p95_ms']:14.3f}")
    print(f"{'import and first result, s':28}{short['ready_s']:14.2f}")
    print(f"{'resident memory, MB':28}{short['peak_rss_mb']:14.0f}")
    print(json.dumps({k: round(v, 4) for k, v in figures.items()}))


if __name__ == "__main__":
    main()
