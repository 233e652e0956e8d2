from __future__ import annotations

from typing import Any

from tests.rows import check_each_row
from tests.swap import golden12, invented
from tests.swap.invented import limited, list_valid_pairs

from allonym.swap.validity import Ground


@check_each_row("fact", golden12.facts("pairs"))
def test_golden_pairs(fact: dict[str, Any]) -> None:
    rules = limited(tuple(fact["categories"]), need=fact["need"], unswapped_differ=fact["unswapped_differ"])
    found = list_valid_pairs(golden12.corpus(), golden12.CLUSTERS, rules)
    told = {frozenset((golden12.NAMES[i], golden12.NAMES[j])) for i, j in found}
    assert told == {frozenset(p.split()) for p in fact["pairs"]}


def test_match_states_hold_for_pairs() -> None:
    corpus = golden12.corpus()
    whole = limited(("Organization", "Product"), unswapped_differ=False)
    every = set(list_valid_pairs(corpus, golden12.CLUSTERS, whole))
    agree = set(
        list_valid_pairs(
            corpus, golden12.CLUSTERS, limited(whole.categories, unswapped_differ=False, agree=("Location",))
        )
    )
    differ = set(
        list_valid_pairs(
            corpus, golden12.CLUSTERS, limited(whole.categories, unswapped_differ=False, differ=("Location",))
        )
    )
    assert agree
    assert differ
    assert agree | differ == every
    assert not agree & differ
    assert agree == {(i, j) for i, j in every if corpus.chunks[i].keys("Location") == corpus.chunks[j].keys("Location")}


def test_groups_and_allowed_clusters() -> None:
    corpus = golden12.corpus()
    rules = limited(("Organization", "Product"), need="any", unswapped_differ=False)
    n = len(corpus.chunks)
    groups = ["x" if corpus.class_of(i) in "AB" else "y" for i in range(n)]
    inside = set(list_valid_pairs(corpus, golden12.CLUSTERS, rules, groups=groups))
    every = set(list_valid_pairs(corpus, golden12.CLUSTERS, rules))
    assert inside == {(i, j) for i, j in every if groups[i] == groups[j]}
    first = set(list_valid_pairs(corpus, golden12.CLUSTERS, rules, allowed=[0]))
    assert first == {(i, j) for i, j in every if golden12.CLUSTERS[i] == 0}
    assert first < every


def test_ground_knows_what_is_alike_and_the_class_itself() -> None:
    corpus = invented.corpus(2, documents=3, chunks=2)
    ground = Ground.of(corpus)
    for i, chunk in enumerate(corpus.chunks):
        for value, number in zip(chunk.values, ground.keys[i], strict=True):
            assert number in ground.known[ground.classes[i]]
            assert value.category in corpus.categories
