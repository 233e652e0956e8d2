"""Pseudonyms from a model that rewrites text (P4's Seq2Seq-PS, section 3.2). No other change of the model is used.

The model rewrites the document passage by passage; see :mod:`allonym.replace.alignment`. What it writes in place of a
mention is a proposal for the entity; whatever it changes elsewhere is rejected, and a remark says how often. A proposal
must have a plausible form, hold no word of any original, occur nowhere in the document and belong to no other entity.
An entity whose fullest surface got no such proposal gets an offline pseudonym, so that no detected original survives
because of the model.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any, cast

from allonym.document import Interval
from allonym.errors import PolicyError
from allonym.replace.alignment import align_output, split_passages
from allonym.replace.cast import LEAST_WORD, find_plain_words
from allonym.replace.mention import Mention, Setting, Wanted, declare_surrogates, traits
from allonym.replace.naming import load_tables
from allonym.replace.proposals import ModelRenderers, Proposals, find_fullest, get_distinctive_words, is_possible_value
from allonym.replace.rewriter import load_rewriter
from allonym.text.names import is_within_one_edit, normalize_surface
from allonym.text.words import LETTERS

ALIKE = 0.65
"""Share of their letters, in order, that a word of a proposal and one of an original may have in common."""

_STUTTER = re.compile(r"(?i)(\w)\1\1|\b(\w+)(?:\W+\2\b)+")
_IDEOGRAPHS = "\u2e80"  # and kana and Hangul, which follow


def prepare(targets: Sequence[Wanted], setting: Setting, remarks: list[str]) -> ModelRenderers:
    """Choose a pseudonym for each entity: the vault's, else the model's, else an offline one.

    Raises:
        UsageError: there is no key, or a rule names no model.
        MissingExtra: transformers or torch is not installed.
        DataError: a model cannot be loaded.
    """
    proposals = Proposals("seq2seq", targets, setting, remarks)
    recalled = {i: proposals.assign(target, (), telling=_get_distinctive_part) for i, target in enumerate(targets)}
    values = {i: value for i, value in recalled.items() if value is not None}
    models: dict[tuple[tuple[str, Any], ...], list[int]] = {}
    for i, target in enumerate(targets):
        if i not in values:
            models.setdefault(tuple(sorted(target.options.items())), []).append(i)
    rejected = refused = 0
    for options, members in models.items():
        proposed, changes = _collect_proposals([targets[i] for i in members], targets, setting, dict(options))
        rejected += changes
        for i, offers in zip(members, proposed, strict=True):
            fit = [value for value in offers if _is_plausible(value, targets[i], proposals.originals)]
            refused += len(offers) - len(fit)
            value = proposals.assign(targets[i], fit)
            if value is not None:
                values[i] = value
    remarks.append(
        f"seq2seq: {len(values)} of {len(targets)} entities have the model's substitute; {refused} proposals were "
        f"refused, {rejected} changes elsewhere rejected"
    )
    return proposals.make_renderers(values)


def _check_seq2seq(options: Mapping[str, Any], where: str) -> None:
    if not options.get("model"):
        raise PolicyError(f"{where}.model is required: a folder that 'allonym train seq2seq' made, or a model's name")
    for name, most in (("beams", 32), ("max_length", 4096)):
        if not 1 <= options.get(name, 1) <= most:
            raise PolicyError(f"{where}.{name} must be from 1 to {most}, got {options[name]!r}")


@traits(keyed=True, repeats=True, prepare=prepare, check=_check_seq2seq, grammar=declare_surrogates)
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
    """Write the pseudonym that a model proposes as it rewrites the text; an offline one where that cannot be used.

    All mentions of one entity follow one pseudonym, none holds a word of an original, no two entities share one, and
    nothing but mentions changes. A method of P4 (Seq2Seq-PS).

    Args:
        model: folder that ``allonym train seq2seq`` made, or the name of a model. It was trained to write names that
            it saw: keep it as safe as the texts that it was made from.
        beams: how many rewritings are followed at once, 1 to 32; more is slower.
        max_length: tokens of a passage and of its rewriting.
        device: where the model runs, as PyTorch names it.
        allow_download: whether the model may be fetched from the network.
    """
    return cast(ModelRenderers, setting.prepared["seq2seq"]).render(mention, setting)


def _get_distinctive_part(value: str) -> str:
    """Return the part by which a value is told from others: all of a number, else its distinctive words."""
    return "".join(find_plain_words(value)) if any(c.isdigit() for c in value) else get_distinctive_words(value)


def _collect_proposals(
    members: Sequence[Wanted], targets: Sequence[Wanted], setting: Setting, options: Mapping[str, Any]
) -> tuple[list[list[str]], int]:
    """Return what the model writes in place of the fullest surfaces of each member, and how often it changes more.

    Args:
        members: entities with these options.
        targets: all entities of the operator.
        setting: of the document.
        options: of the rule.
    """
    text = setting.document.text
    places = sorted({(span.start, span.end) for t in targets for span in t.entity.spans})
    owners = {(span.start, span.end): i for i, t in enumerate(members) for span in t.entity.spans}
    cut = [p for p in split_passages(text, places) if any(p[0] <= a and b <= p[1] for a, b in owners)]
    rewriter = load_rewriter(
        str(options.get("model", "")), str(options.get("device", "cpu")), bool(options.get("allow_download", False))
    )
    names = {text[slice(*place)] for place in owners}
    rewritten = rewriter.rewrite(
        [text[a:b] for a, b in cut],
        beams=int(options.get("beams", 1)),
        most=int(options.get("max_length", 256)),
        never=sorted({w for name in names for w in LETTERS.findall(name) if len(w) >= LEAST_WORD}),
    )
    out: list[list[str]] = [[] for _ in members]
    rejected = 0
    for (start, end), output in zip(cut, rewritten, strict=True):
        inside: list[Interval] = [(a, b) for a, b in places if start <= a and b <= end]
        alignment = align_output(text[start:end], output, [(a - start, b - start) for a, b in inside])
        rejected += alignment.rejected
        for place, value in zip(inside, alignment.values, strict=True):
            surface = text[slice(*place)]
            owner = owners.get(place)
            if value is None or owner is None or value == surface:
                continue
            if find_fullest(members[owner]) in surface:
                out[owner].append(value)
    return out, rejected


def _is_plausible(value: str, target: Wanted, originals: frozenset[str]) -> bool:
    """Whether a proposal can replace an entity: of a plausible form, and without a word of any original."""
    like = find_fullest(target)
    if not is_possible_value(value) or not 1 < len(value) <= 2 * len(like) + 10 or _STUTTER.search(value):
        return False
    if any(c.isdigit() for c in like + value) and _get_shape(value) != _get_shape(like):
        return False  # a number or code of another form would not be one
    if any(c.isalpha() for c in like) and not any(c.isalpha() for c in value):
        return False
    if like[0].isupper() != value[0].isupper() or ("@" in like) != ("@" in value):
        return False
    new = find_plain_words(value)
    return (
        bool(new)
        and not any(_resembles_original(w, o) for o in originals for w in new)
        and not _repeats_name(new, target.surfaces)
    )


def _resembles_original(word: str, original: str) -> bool:
    """Whether a word of a proposal gives an original away: holds it, begins or ends like it, or shares most of it."""
    if word == original or (len(original) > LEAST_WORD and original in word):
        return True
    if not word.isalpha() or not original.isalpha():
        return False
    if is_within_one_edit(word, original):
        return True
    if min(len(word), len(original)) <= LEAST_WORD:
        return False
    if word[:4] == original[:4] or word[-4:] == original[-4:]:
        return True
    return SequenceMatcher(None, word, original, autojunk=False).ratio() > ALIKE


def _repeats_name(new: Sequence[str], surfaces: Sequence[str]) -> bool:
    """Whether words of a proposal repeat a short name of their own entity, or a part of a name.

    Of the two words, each of two letters or more, one begins or ends with the other: ``Li Wu`` as ``Li Chen``, ``Kim``
    as ``Kimberly``, ``Giacomo`` as ``Gia``; but ``de`` and ``of`` may be the same. In a script without spaces a
    character that both have is enough.
    """
    for name in {name for surface in surfaces for name in LETTERS.findall(surface)}:
        if name in load_tables().particles or name in load_tables().small:
            continue
        old = normalize_surface(name)
        for word in new:
            short, long = sorted((old, word), key=len)
            if len(short) > 1 and (long.startswith(short) or long.endswith(short)):
                return True
            if any(c >= _IDEOGRAPHS and c in old for c in word):
                return True
    return False


def _get_shape(text: str) -> str:
    return "".join("9" if c.isdigit() else "a" if c.isalpha() else c for c in text)
