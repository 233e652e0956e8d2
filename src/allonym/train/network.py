"""The tagger in torch: a BERT encoder, an embedding of word shapes, a head for entities and one for parts of speech."""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from allonym.errors import DataError, require_extra

with require_extra("training the tagger", "train"):
    import torch
    from torch import Tensor, nn
    from torch.nn import functional

from allonym.models.words import SHAPES
from allonym.train.multilingual_score import OPEN


@dataclass(frozen=True, slots=True)
class Size:
    """The sizes of an encoder, named as in a Hugging Face ``config.json`` of a BERT."""

    vocab_size: int
    hidden_size: int
    num_hidden_layers: int
    num_attention_heads: int
    intermediate_size: int
    max_position_embeddings: int = 512
    layer_norm_eps: float = 1e-12

    @classmethod
    def read(cls, folder: Path) -> Size:
        """Read the ``config.json`` of a folder."""
        data = json.loads((folder / "config.json").read_text("utf-8"))
        return cls(**{name: data[name] for name in cls.__dataclass_fields__ if name in data})


class Drop(nn.Module):
    """Dropout that is the same for all pieces of a text, and so fast (Gal and Ghahramani 2016, arXiv:1512.05287)."""

    def __init__(self, share: float) -> None:
        super().__init__()
        self.keep = 1 - share

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.keep == 1:
            return x
        keep_mask = torch.rand(x.shape[0], *[1] * (x.ndim - 2), x.shape[-1]) < self.keep
        return x * (keep_mask.to(x.dtype) / self.keep)


class Layer(nn.Module):
    """One transformer layer, normalised after each sum as in BERT (Devlin et al. 2019, arXiv:1810.04805)."""

    def __init__(self, size: Size, dropout: float) -> None:
        super().__init__()
        width, self.heads = size.hidden_size, size.num_attention_heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.norm1 = nn.LayerNorm(width, eps=size.layer_norm_eps)
        self.up = nn.Linear(width, size.intermediate_size)
        self.down = nn.Linear(size.intermediate_size, width)
        self.norm2 = nn.LayerNorm(width, eps=size.layer_norm_eps)
        self.drop = Drop(dropout)

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        batch, length, width = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        weights = q @ k.transpose(-1, -2) * (width // self.heads) ** -0.5
        if mask is not None:
            weights = weights.masked_fill(~mask, -1e4)
        mixed = torch.softmax(weights, -1).to(v.dtype) @ v  # faster to train on a CPU than the fused kernel
        mixed = mixed.transpose(1, 2).reshape(batch, length, width)
        x = self.norm1(x + self.drop(self.out(mixed)))
        return self.norm2(x + self.drop(self.down(functional.gelu(self.up(x)))))  # type: ignore[no-any-return]


class Encoder(nn.Module):
    """Encodes pieces (and shapes) as one vector each. The word embeddings are frozen, and int8 as shipped."""

    def __init__(self, size: Size, dropout: float = 0.1, shapes: bool = True) -> None:
        super().__init__()
        self.size = size
        self.words = nn.Embedding(size.vocab_size, size.hidden_size)
        self.words.weight.requires_grad = False
        self.positions = nn.Embedding(size.max_position_embeddings, size.hidden_size)
        self.shapes = nn.Embedding(SHAPES, size.hidden_size) if shapes else None
        if self.shapes is not None:
            nn.init.zeros_(self.shapes.weight)
        self.norm = nn.LayerNorm(size.hidden_size, eps=size.layer_norm_eps)
        self.layers = nn.ModuleList(Layer(size, dropout) for _ in range(size.num_hidden_layers))
        self.drop = Drop(dropout)

    def embed(self, pieces: Tensor, shapes: Tensor | None) -> Tensor:
        """Map ``(batch, length)`` pieces and shapes to the input of the lowest layer, ``(batch, length, width)``."""
        x = self.words(pieces) + self.positions.weight[: pieces.shape[1]]
        if self.shapes is not None and shapes is not None:
            x = x + self.shapes(shapes)
        return self.drop(self.norm(x))  # type: ignore[no-any-return]

    def forward(self, pieces: Tensor, shapes: Tensor | None, mask: Tensor | None = None) -> Tensor:
        """Map ``(batch, length)`` pieces and shapes, with a ``mask`` of real pieces, to ``(batch, length, width)``."""
        x = self.embed(pieces, shapes)
        bars = None if mask is None else mask[:, None, None, :]
        for layer in self.layers:
            x = layer(x, bars)
        return x  # type: ignore[no-any-return]

    @classmethod
    def read(cls, folder: Path, dropout: float = 0.1, shapes: bool = True, layers: int | None = None) -> Encoder:
        """Read an encoder from a folder with ``config.json`` and ``model.safetensors`` of a BERT.

        Raises:
            DataError: the folder has no such encoder.
        """
        with require_extra("reading an encoder", "train"):
            from safetensors.torch import load_file
        try:
            size = Size.read(folder)
            spoken = folder / "tokenizer_config.json"
            cased = spoken.exists() and not json.loads(spoken.read_text("utf-8")).get("do_lower_case", True)
            weights = load_file(folder / "model.safetensors")
        except (OSError, ValueError, TypeError) as error:
            raise DataError(f"{folder}: not a BERT encoder (config.json and model.safetensors): {error}") from None
        if cased:
            raise DataError(f"{folder}: the encoder is cased; the tagger requires an uncased one")
        encoder = cls(size, dropout, shapes)
        encoder.load_state_dict(_convert_bert_weights(weights, size.num_hidden_layers), strict=not shapes)
        if layers is not None:
            encoder.layers = encoder.layers[:layers]
        return encoder


_LAYER_NAMES = {
    "out": "attention.output.dense",
    "norm1": "attention.output.LayerNorm",
    "up": "intermediate.dense",
    "down": "output.dense",
    "norm2": "output.LayerNorm",
}
"""Modules of a layer: our name to that of BERT."""


def _convert_bert_weights(weights: dict[str, Tensor], layers: int) -> dict[str, Tensor]:
    plain = {k.removeprefix("bert."): v for k, v in weights.items()}
    try:
        kinds = plain["embeddings.token_type_embeddings.weight"][0]
        out = {
            "words.weight": round_to_int8(plain["embeddings.word_embeddings.weight"]),
            "positions.weight": plain["embeddings.position_embeddings.weight"] + kinds,
            "norm.weight": plain["embeddings.LayerNorm.weight"],
            "norm.bias": plain["embeddings.LayerNorm.bias"],
        }
        for i, kind in product(range(layers), ("weight", "bias")):
            layer = f"encoder.layer.{i}."
            parts = (plain[f"{layer}attention.self.{part}.{kind}"] for part in ("query", "key", "value"))
            out[f"layers.{i}.qkv.{kind}"] = torch.cat([*parts])
            out |= {f"layers.{i}.{name}.{kind}": plain[f"{layer}{bert}.{kind}"] for name, bert in _LAYER_NAMES.items()}
    except KeyError as error:
        raise DataError(f"model.safetensors lacks {error.args[0]}: not a BERT encoder") from None
    return out


def make_rate_schedule(optimizer: Any, warm: int, total: int) -> Any:
    """Return a schedule whose rate grows over ``warm`` batches, then falls linearly to zero at ``total``."""
    return torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min((step + 1) / warm, max(0.0, (total - step) / max(1, total - warm)))
    )


def round_to_int8(table: Tensor) -> Tensor:
    """Round an embedding table to int8 rows with one scale each."""
    scale = table.abs().amax(dim=1, keepdim=True).clamp_min(1e-12) / 127
    return (table / scale).round().clamp(-127, 127) * scale


class Gate(nn.Module):
    """Finds the words that surely are outside of entities, from their first pieces after a few layers.

    Those words go no further. The others still attend to them, with keys and values that are estimated.

    Args:
        width: of the hidden states.
        layer: number of layers below the gate.
        above: number of layers above it.
        inner: units between the two linear layers.

    Attributes:
        least: the score that a word needs to pass.
        memories: for each layer above, the estimate of keys and values ``(·, 2 * width)`` from the states at the gate.
    """

    def __init__(self, width: int, layer: int, above: int, inner: int = 64) -> None:
        super().__init__()
        self.layer, self.least = layer, 0.0
        self.inner, self.outer = nn.Linear(width, inner), nn.Linear(inner, 1)
        self.memories = nn.ModuleList(nn.Linear(width, 2 * width) for _ in range(above))

    def forward(self, hidden: Tensor) -> Tensor:
        """Return the scores of words, ``(words,)``, from their hidden states ``(words, width)``."""
        return self.outer(functional.gelu(self.inner(hidden)))[:, 0]  # type: ignore[no-any-return]


class Tagger(nn.Module):
    """An encoder with two heads, which read the first piece of each word."""

    def __init__(self, encoder: Encoder, tags: int, parts: int, dropout: float = 0.1) -> None:
        super().__init__()
        self.encoder = encoder
        self.drop = Drop(dropout)
        self.tags = nn.Linear(encoder.size.hidden_size, tags)
        self.parts = nn.Linear(encoder.size.hidden_size, parts)

    def forward(
        self, pieces: Tensor, shapes: Tensor, heads: Tensor, mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return the logits of tags and of parts of speech, ``(words, ·)``; ``heads`` index the flattened batch."""
        hidden = self.encoder(pieces, shapes, mask).flatten(0, 1)[heads]
        hidden = self.drop(hidden)
        return self.tags(hidden).float(), self.parts(hidden).float()

    def freeze_lower_layers(self, count: int) -> None:
        """Keep the embeddings and the lowest ``count`` layers as they are; 0 keeps the word embeddings alone."""
        if count:
            encoder = self.encoder
            modules = [encoder.positions, encoder.norm, *encoder.layers[:count]]
            for module in [*modules, encoder.shapes] if encoder.shapes is not None else modules:
                module.requires_grad_(False)

    def make_parameter_groups(self, rate: float, head_rate: float) -> list[dict[str, Any]]:
        """Return the parameter groups of the optimiser: new layers learn faster, biases and norms do not decay."""
        fresh, decayed, plain = [], [], []
        for name, value in self.named_parameters():
            if not value.requires_grad:
                continue
            if name.startswith(("tags.", "parts.", "encoder.shapes.")):
                fresh.append(value)
            elif value.ndim > 1 and "positions" not in name:
                decayed.append(value)
            else:
                plain.append(value)
        return [
            {"params": fresh, "lr": head_rate, "weight_decay": 0.0},
            {"params": decayed, "lr": rate, "weight_decay": 0.01},
            {"params": plain, "lr": rate, "weight_decay": 0.0},
        ]


def compute_chain_loss(scores: Tensor, allowed: Tensor, is_word: Tensor, chain: Tensor) -> Tensor:
    """The mean over words of minus the log chance of all sequences of tags that are allowed.

    Args:
        scores: logits ``(texts, words, tags)``.
        allowed: which tags each word may have, of the same shape.
        is_word: ``(texts, words)``; the first word of each text is there.
        chain: logits ``(tags, tags)`` of a tag and the next one.
    """
    scores = (scores - scores.amax(-1, keepdim=True).detach()).exp()
    both = torch.cat([scores, scores * allowed])  # of any sequence, and of those that are right
    steps, weights = torch.cat([is_word, is_word]).unbind(1), chain.exp()
    columns = both.unbind(1)
    ahead = columns[0]
    total = ahead.sum(-1)
    ahead, logs = ahead / total[:, None], total.log()
    for column, is_there in zip(columns[1:], steps[1:], strict=True):
        row = (ahead @ weights) * column + 1e-30
        total = row.sum(-1)
        ahead = torch.where(is_there[:, None], row / total[:, None], ahead)
        logs = logs + torch.where(is_there, total.log(), 0.0)
    everything, right = logs.chunk(2)
    return (everything - right).sum() / is_word.sum()


def find_allowed_tags(tags: Tensor, count: int) -> Tensor:
    """Which of ``count`` tags each word may have, given its tag: all where that is ``OPEN``."""
    return (tags[..., None] == torch.arange(count)) | (tags[..., None] == OPEN)


@dataclass(slots=True)
class NameBatch:
    """Windows of texts.

    Pieces, shapes and a mask of real pieces are ``(texts, pieces)``; the place of each word's first piece, its tag and
    whether a word is there are ``(texts, words)``.
    """

    pieces: Tensor
    shapes: Tensor
    mask: Tensor
    heads: Tensor
    tags: Tensor
    is_word: Tensor


class NameNetwork(nn.Module):
    """An encoder with one head, and a chain over neighbouring tags: :class:`~allonym.models.nametagger.NameTagger`."""

    def __init__(self, encoder: Encoder, tags: int, dropout: float = 0.1) -> None:
        super().__init__()
        self.encoder = encoder
        self.drop = Drop(dropout)
        self.tags = nn.Linear(encoder.size.hidden_size, tags)
        self.chain = nn.Parameter(torch.zeros(tags, tags))

    def forward(self, batch: NameBatch) -> Tensor:
        """Return scores ``(texts, words, tags)``."""
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=self.training):
            hidden = self.encoder(batch.pieces, batch.shapes, batch.mask)
        heads = batch.heads[..., None].expand(-1, -1, hidden.shape[-1])
        return self.tags(self.drop(hidden.float().gather(1, heads)))  # type: ignore[no-any-return]

    def draw_loss(self, batch: NameBatch) -> Tensor:
        """The loss of a batch, with dropout."""
        scores = self(batch)
        return compute_chain_loss(scores, find_allowed_tags(batch.tags, scores.shape[-1]), batch.is_word, self.chain)

    def make_parameter_groups(self, recipe: dict[str, Any]) -> list[dict[str, Any]]:
        """The parameters with their rates: new ones learn faster, word embeddings and the lowest layers not at all."""
        if recipe["frozen"]:
            for module in (self.encoder.positions, self.encoder.norm, *self.encoder.layers[: recipe["frozen"]]):
                module.requires_grad_(False)
        fresh = {"chain", "tags.weight", "tags.bias", "encoder.shapes.weight"}
        groups: tuple[list[Tensor], list[Tensor]] = ([], [])
        for name, value in self.named_parameters():
            if value.requires_grad:
                groups[name in fresh].append(value)
        return [{"params": groups[0], "rate": recipe["rate"]}, {"params": groups[1], "rate": recipe["fresh_rate"]}]
