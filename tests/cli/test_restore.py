"""``allonym restore``."""

from __future__ import annotations

import allonym

KEY = "correct horse battery"
TEXT = "Write to jane.doe@example.com,\r\nor to Jos\u00e9 at jose@example.org."


def encrypting(tmp_path) -> str:
    path = tmp_path / "p.toml"
    detectors = '[detect]\ndetectors = ["rules"]\n'
    path.write_text(f'extends = "default"\n{detectors}[default]\noperator = "encrypt"\n')
    return str(path)


def test_what_a_key_encrypted_it_decrypts(run, tmp_path):
    (tmp_path / "key").write_text(KEY + "\n")
    (tmp_path / "in.txt").write_bytes(TEXT.encode())
    safe, back = tmp_path / "safe.txt", tmp_path / "back.txt"
    key = ("--key-file", str(tmp_path / "key"))
    policy = encrypting(tmp_path)
    assert run("anonymize", str(tmp_path / "in.txt"), str(safe), "-p", policy, *key, "-q").code == 0
    assert b"jane" not in safe.read_bytes()
    assert run("restore", str(safe), *key, "-o", str(back)) == (0, "", "")
    assert back.read_bytes() == TEXT.encode()
    refused = run("restore", str(safe), *key, "-o", str(back))
    assert refused.code == 2 and "--overwrite" in refused.err


def test_another_key_brings_nothing_back_and_ends_with_1(run, tmp_path, monkeypatch):
    monkeypatch.setenv("ALLONYM_KEY", KEY)
    safe = run("anonymize", "-", "-p", encrypting(tmp_path), "-q", stdin=TEXT.encode()).out
    monkeypatch.setenv("ALLONYM_KEY", KEY + "!")
    result = run("restore", "-", stdin=safe.encode())
    assert result.code == 1 and result.out == safe
    assert result.err.splitlines()[-1] == "error: 0 replacements undone, 2 not"


def test_a_plan_with_originals_brings_them_back(run, tmp_path):
    done = allonym.anonymize(TEXT)
    plan = tmp_path / "plan.json"
    plan.write_text(done.plan.to_json(originals=True))
    assert run("restore", "-", "--plan", str(plan), stdin=done.text.encode()).out == TEXT
    plan.write_text(done.plan.to_json())
    without = run("restore", "-", "--plan", str(plan), stdin=done.text.encode())
    assert without.code == 1 and without.out == "" and "no originals" in without.err
    plan.write_text("{jane")
    broken = run("restore", "-", "--plan", str(plan), stdin=done.text.encode())
    assert broken.code == 1 and "not a plan" in broken.err and "jane" not in broken.err


def test_it_needs_a_key_or_a_plan_and_plain_text(run, tmp_path, monkeypatch):
    assert run("restore", "-").code == 2
    monkeypatch.setenv("ALLONYM_KEY", KEY)
    (tmp_path / "a.jsonl").write_text("{}")
    result = run("restore", str(tmp_path / "a.jsonl"))
    assert result.code == 2 and "jsonl" in result.err
