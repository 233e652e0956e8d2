"""Disguise: folding keeps lengths, unmasking keeps the way back."""

from __future__ import annotations

import json
import unicodedata
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.rows import check_each_row

import allonym
from allonym.detection import disguise
from allonym.detection.disguise import View, find_disguised_regions, fold_lookalikes, undo_disguise
from allonym.policy import Policy

CASES = [
    json.loads(line)
    for line in (Path(__file__).parents[1] / "cases" / "disguise.jsonl").read_text("utf-8").split("\n")
    if line
]

texts = st.text(max_size=60) | st.text(
    alphabet="ab1 @.-\n\u200b\u00ad\u0336\u0435\u0430жé４–’&#;64\\u/%20[]()atdo＠", max_size=60
)
secrets = st.sampled_from(["jane@example.com", "4111 1111 1111 1111", "078-05-1120", "DE89 3704 0044 0532 0130 00"])


@check_each_row("case", CASES)
def test_disguises(case: dict[str, str]) -> None:
    folded = fold_lookalikes(case["text"])
    view = undo_disguise(folded)
    text = folded if view is None else view.text
    assert case["plain"] in text
    start = text.index(case["plain"])
    end = start + len(case["plain"])
    if view is not None:
        start, end = view.locate_original(start, end)
    assert case["text"][start:end] == case["covers"]


@check_each_row(
    "text",
    [
        "The quick brown fox, AT&T; 100% of 5 dots.",
        "Привет мир, это 5-летний план",
        "naïve café",
        "emoji 👩\u200d👩\u200d👧 and ❤️ stay",
        "می\u200cخواهم",
        "12\n13\n14\n",
        "12345\n67890\n",
        "meet me @ noon. Then",
        "\ufeffA file with a byte order mark",
        "a = b -\nc",
    ],
)
def test_ordinary_text_is_not_disguised(text: str) -> None:
    assert undo_disguise(fold_lookalikes(text)) is None


def test_ascii_and_plain_text_come_back_as_they_are() -> None:
    for text in ("", "plain", "naïve café", "Привет мир", "日本語"):
        assert fold_lookalikes(text) is text


def test_russian_and_greek_words_keep_their_letters() -> None:
    text = "Саша ест рис. Το σπίτι είναι εδώ. Сауна 2020"
    assert fold_lookalikes(text) is text


def test_the_quick_path_lists_no_character_that_folds() -> None:
    common = {char for char, _ in disguise._COMMON}
    changed = (
        chr(p)
        for p in range(0x80, 0x110000)
        if not 0xD800 <= p <= 0xDFFF and disguise._fold_character(chr(p)) != chr(p)
    )
    missed = [hex(ord(c)) for c in changed if c not in common and disguise._UNUSUAL.search(c.encode()) is None]
    assert missed == []


def test_every_digit_space_and_dash_folds_to_ascii() -> None:
    wanted = {"Nd": "0123456789", "Zs": " ", "Pd": "-"}
    for point in range(0x80, 0x110000):
        char = chr(point)
        if (category := unicodedata.category(char)) in wanted:
            assert fold_lookalikes(char) in wanted[category], hex(point)


@given(texts)
def test_folding_keeps_the_length_and_is_idempotent(text: str) -> None:
    folded = fold_lookalikes(text)
    assert len(folded) == len(text)
    assert fold_lookalikes(folded) == folded


@given(texts)
def test_a_view_leads_back_exactly(text: str) -> None:
    view = undo_disguise(text)
    if view is None:
        return
    places = [view.locate_original(i, i + 1) for i in range(len(view.text))]
    for (a, b), (c, d) in pairwise(places):
        assert a < b <= len(text)
        assert a <= c and b <= d
    for i, (a, b) in enumerate(places):
        if b - a == 1 and text[a] not in "&\\%":
            assert fold_lookalikes(text[a]) == fold_lookalikes(view.text[i]) or view.text[i] in "-. t"
    if places:
        assert view.locate_original(0, len(view.text)) == (places[0][0], places[-1][1])


def _disguised(secret: str, how: str) -> str:
    return {
        "zero-width": lambda: "\u200b".join(secret),
        "entities": lambda: "".join(f"&#{ord(c)};" for c in secret),
        "escapes": lambda: "".join(f"\\u{ord(c):04x}" for c in secret),
        "full-width": lambda: "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else "\u3000" for c in secret),
        "double": lambda: "\u2060".join(f"&amp;#x{ord(c):x};" for c in secret),
        "overlay": lambda: "".join(c + "\u0336" for c in secret)[:-1],
    }[how]()


words = st.text(alphabet="abcXYZ ,é\n", max_size=20)


@settings(max_examples=80)
@given(words, secrets, st.sampled_from(["zero-width", "entities", "escapes", "full-width", "double", "overlay"]), words)
def test_a_planted_secret_is_found_and_covered_exactly(before: str, secret: str, how: str, after: str) -> None:
    hidden = _disguised(secret, how)
    text = f"{before} |{hidden}| {after}"
    folded = fold_lookalikes(text)
    view = undo_disguise(folded)
    shown = folded if view is None else view.text
    start = shown.index(secret)
    end = start + len(secret)
    if view is not None:
        start, end = view.locate_original(start, end)
    assert text[start:end] == hidden


def test_a_view_shows_no_text_and_refuses_empty_spans() -> None:
    view = undo_disguise("marker&#64;example.com")
    assert isinstance(view, View)
    assert "marker" not in repr(view)
    with pytest.raises(ValueError, match="span of the view"):
        view.locate_original(3, 3)


@pytest.mark.slow
@check_each_row(
    "unit", ["a @ ", "x ", "1\n", "&#64;", "%40", "\\/", "[at]", " dot ", "4111 1111\n", "a@-\n", "\u200b", "e\u0336"]
)
def test_long_input_takes_no_more_than_linear_work(unit: str) -> None:
    text = fold_lookalikes(unit * (200_000 // len(unit)))
    view = undo_disguise(text)
    assert view is None or view.locate_original(0, len(view.text))[1] <= len(text)


def test_lone_surrogates_pass() -> None:
    text = "\ud83d jane&#64;example.com \ude00"
    view = undo_disguise(fold_lookalikes(text))
    assert view is not None
    assert "jane@example.com" in view.text


def test_views_of_a_long_text_are_regions_of_it():
    filler = "Nothing of note was said by anybody there. "
    text = filler * 200 + "Write to jane [at] example [dot] com soon. " + filler * 200
    (at, first, last, view) = next(find_disguised_regions(text))
    assert len(view.text) < 2000
    place = view.text.index("jane@example.com")
    assert first <= place and place + 16 <= last
    start, end = view.locate_original(place, place + 16)
    assert text[at + start : at + end] == "jane [at] example [dot] com"
    assert list(find_disguised_regions(filler * 400)) == []


def test_disguise_is_found_wherever_it_stands():
    filler = "Nothing of note was said by anybody there. "
    hidden = "jane [at] example [dot] com"
    for before, after in ((0, 300), (300, 0), (113, 250)):
        text = filler * before + f"Write to {hidden}" + (f". {filler * after}" if after else "")
        spans = allonym.detect(text, Policy.only(["EMAIL_ADDRESS"]))
        assert [text[s.start : s.end] for s in spans] == [hidden]
