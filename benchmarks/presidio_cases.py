"""How many of Presidio's own test cases the rules get right, one type in isolation.

usage: python benchmarks/presidio_cases.py CASES [--failures 20]

CASES has one JSON record a line: text, entity_type (a name or a list of names), expected_count and expected_spans
(pairs of start and end, or null where the test does not state them). A case with findings is right where exactly the
stated spans are found, or as many as stated; one without is right where nothing of the type is found. Scored at
threshold 0, as those tests are: a weak pattern may score low and still count.
Prints a table of types and, last, one line of JSON.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import allonym
from allonym import Policy


@cache
def policy_for(names: tuple[str, ...]) -> tuple[Policy, frozenset[str]]:
    """The policy that looks for these Presidio types alone, and their labels."""
    labels = frozenset(label for name in names for label in allonym.from_scheme(name, "presidio"))
    return Policy.only(sorted(labels), threshold=0.0), labels


def list_names(case: dict[str, Any]) -> tuple[str, ...]:
    kind = case["entity_type"]
    return (kind,) if isinstance(kind, str) else tuple(kind)


def found_in(case: dict[str, Any]) -> list[tuple[int, int]]:
    """The spans found for the case's types, in reading order."""
    policy, labels = policy_for(list_names(case))
    return sorted({(s.start, s.end) for s in allonym.detect(case["text"], policy) if s.label in labels})


def is_right(case: dict[str, Any], spans: list[tuple[int, int]]) -> bool:
    wanted = case["expected_spans"]
    if wanted is None:
        return len(spans) == int(case["expected_count"])
    return spans == sorted((a, b) for a, b in wanted)


def read_cases(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            case = json.loads(line)
            if "text" in case:
                yield case


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("cases", type=Path)
    options.add_argument("--failures", type=int, default=0, metavar="N", help="show the first N cases that are wrong")
    given = options.parse_args()
    total: Counter[str] = Counter()
    right: Counter[str] = Counter()
    failures: list[str] = []
    for case in read_cases(given.cases):
        kind = "|".join(list_names(case))
        spans = found_in(case)
        total[kind] += 1
        if is_right(case, spans):
            right[kind] += 1
        else:
            wanted = case["expected_count"] if case["expected_spans"] is None else case["expected_spans"]
            failures.append(f"{case.get('id', '')} {kind}: {case['text']!r} wanted {wanted}, found {spans}")
    if not total:
        sys.exit("no cases")
    share = {kind: right[kind] / total[kind] for kind in sorted(total)}
    for kind, part in share.items():
        print(f"{kind:36} {right[kind]:4} of {total[kind]:4}  {part:7.1%}")
    macro = sum(share.values()) / len(share)
    whole = right.total() / total.total()
    print(f"{'macro average over types':36} {'':12}  {macro:7.1%}")
    print(f"{'all cases':36} {right.total():4} of {total.total():4}  {whole:7.1%}")
    for line in failures[: given.failures]:
        print(line)
    types = {kind: round(part, 4) for kind, part in share.items()}
    print(json.dumps({"cases": total.total(), "right": right.total(), "share": whole, "macro": macro, "types": types}))


if __name__ == "__main__":
    main()
