"""Where replacements come from: the edits of a plan, as they are searched for in a rewritten text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise

from allonym.plan import Edit, Plan
from allonym.protocol import get_traits_by_name
from allonym.vault.records import Known

ARTICLE = "article@"
"""How the operator of edits begins that adapt an English article."""
_ADAPTING = (ARTICLE, "quote@")

_OUTER = " \n\r\t.,;:!?'’sS"


def has_originals(plan: Plan) -> bool:
    """Tell whether a plan holds all its originals."""
    return all(edit.original is not None for edit in plan.edits)


def adapts_surroundings(edit: Edit) -> bool:
    """Tell whether an edit replaces no mention, but adapts what stands around one: an article, quotes."""
    return edit.operator.startswith(_ADAPTING)


def is_irreversible(edit: Edit) -> bool:
    """Tell whether an edit is irreversible, so that a rewritten text does not determine the original."""
    is_lost = get_traits_by_name(edit.operator).lossy or not edit.replacement.strip()
    return is_lost and not adapts_surroundings(edit)


def list_replacements(edits: Iterable[Edit]) -> Iterator[Known]:
    """Yield the replacements of a plan's edits that can be searched for."""
    for e in edits:
        if not adapts_surroundings(e) and not is_irreversible(e) and e.original is not None:
            token, original = _strip_shared_space_and_ending(e.replacement, e.original)
            yield Known(token, original, e.label, e.operator, str(e.entity) if e.entity else f"@{e.start}")


def _strip_shared_space_and_ending(replacement: str, original: str) -> tuple[str, str]:
    """Strip from both the possessive, space or full stop that the plan kept around the replacement."""
    a = 0
    most = min(len(replacement), len(original)) - 1
    while a < most and replacement[a] == original[a] and original[a].isspace():
        a += 1
    ends = 0
    while ends < most - a and replacement[-1 - ends] == original[-1 - ends] and original[-1 - ends] in _OUTER:
        ends += 1
    ending = replacement[len(replacement) - ends :]
    for end in range(ends, 0, -1):
        tail = ending[-end:]
        if tail.strip(" \n\r\t.,;:!?") in ("", "'s", "’s", "'S", "’S", "'", "’"):
            token = replacement[a : len(replacement) - end]
            return token.lstrip(" ") or token, original[a : len(original) - end]
    # A space inserted between two words belongs to neither of them.
    return replacement[a:].strip(" ") or replacement[a:], original[a:]


def list_article_replacements(edits: Iterable[Edit]) -> Iterator[Known]:
    """Yield the replacements before which a plan's edits adapted an article."""
    for edit, following in pairwise(edits):
        if edit.operator.startswith(ARTICLE) and following.original is not None:
            token, _ = _strip_shared_space_and_ending(following.replacement, following.original)
            yield Known(token, edit.original or "", following.label, edit.operator, "")
