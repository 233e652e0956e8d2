"""Secrets and where they come from; what is sealed opens to exactly what it was, and only in its place."""

from __future__ import annotations

import sys
import types

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allonym.errors import MissingExtra, UsageError, VaultError, WrongKey
from allonym.vault import new_secret, read_secret, secret_from_environment, secret_from_file, secret_from_keyring
from allonym.vault.keys import (
    _NEW_ROUNDS,
    Keys,
    Sealer,
    choose_derivation,
    derive_key_encryption_key,
    lock_keys,
    pack_texts,
    read_derivation,
    unlock_keys,
    unpack_texts,
)

SECRET = b"a secret only for the tests, 32b"
TEXT = st.text(st.characters(), max_size=40)


@given(st.lists(TEXT, max_size=6), st.integers(0, 40))
def test_what_is_packed_comes_back_whatever_it_is(values, padding):
    assert list(unpack_texts(pack_texts(values) + bytes(padding))) == values


def test_packed_values_cannot_run_into_each_other():
    assert len({pack_texts(v) for v in (["ab", "c"], ["a", "bc"], ["abc"], ["abc", ""], ["", "abc"], [])}) == 6


@given(st.lists(TEXT, min_size=1, max_size=4), TEXT)
def test_what_is_sealed_opens_in_its_place_only(values, row):
    sealer = Sealer(Keys.new(), "here")
    sealed = sealer.seal(values, "known", row)
    assert list(sealer.unseal(sealed, "known", row)) == values
    assert sealer.seal(values, "known", row) != sealed
    for table, other in (("assigned", row), ("known", row + "x")):
        with pytest.raises(VaultError):
            sealer.unseal(sealed, table, other)
    for at in (0, 12, len(sealed) - 1):
        broken = bytes(b ^ (i == at) for i, b in enumerate(sealed))
        with pytest.raises(VaultError):
            sealer.unseal(broken, "known", row)
    for no_seal in (None, "text", b"", sealed[:20]):
        with pytest.raises(VaultError):
            sealer.unseal(no_seal, "known", row)


def test_the_length_of_a_sealed_value_tells_little():
    sealer = Sealer(Keys.new(), "here")
    assert len({len(sealer.seal(["x" * n], "known")) for n in range(20)}) == 1


def test_digests_need_the_key_and_tell_their_parts_apart():
    one, other = Sealer(Keys.new(), "here"), Sealer(Keys.new(), "here")
    assert one.digest("a", "b") == one.digest("a", "b")
    assert len({one.digest("a", "b"), one.digest("ab"), one.digest("b", "a"), other.digest("a", "b")}) == 4


def test_keys_and_sealers_show_nothing():
    keys = Keys.new()
    assert repr(keys) == "Keys(generation=1)"
    assert keys.data.hex() not in repr(Sealer(keys, "here"))


@pytest.mark.parametrize("secret", [SECRET, "eleven words that nobody would ever guess", b"\x00" * 16, "π" * 8])
def test_a_secret_opens_what_it_locked_up_and_no_other_does(secret):
    keys = Keys.new()
    values = lock_keys(keys, secret, "here")
    assert unlock_keys(values, secret, "here") == keys
    for wrong in (SECRET + b"!", "another passphrase of many words", secret + secret[:1]):
        with pytest.raises(WrongKey):
            unlock_keys(values, wrong, "here")


def test_the_kind_of_the_secret_is_told_where_it_is_the_wrong_one():
    with pytest.raises(WrongKey, match="opens with random bytes, got a passphrase"):
        unlock_keys(lock_keys(Keys.new(), SECRET, "here"), "a passphrase of many words", "here")


def test_every_change_of_the_envelope_is_seen():
    keys = Keys.new()
    values = lock_keys(keys, SECRET, "here")
    for name in ("data", "lasting", "operator", "generation", "derivation"):
        for at in (0, len(values[name]) // 2, len(values[name]) - 1):
            broken = bytes(b ^ (i == at) for i, b in enumerate(values[name]))
            with pytest.raises(VaultError):
                unlock_keys({**values, name: broken}, SECRET, "here")
        with pytest.raises(VaultError):
            unlock_keys({n: v for n, v in values.items() if n != name}, SECRET, "here")


def test_passphrases_are_stretched_with_a_salt_of_their_own(monkeypatch):
    monkeypatch.setattr("allonym.vault.keys._NEW_ROUNDS", _NEW_ROUNDS)  # the real cost, which other tests lower
    secret = "eleven words that nobody would ever guess"
    first, second = choose_derivation(secret), choose_derivation(secret)
    assert first["kind"] == "scrypt"
    assert first["n"] == 2**16
    assert first["salt"] != second["salt"]
    assert derive_key_encryption_key(secret, first, "here") != derive_key_encryption_key(secret, second, "here")


@pytest.mark.parametrize("change", [{"n": 2**30}, {"n": 3}, {"r": 0}, {"p": 10**6}, {"n": "many"}, {"salt": "zz"}])
def test_parameters_that_make_no_sense_are_refused(change):
    how = {**choose_derivation("eleven words that nobody would ever guess"), **change}
    with pytest.raises(VaultError):
        derive_key_encryption_key("eleven words that nobody would ever guess", how, "here")


def test_an_unknown_derivation_is_told():
    with pytest.raises(VaultError, match="argon3"):
        derive_key_encryption_key(SECRET, {**choose_derivation(SECRET), "kind": "argon3"}, "here")
    with pytest.raises(VaultError):
        read_derivation({"derivation": b"[]"}, "here")


@pytest.mark.parametrize(
    ("given_", "secret"),
    [
        (b"a passphrase of many words\n", "a passphrase of many words"),
        (b"a passphrase of many words\r\n", "a passphrase of many words"),
        ("a passphrase of many words", "a passphrase of many words"),
        (b"\x80" * 16, b"\x80" * 16),
        (b"two lines\nof a passphrase", b"two lines\nof a passphrase"),
    ],
)
def test_a_line_of_text_is_a_passphrase_and_anything_else_random(given_, secret):
    assert read_secret(given_, "here") == secret


def test_a_new_secret_is_32_random_bytes_in_one_line_wherever_it_is_kept(tmp_path, monkeypatch):
    line = new_secret()
    assert line != new_secret()
    secret = read_secret(line, "here")
    assert isinstance(secret, bytes)
    assert len(secret) == 32
    path = tmp_path / "secret.key"
    path.write_text(line + "\n")
    assert secret_from_file(path) == secret
    monkeypatch.setenv("ALLONYM_VAULT_KEY", line)
    assert secret_from_environment() == secret
    for broken in (line[:-9], line + "A" * 40, line[:25] + "é" * 20):
        with pytest.raises(UsageError, match="32 bytes"):
            read_secret(broken, "here")


def test_a_variable_that_is_empty_or_missing_is_no_secret(monkeypatch):
    monkeypatch.setenv("OURS", "")
    assert secret_from_environment("OURS") is None
    monkeypatch.delenv("OURS")
    assert secret_from_environment("OURS") is None


@pytest.mark.parametrize("short", [b"Zaphrandel", "Zaphrandel", b"", ""])
def test_a_short_secret_is_refused_and_not_shown(short):
    with pytest.raises(UsageError, match="at least 16 bytes") as caught:
        read_secret(short, "here")
    assert "Zaphrandel" not in str(caught.value)


def test_the_keyring_is_asked_by_service_and_name(monkeypatch):
    keyring = types.ModuleType("keyring")
    errors = types.ModuleType("keyring.errors")
    errors.KeyringError = type("KeyringError", (Exception,), {})
    kept = {("allonym", "letters"): "a passphrase of many words"}

    def get_password(service, name):
        if service == "locked":
            raise errors.KeyringError("Zaphrandel")
        return kept.get((service, name))

    keyring.get_password, keyring.errors = get_password, errors
    monkeypatch.setitem(sys.modules, "keyring", keyring)
    monkeypatch.setitem(sys.modules, "keyring.errors", errors)
    assert secret_from_keyring("allonym/letters") == "a passphrase of many words"
    with pytest.raises(UsageError, match="no entry 'allonym/other'"):
        secret_from_keyring("allonym/other")
    with pytest.raises(UsageError, match="SERVICE/NAME"):
        secret_from_keyring("allonym")
    with pytest.raises(UsageError, match="KeyringError") as caught:
        secret_from_keyring("locked/letters")
    assert "Zaphrandel" not in str(caught.value)


def test_without_the_package_the_keyring_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "keyring", None)
    with pytest.raises(MissingExtra, match=r"\[keyring\]"):
        secret_from_keyring("allonym/letters")
