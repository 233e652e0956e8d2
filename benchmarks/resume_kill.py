"""Kill a run at random moments, resume it until it is done, and compare with a run that nobody disturbed.

    python benchmarks/resume_kill.py --records 50000 --kills 20 --seed 1

Prints a table of the kills and, as the last line, the result as JSON. Ends with exit code 1 where any output differs.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

RUN = """
import sys, warnings
from allonym.files import anonymize_path
if __name__ == "__main__":
    warnings.simplefilter("ignore")
    source, target, plans, workers = sys.argv[1:]
    report = anonymize_path(source, target, resume=True, plans=plans, workers=int(workers))
    sys.exit(report.exit_code)
"""


QUIET = {**os.environ, "PYTHONWARNINGS": "ignore"}
"""Python's own watcher of shared resources warns about each kill."""


def write_records(path: Path, count: int, seed: int) -> None:
    """Records with identifiers, and now and then one that is malformed and must end in quarantine."""
    draw = random.Random(seed)
    with path.open("w", encoding="utf-8") as out:
        for i in range(count):
            if i % 5000 == 4999:
                out.write('{"id": "broken", "text": \n')
                continue
            text = (
                f"Record {i}: write to user{draw.randrange(10**6)}@example.com "
                f"or call 415-555-{draw.randrange(10**4):04}. "
                "My card is 4111 1111 1111 1111 and I live in Zürich. "
                + "Nothing else of note was said. "
                * draw.randrange(8)
            )
            out.write(json.dumps({"id": f"r{i}", "text": text, "stars": draw.randrange(6)}, ensure_ascii=False) + "\n")


def digest_files(folder: Path) -> dict[str, str]:
    """The digest of every file of a folder but journals, whose salts are drawn."""
    return {
        p.name: hashlib.sha256(p.read_bytes()).hexdigest()
        for p in sorted(folder.iterdir())
        if p.suffix != ".allonym-journal"
    }


def start_run(script: Path, source: Path, folder: Path, workers: int) -> subprocess.Popen[bytes]:
    command = [sys.executable, str(script), str(source), str(folder / "out.jsonl"), str(folder / "plans.jsonl")]
    return subprocess.Popen([*command, str(workers)], start_new_session=True, env=QUIET)


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--records", type=int, default=50_000)
    options.add_argument("--kills", type=int, default=20)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--workers", type=int, default=2)
    given = options.parse_args()
    draw = random.Random(given.seed)
    with tempfile.TemporaryDirectory() as name:
        top = Path(name)
        source, script = top / "in.jsonl", top / "run.py"
        write_records(source, given.records, given.seed)
        script.write_text(RUN, encoding="utf-8")
        whole, cut = top / "whole", top / "cut"
        whole.mkdir()
        cut.mkdir()
        few = top / "few.jsonl"
        write_records(few, 10, given.seed)
        (top / "few").mkdir()
        began = time.monotonic()
        start_run(script, few, top / "few", given.workers).wait()
        startup = time.monotonic() - began
        began = time.monotonic()
        code = start_run(script, source, whole, given.workers).wait()
        seconds = time.monotonic() - began
        print(f"unbroken run: {given.records:,} records, {given.workers} workers, {seconds:.1f} s, exit code {code}")
        print(f"{'kill':>4} {'after s':>8} {'output bytes':>13} {'journal lines':>14}")
        kills = 0
        resumed_code = -signal.SIGKILL
        # So drawn that the kills spread over the whole run, those while it starts or goes on included.
        while kills < given.kills:
            wait = draw.uniform(0.1, startup + 2 * seconds / given.kills)
            run = start_run(script, source, cut, given.workers)
            try:
                resumed_code = run.wait(timeout=wait)
                print(f"done after {kills} kills; beginning again for the rest")
                if digest_files(cut) != digest_files(whole):
                    break
                for file in cut.iterdir():
                    file.unlink()
                continue
            except subprocess.TimeoutExpired:
                os.kill(run.pid, signal.SIGKILL)
                run.wait()
            kills += 1
            journal = cut / ".out.jsonl.allonym-journal"
            size = max((part.stat().st_size for part in cut.glob(".out.jsonl.*.allonym-part")), default=0)
            lines = journal.read_bytes().count(b"\n") if journal.exists() else 0
            print(f"{kills:>4} {wait:>8.2f} {size:>13,} {lines:>14}")
        if not (cut / "out.jsonl").exists() or list(cut.glob(".*.allonym-part")):
            resumed_code = start_run(script, source, cut, given.workers).wait()
        same = digest_files(cut) == digest_files(whole) and resumed_code == code
        lines = (cut / "out.jsonl").read_bytes().count(b"\n")
        print(f"resumed output: {lines:,} records, exit code {resumed_code}, {'identical' if same else 'DIFFERENT'}")
        result = {
            "benchmark": "resume_kill",
            "records": given.records,
            "workers": given.workers,
            "kills": kills,
            "seed": given.seed,
            "seconds_unbroken": round(seconds, 2),
            "records_written": lines,
            "files_compared": sorted(digest_files(whole)),
            "identical": same,
        }
        print(json.dumps(result))
        return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
