"""benchmarks/service_round_trip.py: P5's experiment through the HTTP API, for a few texts."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi")

from benchmarks.rewriting.first import REWRITERS
from benchmarks.round_trip import Case, Job
from benchmarks.service_round_trip import POLISH, compute_figures, run_case

from allonym.document import Span

ENGLISH = "Ada Brook and Tom Stone met at Quill Ltd. in Leeds on 3 May 2021. Mr. Stone wrote to ada@example.com."
GIVEN = "Ada Brook spotkała Toma Stone w Lublinie."
PLACES = [(0, 9, "PERSON"), (19, 29, "PERSON"), (32, 40, "LOCATION")]
TEXTS = [
    Case("en:0", "en", ENGLISH, ()),
    Case("pl:0", "pl", GIVEN, tuple(Span(*place, 1.0, "given") for place in PLACES)),
]


@pytest.mark.parametrize("way", ["plan", "scope"])
@pytest.mark.parametrize("operator", ["tag", "wild_tag", "pseudonym"])
def test_originals_come_back_through_the_api(site: Any, admin: Any, operator: str, way: str) -> None:
    stored = admin.put(f"/v1/policies/{POLISH}", json={"toml": 'extends = "default"\nlanguage = "pl"\n'})
    assert stored.status_code in (200, 201, 204)
    job = Job((operator,), ("none",), 1, False, False, False)
    assert "none" in REWRITERS
    rows = [run_case(case, operator, way, job, site.program("reviewer")) for case in TEXTS]
    got = compute_figures(rows)
    assert [row["class"] for row in rows] == ["right", "right"], rows
    assert got["right"] == got["as_p5"] == got["complete"] == 1.0 and got["mentions"] >= 8


@pytest.mark.slow
def test_the_example_of_the_how_to(make_live: Any, tmp_path: Any, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (root / "docs" / "how-to" / "http-api.md").read_text(encoding="utf-8")
    (block,) = (one for one in re.findall("```python\n(.*?)```", text, re.DOTALL) if "ALLONYM_URL" in one)
    with make_live(tmp_path) as live:
        monkeypatch.setenv("ALLONYM_URL", live.url)
        monkeypatch.setenv("ALLONYM_KEY", live.token)
        exec(compile(block, "http-api.md", "exec"), {})
