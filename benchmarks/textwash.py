"""Our ``textwash`` preset and hardening beside Textwash's own output, on the texts of P3's first study.

    PYTHONPATH=src python benchmarks/textwash.py ../shared/data/textwash/textwash_study1.jsonl.gz [--every N] [--lead X]

For each fame class: how often a judge finds the subject among the others of the class (chance about 0.10), the share of
words gone by both counts, and the similarity with the original. The judge is a linear model of words and of 3 to 5
characters, five folds, learnt from other people's original texts; it had no part in hardening and passes over
placeholders. ``blind`` passes over they, them and their as well; ``adaptive`` learnt from other people's texts in the
same version.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import time
from collections.abc import Sequence
from pathlib import Path

import allonym
from allonym.evaluate.hardening import Hardening, harden, rank_subjects, train_text_judges
from allonym.evaluate.surface_measures import removed
from allonym.intruder.linkage import Linkage
from allonym.models.encoder import encode

CLASSES = ("famous", "semifamous", "fict")
_THEY = re.compile(r"(?i)\b(?:they|them|their|theirs|themselves)\b")


def guess_subjects(
    known: Sequence[str], texts: Sequence[str], subjects: Sequence[str], groups: Sequence[str]
) -> list[bool]:
    """Per text whether the judge's first guess is right; it learnt from ``known``, never from the same text."""
    judges = train_text_judges(known, subjects, groups, Linkage("both"), seed=101)
    return [r == 1 for r in rank_subjects(texts, judges)]


def by_class(values: Sequence[float], groups: Sequence[str]) -> dict[str, float]:
    """Mean of each class."""
    out = {}
    for name in CLASSES:
        mine = [float(v) for v, g in zip(values, groups, strict=True) if g == name]
        out[name] = round(sum(mine) / len(mine), 4) if mine else float("nan")
    return out


def main() -> None:
    """Print a table, and one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--every", type=int, default=1, help="use every Nth text only")
    parser.add_argument("--lead", type=float, default=0.02, help="where hardening stops, see allonym harden --help")
    parser.add_argument("--no-parts", action="store_true", help="leave the parts of speech out")
    given = parser.parse_args()
    began = time.monotonic()
    with gzip.open(given.file, "rt", encoding="utf-8") as lines:
        records = [json.loads(line) for line in lines][:: given.every]
    original = [r["text"] for r in records]
    subjects = [r["meta"]["subject"] for r in records]
    groups = [r["meta"]["category"] for r in records]
    done = list(allonym.anonymize_many(original, policy="textwash"))
    made = time.monotonic() - began
    began = time.monotonic()
    hardening = harden(
        original, [d.text for d in done], subjects, groups=groups, plans=[d.plan for d in done], lead=given.lead
    )
    hardened = time.monotonic() - began
    versions = {
        "original": original,
        "textwash": [r["textwash_anonymised"] for r in records],
        "ours": [d.text for d in done],
        "hardened": [t.text for t in hardening.texts],
    }
    numbers: dict[str, dict[str, object]] = {}
    vectors = encode(original)
    plain = [_THEY.sub(" ", t) for t in original]
    for name, texts in versions.items():
        gone = removed(original, texts)
        half = [t.weighted for t in hardening.texts] if name == "hardened" else gone
        told: dict[str, object] = {
            "judge": by_class(guess_subjects(original, texts, subjects, groups), groups),
            "blind": by_class(guess_subjects(plain, [_THEY.sub(" ", t) for t in texts], subjects, groups), groups),
            "adaptive": by_class(guess_subjects(texts, texts, subjects, groups), groups),
            "removed": by_class(gone, groups),
            "weighted": by_class(half, groups),
            "similarity": by_class((vectors * encode(texts)).sum(axis=1).tolist(), groups),
        }
        if name != "original" and not given.no_parts:
            told["parts"] = parts_of_speech(original, texts)
        numbers[name] = told
    print_table(numbers, hardening)
    seconds = {"anonymize": round(made, 1), "harden": round(hardened, 1)}
    print(json.dumps({"texts": len(original), "seconds": seconds, **numbers, "hardening": hardening.to_dict()}))


def parts_of_speech(original: Sequence[str], texts: Sequence[str]) -> dict[str, object]:
    """Bayes factors of the construct test (P3 3.2)."""
    from allonym.evaluate.information import construct_loss

    return construct_loss(original, texts).to_dict()


def print_table(numbers: dict[str, dict[str, object]], hardening: Hardening) -> None:
    """The table: a line for each version and measure, and the curve."""
    names = ("judge", "blind", "adaptive", "removed", "weighted", "similarity")
    print(f"{'':24}" + "".join(f"{c:>12}" for c in CLASSES))
    for version, told in numbers.items():
        for name in names:
            row = told[name]
            assert isinstance(row, dict)
            print(f"{version + ' ' + name:24}" + "".join(f"{row[c]:12.3f}" for c in CLASSES))
    print("\ncurve: lead, judge, attacker, words gone, general words half, similarity")
    for one in hardening.levels:
        values = (one.judge, one.attacker, one.removed, one.weighted, one.similarity)
        print(f"{'-' if one.lead is None else one.lead:>6}" + "".join(f"{e.value:9.3f}" for e in values))


if __name__ == "__main__":
    main()
