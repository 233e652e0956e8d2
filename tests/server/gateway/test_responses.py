"""Responses and embeddings through the gateway, with the real client."""

from __future__ import annotations

import json
import logging
import re

import openai
import pytest
from tests.server.gateway.upstream import events, response, said, until

ASKED = "Ada Brook (ada.brook@example.com) called."


def streamed(body, text, *, size, extra=()):
    """The events of a response whose text arrives in pieces of so many letters."""
    head = response(body, status="in_progress")
    place = {"item_id": "msg_0a1b2c3d4e5f", "output_index": 0, "content_index": 0}
    item = said(text)
    part = item["content"][0]
    told = [
        {"type": "response.created", "response": head},
        {"type": "response.in_progress", "response": head},
        {
            "type": "response.output_item.added",
            "output_index": 0,
            "item": {**item, "content": [], "status": "in_progress"},
        },
        {"type": "response.content_part.added", **place, "part": {**part, "text": ""}},
        *(
            {"type": "response.output_text.delta", **place, "delta": text[i : i + size], "logprobs": []}
            for i in range(0, len(text), size)
        ),
        {"type": "response.output_text.done", **place, "text": text, "logprobs": []},
        {"type": "response.content_part.done", **place, "part": part},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        *extra,
        {"type": "response.completed", "response": response(body, item)},
    ]
    return [{**one, "sequence_number": n} for n, one in enumerate(told)]


def test_a_text_and_its_instructions(client, upstream):
    made = client.responses.create(
        model="echo-1", input=ASKED, instructions="Serve Zoë Quill.", metadata={"who": "Ada Brook"}
    )
    assert made.output_text == ASKED
    assert upstream.body["input"] == "<PERSON 1> (<EMAIL 1>) called."
    assert upstream.body["instructions"].startswith("Serve <PERSON 2>.\n\nNames")
    assert made.instructions == "Serve Zoë Quill."
    assert made.metadata == {"who": "Ada Brook"}


def test_what_the_gateway_told_the_model_is_not_told_to_the_client(client, upstream):
    made = client.responses.create(model="echo-1", input=ASKED)
    assert "placeholders" in upstream.body["instructions"]
    assert made.instructions is None


@pytest.mark.parametrize("size", [1, 4, 1000])
def test_streamed(client, upstream, size):
    text = "<PERSON 1> and Zoë <EMAIL 1"
    upstream.behaviour = lambda handler, body: handler.stream(
        events(streamed(body, text, size=size), done=False, named=True), 19
    )
    got = list(client.responses.create(model="echo-1", input=ASKED, stream=True))
    whole = "Ada Brook and Zoë ada.brook@example.com"
    assert "".join(one.delta for one in got if one.type == "response.output_text.delta") == whole
    assert [one.text for one in got if one.type == "response.output_text.done"] == [whole]
    assert [one.part.text for one in got if one.type == "response.content_part.done"] == [whole]
    assert got[-1].type == "response.completed" and got[-1].response.output_text == whole
    assert [one.sequence_number for one in got] == list(range(len(got)))
    kinds = [one.type for one in got]
    assert kinds.index("response.output_text.done") > max(i for i, k in enumerate(kinds) if k.endswith("text.delta"))


@pytest.mark.parametrize("deltas", [True, False])
def test_what_a_stream_repeats_is_counted_once(deltas, client, upstream, caplog):
    def behaviour(handler, body):
        told = streamed(body, "<PERSON 1>, <EMAIL 1>", size=4)
        kept = [one for one in told if deltas or one["type"] == "response.completed"]
        handler.stream(events(kept, done=False, named=True), 19)

    upstream.behaviour = behaviour
    with caplog.at_level(logging.INFO, "allonym.gateway"):
        got = list(client.responses.create(model="echo-1", input=ASKED, stream=True))
        until(lambda: caplog.records)
    assert got[-1].response.output_text == "Ada Brook, ada.brook@example.com"
    assert [" restored=2 unknown=0 " in record.getMessage() for record in caplog.records] == [True]


def test_ids_keep_their_form(client, upstream):
    given = [
        {"type": "message", "id": "msg_1", "role": "assistant", "content": [{"type": "output_text", "text": "Yes."}]},
        {"type": "function_call", "id": "fc_ada", "call_id": "abcdefghi", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "abcdefghi", "output": "null"},
        {"type": "function_call", "call_id": "Ada Brook", "name": "f", "arguments": "{}"},
    ]
    client.responses.create(model="echo-1", input=given)
    message, call, output, other = upstream.body["input"]
    assert re.fullmatch("msg_[0-9a-f]{24}", message["id"]) and re.fullmatch("fc_[0-9a-f]{24}", call["id"])
    assert re.fullmatch("[0-9a-f]{9}", call["call_id"]) and call["call_id"] == output["call_id"]
    assert re.fullmatch("call_[0-9a-f]{24}", other["call_id"])
    assert output["output"] == "null"


def test_the_clients_own_helper_adds_a_stream_up(client, upstream):
    text = "Dear <PERSON 1>, yes."
    upstream.behaviour = lambda handler, body: handler.stream(
        events(streamed(body, text, size=3), done=False, named=True), 23
    )
    with client.responses.stream(model="echo-1", input=ASKED) as stream:
        assert stream.get_final_response().output_text == "Dear Ada Brook, yes."


def test_calls_of_functions_stream(client, upstream):
    told = '{"to": "<EMAIL 1>"}'
    item = {
        "type": "function_call",
        "id": "fc_0a1b2c3d4e",
        "call_id": "call_0a1b2c3d4e",
        "name": "send",
        "arguments": told,
        "status": "completed",
    }
    place = {"item_id": "fc_0a1b2c3d4e", "output_index": 0}

    def behave(handler, body):
        many = [
            {"type": "response.created", "response": response(body, status="in_progress")},
            {
                "type": "response.output_item.added",
                "output_index": 0,
                "item": {**item, "arguments": "", "status": "in_progress"},
            },
            *({"type": "response.function_call_arguments.delta", **place, "delta": c} for c in told),
            {"type": "response.function_call_arguments.done", **place, "arguments": told, "name": "send"},
            {"type": "response.output_item.done", "output_index": 0, "item": item},
            {"type": "response.completed", "response": response(body, item)},
        ]
        handler.stream(events([{**o, "sequence_number": i} for i, o in enumerate(many)], done=False, named=True), 29)

    upstream.behaviour = behave
    got = list(client.responses.create(model="echo-1", input=ASKED, stream=True))
    pieces = "".join(one.delta for one in got if one.type == "response.function_call_arguments.delta")
    assert json.loads(pieces) == {"to": "ada.brook@example.com"}
    assert json.loads(got[-1].response.output[0].arguments) == {"to": "ada.brook@example.com"}


ITEMS = [
    {"role": "user", "content": "I am Ada Brook"},
    {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "ada.brook@example.com"}]},
    {"type": "reasoning", "id": "rs_0a1b2c3d4e5f", "summary": [{"type": "summary_text", "text": "Ada Brook asks"}], "encrypted_content": "gAAA+/="},
    {"type": "function_call", "call_id": "call_0a1b2c3d4e", "name": "look_up", "arguments": '{"name": "Ada Brook"}'},
    {"type": "function_call_output", "call_id": "call_0a1b2c3d4e", "output": '{"mail": "ada.brook@example.com"}'},
    {"type": "function_call_output", "call_id": "Ada Brook", "output": [{"type": "input_text", "text": "Ada Brook"}]},
    {"type": "custom_tool_call", "call_id": "call_0a1b2c3d4f", "name": "shell", "input": "mail ada.brook@example.com"},
    {"type": "custom_tool_call_output", "call_id": "call_0a1b2c3d4f", "output": "sent to ada.brook@example.com"},
    {"type": "web_search_call", "id": "ws_0a1b2c3d4e", "status": "completed", "action": {"type": "search", "query": "Ada Brook"}},
    {"type": "message", "role": "assistant", "id": "msg_0a1b2c3d4e", "status": "completed",
     "content": [{"type": "output_text", "text": "Ada Brook!", "annotations": [{"type": "url_citation", "title": "Ada Brook", "url": "x", "start_index": 0, "end_index": 3}], "logprobs": [{"token": "Ada Brook"}]}]},
    {"role": "user", "content": "Thanks, Zoë Quill"},
]  # fmt: skip


def test_all_kinds_of_items(client, upstream):
    made = client.responses.create(model="echo-1", input=ITEMS)
    assert made.output_text == "Thanks, Zoë Quill"
    sent = json.dumps(upstream.body, ensure_ascii=False)
    assert "Ada" not in sent and "ada.brook" not in sent and "Zoë" not in sent
    out = upstream.body["input"]
    assert out[2]["encrypted_content"] == "gAAA+/=" and out[2]["summary"][0]["text"] == "<PERSON 1> asks"
    assert (
        out[3]["arguments"] == '{"name": "<PERSON 1>"}' and out[3]["call_id"] == out[4]["call_id"] == "call_0a1b2c3d4e"
    )
    assert out[5]["call_id"].startswith("call_") and len(out[5]["call_id"]) == 29
    assert "logprobs" not in out[9]["content"][0]


@pytest.mark.parametrize("given", ["Ada Brook", ["Ada Brook", "Zoë Quill at ada.brook@example.com", ""]])
def test_embeddings(client, upstream, given):
    made = client.embeddings.create(model="echo-1", input=given, encoding_format="float")
    assert len(made.data) == (1 if isinstance(given, str) else len(given))
    assert "Ada" not in json.dumps(upstream.body) and "Quill" not in json.dumps(upstream.body)
    assert "messages" not in upstream.body and "instructions" not in upstream.body


def test_tokens_are_refused(client, upstream):
    with pytest.raises(openai.BadRequestError, match="tokens cannot be protected"):
        client.embeddings.create(model="echo-1", input=[[1, 2], [3]])
    assert not upstream.asked


def test_models(client, upstream):
    assert [one.id for one in client.models.list()] == ["echo-1"]
    assert upstream.asked[-1][0] == "/v1/models"
    client.with_options(timeout=5).models.retrieve("echo/1")
    assert upstream.asked[-1][0] == "/v1/models/echo/1"
