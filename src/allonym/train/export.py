"""Model folders of trained networks: an ONNX graph with int8 weights, word embeddings and a vocabulary.

The graph is written node by node, with the fused operators of onnxruntime, and contains only what is computed. Weights
are symmetric int8 with one scale per output. The scales of the activations come from each window, which is computed
alone, so they depend on nothing else. If ``wide`` is false, weights use only 7 bits: older processors add pairs of
products in 16 bits, and 7 bits never overflow, so every processor gives the same integers.

:func:`read_tagger` reads a folder back into a torch network, for training a tagger further. Its weights are rounded to
int8, as used in detection: this is the same network that :func:`write_tagger` wrote.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from allonym.errors import hide_foreign_errors, require_extra
from allonym.models.tags import PARTS, list_tag_names
from allonym.models.windows import LENGTH
from allonym.partfile import write_file
from allonym.train.network import Encoder, Gate, NameNetwork, Size, Tagger

with require_extra("writing a model", "train"):
    import onnx
    import torch
    from onnx import TensorProto, helper, numpy_helper

_MS = "com.microsoft"
_OUTSIDE = 20.0  # logit of no entity for words that do not pass the gate; that of every other tag is 0


class _Graph:
    """The nodes and weights of a graph under construction."""

    def __init__(self, int8: bool, wide: bool, by_chance: bool = False) -> None:
        self.nodes: list[Any] = []
        self.weights: list[Any] = []
        self.chance = np.random.default_rng(0) if by_chance else None
        self.int8, self.most = int8, 127 if wide else 63

    def add_weights(self, name: str, value: Any, kind: Any = np.float32) -> str:
        self.weights.append(numpy_helper.from_array(np.require(value, kind, "C"), name))
        return name

    def add_node(self, op: str, inputs: list[str], name: str, *, domain: str = "", **options: Any) -> str:
        self.nodes.append(helper.make_node(op, inputs, [name], name=name, domain=domain, **options))
        return name

    def add_linear(self, x: str, layer: Any, name: str, bias: bool = True) -> str:
        """``x @ weight.T (+ bias)``."""
        weight = layer.weight.detach().float().numpy().T
        shift = self.add_weights(f"{name}.bias", layer.bias.detach().float().numpy()) if bias else ""
        if not self.int8:
            factors = [x, self.add_weights(f"{name}.weight", weight)]
            out = self.add_node("MatMul", factors, f"{name}.product" if bias else name)
            return self.add_node("Add", [out, shift], name) if bias else out
        scale = np.maximum(np.abs(weight).max(axis=0), 1e-12) / self.most
        exact = weight / scale
        rounded = np.rint(exact) if self.chance is None else np.floor(exact + self.chance.random(exact.shape))
        quantised = np.clip(rounded, -self.most, self.most)
        inputs = [
            x,
            self.add_weights(f"{name}.weight", quantised, np.int8),
            self.add_weights(f"{name}.scale", scale),
            self.add_weights(f"{name}.zero", np.zeros(len(scale)), np.int8),
        ]
        return self.add_node("DynamicQuantizeMatMul", [*inputs, shift] if bias else inputs, name, domain=_MS)

    def add_layer_norm(self, x: str, skip: str | None, layer: Any, name: str) -> str:
        gain = self.add_weights(f"{name}.gain", layer.weight.detach().numpy())
        shift = self.add_weights(f"{name}.shift", layer.bias.detach().numpy())
        if skip is not None:  # the fused operator is several times slower than these two
            x = self.add_node("Add", [x, skip], f"{name}.sum")
        return self.add_node("LayerNormalization", [x, gain, shift], name, axis=-1, epsilon=layer.eps)


def _add_embeddings(graph: _Graph, encoder: Encoder, positions: int) -> str:
    table = graph.add_weights("positions", encoder.positions.weight.detach().numpy()[None, :positions])
    zero, one_value = graph.add_weights("zero", [0], np.int64), graph.add_weights("one", [1], np.int64)
    length = graph.add_node("Shape", ["x"], "length", start=1, end=2)
    x = graph.add_node("Add", ["x", graph.add_node("Slice", [table, zero, length, one_value], "placed")], "embedded")
    if encoder.shapes is not None:
        forms = graph.add_weights("forms", encoder.shapes.weight.detach().numpy())
        x = graph.add_node("Add", [x, graph.add_node("Gather", [forms, "shapes"], "formed")], "embedded_forms")
    return graph.add_layer_norm(x, None, encoder.norm, "normed")


def _add_layers(
    graph: _Graph, layers: Sequence[Any], x: str, first: int = 0, resting: str = "", memories: Sequence[Any] = ()
) -> str:
    """Add layers that are numbered from ``first``; pieces in ``resting`` are attended to by way of ``memories``."""
    for n, layer in enumerate(layers, first):
        prefix = f"layer{n}"
        qkv = graph.add_linear(x, layer.qkv, f"{prefix}.qkv")
        split = [f"{prefix}.split_{i}" for i in range(3)]
        graph.nodes.append(helper.make_node("Split", [qkv], split, name=f"{prefix}.split", axis=-1, num_outputs=3))
        if resting:
            memory = graph.add_linear(resting, memories[n - first], f"{prefix}.memory")
            pair = [f"{prefix}.known_{i}" for i in range(2)]
            graph.nodes.append(
                helper.make_node("Split", [memory], pair, name=f"{prefix}.known", axis=-1, num_outputs=2)
            )
            for i, (old, new) in enumerate(zip(pair, split[1:], strict=True), 1):
                split[i] = graph.add_node("Concat", [old, new], f"{prefix}.every_{i}", axis=1)
        mixed = graph.add_node("MultiHeadAttention", split, f"{prefix}.mixed", domain=_MS, num_heads=layer.heads)
        x = graph.add_layer_norm(graph.add_linear(mixed, layer.out, f"{prefix}.out"), x, layer.norm1, f"{prefix}.norm1")
        up = graph.add_linear(x, layer.up, f"{prefix}.up", bias=False)
        shift = graph.add_weights(f"{prefix}.up.bias", layer.up.bias.detach().float().numpy())
        up = graph.add_node("BiasGelu", [up, shift], f"{prefix}.gelu", domain=_MS)
        x = graph.add_layer_norm(graph.add_linear(up, layer.down, f"{prefix}.down"), x, layer.norm2, f"{prefix}.norm2")
    return x


def _add_gate(graph: _Graph, x: str, gate: Gate) -> tuple[str, str, str, str]:
    """Add a gate.

    Returns:
        The pieces that pass, those that do not, whether each word passes, and the place of its first piece among those
        that pass. The mark at the start always passes, so that something does.
    """
    axis0, one_value = graph.add_weights("axis0", [0], np.int64), "one"
    inner, outer = gate.inner, gate.outer
    flat = graph.add_node("Squeeze", [x, axis0], "gate.flat")
    firsts = graph.add_node("Gather", [flat, "heads"], "gate.firsts", axis=0)
    product = graph.add_node(
        "MatMul", [firsts, graph.add_weights("gate.inner", inner.weight.detach().numpy().T)], "gate.product"
    )
    bent = graph.add_node(
        "BiasGelu",
        [product, graph.add_weights("gate.inner.bias", inner.bias.detach().numpy())],
        "gate.gelu",
        domain=_MS,
    )
    weighed = graph.add_node(
        "MatMul", [bent, graph.add_weights("gate.outer", outer.weight.detach().numpy()[0])], "gate.weighed"
    )
    graph.add_weights("gate.least", np.float32(gate.least - float(outer.bias.detach())))
    passes = graph.add_node("GreaterOrEqual", [weighed, "gate.least"], "gate.passes")
    # which word a piece belongs to: as many as begin before or at it, so that the mark at the start belongs to none
    count = graph.add_node("Shape", ["heads"], "gate.count")
    zeros = graph.add_node("ConstantOfShape", ["length"], "gate.zeros", value=_make_integer(0))
    ones = graph.add_node("ConstantOfShape", [count], "gate.ones", value=_make_integer(1))
    begins = graph.add_node("ScatterElements", [zeros, "heads", ones], "gate.begins", axis=0)
    zero_axis = graph.add_weights("gate.axis", 0, np.int64)
    word = graph.add_node("CumSum", [begins, zero_axis], "gate.word")
    starts = graph.add_node("Concat", [graph.add_weights("gate.start", [True], np.bool_), passes], "gate.known", axis=0)
    passing = graph.add_node("Gather", [starts, word], "gate.passing")
    sides = []
    for name, mask in (("awake", passing), ("resting", graph.add_node("Not", [passing], "gate.not"))):
        indices = graph.add_node(
            "Squeeze", [graph.add_node("NonZero", [mask], f"gate.{name}.found"), axis0], f"gate.{name}.at"
        )
        some = graph.add_node("Gather", [flat, indices], f"gate.{name}.flat", axis=0)
        sides.append(graph.add_node("Unsqueeze", [some, axis0], f"gate.{name}"))
    number = graph.add_node("Cast", [passing], "gate.number", to=TensorProto.INT64)
    counted = graph.add_node("CumSum", [number, zero_axis], "gate.counted")
    places = graph.add_node("Sub", [graph.add_node("Gather", [counted, "heads"], "gate.nth"), one_value], "gate.places")
    return sides[0], sides[1], passes, places


def _make_integer(value: int) -> Any:
    return helper.make_tensor("value", TensorProto.INT64, [1], [value])


def _make_onnx_model(graph: _Graph, inputs: list[Any], outputs: list[Any], name: str) -> Any:
    onnx_model = helper.make_model(
        helper.make_graph(graph.nodes, name, inputs, outputs, graph.weights),
        opset_imports=[helper.make_opsetid("", 18), helper.make_opsetid(_MS, 1)],
        ir_version=10,
        producer_name="allonym",
    )
    onnx.checker.check_model(onnx_model, check_custom_domain=False)
    return onnx_model


def make_tagger_graph(
    model: Tagger | NameNetwork,
    *,
    int8: bool = True,
    wide: bool = False,
    by_chance: bool = False,
    gate: Gate | None = None,
) -> Any:
    """Return the tagger as an ONNX model. ``by_chance`` rounds weights up or down, the nearer the likelier.

    Inputs: ``x`` float32 ``(1, pieces, width)`` word embeddings; ``shapes`` int64 ``(1, pieces)``; ``heads`` int64
    ``(words,)`` the first piece of each word; with a gate also ``gate.least`` float32 ``()``, with a default: minus
    infinity lets every word pass. Outputs, logits: ``tags`` ``(words, 1 + 2 * labels)`` and, where there is a head for
    them, ``parts`` ``(words, 17)``.
    Words that a gate stops are outside of entities for certain, and their parts mean nothing.
    """
    graph = _Graph(int8, wide, by_chance)
    x = _add_embeddings(graph, model.encoder, LENGTH + 2)
    layers: list[Any] = list(model.encoder.layers)
    if gate is None:
        x, axis0, places = _add_layers(graph, layers, x), graph.add_weights("axis0", [0], np.int64), "heads"
    else:
        x = _add_layers(graph, layers[: gate.layer], x)
        x, resting, passes, places = _add_gate(graph, x, gate)
        x, axis0 = _add_layers(graph, layers[gate.layer :], x, gate.layer, resting, list(gate.memories)), "axis0"
    first = graph.add_node("Gather", [graph.add_node("Squeeze", [x, axis0], "flat"), places], "firsts", axis=0)
    heads = [(name, getattr(model, name)) for name in ("tags", "parts") if hasattr(model, name)]
    for name, head in heads:
        weight = graph.add_weights(f"{name}.weight", head.weight.detach().numpy().T)
        shift = graph.add_weights(f"{name}.bias", head.bias.detach().numpy())
        is_gated = gate is not None and name == "tags"
        out = f"{name}.passing" if is_gated else name
        graph.add_node("Add", [graph.add_node("MatMul", [first, weight], f"{name}.product"), shift], out)
        if is_gated:
            outside = graph.add_weights("gate.outside", [_OUTSIDE, *[0] * (head.out_features - 1)])
            chosen = graph.add_node("Unsqueeze", [passes, graph.add_weights("axis1", [1], np.int64)], "gate.chosen")
            graph.add_node("Where", [chosen, out, outside], name)
    width = model.encoder.size.hidden_size
    inputs = [
        _describe_tensor("x", [1, "pieces", width]),
        _describe_tensor("shapes", [1, "pieces"], True),
        _describe_tensor("heads", ["words"], True),
        *([_describe_tensor("gate.least", [])] if gate is not None else []),
    ]
    outputs = [_describe_tensor(name, ["words", head.out_features]) for name, head in heads]
    return _make_onnx_model(graph, inputs, outputs, "tagger")


def make_encoder_graph(encoder: Encoder, *, positions: int = 256, int8: bool = True, wide: bool = False) -> Any:
    """Return an encoder: input ``x`` as in :func:`make_tagger_graph`; output ``mean`` ``(1, width)``, not scaled."""
    graph = _Graph(int8, wide)
    hidden = _add_layers(graph, list(encoder.layers), _add_embeddings(graph, encoder, positions))
    graph.add_node("ReduceMean", [hidden, graph.add_weights("axis1", [1], np.int64)], "mean", keepdims=0)
    width = encoder.size.hidden_size
    inputs, outputs = [_describe_tensor("x", [1, "pieces", width])], [_describe_tensor("mean", [1, width])]
    return _make_onnx_model(graph, inputs, outputs, "encoder")


def _describe_tensor(name: str, shape: list[Any], is_integer: bool = False) -> Any:
    return helper.make_tensor_value_info(name, TensorProto.INT64 if is_integer else TensorProto.FLOAT, shape)


def write_word_embeddings(encoder: Encoder, out: Path) -> None:
    """Write ``words.npy`` int8 ``(vocabulary, width)`` and ``word_scales.npy`` float32 ``(vocabulary,)``."""
    table = encoder.words.weight.detach().numpy()
    scale = np.maximum(np.abs(table).max(axis=1), 1e-12) / 127
    np.save(out / "words.npy", np.clip(np.rint(table / scale[:, None]), -127, 127).astype(np.int8))
    np.save(out / "word_scales.npy", scale.astype(np.float32))


def write_tagger(
    model: Tagger,
    labels: tuple[str, ...],
    vocabulary: Path,
    out: Path,
    about: dict[str, Any],
    *,
    int8: bool = True,
    by_chance: bool = False,
    gate: Gate | None = None,
) -> dict[str, Any]:
    """Write a folder for ``[detect.tagger] model``: graph, words, vocabulary, ``tagger.json``.

    Args:
        model: a trained model whose head has the tags of ``labels``.
        labels: the tagger's labels in the order of its tags.
        vocabulary: ``vocab.txt`` of the encoder.
        out: folder; created if missing.
        about: further values of ``tagger.json``: name, language, temperature, operating points.
        int8: whether weights are quantised; false keeps float32, for comparison.
        by_chance: round weights up or down by chance, the same in each run. For a tagger that :func:`read_tagger` read:
            a short training moves most weights by less than half a step, and rounding to the nearest would undo it.
        gate: the gate for words that surely are outside of entities; by default there is none.

    Returns:
        The contents of ``tagger.json``.
    """
    out.mkdir(parents=True, exist_ok=True)
    assert model.tags.out_features == len(list_tag_names(labels))
    save_onnx_model(make_tagger_graph(model.eval(), int8=int8, by_chance=by_chance, gate=gate), out / "tagger.onnx")
    write_word_embeddings(model.encoder, out)
    shutil.copyfile(vocabulary, out / "vocab.txt")
    data = {"format": 1, **about, "labels": list(labels), "parts": list(PARTS)}
    write_file(out / "tagger.json", (json.dumps(data, indent=2) + "\n").encode("utf-8"))
    return data


def save_onnx_model(graph: Any, path: Path) -> None:
    """Write an ONNX model."""
    onnx.save(graph, path)


_LAYER = re.compile(r"layer(\d+)\.qkv\.bias\Z")


def read_tagger(folder: Path, dropout: float = 0.1) -> tuple[Tagger, dict[str, Any]]:
    """Read the network and the ``tagger.json`` of a folder that :func:`write_tagger` wrote.

    Args:
        folder: with ``tagger.onnx``, ``tagger.json``, ``words.npy`` and ``word_scales.npy``.
        dropout: share from 0 to 1, for further training.

    Raises:
        DataError: the folder has no such tagger, or its parts do not fit.
    """
    with hide_foreign_errors(f"{folder}: not a tagger that can be trained further"):
        about: dict[str, Any] = json.loads((folder / "tagger.json").read_text("utf-8"))
        labels = tuple(about["labels"])
        graph = onnx.load(folder / "tagger.onnx").graph
        table = np.load(folder / "words.npy").astype(np.float32) * np.load(folder / "word_scales.npy")[:, None]
    weights = {initializer.name: numpy_helper.to_array(initializer) for initializer in graph.initializer}
    heads = [a.i for node in graph.node if node.op_type == "MultiHeadAttention" for a in node.attribute]
    misfit = f"{folder}: tagger.onnx does not fit the rest"
    with hide_foreign_errors(misfit, KeyError, ValueError, IndexError, RuntimeError):
        layers = 1 + max(int(layer_match[1]) for name in weights if (layer_match := _LAYER.match(name)))
        width = table.shape[1]
        size = Size(len(table), width, layers, heads[0], len(weights["layer0.up.bias"]), weights["positions"].shape[1])
        tagger = Tagger(Encoder(size, dropout), len(list_tag_names(labels)), len(PARTS), dropout)
        renamed = _convert_weights_to_torch(weights, table, layers)
        tagger.load_state_dict({name: torch.from_numpy(np.array(w)) for name, w in renamed.items()})
    return tagger, about


def _convert_weights_to_torch(weights: Mapping[str, Any], table: Any, layers: int) -> dict[str, Any]:
    """Return the network's weights by their names in torch."""
    out = {
        "encoder.words.weight": table,
        "encoder.positions.weight": weights["positions"][0],
        "encoder.shapes.weight": weights["forms"],
        **_rename_norm_weights("encoder.norm", weights, "normed"),
        **{f"{name}.{part}": weights[f"{name}.{part}"].T for name in ("tags", "parts") for part in ("weight", "bias")},
    }
    for n in range(layers):
        layer, torch_at = f"layer{n}", f"encoder.layers.{n}"
        for part in ("qkv", "out", "up", "down"):
            out[f"{torch_at}.{part}.weight"] = _unpack_linear(weights, f"{layer}.{part}")
            out[f"{torch_at}.{part}.bias"] = weights[f"{layer}.{part}.bias"]
        for part in ("norm1", "norm2"):
            out |= _rename_norm_weights(f"{torch_at}.{part}", weights, f"{layer}.{part}")
    return out


def _rename_norm_weights(name: str, weights: Mapping[str, Any], layer: str) -> dict[str, Any]:
    return {f"{name}.weight": weights[f"{layer}.gain"], f"{name}.bias": weights[f"{layer}.shift"]}


def _unpack_linear(weights: Mapping[str, Any], name: str) -> Any:
    weight = weights[f"{name}.weight"]
    return (weight.astype(np.float32) * weights[f"{name}.scale"] if f"{name}.scale" in weights else weight).T
