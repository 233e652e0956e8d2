"""The first screen of an evaluation: is it safe to share, is it still useful, and what was not examined."""

from __future__ import annotations

from collections.abc import Iterator

from allonym.report.numbers import NOTHING, format_cell, format_number
from allonym.report.page import Block, Figure, Figures, Kind, Notice, Section, Text, Tone
from allonym.report.plots import Axis, Bar, Bars, Group
from allonym.report.values import Plain, has_estimate, list_rows, read_estimate, read_part, read_path

LIMITS = (
    "An evaluation shows what these intruders and these readers find, not what nobody can find. An intruder who knows "
    "more about a subject than these were given, or reads longer, may find more. Intervals show how exact a number "
    "is for texts such as these, and nothing about others. A small loss of utility for one task is none for all tasks."
)
_SIDES = {"risk": "Risk", "utility": "Utility"}
_INTRUDER = "linkage"
_RELEASED = "released"
_SMALL = 0.02  # loss of accuracy that an interval must rule out, for it to be called none
_NEAR = 0.1  # as much above chance an interval may reach at most, and twice chance, to be called no more than guessing


def verdict(result: Plain) -> Iterator[Block]:
    """A paragraph, warnings, key figures, and risk and utility in one chart.

    Args:
        result: plain values of an evaluation.
    """
    lines = _list_measured_headlines(result)
    yield Text(" ".join(_write_sentences(result, lines)), "lead")
    if warnings := tuple(_list_warnings(result, lines)):
        yield Notice("What speaks against sharing, or is not known", "warning", warnings)
    if lines:
        yield Figures(tuple(_draw_figure(row, result) for row in lines))
    yield from _draw_bars(lines)


def choose_headline_tone(row: Plain, result: Plain) -> Tone:
    """Choose the colour of a number, by chance or by its own criterion; none where there is neither."""
    value, chance = read_estimate(row.get("value")), read_estimate(row.get("chance"))
    if row.get("measure") == "residual":
        passes = read_path(result, "measures.residual.total.passes")
        return "" if passes is None else "good" if passes else "warn"
    if row.get("measure") == "detection":
        return "warn" if value.value > 0 else "good"
    if row.get("side") != "risk" or not has_estimate(chance):
        return ""
    if value.low > chance.value or (row.get("measure") == _INTRUDER and _find_exposed_groups(row, result)):
        return "bad"
    return "good" if value.high < chance.value + min(chance.value, _NEAR) else "warn"


def limits_section() -> Section:
    """The section on what no evaluation covers."""
    return Section("What this does not cover", (Text(LIMITS),), "limits")


def skipped_section(result: Plain) -> Section | None:
    """The section on what was not measured, and why."""
    items = tuple(f"{row.get('title')}: {row.get('reason')}" for row in list_rows(result, "skipped"))
    if not items:
        return None
    return Section("What was not measured", (Notice("Nothing is known of these", "note", items),), "skipped")


def lower_first(name: object) -> str:
    """Return a name as it is written within a sentence."""
    return str(name)[:1].lower() + str(name)[1:]


def choose_number_kind(row: Plain) -> Kind:
    """Choose how a headline is written."""
    return "share" if row.get("kind") == "share" else "number"


def _list_measured_headlines(result: Plain) -> list[Plain]:
    return [row for row in list_rows(result, "headlines") if has_estimate(row.get("value"))]


def _find_exposed_groups(row: Plain, result: Plain) -> list[str]:
    """Return groups whose subjects the row's intruder finds more often than by guessing, however small they are.

    Intervals are widened by the number of groups (Bonferroni), or one of many would be called exposed by chance.
    """
    from allonym.stats.samples import share  # SciPy: not needed by the pages of a text or a swap

    values = read_part(result, f"measures.{_INTRUDER}")
    values = read_part(values, "released") if row.get("key") == _RELEASED else values
    groups = [g for g in list_rows(values, "groups") if has_estimate(g.get("after")) and has_estimate(g.get("chance"))]
    exposed = []
    for group in groups:
        after, chance = read_estimate(group.get("after")), read_estimate(group.get("chance"))
        if share(round(after.value * after.n), after.n, 1 - 0.05 / len(groups)).low > chance.value:
            exposed.append(str(group.get("name")))
    return exposed


def _count_unjudged(result: Plain) -> int:
    return int(read_path(result, f"measures.{_INTRUDER}.unjudged") or 0)


def _write_sentences(result: Plain, lines: list[Plain]) -> Iterator[str]:
    risks = [row for row in lines if row.get("side") == "risk"]
    linked = [row for row in risks if row.get("measure") == _INTRUDER]
    tones = {str(row.get("key")): choose_headline_tone(row, result) for row in risks}
    yield f"{int(result.get('texts') or 0):,} texts, before and after."
    yield _judge_safety(tones, linked)
    exposed = list(dict.fromkeys(name for row in linked for name in _find_exposed_groups(row, result)))
    if exposed and not any(_is_above_chance(row) for row in linked):
        yield f"Over all texts it is no more than by guessing, but it is more in the group {', '.join(exposed)}."
    if tones.get("residual") == "warn":
        yield "A second reading proposes more left-overs than P2's limit allows; a person must look at them."
    if tones.get("missed") == "warn":
        missed = next(row for row in risks if row.get("key") == "missed")
        yield f"Of what people marked, {_format_value(missed, 'value')} still stands."
    for row in linked:
        yield _describe_intruder(row, result)
    for row in lines:
        if row.get("key") == "similarity":
            yield (
                f"Their meaning stays at {_format_value(row, 'value')} of 1 to what it was (unrelated texts: "
                f"{_format_value(row, 'chance')})."
            )
        if row.get("key") == "loss":
            yield _describe_loss(row)


def _judge_safety(tones: dict[str, Tone], linked: list[Plain]) -> str:
    if not tones:
        return "No measure of risk could be taken: whether they are safe to share is not known."
    if "bad" in tones.values():
        return "They are not safe to share with anybody who knows, or can find, what the measures below were given."
    if not linked:
        return "No intruder has tried to link them to anyone, so whether they are safe to share is not known."
    if any(tones[str(row.get("key"))] == "warn" for row in linked):
        return "Whether they are safe to share is open: too few texts to tell what intruders find from chance."
    return "No intruder that was tried finds more than by guessing. That is evidence, not proof."


def _describe_intruder(row: Plain, result: Plain) -> str:
    value, chance = _format_value(row, "value"), _format_value(row, "chance")
    if row.get("key") == _RELEASED:
        return f"An intruder who has other released texts about them names {value} (by guessing {chance})."
    unjudged = _count_unjudged(result)
    texts = f"the {int(result.get('texts') or 0) - unjudged:,} that could be tried" if unjudged else "them"
    return (
        f"An intruder who knows other texts about the same subjects names the subject of {value} of {texts} "
        f"({_format_value(row, 'before')} before; by guessing {chance})."
    )


def _describe_loss(row: Plain) -> str:
    loss = read_estimate(row.get("value"))
    value, low, high = (format_number(100 * number, "number", 1) for number in (loss.value, loss.low, loss.high))
    if loss.low > 0:
        return f"A classifier that learns from them loses {value} points."
    if loss.high < _SMALL:
        return "A classifier learns from them no worse than before, as far as can be told."
    return f"Whether a classifier learns worse from them is open: a loss of {low} to {high} points."


def _list_warnings(result: Plain, lines: list[Plain]) -> Iterator[str]:
    for row in lines:
        if row.get("side") == "risk" and choose_headline_tone(row, result) in ("bad", "warn"):
            chance = f", by guessing {_format_value(row, 'chance')}" if has_estimate(row.get("chance")) else ""
            yield f"{row.get('name')}: {_format_value(row, 'value')}{chance}: {row.get('note')}."
    if unjudged := _count_unjudged(result):
        yield f"No intruder was tried on {unjudged:,} texts: nothing else is known about their subjects."
    for row in list_rows(result, "skipped"):
        yield f"Not measured: {lower_first(row.get('title'))} ({row.get('reason')})."


def _is_above_chance(row: Plain) -> bool:
    return (
        has_estimate(row.get("chance")) and read_estimate(row.get("value")).low > read_estimate(row.get("chance")).value
    )


def _format_value(row: Plain, name: str) -> str:
    value = row.get(name)
    return (
        format_number(read_estimate(value).value, choose_number_kind(row), row.get("digits"))
        if has_estimate(value)
        else NOTHING
    )


def _draw_figure(row: Plain, result: Plain) -> Figure:
    note = str(row.get("note") or "")
    if has_estimate(row.get("chance")):
        note += f"; chance {_format_value(row, 'chance')}"
    before = read_estimate(row.get("before")).value if has_estimate(row.get("before")) else None
    name = f"{_SIDES.get(str(row.get('side')), '')}: {lower_first(row.get('name'))}"
    return Figure(
        name,
        read_estimate(row.get("value")),
        note,
        choose_number_kind(row),
        row.get("digits"),
        choose_headline_tone(row, result),
        before,
    )


def _draw_bars(lines: list[Plain]) -> Iterator[Bars]:
    """The numbers that lie between 0 and 1, risk first."""
    groups = []
    for row in lines:
        value = read_estimate(row.get("value"))
        if value.low < 0 or value.high > 1:
            continue
        bars = [Bar("anonymised", value, 0, (("interval", format_cell(value, choose_number_kind(row)).line),))]
        if has_estimate(row.get("before")):
            bars.insert(0, Bar("original", read_estimate(row.get("before")), 7))
        chance = read_estimate(row.get("chance")).value if has_estimate(row.get("chance")) else None
        side = _SIDES.get(str(row.get("side")), "")
        name = f"{side}: {lower_first(row.get('name'))} ({row.get('better')} is better)"
        groups.append(Group(name, tuple(bars), chance))
    if len(groups) > 1:
        yield Bars(
            "Risk and utility side by side",
            Axis("from 0 to 1", "number", 0, 1),
            tuple(groups),
            "chance",
            "Each number between 0 and 1 with its interval; the tick is what chance reaches.",
        )
