"""``allonym evaluate``: is it safe to share, and is it still useful?"""

from __future__ import annotations

from collections.abc import Mapping

import click

from allonym.cli.lazy import LazyGroup

COMMANDS: Mapping[str, str] = {}


@click.group(cls=LazyGroup, lazy=COMMANDS, short_help="Measure what is left: risk, leaks, usefulness.")
def evaluate() -> None:
    """Measure what anonymised texts still give away, and what they are still good for. Offline."""
