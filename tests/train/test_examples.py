"""Records to allowed tags: what each kind of corpus says, and what it leaves open."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rows import check_each_row

from allonym.models.tags import LABELS, NAME_PARTS, PARTS
from allonym.models.words import split_words
from allonym.train.examples import (
    ALL,
    BEGIN,
    INSIDE,
    Example,
    Lists,
    O,
    list_annotated_labels,
    make_example,
    make_tag_masks,
)
from allonym.train.labelmap import find_targets

NAMES = Lists(frozenset({"ann", "paris", "bob"}), frozenset({"lee", "paris", "roy"}))
PLACES = Lists(places={"COUNTRY": frozenset({"france", "gambia"}), "CITY": frozenset({"paris", "new york"})})
TERMS = Lists(terms={"OCCUPATION": frozenset({"nurse", "vice president", "cook"}), "ORIGIN": frozenset({"french"})})


def record(text: str, *spans: tuple[str, str], **more: Any) -> dict[str, Any]:
    """``spans`` as pairs of a label and the words that it marks, each standing in the text once."""
    found = [
        {"start": text.index(said), "end": text.index(said) + len(said), "label": label, "text": said}
        for label, said in spans
    ]
    return {"id": "r", "text": text, "spans": found, **more}


def made(given_: dict[str, Any], known: str = "", source: str = "", lists: Lists | None = None, **more: Any) -> Example:
    labels = list_annotated_labels([given_], source, find_targets) | frozenset(known.split())
    return make_example(given_, source, labels, find_targets, lists or Lists(), **more)


def named(mask: int) -> set[str]:
    """A mask as names: ``all``, or ``O``, ``B-x``, ``I-x``."""
    if mask == ALL:
        return {"all"}
    out = {"O"} if mask & O else set()
    return out | {f"B-{x}" for x in LABELS if mask & BEGIN[x]} | {f"I-{x}" for x in LABELS if mask & INSIDE[x]}


def tags(given_: Example) -> dict[str, set[str]]:
    return dict(zip(given_.words, map(named, given_.allowed), strict=True))


FIRST, LAST = ({f"{b}-{part}" for b in "BI"} for part in NAME_PARTS)
BEGINS = {f"B-{part}" for part in NAME_PARTS}


def test_masks_are_one_bit_for_each_tag() -> None:
    bits = [O, *(BEGIN[x] for x in LABELS), *(INSIDE[x] for x in LABELS)]
    assert all(bit.bit_count() == 1 for bit in bits) and sum(bits) == ALL
    assert all(INSIDE[x] == BEGIN[x] << 1 for x in LABELS)


def test_conll_labels_stand_for_several() -> None:
    given_ = record("Ann Lee left Acme Corp in Lyon today.", ("PER", "Ann Lee"), ("ORG", "Acme Corp"), ("LOC", "Lyon"))
    example_ = made(given_)
    found = tags(example_)
    assert found["Acme"] == {"B-ORGANIZATION"} and found["Corp"] == {"I-ORGANIZATION"}
    assert {"B-COUNTRY", "B-CITY", "B-REGION", "B-LOCATION"} <= found["Lyon"]
    assert not any(tag[0] in "OI" for tag in found["Lyon"])
    assert found["Ann"] == {"B-PERSON_FIRSTNAME"}
    assert found["Lee"] == LAST
    assert "O" in found["in"] and "B-DATE" in found["today"] and "B-EVENT" in found["today"]
    assert not {"B-ORGANIZATION", "B-CITY", *BEGINS} & found["today"]  # the corpus would have marked these
    assert example_.plain[example_.words.index("left")] and not example_.plain[0]


def test_ontonotes_labels_tell_more() -> None:
    text = "The French paid $5 million in Paris on May 5 for the Mona Lisa, said Ann."
    given_ = record(
        text, ("NORP", "French"), ("MONEY", "$5 million"), ("GPE", "Paris"), ("DATE", "May 5"),
        ("WORK_OF_ART", "the Mona Lisa"), ("PERSON", "Ann"),
    )  # fmt: skip
    found = tags(made(given_, lists=PLACES))
    assert found["French"] == {"B-ORIGIN"}
    assert found["$"] == {"B-MONEY"} and found["million"] == {"I-MONEY"}
    assert found["Paris"] == {"B-CITY"}  # told apart by the list of places
    assert found["May"] == {"B-DATE"}
    assert found["Lisa"] == {"I-WORK_OF_ART"}
    assert found["Ann"] == BEGINS


def test_crossner_fine_types() -> None:
    given_ = record(
        "Ann Lee of Keele University won the Turing Award with Clover .",
        ("scientist", "Ann Lee"), ("university", "Keele University"), ("award", "Turing Award"), ("enzyme", "Clover"),
    )  # fmt: skip
    found = tags(made(given_, source="crossner"))
    assert found["Ann"] == {"B-PERSON_FIRSTNAME"} and found["Lee"] == LAST
    assert found["Keele"] == {"B-ORGANIZATION"}
    assert found["Turing"] == {"B-AWARD"} and found["Award"] == {"I-AWARD"}
    assert found["Clover"] == {"all"}  # means nothing to the tagger
    assert "B-OCCUPATION" in found["won"] and "B-AWARD" not in found["won"]


def test_gum_keeps_names_only() -> None:
    text = "She met the president of France and Ann Lee in a small town near London."
    given_ = record(
        text, ("person", "She"), ("person", "the president of France"), ("place", "France"), ("person", "Ann Lee"),
        ("place", "a small town near London"), ("place", "London"),
    )  # fmt: skip
    found = tags(made(given_, source="gum_mentions", lists=PLACES, keep="named", silver=True))
    assert found["She"] == found["the"] == found["president"] == found["small"] == {"all"}
    assert found["Ann"] == {"B-PERSON_FIRSTNAME"}
    assert found["France"] == {"B-COUNTRY"}  # within a mention that is no name
    assert "O" not in found["London"] and "B-CITY" in found["London"]
    assert "O" in found["and"] and "B-PERSON_FIRSTNAME" not in found["and"]


def test_people_are_kept_where_their_first_name_is_known() -> None:
    given_ = record(
        "Ann Lee and the Borrower owe Acme Bank.", ("PER", "Ann Lee"), ("PER", "Borrower"), ("ORG", "Acme Bank")
    )
    found = tags(made(given_, lists=NAMES, keep="people"))
    assert found["Ann"] == {"B-PERSON_FIRSTNAME"}
    assert found["Borrower"] == {"all"}
    assert found["Acme"] == {"B-ORGANIZATION"}


def test_silver_leaves_capitals_open() -> None:
    given_ = record("Ann saw Bob in town", ("PER", "Ann"))
    gold, silver = tags(made(given_)), tags(made(given_, silver=True))
    assert silver["Bob"] == {"all"} and "B-PERSON_FIRSTNAME" not in gold["Bob"]
    assert silver["town"] == gold["town"] and silver["Ann"] == gold["Ann"]


def test_names_in_mail_addresses_are_left_open_unless_they_are_marked() -> None:
    given_ = record("bob.roy@x.org and ann@x.org saw Eve", ("PER", "ann"), ("PER", "Eve"))
    found = made(given_)
    assert all(named(mask) == {"all"} for mask in found.allowed[: found.words.index("and")])
    assert named(found.allowed[found.words.index("ann")]) == BEGINS
    assert "all" not in named(found.allowed[found.words.index("saw")])


def test_labels_that_mean_nothing_here_are_left_open_but_hide_nothing() -> None:
    given_ = record("write to ann@x.org or Ann", ("EMAIL", "ann@x.org"), ("PER", "Ann"))
    found = tags(made(given_))
    assert found["x"] == found["org"] == {"all"}
    assert found["Ann"] == BEGINS
    nested = tags(made(record("the Lyon protein", ("protein", "Lyon protein"), ("LOC", "Lyon"))))
    assert nested["protein"] == {"all"} and "B-CITY" in nested["Lyon"] and "O" not in nested["Lyon"]


def test_of_nested_spans_the_longest_counts() -> None:
    found = tags(made(record("Bank of Lyon", ("LOC", "Lyon"), ("ORG", "Bank of Lyon"))))
    assert found["Lyon"] == {"I-ORGANIZATION"}


def test_a_span_that_cuts_a_word_marks_the_word() -> None:
    found = tags(made(record("antiFrench NewYork-style", ("NORP", "French"), ("GPE", "York"))))
    assert found["antiFrench"] == {"B-ORIGIN"} and "O" not in found["NewYork"]


def test_terms_are_marked_where_the_corpus_is_silent_about_them() -> None:
    text = "The French vice president met a nurse , a Cook and Ann."
    found = tags(made(record(text, ("PER", "Ann")), lists=TERMS))
    assert "O" not in found["French"] and "B-ORIGIN" in found["French"]
    assert {"O", "B-OCCUPATION"} == found["nurse"]  # also a verb
    assert found["vice"] == {"B-OCCUPATION"} and found["president"] == {"I-OCCUPATION"}
    assert {"O", "B-OCCUPATION"} <= found["Cook"]  # an ordinary name too
    assert found["nurse"] != tags(made(record(text, ("PER", "Ann")), "OCCUPATION", lists=TERMS))["nurse"]


@check_each_row(
    "said, wanted",
    [
        ("Ann", [{"B-PERSON_FIRSTNAME"}]),
        ("Lee", [{"B-PERSON_LASTNAME"}]),
        ("Paris", [BEGINS]),  # in both lists
        ("Zork", [BEGINS]),  # in none
        ("Zork Zark", [{"B-PERSON_FIRSTNAME"}, LAST]),
        ("Lee Zork", [BEGINS, FIRST | LAST]),  # may be turned round
        ("Lee Roy", [{"B-PERSON_FIRSTNAME"}, LAST]),
        ("Ann Zork Lee", [{"B-PERSON_FIRSTNAME"}, FIRST | LAST, LAST]),
        ("Ann Zork Zark", [{"B-PERSON_FIRSTNAME"}, FIRST | LAST, FIRST | LAST]),
        ("Ann B . Lee", [{"B-PERSON_FIRSTNAME"}, FIRST | LAST, FIRST | LAST, LAST]),
        ("@ Ann", [BEGINS, FIRST]),
    ],
)
def test_parts_of_names(said: str, wanted: list[set[str]]) -> None:
    assert [named(m) for m in make_tag_masks(said.split(), frozenset(NAME_PARTS), NAMES)] == wanted


def test_a_name_or_a_company_may_be_either() -> None:
    either = make_tag_masks(["Ann", "Lee"], frozenset({*NAME_PARTS, "ORGANIZATION"}), NAMES)
    assert [named(m) & {"B-ORGANIZATION", "I-ORGANIZATION"} for m in either] == [{"B-ORGANIZATION"}, {"I-ORGANIZATION"}]
    assert all(named(m) >= LAST for m in either)


@pytest.mark.parametrize("part", NAME_PARTS)
def test_a_corpus_that_tells_the_parts_of_names_apart_is_believed(part: str) -> None:
    assert [named(m) for m in make_tag_masks(["Ann", "Lee"], frozenset({part}), Lists())] == [
        {f"B-{part}"},
        {f"I-{part}"},
    ]


def test_parts_of_speech() -> None:
    given_ = {"id": "r", "text": "Ann don't go.", "tokens": ["Ann", "do", "n't", "go", "."]}
    given_["upos"] = ["PROPN", "AUX", "PART", "VERB", "PUNCT"]
    found = made(given_)
    said = {w: PARTS[p] if p >= 0 else "" for w, p in zip(found.words, found.parts, strict=True)}
    assert said == {"Ann": "PROPN", "don": "AUX", "'": "PART", "t": "PART", "go": "VERB", ".": "PUNCT"}
    assert set(found.allowed) == {ALL}


LABEL = st.sampled_from(["PER", "ORG", "LOC", "MISC", "EMAIL", "DATE", "person", "place"])


@given(st.text("Ann @.-' \nLeé5", max_size=40), st.data(), st.sampled_from(["all", "named", "people"]), st.booleans())
def test_any_record_leaves_every_word_something(text: str, data: st.DataObject, keep: str, silver: bool) -> None:
    at = st.integers(0, len(text))
    pairs = data.draw(st.lists(st.tuples(at, at, LABEL), max_size=4))
    spans = [{"start": min(a, b), "end": max(a, b), "label": label} for a, b, label in pairs if a != b]
    found = made({"id": "r", "text": text, "spans": spans}, lists=NAMES, keep=keep, silver=silver)
    n = len(split_words(text))
    assert {len(x) for x in (found.words, found.joined, found.breaks, found.allowed, found.plain, found.parts)} == {n}
    assert all(0 < mask <= ALL for mask in found.allowed)
    assert all(mask & O for mask, plain in zip(found.allowed, found.plain, strict=True) if plain)
    assert found.words == tuple(text[a:b] for a, b in split_words(text))


def test_an_example_does_not_show_its_text() -> None:
    assert "Ann" not in repr(made(record("Ann", ("PER", "Ann")))) + repr(NAMES)


def test_far_from_numbers_and_words_for_streets_nothing_is_an_address() -> None:
    text = "Oluchi saw the harbour and the gulls and the boats at Quillton . Home is 9 Mill Lane"
    told = tags(made(record(text, ("LOC", "Oluchi"), ("LOC", "Quillton"), ("ADDRESS", "9 Mill Lane"))))
    assert "B-CITY" in told["Oluchi"] and "B-STREET_ADDRESS" not in told["Oluchi"] | told["gulls"]
    assert "B-STREET_ADDRESS" in told["Quillton"]  # a number stands near
    assert told["Mill"] == {"I-STREET_ADDRESS"}
