"""Does a test fail for each of these wrong lines? They break overlap, check digits, vault, journal, roles or restoring.

    python benchmarks/mutants.py [WORD...]

Each row of ``MUTANTS`` changes one line of a copy of the tree and runs the tests that it names. With words, only the
rows run whose file or line holds one of them. Prints a table and one line of JSON; ends with 1 if a mutant survives.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
KILLED, SURVIVED = "killed", "SURVIVED"


@dataclass(frozen=True, slots=True)
class Mutant:
    """One wrong line.

    Attributes:
        file: below ``src/allonym``.
        line: a part of one line, which stands once in the file.
        wrong: what stands there instead.
        tests: paths below ``tests`` and other arguments of pytest.
    """

    file: str
    line: str
    wrong: str
    tests: str


OVERLAP, INTERVALS = "test_resolve.py", "test_document.py"
GENERAL, NATIONAL = "checksums/test_general.py", "checksums/test_national.py::test_rules_of_the_issuer"
AUDIT, BOOK, KEYS = "vault/test_audit.py", "vault/test_book.py", "vault/test_keys.py"
EXPIRY = "vault/test_vault.py::test_what_has_expired_is_not_there_any_more"
JOURNAL, ACCESS = "files/test_journal.py", "server/test_access.py"
SOCKET, STREAM, RESTORE = "server/test_stream.py", "restoration/test_stream.py", "restoration"
MUTANTS = [
    Mutant("resolve.py", "0 if span.score >= 0.8 else", "0 if span.score > 0.8 else", OVERLAP),
    Mutant("resolve.py", "reach = max(reach, span.end)", "reach = span.end", OVERLAP),
    Mutant("resolve.py", "max(0, bisect_right(starts, span.start) - 1)", "bisect_right(starts, span.start)", OVERLAP),
    Mutant("resolve.py", "end=max(end, rival.end)", "end=rival.end", OVERLAP),
    Mutant("document.py", "if out and start <= out[-1][1]:", "if out and start < out[-1][1]:", INTERVALS),
    Mutant("document.py", "bisect_right(intervals, start,", "bisect_left(intervals, start,", INTERVALS),
    Mutant("document.py", "self.find_furthest_end(start) >= end", "self.find_furthest_end(start) > end", INTERVALS),
    Mutant("document.py", "find_furthest_end(end - 1) > start", "find_furthest_end(end) > start", INTERVALS),
    Mutant("checksums/algorithms.py", "number - 9 if number > 9", "number - 9 if number > 10", GENERAL),
    Mutant("checksums/general.py", "(3, 7, 1) * 3", "(3, 1, 7) * 3", GENERAL),
    Mutant("checksums/general.py", "in (1, 0x2BC830A3)", "in (1,)", GENERAL),
    Mutant(
        "checksums/national.py",
        'number[0] not in "08"',
        'number[0] not in "8"',
        "checksums detection/test_rules_national.py",
    ),
    Mutant("vault/audit.py", "if head[8 + _MAC :] == sealer.compute_log_mac(", "if sealer.compute_log_mac(", AUDIT),
    Mutant("vault/audit.py", "!= (number, last):", "!= (number, last) and False:", AUDIT),
    Mutant("vault/book.py", "expires <= self._now", "expires < self._now", EXPIRY),
    Mutant("vault/book.py", "if value_digest in self._holders:", "if False:", BOOK),
    Mutant("vault/keys.py", " and p in range(1, 17)):", "):", KEYS),
    Mutant("vault/keys.py", "data + bytes(-len(data) % _BLOCK)", "data", KEYS),
    Mutant("files/journal.py", "os.fsync(self._stream.fileno())", "pass", JOURNAL),
    Mutant("files/journal.py", "if self._length < os.fstat(self._stream.fileno()).st_size:", "if False:", JOURNAL),
    Mutant("files/journal.py", 'if raw.endswith(b"\\n") else None', "", JOURNAL),
    Mutant("files/journal.py", 'if head.get("key") != _digest_key(', 'if "key" not in head and _digest_key(', JOURNAL),
    Mutant("partfile.py", "fcntl.LOCK_EX |", "fcntl.LOCK_SH |", JOURNAL),
    Mutant("server/access.py", '"jobs", "review")', '"jobs", "review", "restore")', ACCESS),
    Mutant("server/access.py", "if permission not in self.permissions:", "if permission not in PERMISSIONS:", ACCESS),
    Mutant("server/routes/parameters.py", "has_csrf_token = is_key or", "has_csrf_token = not is_key or", ACCESS),
    Mutant("server/routes/parameters.py", "is_from_own_page = is_key or", "is_from_own_page = True or", SOCKET),
    Mutant("plan.py", "if digest(text) != plan.digest:", "if not plan.digest:", "test_plan.py"),
    Mutant("restoration/restored.py", "if not m.is_sure or m.out is None:", "if m.out is None:", RESTORE),
    Mutant(
        "restoration/bring.py",
        "if final else min(certain, max(position, scan.held_from))",
        "if final else len(text)",
        STREAM,
    ),
    Mutant(
        "restoration/index.py", "if len({fold(key) for key in self.entities}) > 1 and", "if False and", "restoration"
    ),
    Mutant("server/problems.py", "in errors[:_READ]", "in errors", "server/test_problems.py"),
]


def copy_tree(target: Path) -> None:
    """Copy what git knows of the tree, with its changes."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    for name in listed.stdout.decode().split("\0"):
        if name and (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name)


def find_line(mutant: Mutant, root: Path = ROOT) -> str:
    """Return the file's text; the mutant's line stands in it exactly once.

    Raises:
        ValueError: it does not.
    """
    text = (root / "src" / "allonym" / mutant.file).read_text(encoding="utf-8")
    if (count := text.count(mutant.line)) != 1:
        raise ValueError(f"{mutant.file}: {mutant.line!r} stands there {count} times; once is required")
    return text


def try_mutant(mutant: Mutant, tree: Path) -> str:
    """Run the tests of a mutant in a copy of the tree, which is as before afterwards; return what became of it."""
    text, path = find_line(mutant, tree), tree / "src" / "allonym" / mutant.file
    arguments = [
        f"tests/{name}" if (tree / "tests" / name.partition("::")[0]).exists() else name
        for name in mutant.tests.split()
    ]
    path.write_text(text.replace(mutant.line, mutant.wrong), encoding="utf-8")
    try:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-x", "-n", "0", "-p", "no:cacheprovider", *arguments],
            cwd=tree,
            env={**os.environ, "PYTHONPATH": str(tree / "src")},
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        path.write_text(text, encoding="utf-8")
        for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
            compiled.unlink()
    if done.returncode not in (0, 1):
        raise RuntimeError(f"{mutant.file}: pytest ended with {done.returncode}: {done.stdout[-2000:]}")
    return KILLED if done.returncode else SURVIVED


def main() -> int:
    """Try the mutants that the command line names, or all."""
    words = sys.argv[1:]
    chosen = [m for m in MUTANTS if not words or any(word in f"{m.file} {m.line}" for word in words)]
    fates = []
    with tempfile.TemporaryDirectory() as folder:
        copy_tree(Path(folder))
        for mutant in chosen:
            begun = time.perf_counter()
            fates.append(try_mutant(mutant, Path(folder)))
            print(f"{fates[-1]:9} {time.perf_counter() - begun:6.1f} s  {mutant.file:24} {mutant.line}", flush=True)
    survived = fates.count(SURVIVED)
    print(json.dumps({"mutants": len(fates), "killed": len(fates) - survived, "survived": survived}))
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main())
