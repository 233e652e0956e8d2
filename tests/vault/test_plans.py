"""Plans in the vault: found by id, output and pieces; encrypted, moved and erased with the rest."""

from __future__ import annotations

import sqlite3

import pytest

from allonym.errors import UsageError, VaultError
from allonym.plan import Edit, Plan, apply_edits, digest
from allonym.vault import Vault
from allonym.vault.plans import split_into_pieces

SECRET = b"a secret only for the tests, 32b"
TEXT = "Ada Brook came to Leeds in May.\nShe was 43 years old then. Nothing else was found.\nAda"
PAIRS = (("Ada Brook", "Emma Tyler"), ("Leeds", "Essen"), ("43", "45"), ("Ada", "Emma"))


def plan_of(text, pairs):
    edits, position = [], 0
    for number, (original, replacement) in enumerate(pairs, 1):
        start = text.index(original, position)
        position = start + len(original)
        edits.append(Edit(start, position, replacement, "PERSON", number, "pseudonym@1", original))
    made = apply_edits(text, edits)
    return Plan(digest(text), tuple(edits), (), digest(made)), made


def keep(vault, document, text=TEXT, pairs=PAIRS, scope="letters", subject=""):
    plan, made = plan_of(text, pairs)
    with vault.book(scope, subject) as book:
        book.keep_plan(document, plan, made)
    return plan, made


def test_pieces_are_the_sentences_of_each_line():
    text = "  Hi Ada.  Is it (3.5)?\r\nNo... it is not!\n\nBob"
    assert [text[a:b] for a, b in split_into_pieces(text)] == ["Hi Ada.", "Is it (3.5)?", "No...", "it is not!", "Bob"]


def test_a_plan_is_found_by_its_document_its_output_and_its_sentences(vault):
    plan, made = keep(vault, "letter 7")
    assert [(one.document, one.plan) for one in vault.plans("letters", "letter 7")] == [("letter 7", plan)]
    assert vault.plans("letters", "letter 7")[0].plan.edits[0].original == "Ada Brook"
    assert vault.plans("letters", "letter 8") == vault.plans("calls", "letter 7") == ()
    with vault.read_plans("letters") as reader:
        assert [one.document for one in reader.find_by_output(made)] == ["letter 7"]
        assert reader.find_by_output(made + " ") == ()
        assert [one.document for one in reader.find_by_pieces("So: She was 45 years old then.")] == []
        assert [one.document for one in reader.find_by_pieces("So. She was 45 years old then. ")] == ["letter 7"]
        assert reader.find_by_pieces("Nothing else was found.") == ()  # it has no replacement
        rows = reader.find_documents_of(["emma tyler", "Essen", "Hamburg"])
    assert set(rows) == {"emma tyler", "Essen"} and len(set(rows.values())) == 1


def test_the_same_plan_is_kept_once_and_another_beside_it(vault):
    keep(vault, "letter 7")
    keep(vault, "letter 7")
    assert len(vault.plans("letters", "letter 7")) == 1
    keep(vault, "letter 7", pairs=(*PAIRS[:3], ("Ada", "Eve")))
    assert len(vault.plans("letters", "letter 7")) == 2
    assert vault.info().scopes[0].plans == 2


def test_nothing_of_a_plan_lies_in_the_clear(tmp_path):
    with Vault.create(tmp_path / "v", SECRET) as vault:
        keep(vault, "letter about Ada", scope="Ada's")
        vault.rotate(SECRET)  # empties the journal into the file
    data = (tmp_path / "v").read_bytes()
    for text in (b"Ada", b"Tyler", b"Essen", b"years old", digest(TEXT).encode(), digest("Emma").encode()):
        assert text not in data


def test_with_its_subject_a_plan_goes_with_all_that_finds_it(tmp_path):
    with Vault.create(tmp_path / "v", SECRET) as vault:
        keep(vault, "letter 7", subject="ada")
        keep(vault, "letter 8", subject="bob")
        keep(vault, "letter 8", subject="ada")
        connection = sqlite3.connect(tmp_path / "v")
        pieces = set(connection.execute("SELECT piece, plan FROM allonym_pieces").fetchall())
        erased = vault.purge(subject="ada")
        assert (erased.plans, erased.subjects, erased.checked) == (1, 1, "files")
        assert vault.plans("letters", "letter 7") == ()
        assert len(vault.plans("letters", "letter 8")) == 1
        left = set(connection.execute("SELECT piece, plan FROM allonym_pieces").fetchall())
        assert left < pieces and len(left) * 2 == len(pieces)
        assert vault.purge(scope="letters").plans == 1
        assert connection.execute("SELECT count(*) FROM allonym_pieces").fetchone() == (0,)
        connection.close()


def test_what_has_expired_is_not_found_and_is_purged(vault, clock):
    from datetime import UTC, datetime

    clock(1000)
    plan, made = plan_of(TEXT, PAIRS)
    with vault.book("letters", expires=datetime.fromtimestamp(2000, UTC)) as book:
        book.keep_plan("letter 7", plan, made)
    assert len(vault.plans("letters", "letter 7")) == 1
    clock(3000)
    assert vault.plans("letters", "letter 7") == ()
    with vault.read_plans("letters") as reader:
        assert reader.find_by_pieces(made) == () and reader.find_documents_of(["Essen"]) == {}
    assert vault.purge(expired=True).plans == 1


def test_plans_move_with_an_export_and_a_new_data_key(tmp_path):
    with Vault.create(tmp_path / "a", SECRET) as vault:
        _, made = keep(vault, "letter 7", subject="ada")
        vault.rotate(SECRET, data=True)
        assert vault.plans("letters", "letter 7")[0].plan.result == digest(made)
        assert vault.export(tmp_path / "file", SECRET) == 1
    with Vault.create(tmp_path / "b", SECRET + b"!") as other:
        assert other.import_(tmp_path / "file", SECRET, rename={"letters": "post"}).plans == 1
        assert other.import_(tmp_path / "file", SECRET, rename={"letters": "post"}).plans == 0
        with other.read_plans("post") as reader:
            assert [one.document for one in reader.find_by_output(made)] == ["letter 7"]
            assert len(reader.find_by_pieces("Emma Tyler came to Essen in May.")) == 1
        assert other.purge(subject="ada").plans == 1


def test_a_plan_of_another_row_is_refused(tmp_path):
    with Vault.create(tmp_path / "v", SECRET) as vault:
        keep(vault, "letter 7")
        keep(vault, "letter 8")
        connection = sqlite3.connect(tmp_path / "v")
        sealed = [row[0] for row in connection.execute("SELECT sealed FROM allonym_plans ORDER BY digest")]
        connection.execute("UPDATE allonym_plans SET sealed = ?", (sealed[0],))
        connection.commit()
        connection.close()
        with pytest.raises(VaultError, match="'plans' is damaged"):
            vault.plans("letters", "letter 7") and vault.plans("letters", "letter 8")


def test_after_the_transaction_nothing_is_kept(vault):
    plan, made = plan_of(TEXT, PAIRS)
    with vault.book("letters") as book:
        pass
    with pytest.raises(UsageError, match="transaction is over"):
        book.keep_plan("letter 7", plan, made)
