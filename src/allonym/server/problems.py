"""The shape of errors: ``{"error": {"code", "message", "where"}}``, but on Presidio's routes. It quotes no request."""

from __future__ import annotations

import logging
import re
import traceback
from collections.abc import Mapping, Sequence
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
HALF_SURROGATE = "a text holds half of a surrogate pair, so it is no Unicode text"

_REQUEST_PARTS = ("query", "path", "header", "cookie")  # of requests, whose names are never the client's own
_READ = 100  # errors of one request that are read; a body of few bytes can have very many
_MORE = 2  # errors that are shown besides the first
_TYPE = re.compile(
    r"[A-Z]\w*|(?:constrained-|function-\w+|lax-or-strict)?(?:str|int|float|bool|dict|list|tuple)?(?:\[.*\])?"
)
_NAMED_KINDS = frozenset(("missing", "json_invalid", "string_too_long", "too_long"))  # whose name is message enough
_FORM_FIELDS = frozenset(("file", "files", "kind", "name", "options", "plans"))


def describe_error(error: Exception) -> tuple[int, dict[str, Any]]:
    """Return status and body for an error. An unexpected one is shown by its type alone."""
    if isinstance(error, AllonymError):
        code = error.code if isinstance(error, RequestError) else type(error).__name__
        return error.status, make_error_body(code, str(error))
    if isinstance(error, HTTPException):
        phrase = HTTPStatus(error.status_code).phrase
        return error.status_code, make_error_body(phrase.replace(" ", "").replace("-", ""), phrase)
    if isinstance(error, UnicodeEncodeError) or "surrogates not allowed" in str(error):  # pydantic's own words
        return 422, make_error_body("InvalidRequest", HALF_SURROGATE)
    log.error("unexpected %s at %s", type(error).__name__, locate_error(error))
    return 500, make_error_body("Unexpected", f"unexpected {type(error).__name__}; the server goes on")


def make_error_headers(error: Exception, status: int) -> dict[str, str]:
    """Return the headers of an error: how to sign in, and when to try again."""
    headers = dict(getattr(error, "headers", None) or {})
    if status == 401:
        headers["www-authenticate"] = CHALLENGE
    elif status in (429, 503):
        headers["retry-after"] = str(getattr(error, "retry_after", 1))
    return headers


def make_error_body(code: str, message: str, where: str | None = None) -> dict[str, Any]:
    """Return the body of an error."""
    return {"error": {"code": code, "message": message, "where": where}}


def make_invalid_request_body(errors: Sequence[Mapping[str, Any]], prefix: str | None = None) -> dict[str, Any]:
    """Return the body for a request that does not fit its description: where, and what is required.

    Args:
        errors: as pydantic lists them.
        prefix: stands before all places.
    """
    rows = [{**error, "loc": (prefix, *error["loc"])} if prefix else error for error in errors[:_READ]]
    relevant = [row for row in rows if not _is_redundant_error(row, rows)]
    shown = dict.fromkeys(
        (_format_error_location(row), _format_validation_message(row)) for row in relevant or rows[:1]
    )
    (place, message), *others = shown or [(None, "not valid")]
    for where, other in others[:_MORE]:
        message += f"; {where}: {other}"
    least = "at least " if len(errors) > _READ else ""
    more = f" (and {least}{len(others) - _MORE} more)" if len(others) > _MORE else ""
    return make_error_body("InvalidRequest", f"{message}{more}", place)


def _is_redundant_error(error: Mapping[str, Any], errors: Sequence[Mapping[str, Any]]) -> bool:
    """Whether an error says only that a value is not of one type of several, while others say what it lacks."""
    place = tuple(error.get("loc", ()))
    return str(error.get("type", "")).endswith("_type") and any(
        len(other.get("loc", ())) > len(place) and tuple(other["loc"][: len(place) - 1]) == place[:-1]
        for other in errors
    )


def _format_error_location(error: Mapping[str, Any]) -> str | None:
    """Return where an error is, without the names of types, and without names that the client made up."""
    place = [part for part in error.get("loc", ()) if isinstance(part, int) or not _TYPE.fullmatch(part)]
    names = frozenset(place) if place and place[0] in _REQUEST_PARTS else _list_request_field_names()
    return ".".join(str(part) if isinstance(part, int) or part in names else "*" for part in place) or None


def _format_validation_message(error: Mapping[str, Any]) -> str:
    kind = str(error.get("type", ""))
    if kind == "extra_forbidden":
        near = get_close_matches(str(error["loc"][-1]), sorted(_list_request_field_names()), n=1, cutoff=0.7)
        return "no such field" + (f"; did you mean: {near[0]}" if near else "")
    if kind == "value_error":
        return str(error.get("ctx", {}).get("error", "not valid"))
    is_named = kind in _NAMED_KINDS or "tag" in kind
    return kind.replace("_", " ") if is_named else str(error.get("msg", "not valid"))


@cache
def _list_request_field_names() -> frozenset[str]:
    """Return all field names in descriptions of requests. Any other name is the client's own, and may be anything."""
    names, kinds = {"body", "message", "options", *_FORM_FIELDS}, Wire.__subclasses__()
    while kinds:
        kind = kinds.pop()
        kinds += kind.__subclasses__()
        names.update(kind.model_fields)
    return frozenset(names)


def locate_error(error: BaseException) -> str:
    """Return the innermost place in our code where an error was raised, without its message."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if "allonym" in f.filename]
    return f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "an unknown place"


def install_error_handlers(app: FastAPI) -> None:
    """Give all errors of an application this shape."""

    def answer_error(request: Request, error: Exception) -> JSONResponse:
        status, content = describe_error(error)
        return JSONResponse(content, status, headers=make_error_headers(error, status))

    def answer_invalid(request: Request, error: Exception) -> JSONResponse:
        return JSONResponse(make_invalid_request_body(cast(RequestValidationError, error).errors()), 422)

    app.add_exception_handler(AllonymError, answer_error)
    app.add_exception_handler(HTTPException, answer_error)
    app.add_exception_handler(RequestValidationError, answer_invalid)
