"""Names of people for the knowledge base: from Faker, from the tagger's training lists and from ``sources/``."""

from __future__ import annotations

import math
import re
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from allonym.kb.base import fold
from allonym.kb.roman import romanised
from allonym.kb.store import Store

SOURCES = Path(__file__).with_name("sources")
TRAINING = Path(__file__).parent.parent / "train" / "synthetic" / "names.tsv"
TYPICAL = 80  # weight of names from lists that were written for an origin
OFFERED = 20  # weight of a locale from which on its names may be substitutes
_SHAPE = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*(?: [^\W\d_]+(?:['’-][^\W\d_]+)*){0,2}")
_PARTICLES = frozenset("van von der den de del della di da du le la ter ten dos mac mc al el te".split())
_MC = re.compile(r"^Mc([a-z])(?=[a-z]{2})")
_PLACEHOLDERS = frozenset({"doe", "john", "jane", "mustermann", "max"})


class Name(NamedTuple):
    """One name of one origin; ``offered``: its list is good enough to take substitutes from."""

    name: str
    part: str
    origin: str
    gender: str
    weight: int
    offered: bool


def rows(path: Path) -> Iterator[list[str]]:
    """The fields of a tab-separated file, without comments and empty lines."""
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.strip() and not line.startswith("#"):
            yield line.split("\t")


def listed() -> Iterator[Name]:
    """Names from lists: origin, part, gender, names between commas."""
    for path in (TRAINING, SOURCES / "names.tsv"):
        if path.exists():
            for origin, part, gender, names in rows(path):
                for name in filter(None, map(str.strip, names.split(","))):
                    yield Name(name, part, origin, gender, TYPICAL, True)


_ATTRIBUTES = {
    "both": (
        *(
            ("first_names_female", "first", "f"),
            ("first_names_male", "first", "m"),
            ("first_names_unisex", "first", "n"),
        ),
        *(("last_names_female", "last", "f"), ("last_names_male", "last", "m"), ("last_names", "last", "")),
        *(("male_last_names", "last", "m"), ("unisex_last_names", "last", "")),
        *(("last_names_common", "last", ""), ("last_names_unisex", "last", "")),
    ),
    "roman": (
        *(("first_romanized_names_female", "first", "f"), ("first_romanized_names_male", "first", "m")),
        *(("first_romanized_names", "first", "n"), ("last_romanized_names", "last", "")),
    ),
}


def from_faker() -> Iterator[Name]:
    """Names from Faker's locales, by the table ``sources/faker.tsv``."""
    for origin, locale, weight, wanted, script in rows(SOURCES / "faker.tsv"):
        provider: Any = import_module(f"faker.providers.person.{locale}").Provider
        own = {name: value for one in reversed(provider.__mro__[:-3]) for name, value in vars(one).items()}
        gendered = {"last_names_female", "last_names_male"} <= own.keys()
        unisex = "first_romanized_names_female" in own
        for attribute, part, gender in _ATTRIBUTES["roman" if wanted == "roman" else "both"]:
            if wanted in ("first", "last") and wanted != part:
                continue
            # Where there is a list for women and one for men, the list of all holds nothing but these.
            if attribute not in own or (attribute == "last_names" and gendered):
                continue
            if attribute == "first_romanized_names" and unisex:
                continue
            yield from _weighted(own[attribute], origin, part, gender, int(weight), script)


def _weighted(
    names: Iterable[str] | Mapping[str, float], origin: str, part: str, gender: str, weight: int, script: str
) -> Iterator[Name]:
    shares = names if isinstance(names, Mapping) else {}
    most = max(shares.values(), default=1.0) or 1.0
    for raw in names:
        name = romanised(" ".join(raw.split()), script)
        if name.isupper():
            name = name.capitalize()
        name = _MC.sub(lambda m: "Mc" + m[1].upper(), name)
        if not name or (fold(name) in _PLACEHOLDERS and origin in ("latin", "polish", "vietnamese")):
            continue
        # A frequency says how typical a name is: from the locale's weight down to a third of it.
        share = shares.get(raw, most) / most
        typical = round(weight * (1 + 2 * math.sqrt(share)) / 3)
        yield Name(name, part, origin, gender, typical, weight >= OFFERED)


_ENDINGS = {"polish": ((("ski", "cki", "dzki"), "m"), (("ska", "cka", "dzka"), "f"))}


def _gendered(name: Name) -> Name:
    """A family name whose form tells the gender, with that gender."""
    if name.part == "last" and not name.gender:
        for endings, gender in _ENDINGS.get(name.origin, ()):
            if name.name.endswith(endings):
                return name._replace(gender=gender)
    return name


def merged(names: Iterable[Name]) -> list[Name]:
    """One row for each name, part, origin and gender, with its greatest weight; names of both genders become ``n``."""
    best: dict[tuple[str, str, str, str], Name] = {}
    for name in map(_gendered, names):
        if not _SHAPE.fullmatch(name.name) or len(name.name) > 24:
            continue
        key = (fold(name.name), name.part, name.origin, name.gender)
        if key not in best or best[key].weight < name.weight:
            best[key] = name
    spelled: dict[tuple[str, str], dict[str, list[Name]]] = defaultdict(lambda: defaultdict(list))
    for (folded, part, origin, _), name in best.items():
        spelled[part, origin][folded].append(name)
    out = []
    for (part, _), group in spelled.items():
        for same in group.values():
            genders = {n.gender for n in same}
            top = max(same, key=lambda n: (n.weight, n.name))
            if len(same) == 1:
                out.append(top)
                continue
            if part == "last":
                out.append(top._replace(gender=""))
                continue
            # A name that one gender bears far more often is that gender's.
            strong = {n.gender for n in same if n.weight >= 0.7 * top.weight}
            gender = strong.pop() if len(strong) == 1 else "n"
            out.append(top._replace(gender=gender if gender in genders or gender == "n" else "n"))
    return sorted(out, key=lambda n: (n.part, n.origin, n.gender, fold(n.name), n.name))


def unfit() -> tuple[frozenset[str], frozenset[str]]:
    """Names and words that are never drawn, in plain form: famous alone, offensive, valenced; common words."""
    names: set[str] = set()
    words: set[str] = set()
    path = SOURCES / "unfit.toml"
    if path.exists():
        table = tomllib.loads(path.read_text(encoding="utf-8"))
        names |= {fold(n) for n in table.get("names", ())}
        words |= {fold(n) for n in table.get("words", ())}
    path = SOURCES / "words.txt"
    if path.exists():
        words |= {w for row in rows(path) for w in row[0].split()}
    return frozenset(names), frozenset(words)


def famous() -> list[tuple[str, str]]:
    path = SOURCES / "famous.tsv"
    return sorted({(row[0], row[1]) for row in rows(path) if len(row) > 1}) if path.exists() else []


def fit(name: Name, banned: frozenset[str], typical: Mapping[str, frozenset[str]]) -> bool:
    """Whether a name may stand for others."""
    folded = fold(name.name)
    pieces = re.split(r"[ '’-]", folded)
    if not name.offered or sum(map(str.isalpha, folded)) < 3 or not name.name[-1].islower():
        return False
    if folded in banned or any(p in banned for p in pieces if p not in _PARTICLES):
        return False
    if " " in folded and not (name.part == "last" and pieces[0] in _PARTICLES):
        return False
    return not borrowed(name, typical)


# Lists of names by country hold those of immigrants too. They are no substitutes for names of the country's language,
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


def borrowed(name: Name, typical: Mapping[str, frozenset[str]]) -> bool:
    """Whether a name is known to be at home elsewhere, and not where this list has it."""
    known = typical.get(fold(name.name), frozenset())
    if not known or name.origin in known:
        return False
    if name.origin in _MIXED:
        return bool(known & (_WEST | {"arabic"}))
    if name.origin not in _WEST:
        return False
    away = (_ELSEWHERE | _NEAR | (_EUROPE if len(known) == 1 else frozenset())) - {name.origin}
    return bool(known & away) and not known & (_WEST - away)


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


def related(origin: str) -> frozenset[str]:
    """The origins that share given names with one, itself included."""
    return next((group for group in _RELATED if origin in group), frozenset({origin}))


def foreign(name: Name, weights: Mapping[tuple[str, str], Mapping[str, int]]) -> bool:
    """Whether an English or American list has a name that is far more typical of another origin.

    Args:
        weights: part and plain name to the weights by origin.
    """
    if name.origin not in ("english", "american"):
        return False
    known = weights.get((name.part, fold(name.name)), {})
    here = max((weight for origin, weight in known.items() if origin in _ISLES), default=0)
    there = max((weight for origin, weight in known.items() if origin not in _ISLES), default=0)
    return there >= here + OFFERED


def ambiguous(name: Name, women: Mapping[str, frozenset[str]]) -> bool:
    """Whether a family name is read as a woman's given name in its origin or in a related one.

    Args:
        women: plain given names of women to their origins.
    """
    if name.part != "last" or name.origin in _SYLLABLES:
        return False
    return bool(women.get(fold(name.name), frozenset()) & related(name.origin))


def _shared(names: list[Name]) -> list[Name]:
    """The names; American given names that the British and Irish lists offer too are offered."""
    offered = {(fold(n.name), n.gender) for n in names if n.offered and n.part == "first" and n.origin in _ISLES}
    return [
        n._replace(offered=True)
        if (n.part, n.origin) == ("first", "american") and (fold(n.name), n.gender) in offered
        else n
        for n in names
    ]


def write_names(store: Store, places: frozenset[str]) -> None:
    """All names, how they end, and the famous ones.

    Args:
        places: plain names of countries, regions and large cities, which are no substitutes for people.
    """
    names = _shared(merged([*listed(), *from_faker()]))
    typical: dict[str, set[str]] = defaultdict(set)
    for name in names:
        if name.weight == TYPICAL or (name.offered and name.part == "last" and name.origin in _HOME):
            typical[fold(name.name)].add(name.origin)
    for name in names:
        first = name.offered and name.part == "first" and name.origin in ("english", "turkish")
        if first and not typical[fold(name.name)] & _ELSEWHERE:
            typical[fold(name.name)].add(name.origin)
    known = {folded: frozenset(origins) for folded, origins in typical.items()}
    weights: dict[tuple[str, str], dict[str, int]] = defaultdict(dict)
    womens: dict[str, set[str]] = defaultdict(set)
    for name in names:
        by_origin = weights[name.part, fold(name.name)]
        by_origin[name.origin] = max(name.weight, by_origin.get(name.origin, 0))
        if name.part == "first" and name.gender == "f":
            womens[fold(name.name)].add(name.origin)
    women = {folded: frozenset(origins) for folded, origins in womens.items()}
    banned = frozenset().union(*unfit(), places)
    for name in names:
        weight = 1 if borrowed(name, known) else name.weight
        usable = fit(name, banned, known) and not foreign(name, weights) and not ambiguous(name, women)
        store.name(name.name, name.part, name.origin, name.gender, weight, usable)
    store.endings(endings(names))
    for given, family in famous():
        store.famous(given, family)


def endings(names: Iterable[Name]) -> list[tuple[str, str, int]]:
    """How names end, by origin: ending, origin, share of the origin's names per 100,000."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    totals: Counter[str] = Counter()
    for name in names:
        word = fold(name.name)
        if len(word) < 4 or not name.offered:
            continue
        totals[name.origin] += 1
        counts[name.origin].update({word[-3:], word[-2:]})
    out = []
    for origin, found in counts.items():
        for ending, count in found.items():
            if count > 1 and ending.isalpha():
                out.append((ending, origin, round(100_000 * count / (totals[origin] + 50))))
    return sorted(out)
