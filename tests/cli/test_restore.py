"""``allonym restore``."""

from __future__ import annotations

import pytest

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
    assert result.err.splitlines()[-1] == "error: 0 replacements restored, 2 not"


def test_a_plan_with_originals_brings_them_back(run, tmp_path):
    done = allonym.anonymize(TEXT)
    plan = tmp_path / "plan.json"
    plan.write_text(done.plan.to_json(originals=True))
    assert run("restore", "-", "--plans", str(plan), stdin=done.text.encode()).out == TEXT
    plan.write_text(done.plan.to_json())
    without = run("restore", "-", "--plans", str(plan), stdin=done.text.encode())
    assert without.code == 1 and without.out == "" and "no originals" in without.err
    plan.write_text("{jane")
    broken = run("restore", "-", "--plans", str(plan), stdin=done.text.encode())
    assert broken.code == 1 and "not a plan" in broken.err and "jane" not in broken.err


def test_a_plan_holds_any_character(run, tmp_path):
    """Some of them, such as U+2028, end a line elsewhere, but not in JSON."""
    terms = "Ada\u2028Brook\u2029of\x85Leeds"
    policy = tmp_path / "p.toml"
    policy.write_text(f'extends = "default"\n[dictionary]\nPERSON = ["{terms}"]\n', "utf-8")
    (tmp_path / "in.txt").write_bytes(f"Hello {terms}.".encode())
    safe, plan = tmp_path / "safe.txt", tmp_path / "plan.jsonl"
    made = run(
        "anonymize", str(tmp_path / "in.txt"), str(safe), "-p", str(policy), "--plans", str(plan), "--originals", "-q"
    )
    assert made.code == 0, made.err
    assert "\u2028" in plan.read_text("utf-8")
    assert run("restore", str(safe), "--plans", str(plan)).out == f"Hello {terms}."


def test_it_needs_a_key_or_a_plan_and_a_target_for_files_with_fields(run, tmp_path, monkeypatch):
    assert run("restore", "-").code == 2
    monkeypatch.setenv("ALLONYM_KEY", KEY)
    (tmp_path / "a.jsonl").write_text("{}")
    result = run("restore", str(tmp_path / "a.jsonl"))
    assert result.code == 2 and "-o FILE is required" in result.err


def tagged(tmp_path) -> tuple[str, str]:
    """The anonymised text, and the path of its plan."""
    done = allonym.anonymize(TEXT)
    path = tmp_path / "plan.json"
    path.write_text(done.plan.to_json(originals=True))
    return done.text, str(path)


def test_a_rewritten_text_comes_back_and_each_mention_is_explained(run, tmp_path):
    _, plan = tagged(tmp_path)
    answer = "EMAIL_ADDRESS_1 first, then [Email_Address_2]."
    done = run("restore", "-", "--plans", plan, "--explain", stdin=answer.encode())
    assert done.out == "jane.doe@example.com first, then jose@example.org."
    places = [line.split("\t") for line in done.err.splitlines() if "\t" in line]
    assert places[0] == ["0-20", "EMAIL_ADDRESS", "brackets", "tag"]
    assert places[1][1:] == ["EMAIL_ADDRESS", "case", "tag"]
    assert "jane" not in done.err


def test_a_stream_gives_what_the_whole_gives(run, shell, tmp_path):
    safe, plan = tagged(tmp_path)
    answer = f"\ufeffSo: {safe} Jos\u00e9 \u2013 email_address_1!"
    whole = run("restore", "-", "--plans", plan, stdin=answer.encode()).out
    streamed = shell("restore", "-", "--plans", plan, "--stream", stdin=answer.encode())
    assert streamed.stdout.decode() == whole and "jane.doe@example.com!" in whole
    source, target = tmp_path / "answer.txt", tmp_path / "back.txt"
    source.write_bytes(answer.encode())
    assert run("restore", str(source), "--plans", plan, "--stream", "-o", str(target)).code == 0
    assert target.read_bytes().decode() == whole
    source.write_bytes(b"\xff\xfe")
    assert "not UTF-8" in run("restore", str(source), "--plans", plan, "--stream").err
    assert run("restore", "-", "--plans", plan, "--stream", "--explain").code == 2


def test_a_vault_brings_its_scope_back_and_writes_it_down(run, tmp_path, monkeypatch):
    from allonym.vault import Vault

    monkeypatch.setenv("ALLONYM_VAULT_KEY", KEY)
    monkeypatch.setenv("LOGNAME", "login")
    where = str(tmp_path / "study.vault")
    with Vault.create(where, KEY) as vault, vault.book("study") as book:
        book.remember("[PERSON_1]", "Ada Brook", "PERSON", "tag@1", "ada brook")
    args = ("restore", "-", "--vault", where, "--scope")
    answer = b"Dear [person_1], and [PERSON_2]"
    done = run(*args, "study", stdin=answer)
    assert done.out == "Dear Ada Brook, and [PERSON_2]" and done.code == 1
    assert run(*args, "study", "--stream", stdin=answer).out == done.out
    nix = run(*args, "nix", stdin=answer)
    assert (nix.code, nix.out) == (1, "")
    assert "knows nothing in scope 'nix'; it has: 'study'" in nix.err
    assert run(*args, "study", "--actor", "ada", stdin=b"").code == 0
    with Vault.open(where, KEY) as vault:
        assert [e.actor for e in vault.audit()][1:] == ["login", "login", "ada"]
        lines = [(e.action, e.scope, dict(e.counts)) for e in vault.audit() if e.action == "restore"]
    assert lines[:2] == [
        ("restore", "study", {"restored": 1, "unknown": 1}),
        ("restore", "study", {"restored": 1, "unknown": 1}),
    ]
    assert lines[2][2] == {"restored": 0, "unknown": 0}
    monkeypatch.delenv("ALLONYM_VAULT_KEY")
    assert run(*args, "study", stdin=answer).code == 2


@pytest.fixture
def study(tmp_path, monkeypatch):
    """A vault, and a folder of texts that it knows."""
    from allonym.vault import Vault

    monkeypatch.setenv("ALLONYM_VAULT_KEY", KEY)
    where = str(tmp_path / "study.vault")
    with Vault.create(where, KEY) as vault, vault.book("study") as book:
        book.remember("[PERSON_1]", "Ada Brook", "PERSON", "tag@1", "ada brook")
        book.remember("45", "43", "AGE", "pseudonym@1", "43")
    (tmp_path / "safe" / "deep").mkdir(parents=True)
    (tmp_path / "safe" / "a.txt").write_bytes(b"Dear [person_1],\r\npage 45")
    (tmp_path / "safe" / "deep" / "b.srt").write_bytes(b"1\n00:00:01,000 --> 00:00:02,000\n[PERSON_1]: Hi.\n")
    return where


def test_a_folder_comes_back_with_its_names(run, study, tmp_path):
    from allonym.vault import Vault

    safe, back = tmp_path / "safe", tmp_path / "back"
    args = ("restore", str(safe), "-o", str(back), "--vault", study, "--scope", "study")
    done = run(*args, "--actor", "ada")
    assert (done.code, done.out) == (0, "")
    assert done.err.splitlines()[-1] == "restored: 2 files, 2 replacements restored, 0 not"
    assert "ordinary words" in done.err
    assert (back / "a.txt").read_bytes() == b"Dear Ada Brook,\r\npage 45"
    assert (back / "deep" / "b.srt").read_bytes().endswith(b"\nAda Brook: Hi.\n")
    assert sorted(p.name for p in back.rglob("*")) == ["a.txt", "b.srt", "deep"]
    with Vault.open(study, KEY) as vault:
        (entry,) = (e for e in vault.audit() if e.action == "restore")
    assert (entry.actor, entry.scope) == ("ada", "study")
    assert dict(entry.counts) == {"files": 2, "restored": 2, "unknown": 0}
    again = run(*args)
    assert again.code == 2 and "exists" in again.err
    (safe / "a.txt").write_text("[PERSON_2]")
    more = run(*args, "--overwrite")
    assert more.code == 1 and more.err.splitlines()[-1] == "error: 2 files, 1 replacement restored, 1 not"
    assert (back / "a.txt").read_text() == "[PERSON_2]"


def test_a_folder_is_refused_before_anything_is_written(run, study, tmp_path):
    safe, back = tmp_path / "safe", tmp_path / "back"
    vault = ("--vault", study, "--scope", "study")
    assert "-o FOLDER is required" in run("restore", str(safe), *vault).err
    inside = run("restore", str(safe), "-o", str(safe / "x"), *vault)
    assert inside.code == 2 and "inside" in inside.err
    plan = tmp_path / "plan.json"
    plan.write_text("{}")
    one = run("restore", str(safe), "-o", str(back), "--plans", str(plan))
    assert one.code == 2 and "not for a folder" in one.err
    assert not back.exists()
    into = run("restore", str(safe / "a.txt"), "-o", str(safe), *vault)
    assert into.code == 2 and "is a folder" in into.err


def test_a_folder_comes_back_but_for_what_has_no_text(run, study, tmp_path):
    safe, back = tmp_path / "safe", tmp_path / "back"
    (safe / "page.pdf").write_bytes(b"%PDF-1.7")
    (safe / "deep" / "x.bin").write_text("?")
    done = run("restore", str(safe), "-o", str(back), "--vault", study, "--scope", "study")
    assert done.code == 1 and "skipped: deep/x.bin, page.pdf: no text" in done.err
    assert done.err.splitlines()[-1] == "error: 2 files, 2 replacements restored, 0 not, 2 files skipped"
    assert (back / "a.txt").read_bytes() == b"Dear Ada Brook,\r\npage 45" and not (back / "page.pdf").exists()


@pytest.mark.parametrize("codec", ["latin-1", "utf-16"])
def test_a_file_keeps_its_encoding(run, study, tmp_path, codec):
    safe, back = tmp_path / "café.txt", tmp_path / "back.txt"
    safe.write_bytes("Das Café gefällt [PERSON_1].\r\n".encode(codec))
    vault = ("--vault", study, "--scope", "study")
    done = run("restore", str(safe), "-o", str(back), *vault)
    assert (done.code, done.err) == (0, "")
    assert back.read_bytes() == "Das Café gefällt Ada Brook.\r\n".encode(codec)
    assert run("restore", str(safe), *vault).out == "Das Café gefällt Ada Brook.\r\n"


@pytest.mark.parametrize("suffix", ["txt", "csv"])
def test_letters_that_come_back_into_ascii_are_noted(run, tmp_path, monkeypatch, suffix):
    from allonym.vault import Vault

    monkeypatch.setenv("ALLONYM_VAULT_KEY", KEY)
    where, safe, back = (tmp_path / name for name in ("v.vault", f"a.{suffix}", f"b.{suffix}"))
    with Vault.create(str(where), KEY) as vault, vault.book("") as book:
        book.remember("[PERSON_1]", "José Ibarra", "PERSON", "tag@1", "josé ibarra")
    safe.write_bytes(b"name,town\n[PERSON_1],Leeds\n")
    done = run("restore", str(safe), "-o", str(back), "--vault", str(where))
    assert done.code == 0 and "is written as UTF-8" in done.err
    assert back.read_bytes().decode() == "name,town\nJosé Ibarra,Leeds\n"


def test_another_vault_says_that_it_knows_nothing(run, study, tmp_path):
    from allonym.vault import Vault

    other = str(tmp_path / "other.vault")
    with Vault.create(other, KEY) as vault, vault.book("") as book:
        book.remember("Emma Tyler", "Ada Brook", "PERSON", "pseudonym@1", "ada brook")
    tags, plain = b"login user=[USER_NAME_1] ip=[IP_ADDRESS_1]", b"see [NOTE_1] and [TODO] of release [2]"
    done = run("restore", "-", "--vault", other, stdin=tags)
    assert (done.code, done.out) == (1, tags.decode())
    assert "note: nothing was restored" in done.err and "0 replacements restored, 2 not" in done.err
    note = run("restore", "-", "--vault", other, stdin=plain)
    assert (note.code, note.out) == (0, plain.decode()) and "note: nothing was restored" in note.err
    own = run("restore", "-", "--vault", other, stdin=b"Emma Tyler wrote [PERSON_1].")
    assert (own.code, own.out, own.err) == (0, "Ada Brook wrote [PERSON_1].", "")
    folder = run("restore", str(tmp_path / "safe"), "-o", str(tmp_path / "back"), "--vault", other)
    assert folder.code == 1 and "note: nothing was restored" in folder.err


def test_a_table_comes_back_by_its_field(run, study, tmp_path):
    (tmp_path / "a.csv").write_bytes(b'name,note\r\n[PERSON_1],"to [PERSON_1], so"\r\n')
    vault = ("--vault", study, "--scope", "study", "--field", "note")
    back = tmp_path / "b.csv"
    assert run("restore", str(tmp_path / "a.csv"), "-o", str(back), *vault).code == 0
    assert back.read_bytes() == b'name,note\r\n[PERSON_1],"to Ada Brook, so"\r\n'
    assert run("restore", str(tmp_path / "a.csv"), "-o", str(back), "--explain", *vault).code == 2


def test_a_folder_comes_back_with_a_key(run, tmp_path, monkeypatch):
    monkeypatch.setenv("ALLONYM_KEY", KEY)
    safe = run("anonymize", "-", "-p", encrypting(tmp_path), "-q", stdin=TEXT.encode()).out
    (tmp_path / "safe").mkdir()
    (tmp_path / "safe" / "a.md").write_bytes(safe.encode())
    assert run("restore", str(tmp_path / "safe"), "-o", str(tmp_path / "back")).code == 0
    assert (tmp_path / "back" / "a.md").read_bytes() == TEXT.encode()


@pytest.mark.parametrize("name", ["secret-file", "secret-env", "secret-keyring", "actor"])
def test_what_belongs_to_a_vault_needs_one(run, tmp_path, monkeypatch, name):
    monkeypatch.setenv("ALLONYM_KEY", KEY)
    (tmp_path / "x").write_text(KEY)
    done = run("restore", "-", f"--{name}", str(tmp_path / "x"), stdin=b"")
    assert done.code == 2 and f"--{name} requires --vault" in done.err
