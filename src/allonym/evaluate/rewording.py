"""Rewrites a text with some of its words generalised or removed, so that it still reads as sentences.

Neighbours that were changed become one edit; what says the same twice says it once; a word that goes takes its space
with it, and an article before it follows the next word. Placeholders stay.

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
from typing import Any

from allonym.errors import PlanMismatch
from allonym.models.pos import parts_of_speech
from allonym.plan import Edit, Plan, apply_edits, digest, locate_replacements
from allonym.replace.wording import find_article, find_article_change, pluralise_noun, widen_removal
from allonym.text.placeholders import find_placeholders

GENERALISE, SUPPRESS, AGREE = "generalise@1", "suppress@1", "agree@1"
"""Operators of words that became more general ones, of those that went, and of articles that follow a changed word."""
LABEL = "OTHER_IDENTIFYING_ATTRIBUTE"

_BETWEEN = re.compile(r"[ \t]*-?[ \t]*")
_OPENS = re.compile(r"[ \t]*,?[ \t]*")
_LISTED = re.compile(r"(?:,? (?:and|or|but|&) |, )")
_OPENING = frozenset(".!?")
_NOMINAL = frozenset({"NOUN", "PROPN"})
_INSIDE = frozenset({"NOUN", "PROPN", "ADJ", "NUM"})
_BEFORE_NOUN = _INSIDE | {"DET", "PRON", "PUNCT"}
_PARTICLES = frozenset("across along apart around away back down off on out over through together up".split())
_JOINTS = frozenset(", and or but".split())
_PAIRS = frozenset("both either neither not only n't t".split())
"""Words that ask for two adjectives, or turn the first one only."""
_BEFORE_PLACE = frozenset("in at from near to".split())
_MASS = frozenset("music clothing food work sport illness time".split())
"""General nouns without a plural."""
_DEGREES = frozenset("very so too quite really rather more most extremely".split())
_BEFORE_INFINITIVE = frozenset(
    "to can could will would shall should may might must do does did don doesn didn t".split()
)


def _get_word(words: Sequence[Word], i: int) -> Word:
    """Return word ``i``; before the first and after the last word one without text and part of speech."""
    return words[i] if 0 <= i < len(words) else _NO_WORD


def _starts_sentence(words: Sequence[Word], i: int) -> bool:
    """Whether a sentence begins with word ``i``."""
    while i and words[i - 1].text[0] in "\"'“‘([":
        i -= 1
    return i == 0 or words[i - 1].text[0] in _OPENING


def make_edits(text: str, words: Sequence[Word], new_words: Mapping[int, str]) -> list[Edit]:
    """Return the edits that replace words by ``new_words``; empty strings remove them.

    Args:
        text: what the words stand in.
        words: all of it, see :func:`allonym.evaluate.rewording.list_words_and_placeholders`.
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
        new = _join_distinct_words([new_words[i] for i in run])
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
            particle = _get_word(words, run[-1] + 1)
            if words[run[-1]].part == "VERB" and particle.part == "ADV" and particle.text in _PARTICLES:
                end = particle.end
        else:
            last = ""
            opening = _find_opening_removal(text, words, run, limit)
            start, end, new = opening or _find_removal(text, words, run, position, limit)
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


def _find_joint_removal(
    text: str, words: Sequence[Word], run: Sequence[int], new_words: Mapping[int, str], low: int
) -> tuple[int, int, str] | None:
    """Return the start, the end and the replacement of words that go with what joins them to another adjective:
    ``sporty and`` before ``tall``, ``and soothing`` behind ``very informative``; None where nothing does."""
    first, last = run[0], run[-1]
    near = text[max(low, _get_word(words, first - 2).end) : max(words[last].end, _get_word(words, last + 2).start)]
    if words[first].part != "ADJ" or "\n" in near:
        return None
    new = _join_distinct_words([new_words[i] for i in run])
    joint, before, end = _get_word(words, first - 1), _get_word(words, first - 2), words[last].end
    is_special = new == "special" and first == last
    if joint.text in _JOINTS and before.part == "ADJ" and before.end >= low:
        lead = _get_word(words, first - 3).lower_text
        needs_both = lead in _PAIRS or (lead == "," and joint.text != ",")
        if is_special and first - 2 not in new_words and not needs_both:
            return before.end, end, ""
        if not new_words[first] and (joint.text != "," or _is_attribute(words, first - 2)):
            return before.end, end, f" {new}" if new else ""
    after = _get_word(words, last + 2)
    is_before = _get_word(words, last + 1).text in _JOINTS and after.part == "ADJ" and last + 2 not in new_words
    if is_special and is_before and joint.lower_text not in _PAIRS:
        return words[first].start, after.start, ""
    return None


def _is_attribute(words: Sequence[Word], i: int) -> bool:
    """Tell whether an adjective, maybe one of several, stands before a noun, by what stands before it."""
    while _get_word(words, i).part in ("ADJ", "ADV") or _get_word(words, i).text in _JOINTS:
        i -= 1
    return _get_word(words, i).part not in ("AUX", "PUNCT", "")


def _find_opening_removal(
    text: str, words: Sequence[Word], run: Sequence[int], high: int
) -> tuple[int, int, str] | None:
    """Return the start and end of the removal of a sentence's first words, a comma behind them included, and what
    stands there then: the next word with a capital. None where a removal needs no such care."""
    start, after = words[run[0]].start, _get_word(words, run[-1] + 1)
    if not any(words[i].text[:1].isupper() for i in run) or not _starts_sentence(words, run[0]):
        return None
    if has_comma := after.text == ",":
        after = _get_word(words, run[-1] + 2)
    if after.start > high or not _OPENS.fullmatch(text, words[run[-1]].end, max(0, after.start)):
        return None
    if after.label is None and after.text[:1].islower() and after.end <= high:
        return start, after.end, after.text[:1].upper() + after.text[1:]
    return (start, after.start, "") if has_comma else None


CONTENT = frozenset({"NOUN", "PROPN", "VERB", "ADJ", "ADV", "NUM", "X", "SYM", "INTJ"})
_KEPT = frozenset(
    "not n't never when where how why whenever wherever there here then also very too so than as more most less "
    "least ever just even still yet however therefore though although always often sometimes once again now "
    "please yes no such same other own many much few last next well about s t re ve ll d m".split()
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
    if word.part == "ADV" and word.text in _PARTICLES and _get_word(words, i - 1).part == "VERB":
        return ()  # it goes with the verb
    if word.part in _NOMINAL:
        if after.start - word.end <= 1 and (after.part in _NOMINAL or (after.text == "-" and after.start == word.end)):
            return ("",)
        return _list_general_nouns(words, i)
    if word.part == "VERB":
        verb = _choose_general_verb(words, i)
        return (verb,) if verb and verb != word.lower_text else ()
    if word.part == "ADJ":
        if (after.part in _INSIDE or after.text == "-") and _get_word(words, i - 1).lower_text not in _DEGREES:
            return ("",)
        return ("special",) if word.lower_text != "special" else ()
    if word.part == "NUM" or word.lower_text in _read_word_list("numbers", "words"):
        return ("several",) if after.part in ("NOUN", "ADJ") and after.lower_text.endswith("s") else ("",)
    return ("",)


def _list_general_nouns(words: Sequence[Word], i: int) -> tuple[str, ...]:
    word, before = words[i], _get_word(words, i - 1)
    is_name = word.part == "PROPN" or (word.text[:1].isupper() and before.label is not None)
    stem, many = (word.lower_text, False) if is_name else _to_singular(word.lower_text)
    general_nouns, kinds = map_words_to_general_nouns(), _read_generalisations()["kinds"]
    kind = general_nouns.get(word.lower_text) or general_nouns.get(stem) or (stem if stem in kinds else None)
    if is_name and (kind is None or kinds.get(kind) == "place"):
        lead = _find_word_before_name(words, i)
        if kind is None:
            if lead.label is not None and lead.part == "PROPN":
                return ("",)  # the rest of a name
            return ("some place",) if lead.lower_text in _BEFORE_PLACE else ("something",)
        if lead.label is not None or lead.part not in ("DET", "PRON", "ADJ", "NOUN"):
            return ("some place",)
    if kind is None:
        kind = "person" if stem.endswith(("ist", "eer", "ess", "man", "woman", "ian")) else "thing"
    plain = kinds.get(kind, "thing")
    if plain == "thing" and not many and before.label is None and before.part not in _BEFORE_NOUN:
        plain, kind = "something", "something" if kind == "thing" else kind
    many = many or (not is_name and _is_bare_object(words, i))
    out = dict.fromkeys(_to_plural(n) if many else n for n in (kind, plain))
    return tuple(n for n in out if n != word.lower_text)


def _find_word_before_name(words: Sequence[Word], i: int) -> Word:
    """Return what stands before the name that ends with word ``i``, and before further names in front of a comma."""
    i -= 1
    while True:
        while _get_word(words, i).part == "PROPN" and words[i].label is None:
            i -= 1
        if _get_word(words, i).text != "," or _get_word(words, i - 1).part != "PROPN":
            return _get_word(words, i)
        i -= 2


def _is_bare_object(words: Sequence[Word], i: int) -> bool:
    """Tell whether a singular noun is an object with adjectives or a verb before it, and without an article."""
    if _get_word(words, i + 1).part in ("VERB", "AUX"):
        return False
    first = i
    while _get_word(words, first - 1).part == "ADJ" and words[first - 1].label is None:
        first -= 1
    before = _get_word(words, first - 1)
    return before.label is None and (before.part == "VERB" or (first < i and before.part == "ADP"))


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
    return noun if noun in _MASS or noun == "something" else pluralise_noun(noun)


def _choose_general_verb(words: Sequence[Word], i: int) -> str:
    """Return a form of ``do``, or of ``have`` where an object follows; before a preposition and after a form of ``be``,
    ``involved``."""
    word = words[i].lower_text
    if word in _read_word_list("verbs", "light"):
        return ""
    before = next((w for w in reversed(words[:i]) if w.part not in ("ADV", "PART") or w.lower_text == "to"), _NO_WORD)
    lead, after = before.lower_text, _get_word(words, i + 1)
    carries = after.label is not None or after.part in _INSIDE or after.part in ("DET", "PRON")
    if after.part == "PART" and after.lower_text == "to":  # likes to, wanted to
        is_past = word.endswith("ed") or word in _read_word_list("verbs", "past")
        return "coming" if word.endswith("ing") else "came" if is_past else "comes" if word.endswith("s") else "come"
    stands = after.part == "ADP"  # lived in, moved to
    many = lead in ("they", "we", "you") or (before.part == "NOUN" and _to_singular(lead)[1])
    if lead in _BEFORE_INFINITIVE:
        return "have" if carries else "be involved" if stands else "do"
    if word.endswith("ing") and len(word) > 4:
        return "having" if carries else "being involved" if stands else "doing"
    is_past = word.endswith("ed") or word in _read_word_list("verbs", "past")
    is_participle = is_past or word in _read_word_list("verbs", "participle")
    if is_participle and lead in ("is", "are", "was", "were", "been", "be", "being", "am", "'s", "s", "re"):
        return "involved"
    if is_participle and lead in ("has", "have", "had", "having", "ve"):
        return "had" if carries else "been involved" if stands else "done"
    if is_past:
        if before.part in _NOMINAL and after.lower_text == "by" and word.endswith("ed") and not carries:
            return "involved"
        return "had" if carries else ("were involved" if many else "was involved") if stands else "did"
    if is_participle:
        return "involved"
    if word.endswith("s") and not word.endswith("ss"):
        return "has" if carries else "is involved" if stands else "does"
    return "have" if carries else "are involved" if stands else "do"


@cache
def _read_generalisations(name: str = "generalising.toml") -> Mapping[str, Any]:
    return tomllib.loads(files("allonym.evaluate").joinpath(name).read_text(encoding="utf-8"))


@cache
def _read_word_list(group: str, name: str) -> frozenset[str]:
    return frozenset(_read_generalisations()[group][name].split())


@cache
def map_words_to_general_nouns() -> Mapping[str, str]:
    """Return the general noun for each word of the classes; of two classes of a word, the first counts."""
    out: dict[str, str] = {}
    for name in ("generalising.toml", "nouns.toml"):
        for kind, listed in _read_generalisations(name)["classes"].items():
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
