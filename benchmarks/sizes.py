"""Large sources by command line: peak memory and rate of each, and whether memory grows with the size.

    python benchmarks/sizes.py FOLDER [--only jsonl csv] [--scale 1.0] [--workers 1] [--policy rules] [--kill]

A made-up source of each kind is written into FOLDER, anonymised at a tenth of its size and at its size, and removed. At
scale 1: 10 GB of JSON Lines, ten million rows of CSV with names and as many with numbers and categories alone, 5 GB of
Parquet, a folder of 100,000 files, a text of 50 MB, 1 GB of text in files of 5 MB, a Word document of 50 MB of text, a
PDF of 1,000 pages, and a text of 1 GB, which is refused. Sizes that take days here are run in parts: ``--scale 0.01``.

``rules`` is the default policy without the tagger, ``mails`` looks for addresses, cards and accounts alone. Memory is
the largest resident set of the command and of any one of its workers, as the system counts it. With ``--kill`` the
command is killed (SIGKILL) after a third of its time and goes on with ``--resume``: the bytes must be the same. Prints
a table and, last, one line of JSON; the exit code is 1 where bytes differ.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

from benchmarks.growth import make_dense_text, make_text

RULES = """schema = 1
name = "rules"
extends = "default"

[detect]
detectors = ["rules", "spoken", "lexicon", "speakers"]
"""
MAILS = """schema = 1
name = "mails"

[detect]
detectors = ["rules"]
labels = ["EMAIL_ADDRESS", "CREDIT_CARD", "IBAN_CODE", "IP_ADDRESS"]
"""
POLICIES = {"rules": RULES, "mails": MAILS}
_BLOCK = 1 << 20
_PART = 5_000_000


def write_text(path: Path, size: int) -> None:
    with path.open("w", encoding="utf-8") as out:
        for seed in range(-(-size // _BLOCK)):
            out.write(make_dense_text(min(_BLOCK, size - seed * _BLOCK), seed))


def write_jsonl(path: Path, size: int) -> None:
    written = number = 0
    with path.open("w", encoding="utf-8") as out:
        while written < size:
            lines = make_dense_text(_BLOCK, number).splitlines()
            for first in range(0, len(lines), 20):
                number += 1
                written += out.write(json.dumps({"id": number, "text": "\n".join(lines[first : first + 20])}) + "\n")


def write_csv(path: Path, rows: int) -> None:
    draw = random.Random(rows)
    with path.open("w", encoding="utf-8") as out:
        out.write("number,name,phone,mail,amount,note\n")
        for row in range(rows):
            name = make_text("names", 12, row).removeprefix("Ms ")
            phone = f"+1 415 {draw.randrange(200, 999)} {draw.randrange(10**4):04}"
            amount = draw.randrange(10**6) / 100
            out.write(f"{row},{name},{phone},user{draw.randrange(10**6)}@example.com,{amount},paid in April\n")


def write_numbers(path: Path, rows: int) -> None:
    draw = random.Random(rows)
    with path.open("w", encoding="utf-8") as out:
        out.write("number,status,amount,quantity,price,rating,score\n")
        for row in range(rows):
            amounts = f"{draw.randrange(10**6) / 100},{draw.randrange(50)},{draw.randrange(10**4) / 100}"
            status = draw.choice(("open", "closed", "new"))
            out.write(f"{row},{status},{amounts},{draw.randrange(5)},{draw.random():.4f}\n")


def write_parquet(path: Path, size: int) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema([("number", pa.int64()), ("name", pa.string()), ("note", pa.string())])
    with pq.ParquetWriter(path, schema, compression="none") as writer:
        number = written = 0
        while written < size:
            notes = make_dense_text(_BLOCK, number).splitlines()
            names = [make_text("names", 12, number + i).removeprefix("Ms ") for i in range(len(notes))]
            writer.write_table(pa.table([range(number, number + len(notes)), names, notes], schema=schema))
            number, written = number + len(notes), written + _BLOCK


def write_parts(path: Path, size: int) -> None:
    path.mkdir()
    for number in range(-(-size // _PART)):
        (path / f"{number:04}.txt").write_text(make_dense_text(min(_PART, size - number * _PART), number), "utf-8")


def write_folder(path: Path, files: int) -> None:
    for number in range(files):
        folder = path / f"{number // 1000:03}"
        if number % 1000 == 0:
            folder.mkdir(parents=True)
        (folder / f"{number:06}.txt").write_text(make_dense_text(300, number), encoding="utf-8")


def write_docx(path: Path, size: int) -> None:
    from docx import Document

    document = Document()
    for line in make_dense_text(size, 1).splitlines():
        document.add_paragraph(line)
    document.save(str(path))


def write_pdf(path: Path, pages: int) -> None:
    from reportlab.pdfgen.canvas import Canvas

    canvas = Canvas(str(path))
    for page in range(pages):
        for number, line in enumerate(make_dense_text(3000, page).splitlines()):
            canvas.drawString(50, 780 - 16 * number, line[:100])
        canvas.showPage()
    canvas.save()


KINDS: dict[str, tuple[str, str, int, Callable[[Path, int], None]]] = {
    "jsonl": ("in.jsonl", "characters", 10**10, write_jsonl),
    "csv": ("in.csv", "rows", 10**7, write_csv),
    "numbers": ("in.csv", "rows", 10**7, write_numbers),
    "parquet": ("in.parquet", "characters", 5 * 10**9, write_parquet),
    "parts": ("in", "characters", 10**9, write_parts),
    "folder": ("in", "files", 10**5, write_folder),
    "text": ("in.txt", "characters", 5 * 10**7, write_text),
    "docx": ("in.docx", "characters", 5 * 10**7, write_docx),
    "pdf": ("in.pdf", "pages", 1000, write_pdf),
    "long text": ("in.txt", "characters", 10**9, write_text),
}


def measure_size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else sum(p.stat().st_size for p in path.rglob("*") if p.is_file())


def run_command(command: list[str]) -> tuple[int, float, float, float, str]:
    """Run a command; return its status, seconds, seconds of the processor, megabytes at most, and its last line."""
    began = time.monotonic()
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    message = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.monotonic() - began
    code = os.waitstatus_to_exitcode(status)
    return code, seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, message.strip().rpartition("\n")[2]


def digest_output(path: Path) -> str:
    state = hashlib.sha256()
    for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
        if file.is_file():
            with file.open("rb") as stream:
                state.update(hashlib.file_digest(stream, "sha256").digest())
    return state.hexdigest()


def kill_and_go_on(command: list[str], seconds: float, target: Path) -> str:
    """Kill a run after a third of its seconds and go on with it; tell whether the bytes are those of the whole run."""
    whole = digest_output(target)
    shutil.rmtree(target) if target.is_dir() else target.unlink()
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        process.wait(seconds / 3)
        return "not killed"
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    code = run_command([*command, "--resume"])[0]
    return "same" if code == 0 and digest_output(target) == whole else "DIFFERENT"


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("folder", type=Path)
    options.add_argument("--only", nargs="+", choices=KINDS, default=list(KINDS))
    options.add_argument("--scale", type=float, default=1.0)
    options.add_argument("--workers", type=int, default=1)
    options.add_argument("--policy", default="rules")
    options.add_argument("--kill", action="store_true")
    arguments = options.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    policy = arguments.policy
    if policy in POLICIES:
        policy = str(arguments.folder / f"{arguments.policy}.toml")
        Path(policy).write_text(POLICIES[arguments.policy], encoding="utf-8")
    rows = []
    print(f"{'kind':10}{'count':>14}{'MB':>9}{'status':>8}{'seconds':>9}{'CPU':>9}{'MB/s':>8}{'peak MB':>9}")
    for kind in arguments.only:
        name, unit, full, write = KINDS[kind]
        for count in (int(full * arguments.scale / 10), int(full * arguments.scale)):
            source, target = arguments.folder / name, arguments.folder / f"out-{name}"
            write(source, count)
            size = measure_size(source) / 1e6
            command = [sys.executable, "-m", "allonym", "anonymize", str(source), str(target), "--policy", policy, "-q"]
            command += ["--workers", str(arguments.workers)]
            code, seconds, processor, memory, message = run_command(command)
            rate = size / seconds
            killed = kill_and_go_on(command, seconds, target) if arguments.kill and code == 0 else ""
            print(
                f"{kind:10}{count:>14,}{size:>9.1f}{code:>8}{seconds:>9.1f}{processor:>9.1f}{rate:>8.2f}{memory:>9.0f}"
                f"  {message if code else killed}",
                flush=True,
            )
            rows.append({"kind": kind, "unit": unit, "count": count, "MB": round(size, 1), "status": code})
            rows[-1] |= {
                "seconds": round(seconds, 1),
                "CPU": round(processor, 1),
                "peak MB": round(memory),
                "killed": killed,
            }
            for path in (source, target):
                shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
            if memory > 12_000:
                break
    print(json.dumps({"benchmark": "sizes", "policy": arguments.policy, "workers": arguments.workers, "rows": rows}))
    return 1 if any(row["killed"] == "DIFFERENT" for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
