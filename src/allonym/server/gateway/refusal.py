"""What is refused, and the one shape of all errors: OpenAI's."""

from __future__ import annotations

import json
from collections.abc import Mapping

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


def lost(error: Exception) -> Unanswered:
    """What is told of an error after a request was sent; of one that was not raised on purpose, only its type."""
    if isinstance(error, Unanswered):
        return error
    said = str(error) if isinstance(error, AllonymError) else f"the gateway failed with {type(error).__name__}"
    return Unanswered(f"the request was sent, but its answer cannot be given: {said}", "not_restored", 500)


def body_of(error: Exception) -> dict[str, object]:
    """The error as OpenAI writes errors. Of what was not raised on purpose, only the type is told."""
    if isinstance(error, (Refusal, Unanswered)):
        code, message = error.code, str(error)
    elif isinstance(error, AllonymError):
        code, message = "not_protected", f"nothing was sent: {error}"
    else:
        code, message = "gateway_failed", f"the gateway failed with {type(error).__name__}"
    kind = "invalid_request_error" if status_of(error) < 500 else "gateway_error"
    param = error.param or None if isinstance(error, Refusal) else None
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def status_of(error: Exception) -> int:
    """The status that the error is answered with."""
    return error.status if isinstance(error, AllonymError) else 500


def answer(error: Exception, headers: Mapping[str, str] | None = None) -> Response:
    """The error as an answer."""
    data = json.dumps(body_of(error), ensure_ascii=False).encode()
    return Response(data, status_of(error), headers, "application/json")
