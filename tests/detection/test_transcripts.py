"""The preset ``transcripts`` on calls as P2 writes them: "Person 1:", read-out digits, firms that answer the telephone."""

from __future__ import annotations

import json
from pathlib import Path

from tests.rows import check_each_row

import allonym

LINES = (Path(__file__).parents[1] / "cases" / "transcripts.jsonl").read_text("utf-8").splitlines()


@check_each_row("case", [json.loads(line) for line in LINES])
def test_calls(case: dict[str, str]) -> None:
    assert allonym.anonymize(case["text"], "transcripts").text == case["safe"]
