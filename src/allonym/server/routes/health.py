"""Whether the server lives, is ready, and what it counts."""

from __future__ import annotations

from typing import Annotated

import sqlalchemy as sa
from fastapi import APIRouter, Depends, Request, Response, Security
from fastapi.security import HTTPAuthorizationCredentials
from starlette.concurrency import run_in_threadpool

from allonym import __version__
from allonym.document import Document
from allonym.errors import RequestError
from allonym.server import database as db
from allonym.server.access import bearer, cookie, identified, services_of
from allonym.server.metrics import CONTENT_TYPE
from allonym.server.services import Services
from allonym.server.wire.accounts import Status

router = APIRouter(tags=["health"])
Within = Annotated[Services, Depends(services_of)]
_EMPTY = Document("", "")


@router.get("/healthz", summary="Does it live?")
def alive() -> Status:
    """Open to anybody."""
    return Status(status="ok", version=__version__)


@router.get("/readyz", summary="Can it do its work?")
async def ready(services: Within) -> Status:
    """Open to anybody. 503 where the database, the vault or the processes that detect do not answer."""

    def asked() -> str:
        with services.database.reading(once=True) as connection:
            connection.execute(sa.select(sa.func.max(db.versions.c.version))).scalar()
        services.vault.find("", "")
        return services.policies.source(None)

    await services.kernel.detect(_EMPTY, await run_in_threadpool(asked), None)
    return Status(status="ok", version=__version__)


@router.get("/metrics", response_class=Response, summary="For Prometheus")
def metrics(
    request: Request,
    services: Within,
    session: Annotated[str | None, Security(cookie)] = None,
    key: Annotated[HTTPAuthorizationCredentials | None, Security(bearer)] = None,
) -> Response:
    """Counts and times, no text. Needs the permission `metrics`, unless a setting opens it."""
    if not services.settings.metrics_open:
        who = identified(request, session, key.credentials if key else None)
        if not who.may("metrics"):
            raise RequestError("this needs the permission 'metrics'", 403, "NotAllowed")
    return Response(services.metrics.shown(), media_type=CONTENT_TYPE)
