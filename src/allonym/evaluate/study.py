"""A whole evaluation: every measure that the inputs allow, of one or several anonymised versions.

A measure that cannot be taken is left out with its reason, and never becomes a number. Finished measures can be kept in
a folder, so that an interrupted evaluation goes on; the folder holds numbers, never texts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from allonym.errors import DataError, MissingExtra, UnknownNameError, UsageError
from allonym.evaluate.measures import MEASURES, NEEDS, Inputs, list_headlines, match_gold_records
from allonym.evaluate.pairs import check_lengths
from allonym.evaluate.reading import Pairs, get_metadata_value
from allonym.files.state import State, digest_values
from allonym.serial import Serialisable
from allonym.train.records import Record

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
        """The headlines of the measures, see :data:`allonym.evaluate.measures.HEADLINES`."""
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
        pairs: the texts before and after, see :func:`~allonym.evaluate.reading.read_pairs`.
        gold: annotated records of the originals, see :func:`allonym.train.records.read_records`.
        labels: the class of each text, or the metadata field that says it.
        subjects: whom each text is about, or the metadata field that says it; empty where that is not known.
        groups: of texts whose rates are told apart, or the metadata field that says them.
        background: further (text, subject) pairs that an intruder knows.
        measures: names of :data:`~allonym.evaluate.measures.MEASURES`; None: all.
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
    columns = {"labels": labels, "subjects": subjects, "groups": groups}
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
