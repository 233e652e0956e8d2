"""Which surface of a donor stands for which mention: the full name for the full name, the short one for the short one.

A donor brings the forms in which its own chunk speaks of it. A mention is full, short, an acronym, a family name or a
given name among the forms of its own entity, and takes the donor's form of that sort, made from the full one where the
donor has none. Determiner, title, case and plural follow the mention and its place in the sentence; the possessive
ending is none of the mention's and stays.
"""

from __future__ import annotations

import re
from functools import lru_cache

from allonym.labels import TAXONOMY
from allonym.replace.context import article, attached, core, grown, with_article
from allonym.replace.naming import Piece, parse, plural
from allonym.swap.categories import label_of
from allonym.swap.corpus import Value
from allonym.swap.terms import stem
from allonym.text.names import organization, plain

_DETERMINER = re.compile(r"(?:an?|the|our|its|their|your|my|this|that|these|those)\s+(?=\S)", re.IGNORECASE)
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
_BEFORE = 40
"""Characters before a mention that may tell how it stands in its sentence."""


def family_of(label: str, category: str) -> str:
    """The topmost label above a mention's, by which the sentence around it is read."""
    known = label if label in TAXONOMY else label_of(category)
    return TAXONOMY.lineage(known)[-1] if known in TAXONOMY else known


def fitted(text: str, own: Value, donor: Value, *, language: str = "en") -> list[tuple[int, int, str]]:
    """What stands for each mention of ``own`` once ``donor`` is in its place.

    Args:
        text: the document of ``own``.
        own: the value whose slot it is, with its mentions.
        donor: the value that comes; its ``forms`` count.
        language: ISO 639-1; determiners are read in English only.

    Returns:
        Per mention (start, end, replacement): the part of the mention that changes, without possessive ending and the
        sentence's punctuation, and what takes its place.
    """
    out = []
    for span in own.spans:
        a, b = core(text, span.start, span.end, family_of(span.label, own.category))
        mention = text[a:b]
        person = family_of(label_of(own.category), own.category) == "PERSON"
        if person:
            made = _person(mention, own.forms, donor.forms)
        else:
            made = _name(mention, own.forms, donor.forms, place_of(text, a) if language == "en" else "")
            if own.category == donor.category == "Term" and language == "en":
                made = _inflected(mention, made)
        if made == mention:
            made = next((f for f in donor.forms if f != mention), made)
        out.append((a, b, made))
    return out


def with_articles(text: str, changes: list[tuple[int, int, str]], low: int = 0) -> list[tuple[int, int, str]]:
    """The changes, sorted, as plans make them: with letters that stick to a mention, and the article before it."""
    out: list[tuple[int, int, str]] = []
    done, stands = low, ""
    changes = sorted(changes)
    for n, (first, last, new) in enumerate(changes):
        limit = changes[n + 1][0] if n + 1 < len(changes) else len(text)
        a, b = grown(text, first, last, done, limit)
        left = text[a - 1 : a] if a > done else stands
        if new and left and attached(left) and attached(new[0]):
            new = " " + new
        if new and b < limit and attached(new[-1]) and attached(text[b]):
            new += " "
        if new and a > 1 and text[a - 2] in "anAN" and (place := article(text, a, done)) is not None:
            found = text[place[0] : place[1]]
            fitting = with_article(found, new)
            if fitting is not None and fitting != found:
                out.append((*place, fitting))
        out.append((a, b, new))
        done, stands = b, new[-1:] or left
    return out


def place_of(text: str, start: int) -> str:
    """How a mention stands: ``determined``, at the ``start`` of a sentence, ``open`` to a ``the``, or empty."""
    before = text[max(0, start - _BEFORE) : start]
    if _DETERMINED.search(before):
        return "determined"
    if _SENTENCE.search(before):
        return "start"
    return "open" if _TAKES_THE.search(before) else ""


# Names of organizations, products, places and the like


def _bare(form: str) -> tuple[str, str]:
    """Leading determiner (with its space), and the rest."""
    found = _DETERMINER.match(form)
    return (found[0], form[found.end() :]) if found else ("", form)


def is_acronym(form: str) -> bool:
    """Whether a form is made of capitals: 2 to 6 of them, digits and ``&.-`` between.

    >>> is_acronym("IBM"), is_acronym("U.S."), is_acronym("Acme")
    (True, True, False)
    """
    letters = [c for c in form if c.isalpha()]
    rest = form.strip()
    return 2 <= len(letters) <= 6 and " " not in rest and all(c.isupper() for c in letters)


def without_legal_form(form: str) -> str:
    """A name without ``Inc.``, ``Corporation`` and the like at its end.

    >>> without_legal_form("Acme Robotics, Inc.")
    'Acme Robotics'
    """
    words = form.split()
    while len(words) > 1 and organization(f"x {plain(words[-1])}") == "x":
        words.pop()
    return " ".join(words).rstrip(" ,&") or form


@lru_cache(maxsize=8192)
def _roles(forms: tuple[str, ...]) -> tuple[str, str, str]:
    """The full form, the short one, and the acronym (the short one where there is none), without determiners."""
    bare = list(dict.fromkeys(_bare(f)[1] for f in forms))
    names = [f for f in bare if not is_acronym(f)] or bare
    full = max(names, key=lambda f: (len(f.split()), len(f)))
    short = min(names, key=lambda f: (len(f.split()), len(f)))
    short = without_legal_form(short)
    acronym = next((f for f in bare if is_acronym(f) and f != full), short)
    return full, short, acronym


@lru_cache(maxsize=65536)
def _name(mention: str, own: tuple[str, ...], donor: tuple[str, ...], place: str) -> str:
    determiner, said = _bare(mention)
    full, _, _ = _roles(own or (mention,))
    to_full, to_short, to_acronym = _roles(donor)
    legal = without_legal_form(said) != said
    if is_acronym(said) and plain(said) != plain(full):
        new = to_acronym
    elif plain(said) != plain(full) and len(said) < len(without_legal_form(full)):
        new = to_short
    else:
        new = to_full if legal else without_legal_form(to_full)
    new = _number(said, own, new, donor)
    new = _cased(said, new, place)
    takes_the = any(_bare(f)[0].strip().lower() == "the" for f in donor)
    word = determiner.strip().lower()
    if word == "the":
        return determiner + new if takes_the else _led(new, determiner[:1].isupper())
    if word in ("a", "an"):
        fitting = with_article(determiner.strip(), new)
        return (fitting or determiner.strip()) + determiner[len(determiner.rstrip()) :] + new
    if determiner:
        return determiner + new
    if takes_the and place in ("start", "open"):
        return ("The " if place == "start" else "the ") + new
    return new


def _led(new: str, capital: bool) -> str:
    """The name as the first word of a sentence, where it is that; brands such as ``eBay`` stay as they are written."""
    return new[:1].upper() + new[1:] if capital and new[:1].islower() and new.islower() else new


def _number(said: str, own: tuple[str, ...], new: str, donor: tuple[str, ...]) -> str:
    """In the plural where the mention is one of a singular that its chunk knows too, and the other way round."""
    if said.endswith("s") and said[:-1] in own and not new.endswith("s"):
        return next((f for f in donor if f == plural(new)), plural(new))
    if f"{said}s" in own and new.endswith("s"):
        return next((f for f in donor if f"{f}s" == new), new)
    return new


def _inflected(said: str, new: str) -> str:
    """A common noun in the number of the mention; names and acronyms stay."""
    if not (said[-1:].islower() and new[-1:].islower()):
        return new
    one, other = said.split()[-1].lower(), new.split()[-1]
    if not (one.isalpha() and other.isalpha()):
        return new
    many, base = stem(one) != one, stem(other)
    if many == (base != other.lower()):
        return new
    if many:
        return new[:-1] + "ies" if new[-1] == "y" and new[-2:-1] not in "aeiou" else plural(new)
    return new[: -len(other)] + (other[: len(base)] if other.lower().startswith(base) else _like(other, base))


def _like(model: str, word: str) -> str:
    return word[:1].upper() + word[1:] if model[:1].isupper() else word


def _cased(said: str, new: str, place: str) -> str:
    letters = [c for c in said if c.isalpha()]
    if letters and all(c.isupper() for c in letters) and (len(letters) > 6 or " " in said):
        return new.upper()
    if letters and all(c.islower() for c in letters) and not is_acronym(new):
        return new.lower() if sum(w[:1].isupper() for w in new.split()) <= 1 or " " not in new else new
    return _led(new, place == "start")


# Names of people


@lru_cache(maxsize=8192)
def _people(forms: tuple[str, ...]) -> tuple[str, str, str, str]:
    """Whole name, given names, family name with its particles, and title of a person."""
    best: tuple[Piece, ...] = ()
    title = ""
    for form in forms:
        pieces = parse(_bare(form)[1])
        said = "".join(p.text for p in pieces if p.kind == "title")
        title = title or (next(p.text for p in pieces if p.kind == "title") if said else "")
        if sum(p.kind in ("name", "initial") for p in pieces) > sum(p.kind in ("name", "initial") for p in best):
            best = pieces
    names = [p for p in best if p.kind in ("name", "initial", "particle")]
    if not names:
        return forms[0], "", forms[0], title
    texts = "".join(p.text for p in best)
    comma = texts.find(",")
    if comma > 0 and len(names) > 1:
        head, tail = texts[:comma], texts[comma + 1 :]
        if any(p.kind == "name" for p in parse(tail.strip())):
            family, given = head.strip(), tail.strip()
            return f"{given} {family}", given, family, title
    at = len(names) - 1
    while at > 1 and names[at - 1].kind == "particle":
        at -= 1
    given = " ".join(p.text for p in names[:at])
    family = " ".join(p.text for p in names[at:])
    return f"{given} {family}".strip(), given, family, title


@lru_cache(maxsize=65536)
def _person(mention: str, own: tuple[str, ...], donor: tuple[str, ...]) -> str:
    whole, given, family, title = _people(donor)
    _, my_given, my_family, _ = _people(own or (mention,))
    determiner, said = _bare(mention)
    pieces = parse(said)
    names = [p.text for p in pieces if p.kind in ("name", "initial", "particle")]
    titles = [p.text for p in pieces if p.kind == "title"]
    lead = said[: said.find(names[0])] if titles and names else ""
    if titles and title and plain(title) != plain(titles[0]):
        lead = title + lead[len(titles[0]) :] if len(titles) == 1 else lead
    solid = [p for p in pieces if p.kind in ("name", "initial")]
    if len(solid) > 1:
        new = f"{family}, {given}" if "," in said and given and "," not in lead else whole
    elif not titles and names and given and plain(names[0]) == plain(my_given.split()[0] if my_given else ""):
        new = given.split()[0]
    elif determiner and names and plain(names[-1]) == plain(plural(my_family)):
        return determiner + plural(family)
    else:
        new = family
    letters = [c for c in said if c.isalpha()]
    if len(letters) > 3 and all(c.isupper() for c in letters):
        return (lead + new).upper()
    if letters and all(c.islower() for c in letters):
        return (lead + new).lower()
    return lead + new
