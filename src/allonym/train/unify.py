"""Unify the labels of corpora for backends that know one label per span.

The embedded tagger sums over the labels that a corpus label may stand for. spaCy and MITIE cannot, so for them a corpus
label becomes the label of the taxonomy that covers all of these: LOC, a country or a city, becomes LOCATION.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from allonym.document import Span
from allonym.labels import TAXONOMY
from allonym.train.labelmap import find_targets
from allonym.train.records import Mark, Record

Targets = Callable[[str, str], "frozenset[str] | None"]
Covers = Mapping[str, frozenset[str]]

_REST = "OTHER_IDENTIFYING_ATTRIBUTE"


def unify_label(name: str, source: str = "", label_map: Targets = find_targets) -> str:
    """Return the unified label of a corpus label; empty if it maps to no label of the tagger.

    >>> label_of("PER"), label_of("GPE"), label_of("MISC"), label_of("chemicalelement")
    ('PERSON', 'LOCATION', 'OTHER_IDENTIFYING_ATTRIBUTE', '')
    """
    meant = label_map(name, source)
    if not meant:
        return ""
    for label in TAXONOMY.lineage(min(meant)):
        if all(TAXONOMY.within(candidate, label) for candidate in meant):
            return label
    return "ORGANIZATION" if "ORGANIZATION" in meant else _REST


def unify_labels(records: Iterable[Record], label_map: Targets = find_targets) -> list[Record]:
    """Relabel records with :func:`unify_label`, dropping spans without a label; the source is ``meta.source``."""
    out: list[Record] = []
    for record in records:
        source = str(record["meta"].get("source", ""))
        named = [(span, unify_label(span["label"], source, label_map)) for span in record["spans"]]
        spans: list[Mark] = [{**span, "label": label} for span, label in named if label]
        out.append({**record, "spans": spans})
    return out


def list_covered_labels(records: Iterable[Record], label_map: Targets = find_targets) -> dict[str, frozenset[str]]:
    """Return each unified label with the tagger's labels that it may stand for in these records."""
    names = {(s["label"], str(r["meta"].get("source", ""))) for r in records for s in r["spans"]}
    out: dict[str, frozenset[str]] = {}
    for name, source in sorted(names):
        if not (label := unify_label(name, source, label_map)):
            continue
        out[label] = out.get(label, frozenset()) | (label_map(name, source) or frozenset())
    return out


def relabel_spans(spans: Sequence[Span], coverage: Covers) -> list[Span]:
    """Relabel a model's spans with the labels of a corpus; spans without a label there are dropped.

    A label stays if the corpus has it. Otherwise it becomes the nearest label of the corpus above it in the taxonomy,
    else one that may stand for it.
    """
    out: list[Span] = []
    for span in spans:
        above = [label for label in TAXONOMY.lineage(span.label) if label in coverage]
        meant = sorted(
            (len(covered_labels), label) for label, covered_labels in coverage.items() if span.label in covered_labels
        )
        if above or meant:
            label = above[0] if above else meant[0][1]
            out.append(Span(span.start, span.end, label, span.score, span.source))
    return out
