"""What happens to text that is not English: words covered without need, names covered, and what the run says of it.

usage: python benchmarks/languages.py FILE... [--english FILE] [--documents 20] [--policy default]

FILE is JSONL, also packed (.gz), of records with a text, spans of names (start, end) and meta.lang, an ISO 639 code.
Neighbouring records become documents of at least 600 characters, four records a paragraph, a headline on a line of its
own; those with a line end in their text are documents of their own, cut at 3,000 characters.

told      share of the characters of which the run says that names were not looked for in them
named     share of these that it gives the right language
needless  words outside of names of which anything is covered, per 100; words with a digit, and what rules find (dates,
          numbers), do not count
ordinary  those of them that FILE writes in small letters at least as often as with a capital, per 100: a name that the
          corpus does not mark is no ordinary word. Nor are single letters and particles ("van"). Where nouns have
          capitals, this says little
covered   share of the names whose letters and digits are all covered
missed    share of the names of which nothing is covered

With ``--english``, a file of the same form, the same is measured for it, and for mixed documents that have one
paragraph of it before each paragraph of a FILE: the share of the characters of either that is told. The last line is
JSON with every figure.
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import cycle, islice
from pathlib import Path

import allonym
from allonym.detection.lexicon import PARTICLES
from allonym.document import merge_intervals
from allonym.policy import Policy
from allonym.text.words import COMPOUND

LEAST, MOST = 600, 3000
PARAGRAPH = 4
SAME = {"nb": "no", "nn": "no", "bs": "hr", "sr": "hr"}
"""Languages that hardly differ in writing; naming one for the other is right."""

Named = tuple[str, list[tuple[int, int]]]
"""A text and the places of its names."""


@dataclass(slots=True)
class Score:
    """Counts that add up."""

    documents: int = 0
    characters: int = 0
    told: Counter[str] = field(default_factory=Counter)
    words: int = 0
    needless: int = 0
    ordinary: int = 0
    names: int = 0
    covered: int = 0
    missed: int = 0

    def figures(self, language: str) -> dict[str, float]:
        told = self.told.total()
        right = sum(n for code, n in self.told.items() if SAME.get(code, code) == SAME.get(language, language))
        return {
            "documents": self.documents,
            "words": self.words,
            "told": told / self.characters,
            "named": right / told if told else 0.0,
            "needless": 100 * self.needless / self.words,
            "ordinary": 100 * self.ordinary / self.words,
            "names": self.names,
            "covered": self.covered / max(1, self.names),
            "missed": self.missed / max(1, self.names),
        }


def read_records(path: Path) -> Iterator[tuple[str, Named]]:
    """Yield the language and the text with its names of each record."""
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            language = row.get("meta", {}).get("lang") or row.get("lang") or "en"
            yield language, (row["text"], [(span["start"], span["end"]) for span in row.get("spans", ())])


def join_texts(texts: Sequence[Named], separators: Sequence[str]) -> Named:
    """Join texts, each followed by its separator."""
    out, names = "", []
    for (text, places), separator in zip(texts, separators, strict=True):
        names += [(a + len(out), b + len(out)) for a, b in places]
        out += text + separator
    return out, names


def make_paragraphs(path: Path) -> Iterator[tuple[str, Named]]:
    """Yield paragraphs of a few records, or whole records that have lines."""
    waiting: list[Named] = []
    for language, (text, names) in read_records(path):
        if "\n" in text or len(text) > LEAST:
            yield language, (text[:MOST], [(a, b) for a, b in names if b <= MOST])
            continue
        waiting.append((text, names))
        if len(waiting) == PARAGRAPH:
            ends = (" " if text.rstrip("\"'”»’)")[-1:] in ".!?:;" else "\n" for text, _ in waiting[:-1])
            yield language, join_texts(waiting, [*ends, ""])
            waiting = []


def make_documents(path: Path, count: int) -> tuple[str, list[Named]]:
    """Return the language of a file and its first documents."""
    documents: list[Named] = []
    waiting: list[Named] = []
    language = ""
    for language, paragraph in make_paragraphs(path):  # noqa: B007
        waiting.append(paragraph)
        if sum(len(text) for text, _ in waiting) >= LEAST:
            documents.append(join_texts(waiting, ["\n\n"] * len(waiting)))
            waiting = []
        if len(documents) == count:
            break
    return language, documents


def list_ordinary_words(path: Path) -> frozenset[str]:
    """List the words that a file writes in small letters at least as often as with a capital."""
    small, big = Counter[str](), Counter[str]()
    for _, (text, _) in read_records(path):
        for word in COMPOUND.findall(text):
            (small if word.islower() else big)[word.lower()] += 1
    return frozenset(w for w, n in small.items() if n >= big[w] and len(w) > 1 and w not in PARTICLES)


def measure_document(score: Score, document: Named, policy: Policy, ordinary: Collection[str]) -> None:
    """Add the figures of a document."""
    text, names = document
    result = allonym.anonymize(text, policy)
    score.documents += 1
    score.characters += len(text)
    score.told.update(getattr(result.report, "unread", {}))
    covered = {i for span in result.spans for i in range(span.start, span.end)}
    counted = {i for s in result.spans if not s.source.startswith("rules:") for i in range(s.start, s.end)}
    named = {i for a, b in merge_intervals(names) for i in range(a, b)}
    for word in COMPOUND.finditer(text):
        places = range(*word.span())
        if not any(map(str.isdigit, word[0])) and not named.intersection(places):
            is_covered = not counted.isdisjoint(places)
            score.words += 1
            score.needless += is_covered
            score.ordinary += is_covered and word[0].lower() in ordinary
    for a, b in merge_intervals(names):
        letters = [i for i in range(a, b) if text[i].isalnum()]
        score.names += 1
        score.covered += covered.issuperset(letters)
        score.missed += covered.isdisjoint(letters)


def measure_mixed(english: Sequence[Named], other: Sequence[Named], policy: Policy) -> tuple[float, float]:
    """Return the shares of the English and of the other characters that are told, in documents that alternate."""
    from allonym.detection.selection import find_unread_passages

    sizes, told = [0, 0], [0, 0]
    for (first, _), (second, _) in zip(islice(cycle(english), len(other)), other, strict=False):
        paragraphs = [(kind, p) for pair in zip(first.split("\n\n"), second.split("\n\n"), strict=False)
                      for kind, p in enumerate(pair) if p]  # fmt: skip
        text, owners = "", []
        for kind, paragraph in paragraphs:
            owners += [kind] * (len(paragraph) + 2)
            text += paragraph + "\n\n"
        for kind in owners:
            sizes[kind] += 1
        for passage in find_unread_passages(allonym.Document("", text), policy):
            for kind in owners[passage.start : passage.end]:
                told[kind] += 1
    return told[0] / max(1, sizes[0]), told[1] / max(1, sizes[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--english", type=Path)
    parser.add_argument("--documents", type=int, default=20)
    parser.add_argument("--policy", default="default")
    args = parser.parse_args()
    policy = Policy.load(args.policy)
    english = make_documents(args.english, args.documents)[1] if args.english else []
    figures: dict[str, dict[str, float]] = {}
    print(
        f"{'file':<28}{'told':>7}{'named':>8}{'needless':>10}{'ordinary':>10}{'covered':>9}{'missed':>8}{'names':>7}"
        "  mixed: en, rest"
    )
    for path in [*args.files, *([args.english] if args.english else [])]:
        language, documents = make_documents(path, args.documents)
        score, ordinary = Score(), list_ordinary_words(path)
        for document in documents:
            measure_document(score, document, policy, ordinary)
        row = score.figures(language)
        mixed = ""
        if english and path != args.english:
            row["mixed_english"], row["mixed_other"] = measure_mixed(english, documents, policy)
            mixed = f"  {row['mixed_english']:.1%}, {row['mixed_other']:.1%}"
        figures[path.name.partition(".")[0]] = row
        print(
            f"{path.name.partition('.')[0][:27]:<28}{row['told']:>7.1%}{row['named']:>8.1%}{row['needless']:>10.2f}"
            f"{row['ordinary']:>10.2f}{row['covered']:>9.1%}{row['missed']:>8.1%}{score.names:>7}{mixed}",
            flush=True,
        )
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
