"""Who identifies the subjects of descriptions: every intruder of the panel, on each way of anonymising them.

    PYTHONPATH=src python benchmarks/panel.py ../shared/data/textwash/textwash_study1.jsonl.gz [--every N] [--only NAME]

The versions are the originals, Textwash's outputs, the presets ``default``, ``textwash`` and ``pseudonyms``, and
``hardened``: the preset ``textwash`` after ``harden``. Intruders choose among the subjects of a text's class of fame,
and have one guess. ``benchmarks/gold/famous_people.jsonl`` is the public background: well-known facts about the famous
subjects, as anybody may look them up. A row is the worst intruder of a version; then all rows, with 95 % intervals.
"""

from __future__ import annotations

import argparse
import gzip
import json
import time
from collections.abc import Sequence
from pathlib import Path

import allonym
from allonym.evaluate.hardening import harden
from allonym.evaluate.surface_measures import removed
from allonym.intruder import Panel, PanelRow, measure_panel

KEY = b"a key only for this benchmark, 32"
VERSIONS = ("original", "Textwash", "default", "textwash", "hardened", "pseudonyms")
FACTS = Path(__file__).parent / "gold" / "famous_people.jsonl"


def make_versions(
    records: Sequence[dict], subjects: Sequence[str], groups: Sequence[str], names: Sequence[str]
) -> dict[str, list[str]]:
    """Some versions of the texts by their names."""
    original = [r["text"] for r in records]
    versions = {"original": original, "Textwash": [r["textwash_anonymised"] for r in records]}
    for name in ("default", "textwash", "pseudonyms"):
        if name not in names and not (name == "textwash" and "hardened" in names):
            continue
        outputs = list(allonym.anonymize_many(original, policy=name, key=KEY))
        versions[name] = [output.text for output in outputs]
        if name == "textwash" and "hardened" in names:
            began = time.monotonic()
            plans = [output.plan for output in outputs]
            result = harden(original, versions[name], subjects, groups=groups, plans=plans)
            versions["hardened"] = [text.text for text in result.texts]
            print(f"hardened {len(original)} texts in {time.monotonic() - began:.0f} s", flush=True)
    return {name: texts for name, texts in versions.items() if name in names}


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


def main() -> None:
    """Print the tables, and one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--every", type=int, default=1, help="use every Nth text only")
    parser.add_argument("--only", choices=VERSIONS, action="append", help="a version to ask the panel about")
    options = parser.parse_args()
    with gzip.open(options.file, "rt", encoding="utf-8") as lines:
        records = [json.loads(line) for line in lines][:: options.every]
    facts = [json.loads(line) for line in FACTS.read_text(encoding="utf-8").splitlines()]
    background = [(fact["text"], fact["subject"]) for fact in facts]
    subjects, groups = ([r["meta"][key] for r in records] for key in ("subject", "category"))
    original = [r["text"] for r in records]
    versions = make_versions(records, subjects, groups, options.only or VERSIONS)
    numbers = {}
    for name, texts in versions.items():
        panel = measure_panel(original, texts, subjects, groups=groups, background=background)
        gone = removed(original, texts)
        print_panel(name, panel, sum(gone) / len(gone))
        numbers[name] = {**panel.to_dict(), "removed": sum(gone) / len(gone)}
    print(json.dumps({"texts": len(records), **numbers}))


if __name__ == "__main__":
    main()
