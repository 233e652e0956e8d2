"""Tables as people have them, made by code: what is covered, what is spoiled, and whether counts and joins survive.

usage: python benchmarks/tables.py [--show] [--held-out] [--only WORD] [--keep FOLDER] [--policy NAME]

Writes the 47 files of ``tables.toml`` (CSV, TSV, XLSX, Parquet, JSON), anonymises each on the command line's path,
reads the results with csv, openpyxl, pyarrow and json, and compares them cell by cell. ``--show`` lists what went
wrong, by file and column. ``--held-out`` takes the 12 files that were made after the rules of columns.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.table_files import Case, Column, Grid, make_cases, read_grid, write_case


def is_same(old: Any, new: Any) -> bool:
    if isinstance(old, float) and isinstance(new, (int, float)):
        return abs(old - new) < 1e-9
    return str(old if old is not None else "") == str(new if new is not None else "")


def compare(case: Case, old: Grid, new: Grid, figures: Counter[str], log: list[str]) -> None:
    """Add the figures of one file."""
    figures["files treated"] += 1
    figures["headers"] += bool(old.header)
    if old.header != new.header:
        figures["headers changed"] += 1
        log.append(f"{case.name}: header {new.header}")
    for place, formula in old.formulas.items():
        figures["formula cells"] += 1
        if new.formulas.get(place) != formula and not case.options.get("renamed"):
            figures["formula cells changed"] += 1
            log.append(f"{case.name}: {place} {formula} -> {new.formulas.get(place)}")
    figures["rows"] += len(old.rows)
    if lost := len(old.rows) - len(new.rows):
        figures["rows lost"] += lost
        log.append(f"{case.name}: {lost} rows lost")
        return
    for i, column in enumerate(case.columns):
        pairs = [(a[i], b[i]) for a, b in zip(old.rows, new.rows, strict=True) if i < len(a) and i < len(b)]
        compare_column(case, column, pairs, figures, log)


def compare_column(
    case: Case, column: Column, pairs: list[tuple[Any, Any]], figures: Counter[str], log: list[str]
) -> None:
    where = f"{case.name}: {column.name!r}"
    changed = [(a, b) for a, b in pairs if not is_same(a, b)]
    if column.role in ("number", "plain"):
        kind = "number cells" if column.role == "number" else "category cells"
        figures[kind] += len(pairs)
        figures[f"{kind} changed"] += len(changed)
        if changed:
            log.append(f"{where} {len(changed)} of {len(pairs)} {kind} changed, as {changed[0]}")
    elif column.role == "who":
        figures["identifying columns"] += 1
        left = [a for a, b in pairs if _is_left(a, b)]
        figures["identifying cells"] += len(pairs)
        figures["identifying cells left"] += len(left)
        figures["identifying columns covered"] += not left
        if left:
            log.append(f"{where} {len(left)} of {len(pairs)} left, as {left[0]!r}")
        new_of, old_of = defaultdict(set), defaultdict(set)
        for a, b in pairs:
            if not _is_left(a, b):
                new_of[str(a).casefold()].add(str(b))
                old_of[str(b)].add(str(a).casefold())
        figures["values"] += len(new_of)
        figures["values with one replacement"] += sum(len(v) == 1 for v in new_of.values())
        figures["replacements"] += len(old_of)
        figures["values with a replacement of their own"] += sum(
            all(len(old_of[b]) == 1 for b in v) for v in new_of.values()
        )
        if any(len(v) > 1 for v in new_of.values()) or any(len(v) > 1 for v in old_of.values()):
            log.append(f"{where} {len(new_of)} values, {len(old_of)} replacements")
    elif column.role == "told":
        for (_, b), name in zip(pairs, column.names, strict=False):
            figures["names told"] += bool(name)
            figures["names told and left"] += bool(name) and name in str(b)
        figures["text cells without a name"] += sum(not n for n in column.names)
        figures["text cells without a name changed"] += sum(
            not n and not is_same(a, b) for (a, b), n in zip(pairs, column.names, strict=False)
        )
        if left := [n for (_, b), n in zip(pairs, column.names, strict=False) if n and n in str(b)]:
            log.append(f"{where} {len(left)} names left, as {left[0]}")


def _is_left(old: Any, new: Any) -> bool:
    text = str(old if old is not None else "")
    return bool(text) and text.casefold() in str(new if new is not None else "").casefold()


def show(figures: Counter[str], seconds: float, size: int) -> dict[str, object]:
    rows = [
        ("headers changed", "headers"),
        ("number cells changed", "number cells"),
        ("category cells changed", "category cells"),
        ("formula cells changed", "formula cells"),
        ("identifying columns covered", "identifying columns"),
        ("identifying cells left", "identifying cells"),
        ("values with one replacement", "values"),
        ("values with a replacement of their own", "values"),
        ("names told and left", "names told"),
        ("text cells without a name changed", "text cells without a name"),
        ("rows lost", "rows"),
        ("refused", "files"),
    ]
    for name, of in rows:
        print(f"{name:<42}{figures[name]:>8,} of {figures[of]:>8,}")
    print(f"{'processor seconds per MB':<42}{seconds / size * 1e6:>8.1f}")
    return {**figures, "seconds": round(seconds, 1), "bytes": size}


def main() -> None:
    from allonym import anonymize
    from allonym.errors import AllonymError
    from allonym.files import anonymize_path

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--show", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--held-out", action="store_true", help="other files, made after the rules of columns")
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--policy", default="default")
    args = parser.parse_args()
    figures: Counter[str] = Counter()
    log: list[str] = []
    seconds, size = 0.0, 0
    anonymize("Ada Brook", args.policy)  # load the models
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for case in make_cases("held_out" if args.held_out else "files"):
            if args.only not in case.name:
                continue
            source, target = folder / case.name, folder / f"safe-{case.name}"
            write_case(source, case)
            figures["files"] += 1
            began = time.process_time()
            try:
                anonymize_path(source, target, args.policy, overwrite=True)
            except AllonymError as error:
                figures["refused"] += 1
                log.append(f"{case.name}: refused, {error}")
                continue
            seconds += time.process_time() - began
            size += source.stat().st_size
            compare(case, read_grid(source, case), read_grid(target, case), figures, log)
    if args.show:
        print("\n".join(log))
    print(json.dumps(show(figures, seconds, size)))


if __name__ == "__main__":
    main()
