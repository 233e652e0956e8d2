"""The rule detector: tables of patterns, validators and context words over a linear-time engine.

The tables are ``tables/*.toml``, one family each; their rows are :class:`allonym.pattern.PatternRule`. All patterns
of a policy are compiled into a few RE2 sets. One pass over a window of text says which patterns match there at all,
and only those are located. Rules that need a context word run only where one is near.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Sequence
from functools import cache, cached_property
from importlib.resources import files

import re2

from allonym.checksums import get_validator
from allonym.detection import Detector, scan
from allonym.detection.named_numbers import compile_seeds, find_named_values
from allonym.document import Document, Span
from allonym.errors import PolicyError
from allonym.pattern import PatternRule
from allonym.policy import Policy

WINDOW = 4096  # bytes that one look at the sets covers
BEFORE = 192  # bytes before a window that belong to its context
_TAIL = 256  # bytes after a group that are looked at again; more would make some patterns quadratic
AFTER = 512  # bytes after a window in which a match that starts in it may end
_SET_MEMORY = 64 << 20
# Patterns of unlike tables multiply each other's automaton states: in one set they scan up to a hundred times slower,
# and for megabytes before the automaton is warm. More sets than these cost more once it is.
_SETS = {
    **dict.fromkeys(("contact",), 1),
    **dict.fromkeys(("dates", "generic", "money", "numbers", "special_categories"), 2),
    **dict.fromkeys(("network", "secrets", "health", "device", "coordinates"), 3),
    **dict.fromkeys(("finance", "vehicles", "government_us_ca", "government_uk_ie"), 4),
    "european_languages": 5,
}


@cache
def read_builtin_rules() -> tuple[PatternRule, ...]:
    """Read the rules of all built-in tables, by file and position.

    A file's ``[defaults]`` complete its rows, and its ``[parts]`` stand for their names in the patterns: ``<code>``.

    Raises:
        PolicyError: a row is not valid, or two rules share a name.
    """
    rules: dict[str, PatternRule] = {}
    folder = files("allonym").joinpath("detection", "tables")
    for table in sorted((p for p in folder.iterdir() if p.name.endswith(".toml")), key=lambda p: p.name):
        data = tomllib.loads(table.read_text(encoding="utf-8"))
        defaults, parts = data.get("defaults", {}), data.get("parts", {})
        for i, row in enumerate(data.get("rule", [])):
            where = f"{table.name}: rule {row.get('name', i)}"
            for name, part in parts.items():
                row["pattern"] = row["pattern"].replace(f"<{name}>", part)
            rule = PatternRule.from_row({**defaults, **row, "family": table.name[:-5]}, where)
            if rule.name in rules:
                raise PolicyError(f"{table.name}: two rules are called {rule.name}")
            rules[rule.name] = rule
    return tuple(rules.values())


class _CompiledRule:
    """A rule in use. Its patterns are compiled when first needed, since most rules never match anything."""

    def __init__(self, rule: PatternRule, threshold: float, context_index: int) -> None:
        self.rule = rule
        self.threshold = threshold
        self.gated = rule.score < threshold  # counts only with context
        self.context_index = context_index  # in the set, or -1: no context words
        self.source = f"rules:{rule.name}"

    @cached_property
    def compiled_pattern(self) -> re2._Regexp:
        return scan.compile_pattern(self.rule.pattern)

    @cached_property
    def has_groups(self) -> bool:
        return bool(self.compiled_pattern.groups)

    @cached_property
    def validator(self) -> Callable[[str], bool] | None:
        return get_validator(self.rule.validator) if self.rule.validator else None

    @cached_property
    def context_pattern(self) -> re2._Regexp | None:
        return scan.compile_pattern(build_words_pattern(self.rule.context)) if self.rule.context else None

    @cached_property
    def excluding_context_pattern(self) -> re2._Regexp | None:
        return scan.compile_pattern(build_words_pattern(self.rule.unless)) if self.rule.unless else None


def _compile_rules(rules: Sequence[_CompiledRule]) -> scan.PatternSet:
    try:
        return scan.compile_patterns(tuple(scan.widen_classes(c.rule.pattern) for c in rules), _SET_MEMORY)
    except re2.error:
        for compiled in rules:
            try:
                scan.compile_pattern(compiled.rule.pattern)
            except re2.error:
                raise PolicyError(f"pattern {compiled.rule.name} is not valid RE2 syntax") from None
        raise


def build_words_pattern(words: Sequence[str]) -> str:
    """Build an RE2 pattern for any of some whole words, ignoring case; a trailing ``*`` allows any ending."""
    parts = []
    for word in words:
        open_end = word.endswith("*")
        bare = word.rstrip("*")
        escaped = str(re2.escape(bare)).replace("\\ ", r"[\s\-_]+")
        start = r"\b" if bare[0].isascii() and bare[0].isalnum() else ""
        right = "" if open_end or not (bare[-1].isascii() and bare[-1].isalnum()) else r"(?:s|'s)?\b"
        parts.append(f"{start}{escaped}{right}")
    return "(?i)(?:" + "|".join(parts) + ")"


class Ruleset:
    """The rules that a policy can use, compiled.

    Args:
        rules: the pattern rules.
        thresholds: the least score that counts, by label.
        can_count: whether a label counts at a score; where it is given, numbers are found by their names, too, in
            the places that the rules' pass over the text shows.
    """

    def __init__(
        self,
        rules: Iterable[PatternRule],
        thresholds: Callable[[str], float],
        can_count: Callable[[str, float], bool] | None = None,
    ) -> None:
        contexts: dict[tuple[str, ...], int] = {}
        sets: dict[int, list[_CompiledRule]] = {}
        self._rules: list[_CompiledRule] = []
        for rule in rules:
            threshold = thresholds(rule.label)
            if max(rule.score, rule.context_score if rule.context else 0.0) < threshold:
                continue
            if rule.context:
                contexts.setdefault(rule.context, len(contexts))
            compiled = _CompiledRule(rule, threshold, contexts.get(rule.context, -1))
            self._rules.append(compiled)
            sets.setdefault(_SETS.get(rule.family, 0), []).append(compiled)
        self._own_sources = {rule.source for rule in self._rules if not rule.rule.family}
        self._can_count = can_count
        self._seeds = None
        if can_count is not None:
            self._seeds = _CompiledRule(compile_seeds(), 0.0, -1)
            self._rules.append(self._seeds)
            sets.setdefault(0, []).append(self._seeds)
        self._sets = [(_compile_rules(members), members) for members in sets.values()]
        self._contexts = scan.compile_patterns(tuple(map(build_words_pattern, contexts)), _SET_MEMORY)

    def __len__(self) -> int:
        return len(self._rules)

    def __call__(self, document: Document) -> list[Span]:
        """Find the candidates in a document that reach their label's threshold, without duplicates.

        Where a pattern of the policy matches, no built-in rule gives the same place another label.
        """
        text = document.text
        if not self._rules or not text:
            return []
        ascii_only = text.isascii()
        data = scan.encode_text(text)
        hits = self._find_hits(data)
        if not hits:
            return []
        places = None if ascii_only else _map_to_code_points(data, hits)
        best: dict[tuple[int, int, str], Span] = {}
        seeds = []
        for compiled, start, end in hits:
            if places is not None:
                start, end = places[start], places[end]
            if compiled is self._seeds:
                seeds.append((start, end))
                continue
            span = _make_hit_span(compiled, text, start, end)
            if span is not None:
                key = (start, end, span.label)
                rival = best.get(key)
                if rival is None or (rival.score, span.source) < (span.score, rival.source):
                    best[key] = span
        spans = list(best.values())
        if seeds and self._can_count:
            spans += find_named_values(document, seeds, self._can_count)
        own_places = {(s.start, s.end) for s in spans if s.source.partition("+")[0] in self._own_sources}
        if not own_places:
            return spans
        return [
            s for s in spans if (s.start, s.end) not in own_places or s.source.partition("+")[0] in self._own_sources
        ]

    def _select_matching_rules(self, data: bytes | memoryview) -> list[_CompiledRule]:
        """The rules whose pattern matches in ``data``, and whose context does where they need it."""
        present = [rules[i] for patterns, rules in self._sets for i in patterns.find_matching_patterns(data)]
        if any(compiled.gated for compiled in present):
            near = set(self._contexts.find_matching_patterns(bytes(data).replace(b"_", b" ")))
            present = [compiled for compiled in present if not compiled.gated or compiled.context_index in near]
        return present

    def _find_hits(self, data: bytes) -> list[tuple[_CompiledRule, int, int]]:
        size = len(data)
        hits: list[tuple[_CompiledRule, int, int]] = []
        if size <= WINDOW + AFTER:
            for compiled in self._select_matching_rules(data):
                _append_matches(compiled, data, 0, size, size, hits)
            return hits
        ranges: dict[_CompiledRule, list[list[int]]] = {}
        view = memoryview(data)
        start = 0
        while start < size:
            end = _find_cut_position(data, start + WINDOW)
            for compiled in self._select_matching_rules(view[max(0, start - BEFORE) : end + AFTER]):
                places = ranges.setdefault(compiled, [])
                # A pattern may look on to its range's end from each place, so that ranges must not grow with the text.
                if places and places[-1][1] == start and end - places[-1][0] <= 4 * WINDOW:
                    places[-1][1] = end
                else:
                    places.append([start, end])
            start = end
        for compiled, places in ranges.items():
            reach = 0
            for a, b in places:
                if reach < b:
                    reach = _append_matches(compiled, data, max(a, reach), b, size, hits)
        return hits


def _find_cut_position(data: bytes, position: int) -> int:
    """A position at or shortly before ``position`` that cuts no word, so that each window starts with a word."""
    if position >= len(data):
        return len(data)
    space = max(data.rfind(b" ", position - 256, position), data.rfind(b"\n", position - 256, position))
    if space > 0:
        return space + 1
    while position < len(data) and data[position] & 0xC0 == 0x80:
        position += 1
    return position


def _append_matches(
    compiled: _CompiledRule, data: bytes, start: int, end: int, size: int, hits: list[tuple[_CompiledRule, int, int]]
) -> int:
    """Append the matches of one pattern that start in ``start:end`` to ``hits``; return where the search stopped."""
    limit = min(size, end + AFTER)
    pattern = compiled.compiled_pattern
    position = start
    if not compiled.has_groups:
        for ((a, b),) in scan.iterate_matches(pattern, data, start, limit):
            if a >= end and end < size:
                break
            if b > end and limit < size:  # what follows the limit may belong to it
                longer = scan.find_match(pattern, data, a, size, at_start=True)
                b = longer[0][1] if longer is not None else b
            if b > a:
                hits.append((compiled, a, b))
                position = b
        return position
    while position <= limit:
        match = scan.find_match(pattern, data, position, limit)
        if match is None or (match[0][0] >= end and end < size):
            break
        if match[0][1] > end and limit < size:
            match = scan.find_match(pattern, data, match[0][0], size, at_start=True) or match
        a, b = match[1] if match[1][0] >= 0 else match[0]
        if b > a:
            hits.append((compiled, a, b))
        position = max(b, position + 1, match[0][1] - _TAIL)
    return position


def _map_to_code_points(data: bytes, hits: Sequence[tuple[_CompiledRule, int, int]]) -> dict[int, int]:
    """Map the byte offsets of the hits to code points, in one pass. A byte inside a character counts as its start."""
    out: dict[int, int] = {}
    position = points = 0
    for offset in sorted({o for _, a, b in hits for o in (a, b)}):
        stop = offset
        while stop < len(data) and data[stop] & 0xC0 == 0x80:
            stop -= 1
        points += len(data[position:stop].decode("utf-8", "surrogatepass"))
        position = stop
        out[offset] = points
    return out


def _make_hit_span(compiled: _CompiledRule, text: str, start: int, end: int) -> Span | None:
    rule = compiled.rule
    if rule.boundary != "none":
        if rule.boundary != "right" and start and text[start - 1 : start + 1].isalnum():
            return None
        if rule.boundary != "left" and end < len(text) and text[end - 1 : end + 1].isalnum():
            return None
    score, source = rule.score, compiled.source
    if compiled.context_pattern is not None or compiled.excluding_context_pattern is not None:
        nearby = _cut_context(text, start, end, rule.window)
        excluding, including = compiled.excluding_context_pattern, compiled.context_pattern
        if excluding is not None and scan.find_match(excluding, nearby, 0, len(nearby)):
            return None
        if including is not None and rule.context_score > score:
            places = scan.find_match(including, nearby, 0, len(nearby))
            if places is not None:
                word = nearby[slice(*places[0])].decode("utf-8", "replace")
                name = _find_matching_context_word(word, rule.context)
                score, source = rule.context_score, f"{source}+context({name})"
    if score < compiled.threshold:
        return None
    if compiled.validator is not None:  # last, since a validator may cost more than all the rest
        if not compiled.validator(text[start:end]):
            return None
        source += "+valid"
    return Span(start, end, rule.label, score, source)


def _cut_context(text: str, start: int, end: int, window: tuple[int, int]) -> bytes:
    a = max(0, start - window[0])
    if a and text[a - 1].isalnum():
        while a < start and text[a].isalnum():
            a += 1
    b = min(len(text), end + window[1])
    if b < len(text) and text[b].isalnum():
        while b > end and text[b - 1].isalnum():
            b -= 1
    # An underscore ends a word, as in "admin_phone".
    return f"{text[a:start]}\n{text[end:b]}".replace("_", " ").encode("utf-8", "surrogatepass")


def _find_matching_context_word(word: str, words: Sequence[str]) -> str:
    folded = " ".join(word.lower().replace("-", " ").replace("_", " ").split())
    if folded in words:
        return folded
    near = [w for w in words if folded.startswith(w.rstrip("*").lower())]
    return max(near, key=len).rstrip("*") if near else words[0].rstrip("*")


def build_detector(policy: Policy) -> Detector:
    """Build the rule detector, for the policy's labels and countries: built-in rules, its own, and named numbers."""

    def is_usable(rule: PatternRule) -> bool:
        return policy.looks_for(rule.label) and (
            not rule.country or not policy.countries or rule.country in policy.countries
        )

    def can_count(label: str, score: float) -> bool:
        return policy.looks_for(label) and score >= policy.threshold_for(label)

    for rule in read_builtin_rules():
        policy.taxonomy.get(rule.label, f"rule {rule.name}")
    return Ruleset(filter(is_usable, (*read_builtin_rules(), *policy.patterns)), policy.threshold_for, can_count)
