"""Pairs of texts from files and folders: what belongs together, and what has no partner."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rows import check_each_row

from allonym.errors import DataError, UnknownNameError, UsageError
from allonym.evaluate.pairs import get_metadata_value, read_pairs

SECRET = "Zaphrandel"


def lines(path: Path, *records: dict) -> Path:
    path.write_text("".join(json.dumps(r) + "\n" for r in records), encoding="utf-8")
    return path


@pytest.fixture
def both(tmp_path):
    """Two record files, the second in another order."""
    one = lines(
        tmp_path / "a.jsonl",
        {"id": "x1", "text": f"{SECRET} met Ann.", "town": "Ulm", "meta": {"class": 1, "who": {"age": 30}}},
        {"id": "x2", "text": "Bob slept.", "town": "Bern", "meta": {"class": 2}},
    )
    other = lines(tmp_path / "b.jsonl", {"id": "x2", "text": "NAME slept."}, {"id": "x1", "text": "NAME met NAME."})
    return one, other


def test_records_go_together_by_id(both):
    pairs = read_pairs(*both)
    assert pairs.ids == ("x1", "x2")
    assert pairs.original == (f"{SECRET} met Ann.", "Bob slept.")
    assert pairs.anonymised == ("NAME met NAME.", "NAME slept.")
    assert len(pairs) == 2


def test_labels_by_key_and_path(both):
    pairs = read_pairs(*both)
    assert pairs.labels("town") == ["Ulm", "Bern"]
    assert pairs.labels("meta.class") == pairs.labels("class") == ["1", "2"]
    with pytest.raises(DataError, match=r"1 of 2 texts have no 'meta\.who\.age', the first is number 2"):
        pairs.labels("meta.who.age")
    with pytest.raises(UnknownNameError, match="did you mean: town"):
        pairs.labels("towns")


def test_labels_without_metadata(tmp_path):
    (tmp_path / "a.txt").write_text("one", encoding="utf-8")
    with pytest.raises(UsageError, match="no metadata"):
        read_pairs(tmp_path / "a.txt", tmp_path / "a.txt").labels("town")


def test_records_without_ids_go_by_position(tmp_path):
    one = lines(tmp_path / "a.jsonl", {"text": "a"}, {"text": "b"})
    other = lines(tmp_path / "b.jsonl", {"text": "A"}, {"text": "B"})
    pairs = read_pairs(one, other)
    assert (pairs.ids, pairs.anonymised) == (("1", "2"), ("A", "B"))
    more = lines(tmp_path / "c.jsonl", {"text": "A"}, {"text": "B"}, {"text": "C"})
    with pytest.raises(DataError, match="since none has an id; got 3 for 2"):
        read_pairs(one, more)


def test_one_file_with_two_fields(tmp_path):
    path = tmp_path / "a.jsonl.gz"
    with gzip.open(path, "wt", encoding="utf-8") as stream:
        stream.write(json.dumps({"id": "1", "text": "Ann", "safe": "NAME", "deep": {"er": "TAG"}}) + "\n")
    assert read_pairs(path, anonymised_field="safe").anonymised == ("NAME",)
    assert read_pairs(path, anonymised_field="deep.er").anonymised == ("TAG",)
    assert read_pairs(path, field="safe", anonymised_field=["text", "safe"]).anonymised == ("Ann\nNAME",)
    with pytest.raises(UsageError, match="an anonymised version is required"):
        read_pairs(path)
    with pytest.raises(UnknownNameError, match="nowhere"):
        read_pairs(path, anonymised_field="nowhere")


def test_all_text_where_there_is_no_field_text(tmp_path):
    one = lines(tmp_path / "a.jsonl", {"id": "1", "review": "good", "title": "Ann"})
    assert "good" in read_pairs(one, one).original[0]
    assert "Ann" in read_pairs(one, one).original[0]
    assert read_pairs(one, one, field="review").original == ("good",)


def test_folders_go_by_relative_path(tmp_path):
    for version in ("raw", "safe"):
        folder = tmp_path / version
        (folder / "deep").mkdir(parents=True)
        (folder / "b.txt").write_text(f"{version} b", encoding="utf-8")
        (folder / "deep" / "a.txt").write_text(f"{version} a", encoding="utf-8")
        lines(folder / "c.jsonl", {"text": f"{version} c"}, {"text": f"{version} d"})
    pairs = read_pairs(tmp_path / "raw", tmp_path / "safe")
    assert pairs.ids == ("b.txt", "c.jsonl:1", "c.jsonl:2", "deep/a.txt")
    assert pairs.anonymised == ("safe b", "safe c", "safe d", "safe a")
    (tmp_path / "safe" / "b.txt").unlink()
    (tmp_path / "safe" / "z.txt").write_text("more", encoding="utf-8")
    with pytest.raises(
        DataError, match=r"1 of the 4 documents of \S+raw are missing, the first is 1; 1 of its 4 .* the first is 4"
    ):
        read_pairs(tmp_path / "raw", tmp_path / "safe")
    with pytest.raises(UsageError, match="two files or two folders"):
        read_pairs(tmp_path / "raw", tmp_path / "safe" / "z.txt")


def test_what_has_no_partner(both, tmp_path):
    one = both[0]
    fewer = lines(tmp_path / "c.jsonl", {"id": "x2", "text": "B"})
    with pytest.raises(DataError, match=r"1 of the 2 documents of .* are missing, the first is 1") as error:
        read_pairs(one, fewer)
    assert SECRET not in str(error.value)
    bare = lines(tmp_path / "d.jsonl", {"text": "a"}, {"text": "b"})
    with pytest.raises(DataError, match="one version has ids, the other has none"):
        read_pairs(one, bare)


def test_ids_twice_and_ids_here_and_there(tmp_path):
    twice = lines(tmp_path / "a.jsonl", *({"id": i, "text": "t"} for i in ("p", "q", "p")))
    with pytest.raises(DataError, match="1 of 3 ids stand there before, the first is number 3"):
        read_pairs(twice, twice)
    partly = lines(tmp_path / "b.jsonl", {"id": "p", "text": "t"}, {"text": "t"})
    with pytest.raises(DataError, match="1 of 2 records have no id, the first is number 2"):
        read_pairs(partly, partly)


def test_nothing_to_read(tmp_path, both):
    with pytest.raises(UsageError, match="there is no file"):
        read_pairs(tmp_path / "none.txt", both[0])
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="no document"):
        read_pairs(tmp_path / "empty", tmp_path / "empty")
    blank = lines(tmp_path / "blank.jsonl", {"id": "x1", "text": " "}, {"id": "x2", "text": ""})
    with pytest.raises(DataError, match=r"no text in it$"):
        read_pairs(both[0], blank)
    with pytest.raises(DataError, match="no text in it in text"):
        read_pairs(both[0], blank, field="text")
    with pytest.raises(UnknownNameError, match="unknown field 'texts'; did you mean: text"):
        read_pairs(both[0], both[0], field="texts")
    with pytest.raises(DataError, match="no text in it"):
        read_pairs(both[0], blank)


def test_metadata_of_a_table(tmp_path):
    for version in ("raw", "safe"):
        (tmp_path / version).mkdir()
        for name in "ab":
            (tmp_path / version / f"{name}.txt").write_text(f"{version} {name}", encoding="utf-8")
    table = tmp_path / "about.csv"
    table.write_text("file,subject\na.txt,Ann\nb,Bob\n", encoding="utf-8")
    pairs = read_pairs(tmp_path / "raw", tmp_path / "safe", metadata=table)
    assert pairs.labels("subject") == ["Ann", "Bob"]
    table.write_text("file,subject\nz.txt,Ann\n", encoding="utf-8")
    with pytest.raises(DataError, match="no row names any of the 2"):
        read_pairs(tmp_path / "raw", tmp_path / "safe", metadata=table)
    table.write_text("file,subject\na,Ann\na,Bob\n", encoding="utf-8")
    with pytest.raises(DataError, match="two rows"):
        read_pairs(tmp_path / "raw", tmp_path / "safe", metadata=table)


def test_nothing_shows_texts(both):
    shown = repr(read_pairs(*both)) + str(read_pairs(*both))
    assert SECRET not in shown
    assert "x1" not in shown
    assert shown.startswith("Pairs(2)")


@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=20), min_size=1, max_size=8), st.randoms())
def test_any_order_of_the_second_file_gives_the_same_pairs(tmp_path_factory, texts, random):
    folder = tmp_path_factory.mktemp("pairs")
    records = [{"id": f"n{i}", "text": f"{t}."} for i, t in enumerate(texts)]
    one = lines(folder / "a.jsonl", *records)
    mixed = random.sample(records, len(records))
    pairs = read_pairs(one, lines(folder / "b.jsonl", *mixed))
    assert pairs.original == pairs.anonymised == tuple(f"{t}." for t in texts)


@check_each_row(
    "meta, key, value",
    [
        ({"a": 1}, "a", "1"),
        ({"a": 0.5}, "a", "0.5"),
        ({"a": True}, "a", "true"),
        ({"a": [" x "]}, "a", "x"),
        ({"a": ["x", "y"]}, "a", ""),
        ({"a": None}, "a", ""),
        ({"first_name": "Z"}, "First Name", "Z"),
        ({"m": {"a": {"b": "c"}}}, "m.a.b", "c"),
        ({"b": "c"}, "m.b", "c"),
    ],
)
def test_values(meta, key, value):
    assert get_metadata_value(meta, key) == value


def test_pairs_are_frozen(both):
    with pytest.raises(AttributeError):
        read_pairs(*both).ids = ()
