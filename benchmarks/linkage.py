"""How well an intruder who has learnt on anonymised texts of the same people tells whom another one is about.

usage: python benchmarks/linkage.py FILE [--texts 400] [--folds 5]

FILE is JSONL, plain or gzipped, with the fields text, subject and, where subjects are told apart in groups only, group
or category (in the record, or in its meta). Each text is anonymised by itself: with the tags of `default`, with
`pseudonyms` and a key alone, and with `pseudonyms`, the key and a scope, which asks for one pseudonym in all documents.
The intruder (`linkage`, words 1-2 and characters 3-5, placeholders read as words) learns on the other folds of the same
version and chooses among the subjects of the group.

Prints the share of texts whose subject it names first, and, last, one line of JSON.
"""

from __future__ import annotations

import argparse
import gzip
import json
from pathlib import Path
from typing import Any

from allonym.intruder.panel import measure_panel
from allonym.pipeline import anonymize

KEY = b"a key for the benchmark, no secret"
VERSIONS: dict[str, dict[str, Any]] = {
    "default": {"policy": "default"},
    "pseudonyms": {"policy": "pseudonyms", "key": KEY},
    "pseudonyms, one scope": {"policy": "pseudonyms", "key": KEY, "scope": "corpus"},
}


def read_rows(path: Path, count: int) -> list[tuple[str, str, str]]:
    """Text, subject and group of the first texts that have a subject."""
    rows = []
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            about = {**row.get("meta", {}), **row}
            if about.get("subject"):
                rows.append((row["text"], str(about["subject"]), str(about.get("group", about.get("category", "")))))
    return rows[:count] if count else rows


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("file", type=Path, metavar="FILE")
    options.add_argument("--texts", type=int, default=0, help="read so many texts only; 0: all")
    options.add_argument("--folds", type=int, default=5)
    given = options.parse_args()
    texts, subjects, groups = zip(*read_rows(given.file, given.texts), strict=True)
    print(f"{len(texts)} texts, {len(set(subjects))} subjects, {len(set(groups))} groups")
    figures: dict[str, float] = {}
    for name, how in VERSIONS.items():
        made = [anonymize(text, **how).text for text in texts]
        panel = measure_panel(texts, made, subjects, groups=groups, folds=given.folds)
        adaptive = next(row.identified for row in panel.rows if row.name == "adaptive")
        figures[name] = round(adaptive.value, 4)
        print(f"{name:24} {adaptive.value:.1%} named first, of {adaptive.n}", flush=True)
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
