"""Dates and ages move together: what is kept, what moves how far, in which words."""

from __future__ import annotations

import re
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rows import check_each_row

from allonym.document import Document, Entity, Span
from allonym.errors import DataError
from allonym.policy import Policy
from allonym.protocol import Setting, Wanted
from allonym.replace.cast import make_cast
from allonym.replace.date_pseudonyms import MOST_DAYS, _move_age, _Mover, make_renderers
from allonym.replace.dates import draw_day_shift, move_date, read_date

KEY = b"a key only for the tests, 32 byte"

FORTY_DAYS_LATER = [
    ("12. März 2021", "de", "21. April 2021"),
    ("12. März 2021", "en", "21. April 2021"),
    ("12. April 2021", "en", "22. Mai 2021"),
    ("1. Jänner 2021", "de", "10. Feber 2021"),
    ("Freitag, 12. März 2021", "de", "Mittwoch, 21. April 2021"),
    ("Freitag, den 12. März 2021", "de", "Mittwoch, den 21. April 2021"),
    ("12.03.2021", "de", "21.04.2021"),
    ("12.03.2021", "en", "21.04.2021"),
    ("12. 3. 2021", "de", "21. 4. 2021"),
    ("12.03.2021 um 14:30 Uhr", "de", "21.04.2021 um 14:30 Uhr"),
    ("März 2021", "de", "April 2021"),
    ("3 maja 2020", "pl", "12 czerwca 2020"),
    ("3 maja 2020 r.", "pl", "12 czerwca 2020 r."),
    ("3 maja 2020 roku", "en", "12 czerwca 2020 roku"),
    ("poniedziałek, 4 maja 2020", "pl", "sobota, 13 czerwca 2020"),
    ("marcu 2019", "pl", "kwietniu 2019"),
    ("marzec 2019", "pl", "kwiecień 2019"),
    ("31 stycznia", "pl", "12 marca"),
    ("12 de marzo de 2021", "en", "21 de abril de 2021"),
    ("1er mars 2020", "fr", "10 avril 2020"),
    ("12 maggio 2020", "it", "21 giugno 2020"),
    ("2020年5月12日", "en", "2020年6月21日"),
    ("twelfth of May", "en", "twenty-first of June"),
    ("Twelfth of May, 2020", "en", "Twenty-first of June, 2020"),
    ("May the third", "en", "June the twelfth"),
    ("May twenty first, 2020", "en", "June thirtieth, 2020"),
    ("Tuesday, 12 May 2020", "en", "Sunday, 21 June 2020"),
    ("March", "en", "April"),
    ("MARCH", "en", "APRIL"),
    ("marcu", "pl", "kwietniu"),
    ("Tuesday", "en", "Sunday"),
    ("Mondays", "en", "Saturdays"),
    ("every Monday", "en", "every Saturday"),
    ("Montag", "de", "Samstag"),
    ("środę", "pl", "poniedziałek"),
    ("12/Mar/2020:10:00:00 +0000", "pl", "21/Apr/2020:10:00:00 +0000"),
    ("Thu, 12 Mar 2020 10:00:00 +0000 (UTC)", "pl", "Tue, 21 Apr 2020 10:00:00 +0000 (UTC)"),
    ("March 2020 to May 2020", "en", "April 2020 to June 2020"),
    ("2019", "en", "2020"),
    ("2012, 2016", "en", "2013, 2017"),
    ("2018-2023", "en", "2019-2024"),
    ("03/19", "en", "04/28"),
    ("6/9", "en", "7/19"),
    ("21.09.", "de", "31.10."),
    ("this 11th day of June 1999", "en", None),  # with its lead: move_phrase
    ("2017-11-02 23:14:07.482913", "en", "2017-12-12 23:14:07.482914"),
    ("2017-11-02T23:59:59.999999Z", "en", "2017-12-13T00:00:00.000000Z"),
    ("2017-11-02 23:14:07,482", "en", "2017-12-12 23:14:07,483"),
    ("23:59:59.999999", "en", "00:00:00.000000"),
    ("Q3 2020", "en", "Q3 2020"),
    ("Q4 2020", "en", "Q4 2020"),
    ("1990s", "en", "1990s"),
    ("the nineties", "en", "the nineties"),
    ("the 19th century", "en", "the 19th century"),
    ("last Tuesday", "en", "last Tuesday"),
    ("yesterday", "en", "yesterday"),
    ("two weeks ago", "en", "two weeks ago"),
    ("vor zwei Wochen", "de", "vor zwei Wochen"),
    ("w przyszłym tygodniu", "pl", "w przyszłym tygodniu"),
    ("10:30 am", "en", "10:30 am"),
    ("17:45", "en", "17:45"),
    ("the last quarter of 2019", "en", None),
    ("Christmas Eve", "en", "Valentine's Day"),
    ("christmas", "en", "valentine's day"),
    ("Memorial Day", "en", "Independence Day"),
    ("Boxing Day", "en", "Valentine's Day"),
    ("Lent", "en", "Holy Week"),
    ("Easter 2019", "en", "Mother's Day 2020"),
    ("first Friday of Lent", "en", "first Wednesday of Holy Week"),
    ("nineteen seventy-three", "en", "nineteen seventy-four"),
    ("third of May nineteen seventy-four", "en", "twelfth of June nineteen seventy-four"),
    ("the second of june two thousand and twelve", "en", "the twelfth of july two thousand and twelve"),
    ("May third nineteen oh five", "en", "June twelfth nineteen oh five"),
    ("Third of May Twenty Twenty", "en", "Twelfth of June Twenty Twenty"),
    ("1-14 May 2023", "en", "10-23 June 2023"),
    ("3 and 17 May 2023", "en", "12 and 26 June 2023"),
    ("3rd to 17th May 2023", "en", "12th to 26th June 2023"),
    ("20 – 31 December", "en", "29 January – 9 February"),
    ("12th", "en", "21st"),
    ("Weds 14th May 2025", "en", "Mon 23rd June 2025"),
    ("the end of October", "en", "the end of November"),
    ("mid-March 2019", "en", "mid-April 2019"),
    ("Jul–Sep", "en", "Aug–Oct"),
    ("Tues 20th", "en", "Sun 1st"),
    ("some day", "en", None),
    ("30 February 2020", "en", None),
    ("x" * 1000, "en", None),
]
YEAR_AND_MORE = [  # 300 days and two years back
    ("2019", "2016"),
    ("early 2019", "early 2016"),
    ("2015-18", "2012-15"),
    ("2015–2018", "2012–2015"),
    ("FY20", "FY17"),
    ("fiscal year 2021", "fiscal year 2018"),
    ("Q3 2020", "Q4 2017"),
    ("3Q20", "4Q17"),
    ("third quarter of 2020", "fourth quarter of 2017"),
    ("H1 2020", "H1 2017"),
    ("spring 2019", "summer 2016"),
    ("the summer of 2019", None),
    ("Winter 2020", "Frühling 2017"),
    ("wiosną 2019", "latem 2016"),
    ("12 May 1985", "16 July 1982"),
    ("29 February 1984", "5 May 1981"),
    ("May 1985", "July 1982"),
    ("w 2019 roku", None),
]


@check_each_row("text, language, want", FORTY_DAYS_LATER)
def test_forty_days_later(text, language, want):
    assert _Mover(40, 0, "mdy", language).move_date_text(text) == want


@check_each_row("text, want", YEAR_AND_MORE)
def test_a_birth_date_moves_by_further_years(text, want):
    assert _Mover(-300, -2, "mdy", "de" if "Winter" in text else "en").move_date_text(text) == want


AGES = [
    ("34 years old", "36 years old", "33 years old"),
    ("34-year-old", "36-year-old", "33-year-old"),
    ("thirty-four", "thirty-six", "thirty-three"),
    ("Nineteen years old", "Twenty-one years old", "Eighteen years old"),
    ("eighty nine", "ninety one", "eighty eight"),
    ("two years old", "four years old", "one year old"),
    ("2-year-old", "4-year-old", "1-year-old"),
    ("34 Jahre alt", "36 Jahre alt", "33 Jahre alt"),
    ("34-jährige", "36-jährige", "33-jährige"),
    ("22 lata", "24 lata", "21 lat"),
    ("w wieku 22 lat", "w wieku 24 lat", "w wieku 21 lat"),
    ("six months old", "eight months old", "five months old"),
    ("30-35", "32-37", "29-34"),
    ("3 1/2 years old", "5 1/2 years old", "2 1/2 years old"),
    ("thirties", "thirties", "thirties"),
    ("mid-40s", "mid-40s", "mid-40s"),
    ("adult", None, None),
]


@check_each_row("text, older, younger", AGES)
def test_ages(text, older, younger):
    assert _move_age(text, 2) == older
    assert _move_age(text, -1) == younger


def played(marks, *, meta=None, id="", key=KEY, subject="", options=None):
    """Surfaces to what stands for them; marks are (label, surface)."""
    text, wanted = "", []
    for label, surface in marks:
        text += " "
        span = Span(len(text), len(text) + len(surface), label)
        text += surface
        wanted.append(Wanted(Entity(f"{label}:{surface}", label, (span,)), options or {}, 1, label, "[T]", (surface,)))
    policy = Policy(name="p", subject=subject)
    setting = Setting(Document(id, text, meta or {}), policy, key)
    render = make_renderers(make_cast(setting, None, []), wanted)
    return [render[w.entity.key](w.surfaces[0]) for w in wanted], setting


def day(text):
    found = read_date(text)
    return date(found.year, found.month, found.day)


DAYS = st.dates(date(1930, 1, 1), date(2040, 12, 31))


@given(DAYS, DAYS, st.text(max_size=3))
def test_intervals_stay(first, second, id):
    (a, b, c), _ = played([("DATE", str(first)), ("DATE", f"{second:%B %d, %Y}"), ("TIME", "10:15")], id=id)
    assert day(b) - day(a) == second - first
    assert a != str(first)
    assert c == "10:15"


def test_the_letter_before_a_birth_date_stays():
    (year, whole), _ = played([("DATE_OF_BIRTH", "b. 1979"), ("DATE_OF_BIRTH", "b. 4 May 1979")])
    assert re.fullmatch(r"b\. 19[678]\d", year) and re.fullmatch(r"b\. \d{1,2} [A-Z][a-z]+ 19[678]\d", whole)
    assert "1979" not in year + whole


@given(DAYS, st.integers(3, 95), st.integers(0, 364), st.text(max_size=3), st.sampled_from([7, 365, 3000]))
def test_ages_stay_what_the_dates_tell(born, age, more, id, most):
    seen = date.fromordinal(min(date(born.year + age, born.month, min(born.day, 28)).toordinal() + more, 767009))
    told = seen.year - born.year - ((seen.month, seen.day) < (born.month, born.day))
    marks = [("DATE_OF_BIRTH", str(born)), ("DATE", str(seen)), ("AGE", f"{told} years old")]
    (a, b, c), _ = played(marks, id=id, options={"max_days": most})
    new_born, new_seen = day(a), day(b)
    new_told = int(c.split()[0])
    assert 1 <= abs(new_told - told) <= 2
    days = (new_seen - new_born).days / 365.25
    assert abs(days - new_told - ((seen - born).days / 365.25 - told)) < 0.01


def test_small_children_grow_older():
    for i in range(20):
        (age, other), _ = played([("AGE", "two"), ("AGE", "40")], id=str(i))
        assert age in ("three", "four", "one") and other in ("41", "42", "39")
        (age, other), _ = played([("AGE", "1 year old"), ("AGE", "40")], id=str(i))
        assert age in ("2 years old", "3 years old") and other in ("41", "42")


def test_one_subject_one_shift():
    marks = [("DATE", "2020-05-12"), ("AGE", "50")]
    one, _ = played(marks, id="1", meta={"patient": "p7"}, subject="patient")
    assert played(marks, id="2", meta={"patient": "p7"}, subject="patient")[0] == one
    assert played(marks, id="1", meta={"patient": "p8"}, subject="patient")[0] != one
    assert played(marks, id="1")[0] != played(marks, id="2")[0]
    with pytest.raises(DataError, match="metadata key 'patient'"):
        played(marks, id="1", subject="patient")


def test_whole_weeks_leave_weekdays():
    for i in range(20):
        options = {"keep_weekday": True, "max_days": 70}
        (weekday, full), _ = played([("DATE", "Tuesday"), ("DATE", "2020-05-12")], id=str(i), options=options)
        assert weekday == "Tuesday"
        assert (day(full) - date(2020, 5, 12)).days % 7 == 0


def test_dates_move_as_shift_dates_moves_them():
    (out,), setting = played([("DATE", "May 12, 2020")], id="7")
    assert out == move_date(read_date("May 12, 2020"), draw_day_shift(setting, MOST_DAYS, "", False))


def test_a_preposition_stays():
    (out, *rest), setting = played([("DATE", "in 2019"), ("DATE", "w marcu 2019"), ("DURATION", "two weeks")])
    days = draw_day_shift(setting, MOST_DAYS, "", False)
    assert out == f"in {2019 + round(days / 365.25)}"
    assert rest[0].startswith("w ") and rest[0] != "w marcu 2019"
    assert rest[1] == "two weeks"


def test_other_languages_read_days_first():
    assert _Mover(1, 0, "mdy", "en").move_date_text("03/04/2020") == "03/05/2020"
    (out,), setting = played([("DATE", "3.4.2020")])
    days = draw_day_shift(setting, MOST_DAYS, "", False)
    new = date.fromordinal(date(2020, 4, 3).toordinal() + days)
    assert out == f"{new.day}.{new.month}.{new.year}"


@given(st.integers(1, 4000), st.booleans(), st.text(max_size=3))
def test_no_date_keeps_its_weekday_month_or_year(most, weeks, id):
    most = max(most, 7)
    days = draw_day_shift(Setting(Document(id, "x"), Policy(name="p"), KEY), most, "", weeks)
    assert 0 < abs(days) <= most and (days % 7 == 0) is weeks
    if most >= 84:
        assert 31 <= abs(days) % 366 <= 335
    if most >= 732:
        assert abs(days) > 366


@given(st.integers(1900, 2100), st.text(max_size=3), st.sampled_from([7, 365, 1096]))
def test_years_always_move(year, id, most):
    (alone, span), _ = played([("DATE", str(year)), ("DATE", f"{year}-{year + 3}")], id=id, options={"max_days": most})
    assert alone != str(year) and span == f"{alone}-{int(alone) + 3}"


@given(DAYS, st.integers(0, 300), st.text(max_size=3))
def test_a_date_without_a_year_moves_as_the_dated_one_beside_it(first, days, id):
    second = date.fromordinal(first.toordinal() + days)
    if second.year == first.year:
        (a, b), _ = played([("DATE", f"{first:%B %d, %Y}"), ("DATE", f"{second:%B %d}")], id=id)
        moved = date.fromordinal(day(a).toordinal() + days)
        assert b.split()[0] == f"{moved:%B}" and int(b.split()[1]) == moved.day


def test_a_day_alone_is_one_of_the_month_beside_it():
    (a, b), _ = played([("DATE", "4 March 2019"), ("DATE", "the 9th")])
    moved = date.fromordinal(day(a).toordinal() + 5)
    assert int(b.removeprefix("the ")[:-2]) == moved.day


def test_exact_times_move_alike():
    marks = [("DATE_TIME", f"2024-01-19 08:15:{s}") for s in ("22.118734", "23.004120")] + [("TIME", "08:15:24.1187")]
    (a, b, c), _ = played(marks)
    assert a[11:] != marks[0][1][11:] and c != "08:15:24.1187" and len(c) == 13
    first, second = (float(t[17:]) + 60 * int(t[14:16]) for t in (a, b))
    assert abs(second - first - 0.885386) < 1e-6


@given(st.text(max_size=40))
def test_anything_may_be_called_a_date(text):
    if text:
        played([("DATE", text), ("AGE", text), ("DATE_OF_BIRTH", text)])


def test_a_text_is_digested_once_for_all_of_its_dates(monkeypatch):
    digested = []
    monkeypatch.setattr("allonym.replace.dates.digest", lambda text: digested.append(text) or "0")
    text = "; ".join(f"{day} March 2021" for day in range(1, 29))
    setting = Setting(Document("", text), Policy.load("pseudonyms"), KEY)
    assert len({draw_day_shift(setting, 300, "", False) for _ in range(28)}) == 1
    assert len(digested) == 1
