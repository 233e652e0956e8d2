from __future__ import annotations

import numpy as np
import pytest
from tests.swap import corpora
from tests.swap.invented import lifted

from allonym.swap import cluster_exchange
from allonym.swap.cluster_exchange import Matcher
from allonym.swap.corpus import Slot
from allonym.swap.partners import Frame
from allonym.swap.validity import Ground, Rules


def pairs(rules: Rules, seed: int = 0, vectors: np.ndarray | None = None) -> tuple[list[Slot], list[tuple[int, int]]]:
    corpus = corpora.corpus(4, 1)
    ground = Ground.of(corpus)
    counts = np.array([len(c.values) for c in corpus.chunks])
    matcher = Matcher(Frame(ground, rules, 0, vectors, (ground.classes,), counts), np.random.default_rng(seed))
    slots = [Slot(i, v) for i, places in enumerate(ground.slots["Person"]) for v in places]
    return slots, list(matcher.iterate_slot_pairs(slots))


RULES = lifted(("Person",), fit=0.5)


@pytest.mark.parametrize("block", [3, 1536])
def test_pairs_are_of_two_classes_and_none_comes_twice(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_exchange, "BLOCK", block)
    corpus = corpora.corpus(4, 1)
    slots, found = pairs(RULES)
    assert found
    assert len({frozenset(p) for p in found}) == len(found)
    assert all(corpus.class_of(slots[a].chunk) != corpus.class_of(slots[b].chunk) for a, b in found)
    whole = sum(
        corpus.class_of(a.chunk) != corpus.class_of(b.chunk) for n, a in enumerate(slots) for b in slots[n + 1 :]
    )
    assert len(found) == whole if block > len(slots) else len(found) < whole


def test_the_same_generator_gives_the_same_order() -> None:
    assert pairs(RULES, 3) == pairs(RULES, 3)
    assert pairs(RULES, 3) != pairs(RULES, 4)


def test_near_chunks_come_first_and_far_ones_not_at_all() -> None:
    n = len(corpora.corpus(4, 1).chunks)
    vectors = np.eye(2)[np.arange(n) // 2 % 2]
    cold = lifted(("Person",), fit=1e-6, weights="cosine", temperature=1e-3)
    slots, found = pairs(cold, vectors=vectors)
    same = [slots[a].chunk // 2 % 2 == slots[b].chunk // 2 % 2 for a, b in found]
    assert any(same)
    assert not all(same)
    assert same == sorted(same, reverse=True)
    least = lifted(("Person",), fit=0.5, min_cosine=0.5)
    slots, found = pairs(least, vectors=vectors)
    assert len(found) == sum(same)
    assert all(slots[a].chunk // 2 % 2 == slots[b].chunk // 2 % 2 for a, b in found)


def test_nothing_to_pair() -> None:
    assert not pairs(lifted(("Person",), fit=0.5, min_fit=1.0))[1]
