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
from allonym.report.evaluate.utility import (
    downstream_section,
    information_section,
    reader_section,
    syntheticity_section,
)
from allonym.report.panel import list_panel_groups
from allonym.report.sections import SectionSpec
from allonym.report.values import (
    NOTHING,
    Plain,
    Values,
    flatten_settings,
    format_cell,
    format_number,
    has_estimate,
    list_seconds_facts,
    read_estimate,
)
from allonym.stats import Estimate

SECTIONS: Mapping[str, SectionSpec] = {
    "detection": detection_section,
    "linkage": linkage_section,
    "document_risk": document_risk_section,
    "residual": residual_section,
    "reader": reader_section,
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
    values = Values(result)
    sections = [*_draw_measures(values, texts), draw_skipped(values), _draw_settings(values), draw_evaluation_limits()]
    return _make_page(result, "Evaluation", draw_verdict(values), sections, texts)


def compare_page(result: Plain, *, texts: bool = False) -> page.Page:
    """The report of several anonymised versions of one corpus.

    Args:
        result: plain values, as ``Comparison.to_dict()`` gives them.
        texts: whether words of the texts may show, where the values hold them.
    """
    versions = {name: Values(version) for name, version in Values(result).get_part("versions").items()}
    human = {str(name) for name in result.get("human") or ()}
    headlines = _list_headlines(versions)
    charts = tuple(_draw_risk_utility_charts(versions, headlines))
    multiples = (page.Multiples("Risk against utility", charts),) if len(charts) > 1 else charts
    table = _draw_versions_table(versions, headlines, human)
    sections: list[page.Section | None] = [page.Section("Side by side", (*multiples, table), "versions")]
    for number, (name, version) in enumerate(versions.items(), 1):
        parts = (section for section in (*_draw_measures(version, texts), draw_skipped(version)) if section)
        # Sections of the same measure would share an anchor.
        numbered = (replace(s, anchor=f"{s.anchor}-{number}") if s.anchor else s for s in parts)
        sections.append(page.Section(name, (*draw_verdict(version), *numbered), f"version-{number}"))
    sections += [*(_draw_settings(version) for version in list(versions.values())[:1]), draw_evaluation_limits()]
    lead = page.Text(" ".join(_describe_best_versions(versions, headlines, human)), "lead")
    return _make_page(result, "Versions compared", [lead], sections, texts)


def _make_page(
    result: Plain, title: str, lead: Iterable[page.Block], sections: Iterable[page.Section | None], texts: bool
) -> page.Page:
    blocks = (*lead, *([page.Notice(SENSITIVE, "sensitive")] if texts else []))
    drawn = tuple(section for section in sections if section is not None)
    return page.Page(str(result.get("title") or title), drawn, str(result.get("created") or ""), blocks)


def _draw_measures(result: Values, texts: bool) -> Iterator[page.Section | None]:
    measures = result.get_part("measures")
    return (draw(measures[name], texts=texts) for name, draw in SECTIONS.items() if name in measures)


def _draw_settings(result: Values) -> page.Section | None:
    settings, seconds = flatten_settings(result.get_part("settings")), list_seconds_facts(result.get_part("seconds"))
    groups = tuple((name, facts) for name, facts in (("", settings), ("Seconds", seconds)) if facts)
    return page.Section("Settings", (page.Settings(groups),), "settings") if groups else None


def _list_headlines(versions: Mapping[str, Values]) -> list[Values]:
    """Every number that a version has, once, in the order of the first that has it; risk first."""
    headlines: dict[str, Values] = {}
    for version in versions.values():
        for row in version.list_rows("headlines"):
            if row.has_estimate("value"):
                headlines.setdefault(str(row.get("key")), row)
    return sorted(headlines.values(), key=lambda row: row.get("side") != "risk")


def _find_headline_value(version: Values, headline: Values) -> Estimate:
    same = (row.get("value") for row in version.list_rows("headlines") if row.get("key") == headline.get("key"))
    return read_estimate(next(same, None))


def _draw_versions_table(versions: Mapping[str, Values], headlines: list[Values], human: set[str]) -> page.Table:
    columns = [page.Column("", hint="which of them"), page.Column("made by")]
    worst = {name: version.get_value(f"measures.{_INTRUDER}.panel.worst.name") for name, version in versions.items()}
    if any(worst.values()):
        columns.append(page.Column("worst intruder", hint="of the panel; the share identified is its"))
    for row in headlines:
        hint = f"{row.get('note')} ({row.get('side')}; {row.get('better')} is better)"
        columns.append(page.Column(str(row.get("name")), choose_number_kind(row), row.get("digits"), hint))
    body = []
    if any(row.has_estimate("before") for row in headlines):
        cells = (row.get_estimate("before") if row.has_estimate("before") else None for row in headlines)
        body.append(page.Row(("original texts", "", *([""] if any(worst.values()) else []), *cells)))
    for name, version in versions.items():
        values = (_find_headline_value(version, row) for row in headlines)
        intruder = [str(worst[name] or "")] if any(worst.values()) else []
        body.append(page.Row((name, page.Tag("people" if name in human else "machine"), *intruder, *values)))
    note = "Intervals that overlap do not tell two versions apart; all were measured on the same texts with one seed."
    return page.Table("Versions", tuple(columns), tuple(body), note)


def _draw_risk_utility_charts(versions: Mapping[str, Values], headlines: list[Values]) -> Iterator[page.Chart]:
    risks = [row for row in headlines if row.get("side") == "risk"]
    utilities = [row for row in headlines if row.get("side") == "utility"]
    for risk, utility in product(risks, utilities[:1]):
        series = []
        for slot, (name, version) in enumerate(versions.items()):
            x, y = _find_headline_value(version, utility), _find_headline_value(version, risk)
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


def _describe_best_versions(versions: Mapping[str, Values], headlines: list[Values], human: set[str]) -> Iterator[str]:
    yield f"{len(versions)} anonymised versions of the same texts."
    for row in headlines:
        values = {name: _find_headline_value(version, row) for name, version in versions.items()}
        sign = 1 if row.get("better") == "low" else -1
        order = sorted(
            filter(lambda name: has_estimate(values[name]), values), key=lambda name: sign * values[name].value
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
_MEANING = "Before and after are alike in meaning to {value_text} of 1 (unrelated texts: {chance_text})."
_SMALL = 0.02  # loss of accuracy that an interval must rule out, for it to be called none
_NEAR = 0.1  # as much above chance an interval may reach at most, and twice chance, to be called no more than guessing


def draw_verdict(result: Values) -> Iterator[page.Block]:
    """A paragraph, warnings, key figures, and risk and utility in one chart.

    Args:
        result: plain values of an evaluation.
    """
    lines = _list_measured_headlines(result)
    yield page.Text(" ".join(_write_verdict_sentences(result, lines)), "lead")
    if warnings := tuple(_list_warnings(result, lines)):
        yield page.Notice("What speaks against sharing, or is not known", "warning", warnings)
    if lines:
        yield page.Figures(tuple(map(_make_headline_figure, lines)))
    yield from _draw_headline_bars(lines)


def choose_headline_tone(row: Values, result: Values) -> page.Tone:
    """Choose the colour of a number, by chance or by its own criterion; none where there is neither."""
    value, chance = row.get_estimate("value"), row.get_estimate("chance")
    if row.get("measure") == "residual":
        is_over_limit = result.get_value("measures.residual.total.passes") is False
        return "warn" if is_over_limit else ""  # nobody has confirmed that nothing is left
    if row.get("measure") == "detection":
        return "warn" if value.value > 0 else "good"
    if row.get("side") != "risk" or not has_estimate(chance):
        return ""
    if value.low > chance.value or (row.get("measure") == _INTRUDER and _find_exposed_groups(result)):
        return "bad"
    return "good" if value.high < chance.value + min(chance.value, _NEAR) else "warn"


def describe_intruders(result: Values) -> Iterator[str]:
    """Yield sentences on what the worst intruder of an evaluation finds; none where no intruder was tried."""
    lines = [row for row in _list_measured_headlines(result) if row.get("measure") == _INTRUDER]
    if lines:
        yield _describe_safety([row["tone"] for row in lines], [row["tone"] for row in lines])
        for row in lines:
            yield row.fill_template(_write_linkage_template(result))


def draw_evaluation_limits() -> page.Section:
    """The section on what no evaluation covers."""
    return page.Section("What this does not cover", (page.Text(LIMITS),), "limits")


def draw_skipped(result: Values) -> page.Section | None:
    """The section on what was not measured, and why."""
    items = tuple(f"{row.get('title')}: {row.get('reason')}" for row in result.list_rows("skipped"))
    if not items:
        return None
    return page.Section("What was not measured", (page.Notice("Nothing is known of these", "note", items),), "skipped")


def lower_first(name: object) -> str:
    """Return a name as it is written within a sentence."""
    return str(name)[:1].lower() + str(name)[1:]


def choose_number_kind(row: Values) -> page.Kind:
    """Choose how a headline is written."""
    return "share" if row.get("kind") == "share" else "number"


def _list_measured_headlines(result: Values) -> list[Values]:
    """List the numbers that were measured, with their colours, and with texts as sentences and charts need them."""
    lines = []
    for row in result.list_rows("headlines"):
        if row.has_estimate("value"):
            texts = {f"{name}_text": _format_headline_value(row, name) for name in ("value", "chance", "before")}
            label = f"{_SIDES.get(str(row.get('side')), '')}: {lower_first(row.get('name'))}"
            lines.append(Values({**row, **texts, "label": label, "tone": choose_headline_tone(row, result)}))
    return lines


def _format_headline_value(row: Values, key: str) -> str:
    number = row.find_number(key)
    return NOTHING if number is None else format_number(number, choose_number_kind(row), row.get("digits"))


def _find_exposed_groups(result: Values) -> list[str]:
    """Return groups whose subjects the worst intruder finds more often than by guessing, however small they are.

    Intervals are widened by the number of groups (Bonferroni), or one of many would be called exposed by chance.
    """
    from allonym.stats.samples import share  # SciPy: not needed by the pages of a text or a swap

    groups = list_panel_groups(result.get_part(f"measures.{_INTRUDER}.panel"))
    exposed = []
    for group in groups:
        after, chance = group.get_estimate("identified"), group.get_estimate("chance")
        if share(round(after.value * after.n), after.n, 1 - 0.05 / len(groups)).low > chance.value:
            exposed.append(str(group.get("name")))
    return exposed


def _count_unjudged(result: Values) -> int:
    return int(result.get_value(f"measures.{_INTRUDER}.panel.unjudged") or 0)


def _write_verdict_sentences(result: Values, lines: list[Values]) -> Iterator[str]:
    risks = {str(row.get("key")): row for row in lines if row.get("side") == "risk"}
    linked = [row for row in risks.values() if row.get("measure") == _INTRUDER]
    yield f"{int(result.get('texts') or 0):,} texts, before and after."
    yield _describe_safety([row["tone"] for row in risks.values()], [row["tone"] for row in linked])
    exposed = _find_exposed_groups(result)
    if exposed and not any(_is_above_chance(row) for row in linked):
        yield f"Over all texts it is no more than by guessing, but it is more in the group {', '.join(exposed)}."
    if risks.get("residual", Values()).get("tone") == "warn":
        yield "A second reading proposes more left-overs than the limit allows; a person must look at them."
    if risks.get("missed", Values()).get("tone") == "warn":
        yield risks["missed"].fill_template("Of what people marked, {value_text} still stands.")
    for row in linked:
        yield row.fill_template(_write_linkage_template(result))
    for row in lines:
        if row.get("key") == "similarity":
            yield row.fill_template(_MEANING)
        if row.get("key") == "loss":
            yield _describe_classifier_loss(row)


def _describe_safety(risk_tones: list[page.Tone], linkage_tones: list[page.Tone]) -> str:
    if not risk_tones:
        return "No measure of risk could be taken: whether they are safe to share is not known."
    if "bad" in risk_tones:
        return "They are not safe to share with anybody who knows, or can find, what the measures below were given."
    if not linkage_tones:
        return "No intruder has tried to link them to anyone, so whether they are safe to share is not known."
    if "warn" in linkage_tones:
        return "Whether they are safe to share is open: too few texts to tell what intruders find from chance."
    return "No intruder that was tried finds more than by guessing. That is evidence, not proof."


def _write_linkage_template(result: Values) -> str:
    worst = result.get_part(f"measures.{_INTRUDER}.panel.worst")
    unjudged = _count_unjudged(result)
    texts = f"the {int(result.get('texts') or 0) - unjudged:,} that could be tried" if unjudged else "them"
    return (
        f"The worst intruder of the panel identifies the subject of {{value_text}} of {texts} ({{before_text}} before; "
        f"by guessing {{chance_text}}): the {worst.get('name')} one, who {worst.get('knows')}."
    )


def _describe_classifier_loss(row: Values) -> str:
    loss = row.get_estimate("value")
    value, gain, most = (format_number(100 * number, "number", 1) for number in (loss.value, -loss.low, loss.high))
    if loss.low > 0:
        return f"A classifier that learns from them loses {value} points."
    if loss.high < _SMALL:
        return "A classifier learns from them no worse than before, as far as can be told."
    return f"Whether a classifier learns worse from them is open: from {gain} points better to {most} worse."


def _list_warnings(result: Values, lines: list[Values]) -> Iterator[str]:
    for row in lines:
        if row.get("side") == "risk" and row["tone"] in ("bad", "warn"):
            chance = ", by guessing {chance_text}" if row.has_estimate("chance") else ""
            yield row.fill_template(f"{{name}}: {{value_text}}{chance}: {{note}}.")
    if unjudged := _count_unjudged(result):
        yield f"No intruder was tried on {unjudged:,} texts: nothing else is known about their subjects."
    for row in result.list_rows("skipped"):
        yield f"Not measured: {lower_first(row.get('title'))} ({row.get('reason')})."


def _is_above_chance(row: Values) -> bool:
    return row.has_estimate("chance") and row.get_estimate("value").low > row.get_estimate("chance").value


def _make_headline_figure(row: Values) -> page.Figure:
    note = str(row.get("note") or "") + (f"; chance {row['chance_text']}" if row.has_estimate("chance") else "")
    value, kind, before = row.get_estimate("value"), choose_number_kind(row), row.find_number("before")
    return page.Figure(row["label"], value, note, kind, row.get("digits"), row["tone"], before)


def _draw_headline_bars(lines: list[Values]) -> Iterator[page.Bars]:
    """The numbers that lie between 0 and 1, risk first."""
    groups = []
    for row in lines:
        value = row.get_estimate("value")
        if value.low < 0 or value.high > 1:
            continue
        bars = [page.Bar("anonymised", value, 0, (("interval", format_cell(value, choose_number_kind(row)).line),))]
        if row.has_estimate("before"):
            bars.insert(0, page.Bar("original", row.get_estimate("before"), 7))
        name = row.fill_template("{label} ({better} is better)")
        groups.append(page.Group(name, tuple(bars), row.find_number("chance")))
    if len(groups) > 1:
        yield page.Bars(
            "Risk and utility side by side",
            page.Axis("from 0 to 1", "number", 0, 1),
            tuple(groups),
            "chance",
            "Each number between 0 and 1 with its interval; the tick is what chance reaches.",
        )
