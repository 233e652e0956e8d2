"""The chosen release, chunk by chunk: texts before and after, with the replacements marked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from allonym.report.numbers import format_number
from allonym.report.page import Cell, Key, Mark, Notice, Passage, Reader, Section, Tag, Text, Tone
from allonym.report.values import Plain, list_rows

SENSITIVE = (
    "This report shows texts: the corpus after direct identifiers were suppressed, and before anything was "
    "exchanged. It is as sensitive as that. Do not pass this file on with the release."
)
_LEAD = (
    "Every changed chunk of the release as written. Words that were put in are marked; point at one to see what it is "
    "and where it comes from."
)
_OTHER_SLOT = 7


def passages_section(result: Plain, *, most: int = 400) -> Section | None:
    """The section of up to ``most`` passages; where there are more, those that are still recognised come first."""
    outcomes = [outcome for outcome in list_rows(result, "outcomes") if "before" in outcome and "after" in outcome]
    if not outcomes:
        return None
    shown = _select_outcomes(outcomes, most)
    marks = [mark for outcome in shown for mark in outcome.get("marks") or ()]
    categories = sorted({str(mark[2]) for mark in marks if len(mark) > 3 and mark[3] == "swap"})
    slots = {category: slot for slot, category in enumerate(categories)}
    note = ""
    if len(shown) < len(outcomes):
        note = (
            f"{len(shown):,} of {len(outcomes):,} changed chunks are shown: those still recognised first, then evenly."
        )
    passages = tuple(_draw_passage(outcome, slots) for outcome in shown)
    keys = tuple(Key(category, slot) for category, slot in slots.items())
    reader = Reader("Before and after", passages, keys, note)
    return Section("Texts before and after", (Notice(SENSITIVE, "sensitive"), Text(_LEAD), reader), "texts")


def _select_outcomes(outcomes: list[Plain], most: int) -> list[Plain]:
    if len(outcomes) <= most:
        return outcomes
    guesses = (tuple((outcome.get("guessed") or {}).values()) for outcome in outcomes)
    recognised = [i for i, pairs in enumerate(guesses) if any(tuple(pair)[1] for pair in pairs)][:most]
    rest = [i for i in range(len(outcomes)) if i not in set(recognised)]
    missing = most - len(recognised)
    spread = [rest[k * len(rest) // missing] for k in range(missing)]
    return [outcomes[i] for i in sorted({*recognised, *spread})]


def _draw_passage(outcome: Plain, slots: Mapping[str, int]) -> Passage:
    document, chunk, cluster = (int(outcome.get(name) or 0) for name in ("document", "chunk", "cluster"))
    partners = [int(partner) for partner in outcome.get("partners") or ()]
    guesses: list[tuple[str, Sequence[bool]]] = sorted((outcome.get("guessed") or {}).items())
    marks = outcome.get("marks") or ()
    facts: list[tuple[str, Cell]] = []
    if partners:
        facts.append((f"Entities from chunk{'s' * (len(partners) > 1)}", ", ".join(map(str, partners))))
    orders: dict[str, float] = {}
    for name, label, order, digits in (("cosine", "Cosine", "cosine", 3), ("distance", "D, nats", "D", 2)):
        value = outcome.get(name)
        if isinstance(value, (int, float)):
            facts.append((label, format_number(float(value), "number", digits)))
            orders[order] = float(value)
    facts.append(("Replaced", len(marks)))
    traits = {"Document": str(document + 1), "Cluster": str(cluster + 1)}
    traits |= {f"Intruder {name}": _describe_guess(*pair) for name, pair in guesses}
    traits["Replaced by"] = _describe_kinds({str(mark[3]) for mark in marks if len(mark) > 3})
    tags = [Tag(f"document {document + 1}"), Tag(f"cluster {cluster + 1}")]
    tags += [Tag(f"{name}: {_describe_guess(*pair)}", _colour_guess(*pair)) for name, pair in guesses]
    return Passage(
        f"Chunk {chunk}",
        str(outcome.get("before", "")),
        str(outcome.get("after", "")),
        tuple(_draw_marks(outcome.get("marks_before") or (), slots, partners, after=False)),
        tuple(_draw_marks(marks, slots, partners, after=True)),
        tuple(tags),
        tuple(facts),
        traits,
        orders,
    )


def _draw_marks(
    marks: Sequence[Sequence[Any]], slots: Mapping[str, int], partners: list[int], *, after: bool
) -> Iterator[Mark]:
    for start, end, category, *more in marks:
        kind = str(more[0]) if more else "swap"
        if kind != "swap":
            label = f"{category}\n{'put in' if after else 'fate'}: {kind}"
            yield Mark(int(start), int(end), label, _OTHER_SLOT, "other")
            continue
        label = f"{category}\n{'put in: exchanged' if after else 'fate: moves to another chunk'}"
        source = more[1:] or partners
        if after and source:
            label += f"\nfrom chunk{'s' * (len(source) > 1)}: {', '.join(map(str, source))}"
        yield Mark(int(start), int(end), label, slots.get(str(category), _OTHER_SLOT), "swap")


def _describe_guess(before: bool, after: bool) -> str:
    if after:
        return "still right" if before else "right only after"
    return "no longer right" if before else "never right"


def _colour_guess(before: bool, after: bool) -> Tone:
    return "bad" if after else "good" if before else ""


def _describe_kinds(kinds: set[str]) -> str:
    ways = ["exchange"] * ("swap" in kinds) + ["fall-back"] * bool(kinds - {"swap"})
    return " and ".join(ways) or "nothing"
