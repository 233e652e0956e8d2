"""Rewrites a text with some of its words generalised or removed, so that it still reads as sentences.

Neighbours that were changed become one edit; what says the same twice says it once; a word that goes takes its space
with it, and an article before it follows the next word. A placeholder for a pronoun becomes ``they``, ``them`` or
``their``, and the verb beside it agrees.

More general words come from a table of classes, else from the part of speech: ``guitar`` becomes ``music`` and, where
that still reveals too much, ``thing``; a verb becomes a form of ``do`` or ``have``; an adjective or adverb that only
adds something goes. Function words stay. English only. The edits can be chained to the plan that made the text.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any

from allonym.errors import PlanMismatch
from allonym.models.pos import parts_of_speech
from allonym.plan import Edit, Plan, apply_edits, digest, locate_replacements
from allonym.replace.wording import find_article, find_article_change, widen_removal
from allonym.text.placeholders import find_placeholders

GENERALISE, SUPPRESS, AGREE = "generalise@1", "suppress@1", "agree@1"
"""Operators of words that became more general ones, of those that went, and of words that follow a changed one."""
LABEL = "OTHER_IDENTIFYING_ATTRIBUTE"

_BETWEEN = re.compile(r"[ \t]*-?[ \t]*")
_LISTED = re.compile(r"(?:,? (?:and|or|&) |, )")
_OPENING = frozenset(".!?")
_NOTHING: Mapping[int, str] = MappingProxyType({})
_FORMS = {"he": "they", "she": "they", "him": "them", "his": "their", "hers": "theirs", "himself": "themselves",
          "herself": "themselves", "it": "it", "its": "its", "itself": "itself"}  # fmt: skip
_PLURAL = {"is": "are", "was": "were", "has": "have", "does": "do",
           "isn": "aren", "wasn": "weren", "hasn": "haven", "doesn": "don"}  # fmt: skip
_BESIDE = frozenset("also now then often always never currently recently still just really ever once".split())
_ONE = frozenset("man woman lady gentleman girl boy guy lad male female".split())
_MANY = frozenset("men women ladies gentlemen girls boys guys lads males females".split())
_MEASURES = frozenset("over about around nearly almost under than at to just the first last next age aged -".split())
_NOMINAL = frozenset({"NOUN", "PROPN"})
_INSIDE = frozenset({"NOUN", "PROPN", "ADJ", "NUM"})


def soften_placeholders(words: Sequence[Word], originals_at: Mapping[int, str] = _NOTHING) -> dict[int, str]:
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
        original = originals_at.get(word.start, "").lower()
        if (plain := _choose_general_word(words, i, original)) is not None:
            out[i] = plain
        if word.label == "PRONOUN":
            form = _FORMS.get(original) or _choose_form_of_they(words, i)
            out[i] = form.capitalize() if _starts_sentence(words, i) else form
            if form == "they":
                subject = True
                _make_verb_plural(words, i + 1, out)
        elif subject and word.part == "CCONJ":
            _make_verb_plural(words, i + 1, out, joined=True)
        elif word.part in ("PRON", "SCONJ") or (
            word.label and word.part == "PROPN" and _get_word(words, i + 1).part == "AUX"
        ):
            subject = False
    return out


def _get_word(words: Sequence[Word], i: int) -> Word:
    """Return word ``i``; before the first and after the last word one without text and part of speech."""
    return words[i] if 0 <= i < len(words) else _NO_WORD


def _choose_general_word(words: Sequence[Word], i: int, original: str) -> str | None:
    """Return a general word for a placeholder that adds nothing: ``a professional``, ``a person``, ``several
    children``."""
    word, after = words[i], _get_word(words, i + 1)
    head = after.label is None and after.part not in _NOMINAL
    if word.label == "OCCUPATION" and head:
        if original:
            return "professionals" if original.endswith("s") and not original.endswith("ss") else "professional"
        lead = next((w for w in reversed(words[:i]) if w.label is None and w.part != "ADJ"), _NO_WORD)
        return "professional" if lead.lower_text in ("a", "an") else None
    if word.label == "OTHER_IDENTIFYING_ATTRIBUTE" and head:
        return "person" if original in _ONE else "people" if original in _MANY else None
    if word.label == "NUMERIC" and after.part == "NOUN" and after.label is None and after.start - word.end <= 1:
        counted = after.lower_text == "children" or (after.lower_text[-1:] == "s" and after.lower_text[-2:] != "ss")
        return "several" if counted and _get_word(words, i - 1).lower_text not in _MEASURES else None
    return None


def _choose_form_of_they(words: Sequence[Word], i: int) -> str:
    before, after = _get_word(words, i - 1), _get_word(words, i + 1)
    if after.text in ("'", "’"):
        return "they"
    if not any(map(str.isalnum, after.text)):
        return "them"
    if after.part in _INSIDE and after.label != "PRONOUN" and after.lower_text not in ("never", "also"):
        return "their"
    if after.lower_text == "own":
        return "their"
    follows = before.part in ("VERB", "ADP")
    if after.part == "VERB" and follows and not after.lower_text.endswith("s"):
        return "their" if after.lower_text.endswith("ing") else "them" if before.part == "VERB" else "they"
    if after.part in ("AUX", "VERB") or after.lower_text in _BESIDE:
        return "they"
    return "them" if follows else "they"


def _make_verb_plural(words: Sequence[Word], index: int, new_words: dict[int, str], *, joined: bool = False) -> None:
    """Put the verb at ``index``, or behind adverbs there, into the plural."""
    while index < len(words) and (words[index].part == "ADV" or words[index].lower_text in _BESIDE):
        index += 1
    word = _get_word(words, index)
    low = word.lower_text
    if word.label is not None:
        return
    if low in ("'", "’") and _get_word(words, index + 1).lower_text == "s" and not joined:
        then = _get_word(words, index + 2).lower_text
        new_words[index + 1] = "ve" if then in ("got", "been", "had") or then.endswith("ed") else "re"
    elif low in _PLURAL:
        new_words[index] = _PLURAL[low]
    elif word.part == "VERB" and low.endswith("s") and not low.endswith("ss") and len(low) > 3:
        new_words[index] = _strip_third_person_s(low)


def _strip_third_person_s(verb: str) -> str:
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
        words: all of it, see :func:`allonym.evaluate.rewording.list_words_and_placeholders`.
        new_words: number of a word to what stands for it.
        agreed: those that only follow another word's change.

    Returns:
        Sorted, disjoint edits of ``text``.
    """
    runs: list[tuple[list[int], bool]] = []  # numbers of words, and whether their replacement stands for itself
    for i in sorted(new_words):
        is_single = i in agreed or words[i].label is not None
        joins = runs and not is_single and not runs[-1][1] and runs[-1][0][-1] == i - 1
        if joins and _BETWEEN.fullmatch(text, words[i - 1].end, words[i].start):
            runs[-1][0].append(i)
        else:
            runs.append(([i], is_single))
    edits: list[Edit] = []
    position, last = 0, ""
    for n, (run, is_single) in enumerate(runs):
        start, end = words[run[0]].start, words[run[-1]].end
        limit = words[runs[n + 1][0][0]].start if n + 1 < len(runs) else len(text)
        if is_single:
            label = words[run[0]].label
            operator = GENERALISE if label is not None else AGREE
            if label is not None:
                edits += _edit_article_to_fit(text, start, position, new_words[run[0]])
            edits.append(Edit(start, end, new_words[run[0]], label or LABEL, 0, operator, text[start:end]))
            position, last = end, ""
            continue
        new = _join_distinct_words([new_words[i] for i in run])
        if new and new == last and _LISTED.fullmatch(text, position, start) and edits:
            old = edits.pop()
            edits.append(Edit(old.start, end, old.replacement, LABEL, 0, old.operator, text[old.start : end]))
            position = end
            continue
        last = new
        if not new:
            start, end, new = _find_removal(text, words, run, position, limit)
        if new and words[run[0]].text[:1].isupper() and (_starts_sentence(words, run[0])):
            new = new[:1].upper() + new[1:]
        first = words[run[0]].start
        if follows := new or text[end:].lstrip()[:40]:
            edits += _edit_article_to_fit(text, first, position, follows)
        operator = GENERALISE if last else SUPPRESS
        edits.append(Edit(start, end, new, LABEL, 0, operator, text[start:end]))
        position = end
    return edits


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


def _find_removal(text: str, words: Sequence[Word], run: Sequence[int], low: int, high: int) -> tuple[int, int, str]:
    """Return the start and end of a removal, and its replacement: the next word, if an article must fit it."""
    start, end = words[run[0]].start, words[run[-1]].end
    after = _get_word(words, run[-1] + 1)
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
    return (*widen_removal(text, start, end, low, high, before or (" " if start else "")), "")


CONTENT = frozenset({"NOUN", "PROPN", "VERB", "ADJ", "ADV", "NUM", "X", "SYM", "INTJ"})
_KEPT = frozenset(
    "not n't never when where how why whenever wherever there here then also very too so than as more most less "
    "least ever just only even still yet however therefore though although always often sometimes once again now "
    "please yes no such same other own many much few first last next well about s t re ve ll d m".split()
)
_SINGULAR = {"people": "person", "men": "man", "women": "woman", "children": "child", "lives": "life", "wives": "wife"}


@dataclass(frozen=True, slots=True)
class Word:
    """A word of an anonymised text, or a placeholder in it.

    Attributes:
        start, end: half-open offsets.
        text: its surface. Hidden from ``repr``.
        part: universal part of speech; of a placeholder that of what it stands for.
        label: of a placeholder, empty where it shows none; None: a word.
    """

    start: int
    end: int
    text: str = field(repr=False)
    part: str
    label: str | None = None

    @property
    def lower_text(self) -> str:
        """The word in lower case."""
        return self.text.lower()


_NO_WORD = Word(-1, -1, "", "")


def list_words_and_placeholders(text: str) -> tuple[Word, ...]:
    """Return the words and punctuation marks of a text in reading order; each placeholder is one word."""
    placeholders = find_placeholders(text)
    out: list[Word] = [Word(p.start, p.end, text[p.start : p.end], p.part, p.label) for p in placeholders]
    index = 0
    for start, end, part in parts_of_speech(text):
        while index < len(placeholders) and placeholders[index].end <= start:
            index += 1
        if index == len(placeholders) or end <= placeholders[index].start:
            out.append(Word(start, end, text[start:end], part))
    return tuple(sorted(out, key=lambda w: w.start))


def list_general_replacements(words: Sequence[Word], i: int) -> tuple[str, ...]:
    """List what may replace word ``i``, the closest first; an empty string removes it. Without a choice it stays."""
    word = words[i]
    if (
        word.label is not None
        or word.part not in CONTENT
        or word.lower_text in _KEPT
        or not any(map(str.isalnum, word.text))
    ):
        return ()
    after = _get_word(words, i + 1)
    if word.part in _NOMINAL:
        if after.part in _NOMINAL and after.start - word.end <= 1:
            return ("",)
        return _list_general_nouns(word, _get_word(words, i - 1))
    if word.part == "VERB":
        verb = _choose_general_verb(words, i)
        return (verb,) if verb and verb != word.lower_text else ()
    if word.part == "ADJ":
        if after.part in _INSIDE or after.text == "-":
            return ("",)
        return ("special",) if word.lower_text != "special" else ()
    if word.part == "NUM" or word.lower_text in _read_word_list("numbers", "words"):
        return ("several",) if after.part in ("NOUN", "ADJ") and after.lower_text.endswith("s") else ("",)
    return ("",)


def _list_general_nouns(word: Word, before: Word) -> tuple[str, ...]:
    stem, many = _to_singular(word.lower_text)
    kind = _map_words_to_general_nouns().get(word.lower_text) or _map_words_to_general_nouns().get(stem)
    if kind is None:
        if word.part == "PROPN":
            return ("somewhere",) if before.lower_text in ("in", "at", "from", "near", "to") else ("something",)
        kind = "person" if stem.endswith(("ist", "eer", "ess", "man", "woman", "ian")) else "thing"
    plain = _read_generalisations()["kinds"].get(kind, "thing")
    out = dict.fromkeys(_to_plural(n) if many else n for n in (kind, plain))
    return tuple(n for n in out if n != word.lower_text)


def _to_singular(word: str) -> tuple[str, bool]:
    """Return the singular of a noun by its ending, and whether it differs."""
    if word in _SINGULAR:
        return _SINGULAR[word], True
    if word.endswith("ies") and len(word) > 4 and word not in ("series", "movies"):
        return word[:-3] + "y", True
    if word.endswith(("sses", "shes", "ches", "xes")):
        return word[:-2], True
    if word.endswith("s") and not word.endswith(("ss", "us", "is", "ics")) and len(word) > 3 and word != "series":
        return word[:-1], True
    return word, False


def _to_plural(noun: str) -> str:
    if noun == "person":
        return "people"
    if noun == "child":
        return "children"
    if noun in ("music", "clothing", "food", "work"):
        return noun
    return noun[:-1] + "ies" if noun.endswith("y") else noun + "s"


def _choose_general_verb(words: Sequence[Word], i: int) -> str:
    """Return a form of ``do``, or of ``have`` where an object follows; after a form of ``be``, ``involved``."""
    word = words[i].lower_text
    if word in _read_word_list("verbs", "light"):
        return ""
    before = next((w for w in reversed(words[:i]) if w.part not in ("ADV", "PART") or w.lower_text == "to"), _NO_WORD)
    lead, after = before.lower_text, _get_word(words, i + 1)
    carries = after.label is not None or after.part in _INSIDE or after.part in ("DET", "PRON")
    if word.endswith("ing") and len(word) > 4:
        return "having" if carries else "doing"
    is_past = word.endswith("ed") or word in _read_word_list("verbs", "past")
    is_participle = is_past or word in _read_word_list("verbs", "participle")
    if is_participle and lead in ("is", "are", "was", "were", "been", "be", "being", "am", "'s", "s", "re"):
        return "involved"
    if is_participle and lead in ("has", "have", "had", "having", "ve"):
        return "had" if carries else "done"
    if is_past:
        if before.part in _NOMINAL and after.lower_text == "by" and word.endswith("ed") and not carries:
            return "involved"
        return "had" if carries else "did"
    if is_participle:
        return "involved"
    is_plural = before.label == "PRONOUN"  # which becomes they
    if word.endswith("s") and not word.endswith("ss") and not is_plural:
        return "has" if carries else "does"
    return "have" if carries else "do"


@cache
def _read_generalisations() -> Mapping[str, Any]:
    return tomllib.loads(files("allonym.evaluate").joinpath("generalising.toml").read_text(encoding="utf-8"))


@cache
def _read_word_list(group: str, name: str) -> frozenset[str]:
    return frozenset(_read_generalisations()[group][name].split())


@cache
def _map_words_to_general_nouns() -> Mapping[str, str]:
    """Return the general noun for each word of the classes; of two classes of a word, the first counts."""
    out: dict[str, str] = {}
    for kind, listed in _read_generalisations()["classes"].items():
        for word in listed.split():
            out.setdefault(word, kind)
    return out


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
