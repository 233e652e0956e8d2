import json

from hypothesis import given
from hypothesis import strategies as st
from tests.rows import check_each_row

from allonym.llm.answers import parse_answer, parse_cut_answer

VALUE = {"entities": {"8F3A21C0": 'Ada "Quill" Brook, {x}', "00000001": "a, b"}}
TEXT = json.dumps(VALUE)


@check_each_row(
    "content",
    [
        TEXT,
        f"```json\n{TEXT}\n```",
        f"Sure! Here it is:\n\n{TEXT}\n\nAnything else? {{}}",
        f'<think>first {{maybe}} {{"entities": 3}}</think>\n{TEXT}',
        f"as {{asked}}: {TEXT}",
        json.dumps(VALUE, indent=4),
        f"<think>{{}}</think>{TEXT}<think>",
        f"<think></think></think>{TEXT}<think>{{}}</think>",
        "<think>" * 500_000 + TEXT,  # thoughts without an end, looked for once
    ],
)
def test_json_in_words(content):
    assert parse_answer(content) == parse_cut_answer(content) == VALUE


@check_each_row(
    "content", ["", "no", "[1, 2]", "{", "}{", '"x"', "{'a': 1}", "{" * 100_000, '{"a":' * 5000, "[" * 9999]
)
def test_no_json(content):
    assert parse_answer(content) is None
    assert parse_cut_answer(content) in (None, {})


def test_a_part_of_a_broken_object_is_not_the_answer():
    assert parse_answer('{"entities": {"a": "b"}') is None


@check_each_row(
    "content, left",
    [
        ('{"entities": {"a": "b", "c": "d', {"entities": {"a": "b"}}),
        ('{"entities": {"a": "b", "c": ', {"entities": {"a": "b"}}),
        ('{"entities": {"a": "b", "c"', {"entities": {"a": "b"}}),
        ('{"entities": {"a": "b"', {"entities": {"a": "b"}}),
        ('{"entities": {"a": "b"}', {"entities": {"a": "b"}}),
        ('{"entities": {"a": "b",}}', {"entities": {"a": "b"}}),
        ('{"entities": {"a": "b}, {', None),
        ('{"list": [{"a": 1}, {"a": 2}, {"a"', {"list": [{"a": 1}, {"a": 2}]}),
        ('{"a": "\\"", "b": "\\', {"a": '"'}),
    ],
)
def test_what_was_cut_off(content, left):
    assert parse_answer(content) is None
    assert parse_cut_answer(content) == left


@given(st.dictionaries(st.text(max_size=5), st.text(max_size=8), max_size=4), st.data())
def test_no_cut_makes_up_a_value(rows, data):
    text = json.dumps({"entities": rows})
    found = parse_cut_answer(text[: data.draw(st.integers(0, len(text)))])
    if found:
        inner = found.get("entities", {})
        assert all(rows[k] == v for k, v in inner.items())
    assert parse_cut_answer(text) == {"entities": rows}


@given(st.text(alphabet='{}[]",:\\ab1 ', max_size=40))
def test_nothing_breaks_it(text):
    for found in (parse_answer(text), parse_cut_answer(text)):
        assert found is None or isinstance(found, dict)
