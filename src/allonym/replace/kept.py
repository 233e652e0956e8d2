"""Words of a name that its own replacement keeps in clear: ``RUSDER_schneider`` for ``OUDJQ_schneider``.

Replacements keep what tells nobody: titles, particles, legal forms, trades, the sort of a place, ordinary words. Every
other word of the name of a person, an organisation or a mailbox must go.
"""

from __future__ import annotations

from functools import cache

from allonym.detection.words import read_ordinary_words
from allonym.kb import KnowledgeBase
from allonym.replace.naming import ROMAN, load_name_tables
from allonym.replace.tables import read_toml, read_word_set
from allonym.text.names import normalize_surface
from allonym.text.words import LETTERS

LEAST_LETTERS = 4
"""Letters that a word needs to tell somebody."""

_FAMILIES = frozenset({"PERSON", "ORGANIZATION", "EMAIL_ADDRESS"})
_PLACES = ("country", "region", "city", "nationality")


@cache
def _list_permitted_words() -> frozenset[str]:
    lists = load_name_tables()
    organisations = (read_word_set("organisations", name) for name in ("generic", "legal", "trades", "saints"))
    places = (read_word_set("places", "words", name) for name in ("before", "first", "last", "of"))
    swaps = {normalize_surface(word) for row in read_toml()["organisations"]["swaps"] for word in row.split()}
    roles = read_word_set("roles", file="addresses.toml")
    names = (lists.titles.keys(), lists.kin.keys(), lists.suffixes, lists.degrees, lists.joined, lists.particles)
    words = (
        lists.small,
        read_word_set("titles", file="permitted_words.toml"),
        read_ordinary_words(),
        roles,
        swaps,
        ("mailto",),
    )
    return frozenset().union(*organisations, *places, *names, *words)


def find_kept_names(old: str, new: str, label: str, family: str, kb: KnowledgeBase) -> list[str]:
    """Return the words of a name, in plain form, that stand in its replacement.

    Args:
        old: the name, as it was.
        new: its replacement.
        label, family: of the name; an address counts by what stands before ``@``. Other families keep no names.
        kb: by it places are known, which a policy may keep.
    """
    if label == "TICKER" or (family not in _FAMILIES and label != "USER_NAME"):
        return []
    words = set(LETTERS.findall(normalize_surface(old.partition("@")[0])))
    common = words & set(LETTERS.findall(normalize_surface(new.partition("@")[0]))) - _list_permitted_words()
    telling = {w for w in common if len(w) >= LEAST_LETTERS and not ROMAN.fullmatch(w.upper())}
    return sorted(w for w in telling if not (family == "ORGANIZATION" and kb.find(w, _PLACES)))
