"""A whole evaluation: every measure that the inputs allow, of one or several anonymised versions.

A measure that cannot be taken is left out with its reason, and never becomes a number. Finished measures can be kept in
a folder, so that an interrupted evaluation goes on; the folder holds numbers, never texts.

The measures of a whole evaluation in one table: what each needs, how it is called, and its headlines.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from allonym import evaluate as package
from allonym.errors import DataError, MissingExtra, UnknownNameError, UsageError
from allonym.evaluate.pairs import Pairs, check_lengths, get_metadata_value
from allonym.files.state import State, digest_values
from allonym.intruder.panel import measure_panel
from allonym.serial import Serialisable
from allonym.train.records import Record

if TYPE_CHECKING:
    from allonym.evaluate.intruder import Knows, Reidentification

Progress = Callable[[str, int, int], None]
Key = str | Sequence[str]


class Evaluation(Serialisable):
    """The result of :func:`evaluate`.

    Attributes:
        texts: pairs.
        measures: name to plain values, as the measure's ``to_dict()`` gives them. Hidden from ``repr``.
        skipped: name to the reason why there are none.
        settings: what was asked for, without any text.
        seconds: that each measure took, where it was not taken from a folder of finished ones.
    """

    KEYS = ("texts", "headlines", "measures", "skipped=_skipped_rows", "settings", "seconds")

    texts: int
    measures: Mapping[str, Mapping[str, Any]] = field(repr=False)
    skipped: Mapping[str, str]
    settings: Mapping[str, Any]
    seconds: Mapping[str, float] = field(default_factory=dict)

    @property
    def headlines(self) -> list[dict[str, Any]]:
        """The headlines of the measures, see :data:`allonym.evaluate.study.HEADLINES`."""
        return list_headlines(self.measures)

    @property
    def _skipped_rows(self) -> list[dict[str, str]]:
        return [
            {"measure": name, "title": MEASURES[name].title, "reason": reason} for name, reason in self.skipped.items()
        ]


class Comparison(Serialisable):
    """The result of :func:`compare`: an evaluation of each version, by the version's name.

    Attributes:
        versions: in the order given.
        human: names of versions that people made.
    """

    versions: Mapping[str, Evaluation]
    human: tuple[str, ...] = ()


def evaluate(
    pairs: Pairs,
    *,
    gold: Sequence[Record] | None = None,
    labels: Key | None = None,
    subjects: Key | None = None,
    groups: Key | None = None,
    documents: Key | None = None,
    background: Sequence[tuple[str, str]] = (),
    measures: Sequence[str] | None = None,
    review_above: float | None = None,
    texts: bool = False,
    seed: int = 0,
    advance: Progress | None = None,
    state: str | Path | None = None,
) -> Evaluation:
    """Run every measure that the inputs allow.

    Args:
        pairs: the texts before and after, see :func:`~allonym.evaluate.pairs.read_pairs`.
        gold: annotated records of the originals, see :func:`allonym.train.records.read_records`.
        labels: the class of each text, or the metadata field that says it.
        subjects: whom each text is about, or the metadata field that says it; empty where that is not known.
        groups: of texts whose rates are told apart, or the metadata field that says them.
        documents: of which document each text is a part, or the metadata field that says it; None: each is one.
        background: further (text, subject) pairs that intruders know: public texts about candidates.
        measures: names of :data:`~allonym.evaluate.study.MEASURES`; None: all.
        review_above: the risk of a document, 0 to 1, above which people should look at it.
        texts: whether the values may hold words of the texts; such values are never kept in ``state``.
        seed: of everything that is drawn.
        advance: called with a measure's name, steps done, steps in all.
        state: folder of finished measures; those of the same texts, inputs and settings are not taken again.

    Raises:
        UsageError: no such measure or metadata field; DataError: texts lack what is named, or the gold is of others.
    """
    check_lengths(pairs.original, pairs.anonymised)
    names = _select_measures(measures)
    inputs = Inputs(
        pairs,
        gold=None if gold is None else match_gold_records(pairs, gold),
        labels=_read_metadata_column(pairs, labels, "labels"),
        subjects=_read_metadata_column(pairs, subjects, "subjects", partly=True),
        groups=_read_metadata_column(pairs, groups, "groups"),
        documents=_read_metadata_column(pairs, documents, "documents"),
        background=tuple((text, subject) for text, subject in background),
        review_above=review_above,
        seed=seed,
    )
    saved = None if state is None or texts else State(state)
    corpus = digest_values(pairs.ids, pairs.original, pairs.anonymised) if saved else ""
    results: dict[str, Mapping[str, Any]] = {}
    skipped: dict[str, str] = {}
    seconds: dict[str, float] = {}
    for name in names:
        measure = MEASURES[name]
        lacking = [NEEDS[need] for need in measure.needs if not getattr(inputs, need)]
        if lacking:
            skipped[name] = f"needs {' and '.join(lacking)}"
            continue
        read = {what: getattr(inputs, what) for what in (*measure.needs, *measure.uses)}
        place = f"{name}-{digest_values(name, corpus, inputs.seed, read)}" if saved else ""
        values = saved.load_value(place) if saved else None
        if values is None:
            began = time.monotonic()
            try:
                values = measure.run(inputs, texts, partial(advance, name) if advance else None)
            except (DataError, MissingExtra) as error:
                skipped[name] = str(error)
                continue
            seconds[name] = round(time.monotonic() - began, 2)
            if saved:
                values = saved.store_value(place, values)
        results[name] = values
        if advance is not None:
            advance(name, 1, 1)
    columns = {"labels": labels, "subjects": subjects, "groups": groups, "documents": documents}
    settings = {
        "measures": names,
        "seed": seed,
        **{name: key for name, key in columns.items() if isinstance(key, str)},
        "gold": gold is not None,
        "background": len(background),
        "review_above": review_above,
        "texts": texts,
    }
    return Evaluation(len(pairs), MappingProxyType(results), MappingProxyType(skipped), settings, seconds)


def compare(
    versions: Mapping[str, Pairs],
    *,
    human: Sequence[str] = (),
    advance: Progress | None = None,
    **options: Any,
) -> Comparison:
    """Evaluate several anonymised versions of one corpus.

    Args:
        versions: name to the texts before and after; the originals are the same in all.
        human: names of versions that people made: what a machine is held against (P3 section 5.4).
        advance: called with ``version: measure``, steps done, steps in all.
        options: as for :func:`evaluate`.

    Raises:
        DataError: fewer than two versions, or their originals are not the same.
        UsageError: as :func:`evaluate`, or ``human`` names no version.
    """
    if len(versions) < 2:
        raise DataError(f"two anonymised versions at least are required, got {len(versions)}")
    for name in human:
        if name not in versions:
            raise UnknownNameError("version", name, versions, "human")
    first, *others = versions.items()
    for name, pairs in others:
        if pairs.original != first[1].original:
            raise DataError(f"{name}: the originals are not those of {first[0]}; versions of one corpus are required")
    out = {name: evaluate(pairs, advance=_label_progress(advance, name), **options) for name, pairs in versions.items()}
    return Comparison(MappingProxyType(out), tuple(human))


def _select_measures(measures: Sequence[str] | None) -> list[str]:
    for name in measures or ():
        if name not in MEASURES:
            raise UnknownNameError("measure", name, MEASURES, "evaluate")
    if measures is not None and not measures:
        raise UsageError(f"evaluate: a measure at least is required; known: {', '.join(MEASURES)}")
    return [name for name in MEASURES if measures is None or name in measures]


def _read_metadata_column(pairs: Pairs, key: Key | None, name: str, *, partly: bool = False) -> tuple[str, ...] | None:
    if key is None:
        return None
    if isinstance(key, str):
        values = [get_metadata_value(meta, key) for meta in pairs.meta]
        if not (partly and any(values)):
            values = pairs.labels(key)
    else:
        values = list(key)
    if len(values) != len(pairs):
        raise DataError(f"{name}: one value for each text is required; got {len(values)} for {len(pairs)} texts")
    return tuple(values)


def _label_progress(advance: Progress | None, name: str) -> Progress | None:
    return None if advance is None else lambda measure, count, total: advance(f"{name}: {measure}", count, total)


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
        documents: of which each text is a part.
        background: further texts with their subjects, that intruders know.
        review_above: the risk of a document above which people look at it, 0 to 1; None: nobody does.
        seed: of everything that is drawn.
        done: results that other measures build on, by name; filled while they are taken.
    """

    pairs: Pairs
    gold: tuple[Record, ...] | None = field(default=None, repr=False)
    labels: tuple[str, ...] | None = field(default=None, repr=False)
    subjects: tuple[str, ...] | None = field(default=None, repr=False)
    groups: tuple[str, ...] | None = field(default=None, repr=False)
    documents: tuple[str, ...] | None = field(default=None, repr=False)
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
    return getattr(import_module(vars(package)["_homes"][name]), name)


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
    pairs = inputs.pairs
    panel = measure_panel(
        pairs.original,
        pairs.anonymised,
        inputs.subjects or (),
        groups=inputs.groups,
        documents=inputs.documents,
        background=inputs.background,
        seed=inputs.seed,
        advance=advance,
    )
    return {"panel": panel.to_dict(), **_run_intruder_once(inputs, None).to_dict(texts)}


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
    # Who anonymises texts of their own by the same means, or holds others of the release, knows what it does to words.
    intruder = _run_intruder_once(inputs, None, "anonymised") if inputs.subjects else None
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
            "Who is identified by intruders", ("subjects",), ("groups", "documents", "background"), _measure_linkage
        ),
        "document_risk": Measure(
            "Which texts are at risk", (), ("subjects", "groups", "background", "review_above"), _measure_document_risk
        ),
        "residual": Measure("What a second reading still finds", (), ("groups",), _measure_residual),
        "reader": Measure("What disturbs a reader", (), (), _make_runner("reader_scores")),
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


class Headline(NamedTuple):
    """A number of a measure.

    Attributes:
        key: names the number in JSON; name: in words.
        measure: a name of :data:`allonym.evaluate.study.MEASURES`.
        side: ``risk`` or ``utility``.
        better: ``low`` or ``high``.
        kind: ``share`` or ``number``; digits: decimals.
        note: how to read it; a path in braces stands for what the values hold there.
        value: where it is in the measure's plain values, keys with dots.
        before: where the same number of the originals is; chance: where that of guessing is. Empty: nowhere.
    """

    key: str
    measure: str
    name: str
    side: str
    better: str
    kind: str
    digits: int | None
    note: str
    value: str
    before: str
    chance: str


def _parse_headline(line: str, note: str) -> Headline:
    name, key, source, side, better, form, before, chance = (cell.strip() for cell in line.split("|"))
    (measure, _, path), (kind, _, digits) = source.partition("."), form.partition(".")
    decimals = int(digits) if digits else None
    return Headline(key, measure, name, side, better, kind, decimals, note.strip(), path, before, chance)


_HEADLINES = """
Identified at worst | linkage | linkage.panel.worst.identified | risk|low|share| panel.worst.before | panel.worst.chance
    share of texts identified by the worst of the panel: the {panel.worst.name} intruder, who {panel.worst.knows}
Missed mentions | missed | detection.leaks.all.mentions | risk | low | share | |
    share of the marked mentions that are not covered wholly
Residual risk | residual | residual.total.mean | risk | low | number.2 | |
    mean score of what a second reading proposes as missed; nobody has confirmed it
Semantic similarity | similarity | information.similarity.mean | utility | high | number.3 | | similarity.chance
    cosine of sentence vectors, before and after; long tags lower it
Words removed | removed | information.surface.removed | utility | low | share | |
    mean share of a text's words
Small words replaced | small_words | reader.lower_case | utility | low | number.1 | |
    words of small letters replaced per 100 words; most of them identify nobody
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
        values = measures.get(line.measure, {})
        numbers = {name: get_nested_value(values, getattr(line, name)) for name in ("value", "before", "chance")}
        if numbers["value"] is not None:
            parts = re.split(r"\{([^}]*)\}", line.note)
            parts[1::2] = [str(get_nested_value(values, path)) for path in parts[1::2]]
            out.append({**line._asdict(), **numbers, "note": "".join(parts)})
    return out


def get_nested_value(values: object, path: str) -> Any:
    """Return the value at a path of keys with dots; None where there is nothing."""
    for key in path.split("."):
        values = values.get(key) if isinstance(values, Mapping) else None
    return values
