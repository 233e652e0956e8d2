"""How anonymised text reads: identifying places that stay, and words that are replaced without need, by kind of text.

usage: python benchmarks/readers.py [FILE] [--policy default] [--show]

FILE is JSONL, by default tests/cases/readers.jsonl: sixty invented texts of fifteen kinds, marked before anything was
run on them. A row has an id, a kind and the marked text: ``«Ada Brook|ada»`` identifies and must be covered, as the
referent ``ada`` (by default its own words, ignoring case); ``‹nurse›`` may be covered or left: roles, works, laws,
nationalities, dates in general, amounts of money, products, big public places. Whatever else is covered is needless:
titles, diseases and medicines, software, departments, relative times, numbers that count.

covered   share of the places whose letters and digits are all covered
needless  words outside of the marks of which anything is covered, per 1,000 words ("an" for "a" is no cover)
split     surfaces of one referent with several replacements in a text
linked    B-cubed F1 of the covered places, grouped by replacement, against the referents

``--show`` also prints what is left and what is needless. The last line is JSON with every figure.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path

import allonym
from allonym.plan import Edit
from allonym.policy import Policy
from allonym.text.words import COMPOUND

TEXTS = Path(__file__).resolve().parent.parent / "tests" / "cases" / "readers.jsonl"
KEY = bytes(range(32))  # the pseudonyms of a run are those of the next
_MARK = re.compile(r"«([^«»‹›|]+)(?:\|([^«»‹›|]+))?»|‹([^«»‹›]+)›")


@dataclass(frozen=True, slots=True)
class Place:
    """A marked place: half-open code points, and the referent; none where it may be left."""

    start: int
    end: int
    referent: str = ""


@dataclass(frozen=True, slots=True)
class MarkedText:
    """A text of the set without its marks, and its marked places in order."""

    id: str
    kind: str
    text: str
    places: tuple[Place, ...]


@dataclass(frozen=True, slots=True)
class Score:
    """Counts that add up; ``precision`` and ``recall`` are B-cubed sums over the ``linked`` places."""

    words: int = 0
    places: int = 0
    left: list[str] = field(default_factory=list)
    needless: list[str] = field(default_factory=list)
    split: list[str] = field(default_factory=list)
    linked: int = 0
    precision: float = 0.0
    recall: float = 0.0

    def __add__(self, other: Score) -> Score:
        return Score(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    def figures(self) -> dict[str, float]:
        both = self.precision + self.recall
        return {
            "places": self.places,
            "words": self.words,
            "covered": 1 - len(self.left) / self.places if self.places else 1.0,
            "needless": 1000 * len(self.needless) / self.words,
            "split": len(self.split),
            "linked": 2 * self.precision * self.recall / (both * self.linked) if both else 1.0,
        }


def parse_marks(id: str, kind: str, marked: str) -> MarkedText:
    """Take the marks out of a text; raises ValueError for a sign of a mark that belongs to none."""
    text, position, places = "", 0, []
    for mark in _MARK.finditer(marked):
        text += marked[position : mark.start()]
        surface = mark[1] or mark[3]
        referent = (mark[2] or surface).casefold() if mark[1] else ""
        places.append(Place(len(text), len(text) + len(surface), referent))
        text += surface
        position = mark.end()
    text += marked[position:]
    if re.search("[«»‹›]", text):
        raise ValueError(f"{id}: a mark is not closed, or stands in another")
    return MarkedText(id, kind, text, tuple(places))


def read_marked_texts(path: Path = TEXTS) -> list[MarkedText]:
    with path.open(encoding="utf-8") as lines:
        return [parse_marks(**json.loads(line)) for line in lines]


def score_edits(marked: MarkedText, edits: Sequence[Edit]) -> Score:
    """Score the edits of a marked text."""
    text = marked.text
    covering: list[int | None] = [None] * len(text)
    for number, edit in enumerate(edits):
        if {text[edit.start : edit.end].lower(), edit.replacement.lower()} <= {"a", "an"}:  # grammar, no cover
            continue
        covering[edit.start : edit.end] = [number] * (edit.end - edit.start)
    is_marked = bytearray(len(text))
    left, groups = [], []
    for place in marked.places:
        is_marked[place.start : place.end] = b"\1" * (place.end - place.start)
        if not place.referent:
            continue
        numbers = [covering[i] for i in range(place.start, place.end) if text[i].isalnum()]
        if None in numbers:
            left.append(text[place.start : place.end])
        else:
            groups.append((place, tuple(dict.fromkeys(edits[n].replacement for n in numbers if n is not None))))
    needless = [
        word[0]
        for word in COMPOUND.finditer(text)
        if not any(is_marked[word.start() : word.end()])
        and any(number is not None for number in covering[word.start() : word.end()])
    ]
    replacements = defaultdict(set)
    for place, group in groups:
        replacements[place.referent, text[place.start : place.end].casefold()].add(group)
    split = [surface for (_, surface), found in replacements.items() if len(found) > 1]
    pairs = [(place.referent, group) for place, group in groups]
    return Score(
        len(COMPOUND.findall(text)),
        sum(bool(place.referent) for place in marked.places),
        left,
        needless,
        split,
        len(pairs),
        *_sum_b_cubed(pairs),
    )


def _sum_b_cubed(pairs: Sequence[tuple[str, tuple[str, ...]]]) -> tuple[float, float]:
    referents, groups = Counter(r for r, _ in pairs), Counter(g for _, g in pairs)
    both = Counter(pairs)
    return sum(n * n / groups[g] for (_, g), n in both.items()), sum(n * n / referents[r] for (r, _), n in both.items())


def score_texts(texts: Iterable[MarkedText], policy: str | Policy = "default") -> dict[str, Score]:
    """Anonymise the texts, each alone, and score them by kind."""
    scores: defaultdict[str, Score] = defaultdict(Score)
    loaded = Policy.load(policy)
    for marked in texts:
        scores[marked.kind] += score_edits(marked, allonym.anonymize(marked.text, loaded, key=KEY).plan.edits)
    return dict(scores)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", nargs="?", type=Path, default=TEXTS)
    parser.add_argument("--policy", default="default")
    parser.add_argument("--show", action="store_true", help="print what is left, needless and split")
    args = parser.parse_args()
    scores = score_texts(read_marked_texts(args.file), args.policy)
    scores["all"] = sum(scores.values(), Score())
    print(f"{'':26s}{'places':>7s}{'covered':>9s}{'words':>7s}{'needless':>9s}{'split':>6s}{'linked':>8s}")
    for kind, score in scores.items():
        f = score.figures()
        print(
            f"{kind:26s}{f['places']:7d}{100 * f['covered']:7.1f} %{f['words']:7d}{f['needless']:9.1f}{f['split']:6d}"
            f"{f['linked']:8.3f}"
        )
        if args.show and kind != "all":
            print("  left:", score.left, "\n  needless:", score.needless, "\n  split:", score.split)
    print(json.dumps({kind: score.figures() for kind, score in scores.items()}))


if __name__ == "__main__":
    main()
