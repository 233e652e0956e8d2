"""How badly a sentence reads once one of its words is general: from 0, as any sentence, to 1, it says nothing there or
breaks grammar. English only."""

from __future__ import annotations

from collections.abc import Sequence

from allonym.evaluate.general_words import (
    INSIDE,
    MASS,
    Word,
    find_plain_verb,
    get_word,
    has_own_class,
    read_word_list,
    to_singular,
)

_OWNERS = frozenset("his her their its my our your".split())
_PLACED = frozenset("in at from with".split())
_BE = frozenset("is was were being be been are".split())
_HAVE = frozenset("have has had having".split())


def measure_roughness(words: Sequence[Word], i: int, step: int, new: str) -> float:
    """Return how badly a sentence reads, 0 to 1, when one of the choices of word ``i`` stands there.

    Args:
        words: of a text.
        i: number of the word.
        step: number of the choice, from 0.
        new: the choice, see :func:`allonym.evaluate.general_words.list_general_replacements`.
    """
    word = words[i]
    if not new:
        return 1.0 if _leaves_gap(words, i) else 0.0
    if word.part == "NUM" or word.lower_text in read_word_list("numbers", "words"):
        return 0.0
    if word.part == "VERB":
        return _measure_verb(words, i, new)
    return 0.0 if word.part in ("NOUN", "PROPN") and not step and _is_plain_noun(words, i, new) else 1.0


def _measure_verb(words: Sequence[Word], i: int, new: str) -> float:
    if words[i].lower_text in read_word_list("verbs", "copulas"):
        return 0.0
    if new == find_plain_verb(words, i):
        return 0.1
    first = new.split()[0]
    if first in _BE and get_word(words, i + 1).lower_text in _PLACED:
        return 0.5
    return 0.6 if first in _HAVE else 1.0


def _is_plain_noun(words: Sequence[Word], i: int, new: str) -> bool:
    """Tell whether a general noun reads well in the place of noun ``i``."""
    noun, is_many = to_singular(new)
    if noun not in read_word_list("reading", "own" if has_own_class(words[i].lower_text) else "plain"):
        return False
    k = i - 1
    while get_word(words, k).part in INSIDE and words[k].label is None:
        k -= 1
    lead = get_word(words, k)
    if noun in ("person", "place") and _is_owner(lead):
        return False
    if noun in MASS:
        return noun in ("sport", "illness") or lead.lower_text not in ("a", "an")  # a music
    if is_many:
        return to_singular(words[i].lower_text)[1] or lead.part != "VERB"  # elected leaders
    return lead.part not in ("AUX", "ADP", "SCONJ")  # was worker


def _is_owner(word: Word) -> bool:
    return (word.label or "").startswith("PRONOUN") or word.lower_text in _OWNERS


def _leaves_gap(words: Sequence[Word], i: int) -> bool:
    """Tell whether something is missing where word ``i`` was."""
    word, before, after = words[i], get_word(words, i - 1), get_word(words, i + 1)
    if before.text == "-" and before.end == word.start:
        return True  # whippet-like
    if word.part == "NOUN" and after.label is not None:
        return _is_owner(before) or before.part in ("ADJ", "ADP")  # her brother PERSON_2
    if word.part == "VERB":
        return word.text.endswith("ing") and after.part not in ("NOUN", "PROPN")
    if word.part == "ADJ" and after.part == "VERB":
        return True  # happy looking
    is_alone = before.part not in ("ADJ", "NOUN") and after.part in ("NOUN", "PROPN")
    return is_alone and to_singular(after.lower_text)[0] in read_word_list("reading", "bare")
