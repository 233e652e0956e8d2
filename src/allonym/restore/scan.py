"""Finding the replacements of an index in one text, from left to right, each in the form in which it stands."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from operator import add
from typing import NamedTuple

from allonym.replace.calendars import named
from allonym.replace.dates import LONGEST, read_date
from allonym.restore import fit, gaps
from allonym.restore.gaps import Reach
from allonym.restore.forms import ADDRESS, CODE, DATE, PERSON, TAG, Form, pieces
from allonym.restore.index import Index, Reading, targets
from allonym.restore.sealed import Opener, Sealed, sealed_at
from allonym.restore.view import View, escaped
from allonym.restore.words import AFTER_APOSTROPHE, Ending, common_words, folded, lowered

_HYPHEN_BREAK = re.compile(r"[-\u00ad‐‑]?-?[ \t]*\r?\n[ \t>]*\Z")
_BROKEN = re.compile(r"[-\u2010\u2011][ \t]*\r?\n")
_SPACED = re.compile(r"[^\W\d_]\.\s+[^\W\d_]\b")
_CLOSE_INITIALS = re.compile(r"(?<=[^\W\d_])\.(?=[^\W\d_]\.)")
_IN_CODES = frozenset(" -./()\u00a0\u2009\u202f–‑,'’+\n")
_IN_DATES = re.compile(r"[\s\-/.,–:ºª'’]{0,5}\Z")
_DATE_WORDS = 12
_HEX = frozenset("0123456789ABCDEF")
_FAR = 48
"""Characters after a match that may decide about it."""
_COST = {"": 0, "case": 1, "spacing": 2, "signs": 2, "quotes": 2, "joined": 3, "hyphenation": 3, "plural": 3}
_COST |= {"diacritics": 3, "shortened": 4, "initials": 5, "reversed": 5, "acronym": 5, "inflected": 6, "typo": 10}


class Match(NamedTuple):
    """A replacement that was found.

    Attributes:
        start, end: in the text that was searched.
        out: what is put there; None where it is left.
        rule: how it was known, ``exact`` or rules joined by ``+``.
        label: of the entity.
        row: number of the replacement in the index; -1: none of it.
        whole: whether it is the replacement itself in some writing, not a shorter form.
        words: how many words it has.
        why: why it is left.
        sure: whether nothing else can stand there; if not, only the whole text can tell.
        shape, other: of a tag, see :class:`allonym.restore.gaps.Reach`; places of the text.
    """

    start: int
    end: int
    out: str | None
    rule: str
    label: str
    row: int = -1
    whole: bool = True
    words: int = 1
    why: str = ""
    sure: bool = True
    shape: str = ""
    other: tuple[int, int] | None = None

    def __repr__(self) -> str:
        return f"Match({self.start}, {self.end}, {self.rule!r}, {self.label!r})"


@dataclass(slots=True)
class _Hit:
    """A candidate, in places of the view."""

    start: int
    end: int
    last: int  # number of the token after it
    form: Form
    rules: list[str]
    endings: list[object]
    seen: str
    out: str | None = None
    sure: bool = True
    shape: str = ""
    other: tuple[int, int] | None = None

    def cost(self) -> int:
        return sum(_COST.get(r, 2) for r in self.rules) + 20 * (not self.sure)


class Scan:
    """One text and an index. With ``final`` false the text is the beginning of a longer one."""

    def __init__(self, raw: str, index: Index, opener: Opener | None = None, *, final: bool = True) -> None:
        self.view = View(raw)
        self.text = self.view.text
        self.index = index
        self.opener = opener
        self.final = final
        split = pieces(self.text)
        self.gaps = split[0::2]
        self.words = split[1::2]
        self.lows = list(map({w: folded(w) for w in set(self.words)}.__getitem__, self.words))
        self.joined: frozenset[int] = frozenset()
        ends = list(accumulate(map(len, split)))
        self.starts = ends[0::2][: len(self.words)]
        self.ends = ends[1::2]
        self.count = len(self.words)
        if not final and self.count and not self.gaps[-1] and len(self.words[-1]) <= index.longest + 40:
            self.count -= 1  # it may go on
        self.short = False
        self.limit = len(self.text)
        self.held = len(raw)

    # The pass

    def matches(self, begin: int = 0) -> Iterator[Match]:
        """What is found from ``begin`` (a place of the text) on, left to right, disjoint.

        Afterwards ``held`` says from which place of the text on nothing is decided yet.
        """
        view = self.view
        done = 0
        literal = self._literal() if self.index.literal else iter(())
        ahead = next(literal, None)
        for i in self._hot():
            if self.starts[i] < done or (begin and view.start(self.starts[i]) < begin):
                continue
            while ahead is not None and ahead.start < view.start(self.starts[i]):
                if ahead.start >= max(begin, view.start(done)):
                    yield ahead
                    done = max(done, self._place(ahead.end))
                ahead = next(literal, None)
            if self.starts[i] < done:
                continue
            self.short = False
            hit = self._best(i, done)
            if self.short and not self.final:
                self.held = view.start(max(done, min(self._before(i), self.limit)))
                return
            if hit is None:
                continue
            yield hit
            done = max(done, self._place(hit.end))
        while ahead is not None:
            if ahead.start >= max(begin, view.start(done)):
                yield ahead
                done = max(done, self._place(ahead.end))
            ahead = next(literal, None)
        if not self.final:
            place = len(self.text)
            if self.count < len(self.words):
                place = self.starts[self.count]
                place = self._before(self.count)
            else:
                gap = self.gaps[-1] if self.gaps else ""
                place -= len(_tail(gap))
            self.held = view.start(max(done, min(place, self.limit)))

    def _place(self, raw: int) -> int:
        """The first place of the view that is not before a place of the text."""
        low, high = 0, len(self.text)
        if self.view.text is self.view.raw:
            return raw
        while low < high:
            middle = (low + high) // 2
            if self.view.start(middle) < raw:
                low = middle + 1
            else:
                high = middle
        return low

    def _before(self, i: int) -> int:
        """Where signs begin that may belong to a token."""
        return self.starts[i] - len(_tail(self.gaps[i]))

    def _hot(self) -> list[int]:
        """The words that a replacement may begin with."""
        index, words = self.index, self.words
        begins: set[str] = set()
        dates = bool(index.dates)
        for word in set(words):
            readings = index.readings(word)
            if readings and any(index.may_begin(r.key) for r in readings):
                begins.add(word)
            elif word[0].isdigit() or word.isupper():
                if self._may_begin_code(word):
                    begins.add(word)
            if dates and word not in begins and _may_begin_date(word):
                begins.add(word)
        hot = [i for i in range(self.count) if words[i] in begins] if begins else []
        lows = self.lows
        vocabulary = index.vocabulary
        joined = [i for i, both in enumerate(map(add, lows, lows[1:])) if both in vocabulary and vocabulary[both]]
        if _BROKEN.search(self.text):
            for i in range(1, self.count):
                gap = self.gaps[i]
                if "\n" in gap and len(gap) < 8 and _HYPHEN_BREAK.fullmatch(gap):
                    if index.readings(words[i - 1] + words[i]):
                        joined.append(i - 1)
        encrypted = bool(index.sealed) or self.opener is not None
        sealed = [i for i, low in enumerate(lows) if low == "e1"] if encrypted else []
        if not self.final and self.count and words[self.count - 1] not in begins:
            last = self.count - 1  # its second half may come yet
            if index.begins(lows[last]) and self.starts[last] < len(self.text):
                joined.append(last)
        if joined or sealed:
            self.joined = frozenset(joined)
            hot = sorted({*hot, *(i for i in joined if i < self.count), *(self._label(i) for i in sealed)})
        return hot

    def _may_begin_code(self, word: str) -> bool:
        if not self.index.codes:
            return False
        return self.index.may_be_code(word.upper()) or bool(self.index.nationals and word[0].isdigit())

    def _label(self, i: int) -> int:
        """The first word of the label before the mark of an encrypted mention."""
        at = i
        while at > 0 and (self.gaps[at] == "_" or (at == i and self.gaps[at].strip() == ":")):
            at -= 1
        return at

    # One place

    def _best(self, i: int, done: int) -> Match | None:
        index = self.index
        if self.words[i].lower() != "e1" and (index.sealed or self.opener is not None):
            found = self._sealed(i, done)
            if found is not None or self.short:
                return found
        plainly = self._plainly(i, done)
        if plainly is None and i not in self.joined:
            plainly = self._shortly(i, done)
        if plainly is not None:
            return plainly
        hits = list(self._worded(i, index.heads, index.full))
        if not any(not h.rules for h in hits) and not self._whole(i, hits):
            self._expand(i)
            hits += self._worded(i, index.short_heads, index.short)
            if index.codes:
                hits += self._coded(i)
            if index.dates:
                hits += self._dated(i)
        hits = [h for h in hits if h.start >= done]
        if not hits:
            return self._unknown(i, done)
        longest = max(h.last for h in hits)
        hits = [h for h in hits if h.last == longest]
        cost = min(h.cost() for h in hits)
        hits = [h for h in hits if h.cost() == cost]
        hit = self._chosen(hits)
        if hit is not None and hit.last - i > 1 and hit.rules and self._exact_inside(i, hit):
            return None
        if not self.final and hits[0].end + _near(hits[0].form) > len(self.text):
            self.short = True
        if hit is None:
            first = hits[0]
            why = f"a replacement for {first.form.label} stands for several entities and was left"
            return self._match(first, None, why)
        return self._match(hit, hit.out if hit.out is not None else self._fitted(hit))

    def _plainly(self, i: int, done: int) -> Match | None:
        """A replacement that stands here letter by letter, where nothing longer can."""
        index, lows = self.index, self.lows
        for length in index.heads.get(lows[i], ()):
            last = i + length
            if last > self.count:
                return None
            forms = index.full.get(tuple(lows[i:last]))
            if forms is None:
                if length > 1 and index.readings(self.words[i + 1]):
                    return None  # perhaps in another writing
                continue
            form = forms[0]
            start, end = self.starts[i] - len(form.head), self.ends[last - 1] + len(form.tail)
            text = self.text
            if len(forms) > 1 or form.target is None or start < done or not text.startswith(form.text, start):
                return None
            if not self.final and not self._settled(form, end):
                return None
            if last < self.count and text[end] in "'’ʼ" and lows[last] in AFTER_APOSTROPHE:
                return None
            if end - start != len(form.text):
                return None
            shape = ""
            if form.kind == TAG:
                reach = gaps.tag_reach(form, text, start + len(form.head), end - len(form.tail), "")
                if reach is None or reach[:3] != (start, end, "") or reach.other is not None:
                    return None
                shape = reach.shape
            elif form.kind == ADDRESS or form.head or form.tail or len(form.text) < 2:
                return None
            elif not gaps.name_apart(text, start, end, True):
                return None
            a, b = self.view.start(start), self.view.end(end)
            if self.view.kinds(a, b):
                return None
            return Match(a, b, form.target, "exact", form.label, form.row, True, length, shape=shape)
        return None

    def _shortly(self, i: int, done: int) -> Match | None:
        """One word of a name, letter by letter, where nothing longer and nothing else can stand."""
        index, word, key = self.index, self.words[i], self.lows[i]
        if len(key) < 3 or key in index.heads or not word.isalpha() or not word.istitle() or key in common_words():
            return None
        if i + 1 >= self.count or index.readings(self.words[i + 1]) or (index.dates and _of_dates(word)):
            return None
        start, end = self.starts[i], self.ends[i]
        after = self.text[end]
        if after in "'’ʼ-‐‑" or start < done or (not self.final and end + 8 > len(self.text)):
            return None
        index.expand(key, False)
        forms = index.short.get((key,), ())
        if len(forms) != 1 or forms[0].text != word or forms[0].target is None or index.short_heads.get(key) != [1]:
            return None
        a, b = self.view.start(start), self.view.end(end)
        if self.view.kinds(a, b) or not gaps.name_apart(self.text, start, end, False):
            return None
        form = forms[0]
        return Match(a, b, form.target, form.rule, form.label, form.row, False)

    def _whole(self, i: int, hits: list[_Hit]) -> bool:
        """Whether several words are a whole replacement, and the word after them can belong to none."""
        last = max((h.last for h in hits), default=i)
        if last - i < 2:
            return False
        if last >= self.count:
            self.short = self.short or not self.final
            return True
        return not self.index.readings(self.words[last])

    def _settled(self, form: Form, end: int) -> bool:
        """Whether what has arrived after a replacement already tells that it ends there."""
        text = self.text
        if end + 8 <= len(text):
            return True
        after = text[end : end + 1]
        if form.kind == TAG and form.tail and form.tail[-1] in gaps.CLOSING:
            return bool(after) and after != form.tail[-1]
        return bool(after) and after in " \n,;!?)"

    def _chosen(self, hits: list[_Hit]) -> _Hit | None:
        """The one that all lead to; None where they lead to different originals."""
        exact = [h for h in hits if not h.rules and h.seen == h.form.text]
        if exact:
            hits = exact
        if len(hits) == 1:
            return hits[0] if hits[0].form.target is not None else None
        forms = targets([h.form for h in hits])
        if len(forms) != 1 or forms[0].target is None:
            outs = {h.out if h.out is not None else self._fitted(h) for h in hits if h.form.target is not None}
            if len(outs) != 1 or any(h.form.target is None for h in hits):
                return None
        return next((h for h in hits if h.form is forms[0]), hits[0])

    def _exact_inside(self, i: int, hit: _Hit) -> bool:
        """Whether a replacement begins within a hit that stands there letter by letter, and goes on beyond it."""
        for j in range(i + 1, min(hit.last, self.count)):
            for other in self._worded(j, self.index.heads, self.index.full):
                if not other.rules and other.last > hit.last:
                    return True
        return False

    def _match(self, hit: _Hit, out: str | None, why: str = "") -> Match:
        a, b = self.view.start(hit.start), self.view.end(hit.end)
        kinds = self.view.kinds(a, b)
        rules = list(dict.fromkeys(r for r in hit.rules if r))
        rules += [k for k, _ in kinds if k not in rules]
        if out is not None and kinds:
            out = escaped(out, kinds)
        form = hit.form
        whole = not form.rule and not any(hit.endings)
        rule = "+".join(dict.fromkeys(rules)) or "exact"
        keys = len(form.keys)
        other = None if hit.other is None else (self.view.start(hit.other[0]), self.view.end(hit.other[1]))
        return Match(a, b, out, rule, form.label, form.row, whole, keys, why, hit.sure, hit.shape, other)

    def _fitted(self, hit: _Hit) -> str:
        form = hit.form
        assert form.target is not None
        if form.kind == TAG or not hit.rules:
            out = form.target
            if any(hit.endings):
                out = fit.with_endings(out, len(form.keys), [None] * (len(form.keys) - 1) + [hit.endings[-1]])  # type: ignore[list-item]
            return out
        out = form.target
        if form.head and out.startswith(form.head) and hit.seen[0].isalnum():
            out = out[len(form.head) :]
        if form.tail and out.endswith(form.tail) and hit.seen[-1].isalnum():
            out = out[: len(out) - len(form.tail)]
        if any(hit.endings):
            out = fit.with_endings(out, len(form.keys), hit.endings)  # type: ignore[arg-type]
        if form.rule == "initials" and _SPACED.search(hit.seen):
            out = _CLOSE_INITIALS.sub(". ", out)
        if form.rule == "initials" and "." not in hit.seen:
            out = out.replace(".", "")
        if form.kind == ADDRESS:
            letters = [c for c in hit.seen if c.isalpha()]
            return out.upper() if letters and all(c.isupper() for c in letters) and not form.text.isupper() else out
        if "," in form.text and "," not in hit.seen:
            out = out.replace(", ", " ")
        return fit.cased(out, form.text, hit.seen)

    # Words

    def _steps(self, i: int) -> Iterator[tuple[Reading, int]]:
        """What the word at ``i`` can be read as, and the number of the word after it."""
        readings = self.index.readings(self.words[i])
        for reading in readings:
            yield reading, i + 1
        apostrophe = bool(readings) and self.gaps[i + 1] in ("'", "’", "ʼ")
        if apostrophe and i + 1 >= self.count:
            self.short = True
        elif apostrophe:
            ending = self.words[i + 1]
            if ending in AFTER_APOSTROPHE and not self.index.is_label(readings[0].key):
                kept = Ending("pl", "", AFTER_APOSTROPHE[ending])
                for reading in readings:
                    if not reading.rule:
                        yield Reading(reading.key, "inflected", kept), i + 2
        if i + 1 < self.count:
            if i not in self.joined:
                return
            gap = self.gaps[i + 1]
            if len(gap) <= gaps.LONGEST_GAP and (not gap.strip() or _HYPHEN_BREAK.match(gap)):
                both = self.words[i] + self.words[i + 1]
                key = folded(both)
                broken = bool(gap.strip())
                if gap.count("\n") > 1:
                    return
                if self.index.is_known(key) and (broken or self._one_word(i, key)):
                    yield Reading(key, "hyphenation" if broken else "spacing"), i + 2
                elif broken and not readings:
                    for reading in self.index.readings(both):
                        yield Reading(reading.key, f"hyphenation {reading.rule}", reading.ending), i + 2
        elif not self.final and self.index.begins(folded(self.words[i])):
            gap = self.gaps[i + 1] if i + 1 < len(self.gaps) else ""
            broken = _HYPHEN_BREAK.match(gap) or _HYPHEN_BREAK.match(gap + "\n")
            if len(gap) <= gaps.LONGEST_GAP and (not gap.strip() or broken):
                self.short = True

    def _one_word(self, i: int, key: str) -> bool:
        """Whether two words are one that a space got into."""
        a, b = self.words[i], self.words[i + 1]
        if self.index.is_label(key):
            return True
        common = common_words()
        if len(key) < 5 or (folded(a) in common and folded(b) in common):
            return False
        return b.islower() or b.isdigit() or (a.isupper() and b.isupper())

    def _worded(
        self, i: int, heads: dict[str, list[int]], table: dict[tuple[str, ...], list[Form]]
    ) -> Iterator[_Hit]:
        """Forms by their words, the longest first; stops after the first length that fits letter by letter."""
        for first, after in self._steps(i):
            for length in heads.get(first.key, ()):
                exact = False
                for path, last in self._paths(first, after, length):
                    forms = table.get(tuple([r.key for r in path]))
                    for form in forms or ():
                        hit = self._checked(i, last, form, path)
                        if hit is not None:
                            exact = exact or not hit.rules
                            yield hit
                if exact:
                    break

    def _paths(self, first: Reading, after: int, length: int) -> list[tuple[list[Reading], int]]:
        """Readings of ``length`` words from a first on, each with the number of the word after them."""
        paths = [([first], after)]
        for _ in range(length - 1):
            longer = []
            for path, at in paths:
                if at >= self.count:
                    self.short = True
                    continue
                gap = self.gaps[at]
                if len(gap) > gaps.LONGEST_GAP:
                    continue
                longer += [([*path, reading], step) for reading, step in self._steps(at)]
            paths = longer[:16]
        return paths

    def _checked(self, i: int, last: int, form: Form, path: list[Reading]) -> _Hit | None:
        """The hit, where gaps, neighbours and letters allow it."""
        text = self.text
        start, end = self.starts[i], self.ends[last - 1]
        rules = [form.rule] if form.rule else []
        rules += [rule for r in path if r.rule for rule in r.rule.split()]
        infix = ""
        if len(path) == len(form.keys):
            at = i
            for j, pattern in enumerate(form.gaps):
                at += _width(path[j])
                infix = self.gaps[at]
                rule = gaps.between(pattern, infix, form.kind)
                if rule is None:
                    return None
                if rule:
                    rules.append(rule)
        else:
            rules.append("joined")
        typos = sum("typo" in r.rule for r in path)
        if (form.kind == CODE and rules) or typos > 1 or (typos and form.kind == ADDRESS):
            return None
        endings: list[object] = [r.ending for r in path]
        if form.kind == TAG:
            if any(r.ending is not None for r in path[:-1]) and not typos and any(e for e in endings[:-1]):
                rules = ["typo" if r in ("plural", "inflected") else r for r in rules]
                endings[:-1] = [None] * (len(endings) - 1)
            return self._tag(form, start, end, last, rules, endings, infix)
        return self._name(form, path, start, end, last, rules, endings)

    def _tag(
        self, form: Form, start: int, end: int, last: int, rules: list[str], endings: list[object], infix: str
    ) -> _Hit | None:
        text = self.text
        seen = text[start:end]
        stem = seen
        if endings and endings[-1] is not None:
            stem = seen[:-1]
        if not self.final and gaps.undecided(form, text, start, end):
            self.short = True
        code = len(form.keys[-1]) >= 6 and not form.keys[-1].isalpha() and self.lows[last - 1] == form.keys[-1]
        if "typo" in rules and not code and not any(c in "_:#\"" for c in infix) and text[end : end + 1] not in "])}>":
            return None
        last_token = self._token_after(end)
        if not self.final and end + _FAR > len(self.text) and self.count <= last_token + 1:
            self.short = True
        core = end - (len(seen) - len(stem))
        opened = start > 0 and text[start - 1] in gaps.OPENING
        if "typo" in rules and not opened and _grown_word(form, seen):
            return None
        reach = gaps.tag_reach(form, text, start, end, infix) if core == end else None
        if core != end:
            low = max(0, start - 2 * gaps.LOOK_ROUND)
            window = text[low:core] + " " + text[end : end + 2 * gaps.LOOK_ROUND]
            reach = gaps.tag_reach(form, window, start - low, core - low, infix)
            if reach is not None:
                a = low + reach.start
                reach = Reach(a, end, reach.rule, reach.shape) if reach.end == core - low else None
        if reach is None:
            return None
        a, b, rule, shape, other = reach
        words = form.words if stem == "".join(x for p in zip(form.words, [*form.gaps, ""], strict=True) for x in p) else pieces(stem)[1::2]
        letters, own = "".join(words), "".join(form.words)
        if letters != own and not {"typo", "spacing", "hyphenation"} & set(rules):
            rules = [*rules, "case" if folded(letters) == folded(own) else "diacritics"]
        if rule:
            rules = [*rules, rule]
        plain = text[a:b]
        if not rules and plain != form.text and plain != View(form.text).text:
            rules = ["signs"]
        return _Hit(a, b, last_token, form, rules, endings, plain, shape=shape, other=other)

    def _token_after(self, place: int) -> int:
        from bisect import bisect_left

        return bisect_left(self.starts, place)

    def _name(
        self, form: Form, path: Sequence[Reading], start: int, end: int, last: int, rules: list[str],
        endings: list[object],
    ) -> _Hit | None:
        text = self.text
        low, high = _with_signs(text, start, end, form)
        if not self.final and high == end and form.tail and form.tail.startswith(text[end:]):
            self.short = True
        lost = (form.head and low == start) or (form.tail and high == end)
        if lost and form.rule == "initials" and form.tail == ".":
            return None
        start, end = low, high
        if lost:
            rules = [*rules, "signs"]
        seen = text[start:end]
        plainly = not rules and seen == form.text
        if not self.final and end + 4 > len(text):
            self.short = True
        first, final = seen[0], seen[-1]
        if not first.isalnum() and first not in gaps.OPENING and text[start - 1 : start] == first:
            return None
        if not final.isalnum() and final not in gaps.CLOSING and text[end : end + 1] == final and final != ".":
            return None
        if not gaps.name_apart(text, start, end, plainly and not form.rule):
            return None
        if form.kind == ADDRESS and not gaps.address_apart(text, start, end):
            return None
        if plainly:
            return self._weighed(_Hit(start, end, last, form, rules, endings, seen))
        words = form.words if seen == form.text else pieces(seen)[1::2]
        if not any(endings) and not any(r in ("typo", "spacing", "hyphenation", "diacritics") for r in rules):
            same = words == form.words or list(map(lowered, words)) == list(map(lowered, form.words))
            if not same and len(words) == len(form.words):
                rules = [*rules, "diacritics"]
        if fit.style(seen) != fit.style(form.text) and seen.lower() != seen.upper():
            was, now = fit.style(form.text), fit.style(seen)
            if now in ("upper", "lower") or (now and was in ("upper", "lower")):
                rules = [*rules, "case"]
        if not rules and seen != form.text:
            rules = ["case" if seen.casefold() == form.text.casefold() else "diacritics"]
        return self._weighed(_Hit(start, end, last, form, rules, endings, seen))

    def _weighed(self, hit: _Hit) -> _Hit | None:
        """The hit, unsure where only the number of such places can tell, or None where it is none."""
        hit.sure = self._sure(hit.form, hit.seen, hit.rules)
        if hit.sure or (not hit.form.rule and not {"typo", "inflected", "plural"} & set(hit.rules)):
            return hit
        return None

    def _sure(self, form: Form, seen: str, rules: list[str]) -> bool:
        """Whether what stands there is hardly anything else than the replacement in another form."""
        keys = form.keys
        single = len(keys) == 1
        if not rules:
            return not single or len(keys[0]) > 1 or not keys[0].isalpha()
        common = common_words()
        if "typo" in rules:
            if single and len(keys[0]) < 5:
                return False
            slipped = [w for w in pieces(seen)[1::2] if folded(w) in common]
            if any(folded(w) not in keys for w in slipped) and (single or seen.islower() or len(rules) > 1):
                return False
        if form.rule == "initials":
            capital = [w for w in pieces(seen)[1::2]]
            if any(len(w) == 1 and not w.isupper() for w in capital):
                return False
            if "." not in seen and any(len(w) == 1 and folded(w) in common for w in capital):
                return False
            if all(len(w) == 1 for w in capital):
                return seen == form.text or seen.replace(" ", "") == form.text
        if form.rule == "acronym":
            return seen == form.text
        if form.rule == "shortened" and single:
            if folded(seen) in common or len(keys[0]) < 3:
                return False
            if form.kind != PERSON and "typo" in rules:
                return False
        if not single:
            return not ("case" in rules and seen.islower() and all(k in common for k in keys))
        word = keys[0]
        if word.isdigit():
            return False
        if "typo" in rules:
            return len(word) >= 5 and seen[0].isupper() == form.text[:1].isupper() or len(word) >= 7
        if "case" in rules and style_lower(seen):
            return len(word) >= 4 and word not in common
        if "case" in rules and form.text.islower():
            return True
        if "case" in rules:
            return word not in common and len(word) >= 3
        if "inflected" in rules or "plural" in rules:
            return (len(word) >= 4 and word not in common) or (seen[0].isupper() and len(word) >= 3)
        return True

    def _expand(self, i: int) -> None:
        """Make the shorter forms that may begin here."""
        index = self.index
        near = i + 1 < self.count and len(self.gaps[i + 1]) <= gaps.LONGEST_GAP
        near = near and bool(index.readings(self.words[i + 1]))
        near = near or i + 1 >= self.count
        for reading, _ in self._steps(i):
            index.expand(reading.key, near)
        word = self.words[i]
        if len(word) == 1 and word.isupper():
            j = i + 1
            while j < self.count and len(self.gaps[j]) <= gaps.LONGEST_GAP and j - i < 6:
                other = self.words[j]
                if len(other) > 2:
                    for reading in index.readings(other):
                        index.expand(reading.key)
                    break
                index.expand_initials(folded(word), folded(other[0]))
                j += 1
            if j >= self.count:
                self.short = True
        elif word.isupper() and len(word) > 2:
            index.expand_acronym(word)

    # Numbers, dates, encrypted mentions

    def _coded(self, i: int) -> Iterator[_Hit]:
        """Numbers and codes in other groups than their own."""
        index, text = self.index, self.text
        code = ""
        foreign = bool(index.nationals) and (
            text[self.starts[i] - 1 : self.starts[i]] == "+" or self.words[i].startswith("00")
        )
        for j in range(i, i + 12):
            if j >= self.count:
                self.short = self.short or len(code) <= index.longest_code
                return
            if j > i and (len(self.gaps[j]) > 3 or not set(self.gaps[j]) <= _IN_CODES):
                return
            word = self.words[j]
            code += word.upper()
            if len(code) > index.longest_code + 5 or not word.isascii():
                return
            if not (foreign or index.may_be_code(code)):
                return
            start, end = self.starts[i], self.ends[j]
            found, short = index.codes.get(code), False
            if not found and index.nationals:
                found, short = self._national(start, code), True
            if not found:
                continue
            opened = text[start - 1 : start]
            if opened == "(" and ")" in text[start:end] and not short:
                start -= 1
            if opened == "+" and (short or found[0].text.startswith("+")):
                start -= 1
            if not gaps.number_apart(text, start, end):
                continue
            if not self.final and end + 4 > len(text):
                self.short = True
            for form in found:
                if form.target is None:
                    yield _Hit(start, end, j + 1, form, ["number format"], [], text[start:end])
                    continue
                out = self._renumbered(text[start:end], form, short)
                if out is not None:
                    yield _Hit(start, end, j + 1, form, ["number format"], [], text[start:end], out)

    def _national(self, start: int, code: str) -> list[Form] | None:
        if not code.isdigit():
            return None
        sign = "+" if self.text[start - 1 : start] == "+" else ""
        found = self.index.nationals.get(fit.national(sign + code))
        return found

    def _renumbered(self, seen: str, form: Form, short: bool) -> str | None:
        target = form.target
        assert target is not None
        if short:
            own, other = fit.national(form.text), fit.national(target)
            out = fit.filled(seen, other, len(own)) if len(own) == len(other) else target
            return out
        own, other = fit.digits_of(form.text), fit.digits_of(target)
        if seen.split() == form.text.split():
            return target
        if len(own) != len(other):
            return target
        return fit.filled(seen, target, len(own))

    def _dated(self, i: int) -> Iterator[_Hit]:
        """The same date in another format."""
        word = self.words[i]
        if not _may_begin_date(word):
            return
        text, start = self.text, self.starts[i]
        ends = []
        for j in range(i, i + _DATE_WORDS):
            if j >= self.count:
                self.short = True
                break
            if j > i and not _IN_DATES.match(self.gaps[j]):
                break
            if self.ends[j] - start > LONGEST or not (self.words[j][0].isdigit() or _of_dates(self.words[j])):
                break
            ends.append(j)
        for j in reversed(ends):
            seen = text[start : self.ends[j]]
            found = self._same_dates(seen)
            if not found:
                continue
            if not gaps.number_apart(text, start, self.ends[j]):
                return
            for form, out in found:
                yield _Hit(start, self.ends[j], j + 1, form, ["date format"], [], seen, out)
            return

    def _same_dates(self, seen: str) -> list[tuple[Form, str | None]]:
        out: list[tuple[Form, str | None]] = []
        tried: set[tuple[int | None, int | None, int | None]] = set()
        for order in ("mdy", "dmy"):
            date = read_date(seen, order)
            if date is None or date.month is None or (date.year, date.month, date.day) in tried:
                continue
            tried.add((date.year, date.month, date.day))
            for form in self.index.dates.get((date.year, date.month, date.day), ()):
                if form.target is not None:
                    made = fit.dated(date, form.target)
                    out.append((form, form.target if made is None else made))
        return out

    def _sealed(self, i: int, done: int) -> Match | None:
        found = sealed_at(self, i)
        if found is None:
            return None
        if isinstance(found, Sealed):
            if found.start < done:
                return None
            form = self.index.sealed.get(found.code)
            a, b = self.view.start(found.start), self.view.end(found.end)
            kinds = self.view.kinds(a, b)
            plain = form.target if form is not None else found.plain
            row = form.row if form is not None else -1
            if plain is None:
                why = "encrypted mentions that this key does not open or that were changed"
                if form is None and not found.bracketed:
                    return None
                return Match(a, b, None, "encrypted", found.label, row, why=why)
            rule = "exact" if form is not None and self.view.raw[a:b] == form.text else found.rule
            rules = [rule, *(k for k, _ in kinds if k != rule)]
            return Match(a, b, escaped(plain, kinds), "+".join(rules), found.label, row)
        return None

    def _unknown(self, i: int, done: int) -> Match | None:
        """A tag like those that are known, with an end that is not."""
        index = self.index
        if not index.labels or not index.readings(self.words[i]):
            return None
        for length in index.heads.get(folded(self.words[i]), ()):
            last = i + length - 1
            if length < 2 or last >= self.count:
                continue
            shapes = index.labels.get(tuple(folded(w) for w in self.words[i:last]))
            word = self.words[last]
            code = len(word) >= 6 and len(word) in index.id_sizes and set(word.upper()) <= _HEX
            if not shapes or not (word.isdigit() or code):
                continue
            start, end = self.starts[i], self.ends[last]
            for head, infix, tail in shapes:
                if self.gaps[last] != infix or not (head or tail or "_" in infix):
                    continue
                a, b = start - len(head), end + len(tail)
                if a >= done and self.text[a:start] == head and self.text[end:b] == tail:
                    if not head and self.text[a - 1 : a] == "_":
                        continue
                    if not self.final and b + 4 > len(self.text):
                        self.short = True
                    why = "tags that are not known were left"
                    return Match(self.view.start(a), self.view.end(b), None, "unknown", "", why=why)
        return None

    def _literal(self) -> Iterator[Match]:
        """Replacements without words, or in scripts without spaces, where they stand letter by letter."""
        index, text, view = self.index, self.text, self.view
        first = re.compile("[" + "".join(re.escape(c) for c in index.literal) + "]")
        longest = max(len(f.text) for listed in index.literal.values() for f in listed)
        done = 0
        for match in first.finditer(text):
            start = match.start()
            if start < done:
                continue
            if not self.final and start + longest + 1 > len(text):
                self.limit = start
                self.count = min(self.count, self._token_after(start))
                return
            for form in index.literal[match[0]]:
                end = start + len(form.text)
                if not text.startswith(form.text, start):
                    continue
                a, z = form.text[0], form.text[-1]
                if not a.isalnum() and a not in gaps.OPENING and text[start - 1 : start] == a and start:
                    continue
                if not z.isalnum() and z not in gaps.CLOSING and text[end : end + 1] == z:
                    continue
                if (a.isascii() and a.isalnum() and text[start - 1 : start].isalnum() and start) or (
                    z.isascii() and z.isalnum() and text[end : end + 1].isalnum()
                ):
                    continue
                why = f"a replacement for {form.label} stands for several entities and was left"
                why = "" if form.target is not None else why
                kinds = view.kinds(view.start(start), view.end(end))
                out = form.target if form.target is None else escaped(form.target, kinds)
                rule = "+".join(k for k, _ in kinds) or "exact"
                yield Match(view.start(start), view.end(end), out, rule, form.label, form.row, why=why)
                done = end
                break


def _grown_word(form: Form, seen: str) -> bool:
    """Whether what looks like a slip is a word of the tag with a letter before or after it."""
    return any(
        len(a) > len(b) and (folded(a).startswith(b) or folded(a).endswith(b))
        for a, b in zip(pieces(seen)[1::2], form.keys, strict=False)
    )


def _with_signs(text: str, start: int, end: int, form: Form) -> tuple[int, int]:
    """Where a name ends with the signs before and after its words, if they are there; spaces among them may differ."""
    if form.head:
        low = start
        for sign in reversed(form.head.split()):
            stripped = len(text[max(0, low - 8) : low].rstrip())
            low = max(0, low - 8) + stripped
            if not text.endswith(sign, 0, low):
                low = start
                break
            low -= len(sign)
        start = low
    if form.tail:
        high = end
        for sign in form.tail.split():
            high += len(text[high : high + 8]) - len(text[high : high + 8].lstrip())
            if not text.startswith(sign, high):
                high = end
                break
            high += len(sign)
        end = high
    return start, end


def _width(reading: Reading) -> int:
    """How many words of the text a reading is made of."""
    if reading.rule == "spacing" or reading.rule.startswith("hyphenation"):
        return 2
    return 2 if reading.ending is not None and not (reading.ending.kind or reading.ending.kept) else 1


def _near(form: Form) -> int:
    return 8 if form.kind == TAG else 4


def style_lower(text: str) -> bool:
    """Whether all letters are small."""
    return text == text.lower() and text != text.upper()


def _may_begin_date(word: str) -> bool:
    return (word[0].isdigit() and len(word) <= 8) or _of_dates(word)


def _of_dates(word: str) -> bool:
    if len(word) < 3:
        return word.lower() in ("de", "of")
    return named("month", word) is not None or named("weekday", word) is not None


def _tail(gap: str) -> str:
    """The signs at the end of a gap that may belong to what follows."""
    at = len(gap)
    low = max(0, at - 16)
    keep = at
    while at > low:
        at -= 1
        if not gap[at].isspace():
            keep = at
        elif keep - at > 4:
            break
    return gap[keep:]
