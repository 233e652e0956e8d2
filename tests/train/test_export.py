"""Trained networks as ONNX: the same numbers as in torch, and close ones with weights of eight bits."""

from __future__ import annotations

import json
import platform
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="training needs torch")
onnx = pytest.importorskip("onnx", reason="writing models needs onnx")
pytest.importorskip("safetensors", reason="reading encoders needs safetensors")

from tests.models.make_tiny import HEADS, LAYERS, POSITIONS, TINY, VOCABULARY, WIDTH, drawn_tagger, write_encoder  # noqa: E402

from allonym.models.runtime import Embeddings, open_session  # noqa: E402
from allonym.models.tagger import TaggerModel  # noqa: E402
from allonym.models.tags import LABELS, PARTS, list_tag_names  # noqa: E402
from allonym.models.windows import LENGTH, Window, cut_windows, tokenise_text  # noqa: E402
from allonym.models.words import WordPiece  # noqa: E402
from allonym.train.export import (  # noqa: E402
    make_encoder_graph,
    make_tagger_graph,
    read_tagger,
    write_tagger,
    write_word_embeddings,
)
from allonym.train.network import Encoder  # noqa: E402

pytestmark = pytest.mark.slow

TEXT = "Ann Lee works at the Acme Bank in London. Mr. Smith-Jones, 45, is from New York.\n" * 12


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_encoder(tmp_path_factory.mktemp("encoder"))


@pytest.fixture(scope="module")
def model(encoder: Path) -> Any:
    return drawn_tagger(encoder)


def has_exact_sums() -> bool:
    """Whether the processor sums products of 8 bits in 32 (VNNI, or ARM); others overflow in 16."""
    flags = Path("/proc/cpuinfo")
    return platform.machine() == "aarch64" or (flags.exists() and "vnni" in flags.read_text(encoding="utf-8"))


def cut(text: str) -> list[Window]:
    pieces = WordPiece(VOCABULARY)
    return cut_windows(tokenise_text(text, pieces), pieces)


def in_torch(model: Any, window: Window) -> tuple[Any, Any]:
    with torch.no_grad():
        tags, parts = model(torch.tensor([window.pieces]), torch.tensor([window.shapes]), torch.tensor(window.heads))
    return tags.numpy(), parts.numpy()


def in_onnx(graph: Any, model: Any, window: Window, folder: Path) -> tuple[Any, Any]:
    file = folder / "graph.onnx"
    onnx.save(graph, file)
    feed = {
        "x": model.encoder.words.weight.detach().numpy()[None, list(window.pieces)],
        "shapes": np.array([window.shapes], np.int64),
        "heads": np.array(window.heads, np.int64),
    }
    tags, parts = open_session(file).run(None, feed)
    return tags, parts


def test_float_graph_equals_torch(model: Any, tmp_path: Path) -> None:
    found = cut(TEXT)
    assert len(found) > 1 and max(len(w.pieces) for w in found) > 100
    for window in [*found, *cut("Ann")]:
        wanted = in_torch(model, window)
        for one, other in zip(
            in_onnx(make_tagger_graph(model, int8=False), model, window, tmp_path), wanted, strict=True
        ):
            assert one.shape == other.shape
            assert np.abs(one - other).max() < 1e-4


@pytest.mark.parametrize("wide", [False, True])
def test_eight_bits_are_close_to_torch(model: Any, tmp_path: Path, wide: bool) -> None:
    graph = make_tagger_graph(model, wide=wide)
    window = cut(TEXT)[0]
    (tags, _), (wanted, _) = in_onnx(graph, model, window, tmp_path), in_torch(model, window)
    assert np.corrcoef(tags.ravel(), wanted.ravel())[0, 1] > 0.99
    most = max(
        int(np.abs(onnx.numpy_helper.to_array(w).astype(int)).max())
        for w in graph.graph.initializer
        if w.data_type == 3
    )
    assert most == (127 if wide else 63)  # seven bits, so that no processor's sums of products overflow


@pytest.mark.skipif(not has_exact_sums(), reason="sums of wide 8-bit products overflow on this processor")
def test_wide_weights_are_closer(model: Any, tmp_path: Path) -> None:
    window = cut(TEXT)[0]
    wanted = in_torch(model, window)[0]
    narrow, wide = (
        np.abs(in_onnx(make_tagger_graph(model, wide=w), model, window, tmp_path)[0] - wanted).mean()
        for w in (False, True)
    )
    assert 0 < wide < narrow


def test_a_longest_window_fits(model: Any, tmp_path: Path) -> None:
    n = LENGTH + 2
    window = Window(0, LENGTH, 0, LENGTH, (2, *[40] * LENGTH, 3), (0,) * n, tuple(range(1, n - 1)))
    assert in_onnx(make_tagger_graph(model), model, window, tmp_path)[0].shape == (LENGTH, len(list_tag_names(LABELS)))


def test_words_come_back_as_they_were(model: Any, encoder: Path, tmp_path: Path) -> None:
    write_word_embeddings(model.encoder, tmp_path)
    shutil.copyfile(encoder / "vocab.txt", tmp_path / "vocab.txt")
    back = Embeddings(tmp_path)(range(len(VOCABULARY)))
    assert back.shape == (1, len(VOCABULARY), WIDTH) and back.dtype == np.float32
    assert np.abs(back[0] - model.encoder.words.weight.detach().numpy()).max() < 1e-6


def test_a_written_folder_is_a_tagger(model: Any, encoder: Path, tmp_path: Path) -> None:
    write_tagger(
        model, LABELS, encoder / "vocab.txt", tmp_path / "m", {"language": "en", "temperature": 2.0}, int8=False
    )
    made = TaggerModel(tmp_path / "m")
    assert made.labels == LABELS and made.parts == PARTS
    said = made(TEXT)
    (first, *_) = cut(TEXT)
    logits = torch.tensor(in_torch(model, first)[0])[: first.keep_to] / 2
    assert np.abs(said.tags[: first.keep_to] - torch.log_softmax(logits, 1).numpy()).max() < 1e-3


@pytest.mark.parametrize(("by_chance", "kept"), [(False, 0.0), (True, 0.3)])
def test_small_changes_survive_rounding_by_chance(tmp_path: Path, by_chance: bool, kept: float) -> None:
    before, moved = read_tagger(TINY)[0], read_tagger(TINY)[0]
    with torch.no_grad():
        old, new = (each.encoder.layers[0].up.weight for each in (before, moved))
        largest = old.abs().amax(dim=1, keepdim=True)
        inner = old.abs() < 0.95 * largest
        new += 0.3 * largest / 63 * inner
    write_tagger(moved, LABELS, TINY / "vocab.txt", tmp_path, {}, by_chance=by_chance)
    after = read_tagger(tmp_path)[0]
    steps = ((after.encoder.layers[0].up.weight - old) / largest * 63)[inner]
    assert abs(steps - steps.round()).max() < 1e-3
    assert float(steps.mean().detach()) == pytest.approx(kept, abs=0.1)
    torch.testing.assert_close(after.encoder.layers[1].up.weight, before.encoder.layers[1].up.weight)


def test_the_tiny_model_beside_the_tests_is_the_one_that_its_script_makes(tmp_path: Path) -> None:
    from tests.models.make_tiny import write

    write(tmp_path)
    assert json.loads((tmp_path / "tagger.json").read_text()) == json.loads((TINY / "tagger.json").read_text())
    one, other = (TaggerModel(folder)(TEXT) for folder in (tmp_path, TINY))
    assert np.abs(one.tags - other.tags).max() < 1e-3


def test_sentence_encoder_equals_torch(encoder: Path, tmp_path: Path) -> None:
    plain = Encoder.read(encoder, dropout=0.0, shapes=False).eval()
    assert (len(plain.layers), plain.layers[0].heads) == (LAYERS, HEADS)
    onnx.save(make_encoder_graph(plain, positions=POSITIONS, int8=False), tmp_path / "e.onnx")
    pieces = cut(TEXT)[0].pieces
    (mean,) = open_session(tmp_path / "e.onnx").run(None, {"x": plain.words.weight.numpy()[None, list(pieces)]})
    with torch.no_grad():
        wanted = plain(torch.tensor([pieces]), None).mean(1).numpy()
    assert np.abs(mean - wanted).max() < 1e-4


def test_the_encoder_is_a_bert(encoder: Path) -> None:
    transformers = pytest.importorskip("transformers", reason="compares with the transformers package")
    config = json.loads((encoder / "config.json").read_text())
    bert = transformers.BertModel(transformers.BertConfig(**config), add_pooling_layer=False).eval()
    from safetensors.torch import load_file

    weights = load_file(encoder / "model.safetensors")
    plain = Encoder.read(encoder, dropout=0.0, shapes=False).eval()
    weights["embeddings.word_embeddings.weight"] = plain.words.weight.detach()
    bert.load_state_dict(weights, strict=False)
    pieces = torch.tensor([cut(TEXT)[0].pieces])
    with torch.no_grad():
        assert (bert(pieces).last_hidden_state - plain(pieces, None)).abs().max() < 1e-4
