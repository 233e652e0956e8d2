"""The batch kernel, its Arrow face and the process pool."""

import os
import pickle
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

import allonym
from allonym.batch import (
    Failure,
    Kernel,
    format_lead_in,
    join_fields,
    run_ordered,
    run_records,
)
from allonym.document import Document, Span
from allonym.errors import AllonymError, DataError, MissingExtra, UnknownNameError, UsageError
from allonym.plan import Anonymized, Plan, apply_parts
from allonym.policy import Policy, Rule

POLICY = Policy.load("default").with_(detectors=("rules", "spoken", "lexicon", "speakers"))
MAIL = "[EMAIL_ADDRESS_1]"


def documents(count: int) -> list[Document]:
    return [
        Document.from_parts(f"d{i}", [f"a{i}@example.com", "x", f"a{i}@example.com b@example.com"])
        for i in range(count)
    ]


@pytest.fixture
def failing(monkeypatch):
    from allonym import pipeline

    real = pipeline.replace_found

    def replace_found(document, *args, **options):
        for word, error in (("BOOM", DataError("cannot be done")), ("KRACH", LookupError(document.text))):
            if word in document.text:
                raise error
        return real(document, *args, **options)

    monkeypatch.setattr(pipeline, "replace_found", replace_found)


def test_kernel_gives_parts_plan_and_counts():
    (result,) = run_records(documents(1), POLICY)
    assert result.parts == (MAIL, "x", f"{MAIL} [EMAIL_ADDRESS_2]")
    assert result.report.labels == {"EMAIL_ADDRESS": 3} and result.report.operators == {"tag": 3}
    assert result.id == "d0" and result.plan.covered_intervals == tuple((s.start, s.end) for s in result.spans)
    assert apply_parts(documents(1)[0], Plan.from_dict(result.plan.to_dict())) == result.parts
    assert "example" not in repr(result) and pickle.loads(pickle.dumps(result)) == result


def test_failure_says_why_without_text(failing):
    docs = [Document("1", "BOOM secret"), Document("2", "fine a@example.com"), Document("3", "KRACH secret")]
    one, two, three = run_records(docs, POLICY)
    assert one == Failure("1", 0, "cannot be done")
    assert two.parts == (f"fine {MAIL}",)
    assert three == Failure("3", 0, "LookupError while processing it")
    assert "secret" not in repr((one, three))


def test_wrong_call_ends_the_run():
    with pytest.raises(UsageError, match="key"):
        run_records(documents(1), POLICY.with_(rules={}, default=Rule("hash")))


@given(st.lists(st.lists(st.integers(0, 3), max_size=3), max_size=4))
def test_splitting_otherwise_changes_nothing(split):
    docs = [Document(str(i), f"record {i} of u{i}@example.com") for i in range(sum(map(len, split)))]
    batches, at = [], 0
    for group in split:
        batches.append(docs[at : at + len(group)])
        at += len(group)
    assert [r for batch in batches for r in run_records(batch, POLICY)] == run_records(docs, POLICY)


def test_workers_keep_order_and_bytes():
    batches = [documents(5)] * 9
    assert list(run_ordered(_records, batches, POLICY, 2)) == list(run_ordered(_records, batches, POLICY, 1))


def _records(policy, batch):
    return run_records(batch, policy)


def test_pool_reads_only_a_little_ahead():
    taken = []

    def items():
        for i in range(100):
            taken.append(i)
            yield i

    results = run_ordered(_double, items(), 2, 2)
    assert next(results) == 0 and len(taken) <= 8
    assert next(results) == 2
    results.close()
    assert len(taken) <= 9


def test_errors_of_workers_arrive_as_they_are():
    with pytest.raises(DataError, match="number 3"):
        list(run_ordered(_double, [1, 2, -3], 2, 2))
    with pytest.raises(UsageError, match="workers"):
        run_ordered(_double, [], 2, 0)


def test_worker_that_dies_gives_one_clear_error():
    with pytest.raises(AllonymError, match="worker process died"):
        list(run_ordered(_double, [1, 99, 3], 2, 2))


def _double(context: int, item: int) -> int:
    if item == 99:
        os._exit(3)
    if item < 0:
        raise DataError(f"number {-item}")
    return context * item


@pytest.mark.parametrize(
    ("name", "text", "lead"),
    [
        ("firstName", "x", "first name: "),
        ("tax_number", "1", "tax number: "),
        ("text", "x", ""),
        ("note", "a\nb", ""),
        ("note", "x" * 201, ""),
        ("", "x", ""),
        ("note", "", ""),
    ],
)
def test_names_of_fields_come_before_short_texts(name, text, lead):
    assert format_lead_in(name, text) == lead


def test_named_parts_are_the_texts():
    document = join_fields("i", [("ssn", "1", "\n"), ("text", "two", "\n"), ("", "", "\n")])
    assert document.text == "ssn: 1\ntwo\n" and document.part_texts() == ("1", "two", "")
    assert join_fields("i", []).text == ""


def test_arrow_batch_keeps_the_rest(failing):
    pa = pytest.importorskip("pyarrow")
    batch = pa.record_batch(
        {
            "key": ["a", "b", "c"],
            "n": [1.5, None, 3.0],
            "text": ["a@example.com", None, "BOOM"],
            "note": pa.array(["cc a@example.com", "x", "y"]).dictionary_encode(),
        }
    ).replace_schema_metadata({"made": "here"})
    out = Kernel(POLICY, ("text", "note"), "key", plan_column="allonym_plan")(batch)
    assert out.column("text").to_pylist() == [MAIL, None, None]
    assert out.column("note").to_pylist() == [f"cc {MAIL}", "x", None]
    assert out.column("n").equals(batch.column("n")) and out.schema.metadata == {b"made": b"here"}
    assert out.column("allonym_error").to_pylist() == [None, None, "cannot be done"]
    assert [p is None for p in out.column("allonym_plan").to_pylist()] == [False, False, True]
    assert batch.column("text").to_pylist()[0] == "a@example.com"
    bare = Kernel(POLICY, ("text",), error_column="why")(batch.slice(0, 1))
    assert bare.schema.names == ["key", "n", "text", "note", "why"]


def test_arrow_batch_says_what_is_wrong():
    pa = pytest.importorskip("pyarrow")
    batch = pa.record_batch({"text": ["x"], "n": [1]})
    with pytest.raises(UnknownNameError, match="did you mean: text"):
        Kernel(POLICY, ("txt",))(batch)
    with pytest.raises(UsageError, match="int64"):
        Kernel(POLICY, ("n",))(batch)
    with pytest.raises(UsageError, match="exists already"):
        Kernel(POLICY, ("text",), error_column="n")(batch)


def test_arrow_is_optional(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtra, match="parquet"):
        Kernel(POLICY, ())(None)


def test_a_report_can_be_read_like_a_mapping():
    report = allonym.anonymize("Write to a@example.com").report
    assert report["labels"] == report.labels == {"EMAIL_ADDRESS": 1}
    assert dict(report) == report == pickle.loads(pickle.dumps(report))
    counts = "characters entities mentions labels operators offline unread languages"
    assert list(report) == counts.split()
    with pytest.raises(KeyError):
        report["text"]


def test_a_document_that_ran_out_of_memory_is_tried_again(monkeypatch):
    calls: list[str] = []

    def detect_once(document: Document, *_: object) -> tuple[Span, ...]:
        calls.append(document.id)
        if document.id == "always" or calls == ["once"]:
            raise MemoryError
        return ()

    monkeypatch.setattr("allonym.pipeline.detect_with_key", detect_once)
    outcomes = run_records([Document("once", "a"), Document("always", "b")], "default")
    assert calls == ["once", "once", "always", "always"]
    assert isinstance(outcomes[0], Anonymized) and outcomes[1] == Failure(
        "always", 0, "MemoryError while processing it"
    )
