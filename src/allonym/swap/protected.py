"""The value that nobody may guess, wherever a document names it: the full name, its parts, misspellings, its acronym.

A metadata column has "Nextar Media Group", and the text "Nexstar"; the column has "Fomento Economico Mexicano", and the
text "FEMSA". So names are compared by their letters, with one slip allowed, and the introduction of a call is read for
the company's name. A single word stands for the name only if it is no common word: the text never writes it small.
"""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from types import MappingProxyType

from allonym.batch import split_field_name
from allonym.detection.lexicon import fold_keeping_length, shorten_person_name
from allonym.detection.scan import compile_pattern, find_matches
from allonym.detection.words import read_word_list
from allonym.document import Document, Interval, Reach, Span, subtract_intervals
from allonym.labels import TAXONOMY, Label, Taxonomy
from allonym.policy import Policy, Rule
from allonym.text.names import is_within_one_edit, make_sound_key
from allonym.text.words import WORD, compile_whole_words

SOURCE = "protected"
OTHER = "OTHER_IDENTIFYING_ATTRIBUTE"
OPENING = 3000
"""Code points at the beginning of a document in which it may introduce its company."""

_SCORE = 0.99
_RARE, _COMMON, _FREQUENT = 12_000, 5_000, 3_000  # ranks in the vocabulary, which is ordered by how frequent words are
_ADDRESS = re.compile(r"\A[@./_-]|[@_]|\.[^\W_]")
_MARK = re.compile(r"\A['’]s|<\w+>")
_EDGE = re.compile(r"\A(?:['’]s\b|[\s,&'’-]|(?:and|or|with|of|from|at|the)\b)+")
_EDGE_AFTER = re.compile(r"(?:[\s,&'’-]|\b(?:and|or|with|of|from|at|the))+\Z")
_APART = re.compile(r",| (?:and|or|with|of|from|at) |\n")
_LEGAL = read_word_list("legal_forms")
_NAMED = ("PERSON", "ORGANIZATION", "LOCATION", "PRODUCT", OTHER)
_SMALL = frozenset("of and the for in on de del la le du et y e und da do".split())
_TAILS = ("SA", "SAB", "AG", "HG", "NV", "SE", "CO", "PLC", "LLC", "INC", "C", "I")
_NAME = re.compile(
    r"[^\W_]*[^\W\d_a-z][\w&’'.\-]*(?:\s+(?:(?:of|and|&|de|del|la)\s+)?(?:[^\W\d_a-z]|\d)[\w&’'.\-]*){0,6}"
)


@cache
def _load_data() -> dict[str, dict[str, object]]:
    return tomllib.loads(files("allonym.swap").joinpath("protected.toml").read_text(encoding="utf-8"))


@cache
def _load_word_list(list_name: str) -> frozenset[str]:
    return frozenset(str(_load_data()["words"][list_name]).split())


@cache
def _load_word_ranks() -> dict[str, int]:
    """Return the words of the encoder's vocabulary with their ranks, the frequent ones first."""
    lines = files("allonym.models").joinpath("english", "vocab.txt").read_text(encoding="utf-8").splitlines()
    return {word: rank for rank, word in enumerate(lines)}


def find_protected_label(protect: str) -> str:
    """Return the label of a metadata key: ``COMPANY``, ``PERSON`` ...; ``OTHER_IDENTIFYING_ATTRIBUTE`` if none fits.

    >>> [find_protected_label(name) for name in ("company", "hospital", "author_name", "verdict")]
    ['COMPANY', 'ORGANIZATION', 'PERSON', 'OTHER_IDENTIFYING_ATTRIBUTE']
    """
    words = split_field_name(protect).split()
    for name in ("_".join(words), *(word for word in reversed(words) if word != "name")):
        for label, keys in _load_data()["kinds"].items():
            if name in str(keys).split():
                return label
    return "PERSON" if words == ["name"] else OTHER


def add_protected_rule(policy: Policy, protect: str) -> tuple[Policy, str]:
    """Return the policy with a rule for the protected value, and the label of its mentions.

    A company's is ``COMPANY``, tagged as the policy says. For other keys a direct label is added below the one that
    fits, whose tag is the key: ``[Hospital]``.
    """
    kind = find_protected_label(protect)
    if kind == "COMPANY":
        return policy, kind
    words = split_field_name(protect).split()
    name = "PROTECTED_" + "_".join(w for w in ("".join(filter(str.isalnum, w)) for w in words) if w).upper()
    if name in policy.taxonomy:
        return policy, name
    label = Label(name, kind, "direct", policy.taxonomy.get(kind).risk, "the protected value")
    tag = "".join(c for c in " ".join(words).title() if c not in "{}[]")
    rules = {**policy.rules, name: Rule("tag", MappingProxyType({"style": f"[{tag}]"}))}
    return policy.with_(taxonomy=policy.taxonomy.extend([label]), rules=MappingProxyType(rules)), name


def find_protected_spans(
    document: Document, value: str, kind: str, label: str, aliases: Iterable[str] = ()
) -> tuple[Span, ...]:
    """Return where a document names its protected value, as sorted disjoint spans.

    Args:
        document: the text.
        value: as in the metadata.
        kind: its label, see :func:`find_protected_label`.
        label: the label of the spans.
        aliases: further names: tickers, abbreviations, former names.
    """
    text = _Text.of(document.text)
    names = [value, *aliases]
    intervals: set[Interval] = set()
    if kind == "PERSON":
        for name in names:
            for form, capital in [(name, False), *((f, c) for f, _, c in shorten_person_name(name))]:
                intervals.update(text.find_phrase_mentions(fold_keeping_length(form).split(), capital))
    elif kind in ("COMPANY", "ORGANIZATION"):
        if kind == "COMPANY":
            names += text.find_introduced_names(value)
        for name in dict.fromkeys(names):
            if name.isupper() and len(name) < (4 if name == value else 6) and _get_frequency_rank(name.lower()) < _RARE:
                intervals.update(m.span() for m in re.finditer(rf"(?<!\w){re.escape(name)}(?!\w)", text.text))
            else:
                intervals.update(text.find_organization_mentions(name))
    else:
        for name in names:
            intervals.update(
                text.find_phrase_mentions(fold_keeping_length(name).split(), any(c.isupper() for c in name))
            )
    spans: list[Span] = []
    for a, b in sorted(intervals, key=lambda interval: (interval[0], -interval[1])):
        if not spans or a >= spans[-1].end:
            spans.append(Span(a, b, label, _SCORE, SOURCE))
    return tuple(spans)


def list_core_words(name: str) -> list[str]:
    """Return the words of an organisation's name, folded, without articles and legal forms at its ends."""
    words = fold_keeping_length(name.replace(".", "")).split()
    while len(words) > 1 and words[0] == "the":
        words.pop(0)
    for endings in (_LEGAL, _LEGAL | _load_word_list("endings")):
        while len(words) > 1 and (words[-1] in endings or words[-1] == "and"):
            words.pop()
    return words


def _get_frequency_rank(word: str) -> int:
    return _load_word_ranks().get(word, 1 << 20)


@dataclass(frozen=True, slots=True, repr=False)
class _Text:
    """A document in which names are looked for.

    Attributes:
        text: of the document; plain: the same in small base letters.
        words: of ``plain``, with offsets.
        common: words that it writes small, if it has capitals.
        cased: whether it has capitals at all.
    """

    text: str
    plain: str
    words: tuple[tuple[int, int, str], ...]
    common: frozenset[str]
    cased: bool

    @classmethod
    def of(cls, text: str) -> _Text:
        plain = fold_keeping_length(text)
        words = tuple((m.start(), m.end(), m.group()) for m in WORD.finditer(plain))
        low = [word for word in words if text[word[0]].islower()]
        small = frozenset(w for a, b, w in low if not _ADDRESS.search(text, max(0, a - 1), b + 2))
        cased = 50 * sum(1 for a, _, _ in words if text[a].isupper()) >= len(words)
        return cls(text, plain, words, small if cased else frozenset(), cased)

    def find_phrase_mentions(self, words: Sequence[str], needs_capital: bool) -> Iterator[Interval]:
        """Yield where the words follow each other; ``and`` may be missing, as in ``&``."""
        spoken = [w for w in words if w != "and"] or list(words)
        if not spoken or (len(spoken) == 1 and len(spoken[0]) < 2):
            return
        joint = r"(?: +and)? +" if "and" in words else r" {1,4}"
        for match in compile_whole_words(joint.join(map(re.escape, spoken))).finditer(self.plain):
            a, b = match.span()
            if "\n\n" not in self.text[a:b] and not (
                needs_capital and self.cased and not self._is_all_capitalised(a, b)
            ):
                yield a, b

    def _is_all_capitalised(self, start: int, end: int) -> bool:
        """Whether each significant word in a stretch has a capital or is a number."""
        words = WORD.finditer(self.plain, start, end)
        return all(not self.text[m.start()].islower() for m in words if m.group() not in _SMALL)

    def find_organization_mentions(self, name: str) -> Iterator[Interval]:
        """Yield the mentions of an organisation by its name, parts of it, misspellings and acronyms."""
        full = fold_keeping_length(name.replace(".", "")).split()
        words = list_core_words(name)
        if not words:
            return
        heads = [w for i, w in enumerate(words) if self._is_identifying_word(w, i, len(words))]
        is_rare = any(_get_frequency_rank(w) >= _RARE for w in heads)
        phrases = {tuple(words[:n]) for n in range(2, len(words)) if words[n - 1] not in _SMALL}
        phrases |= {tuple(full), tuple(words)}
        intervals = {i for phrase in phrases for i in self.find_phrase_mentions(phrase, not is_rare)}
        intervals.update(i for head in heads for i in self.find_phrase_mentions([head], True))
        intervals.update(self._find_misspelt_heads([w for w in heads if len(w) > 4]))
        intervals.update(self._find_acronym_mentions(words, full, name))
        for a, b in intervals:
            yield a, self._find_end_of_legal_forms(b)

    def _is_identifying_word(self, word: str, position: int, count: int) -> bool:
        """Whether one of ``count`` words of a name means its bearer wherever it has a capital."""
        if count == 1:
            return len(word) > 1
        if (
            len(word) < 3
            or word.isdigit()
            or word in _SMALL
            or word in self.common
            or word in _load_word_list("generic")
        ):
            return False
        if word.upper() in read_word_list("acronyms") or word in _load_word_list("persons"):
            return False
        rank = _get_frequency_rank(word)
        if rank >= _RARE:
            return position == 0 or len(word) > 4
        return position == 0 and rank >= _COMMON and sum(w == word for _, _, w in self.words) > 1

    def _find_misspelt_heads(self, heads: Sequence[str]) -> Iterator[Interval]:
        """Yield capitalised words that are a head but for one slip, sound like it, hold it, or are it in two pieces."""
        if not heads:
            return

        @cache
        def is_alike(word: str) -> bool:
            return (
                word not in self.common
                and _get_frequency_rank(word) >= _RARE
                and any(_is_misspelling(word, h) for h in heads)
            )

        for i, (a, b, word) in enumerate(self.words):
            holds_head = any(h in word for h in heads)
            if self.cased and self.text[a].islower():
                is_plural = word[-1] == "s" and word[:-1] in heads and _get_frequency_rank(word[:-1]) >= _RARE
                if is_plural or (holds_head and any(c.isupper() for c in self.text[a:b])):
                    yield a, b
            elif holds_head or is_alike(word):
                yield a, b
            elif i + 1 < len(self.words):
                c, d, after = self.words[i + 1]
                is_joined = c - b == 1 and self.text[b] in " -" and len(after) > 2
                if is_joined and any(_is_misspelling(word + after, h) for h in heads):
                    yield a, d

    def _find_acronym_mentions(self, words: Sequence[str], full: Sequence[str], name: str) -> Iterator[Interval]:
        """Yield capitals that abbreviate a name, alone or with those of a legal form, and longer ones that begin with
        its own."""
        lists = [some for w in (words, full) for some in (w, [x for x in w if x not in _SMALL])]
        acronyms = {"".join(w[0] for w in some).upper() for some in lists}
        acronyms = {a for a in acronyms if len(a) > 2 and a not in read_word_list("acronyms")}
        capitals = {w.upper() for w in words if len(w) > 2 and w.upper() in name}
        names = acronyms | {a + tail for a in acronyms for tail in _TAILS}
        names |= {c + tail for c in capitals for tail in ("", *_TAILS)}
        for match in re.finditer(r"(?<!\w)[A-Z](?:[A-Z]|[&.](?=[A-Z])){1,8}(?![a-z])", self.text):
            if "".join(c for c in match.group() if c.isalpha()) in names:
                yield match.span()

    def _find_end_of_legal_forms(self, end: int) -> int:
        """Return the end after legal forms and the like that follow: ``Orlo`` in ``Orlo, Inc``."""
        while True:
            start = end
            while start - end < 2 and self.text[start : start + 1] in (" ", ",", "\xa0"):
                start += 1
            match = WORD.match(self.plain, start) if start > end else None
            if match is None or match.group() not in _LEGAL | _load_word_list("endings"):
                return end
            if self.cased and self.text[start].islower():
                return end
            end = match.end()

    def find_introduced_names(self, value: str) -> list[str]:
        """Return the names by which the opening of a call introduces its company."""
        opening = self.text[:OPENING]
        counts = Counter(w for _, _, w in self.words)
        value_words = set(list_core_words(value)) - _load_word_list("generic")
        out: dict[str, None] = {}
        for sureness, patterns in _load_data()["introductions"].items():
            assert isinstance(patterns, list)
            for pattern in patterns:
                for ((_, start),) in find_matches(compile_pattern(f"(?i){pattern}"), opening):
                    match = _NAME.match(opening, start)
                    name, occasion = _remove_event_words(match.group(), opening[match.end() :]) if match else ("", 0)
                    words = list_core_words(name) if name else []
                    if not words or _load_word_list("persons") & set(words) or not _can_be_name(words):
                        continue
                    repeated = min(counts[w] for w in words) > 1
                    is_introduced = {"sure": occasion + repeated > 1, "likely": occasion > 2 and repeated}.get(sureness)
                    is_rare = len(words) > 1 or (
                        words[0] not in self.common and _get_frequency_rank(words[0]) >= _FREQUENT
                    )
                    if value_words & set(words) or (is_introduced and is_rare):
                        out[name] = None
        return list(out)


def _is_misspelling(word: str, head: str) -> bool:
    if word[0] != head[0] or abs(len(word) - len(head)) > 2:
        return False
    if is_within_one_edit(word, head):
        return True
    if len(head) <= 6:
        return False
    return make_sound_key(word) == make_sound_key(head) or (word[:3] == head[:3] and _is_within_two_edits(word, head))


def _is_within_two_edits(a: str, b: str) -> bool:
    """Whether two long words differ in at most two insertions, deletions or substitutions."""
    if len(a) < 9 or len(b) < 9:
        return False
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        last, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            last, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, last + (x != y))
    return row[-1] <= 2


def _can_be_name(words: Sequence[str]) -> bool:
    """Whether words can be a name: one that is not generic, or several, no codes."""
    if not any(len(w) > 1 for w in words) or all(re.fullmatch(r"[a-z]{0,2}\d+", w) for w in words):
        return False
    return len(words) > 1 or words[0] not in _load_word_list("generic") | _load_word_list("occasion")


def _remove_event_words(name: str, after: str) -> tuple[str, int]:
    """Return a name without the event that follows it, and how sure that event is: 3 the name's own, 2 at once,
    1 within a few words, 0 none.

    ``FEMSA's Second Quarter`` is ``FEMSA``, surely.
    """
    full_stop = re.search(r"(?<!\bDr)(?<!\bSt)(?<!\b[A-Z])\.\s", name)
    if full_stop:
        name, after = name[: full_stop.start()], ""
    possessive = re.search(r"['’]s?(?!\w)", name)
    if possessive:
        name, after = name[: possessive.start()], name[possessive.end() :] + after
    words = list(re.finditer(r"[^\s-]+", name))
    cut = next((i for i in range(len(words)) if _begins_event_name([w.group() for w in words[i : i + 2]])), len(words))
    following = [word.group() for word in words[cut:]]
    following += [m.group() for m in WORD.finditer(_MARK.sub("", after[:48]).partition(".")[0])]
    if following and following[0] in ("and", "&"):
        following = following[2:]
    sure = 2 * bool(following and _is_event_word(following[0])) or int(any(map(_is_event_word, following)))
    name = name[: words[cut].start()] if cut < len(words) else name
    return name.strip(" ,.-&"), sure + (possessive is not None and sure > 1)


def _begins_event_name(words: Sequence[str]) -> bool:
    """Whether the first of one or two words names an event, or joins such a word, or a generic one, to a name."""
    if _is_event_word(words[0]):
        return True
    if words[0] not in ("and", "&") or len(words) < 2:
        return False
    return _is_event_word(words[1]) or fold_keeping_length(words[1]).strip() in _load_word_list("generic")


def _is_event_word(surface: str) -> bool:
    """Whether a word belongs to the name of a call or its period, such as ``Quarter`` or ``2020``."""
    word = fold_keeping_length(surface).strip()
    return (
        word in _load_word_list("occasion")
        or re.fullmatch(r"(?:19|20)\d\d|(?:fy|q|h)\d{1,4}|\d[qhm]", word) is not None
    )


def insert_protected_spans(
    text: str, spans: Sequence[Span], protected: Sequence[Span], taxonomy: Taxonomy = TAXONOMY
) -> tuple[Span, ...]:
    """Return the findings with those of the protected value first: others that they overlap are clipped.

    But an address or number that holds the value stays complete, and so does the name of an organisation that holds the
    name of a protected one: it is its bearer's, or that of a division of it.

    Args:
        text: of the document.
        spans: disjoint findings, sorted.
        protected: disjoint spans of the protected value, sorted.
        taxonomy: the labels.
    """
    direct = [s for s in spans if taxonomy.get(s.label).kind == "direct"]
    codes = Reach((s.start, s.end) for s in direct if taxonomy.get_family(s.label) not in _NAMED)
    protected = [p for p in protected if not codes.contains(p.start, p.end)]
    if not protected:
        return tuple(spans)
    rest: list[Span] = []
    ends = [p.end for p in protected]
    starts = [p.start for p in protected]
    bounds = [(p.start, p.end) for p in protected]
    for span in spans:
        first, last = bisect_right(ends, span.start), bisect_left(starts, span.end) - 1
        if first > last:
            rest.append(span)
            continue
        families = {taxonomy.get_family(s.label) for s in (span, protected[first])}
        if families == {"ORGANIZATION"} and not _APART.search(text, span.start, span.end):
            bounds[first] = (min(bounds[first][0], span.start), bounds[first][1])
            bounds[last] = (bounds[last][0], max(bounds[last][1], span.end))
            continue
        overlapping = [(p.start, p.end) for p in protected[first : last + 1]]
        for a, b in subtract_intervals((span.start, span.end), overlapping):
            piece = _EDGE.sub("", text[a:b])
            a = b - len(piece)
            b = a + len(_EDGE_AFTER.sub("", piece))
            if sum(map(str.isalnum, text[a:b])) > 1:
                rest.append(replace(span, start=a, end=b))
    grown: list[Span] = []
    for p, (a, b) in zip(protected, bounds, strict=True):
        if grown and a < grown[-1].end:
            grown[-1] = replace(grown[-1], end=max(b, grown[-1].end))
        else:
            grown.append(replace(p, start=a, end=b))
    return tuple(sorted((*rest, *grown)))
