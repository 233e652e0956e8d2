"""Our ``textwash`` preset and hardening beside Textwash's own output, on the texts of P3's first study.

    PYTHONPATH=src python benchmarks/textwash.py ../shared/data/textwash/textwash_study1.jsonl.gz [--every N]

For each fame class: what the intruders of the panel identify (chance about 0.11), the share of content words gone, that
of words gone by P3's count, and the similarity with the original; then the frontier of hardening. ``others`` is the
greatest share of further classifiers that had no say in hardening and are none of the panel's kind: linear support
vectors, logistic regression, naive Bayes, nearest neighbours and trees, learnt in five folds from the same version,
with tags, less their numbers, as words.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import allonym
from allonym.evaluate.generalising import Draft
from allonym.evaluate.hardening import INTRUDERS, Hardening, harden
from allonym.evaluate.surface_measures import removed
from allonym.intruder.panel import measure_panel
from allonym.models.encoder import encode

CLASSES = ("famous", "semifamous", "fict")
_TAG_NUMBER = re.compile(r"(?<=[A-Z])_\d+")


def judge_by_others(texts: Sequence[str], subjects: Sequence[str]) -> dict[str, float]:
    """Share of texts whose subject other classifiers identify that have learnt from the rest, by their names."""
    from sklearn.ensemble import ExtraTreesClassifier
    from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedKFold, cross_val_predict
    from sklearn.naive_bayes import ComplementNB
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.svm import LinearSVC

    def weigh_words() -> TfidfVectorizer:
        return TfidfVectorizer(sublinear_tf=True, ngram_range=(1, 2), token_pattern=r"\b\w+\b")

    models = {
        "support vectors": make_pipeline(weigh_words(), LinearSVC()),
        "logistic": make_pipeline(TfidfVectorizer(min_df=2), LogisticRegression(C=10, max_iter=300)),
        "naive Bayes": make_pipeline(CountVectorizer(ngram_range=(1, 2)), ComplementNB()),
        "neighbours": make_pipeline(weigh_words(), KNeighborsClassifier(10, metric="cosine", weights="distance")),
        "trees": make_pipeline(CountVectorizer(min_df=3, binary=True), ExtraTreesClassifier(150, random_state=0)),
    }
    plain = [_TAG_NUMBER.sub("", text) for text in texts]
    folds = StratifiedKFold(5, shuffle=True, random_state=3)
    truth = np.array(subjects)
    return {name: float((cross_val_predict(m, plain, truth, cv=folds) == truth).mean()) for name, m in models.items()}


def judge_groups_by_others(texts: Sequence[str], subjects: Sequence[str], groups: Sequence[str]) -> dict[str, float]:
    """The greatest share that another classifier reaches in each group."""
    out = {}
    for name in dict.fromkeys(groups):
        mine = [i for i, group in enumerate(groups) if group == name]
        out[name] = max(judge_by_others([texts[i] for i in mine], [subjects[i] for i in mine]).values())
    return out


def average_by_class(values: Sequence[float], groups: Sequence[str]) -> dict[str, float]:
    """Mean of each class."""
    return {
        name: round(float(np.nanmean([v for v, g in zip(values, groups, strict=True) if g == name])), 4)
        for name in dict.fromkeys(groups)
    }


def main() -> None:
    """Print a table, the frontier, and one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--every", type=int, default=1, help="use every Nth text only")
    parser.add_argument("--classes", nargs="*", default=CLASSES, help="fame classes")
    parser.add_argument("--most-removed", type=float, default=0.6, help="see allonym harden --help")
    parser.add_argument("--frontier", action="store_true", help="see allonym harden --help")
    parser.add_argument("--others", action="store_true", help="ask the further classifiers, too")
    parser.add_argument("--parts", action="store_true", help="measure parts of speech, too")
    parser.add_argument("--out", type=Path, help="write the hardened texts, to be read")
    given = parser.parse_args()
    with gzip.open(given.file, "rt", encoding="utf-8") as lines:
        records = [r for r in map(json.loads, lines) if r["meta"]["category"] in given.classes][:: given.every]
    original = [r["text"] for r in records]
    subjects = [r["meta"]["subject"] for r in records]
    groups = [r["meta"]["category"] for r in records]
    began = time.monotonic()
    ours = list(allonym.anonymize_many(original, policy="textwash"))
    seconds = {"anonymize": round(time.monotonic() - began, 1)}
    began, began_cpu = time.monotonic(), time.process_time()
    hardening = harden(
        original,
        [d.text for d in ours],
        subjects,
        groups=groups,
        plans=[d.plan for d in ours],
        most_removed=given.most_removed,
        frontier=given.frontier,
    )
    seconds |= {"harden": round(time.monotonic() - began, 1), "harden, processor": time.process_time() - began_cpu}
    versions = {
        "original": original,
        "textwash": [r["textwash_anonymised"] for r in records],
        "ours": [d.text for d in ours],
        "hardened": [t.text for t in hardening.texts],
    }
    if given.out is not None:
        rows = [{"original": o, "hardened": h} for o, h in zip(original, versions["hardened"], strict=True)]
        given.out.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    shares_gone = {
        "original": [0.0] * len(original),
        "textwash": list(map(_share_gone, original, versions["textwash"])),
        "ours": list(map(_share_gone, original, versions["ours"])),
        "hardened": [t.gone for t in hardening.texts],
    }
    numbers: dict[str, Any] = {}
    vectors = encode(original)
    for name, texts in versions.items():
        panel = measure_panel(original, texts, subjects, groups=groups)
        measured = [row.name for row in panel.rows if row.is_measured]
        shares = {group: {row.name: row.identified.value for row in rows} for group, rows in panel.groups.items()}
        numbers[name] = {
            **{intruder: {group: row[intruder] for group, row in shares.items()} for intruder in measured},
            "content gone": average_by_class(shares_gone[name], groups),
            "words gone": average_by_class(removed(original, texts), groups),
            "similarity": average_by_class((vectors * encode(texts)).sum(axis=1).tolist(), groups),
        }
        if given.others and name in ("ours", "hardened"):
            numbers[name]["others"] = judge_groups_by_others(texts, subjects, groups)
        if given.parts and name != "original":
            from allonym.evaluate.information import construct_loss

            numbers[name]["parts"] = construct_loss(original, texts).to_dict()
    print_table(numbers, hardening)
    print(json.dumps({"texts": len(original), "seconds": seconds, **numbers, "hardening": hardening.to_dict()}))


def _share_gone(original: str, text: str) -> float:
    return Draft(original, text).compute_share_gone()


def print_table(numbers: dict[str, Any], hardening: Hardening) -> None:
    """Print a line for each version and measure, and the frontier of each class."""
    classes = list(hardening.groups)
    print(f"{'':28}" + "".join(f"{c:>12}" for c in classes))
    for version, rows in numbers.items():
        for name, row in rows.items():
            if name != "parts":
                print(f"{f'{version} {name}':28}" + "".join(f"{row[c]:12.3f}" for c in classes))
    for group, levels in hardening.groups.items():
        print(f"\n{group}: content gone, {', '.join(INTRUDERS)}, words gone, similarity; the last line is the choice")
        for level in levels:
            values = (level.gone, level.naive, level.blind, level.adaptive, level.removed, level.similarity)
            print("".join(f"{e.value:9.3f}" for e in values))


if __name__ == "__main__":
    main()
