"""Direct identifiers of the originals that occur in the outputs of a model (P2 section 5.3).

P2 had people read 400 outputs of its model and found none. Here the identifiers of the originals are found by a policy,
or given as plans or lists, and looked for in the outputs.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from allonym.document import Span
from allonym.evaluate.findings import found_in_plans
from allonym.evaluate.pairs import check_lengths, iterate_with_progress
from allonym.labels import TAXONOMY, Taxonomy
from allonym.plan import Plan
from allonym.policy import Policy
from allonym.serial import Serialisable
from allonym.stats import Estimate, none
from allonym.stats.samples import bootstrap, share
from allonym.text.words import compile_word_pattern

_WORD = compile_word_pattern("'’-", digits=False)
_LEAST = 3  # letters of a part of a person's name that counts
Named = tuple[str, str]
"""Label and surface."""


@dataclass(frozen=True, slots=True)
class Shown:
    """An identifier that occurs in an output: the output's number from 0, its label, and its surface, hidden."""

    output: int
    label: str
    surface: str = field(repr=False)


class OutputLeaks(Serialisable):
    """The share of outputs and identifiers that leak; 0 is best.

    Attributes:
        outputs: share of the outputs that hold a direct identifier; Wilson's interval.
        identifiers: share of the originals' direct identifiers (each once a text) that show up; texts drawn again.
        types: the same by label.
        found: which, for who may see them.
    """

    TEXT_KEYS = ("found",)

    outputs: Estimate
    identifiers: Estimate
    types: Mapping[str, Estimate]
    found: tuple[Shown, ...] = field(default=(), repr=False)


def output_leaks(
    outputs: Sequence[str],
    original: Sequence[str],
    *,
    plans: Sequence[Plan] | None = None,
    entities: Sequence[Sequence[Named]] | None = None,
    policy: str | Policy = "default",
    across: bool = False,
    seed: int = 0,
    advance: Callable[[int, int], None] | None = None,
) -> OutputLeaks:
    """Search the outputs of a model for direct identifiers of the originals.

    An identifier shows up where its surface stands in an output as whole words, with the same capitals where it has
    any. Of a person, so does each part of the name of three letters or more that stands beside no name in the original.

    Args:
        outputs: what the model wrote, one per original.
        original: the texts that the anonymised ones were made of.
        plans: what was replaced in each original; entities: label and surface of each identifier of each original, of
            any kind. Without both, ``policy`` finds them.
        policy: a preset's name, a file or a policy.
        across: look for the identifiers of all originals in each output, since a model may know them from training.
        seed: of the interval.
        advance: called with texts done and in all.

    Raises:
        DataError: unequal lengths, no text, or a plan of another text (PlanMismatch).
        PolicyError, UnknownNameError: the policy is not valid or not known.
    """
    n = check_lengths(outputs, original, plans, entities)
    placed = found_in_plans(original, plans) if plans is not None else None
    per: list[dict[Named, tuple[str, ...]]] = []
    for i, text in enumerate(iterate_with_progress(original, advance, n)):
        listed = entities[i] if entities is not None else None
        per.append(_map_direct_identifiers_to_forms(text, placed[i] if placed else None, listed, policy))
    pooled = {named: forms for identifiers in per for named, forms in identifiers.items()} if across else {}
    leaks: list[Shown] = []
    shown: list[Counter[str]] = []
    leaky = 0
    for i, output in enumerate(outputs):
        there = [Shown(i, *named) for named, forms in per[i].items() if _contains_any_form(forms, output)]
        others = ((named, forms) for named, forms in pooled.items() if named not in per[i])
        more = [Shown(i, *named) for named, forms in others if _contains_any_form(forms, output)]
        leaky += bool(there or more)
        leaks += (*there, *more)
        shown.append(Counter(leak.label for leak in there))
    had = [Counter(label for label, _ in identifiers) for identifiers in per]
    names = sorted({label for identifiers in per for label, _ in identifiers})
    cells = np.array([[(had[i][name], shown[i][name]) for name in names] for i in range(n)]).reshape(n, len(names), 2)
    return OutputLeaks(
        share(leaky, n),
        _estimate_leaked_share(cells.sum(axis=1), seed),
        {name: _estimate_leaked_share(cells[:, k], seed) for k, name in enumerate(names)},
        tuple(leaks),
    )


def _map_direct_identifiers_to_forms(
    text: str, placed: Sequence[Span] | None, names: Sequence[Named] | None, policy: str | Policy
) -> dict[Named, tuple[str, ...]]:
    """Map the direct identifiers of a text to the forms of each."""
    taxonomy: Taxonomy = TAXONOMY
    if names is not None:
        spans = [(label, surface) for label, surface in names if surface.strip()]
        beside = text
        for _, surface in sorted(spans, key=lambda s: -len(s[1])):
            beside = beside.replace(surface, " ")
    else:
        if placed is None:
            from allonym.pipeline import detect

            chosen = Policy.load(policy)
            taxonomy, placed = chosen.taxonomy, detect(text, chosen)
        places = [(s.start, s.end, s.label) for s in placed]
        spans = [(label, text[a:b].strip()) for a, b, label in places if text[a:b].strip()]
        beside = text
        for a, b, _ in sorted(places, reverse=True):
            beside = f"{beside[:a]} {beside[b:]}"
    common = {w.casefold() for w in _WORD.findall(beside)}
    out: dict[Named, tuple[str, ...]] = {}
    for label, surface in spans:
        if label in taxonomy and taxonomy.get(label).kind != "direct":
            continue
        parts: list[str] = []
        if taxonomy.get_family(label) == "PERSON":
            parts = [w for w in _WORD.findall(surface) if len(w) >= _LEAST and w.casefold() not in common]
        out[label, surface] = tuple(dict.fromkeys((surface, *(w for w in parts if w[:1].isupper()))))
    return out


def _contains_any_form(forms: Sequence[str], output: str) -> bool:
    """Whether one of the forms occurs in an output as whole words, in the same case."""
    return any(form in output and re.search(rf"(?<!\w){re.escape(form)}(?!\w)", output) for form in forms)


def _estimate_leaked_share(counts: Any, seed: int) -> Estimate:
    """Estimate the share of identifiers that occur, from (texts, 2): their number, and the number that occur."""
    if not counts.size or not counts[:, 0].sum():
        return none("no direct identifier")

    def compute_share(units: Any) -> float:
        had, shown = counts[units].sum(axis=0)
        return float(shown / had) if had else float("nan")

    had = int(counts[:, 0].sum())
    estimate = bootstrap(compute_share, len(counts), seed=seed)
    if estimate.value in (0.0, 1.0) and estimate.low == estimate.high:  # no draw can differ
        return share(int(counts[:, 1].sum()), had)
    return Estimate(estimate.value, estimate.low, estimate.high, had, estimate.method)
