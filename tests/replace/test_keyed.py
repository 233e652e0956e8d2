"""hash, encrypt and shift_dates: the same key the same value, another key another."""

import re
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rows import check_each_row

from allonym.document import Document, Entity, Span
from allonym.errors import DataError
from allonym.keys import derive_operator_key
from allonym.plan import apply
from allonym.policy import Policy, Rule
from allonym.replace import make_plan
from allonym.replace.dates import move_date, read_date
from allonym.replace.operators import TOKEN, decrypt_token, encrypt_text

KEY = b"a key only for the tests, 32 byte"
OTHER = b"another key for the tests 32 byte"


def run(operator, *marks, key=KEY, options=None, id="", meta=None, **more):
    text, entities = "", []
    for label, surface in marks:
        text += " "
        span = Span(len(text), len(text) + len(surface), label)
        entities.append(Entity(f"{label}:{surface.lower()}", label, (span,)))
        text += surface
    policy = Policy(name="p", default=Rule(operator, options or {}))
    document = Document(id, text, meta or {})
    return apply(document, make_plan(document, entities, policy, key=key, **more)).strip()


def test_hash_depends_on_name_key_and_scope_only():
    first = run("hash", ("PERSON", "Jane"))
    assert re.fullmatch(r"\[PERSON:[0-9a-f]{16}\]", first)
    assert run("hash", ("PERSON", "JANE"), id="other document") == first
    assert run("hash", ("CITY", "Rome"), ("PERSON", "Jane")).endswith(first)
    others = [
        run("hash", ("PERSON", "Jana")),
        run("hash", ("PERSON", "Jane"), key=OTHER),
        run("hash", ("PERSON", "Jane"), key=KEY.decode()),
        run("hash", ("PERSON", "Jane"), scope="second release"),
    ]
    assert len({first, *others}) == 5
    assert run("hash", ("PERSON", "Jane"), options={"length": 8}) == first[:16] + "]"


def test_purposes_and_scopes_have_keys_of_their_own():
    keys = {
        derive_operator_key(k, p, s) for k in (KEY, OTHER, KEY.decode()) for p in ("hash", "encrypt") for s in ("", "a")
    }
    assert len(keys) == 12
    assert all(len(k) == 64 for k in keys)


@given(st.text(max_size=40))
def test_what_is_sealed_opens_with_its_key_only(text):
    token = encrypt_text(text, "PERSON", KEY)
    assert token == encrypt_text(text, "PERSON", KEY)
    match = TOKEN.fullmatch(token)
    assert match is not None
    assert decrypt_token(match, KEY) == text
    assert decrypt_token(match, OTHER) is None
    lower = TOKEN.fullmatch(token.lower())
    assert lower is not None and decrypt_token(lower, KEY) == text


def test_a_changed_token_does_not_open():
    token = encrypt_text("Jane", "PERSON", KEY)
    swapped = token.replace("PERSON", "CITY")
    changed = token[:12] + ("A" if token[12] != "A" else "B") + token[13:]
    for one in (swapped, changed, token[:-3] + "]"):
        match = TOKEN.fullmatch(one)
        assert match is not None
        assert decrypt_token(match, KEY) is None


def test_a_token_tells_little_of_the_length():
    assert len({len(encrypt_text("x" * n, "PERSON", KEY)) for n in range(16)}) == 1


DATES = [
    ("2020-05-12", "2020-05-15"),
    ("2020/5/30", "2020/6/2"),
    ("05/12/2020", "05/15/2020"),
    ("12/05/85", "12/08/85"),
    ("31/12/2020", "03/01/2021"),
    ("May 12th, 2020", "May 15th, 2020"),
    ("may 30", "june 2"),
    ("12 May 2020", "15 May 2020"),
    ("30-Apr-2020", "3-May-2020"),
    ("the 3rd of May 2021", None),
    ("3rd of May 2021", "6th of May 2021"),
    ("Tuesday, 12 May 2020", "Friday, 15 May 2020"),
    ("Tue, May 12", "Fri, May 15"),
    ("Sept. 29, 2020", "Oct. 2, 2020"),
    ("MAY 2020", "JUNE 2020"),
    ("2020-05", "2020-06"),
    ("20200512", "20200515"),
    ("2020-05-12T10:11:12Z", "2020-05-15T10:11:12Z"),
    ("May 12, 2020 at 3:05 pm", "May 15, 2020 at 3:05 pm"),
    ("28 Feb '21", "3 Mar '21"),
    ("2019", None),
    ("May", None),
    ("Tuesday", None),
    ("30 February 2020", None),
    ("13/13/2020", None),
    ("31 December 9999", None),
    ("yesterday", None),
]


@check_each_row("text, want", DATES)
def test_dates_move_in_their_own_form(text, want):
    found = read_date(text)
    assert (found and move_date(found, 3)) == want


def test_order_decides_only_where_both_are_dates():
    assert move_date(read_date("03/04/2020", "mdy"), 1) == "03/05/2020"
    assert move_date(read_date("03/04/2020", "dmy"), 1) == "04/04/2020"
    assert move_date(read_date("12/31/2020", "dmy"), 1) == "01/01/2021"


FORMS = ["%Y-%m-%d", "%m/%d/%Y", "%d %B %Y", "%B %d, %Y", "%a, %d %b %Y", "%Y%m%d"]


@given(st.dates(date(1950, 1, 1), date(2049, 12, 31)), st.integers(-3000, 3000), st.sampled_from(FORMS))
def test_moving_back_gives_the_same_day(day, days, form):
    there = read_date(move_date(read_date(day.strftime(form)), days))
    back = read_date(move_date(there, -days))
    assert date(back.year, back.month, back.day) == day
    assert (date(there.year, there.month, there.day) - day).days == days


def days_of(out):
    found = [read_date(w) for w in out.split()]
    return [date(f.year, f.month, f.day) for f in found]


@given(st.dates(date(1950, 1, 1), date(2049, 1, 1)), st.dates(date(1950, 1, 1), date(2049, 1, 1)), st.text(max_size=4))
def test_intervals_are_kept_and_nothing_stands_still(a, b, id):
    new_a, new_b = days_of(run("shift_dates", ("DATE", str(a)), ("DATE", str(b)), id=id))
    assert new_a - new_b == a - b
    assert 0 < abs((new_a - a).days) <= 365


def test_a_subject_has_one_shift_over_documents():
    options = {"subject": "patient"}
    args = ("shift_dates", ("DATE", "2020-05-12"))
    one = run(*args, options=options, id="1", meta={"patient": "p7"})
    assert run(*args, options=options, id="2", meta={"patient": "p7"}) == one
    assert run(*args, options=options, id="1", meta={"patient": "p8"}) != one
    assert run(*args, id="1") != run(*args, id="2")
    assert run(*args, id="1") != run(*args, id="1", key=OTHER)
    with pytest.raises(DataError, match="metadata key 'patient'"):
        run(*args, options=options, id="1", meta={})


def test_weekdays_can_be_kept():
    for i in range(20):
        (new,) = days_of(
            run("shift_dates", ("DATE", "2020-05-12"), options={"keep_weekday": True, "max_days": 20}, id=str(i))
        )
        moved_by = (new - date(2020, 5, 12)).days
        assert moved_by % 7 == 0 and 0 < abs(moved_by) <= 14


def test_what_is_no_date_becomes_a_tag():
    assert run("shift_dates", ("DATE", "last week"), ("DATE", "2019")) == "[DATE_1] [DATE_2]"
