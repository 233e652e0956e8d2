"""A model folder back to a torch network, so that training can go on from a tagger that is in use.

The weights come out as the product computes with them, rounded to int8: what :func:`allonym.train.export.write_tagger`
wrote and this reads are the same network.
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
    """The network of a folder that :mod:`allonym.train.export` wrote, and what its ``tagger.json`` says.

    Args:
        folder: with ``tagger.onnx``, ``tagger.json``, ``words.npy`` and ``word_scales.npy``.
        dropout: share from 0 to 1, for training on.

    Raises:
        DataError: the folder holds no such tagger, or its parts do not belong together.
    """
    try:
        about: dict[str, Any] = json.loads((folder / "tagger.json").read_text("utf-8"))
        labels = tuple(about["labels"])
        graph = onnx.load(folder / "tagger.onnx").graph
        table = np.load(folder / "words.npy").astype(np.float32) * np.load(folder / "word_scales.npy")[:, None]
    except Exception as error:  # damaged files raise what json, onnx's protobuf and numpy each have
        raise DataError(f"{folder}: no tagger that training can go on from ({type(error).__name__})") from None
    held = {one.name: numpy_helper.to_array(one) for one in graph.initializer}
    heads = [a.i for node in graph.node if node.op_type == "MultiHeadAttention" for a in node.attribute]
    try:
        layers = 1 + max(int(found[1]) for name in held if (found := _LAYER.match(name)))
        width = table.shape[1]
        size = Size(len(table), width, layers, heads[0], len(held["layer0.up.bias"]), held["positions"].shape[1])
        made = Tagger(Encoder(size, dropout), len(tag_names(labels)), len(PARTS), dropout)
        made.load_state_dict({name: torch.from_numpy(np.array(w)) for name, w in _weights(held, table, layers).items()})
    except (KeyError, ValueError, IndexError, RuntimeError) as error:
        raise DataError(f"{folder}: tagger.onnx does not fit the rest ({type(error).__name__})") from None
    return made, about


def _weights(held: Mapping[str, Any], table: Any, layers: int) -> dict[str, Any]:
    """The network's weights under the names that torch gives them."""
    out = {
        "encoder.words.weight": table,
        "encoder.positions.weight": held["positions"][0],
        "encoder.shapes.weight": held["forms"],
        **_norm("encoder.norm", held, "normed"),
        **{f"{name}.{part}": held[f"{name}.{part}"].T for name in ("tags", "parts") for part in ("weight", "bias")},
    }
    for n in range(layers):
        at, torch_at = f"layer{n}", f"encoder.layers.{n}"
        for part in ("qkv", "out", "up", "down"):
            out[f"{torch_at}.{part}.weight"] = _linear(held, f"{at}.{part}")
            out[f"{torch_at}.{part}.bias"] = held[f"{at}.{part}.bias"]
        for part in ("norm1", "norm2"):
            out |= _norm(f"{torch_at}.{part}", held, f"{at}.{part}")
    return out


def _norm(name: str, held: Mapping[str, Any], at: str) -> dict[str, Any]:
    return {f"{name}.weight": held[f"{at}.gain"], f"{name}.bias": held[f"{at}.shift"]}


def _linear(held: Mapping[str, Any], name: str) -> Any:
    weight = held[f"{name}.weight"]
    return (weight.astype(np.float32) * held[f"{name}.scale"] if f"{name}.scale" in held else weight).T
