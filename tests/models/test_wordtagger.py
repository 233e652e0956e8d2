"""The small taggers: features, chances by the chain of tags, and that a text is read alike however it is cut."""

import json
from itertools import pairwise, product

import numpy as np
import pytest

from allonym.models.wordtagger import KINDS, WordLists, WordTagger, chain_tags, hash_words, list_gaps, split_words

SIZE = 1 << 12


@pytest.fixture
def folder(tmp_path):
    draw = np.random.default_rng(3)
    tags = 1 + 2 * len(KINDS)
    arrays = {
        "table": draw.integers(-127, 128, (SIZE, 4)).astype(np.int8),
        "table.scale": np.full((SIZE, 1), 0.01, np.float32),
        "first.weight": draw.normal(size=(6, 4)),
        "first.bias": np.zeros(6),
        "layers.0.weight": draw.normal(size=(6, 6, 3)),
        "layers.0.bias": np.zeros(6),
        "layers.1.weight": draw.normal(size=(6, 6, 3)) / 3,
        "layers.1.bias": np.zeros(6),
        "last.weight": draw.normal(size=(tags, 6)),
        "last.bias": np.zeros(tags),
        "chain": draw.normal(size=(tags, tags)),
    }
    np.savez(tmp_path / "weights.npz", **arrays)
    (tmp_path / "model.json").write_text(json.dumps({"layers": [1, 2], "labels": KINDS, "gaps": False}))
    return tmp_path


def test_features_tell_words_apart():
    umlaut, plain, capitals = hash_words(["Müller", "Muller", "MÜLLER"], [" "] * 3, "de", SIZE)
    assert (umlaut != plain).any() and (umlaut[1:6] == plain[1:6]).all()
    assert umlaut[0] == capitals[0] and umlaut[10] != capitals[10]
    assert ((umlaut >= 0) & (umlaut < SIZE)).all()
    assert len(hash_words(["\ud800"], [""], "", SIZE)) == 1  # half of a pair, which JSON can hold
    assert (hash_words(["28013"], [" "], "es", SIZE)[0][0] == hash_words(["41005"], [" "], "es", SIZE)[0][0]).all()


def test_the_gap_before_a_word_is_a_feature():
    borders = split_words("Edad: 70\nSexo")
    gaps = list_gaps("Edad: 70\nSexo", borders)
    assert gaps == ["\n", "", " ", "\n"]
    assert len({hash_words(["Sexo"], [gap], "es", SIZE)[0][-1] for gap in gaps}) == 3


def test_lists_know_words_of_a_language_and_names_of_any():
    table = {WordLists.hash("Haus", "de"): 5, WordLists.hash("Müller"): 2}
    lists = WordLists(np.array(sorted(table), np.uint32), np.array([table[key] for key in sorted(table)], np.uint8))
    assert lists.find("haus", "de") == 5 and lists.find("haus", "nl") == 0
    assert lists.find("Muller") == lists.find("MÜLLER") == 2 and lists.find("Zzz") == 0
    with_lists = hash_words(["Müller"], [" "], "de", SIZE, lists)
    assert with_lists.shape[1] == hash_words(["Müller"], [" "], "de", SIZE).shape[1] + 3


def test_a_dictionary_knows_words_of_a_language_and_what_compounds_end_in():
    code = WordLists.in_dictionary("de")
    table = {WordLists.hash("nummer", code): WordLists.ORDINARY, WordLists.hash("Celle", code): 4}
    keys, values = np.array(sorted(table), np.uint32), np.array([table[key] for key in sorted(table)], np.uint8)
    lists = WordLists(keys, values, True)
    number, contract, unknown = hash_words(
        ["Kundennummer", "Vertragsnummer", "Kundenummel"], [" "] * 3, "de", SIZE, lists
    )
    assert (number[-2:] == contract[-2:]).all() and (number[-2:] != unknown[-2:]).all()
    town, other = hash_words(["Celle", "Zelle"], [" "] * 2, "de", SIZE, lists)
    assert town[-3] != other[-3] and hash_words(["Kundennummer"], [" "], "sk", SIZE, lists)[0][-1] == other[-1]
    plain = WordLists(keys, values)
    assert hash_words(["Celle"], [" "], "de", SIZE, plain).shape[1] == len(town) - 3


def test_words_mail_addresses_numbers_and_marks_are_split():
    text = "Fr. Ćosić-Lee, 12b, 3/5/2001, a.b-c@mail.example.org."
    assert [text[a:b] for a, b in split_words(text)] == (
        ["Fr", ".", "Ćosić", "-", "Lee", ",", "12", "b", ",", "3/5/2001", ",", "a.b-c@mail.example.org", "."]
    )


def test_chances_are_those_of_all_sequences_of_tags():
    draw = np.random.default_rng(5)
    scores, chain = np.exp(draw.normal(size=(4, 3))), np.exp(draw.normal(size=(3, 3)))
    by_hand = np.zeros_like(scores)
    for tags in product(range(3), repeat=4):
        weight = np.prod([scores[n, tag] for n, tag in enumerate(tags)])
        weight *= np.prod([chain[a, b] for a, b in pairwise(tags)])
        for n, tag in enumerate(tags):
            by_hand[n, tag] += weight
    assert np.allclose(chain_tags(scores, chain), by_hand / by_hand.sum(1, keepdims=True))


def test_a_long_text_is_read_as_its_words_are_and_chances_add_up(folder):
    model = WordTagger(folder)
    text = " ".join(f"Wort{chr(97 + n % 26)} ist {n}" for n in range(300))
    borders, chances = model(text, "de")
    assert len(borders) == len(chances) and np.allclose(chances.sum(1), 1, atol=1e-5)
    start, end = borders[240][0], borders[280][1]
    _, part = model(text[start:end], "de")
    assert np.allclose(part[15:-15], chances[255:266], atol=1e-3)
    assert not np.allclose(chances, model(text, "fi")[1])


def test_a_text_without_words_has_none(folder):
    borders, chances = WordTagger(folder)(" \n", "de")
    assert borders == [] and chances.shape == (0, 1 + 2 * len(KINDS))
