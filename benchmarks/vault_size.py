"""A vault with very many originals: its size, and the time and memory that one restore takes in a fresh process.

    python benchmarks/vault_size.py [--entries 1000000] [--file FILE] [--source FOLDER]

The vault is built first, half of it tags, half pseudonyms of people, in a scope of its own, with the plan of one
document; ``--file`` keeps it for the next run. Then a fresh process opens it and restores three texts: the output of
that document, an answer about it, and a text with tags out of all. ``--source`` names the folder ``src`` of another
version, which is measured as well. Prints a table and, last, one line of JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from random import Random

SECRET = b"benchmark of a vault's greatest!"
SCOPE = "million"
PER_TRANSACTION = 50_000
SYLLABLES = "ba co di fe gu ha jo ki lu me na po qui ra so te vu wi xa zo".split()
TEXT = "Ada Brook met Tom Ellery in Leeds on 3 May 2019. Write to ada.brook@example.com, said Ms Brook. They left."


def make_name(rng: Random) -> str:
    return "".join(rng.choices(SYLLABLES, k=rng.randint(2, 4))).title()


def build(path: Path, count: int) -> None:
    from allonym.pipeline import anonymize
    from allonym.policy import Policy, TermList
    from allonym.vault import Vault

    rng = Random(7)
    with Vault.create(path, SECRET) as vault:
        terms = (TermList("PERSON", ("Ada Brook", "Brook", "Tom Ellery")), TermList("CITY", ("Leeds",)))
        policy = Policy.load("pseudonyms").with_(detectors=("rules", "lexicon"), dictionary=terms)
        made = anonymize(TEXT, policy, vault=vault, scope=SCOPE, key=vault.operator_key)
        path.with_suffix(".txt").write_text(made.text, "utf-8")
        for start in range(0, count, PER_TRANSACTION):
            with vault.book(SCOPE) as book:
                for number in range(start, min(count, start + PER_TRANSACTION)):
                    original, key = f"{make_name(rng)} {make_name(rng)}", f"person {number}"
                    if number % 2:
                        book.remember(f"{make_name(rng)} {make_name(rng)}", original, "PERSON", "pseudonym@1", key)
                    else:
                        book.remember(f"<PERSON {number}>", original, "PERSON", "tag@1", key)
            print(f"{start + PER_TRANSACTION:,}", file=sys.stderr)


def measure(path: Path) -> None:
    import resource

    start = time.perf_counter()
    from allonym.restoration import restore
    from allonym.vault import Vault

    imported = time.perf_counter() - start
    base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    out = path.with_suffix(".txt").read_text("utf-8")
    sentence = out.partition(". ")[0]
    texts = {"output": out, "answer": f"As you say: {sentence}. Thanks!", "tags": "<PERSON 500000> and PERSON_2 wrote."}
    figures: dict[str, object] = {"import_s": round(imported, 2), "import_mb": base}
    with Vault.open(path, SECRET) as vault:
        for name, text in texts.items():
            start = time.perf_counter()
            result = restore(text, vault=vault, scope=SCOPE)
            figures[f"{name}_s"] = round(time.perf_counter() - start, 2)
            figures[f"{name}_restored"] = result.restored
            if name == "output":
                assert result.text == TEXT
    figures["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(json.dumps(figures))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entries", type=int, default=1_000_000)
    parser.add_argument("--file", type=Path)
    parser.add_argument("--source", type=Path)
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.measure is not None:
        measure(args.measure)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = args.file or Path(folder) / "large.vault"
        start = time.perf_counter()
        if not path.exists():
            build(path, args.entries)
        built = round(time.perf_counter() - start, 1)
        figures: dict[str, object] = {
            "entries": args.entries,
            "megabytes": path.stat().st_size // 10**6,
            "build_s": built,
        }
        command = [sys.executable, __file__, "--measure", str(path)]
        for name, source in (("before", args.source), ("now", Path(__file__).resolve().parents[1] / "src")):
            if source is not None:
                environment = {**os.environ, "PYTHONPATH": str(source)}
                done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
                figures[name] = json.loads(done.stdout.splitlines()[-1])
    for name, value in figures.items():
        print(f"{name:10} {value}")
    print(json.dumps({"benchmark": "vault_size", **figures}))


if __name__ == "__main__":
    main()
