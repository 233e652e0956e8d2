"""What a command imports comes with the extra that it is said to need: in CI everything is installed, at a user's it is not."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, packages_distributions, requires, version

import pytest

from allonym.cli import COMMANDS

packaging = pytest.importorskip("packaging.requirements")


BARE = """
import sys

class Lacking:
    def find_spec(self, name, path=None, target=None):
        if name in {lacking!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Lacking())
import {modules}
"""


def plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def closure(name: str, extras: frozenset[str], seen: set[tuple[str, frozenset[str]]]) -> set[str]:
    """The distributions that are installed with one, under these extras."""
    if (name, extras) in seen:
        return set()
    seen.add((name, extras))
    try:
        listed = requires(name) or []
    except PackageNotFoundError:  # for another platform, or not needed here
        return set()
    out = {name}
    for one in map(packaging.Requirement, listed):
        if one.marker is None or any(one.marker.evaluate({"extra": extra}) for extra in extras or {""}):
            out |= closure(plain(one.name), frozenset(one.extras), seen)
    return out


@pytest.mark.parametrize(
    ("extra", "modules"),
    [
        (
            "",
            "allonym.cli allonym.files allonym.scale.files allonym.scale.frames allonym.report.display"
            " allonym.report.vega_plots allonym.integrations.presidio allonym.integrations.spacy",
        ),
        ("", " ".join(sorted({target.partition(":")[0] for target in COMMANDS.values()}))),
        ("server", "allonym.server.app allonym.server.running"),
        ("gateway", "allonym.server.gateway"),
        ("evaluate", "allonym.evaluate allonym.report"),
        ("swap", "allonym.swap"),
        ("hf-datasets", "allonym.integrations.datasets"),
        ("langchain", "allonym.integrations.langchain"),
        ("spacy", "allonym.integrations.spacy_pipe"),
    ],
)
def test_what_is_imported_comes_with_the_extra(extra: str, modules: str) -> None:
    for one in map(packaging.Requirement, requires("allonym") or []):
        if one.marker is not None and not one.marker.evaluate({"extra": ""}) and one.marker.evaluate({"extra": extra}):
            try:
                version(one.name)
            except PackageNotFoundError:
                pytest.skip(f"{one.name} is not installed")
    known = closure("allonym", frozenset({extra} if extra else ()), set())
    lacking = [name for name, owners in packages_distributions().items() if not known & set(map(plain, owners))]
    script = BARE.format(lacking=lacking, modules=", ".join(modules.split()))
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
