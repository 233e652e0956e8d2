# ruff: noqa: F811  # fixtures
from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.llm import server as at
from tests.llm.fixtures import asking, server  # noqa: F401
from tests.swap import golden12, invented
from tests.swap.invented import lifted

from allonym.document import Document, Entity, Span
from allonym.errors import UnknownNameError, UsageError
from allonym.plan import Edit, Plan, apply, apply_edits, apply_edits_to_parts, digest, invert_plan
from allonym.policy import Policy
from allonym.swap.corpus import Chunk, Corpus, Slot, Value
from allonym.swap.exchange import exchange
from allonym.swap.table import recoding
from allonym.swap.writing import Mark, combine_edits, make_swapped_text, write

ALL = ("Organization", "Person", "Product")
KEY = "a key for tests only"


def with_base(corpus: Corpus) -> Corpus:
    """The corpus, every chunk's first word a direct identifier whose replacement is in its text already."""
    plans, chunks = [], list(corpus.chunks)
    for d, document in enumerate(corpus.documents):
        starts = [c.start for c in corpus.chunks if c.document == d]
        edits = tuple(Edit(s, s + 3, "[Company Name]", "COMPANY", 1, "tag@1", "Now") for s in starts)
        plans.append(Plan(digest(document.text), edits, (), digest(apply_edits(document.text, edits))))
        for i, chunk in enumerate(chunks):
            if chunk.document == d:
                text = apply_edits_to_parts(document.text, ((chunk.start, chunk.end),), edits)[0]
                chunks[i] = replace(chunk, text=text)
    return replace(corpus, plans=tuple(plans), chunks=tuple(chunks))


def drawn(corpus: Corpus, seed: int, categories: tuple[str, ...] = ALL) -> dict[Slot, Slot]:
    return exchange(corpus, [0] * len(corpus.chunks), lifted(categories), seed).map_slots_to_donors()


@pytest.mark.parametrize("way", ["keep", "tag", "suppress", "generalise", "pseudonym", "summarise"])
@given(seed=st.integers(0, 10**6), base=st.booleans())
@settings(max_examples=12, deadline=None)
def test_promises(way: str, seed: int, base: bool) -> None:
    corpus = invented.corpus(seed, documents=3, chunks=3, pool=4)
    corpus = with_base(corpus) if base else corpus
    placed = drawn(corpus, seed)
    made = write(corpus, placed, fallback={"*": way}, key=KEY)
    for document, plan, text in zip(corpus.documents, made.plans, made.texts, strict=True):
        assert apply(document, plan) == text
        assert invert_plan(text, plan) == document.text

    # Nothing outside of recognised mentions changes, but articles before them, a space that would be left over, and
    # the sentences that a summary leaves out.
    for d, plan in enumerate(made.plans):
        mentions = [s for c in corpus.chunks if c.document == d for v in c.values for s in v.spans]
        for edit in plan.edits:
            if edit not in corpus.plans[d].edits and edit.operator not in ("article@1", "summarise@1"):
                inside = [s for s in mentions if edit.start <= s.start and s.end <= edit.end]
                assert len(inside) == 1
                assert edit.end - edit.start <= len(inside[0]) + 3  # a space, or a possessive ending

    # Chunks tile the released document, as they tiled the original.
    for d, text in enumerate(made.texts):
        pieces = [made.chunk_texts[i] for i, c in enumerate(corpus.chunks) if c.document == d]
        assert "".join(p.text for p in pieces) == text
        assert all(text[p.start : p.end] == p.text for p in pieces)

    for i, piece in enumerate(made.chunk_texts):
        chunk = corpus.chunks[i]
        surfaces = {form for v in chunk.values for form in v.forms}
        if way == "keep":
            assert piece.text == make_swapped_text(corpus, i, placed)
        for mark in piece.marks:
            assert 0 <= mark.start < mark.end <= len(piece.text)
        for mark in piece.marks_before:
            if mark.kind != "summarise":
                assert any(s in chunk.text[mark.start : mark.end] for s in surfaces)
        for v, value in enumerate(chunk.values):
            gone = Slot(i, v) in placed or way != "keep"
            if value.category in ALL and gone:
                assert value.forms[0] not in piece.text

    told = sum(made.swapped.values()) + sum(n for w, n in made.fallen.items() if w in (way, "keep"))
    assert told == sum(v.category in ALL for c in corpus.chunks for v in c.values)
    assert sum(made.swapped.values()) == len(placed)


def test_only_mentions_change() -> None:
    """A string that looks like an entity and is no mention stays; so does what stands around mentions."""
    text = "Hanmere Road runs past Hanmere's mill. "
    other = "Corvane built it. "
    corpus = two(text, [Span(23, 30, "ORGANIZATION")], other, [Span(0, 7, "ORGANIZATION")])
    made = write(corpus, {Slot(0, 0): Slot(1, 0), Slot(1, 0): Slot(0, 0)})
    assert made.texts == ("Hanmere Road runs past Corvane's mill. ", "Hanmere built it. ")
    assert made.chunk_texts[0].marks == (Mark(23, 30, "Organization", "swap"),)
    assert made.chunk_texts[0].marks_before == (Mark(23, 30, "Organization", "swap"),)


def two(first: str, spans: list[Span], second: str, others: list[Span], **more: Any) -> Corpus:
    """Two documents of one chunk each, each with one organization."""
    documents, chunks, entities = [], [], []
    for d, (text, found) in enumerate(((first, spans), (second, others))):
        name = text[found[0].start : found[0].end]
        documents.append(Document(f"d{d}", text))
        value = Value("Organization", name.lower(), (name,), tuple(found))
        chunks.append(Chunk(d, 0, len(text), text, (value,)))
        entities.append((Entity(f"ORGANIZATION:{name.lower()}", "ORGANIZATION", tuple(found)),))
    sections = tuple(((0, len(d.text)),) for d in documents)
    plans = tuple(Plan(digest(d.text)) for d in documents)
    fields: dict[str, Any] = {"categories": {"Organization": "swap"}, "sections": sections, **more}
    return Corpus(
        documents=tuple(documents),
        protect="company",
        classes=("a", "b"),
        chunks=tuple(chunks),
        entities=tuple(entities),
        plans=plans,
        **fields,
    )


SWAPPED = {Slot(0, 0): Slot(1, 0), Slot(1, 0): Slot(0, 0)}


def test_what_the_section_leaves_out_is_dropped() -> None:
    text = "Operator: Hello. Hanmere grew. Questions about Hanmere now."
    corpus = two(text, [Span(17, 24, "ORGANIZATION")], "Corvane built it.", [Span(0, 7, "ORGANIZATION")])
    chunk = replace(corpus.chunks[0], start=17, end=31, text=text[17:31])
    corpus = replace(corpus, sections=(((17, 31),), ((0, 17),)), chunks=(chunk, corpus.chunks[1]))
    made = write(corpus, SWAPPED)
    assert made.texts[0] == made.chunk_texts[0].text == "Corvane grew. "
    assert [e.operator for e in made.plans[0].edits] == ["drop@1", "swap@1", "drop@1"]
    assert invert_plan(made.texts[0], made.plans[0]) == text


def test_the_rest_keeps_what_the_base_plan_made_of_it() -> None:
    text = "Hanmere is here. Hanmere grew. "
    corpus = two(text, [Span(17, 24, "ORGANIZATION")], "Corvane built it.", [Span(0, 7, "ORGANIZATION")])
    chunk = replace(corpus.chunks[0], start=17, end=31, text=text[17:31])
    edits = (Edit(0, 7, "[Organization]", "ORGANIZATION", 1, "tag@1", "Hanmere"),)
    corpus = replace(
        corpus,
        sections=(((17, 31),), ((0, 17),)),
        chunks=(chunk, corpus.chunks[1]),
        plans=(Plan(digest(text), edits), corpus.plans[1]),
        settings={"rest": "anonymize"},
    )
    made = write(corpus, SWAPPED)
    assert made.texts[0] == "[Organization] is here. Corvane grew. "
    assert made.chunk_texts[0].text == "Corvane grew. "
    assert made.chunk_texts[0].start == 24


def test_articles_follow() -> None:
    corpus = two(
        "It is a Hanmere plan.", [Span(8, 15, "ORGANIZATION")], "An Ostrava one.", [Span(3, 10, "ORGANIZATION")]
    )
    made = write(corpus, SWAPPED)
    assert made.texts == ("It is an Ostrava plan.", "A Hanmere one.")
    assert [make_swapped_text(corpus, i, SWAPPED) for i in (0, 1)] == list(made.texts)


def test_a_mention_whose_donor_reads_the_same_falls_back() -> None:
    corpus = two("We met Hanmere.", [Span(7, 14, "ORGANIZATION")], "Hanmere met us.", [Span(0, 7, "ORGANIZATION")])
    made = write(corpus, SWAPPED)
    assert made.texts == tuple(d.text for d in corpus.documents)
    assert made.plans[0].edits == ()
    for way in ("tag", "summarise", "pseudonym"):  # by the rule of what falls back anyway; else suppressed
        assert write(corpus, SWAPPED, fallback={"*": way}).texts == ("We met.", "met us.")


def test_numbers_of_tags_follow_those_of_the_base_plan() -> None:
    text = "Ines met Hanmere and Tobias. "
    corpus = two(text, [Span(9, 16, "ORGANIZATION")], "Corvane built it.", [Span(0, 7, "ORGANIZATION")])
    person = Value("Person", "tobias", ("Tobias",), (Span(21, 27, "PERSON"),))
    edits = (Edit(0, 4, "[PERSON_1]", "PERSON", 1, "tag@1", "Ines"),)
    corpus = replace(
        corpus,
        categories={"Organization": "swap", "Person": "swap"},
        chunks=(replace(corpus.chunks[0], values=(*corpus.chunks[0].values, person)), corpus.chunks[1]),
        plans=(Plan(digest(text), edits), corpus.plans[1]),
    )
    made = write(corpus, SWAPPED, policy="default", fallback={"Person": "tag"})
    assert made.texts[0] == "[PERSON_1] met Corvane and [PERSON_2]. "
    assert made.by_category["Person"] == {"tag": 1}


def test_a_rule_of_the_policy_gives_its_options() -> None:
    corpus = two("We met Hanmere.", [Span(7, 14, "ORGANIZATION")], "Corvane met us.", [Span(0, 7, "ORGANIZATION")])
    made = write(corpus, {}, fallback={"Organization": "tag"})
    assert made.texts == ("We met [Organization].", "[Organization] met us.")
    assert made.fallen == {"tag": 2}
    assert not made.swapped


def test_generalised_names_become_nouns() -> None:
    corpus = two("We met Hanmere.", [Span(7, 14, "ORGANIZATION")], "Corvane met us.", [Span(0, 7, "ORGANIZATION")])
    made = write(corpus, {}, fallback={"*": "generalise"}, recode=recoding({"Hanmere": "investment bank"}))
    assert made.texts == ("We met an investment bank.", "An organization met us.")
    assert made.chunk_texts[0].marks == (Mark(7, 25, "Organization", "generalise"),)
    german = write(corpus, {}, policy=Policy.load("swap").with_(language="de"), fallback={"*": "generalise"})
    assert german.texts == ("We met [Organization 1].", "[Organization 1] met us.")


def test_a_key_is_needed_where_something_falls_back_on_it_only() -> None:
    corpus = two("We met Hanmere.", [Span(7, 14, "ORGANIZATION")], "Corvane met us.", [Span(0, 7, "ORGANIZATION")])
    assert write(corpus, SWAPPED, fallback={"*": "pseudonym"}).texts == ("We met Corvane.", "Hanmere met us.")
    with pytest.raises(UsageError, match="pseudonym"):
        write(corpus, {}, fallback={"*": "pseudonym"})
    made = write(corpus, {}, fallback={"*": "pseudonym"}, key=KEY)
    assert "Hanmere" not in made.texts[0]
    assert made.fallen == {"pseudonym": 2}


def test_fixed_and_free_categories() -> None:
    corpus = golden12.corpus({"Organization": "swap", "Person": "swap", "Location": "fixed", "Product": "free",
                              "Event": "free", "Date": "fixed"})  # fmt: skip
    made = write(corpus, {}, fallback={"*": "tag", "Event": "suppress", "Location": "suppress"})
    whole = " ".join(made.texts)
    held = {
        c: {f for k in corpus.chunks for v in k.values if v.category == c for f in v.forms} for c in corpus.categories
    }
    assert all(name in whole for c in ("Location", "Product", "Date") for name in held[c])
    assert not any(name in whole for c in ("Organization", "Person", "Event") for name in held[c])
    assert set(made.by_category) == {"Organization", "Person", "Product", "Event"}


def test_an_unknown_fall_back() -> None:
    with pytest.raises(UnknownNameError, match="summarise"):
        write(invented.corpus(1), {}, fallback={"*": "summarize"})


SPEECH = (
    "Sales rose in all regions. The Zorblax reactor of Hanmere glowed. Costs fell in all regions. "
    "Margins rose with quixotic fervour. "
)
OTHERS = "Sales rose in all regions. Costs fell in all regions. Margins rose. Corvane grew. "


def told() -> Corpus:
    hanmere, corvane = SPEECH.index("Hanmere"), OTHERS.index("Corvane")
    return two(
        SPEECH,
        [Span(hanmere, hanmere + 7, "ORGANIZATION")],
        OTHERS,
        [Span(corvane, corvane + 7, "ORGANIZATION")],
    )


def test_an_extracted_summary_keeps_common_sentences_without_what_had_to_go() -> None:
    made = write(told(), {}, fallback={"*": "summarise"})
    assert made.texts[0] == "Sales rose in all regions. Costs fell in all regions. "
    assert made.summaries == {"extracted": 2}
    assert made.fallen == {"summarise": 2}
    assert invert_plan(made.texts[0], made.plans[0]) == SPEECH
    assert {m.kind for m in made.chunk_texts[0].marks_before} == {"summarise"}


def test_a_sentence_stays_where_none_is_clean() -> None:
    corpus = two("Hanmere grew.", [Span(0, 7, "ORGANIZATION")], OTHERS, [Span(68, 75, "ORGANIZATION")])
    assert write(corpus, {}, fallback={"*": "summarise"}).texts[0] == "grew."


def said(text: str) -> at.Behaviour:
    return at.answer(json.dumps({"summary": text}))


def test_a_model_summarises_what_the_policy_says(server: at.Server, asking: Any) -> None:
    server.then = said("Business improved.")
    made = write(told(), {}, policy=asking(), fallback={"*": "summarise"})
    assert made.texts == ("Business improved. ", "Business improved. ")
    assert made.summaries == {"model": 2}
    assert invert_plan(made.texts[0], made.plans[0]) == SPEECH
    sent = b"".join(server.seen)
    assert b"Hanmere" not in sent
    assert b"Corvane" not in sent
    assert b"[Organization]" in sent
    assert made.chunk_texts[0].marks == (Mark(0, 19, "", "summarise"),)


@pytest.mark.parametrize(
    "act",
    [
        said("The Hanmere reactor glowed, said Corvane."),
        said(""),
        said("x" * 900),
        said("A [Organization] grew."),
        at.answer("no JSON"),
        at.answer('{"summary": 3}'),
        at.answer(json.dumps({"summary": "Business"}), finish="length"),
        at.status(500),
        at.status(401),
        at.hung_up,
    ],
)
def test_a_model_that_fails_leaves_the_chunk_to_extraction(server: at.Server, asking: Any, act: at.Behaviour) -> None:
    server.then = act
    made = write(told(), {}, policy=asking(), fallback={"*": "summarise"})
    assert made.texts[0] == "Sales rose in all regions. Costs fell in all regions. "
    assert made.summaries == {"extracted": 2}


def test_a_model_that_names_the_protected_value_leaves_the_chunk_to_extraction(server: at.Server, asking: Any) -> None:
    server.then = said("Business of Torvex Freight improved.")
    corpus = replace(told(), classes=("Torvex Freight Inc.", "Bellworth"))
    made = write(corpus, {}, policy=asking(), fallback={"*": "summarise"})
    assert made.summaries == {"extracted": 1, "model": 1}


def test_a_model_is_asked_once_more(server: at.Server, asking: Any) -> None:
    server.first.extend([at.answer("no"), said("Business improved.")])
    server.then = said("Business improved.")
    made = write(told(), {}, policy=asking("concurrency = 1"), fallback={"*": "summarise"})
    assert made.summaries == {"model": 2}
    assert len(server.seen) == 3


def test_edits_that_reach_into_others_are_cut() -> None:
    text = "abcdefghij"
    fixed = [Edit(2, 4, "X", ""), Edit(6, 8, "Y", "")]
    more = [Edit(0, 3, "p", ""), Edit(4, 7, "q", ""), Edit(6, 7, "gone", ""), Edit(8, 10, "r", "")]
    out = combine_edits(fixed, more, text)
    assert [(e.start, e.end, e.replacement) for e in out] == [
        (0, 2, "p"),
        (2, 4, "X"),
        (4, 6, "q"),
        (6, 8, "Y"),
        (8, 10, "r"),
    ]
    assert [e.original for e in out if e.replacement in "pq"] == ["ab", "ef"]


def test_nothing_of_the_text_shows() -> None:
    made = write(told(), {}, fallback={"*": "tag"})
    assert "Hanmere" not in repr(made) + repr(made.chunk_texts) + repr(made.plans)


def test_it_writes_the_same_again() -> None:
    corpus = invented.corpus(7)
    placed = drawn(corpus, 1)
    some = dict(reversed(placed.items()))
    ways = {"Person": "pseudonym", "*": "tag"}
    assert write(corpus, placed, fallback=ways, key=KEY) == write(corpus, some, fallback=ways, key=KEY)
