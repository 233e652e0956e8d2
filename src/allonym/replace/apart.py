"""No two entities of a document share a substitute, and none is what stands in the document anyway.

The modules of pseudonyms see to that word by word as they choose. This looks at what they would write, over all
families, in reading order: the later entity takes its next choice where its module offers one (``Cast.again``), else
its tag. One original may have one substitute wherever it stands (``Connor`` of two relatives); what is left as it is
belongs to nobody.

Numbers of one or two digits may stand elsewhere in the document, since nearly every text has some; whoever restores
must go by their places. A date or an age may be another one of the document, for both move.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import itemgetter

from allonym.replace.cast import Cast, Renderer, words
from allonym.replace.mention import Setting, Wanted
from allonym.text.names import plain

CHOICES = 4
"""Further choices that are asked for."""

_MOVE = frozenset({"DATE_TIME", "AGE", "NUMERIC"})
_ARTICLE = re.compile(r"\A(?:the|an?)\s+(?=\S)")
_SHORT = 3  # letters from which on case does not tell words apart
_FEW = 2  # digits of a number that may stand elsewhere


def kept_apart(cast: Cast, wanted: Sequence[Wanted], players: Mapping[str, Renderer]) -> dict[str, Renderer]:
    """The same players, who say nothing where they would say what is another's or stands in the text.

    Args:
        cast: of the document.
        wanted: all entities that get a pseudonym, in reading order.
        players: entity key to what renders its surfaces.
    """
    ground = _Ground(cast, wanted)
    answers: dict[str, dict[str, str | None]] = {one.entity.key: {} for one in wanted if one.entity.key in players}
    owners: dict[str, tuple[str, str]] = {}  # substitute -> whose it is, and for which original
    refused = 0
    mentions = [(span.start, w, s) for w in wanted for span, s in zip(w.entity.spans, w.surfaces, strict=True)]
    for _, one, surface in sorted(mentions, key=itemgetter(0)):
        key = one.entity.key
        known = answers.get(key)
        if known is None or surface in known:
            continue
        old = bare(surface)
        family = cast.setting.policy.taxonomy.lineage(one.entity.label)[-1]

        def free(new: str, key: str = key, old: str = old, family: str = family) -> bool:
            if bare(new) == old:
                return True
            owner = owners.get(bare(new))
            return (owner is None or key == owner[0] or old == owner[1]) and not ground.has(new, key, family)

        new = players[key](surface)
        if new and not free(new):
            again = cast.again.get(key)
            others = (again(surface, n) for n in range(CHOICES)) if again is not None else ()
            new = next((other for other in others if other and free(other)), None)
            refused += 1
        if new:
            owners.setdefault(bare(new), (key, old))
        known[surface] = new
    if refused:
        cast.remarks.append(
            f"{refused} substitutes were another's or stood in the text: a further choice or a tag instead"
        )
    return {key: _Kept(answers[key], render) if key in answers else render for key, render in players.items()}


def bare(text: str) -> str:
    """What tells a substitute from others: its text without case and an article before it."""
    return _ARTICLE.sub("", text.casefold())


def outside(setting: Setting) -> str:
    """The text of a document without what is about to be replaced."""
    text, out, at = setting.document.text, [], 0
    for start, end in setting.places:
        out.append(text[at:start])
        at = end
    return "\0".join((*out, text[at:]))


@dataclass(frozen=True, slots=True)
class _Kept:
    """A player whose answers for the surfaces of the document are settled."""

    answers: Mapping[str, str | None] = field(repr=False)
    render: Renderer

    def __call__(self, surface: str) -> str | None:
        return self.answers[surface] if surface in self.answers else self.render(surface)


class _Ground:
    """What stands in a document: its text outside of what is replaced, and the names of others."""

    def __init__(self, cast: Cast, wanted: Sequence[Wanted]) -> None:
        self._cast = cast
        self._wanted = wanted

    @cached_property
    def _outside(self) -> str:
        return outside(self._cast.setting)

    @cached_property
    def _plain(self) -> str:
        return plain(self._outside)

    @cached_property
    def _names(self) -> dict[str, str]:
        """What the document calls others, in plain form, to whom; empty: several of them."""
        lineage = self._cast.setting.policy.taxonomy.lineage
        out: dict[str, str] = {}
        for one in self._wanted:
            if lineage(one.entity.label)[-1] not in _MOVE:
                for name in {plain(s) for s in one.surfaces}:
                    out[name] = one.entity.key if out.get(name, one.entity.key) == one.entity.key else ""
        return out

    def has(self, new: str, key: str, family: str) -> bool:
        """Whether a substitute for ``key`` stands in the document.

        Args:
            new: the substitute.
            key: whose it is to be.
            family: of its label; dates, ages and numbers may equal others of the document.
        """
        if not self._cast.ledger.holds(words(new)):
            return False
        letters = sum(map(str.isalpha, new))
        if not letters and sum(map(str.isdigit, new)) <= _FEW:
            return False
        # March is no march, and A no article.
        cased = letters < _SHORT or family == "DATE_TIME"
        if _stands(new, self._outside) if cased else _stands(plain(new), self._plain):
            return True
        return family not in _MOVE and self._names.get(plain(new), key) != key


def _stands(phrase: str, text: str) -> bool:
    """Whether a phrase stands in a text with no letter or digit at its ends."""
    at = text.find(phrase)
    while at >= 0:
        end = at + len(phrase)
        if not (text[at - 1 : at] if at else "").isalnum() and not text[end : end + 1].isalnum():
            return True
        at = text.find(phrase, at + 1)
    return False
