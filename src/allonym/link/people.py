"""Which mentions of people are the same person."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from allonym.document import Document, Reach, Span
from allonym.link.relatives import (
    Relations,
    find_given_name_gender,
    find_relations,
    is_family_name,
    is_only_family_name,
    settle_forms,
)
from allonym.text.names import (
    PARTICLES,
    PersonName,
    can_be_same_person,
    find_given_name_variants,
    has_swapped_letters,
    is_within_one_edit,
    list_filing_keys,
    list_initials,
    list_lookup_keys,
    list_singulars,
    make_sound_key,
    split_name,
)

_INTRODUCTION = re.compile(r"\b(?:this is|it['’]?s|i['’]?m|i am|my name is|name['’]?s|here is)\s*$", re.I)
_GREETING = re.compile(
    r"(?:\bhi|\bhello|\bhey|\bthanks|\bthank you|\bmorning|\bafternoon|\bevening|\bwelcome|\bbye|\bdear|\bover to)"
    r"[\s,]*(?:there[\s,]*)?$",
    re.I,
)
_WINDOW = 40
_LEAST_BEGINNING = 3  # letters of a given name that may stand for all of it
_LEAST_SOUND = 4  # letters of a name that is compared by its sound


@dataclass(eq=False, repr=False, slots=True)
class Group:
    """Mentions that share a referent. Mutable; it never leaves a call of :func:`allonym.link.link`."""

    key: str
    spans: list[Span] = field(default_factory=list)
    forms: list[tuple[str, ...]] = field(default_factory=list)
    gender: str = ""
    speaks: bool = False  # one of the mentions is the label of a turn
    given_gender: str | None = None  # of the given name; None: not looked up yet


Table = dict[str, list[Group]]


def link_people(
    document: Document,
    people: dict[PersonName, list[Span]],
    spelled_words: dict[str, list[Span]],
    second_words: Mapping[str, str],
    notes: list[str],
) -> list[Group]:
    """Group the mentions of people; each mention is in exactly one group.

    Args:
        document: for its turns.
        people: mentions by the form of their name.
        spelled_words: mentions by the letters that they spell.
        second_words: second spelling of a word (``mueller``) to the first (``muller``), for names that are written
            with a letter that has two spellings.
        notes: what stayed ambiguous is added to them.
    """
    if second_words:
        people = _unite_spellings(people, second_words)
    mentions = sorted(((s, form) for form, spans in people.items() for s in spans), key=lambda m: m[0].start)
    relations = find_relations(document.text, mentions)
    people = settle_forms(document.text, people, mentions, relations)
    roll = _Roll(document, people, relations, notes)
    singles = [f for f in people if len(f[0]) == 1 or all(len(w) == 1 for w in f[0])]
    full = [f for f in people if len(f[0]) > 1 and any(len(w) > 1 for w in f[0])]
    for form in sorted(full, key=_rank_form):
        roll.add_full_name(form)
    if singles:
        rest = roll.add_single_names(singles)
        roll.add_unmatched_names(roll.add_plural_names(rest))
    for letters, spans in spelled_words.items():
        roll.add_spelled_word(second_words.get(letters, letters), spans)
    roll.add_maiden_names()
    counts: dict[str, int] = {}
    for group in roll.groups:
        counts[group.key] = count = counts.get(group.key, 0) + 1
        if count > 1:
            group.key += f" ({group.gender or count})"
    return roll.groups


def _unite_spellings(
    people: dict[PersonName, list[Span]], second_words: Mapping[str, str]
) -> dict[PersonName, list[Span]]:
    """The mentions by form, where a name in its second spelling has the form of the first that it fits."""
    second_words = {**second_words, **{second + "s": word + "s" for second, word in second_words.items()}}
    by_last: dict[str, list[tuple[str, ...]]] = {}
    for words, _ in people:
        if len(words) > 1:
            by_last.setdefault(split_name(words)[1][-1], []).append(words)
    united: dict[PersonName, list[Span]] = {}
    borne: set[str] = set()  # words of full names that stay as they are
    for (words, gender), mentions in sorted(people.items(), key=lambda item: -len(item[0][0])):
        first = tuple(second_words.get(word, word) for word in words)
        if first != words and len(words) > 1:
            others = (form for form in by_last.get(split_name(first)[1][-1], ()) if form != words)
            words = first if any(can_be_same_person(first, form) for form in others) else words
        elif first != words and words[0] not in borne:
            words = first
        if len(words) > 1:
            borne.update(words)
        united.setdefault((words, gender), []).extend(mentions)
    return united


class _Roll:
    """The people of one document and who bears which name."""

    def __init__(
        self, document: Document, people: dict[PersonName, list[Span]], relations: Relations, notes: list[str]
    ) -> None:
        self.document = document
        self.relations = relations
        self.owners: dict[int, Group] = {}  # start of a mention that is opposed to others -> whose it is
        self.people = people
        self.notes = notes
        self.groups: list[Group] = []
        self.by_last: dict[str, dict[str, list[int]]] = {}  # last word -> key of a given name -> numbers of groups
        self.givens: Table = {}  # given names of full names, one or several -> who bears them
        self.mixed: Table = {}  # the letters of a given name, sorted -> who bears it
        self.beginnings: Table = {}  # first letters of a given name, all but the last two at most -> who bears it
        self.bearers: Table = {}  # any part of a full name -> who bears it
        self.lasts: Table = {}  # family name -> who bears it
        self.alone: Table = {}  # a name mentioned alone -> who it made
        self.short: Table = {}  # initials -> whose they are
        self.spelling: Table = {}  # letters -> who bears a name of them
        self.speakers: set[PersonName] = set()
        if document.turns:
            labels = Reach(t.speaker for t in document.turns if t.speaker is not None)
            self.speakers = {f for f, m in people.items() if any(labels.touches(s.start, s.start + 1) for s in m)}

    def open_group(self, form: PersonName, mentions: list[Span], key: str = "") -> Group:
        """Start the group of a person who was not mentioned before."""
        key = "PERSON:" + (key or " ".join(form[0]))
        group = Group(key, [*mentions], [form[0]], form[1], form in self.speakers)
        self.groups.append(group)
        self._note_owner(group, mentions)
        return group

    def join_group(self, group: Group, form: PersonName) -> None:
        """Add the mentions of a form to a person."""
        group.spans += self.people[form]
        self._note_owner(group, self.people[form])
        group.speaks = group.speaks or form in self.speakers

    def _note_owner(self, group: Group, mentions: list[Span]) -> None:
        opposed = self.relations.opposed
        if opposed:
            self.owners.update((m.start, group) for m in mentions if m.start in opposed)

    def filter_by_relations(self, form: PersonName, fits: list[Group]) -> list[Group]:
        """Those of ``fits`` whom the text does not tell from the people of a form."""
        if not fits or not self.relations.opposed:
            return fits
        opposed = {start for m in self.people[form] for start in self.relations.opposed.get(m.start, ())}
        others = {id(self.owners[start]) for start in opposed if start in self.owners}
        return [g for g in fits if id(g) not in others]

    def filter_by_turn_labels(self, form: PersonName, fits: list[Group]) -> list[Group]:
        """Those of ``fits`` who can be meant: two labels of turns that are not the same name are two people."""
        if form not in self.speakers:
            return fits
        return [g for g in fits if not g.speaks or form[0] in g.forms]

    def note_ambiguity(self, mentions: list[Span], fits: list[Group]) -> None:
        """Note that mentions fit several people."""
        self.notes.append(describe_ambiguity(mentions, [min(g.spans) for g in fits]))

    def add_full_name(self, form: PersonName) -> None:
        """Add a name of several words to the one person that it fits; fuller names come first."""
        words, gender = form
        mentions = self.people[form]
        given_names, last, generation = split_name(words)
        namesakes = self.by_last.setdefault(last[-1], {})
        fits: list[Group] = []
        if namesakes and given_names:
            numbers = {n for key in list_lookup_keys(given_names[0]) for n in namesakes.get(key, ())}
            candidates_by_key = [self.groups[n] for n in sorted(numbers)]
            fits = [g for g in candidates_by_key if all(can_be_same_person(words, f) for f in g.forms)]
        if not fits and len(self.givens.get(" ".join(words), ())) == 1:  # "Mary Kay" beside "Mary Kay Mill"
            self.join_group(self.givens[" ".join(words)][0], form)
            return
        is_short = not fits and len(given_names) == 1 and len(last[-1]) == 1  # "Mabel P." beside "Mabel Park"
        if is_short:
            bearers = self.givens.get(given_names[0], ())
            fits = [g for g in bearers if any(split_name(f)[1][-1].startswith(last[-1]) for f in g.forms)]
        # "van den Berg", "García López": a family name of several words, perhaps
        is_family = not fits and (words[0] in PARTICLES or is_only_family_name(words[0]))
        if is_family:
            fits = self.lasts.get(" ".join(words), [])
        elif generation and not given_names:  # "Hart Jr."
            fits = [g for g in self.lasts.get(last[0], ()) if any(split_name(f)[2] == generation for f in g.forms)]
        if gender:
            fits = [g for g in fits if (g.gender if words in g.forms else _find_gender(g)) in ("", gender)]
        fits = self.filter_by_relations(form, fits)
        candidates = self.filter_by_turn_labels(form, fits)
        if fits and len(candidates) != 1:
            self.note_ambiguity(mentions, fits)
        if len(candidates) > 1:
            self.open_group(form, mentions)
            return
        if candidates:
            group = candidates[0]
            self.join_group(group, form)
            group.gender = group.gender or gender
            if is_family or is_short:
                return
            group.forms.append(words)
        else:
            group = self.open_group(form, mentions)
            for key in list_filing_keys(given_names[0]) if given_names else ():
                namesakes.setdefault(key, []).append(len(self.groups) - 1)
        for part in {*given_names, " ".join(given_names)}:
            _enter_bearer(self.givens, part, group)
        for part in given_names:
            _enter_bearer(self.bearers, part, group)
        for part in dict.fromkeys((last[-1], " ".join(last))):
            for piece in (part, *part.split("-")) if "-" in part else (part,):
                _enter_bearer(self.bearers, piece, group)
                _enter_bearer(self.lasts, piece, group)
        if len(given_names) > 1 and len(last) == 1 and is_only_family_name(given_names[-1]):
            _enter_bearer(self.lasts, f"{given_names[-1]} {last[0]}", group)

    def add_single_names(self, singles: list[PersonName]) -> list[PersonName]:
        """Add names of one word, and initials. Returns those without a title that fit nobody so far."""
        genders: dict[str, set[str]] = {}
        for words, gender in singles:
            if gender:
                genders.setdefault(words[0], set()).add(gender)
        rest: list[PersonName] = []
        # Given names first, as they are surest; a bare family name last, to be held against all who have a title.
        unclear = {w for (w, *_), title in singles if title or w not in self.givens or w in genders}
        for form in sorted(singles, key=lambda f: (f[0][0] in unclear, not f[1], f[0])):
            words, gender = form
            word = words[0]
            mentions = self.people[form]
            both = len(genders.get(word, ())) > 1
            namesakes = self._find_fitting_groups(words, gender)
            fits = self.filter_by_relations(form, namesakes)
            if len(fits) < len(namesakes) and word in self.relations.split_names:
                fits = [g for g in fits if min(g.spans) < min(mentions)]  # whoever is named later may be the other one
            if len(fits) > 1 and not self.document.turns:  # whoever is named only later is not meant
                latest = max(mentions)
                fits = [g for g in fits if min(g.spans) < latest] or fits
            candidates = self.filter_by_turn_labels(form, fits)
            if len(candidates) == 1 and not (gender and both and not _find_gender(candidates[0])):
                self.join_group(candidates[0], form)
                continue
            if fits:
                if len(candidates) > 1 and self.document.turns:
                    mentions = _assign_by_turns(self.document, mentions, candidates)
                if mentions:
                    self.note_ambiguity(mentions, fits)
            elif not gender:
                rest.append(form)
                continue
            if mentions:
                key = f"{' '.join(words)} ({gender})" if gender and (fits or both) else ""
                group = self.open_group(form, mentions, key)
                if gender:
                    self.alone.setdefault(word, []).append(group)
        return rest

    def _find_fitting_groups(self, words: tuple[str, ...], gender: str) -> list[Group]:
        """Who may be meant by one word, or by initials."""
        word = words[0]
        is_initials = len(words) > 1 or len(word) == 1
        if not is_initials and 2 <= len(word) <= 3 and word not in self.bearers and word not in self.alone:
            first = min(self.people[words, gender])
            is_initials = self.document.text[first.start : first.end].isupper()  # "MK", not "Ed"
        if is_initials:
            if not self.short:
                for group in self.groups:
                    for form in group.forms:
                        for short in {*list_initials(form), *list_initials(split_name(form)[0])}:
                            _enter_bearer(self.short, short, group)
            return _drop_duplicate_groups(self.short.get("".join(words), []))
        if gender:
            fits = self.lasts.get(word) or self.bearers.get(word, [])
            fits = fits or self._find_bearers_of_variants(word)
            return _drop_duplicate_groups([g for g in fits if _find_gender(g) in ("", gender)])
        fits = _drop_duplicate_groups(self.bearers.get(word, []) + self.alone.get(word, []))
        if fits or not self.givens:
            return fits
        if not self.mixed:
            for name, groups in self.givens.items():
                for group in groups:
                    _enter_bearer(self.mixed, "".join(sorted(name)), group)
        mixed = self.mixed.get("".join(sorted(word)), ())
        close = [g for g in mixed if any(has_swapped_letters(p, word) for f in g.forms for p in f)]
        fits = close or _drop_duplicate_groups(self._find_bearers_of_variants(word))
        return fits or self._find_bearers_of_longer_names(word)

    def _find_bearers_of_longer_names(self, word: str) -> list[Group]:
        """Who bears a given name that begins with a word which is none itself: "Raff" beside Rafferty Lunn."""
        if len(word) < _LEAST_BEGINNING or find_given_name_gender(word) or is_only_family_name(word):
            return []
        if not self.beginnings:
            for name, groups in self.givens.items():
                for size in range(_LEAST_BEGINNING, len(name) - 1):
                    for group in groups:
                        _enter_bearer(self.beginnings, name[:size], group)
        return _drop_duplicate_groups(self.beginnings.get(word, []))

    def _find_bearers_of_variants(self, word: str) -> list[Group]:
        """Who bears a given name that a word is short for, or that is short for it."""
        variants = sorted(self.givens.keys() & find_given_name_variants(word))
        return [group for name in variants for group in self.givens[name]]

    def add_plural_names(self, forms: list[PersonName]) -> list[PersonName]:
        """Add ``Beckhams``: a family, or without an article the one bearer of the name. Returns the others."""
        singles = {f[0][0] for f in forms}
        rest: list[PersonName] = []
        families: list[PersonName] = []
        for form in forms:
            word = form[0][0]
            name = next((n for n in list_singulars(word) if n in self.lasts or n in self.alone or n in singles), "")
            if not name or form in self.speakers:
                rest.append(form)
            elif name in singles:
                families.append(form)
            else:
                self._assign_plural_name(form, name)
        names = {n for f in families for n in list_singulars(f[0][0])}
        bearers = [form for form in rest if form[0][0] in names]
        for form in bearers:
            self.alone.setdefault(form[0][0], []).append(self.open_group(form, self.people[form]))
        for form in families:
            self._assign_plural_name(form, next(n for n in list_singulars(form[0][0]) if n in singles))
        return [form for form in rest if form not in bearers]

    def _assign_plural_name(self, form: PersonName, name: str) -> None:
        """Give the mentions of a plural to the only bearer of the name, or to a family of that name."""
        bearers = _drop_duplicate_groups(self.lasts.get(name, []) + self.alone.get(name, []))
        is_family = any(is_family_name(self.document.text, mention) for mention in self.people[form])
        if len(bearers) == 1 and not is_family:
            bearers[0].spans += self.people[form]
        else:
            self.open_group(form, self.people[form], f"{name} family")

    def add_unmatched_names(self, forms: list[PersonName]) -> None:
        """Add names of one word that nobody bears: a spelling of the one name that sounds the same, or a new person."""
        alike: Table = {}
        if any(len(f[0][0]) >= _LEAST_SOUND for f in forms):
            for part, bearers in self.bearers.items():
                for group in bearers if len(part) >= _LEAST_SOUND else ():
                    _enter_bearer(alike, make_sound_key(part), group)
        singles: dict[str, Group] = {}
        for form in sorted(forms):
            word = form[0][0]
            is_single = len(form[0]) == 1
            namesakes = [singles[name] for name in sorted(singles.keys() & find_given_name_variants(word))]
            namesakes = self.filter_by_relations(form, namesakes)
            if is_single and len(self.filter_by_turn_labels(form, namesakes)) == 1:
                self.join_group(namesakes[0], form)
                namesakes[0].forms.append(form[0])
                continue
            key = make_sound_key(word) if is_single and len(word) >= _LEAST_SOUND else ""
            fits = [g for g in alike.get(key, ()) if _has_similar_sounding_word(g, word, key)] if key else []
            candidates = self.filter_by_turn_labels(form, self.filter_by_relations(form, fits))
            if len(candidates) == 1:
                self.join_group(candidates[0], form)
                candidates[0].forms.append(form[0])
                continue
            group = self.open_group(form, self.people[form])
            if is_single:
                singles[word] = group
            if key:
                alike.setdefault(key, []).append(group)

    def add_maiden_names(self) -> None:
        """Give each name after "née" to the person named right before it."""
        maiden_names = self.relations.maiden_names
        if not maiden_names:
            return
        owners = {span.start: group for group in self.groups for span in group.spans}
        for group in {id(owners[start]): owners[start] for start in maiden_names}.values():
            spans, group.spans = group.spans, []
            for span in spans:
                owners[maiden_names.get(span.start, span.start)].spans.append(span)
        self.groups = [group for group in self.groups if group.spans]

    def add_spelled_word(self, letters: str, mentions: list[Span]) -> None:
        """Add a word spelled letter by letter to the one person who bears it."""
        if not self.spelling:
            for group in self.groups:
                for form in group.forms:
                    for part in dict.fromkeys((*form, "".join(form))):
                        _enter_bearer(self.spelling, part, group)
        fits = self.spelling.get(letters, [])
        if len(fits) == 1:
            fits[0].spans += mentions
            return
        if fits:  # right behind a name, its spelling is meant
            spoken = sorted((span.end, i) for i, group in enumerate(fits) for span in group.spans)
            rest: list[Span] = []
            for mention in mentions:
                place = bisect_right(spoken, (mention.start, len(fits))) - 1
                if place >= 0 and mention.start - spoken[place][0] <= _WINDOW:
                    fits[spoken[place][1]].spans.append(mention)
                else:
                    rest.append(mention)
            mentions = rest
            if not mentions:
                return
            self.note_ambiguity(mentions, fits)
        family = "PERSON" if any(m.label != "SPELLED_WORD" for m in mentions) else "SPELLED_WORD"
        self.groups.append(Group(f"{family}:{letters}", [*mentions]))


def _enter_bearer(table: Table, part: str, group: Group) -> None:
    if len(part) > 1 and part[0] != "+":
        bearers = table.setdefault(part, [])
        if not bearers or bearers[-1] is not group:
            bearers.append(group)


def _find_gender(group: Group) -> str:
    """The gender of a person's title, else that of the given name, if it is clear."""
    if not group.gender and group.given_gender is None:
        given_names = {names[0] for form in group.forms if (names := split_name(form)[0])}
        genders = set(map(find_given_name_gender, given_names))
        group.given_gender = genders.pop() if len(genders) == 1 else ""
    return group.gender or group.given_gender or ""


def _drop_duplicate_groups(groups: list[Group]) -> list[Group]:
    return list({id(g): g for g in groups}.values())


def _has_similar_sounding_word(group: Group, word: str, key: str) -> bool:
    parts = [part for form in group.forms for part in form if len(part) >= _LEAST_SOUND]
    return any(make_sound_key(part) == key and is_within_one_edit(part, word) for part in parts)


def _assign_by_turns(document: Document, mentions: list[Span], fits: list[Group]) -> list[Span]:
    """Give each mention that an introduction or a greeting settles to its group; returns the others."""
    rest: list[Span] = []
    turns = document.turns
    begins = [t.start for t in turns]
    spans = sorted((s.start, s.end, i) for i, g in enumerate(fits) for s in g.spans)
    for mention in mentions:
        i = bisect_right(begins, mention.start) - 1
        turn = turns[i] if i >= 0 and mention.start < turns[i].end else None
        group: Group | None = None
        if turn is not None and turn.speaker is not None:
            start, end = turn.speaker
            after = bisect_right(spans, (start, end, -1))
            around = spans[max(0, after - 1) : after + 1]
            speaker = next((fits[number] for a, b, number in around if a < end and start < b), None)
            before = document.text[max(turn.start, mention.start - _WINDOW) : mention.start]
            if speaker is not None and _INTRODUCTION.search(before):
                group = speaker
            elif speaker is not None and len(fits) == 2 and _GREETING.search(before):
                group = fits[fits[0] is speaker]
        if group is None:
            rest.append(mention)
        else:
            group.spans.append(mention)
    return rest


def describe_ambiguity(spans: Sequence[Span], fits: Sequence[Span]) -> str:
    """Describe mentions that fit several groups: offsets and labels, no text."""
    return (
        f"ambiguous {spans[0].label} at {_format_positions(spans)}: "
        f"fits those first named at {_format_positions(fits)}; kept apart"
    )


def _format_positions(spans: Sequence[Span]) -> str:
    shown = ", ".join(f"{s.start}..{s.end}" for s in sorted(spans)[:5])
    return f"{shown} and {len(spans) - 5} more" if len(spans) > 5 else shown


def _rank_form(form: PersonName) -> tuple[int, int, tuple[str, ...], str]:
    """Sort key: names with more full words first, then the longer ones."""
    words, gender = form
    return -sum(len(w) > 1 for w in words), -sum(map(len, words)), words, gender
