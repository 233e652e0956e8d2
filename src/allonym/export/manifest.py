"""The manifest of a training set: its policy, its contents and its measured risk. It holds no text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from allonym.serial import Serialisable

SCHEMA = 1
FILE = "manifest.json"
_NONE: Mapping[str, Any] = MappingProxyType({})

CHECK = (
    "allonym vault digests VAULT --secret-file KEY -o FILE.digests",
    "allonym evaluate generations OUTPUTS.jsonl --field completion --digests FILE.digests --baseline BEFORE.jsonl",
)
"""Commands that check the outputs of a model trained on the set for originals."""


@dataclass(frozen=True, slots=True)
class Manifest(Serialisable):
    """The content of ``manifest.json``.

    Attributes:
        shape: ``chat``, ``sft`` or ``sft-instruction``.
        policy: its name and fingerprint, whether a key and a vault were given, and whether the texts were anonymised
            ``here`` or ``before``; then with the digest of the run's report.
        versions: versions of allonym and of the packages that decide on findings.
        split: shares, seed, whether it is keyed, and by what documents are grouped.
        counts: documents read, in the set, and left out; examples by task.
        left_out: documents left out, by reason.
        files: name to counts of examples, documents and groups (``units``), bytes, and BLAKE2b (32 bytes).
        labels, operators: mentions per label and edits per operator, of the documents in the set.
        prompts: digest of the fixed texts of all examples, and the number of findings in them, which should be 0.
        risk: the measured risk; ``none`` says why none was measured.
    """

    shape: str
    policy: Mapping[str, Any]
    versions: Mapping[str, str]
    split: Mapping[str, Any]
    counts: Mapping[str, Any]
    left_out: Mapping[str, int]
    files: Mapping[str, Mapping[str, Any]]
    labels: Mapping[str, int]
    operators: Mapping[str, int]
    prompts: Mapping[str, Any]
    risk: Mapping[str, Any] = field(default_factory=lambda: _NONE)

    def to_dict(self, texts: bool = False) -> dict[str, Any]:
        """Plain values for JSON."""
        return {"schema": SCHEMA, **Serialisable.to_dict(self), "check": list(CHECK)}

    def to_json(self) -> str:
        """:meth:`to_dict` as indented JSON with a final line end."""
        return json.dumps(self.to_dict(), ensure_ascii=False, indent=2, allow_nan=False) + "\n"

    @property
    def exit_code(self) -> int:
        """0 where every document is in the set, 1 where one was left out."""
        return int(bool(self.left_out))
