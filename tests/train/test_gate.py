"""The gate: words that surely are no entities stop early, the others keep their tags, and nothing else decides."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="training needs torch")
onnx = pytest.importorskip("onnx", reason="writing models needs onnx")

from tests.models.make_tiny import TINY  # noqa: E402

from allonym.errors import DataError  # noqa: E402
from allonym.models.pos import parts_of_speech  # noqa: E402
from allonym.models.tagger import TaggerModel  # noqa: E402
from allonym.models.windows import Window, cut_windows, tokenise_text  # noqa: E402
from allonym.models.words import WordPiece  # noqa: E402
from allonym.train.build import add_gate  # noqa: E402
from allonym.train.corpus import generate_synthetic_examples  # noqa: E402
from allonym.train.export import make_tagger_graph, read_tagger  # noqa: E402
from allonym.train.gate import fit_gate  # noqa: E402
from allonym.train.network import Gate, Tagger  # noqa: E402

pytestmark = pytest.mark.slow

TEXT = "Ann Lee works at the Acme Bank in London. Mr. Smith-Jones, 45, is from New York.\n" * 12
SHORT = "Is it new?"


def cut(text: str) -> list[Window]:
    pieces = WordPiece.read(TINY / "vocab.txt")
    return cut_windows(tokenise_text(text, pieces), pieces)


def read_tiny() -> Tagger:
    return read_tagger(TINY, 0.0)[0].eval()


def make_gate(model: Tagger, least: float = 0.05, lost: float = 0.2) -> Gate:
    return fit_gate(model, [*cut(TEXT), *cut(SHORT)] * 3, layer=1, temperature=1.0, least=least, lost=lost)


def write(folder: Path, model: Tagger, gate: Gate | None, *, int8: bool = True) -> TaggerModel:
    shutil.copytree(TINY, folder)
    onnx.save(make_tagger_graph(model, int8=int8, gate=gate), folder / "tagger.onnx")
    return TaggerModel(folder)


def compute_in_torch(model: Tagger, gate: Gate, window: Window) -> Any:
    """Logits of tags with the gate, spelt out: piece by piece, over all pieces, with masks."""
    with torch.no_grad():
        x = model.encoder.embed(torch.tensor([window.pieces]), torch.tensor([window.shapes]))
        for block in model.encoder.layers[: gate.layer]:
            x = block(x, None)
        passes = gate(x[0, list(window.heads)]) >= gate.least
        awake = [True] + [False] * (len(window.pieces) - 1)
        for word, head in enumerate(window.heads):
            end = window.heads[word + 1] if word + 1 < len(window.heads) else len(window.pieces)
            awake[head:end] = [bool(passes[word])] * (end - head)
        mask, width, at_gate = torch.tensor(awake), x.shape[2], x
        for block, memory in zip(model.encoder.layers[gate.layer :], gate.memories, strict=True):
            pairs = torch.where(mask[None, :, None], block.qkv(x)[..., width:], memory(at_gate))
            q, k, v = (
                some.view(1, -1, block.heads, width // block.heads).transpose(1, 2)
                for some in (block.qkv(x)[..., :width], *pairs.split(width, 2))
            )
            weights = torch.softmax(q @ k.transpose(2, 3) * (width // block.heads) ** -0.5, -1)
            mixed = (weights @ v).transpose(1, 2).reshape(x.shape)
            x = block.norm1(x + block.out(mixed))
            x = block.norm2(x + block.down(torch.nn.functional.gelu(block.up(x))))
        tags = model.tags(x[0, list(window.heads)])
        outside = torch.zeros_like(tags)
        outside[:, 0] = 20
        return torch.where(passes[:, None], tags, outside).numpy(), passes.numpy()


@pytest.mark.parametrize("lost", [0.0, 0.1, 0.5, 0.9])
def test_the_graph_computes_what_is_spelt_out(tmp_path: Path, lost: float) -> None:
    model = read_tiny()
    gate = make_gate(model, lost=lost)
    made = write(tmp_path / "m", model, gate, int8=False)
    stopped = 0
    for window in [*cut(TEXT), *cut(SHORT), *cut("Ann")]:
        wanted, passes = compute_in_torch(model, gate, window)
        assert np.abs(made.logits(window)[0] - wanted).max() < 2e-3
        stopped += (~passes).sum()
    assert stopped or not lost


def test_a_gate_that_stops_all_or_none(tmp_path: Path) -> None:
    model = read_tiny()
    gate = make_gate(model)
    plain = write(tmp_path / "plain", model, None)(TEXT)
    for least, chance in ((float("inf"), 1.0), (float("-inf"), None)):
        gate.least = least
        tags = write(tmp_path / str(least), model, gate)(TEXT).tags
        if chance is None:
            assert (tags == plain.tags).all()
        else:
            assert np.exp(tags[:, 0]).min() > 0.9999


def test_parts_of_speech_pass_every_word(tmp_path: Path) -> None:
    model = read_tiny()
    gate = make_gate(model)
    gate.least = float("inf")
    made, plain = write(tmp_path / "m", model, gate), write(tmp_path / "plain", model, None)
    assert parts_of_speech(TEXT, made) == parts_of_speech(TEXT, plain)
    assert (made(TEXT, every_word=True).tags == plain(TEXT).tags).all()
    assert (made(TEXT).tags != plain(TEXT).tags).any()  # one does not remember what the other said


def test_neither_company_nor_threads_matter(tmp_path: Path) -> None:
    model = read_tiny()
    write(tmp_path / "m", model, make_gate(model, lost=0.3))
    one, four = TaggerModel(tmp_path / "m"), TaggerModel(tmp_path / "m", threads=4)
    alone = one(TEXT).tags
    four(SHORT)
    assert (four(TEXT).tags == alone).all() and (one(TEXT + SHORT).tags[: len(alone) - 130] == alone[:-130]).all()


def test_more_may_be_lost_more_is_stopped() -> None:
    model = read_tiny()
    assert make_gate(model, lost=0.0).least <= make_gate(model, lost=0.3).least


def test_a_gated_folder_can_be_trained_further(tmp_path: Path) -> None:
    model = read_tiny()
    write(tmp_path / "m", model, make_gate(model))
    again = read_tagger(tmp_path / "m", 0.0)[0].state_dict()
    assert all(torch.allclose(value, again[name], atol=1e-6) for name, value in model.state_dict().items())


def test_a_folder_gets_a_gate_from_examples(tmp_path: Path) -> None:
    shutil.copytree(TINY, tmp_path / "m")
    add_gate(tmp_path / "m", list(generate_synthetic_examples(60, 3)), layer=1)
    model, text = TaggerModel(tmp_path / "m"), TEXT + SHORT
    plain = TaggerModel(TINY)(text).tags
    stopped = model(text).tags[:, 0] > -1e-6
    assert np.abs(model(text, every_word=True).tags - plain).max() < 1e-2
    assert (1 - np.exp(plain[stopped, 0]) < 0.5).all()  # none that is likely to be an entity


@pytest.mark.parametrize(("least", "layer"), [(1.1, 1), (0.05, 2)])
def test_no_gate_without_entities_or_without_a_layer_above(least: float, layer: int) -> None:
    with pytest.raises(DataError, match="no gate"):
        fit_gate(read_tiny(), cut(TEXT), layer=layer, temperature=1.0, least=least)
