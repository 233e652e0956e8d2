import pytest
from hypothesis import given
from hypothesis import strategies as st

from allonym.intruder.scoring import CUT, measure_best_likeness, measure_likeness


@pytest.mark.parametrize(
    ("guess", "name", "value"),
    [
        ("Sam Smith", "s a m s m i t h", 1),  # P3's example: single characters, small, no spaces
        ("aab", "abb", 4 / 5),
        ("ab", "cd", 0),
        ("Sam", "Sam Smith", 5 / (3 * 12) ** 0.5),
        ("", "Sam Smith", 0),
        ("  ", "", 0),
        ("listen", "silent", 1),
    ],
)
def test_cosine_of_character_counts(guess, name, value):
    assert measure_likeness(guess, name) == pytest.approx(value)


def test_it_is_the_cosine_of_the_counts():
    from scipy.spatial.distance import cosine

    a, b = "wendell marrow", "wendel marow"
    letters = sorted(set(a + b) - {" "})
    counts = [[n.count(c) for c in letters] for n in (a, b)]
    assert measure_likeness(a, b) == pytest.approx(1 - cosine(*counts))
    assert measure_likeness(a, b) > CUT > measure_likeness(a, "Ottoline Quist")


@given(st.text(max_size=20), st.text(max_size=20))
def test_between_nothing_and_all(a, b):
    assert 0 <= measure_likeness(a, b) <= 1
    assert measure_likeness(a, b) == pytest.approx(measure_likeness(b, a))
    assert measure_likeness(a, a) == (1 if a.split() else 0)


def test_any_name_of_a_person_will_do():
    assert measure_best_likeness("Cat Princess", ["Ann Other", "cat princess"]) == 1
    assert measure_best_likeness("Cat", []) == 0
