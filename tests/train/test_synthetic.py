import json
import os
import re
import subprocess
import sys
from collections import Counter
from functools import cache
from importlib.resources import files

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.rows import check_each_row

from allonym.labels import TAXONOMY
from allonym.train import synthetic
from allonym.train.synthetic import generate_texts, read_name_rows, read_templates_by_register

LABELS = set(synthetic.MARKS.values()) | {"STREET_ADDRESS"}
ARTICLES = ("the ", "a ", "an ")


@cache
def texts(held_out=False):
    return tuple(generate_texts(4000, seed=7, held_out=held_out))


def check(record):
    text, end = record["text"], 0
    assert text
    assert not re.search(r"[{}\x01~]|(?<!/)\b(the the|a a|a the|a an)\b", text), text
    for span in record["spans"]:
        assert set(span) == {"start", "end", "label", "text"}
        assert end <= span["start"] < span["end"] <= len(text)
        assert text[span["start"] : span["end"]] == span["text"] == span["text"].strip()
        assert "\n" not in span["text"]
        assert span["label"] in LABELS
        end = span["end"]
    assert set(record) == {"id", "doc_id", "text", "spans", "meta"}
    assert record["meta"]["source"] == "allonym-synthetic"


@given(st.integers(min_value=0), st.booleans())
@settings(max_examples=50, deadline=None)
def test_spans_match_are_sorted_and_disjoint(seed, held_out):
    records = list(generate_texts(20, seed, held_out))
    assert len(records) == 20
    assert len({r["id"] for r in records}) == 20
    for record in records:
        check(record)


def test_every_template_can_be_filled():
    writer = synthetic._TemplateFiller(synthetic.random.Random(0), False)
    for name, kinds in read_templates_by_register().items():
        for kind, templates in kinds.items():
            for nodes in templates:
                for _ in range(3):
                    text, spans = synthetic._assemble_text(writer.fill(nodes))
                    check(
                        {"text": text, "spans": spans, "id": "", "doc_id": "", "meta": {"source": "allonym-synthetic"}}
                    )
                    if kind == "plain":
                        assert not spans, (name, text)


def test_every_list_is_used_and_unique_in_name():
    used = {"first", "last"}
    folder = files("allonym.train").joinpath("synthetic")
    sources = [f.read_text(encoding="utf-8") for f in folder.iterdir() if f.name.endswith(".toml")]
    sources += [f.read_text(encoding="utf-8") for f in folder.joinpath("templates").iterdir()]
    for source in sources:
        used |= {slot.lstrip("~^_!") for slot in re.findall(r"\{([^{}#]+)\}", source)}
    heads = [
        h
        for source in sources[: -len(list(folder.joinpath("templates").iterdir()))]
        for h in re.findall(r"^\[(\w+)\]", source, re.M)
    ]
    assert len(heads) == len(set(heads))
    assert set(synthetic._read_grammar_rules()) <= used


def test_labels_belong_to_the_taxonomy_and_all_occur():
    known = {label.name for label in TAXONOMY}
    assert LABELS - {"REGION", "AWARD"} <= known
    found = Counter(span["label"] for record in texts() for span in record["spans"])
    assert set(found) == LABELS
    assert min(found.values()) >= 100


def test_a_quarter_of_the_texts_or_more_is_without_any_span():
    bare = sum(not record["spans"] for record in texts())
    assert 0.25 <= bare / len(texts()) <= 0.4


def test_the_texts_vary():
    found = {record["text"] for record in texts()}
    assert len(found) > 0.9 * len(texts())
    assert sum(len(t) for kinds in read_templates_by_register().values() for t in kinds.values()) > 500


def test_the_same_seed_gives_the_same_texts():
    assert list(generate_texts(200, seed=3)) == list(generate_texts(200, seed=3))
    assert [r["text"] for r in generate_texts(200, seed=3)] != [r["text"] for r in generate_texts(200, seed=4)]
    assert list(generate_texts(300, seed=3))[:200] == list(generate_texts(200, seed=3))


@pytest.mark.parametrize("hash_seed", ["1", "2"])
def test_the_texts_do_not_depend_on_the_hash_seed(hash_seed):
    code = "import json; from allonym.train.synthetic import generate_texts; print(json.dumps(list(generate_texts(60, seed=3))))"
    env = os.environ | {"PYTHONHASHSEED": hash_seed}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == list(generate_texts(60, seed=3))


def test_names_say_part_gender_and_origin():
    rows = [(name, part, gender, origin) for origin, part, gender, listed in read_name_rows() for name in listed]
    assert {part for _, part, _, _ in rows} == {"first", "last"}
    assert {(part, gender) for _, part, gender, _ in rows} == {("first", "f"), ("first", "m"), ("last", "")}
    sizes = Counter((origin, part, gender) for _, part, gender, origin in rows)
    assert len({origin for origin, _, _ in sizes}) >= 30
    assert min(n for (_, part, _), n in sizes.items() if part == "first") >= 25
    assert min(n for (_, part, _), n in sizes.items() if part == "last") >= 40
    assert all(name == name.strip() and name for name, _, _, _ in rows)
    for key in sizes:
        listed = [name for name, part, gender, origin in rows if (origin, part, gender) == key]
        assert len(listed) == len(set(listed)), key


def drawn_from(name, pool):
    """A name of the pool, an initial, or two names of the pool in one."""
    cuts = [i for i, c in enumerate(name) if c in "- "]
    return name in pool or len(name) == 2 or any(name[:i] in pool and name[i + 1 :] in pool for i in cuts)


@pytest.mark.parametrize("flag", [False, True])
def test_held_out_names_are_used_only_when_asked_for(flag):
    names = [name for *_, listed in read_name_rows() for name in listed]
    every_third = {name for *_, listed in read_name_rows() for name in listed[2::3]}
    assert 0.3 < sum(name in every_third for name in names) / len(names) < 0.5
    held = {name.lower() for name in every_third}
    pool = {name.lower() for name in names if (name.lower() in held) == flag}
    for record in texts(flag):
        for span in record["spans"]:
            if span["label"].startswith("PERSON"):
                assert drawn_from(span["text"].lower(), pool), span


def test_a_name_that_is_shown_again_is_marked_again():
    for record in texts():
        people = {s["text"] for s in record["spans"] if s["label"] == "PERSON_LASTNAME" and len(s["text"]) > 6}
        covered = [(s["start"], s["end"]) for s in record["spans"]]
        for name in people:
            for hit in re.finditer(rf"\b{re.escape(name)}\b", record["text"]):
                assert any(a <= hit.start() and hit.end() <= b for a, b in covered), record


def test_names_and_places_come_without_an_article():
    for record in texts():
        for span in record["spans"]:
            if span["label"] not in synthetic.KEEP_ARTICLE:
                assert not span["text"].startswith(ARTICLES), span


@check_each_row(
    "template, text, spans",
    [
        ("I am a~ [OCC nurse].", "I am a nurse.", [("nurse", "OCCUPATION")]),
        ("I am a~ [OCC actor].", "I am an actor.", [("actor", "OCCUPATION")]),
        ("A~ [AGE 81-year-old] cat", "An 81-year-old cat", [("81-year-old", "AGE")]),
        ("a~ [OCC university lecturer]", "a university lecturer", [("university lecturer", "OCCUPATION")]),
        ("a~ <old >[OCC MP]", "an", None),
        ("in [COUNTRY the Gambia]", "in the Gambia", [("Gambia", "COUNTRY")]),
        ("on [DATE the third of May]", "on the third of May", [("the third of May", "DATE")]),
        ("to the [COUNTRY the Gambia]", "to the Gambia", [("Gambia", "COUNTRY")]),
        ("[LOC Lake {~city}]", "Lake ", None),
        ("one\\ntwo", "one\ntwo", []),
    ],
)
def test_template_language(template, text, spans):
    writer = synthetic._TemplateFiller(synthetic.random.Random(5), False)
    filled, marked = synthetic._assemble_text(writer.fill(synthetic.parse_template(template)))
    if spans is None:
        assert filled.startswith(text)
        assert len(marked) == 1
    else:
        assert filled == text
        assert [(s["text"], s["label"]) for s in marked] == spans


@pytest.mark.parametrize("template", ["<a|b", "[DATE May", "a>b<"])
def test_a_template_with_an_open_bracket_is_refused(template):
    with pytest.raises(ValueError, match="template"):
        synthetic.parse_template(template)
