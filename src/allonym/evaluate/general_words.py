"""Words of an anonymised text, and the more general ones that may stand for them in its sentences. English only.

They come from a table of classes, else from the part of speech: ``guitar`` becomes ``music`` and, where that still
reveals too much, ``thing``; a verb becomes a general one that fits what follows, an object, a preposition, a clause or
nothing; a number a range; an adjective or adverb that only adds something goes. Function words stay.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

from allonym.models.pos import parts_of_speech
from allonym.replace.wording import pluralise_noun, read_number, write_number
from allonym.text.placeholders import find_placeholders

OPENING = frozenset(".!?")
_NOMINAL = frozenset({"NOUN", "PROPN"})
INSIDE = frozenset({"NOUN", "PROPN", "ADJ", "NUM"})
_BEFORE_NOUN = INSIDE | {"DET", "PRON", "PUNCT"}
_ALWAYS_PARTICLES = frozenset("away back off out together up".split())
_PARTICLES = frozenset("across along apart around away back down off on out over through together up".split())
_BEFORE_PLACE = frozenset("in at from near to".split())
MASS = frozenset("music clothing food sport illness time money medicine".split())
"""General nouns without a plural."""
_IN_NUMBERS = frozenset("/.,:")
_QUOTES = frozenset("\"'“‘")
_BEFORE_YEAR = frozenset("in since from by until before after around circa during".split())
_ABOUT = frozenset("about around nearly almost approximately only just exactly another least most under below".split())
_COUNTING = frozenset("many few several these those both various numerous two three some".split())
AMOUNTS = frozenset("number lot lots couple variety range series kind type sort".split())
_COMPARING = frozenset("so too more most as less least".split())
_BEFORE_INFINITIVE = frozenset(
    "to can could will would shall should may might must do does did don doesn didn t".split()
)
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


def get_word(words: Sequence[Word], i: int) -> Word:
    """Return word ``i``; before the first and after the last word one without text and part of speech."""
    return words[i] if 0 <= i < len(words) else _NO_WORD


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
    after = get_word(words, i + 1)
    if get_word(words, i - 1).part == "VERB" and has_particle(words, i - 1):
        return ()  # it goes with the verb
    if get_word(words, i - 1).text == "to" and words[i - 1].part == "PART":
        return (_conjugate(_choose_verb_before(words, i + 1), 0),)  # a verb, whatever the tagger says
    if word.part in _NOMINAL:
        if (
            after.start - word.end <= 1
            and after.text != "/"
            and (after.part in _NOMINAL or (after.text == "-" and after.start == word.end))
        ):
            return ("",)
        if after.text == "of" and word.lower_text in AMOUNTS:
            return ()  # a number of things
        return _list_general_nouns(words, i)
    if word.part == "VERB":
        before = get_word(words, i - 1)
        is_joined = before.text == "-" and before.end == word.start
        is_listed = before.text in (",", "and", "or") and get_word(words, i - 2).part == "ADJ"
        is_whole = before.part == "DET" or (is_listed and after.label is None) or _is_behind_owner(words, i)
        if is_joined or (is_whole and after.part in _NOMINAL):
            return ("",)  # right-handed, a seated guest, a talented, determined player, with her swept hair
        verbs = (find_plain_verb(words, i), _choose_general_verb(words, i))
        return tuple(dict.fromkeys(v for v in verbs if v is not None and v != word.lower_text))
    if word.part == "ADJ":
        before = get_word(words, i - 1)
        if (after.part in INSIDE or after.text in ("-", "ever")) and before.lower_text not in _COMPARING:
            return ("",)
        if before.lower_text in ("a", "an", "the") and (
            after.part in ("ADP", "AUX", "VERB", "") or after.text in OPENING
        ):
            return ("one" if after.text == "of" and word.lower_text.endswith("est") else "thing",)  # used as a noun
        return ("special",) if word.lower_text != "special" else ()
    if word.part == "NUM" or word.lower_text in read_word_list("numbers", "words"):
        return _list_general_numbers(words, i)
    return ("",)


def _is_behind_owner(words: Sequence[Word], i: int) -> bool:
    """Tell whether a preposition and a possessive stand before word ``i``, which is no gerund."""
    owner = get_word(words, i - 1)
    is_owner = owner.part == "PRON" or (owner.label or "").startswith("PRONOUN")
    return is_owner and get_word(words, i - 2).part == "ADP" and not words[i].lower_text.endswith("ing")


def _list_general_numbers(words: Sequence[Word], i: int) -> tuple[str, ...]:
    """List ranges of a number: a decade of a year, a lower bound of a count or an age, then ``several``."""
    word, before, after = words[i], get_word(words, i - 1), get_word(words, i + 1)
    k = i + 1 + (after.part == "ADJ")
    is_count = words[k].part == "NOUN" and words[k].lower_text.endswith("s") if k < len(words) else False
    value = read_number(word.text)
    joints = (before.text if before.end == word.start else "", after.text if after.start == word.end else "")
    nearest = (get_word(words, i - 2), get_word(words, i + 2))
    if any(mark and mark in _IN_NUMBERS and w.part == "NUM" for mark, w in zip(joints, nearest, strict=True)):
        return ()  # a part of a number does not go alone
    if value is None or joints[0] or joints[1] in ("-", "–", "%"):
        return ("several",) if is_count else ("",)
    lead, decade = before.lower_text, value // 10 * 10
    if lead in _BEFORE_YEAR and len(word.text) == 4 and 1000 <= value < 2100 and not is_count:
        return (f"the {decade}s", "some year")
    is_age = lead == "aged" or (lead == "of" and get_word(words, i - 2).lower_text == "age")
    is_owned = before.part in ("DET", "PRON") or before.label is not None
    if not is_age and (not is_count or is_owned or lead in _ABOUT):
        return ("several",) if is_count and not is_owned else ("",)
    if value <= 10:
        return ("several",) if is_count else ("",)
    unit = 10 ** (len(str(value - 1)) - 1)
    least = write_number((value - 1) // unit * unit, word.lower_text)
    bound = "ten" if least == "10" else least
    if is_age:
        return (f"over {bound}",)
    return (bound,) if lead in ("than", "over") else (f"more than {bound}", "several")


def _list_general_nouns(words: Sequence[Word], i: int) -> tuple[str, ...]:
    word, before = words[i], get_word(words, i - 1)
    is_name = word.part == "PROPN" or (word.text[:1].isupper() and before.label is not None)
    stem, many = (word.lower_text, False) if is_name else to_singular(word.lower_text)
    general_nouns, kinds = map_words_to_general_nouns(), _read_generalisations()["kinds"]
    kind = general_nouns.get(word.lower_text) or general_nouns.get(stem) or (stem if stem in kinds else None)
    if is_name and (kind is None or kinds.get(kind) == "place"):
        lead = _find_word_before_name(words, i)
        if kind is None:
            if lead.label is not None and lead.part == "PROPN":
                return ("",)  # the rest of a name
            if lead.lower_text in _BEFORE_PLACE:
                return ("some place",)
            return ("somebody",) if get_word(words, i + 1).part in ("VERB", "AUX") else ("something",)
        if lead.label is not None or lead.part not in ("DET", "PRON", "ADJ", "NOUN"):
            return ("some place",)
    many = many and before.lower_text not in ("a", "an")
    if kind is None and get_word(words, i + 1).part == "ADJ" and get_word(words, i + 2).part in _NOMINAL:
        return ("",)  # an adjective, whatever the tagger says
    is_subject = (before.label or "").startswith(("PERSON", "PRONOUN"))
    if kind is None and is_subject and many and get_word(words, i + 1).text == "to":
        return ("comes",)  # aspires to, whatever the tagger says
    if kind is None:
        kind = "person" if stem.endswith(("ist", "eer", "ess", "man", "woman", "ian")) else "thing"
    plain = kinds.get(kind, "thing")
    if (
        plain == "thing"
        and not many
        and before.label is None
        and (before.part not in _BEFORE_NOUN or before.text in ",(")
    ):
        plain, kind = "something", "something" if kind == "thing" else kind
    is_counted = many and _is_counted(words, i)
    many = many or (not is_name and _is_bare_object(words, i))
    out = dict.fromkeys(("things" if is_counted and n in MASS else _to_plural(n)) if many else n for n in (kind, plain))
    return tuple(n for n in out if n != word.lower_text)


def _is_counted(words: Sequence[Word], i: int) -> bool:
    """Tell whether a plural noun has a number or the like before it, or a plural verb behind it."""
    first = i - 1
    while get_word(words, first).part in ("ADJ", "NOUN") and words[first].label is None and first >= 0:
        if words[first].lower_text in _COUNTING:
            return True
        first -= 1
    before = get_word(words, first)
    is_number = before.part == "NUM" or before.lower_text in _COUNTING
    return is_number or get_word(words, i + 1).lower_text in ("are", "were", "have")


def _find_word_before_name(words: Sequence[Word], i: int) -> Word:
    """Return what stands before the name that ends with word ``i``, and before further names in front of a comma."""
    i -= 1
    while True:
        while get_word(words, i).part == "PROPN" and words[i].label is None:
            i -= 1
        if get_word(words, i).text != "," or get_word(words, i - 1).part != "PROPN":
            return get_word(words, i)
        i -= 2


def _is_bare_object(words: Sequence[Word], i: int) -> bool:
    """Tell whether a singular noun is an object with adjectives or a verb before it, and without an article."""
    if get_word(words, i + 1).part in ("VERB", "AUX"):
        return False
    first = i
    while get_word(words, first - 1).part == "ADJ" and words[first - 1].label is None:
        first -= 1
    before = get_word(words, first - 1)
    if before.part == "VERB" and get_word(words, first - 2).part in ("DET", "PUNCT"):
        return False  # a seated guest
    return before.label is None and (before.part == "VERB" or (first < i and before.part == "ADP"))


def to_singular(word: str) -> tuple[str, bool]:
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
    return noun if noun in MASS or noun == "something" else pluralise_noun(noun)


_BE = frozenset("is are was were been be being am 's s re".split())
_HAVE = frozenset("has have had having ve".split())
_BEFORE_GERUND = frozenset("about at by for from in into of on with without".split())
_QUESTIONS = frozenset("how what which why where whether if".split())


def find_plain_verb(words: Sequence[Word], i: int) -> str | None:
    """Return the form of the plain verb that may stand for verb ``i`` by its meaning: ``made`` for ``wrote``; None
    where there is none."""
    plain, word = _map_verbs_to_plain_ones(), words[i].lower_text
    ends = ("", "s", "es", "d", "ed", "ing")
    stems = [word.removesuffix(end) for end in ends if word.endswith(end)]
    if word.endswith(("ed", "ing")):
        bare = word.removesuffix("ed").removesuffix("ing")
        stems += [bare + "e", bare[:-1], bare.removesuffix("i") + "y"]
    verb = next((plain[stem] for stem in stems if stem in plain), None)
    return None if verb is None or has_particle(words, i) else _choose_general_verb(words, i, verb)


def _choose_general_verb(words: Sequence[Word], i: int, plain: str = "") -> str | None:
    """Return the form of a general verb that fits what stands around word ``i``: an object, a preposition, a clause, an
    infinitive, or nothing; or that of ``plain``, which fits where the word does. Empty: the verb can go; None: it
    stays."""
    word = words[i].lower_text
    if word in read_word_list("verbs", "light") or word in read_word_list("verbs", "frames"):
        return None
    before = next((w for w in reversed(words[:i]) if w.part not in ("ADV", "PART") or w.lower_text == "to"), _NO_WORD)
    lead, next_word = before.lower_text, i + 1 + has_particle(words, i)
    while (after := get_word(words, next_word)).text[:1] in _QUOTES or after.part == "ADV":
        if after.lower_text in _QUESTIONS or after.lower_text == "when":
            break
        next_word += 1
    is_past = word.endswith("ed") or word in read_word_list("verbs", "past")
    is_participle = is_past or word in read_word_list("verbs", "participle")
    is_gerund = word.endswith("ing") and len(word) > 4
    if is_participle and not is_gerund and (lead in _BE or (not is_past and lead not in _HAVE)):
        if plain:
            return None if " " in plain else _conjugate(plain, 4)
        return _choose_passive(words, next_word, has_subject=lead in _BE)
    if is_past and before.part in ("PUNCT", "") and is_preposition(after):
        return _conjugate(plain, 4) if plain and " " not in plain else "involved"  # now based in
    verb = plain or _choose_verb_before(words, next_word)
    if plain in ("do", "get", "have", "make", "give", "go to") and not _carries_object(words, next_word):
        return None
    if word in read_word_list("verbs", "copulas"):
        verb = "be"
    if verb == "go on" and _is_clause_without_that(words, i):
        verb = "have"
    if is_gerund:
        if verb == "keep":
            return ""
        if verb == "go on" and lead in _BE:
            return "busy"
        if verb == "go on" and (before.part == "VERB" or is_preposition(before)):
            return "something"
        return "" if verb == "be" and lead in _BE else _conjugate(verb, 3)
    if lead in _BEFORE_INFINITIVE:
        return "stay" if verb == "be" and lead not in ("to", "can", "could") else _conjugate(verb, 0)
    if is_participle and lead in _HAVE:
        return _conjugate(verb, 4)
    many = lead in ("they", "we", "you") or (before.part == "NOUN" and to_singular(lead)[1])
    if is_past:
        if before.part in _NOMINAL and word.endswith("ed") and after.lower_text == "by":
            return "noticed"
        return "were" if verb == "be" and many else _conjugate(verb, 2)
    if word.endswith("s") and not word.endswith("ss"):
        return _conjugate(verb, 1)
    return ("am" if lead == "i" else "are") if verb == "be" else _conjugate(verb, 0)


def has_particle(words: Sequence[Word], i: int) -> bool:
    """Tell whether a particle follows verb ``i`` that goes with it: ``grew up in``."""
    after, second = get_word(words, i + 1), get_word(words, i + 2)
    if after.label is not None or after.part not in ("ADV", "ADP"):
        return False
    if after.text not in _PARTICLES:
        return after.text == "to" and second.text == "by"
    return (
        after.part == "ADV"
        or after.text in _ALWAYS_PARTICLES
        or second.text in ("as", "by")
        or second.part in ("ADP", "PUNCT", "CCONJ", "")
    )


def _is_clause_without_that(words: Sequence[Word], i: int) -> bool:
    """Tell whether verb ``i`` ends a clause that says more of a noun before it: ``books she has written``."""
    i -= 1
    while get_word(words, i).part in ("AUX", "ADV") and words[i].label is None:
        i -= 1
    subject, noun = get_word(words, i), get_word(words, i - 1)
    if noun.lower_text in ("that", "which"):
        noun = get_word(words, i - 2)
    is_subject = subject.part == "PRON" or (subject.label or "").startswith(("PERSON", "PRONOUN"))
    return is_subject and noun.part == "NOUN" and noun.label is None


def is_preposition(word: Word) -> bool:
    """Tell whether a word is a preposition, also before a gerund, where the tagger calls it a conjunction."""
    return word.part == "ADP" or (word.part == "SCONJ" and word.lower_text in _BEFORE_GERUND)


def _carries_object(words: Sequence[Word], i: int) -> bool:
    after = get_word(words, i)
    if after.label is not None and after.label.startswith(("DATE", "NUMERIC")):
        return get_word(words, i + 1).part in _NOMINAL
    return after.label is not None or (after.part in INSIDE and after.text != "due") or after.part in ("DET", "PRON")


def _choose_passive(words: Sequence[Word], i: int, *, has_subject: bool) -> str:
    """Return what stands for a participle before word ``i``; ``has_subject``: a form of ``be`` stands before it."""
    after, second = get_word(words, i), get_word(words, i + 1)
    if after.lower_text in ("that", *_QUESTIONS) and second.part != "NOUN":
        return "said"
    if after.lower_text == "to" and second.part in ("VERB", "AUX"):
        return "able"
    if is_preposition(after):
        general: str = _read_generalisations()["verbs"]["passives"].get(after.lower_text, "")
        return general if general or has_subject else "involved"
    return "given" if has_subject and _carries_object(words, i) else "involved"


def _choose_verb_before(words: Sequence[Word], i: int) -> str:
    """Return the general verb that may stand before word ``i``."""
    after, second, third = (get_word(words, i + k) for k in range(3))
    if after.lower_text == "to" and second.part in ("VERB", "AUX"):
        return "come"
    if after.lower_text in _QUESTIONS or (after.lower_text == "that" and second.part not in ("NOUN", "ADJ")):
        return "say"
    if is_preposition(after):
        verb: str = _read_generalisations()["verbs"]["before"].get(after.lower_text, "be")
        return verb
    if after.part == "VERB" and after.lower_text.endswith("ing"):
        return "keep"
    if not _carries_object(words, i):
        return "go on"
    if second.part == "AUX" and (after.part == "PRON" or after.label is not None):
        return "say"  # a clause without "that"
    is_whole = second.label is None and second.part not in (*INSIDE, "PART") and second.text[:1] not in "-'’"
    is_named = after.label is not None and after.label.startswith(("PERSON", "PRONOUN", "LOCATION"))
    if is_whole and (is_named or after.lower_text in ("him", "her", "them", "me", "us")):
        return "say" if second.part == "VERB" and third.part == "ADP" else "know"
    return "have"


def _conjugate(verb: str, form: int) -> str:
    """Return the infinitive (0), the third person (1), the past (2), the gerund (3) or the participle (4) of a verb."""
    first, _, rest = verb.partition(" ")
    forms: str = _read_generalisations()["verbs"]["forms"][first]
    return f"{forms.split()[form]} {rest}".rstrip()


@cache
def _read_generalisations(name: str = "generalising.toml") -> Mapping[str, Any]:
    return tomllib.loads(files("allonym.evaluate").joinpath(name).read_text(encoding="utf-8"))


@cache
def read_word_list(group: str, name: str) -> frozenset[str]:
    """Return a list of words of the table."""
    return frozenset(_read_generalisations()[group][name].split())


@cache
def _map_verbs_to_plain_ones() -> Mapping[str, str]:
    classes = _read_generalisations()["verbs"]["classes"]
    return {word: verb for verb, listed in classes.items() for word in listed.split()}


@cache
def has_own_class(word: str) -> bool:
    """Tell whether a noun is in the first table, which is written for descriptions of people."""
    listed = _read_generalisations()["classes"].values()
    return any({word, to_singular(word)[0]} & set(words.split()) for words in listed)


@cache
def map_words_to_general_nouns() -> Mapping[str, str]:
    """Return the general noun for each word of the classes; of two classes of a word, the first counts."""
    out: dict[str, str] = {}
    for name in ("generalising.toml", "nouns.toml"):
        for kind, listed in _read_generalisations(name)["classes"].items():
            for word in listed.split():
                out.setdefault(word, kind)
    return out
