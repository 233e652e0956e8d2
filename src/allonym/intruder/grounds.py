"""What a language model infers from a text about a person, and by which phrases: the attacker of adversarial rewriting.

After Staab et al. 2024 (arXiv 2402.13846, section 4). A text may contain sentences that keep a model from answering. So
a control number follows each text and is one of the attributes: an answer that does not infer it counts as none. It is
no sign that a text is safe.

Strictly opt-in: texts go to the endpoint that the client's settings name, and nowhere else.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from allonym.document import Interval
from allonym.errors import UnknownNameError
from allonym.intruder.persons import ATTRIBUTES
from allonym.intruder.scoring import CUT, LESS, measure_likeness, score_guess
from allonym.llm import Client, Reply, Request
from allonym.llm.client import ask_and_read_with_retry
from allonym.llm.templates import TEXT, fill_slots, make_list_schema, make_object_schema, make_utf8_safe, read_prompts
from allonym.plan import digest
from allonym.text.words import compile_whole_words

NAME = "name"
ASKED: tuple[str, ...] = (NAME, *ATTRIBUTES)
"""What a model may infer: the name, and the attributes of :mod:`.persons`."""
LONGEST = 12
"""Words of a phrase that counts as a ground: a longer one points at nothing."""
MOST = 40
"""Grounds of one text that count."""
_BATCH = 32  # texts in one round of requests
_INFERENCE = make_object_schema({"attribute": TEXT, "guess": TEXT, "phrases": make_list_schema(TEXT)})
SCHEMA = make_object_schema({"inferences": make_list_schema(_INFERENCE)})
_CONTROL = "control"
_GUESS = (str, int, float, type(None))  # None: nothing was inferred


@dataclass(frozen=True, slots=True)
class Inference:
    """An attribute that a model inferred.

    Attributes:
        attribute: one of :data:`ASKED`.
        guess: its value. Hidden from ``repr``.
        places: where the phrases stand that gave it away: sorted half-open offsets of the text.
    """

    attribute: str
    guess: str = field(repr=False)
    places: tuple[Interval, ...] = ()

    def is_right(self, profile: Mapping[str, str]) -> bool:
        """Whether the guess is right or less precise; where the profile has no true value, whether it has grounds.

        Raises:
            DataError: the true value cannot be read, such as an age without a number.
        """
        truth = profile.get(self.attribute, "")
        if not truth:
            return bool(self.places)
        if self.attribute == NAME:
            return measure_likeness(self.guess, truth) >= CUT
        return score_guess(self.attribute, self.guess, truth) >= LESS


def infer_with_grounds(
    texts: Sequence[str],
    client: Client,
    *,
    attributes: Sequence[str] = ASKED,
    person: str = "author",
    kind: str = "text",
    refused: Counter[str] | None = None,
) -> list[tuple[Inference, ...] | None]:
    """Ask a language model what each text gives away, and by which phrases.

    Args:
        texts: what it reads; each text by itself.
        client: whom to ask; see :func:`allonym.intruder.persons.open_client`.
        attributes: some of :data:`ASKED`.
        person: who is looked for, such as ``author`` or ``person described``.
        kind: what the texts are.
        refused: counts what in the answers could not be used, by kind.

    Returns:
        For each text one inference an attribute at most; None where no answer could be used.

    Raises:
        UnknownNameError: there is no such attribute.
        EndpointError: the endpoint did not answer. The message shows nothing that was sent.
    """
    for name in attributes:
        if name not in ASKED:
            raise UnknownNameError("attribute", name, ASKED)
    prompts = read_prompts("intruder", "grounds")
    words = {**read_prompts("intruder", "attributes")["asked"], NAME: prompts[NAME]}
    slots = {"person": person, "kind": kind, "asked": "\n".join(f'"{name}": {words[name]}' for name in attributes)}
    system, again = (fill_slots(prompts[part], slots) for part in ("system", "again"))
    counts = Counter[str]() if refused is None else refused
    answers: list[tuple[Inference, ...] | None] = []
    for start in range(0, len(texts), _BATCH):
        batch = texts[start : start + _BATCH]
        controls = [_make_control(text) for text in batch]
        requests = [
            Request((("system", system), ("user", f"{make_utf8_safe(t)}\n\nControl: {c}")), SCHEMA, "inferences")
            for t, c in zip(batch, controls, strict=True)
        ]
        replies = ask_and_read_with_retry(client, requests, again, lambda reply: _read_rows(reply, counts))
        for text, control, rows in zip(batch, controls, replies, strict=True):
            if rows is not None and not any(_is_control(row, control) for row in rows):
                counts["attack without its control number"] += 1
                rows = None
            rows = None if rows is None else [row for row in rows if _read_name(row) != _CONTROL]
            answers.append(None if rows is None else _read_inferences(text, rows, attributes, counts))
    return answers


def find_phrase(phrase: str, text: str) -> list[Interval]:
    """Find a phrase as whole words, whatever its case and blanks; sorted half-open offsets."""
    pattern = r"\s+".join(map(re.escape, phrase.split()))
    return [match.span() for match in compile_whole_words(pattern, re.IGNORECASE).finditer(text)] if pattern else []


def _make_control(text: str) -> str:
    """Return a number of four digits that the text decides, so that answers can be kept."""
    return str(1000 + int(digest(text)[:8], 16) % 9000)


def _is_control(row: Mapping[str, object], control: str) -> bool:
    return _read_name(row) == _CONTROL and str(row.get("guess", "")).strip() == control


def _read_name(row: Mapping[str, object]) -> str:
    return str(row.get("attribute", "")).strip().lower()


def _read_rows(reply: Reply, counts: Counter[str]) -> list[Mapping[str, object]] | None:
    rows = (reply.answer or {}).get("inferences")
    if not isinstance(rows, list):
        counts["attack unreadable"] += 1
        return None
    odd = sum(not isinstance(row, Mapping) or not isinstance(row.get("guess", ""), _GUESS) for row in rows)
    counts["inference of another form"] += odd
    return None if odd else rows  # what cannot be read may be a right guess


def _read_inferences(
    text: str, rows: Sequence[Mapping[str, object]], attributes: Sequence[str], counts: Counter[str]
) -> tuple[Inference, ...]:
    out: dict[str, Inference] = {}
    left = MOST
    for row in rows:
        name, guess, phrases = _read_name(row), row.get("guess"), row.get("phrases")
        guess = "" if guess is None else str(guess)
        if name not in attributes or name in out or not guess.strip():
            counts["inference of another form"] += 1
            continue
        places: set[Interval] = set()
        for phrase in phrases if isinstance(phrases, list) else ():
            if not isinstance(phrase, str) or not 0 < len(phrase.split()) <= LONGEST or len(places) >= left:
                counts["ground of another form"] += 1
            elif there := find_phrase(phrase.strip(" .,;:!?\"'"), text):
                places.update(there[: left - len(places)])
            else:
                counts["ground not in the text"] += 1
        left -= len(places)
        out[name] = Inference(name, guess, tuple(sorted(places)))
    return tuple(out.values())
