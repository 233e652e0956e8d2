"""The door to the backends: options from the command line's strings, and where an encoder is."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from allonym.errors import MissingExtra, UnknownNameError, UsageError
from allonym.train.backends import find_encoder_folder, get_options_type, make_options


def test_options_take_the_kind_of_their_default():
    made = make_options("spacy", {"lr": "1e-3", "epochs": "7", "language": "pl", "width": 32.0})
    assert (made.lr, made.epochs, made.language, made.width) == (0.001, 7, "pl", 32)
    assert make_options("mitie", {"beta": 1}).beta == 1.0


@pytest.mark.parametrize(
    ("backend", "given", "error", "told"),
    [
        ("spacy", {"epoch": 1}, UnknownNameError, "did you mean: epochs"),
        ("spacy", {"epochs": "1.5"}, UsageError, "a whole number is required"),
        ("spacy", {"epochs": 1.5}, UsageError, "a whole number is required"),
        ("spacy", {"lr": "fast"}, UsageError, "a number is required"),
        ("spaci", {}, UnknownNameError, "did you mean: spacy"),
    ],
)
def test_options_that_are_wrong(backend, given, error, told):
    with pytest.raises(error, match=told):
        make_options(backend, given)


def test_truth_values():
    pytest.importorskip("torch")
    assert make_options("tagger", {"bf16": "False"}).bf16 is False
    with pytest.raises(UsageError, match="true or false is required"):
        make_options("tagger", {"bf16": "no"})


def test_the_tagger_without_torch(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "allonym.train.fit", raising=False)
    with pytest.raises(MissingExtra, match=r"\[train\]"):
        get_options_type("tagger")


def test_an_encoder_is_a_folder_or_a_name_on_the_hub(tmp_path, monkeypatch):
    assert find_encoder_folder(str(tmp_path)) == tmp_path
    asked = []

    def snapshot_download(name, *, allow_patterns):
        asked.append((name, allow_patterns))
        if name == "no/such":
            raise OSError("not found")
        return str(tmp_path)

    monkeypatch.setitem(sys.modules, "huggingface_hub", SimpleNamespace(snapshot_download=snapshot_download))
    assert find_encoder_folder("owner/model") == tmp_path
    assert asked == [("owner/model", ["config.json", "model.safetensors", "vocab.txt"])]
    with pytest.raises(UsageError, match=r"cannot be downloaded from the hub \(OSError\)"):
        find_encoder_folder("no/such")
    for name in ("", "model", "/no/such", "a/b/c", "../x/y"):
        with pytest.raises(UsageError):
            find_encoder_folder(name)
    assert len(asked) == 2
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(MissingExtra, match=r"\[train\]"):
        find_encoder_folder("owner/model")
