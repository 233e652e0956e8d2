"""A language model's endpoint that does as it is told: echoes, rewrites, streams in awkward pieces, breaks off."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Behaviour = Callable[["Handler", dict[str, Any]], None]


def last_text(body: dict[str, Any]) -> str:
    """The text of the last message, or of the input."""
    said = body["messages"][-1]["content"] if "messages" in body else body["input"]
    if isinstance(said, list):
        said = said[-1]
        said = said.get("text") or said.get("content") or said.get("output")
        if isinstance(said, list):
            said = "".join(part.get("text", "") for part in said)
    return said


def completion(body: dict[str, Any], **message: Any) -> dict[str, Any]:
    """A chat completion with this message."""
    said = {"role": "assistant", "content": None, "refusal": None, **message}
    return {
        "id": "chatcmpl-a1b2c3d4e5",
        "object": "chat.completion",
        "created": 1,
        "model": body["model"],
        "choices": [
            {"index": i, "message": said, "finish_reason": "tool_calls" if said.get("tool_calls") else "stop", "logprobs": None}
            for i in range(body.get("n", 1))
        ],
        "usage": {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7},
    }  # fmt: skip


def chunk(delta: dict[str, Any], *, index: int = 0, finish: str | None = None, **more: Any) -> dict[str, Any]:
    """A chunk of a chat completion."""
    choice = {"index": index, "delta": delta, "finish_reason": finish, "logprobs": None}
    head = {"id": "chatcmpl-a1b2c3d4e5", "object": "chat.completion.chunk", "created": 1, "model": "echo-1"}
    return {**head, "choices": [choice], **more}


USAGE = {**chunk({}), "choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}}


def events(values: Iterable[Any], *, done: bool = True, end: str = "\n", named: bool = False) -> bytes:
    """Server-sent events."""
    out = []
    for value in values:
        name = f"event: {value['type']}{end}" if named else ""
        out.append(f"{name}data: {json.dumps(value, ensure_ascii=False)}{end}{end}")
    return ("".join(out) + (f"data: [DONE]{end}{end}" if done else "")).encode()


def until(met: Callable[[], Any]) -> None:
    """Wait until something is so, as it soon will be."""
    for _ in range(500):
        if met():
            return
        time.sleep(0.02)
    raise AssertionError


def response(body: dict[str, Any], *items: dict[str, Any], status: str = "completed") -> dict[str, Any]:
    """A response with these items."""
    return {
        "id": "resp_0a1b2c3d4e5f",
        "object": "response",
        "created_at": 1.0,
        "model": body["model"],
        "status": status,
        "error": None,
        "incomplete_details": None,
        "output": list(items),
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": body.get("tools", []),
        "instructions": body.get("instructions"),
        "metadata": body.get("metadata"),
        "user": body.get("user"),
    }


def said(text: str) -> dict[str, Any]:
    """A message as an item of a response."""
    part = {"type": "output_text", "text": text, "annotations": []}
    return {"type": "message", "id": "msg_0a1b2c3d4e5f", "role": "assistant", "status": "completed", "content": [part]}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Upstream

    def log_message(self, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        self.server.asked.append((self.path, {k.lower(): v for k, v in self.headers.items()}, {}))
        self.send(
            json.dumps({"object": "list", "data": [{"id": "echo-1", "object": "model", "created": 1, "owned_by": "x"}]})
        )

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers["Content-Length"]))
        body = json.loads(raw)
        with self.server.lock:
            self.server.asked.append((self.path, {k.lower(): v for k, v in self.headers.items()}, body))
            self.server.raw.append(raw)
        try:
            self.server.behaviour(self, body)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def send(self, data: str | bytes | dict[str, Any], status: int = 200, **headers: str) -> None:
        """An answer that is whole."""
        data = json.dumps(data) if isinstance(data, dict) else data
        data = data.encode() if isinstance(data, str) else data
        self.send_response(status)
        headers.setdefault("Content_Type", "application/json")
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def stream(self, data: bytes, size: int = 0, *, broken: bool = False, pause: float = 0.0) -> None:
        """An answer in events, in pieces of so many bytes; ``broken`` ends the connection without the last piece."""
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream; charset=utf-8")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        size = size or len(data) or 1
        for at in range(0, len(data), size):
            piece = data[at : at + size]
            self.wfile.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
            self.wfile.flush()
            if pause:
                time.sleep(pause)
        if broken:
            self.close_connection = True
        else:
            self.wfile.write(b"0\r\n\r\n")


def echo(handler: Handler, body: dict[str, Any]) -> None:
    """Says what the last message said, in one piece or, where it is asked for a stream, in pieces of five letters."""
    path = handler.path.partition("?")[0]
    if path.endswith("/embeddings"):
        given = body["input"] if isinstance(body["input"], list) else [body["input"]]
        data = [{"object": "embedding", "index": i, "embedding": [0.5, float(i)]} for i, _ in enumerate(given)]
        usage = {"prompt_tokens": 1, "total_tokens": 1}
        handler.send({"object": "list", "data": data, "model": body["model"], "usage": usage})
    elif path.endswith("/responses"):
        handler.send(response(body, said(last_text(body))))
    elif body.get("stream"):
        text = last_text(body)
        pieces = [chunk({"role": "assistant", "content": ""})]
        pieces += [chunk({"content": text[i : i + 5]}) for i in range(0, len(text), 5)]
        pieces.append(chunk({}, finish="stop"))
        if (body.get("stream_options") or {}).get("include_usage"):
            pieces.append(USAGE)
        handler.stream(events(pieces), 7)
    else:
        handler.send(completion(body, content=last_text(body)))


class Upstream(ThreadingHTTPServer):
    """A running endpoint.

    Attributes:
        behaviour: what it does with a request.
        asked: path, headers and body of each request so far.
        raw: the bodies' bytes.
    """

    daemon_threads = True
    request_queue_size = 256

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.behaviour: Behaviour = echo
        self.asked: list[tuple[str, dict[str, str], dict[str, Any]]] = []
        self.raw: list[bytes] = []
        self.lock = threading.Lock()
        self._thread = threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    @property
    def body(self) -> dict[str, Any]:
        """The last request's body."""
        return self.asked[-1][2]

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass  # clients that went away

    def close(self) -> None:
        self.shutdown()
        self.server_close()
        self._thread.join()


@contextmanager
def serve_app(app: Any) -> Iterator[str]:
    """The address under which an app is served."""
    import uvicorn

    listening = socket.create_server(("127.0.0.1", 0), backlog=256)
    config = uvicorn.Config(app, log_config=None, access_log=False, ws="none", timeout_graceful_shutdown=5)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(20)
        listening.close()
