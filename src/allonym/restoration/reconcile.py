"""Use what a plan made, and how often, to decide over the matches of a whole text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from allonym.restoration.hits import Match
from allonym.restoration.index import Index

SURPLUS = "a number or word that stands for {label} was left: it stands here more or less often than in the plan"

Expected = Mapping[str, Sequence[str]]
"""The originals of each replacement that a plan made, one for each occurrence, in reading order."""


def reconcile_with_plan(
    matches: Sequence[Match], index: Index, expected: Expected, *, is_shown: bool
) -> tuple[list[Match], int, list[str]]:
    """Restore surfaces in order, drop surplus matches, and count the replacements that are missing.

    Args:
        matches: of the text.
        index: of the plan's replacements.
        expected: what the plan made and is not accounted for yet.
        is_shown: whether the text shows its document, so that counts may decide over numbers and ordinary words.

    Returns:
        The matches, the number of missing replacements, and notes.
    """
    notes: list[str] = []
    there = {m.row for m in matches if not m.why}
    settled = _settle_doubtful_matches(matches, index, expected) if is_shown else list(matches)
    sure = [m for m in settled if m.is_sure]
    whole_counts = Counter(m.row for m in sure if m.row >= 0 and m.is_whole)
    matched_rows = {m.row for m in sure if m.row >= 0}
    missing = 0
    for i, row in enumerate(index.rows):
        if row.text not in expected:
            continue
        if i not in matched_rows and not (row.is_ordinary and i in there):
            missing += 1
            notes.append(f"this text does not mention one {row.label} of the original")
        elif row.has_variants and whole_counts[i] not in (0, len(expected[row.text])):
            notes.append(f"one {row.label} has several names in the original; the fullest stands everywhere")
    used = Counter[int]()
    out = []
    for m in settled:
        if m.row >= 0 and m.is_sure and m.is_whole and m.out is not None:
            row = index.rows[m.row]
            originals = expected.get(row.text, ())
            if row.has_variants and whole_counts[m.row] == len(originals) and m.out == row.find_single_original():
                m = m._replace(out=originals[used[m.row]])
            used[m.row] += 1
        elif is_shown and m.row >= 0 and not (m.is_sure or m.why) and index.rows[m.row].text in expected:
            m = m._replace(why=SURPLUS.format(label=m.label))
        out.append(m)
    return out, missing, notes


def _settle_doubtful_matches(matches: Sequence[Match], index: Index, expected: Expected) -> list[Match]:
    """Make doubtful matches sure unless they are more than the plan made; those that are more are not sure."""

    def is_doubtful(m: Match) -> bool:
        is_expected = m.row >= 0 and index.rows[m.row].is_rare and index.rows[m.row].text in expected
        return not (m.is_sure or is_expected) or (m.words == 1 and "typo" in m.rule)

    judged = [m for m in matches if not m.why or m.is_sure]  # the others have no evidence, or several originals
    remaining = Counter({i: len(expected.get(row.text, ())) for i, row in enumerate(index.rows)})
    remaining.subtract(m.row for m in judged if m.row >= 0 and m.is_whole and not is_doubtful(m))
    settled: set[Match] = {m for m in judged if not is_doubtful(m)}
    for exact in (True, False):
        places: dict[int, list[Match]] = {}
        for m in judged:
            if m.row >= 0 and is_doubtful(m) and (m.rule == "exact") == exact:
                places.setdefault(m.row, []).append(m)
        for row, row_matches in places.items():
            are_sure = all(m.is_sure for m in row_matches)
            if len(row_matches) == remaining[row] or (remaining[row] > 0 and are_sure):
                settled.update(row_matches)
                remaining[row] -= len(row_matches)
    return [m._replace(is_sure=True) if m in settled else m._replace(is_sure=m.is_sure and m.row < 0) for m in matches]
