"""P5's experiment: anonymise, let something rewrite the text, bring the originals back.

usage: python benchmarks/round_trip.py PATH... [--n 10000] [--operators tag,wild_tag,pseudonym] [--seed 1] [--workers 2]
                                       [--rewriters NAMES] [--each] [--held-out] [--vault] [--cache FILE]
                                       [--failures FILE] [--detected]

The operator ``form_tag`` writes tags that carry the form of a name, ``[PERSON_1.given]``.

P5 (Zarski and Janicki 2025, section 3.3) took 10,000 Polish headlines of at least 35 words and five entities; a model
anonymised, paraphrased and restored them. Here each PATH is JSONL (field text). Records whose meta.lang is "pl" bring
their own spans (PER, LOC, ORG, MISC): neighbouring sentences are joined until a text has 35 words and five mentions.
With ``--detected`` the default policy's detection finds the mentions instead, and texts with fewer are left out.
Of all others, the same detection finds the mentions, and long documents are cut at sentence ends to texts of 35 to 120
words with five mentions. Half of the texts are Polish where there are such records.

Each text is rewritten by one rewriter of ``rewriting/first.py`` and ``further.py``, drawn at random, in one case
of four by two of them in turn; ``--each`` takes them all, one at a time. ``--held-out`` takes those of
``held_out.py`` instead. Originals come back through the plan, or with ``--vault`` from one vault with all texts in one
scope, which has to find the document.

What may stand where a mention stood is known exactly, as is everything else. A mention is restored (its own surface,
another one of its entity, or the like form of it: shortened, inflected, capital letters), left as the rewriter wrote
it, or wrong (another original, or mangled). Where anything else differs, the text counts as corrupted. A text is right
where all mentions that the rewriter kept are restored and nothing is corrupted.

``--cache`` keeps texts and findings of a run for the next. ``--failures`` writes what went wrong, with texts. Prints
P5's Tables 4 to 7, tables by rewriter and by what P5 found hard, and, last, one line of JSON.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from itertools import islice, pairwise
from pathlib import Path
from random import Random
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.rewriting.first import DROPPING, REWRITERS
from benchmarks.rewriting.further import FURTHER
from benchmarks.rewriting.held_out import HELD_OUT
from benchmarks.rewriting.pairs import compose_names
from benchmarks.rewriting.pieces import Piece, Rewrite, join_pieces, split_pieces

import allonym
from allonym import registry
from allonym.detection.turns import add_turns
from allonym.labels import TAXONOMY
from allonym.link import link
from allonym.plan import Plan, apply_edits
from allonym.policy import Policy, Rule
from allonym.replace import make_plan
from allonym.restoration import restore

KEY = b"benchmark of the round trip"
FORM_TAG = "form_tag"
SCOPE = "round trip"
WORDS, MENTIONS, LONGEST = 35, 5, 120
GIVEN = {"PER": "PERSON", "LOC": "LOCATION", "ORG": "ORGANIZATION", "MISC": "OTHER_IDENTIFYING_ATTRIBUTE"}
TWO = "two of them"
ALL: dict[str, Rewrite] = {**REWRITERS, **FURTHER, **HELD_OUT}
_END = re.compile(r"[.!?][\"'”)]*\s+|\n+")


@dataclass(frozen=True, slots=True)
class Case:
    """A text with its mentions, and which of them lay within or around another finding."""

    id: str
    language: str
    text: str
    spans: tuple[allonym.Span, ...]
    nested: frozenset[int] = frozenset()


# The texts.


def read_records(path: Path) -> Iterator[Any]:
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def make_polish_cases(rows: Iterable[Any]) -> Iterator[Case]:
    """Neighbouring sentences joined by a space until there are enough words and mentions."""
    text, spans, first = "", [], ""
    for row in rows:
        first = first or row["id"]
        at = len(text) + bool(text)
        text += " " * bool(text) + row["text"]
        spans += [allonym.Span(at + s["start"], at + s["end"], GIVEN[s["label"]], 1.0, "given") for s in row["spans"]]
        if len(text.split()) >= WORDS and len(spans) >= MENTIONS:
            yield Case(first, "pl", text, tuple(sorted(spans)))
            text, spans, first = "", [], ""


def find_mentions(case: Case) -> Case:
    """The same text with the mentions that the default policy finds in it, instead of those of its corpus."""
    return replace(case, spans=tuple(allonym.detect(case.text)))


def make_english_cases(row: Any) -> list[Case]:
    """The pieces of a document that have enough words and mentions."""
    text = row["text"]
    found = allonym.detect(text)
    inner = {
        (d.winner.start, d.winner.end)
        for d in allonym.explain(text)
        if d.outcome in ("absorbed", "clipped")
        and d.winner is not None
        and (d.span.start, d.span.end) != (d.winner.start, d.winner.end)
        and (d.winner.start <= d.span.start and d.span.end <= d.winner.end)
    }
    ends = [m.end() for m in _END.finditer(text)] + [len(text)]
    ends = [e for e in ends if not any(s.start < e < s.end for s in found)]
    out: list[Case] = []
    start, i = 0, 0
    for end in ends:
        count = len(text[start:end].split())
        while i < len(found) and found[i].end <= start:
            i += 1
        inside = [s for s in islice(found, i, None) if s.start >= start and s.end <= end]
        if count > LONGEST:
            start = end
        elif count >= WORDS and len(inside) >= MENTIONS:
            piece = text[start:end].rstrip()
            spans = tuple(allonym.Span(s.start - start, s.end - start, s.label, s.score, s.source) for s in inside)
            nested = frozenset(n for n, s in enumerate(inside) if (s.start, s.end) in inner)
            out.append(Case(f"{row['id']}:{start}", "en", piece, spans, nested))
            start = end
    return out


def read_cases(paths: Sequence[Path], n: int, workers: int, is_detected: bool = False) -> list[Case]:
    """``n`` texts in random order, half of them Polish where there are such records; of the others, every file gives
    the same number as long as it has any. ``is_detected``: mentions in Polish texts are found, too."""
    given: list[Any] = []
    others: list[list[Any]] = []
    for path in paths:
        rows = list(read_records(path))
        (given.extend if rows[0].get("meta", {}).get("lang") == "pl" else others.append)(rows)
    out = list(islice(make_polish_cases(given), n // 2 if others else n))
    found: list[list[Case]] = [[] for _ in others]
    at = [0] * len(others)
    with ProcessPoolExecutor(workers) as pool:
        out = [c for c in pool.map(find_mentions, out) if len(c.spans) >= MENTIONS] if is_detected else out
        while len(out) + sum(map(len, found)) < n:
            left = [i for i, rows in enumerate(others) if at[i] < len(rows)]
            if not left:
                break
            i = min(left, key=lambda i: len(found[i]))
            for texts in pool.map(make_english_cases, others[i][at[i] : at[i] + 4 * workers]):
                found[i] += texts
            at[i] += 4 * workers
    out = (out + [case for texts in found for case in texts])[:n]
    Random(0).shuffle(out)
    return out


def read_cache(path: Path) -> list[Case]:
    return [
        Case(r["id"], r["lang"], r["text"], tuple(allonym.Span(*s) for s in r["spans"]), frozenset(r["nested"]))
        for r in read_records(path)
    ]


def write_cache(path: Path, found: Iterable[Case]) -> None:
    with gzip.open(path, "wt", encoding="utf-8") as out:
        for c in found:
            spans = [[s.start, s.end, s.label, s.score, s.source] for s in c.spans]
            row = {"id": c.id, "lang": c.language, "text": c.text, "spans": spans, "nested": sorted(c.nested)}
            out.write(json.dumps(row, ensure_ascii=False) + "\n")


# Encoding and what is hard about a text.


@lru_cache(maxsize=32)
def make_policy(operator: str, language: str) -> Policy:
    policy = Policy.load("default").with_(default=Rule(operator), rules={}, language=language)
    return policy.with_(default=Rule("tag"), style="[{label}_{n}{form}]") if operator == FORM_TAG else policy


@lru_cache(maxsize=4096)
def find_family(label: str) -> str:
    return TAXONOMY.lineage(label)[-1]


def anonymise_case(case: Case, operator: str, book: Any = None) -> Plan:
    document = add_turns(allonym.Document("", case.text))
    policy = make_policy(operator, case.language)
    linked = link(document, case.spans, policy.taxonomy)
    return make_plan(document, linked, policy, key=KEY, scope=SCOPE, book=book)


def is_complete(case: Case, plan: Plan) -> bool:
    """P5's Table 4: every mention is replaced, and the plan knows what stood there.

    Only dates may stay as they are: relative ones (``last year``), and years whose day was moved within them.
    """
    covered = bytearray(len(case.text))
    for e in plan.edits:
        same = e.entity and e.original == e.replacement and find_family(e.label) != "DATE_TIME"
        if same or e.original != case.text[e.start : e.end]:
            return False
        covered[e.start : e.end] = b"\1" * (e.end - e.start)
    return all(all(covered[s.start : s.end]) for s in case.spans)


def list_strata(case: Case) -> frozenset[str]:
    """P5's hard ones that the text has: adjacent mentions of one type, long ones, nested ones."""
    out = set()
    if any(
        find_family(a.label) == find_family(b.label) and not any(c.isalnum() for c in case.text[a.end : b.start])
        for a, b in pairwise(case.spans)
    ):
        out.add("adjacent, one type")
    if any(len(case.text[s.start : s.end].split()) > 3 for s in case.spans):
        out.add("long (4 words or more)")
    if case.nested:
        out.add("nested")
    return frozenset(out)


# What came back.

OWN, LIKE, LEFT, WRONG = 0, 1, 2, 3
_COST = (0, 1, 100, 10_000)
_Path = tuple[int, Any]


def compare_pieces(pieces: Sequence[Piece], result: str) -> list[int] | None:
    """What became of each mention (OWN, LIKE, LEFT, WRONG), in order; None: something else differs."""
    return _align_pieces(pieces, result, False) or _align_pieces(pieces, result, True)


def _align_pieces(pieces: Sequence[Piece], result: str, wild: bool) -> list[int] | None:
    """The cheapest way to read the pieces off the result, by dynamic programming over how far it has been read."""
    reached: dict[int, _Path] = {0: (0, None)}
    for piece in pieces:
        ahead: dict[int, _Path] = {}
        for at, (cost, path) in reached.items():
            if piece.edit < 0:
                for text in (piece.text, *piece.accepted):
                    if result.startswith(text, at):
                        _keep_cheaper(ahead, at + len(text), cost, path)
                continue
            for end, outcome in _list_readings(piece, result, at):
                _keep_cheaper(ahead, end, cost + _COST[outcome], (path, outcome))
        if wild and piece.edit >= 0:
            cost, path = min(reached.values(), key=lambda way: way[0])
            first = min(at for at, way in reached.items() if way[0] == cost)
            for end in range(first, len(result) + 1):
                _keep_cheaper(ahead, end, cost + _COST[WRONG], (path, WRONG))
        if not ahead:
            return None
        reached = ahead
    if len(result) not in reached:
        return None
    out: list[int] = []
    path = reached[len(result)][1]
    while path is not None:
        path, outcome = path
        out.append(outcome)
    return out[::-1]


def _keep_cheaper(ahead: dict[int, _Path], end: int, cost: int, path: Any) -> None:
    if end not in ahead or ahead[end][0] > cost:
        ahead[end] = (cost, path)


def _list_readings(piece: Piece, result: str, at: int) -> Iterator[tuple[int, int]]:
    """Where a mention that begins at ``at`` may end, and what it then is."""
    if result.startswith(piece.own, at):
        yield at + len(piece.own), OWN
    for text in piece.accepted:
        if result.startswith(text, at):
            yield at + len(text), LIKE
    for pattern in piece.loose:
        found = re.compile(pattern, re.IGNORECASE)
        longest = found.match(result, at)
        for end in range(longest.end(), max(at, longest.end() - 8), -1) if longest else ():
            if found.fullmatch(result, at, end):
                yield end, LIKE
    if result.startswith(piece.text, at):
        yield at + len(piece.text), LEFT


@dataclass
class Tally:
    """Counts over texts and mentions. Mentions of a corrupted text count as wrong."""

    texts: int = 0
    right: int = 0
    left: int = 0
    wrong: int = 0
    corrupted: int = 0
    failed: int = 0
    unchanged: int = 0
    entities_back: int = 0
    mentions: Counter[int] = field(default_factory=Counter)
    rewritten: int = 0

    def add(self, other: Tally) -> None:
        for name in self.__dataclass_fields__:
            value = getattr(other, name)
            if isinstance(value, Counter):
                getattr(self, name).update(value)
            else:
                setattr(self, name, getattr(self, name) + value)

    def figures(self) -> dict[str, Any]:
        kept = sum(self.mentions.values())
        back = self.mentions[OWN] + self.mentions[LIKE]
        return {
            "texts": self.texts,
            "right": divide(self.right, self.texts),
            "mentions": kept,
            "rewritten_mentions": self.rewritten,
            "restored": divide(back, kept),
            "restored_own_surface": divide(self.mentions[OWN], kept),
            "mentions_left": self.mentions[LEFT],
            "mentions_wrong": self.mentions[WRONG],
            "texts_left": self.left,
            "texts_wrong": self.wrong,
            "texts_corrupted": self.corrupted,
            "texts_failed": self.failed,
        }


def divide(part: int, whole: int) -> float | None:
    return round(part / whole, 5) if whole else None


@dataclass(frozen=True, slots=True)
class Job:
    operators: tuple[str, ...]
    rewriters: tuple[str, ...]
    seed: int
    each: bool
    held_out: bool
    vault: str = ""
    """The folder with a vault of all texts for each operator; empty: their plans restore them."""


def draw_rewriters(case: Case, job: Job, pieces: list[Piece]) -> list[tuple[str, ...]]:
    """The rewriters of a text: one, or two to be applied one after the other; with ``each`` all of them in turn.

    One that finds nothing to do in a text (no name to shorten, no quotes to turn) is drawn anew.
    """
    rng = Random(f"{job.seed}:{case.id}")
    if job.each:
        pair = compose_names(job.rewriters, rng)
        return [(name,) for name in job.rewriters] + ([pair] if pair else [])
    names: tuple[str, ...] = ()
    for _ in range(20):
        names = (compose_names(job.rewriters, rng) if rng.random() < 0.25 else ()) or (rng.choice(job.rewriters),)
        if names == ("none",) or join_pieces(rewrite_pieces(pieces, names, f"{job.seed}:{case.id}")) != join_pieces(
            pieces
        ):
            break
    return [names]


def rewrite_pieces(pieces: list[Piece], names: Sequence[str], seed: str) -> list[Piece]:
    for name in names:
        pieces = [p for p in ALL[name](pieces, Random(f"{seed}:{name}")) if p.text]
    return pieces


def run_case(case: Case, job: Job) -> list[dict[str, Any]]:
    """One row for each operator and rewriting of a text."""
    out: list[dict[str, Any]] = []
    for operator in job.operators:
        row: dict[str, Any] = {"operator": operator, "id": case.id, "language": case.language}
        vault: Any = None
        try:
            plan, vault = _get_plan_and_vault(case, operator, job.vault)
            row["encoded"] = "complete" if is_complete(case, plan) else "incomplete"
        except Exception as error:
            out.append({**row, "encoded": type(error).__name__, "rewriter": "none"})
            continue
        pieces = split_pieces(case.text, plan, find_family)
        before = apply_edits(case.text, plan.edits)
        for names in draw_rewriters(case, job, pieces):
            after = rewrite_pieces(pieces, names, f"{job.seed}:{case.id}")
            text = join_pieces(after)
            tally = Tally(texts=1, unchanged=text.strip() == before.strip())
            mentions = [p for p in after if p.edit >= 0]
            tally.rewritten = sum(p.text != p.made for p in mentions)
            one = {**row, "rewriter": names[0] if len(names) == 1 else TWO, "names": names, "tally": tally}
            out.append(one)
            try:
                result = restore(text, **({"vault": vault, "scope": SCOPE} if vault else {"plan": plan}))
            except Exception as error:
                tally.failed, one["class"] = 1, type(error).__name__
                continue
            found = compare_pieces(after, result.text)
            tally.mentions.update(found if found is not None else [WRONG] * len(mentions))
            worst = max(found, default=OWN) if found is not None else None
            back = {p.entity for p, o in zip(mentions, found or (), strict=False) if o in (OWN, LIKE)}
            tally.right = int(worst is not None and worst <= LIKE)
            tally.left, tally.wrong, tally.corrupted = worst == LEFT, worst == WRONG, worst is None
            tally.entities_back = int(bool(tally.right) and back >= {p.entity for p in pieces if p.edit >= 0})
            one["class"] = "corrupted" if worst is None else ("right", "right", "left", "wrong")[worst]
            if one["class"] != "right":
                one["rewritten"], one["restored"] = text, result.text
                one["wanted"] = "".join(p.own or p.text for p in after)
                one["mentions"] = [
                    {"outcome": ("own", "like", "left", "wrong")[o], "label": p.label, "original": p.own}
                    | {"made": p.made, "stood": p.text}
                    for p, o in zip(mentions, found or [WRONG] * len(mentions), strict=True)
                    if o >= LEFT
                ]
    return out


def build_vaults(cases: Sequence[Case], operators: Sequence[str], folder: Path) -> None:
    """Write a vault of all texts for each operator; a text that fails is left out."""
    from allonym.vault import Vault

    for operator in operators:
        with Vault.create(folder / f"{operator}.vault", KEY) as vault:
            for case in cases:
                with suppress(allonym.AllonymError), vault.book(SCOPE) as book:
                    plan = anonymise_case(case, operator, book)
                    book.keep_plan(case.id, plan, apply_edits(case.text, plan.edits))


@lru_cache(maxsize=8)
def _open_vault(path: str) -> Any:
    from allonym.vault import Vault

    return Vault.open(path, KEY)


def _get_plan_and_vault(case: Case, operator: str, folder: str) -> tuple[Plan, Any]:
    if not folder:
        return anonymise_case(case, operator), None
    vault = _open_vault(f"{folder}/{operator}.vault")
    return vault.plans(SCOPE, case.id)[-1].plan, vault


# The tables.


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", type=Path, nargs="+")
    parser.add_argument("--n", type=int, default=10_000)
    parser.add_argument("--operators", default="tag,wild_tag,pseudonym")
    parser.add_argument("--rewriters", default="all", help="names, comma for and; 'last, first' is 'last; first' here")
    parser.add_argument("--each", action="store_true", help="every rewriter on every text")
    parser.add_argument("--held-out", action="store_true")
    parser.add_argument("--vault", action="store_true")
    parser.add_argument("--detected", action="store_true", help="find the mentions in Polish texts, too")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--cache", type=Path)
    parser.add_argument("--failures", type=Path)
    args = parser.parse_args()
    pool = HELD_OUT if args.held_out else {**REWRITERS, **FURTHER}
    chosen = tuple(pool) if args.rewriters == "all" else tuple(n.replace(";", ",") for n in args.rewriters.split(","))
    known = [o for o in args.operators.split(",") if o in (*registry.operators.names(), FORM_TAG)]
    if args.cache is not None and args.cache.exists():
        texts = read_cache(args.cache)[: args.n]
    else:
        texts = read_cases(args.paths, args.n, args.workers, args.detected)
        if args.cache is not None:
            write_cache(args.cache, texts)
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder, ProcessPoolExecutor(args.workers) as workers:
        if args.vault:
            build_vaults(texts, known, Path(folder))
        job = Job(tuple(known), chosen, args.seed, args.each, args.held_out, folder if args.vault else "")
        for found in workers.map(partial(run_case, job=job), texts, chunksize=50):
            rows += found
    hard = {c.id: list_strata(c) for c in texts}
    figures = {
        operator: report_operator([r for r in rows if r["operator"] == operator], hard, operator) for operator in known
    }
    if args.failures is not None:
        bad = [{k: v for k, v in r.items() if k != "tally"} for r in rows if r.get("class") != "right"]
        args.failures.write_text("".join(json.dumps(r, ensure_ascii=False) + "\n" for r in bad), "utf-8")
    head = {"benchmark": "round_trip", "texts": len(texts), "polish": sum(c.language == "pl" for c in texts)}
    print(json.dumps({**head, "seed": args.seed, "held_out": args.held_out, "vault": args.vault, **figures}))


def report_operator(rows: Sequence[dict[str, Any]], hard: dict[str, frozenset[str]], operator: str) -> dict[str, Any]:
    """P5's tables and ours for one operator; the figures as a dictionary."""
    texts = {r["id"]: r["encoded"] for r in rows}
    encoded = Counter(texts.values())
    done = [r for r in rows if "tally" in r]
    groups: dict[str, Tally] = {}
    total, keeping = Tally(), Tally()
    for r in done:
        source = re.split(r"\W", r["id"])[0]
        names = [r["rewriter"], f"language {r['language']}", f"from {source}", *sorted(hard[r["id"]])]
        for name in names:
            groups.setdefault(name, Tally()).add(r["tally"])
        total.add(r["tally"])
        if not DROPPING.intersection(r["names"]):
            keeping.add(r["tally"])
    changed = [r for r in done if r["names"] != ("none",)]
    same = sum(r["tally"].unchanged for r in changed)
    whole = encoded["complete"] / len(texts)
    overall = sum(r["tally"].right for r in done if r["encoded"] == "complete") / max(1, len(rows))
    print(f"\n=== {operator}: {len(texts)} texts, {total.texts} rewritings ===")
    print(f"encode     complete {encoded['complete']}, incomplete {encoded['incomplete']}, failed ", end="")
    print(f"{len(texts) - encoded['complete'] - encoded['incomplete']}: {whole:.2%} (P5: 94.58 %)")
    moved = 1 - same / max(1, len(changed))
    print(f"transform  changed {len(changed) - same}, unchanged {same}: {moved:.2%} (P5: 99.98 %)")
    print(f"decode     right {total.right}, something left {total.left}, something wrong {total.wrong}, ", end="")
    print(f"corrupted {total.corrupted}, failed {total.failed}: {total.right / max(1, total.texts):.2%} (P5: 98.58 %)")
    print(f"overall    over what the rewriter kept {overall:.2%} (P5: 93.23 %); ", end="")
    own = keeping.entities_back / max(1, keeping.texts) * whole
    print(f"as P5 counts, {keeping.texts} rewritings that drop nothing: {own:.2%}")
    out: dict[str, Any] = {
        "encode": round(whole, 5),
        "transform": round(moved, 5),
        "decode": divide(total.right, total.texts),
        "overall": round(overall, 5),
        "overall_as_p5": round(own, 5),
        "all": total.figures(),
    }
    print(f"{'':24}{'texts':>7}{'right':>9}{'mentions':>10}{'touched':>9}{'restored':>10}{'own':>8}", end="")
    print(f"{'left':>7}{'wrong':>7}{'corrupted':>10}")
    order = [*sorted(k for k in groups if k in ALL), *(k for k in sorted(groups))]
    for name in dict.fromkeys(order):
        row = out[name] = groups[name].figures()
        print(
            f"{name:24}{row['texts']:7}{row['right']:9.2%}{row['mentions']:10}{row['rewritten_mentions']:9}"
            f"{row['restored'] or 0:10.2%}{row['restored_own_surface'] or 0:8.1%}{row['mentions_left']:7}"
            f"{row['mentions_wrong']:7}{row['texts_corrupted']:10}"
        )
    print(f"{'all':24}{total.texts:7}{total.right / max(1, total.texts):9.2%}{sum(total.mentions.values()):10}", end="")
    row = out["all"]
    print(f"{row['rewritten_mentions']:9}{row['restored'] or 0:10.2%}{row['restored_own_surface'] or 0:8.1%}", end="")
    print(f"{row['mentions_left']:7}{row['mentions_wrong']:7}{row['texts_corrupted']:10}")
    return out


if __name__ == "__main__":
    main()
