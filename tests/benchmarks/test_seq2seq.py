"""benchmarks/seq2seq.py: what it counts as a leak, and the whole of it with tiny numbers."""

from __future__ import annotations

import json
import sys

import pytest

pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("transformers", reason="transformers is not installed")

from allonym.document import Document, Span
from allonym.plan import Edit, Plan, apply_edits, digest
from benchmarks import seq2seq

pytestmark = pytest.mark.slow

TEXT = "Li Brook met Cy of Kestrel Road. Road works; Brook left Quill Ltd."
MARKED = {"Li Brook": "PERSON", "Kestrel Road": "STREET_ADDRESS", "Quill Ltd": "ORGANIZATION"}


def case_of(text, marked):
    spans = tuple(Span(text.index(n), text.index(n) + len(n), label, 1.0, "given") for n, label in marked.items())
    beside = set(seq2seq.find_plain_words(seq2seq._join_text_beside(text, [(s.start, s.end) for s in spans])))
    policy = seq2seq.policy_of_names()
    found = {True: set(), False: set()}
    for name, label in marked.items():
        known = seq2seq.names_words(name, seq2seq.find_family(label, policy))
        for word in known.keys() - beside:
            found[known[word]].add(word)
    return seq2seq.Case(Document("", text), spans, frozenset(found[True]), frozenset(found[False] - found[True]))


def stays(**put):
    """What stayed, where each mention became something else."""
    case, text = case_of(TEXT, MARKED), TEXT
    edits = tuple(
        Edit(s.start, s.end, new, s.label, f"{s.label}:{i}", "seq2seq", text[s.start : s.end])
        for i, (s, new) in enumerate(zip(case.spans, put.values(), strict=True))
    )
    plan = Plan(digest(text), edits)
    assert apply_edits(text, edits) != text
    return {(s.word, s.where, s.telling) for s in seq2seq.list_remaining_words(case, plan, seq2seq.policy_of_names())}


@pytest.mark.parametrize(
    ("surface", "of", "words"),
    [
        ("Dr. Li van Dijk", "PERSON", {"dr": False, "li": True, "van": False, "dijk": True}),
        ("J. Brook", "PERSON", {"brook": True}),
        ("12 Kestrel Road", "LOCATION", {"kestrel": True, "road": False}),
        ("Quill Group LLP", "ORGANIZATION", {"quill": True, "group": False, "llp": False}),
    ],
)
def test_words_that_tell_and_words_that_say_what_is_named(surface, of, words):
    assert seq2seq.names_words(surface, of) == words


def test_words_that_stay_are_counted_by_place():
    assert stays(a="Bo Moor", b="Elm Lane", c="Hartley") == set()
    assert stays(a="Li Moor", b="Elm Road", c="Hartley Ltd") == {
        ("li", seq2seq.OWN, True),
        ("road", seq2seq.OWN, False),
        ("ltd", seq2seq.OWN, False),
    }
    assert stays(a="Quill Moor", b="Li Lane", c="Kestrel") == {
        ("quill", seq2seq.OTHERS, True),
        ("li", seq2seq.OTHERS, True),
        ("kestrel", seq2seq.OTHERS, True),
    }


def test_what_stands_beside_mentions_is_no_leak():
    case = case_of(TEXT, MARKED)
    assert case.telling == {"li", "kestrel", "quill"}
    assert case.kinds == {"ltd"}
    assert seq2seq.count_leaked_words(case, TEXT) == {"telling": 3, "tellings": 3, "all": 4, "alls": 4}
    assert seq2seq.count_leaked_words(case, "Brook met Kestrel.") == {"telling": 1, "tellings": 3, "all": 1, "alls": 4}


def test_the_whole_with_tiny_numbers(monkeypatch, capsys):
    tiny = ["--texts", "12", "--steps", "2", "--size", "tiny", "--fresh", "6", "--rows", "1"]
    monkeypatch.setattr(sys, "argv", ["seq2seq.py", *tiny])
    seq2seq.main()
    out = capsys.readouterr().out
    figures = json.loads(out.splitlines()[-1])
    assert figures["benchmark"] == "seq2seq"
    assert [row["step"] for row in figures["curve"]] == [0, 2]
    assert figures["entities"] > 0 and figures["telling_words"] > 0
    # A model that copies leaks nearly everything; through the operator no telling word stands in its own place.
    assert figures["begun"]["own_output_leaks_telling"] > 0.5
    for name in ("begun", "trained"):
        assert "telling in its own mention" not in figures[name]["stayed"]
        assert 0 <= figures[name]["own_substitute"] <= 1


def test_texts_of_the_test_are_never_trained_on(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["seq2seq.py", "--seed", "5", "--test-seed", "6"])
    with pytest.raises(SystemExit):
        seq2seq.main()
