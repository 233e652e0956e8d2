"""The operator seq2seq: a model's output is taken only where it can be trusted, and never lets an original through."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allonym.document import Document, Entity, Span
from allonym.errors import PolicyError, UsageError
from allonym.plan import apply
from allonym.policy import Policy, Rule
from allonym.replace import check_options, make_plan

KEY = b"a key only for the tests, 32 byte"
TEXT = "Sarah Connor met John Reese in Boston. Ms Connor wrote to Sarah Connor on 3 May 2020."
PEOPLE = {
    "Sarah Connor": "PERSON",
    "Ms Connor": "PERSON",
    "John Reese": "PERSON",
    "Boston": "CITY",
    "3 May 2020": "DATE",
}


class Model:
    """Stands for a model: replaces words in the passages that it is given."""

    def __init__(self, **words):
        self.words = {name.replace("_", " "): new for name, new in words.items()}
        self.seen = []

    def rewrite(self, passages, *, beams, token_limit, banned):
        self.seen += passages
        out = list(passages)
        for old, new in self.words.items():
            out = [text.replace(old, new) for text in out]
        return out


def entities(text=TEXT, people=PEOPLE):
    found = {}
    for surface, label in people.items():
        at = text.find(surface)
        while at >= 0:
            key = "PERSON:sarah connor" if surface == "Ms Connor" else f"{label}:{surface.lower()}"
            found.setdefault((key, label), set()).add(Span(at, at + len(surface), label))
            at = text.find(surface, at + 1)
    return [Entity(key, label, tuple(sorted(spans))) for (key, label), spans in found.items()]


@pytest.fixture
def play(monkeypatch):
    def run(model, text=TEXT, people=PEOPLE, **options):
        monkeypatch.setattr(seq2seq_module(), "load_rewriter", lambda *_: model)
        policy = Policy(name="p", default=Rule("seq2seq", {"model": "m", **options}))
        document = Document("1", text)
        plan = make_plan(document, entities(text, people), policy, key=KEY)
        return apply(document, plan), plan.notes

    return run


def seq2seq_module():
    import allonym.replace.proposals as module

    return module


def test_the_models_names_are_taken(play):
    out, notes = play(Model(Sarah="Maud", Connor="Hillary", John="Fred", Reese="Osborne", Boston="Leeds"))
    assert out.startswith("Maud Hillary met Fred Osborne in Leeds. Ms Hillary wrote to Maud Hillary on ")
    assert "3 May 2020" not in out
    assert any("3 of 4 entities have the model's substitute" in note for note in notes)


def test_nothing_else_changes(play):
    out, notes = play(Model(Sarah="Maud", Connor="Hillary", John="Fred", Reese="Osborne", met="shot", wrote="sang"))
    assert out.startswith("Maud Hillary met Fred Osborne in ")
    assert " wrote to " in out
    assert any("2 changes elsewhere rejected" in note for note in notes)


def test_a_model_that_copies_lets_nothing_through(play):
    out, notes = play(Model())
    assert not set("Sarah Connor John Reese Boston".split()) & set(out.replace(".", " ").split())
    assert out.count(out.split()[0]) == 2
    assert any(note == "seq2seq: 4 of 4 entities got an offline pseudonym" for note in notes)


def test_an_original_in_another_place_is_refused(play):
    out, _ = play(Model(Sarah="John", Connor="Reese", Boston="Connorville"))
    assert not [word for word in ("Sarah", "Connor", "John", "Reese", "Boston") if word in out]


def test_two_entities_never_share_a_name(play):
    out, _ = play(Model(Sarah_Connor="Maud Hillary", John_Reese="Maud Hillary"))
    assert out.startswith("Maud Hillary met ")
    assert out.count("Maud Hillary") == 2


def test_a_name_that_gives_the_original_away_is_refused(play):
    for told in ("Connar", "Connolly", "MacConnor", "O'Cannor", "Hillll", "Hill Hill"):
        out, _ = play(Model(Sarah="Maud", Connor=told))
        assert told not in out and "Maud" not in out


@pytest.mark.parametrize(
    ("name", "proposal"),
    [
        ("Li Wu", "Li Chen"),
        ("Kim Horn", "Kimberly Dole"),
        ("Giacomo Horn", "Gia Dole"),
        ("Bo", "Bo Dole"),
        ("yoon-ah horn", "ym-ah dole"),
        ("Koen Horn", "Ko Dole"),
        ("al-qahtani", "al-qa"),
        ("王伟", "王明"),
        ("김민수", "김영희"),
    ],
)
def test_a_short_name_does_not_stay(play, name, proposal):
    out, notes = play(Model(**{name: proposal}), f"Then {name} left.", {name: "PERSON"})
    assert any("0 of 1 entities have the model's substitute" in note for note in notes)
    assert proposal not in out


def test_particles_and_function_words_may_stay(play):
    out, _ = play(Model(Haan="Vries", Ada="Eva"), "Then Ada de Haan left.", {"Ada de Haan": "PERSON"})
    assert out == "Then Eva de Vries left."


def test_the_model_is_told_what_it_must_not_write(play):
    told = []

    class Told(Model):
        def rewrite(self, passages, *, banned, **_):
            told.extend(banned)
            return list(passages)

    play(Told())
    assert told == ["Boston", "Connor", "John", "May", "Reese", "Sarah"]


def test_what_stands_in_the_document_is_no_name(play):
    out, _ = play(Model(Boston="May"))
    assert "in May." not in out


def test_empty_and_broken_output(play):
    class Broken(Model):
        def rewrite(self, passages, **_):
            return ["" if i % 2 else "]] <pad> ??" for i, _ in enumerate(passages)]

    out, _ = play(Broken())
    assert not [word for word in ("Sarah", "Connor", "John", "Reese", "Boston") if word in out]


def test_numbers_of_another_form_are_refused(play):
    text, people = "Call 212-555-8812 now.", {"212-555-8812": "PHONE_NUMBER"}
    out, _ = play(Model(**{"212-555-8812": "a number"}), text, people)
    assert out != "Call a number now." and "8812" not in out
    out, _ = play(Model(**{"212-555-8812": "713-556-0146"}), text, people)
    assert out == "Call 713-556-0146 now."


@given(st.text(max_size=60), st.booleans())
def test_no_output_lets_an_original_through(output, twice):
    class Any(Model):
        def rewrite(self, passages, **_):
            return [(output + text if twice else output)[: len(text) + 60] for text in passages]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(seq2seq_module(), "load_rewriter", lambda *_: Any())
        policy = Policy(name="p", default=Rule("seq2seq", {"model": "m"}))
        document = Document("1", TEXT)
        out = apply(document, make_plan(document, entities(), policy, key=KEY))
    assert not [word for word in ("Sarah", "Connor", "John", "Reese", "Boston") if word in out]
    assert " wrote to " in out


def test_options_are_checked():
    check_options("seq2seq", {"model": "m", "beams": 4}, "x")
    for options, told in (({}, "model is required"), ({"model": "m", "beams": 0}, "1 to 32")):
        with pytest.raises(PolicyError, match=told):
            check_options("seq2seq", options, "x")


def test_it_needs_a_key(play):
    policy = Policy(name="p", default=Rule("seq2seq", {"model": "m"}))
    with pytest.raises(UsageError, match="needs a key"):
        make_plan(Document("1", TEXT), entities(), policy)
