"""Choose and split annotated documents, and measure label density: P3 section 2.5 and P5 section 2.1.

The unit is the document: all records that share a ``doc_id``. Words are counted as in the embedded models.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b

from allonym.errors import UsageError
from allonym.models.words import split_words
from allonym.train.records import Groups, Record, list_spans, select_outermost_spans


def group_documents(records: Iterable[Record]) -> dict[str, list[Record]]:
    """Return the records of each document, in the order in which the documents first appear."""
    out: dict[str, list[Record]] = {}
    for record in records:
        out.setdefault(record["doc_id"], []).append(record)
    return out


def split_records(
    records: Sequence[Record], parts: Sequence[float] = (0.8, 0.1, 0.1), seed: int = 0
) -> tuple[list[Record], ...]:
    """Split a corpus at random by document; P3 uses 80 % for training, 10 % for validation and 10 % for testing.

    Documents with an identical text stay together. The result depends on the set of documents and the seed, not on
    their order; within a part the order is that of ``records``.

    Args:
        parts: the share of each part; they need not sum to 1. A part with a share above 0 gets at least one document.
        seed: seed of the split.

    Raises:
        UsageError: a share is negative, all are 0, or there are fewer separable documents than parts.
    """
    if not parts or min(parts) < 0 or sum(parts) <= 0:
        shares = "/".join(f"{share:g}" for share in parts) or "none"
        raise UsageError(f"shares of 0 or more are required, one of them above 0; got {shares}")
    groups = sorted(_group_documents_by_text(records), key=lambda group: _make_shuffle_key(group[0], seed))
    used_parts = [i for i, share in enumerate(parts) if share > 0]
    if records and len(groups) < len(used_parts):
        raise UsageError(f"{len(used_parts)} parts need as many documents that share no text; got {len(groups)}")
    total = sum(len(group) for group in groups)
    room = [share / sum(parts) * total for share in parts]
    chosen: list[list[list[str]]] = [[] for _ in parts]
    for group in groups:
        part = max(used_parts, key=lambda i: (room[i], -i))
        chosen[part].append(group)
        room[part] -= len(group)
    if records:
        for empty in (i for i in used_parts if not chosen[i]):
            fullest = max(used_parts, key=lambda i: (len(chosen[i]), -i))
            chosen[empty].append(chosen[fullest].pop())
    part_of = {doc: i for i, part in enumerate(chosen) for group in part for doc in group}
    out: tuple[list[Record], ...] = tuple([] for _ in parts)
    for record in records:
        out[part_of[record["doc_id"]]].append(record)
    return out


def _make_shuffle_key(doc: str, seed: int) -> bytes:
    return blake2b(f"{seed}\0{doc}".encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _group_documents_by_text(records: Sequence[Record]) -> list[list[str]]:
    """Group documents that share a text; each group is sorted."""
    groups, first = Groups(), dict[str, str]()
    for record in records:
        groups.join([first.setdefault(record["text"], record["doc_id"]), record["doc_id"]])
    out: dict[str, list[str]] = {}
    for doc in sorted(groups):
        out.setdefault(groups.find_least(doc), []).append(doc)
    return list(out.values())


@dataclass(frozen=True, slots=True)
class Size:
    """The size of a document: its words, and its entities without nested ones."""

    words: int
    entities: int

    @property
    def ratio(self) -> float:
        """The named entity ratio of P3 2.5: entities of any kind, divided by words; 0 without words."""
        return self.entities / self.words if self.words else 0.0


def count_words_and_entities(records: Iterable[Record]) -> Size:
    """Count the words and outermost entities of a document's records."""
    count = entities = 0
    for record in records:
        count += len(split_words(record["text"]))
        entities += len(select_outermost_spans(list_spans(record)))
    return Size(count, entities)


def choose_records(
    records: Sequence[Record],
    min_ratio: float = 0.0,
    max_ratio: float = 1.0,
    min_words: int = 0,
    max_words: int | None = None,
    *,
    first_words: int | None = None,
    richest: int | None = None,
) -> list[Record]:
    """Choose documents for training as in P3 2.5: by length and by named entity ratio.

    P3 leaves out documents of under 20 words, e-mails of over 500 words, and lists of names, with a ratio of 20 % or
    more. It cuts other texts after 500 words, and takes those with the highest ratios.

    Args:
        min_ratio, max_ratio: bounds of entities per word; ``max_ratio`` below 1 is exclusive.
        min_words, max_words: bounds of the document's length in words, both inclusive.
        first_words: cut each document after this number of words, before counting; divided entities are dropped.
        richest: keep only this number of documents, those with the highest ratios.

    Raises:
        UsageError: the bounds cross.
    """
    if min_ratio > max_ratio or (max_words is not None and min_words > max_words):
        raise UsageError(f"bounds cross: ratio {min_ratio:g} to {max_ratio:g}, words {min_words} to {max_words}")
    documents = group_documents(records)
    if first_words is not None:
        documents = {doc: truncate_records(parts, first_words) for doc, parts in documents.items()}
    sizes = {doc: count_words_and_entities(parts) for doc, parts in documents.items()}
    fitting = {
        doc
        for doc, size in sizes.items()
        if min_words <= size.words <= (size.words if max_words is None else max_words)
        and min_ratio <= size.ratio
        and (size.ratio < max_ratio or max_ratio >= 1)
    }
    if richest is not None:
        fitting = set(sorted(fitting, key=lambda doc: (-sizes[doc].ratio, doc))[:richest])
    return [record for doc, parts in documents.items() if doc in fitting for record in parts]


def truncate_records(records: Sequence[Record], max_words: int) -> list[Record]:
    """Return the first ``max_words`` words of a document, with the spans that lie completely in them."""
    out: list[Record] = []
    for record in records:
        borders = split_words(record["text"])
        if max_words <= 0:
            break
        if len(borders) > max_words:
            end = borders[max_words - 1][1]
            spans = [span for span in record["spans"] if span["end"] <= end]
            cut_record: Record = {**record, "text": record["text"][:end], "spans": spans}
            cut_record.pop("tokens", None)
            cut_record.pop("upos", None)
            record = cut_record
        max_words -= len(borders)
        out.append(record)
    return out


@dataclass(frozen=True, slots=True)
class Density:
    """The label density of a corpus.

    Attributes:
        corpus: its name.
        documents, words: their numbers.
        spans: number of spans per label, including nested ones.
    """

    corpus: str
    documents: int
    words: int
    spans: Mapping[str, int]

    def per_thousand(self, label: str) -> float:
        """Return the spans of the label per 1,000 words; 0 without words."""
        return 1000 * self.spans.get(label, 0) / self.words if self.words else 0.0


def measure_label_density(corpora: Mapping[str, Sequence[Record]]) -> list[Density]:
    """Measure the label density of each corpus (P5 2.1), and of several together under the name ``all``.

    >>> from allonym.train.records import make_record
    >>> one = measure_label_density({"notes": [make_record("", "1", "Ada met Cyd .", [(0, 3, "PER"), (8, 11, "PER")])]})
    >>> one[0].words, one[0].per_thousand("PER")
    (4, 500.0)
    """
    rows: list[Density] = []
    for name, records in corpora.items():
        labels = Counter(span["label"] for record in records for span in record["spans"])
        words = sum(len(split_words(record["text"])) for record in records)
        rows.append(Density(name, len(group_documents(records)), words, dict(labels)))
    if len(rows) > 1:
        total = sum((Counter(row.spans) for row in rows), Counter[str]())
        rows.append(Density("all", sum(r.documents for r in rows), sum(r.words for r in rows), dict(total)))
    return rows
