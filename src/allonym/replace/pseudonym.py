"""Realistic pseudonyms: other people, places, organizations, dates and numbers of the same kind.

All pseudonyms of a document are chosen once, family by family, so that what belongs together moves together: places
first, then organizations (a club follows its town), people, their addresses, then attributes, dates and numbers. In the
end :mod:`allonym.replace.collisions` makes sure that no two entities share a pseudonym. Where nothing fits, the
policy's tag is written. The same key, scope and entity lead to the same first choice in every document; see
:mod:`allonym.replace.cast`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from typing import Any, Literal, cast
from unicodedata import normalize

from allonym.errors import PolicyError
from allonym.kb import KnowledgeBase
from allonym.replace.cast import Renderer, make_cast
from allonym.replace.collisions import avoid_collisions, is_permitted_age, is_permitted_time, is_permitted_title
from allonym.replace.dates import check_shift_options
from allonym.replace.mention import Mention, Setting, Wanted, declare_surrogate_grammar, traits

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

_MAY_STAY: Mapping[str, Callable[[str], bool]] = {"DATE_TIME": is_permitted_time, "AGE": is_permitted_age}
"""Families of which some surfaces stay as they are, and which: a weekday or ``yesterday`` says nothing by itself."""


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
    for module, families in ORDER:
        members = [t for t in targets if cast.get_label_family(t) in families.split()]
        if members:
            members.sort(key=lambda t: t.entity.spans[0])
            out |= import_module(f"allonym.replace.{module}").make_renderers(cast, members)
    return avoid_collisions(cast, targets, out)


def _check_pseudonym_options(options: Mapping[str, Any], where: str) -> None:
    check_shift_options(options, where)
    country = options.get("country", "")
    if country and not (len(country) == 2 and country.isascii() and country.isalpha() and country.isupper()):
        raise PolicyError(f"{where}.country must be a code of ISO 3166 with two capitals, such as PT, got {country!r}")
    if options.get("kb"):
        KnowledgeBase.open(str(options["kb"]))  # a missing or damaged file is reported now, not at the first name


@traits(
    keyed=True,
    repeats=True,
    prepare=make_renderers,
    check=_check_pseudonym_options,
    grammar=declare_surrogate_grammar,
)
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
    """Write another person, place, organization, date or number of the same kind; a tag where none is known.

    All mentions of one entity follow the same pseudonym ("Sarah Connor", "Ms Connor", "S. C.", s.connor@...), what is
    related moves along (a capital with its country, a club with its town, relatives share their new family name), and
    no pseudonym is a word of the document. A method of P4 (NER-PS), offline and keyed.

    Args:
        names: ``like`` keeps gender and language of origin; ``neutral`` gives names of either gender.
        organisations: ``known`` takes real ones of the same industry and country where it can, ``invented`` never does.
        country: moves the document's country to this one (ISO 3166, two capitals), with all that belongs to it.
        max_days: the most that dates move either way, 1 to 36,500; they never move by 0.
        keep_weekday: move dates by whole weeks only.
        order: how ``03/04/2020`` is read.
        kb: file of another knowledge base; see ``allonym kb``.
    """
    return render_mention(mention, setting, cast("Mapping[str, Renderer]", setting.prepared["pseudonym"]))


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
