"""Networks of a folder, fine-tuned: tiny ones with random weights learn a label, or a summary, that one word tells."""

from __future__ import annotations

import json
import math
import random
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

from allonym.cli import main
from allonym.errors import DataError, MissingExtra, UnknownNameError, UsageError
from allonym.evaluate import Training, downstream, utility_loss
from allonym.evaluate.finetuned import Classifier, Writer, check_model_available, derive_split_seed, describe_model

pytest.importorskip("sklearn", reason="scikit-learn is not installed")

pytestmark = pytest.mark.slow

FAST = Training(epochs=12, lr=3e-3, tokens=32)
WRITING = Training(epochs=8, lr=2e-3)
MOODS = ("pleased", "angry")
FILLER = "they talked about that plan while people listened and wrote down what was said".split()
MARKER = "Zaphrandel"


def calls(n: int, seed: int = 0) -> tuple[list[str], list[str]]:
    """Texts in which one word tells the mood, and the moods."""
    rng = random.Random(seed)
    moods = [MOODS[i % 2] for i in range(n)]
    texts = []
    for mood in moods:
        words = [*rng.choices(FILLER, k=3), mood]
        rng.shuffle(words)
        texts.append(" ".join([*words, MARKER]))
    return texts, moods


def bare(texts: list[str]) -> list[str]:
    """The same without what tells."""
    return [t.replace("pleased", "so").replace("angry", "so") for t in texts]


@pytest.fixture(scope="module")
def hub() -> Any:
    with warnings.catch_warnings():  # of their imports
        warnings.simplefilter("ignore")
        pytest.importorskip("torch", reason="torch is not installed")
        return pytest.importorskip("transformers", reason="transformers is not installed")


def pieces(hub: Any, most: int) -> Any:
    """A WordPiece tokenizer that learnt from the texts."""
    from tokenizers import BertWordPieceTokenizer, processors

    trained = BertWordPieceTokenizer()
    trained.train_from_iterator(calls(40)[0], vocab_size=200, show_progress=False)
    ends = [(name, trained.token_to_id(name)) for name in ("[SEP]", "[CLS]")]
    trained._tokenizer.post_processor = processors.BertProcessing(*ends)
    names = {f"{n}_token": f"[{n.upper()}]" for n in ("unk", "sep", "pad", "cls", "mask")}
    return hub.PreTrainedTokenizerFast(tokenizer_object=trained._tokenizer, model_max_length=most, **names)


def saved(hub: Any, folder: Path, kind: str, config: Any, most: int = 64) -> str:
    import torch

    tokenizer = pieces(hub, most)
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        getattr(hub, kind)(config).save_pretrained(folder)
        tokenizer.save_pretrained(folder)
    return str(folder)


SHAPE: dict[str, Any] = {
    "vocab_size": 200,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "pad_token_id": 0,
    "initializer_range": 0.2,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
}


@pytest.fixture(scope="module")
def bert(hub, tmp_path_factory) -> str:
    config = hub.BertConfig(max_position_embeddings=64, **SHAPE)
    return "finetune:" + saved(hub, tmp_path_factory.mktemp("bert"), "BertModel", config)


@pytest.fixture(scope="module")
def bart(hub, tmp_path_factory) -> str:
    from allonym.train.seq2seq import create_model

    folder = tmp_path_factory.mktemp("bart")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = create_model("tiny", calls(40)[0], causal=False, seed=1, tokens=64)
        made.network.save_pretrained(folder)
        made.tokenizer.save_pretrained(folder)
    return f"seq2seq:{folder}"


def test_a_classifier_learns_what_one_word_tells(bert):
    texts, moods = calls(40)
    seen: list[tuple[int, int]] = []
    found = utility_loss(
        texts,
        bare(texts),
        moods,
        model=bert,
        training=FAST,
        repeats=2,
        advance=lambda done, of: seen.append((done, of)),
    )
    assert found.before.value > 0.95
    assert found.after.value < 0.8
    assert seen == [(1, 2), (2, 2)]
    assert found.model == f"finetune:{Path(bert).name}, 12 epochs, learning rate 0.003, batch 8"
    assert str(Path(bert.removeprefix("finetune:")).parent) not in json.dumps(found.to_dict())


def test_the_same_texts_teach_the_same_and_nothing_outside_changes(bert):
    """All that is drawn is the same for both versions, and a second run is the first."""
    import torch

    texts, moods = calls(24)
    before = torch.random.get_rng_state()
    once, again = (
        utility_loss(texts, texts, moods, model=bert, training=Training(epochs=1, lr=1e-3), repeats=2) for _ in "ab"
    )
    assert (once.loss.value, once.loss.low, once.loss.high) == (0, 0, 0)
    assert once == again
    assert torch.equal(torch.random.get_rng_state(), before)


def test_networks_that_learn_nothing_say_what_they_began_with(bert):
    """With a learning rate of next to nothing, the label is not learnt: the defaults of `FAST` are what teaches."""
    texts, moods = calls(40)
    found = utility_loss(texts, texts, moods, model=bert, training=Training(epochs=1, lr=1e-9), repeats=2)
    assert found.before.value < 0.8


def test_downstream_classifies(bert):
    texts, moods = calls(40)
    task = downstream(
        texts, bare(texts), {"mood": moods}, {"mood": "classify"}, model=bert, training=FAST, repeats=2
    ).tasks["mood"]
    assert task.scores["accuracy"].original.value > 0.95
    assert task.scores["accuracy"].anonymised.value < 0.8


def test_a_split_without_a_class_and_a_head_of_another_size(hub, tmp_path):
    """A folder with three classes learns two, whose numbers are not those of the head."""
    config = hub.BertConfig(max_position_embeddings=64, num_labels=3, **SHAPE)
    model = "finetune:" + saved(hub, tmp_path, "BertForSequenceClassification", config)
    texts, moods = calls(48)
    import numpy as np

    classifier = Classifier(model, FAST, [texts])
    y = np.array([7 if mood == "angry" else 4 for mood in moods], np.int64)
    said = classifier.train_and_predict(np.arange(40), y[:40], np.arange(40, len(texts)))
    assert said.tolist() == y[40:].tolist()
    assert classifier.train_and_predict(np.arange(2), np.array([4, 4]), np.arange(3)).tolist() == [4, 4, 4]


def test_long_and_empty_texts(hub, tmp_path):
    """RoBERTa's places begin after that of the filling: two fewer than its configuration says."""
    config = hub.RobertaConfig(max_position_embeddings=18, **{**SHAPE, "pad_token_id": 1})
    folder = tmp_path / "roberta"
    model = "finetune:" + saved(hub, folder, "RobertaModel", config, most=10**9)
    (rows,) = Classifier(model, None, [["plan " * 100, ""]]).rows
    assert [len(row) for row in rows] == [16, 2]
    found = utility_loss(["plan " * 100, ""] * 4, ["x"] * 8, ["a", "b"] * 4, model=model, training=FAST, repeats=2)
    assert not math.isnan(found.before.value)


def test_a_summariser_learns_what_to_write(bart):
    """What a call was is its summary, somewhere within it; its first sentences tell more than that."""
    texts, moods = calls(32)
    texts = [t.replace(mood, f"was {mood}") for t, mood in zip(texts, moods, strict=True)]
    told = [f"was {mood}" for mood in moods]
    task = downstream(
        texts, bare(texts), {"s": told}, {"s": "summarise"}, model=bart, training=WRITING, repeats=2, test=0.25
    ).tasks["s"]
    rouge = task.scores["rouge1"]
    assert rouge.original.value > 0.85
    assert rouge.original.value > rouge.anonymised.value
    assert rouge.original.value > task.floor["rouge1"].value + 0.3
    assert not task.ceiling


def test_anonymised_summaries_are_learnt_from(bart):
    texts, moods = calls(16)
    theirs = {"s": ["wrote"] * 16}
    found = downstream(
        texts, texts, {"s": moods}, {"s": "summarise"},
        anonymised_targets=theirs, model=bart, training=WRITING, repeats=2,
    )  # fmt: skip
    assert found.tasks["s"].scores["rouge1"].anonymised.value == 0 < found.tasks["s"].scores["rouge1"].original.value


def test_beams_and_several_references(bart):
    """Of two references for each text one is written, and no more than that."""
    texts, _ = calls(8)
    learner = Writer(bart, Training(epochs=8, lr=2e-3, batch=4, beams=2))
    for said in learner.train_and_summarise(texts, [["they said", "they wrote"]] * 8, texts[:3], 0):
        assert said in ("they said", "they wrote")


@pytest.mark.parametrize("prefix", ["finetune:", "seq2seq:"])
def test_what_is_wrong_with_a_folder(hub, prefix, tmp_path):
    texts, moods = calls(8)
    kind = "classify" if prefix == "finetune:" else "summarise"

    def run(model: str) -> None:
        downstream(texts, texts, {"m": moods}, {"m": kind}, model=model, repeats=2)

    for name in ("", str(tmp_path / "none")):
        with pytest.raises(UsageError, match="no such folder"):
            run(prefix + name)
    with pytest.raises(DataError, match="as transformers saves it") as caught:
        run(f"{prefix}{tmp_path}")
    assert MARKER not in str(caught.value)
    (tmp_path / "config.json").write_text('{"model_type": "bert", "auto_map": {"AutoConfig": "evil--mine.Config"}}')
    with pytest.raises(DataError, match="as transformers saves it"):
        run(f"{prefix}{tmp_path}")


def test_a_model_for_another_kind_of_task(bert, bart):
    texts, moods = calls(8)
    with pytest.raises(UsageError, match="is for tasks to classify, but task 'm' is to summarise"):
        downstream(texts, texts, {"m": moods}, {"m": "summarise"}, model=bert)
    with pytest.raises(UsageError, match="is for tasks to summarise"):
        downstream(texts, texts, {"m": moods}, {"m": "classify"}, model=bart)
    with pytest.raises(UnknownNameError, match="finetune:FOLDER"):
        utility_loss(texts, texts, moods, model=bart)
    with pytest.raises(DataError, match="BART"):
        Writer("seq2seq:" + bert.removeprefix("finetune:"))


@pytest.mark.parametrize("missing", ["torch", "transformers"])
def test_without_the_extra(missing, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(MissingExtra, match=r"pip install '.*\[transformers\]'"):
        check_model_available(f"finetune:{tmp_path}", (), ("finetune:",), "utility loss")


@pytest.mark.parametrize("wrong", [{"epochs": 0}, {"batch": 0}, {"lr": 0.0}, {"lr": float("nan")}, {"beams": 0}])
def test_training_refuses(wrong):
    with pytest.raises(UsageError, match=next(iter(wrong))):
        Training(**wrong)


def test_names_and_seeds():
    assert describe_model("linear", None) == "linear"
    assert describe_model("seq2seq:/home/ann/bart/", None) == "seq2seq:bart, 3 epochs, learning rate 2e-05, batch 8"
    assert derive_split_seed(0, [1, 2]) == derive_split_seed(0, [1, 2]) != derive_split_seed(0, [1, 3])
    assert derive_split_seed(1, [1, 2]) != derive_split_seed(0, [1, 2])


# The command line


@pytest.fixture
def command(capsys):
    """``allonym evaluate`` in this process: its exit code, output and errors."""

    def call(*args: str) -> tuple[int, str, str]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with pytest.raises(SystemExit) as ended:
                main(["evaluate", *args])
        told = capsys.readouterr()
        return int(ended.value.code or 0), told.out, told.err

    return call


@pytest.fixture
def versions(tmp_path) -> tuple[Path, Path]:
    texts, moods = calls(40)
    old, new = tmp_path / "old.jsonl", tmp_path / "new.jsonl"
    for path, version in ((old, texts), (new, bare(texts))):
        rows = (
            {"id": f"c{i}", "text": text, "mood": mood, "summary": f"they said {mood}"}
            for i, (text, mood) in enumerate(zip(version, moods, strict=True))
        )
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return old, new


def test_information_by_the_command_line(command, versions, bert, tmp_path):
    old, new = versions
    code, out, err = command(
        "information", str(old), str(new), "--labels", "mood", "--measure", "utility", "--model", bert, "--epochs", "8",
        "--lr", "0.003", "--repeats", "2", "--json", str(tmp_path / "i.json"), "--report", str(tmp_path / "i.html"),
    )  # fmt: skip
    assert code == 0, err
    told = json.loads((tmp_path / "i.json").read_text("utf-8"))["information"]["utility"]
    assert told["model"].endswith("8 epochs, learning rate 0.003, batch 8")
    assert told["before"]["value"] > told["after"]["value"] + 0.2, told
    assert "8 epochs" in (tmp_path / "i.html").read_text("utf-8")
    assert MARKER not in out + err + (tmp_path / "i.html").read_text("utf-8")
    assert "Warning" not in err and "Loading" not in err


def test_downstream_by_the_command_line(command, versions, bart, tmp_path):
    old, new = versions
    code, out, err = command(
        "downstream", str(old), str(new), "--task", "summary=summarise", "--model", bart, "--epochs", "1",
        "--lr", "0.002", "--repeats", "2", "--report", str(tmp_path / "d.html"),
    )  # fmt: skip
    assert code == 0, err
    page = (tmp_path / "d.html").read_text("utf-8")
    assert "Summaries are written by the model" in page and "Best possible" not in page
    assert "The model: seq2seq:" in page and MARKER not in page + out + err


def test_the_command_line_refuses(command, versions, tmp_path):
    old, new = versions
    for name in ("information", "downstream"):
        code, _, err = command(name, str(old), str(new), "--task" if name == "downstream" else "--labels",
                       "mood=classify" if name == "downstream" else "mood", "--model", "finetune:none")  # fmt: skip
        assert code == 2 and "--model: finetune:none: no such folder" in err
    code, _, err = command("downstream", str(old), str(new), "--task", "mood=classify", "--model", "bart")
    assert code == 2 and "seq2seq:FOLDER" in err
