"""Kill the server, or the process of a job, at random moments; start it again; compare with jobs nobody disturbed.

    python benchmarks/jobs_kill.py --moments 20 --events 20 --records 3000 --seed 1

At each moment three jobs are under way: files anonymised without a vault, a file with one, and a swap of a corpus.
After the moments come the events: a process is killed in front of a call that changes a file of the server, drawn
between its first and its 600th; not every process makes so many (needs ``cc``).
Each must end complete, its results must be the bytes of an undisturbed job, the vault's scope must hold what it held
then, and there must be three jobs, not more. Prints a table and, as the last line, the result as JSON. Ends with exit
code 1 where anything differs.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx

sys.path.append(str(Path(__file__).resolve().parents[1]))

RULES = {"name": "default", "detectors": ["rules"]}
SYLLABLES = "qua fen bro dal mir tos vel kan rup sil ong tre lum gar nox pim ved hax jol bri sut wem zor cly".split()
SENTENCES = (
    "Revenue grew {n} percent, and margins widened, because {a} bought more from us than last year.",
    "Our engineers worked together with {b} on a new process, and {a} paid for the line.",
    "The plant opened in spring, where {b} leads the supply chain for {c}.",
    "Customers such as {a} and {c} moved their work to the cloud with our platform.",
)
VOLATILE = ("seconds", "timings", "versions")
"""What tells of the run and not of the texts: how long it took."""


def make_records(count: int, seed: int) -> bytes:
    """Records with identifiers, some of which come back."""
    draw = random.Random(seed)
    lines = []
    for i in range(count):
        text = (
            f"Record {i}: write to user{draw.randrange(count // 2 + 1)}@example.com "
            f"or call 415-555-{draw.randrange(10**4):04}. Card 4111 1111 1111 1111."
        )
        lines.append(json.dumps({"id": f"r{i}", "text": text + " Nothing else was said." * draw.randrange(6)}) + "\n")
    return "".join(lines).encode()


def invent_calls(documents: int, seed: int) -> tuple[bytes, dict[str, Any]]:
    """Calls of invented companies, and the options by which a swap of them is quick."""
    draw = random.Random(seed)

    def name() -> str:
        return "".join(draw.choice(SYLLABLES) for _ in range(3)).capitalize() + " Ltd"

    shared, names, lines = [name() for _ in range(4)], set(), []
    for d in range(documents):
        own = [name() for _ in range(6)]
        names.update(own, shared)
        text = " ".join(
            SENTENCES[k % len(SENTENCES)].format(
                n=draw.randrange(2, 40), **{k: draw.choice([*own, *shared]) for k in "abc"}
            )
            for k in range(24)
        )
        company = f"{''.join(draw.choice(SYLLABLES) for _ in range(3)).capitalize()} Plc"
        lines.append(json.dumps({"id": f"c{d}", "company": company, "text": f"Welcome to {company}. {text}"}) + "\n")
    policy = {"name": "swap", "detectors": ["rules", "lexicon"], "dictionary": {"ORGANIZATION": sorted(names)}}
    options = {
        "protect": "company", "fields": ["text"], "policy": policy, "embedder": "lsa", "clusters": 4, "restarts": 1,
        "swap_size": 1, "draws": 2, "points": 5, "min_size": 60, "max_size": 200, "runs": 2,
        "fallback": {"*": "pseudonym"},
    }  # fmt: skip
    return "".join(lines).encode(), options


@dataclass(slots=True)
class Server:
    """A real server on a data folder, started anew after each kill."""

    data: Path
    workers: int = 2
    process: subprocess.Popen[str] | None = None
    url: str = ""
    key: str = ""
    resent: int = 0
    client: httpx.Client = field(default_factory=lambda: httpx.Client(timeout=60.0))

    def start(self, environment: Mapping[str, str] | None = None) -> float:
        """Start it, in a changed environment, and wait until it answers; seconds that took."""
        began = time.monotonic()
        command = [sys.executable, "-m", "allonym", "serve", "--data", str(self.data), "--port", "0", "--workers", "1"]
        command += ["--rate", "0", "--job-workers", str(self.workers), "--no-access-log"]
        self.process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True,
            env={**os.environ, **(environment or {})},
        )  # fmt: skip
        assert self.process.stderr is not None
        token = ""
        for line in self.process.stderr:
            if made := re.search(r"token=(\S+)", line):
                token = made[1]
            if serving := re.search(r"serving at (\S+)", line):
                self.url = serving[1]
                break
        while True:
            try:
                if self.client.get(f"{self.url}/readyz").status_code == 200:
                    break
            except httpx.TransportError:
                pass
            if self.process.poll() is not None:
                raise SystemExit(f"the server ended with {self.process.returncode}")
            time.sleep(0.05)
        if token:
            self._account(token)
        return time.monotonic() - began

    def _account(self, token: str) -> None:
        who = {"name": "admin", "password": "a password only for this"}
        self.client.post(f"{self.url}/v1/setup", json={"token": token, **who}).raise_for_status()
        self.client.post(f"{self.url}/v1/session", json=who).raise_for_status()
        csrf = self.client.get(f"{self.url}/v1/session").json()["csrf"]
        body = {"name": "kill", "permissions": ["jobs", "anonymize", "restore", "admin"], "days": None}
        made = self.client.post(f"{self.url}/v1/keys", json=body, headers={"X-CSRF-Token": csrf})
        made.raise_for_status()
        self.key = made.json()["key"]
        self.client.close()
        self.client = httpx.Client(timeout=60.0, headers={"Authorization": f"Bearer {self.key}"})

    def call(self, method: str, path: str, **more: Any) -> Any:
        """A request and its JSON."""
        done = self.client.request(method, f"{self.url}/v1/{path}", **more)
        done.raise_for_status()
        return done.json() if done.content else None

    def submit(self, kind: str, options: Mapping[str, Any], **files: bytes) -> str:
        """A job; its id."""
        sent = [("files", (name.replace("_", "."), data)) for name, data in files.items()]
        made = self.call("POST", "jobs", data={"kind": kind, "options": json.dumps(options)}, files=sent)
        return str(made["id"])

    def submit_again(self, kind: str, options: Mapping[str, Any], **files: bytes) -> str:
        """The same; where the server is killed meanwhile, it is started anew, and the job sent once more."""
        try:
            return self.submit(kind, options, **files)
        except httpx.TransportError:
            self.start_after_kill()
            self.resent += 1
            return self.submit(kind, options, **files)

    def start_after_kill(self) -> bool:
        """Start it if it was killed; whether it was."""
        assert self.process is not None
        was_killed = self.process.poll() is not None
        if was_killed:
            self._gone()
            self.start()
        return was_killed

    def done(self, id: str, within: float = 600.0) -> dict[str, Any]:
        """The job when it has ended."""
        until = time.monotonic() + within
        while (job := self.call("GET", f"jobs/{id}"))["state"] in ("queued", "running"):
            if time.monotonic() > until:
                return dict(job)
            time.sleep(0.1)
        return dict(job)

    def results(self, job: Mapping[str, Any]) -> dict[str, str]:
        """Name to digest of each result, without what tells of the run alone."""
        out = {}
        for one in job["results"]:
            name = one["name"]
            found = self.client.get(f"{self.url}/v1/jobs/{job['id']}/results/{name}")
            found.raise_for_status()
            data = found.content
            if name in ("report.json", "numbers.json"):
                told = json.loads(data)
                told.get("settings", {}).pop("scoped", None)  # each moment has a scope of its own
                data = json.dumps({k: v for k, v in told.items() if k not in VOLATILE}, sort_keys=True).encode()
            if name != "report.html":  # the numbers are compared, which it shows
                out[name] = sha256(data).hexdigest()
        return out

    def children(self) -> list[int]:
        """The processes of jobs that live."""
        assert self.process is not None
        return [pid for pid, parent in job_processes() if parent == self.process.pid]

    def kill(self) -> None:
        """kill -9 of the server alone."""
        assert self.process is not None
        os.kill(self.process.pid, signal.SIGKILL)
        self._gone()

    def stop(self) -> None:
        """SIGTERM, and wait."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self._gone()

    def _gone(self) -> None:
        assert self.process is not None and self.process.stderr is not None
        self.process.wait()
        self.process.stderr.close()


def job_processes() -> list[tuple[int, int]]:
    """(process, its parent) of all processes of jobs on this machine."""
    found = []
    for place in Path("/proc").iterdir():
        try:
            if place.name.isdigit() and b"allonym.server.jobs.child" in (place / "cmdline").read_bytes():
                found.append((int(place.name), int((place / "stat").read_text().rpartition(")")[2].split()[1])))
        except (OSError, IndexError):
            continue  # it ended meanwhile
    return found


def list_vault_contents(server: Server, scope: str) -> list[tuple[str, str]]:
    """What the vault holds in a scope."""
    from allonym.vault import Vault, secret_from_file

    with Vault.open(server.data / "vault.sqlite", secret_from_file(server.data / "secret")) as vault:
        return sorted((one.replacement, one.original) for one in vault.known(scope))


def compare_killed_jobs(
    moments: int, count: int, documents: int, seed: int, folder: Path, events: int = 0
) -> dict[str, Any]:
    """All of it; the result as plain values."""
    server = Server(folder / "data")
    try:
        server.start()
        layer = None
        if events:
            from benchmarks.chaos import build_fault_layer

            layer = build_fault_layer(folder)
        return measure_server(server, moments, count, documents, seed, events, layer)
    finally:
        server.stop()
        server.client.close()


def kill_at_event(
    server: Server, submit: Any, scope: str, at: int, program: str, layer: Path
) -> tuple[list[Any], bool]:
    """Run jobs while a process is killed at an event; the ended jobs, and whether it was the server."""
    once = layer.with_name("once")
    once.touch()
    server.stop()
    environment = {"CHAOS_PROGRAM": program, "CHAOS_ONCE": str(once), "CHAOS_FOLDER": str(server.data)}
    was_killed = False
    try:
        server.start({**environment, "CHAOS_AT": str(at), "LD_PRELOAD": str(layer)})
    except SystemExit:
        was_killed = True  # as it started
        server.start()
    ids = submit(scope)
    while True:
        try:
            ended = [server.done(id) for id in ids]
            break
        except httpx.TransportError:
            was_killed = server.start_after_kill() or was_killed
    server.stop()
    server.start()  # without faults
    return ended, was_killed or server.resent > 0


def measure_server(
    server: Server, moments: int, count: int, documents: int, seed: int, events: int = 0, layer: Path | None = None
) -> dict[str, Any]:
    """The same, with a server that runs."""
    draw = random.Random(seed)
    rows, (calls, options) = make_records(count, seed), invent_calls(documents, seed)

    def submit(scope: str) -> list[str]:
        plain = {"policy": RULES, "fields": ["text"], "plans": True}
        return [
            server.submit_again(
                "anonymize", plain, a_jsonl=rows, b_jsonl=rows[: len(rows) // 2].rpartition(b"\n")[0] + b"\n"
            ),
            server.submit_again("anonymize", {**plain, "scope": scope}, rows_jsonl=rows),
            server.submit_again("swap", options, calls_jsonl=calls),
        ]

    began = time.monotonic()
    first = [server.done(id) for id in submit("undisturbed")]
    seconds = time.monotonic() - began
    if [job["state"] for job in first] != ["done"] * 3:
        raise SystemExit(f"undisturbed jobs ended otherwise: {[(j['state'], j['error']) for j in first]}")
    whole, held = [server.results(job) for job in first], list_vault_contents(server, "undisturbed")
    for job in first:
        server.call("DELETE", f"jobs/{job['id']}")
    print(f"undisturbed: 3 jobs, {seconds:.1f} s, {sum(map(len, whole))} results, {len(held):,} vault entries")
    print(f"{'moment':>6} {'killed':>8} {'at':>8} {'running':>8} {'orphans':>8} {'states':>16} same")
    failed = orphans = killed = 0
    for moment in range(1, moments + events + 1):
        what = "job" if moment % 3 == 0 else "server"
        wait, scope, at_work, left, server.resent = draw.uniform(0.1, seconds), f"moment {moment}", [], 0, 0
        if moment <= moments:
            jobs = submit(scope)
            time.sleep(wait)
            at_work = server.children()
        if moment > moments:
            assert layer is not None
            wait, program = round(600 ** draw.random()), "jobs.child" if what == "job" else "allonym serve"
            ended, was_killed = kill_at_event(server, submit, scope, int(wait), program, layer)
            killed += was_killed
        elif what == "server":
            server.kill()
            server.start()  # at once: processes of the one before may live a moment longer
            left = len([pid for pid, _ in job_processes() if pid in at_work])
        else:
            for pid in at_work[:1]:
                os.kill(pid, signal.SIGKILL)
        if moment <= moments:
            ended = [server.done(id) for id in jobs]
        total = server.call("GET", "jobs")["total"]
        found = [server.results(job) if job["state"] == "done" else {} for job in ended]
        other = sorted({n for a, b in zip(found, whole, strict=True) for n in {**a, **b} if a.get(n) != b.get(n)})
        other += ["vault"] * (list_vault_contents(server, scope) != held)
        other += ["number of jobs"] * (not 3 <= total <= 3 + server.resent)
        same = not other
        failed, orphans = failed + (not same), orphans + left
        states = "/".join(job["state"] for job in ended)
        print(
            f"{moment:>6} {what:>8} {wait:>8.2f} {len(at_work):>8} {left:>8} {states:>16} {'yes' if same else 'NO':>5}",
            *other[:5],
            flush=True,
        )
        for job in server.call("GET", "jobs")["jobs"]:
            server.call("DELETE", f"jobs/{server.done(job['id'])['id']}")
    left_over = sorted(p.name for p in (server.data / "jobs").iterdir() if p.is_dir())
    return {
        "benchmark": "jobs_kill",
        "moments": moments,
        "events": events,
        "servers_killed_at_events": killed,
        "records": count,
        "documents": documents,
        "seed": seed,
        "seconds_undisturbed": round(seconds, 2),
        "jobs": 3 * (moments + events),
        "different": failed,
        "orphans": orphans,
        "folders_left": len(left_over),
    }


def main() -> int:
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("--moments", type=int, default=20)
    given.add_argument("--events", type=int, default=0)
    given.add_argument("--records", type=int, default=3000)
    given.add_argument("--documents", type=int, default=6)
    given.add_argument("--seed", type=int, default=1)
    told = given.parse_args()
    with tempfile.TemporaryDirectory() as name:
        result = compare_killed_jobs(told.moments, told.records, told.documents, told.seed, Path(name), told.events)
    print(json.dumps(result))
    return 1 if result["different"] or result["orphans"] or result["folders_left"] else 0


if __name__ == "__main__":
    sys.exit(main())
