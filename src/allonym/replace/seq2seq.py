"""Pseudonyms from a model that rewrites text (P4's Seq2Seq-PS, section 3.2), with its output held to the plan.

The model rewrites the document passage by passage; see :mod:`allonym.replace.aligned`. What it puts in the place of a
mention is a proposal for the entity; whatever it changes elsewhere is rejected, and a remark says how often. A proposal
must have a plausible form, hold no word of any original, stand nowhere in the document and belong to nobody else. An
entity whose fullest surface got no such proposal gets an offline pseudonym, so that no detected original survives
because of the model.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any, cast

from allonym.document import Interval
from allonym.errors import PolicyError
from allonym.replace.aligned import align, passages
from allonym.replace.cast import LEAST_WORD, Ledger, words
from allonym.replace.mention import Mention, Setting, Wanted, declare_surrogates, traits
from allonym.replace.naming import tables
from allonym.replace.proposed import Players, fullest, named, offline, opened, renderers, telling
from allonym.replace.remarks import lacked
from allonym.replace.rewriter import load
from allonym.text.names import near, plain
from allonym.text.words import LETTERS

KIND = "seq2seq name"
ALIKE = 0.65
"""Share of their letters, in order, that a word of a proposal and one of an original may have in common."""

_STUTTER = re.compile(r"(?i)(\w)\1\1|\b(\w+)(?:\W+\2\b)+")
_IDEOGRAPHS = "\u2e80"  # and kana and Hangul, which follow
LONGEST = 80
"""Characters of a proposal."""


def prepare(wanted: Sequence[Wanted], setting: Setting, remarks: list[str]) -> Players:
    """A substitute for each entity: the vault's, else the model's, else an offline pseudonym.

    Raises:
        UsageError: there is no key, or a rule names no model.
        MissingExtra: transformers or torch is not installed.
        DataError: a model cannot be loaded.
    """
    ledger, originals = opened("seq2seq", wanted, setting, remarks)
    values: dict[int, str] = {}
    for i, one in enumerate(wanted):
        known = ledger.assign(KIND, named(one, setting), lambda _: None, telling=_told)
        if known is not None:
            values[i] = known
    rejected = refused = 0
    models: dict[tuple[tuple[str, Any], ...], list[int]] = {}
    for i, one in enumerate(wanted):
        if i not in values:
            models.setdefault(tuple(sorted(one.options.items())), []).append(i)
    for options, members in models.items():
        proposals, elsewhere = _proposals([wanted[i] for i in members], wanted, setting, dict(options))
        rejected += elsewhere
        for i, offered in zip(members, proposals, strict=True):
            fit = [value for value in offered if _fits(value, wanted[i], originals)]
            given = _first(ledger, named(wanted[i], setting), fit)
            refused += len(offered) - len(fit)
            if given is not None:
                values[i] = given
    lacking = [one for i, one in enumerate(wanted) if i not in values]
    remarks.append(
        f"seq2seq: {len(values)} of {len(wanted)} entities have the model's substitute; {refused} proposals were "
        f"refused, {rejected} changes elsewhere rejected"
    )
    if lacking:
        remarks.append(lacked("seq2seq", len(lacking), len(wanted)))
    own = renderers(((wanted[i], value) for i, value in values.items()), setting)
    return Players(own, offline(lacking, values.values(), setting, remarks))


def _check(options: Mapping[str, Any], where: str) -> None:
    if not options.get("model"):
        raise PolicyError(f"{where}.model is required: a folder that 'allonym train seq2seq' made, or a model's name")
    for name, most in (("beams", 32), ("max_length", 4096)):
        if not 1 <= options.get(name, 1) <= most:
            raise PolicyError(f"{where}.{name} must be from 1 to {most}, got {options[name]!r}")


@traits(keyed=True, repeats=True, prepare=prepare, check=_check, grammar=declare_surrogates)
def seq2seq(
    mention: Mention,
    setting: Setting,
    *,
    model: str = "",
    beams: int = 1,
    max_length: int = 256,
    device: str = "cpu",
    allow_download: bool = False,
) -> str:
    """What a model that rewrites text puts in the mention's place; an offline pseudonym where that will not do.

    All mentions of one entity follow one substitute, none holds a word of an original, no two entities share one, and
    nothing but mentions changes. A method of P4 (Seq2Seq-PS).

    Args:
        model: folder that ``allonym train seq2seq`` made, or the name of a model. It was trained to write names that
            it saw: keep it as safe as the texts that it was made from.
        beams: how many rewritings are followed at once, 1 to 32; more is slower.
        max_length: tokens of a passage and of its rewriting.
        device: where the model runs, as PyTorch names it.
        allow_download: whether the model may be fetched from the network.
    """
    return cast(Players, setting.prepared["seq2seq"]).play(mention, setting)


def _told(value: str) -> str:
    """By what a substitute is told from others: a number as a whole, else by its own words."""
    return "".join(words(value)) if any(c.isdigit() for c in value) else telling(value)


def _proposals(
    some: Sequence[Wanted], every: Sequence[Wanted], setting: Setting, options: Mapping[str, Any]
) -> tuple[list[list[str]], int]:
    """What the model puts in the place of the fullest surfaces of each entity, in reading order; changes elsewhere."""
    text = setting.document.text
    places = sorted({(span.start, span.end) for one in every for span in one.entity.spans})
    whose = {(span.start, span.end): i for i, one in enumerate(some) for span in one.entity.spans}
    cut = [p for p in passages(text, places) if any(p[0] <= a and b <= p[1] for a, b in whose)]
    rewriter = load(
        str(options.get("model", "")), str(options.get("device", "cpu")), bool(options.get("allow_download", False))
    )
    names = {text[slice(*place)] for place in whose}
    made = rewriter.rewrite(
        [text[a:b] for a, b in cut],
        beams=int(options.get("beams", 1)),
        most=int(options.get("max_length", 256)),
        never=sorted({w for name in names for w in LETTERS.findall(name) if len(w) >= LEAST_WORD}),
    )
    out: list[list[str]] = [[] for _ in some]
    rejected = 0
    for (start, end), rewritten in zip(cut, made, strict=True):
        inside: list[Interval] = [(a, b) for a, b in places if start <= a and b <= end]
        found = align(text[start:end], rewritten, [(a - start, b - start) for a, b in inside])
        rejected += found.rejected
        for place, value in zip(inside, found.found, strict=True):
            i = whose.get(place)
            if i is None or value is None:
                continue
            surface = text[slice(*place)]
            if fullest(some[i]) in surface and value != surface:
                out[i].append(value)
    return out, rejected


def _fits(value: str, one: Wanted, originals: frozenset[str]) -> bool:
    """Whether a proposal can stand for an entity: of a plausible form, and without a word of any original."""
    like = fullest(one)
    if not 1 < len(value) <= LONGEST or not value.isprintable() or any(c in "<>[]{}\\|" for c in value):
        return False
    if any(c.isdigit() for c in like + value) and _shape(value) != _shape(like):
        return False  # a number or code of another form would not be one
    if any(c.isalpha() for c in like) and not any(c.isalpha() for c in value):
        return False
    if like[0].isupper() != value[0].isupper() or ("@" in like) != ("@" in value):
        return False
    own = words(value)
    if len(value) > 2 * len(like) + 10 or _STUTTER.search(value):
        return False
    return bool(own) and not any(_tells(w, o) for o in originals for w in own) and not _repeats(own, one.surfaces)


def _tells(word: str, original: str) -> bool:
    """Whether a word of a proposal gives an original away: holds it, begins or ends like it, or shares most of it."""
    if word == original or (len(original) > LEAST_WORD and original in word):
        return True
    if not word.isalpha() or not original.isalpha():
        return False
    if near(word, original):
        return True
    if min(len(word), len(original)) <= LEAST_WORD:
        return False
    if word[:4] == original[:4] or word[-4:] == original[-4:]:
        return True
    return SequenceMatcher(None, word, original, autojunk=False).ratio() > ALIKE


def _repeats(own: Sequence[str], surfaces: Sequence[str]) -> bool:
    """Whether words of a proposal repeat a short name of their own entity, or a part of a name.

    That is a word of two letters or more that equals the other, or that one begins or ends with: ``Li Wu`` as ``Li
    Chen``, ``Kim`` as ``Kimberly``, ``Giacomo`` as ``Gia``; but ``de`` and ``of`` may be the same. In a script without
    spaces it is any sign.
    """
    for name in {name for surface in surfaces for name in LETTERS.findall(surface)}:
        if name in tables().particles or name in tables().small:
            continue
        old = plain(name)
        for word in own:
            short, long = sorted((old, word), key=len)
            if len(short) > 1 and (long.startswith(short) or long.endswith(short)):
                return True
            if any(c >= _IDEOGRAPHS and c in old for c in word):
                return True
    return False


def _shape(text: str) -> str:
    return "".join("9" if c.isdigit() else "a" if c.isalpha() else c for c in text)


def _first(ledger: Ledger, name: str, values: Sequence[str]) -> str | None:
    return ledger.assign(
        KIND, name, lambda attempt: values[attempt] if attempt < len(values) else None, telling=telling
    )
