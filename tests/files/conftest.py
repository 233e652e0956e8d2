"""What the tests of files share: a policy that finds addresses and numbers, one that finds nothing, and a run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from allonym.files import RunReport, anonymize_path
from allonym.policy import Policy

POLICY = Policy.load("default").with_(detectors=("rules", "spoken", "lexicon", "speakers"))


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., tuple[bytes, RunReport]]:
    """Writes ``data`` as a file called ``name``, anonymises it, and returns the output and the report."""

    def call(name: str, data: bytes, policy: Policy = POLICY, **options: Any) -> tuple[bytes, RunReport]:
        source, target = tmp_path / name, tmp_path / f"out-{name}"
        source.write_bytes(data)
        report = anonymize_path(source, target, policy, overwrite=True, **options)
        assert source.read_bytes() == data
        return target.read_bytes(), report

    return call


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes the pipeline fail for documents that hold BOOM (on purpose) or KRACH (by an error that quotes them)."""
    from allonym import pipeline
    from allonym.errors import DataError

    real = pipeline.replace_found

    def replace_found(document: Any, *args: Any, **options: Any) -> Any:
        if "BOOM" in document.text:
            raise DataError("cannot be done")
        if "KRACH" in document.text:
            raise KeyError(document.text)
        return real(document, *args, **options)

    monkeypatch.setattr(pipeline, "replace_found", replace_found)


@pytest.fixture
def policy() -> Policy:
    """The default policy without the tagger: what it finds is the same with every model."""
    return POLICY


@pytest.fixture
def nothing() -> Policy:
    """A policy that finds nothing."""
    return Policy.only([])
