"""Data frames: the same kind comes back, other columns and the order stay, and what fails is missing, with a reason."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec

import pytest

from allonym.errors import UnknownNameError, UsageError
from allonym.scale import anonymize_frame

pa = pytest.importorskip("pyarrow")

ROWS = {
    "id": [1, 2, 3, 4],
    "text": ["Mail ada@example.com", "Nothing", None, "BOOM"],
    "note": ["cc ada@example.com", "x", "call 212-555-0142", "b@example.com"],
}
MAIL = "[EMAIL_ADDRESS_1]"
TEXTS = [f"Mail {MAIL}", "Nothing", None, None]
NOTES = [f"cc {MAIL}", "x", "call [PHONE_NUMBER_1]", None]
ERRORS = [None, None, None, "cannot be done"]


@pytest.fixture
def treat(policy, monkeypatch):
    """The call, where documents that hold BOOM fail."""
    from allonym import pipeline
    from allonym.errors import DataError

    real = pipeline.replace_found

    def replace_found(document, *args, **options):
        if "BOOM" in document.text:
            raise DataError("cannot be done")
        return real(document, *args, **options)

    monkeypatch.setattr(pipeline, "replace_found", replace_found)
    return lambda frame, **more: anonymize_frame(frame, policy, **({"columns": ["text", "note"]} | more))


def test_arrow(treat):
    table = pa.table(ROWS).replace_schema_metadata({"made": "here"})
    made = treat(table, batch_rows=2)
    assert isinstance(made, pa.Table) and made.schema.metadata == {b"made": b"here"}
    assert made.to_pydict() == {"id": ROWS["id"], "text": TEXTS, "note": NOTES, "allonym_error": ERRORS}
    (batch,) = table.to_batches()
    assert treat(batch).to_pydict() == made.to_pydict() and isinstance(treat(batch), pa.RecordBatch)
    assert treat(table.slice(0, 0)).schema == made.schema
    assert treat(batch.slice(0, 0)).num_rows == 0
    assert table.column("text").to_pylist() == ROWS["text"]


def test_a_reader_is_read_as_its_result_is(treat):
    taken = []

    def batches():
        for at in range(100):
            taken.append(at)
            yield pa.record_batch(ROWS)

    made = treat(pa.RecordBatchReader.from_batches(pa.table(ROWS).schema, batches()), plan_column="plan")
    assert isinstance(made, pa.RecordBatchReader) and made.schema.names[-2:] == ["plan", "allonym_error"]
    first = made.read_next_batch()
    assert first.column("text").to_pylist() == TEXTS and len(taken) < 5
    assert [plan is None for plan in first.column("plan").to_pylist()] == [False, False, False, True]
    assert sum(batch.num_rows for batch in made) == 99 * 4


def test_workers_change_nothing(policy):
    table = pa.table({"text": [f"a{i}@example.com and {i}" for i in range(50)]})
    one = anonymize_frame(table, policy, columns=["text"], batch_rows=7)
    assert anonymize_frame(table, policy, columns=["text"], batch_rows=7, workers=2).equals(one)
    assert one.column("text").to_pylist() == [f"{MAIL} and {i}" for i in range(50)]


def test_pandas(treat):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(ROWS, index=[7, 8, 9, 9])
    frame["other"] = [object(), 1, "x", None]  # what Arrow could not take
    frame["kind"] = pd.Categorical(["a@example.com", "x", "x", "x"])
    before = frame.copy()
    made = treat(frame, columns=["text", "note", "kind"])
    assert list(made.index) == [7, 8, 9, 9] and list(made.columns) == [*frame.columns, "allonym_error"]
    assert [None if pd.isna(v) else v for v in made["text"]] == TEXTS
    assert [None if pd.isna(v) else v for v in made["note"]] == NOTES
    assert list(made["allonym_error"]) == ERRORS and list(made["other"]) == list(frame["other"])
    assert made["kind"].iloc[0] == "[EMAIL_ADDRESS_2]" and "example" not in str(made["kind"].dtype)
    assert made["text"].dtype == frame["text"].dtype
    pd.testing.assert_frame_equal(frame, before)
    for kind in (object, "string"):
        assert treat(frame.astype({"text": kind}))["text"].dtype == kind
    assert treat(frame.iloc[:0]).empty
    assert [None if pd.isna(v) else v for v in treat(frame.assign(text=None))["text"]] == [None] * 4
    with pytest.raises(UsageError, match="must contain only text") as caught:
        treat(pd.DataFrame({"text": ["Ada", 3], "note": ["", ""]}, dtype=object))
    assert "Ada" not in str(caught.value)
    with pytest.raises(UsageError, match="several columns"):
        treat(pd.concat([frame, frame], axis=1))


def test_polars(treat):
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame(ROWS)
    made = treat(frame)
    assert made.to_dict(as_series=False) == {"id": ROWS["id"], "text": TEXTS, "note": NOTES, "allonym_error": ERRORS}
    assert made.schema["text"] == pl.String and frame["text"].to_list() == ROWS["text"]
    lazy = treat(frame.lazy())
    assert isinstance(lazy, pl.LazyFrame) and lazy.collect().equals(made)
    # A condition on the result is none on the originals.
    assert lazy.filter(pl.col("note").str.contains("ada")).collect().is_empty()
    assert lazy.filter(pl.col("note").str.contains("EMAIL")).select("id").collect()["id"].to_list() == [1]


DUCKDB = """
import duckdb, pyarrow as pa, pytest
from allonym.errors import DataError, UnknownNameError, UsageError
from allonym import pipeline
from allonym.policy import Policy
from allonym.scale import anonymize_frame
from tests.conftest import UNTAGGED
from tests.scale.test_frames import ERRORS, NOTES, ROWS, TEXTS

real = pipeline.replace_found
def replace_found(document, *args, **options):
    if "BOOM" in document.text:
        raise DataError("cannot be done")
    return real(document, *args, **options)
pipeline.replace_found = replace_found
policy = Policy.load("default").with_(detectors=UNTAGGED)
def treat(frame, **more):
    return anonymize_frame(frame, policy, **({"columns": ["text", "note"]} | more))

with duckdb.connect() as own:
    own.register("rows", pa.table(ROWS))
    made = treat(own.sql("SELECT * FROM rows ORDER BY id"), connection=own)
    for _ in range(2):  # it can be read again
        assert made.fetchall() == list(zip(ROWS["id"], TEXTS, NOTES, ERRORS, strict=True))
    made.create("safe")
    assert own.sql("SELECT count(*), count(text) FROM safe").fetchall() == [(4, 2)]
frame = duckdb.from_arrow(pa.table(ROWS))
assert len(treat(frame).fetchall()) == 4
for kind, wrong in (
    (UnknownNameError, {"columns": ["txt"]}),
    (UsageError, {"error_column": "id"}),
    (UsageError, {"columns": ["id"]}),
    (UsageError, {"batch_rows": 0}),
):
    with pytest.raises(kind):
        treat(frame, **wrong)
"""


def test_duckdb(root):
    """In a process of its own: DuckDB tells at the end, at length, what else in the process still holds of it."""
    if find_spec("duckdb") is None:
        pytest.skip("duckdb is not installed")
    path = {**os.environ, "PYTHONPATH": os.pathsep.join([str(root), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run([sys.executable, "-c", DUCKDB], env=path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("kind", ["pyarrow", "pandas", "polars", "reader"])
def test_wrong_calls_are_told_before_anything_is_read(kind, treat):
    frame = table = pa.table(ROWS)
    if kind == "reader":
        frame = pa.RecordBatchReader.from_batches(table.schema, iter(()))
    elif kind != "pyarrow":
        module = pytest.importorskip(kind)
        frame = {
            "pandas": table.to_pandas,
            "polars": lambda: module.DataFrame(ROWS),
        }[kind]()
    with pytest.raises(UnknownNameError, match="did you mean: text"):
        treat(frame, columns=["txt"])
    with pytest.raises(UnknownNameError):
        treat(frame, id_column="nope")
    with pytest.raises(UsageError, match="exists already"):
        treat(frame, error_column="id")
    with pytest.raises(UsageError, match="int64, and text"):
        treat(frame, columns=["id"])
    with pytest.raises(UsageError, match="batch_rows"):
        treat(frame, batch_rows=0)


def test_other_things_are_no_frames(treat):
    with pytest.raises(UsageError, match=r"builtins\.list is known; known: duckdb"):
        treat([1])


def test_what_arrow_says_does_not_arrive(policy, monkeypatch):
    from allonym import batch
    from allonym.errors import DataError

    def burst(*_, **__):
        raise ValueError("Ada Brook")

    monkeypatch.setattr(batch, "run_records", burst)
    with pytest.raises(DataError, match=r"cannot be anonymised \(ValueError\)") as caught:
        anonymize_frame(pa.table(ROWS), policy, columns=["text"])
    assert caught.value.__suppress_context__
