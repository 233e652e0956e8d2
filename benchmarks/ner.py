"""How well names and soft identifiers are found in annotated texts: precision, recall, leaks, needless cover, speed.

usage: python benchmarks/ner.py FILE... [--operating-point NAME|NUMBER]... [--policy default] [--model FOLDER]
                                [--chain] [--lower] [--part test] [--groups PERSON,LOCATION,ORGANIZATION]
                                [--labels MAPFILE] [--limit N]

FILE is JSONL, plain or gzipped: {"id", "text", "spans": [{"start", "end", "label"}], "meta": {"source"}}, in any
label scheme; src/allonym/train/labelmap.toml says what the labels mean, MAPFILE (TOML, ``NAME = ["LABEL"]``, ``[]``
to ignore) adds to it. Labels are compared by group, the top of the taxonomy: PERSON, LOCATION, DATE_TIME and so on.
Where a label may mean several groups (MISC), each of them is right. Spans inside others are left out, name parts that
stand side by side are one person, and spans whose label means nothing to the tagger, or that hold neither letter nor
digit, are neither right nor wrong.

strict        span borders and group are right
blind         span borders are right
covered       share of the entity tokens (words and marks) that some finding covers wholly, of whatever type
whole, part   share of the entities of which no word, or not every word, is covered; marks do not count
typed         the same, where a word covered by a finding of a wrong type counts as leaked too
needless      share of the tokens outside of all spans that a finding covers whose group the file annotates

Findings of groups that a file does not annotate are neither right nor wrong unless they overlap an entity. P4's Table 4
does not say whether a wrong type is a leak, hence both counts. Only the tagger runs, at threshold 0, unless --chain
asks for the policy as it is; without --operating-point it runs at the policy's own. Seconds are wall time. Prints a
table and, last, one line of JSON with every figure.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import unicodedata
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import allonym
from allonym.errors import AllonymError, UnknownNameError
from allonym.labels import TAXONOMY
from allonym.models.words import split_words
from allonym.policy import Policy, check_operating_point
from allonym.train.corpus import assign_train_dev_test
from allonym.train.labelmap import LabelMap, load_default_map, read_label_map
from allonym.train.records import read_json_lines

NAME_PARTS = frozenset({"PERSON_FIRSTNAME", "PERSON_LASTNAME"})


@dataclass(frozen=True, slots=True)
class Marked:
    """An entity of the annotation or a finding: where it stands, which groups it may belong to, what it is called."""

    start: int
    end: int
    groups: frozenset[str]
    label: str


@dataclass(frozen=True, slots=True)
class Text:
    """A text with its entities, with those of groups that are not scored, and with spans that mean nothing to us."""

    text: str
    gold: tuple[Marked, ...]
    other: tuple[Marked, ...]
    ignored: tuple[Marked, ...]


def find_group(label: str) -> str:
    """The top of the taxonomy above ``label``. A form of address is no name."""
    return label if label == "TITLE" else TAXONOMY.lineage(label)[-1]


def group_name(groups: frozenset[str]) -> str:
    return "|".join(sorted(groups)) if len(groups) < 3 else "MISC"


def read_text(record: dict[str, Any], stem: str, known: LabelMap, wanted: frozenset[str]) -> Text:
    """A record's text with its outermost entities; ``wanted`` are the groups to score, all where it is empty."""
    text = record["text"]
    source = f"{(record.get('meta') or {}).get('source', '')} {stem}"
    meant: dict[tuple[int, int], tuple[set[str], str]] = {}
    other: list[Marked] = []
    ignored: list[Marked] = []
    for span in record.get("spans") or ():
        start, end = trim_span(text, span["start"], span["end"])
        targets = known.find_targets(span["label"], source) or frozenset()
        if start == end:
            continue
        if not any(map(str.isalnum, text[start:end])):  # a mark alone names nobody, whatever the corpus says
            ignored.append(Marked(start, end, frozenset(), span["label"]))
            continue
        if not targets or (wanted and wanted.isdisjoint(map(find_group, targets))):
            (other if targets else ignored).append(Marked(start, end, frozenset(), span["label"]))
            continue
        labels, _ = meant.setdefault((start, end), (set(), span["label"]))
        labels |= targets
    outer: list[tuple[Marked, bool]] = []
    reach = 0
    for (start, end), (labels, label) in sorted(meant.items(), key=lambda item: (item[0][0], -item[0][1])):
        if end > reach:
            groups = frozenset(map(find_group, labels))
            outer.append((Marked(start, end, groups & wanted or groups, label), len(labels & NAME_PARTS) == 1))
            reach = end
    return Text(text, tuple(persons_joined(text, outer)), tuple(other), tuple(ignored))


def trim_span(text: str, start: int, end: int) -> tuple[int, int]:
    """Borders without white space at either end."""
    start, end = max(0, start), min(end, len(text))
    while start < end and text[start].isspace():
        start += 1
    while start < end and text[end - 1].isspace():
        end -= 1
    return start, end


def persons_joined(text: str, spans: Iterable[tuple[Marked, bool]]) -> list[Marked]:
    """First and last names side by side as one person; each span comes with whether it is a part of a name."""
    out: list[Marked] = []
    open_ = False
    for span, is_part in spans:
        if is_part and open_ and text[out[-1].end : span.start].strip(" \t") == "":
            out[-1] = Marked(out[-1].start, span.end, out[-1].groups, out[-1].label)
        else:
            out.append(span)
        open_ = is_part
    return out


def mark_findings(text: str, spans: Iterable[allonym.Span]) -> list[Marked]:
    """Findings as marks of one group each."""
    marks = []
    for span in spans:
        start, end = trim_span(text, span.start, span.end)
        if start < end:
            marks.append(
                (Marked(start, end, frozenset({find_group(span.label)}), span.label), span.label in NAME_PARTS)
            )
    return persons_joined(text, marks)


def imitate_speech(record: dict[str, Any]) -> dict[str, Any]:
    """The record as from a speech recogniser: lower case, marks gone but for those within words and numbers.

    A mark between two letters leaves a space, so that words stay apart. Offsets follow.
    """
    text, out, at = record["text"], [], []
    for i, c in enumerate(text):
        if not unicodedata.category(c).startswith("P") or c == "%":
            new = c.lower()
        else:
            before, after = text[i - 1 : i], text[i + 1 : i + 2]
            if (c in "'’" and before.isalpha() and after.isalpha()) or (before.isdecimal() and after.isdecimal()):
                new = c
            else:
                new = " " if before.isalnum() and after.isalnum() else ""
        out.append(new)
        at.append(len(new))
    places = [0]
    for size in at:
        places.append(places[-1] + size)
    last = len(text)
    spans = [
        {**s, "start": places[min(s["start"], last)], "end": places[min(s["end"], last)]}
        for s in record.get("spans") or ()
    ]
    return {**record, "text": "".join(out), "spans": [s for s in spans if s["start"] < s["end"]]}


def count_text(text: Text, found: Sequence[Marked], annotated: frozenset[str]) -> Counter[tuple[str, ...]]:
    """Counts of one text; they add up over texts. Keys: (count,) and (count, group) and (count, group, label)."""
    out: Counter[tuple[str, ...]] = Counter()
    size = len(text.text)
    entity, finding = [-1] * size, [-1] * size
    free, unscored = bytearray(size), bytearray(size)
    for marks, at in ((text.gold, entity), (found, finding)):
        for k, mark in enumerate(marks):
            at[mark.start : mark.end] = [k if old < 0 else old for old in at[mark.start : mark.end]]
    for some, flags in ((text.ignored, free), (text.other, unscored)):
        for mark in some:
            flags[mark.start : mark.end] = b"\1" * (mark.end - mark.start)
    tokens = split_words(text.text)
    starts = [a for a, _ in tokens]

    def covered(a: int, b: int, groups: frozenset[str] | None) -> bool:
        hits = [finding[i] for i in range(a, b)]
        return min(hits) >= 0 and (groups is None or all(found[k].groups & groups for k in set(hits)))

    for a, b in tokens:
        inside = [i for i in range(a, b) if entity[i] >= 0]
        if inside:
            groups = text.gold[entity[inside[0]]].groups
            add_tally(out, groups, "tokens")
            if covered(inside[0], inside[-1] + 1, None):
                add_tally(out, groups, "covered")
        elif not any(free[a:b]) and not any(unscored[a:b]):
            out["outside",] += 1
            hits = {k for k in finding[a:b] if k >= 0 and found[k].groups & annotated}
            if hits:
                out["needless",] += 1
                out["needless", next(iter(found[min(hits)].groups))] += 1
    for mark in text.gold:
        first = max(0, bisect_left(starts, mark.start + 1) - 1)
        parts = [(max(a, mark.start), min(b, mark.end)) for a, b in tokens[first : bisect_left(starts, mark.end)]]
        parts = [(a, b) for a, b in parts if a < b]
        said = [(a, b) for a, b in parts if text.text[a].isalnum()] or parts
        if said:
            add_tally(out, mark.groups, "entities", mark.label)
            for kind, right_ones in (("", None), ("_typed", mark.groups)):
                hidden = sum(covered(a, b, right_ones) for a, b in said)
                if hidden < len(said):
                    add_tally(out, mark.groups, ("part" if hidden else "whole") + kind, mark.label)
    borders = {(m.start, m.end): m for m in text.gold}
    for mark in text.gold:
        add_tally(out, mark.groups, "gold")
    for mark in found:
        on_gold = any(k >= 0 for k in entity[mark.start : mark.end])
        if not on_gold and (any(free[mark.start : mark.end]) or not mark.groups & annotated):
            continue
        (own,) = mark.groups
        out["found",] += 1
        out["found", own] += 1
        right = borders.get((mark.start, mark.end))
        if right:
            add_tally(out, right.groups, "blind")
            if own in right.groups:
                add_tally(out, right.groups, "strict")
                out["exact", own] += 1
    out["characters",] = size
    out["words",] = sum(1 for a, _ in tokens if text.text[a].isalnum())
    out["texts",] = 1
    return out


def add_tally(out: Counter[tuple[str, ...]], groups: frozenset[str], what: str, label: str = "") -> None:
    out[what,] += 1
    out[what, group_name(groups)] += 1
    if label:
        out[what, "label", label] += 1


def divide(part: float, whole: float) -> float | None:
    return round(part / whole, 4) if whole else None


def f1(precision: float | None, recall: float | None) -> float | None:
    if precision is None or recall is None:
        return None
    return round(2 * precision * recall / (precision + recall), 4) if precision + recall else 0.0


LEAKS = ("whole", "part", "whole_typed", "part_typed")


def compute_figures(counts: Counter[tuple[str, ...]], seconds: float) -> dict[str, Any]:
    """Every figure of one row."""

    def leaks(*key: str) -> dict[str, Any]:
        entities = counts[("entities", *key)]
        return {
            "entities": entities,
            **{f"leaked_{kind}": divide(counts[(kind, *key)], entities) for kind in LEAKS},
        }

    out: dict[str, Any] = {what: counts[what,] for what in ("texts", "characters", "words")}
    for kind in ("strict", "blind"):
        precision, recall = divide(counts[kind,], counts["found",]), divide(counts[kind,], counts["gold",])
        out |= {f"{kind}_precision": precision, f"{kind}_recall": recall, f"{kind}_f1": f1(precision, recall)}
    out |= {"tokens": counts["tokens",], "covered": divide(counts["covered",], counts["tokens",])}
    out |= {"outside_tokens": counts["outside",], "needless": divide(counts["needless",], counts["outside",])}
    out |= leaks()
    out["groups"] = {}
    names = {key[1] for key in counts if len(key) == 2 and key[0] in ("gold", "found")}
    for name in sorted(names, key=lambda n: (-counts["gold", n], n)):
        precision = divide(counts["exact", name], counts["found", name])
        recall = divide(counts["strict", name], counts["gold", name])
        out["groups"][name] = {
            **leaks(name),
            "tokens": counts["tokens", name],
            "covered": divide(counts["covered", name], counts["tokens", name]),
            "needless_tokens": counts["needless", name],
            "strict_precision": precision,
            "strict_recall": recall,
            "blind_recall": divide(counts["blind", name], counts["gold", name]),
        }
    labels = sorted({key[2] for key in counts if len(key) == 3})
    out["labels"] = {label: leaks("label", label) for label in labels}
    out["seconds"] = round(seconds, 3)
    out["characters_per_s"] = round(counts["characters",] / seconds) if seconds else None
    out["words_per_s"] = round(counts["words",] / seconds) if seconds else None
    return out


def choose_texts(path: Path, args: argparse.Namespace) -> tuple[frozenset[str], list[Text]]:
    """The groups that a file annotates, all of its records considered, and the texts of it that are scored."""
    known = read_label_map(args.labels) if args.labels else load_default_map()
    stem = path.name.partition(".")[0]
    wanted = frozenset(filter(None, args.groups.split(",")))
    records = [r for _, r in read_json_lines(path) if r.get("text")]
    annotated = frozenset(g for r in records for m in read_text(r, stem, known, wanted).gold for g in m.groups)
    if args.part != "all":
        parts = assign_train_dev_test(records)
        records = [r for i, r in enumerate(records) if parts[str(r.get("id", i))] == args.part]
    some = records[: args.limit or None]
    return annotated, [read_text(imitate_speech(r) if args.lower else r, stem, known, wanted) for r in some]


def at_point(policy: Policy, point: str) -> Policy:
    """The policy with all labels at an operating point: a name, or the least probability of a finding; "": as it is."""
    if not point:
        return policy
    value: object = float(point) if point.replace(".", "", 1).isdecimal() else point
    return policy.with_(operating_points={"*": check_operating_point(value, "--operating-point")})


HEAD = "strict P     R    F1   blind P     R    F1  covered needless   whole   part   typed: whole   part   kwords/s"


def format_percent(value: float | None, width: int) -> str:
    return f"{'-' if value is None else f'{value:.1%}':>{width}}"


def format_line(name: str, point: str, row: dict[str, Any]) -> str:
    cells = [format_percent(row[f"strict_{k}"], w) for k, w in (("precision", 8), ("recall", 6), ("f1", 6))]
    cells += [format_percent(row[f"blind_{k}"], w) for k, w in (("precision", 10), ("recall", 6), ("f1", 6))]
    cells += [format_percent(row["covered"], 9), format_percent(row["needless"], 9)]
    cells += [format_percent(row[f"leaked_{k}"], w) for k, w in zip(LEAKS, (8, 7, 15, 7), strict=True)]
    speed = (row["words_per_s"] or 0) / 1000
    return f"{name[:30]:31}{point[:14]:15}{row['texts']:6}{row['entities']:10}{''.join(cells)}{speed:11.1f}"


def format_details(row: dict[str, Any]) -> Iterator[str]:
    for name, one in row["groups"].items():
        cells = [
            format_percent(one["strict_precision"], 8),
            format_percent(one["strict_recall"], 6),
            format_percent(one["blind_recall"], 22),
        ]
        cells += [" " * 6, format_percent(one["covered"], 9), f"{one['needless_tokens']:9}"]
        cells += [format_percent(one[f"leaked_{k}"], w) for k, w in zip(LEAKS, (8, 7, 15, 7), strict=True)]
        yield f"    {name[:48]:48}{one['entities']:10}{''.join(cells)}"


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("files", nargs="+", type=Path, metavar="FILE")
    options.add_argument("--operating-point", action="append", default=[], metavar="NAME|NUMBER")
    options.add_argument("--policy", default="default", help="preset or TOML file")
    options.add_argument("--model", default="", metavar="FOLDER", help="another tagger than the shipped one")
    options.add_argument("--chain", action="store_true", help="all detectors and thresholds of the policy")
    options.add_argument("--lower", action="store_true", help="texts in lower case without punctuation")
    options.add_argument("--part", choices=("test", "dev", "train", "all"), default="all")
    options.add_argument("--groups", default="", help="score these groups only, separated by commas")
    options.add_argument("--labels", type=Path, metavar="MAPFILE", help="what the file's labels mean")
    options.add_argument("--limit", type=int, default=0, help="stop after so many texts of each file")
    args = options.parse_args()
    try:
        run_comparison(args)
    except AllonymError as error:
        sys.exit(f"ner.py: {error}")


def run_comparison(args: argparse.Namespace) -> None:
    for name in filter(None, args.groups.split(",")):
        if name != find_group(name) or name not in TAXONOMY:
            raise UnknownNameError("group", name, {find_group(label.name) for label in TAXONOMY}, "--groups")
    base = Policy.load(args.policy)
    if not args.chain:
        base = base.with_(detectors=("tagger",), exclude=(), threshold=0.0)
    if args.model:
        base = base.with_(tables={**base.tables, "tagger": {**base.tables.get("tagger", {}), "model": args.model}})
    points = args.operating_point or [""]
    own = str(base.operating_points.get("*", ""))
    totals: dict[str, Counter[tuple[str, ...]]] = {point: Counter() for point in points}
    spent = dict.fromkeys(points, 0.0)
    rows: list[dict[str, Any]] = []
    print(f"{'file':31}{'point':15}{'texts':>6}{'entities':>10} {HEAD}")
    for path in args.files:
        annotated, texts = choose_texts(path, args)
        for point in points:
            policy = at_point(base, point)
            allonym.detect("Warm up.", policy)
            counts: Counter[tuple[str, ...]] = Counter()
            began = time.perf_counter()
            found = list(allonym.detect_many([text.text for text in texts], policy))
            seconds = time.perf_counter() - began
            for text, spans in zip(texts, found, strict=True):
                counts += count_text(text, mark_findings(text.text, spans), annotated)
            row = compute_figures(counts, seconds)
            rows.append({"file": path.name, "operating_point": point or own, "annotated": sorted(annotated), **row})
            print(format_line(path.name, point or own, row), *format_details(row), sep="\n", flush=True)
            totals[point] += counts
            spent[point] += seconds
    if len(args.files) > 1:
        for point in points:
            row = compute_figures(totals[point], spent[point])
            rows.append({"file": "total", "operating_point": point or own, **row})
            print(format_line("total", point or own, row), *format_details(row), sep="\n")
    settings = {"policy": args.policy, "model": args.model, "chain": args.chain, "lower": args.lower, "part": args.part}
    print(json.dumps({"benchmark": "ner", **settings, "groups": args.groups, "rows": rows}, ensure_ascii=False))


if __name__ == "__main__":
    main()
