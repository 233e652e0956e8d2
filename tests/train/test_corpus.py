"""Recipes and parts: nothing is in two parts, and the parts are the same for everyone."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allonym.errors import DataError, UnknownNameError, UsageError
from allonym.train.corpus import (
    Recipe,
    Source,
    assign_train_dev_test,
    join_sentences_to_records,
    load_corpus,
    make_training_lists,
)
from allonym.train.examples import ALL, O
from allonym.train.records import read_json_lines

PARTS = ("train", "dev", "test")


KEYS = st.tuples(st.integers(0, 8), st.sampled_from("abc"))


def documents(n: int, sentences: int = 2) -> list[dict[str, Any]]:
    return [{"id": f"d{i}-{k}", "doc_id": f"d{i}", "text": f"Text {i} {k}"} for i in range(n) for k in range(sentences)]


@pytest.mark.parametrize("n", [30, 299, 300, 3000])
def test_a_third_is_for_judging(n: int) -> None:
    parts = assign_train_dev_test(documents(n, 1))
    counts = Counter(parts.values())
    slack = 1 if n < 300 else 0.05 * n
    assert abs(counts["test"] - n / 3) <= slack
    assert abs(counts["dev"] - n / 10) <= slack
    assert sum(counts.values()) == n and set(counts) == set(PARTS)


@given(st.integers(1, 40), st.integers(1, 3), st.randoms(use_true_random=False))
def test_the_order_of_records_does_not_matter(n: int, sentences: int, rng: Any) -> None:
    records = documents(n, sentences)
    shuffled = list(records)
    rng.shuffle(shuffled)
    assert assign_train_dev_test(records) == assign_train_dev_test(shuffled)


@given(st.lists(KEYS, max_size=40))
def test_a_document_is_in_one_part(keys: list[tuple[int, str]]) -> None:
    records = [{"id": str(i), "doc_id": f"d{d}", "text": f"{i} {word}"} for i, (d, word) in enumerate(keys)]
    assert one_part(records, [r["doc_id"] for r in records])


@given(st.lists(KEYS, max_size=40))
def test_a_template_is_in_one_part(keys: list[tuple[int, str]]) -> None:
    records = [
        {"id": str(i), "doc_id": str(i), "text": f"{i}", "meta": {"template_id": d, "source": word}}
        for i, (d, word) in enumerate(keys)
    ]
    assert one_part(records, [f"{r['meta']}" for r in records])


@given(st.lists(KEYS, max_size=40))
def test_a_text_that_is_a_document_of_its_own_is_in_one_part(keys: list[tuple[int, str]]) -> None:
    spaces = {"a": " ", "b": "\n ", "c": "  "}
    records = [{"id": str(i), "text": f"same{spaces[word]}text {d}"} for i, (d, word) in enumerate(keys)]
    assert one_part(records, [" ".join(r["text"].split()) for r in records])


def test_sentences_of_universal_dependencies_stay_together() -> None:
    records = [{"id": f"weblog-{d}-{k:04}", "text": f"{d} {k}"} for d in "abcdefgh" for k in range(5)]
    assert one_part(records, [r["id"][:-5] for r in records])
    pud = [
        {"id": f"n0100{d}{k:04}", "doc_id": f"n0100{d}-{k:04}", "text": f"{d} {k}"} for d in range(9) for k in range(5)
    ]
    assert one_part(pud, [r["doc_id"][:6] for r in pud])


def one_part(records: list[dict[str, Any]], groups: list[str]) -> bool:
    parts = assign_train_dev_test(records)
    assert set(parts) == {r["id"] for r in records}
    return len({(group, parts[r["id"]]) for group, r in zip(groups, records, strict=True)}) == len(set(groups))


def test_large_corpora_keep_their_parts_when_they_grow() -> None:
    some, more = assign_train_dev_test(documents(400)), assign_train_dev_test(documents(500))
    assert some.items() <= more.items()


# Joined sentences


@given(st.lists(st.integers(1, 9), min_size=1, max_size=6))
def test_joined_sentences_keep_their_spans(lengths: list[int]) -> None:
    records = [
        {"id": f"d{d}-{k:04}", "text": f"Ann{k} left.", "spans": [{"start": 0, "end": 3 + len(str(k)), "label": "PER"}]}
        for d, n in enumerate(lengths)
        for k in range(n)
    ]
    before = json.dumps(records)
    out = join_sentences_to_records(records)
    assert json.dumps(records) == before  # the records are left as they are
    assert " ".join(r["text"] for r in out) == " ".join(r["text"] for r in records)
    assert sum(len(r["spans"]) for r in out) == len(records)
    assert all(r["text"][s["start"] : s["end"]][:3] == "Ann" for r in out for s in r["spans"])
    for r in out:
        assert 1 <= r["text"].count("left") <= 5
        assert len({s["end"] - s["start"] for s in r["spans"]}) == 1
    assert join_sentences_to_records(records) == out


def test_documents_are_not_joined_to_each_other() -> None:
    records = [{"id": f"d{d}-0001", "text": str(d)} for d in range(20)]
    assert len(join_sentences_to_records(records)) == 20


def test_joined_tokens() -> None:
    records = [{"id": f"d-{k:04}", "text": "a b", "tokens": ["a", "b"], "upos": ["DET", "X"]} for k in range(20)]
    out = join_sentences_to_records(records)
    assert len(out) < 20
    assert all(len(r["tokens"]) == len(r["upos"]) == len(r["text"].split()) for r in out)


# Recipes


def recipe(path: Path, text: str) -> Path:
    file = path / "r.toml"
    file.write_text(text, "utf-8")
    return file


def test_the_shipped_recipe_names_no_corpus_that_may_not_be_used() -> None:
    english = Recipe.load("english")
    assert english.name == "english" and english.licence
    assert not any("noncommercial" in s.path or "wikineural" in s.path for s in english.sources)


@pytest.mark.parametrize(
    ("text", "error", "said"),
    [
        ("name = 'x'", UsageError, r"no \[\[source\]\]"),
        ("[[source]]\nkeep = 'named'", UsageError, "source 1: path is missing"),
        (
            "[[source]]\npath = 'a'\n[[source]]\npaht = 'b'",
            UnknownNameError,
            "source 2: unknown key 'paht'; did you mean: path",
        ),
        ("nmae = 'x'\n[[source]]\npath = 'a'", UnknownNameError, "unknown key 'nmae'; did you mean: name"),
        ("[[source", UsageError, "recipe .*r.toml"),
    ],
)
def test_recipe_errors(tmp_path: Path, text: str, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        Recipe.load(recipe(tmp_path, text))


def test_a_recipe_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot read recipe .*none\.toml"):
        Recipe.load(tmp_path / "none.toml")


def write(path: Path, records: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(r) + "\n" for r in records), "utf-8")


def test_load_gives_each_part_its_own_records(tmp_path: Path) -> None:
    records = [
        {"id": str(i), "doc_id": str(i), "text": f"Ann saw x{i}", "spans": [{"start": 0, "end": 3, "label": "PER"}]}
        for i in range(60)
    ]
    write(tmp_path / "c.jsonl", records)
    write(tmp_path / "w.jsonl", records)
    made = Recipe("r", (Source("c.jsonl"), Source("w.jsonl", whole=True), Source("c.jsonl", skip=("1", "2"))))
    seen: dict[str, list[list[str]]] = {}
    for part in PARTS:
        seen[part] = [sorted(e.words[-1] for e in examples) for _, examples in load_corpus(made, tmp_path, part)]
    first = [set(seen[part][0]) for part in PARTS]
    assert sorted(w for some in first for w in some) == sorted(f"x{i}" for i in range(60))
    assert [len(s) for s in seen["train"]][1] == 60 and len(seen["test"]) == len(seen["dev"]) == 2
    assert not any(w.startswith(("x1", "x2")) for part in PARTS for w in seen[part][-1])
    examples = next(iter(load_corpus(made, tmp_path, "train")))[1]
    assert sum(m != ALL for e in examples for m in e.allowed) == 3 * len(examples)


def test_spans_of_another_field_and_ordinary_labels(tmp_path: Path) -> None:
    spans = [{"start": 0, "end": 3, "label": "PER"}, {"start": 8, "end": 11, "label": "food"}]
    record = {"id": "1", "doc_id": "1", "text": "Ann ate pie.", "spans": [], "names": spans}
    write(tmp_path / "c.jsonl", [record])
    source = Source("c.jsonl", field="names", drop=("food",), whole=True)
    [(_, [example])] = list(load_corpus(Recipe("r", (source,)), tmp_path))
    assert not example.allowed[0] & O and example.allowed[2] & O
    [(_, [without])] = list(load_corpus(Recipe("r", (Source("c.jsonl", whole=True),)), tmp_path))
    assert without.allowed[0] & O


def test_unlabelled_text_is_for_training_alone(tmp_path: Path) -> None:
    write(
        tmp_path / "c.jsonl",
        [{"id": str(n), "doc_id": str(n), "text": "We saw Ann in the old mill by a river."} for n in range(9)],
    )
    unlabelled = Recipe("r", (Source("c.jsonl", keep="ordinary"),))
    [(_, examples)] = list(load_corpus(unlabelled, tmp_path))
    assert len(examples) == 9 and examples[0].allowed[2] == ALL and examples[0].allowed[5] != ALL
    assert not list(load_corpus(unlabelled, tmp_path, "dev"))


def test_a_missing_corpus_is_told(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"none\.jsonl: the recipe requires this file"):
        list(load_corpus(Recipe("r", (Source("none.jsonl"),)), tmp_path))


def test_broken_lines_are_told_without_the_text(tmp_path: Path) -> None:
    (tmp_path / "c.jsonl").write_text('{"id": "1", "text": "a"}\n{"id": Canary\n', "utf-8")
    with pytest.raises(DataError, match=r"c\.jsonl:2: not JSON at column 8") as caught:
        list(read_json_lines(tmp_path / "c.jsonl"))
    assert "Canary" not in str(caught.value)


def test_packed_files(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "c.jsonl.gz", "wt", encoding="utf-8") as out:
        out.write('{"id": "1", "text": "é"}\n')
    assert list(read_json_lines(tmp_path / "c.jsonl.gz")) == [(1, {"id": "1", "text": "é"})]


def test_own_lists_hold_names_in_lower_case() -> None:
    lists = make_training_lists()
    assert lists.places and lists.terms
    for some in (lists.first, lists.last, *lists.places.values(), *lists.terms.values()):
        assert len(some) > 50
        assert all(item and item == item.lower() for item in some)
