"""Pieces of documents: nothing in the released file tells which belong together; who must join them finds less."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.swap.corpora import corpus

import allonym
from allonym.errors import UsageError
from allonym.plan import Edit
from allonym.policy import Policy
from allonym.swap.forms import check_edits, group_chunks, make_pieces, renumber_tags, write_pieces
from allonym.swap.settings import Form, Settings

KEY = b"a key of sixteen bytes or more"
QUICK = Settings.load().with_({"embed.name": "lsa", "mixture.restarts": 1, "mixture.clusters": 6, "search.draws": 1})
FALLBACK = {f"fallback.{c}": "pseudonym" for c in ("Organization", "Person", "Location", "Product")}


def search(form, **more):
    settings = QUICK.with_({"release.form": form, "search.points": 4, **more})
    return allonym.swap.search(corpus(), settings, seed=1)


@pytest.mark.parametrize("form", ["parts", "chunks", "changed"])
def test_pieces_hold_every_released_chunk_once(form):
    releases = search(form)
    made = releases.make(key=KEY)
    members = [chunk for piece in made.pieces for chunk in piece.chunks]
    changed = {outcome.chunk for outcome in made.outcomes}
    assert sorted(members) == sorted(changed if form == "changed" else range(len(corpus().chunks)))
    for piece in made.pieces:
        assert len({corpus().chunks[chunk].document for chunk in piece.chunks}) == 1
        assert len(piece.chunks) <= (4 if form == "parts" else 1)
        parts = "".join(made.written.chunk_texts[chunk].text for chunk in piece.chunks)
        assert piece.text == renumber_tags(parts).strip()


def test_whole_documents_have_no_pieces():
    assert search("documents").make(key=KEY).pieces is None


def test_the_file_tells_nothing_but_texts(tmp_path):
    made = search("chunks").make(key=KEY)
    assert write_pieces(made.pieces, tmp_path / "safe.jsonl") == len(made.pieces)
    rows = [json.loads(line) for line in (tmp_path / "safe.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [list(row) for row in rows] == [["id", "text"]] * len(rows)
    ids = [row["id"] for row in rows]
    assert ids == sorted(ids) and all(re.fullmatch("[0-9a-f]{16}", id) for id in ids)
    assert all(row["text"] == row["text"].strip() for row in rows)
    assert [path.name for path in tmp_path.iterdir()] == ["safe.jsonl"]
    with pytest.raises(UsageError, match="exists"):
        write_pieces(made.pieces, tmp_path / "safe.jsonl")
    with pytest.raises(UsageError, match=r"ends in \.jsonl"):
        write_pieces(made.pieces, tmp_path / "safe.csv")


def test_the_order_is_the_keys_and_not_the_sources():
    releases = search("chunks")
    first, again, other = (releases.make(key=key).pieces for key in (KEY, KEY, KEY + b"2"))
    assert first == again
    assert {piece.id for piece in first}.isdisjoint(piece.id for piece in other)
    orders = [[piece.chunks for piece in pieces] for pieces in (first, other)]
    assert orders[0] != orders[1] and sorted(orders[0]) == sorted(orders[1])
    documents = [corpus().chunks[piece.chunks[0]].document for piece in first]
    runs = sum(a == b for a, b in pairwise(documents))
    assert runs < len(documents) / 3  # 6 documents of equal size: one sixth by chance
    assert {p.id for p in releases.make(draw=1, key=KEY).pieces}.isdisjoint(p.id for p in first)


def test_releases_of_other_corpora_seeds_or_forms_share_no_id_under_one_key():
    settings = QUICK.with_({"release.form": "chunks", "search.points": 4})
    texts = corpus()
    released = [
        allonym.swap.search(texts, settings, seed=1),
        allonym.swap.search(texts, settings, seed=2),
        allonym.swap.search(replace(texts, protect="another"), settings, seed=1),
        search("changed"),
    ]
    ids = [{piece.id for piece in releases.make(0, key=KEY).pieces} for releases in released]
    assert all(ids) and len(set().union(*ids)) == sum(map(len, ids))


def test_who_falls_back_has_another_pseudonym_in_each_piece():
    categories = {"categories.Person": "fixed", "categories.Location": "fixed", "exchange.swaps": 1}
    outputs = {}
    for form in ("documents", "chunks"):
        releases = search(form, **FALLBACK, **categories)
        made = releases.make(key=KEY)
        names = {}
        for i, chunk in enumerate(corpus().chunks):
            new = [e for e in made.plans[chunk.document].edits if chunk.start <= e.start and e.end <= chunk.end]
            for edit in new:
                if edit.operator.startswith("pseudonym"):
                    names.setdefault((chunk.document, edit.original), {}).setdefault(i, edit.replacement)
        several = [set(by_chunk.values()) for by_chunk in names.values() if len(by_chunk) > 2]
        outputs[form] = several
    assert outputs["documents"] and outputs["chunks"]
    assert all(len(names) == 1 for names in outputs["documents"])
    assert sum(len(names) > 1 for names in outputs["chunks"]) > len(outputs["chunks"]) * 0.9


@given(st.lists(st.tuples(st.sampled_from(["PERSON", "CITY"]), st.integers(1, 40)), max_size=12))
def test_tags_of_a_piece_are_numbered_from_one(tags):
    text = renumber_tags(" met ".join(f"[{label} {number}]" for label, number in tags))
    found = re.findall(r"\[(\w+) (\d+)\]", text)
    assert len(found) == len(tags)
    for label in ("PERSON", "CITY"):
        numbers = [int(n) for name, n in found if name == label]
        assert sorted(set(numbers)) == list(range(1, len(set(numbers)) + 1))
        assert list(dict.fromkeys(numbers)) == sorted(set(numbers))
    pairs = list(zip(tags, found, strict=True))
    assert len({pair for pair, _ in pairs}) == len({new for _, new in pairs})


def test_a_code_that_is_the_same_in_all_pieces_is_refused():
    plan = corpus().plans[0]
    edit = Edit(0, 3, "3f2a", "PERSON", 0, "hash@1", "abc")
    tied = replace(corpus(), plans=(replace(plan, edits=(edit,)), *corpus().plans[1:]))
    with pytest.raises(UsageError, match="replaces PERSON by hash, which ties the pieces"):
        check_edits(tied)
    check_edits(corpus())


def test_no_text_shows():
    groups = group_chunks(corpus(), Form(form="chunks"))
    texts = ["Zaphrandel"] * len(corpus().chunks)
    pieces = make_pieces(groups, texts, released=set(range(9)), policy=Policy.load("swap"), key=KEY, draw="0 0")
    assert len(pieces) == 9 and "Zaphrandel" not in repr(pieces)


def test_whole_documents_are_found_more_than_pieces():
    rows = {}
    for form in ("documents", "chunks"):
        releases = search(form, **{"check.runs": 1, "check.folds": 2})
        made = releases.make(key=KEY)
        rows[form] = next(row for row in releases.check(made=made, key=KEY).panel.rows if row.name == "document")
    assert (
        rows["documents"].among == "12 halves of documents" and rows["chunks"].among == "each of 12 halves of documents"
    )
    assert "puts the released pieces" in rows["chunks"].knows and "all texts of a document" in rows["documents"].knows
    assert rows["chunks"].identified.value < rows["documents"].identified.value <= rows["documents"].before.value
