"""What a wrong request is told: the field and what it needs, in words for people, without what the request says."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("fastapi")

CASES = [
    ({"text": "Ada", "policy": {"confidence": 1.5}}, "body.policy.confidence", "less than or equal to 1"),
    ({"text": "Ada", "policy": {"confidnce": 0.5}}, "body.policy.*", "no such field; did you mean: confidence"),
    ({"text": "Ada", "policy": {"operators": "mask"}}, "body.policy.operators", "valid dictionary"),
    ({"text": "Ada", "policy": {"operators": {"Ada Brook": 5}}}, "body.policy.operators.*", "valid string"),
    ({"text": "Ada", "policy": 5}, "body.policy", "valid string; body.policy: Input should be a valid dictionary"),
    ({"txt": "Ada Brook"}, "body.*", "no such field; did you mean: text"),
    ({"Ada Brook": 1}, "body.*", "no such field"),
    ({"text": "Ada", "spans": [{"start": 0}]}, "body.spans.0.end", "missing; body.spans.0.label: missing"),
    ({"text": "Ada", **dict.fromkeys("abcde", 1)}, "body.*", "no such field"),
]


@pytest.mark.parametrize(("body", "where", "message"), CASES)
def test_errors_say_where_and_what(body: Any, where: str, message: str, site: Any) -> None:
    answer = site.program("annotator").post("/v1/anonymize", json=body)
    error = answer.json()["error"]
    assert answer.status_code == 422 and error["code"] == "InvalidRequest" and error["where"] == where
    assert message in error["message"]
    assert "Ada" not in answer.text and "constrained" not in answer.text and "(and 0" not in answer.text
