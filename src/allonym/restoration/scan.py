"""Find the replacements of an index in one text, from left to right, in whatever form they occur."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from itertools import accumulate
from operator import add

from allonym.restoration import codes, gaps, hits, translated
from allonym.restoration.codes import is_date_word
from allonym.restoration.forms import ADDRESS, CLOSING, CODE, DATE, OPENING, TAG, Form, split_words_and_gaps
from allonym.restoration.hits import Hit, Match, describe_shared
from allonym.restoration.index import Index, Reading
from allonym.restoration.tag_parts import read_tag_part
from allonym.restoration.view import View, escape_like
from allonym.text.fold import fold
from allonym.text.inflection import AFTER_APOSTROPHE, Ending
from allonym.text.prose import read_common_words

_HYPHEN_BREAK = re.compile(r"[-\u00ad‐‑]?-?[ \t]*\r?\n[ \t>]*\Z")
_SIGNS = re.compile(r"(?:\S\s{0,4})*\Z")
_BROKEN = re.compile(r"[-\u2010\u2011][ \t]*\r?\n")


class Scan:
    """A search of one text with an index. If ``is_final`` is false, the text is the beginning of a longer one."""

    def __init__(self, raw: str, index: Index, key: bytes | str | None = None, *, final: bool = True) -> None:
        self.view = View(raw)
        self.text = self.view.text
        self.index = index
        self.key = key
        self.is_final = final
        split = split_words_and_gaps(self.text)
        self.gaps = split[0::2]
        self.words = split[1::2]
        self.lows = list(map({w: fold(w) for w in set(self.words)}.__getitem__, self.words))
        self.joined: frozenset[int] = frozenset()
        ends = list(accumulate(map(len, split)))
        self.starts = ends[0::2]  # of the words, and the end of the text
        self.ends = ends[1::2]
        self.count = len(self.words)
        if not final and self.count and not self.gaps[-1] and len(self.words[-1]) <= index.longest + 40:
            self.count -= 1  # it may continue
        self.is_short = False
        self.limit = len(self.text)
        self.held_from = len(raw)

    # The pass

    def find_matches(self, begin: int = 0) -> Iterator[Match]:
        """Yield the disjoint matches from offset ``begin`` of the text on, from left to right.

        Afterwards ``held_from`` is the offset of the text from which nothing is decided yet.
        """
        view = self.view
        covered_until = 0
        literals = self._find_wordless_replacements() if self.index.literal else iter(())
        literal = next(literals, None)
        for i in [*self._list_start_words(), len(self.words)]:
            start = self.starts[i]
            if start < covered_until or (begin and view.get_text_start(start) < begin):
                continue
            while literal is not None and literal.start < view.get_text_start(start):
                if literal.start >= max(begin, view.get_text_start(covered_until)):
                    yield literal
                    covered_until = max(covered_until, self._find_view_offset(literal.end))
                literal = next(literals, None)
            if start < covered_until or i == len(self.words):
                continue
            self.is_short = False
            match = self._find_best_match(i, covered_until)
            if self.is_short and not self.is_final:
                self.held_from = view.get_text_start(max(covered_until, min(self._find_token_start(i), self.limit)))
                return
            if match is not None:
                yield match
                covered_until = max(covered_until, self._find_view_offset(match.end))
        if not self.is_final:
            place = min(self._find_token_start(self.count), self.limit)
            self.held_from = view.get_text_start(max(covered_until, place))

    def _find_view_offset(self, raw: int) -> int:
        """Return the first offset of the view that is not before an offset of the text."""
        if self.view.text is self.view.raw:
            return raw
        return bisect_left(range(len(self.text)), raw, key=self.view.get_text_start)

    def _find_token_start(self, word_index: int) -> int:
        """Return the offset of the signs before a token that may belong to it."""
        signs = _SIGNS.search(self.gaps[word_index][-16:])
        return self.starts[word_index] - (len(signs[0]) if signs else 0)

    def _list_start_words(self) -> list[int]:
        """Return the indexes of the words with which a replacement may begin."""
        index, words = self.index, self.words
        begins: set[str] = set()
        code_words: set[str] = set()
        dates = bool(index.dates)
        for word in set(words):
            readings = index.read_word(word)
            if any(index.may_begin_replacement(r.key) for r in readings):
                begins.add(word)
            elif (word[0].isdigit() or word.isupper()) and codes.may_begin_code(self, word):
                code_words.add(word)
            if dates and word not in begins and codes.may_begin_date(word):
                begins.add(word)
        hot = [i for i in range(self.count) if words[i] in begins] if begins else []
        if code_words:
            ahead = (i for i in range(self.count) if words[i] in code_words and codes.is_code_ahead(self, i))
            hot = sorted({*hot, *ahead})
        if index.labels:
            labelled = [i for i in range(self.count) if translated.may_begin_translated_tag(self, i)]
            hot = sorted({*hot, *labelled}) if labelled else hot
        lows = self.lows
        pairs = enumerate(map(index.vocabulary.get, map(add, lows, lows[1:])))
        joined = [i for i, is_known in pairs if is_known]
        if _BROKEN.search(self.text):
            for i in range(1, self.count):
                broken = "\n" in self.gaps[i] and len(self.gaps[i]) < 8 and _HYPHEN_BREAK.fullmatch(self.gaps[i])
                if broken and index.read_word(words[i - 1] + words[i]):
                    joined.append(i - 1)
        encrypted = bool(index.sealed) or self.key is not None
        sealed = [i for i, low in enumerate(lows) if low == "e1"] if encrypted else []
        if not self.is_final and self.count and words[self.count - 1] not in begins:
            last = self.count - 1  # its second half may still arrive
            if self.starts[last] < len(self.text) and self._may_word_continue(last):
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
        if self.words[word_index].lower() != "e1" and (index.sealed or self.key is not None):
            match = codes.find_encrypted_match(self, word_index, covered_until)
            if match is not None or self.is_short:
                return match
        match = self._match_exactly(word_index, covered_until)
        if match is None and word_index not in self.joined:
            match = self._match_single_word(word_index, covered_until)
        if match is not None:
            return match
        candidates = list(self._find_word_hits(word_index, index.heads, index.full))
        if not any(not h.rules for h in candidates) and not self._is_whole_replacement(word_index, candidates):
            self._derive_forms_at(word_index)
            candidates += self._find_word_hits(word_index, index.short_heads, index.short)
            if index.codes:
                candidates += codes.find_regrouped_codes(self, word_index)
            if index.dates:
                candidates += codes.find_reformatted_dates(self, word_index)
        candidates = [h for h in candidates if h.start >= covered_until]
        if index.labels and all("typo" in h.rules for h in candidates):
            match = translated.find_translated_tag(self, word_index, covered_until)
            if match is not None or (self.is_short and not self.is_final):
                return match
        if not candidates:
            return hits.find_unknown_tag(self, word_index, covered_until)
        longest = max(h.last for h in candidates)
        candidates = [h for h in candidates if h.last == longest]
        cost = min(h.cost() for h in candidates)
        candidates = [h for h in candidates if h.cost() == cost]
        hit = hits.pick_unambiguous_hit(candidates)
        if hit is not None and hit.last - word_index > 1 and hit.rules and self._is_crossed_by_exact(word_index, hit):
            return None
        self.mark_if_text_short(candidates[0].end + (8 if candidates[0].form.kind == TAG else 4))
        if hit is None:
            return self._make_match(candidates[0], None, describe_shared(candidates[0].form))
        return self._make_match(hit, hits.fit_original(hit))

    def _is_whole_replacement(self, word_index: int, candidates: list[Hit]) -> bool:
        """Tell whether several words are a whole replacement, and the next word belongs to none."""
        last = max((h.last for h in candidates), default=word_index)
        if last - word_index < 2:
            return False
        if last >= self.count:
            self.is_short = self.is_short or not self.is_final
            return True
        return not self._may_be_name_word(last)

    def _is_crossed_by_exact(self, word_index: int, hit: Hit) -> bool:
        """Tell whether another replacement, letter by letter, begins inside a hit and ends after it."""
        for j in range(word_index + 1, min(hit.last, self.count)):
            for other in self._find_word_hits(j, self.index.heads, self.index.full):
                if not other.rules and other.last > hit.last:
                    return True
        return False

    def _make_match(self, hit: Hit, out: str | None, why: str = "") -> Match:
        form = hit.form
        a, b, escapes = self.view.map_form_to_raw(hit.start, hit.end, form.text)
        rules = dict.fromkeys([*filter(None, hit.rules), *(kind for kind, _ in escapes)])
        if out is not None and escapes:
            out = escape_like(out, escapes)
        is_whole = not form.rule and not any(hit.endings)
        rule = "+".join(rules) or "exact"
        return Match(a, b, out, rule, form.label, form.row, is_whole, len(form.keys), why, hit.is_sure)

    # Letter by letter, which is fast

    def _match_exactly(self, word_index: int, covered_until: int) -> Match | None:
        """Match a replacement letter by letter at word ``word_index``, if no longer one is possible there."""
        index, lows = self.index, self.lows
        for length in index.heads.get(lows[word_index], ()):
            last = word_index + length
            if last > self.count:
                if word_index + 1 < self.count and not self._is_pair_start(word_index):
                    continue
                return None
            forms = index.full.get(tuple(lows[word_index:last]))
            if forms is None:
                if length > 1 and self._may_be_name_word(word_index + 1):
                    return None  # perhaps in another form
                continue
            form, text = forms[0], self.text
            start, end = self.starts[word_index] - len(form.head), self.ends[last - 1] + len(form.tail)
            if len(forms) > 1 or form.target is None or form.is_ordinary or start < covered_until:
                return None
            if end - start != len(form.text) or not text.startswith(form.text, start):
                return None
            if not self.is_final and not self._is_end_proven(form, end):
                return None
            if last < self.count and text[end] in "'’ʼ" and lows[last] in AFTER_APOSTROPHE:
                return None
            if form.kind == TAG and text[end : end + 1] == "." and read_tag_part(form, text, end) is not None:
                return None
            a, b = self.view.get_text_start(start), self.view.get_text_end(end)
            if not _is_separate(form, text, start, end) or self.view.list_escapes(a, b):
                return None
            return Match(a, b, form.target, "exact", form.label, form.row, True, length)
        return None

    def _match_single_word(self, word_index: int, covered_until: int) -> Match | None:
        """Match one word of a name letter by letter, if nothing longer and nothing else is possible there."""
        index, word, key = self.index, self.words[word_index], self.lows[word_index]
        if len(key) < 3 or key in index.heads or not word.isalpha() or not word.istitle() or key in read_common_words():
            return None
        if word_index + 1 >= self.count or self._may_be_name_word(word_index + 1):
            return None
        if index.dates and is_date_word(word):
            return None
        start, end = self.starts[word_index], self.ends[word_index]
        after = self.text[end]
        if after in "'’ʼ-‐‑" or start < covered_until or (not self.is_final and end + 8 > len(self.text)):
            return None
        index.derive_forms_with_word(key, False)
        forms = index.short.get((key,), ())
        if len(forms) != 1 or forms[0].text != word or forms[0].target is None or index.short_heads.get(key) != [1]:
            return None
        a, b = self.view.get_text_start(start), self.view.get_text_end(end)
        if self.view.list_escapes(a, b) or not gaps.is_separate_name(self.text, start, end, False):
            return None
        form = forms[0]
        return Match(a, b, form.target, form.rule, form.label, form.row, False)

    def _is_pair_start(self, word_index: int) -> bool:
        """Tell whether this word and the next may be the first two of a longer replacement."""
        if not self.joined.isdisjoint((word_index, word_index + 1)):
            return True
        first, readings = self.lows[word_index], self.index.read_word(self.words[word_index + 1])
        return any((first, reading.key) in self.index.pairs for reading in readings)

    def _may_be_name_word(self, word_index: int) -> bool:
        """Tell whether a word, in any form or broken over two lines, may belong to a replacement."""
        return word_index in self.joined or bool(self.index.read_word(self.words[word_index]))

    def _is_end_proven(self, form: Form, end: int) -> bool:
        """Tell whether the text so far proves that a replacement ends at ``end``."""
        text = self.text
        if end + 8 <= len(text):
            return True
        after = text[end : end + 1]
        if form.kind == TAG and form.tail and form.tail[-1] in CLOSING:
            return bool(after) and after != form.tail[-1]
        return bool(after) and after in " \n,;!?)"

    def _find_wordless_replacements(self) -> Iterator[Match]:
        """Yield replacements without words, or in scripts without spaces, that occur letter by letter."""
        index, text, view = self.index, self.text, self.view
        first = re.compile("[" + "".join(re.escape(c) for c in index.literal) + "]")
        longest = max(len(f.text) for listed in index.literal.values() for f in listed)
        covered_until = 0
        for match in first.finditer(text):
            start = match.start()
            if start < covered_until:
                continue
            if not self.is_final and start + longest + 1 > len(text):
                self.limit = start
                self.count = min(self.count, self.find_word_after(start))
                return
            for form in index.literal[match[0]]:
                end = start + len(form.text)
                if not text.startswith(form.text, start):
                    continue
                a, z = form.text[0], form.text[-1]
                if not a.isalnum() and a not in OPENING and text[start - 1 : start] == a and start:
                    continue
                if not z.isalnum() and z not in CLOSING and text[end : end + 1] == z:
                    continue
                neighbours = ((a, text[start - 1 : start] if start else ""), (z, text[end : end + 1]))
                if any(c.isascii() and c.isalnum() and neighbour.isalnum() for c, neighbour in neighbours):
                    continue
                begin, stop, escapes = view.map_form_to_raw(start, end, form.text)
                out = form.target if form.target is None else escape_like(form.target, escapes)
                rule = "+".join(kind for kind, _ in escapes) or "exact"
                yield Match(begin, stop, out, rule, form.label, form.row, why="" if out else describe_shared(form))
                covered_until = end
                break

    # Words

    def _list_readings_with_next_index(self, word_index: int) -> Iterator[tuple[Reading, int]]:
        """Yield the readings of word ``word_index``, each with the index of the next word."""
        readings = self.index.read_word(self.words[word_index])
        for reading in readings:
            yield reading, word_index + 1
        ahead = word_index + 2
        if readings and ahead < self.count and self.lows[ahead - 1] == "id" and self.gaps[ahead].strip()[:1] == "=":
            yield Reading(readings[0].key, "attribute"), ahead  # <PERSON id="2">
        elif readings and ahead >= self.count and self.text[self.starts[word_index] - 1] in OPENING:
            self.is_short = True
        apostrophe = bool(readings) and self.gaps[word_index + 1] in ("'", "’", "ʼ")
        if apostrophe and word_index + 1 >= self.count:
            self.is_short = True
        elif apostrophe:
            ending = self.words[word_index + 1]
            if ending in AFTER_APOSTROPHE and not self.index.is_label_word(readings[0].key):
                inflected = Ending("pl", "", AFTER_APOSTROPHE[ending])
                for reading in readings:
                    if not reading.rule:
                        yield Reading(reading.key, "inflected", inflected), word_index + 2
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
                if key in self.index.vocabulary and (broken or self._is_split_word(word_index, key)):
                    yield Reading(key, "hyphenation" if broken else "spacing"), word_index + 2
                elif broken and not readings:
                    for reading in self.index.read_word(both):
                        yield Reading(reading.key, f"hyphenation {reading.rule}", reading.ending), word_index + 2
        elif not self.is_final and self._may_word_continue(word_index):
            self.is_short = True

    def _may_word_continue(self, word_index: int) -> bool:
        """Tell whether the second half of the last word may still arrive; after a hyphen, this holds for any word."""
        gap = self.gaps[word_index + 1]
        if len(gap) > gaps.LONGEST_GAP:
            return False
        if gap.strip():
            return bool(_HYPHEN_BREAK.match(gap) or _HYPHEN_BREAK.match(gap + "\n"))
        return fold(self.words[word_index]) in self.index.word_beginnings

    def _is_split_word(self, word_index: int, key: str) -> bool:
        """Tell whether two words are one word with a space inserted."""
        a, b = self.words[word_index], self.words[word_index + 1]
        if self.index.is_label_word(key):
            return True
        common = read_common_words()
        if len(key) < 5 or (fold(a) in common and fold(b) in common):
            return False
        return b.islower() or b.isdigit() or (a.isupper() and b.isupper())

    def _find_word_hits(
        self, word_index: int, heads: dict[str, list[int]], table: dict[tuple[str, ...], list[Form]]
    ) -> Iterator[Hit]:
        """Yield candidates by words, the longest first, down to the first length that fits letter by letter."""
        word = self.words[word_index]
        for first, after in self._list_readings_with_next_index(word_index):
            if table is self.index.short and len(first.key) == 1 and not (len(word) == 1 and word.isupper()):
                continue  # an initial must be a capital letter
            for length in heads.get(first.key, ()):
                exact = False
                for path, last in self._find_reading_paths(first, after, length):
                    forms = table.get(tuple([r.key for r in path]))
                    for form in forms or ():
                        hit = self._make_hit_if_valid(word_index, last, form, path)
                        if hit is not None:
                            exact = exact or not hit.rules
                            yield hit
                if exact:
                    break

    def _find_reading_paths(self, first: Reading, after: int, length: int) -> list[tuple[list[Reading], int]]:
        """Return the readings of ``length`` words from a first on, each with the index of the next word."""
        paths = [([first], after)]
        for _ in range(length - 1):
            longer = []
            for path, next_word in paths:
                if next_word >= self.count:
                    self.is_short = True
                    continue
                gap = self.gaps[next_word]
                if len(gap) > gaps.LONGEST_GAP:
                    continue
                longer += [([*path, reading], step) for reading, step in self._list_readings_with_next_index(next_word)]
            paths = longer[:16]
        return paths

    def _make_hit_if_valid(self, word_index: int, last: int, form: Form, path: list[Reading]) -> Hit | None:
        """Return the hit if gaps, neighbours and letters allow it."""
        start, end = self.starts[word_index], self.ends[last - 1]
        rules = [form.rule] if form.rule else []
        rules += [rule for r in path for rule in r.rule.split()]
        infix = ""
        if len(path) == len(form.keys):
            word = word_index
            for j, pattern in enumerate(form.gaps):
                word += hits.count_words(path[j])
                infix = self.gaps[word]
                rule = gaps.find_gap_rule(pattern, infix, form.kind)
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
        if typos and form.kind == DATE and any(map(is_date_word, self.words[word_index:last])):
            return None  # another month, or the same in another language
        endings = [r.ending for r in path]
        hit = Hit(start, end, last, form, rules, endings, self.text[start:end])
        if form.kind != TAG:
            return hits.fit_name_hit(self, hit)
        if not typos and any(endings[:-1]):
            hit.rules = ["typo" if r in ("plural", "inflected") else r for r in rules]
            hit.endings = [*[None] * (len(endings) - 1), endings[-1]]
        return hits.fit_tag_hit(self, hit, infix)

    def find_word_after(self, place: int) -> int:
        """Return the index of the first word that does not begin before an offset."""
        return bisect_left(self.starts, place)

    def mark_if_text_short(self, end: int) -> None:
        """Note that the text is too short for a decision that needs it up to ``end``, if more of it may follow."""
        self.is_short = self.is_short or (not self.is_final and end > len(self.text))

    def _derive_forms_at(self, word_index: int) -> None:
        """Derive the shorter forms that may begin at word ``word_index``."""
        index = self.index
        for reading, after in self._list_readings_with_next_index(word_index):
            rare = after >= self.count
            if not rare and len(self.gaps[after]) <= gaps.LONGEST_GAP:
                rare = bool(index.read_word(self.words[after]))
            index.derive_forms_with_word(reading.key, rare)
        word = self.words[word_index]
        if len(word) == 1 and word.isupper():
            j = word_index + 1
            while j < self.count and len(self.gaps[j]) <= gaps.LONGEST_GAP and j - word_index < 6:
                other = self.words[j]
                if len(other) > 2:
                    for reading in index.read_word(other):
                        index.derive_forms_with_word(reading.key)
                    break
                index.derive_forms_with_initials(fold(word), fold(other[0]))
                j += 1
            if j >= self.count:
                self.is_short = True
        elif word.isupper() and len(word) > 2:
            index.derive_forms_of_acronym_owners(word)


def _is_separate(form: Form, text: str, start: int, end: int) -> bool:
    if form.kind == TAG:
        return gaps.find_tag_reach(form, text, start + len(form.head), end - len(form.tail), "") == (start, end, "")
    is_plain = form.kind != ADDRESS and not form.head and not form.tail and len(form.text) > 1
    return is_plain and gaps.is_separate_name(text, start, end, True)
