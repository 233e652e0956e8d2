"""Refusals and other errors, in the shape that the client's API gives them, and the log: neither holds text of a
request."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from time import perf_counter

from starlette.responses import Response

from allonym.errors import AllonymError, EndpointError, UsageError


class Refusal(UsageError):
    """A request that is not sent on. The message names places and fields, never what they hold.

    Args:
        message: what is required.
        param: the place in the request, such as ``messages[2].content``.
        code: for programs.
        status: of the answer.
    """

    def __init__(self, message: str, param: str = "", code: str = "not_protected", status: int = 400) -> None:
        super().__init__(f"{param}: {message}" if param else message)
        self.param = param
        self.code = code
        self.status = status


class Unanswered(EndpointError):
    """The upstream did not answer, or not as it must.

    Args:
        message: what happened.
        code: for programs.
        status: of the answer, 502 or 504.
    """

    def __init__(self, message: str, code: str = "upstream_failed", status: int = 502) -> None:
        super().__init__(message)
        self.code = code
        self.status = status


def make_lost_request_error(error: Exception) -> Unanswered:
    """Return the error for a request that was sent but not answered; an unexpected one shows its type only."""
    if isinstance(error, Unanswered):
        return error
    why = str(error) if isinstance(error, AllonymError) else f"the gateway failed with {type(error).__name__}"
    return Unanswered(f"the request was sent, but its answer cannot be given: {why}", "not_restored", 500)


def make_error_body(error: Exception) -> dict[str, object]:
    """Return the body for an error, in OpenAI's shape. An unexpected one shows its type only."""
    if isinstance(error, (Refusal, Unanswered)):
        code, message = error.code, str(error)
    elif isinstance(error, AllonymError):
        code, message = "not_protected", f"nothing was sent: {error}"
    else:
        code, message = "gateway_failed", f"the gateway failed with {type(error).__name__}"
    kind = "invalid_request_error" if get_error_status(error) < 500 else "gateway_error"
    param = error.param or None if isinstance(error, Refusal) else None
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def get_error_status(error: Exception) -> int:
    """Return the status for an error."""
    return error.status if isinstance(error, AllonymError) else 500


def make_error_response(error: Exception, *, is_messages: bool = False) -> Response:
    """Return the answer for an error, to a request of Anthropic's API (``is_messages``) in the shape of its errors."""
    body = {**({"type": "error"} if is_messages else {}), **make_error_body(error)}
    data = json.dumps(body, ensure_ascii=False).encode()
    return Response(data, get_error_status(error), None, "application/json")


LOG = logging.getLogger("allonym.gateway")


class LogLine:
    """The line of one request.

    Args:
        request: method and path.
    """

    def __init__(self, request: str) -> None:
        self._request = request
        self._start = perf_counter()
        self._values: dict[str, object] = {}
        self.client = ""
        self.policy = ""
        self.error: Exception | None = None

    def set_protected_counts(self, labels: Mapping[str, int], milliseconds: float) -> None:
        """Set how many mentions of each label were replaced, and how long that took."""
        self._values["found"] = ",".join(f"{label}:{n}" for label, n in sorted(labels.items())) or "-"
        self._values["protect_ms"] = f"{milliseconds:.1f}"

    def write(self, status: int, error: Exception | None = None, counts: Mapping[str, int] | None = None) -> None:
        """Write the line; of an error only its type.

        Args:
            status: of the answer.
            error: that ended it.
            counts: of placeholders, see :class:`~allonym.server.gateway.restoring.AnswerRestorer`.
        """
        values = {"client": self.client or "-", "policy": self.policy or "-", **self._values, **(counts or {})}
        values["ms"] = f"{(perf_counter() - self._start) * 1000:.1f}"
        if error is not None:
            values["error"] = type(error).__name__
        LOG.info("%s status=%d %s", self._request, status, " ".join(f"{k}={v}" for k, v in values.items()))
