"""Phrases of an English sentence that can go as a whole, so that what is left is a sentence still.

They are found by parts of speech and order alone, so only where that is fairly sure. Behind the main verb and its
object goes what a preposition, a conjunction, a relative pronoun or a comma opens, up to the end of the sentence, or a
short phrase. Before the verb goes an introduction with a comma, or what stands between commas behind the subject.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from allonym.evaluate.general_words import AMOUNTS, Word, get_word, is_preposition

_SUBORDINATING = frozenset(
    "after although as because before if since so though till unless until when where whereas whether while "
    "whilst".split()
)
_ALWAYS_CLAUSES = frozenset("after although because before since though unless until whereas while whilst".split())
_RELATIVE = frozenset("who which whom whose that where when".split())
_PAIRS = frozenset("both either neither between not only".split())
_NOMINAL = frozenset({"NOUN", "PROPN", "PRON", "NUM"})
_VERBAL = frozenset({"VERB", "AUX"})
_OF_PARTS = frozenset(
    "age capital circle honor honour level member one position range second town "
    "village total part most some all rest end each many few none half".split()
)
_FINITE = frozenset("is was are were has had have".split())
_QUOTES = frozenset('"“”')
_PARTICIPLES = frozenset(
    "based born called entitled founded known located made named played situated titled written".split()
)
_TIMES = frozenset("career childhood days difficulty fun life lives time trouble years youth".split())
_WITHOUT_OBJECT = frozenset(
    "competed debuted died emerged graduated married performed played practised retired returned sang studied taught "
    "trained travelled volunteered worked wrote".split()
)
_OPEN = frozenset("been considered including known named lived remained spent stayed such was were".split())
"""Words that ask for more."""
_CONDITIONS = frozenset("as because if since when while".split())
_LONGEST = 200  # words of a sentence: the phrases of speech without full stops are too many
_LATER = frozenset("in at on during since until before after with for as from".split())


def list_phrases(words: Sequence[Word], first: int, last: int) -> list[tuple[int, int]]:
    """List phrases of a sentence that can go, each by its first and its last word; of a very long one none.

    Args:
        words: of a text.
        first, last: those of the sentence.
    """
    if last - first >= _LONGEST:
        return []
    end = last + 1 if words[last].text[0] not in ".!?" or words[last].label is not None else last
    main = _find_main_verb(words, first, end)
    if main is None:
        return []
    out = set(_list_before_verb(words, first, main))
    tails = [b for b in range(main + 1, end) if _opens_tail(words, b, main, end)]
    out.update((b, end - 1) for b in tails if _is_balanced(words[b:end]))
    out.update(_list_between(words, main, end, tails))
    out.update(_list_coordinated(words, main, end))
    return sorted(out)


def _is_nominal(word: Word) -> bool:
    return word.label is not None or word.part in _NOMINAL


def _is_verb(word: Word) -> bool:
    return word.label is None and word.part in _VERBAL


def _is_relative(word: Word) -> bool:
    return word.label is None and word.lower_text in _RELATIVE


def _find_main_verb(words: Sequence[Word], first: int, end: int) -> int | None:
    """Return the first verb of a sentence that has a subject and stands in no subordinate clause."""
    start = first
    opening = words[first]
    if opening.label is None and (
        opening.part == "SCONJ" or opening.lower_text in _SUBORDINATING or opening.text.endswith("ing")
    ):
        comma = next((i for i in range(first, end) if words[i].text == ","), None)
        if comma is None:
            return None
        start = comma + 1
    has_comma = False
    for i in range(start, end):
        has_comma |= words[i].text == ","
        if not _is_verb(words[i]) or words[i].text.endswith("ing"):
            continue
        k = i - 1
        while k > start and words[k].label is None and words[k].part == "ADV":
            k -= 1
        if k < start:
            continue
        if words[k].text == "," and words[i].lower_text in _FINITE:
            return i
        if not _is_nominal(words[k]) or _is_relative(words[k]):
            continue
        subject = k
        while k >= start and (_is_nominal(words[k]) or words[k].part in ("DET", "ADJ") or words[k].text in "'’"):
            if _is_relative(words[k]):
                break
            k -= 1
        lead = get_word(words, k) if k >= start else get_word(words, -1)
        if lead.label is None and (lead.part == "SCONJ" or _is_relative(lead) or lead.lower_text in _SUBORDINATING):
            continue
        before = get_word(words, subject - 1)
        if words[subject].part == "PRON" and subject > start and before.part == "NOUN":
            continue  # the books she wrote
        return i
    return None


def _closes(words: Sequence[Word], i: int) -> bool:
    """Tell whether a clause can end with word ``i``."""
    word, before = words[i], get_word(words, i - 1)
    if _is_nominal(word) and not _is_relative(word):
        return not (word.label is None and word.part == "PRON" and word.lower_text in ("their", "his", "her", "its"))
    if word.part == "ADJ":
        return before.part in ("AUX", "ADV") or before.lower_text in ("became", "seems", "looks")
    return word.part == "ADV" and _is_nominal(before)


def _opens_tail(words: Sequence[Word], b: int, main: int, end: int) -> bool:
    """Tell whether a sentence can end before word ``b``."""
    word, before, after = words[b], words[b - 1], get_word(words, b + 1)
    if word.label is not None or not _is_balanced(words[main:b]):
        return False
    low = word.lower_text
    is_ended = _closes(words, b - 1)
    is_after_verb = before.label is None and before.part == "VERB" and not before.text.endswith("ing")
    is_whole = before.lower_text in _WITHOUT_OBJECT and is_preposition(word)
    if is_after_verb:
        is_ended = is_whole or low in _ALWAYS_CLAUSES or word.text == "," or word.part == "CCONJ"
    if not is_ended or before.lower_text in _OPEN or before.lower_text == "position":
        return False
    if _is_open_clause(words, b, main, end):
        return False
    if word.text == ",":
        clause = next((k for k in range(b - 1, main, -1) if words[k].text == ","), main)
        if any(words[k].lower_text in _CONDITIONS for k in range(clause + 1, b)):
            return False  # what follows is the clause that counts
        return not any(words[k].text == "," for k in range(max(main, b - 7), b))
    if low == "as" and before.lower_text in ("well", "soon", "long", "far", "much"):
        return False
    if word.part == "CCONJ":
        if low in _PAIRS:
            return False
        near = {words[k].lower_text for k in range(main, b)}
        is_clause = _is_verb(after) or any(map(_is_verb, words[b + 1 : b + 5]))
        is_listed = any(words[k].text == "," for k in range(max(main, b - 5), b))
        return not near & _PAIRS and (is_clause or not is_listed)
    if low in ("that", "which", "who", "whom", "whose") and word.part in ("PRON", "SCONJ", "DET"):
        return before.part in ("NOUN", "PROPN") or before.label is not None
    if low in _SUBORDINATING and word.part in ("SCONJ", "ADV"):
        return low not in ("if", "whether", "so") or not is_after_verb
    if word.part == "PART" and low == "to":
        return before.part in ("NOUN", "PROPN") and not (before.label or "").startswith("PERSON")
    if word.part == "VERB":
        is_noun = before.part in ("NOUN", "PROPN") and not (before.label or "").startswith(("DATE", "NUMERIC"))
        return is_noun and before.lower_text not in _TIMES and (low.endswith("ing") or low in _PARTICIPLES)
    if is_preposition(word):
        if low == "of":
            return before.part == "NOUN" and before.label is None and before.lower_text not in AMOUNTS | _OF_PARTS
        return not (before.part == "ADV" or (before.part == "ADJ" and low in ("to", "of")))
    return False


def _is_open_clause(words: Sequence[Word], b: int, main: int, end: int) -> bool:
    """Tell whether a clause before word ``b`` still waits for its verb."""
    opener = next((k for k in range(b - 1, main, -1) if _opens_clause(words[k])), main)
    if opener == main or any(map(_is_verb, words[opener + 1 : b])):
        return False
    until = next((k for k in range(b + 1, end) if _opens_clause(words[k])), end)
    return any(map(_is_verb, words[b:until]))


def _opens_clause(word: Word) -> bool:
    return word.label is None and (word.part in ("CCONJ", "SCONJ") or word.text == "," or _is_relative(word))


def _is_balanced(words: Sequence[Word]) -> bool:
    """Tell whether brackets and quotes open and close in words."""
    text = "".join(word.text for word in words if word.label is None and word.part == "PUNCT")
    return text.count("(") == text.count(")") and sum(text.count(mark) for mark in _QUOTES) % 2 == 0


def _list_before_verb(words: Sequence[Word], first: int, main: int) -> Iterator[tuple[int, int]]:
    """List an introduction before the subject, and what stands between commas behind it."""
    comma = next((i for i in range(first, main) if words[i].text == "," and words[i].label is None), None)
    if comma is None:
        return
    opening, after = words[first], get_word(words, comma + 1)
    is_clause = comma + 1 < main and (_is_nominal(after) or after.part == "DET")
    if opening.label is None and opening.part in ("ADP", "SCONJ", "ADV", "VERB") and is_clause and first < comma:
        yield first, comma
    elif words[main - 1].text == "," and comma < main - 1 and _is_nominal(words[comma - 1]):
        yield comma, main - 1


def _list_between(words: Sequence[Word], main: int, end: int, tails: Sequence[int]) -> Iterator[tuple[int, int]]:
    """List phrases behind the main verb that do not reach the end: coordinated verbs, short phrases with a preposition,
    what stands in brackets."""
    for b, c in pairwise(tails):
        is_joined = all(words[k].part == "CCONJ" and _is_verb(get_word(words, k + 1)) for k in (b, c))
        if is_joined and _is_balanced(words[b:c]):
            yield b, c - 1
    for b in tails:
        if is_preposition(words[b]) and words[b].lower_text != "of":
            k = b + 1
            while k < end and (_is_nominal(words[k]) or words[k].part in ("DET", "ADJ")) and not _is_relative(words[k]):
                k += 1
            if k == end or k == b + 1 or not _is_nominal(words[k - 1]):
                continue
            after, second = words[k], get_word(words, k + 1)
            if (
                after.text == ","
                or (is_preposition(after) and after.lower_text in _LATER)
                or (after.part == "CCONJ" and (_is_verb(second) or any(map(_is_verb, words[k + 1 : k + 4]))))
                or (after.part == "SCONJ" and after.lower_text in _ALWAYS_CLAUSES)
            ):
                yield b, k - 1
    for b in range(main + 1, end):
        if words[b].text == "(" and words[b].label is None:
            close = next((k for k in range(b, end) if words[k].text == ")"), None)
            if close is not None and close > b + 1:
                yield b, close


def _list_coordinated(words: Sequence[Word], main: int, end: int) -> Iterator[tuple[int, int]]:
    """List nouns with their articles and adjectives that are joined to others behind the main verb: each of them can
    go with what joins it, but not all."""
    row: list[tuple[int, int]] = []
    first = main + 1
    while first < end:
        last = first
        while last < end and (_is_nominal(words[last]) or words[last].part in ("DET", "ADJ")):
            if _is_relative(words[last]):
                break
            last += 1
        if last > first and _is_nominal(words[last - 1]) and words[last - 1].part != "PRON":
            is_joined = row and _is_joint(words[row[-1][1] : first])
            row = [*row, (first, last)] if is_joined else [(first, last)]
            if words[first - 1].part == "CCONJ" and is_joined and _is_list(words, row, main, end):
                yield from _list_members(words, row)
        first = max(last, first + 1)


def _list_members(words: Sequence[Word], row: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """List what can go of a list of nouns."""
    first, second = row[0][0], words[row[1][0]]
    if len(row) == 2:
        yield row[0][1], row[1][1] - 1
    if second.part in ("DET", "ADJ") or second.label is not None or words[first].part != "DET":
        yield first, row[1][0] - 1
    for (_, start), (_, stop) in pairwise(row[:-1]):
        yield start, stop - 1


def _is_list(words: Sequence[Word], row: Sequence[tuple[int, int]], main: int, end: int) -> bool:
    """Tell whether joined nouns are all of an object, and the sentence goes on behind them."""
    first, last = row[0][0], row[-1][1]
    lead, after = words[first - 1], get_word(words, last)
    near = {words[k].lower_text for k in range(max(main, first - 3), first)}
    if near & _PAIRS or not (_is_verb(lead) or is_preposition(lead)) or after.lower_text == "of":
        return False
    if after.part == "CCONJ":
        return _is_verb(get_word(words, last + 1))
    return last == end or is_preposition(after) or after.text in (",", ";")


def _is_joint(words: Sequence[Word]) -> bool:
    """Tell whether words join nouns: a comma, "and", or both."""
    return 0 < len(words) < 3 and all(
        w.label is None and (w.text == "," or w.lower_text in ("and", "or")) for w in words
    )
