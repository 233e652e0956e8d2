"""Swapping on earnings calls: P1's protocol, then the limits lifted, judged by intruders who know the given entities.

    python benchmarks/swap_earnings.py ../shared/data/earnings            # 22 labelled calls
    python benchmarks/swap_earnings.py ../shared/data/earnings --others   # 125 other calls, entities by our detectors
    python benchmarks/swap_earnings.py ../shared/data/earnings --skip-paper --read 40  # 40 sentences, to be read

A chunk counts as swappable where the annotators marked an organisation or a product in it that is still there once
direct identifiers are gone; with ``--others`` where our detectors found one. The entity intruder is a linear model on
the marked names that occur in a chunk, before and after looked up in the same way; the all-words intruder a linear
model on TF-IDF of words. Each judges a chunk, before and after, that its training fold (ten folds) does not hold. The
panel of allonym.intruder, which also learns from released texts, judges the same chunks. Last, it looks for whole calls
in each form of release: having learnt from one half of each it looks for the other.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import LinearSVC

from allonym import swap
from allonym.evaluate.surface_measures import perplexity
from allonym.intruder import measure_panel
from allonym.swap import settings as swap_settings
from allonym.swap.chunking import split_sentences

WORD = re.compile(r"\w+|[^\w\s]")
LEGAL = re.compile(r"\b(inc|corp|corporation|company|co|ltd|llc|plc|group|the)\b\.?|['’]s\b|[.,]")
MARKED = ("ORG", "PRODUCT")
PAIR = ("Organization", "Product")
KEY = b"benchmark of swapping"


def normalise_surface(surface: str) -> str:
    return " ".join(LEGAL.sub(" ", surface.lower()).split())


def read_gold(file: Path) -> dict[str, list[tuple[int, int]]]:
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    return {r["id"]: sorted({(s["start"], s["end"]) for s in r["spans"] if s["label"] in MARKED}) for r in rows}


def count_marked_surfaces(corpus: Any, spans: Mapping[str, Sequence[tuple[int, int]]]) -> tuple[list[str], Any]:
    """Surfaces of the given spans that no direct identifier covers, and which chunks hold one."""
    surfaces: set[str] = set()
    holds = np.zeros(len(corpus.chunks), bool)
    for i, chunk in enumerate(corpus.chunks):
        document, edits = corpus.documents[chunk.document], corpus.plans[chunk.document].edits
        for a, b in spans[document.id]:
            if chunk.start <= a and b <= chunk.end and not any(e.start < b and a < e.end for e in edits):
                surfaces.add(document.text[a:b])
                holds[i] = True
    return sorted(surfaces), holds


def count_found_surfaces(corpus: Any) -> tuple[list[str], Any]:
    """The same by our own detectors."""
    values = [[v for v in chunk.values if v.category in PAIR] for chunk in corpus.chunks]
    return sorted({f for some in values for v in some for f in v.forms}), np.array([bool(some) for some in values])


class Names:
    """Which marked names occur in a text: the same look-up before and after."""

    def __init__(self, surfaces: Sequence[str]) -> None:
        kept = sorted({s for s in surfaces if len(s) > 1 and normalise_surface(s)}, key=lambda s: (-len(s), s))
        self.number = {n: i for i, n in enumerate(sorted({normalise_surface(s) for s in kept}))}
        self._find = re.compile(r"(?<!\w)(?:" + "|".join(map(re.escape, kept)) + r")(?!\w)")

    def __call__(self, text: str) -> list[int]:
        return sorted({self.number[normalise_surface(m.group())] for m in self._find.finditer(text)})

    def matrix(self, texts: Sequence[str]) -> Any:
        rows = [self(t) for t in texts]
        places = [(i, j) for i, row in enumerate(rows) for j in row]
        data = (np.ones(len(places)), tuple(zip(*places, strict=True))) if places else None
        shape = (len(texts), len(self.number))
        return sparse.csr_matrix(data, shape=shape) if data else sparse.csr_matrix(shape)


def cross_fitted(kind: str, before: Sequence[str], runs: Sequence[dict[int, str]], classes: Any, names: Names) -> Any:
    """Right or wrong per chunk before, and per run per changed chunk after."""
    first = np.zeros(len(before), bool)
    after: list[dict[int, bool]] = [{} for _ in runs]
    for train, test in StratifiedKFold(10, shuffle=True, random_state=0).split(np.zeros(len(before)), classes):
        if kind == "entities":
            model: Any = LogisticRegression(C=30.0, max_iter=2000)
            make = names.matrix
        else:
            words = TfidfVectorizer(sublinear_tf=True, token_pattern=r"(?u)\b\w+\b").fit([before[i] for i in train])
            model, make = LinearSVC(random_state=0), words.transform
        model.fit(make([before[i] for i in train]), classes[train])
        first[test] = model.predict(make([before[i] for i in test])) == classes[test]
        for run, right in zip(runs, after, strict=True):
            here = [i for i in test if i in run]
            if here:
                hit = model.predict(make([run[i] for i in here])) == classes[here]
                right.update(zip(here, hit.tolist(), strict=True))
    return first, after


def changed_words(before: str, after: str) -> tuple[int, int]:
    a, b = WORD.findall(before), WORD.findall(after)
    moves = SequenceMatcher(None, a, b, autojunk=False).get_opcodes()
    return sum(max(i2 - i1, j2 - j1) for tag, i1, i2, j1, j2 in moves if tag != "equal"), len(a)


def draw_changed_sentences(made: Any, count: int, seed: int) -> list[tuple[str, str, list[str]]]:
    """So many sentences that hold an exchange or a fall-back, drawn with a fixed seed: before, after, what came."""
    places = [
        (outcome, a, b, marks)
        for outcome in made.outcomes
        for a, b in split_sentences(outcome.after)
        if (marks := [m for m in outcome.marks if a <= m[0] and m[1] <= b])
    ]
    out = []
    for n in np.random.default_rng(seed).permutation(len(places))[:count]:
        outcome, a, b, marks = places[n]
        blocks = SequenceMatcher(None, outcome.before, outcome.after, autojunk=False).get_matching_blocks()
        first = next((k.a + max(0, a - k.b) for k in blocks if a < k.b + k.size), 0)
        last = next((k.a + min(k.size, b - k.b) for k in reversed(blocks) if k.size and k.b < b), first)
        came = [f"{m[2]} {m[3]}: {outcome.after[m[0] : m[1]]}" for m in marks]
        out.append((outcome.before[first:last].strip(), outcome.after[a:b].strip(), came))
    return out


def format_spread(values: Sequence[float]) -> str:
    return f"{np.mean(values):.3f} ({np.std(values, ddof=1) if len(values) > 1 else 0.0:.3f})"


def some_calls(file: Path, count: int, folder: str) -> Path:
    """The first ``count`` calls of a file."""
    out = Path(folder, "calls.jsonl")
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        out.write_text("".join(line for line, _ in zip(lines, range(count), strict=False)), encoding="utf-8")
    return out


def run_paper_protocol(corpus: Any, names: Names, seed: int) -> dict[str, Any]:
    """P1's protocol: one pass, pairs only, both categories, Organization and Product, M = 30."""
    began = time.perf_counter()
    releases = swap.search(corpus, "p1", seed=seed)
    of_pair = [r for r in releases.releases if r.categories == PAIR]
    if not of_pair:
        return {"swaps": 0, "why": releases.dropped.get(PAIR, "")}
    chosen = of_pair[-1]
    runs = []
    for draw in range(30):
        made = releases.make(chosen, draw=draw, key=KEY)
        runs.append({o.chunk: o.after for o in made.outcomes})
    before, classes = [c.text for c in corpus.chunks], np.array([corpus.class_of(i) for i in range(len(corpus.chunks))])
    out: dict[str, Any] = {
        "chunks": float(np.mean([len(r) for r in runs])),
        "share": float(np.mean([len(r) for r in runs]) / len(before)),
        "U": chosen.utility.value,
        "D per chunk": chosen.distance_per_chunk.value,
        "cosine": chosen.cosine.value,
        "R": {f"{n:g}": r.value for n, r in chosen.risk.items()},
    }
    for kind in ("entities", "words"):
        first, after = cross_fitted(kind, before, runs, classes, names)
        out[kind] = [[float(first[list(r)].mean()) for r in runs], [float(np.mean(list(a.values()))) for a in after]]
    print(f"P1's protocol, {' and '.join(PAIR)}, 30 draws")
    print(f"  chunks swapped       {out['chunks']:.1f} of {len(before)} = {100 * out['share']:.1f} %  (P1: 4.0 %)")
    for kind in ("entities", "words"):
        before_, after_ = map(format_spread, out[kind])
        print(f"  intruder {kind:<11} {before_} -> {after_}   (P1: 0.934 -> 0.602)")
    print(f"  U {out['U']:.4f}, D per chunk {out['D per chunk']:.2f} nats, cosine {out['cosine']:.3f}, R {out['R']}")
    out["seconds"] = time.perf_counter() - began
    return out


def run_without_limits(
    corpus: Any, names: Names, holds: Any, seed: int, settings: str, workers: int, read: int, read_seed: int
) -> dict[str, Any]:
    """The limits lifted: the default preset, its own choice, fall-backs included."""
    began = time.perf_counter()
    releases = swap.search(corpus, settings, seed=seed, workers=workers)
    chosen = releases.best()
    made = releases.make(chosen, key=KEY)
    seconds = time.perf_counter() - began
    before = [c.text for c in corpus.chunks]
    after = {o.chunk: o.after for o in made.outcomes}
    classes = np.array([corpus.class_of(i) for i in range(len(before))])
    judged = {i: after.get(i, before[i]) for i in np.flatnonzero(holds).tolist()}
    words = [changed_words(before[i], after.get(i, before[i])) for i in range(len(before))]
    out: dict[str, Any] = {
        "seconds": seconds,
        "stages": {k: round(v, 1) for k, v in releases.timings.items()},
        "categories": list(chosen.categories),
        "held": len(judged),
        "changed": sum(i in after for i in judged) / len(judged),
        "all changed": len(after) / len(before),
        "words": sum(a for a, _ in words) / sum(b for _, b in words),
        "words of changed": sum(words[i][0] for i in after) / sum(words[i][1] for i in after),
        "cosine": made.numbers["cosine"],
        "U": made.numbers["utility"],
        "D": made.numbers["distance"],
        "D per chunk": made.numbers["distance"] / len(after),
        "fallen": dict(made.numbers["fallen"]),
    }
    for kind in ("entities", "words"):
        first, runs = cross_fitted(kind, before, [judged], classes, names)
        out[f"intruder {kind}"] = [float(first[list(judged)].mean()), float(np.mean(list(runs[0].values())))]
    released = [after.get(i, text) for i, text in enumerate(before)]
    documents = [str(chunk.document) for chunk in corpus.chunks]
    panel = measure_panel(before, released, classes.tolist(), documents=documents, judged=set(judged), seed=seed)
    out["panel"] = {row.name: row.identified.value for row in panel.rows if row.is_measured}
    changes = perplexity([before[i] for i in after], list(after.values()))
    out["perplexity"] = [changes.before.value, changes.after.value]
    print(f"limits lifted, settings {settings}, {' + '.join(chosen.categories)}")
    rows = (
        ("chunks with a swappable entity", f"{len(judged)} of {len(before)}", ""),
        ("of these changed", f"{100 * out['changed']:.1f} %", ">= 80 %"),
        ("entity intruder on these", "{:.3f} -> {:.3f}".format(*out["intruder entities"]), "<= 0.10"),
        ("all-words intruder on these", "{:.3f} -> {:.3f}".format(*out["intruder words"]), "<= 0.60"),
        ("panel on these", ", ".join(f"{name} {share:.3f}" for name, share in out["panel"].items()), " told <= 0.70"),
        ("words changed, of all", f"{100 * out['words']:.1f} %", "<= 15 %"),
        ("words changed, of changed chunks", f"{100 * out['words of changed']:.1f} %", ""),
        ("mean cosine of changed chunks", f"{out['cosine']:.3f}", ">= 0.8"),
        ("U, D, D per changed chunk", f"{out['U']:.4f}, {out['D']:.0f}, {out['D per chunk']:.2f} nats", ""),
        ("perplexity of changed chunks", "{:.0f} -> {:.0f}".format(*out["perplexity"]), ""),
        ("exchanged, and fallen back", f"{sum(made.numbers['moved'].values())}, {out['fallen']}", ""),
        ("search and writing", f"{seconds:.0f} s", ""),
    )
    for what, value, wanted in rows:
        print(f"  {what:<34}{value:<28}{wanted}")
    print(f"  frontier at N = {releases.population:g}: categories, swaps, share of chunks, U, R")
    for r in releases.frontier:
        risk = releases.risk(r).value
        print(f"    {' + '.join(r.categories):<52}{r.swaps:>6}{r.share.value:>7.2f}{r.utility.value:>9.4f}{risk:>9.4f}")
    out["documents"] = find_documents(releases)
    out["frontier"] = [
        [list(r.categories), r.swaps, r.share.value, r.utility.value, releases.risk(r).value] for r in releases.frontier
    ]
    for n, (old, new, came) in enumerate(draw_changed_sentences(made, read, read_seed), 1):
        print(f"{n}. {new}\n   before: {old}\n   came: {'; '.join(came)}")
    return out


def find_documents(releases: Any) -> dict[str, Any]:
    """How much of each call is found, whole and in pieces, by the worst intruder who has learnt from its other half."""
    out = {}
    for form in swap_settings.FORMS:
        of_form = replace(releases, settings=releases.settings.with_({"release.form": form}))
        row = of_form.find_documents(key=KEY)
        e, before = row.identified, row.before.value
        print(f"  released as {form:<11}{before:.3f} -> {e.value:.3f} [{e.low:.3f}, {e.high:.3f}] of {row.among}")
        print(f"    {row.knows}", flush=True)
        out[form] = [before, e.value, e.low, e.high, row.knows]
    return out


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("folder", type=Path)
    arguments.add_argument("--others", action="store_true", help="calls without given entities")
    arguments.add_argument("--calls", type=int, default=24, help="how many of them")
    arguments.add_argument("--settings", default="default")
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--workers", type=int, default=2)
    arguments.add_argument("--skip-paper", action="store_true", help="the limits lifted alone")
    arguments.add_argument("--read", type=int, default=0, help="changed sentences to print, drawn with a fixed seed")
    arguments.add_argument("--read-seed", type=int, default=40, help="of that draw")
    given = arguments.parse_args()
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        labelled = given.folder / "earnings21_half_shared.jsonl.gz"
        others = given.folder / "earnings22_unlabelled.jsonl.gz"
        source = some_calls(others, given.calls, folder) if given.others else labelled
        protect = "Ticker Symbol" if given.others else "company"
        corpus = swap.load(source, protect, fields=["text"], settings=given.settings, workers=given.workers)
        read = time.perf_counter() - began
        surfaces, holds = (
            count_found_surfaces(corpus) if given.others else count_marked_surfaces(corpus, read_gold(labelled))
        )
        names = Names(surfaces)
        print(f"{len(corpus.documents)} calls, {len(corpus.chunks)} chunks, read in {read:.0f} s")
        result: dict[str, Any] = {"calls": len(corpus.documents), "chunks": len(corpus.chunks), "read": read}
        result["lifted"] = run_without_limits(
            corpus, names, holds, given.seed, given.settings, given.workers, given.read, given.read_seed
        )
        if not given.skip_paper:
            plain = swap.load(source, protect, fields=["text"], settings="p1", workers=given.workers)
            result["paper"] = run_paper_protocol(plain, names, given.seed)
    print(f"all together {time.perf_counter() - began:.0f} s")
    print(json.dumps(result))


if __name__ == "__main__":
    main()
