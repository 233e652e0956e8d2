"""Categories: which labels each covers, what may happen to it, and the values of every chunk.

P1 (arXiv 2505.21128, section 3.1.4) swaps by six categories; ``Term`` is added for what its recogniser missed, and any
label of the taxonomy, also one that a policy adds, is a category by its own name.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from allonym.document import Document, Entity, Interval, Span
from allonym.errors import UnknownNameError, UsageError
from allonym.labels import TAXONOMY, Taxonomy
from allonym.link import link
from allonym.swap.corpus import STATES, Chunk, Value

CATEGORIES: Mapping[str, str] = MappingProxyType(
    {
        "Organization": "ORGANIZATION",
        "Person": "PERSON",
        "Location": "LOCATION",
        "Product": "PRODUCT",
        "Event": "EVENT",
        "Date": "DATE_TIME",
        "Term": "TERM",
    }
)
"""Category to the label that it covers, with all labels below it."""

DEFAULT: Mapping[str, str] = MappingProxyType(dict.fromkeys(CATEGORIES, "swap") | {"Event": "change", "Date": "fixed"})
"""Category to its state, as in P1 3.2: events are too few to swap, dates keep the calls of one quarter together."""

_DETERMINERS = frozenset("a an the our its their your my this that these those".split())
_NO_NAMES = frozenset({"PERSON", "DATE_TIME", "NUMERIC"})


_FEW = 4  # protected values that may share an entity in any corpus


def checked(states: Mapping[str, str] | Iterable[str] | None = None, taxonomy: Taxonomy = TAXONOMY) -> dict[str, str]:
    """Categories and their states, checked.

    Args:
        states: category to state; or names only, which are swapped; None: :data:`DEFAULT`. A category is a name of
            :data:`CATEGORIES` in any case, or a label of the taxonomy.
        taxonomy: the labels.

    Raises:
        UnknownNameError: no such category or state; the message says the nearest.
        UsageError: a category is named twice, or none is named.
    """
    given = DEFAULT if states is None else states
    pairs = given.items() if isinstance(given, Mapping) else [(name, "swap") for name in given]
    folded = {name.lower(): name for name in CATEGORIES}
    out: dict[str, str] = {}
    for name, state in pairs:
        known = folded.get(name.lower(), name)
        if known not in CATEGORIES and known not in taxonomy:
            raise UnknownNameError("category", name, [*CATEGORIES, *(label.name for label in taxonomy)])
        if state not in STATES:
            raise UnknownNameError("state", state, STATES, f"category {name}")
        if known in out:
            raise UsageError(f"category {known} is named twice; each may have one state")
        out[known] = state
    if not out:
        raise UsageError("no category is named; at least one must be swapped")
    return out


def label_of(category: str) -> str:
    """The label that a category covers."""
    return CATEGORIES.get(category, category)


def labels_of(categories: Iterable[str], taxonomy: Taxonomy = TAXONOMY) -> tuple[str, ...]:
    """All labels that a detector must look for to fill these categories, in the taxonomy's order."""
    wanted = {name for category in categories for name in taxonomy.descendants(label_of(category))}
    return tuple(label.name for label in taxonomy if label.name in wanted)


def category_of(label: str, categories: Iterable[str], taxonomy: Taxonomy = TAXONOMY) -> str:
    """The category that a label falls into, the narrowest of those given; empty where it is in none.

    >>> category_of("CITY", ["Location", "Product"]), category_of("CITY", ["Location", "CITY"])
    ('Location', 'CITY')
    """
    by_label = {label_of(category): category for category in categories}
    return next((by_label[name] for name in taxonomy.lineage(label) if name in by_label), "")


def canonical(key: str) -> str:
    """What is compared of an entity's key: its normal form without the label's family and a leading determiner.

    >>> canonical("PRODUCT:the galaxy phone")
    'galaxy phone'
    """
    family, colon, norm = key.partition(":")
    if not colon:
        family, norm = "", key
    if family in _NO_NAMES:
        return norm
    words = norm.split()
    while len(words) > 1 and words[0] in _DETERMINERS:
        del words[0]
    return " ".join(words) or norm


def key_for(label: str, surface: str, taxonomy: Taxonomy = TAXONOMY) -> str:
    """The key that a value with this surface alone has: what a user's tables are compared by."""
    document = Document("", surface)
    bare = surface.strip()
    start = surface.find(bare)
    if not bare:
        return ""
    return canonical(link(document, [Span(start, start + len(bare), label)], taxonomy).entities[0].key)


def without_possessive(surface: str) -> str:
    """A surface without outer space and its possessive ending.

    >>> without_possessive("Acme's"), without_possessive("the Jones'")
    ('Acme', 'the Jones')
    """
    bare = surface.strip()
    for ending in ("'s", "’s", "ʼs", "'S", "’S"):
        if bare.endswith(ending) and len(bare) > len(ending):
            return bare[: -len(ending)]
    if bare[-2:-1] in ("s", "S", "x", "z") and bare[-1:] in ("'", "’", "ʼ"):
        return bare[:-1]
    return bare


def values_of(
    document: Document,
    entities: Sequence[Entity],
    bounds: Sequence[Interval],
    categories: Iterable[str],
    taxonomy: Taxonomy = TAXONOMY,
) -> list[tuple[Value, ...]]:
    """The values of each chunk, in reading order of their first mention in it.

    Args:
        document: the text.
        entities: what was found in it, linked within the document (:func:`allonym.link.link`), and across documents
            if acronyms are to be values of their long forms (:func:`allonym.swap.acronyms.join`).
        bounds: (start, end) of each chunk, sorted and disjoint. No mention should cross a border: one that does
            belongs to no chunk.
        categories: the categories wanted.
        taxonomy: tells which labels fall into a category.

    Returns:
        Per chunk its values: one for each entity of a category, with its mentions inside the chunk. Entities whose
        keys become the same (``the Galaxy``, ``Galaxy``) are one value.
    """
    wanted = tuple(categories)
    starts = [start for start, _ in bounds]
    found: list[dict[tuple[str, str], list[Span]]] = [{} for _ in bounds]
    known: dict[str, str] = {}
    for entity in entities:
        if entity.label not in known:
            known[entity.label] = category_of(entity.label, wanted, taxonomy)
        category = known[entity.label]
        if not category:
            continue
        key = canonical(entity.key)
        for span in entity.spans:
            at = bisect_right(starts, span.start) - 1
            if at >= 0 and span.end <= bounds[at][1]:
                found[at].setdefault((category, key), []).append(span)
    return [_values(document.text, chunk) for chunk in found]


def without_common(
    chunks: Sequence[Chunk], classes: Sequence[str], states: Mapping[str, str], most: float
) -> tuple[Chunk, ...]:
    """The chunks without what everybody speaks of, such as EBITDA in earnings calls: it points to nobody, and to
    exchange it would cost usefulness alone. What is not swapped stays as it is.

    Args:
        chunks: of the whole corpus.
        classes: per document, the protected value.
        states: category to state.
        most: share of the protected values, from 0 to 1. An entity that more of them name, and more than four, goes.
    """
    known: dict[tuple[str, str], set[str]] = {}
    for chunk in chunks:
        for value in chunk.values:
            known.setdefault((value.category, value.key), set()).add(classes[chunk.document])
    limit = max(_FEW, most * len(set(classes)))
    common = {v for v, some in known.items() if states.get(v[0]) == "swap" and len(some) > limit}
    if not common:
        return tuple(chunks)
    return tuple(replace(c, values=tuple(v for v in c.values if (v.category, v.key) not in common)) for c in chunks)


def _values(text: str, found: Mapping[tuple[str, str], list[Span]]) -> tuple[Value, ...]:
    out = []
    for (category, key), spans in found.items():
        spans.sort()
        surfaces = dict.fromkeys(without_possessive(text[s.start : s.end]) for s in spans)
        forms = sorted((s for s in surfaces if s), key=len, reverse=True)
        out.append(Value(category, key, tuple(forms), tuple(spans)))
    out.sort(key=lambda value: (value.spans[0].start, value.spans[0].end, value.category))
    return tuple(out)
