"""The forms in which an original may turn up again: other case, a part of a name, initials, one letter another.

Text is compared as words: runs of letters and digits, case and diacritics folded. So ``Ada BROOK``, ``ada.brook`` and
``ADA-BROOK`` are the same two words, and a number is the same however it is grouped, or said in digits. Whoever looks
for a form splits the text of a model into words in the same way, with :func:`split_folded_words`. In scripts without
spaces, such as Chinese, Japanese and Thai, a name within a sentence is not found.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from allonym.labels import TAXONOMY
from allonym.text.fold import Level, expand_special_letters, fold, spell_out_umlauts
from allonym.text.names import PARTICLES, normalize_organization, normalize_surface, parse_person

KINDS = ("whole", "part", "shortened", "edited", "initials")
"""How an original may turn up, the strongest sign first.

``whole``: all of it, in any case and grouping, a name also family name first. ``part``: a name, the account of an
e-mail address, a number without its beginning, a street without its number. ``shortened``: a name with all but one of
its names as initials. ``edited``: one letter or digit too many, too few or another. ``initials``: the initials alone,
which stand by chance in many a text.
"""

LEAST_EDITED, MOST_EDITED = 5, 32
"""Least and most letters and digits of a form that is also looked for with one letter changed."""
LEAST_NUMBER = 8
"""The same for numbers and codes: with fewer digits, another number is as likely."""
TAIL = 9
"""Last digits by which a phone number is known without its country code."""
MOST_WORDS = 12
"""Words of an original that are looked at; the rest of a longer one is left out."""

SAID = dict(zip("zero one two three four five six seven eight nine".split(), "0123456789", strict=True))
"""Spoken digits."""

# Marks go with their letter, as do invisible characters; the ranges of Indic scripts hold letters, digits and marks.
_WORD = re.compile(
    r"[^\W_](?:[^\W_]|[\u00ad\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u05bf-\u05c2\u05c4-\u05c7\u0610-\u061a\u064b-\u065f"
    r"\u0670\u06d6-\u06ed\u0900-\u0963\u0981-\u0df3\u0e31-\u0e3a\u0e47-\u0e4e\u1ab0-\u1aff\u1dc0-\u1dff\u200b-\u200d\u2060"
    r"\u20d0-\u20f0\ufe00-\ufe0f\ufe20-\ufe2f\ufeff])*"
)
_UNFOLDED = "ŧȷəɔɛŋɓɖɗƙƴ"
"""Letters that are not folded here, since the digests of the first version did not fold them."""
_LEAST_PART = 3
_LEAST_LETTERS, _LEAST_DIGITS = 3, 4
_NO_EDITS = frozenset({"DATE_TIME", "AGE", "NUMERIC", "PRONOUN", "GENDER", "TITLE"})


class Word(NamedTuple):
    """A folded word, and its position in the text."""

    text: str
    start: int
    end: int


def split_folded_words(text: str) -> list[Word]:
    """Return the folded words of a text.

    >>> [w.text for w in split_folded_words("Ms. BROOK-Müller, 555-0147")]
    ['ms', 'brook', 'muller', '555', '0147']
    """
    return [Word(fold_word(m[0]), *m.span()) for m in _WORD.finditer(text)]


def fold_word(word: str) -> str:
    """Fold a word to letters and digits; one word stays one.

    The result is decomposed (NFKD), as in the digests of earlier versions: Hangul stands there in single Jamo.
    """
    if word.isascii():
        return word.lower()
    folded = unicodedata.normalize("NFKD", fold(word, Level.SCRIPT, _UNFOLDED))
    return "".join(filter(str.isalnum, folded)) or word.lower()


def join_letters_and_digits(words: list[str]) -> str:
    """Join the letters and digits of words; spoken digits become digits.

    >>> join_letters_and_digits(["206", "five", "five", "5", "0147"])
    '2065550147'
    """
    return "".join([SAID.get(word, word) for word in words])


def get_phone_tail(number: str) -> str:
    """Return the last digits of a long phone number, which do not depend on its country code; else an empty string."""
    return number[-TAIL:] if len(number) > TAIL and number.isdecimal() else ""


class Forms(NamedTuple):
    """The forms of an original by kind, and those that are also looked for with one letter changed."""

    by_kind: Mapping[str, tuple[str, ...]]
    editable: tuple[str, ...]

    def list_forms(self) -> Iterator[tuple[str, str]]:
        """Yield kind and form of everything that gets a digest."""
        for kind, forms in self.by_kind.items():
            for form in forms:
                yield kind, form
        for form in self.editable:
            yield "edited", form
            for index in range(len(form)):
                yield "edited", make_deletion_key(form, index)


def make_deletion_key(form: str, index: int) -> str:
    """Return a form without one character, with the character's position before it. Two forms of one length that give
    the same result differ in this character alone."""
    return f"{index}-{form[:index]}{form[index + 1 :]}"


def make_all_forms(original: str, label: str) -> Forms:
    """Return the forms of an original; none if it is shorter than three letters or four digits.

    Args:
        original: as it stood in a text.
        label: of the taxonomy, or a policy's own.

    >>> make_all_forms("Dr. Ada Brook", "PERSON").by_kind["part"]
    ('ada', 'brook')
    >>> make_all_forms("Jörg", "PERSON").by_kind["whole"]
    ('jorg', 'joerg')
    """
    spellings = dict.fromkeys((original, spell_out_umlauts(original), expand_special_letters(original)))
    all_forms = [_make_spelling_forms(spelling, label) for spelling in spellings]
    by_kind: dict[str, tuple[str, ...]] = {}
    entered = {""}
    for kind in ("whole", "part", "shortened", "initials"):
        forms = dict.fromkeys(form for some in all_forms for form in some.by_kind.get(kind, ()))
        by_kind[kind] = tuple(form for form in forms if form not in entered)
        entered.update(forms)
    editable = dict.fromkeys(form for some in all_forms for form in some.editable)
    return Forms({kind: forms for kind, forms in by_kind.items() if forms}, tuple(editable))


def _make_spelling_forms(original: str, label: str) -> Forms:
    """Return the forms of an original in one spelling; they may repeat."""
    lineage = TAXONOMY.lineage(label)
    family = lineage[-1]
    bare = normalize_surface(original, Level.MARKS)
    words = [w.text for w in split_folded_words(bare)[:MOST_WORDS]]
    letters = join_letters_and_digits(words)
    if len(letters) < (_LEAST_DIGITS if letters.isdecimal() else _LEAST_LETTERS):
        return Forms({}, ())
    full, part, shortened, initials = [" ".join(words)], list[str](), list[str](), list[str]()
    editable = [letters]
    numbered = sum(c.isdecimal() for c in letters) >= _LEAST_DIGITS
    if numbered:
        full.append(letters)  # however it is grouped
    if family == "PERSON" and label != "TITLE":
        names = [w for w in (fold_word(p) for n in parse_person(bare)[0] if n[0] != "+" for p in _WORD.findall(n)) if w]
        part = [n for n in names if len(n) >= _LEAST_PART and n not in PARTICLES]
        editable = [join_letters_and_digits(names), *part]
        if len(names) > 1:
            full += [" ".join(names), " ".join([names[-1], *names[:-1]])]
            shortened = [" ".join([*(n[0] for n in names[:-1]), names[-1]]), f"{names[0]} {names[-1][0]}"]
            if len(names) > 2:
                shortened.append(f"{names[0][0]} {names[-1]}")
                full.append(f"{names[0]} {names[-1]}")
            initials = ["".join(n[0] for n in names)]
    elif family == "ORGANIZATION":
        full.append(" ".join(w.text for w in split_folded_words(normalize_organization(bare))))
    elif family == "EMAIL_ADDRESS" or "@" in bare:
        account = [w.text for w in split_folded_words(bare.partition("@")[0])]
        part = [" ".join(account)] if len(join_letters_and_digits(account)) > _LEAST_DIGITS else []
    elif family == "PHONE_NUMBER":
        part = [get_phone_tail(letters)] if get_phone_tail(letters) else []
    elif "STREET_ADDRESS" in lineage:
        street = [w for w in words if not any(c.isdecimal() for c in w)]
        part = [" ".join(street)] if 1 < len(street) < len(words) else []
    if family in _NO_EDITS or label == "TITLE":
        editable = []
    least = LEAST_NUMBER if numbered else LEAST_EDITED
    editable = [form for form in editable if least <= len(form) <= MOST_EDITED]
    by_kind = {"whole": full, "part": part, "shortened": shortened, "initials": initials}
    return Forms({kind: tuple(forms) for kind, forms in by_kind.items()}, tuple(editable))
