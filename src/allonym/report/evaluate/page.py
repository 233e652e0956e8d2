"""The report of a whole evaluation: verdict, a section of each measure, what was skipped, settings, limits.

The verdict is the first screen: is it safe to share, is it still useful, and what was not examined.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import product

from allonym.report import page
from allonym.report.evaluate.detection import detection_section
from allonym.report.evaluate.intruders import linkage_section
from allonym.report.evaluate.risk import document_risk_section, residual_section
from allonym.report.evaluate.utility import downstream_section, information_section, syntheticity_section
from allonym.report.sections import SectionSpec
from allonym.report.values import (
    NOTHING,
    Plain,
    flatten_settings,
    format_cell,
    format_number,
    format_seconds,
    get_nested_value,
    has_estimate,
    read_estimate,
    read_mapping,
    read_rows,
)
from allonym.stats import Estimate

SECTIONS: Mapping[str, SectionSpec] = {
    "detection": detection_section,
    "linkage": linkage_section,
    "document_risk": document_risk_section,
    "residual": residual_section,
    "information": information_section,
    "downstream": downstream_section,
    "syntheticity": syntheticity_section,
}
"""What draws a measure, by the measure's name; in this order."""

SENSITIVE = "This page holds words of the original texts. Keep it as safe as the texts themselves."


def evaluation_page(result: Plain, *, texts: bool = False) -> page.Page:
    """The report of an evaluation as a page.

    Args:
        result: plain values, as ``Evaluation.to_dict()`` gives them; parts that are missing are left out.
        texts: whether words of the texts may show, where the values hold them.
    """
    sections = [*_draw_measures(result, texts), draw_skipped(result), _draw_settings(result), draw_limits()]
    return _make_page(result, "Evaluation", verdict(result), sections, texts)


def compare_page(result: Plain, *, texts: bool = False) -> page.Page:
    """The report of several anonymised versions of one corpus.

    Args:
        result: plain values, as ``Comparison.to_dict()`` gives them.
        texts: whether words of the texts may show, where the values hold them.
    """
    versions = read_mapping(result, "versions")
    human = {str(name) for name in result.get("human") or ()}
    headlines = _list_headlines(versions)
    charts = tuple(_draw_charts(versions, headlines))
    multiples = (page.Multiples("Risk against utility", charts),) if len(charts) > 1 else charts
    table = _draw_versions_table(versions, headlines, human)
    sections: list[page.Section | None] = [page.Section("Side by side", (*multiples, table), "versions")]
    for number, (name, version) in enumerate(versions.items(), 1):
        parts = (section for section in (*_draw_measures(version, texts), draw_skipped(version)) if section)
        # Sections of the same measure would share an anchor.
        numbered = (replace(s, anchor=f"{s.anchor}-{number}") if s.anchor else s for s in parts)
        sections.append(page.Section(name, (*verdict(version), *numbered), f"version-{number}"))
    sections += [*(_draw_settings(version) for version in list(versions.values())[:1]), draw_limits()]
    lead = page.Text(" ".join(_compare_versions(versions, headlines, human)), "lead")
    return _make_page(result, "Versions compared", [lead], sections, texts)


def _make_page(
    result: Plain, title: str, lead: Iterable[page.Block], sections: Iterable[page.Section | None], texts: bool
) -> page.Page:
    blocks = (*lead, *([page.Notice(SENSITIVE, "sensitive")] if texts else []))
    drawn = tuple(section for section in sections if section is not None)
    return page.Page(str(result.get("title") or title), drawn, str(result.get("created") or ""), blocks)


def _draw_measures(result: Plain, texts: bool) -> Iterator[page.Section | None]:
    measures = read_mapping(result, "measures")
    return (draw(measures[name], texts=texts) for name, draw in SECTIONS.items() if name in measures)


def _draw_settings(result: Plain) -> page.Section | None:
    settings, seconds = (
        flatten_settings(read_mapping(result, "settings")),
        format_seconds(read_mapping(result, "seconds")),
    )
    groups = tuple((name, facts) for name, facts in (("", settings), ("Seconds", seconds)) if facts)
    return page.Section("Settings", (page.Settings(groups),), "settings") if groups else None


def _list_headlines(versions: Plain) -> list[Plain]:
    """Every number that a version has, once, in the order of the first that has it; risk first."""
    headlines: dict[str, Plain] = {}
    for version in versions.values():
        for row in read_rows(version, "headlines"):
            if has_estimate(row.get("value")):
                headlines.setdefault(str(row.get("key")), row)
    return sorted(headlines.values(), key=lambda row: row.get("side") != "risk")


def _read_headline(version: Plain, headline: Plain) -> Estimate:
    same = (row.get("value") for row in read_rows(version, "headlines") if row.get("key") == headline.get("key"))
    return read_estimate(next(same, None))


def _draw_versions_table(versions: Plain, headlines: list[Plain], human: set[str]) -> page.Table:
    columns = [page.Column("", hint="which of them"), page.Column("made by")]
    for row in headlines:
        hint = f"{row.get('note')} ({row.get('side')}; {row.get('better')} is better)"
        columns.append(page.Column(str(row.get("name")), choose_number_kind(row), row.get("digits"), hint))
    body = []
    if any(has_estimate(row.get("before")) for row in headlines):
        cells: list[page.Cell] = [
            read_estimate(row["before"]) if has_estimate(row.get("before")) else None for row in headlines
        ]
        body.append(page.Row(("original texts", "", *cells)))
    for name, version in versions.items():
        values = (_read_headline(version, row) for row in headlines)
        body.append(page.Row((name, page.Tag("people" if name in human else "machine"), *values)))
    note = "Intervals that overlap do not tell two versions apart; all were measured on the same texts with one seed."
    return page.Table("Versions", tuple(columns), tuple(body), note)


def _draw_charts(versions: Plain, headlines: list[Plain]) -> Iterator[page.Chart]:
    risks = [row for row in headlines if row.get("side") == "risk"]
    utilities = [row for row in headlines if row.get("side") == "utility"]
    for risk, utility in product(risks, utilities[:1]):
        series = []
        for slot, (name, version) in enumerate(versions.items()):
            x, y = _read_headline(version, utility), _read_headline(version, risk)
            if has_estimate(x) and has_estimate(y):
                series.append(page.Series(name, (page.Point(x, y, name, (), "chosen"),), slot))
        if len(series) > 1:
            yield page.Chart(
                f"{risk.get('name')} against {lower_first(utility.get('name'))}",
                page.Axis(str(utility.get("name")), choose_number_kind(utility)),
                page.Axis(str(risk.get("name")), choose_number_kind(risk)),
                tuple(series),
                description="One point for each version, with intervals.",
                better="lower right" if utility.get("better") == "high" else "lower left",
                size="small" if len(risks) > 1 else "wide",
            )


def _compare_versions(versions: Plain, headlines: list[Plain], human: set[str]) -> Iterator[str]:
    yield f"{len(versions)} anonymised versions of the same texts."
    for row in headlines:
        values = {name: _read_headline(version, row) for name, version in versions.items()}
        sign = 1 if row.get("better") == "low" else -1
        order = sorted(
            (name for name in values if has_estimate(values[name])), key=lambda name: sign * values[name].value
        )
        if len(order) < 2:
            continue
        best, second = values[order[0]], values[order[1]]
        if best.value == second.value:
            yield f"{row.get('name')}: no difference."
            continue
        clear = best.high < second.low if sign == 1 else best.low > second.high
        margin = "" if clear else f" of {order[1]} by less than the intervals tell apart"
        yield f"{row.get('name')}: {order[0]} is ahead{margin}{' (made by people)' if order[0] in human else ''}."


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


def verdict(result: Plain) -> Iterator[page.Block]:
    """A paragraph, warnings, key figures, and risk and utility in one chart.

    Args:
        result: plain values of an evaluation.
    """
    lines = _list_measured_headlines(result)
    yield page.Text(" ".join(_write_verdict(result, lines)), "lead")
    if warnings := tuple(_list_warnings(result, lines)):
        yield page.Notice("What speaks against sharing, or is not known", "warning", warnings)
    if lines:
        yield page.Figures(tuple(_draw_figure(row, result) for row in lines))
    yield from _draw_bars(lines)


def choose_headline_tone(row: Plain, result: Plain) -> page.Tone:
    """Choose the colour of a number, by chance or by its own criterion; none where there is neither."""
    value, chance = read_estimate(row.get("value")), read_estimate(row.get("chance"))
    if row.get("measure") == "residual":
        passes = get_nested_value(result, "measures.residual.total.passes")
        return "" if passes is None else "good" if passes else "warn"
    if row.get("measure") == "detection":
        return "warn" if value.value > 0 else "good"
    if row.get("side") != "risk" or not has_estimate(chance):
        return ""
    if value.low > chance.value or (row.get("measure") == _INTRUDER and _find_exposed_groups(row, result)):
        return "bad"
    return "good" if value.high < chance.value + min(chance.value, _NEAR) else "warn"


def draw_limits() -> page.Section:
    """The section on what no evaluation covers."""
    return page.Section("What this does not cover", (page.Text(LIMITS),), "limits")


def draw_skipped(result: Plain) -> page.Section | None:
    """The section on what was not measured, and why."""
    items = tuple(f"{row.get('title')}: {row.get('reason')}" for row in read_rows(result, "skipped"))
    if not items:
        return None
    return page.Section("What was not measured", (page.Notice("Nothing is known of these", "note", items),), "skipped")


def lower_first(name: object) -> str:
    """Return a name as it is written within a sentence."""
    return str(name)[:1].lower() + str(name)[1:]


def choose_number_kind(row: Plain) -> page.Kind:
    """Choose how a headline is written."""
    return "share" if row.get("kind") == "share" else "number"


def _list_measured_headlines(result: Plain) -> list[Plain]:
    return [row for row in read_rows(result, "headlines") if has_estimate(row.get("value"))]


def _find_exposed_groups(row: Plain, result: Plain) -> list[str]:
    """Return groups whose subjects the row's intruder finds more often than by guessing, however small they are.

    Intervals are widened by the number of groups (Bonferroni), or one of many would be called exposed by chance.
    """
    from allonym.stats.samples import share  # SciPy: not needed by the pages of a text or a swap

    values = read_mapping(result, f"measures.{_INTRUDER}")
    values = read_mapping(values, "released") if row.get("key") == _RELEASED else values
    groups = [g for g in read_rows(values, "groups") if has_estimate(g.get("after")) and has_estimate(g.get("chance"))]
    exposed = []
    for group in groups:
        after, chance = read_estimate(group.get("after")), read_estimate(group.get("chance"))
        if share(round(after.value * after.n), after.n, 1 - 0.05 / len(groups)).low > chance.value:
            exposed.append(str(group.get("name")))
    return exposed


def _count_unjudged(result: Plain) -> int:
    return int(get_nested_value(result, f"measures.{_INTRUDER}.unjudged") or 0)


def _write_verdict(result: Plain, lines: list[Plain]) -> Iterator[str]:
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


def _judge_safety(tones: dict[str, page.Tone], linked: list[Plain]) -> str:
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
    for row in read_rows(result, "skipped"):
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


def _draw_figure(row: Plain, result: Plain) -> page.Figure:
    note = str(row.get("note") or "")
    if has_estimate(row.get("chance")):
        note += f"; chance {_format_value(row, 'chance')}"
    before = read_estimate(row.get("before")).value if has_estimate(row.get("before")) else None
    name = f"{_SIDES.get(str(row.get('side')), '')}: {lower_first(row.get('name'))}"
    return page.Figure(
        name,
        read_estimate(row.get("value")),
        note,
        choose_number_kind(row),
        row.get("digits"),
        choose_headline_tone(row, result),
        before,
    )


def _draw_bars(lines: list[Plain]) -> Iterator[page.Bars]:
    """The numbers that lie between 0 and 1, risk first."""
    groups = []
    for row in lines:
        value = read_estimate(row.get("value"))
        if value.low < 0 or value.high > 1:
            continue
        bars = [page.Bar("anonymised", value, 0, (("interval", format_cell(value, choose_number_kind(row)).line),))]
        if has_estimate(row.get("before")):
            bars.insert(0, page.Bar("original", read_estimate(row.get("before")), 7))
        chance = read_estimate(row.get("chance")).value if has_estimate(row.get("chance")) else None
        side = _SIDES.get(str(row.get("side")), "")
        name = f"{side}: {lower_first(row.get('name'))} ({row.get('better')} is better)"
        groups.append(page.Group(name, tuple(bars), chance))
    if len(groups) > 1:
        yield page.Bars(
            "Risk and utility side by side",
            page.Axis("from 0 to 1", "number", 0, 1),
            tuple(groups),
            "chance",
            "Each number between 0 and 1 with its interval; the tick is what chance reaches.",
        )
