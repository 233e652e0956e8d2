"""Realistic pseudonyms: other people, places, organizations, dates and numbers of the same kind.

Who gets what is decided once per document, family by family, so that what belongs together moves together: places
first, then organizations (a club follows its town), people, their addresses, then things, dates and numbers. In the
end :mod:`allonym.replace.apart` sees to it that no two entities share a substitute. For what nothing fits, the policy's
tag takes its place. The same key, scope and entity lead to the same first choice in every
document; see :mod:`allonym.replace.cast`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from typing import Any, Literal, cast
from unicodedata import normalize

from allonym.errors import PolicyError
from allonym.kb import KnowledgeBase
from allonym.replace.apart import kept_apart
from allonym.replace.cast import Cast, Renderer, by_family
from allonym.replace.mention import Mention, Setting, Wanted, declare_surrogates, traits
from allonym.replace.staying import is_age, is_time, is_title

ORDER = (
    ("places", ("LOCATION",)),
    ("organisations", ("ORGANIZATION",)),
    ("people", ("PERSON",)),
    ("addresses", ("EMAIL_ADDRESS", "ONLINE_ID")),
    (
        "things",
        ("ORIGIN", "LANGUAGE", "OCCUPATION", "PRODUCT", "EVENT", "WORK_OF_ART", "AWARD", "LAW"),
    ),
    ("moving", ("DATE_TIME", "AGE")),
    (
        "identifiers",
        (
            *("PHONE_NUMBER", "GENERIC_ID", "DEVICE_ID", "VEHICLE_ID", "GOVERNMENT_ID", "FINANCIAL_ID", "SECRET"),
            *("NUMERIC", "MEDICAL_TERM"),
        ),
    ),
)
"""Which module finds substitutes for which families, in the order in which they are asked."""

_MAY_STAY: Mapping[str, Callable[[str], bool]] = {"DATE_TIME": is_time, "AGE": is_age}
"""Families of which some surfaces stay as they are, and which: a weekday or ``yesterday`` says nothing by itself."""


def prepare(wanted: Sequence[Wanted], setting: Setting, remarks: list[str]) -> dict[str, Renderer]:
    """Who plays whom in this document: entity key to what renders its surfaces.

    Args:
        wanted: the entities, in reading order.
        setting: document, policy, key, scope, and the vault's book where there is one.
        remarks: filled with what a reader of the plan should know; no text of the document.

    Raises:
        UsageError: there is no key.
        PolicyError: rules name different knowledge bases, or a country that theirs does not know.
        KnowledgeBaseError: the knowledge base cannot be read.
    """
    # By the policy, not by what this document happens to hold: it would be refused for some documents only.
    rules = (setting.policy.default, *setting.policy.rules.values())
    options = (*(r.options for r in rules if r.operator == "pseudonym"), *(w.options for w in wanted))
    named = sorted({str(o["kb"]) for o in options if o.get("kb")})
    if len(named) > 1:
        raise PolicyError(
            f"operator 'pseudonym': all rules of a policy must name the same knowledge base, got {', '.join(named)}"
        )
    kb = KnowledgeBase.open(named[0] if named else None)
    # Letters with their accents apart would be read as two.
    wanted = [replace(w, surfaces=tuple(normalize("NFC", s) for s in w.surfaces)) for w in wanted]
    for code in {str(w.options.get("country", "")) for w in wanted} - {""}:
        if not any(item.country == code for item in kb.pool("country")):
            raise PolicyError(f"operator 'pseudonym': the knowledge base knows no country {code!r} to move to")
    cast = Cast.of(setting, kb, remarks, wanted)
    families = by_family(wanted, setting)
    out: dict[str, Renderer] = {}
    for module, names in ORDER:
        mine = [w for name in names for w in families.get(name, ())]
        if mine:
            mine.sort(key=lambda w: w.entity.spans[0])
            out |= import_module(f"allonym.replace.{module}").recast(cast, mine)
    return kept_apart(cast, wanted, out)


def _check(options: Mapping[str, Any], where: str) -> None:
    least = 7 if options.get("keep_weekday", False) else 1
    days = options.get("max_days", 365)
    if not least <= days <= 36500:
        raise PolicyError(f"{where}.max_days must be from {least} to 36500 days, got {days!r}")
    country = options.get("country", "")
    if country and not (len(country) == 2 and country.isascii() and country.isalpha() and country.isupper()):
        raise PolicyError(f"{where}.country must be a code of ISO 3166 with two capitals, such as PT, got {country!r}")
    if options.get("kb"):
        KnowledgeBase.open(str(options["kb"]))  # what is missing or damaged is said now, not at the first name


@traits(keyed=True, repeats=True, prepare=prepare, check=_check, grammar=declare_surrogates)
def pseudonym(
    mention: Mention,
    setting: Setting,
    *,
    names: Literal["like", "neutral"] = "like",
    organisations: Literal["known", "invented"] = "known",
    country: str = "",
    max_days: int = 365,
    keep_weekday: bool = False,
    order: Literal["mdy", "dmy"] = "mdy",
    kb: str = "",
) -> str:
    """Another person, place, organization, date or number of the same kind; a tag where none is known.

    All mentions of one entity follow the same substitute ("Sarah Connor", "Ms Connor", "S. C.", s.connor@...), what is
    related moves along (a capital with its country, a club with its town, relatives share their new family name), and
    no substitute is a word of the document. A method of P4 (NER-PS), offline and keyed.

    Args:
        names: ``like`` keeps gender and language of origin; ``neutral`` gives names of either gender.
        organisations: ``known`` takes real ones of the same industry and country where it can, ``invented`` never does.
        country: moves the document's country to this one (ISO 3166, two capitals), with all that belongs to it.
        max_days: the most that dates move either way, 1 to 36,500; they never move by 0.
        keep_weekday: move dates by whole weeks only.
        order: how ``03/04/2020`` is read.
        kb: file of another knowledge base; see ``allonym kb``.
    """
    return played(mention, setting, cast("Mapping[str, Renderer]", setting.prepared["pseudonym"]))


def played(mention: Mention, setting: Setting, players: Mapping[str, Renderer]) -> str:
    """What stands for a mention: its player's rendering, or the tag where there is none or nothing has changed."""
    render = players.get(mention.entity.key)
    out = render(normalize("NFC", mention.text)) if render is not None else None
    if not out or not out.strip():
        return mention.tag
    if out.casefold() == normalize("NFC", mention.text).casefold():
        family = setting.policy.taxonomy.lineage(mention.entity.label)[-1]
        stays = (
            is_title if mention.entity.label == "TITLE" else _MAY_STAY.get(family)
        )  # of a "Dr" the substitute is one
        return mention.text if stays is not None and stays(mention.text) else mention.tag
    return out
