"""Values that are counted by their class: by a table of the user's, or by the knowledge base."""

import pytest

from allonym.errors import DataError, UnknownNameError
from allonym.kb.base import KnowledgeBase
from allonym.swap.recoding import recoding

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
        ("r.toml", "a = \n", "not readable as toml: TOMLDecodeError"),
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
