"""A server to test: the application over a temporary folder, accounts of each role, and clients that share its loop."""

from __future__ import annotations

import functools
import os
import re
import secrets
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

PASSWORD = "a password only for the tests"
ROLES = ("annotator", "reviewer", "admin")
ADDRESS = "http://127.0.0.1:8642"


@pytest.fixture(scope="session", autouse=True)
def cheap_passwords() -> Iterator[None]:
    """Passwords are hashed with the least work; ``test_accounts.py`` checks the real cost."""
    try:
        from allonym.server import accounts
    except ImportError:  # the extra server is not installed, and its tests are skipped
        yield
        return
    cheap = functools.partial(accounts.PasswordHasher, time_cost=1, memory_cost=8, parallelism=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(accounts, "PasswordHasher", cheap)
        yield


async def start_nothing() -> None:
    """Stand for the start of the processes."""


class Site:
    """An application that runs, one account of each role, and clients.

    Args:
        folder: its data folder.
        settings: where they differ from ``workers=1, rate=0``.
    """

    def __init__(self, folder: Path, **settings: Any) -> None:
        from allonym.server.app import create_app
        from allonym.server.settings import Settings

        self.folder = folder
        self.settings = Settings(**{"data": folder, "workers": 1, "rate": 0.0, **settings})
        self.app = create_app(self.settings)
        self.services = self.app.state.services
        self.services.kernel.start = start_nothing  # its processes begin with the first text, and many tests have none
        self._clients: list[Any] = []
        self._main = self.client()

    def __enter__(self) -> Site:
        self._main.__enter__()
        try:
            for role in ROLES:
                token, _ = self.services.accounts.make_account_link(role)
                self.services.accounts.make_account(token, role, PASSWORD)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._main.__exit__(None, None, None)
        for one in self._clients:
            one.close()

    def client(self, **headers: str) -> Any:
        """A client without credentials, at an address of its own, so that no limit is shared."""
        from starlette.testclient import TestClient

        address = ".".join(str(b) for b in (10, *secrets.token_bytes(3)))
        made = TestClient(self.app, ADDRESS, headers=headers, client=(address, 50_000), follow_redirects=False)
        made.portal = self._main.portal if self._clients else None
        self._clients.append(made)
        return made

    def page(self, role: str) -> Any:
        """A client in a session of the user of this role, with the token that unsafe requests need."""
        from allonym.server.access import COOKIE

        token = self.services.accounts.sign_in(role, PASSWORD)
        made = self.client(**{"X-CSRF-Token": self.services.accounts.find_caller(token, is_key=False).csrf})
        made.cookies.set(COOKIE, token)
        return made

    def key(self, role: str, *permissions: str) -> str:
        """A new API key of the user of this role; without permissions: with all of theirs."""
        from allonym.server.access import ROLES, Caller

        accounts = self.services.accounts
        user = accounts.find_caller(accounts.sign_in(role, PASSWORD), is_key=False)
        who = Caller(user.id, user.name, user.role, frozenset(ROLES[role]))
        token, _ = accounts.make_api_key(who, secrets.token_hex(8), permissions or ROLES[role], None)
        return str(token)

    def program(self, role: str, *permissions: str) -> Any:
        """A client with an API key; see :meth:`key`."""
        return self.client(Authorization=f"Bearer {self.key(role, *permissions)}")


class Live:
    """A server in a process of its own, as ``allonym serve`` starts it.

    Args:
        folder: for its data and what it says on standard error.
        options: of the command line, such as ``--rate 0``.
        environment: variables besides this process's own.
    """

    def __init__(self, folder: Path, *options: str, **environment: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.data, self.said = folder / "data", folder / "said.txt"
        given = ("serve", "--data", str(self.data), "--port", "0", "--workers", "1", "--rate", "0", *options)
        with self.said.open("ab") as said:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "allonym", *given], stderr=said, stdout=said, env={**os.environ, **environment}
            )
        self.url, self.token = "", ""

    def __enter__(self) -> Live:
        try:
            until = time.monotonic() + 120
            while not self.url or not self._answers():
                if self.process.poll() is not None or time.monotonic() > until:
                    raise AssertionError(f"the server did not start: {self.said.read_text(encoding='utf-8')}")
                for found in re.findall(r"serving at (\S+)", self.said.read_text(encoding="utf-8"))[-1:]:
                    self.url = found
                time.sleep(0.05)
            for link in re.findall(r"setup\?token=(\S+)", self.said.read_text(encoding="utf-8"))[-1:]:
                self._make_admin(link)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
        self.process.wait()

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self.url.rpartition(":")[2])

    def client(self, **headers: str) -> Any:
        """A client with an admin's key; to be closed."""
        import httpx2

        return httpx2.Client(
            base_url=self.url, headers={"Authorization": f"Bearer {self.token}", **headers}, timeout=120
        )

    def _answers(self) -> bool:
        import httpx2

        try:
            return bool(httpx2.get(f"{self.url}/healthz", timeout=5).status_code == 200)
        except httpx2.HTTPError:
            return False

    def _make_admin(self, link: str) -> None:
        import httpx2

        with httpx2.Client(base_url=self.url, timeout=60) as client:
            made = client.post("/v1/setup", json={"token": link, "name": "admin", "password": PASSWORD})
            assert made.status_code == 201, made.text
            session = client.post("/v1/session", json={"name": "admin", "password": PASSWORD}).json()
            asked = {"name": "all", "permissions": session["permissions"]}
            key = client.post("/v1/keys", json=asked, headers={"X-CSRF-Token": session["csrf"]})
            self.token = key.json()["key"]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A server that runs, made once for a module."""
    for needed in ("argon2", "fastapi", "httpx2", "multipart", "prometheus_client"):
        pytest.importorskip(needed)
    with Site(tmp_path_factory.mktemp("site") / "data") as made:
        yield made


@pytest.fixture(scope="module")
def annotator(site: Site) -> Any:
    """A client in a session of the annotator."""
    return site.page("annotator")


@pytest.fixture(scope="module")
def reviewer(site: Site) -> Any:
    """A client in a session of the reviewer."""
    return site.page("reviewer")


@pytest.fixture(scope="module")
def admin(site: Site) -> Any:
    """A client in a session of the admin."""
    return site.page("admin")


@pytest.fixture
def anybody(site: Site) -> Any:
    """A client without credentials."""
    return site.client()


@pytest.fixture(scope="session")
def make_site() -> type[Site]:
    """To make a server with other settings: ``with make_site(folder, rate=5.0) as site:``."""
    return Site


@pytest.fixture(scope="session")
def make_live() -> type[Live]:
    """To start a server as a process: ``with make_live(folder, "--rate", "5") as live:``."""
    pytest.importorskip("uvicorn")
    pytest.importorskip("httpx2")
    return Live
