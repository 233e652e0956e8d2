from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.rows import check_each_row
from tests.swap import golden12, invented
from tests.swap.elsewhere import Elsewhere
from tests.swap.invented import lifted, limited, list_valid_pairs, paper

from allonym.document import Document
from allonym.errors import UnknownNameError, UsageError
from allonym.plan import Plan, digest
from allonym.swap.corpus import Chunk, Corpus, Slot, Value
from allonym.swap.exchange import Sequence, exchange
from allonym.swap.table import tabulate
from allonym.swap.validity import Ground, Rules

A = ("Organization", "Product")
ALL = ("Organization", "Person", "Product")

RULES = {
    "paper": paper(A),
    "pairs": limited(A, need="any", unswapped_differ=False, rounds=3),
    "pairs, cycles": limited(ALL, need="any", unswapped_differ=False, rounds=2, cycles=True),
    "lifted": lifted(ALL),
    "one partner": lifted(ALL, partners="same"),
    "one partner, min": lifted(ALL, partners="same", counts="min", count_penalty=0.5),
    "cosine": lifted(ALL, weights="cosine", min_cosine=-0.5),
    "fit": lifted(ALL, weights="cosine", temperature=0.02, fit=0.5),
    "fit, uniform": lifted(ALL, fit=0.5, min_fit=0.0, min_cosine=-0.5, count_penalty=0.1),
    "fit, differ": lifted(A, fit=0.5, differ=("Person",), agree=("Date",)),
    "beyond": lifted(ALL, beyond=True),
    "returns": lifted(A, returns=True),
    "agree": lifted(A, agree=("Date",)),
    "differ": lifted(A, differ=("Person",)),
}


def drawn(corpus: Corpus, rules: Rules, seed: int, clusters: int = 2, **how: Any) -> Sequence:
    n = len(corpus.chunks)
    vectors = np.random.default_rng(seed).standard_normal((n, 5))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return exchange(corpus, [i % clusters for i in range(n)], rules, seed, vectors=vectors, **how)


def key(corpus: Corpus, slot: Slot) -> str:
    return corpus.chunks[slot.chunk].values[slot.value].key


def category(corpus: Corpus, slot: Slot) -> str:
    return corpus.chunks[slot.chunk].values[slot.value].category


@check_each_row("seed", range(8))
def test_the_golden_corpus_is_exhausted_by_at_most_three_pairs(seed: int) -> None:
    corpus = golden12.corpus()
    sequence = exchange(corpus, golden12.CLUSTERS, paper(A), seed)
    most = golden12.facts("most pairs")[0]["pairs"]
    assert 2 <= len(sequence.swaps) <= most
    assert sequence.exhausted
    assert sequence.holders == 10
    assert sum(sequence.left.values()) == 10 - len(sequence.changed())


def test_some_draw_reaches_the_most_pairs_that_there_are() -> None:
    corpus = golden12.corpus()
    counts = {len(exchange(corpus, golden12.CLUSTERS, paper(A), s).swaps) for s in range(20)}
    assert max(counts) == golden12.facts("most pairs")[0]["pairs"]


def test_each_valid_pair_is_as_likely_to_be_first() -> None:
    corpus = golden12.corpus()
    listed = [f for f in golden12.facts("pairs") if tuple(f["categories"]) == A and f["need"] == "both"]
    wanted = next(f for f in listed if f["unswapped_differ"])
    # y1 and y11 differ in Organization by what one of them holds besides: there is nothing to trade
    pairs = {tuple(sorted(p.split())) for p in wanted["pairs"]} - {("y1", "y11")}
    runs = 2800
    rules = paper(A, swaps=1)
    ground = Ground.of(corpus)
    found: Counter[tuple[str, ...]] = Counter()
    for seed in range(runs):
        swap = exchange(corpus, golden12.CLUSTERS, rules, seed, ground=ground).swaps[0]
        found[tuple(sorted(golden12.NAMES[i] for i in swap.chunks))] += 1
    assert set(found) == pairs
    expected = runs / len(pairs)
    assert sum((n - expected) ** 2 / expected for n in found.values()) < 34.5  # chi squared, 13 degrees, 0.001


@pytest.mark.parametrize("fact", golden12.facts("uniques changed"), ids=lambda f: " + ".join(f["pairs"]))
def test_uniques_changed(fact: dict[str, object]) -> None:
    corpus = golden12.corpus()
    uniques = tabulate(corpus, A).uniques()
    changed = {golden12.index(n) for pair in fact["pairs"] for n in pair.split()}  # type: ignore[attr-defined]
    assert len(changed & set(uniques)) == fact["m"]


@pytest.mark.parametrize("name", RULES)
@given(seed=st.integers(0, 10**6), documents=st.integers(2, 5), chunks=st.integers(1, 5), most=st.integers(1, 3))
@settings(max_examples=25, deadline=None)
def test_promises(name: str, seed: int, documents: int, chunks: int, most: int) -> None:
    rules = RULES[name]
    corpus = invented.corpus(seed, documents, chunks, most, pool=5)
    sequence = drawn(corpus, rules, seed)
    placed = sequence.map_slots_to_donors()

    # Each swap is a permutation of slots, and no slot moves twice.
    slots = [slot for swap in sequence.swaps for slot, _ in swap.moves]
    assert len(slots) == len(set(slots)) == len(placed)
    for swap in sequence.swaps:
        assert {s for s, _ in swap.moves} == {d for _, d in swap.moves}
        assert swap.chunks == tuple(sorted({s.chunk for s, _ in swap.moves}))

    # So every entity stands as often as before, in its category.
    assert Counter((category(corpus, s), key(corpus, s)) for s in placed) == Counter(
        (category(corpus, d), key(corpus, d)) for d in placed.values()
    )

    for slot, donor in placed.items():
        assert category(corpus, slot) == category(corpus, donor) in rules.categories
        assert key(corpus, slot) != key(corpus, donor)
        assert corpus.class_of(slot.chunk) != corpus.class_of(donor.chunk)
        if name != "beyond":
            assert slot.chunk % 2 == donor.chunk % 2  # of one cluster
        if not rules.returns:
            known = {
                v.key
                for i, c in enumerate(corpus.chunks)
                if corpus.class_of(i) == corpus.class_of(slot.chunk)
                for v in c.values
            }
            assert key(corpus, donor) not in known
        for c in rules.agree:
            assert corpus.chunks[slot.chunk].keys(c) == corpus.chunks[donor.chunk].keys(c)
        for c in rules.differ:
            assert corpus.chunks[slot.chunk].keys(c) != corpus.chunks[donor.chunk].keys(c)

    # No chunk gets one substitute for two entities.
    for chunk in sequence.changed():
        came = [key(corpus, d) for s, d in placed.items() if s.chunk == chunk]
        assert len(came) == len(set(came))

    # Prefixes are nested.
    for r in range(len(sequence.swaps) + 1):
        part = sequence.map_slots_to_donors(r)
        assert part.items() <= placed.items()
        assert sequence.changed(r) == tuple(sorted({s.chunk for s in part}))

    held = {i for i, c in enumerate(corpus.chunks) if any(v.category in rules.categories for v in c.values)}
    assert sequence.holders == len(held)
    assert sum(sequence.left.values()) == len(held) - len(sequence.changed())


@given(seed=st.integers(0, 10**6))
@settings(max_examples=20, deadline=None)
def test_pairs_of_one_partner_trade_each_chunk_once(seed: int) -> None:
    sequence = drawn(invented.corpus(seed, 4, 5), paper(A), seed)
    changed = [c for swap in sequence.swaps for c in swap.chunks]
    assert len(changed) == len(set(changed)) == 2 * len(sequence.swaps)


@given(seed=st.integers(0, 10**6))
@settings(max_examples=20, deadline=None)
def test_what_is_left_by_the_paper_cannot_be_traded(seed: int) -> None:
    corpus = invented.corpus(seed, 4, 5, pool=4)
    rules = paper(A)
    sequence = drawn(corpus, rules, seed)
    labels = [i % 2 for i in range(len(corpus.chunks))]
    used = set(sequence.changed())
    for i, j in list_valid_pairs(corpus, labels, rules):
        if i not in used and j not in used:
            for c in A:  # one side holds nothing that the other does not hold
                mine, theirs = corpus.chunks[i].keys(c), corpus.chunks[j].keys(c)
                assert mine <= theirs or theirs <= mine


def test_all_entities_of_a_chunk_go_to_several_partners() -> None:
    corpus = one_against_many()
    few = limited(("Organization",), unswapped_differ=False)
    many = limited(("Organization",), unswapped_differ=False, counts="all")
    assert {len(exchange(corpus, [0] * 4, few, seed).map_slots_to_donors()) for seed in range(9)} == {4}
    drawn = [exchange(corpus, [0] * 4, many, seed) for seed in range(9)]
    whole = [s for s in drawn if len(s.map_slots_to_donors()) == 6]
    assert all(s.changed() == (0, 1, 2, 3) for s in whole)
    assert any(s.swaps[0].chunks == (0, 1, 2, 3) for s in whole)


def one_against_many() -> Corpus:
    """One chunk of three organizations, three of one each, all of other documents."""
    held = [("Quillmark", "Bellworth", "Hanmere"), ("Corvane",), ("Luxmere",), ("Pellbrook",)]
    return Corpus(
        documents=tuple(Document(f"d{i}", "x") for i in range(4)),
        protect="company",
        classes=tuple("abcd"),
        categories={"Organization": "swap"},
        sections=(((0, 1),),) * 4,
        chunks=tuple(
            Chunk(i, 0, 1, "x", tuple(Value("Organization", n.lower(), (n,)) for n in names))
            for i, names in enumerate(held)
        ),
        entities=((),) * 4,
        plans=(Plan(digest("x")),) * 4,
    )


def test_a_rotation_of_three_where_no_pair_may_trade() -> None:
    """Each document knows what one of the other two holds: a goes to b, b to c, c to a, and never back."""

    def chunk(document: int, name: str, state: str) -> Chunk:
        return Chunk(document, 0, 1, "x", (Value(state, name.lower(), (name,)),))

    base = one_against_many()
    names = ("Quillmark", "Corvane", "Luxmere")
    corpus = replace(
        base,
        categories={"Organization": "swap", "Product": "fixed"},
        chunks=(
            *(chunk(i, n, "Organization") for i, n in enumerate(names)),
            *(chunk(i, names[(i + 1) % 3], "Product") for i in range(3)),
        ),
    )
    rules = limited(("Organization",), unswapped_differ=False, rounds=3)
    assert not exchange(corpus, [0] * 6, rules, 1).swaps
    turned = exchange(corpus, [0] * 6, replace(rules, cycles=True), 1)
    assert [len(swap.moves) for swap in turned.swaps] == [3]
    assert turned.map_slots_to_donors() == {Slot(0, 0): Slot(2, 0), Slot(1, 0): Slot(0, 0), Slot(2, 0): Slot(1, 0)}


def test_the_odd_one_joins_a_pair() -> None:
    base = one_against_many()
    corpus = replace(base, chunks=base.chunks[1:])
    rules = limited(("Organization",), unswapped_differ=False)
    assert len(exchange(corpus, [0] * 3, rules, 1).changed()) == 2
    turned = exchange(corpus, [0] * 3, replace(rules, cycles=True), 1)
    assert turned.changed() == (0, 1, 2)
    assert len(turned.swaps) == 1


def test_per_category_partners_break_combinations() -> None:
    corpus = invented.corpus(5, documents=6, chunks=4, most=1)
    for seed in range(5):
        sequence = drawn(corpus, lifted(ALL), seed, clusters=1)
        donors: dict[tuple[int, int], set[str]] = {}
        for slot, donor in sequence.map_slots_to_donors().items():
            if len(next(s for s in sequence.swaps if slot in dict(s.moves)).moves) == 2:
                donors.setdefault((slot.chunk, donor.chunk), set()).add(category(corpus, slot))
        assert all(len(c) == 1 for c in donors.values())


def test_reasons() -> None:
    corpus = one_against_many()
    rules = limited(("Organization",), unswapped_differ=False)
    assert exchange(corpus, [0, 1, 2, 3], rules, 0).left == {"no other class in its cluster": 4}
    assert exchange(corpus, [0] * 4, rules, 0, allowed=[7]).left == {"cluster not allowed": 4}
    assert exchange(corpus, [0] * 4, replace(rules, swaps=1), 0).left == {"not reached": 2}
    assert exchange(corpus, [0] * 4, rules, 0, groups=["x", "x", "y", "z"]).left == {"no other class in its cluster": 2}
    both = replace(corpus, categories={"Organization": "swap", "Product": "swap"})
    assert exchange(both, [0] * 4, limited(A), 0).left == {"lacks a category": 4}
    same = replace(corpus, chunks=tuple(replace(c, values=corpus.chunks[1].values) for c in corpus.chunks))
    assert exchange(same, [0] * 4, lifted(("Organization",)), 0).left == {"nothing that may move": 4}
    assert exchange(same, [0] * 4, lifted(("Organization",)), 0).exhausted


def test_limits() -> None:
    corpus = invented.corpus(11, documents=6, chunks=10)
    whole = drawn(corpus, lifted(ALL), 2)
    for rules in (lifted(ALL, target_share=0.5), limited(ALL, need="any", target_share=0.5)):
        half = drawn(corpus, rules, 2)
        assert not half.exhausted
        assert 0.5 <= len(half.changed()) / half.holders < len(whole.changed()) / whole.holders
    some = drawn(corpus, lifted(ALL, swaps=3), 2)
    assert some.swaps == whole.swaps[:3]
    assert not some.exhausted
    assert whole.exhausted


def test_similar_partners_are_preferred() -> None:
    """Chunks 0 and 1, 2 and 3 ... point the same way; only at a low temperature do they find each other."""
    corpus = invented.corpus(3, documents=12, chunks=1, most=1)
    corpus = replace(
        corpus,
        chunks=tuple(
            replace(c, values=(replace(one_against_many().chunks[1].values[0], key=f"name{i}", forms=(f"Name{i}",)),))
            for i, c in enumerate(corpus.chunks)
        ),
    )
    vectors = np.repeat(np.eye(6), 2, axis=0)
    rules = lifted(("Organization",), weights="cosine", temperature=0.02, cycles=False)
    sequence = exchange(corpus, [0] * 12, rules, 1, vectors=vectors)
    assert sorted(s.chunks for s in sequence.swaps) == [(i, i + 1) for i in range(0, 12, 2)]
    apart = exchange(corpus, [0] * 12, replace(rules, weights="uniform"), 1)
    assert sorted(s.chunks for s in apart.swaps) != [(i, i + 1) for i in range(0, 12, 2)]
    least = exchange(corpus, [0] * 12, replace(rules, weights="uniform", min_cosine=0.9), 1, vectors=vectors)
    assert sorted(s.chunks for s in least.swaps) == [(i, i + 1) for i in range(0, 12, 2)]


def places(*names: str) -> Corpus:
    """One chunk and document for each place."""
    base = one_against_many()
    chunks = (Chunk(i, 0, 1, "x", (Value("Location", n.lower(), (n,)),)) for i, n in enumerate(names))
    return replace(
        base,
        documents=tuple(Document(f"d{i}", "x") for i in range(len(names))),
        classes=tuple(f"c{i}" for i in range(len(names))),
        categories={"Location": "swap"},
        sections=(((0, 1),),) * len(names),
        chunks=tuple(chunks),
        entities=((),) * len(names),
        plans=(Plan(digest("x")),) * len(names),
    )


def test_what_fits_is_preferred_and_what_does_not_may_stay() -> None:
    corpus = places("Portugal", "Chicago", "Denmark", "Boston")
    rules = lifted(("Location",), weights="uniform", temperature=0.01, fit=1.0)
    for seed in range(5):
        sequence = exchange(corpus, [0] * 4, rules, seed)
        assert sorted(s.chunks for s in sequence.swaps) == [(0, 2), (1, 3)]
    few = replace(rules, min_fit=0.3)
    alone = exchange(places("Portugal", "Chicago", "Denmark"), [0] * 3, few, 1)
    assert alone.changed() == (0, 2)  # no rotation either
    assert exchange(places("Portugal", "Chicago", "Denmark"), [0] * 3, rules, 1).changed() == (0, 1, 2)


def test_beyond_reaches_other_clusters() -> None:
    corpus = one_against_many()
    alone = lifted(("Organization",))
    assert not exchange(corpus, [0, 1, 2, 3], alone, 0).swaps
    assert exchange(corpus, [0, 1, 2, 3], replace(alone, beyond=True), 0).changed() == (0, 1, 2, 3)


@check_each_row("name", RULES)
def test_same_seed_same_sequence(name: str) -> None:
    corpus = invented.corpus(8, documents=5, chunks=6)
    first = drawn(corpus, RULES[name], 4)
    assert drawn(corpus, RULES[name], 4) == first
    assert any(drawn(corpus, RULES[name], seed) != first for seed in (5, 6, 7))


@check_each_row("name", RULES)
def test_who_draws_a_cluster_and_when_does_not_count(name: str) -> None:
    corpus = invented.corpus(8, documents=6, chunks=8)
    for seed in (4, 5):
        here = drawn(corpus, RULES[name], seed, clusters=3)
        assert here.swaps
        assert drawn(corpus, RULES[name], seed, clusters=3, spread=Elsewhere()) == here


@pytest.mark.parametrize("name", ["lifted", "one partner, min", "cosine", "fit", "fit, uniform"])
@given(seed=st.integers(0, 10**6))
@settings(max_examples=10, deadline=None)
def test_a_cluster_exchanges_the_same_whatever_others_do(name: str, seed: int) -> None:
    corpus = invented.corpus(seed, documents=5, chunks=6)
    rules = replace(RULES[name], cycles=False, beyond=False)
    alone = drawn(corpus, rules, seed, clusters=3, allowed={0})
    together = drawn(corpus, rules, seed, clusters=3)
    assert alone.map_slots_to_donors() == {
        slot: d for slot, d in together.map_slots_to_donors().items() if slot.chunk % 3 == 0
    }


@pytest.mark.slow
def test_hash_seed_does_not_count() -> None:
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from tests.swap import invented, test_exchange as t\n"
        "c = invented.corpus(8, 5, 6)\n"
        "print([list(t.drawn(c, r, 3).map_slots_to_donors().items()) for r in t.RULES.values()])"
    )
    src = str(Path(__file__).parents[2] / "src")
    outs = {
        subprocess.run(
            [sys.executable, "-c", code, str(Path(__file__).parents[2])],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": src},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(outs) == 1
    assert "Slot" in outs.pop()


@check_each_row(
    "changes, error, said",
    [
        ({"categories": ("Organisation",)}, UnknownNameError, "Organization"),
        ({"categories": ("Date",)}, UsageError, "Date is fixed"),
        ({"categories": ()}, UsageError, "at least one category"),
        ({"need": "all"}, UnknownNameError, "need"),
        ({"agree": ("Product",)}, UsageError, "can neither agree nor differ"),
        ({"weights": "cosine"}, UsageError, "need the chunks' vectors"),
        ({"temperature": 0.0}, UsageError, "temperature"),
        ({"fit": -1.0}, UsageError, "fit"),
        ({"target_share": 1.5}, UsageError, "target_share"),
        ({"swaps": -1}, UsageError, "swaps"),
    ],
)
def test_rules_that_do_not_fit(changes: dict[str, object], error: type[Exception], said: str) -> None:
    corpus = invented.corpus(1)
    with pytest.raises(error, match=said):
        exchange(corpus, [0] * len(corpus.chunks), replace(limited(A), **changes), 0)  # type: ignore[arg-type]


def test_too_few_labels() -> None:
    with pytest.raises(UsageError, match="labels must be as many as the 16 chunks, got 2"):
        exchange(invented.corpus(1), [0, 1], limited(A), 0)


def test_an_empty_corpus_has_no_swaps() -> None:
    corpus = replace(invented.corpus(1), chunks=())
    assert exchange(corpus, [], limited(A), 0) == Sequence(A, (), 0, True)
