"""A real server, Debian's Chromium, and pages that are signed in. Without a browser these tests are skipped."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, Queue
from typing import Any

import pytest

CHROMIUM = os.environ.get("ALLONYM_CHROMIUM", "/usr/bin/chromium")
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
NAME, PASSWORD = "ada", "correct horse battery staple"
SIZES = {
    "1440": {"width": 1440, "height": 900},
    "1024": {"width": 1024, "height": 768},
    "390": {"width": 390, "height": 844},
}
_START = 180  # seconds; on a machine with much else to do


@dataclass
class Server:
    """A server that runs.

    Attributes:
        url: where.
        link: the one-time link for the first account.
        folder: its data.
    """

    url: str
    link: str
    folder: Path
    lines: list[str] = field(default_factory=list)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """``allonym serve`` over an empty folder, on a free port."""
    pytest.importorskip("fastapi", reason="the extra server is not installed")
    folder = tmp_path_factory.mktemp("server")
    environment = {k: v for k, v in os.environ.items() if not k.startswith("ALLONYM_")} | {"NO_COLOR": "1"}
    command = [sys.executable, "-m", "allonym", "serve", "--data", str(folder), "--port", "0", "--workers", "1"]
    process = subprocess.Popen([*command, "--rate", "0"], stderr=subprocess.PIPE, text=True, env=environment)
    said: Queue[str] = Queue()
    lines: list[str] = []
    assert process.stderr is not None
    stderr = process.stderr

    def read() -> None:
        for line in stderr:
            lines.append(line)
            said.put(line)

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    try:
        found: dict[str, str] = {}
        while "serving at" not in found:
            try:
                line = said.get(timeout=_START)
            except Empty:
                raise RuntimeError(f"the server did not start: {''.join(lines)}") from None
            for words in ("serving at", "create the first account"):
                if words in line and (address := re.search(r"http\S+", line)):
                    found[words] = address.group()
        yield Server(found["serving at"], found["create the first account"], folder, lines)
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        reader.join(5)
        stderr.close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium without a window. Ended with the module, since its loop runs in this thread meanwhile."""
    if not Path(CHROMIUM).exists():
        pytest.skip(f"no browser at {CHROMIUM}; ALLONYM_CHROMIUM names another")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    running = playwright.sync_playwright().start()
    try:
        started = running.chromium.launch(executable_path=CHROMIUM, args=list(ARGUMENTS))
        yield started
        started.close()
    finally:
        running.stop()


@pytest.fixture(scope="module")
def signed_in(server: Server, browser: Any) -> Any:
    """What a browser holds after the first account was made through the printed link: an admin's session."""
    context = browser.new_context()
    page = context.new_page()
    page.goto(server.link)
    page.get_by_label("Name").fill(NAME)
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_label("Password, once more").fill(PASSWORD)
    page.get_by_role("button", name="Make my account").click()
    page.get_by_role("textbox", name="Text to protect").wait_for()
    assert "token" not in page.url
    state = context.storage_state()
    context.close()
    return state


@pytest.fixture
def open_page(server: Server, browser: Any, signed_in: Any) -> Iterator[Callable[..., Any]]:
    """Opens signed-in pages: ``open_page(size="390", scheme="dark", path="#/jobs", state=None)``. A script that fails,
    or anything that the content policy refuses, fails the test."""
    contexts: list[Any] = []
    wrong: list[str] = []

    def opened(size: str = "1440", scheme: str = "light", path: str = "", state: Any = signed_in, **more: Any) -> Any:
        context = browser.new_context(viewport=SIZES[size], color_scheme=scheme, storage_state=state, **more)
        context.grant_permissions(["clipboard-read", "clipboard-write"])
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(20_000)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda said: wrong.append(said.text) if "Content Security Policy" in said.text else None)
        page.goto(f"{server.url}/{path}")
        return page

    yield opened
    for context in contexts:
        context.close()
    assert not wrong


@pytest.fixture
def page(open_page: Callable[..., Any]) -> Any:
    """A page signed in as an admin, 1440 pixels wide, where texts are protected."""
    return open_page()


@pytest.fixture(scope="module")
def another(server: Server, browser: Any, signed_in: Any) -> Callable[[str, str], Any]:
    """``another(name, role)``: what a browser holds in which somebody of that role is signed in."""

    def made(name: str, role: str) -> Any:
        admin = browser.new_context(storage_state=signed_in)
        csrf = admin.request.get(f"{server.url}/v1/session").json()["csrf"]
        invited = admin.request.post(
            f"{server.url}/v1/invitations", data={"role": role}, headers={"X-CSRF-Token": csrf}
        )
        assert invited.ok
        token = invited.json()["link"].partition("token=")[2]
        admin.close()
        context = browser.new_context()
        body = {"token": token, "name": name, "password": PASSWORD}
        assert context.request.post(f"{server.url}/v1/setup", data=body).ok
        assert context.request.post(f"{server.url}/v1/session", data={"name": name, "password": PASSWORD}).ok
        state = context.storage_state()
        context.close()
        return state

    return made


@pytest.fixture(scope="session")
def violations() -> Callable[..., list[str]]:
    """``violations(page)``: what axe finds wrong with a page, one line each."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed")

    def found(page: Any, context: Any = None) -> list[str]:
        answer = axe.Axe().run(page, context=context)
        return [
            f"{v['id']}: {node['html'][:160]} {node.get('failureSummary', '')[:200]}"
            for v in answer.response["violations"]
            for node in v["nodes"]
        ]

    return found


@pytest.fixture(scope="session")
def shoot() -> Callable[[Any, str], None]:
    """``shoot(page, name)``: a picture into the folder that ``ALLONYM_SCREENSHOTS`` names, where it does."""
    folder = os.environ.get("ALLONYM_SCREENSHOTS")

    def shot(page: Any, name: str) -> None:
        if folder:
            Path(folder).mkdir(parents=True, exist_ok=True)
            page.screenshot(path=str(Path(folder) / f"{name}.png"))

    return shot
