"""The page of licences is whole and true, and nothing that is installed with allonym is under the GPL or AGPL."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path

import pytest
from tests.rows import check_each_row
from tests.test_extras import closure, plain

packaging = pytest.importorskip("packaging.requirements")

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
FOR_US = {"dev", "release"}
EXTRAS = sorted(set(PROJECT["optional-dependencies"]) - FOR_US)
FAMILIES = {
    "AGPL": r"AGPL|Affero",
    "LGPL": r"LGPL|Lesser General",
    "GPL": r"(?<![AL])GPL|(?<!Lesser )(?<!Affero )General Public",
    "MPL": r"MPL|Mozilla",
    "Apache": r"Apache",
    "BSD": r"BSD",
    "MIT": r"\bMIT\b",
    "PSF": r"PSF|Python Software|matplotlib",
    "BSL": r"\bBSL|Boost",
}


def rows() -> dict[str, tuple[set[str], str]]:
    page = (ROOT / "docs" / "reference" / "licences.md").read_text(encoding="utf-8").split("## Data")[0]
    found = re.findall(r"^\| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", page, re.MULTILINE)[1:]
    return {plain(name): ({e.strip() for e in extras.split(",")}, licence) for extras, name, licence in found}


def wanted() -> dict[str, set[str]]:
    out: dict[str, set[str]] = {}
    listed = {"default": PROJECT["dependencies"], **PROJECT["optional-dependencies"]}
    for extra, lines in listed.items():
        for one in map(packaging.Requirement, lines):
            if extra not in FOR_US and one.name != "allonym":
                out.setdefault(plain(one.name), set()).add(extra)
    return out


def families(said: str) -> set[str]:
    return {name for name, pattern in FAMILIES.items() if re.search(pattern, said)}


def licence_of(name: str) -> str:
    """What a distribution says: its licence expression, else its classifiers, else the free text's first line."""
    about = metadata(name)
    if about["License-Expression"]:
        return str(about["License-Expression"])
    told = [c for c in about.get_all("Classifier") or [] if c.startswith("License ::")]
    return " ".join(told) or str(about["License"] or "").split("\n")[0]


def test_the_page_names_every_library_under_its_extras_and_no_other():
    assert {name: extras for name, (extras, _) in rows().items()} == wanted()


@pytest.mark.parametrize("name", sorted(wanted()))
def test_a_library_says_the_licence_that_the_page_gives(name):
    try:
        said = licence_of(name)
    except PackageNotFoundError:
        pytest.skip(f"{name} is not installed")
    assert families(said) & families(rows()[name][1]), said


@check_each_row("extra", ["", *EXTRAS])
def test_nothing_that_comes_along_is_under_the_gpl(extra):
    for name in closure("allonym", frozenset([extra] if extra else []), set()) - {"allonym"}:
        said = licence_of(name)
        free = families(said) - {"GPL", "AGPL"}
        # a library under a choice of licences, such as "GPL or MPL", is had under the other
        assert free or not families(said), f"{name}: {said}"


def test_families_are_told_apart():
    assert families("GNU Affero General Public License v3") == {"AGPL"}
    assert families("GPL-3.0-or-later") == {"GPL"}
    assert families("GNU Lesser General Public License v2 or later (LGPLv2+)") == {"LGPL"}
    assert families("GNU General Public License v3 (GPLv3)") == {"GPL"}
