"""The function for ``datasets.map``, against the installed package."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from allonym import registry
from allonym.batch import run_records
from allonym.document import Document
from allonym.errors import MissingExtra, UnknownNameError, UsageError
from allonym.integrations.datasets import mapper
from allonym.policy import Policy

datasets = pytest.importorskip("datasets", reason="datasets is not installed")
pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
# Its processes are forks, of which newer Pythons warn.
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::DeprecationWarning")]
RULES = Policy.load("pseudonyms").with_(detectors=("rules",))
KEY = "a key only for the tests, 32 byte"
TEXTS = [
    "Mail ada@example.com now, please do",
    None,
    "Call 212-555-0142, or ada@example.com",
    "Nothing",
    "SSN 536-22-1234 it is",
]


@pytest.fixture
def dataset(tmp_path):
    made = datasets.Dataset.from_dict({"id": list(range(5)), "text": TEXTS, "more": ["x"] * 5})
    made.save_to_disk(str(tmp_path / "data"))
    return datasets.load_from_disk(str(tmp_path / "data"))


def expected(texts=TEXTS):
    results = run_records([Document("", text or "") for text in texts], RULES, KEY)
    return [None if t is None else r.parts[0] for t, r in zip(texts, results, strict=True)]


def test_a_column_is_treated_whatever_the_batches_and_processes(dataset, tmp_path):
    function = mapper(RULES, columns="text", key=KEY)
    whole = dataset.map(function, batched=True)
    assert whole[:]["text"] == expected()
    assert whole[:]["allonym_error"] == [""] * 5
    assert whole[:]["id"] == list(range(5)) and whole.features["text"] == dataset.features["text"]
    single = dataset.map(function, batched=True, batch_size=1)
    assert single[:] == whole[:]
    spread = dataset.map(function, batched=True, num_proc=2)
    assert spread[:] == whole[:]
    written = [p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()]
    assert len(written) > 4 and not any(KEY.encode() in content for content in written)


def test_tables_of_arrow_keep_their_types(dataset):
    function = mapper(RULES, columns="text", key=KEY, plan_column="plan", id_column="id")
    made = dataset.with_format("arrow").map(function, batched=True, batch_size=2)
    table = made[:]
    assert table.column("text").to_pylist() == expected()
    assert table.column("allonym_error").to_pylist() == [None] * 5
    assert all(plan.startswith('{"schema"') for plan in table.column("plan").to_pylist())
    assert made.features["allonym_error"].dtype == "string"
    empty = function(pa.table({"id": pa.array([], pa.int64()), "text": pa.array([], pa.string())}))
    assert empty.num_rows == 0 and empty.schema.names == ["id", "text", "plan", "allonym_error"]


def test_a_row_that_fails_has_no_text_and_a_reason(dataset, monkeypatch):
    def build(policy):
        def detector(document):
            if "Nothing" in document.text:
                raise KeyError(document.text)
            return []

        return detector

    monkeypatch.setattr(registry.detectors, "_table", {**registry.detectors._table, "bursting": build})
    function = mapper(RULES.with_(detectors=("bursting",)), columns="text", key=KEY, plan_column="plan")
    made = dataset.map(function, batched=True, batch_size=1, load_from_cache_file=False)[:]
    assert made["text"] == [TEXTS[0], None, TEXTS[2], None, TEXTS[4]]
    assert [bool(e) for e in made["allonym_error"]] == [False, False, False, True, False]
    assert made["allonym_error"][3] == "a detector failed with KeyError"
    assert made["plan"][3] == "" and made["plan"][0]


def test_columns_of_a_row_are_one_document():
    function = mapper("default", columns=["a", "b"])
    made = function({"a": ["Write to ada@example.com for it, please"], "b": ["ada@example.com is what I said"]})
    assert made["a"] == ["Write to [EMAIL_ADDRESS_1] for it, please"] and made["b"] == [
        "[EMAIL_ADDRESS_1] is what I said"
    ]


def test_what_is_wrong_is_said_and_no_value_is_quoted():
    function = mapper(RULES, columns="text", key=KEY)
    with pytest.raises(UnknownNameError, match="unknown column 'text'; did you mean: texts"):
        function({"texts": ["a"]})
    with pytest.raises(UsageError, match="holds int, and text is required") as caught:
        function({"text": ["Zaphrandel", 5]})
    assert "Zaphrandel" not in str(caught.value)
    with pytest.raises(UsageError, match="needs batched=True"):
        function({"text": "Zaphrandel"})
    with pytest.raises(UsageError, match="batches of"):
        function(["Zaphrandel"])
    with pytest.raises(UsageError, match="'allonym_error' exists already"):
        function({"text": ["a"], "allonym_error": ["b"]})
    with pytest.raises(UsageError, match="names of the columns"):
        mapper(RULES, columns=())
    with pytest.raises(UsageError, match="key"):
        mapper(RULES, columns="text")({"text": ["Mail ada@example.com"]})


def test_the_repr_shows_no_key():
    function = mapper(RULES, columns="text", key=KEY)
    assert repr(function) == "Mapper(text)" and KEY not in str(vars(function).keys())
    again = pickle.loads(pickle.dumps(function))
    assert again({"text": TEXTS}) == function({"text": TEXTS})


HASHES = """
from datasets.fingerprint import Hasher
from allonym.integrations.datasets import mapper
said = [
    Hasher.hash(mapper(policy, columns=columns, key=key))
    for policy, key, columns in (
        ("default", None, "a"), ("pseudonyms", "a key only for tests", "a"), ("pseudonyms", "another key for tests", "a"),
        ("default", None, "b"),
    )
]
"""


def test_the_cache_knows_it_again_and_tells_it_from_others():
    names: dict[str, list[str]] = {}
    exec(HASHES, names)
    source = str(Path(__file__).resolve().parents[2] / "src")
    elsewhere = subprocess.run(
        [sys.executable, "-c", HASHES + "print(*said)"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONHASHSEED": "7", "PYTHONPATH": source},
    ).stdout.split()
    assert names["said"] == elsewhere
    assert len(set(elsewhere)) == 4


def test_the_package_that_is_missing_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(MissingExtra, match=r"\[hf-datasets\]"):
        mapper(columns="text")
