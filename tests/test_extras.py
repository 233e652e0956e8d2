"""What a command imports comes with the extra that it is said to need: in CI everything is installed, at a user's it is not."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, packages_distributions, requires

import pytest

packaging = pytest.importorskip("packaging.requirements")


BARE = """
import sys

class Lacking:
    def find_spec(self, name, path=None, target=None):
        if name in {lacking!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Lacking())
import {module}
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
    ("extras", "module"),
    [
        ((), "allonym.cli"),
        ((), "allonym.files"),
        ((), "allonym.scale.files"),
        ((), "allonym.scale.frames"),
        (("server",), "allonym.server.app"),
        (("server",), "allonym.server.running"),
        (("gateway",), "allonym.server.gateway"),
        (("evaluate",), "allonym.evaluate"),
        (("evaluate",), "allonym.report"),
        (("swap",), "allonym.swap"),
        ((), "allonym.report.display"),
        ((), "allonym.report.vega_plots"),
        ((), "allonym.integrations.presidio"),
        ((), "allonym.integrations.spacy"),
        (("hf-datasets",), "allonym.integrations.datasets"),
        (("langchain",), "allonym.integrations.langchain"),
        (("spacy",), "allonym.integrations.spacy_pipe"),
    ],
)
def test_what_is_imported_comes_with_the_extra(extras: tuple[str, ...], module: str) -> None:
    try:
        __import__(module)
    except ImportError as error:
        pytest.skip(f"{error.name} is not installed")
    known = closure("allonym", frozenset(extras), set())
    lacking = [name for name, owners in packages_distributions().items() if not known & set(map(plain, owners))]
    script = BARE.format(lacking=lacking, module=module)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
