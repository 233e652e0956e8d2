"""Read a model folder back into a torch network, for training a tagger further.

The weights are rounded to int8, as used in detection: this reads the same network that
:func:`allonym.train.export.write_tagger` wrote.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from allonym.errors import DataError, MissingExtra
from allonym.models.tags import PARTS, tag_names
from allonym.train.network import Encoder, Size, Tagger

try:
    import onnx
    import torch
    from onnx import numpy_helper
except ImportError as error:
    raise MissingExtra("training from a model in use", "train") from error

_LAYER = re.compile(r"layer(\d+)\.qkv\.bias\Z")


def read_tagger(folder: Path, dropout: float = 0.1) -> tuple[Tagger, dict[str, Any]]:
    """Read the network and the ``tagger.json`` of a folder that :mod:`allonym.train.export` wrote.

    Args:
        folder: with ``tagger.onnx``, ``tagger.json``, ``words.npy`` and ``word_scales.npy``.
        dropout: share from 0 to 1, for further training.

    Raises:
        DataError: the folder has no such tagger, or its parts do not fit.
    """
    try:
        about: dict[str, Any] = json.loads((folder / "tagger.json").read_text("utf-8"))
        labels = tuple(about["labels"])
        graph = onnx.load(folder / "tagger.onnx").graph
        table = np.load(folder / "words.npy").astype(np.float32) * np.load(folder / "word_scales.npy")[:, None]
    except Exception as error:  # damaged files raise exceptions of json, protobuf or numpy
        raise DataError(f"{folder}: not a tagger that can be trained further ({type(error).__name__})") from None
    weights = {initializer.name: numpy_helper.to_array(initializer) for initializer in graph.initializer}
    heads = [a.i for node in graph.node if node.op_type == "MultiHeadAttention" for a in node.attribute]
    try:
        layers = 1 + max(int(layer_match[1]) for name in weights if (layer_match := _LAYER.match(name)))
        width = table.shape[1]
        size = Size(len(table), width, layers, heads[0], len(weights["layer0.up.bias"]), weights["positions"].shape[1])
        tagger = Tagger(Encoder(size, dropout), len(tag_names(labels)), len(PARTS), dropout)
        tagger.load_state_dict(
            {name: torch.from_numpy(np.array(w)) for name, w in _rename_weights(weights, table, layers).items()}
        )
    except (KeyError, ValueError, IndexError, RuntimeError) as error:
        raise DataError(f"{folder}: tagger.onnx does not fit the rest ({type(error).__name__})") from None
    return tagger, about


def _rename_weights(weights: Mapping[str, Any], table: Any, layers: int) -> dict[str, Any]:
    """Return the network's weights by their names in torch."""
    out = {
        "encoder.words.weight": table,
        "encoder.positions.weight": weights["positions"][0],
        "encoder.shapes.weight": weights["forms"],
        **_unpack_norm("encoder.norm", weights, "normed"),
        **{f"{name}.{part}": weights[f"{name}.{part}"].T for name in ("tags", "parts") for part in ("weight", "bias")},
    }
    for n in range(layers):
        layer, torch_at = f"layer{n}", f"encoder.layers.{n}"
        for part in ("qkv", "out", "up", "down"):
            out[f"{torch_at}.{part}.weight"] = _unpack_linear(weights, f"{layer}.{part}")
            out[f"{torch_at}.{part}.bias"] = weights[f"{layer}.{part}.bias"]
        for part in ("norm1", "norm2"):
            out |= _unpack_norm(f"{torch_at}.{part}", weights, f"{layer}.{part}")
    return out


def _unpack_norm(name: str, weights: Mapping[str, Any], layer: str) -> dict[str, Any]:
    return {f"{name}.weight": weights[f"{layer}.gain"], f"{name}.bias": weights[f"{layer}.shift"]}


def _unpack_linear(weights: Mapping[str, Any], name: str) -> Any:
    weight = weights[f"{name}.weight"]
    return (weight.astype(np.float32) * weights[f"{name}.scale"] if f"{name}.scale" in weights else weight).T
