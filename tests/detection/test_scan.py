"""The RE2 layer: wider patterns for sets, and matches without objects."""

import re2
from hypothesis import given
from hypothesis import strategies as st

from allonym.detection.rules import read_builtin_rules
from allonym.detection.scan import compile_pattern, encode_text, find_match, iterate_matches, widen_classes

WIDENED = {
    r"\d+-x": r"\d+-x",
    r"\p{Lu}[\p{L}'-]*": r"[A-Z\x{80}-\x{10FFFF}][A-Za-z\x{80}-\x{10FFFF}'-]*",
    r"(?:^|[^\p{L}\pN])ul": r"(?:^|[^A-Za-z0-9])ul",
    r"[[:digit:]\pL]": r"[[:digit:]A-Za-z\x{80}-\x{10FFFF}]",
    r"[]\pN]": r"[]0-9\x{80}-\x{10FFFF}]",
    r"\[\pN": r"\[[0-9\x{80}-\x{10FFFF}]",
    r"\Q\pL[\E\pL": r"\Q\pL[\E[A-Za-z\x{80}-\x{10FFFF}]",
    r"\P{L}\p{Lu}": r"\P{L}\p{Lu}",
    r"\p{Greek}\p{Lu}": r"\p{Greek}\p{Lu}",
}
"""A pattern and what becomes of it; those with other classes stay whole."""


def test_classes_are_widened() -> None:
    assert {pattern: widen_classes(pattern) for pattern in WIDENED} == WIDENED


@given(
    st.text(alphabet="aZß éÉÑ7-'’.,@ſK我\n", max_size=30),
    st.sampled_from([*WIDENED, r"(?i)[^\p{Ll}]s", r"(?i)\p{Lu}k"]),
)
def test_a_widened_pattern_matches_wherever_the_pattern_does(text: str, pattern: str) -> None:
    data = encode_text(text)
    if compile_pattern(pattern).search(data):
        assert compile_pattern(widen_classes(pattern)).search(data)


def test_widened_patterns_of_the_tables_are_smaller() -> None:
    patterns = [rule.pattern for rule in read_builtin_rules() if "\\p" in rule.pattern]
    wide, exact = (sum(compile_pattern(p).programsize for p in ps) for ps in (map(widen_classes, patterns), patterns))
    assert len(patterns) > 20
    assert wide < exact / 9


@given(st.text(alphabet="ab1é ", max_size=12), st.sampled_from([r"a*", r"(a)|b", r"\b", r"[ab]+(1)?"]))
def test_matches_are_those_of_re2(text: str, pattern: str) -> None:
    compiled, data = compile_pattern(pattern), encode_text(text)

    def list_places(match: re2._Match) -> list[tuple[int, int]]:
        return [match.span(group) for group in range(compiled.groups + 1)]

    listed = [list(places) for places in iterate_matches(compiled, data, 0, len(data))]
    assert listed == [list_places(match) for match in compiled.finditer(data)]
    first = compiled.match(data)
    places = find_match(compiled, data, 0, len(data), at_start=True)
    assert (places and list(places)) == (first and list_places(first))
