"""What operators share that take proposals from a model: one value for an entity, and its surfaces made from it.

An entity without a usable value gets an offline pseudonym, so that no detected original survives because of the model.

The operator ``seq2seq`` (P4's Seq2Seq-PS, section 3.2) uses a model that rewrites the document passage by passage; see
:mod:`allonym.replace.rewriter`. What it writes in place of a mention is a proposal for the entity; whatever it changes
elsewhere is rejected, and a remark says how often. A proposal must have a plausible form, hold no word of any original,
occur nowhere in the document and belong to no other entity.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from functools import cache, partial
from importlib.resources import files
from typing import Any, cast

from allonym.document import Interval
from allonym.errors import PolicyError
from allonym.keys import derive_operator_key
from allonym.protocol import Mention, Setting, Wanted, check_range, traits
from allonym.replace.cast import LEAST_WORD, Ledger, Renderer, Telling, find_plain_words, format_offline_remark
from allonym.replace.naming import Piece, load_name_tables, parse_name, pluralise_name
from allonym.replace.pseudonym import make_renderers as make_pseudonym_renderers
from allonym.replace.pseudonym import render_mention
from allonym.replace.rewriter import align_output, load_rewriter, split_passages
from allonym.replace.wording import describe_shape, match_case
from allonym.text.names import is_within_one_edit, list_singulars, normalize_surface
from allonym.text.words import LETTERS, find_words

Words = Sequence[str]
_LONGEST = 80  # characters of a value


@cache
def read_word_lists() -> Mapping[str, frozenset[str]]:
    """Return words that tell nobody from another (``generic``), and those that are no value (``placeholders``)."""
    text = files("allonym").joinpath("llm", "words.toml").read_text(encoding="utf-8")
    return {name: frozenset(row) for name, row in tomllib.loads(text).items()}


@dataclass(frozen=True, slots=True)
class ModelRenderers:
    """The renderers of a document's entities.

    Attributes:
        by_model: label and key of the entities with a value of the model.
        offline: keys of those with a pseudonym.
    """

    by_model: Mapping[tuple[str, str], Renderer] = field(repr=False)
    offline: Mapping[str, Renderer] = field(repr=False)

    def render(self, mention: Mention, setting: Setting) -> str:
        """Return the replacement of a mention; its tag where there is none."""
        render = self.by_model.get((mention.entity.label, mention.entity.key))
        if render is None:
            return render_mention(mention, setting, self.offline)
        out = render(mention.text)
        return mention.tag if not out or out.casefold() == mention.text.casefold() else out


class Proposals:
    """Takes proposals for the entities of one document. Mutable; it never leaves ``prepare``.

    Attributes:
        originals: the words of all originals, of three letters and more.

    Raises:
        UsageError: there is no key.
    """

    def __init__(self, operator: str, targets: Sequence[Wanted], setting: Setting, remarks: list[str]) -> None:
        key = derive_operator_key(setting.key, operator, setting.scope)
        words = (word for t in targets for surface in t.surfaces for word in find_plain_words(surface))
        self.originals = frozenset(word for word in words if len(word) >= LEAST_WORD)
        self._ledger = Ledger(setting.document.text, key, setting.book, remarks, setting.places)
        self._operator = operator
        self._targets = targets
        self._setting = setting
        self._remarks = remarks

    def assign(self, target: Wanted, values: Sequence[str], telling: Telling | None = None) -> str | None:
        """Return the vault's value of an entity, else the first of these values that can be used; None without one."""
        name, telling = make_ledger_key(target, self._setting), telling or get_distinctive_words
        return self._ledger.choose(f"{self._operator} name", name, values, start=0, telling=telling)

    def make_renderers(self, values: Mapping[int, str], reason: str = "") -> ModelRenderers:
        """Return the renderers of all entities, with offline pseudonyms for those without a value.

        Args:
            values: index of an entity to its value.
            reason: why values are missing, for the plan's remark.
        """
        setting = self._setting
        valued = [(self._targets[i], value) for i, value in values.items()]
        renderers = ((t.entity, make_renderer(t, get_label_family(t, setting), value)) for t, value in valued)
        by_model = {(entity.label, entity.key): renderer for entity, renderer in renderers}
        lacking = [replace(t, options={}) for i, t in enumerate(self._targets) if i not in values]
        if not lacking:
            return ModelRenderers(by_model, {})
        self._remarks.append(format_offline_remark(self._operator, len(lacking), len(self._targets), reason))
        # The model's values count as words of the document, so that no pseudonym repeats one.
        text = "\n".join((setting.document.text, *values.values()))
        extended = replace(setting, document=replace(setting.document, text=text))
        return ModelRenderers(by_model, make_pseudonym_renderers(lacking, extended, self._remarks))


def get_label_family(target: Wanted, setting: Setting) -> str:
    """Return the broadest label of an entity, such as PERSON."""
    return setting.policy.taxonomy.get_family(target.entity.label)


def make_ledger_key(target: Wanted, setting: Setting) -> str:
    """Return the entity's name for the ledger."""
    return f"{get_label_family(target, setting)}\0{target.entity.key}"


def find_fullest_surface(target: Wanted) -> str:
    """Return the surface that says most of an entity: the one with most words."""
    return max(target.surfaces, key=lambda s: (len(s.split()), len(s)))


def is_possible_value(text: str) -> bool:
    """Whether a text may be a value at all: printable, not too long, and without brackets."""
    return 0 < len(text) <= _LONGEST and text.isprintable() and not any(c in "<>[]{}\\|" for c in text)


def get_distinctive_words(value: str) -> str:
    """Return the words by which a value is told from others: not ``University of`` and its like."""
    distinctive = [w for w in find_words(value) if normalize_surface(w) not in read_word_lists()["generic"]]
    return " ".join(distinctive) or value


def make_renderer(target: Wanted, family: str, value: str) -> Renderer:
    """Return what makes surfaces of an entity from its value: a person's by their parts, else the value in their case.

    Args:
        target: the entity.
        family: the broadest label of it.
        value: its value.
    """
    if family != "PERSON":
        return partial(match_case, value)
    old = list_plain_names(find_fullest_surface(target))
    titled = any(p.kind == "title" for s in target.surfaces for p in parse_name(s))
    cut = len(old) - 1 if len(old) > 1 or (titled and old) else len(old)
    return partial(_render_person, old[:cut], old[cut:], split_name(value))


def list_plain_names(surface: str) -> list[str]:
    """Return the words of a name in plain form, without titles, particles and initials."""
    return [normalize_surface(p.text) for p in parse_name(surface) if p.kind == "name"]


def split_name(value: str) -> list[str]:
    """Return the words of a name, particles together with what they belong to: ``Anna``, ``van Dijk``."""
    out: list[str] = []
    particles = ""
    for piece in parse_name(value):
        if piece.kind == "particle":
            particles += f"{piece.text} "
        elif piece.kind == "name":
            out.append(particles + piece.text)
            particles = ""
    return out or [value]


def _render_person(given_names: Words, family: Words, new: Words, surface: str) -> str:
    """Return a surface with the words of another person's name; what is no name stays, initials and plurals too.

    Args:
        given_names, family: words of the old name in plain form.
        new: words of the new name.
        surface: a surface of the old name.
    """
    firsts = list(new[:-1]) or list(new)
    pieces = parse_name(surface)
    if len(given_names) + len(family) > 1 and list_plain_names(surface) == [*given_names, *family]:
        pieces = tuple(p for p in pieces if p.kind != "particle")
        # As many given names as the old name has: the last takes the rest.
        cut = max(0, len(given_names) - 1)
        firsts += [""] * (len(given_names) - len(firsts))
        firsts = [*firsts[:cut], " ".join(filter(None, firsts[cut:]))]
    out = ""
    for piece in pieces:
        text = _render_piece(piece, given_names, family, firsts, new[-1])
        if text is None:
            return match_case(" ".join(new), surface)
        out += text if text.strip() or not out.endswith(" ") else ""
    return out.strip() or match_case(firsts[0], surface)


def _render_piece(piece: Piece, given_names: Words, family: Words, firsts: Words, last: str) -> str | None:
    """Return the new text of a piece of a name; None for a word of neither a given nor a family name."""
    word = normalize_surface(piece.text)
    if piece.kind == "name":
        if word in given_names:
            index = given_names.index(word)
            new = firsts[index] if index < len(firsts) else ""
        elif word in family:
            new = last
        elif any(base in family for base in list_singulars(word)):
            new = pluralise_name(last)
        else:
            return None
        return _match_case(new, piece.text)
    if piece.kind == "initial":
        index = next((i for i, w in enumerate(given_names) if w[:1] == word[:1]), -1)
        name = firsts[min(index, len(firsts) - 1)] if index >= 0 else last
        return _match_case(name[:1].upper(), piece.text) + piece.text[1:]
    return "" if piece.kind == "particle" else piece.text


def _match_case(new: str, old: str) -> str:
    """Return ``new`` in the case of ``old``, as :func:`match_case`; but a particle keeps its small letter."""
    return new if old[:1].isupper() and not old.isupper() else match_case(new, old)


ALIKE = 0.65
"""Share of their letters, in order, that a word of a proposal and one of an original may have in common."""

_STUTTER = re.compile(r"(?i)(\w)\1\1|\b(\w+)(?:\W+\2\b)+")
_IDEOGRAPHS = "\u2e80"  # and kana and Hangul, which follow


def make_renderers(targets: Sequence[Wanted], setting: Setting, remarks: list[str]) -> ModelRenderers:
    """Choose a pseudonym for each entity: the vault's, else the model's, else an offline one.

    Raises:
        UsageError: there is no key, or a rule names no model.
        MissingExtra: transformers or torch is not installed.
        DataError: a model cannot be loaded.
    """
    proposals = Proposals("seq2seq", targets, setting, remarks)
    recalled = ((i, proposals.assign(target, (), telling=_get_distinctive_part)) for i, target in enumerate(targets))
    values = {i: value for i, value in recalled if value is not None}
    models: dict[object, list[int]] = {}
    for i, target in enumerate(targets):
        if i not in values:
            models.setdefault(tuple(sorted(target.options.items())), []).append(i)
    rejected = refused = 0
    for members in models.values():
        proposed, changes = _collect_proposals([targets[i] for i in members], targets, setting)
        rejected += changes
        for i, offers in zip(members, proposed, strict=True):
            fit = [value for value in offers if _is_plausible(value, targets[i], proposals.originals)]
            refused += len(offers) - len(fit)
            value = proposals.assign(targets[i], fit)
            if value is not None:
                values[i] = value
    refusals = f"{refused} proposals were refused, {rejected} changes elsewhere rejected"
    remarks.append(f"seq2seq: {len(values)} of {len(targets)} entities have the model's substitute; {refusals}")
    return proposals.make_renderers(values)


def _check_seq2seq_options(options: Mapping[str, Any], where: str) -> None:
    if not options.get("model"):
        raise PolicyError(f"{where}.model is required: a folder that 'allonym train seq2seq' made, or a model's name")
    check_range(options, where, "beams", 1, 1, 32)
    check_range(options, where, "max_length", 256, 1, 4096)


@traits(keyed=True, repeats=True, prepare=make_renderers, check=_check_seq2seq_options)
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
    members: Sequence[Wanted], targets: Sequence[Wanted], setting: Setting
) -> tuple[list[list[str]], int]:
    """Return what the model writes in place of the fullest surfaces of each member, and how often it changes more.

    Args:
        members: entities with the same options.
        targets: all entities of the operator.
        setting: of the document.
    """
    text, options = setting.document.text, cast("Mapping[str, Any]", members[0].options)
    places = sorted({(span.start, span.end) for t in targets for span in t.entity.spans})
    owners = {(span.start, span.end): i for i, t in enumerate(members) for span in t.entity.spans}
    cut = [p for p in split_passages(text, places) if any(p[0] <= a and b <= p[1] for a, b in owners)]
    model, device = str(options.get("model", "")), str(options.get("device", "cpu"))
    rewriter = load_rewriter(model, device, bool(options.get("allow_download", False)))
    words = {w for place in owners for w in LETTERS.findall(text[slice(*place)]) if len(w) >= LEAST_WORD}
    beams, most = int(options.get("beams", 1)), int(options.get("max_length", 256))
    rewritten = rewriter.rewrite([text[a:b] for a, b in cut], beams=beams, token_limit=most, banned=sorted(words))
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
            if find_fullest_surface(members[owner]) in surface:
                out[owner].append(value)
    return out, rejected


def _is_plausible(value: str, target: Wanted, originals: frozenset[str]) -> bool:
    """Whether a proposal can replace an entity: of a plausible form, and without a word of any original."""
    like = find_fullest_surface(target)
    if not is_possible_value(value) or not 1 < len(value) <= 2 * len(like) + 10 or _STUTTER.search(value):
        return False
    if any(c.isdigit() for c in like + value) and describe_shape(value) != describe_shape(like):
        return False  # a number or code of another form would not be one
    if any(c.isalpha() for c in like) and not any(c.isalpha() for c in value):
        return False
    if like[0].isupper() != value[0].isupper() or ("@" in like) != ("@" in value):
        return False
    new = find_plain_words(value)
    betrays = any(_resembles_original(w, o) for o in originals for w in new) or _repeats_name(new, target.surfaces)
    return bool(new) and not betrays


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
        if name in load_name_tables().particles or name in load_name_tables().small:
            continue
        old = normalize_surface(name)
        for word in new:
            short, long = sorted((old, word), key=len)
            if len(short) > 1 and (long.startswith(short) or long.endswith(short)):
                return True
            if any(c >= _IDEOGRAPHS and c in old for c in word):
                return True
    return False
