"""Two plans as one: from the original text to the result of the second plan."""

from __future__ import annotations

from allonym.errors import PlanMismatch
from allonym.plan import Edit, Plan, apply_edits, digest

__all__ = ["chain_plans"]


def chain_plans(text: str, first: Plan, second: Plan) -> Plan:
    """Return the plan that has the effect of both, one after the other; it can be undone to ``text``.

    Edits that touch each other become one, which keeps the label and the entity of the first plan's, and the second's
    operator.

    Args:
        text: what the first plan was made for.
        first: from ``text`` to another text.
        second: from that text to a third one.

    Raises:
        PlanMismatch: ``text`` is not the first plan's, or the second was not made for what the first makes.
    """
    between = apply_edits(text, first.edits)
    if digest(text) != first.digest or digest(between) != second.digest:
        raise PlanMismatch("the second plan must be for the text that the first one makes of this text")
    pieces: list[tuple[int, int, Edit]] = []  # where the first plan's replacements stand in the text between
    shift = 0
    for edit in first.edits:
        position = edit.start + shift
        pieces.append((position, position + len(edit.replacement), edit))
        shift += len(edit.replacement) - (edit.end - edit.start)
    out: list[Edit] = []
    k = m = moved = 0  # moved: how much longer the text between is than the original, up to here
    while k < len(pieces) or m < len(second.edits):
        ones: list[tuple[int, int, Edit]] = []
        twos: list[Edit] = []
        if m == len(second.edits) or (k < len(pieces) and pieces[k][0] <= second.edits[m].start):
            low, high = pieces[k][0], pieces[k][1]
            ones.append(pieces[k])
            k += 1
        else:
            low, high = second.edits[m].start, second.edits[m].end
            twos.append(second.edits[m])
            m += 1
        while True:  # whatever overlaps joins
            if k < len(pieces) and (pieces[k][0] < high or pieces[k][0] == pieces[k][1] == high):
                high = max(high, pieces[k][1])
                ones.append(pieces[k])
                k += 1
            elif m < len(second.edits) and second.edits[m].start < high:
                high = max(high, second.edits[m].end)
                twos.append(second.edits[m])
                m += 1
            else:
                break
        start = low - moved
        moved += sum(len(e.replacement) - (e.end - e.start) for _, _, e in ones)
        end = high - moved
        inner = [Edit(e.start - low, e.end - low, e.replacement, e.label) for e in twos]
        new = apply_edits(between[low:high], inner)
        lead = ones[0][2] if ones else twos[0]
        operator = twos[-1].operator if twos else lead.operator
        if new != text[start:end] or not twos:
            out.append(Edit(start, end, new, lead.label, lead.entity, operator, text[start:end]))
    return Plan(
        first.digest, tuple(out), tuple(dict.fromkeys((*first.notes, *second.notes))), digest(apply_edits(text, out))
    )
