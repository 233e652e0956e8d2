"""The measures of a whole evaluation in one table: what each needs, how it is called, and its headlines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

from allonym import evaluate
from allonym.errors import DataError
from allonym.evaluate.reading import Pairs
from allonym.train.records import Record

if TYPE_CHECKING:
    from allonym.evaluate.intruder import Knows, Reidentification

Advance = Callable[[int, int], None]

NEEDS: Mapping[str, str] = MappingProxyType(
    {
        "gold": "spans that people marked in the originals (--gold)",
        "labels": "a class for each text, such as its sentiment (--labels)",
        "subjects": "whom each text is about (--subject)",
    }
)
"""What a measure may need beside the texts: the name of an input, and what that is."""


@dataclass(frozen=True, slots=True)
class Inputs:
    """The inputs of measures; those that are missing are None.

    Attributes:
        pairs: the texts before and after.
        gold: the record of each original with the spans that people marked.
        labels: the class of each text, that a classifier learns.
        subjects: whom each text is about: what an intruder wants to know.
        groups: of texts, whose rates are told apart, such as fame.
        background: further texts with their subjects, that an intruder knows.
        review_above: the risk of a document above which people look at it, 0 to 1; None: nobody does.
        seed: of everything that is drawn.
        done: results that other measures build on, by name; filled while they are taken.
    """

    pairs: Pairs
    gold: tuple[Record, ...] | None = field(default=None, repr=False)
    labels: tuple[str, ...] | None = field(default=None, repr=False)
    subjects: tuple[str, ...] | None = field(default=None, repr=False)
    groups: tuple[str, ...] | None = field(default=None, repr=False)
    background: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    review_above: float | None = None
    seed: int = 0
    done: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Measure:
    """A row of :data:`MEASURES`.

    Attributes:
        title: what it tells, in a few words.
        needs: names of :data:`NEEDS` without which it cannot be taken.
        uses: further inputs that change what it tells.
        run: takes it; gives plain values, with words of the texts only where the second argument says so.
    """

    title: str
    needs: tuple[str, ...]
    uses: tuple[str, ...]
    run: Callable[[Inputs, bool, Advance | None], Mapping[str, Any]]


def _import_measure(name: str) -> Any:
    """Import a measure of the package from its own module.

    A package that all measures need must end the run, not leave out one measure after the other.
    """
    return getattr(import_module(vars(evaluate)["_homes"][name]), name)


def _run_measure(name: str, inputs: Inputs, *columns: object, **options: object) -> Any:
    """Take a measure of the package on the pairs, with the seed of the inputs."""
    take = _import_measure(name)
    return take(inputs.pairs.original, inputs.pairs.anonymised, *columns, **{"seed": inputs.seed, **options})


def _measure_residual(inputs: Inputs, texts: bool, advance: Advance | None) -> Mapping[str, Any]:
    meta = [{"group": group} for group in inputs.groups or ()]
    pairs = inputs.pairs
    read_again = _import_measure("second_reading")
    reading = read_again(pairs.original, pairs.anonymised, ids=pairs.ids, meta=meta, advance=advance)
    return cast(Mapping[str, Any], reading.risk(by="group" if meta else "", seed=inputs.seed).to_dict())


def _measure_linkage(inputs: Inputs, texts: bool, advance: Advance | None) -> Mapping[str, Any]:
    def report_half(half: int) -> Advance | None:
        return None if advance is None else lambda count, total: advance(half * total + count, 2 * total)

    if inputs.background:
        return _run_intruder_once(inputs, advance).to_dict(texts)
    values = _run_intruder_once(inputs, report_half(0)).to_dict(texts)
    # Who anonymises texts of their own by the same means, or holds others of the release, knows what it does to words.
    return {**values, "released": _run_intruder_once(inputs, report_half(1), "anonymised").to_dict()}


def _run_intruder_once(inputs: Inputs, advance: Advance | None, knows: Knows = "original") -> Reidentification:
    """Return the result of the intruder, which is taken once."""
    name = f"linkage {knows}"
    if name not in inputs.done:
        options = {"groups": inputs.groups, "background": inputs.background or None, "ids": inputs.pairs.ids}
        inputs.done[name] = _run_measure(
            "reidentification", inputs, inputs.subjects, knows=knows, advance=advance, **options
        )
    return cast("Reidentification", inputs.done[name])


def _measure_document_risk(inputs: Inputs, texts: bool, advance: Advance | None) -> Mapping[str, Any]:
    options = {"groups": inputs.groups, "background": inputs.background or None, "review_above": inputs.review_above}
    intruder = _run_intruder_once(inputs, None) if inputs.subjects else None
    result = _run_measure("document_risk", inputs, inputs.subjects, intruder=intruder, advance=advance, **options)
    return cast(Mapping[str, Any], result.to_dict())


def _make_runner(
    name: str, *columns: str, **options: str
) -> Callable[[Inputs, bool, Advance | None], Mapping[str, Any]]:
    """Return the runner of a measure that takes inputs as they are: some as columns, some as options."""

    def run(inputs: Inputs, texts: bool, advance: Advance | None) -> Mapping[str, Any]:
        values = {option: getattr(inputs, field) for option, field in options.items()}
        result = _run_measure(name, inputs, *(getattr(inputs, c) for c in columns), advance=advance, **values)
        return cast(Mapping[str, Any], result.to_dict(texts))

    return run


def _measure_downstream(inputs: Inputs, texts: bool, advance: Advance | None) -> Mapping[str, Any]:
    targets, task = {TASK: inputs.labels}, {TASK: "classify"}
    return cast(Mapping[str, Any], _run_measure("downstream", inputs, targets, task, advance=advance).to_dict())


TASK = "label"
"""What the task of the labels is called in the values of ``downstream``."""

MEASURES: Mapping[str, Measure] = MappingProxyType(
    {
        "detection": Measure(
            "What was found, and what was missed", ("gold",), (), _make_runner("detection", gold="gold")
        ),
        "linkage": Measure(
            "Who can be found by an intruder", ("subjects",), ("groups", "background"), _measure_linkage
        ),
        "document_risk": Measure(
            "Which texts are at risk", (), ("subjects", "groups", "background", "review_above"), _measure_document_risk
        ),
        "residual": Measure("What a second reading still finds", (), ("groups",), _measure_residual),
        "information": Measure(
            "What was lost",
            (),
            ("labels", "subjects"),
            _make_runner("information_loss", "labels", groups="subjects"),
        ),
        "downstream": Measure("Whether others can learn from it", ("labels",), (), _measure_downstream),
        "syntheticity": Measure("Whether a text betrays that it was changed", (), (), _make_runner("syntheticity")),
    }
)
"""Every measure by name, in the order in which a report shows them."""


def match_gold_records(pairs: Pairs, records: Iterable[Record]) -> tuple[Record, ...]:
    """Return the record of each original, matched by the text itself.

    Raises:
        DataError: an original has no record.
    """
    by_text = {record["text"]: record for record in records}
    lacking = [i for i, text in enumerate(pairs.original, 1) if text not in by_text]
    if lacking:
        raise DataError(
            f"gold: {len(lacking)} of {len(pairs)} originals have no record with the same text, the first is number "
            f"{lacking[0]}"
        )
    return tuple(by_text[text] for text in pairs.original)


@dataclass(frozen=True, slots=True)
class Headline:
    """A number of a measure.

    Attributes:
        measure: a name of :data:`allonym.evaluate.measures.MEASURES`.
        key: names the number in JSON; name: in words.
        side: ``risk`` or ``utility``.
        path: where it is in the measure's plain values, keys with dots.
        better: ``low`` or ``high``.
        kind: ``share`` or ``number``; digits: decimals.
        before: where the same number of the originals is; chance: where that of guessing is. Empty: nowhere.
        note: how to read it.
    """

    measure: str
    key: str
    name: str
    side: str
    path: str
    better: str
    kind: str
    digits: int | None
    before: str
    chance: str
    note: str


def _parse_headline(line: str, note: str) -> Headline:
    name, key, source, side, better, form, before, chance = (cell.strip() for cell in line.split("|"))
    (measure, _, path), (kind, _, digits) = source.partition("."), form.partition(".")
    decimals = int(digits) if digits else None
    return Headline(measure, key, name, side, path, better, kind, decimals, before, chance, note.strip())


_HEADLINES = """
Found by an intruder | linkage | linkage.all.after | risk | low | share | all.before | all.chance
    share of texts whose subject an intruder names who knows other texts about the same subjects
Found by one who has other released texts | released | linkage.released.all.after | risk|low|share|| released.all.chance
    the same by an intruder who has learnt from the anonymised texts of others about the same subjects
Missed mentions | missed | detection.leaks.all.mentions | risk | low | share | |
    share of the marked mentions that are not covered wholly
Residual risk | residual | residual.total.mean | risk | low | number.2 | |
    mean score of what a second reading proposes as missed; nobody has confirmed it
Semantic similarity | similarity | information.similarity.mean | utility | high | number.3 | | similarity.chance
    cosine of sentence vectors, before and after; long tags lower it
Words removed | removed | information.surface.removed | utility | low | share | |
    mean share of a text's words
Accuracy lost | loss | information.utility.loss | utility | low | share | |
    of a classifier that learns the labels, before minus after
Training on it, F1 | downstream | downstream.tasks.label.scores.f1.difference | utility | high | number.3 | |
    macro F1 on originals after learning from anonymised texts, less that after learning from originals
Recognised as changed | syntheticity | syntheticity.f1 | utility | low | number.2 | |
    F1 of a classifier; 0.5 is chance
""".strip().split("\n")
"""Per headline: name, key and where it is, side, better, kind and digits, before, chance; then its note."""

HEADLINES = tuple(map(_parse_headline, _HEADLINES[::2], _HEADLINES[1::2]))
"""All numbers that may stand in the head of a report, risk first."""


def list_headlines(measures: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """List the headlines that a set of measures has, as plain values in the order of :data:`HEADLINES`.

    Args:
        measures: name to plain values.
    """
    out = []
    for line in HEADLINES:
        value = get_nested_value(measures.get(line.measure, {}), line.path)
        if value is None:
            continue
        names = ("key", "measure", "name", "side", "better", "kind", "digits", "note")
        row: dict[str, Any] = {name: getattr(line, name) for name in names} | {"value": value}
        for name in ("before", "chance"):
            path = getattr(line, name)
            row[name] = get_nested_value(measures[line.measure], path) if path else None
        out.append(row)
    return out


def get_nested_value(values: object, path: str) -> Any:
    """Return the value at a path of keys with dots; None where there is nothing."""
    for key in path.split("."):
        values = values.get(key) if isinstance(values, Mapping) else None
    return values
