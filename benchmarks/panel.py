"""The league: who identifies the subjects of descriptions after each way of anonymising them, and what that costs.

    PYTHONPATH=src python benchmarks/panel.py FILE [--every N] [--only NAME] [--peer ENVIRONMENT=PYTHON]
                                              [--keep FOLDER] [--gold FILE] [--plot FILE.svg]

FILE is the JSONL (.gz) of Textwash's study 1. The versions are the originals, Textwash's outputs, our presets
``default``, ``textwash`` and ``pseudonyms``, ``hardened`` (the preset ``textwash`` after ``harden``), words masked as
PETRE does and at random (``masking.py``), and the tools of ``peers.py``, each in an environment of its own whose
interpreter ``--peer`` names. What is absent is named, with what to install. ``--keep`` keeps each version's outputs;
a later run on the same texts takes them from there and needs none of the tools. Empty it after a change of ours.

Intruders choose among the subjects of a text's class of fame, and have one guess. ``gold/famous_people.jsonl`` is the
public background: well-known facts about the famous subjects, as anybody may look them up. The headline of a
version is its worst intruder. *Content kept* is the share of the originals' nouns, verbs, adjectives, adverbs and
numbers that a version still has. Finding is measured on fifty descriptions (``gold/textwash_50.jsonl``), on our own
sixty marked texts (see ``readers.py``), and on the dev and test parts of each ``--gold`` file: *found* is the share of
marked places of which every letter and digit is covered, *needless* are words outside of all marks that are touched,
per 1,000 words. The outputs of the first two sets are edited as ``peers.py`` says and restored; *restored* is the share
of the altered texts that come back exactly. Intervals are 95 %: Wilson's for intruders and restoring, else by a
bootstrap over texts. Speed is in one process, texts one by one, after the first; processor time, so busy machines
differ less.

Prints every intruder, one table in Markdown, what is absent, and one line of JSON with every figure.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from masking import compute_share_gone, list_content_words
from panel_plot import draw_league
from panel_versions import (
    DESCRIPTIONS,
    OURS,
    PETRE,
    RANDOM,
    VERSIONS,
    Absent,
    MarkedText,
    Texts,
    Version,
    load_version,
    read_texts,
)
from peers import EDITS

from allonym.evaluate.surface_measures import removed
from allonym.intruder import Panel, PanelRow, measure_panel
from allonym.stats import Estimate
from allonym.stats.samples import Draws, share
from allonym.text.words import COMPOUND

FACTS = Path(__file__).parent / "gold" / "famous_people.jsonl"
_NORMALISE: Mapping[str, Callable[[str], str]] = {
    "Markdown": lambda text: text.replace("\\_", "_"),
    "lower case": str.lower,
}


def format_row(row: PanelRow) -> str:
    """A row's share, interval, chance and n; or why there is none."""
    e = row.identified
    if not row.is_measured:
        return e.method.removeprefix("none: ")
    return f"{e.value:.3f} [{e.low:.3f}, {e.high:.3f}]  guessing {row.chance.value:.3f}  n {e.n}"


def print_panel(name: str, panel: Panel, words_gone: float) -> None:
    """The worst of a version, its groups, and every row."""
    worst = panel.worst
    print(f"\n{name}: at worst {format_row(worst)}, by the {worst.name} intruder; words gone {words_gone:.3f}")
    for row in panel.rows:
        groups = []
        for group, rows in panel.groups.items():
            e = next(r.identified for r in rows if r.name == row.name)
            if e.value == e.value:
                groups.append(f"{group} {e.value:.3f}")
        print(f"  {row.name:20}{format_row(row)}  {'  '.join(groups)}", flush=True)


def measure_finding(marked: Sequence[MarkedText], version: Version) -> dict[str, Estimate]:
    """*found* of each label and of all, and *needless*, of the marked texts that the version has; empty without any."""
    labels = sorted({label for text in marked for _, _, label in text.places})
    columns = {label: 2 * k for k, label in enumerate(labels)}
    known = [text for text in marked if text.id in version.rows]
    if len(known) < len(marked):
        return {}
    table = np.zeros((len(known), 2 * len(labels) + 2))
    for counts, (ident, text, places, optional) in zip(table, known, strict=True):
        is_covered, is_marked = bytearray(len(text)), bytearray(len(text))
        for start, end in version.rows[ident]["spans"]:
            is_covered[start:end] = b"\1" * (end - start)
        for start, end, label in places:
            is_marked[start:end] = b"\1" * (end - start)
            counts[columns[label]] += all(is_covered[i] for i in range(start, end) if text[i].isalnum())
            counts[columns[label] + 1] += 1
        for start, end in optional:
            is_marked[start:end] = b"\1" * (end - start)
        outside = [m.span() for m in COMPOUND.finditer(text) if not any(is_marked[m.start() : m.end()])]
        counts[-2:] += sum(any(is_covered[a:b]) for a, b in outside), len(COMPOUND.findall(text))
    draws = Draws(len(known))
    sums = draws.sums(table)
    out = {}
    with np.errstate(invalid="ignore"):
        for label, k in columns.items():
            out[label] = draws.estimate(sums[:, k] / sums[:, k + 1], int(sums[0, k + 1]), share=True)
        hits, n = sums[:, 0:-2:2].sum(axis=1), sums[:, 1:-2:2].sum(axis=1)
        out["found"] = draws.estimate(hits / n, int(n[0]), share=True)
        out["needless"] = draws.estimate(1000 * sums[:, -2] / sums[:, -1], int(sums[0, -1]))
    if "PERSON_LASTNAME" in columns:
        k = [columns[label] for label in ("PERSON_FIRSTNAME", "PERSON_LASTNAME")]
        hits, n = sums[:, k].sum(axis=1), sums[:, [j + 1 for j in k]].sum(axis=1)
        out["names"] = draws.estimate(hits / n, int(n[0]), share=True)
    return out


def measure_restoring(originals: Mapping[str, str], version: Version) -> dict[str, Estimate]:
    """Share of the altered texts that come back exactly after each edit; empty where the version restores nothing."""
    rows = [row for row in version.rows.values() if "restored" in row and row["text"] != originals[row["id"]]]
    out = {}
    for name, edit in EDITS.items() if rows else ():
        normalise = _NORMALISE.get(name, str)
        hits = [normalise(row["restored"][name]) == normalise(edit(originals[row["id"]])) for row in rows]
        out[name] = share(sum(hits), len(hits))
    return out


def measure_version(
    name: str, texts: Texts, version: Version, contents: Sequence[Any], background: Sequence[tuple[str, str]]
) -> dict[str, Any]:
    """Every figure of a version; prints its panel."""
    original = [r["text"] for r in texts.records]
    outputs = [version.rows[r["id"]]["text"] for r in texts.records]
    subjects, groups = ([r["meta"][key] for r in texts.records] for key in ("subject", "category"))
    panel = measure_panel(original, outputs, subjects, groups=groups, background=background)
    gone = removed(original, outputs)
    print_panel(name, panel, sum(gone) / len(gone))
    left = np.array([1 - compute_share_gone(*row) for row in zip(original, contents, outputs, strict=True)])
    draws = Draws(len(left))
    sums = draws.sums(np.stack([np.nan_to_num(left), ~np.isnan(left)], axis=1))
    head = version.head
    return {
        "panel": panel,
        "adaptive": next(row.identified for row in panel.rows if row.name == "adaptive"),
        "content kept": draws.estimate(sums[:, 0] / sums[:, 1], len(left)),
        "removed": sum(gone) / len(gone),
        "finding": {key: measure_finding(marked, version) for key, marked in texts.marked.items()},
        "restored": measure_restoring(texts.list_all(), version),
        "characters per second": head["characters"] / head["processor_s"] if head.get("processor_s") else None,
        **{key: head[key] for key in ("version", "settings", "ready_s") if key in head},
    }


def format_estimate(e: Estimate | None, digits: int = 3) -> str:
    """A cell of the table; empty where nothing was measured."""
    if e is None or e.value != e.value:
        return ""
    value, low, high = (f"{x:.{digits}f}".removeprefix("0" if digits else "") for x in (e.value, e.low, e.high))
    return f"{value} [{low}, {high}]"


def format_finding(finding: Mapping[str, Estimate], key: str) -> str:
    """A cell with the share that was found and the words that were needless; empty where nothing was measured."""
    if key not in finding:
        return ""
    return f"{format_estimate(finding[key])}; {format_estimate(finding['needless'], 0)}"


def print_table(numbers: Mapping[str, Mapping[str, Any]], sets: Sequence[str]) -> None:
    """Print one row in Markdown for each version."""
    heads = ["", "worst intruder", "adaptive", "content kept"]
    heads += [f"{key}, {'names ' * (key == DESCRIPTIONS)}found; needless" for key in sets]
    heads += ["restored: " + " / ".join(EDITS), "characters a second"]
    print("\n| " + " | ".join(heads) + " |\n|" + "---|" * len(heads))
    for name, row in numbers.items():
        worst = row["panel"].worst
        title = f"{name} {row['version']}" if "version" in row and name not in OURS else name
        cells = [f"**{title}**" if name in OURS else title]
        cells += [f"{format_estimate(worst.identified)} {worst.name}", format_estimate(row["adaptive"])]
        cells.append(format_estimate(row["content kept"]))
        cells += [format_finding(row["finding"][key], "names" if key == DESCRIPTIONS else "found") for key in sets]
        restored = [row["restored"][edit] for edit in EDITS if row["restored"]]
        cells.append(" / ".join(f"{e.value:.2f}" for e in restored) + f" of {restored[0].n}" if restored else "")
        speed = row["characters per second"]
        cells.append(f"{speed:,.0f}" if speed else "")
        print("| " + " | ".join(cells) + " |")


def list_points(numbers: Mapping[str, Mapping[str, Any]]) -> dict[str, tuple[str, Estimate, Estimate]]:
    """What the plot shows of each version."""
    baselines = {"original", PETRE, *(name for name in numbers if name.startswith(RANDOM))}
    kinds = {name: "ours" if name in OURS else "baseline" if name in baselines else "peer" for name in numbers}
    return {name: (kinds[name], row["content kept"], row["adaptive"]) for name, row in numbers.items()}


def convert_figures(value: Any) -> Any:
    """Figures as JSON."""
    if isinstance(value, Mapping):
        return {key: convert_figures(item) for key, item in value.items()}
    return value.to_dict() if isinstance(value, Estimate | Panel) else value


def main() -> None:
    """Print the tables, and one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--every", type=int, default=1, help="let the intruders judge every Nth text only")
    parser.add_argument("--only", choices=VERSIONS, action="append", help="a version to measure")
    parser.add_argument("--peer", action="append", default=[], metavar="ENVIRONMENT=PYTHON", help="see peers.py")
    parser.add_argument("--keep", type=Path, help="folder in which the outputs of each version are kept")
    parser.add_argument("--gold", type=Path, action="append", default=[], help="a corpus with spans, for finding")
    parser.add_argument("--most", type=int, default=300, help="texts of each --gold file at most")
    parser.add_argument("--plot", type=Path, help="write the plot: .png or .svg")
    options = parser.parse_args()
    interpreters = dict(pair.split("=", 1) for pair in options.peer)
    texts = read_texts(options.file, options.every, options.gold, options.most)
    facts = [json.loads(line) for line in FACTS.read_text(encoding="utf-8").splitlines()]
    background = [(fact["text"], fact["subject"]) for fact in facts]
    contents = [list_content_words(record["text"]) for record in texts.records]
    numbers: dict[str, dict[str, Any]] = {}
    absent: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for name in options.only or VERSIONS:
            try:
                version = load_version(name, texts, folder, interpreters)
            except Absent as error:
                absent[name] = str(error)
                print(f"\n{name}: absent; {error}", file=sys.stderr, flush=True)
                continue
            numbers[name] = measure_version(name, texts, version, contents, background)
            print(json.dumps({name: convert_figures(numbers[name])}), file=sys.stderr, flush=True)
    print_table(numbers, list(texts.marked))
    for name, reason in absent.items():
        print(f"\n{name} is absent: {reason}")
    if options.plot:
        row = next(row for row in next(iter(numbers.values()))["panel"].rows if row.name == "adaptive")
        draw_league(list_points(numbers), row.chance.value, row.identified.n, options.plot)
    sizes = {key: len(rows) for key, rows in texts.marked.items()}
    print(json.dumps({"texts": len(texts.records), "marked": sizes, "absent": absent, **convert_figures(numbers)}))


if __name__ == "__main__":
    main()
