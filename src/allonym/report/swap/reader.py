"""The chosen release, chunk by chunk: texts before and after, with what was put in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from allonym.report.numbers import write
from allonym.report.page import Cell, Key, Mark, Notice, Passage, Reader, Section, Tag, Text, Tone
from allonym.report.swap.given import Plain, rows

SENSITIVE = (
    "This report shows texts: the corpus after direct identifiers were suppressed, and before anything was "
    "exchanged. It is as sensitive as that. Do not pass this file on with the release."
)


def reader_section(result: Plain, *, most: int = 400) -> Section | None:
    """Up to ``most`` passages; where there are more, those that are still recognised come first."""
    outcomes = [o for o in rows(result, "outcomes") if "before" in o and "after" in o]
    if not outcomes:
        return None
    shown = _selected(outcomes, most)
    categories = sorted({str(m[2]) for o in shown for m in o.get("marks") or () if len(m) > 3 and m[3] == "swap"})
    colours = {c: i for i, c in enumerate(categories)}
    note = ""
    if len(shown) < len(outcomes):
        note = (
            f"{len(shown):,} of {len(outcomes):,} changed chunks are shown: those still recognised first, then evenly."
        )
    text = (
        "Every changed chunk of the release as written. Words that were put in are marked; point at one to see "
        "what it is and where it comes from."
    )
    return Section(
        "Texts before and after",
        (
            Notice(SENSITIVE, "sensitive"),
            Text(text),
            Reader(
                "Before and after",
                tuple(_passage(o, colours) for o in shown),
                tuple(Key(c, i) for c, i in colours.items()),
                note,
            ),
        ),
        "texts",
    )


def _selected(outcomes: list[Plain], most: int) -> list[Plain]:
    if len(outcomes) <= most:
        return outcomes
    found = [i for i, o in enumerate(outcomes) if any(tuple(g)[1] for g in (o.get("guessed") or {}).values())][:most]
    rest = [i for i in range(len(outcomes)) if i not in set(found)]
    wanted = most - len(found)
    spread = [rest[k * len(rest) // wanted] for k in range(wanted)] if wanted else []
    return [outcomes[i] for i in sorted({*found, *spread})]


def _passage(outcome: Plain, colours: Mapping[str, int]) -> Passage:
    document, chunk, cluster = (int(outcome.get(name) or 0) for name in ("document", "chunk", "cluster"))
    partners = [int(p) for p in outcome.get("partners") or ()]
    guessed: Mapping[str, Sequence[bool]] = outcome.get("guessed") or {}
    marks = outcome.get("marks") or ()
    facts: list[tuple[str, Cell]] = []
    if partners:
        facts.append(("Entities from chunk" + "s" * (len(partners) > 1), ", ".join(str(p) for p in partners)))
    orders: dict[str, float] = {}
    for name, label, digits in (("cosine", "Cosine", 3), ("distance", "D, nats", 2)):
        value = outcome.get(name)
        if isinstance(value, (int, float)):
            facts.append((label, write(float(value), "number", digits)))
            orders["cosine" if name == "cosine" else "D"] = float(value)
    facts.append(("Replaced", len(marks)))
    traits = {"Document": str(document + 1), "Cluster": str(cluster + 1)}
    for name, (before, after) in sorted(guessed.items()):
        traits[f"Intruder {name}"] = _outcome(before, after)
    kinds = [str(m[3]) for m in marks if len(m) > 3]
    traits["Replaced by"] = _how(kinds)
    return Passage(
        f"Chunk {chunk}",
        str(outcome.get("before", "")),
        str(outcome.get("after", "")),
        _marks(outcome.get("marks_before") or (), colours, partners, after=False),
        _marks(marks, colours, partners, after=True),
        (
            Tag(f"document {document + 1}"),
            Tag(f"cluster {cluster + 1}"),
            *(Tag(f"{n}: {_outcome(*g)}", _tone(*g)) for n, g in sorted(guessed.items())),
        ),
        tuple(facts),
        traits,
        orders,
    )


def _marks(
    marks: Sequence[Sequence[Any]], colours: Mapping[str, int], partners: list[int], *, after: bool
) -> tuple[Mark, ...]:
    out = []
    for start, end, category, *more in marks:
        kind = str(more[0]) if more else "swap"
        label = str(category)
        if kind == "swap" and after:
            source = more[1:] if len(more) > 1 else partners
            chunks = ", ".join(str(p) for p in source)
            label += (
                f"\nput in: exchanged\nfrom chunk{'s' * (len(source) > 1)}: {chunks}"
                if source
                else "\nput in: exchanged"
            )
        elif kind == "swap":
            label += "\nfate: moves to another chunk"
        else:
            label += f"\n{'put in' if after else 'fate'}: {kind}"
        style: Literal["swap", "other"] = "swap" if kind == "swap" else "other"
        slot = colours.get(str(category), 7) if style == "swap" else 7
        out.append(Mark(int(start), int(end), label, slot, style))
    return tuple(out)


def _outcome(before: bool, after: bool) -> str:
    if after:
        return "still right" if before else "right only after"
    return "no longer right" if before else "never right"


def _tone(before: bool, after: bool) -> Tone:
    return "bad" if after else "good" if before else ""


def _how(kinds: Sequence[str]) -> str:
    swapped = "swap" in kinds
    other = any(k != "swap" for k in kinds)
    return (
        "exchange and fall-back"
        if swapped and other
        else "exchange"
        if swapped
        else "fall-back"
        if other
        else "nothing"
    )
