"""Tags that call labels in the language of the text, and a policy for texts in any language."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import allonym
from allonym.document import Document, Span
from allonym.errors import UnknownNameError
from allonym.labels import TAG_LANGUAGES, TAXONOMY, read_tag_names
from allonym.pipeline import replace_found
from allonym.policy import Policy
from allonym.protocol import list_policy_grammars
from allonym.text.placeholders import find_placeholders
from allonym.vault import Vault

KEY = b"a key of thirty-two characters.."
POLISH = (
    "Szanowna Pani, spotkanie z panem Wójcikiem zostało przeniesione na przyszły wtorek, dlatego proszę o telefon do "
    "biura pod numerem 601 555 872. Anna Kowalska przekaże dokumenty."
)
GERMAN = (
    "Sehr geehrte Frau Brandhuber,\n\nIhre Kundennummer lautet 4471-0982. Meine Schwester Hannelore wohnt in der "
    "Lindenstraße 17b, 80331 München.\n"
)
ENGLISH = "Please ring Margaret Holloway about the boiler before Friday, since her neighbours have complained."
AUTO = Policy.load("default").with_(name="auto", language="auto", names="language")
POLICIES = {names: AUTO.with_(names=names) for names in (*TAG_LANGUAGES, "language")}
LABELS = [label for label in read_tag_names()["de"] if label != "UNREAD_TEXT"]


def test_every_language_names_the_same_labels_in_capitals():
    tables = read_tag_names()
    assert set(tables) == set(TAG_LANGUAGES)
    for names in tables.values():
        assert set(names) == set(LABELS) | {"UNREAD_TEXT"} and all(label in TAXONOMY for label in names)
        assert all(re.fullmatch(r"[A-Z]+(?:_[A-Z]+)*", name) for name in names.values())
    assert TAXONOMY.to_language("US_SSN", "de") == "AUSWEISNUMMER"
    assert TAXONOMY.to_language("LANGUAGE", "pl") is None


def test_tags_are_in_the_language_of_each_document_and_the_report_tells_it():
    polish, german, english = (allonym.anonymize(text, AUTO) for text in (POLISH, GERMAN, ENGLISH))
    assert "[OSOBA_1]" in polish.text and "[TELEFON_1]" in polish.text and "[PERSON_1]" not in polish.text
    assert "[KUNDENNUMMER_1]" in german.text and "[ADRESSE_1]" in german.text
    assert "[PERSON_1]" in english.text
    assert dict(polish.report.languages) == {"pl": len(POLISH)} and dict(english.report.languages) == {}


def test_a_fixed_language_of_tags_and_one_of_a_rule(tmp_path):
    path = tmp_path / "p.toml"
    path.write_text(
        'extends = "default"\n[tag]\nnames = "fr"\n[rules.PHONE_NUMBER]\noperator = "tag"\nnames = "es"\n', "utf-8"
    )
    text = allonym.anonymize("Margaret Holloway's number is 212-555-0142.", Policy.load(path)).text
    assert text == "[PERSONNE_1]'s number is [TELEFONO_1]."
    path.write_text('extends = "default"\n[tag]\nnames = "xx"\n', "utf-8")
    with pytest.raises(UnknownNameError, match="unknown scheme"):
        Policy.load(path)


def test_a_policy_for_any_language_writes_tags_that_are_recognised_in_each():
    grammars = list_policy_grammars(AUTO)
    for names in read_tag_names().values():
        for label in ("PERSON", "CITY", "BANK_ACCOUNT"):
            (place,) = find_placeholders(f"x [{names[label]}_2] y", grammars)
            assert (place.start, place.end) == (2, 6 + len(names[label]))


@given(
    st.lists(st.tuples(st.sampled_from(LABELS), st.text(min_size=1, max_size=9).filter(str.strip)), max_size=6),
    st.sampled_from(list(POLICIES)),
    st.text(max_size=20),
)
@example([("CITY", "Ulm"), ("LOCATION", "Bad Ems"), ("CITY", "Ulm")], "de", "[ORT_1] ")
@example([("PERSON", "Zoë")], "pl", "[OSOBA_1] osoba 2 ")
def test_tags_in_any_language_are_restored(pieces, names, between):
    text, spans = between, []
    for label, surface in pieces:
        spans.append(Span(len(text), len(text) + len(surface), label))
        text += surface + between + "."
    result = replace_found(Document("d", text), spans, POLICIES[names], key=KEY)
    assert allonym.restore(result.text, plan=result.plan).text == text


@pytest.mark.parametrize("names", TAG_LANGUAGES)
def test_tags_come_back_from_a_rewritten_text(names, tmp_path):
    text = "Ada Brook from Leeds wrote to Tom Reed."
    spans = [Span(0, 9, "PERSON"), Span(15, 20, "CITY"), Span(30, 38, "PERSON")]
    with Vault.create(tmp_path / "v", KEY) as vault, vault.book("s", "") as book:
        policy = Policy.load("default").with_(name="tags", names=names)
        tags = [
            edit.replacement
            for edit in replace_found(Document("d", text), spans, policy, key=KEY, book=book).plan.edits
        ]
    assert tags[0] == f"[{read_tag_names()[names]['PERSON']}_1]"
    with Vault.open(tmp_path / "v", KEY) as vault:
        restored = allonym.restore(
            f"Reply to {tags[2]}: {tags[0].lower()} of {tags[1]} called.", vault=vault, scope="s"
        )
    assert restored.text == "Reply to Tom Reed: Ada Brook of Leeds called."
