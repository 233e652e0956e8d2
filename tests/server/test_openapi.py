"""The OpenAPI description: it is complete, and the server does what it says, whatever is sent (schemathesis).

The long form, against a server that runs: see CONTRIBUTING.md.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("schemathesis")

from unittest import SkipTest

import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from tests.server.routes import OPEN, routes

MOST = 4
"""Requests for each operation and each way to make them."""
UNTRIED = {
    ("POST", "/v1/session"),
    ("PUT", "/v1/session/password"),
    ("POST", "/v1/setup"),
    ("GET", "/v1/study/{token}"),
    ("POST", "/v1/study/{token}"),
}
"""Wrong tries there shut this address out; ``test_access`` and ``test_hostile`` have them."""


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
        if not [s for s in statuses if s.startswith(("2", "3"))]:
            wrong.append(f"{where}: what it gives")
        if secured and not {"401", "403"} <= statuses:
            wrong.append(f"{where}: 401 and 403")
        for status, response in one["responses"].items():
            if int(status) >= 400 and not any(one.get("schema") for one in response.get("content", {}).values()):
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


def test_an_export_is_of_the_type_that_is_described(site, described):
    admin = site.program("admin")
    assert admin.post("/v1/projects", json={"name": "exported"}).status_code == 201
    answer = admin.get("/v1/projects/exported/export")
    content = described["paths"]["/v1/projects/{name}/export"]["get"]["responses"]["200"]["content"]
    assert (answer.status_code, [answer.headers["content-type"]]) == (200, list(content))


@pytest.fixture(scope="module")
def live(make_live, tmp_path_factory):
    """A server as users run it."""
    with make_live(tmp_path_factory.mktemp("live")) as made:
        yield made


@pytest.fixture(scope="module")
def api(live) -> Any:
    """The description as schemathesis reads it."""
    with live.client() as client:
        assert client.get("/v1/openapi.json").status_code == 200  # made now, which may take longer than it waits
    return schemathesis.openapi.from_url(f"{live.url}/v1/openapi.json")


@pytest.mark.slow
def test_nothing_that_is_sent_breaks_the_server(live, api):
    from schemathesis import GenerationMode
    from schemathesis.checks import not_a_server_error
    from schemathesis.specs.openapi.checks import (
        content_type_conformance,
        response_schema_conformance,
        status_code_conformance,
    )

    checks = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
    headers = {"Authorization": f"Bearer {live.token}"}
    sent, wrong = 0, {}
    for found in api.get_all_operations():
        operation = found.ok()
        if (operation.method.upper(), operation.path) in UNTRIED:
            continue
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):

            @given(case=operation.as_strategy(generation_mode=mode))
            @settings(
                max_examples=MOST,
                derandomize=True,
                database=None,
                deadline=None,
                phases=[Phase.explicit, Phase.generate],
                suppress_health_check=list(HealthCheck),
            )
            def tried(case: Any) -> None:
                nonlocal sent
                sent += 1
                case.validate_response(case.call(headers=headers, timeout=60), checks=checks)

            try:
                tried()
            except (Unsatisfiable, SkipTest):
                continue  # nothing wrong can be sent there
            except BaseExceptionGroup as error:
                wrong[f"{operation.method} {operation.path} {mode.name}"] = "; ".join(map(str, error.exceptions))[:2000]
            except Exception as error:  # a check's own, or a client's: the test tells which
                wrong[f"{operation.method} {operation.path} {mode.name}"] = str(error)[:2000]
    assert not wrong, json.dumps(wrong, indent=1)
    assert sent > 200
