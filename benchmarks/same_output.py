"""Whether a change of the code changed what comes out: every preset over given texts, before and after, byte by byte.

    python benchmarks/same_output.py record OUT FILE... [--every 1] [--presets default,pseudonyms]
    python benchmarks/same_output.py scores OUT FILE... [--every 1]
    python benchmarks/same_output.py compare BEFORE AFTER [--show 10]

``record`` anonymises the bundled examples and the texts of FILE (JSON lines with a "text", gzip where the name ends in
.gz) with every preset and a fixed key, and writes one JSON line for each preset and text: the anonymised text and a
digest of its plan. OUT holds the texts, so keep it where the texts may lie. Run it with the code of before and of
after (``PYTHONPATH``). ``compare`` counts the texts that differ for each preset, shows where the first differ, and
prints one line of JSON last; the exit code is 1 where any text or plan differs.

``scores`` runs the tagger alone, which is what a processor can change: its findings stand for the text, and a digest of
the scores to their last bit for the plan. Other processors are emulated:

    qemu-x86_64 -cpu Nehalem PYTHON benchmarks/same_output.py scores OUT FILE
"""

from __future__ import annotations

import argparse
import difflib
import gzip
import hashlib
import json
import sys
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import allonym
from allonym.detection.tagger import extract_spans, read_thresholds
from allonym.models.tagger import load_tagger
from allonym.policy import Policy

KEY = "a key of thirty-two characters.."


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    record = commands.add_parser("record")
    record.add_argument("out", type=Path)
    record.add_argument("files", nargs="*", type=Path)
    record.add_argument("--every", type=int, default=1, help="take each n-th text of a file only")
    record.add_argument("--presets", help="names, separated by commas; by default all")
    scores = commands.add_parser("scores")
    scores.add_argument("out", type=Path)
    scores.add_argument("files", nargs="+", type=Path)
    scores.add_argument("--every", type=int, default=1, help="take each n-th text of a file only")
    compare = commands.add_parser("compare")
    compare.add_argument("before", type=Path)
    compare.add_argument("after", type=Path)
    compare.add_argument("--show", type=int, default=10, help="how many differing texts to show")
    options = parser.parse_args()
    if options.command == "record":
        return record_outputs(options.out, options.files, options.every, options.presets)
    if options.command == "scores":
        return record_scores(options.out, [t for path in options.files for t in read_texts(path, options.every)])
    return compare_outputs(options.before, options.after, options.show)


def record_outputs(out: Path, paths: list[Path], every: int, names: str | None) -> int:
    folder = files("allonym") / "policies"
    presets = names.split(",") if names else sorted(p.name[:-5] for p in folder.iterdir() if p.name.endswith(".toml"))
    texts = [*read_examples(), *(t for path in paths for t in read_texts(path, every))]
    count = 0
    with out.open("w", encoding="utf-8") as stream:
        for preset in presets:
            policy = Policy.load(preset)
            for id, text in texts:
                row: dict[str, Any] = {"preset": preset, "id": id}
                try:
                    result = allonym.anonymize(text, policy, key=KEY, scope="same-output")
                except allonym.AllonymError as error:
                    row["text"], row["plan"] = "", type(error).__name__
                else:
                    row["text"] = result.text
                    row["plan"] = hashlib.sha256(result.plan.to_json().encode()).hexdigest()[:16]
                stream.write(json.dumps(row, ensure_ascii=False) + "\n")
                count += 1
            stream.flush()
    print(json.dumps({"presets": len(presets), "texts": len(texts), "outputs": count}))
    return 0


def record_scores(out: Path, texts: list[tuple[str, str]]) -> int:
    model = load_tagger()
    policy = Policy.load("default")
    thresholds = read_thresholds(policy, model)
    with out.open("w", encoding="utf-8") as stream:
        for id, text in texts:
            tagged = model(text)
            spans = extract_spans(text, tagged, model.labels, thresholds)
            findings = "\n".join(f"{s.start} {s.end} {s.label} {s.score}" for s in spans)
            row = {
                "preset": "tagger",
                "id": id,
                "text": findings,
                "plan": hashlib.sha256(tagged.tags.tobytes()).hexdigest(),
            }
            stream.write(json.dumps(row, ensure_ascii=False) + "\n")
            stream.flush()
    print(json.dumps({"texts": len(texts)}))
    return 0


def read_examples() -> Iterator[tuple[str, str]]:
    for path in sorted((files("allonym") / "examples").iterdir(), key=lambda p: p.name):
        yield path.name, path.read_text(encoding="utf-8")


def read_texts(path: Path, every: int) -> Iterator[tuple[str, str]]:
    content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    for number, line in enumerate(content.decode("utf-8").split("\n")):
        if number % every == 0 and line:
            yield f"{path.name}:{number + 1}", json.loads(line)["text"]


def compare_outputs(before: Path, after: Path, show: int) -> int:
    rows: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for path in (before, after):
        for line in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            rows.setdefault((row["preset"], row["id"]), []).append(row)
    counts: dict[str, list[int]] = {}
    for (preset, id), pair in rows.items():
        total = counts.setdefault(preset, [0, 0, 0])
        total[0] += 1
        if len(pair) < 2:
            raise SystemExit(f"{preset} {id} stands in one of the two files only")
        first, second = pair
        total[1] += first["text"] != second["text"]
        total[2] += first["plan"] != second["plan"]
        if first != second and show > 0:
            show -= 1
            print(f"-- {preset} {id}" + ("" if first["text"] != second["text"] else ": the plan alone"))
            lines = difflib.unified_diff(first["text"].splitlines(), second["text"].splitlines(), lineterm="", n=0)
            print("\n".join(line[:300] for line in list(lines)[2:12]))
    print(f"{'preset':20} {'texts':>7} {'differ':>7} {'plans':>7}")
    for preset, (texts, texts_differ, plans_differ) in counts.items():
        print(f"{preset:20} {texts:7} {texts_differ:7} {plans_differ:7}")
    summary = {name: {"texts": t, "differ": d, "plans": p} for name, (t, d, p) in counts.items()}
    print(json.dumps(summary))
    return int(any(d or p for _, d, p in counts.values()))


if __name__ == "__main__":
    sys.exit(main())
