"""Which mentions of people are the same person."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence

from allonym.document import Document, Span
from allonym.text.names import (
    PARTICLES,
    Form,
    initials,
    list_filing_keys,
    list_lookup_keys,
    near,
    same_person,
    short_forms,
    sound,
    split_name,
    swapped,
)

_INTRODUCTION = re.compile(r"\b(?:this is|it['’]?s|i['’]?m|i am|my name is|name['’]?s|here is)\s*$", re.I)
_GREETING = re.compile(
    r"(?:\bhi|\bhello|\bhey|\bthanks|\bthank you|\bmorning|\bafternoon|\bevening|\bwelcome|\bbye|\bdear|\bover to)"
    r"[\s,]*(?:there[\s,]*)?$",
    re.I,
)
_WINDOW = 40


class Group:
    """Mentions known to share a referent. Mutable; it never leaves a call of :func:`allonym.link.link`."""

    __slots__ = ("forms", "gender", "key", "spans", "speaks")

    def __init__(self, key: str) -> None:
        self.key = key
        self.spans: list[Span] = []
        self.forms: list[tuple[str, ...]] = []
        self.gender = ""
        self.speaks = False  # one of the mentions is the label of a turn


Table = dict[str, list[Group]]


def link_people(
    document: Document, people: dict[Form, list[Span]], spelled: dict[str, list[Span]], notes: list[str]
) -> list[Group]:
    """Groups of the mentions, each in exactly one; adds to ``notes`` what stayed ambiguous.

    Args:
        document: for its turns.
        people: mentions by the form of their name.
        spelled: mentions by the letters that they spell.
        notes: filled.
    """
    roll = _Roll(document, people, notes)
    singles = [f for f in people if len(f[0]) == 1 or all(len(w) == 1 for w in f[0])]
    full = [f for f in people if len(f[0]) > 1 and any(len(w) > 1 for w in f[0])]
    for form in sorted(full, key=_weight) if len(full) > 1 else full:
        roll.add_full(form)
    if singles:
        rest = roll.add_singles(singles)
        roll.add_alike(roll.add_plurals(rest))
    for letters, mentions in spelled.items():
        roll.add_spelled(letters, mentions)
    keys: dict[str, int] = {}
    for group in roll.groups:
        keys[group.key] = seen = keys.get(group.key, 0) + 1
        if seen > 1:
            group.key += f" ({group.gender or seen})"
    return roll.groups


class _Roll:
    """The people of one document and who bears which name."""

    def __init__(self, document: Document, people: dict[Form, list[Span]], notes: list[str]) -> None:
        self.document = document
        self.people = people
        self.notes = notes
        self.groups: list[Group] = []
        self.by_last: dict[tuple[str, str], list[int]] = {}  # last word and key of a given name -> numbers of groups
        self.givens: Table = {}  # given names of full names, one or several -> who bears them
        self.mixed: Table = {}  # the letters of a given name, sorted -> who bears it
        self.bearers: Table = {}  # any part of a full name -> who bears it
        self.lasts: Table = {}  # family name -> who bears it
        self.alone: Table = {}  # a name mentioned alone -> who it made
        self.short: Table = {}  # initials -> whose they are
        self.spelling: Table = {}  # letters -> who bears a name of them
        labels = {t.speaker for t in document.turns if t.speaker is not None}
        begins = sorted(labels)
        self.speakers = {f for f, spans in people.items() if begins and any(_within(begins, s) for s in spans)}

    def open(self, form: Form, mentions: list[Span], key: str = "") -> Group:
        group = Group("PERSON:" + (key or " ".join(form[0])))
        group.spans += mentions
        group.forms.append(form[0])
        group.gender = form[1]
        group.speaks = form in self.speakers
        self.groups.append(group)
        return group

    def join(self, group: Group, form: Form) -> None:
        group.spans += self.people[form]
        group.speaks = group.speaks or form in self.speakers

    def known(self, form: Form, fits: list[Group]) -> list[Group]:
        """Those of ``fits`` who can be meant: two labels of turns that are not the same name are two people."""
        if form not in self.speakers:
            return fits
        return [g for g in fits if not g.speaks or form[0] in g.forms]

    def doubt(self, mentions: list[Span], fits: list[Group]) -> None:
        self.notes.append(note(mentions, [min(g.spans) for g in fits]))

    def add_full(self, form: Form) -> None:
        """A name of several words joins the one person that it fits; fuller names come first."""
        words, gender = form
        mentions = self.people[form]
        given, last, _ = split_name(words)
        keys = list_lookup_keys(given[0]) if given else ()
        numbers = sorted({number for key in keys for number in self.by_last.get((last[-1], key), ())})
        fits = [g for g in map(self.groups.__getitem__, numbers) if all(same_person(words, f) for f in g.forms)]
        if not fits and len(self.givens.get(" ".join(words), ())) == 1:  # "Mary Kay" beside "Mary Kay Mill"
            self.join(self.givens[" ".join(words)][0], form)
            return
        bare = not fits and words[0] in PARTICLES  # "van den Berg": a family name of several words, perhaps
        if bare:
            fits = self.lasts.get(" ".join(words), [])
        if gender:
            fits = [g for g in fits if g.gender in ("", gender)]
        meant = self.known(form, fits)
        if fits and len(meant) != 1:
            self.doubt(mentions, fits)
        if len(meant) > 1:
            self.open(form, mentions)
            return
        if meant:
            group = meant[0]
            self.join(group, form)
            group.gender = group.gender or gender
            if bare:
                return
            group.forms.append(words)
        else:
            group = self.open(form, mentions)
            for key in list_filing_keys(given[0]) if given else ():
                self.by_last.setdefault((last[-1], key), []).append(len(self.groups) - 1)
        for part in {*given, " ".join(given)}:
            _bear(self.givens, part, group)
        for part in given:
            _bear(self.bearers, part, group)
        for part in {last[-1]: 0, " ".join(last): 0}:
            pieces = (part, *part.split("-")) if "-" in part else (part,)
            for piece in pieces:
                _bear(self.bearers, piece, group)
                _bear(self.lasts, piece, group)

    def add_singles(self, singles: list[Form]) -> list[Form]:
        """Names of one word, and initials. Returns those of nobody so far, which had no title."""
        genders: dict[str, set[str]] = {}
        for words, gender in singles:
            if gender:
                genders.setdefault(words[0], set()).add(gender)
        rest: list[Form] = []
        # Those with a title first, so that a bare name is held against all of them.
        for form in sorted(singles, key=lambda f: (not f[1], f[0])):
            words, gender = form
            word = words[0]
            mentions = self.people[form]
            both = len(genders.get(word, ())) > 1
            fits = self._fits(words, gender)
            meant = self.known(form, fits)
            if len(meant) == 1 and not (gender and both and not meant[0].gender):
                self.join(meant[0], form)
                continue
            if fits:
                if len(meant) > 1 and self.document.turns:
                    mentions = _settled(self.document, mentions, meant)
                if mentions:
                    self.doubt(mentions, fits)
            elif not gender:
                rest.append(form)
                continue
            if mentions:
                told = gender and (fits or both)
                group = self.open(form, mentions, f"{' '.join(words)} ({gender})" if told else "")
                if gender:
                    self.alone.setdefault(word, []).append(group)
        return rest

    def _fits(self, words: tuple[str, ...], gender: str) -> list[Group]:
        word = words[0]
        letters = len(words) > 1 or len(word) == 1
        if not letters and 2 <= len(word) <= 3 and word not in self.bearers and word not in self.alone:
            first = min(self.people[words, gender])
            letters = self.document.text[first.start : first.end].isupper()  # "MK", not "Ed"
        if letters:
            if not self.short:
                for group in self.groups:
                    for form in group.forms:
                        for short in {*initials(form), *initials(split_name(form)[0])}:
                            _bear(self.short, short, group)
            return _once(self.short.get("".join(words), []))
        if gender:
            fits = self.lasts.get(word) or self.bearers.get(word, [])
            return _once([g for g in fits if g.gender in ("", gender)])
        found = _once(self.bearers.get(word, []) + self.alone.get(word, []))
        if found or not self.givens:
            return found
        if not self.mixed:
            for name, groups in self.givens.items():
                for group in groups:
                    _bear(self.mixed, "".join(sorted(name)), group)
        close = [
            g for g in self.mixed.get("".join(sorted(word)), ()) if any(swapped(p, word) for f in g.forms for p in f)
        ]
        return close or _once([g for name in sorted(short_forms(word)) for g in self.givens.get(name, ())])

    def add_plurals(self, forms: list[Form]) -> list[Form]:
        """``Beckhams``: the one bearer of the name, or a family. Returns the forms that are neither."""
        singular = {f[0][0] for f in forms}
        rest: list[Form] = []
        families: list[Form] = []
        for form in forms:
            word = form[0][0]
            name = next((n for n in _singular(word) if n in self.lasts or n in self.alone or n in singular), "")
            if not name or form in self.speakers:
                rest.append(form)
            elif name in singular:
                families.append(form)
            else:
                self._add_family(form, name)
        for form in rest:
            if form[0][0] in {n for f in families for n in _singular(f[0][0])}:
                self.alone.setdefault(form[0][0], []).append(self.open(form, self.people[form]))
        for form in families:
            self._add_family(form, next(n for n in _singular(form[0][0]) if n in singular))
        return [f for f in rest if f[0][0] not in self.alone]

    def _add_family(self, form: Form, name: str) -> None:
        bearing = _once(self.lasts.get(name, []) + self.alone.get(name, []))
        if len(bearing) == 1:
            bearing[0].spans += self.people[form]
        else:
            self.open(form, self.people[form], f"{name} family")

    def add_alike(self, forms: list[Form]) -> None:
        """Names of one word that nobody bears: a spelling of the one name that sounds the same, or somebody new."""
        alike: Table = {}
        if any(len(f[0][0]) >= 4 for f in forms):
            for part, bearing in self.bearers.items():
                for group in bearing if len(part) >= 4 else ():
                    _bear(alike, sound(part), group)
        singles: dict[str, Group] = {}
        for form in sorted(forms):
            word = form[0][0]
            named = [singles[name] for name in sorted(short_forms(word)) if name in singles]
            if len(form[0]) == 1 and len(self.known(form, named)) == 1:
                self.join(named[0], form)
                named[0].forms.append(form[0])
                continue
            key = sound(word) if len(form[0]) == 1 and len(word) >= 4 else ""
            fits = [g for g in alike.get(key, ()) if _sounds(g, word, key)] if key else []
            meant = self.known(form, fits)
            if len(meant) == 1:
                self.join(meant[0], form)
                meant[0].forms.append(form[0])
                continue
            group = self.open(form, self.people[form])
            if len(form[0]) == 1:
                singles[word] = group
            if key:
                alike.setdefault(key, []).append(group)

    def add_spelled(self, letters: str, mentions: list[Span]) -> None:
        """A word spelled letter by letter joins the one person who bears it."""
        if not self.spelling:
            for group in self.groups:
                for form in group.forms:
                    for part in dict.fromkeys((*form, "".join(form))):
                        _bear(self.spelling, part, group)
        fits = self.spelling.get(letters, [])
        if len(fits) == 1:
            fits[0].spans += mentions
            return
        if fits:
            self.doubt(mentions, fits)
        group = Group(("PERSON:" if any(m.label != "SPELLED_WORD" for m in mentions) else "SPELLED_WORD:") + letters)
        group.spans += mentions
        self.groups.append(group)


def _within(labels: Sequence[tuple[int, int]], span: Span) -> bool:
    i = bisect_right(labels, (span.start, span.start + 1)) - 1
    i += i + 1 < len(labels) and labels[i + 1][0] == span.start
    return i >= 0 and span.start < labels[i][1]


def _bear(table: Table, part: str, group: Group) -> None:
    if len(part) > 1 and part[0] != "+":
        known = table.setdefault(part, [])
        if not known or known[-1] is not group:
            known.append(group)


def _once(groups: list[Group]) -> list[Group]:
    return list({id(g): g for g in groups}.values())


def _singular(word: str) -> tuple[str, ...]:
    if len(word) < 4 or word[-1] != "s":
        return ()
    return (word[:-1], word[:-2]) if word.endswith("es") else (word[:-1],)


def _sounds(group: Group, word: str, key: str) -> bool:
    return any(len(p) >= 4 and sound(p) == key and near(p, word) for form in group.forms for p in form)


def _settled(document: Document, mentions: list[Span], fits: list[Group]) -> list[Span]:
    """Give each mention that a turn settles to its group; returns the others."""
    rest: list[Span] = []
    turns = document.turns
    begins = [t.start for t in turns]
    named = sorted(((s.start, s.end, i) for i, g in enumerate(fits) for s in g.spans))
    for span in mentions:
        at = bisect_right(begins, span.start) - 1
        turn = turns[at] if at >= 0 and span.start < turns[at].end else None
        chosen: Group | None = None
        if turn is not None and turn.speaker is not None:
            a, b = turn.speaker
            next_one = bisect_right(named, (a, b, -1))
            around = named[max(0, next_one - 1) : next_one + 1]
            speaker = next((fits[i] for start, end, i in around if start < b and a < end), None)
            before = document.text[max(turn.start, span.start - _WINDOW) : span.start]
            if speaker is not None and _INTRODUCTION.search(before):
                chosen = speaker
            elif speaker is not None and _GREETING.search(before):
                chosen = fits[fits[0] is speaker] if len(fits) == 2 else None
        if chosen is None:
            rest.append(span)
        else:
            chosen.spans.append(span)
    return rest


def note(spans: Sequence[Span], fits: Sequence[Span]) -> str:
    """What to tell about mentions that fit several groups: offsets and labels, no text."""
    return f"ambiguous {spans[0].label} at {_places(spans)}: fits those first named at {_places(fits)}; kept apart"


def _places(spans: Sequence[Span]) -> str:
    shown = ", ".join(f"{s.start}..{s.end}" for s in sorted(spans)[:5])
    return f"{shown} and {len(spans) - 5} more" if len(spans) > 5 else shown


def _weight(form: Form) -> tuple[int, int, tuple[str, ...], str]:
    words = form[0]
    return -sum(len(w) > 1 for w in words), -sum(map(len, words)), words, form[1]
