"""How time and memory of swapping grow with a corpus: one table for several sizes, and the exponents between them.

    OMP_NUM_THREADS=1 python benchmarks/swap_growth.py ../shared/data/earnings/earnings21_half_shared.jsonl.gz

The corpus is read once. A size is the corpus and as many varied copies of its documents as it takes: new documents of
new classes. A varied copy has the same sentences, one word in ten of them drawn anew, and other names: of each name
that fewer than three classes know, the word that the fewest names share becomes an invented one, or, for three words in
ten, that of another such name. So chunks differ, the names that all speak of stay common, and the number of names grows
with the corpus while words of names keep meeting in new combinations. Each size has a process of its own; its stages
are what a search, one release and its checks are made of, run once each; seconds are those of the processor, so that a
busy machine does not count. A stage that no other needs is left out where it would take longer than --limit seconds, by
what it took before. Exponents are log(time ratio) / log(size ratio).

"space" predicts, computes densities and the ground again; "sequence" is one drawn sequence of swaps without any limit
on their number; "utility" measures the 30 recorded prefixes of it. The checks judge one draw of the release in ten
folds: up to three million texts times classes by one model for each class, beyond by one for all of them.

Prints the table and, last, one line of JSON.
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import sys
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from itertools import pairwise
from math import log
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from allonym import swap
from allonym.document import Document, Entity, Span
from allonym.plan import Plan, apply_edits, apply_edits_to_parts, digest
from allonym.swap.categories import find_category
from allonym.swap.checks import Changed, check_runs
from allonym.swap.corpus import Chunk, Corpus, Value
from allonym.swap.embedding import open_embedder
from allonym.swap.exchange import exchange
from allonym.swap.making import estimate_changed_word_share
from allonym.swap.release_search import list_candidates_and_rejections
from allonym.swap.selection import choose_fit, summarise_clusters
from allonym.swap.settings import Settings
from allonym.swap.space import (
    draw_sequence,
    embed_chunk_versions,
    embed_corpus,
    fit_mixtures,
    make_space,
    measure_prefixes,
    measure_utility,
)
from allonym.swap.validity import Ground, Rules, find_significant_words
from allonym.swap.writing import write
from allonym.text.names import normalize_surface

KEY = b"a key for the benchmark of growth"
COMMON = 3
"""Classes that know a name from which on it stays the same in all copies."""
REDRAWN, RECYCLED = 0.1, 0.3
"""Share of the words that copies draw anew; share of the words of names that are taken from other names."""
CATEGORIES = ("Organization", "Person", "Location", "Product", "Event", "Date", "Term")
FIXED = ("Date",)
ENCODED = 200
"""Chunks by which the sentence encoder's rate is measured."""
SMALL = frozenset("the and for".split())
WORD = re.compile(r"[^\W_]+")
ONSETS = "b bl br c ch cl cr d dr f fl fr g gl gr h j k kl l m n p pl pr qu r s sh sl st t th tr v w z".split()
NUCLEI = "a e i o u ai ea io ou".split()

# Varied copies


@dataclass(frozen=True)
class Varied:
    """What copies are made from.

    Attributes:
        names: words of names that each copy replaces, sorted; acronyms: those of them that are written in capitals.
        pool: ordinary words of the corpus, as often as they occur.
    """

    names: tuple[str, ...]
    acronyms: frozenset[str]
    pool: tuple[str, ...]


def strip_entity_kind(key: str) -> str:
    """An entity's key without what kind of entity it is."""
    head, mark, tail = key.partition(":")
    return tail if mark and head.isupper() else key


def list_names(corpus: Corpus) -> Iterator[tuple[str, int]]:
    """Every name of the corpus with the document that holds it: protected values, entities' keys, keys of values."""
    for d, (label, found) in enumerate(zip(corpus.classes, corpus.entities, strict=True)):
        yield normalize_surface(label), d
        for entity in found:
            if can_vary(entity.label):
                yield strip_entity_kind(entity.key), d
    for chunk in corpus.chunks:
        for value in chunk.values:
            if value.category not in FIXED:
                yield value.key, chunk.document


def can_vary(label: str) -> bool:
    """Whether entities of a label get other names in copies: dates, numbers and addresses do not."""
    return label == "COMPANY" or find_category(label, CATEGORIES) not in ("", *FIXED)


def find_varied_names(corpus: Corpus) -> Varied:
    """What of a corpus its copies vary; see the head of this file."""
    homes: dict[str, set[str]] = {}
    for name, d in list_names(corpus):
        homes.setdefault(name, set()).add(corpus.classes[d])
    words = {
        name: sorted(w for w in find_significant_words(name) - SMALL if len(w) > 1 and not w.isdigit())
        for name in homes
    }
    protected = {normalize_surface(label) for label in corpus.classes}
    common = {w for name, known in homes.items() if len(known) >= COMMON and name not in protected for w in words[name]}
    holders = Counter(w for some in words.values() for w in some)
    picked: set[str] = set()
    for name in sorted(homes):
        own = words[name] if name in protected else [w for w in words[name] if w not in common]
        if own:
            picked.add(min(own, key=lambda w: (w in common, holders[w], w)))
    capitals = set()
    pool = []
    for document in corpus.documents:
        for token in WORD.findall(document.text):
            if token.isupper() and 1 < len(token) <= 6:
                capitals.add(token.lower())
            elif token.islower() and len(token) > 2 and token not in picked:
                pool.append(token)
    return Varied(tuple(sorted(picked)), frozenset(capitals & picked), tuple(pool))


def new_names(about: Varied, rng: np.random.Generator, taken: set[str]) -> dict[str, str]:
    """One copy's words of names; no two words become the same. ``taken`` holds what is invented already."""
    again = [w for w, hit in zip(about.names, rng.random(len(about.names)) < RECYCLED, strict=True) if hit]
    out = dict(zip(again, (again[i] for i in rng.permutation(len(again))), strict=True))
    for word in about.names:
        if word in out:
            continue
        made = ""
        while not made or made in taken:
            made = invent_word(rng, word in about.acronyms) + ("s" if word.endswith("s") else "")
        taken.add(made)
        out[word] = made
    return out


def invent_word(rng: np.random.Generator, capitals: bool) -> str:
    """A word that nobody knows, in small letters: five of them for an acronym, else four syllables."""
    if capitals:
        return "".join(chr(97 + i) for i in rng.integers(0, 26, 5).tolist())
    onsets, nuclei = rng.integers(0, len(ONSETS), 4).tolist(), rng.integers(0, len(NUCLEI), 4).tolist()
    return "".join(ONSETS[a] + NUCLEI[b] for a, b in zip(onsets, nuclei, strict=True))


def as_written(token: str, new: str) -> str:
    """The word in the letters of the one whose place it takes."""
    if token.isupper() and len(token) > 1:
        return new.upper()
    return new[:1].upper() + new[1:] if token[:1].isupper() else new


def rename_words(text: str, names: Mapping[str, str]) -> str:
    """A name with its words replaced."""
    return WORD.sub(lambda m: as_written(m[0], names[w]) if (w := normalize_surface(m[0])) in names else m[0], text)


class Template:
    """One document of the corpus, cut into what copies replace and what they keep.

    A word is replaced only where no border of anything lies inside of it, so that all places can be moved along.
    """

    def __init__(self, corpus: Corpus, d: int, about: Varied) -> None:
        self.corpus, self.d = corpus, d
        self.chunks = [c for c in corpus.chunks if c.document == d]
        text, plan, found = corpus.documents[d].text, corpus.plans[d], corpus.entities[d]
        spans = [s for e in found for s in e.spans] + [s for c in self.chunks for v in c.values for s in v.spans]
        document = corpus.documents[d]
        borders = {0, len(text), *(p for s in spans for p in (s.start, s.end))}
        borders |= {p for e in plan.edits for p in (e.start, e.end)} | {
            p for c in self.chunks for p in (c.start, c.end)
        }
        borders |= {p for some in (document.parts, corpus.sections[d]) for pair in some for p in pair}
        borders |= {p for t in document.turns for p in (t.start, t.end, *(t.speaker or ()))}
        self.borders = np.array(sorted(borders), np.int64)
        self.place = {int(p): i for i, p in enumerate(self.borders)}
        inside = np.zeros(len(text) + 1, np.int8)
        for edit in plan.edits:
            inside[edit.start : edit.end] = 1
        for kind in (1, 2):
            for span in spans:
                if kind == 1 or can_vary(span.label):
                    inside[span.start : span.end] = kind
        known = frozenset(about.names)
        self.tokens: list[tuple[int, int, str]] = []  # start, end, word of a name or empty
        for match in WORD.finditer(text):
            a, b = match.span()
            i = int(np.searchsorted(self.borders, a, side="right"))
            if i < len(self.borders) and self.borders[i] < b:
                continue
            if inside[a] == 2 and (word := normalize_surface(match[0])) in known:
                self.tokens.append((a, b, word))
            elif not inside[a] and match[0].islower() and b - a > 2:
                self.tokens.append((a, b, ""))
        self.ends = np.array([b for _, b, _ in self.tokens], np.int64)
        self.after = np.searchsorted(self.ends, self.borders, side="right")

    def copy(
        self, at: int, names: Mapping[str, str], about: Varied, rng: np.random.Generator
    ) -> tuple[Document, str, tuple[Any, ...], list[Chunk], tuple[Entity, ...], Plan]:
        """The document with other names: what :class:`Corpus` holds of document ``at``."""
        corpus, d = self.corpus, self.d
        old, plan = corpus.documents[d], corpus.plans[d]
        text = old.text
        hit = (rng.random(len(self.tokens)) < REDRAWN).tolist()
        drawn = rng.integers(0, len(about.pool), len(self.tokens)).tolist()
        pieces: list[str] = []
        moved_by = [0]
        done = 0
        for k, (a, b, word) in enumerate(self.tokens):
            new = as_written(text[a:b], names[word]) if word else about.pool[drawn[k]] if hit[k] else ""
            if new:
                pieces += (text[done:a], new)
                done = b
            moved_by.append(moved_by[-1] + (len(new) - (b - a) if new else 0))
        made = "".join((*pieces, text[done:]))
        now: list[int] = (self.borders + np.array(moved_by)[self.after]).tolist()
        place = self.place
        known: dict[Span, Span] = {}

        def of(p: int) -> int:
            return now[place[p]]

        def span(s: Span) -> Span:
            if s not in known:
                known[s] = Span(of(s.start), of(s.end), s.label, s.score, s.source)
            return known[s]

        edits = tuple(
            replace(e, start=of(e.start), end=of(e.end), original=made[of(e.start) : of(e.end)]) for e in plan.edits
        )
        label = rename_words(corpus.classes[d], names)
        meta = {**old.meta, corpus.protect: label}
        parts = tuple((of(a), of(b)) for a, b in old.parts)
        turns = tuple(
            replace(t, start=of(t.start), end=of(t.end), speaker=t.speaker and (of(t.speaker[0]), of(t.speaker[1])))
            for t in old.turns
        )
        document = Document(f"{old.id}-{at}", made, meta, parts, turns)
        starts = [e.start for e in edits]
        chunks = []
        for c in self.chunks:
            a, b = of(c.start), of(c.end)
            some = edits[bisect_left(starts, a) : bisect_left(starts, b)]
            values = tuple(
                Value(
                    v.category,
                    v.key if v.category in FIXED else rename_words(v.key, names),
                    v.forms if v.category in FIXED else tuple(rename_words(f, names) for f in v.forms),
                    tuple(map(span, v.spans)),
                )
                for v in c.values
            )
            chunks.append(Chunk(at, a, b, apply_edits_to_parts(made, ((a, b),), list(some))[0], values))
        entities = tuple(
            Entity(renamed_key(e, names) if can_vary(e.label) else e.key, e.label, tuple(map(span, e.spans)))
            for e in corpus.entities[d]
        )
        section = tuple((of(a), of(b)) for a, b in corpus.sections[d])
        return (
            document,
            label,
            section,
            chunks,
            entities,
            Plan(digest(made), edits, plan.notes, digest(apply_edits(made, edits))),
        )


def renamed_key(entity: Entity, names: Mapping[str, str]) -> str:
    """The entity's key with its words replaced."""
    name = strip_entity_kind(entity.key)
    return entity.key[: len(entity.key) - len(name)] + rename_words(name, names)


def repeat_corpus(corpus: Corpus, size: int, seed: int = 0) -> Corpus:
    """The corpus and varied copies of its documents, until it has ``size`` chunks at least; whole documents.

    A corpus that is larger is cut to the documents that it takes.
    """
    about = find_varied_names(corpus)
    templates: list[Template] = []
    documents, classes, sections, chunks, entities, plans = [], [], [], [], [], []  # type: ignore[var-annotated]
    taken = {w for name, _ in list_names(corpus) for w in WORD.findall(name)}
    number = 0
    while len(chunks) < size:
        rng = np.random.default_rng([seed, number])
        names = new_names(about, rng, taken) if number else {}
        for d in range(len(corpus.documents)):
            if len(chunks) >= size:
                break
            if not number:
                templates.append(Template(corpus, d, about))
                parts: Any = (corpus.documents[d], corpus.classes[d], corpus.sections[d], templates[d].chunks)
                parts = (*parts, corpus.entities[d], corpus.plans[d])
            else:
                parts = templates[d].copy(len(documents), names, about, rng)
            for to, part in zip((documents, classes, sections), parts[:3], strict=True):
                to.append(part)
            chunks += parts[3]
            entities.append(parts[4])
            plans.append(parts[5])
        number += 1
    return replace(
        corpus,
        documents=tuple(documents),
        classes=tuple(classes),
        sections=tuple(sections),
        chunks=tuple(chunks),
        entities=tuple(entities),
        plans=tuple(plans),
    )


# Stages


class Watch:
    """Times stages; of those that no other needs it leaves out what would take too long.

    Args:
        limit: seconds; before: stage to (size, seconds, exponent) of the size before.
    """

    def __init__(self, n: int, limit: float, before: Mapping[str, tuple[int, float, float]]) -> None:
        self.n, self.limit, self.before = n, limit, before
        self.seconds: dict[str, float] = {}
        self.skipped: dict[str, str] = {}
        self.memory: dict[str, float] = {}

    def expected(self, name: str) -> float:
        """Seconds that a stage will take, by the last two sizes; 0 where nothing is known."""
        if name not in self.before:
            return 0.0
        n, seconds, exponent = self.before[name]
        return float(seconds * (self.n / n) ** exponent)

    def __call__(self, name: str, make: Callable[[], Any]) -> Any:
        """What ``make`` returns."""
        began, wall = time.process_time(), time.perf_counter()
        out = make()
        self.seconds[name], wall = time.process_time() - began, time.perf_counter() - wall
        self.memory[name] = measure_peak_memory()
        times = f"{self.seconds[name]:>9.2f} s, {wall:.2f} s by the clock"
        line = f"  {self.n:>7} chunks  {name:<28}{times}, {self.memory[name]:.2f} GB"
        print(line, file=sys.stderr, flush=True)
        return out

    def leaf(self, name: str, make: Callable[[], Any]) -> None:
        """Run a stage that no other needs, if it is expected to stay within the limit."""
        if (expected := self.expected(name)) > self.limit:
            self.skipped[name] = f"{expected:.0f} s expected, over the limit of {self.limit:.0f} s"
        else:
            self(name, make)


def measure_peak_memory() -> float:
    """GB, the most that this process ever held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def measure_stages(
    real: Corpus, size: int, limit: float, before: Mapping[str, tuple[int, float, float]]
) -> dict[str, Any]:
    """Every stage of a search, one release and its checks, on a corpus of ``size`` chunks."""
    began = time.perf_counter()
    corpus = repeat_corpus(real, size)
    n = len(corpus.chunks)
    made = time.perf_counter() - began
    base = measure_peak_memory()
    watch = Watch(n, limit, before)
    settings = Settings.load("default").with_({"embed.name": "lsa"})
    embedded = watch("embed (lsa)", lambda: embed_corpus(corpus, settings))
    fits = watch("mixture, all candidates", lambda: fit_mixtures(embedded.vectors, settings.mixture, seed=1))
    best = choose_fit(fits, settings.mixture.criterion)
    found = watch("tables and fits", lambda: list_candidates_and_rejections(corpus, settings)[0])
    ground = watch("ground of exchanges", lambda: Ground.of(corpus))
    space = watch("space of exchanges", lambda: make_space(corpus, embedded, best.mixture, settings))
    every = corpus.swapped
    paper = replace(Rules(**vars(Settings.load("p1").exchange), categories=("Organization", "Product")), swaps=0)
    watch.leaf("sequence, pairs as in P1", lambda: exchange(corpus, space.labels, paper, 1, ground=ground))
    sequence = watch("sequence, default", lambda: draw_sequence(space, every, 1))
    uniques = max(found, key=lambda c: (c.categories == every, len(c.categories))).uniques
    every_chunk = replace(space, settings=settings.with_({"search.sample": 0}))
    watch.leaf("utility, 240 chunks drawn", lambda: measure_prefixes(space, sequence, uniques))
    watch.leaf("utility, all chunks", lambda: measure_prefixes(every_chunk, sequence, uniques))
    placed, fallback = sequence.map_slots_to_donors(), {c: settings.fallback_for(c) for c in every}
    written = watch("write", lambda: write(corpus, placed, fallback=fallback, key=KEY))
    texts = {i: t.text for i, t in enumerate(written.chunk_texts) if t.text != corpus.chunks[i].text}
    watch.leaf(
        "U and D of the release", lambda: measure_utility(space, embed_chunk_versions(space, sorted(texts.items())))
    )
    watch.leaf("words changed", lambda: estimate_changed_word_share(corpus, texts))
    watch.leaf("summaries of clusters", lambda: summarise_clusters(corpus, best.mixture, space.labels))
    run = Changed(texts, placed, {i: written.chunk_texts[i].marks for i in texts})
    watch.leaf("check by entities", lambda: check_runs(corpus, [run], ("entities",), seed=1))
    watch.leaf("check by words", lambda: check_runs(corpus, [run], ("words",), seed=1))
    values = [v for c in corpus.chunks for v in c.values]
    return {
        "n": n,
        "documents": len(corpus.documents),
        "values": len(values),
        "names": len({(v.category, v.key) for v in values}),
        "components": best.left,
        "swaps": len(sequence.swaps),
        "changed": len(texts),
        "made": made,
        "seconds": watch.seconds,
        "skipped": watch.skipped,
        "corpus memory": base,
        "memory": measure_peak_memory(),
        "memory after": watch.memory,
    }


def compute_exponents(small: Mapping[str, Any], large: Mapping[str, Any]) -> dict[str, float]:
    """Per stage that both sizes have: log(time ratio) / log(size ratio)."""
    ratio = log(large["n"] / small["n"])
    return {
        name: log(max(seconds, 1e-9) / max(small["seconds"][name], 1e-9)) / ratio
        for name, seconds in large["seconds"].items()
        if name in small["seconds"] and ratio > 0
    }


def summarise_stages(results: Sequence[Mapping[str, Any]]) -> dict[str, tuple[int, float, float]]:
    """What is known of each stage before the next size: see :class:`Watch`; growth is taken as linear at least."""
    if not results:
        return {}
    last = results[-1]
    grew = compute_exponents(results[-2], last) if len(results) > 1 else {}
    return {name: (last["n"], s, max(1.0, grew.get(name, 1.0))) for name, s in last["seconds"].items()}


def format_table(results: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The lines of the table: seconds per stage and size, and exponents between them."""
    names = list(dict.fromkeys(name for r in results for name in (*r["seconds"], *r["skipped"])))
    grew = [compute_exponents(a, b) for a, b in pairwise(results)]
    sizes = "".join(f"{r['n']:>11,}" for r in results)
    yield f"{'seconds, chunks:':<28}{sizes}   exponents"
    for name in names:
        cells = "".join(f"{r['seconds'][name]:>11.2f}" if name in r["seconds"] else f"{'-':>11}" for r in results)
        yield f"{name:<28}{cells}   " + "  ".join(f"{g[name]:.2f}" if name in g else "-" for g in grew)
    for what in ("documents", "values", "names", "components", "swaps", "changed"):
        yield f"{what:<28}" + "".join(f"{r[what]:>11,}" for r in results)
    for what in ("corpus memory", "memory"):
        yield f"{'peak ' + what + ', GB':<28}" + "".join(f"{r[what]:>11.2f}" for r in results)
    for r in results:
        yield from (f"left out at {r['n']:,}: {name}: {why}" for name, why in r["skipped"].items())


def encoder_rate(texts: Iterable[str]) -> float:
    """Chunks a second that the sentence encoder embeds on one thread."""
    some = list(texts)
    embedder = open_embedder("encoder", threads=1)
    embedder.encode(some[:5])
    began = time.perf_counter()
    embedder.encode(some)
    return len(some) / (time.perf_counter() - began)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("corpus", type=Path, help="a file of calls with text and meta.company")
    arguments.add_argument("--sizes", default="2000,20000,200000")
    arguments.add_argument("--protect", default="company")
    arguments.add_argument("--limit", type=float, default=360.0, help="seconds of a stage")
    given = arguments.parse_args()
    sizes = sorted(int(size) for size in given.sizes.split(","))
    began = time.perf_counter()
    real = swap.load(given.corpus, given.protect, fields=["text"])
    read = 1000 * (time.perf_counter() - began) / len(real.chunks)
    rate = encoder_rate(c.text for c in real.chunks[:ENCODED])
    results: list[dict[str, Any]] = []
    for size in sizes:
        # A process of its own: memory is that of this size alone.
        with ProcessPoolExecutor(1, get_context("spawn")) as alone:
            results.append(alone.submit(measure_stages, real, size, given.limit, summarise_stages(results)).result())
    print(f"read: {len(real.chunks):,} real chunks, {read:.1f} s per 1,000; encoder: {rate:.1f} chunks/s, one thread")
    print("\n".join(format_table(results)))
    print(json.dumps({"read s per 1000": read, "encoder chunks/s": rate, "sizes": results}))


if __name__ == "__main__":
    main()
