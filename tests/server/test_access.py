"""Caller gets in: over the table of routes, nobody gets anything without the permission that a route needs."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi")

from starlette.testclient import WebSocketDenialResponse
from starlette.websockets import WebSocketDisconnect
from tests.server.conftest import ADDRESS, PASSWORD
from tests.server.routes import OPEN, Route, routes

from allonym.server.access import COOKIE, PERMISSIONS, ROLES

STREAM = f"{ADDRESS.replace('http', 'ws')}/v1/stream"
UNSAFE = ("POST", "PUT", "PATCH", "DELETE")


@pytest.fixture(scope="module")
def table(site) -> list[Route]:
    """All routes that need an account."""
    return routes(site.app)


def http(table: list[Route]) -> list[Route]:
    return [one for one in table if one.method != "WEBSOCKET"]


def call(client: Any, route: Route, **more: Any) -> Any:
    """A request of the right shape, as far as one can be made without knowing the route."""
    body = {} if route.method in ("GET", "DELETE") or "jobs" in route.path or "files" in route.path else {"json": {}}
    return client.request(route.method, route.target, **body, **more)


def code(response: Any) -> str:
    """The code of an error, whose shape is looked at on the way. Presidio's routes have Presidio's shape."""
    error = response.json()["error"]
    if isinstance(error, str):
        return error
    assert set(error) == {"code", "message", "where"} and error["code"] and error["message"]
    return str(error["code"])


def test_the_table_is_complete(site, table):
    described = {(method.upper(), path) for path, methods in site.app.openapi()["paths"].items() for method in methods}
    known = {(one.method, one.path) for one in http(table)} | OPEN
    assert described <= known and len(table) > 30
    assert known - described <= {("GET", "/"), ("GET", "/study/{token}"), ("GET", "/v1/openapi.json")}
    assert all(set(one.permissions or ()) <= set(PERMISSIONS) for one in table)


def test_nobody_gets_anything(site, table):
    wrong = {}
    for route in http(table):
        response = call(site.client(), route)
        if response.status_code != 401 or not code(response):
            wrong[str(route)] = response.status_code
        elif response.headers["www-authenticate"] != 'Bearer realm="allonym"':
            wrong[str(route)] = "no challenge"
    assert not wrong


@pytest.mark.parametrize("role", ROLES)
def test_a_role_does_not_do_what_it_may_not(site, table, role):
    page = site.page(role)
    wrong, refused = {}, 0
    for route in http(table):
        if set(route.permissions or ()) <= set(ROLES[role]) or route.path == "/v1/session":
            continue
        response = call(page, route)
        refused += response.status_code == 403
        if response.status_code != 403:
            wrong[str(route)] = response.status_code
    assert not wrong
    assert refused >= {"annotator": 8, "reviewer": 4, "admin": 0}[role]


@pytest.mark.parametrize("permission", PERMISSIONS)
def test_a_key_does_not_do_what_it_was_not_given(site, table, permission):
    program = site.program("admin", permission)
    wrong = {}
    for route in http(table):
        if set(route.permissions or ()) <= {permission}:
            continue
        response = call(program, route)
        if response.status_code != 403:
            wrong[str(route)] = response.status_code
    assert not wrong
    assert program.get("/v1/session").json()["permissions"] == [permission]


def test_a_key_has_no_more_than_its_owner(site, admin):
    token = site.key("reviewer", "restore", "detect")
    program = site.client(Authorization=f"Bearer {token}")
    assert program.post("/v1/restore", json={"text": "x", "scope": "none"}).status_code == 404  # no such scope
    assert admin.patch("/v1/users/reviewer", json={"role": "annotator"}).status_code == 200
    try:
        response = program.post("/v1/restore", json={"text": "x", "scope": "none"})
        assert (response.status_code, code(response)) == (403, "NotAllowed")
        assert program.post("/v1/detect", json={"text": "x"}).status_code == 200
    finally:
        admin.patch("/v1/users/reviewer", json={"role": "reviewer"})
    leaked = site.client(Authorization=f"Bearer {site.key('admin')}")
    response = leaked.post("/v1/keys", json={"name": "for ever", "permissions": ["detect"]})
    assert (response.status_code, code(response)) == (403, "NotAllowed")
    weak = site.client(Authorization=f"Bearer {site.key('annotator', 'detect')}")
    others = weak.get("/v1/keys").json()["keys"][0]["name"]
    assert weak.delete(f"/v1/keys/{others}").status_code in (403, 204)
    annotator = site.page("annotator")
    response = annotator.post("/v1/keys", json={"name": "more", "permissions": ["admin"]})
    assert (response.status_code, code(response)) == (403, "NotAllowed")


def test_a_session_without_its_token_changes_nothing(site, table):
    page = site.page("admin")
    token = page.headers.pop("X-CSRF-Token")
    wrong = {}
    for header in ({}, {"X-CSRF-Token": ""}, {"X-CSRF-Token": token[:-1]}, {"X-CSRF-Token": b"\xe9" * 9}):
        for route in http(table):
            if route.method in UNSAFE:
                response = call(page, route, headers=header)
                if response.status_code != 403:
                    wrong[str(route)] = response.status_code
    assert not wrong
    assert page.post("/v1/detect", json={"text": "x"}, headers={"X-CSRF-Token": token}).status_code == 200


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "null", "http://127.0.0.1:1", "http://127.0.0.1.evil.example", "http://["]
)
def test_pages_of_others_change_nothing(site, origin):
    page = site.page("admin")
    response = page.post("/v1/detect", json={"text": "x"}, headers={"Origin": origin})
    assert (response.status_code, code(response)) == (403, "WrongOrigin")
    assert page.post("/v1/detect", json={"text": "x"}, headers={"Origin": ADDRESS}).status_code == 200
    signing_in = site.client().post(
        "/v1/session", json={"name": "admin", "password": PASSWORD}, headers={"Origin": origin}
    )
    assert signing_in.status_code == 403 and not signing_in.headers.get("set-cookie")


def test_a_form_of_another_page_is_no_request(site):
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"):
        response = site.client().post(
            "/v1/session", content=f'{{"name": "admin", "password": "{PASSWORD}"}}', headers={"Content-Type": kind}
        )
        assert response.status_code == 422 and not response.headers.get("set-cookie")


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "", "evil.example:8642", "127.0.0.2"])
def test_the_server_answers_to_its_names_alone(site, host):
    """A page whose name was made to lead here (DNS rebinding) still says its own name."""
    for path in ("/", "/healthz", "/v1/session", "/static/index.html"):
        response = site.client().get(path, headers={"Host": host})
        assert (response.status_code, code(response)) == (421, "WrongHost")
    assert site.client().get("/healthz", headers={"Host": "LOCALHOST:1"}).status_code == 200
    assert site.client().get("/healthz", headers={"Host": "[::1]:8642"}).status_code == 200


def test_ipv6_addresses_are_names_as_others(make_site, tmp_path):
    names = {"host": "FD00::0:5", "hosts": ("[2001:DB8::1]", "2001:db8::2"), "public_url": "http://[2001:db8::3]:80"}
    with make_site(tmp_path / "data", insecure=True, **names) as site:
        for host in ("[fd00::5]:8642", "[FD00::0:5]", "[2001:db8::1]", "[2001:db8::2]:1", "[2001:db8::3]", "[::1]"):
            assert site.client().get("/healthz", headers={"Host": host}).status_code == 200, host
        for host in ("[fd00::6]:8642", "fd00::5", "[", "[]", "[fd00::5", "[evil.example]", ""):
            assert site.client().get("/healthz", headers={"Host": host}).status_code == 421, host


def test_the_cookie(site, make_site, tmp_path):
    signed_in = site.client().post("/v1/session", json={"name": "admin", "password": PASSWORD})
    cookie = signed_in.headers["set-cookie"].lower()
    assert signed_in.status_code == 200 and signed_in.json()["csrf"]
    assert re.match(COOKIE + r"=[\w-]{43};", cookie) and "httponly" in cookie and "samesite=strict" in cookie
    assert "path=/" in cookie and "max-age=" in cookie and "secure" not in cookie and "domain" not in cookie
    with make_site(tmp_path / "data", public_url="https://names.example") as secure:
        told = secure.client().post(
            "/v1/session", json={"name": "admin", "password": PASSWORD}, headers={"Host": "names.example"}
        )
        assert "secure" in told.headers["set-cookie"].lower()
        assert "max-age" in told.headers["strict-transport-security"]


def test_signing_out_ends_the_session(site):
    page = site.page("annotator")
    assert page.get("/v1/session").status_code == 200
    token = page.cookies[COOKIE]
    gone = page.delete("/v1/session")
    assert gone.status_code == 204 and f'{COOKIE}=""' in gone.headers["set-cookie"]
    page.cookies.set(COOKIE, token)
    assert page.get("/v1/session").status_code == 401


def test_whoever_is_shut_out_is_out_at_once(site, admin):
    name = "leaving"
    token, _ = site.services.accounts.make_account_link("annotator")
    assert site.client().post("/v1/setup", json={"token": token, "name": name, "password": PASSWORD}).status_code == 201
    again = site.client().post("/v1/setup", json={"token": token, "name": "other", "password": PASSWORD})
    assert (again.status_code, code(again)) == (403, "WrongLink")

    def enter() -> tuple[Any, Any]:
        page = site.client()
        csrf = page.post("/v1/session", json={"name": name, "password": PASSWORD}).json()["csrf"]
        made = page.post(
            "/v1/keys", json={"name": str(time.time()), "permissions": ["detect"]}, headers={"X-CSRF-Token": csrf}
        )
        program = site.client(Authorization=f"Bearer {made.json()['key']}")
        assert (page.get("/v1/labels").status_code, program.get("/v1/labels").status_code) == (200, 200)
        return page, program

    page, program = enter()
    assert admin.patch(f"/v1/users/{name}", json={"active": False}).status_code == 200
    assert (page.get("/v1/labels").status_code, program.get("/v1/labels").status_code) == (401, 401)
    assert site.client().post("/v1/session", json={"name": name, "password": PASSWORD}).status_code == 401
    assert admin.patch(f"/v1/users/{name}", json={"active": True}).status_code == 200
    page, program = enter()
    key = program.get("/v1/keys").json()["keys"][-1]["name"]
    assert admin.delete(f"/v1/keys/{key}", params={"owner": name}).status_code == 204
    assert (page.get("/v1/labels").status_code, program.get("/v1/labels").status_code) == (200, 401)
    page, program = enter()
    assert admin.delete(f"/v1/users/{name}").status_code == 204
    assert (page.get("/v1/labels").status_code, program.get("/v1/labels").status_code) == (401, 401)


def test_a_session_is_no_key_and_a_key_no_session(site):
    page, key = site.page("admin"), site.key("admin")
    assert page.get("/v1/users").status_code == 200
    assert site.client(Authorization=f"Bearer {page.cookies[COOKIE]}").get("/v1/users").status_code == 401
    assert site.client(Authorization=f"Bearer {key}").get("/v1/users").status_code == 200
    other = site.client(**{"X-CSRF-Token": ""})
    other.cookies.set(COOKIE, key)
    assert other.get("/v1/users").status_code == 401
    assert other.post("/v1/invitations", json={"role": "admin"}).status_code == 401


@pytest.mark.parametrize("way", ["password", "setup", "key", "session", "study", "socket"])
def test_wrong_tries_are_counted(site, way):
    client = site.client()

    def trial() -> int:
        if way == "password":
            return client.post("/v1/session", json={"name": "nobody", "password": "x" * 12}).status_code
        if way == "setup":
            return client.post("/v1/setup", json={"token": "x", "name": "n", "password": PASSWORD}).status_code
        if way == "key":
            return client.get("/v1/labels", headers={"Authorization": "Bearer alk_wrong"}).status_code
        if way == "session":
            return client.get("/v1/labels", headers={"Cookie": f"{COOKIE}=wrong"}).status_code
        if way == "socket":
            try:
                with client.websocket_connect(STREAM, headers={"Authorization": "Bearer alk_wrong"}):
                    return 200
            except WebSocketDenialResponse as error:
                return error.status_code
            except WebSocketDisconnect:
                return 429
        return client.get("/v1/study/wrong").status_code

    told = [trial() for _ in range(30)]
    assert set(told[:20]) <= {401, 403, 404} and told[-1] == 429
    refused = client.get("/v1/labels", headers={"Authorization": "Bearer alk_other"})
    assert refused.status_code == 429 and refused.headers["retry-after"] and code(refused) == "TooMany"
    assert client.get("/healthz").status_code == 200


def test_right_ones_are_not(site):
    client = site.client()
    key = {"Authorization": f"Bearer {site.key('annotator')}"}
    for _ in range(25):
        assert client.get("/v1/labels", headers=key).status_code == 200
    for _ in range(25):
        client.get("/v1/labels", headers={"Authorization": "Bearer alk_wrong"})
    assert client.get("/v1/labels", headers=key).status_code == 200  # known, so others' tries do not shut it out


def test_the_rate_is_each_clients_own(make_site, tmp_path):
    with make_site(tmp_path / "data", rate=2.0) as site:
        one, other = site.program("annotator"), site.program("admin")
        told = [one.get("/v1/labels") for _ in range(12)]
        assert {r.status_code for r in told} == {200, 429} and other.get("/v1/labels").status_code == 200
        refused = next(r for r in told if r.status_code == 429)
        assert code(refused) == "TooMany" and refused.headers["retry-after"] == "1"
        stranger = site.client()
        told = [stranger.get("/v1/labels", headers={"Authorization": f"Bearer alk_{n}"}).status_code for n in range(12)]
        assert 429 in told  # another wrong key each time gives no fresh allowance


def test_one_shape_for_every_error(site, table, admin):
    """404, 405, 413, 415, 422."""
    client = site.client()
    for path in ("/nothing", "/v1/nothing", "/static/nothing.js", "/v1", "/v2/detect"):
        response = client.get(path)
        assert (response.status_code, code(response)) == (404, "NotFound"), path
    for route in http(table):
        response = admin.request("TRACE" if route.method != "TRACE" else "GET", route.target)
        assert response.status_code == 405 and code(response), route
        if route.method in ("POST", "PUT", "PATCH") and not route.path.startswith(("/v1/jobs", "/v1/files")):
            large = admin.request(route.method, route.target, headers={"Content-Length": str(11 << 20)})
            assert (large.status_code, code(large)) == (413, "TooLarge"), route
            packed = admin.request(
                route.method, route.target, content=b"\x1f\x8b", headers={"Content-Encoding": "gzip"}
            )
            assert packed.status_code == 415, route
            wrong = admin.request(
                route.method, route.target, content=b"[", headers={"Content-Type": "application/json"}
            )
            assert wrong.status_code in (400, 422, 404) and code(wrong), (route, wrong.status_code)


def test_headers_that_protect_pages(site, admin):
    for response in (
        site.client().get("/"),
        site.client().get("/nothing"),
        site.client().get("/v1/session"),
        admin.get("/v1/labels"),
        site.client().get("/healthz", headers={"Host": "evil.example"}),
    ):
        told = response.headers
        assert "default-src 'none'" in told["content-security-policy"]
        assert "unsafe" not in told["content-security-policy"]
        assert told["x-content-type-options"] == "nosniff" and told["referrer-policy"] == "no-referrer"
        assert told["cache-control"] in ("no-store", "no-cache")
        assert "server" not in told and "access-control-allow-origin" not in told


def test_no_other_origin_reads_unless_named(make_site, tmp_path):
    ask = {"Origin": "https://app.example", "Access-Control-Request-Method": "POST"}
    with make_site(tmp_path / "a") as site:
        assert "access-control-allow-origin" not in site.client().options("/v1/detect", headers=ask).headers
    with make_site(tmp_path / "b", cors_origins=("https://app.example",)) as site:
        told = site.client().options("/v1/detect", headers=ask).headers
        assert told["access-control-allow-origin"] == "https://app.example"
        assert "access-control-allow-credentials" not in told
        other = site.client().options("/v1/detect", headers={**ask, "Origin": "https://evil.example"}).headers
        assert "access-control-allow-origin" not in other
        program = site.program("annotator")
        used = program.post("/v1/detect", json={"text": "x"}, headers={"Origin": "https://app.example"})
        assert used.status_code == 200


def test_sockets_need_what_routes_need(site, table):
    paths = [one.target for one in table if one.method == "WEBSOCKET"]
    assert paths == ["/v1/stream"]
    page = site.page("annotator")
    cookie = {"Cookie": f"{COOKIE}={page.cookies[COOKIE]}"}
    refused = [
        {},
        {"Origin": ADDRESS},
        {"Origin": ADDRESS, "Cookie": f"{COOKIE}=wrong"},
        {"Origin": "https://evil.example", **cookie},
        {"Origin": "null", **cookie},
        cookie,
        {"Host": "evil.example", "Origin": "https://evil.example", **cookie},
        {"Authorization": "Bearer alk_wrong"},
        {"Authorization": f"Bearer {site.key('admin', 'restore')}"},
    ]
    for headers in refused:
        assert not opens(site, headers), headers
    assert opens(site, {"Origin": ADDRESS, **cookie})
    assert opens(site, {"Authorization": f"Bearer {site.key('annotator', 'detect', 'anonymize')}"})


def opens(site: Any, headers: dict[str, str]) -> bool:
    """Whether a WebSocket can be opened and used."""
    try:
        with site.client().websocket_connect(STREAM, headers=headers) as socket:
            socket.send_json({"type": "open", "mode": "annotate"})
            socket.send_json({"type": "text", "version": 1, "text": "Write to ada@example.com"})
            return bool(socket.receive_json()["type"] == "spans")
    except WebSocketDisconnect:
        return False


def test_files_of_the_pages_hold_no_data_and_no_path_leads_out(site):
    client = site.client()
    secret = Path(__file__).read_text(encoding="utf-8")[:40]
    for path in (
        "/static/../app.py",
        "/static/..%2fapp.py",
        "/static/%2e%2e/app.py",
        "/static/..%5capp.py",
        "/static//etc/passwd",
        "/static/%2fetc/passwd",
        "/static/js/../../app.py",
        "/static/....//app.py",
        "/static/index.html%00.js",
        f"/static/{'../' * 20}etc/passwd",
    ):
        response = client.get(path)
        assert response.status_code in (400, 404), path
        assert secret not in response.text and "root:" not in response.text and "import" not in response.text
