"""A server for one user without an account: only the link of its start lets in."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi")

from starlette.websockets import WebSocketDisconnect
from tests.server.conftest import ADDRESS, PASSWORD

from allonym.server.access import COOKIE

STREAM = f"{ADDRESS.replace('http', 'ws')}/v1/stream"


@pytest.fixture(scope="module")
def local(make_site: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with make_site(tmp_path_factory.mktemp("local") / "data", local=True) as site:
        yield site


@pytest.fixture(scope="module")
def link(local: Any) -> str:
    return str(local.services.accounts.make_local_link())


def test_the_link_signs_in_as_often_as_it_is_opened(local: Any, link: str) -> None:
    for _ in range(2):
        client = local.client(Origin=ADDRESS)
        response = client.post("/v1/session/link", json={"token": link})
        session = response.json()
        assert (response.status_code, session["name"], session["role"]) == (200, "local", "admin")
        cookie = response.headers["set-cookie"].lower()
        assert "httponly" in cookie and "samesite=strict" in cookie
        assert client.get("/v1/session").json()["csrf"] == session["csrf"]
    assert local.client().get("/v1/session/ways").json()["local"] is True


@pytest.mark.parametrize("token", ["", "x", "\ud800".encode("utf-8", "surrogatepass").decode("latin-1"), "é" * 43])
def test_another_link_does_not(local: Any, link: str, token: str) -> None:
    response = local.client().post("/v1/session/link", json={"token": token})
    assert response.status_code == 403 and "set-cookie" not in response.headers
    assert local.client().post("/v1/session/link", json={"token": link[:-1]}).status_code == 403


def test_the_link_of_an_earlier_start_does_not(local: Any, make_site: Any, tmp_path: Path) -> None:
    with make_site(tmp_path / "data", local=True) as site:
        before = site.services.accounts.make_local_link()
        after = site.services.accounts.make_local_link()
        assert site.client().post("/v1/session/link", json={"token": before}).status_code == 403
        assert site.client().post("/v1/session/link", json={"token": after}).status_code == 200


def test_a_server_with_accounts_has_no_link(site: Any) -> None:
    assert site.client().get("/v1/session/ways").json()["local"] is False
    for token in ("", "x" * 43):
        assert site.client().post("/v1/session/link", json={"token": token}).status_code == 403


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "127.0.0.2"])
def test_a_name_that_was_made_to_lead_here_gets_nothing(local: Any, link: str, host: str) -> None:
    for client in (local.client(Host=host), local.client(Host=host, Origin=f"http://{host}")):
        assert client.get("/").status_code == 421
        response = client.post("/v1/session/link", json={"token": link})
        assert response.status_code == 421 and "set-cookie" not in response.headers


@pytest.mark.parametrize("origin", ["https://evil.example", "http://127.0.0.1:9", "http://localhost:8642", "null"])
def test_pages_of_others_get_nothing_even_with_the_cookie(local: Any, link: str, origin: str) -> None:
    """Pages of another port of this machine are of the same site for the cookie, not of the same origin."""
    page = local.client()
    session = page.post("/v1/session/link", json={"token": link}).json()
    headers = {"Origin": origin, "X-CSRF-Token": session["csrf"]}
    assert page.post("/v1/detect", json={"text": "x"}, headers=headers).status_code == 403
    assert page.post("/v1/detect", json={"text": "x"}).status_code == 403, "without the token of the session"
    with pytest.raises(WebSocketDisconnect) as closed:
        _open_stream(page, origin)
    assert closed.value is not None
    allowed = page.get("/v1/session", headers={"Origin": origin}).headers
    assert "access-control-allow-origin" not in allowed and allowed["cross-origin-resource-policy"] == "same-origin"
    form = page.post("/v1/session/link", content=json.dumps({"token": link}), headers={"Content-Type": "text/plain"})
    assert form.status_code == 422, "what a form of another page can send"


def _open_stream(page: Any, origin: str) -> None:
    try:
        with page.websocket_connect(STREAM, headers={"Origin": origin}):
            pass
    except WebSocketDisconnect:
        raise
    except Exception as error:  # a refusal before the handshake
        raise WebSocketDisconnect(1008) from error


def test_the_local_user_counts_for_nothing_once_there_are_accounts(make_site: Any, tmp_path: Path) -> None:
    with make_site(tmp_path / "data", local=True) as site:
        site.services.accounts.make_local_link()
        assert not site.services.accounts.has_no_users()  # those of the fixture
        admin = site.page("admin")
        assert admin.patch("/v1/users/admin", json={"role": "annotator"}).status_code == 409
        assert admin.post("/v1/session", json={"name": "local", "password": PASSWORD}).status_code == 401
        for user in ("annotator", "reviewer"):
            assert admin.delete(f"/v1/users/{user}").status_code == 204


def test_local_sessions_end_with_a_start_that_is_not_local(make_site: Any, tmp_path: Path) -> None:
    with make_site(tmp_path / "data", local=True) as site:
        token = site.services.accounts.sign_in_by_local_link(site.services.accounts.make_local_link())
        assert site.services.accounts.find_caller(token, is_key=False).name == "local"
    for is_local in (True, False):
        with open_services_of(tmp_path / "data", local=is_local) as accounts:
            assert (accounts.find_caller(token, is_key=False) is not None) is is_local


@contextmanager
def open_services_of(folder: Path, **settings: Any) -> Iterator[Any]:
    """Yield the accounts of a server that starts once more on a data folder."""
    from allonym.server.services import open_services
    from allonym.server.settings import Settings

    services = open_services(Settings(data=folder, workers=1, **settings))
    try:
        yield services.accounts
    finally:
        services.vault.close()
        services.database.close()


@pytest.mark.slow
def test_a_start_prints_the_link(make_live: Any, tmp_path: Path) -> None:
    import httpx2

    with make_live(tmp_path, "--local") as live:
        printed = live.said.read_text(encoding="utf-8")
        assert "setup?token" not in printed
        token = re.findall(r"signin\?token=(\S+)", printed)[0]
        with httpx2.Client(base_url=live.url, timeout=60) as client:
            assert client.get("/v1/session").status_code == 401
            assert client.post("/v1/session/link", json={"token": token}).status_code == 200
            assert client.cookies[COOKIE] and client.get("/v1/session").json()["name"] == "local"
        assert token not in live.said.read_text(encoding="utf-8").replace(printed, "")
