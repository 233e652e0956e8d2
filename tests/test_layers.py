"""The layers of the package: an import goes down, never up; names that are imported on use are those that are seen."""

from __future__ import annotations

import ast
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SRC = ROOT / "src" / "allonym"
FILES = sorted(SRC.rglob("*.py"))

LAYERS = [
    "text document labels errors collector partfile scratch lazy keys serial settings checksums stats pattern",
    "registry protocol policy plan models vault llm schema kb",
    "detection resolve link replace restoration",
    "pipeline",
    "batch",
    "files",
    "intruder train",
    "swap evaluate export",
    "report scale integrations",
    "project",
    "cli server",
]
FLOOR = {name: i for i, names in enumerate(LAYERS) for name in names.split()}
# The package itself, its command-line door and what ships for people who extend it stand outside the floors.
OUTSIDE = {"allonym", "__main__", "testing"}
NEIGHBOURS = {
    ("labels", "errors"),  # errors are what every floor raises
    ("checksums", "errors"),
    ("partfile", "errors"),
    ("scratch", "partfile"),
    ("pattern", "errors"),
    ("pattern", "settings"),  # the parts of a rule are declared as settings
    ("text", "errors"),
    ("keys", "errors"),
    ("text", "labels"),  # placeholders show labels
    ("lazy", "errors"),
    ("settings", "errors"),
    ("settings", "serial"),  # groups of settings are written as JSON
    ("stats", "errors"),
    ("stats", "serial"),  # estimates are written as JSON
    ("policy", "registry"),  # a policy names detectors
    ("policy", "protocol"),  # and operators, which know their own options
    ("protocol", "registry"),
    ("schema", "policy"),  # the JSON schema is made from the policy's table of keys
    ("schema", "registry"),
    ("schema", "protocol"),  # and of the operators' options
    ("cli", "server"),  # the command that starts it
    ("replace", "detection"),  # what the detectors know to be an ordinary word gets no name
    ("link", "detection"),  # endings of names are read in passages in their language alone
    ("replace", "link"),  # a pseudonym takes the full name of a row from where its cells are linked
    ("vault", "plan"),  # a vault keeps the plans of its documents
    ("restoration", "replace"),  # restoring reads what the encrypt operator wrote
}
UPWARD = {
    ("text", "registry"),  # the operators declare what they write; imported inside a function
}


@cache
def parse_files() -> dict[Path, ast.Module]:
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in FILES}


def part_of(module: str) -> str:
    pieces = module.split(".")
    return pieces[1] if len(pieces) > 1 else pieces[0]


def module_of(path: Path) -> str:
    pieces = ["allonym", *path.relative_to(SRC).with_suffix("").parts]
    return ".".join(pieces[:-1] if pieces[-1] == "__init__" else pieces)


MODULES = frozenset(module_of(path) for path in FILES)


def imports_of(path: Path) -> set[str]:
    """The modules of allonym that a file imports, at its top or inside a function, but not only for type checking."""
    module = module_of(path)
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    found: set[str] = set()

    def visit(node: ast.AST) -> None:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            for child in node.orelse:
                visit(child)
            return
        if isinstance(node, ast.Import):
            found.update(a.name for a in node.names if a.name.split(".")[0] == "allonym")
        if isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                up = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*up, base] if base else up)
            if base.split(".")[0] == "allonym":
                for alias in node.names:
                    if (base, alias.name) == ("allonym", "__version__"):
                        continue
                    found.add(f"{base}.{alias.name}" if f"{base}.{alias.name}" in MODULES else base)
        for child in ast.iter_child_nodes(node):
            visit(child)

    visit(parse_files()[path])
    return found


@cache
def edges() -> dict[tuple[str, str], list[str]]:
    out: dict[tuple[str, str], list[str]] = {}
    for path in FILES:
        module = module_of(path)
        for target in imports_of(path):
            a, b = part_of(module), part_of(target)
            if a != b and a not in OUTSIDE:
                out.setdefault((a, b), []).append(f"{module} -> {target}")
    return out


def test_every_module_has_a_floor():
    parts = {part_of(module_of(path)) for path in FILES}
    assert not parts - set(FLOOR) - OUTSIDE


def test_imports_go_down():
    wrong = []
    for (a, b), where in edges().items():
        if b == "allonym":
            continue
        up = FLOOR[b] > FLOOR[a] and (a, b) not in UPWARD
        aside = FLOOR[b] == FLOOR[a] and (a, b) not in NEIGHBOURS
        if up or aside:
            wrong += where
    assert not wrong, "\n".join(sorted(wrong))


def test_every_exception_to_the_layers_is_used():
    assert set(edges()) >= NEIGHBOURS | UPWARD


def test_below_the_command_line_nobody_imports_the_package_for_its_public_names():
    wrong = [w for (a, b), where in edges().items() if b == "allonym" and a not in ("cli", "server") for w in where]
    assert not wrong


@pytest.mark.parametrize("package", ["", "evaluate", "scale", "swap", "vault"])
def test_the_names_that_type_checkers_see_are_imported_on_use(package):
    tree = parse_files()[SRC / package / "__init__.py"]
    prefix = "allonym." + (f"{package}." if package else "")
    block = next(node for node in tree.body if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test))
    seen = {(str(node.module), name.asname or name.name) for node in block.body for name in node.names}
    module = import_module(prefix.rstrip("."))
    assert seen == {(home, name) for name, home in module._homes.items()}
    assert {name for _, name in seen} <= set(module.__all__)


def test_the_layers_in_the_contributors_guide_are_these():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    drawn = [" ".join(line.split()) for line in text.splitlines() if line.startswith("    ")]
    assert all(layer in drawn for layer in LAYERS)
