"""Rules that are made in Python are checked as those of a file."""

from __future__ import annotations

import pytest

from allonym.errors import UsageError
from allonym.pattern import PatternRule


@pytest.mark.parametrize("wrong", [{"score": 1.5}, {"score": -0.1}, {"score": float("nan")}, {"boundary": "both"}])
def test_a_score_or_a_boundary_that_is_none_is_refused(wrong):
    with pytest.raises(UsageError, match="pattern door"):
        PatternRule("door", "GENERIC_ID", "D[0-9]+", **wrong)


def test_context_makes_a_match_likelier_by_default():
    assert PatternRule("door", "GENERIC_ID", "D[0-9]+", 0.4).context_score == 0.75
    assert PatternRule("door", "GENERIC_ID", "D[0-9]+", 0.4, context_score=0.5).context_score == 0.5
