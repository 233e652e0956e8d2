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
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from importlib.resources import files
from typing import Literal, cast

from allonym.document import Interval, merge, subtract
from allonym.errors import EndpointError
from allonym.llm.answers import mended
from allonym.llm.client import Client, Recorded, Request, client_for
from allonym.llm.templates import messages
from allonym.names import plain
from allonym.plan import digest
from allonym.replace.cast import LEAST_WORD, Ledger, Renderer, words
from allonym.replace.keyed import subkey
from allonym.replace.mention import Mention, Setting, Wanted, traits
from allonym.replace.naming import parse, plural, recased, singular
from allonym.replace.pseudonym import played
from allonym.replace.pseudonym import prepare as offline_players

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
_WORD = re.compile(r"[^\W_]+")
_BLANK = re.compile(r"\s+")


@cache
def _lists() -> Mapping[str, frozenset[str]]:
    text = files("allonym").joinpath("llm", "words.toml").read_text(encoding="utf-8")
    return {name: frozenset(row) for name, row in tomllib.loads(text).items()}


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


@dataclass(frozen=True, slots=True)
class _Players:
    """Who is rendered by what, by label and key of the entity; both maps are disjoint."""

    online: Mapping[tuple[str, str], Renderer] = field(repr=False)
    offline: Mapping[str, Renderer] = field(repr=False)


def prepare(wanted: Sequence[Wanted], setting: Setting, remarks: list[str]) -> _Players:
    """A value for each entity: the vault's, else the model's, else an offline pseudonym.

    Raises:
        UsageError: there is no key, or the policy names no endpoint.
        EndpointError: values are missing and the rule says ``on_failure = "fail"``.
    """
    key = subkey(setting.key, "llm cache")
    client = client_for(setting.policy.llm, key)
    ledger = Ledger(setting.document.text, subkey(setting.key, "llm", setting.scope), setting.book, remarks)
    originals = frozenset(w for one in wanted for s in one.surfaces for w in words(s) if len(w) >= LEAST_WORD)
    company = _Company(setting, client, ledger, originals - _lists()["generic"])
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
    return _Players(_renderers(company, asked), _offline(company, lacking, remarks))


@traits(keyed=True, repeats=True, prepare=prepare)
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
    players = cast(_Players, setting.prepared["llm"])
    render = players.online.get((mention.entity.label, mention.entity.key))
    if render is None:
        return played(mention, setting, players.offline)
    out = render(mention.text)
    return mention.tag if not out or out.casefold() == mention.text.casefold() else out


# Asking


def _coded(wanted: Sequence[Wanted], setting: Setting) -> list[Asked]:
    """Each entity with a code that tells nothing: keyed by document, so that two documents cannot be linked by it."""
    secret = subkey(setting.key, "llm tag")
    about = digest(setting.document.text)
    taken = set(_HEX.findall(setting.document.text))
    out = []
    for one in wanted:
        family = setting.policy.taxonomy.lineage(one.entity.label)[-1]
        name = f"{family}\0{one.entity.key}"
        attempt = 0
        while True:
            message = f"{about}\0{name}\0{attempt}".encode("utf-8", "surrogatepass")
            code = hmac.digest(secret, message, "sha256")[:4].hex().upper()
            if code not in taken:
                break
            attempt += 1
        taken.add(code)
        out.append(Asked(code, family, name, one))
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

    Mentions that other operators replace are covered, too; so is each word of an original that stands elsewhere.
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
    for start, end in sorted({*tags, *places, *_strays(text, [*places, *tags])}):
        pieces.append((text[at:start], ""))
        pieces.append(tags.get((start, end), (_COVER, "")))
        at = end
    pieces.append((text[at:], ""))
    return list(_cut(pieces))


def _strays(text: str, mentions: Sequence[Interval]) -> Iterable[Interval]:
    """Words outside of all mentions that hold a word of one: but for short words in small letters."""
    inside = {w for a, b in mentions for w in words(text[a:b]) if len(w) >= LEAST_WORD}
    taken = merge(mentions)
    for a, b in subtract((0, len(text)), taken):
        for match in _WORD.finditer(text, a, b):
            word = match[0]
            if len(word) < LEAST_WORD or (len(word) == LEAST_WORD and word.islower()):
                continue
            if any(_holds(w, inside) for w in words(word)):
                yield match.span()


@lru_cache(maxsize=4096)
def _inner(word: str) -> tuple[str, ...]:
    """The word, and the stretches of four letters and more in it."""
    size = min(len(word), 40)
    return (word, *(word[a:b] for a in range(size - 3) for b in range(a + 4, size + 1)))


def _holds(word: str, originals: Set[str]) -> bool:
    return any(part in originals for part in _inner(word))


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


def telling(value: str) -> str:
    """The words by which a value is told from others: not ``University of`` and its like."""
    own = [w for w in _WORD.findall(value) if plain(w) not in _lists()["generic"]]
    return " ".join(own) or value


def _fitting(value: str, one: Asked, originals: frozenset[str]) -> str:
    """The value if it is plausible for its entity and echoes no original; else empty."""
    value = value.strip().strip("\"'“”").strip()
    if not value or len(value) > LONGEST or not value.isprintable() or any(c in "<>[]{}\\|" for c in value):
        return ""
    if plain(value) in _lists()["placeholders"] or not any(c.isalnum() for c in value):
        return ""
    like = fullest(one.wanted)
    letters = any(c.isalpha() for c in value)
    if one.family == "PERSON" and (any(c.isdigit() for c in value) or "@" in value or not letters):
        return ""
    if ("@" in like) != ("@" in value) or (not any(c.isalpha() for c in like) and letters):
        return ""
    if one.family == "PERSON" and len(_named(value)) < min(2, len(_names(like))):
        return ""
    if any(_holds(w, originals) for w in words(value)):
        return ""
    return value


def fullest(wanted: Wanted) -> str:
    return max(wanted.surfaces, key=lambda s: (len(s.split()), len(s)))


# Rendering


def _renderers(company: _Company, asked: Sequence[Asked]) -> dict[tuple[str, str], Renderer]:
    out: dict[tuple[str, str], Renderer] = {}
    for one in asked:
        value = company.values.get(one.code)
        if value is not None:
            entity = one.wanted.entity
            out[entity.label, entity.key] = renderer(one, value)
    return out


def renderer(one: Asked, value: str) -> Renderer:
    if one.family != "PERSON":
        return lambda surface: recased(value, surface)
    old = _names(fullest(one.wanted))
    new = _named(value)
    titled = any(p.kind == "title" for s in one.wanted.surfaces for p in parse(s))
    family = old[-1:] if len(old) > 1 or titled else []
    given = old[: len(old) - len(family)]
    return lambda surface: _person(surface, given, family, new)


def _cased(new: str, old: str) -> str:
    """``new`` in the case of ``old``, as ``recased``; but a particle keeps its small letter."""
    return new if old[:1].isupper() and not old.isupper() else recased(new, old)


def _names(surface: str) -> list[str]:
    return [plain(p.text) for p in parse(surface) if p.kind == "name"]


def _named(value: str) -> list[str]:
    """The words of a name, particles together with what they belong to: ``Anna``, ``van Dijk``."""
    out: list[str] = []
    before = ""
    for piece in parse(value):
        if piece.kind == "particle":
            before += f"{piece.text} "
        elif piece.kind == "name":
            out.append(before + piece.text)
            before = ""
    return out or [value]


def _person(surface: str, given: Sequence[str], family: Sequence[str], new: Sequence[str]) -> str:
    """A surface of a person's name with the words of another one: what is no name stays, initials and plurals too."""
    firsts = list(new[:-1]) or list(new)
    pieces = parse(surface)
    if len(given) + len(family) > 1 and _names(surface) == [*given, *family]:
        pieces = tuple(p for p in pieces if p.kind != "particle")
        firsts += [""] * (len(given) - len(firsts))
        firsts = [*firsts[: max(0, len(given) - 1)], " ".join(f for f in firsts[max(0, len(given) - 1) :] if f)]
    out = ""
    for piece in pieces:
        word = plain(piece.text)
        if piece.kind == "name":
            many = next((w for w in singular(word) if w in family), "") if word not in (*given, *family) else ""
            if word in given:
                put = firsts[given.index(word)] if given.index(word) < len(firsts) else ""
            elif word in family or many:
                put = plural(new[-1]) if many else new[-1]
            else:
                return recased(" ".join(new), surface)
            put = _cased(put, piece.text)
        elif piece.kind == "initial":
            at = next((i for i, w in enumerate(given) if w[:1] == word[:1]), -1)
            of = firsts[min(at, len(firsts) - 1)] if at >= 0 else new[-1]
            put = _cased(of[:1].upper(), piece.text) + piece.text[1:]
        else:
            put = "" if piece.kind == "particle" else piece.text
        out += put if put.strip() or not out.endswith(" ") else ""
    return out.strip() or recased(firsts[0], surface)


# Without the model


def _stays_offline(one: Asked, setting: Setting) -> bool:
    """Whether the vault says that the entity once had to do without the model: then it keeps its pseudonym."""
    return setting.book is not None and setting.book.recall(OFFLINE, one.name) is not None


def _offline(company: _Company, lacking: Sequence[Asked], remarks: list[str]) -> dict[str, Renderer]:
    if not lacking:
        return {}
    setting = company.setting
    if setting.book is not None:
        for one in lacking:
            setting.book.enter(OFFLINE, one.name, one.name)
    # The model's values count as words of the document, so that no pseudonym repeats one.
    text = "\n".join((setting.document.text, *company.values.values()))
    beside = replace(setting, document=replace(setting.document, text=text))
    return dict(offline_players([replace(one.wanted, options={}) for one in lacking], beside, remarks))


def _remark(
    company: _Company, asked: Sequence[Asked], lacking: Sequence[Asked], trouble: str, remarks: list[str]
) -> None:
    counts = company.counts
    if counts.get("requests"):
        names = ("requests", "prompt_tokens", "completion_tokens", "absent", "refused", "unreadable")
        told = [f"{counts[n]} {n.replace('_', ' ')}" for n in names if counts.get(n)]
        remarks.append(f"llm: {', '.join(told)}")
    if lacking:
        why = f" ({trouble})" if trouble else ""
        remarks.append(f"llm: {len(lacking)} of {len(asked)} entities got an offline pseudonym{why}")
