"""Categories of P1, their states, and the values of chunks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.test_link import unmark

from allonym.document import Document, Span
from allonym.errors import UnknownNameError, UsageError
from allonym.labels import TAXONOMY, Label
from allonym.link import link
from allonym.swap.categories import (
    CATEGORIES,
    DEFAULT,
    find_category,
    group_values_by_chunk,
    list_detector_labels,
    make_key,
    parse_categories,
    remove_common_entities,
    remove_family_and_determiner,
    remove_possessive,
)
from allonym.swap.corpus import STATES, Chunk, Value


def values(marked, categories=CATEGORIES, bounds=None):
    text, spans = unmark(marked)
    document = Document("", text)
    entities = link(document, spans).entities
    return document, group_values_by_chunk(document, entities, bounds or [(0, len(text))], categories)


def test_the_default_is_what_p1_did():
    assert parse_categories() == dict(DEFAULT)
    assert DEFAULT["Event"] == "change" and DEFAULT["Date"] == "fixed"
    assert [c for c, state in DEFAULT.items() if state == "swap"] == [
        "Organization",
        "Person",
        "Location",
        "Product",
        "Term",
    ]


def test_names_alone_are_swapped_and_their_case_does_not_matter():
    assert parse_categories(["organization", "TERM"]) == {"Organization": "swap", "Term": "swap"}


def test_a_label_is_a_category_by_its_own_name():
    assert parse_categories({"WORK_OF_ART": "swap"}) == {"WORK_OF_ART": "swap"}
    own = TAXONOMY.extend([Label("SHIP", None, "quasi", 2)])
    assert parse_categories(["SHIP"], own) == {"SHIP": "swap"}
    assert find_category("SHIP", ["SHIP"], own) == "SHIP"


@pytest.mark.parametrize(
    ("given", "error", "says"),
    [
        ({"Organisation": "swap"}, UnknownNameError, "did you mean: Organization"),
        ({"Product": "swapped"}, UnknownNameError, "category Product: unknown state 'swapped'; did you mean: swap"),
        (["Product", "product"], UsageError, "Product is named twice"),
        ([], UsageError, "at least one"),
    ],
)
def test_wrong_categories_are_told(given, error, says):
    with pytest.raises(error, match=says):
        parse_categories(given)


def test_the_narrowest_category_takes_a_label():
    assert find_category("US_STATE", ["Location", "REGION"]) == "REGION"
    assert find_category("US_STATE", ["Location", "CITY"]) == "Location"
    assert find_category("US_STATE", ["Person"]) == ""
    assert find_category("TIME", ["Date"]) == "Date"


def test_labels_to_look_for_are_those_that_fall_into_a_category():
    names = list_detector_labels(CATEGORIES)
    assert {"CITY", "TICKER", "DURATION", "TERM"} <= set(names)
    assert all(find_category(name, CATEGORIES) for name in names)
    assert not [a.name for a in TAXONOMY if a.name not in names and find_category(a.name, CATEGORIES)]


def test_every_state_is_allowed():
    for state in STATES:
        assert parse_categories({"Product": state}) == {"Product": state}


def test_values_of_a_chunk():
    document, [found] = values(
        "{Harrow Group Ltd|ORGANIZATION} and {Harrow|ORGANIZATION}'s {Kite|PRODUCT}; the {Harrow Group's|ORGANIZATION} {Kite|PRODUCT}"
    )
    by_key = {v.key: v for v in found}
    assert [v.category for v in found] == ["Organization", "Organization", "Product"]
    assert by_key["harrow group"].forms == ("Harrow Group Ltd", "Harrow Group")
    assert by_key["kite"].forms == ("Kite",)
    assert [document.text[s.start : s.end] for s in by_key["kite"].spans] == ["Kite", "Kite"]


def test_determiners_do_not_make_another_value():
    _, [found] = values("{the Kite Board|PRODUCT}, {our Kite board|PRODUCT} and {Kite Board's|PRODUCT} fame")
    assert len(found) == 1
    assert found[0].key == "kite board"
    assert found[0].forms == ("the Kite Board", "our Kite board", "Kite Board")


def test_keys_are_the_same_in_every_document():
    _, [a] = values("{The Harrow Group, Inc.|ORGANIZATION} of {Tallow Bay|CITY}")
    _, [b] = values("{TALLOW BAY|CITY} and {Harrow Group|ORGANIZATION}")
    assert {v.key for v in a} == {v.key for v in b} == {"harrow group", "tallow bay"}
    assert make_key("ORGANIZATION", " The Harrow Group Ltd. ") == "harrow group"


def test_values_are_cut_at_the_chunks_borders():
    marked = "{Harrow|ORGANIZATION} grew. {Harrow|ORGANIZATION} fell. {Kite|PRODUCT} stayed."
    _, found = values(marked, bounds=[(0, 13), (13, 26), (26, 39)])
    assert [[v.key for v in chunk] for chunk in found] == [["harrow"], ["harrow"], ["kite"]]
    assert [len(v.spans) for chunk in found for v in chunk] == [1, 1, 1]


def test_what_is_in_no_chunk_or_no_category_is_left_out():
    marked = "{Harrow|ORGANIZATION} and {Kite|PRODUCT}"
    assert values(marked, bounds=[(7, 14)])[1] == [()]
    assert [v.key for v in values(marked, ["Product"])[1][0]] == ["kite"]
    assert values(marked, bounds=[(0, 3), (3, 15)])[1][0] == ()


def test_nothing_shows_in_a_repr():
    _, [found] = values("{Harrow|ORGANIZATION}")
    assert "harrow" not in repr(found).lower()


@pytest.mark.parametrize(
    ("surface", "bare"),
    [
        ("Kite's", "Kite"),
        ("Kite’s", "Kite"),
        ("the Joneses'", "the Joneses"),
        ("Kites", "Kites"),
        ("'s", "'s"),
        (" Kite ", "Kite"),
    ],
)
def test_possessive_endings_are_no_part_of_a_form(surface, bare):
    assert remove_possessive(surface) == bare


def test_a_name_that_is_all_determiners_keeps_a_key():
    assert remove_family_and_determiner("PRODUCT:the") == "the"
    assert remove_family_and_determiner("PERSON:the rock") == "the rock"


@given(
    st.lists(
        st.tuples(st.sampled_from("abc"), st.sampled_from(["ORGANIZATION", "PRODUCT", "CITY", "PERCENT"])), max_size=12
    ),
    st.integers(1, 5),
)
def test_every_mention_inside_a_chunk_is_in_one_value(words, size):
    text, spans = "", []
    for word, label in words:
        spans.append(Span(len(text), len(text) + 1, label))
        text += f"{word} "
    document = Document("", text)
    bounds = [(a, min(a + 2 * size, len(text))) for a in range(0, len(text), 2 * size)]
    found = group_values_by_chunk(document, link(document, spans).entities, bounds, CATEGORIES)
    assert len(found) == len(bounds)
    told = sorted(s for chunk in found for v in chunk for s in v.spans)
    assert told == [s for s in spans if find_category(s.label, CATEGORIES)]
    for chunk, (a, b) in zip(found, bounds, strict=True):
        assert len({(v.category, v.key) for v in chunk}) == len(chunk)
        assert all(a <= s.start and s.end <= b for v in chunk for s in v.spans)
        assert [v.spans[0] for v in chunk] == sorted(v.spans[0] for v in chunk)


def test_what_everybody_speaks_of_stays():
    def chunk(document: int, *keys: str, category: str = "Organization") -> Chunk:
        return Chunk(document, 0, 9, "", tuple(Value(category, k, (k,), (Span(0, 1, "ORGANIZATION"),)) for k in keys))

    chunks = [chunk(i, "ebitda", f"own {i}") for i in range(10)] + [chunk(0, "four"), chunk(0, "q3", category="Date")]
    chunks += [chunk(i, "four") for i in range(1, 4)] + [chunk(i, "q3", category="Date") for i in range(1, 10)]
    classes = [str(i) for i in range(10)]
    states = {"Organization": "swap", "Date": "fixed"}
    left = remove_common_entities(chunks, classes, states, 0.3)
    assert {v.key for c in left for v in c.values} == {"four", "q3", *(f"own {i}" for i in range(10))}
    assert remove_common_entities(chunks, classes, states, 1.0) == tuple(chunks)
    assert remove_common_entities(chunks[:4], classes[:4], states, 0.0) == tuple(chunks[:4])
