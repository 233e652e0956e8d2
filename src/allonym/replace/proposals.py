"""What operators share that take proposals from a model: one value for an entity, and its surfaces made from it.

An entity without a usable value gets an offline pseudonym, so that no detected original survives because of the model.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from importlib.resources import files

from allonym.keys import derive_operator_key
from allonym.replace.cast import LEAST_WORD, Ledger, Renderer, find_plain_words, format_offline_remark
from allonym.replace.mention import Mention, Setting, Wanted
from allonym.replace.naming import Piece, parse_name, pluralise_name
from allonym.replace.pseudonym import prepare as prepare_pseudonyms
from allonym.replace.pseudonym import render_mention
from allonym.replace.wording import match_case
from allonym.text.names import list_singulars, normalize_surface
from allonym.text.words import find_words

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
        self.originals = frozenset(
            w for t in targets for s in t.surfaces for w in find_plain_words(s) if len(w) >= LEAST_WORD
        )
        self._ledger = Ledger(setting.document.text, key, setting.book, remarks)
        self._operator = operator
        self._targets = targets
        self._setting = setting
        self._remarks = remarks

    def assign(self, target: Wanted, values: Sequence[str], telling: Callable[[str], str] | None = None) -> str | None:
        """Return the vault's value of an entity, else the first of these values that can be used; None without one."""
        name = make_entity_name(target, self._setting)
        telling = telling or get_distinctive_words
        return self._ledger.choose(f"{self._operator} name", name, values, telling=telling)

    def make_renderers(self, values: Mapping[int, str], reason: str = "") -> ModelRenderers:
        """Return the renderers of all entities, with offline pseudonyms for those without a value.

        Args:
            values: index of an entity to its value.
            reason: why values are missing, for the plan's remark.
        """
        setting = self._setting
        lacking = [t for i, t in enumerate(self._targets) if i not in values]
        valued = [(self._targets[i], value) for i, value in values.items()]
        by_model = {(t.entity.label, t.entity.key): make_renderer(t, get_family(t, setting), v) for t, v in valued}
        if lacking:
            self._remarks.append(format_offline_remark(self._operator, len(lacking), len(self._targets), reason))
        return ModelRenderers(by_model, _prepare_offline(lacking, values.values(), setting, self._remarks))


def get_family(target: Wanted, setting: Setting) -> str:
    """Return the broadest label of an entity, such as PERSON."""
    return setting.policy.taxonomy.lineage(target.entity.label)[-1]


def make_entity_name(target: Wanted, setting: Setting) -> str:
    """Return the entity's name for the ledger."""
    return f"{get_family(target, setting)}\0{target.entity.key}"


def _prepare_offline(
    targets: Sequence[Wanted], values: Collection[str], setting: Setting, remarks: list[str]
) -> dict[str, Renderer]:
    if not targets:
        return {}
    # The model's values count as words of the document, so that no pseudonym repeats one.
    text = "\n".join((setting.document.text, *values))
    extended = replace(setting, document=replace(setting.document, text=text))
    return prepare_pseudonyms([replace(t, options={}) for t in targets], extended, remarks)


def find_fullest(target: Wanted) -> str:
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
    old = list_names(find_fullest(target))
    titled = any(p.kind == "title" for s in target.surfaces for p in parse_name(s))
    cut = len(old) - 1 if len(old) > 1 or (titled and old) else len(old)
    return partial(_render_person, old[:cut], old[cut:], split_name(value))


def list_names(surface: str) -> list[str]:
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


def _render_person(given_names: Sequence[str], family: Sequence[str], new: Sequence[str], surface: str) -> str:
    """Return a surface with the words of another person's name; what is no name stays, initials and plurals too.

    Args:
        given_names, family: words of the old name in plain form.
        new: words of the new name.
        surface: a surface of the old name.
    """
    firsts = list(new[:-1]) or list(new)
    pieces = parse_name(surface)
    if len(given_names) + len(family) > 1 and list_names(surface) == [*given_names, *family]:
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


def _render_piece(
    piece: Piece, given_names: Sequence[str], family: Sequence[str], firsts: Sequence[str], last: str
) -> str | None:
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
