"""The gateway's own policy: ordinary prompts go as they are, identifiers of all kinds do not."""

from __future__ import annotations

import pytest

pytest.importorskip("uvicorn")
prompts = pytest.importorskip("benchmarks.prompts", exc_type=ImportError)

CHANGED = 3
"""Ordinary prompts of forty that may be changed."""


def test_ordinary_prompts_stay_and_identifiers_go():
    policy = prompts.Settings(upstream="http://127.0.0.1:9/v1").policy
    assert policy == "chat"
    ordinary, changed, marked, left = 0, [], 0, []
    for prompt, sent in prompts.send_prompts(prompts.read_prompts(), policy):
        if prompt.places:
            marked += 1
            left += prompts.list_left_places(prompt, sent, policy)
        else:
            ordinary += 1
            changed += [prompt.id] * (sent != prompt.text)
    assert (ordinary, marked) == (40, 30)
    assert len(changed) <= CHANGED, changed
    assert not left
