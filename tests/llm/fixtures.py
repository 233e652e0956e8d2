"""Fixtures for all tests that talk to the server of :mod:`tests.llm.server`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.llm.server import Server

from allonym.llm import client as client_module
from allonym.policy import Policy

KEY = b"a key only for the tests, 32 byte"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """A server that answers well until it is told otherwise; the client's waits are taken down, not waited."""
    made: list[client_module.Client] = []
    real = client_module.Client.__init__

    def watched(self: client_module.Client, *args: object, **more: object) -> None:
        real(self, *args, **more)  # type: ignore[arg-type]
        made.append(self)

    monkeypatch.setattr(client_module.Client, "__init__", watched)
    client_module._open_client.cache_clear()
    running = Server()
    running.waits = []  # type: ignore[attr-defined]
    monkeypatch.setattr(client_module, "sleep", running.waits.append)  # type: ignore[attr-defined]
    yield running
    client_module._open_client.cache_clear()
    for one in made:
        one.close()
    running.stop()


@pytest.fixture
def asking(tmp_path: Path, server: Server) -> Callable[..., Policy]:
    """A policy whose names go to the server; ``lines`` belong to ``[llm]``, ``rest`` follows."""

    def make(*lines: str, rest: str = "", detectors: str = '["lexicon"]', options: str = "") -> Policy:
        text = f"""
            extends = "default"
            name = "asking"
            [detect]
            detectors = {detectors}
            [default]
            operator = "llm"
            {options}
            [llm]
            url = "{server.url}"
            model = "test-model"
            retries = 2
            timeout = 5
        """
        path = tmp_path / "asking.toml"
        path.write_text(f"{text}\n" + "\n".join(lines) + f"\n{rest}\n", encoding="utf-8")
        return Policy.load(path)

    return make
