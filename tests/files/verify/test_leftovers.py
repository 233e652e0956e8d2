"""What counts as left over: how often, in which disguise, and what a refusal says."""

from __future__ import annotations

import pytest
from tests.rows import check_each_row

from allonym.errors import RefusedContent
from allonym.files import verify
from allonym.files.verify import VIEWS, can_identify, check_no_leftovers, find_leftovers_in_texts


def found(text: str, covered: str, expected: str = "") -> bool:
    return bool(find_leftovers_in_texts([("page 1", text)], [covered], expected))


@check_each_row(
    "text",
    [
        "of Ada Brook, who",
        "of ADA   BROOK",
        "of Ada\nBrook",
        "A d a B r o o k",
        "Ada Bro-\nok wrote",
        "Ada Bro\u00adok",
        "Ada Bro\ufffeok",
        "Ada\u00a0Brook",
        "(Ada)(Brook)",
        "the Brooks and Brook",
        "\uff21da Brook",
    ],
)
def test_a_covered_text_is_found_in_any_shape(text):
    assert found(text, "Ada Brook")


@pytest.mark.parametrize("text", ["", "Ada met", "Adabrooks", "the Brooks", "brooking"])
def test_what_only_looks_like_it_is_not(text):
    assert not found(text, "Ada Brook")


def test_ligatures_and_letters_of_other_widths_are_the_same():
    assert found("Mrs. Sto\ufb00el", "Stoffel")
    assert found("Mrs. Stoffel", "Sto\ufb00el")


def test_a_long_text_is_found_without_the_spaces_around_it():
    assert found("metWilhelminaFarrowtoday", "Wilhelmina Farrow")
    assert not found("metAdaBrotoday", "Ada Bro")


def test_a_short_number_is_not_put_together_from_two():
    assert not found("rows 4 1 and 2", "41")
    assert found("aged 41", "41")


def test_a_word_that_stays_may_stand_as_often_as_it_stays():
    assert not found("In May they met.", "May", "In May they met.")
    assert found("In May they met May.", "May", "In May they met [PERSON_1].")


def test_places_and_counts_are_told_and_no_text():
    pages = [("page 1", "nothing"), ("page 2", "Ada Brook, Ada Brook"), ("page 3", "Cyd Dale")]
    one, two = find_leftovers_in_texts(pages, ["Ada Brook", "Eve Stone", "Cyd Dale"], "")
    assert (one.index, one.places, one.excess) == (0, ("page 2",), 2)
    assert (two.index, two.places, two.excess) == (2, ("page 3",), 1)


def test_a_result_with_leftovers_is_refused(monkeypatch):
    pages = [(f"page {n}", "Ada Brook" if n > 1 else "") for n in range(1, 10)]
    monkeypatch.setattr(verify, "read_texts_by_reader", lambda data, format: iter([[("x", "")], pages]))
    with pytest.raises(RefusedContent) as failed:
        check_no_leftovers(b"", "pdf", {"Ada Brook": "", "Cyd Dale": ""}, "")
    said = str(failed.value)
    assert said.startswith("the result still contains 1 of 2 covered texts (page 2, page 3")
    assert "3 more places" in said
    assert "Ada" not in said and "Brook" not in said
    with pytest.raises(RefusedContent, match=r"'Ada Brook'$"):
        check_no_leftovers(b"", "pdf", {"Ada Brook": "", "Cyd Dale": ""}, "", quotes=True)
    check_no_leftovers(b"", "pdf", {}, "")


def test_a_repair_is_tried_again_with_the_words_of_what_is_left(monkeypatch):
    monkeypatch.setattr(verify, "read_texts_by_reader", lambda data, format: iter([[("x", data.decode())]]))
    calls = []

    def repair(data, replacements):
        calls.append(replacements)
        return b"x" if "Guard" in replacements else data

    assert check_no_leftovers(b"Coastal Guard", "pdf", {"Coastal Guard": "[ORG]"}, "", repair) == b"x"
    assert calls == [{"Coastal Guard": "[ORG]"}, {"Coastal": "[ORG]", "Guard": "[ORG]", "Coastal Guard": "[ORG]"}]


@check_each_row(
    "text, identifies",
    [
        ("A", False),
        ("JB", False),
        ("41", False),
        ("2021", False),
        ("Char", False),
        ("Author 1", False),
        ("Heading 1 Char", False),
        ("January", False),
        ("Information", False),
        ("Lee", True),
        ("Will", True),
        ("Rose Grant", True),
        ("12 Station Road", True),
        ("12 March 1984", True),
        ("90210", True),
        ("12 34 56", True),
        ("李明", True),
        ("Okafor", True),
    ],
)
def test_short_and_ordinary_texts_identify_nobody(text, identifies):
    assert can_identify(text) == identifies


def test_a_piece_of_a_longer_ordinary_word_is_no_leftover():
    assert not found("his characteristic style", "Character")
    assert found("JaneSmithson", "Jane Smith")


def test_a_trade_mark_is_no_part_of_a_word():
    """A reader of bytes may miss the sign."""
    assert not found("the Fennsoft \x99 suite", "http://fennsoft.example", "the Fennsoft\u2122 suite")
    assert found("by Fennsoft\u2122", "Fennsoft")


def test_an_escaped_space_of_an_address_begins_no_word():
    assert not found("[URL_1]%20in%20part", "http://a.be/go%20in")
    assert found("by Okafor", "http://a.be/by%20Okafor")


def test_every_view_is_a_function():
    from importlib import import_module

    for names in VIEWS.values():
        for name in names:
            module, _, attribute = name.partition(":")
            assert callable(getattr(import_module(module), attribute))


def test_a_result_without_any_text_holds_nothing():
    assert find_leftovers_in_texts([], ["Ada Brook"], "") == []


def test_what_other_packages_raise_and_say_is_not_passed_on(monkeypatch, caplog):
    import logging

    from allonym.errors import DataError
    from allonym.files.verify import office, read_texts_by_reader

    def fails(data):
        logging.getLogger("pdfminer").warning("Ada Brook")
        raise AttributeError("Ada Brook")

    monkeypatch.setattr(office, "read_accepted_texts", fails)
    with pytest.raises(DataError, match=r"cannot be read back \(AttributeError\)$"):
        list(read_texts_by_reader(b"", "docx"))
    assert "Ada Brook" not in caplog.text
