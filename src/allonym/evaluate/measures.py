"""The measures of a whole evaluation in one table: what each needs, and how it is called."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

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


def _measure_detection(inputs: Inputs, texts: bool, advance: Advance | None) -> Mapping[str, Any]:
    from allonym.evaluate.detection import detection

    assert inputs.gold is not None
    pairs = inputs.pairs
    result = detection(pairs.original, pairs.anonymised, gold=inputs.gold, seed=inputs.seed, advance=advance)
    return result.to_dict()


def _measure_residual(inputs: Inputs, texts: bool, advance: Advance | None) -> Mapping[str, Any]:
    from allonym.evaluate.second_reading import second_reading

    pairs = inputs.pairs
    groups: Sequence[str] = inputs.groups or ()
    meta = [{_GROUP: g} for g in groups]
    read = second_reading(pairs.original, pairs.anonymised, ids=pairs.ids, meta=meta, advance=advance)
    return read.risk(by=_GROUP if groups else "", seed=inputs.seed).to_dict()


def _measure_information(inputs: Inputs, texts: bool, advance: Advance | None) -> Mapping[str, Any]:
    from allonym.evaluate.information import information_loss

    pairs = inputs.pairs
    result = information_loss(
        pairs.original, pairs.anonymised, inputs.labels, groups=inputs.subjects, seed=inputs.seed, advance=advance
    )
    return result.to_dict()


def _measure_linkage(inputs: Inputs, texts: bool, advance: Advance | None) -> Mapping[str, Any]:
    if inputs.background:
        return _link_originals(inputs, advance).to_dict(texts)
    values = _link_originals(
        inputs, None if advance is None else lambda count, total: advance(count, 2 * total)
    ).to_dict(texts)
    # Who anonymises texts of their own by the same means, or holds others of the release, knows what it does to words.
    released = _run_intruder(
        inputs, None if advance is None else lambda count, total: advance(total + count, 2 * total), knows="anonymised"
    )
    return {**values, "released": released.to_dict()}


def _link_originals(inputs: Inputs, advance: Advance | None) -> Reidentification:
    if "linkage" not in inputs.done:
        inputs.done["linkage"] = _run_intruder(inputs, advance)
    return cast("Reidentification", inputs.done["linkage"])


def _run_intruder(inputs: Inputs, advance: Advance | None, knows: Knows = "original") -> Reidentification:
    from allonym.evaluate.intruder import reidentification

    assert inputs.subjects is not None
    pairs = inputs.pairs
    return reidentification(
        pairs.original,
        pairs.anonymised,
        inputs.subjects,
        groups=inputs.groups,
        background=inputs.background or None,
        knows=knows,
        ids=pairs.ids,
        seed=inputs.seed,
        advance=advance,
    )


def _measure_document_risk(inputs: Inputs, texts: bool, advance: Advance | None) -> Mapping[str, Any]:
    from allonym.evaluate.document_risk import document_risk

    pairs = inputs.pairs
    return document_risk(
        pairs.original,
        pairs.anonymised,
        inputs.subjects,
        groups=inputs.groups,
        background=inputs.background or None,
        intruder=_link_originals(inputs, None) if inputs.subjects else None,
        review_above=inputs.review_above,
        seed=inputs.seed,
        advance=advance,
    ).to_dict()


def _measure_downstream(inputs: Inputs, texts: bool, advance: Advance | None) -> Mapping[str, Any]:
    from allonym.evaluate.downstream import downstream

    assert inputs.labels is not None
    pairs, task = inputs.pairs, {TASK: "classify"}
    result = downstream(
        pairs.original, pairs.anonymised, {TASK: inputs.labels}, task, seed=inputs.seed, advance=advance
    )
    return result.to_dict()


def _measure_syntheticity(inputs: Inputs, texts: bool, advance: Advance | None) -> Mapping[str, Any]:
    from allonym.evaluate.syntheticity import syntheticity

    pairs = inputs.pairs
    return syntheticity(pairs.original, pairs.anonymised, seed=inputs.seed, advance=advance).to_dict(texts=texts)


_GROUP = "group"
TASK = "label"
"""What the task of the labels is called in the values of ``downstream``."""

MEASURES: Mapping[str, Measure] = MappingProxyType(
    {
        "detection": Measure("What was found, and what was missed", ("gold",), (), _measure_detection),
        "linkage": Measure(
            "Who can be found by an intruder", ("subjects",), ("groups", "background"), _measure_linkage
        ),
        "document_risk": Measure(
            "Which texts are at risk", (), ("subjects", "groups", "background", "review_above"), _measure_document_risk
        ),
        "residual": Measure("What a second reading still finds", (), ("groups",), _measure_residual),
        "information": Measure("What was lost", (), ("labels", "subjects"), _measure_information),
        "downstream": Measure("Whether others can learn from it", ("labels",), (), _measure_downstream),
        "syntheticity": Measure("Whether a text betrays that it was changed", (), (), _measure_syntheticity),
    }
)
"""Every measure by name, in the order in which a report shows them."""


def match_gold(pairs: Pairs, records: Iterable[Record]) -> tuple[Record, ...]:
    """Return the record of each original, matched by the text itself.

    Raises:
        DataError: an original has no record.
    """
    from allonym.errors import DataError

    by_text = {record["text"]: record for record in records}
    lacking = [i for i, text in enumerate(pairs.original, 1) if text not in by_text]
    if lacking:
        raise DataError(
            f"gold: {len(lacking)} of {len(pairs)} originals have no record with the same text, the first is number "
            f"{lacking[0]}"
        )
    return tuple(by_text[text] for text in pairs.original)
