"""A language model as an intruder, asked with P1's prompt (arXiv 2505.21128, appendix A; told more as in 3.2.3).

Strictly opt-in: texts go to the endpoint that the settings name, and nowhere without one. Answers are stored in the
client's encrypted cache, so that an interrupted study continues where it was.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

import numpy as np

from allonym.intruder.persons import open_client
from allonym.intruder.protocol import TOLD, Item, Ranking, Target
from allonym.llm import Client, Reply, Request
from allonym.llm.client import ask_and_read_with_retry
from allonym.llm.templates import TEXT, Messages, fill_slots, make_object_schema, make_utf8_safe, read_prompts
from allonym.text.names import normalize_organization, normalize_surface

SCHEMA = make_object_schema({"first": TEXT, "second": TEXT})
_SIMILAR = 0.85  # ratio of two names from which one may be the other misspelt
_LONGEST = 100  # characters of an answer that is no JSON and may yet be a name

Guesses = tuple[str, str]


class LanguageModel:
    """Guesses from what a language model knows of the world; learns nothing.

    Args:
        client: whom to ask; by default the client for ``settings`` and ``key``.
        settings: keys of a policy's table ``[llm]``.
        key: for the client's cache, 32 bytes or more; None: no answer is stored.
        subject: what is guessed, such as ``company name``, ``hospital``, ``author``.
        kind: what the texts are from, such as ``earnings call transcript``.
        reply: form of a guess, such as ``ticker symbol (in Capital Letters)``, as P1 has it.
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
        self._client = client or open_client(settings, key)
        self._slots = {"subject": subject, "kind": kind, "reply": reply}
        self._aliases = dict(aliases or {})
        self._is_listed = listed

    def learn(self, items: Sequence[Item], labels: Sequence[int], classes: Sequence[str]) -> _ModelJudge:
        """Take the names of the classes; see :class:`allonym.intruder.Intruder`."""
        names = [(name, *self._aliases.get(name, ())) for name in classes]
        candidates = _fill_prompt("listed", {"classes": "\n".join(classes)}) if self._is_listed else ""
        return _ModelJudge(self._client, {**self._slots, "classes": candidates}, names)


@dataclass(repr=False, eq=False)
class _ModelJudge:
    _client: Client
    _slots: Mapping[str, str]
    _names: Sequence[Sequence[str]]

    def rank(self, targets: Sequence[Target]) -> Ranking:
        """As :class:`allonym.intruder.Judge`; raises :class:`EndpointError` where the endpoint does not answer."""
        answers: dict[Target, Guesses] = {}
        for level, stage in enumerate(("", *TOLD)):
            # Whoever is told something was asked before without.
            earlier = dict.fromkeys(
                _limit_target_to_stage(t, stage) for t in targets if _get_stage_level(t.told) >= level
            )
            missing = [target for target in earlier if target not in answers]
            answers |= zip(missing, self._request_guesses(missing, answers), strict=True)
        matched: dict[str, int] = {}
        order = np.full((len(targets), 2), -1, np.int64)
        for i, target in enumerate(targets):
            for k, guess in enumerate(answers[_limit_target_to_stage(target, target.told)]):
                if guess not in matched:
                    matched[guess] = find_guessed_class(guess, self._names)
                order[i, k] = matched[guess]
        return Ranking(order, np.tile([1.0, 0.5], (len(targets), 1)))

    def terms(self, targets: Sequence[Target], labels: Sequence[int]) -> Mapping[str, float]:
        """Nothing: the model gives no reasons."""
        return {}

    def _request_guesses(self, targets: Sequence[Target], earlier_answers: Mapping[Target, Guesses]) -> list[Guesses]:
        requests = [Request(self._build_messages(target, earlier_answers), SCHEMA, "guesses") for target in targets]
        again = _fill_prompt("again", {})
        replies = ask_and_read_with_retry(
            self._client, requests, again, _read_guesses, lambda reply: _read_guesses(reply) or _read_plain_name(reply)
        )
        return [guesses or ("", "") for guesses in replies]

    def _build_messages(self, target: Target, earlier_answers: Mapping[Target, Guesses]) -> Messages:
        messages: Messages = (
            ("system", _fill_prompt("system", self._slots)),
            ("user", make_utf8_safe(target.item.text)),
        )
        for stage in TOLD[: _get_stage_level(target.told)]:
            first, second = earlier_answers[_limit_target_to_stage(target, "" if stage == TOLD[0] else TOLD[0])]
            others = "\n\n".join(make_utf8_safe(other.text) for other in target.others)
            answer = json.dumps({"first": first, "second": second})
            question = _fill_prompt(stage, {**self._slots, "others": others})
            messages = (*messages, ("assistant", answer), ("user", question))
        return messages


def find_guessed_class(guess: str, class_names: Sequence[Sequence[str]]) -> int:
    """Return the index of the class that a guess means, -1 where it is none of them or may be several.

    A guess means a class by the same name but for case, accents and legal form; else by one name within the other,
    word by word; else by one name that may be the other misspelt.

    >>> find_guessed_class("Nexstar Media Group, Inc.", [("Nextar Media Group",), ("Quill Paper", "QLP")])
    0
    """
    core = normalize_organization(normalize_surface(guess))
    if not core.strip():
        return -1
    forms = [[normalize_organization(normalize_surface(name)) for name in names] for names in class_names]
    tests = (
        lambda form: form == core,
        lambda form: _is_either_within_other(set(core.split()), set(form.split())),
        lambda form: SequenceMatcher(None, form, core).ratio() >= _SIMILAR,
    )
    for fits in tests:
        if classes := [i for i, forms_of_class in enumerate(forms) if any(map(fits, forms_of_class))]:
            return classes[0] if len(classes) == 1 else -1
    return -1


def _is_either_within_other(a: set[str], b: set[str]) -> bool:
    """Whether one of two names holds all words of the other, a longer one among them."""
    return (a <= b or b <= a) and any(len(word) > 3 for word in a & b)


def _read_guesses(reply: Reply) -> Guesses | None:
    answer = reply.answer
    if answer is None or "first" not in answer:
        return None
    first, second = answer["first"], answer.get("second", "")
    return (first if isinstance(first, str) else "", second if isinstance(second, str) else "")


def _read_plain_name(reply: Reply) -> Guesses | None:
    """Read an answer that is no JSON but may be a name."""
    content = reply.content.strip()
    return (content, "") if reply.whole and 0 < len(content) <= _LONGEST and "\n" not in content else None


def _get_stage_level(stage: str) -> int:
    return TOLD.index(stage) + 1 if stage else 0


def _limit_target_to_stage(target: Target, stage: str) -> Target:
    """The target as it was when no more than ``stage`` was told; with no other text there is no more to tell."""
    if stage == "interchanged":
        return Target(target.item, stage, target.others) if target.others else Target(target.item, "altered")
    return Target(target.item, stage)


def _fill_prompt(part: str, slots: Mapping[str, str]) -> str:
    return fill_slots(read_prompts("intruder", "guess")[part], slots)
