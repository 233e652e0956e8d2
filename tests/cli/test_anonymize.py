"""``allonym anonymize``."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import allonym
import allonym.files

CANARY = "Zyxthrope"
MAIL = "jane.doe@example.com"


def everything(result) -> str:
    return result.out + result.err


def test_a_pipe_changes_only_what_was_found(shell):
    text = f"Caf\u00e9\r\n\tto {MAIL},\r\n\r\nno line end".encode()
    result = shell("anonymize", "-", stdin=text)
    assert result.returncode == 0
    assert result.stdout == text.replace(MAIL.encode(), b"[EMAIL_ADDRESS_1]")
    assert b"\x1b" not in result.stdout + result.stderr


def test_nothing_in_nothing_out(run):
    assert run("anonymize", "-", "--quiet", stdin=b"") == (0, "", "")


def test_a_text_file_without_target_goes_to_standard_output(run, tmp_path):
    path = tmp_path / "letter.txt"
    path.write_text(f"to {MAIL}\n")
    assert run("anonymize", str(path), "-q") == (0, "to [EMAIL_ADDRESS_1]\n", "")
    assert path.read_text() == f"to {MAIL}\n"


def test_an_empty_folder_is_told(run, tmp_path):
    (tmp_path / "in").mkdir()
    result = run("anonymize", str(tmp_path / "in"), str(tmp_path / "out"))
    assert result.code == 0 and "holds no files" in result.err


@pytest.mark.parametrize("name", ["calls", "letter.docx", "table.parquet"])
def test_folders_and_binary_files_need_a_target(run, tmp_path, name):
    path = tmp_path / name
    path.write_bytes(b"x") if path.suffix else path.mkdir()
    result = run("anonymize", str(path))
    assert result.code == 2 and "TARGET" in result.err and result.out == ""


def test_a_target_that_exists_is_kept_unless_told(run, tmp_path):
    source, target = tmp_path / "a.txt", tmp_path / "b.txt"
    source.write_text(f"to {MAIL}\n")
    target.write_text("mine")
    refused = run("anonymize", str(source), str(target), "-q")
    assert refused.code == 2 and refused.err.startswith("error: ") and target.read_text() == "mine"
    assert run("anonymize", str(source), str(target), "--overwrite").code == 0
    assert target.read_text() == "to [EMAIL_ADDRESS_1]\n"


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("a.txt", "b.txt", "-o", "c.txt"), "twice"),
        (("a.txt", "b.txt", "--show"), "--dry-run"),
        (("a.txt", "--resume"), "TARGET"),
        (("a.txt", "b.txt", "--workers", "0"), "--workers"),
        (("a.txt", "b.txt", "--policy", "transcript"), "did you mean: transcripts"),
        (("a.txt", "b.txt", "--label", "PERSN"), "did you mean: PERSON"),
        (("a.txt", "b.txt", "--format", "txtt"), "txt"),
    ],
)
def test_wrong_calls_end_with_2_and_write_nothing(run, tmp_path, monkeypatch, args, said):
    monkeypatch.chdir(tmp_path)
    Path("a.txt").write_text(CANARY)
    result = run("anonymize", *args)
    assert result.code == 2 and said in result.err and CANARY not in everything(result)
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]


def test_a_missing_source_is_an_error(run, tmp_path):
    result = run("anonymize", str(tmp_path / "none.txt"), str(tmp_path / "b.txt"))
    assert result.code in (1, 2) and "none.txt" in result.err and "Traceback" not in result.err


def test_records_that_fail_go_to_quarantine_and_end_with_1(shell, tmp_path):
    (tmp_path / "in.jsonl").write_text(f'{{"id": 1, "text": "to {MAIL}"}}\n{{"id": 2, "text": "{CANARY}\n')
    result = shell("anonymize", "in.jsonl", "out.jsonl", "--quarantine", "q.jsonl", "--report", "r.json")
    assert result.returncode == 1
    assert b"error: 1 record" in result.stderr and CANARY.encode() not in result.stderr + result.stdout
    assert json.loads((tmp_path / "out.jsonl").read_text()) == {"id": 1, "text": "to [EMAIL_ADDRESS_1]"}
    assert CANARY not in (tmp_path / "q.jsonl").read_text() + (tmp_path / "r.json").read_text()
    assert json.loads((tmp_path / "r.json").read_text())["quarantined"] == 1


def test_names_in_free_text_go_whatever_the_workers(shell, tmp_path):
    (tmp_path / "in.jsonl").write_text('{"text": "Barack Obama met Angela Merkel in Berlin."}\n' * 6)
    for workers in ("1", "2"):
        done = shell("anonymize", "in.jsonl", "out.jsonl", "-p", "default", "--overwrite", "--workers", workers)
        assert done.returncode == 0
        out = (tmp_path / "out.jsonl").read_text()
        assert out.count(" met ") == 6
        assert not [name for name in ("Barack", "Obama", "Angela", "Merkel", "Berlin") if name in out]


def test_the_summary_goes_to_standard_error_unless_quiet(run, tmp_path):
    source = tmp_path / "a.txt"
    source.write_text(f"to {MAIL}\n")
    told = run("anonymize", str(source), str(tmp_path / "b.txt"))
    assert told.out == "" and "EMAIL_ADDRESS" in told.err and MAIL not in told.err
    assert run("anonymize", str(source), str(tmp_path / "c.txt"), "--quiet") == (0, "", "")


def test_only_the_chosen_field_and_label_change(run, tmp_path):
    source, target = tmp_path / "a.csv", tmp_path / "b.csv"
    source.write_text(f"id,review,other\n1,{MAIL} 4111 1111 1111 1111,{MAIL}\n")
    args = ("--field", "review", "--label", "CREDIT_CARD")
    assert run("anonymize", str(source), str(target), *args, "-q").code == 0
    assert target.read_text() == f"id,review,other\n1,{MAIL} [CREDIT_CARD_1],{MAIL}\n"


def test_formats_on_standard_input(run):
    line = json.dumps({"a": MAIL, "b": MAIL}) + "\n"
    result = run("anonymize", "-", "--format", "jsonl", "--field", "a", "-q", stdin=line.encode())
    assert json.loads(result.out) == {"a": "[EMAIL_ADDRESS_1]", "b": MAIL}


def test_workers_change_no_byte(shell, tmp_path):
    lines = [json.dumps({"id": i, "text": f"no. {i}: user{i}@example.com"}) + "\n" for i in range(300)]
    (tmp_path / "in.jsonl").write_text("".join(lines))
    assert shell("anonymize", "in.jsonl", "one.jsonl").returncode == 0
    assert shell("anonymize", "in.jsonl", "two.jsonl", "--workers", "2").returncode == 0
    assert (tmp_path / "one.jsonl").read_bytes() == (tmp_path / "two.jsonl").read_bytes()


def test_key_from_file_and_environment_are_one(run, tmp_path, monkeypatch):
    (tmp_path / "p.toml").write_text('extends = "default"\n[default]\noperator = "hash"\n')
    (tmp_path / "key").write_text("correct horse battery\n")
    args = ("anonymize", "-", "-q", "-p", str(tmp_path / "p.toml"))
    keyless = run(*args, stdin=MAIL.encode())
    assert keyless.code == 2 and keyless.out == ""
    from_file = run(*args, "--key-file", str(tmp_path / "key"), stdin=MAIL.encode())
    assert from_file.code == 0 and MAIL not in from_file.out
    monkeypatch.setenv("ALLONYM_KEY", "correct horse battery")
    assert run(*args, stdin=MAIL.encode()).out == from_file.out
    monkeypatch.setenv("ALLONYM_KEY", "another horse battery")
    assert run(*args, stdin=MAIL.encode()).out != from_file.out


def test_a_short_key_is_refused_unseen(run, monkeypatch):
    monkeypatch.setenv("ALLONYM_KEY", "zebra")
    result = run("anonymize", "-", stdin=b"x")
    assert result.code == 2 and "16 bytes" in result.err and "zebra" not in result.err


def test_dry_run_counts_and_shows_originals_only_on_request(run, tmp_path):
    source = tmp_path / "a.txt"
    source.write_text(f"{MAIL} and {MAIL} and 4111 1111 1111 1111\n")
    told = run("anonymize", str(source), "--dry-run")
    assert told.code == 0 and ["EMAIL_ADDRESS", "tag", "2"] in [line.split() for line in told.out.splitlines()]
    assert MAIL not in everything(told)
    shown = run("anonymize", str(source), str(tmp_path / "b.txt"), "--dry-run", "--show")
    assert f"{MAIL}  " in shown.out and "[EMAIL_ADDRESS_1]" in shown.out
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]


def test_a_text_in_place_of_a_file_is_told_the_way_in(run):
    result = run("anonymize", "My name is Zaphranda")
    assert result.code == 2 and "echo TEXT | allonym anonymize -" in result.err


def test_an_interrupted_run_says_how_to_go_on(run, tmp_path, monkeypatch):
    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(allonym.files, "anonymize_path", interrupted)
    (tmp_path / "a.txt").write_text("x")
    result = run("anonymize", str(tmp_path / "a.txt"), str(tmp_path / "b.txt"), "-q")
    assert result.code == 130 and "--resume" in result.err and len(result.err.splitlines()) == 1


def test_a_plain_text_needs_no_heavy_package(untagged_file):
    rules = ["-p", str(untagged_file)]
    code = (
        "import io, sys\n"
        "sys.stdin = io.TextIOWrapper(io.BytesIO(b'Write to jane.doe@example.com'))\n"
        "from allonym.cli import main\n"
        "try: main(sys.argv[1:])\n"
        "except SystemExit: pass\n"
        "heavy = 'pyarrow lxml rich phonenumbers stdnum cryptography numpy onnxruntime docx openpyxl'.split()\n"
        "print([m for m in heavy if m in sys.modules], file=sys.stderr)\n"
    )
    for command in (["detect", *rules], ["anonymize", "-", *rules], ["--help"]):
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", code, *command],
            capture_output=True,
            text=True,
            env={"PYTHONPATH": str(Path(allonym.__file__).parents[1])},
            check=True,
        )
        assert done.stdout and done.stderr.splitlines()[-1] == "[]", command


def test_plans_with_originals_undo_the_run(run, tmp_path):
    source, safe, plans = tmp_path / "a.txt", tmp_path / "b.txt", tmp_path / "plans.jsonl"
    source.write_bytes(f"Write to {MAIL} or 192.0.2.7.\r\n".encode())
    assert run("anonymize", str(source), str(safe), "--plans", str(plans), "--originals", "-q").code == 0
    assert MAIL not in safe.read_text(encoding="utf-8")
    assert run("restore", str(safe), "--plans", str(plans), "-o", str(tmp_path / "c.txt")).code == 0
    assert (tmp_path / "c.txt").read_bytes() == source.read_bytes()
    assert run("anonymize", str(source), "--originals").code == 2


def test_dry_run_shows_how_columns_are_treated_and_a_file_changes_it(run, tmp_path):
    source, chosen = tmp_path / "a.csv", tmp_path / "columns.toml"
    source.write_text("name,mail,total,code\nAda,a@example.com,5,x1\nCyd,b@example.com,6.5,x2\n")
    shown = run("anonymize", str(source), "--dry-run", "--columns", str(chosen)).out.splitlines()
    assert [line.split()[1] for line in shown[1:5]] == ["PERSON", "EMAIL_ADDRESS", "keep", "text"]
    assert tomllib.loads(chosen.read_text())["columns"]["mail"] == "EMAIL_ADDRESS"
    chosen.write_text(chosen.read_text().replace('"text"', '"GENERIC_ID"'))
    target = tmp_path / "b.csv"
    run("anonymize", str(source), str(target), "--columns", str(chosen))
    assert target.read_text().splitlines()[2] == "[PERSON_2],[EMAIL_ADDRESS_2],6.5,[GENERIC_ID_2]"
    chosen.write_text('[columns]\nname = "PERSN"\n')
    failed = run("anonymize", str(source), str(target), "--overwrite", "--columns", str(chosen))
    assert failed.code == 2 and "did you mean: PERSON" in failed.err


def test_a_clinical_report_in_spanish(run, tmp_path):
    (tmp_path / "informe.txt").write_text("Nombre: Aurelio.\nApellidos: Quintanilla Ferrer.\nNHC: 4471098.\n", "utf-8")
    result = run("anonymize", str(tmp_path / "informe.txt"), str(tmp_path / "b.txt"), "--policy", "clinical-spanish")
    assert (result.code, "warning" in result.err) == (0, False)
    safe = (tmp_path / "b.txt").read_text(encoding="utf-8")
    assert safe.startswith("Nombre: [PERSONA_1].\nApellidos: [PERSONA_") and "4471098" not in safe
