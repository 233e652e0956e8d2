"""The register by hand: listed, joined, parted, imported; and a person erased from a vault."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

import allonym
from allonym.document import Document
from allonym.errors import UsageError, VaultError
from allonym.vault import Vault
from allonym.vault.people import import_people, join_people, list_people, part_name

SECRET = b"a secret only for the tests, 32b"
TEXTS = (
    "Zaphranda Quennell met Tom Baker in June.",
    "Zaphranda was late. Ms Quennell apologised to Tom.",
    "Write to zaphranda.quennell@example.com or to Anna Hart.",
)


def fill(vault, policy="reversible"):
    """Anonymise the texts, as documents 0 to 2."""
    return [
        allonym.anonymize(Document(f"letter {i}", text), policy, vault=vault, scope="s").text
        for i, text in enumerate(TEXTS)
    ]


def get_names(vault):
    return [person.names for person in list_people(vault, "s")]


def test_people_are_listed_with_documents_and_replacements(vault):
    fill(vault)
    listed = [(p.number, p.names[0], p.documents, p.replacement) for p in list_people(vault, "s")]
    assert listed == [
        (1, "Zaphranda Quennell", 2, "<PERSON 1>"),
        (2, "Tom Baker", 2, "<PERSON 2>"),
        (3, "Anna Hart", 1, "<PERSON 3>"),
    ]
    with pytest.raises(VaultError, match="has no scope 'other'; it has: 's'"):
        list_people(vault, "other")


def test_joined_people_are_one_in_later_documents_and_parted_ones_two(vault):
    fill(vault)
    import_people(vault, "s", [["Blackie"]])
    join_people(vault, "s", 1, "Blackie", actor="ann")
    assert get_names(vault)[0] == ("Zaphranda Quennell", "Blackie")
    made = allonym.anonymize("Blackie Smith-Nobody", "reversible", vault=vault, scope="s").text
    assert "<PERSON 1>" not in made
    new = part_name(vault, "s", 1, "blackie")
    assert (new.names, get_names(vault)[0]) == (("Blackie",), ("Zaphranda Quennell",))
    assert [entry.action for entry in vault.audit()][-3:] == ["people", "join", "part"]


def test_a_joined_person_has_one_pseudonym_under_all_names(vault):
    fill(vault, "pseudonyms")
    import_people(vault, "s", [["Zaphranda Quennell", "Zaphranda Obberly"]])
    one, two = (
        allonym.anonymize(f"Mrs {name} came.", "pseudonyms", vault=vault, scope="s").text
        for name in ("Zaphranda Quennell", "Zaphranda Obberly")
    )
    assert one == two


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda v: join_people(v, "s", 1, "Zaphranda Quennell"), "both are person 1 already"),
        (lambda v: join_people(v, "s", 1, "Nobody Atall"), "nobody of this name; allonym people list"),
        (lambda v: join_people(v, "s", 1, 77), "has no person 77"),
        (lambda v: part_name(v, "s", 1, "Tom"), "person 1 has no such name"),
        (lambda v: part_name(v, "s", 1, "Zaphranda Quennell"), "person 1 has no other name"),
        (lambda v: import_people(v, "s", [["Tom Baker", "Anna Hart"]]), "row 1 has names of 2 people"),
        (lambda v: v.erase_person(77, scope="s"), "has no person 77"),
        (lambda v: v.erase_person("7"), "number is that of one scope"),
    ],
)
def test_what_fits_nobody_changes_nothing_and_is_not_quoted(vault, call, message):
    fill(vault)
    before = get_names(vault)
    with pytest.raises((VaultError, UsageError), match=message) as caught:
        call(vault)
    assert "Nobody" not in str(caught.value) and "Zaphranda" not in str(caught.value)
    assert get_names(vault) == before


def test_imported_people_are_new_or_get_more_names(vault):
    fill(vault)
    rows = [["Tom Baker", "Tommo"], [" Ivy  Marsh ", ""], ["Anna Hart"], []]
    assert import_people(vault, "s", rows) == (1, 1, 1)
    assert import_people(vault, "s", rows) == (0, 0, 3)
    assert get_names(vault)[1:] == [("Tom Baker", "Tommo"), ("Anna Hart",), ("Ivy Marsh",)]


def test_the_register_survives_a_new_data_key_and_an_export(vault, tmp_path):
    fill(vault)
    vault.rotate(SECRET, data=True)
    people = list_people(vault, "s")
    vault.export(tmp_path / "export", SECRET)
    with Vault.create(tmp_path / "other", SECRET) as other:
        assert other.import_(tmp_path / "export", SECRET).people == 3
        assert list_people(other, "s") == people
        part_name(other, "s", import_people(other, "s", [["Tom Baker", "Tommo"]]) and 2, "Tommo")
        assert [p.number for p in list_people(other, "s")] == [1, 2, 3, 4]
        assert other.import_(tmp_path / "export", SECRET).people == 0


def test_no_name_shows_in_a_repr(vault):
    fill(vault)
    assert "Zaphranda" not in repr(list_people(vault, "s")) + repr(vault.erase_person("Zaphranda Quennell"))


# Erasing


@pytest.mark.parametrize("policy", ["reversible", "pseudonyms"])
def test_an_erased_person_is_gone_and_the_rest_is_restored(vault, policy):
    made = fill(vault, policy)
    erased = vault.erase_person("Zaphranda Quennell", actor="ann")
    assert (erased.documents, erased.edits, erased.purged.people) == (3, 4, 1)
    for text, original in zip(made, TEXTS, strict=True):
        restored = allonym.restore(text, vault=vault, scope="s").text
        assert "Quennell" not in restored and "Zaphranda" not in restored
        assert restored.split()[-1] == original.split()[-1]
    assert get_names(vault) == [("Tom Baker",), ("Anna Hart",)]
    assert not [entry for entry in vault.known("s") if "uennell" in entry.original.lower()]
    (entry,) = [entry for entry in vault.audit() if entry.action == "erase"]
    assert (entry.actor, entry.counts["people"]) == ("ann", 1)


@pytest.mark.parametrize("policy", ["reversible", "pseudonyms", "wild-tags"])
def test_the_same_name_gets_another_replacement_afterwards(vault, policy):
    first = fill(vault, policy)[0]
    vault.erase_person(1, scope="s")
    again = fill(vault, policy)[0]
    assert again.partition(" met ")[0] != first.partition(" met ")[0]
    assert again.partition(" met ")[2] == first.partition(" met ")[2]


def test_a_person_is_erased_by_name_without_a_register(vault):
    with vault.book("s", "patient 7") as book:
        book.remember("Eve Stone", "Zaphranda Quennell", "PERSON", "pseudonym@1", "PERSON:zaphranda quennell")
        book.remember("Eve", "Zaphranda", "PERSON", "pseudonym@1", "PERSON:zaphranda quennell")
        book.remember("Ted", "Tom", "PERSON", "pseudonym@1", "PERSON:tom")
    assert vault.erase_person("Quennell, Zaphranda").rows == 2
    assert [entry.original for entry in vault.known("s")] == ["Tom"]


def test_nobody_is_erased_if_nobody_has_the_name(vault):
    fill(vault)
    assert vault.erase_person("Ignatia Pell").rows == 0
    assert len(get_names(vault)) == 3


def test_a_subject_who_bears_the_name_is_erased_with_the_documents(vault):
    with vault.book("s", "Zaphranda Quennell") as book:
        book.remember("[DATE_1]", "3 May 1960", "DATE_TIME", "tag@1", "DATE_TIME:3 may 1960")
    assert vault.erase_person("Zaphranda Quennell").purged.subjects == 1
    assert vault.known("s") == ()


def test_plans_that_are_equal_without_the_person_become_one(vault):
    for name in ("Zaphranda Quennell", "Zaphranda"):
        made = allonym.anonymize(f"{name} met Tom Baker.", "reversible", vault=vault, scope="s").text
    erased = vault.erase_person("Zaphranda Quennell")
    assert (erased.documents, erased.edits, vault.info().scopes[0].plans) == (2, 2, 1)
    assert allonym.restore(made, vault=vault, scope="s").text == made.replace("<PERSON 2>", "Tom Baker")


def test_a_document_in_which_a_joined_person_had_two_names_counts_once(vault):
    allonym.anonymize("Zaphranda Quennell met Tom Baker.", "reversible", vault=vault, scope="s")
    join_people(vault, "s", 1, 2)
    assert [person.documents for person in list_people(vault, "s")] == [1]


def test_a_joined_person_is_kept_as_long_as_both(vault):
    later = datetime.now(UTC) + timedelta(days=3)
    with vault.book("s", expires=later - timedelta(days=2)) as book:
        book.enter_person("PERSON:tom baker", ("Tom Baker",))
    with vault.book("s", "subject", expires=later) as book:
        book.enter_person("PERSON:tommo", ("Tommo",))
    join_people(vault, "s", 1, 2)
    with vault.read_register("s") as register:
        register._now = int((later - timedelta(days=1)).timestamp())
        assert [person.names for person in register.read_people()] == [("Tom Baker", "Tommo")]
