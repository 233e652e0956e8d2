"""What is known, by the words of its replacements."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from allonym.restoration.index import Index
from allonym.vault import Known


@given(st.text("abcdel", min_size=6, max_size=12), st.integers(0, 11), st.sampled_from("ins del sub swap".split()))
def test_every_single_slip_is_found(word, at, slip):
    at %= len(word) - 1
    wrong = {
        "ins": word[:at] + "x" + word[at:],
        "del": word[:at] + word[at + 1 :],
        "sub": word[:at] + "x" + word[at + 1 :],
        "swap": word[:at] + word[at + 1] + word[at] + word[at + 2 :],
    }[slip]
    index = Index([Known(word.capitalize(), "Ada", "PERSON", "pseudonym@1", "1")])
    assert wrong == word or word in list(index._find_slips(wrong))
