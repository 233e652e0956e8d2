"""Run the application: listen, print the address, and stop without losing anything. Slow clients are not waited for."""

from __future__ import annotations

import asyncio
import ctypes
import json
import socket
import ssl
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any, cast

import h11
import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol

from allonym.errors import RequestError, UsageError
from allonym.server.app import create_app
from allonym.server.guard import HEAD_BYTES
from allonym.server.listening import open_listening_socket
from allonym.server.logs import configure_logs
from allonym.server.problems import describe_error, make_error_headers
from allonym.server.services import Services
from allonym.server.settings import MB, Settings


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
            error = RequestError("more connections than this server allows; try again", 503, "TooMany")
            self.refuse_request(error)
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
            error = RequestError(f"the head of a request has at most {HEAD_BYTES >> 10} KB", 431, "TooLarge")
        else:
            error = RequestError("this is not HTTP as it is described in RFC 9112", 400, "InvalidRequest")
        self.refuse_request(error)

    def refuse_request(self, error: RequestError) -> None:
        """Answer before there is a request, and end the connection."""
        status, body = describe_error(error)
        content = json.dumps(body).encode()
        headers = {
            "content-type": "application/json",
            "content-length": len(content),
            "cache-control": "no-store",
            "connection": "close",
            **make_error_headers(error, status),
        }
        lines = [
            f"HTTP/1.1 {status} {HTTPStatus(status).phrase}",
            *(f"{name}: {value}" for name, value in headers.items()),
        ]
        self.transport.write("\r\n".join([*lines, "", ""]).encode() + content)
        self.transport.close()

    def _start_head_timeout(self) -> None:
        self._waiting = self.loop.call_later(self._head_timeout, self._refuse_slow_request)

    def _cancel_head_timeout(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _refuse_slow_request(self) -> None:
        self._waiting = None
        if not self.transport.is_closing():
            self.refuse_request(RequestError("the head of the request did not come", 408, "TooSlow"))


def limit_allocator_arenas() -> None:
    """Let all threads share two heaps of the C library, where it is glibc's.

    Otherwise each thread has a heap of its own that keeps what its requests gave back: a kilobyte more a request.
    """
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, 2)


_M_ARENA_MAX = -8  # of malloc.h

GRACE = 10
"""Seconds that requests have to end after a signal."""


def run(settings: Settings, print_line: Callable[[str], None]) -> None:
    """Serve until a signal. Requests then have some seconds to finish; jobs continue at the next start.

    Args:
        settings: of the server.
        print_line: called with lines for whoever started it.

    Raises:
        UsageError: the address is taken or cannot be used, or a setting is wrong.
    """
    limit_allocator_arenas()
    with open_listening_socket(settings.host, settings.port) as listener:
        if settings.tls_key:
            _check_tls_files(settings)
        app = create_app(settings)
        services: Services = app.state.services
        services.url = settings.get_url(listener.getsockname()[1])
        configure_logs(settings.access_log)
        lines = [f"serving at {services.url}"]
        if settings.local:
            link = f"{services.url}/#/signin?token={services.accounts.make_local_link()}"
            lines.append(f"open this link, and show it to nobody: {link}")
        elif settings.admin:
            if services.accounts.has_no_users():
                _make_first_admin(services, settings)
                lines.append(f"made the account {settings.admin}, an administrator's; sign in with its password")
        elif services.accounts.has_no_users():
            services.accounts.remove_account_links("admin")
            token, _ = services.accounts.make_account_link("admin")
            link = f"{services.url}/#/setup?token={token}"
            lines.insert(0, f"create the first account, an administrator's, within a day: {link}")

        def announce() -> None:
            for line in lines:
                print_line(line)

        _Server(_make_uvicorn_config(settings, app), app, announce).run(sockets=[listener])


def _make_first_admin(services: Services, settings: Settings) -> None:
    """Make the account that the settings name, so that nobody has to open the link of the first start."""
    path = Path(settings.admin_password_file)
    try:
        password = path.read_text(encoding="utf-8").rstrip("\r\n") if settings.admin_password_file else ""
    except (OSError, ValueError):
        raise UsageError(f"admin_password_file: {path} cannot be read") from None
    if not password:
        raise UsageError("admin needs admin_password_file, a file with the password")
    services.accounts.remove_account_links("admin")  # an earlier start may have printed one
    token, _ = services.accounts.make_account_link("admin")
    user = services.accounts.make_account(token, settings.admin, password)
    services.accounts.record_action(user.name, "account made: admin, by the settings of the first start")


def _make_uvicorn_config(settings: Settings, app: FastAPI) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=cast(Any, partial(Connection, settings.head_timeout, settings.connections)),
        h11_max_incomplete_event_size=HEAD_BYTES,
        loop="asyncio",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=settings.behind_proxy,
        forwarded_allow_ips="127.0.0.1" if settings.behind_proxy else "",
        timeout_keep_alive=15,
        timeout_graceful_shutdown=GRACE,
        ws_max_size=int(settings.max_body_mb * MB),
        ws_per_message_deflate=False,
        ssl_certfile=settings.tls_certificate or None,
        ssl_keyfile=settings.tls_key or None,
    )


def _check_tls_files(settings: Settings) -> None:
    """Check that TLS can begin, before anything else starts."""
    try:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(settings.tls_certificate, settings.tls_key, password="")
    except OSError as error:
        unfit = "they are no certificate and its key, in PEM and without a password"
        why = unfit if isinstance(error, ssl.SSLError) else error.strerror
        both = f"{settings.tls_certificate}, {settings.tls_key}"
        raise UsageError(f"settings tls_certificate and tls_key: {both}: {why}") from None


class _Server(uvicorn.Server):
    """Starts and stops the application itself: uvicorn would log errors of the start instead of raising them.

    Args:
        config: without lifespan.
        app: the application.
        started: called when it serves.
    """

    def __init__(self, config: uvicorn.Config, app: FastAPI, started: Callable[[], None]) -> None:
        super().__init__(config)
        self._app, self._started, self._lifespan = app, started, AsyncExitStack()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """See the base class."""
        await self._lifespan.enter_async_context(self._app.router.lifespan_context(self._app))
        await super().startup(sockets)
        self._started()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """See the base class."""
        await super().shutdown(sockets)
        await self._lifespan.aclose()
