"""A long text costs no more for each character than a short one, whatever it consists of.

Calls of functions are counted, not seconds. The long text is eight times as long: a stage whose cost is the square of
its text's length costs about eight times as much for each character there.
"""

from __future__ import annotations

import pytest

from allonym.policy import Policy
from benchmarks import growth

SHORT, LONG = 4_000, 32_000
SOME_CALLS = 0.2  # for each character: what a few findings more in one of the two texts cost
DRAWN_AGAIN = {"new names"}
"""Pseudonyms for thousands of new names: the more are taken, the more are drawn, up to a fixed number, before one is
free."""


@pytest.mark.slow
@pytest.mark.parametrize("kind", growth.KINDS)
def test_calls_for_each_character_do_not_grow_with_the_text(kind: str) -> None:
    default, pseudonyms = Policy.load("default"), Policy.load("pseudonyms")
    policy = default.with_(detectors=tuple(name for name in default.detectors if name != "tagger"))
    growth.count_calls(growth.make_text(kind, SHORT, 1), policy, pseudonyms)  # what is loaded once is no growth
    short, long = (
        {stage: count / size for stage, count in calls.items()}
        for size in (SHORT, LONG)
        for calls in [growth.count_calls(growth.make_text(kind, size, 2), policy, pseudonyms)]
    )
    limits = {stage: 1.5 * calls + SOME_CALLS for stage, calls in short.items()}
    limits["total"] = 1.2 * short["total"] + SOME_CALLS
    limits["pseudonyms"] += 1
    if kind in DRAWN_AGAIN:
        del limits["pseudonyms"]
    assert {stage: (long[stage], limit) for stage, limit in limits.items() if long[stage] > limit} == {}
