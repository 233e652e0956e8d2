"""``allonym project``: from files to a verified release by command line alone."""

from __future__ import annotations

import csv
import json
import zipfile
from pathlib import Path

import pytest
from tests.mails import make_docx, make_pdf


@pytest.fixture
def study(run, tmp_path, monkeypatch, untagged_file):
    """A project ``study`` with its secret in ``key``, and four files in ``in``."""
    monkeypatch.delenv("ALLONYM_VAULT_KEY", raising=False)
    monkeypatch.chdir(tmp_path)
    sources = tmp_path / "in"
    sources.mkdir()
    (sources / "ada.txt").write_text("Write to Ada Brook at ada@larkspur.example. Ada is the only pilot.\n")
    (sources / "rows.csv").write_text("id,comment\n1,Mail jim@larkspur.example\n2,It came late\n")
    (sources / "letter.docx").write_bytes(make_docx())
    (sources / "letter.pdf").write_bytes(make_pdf())
    assert run("project", "init", "study", "--policy", str(untagged_file), "--new-secret-file", "key").code == 0
    result = run("project", "add", "study", "in", "--secret-file", "key")
    assert (result.code, result.out) == (0, "") and "files 4, documents 5" in result.err
    return "study", "--secret-file", "key"


def fill(path, verdict="ok", missed=""):
    with Path(path).open(encoding="utf-8-sig", newline="") as stream:
        rows = list(csv.DictReader(stream))
    for row in rows:
        row["verdict"] = verdict
        if missed and missed.partition("=")[0] in row["text"] and row["row"] == "passage":
            row["missed"] = missed
    with Path(path).open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def test_no_secret_is_left_where_no_project_could_be_made(run, tmp_path):
    (tmp_path / "study").mkdir()
    (tmp_path / "study" / "project.vault").write_bytes(b"another's")
    result = run("project", "init", str(tmp_path / "study"), "--new-secret-file", str(tmp_path / "key"))
    assert result.code in (1, 2) and not (tmp_path / "key").exists()


def test_from_files_to_a_verified_release_with_two_reviewers(run, study):
    pytest.importorskip("scipy")
    assert run("project", "correct", *study, "late", "--always", "EVENT").code == 0
    assert run("project", "release", *study).code == 2
    for reader in ("ann", "ben"):
        assert run("project", "review", *study, "--export", f"{reader}.csv", "--reviewer", reader).code == 0
        fill(f"{reader}.csv", missed="only pilot=OCCUPATION" if reader == "ann" else "")
        result = run("project", "review", *study, "--import", f"{reader}.csv", "--reviewer", reader)
        assert result.code == 0 and "readings 5, done 5" in result.err
    assert run("project", "review", *study, "--export", "v.csv", "--reviewer", "rita", "--verdict").code == 0
    fill("v.csv")
    assert run("project", "review", *study, "--import", "v.csv", "--reviewer", "rita", "--verdict").code == 0
    shown = json.loads(run("project", "review", *study, "--json").out)
    assert {row["state"] for row in shown["documents"]} == {"done"}
    assert shown["agreement"]["words"]["by_nobody"] == 0 and shown["agreement"]["same"] == 4
    result = run("project", "release", *study, "out.zip", "--json")
    written = json.loads(result.out)
    assert (result.code, written["files"], written["reviewed"]) == (0, 4, 5)
    with zipfile.ZipFile("out.zip") as archive:
        texts = "".join(archive.read(n).decode() for n in archive.namelist() if n.endswith((".txt", ".csv")))
    assert "only pilot" not in texts and "larkspur" not in texts and "late" not in texts
    checked = run("project", "verify", "out.zip", "--public-key", written["public_key"])
    assert checked.code == 0 and "5 of 5 documents were settled" in checked.err
    assert run("project", "verify", "out.zip", "--public-key", "0" * 64).code == 1
    status = json.loads(run("project", "status", *study, "--json").out)
    assert (status["releases"], status["states"]["done"], status["unseen"]) == (1, 5, 0)


def test_alone(run, study):
    result = run("project", "release", *study, "--unreviewed")
    assert result.code == 0 and "0 of 5 documents" in result.out
    assert run("project", "verify", "study/releases/release-001.zip").code == 0


def test_status_and_findings_fit_a_screen(run, study):
    result = run("project", "status", *study)
    assert result.code == 0 and len(result.out.splitlines()) < 24 and "release study" not in result.err
    assert "ada.txt" in result.out and "next" in result.out
    result = run("project", "findings", *study, "--label", "email_address", "--documents")
    assert result.code == 0 and "ada@larkspur.example" in result.out and "0001-00001" in result.out
    rows = [json.loads(line) for line in run("project", "findings", *study, "--json").out.splitlines()]
    assert {row["label"] for row in rows} and all(row["surfaces"] for row in rows)


def test_what_is_refused_is_told_and_ends_with_one(run, study):
    Path("broken.docx").write_bytes(b"PK")
    result = run("project", "add", *study[:1], "broken.docx", "in/ada.txt", *study[1:])
    assert result.code == 1 and "broken.docx: " in result.err and "ada.txt is in the project already" in result.err


def test_people_are_joined_and_parted(run, study):
    Path("people.txt").write_text("Ms Jane Whitcombe met Dr Tom Quillon.\n")
    assert run("project", "add", study[0], "people.txt", *study[1:]).code == 0
    assert run("project", "correct", *study, "Jane Whitcombe", "--always", "PERSON").code == 0
    assert run("project", "correct", *study, "Tom Quillon", "--always", "PERSON").code == 0
    result = run("project", "join", study[0], "Jane Whitcombe", "Tom Quillon", *study[1:])
    assert result.code == 0 and "anonymised again: files" in result.err
    assert run("project", "part", study[0], "Jane Whitcombe", "Tom Quillon", *study[1:]).code == 0
    assert run("project", "part", study[0], "Jane Whitcombe", "Nobody", *study[1:]).code == 1


def test_a_correction_says_where_its_text_stands_nowhere(run, study):
    assert "in no file so far" in run("project", "correct", *study, "Nosuchword", "--never").err
    assert "in no file so far" not in run("project", "correct", *study, "LATE", "--never").err


def test_corrections_are_taken_back(run, study):
    assert run("project", "correct", *study, "ada@larkspur.example", "--never").code == 0
    assert "ada@larkspur.example" not in run("project", "findings", *study).out
    assert run("project", "correct", *study, "ada@larkspur.example", "--forget").code == 0
    assert "ada@larkspur.example" in run("project", "findings", *study).out


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("correct", "x y"), "one of --always"),
        (("correct", "x y", "--never", "--document", "0009-00001"), "no such document"),
        (("correct", "x y", "--always", "PERSN"), "did you mean"),
        (("review", "--export", "a.csv"), "--reviewer is required"),
        (("review", "--export", "a.csv", "--import", "key", "--reviewer", "ann"), "cannot be combined"),
    ],
)
def test_wrong_calls(run, study, args, message):
    result = run("project", args[0], study[0], *args[1:], *study[1:])
    assert result.code == 2 and message in result.err


def test_no_project_and_no_secret(run, study):
    assert "no project" in run("project", "status", "in", "--secret-file", "key").err
    assert "secret is required" in run("project", "status", "study").err
    assert "already" in run("project", "init", "study", "--new-secret-file", "other").err
    assert not Path("other").exists()


def test_a_promise_needs_the_random_draw_read_wholly_by_two(run, study):
    pytest.importorskip("scipy")
    assert run("project", "promise", *study).code == 2
    for reader in ("ann", "ben"):
        sheet = f"{reader}.csv"
        export = ("--export", sheet, "--reviewer", reader, "--drawn", "3")
        assert "documents 3" in run("project", "review", *study, *export).err
        fill(sheet)
        assert run("project", "review", *study, "--import", sheet, "--reviewer", reader).code == 0
    assert json.loads(run("project", "status", *study, "--json").out)["drawn"] == 3
    result = run("project", "promise", *study, "--limit", "0.9")
    assert result.code == 0 and result.out.startswith("With 3 of 5 documents reviewed")
    assert "threshold" in result.out and "at random" in result.err


def test_a_sample_is_drawn_marked_and_becomes_a_policy(run, tmp_path, untagged_file):
    pytest.importorskip("scipy")
    texts = tmp_path / "all.jsonl"
    texts.write_text(
        "".join(json.dumps({"id": str(n), "text": f"Mail a{n}@larkspur.example"}) + "\n" for n in range(9))
    )
    sample, safe = tmp_path / "sample.jsonl", tmp_path / "safe.toml"
    assert run("evaluate", "promise", "sample", str(texts), "-o", str(sample), "-n", "8").code == 0
    rows = [json.loads(line) for line in sample.read_text().splitlines()]
    spans = [{"start": 5, "end": len(row["text"]), "label": "EMAIL_ADDRESS"} for row in rows]
    sample.write_text("".join(json.dumps({**row, "spans": [s]}) + "\n" for row, s in zip(rows, spans, strict=True)))
    summary = ("evaluate", "promise", "summary", str(sample), "--policy", str(untagged_file))
    result = run(*summary, "--limit", "0.5", "--save-policy", str(safe))
    assert result.code == 0 and "With 8 of 9 documents reviewed: at most 50%" in result.out
    assert run("detect", str(texts), "--policy", str(safe)).code == 0
    strict = run(*summary, "--limit", "0.001", "--save-policy", str(tmp_path / "no.toml"))
    assert strict.code == 2 and not (tmp_path / "no.toml").exists()
