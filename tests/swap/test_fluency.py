"""A term in the place of another: what a language model of the corpus says of it."""

from __future__ import annotations

from dataclasses import replace

from allonym.document import Document, Span
from allonym.plan import Plan, digest
from allonym.swap.corpus import Chunk, Corpus, Slot, Value
from allonym.swap.fluency import Fluency
from allonym.swap.writing import write

TEXTS = (
    "the hospital industry grew. the insurance industry grew. the market grew.",
    "the insurance industry fell. a catastrophe project failed. the market industry fell. "
    "we thank you all for being here today and wish you a good week with many more calls of this kind from our team.",
    "the hospital industry is large. the market is large. the clinic industry fell. the clinic industry grew. 40 hospital beds.",
)


def make_corpus(*mentions: tuple[int, str], nouns: tuple[str, ...] = ()) -> Corpus:
    """A corpus of these texts, with terms: (text, surface), of which the first occurrence counts."""
    documents = tuple(Document(str(n), text) for n, text in enumerate(TEXTS))
    values: list[list[Value]] = [[] for _ in TEXTS]
    for n, surface in mentions:
        start = TEXTS[n].index(surface)
        values[n].append(Value("Term", surface, (surface,), (Span(start, start + len(surface), "TERM"),)))
    chunks = tuple(Chunk(n, 0, len(text), text, tuple(values[n])) for n, text in enumerate(TEXTS))
    sections = tuple(((0, len(text)),) for text in TEXTS)
    plans = tuple(Plan(digest(text), (), (), digest(text)) for text in TEXTS)
    corpus = Corpus(documents, "company", ("a", "b", "c"), {"Term": "swap"}, sections, chunks, ((), (), ()), plans)
    return replace(corpus, common_nouns=nouns)


def test_what_is_said_elsewhere_costs_less_than_what_is_not() -> None:
    fluency = Fluency.of(make_corpus((0, "hospital"), (1, "insurance"), (1, "project")))
    place, fitting, odd = Slot(0, 0), Slot(1, 0), Slot(1, 1)
    assert fluency.measure_loss(place, fitting) < 0.5 < fluency.measure_loss(place, odd)
    assert fluency.measure_loss(place, place) == 0.0
    assert fluency.measure_loss(Slot(2, 0), fitting) == 0.0


def test_the_likeliest_common_noun_of_the_number_is_chosen() -> None:
    chosen = Fluency.of(make_corpus((0, "hospital"), nouns=("clinic", "clinics", "industry", "market")))
    assert chosen.choose_noun(Slot(0, 0)) == "clinic"
    assert Fluency.of(make_corpus((0, "hospital"), nouns=("clinics",))).choose_noun(Slot(0, 0)) == ""


def test_no_noun_of_another_meaning_is_chosen() -> None:
    assert Fluency.of(make_corpus((0, "hospital"), nouns=("market",))).choose_noun(Slot(0, 0)) == ""


def test_no_noun_follows_a_figure() -> None:
    number = TEXTS[2].index("40 hospital") + 3
    corpus = make_corpus(nouns=("market",))
    value = Value("Term", "hospital", ("hospital",), (Span(number, number + 8, "TERM"),))
    chunks = (*corpus.chunks[:2], replace(corpus.chunks[2], values=(value,)))
    assert Fluency.of(replace(corpus, chunks=chunks)).choose_noun(Slot(2, 0)) == ""


def test_a_term_without_a_place_becomes_the_noun_that_reads_best_there() -> None:
    corpus = make_corpus((0, "hospital"), nouns=("industry", "clinic"))
    assert write(corpus, {}, fallback={"Term": "generalise"}).texts[0].startswith("the clinic industry grew.")
    assert "[" in write(make_corpus((0, "hospital")), {}, fallback={"Term": "generalise"}).texts[0]


def test_repr_shows_no_text() -> None:
    assert "hospital" not in repr(Fluency.of(make_corpus((0, "hospital"))))
