import os
import sys
import types

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allonym.detection.adapters import Adapter, Found
from allonym.detection.adapters.labels import LabelMap
from allonym.detection.adapters.offline import block_model_hubs, check_path_exists, import_library, require_model
from allonym.document import Document, Span
from allonym.errors import DataError, MissingExtra, PolicyError
from allonym.policy import Policy


def adapter(*found, threshold=None):
    seen = []

    def read(texts):
        seen.extend(texts)
        return [found for _ in texts]

    return Adapter("test", read, LabelMap(Policy(name="x"), "spacy", ("conll",)), threshold), seen


def test_without_a_threshold_weak_findings_stay_as_weak_as_they_are():
    one, _ = adapter(Found(0, 3, "PER", 0.01))
    assert [s.score for s in one(Document("", "Ada"))] == [0.01]


def test_scores_stay_and_blanks_go():
    one, _ = adapter(Found(0, 4, "PER", 0.7), Found(3, 4, "ORG", 0.9))
    assert one(Document("", "Ada  Brook")) == [Span(0, 3, "PERSON", 0.7, "test:model")]


def test_an_accent_stays_with_its_letter():
    one, _ = adapter(Found(0, 3, "PER", 0.7))
    assert [(s.start, s.end) for s in one(Document("", "Ana\u0301\u0301 b"))] == [(0, 5)]


def test_the_better_of_two_scores_counts():
    one, _ = adapter(Found(0, 3, "PER", 0.6), Found(0, 3, "PERSON", 0.8))
    assert [s.score for s in one(Document("", "Ada"))] == [0.8]


def test_what_libraries_cannot_read_is_stood_in_for_at_the_same_length():
    one, seen = adapter()
    one(Document("", "a\0b\ud800c\U0001f600"))
    assert seen == ["a b\ufffdc\U0001f600"]


@given(score=st.floats(0, 1), other=st.floats(0, 1), threshold=st.floats(0.01, 0.99))
def test_the_threshold_becomes_one_half_and_order_stays(score, other, threshold):
    def moved(value):
        one, _ = adapter(Found(0, 1, "PER", value), threshold=threshold)
        spans = one(Document("", "x"))
        return spans[0].score if spans else None

    made, more = moved(score), moved(max(score, other))
    assert (made is None) == (score < threshold)
    if made is not None:
        assert 0.5 <= made <= more <= 1
    assert moved(threshold) == pytest.approx(0.5)
    assert moved(1.0) == 1.0


def test_a_package_that_is_not_there_names_the_command():
    with pytest.raises(MissingExtra, match=r"pip install '.*\[gliner\]'"):
        import_library("no_such_package_for_sure", "gliner")


@pytest.mark.parametrize("name", ["spacy", "flair", "gliner", "transformers", "presidio", "mitie"])
def test_without_its_package_each_detector_names_the_command(name, monkeypatch, policy):
    from allonym import registry

    package = {"presidio": "presidio_analyzer"}.get(name, name)
    for module in [m for m in sys.modules if m == package or m.startswith(f"{package}.")] + [package]:
        monkeypatch.setitem(sys.modules, module, None)
    lines = [] if name == "presidio" else ['model = "nowhere"']
    with pytest.raises(MissingExtra, match=rf"pip install '.*\[{name}\]'"):
        registry.detectors.get(name)(policy(name, *lines))


@pytest.mark.parametrize("name", ["spacy", "flair", "gliner", "transformers", "mitie"])
def test_without_a_model_each_detector_asks_for_one(name):
    from allonym import registry

    with pytest.raises(PolicyError, match=rf"detect\.{name}\.model is required"):
        registry.detectors.get(name)(Policy(name="x"))


def test_required_and_existing(tmp_path):
    assert require_model({"model": "x"}, "spacy") == "x"
    assert check_path_exists(str(tmp_path), "here") == str(tmp_path)
    with pytest.raises(DataError, match="here: there is no file or folder"):
        check_path_exists(str(tmp_path / "no"), "here")


def test_hubs_are_off_while_a_model_is_loaded_and_as_before_afterwards(monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    monkeypatch.delenv("TRANSFORMERS_OFFLINE", raising=False)
    hub = types.ModuleType("huggingface_hub.constants")
    hub.HF_HUB_OFFLINE = False
    monkeypatch.setitem(sys.modules, "huggingface_hub.constants", hub)
    with block_model_hubs("gliner", "m"):
        assert (os.environ["HF_HUB_OFFLINE"], os.environ["TRANSFORMERS_OFFLINE"], hub.HF_HUB_OFFLINE) == (
            "1",
            "1",
            True,
        )
    assert (os.environ["HF_HUB_OFFLINE"], hub.HF_HUB_OFFLINE) == ("0", False)
    assert "TRANSFORMERS_OFFLINE" not in os.environ
    with block_model_hubs("gliner", "m", allow_download=True):
        assert (os.environ["HF_HUB_OFFLINE"], hub.HF_HUB_OFFLINE) == ("0", False)


def test_what_goes_wrong_while_loading_names_the_model_and_the_way_out():
    says = r"cannot load the model 'm' \(KeyError: 'x'\); .*allow_download = true"
    with pytest.raises(DataError, match=says), block_model_hubs("gliner", "m"):
        raise KeyError("x")
    with pytest.raises(PolicyError), block_model_hubs("gliner", "m"):
        raise PolicyError("as it is")
