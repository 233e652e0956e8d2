"""Single sign-on, against an issuer of our own: who gets in with which role, and what is refused."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("authlib")
pytest.importorskip("httpx")

import httpx
from joserfc.jwk import RSAKey
from tests.server.conftest import ADDRESS, PASSWORD
from tests.server.issuer import CLIENT, Issuer, run_issuer

from allonym.errors import MissingExtra, RequestError, UsageError
from allonym.server import oidc
from allonym.server.access import COOKIE
from allonym.server.settings import Settings

ROLES = ("staff=annotator", "leads=reviewer", "ops=admin")
SUBJECTS = iter(range(1, 1000))


@pytest.fixture(scope="module")
def running() -> Iterator[Issuer]:
    with run_issuer() as issuer:
        yield issuer


@pytest.fixture
def issuer(running: Issuer) -> Iterator[Issuer]:
    number = next(SUBJECTS)
    running.reset()
    running.person |= {"sub": f"subject-{number}", "preferred_username": f"pam {number}"}
    yield running
    running.reset()


@pytest.fixture(scope="module")
def single(running: Issuer, make_site: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A site with single sign-on."""
    settings = {"oidc_issuer": running.url, "oidc_client_id": CLIENT, "oidc_roles": ROLES, "oidc_name": "Example"}
    with make_site(tmp_path_factory.mktemp("single") / "data", **settings) as site:
        yield site


@pytest.fixture(autouse=True)
def forget(request: pytest.FixtureRequest) -> None:
    """What the issuer said before is asked again."""
    if "single" in request.fixturenames:
        one = request.getfixturevalue("single").services.single_sign_on
        one._metadata, one._keys = (0.0, {}), (0.0, None)


def go_there(client: Any) -> str:
    """Begin, and return where the issuer sends the browser."""
    response = client.get("/v1/oidc/start")
    assert response.status_code == 303
    back = httpx.get(response.headers["location"], timeout=30)
    assert back.status_code == 302
    return str(back.headers["location"])


def come_back(client: Any, address: str) -> tuple[str, dict[str, Any] | None]:
    """Return where the server sends the browser at last, and the session, if there is one."""
    response = client.get(urlsplit(address)._replace(scheme="", netloc="").geturl())
    session = client.get("/v1/session")
    return response.headers["location"], session.json() if session.status_code == 200 else None


def sign_in(client: Any) -> tuple[str, dict[str, Any] | None]:
    return come_back(client, go_there(client))


def test_signing_in_and_out(single: Any, issuer: Issuer) -> None:
    client = single.client()
    assert client.get("/v1/session/ways").json() == {"local": False, "issuer": "Example"}
    place, session = sign_in(client)
    assert place == f"{ADDRESS}/" and session is not None
    assert (session["name"], session["role"]) == (issuer.person["preferred_username"], "annotator")
    leave = urlsplit(session["sign_out"])
    assert leave.path == "/leave" and parse_qs(leave.query)["post_logout_redirect_uri"] == [f"{ADDRESS}/"]
    old = client.cookies[COOKIE]
    assert client.delete("/v1/session", headers={"X-CSRF-Token": session["csrf"]}).status_code == 204
    client.cookies.set(COOKIE, old)
    assert client.get("/v1/session").status_code == 401
    assert client.post("/v1/session", json={"name": session["name"], "password": PASSWORD}).status_code == 401


def test_cookies_of_single_sign_on(single: Any, issuer: Issuer) -> None:
    client = single.client()
    begun = client.get("/v1/oidc/start")
    cookie = begun.headers["set-cookie"].lower()
    assert "httponly" in cookie and "samesite=lax" in cookie and "path=/v1/oidc" in cookie
    back = str(httpx.get(begun.headers["location"], timeout=30).headers["location"])
    done = client.get(urlsplit(back)._replace(scheme="", netloc="").geturl())
    cookies = [value.lower() for value in done.headers.get_list("set-cookie")]
    assert any(value.startswith(COOKIE) and "samesite=strict" in value and "httponly" in value for value in cookies)
    assert any(value.startswith('allonym_oidc=""') for value in cookies)


@pytest.mark.parametrize(
    ("groups", "role"),
    [
        (["staff"], "annotator"),
        (["other", "leads", "staff"], "reviewer"),
        ("ops", "admin"),
        (["ops", "staff"], "admin"),
    ],
)
def test_the_highest_role_counts(single: Any, issuer: Issuer, groups: Any, role: str) -> None:
    issuer.person["groups"] = groups
    _, session = sign_in(single.client())
    assert session is not None and session["role"] == role


@pytest.mark.parametrize("groups", [None, [], ["other"], [["ops"]], {"ops": 1}, "ops ", ["Ops"], 7])
def test_without_a_role_nobody_gets_in(single: Any, issuer: Issuer, groups: Any) -> None:
    issuer.person["groups"] = groups
    place, session = sign_in(single.client())
    assert place.endswith("/#/signin?refused=NoRole") and session is None


def test_the_role_is_that_of_the_last_time(single: Any, issuer: Issuer) -> None:
    issuer.person["groups"] = ["leads"]
    client = single.client()
    assert (sign_in(client)[1] or {})["role"] == "reviewer"
    issuer.person |= {"groups": ["staff"], "preferred_username": "another name"}
    _, session = sign_in(single.client())
    assert session is not None and session["role"] == "annotator" and session["name"].startswith("pam")
    assert client.get("/v1/session").json()["role"] == "annotator"


def test_a_name_of_another_account_is_not_taken_over(single: Any, issuer: Issuer) -> None:
    issuer.person |= {"preferred_username": "admin", "groups": ["ops"]}
    place, session = sign_in(single.client())
    assert place.endswith("refused=Taken") and session is None


def test_who_was_shut_out_or_removed(single: Any, issuer: Issuer) -> None:
    admin, name = single.page("admin"), issuer.person["preferred_username"]
    client = single.client()
    assert sign_in(client)[1]
    assert admin.patch(f"/v1/users/{name}", json={"active": False}).status_code == 200
    assert client.get("/v1/session").status_code == 401
    place, session = sign_in(single.client())
    assert place.endswith("refused=NotActive") and session is None
    assert admin.delete(f"/v1/users/{name}").status_code == 204
    assert sign_in(single.client())[1], "a removed account is made anew, as long as the issuer lets the person in"


def change_claims(**values: Any) -> Callable[[dict[str, Any], dict[str, Any], Any], Any]:
    return lambda header, claims, key: (header, {**claims, **values}, key)


def change_header(**values: Any) -> Callable[[dict[str, Any], dict[str, Any], Any], Any]:
    return lambda header, claims, key: ({**header, **values}, claims, key)


STRANGER = RSAKey.generate_key(2048, parameters={"kid": "one"}, private=True)
NOW = int(time.time())
ATTACKS: dict[str, Callable[[dict[str, Any], dict[str, Any], Any], Any]] = {
    "nonce of another flow": change_claims(nonce="x" * 43),
    "no nonce": change_claims(nonce=None),
    "another issuer": change_claims(iss="https://evil.example"),
    "no issuer": change_claims(iss=None),
    "for another client": change_claims(aud="another"),
    "for other clients": change_claims(aud=["another", "third"]),
    "for several, without the authorised party": change_claims(aud=["another", CLIENT]),
    "another authorised party": change_claims(azp="another"),
    "no audience": change_claims(aud=None),
    "expired": change_claims(exp=NOW - 3600, iat=NOW - 7200),
    "no expiry": change_claims(exp=None),
    "from the future": change_claims(iat=NOW + 36_000, exp=NOW + 72_000),
    "no subject": change_claims(sub=None),
    "an empty subject": change_claims(sub=""),
    "not signed": change_header(alg="none"),
    "signed with the public key as a secret": change_header(alg="HS256"),
    "signed by somebody else": lambda header, claims, key: (header, claims, STRANGER),
    "a key that nobody knows": change_header(kid="two"),
    "no name": change_claims(preferred_username=None),
    "a name that is none": change_claims(preferred_username="a/b"),
    "the name of the local user": change_claims(preferred_username="local"),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_tokens_that_are_refused(single: Any, issuer: Issuer, attack: str) -> None:
    issuer.change = ATTACKS[attack]
    client = single.client()
    place, session = sign_in(client)
    assert "/#/signin?refused=" in place and session is None and COOKIE not in client.cookies
    issuer.change = lambda header, claims, key: (header, claims, key)
    assert sign_in(single.client())[1], "the same without the attack"


def test_several_audiences_with_the_authorised_party(single: Any, issuer: Issuer) -> None:
    issuer.change = change_claims(aud=["another", CLIENT], azp=CLIENT)
    assert sign_in(single.client())[1]


@pytest.mark.parametrize("answer", [{"state": "x"}, {"state": None}, {"iss": "https://evil.example"}, {"code": None}])
def test_answers_that_are_refused(single: Any, issuer: Issuer, answer: dict[str, str | None]) -> None:
    issuer.answer = answer
    place, session = sign_in(single.client())
    assert place.endswith("refused=Refused") and session is None


def test_a_refusal_of_the_issuer(single: Any, issuer: Issuer) -> None:
    issuer.answer = {"error": "access_denied", "error_description": "<script>"}
    place, session = sign_in(single.client())
    assert place.endswith("refused=Refused") and session is None


def test_an_answer_belongs_to_one_browser_and_one_flow(single: Any, issuer: Issuer) -> None:
    victim, attacker = single.client(), single.client()
    stolen = go_there(attacker)
    assert come_back(single.client(), stolen)[1] is None, "without a cookie"
    victim.get("/v1/oidc/start")
    assert come_back(victim, stolen)[1] is None, "with the cookie of another flow"
    assert come_back(attacker, stolen)[1], "in the browser where it began"
    assert come_back(single.client(), stolen)[1] is None
    client = single.client()
    address = go_there(client)
    cookie = client.cookies["allonym_oidc"]
    assert come_back(client, address)[1]
    again = single.client()
    again.cookies.set("allonym_oidc", cookie)
    assert come_back(again, address)[1] is None, "a code works once"


def test_a_cookie_that_was_changed_or_is_old(single: Any, issuer: Issuer, monkeypatch: pytest.MonkeyPatch) -> None:
    client = single.client()
    address = go_there(client)
    cookie = client.cookies["allonym_oidc"]
    for wrong in ("", "x", cookie[:-8], cookie[:20] + ("A" if cookie[20] != "A" else "B") + cookie[21:]):
        other = single.client()
        other.cookies.set("allonym_oidc", wrong)
        assert come_back(other, address)[0].endswith("refused=Refused")
    monkeypatch.setattr(oidc, "get_unix_time", lambda: int(time.time()) + oidc.FLOW_SECONDS + 1)
    assert come_back(client, address)[1] is None


@pytest.mark.parametrize(
    "metadata",
    [
        {"issuer": "https://evil.example"},
        {"token_endpoint": "http://evil.example/token"},
        {"authorization_endpoint": "javascript:alert(1)"},
        {"jwks_uri": None},
    ],
)
def test_an_issuer_that_describes_itself_wrongly(single: Any, issuer: Issuer, metadata: dict[str, Any]) -> None:
    issuer.metadata = metadata
    client = single.client()
    begun = client.get("/v1/oidc/start").headers["location"]
    if begun.startswith(ADDRESS):
        assert begun.endswith("refused=IssuerFailed")
    else:
        assert sign_in(single.client())[1] is None


def test_a_session_goes_on_while_the_issuer_is_away(
    single: Any, issuer: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = single.client()
    assert sign_in(client)[1]
    monkeypatch.setattr(single.services.single_sign_on, "_metadata", (0.0, {}))
    issuer.metadata = {"issuer": "https://evil.example"}
    session = client.get("/v1/session")
    assert session.status_code == 200 and session.json()["sign_out"] is None


def test_an_issuer_that_is_away_is_asked_once_in_a_while(
    single: Any, issuer: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, sign_on, asked = single.client(), single.services.single_sign_on, []
    assert sign_in(client)[1]
    known = sign_on._metadata[1]

    def fetch(address: str) -> None:
        asked.append(address)
        raise RequestError("away", 503, "IssuerFailed")

    monkeypatch.setattr(sign_on, "_fetch_json", fetch)
    for metadata in (known, {}):
        asked.clear()
        monkeypatch.setattr(sign_on, "_metadata", (0.0, metadata))
        statuses = [client.get("/v1/session").status_code for _ in range(3)]
        assert (statuses, len(asked)) == ([200] * 3, 1)
        assert sign_on.make_sign_out_url(ADDRESS) if metadata else sign_on.make_sign_out_url(ADDRESS) is None


def test_new_keys_of_the_issuer(single: Any, issuer: Issuer, monkeypatch: pytest.MonkeyPatch) -> None:
    assert sign_in(single.client())[1]
    monkeypatch.setattr(oidc, "_KEYS_SECONDS", -1.0)
    issuer.keys["next"] = RSAKey.generate_key(2048, parameters={"kid": "next"}, private=True)
    issuer.signing = "next"
    assert sign_in(single.client())[1]


def test_no_token_is_logged_or_stored(
    single: Any, issuer: Issuer, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    caplog.set_level(logging.INFO)
    client = single.client()
    address = go_there(client)
    code = parse_qs(urlsplit(address).query)["code"][0]
    assert come_back(client, address)[1]
    issuer.change = change_claims(nonce="wrong")
    sign_in(single.client())
    stored = b"".join(path.read_bytes() for path in single.folder.rglob("*") if path.is_file())
    browsers_own = (f"GET {ADDRESS}", "HTTP/1.1 302")  # lines of this test's clients
    lines = [r.getMessage() for r in caplog.records if not r.name.startswith("uvicorn")]
    logged = "\n".join(line for line in lines if not any(part in line for part in browsers_own))
    for token in (*issuer.tokens, code, issuer.person["sub"]):
        assert token not in logged and token.encode() not in stored
    assert "single sign-on refused" in logged


def test_a_client_with_a_secret(issuer: Issuer, make_site: Any, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("client secret\n", encoding="utf-8")
    settings = {"oidc_issuer": issuer.url, "oidc_client_id": CLIENT, "oidc_roles": ("a=b=admin",)}
    settings |= {"oidc_role_claim": "realm_access.roles", "oidc_secret_file": str(secret)}
    issuer.person["realm_access"] = {"roles": ["a=b"]}
    with make_site(tmp_path / "data", **settings) as site:
        issuer.secret = "client secret"
        assert (sign_in(site.client())[1] or {})["role"] == "admin"
        issuer.secret = "another"
        assert sign_in(site.client())[1] is None


def test_a_server_without_an_issuer(site: Any) -> None:
    assert site.client().get("/v1/session/ways").json()["issuer"] is None
    for path in ("start", "callback"):
        assert site.client().get(f"/v1/oidc/{path}").status_code == 404


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"oidc_issuer": "http://login.example"}, "https"),
        ({"oidc_client_id": ""}, "oidc_client_id"),
        ({"oidc_roles": ()}, "oidc_roles"),
        ({"oidc_roles": ("staff=chief",)}, "roles: annotator"),
        ({"oidc_roles": ("staff",)}, "VALUE=ROLE"),
        ({"local": True}, "oidc_issuer"),
    ],
)
def test_settings_that_are_refused(values: dict[str, Any], says: str) -> None:
    settings = {"oidc_issuer": "https://login.example", "oidc_client_id": "x", "oidc_roles": ROLES, **values}
    with pytest.raises(UsageError, match=says):
        Settings(**settings)


def test_without_the_extra_the_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "authlib.integrations.httpx_client", None)
    settings = Settings(oidc_issuer="https://login.example", oidc_client_id="x", oidc_roles=ROLES)
    with pytest.raises(MissingExtra, match="oidc"):
        oidc.SingleSignOn(settings, None)  # type: ignore[arg-type]
