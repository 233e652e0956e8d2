"""Names for detectors, operators and readers: literal tables, entry points and ``register()``.

A registry maps a name to ``"module:attribute"``, so that nothing is imported before it is used. Other packages
add names through entry points in the group ``allonym.<kind>`` or by calling :meth:`Registry.register`.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import entry_points

from allonym.errors import UnknownNameError, UsageError


class Registry:
    """One kind of thing that can be picked by name."""

    def __init__(self, kind: str, table: Mapping[str, str]) -> None:
        self.kind = kind
        self._table: dict[str, object] = dict(table)
        self._scanned = False

    def register(self, name: str, value: object) -> None:
        """Add ``name``; ``value`` is the thing itself or ``"module:attribute"``. A taken name is an error."""
        if name in self._table:
            raise UsageError(f"{self.kind} {name!r} is registered already")
        self._table[name] = value

    def names(self) -> tuple[str, ...]:
        """All known names, sorted, those from entry points too."""
        self._scan()
        return tuple(sorted(self._table))

    def get(self, name: str, where: str = "") -> object:
        """The thing called ``name``; raises :class:`UnknownNameError` with near matches."""
        if name not in self._table:
            self._scan()
        try:
            value = self._table[name]
        except KeyError:
            raise UnknownNameError(self.kind, name, self._table, where) from None
        if isinstance(value, str):
            module, _, attribute = value.partition(":")
            value = getattr(import_module(module), attribute)
            self._table[name] = value
        return value

    def _scan(self) -> None:
        if self._scanned:
            return
        self._scanned = True
        for point in entry_points(group=f"allonym.{self.kind}s"):
            self._table.setdefault(point.name, point.value)


detectors = Registry(
    "detector",
    {
        "rules": "allonym.detect.rules:build",
        "spoken": "allonym.detect.spoken:build",
        "lexicon": "allonym.detect.lexicon:build",
        "speakers": "allonym.detect.speakers:build",
    },
)
"""Factories ``(Policy) -> ((Document) -> Iterable[Span])``."""

operators = Registry(
    "operator",
    {
        "keep": "allonym.replace.operators:keep",
        "suppress": "allonym.replace.operators:suppress",
        "tag": "allonym.replace.operators:tag",
        "mask": "allonym.replace.operators:mask",
        "hash": "allonym.replace.keyed:hash",
        "encrypt": "allonym.replace.keyed:encrypt",
        "generalise": "allonym.replace.generalise:generalise",
        "shift_dates": "allonym.replace.dates:shift_dates",
    },
)
"""Operators; see :mod:`allonym.replace` for the protocol."""
