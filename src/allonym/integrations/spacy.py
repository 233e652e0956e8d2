"""Conversion from and to spaCy's ``Doc``. The pipeline component is in :mod:`.spacy_pipe`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from allonym.detection.adapters.labels import LabelMap
from allonym.detection.languages import settle_language
from allonym.document import Document, Span
from allonym.errors import DataError, UsageError, hide_foreign_errors, require_extra
from allonym.pipeline import AnyPolicy
from allonym.policy import Policy

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc

_NONE: Mapping[str, str] = MappingProxyType({})
GROUP = "allonym"
"""The span group of all findings, overlapping ones included, with attributes that spaCy's spans cannot hold."""


def to_spacy(
    document: str | Document,
    spans: Iterable[Span],
    nlp: Language | None = None,
    *,
    scheme: str = "",
    policy: AnyPolicy = "default",
) -> Doc:
    """Make a ``Doc`` of a text with the spans as its entities.

    spaCy's spans are whole tokens, so a span that begins or ends inside a token is widened. Entities cannot overlap: of
    those that then do, the longest is in ``doc.ents``. All are in ``doc.spans["allonym"]``, whose ``attrs`` hold
    scores, sources and exact offsets; :func:`from_spacy` reads them back without loss.

    Args:
        document: a text or a :class:`allonym.Document`.
        spans: findings in it.
        nlp: the pipeline whose tokenizer and vocabulary are used; its components are not run. By default a blank one
            of the policy's language.
        scheme: one of ``allonym.labels.SCHEMES`` for the names of labels, e.g. ``spacy`` (OntoNotes: PERSON, ORG, GPE);
            a label without a name there keeps its own. By default allonym's names are used.
        policy: the policy of the labels.

    Raises:
        MissingExtra: spaCy is not installed.
        UsageError: a span reaches past the end of the text.
        UnknownNameError: no such scheme, or a label that the policy does not know.
        DataError: the text holds lone surrogates, which spaCy cannot take.
    """
    spacy = _import_spacy()
    loaded = Policy.load(policy)
    text = document if isinstance(document, str) else document.text
    listed = sorted(spans)
    if listed and max(span.end for span in listed) > len(text):
        raise UsageError(f"a span ends at {max(s.end for s in listed)}, and the text at {len(text)}")
    with hide_foreign_errors("spaCy takes no text with lone surrogates", UnicodeEncodeError):
        doc = (spacy.blank(settle_language(loaded, text).language) if nlp is None else nlp).tokenizer(text)
    return mark_spans(doc, listed, [_name_label(span.label, scheme, loaded) for span in listed])


def from_spacy(
    doc: Doc, policy: AnyPolicy = "default", *, group: str = "", labels: Mapping[str, str] = _NONE, id: str = ""
) -> tuple[Document, tuple[Span, ...]]:
    """Convert a ``Doc`` to a document and spans in reading order.

    A ``Doc`` of :func:`to_spacy` or of the component is read without loss. Of any other ``Doc`` the entities or a span
    group are read. Labels are mapped as the detector ``spacy`` maps them: by name, or by OntoNotes and CoNLL.

    Args:
        doc: any ``Doc``.
        policy: the policy whose labels they get.
        group: the span group to read; by default allonym's own where there is one, else the entities.
        labels: spaCy's labels to allonym's, for those without a mapping; ``""`` leaves one out.
        id: names the document.

    Raises:
        MissingExtra: spaCy is not installed.
        UsageError: there is no such span group.
        PolicyError: a label has no mapping.
        UnknownNameError: a label is not known.
    """
    _import_spacy()
    if group and group not in doc.spans:
        raise UsageError(f"the Doc has no span group {group!r}")
    name = group or (GROUP if GROUP in doc.spans else "")
    marked = list(doc.spans[name]) if name else list(doc.ents)
    attrs = doc.spans[name].attrs if name else {}
    find = LabelMap(Policy.load(policy), "spacy", ("spacy", "conll"), extra=labels)
    count = len(marked)
    places = _read_span_values(attrs, "places", count) or [(s.start_char, s.end_char) for s in marked]
    names = _read_span_values(attrs, "labels", count) or [find(s.label_) for s in marked]
    scores = _read_span_values(attrs, "scores", count) or [1.0] * count
    sources = _read_span_values(attrs, "sources", count) or [f"spacy:{name or 'ents'}"] * count
    rows = zip(places, names, scores, sources, strict=True)
    spans = tuple(sorted(Span(a, b, label, float(sure), source) for (a, b), label, sure, source in rows if label))
    return Document(id, doc.text), spans


def mark_spans(doc: Doc, spans: Sequence[Span], labels: Sequence[str] = (), *, ents: bool = True) -> Doc:
    """Mark spans in a ``Doc`` of the same text, as :func:`to_spacy` does; ``labels`` are their names there."""
    from spacy.tokens import SpanGroup
    from spacy.util import filter_spans

    wide_spans = []
    for span, label in zip(spans, labels or [s.label for s in spans], strict=True):
        wide = doc.char_span(span.start, span.end, label=label, alignment_mode="expand")
        if wide is None:  # the blank behind a word belongs to its token
            raise DataError(f"spaCy has no token at {span.start}..{span.end}")
        wide_spans.append(wide)
    attrs = {
        "scores": [s.score for s in spans],
        "labels": [s.label for s in spans],
        "sources": [s.source for s in spans],
        "places": [[s.start, s.end] for s in spans],
    }
    doc.spans[GROUP] = SpanGroup(doc, name=GROUP, spans=wide_spans, attrs=attrs)
    if ents:
        doc.ents = filter_spans(s for s in wide_spans if s.text.strip())
    return doc


def _name_label(label: str, scheme: str, policy: Policy) -> str:
    policy.taxonomy.get(label)
    return (policy.taxonomy.to_scheme(label, scheme) if scheme else None) or label


def _read_span_values(attrs: Any, name: str, count: int) -> list[Any]:
    """A group's attribute with one value for each span; empty where there is none, or the group was changed since."""
    values = attrs.get(name)
    return list(values) if isinstance(values, (list, tuple)) and len(values) == count else []


def _import_spacy() -> Any:
    with require_extra("spaCy's Doc", "spacy"):
        import spacy
    return spacy
