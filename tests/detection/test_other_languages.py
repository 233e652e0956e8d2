"""Passages in other languages are read where the optional package is installed, and English text stays as it was."""

import importlib
from pathlib import Path

import pytest

import allonym
from allonym.detection import other_languages
from allonym.detection.languages import read_language_names
from allonym.detection.selection import build_detectors
from allonym.document import Document, Span
from allonym.policy import Policy

PACKAGES = Path(__file__).resolve().parents[2] / "packages"
GERMAN = (
    "Sehr geehrte Damen und Herren, die Besprechung mit Thorben Klingbeil wurde auf den nächsten Mittwoch verschoben. "
    "Er wohnt seit dem vergangenen Jahr in Hamburg und arbeitet dort in einem kleinen Büro."
)
ENGLISH = "Please send the minutes to Thorben Klingbeil, who moved to Hamburg with his family last year."


@pytest.fixture
def policy(monkeypatch):
    """The default policy while both packages are importable."""
    for package in other_languages.PACKAGES:
        monkeypatch.syspath_prepend(str(PACKAGES / package))
    importlib.invalidate_caches()
    other_languages.load_packages.cache_clear()
    build_detectors.cache_clear()
    yield Policy.load("default").with_(name="languages")
    monkeypatch.undo()
    importlib.invalidate_caches()
    other_languages.load_packages.cache_clear()
    build_detectors.cache_clear()


def test_a_german_text_is_read_and_the_report_no_longer_says_otherwise(policy):
    result = allonym.anonymize(GERMAN, policy)
    assert "Klingbeil" not in result.text and "Hamburg" not in result.text
    assert "Besprechung" in result.text and "verschoben" in result.text
    assert result.report.unread == {}


def test_english_text_is_as_without_the_package(policy, monkeypatch):
    (tagger,) = (d for d in build_detectors(policy) if "en" in getattr(d, "languages", ()))
    findings = tagger(Document("", ENGLISH))
    monkeypatch.setattr(other_languages, "list_package_languages", frozenset)
    monkeypatch.setattr("allonym.detection.tagger.list_package_languages", frozenset)
    build_detectors.cache_clear()
    (tagger,) = (d for d in build_detectors(policy) if "en" in getattr(d, "languages", ()))
    assert tagger.languages == {"en"} and tagger(Document("", ENGLISH)) == findings


def test_findings_do_not_depend_on_what_was_read_before(policy):
    (tagger,) = (d for d in build_detectors(policy) if "en" in getattr(d, "languages", ()))
    findings = tagger(Document("", GERMAN))
    tagger(Document("", ENGLISH))
    assert findings and tagger(Document("", GERMAN)) == findings


def test_languages_are_those_that_passages_are_told_apart_by(policy):
    languages = other_languages.list_package_languages()
    assert "de" in languages and languages - {"nb", "nn", "bs"} <= read_language_names().keys()
    assert "en" not in languages and "sr" not in languages


def test_a_policy_that_looks_for_people_alone_gets_no_places(policy):
    people = Policy.only(["PERSON"])
    assert {s.label for d in build_detectors(people) for s in d(Document("", GERMAN)) if s.source == "tagger"} == {
        "PERSON"
    }


def test_what_is_said_of_the_package_is_what_it_reads(policy):
    told = frozenset().union(*other_languages.PACKAGES.values())
    assert other_languages.list_package_languages() == told | {"nb", "nn", "bs"}
    assert other_languages.advise_package(["de", "pl"]) == ""


def test_ordinary_german_words_stay_where_their_neighbours_say_so():
    rows = [
        ("Wohnort: am See", "Wohnort", 0.9, False),  # a field
        ("Das sagte ein freundlicher Mann.", "Mann", 0.9, False),
        ("Dr. Ute Merz, Amtsärztin", "Amtsärztin", 0.9, False),
        ("Bitte Kassenbeleg und Seriennummer senden", "Seriennummer", 0.4, False),
        ("Bitte Neustadt melden", "Neustadt", 0.4, True),
        ("Heute kommt Mann zu uns.", "Mann", 0.9, True),  # who may be called so
    ]
    for text, word, score, is_kept in rows:
        span = Span(text.index(word), text.index(word) + len(word), "PERSON", score, "tagger")
        assert (other_languages._trim_ordinary_words(text, span, "de") is not None) == is_kept, text


def test_a_name_in_small_letters_stays_one_beside_ordinary_words():
    for text, name in [
        ("Paket für leonie", "leonie"),
        ("paket für leonie", "leonie"),
        ("kiel per paket", "kiel"),
        ("Kiel per Paket", "Kiel"),
        ("Paket für Leonie", "Leonie"),
    ]:
        span = other_languages._trim_ordinary_words(text, Span(0, len(text), "PERSON", 0.9, "tagger"), "de")
        assert span is not None and text[span.start : span.end] == name


def test_a_polish_text_is_read_by_a_package_of_its_own(policy):
    text = (
        "Wczoraj wieczorem spotkałem się z Bożydarem Kiełbasińskim, który od lat mieszka w Pruszkowie i pracuje dla "
        "małej firmy. Opowiadał długo o swoich planach i o tym, jak zmieniła się okolica."
    )
    models = other_languages.load_packages()
    assert models["pl"] is not models["de"] and models["pl"].about["licence"].startswith("GPL")
    result = allonym.anonymize(text, policy)
    assert "Kiełbasińskim" not in result.text and "Pruszkowie" not in result.text
    assert "zmieniła się okolica" in result.text and result.report.unread == {}
