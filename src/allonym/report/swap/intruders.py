"""What intruders made of the changed chunks: accuracy (P1 Table 2), McNemar (Table 3), the stages of 3.2.3."""

from __future__ import annotations

from collections.abc import Mapping

from allonym.report.numbers import write
from allonym.report.page import (
    Beside,
    Block,
    Cell,
    Column,
    Details,
    Matrix,
    Row,
    Section,
    Settings,
    Square,
    Table,
    Text,
)
from allonym.report.plots import Axis, Bar, Bars, Group
from allonym.report.swap.given import Plain, estimate, known, rows

BEFORE, AFTER = 7, 0
_TOLD = (1, 4, 3)


def intruders_section(result: Plain, *, words: bool = True) -> Section | None:
    """One part per intruder; the terms that gave a class away are text of the corpus, and may be left out."""
    attacks = rows(result, "attacks")
    if not attacks:
        return None
    protect = str((result.get("corpus") or {}).get("protect") or "class")
    blocks: list[Block] = [
        Text(
            f"An intruder reads a changed chunk and guesses its {protect}. One that learns has learnt from other "
            "chunks only, never from what it judges. The further it falls from the first bar to the second, and the "
            "nearer it comes to guessing blindly, the better the exchange protects."
        ),
        _bars(attacks),
        _accuracy(attacks),
    ]
    for attack in attacks:
        blocks += _one(attack, words)
    return Section("Intruders", tuple(blocks), "intruders")


def _bars(attacks: list[Plain]) -> Bars:
    groups = []
    stages = _stages(attacks)
    for a in attacks:
        bars = [Bar("Before", estimate(a.get("before")), BEFORE), Bar("After", estimate(a.get("after")), AFTER)]
        if known(a.get("second")):
            bars.append(Bar("After, in two guesses", estimate(a.get("second")), 5))
        told = a.get("told")
        for name, value in told.items() if isinstance(told, Mapping) else ():
            bars.append(Bar(_stage(str(name)), estimate(value), _TOLD[stages.index(str(name)) % len(_TOLD)]))
        chance = a.get("chance")
        groups.append(
            Group(str(a.get("intruder", "")), tuple(bars), chance if isinstance(chance, (int, float)) else None)
        )
    return Bars(
        "Chunks whose origin is guessed",
        Axis("Accuracy", "share", 0, 1),
        tuple(groups),
        "the most frequent class for all",
        "Whiskers are one standard deviation over the runs.",
    )


def _accuracy(attacks: list[Plain]) -> Table:
    columns = [
        Column("Intruder"),
        Column("Before", "number", 3, "Accuracy on the chunks before the exchange, mean and SD over the runs"),
        Column("After", "number", 3, "Accuracy on the same chunks after the exchange"),
        Column("Change", "number", 3),
        Column("Blind", "number", 3, "Accuracy of always guessing the most frequent class"),
    ]
    second = any(known(a.get("second")) for a in attacks)
    stages = _stages(attacks)
    columns += (
        [Column("In two guesses", "number", 3, "Right with the first or the second guess, after")] if second else []
    )
    columns += [Column(_stage(str(s)), "number", 3, "Accuracy after it was told so (P1 3.2.3)") for s in stages]
    columns.append(Column("McNemar p", "p", None, "Exact; before and after as paired answers of all runs, as in P1"))
    body = []
    for a in attacks:
        before, after = estimate(a.get("before")), estimate(a.get("after"))
        cells: list[Cell] = [str(a.get("intruder", "")), before, after, after.value - before.value, a.get("chance")]
        cells += [estimate(a.get("second"))] if second else []
        cells += [estimate((a.get("told") or {}).get(s)) for s in stages]
        body.append(Row((*cells, a.get("exact"))))
    return Table("Accuracy, mean and SD over the runs", tuple(columns), tuple(body))


def _one(attack: Plain, words: bool) -> list[Block]:
    name = str(attack.get("intruder", ""))
    blocks: list[Block] = []
    pair: list[Block] = []
    counts = attack.get("table")
    if isinstance(counts, (list, tuple)) and len(counts) == 4:
        both, lost, won, never = (int(c) for c in counts)
        total = max(1, both + lost + won + never)
        note = (
            f"{lost:,} answers were right before the exchange and are wrong afterwards; {won:,} the other way "
            f"round. {write(both / total, 'share')} of {total:,} are right both times."
        )
        pair.append(
            Matrix(
                "Right before, right after",
                ("right after", "wrong after"),
                (
                    ("right before", (Square(both, both / total), Square(lost, lost / total))),
                    ("wrong before", (Square(won, won / total), Square(never, never / total))),
                ),
                "Chunks over all runs",
                "count",
                None,
                note,
            )
        )
    tests = (("statistic", "Chi squared", "number"), ("exact", "p, exact", "p"), ("asymptotic", "p, asymptotic", "p"),
             ("continuity", "p, with continuity correction", "p"))  # fmt: skip
    facts = tuple(
        (label, write(float(attack[key]), kind))  # type: ignore[arg-type]
        for key, label, kind in tests
        if isinstance(attack.get(key), (int, float))
    )
    if facts:
        runs = estimate(attack.get("before")).n
        shared = f"over {runs:,} runs, which share chunks: too small, as in the paper" if runs > 1 else ""
        pair.append(Settings((("McNemar's test", (*facts, *((("p values", shared),) if shared else ()))),)))
    if pair:
        blocks.append(Beside(tuple(pair)))
    terms = attack.get("terms")
    if words and terms:
        columns = (Column("Term"), Column("Weight", "number", 3, "How much it spoke for the right class, summed"))
        body = tuple(Row((str(t), float(w))) for t, w in terms)
        blocks.append(Details("What gives the origin away most, after", (Table("", columns, body, shown=15),)))
    return [Section(f"Intruder: {name}", tuple(blocks))] if blocks else []


def _stages(attacks: list[Plain]) -> list[str]:
    return sorted({str(s) for a in attacks for s in (a.get("told") or {})})


def _stage(name: str) -> str:
    known_stages = {"altered": "Told: altered", "interchanged": "Told: interchanged", "swapped": "Told: interchanged"}
    return known_stages.get(name, f"Told: {name}")
