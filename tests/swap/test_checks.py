import pytest
from tests.llm import server as at
from tests.llm.fixtures import server  # noqa: F401

from allonym.document import Document, Span
from allonym.errors import DataError, UnknownNameError, UsageError
from allonym.intruder import Item
from allonym.plan import Plan, digest
from allonym.swap.checks import Changed, check_runs, make_intruder_item
from allonym.swap.corpus import Chunk, Corpus, Slot, Value

FIRMS = {
    "Quarrystone": ("granite", "Slatewing", "Norhaven Port"),
    "Tarnfield": ("dairy", "Butterlane", "Eldmouth Depot"),
}
TALK = "the quarter went {} well as {} was bought by {} for {} and we are pleased. "
ROUNDS = 12


def firm_corpus(firms=FIRMS, same=False):
    """Two calls of twelve chunks, each with a product and a place of the firm's own."""
    documents, chunks = [], []
    for d, (topic, product, place) in enumerate(firms.values()):
        text = "".join(TALK.format(k, product, place, topic) for k in range(ROUNDS))
        start = 0
        for k in range(ROUNDS):
            piece = TALK.format(k, product, place, topic)
            values = []
            for category, name in (("Product", product), ("Location", place)):
                a = start + piece.index(name)
                spans = (Span(a, a + len(name), category.upper(), 1.0, "test"),)
                values.append(Value(category, name.lower(), (name,), spans))
            chunks.append(Chunk(d, start, start + len(piece), piece, tuple(values)))
            start += len(piece)
        documents.append(Document(f"call-{d}", text, {}))
    return Corpus(
        tuple(documents),
        "company",
        ("Same",) * len(firms) if same else tuple(firms),
        {"Product": "swap", "Location": "fixed"},
        tuple(((0, len(d.text)),) for d in documents),
        tuple(chunks),
        ((),) * len(documents),
        tuple(Plan(digest(d.text), result=digest(d.text)) for d in documents),
    )


def exchanged(corpus, pairs):
    """Pairs of chunks exchange their first value."""
    texts, placed = {}, {}
    for i, j in pairs:
        for a, b in ((i, j), (j, i)):
            mine, other = corpus.chunks[a].values[0], corpus.chunks[b].values[0]
            texts[a] = corpus.chunks[a].text.replace(mine.forms[0], other.forms[0])
            placed[Slot(a, 0)] = Slot(b, 0)
    return Changed(texts, placed)


def test_what_an_intruder_sees():
    corpus = firm_corpus()
    assert make_intruder_item(corpus, 0) == Item(
        corpus.chunks[0].text, ("slatewing", "norhaven port"), ("Slatewing", "Norhaven Port")
    )
    run = exchanged(corpus, [(0, 12)])
    assert make_intruder_item(corpus, 0, run) == Item(
        run.texts[0], ("butterlane", "norhaven port"), ("Butterlane", "Norhaven Port")
    )


def test_what_a_fall_back_took_does_not_stand_there():
    corpus = firm_corpus()
    gone = corpus.chunks[0].text.replace("Slatewing", "Zephyrblade").replace("Norhaven Port", "Norhaven Portal")
    at_ = gone.index("Zephyrblade")
    run = Changed({0: gone}, {}, {0: ((at_, at_ + 11, "Product", "pseudonym"),)})
    assert make_intruder_item(corpus, 0, run) == Item(gone, (), ("Zephyrblade",))
    kept = Changed({0: corpus.chunks[0].text.upper()}, {})
    assert make_intruder_item(corpus, 0, kept).entities == ("slatewing", "norhaven port")


def test_checks():
    corpus = firm_corpus()
    runs = [exchanged(corpus, [(k, 12 + k) for k in range(n)]) for n in (12, 6)]
    made = check_runs(corpus, runs, folds=4, seed=2)
    assert [a.intruder for a in made.attacks] == ["entities", "words"]
    for attack in made.attacks:
        assert attack.before.value == 1 and attack.before.n == 2
        assert sum(attack.table) == 24 + 12
        assert attack.chance == 0.5
        assert attack.second.value == 1  # of two classes
        assert attack.asymptotic <= 1 and attack.exact <= 1
    entities, words = made.attacks
    assert set(entities.told) == {"interchanged"} and set(words.told) == {"altered", "interchanged"}
    assert words.after.value == 1 and words.told["altered"].value == 1  # topics are left
    assert {"granite", "dairy"} <= {term for term, _ in words.terms}
    assert words.table == (36, 0, 0, 0) and words.exact == 1
    rows = {row.name: row for row in made.panel.rows}
    assert made.panel.texts == rows["partners"].identified.n == 24 and rows["told"].identified.value == 1
    assert rows["document"].identified.n == 4 and rows["document"].among == "4 halves of documents"
    guessed = made.guessed(1)
    assert sorted(guessed) == [*range(6), *range(12, 18)]
    assert guessed[0]["words"] == (True, True)
    assert set(guessed[0]) == {"entities", "words"}


def test_whoever_is_told_where_terms_went_finds_them():
    firms = {name: ("goods", product, "Norhaven Port") for name, (_, product, _) in FIRMS.items()}
    corpus = firm_corpus(firms)
    made = check_runs(corpus, [exchanged(corpus, [(k, 12 + k) for k in range(12)])])
    for attack in made.attacks:
        assert attack.before.value == 1 and attack.after.value == 0
        assert attack.told["interchanged"].value == 1
        assert attack.table == (0, 24, 0, 0) and attack.exact == pytest.approx(2 * 0.5**24)


def test_a_chunk_that_is_what_it_was_does_not_count():
    corpus = firm_corpus()
    run = exchanged(corpus, [(0, 12)])
    idle = Changed({**run.texts, 5: corpus.chunks[5].text}, run.placed)
    assert sorted(check_runs(corpus, [idle]).guessed()) == [0, 12]
    nothing = check_runs(corpus, [Changed({}, {})])
    assert nothing.guessed() == {}
    assert [a.table for a in nothing.attacks] == [(0, 0, 0, 0)] * 2
    assert not nothing.panel.worst.is_measured


def test_progress_and_repr():
    corpus = firm_corpus()
    steps = []
    run = exchanged(corpus, [(k, 12 + k) for k in range(12)])
    made = check_runs(corpus, [run], ["words"], folds=3, progress=lambda *step: steps.append(step))
    assert steps == [("check words", n, 3) for n in (1, 2, 3)] + [("check panel", n, 4) for n in (1, 2, 3, 4)]
    assert "granite" not in repr(made) and "Slatewing" not in repr([made, run])


def test_outside_texts_are_learnt_from_too():
    corpus = firm_corpus()
    run = exchanged(corpus, [(0, 12)])
    outside = [(Item("butterlane butterlane butterlane", ("butterlane",)), "Quarrystone")] * 30
    before = check_runs(corpus, [run], ["entities"]).studies[0].stages["after"]
    after = check_runs(corpus, [run], ["entities"], background=outside).studies[0].stages["after"]
    assert before.scores.tolist() != after.scores.tolist()


def test_calls_that_make_no_sense():
    corpus = firm_corpus()
    with pytest.raises(DataError, match="all documents have the same 'company'"):
        check_runs(firm_corpus(same=True), [])
    with pytest.raises(UnknownNameError, match="did you mean: entities"):
        check_runs(corpus, [], ["entitys"])
    with pytest.raises(UsageError, match="settings for llm, which is none"):
        check_runs(corpus, [], ["words"], most={"llm": 1})


def test_a_language_model_judges_some_of_the_runs(server):  # noqa: F811
    pytest.importorskip("httpx")
    server.then = at.answer('{"first": "Tarnfield", "second": "Quarrystone"}')
    corpus = firm_corpus()
    runs = [exchanged(corpus, [(k, 12 + k)]) for k in range(3)]
    options = {"llm": {"settings": {"url": server.url, "model": "m"}}}
    made = check_runs(corpus, runs, ["llm", "entities"], options=options, most={"llm": 1})
    assert [sum(a.table) for a in made.attacks] == [2, 6]
    assert made.attacks[0].after.value == 0.5 and made.attacks[0].second.value == 1
    assert made.attacks[0].told.keys() == {"altered", "interchanged"}
    assert len(server.seen) == 2 + 3 * 2  # before, after, twice told
    assert set(made.guessed(0)[0]) == {"llm", "entities"} and set(made.guessed(1)[1]) == {"entities"}
