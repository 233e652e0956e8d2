"""No replacement keeps a word of the name that it covers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.replace.pseudonyms import KEY, kb, play

from allonym.replace.kept import find_kept_names

LABELS = ("PERSON", "ORGANIZATION", "USER_NAME", "EMAIL_ADDRESS")
WORDS = ("schneider", "OUDJQ", "Kowalska", "meyer", "von", "Zentrix", "7", "müller", "hofmann", "Ltd", "Hospital")
SIGNS = ("_", " ", ".", "-", "/", " & ")


@given(st.lists(st.sampled_from(WORDS), min_size=1, max_size=4), st.sampled_from(SIGNS), st.sampled_from(LABELS))
def test_nothing_of_a_name_is_kept(words, sign, label):
    name = sign.join(words)
    name = f"{name.replace(' ', '')}@web.example" if label == "EMAIL_ADDRESS" else name
    out = play(f"Then {{{name}|{label}}} wrote.")[5:-7]
    low = out.lower()
    assert not [
        w for w in words if len(w) > 3 and w not in ("Hospital",) and w.lower() in low.replace("_", " ").split()
    ]
    assert out != name


@pytest.mark.parametrize("key", [KEY, KEY[::-1]])
@pytest.mark.parametrize("label", LABELS[:3])
def test_a_name_behind_an_underscore_goes(label, key):
    assert "schneider" not in play(f"{{OUDJQ_schneider|{label}}} wrote", key=key)


@pytest.mark.parametrize(
    ("old", "new", "label", "want"),
    [
        ("OUDJQ_schneider", "RUSDER_schneider", "ORGANIZATION", ["schneider"]),
        ("Anna Weber", "Anna Klein", "PERSON", ["anna"]),
        ("anna.weber@web.example", "rosa.weber@reed.example", "EMAIL_ADDRESS", ["weber"]),
        ("anna.weber@web.example", "rosa.klein@web.example", "EMAIL_ADDRESS", []),
        ("Dr. Anna van der Berg Jr.", "Dr. Rosa van der Klein Jr.", "PERSON", []),
        ("University of Leeds", "University of Derby", "ORGANIZATION", []),
        ("Harlow Print Ltd", "Berrid Print Ltd", "ORGANIZATION", []),
        ("Polish Zentrix Foundation", "Polish Velmar Foundation", "ORGANIZATION", []),
        ("Weber Street", "Weber Street", "LOCATION", []),
    ],
)
def test_what_may_be_kept(old, new, label, want):
    assert find_kept_names(old, new, label, label, kb()) == want


def test_an_award_with_a_persons_name_is_another():
    out = play("the {Anna Weber Prize of Leeds|AWARD} in {Leeds|CITY}")
    assert "Weber" not in out and "Anna" not in out
