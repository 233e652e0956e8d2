"""The value that nobody may guess, wherever a document names it: the full name, its parts, its spellings, its acronym.

A metadata column says "Nextar Media Group", and the text says "Nexstar"; it says "Fomento Economico Mexicano", and the
text "FEMSA". So names are compared by their letters, one slip allowed, and how a text introduces its company is read.
A word alone stands for the name only where it is no common word: the text never writes it small.
"""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from types import MappingProxyType

from allonym.batch import split_field_name
from allonym.detect.lexicon import keep_words, list_person_forms
from allonym.detect.scan import compile_pattern, find_matches
from allonym.detect.words import word_list
from allonym.document import Document, Span, subtract
from allonym.labels import TAXONOMY, Label, Taxonomy
from allonym.policy import Policy, Rule
from allonym.text.names import near, sound
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
_LEGAL = word_list("legal_forms")
_NAMED = ("PERSON", "ORGANIZATION", "LOCATION", "PRODUCT", OTHER)
_SMALL = frozenset("of and the for in on de del la le du et y e und da do".split())
_TAILS = ("SA", "SAB", "AG", "HG", "NV", "SE", "CO", "PLC", "LLC", "INC", "C", "I")
_NAME = re.compile(
    r"[^\W_]*[^\W\d_a-z][\w&’'.\-]*(?:\s+(?:(?:of|and|&|de|del|la)\s+)?(?:[^\W\d_a-z]|\d)[\w&’'.\-]*){0,6}"
)


@cache
def _data() -> dict[str, dict[str, object]]:
    return tomllib.loads(files("allonym.swap").joinpath("protected.toml").read_text(encoding="utf-8"))


@cache
def _words(name: str) -> frozenset[str]:
    return frozenset(str(_data()["words"][name]).split())


@cache
def _ranks() -> dict[str, int]:
    """Words of the encoder's vocabulary, the frequent ones first."""
    lines = files("allonym.models").joinpath("english", "vocab.txt").read_text(encoding="utf-8").splitlines()
    return {word: rank for rank, word in enumerate(lines)}


def kind_of(protect: str) -> str:
    """The label that fits a metadata key: ``COMPANY``, ``PERSON`` ...; ``OTHER_IDENTIFYING_ATTRIBUTE`` where none does.

    >>> kind_of("company"), kind_of("hospital"), kind_of("author_name"), kind_of("verdict")
    ('COMPANY', 'ORGANIZATION', 'PERSON', 'OTHER_IDENTIFYING_ATTRIBUTE')
    """
    words = split_field_name(protect).split()
    for label, listed in _data()["kinds"].items():
        if "_".join(words) in str(listed).split():
            return label
    for word in reversed(words):
        for label, listed in _data()["kinds"].items():
            if word != "name" and word in str(listed).split():
                return label
    return "PERSON" if words == ["name"] else OTHER


def policy_for(policy: Policy, protect: str) -> tuple[Policy, str]:
    """The policy with a rule for the protected value, and the label of its mentions.

    A company's is ``COMPANY``, tagged as the policy says. For other keys a direct label is added below the one that
    fits, whose tag is the key: ``[Hospital]``.
    """
    kind = kind_of(protect)
    if kind == "COMPANY":
        return policy, kind
    words = split_field_name(protect).split()
    name = "PROTECTED_" + "_".join(w for w in ("".join(c for c in w if c.isalnum()) for w in words) if w).upper()
    if name in policy.taxonomy:
        return policy, name
    added = Label(name, kind, "direct", policy.taxonomy.get(kind).risk, "the protected value")
    tag = "".join(c for c in " ".join(words).title() if c not in "{}[]")
    rules = {**policy.rules, name: Rule("tag", MappingProxyType({"style": f"[{tag}]"}))}
    return policy.with_(taxonomy=policy.taxonomy.extended([added]), rules=MappingProxyType(rules)), name


@dataclass(frozen=True, slots=True, repr=False)
class _Text:
    """A document as names are looked for in it: its text, the same in small base letters, and its words."""

    text: str
    plain: str
    words: tuple[tuple[int, int, str], ...]
    common: frozenset[str]  # words that it writes small, where it has capitals
    cased: bool  # whether it has capitals at all

    @classmethod
    def of(cls, text: str) -> _Text:
        plain = keep_words(text)
        words = tuple((m.start(), m.end(), m.group()) for m in WORD.finditer(plain))
        small = frozenset(
            w for a, b, w in words if text[a].islower() and not _ADDRESS.search(text, max(0, a - 1), b + 2)
        )
        cased = 50 * sum(1 for a, _, _ in words if text[a].isupper()) >= len(words)
        return cls(text, plain, words, small if cased else frozenset(), cased)


def mentions(document: Document, value: str, kind: str, label: str, aliases: Iterable[str] = ()) -> tuple[Span, ...]:
    """Where a document names its protected value, as sorted disjoint spans.

    Args:
        document: the text.
        value: as the metadata has it.
        kind: what it is, see :func:`kind_of`.
        label: the label of the spans.
        aliases: further names of it: tickers, abbreviations, former names.
    """
    read = _Text.of(document.text)
    names = [value, *aliases]
    found: set[tuple[int, int]] = set()
    if kind == "PERSON":
        for name in names:
            for form, capital in [(name, False), *((f, c) for f, _, c in list_person_forms(name))]:
                found.update(_phrase(read, keep_words(form).split(), capital))
    elif kind in ("COMPANY", "ORGANIZATION"):
        if kind == "COMPANY":
            names += _introduced(read, value)
        for name in dict.fromkeys(names):
            if name.isupper() and len(name) < (4 if name == value else 6) and _rank(name.lower()) < _RARE:
                found.update(m.span() for m in re.finditer(rf"(?<!\w){re.escape(name)}(?!\w)", read.text))
            else:
                found.update(_organization(read, name))
    else:
        for name in names:
            found.update(_phrase(read, keep_words(name).split(), any(c.isupper() for c in name)))
    return tuple(Span(a, b, label, _SCORE, SOURCE) for a, b in _longest(found))


def _longest(found: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    done = 0
    for a, b in sorted(found, key=lambda i: (i[0], -i[1])):
        if a >= done:
            yield a, b
            done = b


def _phrase(read: _Text, words: Sequence[str], capital: bool) -> Iterator[tuple[int, int]]:
    """Where the words stand one after the other; ``and`` may be missing, as in ``&``."""
    said = [w for w in words if w != "and"] or list(words)
    if not said or (len(said) == 1 and len(said[0]) < 2):
        return
    joined = r"(?: +and)? +" if "and" in words else r" {1,4}"
    pattern = compile_whole_words(joined.join(map(re.escape, said)))
    for match in pattern.finditer(read.plain):
        a, b = match.span()
        if "\n\n" in read.text[a:b] or (capital and read.cased and not _capital(read, a, b)):
            continue
        yield a, b


def _capital(read: _Text, start: int, end: int) -> bool:
    """Whether each word of note in a stretch has a capital or is a number."""
    words = [(m.start() + start, m.group()) for m in WORD.finditer(read.plain[start:end])]
    return all(not read.text[a].islower() for a, w in words if w not in _SMALL)


def bare(name: str) -> list[str]:
    """The words of an organisation's name in small base letters, without articles and legal forms at its ends."""
    words = keep_words(name.replace(".", "")).split()
    while len(words) > 1 and words[0] == "the":
        words.pop(0)
    for endings in (_LEGAL, _LEGAL | _words("endings")):
        while len(words) > 1 and (words[-1] in endings or words[-1] == "and"):
            words.pop()
    return words


def _organization(read: _Text, name: str) -> Iterator[tuple[int, int]]:
    full = keep_words(name.replace(".", "")).split()
    words = bare(name)
    if not words:
        return
    heads = [w for i, w in enumerate(words) if _stands_alone(read, w, i, len(words))]
    rare = any(_rank(w) >= _RARE for w in heads)
    phrases = {
        tuple(full),
        tuple(words),
        *(tuple(words[:n]) for n in range(2, len(words)) if words[n - 1] not in _SMALL),
    }
    hits = {hit for phrase in phrases for hit in _phrase(read, phrase, not rare)}
    hits.update(hit for head in heads for hit in _phrase(read, [head], True))
    hits.update(_spelled(read, [w for w in heads if len(w) > 4]))
    hits.update(_acronyms(read, words, full, name))
    for a, b in hits:
        yield a, _with_ending(read, b)


def _rank(word: str) -> int:
    return _ranks().get(word, 1 << 20)


def _stands_alone(read: _Text, word: str, place: int, count: int) -> bool:
    """Whether one word of a name means its bearer wherever it has a capital."""
    if count == 1:
        return len(word) > 1
    if len(word) < 3 or word in _SMALL or word in _words("generic") or word in read.common or word.isdigit():
        return False
    if word.upper() in word_list("acronyms") or word in _words("persons"):
        return False
    rank = _rank(word)
    if rank >= _RARE:
        return place == 0 or len(word) > 4
    return place == 0 and rank >= _COMMON and sum(w == word for _, _, w in read.words) > 1


def _spelled(read: _Text, heads: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Capitalised words that are a head but for one slip, that sound like it, hold it, or are it in two pieces."""
    if not heads:
        return
    alike: dict[str, bool] = {}

    def same(word: str) -> bool:
        if word not in alike:
            alike[word] = word not in read.common and _rank(word) >= _RARE and any(_alike(word, h) for h in heads)
        return alike[word]

    for i, (a, b, word) in enumerate(read.words):
        if read.cased and read.text[a].islower():
            if word[-1] == "s" and word[:-1] in heads and _rank(word[:-1]) >= _RARE:
                yield a, b
            holds = next((h for h in heads if h in word and any(c.isupper() for c in read.text[a:b])), None)
            if holds:
                yield a, b
            continue
        if same(word) or any(h in word for h in heads):
            yield a, b
        elif i + 1 < len(read.words):
            c, d, after = read.words[i + 1]
            joined = word + after
            if c - b == 1 and read.text[b] in " -" and len(after) > 2 and any(_alike(joined, h) for h in heads):
                yield a, d


def _alike(word: str, head: str) -> bool:
    if word[0] != head[0] or abs(len(word) - len(head)) > 2:
        return False
    if near(word, head):
        return True
    return len(head) > 6 and (sound(word) == sound(head) or (word[:3] == head[:3] and _two_slips(word, head)))


def _two_slips(a: str, b: str) -> bool:
    """Whether two insertions, deletions or substitutions at most make one of the other; for long words."""
    if len(a) < 9 or len(b) < 9:
        return False
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        last, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            last, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, last + (x != y))
    return row[-1] <= 2


def _acronyms(read: _Text, words: Sequence[str], full: Sequence[str], name: str) -> Iterator[tuple[int, int]]:
    """Capitals that abbreviate a name, alone or with those of a legal form, and longer ones that begin with its own."""
    known: set[str] = set()
    for said in (words, full):
        told = [w for w in said if w not in _SMALL]
        known |= {"".join(w[0] for w in said).upper(), "".join(w[0] for w in told).upper()}
    known = {k for k in known if len(k) > 2 and k not in word_list("acronyms")}
    starts = {w.upper() for w in words if len(w) > 2 and w.upper() in name}
    for match in re.finditer(r"(?<!\w)[A-Z](?:[A-Z]|[&.](?=[A-Z])){1,8}(?![a-z])", read.text):
        letters = "".join(c for c in match.group() if c.isalpha())
        if (
            letters in known
            or any(letters == k + t for k in known for t in _TAILS)
            or any(letters.startswith(s) and letters[len(s) :] in ("", *_TAILS) for s in starts)
        ):
            yield match.span()


def _with_ending(read: _Text, end: int) -> int:
    """The end with legal forms and the like that follow: ``Orlo`` in ``Orlo, Inc``."""
    while True:
        at = end
        while at - end < 2 and read.text[at : at + 1] in (" ", ",", "\xa0"):
            at += 1
        match = WORD.match(read.plain, at) if at > end else None
        if match is None or match.group() not in _LEGAL | _words("endings"):
            return end
        if read.cased and read.text[at].islower():
            return end
        end = match.end()


def _introduced(read: _Text, value: str) -> list[str]:
    """How the opening of a call names its company."""
    opening = read.text[:OPENING]
    counts = Counter(w for _, _, w in read.words)
    own = set(bare(value)) - _words("generic")
    out: dict[str, None] = {}
    for sure, patterns in _data()["introductions"].items():
        assert isinstance(patterns, list)
        for pattern in patterns:
            for ((_, at),) in find_matches(compile_pattern(f"(?i){pattern}"), opening):
                match = _NAME.match(opening, at)
                name, occasion = _before_occasion(match.group(), opening[match.end() :]) if match else ("", 0)
                words = bare(name) if name else []
                if not words or _words("persons") & set(words) or not _says_something(words):
                    continue
                again = min(counts[w] for w in words) > 1
                named = (sure == "sure" and occasion + again > 1) or (sure == "likely" and occasion > 2 and again)
                if own & set(words) or (named and _is_name(read, words)):
                    out[name] = None
    return list(out)


def _says_something(words: Sequence[str]) -> bool:
    """Whether words can be a name: one that is not generic, or several, no codes."""
    if not any(len(w) > 1 for w in words) or all(re.fullmatch(r"[a-z]{0,2}\d+", w) for w in words):
        return False
    return len(words) > 1 or not (words[0] in _words("generic") or words[0] in _words("occasion"))


def _is_name(read: _Text, words: Sequence[str]) -> bool:
    return len(words) > 1 or (words[0] not in read.common and _rank(words[0]) >= _FREQUENT)


def _before_occasion(name: str, after: str) -> tuple[str, int]:
    """A name without what follows it, and how surely that is an occasion: 3 the name's own, 2 at once, 1 within a
    few words, 0 not.

    ``FEMSA's Second Quarter`` is ``FEMSA``, surely.
    """
    full_stop = re.search(r"(?<!\bDr)(?<!\bSt)(?<!\b[A-Z])\.\s", name)
    if full_stop:
        name, after = name[: full_stop.start()], ""
    possessive = re.search(r"['’]s?(?!\w)", name)
    if possessive:
        name, after = name[: possessive.start()], name[possessive.end() :] + after
    pieces = [(m.start(), m.group()) for m in re.finditer(r"[^\s-]+", name)]
    cut = len(pieces)
    for i, (_, said) in enumerate(pieces):
        if _is_occasion(said) or (said in ("and", "&") and i + 1 < cut and _is_no_name(pieces[i + 1][1])):
            cut = i
            break
    follows = [said for _, said in pieces[cut:]]
    follows += [m.group() for m in WORD.finditer(_MARK.sub("", after[:48]).partition(".")[0])]
    if follows and follows[0] in ("and", "&"):
        follows = follows[2:]
    sure = 2 * bool(follows and _is_occasion(follows[0])) or int(any(map(_is_occasion, follows)))
    name = name[: pieces[cut][0]] if cut < len(pieces) else name
    return name.strip(" ,.-&"), sure + (possessive is not None and sure > 1)


def _is_occasion(said: str) -> bool:
    word = keep_words(said).strip()
    return word in _words("occasion") or re.fullmatch(r"(?:19|20)\d\d|(?:fy|q|h)\d{1,4}|\d[qhm]", word) is not None


def _is_no_name(said: str) -> bool:
    return _is_occasion(said) or keep_words(said).strip() in _words("generic")


def with_protected(
    text: str, found: Sequence[Span], protected: Sequence[Span], taxonomy: Taxonomy = TAXONOMY
) -> tuple[Span, ...]:
    """The findings, those of the protected value first: others that they overlap are clipped.

    But an address or number that holds the value stays whole, and so does the name of an organisation that holds the
    name of a protected one: it is its bearer's, or that of a division of it.

    Args:
        text: of the document.
        found: disjoint findings, sorted.
        protected: disjoint spans of the protected value, sorted.
        taxonomy: the labels.
    """
    codes = [(s.start, s.end) for s in found if _is_code(s.label, taxonomy)]
    starts = [a for a, _ in codes]
    protected = [p for p in protected if not ((i := bisect_right(starts, p.start) - 1) >= 0 and codes[i][1] >= p.end)]
    if not protected:
        return tuple(found)
    grown: list[Span] = []
    rest: list[Span] = []
    starts = [p.start for p in protected]
    wide = {p: (p.start, p.end) for p in protected}
    for span in found:
        i = bisect_right(starts, span.start) - 1
        i = max(0, i if i >= 0 and protected[i].end > span.start else i + 1)
        inside = []
        while i < len(protected) and protected[i].start < span.end:
            inside.append(protected[i])
            i += 1
        if not inside:
            rest.append(span)
            continue
        first, last = inside[0], inside[-1]
        one = taxonomy.lineage(span.label)[-1] == taxonomy.lineage(first.label)[-1] == "ORGANIZATION"
        if one and not _APART.search(text, span.start, span.end):
            wide[first] = (min(wide[first][0], span.start), wide[first][1])
            wide[last] = (wide[last][0], max(wide[last][1], span.end))
            continue
        for a, b in subtract((span.start, span.end), [(p.start, p.end) for p in inside]):
            piece = _EDGE.sub("", text[a:b])
            a = b - len(piece)
            b = a + len(_EDGE_AFTER.sub("", piece))
            if sum(map(str.isalnum, text[a:b])) > 1:
                rest.append(replace(span, start=a, end=b))
    for p in protected:
        a, b = wide[p]
        if grown and a < grown[-1].end:
            grown[-1] = replace(grown[-1], end=max(b, grown[-1].end))
        else:
            grown.append(replace(p, start=a, end=b))
    return tuple(sorted((*rest, *grown)))


def _is_code(label: str, taxonomy: Taxonomy) -> bool:
    return taxonomy.get(label).kind == "direct" and taxonomy.lineage(label)[-1] not in _NAMED
