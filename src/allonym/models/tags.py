"""The tagger's labels and BIO tags, in the order of its outputs, and how valid sequences of tags are found."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

LABELS = (
    "PERSON_FIRSTNAME",
    "PERSON_LASTNAME",
    "ORGANIZATION",
    "COUNTRY",
    "REGION",
    "CITY",
    "STREET_ADDRESS",
    "FACILITY",
    "LOCATION",
    "PRODUCT",
    "EVENT",
    "WORK_OF_ART",
    "AWARD",
    "LAW",
    "ORIGIN",
    "OCCUPATION",
    "LANGUAGE",
    "DATE",
    "TIME",
    "AGE",
    "MONEY",
    "QUANTITY",
    "OTHER_IDENTIFYING_ATTRIBUTE",
)
"""The labels of the English tagger. A model folder has its own list; this one is for training."""

PARTS = (
    "ADJ", "ADP", "ADV", "AUX", "CCONJ", "DET", "INTJ", "NOUN", "NUM", "PART", "PRON", "PROPN", "PUNCT", "SCONJ", "SYM",
    "VERB", "X",
)  # fmt: skip
"""Universal parts of speech (universaldependencies.org), in the order of the second head."""

NAME_PARTS = ("PERSON_FIRSTNAME", "PERSON_LASTNAME")


def list_tag_names(labels: Sequence[str]) -> list[str]:
    """Return ``O``, then ``B-`` and ``I-`` of each label."""
    return ["O", *(f"{begin}-{label}" for label in labels for begin in "BI")]


def decode_tags(chances: Any) -> Any:
    """Find the most likely valid sequence of tags: inside follows only begin or inside of the same label.

    Args:
        chances: array ``(words, 1 + 2 * labels)`` of log probabilities in the order of :func:`list_tag_names`.

    Returns:
        Array ``(words,)`` of tag numbers. The first of equal ones wins, so that ties are always broken alike.
    """
    import numpy as np

    n, tags = chances.shape
    best = chances.argmax(axis=1)
    if _is_valid_sequence(best.tolist()):
        return best
    inside = np.arange(2, tags, 2)
    from_begin, from_inside = inside - 1, inside
    score = chances[0].copy()
    score[inside] = -np.inf
    back = np.zeros((n, tags), dtype=np.int64)
    for i in range(1, n):
        top = int(score.argmax())
        back[i] = top
        follow = np.where(score[from_begin] >= score[from_inside], from_begin, from_inside)
        new = chances[i] + score[top]
        new[inside] = chances[i, inside] + score[follow]
        back[i, inside] = follow
        score = new
    best[-1] = int(score.argmax())
    for i in range(n - 1, 0, -1):
        best[i - 1] = back[i, best[i]]
    return best


def _is_valid_sequence(tags: Sequence[int]) -> bool:
    """Return whether each inside tag follows begin or inside of the same label."""
    pairs = pairwise((0, *tags))
    return all(tag == 0 or tag % 2 or before in (tag, tag - 1) for before, tag in pairs)
