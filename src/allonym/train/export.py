"""Export a trained network to a model folder: an ONNX graph with int8 weights, word embeddings and a vocabulary.

The graph is written node by node, with the fused operators of onnxruntime, and contains only what is computed. Weights
are symmetric int8 with one scale per output. The scales of the activations come from each window, which is computed
alone, so they depend on nothing else. If ``wide`` is false, weights use only 7 bits: older processors add pairs of
products in 16 bits, and 7 bits never overflow, so every processor gives the same integers.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from allonym.errors import MissingExtra
from allonym.models.tags import PARTS, tag_names
from allonym.models.windows import LENGTH
from allonym.train.network import Encoder, Tagger

try:
    import onnx
    from onnx import TensorProto, helper, numpy_helper
except ImportError as error:
    raise MissingExtra("writing a model", "train") from error

_MS = "com.microsoft"


class _Graph:
    """The nodes and weights of a graph under construction."""

    def __init__(self, int8: bool, wide: bool) -> None:
        self.nodes: list[Any] = []
        self.weights: list[Any] = []
        self.int8, self.most = int8, 127 if wide else 63

    def keep(self, name: str, value: Any, kind: Any = np.float32) -> str:
        self.weights.append(numpy_helper.from_array(np.ascontiguousarray(value, dtype=kind), name))
        return name

    def add(self, op: str, inputs: list[str], name: str, *, domain: str = "", **options: Any) -> str:
        self.nodes.append(helper.make_node(op, inputs, [name], name=name, domain=domain, **options))
        return name

    def add_thirds(self, x: str, name: str) -> list[str]:
        names = [f"{name}_{i}" for i in range(3)]
        self.nodes.append(helper.make_node("Split", [x], names, name=name, axis=-1, num_outputs=3))
        return names

    def add_linear(self, x: str, layer: Any, name: str, bias: bool = True) -> str:
        """``x @ weight.T (+ bias)``."""
        weight = layer.weight.detach().float().numpy().T
        shift = self.keep(f"{name}.bias", layer.bias.detach().float().numpy()) if bias else ""
        if not self.int8:
            out = self.add("MatMul", [x, self.keep(f"{name}.weight", weight)], f"{name}.product" if bias else name)
            return self.add("Add", [out, shift], name) if bias else out
        scale = np.maximum(np.abs(weight).max(axis=0), 1e-12) / self.most
        quantised = np.clip(np.rint(weight / scale), -self.most, self.most)
        inputs = [
            x,
            self.keep(f"{name}.weight", quantised, np.int8),
            self.keep(f"{name}.scale", scale),
            self.keep(f"{name}.zero", np.zeros(len(scale)), np.int8),
        ]
        return self.add("DynamicQuantizeMatMul", [*inputs, shift] if bias else inputs, name, domain=_MS)

    def norm(self, x: str, skip: str | None, layer: Any, name: str) -> str:
        gain = self.keep(f"{name}.gain", layer.weight.detach().numpy())
        shift = self.keep(f"{name}.shift", layer.bias.detach().numpy())
        if skip is not None:  # the fused operator is several times slower than these two
            x = self.add("Add", [x, skip], f"{name}.sum")
        return self.add("LayerNormalization", [x, gain, shift], name, axis=-1, epsilon=layer.eps)


def _add_encoder(graph: _Graph, encoder: Encoder, positions: int) -> str:
    table = graph.keep("positions", encoder.positions.weight.detach().numpy()[None, :positions])
    zero, one_value = graph.keep("zero", [0], np.int64), graph.keep("one", [1], np.int64)
    length = graph.add("Shape", ["x"], "length", start=1, end=2)
    x = graph.add("Add", ["x", graph.add("Slice", [table, zero, length, one_value], "placed")], "embedded")
    if encoder.shapes is not None:
        forms = graph.keep("forms", encoder.shapes.weight.detach().numpy())
        x = graph.add("Add", [x, graph.add("Gather", [forms, "shapes"], "formed")], "embedded_forms")
    x = graph.norm(x, None, encoder.norm, "normed")
    layers: list[Any] = list(encoder.layers)
    for n, layer in enumerate(layers):
        layer_name = f"layer{n}"
        qkv = graph.add_linear(x, layer.qkv, f"{layer_name}.qkv")
        q, k, v = graph.add_thirds(qkv, f"{layer_name}.split")
        mixed = graph.add("MultiHeadAttention", [q, k, v], f"{layer_name}.mixed", domain=_MS, num_heads=layer.heads)
        x = graph.norm(graph.add_linear(mixed, layer.out, f"{layer_name}.out"), x, layer.norm1, f"{layer_name}.norm1")
        up = graph.add_linear(x, layer.up, f"{layer_name}.up", bias=False)
        shift = graph.keep(f"{layer_name}.up.bias", layer.up.bias.detach().float().numpy())
        up = graph.add("BiasGelu", [up, shift], f"{layer_name}.gelu", domain=_MS)
        x = graph.norm(graph.add_linear(up, layer.down, f"{layer_name}.down"), x, layer.norm2, f"{layer_name}.norm2")
    return x


def _make_model(graph: _Graph, inputs: list[Any], outputs: list[Any], name: str) -> Any:
    onnx_model = helper.make_model(
        helper.make_graph(graph.nodes, name, inputs, outputs, graph.weights),
        opset_imports=[helper.make_opsetid("", 18), helper.make_opsetid(_MS, 1)],
        ir_version=10,
        producer_name="allonym",
    )
    onnx.checker.check_model(onnx_model, check_custom_domain=False)
    return onnx_model


def tagger_graph(model: Tagger, *, int8: bool = True, wide: bool = False) -> Any:
    """Return the tagger as an ONNX model.

    Inputs: ``x`` float32 ``(1, pieces, width)`` word embeddings; ``shapes`` int64 ``(1, pieces)``; ``heads`` int64
    ``(words,)`` the first piece of each word. Outputs, logits: ``tags`` ``(words, 1 + 2 * labels)`` and ``parts``
    ``(words, 17)``.
    """
    graph = _Graph(int8, wide)
    hidden = _add_encoder(graph, model.encoder, LENGTH + 2)
    flat = graph.add("Squeeze", [hidden, graph.keep("axis0", [0], np.int64)], "flat")
    first = graph.add("Gather", [flat, "heads"], "firsts", axis=0)
    for name, head in (("tags", model.tags), ("parts", model.parts)):
        weight = graph.keep(f"{name}.weight", head.weight.detach().numpy().T)
        shift = graph.keep(f"{name}.bias", head.bias.detach().numpy())
        graph.add("Add", [graph.add("MatMul", [first, weight], f"{name}.product"), shift], name)
    width = model.encoder.size.hidden_size
    inputs = [
        _make_value("x", [1, "pieces", width]),
        _make_value("shapes", [1, "pieces"], True),
        _make_value("heads", ["words"], True),
    ]
    outputs = [
        _make_value("tags", ["words", model.tags.out_features]),
        _make_value("parts", ["words", model.parts.out_features]),
    ]
    return _make_model(graph, inputs, outputs, "tagger")


def encoder_graph(encoder: Encoder, *, positions: int = 256, int8: bool = True, wide: bool = False) -> Any:
    """Return an encoder: input ``x`` as in :func:`tagger_graph`, output ``mean`` ``(1, width)``, not normalised."""
    graph = _Graph(int8, wide)
    hidden = _add_encoder(graph, encoder, positions)
    graph.add("ReduceMean", [hidden, graph.keep("axis1", [1], np.int64)], "mean", keepdims=0)
    width = encoder.size.hidden_size
    return _make_model(graph, [_make_value("x", [1, "pieces", width])], [_make_value("mean", [1, width])], "encoder")


def _make_value(name: str, shape: list[Any], is_integer: bool = False) -> Any:
    return helper.make_tensor_value_info(name, TensorProto.INT64 if is_integer else TensorProto.FLOAT, shape)


def write_words(encoder: Encoder, vocabulary: Path, out: Path) -> None:
    """Write ``words.npy`` int8 ``(vocabulary, width)``, ``word_scales.npy`` float32 ``(vocabulary,)`` and
    ``vocab.txt``.
    """
    table = encoder.words.weight.detach().numpy()
    scale = np.maximum(np.abs(table).max(axis=1), 1e-12) / 127
    np.save(out / "words.npy", np.clip(np.rint(table / scale[:, None]), -127, 127).astype(np.int8))
    np.save(out / "word_scales.npy", scale.astype(np.float32))
    shutil.copyfile(vocabulary, out / "vocab.txt")


def write_tagger(
    model: Tagger, labels: tuple[str, ...], vocabulary: Path, out: Path, about: dict[str, Any], *, int8: bool = True
) -> None:
    """Write a folder for ``[detect.tagger] model``: graph, words, vocabulary, ``tagger.json``.

    Args:
        model: a trained model whose head has the tags of ``labels``.
        labels: the tagger's labels in the order of its tags.
        vocabulary: ``vocab.txt`` of the encoder.
        out: folder; created if missing.
        about: further values of ``tagger.json``: name, language, temperature, operating points.
        int8: whether weights are quantised; false keeps float32, for comparison.
    """
    out.mkdir(parents=True, exist_ok=True)
    assert model.tags.out_features == len(tag_names(labels))
    save_model(tagger_graph(model.eval(), int8=int8), out / "tagger.onnx")
    write_words(model.encoder, vocabulary, out)
    data = {"format": 1, **about, "labels": list(labels), "parts": list(PARTS)}
    (out / "tagger.json").write_text(json.dumps(data, indent=2) + "\n", "utf-8")


def save_model(graph: Any, path: Path) -> None:
    """Write an ONNX model."""
    onnx.save(graph, path)
