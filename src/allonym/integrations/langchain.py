"""LangChain: a step that anonymises the input of a model, and one that restores the originals in its answer.

::

    anonymizer, restorer = pair()
    chain = prompt | anonymizer | model | restorer
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING, Any
from uuid import UUID
from weakref import WeakKeyDictionary

from allonym.batch import join_fields
from allonym.errors import RefusedContent, RestoreError, UsageError, hide_foreign_errors, require_extra
from allonym.pipeline import AnyPolicy, anonymize
from allonym.plan import Plan
from allonym.policy import Policy
from allonym.restoration import Restorer
from allonym.restoration.destination import Destination, list_whole_addresses

with require_extra("the runnables for LangChain", "langchain"):
    from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, ChatMessage, message_chunk_to_message
    from langchain_core.messages.base import BaseMessageChunk
    from langchain_core.prompt_values import ChatPromptValue, StringPromptValue
    from langchain_core.runnables import Runnable, RunnableConfig, run_in_executor


if TYPE_CHECKING:
    from allonym.vault import Vault

Scope = str | Callable[[RunnableConfig], str]
Change = Callable[[str, str], str]
"""From a text and the name of its field, empty where it has none, to a new text."""

_CALL_BLOCK = re.compile(r"\w*(?:tool_use|_call|tool_call_chunk|tool_result|input_json_delta)")


def pair(
    policy: AnyPolicy = "reversible",
    *,
    key: bytes | str | None = None,
    vault: Vault | None = None,
    scope: Scope = "",
    internal_tools: Iterable[str] = (),
) -> tuple[Anonymizer, RestoringStep]:
    """Make two steps of one chain; the steps between them see no originals.

    The anonymizer takes a text, a message, a list of messages, a prompt's value, or a dictionary or list of texts and
    messages. All texts of one call are one document, so a name has one replacement in all of them. The restorer takes a
    text, a message, or plain values that hold texts, whole or as a stream.

    The originals are kept in memory between the two steps, separately for each run of the chain, and are dropped with
    the run where it fails. The two steps find each other by their run, so they must be steps of the same sequence.
    Elsewhere only a vault knows what to restore. Nothing of one run or scope reaches the answer of another.

    Args:
        policy: a preset's name, a TOML file's path, or a :class:`Policy`.
        key: secret of the keyed operators, at least 16 bytes; by default the vault's own.
        vault: stores originals and replacements, so that a person has one replacement in all runs of a scope.
        scope: name of the project or client, or a function that returns it for a run's configuration, such as
            ``lambda config: config["configurable"]["client"]``.
        internal_tools: names of tools that get originals in their calls; ``*``: all. Calls of other tools keep
            replacements, as addresses in the answer do: a page that the model reads may have written them.

    Raises:
        PolicyError, UnknownNameError: the policy is not valid or not known.
    """
    runs = _Runs()
    loaded = Policy.load(policy)
    if loaded.consistent == "auto":  # calls of one conversation are told apart by nothing
        loaded = loaded.with_(consistent="scope")
    return Anonymizer(loaded, key, vault, scope, runs), RestoringStep(vault, scope, runs, frozenset(internal_tools))


class _Step(Runnable[Any, Any]):
    """A step of a chain whose ``repr`` shows none of its settings."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Run :meth:`invoke` in a thread."""
        return await run_in_executor(config, self.invoke, input, config)


class Anonymizer(_Step):
    """The step before the model, from :func:`pair`. It calls no callbacks, so that no tracer receives its input."""

    def __init__(self, policy: Policy, key: bytes | str | None, vault: Vault | None, scope: Scope, runs: _Runs) -> None:
        self._policy, self._key, self._vault, self._scope, self._runs = policy, key, vault, scope, runs

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Anonymise the input.

        Raises:
            RefusedContent: it holds pictures, sounds, files or other objects that cannot be read.
            AllonymError: it cannot be anonymised; then nothing is passed on.
        """
        texts: list[tuple[str, str, str]] = []

        def collect(text: str, name: str) -> str:
            texts.append((name, text, "\n\n"))
            return text

        _change_texts(input, collect)
        document = join_fields("", texts)
        scope = _resolve_scope(self._scope, config)
        result = anonymize(document, self._policy, key=self._key, vault=self._vault, scope=scope)
        parts = iter(result.parts if texts else ())
        out = _change_texts(input, lambda _, __: next(parts))
        before = "\n\n".join(text for _, text, _ in texts)
        self._runs.put_run(_find_run_id(config), _Run(result.plan, before, list_whole_addresses(result.text)))
        return out


class RestoringStep(_Step):
    """The step after the model, from :func:`pair`. It calls no callbacks, so that no tracer receives its output."""

    def __init__(self, vault: Vault | None, scope: Scope, runs: _Runs, internal_tools: frozenset[str]) -> None:
        self._vault, self._scope, self._runs, self._internal_tools = vault, scope, runs, internal_tools

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Restore the originals in the input.

        Raises:
            RestoreError: the anonymizer is not in the same sequence, and there is no vault.
        """
        answer = self._start_answer(config)
        out = answer.restore_value(input)
        self._record_restore(answer, config)
        return out

    def transform(self, input: Iterator[Any], config: RunnableConfig | None = None, **kwargs: Any) -> Iterator[Any]:
        """Run :meth:`invoke` piece by piece; only an end that may be part of a replacement is held back.

        Arguments of tool calls come whole, at the end.
        """
        answer: _AnswerRestorer | None = None
        for piece in input:
            answer = answer or self._start_answer(config)  # the anonymizer has run for the first piece
            yield from answer.feed(piece)
        if answer is not None:
            yield from answer.end()
            self._record_restore(answer, config)

    async def atransform(
        self, input: AsyncIterator[Any], config: RunnableConfig | None = None, **kwargs: Any
    ) -> AsyncIterator[Any]:
        """As :meth:`transform`."""
        answer: _AnswerRestorer | None = None
        async for piece in input:
            if answer is None:
                answer = await run_in_executor(config, self._start_answer, config)
            for out in answer.feed(piece):
                yield out
        if answer is not None:
            for out in answer.end():
                yield out
            await run_in_executor(config, self._record_restore, answer, config)

    def _start_answer(self, config: RunnableConfig | None) -> _AnswerRestorer:
        run = self._runs.take_run(_find_run_id(config))
        if run is None and self._vault is None:
            raise RestoreError(
                "nothing is known of this run: the restorer has to be a step of the same sequence as its anonymizer, "
                "or both need a vault"
            )
        scope = "" if self._vault is None else _resolve_scope(self._scope, config)
        if run is None:
            assert self._vault is not None
            return _AnswerRestorer(Restorer.from_vault(self._vault, scope), Destination(), self._internal_tools)
        restorer = Restorer.from_plan(run.plan, self._vault, scope)
        destination = Destination(run.addresses, frozenset(restorer.list_originals(run.before)))
        return _AnswerRestorer(restorer, destination, self._internal_tools)

    def _record_restore(self, answer: _AnswerRestorer, config: RunnableConfig | None) -> None:
        if self._vault is not None:
            self._vault.record("restore", scope=_resolve_scope(self._scope, config), counts=answer.counts)


@dataclass(frozen=True, slots=True)
class _Run:
    """What the second step needs of the first: the plan, the input, and the addresses in what it became."""

    plan: Plan
    before: str = field(repr=False)
    addresses: frozenset[str] = field(repr=False)


class _Runs:
    """What is on its way between the two steps, by the run's id. Thread-safe.

    The run holds the id, so a plan is dropped with its run, even where no answer ever comes.
    """

    def __init__(self) -> None:
        self._runs: WeakKeyDictionary[UUID, _Run] = WeakKeyDictionary()
        self._lock = Lock()

    def put_run(self, run_id: UUID | None, run: _Run) -> None:
        if run_id is None:  # called by itself, outside of a chain
            return
        with self._lock:
            self._runs[run_id] = run

    def take_run(self, run_id: UUID | None) -> _Run | None:
        with self._lock:
            return None if run_id is None else self._runs.pop(run_id, None)


def _find_run_id(config: RunnableConfig | None) -> UUID | None:
    """The id of the sequence that a step belongs to: the parent run of all its steps."""
    run = getattr((config or {}).get("callbacks"), "parent_run_id", None)
    if run is not None and not isinstance(run, UUID):
        raise UsageError(f"the id of a run has to be a UUID, not {type(run).__name__}")
    return run


def _resolve_scope(scope: Scope, config: RunnableConfig | None) -> str:
    if isinstance(scope, str):
        return scope
    message = "the scope cannot be told from the configuration"
    with hide_foreign_errors(message, LookupError, TypeError, AttributeError, error=UsageError):
        name = scope(config or {})
    if not isinstance(name, str) or not name:
        raise UsageError("the function that tells the scope has to return a text that is not empty")
    return name


def _change_texts(value: Any, change: Change, name: str = "", *, with_keys: bool = False) -> Any:
    """Copy an input with every text changed, in reading order. Input that cannot be read is refused.

    Args:
        value: the input.
        change: changes one text.
        name: of the field that holds the value.
        with_keys: whether keys are texts; else they are the names of a prompt's variables, or a tool's parameters.
    """
    if isinstance(value, str):
        return change(value, name)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, (int, float)):
        changed = change(str(value), name)
        return value if changed == str(value) else changed
    if isinstance(value, BaseMessage):
        return _change_message(value, change)
    if isinstance(value, ChatPromptValue):
        return ChatPromptValue(messages=[_change_message(message, change) for message in value.messages])
    if isinstance(value, StringPromptValue):
        return StringPromptValue(text=change(value.text, ""))
    if isinstance(value, Mapping):
        copied = {}
        for key, item in value.items():
            new_key = _change_texts(key, change, with_keys=True) if with_keys else key
            copied[new_key] = _change_texts(item, change, str(key), with_keys=True)
        return copied
    if isinstance(value, (list, tuple)):
        listed = [_change_texts(item, change, name, with_keys=True) for item in value]
        return tuple(listed) if isinstance(value, tuple) else listed
    raise RefusedContent(
        f"the anonymizer takes texts, messages and prompts, not {type(value).__name__}, which it cannot read"
    )


def _change_message(message: BaseMessage, change: Change) -> BaseMessage:
    if isinstance(message, BaseMessageChunk):
        message = message_chunk_to_message(message)
    # What a provider added holds the texts once more, in shapes of its own, and a tool's artefact is not for the model.
    new: dict[str, Any] = {"additional_kwargs": {}, "response_metadata": {}}
    if hasattr(message, "artifact"):
        new["artifact"] = None
    if isinstance(message, ChatMessage):  # any text may be a role
        new["role"] = change(message.role, "")
    if message.name and message.type not in ("tool", "function"):  # theirs is the tool's
        new["name"] = change(message.name, "")
    blocks = message.content
    new["content"] = change(blocks, "") if isinstance(blocks, str) else [_change_block(b, change) for b in blocks]
    if isinstance(message, AIMessage):
        new["tool_calls"] = [call | {"args": _change_texts(call["args"], change)} for call in message.tool_calls]
        new["invalid_tool_calls"] = [
            call | {"args": _change_texts(call["args"], change, with_keys=True), "error": None}
            for call in message.invalid_tool_calls
        ]
    copied = message.model_copy(update=new)
    if copied.model_extra:  # what somebody put into it beside its own fields
        copied.model_extra.clear()
    return copied


def _change_block(block: Any, change: Change) -> Any:
    if isinstance(block, str):
        return change(block, "")
    kind = str(block.get("type"))
    if kind == "text" and isinstance(block.get("text"), str):
        return {"type": kind, "text": change(block["text"], "")}
    arguments = {"tool_use": "input", "tool_call": "args"}.get(kind)
    if arguments and isinstance(block.get(arguments), Mapping):
        named = {"type": kind, "id": block.get("id"), "name": block.get("name")}
        return {**named, arguments: _change_texts(block[arguments], change)}
    raise RefusedContent(f"a message holds a part of type {kind!r}, which cannot be anonymised")


class _AnswerRestorer:
    """An answer, whole or in pieces, in which the originals are restored, but for addresses and calls that go out."""

    def __init__(self, restorer: Restorer, destination: Destination, internal_tools: frozenset[str]) -> None:
        self._restorer, self._destination, self._internal_tools = restorer, destination, internal_tools
        self._arriving = restorer.arriving(destination)
        self._last: Any = None  # the last piece: what was held back is told in its kind
        self._calls: AIMessageChunk | None = None
        self.counts = {"restored": 0, "unknown": 0}

    def restore_value(self, value: Any) -> Any:
        """Restore a text, a message or plain values."""
        if isinstance(value, str):
            restored = self._restorer.restore(value, self._destination)
            self.counts = {k: v + getattr(restored, k) for k, v in self.counts.items()}
            return restored.text
        if isinstance(value, BaseMessage):
            new = {"content": self.restore_value(value.content)}
            for name in ("tool_calls", "invalid_tool_calls"):
                if hasattr(value, name):
                    new[name] = [call | {"args": self._restore_arguments(call)} for call in getattr(value, name)]
            return value.model_copy(update=new)
        if isinstance(value, Mapping):
            if _CALL_BLOCK.fullmatch(str(value.get("type"))) and not self._is_internal(value.get("name")):
                self._count_withheld(value)
                return value
            return {self.restore_value(name): self.restore_value(item) for name, item in value.items()}
        if isinstance(value, (list, tuple)):
            listed = [self.restore_value(item) for item in value]
            return tuple(listed) if isinstance(value, tuple) else listed
        return value

    def feed(self, piece: Any) -> Iterator[Any]:
        """Yield what the next piece decides."""
        if isinstance(piece, str):
            self._last = piece
            if out := self._arriving.feed(piece):
                yield out
        elif isinstance(piece, BaseMessageChunk):
            self._last = piece
            yield self._restore_chunk(piece)
        else:
            yield self.restore_value(piece)

    def end(self) -> Iterator[Any]:
        """Yield what was held back."""
        rest = self._arriving.end()
        self.counts = {k: v + getattr(self._arriving, k) for k, v in self.counts.items()}
        if isinstance(self._last, str):
            if rest:
                yield rest
        elif rest or self._calls is not None:
            empty: dict[str, Any] = {"additional_kwargs": {}, "response_metadata": {}, "usage_metadata": None}
            extra = {name: value for name, value in empty.items() if hasattr(self._last, name)}
            yield self._make_closing_chunk(self._last.model_copy(update=extra), rest)

    def _restore_chunk(self, piece: Any) -> Any:
        last = getattr(piece, "chunk_position", None) == "last"
        if calls := getattr(piece, "tool_call_chunks", None):
            alone = AIMessageChunk(content="", tool_call_chunks=calls)
            self._calls = alone if self._calls is None else self._calls + alone
        if last:
            return self._make_closing_chunk(piece, self._restore_to_text(piece.content) + self._arriving.end())
        new: dict[str, Any] = {"content": self._restore_content(piece.content)}
        if calls:
            new |= {"tool_call_chunks": [], "tool_calls": [], "invalid_tool_calls": []}
        return piece.model_copy(update=new)

    def _restore_content(self, content: Any) -> Any:
        if isinstance(content, str):
            return self._arriving.feed(content)
        return [self._restore_block(block) for block in content]

    def _restore_block(self, block: Any) -> Any:
        if isinstance(block, str):
            return self._arriving.feed(block)
        text = block.get("text")
        return {**block, "text": self._arriving.feed(text)} if isinstance(text, str) else block

    def _restore_to_text(self, content: Any) -> str:
        restored = self._restore_content(content)
        blocks = [restored] if isinstance(restored, str) else restored
        return "".join(b if isinstance(b, str) else b.get("text", "") for b in blocks)

    def _make_closing_chunk(self, piece: Any, rest: str) -> Any:
        """The last chunk, with the text that was held back, and tool calls with restored arguments."""
        content = rest if isinstance(piece.content, str) else [{"type": "text", "text": rest, "index": 0}] * bool(rest)
        new: dict[str, Any] = {"content": content}
        if self._calls is None:
            return piece.model_copy(update=new)
        chunks = [call | {"args": self._restore_written_arguments(call)} for call in self._calls.tool_call_chunks]
        self._calls = None
        extra = {name: getattr(piece, name) for name in ("id", "usage_metadata", "response_metadata", "chunk_position")}
        return AIMessageChunk(tool_call_chunks=chunks, **extra, **new)

    def _restore_arguments(self, call: Mapping[str, Any]) -> Any:
        """Return the arguments of a call, with originals if its tool is internal."""
        if self._is_internal(call.get("name")):
            return self.restore_value(call["args"])
        self._count_withheld(call["args"])
        return call["args"]

    def _restore_written_arguments(self, call: Mapping[str, Any]) -> str | None:
        """As :meth:`_restore_arguments`, for arguments that are written as JSON and may be cut off."""
        written: str | None = call["args"]
        try:
            value = json.loads(written or "")
        except ValueError:
            return written and str(self._restore_arguments(call))
        restored = self._restore_arguments({**call, "args": value})
        return written if restored == value else json.dumps(restored, ensure_ascii=False)

    def _is_internal(self, tool: Any) -> bool:
        return not self._internal_tools.isdisjoint((tool, "*"))

    def _count_withheld(self, value: Any) -> None:
        """Count the replacements in what keeps them."""
        if isinstance(value, str):
            self.counts["unknown"] += len(self._restorer.list_originals(value))
        for item in value.values() if isinstance(value, Mapping) else value if isinstance(value, (list, tuple)) else ():
            self._count_withheld(item)
