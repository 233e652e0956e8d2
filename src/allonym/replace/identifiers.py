"""Pseudonyms of numbers and codes: other letters and digits of the same format, that pass the same checks.

- Grouping, separators, case and script stay as they were; the same number gets the same pseudonym however it is
  grouped, spoken or shortened to its last digits.
- Telephone numbers and payment cards come from ranges that are reserved for tests and films, social security numbers
  of the United States from areas that are never given out (so that the rule for them does not find the pseudonym),
  hardware addresses from the block for documentation. Banks are invented; wallets have no key. For the others no such
  range exists: a pseudonym that passes a country's check may by chance be somebody's number.
- A birth date inside a national identifier becomes another one, up to three years away; the sex that some tell stays.
- Passwords, keys and tokens keep their length, alphabet and known prefix. A private key becomes a tag.
- Amounts, percentages, counts and ranks become tags: another amount would tell something false. So do numbers of
  fewer than five digits that nothing names, and diagnoses other than by their code.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from string import hexdigits

from allonym.checksums.algorithms import BASE58, BECH32, compute_polymod
from allonym.checksums.general import luhn
from allonym.protocol import Wanted
from allonym.replace import phones
from allonym.replace.cast import Cast, Renderer
from allonym.replace.codes import ANY, DIGITS, LETTERS, Code, Draws, draw_shaped_code, find_shape, read_code

LEAST_TAIL = 3
"""Characters that a shortened number has at least."""
_TAILS = (LEAST_TAIL, 4, 6, 8, 12)  # lengths of ends by which a number is looked up
LEAST_NUMBER = 5
"""Digits of a number that is taken for a code though nothing names it."""

_IDS = ("GENERIC_ID", "DEVICE_ID", "VEHICLE_ID", "GOVERNMENT_ID", "FINANCIAL_ID")
_READABLE = frozenset({*_IDS, "PHONE_NUMBER", "SECRET", "NUMERIC", "ICD9_CODE", "ICD10_CODE"})
_AMOUNT = re.compile(r"[.,'’%$€£]")

# What a kind of secret begins with, and the names of the fields of a connection string.
_FIXED = re.compile(
    r"^(?:sk-(?:ant-|proj-|live-|test-|or-v1-)?|[spr]k_(?:live|test)_|whsec_|gh[pousr]_|github_pat_|glpat-|xox[a-z]-"
    r"|xapp-\d-|AIza|ya29\.|GOCSPX-|SG\.|AC(?=[0-9a-f]{16})|SK(?=[0-9a-f]{16})|key-|npm_|pypi-|hf_|dop_v1_"
    r"|shp(?:at|ss|ca|pa)_|sq0(?:atp|csp)-|EAA|nvapi-|r8_|lin_api_|PMAK-|dckr_pat_|rubygems_|tskey-|xkeysib-"
    r"|A(?:KIA|SIA|GPA|IDA|ROA|NPA|NVA|BIA|CCA)(?=[A-Z2-7]{16})|\$[0-9a-z]+\$(?:[0-9]{2}\$)?|[A-Za-z][\w+.\-]*://)"
    r"|(?:^|(?<=\.))eyJ|(?:^|(?<=;))[^;=]+="
)
_RUN = re.compile(r"[A-Za-z0-9]+")
_Draw = Callable[[Draws], "str | None"]


@dataclass(frozen=True, slots=True)
class _Identifier:
    """An entity, how it is written in full, and its label with its ancestors."""

    code: Code
    lineage: tuple[str, ...]
    target: Wanted = field(repr=False)

    @property
    def label(self) -> str:
        return self.lineage[0]

    @property
    def family(self) -> str:
        return self.lineage[-1]


def make_renderers(cast: Cast, targets: Sequence[Wanted]) -> dict[str, Renderer]:
    """Choose pseudonyms of numbers and codes.

    Args:
        cast: of the document.
        targets: entities in reading order; those of other families are passed over.

    Returns:
        Entity key to what renders its surfaces. An entity that is to become a tag is missing, or rendered as None.
    """
    identifiers = [i for target in targets if (i := _read_identifier(cast, target)) is not None]
    chooser = _Chooser(cast, frozenset(i.code.characters for i in identifiers))
    identifiers.sort(key=lambda i: -len(i.code.characters))  # shortened numbers follow those in full
    return {i.target.entity.key: chooser.make_renderer(i) for i in identifiers}


def _read_identifier(cast: Cast, target: Wanted) -> _Identifier | None:
    lineage = cast.get_lineage(target)
    label, family = lineage[0], lineage[-1]
    if _READABLE.isdisjoint(lineage):
        return None
    if label == "PRIVATE_KEY" or (family == "NUMERIC" and label != "NUMERIC"):
        return None
    if family == "SECRET" and not any(read_code(surface).is_spoken for surface in target.surfaces):
        code = read_code(max(target.surfaces, key=len), spoken=False)
        return _Identifier(code, lineage, target) if code.slots else None
    code = max(map(read_code, target.surfaces), key=lambda code: len(code.characters))
    characters = code.characters
    if not any(c.isdigit() for c in characters) and (not characters or any(c.islower() for c in code.text)):
        return None
    if label == "NUMERIC" and (len(characters) < LEAST_TAIL or not characters.isdigit() or _AMOUNT.search(code.text)):
        return None
    return _Identifier(code, lineage, target)


class _Chooser:
    """Chooses the codes of one document: each has one pseudonym, whatever label and grouping it comes with."""

    def __init__(self, cast: Cast, originals: frozenset[str]) -> None:
        self._cast = cast
        self._originals = originals
        self._new: dict[str, str | None] = {}
        self._by_tail: dict[str, list[tuple[str, str]]] = {}  # ends of some lengths -> originals and pseudonyms

    def make_renderer(self, identifier: _Identifier) -> Renderer:
        """Return what renders the surfaces of an entity."""
        if identifier.family == "SECRET" and not identifier.code.is_spoken:
            return partial(self._render_drawn_text, "SECRET", _draw_secret)
        if identifier.family == "PHONE_NUMBER":
            for text in identifier.target.surfaces:  # numbers in full are decided before anything is rendered
                phone, _, _ = self._read_phone(identifier, text)
                if phone is not None:
                    self._choose_phone(phone)
            return partial(self._render_phone, identifier)
        if identifier.label == "CRYPTO":
            return partial(self._render_drawn_text, "FINANCIAL_ID", draw_wallet)
        if identifier.label != "NUMERIC" or len(identifier.code.characters) >= LEAST_NUMBER:
            self._choose_code(identifier, identifier.code)
        return partial(self._render_code, identifier)

    def _render_drawn_text(self, kind: str, draw: Callable[[str, Draws], str | None], text: str) -> str | None:
        return self._assign_pseudonym(kind, text, partial(draw, text))

    def _render_code(self, identifier: _Identifier, text: str) -> str | None:
        code = read_code(text)
        new = self._choose_code(identifier, code)
        return code.replace_characters(new) if new is not None else None

    def _choose_code(self, identifier: _Identifier, code: Code) -> str | None:
        is_code = identifier.label != "NUMERIC" or len(code.characters) >= LEAST_NUMBER
        draw = partial(self._draw_code, identifier, code) if is_code else None
        return self._choose_characters(identifier.family, code.characters, draw)

    def _choose_characters(self, kind: str, key: str, draw: _Draw | None) -> str | None:
        """Choose for letters and digits: the end of a longer code's pseudonym, else what is drawn."""
        if key not in self._new:
            new = self._find_pseudonym_tail(key)
            if new is None and draw is not None:
                new = self._assign_pseudonym(kind, key, draw)
            self._record_pseudonym(key, new)
        return self._new[key]

    def _record_pseudonym(self, key: str, new: str | None) -> None:
        self._new[key] = new
        for size in _TAILS if new else ():
            if len(key) > size and len(new or "") > size:
                self._by_tail.setdefault(key[-size:], []).append((key, new or ""))

    def _find_pseudonym_tail(self, key: str) -> str | None:
        """Return the end of the one pseudonym whose original ends like this."""
        if len(key) < LEAST_TAIL:
            return None
        size = max(size for size in _TAILS if size <= len(key))
        pairs = self._by_tail.get(key[-size:], ())
        tails = {new[-len(key) :] for old, new in pairs if len(old) > len(key) and old.endswith(key)}
        return tails.pop() if len(tails) == 1 and key not in tails else None

    def _draw_code(self, identifier: _Identifier, code: Code, draws: Draws) -> str | None:
        key = code.characters
        if identifier.label == "CREDIT_CARD" and key.isdigit() and len(key) >= 12:
            return draw_card(key, draws)
        if identifier.label == "IBAN_CODE" and len(key) > 8:
            return draw_iban(key, draws)
        shape = find_shape(code, identifier.lineage)
        if identifier.label == "MAC_ADDRESS" and draws.attempt >= phones.RESERVED_TRIES:
            shape = ANY  # the block for documentation has 256 addresses
        return draw_shaped_code(code, shape, draws)

    def _assign_pseudonym(self, kind: str, key: str, draw: _Draw) -> str | None:
        def propose(attempt: int) -> str | None:
            for step in range(8):
                new = draw(Draws(self._cast.ledger, kind, key, attempt + 1000 * step))
                if new is None or (new not in self._originals and new != key):
                    return new
            return None

        return self._cast.ledger.assign(kind, key, propose, telling=lambda new: "".join(filter(str.isalnum, new)))

    # Telephone numbers

    def _read_phone(self, identifier: _Identifier, text: str) -> tuple[phones.Phone | None, str, str]:
        """Return the number, its surface, and what joins it to an extension."""
        match = phones.EXTENSION.search(text)
        start, end = match.span() if match else (len(text), len(text))
        language, places = self._cast.setting.policy.language, self._cast.place_map
        home = places.main if places is not None else ""
        return phones.read_phone(text[:start], identifier.label, language, home), text[:start], text[start:end]

    def _render_phone(self, identifier: _Identifier, text: str) -> str | None:
        phone, body, joint = self._read_phone(identifier, text)
        code = read_code(body)
        out: str | None = None
        if phone is not None and (number := self._choose_phone(phone)) is not None:
            out = phones.write_phone(body, phone, number, self._find_phone_target(phone))
        if out is None:
            new = self._choose_local_number(code) if phone is None else None
            new = new if new is not None else self._choose_code(identifier, code)
            out = code.replace_characters(new) if new is not None else None
        if out is None or not joint:
            return out
        extension = read_code(text[len(body) + len(joint) :])
        key = f"{code.characters}\0{extension.characters}"
        ending = draw_shaped_code(extension, ANY, Draws(self._cast.ledger, "extension", key, 0))
        return out + joint + extension.replace_characters(ending) if ending else None

    def _find_phone_target(self, phone: phones.Phone) -> str:
        """Return the country that a number goes to: where the document's own goes, else its own."""
        places = self._cast.place_map
        return places.get_target_country(phone.region) if places is not None else phone.region

    def _choose_phone(self, phone: phones.Phone) -> str | None:
        """Return the national number that replaces this one."""
        if phone.digits not in self._new:
            to = self._find_phone_target(phone)
            key = phone.key if to == phone.region else f"{phone.key}>{to}"
            new = self._assign_pseudonym("PHONE_NUMBER", key, partial(phones.draw_phone, phone, to=to))
            self._record_pseudonym(phone.digits, new)
        return self._new[phone.digits]

    def _choose_local_number(self, code: Code) -> str | None:
        """Choose for a number that nobody could dial from elsewhere: the end of one in full, or a local number."""
        key = code.characters
        if not key.isdigit() or len(key) > 7:
            new = self._new.get(key)
            return new if new is None or len(new) == len(key) else None
        return self._choose_characters("PHONE_NUMBER", key, partial(phones.draw_local_number, key))


def _draw_secret(text: str, draws: Draws) -> str | None:
    """Return a secret of the same length and alphabet, with the same known prefix."""
    fixed = {i for match in _FIXED.finditer(text) for i in range(*match.span())}
    out = list(text)
    for run in _RUN.finditer(text):
        for i in range(*run.span()):
            if i not in fixed:
                out[i] = draws.pick_element(_get_replacement_alphabet(run[0], text[i]))
    for i, c in enumerate(text):
        if not c.isascii() and c.isalpha():
            out[i] = draws.pick_element(LETTERS if c.isupper() else LETTERS.lower())
    return "".join(out) if "".join(out) != text else None


def _get_replacement_alphabet(run: str, char: str) -> str:
    """Return what may replace a character: a digit for a digit, a letter of the same case for a letter.

    In a long run of hexadecimal digits or base 32, only such.
    """
    digits, letters = DIGITS, LETTERS.lower()
    if len(run) >= 12 and set(run) <= set(hexdigits) and not run.isdigit():
        letters = "abcdef"
    elif len(run) >= 16 and re.fullmatch("[A-Z2-7]+", run):
        digits = "234567"
    return digits if char.isdigit() else letters.upper() if char.isupper() else letters


# First digits of a brand to the first six of the numbers that payment processors publish for tests.
_TEST_CARDS = {
    "34 37": "378282 371449 378734",
    "4": "411111 401288 424242 400005",
    "51 52 53 54 55": "555555 510510 520082",
    "22 23 24 25 26 27": "222300",
    "6011 64 65": "601111 601100",
    "36 38 39 30": "305693 385200",
    "35": "353011 356600",
    "62": "620000",
    "67 50": "675964",
}
IBAN_DRAWS = 1000
_BECH32 = ("bc", "tb", "ltc", "bcrt", "addr")  # first parts of addresses with such a checksum


def draw_card(code: str, draws: Draws) -> str:
    """Return a card number of the same brand and length, from a test range where one is known, with its check digit."""
    tests = next((tests for starts, tests in _TEST_CARDS.items() if code.startswith(tuple(starts.split()))), "")
    front = draws.pick_element(tests.split()) if tests else code[:4]
    body = front + draws.draw_digit_string(len(code) - len(front) - 1)
    return next(body + d for d in DIGITS if luhn(body + d) or d == "9")


def draw_iban(code: str, draws: Draws) -> str:
    """Return an IBAN of the same country and structure, of another bank, with its check digits.

    Where python-stdnum knows the country's own check digits (Belgium, Spain ...) those are right as well.
    """
    from stdnum import iban

    country, old = code[:2], code[4:]
    out = code
    for _ in range(IBAN_DRAWS):
        new = "".join(draws.pick_element(DIGITS if c.isdigit() else LETTERS) for c in old)
        if new[:4] == old[:4] or new == old:
            continue
        number = int("".join(str(int(c, 36)) for c in f"{new}{country}00"))
        out = f"{country}{98 - number % 97:02}{new}"
        if iban.is_valid(out):
            return out
    return out


def draw_wallet(text: str, draws: Draws) -> str | None:
    """Return the address of a wallet of the same currency and kind; None where that is unknown.

    It is a random hash with its checksum.
    """
    if text[:2] in ("0x", "0X"):
        upper, lower = any(c.isupper() for c in text[2:]), any(c.islower() for c in text[2:])
        digits = DIGITS + ("ABCDEFabcdef" if upper and lower else "ABCDEF" if upper else "abcdef")
        return text[:2] + "".join(draws.pick_element(digits) for _ in text[2:])
    front, separator, data = text.rpartition("1")
    if separator and front.lower() in _BECH32 and len(data) > 6:
        return _draw_bech32(front, data, draws)
    if len(text) > 40:  # Monero: only the network's two characters are fixed
        return text[:2] + "".join(draws.pick_element(BASE58) for _ in text[2:])
    return _draw_base58(text, draws)


def _draw_base58(text: str, draws: Draws) -> str | None:
    number = 0
    for c in text:
        if c not in BASE58:
            return None
        number = number * 58 + BASE58.index(c)
    if number.bit_length() > 200:
        return None
    version = number.to_bytes(25, "big")[:1]
    for _ in range(200):
        raw = version + bytes(draws.draw_number_below(256) for _ in range(20))
        out = _encode_base58(raw + sha256(sha256(raw).digest()).digest()[:4])
        if len(out) == len(text) and out[0] == text[0] and out != text:
            return out
    return None


def _encode_base58(raw: bytes) -> str:
    number = int.from_bytes(raw, "big")
    out = ""
    while number:
        number, digit = divmod(number, 58)
        out = BASE58[digit] + out
    return "1" * (len(raw) - len(raw.lstrip(b"\0"))) + out


def _draw_bech32(front: str, data: str, draws: Draws) -> str:
    """Draw an address of BIP 173 or 350: the witness version stays, the program is drawn, six characters check."""
    low = data.lower()
    prefix = [ord(c) >> 5 for c in front.lower()] + [0] + [ord(c) & 31 for c in front.lower()]
    constant = compute_polymod(prefix + [BECH32.find(c) for c in low])
    values = [BECH32.find(low[0])] + [draws.draw_number_below(32) for _ in range(len(low) - 7)]
    values[-1] &= 16  # the last five bits are filled up with zeros
    check = compute_polymod(prefix + values + [0] * 6) ^ (constant if constant in (1, 0x2BC830A3) else 1)
    values += [check >> 5 * (5 - i) & 31 for i in range(6)]
    out = "".join(BECH32[v] for v in values)
    return f"{front}1{out.upper() if data.isupper() else out}"
