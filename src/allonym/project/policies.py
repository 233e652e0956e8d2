"""The policy of a project, as plain tables: what its file held when the project was made, with the lists that it read.

So the project needs neither the file nor its lists any more, and nothing but sealed text holds their terms.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from allonym.errors import PolicyError
from allonym.models.tags import LABELS
from allonym.policy import Policy, presets
from allonym.text.terms import read_terms

Tables = list[dict[str, Any]]
"""Policy tables, each extending the one before; the first may name a preset in ``extends``."""


def read_policy_tables(source: str | Path) -> Tables:
    """Read a preset's name or a policy file, with all files that it extends, into tables that stand alone.

    Raises:
        PolicyError, UnknownNameError: as :meth:`allonym.policy.Policy.load`.
    """
    Policy.load(source)  # the messages of a policy that is not valid
    if isinstance(source, str) and source in presets():
        return [{"extends": source}]
    path = Path(source)
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    for lists in (table.get("dictionary", {}), table.get("exclusions", {})):
        for label, value in lists.items():
            if isinstance(value, dict):
                lists[label] = list(read_terms(path.parent / value["file"], value.get("column")))
    table.setdefault("name", path.stem)
    parent = str(table.get("extends", ""))
    if parent.endswith(".toml"):
        del table["extends"]
        return [*read_policy_tables(path.parent / parent), table]
    return [table]


def load_policy_tables(tables: Sequence[dict[str, Any]], where: str) -> Policy:
    """Return the policy that tables describe.

    Raises:
        PolicyError: this version of allonym does not understand them.
    """
    policy = Policy(name="")
    for table in tables:
        changes = dict(table)
        if parent := changes.pop("extends", ""):
            policy = Policy.load(str(parent))
        try:
            policy = policy.changed({"name": policy.name, **changes}, f"{where}: policy") if changes else policy
        except AttributeError:
            raise PolicyError(f"{where}: the policy is damaged") from None
    return policy


def list_wanted_tagger_labels(policy: Policy) -> tuple[str, ...]:
    """Return the tagger's labels that a policy looks for."""
    lineages = {label: policy.taxonomy.lineage(label) for label in LABELS}
    return tuple(
        label
        for label, lineage in lineages.items()
        if not policy.leaves_out(label) and any(map(policy.looks_for, lineage))
    )
