"""A connection to a client: slow requests are not waited for, and errors of the protocol have our shape."""

from __future__ import annotations

import asyncio
import json
from http import HTTPStatus
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from allonym.server.guard import HEAD_BYTES
from allonym.server.problems import make_body


class Connection(H11Protocol):
    """uvicorn's HTTP/1.1 with limits on the number of connections and on the time for a request's head.

    Args:
        head_timeout: seconds in which the whole head of a request has to come.
        most: connections at the same time; further ones are refused.
    """

    def __init__(self, head_timeout: float, most: int, **options: Any) -> None:
        super().__init__(**options)
        self._head_timeout, self._most = head_timeout, most
        self._waiting: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """See the base class."""
        super().connection_made(transport)
        if len(self.connections) > self._most:
            self.refuse_request(503, "TooMany", "more connections than this server allows; try again")
        else:
            self._start_head_timeout()

    def data_received(self, data: bytes) -> None:
        """See the base class."""
        if self.transport.is_closing():
            return
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._cancel_head_timeout()
        elif self._waiting is None and not self.transport.is_closing():
            self._start_head_timeout()

    def connection_lost(self, exc: Exception | None) -> None:
        """See the base class."""
        self._cancel_head_timeout()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        """See the base class."""
        large = self.conn.their_state is h11.IDLE and len(self.conn.trailing_data[0]) >= HEAD_BYTES
        if large:
            self.refuse_request(431, "TooLarge", f"the head of a request has at most {HEAD_BYTES >> 10} KB")
        else:
            self.refuse_request(400, "InvalidRequest", "this is not HTTP as it is described in RFC 9112")

    def refuse_request(self, status: int, code: str, message: str) -> None:
        """Answer before there is a request, and end the connection."""
        content = json.dumps(make_body(code, message)).encode()
        head = (
            f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\ncontent-type: application/json\r\n"
            f"content-length: {len(content)}\r\ncache-control: no-store\r\nconnection: close\r\n\r\n"
        )
        self.transport.write(head.encode() + content)
        self.transport.close()

    def _start_head_timeout(self) -> None:
        self._waiting = self.loop.call_later(self._head_timeout, self._refuse_slow)

    def _cancel_head_timeout(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _refuse_slow(self) -> None:
        self._waiting = None
        if not self.transport.is_closing():
            self.refuse_request(408, "TooSlow", "the head of the request did not come")
