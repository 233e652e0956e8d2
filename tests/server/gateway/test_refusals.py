"""What is not sent, and what is told when it is not, or when the upstream fails."""

from __future__ import annotations

import json
import logging
import re
import socket
import time

import httpx
import openai
import pytest
from tests.server.gateway.upstream import chunk, completion, events, last_text, until

from allonym import registry
from allonym.errors import DataError, UsageError
from allonym.server.gateway import Client, Settings, create_app
from allonym.server.gateway.settings import digest_client_key

PRIVATE = "Ada Brook, ada.brook@example.com"
CHAT = {"model": "echo-1", "messages": [{"role": "user", "content": PRIVATE}]}


def post(address, body, path="chat/completions", **headers):
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    sent = {"Content-Type": "application/json", **{k.replace("_", "-"): v for k, v in headers.items()}}
    return httpx.post(f"{address}/v1/{path}", content=data, headers=sent, timeout=20)


def chat(**more):
    return {**CHAT, **more}


def messages(*given):
    return {"model": "echo-1", "messages": list(given)}


IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
REFUSED = {
    "image": (messages({"role": "user", "content": [IMAGE]}), "unsupported_content", "messages[0].content[0]"),
    "audio": (messages({"role": "user", "content": [{"type": "input_audio", "input_audio": {}}]}), "unsupported_content", None),
    "file": (messages({"role": "user", "content": [{"type": "file", "file": {"file_id": "f"}}]}), "unsupported_content", None),
    "part": (messages({"role": "user", "content": [{"type": "video", "video": "x"}]}), "unknown_part", None),
    "no type": (messages({"role": "user", "content": [{"text": PRIVATE}]}), "unknown_part", None),
    "no text": (messages({"role": "user", "content": [{"type": "text", "text": {"value": PRIVATE}}]}), "invalid_value", None),
    "number": (messages({"role": "user", "content": 2125550142}), "invalid_value", "messages[0].content"),
    "parameter": (chat(prompt=PRIVATE), "unknown_parameter", "prompt"),
    "field": (messages({"role": "user", "content": "x", "whose": PRIVATE}), "unknown_parameter", "messages[0]"),
    "model": (chat(model=PRIVATE), "invalid_value", "model"),
    "role": (messages({"role": PRIVATE, "content": "x"}), "invalid_value", "messages[0].role"),
    "role of no kind": (messages({"role": ["tool"], "content": "x"}), "invalid_value", "messages[0].role"),
    "part of no kind": (messages({"role": "user", "content": [{"type": ["text"], "text": PRIVATE}]}), "unknown_part", None),
    "made-up word": (chat(service_tier="Ada.Brook"), "unknown_value", "service_tier"),
    "made-up type of a call": (messages({"role": "assistant", "tool_calls": [{"type": "AdaBrook"}]}), "unknown_value", "messages[0].tool_calls[0].type"),
    "number for a keyword": (chat(tools=[{"type": "function", "function": {"name": "f", "parameters": {"required": [2125550142]}}}]), "invalid_value", "tools[0].function.parameters.required"),
    "number for a format": (chat(tools=[{"type": "function", "function": {"name": "f", "parameters": {"format": 2125550142}}}]), "invalid_value", "tools[0].function.parameters.format"),
    "made-up role": (messages({"role": "Ada.Brook", "content": "x"}), "invalid_value", "messages[0].role"),
    "hosted tool": (chat(tools=[{"type": "web_search", "user_location": {"city": "Springfield"}}]), "unsupported_tool", "tools[0]"),
    "tool name": (chat(tools=[{"type": "function", "function": {"name": PRIVATE}}]), "invalid_value", "tools[0].function.name"),
    "a search by default": (chat(web_search_options={}), "unsupported_parameter", "web_search_options"),
    "where the user is": (chat(web_search_options={"user_location": {"city": "x"}}), "unsupported_parameter", "web_search_options"),
    "voice": (chat(modalities=["text", "audio"]), "unsupported_parameter", "modalities"),
    "temperature": (chat(temperature=PRIVATE), "invalid_value", "temperature"),
    "bias": (chat(logit_bias={PRIVATE: 1}), "invalid_value", "logit_bias"),
    "key": (chat(metadata={PRIVATE: "x"}), "not_protected", "metadata"),
    "messages": (chat(messages=PRIVATE), "invalid_value", "messages"),
    "message": (chat(messages=[PRIVATE]), "invalid_value", "messages[0]"),
    "list": ([CHAT], "invalid_json", None),
    "no json": (b'{"model": "' + PRIVATE.encode(), "invalid_json", None),
    "latin": ('{"model": "caf\xe9"}'.encode("latin-1"), "invalid_json", None),
    "deep": (b'{"messages": ' + b"[" * 100_000, "invalid_json", None),
    "deep schema": (chat(tools=[{"type": "function", "function": {"name": "f", "parameters": json.loads('{"a":' * 200 + "1" + "}" * 200)}}]), "invalid_value", None),
    "infinite": (b'{"model": "echo-1", "temperature": Infinity}', "invalid_json", None),
    "huge number in a tool's output": (messages({"role": "assistant", "content": "x", "annotations": [1e999]}), "invalid_json", None),
    "huge number": (b'{"model": "echo-1", "temperature": 1e999}', "invalid_value", "temperature"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_protected_is_not_sent(name, gateway, upstream):
    body, code, param = REFUSED[name]
    got = post(gateway, body)
    error = got.json()["error"]
    assert got.status_code == 400
    assert (error["code"], error["type"]) == (code, "invalid_request_error")
    assert param is None or error["param"] == param
    assert "Ada" not in got.text and "example.com" not in got.text
    assert not upstream.asked


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"previous_response_id": "resp_0a1b2c3d4e5f"}, "conversation_required"),
        ({"conversation": {"id": "conv_0a1b2c3d4e5f"}}, "conversation_required"),
        ({"background": True}, "unsupported_parameter"),
        ({"input": [{"type": "item_reference", "id": "msg_0a1b2c3d4e"}]}, "conversation_required"),
        ({"input": [{"type": "image_generation_call", "id": "ig_0a1b2c3d4e", "result": "AAAA"}]}, "unknown_type"),
        ({"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "x"}]}]}, "unsupported_content"),
    ],
)  # fmt: skip
def test_responses_that_are_not_sent(body, code, gateway, upstream):
    got = post(gateway, {"model": "echo-1", "input": PRIVATE, **body}, "responses")
    assert got.status_code == 400 and got.json()["error"]["code"] == code
    assert not upstream.asked


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/v1/completions"), ("POST", "/v1/audio/speech"), ("POST", "/v1/files"), ("GET", "/v1/chat/completions"),
        ("GET", "/v1/responses/resp_1"), ("DELETE", "/v1/models/x"), ("POST", "/chat/completions"), ("GET", "/"),
        ("POST", "/v1/chat/completions/"), ("POST", "/v1/../v1/files"), ("PUT", "/v1/embeddings"),
    ],
)  # fmt: skip
def test_nothing_else_is_offered(method, path, gateway, upstream, caplog):
    with caplog.at_level(logging.INFO, "allonym.gateway"):
        got = httpx.request(method, gateway + path, json=CHAT)
    assert got.status_code in (404, 405)
    assert got.json()["error"]["code"] == "not_offered"
    assert not upstream.asked
    (line,) = [record.getMessage() for record in caplog.records]
    assert line.startswith(f"{method} (not offered) status={got.status_code}")


def test_health(gateway, upstream):
    assert httpx.get(f"{gateway}/healthz").json() == {"status": "ok"}
    assert not upstream.asked


def test_a_detector_that_fails_stops_the_request(gateway_with, upstream, tmp_path, monkeypatch, caplog):
    def build(policy):
        def find(document):
            if "Ada" in document.text:
                raise KeyError(document.text)
            return []

        return find

    monkeypatch.setattr(registry.detectors, "_table", {**registry.detectors._table, "bursting": build})
    path = tmp_path / "bursting.toml"
    path.write_text('extends = "reversible"\n[detect]\ndetectors = ["rules", "bursting"]\n')
    caplog.set_level(logging.DEBUG)
    address = gateway_with(policy=str(path))
    got = post(address, CHAT)
    assert got.status_code == 422
    assert got.json()["error"]["code"] == "not_protected"
    assert "a detector failed with KeyError" in got.json()["error"]["message"]
    assert not upstream.asked and "Ada" not in got.text and "Ada" not in caplog.text
    assert post(address, messages({"role": "user", "content": "Hello"})).status_code == 200


def test_anything_unforeseen_stops_the_request(gateway_with, upstream, monkeypatch, caplog):
    address = gateway_with()
    monkeypatch.setattr(
        "allonym.server.gateway.protect.replace_found", lambda *a, **k: (_ for _ in ()).throw(RuntimeError(PRIVATE))
    )
    got = post(address, CHAT)
    assert got.status_code == 500 and got.json()["error"]["code"] == "gateway_failed"
    assert "Ada" not in got.text + caplog.text and not upstream.asked


def test_bodies_are_limited(gateway_with, upstream):
    address = gateway_with(max_body_mb=0.01, max_characters=500)
    assert post(address, chat(messages=[{"role": "user", "content": "a " * 8000}])).status_code == 413
    got = post(address, chat(messages=[{"role": "user", "content": "a " * 400}]))
    assert got.status_code == 413 and got.json()["error"]["code"] == "too_large"

    def pieces():
        for _ in range(40):
            yield b" " * 1000

    got = httpx.post(f"{address}/v1/chat/completions", content=pieces(), headers={"Content-Type": "application/json"})
    assert got.status_code == 413
    assert not upstream.asked


def test_slow_clients_are_ended(gateway_with, upstream):
    address = gateway_with(body_timeout=0.2)
    host, port = address.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=10) as wire:
        wire.sendall(
            b"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
            b"Content-Length: 100\r\n\r\n{"
        )
        assert b" 408 " in wire.recv(4096).partition(b"\r\n")[0]
    assert not upstream.asked


@pytest.mark.parametrize("kind", ["text/plain", "", "multipart/form-data"])
def test_forms_of_web_pages_are_refused(kind, gateway, upstream):
    assert post(gateway, CHAT, Content_Type=kind).status_code == 415
    assert not upstream.asked


def test_other_names_of_the_host_are_refused(gateway, gateway_with, upstream):
    assert post(gateway, CHAT, Host="evil.example").status_code == 421
    assert httpx.get(f"{gateway}/v1/models", headers={"Host": "evil.example"}).status_code == 421
    assert not upstream.asked
    assert post(gateway_with(hosts=("inside.example",)), CHAT, Host="inside.example:1234").status_code == 200


# What the operator allows


def test_what_the_settings_allow_is_sent_as_it_is(gateway_with, upstream):
    address = gateway_with(
        media=("image",), hosted_tools=("web_search",), parameters=("guided",), tools="keep", explain=False
    )
    tool = {"type": "function", "function": {"name": "f", "description": "for Ada Brook"}}
    body = chat(tools=[{"type": "web_search"}, tool], guided={"a": ["b"]})
    body["messages"] = [{"role": "user", "content": [IMAGE, {"type": "text", "text": PRIVATE}]}]
    assert post(address, body).status_code == 200
    sent = upstream.body
    assert sent["tools"] == body["tools"] and sent["guided"] == {"a": ["b"]}
    assert sent["messages"] == [{"role": "user", "content": [IMAGE, {"type": "text", "text": "<PERSON 1>, <EMAIL 1>"}]}]


# Keys, policies, headers

KEY, OTHER = "agw_a-key-of-a-program", "agw_a-key-of-another"


@pytest.fixture
def keyed(gateway_with, untagged_reversible, monkeypatch):
    monkeypatch.setenv("THEIR_KEY", "sk-upstream")
    clients = {
        "billing": Client(key_sha256=digest_client_key(KEY), upstream_key_env="THEIR_KEY", policies=("sanitize",)),
        "support": Client(key_sha256=digest_client_key(OTHER), policy="sanitize"),
    }
    return gateway_with(clients=clients)


def test_keys_of_programs(keyed, upstream):
    for headers in ({}, {"Authorization": "Bearer no"}, {"Authorization": f"Basic {KEY}"}, {"X_Allonym_Key": "no"}):
        got = post(keyed, CHAT, **headers)
        assert got.status_code == 401 and got.json()["error"]["code"] == "invalid_api_key"
        assert httpx.get(f"{keyed}/v1/models").status_code == 401
    assert not upstream.asked
    assert post(keyed, CHAT, Authorization=f"Bearer {KEY}").status_code == 200
    assert upstream.asked[-1][1]["authorization"] == "Bearer sk-upstream"
    assert post(keyed, CHAT, X_Allonym_Key=OTHER, Authorization="Bearer sk-own").status_code == 200
    assert upstream.asked[-1][1]["authorization"] == "Bearer sk-own"
    assert post(keyed, CHAT, X_Allonym_Key=KEY, Authorization="Bearer sk-own").status_code == 200
    assert upstream.asked[-1][1]["authorization"] == "Bearer sk-own"
    for headers in (
        {"Authorization": f"Bearer {OTHER}"},
        {"Authorization": f"Bearer {OTHER}", "X_Allonym_Key": ""},
        {"Authorization": f"Bearer {OTHER}", "X_Allonym_Key": OTHER},
        {"Authorization": f"Bearer  {KEY}", "api_key": OTHER, "X_Allonym_Key": OTHER},
    ):
        assert post(keyed, CHAT, **headers).status_code == 200
        assert not {"authorization", "api-key"} & set(upstream.asked[-1][1])


def test_a_key_that_no_header_can_hold(gateway, upstream, caplog):
    with caplog.at_level(logging.INFO, "allonym.gateway"):
        for path, how in (("models", "GET"), ("chat/completions", "POST")):
            got = httpx.request(
                how, f"{gateway}/v1/{path}", json=CHAT, headers={"Authorization": "Bearer café".encode("latin-1")}
            )
            assert got.status_code == 400 and got.json()["error"]["code"] == "invalid_value"
    assert not upstream.asked and len(caplog.records) == 2


def test_policies_by_key_and_by_header(keyed, gateway, upstream):
    post(keyed, CHAT, X_Allonym_Key=OTHER)
    assert "EMAIL_1" in json.dumps(upstream.body)
    post(keyed, CHAT, X_Allonym_Key=KEY)
    assert "<EMAIL 1>" in json.dumps(upstream.body)
    post(keyed, CHAT, X_Allonym_Key=KEY, X_Allonym_Policy="sanitize")
    assert "EMAIL_1" in json.dumps(upstream.body)
    upstream.asked.clear()
    for address, name in ((gateway, "sanitize"), (keyed, "default"), (gateway, "../../etc/passwd")):
        got = post(address, CHAT, X_Allonym_Key=KEY, X_Allonym_Policy=name)
        assert got.status_code == 400 and got.json()["error"]["code"] == "unknown_policy"
    assert not upstream.asked


def test_a_file_of_a_policy_is_named_by_the_policys_name(gateway_with, upstream, tmp_path):
    (tmp_path / "shouting.toml").write_text(
        'extends = "sanitize"\n[detect]\ndetectors = ["rules"]\n[tag]\nstyle = "!{label}!{n}"\n'
    )
    address = gateway_with(policies=(str(tmp_path / "shouting.toml"),))
    assert post(address, CHAT, X_Allonym_Policy="shouting").status_code == 200
    got = post(address, CHAT, X_Allonym_Policy="loud")
    assert "allowed are: reversible-untagged, shouting" in got.json()["error"]["message"]


@pytest.mark.parametrize("policy", ["wild-tags", "reversible"])
def test_the_model_is_told_of_placeholders_of_any_style(policy, gateway_with, upstream, tmp_path):
    own = tmp_path / "own.toml"
    own.write_text(f'extends = "{policy}"\n[detect]\ndetectors = ["rules"]\n')
    address = gateway_with(policy=str(own), key=b"a key only for the tests, 32 byte")
    assert post(address, CHAT).status_code == 200
    told, said = upstream.body["messages"]
    assert told["role"] == "system" and said["content"].rpartition(" ")[0] in ("Ada Brook, <EMAIL", "Ada Brook,")
    assert re.search("<EMAIL[^>]*>", said["content"])[0] in told["content"]


def test_a_request_without_messages(gateway, upstream):
    assert post(
        gateway, {"model": "echo-1", "messages": [], "metadata": {"a": "Ada Brook"}, "stop": "x"}
    ).status_code in (200, 502)
    assert [m["role"] for m in upstream.body["messages"]] == ["system"]


def test_only_known_headers_go_out(gateway, upstream):
    got = post(
        gateway, CHAT, Authorization="Bearer sk-own", OpenAI_Organization="org-1", Cookie="a=b", X_Forwarded_For="1.2.3.4",
        Referer="https://example.com/ada", User_Agent="Ada's", X_Stainless_OS="Linux", X_Custom="ada",
    )  # fmt: skip
    assert got.status_code == 200
    names = {name.lower() for name in upstream.asked[-1][1]}
    assert names <= {
        "host", "accept", "accept-encoding", "connection", "user-agent", "content-length", "content-type", "authorization",
        "openai-organization",
    }  # fmt: skip
    assert upstream.asked[-1][1]["user-agent"] == "allonym-gateway"


@pytest.mark.parametrize("attempt", ["jane.doe@example.com", "Ada-Brook"])
def test_what_somebody_wrote_into_a_header_stays(gateway, upstream, attempt):
    assert post(gateway, CHAT, Idempotency_Key=attempt, X_Client_Request_Id=attempt).status_code == 200
    assert attempt not in str(upstream.asked[-1][1])
    machine = "stainless-python-retry-123e4567-e89b-12d3-a456-426614174000"
    assert post(gateway, CHAT, Idempotency_Key=machine).status_code == 200
    assert machine in str(upstream.asked[-1][1])


@pytest.mark.parametrize("path", ["models/x/../../files/f1", "models/..", "models/x//y", "models/x/./y", "models/."])
def test_no_other_route_is_reached_by_a_models_name(gateway, upstream, path):
    host, port = gateway.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), 10) as one:
        one.sendall(f"GET /v1/{path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n".encode())
        came = b""
        while more := one.recv(65_536):
            came += more
    assert came.split(b" ")[1] in (b"400", b"404")
    assert not upstream.asked


def test_a_number_in_a_schema_is_protected_like_any_other(gateway, upstream):
    def asked(bound):
        parameters = {"type": "object", "properties": {"n": {"type": "integer", "minimum": bound}}}
        tool = {"type": "function", "function": {"name": "find", "parameters": parameters}}
        assert post(gateway, chat(tools=[tool])).status_code == 200
        return upstream.body["tools"][0]["function"]["parameters"]["properties"]["n"]["minimum"]

    assert asked(7) == 7
    assert asked(2125550142) != 2125550142


def test_questions_behind_the_path(gateway, upstream):
    assert post(gateway, CHAT, "chat/completions?api-version=2024-10-21").status_code == 200
    assert upstream.asked[-1][0] == "/v1/chat/completions?api-version=2024-10-21"
    upstream.asked.clear()
    assert post(gateway, CHAT, "chat/completions?who=ada").status_code == 400
    assert not upstream.asked


# The upstream fails


@pytest.mark.parametrize("status", [400, 401, 404, 429, 500, 503])
def test_its_errors_are_passed_on(client, upstream, status):
    told = {"error": {"message": "no: <PERSON 1>", "type": "t", "param": None, "code": "c"}}
    upstream.behaviour = lambda handler, body: handler.send(told, status, retry_after="7", set_cookie="a=b")
    with pytest.raises(openai.APIStatusError) as caught:
        client.chat.completions.create(**CHAT)
    assert caught.value.status_code == status and caught.value.code == "c"
    assert "no: Ada Brook" in str(caught.value)
    assert caught.value.response.headers["retry-after"] == "7" and "set-cookie" not in caught.value.response.headers


def test_its_pages_and_redirects_are_not(client, upstream):
    upstream.behaviour = lambda handler, body: handler.send("<html>secret</html>", 503, Content_Type="text/html")
    with pytest.raises(openai.InternalServerError, match="HTTP 503, and not with a JSON object") as caught:
        client.chat.completions.create(**CHAT)
    assert "secret" not in str(caught.value)
    upstream.behaviour = lambda handler, body: handler.send("x", 200, Content_Type="text/html")
    with pytest.raises(openai.InternalServerError, match="not with a JSON object"):
        client.chat.completions.create(**CHAT)
    upstream.asked.clear()
    upstream.behaviour = lambda handler, body: handler.send("", 307, Location=f"{upstream.url}/elsewhere")
    with pytest.raises(openai.InternalServerError, match="redirects are not followed"):
        client.chat.completions.create(**CHAT)
    assert len(upstream.asked) == 1


def test_it_cannot_be_reached(gateway_with):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    got = post(gateway_with(upstream=f"http://127.0.0.1:{port}"), CHAT)
    assert got.status_code == 502 and got.json()["error"]["code"] == "upstream_unreachable"


def test_it_says_nothing_for_too_long(gateway_with, upstream):
    upstream.behaviour = lambda handler, body: time.sleep(1)
    got = post(gateway_with(timeout=0.2), CHAT)
    assert got.status_code == 504 and got.json()["error"]["code"] == "upstream_timeout"


def test_it_breaks_off_before_the_end(client, upstream):
    def behave(handler, body):
        handler.send_response(200)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Content-Length", "5000")
        handler.end_headers()
        handler.wfile.write(b'{"choices": [')
        handler.close_connection = True

    upstream.behaviour = behave
    with pytest.raises(openai.InternalServerError, match="broke the connection off"):
        client.chat.completions.create(**CHAT)


TOLD = "I told <PERSON 1> and <PERSON"


def broken_off(handler, body):
    handler.stream(events([chunk({"content": c}) for c in TOLD], done=False), 9, broken=True)


def ended_early(handler, body):
    handler.stream(events([chunk({"content": c}) for c in TOLD], done=False), 9)


def in_an_event(handler, body):
    handler.stream(events([chunk({"content": TOLD}), {"error": {"message": "full, <PERSON 1>", "code": "busy"}}]))


def no_json(handler, body):
    handler.stream(events([chunk({"content": TOLD})], done=False) + b"data: {\n\n")


@pytest.mark.parametrize(
    ("behaviour", "message"),
    [(broken_off, "broke the connection off"), (ended_early, "broke the answer off"), (in_an_event, "full, Ada Brook"), (no_json, "no JSON")],
)  # fmt: skip
def test_it_breaks_off_in_a_stream(client, upstream, behaviour, message):
    upstream.behaviour = behaviour
    got = []
    stream = client.chat.completions.create(**CHAT, stream=True)
    with pytest.raises(openai.APIError, match=message):
        got.extend(one.choices[0].delta.content or "" for one in stream)
    assert "".join(got) == "I told Ada Brook and <PERSON"


def test_a_response_breaks_off_in_a_stream(gateway, upstream):
    told = [
        {"type": "response.created", "sequence_number": 0, "response": {}},
        {"type": "response.output_text.delta", "sequence_number": 1, "item_id": "m", "output_index": 0, "content_index": 0, "delta": "Dear <PERSON 1"},
    ]  # fmt: skip
    upstream.behaviour = lambda handler, body: handler.stream(events(told, done=False, named=True), broken=True)
    with openai.OpenAI(base_url=f"{gateway}/v1", api_key="k", max_retries=0) as client:
        got = []
        stream = client.responses.create(model="echo-1", input=PRIVATE, stream=True)
        with pytest.raises(openai.APIError, match="broke the connection off"):
            got.extend(getattr(one, "delta", "") for one in stream)
    assert "".join(got) == "Dear Ada Brook"


def test_a_client_that_goes_away_ends_the_request_upstream(gateway, upstream):
    gone = []

    def behave(handler, body):
        try:
            handler.stream(events([chunk({"content": "word "})] * 400), 200, pause=0.02)
        except OSError:
            gone.append(True)
            raise

    upstream.behaviour = behave
    with openai.OpenAI(base_url=f"{gateway}/v1", api_key="k", max_retries=0) as client:
        stream = client.chat.completions.create(**CHAT, stream=True)
        next(iter(stream))
        stream.close()
    for _ in range(200):
        if gone:
            break
        time.sleep(0.05)
    assert gone


def test_an_answer_without_events_where_they_were_asked_for(gateway, upstream):
    upstream.behaviour = lambda handler, body: handler.send(completion(body, content=last_text(body)))
    got = post(gateway, chat(stream=True))
    assert got.json()["choices"][0]["message"]["content"] == PRIVATE
    upstream.behaviour = lambda handler, body: handler.stream(events([]))
    assert post(gateway, CHAT).status_code == 502


def test_what_keeps_the_connection_alive_is_passed_on(gateway, upstream):
    upstream.behaviour = lambda handler, body: handler.stream(
        b"\xef\xbb\xbf: hello Ada\n\nid: 7\nretry: 10\ndata: "
        + json.dumps(chunk({"content": "x"}, finish="stop")).encode()
        + b"\n\ndata: [DONE]\n\n"
    )
    got = post(gateway, chat(stream=True))
    assert got.text.startswith(":\n\n") and got.text.endswith("data: [DONE]\n\n") and "Ada" not in got.text


# The log


def test_the_log_counts_and_quotes_nothing(gateway, upstream, caplog):
    caplog.set_level(logging.DEBUG)
    assert post(gateway, CHAT).status_code == 200
    assert post(gateway, chat(prompt=PRIVATE)).status_code == 400
    assert post(gateway, chat(stream=True)).status_code == 200
    until(lambda: len([r for r in caplog.records if r.name == "allonym.gateway"]) >= 3)
    lines = [r.getMessage() for r in caplog.records if r.name == "allonym.gateway"]
    assert any("status=200" in one and "found=EMAIL_ADDRESS:1,PERSON:1" in one and "restored=2" in one for one in lines)
    assert any("status=400" in one and "error=Refusal" in one for one in lines)
    assert "Ada" not in caplog.text and "example.com" not in caplog.text


# Conversations


@pytest.fixture
def vault(tmp_path):
    from allonym.vault import Vault

    with Vault.create(tmp_path / "talks.vault", b"a secret only for the tests, 32 b") as made:
        yield made


def test_a_conversation_keeps_its_placeholders(gateway_with, upstream, vault):
    address = gateway_with(vault=vault, explain=False)
    one = {"X_Allonym_Conversation": "talk-1", "Authorization": "Bearer sk-a"}
    post(address, messages({"role": "user", "content": "Ada Brook"}), **one)
    got = post(
        address,
        {"model": "echo-1", "input": "Zoë Quill", "previous_response_id": "resp_0a1b2c3d4e5f"},
        "responses",
        **one,
    )
    assert got.status_code == 200
    assert upstream.body["input"] == "<PERSON 2>" and upstream.body["previous_response_id"] == "resp_0a1b2c3d4e5f"
    upstream.behaviour = lambda handler, body: handler.send(completion(body, content="<PERSON 1> or <PERSON 2>"))
    assert "Ada Brook or Zoë Quill" in post(address, messages({"role": "user", "content": "Who?"}), **one).text
    for other in (
        {**one, "X_Allonym_Conversation": "talk-2"},
        {**one, "Authorization": "Bearer sk-b"},
        {**one, "api_key": "of another tenant"},
        {"Authorization": "Bearer sk-a"},
    ):
        assert "<PERSON 1> or <PERSON 2>" in post(address, messages({"role": "user", "content": "Who?"}), **other).text
    entries = [entry for entry in vault.audit() if entry.action == "restore"]
    assert [entry.counts["restored"] for entry in entries][:3] == [1, 1, 2]


def test_conversations_need_a_vault_and_a_name(gateway, gateway_with, upstream, vault):
    got = post(gateway, CHAT, X_Allonym_Conversation="talk-1")
    assert got.status_code == 400 and got.json()["error"]["code"] == "vault_required"
    assert post(gateway_with(vault=vault), CHAT, X_Allonym_Conversation="ada brook").status_code == 400
    assert not upstream.asked


def test_a_vault_that_cannot_be_written_stops_the_request(gateway_with, upstream, vault, monkeypatch):
    address = gateway_with(vault=vault)
    monkeypatch.setattr(
        "allonym.vault.book.Book.flush", lambda self: (_ for _ in ()).throw(DataError("the disk is full"))
    )
    got = post(address, CHAT, X_Allonym_Conversation="talk-1")
    assert got.status_code == 422 and "the disk is full" in got.json()["error"]["message"]
    assert not upstream.asked


@pytest.mark.parametrize("stream", [False, True])
def test_an_answer_that_cannot_be_audited_is_told_as_sent(stream, gateway_with, upstream, vault, monkeypatch, caplog):
    address = gateway_with(vault=vault)
    monkeypatch.setattr(vault, "record", lambda *_, **__: (_ for _ in ()).throw(DataError("the disk is full")))
    with caplog.at_level(logging.INFO, "allonym.gateway"):
        got = post(address, chat(stream=stream), X_Allonym_Conversation="talk-1")
    assert len(upstream.asked) == 1
    if stream:
        assert got.status_code == 200 and "Ada Brook" in got.text
    else:
        error = got.json()["error"]
        assert got.status_code == 500 and error["code"] == "not_restored" and "Ada" not in got.text
        assert "was sent" in error["message"] and "nothing was sent" not in error["message"]
    (line,) = [record.getMessage() for record in caplog.records]
    assert "error=" in line and "Ada" not in line


def test_keyed_policies_need_a_key_at_the_start(upstream, vault):
    settings = Settings(upstream=upstream.url, policy="wild-tags")
    with pytest.raises(UsageError, match="needs a key"):
        create_app(settings)
    create_app(settings, key=b"a key only for the tests, 32 byte")
    create_app(settings, vault=vault)
