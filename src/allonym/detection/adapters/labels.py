"""Map a model's labels to the taxonomy. A label without a mapping is an error, since dropping it would uncover text.

The mapping is looked up in the policy's own table, among the labels of the taxonomy, in the schemes of ``labels.tsv``,
and in ``labels.toml`` beside this file, which also holds the prompts for zero-shot models; the first match counts.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from types import MappingProxyType

from allonym.errors import PolicyError, check_names
from allonym.labels import SCHEMES
from allonym.policy import Policy

_NONE: Mapping[str, str] = MappingProxyType({})


@cache
def read_label_tables() -> Mapping[str, Mapping[str, str]]:
    """The tables of ``labels.toml``: ``names`` (a model's label to ours) and ``prompts`` (our label to words)."""
    return tomllib.loads(files("allonym").joinpath("detection", "adapters", "labels.toml").read_text(encoding="utf-8"))


class LabelMap:
    """Maps a model's labels to those of a policy's taxonomy, or to ``""`` where the policy leaves them out.

    Args:
        policy: its table ``[detect.DETECTOR] labels`` comes first.
        detector: names that table.
        schemes: schemes of ``labels.tsv`` that are asked before the others.
        model_labels: all labels of the model, where it can list them. Then an unmapped label, or a row for a label that
            the model does not have, is an error at once.
        extra: further rows, which come before the policy's.
        fallback: label of what has no mapping; None: that is an error.

    Raises:
        PolicyError: a label has no mapping. The call raises it, too, where ``model_labels`` was not given.
        UnknownNameError: the policy's table has a row for a label that the model does not have.
    """

    def __init__(
        self,
        policy: Policy,
        detector: str,
        schemes: tuple[str, ...] = (),
        model_labels: Iterable[str] | None = None,
        extra: Mapping[str, str] = _NONE,
        fallback: str | None = None,
    ) -> None:
        self._policy = policy
        self._detector = detector
        self._schemes = (*schemes, *(s for s in SCHEMES if s not in schemes))
        self._fallback = fallback
        self._rows: Mapping[str, str] = {**policy.settings(detector)["labels"], **extra}
        for name, label in extra.items():
            if label:
                policy.taxonomy.get(label, f"label of {name}")
        self._seen: dict[str, str] = {}
        if model_labels is not None:
            names = sorted(set(model_labels))
            check_names("label of the model", self._rows, names, f"detect.{detector}.labels")
            self._refuse_unmapped_labels([name for name in names if self._find_label(name) is None])

    def __call__(self, name: str) -> str:
        if name not in self._seen:
            label = self._find_label(name)
            if label is None and self._fallback is None:
                self._refuse_unmapped_labels([name])
            self._seen[name] = label if label is not None else self._fallback or ""
        return self._seen[name]

    def _refuse_unmapped_labels(self, names: list[str]) -> None:
        if names:
            listed = ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")
            raise PolicyError(
                f"detect.{self._detector}: the model's labels {listed} are in no scheme that is known here; map each "
                f'in [detect.{self._detector}.labels], such as "{names[0]}" = "OTHER_IDENTIFYING_ATTRIBUTE", or to "" '
                "to leave it out"
            )

    def _find_label(self, name: str) -> str | None:
        if name in self._rows:
            return self._rows[name]
        taxonomy = self._policy.taxonomy
        plain = re.sub(r"[\s\-]+", "_", name.strip()).upper()
        if plain in taxonomy:
            return plain
        for scheme in self._schemes:
            for written in (name, plain):
                if matches := taxonomy.from_scheme(written, scheme):
                    return self._find_common_ancestor(matches)
        label = read_label_tables()["names"].get(name.lower())
        return label if label in taxonomy else None

    def _find_common_ancestor(self, labels: tuple[str, ...]) -> str:
        """One label for several that a scheme does not distinguish: their nearest common ancestor.

        Where the policy looks for only some of them, it is one of these, so that no label it looks for is lost.
        """
        taxonomy = self._policy.taxonomy
        enabled = [label for label in labels if self._policy.looks_for(label)] or list(labels)
        shared = [a for a in taxonomy.lineage(enabled[0]) if all(taxonomy.within(label, a) for label in enabled)]
        above = shared[0] if shared else enabled[0]
        lost = self._policy.looks_for(enabled[0]) and not self._policy.looks_for(above)
        return enabled[0] if lost else above
