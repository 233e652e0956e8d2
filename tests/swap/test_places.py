"""The place of a mention: article, count, attribute, affiliation and address."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.rows import check_each_row

from allonym.document import Span
from allonym.models.pos import parts_of_speech
from allonym.swap.places import FEATURES, Sentences, read_place

CASES = [
    json.loads(line)
    for line in (Path(__file__).parents[1] / "cases" / "swap_places.jsonl").read_text("utf-8").splitlines()
]


def read(marked: str) -> dict[str, int]:
    """The place of the mentions between quotation marks; people stand between @ signs."""
    text, spans, people = "", [], []
    for piece in re.split("(«.*?»|@.*?@)", marked):
        start = len(text)
        text += piece.strip("«»@")
        if piece[:1] == "«":
            spans.append(Span(start, len(text), "TERM"))
        elif piece[:1] == "@":
            people.append(len(text))
    return dict(zip(FEATURES, read_place(text, spans, Sentences(parts_of_speech(text), people)), strict=True))


@check_each_row("case", CASES)
def test_cases(case: dict[str, str]) -> None:
    place = read(case["text"])
    assert [name for name in case["yes"].split() if place[name] <= 0] == []
    assert [name for name in case["no"].split() if place[name] > 0] == []


def test_most_mentions_decide_on_the_article_and_one_on_an_address() -> None:
    place = read("In the «UK» and the «UK» market, unlike «UK» law, the «UK» leads.")
    assert place["the"] == 1
    assert read("«Anna» spoke. Thank you, «Anna».")["address"] == 1
