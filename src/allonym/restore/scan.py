"""Find the replacements of an index in one text, from left to right, in whatever form they occur."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import accumulate
from operator import add

from allonym.restore import gaps
from allonym.restore.exact import find_literals, match_exactly, match_single_word
from allonym.restore.figures import find_codes, find_dates, is_code_ahead, may_begin_code, may_begin_date
from allonym.restore.forms import ADDRESS, CODE, TAG, Form, split_words_and_gaps
from allonym.restore.hits import Hit, Match, choose_hit, count_words, fit_original
from allonym.restore.index import Index, Reading
from allonym.restore.names import find_name_hit
from allonym.restore.sealed import Opener, find_sealed_match
from allonym.restore.tags import find_tag_hit, find_unknown_tag
from allonym.restore.view import View, escape_like
from allonym.restore.words import AFTER_APOSTROPHE, Ending, common_words
from allonym.text.fold import fold

_HYPHEN_BREAK = re.compile(r"[-\u00ad‐‑]?-?[ \t]*\r?\n[ \t>]*\Z")
_BROKEN = re.compile(r"[-\u2010\u2011][ \t]*\r?\n")


class Scan:
    """A search of one text with an index. If ``final`` is false, the text is the beginning of a longer one."""

    def __init__(self, raw: str, index: Index, opener: Opener | None = None, *, final: bool = True) -> None:
        self.view = View(raw)
        self.text = self.view.text
        self.index = index
        self.opener = opener
        self.final = final
        split = split_words_and_gaps(self.text)
        self.gaps = split[0::2]
        self.words = split[1::2]
        self.lows = list(map({w: fold(w) for w in set(self.words)}.__getitem__, self.words))
        self.joined: frozenset[int] = frozenset()
        ends = list(accumulate(map(len, split)))
        self.starts = ends[0::2][: len(self.words)]
        self.ends = ends[1::2]
        self.count = len(self.words)
        if not final and self.count and not self.gaps[-1] and len(self.words[-1]) <= index.longest + 40:
            self.count -= 1  # it may continue
        self.short = False
        self.limit = len(self.text)
        self.held_from = len(raw)

    # The pass

    def find_matches(self, begin: int = 0) -> Iterator[Match]:
        """Yield the disjoint matches from offset ``begin`` of the text on, from left to right.

        Afterwards ``held`` is the offset of the text from which nothing is decided yet.
        """
        view = self.view
        covered_until = 0
        others = find_literals(self) if self.index.literal else iter(())
        ahead = next(others, None)
        for i in self._list_start_words():
            if self.starts[i] < covered_until or (begin and view.get_text_start(self.starts[i]) < begin):
                continue
            while ahead is not None and ahead.start < view.get_text_start(self.starts[i]):
                if ahead.start >= max(begin, view.get_text_start(covered_until)):
                    yield ahead
                    covered_until = max(covered_until, self._find_place(ahead.end))
                ahead = next(others, None)
            if self.starts[i] < covered_until:
                continue
            self.short = False
            hit = self._find_best_match(i, covered_until)
            if self.short and not self.final:
                self.held_from = view.get_text_start(max(covered_until, min(self._find_token_start(i), self.limit)))
                return
            if hit is None:
                continue
            yield hit
            covered_until = max(covered_until, self._find_place(hit.end))
        while ahead is not None:
            if ahead.start >= max(begin, view.get_text_start(covered_until)):
                yield ahead
                covered_until = max(covered_until, self._find_place(ahead.end))
            ahead = next(others, None)
        if not self.final:
            place = len(self.text)
            if self.count < len(self.words):
                place = self.starts[self.count]
                place = self._find_token_start(self.count)
            else:
                gap = self.gaps[-1] if self.gaps else ""
                place -= len(_split_tail(gap))
            self.held_from = view.get_text_start(max(covered_until, min(place, self.limit)))

    def _find_place(self, raw: int) -> int:
        """Return the first offset of the view that is not before an offset of the text."""
        low, high = 0, len(self.text)
        if self.view.text is self.view.raw:
            return raw
        while low < high:
            middle = (low + high) // 2
            if self.view.get_text_start(middle) < raw:
                low = middle + 1
            else:
                high = middle
        return low

    def _find_token_start(self, word_index: int) -> int:
        """Return the offset of the signs before a token that may belong to it."""
        return self.starts[word_index] - len(_split_tail(self.gaps[word_index]))

    def _list_start_words(self) -> list[int]:
        """Return the indexes of the words with which a replacement may begin."""
        index, words = self.index, self.words
        begins: set[str] = set()
        codes: set[str] = set()
        dates = bool(index.dates)
        for word in set(words):
            readings = index.read_word(word)
            if any(index.may_begin_replacement(r.key) for r in readings):
                begins.add(word)
            elif (word[0].isdigit() or word.isupper()) and may_begin_code(self, word):
                codes.add(word)
            if dates and word not in begins and may_begin_date(word):
                begins.add(word)
        hot = [i for i in range(self.count) if words[i] in begins] if begins else []
        if codes:
            hot = sorted({*hot, *(i for i in range(self.count) if words[i] in codes and is_code_ahead(self, i))})
        lows = self.lows
        joined = [
            i
            for i, is_in_vocabulary in enumerate(map(index.vocabulary.get, map(add, lows, lows[1:])))
            if is_in_vocabulary
        ]
        if _BROKEN.search(self.text):
            for i in range(1, self.count):
                broken = "\n" in self.gaps[i] and len(self.gaps[i]) < 8 and _HYPHEN_BREAK.fullmatch(self.gaps[i])
                if broken and index.read_word(words[i - 1] + words[i]):
                    joined.append(i - 1)
        encrypted = bool(index.sealed) or self.opener is not None
        sealed = [i for i, low in enumerate(lows) if low == "e1"] if encrypted else []
        if not self.final and self.count and words[self.count - 1] not in begins:
            last = self.count - 1  # its second half may still arrive
            if self.starts[last] < len(self.text) and self._may_go_on(last):
                joined.append(last)
        if joined or sealed:
            self.joined = frozenset(joined)
            hot = sorted({*hot, *(i for i in joined if i < self.count), *(self._find_label_start(i) for i in sealed)})
        return hot

    def _find_label_start(self, word_index: int) -> int:
        """Return the first word of the label before the mark of an encrypted mention."""
        word = word_index
        while word > 0 and (self.gaps[word] == "_" or (word == word_index and self.gaps[word].strip() == ":")):
            word -= 1
        return word

    # One place

    def _find_best_match(self, word_index: int, covered_until: int) -> Match | None:
        index = self.index
        if self.words[word_index].lower() != "e1" and (index.sealed or self.opener is not None):
            sealed = find_sealed_match(self, word_index, covered_until)
            if sealed is not None or self.short:
                return sealed
        sealed = match_exactly(self, word_index, covered_until)
        if sealed is None and word_index not in self.joined:
            sealed = match_single_word(self, word_index, covered_until)
        if sealed is not None:
            return sealed
        hits = list(self._find_word_hits(word_index, index.heads, index.full))
        if not any(not h.rules for h in hits) and not self._is_whole_replacement(word_index, hits):
            self._expand_at(word_index)
            hits += self._find_word_hits(word_index, index.short_heads, index.short)
            if index.codes:
                hits += find_codes(self, word_index)
            if index.dates:
                hits += find_dates(self, word_index)
        hits = [h for h in hits if h.start >= covered_until]
        if not hits:
            return find_unknown_tag(self, word_index, covered_until)
        longest = max(h.last for h in hits)
        hits = [h for h in hits if h.last == longest]
        cost = min(h.cost() for h in hits)
        hits = [h for h in hits if h.cost() == cost]
        hit = choose_hit(hits)
        if hit is not None and hit.last - word_index > 1 and hit.rules and self._is_crossed_by_exact(word_index, hit):
            return None
        if not self.final and hits[0].end + _get_allowed_slips(hits[0].form) > len(self.text):
            self.short = True
        if hit is None:
            first = hits[0]
            why = f"a replacement for {first.form.label} stands for several entities and was left"
            return self._make_match(first, None, why)
        return self._make_match(hit, hit.out if hit.out is not None else fit_original(hit))

    def _is_whole_replacement(self, word_index: int, hits: list[Hit]) -> bool:
        """Tell whether several words are a whole replacement, and the next word belongs to none."""
        last = max((h.last for h in hits), default=word_index)
        if last - word_index < 2:
            return False
        if last >= self.count:
            self.short = self.short or not self.final
            return True
        return not self.index.read_word(self.words[last])

    def _is_crossed_by_exact(self, word_index: int, hit: Hit) -> bool:
        """Tell whether another replacement, letter by letter, begins inside a hit and ends after it."""
        for j in range(word_index + 1, min(hit.last, self.count)):
            for other in self._find_word_hits(j, self.index.heads, self.index.full):
                if not other.rules and other.last > hit.last:
                    return True
        return False

    def _make_match(self, hit: Hit, out: str | None, why: str = "") -> Match:
        b = self.view.get_text_end(hit.end)
        a = self.view.find_beginning(self.view.get_text_start(hit.start), b, hit.form.text)
        kinds = self.view.list_escapes(a, b)
        rules = list(dict.fromkeys(r for r in hit.rules if r))
        rules += [k for k, _ in kinds if k not in rules]
        if out is not None and kinds:
            out = escape_like(out, kinds)
        form = hit.form
        is_whole = not form.rule and not any(hit.endings)
        rule = "+".join(dict.fromkeys(rules)) or "exact"
        keys = len(form.keys)
        return Match(a, b, out, rule, form.label, form.row, is_whole, keys, why, hit.sure)

    # Words

    def _read_steps(self, word_index: int) -> Iterator[tuple[Reading, int]]:
        """Yield the readings of word ``word_index``, each with the index of the next word."""
        readings = self.index.read_word(self.words[word_index])
        for reading in readings:
            yield reading, word_index + 1
        apostrophe = bool(readings) and self.gaps[word_index + 1] in ("'", "’", "ʼ")
        if apostrophe and word_index + 1 >= self.count:
            self.short = True
        elif apostrophe:
            ending = self.words[word_index + 1]
            if ending in AFTER_APOSTROPHE and not self.index.is_label_word(readings[0].key):
                ending_kept = Ending("pl", "", AFTER_APOSTROPHE[ending])
                for reading in readings:
                    if not reading.rule:
                        yield Reading(reading.key, "inflected", ending_kept), word_index + 2
        if word_index + 1 < self.count:
            if word_index not in self.joined:
                return
            gap = self.gaps[word_index + 1]
            if len(gap) <= gaps.LONGEST_GAP and (not gap.strip() or _HYPHEN_BREAK.match(gap)):
                both = self.words[word_index] + self.words[word_index + 1]
                key = fold(both)
                broken = bool(gap.strip())
                if gap.count("\n") > 1:
                    return
                if self.index.is_known_word(key) and (broken or self._is_split_word(word_index, key)):
                    yield Reading(key, "hyphenation" if broken else "spacing"), word_index + 2
                elif broken and not readings:
                    for reading in self.index.read_word(both):
                        yield Reading(reading.key, f"hyphenation {reading.rule}", reading.ending), word_index + 2
        elif not self.final and self._may_go_on(word_index):
            self.short = True

    def _may_go_on(self, word_index: int) -> bool:
        """Tell whether the second half of the last word may still arrive; after a hyphen, this holds for any word."""
        gap = self.gaps[word_index + 1] if word_index + 1 < len(self.gaps) else ""
        if len(gap) > gaps.LONGEST_GAP:
            return False
        if gap.strip():
            return bool(_HYPHEN_BREAK.match(gap) or _HYPHEN_BREAK.match(gap + "\n"))
        return self.index.is_word_prefix(fold(self.words[word_index]))

    def _is_split_word(self, word_index: int, key: str) -> bool:
        """Tell whether two words are one word with a space inserted."""
        a, b = self.words[word_index], self.words[word_index + 1]
        if self.index.is_label_word(key):
            return True
        common = common_words()
        if len(key) < 5 or (fold(a) in common and fold(b) in common):
            return False
        return b.islower() or b.isdigit() or (a.isupper() and b.isupper())

    def _find_word_hits(
        self, word_index: int, heads: dict[str, list[int]], table: dict[tuple[str, ...], list[Form]]
    ) -> Iterator[Hit]:
        """Yield hits by words, the longest first, down to the first length that fits letter by letter."""
        word = self.words[word_index]
        for first, after in self._read_steps(word_index):
            if table is self.index.short and len(first.key) == 1 and not (len(word) == 1 and word.isupper()):
                continue  # an initial must be a capital letter
            for length in heads.get(first.key, ()):
                exact = False
                for path, last in self._find_paths(first, after, length):
                    forms = table.get(tuple([r.key for r in path]))
                    for form in forms or ():
                        hit = self._check_hit(word_index, last, form, path)
                        if hit is not None:
                            exact = exact or not hit.rules
                            yield hit
                if exact:
                    break

    def _find_paths(self, first: Reading, after: int, length: int) -> list[tuple[list[Reading], int]]:
        """Return the readings of ``length`` words from a first on, each with the index of the next word."""
        paths = [([first], after)]
        for _ in range(length - 1):
            longer = []
            for path, next_word in paths:
                if next_word >= self.count:
                    self.short = True
                    continue
                gap = self.gaps[next_word]
                if len(gap) > gaps.LONGEST_GAP:
                    continue
                longer += [([*path, reading], step) for reading, step in self._read_steps(next_word)]
            paths = longer[:16]
        return paths

    def _check_hit(self, word_index: int, last: int, form: Form, path: list[Reading]) -> Hit | None:
        """Return the hit if gaps, neighbours and letters allow it."""
        start, end = self.starts[word_index], self.ends[last - 1]
        rules = [form.rule] if form.rule else []
        rules += [rule for r in path if r.rule for rule in r.rule.split()]
        infix = ""
        if len(path) == len(form.keys):
            word = word_index
            for j, pattern in enumerate(form.gaps):
                word += count_words(path[j])
                infix = self.gaps[word]
                rule = gaps.compare_gaps(pattern, infix, form.kind)
                if rule is None:
                    return None
                if rule:
                    rules.append(rule)
        else:
            rules.append("joined")
            infix = self.gaps[last - 1] if last - 1 > word_index else ""
        typos = sum("typo" in r.rule for r in path)
        if (form.kind == CODE and rules) or typos > 1 or (typos and form.kind == ADDRESS):
            return None
        endings: list[Ending | None] = [r.ending for r in path]
        if form.kind == TAG:
            if any(r.ending is not None for r in path[:-1]) and not typos and any(e for e in endings[:-1]):
                rules = ["typo" if r in ("plural", "inflected") else r for r in rules]
                endings[:-1] = [None] * (len(endings) - 1)
            hit = find_tag_hit(self, form, start, end, last, rules, endings, infix)
            if hit is not None and form.ordinary:
                hit.sure = False
            return hit
        return find_name_hit(self, form, start, end, last, rules, endings)

    def find_token_after(self, place: int) -> int:
        from bisect import bisect_left

        return bisect_left(self.starts, place)

    def _expand_at(self, word_index: int) -> None:
        """Derive the shorter forms that may begin at word ``word_index``."""
        index = self.index
        for reading, after in self._read_steps(word_index):
            near = after >= self.count or (
                len(self.gaps[after]) <= gaps.LONGEST_GAP and bool(index.read_word(self.words[after]))
            )
            index.expand_word(reading.key, near)
        word = self.words[word_index]
        if len(word) == 1 and word.isupper():
            j = word_index + 1
            while j < self.count and len(self.gaps[j]) <= gaps.LONGEST_GAP and j - word_index < 6:
                other = self.words[j]
                if len(other) > 2:
                    for reading in index.read_word(other):
                        index.expand_word(reading.key)
                    break
                index.expand_initials(fold(word), fold(other[0]))
                j += 1
            if j >= self.count:
                self.short = True
        elif word.isupper() and len(word) > 2:
            index.expand_acronym(word)

    # Numbers, dates, encrypted mentions


def _get_allowed_slips(form: Form) -> int:
    return 8 if form.kind == TAG else 4


def _split_tail(gap: str) -> str:
    """Return the signs at the end of a gap that may belong to the next token."""
    position = len(gap)
    low = max(0, position - 16)
    keep = position
    while position > low:
        position -= 1
        if not gap[position].isspace():
            keep = position
        elif keep - position > 4:
            break
    return gap[keep:]
