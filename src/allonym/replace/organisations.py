"""Pseudonyms of organisations: another name of the same pattern.

A name is read word by word. What says the sort of the organisation stays (``University of``, ``Bank``, ``Ltd``,
``& Sons``), a place follows its pseudonym, a family its new name, and each other word gets a word of its own, so that
short forms (``Goldman`` beside ``Goldman Sachs Group``) follow the long ones. Acronyms are made of the new long form
where the document has one, else of other letters.

No firm gets the name of a real one, since readers may know that, and what the text says is not true of it. Only with
``organisations = "known"`` does a company that the knowledge base has, and whose name holds no place, become another of
the same industry and country.
"""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from dataclasses import dataclass
from functools import cache, lru_cache

from allonym.detection.words import read_ordinary_words
from allonym.kb import ORGANISATIONS, Item, KnowledgeBase
from allonym.protocol import Wanted
from allonym.replace.attributes import choose_nationality
from allonym.replace.cast import Cast, Renderer
from allonym.replace.naming import load_name_tables
from allonym.replace.people import choose_family_name
from allonym.replace.person import get_name_weight
from allonym.replace.place_map import PlaceMap, find_nationality, open_place_map, pick_from_pools
from allonym.replace.places import find_known_place, is_large_place, render_place
from allonym.replace.postal import change_digits
from allonym.replace.tables import read_toml, read_word_set
from allonym.replace.wording import join_texts, match_capitals
from allonym.text.names import normalize_surface

_HARD = re.compile(r"[^aeiouy]{4}|([a-z])\1\1|[^aeiouy]{2}(?:x|phen|th)|^.{10,}", re.IGNORECASE)
_RUDE = re.compile(
    r"fu[cknq]|di[ck]|coc|poo|shit|cum|cun|tit|sex|arse|ass|piss|wan[ck]|nig|fag|slut|rap|hor[ea]|hit", re.IGNORECASE
)
_SYLLABLE = re.compile(r"([A-Z][a-z]*?(?<=[aeiouyAEIOU])[^\W\daeiouy]?)([^\W\daeiouyA-Z][aeiouy][a-z]*)")
_TICKER = re.compile(r"(\$|(?:[A-Za-z]+ ?: ?))?([A-Za-z]{1,6})((?:[.\-][A-Za-z]{1,3})?)")
_MOST_WORDS = 24  # words of a name; what is longer is a sentence, or a list
_LETTERS = "ABCDEFGHIKLMNOPRSTVWXZ"
_SMALL = frozenset("of and the for in on de & der die und für du la le des".split())
WORD = re.compile(r"(?:[^\W\d_]\.){2,}|[^\W_]+(?:['’&][^\W_]+)*\.?|&")
"""A word of a name; initials are one word."""
_LONGEST_PLACE = 4  # words
_WRITTEN_SMALL = frozenset("inc ltd gmbh corp limited corporation company incorporated".split())
_OF_PLACES = frozenset({"county", "city", "islands", "island"})
_FAMILIAR = 20  # weight of a family name that many bear
_LAW = frozenset("llp attorneys solicitors chambers partners associates".split())


@dataclass(slots=True)
class Token:
    """A word of a name with its plain form, or what stands between two words; ``legal``: part of the legal form."""

    text: str
    plain: str
    word: bool
    legal: bool = False


@dataclass(slots=True)
class Part:
    """A part of a name; ``sort``: fixed, place, family, saint, acronym, or word (another one that tells the name)."""

    sort: str
    text: str


def make_renderers(cast: Cast, targets: Sequence[Wanted]) -> dict[str, Renderer]:
    """Choose pseudonyms of organisations.

    Args:
        cast: of the document; the pseudonyms of its places have been chosen.
        targets: the entities of the family ORGANIZATION, in reading order.

    Returns:
        Entity key to what renders its surfaces.
    """
    places = open_place_map(cast)
    places.set_countries((), targets)
    choosers = {option: _Chooser(places, option == "invented") for option in ("known", "invented")}
    out: dict[str, Renderer] = {}
    # Long names first: short forms follow them.
    for target in sorted(targets, key=lambda t: -max(len(list_name_words(s)) for s in (*t.surfaces, ""))):
        chooser = choosers[str(target.options.get("organisations", "invented"))]
        if target.entity.label == "TICKER":
            render: Renderer = chooser.choose_ticker
            for surface in target.surfaces:
                render(surface)
        else:
            render = chooser.make_renderer(target.surfaces)
        out[target.entity.key] = render
    return out


class _Chooser:
    """Chooses new names of the organisations of one document. Mutable; it never leaves ``prepare``.

    Args:
        places: of the document.
        invent: whether no name of a real organisation is taken.
    """

    def __init__(self, places: PlaceMap, invent: bool) -> None:
        self._places = places
        self._kb = places.kb
        self._ledger = places.cast.ledger
        self._invent = invent
        # Words of a name that another replaced as a whole, to the other's words, for short forms, and all of it.
        self._learned: dict[tuple[str, ...], tuple[tuple[str, ...], str]] = {}
        self._words: dict[str, str | None] = {}  # word to its pseudonym wherever it stands

    def make_renderer(self, surfaces: Sequence[str]) -> Renderer:
        """Return what renders the surfaces of one organisation; acronyms are made of the longest one."""
        names: dict[str, str | None] = {}
        longest = max(surfaces, key=lambda s: (len(list_name_words(s)), len(s)), default="")
        for surface in sorted(dict.fromkeys(surfaces), key=lambda s: (-len(list_name_words(s)), -len(s), s)):
            if surface != longest and is_acronym(surface) and len(list_name_words(longest)) > 1:
                full = names[longest]
                names[surface] = self.abbreviate_new_name(surface, full) if full is not None else None
            else:
                names[surface] = self.choose_name(surface)
        return lambda surface: names[surface] if surface in names else self.choose_name(surface)

    def choose_name(self, surface: str) -> str | None:
        """Return the pseudonym of one surface; None where it says nothing but the sort of the organisation."""
        if surface.islower() and (cased := self._capitalise_lower_name(surface)) != surface:
            new = self.choose_name(cased)
            return new.lower() if new is not None else None
        tokens = tokenise_name(surface)
        core = [t for t in tokens if t.word and not t.legal]
        bare = tuple(t.plain for t in core if t.plain != "the")
        if not bare or len(core) > _MOST_WORDS:
            return None
        new = self._choose_short_form(bare, surface, tokens)
        if new is not None:
            return new
        parts = find_name_parts(self._places, tokens)
        new = None if self._invent else self._choose_known_organisation(tokens, parts)
        if new is not None:
            return new
        if is_acronym(surface):
            letters = self._invent_acronym(surface)
            if letters is not None:
                self._learned[bare] = (letters,), letters
            return letters
        return self._compose_name(parts)

    def _capitalise_lower_name(self, surface: str) -> str:
        """Return a name in small letters as it is written; as it is where nothing says that it is a name."""
        items = self._kb.find(surface, ORGANISATIONS)
        if items and normalize_surface(items[0].label) == normalize_surface(surface):
            return items[0].label
        return surface.title() if items or self._places.cast.text[:400].islower() else surface

    def _compose_name(self, parts: Sequence[Part], unchanged: bool = False) -> str | None:
        """Return the name part by part; None where nothing of it would change, unless it may be ``unchanged``."""
        out = join_texts(self._choose_part(part) for part in parts)
        if out is None or unchanged or out != "".join(part.text for part in parts):
            return out
        # Only words that say the sort: the first that can is replaced by another one of its kind.
        for i, part in enumerate(parts):
            new = self._choose_interchangeable_word(part.text) if part.text[:1].isupper() else None
            if new:
                return "".join(new if i == j else p.text for j, p in enumerate(parts))
        return None

    def _choose_part(self, part: Part) -> str | None:
        if part.sort == "place":
            return self._choose_place(part.text)
        return part.text if part.sort == "fixed" else self._choose_word(part)

    def _choose_word(self, part: Part) -> str | None:
        """Return the pseudonym of one word: the same wherever it stands, whatever it was taken for there."""
        ending = part.text[-2:] if part.text[-2:] in ("'s", "’s") else ""
        core = part.text[: len(part.text) - len(ending)]
        key = normalize_surface(core)
        if key not in self._words:
            new = None
            if part.sort == "family":
                new = choose_family_name(self._places.cast, core)
            elif part.sort == "saint":
                new = self._choose_saint(core)
            elif key in _read_interchangeable_words():
                new = self._choose_interchangeable_word(core)
            elif part.sort == "acronym":
                new = self._invent_acronym(core)
            self._words[key] = new or self._invent_word(core)
        word = self._words[key]
        return None if word is None else match_capitals(word, core) + ending

    def _choose_interchangeable_word(self, text: str) -> str | None:
        """Return another word of the same list: Energy, Health; Mary, Luke."""
        key = normalize_surface(text)
        pool = [w for w in _read_interchangeable_words().get(key, ()) if normalize_surface(w) != key]
        if not pool:
            return None
        new = self._ledger.choose("organisation word", key, pool)
        return match_capitals(new, text) if new else None

    def _choose_saint(self, text: str) -> str | None:
        key = normalize_surface(text)
        lists = [names.split() for names in read_toml()["organisations"]["saint_names"]]
        names = next((row for row in lists if key in map(normalize_surface, row)), lists[0])
        new = self._ledger.choose("saint", key, [name for name in names if normalize_surface(name) != key])
        return match_capitals(new, text) if new else None

    def _choose_place(self, text: str) -> str | None:
        places = self._places
        item = find_nationality(places.kb, text, places.language)
        if item is not None:
            return text if places.keeps_kind("country") else choose_nationality(places, item, text)
        place = find_known_place(places, text)
        if place is not None and place.kind in ("country", "region") and not places.is_replaced(place):
            if places.keeps_kind(place.kind):
                return text
            other = places.choose_place(place)
            return None if other is None else match_capitals(self._kb.label(other, places.language), text)
        place_before = places.cast.places.get(normalize_surface(text))
        new = render_place(places, text)
        return new if new is not None else str(getattr(place_before, "label", "")) or None

    def _invent_word(self, text: str) -> str | None:
        """Return a made-up word for one that tells the name."""
        if text.isdigit():
            return change_digits(self._places, "number", text)
        key = normalize_surface(text)

        def propose(attempt: int) -> str:
            heads, tails = _list_family_name_halves(self._kb)
            number, head = divmod(self._ledger.draw_number("organisation name", key, attempt), len(heads))
            word = heads[head] + tails[number % len(tails)]
            if _HARD.search(word) or _RUDE.search(word) or self._kb.find(word) or self._kb.name_facts(word):
                return " "  # hard to say, or rude, or a name already
            return word

        return self._ledger.assign("organisation name", key, propose)

    def _choose_short_form(self, bare: tuple[str, ...], surface: str, tokens: Sequence[Token]) -> str | None:
        """Return the pseudonym of a name that begins a longer one of the document, or is one again: ``Goldman``."""
        if bare in self._learned:
            new = self._learned[bare][1]
            article = surface[:4] if surface[:4].lower() == "the " else ""
            core = new if is_acronym(surface) else match_capitals(new, surface)
            return article + core + get_legal_form(tokens)
        generic = read_word_set("organisations", "generic")
        if is_acronym(surface) or (bare[0] in generic and len(bare) == 1):
            return None
        for long, (words, _) in self._learned.items():
            if long[: len(bare)] == bare and words:
                # As many words, but at least one that tells the name, and none at the end that needs another behind it:
                # not De Nederlandsche.
                first = next((i for i, w in enumerate(words, 1) if normalize_surface(w) not in _SMALL | generic), 1)
                count = max(first, min(len(bare), len(words)))
                while count > first and normalize_surface(words[count - 1]) in _SMALL:
                    count -= 1
                return match_capitals(" ".join(words[:count]), surface) + get_legal_form(tokens)
        return None

    def _choose_known_organisation(self, tokens: Sequence[Token], parts: Sequence[Part]) -> str | None:
        """Return the name with another organisation's in place of one of the knowledge base; None where it has none.

        Only words that say the sort, and places, may follow that one: ``Goldman Sachs Group``, ``Enron North America``.
        """
        starts = [0]
        for part in parts:
            starts.append(starts[-1] + len(part.text))
        text = "".join(t.text for t in tokens)
        end = len(text) - len(get_legal_form(tokens))
        words = [i for i, p in enumerate(parts) if p.text[:1].isalnum() and starts[i] < end]
        if words and normalize_surface(parts[words[0]].text) == "the":
            words = words[1:]
        if not words:
            return None
        start = starts[words[0]]
        for count in range(len(words), 0, -1):
            tail = parts[words[count - 1] + 1 :]
            if any(p.sort not in ("fixed", "place") for p in tail if p.text.strip()):
                break
            core = text[start : starts[words[count - 1] + 1]]
            item = self._find_known_organisation(core, [parts[i] for i in words[:count]])
            if item is not None:
                return self._replace_core(item, text[:start], core, tail)
        if end < len(text):
            # The knowledge base may know it with its legal form alone: Energie AG.
            item = self._find_known_organisation(text[start:], parts[words[0] :])
            if item is not None:
                core = text[start : starts[words[-1] + 1]]
                return self._replace_core(item, text[:start], core, parts[words[-1] + 1 :])
        return None

    def _replace_core(self, item: Item, head: str, core: str, tail: Sequence[Part]) -> str | None:
        """Return a name with another organisation's in place of ``core``, between ``head`` and ``tail``."""
        new = self._choose_similar_organisation(item, core)
        if new is None:
            return None
        words, name = WORD.findall(new), new
        if words and normalize_surface(words[0]) == "the":
            name = new[new.find(words[1]) :] if len(words) > 1 else new
            words = words[1:]
        self._learned[tuple(normalize_surface(w).rstrip(".") for w in WORD.findall(core))] = tuple(words), name
        rest = self._compose_name(tail, unchanged=True)
        return None if rest is None else head + (new if is_acronym(core) else match_capitals(new, core)) + rest

    def _find_known_organisation(self, core: str, parts: Sequence[Part]) -> Item | None:
        """Return the organisation that is replaced as a whole; None: its name is read word by word."""
        items = self._kb.find(core, ORGANISATIONS, "", self._places.language)
        items = items or self._kb.find(f"the {core}", ORGANISATIONS)
        if not items or (len(parts) == 1 and normalize_surface(core) in read_word_set("organisations", "generic")):
            return None
        item = items[0]
        if core.islower() and item.label != core:
            return None
        if any(p.sort == "place" and normalize_surface(p.text) in self._places.cast.places for p in parts):
            return None  # it follows its town
        if item.kind not in ("company", "bank") and any(p.sort in ("place", "saint") for p in parts):
            return None
        has_interchangeable = any(normalize_surface(p.text) in _read_interchangeable_words() for p in parts)
        if has_interchangeable and all(p.sort == "fixed" for p in parts):
            return None  # Department of Energy
        return item

    def _choose_similar_organisation(self, item: Item, core: str) -> str | None:
        """Return another organisation of the same industry and country; of an authority, one of the same sort."""
        to = self._places.get_target_country(item.country)
        key, pools = f"{item.label}>{to}", _list_organisation_pools(self._kb, item, to)

        def propose(attempt: int) -> str | None:
            other = pick_from_pools(self._places.cast, pools, "organisation", key, attempt)
            return other and (_remove_legal_form(self._kb, other.label) or " ")

        name = self._ledger.assign("organisation", key, propose, telling=get_distinctive_organisation_name)
        if name is None or core[:4].lower() == "the ":
            return name
        return name.removeprefix("The ").removeprefix("the ")

    def _invent_acronym(self, surface: str) -> str | None:
        count = sum(c.isalpha() for c in surface)
        key = normalize_surface(surface)

        def propose(attempt: int) -> str:
            number = self._ledger.draw_number("acronym", key, attempt)
            letters = "".join(_LETTERS[number // len(_LETTERS) ** i % len(_LETTERS)] for i in range(count))
            is_word = letters.lower() in read_ordinary_words() or _RUDE.search(letters)
            return " " if letters and (is_word or self._kb.find(letters)) else letters

        letters = self._ledger.assign("acronym", key, propose)
        if letters is None:
            return None
        rest = iter(letters)
        return "".join(next(rest) if c.isalpha() else c for c in surface)

    def abbreviate_new_name(self, surface: str, full: str) -> str | None:
        """Return the acronym of a new long form, in the way of the old one; other letters where that gives none."""
        left_out = read_word_set("organisations", "legal") | {"the"}
        words = [w for w in WORD.findall(full) if normalize_surface(w) not in left_out and w[0].isalpha()]
        letters = [w[0].upper() for w in words if normalize_surface(w) not in _SMALL]
        if len(letters) != sum(c.isalpha() for c in surface):
            letters = [w[0].upper() for w in words]
        if not 2 <= len(letters) <= 8 or self._ledger.occurs_in_text("".join(letters)):
            return self._invent_acronym(surface)
        return ".".join(letters) + "." if "." in surface else "".join(letters)

    def choose_ticker(self, surface: str) -> str | None:
        """Return other letters for a symbol of a stock exchange; the exchange stays."""
        match = _TICKER.fullmatch(surface.strip())
        letters = self._invent_acronym(match[2].upper()) if match is not None else None
        if match is None or letters is None:
            return None
        return (match[1] or "") + (letters.lower() if match[2].islower() else letters) + match[3]


@cache
def _read_interchangeable_words() -> dict[str, tuple[str, ...]]:
    """Map each word of a list of words of one kind, in plain form, to its list."""
    lists = (tuple(words.split()) for words in read_toml()["organisations"]["swaps"])
    return {normalize_surface(word): words for words in lists for word in words}


@lru_cache(maxsize=4)
def _list_family_name_halves(kb: KnowledgeBase) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return beginnings and ends of English family names.

    They are so many, and their letters so common, that they betray little of what is made of them (P4 section 4.3); a
    short list of syllables was told from real names at once.
    """
    names = [m for n in kb.names("last", "english") if (m := _SYLLABLE.fullmatch(n)) is not None]
    return tuple(dict.fromkeys(m[1] for m in names)), tuple(dict.fromkeys(m[2] for m in names))


@lru_cache(maxsize=2048)
def _list_organisation_pools(kb: KnowledgeBase, item: Item, to: str) -> tuple[tuple[Item, ...], ...]:
    """Return what may replace an organisation whose country goes to ``to``: there, similar ones at home, anywhere."""
    sorts = set(list_name_words(item.label)) & read_word_set("organisations", "sorts")
    authority = item.kind in ("agency", "org")
    there = kb.pool(item.kind, country=to, industry=item.industry)
    near = () if to != item.country else kb.siblings(item)
    wide = kb.pool(item.kind, industry=item.industry)

    def fits(other: Item) -> bool:
        return other.id != item.id and (not authority or not sorts.isdisjoint(list_name_words(other.label)))

    return tuple(tuple(filter(fits, pool)) for pool in (there, near, wide))


@lru_cache(maxsize=4096)
def _remove_legal_form(kb: KnowledgeBase, label: str) -> str:
    """Return a name without its legal form; empty where that is no name, as the first word of ``Software AG``."""
    name = "".join(t.text for t in tokenise_name(label) if not t.legal).strip(" ,.")
    return name if name == label or kb.find(name, ORGANISATIONS) else ""


# Reading names: legal forms, words that say the sort, places, families, other words


def tokenise_name(surface: str) -> list[Token]:
    """Divide a name into words and what stands between them; the legal form at the end is marked."""
    out: list[Token] = []
    position = 0
    for match in WORD.finditer(surface):
        if match.start() > position:
            out.append(Token(surface[position : match.start()], "", False))
        out.append(Token(match[0], normalize_surface(match[0]).rstrip("."), True))
        position = match.end()
    if position < len(surface):
        out.append(Token(surface[position:], "", False))
    legal = read_word_set("organisations", "legal") | {"&", "and", "co"}
    for token in reversed([t for t in out if t.word][1:]):
        if token.plain not in legal:
            break
        token.legal = True
    return out


def find_name_parts(places: PlaceMap, tokens: Sequence[Token]) -> list[Part]:
    """Divide a name into what stays, places, families, and other words."""
    out: list[Part] = []
    fixed = read_word_set("organisations", "generic") | {"the"}
    legal = read_word_set("organisations", "legal")
    words = [i for i, t in enumerate(tokens) if t.word and not t.legal]
    joined = any(t.plain in ("&", "sons", "brothers", "bros") for t in tokens)
    formal = any(t.legal or t.plain in read_word_set("organisations", "family") for t in tokens)
    law = any(t.plain in _LAW for t in tokens)
    may_be_family = joined or formal or law or len(words) == 1
    form_shouts = any(t.legal and t.text.isupper() and t.plain in _WRITTEN_SMALL for t in tokens)
    trades = _find_trade_words(places, [tokens[i] for i in words], fixed, joined or law)
    shouted = all(tokens[i].text.isupper() for i in words) and (len(words) > 1 or form_shouts)
    end = 0
    for i, token in enumerate(tokens):
        if i < end:
            continue
        if not token.word or token.legal or (i and token.plain in legal):
            sort = "fixed"
        elif (place_end := _find_place_end(places, tokens, i)) is not None:
            end = place_end
            out.append(Part("place", "".join(t.text for t in tokens[i:end])))
            continue
        elif {token.plain, token.plain.removesuffix("'s")} & (fixed | trades) or _is_small_ordinary_word(token):
            sort = "fixed"
        elif _follows_saint(tokens, i):
            sort = "saint"
        elif token.plain in places.families or (may_be_family and _is_family_name(places, token)):
            sort = "family"
        else:
            sort = "acronym" if is_acronym(token.text) and len(token.plain) < 5 and not shouted else "word"
        out.append(Part(sort, token.text))
    if any(p.sort == "word" for p in out) and not joined and not law:
        for part in out:  # a family is one only where no other word tells the name
            if part.sort == "family" and normalize_surface(part.text) not in places.families:
                part.sort = "word"
    return out


def _is_small_ordinary_word(token: Token) -> bool:
    """Whether a word in small letters tells nothing: it may be a name in a user name, ``OUDJQ_schneider``."""
    is_known = (
        token.plain in _SMALL or token.plain in read_ordinary_words() or token.plain in load_name_tables().particles
    )
    return token.text.islower() and (is_known or len(token.plain) < 3)


def _find_trade_words(places: PlaceMap, words: Sequence[Token], fixed: Set[str], is_of_families: bool) -> Set[str]:
    """Return the words of a name that say the trade; all but the first where no other word tells the name.

    Among families (``Stone & Sons``) none that is a family's name.
    """
    trades = [t.plain for t in words if t.plain in read_word_set("organisations", "trades") and t.plain not in fixed]
    if is_of_families:
        trades = [word for word in trades if get_name_weight(places.kb, word, "last") < _FAMILIAR]
    tells = any(not {t.plain, t.plain.removesuffix("'s")} & fixed and t.plain not in trades for t in words)
    return set(trades if tells else trades[1:])


def _follows_saint(tokens: Sequence[Token], i: int) -> bool:
    before = next((t.plain for t in reversed(tokens[:i]) if t.word), "")
    return before in read_word_set("organisations", "saints")


def _find_place_end(places: PlaceMap, tokens: Sequence[Token], i: int) -> int | None:
    """Return the index behind the place that starts at ``i``; None where none does."""
    words = [j for j in range(i, len(tokens)) if tokens[j].word and not tokens[j].legal][:_LONGEST_PLACE]
    generic = read_word_set("organisations", "generic")
    if _follows_saint(tokens, i) or tokens[i].plain in read_word_set("organisations", "saints") | {"the"}:
        return None
    for j in reversed(words):
        text, last = "".join(t.text for t in tokens[i : j + 1]), tokens[j].plain
        if not text[:1].isupper() or len(text) < 4 or all(tokens[k].plain in generic for k in words if k <= j):
            continue
        if last in ("of", "&", "and") or (last in generic and last not in _OF_PLACES):
            continue
        is_known = (
            normalize_surface(text) in places.cast.places
            or find_nationality(places.kb, text, places.language) is not None
        )
        if is_known or is_large_place(places, text):
            return j + 1
    return None


def _is_family_name(places: PlaceMap, token: Token) -> bool:
    if len(token.plain) < 3 or token.text.isupper():
        return False
    return any(f.part == "last" and f.weight >= 5 for f in places.kb.name_facts(token.plain))


def is_acronym(text: str) -> bool:
    """Whether a text is one word of 2 to 6 capitals, with full stops or without."""
    letters = text.replace(".", "").replace("&", "")
    return 2 <= len(letters) <= 6 and letters.isalpha() and letters.isupper()


def get_legal_form(tokens: Sequence[Token]) -> str:
    """Return the legal form at the end, with what parts it from the name."""
    start = next((i for i, t in enumerate(tokens) if t.legal), len(tokens))
    while 0 < start < len(tokens) and not tokens[start - 1].word:
        start -= 1
    return "".join(t.text for t in tokens[start:])


def list_name_words(text: str) -> tuple[str, ...]:
    """Return the words of a name in plain form."""
    return tuple(normalize_surface(w) for w in WORD.findall(text))


def get_distinctive_organisation_name(label: str) -> str:
    """Return an organisation's name without the words that say its sort."""
    common = read_word_set("organisations", "generic") | read_word_set("organisations", "legal")
    return " ".join(w for w in list_name_words(label) if w.rstrip(".") not in common) or label
