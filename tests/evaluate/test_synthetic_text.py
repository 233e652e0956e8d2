"""Syntheticity: what cannot be told apart is at chance, what has marks is found, and both versions share a fold."""

from __future__ import annotations

import json
import math
import random
import subprocess
import sys

import pytest

from allonym.errors import DataError, UsageError
from allonym.evaluate.synthetic_text import ALWAYS, syntheticity
from allonym.report.evaluate.utility import syntheticity_section

NAMES = tuple(
    f"{a}{b}{c}" for a in ("Bar", "Lin", "Tor", "Mel", "Wes", "Hal") for b in "aeio" for c in ("n", "ck", "ts")
)
WORDS = "the meeting starts late and every report about our new budget says that nothing more can be done here".split()


def corpus(n: int, seed: int, new: tuple[str, ...] = NAMES) -> tuple[list[str], list[str]]:
    """Texts with a name each, and the same with another name drawn from ``new``."""
    rng = random.Random(seed)
    old, out = [], []
    for i in range(n):
        words = rng.sample(WORDS, 9)
        words.insert(rng.randrange(9), "{}")
        text = f"{i} " + " ".join(words)
        first = rng.choice(NAMES)
        old.append(text.format(first))
        out.append(text.format(rng.choice([name for name in new if name != first])))
    return old, out


def test_names_of_one_source_are_at_chance() -> None:
    found = syntheticity(*corpus(300, 1))
    assert found.accuracy.low <= 0.5 <= found.accuracy.high
    assert found.pairs == 300
    assert found.folds == 5


def test_placeholders_give_it_away() -> None:
    found = syntheticity(*corpus(60, 2, ("[PERSON_1]", "[PERSON_2]")))
    assert found.f1.value == found.told_apart.value == 1
    kinds = dict(found.kinds)
    assert math.isclose(sum(kinds.values()), 1)
    assert found.signs[0].side == "pseudonymised"
    assert any("PERSON" in sign.term for sign in found.signs)
    assert max(kinds, key=lambda k: kinds[k]) in ("tag", "name or capitalised word")


def test_unchanged_texts_are_left_out_and_counted() -> None:
    old, new = corpus(40, 3)
    new[:10] = old[:10]
    found = syntheticity(old, new)
    assert (found.pairs, found.unchanged) == (30, 10)
    nothing = syntheticity(old, old)
    assert math.isnan(nothing.f1.value)
    assert "changed" in nothing.f1.method
    assert nothing.unchanged == 40


def test_copies_of_a_text_cannot_be_learnt_by_heart() -> None:
    # One text many times, with one pseudonym: only a model that has seen the copies could tell.
    old, new = corpus(30, 4)
    found = syntheticity([*old, *["only one text with Aaab"] * 30], [*new, *["only one text with Zzzb"] * 30])
    assert found.pairs == 60
    assert found.accuracy.n == 31
    assert found.accuracy.value < 0.7  # learnt by heart, the copies alone would make it 0.75


def test_one_text_is_not_enough() -> None:
    found = syntheticity(["a b c"], ["a b d"])
    assert math.isnan(found.accuracy.value)
    assert found.pairs == 1
    assert syntheticity(["", "a"], ["x", "b"]).pairs == 2  # nothing in common: nothing learnt


def test_counts_agree_with_a_direct_computation() -> None:
    found = syntheticity(*corpus(50, 6, (*NAMES[:3], "Zyx")))
    assert math.isclose(found.f1.value, 2 * _hits(found) / (_hits(found) + found.pairs + _wrong(found)) * 1)
    assert found.precision.low <= found.precision.value <= found.precision.high


def _hits(found: object) -> float:
    return found.recall.value * found.pairs  # type: ignore[attr-defined]


def _wrong(found: object) -> float:
    return _hits(found) / found.precision.value - _hits(found)  # type: ignore[attr-defined]


def test_bad_input() -> None:
    with pytest.raises(DataError, match="as many anonymised"):
        syntheticity(["a"], [])
    with pytest.raises(DataError, match="1 text at least"):
        syntheticity([], [])
    with pytest.raises(UsageError, match="2 folds"):
        syntheticity(["a", "b"], ["c", "d"], folds=1)


def test_no_word_of_the_texts_unless_asked_for() -> None:
    found = syntheticity(*corpus(40, 7, ("Qwertzuiop",)))
    assert "Qwertz" not in repr(found) + json.dumps(found.to_dict()) + repr(found.signs)
    told = found.to_dict(texts=True)
    assert "Qwertz" in json.dumps(told)
    assert "Qwertz" not in repr(syntheticity_section(told))
    assert "Qwertz" in repr(syntheticity_section(told, texts=True))


def test_section_says_why_there_is_no_value() -> None:
    section = syntheticity_section(syntheticity(["a"], ["a"]).to_dict())
    assert section is not None
    assert "Not measured" in repr(section)
    assert syntheticity_section({}) is None
    assert math.isclose(ALWAYS, 2 / 3)


@pytest.mark.slow
def test_same_under_every_hash_seed() -> None:
    code = (
        "import json\nfrom tests.evaluate.test_synthetic_text import corpus\n"
        "from allonym.evaluate.synthetic_text import syntheticity\n"
        "print(json.dumps(syntheticity(*corpus(30, 8, ('Ab Cd', 'Ef'))).to_dict(texts=True)))"
    )
    runs = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": "src:."},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(runs) == 1


def test_progress() -> None:
    calls: list[tuple[int, int]] = []
    syntheticity(*corpus(20, 9), folds=4, advance=lambda done, of: calls.append((done, of)))
    assert calls == [(1, 4), (2, 4), (3, 4), (4, 4)]


def test_two_words_of_which_one_is_a_tag_are_a_tag_not_a_number():
    old, _ = corpus(40, 3)
    new = [" ".join("[PERSON_1]" if word in NAMES else word for word in text.split()) for text in old]
    kinds = dict(syntheticity(old, new).kinds)
    assert kinds["number"] < 0.02
    assert kinds["tag"] > 0.5
