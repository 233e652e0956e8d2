"""The application: its routes, its pages, and the middleware before them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from importlib import import_module
from pathlib import Path

from fastapi import FastAPI
from fastapi.middleware.cors import CORSMiddleware
from fastapi.responses import FileResponse, JSONResponse
from starlette.concurrency import run_in_threadpool
from starlette.staticfiles import StaticFiles

from allonym import __version__
from allonym.server import problems
from allonym.server.guard import Guard
from allonym.server.services import open_services
from allonym.server.settings import Settings
from allonym.server.wire.base import Failure

STATIC = Path(__file__).parent / "static"
ROUTES = tuple(
    "health accounts oidc scopes choices texts jobs evaluate presidio files stream reviews fileprojects studies".split()
)
"""Modules of ``allonym.server.routes``; each has a ``router``."""

ABOUT = """Finds what identifies people, companies and places in text, replaces it, and restores it where allowed.

Sign in with an API key (`Authorization: Bearer alk_...`); pages use a session. Offsets are half-open and count code
points. Every error has the shape `{"error": {"code", "message", "where"}}`; Presidio's routes keep theirs.
"""
_ERRORS = {
    400: "A name or an option is wrong",
    401: "Not signed in",
    403: "A permission is missing",
    404: "There is no such thing",
    408: "The body did not come in time",
    409: "It conflicts with something else",
    413: "Too large",
    415: "The body is compressed",
    421: "The server does not have this host name",
    422: "The request or the text cannot be processed",
    429: "Too many requests",
    503: "Not now",
}


def create_app(settings: Settings) -> FastAPI:
    """Make the application. Its database, vault and processes start and close with its lifespan.

    Raises:
        UsageError, VaultError, DatabaseError: see :func:`allonym.server.services.open_services`.
    """
    services = open_services(settings)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        try:
            await services.start()
            yield
        finally:
            await run_in_threadpool(services.close)

    app = FastAPI(
        title="allonym",
        version=__version__,
        description=ABOUT,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        responses={code: {"model": Failure, "description": says} for code, says in _ERRORS.items()},
        generate_unique_id_function=lambda route: f"{(route.tags or ['page'])[0]}_{route.name}",
    )
    app.state.services = services
    problems.install_error_handlers(app)
    for name in ROUTES:
        app.include_router(import_module(f"allonym.server.routes.{name}").router)
    _add_openapi_route(app)
    _add_page_routes(app)
    if settings.cors_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=list(settings.cors_origins),
            allow_methods=["GET", "POST", "PUT", "PATCH", "DELETE"],
            allow_headers=["authorization", "content-type"],
        )
    app.add_middleware(
        Guard, settings=settings, metrics=services.metrics, accounts=services.accounts, quota=services.quota
    )
    return app


def _add_openapi_route(app: FastAPI) -> None:
    """Add the description of the API. It is made on the first request, in a thread, as that takes a second."""

    def describe_api() -> JSONResponse:
        schema = app.openapi()
        operations = (operation for methods in schema["paths"].values() for operation in methods.values())
        for status, response in (item for operation in operations for item in operation["responses"].items()):
            content = response.get("content")
            if int(status) >= 400 and content:  # errors are JSON, whatever else a route returns
                response["content"] = {"application/json": next(iter(content.values()))}
        return JSONResponse(schema)

    app.add_api_route("/v1/openapi.json", describe_api, include_in_schema=False, name="description")


def _add_page_routes(app: FastAPI) -> None:
    """Add the workbench: its pages, and the files that they load. They hold no data, so they need no session."""

    def serve_page(name: str) -> Callable[[], FileResponse]:
        return lambda: FileResponse(STATIC / name, headers={"cache-control": "no-cache"})

    app.add_api_route("/", serve_page("index.html"), include_in_schema=False, name="workbench")
    app.add_api_route("/study/{token}", serve_page("study.html"), include_in_schema=False, name="study page")
    app.mount("/static", StaticFiles(directory=STATIC), name="static")
