"""The small tagger of many languages: its features, and that a text is read alike however it is cut."""

import json

import numpy as np
import pytest

from allonym.models.wordtagger import FEATURES, KINDS, ROWS, WordTagger, hash_features, split_words


@pytest.fixture
def folder(tmp_path):
    draw = np.random.default_rng(3)
    arrays = {
        "table": draw.integers(-127, 128, (ROWS, 4)).astype(np.int8),
        "table.scale": np.full((ROWS, 1), 0.01, np.float32),
        "first.weight": draw.normal(size=(6, 4)),
        "first.bias": np.zeros(6),
        "layers.0.weight": draw.normal(size=(6, 6, 3)),
        "layers.0.bias": np.zeros(6),
        "last.weight": draw.normal(size=(1 + 2 * len(KINDS), 6)),
        "last.bias": np.zeros(1 + 2 * len(KINDS)),
    }
    np.savez(tmp_path / "weights.npz", **arrays)
    (tmp_path / "model.json").write_text(json.dumps({"layers": 1}))
    return tmp_path


def test_features_are_rows_and_tell_words_apart():
    rows = hash_features("Müller")
    assert len(rows) == FEATURES and all(0 <= row < ROWS for row in rows)
    assert rows != hash_features("Muller") and rows[1:6] == hash_features("Muller")[1:6]
    assert rows[0] == hash_features("MÜLLER")[0] and rows[10] != hash_features("MÜLLER")[10]
    assert len(hash_features("\ud800")) == FEATURES  # half of a pair, which JSON can hold


def test_words_numbers_and_marks_are_split():
    text = "Fr. Ćosić-Lee, 12b"
    assert [text[a:b] for a, b in split_words(text)] == ["Fr", ".", "Ćosić", "-", "Lee", ",", "12", "b"]


def test_a_long_text_is_read_as_its_words_are_and_chances_add_up(folder):
    model = WordTagger(folder)
    text = " ".join(f"Wort{chr(97 + n % 26)} ist {n}" for n in range(300))
    borders, chances = model(text, "de")
    assert len(borders) == len(chances) and np.allclose(chances.sum(1), 1, atol=1e-5)
    start, end = borders[250][0], borders[270][1]
    _, part = model(text[start:end], "de")
    assert np.allclose(part[2:-2], chances[252:269], atol=1e-5)
    assert not np.allclose(chances, model(text, "fi")[1])


def test_a_text_without_words_has_none(folder):
    borders, chances = WordTagger(folder)(" \n", "de")
    assert borders == [] and chances.shape == (0, 1 + 2 * len(KINDS))
