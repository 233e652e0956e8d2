"""Intruders on the changed chunks: accuracy (P1 Table 2), McNemar (Table 3), the stages of 3.2.3."""

from __future__ import annotations

from collections.abc import Iterator

from allonym.report.numbers import format_number
from allonym.report.page import Beside, Block, Matrix, Section, Settings, Square
from allonym.report.plots import Axis, Bar, Bars, Group
from allonym.report.sections import Folded, Paragraph, ValueTable
from allonym.report.values import Plain, fill_template, has_estimate, list_rows, read_estimate, read_part

BEFORE, AFTER, SECOND = 7, 0, 5
_STAGE_SLOTS = (1, 4, 3)
_LEAD = (
    "An intruder reads a changed chunk and guesses its {class}. One that learns has learnt from other chunks "
    "only, never from what it judges. The further it falls from the first bar to the second, and the nearer it comes "
    "to guessing blindly, the better the exchange protects."
)
_ACCURACY = """
    Intruder       | intruder
    Before         | before   | number.3 | Accuracy on the chunks before the exchange, mean and SD over the runs
    After          | after    | number.3 | Accuracy on the same chunks after the exchange
    Change         | change   | number.3
    Blind          | chance   | number.3 | Accuracy of always guessing the most frequent class
"""
_SECOND = "In two guesses | second | number.3 | Right with the first or the second guess, after\n"
_TABLE_NOTE = (
    "{lost:,} answers were right before the exchange and are wrong afterwards; {won:,} the other way round. "
    "{share:share} of {total:,} are right both times."
)
_TESTS = {
    "statistic": ("Chi squared", "number"),
    "exact": ("p, exact", "p"),
    "asymptotic": ("p, asymptotic", "p"),
    "continuity": ("p, with continuity correction", "p"),
}
_TERMS = """
    Term   | 0
    Weight | 1 | number.3 | How much it spoke for the right class, summed
"""


def _list_stages(result: Plain) -> list[str]:
    return sorted({str(stage) for attack in list_rows(result, "attacks") for stage in read_part(attack, "told")})


def _name_stage(stage: str) -> str:
    return f"Told: {'interchanged' if stage == 'swapped' else stage}"


def _draw_bars(result: Plain) -> Iterator[Block]:
    groups = []
    slots = {stage: _STAGE_SLOTS[i % len(_STAGE_SLOTS)] for i, stage in enumerate(_list_stages(result))}
    for attack in list_rows(result, "attacks"):
        bars = [
            Bar("Before", read_estimate(attack.get("before")), BEFORE),
            Bar("After", read_estimate(attack.get("after")), AFTER),
        ]
        if has_estimate(attack.get("second")):
            bars.append(Bar("After, in two guesses", read_estimate(attack.get("second")), SECOND))
        stages = read_part(attack, "told").items()
        bars += [Bar(_name_stage(str(stage)), read_estimate(value), slots[str(stage)]) for stage, value in stages]
        chance = attack.get("chance") if isinstance(attack.get("chance"), (int, float)) else None
        groups.append(Group(str(attack.get("intruder", "")), tuple(bars), chance))
    yield Bars(
        "Chunks whose origin is guessed",
        Axis("Accuracy", "share", 0, 1),
        tuple(groups),
        "the most frequent class for all",
        "Whiskers are one standard deviation over the runs.",
    )


def _draw_accuracy(result: Plain) -> Iterator[Block]:
    attacks = list_rows(result, "attacks")
    stages = (
        f"{_name_stage(stage)} | told.{stage} | number.3 | Accuracy after it was told so (P1 3.2.3)\n"
        for stage in _list_stages(result)
    )
    second = _SECOND if any(has_estimate(attack.get("second")) for attack in attacks) else ""
    p = "McNemar p | exact | p | Exact; before and after as paired answers of all runs, as in P1"
    lines = [
        {**a, "change": read_estimate(a.get("after")).value - read_estimate(a.get("before")).value} for a in attacks
    ]
    fields = _ACCURACY + second + "".join(stages) + p
    yield ValueTable("Accuracy, mean and SD over the runs", lambda _: lines, fields).draw(result)


def _draw_attack(attack: Plain, words: bool) -> Iterator[Block]:
    if pair := (*_draw_outcomes(attack), *_draw_tests(attack)):
        yield Beside(pair)
    if words and attack.get("terms"):
        table = ValueTable("", "terms", _TERMS, shown=15)
        yield Folded("What gives the origin away most, after", (table,)).draw(attack)


def _draw_outcomes(attack: Plain) -> Iterator[Block]:
    counts = attack.get("table")
    if not isinstance(counts, (list, tuple)) or len(counts) != 4:
        return
    both, lost, won, never = (int(count) for count in counts)
    total = max(1, both + lost + won + never)
    lines = (
        ("right before", (Square(both, both / total), Square(lost, lost / total))),
        ("wrong before", (Square(won, won / total), Square(never, never / total))),
    )
    note = fill_template(_TABLE_NOTE, {"lost": lost, "won": won, "total": total, "share": both / total})
    columns = ("right after", "wrong after")
    yield Matrix("Right before, right after", columns, lines, "Chunks over all runs", "count", None, note)


def _draw_tests(attack: Plain) -> Iterator[Block]:
    facts = [
        (label, format_number(float(attack[key]), kind))  # type: ignore[arg-type]
        for key, (label, kind) in _TESTS.items()
        if isinstance(attack.get(key), (int, float))
    ]
    if facts:
        runs = read_estimate(attack.get("before")).n
        if runs > 1:
            facts.append(("p values", f"over {runs:,} runs, which share chunks: too small, as in the paper"))
        yield Settings((("McNemar's test", tuple(facts)),))


def _draw_attacks(result: Plain, words: bool) -> Iterator[Block]:
    for attack in list_rows(result, "attacks"):
        if blocks := tuple(_draw_attack(attack, words)):
            yield Section(f"Intruder: {attack.get('intruder', '')}", blocks)


def intruders_section(result: Plain, *, texts: bool = True) -> Section | None:
    """The section of all intruders; terms that gave a class away are text of the corpus, and may be left out."""
    if not list_rows(result, "attacks"):
        return None
    lead = Paragraph(_LEAD).draw({"class": read_part(result, "corpus").get("protect") or "class"})
    blocks = (lead, *_draw_bars(result), *_draw_accuracy(result), *_draw_attacks(result, texts))
    return Section("Intruders", blocks, "intruders")
