"""What several tests need: case tables, and Hypothesis settings that keep the suite fast and repeatable."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parent.parent
CASES = ROOT / "tests" / "cases"

settings.register_profile(
    "allonym", max_examples=60, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("allonym")


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository's top folder."""
    return ROOT


@pytest.fixture(scope="session")
def cases() -> Callable[[str], list[dict[str, Any]]]:
    """Reads a table of ``tests/cases`` by its name."""

    def read(name: str) -> list[dict[str, Any]]:
        lines = (CASES / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
        return [json.loads(line) for line in lines if line.strip()]

    return read
