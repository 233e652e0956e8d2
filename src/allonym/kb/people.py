"""Names of people for the knowledge base: from Faker, from the tagger's training lists and from ``sources/``."""

from __future__ import annotations

import math
import re
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Set
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from allonym.kb.base import fold_key
from allonym.kb.roman import romanise_name
from allonym.kb.store import Store

SOURCES = Path(__file__).with_name("sources")
TRAINING = Path(__file__).parent.parent / "train" / "synthetic" / "names.tsv"
TYPICAL = 80  # weight of names from lists that were written for an origin
OFFERED = 20  # weight of a locale from which on its names may be pseudonyms
_SHAPE = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*(?: [^\W\d_]+(?:['’-][^\W\d_]+)*){0,2}")
_PARTICLES = frozenset("van von der den de del della di da du le la ter ten dos mac mc al el te".split())
_MC = re.compile(r"^Mc([a-z])(?=[a-z]{2})")
_PLACEHOLDERS = frozenset({"doe", "john", "jane", "mustermann", "max"})


class Name(NamedTuple):
    """One name of one origin; ``offered``: its list is good enough to take pseudonyms from."""

    name: str
    part: str
    origin: str
    gender: str
    weight: int
    offered: bool


def read_tsv_rows(path: Path | str) -> Iterator[list[str]]:
    """Yield the fields of a tab-separated file of ``sources/``, without comments and empty lines."""
    for line in (SOURCES / path).read_text(encoding="utf-8").splitlines():
        if line.strip() and not line.startswith("#"):
            yield line.split("\t")


def read_listed_names() -> Iterator[Name]:
    """Yield names from lists: origin, part, gender, names between commas."""
    for path in (TRAINING, "names.tsv"):
        for origin, part, gender, names in read_tsv_rows(path):
            for name in filter(None, map(str.strip, names.split(","))):
                yield Name(name, part, origin, gender, TYPICAL, True)


# Attributes of Faker's providers, in order: part and gender, separated by a slash, to names of attributes.
_ATTRIBUTES = {
    "both": "first/f=first_names_female first/m=first_names_male first/n=first_names_unisex last/f=last_names_female "
    "last/m=last_names_male last/=last_names last/m=male_last_names last/=unisex_last_names last/=last_names_common "
    "last/=last_names_unisex",
    "roman": "first/f=first_romanized_names_female first/m=first_romanized_names_male first/n=first_romanized_names "
    "last/=last_romanized_names",
}


def read_faker_names() -> Iterator[Name]:
    """Yield names from Faker's locales, by the table ``sources/faker.tsv``."""
    for origin, locale, weight, lists, script in read_tsv_rows("faker.tsv"):
        provider: Any = import_module(f"faker.providers.person.{locale}").Provider
        values = {name: value for base in reversed(provider.__mro__[:-3]) for name, value in vars(base).items()}
        # Where there is a list for women and one for men, the list of all holds nothing but these.
        repeated = {"last_names"} if {"last_names_female", "last_names_male"} <= values.keys() else set()
        repeated |= {"first_romanized_names"} if "first_romanized_names_female" in values else set()
        for entry in _ATTRIBUTES["roman" if lists == "roman" else "both"].split():
            kind, _, attribute = entry.partition("=")
            part, _, gender = kind.partition("/")
            if attribute in values and attribute not in repeated and (lists == part or lists not in ("first", "last")):
                yield from _make_weighted_names(values[attribute], origin, part, gender, int(weight), script)


def _make_weighted_names(
    names: Iterable[str] | Mapping[str, float], origin: str, part: str, gender: str, weight: int, script: str
) -> Iterator[Name]:
    shares = names if isinstance(names, Mapping) else {}
    most = max(shares.values(), default=1.0) or 1.0
    for raw in names:
        name = romanise_name(" ".join(raw.split()), script)
        if name.isupper():
            name = name.capitalize()
        name = _MC.sub(lambda m: "Mc" + m[1].upper(), name)
        if not name or (fold_key(name) in _PLACEHOLDERS and origin in ("latin", "polish", "vietnamese")):
            continue
        # A frequency says how typical a name is: from the locale's weight down to a third of it.
        share = shares.get(raw, most) / most
        typical = round(weight * (1 + 2 * math.sqrt(share)) / 3)
        yield Name(name, part, origin, gender, typical, weight >= OFFERED)


def _infer_polish_gender(name: Name) -> Name:
    """Return a Polish family name with the gender that its form tells; other names as they are."""
    if name.part == "last" and not name.gender and name.origin == "polish":
        for gender, endings in (("m", ("ski", "cki", "dzki")), ("f", ("ska", "cka", "dzka"))):
            if name.name.endswith(endings):
                return name._replace(gender=gender)
    return name


def merge_names(names: Iterable[Name]) -> list[Name]:
    """Return one row for each name, part, origin and gender, with its greatest weight.

    Names of both genders become ``n``.
    """
    best: dict[tuple[str, str, str, str], Name] = {}
    for name in map(_infer_polish_gender, names):
        if _SHAPE.fullmatch(name.name) and len(name.name) <= 24:
            key = (fold_key(name.name), name.part, name.origin, name.gender)
            if key not in best or best[key].weight < name.weight:
                best[key] = name
    groups: dict[tuple[str, ...], list[Name]] = defaultdict(list)
    for key, name in best.items():
        groups[key[:3]].append(name)
    out = []
    for group in groups.values():
        top = max(group, key=lambda n: (n.weight, n.name))
        if len(group) > 1 and top.part == "last":
            top = top._replace(gender="")
        elif len(group) > 1:
            # A name that one gender bears far more often is that gender's.
            strong = {n.gender for n in group if n.weight >= 0.7 * top.weight}
            top = top._replace(gender=strong.pop() if len(strong) == 1 else "n")
        out.append(top)
    return sorted(out, key=lambda n: (n.part, n.origin, n.gender, fold_key(n.name), n.name))


def read_common_words() -> frozenset[str]:
    """Return common words in plain form, which are no names."""
    return _read_unfit_words("words").union(*(row[0].split() for row in read_tsv_rows("words.txt")))


def read_unfit_names() -> frozenset[str]:
    """Return words that never replace a name, in plain form: famous alone, offensive, valenced or common words."""
    return _read_unfit_words("names") | read_common_words()


def _read_unfit_words(key: str) -> frozenset[str]:
    table = tomllib.loads((SOURCES / "unfit.toml").read_text(encoding="utf-8"))
    return frozenset(map(fold_key, table.get(key, ())))


def is_usable_name(name: Name, banned: frozenset[str], typical: Mapping[str, Set[str]]) -> bool:
    """Whether a name may replace others."""
    folded = fold_key(name.name)
    pieces = re.split(r"[ '’-]", folded)
    if not name.offered or sum(map(str.isalpha, folded)) < 3 or not name.name[-1].islower():
        return False
    if folded in banned or any(p in banned for p in pieces if p not in _PARTICLES):
        return False
    if " " in folded and not (name.part == "last" and pieces[0] in _PARTICLES):
        return False
    return not is_borrowed_name(name, typical)


# Lists of names by country hold those of immigrants too. They are no pseudonyms of names of the country's language,
# and weigh little when the origin of a name is asked for.
_WEST = frozenset("english american irish german dutch french scandinavian finnish italian spanish estonian".split())
_ELSEWHERE = frozenset(
    "arabic turkish persian hindi punjabi bengali tamil pakistani chinese japanese korean vietnamese thai indonesian "
    "nigerian ghanaian kenyan ethiopian polynesian hebrew".split()
)
_HOME = frozenset("latin spanish polish turkish hindi vietnamese korean japanese russian".split())
"""Origins whose family names hardly arise elsewhere, so that all of them tell."""
_NEAR = frozenset({"latin", "spanish", "polish", "russian"})
_EUROPE = frozenset({"italian", "greek", "czech", "hungarian", "romanian", "portuguese"})
"""Origins whose names are common in the West too; one tells where it is of no other origin."""
_MIXED = frozenset("kenyan nigerian ghanaian indonesian uzbek hindi arabic".split())
"""Origins whose lists hold names from English, French and Arabic."""


def is_borrowed_name(name: Name, typical: Mapping[str, Set[str]]) -> bool:
    """Whether a name is known to be at home elsewhere, and not where this list has it."""
    origins = typical.get(fold_key(name.name), frozenset())
    if not origins or name.origin in origins:
        return False
    if name.origin in _MIXED:
        return bool(origins & (_WEST | {"arabic"}))
    if name.origin not in _WEST:
        return False
    away = (_ELSEWHERE | _NEAR | (_EUROPE if len(origins) == 1 else frozenset())) - {name.origin}
    return bool(origins & away) and not origins & (_WEST - away)


_ISLES = frozenset("english american irish scottish welsh".split())
_RELATED = (
    _ISLES,
    frozenset("spanish latin portuguese filipino".split()),
    frozenset("german dutch scandinavian ashkenazi".split()),
    frozenset("polish czech slovenian croatian".split()),
    frozenset("russian ukrainian bulgarian".split()),
)
"""Origins that share given names."""
_SYLLABLES = frozenset("chinese korean vietnamese punjabi".split())
"""Origins in which the same words are given and family names."""


def is_foreign_name(name: Name, weights: Mapping[tuple[str, str], Mapping[str, int]]) -> bool:
    """Whether an English or American list has a name that is far more typical of another origin.

    Args:
        weights: part and plain name to the weights by origin.
    """
    if name.origin not in ("english", "american"):
        return False
    by_origin = weights.get((name.part, fold_key(name.name)), {})
    here = max((weight for origin, weight in by_origin.items() if origin in _ISLES), default=0)
    there = max((weight for origin, weight in by_origin.items() if origin not in _ISLES), default=0)
    return there >= here + OFFERED


def is_ambiguous_family_name(name: Name, women: Mapping[str, Set[str]]) -> bool:
    """Whether a family name is read as a woman's given name in its origin or in a related one.

    Args:
        women: plain given names of women to their origins.
    """
    if name.part != "last" or name.origin in _SYLLABLES:
        return False
    related = next((group for group in _RELATED if name.origin in group), frozenset({name.origin}))
    return bool(women.get(fold_key(name.name), frozenset()) & related)


def _offer_shared_american_names(names: list[Name]) -> list[Name]:
    """Return the names; American given names that British or Irish lists offer too become offered."""
    offered = {(fold_key(n.name), n.gender) for n in names if n.offered and n.part == "first" and n.origin in _ISLES}
    american = (n for n in names if (n.part, n.origin) == ("first", "american"))
    shared = {n for n in american if (fold_key(n.name), n.gender) in offered}
    return [n._replace(offered=True) if n in shared else n for n in names]


def write_names(store: Store, places: frozenset[str]) -> None:
    """Write all names, how they end, and the famous ones.

    Args:
        places: plain names of countries, regions and large cities, which are no pseudonyms of people.
    """
    names = _offer_shared_american_names(merge_names([*read_listed_names(), *read_faker_names()]))
    typical: dict[str, set[str]] = defaultdict(set)
    for name in names:
        if name.weight == TYPICAL or (name.offered and name.part == "last" and name.origin in _HOME):
            typical[fold_key(name.name)].add(name.origin)
    for name in names:
        first = name.offered and name.part == "first" and name.origin in ("english", "turkish")
        if first and not typical[fold_key(name.name)] & _ELSEWHERE:
            typical[fold_key(name.name)].add(name.origin)
    weights: dict[tuple[str, str], dict[str, int]] = defaultdict(dict)
    women: dict[str, set[str]] = defaultdict(set)
    for name in names:
        by_origin = weights[name.part, fold_key(name.name)]
        by_origin[name.origin] = max(name.weight, by_origin.get(name.origin, 0))
        if name.part == "first" and name.gender == "f":
            women[fold_key(name.name)].add(name.origin)
    banned = read_unfit_names() | places
    for name in names:
        weight = 1 if is_borrowed_name(name, typical) else name.weight
        unfit = is_foreign_name(name, weights) or is_ambiguous_family_name(name, women)
        usable = is_usable_name(name, banned, typical) and not unfit
        store.add_name(name.name, name.part, name.origin, name.gender, weight, usable)
    store.add_endings(measure_ending_shares(names))
    for given_name, family in sorted({(row[0], row[1]) for row in read_tsv_rows("famous.tsv") if len(row) > 1}):
        store.add_famous(given_name, family)


def measure_ending_shares(names: Iterable[Name]) -> list[tuple[str, str, int]]:
    """Return how names end: ending, origin, share of the origin's names per 100,000."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    totals: Counter[str] = Counter()
    for name in names:
        word = fold_key(name.name)
        if len(word) < 4 or not name.offered:
            continue
        totals[name.origin] += 1
        counts[name.origin].update({word[-3:], word[-2:]})
    rows = ((ending, origin, count) for origin, endings in counts.items() for ending, count in endings.items())
    usable = ((ending, origin, count) for ending, origin, count in rows if count > 1 and ending.isalpha())
    return sorted((ending, origin, round(100_000 * count / (totals[origin] + 50))) for ending, origin, count in usable)
