"""Entities of documents follow the register of the vault's scope."""

from __future__ import annotations

import pytest

from allonym import anonymize
from allonym.document import Document, Span
from allonym.pipeline import replace_found
from allonym.policy import Policy
from allonym.vault import Vault
from allonym.vault.people import list_people

SECRET = b"a secret only for the tests, 32b"


@pytest.fixture
def vault(tmp_path):
    with Vault.create(tmp_path / "test.vault", SECRET) as made:
        yield made


def replace_names(vault, text, policy="reversible", scope="s", subject=""):
    """Replace the marked names of a text: ``<Ada Brook> came``."""
    plain, spans = "", []
    for piece in text.split("<"):
        name, mark, rest = piece.partition(">")
        if mark:
            spans.append(Span(len(plain), len(plain) + len(name), "PERSON"))
        plain += name + rest
    policy = Policy.load(policy)
    with vault.book(scope, subject) as book:
        return replace_found(
            Document("", plain), spans, policy, key=vault.operator_key, scope=scope, book=book
        ).text.replace("\n", " ")


CASES = (
    (["<Margaret Whitcombe> came.", "<Margaret> left. Ms <Whitcombe> rang."], [[1], [1, 1]]),
    (["<Margaret> came.", "<Margaret Whitcombe> rang."], [[1], [1]]),
    (["<Margaret Whitcombe> and <Margaret Hale> came.", "<Margaret> left."], [[1, 2], [3]]),
    (["<Margaret> came.", "<Margaret Whitcombe> met <Margaret Hale>.", "<Margaret> left."], [[1], [2, 3], [1]]),
    (["<Jürgen Müller> came.", "<Juergen Mueller> left.", "<Jurgen Muller> sat."], [[1], [1], [1]]),
    (["<Robert Stone> came.", "<Bob> left.", "<Rob Stone> sat."], [[1], [1], [1]]),
    (["<Anna Hart> came.", "Mr <Hart> left."], [[1], [2]]),
    (["<Ada Brook> came.", "<M. Brook> left.", "<A. Brook> sat."], [[1], [2], [1]]),
    (["<Victoria Beckham> and <David Beckham> came.", "<Beckham> left."], [[1, 2], [3]]),
)


@pytest.mark.parametrize(("texts", "numbers"), CASES, ids=lambda value: str(value[0]))
def test_people_are_the_same_in_all_documents_where_nobody_else_can_be_meant(vault, texts, numbers):
    for text, expected in zip(texts, numbers, strict=True):
        made = replace_names(vault, text)
        assert [int(word.rstrip(">.")) for word in made.split() if word[0].isdigit()] == expected


def test_scopes_have_registers_of_their_own(vault):
    replace_names(vault, "<Margaret Whitcombe> came.", scope="one")
    replace_names(vault, "<Margaret> came.", scope="two")
    assert [p.names for p in list_people(vault, "two")] == [("Margaret",)]


def test_a_person_keeps_the_pseudonym_when_the_family_name_becomes_known(vault):
    first = replace_names(vault, "<Margaret> came.", "pseudonyms")
    second = replace_names(vault, "<Margaret Whitcombe> came.", "pseudonyms")
    assert second.split()[0] == first.split()[0]
    assert replace_names(vault, "<Margaret> came.", "pseudonyms") == first


def test_a_second_pass_gives_one_pseudonym_though_the_first_is_somebody_elses_name(vault):
    texts = ["<Saffron Lisle> came."]
    given = replace_names(vault, texts[0], "pseudonyms").split()[0]
    texts.append(f"<Saffron Lisle> met <{given} Okonjo>.")
    assert given not in replace_names(vault, texts[1], "pseudonyms")
    again = [replace_names(vault, text, "pseudonyms").split()[:2] for text in texts]
    assert again[0] == again[1]


def test_names_that_several_may_bear_get_another_pseudonym(vault):
    made = replace_names(vault, "<Margaret Whitcombe> met <Margaret Hale>.", "pseudonyms")
    alone = replace_names(vault, "<Margaret> came.", "pseudonyms").split()[0]
    assert alone not in made.replace(".", "").split()


def test_the_same_vault_gives_the_same_bytes(vault, tmp_path):
    replace_names(vault, "<Ada Brook> came.", "pseudonyms")
    vault.export(tmp_path / "copy", SECRET)
    outputs = []
    for name in ("a", "b"):
        with Vault.create(tmp_path / name, SECRET) as other:
            other.import_(tmp_path / "copy", SECRET)
            assert [p.names for p in list_people(other, "s")] == [("Ada Brook",)]
            outputs.append(replace_names(other, "<Ada> met <Cyd Dale>. <Brook> left.", "pseudonyms"))
    assert outputs[0] == outputs[1] == replace_names(vault, "<Ada> met <Cyd Dale>. <Brook> left.", "pseudonyms")


def test_where_each_document_stands_for_itself_nobody_is_entered(vault):
    policy = Policy.load("reversible").with_(consistent="document")
    replace_names(vault, "<Margaret Whitcombe> came.", policy)
    assert list_people(vault, "s") == ()


def test_the_people_of_a_subject_are_purged_with_it(vault):
    replace_names(vault, "<Ada Brook> met <Cyd Dale>.", subject="one")
    replace_names(vault, "<Ada Brook> came.", subject="two")
    assert vault.purge(subject="one").people == 1
    assert [p.names for p in list_people(vault, "s")] == [("Ada Brook",)]


def test_a_key_of_the_caller_draws_the_same_in_every_vault_until_somebody_is_erased(tmp_path):
    text, key = "Margaret Whitcombe came to see Tom Baker.", b"k" * 32
    drawn = []
    for name in "ab":
        with Vault.create(tmp_path / name, SECRET) as vault:
            drawn.append(anonymize(text, "pseudonyms", key=key, vault=vault, scope="s").text)
            vault.erase_person("Margaret Whitcombe")
            after = anonymize(text, "pseudonyms", key=key, vault=vault, scope="s").text
            assert after != drawn[0] and "Whitcombe" not in after
    assert drawn[0] == drawn[1]
