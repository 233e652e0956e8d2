"""What make_plan promises: numbers, cover, failing closed, no text in what is shown."""

import traceback

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rows import check_each_row

from allonym import registry
from allonym.document import Document, Entity, Span
from allonym.errors import DataError, PolicyError, UnknownNameError, UsageError
from allonym.plan import apply, digest
from allonym.policy import Policy, Rule
from allonym.replace import Mention, Setting, check_options, make_plan, traits

CANARY = "Zyxwvut Qponml"
KEY = b"a key only for the tests, 32 byte"
TAGS = Policy(name="tags", default=Rule("tag"))


def one(label="PERSON", text=CANARY, before="By ", after=" today."):
    span = Span(len(before), len(before) + len(text), label)
    return Document("d1", before + text + after), [Entity(f"{label}:{text.lower()}", label, (span,))]


def with_operator(monkeypatch, function, name="mine"):
    monkeypatch.setitem(registry.operators._table, name, function)
    return Policy(name="p", default=Rule(name))


def test_the_plan_is_bound_to_its_text_and_its_result():
    document, entities = one()
    plan = make_plan(document, entities, TAGS, notes=("a note",))
    assert plan.digest == digest(document.text)
    assert plan.result == digest("By [PERSON_1] today.")
    assert plan.notes == ("a note",)
    (edit,) = plan.edits
    assert (edit.start, edit.end, edit.entity, edit.operator, edit.original) == (3, 17, 1, "tag@1", CANARY)


def test_no_entities_no_edits():
    plan = make_plan(Document("", "nothing"), [], TAGS)
    assert plan.edits == () and plan.result == plan.digest


def test_an_operator_that_returns_nothing_fails(monkeypatch):
    document, entities = one()
    policy = with_operator(monkeypatch, lambda mention, setting: None)
    with pytest.raises(DataError, match=r"must return a string, got NoneType at 3 \(PERSON\)"):
        make_plan(document, entities, policy)


def test_an_operator_that_returns_the_text_fails(monkeypatch):
    document, entities = one()
    policy = with_operator(monkeypatch, lambda mention, setting: mention.text)
    with pytest.raises(DataError, match="returned the text"):
        make_plan(document, entities, policy)


def test_an_operator_that_raises_fails_without_the_text(monkeypatch):
    def broken(mention, setting):
        raise KeyError(mention.text)

    document, entities = one()
    with pytest.raises(DataError) as caught:
        make_plan(document, entities, with_operator(monkeypatch, broken))
    shown = "".join(traceback.format_exception(caught.value)) + repr(caught.value)
    assert "KeyError at 3" in shown
    assert CANARY not in shown
    assert caught.value.__context__ is None


def test_nothing_shows_the_text():
    seen = []

    def spy(mention: Mention, setting: Setting) -> str:
        seen.append(repr((mention, setting)))
        return "X"

    registry.operators.register("spy_for_test", spy)
    try:
        document, entities = one()
        plan = make_plan(document, entities, Policy(name="p", default=Rule("spy_for_test")), key=KEY)
    finally:
        del registry.operators._table["spy_for_test"]
    shown = "".join(seen) + repr(plan) + repr(entities)
    assert CANARY not in shown and CANARY.lower() not in shown
    assert KEY.decode() not in shown


def test_a_plain_function_with_options_is_an_operator(monkeypatch):
    def shout(mention: Mention, setting: Setting, *, sign: str = "!", times: int = 1) -> str:
        return mention.label + sign * times

    monkeypatch.setitem(registry.operators._table, "shout", shout)
    check_options("shout", {"sign": "?", "times": 2}, "here")
    document, entities = one()
    policy = Policy(name="p", default=Rule("shout", {"times": 3}))
    plan = make_plan(document, entities, policy)
    assert apply(document, plan) == "By PERSON!!! today."
    assert plan.edits[0].operator == "shout@1"
    with pytest.raises(UnknownNameError, match="did you mean: sign"):
        check_options("shout", {"sgin": "?"}, "here")
    with pytest.raises(PolicyError, match=r"here.times must be an integer, got str"):
        check_options("shout", {"times": "x"}, "here")
    with pytest.raises(PolicyError, match="times must be an integer"):
        make_plan(document, entities, Policy(name="p", default=Rule("shout", {"times": True})))


def test_versions_stand_in_the_plan(monkeypatch):
    @traits(version=3)
    def mine(mention, setting):
        return "X"

    document, entities = one()
    assert make_plan(document, entities, with_operator(monkeypatch, mine)).edits[0].operator == "mine@3"


def test_traits_without_parentheses_are_refused():
    with pytest.raises(UsageError, match=r"traits needs parentheses .* @traits\(keyed=True\)"):

        @traits
        def mine(mention, setting):
            return "X"


@check_each_row(
    "operator, options, message",
    [
        ("tga", {}, "did you mean: tag"),
        ("tag", {"stlye": "x"}, "did you mean: style"),
        ("tag", {"style": 3}, "must be a string"),
        ("tag", {"style": "{name}"}, "only {label}, {n} and {form}"),
        ("tag", {"style": "{label.__class__}"}, "only {label}, {n} and {form}"),
        ("tag", {"style": "{label!r}"}, "only {label}, {n} and {form}"),
        ("tag", {"style": "[{label}{form}]"}, "right behind {n}"),
        ("tag", {"style": "{"}, "only {label}, {n} and {form}"),
        ("tag", {"style": " "}, "must not be empty"),
        ("tag", {"names": "presido"}, "did you mean: presidio"),
        ("keep", {"x": 1}, "takes no options"),
        ("mask", {"char": "ab"}, "one character"),
        ("mask", {"char": "x"}, "no letter"),
        ("mask", {"keep_last": -1}, "0 or more"),
        ("mask", {"keep_last": 1.5}, "an integer"),
        ("hash", {"length": 7}, "from 8 to 64"),
        ("generalise", {"level": "day"}, "unknown value 'day'"),
        ("generalise", {"width": 0}, "from 1 to 100"),
        ("generalise", {"top": 200}, "from 18 to 120"),
        ("shift_dates", {"max_days": 0}, "from 1 to"),
        ("shift_dates", {"max_days": 6, "keep_weekday": True}, "from 7 to"),
        ("shift_dates", {"keep_weekday": 1}, "true or false"),
    ],
)
def test_options_are_checked(operator, options, message):
    with pytest.raises((PolicyError, UnknownNameError)) as caught:
        check_options(operator, options, "rules.X")
    assert message in str(caught.value)


@pytest.mark.parametrize("operator", ["hash", "encrypt", "shift_dates"])
def test_keyed_operators_need_a_key(operator):
    policy = Policy(name="p", default=Rule(operator))
    for key, message in (
        (None, "needs a key of at least 16 bytes: --key-file"),
        (b"short", "at least 16 bytes, got 5"),
    ):
        with pytest.raises(UsageError, match=message) as caught:
            make_plan(Document("", "no mention"), [], policy, key=key)
        assert "short" not in str(caught.value)
    with pytest.raises(UsageError, match="bytes or str"):
        make_plan(Document("", "no mention"), [], policy, key=12345678901234567890)


def test_spans_that_do_not_fit_the_text_are_refused():
    document, entities = one()
    with pytest.raises(DataError, match="past the end"):
        make_plan(Document("", "By Z"), entities, TAGS)
    with pytest.raises(DataError, match="overlap"):
        make_plan(document, [*entities, Entity("x", "CITY", (Span(5, 8, "CITY"),))], TAGS)


surfaces = st.one_of(
    st.sampled_from(
        [
            "Jane",
            "Jane's",
            " 6",
            "x.",
            "e\u0301",
            "\ud83d",
            "\U0001f469\u200d\U0001f467",
            "[PERSON_2]",
            "田中",
            "\n",
            "A",
        ]
    ),
    st.text(min_size=1, max_size=5),
)
gaps = st.one_of(
    st.sampled_from(
        ["", " ", " a ", " an ", "th", "[PERSON_1]", "[person_2]", "\r\n", "\u200b", "\u0301", ". A ", "[X:e1:"]
    ),
    st.text(max_size=5),
)
OPERATORS = ("tag", "suppress", "mask", "hash", "encrypt", "generalise", "shift_dates")
LABELS = ("PERSON", "CITY", "DATE", "PASSWORD", "NUMERIC")


@st.composite
def marked(draw):
    text, entities, known = draw(gaps), [], {}
    for _ in range(draw(st.integers(0, 6))):
        surface, label = draw(surfaces), draw(st.sampled_from(LABELS))
        known.setdefault((label, surface), []).append(Span(len(text), len(text) + len(surface), label))
        text += surface + draw(gaps)
    entities = [Entity(f"{k[0]}:{k[1]}", k[0], tuple(v)) for k, v in known.items()]
    return Document("", text), entities


@given(marked(), st.sampled_from(OPERATORS), st.sampled_from(["[{label}_{n}]", "{label}_{n}", "<{label}>"]))
def test_edits_cover_every_mention_and_touch_nothing_else(given_, operator, style):
    document, entities = given_
    policy = POLICIES[operator, style]
    plan = make_plan(document, entities, policy, key=KEY)
    covered = {i for e in plan.edits for i in range(e.start, e.end)}
    assert all(i in covered for e in entities for s in e.spans for i in range(s.start, s.end))
    assert all(document.text[e.start : e.end] == e.original for e in plan.edits)
    assert digest(apply(document, plan)) == plan.result
    assert make_plan(document, list(reversed(entities)), policy, key=KEY) == plan


POLICIES = {
    (operator, style): Policy(name="p", default=Rule(operator), style=style)
    for operator in OPERATORS
    for style in ("[{label}_{n}]", "{label}_{n}", "<{label}>")
}


@given(marked())
def test_tags_are_new_to_the_text_and_numbered_in_reading_order(given_):
    document, entities = given_
    plan = make_plan(document, entities, TAGS)
    last = {}
    seen = {}
    for edit in plan.edits:
        if not edit.operator.startswith("tag"):
            continue
        tag = edit.replacement[edit.replacement.index("[") : edit.replacement.index("]") + 1]
        assert tag.lower() not in document.text.lower()
        number = int(tag[1:-1].rpartition("_")[2])
        if edit.entity not in seen:
            assert number > last.get(edit.label, 0)
            last[edit.label] = number
        assert seen.setdefault(edit.entity, tag) == tag


def test_an_article_in_another_part_stays():
    document = Document.from_parts("", ["a", "Acme Ltd"], separators=["\n", ""])
    entities = [Entity("ORGANIZATION:acme", "ORGANIZATION", (Span(2, 10, "ORGANIZATION"),))]
    assert apply(document.text, make_plan(document, entities, TAGS)) == "a\n[ORGANIZATION_1]"
    assert apply(document.text, make_plan(Document("", document.text), entities, TAGS)) == "an\n[ORGANIZATION_1]"
