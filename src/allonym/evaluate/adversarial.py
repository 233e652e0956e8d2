"""Adversarial rewriting: a language model attacks texts, and words more generally what gave them away, round by round.

After Staab et al. 2024 (arXiv 2402.13846), with one difference: the model never writes a text. The attacker says by
which phrases it inferred something (:mod:`allonym.intruder.grounds`); the rewriter proposes words for these phrases;
the edits are a plan's, so that the rest of the text cannot change and the plan restores it.

A proposal may drop words of its phrase, and bring in words of a closed list that only name the class of what stood
there. So it cannot bring back what was covered, invent a fact, or turn a denial. What is refused is asked for once
more, then repaired by the general words of hardening, else removed. A text whose attack cannot be read counts as found.
"""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

from allonym.document import Interval, merge_intervals
from allonym.evaluate.general_words import Word, list_general_replacements, list_words_and_placeholders
from allonym.evaluate.leaks import contains_folded_surface
from allonym.evaluate.pairs import check_lengths, group_items
from allonym.evaluate.rewording import AGREE, GENERALISE, LABEL, SUPPRESS, chain_plans
from allonym.intruder.grounds import ASKED, Inference, infer_with_grounds
from allonym.intruder.linkage import FeatureReader
from allonym.intruder.panel import divide_words
from allonym.llm import Client, Reply, Request
from allonym.llm.client import ask_and_read
from allonym.llm.templates import TEXT, build_messages, make_object_schema, make_utf8_safe
from allonym.plan import Edit, Plan, apply_edits, digest, locate_replacements
from allonym.replace.wording import find_article_change, widen_removal
from allonym.serial import Serialisable
from allonym.stats import Estimate, none
from allonym.stats.samples import share
from allonym.text.fold import Level, fold
from allonym.text.placeholders import find_placeholders
from allonym.text.words import COMPOUND

ROUNDS = 4
"""Rounds of rewriting by default."""
SAFE, FOUND, UNREAD = "safe", "found", "unread"
"""What the last attack says of a text: nothing was inferred; something still is; it gave no answer that can be used."""
_FORM = re.compile(r"[\w ,.'’-]*")
_OPENS = re.compile(r"(?:^|[.!?]['\"”’)]*\s+|\n\s*)['\"“‘(]*$")
_ARTICLE = re.compile(r"\b(?:an?|the) $", re.IGNORECASE)
_DETERMINERS = frozenset("a an the some someone somebody something somewhere certain this that these those".split())
_MORE = 3  # words that a proposal may have beyond its phrase

Advance = Callable[[int, int], object]
Attack = tuple[Inference, ...] | None


class AttackRate(Serialisable):
    """How often an attacker finds something.

    Attributes:
        name: an attribute, ``texts`` (any attribute of a text) or ``persons`` (any attribute in any text of a subject).
        before: share of the texts, or persons, in the anonymised texts; after: in the rewritten ones. With Wilson's
            interval.
    """

    name: str
    before: Estimate
    after: Estimate


@dataclass(frozen=True, slots=True)
class RewrittenText:
    """A text after the rounds.

    Attributes:
        text: as rewritten. Hidden from ``repr``.
        plan: from the anonymised text, or from the original one where the first plan was given, to ``text``.
        state: :data:`SAFE`, :data:`FOUND` or :data:`UNREAD`.
        rounds: in which it changed.
    """

    text: str = field(repr=False)
    plan: Plan = field(repr=False)
    state: str
    rounds: int


class AdversarialRewriting(Serialisable):
    """The result of :func:`rewrite_adversarially`.

    Attributes:
        rates: ``texts``, ``persons`` where the subjects are known, then each attribute.
        curve: share of the texts in which something is found, as anonymised and after each round.
        unread: texts whose last attack gave no answer that can be used; they count as found.
        words: words of the anonymised texts; generalised, suppressed: those that became general ones, and that went.
        requests: answers of the endpoint, with those of the cache; tokens: that the endpoint counted.
        repaired: phrases for which the model had no usable words: general words stand there, or nothing.
        refused: what in the model's answers was not used: kind to count.
        texts: the rewritten texts, in the order given. Not part of :meth:`to_dict`.
    """

    KEYS = (
        *("rates", "curve", "texts=_text_count", "unread", "words", "generalised", "suppressed"),
        *("requests", "tokens", "repaired", "refused=_refused_rows"),
    )

    rates: tuple[AttackRate, ...]
    curve: tuple[float, ...]
    unread: int
    words: int
    generalised: int
    suppressed: int
    requests: int
    tokens: int
    repaired: int
    refused: Mapping[str, int]
    texts: tuple[RewrittenText, ...] = field(repr=False)

    @property
    def _text_count(self) -> int:
        return len(self.texts)

    @property
    def _refused_rows(self) -> list[dict[str, object]]:
        return [{"name": name, "count": count} for name, count in self.refused.items()]


def rewrite_adversarially(
    original: Sequence[str],
    anonymised: Sequence[str],
    client: Client,
    *,
    profiles: Sequence[Mapping[str, str]] | None = None,
    subjects: Sequence[str] | None = None,
    plans: Sequence[Plan] | None = None,
    attributes: Sequence[str] = ASKED,
    person: str = "author",
    kind: str = "text",
    rounds: int = ROUNDS,
    advance: Advance | None = None,
) -> AdversarialRewriting:
    """Let a language model attack anonymised texts and generalise what gave them away, until its attack fails.

    Only anonymised texts are sent. Originals, profiles and subjects stay here: they verify and score the answers.

    Args:
        original, anonymised: the same texts in the same order. English.
        client: attacker and rewriter, see :func:`allonym.intruder.persons.open_client`. With its cache, an interrupted
            run continues where it was.
        profiles: of each text, attribute to its true value. An attribute counts as found if the guess is right; where
            no true value is known, if the attacker names phrases of the text as its grounds.
        subjects: whom each text is about; empty: not known.
        plans: those that made ``anonymised`` of ``original``. Their replacements stay as they are, and each result's
            plan starts at the original.
        attributes: what is attacked, some of :data:`~allonym.intruder.grounds.ASKED`.
        person: who is looked for, such as ``author`` or ``person described``.
        kind: what the texts are.
        rounds: of rewriting at most.
        advance: called with rounds done, and in all.

    Raises:
        DataError: unequal lengths, no text, or a true value that cannot be read.
        UnknownNameError: there is no such attribute.
        EndpointError: the endpoint did not answer. The message shows nothing that was sent.
        PlanMismatch: a plan does not make its anonymised text.
    """
    n = check_lengths(original, anonymised, profiles or None, subjects or None, plans or None)
    truths = list(profiles) if profiles else [{} for _ in range(n)]
    for profile in truths:
        for name in attributes:
            Inference(name, "1").is_right(profile)  # a true value that cannot be read is told before anything is sent
    drafts = [
        _Draft(a, b, plans[i] if plans else None) for i, (a, b) in enumerate(zip(original, anonymised, strict=True))
    ]
    refused: Counter[str] = Counter()
    usage = Counter(client.usage)
    first: list[Attack] = []
    last: list[Attack] = [()] * n
    curve: list[float] = []
    active = list(range(n))
    for number in range(rounds + 1):
        attacks = infer_with_grounds(
            [drafts[i].text for i in active],
            client, attributes=attributes, person=person, kind=kind, refused=refused,
        )  # fmt: skip
        for i, attack in zip(active, attacks, strict=True):
            last[i] = attack
        first = first or list(last)
        curve.append(sum(_is_found(a, p) for a, p in zip(last, truths, strict=True)) / n)
        if number < rounds:
            grounds = {i: _list_grounds(last[i], truths[i]) for i in active}
            changed = _rewrite_drafts({drafts[i]: places for i, places in grounds.items()}, client, refused)
            active = [i for i in active if drafts[i] in changed]
        if advance is not None:
            advance(number + 1, rounds + 1)
        if not active:
            break
    spent = Counter(client.usage)
    spent.subtract(usage)
    edits = [edit for draft in drafts for edit in draft.plan.edits]
    lost = [(len(COMPOUND.findall(e.original or "")), len(COMPOUND.findall(e.replacement))) for e in edits]
    return AdversarialRewriting(
        _rate_attacks(first, last, truths, subjects, attributes),
        tuple(curve),
        sum(attack is None for attack in last),
        sum(len(COMPOUND.findall(text)) for text in anonymised),
        sum(min(a, b) for (a, b), e in zip(lost, edits, strict=True) if e.operator == GENERALISE),
        sum(max(0, a - b) for a, b in lost),
        spent["requests"],
        spent["prompt_tokens"] + spent["completion_tokens"],
        sum(draft.repaired for draft in drafts),
        dict(sorted((+refused).items())),
        tuple(
            draft.make_result(UNREAD if a is None else FOUND if _is_found(a, p) else SAFE)
            for draft, a, p in zip(drafts, last, truths, strict=True)
        ),
    )


def _is_found(attack: Attack, profile: Mapping[str, str]) -> bool:
    return attack is None or any(inference.is_right(profile) for inference in attack)


def _list_grounds(attack: Attack, profile: Mapping[str, str]) -> list[tuple[Interval, str]]:
    """List the places of the phrases that gave something away, each with its attribute."""
    right = [inference for inference in attack or () if inference.is_right(profile)]
    return [(place, inference.attribute) for inference in right for place in inference.places]


def _rate_attacks(
    first: Sequence[Attack],
    last: Sequence[Attack],
    profiles: Sequence[Mapping[str, str]],
    subjects: Sequence[str] | None,
    attributes: Sequence[str],
) -> tuple[AttackRate, ...]:
    n = len(profiles)
    is_found = [[_is_found(a, p) for a, p in zip(attacks, profiles, strict=True)] for attacks in (first, last)]
    out = [AttackRate("texts", *(share(sum(flags), n) for flags in is_found))]
    if subjects and any(subjects):
        groups = group_items([i for i in range(n) if subjects[i]], subjects.__getitem__).values()
        out.append(
            AttackRate("persons", *(share(sum(any(f[i] for i in g) for g in groups), len(groups)) for f in is_found))
        )
    for name in attributes:
        judged = [i for i in range(n) if profiles[i].get(name) or not any(profile.get(name) for profile in profiles)]
        counts = [sum(_is_found(_select_attribute(a[i], name), profiles[i]) for i in judged) for a in (first, last)]
        rates = [share(count, len(judged)) if judged else none("no true value is known") for count in counts]
        out.append(AttackRate(name, *rates))
    return tuple(out)


def _select_attribute(attack: Attack, name: str) -> Attack:
    return None if attack is None else tuple(inference for inference in attack if inference.attribute == name)


@dataclass(frozen=True, slots=True)
class _Phrase:
    """A phrase of a text: its place, its words, and the attributes that it gives away."""

    start: int
    end: int
    text: str = field(repr=False)
    attributes: frozenset[str]


class _Draft:
    """A text between rounds.

    Attributes:
        text: as it is now; plan: from the anonymised text to it.
        hidden: words and surfaces of the original that the anonymised text does not have, folded.
        repaired: phrases that general words replaced without the model.
    """

    def __init__(self, original: str, anonymised: str, first: Plan | None) -> None:
        self.text = anonymised
        self.plan = Plan(digest(anonymised), (), (), digest(anonymised))
        self.repaired = 0
        self.rounds = 0
        self._original, self._anonymised, self._first = original, anonymised, first
        edits = first.edits if first is not None else ()
        if first is not None:
            chain_plans(original, first, self.plan)  # a plan of another text is refused before anything is sent
        self._fixed = [(start, end) for start, end, edit in locate_replacements(edits) if start < end]
        gone = divide_words(FeatureReader(), anonymised, original)[1]
        surfaces = (original[edit.start : edit.end] for edit in edits)
        self.hidden = frozenset(filter(None, map(_fold_words, (*gone, *surfaces))))

    def list_phrases(self, grounds: Sequence[tuple[Interval, str]], refused: Counter[str]) -> list[_Phrase]:
        """Join grounds that overlap; leave out those that touch a placeholder or a replacement."""
        covered = merge_intervals([*self._fixed, *((p.start, p.end) for p in find_placeholders(self.text))])
        free = []
        for (start, end), name in grounds:
            if any(a < end and start < b for a, b in covered):
                refused["ground that is a replacement"] += 1
            else:
                free.append(((start, end), name))
        places = merge_intervals(place for place, _ in free)
        return [
            _Phrase(a, b, self.text[a:b], frozenset(name for (s, e), name in free if a <= s and e <= b))
            for a, b in places
        ]

    def replace_phrases(self, phrases: Sequence[_Phrase], proposals: Sequence[str | None]) -> bool:
        """Replace phrases by verified proposals, None by general words; return whether the text has changed."""
        before = self.text
        words = list_words_and_placeholders(before)
        values = [
            self._repair_phrase(phrase, words) if value is None else value
            for phrase, value in zip(phrases, proposals, strict=True)
        ]
        edits = self._make_edits(phrases, values)
        after = apply_edits(before, edits)
        if self._has_come_back(after):
            edits = self._make_edits(phrases, [None if _holds_negation(phrase.text) else "" for phrase in phrases])
            after = apply_edits(before, edits)
        if after == before or self._has_come_back(after):
            return False
        self.repaired += sum(value is None for value in proposals)
        self.rounds += 1
        self._fixed = [_move_interval(place, edits) for place in self._fixed]
        self.plan = chain_plans(self._anonymised, self.plan, Plan(digest(before), tuple(edits), (), digest(after)))
        self.text = after
        return True

    def make_result(self, state: str) -> RewrittenText:
        """Return the text with its plan."""
        plan = self.plan if self._first is None else chain_plans(self._original, self._first, self.plan)
        return RewrittenText(self.text, plan, state, self.rounds)

    def _repair_phrase(self, phrase: _Phrase, words: Sequence[Word]) -> str | None:
        """Return a phrase with the most general words that hardening has; empty where nothing would change, None where
        a denial would go with it."""
        first = bisect_left(words, phrase.start, key=lambda word: word.start)
        out: list[str] = []
        is_general = False
        for i in range(first, len(words)):
            if words[i].start >= phrase.end:
                break
            choices = list_general_replacements(words, i)
            new = choices[-1] if choices else words[i].text
            is_general |= bool(choices and new)
            if new and new not in out[-1:]:
                out.append(new)
        value = " ".join(word for word in out if any(map(str.isalnum, word)))
        is_same = _fold_words(value) == _fold_words(phrase.text)
        if "age" in phrase.attributes and phrase.text.isdecimal():
            return "some age"  # "At 34 I moved" has no sense without
        if is_same or not is_general or _holds_hidden(value, phrase.text, self.hidden):
            return None if _holds_negation(phrase.text) else ""
        return value

    def _make_edits(self, phrases: Sequence[_Phrase], values: Sequence[str | None]) -> list[Edit]:
        """Return the edits that put values in place of phrases; None leaves a phrase."""
        text, position = self.text, 0
        edits: list[Edit] = []
        for k, (phrase, value) in enumerate(zip(phrases, values, strict=True)):
            start, end, limit = phrase.start, phrase.end, phrases[k + 1].start if k + 1 < len(phrases) else len(text)
            if value is None:
                continue
            article = _ARTICLE.search(text, position, start)
            if article is not None and value.partition(" ")[0].lower() in _DETERMINERS:
                start = article.start()  # "a nurse": "some work", not "a some work"
            if not value:
                before = text[start - 1] if start > position else (" " if start else "")
                start, end = widen_removal(text, start, end, position, limit, before)
            if value and text[start].isupper() and _OPENS.search(text, 0, start):
                value = value[0].upper() + value[1:]
            follows = value or text[end:limit].lstrip()[:40]
            change = find_article_change(text, start, position, follows) if follows else None
            if change is not None and change[1] <= start:
                edits.append(Edit(*change, LABEL, 0, AGREE, text[change[0] : change[1]]))
            edits.append(Edit(start, end, value, LABEL, 0, GENERALISE if value else SUPPRESS, text[start:end]))
            position = end
        return edits

    def _has_come_back(self, text: str) -> bool:
        """Whether a text has what was covered and the present one has not, or other placeholders."""
        if _list_placeholders(text) != _list_placeholders(self.text):
            return True
        before, after = _fold_words(self.text), _fold_words(text)
        return any(contains_folded_surface(h, after) and not contains_folded_surface(h, before) for h in self.hidden)


def _list_placeholders(text: str) -> list[str]:
    return [text[p.start : p.end] for p in find_placeholders(text)]


def _move_interval(place: Interval, edits: Sequence[Edit]) -> Interval:
    shift = sum(len(e.replacement) - (e.end - e.start) for e in edits if e.end <= place[0])
    return place[0] + shift, place[1] + shift


def _rewrite_drafts(
    grounds: Mapping[_Draft, Sequence[tuple[Interval, str]]], client: Client, refused: Counter[str]
) -> set[_Draft]:
    """Ask for words for the phrases of each draft, twice where they are refused; return the drafts that changed."""
    phrases = {draft: draft.list_phrases(places, refused) for draft, places in grounds.items()}
    values: dict[_Draft, dict[int, str]] = {draft: {} for draft in phrases}
    for again in (False, True):
        missing = {d: [k for k in range(len(p)) if k not in values[d]] for d, p in phrases.items()}
        waiting = [draft for draft, numbers in missing.items() if numbers]
        requests = [_make_request(client, d.text, phrases[d], missing[d], again=again) for d in waiting]
        answers = ask_and_read(client, requests, _read_proposals)
        for draft, answer in zip(waiting, answers, strict=True):
            if answer is None:
                refused["rewriting unreadable"] += 1
                continue
            for k in missing[draft]:
                value = answer.get(str(k + 1))
                if reason := find_refusal(value, phrases[draft][k].text, phrases[draft][k].attributes, draft.hidden):
                    refused[f"proposal: {reason}"] += 1
                else:
                    values[draft][k] = str(value).strip()
    return {
        draft
        for draft, some in phrases.items()
        if some and draft.replace_phrases(some, [values[draft].get(k) for k in range(len(some))])
    }


def _make_request(
    client: Client, text: str, phrases: Sequence[_Phrase], numbers: Sequence[int], *, again: bool
) -> Request:
    rows = [
        f"{k + 1} ({', '.join(sorted(phrases[k].attributes))}): {' '.join(phrases[k].text.split())}" for k in numbers
    ]
    content = build_messages(
        "rewrite", client.prompts, again=again, text=make_utf8_safe(text), entities=make_utf8_safe("\n".join(rows))
    )
    schema = make_object_schema({str(k + 1): TEXT for k in numbers})
    return Request(content, make_object_schema({"phrases": schema}), "phrases")


def _read_proposals(reply: Reply) -> Mapping[str, object] | None:
    answer = reply.answer
    values = None if answer is None else answer.get("phrases", answer)
    return values if isinstance(values, Mapping) else None


def find_refusal(value: object, phrase: str, attributes: Set[str], hidden: Set[str]) -> str:
    """Return why a proposal for a phrase is refused; empty if it only generalises or removes.

    Args:
        value: what a model proposed.
        phrase: what stands in the text.
        attributes: what the phrase gives away; their classes may be named.
        hidden: folded words and surfaces that must not come back.

    >>> find_refusal("some work", "drive the night tram", {"occupation"}, frozenset())
    ''
    >>> find_refusal("a murderer", "drive the night tram", {"occupation"}, frozenset())
    'words that are not general'
    """
    if value is None:
        return "missing"
    if not isinstance(value, str) or not _FORM.fullmatch(value.strip()) or find_placeholders(value):
        return "another form"
    value = value.strip()
    words, phrase_words = ([fold(word, Level.CASE) for word in COMPOUND.findall(text)] for text in (value, phrase))
    if bool(words) != bool(value):
        return "another form"
    if not words:
        return "a denial turned" if _list_negations(phrase_words) else ""
    if words == phrase_words:
        return "unchanged"
    if _holds_hidden(value, phrase, hidden):
        return "what was covered"
    if len(words) > len(phrase_words) + _MORE:
        return "too long"
    if _list_negations(phrase_words) != _list_negations(words):
        return "a denial turned"
    permitted = _list_permitted_words(phrase_words, attributes)
    rest = iter(phrase_words)
    for word in words:
        if word in permitted:
            continue
        if word not in phrase_words:
            return "a number" if any(map(str.isdigit, word)) else "words that are not general"
        if word not in rest:  # passes over the words before it: those that stay keep their order
            return "words in another order"
    return ""


def _holds_negation(text: str) -> bool:
    return bool(_list_negations([fold(word, Level.CASE) for word in COMPOUND.findall(text)]))


def _list_negations(words: Sequence[str]) -> list[str]:
    return [word for word in words if word in _read_words("negations", "words") or word.endswith(("n't", "n’t"))]


def _list_permitted_words(phrase_words: Sequence[str], attributes: Set[str]) -> frozenset[str]:
    """Return the words that may stand for a phrase beside its own."""
    decades: set[str] = set()
    for digit, names in _read_table()["decades"].items():
        stem, *rest = names.split()
        if any(
            word.startswith(stem) or (len(word) == 2 and word.isdigit() and word[0] == digit) for word in phrase_words
        ):
            decades.update(rest)
    return frozenset(decades).union(_read_words("any"), *(_read_words(name, "attributes") for name in attributes))


def _holds_hidden(value: str, phrase: str, hidden: Set[str]) -> bool:
    """Whether a proposal holds something that was covered and that its phrase does not hold."""
    after, before = _fold_words(value), _fold_words(phrase)
    return any(contains_folded_surface(h, after) and not contains_folded_surface(h, before) for h in hidden)


def _fold_words(text: str) -> str:
    return " ".join(fold(text, Level.CASE).split())


@cache
def _read_table() -> Mapping[str, Any]:
    return tomllib.loads(files("allonym.evaluate").joinpath("adversarial.toml").read_text(encoding="utf-8"))


@cache
def _read_words(name: str, group: str = "") -> frozenset[str]:
    table = _read_table()[group] if group else _read_table()
    return frozenset(table[name].split())
