"""Rewrites a text with some of its words generalised or removed, so that it still reads as sentences.

Neighbours that were changed become one edit; what says the same twice says it once; a word that goes takes its space
with it, and an article before it follows the next word. A placeholder for a pronoun becomes ``they``, ``them`` or
``their``, and the verb beside it agrees.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from allonym.evaluate.generalising import Word
from allonym.plan import Edit
from allonym.replace.context import find_article, fit_article, widen_removal

__all__ = ["AGREE", "GENERALISE", "SUPPRESS", "make_edits", "soften_words"]

GENERALISE, SUPPRESS, AGREE = "generalise@1", "suppress@1", "agree@1"
"""Operators of words that became more general ones, of those that went, and of words that follow a changed one."""
LABEL = "OTHER_IDENTIFYING_ATTRIBUTE"

_BETWEEN = re.compile(r"[ \t]*-?[ \t]*")
_LISTED = re.compile(r"(?:,? (?:and|or|&) |, )")
_OPENING = frozenset(".!?")
_NOTHING: Mapping[int, str] = MappingProxyType({})
_FORMS = {"he": "they", "she": "they", "him": "them", "his": "their", "hers": "theirs", "himself": "themselves",
          "herself": "themselves", "it": "it", "its": "its", "itself": "itself"}  # fmt: skip
_PLURAL = {"is": "are", "was": "were", "has": "have", "does": "do"}
_BESIDE = frozenset("also now then often always never currently recently still just really ever once".split())
_ONE = frozenset("man woman lady gentleman girl boy guy lad male female".split())
_MANY = frozenset("men women ladies gentlemen girls boys guys lads males females".split())
_MEASURES = frozenset("over about around nearly almost under than at to just the first last next age aged".split())
_NOMINAL = frozenset({"NOUN", "PROPN"})
_INSIDE = frozenset({"NOUN", "PROPN", "ADJ", "NUM"})


def soften_words(words: Sequence[Word], originals_at: Mapping[int, str] = _NOTHING) -> dict[int, str]:
    """Map words to their replacements: placeholders of pronouns become forms of ``they``, and the verbs after them
    agree.

    Args:
        words: of the anonymised text.
        originals_at: where a placeholder begins to what it stands for, if that is known; else the sentence tells.
    """
    out: dict[int, str] = {}
    subject = False  # whether the clause's subject became they
    for i, word in enumerate(words):
        if word.text[:1] in _OPENING:
            subject = False
        after = words[i + 1] if i + 1 < len(words) else None
        if (plain := _choose_general_word(words, i, originals_at.get(word.start, "").lower())) is not None:
            out[i] = plain
        if word.label == "PRONOUN":
            form = _FORMS.get(originals_at.get(word.start, "").lower()) or _choose_pronoun(words, i)
            out[i] = form.capitalize() if _starts_sentence(words, i) else form
            if form == "they":
                subject = True
                _make_verb_agree(words, i + 1, out)
        elif subject and word.part == "CCONJ":
            _make_verb_agree(words, i + 1, out, joined=True)
        elif word.part in ("PRON", "SCONJ") or (word.label and word.part == "PROPN" and after and after.part == "AUX"):
            subject = False
    return out


def _choose_general_word(words: Sequence[Word], i: int, original: str) -> str | None:
    """Return a general word for a placeholder that adds nothing: ``a professional``, ``a person``, ``several
    children``."""
    word = words[i]
    after = words[i + 1] if i + 1 < len(words) else None
    head = after is None or (after.label is None and after.part not in _NOMINAL)
    if word.label == "OCCUPATION" and head:
        if original:
            return "professionals" if original.endswith("s") and not original.endswith("ss") else "professional"
        index = i - 1
        while index >= 0 and (words[index].label is not None or words[index].part == "ADJ"):
            index -= 1
        return "professional" if index >= 0 and words[index].low in ("a", "an") else None
    if word.label == "OTHER_IDENTIFYING_ATTRIBUTE" and head:
        return "person" if original in _ONE else "people" if original in _MANY else None
    if word.label == "NUMERIC" and after is not None and after.part == "NOUN" and after.label is None:
        counted = after.low == "children" or (after.low.endswith("s") and not after.low.endswith("ss"))
        led = i > 0 and (words[i - 1].low in _MEASURES or words[i - 1].text == "-")
        return None if led or not counted or words[i + 1].start - word.end > 1 else "several"
    return None


def _choose_pronoun(words: Sequence[Word], i: int) -> str:
    before = words[i - 1] if i else None
    after = words[i + 1] if i + 1 < len(words) else None
    if after is None or not (any(map(str.isalnum, after.text)) or after.text in ("'", "’")):
        return "them"
    if after.text in ("'", "’"):
        return "they"
    if after.part in _INSIDE and after.label != "PRONOUN" and after.low not in ("never", "also"):
        return "their"
    if after.low == "own":
        return "their"
    if after.part in ("AUX", "VERB") or after.low in _BESIDE:
        if (
            before is not None
            and before.part in ("ADP", "VERB")
            and not after.low.endswith("s")
            and after.part == "VERB"
        ):
            return "their" if after.low.endswith("ing") else "them" if before.part == "VERB" else "they"
        return "they"
    if before is not None and before.part in ("VERB", "ADP"):
        return "them"
    return "they"


def _make_verb_agree(words: Sequence[Word], index: int, out: dict[int, str], *, joined: bool = False) -> None:
    """Put the verb at ``index``, or behind adverbs there, into the plural."""
    while index < len(words) and (words[index].part == "ADV" or words[index].low in _BESIDE):
        index += 1
    if index >= len(words):
        return
    word, low = words[index], words[index].low
    if word.label is not None:
        return
    if low in ("'", "’") and index + 1 < len(words) and words[index + 1].low == "s" and not joined:
        then = words[index + 2].low if index + 2 < len(words) else ""
        out[index + 1] = "ve" if then in ("got", "been", "had") or then.endswith("ed") else "re"
    elif low in _PLURAL:
        out[index] = _PLURAL[low]
    elif word.part == "VERB" and low.endswith("s") and not low.endswith("ss") and len(low) > 3:
        out[index] = _find_base_form(low)
    elif low in ("isn", "wasn", "hasn", "doesn"):
        out[index] = {"isn": "aren", "wasn": "weren", "hasn": "haven", "doesn": "don"}[low]


def _find_base_form(verb: str) -> str:
    if verb.endswith("ies") and len(verb) > 4:
        return verb[:-3] + "y"
    return verb[:-2] if verb.endswith(("sses", "shes", "ches", "xes", "oes", "zzes")) else verb[:-1]


def _starts_sentence(words: Sequence[Word], i: int) -> bool:
    """Whether a sentence begins with word ``i``."""
    while i and words[i - 1].text[0] in "\"'“‘([":
        i -= 1
    return i == 0 or words[i - 1].text[0] in _OPENING


def make_edits(text: str, words: Sequence[Word], new_words: Mapping[int, str], agreed: frozenset[int]) -> list[Edit]:
    """Return the edits that replace words by ``new_words``; empty strings remove them.

    Args:
        text: what the words stand in.
        words: all of it, see :func:`allonym.evaluate.generalising.split_words`.
        new_words: number of a word to what stands for it.
        agreed: those that only follow another word's change.

    Returns:
        Sorted, disjoint edits of ``text``.
    """
    runs: list[list[int]] = []
    for i in sorted(new_words):
        alone = i in agreed or words[i].label is not None
        joins = runs and not alone and runs[-1][-1] == i - 1 and not _is_single(runs[-1], words, agreed)
        if joins and _BETWEEN.fullmatch(text, words[i - 1].end, words[i].start):
            runs[-1].append(i)
            continue
        runs.append([i])
    edits: list[Edit] = []
    position, last = 0, ""
    for n, run in enumerate(runs):
        start, end = words[run[0]].start, words[run[-1]].end
        limit = words[runs[n + 1][0]].start if n + 1 < len(runs) else len(text)
        if _is_single(run, words, agreed):
            label = words[run[0]].label
            operator = GENERALISE if label is not None else AGREE
            if label is not None:
                edits += _fit_article(text, start, position, new_words[run[0]])
            edits.append(Edit(start, end, new_words[run[0]], label or LABEL, 0, operator, text[start:end]))
            position, last = end, ""
            continue
        new = _join_once([new_words[i] for i in run])
        if new and new == last and _LISTED.fullmatch(text, position, start) and edits:
            old = edits.pop()
            edits.append(Edit(old.start, end, old.replacement, LABEL, 0, old.operator, text[old.start : end]))
            position = end
            continue
        last = new
        if not new:
            start, end, new = _remove_run(text, words, run, position, limit)
        if new and words[run[0]].text[:1].isupper() and (_starts_sentence(words, run[0])):
            new = new[:1].upper() + new[1:]
        first = words[run[0]].start
        if follows := new or text[end:].lstrip()[:40]:
            edits += _fit_article(text, first, position, follows)
        operator = GENERALISE if last else SUPPRESS
        edits.append(Edit(start, end, new, LABEL, 0, operator, text[start:end]))
        position = end
    return edits


def _fit_article(text: str, start: int, low: int, new: str) -> list[Edit]:
    """Return the edit that makes an indefinite article before ``start`` fit; none if it fits."""
    place = find_article(text, start, low)
    if place is None:
        return []
    old_article = text[place[0] : place[1]]
    fitting = fit_article(old_article, new)
    return [] if fitting is None or fitting == old_article else [Edit(*place, fitting, LABEL, 0, AGREE, old_article)]


def _is_single(run: Sequence[int], words: Sequence[Word], agreed: frozenset[int]) -> bool:
    return len(run) == 1 and (run[0] in agreed or words[run[0]].label is not None)


def _join_once(words: Sequence[str]) -> str:
    """Join words, each once."""
    out = [word for word in dict.fromkeys(words) if word]
    if len(out) > 1 and out[-1] in ("thing", "things", "person", "people"):
        return " ".join([*out[:-2], out[-1]]) if out[-2] in ("thing", "things") else " ".join(out)
    return " ".join(out)


def _remove_run(text: str, words: Sequence[Word], run: Sequence[int], low: int, high: int) -> tuple[int, int, str]:
    """Return the start and end of a removal, and its replacement: the next word, if an article must fit it."""
    start, end = words[run[0]].start, words[run[-1]].end
    after = words[run[-1] + 1] if run[-1] + 1 < len(words) else None
    if (
        after is not None
        and after.end <= high
        and after.label is None
        and any(map(str.isalnum, after.text))
        and find_article(text, start, low) is not None
        and _BETWEEN.fullmatch(text, end, after.start)
    ):
        return start, after.end, after.text
    if after is not None and after.text == "-" and after.end <= high and after.start == end:
        end = after.end
        if start > low and text[start - 1] == " ":
            return start, end, ""
    if start > low and text[start - 1] == "-" and start - 1 > low:
        start -= 1
    before = text[start - 1] if start > low else ""
    return (*widen_removal(text, start, end, low, high, before or (" " if start else "")), "")
