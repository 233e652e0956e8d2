"""Pseudonyms of numbers and codes: other letters and digits of the same format, that pass the same checks.

- Grouping, separators, case and script stay as they were; the same number gets the same substitute however it is
  grouped, spoken or shortened to its last digits.
- Telephone numbers and payment cards come from ranges that are reserved for tests and films, social security numbers
  of the United States from areas that are never given out (so that the rule for them does not find the substitute),
  hardware addresses from the block for documentation. For the others no such range exists: a substitute that passes a
  country's check may by chance be somebody's number.
- A birth date inside a national identifier becomes another one, up to three years away; the sex that some tell stays.
- Passwords, keys and tokens keep their length, alphabet and known prefix. A private key becomes a tag.
- Amounts, percentages, counts and ranks become tags: another amount would tell something false. So do numbers of
  fewer than five digits that nothing names, and diagnoses other than by their code.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from allonym.replace import payments, phones
from allonym.replace.cast import Cast, Renderer
from allonym.replace.digits import Surface, read
from allonym.replace.mention import Wanted
from allonym.replace.shapes import ANY, Draws, drawn, shape_of

LEAST_TAIL = 3
"""Characters that a shortened number has at least."""
_TAILS = (LEAST_TAIL, 4, 6, 8, 12)  # lengths of ends by which a number is looked up
LEAST_NUMBER = 5
"""Digits of a number that is taken for a code though nothing names it."""

_FAMILIES = frozenset(
    ("PHONE_NUMBER", "GENERIC_ID", "DEVICE_ID", "VEHICLE_ID", "GOVERNMENT_ID", "FINANCIAL_ID", "SECRET", "NUMERIC")
)
_DIAGNOSES = frozenset(("ICD9_CODE", "ICD10_CODE"))
_AMOUNT = re.compile(r"[.,'’%$€£]")

# What a kind of secret begins with, and the names of the fields of a connection string.
_KEPT = re.compile(
    r"^(?:sk-(?:ant-|proj-|live-|test-|or-v1-)?|[spr]k_(?:live|test)_|whsec_|gh[pousr]_|github_pat_|glpat-|xox[a-z]-"
    r"|xapp-\d-|AIza|ya29\.|GOCSPX-|SG\.|AC(?=[0-9a-f]{16})|SK(?=[0-9a-f]{16})|key-|npm_|pypi-|hf_|dop_v1_"
    r"|shp(?:at|ss|ca|pa)_|sq0(?:atp|csp)-|EAA|nvapi-|r8_|lin_api_|PMAK-|dckr_pat_|rubygems_|tskey-|xkeysib-"
    r"|A(?:KIA|SIA|GPA|IDA|ROA|NPA|NVA|BIA|CCA)(?=[A-Z2-7]{16})|\$[0-9a-z]+\$(?:[0-9]{2}\$)?|[A-Za-z][\w+.\-]*://)"
    r"|(?:^|(?<=\.))eyJ|(?:^|(?<=;))[^;=]+="
)
_RUN = re.compile(r"[A-Za-z0-9]+")


@dataclass(frozen=True, slots=True)
class _Code:
    """One entity: how it is written in full, and what stands for that."""

    whole: Surface
    lineage: tuple[str, ...]
    one: Wanted = field(repr=False)

    @property
    def label(self) -> str:
        return self.lineage[0]

    @property
    def family(self) -> str:
        return self.lineage[-1]


def recast(cast: Cast, wanted: Sequence[Wanted]) -> dict[str, Renderer]:
    """Substitutes for numbers and codes.

    Args:
        cast: of the document.
        wanted: entities in reading order; those of other families are passed over.

    Returns:
        Entity key to what renders its surfaces. An entity that is to become a tag is missing, or rendered as None.
    """
    codes: list[_Code] = []
    for one in wanted:
        code = _read(cast, one)
        if code is not None:
            codes.append(code)
    desk = _Desk(cast, frozenset(code.whole.code for code in codes))
    codes.sort(key=lambda code: -len(code.whole.code))  # what is shortened follows what is written in full
    return {code.one.entity.key: desk.renderer(code) for code in codes}


def _read(cast: Cast, one: Wanted) -> _Code | None:
    lineage = cast.setting.policy.taxonomy.lineage(one.entity.label)
    label, family = lineage[0], lineage[-1]
    if family not in _FAMILIES and not _DIAGNOSES.intersection(lineage):
        return None
    if label == "PRIVATE_KEY" or (family == "NUMERIC" and label != "NUMERIC"):
        return None
    if family == "SECRET":
        whole = read(max(one.surfaces, key=len), spoken=False)
        return _Code(whole, lineage, one) if whole.slots else None
    whole = max((read(text) for text in one.surfaces), key=lambda found: len(found.code))
    code = whole.code
    if not any(c.isdigit() for c in code) and (not code or any(c.islower() for c in whole.text)):
        return None
    if label == "NUMERIC" and (len(code) < LEAST_TAIL or not code.isdigit() or _AMOUNT.search(whole.text)):
        return None
    return _Code(whole, lineage, one)


class _Desk:
    """Gives out substitutes in one document: a code keeps its own, whatever label and grouping it comes with."""

    def __init__(self, cast: Cast, originals: frozenset[str]) -> None:
        self._cast = cast
        self._originals = originals
        self._given: dict[str, str | None] = {}
        self._by_tail: dict[str, list[tuple[str, str]]] = {}  # ends of some lengths -> originals and substitutes

    def renderer(self, code: _Code) -> Renderer:
        """What renders the surfaces of an entity."""
        if code.family == "SECRET":
            return self._secret
        if code.family == "PHONE_NUMBER":
            return self._phone(code)
        if code.label == "CRYPTO":
            return self._wallet
        if code.label != "NUMERIC" or len(code.whole.code) >= LEAST_NUMBER:
            self._value(code, code.whole)

        def render(text: str) -> str | None:
            surface = read(text)
            new = self._value(code, surface)
            return surface.written(new) if new is not None else None

        return render

    def _value(self, code: _Code, surface: Surface) -> str | None:
        key = surface.code
        if key in self._given:
            return self._given[key]
        new = self._tail(key)
        if new is None and (code.label != "NUMERIC" or len(key) >= LEAST_NUMBER):
            new = self._assign(code.family, key, lambda attempt: self._another(code, surface, attempt))
        return self._give(key, new)

    def _give(self, key: str, new: str | None) -> str | None:
        self._given[key] = new
        if new and len(key) == len(new):
            for size in _TAILS:
                if len(key) > size:
                    self._by_tail.setdefault(key[-size:], []).append((key, new))
        return new

    def _tail(self, key: str) -> str | None:
        """The end of the one substitute whose original ends like this."""
        if len(key) < LEAST_TAIL:
            return None
        size = max(size for size in _TAILS if size <= len(key))
        ends = self._by_tail.get(key[-size:], ())
        found = {new[-len(key) :] for was, new in ends if len(was) > len(key) and was.endswith(key)}
        return found.pop() if len(found) == 1 and key not in found else None

    def _another(self, code: _Code, surface: Surface, attempt: int) -> str | None:
        key = surface.code
        draws = Draws(self._cast.ledger, code.family, key, attempt)
        if code.label == "CREDIT_CARD" and key.isdigit() and len(key) >= 12:
            return payments.card(key, draws)
        if code.label == "IBAN_CODE" and len(key) > 8:
            return payments.iban(key, draws)
        shape = shape_of(surface, code.lineage)
        if code.label == "MAC_ADDRESS" and attempt >= phones.RESERVED_TRIES:
            shape = ANY  # the block for documentation has 256 addresses
        return drawn(surface, shape, draws)

    def _assign(self, kind: str, key: str, another: Callable[[int], str | None]) -> str | None:
        def propose(attempt: int) -> str | None:
            for step in range(8):
                new = another(attempt + 1000 * step)
                if new is None or (new not in self._originals and new != key):
                    return new
            return None

        return self._cast.ledger.assign(kind, key, propose, telling=_characters)

    def _phone(self, code: _Code) -> Renderer:
        policy = self._cast.setting.policy

        def read_phone(text: str) -> tuple[phones.Phone | None, str, str]:
            cut = phones.EXTENSION.search(text)
            start, end = cut.span() if cut else (len(text), len(text))
            return phones.read_phone(text[:start], code.label, policy.language), text[:start], text[start:end]

        def render(text: str) -> str | None:
            was, body, joint = read_phone(text)
            surface = read(body)
            new: str | None = None
            if was is None:
                new = self._local(code, surface)
            elif (given := self._dialled(was)) is not None:
                new = phones.rendered(surface.code, was, given)
            if new is None:
                new = self._value(code, surface)
            if new is None or not joint:
                return surface.written(new) if new is not None else None
            rest = read(text[len(body) + len(joint) :])
            draws = Draws(self._cast.ledger, "extension", f"{surface.code}\0{rest.code}", 0)
            ending = drawn(rest, ANY, draws)
            return surface.written(new) + joint + rest.written(ending) if ending else None

        for text in code.one.surfaces:  # numbers in full are decided before anything is rendered
            was, _, _ = read_phone(text)
            if was is not None:
                self._dialled(was)
        return render

    def _dialled(self, was: phones.Phone) -> str | None:
        """The national number that stands for this one."""

        def another(attempt: int) -> str | None:
            return phones.another(was, Draws(self._cast.ledger, "PHONE_NUMBER", was.key, attempt), attempt)

        if was.digits not in self._given:
            self._give(was.digits, self._assign("PHONE_NUMBER", was.key, another))
        return self._given[was.digits]

    def _local(self, code: _Code, surface: Surface) -> str | None:
        """For a number that nobody could dial from elsewhere: the end of one that stands in full, or a local one."""
        key = surface.code
        if key in self._given:
            return self._given[key]
        if not key.isdigit() or len(key) > 7:
            return None
        new = self._tail(key)
        if new is None:
            new = self._assign(
                "PHONE_NUMBER",
                key,
                lambda attempt: phones.local(key, Draws(self._cast.ledger, "PHONE_NUMBER", key, attempt)),
            )
        return self._give(key, new)

    def _wallet(self, text: str) -> str | None:
        return self._assign(
            "FINANCIAL_ID",
            text,
            lambda attempt: payments.wallet(text, Draws(self._cast.ledger, "FINANCIAL_ID", text, attempt)),
        )

    def _secret(self, text: str) -> str | None:
        return self._assign("SECRET", text, lambda attempt: _secret(text, self._cast, attempt))


def _characters(text: str) -> str:
    return "".join(c for c in text if c.isalnum())


def _secret(text: str, cast: Cast, attempt: int) -> str | None:
    draws = Draws(cast.ledger, "SECRET", text, attempt)
    kept = {i for match in _KEPT.finditer(text) for i in range(*match.span())}
    out = list(text)
    for run in _RUN.finditer(text):
        for i in range(*run.span()):
            if i not in kept:
                out[i] = draws.pick(_alphabet(run[0], text[i]))
    for i, c in enumerate(text):
        if not c.isascii() and c.isalpha():
            letter = draws.pick("abcdefghijklmnopqrstuvwxyz")
            out[i] = letter.upper() if c.isupper() else letter
    return "".join(out) if "".join(out) != text else None


def _alphabet(run: str, char: str) -> str:
    """What may stand for a character: a digit for a digit, a letter of the same case for a letter.

    In a long run of hexadecimal digits or base 32, only such.
    """
    if len(run) >= 12 and set(run) <= set("0123456789abcdefABCDEF") and not run.isdigit():
        digits, letters = "0123456789", "abcdef"
    elif len(run) >= 16 and re.fullmatch("[A-Z2-7]+", run):
        digits, letters = "234567", "abcdefghijklmnopqrstuvwxyz"
    else:
        digits, letters = "0123456789", "abcdefghijklmnopqrstuvwxyz"
    return digits if char.isdigit() else letters.upper() if char.isupper() else letters
