"""How many of the soft identifiers in descriptions of people the tagger finds: occupations, origins, works, awards.

usage: python benchmarks/soft_identifiers.py TEXTS [--gold FILE] [--operating-point NAME]
                                            [--chain] [--model FOLDER]

TEXTS is the JSONL (.gz) of Textwash's study 1 (P3); the gold marks are in benchmarks/gold, as offsets without text. A
mark is found whole when all its words are covered, in part when some are; whatever the label. The share with the right
label is told apart. Texts are weighed alike in the last column, since one text repeats a sentence ten times.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from hashlib import sha256
from pathlib import Path

from allonym.labels import TAXONOMY
from allonym.models.tagger import ENGLISH
from allonym.models.words import split_words
from allonym.pipeline import detect
from allonym.policy import Policy, check_operating_point
from allonym.train.records import read_json_lines

GOLD = Path(__file__).parent / "gold" / "textwash_50.jsonl"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("texts", type=Path)
    parser.add_argument("--gold", type=Path, default=GOLD)
    parser.add_argument("--operating-point", default="high-recall")
    parser.add_argument("--chain", action="store_true", help="all detectors of the default policy")
    parser.add_argument("--model", default=str(ENGLISH))
    given = parser.parse_args()
    point = given.operating_point
    point = check_operating_point(float(point) if point[0].isdigit() else point, "--operating-point")
    policy = Policy.load("default").with_(
        exclude=(), operating_points={"*": point}, tables={"tagger": {"model": given.model}}
    )
    if not given.chain:
        policy = policy.with_(detectors=("tagger",), threshold=0.0)
    texts = {r["id"]: r["text"] for _, r in read_json_lines(given.texts)}
    marks: dict[str, list[tuple[float, float, bool, str]]] = defaultdict(list)
    needless = outside = 0
    for _, row in read_json_lines(given.gold):
        text = texts[row["id"]]
        if sha256(text.encode()).hexdigest() != row["sha256"]:
            raise SystemExit(f"{row['id']}: another text than the one that was marked")
        found = detect(text, policy)
        covered, said = bytearray(len(text)), [""] * len(text)
        for span in found:
            for i in range(span.start, span.end):
                covered[i], said[i] = 1, span.label
        gold = bytearray(len(text))
        for start, end, label in row["spans"]:
            gold[start:end] = b"\1" * (end - start)
            inside = [(a, b) for a, b in split_words(text[start:end]) if text[start + a].isalnum()]
            hits = sum(all(covered[start + a : start + b]) for a, b in inside)
            right = any(_is_same_label(said[start + a], label) for a, _ in inside)
            marks[label].append((hits / max(1, len(inside)), hits, right, row["id"]))
        for a, b in split_words(text):
            if text[a].isalnum() and not any(gold[a:b]):
                outside += 1
                needless += any(covered[a:b])
    print(f"{'label':30} {'marks':>6} {'whole':>7} {'touched':>8} {'right label':>12} {'whole, by text':>15}")
    rows = []
    for label in sorted(marks, key=lambda k: -len(marks[k])):
        of = marks[label]
        n = len(of)
        by_text: dict[str, list[bool]] = defaultdict(list)
        for share, _, _, text_id in of:
            by_text[text_id].append(share == 1)
        figures = {
            "whole": sum(m[0] == 1 for m in of) / n,
            "touched": sum(m[1] > 0 for m in of) / n,
            "right_label": sum(m[2] for m in of) / n,
            "whole_by_text": sum(sum(v) / len(v) for v in by_text.values()) / len(by_text),
        }
        print(
            f"{label:30} {n:6} "
            + " ".join(f"{v:{w}.1%}" for v, w in zip(figures.values(), (7, 8, 12, 15), strict=True))
        )
        rows.append({"label": label, "marks": n} | {k: round(v, 4) for k, v in figures.items()})
    print(f"words outside of all marks that are covered: {needless / outside:.1%} of {outside}")
    print(json.dumps({"benchmark": "soft_identifiers", "operating_point": point, "chain": given.chain, "rows": rows}))


def _is_same_label(said: str, label: str) -> bool:
    return bool(said) and TAXONOMY.lineage(said)[-1] == TAXONOMY.lineage(label)[-1]


if __name__ == "__main__":
    main()
