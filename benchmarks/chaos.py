"""Runs that are killed, starved and lied to at every call that changes a file, and files that are damaged.

    python benchmarks/chaos.py [--events 0] [--files 2000] [--only kills] [--scenarios jsonl "csv vault"]
        [--formats docx pdf] [--without-office] [--seed 1]

A small library (``chaos_faults.c``, built with ``cc``) is loaded in front of the C library. It counts the calls with
which a run creates, writes, syncs, cuts, renames and removes files below its folder, those of the vault included, and
lets the n-th of them go wrong. Each trial is a process:

- kill: it is killed in front of the n-th call; torn: in the middle of the n-th write; power: it is killed there, and
  what it had written and not synced is lost, and perhaps what it had renamed. One in three is killed once more.
- error: the n-th call fails with ENOSPC, EIO or EINTR, or all calls from there on that need room; short: writes write
  half.
- memory: the run of a larger source gets a little more memory than it has when it begins.
- clock: the clock on the wall jumps back by a year and goes on backwards; some of these runs are killed, too.
- workers: on a Ray cluster of this machine, a worker is killed in front of its n-th call; the run itself must end.

Scenarios called "ray" run there; their outputs are compared with those of a run without Ray, and their kills are of the
process that leads the run.

Then the run goes on without faults. Lost: an output or a line of it is missing at the end. Wrong: an output differs
from that of a run that nobody disturbed, or one that is not complete lies under its final name. Marker: an original is
in a file other than the sources and the vault, in a message or in a traceback. ``--events`` limits the moments of each
scenario and fault; 0 takes every one. The damaged files are those of ``chaos_files.py``. Prints a table, every failure,
and, last, one line of JSON; the exit code is 1 where anything failed.
"""

from __future__ import annotations

import argparse
import ctypes
import errno
import hashlib
import io
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from email.message import EmailMessage
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1]))

from benchmarks.chaos_files import damage_files

from allonym.files import anonymize_path
from allonym.files import run as runs
from allonym.policy import Policy
from allonym.vault import Vault

FAULTS = Path(__file__).with_name("chaos_faults.c")
NONE, KILL, TORN, FAIL, FAIL_FROM, SHORT, SHORT_FROM, BACKWARDS = range(8)
SECRET = b"a secret of thirty-two characters"
KEY = b"a key of thirty-two characters.."
KINDS = ("kills", "errors", "memory", "clock", "workers", "files")
MEMORY = (0, 1 << 18, 1 << 20, 1 << 21, 1 << 22, 1 << 23, 1 << 24, 1 << 25)
LARGE = 100
"""Times by which the sources grow where memory is short."""
MINUTE = 60

POLICY = Policy.load("reversible")
POLICY = POLICY.with_(detectors=tuple(name for name in POLICY.detectors if name != "tagger"))


def name_marker(number: int) -> str:
    return f"marker{number:03}@quillfeather.example"


def write_line(number: int) -> str:
    return f"Record {number}: write to {name_marker(number)} or call 415-555-{number % 10_000:04}, café no. {number}."


def write_jsonl(folder: Path, times: int = 1) -> None:
    rows = [json.dumps({"id": i, "text": write_line(i)}, ensure_ascii=False) for i in range(12 * times)]
    (folder / "in.jsonl").write_text("\n".join([*rows[:6], '{"id": "broken", "text": ', *rows[6:]]) + "\n", "utf-8")


def write_csv(folder: Path, times: int = 1) -> None:
    rows = "".join(f'{i},"{write_line(i)}",{name_marker(i)}\n' for i in range(12 * times))
    (folder / "in.csv").write_text(f"number,note,mail\n{rows}", "utf-8")


def write_texts(folder: Path, times: int = 1) -> None:
    (folder / "in" / "deep").mkdir(parents=True)
    for i in range(4):
        (folder / "in" / ("deep" if i % 2 else ".") / f"{i}.txt").write_text(f"{write_line(i)}\n" * times, "utf-8")
    (folder / "in" / "broken.docx").write_bytes(b"PK no office file")


def write_docx(folder: Path, times: int = 1) -> None:
    from docx import Document

    document = Document()
    for i in range(5 * times):
        document.add_paragraph(write_line(i))
    document.save(str(folder / "in.docx"))


def write_xlsx(folder: Path, times: int = 1) -> None:
    from openpyxl import Workbook

    book = Workbook()
    assert book.active is not None
    for i in range(8 * times):
        book.active.append([i, write_line(i), name_marker(i)])
    book.save(folder / "in.xlsx")


def write_eml(folder: Path, times: int = 1) -> None:
    mail = EmailMessage()
    mail["From"], mail["To"], mail["Subject"] = name_marker(0), name_marker(1), write_line(2)
    mail.set_content("\n".join(write_line(i) for i in range(3, 8 * times)))
    mail.add_attachment(f"a,b\n1,{name_marker(9)}\n", subtype="csv", filename="list.csv")
    (folder / "in.eml").write_bytes(mail.as_bytes())


SOURCES: dict[str, tuple[str, Callable[..., None]]] = {
    "jsonl": ("in.jsonl", write_jsonl),
    "csv": ("in.csv", write_csv),
    "txt folder": ("in", write_texts),
    "docx": ("in.docx", write_docx),
    "xlsx": ("in.xlsx", write_xlsx),
    "eml": ("in.eml", write_eml),
}
SCENARIOS = [f"{name}{vault}" for name in SOURCES for vault in ("", " vault")]
SCENARIOS += [f"{name} ray" for name in ("jsonl", "csv", "txt folder")]


@dataclass
class Tally:
    """What the trials of one fault came to."""

    counts: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)

    def fail(self, kind: str, message: str) -> None:
        self.counts[kind] += 1
        self.failures.append(f"{kind}: {message}")


class Scenario:
    """One kind of source, with or without a vault, in a folder of its own."""

    def __init__(self, name: str, top: Path, times: int = 1) -> None:
        self.name, self.top = name, top
        self.batch_size = 150 if times == 1 else 1 << 20
        self.source_name, write = SOURCES[name.removesuffix(" vault").removesuffix(" ray")]
        self.has_vault = name.endswith(" vault")
        self.is_on_ray = name.endswith(" ray")
        self.model, self.folder = top / "model", top / "trial"
        self.model.mkdir(parents=True)
        write(self.model, times)
        if self.has_vault:
            Vault.create(self.model / "study.vault", SECRET).close()
        self.markers = [name_marker(i).encode() for i in range(12)]
        self.notes, self.log, self.worker_log = top / "notes", top / "log", top / "worker-log"

    def begin(self) -> None:
        """Make the folder of the next trial: the source and an empty vault."""
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.copytree(self.model, self.folder)
        (self.folder / "out").mkdir()
        for log in (self.log, self.worker_log):
            log.unlink(missing_ok=True)

    def run(
        self,
        faults: Any,
        action: int = NONE,
        at: int = 0,
        number: int = 0,
        memory: int | None = None,
        worker_at: int | None = None,
    ) -> int:
        """Anonymise in a process of its own; return its status: 0 done, 1 refused, 2 other errors, -9 killed.

        With ``worker_at`` the first worker of Ray is killed at that event, or never where that is 0; its events are in
        ``worker_log``.
        """
        self.notes.unlink(missing_ok=True)
        child = os.fork()
        if child == 0:
            if worker_at is not None:
                self.top.joinpath("once").touch()
                os.environ |= {"CHAOS_PROGRAM": "default_worker.py", "CHAOS_ONCE": str(self.top / "once")}
                os.environ |= {"CHAOS_FOLDER": str(self.folder), "CHAOS_LOG": str(self.worker_log)}
                os.environ["CHAOS_AT"] = str(worker_at)
            os._exit(self._anonymize(faults, action, at, number, memory))
        began = time.monotonic()
        while True:
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended and "Ray did not start" in _read_notes(self):  # a machine that is too busy for it
                return self.run(faults, action, at, number, memory, worker_at)
            if ended:
                return os.waitstatus_to_exitcode(status)
            if time.monotonic() - began > (5 * MINUTE if self.is_on_ray else MINUTE):
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
                return -signal.SIGALRM
            time.sleep(0.002)

    def _anonymize(self, faults: Any, action: int, at: int, number: int, memory: int | None) -> int:
        sink = os.open(os.devnull, os.O_WRONLY)
        os.dup2(sink, 2)
        if self.is_on_ray:
            os.dup2(sink, 1)  # its own tools tell of killed workers there
        runs.CHECKPOINT = 0.0  # a line of the journal for each chunk
        out = self.folder / "out"
        target = out / "main" / self.source_name.replace("in", "out", 1)
        if memory is not None:
            used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (used + memory, resource.RLIM_INFINITY))
        faults.chaos_arm(os.fsencode(self.folder), action, at, number, os.fsencode(self.log))
        try:
            vault = Vault.open(self.folder / "study.vault", SECRET) if self.has_vault else None
            key = None if self.has_vault else KEY
            options: dict[str, Any] = {"resume": True, "plans": out / "aside" / "plans.jsonl"}
            options["batch_size"] = self.batch_size
            source = self.folder / self.source_name
            if self.is_on_ray:
                from allonym.scale import anonymize_on_ray

                anonymize_on_ray(
                    source, target, POLICY, key=key, scope="study", workers=2, partition_size=400, **options
                )
            else:
                anonymize_path(source, target, POLICY, key=key, vault=vault, scope="study", **options)
            code = 0
        except Exception as error:
            resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            faults.chaos_arm(b"/nowhere", NONE, 0, 0, None)
            self.notes.write_text(f"{error!r}\n{error}\n{traceback.format_exc()}", "utf-8", "surrogateescape")
            code = 1 if isinstance(error, OSError | MemoryError) or type(error).__module__.startswith("allonym") else 2
        return code

    def list_outputs(self) -> dict[str, str]:
        """Return the digests of the finished outputs, and that of what the vault knows."""
        out = self.folder / "out"
        digests = {
            str(path.relative_to(out)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(out.rglob("*"))
            if path.is_file() and ".allonym-" not in str(path.relative_to(out))
        }
        if self.has_vault:
            with Vault.open(self.folder / "study.vault", SECRET) as vault:
                pairs = sorted((known.original, known.replacement) for known in vault.known("study"))
            digests["the vault"] = hashlib.sha256(repr(pairs).encode()).hexdigest()
        return digests

    def list_remains(self) -> list[str]:
        """Return hidden files other than the journal."""
        return [p.name for p in self.folder.rglob("*.allonym-*") if not p.name.endswith(".allonym-journal")]

    def find_markers(self) -> list[str]:
        """Return the files in which an original can be read, except source and vault, and notes of errors."""
        sources = {self.folder / self.source_name, *(self.folder / self.source_name).rglob("*")}
        vaults = set(self.folder.glob("study.vault*"))
        paths = [p for p in self.folder.rglob("*") if p.is_file() and p not in sources]
        found = [p.name for p in paths if any(m in _read_everything(p.read_bytes()) for m in self.markers)]
        found += [f"name {p.name}" for p in paths if p not in vaults and "marker" in p.name]
        if self.notes.exists() and any(m in self.notes.read_bytes() for m in self.markers):
            found.append("message")
        return found


def _read_everything(data: bytes) -> bytes:
    if data.startswith(b"PK\x03\x04"):
        try:
            with zipfile.ZipFile(io.BytesIO(data)) as archive:
                return b"\n".join(archive.read(entry) for entry in archive.infolist())
        except (zipfile.BadZipFile, OSError, ValueError):
            return data
    return data


def lose_power(log: Path, draw: random.Random) -> None:
    """Take away what a killed run had written since it was last synced, and some of what it had renamed since."""
    synced: dict[str, int] = {}
    is_dirty: dict[str, bool] = {}
    renamed: list[tuple[str, str]] = []
    for line in log.read_text("utf-8", "surrogateescape").splitlines():
        what, path, other, size = line.split("\t")
        if what in ("write", "truncate"):
            synced.setdefault(path, 0)
            is_dirty[path] = True
        elif what == "fsync":
            synced[path], is_dirty[path] = int(size), False
            renamed = [pair for pair in renamed if str(Path(pair[1]).parent) != path]
        elif what == "rename":
            synced[other], is_dirty[other] = synced.pop(path, 0), is_dirty.pop(path, False)
            renamed.append((path, other))
    for path in (p for p, dirty in is_dirty.items() if dirty and "study.vault" not in p):
        if os.path.exists(path) and os.path.getsize(path) > synced[path]:
            os.truncate(path, synced[path])
    for path, other in reversed(renamed):
        if os.path.exists(other) and not os.path.exists(path) and draw.random() < 0.5:
            os.rename(other, path)


def choose_moments(count: int, limit: int, draw: random.Random) -> list[int]:
    """Return all numbers from 1 to ``count``, or ``limit`` of them, the last always among them."""
    numbers = range(1, count + 1)
    if not limit or limit >= count:
        return list(numbers)
    return sorted({*draw.sample(numbers, limit - 1), count})


def check_end(scenario: Scenario, tally: Tally, whole: dict[str, str], status: int, what: str) -> None:
    """Compare what a run that went on has left with what an undisturbed run leaves."""
    outputs = scenario.list_outputs()
    if markers := scenario.find_markers():
        tally.fail("marker", f"{what}: {markers}")
    if missing := sorted(whole.keys() - outputs.keys()):
        tally.fail("lost", f"{what}: {missing}, status {status}, {_read_notes(scenario)}")
    elif outputs != whole or status:
        other = sorted(n for n in outputs if outputs[n] != whole.get(n))
        tally.fail("wrong", f"{what}: {other}, status {status}, {_read_notes(scenario)}")
    elif remains := scenario.list_remains():
        tally.fail("remains", f"{what}: {remains}")


def check_interrupted(scenario: Scenario, tally: Tally, whole: dict[str, str], what: str) -> None:
    """Look at what lies about between a fault and the next run."""
    if markers := scenario.find_markers():
        tally.fail("marker", f"{what}, before it goes on: {markers}")
    out = scenario.folder / "out"
    for path in out.rglob("*"):
        name = str(path.relative_to(out))
        if not path.is_file() or ".allonym-" in name:
            continue
        if hashlib.sha256(path.read_bytes()).hexdigest() != whole.get(name):
            tally.fail("wrong", f"{what}, before it goes on: {name}")


def _read_notes(scenario: Scenario) -> str:
    return scenario.notes.read_text("utf-8", "surrogateescape").splitlines()[0] if scenario.notes.exists() else ""


def try_kills(scenario: Scenario, faults: Any, whole: dict[str, str], count: int, limit: int, seed: int) -> Tally:
    tally, draw = Tally(), random.Random(seed)
    for mode in ("kill", "torn", "power"):
        for at in choose_moments(count, limit, draw):
            scenario.begin()
            what = f"{scenario.name}, {mode} at {at} of {count}"
            killed = scenario.run(faults, TORN if mode == "torn" else KILL, at) == -signal.SIGKILL
            tally.counts["trials"] += 1
            tally.counts["faults"] += killed
            if mode == "power":
                lose_power(scenario.log, draw)
            check_interrupted(scenario, tally, whole, what)
            if draw.random() < 1 / 3:
                again = draw.randint(1, count)
                tally.counts["faults"] += scenario.run(faults, KILL, again) == -signal.SIGKILL
                what += f", and at {again}"
            check_end(scenario, tally, whole, scenario.run(faults), what)
    return tally


def try_errors(scenario: Scenario, faults: Any, whole: dict[str, str], count: int, limit: int, seed: int) -> Tally:
    tally, draw = Tally(), random.Random(seed)
    modes = [(FAIL, number) for number in (errno.ENOSPC, errno.EIO, errno.EINTR)]
    modes += [(FAIL_FROM, errno.ENOSPC), (SHORT, 0), (SHORT_FROM, 0)]
    for action, number in modes:
        for at in choose_moments(count, limit, draw):
            scenario.begin()
            what = f"{scenario.name}, action {action} {errno.errorcode.get(number, 'short')} at {at} of {count}"
            status = scenario.run(faults, action, at, number)
            tally.counts["trials"] += 1
            tally.counts["faults"] += 1
            if status not in (0, 1) or (status and action in (SHORT, SHORT_FROM)):
                tally.fail("crash", f"{what}: status {status}, {_read_notes(scenario)}")
            if status == 0:
                check_end(scenario, tally, whole, status, what)
            else:
                check_interrupted(scenario, tally, whole, what)
            check_end(scenario, tally, whole, scenario.run(faults), f"{what}, resumed")
    return tally


def try_memory(scenario: Scenario, faults: Any, whole: dict[str, str], count: int, limit: int, seed: int) -> Tally:
    tally = Tally()
    scenario = Scenario(scenario.name, scenario.top / "large", LARGE)  # what needs memory
    scenario.begin()
    if scenario.run(faults):
        raise SystemExit(f"{scenario.name}: the undisturbed run of a large source fails: {_read_notes(scenario)}")
    whole = scenario.list_outputs()
    for memory in MEMORY[: limit or None]:
        scenario.begin()
        status = scenario.run(faults, memory=memory)
        what = f"{scenario.name}, {memory} bytes of memory"
        tally.counts["trials"] += 1
        tally.counts["faults"] += status != 0
        if status not in (0, 1):
            tally.fail("crash", f"{what}: status {status}, {_read_notes(scenario)}")
        elif status == 0:
            check_end(scenario, tally, whole, status, what)
        else:
            check_interrupted(scenario, tally, whole, what)
        check_end(scenario, tally, whole, scenario.run(faults), f"{what}, resumed")
    return tally


def try_clock(scenario: Scenario, faults: Any, whole: dict[str, str], count: int, limit: int, seed: int) -> Tally:
    tally, draw = Tally(), random.Random(seed)
    for at in (0, *choose_moments(count, limit and 2, draw)[:10]):
        scenario.begin()
        what = f"{scenario.name}, clock backwards, killed at {at}"
        if at:
            scenario.run(faults, KILL, at)
            check_interrupted(scenario, tally, whole, what)
        tally.counts["trials"] += 1
        tally.counts["faults"] += 1
        check_end(scenario, tally, whole, scenario.run(faults, BACKWARDS), what)
    return tally


def try_workers(scenario: Scenario, faults: Any, whole: dict[str, str], count: int, limit: int, seed: int) -> Tally:
    tally, draw = Tally(), random.Random(seed)
    scenario.begin()
    scenario.run(faults, worker_at=0)
    for at in choose_moments(len(scenario.worker_log.read_text().splitlines()), limit, draw):
        scenario.begin()
        status = scenario.run(faults, worker_at=at)
        tally.counts["trials"] += 1
        tally.counts["faults"] += "kill\t" in scenario.worker_log.read_text()
        check_end(scenario, tally, whole, status, f"{scenario.name}, a worker killed at {at}")
    return tally


TRIALS = {"kills": try_kills, "errors": try_errors, "memory": try_memory, "clock": try_clock, "workers": try_workers}


def list_outputs_without_ray(scenario: Scenario, faults: Any) -> dict[str, str]:
    """Return the digests of the outputs of the same run in one process."""
    scenario.is_on_ray = False
    scenario.begin()
    scenario.run(faults)
    scenario.is_on_ray = True
    return scenario.list_outputs()


def run_trials(
    top: Path,
    names: list[str],
    kinds: list[str],
    limit: int,
    files: int,
    seed: int,
    has_office: bool = True,
    formats: Sequence[str] = (),
) -> Iterator[tuple[str, Tally]]:
    """Yield a name and the tally of each scenario and kind of fault."""
    faults = ctypes.CDLL(os.environ["LD_PRELOAD"])
    faults.chaos_arm.argtypes = [ctypes.c_char_p, ctypes.c_int, ctypes.c_long, ctypes.c_int, ctypes.c_char_p]
    for name in names:
        scenario = Scenario(name, top / name.replace(" ", "-"))
        scenario.begin()
        if name == names[0] and not scenario.is_on_ray:
            scenario._anonymize(faults, NONE, 0, 0, None)  # loads what the runs need; Ray bears no fork
        scenario.begin()
        if scenario.run(faults):
            raise SystemExit(f"{name}: the undisturbed run fails: {_read_notes(scenario)}")
        whole, count = scenario.list_outputs(), len(scenario.log.read_text().splitlines())
        if scenario.is_on_ray and whole != list_outputs_without_ray(scenario, faults):
            raise SystemExit(f"{name}: the outputs differ from those without Ray")
        if markers := scenario.find_markers():
            raise SystemExit(f"{name}: the undisturbed run leaves originals in {markers}")
        for kind in kinds:
            if kind in (("kills", "workers") if scenario.is_on_ray else TRIALS.keys() - {"workers"}):
                yield f"{name}: {kind}", TRIALS[kind](scenario, faults, whole, count, limit, seed)
        shutil.rmtree(scenario.top)
    if "files" in kinds:
        for suffix, counts, failures in damage_files(top / "files", files, seed, None, has_office, formats):
            yield f"damaged {suffix}", Tally(Counter(counts), failures)


def build_fault_layer(folder: Path) -> Path:
    """Return the fault layer, built; SystemExit where there is no C compiler."""
    library = folder / "faults.so"
    if shutil.which("cc") is None:
        raise SystemExit("the faults need a C compiler called cc")
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", str(library), str(FAULTS), "-ldl"], check=True)
    return library


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--events", type=int, default=0)
    options.add_argument("--files", type=int, default=2000)
    options.add_argument("--only", nargs="+", choices=KINDS, default=list(KINDS))
    options.add_argument("--scenarios", nargs="+", choices=SCENARIOS, default=SCENARIOS)
    options.add_argument("--formats", nargs="+", default=[])
    options.add_argument("--without-office", action="store_true")
    options.add_argument("--seed", type=int, default=1)
    arguments = options.parse_args()
    memory_disk = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # a real disk only makes the trials slow
    with tempfile.TemporaryDirectory(prefix="chaos-", dir=memory_disk) as name:
        if FAULTS.stem not in os.environ.get("CHAOS", ""):  # once more, behind the fault layer
            layer = build_fault_layer(Path(name))
            environment = {**os.environ, "LD_PRELOAD": str(layer), "CHAOS": FAULTS.stem, "PYTHONWARNINGS": "ignore"}
            return subprocess.run([sys.executable, *sys.argv], env=environment).returncode
        columns = ("trials", "faults", "lost", "wrong", "marker", "crash", "remains")
        print(f"{'':24}" + "".join(f"{column:>9}" for column in columns))
        total: Counter[str] = Counter()
        names = arguments.scenarios if set(arguments.only) - {"files"} else []
        trials = run_trials(
            *(Path(name), names, arguments.only, arguments.events, arguments.files, arguments.seed),
            has_office=not arguments.without_office,
            formats=arguments.formats,
        )
        for title, tally in trials:
            print(f"{title:24}" + "".join(f"{tally.counts[column]:>9,}" for column in columns), flush=True)
            for failure in tally.failures[:20]:
                print(f"    {failure}")
            total += tally.counts
        print(f"{'all':24}" + "".join(f"{total[column]:>9,}" for column in columns))
        print(json.dumps({"benchmark": "chaos", **{column: total[column] for column in columns}}))
        return 1 if any(total[column] for column in columns[2:]) else 0


if __name__ == "__main__":
    sys.exit(main())
