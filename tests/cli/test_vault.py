"""``allonym vault``."""

from __future__ import annotations

import json
import re
import stat

import pytest

from allonym.vault import Vault, secret_from_file


@pytest.fixture
def key(tmp_path, monkeypatch):
    """A key file that ``init`` has made, beside the vault ``v``."""
    monkeypatch.delenv("ALLONYM_VAULT_KEY", raising=False)
    monkeypatch.chdir(tmp_path)
    return "v.key"


@pytest.fixture
def vault(run, key):
    assert run("vault", "init", "v", "--new-secret-file", key).code == 0
    with Vault.open("v", secret_from_file(key)) as opened:
        with opened.book("letters", "patient 17") as book:
            book.enter("name", "Zaphrandel", "Eve")
            book.remember("Eve", "Zaphrandel", "PERSON", "pseudonym@1", "Zaphrandel")
        with opened.book("calls") as book:
            book.remember("[PERSON_1]", "Zaphrandel", "PERSON", "tag@1", "Zaphrandel")
        yield opened


def test_init_makes_a_vault_and_a_secret_for_its_owner_alone(run, key, tmp_path):
    done = run("vault", "init", "v", "--new-secret-file", key, "--keep-days", "30", "--actor", "ops")
    assert (done.code, done.out) == (0, "")
    assert "v.key" in done.err
    assert stat.S_IMODE((tmp_path / key).stat().st_mode) == 0o600
    with Vault.open("v", secret_from_file(key)) as opened:
        assert opened.info().keep_days == 30
        assert opened.info().key == "random"
        assert opened.audit()[0].actor == "ops"


def test_init_takes_a_secret_that_is_there(run, key, tmp_path, monkeypatch):
    (tmp_path / "pass").write_text("a passphrase of many words\n")
    assert run("vault", "init", "one", "--secret-file", "pass").code == 0
    monkeypatch.setenv("OURS", "a passphrase of many words")
    assert run("vault", "init", "two", "--secret-env", "OURS").code == 0
    monkeypatch.setenv("ALLONYM_VAULT_KEY", "a passphrase of many words")
    assert run("vault", "init", "three").code == 0
    for name in ("one", "two", "three"):
        with Vault.open(name, "a passphrase of many words") as opened:
            assert opened.info().key == "passphrase"


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ([], "a secret is required"),
        (["--secret-env", "NOT_SET"], "NOT_SET is empty or not set"),
        (["--secret-env", "X", "--secret-keyring", "a/b"], "cannot be combined"),
        (["--secret-env", "X", "--new-secret-file", "new"], "they cannot be combined"),
        (["--new-secret-file", "taken"], "taken exists"),
        (["--secret-file", "taken"], "at least 16 bytes"),
    ],
)
def test_init_without_one_good_secret_makes_nothing(run, key, tmp_path, monkeypatch, args, said):
    monkeypatch.setenv("X", "a passphrase of many words")
    (tmp_path / "taken").write_text("short")
    done = run("vault", "init", "v", *args)
    assert done.code == 2
    assert said in done.err
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


def test_init_over_a_vault_leaves_it_and_no_new_secret(run, vault, tmp_path):
    done = run("vault", "init", "v", "--new-secret-file", "other.key")
    assert done.code == 1
    assert "exists already" in done.err
    assert not (tmp_path / "other.key").exists()
    assert len(vault.known("letters")) == 1


def test_info_needs_no_secret_and_shows_no_value(run, vault, key):
    locked, opened = run("vault", "info", "v"), run("vault", "info", "v", "--secret-file", key)
    assert locked.code == opened.code == 0
    assert re.search(r"letters +1 +1 +1 +0 +0", opened.out)
    assert re.search(r"scope [0-9a-f]{8} +1 +1 +1 +0 +-", locked.out)
    assert "letters" not in locked.out
    for done in (locked, opened):
        assert "Zaphrandel" not in done.out + done.err
        assert "patient" not in done.out + done.err
    (line,) = run("vault", "info", "v", "--secret-file", key, "--json").out.splitlines()
    found = json.loads(line)
    assert (found["key"], found["schema"], found["keep_days"]) == ("random", 7, None)
    counts = {"known": 1, "assigned": 1, "subjects": 1, "expired": 0, "shared": 0}
    assert found["scopes"][0] == {"scope": "letters", **counts}


def test_info_counts_replacements_that_several_share(run, vault, key):
    with vault.book("calls") as book:
        book.remember("[PERSON_1]", "Quorvax", "PERSON", "tag@1", "Quorvax")
    shown = run("vault", "info", "v", "--secret-file", key).out
    assert re.search(r"calls +2 +0 +0 +0 +1", shown)
    assert re.search(r"letters +1 +1 +1 +0 +0", shown)


def test_rotate_gives_it_another_secret(run, vault, key, tmp_path):
    done = run("vault", "rotate", "v", "--secret-file", key, "--new-secret-file", "2.key")
    assert done.code == 0
    refused = run("vault", "audit", "v", "--secret-file", key)
    assert (refused.code, refused.out) == (1, "")
    assert "the secret does not open" in refused.err
    (tmp_path / "pass").write_text("a passphrase of many words\n")
    assert run("vault", "rotate", "v", "--secret-file", "2.key", "--to-secret-file", "pass", "--data").code == 0
    assert run("vault", "audit", "v", "--secret-file", "2.key").code == 1
    done = run("vault", "audit", "v", "--secret-file", "pass")
    assert done.out.count("rotate") == 2
    assert run("vault", "rotate", "v", "--secret-file", "pass").code == 2


def test_a_secret_that_is_to_be_in_force_stays_whatever_happens(run, vault, key, tmp_path):
    done = run("vault", "rotate", "v", "--secret-env", "NOT_SET", "--new-secret-file", "2.key")
    assert done.code == 2
    assert not (tmp_path / "2.key").exists()


def test_purge_asks_first(run, vault, key):
    refused = run("vault", "purge", "v", "--secret-file", key, "--subject", "patient 17", stdin=b"n\n")
    assert refused.code == 130
    assert len(vault.known("letters")) == 1
    done = run("vault", "purge", "v", "--secret-file", key, "--subject", "patient 17", stdin=b"y\n")
    assert done.code == 0
    assert "originals 1, choices 1, people 0, subjects 1, scopes 0; no trace left in its files" in done.err
    assert vault.known("letters") == ()
    done = run("vault", "purge", "v", "--secret-file", key, "--scope", "calls", "--yes", "--actor", "ops")
    assert done.code == 0
    assert [one.name for one in vault.info().scopes] == ["letters"]
    assert vault.audit()[-1].actor == "ops"
    none = run("vault", "purge", "v", "--secret-file", key)
    assert none.code == 2 and "--scope, --subject or --expired" in none.err
    assert run("vault", "purge", "v", "--secret-file", key, "--subject", "x", "--expired").code == 2
    assert run("vault", "purge", "v", "--secret-file", key, "--expired", "--yes").code == 0


def test_purge_of_what_is_not_there_fails(run, vault, key):
    args = ("vault", "purge", "v", "--secret-file", key, "--yes")
    for more in (["--subject", "patient 18"], ["--subject", "patient 17", "--scope", "calls"]):
        done = run(*args, *more)
        assert done.code == 1 and "nothing of this subject is in the vault" in done.err
        assert "patient" not in done.err and "deleted" not in done.err
    done = run(*args, "--scope", "nix")
    assert done.code == 1 and "has no scope 'nix'; it has: 'letters', 'calls'" in done.err
    assert run(*args, "--scope", "nix", "--expired").code == 1
    assert len(vault.known("letters")) == 1


def test_a_damaged_secret_is_told(run, vault, key, tmp_path):
    line = (tmp_path / key).read_text().strip()
    at = len("allonym-vault-key-1:") + 10
    for wrong in (f"{line[:at]}{'A' if line[at] != 'A' else 'B'}{line[at + 1 :]}", line[1:], line[:-2]):
        (tmp_path / "wrong.key").write_text(wrong + "\n")
        done = run("vault", "audit", "v", "--secret-file", "wrong.key")
        assert done.code in (1, 2) and "damaged" in done.err
        assert wrong[-20:] not in done.err


def test_export_and_import_carry_everything(run, vault, key, tmp_path):
    assert run("vault", "init", "w", "--new-secret-file", "w.key").code == 0
    done = run("vault", "export", "v", "x", "--secret-file", key, "--to-secret-file", "w.key")
    assert "3 rows in x" in done.err
    assert run("vault", "export", "v", "x", "--secret-file", key).code == 2
    done = run("vault", "import", "w", "x", "--secret-file", "w.key", "--rename", "calls=old calls")
    assert done.code == 0
    assert "2 originals and 1 choices; 0 existed already" in done.err
    with Vault.open("w", secret_from_file("w.key")) as other:
        assert [one.name for one in other.info().scopes] == ["letters", "old calls"]
    assert run("vault", "export", "v", "x", "--secret-file", key, "--overwrite").code == 0
    wrong = run("vault", "import", "w", "x", "--secret-file", "w.key")
    assert wrong.code == 1
    assert "does not open x" in wrong.err
    done = run("vault", "import", "w", "x", "--secret-file", "w.key", "--from-secret-file", key)
    assert "1 originals and 0 choices; 2 existed already" in done.err
    assert run("vault", "import", "w", "x", "--secret-file", "w.key", "--rename", "calls").code == 2
    args = ("vault", "import", "w", "x", "--secret-file", "w.key", "--from-secret-file", key)
    done = run(*args, "--rename", "zz=s2")
    assert done.code == 2 and "has no scope 'zz' to rename; it has: 'letters', 'calls'" in done.err
    with Vault.open("w", secret_from_file("w.key")) as other:
        assert [one.name for one in other.info().scopes] == ["letters", "old calls", "calls"]


def test_import_tells_conflicts(run, vault, key):
    assert run("vault", "init", "w", "--new-secret-file", "w.key").code == 0
    with Vault.open("w", secret_from_file("w.key")) as other, other.book("letters") as book:
        book.enter("name", "somebody", "Eve")
        book.remember("Eve", "Somebody", "PERSON", "pseudonym@1", "somebody")
    assert run("vault", "export", "v", "x", "--secret-file", key, "--to-secret-file", "w.key").code == 0
    done = run("vault", "import", "w", "x", "--secret-file", "w.key")
    assert "1 choices conflict with this vault" in done.err
    assert "1 replacements stand for several entities" in done.err


def test_audit_shows_each_line_and_sees_tampering(run, vault, key):
    vault.record("restore", scope="letters", actor="ada", counts={"restored": 2, "unknown": 0})
    done = run("vault", "audit", "v", "--secret-file", key)
    assert re.search(r"restore +letters +ada +restored 2, unknown 0", done.out)
    lines = [json.loads(one) for one in run("vault", "audit", "v", "--secret-file", key, "--json").out.splitlines()]
    assert [one["action"] for one in lines] == ["create", "restore"]
    import sqlite3

    connection = sqlite3.connect("v")
    connection.execute("DROP TRIGGER allonym_audit_no_delete")
    connection.execute("DELETE FROM allonym_audit WHERE number = 2")
    connection.commit()
    connection.close()
    done = run("vault", "audit", "v", "--secret-file", key)
    assert (done.code, done.out) == (1, "")
    assert "audit log" in done.err


@pytest.mark.parametrize("command", ["rotate", "purge", "export", "import", "audit"])
def test_what_needs_the_secret_says_so(run, vault, command, tmp_path):
    (tmp_path / "file").write_text("x")
    more = {"export": ["new"], "import": ["file"], "rotate": ["--new-secret-file", "2.key"]}.get(command, [])
    done = run("vault", command, "v", *more)
    assert done.code == 2
    assert "the vault's secret is required" in done.err
    assert not (tmp_path / "2.key").exists()


def test_what_is_no_vault_is_told(run, key, tmp_path):
    assert "no vault at" in run("vault", "info", "nowhere").err
    (tmp_path / "letter.txt").write_text("Dear Zaphrandel")
    done = run("vault", "info", "letter.txt")
    assert done.code == 1
    assert "is not a vault" in done.err
    assert "Zaphrandel" not in done.err
