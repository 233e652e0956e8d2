"""How much text outside of names a tagger covers when it covers 99, 98 or 95 % of the words of names.

usage: python benchmarks/needless.py FILE... [--model FOLDER] [--policy default] [--limit N]

FILE is JSONL, plain or gzipped, as for ner.py. Only its dev and test parts are judged, together: documents of which no
recipe trains on any part. Name labels are those that PER, ORG, LOC and MISC stand for in
src/allonym/train/labelmap.toml: people, organisations, places, and other names (products, events, works, awards, laws,
origins, languages). A word of a name is a word of which any character stands in a span of a name label. A word outside
of names stands in no span at all; a word in a span of another label is neither. Where a file annotates only some names
(UNER: no products), cover of the others counts as needless. Words without letters and digits do not count.

99, 98, 95 %  share of the letters and digits outside of names that are covered if the threshold of the chance mass of
              the name labels, summed for each word, is such that this share of the words of names reaches it
threshold     the threshold that does so in this file
point         a policy's tagger at one of its three operating points: share of the words of names that any finding
              covers, and share of the letters and digits outside of names that findings of name labels cover

Prints two tables and, last, one line of JSON with every figure. Shares are in per cent.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from allonym.detection.tagger import build_detector
from allonym.document import Document, Span
from allonym.errors import AllonymError
from allonym.labels import TAXONOMY
from allonym.models.tagger import ENGLISH, TaggerModel, load_tagger
from allonym.policy import OPERATING_POINTS, Policy
from allonym.train.corpus import assign_train_dev_test
from allonym.train.labelmap import find_targets
from allonym.train.points import COVERED, NAME_LABELS
from allonym.train.records import read_json_lines

SHARES = tuple(COVERED.values())
NEITHER, OUTSIDE, NAME = 0, 1, 2

Detectors = dict[str, Callable[[Document], list[Span]]]


def select_unseen_records(path: Path) -> list[dict[str, Any]]:
    """The records of a file that belong to its dev or test part."""
    records = [record for _, record in read_json_lines(path)]
    parts = assign_train_dev_test(records)
    return [r for i, r in enumerate(records) if r.get("text") and parts[str(r.get("id", i))] != "train"]


def mark_characters(record: dict[str, Any], source: str) -> Any:
    """For each character of a record's text NAME, OUTSIDE or NEITHER."""
    out = np.full(len(record["text"]), OUTSIDE, np.int8)
    spans = [(span, find_targets(span["label"], source) or frozenset()) for span in record.get("spans") or ()]
    for span, targets in sorted(spans, key=lambda item: bool(item[1] & NAME_LABELS)):  # names last: they count more
        out[span["start"] : span["end"]] = NAME if targets & NAME_LABELS else NEITHER
    return out


def classify_words(marks: Any, borders: Sequence[tuple[int, int]]) -> Any:
    """For each word NAME, NEITHER or OUTSIDE: NAME if any of its characters is one, OUTSIDE if all are."""
    rows = (marks[start:end] for start, end in borders)
    return np.array([NAME if (row == NAME).any() else row.min() for row in rows], np.int8)


def cover_words(text: str, borders: Sequence[tuple[int, int]], spans: Sequence[Span]) -> Any:
    """For each word whether findings cover it wholly."""
    covered = np.zeros(len(text), bool)
    for span in spans:
        covered[span.start : span.end] = True
    return np.array([covered[start:end].all() for start, end in borders], bool)


def is_name_finding(span: Span) -> bool:
    return not NAME_LABELS.isdisjoint({*TAXONOMY.lineage(span.label), *TAXONOMY.descendants(span.label)})


def measure_words(record: dict[str, Any], source: str, model: TaggerModel, detectors: Detectors) -> Any:
    """Rows of a text's words: letters and digits, class, mass of name labels, then two flags for each detector."""
    text = record["text"]
    tagged = model(text)
    columns = [1 + 2 * i + k for i, label in enumerate(model.labels) if label in NAME_LABELS for k in (0, 1)]
    cells = [
        np.array([sum(map(str.isalnum, text[start:end])) for start, end in tagged.borders]),
        classify_words(mark_characters(record, source), tagged.borders),
        np.exp(tagged.tags[:, columns].astype(np.float64)).sum(axis=1),
    ]
    for find_names in detectors.values():
        spans = find_names(Document("", text))
        cells.append(cover_words(text, tagged.borders, spans))
        cells.append(cover_words(text, tagged.borders, [span for span in spans if is_name_finding(span)]))
    rows = np.column_stack(cells)
    return rows[rows[:, 0] > 0]


def compute_figures(words: Any, points: Sequence[str]) -> dict[str, Any]:
    """Every figure of one file from the rows of its words."""
    size, kind, mass = words[:, 0], words[:, 1], words[:, 2]
    names, outside = kind == NAME, kind == OUTSIDE
    if not names.any() or not outside.any():
        raise AllonymError("no words of names, or none outside of them, in the dev and test parts")
    ranked = np.sort(mass[names])[::-1]
    out: dict[str, Any] = {"name_words": int(names.sum()), "outside_characters": int(size[outside].sum())}

    def share_needless(is_covered: Any) -> float:
        return round(100 * float(size[outside & is_covered].sum() / size[outside].sum()), 2)

    out["needless"], out["threshold"] = {}, {}
    for share in SHARES:
        threshold = ranked[int(share * len(ranked))]
        out["needless"][f"{share:.0%}"] = share_needless(mass >= threshold)
        out["threshold"][f"{share:.0%}"] = round(float(threshold), 4)
    out["points"] = {}
    for n, point in enumerate(points):
        by_any, by_name = words[:, 3 + 2 * n] > 0, words[:, 4 + 2 * n] > 0
        covered = round(100 * float(by_any[names].mean()), 2)
        out["points"][point] = {"covered": covered, "needless": share_needless(by_name)}
    return out


def make_detectors(name: str, model: str) -> Detectors:
    """The tagger of a policy, alone, at each of the three points."""
    base = Policy.load(name)
    tables = {**base.tables, "tagger": {**base.tables.get("tagger", {}), "model": model}}
    base = base.with_(detectors=("tagger",), threshold=0.0, tables=tables)
    return {point: build_detector(base.with_(operating_points={"*": point})) for point in OPERATING_POINTS}


def print_rows(rows: Sequence[dict[str, Any]], points: Sequence[str]) -> None:
    heads = "".join(f"{share:>8.0%}" for share in SHARES)
    print(f"{'needless, %':28}{'texts':>7}{'name words':>12}{heads}   threshold{heads[3:]}")
    for row in rows:
        cells = "".join(f"{value:8.2f}" for value in row["needless"].values())
        bars = "".join(f"{value:8.4f}" for value in row["threshold"].values())
        print(f"{row['file'][:27]:28}{row['texts']:7}{row['name_words']:12}{cells}      {bars}")
    print(f"\n{'covered, needless, %':28}" + "".join(f"{point:>20}" for point in points))
    for row in rows:
        cells = "".join(f"{one['covered']:12.2f}{one['needless']:8.2f}" for one in row["points"].values())
        print(f"{row['file'][:27]:28}{cells}")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("files", nargs="+", type=Path, metavar="FILE")
    options.add_argument("--model", default="", metavar="FOLDER", help="another tagger than the shipped one")
    options.add_argument("--policy", default="default", help="preset or TOML file")
    options.add_argument("--limit", type=int, default=0, help="stop after so many texts of each file")
    args = options.parse_args()
    rows = []
    try:
        model = load_tagger(Path(args.model) if args.model else ENGLISH)
        detectors = make_detectors(args.policy, args.model)
        for path in args.files:
            began = time.perf_counter()
            records = select_unseen_records(path)[: args.limit or None]
            source = path.name.partition(".")[0]
            words = np.concatenate([measure_words(record, source, model, detectors) for record in records])
            seconds = round(time.perf_counter() - began, 1)
            figures = compute_figures(words, tuple(detectors))
            rows.append({"file": path.name, "texts": len(records), **figures, "seconds": seconds})
    except AllonymError as error:
        sys.exit(f"needless.py: {error}")
    print_rows(rows, tuple(detectors))
    print(json.dumps({"benchmark": "needless", "policy": args.policy, "model": args.model, "rows": rows}))


if __name__ == "__main__":
    main()
