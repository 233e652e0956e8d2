"""What benchmarks/tagger_speed.py counts: texts, words, the matrices of a model, its operations, int8 rates."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from benchmarks.tagger_speed import count_matrices, cut_texts, find_dimensions, gemm_rates, word_count


def test_texts_are_cut_to_so_many_characters(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in ("abcdef", "ghij", "klm")))
    assert cut_texts(path, 8) == ["abcdef", "gh"]
    assert cut_texts(path, 4, after=8) == ["ij", "kl"]
    assert cut_texts(path, 4, after=20) == []


def test_words_hold_a_letter_or_a_digit() -> None:
    assert word_count(["Hello, world - 42!", "..."]) == 3


def test_matrices_and_measures_of_a_quantised_model(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    h, kinds = onnx.helper, onnx.TensorProto

    def weight(name: str, rows: int, columns: int) -> object:
        return h.make_tensor(name, kinds.INT8, (rows, columns), bytes(rows * columns), raw=True)

    nodes = [
        h.make_node("Gather", ["words", "ids"], ["x"]),
        h.make_node("MatMulInteger", ["x", "up"], ["y"]),
        h.make_node("DequantizeLinear", ["down", "scale"], ["down_float"]),
        h.make_node("MatMul", ["y", "down_float"], ["z"]),
    ]
    tensors = [
        weight("words", 50, 4),
        weight("up", 4, 16),
        weight("down", 16, 4),
        h.make_tensor("scale", kinds.FLOAT, (), [1.0]),
    ]
    ids = h.make_tensor_value_info("ids", kinds.INT64, ("n",))
    out = h.make_tensor_value_info("z", kinds.FLOAT, ("n", 4))
    onnx.save(h.make_model(h.make_graph(nodes, "g", [ids], [out], tensors)), str(tmp_path / "tagger.onnx"))
    found = count_matrices(tmp_path)
    assert found == Counter({(4, 16): 1, (16, 4): 1})
    assert find_dimensions(found) == (4, 16, 1)


def test_int8_rates_are_plausible() -> None:
    pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    rates = gemm_rates(Counter({(64, 128): 2}), 32)
    assert set(rates) == {"MatMulInteger", "DynamicQuantizeMatMul"}
    assert all(1e7 < rate < 1e14 for rate in rates.values())
