"""A tiny GLiNER with random weights: what it says means nothing, but it must be what the library itself says."""

import sys
import types
from itertools import pairwise

import pytest

from allonym.detection.adapters import gliner as adapter
from allonym.document import Document
from allonym.errors import DataError, PolicyError

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore:.*:UserWarning"),
]
WORDS = ("ada", "brook", "came", "to", "quill", ".", "person", "city", "organization", "badge", "number")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    pytest.importorskip("torch", reason="torch is not installed")
    pytest.importorskip("gliner", reason="GLiNER is not installed")
    import torch
    from gliner.config import UniEncoderSpanConfig
    from gliner.model import UniEncoderSpanGLiNER
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    special = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
    vocabulary = {word: i for i, word in enumerate((*special, *WORDS))}
    core = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    core.pre_tokenizer = pre_tokenizers.Whitespace()
    core.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    names = dict(zip(("pad_token", "unk_token", "cls_token", "sep_token"), special, strict=True))
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=core, model_max_length=128, **names)
    tokenizer.add_tokens(["<<ENT>>", "<<SEP>>"], special_tokens=True)
    encoder = {
        "model_type": "bert",
        "vocab_size": len(tokenizer),
        "hidden_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 16,
        "max_position_embeddings": 128,
    }
    torch.manual_seed(3)
    config = UniEncoderSpanConfig(
        model_name="none",
        encoder_config=encoder,
        hidden_size=16,
        max_width=4,
        max_len=40,
        max_types=2,
        vocab_size=len(tokenizer),
        class_token_index=len(tokenizer) - 2,
        dropout=0.0,
    )
    folder = tmp_path_factory.mktemp("gliner")
    UniEncoderSpanGLiNER(config, tokenizer=tokenizer, backbone_from_pretrained=False).save_pretrained(folder)
    return folder


def narrow(policy, folder, *lines, labels='["PERSON", "CITY", "ORGANIZATION"]'):
    made = policy("gliner", f'model = "{folder}"', *lines)
    return made.with_(every=False, labels=tuple(labels.strip("[]").replace('"', "").split(", ")))


def test_what_the_library_finds_is_what_comes_out(folder, policy):
    one = narrow(policy, folder, "threshold = 0.4", labels='["ORGANIZATION", "CITY"]')
    text = "Ada Brook came to \U0001f600 Quill ."
    spans = adapter.build_detector(one)(Document("", text))
    model = adapter._load_model(str(folder), "cpu", False)
    ours = {"organization": "ORGANIZATION", "city": "CITY"}
    said = model.inference([text], ["organization", "city"], threshold=0.4)[0]
    assert said
    assert [(s.start, s.end, s.label) for s in spans] == sorted((r["start"], r["end"], ours[r["label"]]) for r in said)
    assert all(s.score >= 0.5 for s in spans)


def test_long_texts_are_read_to_their_end_and_many_are_each_for_itself(folder, policy):
    detect = adapter.build_detector(narrow(policy, folder, "threshold = 0.05"))
    long = "ada brook came to quill . " * 12
    documents = [Document("", text) for text in (long, "", "quill ada", " \ud800 ")]
    many = detect.many(documents)
    assert many == [detect(document) for document in documents]
    # With this threshold the tiny model marks nearly everything.
    marked = sorted({p for s in many[0] for p in range(s.start, s.end)})
    assert marked[0] < 30 and marked[-1] > len(long) - 30
    assert max(b - a for a, b in pairwise(marked)) < 60


def test_prompts_follow_the_policy(policy):
    one = policy("gliner", rest='[[labels]]\nname = "SHIP_NAME"\n')
    asked = adapter.map_prompts_to_labels(one)
    assert asked["person"] == "PERSON" and asked["ship name"] == "SHIP_NAME"
    assert "date" not in adapter.map_prompts_to_labels(one.with_(exclude=("DATE_TIME",)))
    own = policy("gliner", 'labels = { "badge number" = "EMPLOYEE_ID", person = "" }')
    assert adapter.map_prompts_to_labels(own)[
        "badge number"
    ] == "EMPLOYEE_ID" and "person" not in adapter.map_prompts_to_labels(own)
    with pytest.raises(PolicyError, match="no label that the policy looks for has a prompt"):
        adapter.map_prompts_to_labels(one.with_(every=False, labels=("UUID",)))


def test_a_model_that_is_not_there(policy):
    pytest.importorskip("gliner", reason="GLiNER is not installed")
    with pytest.raises(DataError, match=r"cannot load the model 'nobody/nothing'.*allow_download"):
        adapter.build_detector(policy("gliner", 'model = "nobody/nothing"'))


class Stand:
    """The calls that the adapter makes, as GLiNER's documentation shows them."""

    config = types.SimpleNamespace(max_len=8, max_types=2)

    def __init__(self):
        self.calls = []
        tokenizer = types.SimpleNamespace(model_max_length=10**30, tokenize=str.split)
        self.data_processor = types.SimpleNamespace(transformer_tokenizer=tokenizer, words_splitter=self.split)

    def split(self, text):
        at = 0
        for word in text.split():
            at = text.index(word, at)
            yield word, at, at + len(word)
            at += len(word)

    def eval(self):
        return self

    def inference(self, texts, labels, *, threshold, batch_size):
        self.calls.append((list(texts), list(labels), threshold, batch_size))
        return [
            [
                {"start": text.index("Ada"), "end": text.index("Ada") + 3, "label": label, "score": 0.75}
                for label in labels
                if label == "person" and "Ada" in text
            ]
            for text in texts
        ]


def test_how_the_model_is_asked(monkeypatch, policy):
    stand = Stand()
    module = types.ModuleType("gliner")
    loaded = []
    module.GLiNER = types.SimpleNamespace(from_pretrained=lambda *a, **k: loaded.append((a, k)) or stand)
    monkeypatch.setitem(sys.modules, "gliner", module)
    adapter._load_model.cache_clear()
    one = narrow(policy, "some/model", "threshold = 0.3", "batch_size = 4")
    spans = adapter.build_detector(one)(Document("", "word " * 20 + "Ada"))
    adapter._load_model.cache_clear()
    assert loaded == [(("some/model",), {"map_location": "cpu", "local_files_only": True})]
    assert [labels for _, labels, _, _ in stand.calls] == [["person", "organization"], ["city"]]
    assert {call[2:] for call in stand.calls} == {(0.3, 4)}
    assert all(len(text.split()) <= 8 for texts, *_ in stand.calls for text in texts)
    assert [(s.start, s.end, s.label) for s in spans] == [(100, 103, "PERSON")]
    assert spans[0].score == pytest.approx(0.5 + 0.5 * 0.45 / 0.7)
