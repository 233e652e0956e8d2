"""Chat completions through the gateway, with the real client."""

from __future__ import annotations

import json

import pytest
from tests.server.gateway.upstream import chunk, completion, events, last_text

openai = pytest.importorskip("openai")

ASKED = "Ada Brook (ada.brook@example.com) called from 212-555-0142."
PRIVATE = ("Ada Brook", "ada.brook", "212-555-0142")


def sent(upstream):
    return json.dumps(upstream.body, ensure_ascii=False)


def said(text):
    return [{"role": "user", "content": text}]


def test_what_goes_out_is_protected_and_what_comes_back_restored(client, upstream):
    made = client.chat.completions.create(model="echo-1", messages=said(ASKED))
    assert made.choices[0].message.content == ASKED
    assert upstream.body["messages"][-1]["content"] == "<PERSON 1> (<EMAIL 1>) called from <PHONE_NUMBER 1>."
    assert not [one for one in PRIVATE if one in sent(upstream)]
    assert upstream.body["model"] == made.model == "echo-1"


def test_streamed_in_small_pieces(client, upstream):
    stream = client.chat.completions.create(
        model="echo-1", messages=said(ASKED * 3), stream=True, stream_options={"include_usage": True}
    )
    chunks = list(stream)
    assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices) == ASKED * 3
    assert [c.choices[0].finish_reason for c in chunks if c.choices][-1] == "stop"
    assert chunks[-1].usage.total_tokens == 7


@pytest.mark.parametrize("size", [1, 2, 3, 11, 64, 0])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_borders_within_lines_letters_and_placeholders(client, upstream, size, end):
    text = "Zoë Quill \U0001f600 schrieb an Ada Brook: 日本語 "

    def behave(handler, body):
        told = last_text(body)
        handler.stream(events([*(chunk({"content": c}) for c in told), chunk({}, finish="stop")], end=end), size)

    upstream.behaviour = behave
    stream = client.chat.completions.create(model="echo-1", messages=said(text), stream=True)
    assert "".join(c.choices[0].delta.content or "" for c in stream if c.choices) == text
    assert "Zoë" not in sent(upstream)


def test_all_messages_agree_and_a_history_gets_the_same_placeholders(client, upstream):
    history = [
        {"role": "system", "content": "You help Zoë Quill."},
        {
            "role": "user",
            "content": [{"type": "text", "text": "My name is Ada Brook."}, {"type": "text", "text": "Ada!"}],
        },
        {"role": "assistant", "content": "Hello Ada Brook."},
        {"role": "user", "content": "Brook and Zoë Quill"},
    ]
    client.chat.completions.create(model="echo-1", messages=history)
    first = upstream.body["messages"]
    assert first[0]["content"].startswith("You help <PERSON 1>.\n\nNames and other details")
    assert ".given and .family stand for that part" in first[0]["content"]
    assert [part["text"] for part in first[1]["content"]] == ["My name is <PERSON 2>.", "<PERSON 2.given>!"]
    assert first[2]["content"] == "Hello <PERSON 2>."
    assert first[3]["content"] == "<PERSON 2.family> and <PERSON 1>"
    longer = [
        *history,
        {"role": "assistant", "content": "Yes."},
        {"role": "user", "content": "Write to eve@example.com"},
    ]
    client.chat.completions.create(model="echo-1", messages=longer)
    assert upstream.body["messages"][: len(first)] == first


def test_nothing_is_told_where_nothing_was_replaced(client, upstream):
    client.chat.completions.create(model="echo-1", messages=said("What is a monad?"))
    assert upstream.body["messages"] == said("What is a monad?")


def test_the_model_is_told_once_and_before(client, upstream):
    client.chat.completions.create(model="echo-1", messages=said(ASKED))
    assert [m["role"] for m in upstream.body["messages"]] == ["system", "user"]
    assert "<PERSON 1>" in upstream.body["messages"][0]["content"]
    parts = [{"type": "text", "text": "Be brief."}]
    client.chat.completions.create(model="echo-1", messages=[{"role": "developer", "content": parts}, *said(ASKED)])
    assert [m["role"] for m in upstream.body["messages"]] == ["developer", "user"]
    assert len(upstream.body["messages"][0]["content"]) == 2


TOOL = {
    "type": "function",
    "function": {
        "name": "send_mail",
        "description": "Sends mail, for example for Ada Brook.",
        "parameters": {
            "type": "object",
            "properties": {
                "to": {"type": "string", "description": "such as ada.brook@example.com"},
                "from": {"type": "string", "enum": ["zoe@example.com", "bob@example.com"]},
            },
            "required": ["to"],
        },
    },
}


def test_tools_are_protected_but_for_their_names(client, upstream):
    def behave(handler, body):
        schema = body["tools"][0]["function"]["parameters"]["properties"]
        arguments = json.dumps(
            {"to": last_text(body).removeprefix("Please write to "), "from": schema["from"]["enum"][0]}
        )
        call = {"id": "call_a1b2c3d4", "type": "function", "function": {"name": "send_mail", "arguments": arguments}}
        handler.send(completion(body, tool_calls=[call]))

    upstream.behaviour = behave
    made = client.chat.completions.create(
        model="echo-1", messages=said("Please write to ada.brook@example.com"), tools=[TOOL], tool_choice="auto"
    )
    call = made.choices[0].message.tool_calls[0]
    assert json.loads(call.function.arguments) == {"to": "ada.brook@example.com", "from": "zoe@example.com"}
    assert call.function.name == "send_mail"
    for one in ("Ada Brook", "ada.brook@example.com", "zoe@example.com", "bob@example.com"):
        assert one not in sent(upstream)
    told = upstream.body["tools"][0]["function"]
    assert told["name"] == "send_mail" and told["parameters"]["required"] == ["to"]
    assert made.choices[0].finish_reason == "tool_calls"

    history = [
        *said("Please write to ada.brook@example.com"),
        made.choices[0].message.model_dump(),
        {
            "role": "tool",
            "tool_call_id": call.id,
            "content": '{"Ada Brook": {"phone": 2125550142, "e": "Zo\\u00eb Quill"}}',
        },
    ]
    upstream.behaviour = lambda handler, body: handler.send(completion(body, content="Done, <PERSON 1>."))
    done = client.chat.completions.create(model="echo-1", messages=history, tools=[TOOL])
    assert upstream.body["messages"][-2]["tool_calls"][0]["function"]["arguments"] == (
        call.function.arguments.replace("ada.brook@example.com", "<EMAIL 1>").replace("zoe@example.com", "<EMAIL 2>")
    )
    assert json.loads(upstream.body["messages"][-1]["content"]) == {
        "<PERSON 1>": {"phone": "<PHONE_NUMBER 1>", "e": "<PERSON 2>"}
    }
    assert done.choices[0].message.content == "Done, Ada Brook."


NASTY = 'a "quoted" \\ name\nwith a line'


@pytest.fixture
def nasty(gateway_with, upstream, tmp_path):
    """The client of a gateway that knows a name which JSON must escape."""
    import openai

    path = tmp_path / "nasty.toml"
    path.write_text(
        f'extends = "reversible"\n[detect]\ndetectors = ["lexicon"]\n[dictionary]\nPERSON = [{json.dumps(NASTY)}]\n'
    )
    with openai.OpenAI(
        base_url=gateway_with(policy=str(path), internal_tools=("*",)) + "/v1", api_key="k", max_retries=0
    ) as made:
        yield made


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_arguments_stay_json_when_they_stream(nasty, upstream, size):
    told = '{"who": "<PERSON 1>", "note\\u00e9": "for \\ud83d\\ude00 <PERSON 1>\\n", "n": [1, "<PERS"]}'

    def behave(handler, body):
        head = {"index": 0, "id": "call_a1b2c3d4", "type": "function", "function": {"name": "f", "arguments": ""}}
        other = {"index": 1, "id": "call_a1b2c3d5", "type": "function", "function": {"name": "g", "arguments": ""}}
        deltas = [chunk({"role": "assistant", "content": None, "tool_calls": [head]}), chunk({"tool_calls": [other]})]
        for i in range(0, len(told), size):
            for n in (0, 1):
                deltas.append(chunk({"tool_calls": [{"index": n, "function": {"arguments": told[i : i + size]}}]}))
        handler.stream(events([*deltas, chunk({}, finish="tool_calls")]), 13)

    upstream.behaviour = behave
    stream = nasty.chat.completions.create(model="echo-1", messages=said(f"Ask {NASTY}!"), stream=True)
    got, names = {0: "", 1: ""}, []
    for one in stream:
        for call in one.choices[0].delta.tool_calls or ():
            got[call.index] += call.function.arguments or ""
            names += [call.function.name] if call.function.name else []
    assert names == ["f", "g"]
    for said_ in got.values():
        assert json.loads(said_) == {"who": NASTY, "noteé": f"for \U0001f600 {NASTY}\n", "n": [1, "<PERS"]}


@pytest.mark.parametrize(
    "form", [{"type": "json_object"}, {"type": "json_schema", "json_schema": {"name": "a", "schema": {}}}]
)
@pytest.mark.parametrize("stream", [False, True])
def test_json_mode_gives_json(nasty, upstream, form, stream):
    told = '{"name": "<PERSON 1>", "keys": {"<PERSON 1>": true}}'

    def behave(handler, body):
        if body.get("stream"):
            handler.stream(events([*(chunk({"content": c}) for c in told), chunk({}, finish="stop")]), 5)
        else:
            handler.send(completion(body, content=told))

    upstream.behaviour = behave
    made = nasty.chat.completions.create(
        model="echo-1", messages=said(f"JSON about {NASTY}"), response_format=form, stream=stream
    )
    text = "".join(c.choices[0].delta.content or "" for c in made) if stream else made.choices[0].message.content
    assert json.loads(text) == {"name": NASTY, "keys": {NASTY: True}}


def test_several_choices_do_not_mix(client, upstream):
    def behave(handler, body):
        told = ["<PERSON 1> here", "<PERSON 2> there"]
        deltas = [chunk({"content": told[n][i]}, index=n) for i in range(16) for n in (0, 1) if i < len(told[n])]
        ends = [chunk({}, index=n, finish=why) for n, why in ((1, "length"), (0, "stop"))]
        handler.stream(events([*deltas, *ends]), 17)

    upstream.behaviour = behave
    stream = client.chat.completions.create(model="echo-1", messages=said("Ada Brook and Zoë Quill"), stream=True, n=2)
    got, why = {0: "", 1: ""}, {}
    for one in stream:
        for choice in one.choices:
            got[choice.index] += choice.delta.content or ""
            why.setdefault(choice.index, choice.finish_reason) if choice.finish_reason else None
    assert got == {0: "Ada Brook here", 1: "Zoë Quill there"}
    assert why == {0: "stop", 1: "length"}


def test_an_end_that_was_held_back_comes_before_the_reason(client, upstream):
    upstream.behaviour = lambda handler, body: handler.stream(
        events([chunk({"content": "It is <PERSON 1"}), chunk({"content": ">"}, finish="stop"), chunk({}, finish=None)])
    )
    stream = client.chat.completions.create(model="echo-1", messages=said("Ada Brook"), stream=True)
    chunks = list(stream)
    assert "".join(c.choices[0].delta.content or "" for c in chunks) == "It is Ada Brook"
    at = next(i for i, c in enumerate(chunks) if c.choices[0].finish_reason)
    assert not [c for c in chunks[at:] if c.choices[0].delta.content]


def test_the_first_words_wait_for_nothing(client, upstream):
    words = ["The ", "office ", "of ", "<PERSON", " 1>", " is ", "<", "3>"]
    upstream.behaviour = lambda handler, body: handler.stream(
        events([*(chunk({"content": w}) for w in words), chunk({}, finish="stop")])
    )
    stream = client.chat.completions.create(model="echo-1", messages=said("Ada Brook"), stream=True)
    got = [c.choices[0].delta.content for c in stream if c.choices[0].delta.content]
    assert got[:3] == ["The ", "office ", "of "]
    assert "".join(got) == "The office of Ada Brook is <3>"


def test_names_of_speakers_and_users(client, upstream):
    made = client.chat.completions.create(
        model="echo-1",
        messages=[
            {"role": "user", "name": "Ada_Brook", "content": "Hello, Brook here."},
            {"role": "assistant", "name": "example_assistant", "content": "Hi."},
            {"role": "user", "name": "xq77", "content": "Again."},
        ],
        user="ada.brook@example.com",
        metadata={"customer": "Ada Brook", "ticket": "ada.brook@example.com"},
        stop=["Ada Brook:"],
    )
    first, assistant, other = [m for m in upstream.body["messages"] if m["role"] != "system"]
    assert first["name"] == "PERSON_1" and first["content"] == "Hello, <PERSON 1.family> here."
    assert assistant["name"] == "example_assistant"
    assert other["name"] == "PERSON_2"
    assert upstream.body["metadata"] == {"customer": "<PERSON 1>", "ticket": "<EMAIL 1>"}
    assert upstream.body["stop"] == ["<PERSON 1>:"]
    assert len(upstream.body["user"]) == 24
    assert made.choices[0].message.content == "Again."


def test_look_alikes_of_placeholders_stay(client, upstream):
    text = "Ada Brook wrote <PERSON 1> and <PERSON 7>."
    made = client.chat.completions.create(model="echo-1", messages=said(text))
    assert upstream.body["messages"][-1]["content"] == "<PERSON 2> wrote <PERSON 1> and <PERSON 7>."
    assert made.choices[0].message.content == text


def test_a_rewritten_answer(client, upstream):
    upstream.behaviour = lambda handler, body: handler.send(
        completion(body, content="PERSON 1 said: **<person 1>**, &lt;EMAIL 1&gt;, <PERSON 9>")
    )
    made = client.chat.completions.create(model="echo-1", messages=said(ASKED))
    assert made.choices[0].message.content.endswith("ada.brook@example.com, <PERSON 9>")
    assert "**Ada Brook**" in made.choices[0].message.content


def test_an_answer_names_the_languages_that_nobody_reads(gateway_with, upstream):
    address = gateway_with(policy="reversible")
    german = "Bitte fassen Sie das Protokoll der letzten Sitzung in drei kurzen Sätzen zusammen."
    with openai.OpenAI(base_url=f"{address}/v1", api_key="sk-test", max_retries=0) as client:
        for text, languages in ((german, "de"), ("Please sum up the minutes of our last meeting.", None)):
            answer = client.chat.completions.with_raw_response.create(model="echo-1", messages=said(text))
            assert answer.headers.get("x-allonym-unread") == languages
