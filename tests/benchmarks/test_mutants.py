"""The lines that are made wrong are still there; whether tests see it takes minutes: ``benchmarks/mutants.py``."""

from __future__ import annotations

from benchmarks.mutants import MUTANTS, ROOT, find_line


def test_every_line_stands_once_in_its_file() -> None:
    for mutant in MUTANTS:
        find_line(mutant)
        assert "\n" not in mutant.line + mutant.wrong and mutant.line != mutant.wrong


def test_every_mutant_names_tests_that_exist() -> None:
    for mutant in MUTANTS:
        assert (ROOT / "tests" / mutant.tests.partition("::")[0].split()[0]).exists()
