"""Predictive checks: how well intruders guess changed chunks, before and after (P1 3.2.2, 3.2.3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from allonym.errors import DataError, UnknownNameError, UsageError
from allonym.intruder import TOLD, Item, Panel, Study, measure_panel, open_intruder, study
from allonym.keys import derive_operator_key
from allonym.policy import Policy
from allonym.swap.corpus import Advance, Corpus, Placed
from allonym.swap.making import WrittenDraw, draw_and_write_release, map_changed_chunk_texts
from allonym.swap.results import Attack, Release
from allonym.swap.settings import Check
from allonym.swap.writing import is_any_form_in_text

if TYPE_CHECKING:
    from allonym.swap.releases import Releases

LANGUAGE_MODEL = "llm"
"""The intruder that the settings' keys ``llm_...`` are for."""
_PANEL_FOLDS = 5  # at most: each takes a reading of all chunks by every intruder


@dataclass(frozen=True, slots=True)
class Changed:
    """One draw of a release, as an intruder sees it.

    Attributes:
        texts: index of a chunk to its released text. A chunk whose text is the original one does not count as changed.
            Hidden from ``repr``.
        placed: slot to the slot whose entity takes its place.
        marks: index of a chunk to the replacements in its released text: (start, end, ...), as in
            :attr:`allonym.swap.results.Outcome.marks`. Without them the donors' forms are used.
        pieces: the released piece that each chunk of the corpus is in, None for one that is not released; None: whole
            documents are released.
    """

    texts: Mapping[int, str] = field(repr=False)
    placed: Placed = field(repr=False)
    marks: Mapping[int, Sequence[tuple[int, int, str, str]]] = field(default_factory=dict, repr=False)
    pieces: Sequence[str | None] | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Checks:
    """The results of intruders.

    Attributes:
        attacks: one table per intruder.
        studies: all guesses behind them, in the same order.
        panel: intruders who know the exchange better and better, on the chunks that the first run changed.
    """

    attacks: tuple[Attack, ...]
    studies: tuple[Study, ...]
    panel: Panel

    def guessed(self, run: int = 0) -> dict[int, dict[str, tuple[bool, bool]]]:
        """Return chunk to intruder to (right before, right after), for the chunks that a run changed."""
        out: dict[int, dict[str, tuple[bool, bool]]] = {}
        for result in self.studies:
            for chunk, pair in result.outcomes(run).items():
                out.setdefault(chunk, {})[result.intruder] = pair
        return out


def draw_changed_chunks(
    common: tuple[Releases, Release, str | Path | Policy | None, bytes | str, dict[str, Any]], number: int
) -> Changed:
    """Return a draw of a release by its number; ``common``: arguments of
    :func:`allonym.swap.making.draw_and_write_release`."""
    releases, release, policy, secret, options = common
    return collect_changed_chunks(
        releases.corpus, draw_and_write_release(releases, release, number, policy, secret, **options)
    )


def collect_changed_chunks(corpus: Corpus, drawn: WrittenDraw) -> Changed:
    """Return a written draw as intruders see it."""
    texts = map_changed_chunk_texts(corpus, drawn.written)
    marks = {i: drawn.written.chunk_texts[i].marks for i in texts}
    return Changed(texts, drawn.placed, marks, drawn.name_piece_of_chunks(len(corpus.chunks)))


def collect_llm_options(corpus: Corpus, settings: Check, secret: bytes | str) -> dict[str, object]:
    """Return the options that the settings give for a language model."""
    return {
        "subject": corpus.protect.replace("_", " "),
        "kind": settings.llm_kind,
        "reply": settings.llm_reply,
        "listed": settings.llm_listed,
        "aliases": _collect_aliases(corpus, settings.llm_aliases),
        "key": derive_operator_key(secret, "llm cache"),
    }


def _collect_aliases(corpus: Corpus, keys: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return protected value to its documents' values of these metadata keys.

    Raises:
        UnknownNameError: no document has such metadata.
    """
    aliases: dict[str, dict[str, None]] = {}
    for key in keys:
        if all(document.meta.get(key) is None for document in corpus.documents):
            keys_present = {str(k) for document in corpus.documents for k in document.meta}
            raise UnknownNameError("metadata key", key, sorted(keys_present), "check.llm_aliases")
        for document, class_ in zip(corpus.documents, corpus.classes, strict=True):
            value = document.meta.get(key)
            values = value if isinstance(value, (list, tuple)) else (value,)
            aliases.setdefault(class_, {}).update(dict.fromkeys(str(v) for v in values if v is not None))
    return {class_: tuple(names) for class_, names in aliases.items()}


def check_runs(
    corpus: Corpus,
    runs: Sequence[Changed],
    intruders: Sequence[str] = ("entities", "words"),
    *,
    background: Sequence[tuple[Item, str]] = (),
    options: Mapping[str, Mapping[str, object]] | None = None,
    most: Mapping[str, int] | None = None,
    folds: int = 10,
    seed: int = 0,
    progress: Advance | None = None,
) -> Checks:
    """Let intruders guess the protected value of the chunks that were changed.

    Args:
        corpus: as it was read; intruders learn from all of its original chunks.
        runs: draws of one release.
        intruders: registered names.
        background: outside texts to learn from, with the protected value of each.
        options: intruder to its options, such as ``{"llm": {"settings": policy.llm}}``.
        most: intruder to the number of runs that it judges at most, if it is expensive.
        folds, seed: see :func:`allonym.intruder.before_after`.
        progress: called with ``check`` and the intruder, the number of steps that are done, and of all.

    Raises:
        DataError: all documents have the same protected value, so that there is nothing to guess.
        UnknownNameError: an intruder is not known.
        UsageError: an intruder does not take its options.
        EndpointError: an endpoint that an intruder asks did not answer.
    """
    if len(set(corpus.classes)) < 2:
        raise DataError(f"checks: all documents have the same {corpus.protect!r}; there is nothing to guess")
    options, most = options or {}, most or {}
    unknown = sorted({*options, *most} - set(intruders))
    if unknown:
        raise UsageError(f"checks: settings for {', '.join(unknown)}, which is none of the intruders asked for")
    opened = [open_intruder(name, **options.get(name, {})) for name in intruders]
    items = [make_intruder_item(corpus, i) for i in range(len(corpus.chunks))]
    labels = [corpus.class_of(i) for i in range(len(corpus.chunks))]
    after = [
        {i: make_intruder_item(corpus, i, run) for i in sorted(run.texts) if run.texts[i] != items[i].text}
        for run in runs
    ]
    partners = [_map_chunk_partners(run.placed) for run in runs]
    common: dict[str, Any] = {"background": background, "folds": folds, "seed": seed}
    studies = []
    for intruder in opened:
        n = most.get(intruder.name, len(runs))
        report = None if progress is None else partial(progress, f"check {intruder.name}")
        studies.append(study(intruder, items, labels, after[:n], partners=partners[:n], progress=report, **common))
    panel = ask_panel(
        corpus,
        runs[0] if runs else Changed({}, {}),
        background=[(item.text, name) for item, name in background],
        folds=max(2, min(folds, _PANEL_FOLDS)),
        seed=seed,
        advance=None if progress is None else partial(progress, "check panel"),
    )
    return Checks(tuple(map(_summarise_study, studies)), tuple(studies), panel)


def ask_panel(corpus: Corpus, run: Changed, **options: Any) -> Panel:
    """Ask the panel about a draw's changed chunks and whole documents, see :func:`allonym.intruder.measure_panel`.

    Args:
        options: further ones of the panel.
    """
    original = [chunk.text for chunk in corpus.chunks]
    return measure_panel(
        original,
        [run.texts.get(i, text) for i, text in enumerate(original)],
        [corpus.class_of(i) for i in range(len(original))],
        documents=[f"{chunk.document}" for chunk in corpus.chunks],
        pieces=run.pieces,
        partners=_map_chunk_partners(run.placed),
        judged=[i for i, text in sorted(run.texts.items()) if text != original[i]],
        **options,
    )


def _summarise_study(result: Study) -> Attack:
    p_values = {name: value for name, value in asdict(result.test).items() if name != "corrected"}
    return Attack(
        intruder=result.intruder,
        before=result.accuracy("before"),
        after=result.accuracy("after"),
        table=result.table,
        **p_values,
        chance=result.chance,
        second=result.second,
        told={stage: result.accuracy(stage) for stage in TOLD if stage in result.stages},
        terms=result.terms,
    )


def make_intruder_item(corpus: Corpus, chunk: int, run: Changed | None = None) -> Item:
    """Return a chunk as an intruder sees it: without its direct identifiers (P1's y), and with its entities.

    Args:
        run: return the released chunk, with the entities that came, and its own ones that remain.
    """
    text = corpus.chunks[chunk].text if run is None else run.texts[chunk]
    keys: dict[str, None] = {}
    forms: dict[str, None] = {}
    for slot, original in corpus.slots_of(chunk):
        value = original
        if run is not None and (donor := run.placed.get(slot)) is not None:
            value = corpus.value_at(donor)
        elif run is not None and not is_any_form_in_text(original.forms, text):
            continue  # a fall-back removed it
        keys[value.key] = None
        forms |= dict.fromkeys(value.forms)
    marks = run.marks.get(chunk, ()) if run is not None else ()
    forms |= dict.fromkeys(text[mark[0] : mark[1]] for mark in marks)
    return Item(text, tuple(keys), tuple(forms))


def _map_chunk_partners(placed: Placed) -> dict[int, tuple[int, ...]]:
    """Return chunk to the chunks that its entities came from or went to."""
    out: dict[int, set[int]] = {}
    for slot, donor in placed.items():
        if slot.chunk != donor.chunk:
            out.setdefault(slot.chunk, set()).add(donor.chunk)
            out.setdefault(donor.chunk, set()).add(slot.chunk)
    return {chunk: tuple(sorted(others)) for chunk, others in out.items()}
