import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.rows import check_each_row

from allonym.document import Document, Entity, Span
from allonym.errors import PolicyError, UsageError
from allonym.policy import Policy, Rule
from allonym.replace import check_options, make_plan
from allonym.replace.operators import FORMS, add_check_digit, list_corrected_codes

KEY = b"0123456789abcdef"


def policy(**options: object) -> Policy:
    return Policy.load("wild-tags").with_(default=Rule("wild_tag", options))


def entities(text: str, *names: str) -> list[Entity]:
    found = []
    for name in names:
        places = [m.start() for m in re.finditer(re.escape(name), text)]
        spans = tuple(Span(at, at + len(name), "PERSON") for at in places)
        found.append(Entity(f"PERSON:{name.lower()}", "PERSON", spans))
    return found


def made(text: str, *names: str, key: bytes = KEY, scope: str = "", book=None, **options: object) -> str:
    plan = make_plan(Document("d", text), entities(text, *names), policy(**options), key=key, scope=scope, book=book)
    out, at = [], 0
    for edit in plan.edits:
        out += [text[at : edit.start], edit.replacement]
        at = edit.end
    return "".join([*out, text[at:]])


def test_a_tag_holds_label_and_code_and_is_the_same_for_all_mentions():
    out = made("Ann Lee wrote. Ann Lee called Bo Ek.", "Ann Lee", "Bo Ek")
    first, again, other = re.findall(r'<PERSON "([0-9A-F]{9})">', out)
    assert first == again != other


def test_the_code_depends_on_key_scope_and_entity_and_on_nothing_else():
    code = made("Ann Lee", "Ann Lee")
    assert made("Well: Ann Lee.", "Ann Lee") == f"Well: {code}."
    assert made("Ann Lee", "Ann Lee", key=KEY[::-1]) != code
    assert made("Ann Lee", "Ann Lee", scope="other") != code


@given(st.text("0123456789ABCDEF", min_size=6, max_size=16), st.data())
def test_a_changed_digit_never_fits_and_is_corrected(code, data):
    checked = add_check_digit(code)
    place = data.draw(st.integers(0, len(code)))
    digit = data.draw(st.sampled_from("0123456789ABCDEF").filter(lambda d: d != checked[place]))
    slip = checked[:place] + digit + checked[place + 1 :]
    assert checked in list_corrected_codes(slip) and not list_corrected_codes(checked)
    others = {
        slip[:i] + d + slip[i + n :] for i in range(len(slip) + 1) for n in (0, 1) for d in (*"0123456789ABCDEF", "")
    }
    assert list_corrected_codes(slip) == {other for other in others if add_check_digit(other[:-1]) == other}


@pytest.mark.parametrize("form", FORMS)
def test_named_forms(form):
    out = made("Ann Lee", "Ann Lee", form=form, length=6)
    shown = FORMS[form].format(label="PERSON", code="CODE")
    assert re.fullmatch(re.escape(shown).replace("CODE", "[0-9A-F]{7}"), out)


def test_a_form_of_ones_own():
    assert re.fullmatch(r"@@[0-9A-F]{9}/PERSON@@", made("Ann Lee", "Ann Lee", form="@@{code}/{label}@@"))


@check_each_row(
    "options",
    [
        {"form": "{label}"},
        {"form": "{code} {code} {label}"},
        {"form": "{label}{code!r}"},
        {"form": "{label}{code"},
        {"form": " {label}{code}"},
        {"form": "{label} {code} {n}"},
        {"length": 5},
        {"length": 17},
    ],
)
def test_wrong_options_are_refused(options):
    with pytest.raises(PolicyError):
        check_options("wild_tag", options, "here")


def test_a_key_is_needed():
    with pytest.raises(UsageError, match="needs a key"):
        make_plan(Document("d", "Ann Lee"), entities("Ann Lee", "Ann Lee"), policy())


def test_a_code_that_stands_in_the_text_is_not_used():
    code = re.search(r"[0-9A-F]{9}", made("Ann Lee", "Ann Lee"))[0]
    out = made(f"Ann Lee has {code}.", "Ann Lee")
    assert out.count(code) == 1 and out.endswith(f"has {code}.")


class Taken:
    """A book in which the first value that anybody asks for belongs to somebody else."""

    unit = ""

    def __init__(self) -> None:
        self.values: dict[tuple[str, str], str] = {}
        self.first = ""

    def recall(self, kind, key):
        return self.values.get((kind, key))

    def enter(self, kind, key, value):
        self.first = self.first or value
        if value == self.first or value in self.values.values():
            return False
        self.values[kind, key] = value
        return True

    def number(self, kind):
        return 1 + sum(k[0] == kind for k in self.values)

    def remember(self, replacement, original, label, operator, entity):
        self.values["remembered", replacement] = original


def test_a_code_that_somebody_else_has_in_the_vault_is_not_used():
    book = Taken()
    out = made("Ann Lee", "Ann Lee", book=book)
    assert book.first and book.first not in out
    assert made("Ann Lee again", "Ann Lee", book=book) == f"{out} again"
    assert book.values["remembered", out] == "Ann Lee"


@settings(max_examples=30, deadline=None)
@given(st.lists(st.text("abcdefgh", min_size=3, max_size=8), min_size=2, max_size=6, unique=True))
def test_no_two_entities_share_a_code(names):
    text = " ".join(names)
    spans, at = [], 0
    for name in names:
        spans.append(Span(at, at + len(name), "PERSON"))
        at += len(name) + 1
    found = [Entity(f"PERSON:{n}", "PERSON", (s,)) for n, s in zip(names, spans, strict=True)]
    plan = make_plan(Document("d", text), found, policy(length=6), key=KEY)
    assert len({e.replacement for e in plan.edits}) == len(names)
