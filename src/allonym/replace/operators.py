"""Operators that write placeholders: keep, suppress, tag, sanitize and mask; with a key hash, encrypt and wild_tag.

Each operator that needs a key has one of its own, which :mod:`allonym.keys` derives from the secret. P5 writes a plain
hash of the entity into its wild tags, ``<PERSON "8F3A21C0">``. Whoever has a list of names can hash them all and
look the tags up. Here the code is an HMAC, cut short, and checked for collisions in the document and, with a vault, in
its scope.
"""

from __future__ import annotations

import hmac
import re
import unicodedata
from base64 import b32decode, b32encode
from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, cast

from allonym.errors import PolicyError, UnknownNameError
from allonym.keys import derive_operator_key
from allonym.protocol import (
    TAG_NAMES,
    Mention,
    Setting,
    Wanted,
    check_range,
    check_tag_style,
    parse_and_fill_template,
    traits,
)
from allonym.replace.cast import Ledger
from allonym.text.placeholders import Grammar

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESSIV


@traits(keeps=True, repeats=True)
def keep(mention: Mention, setting: Setting) -> str:
    """Leave the text as it is. Nothing is kept unless a rule says so."""
    return mention.text


def _declare_suppress_grammar(options: Mapping[str, Any]) -> Grammar:
    replacement = str(options.get("replacement", "")).strip()
    return Grammar((replacement.replace("{", "{{").replace("}", "}}"),) if replacement else ())


@traits(repeats=True, lossy=True, grammar=_declare_suppress_grammar)
def suppress(mention: Mention, setting: Setting, *, replacement: str = "") -> str:
    """Remove the text, or put the same words in place of every mention.

    Args:
        replacement: the words; where it is empty, a space that would be left over goes as well.
    """
    return replacement


def _check_tag_options(options: Mapping[str, Any], where: str) -> None:
    if "style" in options:
        check_tag_style(options["style"], f"{where}.style")
    names = options.get("names")
    if names is not None and names not in TAG_NAMES:
        raise UnknownNameError("scheme", names, TAG_NAMES[1:], f"{where}.names")


def _declare_tag_grammar(options: Mapping[str, Any]) -> Grammar:
    style = options.get("style")
    return Grammar(
        (style,) if style else ("[{label}_{n}{form}]", "[{label} {n}{form}]", "[{label}]", "<{label} {n}{form}>")
    )


@traits(repeats=True, check=_check_tag_options, grammar=_declare_tag_grammar)
def tag(mention: Mention, setting: Setting, *, style: str | None = None, names: str | None = None) -> str:
    """Write a tag with the label and the entity's number, such as ``[PERSON_1]``.

    Args:
        style: form of this label's tags, with ``{label}`` and ``{n}``; by default the policy's. ``{form}`` behind
            ``{n}`` tells a part of a name where the text has the whole name too: ``<PERSON 1.given>``, ``.family``,
            and ``.short`` of organisations and places, so that each comes back in its own form.
        names: scheme or language whose name for the label is written; by default the policy's.
    """
    return mention.tag


@traits(repeats=True, style="{label}_{n}", check=_check_tag_options, grammar=lambda options: Grammar(("{label}_{n}",)))
def sanitize(mention: Mention, setting: Setting, *, names: str | None = None) -> str:
    """Write the label and the entity's number without brackets, ``PERSON_1``: the placeholders of P4 (NER-S).

    Args:
        names: scheme whose name for the label is written; by default the policy's.
    """
    return mention.tag


def _check_mask_options(options: Mapping[str, Any], where: str) -> None:
    char = options.get("char", "*")
    if len(char) != 1 or char.isalnum() or char.isspace() or not char.isprintable():
        raise PolicyError(f"{where}.char must be one character that is no letter, digit or space, got {char!r}")
    for name in ("keep_first", "keep_last"):
        if options.get(name, 0) < 0:
            raise PolicyError(f"{where}.{name} must be 0 or more, got {options[name]!r}")


def _declare_mask_grammar(options: Mapping[str, Any]) -> Grammar:
    return Grammar(signs=options.get("char", "*"))


@traits(repeats=True, lossy=True, check=_check_mask_options, grammar=_declare_mask_grammar)
def mask(mention: Mention, setting: Setting, *, char: str = "*", keep_first: int = 0, keep_last: int = 0) -> str:
    """Cover letters and digits and keep the shape: ``4111-1111`` becomes ``****-****``.

    Args:
        char: the sign that covers a letter or a digit.
        keep_first: letters and digits left readable at the start.
        keep_last: the same at the end. At most half of all letters and digits stay readable; the end gives way first.
    """
    text = mention.text
    places = [i for i, c in enumerate(text) if c.isalnum()]
    if not places:
        return "".join(c if c.isspace() else char for c in text)
    most = len(places) // 2
    first = min(keep_first, most)
    last = min(keep_last, most - first)
    covered = set(places[first : len(places) - last])
    # Marks and joiners that belong to a letter would tell the letter, so they go too.
    masked = (char if i in covered else c for i, c in enumerate(text))
    return "".join(c for c in masked if c.isascii() or c == char or unicodedata.category(c)[0] not in "MC")


MARK = ":e1:"
_BASE32 = "[A-Za-z2-7]{26,}"
_TOKEN = rf"\[(\w{{1,64}}):[eE]1:({_BASE32})\]"
TOKEN = re.compile(_TOKEN)
"""Everything that looks like an encrypted mention: ``[LABEL:e1:BASE32]``. Case does not matter when it is read."""

LOOSE_TOKEN = re.compile(_TOKEN + r"|\w{1,64}\s{0,3}:\s{0,3}[eE]1\s{0,3}:")
"""The same, and the beginning of one that lost its brackets, which restoring reads as well."""

_NOT_WORD = re.compile(r"\W+")
_BLOCK = 16


_check_hash = partial(check_range, name="length", default=16, low=8, high=64, unit=" hexadecimal digits")


@traits(keyed=True, check=_check_hash, grammar=lambda options: Grammar(("[{label}:{code}]",), code="[0-9a-f]{8,64}"))
def hash(mention: Mention, setting: Setting, *, length: int = 16) -> str:
    """Write a keyed fingerprint, ``[PERSON:5f0c...]``: HMAC-SHA256 of the entity's key and family.

    The same name, key and scope give the same fingerprint in every document; without the key nobody can look it up.

    Args:
        length: hexadecimal digits shown, 8 to 64.
    """
    family = setting.policy.taxonomy.get_family(mention.entity.label)
    message = f"{family}\0{mention.entity.key}".encode("utf-8", "surrogatepass")
    value = hmac.digest(derive_operator_key(setting.key, "hash", setting.scope), message, "sha256").hex()
    return f"[{mention.label}:{value[:length]}]"


def _declare_encrypt_grammar(options: Mapping[str, Any]) -> Grammar:
    return Grammar(("[{label}:{code}]",), code=f"[eE]1:{_BASE32}", specific=True)


@traits(keyed=True, exact=True, grammar=_declare_encrypt_grammar)
def encrypt(mention: Mention, setting: Setting) -> str:
    """Write the text itself, encrypted: ``[PERSON:e1:BASE32]``. The key alone restores it.

    AES-256-SIV (RFC 5297): the same text, label and key give the same token; a changed token is refused. Label and
    version are authenticated. Texts are padded to a multiple of 16 bytes, so that a token tells little of its length.
    """
    return encrypt_text(mention.text, mention.label, setting.key)


def encrypt_text(text: str, label: str, key: bytes | str | None) -> str:
    """Encrypt a text into a token, in which ``label`` is readable."""
    name = _NOT_WORD.sub("_", label)[:64] or "_"
    plain = text.encode("utf-8", "surrogatepass") + b"\x80"
    plain += bytes(-len(plain) % _BLOCK)
    sealed = _open_cipher(derive_operator_key(key, "encrypt")).encrypt(plain, _make_associated_data(name))
    return f"[{name}{MARK}{b32encode(sealed).decode().rstrip('=')}]"


def decrypt_token(token: re.Match[str], key: bytes | str) -> str | None:
    """Decrypt a match of :data:`TOKEN`; None where the key does not fit or the token was changed."""
    from cryptography.exceptions import InvalidTag

    code = token[2].upper()
    try:
        sealed = b32decode(code + "=" * (-len(code) % 8))
        plain = _open_cipher(derive_operator_key(key, "encrypt")).decrypt(sealed, _make_associated_data(token[1]))
        text, mark, padding = plain.rpartition(b"\x80")
        return text.decode("utf-8", "surrogatepass") if mark and not padding.strip(b"\0") else None
    except (InvalidTag, ValueError):
        return None


def _make_associated_data(name: str) -> list[bytes]:
    return [b"allonym:e1", name.upper().encode("utf-8", "surrogatepass")]


@lru_cache(maxsize=8)
def _open_cipher(key: bytes) -> AESSIV:
    from cryptography.hazmat.primitives.ciphers.aead import AESSIV

    return AESSIV(key)


FORMS = {
    "wild": '<{label} "{code}">',
    "brackets": "[{label}:{code}]",
    "braces": "{{{label}:{code}}}",
    "plain": "{label}-{code}",
}
"""Named forms: P5's own; one that JSON and XML leave alone; one that Markdown leaves too; one without brackets."""


def _check_wild_tag_options(options: Mapping[str, Any], where: str) -> None:
    check_range(options, where, "length", 8, 6, 16, " hexadecimal digits")
    form = options.get("form", "wild")
    fields, tag = parse_and_fill_template(FORMS.get(form, form), label="LABEL", code="CODE")
    if sorted(fields) != ["code", "label"] or tag != tag.strip():
        required = f"one of {', '.join(FORMS)}, or hold {{label}} and {{code}} once each"
        raise PolicyError(f"{where}.form must be {required}, got {form!r}")


def _declare_wild_tag_grammar(options: Mapping[str, Any]) -> Grammar:
    form = options.get("form")
    return Grammar((FORMS.get(form, form),) if form else tuple(FORMS.values()), code="[0-9A-F]{6,17}")


def add_check_digit(code: str) -> str:
    """Return a code of hexadecimal digits with its check digit: Luhn's, for base 16.

    >>> add_check_digit("8F3A21C0")
    '8F3A21C01'
    """
    doubled = (int(c, 16) * (2 - i % 2) for i, c in enumerate(reversed(code)))
    return f"{code}{-sum(n // 16 + n % 16 for n in doubled) % 16:X}"


def list_corrected_codes(code: str) -> frozenset[str]:
    """Return the codes from which one lost, added or changed digit leads to this one; none if its check digit fits.

    A changed code is never another entity's, since it would not fit its check digit.
    """
    weighed = [(n, 2 * n // 16 + 2 * n % 16) for n in (int(c, 16) for c in code)]  # once, and doubled
    plain, doubled = [0], [0]  # sums of the digits from each place on, the last one once or doubled
    for i, pair in enumerate(reversed(weighed)):
        plain.append(plain[-1] + pair[i % 2])
        doubled.append(doubled[-1] + pair[1 - i % 2])
    if plain[-1] % 16 == 0:
        return frozenset()
    out: set[str] = set()
    for right in range(len(code) + 1):
        head, tail, is_odd = code[: len(code) - right], code[len(code) - right :], right % 2
        out.add(head + _find_digit(plain[right] + doubled[-1] - doubled[right], is_odd) + tail)
        if head:
            out.add(head[:-1] + _find_digit(plain[-1] - plain[right + 1] + plain[right], is_odd) + tail)
            if (plain[right] + doubled[-1] - doubled[right + 1]) % 16 == 0:
                out.add(head[:-1] + tail)
    return frozenset(out)


def _find_digit(total: int, is_doubled: int) -> str:
    """Return the digit that makes a code fit whose other digits have this sum."""
    n = -total % 16
    return f"{n // 2 + 8 * (n % 2) if is_doubled else n:X}"


def make_wild_tag_codes(targets: Sequence[Wanted], setting: Setting, remarks: list[str]) -> dict[str, str]:
    """Return entity key to code: HMAC-SHA256 in hexadecimal capitals, cut to the rule's length, and a check digit."""
    secret = derive_operator_key(setting.key, "wild_tag", setting.scope)
    ledger = Ledger(setting.document.text, secret, setting.book, remarks)
    codes: dict[str, str] = {}
    for target in targets:
        key, length = target.entity.key, cast(int, target.options.get("length", 8))

        def draw_code(attempt: int, drawn: str = key + target.entity.salt, length: int = length) -> str:
            return add_check_digit(f"{ledger.draw_number('wild tag', drawn, attempt):016X}"[:length])

        code = ledger.assign("wild tag", key, draw_code)
        if code is not None:
            codes[key] = code
    return codes


@traits(keyed=True, prepare=make_wild_tag_codes, check=_check_wild_tag_options, grammar=_declare_wild_tag_grammar)
def wild_tag(mention: Mention, setting: Setting, *, form: str = "wild", length: int = 8) -> str:
    """Write a tag with the label and a keyed code, ``<PERSON "8F3A21C01">``, the same for all mentions of an entity.

    The last digit of the code checks the others, so that restoring corrects one that is lost or changed. The same key,
    scope and entity give the same code in every document. Without the key nobody can look it up.

    Args:
        form: ``wild`` as in P5; ``brackets``, ``[PERSON:8F3A21C01]``, which JSON and XML leave as it is; ``braces``,
            ``{PERSON:8F3A21C01}``, which Markdown leaves too; ``plain``, ``PERSON-8F3A21C01``; or your own form with
            ``{label}`` and ``{code}``.
        length: hexadecimal digits of the code before its check digit, 6 to 16. With 8, two of 10,000 entities share
            one with a probability of 1 %; where both are in one document, or a vault keeps a book, the later one gets
            another code.
    """
    codes = cast("Mapping[str, str]", setting.prepared["wild_tag"])
    code = codes.get(mention.entity.key)
    return mention.tag if code is None else FORMS.get(form, form).format(label=mention.label, code=code)
