"""A restored text: what was put back into it, what was left, and why."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from allonym.plan import Edit
from allonym.replace.wording import find_article, fit_article
from allonym.restoration.hits import Match
from allonym.restoration.index import Index
from allonym.restoration.residue import Residue

_ORDINARY = "numbers and ordinary words were left, since they may be the text's own"


@dataclass(frozen=True, slots=True)
class Found:
    """One restored mention.

    Attributes:
        start, end: half-open, in the returned text.
        rule: how it was recognised: ``exact``, or rules such as ``case``, ``spacing``, ``typo``, ``shortened``, joined
            by ``+``.
        label: of the entity.
        evidence: what shows that it is a replacement, see :mod:`allonym.restoration.evidence`; ``output`` and
            ``sentence``: a plan made exactly this text or this sentence.
    """

    start: int
    end: int
    rule: str
    label: str
    evidence: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Restored:
    """A text with its originals restored.

    Attributes:
        text: hidden from ``repr``.
        restored: number of replacements restored.
        unknown: number of replacements that were left, or may have been, and of originals that are lost. Numbers and
            ordinary words that nothing supports are not counted, since any text has them; a note says so.
        notes: the reasons, without text of the document.
        found: the restored mentions, in reading order.
        residue: what is still there and is a replacement, or may be one, in reading order.
        missing: number of replacements of the plan that the text does not use; that is no error.
        documents: ids of the documents of the vault that the text comes from; if several have the same text, of all.
        edits: what changed, with offsets in the text that was given, sorted and disjoint.
    """

    text: str = field(repr=False)
    restored: int = 0
    unknown: int = 0
    notes: tuple[str, ...] = ()
    found: tuple[Found, ...] = ()
    residue: tuple[Residue, ...] = ()
    missing: int = 0
    documents: tuple[str, ...] = ()
    edits: tuple[Edit, ...] = field(default=(), repr=False, compare=False)


def apply_matches(text: str, matches: Iterable[Match], begin: int = 0, notes: Iterable[str] = ()) -> Restored:
    """Put the originals of the sure matches into ``text`` from offset ``begin`` on, and return that part.

    Args:
        text: the text.
        matches: in reading order; those that are sure are disjoint.
        begin: where the part begins.
        notes: to be put before the reasons of what is left.
    """
    pieces: list[str] = []
    mentions: list[Found] = []
    residue: list[Residue] = []
    edits: list[Edit] = []
    position, size = begin, 0
    for m in matches:
        if m.start < position or (not m.is_sure and not m.why):
            continue
        between, out = text[position : m.start], text[m.start : m.end]
        if not m.is_sure or m.out is None:
            start = size + len(between)
            residue.append(Residue(start, start + len(out), m.label, m.why))
        else:
            out = m.out
            if m.adapts_article and (article := _adapt_article(text, position, m.start, m.end, out)) is not None:
                edits.append(article)
                between = text[position : article.start] + article.replacement + text[article.end : m.start]
            edits.append(Edit(m.start, m.end, out, m.label))
            start = size + len(between)
            if m.why:
                residue.append(Residue(start, start + len(out), m.label, m.why))
            if m.rule != "article":
                mentions.append(Found(start, start + len(out), m.rule, m.label, m.evidence))
        pieces += (between, out)
        size += len(between) + len(out)
        position = m.end
    pieces.append(text[position:])
    reasons = dict.fromkeys((*notes, *(rest.why for rest in residue)))
    return Restored(
        "".join(pieces),
        len(mentions),
        len(residue),
        tuple(reasons),
        tuple(mentions),
        tuple(residue),
        edits=tuple(edits),
    )


def note_ordinary_words(matches: Iterable[Match], index: Index, planned: Iterable[str] = ()) -> tuple[str, ...]:
    """Return a note if matches of ordinary words were left that no plan confirms, or nothing."""
    for m in matches:
        if m.row >= 0 and not m.is_sure and not m.why and index.rows[m.row].text not in planned:
            return (_ORDINARY,)
    return ()


def _adapt_article(text: str, low: int, start: int, end: int, out: str) -> Edit | None:
    """Return the edit that adapts the English article before a mention to the original.

    None where there is none, or it does not agree with the replacement.
    """
    place = find_article(text, start, low)
    if place is None:
        return None
    a, b = place
    adapted = fit_article(text[a:b], out)
    if adapted is None or fit_article(text[a:b], text[start:end]) != text[a:b]:
        return None
    return Edit(a, b, adapted, "")
