"""The report of a run: counts and versions, and no text."""

from __future__ import annotations

import json

from tests.files.test_run import records

from allonym.files import anonymize_path


def test_report_counts_and_holds_no_text(run, tmp_path, policy):
    _, report = run("a.jsonl", records(10), report=tmp_path / "r.json")
    written = json.loads((tmp_path / "r.json").read_text())
    assert written["documents"] == 10 and written["quarantined"] == 1 and written["labels"] == {"EMAIL_ADDRESS": 9}
    assert written["operators"] == {"tag": 9} and written["files"] == 1 and len(written["digest"]) == 64
    assert written["settings"]["fingerprint"] == policy.fingerprint() and "python" in written["versions"]
    assert {"numpy", "onnxruntime"} <= written["versions"].keys()
    assert written["reader"]["replaced"] == report.reader.replaced == 9 and written["reader"]["split"] == 0
    assert "readability: " in report.to_text()
    assert "example.com" not in report.to_json() + report.to_text() + repr(report)
    assert report.exit_code == 1


def test_the_report_names_model_and_processor_of_a_tagger_whatever_else_is_loaded(tmp_path, policy):
    import onnxruntime  # noqa: F401

    (tmp_path / "a.txt").write_text("a@example.com")
    rules = anonymize_path(tmp_path / "a.txt", tmp_path / "b.txt", policy)
    tagged = anonymize_path(tmp_path / "a.txt", tmp_path / "c.txt", "default")
    assert tagged.versions.keys() - rules.versions.keys() == {"english model", "processor"}


def test_the_report_of_a_table_suggests_to_name_fields(tmp_path, policy):
    (tmp_path / "a.csv").write_text("id,text\n1,a@example.com\n")
    assert "--field NAME" in anonymize_path(tmp_path / "a.csv", tmp_path / "b.csv", policy).to_text()
    named = anonymize_path(tmp_path / "a.csv", tmp_path / "c.csv", policy, fields=["text"])
    assert "--field NAME" not in named.to_text()
