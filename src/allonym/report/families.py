"""Families of labels that share a colour, and labels in words.

The workbench has the same families and colours (``server/static/js/families.js``, ``server/static/css/base.css``); a
test compares them.
"""

from __future__ import annotations

from allonym.labels import TAXONOMY, Taxonomy

ROOTS = {
    "person": ("PERSON", "PRONOUN", "SPELLED_WORD"),
    "organization": ("ORGANIZATION", "PRODUCT", "TRADE_UNION"),
    "place": ("LOCATION",),
    "time": ("DATE_TIME",),
    "contact": ("EMAIL_ADDRESS", "PHONE_NUMBER", "ONLINE_ID"),
    "official": ("GOVERNMENT_ID", "GENERIC_ID", "DEVICE_ID", "VEHICLE_ID"),
    "finance": ("FINANCIAL_ID", "NUMERIC"),
    "trait": (
        "ORIGIN",
        "GENDER",
        "SEXUAL_ORIENTATION",
        "FAMILY_RELATION",
        "MARITAL_STATUS",
        "AGE",
        "OCCUPATION",
        "IMMIGRATION_STATUS",
        "LANGUAGE",
    ),
    "health": ("MEDICAL_TERM",),
    "secret": ("SECRET",),
    "other": (),
}
"""Family to the labels that it has, with all below them; ``other`` has the rest."""

FAMILIES = tuple(ROOTS)
_FAMILY_OF = {label: name for name, labels in ROOTS.items() for label in labels}
_SHORT = frozenset("ID IP URL IBAN SSN VIN UUID US UK DE API MAC IMEI IMSI PIN CVV VAT NHS AWS SWIFT HTTP ABA".split())


def find_family(label: str, taxonomy: Taxonomy = TAXONOMY) -> str:
    """Return the family of a label; ``other`` for an unknown one.

    >>> family("US_SSN")
    'official'
    """
    return next((_FAMILY_OF[name] for name in taxonomy.lineage(label) if name in _FAMILY_OF), "other")


def format_label(label: str) -> str:
    """Return the name of a label for people.

    >>> readable("EMAIL_ADDRESS"), readable("US_SSN")
    ('Email address', 'US SSN')
    """
    words = label.split("_")
    parts = [w if w in _SHORT or (i == 0 and len(w) == 2) else w.lower() for i, w in enumerate(words)]
    joined = " ".join(parts)
    return joined[:1].upper() + joined[1:]
