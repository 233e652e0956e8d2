"""Rewrites a text with some of its words generalised or removed, so that it still reads as sentences.

Neighbours that were changed become one edit; what says the same twice says it once; a word that goes takes its space
with it, and an article before it follows the next word. Placeholders stay. English only. The edits can be chained to
the plan that made the text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from allonym.errors import PlanMismatch
from allonym.evaluate.general_words import INSIDE, OPENING, Word, get_word, has_particle
from allonym.plan import Edit, Plan, apply_edits, digest, locate_replacements
from allonym.replace.wording import find_article, find_article_change, widen_removal

GENERALISE, SUPPRESS, AGREE = "generalise@1", "suppress@1", "agree@1"
"""Operators of words that became more general ones, of those that went, and of articles that follow a changed word."""
LABEL = "OTHER_IDENTIFYING_ATTRIBUTE"

_BETWEEN = re.compile(r"[ \t]*-?[ \t]*")
_OPENS = re.compile(r"[ \t]*,?[ \t]*")
_LISTED = re.compile(r",? (?:(?:and|or|but|&) )?| ?/ ?")
_COUNT_NOUNS = frozenset("group idea object organisation person place school thing".split())
_JOINTS = frozenset(", and or but".split())
_PAIRS = frozenset("both either neither not only n't t".split())
"""Words that ask for two adjectives, or turn the first one only."""
_DEGREES = frozenset("very quite really rather highly extremely incredibly truly well".split())


def _starts_sentence(words: Sequence[Word], i: int) -> bool:
    """Whether a sentence begins with word ``i``."""
    while i and words[i - 1].text[0] in "\"'“‘([":
        i -= 1
    return i == 0 or words[i - 1].text[0] in OPENING


def make_edits(text: str, words: Sequence[Word], new_words: Mapping[int, str]) -> list[Edit]:
    """Return the edits that replace words by ``new_words``; empty strings remove them.

    Args:
        text: what the words stand in.
        words: all of it, see :func:`allonym.evaluate.general_words.list_words_and_placeholders`.
        new_words: number of a word, no placeholder, to what stands for it.

    Returns:
        Sorted, disjoint edits of ``text``.
    """
    runs: list[list[int]] = []
    for i in sorted(new_words):
        if runs and runs[-1][-1] == i - 1 and _BETWEEN.fullmatch(text, words[i - 1].end, words[i].start):
            runs[-1].append(i)
        else:
            runs.append([i])
    edits: list[Edit] = []
    position, last = 0, ""
    for n, run in enumerate(runs):
        start, end = words[run[0]].start, words[run[-1]].end
        limit = words[runs[n + 1][0]].start if n + 1 < len(runs) else len(text)
        new = _join_distinct_words([new_words[i] for i in run if not _doubles_verb(words, run, i)])
        if new and new == last and _LISTED.fullmatch(text, position, start) and edits:
            old = edits.pop()
            edits.append(Edit(old.start, end, old.replacement, LABEL, 0, old.operator, text[old.start : end]))
            position = end
            continue
        if joined := _find_joint_removal(text, words, run, new_words, position):
            start, end, new = joined
            last = new.lstrip()
        elif new:
            last = new
            end = _find_end(words, run[-1])
            start, new = _take_words_before(text, words, run, new_words, position, new)
        else:
            last = ""
            opening = _find_opening_removal(text, words, run, limit)
            start, end, new = opening or _find_removal(text, words, run, position, limit)
        if new and words[run[0]].text[:1].isupper() and (_starts_sentence(words, run[0])):
            new = new[:1].upper() + new[1:]
        first = end - len(text[start:end].lstrip())
        if follows := new or text[end:].lstrip()[:40]:
            edits += _edit_article_to_fit(text, first, position, follows)
        operator = GENERALISE if last else SUPPRESS
        edits.append(Edit(start, end, new, LABEL, 0, operator, text[start:end]))
        position = end
    return edits


def _take_words_before(
    text: str, words: Sequence[Word], run: Sequence[int], new_words: Mapping[int, str], low: int, new: str
) -> tuple[int, str]:
    """Return the start of a change, and what stands there, where words before it go with it: the rest of a compound
    (``half-brother``), the article of ``a thing``, which becomes ``something``."""
    start, first = words[run[0]].start, run[0]
    hyphen, lead = get_word(words, first - 1), get_word(words, first - 2)
    if hyphen.text == "-" and hyphen.start >= low and hyphen.end == start and lead.label is None:
        if lead.end == hyphen.start and lead.start >= low and lead.text.isalpha():
            start, first = lead.start, first - 2
        elif lead.end < hyphen.start or first - 2 in new_words:
            start, first = hyphen.start, first - 1
    if new == "special" and get_word(words, first - 1).lower_text == "well" and words[first - 1].start >= low:
        return words[first - 1].start, new
    if start < words[run[0]].start:
        return start, new
    article = get_word(words, first - 1)
    if (
        new == "thing"
        and article.lower_text in ("a", "an", "the")
        and article.start >= low
        and first - 1 not in new_words
        and not _goes_on(words, run[-1])
        and text[article.end : start].strip(" ") == ""
    ):
        return article.start, "Something" if article.text[0].isupper() else "something"
    while first and not new_words.get(first - 1, "kept"):
        first -= 1
    lead = get_word(words, first - 1)
    is_bare = lead.part in ("ADP", "VERB") and lead.label is None and lead.lower_text != "as"
    if is_bare and new in _COUNT_NOUNS and words[run[-1]].part == "NOUN":
        new = {"thing": "something", "person": "somebody"}.get(new, f"some {new}")
    return start, new


def _goes_on(words: Sequence[Word], i: int) -> bool:
    """Tell whether what follows noun ``i`` belongs to it: another noun, ``of``, a hyphen, an apostrophe."""
    after = get_word(words, i + 1)
    return after.part in INSIDE or after.lower_text == "of" or after.text[:1] in "-'’"


def _doubles_verb(words: Sequence[Word], run: Sequence[int], i: int) -> bool:
    """Tell whether word ``i`` of a change is a verb that says nothing behind another one: ``remained seated``."""
    is_second = i - 1 in run and words[i].part == "VERB" == words[i - 1].part
    return is_second and not words[i].text.endswith("ing")


def _find_end(words: Sequence[Word], i: int) -> int:
    """Return where word ``i`` ends, with the particle of a verb, or the "ever" of "first ever"."""
    has_ever = words[i].part == "ADJ" and get_word(words, i + 1).text == "ever"
    return words[i + 1 if has_ever or (words[i].part == "VERB" and has_particle(words, i)) else i].end


def _edit_article_to_fit(text: str, start: int, low: int, next_text: str) -> list[Edit]:
    """Return the edit that makes an indefinite article before ``start`` fit; none if it fits."""
    change = find_article_change(text, start, low, next_text)
    return [] if change is None else [Edit(*change, LABEL, 0, AGREE, text[change[0] : change[1]])]


def _join_distinct_words(words: Sequence[str]) -> str:
    """Join words, each once."""
    out = [word for word in dict.fromkeys(words) if word]
    if len(out) > 1 and out[-2] in ("thing", "things") and out[-1] in ("thing", "things", "person", "people"):
        del out[-2]
    return " ".join(out)


def _find_first_degree(words: Sequence[Word], i: int, low: int) -> int:
    """Return the number of the first word, not below ``low``, that says how much adjective ``i`` holds; else ``i``."""
    while (
        words[i].part in ("ADJ", "ADV") and get_word(words, i - 1).lower_text in _DEGREES and words[i - 1].start >= low
    ):
        i -= 1
    return i


def _find_removal(text: str, words: Sequence[Word], run: Sequence[int], low: int, high: int) -> tuple[int, int, str]:
    """Return the start and end of a removal, and its replacement: the next word, if an article must fit it."""
    first = _find_first_degree(words, run[0], low)
    start, end = words[first].start, _find_end(words, run[-1])
    lead, after = get_word(words, first - 1), get_word(words, run[-1] + 1)
    if lead.lower_text == after.lower_text and lead.label is None and lead.text.isalpha() and after.end <= high:
        end = after.end  # what would stand there twice
        after = get_word(words, run[-1] + 2)
    if (
        after.end <= high
        and after.label is None
        and any(map(str.isalnum, after.text))
        and find_article(text, start, low) is not None
        and _BETWEEN.fullmatch(text, end, after.start)
    ):
        return start, after.end, after.text
    if after.text == "-" and after.end <= high and after.start == end:
        end = after.end
        if start > low and text[start - 1] == " ":
            return start, end, ""
    if start > low and text[start - 1] == "-" and start - 1 > low:
        start -= 1
    before = text[start - 1] if start > low else ""
    if before == "(" and text[end : end + 1] == ")" and end < high:
        start, end = start - 1, end + 1  # nothing is left in the brackets
        before = text[start - 1] if start > low else ""
    return (*widen_removal(text, start, end, low, high, before or (" " if start else "")), "")


def _find_joint_removal(
    text: str, words: Sequence[Word], run: Sequence[int], new_words: Mapping[int, str], low: int
) -> tuple[int, int, str] | None:
    """Return the start, the end and the replacement of words that go with what joins them to another adjective:
    ``sporty and`` before ``tall``, ``and soothing`` behind ``very informative``; None where nothing does."""
    first, last = _find_first_degree(words, run[0], low), run[-1]
    near = text[max(low, get_word(words, first - 2).end) : max(words[last].end, get_word(words, last + 2).start)]
    if _is_listed_behind_placeholder(words, run, new_words, low) and "\n" not in near:
        return words[run[0] - 2].end, words[last].end, ""
    is_adjective = words[run[0]].part == "ADJ" or (words[run[0]].part == "VERB" and not any(new_words[i] for i in run))
    if not is_adjective or "\n" in near:
        return None
    new = _join_distinct_words([new_words[i] for i in run])
    joint, before, end = get_word(words, first - 1), get_word(words, first - 2), words[last].end
    is_special = new == "special" and run[0] == last
    if joint.text in _JOINTS and before.part == "ADJ" and before.end >= low:
        lead = get_word(words, first - 3).lower_text
        needs_both = lead in _PAIRS or (lead == "," and joint.text != ",")
        if is_special and first - 2 not in new_words and not needs_both:
            return before.end, end, ""
        if not new_words[run[0]] and (joint.text != "," or _is_attribute(words, first - 2)):
            return before.end, end, f" {new}" if new else ""
    after = get_word(words, last + 2)
    is_before = get_word(words, last + 1).text in _JOINTS and after.part == "ADJ" and last + 2 not in new_words
    if is_special and is_before and joint.lower_text not in _PAIRS:
        return words[first].start, after.start, ""
    return None


def _is_listed_behind_placeholder(
    words: Sequence[Word], run: Sequence[int], new_words: Mapping[int, str], low: int
) -> bool:
    """Tell whether a general noun without an article says nothing beside a placeholder: ``a SINGER_1 and person``."""
    joint, lead = get_word(words, run[0] - 1), get_word(words, run[0] - 2)
    new = _join_distinct_words([new_words[i] for i in run])
    if new not in _COUNT_NOUNS or joint.text not in ("and", "or", "&") or lead.label is None or lead.end < low:
        return False
    is_owner = lead.label.startswith("PRONOUN")
    is_pair = any(get_word(words, run[0] - k).lower_text in ("both", "between") for k in range(3, 7))
    return not is_owner and not is_pair and not _goes_on(words, run[-1])


def _is_attribute(words: Sequence[Word], i: int) -> bool:
    """Tell whether an adjective, maybe one of several, stands before a noun, by what stands before it."""
    while get_word(words, i).part in ("ADJ", "ADV") or get_word(words, i).text in _JOINTS:
        i -= 1
    return get_word(words, i).part not in ("AUX", "PUNCT", "")


def _find_opening_removal(
    text: str, words: Sequence[Word], run: Sequence[int], high: int
) -> tuple[int, int, str] | None:
    """Return the start and end of the removal of a sentence's first words, a comma behind them included, and what
    stands there then: the next word with a capital. None where a removal needs no such care."""
    start, after = words[run[0]].start, get_word(words, run[-1] + 1)
    if not any(words[i].text[:1].isupper() for i in run) or not _starts_sentence(words, run[0]):
        return None
    if has_comma := after.text == ",":
        after = get_word(words, run[-1] + 2)
    if after.start > high or not _OPENS.fullmatch(text, words[run[-1]].end, max(0, after.start)):
        return None
    if after.label is None and after.text[:1].islower() and after.end <= high:
        return start, after.end, after.text[:1].upper() + after.text[1:]
    return (start, after.start, "") if has_comma else None


def chain_plans(text: str, first: Plan, second: Plan) -> Plan:
    """Return the plan that has the effect of both, one after the other; it can be undone to ``text``.

    Edits that touch each other become one, which keeps the label and the entity of the first plan's, and the second's
    operator.

    Args:
        text: what the first plan was made for.
        first: from ``text`` to another text.
        second: from that text to a third one.

    Raises:
        PlanMismatch: ``text`` is not the first plan's, or the second was not made for what the first makes.
    """
    between = apply_edits(text, first.edits)
    if digest(text) != first.digest or digest(between) != second.digest:
        raise PlanMismatch("the second plan must be for the text that the first one makes of this text")
    places = [(start, False, end, edit) for start, end, edit in locate_replacements(first.edits)]
    places += [(edit.start, True, edit.end, edit) for edit in second.edits]
    groups: list[tuple[int, int, tuple[list[Edit], list[Edit]]]] = []
    for start, is_second, end, edit in sorted(places, key=lambda place: place[:2]):
        low, high, edits = groups[-1] if groups else (-1, -1, ([], []))
        if start < high or (start == end == high and not is_second):  # whatever overlaps joins
            groups[-1] = low, max(high, end), edits
        else:
            groups.append((start, end, ([], [])))
        groups[-1][2][is_second].append(edit)
    out: list[Edit] = []
    moved = 0  # how much longer the text between is than the original, up to here
    for low, high, (ones, twos) in groups:
        start = low - moved
        moved += sum(len(e.replacement) - (e.end - e.start) for e in ones)
        end = high - moved
        new = apply_edits(between[low:high], [Edit(e.start - low, e.end - low, e.replacement, e.label) for e in twos])
        lead = (ones or twos)[0]
        operator = (twos or ones[:1])[-1].operator
        if new != text[start:end] or not twos:
            out.append(Edit(start, end, new, lead.label, lead.entity, operator, text[start:end]))
    return Plan(
        first.digest, tuple(out), tuple(dict.fromkeys((*first.notes, *second.notes))), digest(apply_edits(text, out))
    )
