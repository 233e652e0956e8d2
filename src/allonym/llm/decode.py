"""P5's decoding with a language model (section 2.2, algorithm 2), for what restoring by rules leaves unknown.

The model gets the rewritten text, the fictional names and their tags: never an original. P5 lets it rewrite the text;
here it only points at portions, and each is verified: it stands in the text letter by letter, it names one tag only, it
shares the beginning of a word or its initials with the fictional name, and no two portions overlap. So nothing but
mentions can change, and no pronoun is taken for a name. The originals are put in by the caller.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from allonym.document import Interval, merge, subtract
from allonym.errors import EndpointError
from allonym.llm.answers import parsed
from allonym.llm.client import Client, Reply, Request
from allonym.llm.templates import messages
from allonym.text.names import plain
from allonym.text.words import find_words

WORDS = 800
"""Words of a window."""
_OVERLAP = 40
_COVER = "[...]"
_PIECE = re.compile(r"\S+")

SCHEMA: Mapping[str, object] = {
    "type": "object",
    "properties": {
        "spans": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"tag": {"type": "string"}, "text": {"type": "string"}},
                "required": ["tag", "text"],
                "additionalProperties": False,
            },
        }
    },
    "required": ["spans"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class Located:
    """A portion of a text that stands for a tag: half-open code points, and the tag."""

    start: int
    end: int
    tag: str


def decode(
    text: str, names: Mapping[str, str], client: Client, *, done: Sequence[Interval] = ()
) -> tuple[Located, ...]:
    """Where a rewritten text names what the tags stand for.

    Args:
        text: as it came back, with fictional names and without originals: it is sent.
        names: fictional name to its wild tag; two names may share a tag, no name may have two.
        client: see :func:`allonym.llm.client_for`.
        done: places that are settled already; what stands there is not sent and not looked at.

    Returns:
        Portions of ``text``, sorted and disjoint, outside of ``done``. What may be meant for two tags is left out.

    Raises:
        EndpointError: the endpoint gave no answer, or twice none that can be read.
    """
    settled = sorted(done)
    listed = "\n".join(f"{tag}: {name}" for name, tag in names.items())
    if not names or not text.strip():
        return ()
    windows = list(_windows(_covered(text, settled)))

    def asked(parts: Sequence[str], again: bool) -> list[Reply | EndpointError]:
        made = [messages("decode", client.prompts, again=again, text=t, entities=listed) for t in parts]
        return client.ask_all([Request(m, SCHEMA, "spans") for m in made])

    rows: list[tuple[str, str]] = []
    for reply, window in zip(asked(windows, False), windows, strict=True):
        found = _rows(reply)
        if found is None:
            (second,) = asked([window], True)
            found = _rows(second)
        if found is None:
            raise EndpointError("llm: twice an answer that is not the JSON that was asked for")
        rows += found
    return _verified(text, names, rows, settled)


def _rows(reply: Reply | EndpointError) -> list[tuple[str, str]] | None:
    if isinstance(reply, EndpointError):
        raise reply
    found = parsed(reply.content) if reply.whole else None
    spans = found.get("spans") if found is not None else None
    if not isinstance(spans, list):
        return None
    return [(str(s["tag"]), str(s["text"])) for s in spans if isinstance(s, Mapping) and "tag" in s and "text" in s]


def _covered(text: str, settled: Sequence[Interval]) -> str:
    pieces: list[str] = []
    at = 0
    for a, b in merge(settled):
        pieces += (text[at:a], _COVER)
        at = b
    return "".join((*pieces, text[at:]))


def _open(text: str, settled: Sequence[Interval]) -> list[Interval]:
    return list(subtract((0, len(text)), merge(settled)))


def _windows(text: str) -> Iterable[str]:
    words = [m.span() for m in _PIECE.finditer(text)]
    for first in range(0, max(1, len(words) - _OVERLAP), WORDS - _OVERLAP):
        chosen = words[first : first + WORDS]
        if chosen:
            yield text[chosen[0][0] : chosen[-1][1]]


def _verified(
    text: str, names: Mapping[str, str], rows: Iterable[tuple[str, str]], settled: Sequence[Interval]
) -> tuple[Located, ...]:
    by_tag: dict[str, list[str]] = {}
    for name, tag in names.items():
        by_tag.setdefault(tag, []).append(name)
    meant: dict[str, str] = {}
    for tag, portion in rows:
        portion = portion.strip()
        known = tag if tag in by_tag else next((t for t in by_tag if _code(t) == _code(tag)), "")
        if known and portion:
            likeness = {t: max(_likeness(portion, name) for name in own) for t, own in by_tag.items()}
            # Where it is as much like another's name, the model has only guessed.
            if likeness[known] and sum(n >= likeness[known] for n in likeness.values()) == 1:
                meant[portion] = known
    free = _open(text, settled)
    found: list[Located] = []
    for portion, tag in meant.items():
        for at in _places(text, portion):
            if any(a <= at and at + len(portion) <= b for a, b in free):
                found.append(Located(at, at + len(portion), tag))
    out: list[Located] = []
    for one in sorted(found, key=lambda f: (f.start - f.end, f.start)):  # longer portions win
        if not any(o.start < one.end and one.start < o.end for o in out):
            out.append(one)
    return tuple(sorted(out, key=lambda o: o.start))


def _code(tag: str) -> str:
    return "".join(find_words(tag)).upper()


def _places(text: str, portion: str) -> Iterable[int]:
    at = text.find(portion)
    while at >= 0:
        before, after = text[at - 1 : at], text[at + len(portion) : at + len(portion) + 1]
        inside = (portion[0].isalnum() and before.isalnum()) or (portion[-1].isalnum() and after.isalnum())
        if not inside:
            yield at
        at = text.find(portion, at + 1)


def _likeness(portion: str, name: str) -> int:
    """How much of a portion is in the name: 2 for each word of it, 1 for each that may be a form of one of its words.

    With 0 it cannot be a form of the name at all.
    """
    own, others = find_words(plain(portion)), find_words(plain(name))
    if not own or not others:
        return int(plain(portion) == plain(name))
    if name != name.lower() and portion == portion.lower() and portion != portion.upper():
        return 0  # a name that lost its capital is too little to tell it from a word
    alike = sum(max(2 * (a == b and len(a) > 1) or int(_begins(a, b)) for b in others) for a in own)
    initials = "".join(w[0] for w in others)
    if not alike:
        return len(initials) if len(initials) > 1 and "".join(own) == initials else 0
    return alike + sum(len(a) == 1 and a in initials for a in own)


def _begins(a: str, b: str) -> bool:
    """Whether a word of a text can be a form of a word of a name: its ending may differ."""
    if len(a) < 4 or len(b) < 3 or any(c.isdigit() for c in a + b):
        return False
    if len(b) == 3:
        return a.startswith(b) and len(a) < 7
    shared = 4 if min(len(a), len(b)) > 4 else 3
    return a[:shared] == b[:shared]
