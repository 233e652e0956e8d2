"""The options and outputs that the measures share."""

from __future__ import annotations

from importlib import import_module

from tests.rows import check_each_row

from allonym.cli.evaluate.options import _SECTIONS
from allonym.report.sections import SectionSpec


@check_each_row("key", sorted(_SECTIONS))
def test_the_report_of_each_measure_has_its_section(key):
    _, module, name = _SECTIONS[key]
    assert isinstance(getattr(import_module(f"allonym.report.evaluate.{module}"), name), SectionSpec)
