"""The common shapes of training sets, and how a document becomes examples in them.

Chat: ``{"messages": [{"role": ..., "content": ...}]}``. Prompts: ``{"prompt", "completion"}``, or ``{"instruction",
"input", "output"}``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Protocol

from allonym.errors import DataError, UnknownNameError, UsageError
from allonym.settings import REQUIRED, SettingGroup, declare_setting, read_table, read_toml
from allonym.text.words import LETTERS

ROLES = ("system", "user", "assistant")
DROP = "-"
"""In place of a role: the turns of this speaker are left out."""

_ASSISTANT = frozenset(
    "assistant agent operator representative rep advisor adviser support bot clerk clinician doctor dr nurse therapist "
    "consultant model".split()
)
_USER = frozenset("user customer caller client patient guest human visitor buyer student member".split())
_FIELD = re.compile(r"\{([A-Za-z_][\w.\-]*)\}")
Example = dict[str, object]


class Shape(Protocol):
    """Makes examples of an anonymised document.

    Attributes:
        name: for the manifest.
        turns: whether it needs a document's turns; else it needs one text.
        fields: fields that it needs beside the text.
        prompts: all fixed text of the examples.
    """

    @property
    def name(self) -> str: ...
    @property
    def turns(self) -> bool: ...
    @property
    def fields(self) -> tuple[str, ...]: ...
    @property
    def prompts(self) -> tuple[str, ...]: ...

    def examples(self, speakers: Sequence[str], parts: Sequence[str]) -> list[tuple[str, Example]]:
        """Make the examples of a document, each after the name of its task.

        Args:
            speakers: the speaker of each turn, as the source names it.
            parts: speaker and text of each turn, or the text; then the fields; all anonymised.

        Raises:
            DataError: the document makes no example; the message holds none of its text.
        """
        ...


@dataclass(frozen=True, slots=True)
class Roles:
    """The roles of speakers, whose names are compared without case.

    Attributes:
        by_speaker: speaker to role, or to ``-`` where the speaker's turns are left out.
    """

    by_speaker: Mapping[str, str] = field(default_factory=dict, repr=False)

    @classmethod
    def from_names(cls, roles: Mapping[str, str]) -> Roles:
        """Check the roles of speakers.

        Raises:
            UnknownNameError: there is no such role.
        """
        for role in roles.values():
            if role not in (*ROLES, DROP):
                raise UnknownNameError("role", role, (*ROLES, DROP), "--role")
        return cls({name.strip().casefold(): role for name, role in roles.items()})

    def assign_roles(self, speakers: Sequence[str]) -> list[str]:
        """The role of each turn.

        Of two speakers without a role, the one with a name such as Agent is the assistant. Where one has a name such as
        Customer, the other is the assistant; else the second to speak is.

        Raises:
            DataError: a speaker has no role; the message gives a number, since the speaker may be a name.
        """
        names = [name.strip().casefold() for name in speakers]
        roles = {name: self.by_speaker[name] for name in names if name in self.by_speaker}
        unassigned = [name for name in dict.fromkeys(names) if name not in roles]
        roles |= {name: name for name in unassigned if name in ROLES}
        unassigned = [name for name in unassigned if name not in roles]
        roles |= _guess_roles(unassigned, set(roles.values()))
        order = list(dict.fromkeys(names))
        if lacking := [i for i, name in enumerate(order, 1) if name not in roles]:
            raise DataError(
                f"speaker {lacking[0]} of {len(order)} has no role; --role NAME=user gives one "
                "(Roles.from_names() in Python)"
            )
        return [roles[name] for name in names]


def _guess_roles(names: Sequence[str], taken_roles: set[str]) -> dict[str, str]:
    """Guess the roles of speakers without one, where their names allow it.

    Args:
        taken_roles: the roles of other speakers.
    """
    usual = {name: role for name in names if (role := _guess_usual_role(name))}
    if len(names) > 2:
        return usual
    present = {*usual.values(), *taken_roles} & {"user", "assistant"}
    if len(names) == 2 and len(usual) == 2:
        return usual if len(set(usual.values())) == 2 else {}
    if len(present) == 1:
        other = "user" if "assistant" in present else "assistant"
        return usual | {name: other for name in names if name not in usual}
    if len(names) == 2 and not present:
        return dict(zip(names, ("user", "assistant"), strict=True))
    return usual


def _guess_usual_role(name: str) -> str:
    words = set(LETTERS.findall(name))
    return "assistant" if words & _ASSISTANT else "user" if words & _USER else ""


@dataclass(frozen=True, slots=True)
class Chat:
    """One example from one conversation. Consecutive turns of one role become one message, and messages after the
    assistant's last one are left out, since nothing can be learnt from them.

    Attributes:
        roles: roles of the speakers.
        system: a first message with the role system; empty: none.
    """

    roles: Roles = field(default_factory=Roles)
    system: str = ""
    name: str = "chat"
    turns: bool = True
    fields: tuple[str, ...] = ()

    @property
    def prompts(self) -> tuple[str, ...]:
        """The system message."""
        return (self.system,) if self.system else ()

    def examples(self, speakers: Sequence[str], parts: Sequence[str]) -> list[tuple[str, Example]]:
        """See :class:`Shape`."""
        messages = [(role, text.strip()) for _, role, text in select_turns(self.roles, speakers, parts)]
        groups = groupby((message for message in messages if message[1]), itemgetter(0))
        merged = [(role, "\n".join(text for _, text in group)) for role, group in groups]
        while merged and merged[-1][0] != "assistant":
            merged.pop()
        if not any(role == "user" for role, _ in merged):
            raise DataError("no message of a user that an assistant answers")
        if self.system:
            merged.insert(0, ("system", self.system))
        return [(self.name, {"messages": [{"role": role, "content": text} for role, text in merged]})]


def select_turns(roles: Roles, speakers: Sequence[str], parts: Sequence[str]) -> list[tuple[str, str, str]]:
    """The anonymised speaker, role and text of each turn that is not left out."""
    shown, texts = parts[0 : 2 * len(speakers) : 2], parts[1 : 2 * len(speakers) : 2]
    turns = zip(shown, roles.assign_roles(speakers), texts, strict=True)
    return [(speaker, role, text) for speaker, role, text in turns if role != DROP]


class Task(SettingGroup):
    """A task to learn: from a prompt and an input to a completion.

    ``{text}`` in a template is the anonymised text, ``{name}`` a field beside it, anonymised with it.
    """

    name: str = declare_setting(REQUIRED, "name for the manifest")
    prompt: str = declare_setting(REQUIRED, "template of the instruction")
    completion: str = declare_setting(REQUIRED, "template of the answer, such as {summary}")
    input: str = declare_setting("{text}", "template of the text that it is about")

    def __post_init__(self) -> None:
        """Check the templates."""
        super().__post_init__()
        if not _FIELD.search(self.completion):
            raise UsageError(f"task {self.name}: completion: a field is required, such as {{summary}}")
        if not _FIELD.search(self.prompt + self.input):
            raise UsageError(f"task {self.name}: prompt or input must hold a field, such as {{text}}")

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields that the templates name."""
        names = _FIELD.findall(self.prompt + self.input + self.completion)
        return tuple(dict.fromkeys(name for name in names if name != "text"))


@dataclass(frozen=True, slots=True)
class Prompts:
    """Prompts with completions: an example for each task, or for each answer of the assistant.

    Attributes:
        tasks: the tasks; where there are none, the assistant's turns are the completions and the turns before them the
            input.
        instruction: whether examples have instruction, input and output; else they have prompt and completion.
        roles, prompt, history: where the assistant's turns are the completions: the roles of the speakers, the
            instruction, and how many earlier turns are shown; 0: all.
    """

    tasks: tuple[Task, ...] = ()
    instruction: bool = False
    roles: Roles = field(default_factory=Roles)
    prompt: str = ""
    history: int = 0

    def __post_init__(self) -> None:
        if twice := len(self.tasks) - len({task.name for task in self.tasks}):
            raise UsageError(f"every task needs a name of its own; {twice} share the name of another")
        if not self.tasks and _FIELD.search(self.prompt):
            raise UsageError("a prompt for the next turn is used unchanged and can hold no field in braces")
        if self.history < 0:
            raise UsageError(f"history must be 0 or more, got {self.history}")

    @property
    def name(self) -> str:
        """``sft``, or ``sft-instruction``."""
        return "sft-instruction" if self.instruction else "sft"

    @property
    def turns(self) -> bool:
        """Whether the assistant's turns are the completions."""
        return not self.tasks

    @property
    def fields(self) -> tuple[str, ...]:
        """Of all tasks."""
        return tuple(dict.fromkeys(name for task in self.tasks for name in task.fields))

    @property
    def prompts(self) -> tuple[str, ...]:
        """Templates without their fields."""
        templates = [part for task in self.tasks for part in (task.prompt, task.input, task.completion)]
        texts = (_FIELD.sub("", template) for template in templates or [self.prompt])
        return tuple(text for text in texts if text.strip())

    def examples(self, speakers: Sequence[str], parts: Sequence[str]) -> list[tuple[str, Example]]:
        """See :class:`Shape`."""
        if not self.tasks:
            return self._make_turn_examples(select_turns(self.roles, speakers, parts))
        values = {"text": parts[0], **dict(zip(self.fields, parts[1:], strict=True))}
        out = []
        for task in self.tasks:
            used = _FIELD.findall(task.prompt + task.input + task.completion)
            if empty := [name for name in used if not values[name].strip()]:
                raise DataError(f"nothing is left in the field {empty[0]!r}")
            prompt, input_text, answer = (_fill_template(t, values) for t in (task.prompt, task.input, task.completion))
            out.append((task.name, self._make_example(prompt, input_text, answer)))
        return out

    def _make_turn_examples(self, turns: Sequence[tuple[str, str, str]]) -> list[tuple[str, Example]]:
        out = []
        for i, (_, role, text) in enumerate(turns):
            before = turns[max(0, i - self.history) if self.history else 0 : i]
            if role == "assistant" and text.strip() and any(other_role == "user" for _, other_role, _ in before):
                history = "\n".join(f"{speaker or other_role}: {t.strip()}" for speaker, other_role, t in before)
                out.append(("next turn", self._make_example(self.prompt, history, text.strip())))
        if not out:
            raise DataError("no message of a user that an assistant answers")
        return out

    def _make_example(self, prompt: str, input_text: str, answer: str) -> Example:
        if self.instruction:
            return {"instruction": prompt, "input": input_text, "output": answer}
        return {"prompt": "\n\n".join(part for part in (prompt, input_text) if part) + "\n\n", "completion": answer}


def _fill_template(template: str, values: Mapping[str, str]) -> str:
    return _FIELD.sub(lambda m: values[m[1]], template)


def read_tasks(path: str | Path) -> tuple[Task, ...]:
    """Read the tasks of a TOML file: tables ``[[task]]`` with ``name``, ``prompt``, ``completion`` and optionally
    ``input``, by default ``{text}``.

    Raises:
        UsageError: the file has another form.
        UnknownNameError: a key is not known.
    """
    read = read_toml(Path(path))
    if set(read) != {"task"} or not isinstance(read["task"], list):
        raise UsageError(f"{path}: tables [[task]] are required, and nothing else")
    return tuple(Task(**read_table(Task, row, f"{path}: task {i}")) for i, row in enumerate(read["task"], 1))
