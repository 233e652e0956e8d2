"""The Ray runner: one worker against two, memory of the driver, bytes, and workers that are killed.

    python benchmarks/ray_scale.py efficiency [FILE] [--documents 20000] [--rounds 2]
    python benchmarks/ray_scale.py memory [--sizes 2000 20000 200000]
    python benchmarks/ray_scale.py kills [FILE] [--documents 20000] [--kills 5] [--seed 1]

FILE holds JSON lines with a "text", which are repeated up to the number of documents; without it they are made up.

efficiency: the default policy, tagger and all, with one worker and with two, alternately on one cluster of two
processors; seconds from the call to the return, so that starting the workers and loading the model count and starting
the cluster does not. Efficiency is seconds of one over twice the seconds of two. The bytes are compared with those of
``anonymize_path`` with one process and without Ray, which is timed too.
memory: the peak of the driver, a process of its own for each size, with rules alone, and its processor time, for each
slice that it hands out too. Its workers are not counted.
kills: a worker is killed (SIGKILL) at random moments of a run with rules alone; the bytes are those of a run that
nobody disturbed.

Prints a table and, last, one line of JSON. Ends with exit code 1 where any output differs.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

FIRST = "Anna Boris Clara Dmitri Elena Farid Grace Hanif Ingrid Jonas Kavita Liam Mara Noor Oscar Priya".split()
LAST = "Abbott Baker Castillo Dhillon Ekström Fischer Gupta Hughes Ivanova Jansen Kowalski Lopez Moreau Nakata".split()
PLACES = "Leeds Toulouse Austin Kraków Osaka Durban Perth Quito".split()
SAID = (
    "{first} {last} called on {day} March 2021 from {place} and asked about the invoice.",
    "You can write to {first}.{last}@example.com or ring 212-555-01{day}.",
    "The delivery to {place} was late again, and nobody had told the customer.",
    "{last} will look into it with {other} {last2} before the end of the week.",
    "Nothing else of note was said, and the ticket stays open until somebody answers.",
)


def make_documents(count: int, file: Path | None = None, seed: int = 7) -> Iterator[dict[str, object]]:
    """Documents with an id and a text of about 300 characters, or those of a file as often as it takes."""
    if file is not None:
        texts = [json.loads(line)["text"] for line in file.open(encoding="utf-8") if line.strip()]
        yield from ({"id": i, "text": texts[i % len(texts)]} for i in range(count))
        return
    draw = random.Random(seed)
    for i in range(count):
        words = {"first": draw.choice(FIRST), "last": draw.choice(LAST), "place": draw.choice(PLACES)}
        words |= {"other": draw.choice(FIRST), "last2": draw.choice(LAST), "day": str(draw.randrange(10, 29))}
        said = [line.format(**words) for line in draw.sample(SAID, draw.randrange(3, 6))]
        yield {"id": i, "text": " ".join(said)}


def write_documents(path: Path, count: int, file: Path | None = None) -> None:
    with path.open("w", encoding="utf-8") as out:
        out.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in make_documents(count, file))


def digest_file(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def make_policy() -> object:
    from allonym.policy import Policy

    return Policy.load("default").with_(detectors=("rules", "spoken", "lexicon", "speakers"))


def measure_efficiency(given: argparse.Namespace, top: Path) -> dict[str, object]:
    from allonym.files import anonymize_path
    from allonym.scale import anonymize_on_ray
    from allonym.scale.cluster import connect_ray

    write_documents(top / "in.jsonl", given.documents, given.file)
    seconds: dict[str, list[float]] = {"processes": [], "1": [], "2": []}
    digests = set()
    began = time.monotonic()
    report = anonymize_path(top / "in.jsonl", top / "local.jsonl")
    seconds["processes"].append(time.monotonic() - began)
    digests.add(digest_file(top / "local.jsonl"))
    with connect_ray(2):
        for number in range(given.rounds):
            for workers in (1, 2) if number % 2 == 0 else (2, 1):
                began = time.monotonic()
                anonymize_on_ray(top / "in.jsonl", top / "ray.jsonl", workers=workers, overwrite=True)
                seconds[str(workers)].append(time.monotonic() - began)
                digests.add(digest_file(top / "ray.jsonl"))
    least = {name: min(each) for name, each in seconds.items()}
    value = least["1"] / (2 * least["2"])
    print(f"{report.documents:,} documents, {report.characters:,} characters, policy default; least of {given.rounds}")
    print(f"{'runner':<24}{'seconds':>9}{'documents/s':>13}")
    for name, shown in (("processes", "one process, no Ray"), ("1", "Ray, 1 worker"), ("2", "Ray, 2 workers")):
        print(f"{shown:<24}{least[name]:>9.1f}{report.documents / least[name]:>13,.0f}")
    print(f"efficiency {value:.3f}, bytes {'identical' if len(digests) == 1 else 'DIFFERENT'}")
    shown = {name: [round(s, 2) for s in each] for name, each in seconds.items()}
    same = len(digests) == 1
    return {"documents": report.documents, "seconds": shown, "efficiency": round(value, 4), "identical": same}


def run_driver(source: Path, target: Path) -> None:
    """The driver whose memory is measured."""
    from allonym.scale import anonymize_on_ray

    warnings.simplefilter("ignore")
    report = anonymize_on_ray(source, target, make_policy(), workers=2)  # type: ignore[arg-type]
    used = resource.getrusage(resource.RUSAGE_SELF)
    row = {"documents": report.documents, "seconds": report.seconds, "peak_mb": round(used.ru_maxrss / 1024, 1)}
    print(json.dumps(row | {"driver_s": round(used.ru_utime + used.ru_stime, 2)}))


def measure_memory(given: argparse.Namespace, top: Path) -> dict[str, object]:
    from allonym.scale.partitions import choose_slice_size

    rows = []
    print(f"{'documents':>10}{'source MB':>11}{'seconds':>9}{'driver peak MB':>16}{'driver CPU s':>14}{'slices':>8}")
    for size in given.sizes:
        write_documents(top / "in.jsonl", size)
        command = [sys.executable, __file__, "one", str(top / "in.jsonl"), "--target", str(top / f"{size}.jsonl")]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        row = json.loads(done.stdout.splitlines()[-1])
        rows.append(row)
        large = (top / "in.jsonl").stat().st_size
        row["slices"] = -(-large // choose_slice_size(large))
        told = f"{row['documents']:>10,}{large / 1e6:>11.1f}{row['seconds']:>9.1f}{row['peak_mb']:>16.1f}"
        print(f"{told}{row['driver_s']:>14.2f}{row['slices']:>8,}")
    first, last = rows[0], rows[-1]
    each = (last["driver_s"] - first["driver_s"]) / max(1, last["slices"] - first["slices"])
    print(f"the driver needs {1000 * each:.1f} ms of processor time for a slice")
    growth = round(last["peak_mb"] / first["peak_mb"], 4)
    return {"rows": rows, "growth": growth, "driver_s_per_slice": round(each, 5), "identical": True}


def list_worker_processes() -> list[int]:
    """The processes of the workers, from /proc."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if path.read_bytes().startswith(b"ray::_StepActor"):
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


def measure_kills(given: argparse.Namespace, top: Path) -> dict[str, object]:
    from allonym.files import anonymize_path
    from allonym.scale import anonymize_on_ray
    from allonym.scale.cluster import connect_ray

    draw = random.Random(given.seed)
    write_documents(top / "in.jsonl", given.documents, given.file)
    policy = make_policy()
    anonymize_path(top / "in.jsonl", top / "local.jsonl", policy, plans=top / "local.plans")  # type: ignore[arg-type]
    killed: list[float] = []
    with connect_ray(2):
        began = time.monotonic()
        anonymize_on_ray(top / "in.jsonl", top / "calm.jsonl", policy, plans=top / "calm.plans", workers=2)  # type: ignore[arg-type]
        calm = time.monotonic() - began
        moments = sorted(draw.uniform(0, calm) for _ in range(given.kills))
        over = threading.Event()

        def kill() -> None:
            start = time.monotonic()
            for moment in moments:
                if over.wait(max(0.0, moment - (time.monotonic() - start))):
                    return
                while not (found := list_worker_processes()) and not over.is_set():
                    time.sleep(0.05)
                if found:
                    os.kill(draw.choice(found), signal.SIGKILL)
                    killed.append(time.monotonic() - start)

        hand = threading.Thread(target=kill)
        hand.start()
        began = time.monotonic()
        anonymize_on_ray(top / "in.jsonl", top / "cut.jsonl", policy, plans=top / "cut.plans", workers=2)  # type: ignore[arg-type]
        disturbed = time.monotonic() - began
        over.set()
        hand.join()
    same = all(
        len({digest_file(top / f"{run}.{end}") for run in ("local", "calm", "cut")}) == 1 for end in ("jsonl", "plans")
    )
    print(
        f"{given.documents:,} documents, rules alone, 2 workers: {calm:.1f} s undisturbed, {disturbed:.1f} s disturbed"
    )
    print(f"workers killed after s: {', '.join(f'{s:.1f}' for s in killed)}")
    print(f"output and plans {'identical' if same else 'DIFFERENT'} to those of one process")
    shown = [round(s, 2) for s in killed]
    return {
        "documents": given.documents,
        "killed": shown,
        "seconds": [round(calm, 2), round(disturbed, 2)],
        "identical": same,
    }


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("what", choices=("efficiency", "memory", "kills", "one"))
    options.add_argument("file", nargs="?", type=Path)
    options.add_argument("--documents", type=int, default=20_000)
    options.add_argument("--rounds", type=int, default=2)
    options.add_argument("--sizes", type=int, nargs="+", default=[2_000, 20_000, 200_000])
    options.add_argument("--kills", type=int, default=5)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--target", type=Path, help=argparse.SUPPRESS)
    given = options.parse_args()
    warnings.simplefilter("ignore")
    if given.what == "one":
        run_driver(given.file, given.target)
        return 0
    with tempfile.TemporaryDirectory() as name:
        made = {"efficiency": measure_efficiency, "memory": measure_memory, "kills": measure_kills}[given.what](
            given, Path(name)
        )
    print(json.dumps({"benchmark": f"ray_scale {given.what}", **made}))
    return 0 if made["identical"] else 1


if __name__ == "__main__":
    sys.exit(main())
