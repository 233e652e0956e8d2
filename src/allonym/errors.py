"""Every error that allonym raises on purpose, in one tree.

::

    AllonymError
    ├── UsageError (ValueError)            the call, a policy or an option is wrong; exit code 2, HTTP 400
    │   ├── PolicyError                    a policy file or a policy's value
    │   ├── UnknownNameError (LookupError) a name that is in no table; says the nearest ones
    │   ├── RequestError                   the server refuses a request; its status says why: 401, 404, 413 ...
    │   └── MissingExtra (ImportError)     an optional package is needed; names the install command
    └── DataError (ValueError)             the input cannot be processed; exit code 1, HTTP 422
        ├── RefusedContent                 a file holds parts that cannot be treated yet
        ├── PlanMismatch                   a plan is applied to another text than it was made for
        ├── RestoreError                   originals cannot be brought back
        │   └── UnknownToken (LookupError) a token that the vault does not know
        ├── KnowledgeBaseError             a knowledge base cannot be read or built
        ├── VaultError                     a vault cannot be opened, read or written
        │   ├── WrongKey                   the key does not open this vault
        │   └── VaultLocked                a vault is opened without its key, or somebody else holds it
        ├── EndpointError (ConnectionError) an endpoint that the policy names did not answer as it must; HTTP 502
        └── DatabaseError                  the server's database cannot be opened, read or written; HTTP 503

Messages say where, what is required and what was got. They show configuration, never data.
"""

from __future__ import annotations

import difflib
import json
import os
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager


class AllonymError(Exception):
    """Root of all errors raised on purpose."""

    exit_code: int = 1
    status: int = 500

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild_error, (type(self), self.args))


def _rebuild_error(cls: type[AllonymError], args: tuple[object, ...]) -> AllonymError:
    # Errors cross process borders; one whose constructor takes other arguments than its message would break there.
    return cls.__new__(cls, *args)


class UsageError(AllonymError, ValueError):
    """The caller asked for something that does not exist or does not make sense."""

    exit_code = 2
    status = 400


class PolicyError(UsageError):
    """A policy is not valid."""


class UnknownNameError(UsageError, LookupError):
    """A name is in no table. The message lists the nearest names."""

    def __init__(self, kind: str, name: object, candidates: Iterable[str], where: str = "") -> None:
        names = sorted(candidates)
        lower = {n.lower(): n for n in names}
        near = [lower[m] for m in difflib.get_close_matches(str(name).lower(), lower, n=3, cutoff=0.5)]
        shown = near or names[:12]
        hint = "did you mean" if near else "known"
        prefix = f"{where}: " if where else ""
        listed = ", ".join(shown) + (", ..." if not near and len(names) > len(shown) else "")
        super().__init__(f"{prefix}unknown {kind} {name!r}; {hint}: {listed}")


def check_names(kind: str, names: Iterable[str], known: Collection[str], where: str = "") -> None:
    """Raise :class:`UnknownNameError` for the first of ``names`` that is not known."""
    for name in names:
        if name not in known:
            raise UnknownNameError(kind, name, known, where)


class MissingExtra(UsageError, ImportError):
    """An optional package is needed; the message names the command that installs it."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs an optional package; install it with: {write_install_command(extra)}")


def write_install_command(extra: str) -> str:
    """Return the command that installs an extra: from the clone or the file that this allonym was installed from.

    A name alone would be looked for on an index, where anybody may own it. No path is told, for servers show this, too.
    """
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        origin = str(json.loads(distribution("allonym").read_text("direct_url.json") or "{}").get("url", ""))
    except (PackageNotFoundError, ValueError, AttributeError):
        origin = ""
    if not origin.startswith("file://"):
        return f"pip install 'allonym[{extra}]'"
    if origin.endswith((".whl", ".tar.gz")):
        return f"pip install './{origin.rpartition('/')[2]}[{extra}]', in the folder of that file"
    return f"pip install '.[{extra}]', in the folder of allonym's source"


@contextmanager
def require_extra(what: str, extra: str) -> Iterator[None]:
    """A context in which the packages of an extra are imported.

    Args:
        what: what needs them.
        extra: name of the extra.

    Raises:
        MissingExtra: one of them is not installed.
    """
    try:
        yield
    except ImportError as error:
        if isinstance(error, MissingExtra) or (error.name or "").partition(".")[0] == "allonym":
            raise
        raise MissingExtra(what, extra) from error


class RequestError(UsageError):
    """The server refuses a request.

    Args:
        message: what is required and what was got.
        status: of the HTTP response, 400 to 499 or 503.
        code: one word for programs, such as ``NotFound``.
        retry_after: seconds after which the client may try again; sent with 429 and 503.
    """

    def __init__(self, message: str, status: int, code: str, retry_after: int = 1) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.retry_after = retry_after

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (str(self), self.status, self.code, self.retry_after))


class DataError(AllonymError, ValueError):
    """The input cannot be processed. The message never quotes it."""

    exit_code = 1
    status = 422


class RefusedContent(DataError):
    """A file holds parts that allonym cannot treat yet, so nothing of it is written."""


class PlanMismatch(DataError):
    """A plan does not belong to this text."""


class RestoreError(DataError):
    """Originals cannot be brought back from what was given."""


class UnknownToken(RestoreError, LookupError):
    """A token that the vault does not know, in this scope or at all. The message does not show it."""


class KnowledgeBaseError(DataError):
    """A knowledge base cannot be read, built or imported into."""


class VaultError(DataError):
    """A vault cannot be opened, read or written."""


class WrongKey(VaultError):
    """The key does not open this vault, or the vault was changed by somebody without it."""


class VaultLocked(VaultError):
    """A vault was opened without a key, or another process holds it for too long."""


class EndpointError(DataError, ConnectionError):
    """An endpoint that the policy names did not answer, or not as it must. Nothing of what was sent is shown."""

    status = 502


class DatabaseError(DataError):
    """The server's database cannot be opened, read or written."""

    status = 503


@contextmanager
def tell_policy_errors() -> Iterator[None]:
    """A context, or a decorator, in which a value that is wrong is a policy's.

    Raises:
        PolicyError: in place of a :class:`UsageError` that is of no other class.
    """
    try:
        yield
    except UsageError as error:
        raise (PolicyError(str(error)) if type(error) is UsageError else error) from None


@contextmanager
def hide_foreign_errors(message: str, *kinds: type[Exception], error: type[AllonymError] = DataError) -> Iterator[None]:
    """A context, or a decorator, that turns errors of other packages into one that does not show their messages.

    These may quote data. Errors of allonym, and of a lack of memory, pass.

    Args:
        message: what failed; the error's type follows in brackets, or what the operating system says.
        kinds: the errors; by default all.
        error: class of the new error.

    Raises:
        AllonymError: in place of an error of these kinds.
    """
    hidden = kinds or (Exception,)
    try:
        yield
    except (AllonymError, MemoryError):
        raise
    except hidden as foreign:
        number = foreign.errno if isinstance(foreign, OSError) else None
        raise error(f"{message} ({os.strerror(number) if number else type(foreign).__name__})") from None
