"""A vault under load: processes that write at once, processes that are killed, text that must not show, look-ups.

    python benchmarks/vault.py
    python benchmarks/vault.py --postgres postgresql://user@host/scratch

Without --postgres on SQLite alone, in a folder that is removed afterwards; the database that --postgres names must hold
no vault, and its tables of a vault are dropped at the end. Four parts, each for both:

- *writers*: 8 processes enter 2,000 mappings each, half of them for keys that all of them have, in transactions of ten.
  All must see the same numbers and names, no two keys the same one, and everything must be found again.
- *kills*: a writer is killed with SIGKILL at a random moment, 20 times. What it was told is committed must be there,
  right, and every transaction whole or not at all.
- *canary*: meanwhile all files of the folder are searched for the originals' marker, as are messages and errors.
- *look-ups*: of one in 10,000 mappings, and reading all of them.

Prints a table and, as the last line, the result as JSON. Ends with exit code 1 where anything is wrong.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from allonym.vault import Vault

CANARY = "Zaphrandel"
SECRET = bytes(range(32))
SCOPE = f"letters about {CANARY}"
PER_TRANSACTION = 10
NAMES = 4
"""The pool of names is this many times as large as the number of keys, so that choices clash often."""


def choose_name(key: str, attempt: int, pool: int) -> str:
    """The name that every process tries for a key at this attempt: the same in all of them."""
    return f"Name{random.Random(f'{key} {attempt}').randrange(pool)}"


def write_one(book: object, key: str, pool: int) -> tuple[str, str]:
    """Number and name of one key, recalled or new, as the operators do it; and the original behind them."""
    number = book.recall("tag", key)
    if number is None:
        number = str(book.number("tag"))
        book.enter("tag", key, number)
    name, attempt = book.recall("name", key), 0
    while name is None:
        name = choose_name(key, attempt, pool)
        attempt += 1
        if not book.enter("name", key, name):
            name = None
    book.remember(f"[PERSON_{number}]", f"{CANARY} {key}", "PERSON", "tag@1", key)
    book.remember(name, f"{CANARY} {key}", "PERSON", "pseudonym@1", key)
    return number, name


def write_mappings(where: str, worker: int, mappings: int, workers: int) -> None:
    """One writing process: prints what it was given, each transaction after its commit."""
    shared = mappings // 2
    keys = [f"all {i}" for i in range(shared)] + [f"own {worker} {i}" for i in range(mappings - shared)]
    random.Random(worker).shuffle(keys)
    pool = NAMES * mappings * workers
    with Vault.open(where, SECRET, wait=120) as vault:
        for at in range(0, len(keys), PER_TRANSACTION):
            with vault.book(SCOPE, f"subject {CANARY} {worker}") as book:
                got = [(key, *write_one(book, key, pool)) for key in keys[at : at + PER_TRANSACTION]]
            print(json.dumps(got), flush=True)


def start_writer(where: str, *more: object) -> subprocess.Popen[str]:
    """A writing process."""
    command = [sys.executable, __file__, "--writer", where, *map(str, more)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def read_writer_output(lines: Iterable[str]) -> Iterator[tuple[str, str, str]]:
    """What a writer printed; a line that the kill cut off is left out."""
    for line in lines:
        if line.endswith("\n"):
            yield from (tuple(one) for one in json.loads(line))


class Canary(threading.Thread):
    """Searches all files of a folder, again and again, until it is stopped."""

    def __init__(self, folder: Path) -> None:
        super().__init__(daemon=True)
        self.folder = folder
        self.found: set[str] = set()
        self.looks = 0
        self._done = threading.Event()

    def look(self) -> None:
        for path in self.folder.rglob("*"):
            try:
                data = path.read_bytes().lower() if path.is_file() else b""
            except OSError:  # it went away meanwhile
                continue
            for form in ("utf-8", "utf-16-le", "utf-16-be"):
                if CANARY.lower().encode(form) in data:
                    self.found.add(path.name)
        self.looks += 1

    def run(self) -> None:
        while not self._done.wait(0.05):
            self.look()

    def stop(self) -> None:
        self._done.set()
        self.join()
        self.look()


def run_writers(where: str, writers: int, mappings: int) -> dict[str, object]:
    """All writers at once, and what is wrong afterwards."""
    began = time.perf_counter()
    running = [start_writer(where, worker, mappings, writers) for worker in range(writers)]
    outs = [process.communicate() for process in running]
    took = time.perf_counter() - began
    said = "".join(err for _, err in outs)
    wrong = sum(process.returncode != 0 for process in running) + (CANARY in said)
    seen: dict[str, tuple[str, str]] = {}
    count = 0
    for out, _ in outs:
        for key, number, name in read_writer_output(out.splitlines(keepends=True)):
            count += 1
            wrong += seen.setdefault(key, (number, name)) != (number, name)
    wrong += count != writers * mappings
    wrong += len({number for number, _ in seen.values()}) != len(seen)
    wrong += len({name for _, name in seen.values()}) != len(seen)
    with Vault.open(where, SECRET) as vault:
        wrong += count_lost_mappings(vault, seen)
    return {"writers": writers, "mappings": count, "keys": len(seen), "wrong": wrong, "seconds": round(took, 2)}


def count_lost_mappings(vault: Vault, seen: dict[str, tuple[str, str]]) -> int:
    """How many of the mappings that were seen are not, or not rightly, in the vault."""
    held = {(one.replacement, one.original) for one in vault.known(SCOPE)}
    wrong = 0
    for key, (number, name) in seen.items():
        original = f"{CANARY} {key}"
        wrong += (f"[PERSON_{number}]", original) not in held or (name, original) not in held
    for key, (number, _) in random.Random(0).sample(sorted(seen.items()), min(200, len(seen))):
        wrong += [one.original for one in vault.find(SCOPE, f"[PERSON_{number}]")] != [f"{CANARY} {key}"]
    return wrong


def run_kills(where: str, kills: int, seed: int) -> dict[str, object]:
    """Writers that are killed one after the other, and what is wrong afterwards."""
    draw = random.Random(seed)
    seen: dict[str, tuple[str, str]] = {}
    wrong, transactions, said = 0, 0, ""
    for kill in range(kills):
        process = start_writer(where, 1000 + kill, 100_000, 1)
        assert process.stdout is not None and process.stderr is not None
        lines = [process.stdout.readline()]  # so that the kill falls into the writing, not into the start
        killer = threading.Timer(draw.uniform(0.0, 0.6), process.send_signal, [signal.SIGKILL])
        killer.start()
        lines += process.stdout.readlines()
        said += process.stderr.read()
        killer.join()
        wrong += process.wait() != -signal.SIGKILL
        transactions += len(lines)
        for key, number, name in read_writer_output(lines):
            wrong += seen.setdefault(key, (number, name)) != (number, name)
        with Vault.open(where, SECRET) as vault:
            wrong += count_lost_mappings(vault, seen)
            rows = len(vault.known(SCOPE))
            assigned = sum(one.assigned for one in vault.info().scopes)
            wrong += rows % 2 + (rows != assigned)  # a number, a name and two originals for each key
    wrong += CANARY in said
    return {"kills": kills, "committed": transactions, "mappings": len(seen), "wrong": wrong}


def run_lookups(where: str, mappings: int) -> dict[str, object]:
    """How long it takes to look up one mapping, and to read all."""
    with Vault.open(where, SECRET) as vault:
        with vault.book("look-ups") as book:
            for i in range(mappings):
                book.remember(f"[PERSON_{i}]", f"Person {i}", "PERSON", "tag@1", f"person {i}")
        vault.find("look-ups", "[PERSON_0]")
        times = []
        for i in random.Random(0).choices(range(mappings), k=2000):
            began = time.perf_counter()
            found = vault.find("look-ups", f"[PERSON_{i}]")
            times.append(time.perf_counter() - began)
            assert found[0].original == f"Person {i}"
        began = time.perf_counter()
        held = len(vault.known("look-ups"))
        everything = time.perf_counter() - began
        began = time.perf_counter()
        vault.known("look-ups")
        again = time.perf_counter() - began
    times.sort()
    return {
        "held": held,
        "p50_ms": round(statistics.median(times) * 1e3, 3),
        "p99_ms": round(times[len(times) * 99 // 100] * 1e3, 3),
        "all_ms": round(everything * 1e3, 1),
        "again_ms": round(again * 1e3, 2),
    }


@contextmanager
def make_sqlite_vault(folder: Path) -> Iterator[str]:
    """A vault in a file."""
    where = str(folder / "bench.vault")
    Vault.create(where, SECRET).close()
    yield where


@contextmanager
def make_postgres_vault(url: str) -> Iterator[str]:
    """A vault in a PostgreSQL database, gone afterwards."""
    import sqlalchemy as sa

    from allonym.vault.store import parse_address

    Vault.create(url, SECRET).close()
    try:
        yield url
    finally:
        made = sa.create_engine(parse_address(url))
        with made.begin() as connection:
            for name in sa.inspect(connection).get_table_names():
                if name.startswith("allonym_"):
                    connection.exec_driver_sql(f"DROP TABLE {name}")
            connection.exec_driver_sql("DROP FUNCTION IF EXISTS allonym_audit_only_grows")
        made.dispose()


def measure_vault(where: str, given: argparse.Namespace) -> dict[str, object]:
    """All parts on one vault."""
    return {
        "writers": run_writers(where, given.writers, given.mappings),
        "kills": run_kills(where, given.kills, given.seed),
        "lookups": run_lookups(where, given.lookups),
    }


def main() -> int:
    """Measure, print, and say whether anything was wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--postgres", metavar="URL", default=os.environ.get("ALLONYM_TEST_POSTGRES"))
    parser.add_argument("--writers", type=int, default=8)
    parser.add_argument("--mappings", type=int, default=2000)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--lookups", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--writer", nargs=4, metavar=("WHERE", "WORKER", "MAPPINGS", "WRITERS"), help="internal")
    given = parser.parse_args()
    if given.writer:
        where, *numbers = given.writer
        write_mappings(where, *map(int, numbers))
        return 0
    results: dict[str, object] = {}
    with tempfile.TemporaryDirectory(prefix="allonym-") as made:
        folder = Path(made)
        canary = Canary(folder)
        canary.start()
        with make_sqlite_vault(folder) as where:
            results["sqlite"] = measure_vault(where, given)
            with Vault.open(where, SECRET) as vault:
                vault.export(folder / "bench.export", SECRET)
                vault.purge(subject=f"subject {CANARY} 0")
                results["audit"] = len(vault.audit())
        canary.stop()
        results["canary"] = {"looks": canary.looks, "found": sorted(canary.found)}
    if given.postgres:
        with make_postgres_vault(given.postgres) as where:
            results["postgresql"] = measure_vault(where, given)
    wrong = len(canary.found)
    for name in ("sqlite", "postgresql"):
        for part, values in results.get(name, {}).items():
            wrong += values.get("wrong", 0)
            print(f"{name:11} {part:8} " + "  ".join(f"{k} {v}" for k, v in values.items()))
    print(f"canary      {canary.looks} looks at all files, found in {len(canary.found)}")
    print(json.dumps({**results, "wrong": wrong}))
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
