"""Keeps the pseudonyms of a document apart: no two entities share one, and none occurs in the document anyway.

The modules of pseudonyms see to that word by word as they choose. This module looks at what they would write, over all
families, in reading order: the later entity takes its next choice where its module offers one (``Cast.alternatives``),
else its tag. One original may have one pseudonym wherever it stands (``Connor`` of two relatives); text that is left as
it is belongs to nobody.

Numbers of one or two digits may occur elsewhere in the document, since nearly every text has some; whoever restores
must go by their places. A date or an age may equal another one of the document, for both move.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import itemgetter

from allonym.replace.cast import Cast, Renderer, find_plain_words
from allonym.replace.mention import Setting, Wanted
from allonym.text.names import normalize_surface

CHOICES = 4
"""Further choices that are asked for."""

_MOVING = frozenset({"DATE_TIME", "AGE", "NUMERIC"})
_ARTICLE = re.compile(r"\A(?:the|an?)\s+(?=\S)")
_SHORT = 3  # letters from which on case does not tell words apart
_FEW_DIGITS = 2  # digits of a number that may occur elsewhere


def avoid_collisions(cast: Cast, targets: Sequence[Wanted], renderers: Mapping[str, Renderer]) -> dict[str, Renderer]:
    """Return renderers that give None where they would write another entity's pseudonym or one that the text has.

    Args:
        cast: of the document.
        targets: all entities that get a pseudonym, in reading order.
        renderers: entity key to what renders its surfaces.
    """
    surroundings = _Surroundings(cast, targets)
    results: dict[str, dict[str, str | None]] = {t.entity.key: {} for t in targets if t.entity.key in renderers}
    owners: dict[str, tuple[str, str]] = {}  # pseudonym -> key of its entity, and the original
    refused = 0
    mentions = [(span.start, t, s) for t in targets for span, s in zip(t.entity.spans, t.surfaces, strict=True)]
    for _, target, surface in sorted(mentions, key=itemgetter(0)):
        key = target.entity.key
        if key not in results or surface in results[key]:
            continue
        original = _normalise_pseudonym(surface)
        family = cast.family(target)

        def is_free(new: str, key: str = key, original: str = original, family: str = family) -> bool:
            if _normalise_pseudonym(new) == original:
                return True
            owner = owners.get(_normalise_pseudonym(new))
            return (owner is None or owner[0] == key or owner[1] == original) and not surroundings.has_pseudonym(
                new, key, family
            )

        new = renderers[key](surface)
        if new and not is_free(new):
            render_again = cast.alternatives.get(key)
            others = (render_again(surface, n) for n in range(CHOICES)) if render_again is not None else ()
            new = next((other for other in others if other and is_free(other)), None)
            refused += 1
        if new:
            owners.setdefault(_normalise_pseudonym(new), (key, original))
        results[key][surface] = new
    if refused:
        cast.remarks.append(
            f"{refused} substitutes were another's or stood in the text: a further choice or a tag instead"
        )
    return {key: _Checked(results[key], render) if key in results else render for key, render in renderers.items()}


def _normalise_pseudonym(text: str) -> str:
    """Return a pseudonym without case and without an article before it, as pseudonyms are compared."""
    return _ARTICLE.sub("", text.casefold())


def get_text_outside(setting: Setting) -> str:
    """Return the text of a document without what is about to be replaced."""
    text, parts, position = setting.document.text, [], 0
    for start, end in setting.places:
        parts.append(text[position:start])
        position = end
    return "\0".join((*parts, text[position:]))


@dataclass(frozen=True, slots=True)
class _Checked:
    """A renderer whose results for the surfaces of the document are decided."""

    results: Mapping[str, str | None] = field(repr=False)
    render: Renderer

    def __call__(self, surface: str) -> str | None:
        return self.results[surface] if surface in self.results else self.render(surface)


class _Surroundings:
    """What stands in a document: its text outside of what is replaced, and the names of other entities."""

    def __init__(self, cast: Cast, targets: Sequence[Wanted]) -> None:
        self._cast = cast
        self._targets = targets

    @cached_property
    def _outside_text(self) -> str:
        return get_text_outside(self._cast.setting)

    @cached_property
    def _plain_outside_text(self) -> str:
        return normalize_surface(self._outside_text)

    @cached_property
    def _keys_by_name(self) -> dict[str, str]:
        """Map each name of the document, in plain form, to the key of its entity; empty: several have it."""
        out: dict[str, str] = {}
        for target in self._targets:
            key = target.entity.key
            if self._cast.family(target) not in _MOVING:
                for name in {normalize_surface(s) for s in target.surfaces}:
                    out[name] = key if out.get(name, key) == key else ""
        return out

    def has_pseudonym(self, new: str, key: str, family: str) -> bool:
        """Whether a pseudonym for ``key`` occurs in the document.

        Args:
            new: the pseudonym.
            key: of the entity that it is for.
            family: of its label; dates, ages and numbers may equal others of the document.
        """
        if not self._cast.ledger.has_words(find_plain_words(new)):
            return False
        letters = sum(map(str.isalpha, new))
        if not letters and sum(map(str.isdigit, new)) <= _FEW_DIGITS:
            return False
        # March is no march, and A no article.
        cased = letters < _SHORT or family == "DATE_TIME"
        if (
            _has_phrase(self._outside_text, new)
            if cased
            else _has_phrase(self._plain_outside_text, normalize_surface(new))
        ):
            return True
        return family not in _MOVING and self._keys_by_name.get(normalize_surface(new), key) != key


def _has_phrase(text: str, phrase: str) -> bool:
    """Whether a text holds a phrase with no letter or digit at either end of it."""
    start = text.find(phrase)
    while start >= 0:
        end = start + len(phrase)
        if not (text[start - 1 : start] if start else "").isalnum() and not text[end : end + 1].isalnum():
            return True
        start = text.find(phrase, start + 1)
    return False
