"""A tagger's folder back to a network: what training goes on from is what the product computes with."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="training needs torch")
for needed in ("onnx", "safetensors"):
    pytest.importorskip(needed)

from tests.models.make_tiny import TINY, drawn_tagger, write_encoder  # noqa: E402

from allonym.errors import DataError  # noqa: E402
from allonym.models.tagger import ENGLISH, TaggerModel  # noqa: E402
from allonym.models.tags import LABELS  # noqa: E402
from allonym.models.windows import cut_windows, tokenise_text  # noqa: E402
from allonym.train.export import read_tagger, write_tagger  # noqa: E402

pytestmark = pytest.mark.slow

TEXT = "Ann Lee works in London for Acme Ltd. She was born on 3 March 1980 in York."


def logits(folder: Path) -> tuple[object, object]:
    """Of the product and of the network that was read back."""
    model, used = read_tagger(folder, 0.0)[0].eval(), TaggerModel(folder)
    (window,) = cut_windows(tokenise_text(TEXT, used.pieces), used.pieces)
    with torch.no_grad():
        tags, parts = model(
            *(torch.tensor([list(x)]) for x in (window.pieces, window.shapes)), torch.tensor(window.heads)
        )
    return used.logits(window, every_word=True), (tags.numpy(), parts.numpy())


def test_float_weights_come_back_exactly(tmp_path):
    encoder = write_encoder(tmp_path / "encoder")
    model = drawn_tagger(encoder)
    write_tagger(model, LABELS, encoder / "vocab.txt", tmp_path / "made", {"name": "toy"}, int8=False)
    read, about = read_tagger(tmp_path / "made", 0.0)
    assert about["name"] == "toy"
    ours, theirs = model.state_dict(), read.state_dict()
    for name in ours:
        if "positions" in name:  # only as many as a window has are written
            assert torch.equal(ours[name][: len(theirs[name])], theirs[name])
        else:
            assert torch.allclose(ours[name], theirs[name], atol=1e-6), name
    used, network = logits(tmp_path / "made")
    for one, other in zip(used, network, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-3)


def test_the_shipped_tagger_says_the_same_in_torch():
    used, network = logits(ENGLISH)
    assert (used[0].argmax(axis=1) == network[0].argmax(axis=1)).all()
    assert np.abs(used[0] - network[0]).mean() < 0.3  # activations are rounded in use, not in torch


def test_written_again_the_weights_are_the_same_bytes(tmp_path):
    read, about = read_tagger(TINY, 0.0)
    write_tagger(read, LABELS, TINY / "vocab.txt", tmp_path / "again", {k: about[k] for k in ("name", "language")})
    again, _ = read_tagger(tmp_path / "again", 0.0)
    for name, value in read.state_dict().items():
        assert torch.allclose(value, again.state_dict()[name], atol=1e-6), name


@pytest.mark.parametrize("break_", ["tagger.onnx", "tagger.json", "words.npy", "labels"])
def test_what_is_no_tagger(tmp_path, break_):
    folder = tmp_path / "broken"
    shutil.copytree(TINY, folder)
    if break_ == "labels":
        about = json.loads((folder / "tagger.json").read_text())
        (folder / "tagger.json").write_text(json.dumps({**about, "labels": about["labels"][1:]}))
    else:
        (folder / break_).write_bytes(b"nothing of use")
    with pytest.raises(
        DataError, match=r"broken: (not a tagger that can be trained further|tagger\.onnx does not fit)"
    ):
        read_tagger(folder)
