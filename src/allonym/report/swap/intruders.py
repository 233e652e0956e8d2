"""The changed chunks: intruders on them (P1 Tables 2 and 3, 3.2.3), and their texts before and after."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from allonym.report import page
from allonym.report.panel import draw_panel
from allonym.report.sections import Folded, Paragraph, SectionSpec, ValueTable, Warn, draw_parts
from allonym.report.values import Plain, Values, format_number, read_estimate

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
_TESTS = (
    ("Chi squared", "{statistic:number}"),
    ("p, exact", "{exact:p}"),
    ("p, asymptotic", "{asymptotic:p}"),
    ("p, with continuity correction", "{continuity:p}"),
)
_TERMS = """
    Term   | 0
    Weight | 1 | number.3 | How much it spoke for the right class, summed
"""


def _list_told_stages(result: Values) -> list[str]:
    return sorted({str(stage) for attack in result.list_rows("attacks") for stage in attack.get_part("told")})


def _name_told_stage(stage: str) -> str:
    return f"Told: {'interchanged' if stage == 'swapped' else stage}"


def _draw_accuracy_bars(result: Values) -> Iterator[page.Block]:
    groups = []
    slots = {stage: _STAGE_SLOTS[i % len(_STAGE_SLOTS)] for i, stage in enumerate(_list_told_stages(result))}
    for attack in result.list_rows("attacks"):
        bars = [
            page.Bar("Before", attack.get_estimate("before"), BEFORE),
            page.Bar("After", attack.get_estimate("after"), AFTER),
        ]
        if attack.has_estimate("second"):
            bars.append(page.Bar("After, in two guesses", attack.get_estimate("second"), SECOND))
        stages = attack.get_part("told").items()
        bars += [
            page.Bar(_name_told_stage(str(stage)), read_estimate(value), slots[str(stage)]) for stage, value in stages
        ]
        groups.append(page.Group(str(attack.get("intruder", "")), tuple(bars), attack.find_number("chance")))
    yield page.Bars(
        "Chunks whose origin is guessed",
        page.Axis("Accuracy", "share", 0, 1),
        tuple(groups),
        "the most frequent class for all",
        "Whiskers are one standard deviation over the runs.",
    )


def _specify_accuracy_columns(result: Values) -> str:
    """Return the columns of the table of accuracies, as :func:`parse_fields` reads them."""
    stages = (
        f"{_name_told_stage(stage)} | told.{stage} | number.3 | Accuracy after it was told so\n"
        for stage in _list_told_stages(result)
    )
    second = _SECOND if any(attack.has_estimate("second") for attack in result.list_rows("attacks")) else ""
    p = "McNemar p | exact | p | Exact; before and after as paired answers of all runs"
    return _ACCURACY + second + "".join(stages) + p


def _list_accuracies(result: Values) -> list[Plain]:
    def compute_change(attack: Values) -> float:
        return attack.get_estimate("after").value - attack.get_estimate("before").value

    return [{**attack, "change": compute_change(attack)} for attack in result.list_rows("attacks")]


def _draw_outcome_matrix(attack: Values) -> page.Matrix:
    both, lost, won, never = (int(count) for count in attack["table"])
    total = max(1, both + lost + won + never)
    lines = (
        ("right before", (page.Square(both, both / total), page.Square(lost, lost / total))),
        ("wrong before", (page.Square(won, won / total), page.Square(never, never / total))),
    )
    note = Values(lost=lost, won=won, total=total, share=both / total).fill_template(_TABLE_NOTE)
    columns = ("right after", "wrong after")
    return page.Matrix("Right before, right after", columns, lines, "Chunks over all runs", "count", None, note)


def _draw_mcnemar_tests(attack: Values) -> page.Settings:
    facts = [(label, attack.fill_template(template)) for label, template in _TESTS]
    if (runs := attack.get_estimate("before").n) > 1:
        facts.append(("p values", f"over {runs:,} runs, which share chunks: too small, as in the paper"))
    return page.Settings((("McNemar's test", tuple(facts)),))


def _draw_attacks(result: Values) -> Iterator[page.Block]:
    for attack in result.list_rows("attacks"):
        beside = page.Beside((_draw_outcome_matrix(attack), _draw_mcnemar_tests(attack)))
        blocks = (beside, *draw_parts((_ATTACK_TERMS,), attack, texts=True))
        yield page.Section(f"Intruder: {attack['intruder']}", blocks)


_ATTACK_TERMS = Folded(
    "What gives the origin away most, after", (ValueTable("", "terms", _TERMS, shown=15),), when="terms"
)
intruders_section = SectionSpec(
    "Intruders",
    "intruders",
    "attacks",
    (
        draw_panel,
        Paragraph(_LEAD),
        _draw_accuracy_bars,
        ValueTable("Accuracy, mean and SD over the runs", _list_accuracies, _specify_accuracy_columns),
        _draw_attacks,
    ),
    lambda result: {"class": result.get_value("corpus.protect") or "class"},
)

SENSITIVE = (
    "This report shows texts: the corpus after direct identifiers were suppressed, and before anything was "
    "exchanged. It is as sensitive as that. Do not pass this file on with the release."
)
_PASSAGES_LEAD = (
    "Every changed chunk of the release as written. Words that were put in are marked; point at one to see what it is "
    "and where it comes from."
)
_OTHER_SLOT = 7


def _list_outcomes_with_texts(result: Values) -> list[Values]:
    return [outcome for outcome in result.list_rows("outcomes") if "before" in outcome and "after" in outcome]


def _draw_passage_reader(result: Values) -> Iterator[page.Block]:
    outcomes = _list_outcomes_with_texts(result)
    shown = _select_outcomes_to_show(outcomes, result["passages"])
    categories = sorted({mark[2] for outcome in shown for mark in outcome["marks"] if mark[3] == "swap"})
    slots = {category: slot for slot, category in enumerate(categories)}
    note = f"{len(shown):,} of {len(outcomes):,} changed chunks are shown: those still recognised first, then evenly."
    passages = tuple(_draw_passage(outcome, slots) for outcome in shown)
    keys = tuple(page.Key(category, slot) for category, slot in slots.items())
    yield page.Reader("Before and after", passages, keys, note if len(shown) < len(outcomes) else "")


def _select_outcomes_to_show(outcomes: list[Values], most: int) -> list[Values]:
    if len(outcomes) <= most:
        return outcomes
    guesses = (outcome["guessed"].values() for outcome in outcomes)
    recognised = [i for i, pairs in enumerate(guesses) if any(right_after for _, right_after in pairs)][:most]
    rest = [i for i in range(len(outcomes)) if i not in set(recognised)]
    missing = most - len(recognised)
    spread = [rest[k * len(rest) // missing] for k in range(missing)]
    return [outcomes[i] for i in sorted({*recognised, *spread})]


def _draw_passage(outcome: Values, slots: Mapping[str, int]) -> page.Passage:
    document, cluster, partners, marks = (outcome[name] for name in ("document", "cluster", "partners", "marks"))
    guesses: list[tuple[str, Sequence[bool]]] = sorted(outcome["guessed"].items())
    facts: list[tuple[str, page.Cell]] = []
    if partners:
        facts.append((f"Entities from chunk{'s' * (len(partners) > 1)}", ", ".join(map(str, partners))))
    for name, label, digits in (("cosine", "Cosine", 3), ("distance", "D, nats", 2)):
        facts.append((label, format_number(outcome[name], "number", digits)))
    facts.append(("Replaced", len(marks)))
    traits = {"Document": str(document + 1), "Cluster": str(cluster + 1)}
    traits |= {f"Intruder {name}": _describe_guess(*pair) for name, pair in guesses}
    traits["Replaced by"] = _describe_replacement_kinds({mark[3] for mark in marks})
    tags = [page.Tag(f"document {document + 1}"), page.Tag(f"cluster {cluster + 1}")]
    tags += [page.Tag(f"{name}: {_describe_guess(*pair)}", _colour_guess(*pair)) for name, pair in guesses]
    return page.Passage(
        f"Chunk {outcome['chunk']}",
        outcome["before"],
        outcome["after"],
        tuple(_draw_marks(outcome["marks_before"], slots, partners, after=False)),
        tuple(_draw_marks(marks, slots, partners, after=True)),
        tuple(tags),
        tuple(facts),
        traits,
        {"cosine": outcome["cosine"], "D": outcome["distance"]},
    )


def _draw_marks(
    marks: Sequence[Sequence[Any]], slots: Mapping[str, int], partners: list[int], *, after: bool
) -> Iterator[page.Mark]:
    for start, end, category, kind in marks:
        if kind != "swap":
            label = f"{category}\n{'put in' if after else 'fate'}: {kind}"
            yield page.Mark(start, end, label, _OTHER_SLOT, "other")
            continue
        label = f"{category}\n{'put in: exchanged' if after else 'fate: moves to another chunk'}"
        if after and partners:
            label += f"\nfrom chunk{'s' * (len(partners) > 1)}: {', '.join(map(str, partners))}"
        yield page.Mark(start, end, label, slots.get(category, _OTHER_SLOT), "swap")


def _describe_guess(right_before: bool, right_after: bool) -> str:
    if right_after:
        return "still right" if right_before else "right only after"
    return "no longer right" if right_before else "never right"


def _colour_guess(right_before: bool, right_after: bool) -> page.Tone:
    return "bad" if right_after else "good" if right_before else ""


def _describe_replacement_kinds(kinds: set[str]) -> str:
    ways = ["exchange"] * ("swap" in kinds) + ["fall-back"] * bool(kinds - {"swap"})
    return " and ".join(ways) or "nothing"


passages_section = SectionSpec(
    "Texts before and after",
    "texts",
    _list_outcomes_with_texts,
    (Warn(SENSITIVE, "sensitive"), Paragraph(_PASSAGES_LEAD), _draw_passage_reader),
)
"""Up to ``passages`` of the result's outcomes; where there are more, those that are still recognised come first."""
