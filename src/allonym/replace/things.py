"""Pseudonyms of what people are and make: nationalities, beliefs, languages, occupations, products, events, works.

- A nationality follows its country (see :mod:`allonym.replace.atlas`), in the form of the surface: ``Spanish``,
  ``Spaniard``, ``Spaniards``. So does a language: that of the country which plays the one where it is at home.
- Beliefs, peoples, parties, occupations and the like become another of the same kind from the knowledge base; number,
  capitals, and words of rank (``senior``, ``assistant``) stay. Of an occupation that it does not have, it takes the
  last words that it knows: ``tax lawyer`` becomes another sort of jurist.
- Events, laws and awards with a place in their name follow that place.

What the knowledge base does not have gets no pseudonym; a tag takes its place.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache, partial
from typing import TYPE_CHECKING

from allonym.replace.atlas import Atlas, country_item, patterns, word_set
from allonym.replace.cast import Cast, Renderer
from allonym.replace.cast import words as name_words
from allonym.replace.gazetteer import known_place
from allonym.replace.mention import Wanted
from allonym.replace.places import recased, shown
from allonym.text.names import plain

if TYPE_CHECKING:
    from allonym.kb import Item, KnowledgeBase

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
_SLOTS = frozenset({"EVENT", "AWARD", "LAW"})
_HYPHEN = re.compile(r"(\s+|-)")
_SPOKEN = re.compile(
    r"(?i)\b(?:sp(?:ea|o)k(?:e|en|s|ing)?|teach(?:es|ing)?|taught|learn(?:s|ed|t|ing)?|stud(?:y|ies|ied|ying)"
    r"|understands?|fluent\s+in|translated?\s+(?:in)?to)\s+\Z"
)
_OF_WHAT = re.compile(
    r"\s+(?!(?:and|or|but|with|to|at|in|as|for|from|of|by|on|who|whom|whose|that|when|while|because|is|was|are|were|has"
    r"|have|had|do|does|did|will|would|can|could|may|might|must|should)\b)[^\W\d_]"
)
_ARTICLE = re.compile(r"\b(?:the|an?)\s+\Z", re.IGNORECASE)
_FAMILIAR = 7
"""A language stands for another if it is the first of a country with that many digits of inhabitants, less one."""


def recast(cast: Cast, wanted: Sequence[Wanted]) -> dict[str, Renderer]:
    """What stands for each thing; entities of other families have no renderer.

    Args:
        cast: of the document; its places have been chosen already.
        wanted: the entities, in reading order.
    """
    atlas = Atlas.of(cast)
    lineage = cast.setting.policy.taxonomy.lineage
    nations = [
        item.country
        for one in wanted
        for surface in one.surfaces[:1]
        if lineage(one.entity.label)[-1] == "ORIGIN" and (item := _nation(atlas, surface)) is not None
    ]
    atlas.settle(nations, wanted)
    out: dict[str, Renderer] = {}
    for one in wanted:
        label = next((name for name in lineage(one.entity.label) if name in _KINDS), "")
        if label:
            nation = "nationality" in _KINDS[label]
            label = "LANGUAGE" if nation and _is_spoken(atlas, one) else label
            used = _used_as(atlas, one) if nation else {}
            render = out[one.entity.key] = partial(_rendered, atlas, label, used)
            for surface in one.surfaces:
                render(surface)
            if nation:
                cast.again[one.entity.key] = partial(_other_people, atlas, used)
    return out


def _is_spoken(atlas: Atlas, one: Wanted) -> bool:
    """Whether what was taken for a nationality is a language wherever it stands: she teaches Dutch."""
    if atlas.language != "en" or not all(atlas.kb.find(s, ("language",)) for s in one.surfaces[:1]):
        return False
    text = atlas.cast.setting.document.text
    return all(
        _SPOKEN.search(text, max(0, span.start - 24), span.start) and not _OF_WHAT.match(text, span.end)
        for span in one.entity.spans
    )


def _used_as(atlas: Atlas, one: Wanted) -> dict[str, str]:
    """The surfaces that are nouns, wherever they stand: ``a German from Bonn``, but ``a German car``."""
    if atlas.language != "en":
        return {}
    text = atlas.cast.setting.document.text
    out: dict[str, str] = {}
    for span, surface in zip(one.entity.spans, one.surfaces, strict=True):
        own = _parted(surface)[0]
        article = own or "".join(_ARTICLE.findall(text, max(0, span.start - 5), span.start))
        noun = article and (own or not _OF_WHAT.match(text, span.end))
        form = ("plural" if article.strip().lower() == "the" else "noun") if noun else ""
        out[surface] = form if out.get(surface, form) == form else ""
    return out


def _rendered(atlas: Atlas, label: str, used: dict[str, str], surface: str) -> str | None:
    head, core = _parted(surface) if label == "OCCUPATION" or "nationality" in _KINDS[label] else ("", surface)
    if not core.strip():
        return None
    if label == "OCCUPATION":
        new = _occupation(atlas, core)
    elif label == "LANGUAGE":
        new = _language(atlas, core)
    else:
        new = _thing(atlas, label, core, used.get(surface, ""))
    return head + new if new is not None else None


def _parted(surface: str) -> tuple[str, str]:
    """The article of a surface, and the rest."""
    article = re.match(r"(?:the|an?)\s+", surface, re.IGNORECASE)
    head = article[0] if article else ""
    return head, surface[len(head) :]


# Nationalities and languages


def _other_people(atlas: Atlas, used: dict[str, str], surface: str, attempt: int) -> str | None:
    """A further nationality for one whose country has given its own to another: British and English, say.

    None where the document names that country, too, and for other forms of what it calls that country's people: that
    would tell two countries.
    """
    head, core = _parted(surface)
    item, _ = _found(atlas, core, ("nationality",))
    if attempt or item is None or not item.country:
        return None
    also = sum(i == item for i in atlas.peoples.get(item.country, {}).values()) > 1
    if not item.region and (also or item.country in atlas.lands):
        return None
    text = _further(atlas, item, core, used.get(surface, ""))
    return None if text is None else head + text


def _further(atlas: Atlas, item: Item, surface: str, used: str) -> str | None:
    """The same for a nationality of the knowledge base, without an article."""
    peoples = {i.label: i for i in _peoples(atlas.kb)}
    labels = tuple(peoples)
    taken = {*atlas.present, *atlas.named, atlas.target}
    taken |= {to for code in atlas.named if (to := atlas.other_country(code)) is not None}
    start = atlas.cast.ledger.number("nationality", item.label)

    def propose(attempt: int) -> str | None:
        one = peoples[labels[(start + attempt) % len(labels)]] if attempt < len(labels) else None
        if one is None:
            return None
        return one.label if one.country not in taken and atlas.tells(item, one.country) else " "

    new = atlas.cast.ledger.assign("nationality", item.label, propose)
    text = atlas.people(item, peoples[new].country, surface, used) if new in peoples else None
    return None if text is None else recased(surface, text)


@lru_cache(maxsize=4)
def _peoples(kb: KnowledgeBase) -> tuple[Item, ...]:
    """Nationalities of countries that may play others."""
    avoid = word_set("places", "avoid")
    large = {c.country for c in kb.pool("country") if c.size >= _FAMILIAR} - avoid
    return tuple(i for i in kb.pool("nationality") if i.country in large and not i.region)


def _nation(atlas: Atlas, text: str) -> Item | None:
    found = atlas.kb.find(text, ("nationality",), "", atlas.language)
    return found[0] if found and found[0].country else None


def nationality(atlas: Atlas, item: Item, surface: str, used: str = "") -> str | None:
    """The nationality that stands for another, in the form and the letters of a surface.

    Args:
        item: of kind nationality.
        surface: one of its forms: adjective, noun or plural, in any language that the knowledge base has.
        used: see :meth:`Atlas.people`.
    """
    if item.region and any(not i.region for i in atlas.peoples.get(item.country, {}).values()):
        return _further(atlas, item, surface, used)  # the British have the name of the country's people
    to = atlas.other_country(item.country)
    if to is None:
        return None
    text = atlas.people(item, to, surface, used)
    return None if text is None else recased(surface, text)


@lru_cache(maxsize=4)
def _familiar(kb: KnowledgeBase) -> tuple[Item, ...]:
    """Languages that are the first of a larger country."""
    first = {
        kb.related(c, "language")[0] for c in kb.pool("country") if c.size >= _FAMILIAR and kb.related(c, "language")
    }
    return tuple(sorted(i for i in first if i in set(kb.pool("language")) and " " not in i.label))


def _language(atlas: Atlas, surface: str) -> str | None:
    found = atlas.kb.find(surface, ("language",), "", atlas.language)
    if not found:
        return None
    item = found[0]
    home = _home(atlas, item)
    to = atlas.other_country(home) if home else None
    country = country_item(atlas.kb, to) if to else None
    spoken = atlas.kb.related(country, "language")[:1] if country is not None else ()
    if spoken and " " in spoken[0].label:  # Norwegian Bokmål
        spoken = atlas.kb.find(spoken[0].label.partition(" ")[0], ("language",))[:1] or spoken
    if spoken == (item,):
        return None  # it is spoken there too: nothing else would be true
    pools = [[i for i in pool if i.id != item.id] for pool in (spoken, _familiar(atlas.kb))]
    other = atlas.assign("language", f"{item.label}>{to or ''}", pools)
    if other is None:
        return None
    language = atlas.language
    for (code, form), text in sorted(atlas.kb.labels(item).items()):
        if not form and plain(text) == plain(surface) and plain(item.label) != plain(surface):
            language = atlas.language if plain(atlas.kb.label(item, atlas.language)) == plain(surface) else code
            break
    return recased(surface, atlas.kb.label(other, language))


def _home(atlas: Atlas, item: Item) -> str:
    """The country where a language is at home: one of the document, else the one with its name, else the largest."""
    spoken = [c for c in atlas.kb.inverse(item, "language") if c.kind == "country"]
    first = [c for c in spoken if atlas.kb.related(c, "language")[:1] == (item,)]
    for code in (atlas.main, *sorted(atlas.present)):
        if any(c.country == code for c in first):
            return code
    named = _nation(atlas, item.label)
    if named is not None:
        return named.country
    return next((c.country for c in (*first, *spoken)), "")


# Occupations


def _occupation(atlas: Atlas, surface: str) -> str | None:
    words = surface.split()
    ranks = word_set("occupations", "rank")
    low = [plain(w) for w in words]
    chief = _chief(atlas, surface, words, low)
    if chief is not None:
        return chief
    at = 0
    while at < len(words) - 1 and low[at] in ranks:
        at += 1
    ends = [len(words), *([low.index("of", at + 1)] if "of" in low[at + 1 :] else [])]  # student of law
    for start, end in ((first, last) for last in ends for first in range(at, last)):
        core = " ".join(words[start:end])
        item, plural = _found(atlas, core, ("occupation", "title"))
        if item is None:
            continue
        own = set(name_words(item.label))  # another teacher says too much of a teacher
        pool = [o for o in atlas.kb.pool("occupation", industry=item.industry) if not own & set(name_words(o.label))]
        pools = [[o for o in pool if not _gendered(o.label)], pool]
        # The finance director and the director are two.
        other = atlas.assign("occupation", " ".join((*low[at:start], item.label, *low[end:])), pools)
        if other is None:
            return None
        label = atlas.kb.label(other, atlas.language)
        label = _plural(label) if plural else label
        if core[:1].isupper() and not core.isupper():
            label = (
                " ".join(w[:1].upper() + w[1:] for w in label.split(" "))
                if core.istitle()
                else label[:1].upper() + label[1:]
            )
        head = "".join(f"{w} " for w in words[:at])
        return head + recased(core, label)
    return None


def _gendered(label: str) -> bool:
    return plain(label).endswith(("man", "woman", "ess", "wife", "boy", "girl", "maid", "master", "mistress"))


def _chief(atlas: Atlas, surface: str, words: Sequence[str], low: Sequence[str]) -> str | None:
    """``chief financial officer`` and ``CFO``: another office of that rank."""
    offices: dict[str, str] = patterns()["occupations"]["chief"]
    bare = surface.replace(".", "").upper()
    ledger = atlas.cast.ledger
    if bare in offices:
        short, full = bare, False
    elif len(words) >= 3 and low[0] == "chief" and low[-1] in ("officer", "officers"):
        middle = " ".join(low[1:-1])
        short, full = next((s for s, name in offices.items() if name.lower() == middle), middle), True
    else:
        return None
    pool = [s for s in offices if s != short]
    start = ledger.number("office", short)
    new = ledger.assign(
        "office",
        short,
        lambda attempt: pool[(start + attempt) % len(pool)] if attempt < len(pool) else None,
        telling=lambda s: f"{offices[s]} {s}" if s in offices else s,
    )
    if new is None:
        return None
    if full:
        name = offices[new].lower() if words[1][:1].islower() else offices[new]
        return recased(surface, " ".join((words[0], name, words[-1])))
    out = ".".join(new) + "." if "." in surface[:-1] else new
    return out.lower() if surface.islower() else out


# The rest


def _thing(atlas: Atlas, label: str, surface: str, used: str) -> str | None:
    kinds = _KINDS[label]
    item, plural = _found(atlas, surface, kinds)
    if item is not None:
        return _like(atlas, item, surface, plural, used)
    if label in _SLOTS:
        return _slots(atlas, surface)
    if "nationality" in kinds and _HYPHEN.search(surface.strip()):
        return _compound(atlas, kinds, surface)
    return None


def _like(atlas: Atlas, item: Item, surface: str, plural: bool, used: str = "") -> str | None:
    if item.kind == "nationality" and item.country:
        new = nationality(atlas, item, surface[:-1] if plural else surface, used)
        return _plural(new) if plural and new is not None else new
    industry = [o for o in atlas.kb.pool(item.kind, industry=item.industry) if o.id != item.id] if item.industry else []
    other = atlas.assign(item.kind, item.label, [atlas.kb.siblings(item), industry])
    if other is None:
        return None
    language, form = atlas.form(item, surface)
    text = atlas.kb.labels(other).get((language, form)) or atlas.kb.label(other, atlas.language)
    if plural and form != "plural":
        text = _plural(text)
    return recased(surface, text)


def _compound(atlas: Atlas, kinds: tuple[str, ...], surface: str) -> str | None:
    """``Polish-American``, ``Scottish-born``: each part that is known; None where one in capitals is not."""
    out, changed = "", False
    for part in _HYPHEN.split(surface):
        if not part.strip(" -"):
            out += part
            continue
        item, plural = _found(atlas, part, ("nationality", "religion", "ethnic_group", "political_group"))
        new = _like(atlas, item, part, plural) if item is not None else part if part.islower() else None
        if new is None:
            return None
        changed = changed or item is not None
        out += new
    return out if changed else None


def _slots(atlas: Atlas, surface: str) -> str | None:
    """A name with a place in it: the place is played by another. None where there is none, or a number tells more."""
    if any(c.isdigit() for c in surface):
        return None
    words = re.split(r"(\s+)", surface)
    out: list[str] = []
    i, changed = 0, False
    while i < len(words):
        for end in range(min(len(words), i + 5), i, -1):
            text = "".join(words[i:end])
            if not text[:1].isupper() or len(text) < 4 or text[-1:].isspace():
                continue
            nation = _nation(atlas, text)
            if nation is not None:
                new = nationality(atlas, nation, text)
            elif plain(text) in atlas.cast.places or (
                (place := known_place(atlas, text)) is not None and (place.kind != "city" or place.size >= 5)
            ):
                new = shown(atlas, text)
            else:
                continue
            if new is None:
                return None
            out.append(new)
            changed, i = True, end
            break
        else:
            out.append(words[i])
            i += 1
    return "".join(out) if changed else None


def _found(atlas: Atlas, text: str, kinds: Sequence[str]) -> tuple[Item | None, bool]:
    """The thing that a text names, and whether the text is a plural that the knowledge base does not have."""
    for form, plural in ((text, False), *((one, True) for one in _singulars(text))):
        found = atlas.kb.find(form, kinds, "", atlas.language)
        if found:
            return min(found, key=lambda i: (kinds.index(i.kind), i.label != form)), plural
    return None, False


def _singulars(text: str) -> tuple[str, ...]:
    low = text.lower()
    if low.endswith("men"):
        return (text[:-3] + "man",)
    if low.endswith("ies"):
        return (text[:-3] + "y", text[:-1])
    if low.endswith("es"):
        return (text[:-1], text[:-2])
    return (text[:-1],) if low.endswith("s") and len(text) > 3 else ()


def _plural(text: str) -> str:
    """The plural of an English noun, by its last word, or by the one before ``of``."""
    head, of, rest = text.partition(" of ")
    low = head.lower()
    if low.endswith("man") and not low.endswith(("human", "german", "roman", "ottoman")):
        head = head[:-3] + "men"
    elif low.endswith("y") and low[-2:-1] not in ("a", "e", "i", "o", "u"):
        head = head[:-1] + "ies"
    elif low.endswith(("s", "x", "ch", "sh", "z")):
        head += "es"
    else:
        head += "s"
    return head + of + rest
