"""The panel: how often the subjects of released texts are identified by intruders who know more and more of the tool.

A release is as safe as its worst intruder lets it be, so :attr:`Panel.worst` is the number to tell. All of them choose
among the same subjects and judge the same texts in the same folds. None has learnt from a text that it judges, before
or after, nor from a copy, nor from another text of the same document.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from allonym.errors import UsageError
from allonym.intruder.before_after import assign_folds
from allonym.intruder.linkage import FeatureReader, Linkage
from allonym.intruder.protocol import Item, Target
from allonym.intruder.rejoining import Bag, compare_pieces, divide_documents, find_documents, is_among_best
from allonym.intruder.retrieval import Background
from allonym.serial import Serialisable
from allonym.stats import Estimate, none
from allonym.stats.samples import share
from allonym.text.fold import Level, fold_surface

INTRUDERS: Mapping[str, str] = MappingProxyType(
    {
        "naive": "has learnt from original texts about the same subjects",
        "blind": "has learnt from them too, and passes over the words that the tool brings in",
        "adaptive": "has learnt from what the tool made of other texts about the same subjects",
        "told": "is told which terms were altered, and looks at the others",
        "partners": "is told with which texts terms were exchanged, and looks at those",
        "document": "takes all texts of a document together",
        "background words": "searches public texts about the candidates for the same words (BM25)",
        "background meaning": "searches public texts about the candidates for the same meaning (sentence vectors)",
    }
)
"""The intruders of the panel by name, and what each knows, in the order of the table."""

MOST = 2000
"""Texts that are judged at most; of more, as many are drawn evenly from all subjects."""
_JUNK = 8000  # words of two texts above which very frequent words are no anchors of their alignment

Advance = Callable[[int, int], object]
Floats = NDArray[np.float64]


class PanelRow(Serialisable):
    """What one intruder of the panel reaches.

    Attributes:
        name: a name of :data:`INTRUDERS`.
        knows: what it knows, in words.
        identified: share of the texts, or documents, whose subject is among its first guesses, 0 to 1, with Wilson's
            interval; NaN where it was not measured, with the reason as its method.
        before: the same for the original texts, and whole original documents.
        among: what was judged, if not texts, such as ``44 halves of documents``; the share is that of each of them
            where pieces of them are released.
        chance: what guessing the most frequent subjects reaches; NaN where nothing was measured.
    """

    name: str
    knows: str
    identified: Estimate
    before: Estimate
    chance: Estimate
    among: str = ""

    @property
    def is_measured(self) -> bool:
        """Whether there is a value."""
        return self.identified.value == self.identified.value


class Panel(Serialisable):
    """The result of :func:`measure_panel`.

    Attributes:
        worst: the row with the greatest share: the headline. One without a value where nothing could be measured.
        rows: one for each of :data:`INTRUDERS`, in that order.
        groups: group to its own rows; empty without groups.
        rank: how many guesses an intruder has.
        texts: that were judged; subjects: of these texts; unjudged: texts left out, as no other document is about their
            subject, as their group has one subject only, or because there are more than :data:`MOST`.
        folds: into which the texts were divided.
    """

    KEYS = ("worst", "rows", "groups=_group_rows", "rank", "texts", "subjects", "unjudged", "folds")

    rows: tuple[PanelRow, ...]
    groups: Mapping[str, tuple[PanelRow, ...]]
    rank: int
    texts: int
    subjects: int
    unjudged: int
    folds: int

    @property
    def worst(self) -> PanelRow:
        return find_worst_row(self.rows)

    @property
    def _group_rows(self) -> list[dict[str, object]]:
        return [{"name": name, "worst": find_worst_row(rows), "rows": rows} for name, rows in self.groups.items()]


def find_worst_row(rows: Sequence[PanelRow]) -> PanelRow:
    """Return the row with the greatest share, the first of equal ones."""
    return max(rows, key=lambda row: row.identified.value if row.is_measured else -1.0)


def measure_panel(
    original: Sequence[str],
    anonymised: Sequence[str],
    subjects: Sequence[str],
    *,
    groups: Sequence[str] | None = None,
    documents: Sequence[str] | None = None,
    pieces: Sequence[str | None] | None = None,
    partners: Mapping[int, Sequence[int]] | None = None,
    judged: Collection[int] | None = None,
    background: Sequence[tuple[str, str]] = (),
    features: str = "both",
    rank: int = 1,
    folds: int = 5,
    seed: int = 0,
    advance: Advance | None = None,
) -> Panel:
    """Let every intruder of the panel guess whom each anonymised text is about.

    Args:
        original, anonymised: the same texts before and after, in the same order.
        subjects: whom each text is about; empty: not known, the text is not judged.
        groups: the intruders choose among the subjects of a text's group; None: among all.
        documents: of which document each text is a part; None: each is a document of its own. The texts of a document
            are in reading order.
        pieces: the released piece that each text is a part of, where documents are not released whole; None for a text
            that is not released. None: documents are released whole.
        partners: index of a text to those with which its terms were exchanged.
        judged: indices of the texts that are judged; None: all. The intruders learn from the others too.
        background: (text, candidate) pairs: public texts about candidates.
        features: what those that learn look at, see :class:`~allonym.intruder.linkage.Linkage`.
        rank: a text is identified if its subject is among so many guesses, 1 or more.
        folds: parts of the texts, 2 or more.
        seed: of the folds.
        advance: called with steps that are done, and of all.

    Raises:
        UsageError: unequal lengths, or a number is out of its range.
    """
    n = len(original)
    if any(len(column) != n for column in (anonymised, subjects, groups, documents, pieces) if column is not None):
        raise UsageError(f"panel: each column must have one value for each of the {n} texts")
    if rank < 1 or folds < 2:
        raise UsageError(f"panel: rank must be 1 or more and folds 2 or more; got {rank} and {folds}")
    problems = _divide_into_problems(original, subjects, groups or [""] * n, documents, folds, seed)
    if judged is not None:
        for problem in problems:
            problem.is_judged = np.isin(problem.members, list(judged))
    views = _make_views(original, anonymised, features, partners) if problems else []
    steps = len(problems) * (len(views) + bool(background))
    for number, problem in enumerate(problems):
        for step, view in enumerate(views, 1):
            problem.judge_by_view(view, original, anonymised, rank)
            if advance is not None:
                advance(number * steps // len(problems) + step, steps)
        if background:
            problem.search_background(background, original, anonymised, rank, is_grouped=groups is not None)
            if advance is not None:
                advance((number + 1) * steps // len(problems), steps)
    reasons = {
        "partners": "no exchange of terms between texts is known",
        "document": "each text is a document of its own",
    }
    missing = "no text is about a candidate of the background" if background else "no public background was given"
    reasons |= dict.fromkeys(("background words", "background meaning"), missing)

    def make_rows(chosen: Sequence[_Problem]) -> tuple[PanelRow, ...]:
        return _make_rows(chosen, reasons, _make_document_row(chosen, anonymised, pieces, rank))

    return Panel(
        make_rows(problems),
        {problem.group: make_rows([problem]) for problem in problems} if groups is not None else {},
        rank,
        (count := sum(int(problem.is_judged.sum()) for problem in problems)),
        len({name for problem in problems for name in problem.classes}),
        (n if judged is None else len(judged)) - count,
        folds,
    )


@dataclass(frozen=True, slots=True)
class _View:
    """What an intruder learns from, and what it judges.

    Attributes:
        intruder: what learns.
        learnt: the texts of others, as it knows them.
        judged: name of a row, or ``before``, to the texts that it judges.
    """

    intruder: Linkage
    learnt: Sequence[str] = field(repr=False)
    judged: Mapping[str, Sequence[str]] = field(repr=False)


def _make_views(
    original: Sequence[str], anonymised: Sequence[str], features: str, partners: Mapping[int, Sequence[int]] | None
) -> list[_View]:
    plain, reads_tags = Linkage(features), Linkage(features, tags=True)
    reader = FeatureReader()
    divided = [divide_words(reader, a, b) for a, b in zip(original, anonymised, strict=True)]
    stayed, new = ([" ".join(part[k]) for part in divided] for k in (0, 1))
    brought_in = list_words_brought_in(divided)
    blind = [[drop_words(reader, text, brought_in) for text in texts] for texts in (original, anonymised)]
    judged = {"before": original, "naive": anonymised}
    if partners is not None:
        judged["partners"] = [
            " ".join((stayed[i], *(new[j] for j in partners.get(i, ())))) for i in range(len(original))
        ]
    return [
        _View(plain, original, judged),
        _View(plain, blind[0], {"blind": blind[1]}),
        _View(reads_tags, anonymised, {"adaptive": anonymised}),
        _View(plain, stayed, {"told": stayed}),
    ]


def divide_words(reader: FeatureReader, original: str, anonymised: str) -> tuple[list[str], list[str]]:
    """Divide the words of an anonymised text, in lower case, into those that it has kept and those that are new."""
    before, after = ([text[a:b].lower() for a, b in reader.find_word_spans(text)] for text in (original, anonymised))
    matcher = SequenceMatcher(None, before, after, autojunk=len(before) + len(after) > _JUNK)
    stayed: list[str] = []
    new: list[str] = []
    position = 0
    for _, start, size in matcher.get_matching_blocks():
        new += after[position:start]
        stayed += after[start : start + size]
        position = start + size
    return stayed, new


def list_words_brought_in(divided: Sequence[tuple[Sequence[str], Sequence[str]]]) -> frozenset[str]:
    """List the words that are more often new than kept in anonymised texts: those that the tool brings in."""
    stayed = Counter(word for words, _ in divided for word in words)
    new = Counter(word for _, words in divided for word in words)
    return frozenset(word for word, times in new.items() if times > stayed[word])


def drop_words(reader: FeatureReader, text: str, words: frozenset[str]) -> str:
    """Return the text without some words, given in lower case."""
    out, position = [], 0
    for start, end in reader.find_word_spans(text):
        if text[start:end].lower() in words:
            out.append(text[position:start])
            position = end
    return "".join((*out, text[position:]))


@dataclass(slots=True)
class _Answers:
    """Whether an intruder identified each text, or document, and what guessing reaches."""

    hits: list[bool] = field(default_factory=list)
    chances: list[float] = field(default_factory=list)

    def add_table(self, table: Floats, labels: NDArray[np.int64], rank: int, chance: float | None = None) -> None:
        """Add the answers of scores ``(n, C)``; the chance is that of the most frequent classes, or given."""
        n = len(labels)
        self.hits += is_among_best(table, labels, rank).tolist()
        often = sum(times for _, times in Counter(labels.tolist()).most_common(rank))
        self.chances += [often / max(1, n) if chance is None else chance] * n

    def estimate_share(self) -> Estimate:
        """Return the share of hits."""
        return share(sum(self.hits), len(self.hits))


@dataclass(eq=False)
class _Problem:
    """The texts of a group whose subjects can be told apart.

    Attributes:
        group: its name.
        members: int ``(n,)``: their numbers; labels: int ``(n,)``: index of the subject of each; fold: int ``(n,)``.
        is_judged: bool ``(n,)``: whether the answers about it count.
        classes: the subjects.
        units: int ``(n,)``: what is looked for as a whole, see :func:`~allonym.intruder.rejoining.divide_documents`;
            -1: nothing. None: each text is a document of its own. unit_fold: int ``(n,)``: folds that divide no unit.
        answers: name of a row, or ``before``, to the answers about texts.
        unit_tables: the same to the scores ``(n, C)`` of all texts by who has learnt from no text of their unit.
    """

    group: str
    members: NDArray[np.int64]
    labels: NDArray[np.int64]
    fold: NDArray[np.int64]
    is_judged: NDArray[np.bool_]
    classes: Sequence[str] = field(repr=False)
    units: NDArray[np.int64] | None = None
    unit_fold: NDArray[np.int64] | None = None
    answers: dict[str, _Answers] = field(default_factory=dict)
    unit_tables: dict[str, Floats] = field(default_factory=dict)

    def judge_by_view(self, view: _View, original: Sequence[str], anonymised: Sequence[str], rank: int) -> None:
        """Learn from the other folds, and judge each; what has no other text of its subject is left out."""
        tables = self._score_by_view(view, self.fold, original, anonymised)
        for name, table in tables.items():
            met = np.flatnonzero((table[np.arange(len(table)), self.labels] > -np.inf) & self.is_judged)
            self.answers.setdefault(name, _Answers()).add_table(table[met], self.labels[met], rank)
        if self.unit_fold is not None:
            is_same = self.unit_fold is self.fold
            self.unit_tables |= tables if is_same else self._score_by_view(view, self.unit_fold, original, anonymised)

    def _score_by_view(
        self, view: _View, fold: NDArray[np.int64], original: Sequence[str], anonymised: Sequence[str]
    ) -> dict[str, Floats]:
        """Return the scores ``(n, C)`` of the texts of each row by who has learnt from the other folds."""
        befores, afters = ([fold_surface(t[i], Level.CASE) for i in self.members] for t in (original, anonymised))
        tables = {name: np.full((len(self.members), len(self.classes)), -np.inf) for name in view.judged}
        for number in np.unique(fold):
            mine = np.flatnonzero(fold == number)
            originals, outputs = {befores[k] for k in mine}, {afters[k] for k in mine}
            hidden = originals | outputs  # that another original has the same output is for the intruder to see
            others = np.flatnonzero(fold != number).tolist()
            rest = [k for k in others if befores[k] not in hidden and afters[k] not in originals]
            examples = [Item(view.learnt[self.members[k]]) for k in rest]
            judge = view.intruder.learn(examples, self.labels[rest].tolist(), self.classes)
            for name, texts in view.judged.items():
                tables[name][mine] = judge.scores([Target(Item(texts[i])) for i in self.members[mine]])
        return tables

    def divide_into_bags(
        self, anonymised: Sequence[str], pieces: Sequence[str | None] | None
    ) -> list[tuple[Bag, NDArray[np.int64]]]:
        """Return what is looked for at once, and which rows of the problem it is; without pieces: whole documents."""
        if self.units is None or self.unit_fold is None:
            return []
        true_scores = self.unit_tables["before"][np.arange(len(self.labels)), self.labels]
        can_be_told = (self.units >= 0) & (true_scores > -np.inf)
        number_of: dict[str, int] = {}
        numbers = [
            -1 if piece is None else number_of.setdefault(piece, len(number_of))
            for piece in ([""] * len(self.members) if pieces is None else [pieces[i] for i in self.members])
        ]
        of_piece = np.array(numbers, np.int64)
        out = []
        for number in np.unique(self.unit_fold):
            rows = np.flatnonzero((self.unit_fold == number) & can_be_told & (of_piece >= 0))
            if len(rows):
                texts = [anonymised[i] for i in self.members[rows]]
                row_pieces = None if pieces is None else of_piece[rows]
                out.append((Bag(self.units[rows], self.labels[rows], row_pieces, texts), rows))
        return out

    def search_background(
        self,
        background: Sequence[tuple[str, str]],
        original: Sequence[str],
        anonymised: Sequence[str],
        rank: int,
        *,
        is_grouped: bool,
    ) -> None:
        """Search the background for the texts about whose subjects it tells something, before and after."""
        versions = [[texts[i] for i in self.members] for texts in (original, anonymised)]
        hidden = {fold_surface(text, Level.CASE) for texts in versions for text in texts}
        pairs = [
            (text, name)
            for text, name in background
            if (not is_grouped or name in self.classes) and fold_surface(text, Level.CASE) not in hidden
        ]
        place = {name: k for k, name in enumerate(sorted({name for _, name in pairs}))}
        rows = [k for k, label in enumerate(self.labels) if self.is_judged[k] and self.classes[label] in place]
        if len(place) < 2 or not rows:
            return
        labels = np.array([place[self.classes[self.labels[k]]] for k in rows], np.int64)
        library = Background(pairs, list(place))
        for stage, texts in zip(("before ", ""), versions, strict=True):
            queries = [texts[k] for k in rows]
            for name, score in (
                ("background words", library.score_words),
                ("background meaning", library.score_meaning),
            ):
                answers = self.answers.setdefault(stage + name, _Answers())
                answers.add_table(score(queries), labels, rank, min(1.0, rank / len(place)))


def _make_document_row(
    problems: Sequence[_Problem], anonymised: Sequence[str], pieces: Sequence[str | None] | None, rank: int
) -> PanelRow | None:
    """Make the row of whole documents; None where no document has two texts."""
    knows = INTRUDERS["document"]
    is_halved = any(problem.unit_fold is not None and problem.unit_fold is not problem.fold for problem in problems)
    half = ", having learnt from the other half of each" if is_halved else ""
    rows_of_bags = [(problem, *pair) for problem in problems for pair in problem.divide_into_bags(anonymised, None)]
    if not rows_of_bags or not any(problem.is_judged.any() for problem in problems):
        return None
    bags = [bag for _, bag, _ in rows_of_bags]
    before = find_documents(bags, [p.unit_tables["before"][rows] for p, _, rows in rows_of_bags], (), rank)
    chances = []
    for bag in bags:
        labels = [label for _, label in set(zip(bag.units.tolist(), bag.labels.tolist(), strict=True))]
        often = sum(times for _, times in Counter(labels).most_common(rank)) / len(labels)
        chances += [often] * len(labels)
    similarities: list[Floats] = []
    if pieces is not None:
        knows = "puts the released pieces of each document together again"
        rows_of_bags = [
            (problem, *pair) for problem in problems for pair in problem.divide_into_bags(anonymised, pieces)
        ]
        bags = [bag for _, bag, _ in rows_of_bags]
        similarities = [compare_pieces(bag) for bag in bags]
    if not bags:
        return None
    views = [name for name in INTRUDERS if name in rows_of_bags[0][0].unit_tables]
    findings = {
        view: find_documents(bags, [p.unit_tables[view][rows] for p, _, rows in rows_of_bags], similarities, rank)
        for view in views
    }
    view = max(views, key=lambda view: sum(findings[view].shares))
    way = f" and {findings[view].way}" if findings[view].way else ""
    chance = Estimate.exact(sum(chances) / len(chances), len(chances))
    knows = f"{knows}{half} (as {view}{way})"
    among = f"{len(findings[view].shares)} {'halves of documents' if is_halved else 'documents'}"
    among = among if pieces is None else f"each of {among}"
    return PanelRow("document", knows, findings[view].estimate(), before.estimate(), chance, among)


def _make_rows(
    problems: Sequence[_Problem], reasons: Mapping[str, str], document_row: PanelRow | None
) -> tuple[PanelRow, ...]:
    """Make the table of some problems together."""

    def collect(name: str) -> _Answers:
        parts = [part for problem in problems if (part := problem.answers.get(name))]
        return _Answers([hit for part in parts for hit in part.hits], [x for part in parts for x in part.chances])

    out = []
    for name, knows in INTRUDERS.items():
        after, before = collect(name), collect(f"before {name}" if name.startswith("background") else "before")
        if name == "document" and document_row is not None:
            out.append(document_row)
            continue
        if not after.hits:
            nothing = "no text was to be judged" if problems else "no two subjects have two texts each"
            missing = none(f"not measured: {(problems and reasons.get(name)) or nothing}")
            out.append(PanelRow(name, knows, missing, missing, missing))
            continue
        chance = Estimate.exact(sum(after.chances) / len(after.chances), len(after.chances))
        out.append(PanelRow(name, knows, after.estimate_share(), before.estimate_share(), chance))
    return tuple(out)


def _divide_into_problems(
    original: Sequence[str],
    subjects: Sequence[str],
    groups: Sequence[str],
    documents: Sequence[str] | None,
    folds: int,
    seed: int,
) -> list[_Problem]:
    """Divide the texts by group, and each group into folds; copies and documents stay together.

    Where a subject has one document only, intruders may know other parts of it.
    """
    copies = [fold_surface(text, Level.CASE) for text in original]
    members_of: dict[str, list[int]] = {}
    for i in _draw_evenly(range(len(original)), groups, subjects):
        members_of.setdefault(groups[i], []).append(i)
    out = []
    for group, members in sorted(members_of.items()):
        together = documents or copies
        several = Counter(name for name, _ in {(subjects[i], together[i]) for i in members})
        units = [together[i] if several[subjects[i]] > 1 else copies[i] for i in members]
        often = Counter(name for name, _ in {(subjects[i], unit) for i, unit in zip(members, units, strict=True)})
        linked = [(i, unit) for i, unit in zip(members, units, strict=True) if often[subjects[i]] > 1]
        classes = sorted({subjects[i] for i, _ in linked})
        if len(classes) < 2:
            continue
        place = {name: k for k, name in enumerate(classes)}
        labels = [place[subjects[i]] for i, _ in linked]
        fold = assign_folds([unit for _, unit in linked], labels, folds, seed)
        of_all = np.array([i for i, _ in linked])
        problem = _Problem(group, of_all, np.array(labels), fold, np.ones(len(labels), np.bool_), classes)
        if documents:
            names = divide_documents([subjects[i] for i in of_all], [documents[i] for i in of_all])
            if len(set(names)) < len(names):
                number_of = {name: k for k, name in enumerate(dict.fromkeys(names))}
                problem.units = np.array([number_of[name] if name else -1 for name in names], np.int64)
                is_whole = all(several[subjects[i]] > 1 for i in of_all)
                problem.unit_fold = fold if is_whole else assign_folds(names, labels, 2, seed)
        out.append(problem)
    return out


def _draw_evenly(places: Sequence[int], groups: Sequence[str], subjects: Sequence[str]) -> list[int]:
    """Draw :data:`MOST` texts with a subject at most, evenly from all subjects; in their own order."""
    ordered = sorted((i for i in places if subjects[i]), key=lambda i: (groups[i], subjects[i], i))
    if len(ordered) > MOST:
        ordered = [ordered[k * len(ordered) // MOST] for k in range(MOST)]
    return sorted(ordered)
