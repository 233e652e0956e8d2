"""Replacements that are ordinary words or numbers: without the plan they say nothing of where they come from."""

from __future__ import annotations

from tests.rows import check_each_row

from allonym.plan import Edit, Plan, digest
from allonym.restoration import Restorer, restore, restore_stream
from allonym.restoration.words import is_ordinary
from allonym.vault import Vault
from allonym.vault.records import Known

KEY = b"a key only for the tests, 32 byte"


def known(replacement, original, label, entity="e"):
    return Known(replacement, original, label, "pseudonym@1", entity)


@check_each_row(
    "replacement, label",
    [
        ("43", "AGE"),
        ("45%", "NUMERIC"),
        ("1,250", "NUMERIC"),
        ("7th", "DATE_TIME"),
        ("1987", "DATE_TIME"),
        ("1980s", "DATE_TIME"),
        ("two", "AGE"),
        ("Forty-five", "AGE"),
        ("dwadzieścia trzy", "AGE"),
        ("May", "DATE_TIME"),
        ("monday", "DATE_TIME"),
        ("Sept.", "DATE_TIME"),
        ("Summer", "DATE_TIME"),
        ("welder", "OCCUPATION"),
        ("she", "PRONOUN"),
        ("will", "PERSON"),
    ],
)
def test_numbers_and_ordinary_words_are_known(replacement, label):
    assert is_ordinary(replacement, label)


@check_each_row(
    "replacement, label",
    [
        ("45 years old", "AGE"),
        ("aged 45", "AGE"),
        ("45-year-old", "AGE"),
        ("3 May 2019", "DATE_TIME"),
        ("May 2019", "DATE_TIME"),
        ("12345", "GENERIC_ID"),
        ("A45", "GENERIC_ID"),
        ("Will", "PERSON"),
        ("emma", "PERSON"),
        ("warsaw", "CITY"),
        ("etyler", "USERNAME"),
        ("Welder", "OCCUPATION"),
        ("[1]", "PERSON"),
        ("gas welder", "OCCUPATION"),
        ("Two Rivers", "CITY"),
    ],
)
def test_what_tells_more_is_none(replacement, label):
    assert not is_ordinary(replacement, label)


ROWS = [known("one", "two", "AGE", "a"), known("45", "43", "AGE", "b"), known("nurse", "teacher", "OCCUPATION", "c")]
TEXT = "One of them: page 45; 45 reasons, 45% of one. The nurse, 45 years."


def test_from_a_list_they_are_left():
    done = Restorer(ROWS).restore(TEXT)
    assert (done.text, done.restored, done.unknown) == (TEXT, 0, 0)
    assert done.notes == ("numbers and ordinary words were left, since they may be the text's own",)
    assert "".join(Restorer(ROWS).stream(TEXT)) == TEXT


def test_with_a_unit_inside_they_come_back():
    rows = [known("45 years old", "43 years old", "AGE"), known("aged 45", "aged 43", "AGE"), known("45", "43", "AGE")]
    rows += [known("3 May 2019", "9 June 2019", "DATE_TIME"), known("May", "June", "DATE_TIME")]
    text = "45 years old, aged 45, on 3 May 2019, in May, page 45"
    done = Restorer(rows).restore(text)
    assert done.text == "43 years old, aged 43, on 9 June 2019, in May, page 45"
    assert (done.restored, done.unknown) == (3, 0)


def test_numbers_alone_are_no_codes():
    rows = [known("1987", "1985", "DATE_TIME"), known("4021", "3377", "GENERIC_ID")]
    assert Restorer(rows).restore("in 1987, 40-21, 19 87").text == "in 1987, 40-21, 19 87"


def test_a_vault_leaves_them_and_says_so(tmp_path):
    with Vault.create(tmp_path / "v.sqlite", KEY) as vault:
        with vault.book("") as book:
            for one in ROWS:
                book.remember(one.replacement, one.original, one.label, one.operator, one.entity)
        done = restore(TEXT, vault=vault)
        assert (done.text, done.unknown, len(done.notes)) == (TEXT, 0, 1)
        assert "".join(restore_stream([TEXT], vault=vault)) == TEXT
        assert restore("Nothing known.", vault=vault).notes == ()


def plan_of(text, made, original, replacement, label="AGE"):
    at = text.index(original)
    edit = Edit(at, at + len(original), replacement, label, 1, "pseudonym@1", original)
    return Plan(digest(text), (edit,), (), digest(made))


def test_with_the_plan_only_their_number_tells():
    plan = plan_of("He is 43.", "He is 45.", "43", "45")
    assert restore("The patient: 45.", plan=plan).text == "The patient: 43."
    done = restore("room 45, it costs 45%", plan=plan)
    assert (done.text, done.restored, done.unknown) == ("room 45, it costs 45%", 0, 2)
    assert "more or less often" in done.notes[0]
    gone = restore("The patient.", plan=plan)
    assert (gone.unknown, gone.missing) == (0, 1) and "does not mention" in gone.notes[0]
    assert "".join(restore_stream(["The patient: 45."], plan=plan)) == "The patient: 45."


def test_with_the_plan_a_rare_word_comes_back_wherever_it_stands():
    plan = plan_of("the nurse said", "the ophthalmologist said", "nurse", "ophthalmologist", "OCCUPATION")
    text = "Ophthalmologist: the ophthalmologist said, the opthalmologist came"
    done = restore(text, plan=plan)
    assert done.text == "Nurse: the nurse said, the opthalmologist came"
    assert restore("one opthalmologist came", plan=plan).text == "one nurse came"


def test_a_word_in_small_letters_is_no_name_within_a_sentence():
    rows = [known("Przemyśl", "Łódź", "CITY"), known("Peñas", "Toledo", "CITY", "p")]
    restorer = Restorer(rows)
    text = "Ciężki przemysł rośnie. The penas of it went."
    assert restorer.restore(text).text == text
    assert restorer.restore("mieszka w przemysl, nie w penas").text == "mieszka w łódź, nie w toledo"
    for size in (1, 3, 7):
        pieces = [text[i : i + size] for i in range(0, len(text), size)]
        assert "".join(restorer.stream(pieces)) == text
