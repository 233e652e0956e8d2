"""What anonymisation costs a classifier, and how many names of lower-cased film reviews it finds.

    python benchmarks/utility.py FOLDER [--repeats 20] [--keep FOLDER] [--texts N] [--corpus NAME ...]

FOLDER holds utility/movie_reviews.jsonl.gz (2,000 reviews, lower-cased and pre-tokenised in the source; sentiment) and,
for cased texts, dialogues/mts_dialog.jsonl.gz (1,701 doctors' dialogues; the section of the record that each belongs
to, sections of fewer than 20 left out) and ner_train_open/crossner.jsonl.gz (5,239 sentences; their domain, a hard
case: names alone tell much of it). Accuracy of a linear model before and after, on the same random splits, with an
interval on the difference that allows for the overlap of the splits (Nadeau and Bengio 2003): tags by the policies
default and textwash, and pseudonyms. --keep keeps the anonymised texts in a folder, so that a second run is quick.

Recall on the names of 30 reviews follows (benchmarks/gold/movie_reviews_30.jsonl: offsets only, see README there): a
name counts as replaced where all of it is, and as touched where a part of it is. Last, one line of JSON.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from allonym.document import Document
from allonym.evaluate.downstream_use import utility_loss
from allonym.pipeline import anonymize
from allonym.policy import Policy

KEY = b"a key for benchmarks only, 32 by"
POLICIES = ("default", "textwash", "pseudonyms")
GOLD = Path(__file__).with_name("gold") / "movie_reviews_30.jsonl"
LIMIT = 0.0084
CORPORA = {
    "movie_reviews": ("utility/movie_reviews.jsonl.gz", "label"),
    "mts_dialog": ("dialogues/mts_dialog.jsonl.gz", "section"),
    "crossner": ("ner_train_open/crossner.jsonl.gz", "domain"),
}
LEAST = 20  # texts of a class


def read_records(folder: Path, name: str) -> list[tuple[str, str, str]]:
    """Id, text and label of each record; classes that are too small are left out."""
    file, key = CORPORA[name]
    with gzip.open(folder / file, "rt", encoding="utf-8") as lines:
        records = [json.loads(line) for line in lines]
    rows = [(r["id"], r["text"], str(r.get(key) or r.get("meta", {}).get(key))) for r in records]
    sizes = Counter(label for _, _, label in rows)
    return [row for row in rows if sizes[row[2]] >= LEAST]


def digest_text(text: str) -> str:
    """SHA-256 of a text."""
    return hashlib.sha256(text.encode()).hexdigest()


def anonymise_texts(
    rows: Sequence[tuple[str, str, str]], name: str, keep: Path | None, policies: Sequence[str]
) -> Mapping[str, list[str]]:
    """The texts by each policy, from the folder of kept ones where they are there."""
    known: dict[str, dict[tuple[str, str], str]] = {p: {} for p in policies}
    for policy in policies:
        path = None if keep is None else keep / f"{name}-{policy}.jsonl"
        if path is not None and path.exists():
            for line in path.read_text("utf-8").splitlines():
                record = json.loads(line)
                known[policy][record["id"], record["sha256"]] = record["text"]
    out: dict[str, list[str]] = {p: [] for p in policies}
    loaded = {p: Policy.load(p) for p in policies}
    for number, (ident, text, _) in enumerate(rows, 1):
        for policy in policies:  # text by text: the tagger remembers what it has just read
            found = known[policy].get((ident, digest_text(text)))
            out[policy].append(anonymize(text, loaded[policy], key=KEY).text if found is None else found)
        if number % 100 == 0 and sys.stderr.isatty():
            print(f"\r{name}: {number} of {len(rows)}", end="", file=sys.stderr, flush=True)
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
        for policy in policies:
            with (keep / f"{name}-{policy}.jsonl").open("w", encoding="utf-8") as file:
                for (ident, text, _), after in zip(rows, out[policy], strict=True):
                    print(json.dumps({"id": ident, "sha256": digest_text(text), "text": after}), file=file)
    return out


def names_found(rows: Sequence[tuple[str, str, str]]) -> dict[str, dict[str, dict[str, int]]]:
    """Policy, kind of name, and how many were marked, replaced as a whole, and touched."""
    texts = {ident: text for ident, text, _ in rows}
    out: dict[str, dict[str, dict[str, int]]] = {}
    for name in POLICIES:
        policy = Policy.load(name)
        counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for line in GOLD.read_text("utf-8").splitlines():
            record = json.loads(line)
            text = texts.get(record["id"])
            if text is None or digest_text(text) != record["sha256"]:
                continue
            covered: set[int] = set()
            for edit in anonymize(Document("", text), policy, key=KEY).plan.edits:
                covered.update(range(edit.start, edit.end))
            for start, end, kind in record["spans"]:
                letters = {i for i in range(start, end) if text[i].isalnum()}
                for key in (kind, "all"):
                    counts[key]["marked"] += 1
                    counts[key]["replaced"] += letters <= covered
                    counts[key]["touched"] += bool(letters & covered)
        out[name] = {kind: dict(found) for kind, found in sorted(counts.items())}
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--texts", type=int, default=0, help="use this many of each corpus, spread over it; 0: all")
    parser.add_argument("--corpus", nargs="+", choices=tuple(CORPORA), default=list(CORPORA))
    parser.add_argument("--model", default="linear")
    given = parser.parse_args()
    results: dict[str, dict[str, dict[str, object]]] = {}
    names: dict[str, dict[str, dict[str, int]]] = {}
    for name in given.corpus:
        every = read_records(given.folder, name)
        if name == "movie_reviews":
            names = names_found(every)
        rows = every[:: max(1, len(every) // given.texts)] if given.texts else every
        versions = anonymise_texts(rows, name, given.keep, POLICIES)
        originals, labels = [text for _, text, _ in rows], [label for _, _, label in rows]
        print(f"{name}: {len(rows)} texts, {len(set(labels))} classes, {given.repeats} splits")
        results[name] = {}
        for policy, texts in versions.items():
            found = utility_loss(originals, texts, labels, repeats=given.repeats, model=given.model)
            shown = f"{found.before.value:7.2%} {found.after.value:7.2%}"
            print(f"  {policy:11} {shown}  {found.reading}")
            results[name][policy] = {
                "texts": found.texts,
                "before": round(found.before.value, 5),
                "after": round(found.after.value, 5),
                "loss": round(found.loss.value, 5),
                "low": round(found.loss.low, 5),
                "high": round(found.loss.high, 5),
                "at most 0.84 points": found.loss.value <= LIMIT,
                "whole interval at most": found.loss.high <= LIMIT,
            }
    for policy, kinds in names.items():
        told = [f"{k} {n['replaced'] / n['marked']:.1%} of {n['marked']}" for k, n in kinds.items()]
        print(f"names replaced, {policy}: {'; '.join(told)}")
    print(json.dumps({"benchmark": "utility", "repeats": given.repeats, "loss": results, "names": names}))


if __name__ == "__main__":
    main()
