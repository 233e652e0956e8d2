"""Residual risk of a corpus (P2, sections 4.3 and 4.4): Table 4, its criterion, and a test of its assumption.

P2 calls anonymisation successful where mean + SD of the conversations' scores is below 5, and reads that as a share of
at most 16 % above 5, for it takes the scores to be normal. They are counts with many zeros, so that is tested here, and
the share above the limit is counted, with an interval, beside what a normal distribution would imply.

Residual risk of one conversation (P2, section 4.2): the items that were missed, and the sum of their scores.

How halves are rounded, and where P2 says two things:

- A partly missed identifier has half the score of its type, "rounded up or down ... depending on the risk profile". P2
  gives one example for each: 5 becomes 3 (names), 3 becomes 1 (e-mail). So the types of the highest score, 5, P2's
  direct identifiers, are rounded up and all others down.
- P2's text and its worked example take 1 for a partly missed e-mail address, from a score of 3; its Table 6 has 4,
  whose half is 2. ``email_partial`` says which of them holds: ``text`` (1, the default: P2's example sums to its 6) or
  ``table`` (2: the same example sums to 7).
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats as tests
from scipy.special import ndtr

from allonym.detection.turns import add_turns
from allonym.document import Document, Span
from allonym.errors import DataError, UnknownNameError, UsageError
from allonym.evaluate.marking import PARTIAL, Mark, Marked, check_marks_in_text, make_missed_tag, parse_missed_tag
from allonym.evaluate.pairs import Advance, get_metadata_value, group_items, iterate_with_progress
from allonym.labels import TAXONOMY
from allonym.link import link
from allonym.serial import Serialisable
from allonym.stats import Estimate, none
from allonym.stats.samples import average, bootstrap, share
from allonym.text.names import (
    is_within_one_edit,
    make_sound_key,
    normalize_code,
    normalize_organization,
    normalize_surface,
)

LIMIT = 5.0
"""P2's limit: the score of one direct identifier."""
NO_VALUE = "(no value)"
"""The group of conversations without the field."""
_SHAPIRO_MOST = 5000  # scipy's p values are not accurate beyond
_LEVEL = 0.05
_NORMAL_LEAST = 20


class Normality(Serialisable):
    """Whether scores can be normally distributed, as P2 assumes.

    Attributes:
        test: ``Shapiro-Wilk`` from 20 to 5,000 conversations, ``D'Agostino-Pearson`` above; else empty.
        statistic, p: of the test.
        skewness: third standardised moment; 0 for a normal distribution.
        implied: share above the limit that a normal distribution with this mean and SD would have.
        off: p is below 0.05; None: not tested.
    """

    test: str
    statistic: Estimate
    p: Estimate
    skewness: Estimate
    implied: Estimate
    off: bool | None


class Row(Serialisable):
    """A row of P2's Table 4: the scores of the conversations of one group.

    Attributes:
        name: the group; ``Total`` for all.
        count: conversations.
        mean: with Student's t interval; sd: n - 1; p95: linear interpolation; bound: mean + SD. Their intervals are
            of the bootstrap over conversations.
        max: the highest score.
        above: share of conversations with a score above the limit, Wilson.
        direct: share of conversations with a whole direct identifier (an item of score 5), Wilson.
        passes: mean + SD is below the limit (P2, equation 2); None: one conversation has no SD.
        normality: of the scores.
    """

    name: str
    count: int
    mean: Estimate
    sd: Estimate
    p95: Estimate
    max: Estimate
    bound: Estimate
    above: Estimate
    direct: Estimate
    passes: bool | None
    normality: Normality


class Missed(Serialisable):
    """How often a type was missed: items, their mentions, conversations with it, and its contribution to all scores."""

    tag: str
    items: int
    mentions: int
    conversations: int
    risk: int


class ResidualRisk(Serialisable):
    """The residual risk of a corpus. It holds no text.

    Attributes:
        limit: scores above it are too high.
        by: the metadata field of the groups; empty: none.
        conversations: each with its score and the name of its group, in their order.
        groups: in order of the names; total: all conversations.
        types: what was missed, the most harmful first.
        scoring: how scores came about.
        proposals: what became of marks that nobody had confirmed.
        other: the other reading of a partly missed e-mail address, and the total's mean + SD by it; None where it
            changes nothing.
    """

    KEYS = (
        *("limit", "by", "total", "groups", "types", "histogram", "queue=_queue_rows", "scores=_score_rows"),
        *("scoring", "proposals", "unconfirmed", "rejected", "other=_other_email_row"),
    )

    limit: float
    by: str
    conversations: tuple[tuple[Scored, str], ...]
    groups: tuple[Row, ...]
    total: Row
    types: tuple[Missed, ...]
    scoring: Scoring
    proposals: str
    other: tuple[str, Estimate] | None = None

    @property
    def queue(self) -> tuple[tuple[Scored, str], ...]:
        """Conversations above the limit, with their groups: the highest score first, then most direct identifiers."""
        above = [(s, g) for s, g in self.conversations if s.score > self.limit]
        return tuple(sorted(above, key=lambda pair: (-pair[0].score, -pair[0].direct)))

    @property
    def histogram(self) -> tuple[tuple[int, int], ...]:
        """(score, conversations) for each score from 0 to the highest."""
        counts = Counter(s.score for s, _ in self.conversations)
        return tuple((n, counts[n]) for n in range(max(counts) + 1))

    @property
    def unconfirmed(self) -> int:
        """Proposals that count though nobody has looked at them."""
        return sum(scored.unconfirmed for scored, _ in self.conversations)

    @property
    def rejected(self) -> int:
        """Proposals that a person has turned down."""
        return sum(scored.rejected for scored, _ in self.conversations)

    @property
    def _queue_rows(self) -> list[dict[str, Any]]:
        return [{**scored.to_dict(), "group": group} for scored, group in self.queue]

    @property
    def _score_rows(self) -> list[dict[str, Any]]:
        return [{"id": s.id, "group": group, "score": s.score, "direct": s.direct} for s, group in self.conversations]

    @property
    def _other_email_row(self) -> dict[str, Any] | None:
        return None if self.other is None else {"email_partial": self.other[0], "bound": self.other[1]}


def residual_risk(
    conversations: Sequence[Marked],
    *,
    by: str = "",
    limit: float = LIMIT,
    scoring: Scoring | None = None,
    proposals: str = "refuse",
    seed: int = 0,
    advance: Advance | None = None,
) -> ResidualRisk:
    """Score annotated conversations and summarise them as P2's Table 4 does.

    Args:
        conversations: anonymised, with marks of what was missed; those without marks count with 0.
        by: metadata field, or dotted path, whose values make the groups; empty: no groups.
        limit: P2's 5; not below 0.
        scoring, proposals: see :func:`allonym.evaluate.score_conversation`.
        seed: of the bootstrap.
        advance: called with how many conversations are scored, of how many.

    Raises:
        DataError: there are no conversations, or marks that nobody confirmed are refused.
        UsageError: the limit is below 0. UnknownNameError: no conversation has the field.
    """
    if not limit >= 0:
        raise UsageError(f"limit: a number from 0 is required, got {limit!r}")
    if not conversations:
        raise DataError("one conversation at least is required, got 0")
    scoring = scoring or Scoring()
    names = read_groups(conversations, by)
    steps = iterate_with_progress(conversations, advance, len(conversations))
    scored = [score_conversation(marked, scoring, proposals=proposals) for marked in steps]
    pairs = tuple(zip(scored, names, strict=True))
    groups = sorted(group_items(pairs, lambda pair: pair[1]).items()) if by else ()
    rows = tuple(_make_risk_row(name, [s for s, _ in members], limit, seed) for name, members in groups)
    total = _make_risk_row("Total", scored, limit, seed)
    other = _estimate_bound_by_other_email_score(conversations, scored, scoring, proposals, seed)
    return ResidualRisk(limit, by, pairs, rows, total, _tabulate_missed_types(scored), scoring, proposals, other)


def read_groups(conversations: Sequence[Marked], by: str) -> list[str]:
    """Return the group of each conversation: its value of a metadata field, as text.

    Raises:
        UnknownNameError: ``by`` is not empty, and no conversation has the field.
    """
    if not by:
        return ["" for _ in conversations]
    values = [get_metadata_value(c.meta, by) for c in conversations]
    if not any(values):
        names = dict.fromkeys(str(k) for c in conversations for k in c.meta if str(k) not in ("text", "marks"))
        raise UnknownNameError("metadata field", by, names or ["(none: the conversations have no metadata)"], "by")
    return [v or NO_VALUE for v in values]


def _make_risk_row(name: str, scored: Sequence[Scored], limit: float, seed: int) -> Row:
    x = np.array([s.score for s in scored], float)
    n = len(x)

    def estimate(statistic: Callable[[NDArray[np.float64]], float]) -> Estimate:
        return bootstrap(lambda rows: statistic(x[rows]), n, seed=seed)

    alone = none("two conversations at least are required", n)
    sd = estimate(_compute_sd) if n > 1 else alone
    bound = estimate(lambda v: float(v.mean()) + _compute_sd(v)) if n > 1 else alone
    return Row(
        name,
        n,
        average(x.tolist()),
        sd,
        estimate(lambda v: float(np.quantile(v, 0.95))),
        Estimate.exact(float(x.max()), n),
        bound,
        share(int((x > limit).sum()), n),
        share(sum(s.direct > 0 for s in scored), n),
        bool(bound.value < limit) if n > 1 else None,
        measure_normality(x.tolist(), limit),
    )


def measure_normality(values: Sequence[float], limit: float = LIMIT) -> Normality:
    """Test whether values can be normally distributed, and compute the share above ``limit`` that this would imply.

    From 20 values on: Shapiro and Wilk 1965 (doi:10.1093/biomet/52.3-4.591) up to 5,000 values; D'Agostino and Pearson
    1973 (doi:10.1093/biomet/60.3.613) above.
    """
    x = np.asarray(values, float)
    n = len(x)
    if n < _NORMAL_LEAST or float(x.min()) == float(x.max()):
        few = f"{_NORMAL_LEAST} values at least are required: fewer look normal whatever they are"
        nothing = none(few if n < _NORMAL_LEAST else "all scores are the same", n)
        return Normality("", nothing, nothing, nothing, nothing, None)
    test = "Shapiro-Wilk" if n <= _SHAPIRO_MOST else "D'Agostino-Pearson"
    result = tests.shapiro(x) if n <= _SHAPIRO_MOST else tests.normaltest(x)
    statistic, p = float(result.statistic), float(result.pvalue)
    tail = float(ndtr((float(x.mean()) - limit) / _compute_sd(x)))
    return Normality(
        test,
        Estimate.exact(statistic, n, test),
        Estimate.exact(p, n, test),
        Estimate.exact(float(tests.skew(x)), n),
        Estimate.exact(tail, n, "normal with the scores' mean and SD"),
        p < _LEVEL,
    )


def _tabulate_missed_types(scored: Sequence[Scored]) -> tuple[Missed, ...]:
    holding = Counter(tag for conversation in scored for tag in {item.tag for item in conversation.items})
    items_of = group_items((item for conversation in scored for item in conversation.items), lambda item: item.tag)
    rows = [
        Missed(tag, len(items), sum(len(i.marks) for i in items), holding[tag], sum(i.score for i in items))
        for tag, items in items_of.items()
    ]
    return tuple(sorted(rows, key=lambda row: (-row.risk, -row.items, row.tag)))


def _estimate_bound_by_other_email_score(
    conversations: Sequence[Marked], scored: Sequence[Scored], scoring: Scoring, proposals: str, seed: int
) -> tuple[str, Estimate] | None:
    """Return the criterion by the other reading of a partly missed e-mail address, if any score changes by it."""
    name = next(n for n in EMAIL_PARTIAL if n != scoring.email_partial)
    reading = Scoring(name, scoring.own)
    again = [
        score_conversation(marked, reading, proposals=proposals).score
        if any(m.label == "EMAIL_ADDRESS" and m.partial for m in marked.marks)
        else first.score
        for marked, first in zip(conversations, scored, strict=True)
    ]
    x = np.array(again, float)
    if len(x) < 2 or again == [s.score for s in scored]:
        return None
    return name, bootstrap(lambda rows: float(x[rows].mean()) + _compute_sd(x[rows]), len(x), seed=seed)


def _compute_sd(values: NDArray[np.float64]) -> float:
    """Return the standard deviation with n - 1; exactly 0 where all values are equal."""
    return 0.0 if values.min() == values.max() else math.sqrt(float(values.var(ddof=1)))


EMAIL_PARTIAL: Mapping[str, int] = MappingProxyType({"text": 1, "table": 2})
"""What a partly missed e-mail address scores by P2's text and by its table."""
PROPOSALS = ("refuse", "count", "drop")
"""What becomes of marks that nobody has confirmed."""

_MOST = 5
_NAMED = ("ORGANIZATION", "PRODUCT", "LOCATION")
_LEAST_ALIKE = 6  # letters from which on two spellings that sound the same are one


class Scoring(Serialisable):
    """The score of each type.

    Attributes:
        email_partial: ``text`` or ``table``, see the module.
        own: tag without ``MISSED_`` to a score of one's own, 0 to 5, such as ``{"DATE": 0}``; with ``_PARTIAL`` it is
            that of the partial tag only.

    Raises:
        UsageError, UnknownNameError: a name or a score that does not exist.
    """

    email_partial: str = "text"
    own: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))

    def __post_init__(self) -> None:
        if self.email_partial not in EMAIL_PARTIAL:
            raise UnknownNameError("reading", self.email_partial, EMAIL_PARTIAL, "email_partial")
        canonical: dict[str, int] = {}
        for name, score in self.own.items():
            if isinstance(score, bool) or not isinstance(score, int) or not 0 <= score <= _MOST:
                raise UsageError(f"score of {name}: an integer from 0 to {_MOST} is required, got {score!r}")
            label, partial = parse_missed_tag(name.removeprefix("MISSED_"))
            canonical[make_missed_tag(label, partial=partial)] = score
        object.__setattr__(self, "own", MappingProxyType(dict(sorted(canonical.items()))))

    def of(self, tag: str) -> int:
        """Return the score of a tag without ``MISSED_``, 0 to 5.

        >>> [Scoring().of(t) for t in ("PERSON_NAME", "PERSON_NAME_PARTIAL", "EMAIL", "EMAIL_PARTIAL", "PRODUCT")]
        [5, 3, 4, 1, 0]
        """
        if tag in self.own:
            return self.own[tag]
        label, partial = parse_missed_tag(tag)
        base = tag.removesuffix(PARTIAL)
        full = self.own.get(base, TAXONOMY.get(label).risk)
        if not partial:
            return full
        if label == "EMAIL_ADDRESS" and base not in self.own:
            return EMAIL_PARTIAL[self.email_partial]
        return (full + 1) // 2 if full == _MOST else full // 2


@dataclass(frozen=True, slots=True)
class Item:
    """One item that was missed, with all its mentions.

    Attributes:
        tag: of the mention with the highest score, without ``MISSED_``.
        score: of that mention, 0 to 5.
        marks: its mentions in reading order.
    """

    tag: str
    score: int
    marks: tuple[Mark, ...]


class Scored(Serialisable):
    """A conversation with its residual risk.

    Attributes:
        id: the conversation's.
        items: what was missed, each thing once, in reading order.
        rejected: proposals that a person has turned down; unconfirmed: those that count though nobody looked at them.
    """

    KEYS = ("id", "score", "direct", "mentions", "unconfirmed", "rejected", "items=_item_rows")

    id: str
    items: tuple[Item, ...]
    rejected: int = 0
    unconfirmed: int = 0

    @property
    def score(self) -> int:
        """The residual risk: the sum over items (P2, equation 1)."""
        return sum(item.score for item in self.items)

    @property
    def direct(self) -> int:
        """Items of the highest score, 5: whole direct identifiers, each of which identifies alone."""
        return sum(item.score == _MOST for item in self.items)

    @property
    def mentions(self) -> int:
        """Number of mentions of all items."""
        return sum(len(item.marks) for item in self.items)

    @property
    def _item_rows(self) -> list[dict[str, Any]]:
        return [{"tag": item.tag, "score": item.score, "mentions": len(item.marks)} for item in self.items]


def score_conversation(marked: Marked, scoring: Scoring | None = None, *, proposals: str = "refuse") -> Scored:
    """Return the residual risk of a conversation: the scores of the items that were missed, each once.

    Marks are one thing where annotators gave them one ``item``, or where :mod:`allonym.link` takes them for one
    referent: case, titles, possessives, name parts, letters spelled one by one and spellings that sound the same do not
    count (P2: ``Mark``, ``Marc``, ``M-A-R-K``). Organisations, products and places that differ in blanks and hyphens
    only, or in one letter and not in sound, are one as well. A thing has the score of its gravest mark: once a whole
    name and once a part of it count as the whole name. Two people of one name cannot be told apart (P2, footnote 9).

    Args:
        marked: the annotated conversation.
        scoring: by default P2's.
        proposals: what becomes of marks that nobody confirmed: ``refuse`` them, ``count`` them, ``drop`` them.

    Raises:
        DataError: there are such marks and they are refused; or a mark lies outside of the text.
        UnknownNameError: no such ``proposals``.
    """
    scoring = scoring or Scoring()
    if proposals not in PROPOSALS:
        raise UnknownNameError("value", proposals, PROPOSALS, "proposals")
    open_ = sum(m.confirmed is None for m in marked.marks)
    if open_ and proposals == "refuse":
        raise DataError(
            f"{f'{marked.id}: ' * bool(marked.id)}{open_} proposed mark{'s' * (open_ > 1)} that no person has "
            "confirmed or rejected; do so, or count them all for an upper bound"
        )
    marks = [m for m in marked.marks if m.confirmed or (m.confirmed is None and proposals == "count")]
    check_marks_in_text(marked, marks)
    items = []
    for group in _group_marks_by_item(marked, marks):
        best = max(group, key=lambda m: (scoring.of(m.tag), -m.start))
        items.append(Item(best.tag, scoring.of(best.tag), tuple(sorted(group))))
    items.sort(key=lambda i: i.marks[0])
    rejected = sum(m.confirmed is False for m in marked.marks)
    return Scored(marked.id, tuple(items), rejected, open_ if proposals == "count" else 0)


def _group_marks_by_item(marked: Marked, marks: Sequence[Mark]) -> list[list[Mark]]:
    """Group marks by the item that they are mentions of."""
    if not marks:
        return []
    spans = [Span(m.start, m.end, m.label) for m in marks]
    of_span = dict(zip(spans, marks, strict=True))
    linked = link(add_turns(Document(marked.id, marked.text)), spans).entities
    out: list[list[Mark]] = []
    spelled: list[tuple[str, str, list[Mark]]] = []
    for entity in linked:
        group, family = [of_span[span] for span in entity.spans], TAXONOMY.get_family(entity.label)
        if family in _NAMED:
            form = normalize_organization(normalize_surface(marked.text[group[0].start : group[0].end]))
            same = next((g for f, other, g in spelled if f == family and _are_similar_names(form, other)), None)
            if same is not None:
                same += group
                continue
            spelled.append((family, form, group))
        out.append(group)
    return _apply_annotated_items(out)


def _apply_annotated_items(groups: list[list[Mark]]) -> list[list[Mark]]:
    """Apply the items that annotators gave: marks with the same item belong together, those with different items do
    not."""
    named: defaultdict[str, list[Mark]] = defaultdict(list)
    rest = []
    for group in groups:
        items = group_items(group, lambda mark: mark.item)
        unnamed = items.pop("", [])
        for name, marks in items.items():
            named[name] += marks
        if unnamed and len(items) == 1:
            named[next(iter(items))] += unnamed
        elif unnamed:
            rest.append(unnamed)
    return [*named.values(), *rest]


def _are_similar_names(first: str, second: str) -> bool:
    """Whether two plain names differ only in spaces and signs, or in one letter that does not change the sound."""
    a, b = normalize_code(first), normalize_code(second)
    if a == b:
        return True
    if min(len(a), len(b)) < _LEAST_ALIKE or any(c.isdigit() for c in a + b):
        return False
    return make_sound_key(a) == make_sound_key(b) and is_within_one_edit(a, b)
