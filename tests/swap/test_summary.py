from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from allonym.swap.summary import Rarity, choose_sentence_indices

TEXTS = ["sales rose again", "sales fell again", "sales rose and costs fell", "a quixotic zorblax glowed"]


def test_rarity() -> None:
    rarity = Rarity.of(TEXTS)
    assert rarity.chunks == 4
    assert rarity.holders["sales"] == 3
    assert (
        rarity.compute_mean_rarity("sales rose")
        < rarity.compute_mean_rarity("sales zorblax")
        < rarity.compute_mean_rarity("unheard words")
    )
    assert rarity.compute_mean_rarity("1 2 3") == 0.0


def test_half_of_the_clean_sentences_stay_in_order() -> None:
    rarity = Rarity.of(TEXTS)
    sentences = ["A zorblax glowed. ", "Sales rose again. ", "Sales fell. ", "Sales. "]
    assert choose_sentence_indices(sentences, [True] * 4, rarity) == (2, 3)
    assert choose_sentence_indices(sentences, [True, True, False, False], rarity) == (0, 1)
    assert choose_sentence_indices(sentences, [False, False, False, False], rarity) == (3,)
    assert choose_sentence_indices(["... ", "Sales. "], [True, False], rarity) == (0,)
    assert choose_sentence_indices([], [], rarity) == ()


@given(st.lists(st.tuples(st.text(max_size=30), st.booleans()), min_size=1, max_size=9))
def test_something_stays_and_nothing_unclean_beside_clean(sentences: list[tuple[str, bool]]) -> None:
    rarity = Rarity.of(TEXTS)
    texts, clean = [t for t, _ in sentences], [c for _, c in sentences]
    kept = choose_sentence_indices(texts, clean, rarity)
    assert 1 <= len(kept) <= max(1, len(texts) // 2)
    assert list(kept) == sorted(set(kept))
    assert all(clean[i] for i in kept) or len(kept) == 1
    assert repr(rarity).count("sales") == 0
