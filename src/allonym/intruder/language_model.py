"""A language model as an intruder, asked with P1's prompt (arXiv 2505.21128, appendix A; told more as in 3.2.3).

Strictly opt-in: texts go to the endpoint that the settings name, and nowhere without one. Answers are kept in the
client's encrypted cache, so a study that was interrupted goes on where it was.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from functools import cache
from importlib.resources import files

import numpy as np

from allonym.errors import EndpointError
from allonym.intruder.protocol import TOLD, Item, Ranking, Target
from allonym.llm import Client, Reply, Request, client_for
from allonym.llm.answers import parsed
from allonym.llm.templates import Messages
from allonym.registry import LLM_KEYS
from allonym.text.names import organization, plain

SCHEMA: Mapping[str, object] = {
    "type": "object",
    "properties": {"first": {"type": "string"}, "second": {"type": "string"}},
    "required": ["first", "second"],
    "additionalProperties": False,
}
_SLOT = re.compile(r"\{(subject|kind|reply|classes|others)\}")
_LIKE = 0.85  # ratio of two names from which one may be the other misspelt
_LONGEST = 100  # characters of an answer that is no JSON and may yet be a name

Guesses = tuple[str, str]


class LanguageModel:
    """Guesses from what a language model knows of the world; learns nothing.

    Args:
        client: whom to ask; by default the one for ``settings`` and ``key``.
        settings: keys of a policy's table ``[llm]``.
        key: for the client's cache, 32 bytes or more; None: no answer is kept.
        subject: what is guessed, e.g. ``company name``, ``hospital``, ``author``.
        kind: what the texts are from, e.g. ``earnings call transcript``.
        reply: how a guess is to be given, e.g. ``ticker symbol (in Capital Letters)``, as P1 has it.
        aliases: class to further names that count as it, such as its ticker.
        listed: whether the model gets the names of all classes to choose from. P1's do not.

    Raises:
        UsageError: no endpoint is named.
    """

    name = "llm"
    learns = False
    told = TOLD

    def __init__(
        self,
        client: Client | None = None,
        settings: Mapping[str, object] | None = None,
        key: bytes | None = None,
        subject: str = "company name",
        kind: str = "text",
        reply: str = "name",
        aliases: Mapping[str, Sequence[str]] | None = None,
        listed: bool = False,
    ) -> None:
        defaults = {name: one.default for name, one in LLM_KEYS.items()}
        self._client = client or client_for(defaults | dict(settings or {}), key)
        self._slots = {"subject": subject, "kind": kind, "reply": reply}
        self._aliases = dict(aliases or {})
        self._listed = listed

    def learn(self, known: Sequence[Item], labels: Sequence[int], classes: Sequence[str]) -> _Judge:
        """What it knows of the classes is their names."""
        names = [(c, *self._aliases.get(c, ())) for c in classes]
        listed = _filled("listed", {"classes": "\n".join(classes)}) if self._listed else ""
        return _Judge(self._client, {**self._slots, "classes": listed}, names)


class _Judge:
    def __init__(self, client: Client, slots: Mapping[str, str], names: Sequence[Sequence[str]]) -> None:
        self._client = client
        self._slots = slots
        self._names = names

    def rank(self, targets: Sequence[Target]) -> Ranking:
        """As :class:`allonym.intruder.Judge`; raises :class:`EndpointError` where the endpoint does not answer."""
        found: dict[Target, Guesses] = {}
        for stage in ("", *TOLD):
            # Whoever is told something was asked before without.
            at_least = [t for t in targets if _rank(t.told) >= _rank(stage)]
            wanted = [t for t in dict.fromkeys(_at(t, stage) for t in at_least) if t not in found]
            for target, guesses in zip(wanted, self._asked(wanted, found), strict=True):
                found[target] = guesses
        matched: dict[str, int] = {}
        order = np.full((len(targets), 2), -1, np.int64)
        for i, target in enumerate(targets):
            for k, guess in enumerate(found[_at(target, target.told)]):
                if guess not in matched:
                    matched[guess] = match(guess, self._names)
                order[i, k] = matched[guess]
        return Ranking(order, np.tile([1.0, 0.5], (len(targets), 1)))

    def terms(self, targets: Sequence[Target], labels: Sequence[int]) -> Mapping[str, float]:
        """Nothing: it gives no reasons."""
        return {}

    def _asked(self, targets: Sequence[Target], found: Mapping[Target, Guesses]) -> list[Guesses]:
        talks = [self._messages(target, found) for target in targets]
        replies = self._client.ask_all([Request(talk, SCHEMA, "guesses") for talk in talks])
        for reply in replies:
            if isinstance(reply, EndpointError):
                raise reply
        out = [_read(reply) for reply in replies if isinstance(reply, Reply)]
        again = [i for i, guesses in enumerate(out) if guesses is None]
        asked = [Request(_longer(talks[i], _filled("again", {})), SCHEMA, "guesses") for i in again]
        for i, reply in zip(again, self._client.ask_all(asked), strict=True):
            if isinstance(reply, EndpointError):
                raise reply
            out[i] = _read(reply) or _plain_name(reply)
        return [guesses or ("", "") for guesses in out]

    def _messages(self, target: Target, found: Mapping[Target, Guesses]) -> Messages:
        talk: Messages = (("system", _filled("system", self._slots)), ("user", _utf8(target.item.text)))
        for stage in TOLD[: _rank(target.told)]:
            said = found[_at(target, "" if stage == TOLD[0] else TOLD[0])]
            others = "\n\n".join(_utf8(other.text) for other in target.others)
            answer = json.dumps({"first": said[0], "second": said[1]})
            talk = (*talk, ("assistant", answer), ("user", _filled(stage, {**self._slots, "others": others})))
        return talk


def match(guess: str, names: Sequence[Sequence[str]]) -> int:
    """The class that a guess means: its index, -1 where it is none of them or may be several.

    The same name but for case, accents and legal form; else one within the other, word by word; else one misspelt.

    >>> match("Nexstar Media Group, Inc.", [("Nextar Media Group",), ("Quill Paper", "QLP")])
    0
    """
    wanted = organization(plain(guess))
    if not wanted.strip():
        return -1
    forms = [[organization(plain(name)) for name in own] for own in names]
    words = set(wanted.split())
    tests = (
        lambda form: form == wanted,
        lambda form: _within(words, set(form.split())),
        lambda form: SequenceMatcher(None, form, wanted).ratio() >= _LIKE,
    )
    for fits in tests:
        meant = [i for i, own in enumerate(forms) if any(fits(form) for form in own)]
        if meant:
            return meant[0] if len(meant) == 1 else -1
    return -1


def _within(a: set[str], b: set[str]) -> bool:
    return (a <= b or b <= a) and any(len(word) > 3 for word in a & b)


def _read(reply: Reply) -> Guesses | None:
    found = parsed(reply.content) if reply.whole else None
    if found is None or "first" not in found:
        return None
    first, second = found["first"], found.get("second", "")
    return (first if isinstance(first, str) else "", second if isinstance(second, str) else "")


def _plain_name(reply: Reply) -> Guesses | None:
    said = reply.content.strip()
    return (said, "") if reply.whole and 0 < len(said) <= _LONGEST and "\n" not in said else None


def _rank(told: str) -> int:
    return TOLD.index(told) + 1 if told else 0


def _at(target: Target, stage: str) -> Target:
    """The target when it was told no more than that; with no other text there is no more to tell."""
    if stage == "interchanged":
        return Target(target.item, stage, target.others) if target.others else Target(target.item, "altered")
    return Target(target.item, stage)


def _longer(talk: Messages, more: str) -> Messages:
    role, last = talk[-1]
    return (*talk[:-1], (role, f"{last}\n\n{more}"))


@cache
def _parts() -> Mapping[str, str]:
    return tomllib.loads(files("allonym").joinpath("intruder", "guess.toml").read_text(encoding="utf-8"))


def _filled(part: str, values: Mapping[str, str]) -> str:
    return _utf8(_SLOT.sub(lambda m: values.get(m[1], ""), _parts()[part]).strip())


def _utf8(text: str) -> str:
    return text.encode("utf-8", "replace").decode()  # a lone surrogate has no UTF-8
