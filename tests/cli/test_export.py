"""``allonym export``, ``allonym vault digests`` and ``allonym evaluate generations``: from calls to checked outputs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

CALL = (
    "Agent: This is Mr. Zaphra Quorby.\\nCustomer: My number is 206-555-0147, I am Mrs. Elva Tamsin.\\nAgent: Thanks."
)


@pytest.fixture
def calls(tmp_path: Path) -> Path:
    path = tmp_path / "calls.jsonl"
    rows = (f'{{"id": {i}, "caller": "c{i // 2}", "text": "{CALL} {i}", "summary": "Quorby, {i}."}}' for i in range(12))
    path.write_text("\n".join(rows), encoding="utf-8")
    return path


def lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_chat_with_a_manifest(run, calls, tmp_path, untagged_file):
    out = tmp_path / "out"
    done = run(
        "export", "chat", str(calls), str(out), "--group", "caller", "--system", "Be kind.", "-p", str(untagged_file)
    )
    assert done.code == 0
    assert "train.jsonl" in done.out and "manifest.json" in done.err
    first = lines(out / "train.jsonl")[0]["messages"]
    assert first[0] == {"role": "system", "content": "Be kind."}
    assert first[2]["content"] == "My number is [PHONE_NUMBER_1], I am Mrs. [PERSON_2]."
    told = json.loads((out / "manifest.json").read_text())
    assert told["split"]["by"] == "caller"
    assert told["risk"]["documents"] == 12 and told["risk"]["bound"]["n"] == 12
    assert "Quorby" not in (out / "manifest.json").read_text() + done.out + done.err
    assert run("export", "chat", str(calls), str(out), "-p", str(untagged_file)).code == 2


def test_prompts_with_an_annotated_sample(run, calls, tmp_path, untagged_file):
    marked = tmp_path / "marked.jsonl"
    marked.write_text(
        '{"id": 1, "text": "Hello (Quorby)[MISSED_PERSON_NAME]"}\n{"id": 2, "text": "Hello"}\n{"id": 3, "text": "Hi"}\n'
    )
    out = tmp_path / "out"
    done = run(
        *("export", "sft", str(calls), str(out), "--prompt", "Summarise.", "--completion", "summary", "--split", "1"),
        *("--annotated", str(marked), "-p", str(untagged_file)),
    )
    assert done.code == 0
    assert [set(row) for row in lines(out / "train.jsonl")] == [{"prompt", "completion"}] * 12
    risk = json.loads((out / "manifest.json").read_text())["risk"]
    assert (risk["documents"], risk["missed"]) == (3, {"PERSON_NAME": 1})
    assert risk["mean"]["value"] == pytest.approx(5 / 3)


def test_a_document_left_out_is_told_and_ends_with_1(run, calls, tmp_path, untagged_file):
    with calls.open("a") as out:
        out.write('\n{"id": "odd", "text": "No turns here, says Zaphra."}')
    done = run("export", "chat", str(calls), str(tmp_path / "out"), "-p", str(untagged_file), "--risk-sample", "0")
    assert done.code == 1
    assert "1 document was left out" in done.err and "Zaphra" not in done.err
    assert [row["id"] for row in lines(tmp_path / "out" / "quarantine.jsonl")] == ["odd"]


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["sft", "{}", "out"], "one of --completion, --tasks and --next-turn"),
        (["sft", "{}", "out", "--completion", "a", "--next-turn"], "one of --completion"),
        (["sft", "{}", "out", "--completion", "a", "--history", "2"], "--next-turn"),
        (["chat", "{}", "out", "--role", "agent"], "SPEAKER=ROLE"),
        (["chat", "{}", "out", "--role", "agent=boss"], "boss"),
        (["chat", "{}", "out", "--split", "2"], "split"),
        (["chat", "{}", "out", "--secret-env", "X"], "--vault"),
        (["chat", "{}", "out", "--anonymised", "{}"], "report"),
    ],
)
def test_wrong_calls_are_told(run, calls, tmp_path, monkeypatch, args, said):
    monkeypatch.chdir(tmp_path)
    done = run("export", *(arg.format(calls) if arg == "{}" else arg for arg in args))
    assert done.code == 2 and said in done.err
    assert not (tmp_path / "out").exists()


def test_from_calls_to_checked_outputs(run, calls, tmp_path, untagged_file):
    pytest.importorskip("wordfreq")
    vault, secret, digests = (str(tmp_path / name) for name in ("v", "k", "d"))
    assert run("vault", "init", vault, "--new-secret-file", secret).code == 0
    made = run(
        *("export", "chat", str(calls), str(tmp_path / "out"), "-p", str(untagged_file), "--risk-sample", "0"),
        *("--vault", vault, "--secret-file", secret, "--scope", "calls"),
    )
    assert made.code == 0
    assert run("vault", "digests", vault, "-o", digests, "--secret-file", secret, "--scope", "calls").code == 0
    assert run("vault", "digests", vault, "-o", digests, "--secret-file", secret).code == 2
    assert run("vault", "digests", vault, "-o", digests, "--secret-file", secret, "--scope", "x").code == 1
    outputs, before = tmp_path / "outputs.jsonl", tmp_path / "before.jsonl"
    outputs.write_text('{"id": "a", "completion": "Ask zaphra QUORBI"}\n{"id": "b", "completion": "Ask [PERSON_1]"}\n')
    before.write_text('{"completion": "Ask somebody"}\n')
    report = str(tmp_path / "r.json")
    common = ("evaluate", "generations", str(outputs), "--field", "completion")
    found = run(*common, "--digests", digests, "--baseline", str(before), "--json", report, "--fail", "0.5")
    assert found.code == 0
    told = json.loads(Path(report).read_text())["generations"]
    assert [(p["output"], p["kind"]) for p in told["places"]] == [("a", "edited")]
    assert told["baseline"] == 1 and told["all"]["outputs"]["value"] == 0.5
    page = str(tmp_path / "r.html")
    assert run(*common, "--vault", vault, "--secret-file", secret, "--fail", "0", "--report", page).code == 1
    said = found.out + found.err + Path(report).read_text() + Path(page).read_text()
    assert "quorb" not in said.lower() and "PERSON" in found.out
    assert run(*common).code == 2
    assert run(*common, "--digests", digests, "--with-text").code == 2
    assert run(*common, "--digests", digests, "--scope", "calls").code == 2
    assert run(*common, "--digests", str(outputs)).code == 1
