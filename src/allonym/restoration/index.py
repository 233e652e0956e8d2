"""An index of replacements by their words, built once; each word of a text is then looked up in it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from allonym.protocol import Traits, get_traits_by_name
from allonym.replace.operators import TOKEN
from allonym.restoration import forms
from allonym.restoration.fit import extract_code_characters, get_letter_case, read_date_key, strip_calling_code
from allonym.restoration.forms import CODE, DATE, PERSON, TAG, Form
from allonym.restoration.words import is_one_slip, is_ordinary, is_rare
from allonym.text.fold import Level, fold, fold_spellings
from allonym.text.inflection import Ending, find_base_forms
from allonym.text.names import are_given_names_alike, can_be_same_person, normalize_surface, parse_person, split_name
from allonym.text.prose import read_common_words
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


_LISTED = re.compile(r"\A([^\W\d_][^\W\d_'’ -]*), ([^\W\d_][^\W\d_'’ .-]*)\Z")
"""A name as in "Dorland, Chris"."""


class Row:
    """One replacement.

    Attributes:
        text: the replacement.
        originals: its originals, one per occurrence, in reading order.
        entities: their entities, in the same order.
        label: of the first original.
        kind: of the replacement, see :func:`forms.classify_replacement_form`.
        is_ordinary: whether any text may contain it, see :func:`is_ordinary`.
        is_rare: whether it is ordinary but in few texts, see :func:`is_rare`.
    """

    __slots__ = ("entities", "is_ordinary", "is_rare", "kind", "label", "originals", "text")

    def __init__(self, first: Known, traits: Traits) -> None:
        self.text = first.replacement
        self.label = first.label
        self.kind = forms.classify_replacement_form(first.replacement, first.original, first.label, traits)
        self.is_ordinary = is_ordinary(self.text, self.label)
        self.is_rare = self.is_ordinary and is_rare(self.text)
        self.originals = [first.original]
        self.entities = [first.entity]

    @property
    def has_variants(self) -> bool:
        """Whether it stands for several surfaces of one entity."""
        return len(set(self.originals)) > 1 and self.find_single_original() is not None

    def find_single_original(self) -> str | None:
        """Return the fullest original, or None if several entities have originals that cannot name one person.

        Where a tag stands for several surfaces, a name that lists have the other way round is turned: a tag may stand
        in any sentence, and only its plan knows better.
        """
        distinct = dict.fromkeys(self.originals) if len(self.originals) > 1 else self.originals
        if len(distinct) == 1:
            return self.originals[0]
        like = get_letter_case(self.text)

        def measure_fullness(original: str) -> tuple[int, bool, bool, int]:
            case = get_letter_case(original)  # the case of a tag says nothing
            has_case = case not in ("upper", "lower") if self.kind == TAG else case == like
            return len(normalize_surface(original)), has_case, "\n" not in original, -len(original)

        fullest = max(distinct, key=measure_fullness)
        # Vaults of earlier versions know a person by an unfolded key ("łukasz"), and later ones by a folded one.
        if len({fold(key) for key in self.entities}) > 1 and len({normalize_surface(o) for o in distinct}) > 1:
            return fullest if self.kind == PERSON and _is_one_person(distinct, fullest) else None
        return _LISTED.sub(r"\2 \1", fullest) if self.kind == TAG and self.label == "PERSON" else fullest


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
        self._starting: set[str] = set()
        self._acronyms: dict[str, list[Form]] = {}
        self._initials: dict[tuple[str, str], list[Form]] = {}
        self._read: dict[str, tuple[Reading, ...]] = {}
        self._common = read_common_words()
        rows: dict[str, Row] = {}
        traits: dict[str, Traits] = {}
        for entry in entries:
            if (row := rows.get(entry.replacement)) is not None:
                row.originals.append(entry.original)
                row.entities.append(entry.entity)
            elif entry.replacement.strip():
                if entry.operator not in traits:
                    traits[entry.operator] = get_traits_by_name(entry.operator)
                rows[entry.replacement] = Row(entry, traits[entry.operator])
        self.rows = list(rows.values())
        for number, row in enumerate(self.rows):
            self._enter_replacement(number, row)
        for listed in self.literal.values():
            listed.sort(key=lambda f: (-len(f.text), f.text))
        for heads in (self.heads, self.short_heads):
            for lengths in heads.values():
                lengths.sort(reverse=True)

    def _enter_replacement(self, number: int, row: Row) -> None:
        kind = row.kind
        form = Form(row.text, row.find_single_original(), row.label, kind, number)
        form.is_ordinary = row.is_ordinary
        keys = form.keys
        if not keys or (kind != TAG and forms.is_unspaced_script(row.text)):
            self.literal.setdefault(row.text[0], []).append(form)
            return
        if kind == TAG:
            token = TOKEN.fullmatch(row.text)
            if token is not None:
                self.sealed[token[2].upper()] = form
            self._enter_vocabulary_words(form, _LABEL, last_flags=_ID)
            if len(keys) > 1:
                self.labels.setdefault(keys[:-1], set()).add((form.head, form.gaps[-1], form.tail))
                self.id_sizes.add(len(keys[-1]))
        else:
            self._enter_vocabulary_words(form, _NAME, last_flags=_NAME)
            if kind in _DERIVING:
                self._enter_name_parts(form)
            elif kind == CODE and not form.is_ordinary:
                self._enter_code(form)
            elif kind == DATE and (date_key := read_date_key(row.text)) is not None:
                self.dates.setdefault(date_key, []).append(form)
        self._enter_form(self.full, self.heads, form, keys)
        # Words that are written as one: all of them, or the last two of a tag.
        joined = "".join(keys)
        if len(keys) > 1 and len(joined) >= LEAST_SLIP:
            self._enter_form(self.full, self.heads, form, (joined,))
            self.vocabulary.setdefault(joined, 0)
        if kind == TAG and len(keys) > 2 and len(joined := keys[-2] + keys[-1]) > 2:
            self._enter_form(self.full, self.heads, form, (*keys[:-2], joined))
            self.vocabulary.setdefault(joined, 0)

    def _enter_name_parts(self, form: Form) -> None:
        """Enter what shorter forms of a name can be recognised by."""
        for key in form.keys:
            self._parts.setdefault(key, []).append(form)
        if form.kind == PERSON:
            self.letters.update([key[0] for key in form.keys])
            for given_name in form.keys[:-1]:
                self._initials.setdefault((given_name[0], form.keys[-1][0]), []).append(form)
        elif "&" in form.text:
            for word in forms.AND:
                self.vocabulary.setdefault(word, _NAME)
        if form.kind == forms.ORGANIZATION and len(form.keys) > 2:
            letters = forms.make_acronym(forms.extract_core_words(form.text))
            if len(letters) > 2:
                self._starting.add(fold(letters))
                self._acronyms.setdefault(letters, []).append(form)
                self.vocabulary.setdefault(fold(letters), _NAME)

    def _enter_form(
        self, table: dict[tuple[str, ...], list[Form]], heads: dict[str, list[int]], form: Form, keys: tuple[str, ...]
    ) -> None:
        table.setdefault(keys, []).append(form)
        lengths = heads.setdefault(keys[0], [])
        if len(keys) not in lengths:
            lengths.append(len(keys))
        if len(keys) > 2:
            self.pairs.add((keys[0], keys[1]))

    def _enter_vocabulary_words(self, form: Form, flags: int, last_flags: int) -> None:
        vocabulary = self.vocabulary
        end = len(form.keys) - 1
        for i, key in enumerate(form.keys):
            vocabulary[key] = vocabulary.get(key, 0) | (last_flags if i == end else flags)
            if len(key) > self.longest:
                self.longest = len(key)
            word = form.words[i]
            if not word.isascii():
                self._accented.add(fold(word, Level.CASE))
                for other in fold_spellings(word)[1:]:
                    self._aliases[other] = key

    def _enter_code(self, form: Form) -> None:
        code = extract_code_characters(form.text)
        self.codes.setdefault(code, []).append(form)
        self.longest_code = max(self.longest_code, len(code))
        beginnings = [code]
        if "PHONE" in form.label or "FAX" in form.label or form.text.startswith("+"):
            short = strip_calling_code(form.text)
            if len(short) > 5 and short.isdigit():
                self.nationals.setdefault(short, []).append(form)
                beginnings.append(short)
        self.code_heads.update(text.lstrip("0")[:size] for text in beginnings for size in (2, 4, 6, 8))

    def is_code_prefix(self, begun: str) -> bool:
        """Tell whether a code may begin like this."""
        bare = begun.lstrip("0")
        return len(bare) < 2 or bare[: min(8, len(bare) // 2 * 2)] in self.code_heads

    # Shorter forms, derived when one of their words is met

    def derive_forms_with_word(self, key: str, rare: bool = True) -> None:
        """Derive the shorter forms of all replacements with a word; ``rare`` includes initials and the like."""
        for form in self._parts.get(key, ()):
            self._derive_forms(form, rare)

    def _derive_forms(self, form: Form, rare: bool = True) -> None:
        if self._expanded.get(form.row, -1) >= rare:
            return
        again = form.row in self._expanded
        self._expanded[form.row] = rare
        if form.target is None:
            return
        for short_form in forms.derive_forms(form, form.target, rare=rare):
            others = self.short.get(short_form.keys, ())
            if again and any(other.row == short_form.row and other.text == short_form.text for other in others):
                continue
            if len(short_form.keys) > 1 or (short_form.keys and len(short_form.keys[0]) > 2):
                self._enter_form(self.short, self.short_heads, short_form, short_form.keys)
                self.short_heads[short_form.keys[0]].sort(reverse=True)

    def derive_forms_of_acronym_owners(self, word: str) -> None:
        """Derive the shorter forms of the organisations that an acronym may stand for."""
        for form in self._acronyms.get(word, ()):
            self._derive_forms(form)

    def derive_forms_with_initials(self, first: str, last: str) -> None:
        """Derive the shorter forms of all people with these initials."""
        for form in self._initials.get((first, last), ()):
            self._derive_forms(form)

    # Reading words

    def read_word(self, word: str) -> tuple[Reading, ...]:
        """Return the readings of a word, the likeliest kind first; most words have none."""
        readings = self._read.get(word)
        if readings is None:
            if len(self._read) > _CACHED:
                self._read.clear()
            readings = self._read[word] = self._compute_readings(word)
        return readings

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
                for base, ending in find_base_forms(low):
                    is_known = base in vocabulary if base.isascii() else base in self._accented
                    if is_known and len(base) > 2 and base.isalpha():
                        bare = fold(base)
                        if vocabulary.get(bare, 0) & _NAME and bare not in candidates:
                            if ending.kept_letters:
                                ending = ending._replace(kept_letters=word[len(word) - len(ending.kept_letters) :])
                            rule = "plural" if ending.kept_letters in ("s", "S") else "inflected"
                            candidates[bare] = Reading(bare, rule, ending)
        elif low[-1] == "s" and vocabulary.get(low[:-1], 0) & (_NAME | _ID if word[:-1].isupper() else _ID):
            candidates[low[:-1]] = Reading(low[:-1], "plural", Ending("de", "m", 0, "s"))
        if candidates:
            return tuple(candidates.values())
        if key[0] == "0" and vocabulary.get(bare := key.lstrip("0"), 0) & _ID:
            return (Reading(bare, "zeros"),)
        if key in vocabulary:
            return (Reading(key, "diacritics"),)
        if key in self._aliases:
            return (Reading(self._aliases[key], "diacritics"),)
        return tuple(Reading(w, "typo") for w in self._find_slips(key))

    def _find_slips(self, key: str) -> Iterator[str]:
        """Return words of replacements, other than numbers, from which one slip leads to ``key``."""
        if len(key) < LEAST_SLIP - 2 or key.isdigit():
            return
        candidates: set[str] = set()
        for size in (len(key) - 1, len(key), len(key) + 1):
            half = size // 2
            candidates.update(self._words_by_half.get((size, key[:half]), ()))
            candidates.update(self._words_by_half.get((-size, key[half - size :]), ()))
        half = len(key) // 2
        crossed = key[: half - 1] + key[half] + key[half - 1] + key[half + 1 :]
        if _may_have_slip(crossed, self.vocabulary.get(crossed, 0)):
            candidates.add(crossed)
        for word in sorted(candidates):
            if is_one_slip(word, key):
                yield word

    @cached_property
    def _words_by_half(self) -> dict[tuple[int, str], list[str]]:
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
        is_initial = len(key) == 1 and key in self.letters
        return is_initial or key in self.heads or key in self._parts or key in self._starting

    def is_label_word(self, key: str) -> bool:
        """Tell whether a folded word belongs to tags only."""
        return not self.vocabulary.get(key, 0) & _NAME

    @cached_property
    def word_beginnings(self) -> set[str]:
        """Beginnings of the longer words of replacements, folded."""
        return {word[:size] for word in self.vocabulary for size in range(2, len(word))}

    def __len__(self) -> int:
        return len(self.rows)


def _is_one_person(originals: Iterable[str], fullest: str) -> bool:
    """Tell whether all names may be of one person: full names agree, single words are part of the fullest."""
    named = [parse_person(normalize_surface(o)) for o in originals]
    if len({gender for _, gender in named if gender}) > 1:
        return False
    full_names, single = [w for w, _ in named if len(w) > 1], [w[0] for w, _ in named if len(w) == 1]
    full = parse_person(normalize_surface(fullest))[0]
    if not all(can_be_same_person(a, b) for i, a in enumerate(full_names) for b in full_names[:i]):
        return False
    if len(full) == 1:
        return all(word == full[0] or are_given_names_alike(word, full[0]) for word in single)
    given_names, family, _ = split_name(full)
    return all(word in given_names or word in family or are_given_names_alike(word, given_names[0]) for word in single)


def _may_have_slip(word: str, flags: int) -> bool:
    if flags & (_NAME | _LABEL):
        return len(word) >= LEAST_SLIP - 1 and word.isalpha()
    return bool(flags & _ID) and len(word) >= 6 and not word.isdigit() and not word.isalpha()


def merge_equal_targets(forms: Sequence[Form]) -> list[Form]:
    """Return one form for each different original; a form without a target stands for several."""
    by_target: dict[str, Form] = {}
    for form in forms:
        name = "\0" if form.target is None else normalize_surface(form.target)
        other = by_target.get(name)
        if other is None or (get_letter_case(other.text) == "upper" and get_letter_case(form.text) != "upper"):
            by_target[name] = form
    return list(by_target.values())
