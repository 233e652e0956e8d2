"""Our ``textwash`` preset and hardening beside Textwash's own output, on the texts of P3's first study.

    PYTHONPATH=src python benchmarks/textwash.py ../shared/data/textwash/textwash_study1.jsonl.gz [--classes famous]
    PYTHONPATH=src python benchmarks/textwash.py ../shared/data/dialogues/qmsum_meetings.jsonl.gz --meetings

The second line takes other texts, on which no setting was chosen: of QMSum's product meetings, 70 turns of 60 words or
more in each of four roles; the subject is the role.

For each class: what guessing and the intruders of the panel reach (of the famous also by a search of public facts about
them), the share of content words gone, that of words gone by P3's count, and the similarity with the original; then the
frontier of hardening. ``others`` is the greatest share of further classifiers that had no say in hardening and are none
of the panel's kind: linear support vectors, logistic regression, naive Bayes, nearest neighbours and trees, learnt in
five folds from the same version, with tags, less their numbers, as words.
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
VERSIONS = ("original", "textwash", "ours", "hardened")
ROLES = ("Project Manager", "Marketing", "User Interface", "Industrial Designer")
TURNS, LEAST_WORDS = 70, 60
FACTS = Path(__file__).parent / "gold" / "famous_people.jsonl"
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


def read_descriptions(file: Path, classes: Sequence[str]) -> list[dict[str, Any]]:
    """Read the texts of P3's first study."""
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        records = [r for r in map(json.loads, lines) if r["meta"]["category"] in classes]
    return [{"text": r["text"], "textwash": r["textwash_anonymised"], **r["meta"]} for r in records]


def read_meetings(file: Path) -> list[dict[str, Any]]:
    """Read long turns of QMSum's product meetings, as many of each role, evenly from all."""
    turns: dict[str, list[str]] = {role: [] for role in ROLES}
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        for meeting in map(json.loads, lines):
            if meeting["meta"]["source"] != "QMSum Product":
                continue
            for turn in meeting["text"].splitlines():
                role, _, text = turn.partition(": ")
                if role in turns and len(text.split()) >= LEAST_WORDS:
                    turns[role].append(text)
    return [
        {"text": texts[len(texts) * k // TURNS], "subject": role, "category": "meetings"}
        for role, texts in turns.items()
        for k in range(TURNS)
    ]


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
    parser.add_argument("--meetings", action="store_true", help="FILE is QMSum's meetings")
    parser.add_argument("--classes", nargs="*", default=CLASSES, help="fame classes")
    parser.add_argument("--versions", nargs="*", choices=VERSIONS, default=VERSIONS, help="measure these alone")
    parser.add_argument("--most-removed", type=float, default=0.6, help="see allonym harden --help")
    parser.add_argument("--frontier", action="store_true", help="see allonym harden --help")
    parser.add_argument("--others", action="store_true", help="ask the further classifiers, too")
    parser.add_argument("--parts", action="store_true", help="measure parts of speech, too")
    parser.add_argument("--out", type=Path, help="write the hardened texts, to be read")
    given = parser.parse_args()
    records = read_meetings(given.file) if given.meetings else read_descriptions(given.file, given.classes)
    original, subjects, groups = ([r[key] for r in records[:: given.every]] for key in ("text", "subject", "category"))
    facts = [json.loads(line) for line in FACTS.read_text(encoding="utf-8").splitlines()]
    background = [(fact["text"], fact["subject"]) for fact in facts] if "famous" in groups else []
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
        **({} if given.meetings else {"textwash": [r["textwash"] for r in records[:: given.every]]}),
        "ours": [d.text for d in ours],
        "hardened": [t.text for t in hardening.texts],
    }
    if given.out is not None:
        rows = [{"original": o, "hardened": h} for o, h in zip(original, versions["hardened"], strict=True)]
        given.out.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    shares_gone = {
        **{name: list(map(_share_gone, original, texts)) for name, texts in versions.items()},
        "hardened": [t.gone for t in hardening.texts],
    }
    numbers: dict[str, Any] = {}
    vectors = encode(original)
    for name, texts in versions.items():
        if name not in given.versions:
            continue
        panel = measure_panel(original, texts, subjects, groups=groups, background=background)
        measured = [row.name for row in panel.rows if row.is_measured]
        worst = panel.worst
        print(f"{name}, all classes: {worst.identified.value:.3f} by the worst intruder, {worst.name}", flush=True)
        shares = {group: {row.name: row.identified.value for row in rows} for group, rows in panel.groups.items()}
        numbers[name] = {
            "guessing": {group: rows[0].chance.value for group, rows in panel.groups.items()},
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
    print(f"\n{'':28}" + "".join(f"{c:>12}" for c in classes))
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
