from importlib.metadata import EntryPoint

import pytest

from allonym import registry
from allonym.errors import UnknownNameError, UsageError
from allonym.registry import Registry


def test_a_name_is_imported_when_it_is_asked_for():
    numbers = Registry("number", {"pi": "math:pi", "absent": "no_such_module:x"})
    assert numbers.names() == ("absent", "pi")
    assert numbers.get("pi") == pytest.approx(3.14159, abs=1e-4)
    with pytest.raises(ModuleNotFoundError):
        numbers.get("absent")


def test_an_unknown_name_says_the_nearest_and_where():
    with pytest.raises(UnknownNameError, match=r"here: unknown thing 'alfa'; did you mean: alpha"):
        Registry("thing", {"alpha": "math:pi"}).get("alfa", "here")


def test_register_adds_and_refuses_a_taken_name():
    things = Registry("thing", {"a": "math:pi"})
    things.register("b", len)
    assert things.get("b") is len
    assert things.names() == ("a", "b")
    for taken in ("a", "b"):
        with pytest.raises(UsageError, match="registered already"):
            things.register(taken, len)


def test_a_string_can_be_registered_for_later_import():
    things = Registry("thing", {})
    things.register("e", "math:e")
    assert things.get("e") == pytest.approx(2.71828, abs=1e-4)


def test_entry_points_are_found_and_never_replace_what_is_there(monkeypatch):
    def points(*, group):
        assert group == "allonym.things"
        return [EntryPoint("a", "math:e", group), EntryPoint("far", "math:tau", group)]

    monkeypatch.setattr(registry, "entry_points", points)
    things = Registry("thing", {"a": "math:pi"})
    assert things.names() == ("a", "far")
    assert things.get("a") == pytest.approx(3.14159, abs=1e-4)
    assert things.get("far") == pytest.approx(6.28318, abs=1e-4)


def test_entry_points_are_read_only_for_names_that_are_not_built_in(monkeypatch):
    def points(*, group):
        raise AssertionError("read too early")

    monkeypatch.setattr(registry, "entry_points", points)
    Registry("thing", {"a": "math:pi"}).get("a")


@pytest.mark.parametrize("table", [registry.detectors, registry.operators], ids=lambda t: t.kind)
def test_everything_built_in_exists_and_can_be_called(table):
    for name in table.names():
        assert callable(table.get(name)), name


def test_the_tables_that_the_docs_promise():
    adapters = {"ensemble", "flair", "gliner", "mitie", "presidio", "spacy", "transformers"}
    assert set(registry.detectors.names()) >= {"rules", "spoken", "lexicon", "speakers"} | adapters
    assert set(registry.operators.names()) >= {
        "keep",
        "suppress",
        "tag",
        "mask",
        "hash",
        "encrypt",
        "generalise",
        "shift_dates",
    }
