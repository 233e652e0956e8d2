"""Which passages are in which language, what is read there, and what a policy makes of the rest."""

import json
import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.conftest import CASES, UNTAGGED
from tests.rows import check_each_row

import allonym
from allonym.detection import ANY_LANGUAGE, speakers
from allonym.detection.adapters import Adapter, Found
from allonym.detection.languages import (
    Passage,
    count_languages,
    describe_unread,
    find_main_language,
    hide_unread,
    identify_passages,
    list_unread,
    read_model_languages,
)
from allonym.detection.listed_names import find_listed_names
from allonym.detection.selection import build_detectors, count_unread_characters, find_unread_passages
from allonym.detection.turns import add_turns
from allonym.document import Document
from allonym.errors import DataError
from allonym.labels import UNREAD_TEXT
from allonym.policy import Policy

ROWS = [json.loads(line) for line in (CASES / "languages.jsonl").read_text("utf-8").splitlines()]
TEXTS = {row["id"]: row["text"] for row in ROWS}
POLICY = Policy.load("default")
PIECES = st.lists(st.sampled_from([*TEXTS.values(), "\n", " ", "Ada Brook", "12 %", "\n\n"]), max_size=6)


@check_each_row("row", ROWS)
def test_passages_in_other_languages_are_told_and_english_text_never_is(row):
    text = row["text"]
    unread = [(p.language, text[p.start : p.end]) for p in list_unread(text, {"en"})]
    assert unread == [(code, text.strip() if part == "*" else part) for code, part in row["passages"]]


@pytest.mark.parametrize("name", ["readers", "link", "spoken", "disguise", "numbers", "families"])
def test_the_english_texts_of_other_tests_are_read(name):
    rows = map(json.loads, (CASES / f"{name}.jsonl").read_text("utf-8").splitlines())
    texts = [re.sub(r"[«»‹›]|\|[^«»‹›|]+(?=»)", "", row.get("text") or row.get("marked") or "") for row in rows]
    assert any(texts)
    assert not [text for text in texts if list_unread(text, {"en"})]


@given(PIECES)
def test_passages_touch_cover_the_text_and_differ_from_their_neighbours(pieces):
    text = "".join(pieces)
    passages = identify_passages(text)
    assert "".join(text[p.start : p.end] for p in passages) == text
    assert all(p.start < p.end for p in passages)
    assert all(a.end == b.start and a.language != b.language for a, b in pairwise(passages))
    assert identify_passages.__wrapped__(text) == passages


@given(st.text(alphabet="aeü. \n—?字пA1", max_size=60))
def test_any_text_has_passages(text):
    assert "".join(text[p.start : p.end] for p in identify_passages(text)) == text


@given(PIECES)
def test_hiding_keeps_all_offsets(pieces):
    text = "".join(pieces)
    hidden = hide_unread(Document("", text), {"en"}).text
    assert len(hidden) == len(text)
    unread = list_unread(text, {"en"})
    assert not any(hidden[p.start : p.end].strip() for p in unread)
    assert all(a == b for i, (a, b) in enumerate(zip(text, hidden, strict=True)) if not _is_inside(i, unread))


def _is_inside(place, passages):
    return any(p.start <= place < p.end for p in passages)


def test_a_reader_of_any_language_and_of_several_leaves_less_unread():
    text = TEXTS["mixed-two"]
    assert [p.language for p in list_unread(text, {"en"})] == ["de", "pl"]
    assert [p.language for p in list_unread(text, {"en", "de"})] == ["pl"]
    assert [p.language for p in list_unread(text, {"de", "pl"})] == ["en", "en"]
    assert list_unread(text, ANY_LANGUAGE) == ()


def test_the_tagger_says_what_it_reads_and_rules_say_nothing():
    languages = {
        name: getattr(d, "languages", None) for name, d in zip(POLICY.detectors, build_detectors(POLICY), strict=True)
    }
    assert languages == {**dict.fromkeys(UNTAGGED), "tagger": {"en"}}
    assert find_unread_passages(Document("", TEXTS["letter-pl"]), POLICY.with_(detectors=UNTAGGED)) == ()


def test_a_model_for_one_language_gets_nothing_else_to_read():
    shown = []

    def read(texts):
        shown.extend(texts)
        return [[Found(0, 4, "PERSON", 0.9)] for _ in texts]

    document = Document("", TEXTS["mixed-two"])
    Adapter("model", read, str, languages=read_model_languages("pl"))(document)
    Adapter("rules", read, str)(document)
    assert "Na zebraniu" in shown[0] and "Sitzung" not in shown[0] and "minutes" not in shown[0]
    assert shown[1] == document.text
    assert read_model_languages("xx") == read_model_languages(None) == ANY_LANGUAGE


@check_each_row("row", [row for row in ROWS if row["id"].startswith(("letter", "short"))])
def test_ordinary_words_of_other_languages_stay(row):
    result = allonym.anonymize(row["text"])
    words = [word for span in result.spans for word in row["text"][span.start : span.end].split()]
    assert [word for word in words if word.islower()] == []
    assert result.report.unread == {row["passages"][0][0]: len(row["text"].strip())}


@check_each_row(
    "text names",
    [
        ("Wir trafen Anna Schneider und Herrn Yildiz im Büro.", ["Anna Schneider", "Yildiz"]),
        ("Frau Dr. Öztürk hat mit Hans-Peter von der Heide gesprochen.", ["Öztürk", "Hans-Peter von der Heide"]),
        ("Panie Marku, spotkanie z panem Wójcikiem i Katarzyną.", ["Wójcikiem"]),
        ("Merci, Monsieur Diallo. Madame Claire Le Goff viendra.", ["Diallo", "Claire Le Goff"]),
        ("La señora Romero y el señor don Luis Ibáñez.", ["Romero", "Luis Ibáñez"]),
        ("Herr J. R. Yildiz wohnt hier.", ["J. R. Yildiz"]),
        ("Die Frau und der Herr gehen ins Museum.", []),
        ("Von Herzen, An Ende, Sie Zeit", []),
        ("Frau Doktor", []),
        ("Am Tage der Aufführung sprach Herr Jan van den Berg.", ["Jan van den Berg"]),
        ("Widzieliśmy się z Tomaszem Kowalskim. Kowalskiego nie było.", ["Tomaszem Kowalskim", "Kowalskiego"]),
        ("Vi såg Ulf Karlsson och senare Cissi Wallin. Karlsson gick.", ["Ulf Karlsson", "Karlsson"]),
        ("Querida Lucía,\nnos vemos pronto.", ["Lucía"]),
        ("Imię i nazwisko: Zdzisława Brzęk\nadres: brak", ["Zdzisława Brzęk"]),
        ("Nos vemos en Sevilla y luego en Portugal, como siempre.", ["Sevilla", "Portugal"]),
        ("Wir sahen Essen und Hof, und Nizza im Mai. Der Weg war gut.", []),
    ],
)
def test_names_that_lists_and_titles_give_away(text, names):
    spans = find_listed_names(text, [Passage(0, len(text), "")])
    assert [text[s.start : s.end] for s in spans] == names


@check_each_row(
    "text kept",
    [
        ("Mit freundlichen Grüßen\nThomas Brandt", "Mit freundlichen Grüßen"),
        ("Sehr geehrte Frau Schneider,\nthe papers are attached.", "Sehr geehrte"),
        ("Thanks for the book.\nViele Grüße\nJana Brandt", "Viele Grüße"),
        ("Szanowni Państwo,\nplease find the offer attached.", "Szanowni Państwo"),
        ("Thanks for the book.\n\nCordialement,\nCamille Moreau", "Cordialement"),
    ],
)
def test_greetings_of_other_languages_are_no_people(text, kept):
    out = allonym.anonymize(text).text
    assert kept in out and not any(name in out for name in ("Brandt", "Schneider", "Jana", "Camille", "Moreau"))


def test_names_that_are_words_of_greetings_stay_covered():
    text = "Cara Smith called me on Monday.\nDrogi\nCara Milá was here too, and so was Cara.\n"
    assert "Cara" not in allonym.anonymize(text).text


def test_a_name_found_in_english_is_followed_into_other_passages():
    text = "Mr Peter Yildirim chairs the board and has written the minutes.\n\n" + TEXTS["mixed-de"].split("\n\n")[2]
    text += " Yildirim wurde danach von allen gewählt und nahm die Wahl an."
    result = allonym.anonymize(text)
    assert result.report.unread["de"] > 100
    assert "Yildirim" not in result.text and "Sitzung" in result.text


def test_rules_work_in_passages_that_nobody_reads():
    text = TEXTS["letter-pl"] + "Proszę pisać na adres marek.z@example.com lub dzwonić."
    assert "[EMAIL_ADDRESS_1]" in allonym.anonymize(text).text


def test_roles_of_other_languages_are_no_speakers():
    text = "Der Richter: Haben Sie den Wagen gesehen?\nMarie Schneider: Nein, der Hof war ganz dunkel.\n"
    assert [text[s.start : s.end] for s in allonym.detect(text)] == ["Marie Schneider"]


def test_speakers_of_two_languages_by_turns_do_not_hang():
    lines = ["Ich habe heute keine Zeit für den Termin und bleibe zu Hause.", "I have no time for it today and stay."]
    text = "".join(f"Uwe Schneider {i}: {lines[i % 2]}\n" for i in range(4_000))
    assert list(speakers.build_detector(POLICY)(add_turns(Document("", text))))


def test_refusing_a_document_says_why_and_shows_nothing():
    policy = POLICY.with_(unknown_language="refuse")
    with pytest.raises(DataError, match=r"in German, Polish, and the policy refuses") as error:
        allonym.detect(TEXTS["mixed-two"], policy)
    assert "Sitzung" not in str(error.value)
    assert allonym.anonymize(TEXTS["english-letter"], policy).text == allonym.anonymize(TEXTS["english-letter"]).text


def test_covering_leaves_nothing_of_the_passages_and_the_rest_as_it_is():
    text = TEXTS["mixed-two"]
    covered = allonym.anonymize(text, POLICY.with_(unknown_language="cover"))
    plain = allonym.anonymize(text)
    lines, other = covered.text.split("\n"), plain.text.split("\n")
    assert [line.rstrip(".") for line in lines if "UNREAD" in line] == ["[UNREAD_TEXT_1]", "[UNREAD_TEXT_2]"]
    assert [a for a, b in zip(lines, other, strict=True) if "UNREAD" not in a and a != b] == []
    assert covered.report.unread == plain.report.unread == dict(count_unread_characters(Document("", text), POLICY))
    assert not POLICY.looks_for(UNREAD_TEXT)


@given(PIECES)
def test_covering_covers_every_letter_of_the_passages(pieces):
    text = "".join(pieces)
    policy = POLICY.with_(unknown_language="cover", detectors=("rules", "tagger"))
    spans = allonym.detect(text, policy)
    reach = {i for span in spans for i in range(span.start, span.end)}
    for passage in list_unread(text, {"en"}):
        assert all(i in reach or not text[i].isalnum() for i in range(passage.start, passage.end))


def test_presets_that_promise_all_names_refuse():
    modes = {
        name: Policy.load(name).unknown_language for name in ("default", "gdpr", "hipaa-safe-harbor", "transcripts")
    }
    assert modes == {"default": "rules", "gdpr": "refuse", "hipaa-safe-harbor": "refuse", "transcripts": "rules"}


@check_each_row(
    "unread characters words",
    [
        ({"pl": 34}, 100, "names were not looked for in 34 % of the text: Polish"),
        ({"de": 1, "pl": 3}, 1000, "names were not looked for in less than 1 % of the text: Polish, German"),
        ({"fr": 10}, 10, "names were not looked for in 100 % of the text: French"),
    ],
)
def test_how_much_was_not_read(unread, characters, words):
    assert describe_unread(unread, characters) == words
    assert describe_unread(unread, characters, is_covered=True) == words + "; it is covered whole"


def test_an_article_is_adapted_in_english_only():
    text = "Puede escribir a lucia@correo.example o llamar por la tarde, porque mi madre no oye bien el timbre."
    assert "escribir a [EMAIL_ADDRESS_1]" in allonym.anonymize(text).text
    assert "send an [EMAIL_ADDRESS_1]" in allonym.anonymize("Please send a lucia@mail.example link to them.").text


def test_short_letters_of_nouns_are_in_the_language_of_their_small_words():
    text = "Sehr geehrte Frau Brook,\n\nIhre Kundennummer lautet 4471. Meine Schwester Ada wohnt in Leeds.\n"
    assert find_main_language(text) == "de" and count_languages(text) == {"de": len(text.strip())}
    names = "Ada von Brook, Tom de la Reed, Sehr Lee, Jan van Dyk, Max zum Felde"
    assert find_main_language(names) == "en" and count_languages(names) == {}
