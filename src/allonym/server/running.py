"""Run the application: listen, say where, and end without losing anything."""

from __future__ import annotations

import socket
from collections.abc import Callable
from functools import partial
from typing import Any, cast

import uvicorn

from allonym.errors import UsageError
from allonym.server import logs
from allonym.server.app import create_app
from allonym.server.connection import Connection
from allonym.server.guard import HEAD_BYTES
from allonym.server.services import Services
from allonym.server.settings import Settings

GRACE = 10
"""Seconds that requests have to end after a signal."""


def run(settings: Settings, say: Callable[[str], None]) -> None:
    """Serve until a signal ends it. What runs then has some seconds to finish; jobs go on at the next start.

    Args:
        settings: what holds.
        say: gets lines for whoever started it.

    Raises:
        UsageError: the address is taken or cannot be used, or a setting is wrong.
    """
    place = _listen(settings.host, settings.port)
    try:
        app = create_app(settings)
    except BaseException:
        place.close()
        raise
    services: Services = app.state.services
    services.url = settings.url(place.getsockname()[1])
    logs.begin(settings.access_log)
    if services.accounts.nobody_yet():
        services.accounts.forget_links("admin")
        token, _ = services.accounts.invite("admin")
        say(f"make the first account, an admin's, within a day: {services.url}/#/setup?token={token}")
    say(f"serving at {services.url}")
    config = uvicorn.Config(
        app,
        http=cast(Any, partial(Connection, settings.head_timeout, settings.connections)),
        h11_max_incomplete_event_size=HEAD_BYTES,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=settings.behind_proxy,
        forwarded_allow_ips="127.0.0.1" if settings.behind_proxy else "",
        timeout_keep_alive=15,
        timeout_graceful_shutdown=GRACE,
        ws_max_size=int(settings.max_body_mb * (1 << 20)),
        ws_per_message_deflate=False,
        ssl_certfile=settings.tls_certificate or None,
        ssl_keyfile=settings.tls_key or None,
    )
    uvicorn.Server(config).run(sockets=[place])


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        place = socket.socket(family, kind, protocol)
    except (OSError, UnicodeError) as error:  # a name that is too long or empty is no OSError
        raise UsageError(f"cannot listen on {host}: {getattr(error, 'strerror', None) or 'no address'}") from None
    try:
        place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        place.bind(address)
        place.listen(512)
    except OSError as error:
        place.close()
        raise UsageError(f"cannot listen on {host}:{port}: {error.strerror}") from None
    return place
