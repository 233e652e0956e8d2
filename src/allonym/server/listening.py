"""The socket that a service listens on."""

from __future__ import annotations

import socket

from allonym.errors import UsageError


def open_listening_socket(host: str, port: int) -> socket.socket:
    """Open a socket that listens; port 0 is any free one.

    Raises:
        UsageError: the address is taken or cannot be used.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, protocol)
    except (OSError, UnicodeError) as error:  # a name that is too long or empty is no OSError
        raise UsageError(f"cannot listen on {host}: {getattr(error, 'strerror', None) or 'no address'}") from None
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(512)
    except OSError as error:
        listener.close()
        raise UsageError(f"cannot listen on {host}:{port}: {error.strerror}") from None
    return listener
