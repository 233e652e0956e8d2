"""How far an all-words intruder falls when terms alone are exchanged, by the share of words that are terms.

usage: python benchmarks/terms.py FILE [--size 420] [--documents 22] [--seed 0]

FILE is JSONL, plain or gzip: {"text", "spans": [{"start", "end", "label"}], "meta": {"company"}}; without spans, the
default policy finds them. Documents are cut at sentences into chunks of at least SIZE code points. Names of people and
organisations become one word each, so that only other words can betray a company. Terms of a chunk change places with
those of one of the five most similar chunks of other companies (``near``), or of any (``any``), or are cut out
(``cut``). The intruder, a linear support vector machine on TF-IDF words, learns from the original chunks of the other
four fifths. Prints a line for each share and, last, one line of JSON.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import time
from bisect import bisect_left
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import LinearSVC

from allonym import detect
from allonym.document import Document, Span
from allonym.swap.terms import find_noun_phrases, select_terms

SHARES = (0.01, 0.02, 0.03, 0.04, 0.05, 0.06)
NEAREST = 5
NAMES = re.compile(r"PER|ORG|COMPANY|TICKER|EXECUTIVE|PRODUCT|FAC")
Edits = list[list[tuple[int, int, str]]]


def read_calls(path: Path, most: int) -> list[tuple[str, str, list[Span]]]:
    """Company, text and names of each document."""
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as lines:
        rows = [json.loads(line) for line, _ in zip(lines, range(most), strict=False)]
    out = []
    for row in rows:
        spans = [Span(s["start"], s["end"], s["label"]) for s in row.get("spans") or ()] or list(detect(row["text"]))
        out.append((str(row["meta"].get("company") or row["id"]), row["text"], spans))
    return out


def cut_chunks(text: str, size: int) -> list[tuple[int, int]]:
    """Chunks of at least ``size``, at sentences; they tile the text."""
    edges = [0]
    for end in (m.end() for m in re.finditer(r"[.?!]\s+|\n", text)):
        if end - edges[-1] >= size:
            edges.append(end)
    if edges[-1] < len(text):
        edges.append(len(text))
    return list(pairwise(edges))


def apply_edits_to_chunks(texts: list[str], bounds: list[list[tuple[int, int]]], edits: Edits) -> list[str]:
    """The chunks after disjoint edits."""
    out = []
    for text, some, changes in zip(texts, bounds, edits, strict=True):
        changes = sorted(changes)
        starts = [change[0] for change in changes]
        for a, b in some:
            pieces: list[str] = []
            at = a
            for start, end, said in changes[bisect_left(starts, a) : bisect_left(starts, b)]:
                if start >= at:
                    pieces += (text[at:start], said)
                    at = end
            out.append("".join(pieces) + text[at:b])
    return out


def measure_accuracy(before: list[str], after: list[str], truth: Any) -> float:
    """Share of chunks whose company is guessed from ``after``, by a model of the other chunks as they were."""
    right = np.zeros(len(truth), bool)
    for train, test in StratifiedKFold(5, shuffle=True, random_state=0).split(before, truth):
        words = TfidfVectorizer(sublinear_tf=True)
        model = LinearSVC().fit(words.fit_transform([before[i] for i in train]), truth[train])
        right[test] = model.predict(words.transform([after[i] for i in test])) == truth[test]
    return float(right.mean())


def find_nearest_chunks(texts: list[str], truth: Any, held: list[int]) -> dict[int, list[int]]:
    """For each chunk with terms the most similar ones of other companies."""
    weights = TfidfVectorizer(sublinear_tf=True, stop_words="english", min_df=2).fit_transform(texts)
    x = TruncatedSVD(min(128, weights.shape[1] - 1), random_state=0).fit_transform(weights)[held]
    x /= np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-12)
    cosine = x @ x.T
    cosine[truth[held][:, None] == truth[held][None, :]] = -2
    return {i: [held[j] for j in np.argsort(-row)[:NEAREST]] for i, row in zip(held, cosine, strict=True)}


def exchange_terms(
    said: list[list[tuple[int, int, str]]], truth: Any, donors: dict[int, list[int]], seed: int
) -> Edits:
    """Each chunk's terms replaced by those of one of its donors."""
    rng = np.random.default_rng(seed)
    out: Edits = [[] for _ in range(max(truth) + 1)]
    for i, others in donors.items():
        terms = list(dict.fromkeys(term.lower() for *_, term in said[others[rng.integers(len(others))]]))
        rng.shuffle(terms)
        given: dict[str, str] = {}
        for start, end, term in said[i]:
            out[truth[i]].append((start, end, given.setdefault(term.lower(), terms[len(given) % len(terms)])))
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--size", type=int, default=420)
    parser.add_argument("--documents", type=int, default=22)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    calls = read_calls(given.file, given.documents)
    texts, bounds = [text for _, text, _ in calls], [cut_chunks(text, given.size) for _, text, _ in calls]
    truth = np.array([i for i, some in enumerate(bounds) for _ in some])
    names: Edits = [[(s.start, s.end, f"x{s.label}") for s in spans if NAMES.match(s.label)] for *_, spans in calls]
    before = apply_edits_to_chunks(texts, bounds, names)
    start = time.perf_counter()
    nouns = [find_noun_phrases(Document(company, text), spans) for company, text, spans in calls]
    spent = time.perf_counter() - start
    base = measure_accuracy(before, before, truth)
    print(f"{len(calls)} documents, {len(truth)} chunks, names out: {base:.3f}; noun phrases in {spent:.1f} s")
    print("share  words  terms     s    cut   near    any")
    rows = []
    for share in SHARES:
        start = time.perf_counter()
        terms = select_terms(nouns, [company for company, *_ in calls], bounds, share)
        spent = time.perf_counter() - start
        said = []
        for text, some, spans in zip(texts, bounds, terms.spans, strict=True):
            starts = [s.start for s in spans]
            for a, b in some:
                inside = spans[bisect_left(starts, a) : bisect_left(starts, b)]
                said.append([(s.start, s.end, text[s.start : s.end]) for s in inside])
        held = [i for i, some in enumerate(said) if some]
        near = find_nearest_chunks(before, truth, held)
        every = {i: [j for j in held if truth[j] != truth[i]] for i in held}
        ways = {
            "cut": [[(s.start, s.end, "") for s in spans] for spans in terms.spans],
            "near": exchange_terms(said, truth, near, given.seed),
            "any": exchange_terms(said, truth, every, given.seed),
        }
        row: dict[str, Any] = {"share": share, "words": round(terms.share, 4), "terms": len(terms.scores)}
        for way, edits in ways.items():
            both = [a + b for a, b in zip(names, edits, strict=True)]
            row[way] = round(measure_accuracy(before, apply_edits_to_chunks(texts, bounds, both), truth), 3)
        rows.append(row)
        print(
            f"{share:5.2f} {terms.share:6.2%} {len(terms.scores):6} {spent:5.1f} "
            + "".join(f"{row[w]:7.3f}" for w in ways)
        )
    print(json.dumps({"benchmark": "terms", "chunks": len(truth), "base": round(base, 4), "curve": rows}))


if __name__ == "__main__":
    main()
