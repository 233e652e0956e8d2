"""How many names the tagger of many languages covers, by language, the worst first, and how fast it reads.

usage: python benchmarks/other_languages.py DATA [--recipe languages] [--weights packages/languages/allonym_languages]

``--recipe polish`` measures the package for Polish. DATA is the folder that the weights were trained from. Operating
points are chosen on the dev parts; figures are of the test parts, whose documents nothing was trained on (all), by
corpus, and of corpora of other makers (uner_*_pud).

covered   share of the words of names that are covered, at the points for 6 and 8 % needless
needless  share of the letters outside of names that are covered at that point
missed    share of the names of which no word is covered, at 8 %
F1        strict, of borders and kind

The last line is JSON with every figure.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

from allonym.models.nametagger import open_tagger
from allonym.train.multilingual import load_parts, load_recipe
from allonym.train.multilingual_score import measure_model

PACKAGES = Path(__file__).resolve().parent.parent / "packages"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--recipe", default="languages", choices=("languages", "polish"))
    parser.add_argument("--weights", type=Path)
    options = parser.parse_args()
    weights = options.weights or PACKAGES / options.recipe / f"allonym_{options.recipe}"
    model, parts = open_tagger(weights), load_parts(options.data, load_recipe(options.recipe))
    figures = measure_model(model, parts["dev"], parts["test"], parts["beside"])
    print("language  part                        words  cov. 6 %  needless  cov. 8 %  needless  missed  F1")
    rows = [(code, part, f) for code, groups in figures["measured"].items() for part, f in groups.items()]
    for code, part, row in sorted(rows, key=lambda r: (r[1] != "test", r[2]["high-recall"]["covered"])):
        low, high = row["balanced"], row["high-recall"]
        shares = (low["covered"], low["needless"], high["covered"], high["needless"], high["missed"], row["strict_f1"])
        print(f"{code:<9} {part:<26} {high['words']:>6}", *(f"{100 * share:8.1f}" for share in shares))
    print("read:", " ".join(figures["languages"]))
    sample = (parts["beside"] or parts["test"])[:4000]
    start = time.perf_counter()
    words = sum(len(model(s.text, s.language)[0]) for s in sample)
    figures["words_per_second"] = round(words / (time.perf_counter() - start))
    print(f"{figures['words_per_second']} words and marks a second, one text at a time")
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
