"""The text that replaces a mention: the donor's surface of the same sort, or a general noun.

A donor brings the forms in which its own chunk speaks of it. A mention is full, short, an acronym, a family name or a
given name among the forms of its own entity, and takes the donor's form of that sort, derived from the full one if the
donor has none. Determiner, title, case and plural follow the mention and its place in the sentence; the possessive
ending does not belong to the mention and stays.

An entity that could not be exchanged may become general: ``a bank`` for a bank's name, ``a city`` for a city's.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import cache, lru_cache
from importlib.resources import files

from allonym.errors import UsageError
from allonym.kb import KnowledgeBase
from allonym.labels import TAXONOMY
from allonym.replace.naming import Piece, parse_name, pluralise_name
from allonym.replace.wording import (
    find_article_change,
    fit_article,
    grow_span,
    is_word_character,
    pluralise_noun,
    trim_mention,
)
from allonym.swap.categories import DETERMINER, get_category_label, is_initialism
from allonym.swap.corpus import Value
from allonym.swap.places import FEATURES
from allonym.swap.table import Recoding, recoding
from allonym.swap.terms import remove_plural_ending
from allonym.text.names import normalize_organization, normalize_surface

_DETERMINED = re.compile(
    r"(?:^|[\s(\"“])(?:an?|the|our|its|their|your|my|his|her|this|that|these|those|every|each|any|some|no|[^\W_]+['’]s)"
    r"\s+(?:[^\W_]+\s+)?$",
    re.IGNORECASE,
)
_TAKES_THE = re.compile(
    r"(?:^|[.!?:;,(\"“—–]\s*|\b(?:of|in|at|by|to|for|from|with|and|or|on|as|than|like|that|between|against|through|via|into"
    r"|about|under|since|but|while|when|where|because|if)\s+)$",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"(?:^|[.!?…][\"'”’)]*\s+|\n\s*|^[\"'“‘(]+)[\"'“‘(]*$")
_ATTRIBUTE = FEATURES.index("attribute")
_BEFORE = 40
"""Characters before a mention that decide how it fits into its sentence."""

Change = tuple[int, int, str]
"""Start, end, replacement."""


def get_top_label(label: str, category: str) -> str:
    """Return the topmost label above a mention's, by which the sentence around it is read."""
    label = label if label in TAXONOMY else get_category_label(category)
    return TAXONOMY.get_family(label)


def fit_donor(text: str, value: Value, donor: Value, *, language: str = "en") -> list[Change]:
    """Return the replacement of each mention of ``value`` by ``donor``.

    Args:
        text: the document of ``value``.
        value: the entity whose slot it is, with its mentions.
        donor: the entity that comes; its ``forms`` count.
        language: ISO 639-1; determiners are read in English only.

    Returns:
        Per mention (start, end, replacement): the part of the mention that changes, without possessive ending and the
        sentence's punctuation, and its new text.
    """
    out = []
    is_person = get_top_label(get_category_label(value.category), value.category) == "PERSON"
    for span in value.spans:
        a, b = trim_mention(text, span.start, span.end, get_top_label(span.label, value.category))
        mention = text[a:b]
        if is_person:
            new = _replace_person_mention(mention, value.forms, donor.forms)
        else:
            new = _replace_name_mention(
                mention, value.forms, donor.forms, classify_position(text, a) if language == "en" else ""
            )
            if value.category == donor.category == "Term" and language == "en":
                new = match_noun_number(mention, new)
        if new == mention:
            new = next((f for f in donor.forms if f != mention), new)
        out.append((a, b, new))
    return out


def adjust_articles(text: str, changes: list[Change], low: int = 0) -> list[Change]:
    """Return the changes, sorted, as plans make them: with letters that stick to a mention, and the article before."""
    out: list[Change] = []
    end, last_char = low, ""
    changes = sorted(changes)
    for n, (first, last, new) in enumerate(changes):
        limit = changes[n + 1][0] if n + 1 < len(changes) else len(text)
        a, b = grow_span(text, first, last, end, limit)
        before = text[a - 1 : a] if a > end else last_char
        if new and before and is_word_character(before) and is_word_character(new[0]):
            new = " " + new
        if new and b < limit and is_word_character(new[-1]) and is_word_character(text[b]):
            new += " "
        if new and a > 1 and text[a - 2] in "anAN" and (article := find_article_change(text, a, end, new)) is not None:
            out.append(article)
        out.append((a, b, new))
        end, last_char = b, new[-1:] or before
    return out


def classify_position(text: str, start: int) -> str:
    """Return a mention's place: ``determined``, at the ``start`` of a sentence, ``open`` to a ``the``, or empty."""
    before = text[max(0, start - _BEFORE) : start]
    if _DETERMINED.search(before):
        return "determined"
    if _SENTENCE.search(before):
        return "start"
    return "open" if _TAKES_THE.search(before) else ""


# Names of organisations, products, places and the like


def _split_determiner(form: str) -> tuple[str, str]:
    """Return the leading determiner (with its space), and the rest."""
    match = DETERMINER.match(form)
    return (match[0], form[match.end() :]) if match else ("", form)


def remove_legal_form(form: str) -> str:
    """Return a name without ``Inc.``, ``Corporation`` and the like at its end.

    >>> remove_legal_form("Acme Robotics, Inc.")
    'Acme Robotics'
    """
    words = form.split()
    while len(words) > 1 and normalize_organization(f"x {normalize_surface(words[-1])}") == "x":
        words.pop()
    return " ".join(words).rstrip(" ,&") or form


@lru_cache(maxsize=8192)
def _pick_full_short_and_acronym(forms: tuple[str, ...]) -> tuple[str, str, str]:
    """Return the full form, the short one, and the acronym (the short one if there is none), without determiners."""
    bare = list(dict.fromkeys(_split_determiner(f)[1] for f in forms))
    names = [f for f in bare if not is_initialism(f)] or bare
    full = max(names, key=lambda f: (len(f.split()), len(f)))
    short = remove_legal_form(min(names, key=lambda f: (len(f.split()), len(f))))
    return full, short, next((f for f in bare if is_initialism(f) and f != full), short)


@lru_cache(maxsize=65536)
def _replace_name_mention(mention: str, forms: tuple[str, ...], donor_forms: tuple[str, ...], position: str) -> str:
    determiner, surface = _split_determiner(mention)
    full, _, _ = _pick_full_short_and_acronym(forms or (mention,))
    new_full, new_short, new_acronym = _pick_full_short_and_acronym(donor_forms)
    is_full = normalize_surface(surface) == normalize_surface(full)
    if is_initialism(surface) and not is_full:
        new = new_acronym
    elif not is_full and len(surface) < len(remove_legal_form(full)):
        new = new_short
    else:
        new = new_full if remove_legal_form(surface) != surface else remove_legal_form(new_full)
    new = _copy_case(surface, _match_plural(surface, forms, new, donor_forms), position)
    takes_the = any(_split_determiner(f)[0].strip().lower() == "the" for f in donor_forms)
    word = determiner.strip()
    if word.lower() == "the":
        return determiner + new if takes_the else _capitalise_if(new, word[:1].isupper())
    if word.lower() in ("a", "an"):
        return (fit_article(word, new) or word) + determiner[len(determiner.rstrip()) :] + new
    if not determiner and takes_the and position in ("start", "open"):
        return ("The " if position == "start" else "the ") + new
    return determiner + new


def _capitalise_if(text: str, condition: bool) -> str:
    """Capitalise the first word of a sentence; brands such as ``eBay`` stay as they are written."""
    return text[:1].upper() + text[1:] if condition and text.islower() else text


def _match_plural(surface: str, forms: tuple[str, ...], replacement: str, donor_forms: tuple[str, ...]) -> str:
    """Return the plural if the mention is the plural of a singular in its chunk, and the other way round."""
    if surface.endswith("s") and surface[:-1] in forms and not replacement.endswith("s"):
        return pluralise_name(replacement)
    if f"{surface}s" in forms and replacement.endswith("s"):
        return next((f for f in donor_forms if f"{f}s" == replacement), replacement)
    return replacement


def is_plural(noun: str) -> bool:
    """Tell whether a common noun, or the last word of several, has a plural's ending.

    >>> is_plural("eye diseases"), is_plural("touch-tone"), is_plural("gas")
    (True, False, False)
    """
    last = re.split(r"[\s-]", noun.lower())[-1]
    return remove_plural_ending(last) != last


def match_noun_number(surface: str, replacement: str) -> str:
    """Return a common noun in the number of the mention; names and acronyms stay."""
    if not (surface[-1:].islower() and replacement[-1:].islower()):
        return replacement
    noun, new_noun = surface.split()[-1].lower(), replacement.split()[-1]
    if not (noun.isalpha() and new_noun.isalpha()):
        return replacement
    many, base = remove_plural_ending(noun) != noun, remove_plural_ending(new_noun)
    if many == (base != new_noun.lower()):
        return replacement
    if many:
        return pluralise_noun(replacement)
    if new_noun.lower().startswith(base):
        base = new_noun[: len(base)]
    elif new_noun[:1].isupper():
        base = base[:1].upper() + base[1:]
    return replacement[: -len(new_noun)] + base


def _copy_case(surface: str, replacement: str, position: str) -> str:
    letters = [c for c in surface if c.isalpha()]
    if letters and all(c.isupper() for c in letters) and (len(letters) > 6 or " " in surface):
        return replacement.upper()
    if letters and all(c.islower() for c in letters) and not is_initialism(replacement):
        return (
            replacement.lower()
            if sum(w[:1].isupper() for w in replacement.split()) <= 1 or " " not in replacement
            else replacement
        )
    return _capitalise_if(replacement, position == "start")


# Names of people


def _is_name_or_initial(piece: Piece) -> bool:
    return piece.kind in ("name", "initial")


@lru_cache(maxsize=8192)
def _split_person_names(forms: tuple[str, ...]) -> tuple[str, str, str, str]:
    """Return full name, given names, family name with its particles, and title of a person."""
    best: tuple[Piece, ...] = ()
    title = ""
    for form in forms:
        pieces = parse_name(_split_determiner(form)[1])
        title = title or next((p.text for p in pieces if p.kind == "title"), "")
        if sum(map(_is_name_or_initial, pieces)) > sum(map(_is_name_or_initial, best)):
            best = pieces
    names = [p for p in best if _is_name_or_initial(p) or p.kind == "particle"]
    if not names:
        return forms[0], "", forms[0], title
    text = "".join(p.text for p in best)
    family, comma, given_name = (part.strip() for part in text.partition(","))
    if not (comma and family and len(names) > 1 and any(p.kind == "name" for p in parse_name(given_name))):
        split = len(names) - 1
        while split > 1 and names[split - 1].kind == "particle":
            split -= 1
        given_name = " ".join(p.text for p in names[:split])
        family = " ".join(p.text for p in names[split:])
    return f"{given_name} {family}".strip(), given_name, family, title


@lru_cache(maxsize=65536)
def _replace_person_mention(mention: str, forms: tuple[str, ...], donor_forms: tuple[str, ...]) -> str:
    full, given_name, family, title = _split_person_names(donor_forms)
    _, old_given, old_family, _ = _split_person_names(forms or (mention,))
    determiner, surface = _split_determiner(mention)
    pieces = parse_name(surface)
    names = [p.text for p in pieces if _is_name_or_initial(p) or p.kind == "particle"]
    titles = [p.text for p in pieces if p.kind == "title"]
    lead = surface[: surface.find(names[0])] if titles and names else ""
    if len(titles) == 1 and title and normalize_surface(title) != normalize_surface(titles[0]):
        lead = title + lead[len(titles[0]) :]
    old_first = normalize_surface(old_given.split()[0] if old_given else "")
    if sum(map(_is_name_or_initial, pieces)) > 1:
        new = f"{family}, {given_name}" if "," in surface and given_name and "," not in lead else full
    elif not titles and names and given_name and normalize_surface(names[0]) == old_first:
        new = given_name.split()[0]
    elif determiner and names and normalize_surface(names[-1]) == normalize_surface(pluralise_name(old_family)):
        return determiner + pluralise_name(family)
    else:
        new = family
    letters = [c for c in surface if c.isalpha()]
    if len(letters) > 3 and all(c.isupper() for c in letters):
        return (lead + new).upper()
    if letters and all(c.islower() for c in letters):
        return (lead + new).lower()
    return lead + new


# General nouns


@cache
def _load_nouns(table: str) -> Mapping[str, str]:
    text = files("allonym.swap").joinpath("general_nouns.toml").read_text(encoding="utf-8")
    nouns: Mapping[str, str] = tomllib.loads(text)[table]
    return nouns


class GeneralNouns:
    """Nouns for entities: by a user's table of classes, else by the knowledge base, else by category.

    Args:
        recode: the user's, whose classes are used as they are written; None: the knowledge base alone.
    """

    def __init__(self, recode: Recoding | None = None) -> None:
        if recode is not None and not isinstance(recode, Recoding):
            raise UsageError(f"recode must be a Recoding, got {type(recode).__name__}")
        self._recode = recode
        self._knowledge: Recoding | None = None

    def get_noun(self, category: str, key: str) -> str:
        """Return a noun such as ``bank`` for an entity; empty for categories that have none."""
        if self._recode is not None and (name := self._recode(category, key)) != key:
            return name
        if category not in _load_nouns("categories"):
            return ""
        if self._knowledge is None:
            self._knowledge = recoding(knowledge=KnowledgeBase.open())
        name = self._knowledge(category, key)
        return _load_nouns("classes").get(name, name) if name != key else _load_nouns("categories")[category]

    def list_noun_changes(self, text: str, value: Value) -> list[Change]:
        """Return the replacement of each mention, as :func:`fit_donor`; empty if there is no noun."""
        noun = self.get_noun(value.category, value.key)
        is_attribute = value.place[_ATTRIBUTE : _ATTRIBUTE + 1] == (1,)
        is_own = self._recode is not None and self._recode(value.category, value.key) != value.key
        described = noun if is_own or not is_attribute else _load_nouns("attributes").get(noun, noun)  # local hospitals
        out = []
        for span in value.spans if noun else ():
            a, b = trim_mention(text, span.start, span.end, get_top_label(span.label, value.category))
            place = classify_position(text, a)
            first, space, _ = text[a:b].partition(" ")
            new_noun = noun if text[b : b + 1] == "-" else described
            if space and first.lower() in ("the", "our", "its", "their", "your", "my", "this", "that"):
                new = f"{first} {new_noun}"
            elif place == "determined" or is_attribute or text[max(0, a - 2) : a].rstrip()[-1:] == "-":  # anti-
                new = new_noun
            else:
                new = f"{fit_article('a', noun) or 'a'} {noun}"
            out.append((a, b, new[:1].upper() + new[1:] if place == "start" else new))
        return out
