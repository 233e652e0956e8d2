"""P5's wild tags, ``<PERSON "8F3A21C0">``, with a keyed code in place of a plain hash.

P5 writes a hash of the entity into its tags. Whoever has a list of names can hash them all and look the tags up. Here
the code is an HMAC under a key that the caller keeps, cut short, and checked for collisions in the document and, with a
vault, in its scope.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from allonym.errors import PolicyError
from allonym.keys import derive_operator_key
from allonym.replace.cast import Ledger
from allonym.replace.mention import Mention, Setting, Wanted, read_template, traits
from allonym.text.placeholders import Grammar

FORMS = {
    "wild": '<{label} "{code}">',
    "brackets": "[{label}:{code}]",
    "braces": "{{{label}:{code}}}",
    "plain": "{label}-{code}",
}
"""Named forms: P5's own; one that JSON and XML leave alone; one that Markdown leaves too; one without brackets."""


def _check_wild_tag(options: Mapping[str, Any], where: str) -> None:
    length = options.get("length", 8)
    if not 6 <= length <= 16:
        raise PolicyError(f"{where}.length must be from 6 to 16 hexadecimal digits, got {length!r}")
    form = options.get("form", "wild")
    fields, tag = read_template(FORMS.get(form, form), label="LABEL", code="CODE")
    if sorted(fields) != ["code", "label"] or tag != tag.strip():
        raise PolicyError(
            f"{where}.form must be one of {', '.join(FORMS)}, or hold {{label}} and {{code}} once each, got {form!r}"
        )


def _declare_wild_tag_grammar(options: Mapping[str, Any]) -> Grammar:
    form = options.get("form")
    return Grammar((FORMS.get(form, form),) if form else tuple(FORMS.values()), code="[0-9A-F]{6,16}")


def prepare_codes(entities: Sequence[Wanted], setting: Setting, remarks: list[str]) -> dict[str, str]:
    """Entity key to code: HMAC-SHA256 in hexadecimal capitals, cut to the rule's length."""
    ledger = Ledger(
        setting.document.text, derive_operator_key(setting.key, "wild_tag", setting.scope), setting.book, remarks
    )
    codes: dict[str, str] = {}
    for entity in entities:
        length = cast(int, entity.options.get("length", 8))
        key = entity.entity.key

        def draw_code(attempt: int, key: str = key, length: int = length) -> str:
            return f"{ledger.number('wild tag', key, attempt):016X}"[:length]

        code = ledger.assign("wild tag", key, draw_code)
        if code is not None:
            codes[key] = code
    return codes


@traits(keyed=True, prepare=prepare_codes, check=_check_wild_tag, grammar=_declare_wild_tag_grammar)
def wild_tag(mention: Mention, setting: Setting, *, form: str = "wild", length: int = 8) -> str:
    """Write a tag with the label and a keyed code, ``<PERSON "8F3A21C0">``, the same for all mentions of an entity.

    The same key, scope and entity give the same code in every document. Without the key nobody can look it up.

    Args:
        form: ``wild`` as in P5; ``brackets``, ``[PERSON:8F3A21C0]``, which JSON and XML leave as it is; ``braces``,
            ``{PERSON:8F3A21C0}``, which Markdown leaves too; ``plain``, ``PERSON-8F3A21C0``; or your own form with
            ``{label}`` and ``{code}``.
        length: hexadecimal digits of the code, 6 to 16. With 8, two of 10,000 entities share one with a probability of
            1 %; where both are in one document, or a vault keeps a book, the later one gets another code.
    """
    codes = cast("Mapping[str, str]", setting.prepared["wild_tag"])
    code = codes.get(mention.entity.key)
    return mention.tag if code is None else FORMS.get(form, form).format(label=mention.label, code=code)
