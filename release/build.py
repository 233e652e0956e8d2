#!/usr/bin/env python3
"""Makes what a release consists of, from the last commit, and tries each part in an environment of its own.

python release/build.py FOLDER

FOLDER gets the wheel, the sdist, a software bill of materials (CycloneDX, JSON) of a clean default install, and
SHA256SUMS. Both packages are built twice and must come out the same, hold what they must and nothing else, and, each
installed alone in a new environment, find and replace what the bundled example holds. Needs `pip install '.[release]'`.
Stops with an error, and without FOLDER's files, where anything of this does not hold.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

WHEEL_HOLDS = ("allonym/py.typed", "allonym/labels.tsv", "allonym/kb/default.sqlite", "allonym/policies/default.toml")
SDIST_HOLDS = (
    "README.md",
    "LICENSE",
    "NOTICE",
    "CHANGELOG.md",
    "pyproject.toml",
    "src/allonym/py.typed",
    "tests/conftest.py",
)

TRIAL = """
import allonym, sys
made = allonym.anonymize("Ada Brook met John Smith in London. Write to ada.brook@example.com.")
assert made.text == "[PERSON_1] met [PERSON_2] in [CITY_1]. Write to [EMAIL_ADDRESS_1].", made.text
assert sys.prefix in allonym.__file__, "not the installed package"
print(allonym.__version__)
"""


class Failed(Exception):
    """A part of the release is not as it must be."""


def run(*command: str | Path, where: Path, **more: str) -> str:
    """The output of a command that must succeed; no variable leads it to the source tree."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    done = subprocess.run([str(c) for c in command], cwd=where, env=kept | more, text=True, capture_output=True)
    if done.returncode:
        raise Failed(f"{' '.join(map(str, command))}\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    return done.stdout


def source(folder: Path) -> str:
    """The last commit's tree, unpacked into ``folder``; returns its time, which the packages' files get."""
    archive = folder.with_suffix(".tar")
    run("git", "archive", "-o", archive, "HEAD", where=ROOT)
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    return run("git", "log", "-1", "--format=%ct", where=ROOT).strip()


def build(tree: Path, out: Path, time: str) -> dict[str, Path]:
    """Wheel and sdist of a tree, by their suffixes."""
    run(sys.executable, "-m", "build", "--outdir", out, where=tree, SOURCE_DATE_EPOCH=time)
    return {path.suffix: path for path in sorted(out.iterdir())}


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def names_in(path: Path) -> list[str]:
    """The files in a package; those of an sdist without its top folder."""
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as packed:
            return packed.namelist()
    with tarfile.open(path) as tar:
        return [name.partition("/")[2] for name in tar.getnames()]


def check_content(path: Path, tree: Path) -> None:
    """Raises :class:`Failed` where a package lacks a file, or holds one that is not in the tree."""
    names = names_in(path)
    top = "src/" if path.suffix == ".whl" else ""
    lacking = set(WHEEL_HOLDS if top else SDIST_HOLDS) - set(names)
    strange = [n for n in names if not (tree / f"{top}{n}").exists() and ".dist-info/" not in n and n != "PKG-INFO"]
    if top:
        code = {p.relative_to(tree / "src").as_posix() for p in (tree / "src").rglob("*") if p.is_file()}
        lacking |= code - set(names)
    if lacking or strange:
        raise Failed(f"{path.name}: lacking {sorted(lacking)[:5]}, not of the source {strange[:5]}")


def try_out(path: Path, folder: Path) -> Path:
    """Install one package in a new environment and use it there, outside of the source tree; returns its Python."""
    run(sys.executable, "-m", "venv", folder, where=folder.parent)
    python = folder / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", path, where=folder)
    version = run(python, "-c", TRIAL, where=folder).strip()
    if f"-{version}" not in path.name:
        raise Failed(f"{path.name} says that it is version {version}")
    shown = run(folder / "bin" / "allonym", "demo", where=folder)
    if "[PERSON_1]" not in shown:
        raise Failed(f"allonym demo of {path.name} replaced nobody")
    run(python, "-m", "pip", "check", where=folder)
    return python


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where the files go; made, and must not hold any")
    target = parser.parse_args(arguments).folder
    if target.exists() and any(target.iterdir()):
        parser.error(f"{target} holds files already")
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        tree = work / "tree"
        time = source(tree)
        made = build(tree, work / "dist", time)
        again = build(tree, work / "again", time)
        for suffix, path in made.items():
            if digest(path) != digest(again[suffix]):
                raise Failed(f"{path.name} comes out differently when it is built again")
            check_content(path, tree)
            print(f"{path.name}: {path.stat().st_size / 1e6:.1f} MB, built twice alike, content checked", flush=True)
        try_out(made[".gz"], work / "from-sdist")
        python = try_out(made[".whl"], work / "from-wheel")
        print("installed from each in a new environment, and used", flush=True)
        bill = work / "dist" / f"{made['.whl'].name.partition('-py3')[0]}.cdx.json"
        tool = Path(sys.executable).with_name("cyclonedx-py")
        run(
            tool,
            "environment",
            "--pyproject",
            tree / "pyproject.toml",
            "--output-reproducible",
            "--of",
            "JSON",
            "-o",
            bill,
            python,
            where=work,
        )
        files = [*made.values(), bill]
        sums = "".join(f"{digest(path)}  {path.name}\n" for path in files)
        target.mkdir(parents=True, exist_ok=True)
        for path in files:
            shutil.copy(path, target)
        (target / "SHA256SUMS").write_text(sums, encoding="utf-8")
    print(sums, end="")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failed as error:
        sys.exit(f"error: {error}")
