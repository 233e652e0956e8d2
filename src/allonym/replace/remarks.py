"""The remark of operators that ask a model: how many entities had to do without it. Written and read here only."""

from __future__ import annotations

import re
from collections.abc import Iterable

_LACKED = re.compile(r"[a-z0-9]+: (\d+) of \d+ entities got an offline pseudonym")


def lacked(operator: str, lacking: int, every: int, why: str = "") -> str:
    """The remark that says for how many of its entities an operator's model had no usable value."""
    return f"{operator}: {lacking} of {every} entities got an offline pseudonym{f' ({why})' if why else ''}"


def without_model(remarks: Iterable[str]) -> int:
    """How many entities of a document had to do without a model, by the remarks that :func:`lacked` made."""
    return sum(int(told[1]) for told in map(_LACKED.match, remarks) if told)
