"""Who may do what: each cell of the table of routes and roles, and of the table of scopes."""

from __future__ import annotations

import json
import secrets
import time
from typing import Any

import pytest

pytest.importorskip("fastapi")

from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.websockets import WebSocketDisconnect
from tests.server.conftest import ADDRESS, PASSWORD
from tests.server.routes import OPEN, Route, routes

from allonym import anonymize

STREAM = f"{ADDRESS.replace('http', 'ws')}/v1/stream"
CALLERS = ("nobody", "annotator", "reviewer", "admin")
RULES = {"name": "default", "detectors": ["rules"]}
MAIL = "ada@example.com"
OWN_REFUSAL = {("POST", "/v1/setup"): 403, ("POST", "/v1/session/link"): 403, ("POST", "/v1/session"): 401}
"""Of a wrong link, of a wrong password."""

BODIES = {
    ("POST", "/v1/setup"): {"token": "x", "name": "n", "password": PASSWORD},
    ("POST", "/v1/session/link"): {"token": "x"},
    ("POST", "/v1/session"): {"name": "n", "password": PASSWORD},
}


def test_each_route_lets_in_whom_the_table_names(site: Any, cases: Any) -> None:
    table = {row["route"]: row for row in cases("server_roles")}
    known = [*routes(site.app), *(Route(*route, None) for route in sorted(OPEN))]
    names = {str(route) for route in known if route.method != "WEBSOCKET"}
    streams = {
        f"{route} {mode}" for route in known if route.method == "WEBSOCKET" for mode in ("annotate", "transcript")
    }
    assert names | streams == set(table), "a route is missing in the table, or gone"
    wrong = {}
    for route in known:
        for caller in CALLERS if route.method != "WEBSOCKET" else ():
            status = _call(site, route, caller)
            refusal = 401 if caller == "nobody" else 403
            is_refused = status in (401, 403) and OWN_REFUSAL.get((route.method, route.path)) != status
            if is_refused is table[str(route)][caller] or (is_refused and status != refusal):
                wrong[f"{route} {caller}"] = status
    assert not wrong


def _call(site: Any, route: Route, caller: str) -> int:
    client = site.client() if caller == "nobody" else site.page(caller)
    has_form = route.method in ("GET", "DELETE") or "jobs" in route.path or "files" in route.path
    body = {} if has_form else {"json": BODIES.get((route.method, route.path), {})}
    return int(client.request(route.method, route.target, **body).status_code)


@pytest.mark.parametrize("mode", ["annotate", "transcript"])
def test_a_stream_lets_in_whom_the_table_names(site: Any, cases: Any, mode: str) -> None:
    row = {row["route"]: row for row in cases("server_roles")}[f"WEBSOCKET /v1/stream {mode}"]
    callers = {caller: None if caller == "nobody" else site.program(caller) for caller in CALLERS}
    assert {name: _opens(client or site.client(), mode) for name, client in callers.items()} == {
        name: row[name] for name in CALLERS
    }


def _opens(client: Any, mode: str, **options: Any) -> bool:
    try:
        with client.websocket_connect(STREAM, headers={"Origin": ADDRESS}) as socket:
            socket.send_json({"type": "open", "mode": mode, "policy": RULES, **options})
            socket.send_json({"type": "end"} if mode == "transcript" else {"type": "text", "version": 1, "text": "x"})
            return bool(socket.receive_json()["type"] != "error")
    except (WebSocketDisconnect, AssertionError):
        return False
    except Exception as error:  # Starlette's class for a refused handshake is named so
        if type(error).__name__ == "WebSocketDenialResponse":
            return False
        raise


@pytest.fixture(scope="module")
def people(site: Any) -> dict[str, Any]:
    """Clients of an owner, a user with a grant, a stranger, an admin, and the programs of the owner."""
    accounts = site.services.accounts
    for name in ("owner", "granted", "stranger"):
        accounts.make_account(accounts.make_account_link("reviewer")[0], name, PASSWORD)
    clients = {name: site.page(name) for name in ("owner", "granted", "stranger", "admin")}
    key = {"name": "all", "permissions": ["detect", "anonymize", "jobs", "restore"]}
    token = clients["owner"].post("/v1/keys", json=key).json()["key"]
    weak = {"name": "weak", "permissions": ["detect", "anonymize", "jobs"]}
    return {
        **clients,
        "key": site.client(Authorization=f"Bearer {token}"),
        "weak key": site.client(Authorization=f"Bearer {clients['owner'].post('/v1/keys', json=weak).json()['key']}"),
        "nobody": site.client(),
    }


def test_each_cell_of_the_table_of_scopes(people: dict[str, Any], cases: Any) -> None:
    """The scope of ``owner``, in which ``granted`` was let; ``free`` is a scope that is new, ``reserved`` the gateway's."""
    owner, wrong = people["owner"], {}
    safe = _anonymize(owner, "letters").json()["text"]
    assert owner.post("/v1/scopes/grants", json={"scope": "letters", "user": "granted"}).status_code == 204
    for row in cases("server_scopes"):
        scope = {"owned": "letters", "free": secrets.token_hex(8), "reserved": "gateway/a/b"}[row["scope"]]
        status = _use_scope(people[row["who"]], row["action"], scope, safe)
        if status != row["status"]:
            wrong[json.dumps(row)] = status
    assert not wrong


def _use_scope(client: Any, action: str, scope: str, safe: str) -> int:
    text = {"text": safe, "scope": scope}
    if action == "restore in a batch":
        response = client.post("/v1/restore/batch", json={"items": [text]})
        is_failure = response.status_code == 200 and "error" in response.json()["results"][0]
        assert MAIL not in response.text or not is_failure
        return 404 if is_failure else int(response.status_code)
    if action == "stream":
        return 200 if _opens(client, "transcript", scope=scope) else 403
    if action.startswith("job"):
        data = {"kind": action.partition(" ")[2], "options": json.dumps({"scope": scope})}
        response = client.post("/v1/jobs", data=data, files=[("files", ("a.txt", safe.encode()))])
        if response.status_code == 202:
            client.delete(f"/v1/jobs/{response.json()['id']}")
        return int(response.status_code)
    if action in ("grant", "withdraw"):
        path = f"/v1/scopes/{'grants' if action == 'grant' else 'withdrawals'}"
        return int(client.post(path, json={"scope": scope, "user": "reviewer"}).status_code)
    if action == "list":
        names = [row["name"] for row in client.get("/v1/scopes").json()["scopes"]]
        return 200 if scope in names else 404
    body = text if action == "restore" else {**text, "text": f"Write to {MAIL}", "policy": RULES}
    response = client.post(
        {"restore": "/v1/restore", "anonymize": "/v1/anonymize", "plan": "/v1/plans"}[action], json=body
    )
    if action == "restore":
        assert (MAIL in response.text) is (response.status_code == 200)
    return int(response.status_code)


def _anonymize(client: Any, scope: str) -> Any:
    return client.post("/v1/anonymize", json={"text": f"Write to {MAIL}", "scope": scope, "policy": RULES})


STEPS = st.lists(
    st.tuples(
        st.sampled_from(("write", "write", "grant", "withdraw", "restore", "restore")),
        st.sampled_from(("owner", "granted", "stranger", "admin")),
        st.sampled_from(("owner", "granted", "stranger", "admin")),
        st.sampled_from("ab"),
    ),
    max_size=14,
)


@given(steps=STEPS)
@settings(max_examples=20)
def test_scopes_of_others_are_never_restored(people: dict[str, Any], steps: list[tuple[str, str, str, str]]) -> None:
    """Whatever is written, granted and withdrawn before, in any order: only its owner and who has a grant restores."""
    mark = secrets.token_hex(8)
    owners: dict[str, str] = {}
    members: dict[str, set[str]] = {"a": set(), "b": set()}
    for action, who, whom, letter in steps:
        client, scope = people[who], f"{mark} {letter}"
        may_use = owners.get(letter) == who or who in members[letter]
        may_give = letter in owners and (owners[letter] == who or who == "admin")
        if action == "write":
            status = _anonymize(client, scope).status_code
            assert status == (200 if may_use or letter not in owners else 403)
            if status == 200:
                owners.setdefault(letter, who)
        elif action == "restore":
            response = client.post("/v1/restore", json={"text": "Write to [EMAIL_ADDRESS_1]", "scope": scope})
            assert (MAIL in response.text, response.status_code) == ((True, 200) if may_use else (False, 404))
        else:
            path = f"/v1/scopes/{'grants' if action == 'grant' else 'withdrawals'}"
            response = client.post(path, json={"scope": scope, "user": whom})
            assert response.status_code == (204 if may_give else 404)
            if may_give:
                (members[letter].add if action == "grant" else members[letter].discard)(whom)


def test_what_was_in_the_vault_before_belongs_to_nobody(site: Any, people: dict[str, Any]) -> None:
    anonymize(f"Write to {MAIL}", "default", vault=site.services.vault, scope="older")
    assert _anonymize(people["stranger"], "older").status_code == 403
    assert people["stranger"].post("/v1/restore", json={"text": "x", "scope": "older"}).status_code == 404
    listed = {row["name"]: row for row in people["admin"].get("/v1/scopes").json()["scopes"]}
    assert listed["older"]["owner"] is None
    granted = {"scope": "older", "user": "stranger"}
    assert people["owner"].post("/v1/scopes/grants", json=granted).status_code == 404
    assert people["admin"].post("/v1/scopes/grants", json=granted).status_code == 204
    assert _anonymize(people["stranger"], "older").status_code == 200


def test_scopes_of_a_removed_user_belong_to_nobody(site: Any, people: dict[str, Any]) -> None:
    accounts = site.services.accounts
    accounts.make_account(accounts.make_account_link("reviewer")[0], "leaving", PASSWORD)
    leaving = site.page("leaving")
    safe = _anonymize(leaving, "left").json()["text"]
    assert people["admin"].delete("/v1/users/leaving").status_code == 204
    accounts.make_account(accounts.make_account_link("reviewer")[0], "leaving", PASSWORD)  # another person of that name
    response = site.page("leaving").post("/v1/restore", json={"text": safe, "scope": "left"})
    assert response.status_code == 404 and MAIL not in response.text


@pytest.mark.slow
def test_a_job_that_waited_needs_its_scope_still(
    site: Any, people: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    owner, stranger, runner = people["owner"], people["stranger"], site.services.jobs.runner
    safe = _anonymize(owner, "waited").json()["text"]
    grant = {"scope": "waited", "user": "stranger"}
    owner.post("/v1/scopes/grants", json=grant)
    with monkeypatch.context() as patch:
        patch.setattr(runner, "_workers", 0)
        data = {"kind": "restore", "options": json.dumps({"scope": "waited"})}
        files = [("files", ("a.txt", safe.encode()))]
        jobs = [client.post("/v1/jobs", data=data, files=files).json() for client in (stranger, owner)]
        assert owner.post("/v1/scopes/withdrawals", json=grant).status_code == 204
    runner.wake()
    until = time.monotonic() + 120
    while any(job["state"] in ("queued", "running") for job in jobs) and time.monotonic() < until:
        time.sleep(0.1)
        jobs = [c.get(f"/v1/jobs/{j['id']}").json() for c, j in zip((stranger, owner), jobs, strict=True)]
    assert [job["state"] for job in jobs] == ["failed", "done"], jobs
    assert "no such scope" in jobs[0]["error"] and not jobs[0]["results"]


def test_results_of_a_job_need_its_scope(site: Any, people: dict[str, Any]) -> None:
    """An admin sees the jobs of others, but what one restored from a scope only with a grant."""
    safe = _anonymize(people["owner"], "kept").json()["text"]
    data = {"kind": "restore", "options": json.dumps({"scope": "kept"})}
    job = people["owner"].post("/v1/jobs", data=data, files=[("files", ("a.txt", safe.encode()))]).json()
    path = f"/v1/jobs/{job['id']}"
    assert people["admin"].get(path).status_code == 200
    response = people["admin"].get(f"{path}/results/a-restored.txt")
    assert response.status_code == 404 and MAIL not in response.text
