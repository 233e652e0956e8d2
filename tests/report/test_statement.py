"""Statements: plain words, nothing measured that was not, no text of the documents."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allonym import report
from allonym.files.runreport import RunReport

pytest.importorskip("jinja2")

RUN = RunReport(
    documents=2,
    characters=900,
    files=2,
    refused=(("a.pdf", "it is encrypted"),),
    labels={"PERSON": 4, "CITY": 1},
    operators={"tag": 4, "keep": 1},
    left={"pictures": 2},
    settings={"policy": "default", "fingerprint": "ab" * 16, "keyed": False},
    versions={"allonym": "1.2", "english model": "64e3"},
    digest="cd" * 32,
    unread={"pl": 300},
).to_dict()
SHARE = {"low": 0.1, "high": 0.4, "n": 20, "method": "Wilson"}
EVALUATION = {
    "texts": 20,
    "headlines": [
        {
            "key": "linkage",
            "measure": "linkage",
            "name": "Identified at worst",
            "side": "risk",
            "better": "low",
            "kind": "share",
            "digits": None,
            "note": "",
            "value": {"value": 0.25, **SHARE},
            "chance": {"value": 0.05, **SHARE, "low": 0.05, "high": 0.05},
            "before": {"value": 0.9, **SHARE},
        }
    ],
    "measures": {"linkage": {"panel": {"worst": {"name": "adaptive", "knows": "learnt from the tool's output"}}}},
}
CARD = {
    "document": "d1",
    "sort": "author",
    "name": "Ada Brook",
    "below": True,
    "facts": [{"kind": "work", "value": "cook"}],
}
CARDS = {"cards": {"persons": 7, "limit": 5, "cards": [CARD, {**CARD, "below": False}]}}


def write_statement(**more):
    return report.render(report.statement_page(RUN, **more), "markdown").replace("\\", "")


def test_the_methods_say_what_was_done_and_no_more():
    assert (
        "We de-identified 2 documents with" in write_statement()
        and "), offline. Rules, lists and a" in write_statement()
    )
    assert "4 places were replaced by a numbered tag." in write_statement()
    settings, versions = {**RUN["settings"], "endpoint": True}, {"allonym": "1.2"}
    text = report.render(report.statement_page({**RUN, "settings": settings, "versions": versions}), "markdown")
    assert "offline" not in text and "network. Rules and lists find" in text
    text = report.render(report.statement_page({**RUN, "operators": {"tag": 1}}), "markdown")
    assert text.count("1 place was replaced") == 2


def test_what_differs_between_runs_is_not_claimed():
    """What was covered was not kept; answers of a model need not come again; a verdict is no agreement."""
    run = {**RUN, "exceptions": 3, "identifying_headers": {"Ada Brook": 1}, "operators": {"encrypt": 1, "llm": 1}}
    text = report.render(report.statement_page(run, reviews={"settled": 1, "documents": 1}), "markdown")
    assert "Covered all the same, in columns that stay: 3 cells" in text and "Kept, because" not in text
    assert "Names of columns that may identify somebody: 1" in text and "Ada" not in text
    assert "replaced by an invented name, place, number or date or the same words in encrypted form." in text
    assert "differences between them were settled" in text
    assert "same bytes" in text
    settings = {**RUN["settings"], "endpoint": True}
    assert "same bytes" not in report.render(report.statement_page({**RUN, "settings": settings}), "markdown")


@pytest.mark.parametrize(("more", "expected"), [({}, "no"), ({"vault": True}, "yes"), ({"keyed": True}, "yes")])
def test_the_certificate_tells_of_a_key_or_a_vault(more, expected):
    run = {**RUN, "settings": {**RUN["settings"], **more}}
    text = report.render(report.statement_page(run), "markdown")
    assert re.search(rf"key or vault\W+{expected}\b", text)


def test_what_was_not_measured_is_said():
    text = write_statement()
    assert text.count("Not measured.") == 2 and "Nobody is recorded to have read the result" in text
    assert "Not measured: what intruders find and what is left about each person." in text
    assert "0.00" not in text and "0 %" not in text


def test_files_without_measures_measure_nothing():
    text = write_statement(evaluation={"texts": 3}, cards={"texts": 3})
    assert text.count("Not measured.") == 2
    assert "Not measured: what intruders find and what is left about each person." in text


def test_what_was_done_found_and_not_read_is_told():
    text = write_statement()
    for sentence in (
        "2 documents went through allonym; 4 places were replaced. Left out, because they could not be treated: 1 file",
        "Left out, because they could not be read: 1 file (it is encrypted)",
        "the number of cells or parts: pictures (2)",
        "Names were not looked for in 33 % of the text: Polish",
        "Name of a person",
        "the policy keeps them",
    ):
        assert sentence in text


def test_content_beside_the_text_is_no_field_and_an_adapted_article_no_place():
    treated = {"custom XML parts left out": 3, "review": 2}
    changed = {**RUN, "treated": treated, "operators": {"tag": 4, "article": 2}}
    text = report.render(report.statement_page(changed), "markdown")
    assert "these fields were read: review. Others" in text and "Beside the text: custom XML parts left out (3)" in text
    assert "4 places were replaced" in text and "article" not in text


def test_measures_are_told_in_words_with_their_intruder_and_without_texts():
    text = write_statement(evaluation=EVALUATION, cards=CARDS, reviews={"settled": 2, "documents": 3})
    assert "identifies the subject of 25" in text and "the adaptive one" in text
    assert "left about each of 7 persons" in text and "1 of them could be singled out" in text
    assert "Two people read 2 of 3 documents" in text and "1 document" in text
    assert "Ada" not in text and "cook" not in text and "Not measured." not in text


def test_pdf_has_the_same_words_and_the_same_bytes(tmp_path):
    pytest.importorskip("reportlab")
    pypdfium2 = pytest.importorskip("pypdfium2")
    page = report.statement_page(RUN, evaluation=EVALUATION, cards=CARDS)
    report.write(page, tmp_path / "a.pdf")
    assert (tmp_path / "a.pdf").read_bytes() == report.pdf(page)
    with pypdfium2.PdfDocument(tmp_path / "a.pdf") as document:
        assert len(document) == 2
        text = " ".join(" ".join(p.get_textpage().get_text_bounded().split()) for p in document)
    assert "Statement on an anonymisation" in text and "Signature" in text and "64e3" in text


@given(st.text(max_size=40))
def test_any_text_can_stand_in_a_pdf(text):
    pytest.importorskip("reportlab")
    page = report.Page(text, (), lead=(report.statement_page(RUN).lead[0],), subtitle=text)
    assert report.pdf(page).startswith(b"%PDF")
