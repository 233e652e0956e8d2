"""Pseudonyms of what people are and make: nationalities, beliefs, languages, occupations, products, events, works.

- A nationality follows its country (see :mod:`allonym.replace.place_map`), in the form of the surface: ``Spanish``,
  ``Spaniard``, ``Spaniards``. So does a language: that of the country which replaces the one where it is at home.
- Beliefs, peoples, parties, occupations and the like become another of the same kind from the knowledge base; number,
  capitals, and words of rank (``senior``, ``assistant``) stay. Of an occupation that it does not have, it takes the
  last words that it knows: ``tax lawyer`` becomes another sort of jurist.
- Events, laws and awards with a place in their name follow that place.

What the knowledge base does not have gets no pseudonym; a tag is written.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache, partial

from allonym.detection.words import read_ordinary_words
from allonym.kb import Item, KnowledgeBase
from allonym.protocol import Wanted
from allonym.replace.cast import Cast, Renderer, find_plain_words
from allonym.replace.place_map import NOUN_BEHIND, PlaceMap, Pools, find_country, is_language, open_place_map
from allonym.replace.places import is_large_place, render_place
from allonym.replace.tables import read_toml, read_word_set
from allonym.replace.wording import list_noun_singulars, match_capitals, pluralise_noun
from allonym.text.names import normalize_surface

_KINDS = {
    "ORIGIN": ("nationality", "religion", "ethnic_group", "political_group"),
    "NATIONALITY": ("nationality", "ethnic_group"),
    "RELIGION": ("religion", "ethnic_group"),
    "ETHNIC_GROUP": ("ethnic_group", "nationality", "religion"),
    "POLITICAL_GROUP": ("political_group", "party", "nationality"),
    "LANGUAGE": ("language",),
    "OCCUPATION": ("occupation", "title"),
    "PRODUCT": ("product",),
    "EVENT": ("event",),
    "WORK_OF_ART": ("work",),
    "AWARD": ("award",),
    "LAW": ("law",),
}
_WITH_PLACES = frozenset({"EVENT", "AWARD", "LAW"})
_HYPHEN = re.compile(r"(\s+|-)")
_ARTICLE = re.compile(r"(?:the|an?)\s+", re.IGNORECASE)
_ARTICLE_BEFORE = re.compile(r"\b(?:the|an?)\s+\Z", re.IGNORECASE)
_GENDERED = ("man", "men", "lady", "ess", "wife", "boy", "girl", "maid", "master")
"""Endings of occupations that say the gender."""
_LEVELS = (4, 3, 2, 1)
_LEARNED = frozenset("health education law finance business computing engineering science media".split())
"""Trades in which most have studied."""
_ENOUGH = 3  # occupations of a level, so that none is certain

_FAMILIAR = 7
"""A language replaces another if it is the first of a country with that many digits of inhabitants, less one."""


def make_renderers(cast: Cast, targets: Sequence[Wanted]) -> dict[str, Renderer]:
    """Choose pseudonyms of attributes; entities of other families have no renderer.

    Args:
        cast: of the document; the pseudonyms of its places have been chosen.
        targets: the entities, in reading order.
    """
    places = open_place_map(cast)
    origins = [surface for t in targets if cast.get_label_family(t) == "ORIGIN" for surface in t.surfaces[:1]]
    nationalities = (_find_nationality(places, surface) for surface in origins)
    places.set_countries([item.country for item in nationalities if item is not None], targets)
    out: dict[str, Renderer] = {}
    for target in targets:
        label = next((name for name in cast.get_lineage(target) if name in _KINDS), "")
        if not label:
            continue
        may_be_nationality = "nationality" in _KINDS[label]
        label = "LANGUAGE" if may_be_nationality and is_language(places.cast, target) else label
        forms = _find_noun_forms(places, target) if may_be_nationality else {}
        render = out[target.entity.key] = partial(_render_attribute, places, label, forms)
        for surface in target.surfaces:
            render(surface)
        if may_be_nationality:
            cast.alternatives[target.entity.key] = partial(_render_unused_nationality, places, forms)
    return out


def _find_noun_forms(places: PlaceMap, target: Wanted) -> dict[str, str]:
    """Map surfaces to ``noun`` or ``plural`` where they are nouns in all places: ``a German``, but ``a German car``."""
    if places.language != "en":
        return {}
    text = places.cast.text
    out: dict[str, str] = {}
    for span, surface in zip(target.entity.spans, target.surfaces, strict=True):
        inside = _split_article(surface)[0]
        article = inside or "".join(_ARTICLE_BEFORE.findall(text, max(0, span.start - 5), span.start))
        noun = article and (inside or not NOUN_BEHIND.match(text, span.end))
        form = ("plural" if article.strip().lower() == "the" else "noun") if noun else ""
        out[surface] = form if out.get(surface, form) == form else ""
    return out


def _render_attribute(places: PlaceMap, label: str, forms: dict[str, str], surface: str) -> str | None:
    has_article = label == "OCCUPATION" or "nationality" in _KINDS[label]
    article, core = _split_article(surface) if has_article else ("", surface)
    if not core.strip():
        return None
    choose = {"OCCUPATION": choose_occupation, "LANGUAGE": _choose_language}.get(label)
    new = choose(places, core) if choose else _choose_attribute(places, label, core, forms.get(surface, ""))
    return article + new if new is not None else None


def _split_article(surface: str) -> tuple[str, str]:
    """Return the article of a surface, and the rest."""
    match = _ARTICLE.match(surface)
    size = match.end() if match else 0
    return surface[:size], surface[size:]


# Nationalities and languages


def _render_unused_nationality(places: PlaceMap, forms: dict[str, str], surface: str) -> str | None:
    """Render a further nationality for one whose country has given its own to another: British and English, say.

    None where the document names that country, too, and for other forms of what it calls that country's people: that
    would tell two countries.
    """
    article, core = _split_article(surface)
    item, _ = _find_item_and_is_plural(places, core, ("nationality",))
    if item is None or not item.country:
        return None
    several = sum(i == item for i in places.peoples.get(item.country, {}).values()) > 1
    if not item.region and (several or item.country in places.countries):
        return None
    text = _choose_unused_nationality(places, item, core, forms.get(surface, ""))
    return None if text is None else article + text


def _choose_unused_nationality(places: PlaceMap, item: Item, surface: str, form: str) -> str | None:
    """Return a nationality of a country that replaces no other of the document."""
    peoples = {i.label: i for i in _list_nationalities(places.kb)}
    used = {*places.present, *places.replaced, places.target}
    used |= {to for code in places.replaced if (to := places.choose_country(code)) is not None}
    fit = {n for n, i in peoples.items() if i.country not in used and places.keeps_people_distinct(item, i.country)}
    labels = [label if label in fit else " " for label in peoples]  # a blank is never free
    new = places.cast.ledger.choose("nationality", item.label, labels)
    text = places.get_nationality_name(item, peoples[new].country, surface, form) if new in peoples else None
    return None if text is None else match_capitals(text, surface)


@lru_cache(maxsize=4)
def _list_nationalities(kb: KnowledgeBase) -> tuple[Item, ...]:
    """Return the nationalities of countries that may replace others."""
    avoid = read_word_set("places", "avoid")
    large = {c.country for c in kb.pool("country") if c.size >= _FAMILIAR} - avoid
    return tuple(i for i in kb.pool("nationality") if i.country in large and not i.region)


def _find_nationality(places: PlaceMap, text: str) -> Item | None:
    items = places.kb.find(text, ("nationality",), "", places.language)
    return items[0] if items and items[0].country else None


def choose_nationality(places: PlaceMap, item: Item, surface: str, form: str = "") -> str | None:
    """Return the nationality that replaces another, in the form and the case of a surface.

    Args:
        places: of the document.
        item: of kind nationality.
        surface: one of its forms: adjective, noun or plural, in any language that the knowledge base has.
        form: see :meth:`PlaceMap.get_nationality_name`.
    """
    if item.region and any(not i.region for i in places.peoples.get(item.country, {}).values()):
        # The British have the name of the country's people.
        return _choose_unused_nationality(places, item, surface, form)
    to = places.choose_country(item.country)
    text = places.get_nationality_name(item, to, surface, form) if to is not None else None
    return None if text is None else match_capitals(text, surface)


@lru_cache(maxsize=4)
def _list_main_languages(kb: KnowledgeBase) -> tuple[Item, ...]:
    """Return the languages that are the first of a larger country."""
    countries = (c for c in kb.pool("country") if c.size >= _FAMILIAR)
    first = {language for c in countries for language in kb.related(c, "language")[:1]}
    return tuple(sorted(i for i in first.intersection(kb.pool("language")) if " " not in i.label))


def _choose_language(places: PlaceMap, surface: str) -> str | None:
    """Return the language that replaces another: one that is spoken where its country goes, else any large one."""
    kb = places.kb
    items = kb.find(surface, ("language",), "", places.language)
    if not items:
        if surface.islower():
            return None
        other = places.assign_item("language", normalize_surface(surface), [_list_main_languages(kb)])
        return None if other is None else match_capitals(kb.label(other, places.language), surface)
    item = items[0]
    home, index = _find_language_country(places, item)
    to = places.get_target_country(home)
    country = find_country(kb, to)
    spoken = kb.related(country, "language") if country is not None else ()
    spoken = spoken[index:]
    if spoken and " " in spoken[0].label:  # Norwegian Bokmål
        spoken = kb.find(spoken[0].label.partition(" ")[0], ("language",))[:1] or spoken
    pools = [[i for i in pool if i.id != item.id] for pool in (spoken, _list_main_languages(kb))]
    other = places.assign_item("language", f"{item.label}>{to}", pools)
    if other is None:
        return None
    language, bare = places.language, normalize_surface(surface)
    if bare not in (normalize_surface(item.label), normalize_surface(kb.label(item, language))):
        labels = sorted(kb.labels(item).items())
        languages = (code for (code, form), text in labels if not form and normalize_surface(text) == bare)
        language = next(languages, language)
    return match_capitals(kb.label(other, language), surface)


def _find_language_country(places: PlaceMap, item: Item) -> tuple[str, int]:
    """Return the country of a language, and its place among the languages there.

    That is one that the document speaks of, else the one with the language's name, else the largest that speaks it.
    """
    spoken = [c for c in places.kb.inverse(item, "language") if c.kind == "country"]
    ranks = {c.country: places.kb.related(c, "language").index(item) for c in spoken}
    near = [code for code in (places.main, *sorted(places.replaced), *sorted(places.present)) if code in ranks]
    if near:
        code = min(near, key=lambda code: ranks[code])
        names = {find_plain_words(i.label)[0] for i in places.kb.pool("nationality", country=code)}
        country = next(c for c in spoken if c.country == code)
        named = [i for i in places.kb.related(country, "language") if i in {*places.spoken, item}]
        named.sort(key=lambda i: find_plain_words(i.label)[0] not in names)  # Filipino before English
        return code, named.index(item)
    nationality = _find_nationality(places, item.label)
    if nationality is not None:
        return nationality.country, 0
    code = next((code for code, rank in ranks.items() if not rank), next(iter(ranks), ""))
    return code, 0


# Occupations


def choose_occupation(places: PlaceMap, surface: str) -> str | None:
    """Return another occupation of the same trade and level; None where the knowledge base has none."""
    words = surface.split()
    low = [normalize_surface(w) for w in words]
    chief = _choose_chief_office(places, surface, words, low)
    if chief is not None:
        return chief
    ranks = read_word_set("occupations", "rank")
    rank = next((i for i, word in enumerate(low[:-1]) if word not in ranks), max(len(low) - 1, 0))
    ends = [len(words), *([low.index("of", rank + 1)] if "of" in low[rank + 1 :] else [])]  # student of law
    for start, end in [(first, last) for last in ends for first in range(rank, last)]:
        core = " ".join(words[start:end])
        item, plural = _find_item_and_is_plural(places, core, ("occupation", "title"))
        if item is None:
            continue
        # The finance director and the director are two.
        key = " ".join((*low[rank:start], item.label, *low[end:]))
        other = places.assign_item("occupation", key, _list_occupation_pools(places.kb, item))
        if other is None:
            return None
        label = places.kb.label(other, places.language)
        label = pluralise_noun(label) if plural else label
        if core[:1].isupper() and not core.isupper():
            words_to_capitalise = label.split(" ") if core.istitle() and " " in core else [label]
            label = " ".join(w[:1].upper() + w[1:] for w in words_to_capitalise)
        out = "".join(f"{w} " for w in words[:rank]) + match_capitals(label, core)
        return out[0].upper() + out[1:] if surface[0].isupper() else out
    return None


@lru_cache(maxsize=1024)
def _list_occupation_pools(kb: KnowledgeBase, item: Item) -> Pools:
    """Return what may replace an occupation: of its trade and level, of near levels, of its trade."""
    old = set(find_plain_words(item.label))  # another teacher says too much of a teacher
    pool = [o for o in kb.pool("occupation", industry=item.industry) if not old & set(find_plain_words(o.label))]
    level = get_occupation_level(item.label, item.industry)
    neutral = [o for o in pool if not normalize_surface(o.label).endswith(_GENDERED)]
    levels = [(abs(get_occupation_level(o.label, o.industry) - level), o) for o in neutral]
    pools = [[o for distance, o in levels if distance <= most] for most in range(len(_LEVELS))]
    return [*(near for near in pools if len(near) >= _ENOUGH), neutral, pool]


@lru_cache(maxsize=4096)
def get_occupation_level(label: str, industry: str) -> int:
    """Return the level of an occupation: 4 leads, 3 has studied, 2 has learnt a trade, 1 helps."""
    words = find_plain_words(label)
    listed = next((n for word in reversed(words) for n in _LEVELS if word in _read_level_words(n)), 0)
    level = listed or (3 if industry in _LEARNED or words[-1].endswith("ist") else 2)
    return max(1, level - 1) if words[0] in ("assistant", "trainee", "junior", "student") and len(words) > 1 else level


def _read_level_words(level: int) -> frozenset[str]:
    return read_word_set("occupations", "levels", str(level))


def _choose_chief_office(places: PlaceMap, surface: str, words: Sequence[str], low: Sequence[str]) -> str | None:
    """Return another office of the rank of ``chief financial officer`` and ``CFO``; None for other occupations."""
    offices: dict[str, str] = read_toml()["occupations"]["chief"]
    short = surface.replace(".", "").upper()
    full = short not in offices
    if full:
        if len(words) < 3 or low[0] != "chief" or low[-1] not in ("officer", "officers"):
            return None
        middle = " ".join(low[1:-1])
        short = next((s for s, name in offices.items() if name.lower() == middle), middle)
    others = [s for s in offices if s != short]
    names = {s: f"{name} {s}" for s, name in offices.items()}
    new = places.cast.ledger.choose("office", short, others, telling=lambda s: names.get(s, s))
    if new is None:
        return None
    if full:
        name = offices[new].lower() if words[1][:1].islower() else offices[new]
        return match_capitals(" ".join((words[0], name, words[-1])), surface)
    out = ".".join(new) + "." if "." in surface[:-1] else new
    return out.lower() if surface.islower() else out


# The rest


def _choose_attribute(places: PlaceMap, label: str, surface: str, form: str) -> str | None:
    kinds = _KINDS[label]
    if "nationality" in kinds and (descent := _choose_descent(places, surface)) is not None:
        return descent
    item, plural = _find_item_and_is_plural(places, surface, kinds)
    if item is not None:
        return _choose_similar_item(places, item, surface, plural, form)
    if label in _WITH_PLACES:
        return _replace_places(places, surface)
    if "nationality" in kinds and _HYPHEN.search(surface.strip()):
        return _replace_compound_parts(places, surface)
    return None


def _choose_descent(places: PlaceMap, surface: str) -> str | None:
    """Return another descent of the same sort, such as ``black`` for ``white``; None where the surface names none."""
    groups: dict[str, list[str]] = read_toml()["descents"]
    key = surface.casefold()
    names = next((names for names in groups.values() if key in map(str.casefold, names)), None)
    if names is None:
        return None
    pool = [name for name in names if name.casefold() != key]
    new = places.cast.ledger.choose("descent", key, pool, telling=lambda name: name.partition(" ")[0])
    return None if new is None else match_capitals(new, surface)


def _choose_similar_item(places: PlaceMap, item: Item, surface: str, plural: bool, form: str = "") -> str | None:
    kb = places.kb
    if item.kind == "nationality" and item.country:
        new = choose_nationality(places, item, surface[:-1] if plural else surface, form)
        return pluralise_noun(new) if plural and new is not None else new
    industry = [o for o in kb.pool(item.kind, industry=item.industry) if o.id != item.id] if item.industry else []
    other = places.assign_item(item.kind, item.label, [kb.siblings(item), industry])
    if other is None:
        return None
    language, form = places.find_nationality_form(item, surface)
    text = kb.labels(other).get((language, form)) or kb.label(other, places.language)
    return match_capitals(pluralise_noun(text) if plural and form != "plural" else text, surface)


def _replace_compound_parts(places: PlaceMap, surface: str) -> str | None:
    """Replace each known part of ``Polish-American``, ``Scottish-born``; None where one in capitals is unknown."""
    out, changed = "", False
    for part in _HYPHEN.split(surface):
        new: str | None = part
        if part.strip(" -"):
            item, plural = _find_item_and_is_plural(places, part, _KINDS["ORIGIN"])
            if item is not None:
                new, changed = _choose_similar_item(places, item, part, plural), True
            elif not part.islower():
                return None
        if new is None:
            return None
        out += new
    return out if changed else None


def _replace_places(places: PlaceMap, surface: str) -> str | None:
    """Replace the places in a name. None where there is none, or where a number tells more."""
    if any(c.isdigit() for c in surface):
        return None
    words = re.split(r"(\s+)", surface)
    out = ""
    start, changed = 0, False
    while start < len(words):
        for end in range(min(len(words), start + 5), start, -1):
            text = "".join(words[start:end])
            if not text[:1].isupper() or len(text) < 4 or text[-1:].isspace():
                continue
            nationality = _find_nationality(places, text)
            if nationality is not None:
                new = choose_nationality(places, nationality, text)
            elif normalize_surface(text) in places.cast.places or is_large_place(places, text):
                new = render_place(places, text)
            else:
                continue
            if new is None:
                return None
            out, start, changed = out + new, end, True
            break
        else:
            word = words[start]
            if word[:1].isupper() and word.lower() not in read_ordinary_words() and places.kb.name_facts(word):
                return None  # Anna Weber Prize of Leeds
            out += word
            start += 1
    return out if changed else None


def _find_item_and_is_plural(places: PlaceMap, text: str, kinds: Sequence[str]) -> tuple[Item | None, bool]:
    """Return the thing that a text names, and whether the text is a plural that the knowledge base does not have."""
    for form, plural in ((text, False), *((singular, True) for singular in list_noun_singulars(text))):
        items = places.kb.find(form, kinds, "", places.language)
        if items:
            return min(items, key=lambda i: (kinds.index(i.kind), i.label != form)), plural
    return None, False
