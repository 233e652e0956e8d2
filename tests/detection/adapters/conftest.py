"""Policies for adapters, written to files as users write them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from allonym.policy import Policy


@pytest.fixture
def policy(tmp_path: Path) -> Callable[..., Policy]:
    """A policy that runs one detector, with the lines of its table; ``more`` stands before all tables."""

    def make(detector: str, *lines: str, more: str = "", rest: str = "") -> Policy:
        text = f'{more}\n[detect]\ndetectors = ["{detector}"]\n[detect.{detector}]\n' + "\n".join(lines) + f"\n{rest}\n"
        path = tmp_path / f"{detector}.toml"
        path.write_text(text, encoding="utf-8")
        return Policy.load(path)

    return make
