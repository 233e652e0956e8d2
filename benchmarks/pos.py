"""How often the tagger's second head gives the part of speech that a treebank gives.

usage: python benchmarks/pos.py FILE [--model FOLDER]

FILE is JSONL: {"text", "tokens", "upos"}. A word has the part of the treebank's token in which it begins. Prints the
share that is right, the parts that are most often confused, and, last, one line of JSON.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path

from allonym.models.pos import parts_of_speech
from allonym.models.tagger import ENGLISH, load_tagger
from allonym.models.tags import PARTS
from allonym.train.examples import make_part_of_speech_example
from allonym.train.records import read_json_lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--model", type=Path, default=ENGLISH)
    given = parser.parse_args()
    model = load_tagger(given.model)
    right: Counter[str] = Counter()
    total: Counter[str] = Counter()
    wrong: Counter[tuple[str, str]] = Counter()
    for _, record in read_json_lines(given.file):
        gold = make_part_of_speech_example(record, "").parts
        for number, (_, _, part) in zip(gold, parts_of_speech(record["text"], model), strict=True):
            if number >= 0:
                total[PARTS[number]] += 1
                right[PARTS[number]] += PARTS[number] == part
                if PARTS[number] != part:
                    wrong[PARTS[number], part] += 1
    for part in sorted(total, key=lambda p: -total[p]):
        print(f"{part:6} {total[part]:6} {right[part] / total[part]:7.1%}")
    for (gold, said), n in wrong.most_common(5):
        print(f"{gold} called {said}: {n}")
    share = right.total() / total.total()
    print(f"all    {total.total():6} {share:7.1%}")
    print(json.dumps({"benchmark": "pos", "file": given.file.name, "words": total.total(), "right": round(share, 5)}))


if __name__ == "__main__":
    main()
