"""A tagger that knows a few words, whose answers are set by hand."""

import pytest

from allonym.detection.adapters import recognizers as adapter
from allonym.document import Document
from allonym.errors import DataError, UnknownNameError

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore:.*:UserWarning"),
]
TAGS = {"Ada": "B-PER", "Brook": "E-PER", "Quill": "S-ORG", "came": "O", "to": "O", ".": "O"}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    pytest.importorskip("flair", reason="Flair is not installed")
    import torch
    from flair.data import Dictionary
    from flair.embeddings import OneHotEmbeddings
    from flair.models import SequenceTagger

    words = Dictionary()
    for word in TAGS:
        words.add_item(word)
    tags = Dictionary(add_unk=False)
    tags.span_labels = True
    tags.add_item("PER")
    tags.add_item("ORG")
    embeddings = OneHotEmbeddings(words, embedding_length=len(words))
    tagger = SequenceTagger(
        embeddings, tags, "ner", use_rnn=False, use_crf=False, reproject_embeddings=False, tag_format="BIOES"
    )
    with torch.no_grad():
        embeddings.embedding_layer.weight.copy_(torch.eye(len(words)))
        tagger.linear.weight.zero_()
        tagger.linear.bias.zero_()
        names = tagger.label_dictionary.get_items()
        tagger.linear.weight[names.index("O"), 0] = 9
        for word, tag in TAGS.items():
            tagger.linear.weight[names.index(tag), words.get_idx_for_item(word)] = 9
    path = tmp_path_factory.mktemp("flair") / "tiny.pt"
    tagger.save(path)
    return f'model = "{path}"'


def found(policy, text):
    return [(text[s.start : s.end], s.label) for s in adapter.build_flair_detector(policy)(Document("", text))]


def test_names_in_sentences(model, policy):
    one = policy("flair", model)
    text = "\U0001f600 Ada Brook came to Quill. \n\n She came to Quill. Ada Brook"
    names = [("Ada Brook", "PERSON"), ("Quill", "ORGANIZATION"), ("Quill", "ORGANIZATION"), ("Ada Brook", "PERSON")]
    assert found(one, text) == names
    (span, *_) = adapter.build_flair_detector(one)(Document("", text))
    assert (span.source, span.score > 0.9) == ("flair:model", True)


def test_many_and_long(model, policy, monkeypatch):
    monkeypatch.setattr(adapter, "FLAIR_WORDS", 20)
    monkeypatch.setattr(adapter, "OVERLAP", 4)
    detect = adapter.build_flair_detector(policy("flair", model))
    long = "came to " * 100 + "Ada Brook came to Quill"
    documents = [Document("", text) for text in (long, "", " \0 ", "Ada Brook came. Quill came.")]
    assert detect.many(documents) == [detect(document) for document in documents]
    assert [len(spans) for spans in detect.many(documents)] == [2, 0, 0, 2]


def test_labels_are_those_of_the_model(model, policy):
    with pytest.raises(UnknownNameError, match="unknown label of the model 'PRE'; did you mean: PER"):
        adapter.build_flair_detector(policy("flair", model, 'labels = { PRE = "PERSON" }'))


def test_a_model_that_is_not_there(policy):
    pytest.importorskip("flair", reason="Flair is not installed")
    with pytest.raises(DataError, match="no file or folder ner-english"):
        adapter.build_flair_detector(policy("flair", 'model = "ner-english"'))
