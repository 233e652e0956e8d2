"""Contingency tables against the corpus of 12 chunks whose tables are known, and values counted by their class."""

from collections import Counter
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.swap.golden12 import NAMES, STATES, corpus, facts, index

from allonym.errors import DataError, UnknownNameError, UsageError
from allonym.kb.base import KnowledgeBase
from allonym.swap.corpus import Chunk, Corpus, Value
from allonym.swap.table import recoding, tabulate


@pytest.mark.parametrize("fact", facts("table"), ids=lambda f: "-".join(f["categories"]))
@pytest.mark.parametrize("empty", ["drop", "keep"])
def test_marginal_tables(fact, empty):
    table = tabulate(corpus(), fact["categories"], empty_cells=empty)
    assert {str(j): s for j, s in table.frequencies().items()} == fact[empty]["frequencies"]
    assert table.n == fact[empty]["n"]
    assert {NAMES[i] for i in table.uniques()} == set(fact["uniques"])


@pytest.mark.parametrize("fact", facts("table"), ids=lambda f: "-".join(f["categories"]))
@pytest.mark.parametrize("empty", ["drop", "keep"])
def test_a_marginal_of_the_full_table_is_the_table_of_its_categories(fact, empty):
    full = tabulate(corpus(), empty_cells=empty)
    assert full.categories == tuple(STATES)
    marginal = full.marginal(fact["categories"])
    direct = tabulate(corpus(), fact["categories"], empty_cells=empty)
    assert (marginal.cells, list(marginal.cells)) == (direct.cells, list(direct.cells))


def test_cells_are_sets_in_the_order_of_the_chunks():
    table = tabulate(corpus(), ["Organization", "Product"])
    first, chunks = next(iter(table.cells.items()))
    assert first == (frozenset({"ardmoor", "tesmica", "xylonex"}), frozenset({"cachelink"}))
    assert chunks == (index("y1"),)
    assert table.cells[frozenset({"ardmoor"}), frozenset({"cachelink"})] == (index("y3"), index("y11"))


def test_doubles_and_what_one_document_says_alone():
    here = corpus()
    table = tabulate(here, ["Organization", "Product"])
    pairs = {frozenset(NAMES[i] for i in pair) for pair in table.doubles()}
    assert pairs == {frozenset(p) for p in (("y2", "y4"), ("y3", "y11"), ("y6", "y7"))}
    assert table.doubles(here) == ()
    own = {NAMES[i] for cell in table.list_single_class_cells(here) for i in table.cells[cell]}
    assert own == {"y1", "y5", "y8", "y12"}
    orgs = tabulate(here, ["Location"])
    assert {tuple(NAMES[i] for i in pair) for pair in orgs.doubles(here)} == {("y8", "y11")}
    assert {next(iter(cell[0])) for cell in orgs.list_single_class_cells(here)} == {"southern isles", "tallow bay"}


def test_recoded_values_are_sets_of_classes():
    chips = recoding({"Organization": dict.fromkeys(("Ardmoor", "Tesmica", "Xylonex", "Ikhausen"), "chip maker")})
    table = tabulate(corpus(), ["Organization"], recode=chips)
    held = table.cells[(frozenset({"chip maker"}),)]
    assert {NAMES[i] for i in held} == {"y1", "y2", "y3", "y4", "y11"}
    assert {NAMES[i] for i in table.uniques()} == {"y8", "y12"}


def test_a_category_that_is_replaced_is_not_counted():
    states = STATES | {"Event": "change"}
    assert "Event" not in tabulate(corpus(states)).categories
    with pytest.raises(UsageError, match="'change'"):
        tabulate(corpus(states), ["Event"])


def test_wrong_calls_are_told():
    with pytest.raises(UnknownNameError, match="did you mean: drop"):
        tabulate(corpus(), empty_cells="drops")
    with pytest.raises(UnknownNameError, match="did you mean: Person"):
        tabulate(corpus(), ["Persons"])
    with pytest.raises(UnknownNameError, match="category of this table"):
        tabulate(corpus(), ["Person"]).marginal(["Product"])
    with pytest.raises(UsageError, match="at least one"):
        tabulate(corpus(), [])


def test_a_repr_shows_counts_only():
    assert repr(tabulate(corpus(), ["Organization", "Product"])) == "Table(Organization x Product, n=10, k=7)"


def test_no_entity_at_all_gives_an_empty_table():
    bare = Corpus((), "company", (), {"Person": "swap"}, (), (Chunk(0, 0, 1, "x"),), (), ())
    dropped, kept = tabulate(bare), tabulate(bare, empty_cells="keep")
    assert (dropped.n, dropped.k, dropped.frequencies(), dropped.uniques()) == (0, 0, {}, frozenset())
    assert (kept.n, kept.k, kept.frequencies()) == (1, 1, {1: 1})


@given(st.lists(st.lists(st.tuples(st.sampled_from("ABC"), st.sampled_from("xyz")), max_size=5), max_size=12))
def test_order_does_not_matter_and_margins_agree(rows):
    def build(rows):
        chunks = tuple(Chunk(0, i, i + 1, "", tuple(Value(c, k, (k,)) for c, k in row)) for i, row in enumerate(rows))
        return Corpus((), "company", ("one",), dict.fromkeys("ABC", "swap"), (), chunks, (), ())

    here, turned = build(rows), build([row[::-1] for row in rows])
    for empty in ("drop", "keep"):
        full = tabulate(here, empty_cells=empty)
        assert full.cells == tabulate(turned, empty_cells=empty).cells
        assert sum(j * s for j, s in full.frequencies().items()) == full.n
        assert full.n == (sum(map(bool, rows)) if empty == "drop" else len(rows))
        for pair in combinations("ABC", 2):
            direct = tabulate(here, pair, empty_cells=empty)
            assert full.marginal(pair).cells == direct.cells
            cells = Counter(tuple(chunk.keys(c) for c in pair) for chunk in here.chunks)
            if empty == "drop":
                del cells[frozenset(), frozenset()]
            assert {cell: len(chunks) for cell, chunks in direct.cells.items()} == cells


TABLE = {
    "Harrow Group Ltd": "investment bank",
    "Organization": {"Brindle & Co": "maker"},
    "CITY": {"Tallow Bay": "port"},
}


def test_values_are_compared_as_entities_are():
    here = recoding(TABLE)
    assert here("Organization", "harrow group") == "investment bank"
    assert here("Organization", "brindle") == "maker"
    assert here("Product", "brindle") == "brindle"
    assert here("CITY", "tallow bay") == "port"


def test_what_no_table_knows_stays():
    assert recoding(TABLE)("Organization", "quarmby") == "quarmby"
    assert recoding()("Person", "orr") == "orr"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("r.csv", 'value,class,category\n"Harrow, Inc.",bank,Organization\nKite,board,Product\n'),
        ("r.tsv", "class\tvalue\tcategory\nbank\tHarrow, Inc.\tOrganization\nboard\tKite\tProduct\n"),
        ("r.toml", '[Organization]\n"Harrow, Inc." = "bank"\n[Product]\nKite = "board"\n'),
        ("r.json", '{"Organization": {"Harrow, Inc.": "bank"}, "Product": {"Kite": "board"}}'),
    ],
)
def test_files(tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    here = recoding(path)
    assert here("Organization", "harrow") == "bank"
    assert here("Product", "kite") == "board"
    assert here("Organization", "kite") == "kite"
    assert repr(here) == "Recoding(2 values)"


def test_a_value_in_quotes_may_have_lines(tmp_path):
    path = tmp_path / "r.csv"
    path.write_text('value,class,category\nKite,"surf\u2028or\nboard",Product\n', encoding="utf-8")
    assert recoding(path)("Product", "kite") == "surf\u2028or\nboard"


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("r.csv", "name,class\na,b\n", "columns 'value' and 'class'"),
        ("r.csv", "value,class\na,\n", "line 2"),
        ("r.csv", "value,class,category\nA,x,Product\na,y,Product\n", "two classes"),
        ("r.toml", "a = 1\n", "all of them text"),
        ("r.toml", "a = \n", r"not readable as toml \(TOMLDecodeError\)"),
        ("r.json", "[1]", "maps values to classes"),
        ("r.xlsx", "", "a recoding is a .csv"),
    ],
)
def test_wrong_files_are_told_without_their_values(tmp_path, name, text, says):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=says):
        recoding(path)


def test_a_missing_file_and_wrong_names_are_told(tmp_path):
    with pytest.raises(DataError, match="cannot read"):
        recoding(tmp_path / "none.csv")
    with pytest.raises(UnknownNameError, match="did you mean: industry"):
        recoding({}, facts=("industri",))
    with pytest.raises(UnknownNameError, match="category"):
        recoding({"Organisation": {"a": "b"}})


def test_the_knowledge_base_knows_trades_kinds_and_countries():
    base = KnowledgeBase.open()
    bank, maker = (next(i for i in base.pool(kind) if i.industry) for kind in ("bank", "company"))
    trades = recoding(knowledge=base)
    assert trades("Organization", bank.label.lower()) == "bank"
    assert trades("Organization", maker.label.lower()) == maker.industry
    assert trades("Product", maker.label.lower()) == maker.label.lower()
    assert trades("Location", "dallas") == "city"
    assert recoding(knowledge=base, facts=("kind",))("Organization", maker.label.lower()) == "company"
    assert recoding(knowledge=base, facts=("country",))("CITY", "dallas") == "United States"
    assert recoding(knowledge=base, facts=("country",))("Location", "france") == "France"
    assert trades("Organization", "zzyx quarmby") == "zzyx quarmby"
    assert trades("Person", "dallas") == "dallas"


def test_the_users_table_comes_first():
    assert (
        recoding({"Location": {"Dallas": "the south"}}, knowledge=KnowledgeBase.open())("Location", "dallas")
        == "the south"
    )
