"""What stands for findings that are no names: ordinary words for ordinary words, digits for digits.

Detectors take words for names that are none (``the bakery``, ``ward 7B``). They are covered all the same, but a name or
a firm in their place would tell something false, so that another ordinary word of the same sort stands there, of the
lists in ``ordinary.toml``; where no list has the word, one that says no more than the label. Words that no module could
replace, numbers and codes among them, come here too, before a tag is written.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache, partial

from allonym.detection.words import read_ordinary_words
from allonym.document import Span
from allonym.kb import PLACES
from allonym.protocol import Wanted
from allonym.replace.cast import Cast
from allonym.replace.codes import ANY, Draws, draw_shaped_code, read_code
from allonym.replace.tables import list_words, read_toml, read_word_set
from allonym.replace.wording import capitalise_like, list_noun_singulars, match_case, pluralise_noun
from allonym.text.words import compile_word_pattern

_FILE = "ordinary.toml"
_WORD = compile_word_pattern("'’-", digits=False)
_CODE = re.compile(r"[\W_]*[A-Za-z\d]+(?:[\W_]+[\dA-Za-z]*\d[\dA-Za-z]*)*[\W_]*")
_READ_BY_FORM = frozenset({"STREET_ADDRESS", "POSTAL_CODE", "LOCATION_COORDINATES"})
_START = re.compile(r"(?:\A|[\n.!?\]]\s*)\Z")
_YEAR = re.compile(r"(?:19|20)\d\d")
_ACRONYM = re.compile(r"[A-Z]{2,6}")
_HEXADECIMAL = re.compile(r"(?=[a-z]*\d)(?=\d*[a-z])[0-9a-f]{6,}")
_FAMILIAR = 20  # weight of a name that many bear
_FUNCTION = frozenset("a an the of and in on at to for with by or from as his her their my our your its is".split())
_NAMES = frozenset({"PERSON", "ORGANIZATION", "LOCATION"})
"""Families whose modules make a name of any word."""
_TAGGED = frozenset(
    "NUMERIC SECRET MEDICAL_TERM AGE ONLINE_ID EMAIL_ADDRESS PHONE_NUMBER TITLE LOCATION_COORDINATES".split()
)
"""Families that get a tag where nothing fits: another amount, say, would tell something false."""
_SINGULAR = ("ss", "us", "is", "ics")
"""Endings of words that end like plurals and are none."""
_POOLS = {"PRODUCT": "product", "WORK_OF_ART": "work", "EVENT": "event", "AWARD": "award", "LAW": "law"}


@cache
def _map_words_to_lists() -> dict[str, tuple[str, ...]]:
    """Map each word in small letters to the words that may stand for it."""
    out: dict[str, tuple[str, ...]] = {}
    for row in read_toml(_FILE)["lists"]:
        words = tuple(row.split("|"))
        for word in words:
            out.setdefault(word.lower(), words)
    return out


def is_ordinary_text(text: str) -> bool:
    """Whether a text is in small letters and holds ordinary words only, none of them a name."""
    if not text.islower() or (text.replace("'", "").replace("’", "").isalpha() and len(text) < 3):
        return False
    words = _WORD.findall(text.replace("’", "'"))
    ordinary, lists = read_ordinary_words(), _map_words_to_lists()

    def is_ordinary_word(word: str) -> bool:
        forms = (word, word.removesuffix("'s"), word.rstrip("'"), *list_noun_singulars(word))
        return word in _FUNCTION or any(form in ordinary or form in lists for form in forms)

    return bool(words) and (text in lists or all(map(is_ordinary_word, words)))


def has_ordinary_words_only(cast: Cast, target: Wanted) -> bool:
    """Whether an entity that would get a name consists of ordinary words, wherever it stands."""
    lineage = cast.get_lineage(target)
    if lineage[-1] not in _NAMES or not _READ_BY_FORM.isdisjoint(lineage) or lineage[0] in ("TITLE", "USER_NAME"):
        return False
    is_firm = lineage[-1] == "ORGANIZATION"
    if all(
        is_ordinary_text(text) or _is_no_name(cast, text) or (is_firm and _is_unknown_word(cast, text))
        for text in target.surfaces
    ):
        return True
    is_person = lineage[-1] == "PERSON"
    return is_person and all(map(partial(_is_ordinary_first_word, cast), target.entity.spans, target.surfaces))


def _is_no_name(cast: Cast, text: str) -> bool:
    """Whether a text that is no ordinary word is no name either: one letter, a code, or a sentence in small letters."""
    if len(text.strip(".:")) == 1 or _HEXADECIMAL.fullmatch(text):
        return True
    words = _WORD.findall(text)
    if len(words) < 3 or _FUNCTION.isdisjoint(words) or not text.islower():
        return False
    return not any(fact.weight >= _FAMILIAR for word in words for fact in cast.kb.name_facts(word))


def _is_ordinary_first_word(cast: Cast, span: Span, text: str) -> bool:
    """Whether a text is one ordinary word that has its capital from where it stands: ``Guest: hello``."""
    is_capitalised = len(text) > 3 and text.isalpha() and text.istitle()
    if not is_capitalised or _START.search(cast.text, max(0, span.start - 8), span.start) is None:
        return False
    return is_ordinary_text(text.lower()) and not cast.kb.name_facts(text) and not cast.kb.find(text)


def _is_unknown_word(cast: Cast, text: str) -> bool:
    """Whether a text is one word in small letters, in a document with capitals, that nobody is known by."""
    is_small = text.isalpha() and text.islower() and not cast.text[:400].islower()
    return is_small and not cast.kb.find(text) and not cast.kb.name_facts(text)


def cover_surface(cast: Cast, target: Wanted, surface: str) -> str | None:
    """Return what stands for a surface for which no module has a pseudonym; None: a tag is written."""
    lineage = cast.get_lineage(target)
    if not _TAGGED.isdisjoint(lineage):
        return None
    is_union = lineage[-1] == "TRADE_UNION"
    acronym = surface if _ACRONYM.fullmatch(surface) and lineage[-1] not in _NAMES and not is_union else ""
    is_listed = surface.lower() in _map_words_to_lists() and (is_union or lineage[-1] in ("OCCUPATION", "ORGANIZATION"))
    choices = (
        partial(_change_code, cast, surface),
        partial(_choose_listed_word, cast, surface if is_listed else ""),  # Police is a town, too
        partial(_choose_known_thing, cast, lineage, surface),
        partial(_change_code, cast, acronym, is_acronym=True),
        partial(_choose_general_word, cast, lineage[-1], surface.lower() if is_union else ""),
        partial(_choose_ordinary_words, cast, lineage[-1], surface),
    )
    return next((new for choice in choices if (new := choice()) is not None), None)


def _change_code(cast: Cast, surface: str, *, is_acronym: bool = False) -> str | None:
    """Return other letters and digits for a number, a code or a single letter; for an acronym where it is one."""
    if _YEAR.fullmatch(surface):
        return str(int(surface) + 1 + cast.ledger.draw_number("code", surface) % 3)
    has_digit, letters = any(map(str.isdigit, surface)), [c for c in surface if c.isalpha()]
    words = [w for w in _WORD.findall(surface) if len(w) > 3]
    is_letter = len(letters) == 1 and len(surface) < 3
    if not (is_letter or is_acronym) and not (has_digit and not words and _CODE.fullmatch(surface)):
        return None
    code = read_code(surface, spoken=False)
    if not code.slots:
        return None

    def propose(attempt: int) -> str | None:
        new = draw_shaped_code(code, ANY, Draws(cast.ledger, "code", surface, attempt))
        if new is None or new == code.characters or (new.isalpha() and _is_word(cast, new.lower())):
            return new and " "
        return new

    new = cast.ledger.assign("code", surface, propose, telling=_encode_short_code)
    return code.replace_characters(new) if new else None


def _encode_short_code(new: str) -> str:
    return new if len(new) > 3 or not new.strip() else f"code{new}"  # a few signs may occur elsewhere


def _is_word(cast: Cast, letters: str) -> bool:
    return cast.ledger.text_has_words((letters,)) or (len(letters) > 1 and letters in read_ordinary_words())


def _choose_known_thing(cast: Cast, lineage: tuple[str, ...], surface: str) -> str | None:
    """Return another thing of the knowledge base: what it knows under another label, or any of the label's kind."""
    from allonym.replace.attributes import choose_occupation  # which need the other modules
    from allonym.replace.place_map import open_place_map
    from allonym.replace.places import find_known_place, render_place

    if surface.islower() or not any(map(str.isalpha, surface)):
        return None
    places = open_place_map(cast)
    kind = next((_POOLS[label] for label in lineage if label in _POOLS), "")
    if kind or lineage[-1] in ("OCCUPATION", "ORIGIN"):
        if cast.kb.find(surface, PLACES) and find_known_place(places, surface) is not None:
            return render_place(places, surface)
        if cast.kb.find(surface, ("occupation",)):
            return choose_occupation(places, surface)
    if not kind or len(surface) < 4:
        return None
    has_digit = any(map(str.isdigit, surface))
    pool = [item for item in cast.kb.pool(kind) if any(map(str.isdigit, item.label)) == has_digit]
    item = places.assign_item(kind, surface.lower(), [pool, cast.kb.pool(kind)])
    return None if item is None else match_case(item.label, surface) if surface.isupper() else item.label


def _choose_ordinary_words(cast: Cast, family: str, surface: str) -> str | None:
    """Return other ordinary words: for a phrase of a list as a whole, else for each word that a list has.

    What may be a name goes as a whole, and so does what tells a person. Words with capitals are ordinary only where
    they say the sort of an organisation or an occupation (``Police``), and a list has one of them.
    """
    words = [m for m in _WORD.finditer(surface) if not _touches_digit(m)]
    if not words or (not surface.islower() and cast.kb.find(surface)):
        return None
    may_keep_words = family != "PERSON" and all(_is_plain_word(m[0]) for m in words)
    if family == "DATE_TIME":  # year 9
        return _change_numbers(cast, surface) if may_keep_words and any(map(str.isdigit, surface)) else None
    is_small = surface.islower() or (len(words) == 1 and is_ordinary_text(surface.lower()))
    is_small = is_small or (family == "OCCUPATION" and surface.istitle())  # below a signature
    tells_sort = may_keep_words and (len(words) == 1 or family in ("ORGANIZATION", "OCCUPATION"))
    if not is_small and not tells_sort:
        return None
    new = _choose_listed_word(cast, surface)
    if new is not None:
        return new
    out, changed = surface, False
    for match in reversed(words if may_keep_words else ()):
        other = _choose_listed_word(cast, match[0])
        if other is not None:
            out, changed = out[: match.start()] + other + out[match.end() :], True
    if not changed:
        other = _choose_general_word(cast, family, words[-1][0] if may_keep_words else surface)
        if other is None or not is_small:
            return None
        start, end = words[-1].span() if may_keep_words else (0, len(surface))
        out = out[:start] + other + out[end:]
    return _change_numbers(cast, out)


def _change_numbers(cast: Cast, text: str) -> str:
    return re.sub(r"[A-Za-z]*\d[A-Za-z\d]*", lambda m: _change_code(cast, m[0]) or "", text)


def _touches_digit(word: re.Match[str]) -> bool:
    before, behind = word.string[: word.start()][-1:], word.string[word.end() :][:1]
    return before.isdigit() or behind.isdigit()


def _is_plain_word(word: str) -> bool:
    low, generic = word.lower(), read_word_set("organisations", "generic")
    return low in _FUNCTION or low in generic or low in _map_words_to_lists() or is_ordinary_text(low)


def _choose_listed_word(cast: Cast, word: str) -> str | None:
    """Return another word of the same list, in number and case of the word; None where no list has it."""
    low = word.lower().replace("’", "'")
    lists = _map_words_to_lists()
    for form, ending in ((low, ""), *((singular, "s") for singular in list_noun_singulars(low))):
        if form in lists:
            pool = [w for w in lists[form] if w.lower() != form and w.lower() not in low]
            return _assign_word(cast, form, pool, word, plural=bool(ending))
    return None


def _choose_general_word(cast: Cast, family: str, word: str) -> str | None:
    if not word:
        return None
    sort = family if family in read_toml(_FILE)["general"] else "other"
    plural = word.lower().endswith("s") and not word.lower().endswith(_SINGULAR)
    return _assign_word(cast, f"{family} {word.lower()}", list_words("general", sort, file=_FILE), word, plural=plural)


def _assign_word(cast: Cast, key: str, pool: Sequence[str], model: str, *, plural: bool) -> str | None:
    def get_distinctive_part(new: str) -> str:
        # A district hospital may replace a children's hospital.
        return " ".join(w for w in new.split() if w.lower() not in model.lower()) or new

    new = cast.ledger.choose("ordinary word", key, pool, telling=get_distinctive_part)
    if new is None:
        return None
    new = pluralise_noun(new) if plural else new
    return capitalise_like(new, model)
