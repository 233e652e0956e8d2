"""Findings of allonym and of Presidio in the same texts, side by side, under Presidio's names for the kinds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from itertools import groupby
from typing import Literal, NamedTuple

from allonym.detection.adapters.presidio import build_engine
from allonym.document import Document
from allonym.integrations.presidio import entity_type
from allonym.pipeline import detect
from allonym.policy import Policy

SPACY_MODELS = ("en_core_web_lg", "en_core_web_trf", "en_core_web_md", "en_core_web_sm")
"""English pipelines that may be installed; the first is the one that Presidio's own configuration names."""

Coverage = Literal["both", "part", "alone"]
Analyze = Callable[[str], "list[Finding]"]


class Finding(NamedTuple):
    """A finding: half-open code points, and the kind under Presidio's name."""

    start: int
    end: int
    kind: str


@dataclass(frozen=True, slots=True)
class ComparedText:
    """A text with the findings of both, each with whether the other covers all of it, a part or nothing."""

    name: str
    text: str = field(repr=False)
    ours: tuple[tuple[Finding, Coverage], ...]
    theirs: tuple[tuple[Finding, Coverage], ...]

    def get_line(self, finding: Finding) -> int:
        """Return the line of a finding, from 1."""
        return self.text.count("\n", 0, finding.start) + 1

    def get_surface(self, finding: Finding) -> str:
        """Return the text of a finding."""
        return self.text[finding.start : finding.end]


class KindCount(NamedTuple):
    """Findings of one kind: of allonym and of Presidio, and those of which the other covers nothing."""

    kind: str
    ours: int
    theirs: int
    only_ours: int
    only_theirs: int


def find_spacy_model() -> str:
    """Return the first of :data:`SPACY_MODELS` that is installed; empty where none is."""
    from importlib.util import find_spec

    return next((name for name in SPACY_MODELS if find_spec(name) is not None), "")


def open_presidio(config: str = "", model: str = "", language: str = "en", threshold: float = 0.0) -> Analyze:
    """Return a function that finds in a text what Presidio's analyzer finds.

    Args:
        config: path of a YAML file of recognizers; empty: Presidio's own.
        model: folder or name of an installed spaCy pipeline; empty: no names are found.
        language: ISO 639-1 code.
        threshold: least score that counts, 0 to 1.

    Raises:
        MissingExtra: Presidio is not installed.
        DataError: the model or the file is not there.
    """
    engine = build_engine((), config, model, language)

    def analyze(text: str) -> list[Finding]:
        results = engine.analyze(text, language=language, score_threshold=threshold)
        return list(_unite(Finding(r.start, r.end, r.entity_type) for r in results))

    return analyze


def describe_presidio(model: str) -> str:
    """Return the version of Presidio, and the pipeline that finds names, in words."""
    return f"Presidio {version('presidio-analyzer')}, {model or 'no spaCy model, so no names'}"


def compare_texts(documents: Iterable[Document], policy: Policy, analyze: Analyze) -> Iterator[ComparedText]:
    """Yield each text with the findings of both.

    Args:
        documents: the texts.
        policy: of allonym.
        analyze: Presidio, from :func:`open_presidio`.
    """
    for document in documents:
        spans = detect(document, policy)
        ours = list(_unite(Finding(s.start, s.end, entity_type(s.label, policy)) for s in spans))
        theirs = analyze(document.text)
        yield ComparedText(
            document.id,
            document.text,
            tuple((f, _measure_coverage(f, theirs, document.text)) for f in ours),
            tuple((f, _measure_coverage(f, ours, document.text)) for f in theirs),
        )


def count_by_kind(texts: Sequence[ComparedText]) -> list[KindCount]:
    """Count the findings by kind, the most frequent first."""
    counts: dict[str, list[int]] = {}
    for text in texts:
        for side, findings in enumerate((text.ours, text.theirs)):
            for finding, coverage in findings:
                row = counts.setdefault(finding.kind, [0, 0, 0, 0])
                row[side] += 1
                row[side + 2] += coverage == "alone"
    rows = (KindCount(kind, *row) for kind, row in counts.items())
    return sorted(rows, key=lambda row: (-row.ours - row.theirs, row.kind))


def _unite(findings: Iterable[Finding]) -> Iterator[Finding]:
    """Yield findings in reading order; of one kind, those that overlap become one."""
    by_kind = groupby(sorted(findings, key=lambda f: (f.kind, f.start, f.end)), key=lambda f: f.kind)
    united: list[Finding] = []
    for kind, group in by_kind:
        last: Finding | None = None
        for finding in group:
            if last is not None and finding.start < last.end:
                last = Finding(last.start, max(last.end, finding.end), kind)
            else:
                united += [last] if last else []
                last = finding
        united += [last] if last else []
    yield from sorted(united)


def _measure_coverage(finding: Finding, others: Sequence[Finding], text: str) -> Coverage:
    """Tell how much of a finding's letters and digits others cover."""
    places = [i for i in range(finding.start, finding.end) if text[i].isalnum()] or [finding.start]
    near = [other for other in others if other.start < finding.end and finding.start < other.end]
    covered = sum(any(other.start <= i < other.end for other in near) for i in places)
    return "both" if covered == len(places) else "part" if covered else "alone"
