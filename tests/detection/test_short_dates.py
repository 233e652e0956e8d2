"""allonym.detection.short_dates and allonym.text.dates: dates without a year, which number is the day, ages."""

from __future__ import annotations

import pytest

from allonym import anonymize
from allonym.detection.short_dates import find_ages_of_people, find_short_dates
from allonym.document import Span
from allonym.labels import TAXONOMY
from allonym.text.dates import find_date_order

CASES = [
    # text with its seed in brackets, and the further dates
    ("Your appointment was moved from [21/3] to 28/3.", ["28/3"]),
    ("Minutes of [9/2/2022]. Next meetings: 23/2, 9/3, 23/3.", ["23/2", "9/3", "23/3"]),
    (
        "Sessions 1/16, 1/30 and [2/13] attended; 2/27 missed. Pain 6/10 on 1/16, 3/10 on [2/13].",
        ["1/16", "1/30", "2/27", "1/16"],
    ),
    ("Chest pain since [13/11]. Aspirin started; review 30/11.", ["30/11"]),
    ("Open 24/7 since [13/11/2020], two 3/4 turns, and 1/2 cup of milk, scored 4/5 and 5/5.", []),
    ("Open since 2020, on 3/4 of the days.", []),
    ("Due by [31/3/2021]; see page 45/3, or 3/2021.", []),
    ("Absent [17/07/2023], 25 min, and 07/08 (15 min).", ["07/08"]),
    ("6/3 Call from the nursery.\n\n7/3 - Visit at 8.15.\nAll well, 3/4 of the day.", ["6/3", "7/3"]),
    ("Labs of [14/7/2023]:   12/7      14/7      17/7", ["12/7", "14/7", "17/7"]),
    ("1/2 cup of sugar\n3/4 cup of flour\n1/4 tsp salt", []),
    ("1/16 Call.\n1/30 Visit.", ["1/16", "1/30"]),
]


@pytest.mark.parametrize(("marked", "expected"), CASES)
def test_dates_without_a_year_are_found_beside_others(marked, expected):
    text, seeds, open_at = "", [], 0
    for sign in marked:
        if sign == "[":
            open_at = len(text)
        elif sign == "]":
            seeds.append(Span(open_at, len(text), "DATE", 0.7, "rules:x"))
        else:
            text += sign
    assert [text[s.start : s.end] for s in find_short_dates(text, seeds, TAXONOMY)] == expected


@pytest.mark.parametrize(
    ("text", "order"),
    [
        ("9/2/2022 and 23/2", "dmy"),
        ("9/2/2022 and 23/2 and 2/23/2022", "mdy"),
        ("16.11.2019", "dmy"),
        ("1/16, 1/30", "mdy"),
        ("03/04/2020", "?"),
        ("13/13/2020, 1.16.3, v1/16/2", "?"),
    ],
)
def test_dates_of_a_text_tell_their_order(text, order):
    assert find_date_order(text, "?") == order


def test_british_dates_move_as_british_ones():
    text = "Paid on 6/11/2020 and 3/2/2021, due on 28/10/2020. Reminders: 5/11, 9/11."
    result = anonymize(text, "pseudonyms", key=bytes(16))
    for edit in result.plan.edits:
        assert edit.replacement.count("/") == edit.original.count("/") and int(edit.replacement.split("/")[1]) <= 12
    assert len(result.plan.edits) == 5


@pytest.mark.parametrize(
    ("text", "order"),
    [
        ("Born 07/11/1971, phone +44 29 2018 0999", "dmy"),
        ("Born 07/11/1971, phone +49 (0)30 901820", "dmy"),
        ("Born 07/11/1971, lives at NP20 5AG", "dmy"),
        ("Born 07/11/1971, phone +44 29 2018 0999, seen 11/23/2023", "mdy"),
        ("Born 07/11/1971, phone +1 212 555 0142", "mdy"),
        ("Born 07/11/1971, up by +44 points", "mdy"),
        ("Born 07/11/1971", "mdy"),
        ("Born 07.11.1971, seen on 3/9", "dmy"),
        ("Born 07/11/1971, owes £40", "dmy"),
        ("Born 07/11/1971, phone 0161 496 0148", "dmy"),
        ("Born 07/11/1971, version 1.2.2003.4", "mdy"),
        ("Born 07/11/1971, seen on 17 June 2022", "dmy"),
        ("Born 07/11/1971, seen on June 17, 2022, phone +44 29 2018 0999", "mdy"),
    ],
)
def test_the_country_of_numbers_tells_the_order_of_dates(text, order):
    assert find_date_order(text, "mdy") == order
    assert find_date_order(text) == ("mdy" if "23/" in text else "")


@pytest.mark.parametrize(
    ("text", "ages"),
    [
        ("Amira is 6 and has asthma.", ["6"]),
        ("School nurse: none (Amira is 3).", ["3"]),
        ("Amira was only just 41, I think", ["41"]),
        ("Amira's 12 now", ["12"]),
        ("Amira is 6.5 points ahead.", []),
        ("Amira is 6th.", []),
        ("Amira is 20 minutes away.", []),
        ("The total is 6. Amira left.", []),
    ],
)
def test_ages_that_are_said_of_a_person_are_found(text, ages):
    person = Span(text.index("Amira"), text.index("Amira") + 5, "PERSON", 0.9, "tagger")
    assert [text[s.start : s.end] for s in find_ages_of_people(text, [person], TAXONOMY)] == ages
    assert not find_ages_of_people(text, [Span(person.start, person.end, "CITY", 0.9, "tagger")], TAXONOMY)
