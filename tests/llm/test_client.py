import json
import logging
import pickle
import sys
import threading

import pytest
from tests.llm import server as at

from allonym.errors import EndpointError, MissingExtra, PolicyError, UsageError
from allonym.llm import Client, Recorded, Reply, Request, client_for, recording, unlocked
from allonym.llm import client as client_module
from allonym.llm.cache import Cache
from allonym.policy import Policy

pytest.importorskip("httpx", reason="httpx is not installed")

CANARY = "Zaphrandel"
SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": False}
FINE = '{"a": "b"}'


def request(text=f"tell me about {CANARY}"):
    return Request((("system", "be brief"), ("user", text)), SCHEMA, "test")


def settings(server, **more):
    return Policy.load("default").llm | {"url": server.url, "model": "m", "retries": 2, "timeout": 5.0, **more}


@pytest.fixture
def client(server):
    server.then = at.answer(FINE)
    return lambda **more: Client(settings(server, **more))


def test_what_is_sent(server, client):
    reply = client(temperature=0.5, max_tokens=300).ask(request("hello"))
    assert reply == Reply(FINE, True, 100, 20)
    assert server.paths == ["/v1/chat/completions"]
    assert server.bodies == [
        {
            "model": "m",
            "messages": [{"role": "system", "content": "be brief"}, {"role": "user", "content": "hello"}],
            "temperature": 0.5,
            "max_tokens": 300,
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "test", "strict": True, "schema": SCHEMA},
            },
        }
    ]
    assert "authorization" not in server.headers[0]


def test_an_address_may_be_whole_and_a_temperature_left_out(server, client):
    client(url=f"{server.url}/chat/completions", temperature=-1.0, json_mode="none").ask(request("hello"))
    assert server.paths == ["/v1/chat/completions"]
    assert set(server.bodies[0]) == {"model", "messages"}


def test_the_key_comes_from_the_environment_at_each_request(server, client, monkeypatch):
    one = client(key_env="THE_KEY")
    monkeypatch.delenv("THE_KEY", raising=False)
    with pytest.raises(UsageError, match="variable THE_KEY is not set"):
        one.ask(request())
    monkeypatch.setenv("THE_KEY", "sk-first")
    one.ask(request())
    monkeypatch.setenv("THE_KEY", "sk-second")
    one.ask(request())
    assert [h["authorization"] for h in server.headers] == ["Bearer sk-first", "Bearer sk-second"]
    monkeypatch.setenv("THE_KEY", "sk\nX-Other: 1")
    with pytest.raises(UsageError, match="THE_KEY"):
        one.ask(request())


def test_proxies_of_the_environment_are_not_used(server, client, monkeypatch):
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", "")
    assert client().ask(request()).whole


def test_a_redirect_is_not_followed(server, client):
    other = at.Server()
    try:
        server.then = at.status(307, location=f"{other.url}/chat/completions")
        with pytest.raises(EndpointError, match="HTTP 307"):
            client().ask(request())
        assert not other.seen
    finally:
        other.stop()


@pytest.mark.parametrize(
    ("more", "error", "match"),
    [
        ({"url": ""}, UsageError, r"llm\.url is required"),
        ({"url": "localhost:8000"}, PolicyError, r"llm\.url must be an address"),
        ({"url": "ftp://localhost/v1"}, PolicyError, r"llm\.url must be an address"),
        ({"url": "http://host:port/v1"}, PolicyError, r"llm\.url must be an address"),
        ({"url": "http://localhost/v1?key=secret"}, PolicyError, r"llm\.url must be an address"),
        ({"url": "https://user:pass@host/v1"}, PolicyError, "must not hold a user"),
        ({"model": ""}, PolicyError, r"llm\.model is required"),
        ({"timeout": 0.0}, PolicyError, r"llm\.timeout must be over 0"),
    ],
)
def test_settings_that_cannot_work(server, more, error, match):
    with pytest.raises(error, match=match):
        Client(settings(server, **more))


def test_no_address_no_socket(monkeypatch):
    import socket

    monkeypatch.setattr(socket, "socket", lambda *a, **k: pytest.fail("a socket was opened"))
    monkeypatch.setattr(socket, "getaddrinfo", lambda *a, **k: pytest.fail("a name was looked up"))
    with pytest.raises(UsageError, match=r"llm\.url is required: nothing is asked unless the policy names an endpoint"):
        client_for(Policy.load("default").llm)


def test_without_the_package_the_extra_is_named(server, client, monkeypatch):
    monkeypatch.setitem(sys.modules, "httpx", None)
    with pytest.raises(MissingExtra, match=r"\[llm\]"):
        client().ask(request())


# Trying again

PASSING = [
    *(at.status(429), at.status(500), at.status(503), at.status(408), at.dropped, at.hung_up),
    *(
        at.raw(b"<html>"),
        at.raw(b"[]"),
        at.raw(b'{"choices": []}'),
        at.raw(b'{"choices": [{"message": null}]}'),
        at.raw(b"\xff"),
    ),
]


@pytest.mark.parametrize("behaviour", PASSING, ids=range(len(PASSING)))
def test_what_may_pass_is_tried_again(server, client, behaviour):
    server.first.append(behaviour)
    one = client()
    assert one.ask(request()).content == FINE
    assert len(server.seen) == 2
    assert one.usage == {"requests": 1, "kept": 0, "retries": 1, "prompt_tokens": 100, "completion_tokens": 20}


@pytest.mark.parametrize("behaviour", PASSING, ids=range(len(PASSING)))
def test_after_all_tries_it_is_an_error_that_tells_nothing(server, client, behaviour, caplog):
    caplog.set_level(logging.DEBUG)
    server.then = behaviour
    with pytest.raises(EndpointError, match=r"^llm: the endpoint http://127\.0\.0\.1:\d+ .*, asked 3 times$") as caught:
        client().ask(request())
    assert len(server.seen) == 3
    assert all(CANARY.encode() in data for data in server.seen)
    told = caplog.text + repr(caught.value) + str(caught.value.__cause__) + str(caught.value.__context__)
    assert CANARY not in told


def test_waits_grow_and_an_endpoint_may_say_how_long(server, client):
    server.first.extend([at.status(500)] * 4)
    client(retries=4).ask(request())
    assert all(0.5 * 2 ** (n - 1) * 0.5 <= wait <= 0.5 * 2**n for n, wait in enumerate(server.waits))
    server.waits.clear()
    server.first.extend([at.status(429, Retry_After="7"), at.status(503, Retry_After="Wed, 21 Oct 2037 07:28:00 GMT")])
    with pytest.raises(EndpointError, match=r"HTTP 503, asked 2 times"):
        client().ask(request())
    assert server.waits == [7.0]


@pytest.mark.parametrize(
    ("value", "seconds"),
    [("", 0), ("3", 3), ("2.5", 2.5), ("-4", 0), ("soon", 0), ("nan", 0), ("Wed, 21 Oct 2015 07:28:00 GMT", 0)],
)
def test_retry_after(value, seconds):
    assert client_module._parse_retry_after(value) == seconds


@pytest.mark.parametrize("code", [401, 403, 405, 413])
def test_what_will_not_pass_is_not_tried_again(server, client, code):
    server.then = at.status(code, CANARY.encode())
    with pytest.raises(EndpointError, match=f"HTTP {code}") as caught:
        client().ask(request())
    assert len(server.seen) == 1
    assert CANARY not in str(caught.value)


@pytest.mark.parametrize("behaviour", [at.silent, at.dripping], ids=["silent", "dripping"])
def test_an_answer_that_takes_too_long(server, client, behaviour):
    server.then = behaviour
    with pytest.raises(EndpointError, match=r"no (whole )?answer within 0\.2 s, asked once"):
        client(timeout=0.2, retries=0).ask(request())


def test_an_answer_that_is_too_large(server, client, monkeypatch):
    monkeypatch.setattr(client_module, "_LARGEST", 1000)
    server.then = at.answer("x" * 2000)
    with pytest.raises(EndpointError, match="more than 16 MiB"):
        client(retries=0).ask(request())


def test_slow_chunks(server, client):
    server.then = at.chunked
    assert client().ask(request()).content == '{"entities": {}}'


def test_nobody_is_there(server, client):
    one = client(retries=1)
    server.stop()
    server.stop = lambda: None
    with pytest.raises(
        EndpointError, match=r"^llm: the endpoint http://127\.0\.0\.1:\d+ cannot be reached, asked 2 times$"
    ):
        one.ask(request())


def test_an_endpoint_that_knows_no_schema(server, client):
    def picky(handler, body):
        kind = body.get("response_format", {}).get("type", "none")
        at.send(handler, at.said(FINE)) if kind == "none" else at.send(handler, b"{}", 400)

    server.then = picky
    one = client()
    assert one.ask(request()).content == FINE
    assert one.ask(request()).content == FINE
    kinds = [b.get("response_format", {}).get("type", "none") for b in server.bodies]
    assert kinds == ["json_schema", "json_object", "none", "none"]
    assert one.json_mode == "none"
    assert not server.waits


def test_a_request_that_is_refused_in_every_form_does_not_change_the_next(server, client):
    server.first.extend([at.status(400)] * 3)
    one = client()
    with pytest.raises(EndpointError, match="HTTP 400"):
        one.ask(request())
    assert one.json_mode == "schema"


# What an answer may look like


@pytest.mark.parametrize(
    ("behaviour", "reply"),
    [
        (at.answer(FINE, "length"), Reply(FINE, False, 100, 20)),
        (at.answer(FINE, "content_filter"), Reply(FINE, False, 100, 20)),
        (at.answer(None, refusal="I cannot help with that"), Reply("", False, 100, 20)),
        (at.answer(""), Reply("", False, 100, 20)),
        (at.raw(b'{"choices": [{"message": {"content": [{"type": "text", "text": "{}"}]}}]}'), Reply("{}")),
        (
            at.raw(
                b'{"choices": [{"message": {"content": "{}"}, "finish_reason": "eos"}], "usage": {"prompt_tokens": null}}'
            ),
            Reply("{}"),
        ),
    ],
    ids=range(6),
)
def test_replies(server, client, behaviour, reply):
    server.then = behaviour
    assert client().ask(request()) == reply
    assert FINE not in repr(reply)


def test_requests_and_replies_show_nothing():
    assert CANARY not in repr(request())
    assert CANARY not in repr(Reply(CANARY))
    assert pickle.loads(pickle.dumps(Reply("x"))) == Reply("x")


# Many at once


def test_several_at_the_same_time_but_not_too_many(server, client):
    gate = threading.Event()

    def wait(handler, body):
        if server._now >= 3:
            gate.set()
        gate.wait(2)
        at.send(handler, at.said(json.dumps({"n": body["messages"][-1]["content"]})))

    server.then = wait
    replies = client(concurrency=3).ask_all([request(str(n)) for n in range(9)])
    assert [json.loads(r.content)["n"] for r in replies] == [str(n) for n in range(9)]
    assert server.most == 3


def test_threads_of_others_share_the_limit(server, client):
    start = threading.Event()

    def wait(handler, body):
        start.wait(0.05)
        at.send(handler, at.said(FINE))

    server.then = wait
    one = client(concurrency=2)
    threads = [threading.Thread(target=one.ask, args=(request(str(n)),)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(server.seen), server.most) == (8, 2)


def test_one_that_fails_leaves_the_others(server, client):
    def choosy(handler, body):
        at.send(handler, at.said(FINE), 401 if body["messages"][-1]["content"] == "1" else 200)

    server.then = choosy
    replies = client().ask_all([request(str(n)) for n in range(3)])
    assert [isinstance(r, EndpointError) for r in replies] == [False, True, False]


def test_the_pace(server, client, monkeypatch):
    now = [100.0]
    monkeypatch.setattr(client_module, "monotonic", lambda: now[0])
    one = client(requests_per_minute=30)
    for _ in range(3):
        one.ask(request())
    assert server.waits == [2.0, 4.0]


# Cache


def test_a_kept_answer_needs_no_server_and_stands_nowhere_in_plain(server, tmp_path):
    server.then = at.answer(json.dumps({"a": f"{CANARY} again"}))
    said = settings(server, cache=str(tmp_path / "kept"))
    first = client_for(said, b"k" * 32).ask(request())
    client_module._open_client.cache_clear()
    server.then = at.status(500)
    other = client_for({**said, "url": "http://127.0.0.1:9/v1", "json_mode": "none"}, b"k" * 32)
    again = other.ask(request())
    assert (again.content, again.kept, first.kept) == (first.content, True, False)
    assert other.usage == {"requests": 1, "kept": 1, "retries": 0, "prompt_tokens": 0, "completion_tokens": 0}
    paths = [p for p in (tmp_path / "kept").rglob("*") if p.is_file()]
    assert len(paths) == 1
    data = paths[0].read_bytes()
    assert CANARY.encode() not in data + str(paths[0]).encode()
    assert b"tell me" not in data and b"choices" not in data
    assert paths[0].stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("changed", [{"model": "other"}, {"temperature": 1.0}, {"max_tokens": 9}], ids=str)
def test_another_question_is_asked_anew(server, tmp_path, changed):
    server.then = at.answer(FINE)
    said = settings(server, cache=str(tmp_path / "kept"))
    client_for(said, b"k" * 32).ask(request())
    assert not client_for({**said, **changed}, b"k" * 32).ask(request()).kept
    assert not client_for(said, b"K" * 32).ask(request()).kept
    assert not client_for(said, b"k" * 32).ask(request("other")).kept
    assert client_for(said, b"k" * 32).ask(request()).kept


def test_without_a_key_nothing_is_kept(server, tmp_path):
    server.then = at.answer(FINE)
    said = settings(server, cache=str(tmp_path / "kept"))
    client_for(said).ask(request())
    assert not (tmp_path / "kept").exists()
    with unlocked(b"k" * 32):
        client_for(said).ask(request())
    assert (tmp_path / "kept").exists()
    assert client_for(said, b"k" * 32).ask(request()).kept


@pytest.mark.parametrize(
    "behaviour", [at.answer("no JSON"), at.answer(FINE, "length"), at.answer(None, refusal="no")], ids=range(3)
)
def test_what_cannot_be_used_is_not_kept(server, tmp_path, behaviour):
    server.then = behaviour
    one = client_for(settings(server, cache=str(tmp_path / "kept")), b"k" * 32)
    one.ask(request())
    assert not one.ask(request()).kept


def test_a_torn_file_is_not_there(tmp_path):
    cache = Cache(tmp_path, b"k" * 32)
    name = cache.name(b"request")
    assert cache.get(name) is None
    cache.put(name, b"answer")
    assert cache.get(name) == b"answer"
    assert Cache(tmp_path, b"K" * 32).get(name) is None
    path = next(p for p in tmp_path.rglob("*.bin"))
    path.rename(tmp_path / name[:2] / f"{'0' * 62}.bin")
    assert cache.get(f"{name[:2]}{'0' * 62}") is None  # an answer cannot be passed off as that to another request
    cache.put(name, b"answer")
    data = path.read_bytes()
    for torn in (data[:-1], data[:5], b"", data[:-1] + bytes([data[-1] ^ 1])):
        path.write_bytes(torn)
        assert cache.get(name) is None
    cache.put(name, b"answer")
    assert cache.get(name) == b"answer"


WRITER = """
import sys
from allonym.llm.cache import Cache
cache = Cache(sys.argv[1], b"k" * 32)
for n in range(60):
    name = cache.name(str(n % 20).encode())
    found = cache.get(name)
    assert found in (None, b"answer " + str(n % 20).encode() * 500)
    cache.put(name, b"answer " + str(n % 20).encode() * 500)
"""


def test_many_processes_write_the_same_answers(tmp_path):
    import os
    import subprocess

    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    running = [subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path)], env=environment) for _ in range(4)]
    assert [one.wait() for one in running] == [0] * 4
    cache = Cache(tmp_path, b"k" * 32)
    assert all(cache.get(cache.name(str(n).encode())) == b"answer " + str(n).encode() * 500 for n in range(20))
    assert not list(tmp_path.rglob("*.part"))


# Writing down


def test_recording_sends_nothing(server, tmp_path):
    server.then = at.answer(FINE)
    said = settings(server, cache=str(tmp_path / "kept"))
    one = client_for(said, b"k" * 32)
    one.ask(request("first"))
    with recording() as requests:
        assert one.ask(request("first")).kept
        with pytest.raises(Recorded):
            one.ask(request("second"))
        kinds = [type(r) for r in one.ask_all([request("first"), request("second"), request("third")])]
    assert kinds == [Reply, Recorded, Recorded]
    assert [body["messages"][-1]["content"] for body in requests.values()] == ["second", "third"]
    assert list(requests) == [one.name(request("second")), one.name(request("third"))]
    assert len(server.seen) == 1
    with pytest.raises(UsageError, match=r"llm\.cache"):
        Client(settings(server)).name(request())
