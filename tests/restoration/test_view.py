"""Escapes undone, and the way back to where they stood."""

from __future__ import annotations

import html
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rows import check_each_row

from allonym.restoration.view import UNFINISHED, View, escape_like


@check_each_row(
    "raw, text",
    [
        ("plain & simple 5% \\", "plain & simple 5% \\"),
        ("&lt;a&gt;", "<a>"),
        ("&amp;lt;a", "<a"),
        ("&amp;amp;", "&"),
        ("&#91;&#x5D;&lsqb;", "[]["),
        ("&nosuchname; &;", "&nosuchname; &;"),
        ("\\[a\\_b\\]", "[a_b]"),
        ("\\u003ca\\u003E", "<a>"),
        ('\\\\\\"a', '"a'),
        ("a\\nb", "a\nb"),
        ("%5Ba%20b%5d%41", "[a b]%41"),
        ("so\u00adft\u200b \ufeffx", "soft x"),
    ],
)
def test_what_it_reads_as(raw, text):
    assert View(raw).text == text


@given(
    st.lists(st.sampled_from(["a", " ", "&lt;", "\\_", "\\u0041", "\u200b", "%20", "&", "\\", "\u00ad"]), max_size=12)
)
def test_every_place_leads_back(pieces):
    raw = "".join(pieces)
    view = View(raw)
    ends = [0]
    for i in range(len(view.text)):
        start, end = view.get_text_start(i), view.get_text_end(i + 1)
        assert ends[-1] <= start < end <= len(raw)
        assert View(raw[start:end]).text == view.text[i]
        ends.append(end)


@given(st.text(alphabet="ab<>&\"'\\ \u0142/", max_size=12))
def test_what_is_put_back_is_escaped_as_its_place_was(text):
    assert html.unescape(escape_like(text, (("html", "&lt;"),))) == text
    assert html.unescape(escape_like(text, (("html", "&#60;"),))) == text
    assert html.unescape(html.unescape(escape_like(text, (("html", "&amp;lt;"),)))) == text
    assert json.loads(f'"{escape_like(text, (("json", chr(92) + "u003c"),))}"') == text
    assert json.loads(f'"{escape_like(text, (("json", chr(92) + chr(34)),))}"') == text
    assert escape_like(text, (("markdown", "\\_"), ("invisible", "\u200b"))) == text


@pytest.mark.parametrize("end", ["&", "&l", "&amp;lt", "\\", "\\u00", "%", "%5"])
def test_what_may_become_an_escape(end):
    assert UNFINISHED.search("text " + end)[0] == end
    assert UNFINISHED.search("text " + end + " ") is None
