"""The OpenAPI description: it is complete, and the server does what it says, whatever is sent (schemathesis).

The long form, against a server that runs: see CONTRIBUTING.md.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

pytest.importorskip("fastapi")
schemathesis = pytest.importorskip("schemathesis")

from hypothesis import HealthCheck, Phase, settings
from tests.server.routes import OPEN, routes

MOST = 4
"""Requests for each operation and each way to make them."""


@pytest.fixture(scope="module")
def described(site) -> dict[str, Any]:
    """The description as clients get it."""
    return json.loads(site.client().get("/v1/openapi.json").content)


def operations(described: dict[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    return [
        (path, method.upper(), operation)
        for path, methods in described["paths"].items()
        for method, operation in methods.items()
    ]


def test_every_route_is_described(site, described):
    told = {(method, path) for path, method, _ in operations(described)}
    real = {(one.method, one.path) for one in routes(site.app) if one.method != "WEBSOCKET"}
    assert told == (real | OPEN) - {("GET", "/"), ("GET", "/study/{token}"), ("GET", "/v1/openapi.json")}


def test_every_operation_says_what_it_does_and_needs(described):
    wrong = []
    names = set()
    for path, method, one in operations(described):
        where = f"{method} {path}"
        if not one.get("summary") or not one.get("tags") or len(one.get("description", "")) < 8:
            wrong.append(f"{where}: summary, description or tag")
        if one["operationId"] in names:
            wrong.append(f"{where}: its id is another's")
        names.add(one["operationId"])
        secured = bool(one.get("security"))
        if secured == ((method, path) in OPEN):
            wrong.append(f"{where}: security")
        statuses = set(one["responses"])
        if not [s for s in statuses if s.startswith("2")]:
            wrong.append(f"{where}: what it gives")
        if secured and not {"401", "403"} <= statuses:
            wrong.append(f"{where}: 401 and 403")
        for status, response in one["responses"].items():
            schema = response.get("content", {}).get("application/json", {}).get("schema", {})
            if int(status) >= 400 and not schema:
                wrong.append(f"{where}: the shape of {status}")
    assert not wrong
    assert set(described["components"]["securitySchemes"]) == {"session", "key"}
    assert described["info"]["description"] and described["info"]["version"]


def test_the_shapes_have_descriptions_and_the_important_ones_examples(described):
    shapes = described["components"]["schemas"]
    bare = [name for name, one in shapes.items() if not one.get("description") and not name.startswith("Body_")]
    assert set(bare) <= {"ValidationError", "HTTPValidationError"}
    for name in ("Problem", "Detect", "Anonymize", "PolicyChoice"):
        assert "examples" in json.dumps(shapes[next(n for n in shapes if n == name or n.endswith(f"__{name}"))]), name


@pytest.fixture(scope="module")
def live(make_live, tmp_path_factory):
    """A server as users run it."""
    with make_live(tmp_path_factory.mktemp("live")) as made:
        yield made


@pytest.fixture(scope="module")
def api(live) -> Any:
    """The description as schemathesis reads it."""
    return schemathesis.openapi.from_url(f"{live.url}/v1/openapi.json")


schema = schemathesis.pytest.from_fixture("api")


@schema.parametrize()
@settings(
    max_examples=MOST,
    derandomize=True,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_nothing_that_is_sent_breaks_the_server(live, case):
    from schemathesis.checks import not_a_server_error
    from schemathesis.specs.openapi.checks import (
        content_type_conformance,
        response_schema_conformance,
        status_code_conformance,
    )

    if case.operation.path == "/v1/session" and case.operation.method.upper() != "GET":
        return  # wrong passwords would shut this address out
    if case.operation.path.startswith(("/v1/setup", "/v1/study/", "/v1/session/")):
        return
    response = case.call(headers={"Authorization": f"Bearer {live.token}"}, timeout=60)
    case.validate_response(
        response,
        checks=[
            not_a_server_error,
            status_code_conformance,
            content_type_conformance,
            response_schema_conformance,
        ],
    )
