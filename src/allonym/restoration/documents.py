"""Which documents of a vault a text comes from, and what their plans undo exactly in it."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from allonym.document import Interval
from allonym.plan import Edit, invert_plan, locate_replacements
from allonym.restoration.edits import adapts_surroundings
from allonym.restoration.hits import Match
from allonym.restoration.residue import order_matches

if TYPE_CHECKING:
    from allonym.vault.plans import PlanReader
    from allonym.vault.records import KeptPlan, Piece

OUTPUT, SENTENCE = "output", "sentence"
"""Evidence: the whole text, or a sentence of it, is exactly what a plan made."""

_LEAST_SHARED, _LEAST_SHARE = 3, 0.7
"""So many replacements of a document, and so great a share of them all, show it in a text that was rewritten."""

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
        is_exact: whether the plans made exactly this text, so that nothing else is to be restored.
    """

    plans: tuple[KeptPlan, ...] = ()
    rivals: tuple[KeptPlan, ...] = ()
    matches: tuple[Match, ...] = ()
    remaining: tuple[tuple[Edit, ...], ...] = field(default=(), repr=False)
    is_exact: bool = False


def find_origin(reader: PlanReader, text: str, document: str) -> Origin:
    """Find the documents that a text comes from.

    Args:
        reader: of the scope's plans.
        text: an output, changed or not.
        document: id of the document, if it is known; else empty.
    """
    candidates = reader.find_by_document(document) if document else reader.find_by_output(text)
    exact = match_outputs(text, candidates)
    if exact is not None:
        return exact
    if document:
        return _match_pieces(text, candidates[-1:], ())
    plans, rivals = _choose_plans(text, reader.find_by_pieces(text))
    return _match_pieces(text, plans, rivals)


def find_origin_by_replacements(
    reader: PlanReader, documents: Mapping[str, frozenset[str]], telling: Collection[str]
) -> Origin:
    """Find the one document that made nearly all replacements of a text whose sentences were all rewritten.

    Args:
        reader: of the scope's plans.
        documents: the rows of the plans that made each replacement of the text.
        telling: those of the replacements that are tags or names, or that hardly any text has by chance.

    Returns:
        The origin, with all edits of the plan remaining; an empty one where no document, or several, explain the text.
    """
    counts = Counter(row for rows in documents.values() for row in rows)
    if not counts:
        return Origin()
    best = max(counts.values())
    first = [row for row, count in counts.items() if count == best]
    if best < _LEAST_SHARED or len(first) > 1:
        return Origin()
    shared = {replacement for replacement, rows in documents.items() if first[0] in rows}
    if not shared.intersection(telling):
        return Origin()
    (plan,) = reader.find_by_rows(first)
    replacements = {edit.replacement.casefold() for edit in plan.plan.edits if edit.replacement.strip()}
    has_most = best >= _LEAST_SHARE * len(replacements)
    has_all = len(shared) == len(documents) and shared.issubset(telling)
    return Origin((plan,), remaining=(plan.plan.edits,)) if has_most or has_all else Origin()


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


def match_outputs(text: str, candidates: Sequence[KeptPlan]) -> Origin | None:
    """Match the edits of the plans that made exactly this text, where they agree; None if no plan made it."""
    makers = tuple(plan for plan in candidates if invert_plan(text, plan.plan) is not None)
    if not makers:
        return None
    located = [locate_replacements(plan.plan.edits) for plan in makers]
    if len(makers) == 1:
        matches = [_make_match(start, end, edit, OUTPUT) for start, end, edit in located[0]]
        return Origin(makers, (), tuple(order_matches(matches)), ((),), is_exact=True)
    agreed = set.intersection(*({(start, end, edit.original) for start, end, edit in places} for places in located))
    matches = [_make_match(start, end, e, OUTPUT) for start, end, e in located[0] if (start, end, e.original) in agreed]
    disputed: dict[Interval, Match] = {}
    for start, end, edit in chain(*located):
        if (start, end, edit.original) not in agreed:
            match = _make_match(start, end, edit, OUTPUT)
            disputed.setdefault((start, end), match._replace(out=None, why=SEVERAL))
    return Origin(makers[:1], makers[1:], tuple(order_matches((*matches, *disputed.values()))), ((),), is_exact=True)


def _make_match(start: int, end: int, edit: Edit, evidence: str) -> Match:
    rule = "article" if adapts_surroundings(edit) else "exact"
    return Match(start, end, edit.original or "", rule, edit.label, evidence=evidence)


def _match_pieces(text: str, plans: tuple[KeptPlan, ...], rivals: tuple[KeptPlan, ...]) -> Origin:
    """Match the replacements in sentences that nobody changed, unless plans differ on them."""
    from allonym.vault.plans import digest_piece, split_into_pieces

    versions_by_digest: dict[str, list[tuple[int, tuple[_Place, ...]]]] = defaultdict(list)
    for number, candidate in enumerate((*plans, *rivals)):
        for piece, places in _list_piece_places(candidate):
            versions_by_digest[piece.digest].append((number, places))
    standing: dict[str, list[Interval]] = defaultdict(list)
    for start, end in split_into_pieces(text):
        standing[digest_piece(text[start:end])].append((start, end))
    matches: list[Match] = []
    used: set[tuple[int, int]] = set()
    for digest, intervals in standing.items():
        versions = versions_by_digest.get(digest, [])
        is_in_order = len({number for number, _ in versions}) == 1 and len(versions) == len(intervals)
        if not is_in_order and len({_name_originals(places) for _, places in versions}) != 1:
            continue
        used.update((number, place.number) for number, places in versions for place in places)
        for i, (start, _) in enumerate(intervals):
            _, places = versions[i if is_in_order else 0]
            if all(text[start + p.start : start + p.end] == p.edit.replacement for p in places):
                matches += [_make_match(start + p.start, start + p.end, p.edit, SENTENCE) for p in places]
    remaining = tuple(
        tuple(edit for i, edit in enumerate(candidate.plan.edits) if (number, i) not in used)
        for number, candidate in enumerate(plans)
    )
    return Origin(plans, rivals, tuple(order_matches(matches)), remaining)


def _name_originals(places: Iterable[_Place]) -> tuple[tuple[int, str | None], ...]:
    return tuple((place.start, place.edit.original) for place in places)


def _list_piece_places(kept: KeptPlan) -> Iterator[tuple[Piece, tuple[_Place, ...]]]:
    """Yield the pieces of an output with their edits; with none where an edit reaches over the piece's border."""
    located = locate_replacements(kept.plan.edits)
    ends = [end for _, end, _ in located]
    for piece in kept.pieces:
        places = []
        for number in range(bisect_right(ends, piece.start), len(located)):
            start, end, edit = located[number]
            if start >= piece.end:
                break
            places.append(_Place(start - piece.start, end - piece.start, edit, number))
        reaches_over = places and (places[0].start < 0 or places[-1].end > piece.end - piece.start)
        yield piece, () if reaches_over else tuple(places)
