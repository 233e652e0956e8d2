"""What a policy does to technical text: false alarms, planted finds, and whether the output still parses, by kind.

usage: python benchmarks/technical.py [PATH...] [--policy default] [--texts FILE...] [--sizes 20000] [--show]

The texts are tests/cases/technical.txt: programs in nine languages, SQL, JSON, YAML, logs, stack traces, READMEs,
configuration and prompts about code; and tests/cases/technical_syntax.txt: data and code in which it matters whether
what is planted stands in quotes. All are invented and marked before anything was run on them. ``«Ada Brook»`` is
planted (a secret, a mail address, a phone number or a name in a comment or a value) and must be covered;
``‹198.51.100.23›`` may be covered or left. PATHs are ordinary files without marks, by suffix; whatever is found there
counts as a false alarm, so that their figures are upper bounds. Each file is cut after ``--sizes`` characters, at a
line end.

false     findings that touch no mark, per 1,000 words
planted   places that must be covered, and how many are
broken    outputs that the language's own parser no longer reads although it reads the input (Python, JSON, TOML, YAML,
          INI; bash, node and gcc where they are installed), tags in code that stand outside of strings and comments,
          and findings that cover a quote or a line end, keys and certificates of several lines apart

``--show`` also prints every false alarm and every place that is left. The last line is JSON with every figure.
"""

from __future__ import annotations

import argparse
import ast
import configparser
import json
import re
import shutil
import subprocess
import sys
import tomllib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))


from benchmarks.readers import MarkedText, parse_marks
from benchmarks.readers import score_edits as score_places

import allonym
from allonym.document import Reach
from allonym.plan import Edit, locate_replacements
from allonym.policy import Policy

CASES = Path(__file__).resolve().parent.parent / "tests" / "cases"
TEXTS = (CASES / "technical.txt", CASES / "technical_syntax.txt")
_HEAD = re.compile(r"^=== (\S+) (.+)\n", re.MULTILINE)


def _load_yaml(text: str) -> object:
    try:
        import yaml
    except ImportError:
        return None
    return [*map(_list_types, yaml.safe_load_all(text))]


def _list_types(value: object) -> object:
    """What a value of YAML is made of: a text that became a list is damage."""
    if isinstance(value, dict):
        return [("scalar", _list_types(item)) for item in value.values()]
    return [_list_types(item) for item in value] if isinstance(value, list) else "scalar"


def _load_ini(text: str) -> object:
    parser = configparser.ConfigParser(interpolation=None)
    parser.read_string(text)
    return [parser.options(section) for section in parser.sections()]


def _check_with(*command: str) -> Callable[[str], object]:
    def check(text: str) -> None:
        if shutil.which(command[0]):
            subprocess.run(command, input=text.encode(), check=True, capture_output=True)

    return check


PARSERS: Mapping[str, Callable[[str], object]] = {
    "python": ast.parse,
    "json": json.loads,
    "yaml": _load_yaml,
    "config": tomllib.loads,
    "toml": tomllib.loads,
    "ini": _load_ini,
    "env": _check_with("bash", "-n"),
    "shell": _check_with("bash", "-n"),
    "javascript": _check_with("node", "--input-type=module", "--check"),
    "c": _check_with("gcc", "-fsyntax-only", "-w", "-x", "c", "-"),
}
"""Kind of text to what reads it. Texts that cannot be read as they are count like those of other kinds."""

_CODE = frozenset("python javascript typescript java c c++ go rust sql csv".split())
_QUOTED = re.compile(
    r"//[^\n]*|/\*[\s\S]*?\*/|--[^\n]*|#[^\n]*|\"{3}[\s\S]*?\"{3}|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'"
    r"|(?<!`)`[^`]*`(?!`)"
)


@dataclass(frozen=True, slots=True)
class Score:
    """Counts that add up."""

    words: int = 0
    planted: int = 0
    alarms: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)

    def __add__(self, other: Score) -> Score:
        return Score(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    def figures(self) -> dict[str, float]:
        return {
            "words": self.words,
            "false": round(1000 * len(self.alarms) / max(1, self.words), 2),
            "planted": self.planted,
            "covered": self.planted - len(self.left),
            "broken": len(self.broken),
        }


def read_technical_texts(paths: Sequence[Path] = TEXTS) -> Iterator[MarkedText]:
    """The sections of files, each after a line ``=== id kind``."""
    for path in paths:
        pieces = _HEAD.split(path.read_text(encoding="utf-8"))
        yield from map(parse_marks, pieces[1::3], pieces[2::3], pieces[3::3])


def read_ordinary_files(paths: Sequence[Path], size: int) -> Iterator[MarkedText]:
    """Files without marks; their kind is their suffix."""
    for path in paths:
        text = path.read_text(encoding="utf-8", errors="replace")
        if len(text) > size:
            text = text[: text.rfind("\n", 0, size) + 1]
        yield MarkedText(path.name, path.suffix.removeprefix(".") or path.name, text, ())


def score_edits(marked: MarkedText, edits: Sequence[Edit], output: str) -> Score:
    """Score the edits of a text and its output."""
    text, planted = marked.text, score_places(marked, edits)
    alarms = [
        f"{text[max(0, e.start - 20) : e.start]}[[{text[e.start : e.end]}]]{e.replacement}"
        for e in edits
        if e.start < e.end and not any(e.start < place.end and place.start < e.end for place in marked.places)
    ]
    return Score(planted.words, planted.places, alarms, planted.left, list(_find_damage(marked, edits, output)))


def _find_damage(marked: MarkedText, edits: Sequence[Edit], output: str) -> Iterator[str]:
    parse = PARSERS.get(marked.kind)
    if parse is not None and (before := _parse(parse, marked.text)) is not _FAILED:
        after = _parse(parse, output)
        if after is _FAILED or (marked.kind in ("yaml", "ini") and before != after):
            yield marked.id
            return
    if marked.kind in _CODE:
        quoted = Reach(m.span() for m in _QUOTED.finditer(output))
        for start, end, edit in locate_replacements(edits):
            if edit.start < edit.end and edit.replacement[:1] in ("[", "<") and not quoted.contains(start, end):
                yield f"{marked.id}: {edit.replacement}"
    for edit in edits if parse is None else ():
        surface = marked.text[edit.start : edit.end]
        if re.search('["`\n]', surface) and "-----BEGIN" not in surface:
            yield f"{marked.id}: {surface}"


_FAILED = object()


def _parse(parse: Callable[[str], object], text: str) -> object:
    try:
        return parse(text)
    except Exception:  # each parser has errors of its own
        return _FAILED


def score_texts(
    texts: Iterable[MarkedText], policy: str | Policy = "default", key: bytes | None = None
) -> dict[str, Score]:
    """Anonymise the texts, each alone, and score them by kind."""
    scores: defaultdict[str, Score] = defaultdict(Score)
    loaded = Policy.load(policy)
    for marked in texts:
        result = allonym.anonymize(marked.text, loaded, key=key)
        scores[marked.kind] += score_edits(marked, result.plan.edits, result.text)
    return dict(scores)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", type=Path)
    parser.add_argument("--policy", default="default")
    parser.add_argument("--texts", type=Path, nargs="+", default=TEXTS)
    parser.add_argument("--sizes", type=int, default=20_000, help="most characters of a file")
    parser.add_argument("--show", action="store_true", help="print false alarms, and what is left or broken")
    args = parser.parse_args()
    figures: dict[str, dict[str, dict[str, float]]] = {}
    for name, texts in {
        "marked": read_technical_texts(args.texts),
        "files": read_ordinary_files(args.paths, args.sizes),
    }.items():
        scores = score_texts(texts, args.policy)
        if not scores:
            continue
        scores["all"] = sum(scores.values(), Score())
        print(f"{name:22s}{'words':>8s}{'false':>8s}{'planted':>9s}{'covered':>9s}{'broken':>8s}")
        for kind, score in scores.items():
            f = score.figures()
            print(f"  {kind:20s}{f['words']:8d}{f['false']:8.1f}{f['planted']:9d}{f['covered']:9d}{f['broken']:8d}")
            if args.show and kind != "all":
                for title in ("alarms", "left", "broken"):
                    for row in getattr(score, title):
                        print(f"      {title}: {row!r}")
        figures[name] = {kind: score.figures() for kind, score in scores.items()}
    print(json.dumps({"benchmark": "technical", "policy": args.policy, **figures}))


if __name__ == "__main__":
    main()
