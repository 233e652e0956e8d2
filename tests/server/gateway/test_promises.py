"""What holds for every request and every answer, and for many at once."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.server.gateway.upstream import chunk, events

from allonym.plan import Edit, Plan, digest
from allonym.policy import Policy
from allonym.restoration import Restorer
from allonym.server.gateway import Settings, reading, shapes
from allonym.server.gateway.answering import (
    ChatAnswer,
    EventParser,
    ResponsesAnswer,
    format_event,
    parse_json_object,
)
from allonym.server.gateway.passages import RequestText
from allonym.server.gateway.protect import ENDPOINTS, Preparer, Protected, Protector
from allonym.server.gateway.refusal import Refusal
from allonym.server.gateway.restoring import AnswerRestorer


def test_what_requests_may_be_made_of_is_made_of_known_words():
    """Else the types of items would be refused as words that nobody knows."""
    for known in (shapes._ITEMS, shapes._TOOLS, reading.PARTS):
        assert set(known) <= reading.WORDS


MARKERS = [f"marker{n}@example.com" for n in range(4)] + ["Marka Quillon", "212-555-0142", "536-22-1234"]
WORDS = ["the", "report", "of", "wörk,", "日本", "\U0001f600", '"', "\\", "\n", "{", "a: b", "<PERSON 1>", "5", "&amp;"]

texts = st.lists(st.sampled_from(WORDS + MARKERS + MARKERS), max_size=6).map(" ".join)
names = st.sampled_from(["name", "to", "city_of", "$id", "x-y"])
keys = st.one_of(names, names, st.sampled_from(MARKERS))
values = st.recursive(
    st.one_of(texts, texts, st.integers(-9, 2125550199), st.booleans(), st.none(), st.floats(-1e9, 1e9)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(keys, inner, max_size=3)),
    max_leaves=6,
)
jsons = st.one_of(st.dictionaries(keys, values, max_size=3), st.lists(values, max_size=3)).flatmap(
    lambda value: st.booleans().map(lambda plain: json.dumps(value, ensure_ascii=plain))
)
strings = st.one_of(texts, texts, jsons)
parts = st.lists(
    st.fixed_dictionaries({"type": st.sampled_from(["text", "input_text", "output_text"]), "text": strings}), max_size=3
)
contents = st.one_of(strings, parts)
ids = st.one_of(st.just("call_a1b2c3d4e5"), texts)
calls = st.lists(
    st.fixed_dictionaries(
        {
            "id": ids,
            "type": st.just("function"),
            "function": st.fixed_dictionaries({"name": st.just("f"), "arguments": strings}),
        }
    ),
    max_size=2,
)
messages = st.lists(
    st.one_of(
        st.fixed_dictionaries({"role": st.just("tool"), "content": contents, "tool_call_id": ids}),
        st.fixed_dictionaries(
            {"role": st.sampled_from(["system", "user", "assistant"]), "content": contents},
            optional={"name": texts, "tool_calls": calls, "refusal": strings, "reasoning": strings},
        ),
    ),
    min_size=1,
    max_size=4,
)
plainly = st.recursive(
    st.one_of(texts, st.integers(-9, 2125550199), st.booleans(), st.none()),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(names, inner, max_size=3)),
    max_leaves=4,
)
schemas = st.fixed_dictionaries(
    {"type": st.just("object"), "description": texts},
    optional={
        "properties": st.dictionaries(names, st.fixed_dictionaries({"enum": st.lists(plainly, max_size=3)}), max_size=2),
        "default": plainly, "title": texts, "pattern": texts, "minimum": st.integers(0, 9), "anyOf": st.lists(plainly, max_size=2),
        "$ref": st.just("#/$defs/a"), "$schema": st.just("https://json-schema.org/draft/2020-12/schema"),
    },
)  # fmt: skip
tools = st.lists(
    st.fixed_dictionaries(
        {
            "type": st.just("function"),
            "function": st.fixed_dictionaries({"name": st.just("f"), "description": strings, "parameters": schemas}),
        }
    ),
    max_size=2,
)
common = {
    "user": texts, "metadata": st.dictionaries(names, texts, max_size=2), "tools": tools, "temperature": st.floats(0, 2),
    "tool_choice": st.sampled_from(["auto", {"type": "function", "function": {"name": "f"}}]),
}  # fmt: skip
odd = {
    "metadata": st.dictionaries(keys, texts, max_size=2), "temperature": values, "tool_choice": values, "store": values,
    "unheard_of": values, "include": values, "prompt": values, "text": values, "prediction": values, "logit_bias": values,
    "model": texts, "stream_options": values,
    "tools": st.lists(st.fixed_dictionaries({"type": st.just("function"), "function": st.fixed_dictionaries({"name": texts, "parameters": values})})),
    "response_format": st.fixed_dictionaries({"type": texts, "json_schema": values}),
}  # fmt: skip
json_schema = st.fixed_dictionaries({"name": st.just("n"), "schema": schemas, "description": strings})
chats = st.fixed_dictionaries(
    {"model": st.just("m"), "messages": messages},
    optional={
        **common,
        "stop": st.one_of(strings, st.lists(strings, max_size=2)),
        "prediction": st.fixed_dictionaries({"type": st.just("content"), "content": contents}),
        "response_format": st.fixed_dictionaries({"type": st.just("json_schema"), "json_schema": json_schema}),
    },
)
items = st.lists(
    st.one_of(
        st.fixed_dictionaries({"role": st.just("user"), "content": contents}),
        st.fixed_dictionaries({"type": st.just("function_call"), "call_id": ids, "name": st.just("f"), "arguments": strings}),
        st.fixed_dictionaries({"type": st.just("function_call_output"), "call_id": ids, "output": st.one_of(contents, plainly)}),
        st.fixed_dictionaries({"type": st.just("reasoning"), "summary": parts}),
        st.fixed_dictionaries({"type": st.just("custom_tool_call"), "call_id": ids, "name": st.just("f"), "input": strings}),
    ),
    max_size=4,
)  # fmt: skip
responses = st.fixed_dictionaries(
    {"model": st.just("m"), "input": st.one_of(strings, items)},
    optional={**common, "instructions": strings},
)
embeddings = st.fixed_dictionaries({"model": st.just("m"), "input": st.one_of(strings, st.lists(texts, max_size=3))})
uses = st.fixed_dictionaries({"type": st.just("tool_use"), "id": ids, "name": st.just("f"), "input": plainly})
results = st.fixed_dictionaries({"type": st.just("tool_result"), "tool_use_id": ids, "content": contents})
blocks = st.tuples(parts, st.lists(st.one_of(uses, results), max_size=2)).map(lambda both: [*both[0], *both[1]])
anthropics = st.fixed_dictionaries(
    {
        "model": st.just("m"),
        "max_tokens": st.just(9),
        "messages": st.lists(
            st.fixed_dictionaries(
                {"role": st.sampled_from(["user", "assistant"]), "content": st.one_of(strings, blocks)}
            ),
            min_size=1,
            max_size=3,
        ),
    },
    optional={"system": contents, "stop_sequences": st.lists(texts, max_size=2), "metadata": st.just({"user_id": "x"})},
)
BODIES = {"chat/completions": chats, "responses": responses, "embeddings": embeddings}
REQUESTS = st.one_of(*(st.tuples(st.just(e), BODIES.get(e.path, anthropics)) for e in ENDPOINTS))
ODD = st.fixed_dictionaries({}, optional=odd)


@pytest.fixture(scope="module")
def asking(tmp_path_factory):
    path = tmp_path_factory.mktemp("policies") / "marked.toml"
    path.write_text(
        'extends = "reversible"\n[detect]\ndetectors = ["rules", "lexicon"]\n[dictionary]\nPERSON = ["Marka Quillon"]\n'
    )
    return Preparer(Settings(upstream="http://127.0.0.1:1", policy=str(path)), None, None, 1)


def strings_of(value):
    """All strings of some JSON, and all strings of the JSON texts among them."""
    if isinstance(value, str):
        yield value
        try:
            inner = json.loads(value)
        except ValueError:
            return
        if not isinstance(inner, str):
            yield from strings_of(inner)
    elif isinstance(value, list):
        for one in value:
            yield from strings_of(one)
    elif isinstance(value, dict):
        for name, one in value.items():
            yield name
            yield from strings_of(one)
    else:
        yield str(value)


def sent_of(asking, endpoint, body):
    """All that is sent of a request."""
    made = asking.protect_request(endpoint, json.dumps(body).encode(), next(iter(asking.policies.values())), "")
    assert not [one for one in MARKERS if one in repr(made)]
    return list(strings_of(json.loads(made.body)))


@given(REQUESTS)
def test_nothing_that_is_found_reaches_the_upstream(asking, asked):
    sent = sent_of(asking, *asked)
    assert not [one for one in MARKERS if any(one in s for s in sent)]


@given(REQUESTS, ODD)
def test_what_is_odd_is_refused_or_protected(asking, asked, more):
    try:
        sent = sent_of(asking, asked[0], {**asked[1], **more})
    except Refusal as error:
        sent = [str(error)]
    assert not [one for one in MARKERS if any(one in s for s in sent)]


@given(chats)
def test_a_request_means_the_same_after_an_echo(asking, body):
    """What the upstream repeats of the messages comes back as it was."""
    for message in body["messages"]:
        message.pop("name", None)  # of several ways to name somebody the fullest comes back
    made = asking.protect_request(ENDPOINTS[0], json.dumps(body).encode(), next(iter(asking.policies.values())), "")
    sent = json.loads(made.body)["messages"][-len(body["messages"]) :]
    for before, after in zip(body["messages"], sent, strict=True):
        if before["role"] in ("system", "developer") or not isinstance(before["content"], str):
            continue
        back = made.restoring.restore_text(
            after["content"], is_json=before["content"][:1] in ("{", "[") and after["content"] != before["content"]
        )
        try:
            was = json.loads(before["content"])
        except ValueError:
            was = None
        if isinstance(was, (dict, list)):
            assert flat(json.loads(back)) == flat(was)
        elif "\\" not in before["content"] and "&" not in before["content"]:  # escapes that stand before a placeholder
            assert back == before["content"]


def flat(value):
    """JSON with its numbers as strings: one that was replaced comes back as one."""
    if isinstance(value, dict):
        return {name: flat(one) for name, one in value.items()}
    if isinstance(value, list):
        return [flat(one) for one in value]
    return value if isinstance(value, str) else json.dumps(value)


# Answers

ORIGINALS = {
    "<PERSON 1>": 'Zoë "Z" Quill',
    "<PERSON 2>": "a\\b\nc",
    "<EMAIL 1>": "\U0001f600@example.com",
    "<CITY 3>": "x",
}
PIECES = [
    *ORIGINALS,
    "<PERS",
    "ON 1>",
    "PERSON_1",
    "<PERSON 9>",
    "\\",
    "é",
    "\U0001f600",
    "the ",
    ", ",
    "<",
    ">",
    " ",
    '"',
    "\n",
    "1",
]
answers = st.lists(st.sampled_from(PIECES), max_size=12).map("".join)


def restoring(*, json=False):
    made = "".join(f"{tag} " for tag in ORIGINALS)
    edits, at = [], 0
    for n, (tag, original) in enumerate(ORIGINALS.items(), 1):
        edits.append(Edit(at, at + len(original), tag, "PERSON", n, "tag@1", original))
        at += len(original) + 1
    plan = Plan(digest("".join(f"{o} " for o in ORIGINALS.values())), tuple(edits), (), digest(made))
    return AnswerRestorer(Restorer.from_plan(plan), json=json)


@st.composite
def cut(draw, of):
    text = draw(of)
    cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=9)))
    return text, [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]


def split(data, sizes):
    at = 0
    while at < len(data):
        for size in sizes:
            yield data[at : at + size]
            at += size


@given(
    cut(answers),
    cut(answers),
    st.lists(st.integers(1, 40), min_size=1, max_size=5),
    st.sampled_from(["\n", "\r\n", "\r"]),
)
def test_a_streamed_chat_is_the_whole_one(first, second, sizes, end):
    (one, ones), (two, twos) = first, second
    deltas = [chunk({"content": d}) for d in ones] + [chunk({"content": d}, index=1) for d in twos]
    deltas += [chunk({"reasoning": d}) for d in twos]
    data = events([*deltas, chunk({}, finish="stop"), chunk({}, index=1, finish="stop")], end=end)
    reader, answer = EventParser(), ChatAnswer(restoring())
    got = {"0content": "", "1content": "", "0reasoning": ""}
    for piece in split(data, sizes):
        for event in reader.parse_next_bytes(piece):
            for _, made in answer.restore_event(event.name, parse_json_object(event.data) or {}):
                for choice in made.get("choices", ()):
                    for name, value in choice["delta"].items():
                        got[f"{choice['index']}{name}"] += value
    assert answer.is_complete
    assert got == {
        "0content": restoring().restore_text(one), "1content": restoring().restore_text(two), "0reasoning": restoring().restore_text(two),
    }  # fmt: skip


@given(cut(answers))
def test_a_whole_text_is_what_restore_makes_of_it(given_):
    text, pieces = given_
    whole = restoring()
    assert whole.restore_text(text) == whole.restorer.restore(text).text
    stream = whole.start_stream()
    assert "".join(map(stream.restore_piece, pieces)) + stream.flush_text() == whole.restore_text(text)


told = st.recursive(
    answers, lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(answers, inner, max_size=3))
)


@given(told, st.booleans(), st.data())
def test_restored_json_is_json(value, plain, data):
    text, pieces = data.draw(cut(st.just(json.dumps(value, ensure_ascii=plain))))
    stream = restoring().start_stream(is_json=True)
    streamed = "".join(map(stream.restore_piece, pieces)) + stream.flush_text()
    assert streamed == restoring().restore_text(text, is_json=True)

    def expected(one):
        if isinstance(one, str):
            return restoring().restore_text(one)
        return (
            [expected(o) for o in one]
            if isinstance(one, list)
            else [(expected(k), expected(v)) for k, v in one.items()]
        )

    assert json.loads(streamed, object_pairs_hook=list) == expected(value) if not isinstance(value, dict) else True
    assert json.dumps(json.loads(streamed, object_pairs_hook=lambda p: [list(x) for x in p])) == json.dumps(
        [list(x) for x in expected(value)] if isinstance(value, dict) else listed(expected(value))
    )


def listed(value):
    return [listed(one) for one in value] if isinstance(value, (list, tuple)) else value


@given(cut(st.text(alphabet='{}[]":,\\u0d8Da<PERSON 1>\n', max_size=60)))
def test_what_is_no_json_comes_through(given_):
    """Broken JSON is no reason to fail, and it is the same in any pieces."""
    text, pieces = given_
    stream = restoring().start_stream(is_json=True)
    assert "".join(map(stream.restore_piece, pieces)) + stream.flush_text() == restoring().restore_text(
        text, is_json=True
    )


@given(st.lists(st.binary(max_size=30), max_size=8))
def test_any_bytes_are_read_as_events_or_nothing(pieces):
    together, apart = EventParser(), EventParser()
    whole = together.parse_next_bytes(b"".join(pieces))
    assert [e for piece in pieces for e in apart.parse_next_bytes(piece)] == whole


def test_events_of_a_response_that_were_not_heard_of_are_restored():
    answer = ResponsesAnswer(restoring(), {})
    (made,) = answer.restore_event("x", {"type": "response.new", "sequence_number": 9, "said": ["<PERSON 1>"], "n": 1})
    assert made == ("x", {"type": "response.new", "sequence_number": 0, "said": ['Zoë "Z" Quill'], "n": 1})
    assert b"event: x\ndata: {" in format_event(made[1], made[0])


# Findings


def passages(*said):
    reading = RequestText(Settings(upstream="http://127.0.0.1:1"), b"secret")
    holder = list(said)
    for i, text in enumerate(said):
        reading.add_text_passage(text, lambda new, i=i: holder.__setitem__(i, new))
    return reading.passages, holder


def test_a_name_found_in_one_message_is_covered_in_all():
    protector, policy = Protector(), Policy.load("reversible").with_(detectors=("rules", "speakers"))
    said, out = passages("Brook wants it, says Brook.", "My name is Ada Brook.", "OK Brook")
    protector.protect_passages_in_place(said, policy)
    assert out == ["<PERSON 1> wants it, says <PERSON 1>.", "My name is <PERSON 1>.", "OK <PERSON 1.family>"]


def test_only_what_is_new_is_looked_at(monkeypatch):
    from allonym.server.gateway import protect

    looked = []
    real = protect.find_candidates
    monkeypatch.setattr(
        protect, "find_candidates", lambda document, policy: looked.append(document) or real(document, policy)
    )
    protector, policy = Protector(), Policy.load("reversible").with_(detectors=("rules",))
    made: list[Protected] = []
    for n in range(1, 5):
        said, out = passages(*(f"Mail marker{i}@example.com" for i in range(n)))
        made.append(protector.protect_passages_in_place(said, policy))
        assert out[0] == "Mail <EMAIL 1>" and out[-1] == f"Mail <EMAIL {n}>"
    assert len(looked) == 4
    protector.protect_passages_in_place(
        passages("Mail marker0@example.com")[0], policy.with_(exclude=("EMAIL_ADDRESS",))
    )
    assert len(looked) == 5


def test_how_much_is_remembered_is_bounded(monkeypatch):
    monkeypatch.setattr("allonym.server.gateway.protect._REMEMBERED", 3)
    protector, policy = Protector(), Policy.load("reversible").with_(detectors=("rules",))
    protector.protect_passages_in_place(passages(*(f"Mail marker{i}@example.com" for i in range(9)))[0], policy)
    assert len(protector._findings) == 3
    assert "marker" not in repr(protector._findings)


# Many at once


@pytest.mark.slow
def test_many_clients_get_their_own_back(gateway, upstream):
    def talk(n):
        mine = f"client{n}@example.com"
        with openai.OpenAI(base_url=f"{gateway}/v1", api_key=f"sk-{n}", max_retries=0) as client:
            for turn in range(2):
                asked = [{"role": "user", "content": f"Turn {turn}: write to {mine}, then to {mine}. {'x ' * n}"}]
                whole = client.chat.completions.create(model="m", messages=asked).choices[0].message.content
                stream = client.chat.completions.create(model="m", messages=asked, stream=True)
                pieces = "".join(c.choices[0].delta.content or "" for c in stream if c.choices)
                said = client.responses.create(model="m", input=asked[0]["content"]).output_text
                assert whole == pieces == said == asked[0]["content"]

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(talk, range(24)))
    assert len(upstream.raw) == 24 * 2 * 3
    assert not [raw for raw in upstream.raw if b"@example.com" in raw]
