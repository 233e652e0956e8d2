"""The size of the source, how well its names can be searched, and what the package offers.

    python benchmarks/house.py [FOLDER] [--sample 50] [--seed 1] [--answers] [--offers]

FOLDER is a tree of Python files, by default ``src``. Code lines are lines without blank lines, comments and docstrings.
A name is bare if it is a participle or an adjective alone ("found", "told"), and vague if it is one of the words in
``VAGUE``; ``tests/test_names.py`` judges by the same functions. ``--sample`` draws functions at random and prints their
signatures, so that a fresh reader can guess what each of them does; ``--answers`` prints the first line of their
docstrings too. ``--offers`` lists the commands with the number of their parameters, the presets, formats, operators,
detectors, intruders, measures and routes of the installed package (extras ``server`` and ``swap``), so that the lists
before and after a change can be compared; it counts options, their names and the help texts of each name, too. The last
line is JSON.
"""

from __future__ import annotations

import argparse
import ast
import json
import random
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

BARE = re.compile(
    r"_?([a-z]+ed|made|found|told|said|known|given|seen|taken|held|kept|drawn|written|left|met|sent|sure|apart|own)"
)
NOT_BARE = frozenset({"feed", "seed", "embed", "need", "speed"})
VAGUE = frozenset(
    "found told said own one known given made whole kept wanted asked seen done held taken apart who left at of".split()
)


@dataclass
class Source:
    """Counts over Python files, and the functions in them as ``(module, signature, summary)``."""

    lines: int = 0
    code: int = 0
    doc: int = 0
    characters: int = 0
    longest: tuple[int, str] = (0, "")
    functions: Counter[str] = field(default_factory=Counter)
    variables: Counter[str] = field(default_factory=Counter)
    signatures: list[tuple[str, str, str]] = field(default_factory=list)

    def add_file(self, path: Path, module: str) -> None:
        text = path.read_text("utf-8")
        tree = ast.parse(text)
        doc_lines = {number for node in ast.walk(tree) for number in list_docstring_lines(node)}
        lines = text.splitlines()
        filled = [(number, line) for number, line in enumerate(lines, 1) if line.strip()]
        code = [line for number, line in filled if number not in doc_lines and not line.lstrip().startswith("#")]
        self.lines += len(lines)
        self.code += len(code)
        self.doc += len(doc_lines)
        self.characters += sum(map(len, code))
        self.longest = max(self.longest, (len(lines), str(path)))
        self.variables.update(n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
        self.signatures += list_signatures(tree, module, "")
        names = (n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef))
        self.functions.update(name for name in names if not name.startswith("__"))

    def summarise(self) -> dict[str, Any]:
        def share(names: Counter[str], chosen: Iterator[str]) -> float:
            return round(100 * sum(names[name] for name in chosen) / (names.total() or 1), 2)

        return {
            "bare_percent": share(self.functions, filter(is_bare, self.functions)),
            "one_word_percent": share(self.functions, (n for n in self.functions if re.fullmatch("_?[a-z]+", n))),
            "vague_percent": share(self.variables, (n for n in self.variables if n in VAGUE)),
            "functions": self.functions.total(),
            "code_lines": self.code,
            "lines": self.lines,
            "docstring_percent": round(100 * self.doc / (self.lines or 1), 1),
            "mean_code_line": round(self.characters / (self.code or 1), 1),
            "longest_file": self.longest[0],
        }


def is_bare(name: str) -> bool:
    """Whether the name of a function is a participle or an adjective alone."""
    return BARE.fullmatch(name) is not None and name.lstrip("_") not in NOT_BARE


def list_docstring_lines(node: ast.AST) -> range:
    if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.body:
        match node.body[0]:
            case ast.Expr(value=ast.Constant(value=str()), lineno=first, end_lineno=int(last)):
                return range(first, last + 1)
    return range(0)


def list_signatures(node: ast.AST, module: str, prefix: str) -> Iterator[tuple[str, str, str]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef):
            yield from list_signatures(child, module, f"{prefix}{child.name}.")
        elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef) and not child.name.startswith("__"):
            returns = f" -> {ast.unparse(child.returns)}" if child.returns else ""
            summary = (ast.get_docstring(child) or "").partition("\n\n")[0]
            yield module, f"{prefix}{child.name}({ast.unparse(child.args)}){returns}", summary


def collect_offers() -> dict[str, list[str]]:
    """What the installed package offers, by kind."""
    import tempfile
    from importlib.resources import files

    import click

    from allonym import intruder, registry
    from allonym.cli import app
    from allonym.evaluate.study import MEASURES
    from allonym.files import formats
    from allonym.server.app import create_app
    from allonym.server.settings import Settings

    def walk_commands(command: click.Command, path: str) -> Iterator[str]:
        yield f"{path or 'allonym'} ({len(command.params)})"
        if isinstance(command, click.Group):
            context = click.Context(command)
            for name in command.list_commands(context):
                child = command.get_command(context, name)
                assert child is not None
                yield from walk_commands(child, f"{path} {name}".strip())

    with tempfile.TemporaryDirectory() as folder:
        paths = create_app(Settings(data=Path(folder))).openapi()["paths"]
    routes = [f"{method.upper()} {path}" for path, methods in paths.items() for method in methods]
    presets = [p.name.removesuffix(".toml") for p in (files("allonym") / "policies").iterdir()]
    return {
        "commands": list(walk_commands(app, "")),
        "presets": sorted(name for name in presets if "." not in name and not name.startswith("_")),
        "formats": list(formats.readers.names()),
        "operators": list(registry.operators.names()),
        "detectors": list(registry.detectors.names()),
        "intruders": list(intruder.intruders.names()),
        "measures": sorted(MEASURES),
        "routes": sorted(routes),
    }


def collect_help_texts() -> dict[str, list[str]]:
    """The help texts of all options of the command line, by the option's longest name."""
    import click

    from allonym.cli import app

    texts: dict[str, list[str]] = {}

    def read_options(command: click.Command) -> None:
        for option in command.params:
            if isinstance(option, click.Option):
                texts.setdefault(max(option.opts, key=len), []).append(option.help or "")
        if isinstance(command, click.Group):
            context = click.Context(command)
            for name in command.list_commands(context):
                child = command.get_command(context, name)
                assert child is not None
                read_options(child)

    read_options(app)
    return texts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=Path("src"))
    parser.add_argument("--sample", type=int, default=0, help="functions to draw at random")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--answers", action="store_true", help="print the summaries of the sample's docstrings too")
    parser.add_argument("--offers", action="store_true", help="list what the installed package offers")
    options = parser.parse_args()
    source = Source()
    for path in sorted(options.folder.rglob("*.py")):
        source.add_file(path, ".".join(path.relative_to(options.folder).with_suffix("").parts))
    if not source.lines:
        parser.error(f"{options.folder}: no Python files; give the folder of a source tree")
    drawn = random.Random(options.seed).sample(source.signatures, min(options.sample, len(source.signatures)))
    for number, (module, signature, summary) in enumerate(drawn, 1):
        print(f"{number}. [{module}] {signature}" + (f"\n     {summary}" if options.answers else ""))
    row = {"benchmark": "house", **source.summarise()}
    if options.offers:
        offers = collect_offers()
        for kind, names in offers.items():
            print(f"{kind} ({len(names)}): {', '.join(names)}")
        row["offers"] = {kind: len(names) for kind, names in offers.items()}
        texts = collect_help_texts()
        several = {name: len(set(helps)) for name, helps in sorted(texts.items()) if len(set(helps)) > 1}
        print("options with several help texts: " + ", ".join(f"{name} {count}" for name, count in several.items()))
        row["options"] = {
            "options": sum(map(len, texts.values())),
            "names": len(texts),
            "help_texts": sum(len(set(helps)) for helps in texts.values()),
            "names_with_several_texts": len(several),
        }
    print(json.dumps(row))


if __name__ == "__main__":
    main()
