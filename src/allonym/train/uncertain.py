"""Choose the text to annotate next by the tagger's uncertainty (Lewis and Gale 1994, cmp-lg/9407020).

Three questions may be uncertain for each word: whether its score reaches the threshold, whether it identifies at all,
and with which label. The most uncertain of the three counts.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from allonym.detection.tagger import read_thresholds, sum_wanted_chances
from allonym.models.tagger import ENGLISH, load_tagger
from allonym.policy import Policy
from allonym.protocol import AUTO

_SETTLED = 0.1  # probabilities below this, or above one minus this, are certain
_FIXED = 50  # cost of opening a document, in words


def estimate_review_gain(text: str, policy: Policy) -> float:
    """Estimate the gain of reviewing a text: uncertain words per 100 words read.

    A word with a probability of one half counts 1, a nearly certain one 0.36, others 0. Each document costs 50 words.

    Args:
        text: the text.
        policy: the policy with the tagger and its thresholds.

    Returns:
        0 to 100; 0 if the policy does not use the tagger, or the embedded tagger does not know the language.
    """
    if "tagger" not in policy.detectors:
        return 0.0
    settings = policy.settings("tagger")
    folder = Path(str(settings["model"])) if settings.get("model") else ENGLISH
    if folder == ENGLISH and policy.language not in ("en", AUTO):
        return 0.0
    model = load_tagger(folder, int(str(settings["threads"])), bool(settings["gpu"]))
    tags = model(text).tags.astype(np.float64)
    thresholds = read_thresholds(policy, model)
    if not len(tags) or not thresholds:
        return 0.0
    mass = np.exp(tags[:, 1::2]) + np.exp(tags[:, 2::2])
    inside = np.clip(mass.sum(axis=1), 1e-9, 1 - 1e-9)
    sums, evidence = (np.maximum(some, 1e-9) for some in sum_wanted_chances(tags, model.labels, thresholds))
    odds = _compute_log_odds(sums) - _compute_log_odds(sums / evidence)
    label = np.where(inside > 0.5, mass.max(axis=1) / inside, 1.0)
    doubt = np.max([_measure_uncertainty(chance) for chance in (1 / (1 + np.exp(-odds)), inside, label)], axis=0)
    return 100 * float(doubt.sum()) / (_FIXED + len(tags))


def _compute_log_odds(chance: Any) -> Any:
    chance = np.clip(chance, 1e-9, 1 - 1e-9)
    return np.log(chance / (1 - chance))


def _measure_uncertainty(chance: Any) -> Any:
    """Return 1 for a probability of one half, 0 for certain ones."""
    return 4 * chance * (1 - chance) * ((chance > _SETTLED) & (chance < 1 - _SETTLED))
