"""Fits the gate that stops words which surely are outside of entities, so that the upper layers compute fewer words.

What the tagger itself says of text teaches the gate; no annotation is needed. A word counts as much as its chance of
being in an entity. Words that the gate stops are still attended to: their keys and values in the layers above are
estimated from their states at the gate by ridge regression. No weight of the tagger changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from allonym.errors import DataError, require_extra
from allonym.models.windows import Window
from allonym.train.fit import pad_windows
from allonym.train.network import Gate, Tagger

with require_extra("training the tagger", "train"):
    import torch
    from torch import Tensor
    from torch.nn import functional

LOST = 0.0004
"""Share of the words in entities that the gate may stop, on text that it was not fitted to."""

_BATCH, _EPOCHS, _RATE = 1024, 6, 5e-3
_POSITIVE = 20.0  # weight of a word that surely is in an entity, over one that is outside
_RIDGE = 1e-4  # of the number of words
_ROWS = 8192  # words computed at once


def fit_gate(
    model: Tagger, windows: Sequence[Window], *, layer: int, temperature: float, least: float, lost: float = LOST
) -> Gate:
    """Fit a gate.

    Args:
        model: a trained tagger; afterwards it is in evaluation mode.
        windows: text of all kinds, of which every fifth window chooses the score that a word needs.
        layer: number of layers below the gate, fewer than the tagger has.
        temperature: of the tagger's probabilities.
        least: the lowest operating point; words with a lower chance of being in an entity do not matter.
        lost: share from 0 to 1 of the chances of the words that matter, summed, which may be stopped.

    Raises:
        DataError: too few words matter, or the tagger has no layer above the gate.
    """
    if layer >= len(model.encoder.layers):
        raise DataError(f"no gate: the tagger has {len(model.encoder.layers)} layers, none is above {layer}")
    torch.manual_seed(1)
    states, chances, judges = _compute_states(model.eval(), windows, layer, temperature)
    matter = chances * (chances >= least)
    if not bool(matter[judges].any()) or not bool(matter[~judges].any()):
        raise DataError("no gate: the text has too few words that may be in an entity")
    gate = Gate(states[0].shape[1], layer, len(states))
    _train_scores(gate, states[0][~judges], chances[~judges], least)
    with torch.no_grad():
        scores = torch.cat([gate(rows.float()) for rows in torch.split(states[0], _ROWS)])
        order = scores[judges].argsort()
        stopped = matter[judges][order].cumsum(0)
        gate.least = float(scores[judges][order][int((stopped <= lost * stopped[-1]).sum())])
        _estimate_memories(gate, model, [rows[scores < gate.least] for rows in states])
    return gate.eval()


def _compute_states(
    model: Tagger, windows: Sequence[Window], layer: int, temperature: float
) -> tuple[list[Tensor], Tensor, Tensor]:
    """Return the states of each word's first piece at the gate and below each further layer, in half precision; each
    word's chance of being in an entity; and whether its window judges.
    """
    blocks: list[Any] = list(model.encoder.layers)
    states: list[list[Tensor]] = [[] for _ in blocks[layer:]]
    chances, judges = [], []
    order = sorted(range(len(windows)), key=lambda i: len(windows[i].pieces))
    with torch.no_grad():
        for start in range(0, len(order), 16):
            numbers = order[start : start + 16]
            batch = [windows[i] for i in numbers]
            ids, shapes, mask = pad_windows(batch)
            heads = torch.tensor([n * ids.shape[1] + head for n, w in enumerate(batch) for head in w.heads])
            judges += [number % 5 == 0 for number, w in zip(numbers, batch, strict=True) for _ in w.heads]
            x = model.encoder.embed(ids, shapes)
            for n, block in enumerate(blocks):
                if n >= layer:
                    states[n - layer].append(x.flatten(0, 1)[heads].half())
                x = block(x, mask[:, None, None, :])
            tags = model.tags(x.flatten(0, 1)[heads]) / temperature
            chances.append(1 - torch.softmax(tags, dim=1)[:, 0])
    return [torch.cat(rows) for rows in states], torch.cat(chances), torch.tensor(judges)


def _train_scores(gate: Gate, states: Tensor, chances: Tensor, least: float) -> None:
    batches = max(1, len(states) // _BATCH)
    optimizer = torch.optim.AdamW([*gate.inner.parameters(), *gate.outer.parameters()], weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, _RATE, total_steps=_EPOCHS * batches + 1)
    for _ in range(_EPOCHS):
        for some in torch.randperm(len(states)).tensor_split(batches):
            score, inside = gate(states[some].float()), chances[some]
            loss = _POSITIVE * functional.softplus(-score) * inside * (inside > least / 2)
            loss = (loss + functional.softplus(score) * (inside <= least)).mean()
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            schedule.step()


def _estimate_memories(gate: Gate, model: Tagger, states: Sequence[Tensor]) -> None:
    """Set the estimates of keys and values, from the states of words that are stopped."""
    width = states[0].shape[1]
    blocks: list[Any] = list(model.encoder.layers[gate.layer :])
    squares = torch.zeros(width + 1, width + 1, dtype=torch.float64)
    products = [torch.zeros(width + 1, 2 * width, dtype=torch.float64) for _ in blocks]
    for start in range(0, len(states[0]), _ROWS):
        rows = [some[start : start + _ROWS].float() for some in states]
        inputs = functional.pad(rows[0], (0, 1), value=1.0).double()
        squares += inputs.T @ inputs
        for total, block, below in zip(products, blocks, rows, strict=True):
            pairs = functional.linear(below, block.qkv.weight[width:], block.qkv.bias[width:])
            total += inputs.T @ pairs.double()
    squares += (_RIDGE * len(states[0]) + 1e-6) * torch.eye(width + 1, dtype=torch.float64)
    memories: list[Any] = list(gate.memories)
    for memory, total in zip(memories, products, strict=True):
        solution = torch.linalg.solve(squares, total).float()
        memory.weight.copy_(solution[:-1].T)
        memory.bias.copy_(solution[-1])
