"""Whether the tagger finds people of all origins and genders alike: share of name words covered, by group.

usage: python benchmarks/name_groups.py [--texts 6000] [--model FOLDER] [--operating-point high-recall] [--lower]

The texts are made from templates with names that training never saw (a third of each list), so the texts are easier
than human ones and the groups comparable: what differs is the name alone. Needs no data. Prints a table of the groups,
lowest first, and, last, one line of JSON.
"""

from __future__ import annotations

import argparse
import json
import math
from collections import Counter

from allonym.models.tagger import ENGLISH
from allonym.models.words import split_words
from allonym.pipeline import detect
from allonym.policy import Policy, check_operating_point
from allonym.train.synthetic import generate_texts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--texts", type=int, default=6000)
    parser.add_argument("--model", default=str(ENGLISH))
    parser.add_argument("--operating-point", default="high-recall")
    parser.add_argument("--lower", action="store_true", help="all letters small")
    given = parser.parse_args()
    point = given.operating_point
    point = check_operating_point(float(point) if point[0].isdigit() else point, "--operating-point")
    policy = Policy.load("default").with_(
        detectors=("tagger",),
        exclude=(),
        threshold=0.0,
        operating_points={"*": point},
        tables={"tagger": {"model": given.model}},
    )
    seen: Counter[tuple[str, str]] = Counter()
    missed: Counter[tuple[str, str]] = Counter()
    for record in generate_texts(given.texts, 7, held_out=True):
        meta, text = record["meta"], record["text"]
        names = [s for s in record["spans"] if s["label"] in ("PERSON_FIRSTNAME", "PERSON_LASTNAME")]
        if not names or "origin" not in meta:
            continue
        shown = text.lower() if given.lower else text
        if len(shown) != len(text):
            continue
        covered = bytearray(len(text))
        for span in detect(shown, policy):
            covered[span.start : span.end] = b"\1" * (span.end - span.start)
        for name in names:
            for a, b in split_words(name["text"]):
                if not name["text"][a].isalpha() or b - a < 2:
                    continue
                a, b = a + name["start"], b + name["start"]
                groups = [("origin", meta["origin"]), ("gender", meta.get("gender") or "unknown"), ("all", "all")]
                groups.append(("part", name["label"].removeprefix("PERSON_").lower()))
                for group in groups:
                    seen[group] += 1
                    missed[group] += not all(covered[a:b])
    rows = []
    print(f"{'group':24} {'words':>7} {'covered':>8}  95 % interval (Wilson)")
    for group in sorted(seen, key=lambda g: (g[0], -missed[g] / seen[g])):
        n, share = seen[group], 1 - missed[group] / seen[group]
        low, high = compute_wilson_interval(share, n)
        print(f"{group[0] + ' ' + group[1]:24} {n:7} {share:8.1%}  {low:.1%} to {high:.1%}")
        rows.append({"group": group[0], "value": group[1], "words": n, "covered": round(share, 5)})
    print(json.dumps({"benchmark": "name_groups", "operating_point": point, "lower": given.lower, "rows": rows}))


def compute_wilson_interval(share: float, n: int, z: float = 1.96) -> tuple[float, float]:
    """Wilson's interval of a share of ``n`` (1927, doi:10.1080/01621459.1927.10502953)."""
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    return middle - half, middle + half


if __name__ == "__main__":
    main()
