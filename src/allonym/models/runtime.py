"""ONNX sessions and word embeddings, which is all that the embedded models need to run: no network, no torch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from allonym.errors import DataError, hide_foreign_errors
from allonym.models.words import read_pieces

HERE = Path(__file__).parent

T = TypeVar("T")
R = TypeVar("R")


def map_in_threads(function: Callable[[T], R], items: Sequence[T], threads: int) -> list[R]:
    """Return the function's value for each item, in order; at most ``threads`` are computed at the same time."""
    if threads < 2 or len(items) < 2:
        return list(map(function, items))
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(function, items))


def open_session(path: Path, *, gpu: bool = False) -> Any:
    """Open an inference session.

    Args:
        path: an ONNX file.
        gpu: whether to run on a GPU where this machine and the installed onnxruntime have one.

    Raises:
        DataError: the file is missing or not readable as a model.
    """
    import onnxruntime as ort

    if not path.is_file():
        raise DataError(f"{path}: the model file is missing")
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1  # several windows at once are faster than one window on several threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 4
    # the graphs are fused by hand; what onnxruntime would fuse beyond that is slower
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    names = ["CUDAExecutionProvider", "CPUExecutionProvider"] if gpu else ["CPUExecutionProvider"]
    providers = [name for name in names if name in ort.get_available_providers()]
    with hide_foreign_errors(f"{path}: not a model that onnxruntime can run"):
        return ort.InferenceSession(str(path), options, providers=providers)


class Embeddings:
    """The word embeddings of a model folder, int8 on disk and mapped into memory: only rows in use are read."""

    def __init__(self, folder: Path) -> None:
        try:
            self._rows = np.load(folder / "words.npy", mmap_mode="r")
            self._scales = np.load(folder / "word_scales.npy")
            self.pieces = read_pieces(folder)
        except (OSError, ValueError, EOFError) as error:
            raise DataError(f"{folder}: no word embeddings: {error}") from None

    def __call__(self, ids: Sequence[int]) -> Any:
        """Return the embeddings of pieces, float32 ``(1, len(ids), width)``."""
        rows = np.asarray(ids)
        return (self._rows[rows].astype(np.float32) * self._scales[rows, None])[None]
