"""Clinical Spanish: the tagger of MEDDOCAN's 22 labels, and what its preset covers, on documents never trained on.

usage: python benchmarks/clinical_spanish.py FILE [--part test] [--weights FOLDER] [--policy NAME] [--show N]

FILE is meddocan_es_train_dev.jsonl.gz. The parts are those of training: a third of the documents is ``test``.

strict    F1 of findings with exactly the borders and the label of a marked place, by label and of all: of what is
          likelier a finding than none; ``preset``: at the lower threshold of the preset, which leaves less
covered   share of the marked places whose letters and digits are all covered by the policy
needless  words outside of the marks of which anything is covered, per 1,000 words

``--show`` prints places that are left and words that are covered in vain. The last line is JSON.
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections import Counter
from pathlib import Path

import allonym
from allonym.detection.adapters.recognizers import CLINICAL_SPANISH, list_findings
from allonym.models.runtime import HERE
from allonym.models.wordtagger import WordTagger
from allonym.policy import Policy
from allonym.text.words import LETTERS
from allonym.train.corpus import assign_train_dev_test


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--part", default="test", choices=("train", "dev", "test"))
    parser.add_argument("--weights", type=Path, default=HERE / CLINICAL_SPANISH)
    parser.add_argument("--policy", default="clinical-spanish")
    parser.add_argument("--show", type=int, default=0)
    options = parser.parse_args()
    with gzip.open(options.file, "rt", encoding="utf-8") as file:
        records = [json.loads(line) for line in file]
    parts = assign_train_dev_test(records)
    records = [record for record in records if parts[record["id"]] == options.part]
    model, policy = WordTagger(options.weights), Policy.load(options.policy)
    thresholds = {"strict_f1": 0.5, "strict_f1_preset": policy.settings("word_tagger")["threshold"]}
    matched: Counter[str] = Counter()
    made: Counter[str] = Counter()
    gold: Counter[str] = Counter()
    found: Counter[str] = Counter()
    right: Counter[str] = Counter()
    places = covered = words = needless = 0
    shown: list[str] = []
    for record in records:
        text = record["text"]
        marked = {(span["start"], span["end"], span["label"]) for span in record["spans"]}
        gold.update(label for _, _, label in marked)
        for name, least in thresholds.items():
            guess = {(f.start, f.end, f.label) for f in list_findings(text, model, "es", least)}
            matched[name] += len(marked & guess)
            made[name] += len(guess)
            if name == "strict_f1":
                found.update(label for _, _, label in guess)
                right.update(label for _, _, label in marked & guess)
        hidden = {i for edit in allonym.anonymize(text, policy).plan.edits for i in range(edit.start, edit.end)}
        inside = {i for start, end, _ in marked for i in range(start, end)}
        for start, end, label in sorted(marked):
            places += 1
            if all(i in hidden for i in range(start, end) if text[i].isalnum()):
                covered += 1
            else:
                shown.append(f"left {label}: {text[max(0, start - 30) : start]}[{text[start:end]}]")
        for word in LETTERS.finditer(text):
            if inside.isdisjoint(range(*word.span())):
                words += 1
                if not hidden.isdisjoint(range(*word.span())):
                    needless += 1
                    shown.append(f"needless: {text[max(0, word.start() - 30) : word.start()]}[{word[0]}]")
    for line in shown[: options.show]:
        print(line.replace("\n", " | "))
    figures = {label: round(2 * right[label] / (gold[label] + found[label]), 4) for label in gold}
    print("label                              places  precision  recall      F1")
    for label in sorted(gold, key=lambda label: figures[label]):
        shares = (right[label] / max(1, found[label]), right[label] / gold[label], figures[label])
        print(f"{label:<34} {gold[label]:>6}", *(f"{100 * share:9.1f}" for share in shares))
    total = {
        "documents": len(records),
        **{name: round(2 * matched[name] / (places + made[name]), 4) for name in thresholds},
        "places": places,
        "covered": round(covered / places, 4),
        "needless_per_1000": round(1000 * needless / words, 1),
    }
    print(json.dumps({**total, "by_label": figures}))


if __name__ == "__main__":
    main()
