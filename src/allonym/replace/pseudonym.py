"""Realistic pseudonyms: other people, places, organisations, dates and numbers of the same kind.

All pseudonyms of a document are chosen once, family by family, so that what belongs together moves together: places
first, then organisations (a club follows its town), people, their addresses, then attributes, dates and numbers. Where
nothing fits, the policy's tag is written. The same key, scope and entity lead to the same first choice in every
document; see :mod:`allonym.replace.cast`.

What the modules would write is looked at over all families, in reading order. Where a pseudonym is another entity's, or
occurs in the document anyway, the later entity takes its next choice where its module offers one
(``Cast.alternatives``), else its tag. One original may have one pseudonym wherever it stands (``Connor`` of two
relatives); text that is left as it is belongs to nobody. Numbers of one or two digits may occur elsewhere in the
document, since nearly every text has some; whoever restores must go by their places. A date or an age may equal another
one of the document, for both move.

What a pseudonym may keep of its original is checked too: in a time, an age or a form of address the words of a list
stay, and no others. A detector may mark more than a time: ``the year connor died``, ``sarah's 40th birthday``. A word
that is in no list may be somebody's name, so that a tag must replace all of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import replace
from functools import cache, cached_property, partial
from importlib import import_module
from operator import itemgetter
from typing import Any, Literal
from typing import cast as typed
from unicodedata import normalize

from allonym.detection.slugs import find_slug_names, write_slug
from allonym.errors import PolicyError
from allonym.kb import KnowledgeBase
from allonym.protocol import Mention, Setting, Wanted, traits
from allonym.replace import ordinary
from allonym.replace.cast import Cast, Renderer, find_plain_words, make_cast
from allonym.replace.dates import check_shift_options
from allonym.replace.kept import find_kept_names
from allonym.replace.naming import load_name_tables
from allonym.replace.tables import join_calendar_names, read_toml, read_word_set
from allonym.text.names import normalize_surface
from allonym.text.words import LETTERS

ORDER = (
    ("places", "LOCATION"),
    ("organisations", "ORGANIZATION"),
    ("people", "PERSON"),
    ("addresses", "EMAIL_ADDRESS ONLINE_ID"),
    ("attributes", "ORIGIN LANGUAGE OCCUPATION PRODUCT EVENT WORK_OF_ART AWARD LAW"),
    ("date_pseudonyms", "DATE_TIME AGE"),
    (
        "identifiers",
        "PHONE_NUMBER GENERIC_ID DEVICE_ID VEHICLE_ID GOVERNMENT_ID FINANCIAL_ID SECRET NUMERIC MEDICAL_TERM",
    ),
)
"""The modules that find pseudonyms, and for which families, in the order in which they are called."""


def make_renderers(targets: Sequence[Wanted], setting: Setting, remarks: list[str]) -> dict[str, Renderer]:
    """Choose the pseudonyms of a document: entity key to what renders its surfaces.

    Args:
        targets: the entities, in reading order.
        setting: document, policy, key, scope, and the vault's book where there is one.
        remarks: filled with what a reader of the plan should know; no text of the document.

    Raises:
        UsageError: there is no key.
        PolicyError: rules name different knowledge bases, or a country that theirs does not know.
        KnowledgeBaseError: the knowledge base cannot be read.
    """
    # By the policy, not by what this document happens to hold: it would be refused for some documents only.
    rules = (setting.policy.default, *setting.policy.rules.values())
    options = (*(r.options for r in rules if r.operator == "pseudonym"), *(t.options for t in targets))
    paths = sorted({str(o["kb"]) for o in options if o.get("kb")})
    if len(paths) > 1:
        required = "all rules of a policy must name the same knowledge base"
        raise PolicyError(f"operator 'pseudonym': {required}, got {', '.join(paths)}")
    kb = KnowledgeBase.open(paths[0] if paths else None)
    # A letter and its accent, where they are two characters, would be read as two letters.
    targets = [replace(t, surfaces=tuple(normalize("NFC", s) for s in t.surfaces)) for t in targets]
    for code in {str(t.options.get("country", "")) for t in targets} - {""}:
        if not any(item.country == code for item in kb.pool("country")):
            raise PolicyError(f"operator 'pseudonym': the knowledge base knows no country {code!r} to move to")
    cast = make_cast(setting, kb, remarks, targets)
    out: dict[str, Renderer] = {}
    mentions = [span for t in targets for span in t.entity.spans]
    slug_names = find_slug_names(setting.document.text, mentions, setting.policy.taxonomy)
    names = [_leave_out_slugs(t, slug_names) for t in targets if not ordinary.has_ordinary_words_only(cast, t)]
    for module, families in ORDER:
        members = [t for t in names if cast.get_label_family(t) in families.split()]
        if members:
            members.sort(key=lambda t: t.entity.spans[0])
            out |= import_module(f"allonym.replace.{module}").make_renderers(cast, members)
    if slug_names:
        out = {key: partial(_render_slug_or_name, slug_names, render) for key, render in out.items()}
    covers = {t.entity.key: partial(ordinary.cover_surface, cast, t) for t in targets}
    cast.alternatives = covers | cast.alternatives
    renderers = {key: partial(_render_or_cover, out.get(key), cover) for key, cover in covers.items()}
    return avoid_collisions(cast, targets, renderers)


def _leave_out_slugs(target: Wanted, slugs: Container[str]) -> Wanted:
    """Return an entity without its slugs, which follow its names; as it is where it has nothing else."""
    pairs = zip(target.entity.spans, target.surfaces, strict=True)
    rest = [(span, surface) for span, surface in pairs if surface not in slugs]
    if not rest or len(rest) == len(target.surfaces):
        return target
    spans, surfaces = zip(*rest, strict=True)
    return replace(target, entity=replace(target.entity, spans=spans), surfaces=surfaces)


def _render_slug_or_name(slug_names: Mapping[str, str], render: Renderer, surface: str) -> str | None:
    name = slug_names.get(surface)
    new = render(surface if name is None else name)
    return new if name is None or new is None else write_slug(new, surface)


def _render_or_cover(render: Renderer | None, cover: Renderer, surface: str) -> str | None:
    """Return the pseudonym of a surface; where its module has none, or the surface itself, ordinary words or a code."""
    new = render(surface) if render is not None else None
    return new if new and new.strip() else cover(surface)


def _check_pseudonym_options(options: Mapping[str, Any], where: str) -> None:
    check_shift_options(options, where)
    country = options.get("country", "")
    if country and not (len(country) == 2 and country.isascii() and country.isalpha() and country.isupper()):
        raise PolicyError(f"{where}.country must be a code of ISO 3166 with two capitals, such as PT, got {country!r}")
    if options.get("kb"):
        KnowledgeBase.open(str(options["kb"]))  # a missing or damaged file is reported now, not at the first name


@traits(keyed=True, repeats=True, prepare=make_renderers, check=_check_pseudonym_options)
def pseudonym(
    mention: Mention,
    setting: Setting,
    *,
    names: Literal["like", "neutral"] = "like",
    organisations: Literal["known", "invented"] = "invented",
    country: str = "",
    max_days: int = 1096,
    keep_weekday: bool = False,
    order: Literal["mdy", "dmy"] = "mdy",
    kb: str = "",
) -> str:
    """Write another person, place, organisation, date or number of the same kind; a tag where none is known.

    All mentions of one entity follow the same pseudonym ("Sarah Connor", "Ms Connor", "S. C.", s.connor@...), what is
    related moves along (a capital with its country, a club with its town, relatives share their new family name), and
    no pseudonym is a word of the document. A method of P4 (NER-PS), offline and keyed.

    Args:
        names: ``like`` keeps gender and language of origin; ``neutral`` gives names of either gender.
        organisations: ``invented`` never takes the name of a real firm; ``known`` takes real ones of the same industry
            and country where it can.
        country: moves the document's country to this one (ISO 3166, two capitals), with all that belongs to it.
        max_days: the most that dates move either way, 1 to 36,500; they never move by 0. From 732 on no date keeps its
            year.
        keep_weekday: move dates by whole weeks only.
        order: how ``03/04/2020`` is read, where no other date of the document shows it.
        kb: file of another knowledge base; see ``allonym kb``.
    """
    return render_mention(mention, setting, typed("Mapping[str, Renderer]", setting.prepared["pseudonym"]))


# Collisions


_MOVING = frozenset({"DATE_TIME", "AGE", "NUMERIC"})
_ARTICLE = re.compile(r"\A(?:the|an?)\s+(?=\S)")
_SHORT = 3  # letters from which on case does not tell words apart
_FEW_DIGITS = 2  # digits of a number that may occur elsewhere


def avoid_collisions(cast: Cast, targets: Sequence[Wanted], renderers: Mapping[str, Renderer]) -> dict[str, Renderer]:
    """Return renderers that give None where they would write another entity's pseudonym or one that the text has.

    Likewise where a pseudonym keeps a word of its name.

    Args:
        cast: of the document.
        targets: all entities that get a pseudonym, in reading order.
        renderers: entity key to what renders its surfaces.
    """
    surroundings = _Surroundings(cast, targets)
    results: dict[str, dict[str, str | None]] = {t.entity.key: {} for t in targets if t.entity.key in renderers}
    labels = {t.entity.key: t.entity.label for t in targets}
    owners: dict[str, tuple[str, str]] = {}  # pseudonym -> key of its entity, and the original
    refused = 0

    def is_free(new: str, key: str, original: str, family: str) -> bool:
        plain = _normalise_pseudonym(new)
        owner = owners.get(plain, (key, original))
        if plain == original:
            return True
        if find_kept_names(original, plain, labels[key], family, cast.kb):
            return False
        return (owner[0] == key or owner[1] == original) and not surroundings.occurs_in_document(new, key, family)

    mentions = [(span.start, t, s) for t in targets for span, s in zip(t.entity.spans, t.surfaces, strict=True)]
    for _, target, surface in sorted(mentions, key=itemgetter(0)):
        key = target.entity.key
        if key not in results or surface in results[key]:
            continue
        original = _normalise_pseudonym(surface)
        family = cast.get_label_family(target)
        new = renderers[key](surface)
        if new and not is_free(new, key, original, family):
            new = cast.alternatives[key](surface) if key in cast.alternatives else None
            new = new if new and is_free(new, key, original, family) else None
            refused += 1
        if new:
            owners.setdefault(_normalise_pseudonym(new), (key, original))
        results[key][surface] = new
    if refused:
        remark = "substitutes were another's or stood in the text: a further choice or a tag instead"
        cast.remarks.append(f"{refused} {remark}")
    return {key: partial(_look_up_or_render, results[key], render) for key, render in renderers.items()}


def _look_up_or_render(results: Mapping[str, str | None], render: Renderer, surface: str) -> str | None:
    return results[surface] if surface in results else render(surface)


def _normalise_pseudonym(text: str) -> str:
    """Return a pseudonym without case and without an article before it, as pseudonyms are compared."""
    return _ARTICLE.sub("", text.casefold())


class _Surroundings:
    """What stands in a document: its text outside of what is replaced, and the names of other entities."""

    def __init__(self, cast: Cast, targets: Sequence[Wanted]) -> None:
        self._cast = cast
        self._targets = targets

    @cached_property
    def _plain_outside_text(self) -> str:
        return normalize_surface(self._cast.ledger.outside_text)

    @cached_property
    def _keys_by_name(self) -> dict[str, str]:
        """Map each name of the document, in plain form, to the key of its entity; empty: several have it."""
        out: dict[str, str] = {}
        for target in self._targets:
            key = target.entity.key
            if self._cast.get_label_family(target) not in _MOVING:
                for name in {normalize_surface(s) for s in target.surfaces}:
                    out[name] = key if out.get(name, key) == key else ""
        return out

    def occurs_in_document(self, new: str, key: str, family: str) -> bool:
        """Whether a pseudonym for ``key`` occurs in the document.

        Args:
            new: the pseudonym.
            key: of the entity that it is for.
            family: of its label; dates, ages and numbers may equal others of the document.
        """
        if not self._cast.ledger.text_has_words(find_plain_words(new)):
            return False
        letters = sum(map(str.isalpha, new))
        if not letters and sum(map(str.isdigit, new)) <= _FEW_DIGITS:
            return False
        # March is no march, and A no article.
        cased = letters < _SHORT or family == "DATE_TIME"
        outside = self._cast.ledger.outside_text
        text, phrase = (outside, new) if cased else (self._plain_outside_text, normalize_surface(new))
        if _has_phrase(text, phrase):
            return True
        return family not in _MOVING and self._keys_by_name.get(normalize_surface(new), key) != key


def _has_phrase(text: str, phrase: str) -> bool:
    """Whether a text holds a phrase with no letter or digit at either end of it."""
    start = text.find(phrase)
    while start >= 0:
        end = start + len(phrase)
        if not (text[start - 1 : start] if start else "").isalnum() and not text[end : end + 1].isalnum():
            return True
        start = text.find(phrase, start + 1)
    return False


_DIGITS = re.compile(r"\d+")
_YEAR_DIGITS, _AGE_DIGITS, _MOST_DIGITS = 4, 3, 12
_FILE = "permitted_words.toml"


def _find_folded_words(text: str) -> list[str]:
    return LETTERS.findall(normalize_surface(text))


@cache
def _list_time_words() -> frozenset[str]:
    calendar = {w for kind in ("month", "weekday", "season") for w in _find_folded_words(join_calendar_names(kind))}
    signs = read_toml(_FILE)["signs"]
    return frozenset({*read_word_set("words", file=_FILE), *read_word_set("times", file=_FILE), *calendar, *signs})


def has_only_time_words(text: str) -> bool:
    """Whether all words of a text are those of times, dates and durations."""
    permitted = _list_time_words()
    return all(w in permitted or (not w.isascii() and permitted.issuperset(w)) for w in _find_folded_words(text))


def is_permitted_time(text: str) -> bool:
    """Whether a text may stay as it is: only words of times, and numbers as short as those of times."""
    sizes = [len(run) for run in _DIGITS.findall(text)]
    return has_only_time_words(text) and max(sizes, default=0) <= _YEAR_DIGITS and sum(sizes) <= _MOST_DIGITS


def is_permitted_age(text: str) -> bool:
    """Whether all words of a text are those of ages, and its numbers have no more than three digits."""
    # An age names no month, but may name June.
    permitted = read_word_set("words", file=_FILE) | read_word_set("ages", file=_FILE)
    has_age = all(len(run) <= _AGE_DIGITS for run in _DIGITS.findall(text))
    return has_age and permitted.issuperset(_find_folded_words(text))


@cache
def _list_title_words() -> frozenset[str]:
    lists = load_name_tables()
    joining = ("and", "und", "et", "y", "e", "i", "of")
    titles = (*lists.titles, *lists.suffixes, *lists.degrees, *lists.joined)
    return frozenset((*titles, *joining, *read_word_set("titles", file=_FILE)))


def is_permitted_title(text: str) -> bool:
    """Whether a text consists of forms of address, offices, degrees and what may stand behind a name."""
    parts = [w for w in re.split(r"[\s,/&\-]+", re.sub(r"[.'’]", "", normalize_surface(text))) if w]
    return bool(parts) and _list_title_words().issuperset(parts)


# Rendering

_MAY_STAY: Mapping[str, Callable[[str], bool]] = {"DATE_TIME": is_permitted_time, "AGE": is_permitted_age}
"""Families of which some surfaces stay as they are, and which: a weekday or ``yesterday`` says nothing by itself."""


def render_mention(mention: Mention, setting: Setting, renderers: Mapping[str, Renderer]) -> str:
    """Return a mention's pseudonym by its entity's renderer, or the tag where it has none or nothing changes."""
    render = renderers.get(mention.entity.key)
    out = render(normalize("NFC", mention.text)) if render is not None else None
    if not out or not out.strip():
        return mention.tag
    if out.casefold() == normalize("NFC", mention.text).casefold():
        label = mention.entity.label  # a title such as "Dr" is its own pseudonym
        may_stay = is_permitted_title if label == "TITLE" else _MAY_STAY.get(setting.policy.taxonomy.get_family(label))
        return mention.text if may_stay is not None and may_stay(mention.text) else mention.tag
    return out
