"""A server for chat completions that misbehaves on demand, over real sockets."""

from __future__ import annotations

import json
import re
import threading
import time
from collections import deque
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Behaviour = Callable[[BaseHTTPRequestHandler, dict[str, Any]], None]

PEOPLE = "Wilma Tarn,Otto Fenwick,Greta Soames,Ivo Lindqvist,Hedda Marsh,Jonas Quist,Elsa Rook,Piet Vane".split(",")
PLACES = "Norhaven,Eldmouth,Castrow,Vintgar,Ostbury,Perrin,Sallow,Dunmere".split(",")
COMPANIES = "Tarnfield Foods,Quarrystone,Bluewater Looms,Oakhurst Tools,Redfern,Larkspur".split(",")
LISTED = re.compile(r"^([0-9A-F]{8}|E[0-9]+): ([A-Z_]+)", re.MULTILINE)


def said(content: str | None, finish: str = "stop", **more: object) -> bytes:
    """The body of an answer."""
    message = {"role": "assistant", "content": content, **more}
    usage = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
    return json.dumps({"choices": [{"index": 0, "message": message, "finish_reason": finish}], "usage": usage}).encode()


def send(handler: BaseHTTPRequestHandler, data: bytes, status: int = 200, **headers: str) -> None:
    handler.send_response(status)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Length", str(len(data)))
    for name, value in headers.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()
    handler.wfile.write(data)


def asked(body: dict[str, Any]) -> dict[str, str]:
    """The codes that a request asks for, to their labels."""
    return dict(LISTED.findall(body["messages"][-1]["content"].rpartition("Give a value to each")[2]))


def values(body: dict[str, Any], start: int = 0) -> dict[str, str]:
    """A value for each code, the same whenever the same code is asked for at the same place."""
    pools = {"PERSON": PEOPLE, "LOCATION": PLACES, "CITY": PLACES, "COUNTRY": PLACES}
    out: dict[str, str] = {}
    seen: dict[int, int] = {}
    for code, label in asked(body).items():
        pool = pools.get(label, COMPANIES)
        at = seen[id(pool)] = seen.get(id(pool), start - 1) + 1
        out[code] = pool[at % len(pool)]
    return out


def well(handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
    """As it should be."""
    send(handler, said(json.dumps({"entities": values(body)})))


def answer(content: str | None, finish: str = "stop", **more: object) -> Behaviour:
    """Always these words."""
    return lambda handler, body: send(handler, said(content, finish, **more))


def made(make: Callable[[dict[str, Any]], str]) -> Behaviour:
    """Words made from the request."""
    return lambda handler, body: send(handler, said(make(body)))


def status(code: int, text: bytes = b'{"error": "no"}', **headers: str) -> Behaviour:
    return lambda handler, body: send(handler, text, code, **headers)


def raw(data: bytes) -> Behaviour:
    return lambda handler, body: send(handler, data)


def dropped(handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
    """The connection ends in the middle of the answer."""
    handler.send_response(200)
    handler.send_header("Content-Length", "5000")
    handler.end_headers()
    handler.wfile.write(b'{"choices": [')
    handler.wfile.flush()
    handler.close_connection = True


def hung_up(handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
    """The connection ends without any answer."""
    handler.close_connection = True


def silent(handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
    """Nothing comes for a while."""
    handler.server.stopped.wait(2)  # type: ignore[attr-defined]
    handler.close_connection = True


def dripping(handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
    """One byte at a time, each soon enough, the whole never."""
    handler.send_response(200)
    handler.send_header("Content-Length", "100000")
    handler.end_headers()
    for _ in range(400):
        if handler.server.stopped.wait(0.02):  # type: ignore[attr-defined]
            break
        try:
            handler.wfile.write(b" ")
            handler.wfile.flush()
        except OSError:
            break
    handler.close_connection = True


def chunked(handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
    """A good answer in many slow chunks."""
    data = said(json.dumps({"entities": values(body)}))
    handler.send_response(200)
    handler.send_header("Transfer-Encoding", "chunked")
    handler.end_headers()
    for i in range(0, len(data), 40):
        piece = data[i : i + 40]
        handler.wfile.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
        handler.wfile.flush()
        time.sleep(0.001)
    handler.wfile.write(b"0\r\n\r\n")


class Server:
    """Runs until :meth:`stop`.

    Attributes:
        url: for ``llm.url``.
        first: behaviours for the next requests, one each.
        then: the behaviour of all others.
        seen: what was received, as bytes, with the request's headers.
        most: the most requests that were served at the same time.
    """

    def __init__(self) -> None:
        self.first: deque[Behaviour] = deque()
        self.then: Behaviour = well
        self.seen: list[bytes] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.most = 0
        self._now = 0
        lock = threading.Lock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                data = self.rfile.read(int(self.headers["Content-Length"]))
                with lock:
                    outer.seen.append(data)
                    outer.headers.append({k.lower(): v for k, v in self.headers.items()})
                    outer.paths.append(self.path)
                    act = outer.first.popleft() if outer.first else outer.then
                    outer._now += 1
                    outer.most = max(outer.most, outer._now)
                try:
                    act(self, json.loads(data))
                finally:
                    with lock:
                        outer._now -= 1

            def log_message(self, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._server.stopped = threading.Event()  # type: ignore[attr-defined]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [json.loads(data) for data in self.seen]

    def stop(self) -> None:
        self._server.stopped.set()  # type: ignore[attr-defined]
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
