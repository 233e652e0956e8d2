"""What is remembered about texts: memory must not grow with the number of long documents."""

from __future__ import annotations

import tracemalloc

import pytest

from allonym.detection.languages import count_languages, identify_passages
from allonym.detection.mentions import is_written_with_care, uses_capitals
from allonym.detection.technical import find_technical_passages
from allonym.text.dates import find_date_order
from allonym.text.memory import LONG, remember_texts


@pytest.mark.parametrize(
    "function",
    [find_date_order, find_technical_passages, uses_capitals, is_written_with_care, identify_passages, count_languages],
)
def test_memory_does_not_grow_with_the_number_of_long_texts(function):
    size = 4 * LONG
    held = []
    tracemalloc.start()
    try:
        for number in range(8):
            function(f"We met in room {number}. The tea was cold.\n".ljust(size, "."))
            held.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    assert held[-1] - held[2] < size


def test_a_result_is_computed_once_for_each_text_and_argument():
    calls = []

    @remember_texts(4)
    def measure(text, factor=1):
        calls.append(text)
        return factor * len(text)

    for text in ("", "short", "x" * LONG, "y" * LONG):
        assert [measure(text), measure(text), measure(text, factor=2)] == [len(text), len(text), 2 * len(text)]
    assert len(calls) == 8
