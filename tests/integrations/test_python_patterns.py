"""Python's patterns as rules of a policy: the same matches, or more where a condition cannot be said."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tests.rows import check_each_row

import allonym
from allonym.errors import UsageError
from allonym.integrations.python_patterns import translate_pattern
from allonym.policy import Policy

FLAGS = re.IGNORECASE | re.MULTILINE | re.DOTALL


CASES = Path(__file__).parents[1] / "cases" / "python_patterns.jsonl"


@check_each_row("row", [json.loads(line) for line in CASES.read_text(encoding="utf-8").splitlines()])
def test_patterns_match_what_python_matches(row):
    if "refused" in row:
        with pytest.raises(UsageError, match=re.escape(row["refused"])):
            translate_pattern(row["regex"], FLAGS)
        return
    translated = translate_pattern(row["regex"], FLAGS)
    pattern = {"name": "p", "label": "TERM", "pattern": translated.pattern, "boundary": "none"}
    policy = Policy(name="").changed(
        {"detect": {"detectors": ["rules"], "labels": ["TERM"]}, "patterns": [pattern]}, ""
    )
    spans = [(span.start, span.end) for span in allonym.detect(row["text"], policy)]
    wanted = [match.span() for match in re.finditer(row["regex"], row["text"], FLAGS)]
    if row["exact"]:
        assert spans == wanted
        assert translated.remarks == ()
    else:
        assert set(wanted) <= set(spans)


def test_verbose_patterns_are_refused():
    with pytest.raises(UsageError, match="VERBOSE"):
        translate_pattern("a b", re.VERBOSE)
