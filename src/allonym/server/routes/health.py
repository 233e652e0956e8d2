"""Whether the server is alive and ready, and its metrics."""

from __future__ import annotations

import sqlalchemy as sa
from fastapi import APIRouter, Request, Response
from prometheus_client import generate_latest
from starlette.concurrency import run_in_threadpool

from allonym import __version__
from allonym.server import database as db
from allonym.server.processing import NO_TEXT, TextTask
from allonym.server.routes.parameters import AnyServices, BearerKey, SessionToken, identify_caller
from allonym.server.wire.accounts import Status

router = APIRouter(tags=["health"])


@router.get("/healthz", summary="Is it alive?")
def check_alive() -> Status:
    """Open to anybody."""
    return Status(status="ok", version=__version__)


@router.get("/readyz", summary="Is it ready?")
async def check_ready(services: AnyServices) -> Status:
    """Open to anybody. 503 where the database, the vault or the detection processes do not answer."""

    def read_stores() -> str:
        with services.database.open_read_transaction(once=True) as connection:
            connection.execute(sa.select(sa.func.max(db.versions.c.version))).scalar()
        services.vault.find("", "")
        return services.policies.make_policy_json(None)

    await services.kernel.run(TextTask.get_or_detect_spans, TextTask(NO_TEXT, await run_in_threadpool(read_stores)))
    return Status(status="ok", version=__version__)


@router.get("/metrics", response_class=Response, summary="For Prometheus")
def get_metrics(
    request: Request, services: AnyServices, session: SessionToken = None, key: BearerKey = None
) -> Response:
    """Counts and times, no text. Needs the permission `metrics`, unless a setting opens it."""
    if not services.settings.metrics_open:
        identify_caller(request, "metrics")
    return Response(generate_latest(services.metrics.registry), media_type="text/plain; version=0.0.4; charset=utf-8")
