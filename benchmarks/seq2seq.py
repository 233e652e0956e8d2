"""What a model learns that ``allonym train seq2seq`` begins from nothing, and what the operator lets through.

usage: python benchmarks/seq2seq.py [--texts 6000] [--steps 800] [--size small] [--seed 1] [--fresh 200] [--out FOLDER]

Everything is made here: labelled synthetic texts, their pseudonymised forms by the preset ``pseudonyms`` (names of
people, places and organisations only), and a model of ``--size`` that is begun as a copier and trained on the pairs.
The learning curve is measured on texts of another seed with the names that training texts never have. The rest is
measured on ``--fresh`` further texts of such names, with a seed (``--test-seed``) that nothing else uses; every text is
a scope of its own.

A word of an original is one of three letters or more (two in the name of a person) that a detected mention has and the
text beside the mentions has not. It is a kind word where it only says what is named: Road, Group, LLP by the lists with
which pseudonyms are made, Dr, van, Jr where a name is read so; all others are telling. Three places are told apart
where a word still stands in the final text: the replacement of its own mention, that of another one, and the text
beside all of them.

Prints the curve, the shares of words that the models' own output and the final texts leak, who gets the model's
substitute, all words that stayed with their kinds, and, last, one line of JSON. Seconds are of the processor.
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import torch
import transformers

from allonym import pipeline
from allonym.document import Document, Span
from allonym.plan import Plan
from allonym.policy import Policy, Rule
from allonym.replace.cast import LEAST_WORD, find_plain_words
from allonym.replace.naming import ARTICLES, parse_name
from allonym.replace.rewriter import Rewriter, load_rewriter, split_passages
from allonym.train.parallel import Pair, make_pairs
from allonym.train.seq2seq import SIZES, Options, create_model, fit
from allonym.train.synthetic import generate_texts

KEY = b"the key of this benchmark, 32 byte"
TEST_SEED = 20261121
FAMILIES = ("PERSON", "LOCATION", "ORGANIZATION")
SHORT_NAME = 2
OWN, OTHERS, BESIDE = "its own mention", "another's mention", "beside the mentions"
_KIND_LISTS = ("before", "first", "of", "last", "tail", "words", "box", "legal", "generic", "sorts")
_TAKEN = re.compile(r"seq2seq: (\d+) of (\d+) entities")


@dataclass(frozen=True, slots=True)
class Case:
    """A text, its mentions, and the words by which originals are recognised, telling ones and kind words."""

    document: Document = field(repr=False)
    spans: tuple[Span, ...]
    telling: frozenset[str] = field(repr=False)
    kinds: frozenset[str] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Stay:
    """A word of an original that stands in a final text: in whose place, and the surface before and after."""

    word: str
    where: str
    label: str
    telling: bool
    before: str
    after: str


@cache
def kind_words() -> frozenset[str]:
    """Words that say only what place or organisation is named."""
    known = tomllib.loads(files("allonym.replace").joinpath("patterns.toml").read_text("utf-8"))
    streets = [street for street in known["streets"].values() if isinstance(street, dict)]
    tables = (*streets, known["places"]["words"], known["units"], known["organisations"], known["places"])
    return frozenset(
        word for table in tables for name in _KIND_LISTS if name in table for word in find_plain_words(str(table[name]))
    )


def find_family(label: str, policy: Policy) -> str:
    """The topmost label above ``label``."""
    return policy.taxonomy.lineage(label)[-1]


def names_words(surface: str, of: str) -> dict[str, bool]:
    """The words of a surface by which its family ``of`` knows it: to whether they are telling."""
    if of != "PERSON":
        return {word: word not in kind_words() for word in find_plain_words(surface) if len(word) >= LEAST_WORD}
    out: dict[str, bool] = {}
    for piece in parse_name(surface):
        for word in find_plain_words(piece.text) if piece.kind != "initial" else ():
            if len(word) >= SHORT_NAME:
                out[word] = out.get(word, False) or (piece.kind == "name" and word not in ARTICLES)
    return out


def policy_of_names() -> Policy:
    """The preset ``pseudonyms``, for names of people, places and organisations."""
    base = Policy.load("pseudonyms")
    wanted = tuple(label.name for label in base.taxonomy if find_family(label.name, base) in FAMILIES)
    return base.with_(every=False, labels=wanted)


def make_documents(n: int, seed: int, *, held_out: bool) -> list[Document]:
    return [Document(str(record["id"]), record["text"]) for record in generate_texts(n, seed, held_out)]


def make_cases(texts: Iterable[Document], policy: Policy) -> list[Case]:
    """The texts in which something is found."""
    out = []
    for document in texts:
        spans = tuple(pipeline.detect(document, policy))
        if not spans:
            continue
        beside = set(find_plain_words(_join_text_beside(document.text, [(s.start, s.end) for s in spans])))
        found: dict[bool, set[str]] = {True: set(), False: set()}
        for span in spans:
            known = names_words(document.text[span.start : span.end], find_family(span.label, policy))
            for word in known.keys() - beside:
                found[known[word]].add(word)
        out.append(Case(document, spans, frozenset(found[True]), frozenset(found[False] - found[True])))
    return out


def _join_text_beside(text: str, places: Iterable[tuple[int, int]]) -> str:
    for start, end in sorted(places, reverse=True):
        text = text[:start] + "\n" + text[end:]
    return text


def count_leaked_words(case: Case, output: str) -> Counter[str]:
    """How many words there are, and how many of them a text still holds."""
    there = set(find_plain_words(output))
    return Counter(
        telling=len(case.telling & there), tellings=len(case.telling), all=len((case.telling | case.kinds) & there),
        alls=len(case.telling | case.kinds),
    )  # fmt: skip


def own_output(model: Rewriter, some: Sequence[Case]) -> Counter[str]:
    """What a model leaks by itself: all passages of each text, nothing forbidden, nothing checked."""
    out: Counter[str] = Counter()
    for case in some:
        text = case.document.text
        cut = split_passages(text, [(s.start, s.end) for s in case.spans])
        out.update(count_leaked_words(case, "\n".join(model.rewrite([text[a:b] for a, b in cut]))))
    return out


def count_final_leaks(some: Sequence[Case], policy: Policy) -> tuple[Counter[str], list[Stay]]:
    """What the final texts of a policy leak, who got the model's substitute, and the words that stayed."""
    counts: Counter[str] = Counter()
    stays: list[Stay] = []
    for case in some:
        done = pipeline.replace_found(case.document, case.spans, policy, key=KEY, scope=case.document.id)
        counts.update(count_leaked_words(case, done.text))
        stays += list_remaining_words(case, done.plan, policy)
        for note in done.plan.notes:
            if match := _TAKEN.match(note):
                counts.update(own=int(match[1]), entities=int(match[2]))
    return counts, stays


def list_remaining_words(case: Case, plan: Plan, policy: Policy) -> list[Stay]:
    """The words of originals that stand in a final text, each with its place."""
    out = []
    for edit in plan.edits:
        before, after = edit.original or "", edit.replacement
        known, put = names_words(before, find_family(edit.label, policy)), set(find_plain_words(after))
        out += [Stay(w, OWN, edit.label, known[w], before, after) for w in sorted(known.keys() & put)]
        # A kind word belongs to everybody; a telling one must not turn up in the name of somebody else.
        out += [Stay(w, OTHERS, edit.label, True, before, after) for w in sorted(case.telling & put - known.keys())]
    rest = set(find_plain_words(_join_text_beside(case.document.text, [(e.start, e.end) for e in plan.edits])))
    out += [Stay(w, BESIDE, "", w in case.telling, "", "") for w in sorted((case.telling | case.kinds) & rest)]
    return out


def compute_share(counts: Counter[str], part: str, whole: str) -> float:
    return counts[part] / counts[whole] if counts[whole] else 0.0


def show_row(row: dict[str, Any]) -> None:
    names = ("loss", "leaked", "usable", "kept")
    print(f"{row['step']:6}" + "".join(f"{row[name]:10.3f}" for name in names), flush=True)


def show_stays(stays: Sequence[Stay], policy: Policy) -> None:
    """Kind words by family and by how often they stay; each telling word with what it stood in."""
    for name in FAMILIES:
        kinds = Counter(s.word for s in stays if not s.telling and s.label and find_family(s.label, policy) == name)
        told = ", ".join(f"{word} {n}" for word, n in kinds.most_common())
        print(f"kind words that stayed in their own mention, {name}: {kinds.total()}{': ' * bool(told)}{told}")
    for stay in stays:
        if stay.telling:
            print(f"telling word in {stay.where}: {stay.word}: {stay.label} {stay.before!r} -> {stay.after!r}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--texts", type=int, default=6000)
    parser.add_argument("--steps", type=int, default=800)
    parser.add_argument("--size", choices=tuple(SIZES), default="small")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--fresh", type=int, default=200)
    parser.add_argument("--test-seed", type=int, default=TEST_SEED)
    parser.add_argument("--rows", type=int, default=4)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    if args.test_seed in (args.seed, args.seed + 1):
        parser.error("--test-seed must be neither --seed nor the one after it: these texts are trained and judged on")
    torch.set_num_threads(1)
    transformers.utils.logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    with tempfile.TemporaryDirectory() as made:
        run_comparison(args, args.out or Path(made))


def run_comparison(args: argparse.Namespace, out: Path) -> None:
    policy, began = policy_of_names(), time.process_time()
    seconds: dict[str, float] = {}

    def lap(name: str) -> None:
        seconds[name] = round(time.process_time() - began - sum(seconds.values()), 1)

    train = list(make_pairs(make_documents(args.texts, args.seed, held_out=False), policy, KEY))
    held: list[Pair] = list(
        make_pairs(make_documents(max(20, args.texts // 20), args.seed + 1, held_out=True), policy, KEY)
    )
    lap("corpus")
    print(
        f"{len(train)} passages to learn from, {sum(bool(p.places) for p in train)} with a name; {len(held)} held out"
    )
    start = create_model(args.size, [t for p in train for t in (p.source, p.target)], causal=False, seed=args.seed)
    start.network.save_pretrained(out / "begun")
    start.tokenizer.save_pretrained(out / "begun")
    print(f"{'step':>6}{'loss':>10}{'leaked':>10}{'usable':>10}{'kept':>10}")
    options = Options(steps=args.steps, lr=1e-3, batch=16, rows=args.rows, seed=args.seed)
    curve = fit(start, train, held, out / "trained", options=options, report=show_row)
    lap("training")
    some = make_cases(make_documents(args.fresh, args.test_seed, held_out=True), policy)
    figures: dict[str, Any] = {"texts": len(some), "words": 0}
    print(f"\n{len(some)} fresh texts{'words leaked':>31}{'telling ones':>16}{'own substitute':>18}")
    stays: list[Stay] = []
    for name in ("begun", "trained"):
        model = str(out / name)
        raw = own_output(load_rewriter(model), some)
        final, stays = count_final_leaks(some, policy.with_(default=Rule("seq2seq", {"model": model}), rules={}))
        print(
            f"{f'{name}: own output':30}{_format_share(raw, 'all', 'alls'):>20}"
            f"{_format_share(raw, 'telling', 'tellings'):>16}"
        )
        print(
            f"{f'{name}: final text':30}{_format_share(final, 'all', 'alls'):>20}"
            f"{_format_share(final, 'telling', 'tellings'):>16}"
            f"{_format_share(final, 'own', 'entities'):>18}"
        )
        figures |= {"words": raw["alls"], "telling_words": raw["tellings"], "entities": final["entities"]}
        figures[name] = {
            "own_output_leaks": round(compute_share(raw, "all", "alls"), 4),
            "own_output_leaks_telling": round(compute_share(raw, "telling", "tellings"), 4),
            "final_leaks": round(compute_share(final, "all", "alls"), 4),
            "final_leaks_telling": final["telling"],
            "own_substitute": round(compute_share(final, "own", "entities"), 4),
            "stayed": Counter(f"{'telling' if s.telling else 'kind'} in {s.where}" for s in stays),
        }
        lap(name)
    print()
    show_stays(stays, policy)
    rows = [{k: round(v, 4) for k, v in row.items()} for row in curve]
    print(json.dumps({"benchmark": "seq2seq", **figures, "curve": rows, "cpu_s": seconds}))


def _format_share(counts: Counter[str], part: str, whole: str) -> str:
    return f"{counts[part]}/{counts[whole]} {compute_share(counts, part, whole):.1%}"


if __name__ == "__main__":
    main()
