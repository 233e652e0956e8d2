"""The first screen of an evaluation: is it safe to share, is it still useful, and what nobody has looked at."""

from __future__ import annotations

from collections.abc import Iterator

from allonym.report.numbers import NOTHING, show, write
from allonym.report.page import Block, Figure, Figures, Kind, Notice, Section, Text, Tone
from allonym.report.plots import Axis, Bar, Bars, Group
from allonym.report.swap.given import Plain, estimate, known, part, rows

LIMITS = (
    "An evaluation tells what these intruders and these readers find, not what nobody can find. Who knows more about "
    "a subject than the intruders here were given, or reads longer, may find more. Intervals tell how exact a number "
    "is for texts such as these, and nothing about others. A small loss of utility for one task is none for all tasks."
)
_SIDES = {"risk": "Risk", "utility": "Utility"}
_INTRUDER = "linkage"
_RELEASED = "released"
_SMALL = 0.02  # loss of accuracy that an interval must rule out, for it to be called none
_NEAR = 0.1  # as much above chance an interval may reach at most, and twice chance, to be called no more than guessing


def verdict(result: Plain) -> Iterator[Block]:
    """A paragraph, what to beware of, key figures, and risk and utility in one picture.

    Args:
        result: plain values of an evaluation.
    """
    yield Text(" ".join(_sentences(result)), "lead")
    if warnings := tuple(_warnings(result)):
        yield Notice("What speaks against sharing, or is not known", "warning", warnings)
    lines = [row for row in rows(result, "headlines") if known(row.get("value"))]
    if lines:
        yield Figures(tuple(_figure(row, result) for row in lines))
    if (picture := _picture(lines)) is not None:
        yield picture


def tone_of(row: Plain, result: Plain) -> Tone:
    """How a number is coloured: by chance or by the criterion that belongs to it; nothing where there is neither."""
    value, chance = estimate(row.get("value")), estimate(row.get("chance"))
    if row.get("measure") == "residual":
        passes = part(part(part(result, "measures"), "residual"), "total").get("passes")
        return "" if passes is None else "good" if passes else "warn"
    if row.get("measure") == "detection":
        return "warn" if value.value > 0 else "good"
    if row.get("side") != "risk" or not known(chance):
        return ""
    if value.low > chance.value:
        return "bad"
    if row.get("measure") == _INTRUDER and _exposed(row, result):
        return "bad"
    return "good" if value.high < chance.value + min(chance.value, _NEAR) else "warn"


def _exposed(row: Plain, result: Plain) -> list[str]:
    """Groups whose subjects the row's intruder finds more often than by guessing, however few they are in the whole.

    Intervals are as much wider as there are more groups (Bonferroni), or one of many would be called exposed by chance.
    """
    from allonym.stats.samples import share  # SciPy: not needed by the pages of a text or a swap

    told = part(part(result, "measures"), _INTRUDER)
    told = part(told, "released") if row.get("key") == _RELEASED else told
    groups = [g for g in rows(told, "groups") if known(g.get("after")) and known(g.get("chance"))]
    out = []
    for one in groups:
        after, chance = estimate(one.get("after")), estimate(one.get("chance"))
        if share(round(after.value * after.n), after.n, 1 - 0.05 / len(groups)).low > chance.value:
            out.append(str(one.get("name")))
    return out


def limits_section() -> Section:
    """What no evaluation covers."""
    return Section("What this does not cover", (Text(LIMITS),), "limits")


def skipped_section(result: Plain) -> Section | None:
    """What was not measured, and why."""
    found = tuple(f"{row.get('title')}: {row.get('reason')}" for row in rows(result, "skipped"))
    return (
        Section("What was not measured", (Notice("These say nothing of these texts", "note", found),), "skipped")
        if found
        else None
    )


def _sentences(result: Plain) -> Iterator[str]:
    texts = int(result.get("texts") or 0)
    lines = [row for row in rows(result, "headlines") if known(row.get("value"))]
    risks = [row for row in lines if row.get("side") == "risk"]
    tones = {str(row.get("key")): tone_of(row, result) for row in risks}
    linked = [row for row in risks if row.get("measure") == _INTRUDER]
    yield f"{texts:,} texts, before and after."
    if not risks:
        yield "No measure of risk could be taken: whether they are safe to share is not known."
    elif "bad" in tones.values():
        yield "They are not safe to share with whoever knows, or can find, what the measures below were given."
    elif not linked:
        yield "No intruder has tried to link them to anyone, so whether they are safe to share is not known."
    elif any(tones[str(row.get("key"))] == "warn" for row in linked):
        yield "Whether they are safe to share is open: there are too few texts to tell what intruders find from chance."
    else:
        yield "No intruder that was tried finds more than by guessing. That is evidence, not proof."
    exposed = list(dict.fromkeys(name for row in linked for name in _exposed(row, result)))
    if exposed and not any(_above(row) for row in linked):
        yield f"Over all texts it is no more than by guessing, but it is more in the group {', '.join(exposed)}."
    if tones.get("residual") == "warn":
        yield "A second reading proposes more left-overs than P2's limit allows; a person must look at them."
    if tones.get("missed") == "warn":
        missed = next(row for row in risks if row.get("key") == "missed")
        yield f"Of what people marked, {_said(missed, 'value')} still stands."
    for row in linked:
        if row.get("key") == _RELEASED:
            yield (
                f"One who has other released texts about them names {_said(row, 'value')} (by guessing "
                f"{_said(row, 'chance')})."
            )
            continue
        left = int(part(part(result, "measures"), _INTRUDER).get("unjudged") or 0)
        those = f"the {texts - left:,} that could be tried" if left else "them"
        yield (
            f"An intruder who knows other texts about the same subjects names the subject of {_said(row, 'value')} of "
            f"{those} ({_said(row, 'before')} before; by guessing {_said(row, 'chance')})."
        )
    for row in lines:
        if row.get("key") == "similarity":
            near, far = _said(row, "value"), _said(row, "chance")
            yield f"Their meaning stays at {near} of 1 to what it was (unrelated texts: {far})."
        if row.get("key") == "loss":
            loss = estimate(row.get("value"))
            low, high = (write(100 * end, "number", 1) for end in (loss.low, loss.high))
            yield (
                "A classifier learns from them no worse than before, as far as can be told."
                if loss.low <= 0 and loss.high < _SMALL
                else f"Whether a classifier learns worse from them is open: a loss of {low} to {high} points."
                if loss.low <= 0
                else f"A classifier that learns from them loses {write(100 * loss.value, 'number', 1)} points."
            )


def _warnings(result: Plain) -> Iterator[str]:
    lines = {str(row.get("key")): row for row in rows(result, "headlines")}
    for row in lines.values():
        if row.get("side") == "risk" and known(row.get("value")) and tone_of(row, result) in ("bad", "warn"):
            chance = f", by guessing {_said(row, 'chance')}" if known(row.get("chance")) else ""
            yield f"{row.get('name')}: {_said(row, 'value')}{chance}: {row.get('note')}."
    if left := int(part(part(result, "measures"), _INTRUDER).get("unjudged") or 0):
        yield f"No intruder was tried on {left:,} texts: nothing else is known about their subjects."
    for row in rows(result, "skipped"):
        yield f"Not measured: {small_letter(row.get('title'))} ({row.get('reason')})."


def _above(row: Plain) -> bool:
    value, chance = estimate(row.get("value")), estimate(row.get("chance"))
    return known(row.get("chance")) and value.low > chance.value


def _said(row: Plain, name: str) -> str:
    found = estimate(row.get(name))
    return write(found.value, kind_of(row), row.get("digits")) if known(found) else NOTHING


def small_letter(name: object) -> str:
    """A name as it stands within a sentence."""
    return str(name)[:1].lower() + str(name)[1:]


def kind_of(row: Plain) -> Kind:
    """How a headline is written."""
    return "share" if row.get("kind") == "share" else "number"


def _figure(row: Plain, result: Plain) -> Figure:
    note = str(row.get("note") or "")
    if known(row.get("chance")):
        note += f"; chance {_said(row, 'chance')}"
    before = estimate(row.get("before")).value if known(row.get("before")) else None
    name = f"{_SIDES.get(str(row.get('side')), '')}: {small_letter(row.get('name'))}"
    return Figure(name, estimate(row.get("value")), note, kind_of(row), row.get("digits"), tone_of(row, result), before)


def _picture(lines: list[Plain]) -> Bars | None:
    """The numbers that lie between 0 and 1, risk first."""
    groups = []
    for row in lines:
        value = estimate(row.get("value"))
        if value.low < 0 or value.high > 1:
            continue
        bars = [Bar("anonymised", value, 0, (("interval", show(value, kind_of(row)).line),))]
        if known(row.get("before")):
            bars.insert(0, Bar("original", estimate(row.get("before")), 7))
        chance = estimate(row.get("chance")).value if known(row.get("chance")) else None
        side = _SIDES.get(str(row.get("side")), "")
        groups.append(
            Group(f"{side}: {small_letter(row.get('name'))} ({row.get('better')} is better)", tuple(bars), chance)
        )
    if len(groups) < 2:
        return None
    return Bars(
        "Risk and utility side by side",
        Axis("from 0 to 1", "number", 0, 1),
        tuple(groups),
        "chance",
        "Each number between 0 and 1 with its interval; the tick is what chance reaches.",
    )
