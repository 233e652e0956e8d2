"""P5's wild tags, ``<PERSON "8F3A21C0">``, with a keyed code in place of a plain hash.

P5 writes a hash of the entity into its tags. Whoever holds a list of names can hash them all and look the tags up. Here
the code is an HMAC under a key that the caller keeps, cut short, and checked for collisions in the document and, with a
vault, in its scope.
"""

from __future__ import annotations

import string
from collections.abc import Mapping, Sequence
from typing import Any, cast

from allonym.errors import PolicyError
from allonym.replace.cast import Ledger
from allonym.replace.keyed import subkey
from allonym.replace.mention import Mention, Setting, Wanted, traits

FORMS = {
    "wild": '<{label} "{code}">',
    "brackets": "[{label}:{code}]",
    "braces": "{{{label}:{code}}}",
    "plain": "{label}-{code}",
}
"""Named forms: P5's own; one that JSON and XML leave alone; one that Markdown leaves too; no sign but a hyphen."""


def _template(form: str) -> str:
    return FORMS.get(form, form)


def _check(options: Mapping[str, Any], where: str) -> None:
    length = options.get("length", 8)
    if not 6 <= length <= 16:
        raise PolicyError(f"{where}.length must be from 6 to 16 hexadecimal digits, got {length!r}")
    form = options.get("form", "wild")
    try:
        fields = sorted(n for _, n, _, bang in string.Formatter().parse(_template(form)) if n is not None and not bang)
        shown = _template(form).format(label="LABEL", code="CODE")
    except (ValueError, KeyError, IndexError, AttributeError):
        fields, shown = [], ""
    if fields != ["code", "label"] or shown != shown.strip():
        raise PolicyError(
            f"{where}.form must be one of {', '.join(FORMS)}, or hold {{label}} and {{code}} once each, got {form!r}"
        )


def prepare(wanted: Sequence[Wanted], setting: Setting, remarks: list[str]) -> dict[str, str]:
    """Entity key to code: HMAC-SHA256 in hexadecimal capitals, cut to the rule's length."""
    ledger = Ledger(setting.document.text, subkey(setting.key, "wild_tag", setting.scope), setting.book, remarks)
    out: dict[str, str] = {}
    for one in wanted:
        length = cast(int, one.options.get("length", 8))
        key = one.entity.key
        code = ledger.assign("wild tag", key, lambda n, k=key, s=length: f"{ledger.number('wild tag', k, n):016X}"[:s])  # type: ignore[misc]
        if code is not None:
            out[key] = code
    return out


@traits(keyed=True, prepare=prepare, check=_check)
def wild_tag(mention: Mention, setting: Setting, *, form: str = "wild", length: int = 8) -> str:
    """A tag with the label and a keyed code, ``<PERSON "8F3A21C0">``: the same for all mentions of an entity.

    The same key, scope and entity give the same code in every document. Without the key nobody can look it up.

    Args:
        form: ``wild`` as in P5; ``brackets`` ``[PERSON:8F3A21C0]``, which JSON and XML leave as it is; ``braces``
            ``{PERSON:8F3A21C0}``, which Markdown leaves too; ``plain`` ``PERSON-8F3A21C0``; or a form of your own with
            ``{label}`` and ``{code}``.
        length: hexadecimal digits of the code, 6 to 16. With 8, two of 10,000 entities share one with a chance of 1 %;
            where both stand in one document, or a vault keeps book, the later gets another.
    """
    codes = cast("Mapping[str, str]", setting.prepared["wild_tag"])
    code = codes.get(mention.entity.key)
    return mention.tag if code is None else _template(form).format(label=mention.label, code=code)
