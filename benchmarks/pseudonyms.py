"""P4's Tables 3 to 5 side by side: what tags and pseudonyms of several kinds cost, let through, and look like.

usage: python benchmarks/pseudonyms.py --labelled REVIEWS --summaries MEETINGS --gold WIKIGOLD [--texts MORE ...]
       [--reviews 400] [--meetings 40] [--keys 2] [--repeats 20] [--methods NAMES] [--seq2seq FOLDER] [--seed 0]

REVIEWS is JSONL with ``text`` and ``label`` (the film reviews of NLTK), MEETINGS with ``text`` and ``summaries``
(QMSum), WIKIGOLD with ``text`` and ``spans`` of PER, LOC and ORG, at the place of P4's CoNLL-2003, which is not at
hand; the embedded tagger has learnt from wikigold, so leak rates on it are a lower end. MORE are further texts for
syntheticity; records of one ``doc_id`` are one text. Names of people, places and organisations are replaced, as in P4;
every text is a scope of its own, with its summary.

Methods: ``sanitised`` (PERSON_1), ``pseudonyms`` (knowledge base), ``one scope`` (the same, one scope for all texts),
``every type`` (all types of the preset, not only names), ``llm`` (LLM-PS through a stub: a server in this program that
answers with names of our knowledge base drawn at random and knows nothing of the text, so its numbers are those of the
way, not of a language model), ``seq2seq`` (with --seq2seq, a model by ``allonym train seq2seq``; else left out).

Utility: trained on the method's texts, tested on originals, on the same splits (P4 Table 3); ROUGE of an extractive
summariser, P4's is of BART. Leaks: share of the gold names' surfaces that still stand in the text (P4 Table 4).
Syntheticity: F1 of a linear classifier over word 1-2-grams and character 3-5-grams, five folds by text, unchanged texts
left out (P4 Table 5); calling all texts pseudonymised has 66.7 %. Mean over ``--keys`` keys where there are several.

Prints the tables and, last, one line of JSON. Texts are never shown.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import re
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import allonym
from allonym.document import Document
from allonym.evaluate.detection_scores import detection
from allonym.evaluate.downstream_use import Score, downstream
from allonym.evaluate.synthetic_text import Syntheticity, syntheticity
from allonym.kb import KnowledgeBase
from allonym.policy import Policy

KEY = b"the key of this benchmark, no. "
FAMILIES = ("PERSON", "LOCATION", "ORGANIZATION")
GOLD = ("PER", "ORG", "LOC")
SPLIT = "\n\n= = =\n\n"
METHODS = ("sanitised", "pseudonyms", "one scope", "every type", "llm", "seq2seq")
_ASKED = re.compile(r"^([0-9A-F]{8}|E[0-9]+): ([A-Z_]+)", re.MULTILINE)
Anonymise = Callable[[Sequence[str], int], list[str]]


def read_json_lines(path: Path) -> Iterator[Any]:
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def read_texts(path: Path) -> list[str]:
    """Whole texts; records of one ``doc_id`` together."""
    found: dict[str, list[str]] = {}
    for i, record in enumerate(read_json_lines(path)):
        found.setdefault(str(record.get("doc_id") or i), []).append(record["text"])
    return ["\n".join(parts) for parts in found.values()]


def take_evenly(items: Sequence[Any], n: int) -> list[Any]:
    """At most ``n``, spread evenly."""
    step = max(1.0, len(items) / max(1, n))
    return [items[int(i * step)] for i in range(min(n, len(items)))]


def of_names(policy: Policy) -> Policy:
    """The policy, for names of people, places and organisations."""
    wanted = (label.name for label in policy.taxonomy if policy.taxonomy.lineage(label.name)[-1] in FAMILIES)
    return policy.with_(every=False, labels=tuple(wanted))


def write_policy(policy: str, folder: str, name: str) -> Policy:
    """A policy from its TOML."""
    path = Path(folder, f"{name}.toml")
    path.write_text(policy, encoding="utf-8")
    return Policy.load(path)


def make_anonymiser(policy: Policy, *, scopes: bool = True) -> Anonymise:
    """What anonymises texts with the key of a number."""

    def run(texts: Sequence[str], number: int) -> list[str]:
        key = KEY + str(number).encode()
        return [
            allonym.anonymize(Document(str(i), text), policy, key=key, scope=f"text {i}" if scopes else "").text
            for i, text in enumerate(texts)
        ]

    return run


@contextmanager
def run_stub_endpoint(seed: int) -> Iterator[str]:
    """A local endpoint that answers with names of the knowledge base; yields its address."""
    kb, rng, lock = KnowledgeBase.open(None), random.Random(seed), threading.Lock()
    given = [*kb.names("first", "american", "f"), *kb.names("first", "american", "m")]
    family = kb.names("last", "american")
    cities = [item.label for item in kb.pool("city") if item.size >= 6]
    pools = {
        "COUNTRY": [item.label for item in kb.pool("country") if item.size >= 6],
        "CITY": cities,
        "LOCATION": cities,
        "ORGANIZATION": [item.label for item in kb.pool("company")],
    }

    def name(label: str) -> str:
        if label == "PERSON":
            return f"{rng.choice(given)} {rng.choice(family)}"
        return rng.choice(pools.get(label) or cities)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            asked = _ASKED.findall(body["messages"][-1]["content"].rpartition("Give a value to each")[2])
            with lock:
                values = {code: name(label) for code, label in asked}
            message = {"role": "assistant", "content": json.dumps({"entities": values})}
            data = json.dumps({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        server.server_close()


def make_methods(wanted: Sequence[str], url: str, model: str, folder: str) -> dict[str, Anonymise]:
    """Name to what anonymises."""
    names = of_names(Policy.load("pseudonyms"))
    out: dict[str, Anonymise] = {}
    for method in wanted:
        if method == "sanitised":
            out[method] = make_anonymiser(of_names(Policy.load("sanitize")))
        elif method == "pseudonyms":
            out[method] = make_anonymiser(names)
        elif method == "one scope":
            out[method] = make_anonymiser(names, scopes=False)
        elif method == "every type":
            out[method] = make_anonymiser(Policy.load("pseudonyms"))
        elif method == "llm":
            toml = f'extends = "pseudonyms"\n[default]\noperator = "llm"\n[llm]\nurl = "{url}"\nmodel = "stub"\n'
            out[method] = make_anonymiser(of_names(write_policy(toml, folder, "llm")))
        elif model:
            toml = f'extends = "pseudonyms"\n[default]\noperator = "seq2seq"\nmodel = {json.dumps(model)}\n'
            out[method] = make_anonymiser(of_names(write_policy(toml, folder, "seq2seq")))
    return out


def leak_rates(records: Sequence[Any], after: Sequence[str]) -> dict[str, float]:
    """P4's Table 4 by surfaces, per type and their mean."""
    found = detection([r["text"] for r in records], list(after), gold=records, draws=0).leaks
    rates = {name: leak.surfaces.value for name, leak in found.types.items() if name in GOLD}
    return {**rates, "mean": sum(rates.values()) / len(rates)}


def compute_mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def average_over_keys(found: Sequence[Syntheticity]) -> dict[str, Any]:
    """Means over keys; the interval is that of the first key."""
    first = found[0]
    out = {
        n: compute_mean([getattr(f, n).value for f in found])
        for n in ("precision", "recall", "f1", "accuracy", "told_apart")
    }
    return out | {
        "f1_interval": [first.f1.low, first.f1.high], "f1_each": [f.f1.value for f in found], "pairs": first.pairs,
        "unchanged": first.unchanged, "kinds": dict(first.kinds),
    }  # fmt: skip


def as_percent(value: float) -> str:
    return f"{100 * value:6.1f}"


def format_change(score: Score) -> str:
    d = score.difference
    return f"{100 * score.anonymised.value:5.1f} ({100 * d.value:+.1f} [{100 * d.low:+.1f}, {100 * d.high:+.1f}])"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--labelled", type=Path)
    parser.add_argument("--summaries", type=Path)
    parser.add_argument("--gold", type=Path)
    parser.add_argument("--texts", type=Path, nargs="*", default=[])
    parser.add_argument("--reviews", type=int, default=400)
    parser.add_argument("--meetings", type=int, default=40)
    parser.add_argument("--longest", type=int, default=60_000, help="characters of a meeting")
    parser.add_argument("--keys", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--seq2seq", default="", help="folder of a model made by allonym train seq2seq")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    wanted = [m.strip() for m in asked.methods.split(",")]
    if unknown := [m for m in wanted if m not in METHODS]:
        parser.error(f"--methods: {', '.join(METHODS)} are known, not {', '.join(unknown)}")
    if not (asked.labelled or asked.summaries or asked.gold or asked.texts):
        parser.error("--labelled, --summaries, --gold or --texts is required")
    reviews = take_evenly(list(read_json_lines(asked.labelled)), asked.reviews) if asked.labelled else []
    meetings = (
        [m for m in read_json_lines(asked.summaries) if len(m["text"]) <= asked.longest] if asked.summaries else []
    )
    meetings = take_evenly(meetings, asked.meetings)
    gold = list(read_json_lines(asked.gold)) if asked.gold else []
    corpora = {path.name.partition(".")[0]: read_texts(path) for path in asked.texts}
    if gold:
        corpora = {asked.gold.name.partition(".")[0]: [r["text"] for r in gold], **corpora}
    figures: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as folder, run_stub_endpoint(asked.seed) as url:
        for name, anonymise in make_methods(wanted, url, asked.seq2seq, folder).items():
            began = time.process_time()
            figures[name] = measure_method(anonymise, reviews, meetings, gold, corpora, asked)
            figures[name]["seconds"] = round(time.process_time() - began, 1)
    print_figures(figures, corpora)
    if "llm" in figures:
        print("llm: a stub endpoint that draws names of our knowledge base at random, not a language model")
    if "seq2seq" in wanted and not asked.seq2seq:
        print("seq2seq: left out, no model given (--seq2seq FOLDER, made by allonym train seq2seq)")
    if gold:
        print(f"leaks: on {asked.gold.name}; P4's CoNLL-2003 is not at hand")
    sizes = {"reviews": len(reviews), "meetings": len(meetings), "gold": len(gold), "keys": asked.keys}
    print(json.dumps({"sizes": sizes, "methods": figures}))


def measure_method(
    anonymise: Anonymise, reviews: list[Any], meetings: list[Any], gold: list[Any], corpora: dict[str, list[str]],
    asked: argparse.Namespace,
) -> dict[str, Any]:  # fmt: skip
    """All figures of one method."""
    out: dict[str, Any] = {}
    if reviews:
        old = [r["text"] for r in reviews]
        labels = {"label": [str(r["label"]) for r in reviews]}
        new = anonymise(old, 0)
        task = downstream(old, new, labels, {"label": "classify"}, repeats=asked.repeats, seed=asked.seed)
        out["classification"] = task.tasks["label"].scores
        out["reviews_changed"] = compute_mean([a != b for a, b in zip(old, new, strict=True)])
    if meetings:
        old = [m["text"] for m in meetings]
        both = anonymise([SPLIT.join((m["text"], *m["summaries"])) for m in meetings], 0)
        parts = [text.split(SPLIT) for text in both]
        refs = {"s": [m["summaries"] for m in meetings]}
        task = downstream(
            old, [p[0] for p in parts], refs, {"s": "summarise"}, anonymised_targets={"s": [p[1:] for p in parts]},
            seed=asked.seed,
        )  # fmt: skip
        out["summaries"] = task.tasks["s"].scores
    found: dict[str, list[Syntheticity]] = {}
    for k in range(asked.keys):
        for name, texts in corpora.items():
            new = anonymise(texts, k)
            if gold and not k and name == next(iter(corpora)):
                out["leaks"] = leak_rates(gold, new)
            found.setdefault(name, []).append(syntheticity(texts, new, seed=asked.seed))
    out["syntheticity"] = {name: average_over_keys(each) for name, each in found.items()}
    for name in ("classification", "summaries"):
        if name in out:
            out[f"{name}_shown"] = {m: format_change(s) for m, s in out[name].items()}
            out[f"{name}_original"] = {m: s.original.value for m, s in out[name].items()}
            out[name] = {m: s.to_dict() for m, s in out[name].items()}
    return out


def print_figures(figures: dict[str, dict[str, Any]], corpora: dict[str, list[str]]) -> None:
    for part, title in (("classification", "Table 3, classification"), ("summaries", "Table 3, summarisation")):
        rows = {name: f for name, f in figures.items() if part in f}
        if not rows:
            continue
        original = next(iter(rows.values()))[f"{part}_original"]
        print(f"{title}: trained on the method's texts, tested on originals (difference to originals)")
        print(f"{'original':12}" + "  ".join(f"{m} {100 * v:5.1f}" for m, v in original.items()))
        for name, f in rows.items():
            print(f"{name:12}" + "  ".join(f"{m} {s}" for m, s in f[f"{part}_shown"].items()))
        print()
    leaky = {name: f["leaks"] for name, f in figures.items() if "leaks" in f}
    if leaky:
        print("Table 4: share of names that still stand in the text (lower is better)")
        for name, rates in leaky.items():
            print(f"{name:12}" + "  ".join(f"{n} {as_percent(v)}" for n, v in rates.items()))
        print()
    print("Table 5: syntheticity (lower is better)")
    for corpus in corpora:
        for name, f in figures.items():
            s = f["syntheticity"][corpus]
            low, high = s["f1_interval"]
            print(
                f"{corpus:22} {name:12} P {as_percent(s['precision'])} R {as_percent(s['recall'])} "
                f"F1 {as_percent(s['f1'])} [{as_percent(low).strip()}, {as_percent(high).strip()}] "
                f"accuracy {as_percent(s['accuracy'])} pairs {s['pairs']} unchanged {s['unchanged']}"
            )
    print()


if __name__ == "__main__":
    main()
