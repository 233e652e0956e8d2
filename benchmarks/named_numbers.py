"""Numbers and secrets that are called by name: the share that is covered, and covered with a right label, by kind.

usage: python benchmarks/named_numbers.py [FILE] [--policy default] [--show]

FILE is JSONL, by default tests/cases/numbers.jsonl: two hundred invented citations, letters, forms, tickets, chats and
turns of calls, marked before anything was run on them. tests/cases/numbers_documents.jsonl has twelve texts in each of
fifteen kinds of document. When they were new, the grammar that knew the first set found 78 % of the marks in the first
eight of each kind with the right label, and then 70 % in the last four; since then they too are known.

A row has a kind, a text, and marks: words that occur once in the text, and the labels that are right for them. An
ancestor or a descendant of a right label is right.

covered  share of the marks whose letters and digits are all covered
family   share of the marks whose letters and digits are all covered with labels of a right label's family, such as
         ORDER_NUMBER for CASE_NUMBER or DATE for DATE_OF_BIRTH
right    share of the marks whose letters and digits are all covered with right labels

``--show`` also prints each mark that is not right: its text and the findings that touch it. The last line is JSON with
every figure.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path

import allonym
from allonym.document import Span
from allonym.labels import TAXONOMY
from allonym.policy import Policy

TEXTS = Path(__file__).resolve().parent.parent / "tests" / "cases" / "numbers.jsonl"
DOCUMENTS = TEXTS.with_name("numbers_documents.jsonl")
FURTHER = TEXTS.with_name("numbers_further.jsonl")


@dataclass(frozen=True, slots=True)
class Mark:
    """Half-open code points of a text, and the labels that are right for them."""

    start: int
    end: int
    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MarkedText:
    """A text of the set, its kind, and its marks in the order of its row."""

    kind: str
    text: str
    marks: tuple[Mark, ...]


@dataclass(frozen=True, slots=True)
class Score:
    """Counts that add up, and a description of each mark that is not right."""

    marks: int = 0
    covered: int = 0
    family: int = 0
    right: int = 0
    misses: list[str] = field(default_factory=list)

    def __add__(self, other: Score) -> Score:
        return Score(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    def figures(self) -> dict[str, float]:
        shares = {name: getattr(self, name) / self.marks for name in ("covered", "family", "right")}
        return {"marks": self.marks, **shares}


def locate_marks(kind: str, text: str, marks: Iterable[dict[str, object]]) -> MarkedText:
    """Find the marks of a row in its text.

    Raises:
        ValueError: a mark does not occur exactly once, or has no label.
        UnknownNameError: a label is not in the taxonomy.
    """
    located = []
    for mark in marks:
        words, labels = str(mark["text"]), mark["labels"]
        if text.count(words) != 1 or not isinstance(labels, list) or not labels:
            raise ValueError(f"{kind}: {words!r} must occur once in its text, and have labels")
        start = text.index(words)
        located.append(Mark(start, start + len(words), tuple(TAXONOMY.get(label).name for label in labels)))
    return MarkedText(kind, text, tuple(located))


def read_marked_texts(path: Path = TEXTS) -> list[MarkedText]:
    with path.open(encoding="utf-8") as lines:
        return [locate_marks(**json.loads(line)) for line in lines]


def is_label_right(label: str, right: Iterable[str]) -> bool:
    """Return whether a label is one of the right ones, or lies above or below one of them."""
    return any(TAXONOMY.within(label, one) or TAXONOMY.within(one, label) for one in right)


def score_spans(marked: MarkedText, spans: Sequence[Span]) -> Score:
    """Score the disjoint findings in a marked text."""
    label_at = {i: span.label for span in spans for i in range(span.start, span.end)}
    covered = family = right = 0
    misses = []
    for mark in marked.marks:
        found = {label_at.get(i, "") for i in range(mark.start, mark.end) if marked.text[i].isalnum()}
        is_covered = "" not in found
        is_right = is_covered and all(is_label_right(label, mark.labels) for label in found)
        covered += is_covered
        family += all(any(TAXONOMY.are_related(label, one) for one in mark.labels) for label in found)
        right += is_right
        if not is_right:
            words = marked.text[mark.start : mark.end]
            touching = [
                f"{span.label} {marked.text[span.start : span.end]!r}"
                for span in spans
                if span.start < mark.end and mark.start < span.end
            ]
            fault = "wrong label" if is_covered else "not covered"
            misses.append(f"{fault}: {words!r} in {marked.text!r}: {', '.join(touching) or 'nothing'}")
    return Score(len(marked.marks), covered, family, right, misses)


def score_texts(texts: Iterable[MarkedText], policy: str | Policy = "default") -> dict[str, Score]:
    """Detect in the texts, each alone, and score them by kind."""
    scores: defaultdict[str, Score] = defaultdict(Score)
    loaded = Policy.load(policy)
    for marked in texts:
        scores[marked.kind] += score_spans(marked, allonym.detect(marked.text, loaded))
    return dict(scores)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", nargs="?", type=Path, default=TEXTS)
    parser.add_argument("--policy", default="default")
    parser.add_argument("--show", action="store_true", help="print each mark that is not right")
    args = parser.parse_args()
    scores = score_texts(read_marked_texts(args.file), args.policy)
    scores["all"] = sum(scores.values(), Score())
    print(f"{'':12s}{'marks':>6s}{'covered':>10s}{'family':>10s}{'right':>10s}")
    for kind, score in scores.items():
        f = score.figures()
        print(
            f"{kind:12s}{f['marks']:6d}{100 * f['covered']:8.1f} %{100 * f['family']:8.1f} %{100 * f['right']:8.1f} %"
        )
        if args.show and kind != "all":
            print(*(f"  {miss}" for miss in score.misses), sep="\n")
    print(json.dumps({kind: score.figures() for kind, score in scores.items()}))


if __name__ == "__main__":
    main()
