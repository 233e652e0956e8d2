"""Importing a dump of Wikidata. ``dump.json`` has its exact form; people and companies in it are invented."""

from __future__ import annotations

import bz2
import gzip
import json
import tracemalloc
from pathlib import Path

import pytest

from allonym.errors import KnowledgeBaseError
from allonym.kb import KnowledgeBase
from allonym.kb.wikidata import import_dump

DUMP = Path(__file__).with_name("dump.json")


def labels(items):
    return [item.label for item in items]


def test_what_was_read(imported):
    _, done = imported
    assert done.lines == 50 and done.damaged == 2 and done.damaged_lines == [12, 22]
    assert done.kinds["city"] == 5 and done.kinds["company"] == 5 and done.kinds["country"] == 2
    assert done.entities == sum(done.kinds.values())


@pytest.mark.parametrize("text", ["Warsaw", "Warszawa", "WARSCHAU", "Warszawa City"])
def test_labels_and_aliases_are_found_in_the_languages_asked_for(imported, text):
    kb, _ = imported
    (found,) = kb.find(text)
    assert (found.id, found.kind, found.label, found.country, found.size) == (270, "city", "Warsaw", "PL", 6)


def test_other_languages_are_not_kept_and_short_by_names_of_places_neither(imported):
    kb, _ = imported
    assert not kb.find("Varšava") and not kb.find("BLN")
    assert kb.label(kb.item(270), "de") == "Warschau" and kb.label(kb.item(270), "cs") == "Warsaw"


def test_the_best_rank_counts(imported):
    kb, _ = imported
    (row,) = kb._query_rows("SELECT population FROM entity WHERE id = 64")
    assert row == (3_677_472,)


def test_relations(imported):
    kb, _ = imported
    germany = kb.item(183)
    assert germany.country == "DE"
    assert labels(kb.related(germany, "capital")) == ["Berlin"]
    assert labels(kb.related(germany, "language")) == ["German"]
    assert labels(kb.related(kb.item(900010), "city")) == ["Munich"]
    assert labels(kb.related(kb.item(270), "instance_of")) == ["city"]
    assert labels(kb.related(kb.item(900012), "part_of")) == ["Quellbrunn Software", "Germany"]


def test_regions_are_reached_through_districts(imported):
    kb, _ = imported
    assert (kb.item(1726).region, kb.item(64).region) == ("BY", "")
    assert labels(kb.related(kb.item(1726), "part_of")) == ["Bavaria", "Germany"]


def test_siblings_share_parents_and_pass_the_filters_of_the_paper(imported):
    kb, _ = imported
    assert labels(kb.siblings(kb.item(270))) == ["Kraków"]
    assert labels(kb.siblings(kb.item(1726))) == ["Karlsruhe"]
    assert labels(kb.siblings(kb.item(900010))) == ["Isarblick Data"]
    assert set(labels(kb.siblings(kb.item(186360)))) == {"midwife", "lawyer"}
    # The only city of its class: all cities of the country.
    assert labels(kb.siblings(kb.item(64))) == ["Karlsruhe", "Munich"]


def test_industry_is_the_name_of_the_item(imported):
    kb, _ = imported
    assert kb.item(900010).industry == "software industry"
    assert labels(kb.pool("company", country="DE", industry="automotive industry")) == ["Fuchsrad Motors"]


def test_what_few_wikis_know_is_left_out(imported, tmp_path):
    kb, _ = imported
    assert not kb.find("Tiny Hamlet")
    import_dump(DUMP, tmp_path / "all.sqlite", min_sitelinks=0)
    assert KnowledgeBase.open(tmp_path / "all.sqlite").find("Tiny Hamlet")


def test_real_works_are_known_but_never_a_substitute(imported):
    kb, _ = imported
    sonata = kb.find("The Quellbrunn Sonata")[0]
    assert sonata.kind == "work" and sonata not in kb.pool("work") and kb.pool("work")


def test_names_of_people_come_from_those_who_bear_them(imported):
    kb, _ = imported
    assert kb.gender("Jadwinia") == "f" and kb.gender("Wolfhelm") == "m"
    assert kb.origin(["Jadwinia", "Zawrotniak"]) == "polish"
    assert "Jadwinia" in kb.names("first", "polish", "f") and "Zawrotniak" in kb.names("last", "polish")
    assert "Quellmayr" in kb.names("last", "german")
    assert kb.famous("Wolfhelm", "Quellmayr") and not kb.famous("Jadwinia", "Zawrotniak")


def test_what_wikidata_does_not_give_is_taken_from_the_shipped_base(imported, kb):
    mine, _ = imported
    assert mine.names("first", "italian", "f") == kb.names("first", "italian", "f")
    (poles,) = mine.find("Poles", ["nationality"])
    assert labels(mine.related(poles, "country")) == ["Poland"]
    assert mine.labels(poles)["de", "noun"] == "Pole"
    assert labels(mine.pool("street", country="PL")) == labels(kb.pool("street", country="PL"))
    assert {"Wikidata", "GeoNames", "Faker"} <= {source[0] for source in mine.sources()}
    assert not [name for (name,) in mine._query_rows("SELECT name FROM sqlite_master") if name.startswith("scratch")]


@pytest.mark.parametrize(("suffix", "pack"), [(".bz2", bz2.compress), (".gz", gzip.compress)])
def test_packed_dumps_give_the_same(imported, tmp_path, suffix, pack):
    path = tmp_path / f"dump.json{suffix}"
    path.write_bytes(pack(DUMP.read_bytes()))
    assert import_dump(path, tmp_path / "packed.sqlite") == imported[1]
    assert (tmp_path / "packed.sqlite").read_bytes() == imported[0].path.read_bytes()


def test_a_torn_archive_gives_what_was_read(tmp_path):
    path = tmp_path / "dump.json.gz"
    whole = b"".join(gzip.compress(line) for line in DUMP.read_bytes().splitlines(keepends=True))
    path.write_bytes(whole[: len(whole) // 2])
    done = import_dump(path, tmp_path / "torn.sqlite")
    assert 10 < done.lines < 40 and done.damaged > 0
    assert KnowledgeBase.open(tmp_path / "torn.sqlite").find("Berlin")


ODD = [
    '{"type":"item","id":"Q1","labels":[],"aliases":[],"claims":[],"sitelinks":[]}',
    '{"type":"item","id":"Q2","labels":{"en":{"language":"en"}},"claims":{"P31":7}}',
    '{"type":"item","id":"Q3","labels":{"en":{"value":"x"}},"claims":{"P31":[1,{"mainsnak":null},{"rank":"odd"}]}}',
    '{"type":"item","id":"Q4","labels":{"en":{"value":"\\ud800"}},"claims":{"P279":[{"mainsnak":{"datavalue":{"value":"Q5"}}}]}}',
    '{"type":"item","id":"Qx","claims":{}}',
    '{"type":"item","id":"Q515","claims":null}',
]


def test_odd_entities_do_no_harm(tmp_path):
    path = tmp_path / "odd.json"
    path.write_text("[\n" + ",\n".join([*ODD, "[]", "{}", "7"]) + "\n]\n")
    done = import_dump(path, tmp_path / "odd.sqlite")
    assert done.lines == len(ODD) and done.damaged_lines == [8, 9, 10]


@pytest.mark.parametrize("content", [b"", b"[\n]\n", b"Zyxthrope\n\xff\xfe\n", b"[\n{},\n"])
def test_nothing_to_read_is_an_error_and_leaves_what_was_there(tmp_path, content):
    dump, out = tmp_path / "dump.json", tmp_path / "out.sqlite"
    dump.write_bytes(content)
    out.write_text("before")
    with pytest.raises(KnowledgeBaseError, match="no entity could be read") as caught:
        import_dump(dump, out)
    assert "Zyxthrope" not in str(caught.value)
    assert out.read_text() == "before" and sorted(p.name for p in tmp_path.iterdir()) == ["dump.json", "out.sqlite"]


def test_progress_ends_at_the_whole(tmp_path):
    told = []
    import_dump(DUMP, tmp_path / "out.sqlite", advance=lambda done, total: told.append((done, total)))
    size = 2 * DUMP.stat().st_size
    assert told == sorted(told) and told[-1] == (size, size)


@pytest.mark.slow
def test_memory_does_not_grow_with_the_dump(tmp_path):
    lines = DUMP.read_text(encoding="utf-8").splitlines()[1:-1]
    company = next(json.loads(line.rstrip(",")) for line in lines if '"id":"Q900011"' in line)

    def peak(copies: int) -> int:
        path = tmp_path / f"{copies}.json"
        with path.open("w", encoding="utf-8") as file:
            file.write("[\n" + "\n".join(lines).rstrip(",") + ",\n")
            for k in range(copies):
                file.write(json.dumps(company | {"id": f"Q{2_000_000 + k}"}) + ",\n")
            file.write("{}\n]\n")
        tracemalloc.start()
        import_dump(path, tmp_path / "grown.sqlite")
        try:
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    few, many = peak(50), peak(2000)
    assert many < 1.2 * few
