"""Categories: the labels that each covers, its state, and the values of every chunk.

P1 (arXiv 2505.21128, section 3.1.4) swaps by six categories; ``Term`` is added for names that its recogniser missed,
and any label of the taxonomy, also one that a policy adds, is a category by its own name.
"""

from __future__ import annotations

import re
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

DETERMINER = re.compile(r"(?:an?|the|our|its|their|your|my|this|that|these|those)\s+(?=\S)", re.IGNORECASE)
"""A determiner at the beginning of a name, with its space."""
_DETERMINERS = frozenset("a an the our its their your my this that these those".split())
_NO_NAMES = frozenset({"PERSON", "DATE_TIME", "NUMERIC"})
_FEW = 4  # protected values that may share an entity in any corpus


def parse_categories(
    states: Mapping[str, str] | Iterable[str] | None = None, taxonomy: Taxonomy = TAXONOMY
) -> dict[str, str]:
    """Return categories and their states, checked.

    Args:
        states: category to state; or names only, which are swapped; None: :data:`DEFAULT`. A category is a name of
            :data:`CATEGORIES` in any case, or a label of the taxonomy.
        taxonomy: the labels.

    Raises:
        UnknownNameError: no such category or state; the message names the nearest ones.
        UsageError: a category is named twice, or none is named.
    """
    states = DEFAULT if states is None else states
    pairs = states.items() if isinstance(states, Mapping) else [(name, "swap") for name in states]
    folded = {name.lower(): name for name in CATEGORIES}
    out: dict[str, str] = {}
    for name, state in pairs:
        category = folded.get(name.lower(), name)
        if category not in CATEGORIES and category not in taxonomy:
            raise UnknownNameError("category", name, [*CATEGORIES, *(label.name for label in taxonomy)])
        if state not in STATES:
            raise UnknownNameError("state", state, STATES, f"category {name}")
        if category in out:
            raise UsageError(f"category {category} is named twice; each may have one state")
        out[category] = state
    if not out:
        raise UsageError("no category is named; at least one must be swapped")
    return out


def get_category_label(category: str) -> str:
    """Return the label that a category covers."""
    return CATEGORIES.get(category, category)


def list_detector_labels(categories: Iterable[str], taxonomy: Taxonomy = TAXONOMY) -> tuple[str, ...]:
    """Return all labels that a detector must look for to fill these categories, in the taxonomy's order."""
    names = {name for category in categories for name in taxonomy.descendants(get_category_label(category))}
    return tuple(label.name for label in taxonomy if label.name in names)


def find_category(label: str, categories: Iterable[str], taxonomy: Taxonomy = TAXONOMY) -> str:
    """Return the category of a label, the narrowest of the given ones; empty if it is in none.

    >>> find_category("CITY", ["Location", "Product"]), find_category("CITY", ["Location", "CITY"])
    ('Location', 'CITY')
    """
    by_label = {get_category_label(category): category for category in categories}
    return next((by_label[name] for name in taxonomy.lineage(label) if name in by_label), "")


def remove_family_and_determiner(key: str) -> str:
    """Return an entity's key without the label's family and a leading determiner, for comparison.

    >>> remove_family_and_determiner("PRODUCT:the galaxy phone")
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


def make_key(label: str, surface: str, taxonomy: Taxonomy = TAXONOMY) -> str:
    """Return the key of a value with this surface alone, by which users' tables are compared."""
    bare = surface.strip()
    if not bare:
        return ""
    return remove_family_and_determiner(link(Document("", bare), [Span(0, len(bare), label)], taxonomy).entities[0].key)


def is_initialism(form: str) -> bool:
    """Whether a form is made of capitals: 2 to 6 of them, digits and ``&.-`` between.

    >>> is_initialism("IBM"), is_initialism("U.S."), is_initialism("Acme")
    (True, True, False)
    """
    letters = [c for c in form if c.isalpha()]
    return 2 <= len(letters) <= 6 and " " not in form.strip() and all(c.isupper() for c in letters)


def remove_possessive(surface: str) -> str:
    """Return a surface without outer space and its possessive ending.

    >>> remove_possessive("Acme's"), remove_possessive("the Jones'")
    ('Acme', 'the Jones')
    """
    bare = surface.strip()
    for ending in ("'s", "’s", "ʼs", "'S", "’S"):
        if bare.endswith(ending) and len(bare) > len(ending):
            return bare[: -len(ending)]
    if bare[-2:-1] in ("s", "S", "x", "z") and bare[-1:] in ("'", "’", "ʼ"):
        return bare[:-1]
    return bare


def group_values_by_chunk(
    document: Document,
    entities: Sequence[Entity],
    bounds: Sequence[Interval],
    categories: Iterable[str],
    taxonomy: Taxonomy = TAXONOMY,
) -> list[tuple[Value, ...]]:
    """Return the values of each chunk, in reading order of their first mention in it.

    Args:
        document: the text.
        entities: of the document, linked within it (:func:`allonym.link.link`), and across documents if acronyms are
            to be values of their long forms (:func:`allonym.swap.acronyms.link_acronyms`).
        bounds: (start, end) of each chunk, sorted and disjoint. No mention should cross a border: one that does
            belongs to no chunk.
        categories: of the values.
        taxonomy: the labels.

    Returns:
        Per chunk its values: one for each entity of a category, with its mentions inside the chunk. Entities whose
        keys become the same (``the Galaxy``, ``Galaxy``) are one value.
    """
    categories = tuple(categories)
    starts = [start for start, _ in bounds]
    chunks: list[dict[tuple[str, str], list[Span]]] = [{} for _ in bounds]
    category_by_label = {e.label: find_category(e.label, categories, taxonomy) for e in entities}
    for entity in entities:
        category = category_by_label[entity.label]
        if not category:
            continue
        key = remove_family_and_determiner(entity.key)
        for span in entity.spans:
            i = bisect_right(starts, span.start) - 1
            if i >= 0 and span.end <= bounds[i][1]:
                chunks[i].setdefault((category, key), []).append(span)
    return [_make_values(document.text, chunk) for chunk in chunks]


def remove_common_entities(
    chunks: Sequence[Chunk], classes: Sequence[str], states: Mapping[str, str], most: float
) -> tuple[Chunk, ...]:
    """Return the chunks without common entities, such as EBITDA in earnings calls, which identify nobody: to exchange
    them would only cost usefulness. Categories that are not swapped stay as they are.

    Args:
        chunks: of the whole corpus.
        classes: per document, the protected value.
        states: category to state.
        most: share of the protected values, from 0 to 1. An entity that more of them name, and more than four, goes.
    """
    users: dict[tuple[str, str], set[str]] = {}
    for chunk in chunks:
        for value in chunk.values:
            users.setdefault((value.category, value.key), set()).add(classes[chunk.document])
    limit = max(_FEW, most * len(set(classes)))
    common = {key for key, names in users.items() if states.get(key[0]) == "swap" and len(names) > limit}
    if not common:
        return tuple(chunks)
    return tuple(replace(c, values=tuple(v for v in c.values if (v.category, v.key) not in common)) for c in chunks)


def _make_values(text: str, chunk: Mapping[tuple[str, str], list[Span]]) -> tuple[Value, ...]:
    out = []
    for (category, key), spans in chunk.items():
        spans.sort()
        surfaces = dict.fromkeys(remove_possessive(text[s.start : s.end]) for s in spans)
        forms = sorted((s for s in surfaces if s), key=len, reverse=True)
        out.append(Value(category, key, tuple(forms), tuple(spans)))
    out.sort(key=lambda value: (value.spans[0].start, value.spans[0].end, value.category))
    return tuple(out)
