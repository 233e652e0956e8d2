"""Which text is worth annotating next: where the tagger is least sure (Lewis and Gale 1994, cmp-lg/9407020).

Of each word three things may be open: whether its chance to identify reaches the bar that decides, whether it
identifies at all, and with which label. The most open of the three counts.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from allonym.detect.tagger import read_thresholds
from allonym.models.tagger import ENGLISH, load_tagger
from allonym.policy import Policy

_SETTLED = 0.1  # a chance below this, or above one minus this, is not open
_FIXED = 50  # words that opening a document costs, whatever its length


def expected_gain(text: str, policy: Policy) -> float:
    """How much is to be learnt from a reviewer's look at a text: open words for each 100 words that are read.

    A word with even chances counts 1, one that is nearly settled 0.36, others 0. Opening a document counts as 50 words.

    Args:
        text: the text.
        policy: whose tagger and bars count.

    Returns:
        0 to 100; 0 where the policy does not use the tagger, or the embedded one does not know its language.
    """
    if "tagger" not in policy.detectors:
        return 0.0
    settings = policy.settings("tagger")
    folder = Path(str(settings["model"])) if settings.get("model") else ENGLISH
    if folder == ENGLISH and policy.language != "en":
        return 0.0
    model = load_tagger(folder, int(str(settings["threads"])), bool(settings["gpu"]))
    tags = model(text).tags.astype(np.float64)
    if not len(tags):
        return 0.0
    bars, _ = read_thresholds(policy, model)
    mass = np.exp(tags[:, 1::2]) + np.exp(tags[:, 2::2])
    kind = mass.argmax(axis=1)
    inside = np.clip(mass.sum(axis=1), 1e-9, 1 - 1e-9)
    bar = np.clip([bars[label] for label in model.labels], 1e-3, 1 - 1e-3)[kind]
    odds = np.log(inside / (1 - inside)) - np.log(bar / (1 - bar))
    label = np.where(inside > 0.5, mass.max(axis=1) / inside, 1.0)
    doubt = np.maximum.reduce(
        [_measure_openness(1 / (1 + np.exp(-odds))), _measure_openness(inside), _measure_openness(label)]
    )
    return 100 * float(doubt.sum()) / (_FIXED + len(tags))


def _measure_openness(chance: Any) -> Any:
    """1 for even chances, 0 for settled ones."""
    return 4 * chance * (1 - chance) * ((chance > _SETTLED) & (chance < 1 - _SETTLED))
