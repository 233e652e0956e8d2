"""What hostile clients send: refusals that say why, no failure of the server, and nothing of what was sent in them."""

from __future__ import annotations

import json
import logging
import re
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import quote

import pytest
from tests.rows import check_each_row

pytest.importorskip("fastapi")

from prometheus_client import generate_latest
from starlette.websockets import WebSocketDisconnect
from tests.server.routes import OPEN, routes

MARK = "Zanzibarina"
"""Stands in for what must not show up anywhere."""

JSON = {"Content-Type": "application/json"}


# Bodies


@check_each_row(
    "name, body",
    [
        ("deep lists", b"[" * 100_000 + b"]" * 100_000),
        ("deep objects", b'{"text":' * 100_000 + b"1" + b"}" * 100_000),
        ("deep plan", b'{"text": "x", "plan": {"edits":' + b"[" * 100_000 + b"]" * 100_000 + b"}}"),
        ("deep but legal plan", b'{"text": "x", "plan": {"edits":' + b"[" * 400 + b"]" * 400 + b"}}"),
        ("not UTF-8", b'{"text": "\xff\xfe"}'),
        ("lone surrogate", b'{"text": "\\ud800"}'),
        ("lone surrogate as a key", b'{"\\ud800": 1}'),
        ("lone surrogate in a plan", b'{"text": "x", "plan": {"\\ud800": "\\udfff"}}'),
        ("cut short", b'{"text": "Ad'),
        ("nothing", b""),
        ("a number", b"1"),
        ("null", b"null"),
        ("a list", b"[]"),
        ("no JSON", b"<xml/>"),
        ("huge number", b'{"text": "x", "policy": {"confidence": ' + b"9" * 10_000 + b"}}"),
        ("huge exponent", b'{"text": "x", "policy": {"confidence": 1e999999}}'),
        ("NaN", b'{"text": "x", "policy": {"confidence": NaN}}'),
        ("infinity", b'{"text": "x", "spans": [{"start": 0, "end": Infinity, "label": "PERSON"}]}'),
        ("huge offsets", b'{"text": "x", "spans": [{"start": 0, "end": 99999999999999999999999, "label": "PERSON"}]}'),
        ("negative offsets", b'{"text": "x", "spans": [{"start": -1, "end": 1, "label": "PERSON"}]}'),
        ("text of another kind", b'{"text": {"a": 1}}'),
        ("both", b'{"text": "x", "turns": []}'),
        ("unknown field", b'{"text": "x", "surprise": 1}'),
        ("many unknown fields", json.dumps({"text": "x", **{f"f{n}": n for n in range(20_000)}}).encode()),
        ("twice the half of a pair", b'{"text": "\\udc00\\ud800"}'),
        ("a label that is none", b'{"text": "x", "spans": [{"start": 0, "end": 1, "label": "\\u0000"}]}'),
        ("a policy that is a path", b'{"text": "x", "policy": "../../etc/passwd"}'),
        ("a policy that is a file", b'{"text": "x", "policy": "/etc/passwd"}'),
    ],
)
def test_bodies_that_are_wrong(site, admin, name, body):
    for path in ("/v1/detect", "/v1/anonymize", "/v1/plans/apply", "/v1/restore", "/v1/session", "/v1/projects"):
        response = admin.post(path, content=body, headers=JSON)
        assert 400 <= response.status_code < 500, (path, response.status_code)
        error = response.json()["error"]
        assert set(error) == {"code", "message", "where"} and "Traceback" not in response.text
        assert len(response.content) < 2000, (path, len(response.content))


@check_each_row(
    "text",
    [
        "\0",
        "\0" * 1000,
        "\u202e" * 50,
        "\ufffe\uffff",
        "a" * 100_000,
        "\n" * 50_000,
        " ",
        "",
        "\U0001f600" * 1000,
        "́" * 5000,
    ],
)
def test_texts_that_are_odd_are_treated(admin, text):
    detected = admin.post("/v1/detect", json={"text": text})
    assert detected.status_code == 200 and detected.json()["text"] == text
    made = admin.post("/v1/anonymize", json={"text": text, "scope": "odd", "originals": True}).json()
    back = admin.post("/v1/restore", json={"text": made["text"], "plan": made["plan"], "scope": "odd"})
    assert back.status_code == 200 and back.json()["text"] == text


def test_duplicate_keys_mean_the_last_one(admin):
    response = admin.post("/v1/detect", content=b'{"text": "x", "text": "ada@example.com"}', headers=JSON)
    assert response.status_code == 200 and response.json()["text"] == "ada@example.com"


@pytest.mark.parametrize("path", ["/v1/detect", "/v1/anonymize", "/v1/session", "/analyze", "/v1/projects"])
@pytest.mark.parametrize("announced", [True, False])
def test_fifty_megabytes(site, admin, path, announced):
    piece = b"a" * (1 << 20)

    def pieces() -> Iterator[bytes]:
        yield b'{"text": "'
        for _ in range(50):
            yield piece
        yield b'"}'

    body = b"".join(pieces()) if announced else pieces()
    response = admin.post(path, content=body, headers=JSON)
    assert response.status_code == 413
    large = b"".join(pieces())[: 9 << 20]
    stranger = site.client().post(path, content=large if announced else iter((large[: 1 << 20],) * 9), headers=JSON)
    assert stranger.status_code == 401, "who is not known does not get that much read"


def test_a_text_that_is_too_long_for_the_moment(make_site, tmp_path):
    with make_site(tmp_path / "data", max_characters=1000) as site:
        program = site.program("admin")
        for body in ({"text": "a" * 1001}, {"turns": [{"speaker": "A", "text": "b" * 999}]}):
            for path in ("/v1/detect", "/v1/anonymize", "/v1/plans"):
                assert program.post(path, json=body).status_code == 413
        assert program.post("/v1/restore", json={"text": "a" * 1001, "scope": "x"}).status_code == 413
        many = program.post("/v1/detect/batch", json={"items": [{"text": "a" * 1001}, {"text": "a"}]})
        assert [("error" in one) for one in many.json()["results"]] == [True, False]


def test_methods_nobody_knows(site, caplog):
    caplog.set_level(logging.INFO, "allonym.access")
    response = site.client().request(MARK.upper(), "/v1/labels")
    assert response.status_code in (401, 405) and response.json()["error"]
    assert MARK.upper() not in caplog.text + generate_latest(site.services.metrics.registry).decode()


def test_names_that_break_headers(admin):
    for name in ("a\r\nSet-Cookie: x=1", "a%0d%0aSet-Cookie:%20x=1", "a\nb", '"; filename="b'):
        for path in (f"/v1/policies/{name}", f"/v1/jobs/1/results/{name}", f"/v1/users/{name}"):
            response = admin.get(quote(path))
            assert response.status_code in (400, 404, 405, 422) and "x=1" not in str(response.headers)


def test_a_request_chooses_no_path_model_or_endpoint(admin):
    for policy in (
        {"detectors": ["llm"]},
        {"operators": {"PERSON": "llm"}},
        {"detectors": ["/tmp/model"]},
        {"detectors": ["transformers:someone/model"]},
        {"name": "/etc/passwd"},
        {"name": "default.toml"},
        {"dictionary": {"PERSON": {"file": "/etc/passwd"}}},
        {"dictionary": {"PERSON": "/etc/passwd"}},
        {"toml": 'extends = "default"'},
        {"llm": {"endpoint": "http://127.0.0.1:1"}},
        {"models": {"transformers": "/tmp"}},
    ):
        response = admin.post("/v1/detect", json={"text": "Ada Brook", "policy": policy})
        assert response.status_code in (400, 422), policy
    for toml in (
        'extends = "/etc/passwd"',
        'extends = "other.toml"',
        'dictionary = {PERSON = {file = "/etc/passwd"}}',
        'exclusions = {PERSON = {file = "/etc/passwd", column = "x"}}',
        "= nothing",
        "a = " + "[" * 5000,
        'extends = "default"\nthreshold = "x"',
    ):
        assert admin.put("/v1/policies/mine", json={"toml": toml}).status_code == 400, toml[:40]
    assert "mine" not in {one["name"] for one in admin.get("/v1/policies").json()["policies"]}


# Nothing of what was sent is told or kept


NAMED = frozenset(
    ("name", "role", "label", "labels", "kind", "order", "state", "measures", "detectors", "operators", "off", "policy")
)
"""Fields that hold configuration, which errors may show."""


def filled(schema: dict[str, Any], parts: dict[str, Any], field: str = "", depth: int = 0) -> Any:
    """A value of a schema with the mark in every text."""
    if "$ref" in schema:
        schema = parts[schema["$ref"].rpartition("/")[2]]
    for way in ("anyOf", "oneOf", "allOf"):
        if way in schema:
            return filled(schema[way][0], parts, field, depth)
    if "enum" in schema:
        return schema["enum"][0]
    if "const" in schema:
        return schema["const"]
    kind = schema.get("type")
    if kind == "object":
        if depth > 5 or not schema.get("properties"):
            return {MARK: MARK}
        return {name: filled(one, parts, name, depth + 1) for name, one in schema["properties"].items()}
    if kind == "array":
        return [filled(schema.get("items", {}), parts, field, depth + 1)]
    if kind == "string":
        return field if field in NAMED else f"{MARK} {field}"[: schema.get("maxLength", 1000)]
    return {"integer": 1, "number": 0.5, "boolean": True}.get(kind)


def test_the_mark_shows_up_nowhere(make_site, tmp_path, caplog):
    caplog.set_level(logging.DEBUG)
    with make_site(tmp_path / "data") as site:
        admin, stranger = site.page("admin"), site.client()
        described = site.app.openapi()
        parts = described["components"]["schemas"]
        sent = 0
        for path, methods in described["paths"].items():
            target = re.sub(r"\{[^}]*\}", MARK, path)
            for method, operation in methods.items():
                content = operation.get("requestBody", {}).get("content", {})
                bodies = [None]
                if "application/json" in content:
                    whole = filled(content["application/json"]["schema"], parts)
                    bodies = [whole, {MARK: MARK}, [MARK], MARK]
                    if isinstance(whole, dict):
                        bodies += [{**whole, name: {MARK: [MARK]}} for name in whole]
                for body in bodies:
                    for client in (admin, stranger):
                        if path.startswith("/v1/session") and client is admin:
                            continue
                        response = client.request(
                            method.upper(),
                            target,
                            json=body,
                            headers={"X-Note": MARK},
                            params={MARK: MARK, "limit": MARK},
                        )
                        sent += 1
                        assert response.status_code < 500, (method, path, response.status_code)
                        if response.status_code >= 400 and not _names_it(response.json()["error"]):
                            assert MARK not in response.text, (method, path, response.text)
                for text in (f'{{"{MARK}', f"{MARK}"):
                    response = admin.request(method.upper(), target, content=text.encode(), headers=JSON)
                    assert response.status_code < 500 and (
                        response.status_code < 400 or _told_path(response) or MARK not in response.text
                    )
        for name, body in (("text", f"Ada {MARK}"), ("scope", MARK)):
            admin.post("/v1/anonymize", json={"text": "Ada Brook", "scope": "s", name: body})
        assert sent > 100
        assert MARK not in generate_latest(site.services.metrics.registry).decode() and MARK not in repr(site.services)
    logged = [one.getMessage() for one in caplog.records if not one.name.startswith(("httpx", "httpcore"))]
    assert logged and not [line for line in logged if MARK in line]
    stored = {path: path.read_bytes() for path in (tmp_path / "data").rglob("*") if path.is_file()}
    assert any(path.name.startswith("server.sqlite") for path in stored)
    assert not [path.name for path, content in stored.items() if MARK.encode() in content]


def _names_it(error: Any) -> bool:
    """Whether an error is about a name that the request's path said, which is the client's own to see."""
    return isinstance(error, dict) and error["code"] in ("NotFound", "UnknownNameError", "Taken")


def _told_path(response: Any) -> bool:
    return _names_it(response.json()["error"])


# Slow, many, malformed: over real connections


@pytest.fixture(scope="module")
def live(make_live, tmp_path_factory):
    """A server with short patience."""
    options = ("--head-timeout", "1", "--body-timeout", "1", "--connections", "30", "--timeout", "20")
    with make_live(tmp_path_factory.mktemp("live"), *options) as made:
        yield made


@contextmanager
def connected(live: Any) -> Iterator[socket.socket]:
    """A raw connection."""
    with socket.create_connection(("127.0.0.1", live.port), timeout=30) as made:
        yield made


def answer(connection: socket.socket) -> tuple[int, dict[str, Any]]:
    """Status and body of the answer, until the server ends the connection. 503 says when to try again."""
    came = b""
    try:
        while piece := connection.recv(65_536):
            came += piece
    except ConnectionResetError:
        pass
    head, _, content = came.partition(b"\r\n\r\n")
    status = int(head.split()[1])
    assert (b"retry-after: " in head) == (status == 503)
    return status, json.loads(content)


CLOSED = (BrokenPipeError, ConnectionResetError)


def trickle(connection, data):
    """Send byte by byte; raises one of CLOSED where the server does not wait for all of it."""
    for byte in data:
        connection.sendall(bytes((byte,)))
        time.sleep(0.1)


HEAD = b"POST /v1/detect HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"


@pytest.mark.slow
def test_a_head_that_trickles(live):
    with connected(live) as slow, pytest.raises(CLOSED):
        trickle(slow, HEAD + b"X-More: " + b"x" * 500)
    with connected(live) as silent:
        assert answer(silent)[0] == 408
    with connected(live) as second:  # a second request on a connection that was used
        second.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert b"200 OK" in second.recv(65_536)
        second.sendall(b"GET /heal")
        assert answer(second)[0] == 408


@pytest.mark.slow
def test_a_body_that_trickles(live):
    with connected(live) as slow:
        slow.sendall(HEAD + b"Content-Length: 100\r\n\r\n{")
        status, body = answer(slow)
        assert (status, body["error"]["code"]) == (408, "TooSlow")
    with connected(live) as slow:
        slow.sendall(HEAD + b"Content-Length: 100000\r\n\r\n")
        with pytest.raises(CLOSED):  # a byte now and then does not hold a connection
            trickle(slow, b" " * 1000)


@pytest.mark.slow
def test_who_does_not_read_is_not_waited_for(live):
    with live.client() as client, connected(live) as deaf:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        text = json.dumps({"text": "a " * 400_000}).encode()
        deaf.sendall(
            HEAD + f"Authorization: Bearer {live.token}\r\nContent-Length: {len(text)}\r\n\r\n".encode() + text
        )
        time.sleep(3)
        assert client.get("/healthz").status_code == 200


@pytest.mark.slow
def test_more_connections_than_allowed(live):
    opened = [socket.create_connection(("127.0.0.1", live.port), timeout=30) for _ in range(40)]
    try:
        refused = answer(opened[-1])
        assert refused[0] == 503 and refused[1]["error"]["code"] == "TooMany"
    finally:
        for one in opened:
            one.close()
    for _ in range(50):
        with live.client() as client:
            try:
                if client.get("/healthz").status_code == 200:
                    break
            except Exception:  # whatever a client makes of a connection that was refused
                pass
        time.sleep(0.1)
    else:
        raise AssertionError("it does not recover")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"GARBAGE\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\x01\x00", 400),
        (b"GET /" + MARK.encode() + b"\r\n X: \r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: evil.example\r\n\r\n", 400),
        (HEAD + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n{}", 400),
        (HEAD + b"Content-Length: -5\r\n\r\n{}", 400),
        (HEAD + b"Content-Length: 99999999999999999999999\r\n\r\n{}", 400),
        (HEAD + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: gzip\r\n\r\n0\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Large: " + b"a" * 17_000 + b"\r\n\r\n", 431),
        (b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n" + b"A: b\r\n" * 3000 + b"\r\n", 431),
        (b"GET /" + b"a" * 17_000 + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", 431),
        (b"GET / HTTP/1.1\r\n\r\n", 400),
        (b"GET / HTTP/1.0\r\nConnection: close\r\n\r\n", 421),
    ],
)
def test_what_is_no_http(live, request_, status):
    with connected(live) as one:
        with suppress(ConnectionError):
            one.sendall(request_)
        told, body = answer(one)
        assert told == status
        assert set(body["error"]) == {"code", "message", "where"} and MARK not in str(body)


@pytest.mark.slow
def test_two_requests_smuggled_as_one(live):
    body = b"0\r\n\r\nGET /v1/users HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    with connected(live) as one:
        one.sendall(HEAD + f"Content-Length: {len(body)}\r\nTransfer-Encoding: chunked\r\n\r\n".encode() + body)
        came = b""
        with suppress(ConnectionError):
            while more := one.recv(65_536):
                came += more
        assert b" 400 " in came.split(b"\r\n")[0]
        assert came.count(b"HTTP/1.1") == 1


@pytest.mark.slow
def test_sockets_that_are_rough(live):
    sync = pytest.importorskip("websockets.sync.client")
    exceptions = pytest.importorskip("websockets.exceptions")
    url = live.url.replace("http", "ws") + "/v1/stream"
    headers = {"Authorization": f"Bearer {live.token}"}
    opening = json.dumps({"type": "open", "mode": "annotate"})

    def closed(*messages: Any) -> int:
        with sync.connect(url, additional_headers=headers, compression=None) as one:
            try:
                for message in messages:
                    one.send(message)
                for _ in range(20):
                    one.recv(timeout=2)
            except exceptions.ConnectionClosed as error:
                return int(error.rcvd.code) if error.rcvd else 1006
            except TimeoutError:
                return 0
        return -1

    assert closed(opening, "a" * (11 << 20)) in (1009, 1006)
    assert closed(opening, b"\xff\xfe") in (1003, 1006)
    for rough in ("{", "[]", "1", json.dumps({"type": MARK}), '{"type": "text"}', "[" * 100_000):
        assert closed(opening, rough) in (0, 1000, 1003, 1007, 1008, 1009)
        assert closed(rough) in (0, 1000, 1003, 1007, 1008, 1009)
    with sync.connect(url, additional_headers=headers) as good:
        good.send(opening)
        good.send(json.dumps({"type": "text", "version": 1, "text": "Write to ada@example.com"}))
        while (told := json.loads(good.recv(timeout=60)))["type"] != "spans":
            assert told["type"] != "error", told
        assert told["spans"]


@pytest.mark.slow
def test_nothing_of_all_that_was_logged(live):
    with live.client() as client:
        for n in range(3):
            assert client.post("/v1/detect", json={"text": f"{MARK} {n}"}).status_code == 200
            client.post("/v1/detect", json={MARK: n})
            client.get(f"/v1/policies/{MARK}", params={MARK: MARK})
    said = live.said.read_text(encoding="utf-8")
    assert "POST /v1/detect 200" in said and "Traceback" not in said and MARK not in said
    assert "unexpected" not in said


def test_the_list_of_open_routes_is_short(site):
    assert len(OPEN) == 14 and routes(site.app)


def test_a_socket_without_a_message_is_closed(site):
    with pytest.raises(WebSocketDisconnect), site.client().websocket_connect("ws://127.0.0.1:8642/v1/nothing"):
        pass
