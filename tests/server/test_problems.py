"""What a wrong request is told: the field and what it needs, in words for people, without what the request says."""

from __future__ import annotations

from typing import Any

import pytest
from tests.rows import check_each_row

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


@check_each_row("body, where, message", CASES)
def test_errors_say_where_and_what(body: Any, where: str, message: str, site: Any) -> None:
    answer = site.program("annotator").post("/v1/anonymize", json=body)
    error = answer.json()["error"]
    assert answer.status_code == 422 and error["code"] == "InvalidRequest" and error["where"] == where
    assert message in error["message"]
    assert "Ada" not in answer.text and "constrained" not in answer.text and "(and 0" not in answer.text


def test_a_request_with_very_many_errors_costs_little(site: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from allonym.server import problems

    compared: list[str] = []
    monkeypatch.setattr(problems, "get_close_matches", lambda name, *_, **__: compared.append(name) or [])
    program = site.program("annotator")
    unknown = program.post("/v1/anonymize", json={"text": "Ada", **{f"f{n}": n for n in range(20_000)}})
    assert unknown.status_code == 422 and len(compared) <= 100
    wrong = program.post(
        "/v1/anonymize", json={"text": "Ada", "spans": [{"start": n, "end": "x"} for n in range(2000)]}
    )
    assert wrong.status_code == 422 and "(and at least 97 more)" in wrong.json()["error"]["message"]
