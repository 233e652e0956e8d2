"""Pseudonyms of organizations: another name of the same pattern.

A name is read word by word. What says the sort of the organization stays (``University of``, ``Bank``, ``Ltd``,
``& Sons``), a place follows its substitute, a family its new name, and each other word gets a word of its own, so that
short forms (``Goldman`` beside ``Goldman Sachs Group``) follow the long ones. Acronyms are made of the new long form
where the document has one, else of other letters.

With ``organisations = "known"`` a company that the knowledge base has, and whose name holds no place, becomes another
of the same industry and country. Readers may know that one, and what the text says is not true of it: where that could
harm, ``"invented"`` never takes a real name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from allonym.replace.atlas import Atlas, patterns, walk, word_set
from allonym.replace.cast import Cast, Renderer
from allonym.replace.gazetteer import known_place
from allonym.replace.mention import Wanted
from allonym.replace.places import recased, shown
from allonym.replace.postal import digits
from allonym.replace.trade_names import (
    WORD,
    Part,
    Token,
    form,
    is_acronym,
    name_words,
    nation,
    parts,
    telling_name,
    tokenised,
)
from allonym.text.names import plain

if TYPE_CHECKING:
    from allonym.kb import Item, KnowledgeBase

KINDS = (
    *("company", "university", "school", "hospital", "bank", "newspaper", "party", "agency", "team", "museum", "band"),
    "org",
)
_HARD = re.compile(r"[^aeiouy]{4}|([a-z])\1\1|[^aeiouy]{2}(?:x|phen|th)|^.{10,}", re.IGNORECASE)
_RUDE = re.compile(
    r"fu[cknq]|di[ck]|coc|shit|cum|cun|tit|sex|arse|ass|piss|wan[ck]|nig|fag|slut|rap|hor[ea]|hit", re.IGNORECASE
)
_SYLLABLE = re.compile(r"([A-Z][a-z]*?(?<=[aeiouyAEIOU])[^\W\daeiouy]?)([^\W\daeiouyA-Z][aeiouy][a-z]*)")
_TICKER = re.compile(r"(\$|(?:[A-Za-z]+ ?: ?))?([A-Za-z]{1,6})((?:[.\-][A-Za-z]{1,3})?)")
_LONGEST = 24
"""Words of a name; what is longer is a sentence, or a list."""
_LETTERS = "ABCDEFGHIKLMNOPRSTVWXZ"
_SMALL = frozenset("of and the for in on de & der die und für du la le des".split())


@dataclass(slots=True)
class _Names:
    """What the organizations of one document have become. Mutable; it never leaves a call of :func:`recast`.

    Attributes:
        known: words of a name that went as a whole to those of another, for short forms, and to all of that.
        words: word to what stands for it wherever it stands.
        option: ``known`` or ``invented``.
    """

    atlas: Atlas
    option: str
    known: dict[tuple[str, ...], tuple[tuple[str, ...], str]] = field(default_factory=dict)
    words: dict[str, str | None] = field(default_factory=dict)


def recast(cast: Cast, wanted: Sequence[Wanted]) -> dict[str, Renderer]:
    """What stands for each organization.

    Args:
        cast: of the document; its places have been chosen already.
        wanted: the entities of the family ORGANIZATION, in reading order.

    Returns:
        Entity key to what renders its surfaces.
    """
    atlas = Atlas.of(cast)
    atlas.settle((), wanted)
    names: dict[str, _Names] = {}
    out: dict[str, Renderer] = {}
    order = sorted(range(len(wanted)), key=lambda i: -max(len(name_words(s)) for s in (*wanted[i].surfaces, "")))
    for i in order:  # long names first: short forms follow them
        one = wanted[i]
        option = str(one.options.get("organisations", "known"))
        mine = names.setdefault(option, _Names(atlas, option))
        ticker = one.entity.label == "TICKER"
        played = {s: _ticker(mine, s) if ticker else None for s in one.surfaces}
        if not ticker:
            played = _played(mine, one.surfaces)
        out[one.entity.key] = _renderer(mine, played, ticker)
    return out


def _renderer(names: _Names, played: Mapping[str, str | None], ticker: bool) -> Renderer:
    def render(surface: str) -> str | None:
        if surface in played:
            return played[surface]
        return _ticker(names, surface) if ticker else _played(names, (surface,))[surface]

    return render


def _played(names: _Names, surfaces: Sequence[str]) -> dict[str, str | None]:
    """Surface to substitute, for all surfaces of one organization; acronyms are made of the longest one."""
    longest = max(surfaces, key=lambda s: (len(name_words(s)), len(s)), default="")
    out: dict[str, str | None] = {}
    whole: str | None = None
    for surface in sorted(dict.fromkeys(surfaces), key=lambda s: (-len(name_words(s)), -len(s), s)):
        short = surface != longest and is_acronym(surface) and len(name_words(longest)) > 1
        if short:
            out[surface] = _abbreviated(names, surface, whole) if whole is not None else None
        else:
            out[surface] = substitute(names, surface)
        if surface == longest:
            whole = out[surface]
    return out


def substitute(names: _Names, surface: str) -> str | None:
    """What stands for one surface; None where it says nothing but the sort of the organization."""
    if surface.islower() and (cased := _cased(names, surface)) != surface:
        out = substitute(names, cased)
        return out.lower() if out is not None else None
    tokens = tokenised(surface)
    core = [t for t in tokens if t.word and not t.legal]
    if not core or len(core) > _LONGEST:
        return None
    bare = tuple(t.plain for t in core if t.plain != "the")
    if not bare:
        return None
    followed = _short_form(names, bare, surface, tokens)
    if followed is not None:
        return followed
    read = parts(names.atlas, tokens)
    known = _sibling(names, tokens, read) if names.option == "known" else None
    if known is not None:
        return known
    if is_acronym(surface):
        letters = _acronym(names, surface)
        if letters is not None:
            names.known[bare] = (letters,), letters
        return letters
    return _composed(names, read)


def _cased(names: _Names, surface: str) -> str:
    """A name in small letters as it is written; as it is where nothing says that it is a name."""
    found = names.atlas.kb.find(surface, KINDS)
    if found and plain(found[0].label) == plain(surface):
        return found[0].label
    return surface.title() if found or names.atlas.cast.setting.document.text[:400].islower() else surface


def _learn(names: _Names, bare: tuple[str, ...], new: str) -> None:
    found = WORD.findall(new)
    if found and plain(found[0]) == "the":
        new = new[new.find(found[1]) :] if len(found) > 1 else new
        found = found[1:]
    names.known[bare] = tuple(found), new


def _composed(names: _Names, read: Sequence[Part], anyhow: bool = False) -> str | None:
    """The name part by part; None where nothing of it would change, unless that is well ``anyhow``."""
    changed = anyhow
    out = ""
    for part in read:
        text: str | None = part.text
        if part.sort == "place":
            text = _place(names, part.text)
        elif part.sort != "kept":
            text = _word(names, part)
        if text is None:
            return None
        changed = changed or text != part.text
        out += text
    if changed:
        return out
    # Nothing but words that say the sort: one of them gives way to another of its kind.
    out = ""
    for part in read:
        text = None if changed or not part.text[:1].isupper() else _swapped(names, part.text)
        changed = changed or text is not None
        out += text or part.text
    return out if changed else None


def _word(names: _Names, part: Part) -> str | None:
    """What stands for one word: the same wherever it stands, whatever it was taken for there."""
    ending = part.text[-2:] if part.text[-2:] in ("'s", "’s") else ""
    core = part.text[: len(part.text) - len(ending)]
    key = plain(core)
    if key not in names.words:
        new = None
        if part.sort == "family":
            new = _family(names, core)
        elif part.sort == "saint" or _ordinary(core):
            new = _swapped(names, core)
        elif part.sort == "acronym":
            new = _acronym(names, core)
        names.words[key] = new or _invented(names, core)
    found = names.words[key]
    if found is None:
        return None
    return recased(core, found) + ending


def _ordinary(text: str) -> bool:
    return plain(text) in _swaps()


@cache
def _swaps() -> dict[str, tuple[str, ...]]:
    return {plain(w): tuple(one.split()) for one in patterns()["organisations"]["swaps"] for w in one.split()}


def _swapped(names: _Names, text: str) -> str | None:
    """Another word of the same list: Energy, Health; Mary, Luke."""
    key = plain(text)
    pool = [w for w in _swaps().get(key, ()) if plain(w) != key]
    if not pool:
        return None
    ledger = names.atlas.cast.ledger
    start = ledger.number("organisation word", key) % len(pool)
    turn = pool[start:] + pool[:start]
    new = ledger.assign("organisation word", key, lambda attempt: turn[attempt] if attempt < len(turn) else None)
    return recased(text, new) if new else None


def _place(names: _Names, text: str) -> str | None:
    atlas = names.atlas
    item = nation(atlas, text)
    if item is not None:
        from allonym.replace.things import nationality

        return text if atlas.keeps("country") else nationality(atlas, item, text)
    place = known_place(atlas, text)
    if place is not None and place.kind in ("country", "region") and not atlas.plays(place):
        if atlas.keeps(place.kind):
            return text
        other = atlas.substitute(place)
        return None if other is None else recased(text, atlas.kb.label(other, atlas.language))
    known = atlas.cast.places.get(plain(text))
    new = shown(atlas, text)
    return new if new is not None else str(getattr(known, "label", "")) or None


def _family(names: _Names, text: str) -> str | None:
    from allonym.replace.people import family_name

    return family_name(names.atlas.cast, text)


def _invented(names: _Names, text: str) -> str | None:
    """A made-up word for one that tells the name."""
    ledger, key = names.atlas.cast.ledger, plain(text)
    if text.isdigit():
        return digits(names.atlas, "number", text)

    def propose(attempt: int) -> str:
        heads, tails = _halves(names.atlas.kb)
        number, head = divmod(ledger.number("organisation name", key, attempt), len(heads))
        word = heads[head] + tails[number % len(tails)]
        if _HARD.search(word) or _RUDE.search(word) or names.atlas.kb.find(word) or names.atlas.kb.name_facts(word):
            return " "  # hard to say, or rude, or somebody has it
        return word

    return ledger.assign("organisation name", key, propose)


@lru_cache(maxsize=4)
def _halves(kb: KnowledgeBase) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Beginnings and ends of English family names: as many and as common as their letters are, they betray little of
    what is made of them (P4 section 4.3); a short list of syllables was told from real names at once."""
    cut = [m for n in kb.names("last", "english") if (m := _SYLLABLE.fullmatch(n)) is not None]
    return tuple(dict.fromkeys(m[1] for m in cut)), tuple(dict.fromkeys(m[2] for m in cut))


def _short_form(names: _Names, bare: tuple[str, ...], surface: str, tokens: Sequence[Token]) -> str | None:
    """What stands for a name that begins a longer one of the document, or is one again: ``Goldman``."""
    if bare in names.known:
        new = names.known[bare][1]
        the = surface[:4] if surface[:4].lower() == "the " else ""
        return the + (new if is_acronym(surface) else recased(surface, new)) + form(tokens)
    if bare[0] in word_set("organisations", "generic") and len(bare) == 1:
        return None
    for long, (new_words, _) in names.known.items():
        if long[: len(bare)] == bare and new_words and not is_acronym(surface):
            # As many words, but at least one that tells the name, and none left hanging: De Nederlandsche.
            common = _SMALL | word_set("organisations", "generic")
            first = next((i for i, w in enumerate(new_words, 1) if plain(w) not in common), 1)
            count = max(first, min(len(bare), len(new_words)))
            while count > first and plain(new_words[count - 1]) in _SMALL:
                count -= 1
            return recased(surface, " ".join(new_words[:count])) + form(tokens)
    return None


def _sibling(names: _Names, tokens: Sequence[Token], read: Sequence[Part]) -> str | None:
    """The name with another organization's in the place of one that the knowledge base has; None where it has none.

    Only words that say the sort, and places, may follow that one: ``Goldman Sachs Group``, ``Enron North America``.
    """
    starts = [0]
    for part in read:
        starts.append(starts[-1] + len(part.text))
    text = "".join(t.text for t in tokens)
    end = len(text) - len(form(tokens))
    words = [i for i, p in enumerate(read) if p.text[:1].isalnum() and starts[i] < end]
    if words and plain(read[words[0]].text) == "the":
        words = words[1:]
    for count in range(len(words), 0, -1):
        rest = [p for p in read[words[count - 1] + 1 :] if p.text.strip()]
        if any(p.sort not in ("kept", "place") for p in rest):
            break
        core = text[starts[words[0]] : starts[words[count - 1] + 1]]
        mine = [read[i] for i in words[:count]]
        item = _known(names, core, mine)
        if item is not None:
            tail = read[words[count - 1] + 1 :]
            return _instead(names, item, text[: starts[words[0]]], core, tail)
    if words and end < len(text):
        # Known by no less than all of it: Energie AG.
        begin, behind = starts[words[0]], starts[words[-1] + 1]
        item = _known(names, text[begin:], read[words[0] :])
        if item is not None:
            return _instead(names, item, text[:begin], text[begin:behind], read[words[-1] + 1 :])
    return None


def _instead(names: _Names, item: Item, head: str, core: str, tail: Sequence[Part]) -> str | None:
    """A name with another organization's in the place of ``core``, which stands between ``head`` and ``tail``."""
    new = _another(names, item, core)
    if new is None:
        return None
    _learn(names, tuple(plain(w).rstrip(".") for w in WORD.findall(core)), new)
    rest = _composed(names, tail, anyhow=True)
    return None if rest is None else head + (new if is_acronym(core) else recased(core, new)) + rest


def _known(names: _Names, core: str, read: Sequence[Part]) -> Item | None:
    """The organization that goes to another as a whole; None: its name is read word by word."""
    kb, generic = names.atlas.kb, word_set("organisations", "generic")
    found = kb.find(core, KINDS, "", names.atlas.language) or kb.find(f"the {core}", KINDS)
    if not found or (len(read) == 1 and plain(core) in generic):
        return None
    item = found[0]
    if core.islower() and item.label != core:
        return None
    places = [p for p in read if p.sort == "place"]
    if any(plain(p.text) in names.atlas.cast.places for p in places):
        return None  # it follows its town
    if item.kind not in ("company", "bank") and any(p.sort in ("place", "saint") for p in read):
        return None
    if all(p.sort == "kept" for p in read) and any(plain(p.text) in _swaps() for p in read):
        return None  # Department of Energy
    return item


@lru_cache(maxsize=2048)
def _pools(kb: KnowledgeBase, item: Item, to: str) -> tuple[tuple[Item, ...], ...]:
    """What may stand for an organization whose country goes to ``to``: there, like it at home, anywhere."""
    sorts = set(name_words(item.label)) & word_set("organisations", "sorts")
    authority = item.kind in ("agency", "org")
    there = kb.pool(item.kind, country=to, industry=item.industry)
    near = () if to != item.country else kb.siblings(item)
    wide = kb.pool(item.kind, industry=item.industry)
    return tuple(
        tuple(o for o in pool if o.id != item.id and (not authority or sorts & set(name_words(o.label))))
        for pool in (there, near, wide)
    )


@lru_cache(maxsize=4096)
def _bare(kb: KnowledgeBase, label: str) -> str:
    """A name without its legal form; empty where nobody is known by that, as by the first word of ``Software AG``."""
    name = "".join(t.text for t in tokenised(label) if not t.legal).strip(" ,.")
    return name if name == label or kb.find(name, KINDS) else ""


def _another(names: _Names, item: Item, core: str) -> str | None:
    """Another organization of the same industry and country; of an authority, one of the same sort."""
    kb, cast = names.atlas.kb, names.atlas.cast
    to = names.atlas.country(item.country)
    key, pools = f"{item.label}>{to}", _pools(kb, item, to)

    def propose(attempt: int) -> str | None:
        one = walk(cast, pools, "organisation", key, attempt)
        return one and (_bare(kb, one.label) or " ")

    name = cast.ledger.assign("organisation", key, propose, telling=telling_name)
    if name is None:
        return None
    return name.removeprefix("The ").removeprefix("the ") if core[:4].lower() != "the " else name


def _acronym(names: _Names, surface: str) -> str | None:
    ledger = names.atlas.cast.ledger
    count = sum(c.isalpha() for c in surface)

    def propose(attempt: int) -> str:
        number = ledger.number("acronym", plain(surface), attempt)
        letters = ""
        for _ in range(count):
            number, at = divmod(number, len(_LETTERS))
            letters += _LETTERS[at]
        if any(c.isalpha() for c in letters) and names.atlas.kb.find(letters):
            return " "
        return letters

    letters = ledger.assign("acronym", plain(surface), propose)
    if letters is None:
        return None
    each = iter(letters)
    return "".join(next(each) if c.isalpha() else c for c in surface)


def _abbreviated(names: _Names, surface: str, long: str) -> str | None:
    """The acronym of a new long form, in the way of the old one; other letters where that makes none."""
    left_out = word_set("organisations", "legal") | {"the"}
    words = [w for w in WORD.findall(long) if plain(w) not in left_out and w[0].isalpha()]
    count = sum(c.isalpha() for c in surface)
    letters = [w[0].upper() for w in words if plain(w) not in _SMALL]
    if len(letters) != count:
        letters = [w[0].upper() for w in words]
    if not 2 <= len(letters) <= 8 or names.atlas.cast.ledger.stands("".join(letters)):
        return _acronym(names, surface)
    if "." in surface:
        return ".".join(letters) + "."
    return "".join(letters)


def _ticker(names: _Names, surface: str) -> str | None:
    """Other letters for a symbol of a stock exchange; the exchange stays."""
    match = _TICKER.fullmatch(surface.strip())
    if match is None:
        return None
    letters = _acronym(names, match[2].upper())
    if letters is None:
        return None
    return (match[1] or "") + (letters.lower() if match[2].islower() else letters) + match[3]
