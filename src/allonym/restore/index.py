"""An index of replacements by their words, built once; each word of a text is then looked up in it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from allonym.replace.keyed import TOKEN
from allonym.restore import forms
from allonym.restore.fit import extract_code_characters, get_letter_case, read_date_key, strip_calling_code
from allonym.restore.forms import CODE, DATE, PERSON, TAG, Form
from allonym.restore.ordinary import is_ordinary, is_rare
from allonym.restore.words import (
    Ending,
    common_words,
    find_bases,
    is_one_slip,
)
from allonym.text.fold import Level, fold, fold_spellings
from allonym.text.names import are_given_names_alike, is_same_person, normalize_surface, parse_person, split_name
from allonym.vault.records import Known

LEAST_SLIP = 5
"""Least number of letters in a word for which one slip is allowed."""
_NAME, _LABEL, _ID = 1, 2, 4
_DERIVING = (PERSON, forms.ORGANIZATION, forms.LOCATION)
_CACHED = 200_000


class Reading(NamedTuple):
    """A reading of a word in a text: the word of a replacement, the rule, and the ending."""

    key: str
    rule: str = ""
    ending: Ending | None = None


class Row:
    """One replacement.

    Attributes:
        text: the replacement.
        originals: its originals, one per occurrence, in reading order.
        entities: their entities, in the same order.
        label: of the first original.
        kind: of the replacement, see :func:`forms.get_replacement_kind`.
        ordinary: whether any text may contain it, see :func:`is_ordinary`.
        rare: whether it is ordinary but in few texts, see :func:`is_rare`.
    """

    __slots__ = ("entities", "kind", "label", "ordinary", "originals", "rare", "text")

    def __init__(self, text: str, label: str, kind: str) -> None:
        self.text = text
        self.label = label
        self.kind = kind
        self.ordinary = is_ordinary(text, label)
        self.rare = self.ordinary and is_rare(text)
        self.originals: list[str] = []
        self.entities: list[str] = []

    def target(self) -> str | None:
        """Return the fullest original, or None if several entities have originals that cannot name one person."""
        first = self.originals[0]
        if len(self.originals) == 1:
            return first
        distinct = dict.fromkeys(self.originals)
        if len(distinct) == 1:
            return first
        like = get_letter_case(self.text)

        def has_case_of_replacement(original: str) -> bool:
            """Tell whether an original has the letter case of the replacement; the case of a tag says nothing."""
            return (
                get_letter_case(original) not in ("upper", "lower")
                if self.kind == TAG
                else get_letter_case(original) == like
            )

        fullest = max(
            distinct, key=lambda o: (len(normalize_surface(o)), has_case_of_replacement(o), "\n" not in o, -len(o))
        )
        # Vaults of earlier versions know a person by an unfolded key ("łukasz"), and later ones by a folded one.
        if len({fold(key) for key in self.entities}) > 1 and len({normalize_surface(o) for o in distinct}) > 1:
            return fullest if self.kind == PERSON and _is_one_person(distinct, fullest) else None
        return fullest


class Index:
    """Replacements by their words.

    Args:
        entries: replacements with their originals; the order of equal replacements is kept.

    Attributes:
        rows: the replacements.
        full, heads: whole replacements by their words, and their numbers of words by the first word.
        pairs: the first two words of longer replacements.
        short, short_heads: the same for derived forms, as far as they have been needed.
        codes, code_heads: numbers and codes by their letters and digits, and the beginnings of these.
        nationals: telephone numbers without calling code.
        dates: dates by year, month and day.
        labels: the words of tags before the last, and the forms of these tags.
        id_sizes: lengths of the last words of tags.
        sealed: encrypted mentions by their code.
        literal: replacements without words, or in scripts without spaces, by first character, longest first.
        vocabulary: all words, folded, with their kinds of use.
        letters: first letters of people's names.
        longest: length of the longest word.
    """

    def __init__(self, entries: Iterable[Known]) -> None:
        self.rows: list[Row] = []
        self.full: dict[tuple[str, ...], list[Form]] = {}
        self.heads: dict[str, list[int]] = {}
        self.pairs: set[tuple[str, str]] = set()
        self.short: dict[tuple[str, ...], list[Form]] = {}
        self.short_heads: dict[str, list[int]] = {}
        self.codes: dict[str, list[Form]] = {}
        self.code_heads: set[str] = set()
        self.nationals: dict[str, list[Form]] = {}
        self.dates: dict[tuple[int | None, int | None, int | None], list[Form]] = {}
        self.labels: dict[tuple[str, ...], set[tuple[str, str, str]]] = {}
        self.id_sizes: set[int] = set()
        self.sealed: dict[str, Form] = {}
        self.literal: dict[str, list[Form]] = {}
        self.letters: set[str] = set()
        self.longest = 8
        self.longest_code = 0
        self.vocabulary: dict[str, int] = {}
        self._accented: set[str] = set()
        self._aliases: dict[str, str] = {}
        self._parts: dict[str, list[Form]] = {}
        self._expanded: dict[int, bool] = {}
        self._slips: dict[tuple[int, str], list[str]] | None = None
        self._starting: set[str] = set()
        self._acronyms: dict[str, list[Form]] = {}
        self._initials: dict[tuple[str, ...], list[Form]] | None = None
        self._deriving: list[Form] = []
        self._prefixes: set[str] | None = None
        self._read: dict[str, tuple[Reading, ...]] = {}
        self._common = common_words()
        by_text: dict[str, int] = {}
        first: list[Known] = []
        for entry in entries:
            row_number = by_text.get(entry.replacement)
            if row_number is None:
                if not entry.replacement.strip():
                    continue
                row_number = by_text[entry.replacement] = len(self.rows)
                kind = forms.get_replacement_kind(entry.replacement, entry.original, entry.label, entry.operator)
                self.rows.append(Row(entry.replacement, entry.label, kind))
                first.append(entry)
            row = self.rows[row_number]
            row.originals.append(entry.original)
            row.entities.append(entry.entity)
        for number, entry in enumerate(first):
            self._add_form(number, entry)
        for listed in self.literal.values():
            listed.sort(key=lambda f: (-len(f.text), f.text))
        for heads in (self.heads, self.short_heads):
            for lengths in heads.values():
                lengths.sort(reverse=True)

    def _add_form(self, number: int, entry: Known) -> None:
        row = self.rows[number]
        kind = row.kind
        form = Form(entry.replacement, row.target(), entry.label, kind, number)
        form.ordinary = row.ordinary
        if not form.keys or (kind != TAG and forms.is_unspaced(entry.replacement)):
            self.literal.setdefault(entry.replacement[0], []).append(form)
            return
        keys = form.keys
        if kind == TAG:
            token = TOKEN.fullmatch(entry.replacement)
            if token is not None:
                self.sealed[token[2].upper()] = form
            self._add_words(form, _LABEL, last=_ID)
            if len(keys) > 1:
                self.labels.setdefault(keys[:-1], set()).add((form.head, form.gaps[-1], form.tail))
                self.id_sizes.add(len(keys[-1]))
        else:
            self._add_words(form, _NAME, last=_NAME)
            if kind in _DERIVING:
                self._deriving.append(form)
                for key in keys:
                    self._parts.setdefault(key, []).append(form)
                if kind == PERSON:
                    self.letters.update([key[0] for key in keys])
                elif "&" in form.text:
                    for word in forms.AND:
                        self.vocabulary.setdefault(word, _NAME)
                if kind == forms.ORGANIZATION and len(keys) > 2:
                    letters = forms.make_acronym(forms.core_words(form.text))
                    if len(letters) > 2:
                        self._starting.add(fold(letters))
                        self._acronyms.setdefault(letters, []).append(form)
                        self.vocabulary.setdefault(fold(letters), _NAME)
            elif kind == CODE and not form.ordinary:
                self._add_code(form, entry)
            elif kind == DATE:
                date_key = read_date_key(entry.replacement)
                if date_key is not None:
                    self.dates.setdefault(date_key, []).append(form)
        self._enter_form(self.full, self.heads, form)
        if len(keys) > 1:
            self._enter_joined((), "".join(keys), form)
            if kind == TAG and len(keys) > 2:
                self._enter_joined(keys[:-2], keys[-2] + keys[-1], form)

    def _enter_joined(self, before: tuple[str, ...], joined: str, form: Form) -> None:
        """Enter a form whose last words, or all words, are joined."""
        if len(joined) < LEAST_SLIP and not (before and len(joined) > 2):
            return
        keys = (*before, joined)
        self.full.setdefault(keys, []).append(form)
        lengths = self.heads.setdefault(keys[0], [])
        if len(keys) not in lengths:
            lengths.append(len(keys))
        if len(keys) > 2:
            self.pairs.add((keys[0], keys[1]))
        self.vocabulary.setdefault(joined, 0)

    def _enter_form(self, table: dict[tuple[str, ...], list[Form]], heads: dict[str, list[int]], form: Form) -> None:
        keys = form.keys
        table.setdefault(keys, []).append(form)
        lengths = heads.setdefault(keys[0], [])
        if len(keys) not in lengths:
            lengths.append(len(keys))
        if len(keys) > 2:
            self.pairs.add((keys[0], keys[1]))

    def _add_words(self, form: Form, flag: int, last: int) -> None:
        vocabulary = self.vocabulary
        end = len(form.keys) - 1
        for i, key in enumerate(form.keys):
            vocabulary[key] = vocabulary.get(key, 0) | (last if i == end else flag)
            if len(key) > self.longest:
                self.longest = len(key)
            word = form.words[i]
            if not word.isascii():
                self._accented.add(fold(word, Level.CASE))
                for other in fold_spellings(word)[1:]:
                    self._aliases[other] = key

    def _add_code(self, form: Form, entry: Known) -> None:
        code = extract_code_characters(form.text)
        self.codes.setdefault(code, []).append(form)
        self.longest_code = max(self.longest_code, len(code))
        self._add_code_head(code)
        if "PHONE" in entry.label or "FAX" in entry.label or form.text.startswith("+"):
            short = strip_calling_code(form.text)
            if len(short) > 5 and short.isdigit():
                self.nationals.setdefault(short, []).append(form)
                self._add_code_head(short)

    def _add_code_head(self, code: str) -> None:
        bare = code.lstrip("0")
        for size in (2, 4, 6, 8):
            self.code_heads.add(bare[:size])

    def is_code_prefix(self, begun: str) -> bool:
        """Tell whether a code may begin like this."""
        bare = begun.lstrip("0")
        return len(bare) < 2 or bare[: min(8, len(bare) // 2 * 2)] in self.code_heads

    # Shorter forms, derived when one of their words is met

    def expand_word(self, key: str, rare: bool = True) -> None:
        """Derive the shorter forms of all replacements with a word; ``rare`` includes initials and the like."""
        for form in self._parts.get(key, ()):
            self._expand_form(form, rare)

    def _expand_form(self, form: Form, rare: bool = True) -> None:
        if self._expanded.get(form.row, -1) >= rare:
            return
        again = form.row in self._expanded
        self._expanded[form.row] = rare
        if form.target is None:
            return
        for short_form in forms.derive_forms(form, form.target, rare=rare):
            if again and any(
                had.row == short_form.row and had.text == short_form.text for had in self.short.get(short_form.keys, ())
            ):
                continue
            if len(short_form.keys) > 1 or (short_form.keys and len(short_form.keys[0]) > 2):
                self._enter_form(self.short, self.short_heads, short_form)
                self.short_heads[short_form.keys[0]].sort(reverse=True)

    def expand_acronym(self, word: str) -> None:
        """Derive the shorter forms of the organisations that an acronym may stand for."""
        for form in self._acronyms.get(word, ()):
            self._expand_form(form)

    def expand_initials(self, first: str, last: str) -> None:
        """Derive the shorter forms of all people with these initials."""
        if self._initials is None:
            self._initials = {}
            for form in self._deriving:
                if form.kind == PERSON and len(form.keys) > 1:
                    for a in form.keys[:-1]:
                        self._initials.setdefault((a[0], form.keys[-1][0]), []).append(form)
        for form in self._initials.get((first, last), ()):
            self._expand_form(form)

    # Reading words

    def read_word(self, word: str) -> tuple[Reading, ...]:
        """Return the readings of a word, the likeliest kind first; most words have none."""
        had = self._read.get(word)
        if had is None:
            if len(self._read) > _CACHED:
                self._read.clear()
            had = self._read[word] = self._compute_readings(word)
        return had

    def _compute_readings(self, word: str) -> tuple[Reading, ...]:
        if len(word) == 1 and word.isupper():
            first = fold(word)
            return (Reading(first),) if first in self.letters or first in self.vocabulary else ()
        low = fold(word, Level.CASE)
        ascii_only = low.isascii()
        key = low if ascii_only else fold(word)
        vocabulary = self.vocabulary
        if key in vocabulary and (ascii_only or low in self._accented):
            exact = Reading(key)
            if key[-1] == "s" and len(key) > 4 and vocabulary.get(key[:-1], 0) & _NAME:
                return (exact, Reading(key[:-1], "plural", Ending("de", "m", 0, word[-1])))
            return (exact,)
        if len(key) > self.longest + 6 or len(low) < 2:
            return (Reading(key, "diacritics"),) if key in vocabulary else ()
        candidates: dict[str, Reading] = {}
        if low.isalpha() and (len(low) > 3 or (len(low) == 3 and word[0].isupper() and not word.isupper())):
            if key not in self._common:
                for base, ending in find_bases(low):
                    is_in_vocabulary = base in vocabulary if base.isascii() else base in self._accented
                    if is_in_vocabulary and len(base) > 2 and base.isalpha():
                        bare = fold(base)
                        if vocabulary.get(bare, 0) & _NAME and bare not in candidates:
                            if ending.kept_letters:
                                ending = ending._replace(kept_letters=word[len(word) - len(ending.kept_letters) :])
                            candidates[bare] = Reading(
                                bare, "plural" if ending.kept_letters in ("s", "S") else "inflected", ending
                            )
        elif (low[-1] == "s" and word[:-1].isupper() and vocabulary.get(low[:-1], 0) & _NAME) or (
            low[-1] == "s" and vocabulary.get(low[:-1], 0) & _ID
        ):
            candidates[low[:-1]] = Reading(low[:-1], "plural", Ending("de", "m", 0, "s"))
        if candidates:
            return tuple(candidates.values())
        if key in vocabulary:
            return (Reading(key, "diacritics"),)
        if key in self._aliases:
            return (Reading(self._aliases[key], "diacritics"),)
        return tuple(Reading(w, "typo") for w in self._find_slips(key))

    def _find_slips(self, key: str) -> Iterator[str]:
        """Return words of replacements, other than numbers, from which one slip leads to ``key``."""
        if len(key) < LEAST_SLIP - 2 or key.isdigit():
            return
        if self._slips is None:
            self._slips = self._slip_table()
        candidates: set[str] = set()
        for size in (len(key) - 1, len(key), len(key) + 1):
            half = size // 2
            candidates.update(self._slips.get((size, key[:half]), ()))
            candidates.update(self._slips.get((-size, key[half - size :]), ()))
        half = len(key) // 2
        crossed = key[: half - 1] + key[half] + key[half - 1] + key[half + 1 :]
        if _may_have_slip(crossed, self.vocabulary.get(crossed, 0)):
            candidates.add(crossed)
        for word in sorted(candidates):
            if is_one_slip(word, key):
                yield word

    def _slip_table(self) -> dict[tuple[int, str], list[str]]:
        """Words by their halves. A slip leaves one half intact, unless it swaps the letters at the boundary."""
        table: dict[tuple[int, str], list[str]] = {}
        for word, flags in self.vocabulary.items():
            if _may_have_slip(word, flags):
                size = len(word)
                table.setdefault((size, word[: size // 2]), []).append(word)
                table.setdefault((-size, word[size // 2 :]), []).append(word)
        return table

    def may_begin_replacement(self, key: str) -> bool:
        """Tell whether a replacement, or a shorter form, may begin with a folded word."""
        return (
            key in self.heads or key in self._parts or key in self._starting or (len(key) == 1 and key in self.letters)
        )

    def is_known_word(self, key: str) -> bool:
        """Tell whether a folded word belongs to a replacement."""
        return key in self.vocabulary

    def is_label_word(self, key: str) -> bool:
        """Tell whether a folded word belongs to tags only."""
        return not self.vocabulary.get(key, 0) & _NAME

    def is_word_prefix(self, key: str) -> bool:
        """Tell whether a folded word is the beginning of a longer word of a replacement."""
        if self._prefixes is None:
            self._prefixes = {w[:i] for w in self.vocabulary for i in range(2, len(w))}
        return key in self._prefixes

    def __len__(self) -> int:
        return len(self.rows)


def _is_one_person(originals: Iterable[str], fullest: str) -> bool:
    """Tell whether all names may be of one person: full names agree, single words are part of the fullest."""
    named = [parse_person(normalize_surface(o)) for o in originals]
    if len({gender for _, gender in named if gender}) > 1:
        return False
    full_names, single = [w for w, _ in named if len(w) > 1], [w[0] for w, _ in named if len(w) == 1]
    full = parse_person(normalize_surface(fullest))[0]
    if not all(is_same_person(a, b) for i, a in enumerate(full_names) for b in full_names[:i]):
        return False
    if len(full) == 1:
        return all(word == full[0] or are_given_names_alike(word, full[0]) for word in single)
    given_names, family, _ = split_name(full)
    return all(word in given_names or word in family or are_given_names_alike(word, given_names[0]) for word in single)


def _may_have_slip(word: str, flags: int) -> bool:
    if flags & (_NAME | _LABEL):
        return len(word) >= LEAST_SLIP - 1 and word.isalpha()
    return bool(flags & _ID) and len(word) >= 6 and not word.isdigit() and not word.isalpha()


def choose_targets(forms_found: Sequence[Form]) -> list[Form]:
    """Return one form for each different original; a form without a target stands for several."""
    out: dict[str, Form] = {}
    for form in forms_found:
        name = "\0" if form.target is None else normalize_surface(form.target)
        had = out.get(name)
        if had is None or (get_letter_case(had.text) == "upper" and get_letter_case(form.text) != "upper"):
            out[name] = form
    return list(out.values())
