"""What an interrupted search goes on from."""

from __future__ import annotations

import stat
from dataclasses import replace

import pytest

from allonym.document import Document, Span
from allonym.errors import UsageError
from allonym.files import state as states
from allonym.files.state import State
from allonym.plan import Plan, digest
from allonym.swap.corpus import Chunk, Corpus, Value, digest_corpus


def test_values_are_read_as_they_were_stored(tmp_path):
    made = State(tmp_path / "state").store_value("one", [1, 0.1, float("nan"), ["x"]])
    again = State(tmp_path / "state").load_value("one")
    assert str(made) == str(again) == "[1, 0.1, nan, ['x']]"


@pytest.mark.parametrize("torn", [b"", b"{", b'{"valu": 1}', b"\xff"])
def test_a_torn_file_has_no_values(tmp_path, torn):
    state = State(tmp_path)
    (tmp_path / "one.json").write_bytes(torn)
    assert state.load_value("one") is None


def test_another_version_computes_again(monkeypatch):
    here = states.digest_values("a", 1)
    assert here == states.digest_values("a", 1) != states.digest_values("a", 2)
    monkeypatch.setattr(states, "__version__", "0.0.0")
    assert states.digest_values("a", 1) != here


def test_only_the_owner_may_read(tmp_path):
    state = State(tmp_path / "state")
    state.store_value("one", 1)
    assert stat.S_IMODE((tmp_path / "state").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "state" / "one.json").stat().st_mode) == 0o600


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "state").write_text("", encoding="utf-8")
    with pytest.raises(UsageError, match="must be a folder"):
        State(tmp_path / "state")


def test_clear_leaves_nothing(tmp_path):
    state = State(tmp_path / "state")
    state.store_value("one", 1)
    (tmp_path / "state" / "vectors").mkdir()
    (tmp_path / "state" / "vectors" / "vectors.sqlite").write_text("", encoding="utf-8")
    state.clear()
    assert not (tmp_path / "state").exists()


def make(text="Quill grew.", key="quill", state="swap", meta="Quill"):
    value = Value("Organization", key, ("Quill",), (Span(0, 5, "ORGANIZATION", 1.0, "test"),))
    return Corpus(
        documents=(Document("a", text, {"company": meta}),),
        protect="company",
        classes=(meta,),
        categories={"Organization": state},
        sections=(((0, len(text)),),),
        chunks=(Chunk(0, 0, len(text), text, (value,)),),
        entities=((),),
        plans=(Plan(digest(text)),),
    )


def test_the_digest_of_a_corpus_follows_all_that_a_search_reads():
    base = make()
    assert digest_corpus(base) == digest_corpus(make())
    others = [make(text="Quill fell."), make(key="qill"), make(state="free"), make(meta="Farrow")]
    others.append(replace(base, chunks=(replace(base.chunks[0], end=5),)))
    assert len({digest_corpus(c) for c in (base, *others)}) == len(others) + 1
    assert digest_corpus(replace(base, warnings=("said",))) == digest_corpus(base)
