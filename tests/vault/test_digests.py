"""Keyed digests: they find every variant and nothing else, hold no text, and go when their originals go."""

from __future__ import annotations

import json
import shutil
import stat
import unicodedata
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from tests.rows import check_each_row

from allonym.cli import app
from allonym.errors import UsageError, VaultError, VaultLocked
from allonym.vault import Vault, new_secret, read_digests, read_secret
from allonym.vault import digests as checking
from allonym.vault.variants import fold_word, join_letters_and_digits, make_all_forms, split_folded_words

SECRET = b"a secret only for the tests, 32b"
KEY = bytes(range(32))
FROZEN = Path(__file__).parents[1] / "frozen" / "vault-2.sqlite"


def write(vault: Vault, scope: str, subject: str, *people: str, label: str = "PERSON") -> None:
    with vault.book(scope, subject) as book:
        for i, person in enumerate(people):
            book.remember(f"[{label}_{i + 1}]", person, label, "tag@1", person.lower())


def of(original: str, label: str = "PERSON") -> checking.Digests:
    words, by_kind = checking.compute_digests(KEY, original, label)
    return checking.Digests.of(KEY, [(label, by_kind)], words)


def kinds(digests: checking.Digests, text: str) -> set[str]:
    words = [w.text for w in split_folded_words(text)]
    named = {kind for kind, _ in (*digests.named(" ".join(words)), *digests.named(join_letters_and_digits(words)))}
    return named or ({"edited"} if digests.edited(join_letters_and_digits(words)) else set())


@check_each_row(
    "original, label, text, kind",
    [
        ("Dr. Ada Brook", "PERSON", "ADA brook", "whole"),
        ("Ada Brook", "PERSON", "Brook, Ada", "whole"),
        ("Ada Brook's", "PERSON", "ada.brook", "whole"),
        ("Ada Brook", "PERSON", "Brook", "part"),
        ("Ada Brook", "PERSON", "A. Brook", "shortened"),
        ("Ada Brook", "PERSON", "Ada B.", "shortened"),
        ("Ada Brook", "PERSON", "AB", "initials"),
        ("Ada Brook", "PERSON", "Adda Brook", "edited"),
        ("Ada Brook", "PERSON", "Brok", "edited"),
        ("Ada Brook", "PERSON", "Brock", "edited"),
        ("José Ñandú", "PERSON", "Jose Nandu", "whole"),
        ("José Ñandú", "PERSON", unicodedata.normalize("NFD", "JOSÉ ÑANDÚ"), "whole"),
        (unicodedata.normalize("NFD", "Jörg Müller"), "PERSON", "Joerg MUELLER", "whole"),
        ("Jörg Müller", "PERSON", "Müller, Jorg", "whole"),
        ("Łukasz Łoś", "PERSON", "LUKASZ LOS", "whole"),
        ("Sørine Ærland", "PERSON", "Sorine Aerland", "whole"),
        ("Quorby", "PERSON", "Quo\u00adr\u200bby", "whole"),
        ("प्रिया शर्मा", "PERSON", "प्रिया", "part"),
        ("+49 170 1234567", "PHONE_NUMBER", "٤٩ ١٧٠ ١٢٣٤٥٦٧", "whole"),
        ("Eve van der Farrow", "PERSON", "Eve Farrow", "whole"),
        ("(206) 555-0147", "PHONE_NUMBER", "206.555.0147", "whole"),
        ("(206) 555-0147", "PHONE_NUMBER", "two zero six five five five zero one four seven", "whole"),
        ("(206) 555-0147", "PHONE_NUMBER", "2065550148", "edited"),
        ("ada.brook@example.com", "EMAIL_ADDRESS", "Ada Brook", "part"),
        ("27 Pemberton Lane", "STREET_ADDRESS", "Pemberton lane", "part"),
        ("The Quill & Daughters Ltd.", "COMPANY", "Quill & Daughters", "whole"),
    ],
)
def test_variants_are_found(original, label, text, kind):
    assert kinds(of(original, label), text) == {kind}


@check_each_row("text", ["Ada", "Brick", "Rooks", "Brookes", "Ada Cyd", "B. Ada", "Bro", "brook ada ada"])
def test_what_is_no_variant_is_not_found(text):
    assert kinds(of("Bob Brook"), text) == set()


def test_an_ending_of_a_phone_number_stands_for_it_whatever_the_country_code():
    assert kinds(of("+44 20 7946 0958", "PHONE_NUMBER"), "079460958") == {"part"}


@pytest.mark.parametrize(("original", "label"), [("41", "AGE"), ("Jo", "PERSON"), ("...", "PERSON"), ("", "PERSON")])
def test_what_says_nothing_has_no_digests(original, label):
    assert checking.compute_digests(KEY, original, label) == (0, {})


def test_numbers_are_not_looked_for_with_one_digit_another_where_that_is_another_number():
    assert kinds(of("62704", "US_ZIP_CODE"), "62705") == set()
    assert kinds(of("12 May 2019", "DATE"), "13 May 2019") == set()


LETTERS = st.text("abcdefgh", min_size=5, max_size=12)


def near(a: str, b: str) -> bool:
    """Whether at most one insertion, deletion or substitution lies between the two, by the definition."""
    at = {a}
    at |= {a[:i] + a[i + 1 :] for i in range(len(a))}
    at |= {a[:i] + c + a[i:] for i in range(len(a) + 1) for c in set(b)}
    at |= {a[:i] + c + a[i + 1 :] for i in range(len(a)) for c in set(b)}
    return b in at


@given(LETTERS, LETTERS, st.integers(0, 12), st.sampled_from("abcdefgh"), st.sampled_from(["cut", "put", "set", "two"]))
def test_one_letter_another_is_found_and_two_are_not(name, other, place, letter, what):
    i = place % len(name)
    changed = {
        "cut": name[:i] + name[i + 1 :],
        "put": name[:i] + letter + name[i:],
        "set": name[:i] + letter + name[i + 1 :],
        "two": other,
    }[what]
    assert bool(of(name).edited(changed)) == near(name, changed)


@given(st.lists(st.text(st.characters(categories=["Lu", "Ll"]), min_size=1, max_size=9), min_size=1, max_size=4))
def test_forms_are_those_that_text_is_cut_into(names):
    """Otherwise a form could never be met."""
    forms = make_all_forms(" ".join(names), "PERSON")
    for kind, some in forms.by_kind.items():
        for form in some:
            assert kind == "initials" or [w.text for w in split_folded_words(form)] == form.split(" ")


# In the vault


def test_each_original_has_digests(vault):
    write(vault, "letters", "", "Ada Brook", "Cyd Dale")
    write(vault, "calls", "", "Eve Farrow")
    assert len(vault.digests()) == 3
    assert {kind for kind, _ in vault.digests().named("ada brook")} == {"whole"}
    assert vault.digests("calls").named("farrow")
    assert not vault.digests("calls").named("ada brook")
    assert not vault.digests("nowhere").named("farrow")


def test_the_same_original_counts_once_whatever_stands_for_it(vault):
    with vault.book("letters") as book:
        book.remember("[PERSON_1]", "Ada Brook", "PERSON", "tag@1", "ada")
        book.remember("Eve Dale", "ADA BROOK", "PERSON", "pseudonym@1", "ada")
    write(vault, "calls", "", "ada brook")
    assert len(vault.digests()) == 1


def test_digests_go_when_their_originals_go(vault):
    write(vault, "letters", "ada", "Ada Brook", "Cyd Dale")
    write(vault, "letters", "cyd", "Cyd Dale")
    vault.purge(subject="ada")
    assert not vault.digests().named("brook")
    assert vault.digests().named("dale")
    vault.purge(scope="letters")
    assert len(vault.digests()) == 0


def test_what_has_expired_is_not_checked_any_more(where, clock):
    clock(1_000_000)
    with Vault.create(where, SECRET, keep_days=1) as vault:
        write(vault, "letters", "", "Ada Brook")
        assert len(vault.digests()) == 1
        clock(1_000_000 + 3 * 86_400)
        assert len(vault.digests()) == 0


def test_digests_stay_the_same_when_secret_and_data_key_change(vault):
    write(vault, "letters", "", "Ada Brook")
    before = vault.digests()
    vault.rotate(SECRET + b"2", data=True)
    write(vault, "letters", "", "Cyd Dale")
    after = vault.digests()
    assert after.key == before.key
    assert after.named("ada brook") and after.named("cyd dale")


def test_an_import_makes_digests_of_its_own(vault, tmp_path):
    write(vault, "letters", "", "Ada Brook")
    vault.export(tmp_path / "export", SECRET)
    with Vault.create(tmp_path / "other", SECRET) as other:
        other.import_(tmp_path / "export", SECRET)
        assert other.digests().named("ada brook")
        assert other.digests().key != vault.digests().key


def test_an_older_vault_has_digests(tmp_path):
    copy = shutil.copy(FROZEN, tmp_path / "copy.vault")
    with Vault.open(copy, b"the frozen vault's secret, 32 by") as vault:
        found = vault.digests("frozen")
        assert len(found) > 5
        for form in ("ada brook", "cyd dale", "2125550142", "leeds"):
            assert found.named(form), form


def test_a_vault_without_its_secret_tells_no_digests(vault, where):
    with Vault.open(where) as locked, pytest.raises(VaultLocked):
        locked.digests()


def test_a_row_that_was_moved_is_seen(file_vault, file):
    import sqlite3

    write(file_vault, "letters", "", "Ada Brook", "Cyd Dale")
    connection = sqlite3.connect(file)
    connection.execute(
        "UPDATE allonym_known SET sealed = (SELECT sealed FROM allonym_known WHERE rowid = 2) WHERE rowid = 1"
    )
    connection.commit()
    connection.close()
    with pytest.raises(VaultError, match="'known' is damaged"):
        file_vault.digests()


# The file


def test_the_file_finds_what_the_vault_finds_and_holds_no_text(vault, tmp_path):
    path = tmp_path / "letters.digests"
    write(vault, "letters", "", "Adelheid Brook", "Zaphrandel Quorby")
    assert vault.write_digests(path, actor="ops") == 2
    read, own = read_digests(path), vault.digests()
    assert (read.labels, read.longest, read.key) == (own.labels, own.longest, own.key)
    assert read.named("zaphrandel") == own.named("zaphrandel") != ()
    assert read.edited("brok") == own.edited("brok") != frozenset()
    for name in ("zaphrandel", "quorby", "adelheid", "brook"):  # four signs of base64 can be a name
        assert name not in path.read_text(encoding="ascii").lower()
    assert "Zaphrandel" not in repr(read) + repr(own) and read.key.hex() not in repr(read)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [(one.action, one.actor, one.counts) for one in vault.audit()][-1] == ("digests", "ops", {"originals": 2})


def test_the_file_is_its_owners_alone_whatever_was_there(vault, tmp_path):
    path = tmp_path / "letters.digests"
    path.write_text("of an earlier version")
    path.chmod(0o644)
    vault.write_digests(path, overwrite=True)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600 and [p.name for p in tmp_path.glob("*letters*")] == [path.name]
    with pytest.raises(UsageError, match="cannot write"):
        vault.write_digests(tmp_path / "nowhere" / "letters.digests")


def test_the_vault_and_its_secret_are_not_written_over(file_vault, file, tmp_path):
    write(file_vault, "letters", "", "Ada Brook")
    for wrong in (lambda: file_vault.write_digests(file, overwrite=True),
                  lambda: file_vault.export(file, read_secret(new_secret(), "test"), overwrite=True)):  # fmt: skip
        with pytest.raises(UsageError, match="the vault itself"):
            wrong()
    assert len(file_vault.digests()) == 1
    where, key = str(tmp_path / "other.vault"), str(tmp_path / "key")
    run = CliRunner().invoke
    assert run(app, ["vault", "init", where, "--new-secret-file", key]).exit_code == 0
    before = Path(key).read_bytes()
    told = run(app, ["vault", "digests", where, "--secret-file", key, "-o", key, "--overwrite"])
    assert isinstance(told.exception, UsageError) and Path(key).read_bytes() == before


def test_many_originals_with_one_part_take_as_much_each_as_few():
    """The work for the last is that for the first: a list grows, it is not copied."""
    words, by_kind = checking.compute_digests(KEY, "Ada Brook", "PERSON")
    digests = checking.Digests.of(KEY, [("PERSON", by_kind)] * 20_000, words)
    assert len(digests.named("ada")) == 20_000 == len(digests.edited("brok"))


def test_a_file_that_exists_is_kept(vault, tmp_path):
    path = tmp_path / "letters.digests"
    path.write_text("mine")
    with pytest.raises(UsageError, match="exists"):
        vault.write_digests(path)
    assert path.read_text() == "mine"
    assert vault.write_digests(path, overwrite=True) == 0
    assert len(read_digests(path)) == 0


@pytest.mark.parametrize("change", ["cut", "head", "text", "version", "short", "key"])
def test_a_damaged_file_is_refused(vault, tmp_path, change):
    path = tmp_path / "letters.digests"
    write(vault, "letters", "", "Ada Brook")
    vault.write_digests(path)
    lines = path.read_text().splitlines()
    if change == "cut":
        lines[1] = lines[1][:-10]
    elif change == "short":  # cut off at the end of a line
        lines = lines[:1]
    elif change == "key":
        lines[0] = json.dumps(json.loads(lines[0]) | {"key": ""})
    elif change == "head":
        lines = lines[1:]
    elif change == "text":
        lines[1] = json.dumps({"label": "PERSON", "whole": "Ada Brook"})
    else:
        lines[0] = lines[0].replace('"allonym-digests": 1', '"allonym-digests": 2')
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(VaultError) as caught:
        read_digests(path)
    assert "Ada" not in str(caught.value)


@pytest.mark.parametrize(
    ("word", "stored"),
    [
        ("김민수", "\u1100\u1175\u11b7\u1106\u1175\u11ab\u1109\u116e"),
        ("Zoë", "zoe"),
        ("ŁUKASZ", "lukasz"),
        ("Strauß", "strauss"),
        ("٤٢", "42"),
        ("ｱﾝﾅ", "アンナ"),
    ],
)
def test_words_are_folded_as_in_the_digests_of_earlier_versions(word, stored):
    assert fold_word(word) == stored
