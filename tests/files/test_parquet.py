"""Parquet: schema, other columns, row groups and compression stay."""

import io

import pytest

from allonym.errors import DataError, UnknownNameError

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
MAIL = "[EMAIL_ADDRESS_1]"


def table() -> "pa.Table":
    return pa.table(
        {
            "id": [f"r{i}" for i in range(6)],
            "text": pa.array(["mail a@example.com", None, "", "x", "y", "z"], pa.large_string()),
            "n": pa.array([1, None, 3, 4, 5, 6], pa.int32()),
            "kind": pa.array(["a@example.com", "k", "k", "k", "k", "k"]).dictionary_encode(),
            "deep": [[{"who": "a@example.com", "n": 1}], [], None, [{"who": None, "n": 2}], [], []],
            "at": pa.array([1, 2, 3, 4, 5, 6], pa.timestamp("ns", "UTC")),
        }
    ).replace_schema_metadata({"made": "here"})


def file(data: "pa.Table", **options) -> bytes:
    out = io.BytesIO()
    pq.write_table(data, out, **options)
    return out.getvalue()


@pytest.mark.parametrize("workers", [1, 2])
def test_everything_else_stays(run, workers):
    data = file(table(), compression="zstd", row_group_size=4)
    out, report = run("a.parquet", data, workers=workers)
    before, after = (pq.ParquetFile(io.BytesIO(b)) for b in (data, out))
    assert after.schema_arrow.equals(before.schema_arrow, check_metadata=True)
    assert after.metadata.num_row_groups == 2 and after.metadata.row_group(0).column(0).compression == "ZSTD"
    old, new = before.read(), after.read()
    for name in ("id", "n", "at"):
        assert old.column(name).equals(new.column(name))
    assert new.column("text").to_pylist() == [f"mail {MAIL}", None, "", "x", "y", "z"]
    assert new.column("kind").to_pylist()[0] == MAIL and new.column("deep").to_pylist()[0] == [{"who": MAIL, "n": 1}]
    assert report.documents == 6 and set(report.left) == {"id", "n", "at", "kind"}
    assert set(report.treated) == {"text", "deep.who"} and report.exceptions == 1


def test_named_columns_only(run):
    out, _ = run("a.parquet", file(table()), fields=["deep.who"])
    new = pq.read_table(io.BytesIO(out))
    assert new.column("text")[0].as_py() == "mail a@example.com" and new.column("deep")[0].as_py()[0]["who"] == MAIL
    with pytest.raises(UnknownNameError, match="text"):
        run("a.parquet", file(table()), fields=["texd"])


def test_failing_rows_are_left_out(run, failing, tmp_path):
    data = file(pa.table({"id": ["a", "b"], "text": ["KRACH secret", "a@example.com"]}))
    out, report = run("a.parquet", data)
    assert pq.read_table(io.BytesIO(out)).to_pylist() == [{"id": "b", "text": MAIL}]
    assert report.quarantined == 1
    assert (tmp_path / "out-a.parquet.quarantine.jsonl").read_text() == (
        '{"id": "a", "row": 1, "reason": "KeyError while processing it"}\n'
    )


def test_bytes_are_left_out_unless_the_policy_keeps_them(run, policy):
    data = file(pa.table({"raw": [b"a@example.com"], "text": ["x"]}))
    out, report = run("a.parquet", data)
    assert pq.read_table(io.BytesIO(out)).to_pylist() == [{"raw": None, "text": "x"}]
    assert "binary values left out (1)" in report.to_text()
    for keeping in (policy.with_(images="keep"), policy.with_(columns={"raw": "keep"})):
        assert (
            pq.read_table(io.BytesIO(run("a.parquet", data, keeping)[0])).column("raw")[0].as_py() == b"a@example.com"
        )
    assert run("a.parquet", data, fields=["text"])[1].documents == 1


def test_numbers_that_identify_become_text_and_a_value_has_one_replacement(run):
    numbers = [40127, 40128, 40127, 40129] * 20
    data = file(pa.table({"customer_id": numbers, "total": [1.5, 2, 3, 1999.99] * 20}), row_group_size=30)
    for workers in (1, 2):
        new = pq.read_table(io.BytesIO(run("a.parquet", data, workers=workers)[0]))
        assert (
            new.schema.field("customer_id").type == pa.string()
            and new.column("total").to_pylist() == [1.5, 2, 3, 1999.99] * 20
        )
        assert new.column("customer_id").to_pylist() == [f"[ACCOUNT_NUMBER_{n}]" for n in (1, 2, 1, 3)] * 20


def test_empty_and_broken(run):
    out, report = run("a.parquet", file(table().slice(0, 0)))
    assert pq.read_table(io.BytesIO(out)).num_rows == 0 and report.documents == 0
    with pytest.raises(DataError, match="not a Parquet file"):
        run("b.parquet", b"PAR1 no")


def test_bytes_that_are_no_text_are_refused_without_quoting_them(run):
    broken = pa.array([b"Ada \xab Brook"]).cast(pa.large_binary()).view(pa.large_string())
    with pytest.raises(DataError, match="no valid values") as caught:
        run("a.parquet", file(pa.table({"text": broken})))
    assert "Brook" not in str(caught.value)
