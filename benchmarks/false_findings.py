"""What a policy finds in texts where there is hardly anything to find, per label and million characters.

usage: python benchmarks/false_findings.py PATH... [--policy default] [--show LABEL] [--all] [--rules] [--limit N]

PATH is a JSONL file (field text), plain or gzipped, or a plain text. Prints how often each label was found and every
finding of an identifier type with 30 characters on both sides, so that they can be looked through: what is right is no
false finding. Identifier types are all but dates, ages, places, countries, nationalities, organisations, occupations
and the like. Text is shown here, on purpose; run it on public texts only. The last line is JSON with every figure.
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import allonym
from allonym.labels import TAXONOMY
from allonym.policy import Policy

_QUASI = (
    "DATE_TIME AGE LOCATION ORGANIZATION PERSON ORIGIN OCCUPATION PRODUCT EVENT WORK_OF_ART LAW NUMERIC TITLE PRONOUN "
    "GENDER LANGUAGE MEDICAL_TERM SPELLED_WORD TERM OTHER_IDENTIFYING_ATTRIBUTE"
)
QUASI = frozenset(_QUASI.split())
DIRECT_PLACES = ("STREET_ADDRESS", "POSTAL_CODE", "LOCATION_COORDINATES", "DATE_OF_BIRTH", "ICD9_CODE", "ICD10_CODE")


def is_identifier(label: str) -> bool:
    lineage = TAXONOMY.lineage(label)
    if any(name in DIRECT_PLACES for name in lineage):
        return True
    return lineage[-1] not in QUASI


def read_texts(path: Path) -> Iterator[str]:
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as lines:
        if ".jsonl" in path.name:
            for line in lines:
                yield json.loads(line)["text"]
        else:
            yield lines.read()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument("--policy", default="default")
    parser.add_argument("--show", action="append", default=[], metavar="LABEL", help="show these labels only")
    parser.add_argument("--all", action="store_true", help="show every finding, not just identifier types")
    parser.add_argument("--rules", action="store_true", help="run the rule tables only")
    parser.add_argument("--limit", type=int, default=0, help="stop after so many characters of each file")
    args = parser.parse_args()
    policy = Policy.load(args.policy)
    if args.rules:
        policy = replace(policy, detectors=("rules",))
    counts: Counter[str] = Counter()
    characters = 0
    for path in args.paths:
        seen = 0
        for text in read_texts(path):
            if args.limit and seen >= args.limit:
                break
            seen += len(text)
            for span in allonym.detect(text, policy):
                counts[span.label] += 1
                if span.label in args.show if args.show else args.all or is_identifier(span.label):
                    before = text[max(0, span.start - 30) : span.start]
                    after = text[span.end : span.end + 30]
                    shown = f"{before}[[{text[span.start : span.end]}]]{after}".replace("\n", " ")
                    print(f"{span.label:24} {span.score:.2f} {span.source:40} {shown}")
        characters += seen
    million = characters / 1e6 or 1.0
    print(f"\n{'label':32}{'found':>8}{'per million':>14}")
    for label, n in counts.most_common():
        print(f"{label:32}{n:8}{n / million:14.1f}{'  identifier' if is_identifier(label) else ''}")
    found = sum(n for label, n in counts.items() if is_identifier(label))
    print(f"{'identifier types':32}{found:8}{found / million:14.1f}")
    figures = {
        "characters": characters,
        "identifier_findings": found,
        "identifier_findings_per_million": round(found / million, 2),
        "found": dict(counts.most_common()),
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
