"""One shape for errors: ``{"error": {"code", "message", "where"}}``, but on Presidio's routes. It quotes no request."""

from __future__ import annotations

import logging
import re
import traceback
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from http import HTTPStatus
from pathlib import Path
from typing import Any, cast

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from allonym.errors import AllonymError, RequestError
from allonym.server.wire.base import Wire

log = logging.getLogger("allonym.server")

CHALLENGE = 'Bearer realm="allonym"'

_OURS = ("query", "path", "header", "cookie")
"""Parts of requests whose names are never the client's own."""

_TOLD = 2  # errors besides the first
_TYPE = re.compile(
    r"[A-Z]\w*|(?:constrained-|function-\w+|lax-or-strict)?(?:str|int|float|bool|dict|list|tuple)?(?:\[.*\])?"
)
_QUIET = frozenset(("missing", "json_invalid", "string_too_long", "too_long"))
"""Kinds of validation errors that say all there is to say by their name."""
HALF = "a text holds half of a surrogate pair, so it is no Unicode text"
_FORMS = frozenset(("file", "files", "kind", "name", "options", "plans"))
"""Fields of forms."""


def problem(error: Exception) -> tuple[int, dict[str, Any]]:
    """Status and body for an error. What is not raised on purpose is told by its type alone."""
    if isinstance(error, AllonymError):
        code = error.code if isinstance(error, RequestError) else type(error).__name__
        return error.status, body(code, str(error))
    if isinstance(error, HTTPException):
        words = HTTPStatus(error.status_code).phrase
        return error.status_code, body(words.replace(" ", "").replace("-", ""), words)
    if isinstance(error, UnicodeEncodeError) or "surrogates not allowed" in str(error):  # pydantic has words of its own
        return 422, body("InvalidRequest", HALF)
    log.error("unexpected %s at %s", type(error).__name__, place_of(error))
    return 500, body("Unexpected", f"unexpected {type(error).__name__}; the server goes on")


def body(code: str, message: str, where: str | None = None) -> dict[str, Any]:
    """The one shape."""
    return {"error": {"code": code, "message": message, "where": where}}


def invalid(errors: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The body for a request whose parts are not as the description says: where, and what is required."""
    apt = [one for one in errors if not _beside(one, errors)]
    told = dict.fromkeys((_place(one), _message(one)) for one in apt or errors[:1])
    (place, message), *others = told or [(None, "not valid")]
    for where, other in others[:_TOLD]:
        message += f"; {where}: {other}"
    more = f" (and {len(others) - _TOLD} more)" if len(others) > _TOLD else ""
    return body("InvalidRequest", f"{message}{more}", place)


def _beside(error: Mapping[str, Any], errors: Sequence[Mapping[str, Any]]) -> bool:
    """Whether an error says only that a value is not of one type of several, while others say what it lacks."""
    at = tuple(error.get("loc", ()))
    return str(error.get("type", "")).endswith("_type") and any(
        len(other.get("loc", ())) > len(at) and tuple(other["loc"][: len(at) - 1]) == at[:-1] for other in errors
    )


def _place(error: Mapping[str, Any]) -> str | None:
    """Where an error is, without the names of types, and without what the client made up."""
    at = [part for part in error.get("loc", ()) if isinstance(part, int) or not _TYPE.fullmatch(part)]
    names = frozenset(at) if at and at[0] in _OURS else _fields()
    return ".".join(str(part) if isinstance(part, int) or part in names else "*" for part in at) or None


def _message(error: Mapping[str, Any]) -> str:
    kind = str(error.get("type", ""))
    if kind == "extra_forbidden":
        near = get_close_matches(str(error["loc"][-1]), sorted(_fields()), n=1, cutoff=0.7)
        return "no such field" + (f"; did you mean: {near[0]}" if near else "")
    if kind == "value_error":
        return str(error.get("ctx", {}).get("error", "not valid"))
    return kind.replace("_", " ") if kind in _QUIET or "tag" in kind else str(error.get("msg", "not valid"))


@cache
def _fields() -> frozenset[str]:
    """All names that descriptions of requests have. Another one is the client's own, and may be anything."""
    names, kinds = {"body", "message", "options", *_FORMS}, Wire.__subclasses__()
    while kinds:
        kind = kinds.pop()
        kinds += kind.__subclasses__()
        names.update(kind.model_fields)
    return frozenset(names)


def place_of(error: BaseException) -> str:
    """The innermost place in our code, without what the error says."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if "allonym" in f.filename]
    return f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "an unknown place"


def install(app: FastAPI) -> None:
    """Let all errors of an application have this shape."""

    def known(request: Request, error: Exception) -> JSONResponse:
        status, content = problem(error)
        headers = getattr(error, "headers", None)
        if status == 401:
            headers = {**(headers or {}), "WWW-Authenticate": CHALLENGE}
        return JSONResponse(content, status, headers=headers)

    def unreadable(request: Request, error: Exception) -> JSONResponse:
        return JSONResponse(invalid(cast(RequestValidationError, error).errors()), 422)

    handlers: dict[Any, Callable[[Request, Exception], JSONResponse]] = {
        AllonymError: known,
        HTTPException: known,
        RequestValidationError: unreadable,
    }
    for kind, handler in handlers.items():
        app.add_exception_handler(kind, handler)
