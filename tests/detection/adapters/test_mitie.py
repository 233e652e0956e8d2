import pytest
from tests.train.mitie_features import write_features

from allonym.detection.adapters import recognizers as adapter
from allonym.document import Document
from allonym.errors import DataError, UnknownNameError

pytestmark = pytest.mark.slow

TRAIN = ["Ada Brook came home .", "Cyd Dale came home .", "Eve Farrow came home .", "they sold Quill today ."] * 2
NAMES = {"Ada": (0, 2, "PERSON"), "Cyd": (0, 2, "PERSON"), "Eve": (0, 2, "PERSON"), "they": (2, 3, "ORG")}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """The file of a tiny extractor, trained here."""
    mitie = pytest.importorskip("mitie", reason="MITIE is not installed")
    folder = tmp_path_factory.mktemp("mitie")
    trainer = mitie.ner_trainer(str(write_features(folder / "features.dat", TRAIN)))
    trainer.num_threads = 1
    for text in TRAIN:
        words = text.split()
        one = mitie.ner_training_instance(words)
        first, last, label = NAMES[words[0]]
        one.add_entity(range(first, last), label)
        trainer.add(one)
    trainer.train().save_to_disk(str(folder / "ner_model.dat"))
    return folder / "ner_model.dat"


def test_names_with_offsets_in_code_points_and_margins_as_probabilities(model, policy):
    detect = adapter.build_mitie_detector(policy("mitie", f'model = "{model}"'))
    text = "\U0001f600 é. Ada Brook came home . They\0sold"
    (span,) = [s for s in detect(Document("", text)) if s.label == "PERSON"]
    assert (text[span.start : span.end], span.source) == ("Ada Brook", "mitie:model")
    assert 0.5 <= span.score < 1


def test_a_folder_splits_words_as_in_training(model, policy):
    text = "Ada Brook came home."
    for where in (model, model.parent):
        (span,) = adapter.build_mitie_detector(policy("mitie", f'model = "{where}"'))(Document("", text))
        assert text[span.start : span.end] == "Ada Brook"
    assert adapter._split_mitie_words("don't é-x") != adapter.split_words("don't é-x")


def test_many_and_long(model, policy, monkeypatch):
    monkeypatch.setattr(adapter, "MITIE_WORDS", 30)
    monkeypatch.setattr(adapter, "OVERLAP", 6)
    detect = adapter.build_mitie_detector(policy("mitie", f'model = "{model}"'))
    long = "they came home . " * 20 + "Cyd Dale came home ."
    documents = [Document("", text) for text in (long, "", "\ud800", TRAIN[0])]
    assert detect.many(documents) == [detect(document) for document in documents]
    assert "Cyd Dale" in [long[s.start : s.end] for s in detect(documents[0])]


def test_labels_are_those_of_the_model(model, policy):
    with pytest.raises(UnknownNameError, match="unknown label of the model 'PERS'; did you mean: PERSON"):
        adapter.build_mitie_detector(policy("mitie", f'model = "{model}"', 'labels = { PERS = "PERSON" }'))


def test_a_file_that_is_no_model(policy, tmp_path):
    pytest.importorskip("mitie", reason="MITIE is not installed")
    with pytest.raises(DataError, match=r"no file or folder .*absent\.dat"):
        adapter.build_mitie_detector(policy("mitie", f'model = "{tmp_path / "absent.dat"}"'))
    (tmp_path / "junk.dat").write_bytes(b"junk")
    with pytest.raises(DataError, match="cannot load the model"):
        adapter.build_mitie_detector(policy("mitie", 'model = "junk.dat"'))
