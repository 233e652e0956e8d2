"""What operators share that take proposals from a model: one value for an entity, its surfaces made from it.

An entity without a usable value gets an offline pseudonym, so that no detected original survives because of the model.
"""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files

from allonym.keys import subkey
from allonym.replace.cast import LEAST_WORD, Ledger, Renderer, words
from allonym.replace.mention import Mention, Setting, Wanted
from allonym.replace.naming import parse, plural, recased
from allonym.replace.pseudonym import played
from allonym.replace.pseudonym import prepare as offline_players
from allonym.text.names import plain, singular
from allonym.text.words import find_words


@cache
def lists() -> Mapping[str, frozenset[str]]:
    """Words that tell nobody from another (``generic``), and those that are no value (``placeholders``)."""
    text = files("allonym").joinpath("llm", "words.toml").read_text(encoding="utf-8")
    return {name: frozenset(row) for name, row in tomllib.loads(text).items()}


@dataclass(frozen=True, slots=True)
class Players:
    """Who is rendered by what, by label and key of the entity; both maps are disjoint.

    Attributes:
        own: with the model's values.
        offline: with pseudonyms.
    """

    own: Mapping[tuple[str, str], Renderer] = field(repr=False)
    offline: Mapping[str, Renderer] = field(repr=False)

    def play(self, mention: Mention, setting: Setting) -> str:
        """What stands in the mention's place; its tag where nothing else will do."""
        render = self.own.get((mention.entity.label, mention.entity.key))
        if render is None:
            return played(mention, setting, self.offline)
        out = render(mention.text)
        return mention.tag if not out or out.casefold() == mention.text.casefold() else out


def opened(
    operator: str, wanted: Sequence[Wanted], setting: Setting, remarks: list[str]
) -> tuple[Ledger, frozenset[str]]:
    """The ledger of an operator, and the words of all originals, of three letters and more.

    Raises:
        UsageError: there is no key.
    """
    ledger = Ledger(setting.document.text, subkey(setting.key, operator, setting.scope), setting.book, remarks)
    return ledger, frozenset(w for one in wanted for s in one.surfaces for w in words(s) if len(w) >= LEAST_WORD)


def family_of(wanted: Wanted, setting: Setting) -> str:
    """The broadest label of an entity, such as PERSON."""
    return setting.policy.taxonomy.lineage(wanted.entity.label)[-1]


def named(wanted: Wanted, setting: Setting) -> str:
    """The entity's name for the ledger."""
    return f"{family_of(wanted, setting)}\0{wanted.entity.key}"


def renderers(valued: Iterable[tuple[Wanted, str]], setting: Setting) -> dict[tuple[str, str], Renderer]:
    """What renders each entity that has a value, by its label and key."""
    return {(one.entity.label, one.entity.key): renderer(one, family_of(one, setting), value) for one, value in valued}


def offline(
    lacking: Sequence[Wanted], values: Collection[str], setting: Setting, remarks: list[str]
) -> dict[str, Renderer]:
    """Pseudonyms for the entities without a value of the model, by their keys."""
    if not lacking:
        return {}
    # The model's values count as words of the document, so that no pseudonym repeats one.
    text = "\n".join((setting.document.text, *values))
    beside = replace(setting, document=replace(setting.document, text=text))
    return dict(offline_players([replace(one, options={}) for one in lacking], beside, remarks))


def fullest(wanted: Wanted) -> str:
    """The surface that says most of an entity: the one with most words."""
    return max(wanted.surfaces, key=lambda s: (len(s.split()), len(s)))


def telling(value: str) -> str:
    """The words by which a value is told from others: not ``University of`` and its like."""
    own = [w for w in find_words(value) if plain(w) not in lists()["generic"]]
    return " ".join(own) or value


def renderer(wanted: Wanted, family_label: str, value: str) -> Renderer:
    """What makes a surface of an entity from its value: a person's by their parts, else the value in its case."""
    if family_label != "PERSON":
        return lambda surface: recased(value, surface)
    old = name_words(fullest(wanted))
    new = name_parts(value)
    titled = any(p.kind == "title" for s in wanted.surfaces for p in parse(s))
    family = old[-1:] if len(old) > 1 or titled else []
    given = old[: len(old) - len(family)]
    return lambda surface: _person(surface, given, family, new)


def _cased(new: str, old: str) -> str:
    """``new`` in the case of ``old``, as ``recased``; but a particle keeps its small letter."""
    return new if old[:1].isupper() and not old.isupper() else recased(new, old)


def name_words(surface: str) -> list[str]:
    """The words of a name in plain form, without titles, particles and initials."""
    return [plain(p.text) for p in parse(surface) if p.kind == "name"]


def name_parts(value: str) -> list[str]:
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
    if len(given) + len(family) > 1 and name_words(surface) == [*given, *family]:
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
