"""Run the application: listen, print the address, and stop without losing anything."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable
from contextlib import AsyncExitStack
from functools import partial
from typing import Any, cast

import uvicorn
from fastapi import FastAPI

from allonym.errors import UsageError
from allonym.server.app import create_app
from allonym.server.connection import Connection
from allonym.server.guard import HEAD_BYTES
from allonym.server.listening import listen
from allonym.server.logs import configure_logs
from allonym.server.services import Services
from allonym.server.settings import MB, Settings

GRACE = 10
"""Seconds that requests have to end after a signal."""


def run(settings: Settings, say: Callable[[str], None]) -> None:
    """Serve until a signal. Requests then have some seconds to finish; jobs continue at the next start.

    Args:
        settings: of the server.
        say: called with lines for whoever started it.

    Raises:
        UsageError: the address is taken or cannot be used, or a setting is wrong.
    """
    with listen(settings.host, settings.port) as listener:
        if settings.tls_key:
            _check_tls(settings)
        app = create_app(settings)
        services: Services = app.state.services
        services.url = settings.url(listener.getsockname()[1])
        configure_logs(settings.access_log)
        lines = [f"serving at {services.url}"]
        if services.accounts.has_no_users():
            services.accounts.remove_links("admin")
            token, _ = services.accounts.make_link("admin")
            link = f"{services.url}/#/setup?token={token}"
            lines.insert(0, f"make the first account, an admin's, within a day: {link}")

        def announce() -> None:
            for line in lines:
                say(line)

        _Server(_configure(settings, app), app, announce).run(sockets=[listener])


def _configure(settings: Settings, app: FastAPI) -> uvicorn.Config:
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


def _check_tls(settings: Settings) -> None:
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
