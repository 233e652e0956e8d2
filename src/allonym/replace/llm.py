"""Fictional values from a language model: P5's encoding (``mode = "tags"``), P4's LLM-PS (``mode = "names"``).

The model only makes proposals: for each entity one value, as JSON. The edits are the plan's, so no other text can
change. Each value is verified: it has a plausible form for its label, repeats no word of an original or of the
document, and belongs to nobody else. What is missing or refused is asked for once more; what is then still missing gets
an offline pseudonym, so that the step cannot fail because of the model.

Where an entity has several surfaces ("Sarah Connor", "Ms Connor", "Sarah") the model invents one full name, and the
surfaces are made from it here.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Literal, cast

from allonym.errors import EndpointError
from allonym.keys import subkey
from allonym.llm.answers import mended
from allonym.llm.client import Client, Recorded, Request, client_for
from allonym.llm.templates import messages
from allonym.plan import digest
from allonym.replace.cast import Ledger, Renderer, words
from allonym.replace.covering import strays
from allonym.replace.mention import Mention, Setting, Wanted, declare_surrogates, traits
from allonym.replace.proposed import (
    Players,
    family_of,
    fullest,
    lists,
    name_parts,
    name_words,
    named,
    offline,
    opened,
    renderers,
    telling,
)
from allonym.replace.remarks import lacked
from allonym.text.names import plain

WORDS = 1200
"""Words of a window of text."""
MOST = 50
"""Entities that one request asks for."""
LONGEST = 80
"""Characters of a value."""
KIND = "llm name"
OFFLINE = "llm offline"
_COVER = "[...]"
_CODE = re.compile(r"[0-9A-F]{8,}|E[0-9]+")
_HEX = re.compile(r"(?=([0-9A-F]{8}))")
_BLANK = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class Asked:
    """An entity that the model is asked about: its code in the request, and who it is."""

    code: str
    family: str
    name: str  # for the ledger
    wanted: Wanted = field(repr=False)


@dataclass(slots=True)
class _Company:
    """What one call of ``prepare`` shares."""

    setting: Setting = field(repr=False)
    client: Client = field(repr=False)
    ledger: Ledger = field(repr=False)
    originals: frozenset[str] = field(repr=False)
    values: dict[str, str] = field(default_factory=dict, repr=False)  # code to value
    counts: dict[str, int] = field(default_factory=dict)

    def count(self, name: str, more: int = 1) -> None:
        self.counts[name] = self.counts.get(name, 0) + more


def prepare(wanted: Sequence[Wanted], setting: Setting, remarks: list[str]) -> Players:
    """A value for each entity: the vault's, else the model's, else an offline pseudonym.

    Raises:
        UsageError: there is no key, or the policy names no endpoint.
        EndpointError: values are missing and the rule says ``on_failure = "fail"``.
    """
    key = subkey(setting.key, "llm cache")
    client = client_for(setting.policy.llm, key)
    ledger, originals = opened("llm", wanted, setting, remarks)
    company = _Company(setting, client, ledger, originals - lists()["generic"])
    asked = _coded(wanted, setting)
    for one in asked:
        known = ledger.assign(KIND, one.name, lambda _: None, telling=telling)
        if known is not None:
            company.values[one.code] = known
    trouble = ""
    missing = [one for one in asked if one.code not in company.values and not _stays_offline(one, setting)]
    for again in (False, True):
        missing = [one for one in missing if one.code not in company.values]
        if not missing:
            break
        try:
            for mode in ("tags", "names"):
                if some := [one for one in missing if one.wanted.options.get("mode", "tags") == mode]:
                    (_ask_tags if mode == "tags" else _ask_names)(company, some, asked, again)
        except Recorded:
            raise
        except EndpointError as error:
            trouble = str(error)
            break
    lacking = [one for one in asked if one.code not in company.values]
    tried = {one.code for one in missing}
    strict = [one for one in lacking if one.wanted.options.get("on_failure") == "fail" and one.code in tried]
    if strict:
        raise EndpointError(trouble or f"llm: no usable values for {len(strict)} of {len(asked)} entities")
    _remark(company, asked, lacking, trouble, remarks)
    valued = [(one.wanted, company.values[one.code]) for one in asked if one.code in company.values]
    return Players(renderers(valued, setting), _offline(company, lacking, remarks))


@traits(keyed=True, repeats=True, prepare=prepare, grammar=declare_surrogates)
def llm(
    mention: Mention,
    setting: Setting,
    *,
    mode: Literal["tags", "names"] = "tags",
    on_failure: Literal["offline", "fail"] = "offline",
) -> str:
    """A fictional value from the language model that the policy's table ``[llm]`` names; see the how-to.

    The model's answers are verified, and change nothing but mentions. With a vault, an entity keeps its value in all
    documents of a scope; without one, each document is asked for by itself.

    Args:
        mode: ``tags`` sends the text with a keyed tag in place of every entity, never an original (P5's encoding).
            ``names`` sends the entities' names with their labels, and no text: originals leave (P4's LLM-PS).
        on_failure: what happens to an entity for which the model has no usable value after all tries: ``offline``
            gives it what the operator ``pseudonym`` would, ``fail`` makes the document fail.
    """
    return cast(Players, setting.prepared["llm"]).play(mention, setting)


# Asking


def _coded(wanted: Sequence[Wanted], setting: Setting) -> list[Asked]:
    """Each entity with a code that tells nothing: keyed by document, so that two documents cannot be linked by it."""
    secret = subkey(setting.key, "llm tag")
    about = digest(setting.document.text)
    taken = set(_HEX.findall(setting.document.text))
    out = []
    for one in wanted:
        name = named(one, setting)
        attempt = 0
        while True:
            message = f"{about}\0{name}\0{attempt}".encode("utf-8", "surrogatepass")
            code = hmac.digest(secret, message, "sha256")[:4].hex().upper()
            if code not in taken:
                break
            attempt += 1
        taken.add(code)
        out.append(Asked(code, family_of(one, setting), name, one))
    return out


def _ask_tags(company: _Company, some: Sequence[Asked], every: Sequence[Asked], again: bool) -> None:
    """Windows in reading order; what an earlier one settled is told to the later ones."""
    left = {one.code: one for one in some}
    for text, codes in _windows(company.setting, every):
        here = [left.pop(code) for code in codes if code in left]
        for i in range(0, len(here), MOST):
            part = here[i : i + MOST]
            listed = "\n".join(f"{one.code}: {one.wanted.label}" for one in part)
            known = [f"{code}: {company.values[code]}" for code in codes if code in company.values]
            told = "Already chosen:\n" + "\n".join(known) + "\n" if known else ""
            _ask(company, "tags", part, again, {one.code: one for one in part}, entities=listed, known=told, text=text)


def _ask_names(company: _Company, some: Sequence[Asked], every: Sequence[Asked], again: bool) -> None:
    for i in range(0, len(some), MOST):
        codes = {f"E{n}": one for n, one in enumerate(some[i : i + MOST], 1)}
        rows = (f"{code}: {one.wanted.label}: {_flat(fullest(one.wanted))}" for code, one in codes.items())
        taken = [_flat(company.values[one.code]) for one in every if one.code in company.values][-MOST:]
        told = "Already used: " + "; ".join(taken) + "\n" if taken else ""
        _ask(company, "names", list(codes.values()), again, codes, entities="\n".join(rows), known=told)


def _ask(
    company: _Company, prompt: str, part: Sequence[Asked], again: bool, codes: Mapping[str, Asked], **slots: str
) -> None:
    language = company.setting.policy.language
    made = messages(prompt, company.client.prompts, again=again, language=language, **slots)
    reply = company.client.ask(Request(made, _schema(codes), "entities"))
    company.count("requests")
    company.count("prompt_tokens", reply.prompt_tokens)
    company.count("completion_tokens", reply.completion_tokens)
    found = mended(reply.content)
    values = found.get("entities", found) if found is not None else None
    if not isinstance(values, Mapping):
        company.count("unreadable")
        return
    said: dict[str, str] = {}
    for key, value in values.items():
        written = _CODE.search(str(key).upper())
        if written is not None and written[0] in codes and isinstance(value, str):
            said.setdefault(written[0], value)
    company.count("absent", len(codes) - len(said))
    for code, value in said.items():
        one = codes[code]
        fitting = _fitting(value, one, company.originals)
        given = company.ledger.assign(KIND, one.name, _only(fitting), telling=telling) if fitting else None
        if given is None:
            company.count("refused")
        else:
            company.values[one.code] = given


def _only(value: str) -> Callable[[int], str | None]:
    return lambda attempt: value if attempt == 0 else None


def _schema(codes: Iterable[str]) -> Mapping[str, object]:
    inner: dict[str, object] = {"type": "object", "properties": {code: {"type": "string"} for code in codes}}
    inner |= {"required": list(codes), "additionalProperties": False}
    return {
        "type": "object",
        "properties": {"entities": inner},
        "required": ["entities"],
        "additionalProperties": False,
    }


# What is sent


def _windows(setting: Setting, every: Sequence[Asked]) -> list[tuple[str, list[str]]]:
    """Windows of the text with a tag for each mention, and the codes that stand in each, in reading order.

    Mentions that other operators replace are covered, too; so is what tells of them elsewhere.
    """
    text = setting.document.text
    places = setting.places
    tags = {
        (span.start, span.end): (f'<{one.wanted.label} "{one.code}">', one.code)
        for one in every
        for span in one.wanted.entity.spans
    }
    pieces: list[tuple[str, str]] = []  # text or tag, and its code
    at = 0
    for start, end in sorted({*tags, *places, *strays(text, [*places, *tags])}):
        pieces.append((text[at:start], ""))
        pieces.append(tags.get((start, end), (_COVER, "")))
        at = end
    pieces.append((text[at:], ""))
    return list(_cut(pieces))


def _holds(word: str, originals: Set[str]) -> bool:
    """Whether a word is one of the originals, or holds one of four letters and more in its first 40."""
    size = min(len(word), 40)
    return word in originals or any(word[a:b] in originals for a in range(size - 3) for b in range(a + 4, size + 1))


def _cut(pieces: Sequence[tuple[str, str]]) -> Iterable[tuple[str, list[str]]]:
    out: list[str] = []
    codes: list[str] = []
    size = 0
    for piece, code in pieces:
        parts = [piece] if code else re.split(r"(?<=\s)", piece)
        for part in parts:
            if size >= WORDS:
                if codes:
                    yield "".join(out), list(dict.fromkeys(codes))
                out, codes, size = [], [], 0
            out.append(part)
            size += 1
        if code:
            codes.append(code)
    if codes:
        yield "".join(out), list(dict.fromkeys(codes))


def _flat(text: str) -> str:
    return _BLANK.sub(" ", text).strip()


# What comes back


def _fitting(value: str, one: Asked, originals: frozenset[str]) -> str:
    """The value if it is plausible for its entity and echoes no original; else empty."""
    value = value.strip().strip("\"'“”").strip()
    if not value or len(value) > LONGEST or not value.isprintable() or any(c in "<>[]{}\\|" for c in value):
        return ""
    if plain(value) in lists()["placeholders"] or not any(c.isalnum() for c in value):
        return ""
    like = fullest(one.wanted)
    letters = any(c.isalpha() for c in value)
    if one.family == "PERSON" and (any(c.isdigit() for c in value) or "@" in value or not letters):
        return ""
    if ("@" in like) != ("@" in value) or (not any(c.isalpha() for c in like) and letters):
        return ""
    if one.family == "PERSON" and len(name_parts(value)) < min(2, len(name_words(like))):
        return ""
    if any(_holds(w, originals) for w in words(value)):
        return ""
    return value


# Without the model


def _stays_offline(one: Asked, setting: Setting) -> bool:
    """Whether the vault says that the entity once had to do without the model: then it keeps its pseudonym."""
    return setting.book is not None and setting.book.recall(OFFLINE, one.name) is not None


def _offline(company: _Company, lacking: Sequence[Asked], remarks: list[str]) -> dict[str, Renderer]:
    book = company.setting.book
    if book is not None:
        for one in lacking:
            book.enter(OFFLINE, one.name, one.name)
    return offline([one.wanted for one in lacking], company.values.values(), company.setting, remarks)


def _remark(
    company: _Company, asked: Sequence[Asked], lacking: Sequence[Asked], trouble: str, remarks: list[str]
) -> None:
    counts = company.counts
    if counts.get("requests"):
        names = ("requests", "prompt_tokens", "completion_tokens", "absent", "refused", "unreadable")
        told = [f"{counts[n]} {n.replace('_', ' ')}" for n in names if counts.get(n)]
        remarks.append(f"llm: {', '.join(told)}")
    if lacking:
        remarks.append(lacked("llm", len(lacking), len(asked), trouble))
