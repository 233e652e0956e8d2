"""Which documents of a vault a text comes from, and what their plans undo exactly in it."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from allonym.plan import Edit, Plan, invert_plan, locate_replacements
from allonym.restoration.edits import ARTICLE, is_irreversible
from allonym.restoration.hits import Match

if TYPE_CHECKING:
    from allonym.vault.plans import PlanReader
    from allonym.vault.records import KeptPlan, Piece

OUTPUT, SENTENCE = "output", "sentence"
"""Evidence: the whole text, or a sentence of it, is exactly what a plan made."""

SEVERAL = "several documents have this text with different originals; name the document"


class _Place(NamedTuple):
    """An edit within a piece: where its replacement stands, from the piece's start, and its number in the plan."""

    start: int
    end: int
    edit: Edit
    number: int


@dataclass(frozen=True, slots=True)
class Origin:
    """What is known of where a text comes from.

    Attributes:
        plans: of the documents that it comes from.
        rivals: of further documents that it may come from as well.
        matches: the replacements in sentences that nobody changed, in reading order.
        remaining: the edits of each plan that stand in no such sentence.
    """

    plans: tuple[KeptPlan, ...] = ()
    rivals: tuple[KeptPlan, ...] = ()
    matches: tuple[Match, ...] = ()
    remaining: tuple[tuple[Edit, ...], ...] = field(default=(), repr=False)


def find_origin(reader: PlanReader, text: str, document: str) -> Origin:
    """Find the documents that a text comes from.

    Args:
        reader: of the scope's plans.
        text: an output, changed or not.
        document: id of the document, if it is known; else empty.
    """
    candidates = reader.find_by_document(document) if document else reader.find_by_output(text)
    exact = tuple(plan for plan in candidates if invert_plan(text, plan.plan) is not None)
    if exact:
        return _match_outputs(text, exact)
    if document:
        newest = candidates[-1:]
        return _match_pieces(text, newest, ())
    plans, rivals = _choose_plans(text, reader.find_by_pieces(text))
    return _match_pieces(text, plans, rivals)


def list_document_ids(plans: Sequence[KeptPlan]) -> tuple[str, ...]:
    """Return the ids of the documents of plans, each once, without those that have none."""
    return tuple(dict.fromkeys(plan.document for plan in plans if plan.document))


def _choose_plans(text: str, kept: Sequence[KeptPlan]) -> tuple[tuple[KeptPlan, ...], tuple[KeptPlan, ...]]:
    """Choose the fewest documents that explain all known sentences, and their rivals, which explain the same."""
    from allonym.vault.plans import digest_piece, split_into_pieces, tells_document

    pieces = (text[start:end] for start, end in split_into_pieces(text))
    unexplained = {digest_piece(piece) for piece in pieces if tells_document(piece)}
    shared = [(plan, unexplained & {piece.digest for piece in plan.pieces}) for plan in kept]
    plans: list[KeptPlan] = []
    rivals: list[KeptPlan] = []
    while unexplained and shared:
        best = max(len(has & unexplained) for _, has in shared)
        if not best:
            break
        first, has = next((plan, has) for plan, has in shared if len(has & unexplained) == best)
        rivals += [plan for plan, others in shared if plan is not first and others & unexplained == has & unexplained]
        plans.append(first)
        unexplained -= has
    return tuple(plans), tuple(plan for plan in rivals if plan not in plans)


def _match_outputs(text: str, kept: Sequence[KeptPlan]) -> Origin:
    """Match the edits of plans that made exactly this text; several have to agree on the originals."""
    matches: list[Match] = []
    by_place: dict[tuple[int, int], set[str | None]] = defaultdict(set)
    for plan in kept:
        for start, end, edit in locate_replacements(plan.plan.edits):
            by_place[start, end].add(edit.original)
    for start, end, edit in locate_replacements(kept[0].plan.edits):
        match = _make_match(start, end, edit, OUTPUT)
        if len(by_place[start, end]) > 1 or any(_overlaps((start, end), place) for place in by_place):
            match = match._replace(out=None, why=SEVERAL)
        matches.append(match)
    return Origin(tuple(kept[:1]), tuple(kept[1:]), tuple(matches), ((),))


def _overlaps(place: tuple[int, int], other: tuple[int, int]) -> bool:
    return place != other and place[0] < other[1] and other[0] < place[1]


def _make_match(start: int, end: int, edit: Edit, evidence: str) -> Match:
    rule = "article" if edit.operator.startswith(ARTICLE) else "exact"
    return Match(start, end, edit.original or "", rule, edit.label, evidence=evidence)


def _match_pieces(text: str, plans: tuple[KeptPlan, ...], rivals: tuple[KeptPlan, ...]) -> Origin:
    """Match the replacements in sentences that nobody changed, unless plans differ on them."""
    from allonym.vault.plans import digest_piece, split_into_pieces

    versions_by_digest: dict[str, list[tuple[int, tuple[_Place, ...] | None]]] = defaultdict(list)
    for number, candidate in enumerate((*plans, *rivals)):
        for piece, places in _list_piece_places(candidate):
            versions_by_digest[piece.digest].append((number, places))
    standing: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for start, end in split_into_pieces(text):
        standing[digest_piece(text[start:end])].append((start, end))
    matches: list[Match] = []
    used: set[tuple[int, int]] = set()
    for digest, intervals in standing.items():
        versions = versions_by_digest.get(digest, [])
        in_order = len({number for number, _ in versions}) == 1 and len(versions) == len(intervals)
        for i, (start, _) in enumerate(intervals):
            agreed = (
                versions[i : i + 1] if in_order else versions[: len({_name_originals(v[1]) for v in versions}) == 1]
            )
            for _, places in agreed:
                if places is None or any(text[start + p.start : start + p.end] != p.edit.replacement for p in places):
                    continue
                matches += [_make_match(start + p.start, start + p.end, p.edit, SENTENCE) for p in places]
                numbered = agreed if in_order else versions
                used.update((number, p.number) for number, places in numbered for p in places or ())
    remaining = tuple(
        tuple(edit for i, edit in enumerate(candidate.plan.edits) if (number, i) not in used)
        for number, candidate in enumerate(plans)
    )
    return Origin(plans, rivals, tuple(sorted(matches, key=lambda m: m.start)), remaining)


def _name_originals(places: tuple[_Place, ...] | None) -> tuple[tuple[int, str | None], ...]:
    return tuple((place.start, place.edit.original) for place in places or ())


def _list_piece_places(kept: KeptPlan) -> list[tuple[Piece, tuple[_Place, ...] | None]]:
    """Return the pieces of an output with their edits; None where an edit reaches over the piece's border."""
    located = locate_replacements(kept.plan.edits)
    ends = [end for _, end, _ in located]
    out: list[tuple[Piece, tuple[_Place, ...] | None]] = []
    for piece in kept.pieces:
        inside = []
        for i in range(bisect_right(ends, piece.start), len(located)):
            if located[i][0] >= piece.end:
                break
            inside.append((i, *located[i]))
        if any(start < piece.start or end > piece.end for _, start, end, _ in inside):
            out.append((piece, None))
            continue
        places = [_Place(start - piece.start, end - piece.start, edit, i) for i, start, end, edit in inside]
        out.append((piece, tuple(places)))
    return out


def has_lost_originals(plan: Plan) -> bool:
    """Tell whether a plan removed, masked or generalised something, which only its exact output gives back."""
    return any(is_irreversible(edit) for edit in plan.edits)
