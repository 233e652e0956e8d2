"""Many clients at once on a real ``allonym serve``: errors, mixed-up texts, memory, times; beside Presidio's analyzer.

    python benchmarks/server_load.py [--seconds 60] [--clients 64] [--presidio PYTHON]

Every text holds a marker of its own that must come back to its sender and to nobody else: from /v1/anonymize alone,
and with a scope of the vault and /v1/restore, which must bring the very text back. The load comes from this process, so
with two processors it takes its share of them. Then, one after the other on the same texts, /v1/detect with the default
policy, /v1/detect with rules alone, and the /analyze of Presidio where ``--presidio`` names the interpreter of an
environment with presidio-analyzer, flask and gunicorn: a service equal to Presidio's app.py, as many workers as ours
has. Without a model (spaCy's cannot be had offline) it runs on a blank English pipeline: patterns alone.

The last line is JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

WARM = 10.0
"""Seconds that are not measured."""
FILLER = (
    "We spoke about the delivery on 3 May 2021 and agreed on the price.",
    "My colleague {name} will call you at 212-555-0{digits} before noon.",
    "Please send the papers to 12 Elm Street, Springfield, IL 62704.",
    "The invoice of {amount} dollars was paid from 192.0.2.{byte} by mistake.",
    "Nobody at Quill & Daughters Ltd. knew about it, and {name} was surprised.",
    "It has been raining for days and the road to the mill is closed.",
    "Read https://example.org/report?id={digits} when you have a minute.",
)
NAMES = ("Ada Brook", "Cyd Dale", "Eve Farrow", "Sam Thorn", "Kim Hale", "Lou Marsh", "Ida Frost", "Ben Wold")
MARK = re.compile(r"mark-\d+x\d+")
PRESIDIO = """
import json, os, sys, tempfile
import spacy
from flask import Flask, jsonify, request
from presidio_analyzer import AnalyzerEngine, AnalyzerRequest
from presidio_analyzer.nlp_engine import NerModelConfiguration, SpacyNlpEngine

def create_app():
    place = os.path.join(tempfile.mkdtemp(), "blank")
    spacy.blank("en").to_disk(place)
    nlp = SpacyNlpEngine([{"lang_code": "en", "model_name": place}])
    nlp.load()
    engine = AnalyzerEngine(nlp_engine=nlp)
    app = Flask("presidio-analyzer")

    @app.route("/health")
    def health():
        return "ok"

    @app.route("/analyze", methods=["POST"])
    def analyze():
        asked = AnalyzerRequest(request.get_json())
        found = engine.analyze(text=asked.text, language=asked.language, score_threshold=asked.score_threshold,
            entities=asked.entities, return_decision_process=asked.return_decision_process,
            ad_hoc_recognizers=asked.ad_hoc_recognizers, context=asked.context)
        return app.response_class(json.dumps([one.to_dict() for one in found]), mimetype="application/json")

    return app
"""


def make_letter(mark: str, chance: random.Random, size: int) -> str:
    """A letter of about this many characters, with the mark in the open and in an address."""
    pieces = [f"Letter {mark}. Write to {mark}@example.com."]
    while sum(map(len, pieces)) < size:
        line = chance.choice(FILLER)
        pieces.append(
            line.format(
                name=chance.choice(NAMES),
                digits=chance.randint(100, 999),
                amount=chance.randint(100, 9999),
                byte=chance.randint(1, 254),
            )
        )
    return " ".join(pieces)


class Client:
    """One connection that stays open."""

    def __init__(self, port: int, key: str) -> None:
        self._port, self._key = port, key
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def post(self, path: str, body: Any) -> tuple[int, Any]:
        """Status and body of the response."""
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self._port, limit=1 << 24)
        reader, writer = self._streams
        content = json.dumps(body).encode()
        writer.write(
            f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {self._key}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n".encode()
            + content
        )
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        size = int(re.search(r"content-length: (\d+)", head)[1])  # type: ignore[index]
        told = await reader.readexactly(size)
        if "connection: close" in head:
            self.close()
        return int(head.split()[1]), json.loads(told)

    def close(self) -> None:
        """End the connection."""
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


class Tally:
    """What happened."""

    def __init__(self) -> None:
        self.times: list[float] = []
        self.errors: list[str] = []
        self.mixed = self.restored = self.asked = 0
        self.begun = time.perf_counter()

    def saw(self, mark: str, text: str, *, lost: bool = True) -> None:
        """A text came back: it holds another's mark, or (where ``lost``) not its own."""
        marks = set(MARK.findall(text))
        self.mixed += bool(marks - {mark}) or (lost and not marks)

    def told(self) -> dict[str, Any]:
        """Rate and percentiles, in milliseconds."""
        if not self.times:
            return {"requests": 0, "errors": len(self.errors), "kinds": sorted(set(self.errors))[:5]}
        cuts = statistics.quantiles(self.times, n=100)
        return {
            "requests": len(self.times),
            "rate": round(len(self.times) / (time.perf_counter() - self.begun), 1),
            "p50": round(cuts[49] * 1000, 1),
            "p95": round(cuts[94] * 1000, 1),
            "errors": len(self.errors),
            "kinds": sorted(set(self.errors))[:5],
            "mixed": self.mixed,
            **({"restored": round(self.restored / self.asked, 4)} if self.asked else {}),
        }


Act = Callable[[Client, str, str, int, Tally], Awaitable[None]]


async def timed(client: Client, tally: Tally, path: str, body: Any) -> Any:
    """The response of a request that is counted; None where it failed."""
    begun = time.perf_counter()
    try:
        status, told = await client.post(path, body)
    except (OSError, EOFError, ValueError) as error:
        client.close()
        tally.errors.append(type(error).__name__)
        return None
    tally.times.append(time.perf_counter() - begun)
    if status != 200:
        tally.errors.append(f"{status} {told['error']['code'] if isinstance(told.get('error'), dict) else ''}")
        return None
    return told


async def whole(client: Client, text: str, mark: str, number: int, tally: Tally) -> None:
    """Anonymise, every second time with a scope, from which the text must come back as it was."""
    if number % 2:
        told = await timed(client, tally, "/v1/anonymize", {"text": text, "originals": True})
        if told is not None:
            held = " ".join(edit["original"] for edit in told["plan"]["edits"])
            tally.saw(mark, f"{told['text']} {held}")
        return
    scope = f"load {mark.partition('x')[0]}"
    told = await timed(client, tally, "/v1/anonymize", {"text": text, "scope": scope})
    if told is None:
        return
    tally.saw(mark, told["text"], lost=False)  # it may be replaced
    back = await timed(client, tally, "/v1/restore", {"text": told["text"], "scope": scope, "plan": told["plan"]})
    if back is not None:
        tally.saw(mark, back["text"])
        tally.restored += back["text"] == text
        tally.asked += 1


def make_requests(path: str, more: dict[str, Any]) -> Act:
    """One request for each text."""

    async def act(client: Client, text: str, mark: str, number: int, tally: Tally) -> None:
        await timed(client, tally, path, {"text": text, **more})

    return act


async def load(port: int, key: str, act: Act, seconds: float, clients: int, size: int, seed: str) -> Tally:
    """All clients at once, each one text after the other; what ends in the first seconds is not counted."""
    tally, warming = Tally(), Tally()
    start = time.perf_counter()
    warm = min(WARM, seconds / 4)

    async def one(number: int) -> None:
        client, chance, n = Client(port, key), random.Random(f"{seed} {number}"), 0
        while (passed := time.perf_counter() - start) < seconds + warm:
            mark = f"mark-{number}x{n}"
            await act(client, make_letter(mark, chance, size), mark, n, warming if passed < warm else tally)
            n += 1
        client.close()

    async def begin_to_count() -> None:
        await asyncio.sleep(warm)
        tally.begun = time.perf_counter()

    await asyncio.gather(begin_to_count(), *(one(number) for number in range(clients)))
    tally.errors += warming.errors
    tally.mixed += warming.mixed
    return tally


def measure_memory(process: int) -> tuple[float, float]:
    """Resident megabytes of a process, and of it and all below it."""
    sizes: list[float] = []
    waiting = [process]
    while waiting:
        one = waiting.pop()
        try:
            pages = int(Path(f"/proc/{one}/statm").read_text().split()[1])
            sizes.append(pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20))
            for task in Path(f"/proc/{one}/task").iterdir():
                waiting += [int(child) for child in (task / "children").read_text().split()]
        except OSError:
            continue
    return sizes[0] if sizes else 0.0, sum(sizes)


async def sampled(process: int, into: list[tuple[float, float, float]]) -> None:
    """Memory each second, until cancelled."""
    begun = time.perf_counter()
    while True:
        into.append((time.perf_counter() - begun, *measure_memory(process)))
        await asyncio.sleep(1)


def describe_memory(samples: list[tuple[float, float, float]]) -> dict[str, Any]:
    """Megabytes of all processes and of the server's own, at the end of each minute, and growth in the last half."""
    late = [row for row in samples if row[0] > WARM]
    minutes = {int(at // 60): (round(own), round(total)) for at, own, total in late}
    half = late[len(late) // 2 :]
    own, total = (
        statistics.linear_regression([r[0] / 60 for r in half], [r[i] for r in half]).slope if len(half) > 1 else 0.0
        for i in (1, 2)
    )
    return {
        "server by minute": [own for own, _ in minutes.values()],
        "all by minute": [total for _, total in minutes.values()],
        "most": round(max(total for _, _, total in late)),
        "MB a minute, last half": {"server": round(own, 2), "all": round(total, 2)},
    }


def send_request(url: str, method: str = "GET", body: Any = None, **headers: str) -> Any:
    """A request without a client of its own, for setting up."""
    asked = urllib.request.Request(url, json.dumps(body).encode() if body is not None else None, headers, method=method)
    asked.add_header("Content-Type", "application/json")
    with urllib.request.urlopen(asked, timeout=60) as response:
        told = response.read()
        return json.loads(told) if told[:1] in b"{[" else told, response.headers


def start_server(folder: Path, workers: int) -> tuple[subprocess.Popen[bytes], int, str]:
    """A server of ours: process, port, an admin's key."""
    said = folder / "said.txt"
    given = ["--data", str(folder / "data"), "--port", "0", "--rate", "0", "--workers", str(workers)]
    with said.open("wb") as log:
        process = subprocess.Popen([sys.executable, "-m", "allonym", "serve", *given], stderr=log)
    url = link = ""
    for _ in range(1200):
        time.sleep(0.1)
        text = said.read_text(encoding="utf-8")
        if process.poll() is not None:
            raise SystemExit(text)
        if found := re.search(r"serving at (\S+)", text):
            url, link = found[1], re.search(r"setup\?token=(\S+)", text)[1]  # type: ignore[index]
            try:
                send_request(f"{url}/healthz")
                break
            except OSError:
                continue
    password = "a password for the load"
    send_request(f"{url}/v1/setup", "POST", {"token": link, "name": "load", "password": password})
    session, headers = send_request(f"{url}/v1/session", "POST", {"name": "load", "password": password})
    cookie = headers["set-cookie"].partition(";")[0]
    asked = {"name": "load", "permissions": ["detect", "anonymize", "restore"]}
    key, _ = send_request(f"{url}/v1/keys", "POST", asked, Cookie=cookie, **{"X-CSRF-Token": session["csrf"]})
    return process, int(url.rpartition(":")[2]), key["key"]


def start_presidio(python: str, folder: Path, workers: int) -> tuple[subprocess.Popen[bytes], int]:
    """A service equal to Presidio's: process and port."""
    (folder / "presidio_app.py").write_text(PRESIDIO, encoding="utf-8")
    port = 18_642
    given = ["-m", "gunicorn", "-w", str(workers), "-b", f"127.0.0.1:{port}", "presidio_app:create_app()"]
    with (folder / "presidio.txt").open("wb") as log:
        process = subprocess.Popen([python, *given], cwd=folder, stderr=log, stdout=log)
    for _ in range(1200):
        time.sleep(0.1)
        try:
            send_request(f"http://127.0.0.1:{port}/health")
            return process, port
        except OSError:
            if process.poll() is not None:
                raise SystemExit((folder / "presidio.txt").read_text(encoding="utf-8")) from None
    raise SystemExit("Presidio's service does not answer")


async def measure(given: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """All of it."""
    server, port, key = start_server(folder, given.workers)
    out: dict[str, Any] = {"clients": given.clients, "seconds": given.seconds, "characters": given.characters}
    out |= {"workers": given.workers, "processors": len(os.sched_getaffinity(0)), "busy": round(os.getloadavg()[0], 1)}
    try:
        samples: list[tuple[float, float, float]] = []
        sampling = asyncio.create_task(sampled(server.pid, samples))
        mixed = await load(port, key, whole, given.seconds, given.clients, given.characters, "whole")
        sampling.cancel()
        out["anonymise and restore"] = mixed.told()
        out["memory"] = describe_memory(samples)
        kinds = {
            "allonym, default": make_requests("/v1/detect", {}),
            "allonym, rules": make_requests("/v1/detect", {"policy": {"detectors": ["rules"]}}),
        }
        for name, act in kinds.items():
            done = await load(port, key, act, given.beside, given.clients, given.characters, "beside")
            out[name] = done.told()
    finally:
        server.terminate()
        server.wait(60)
    out["log"] = sorted(set(re.findall(r"unexpected \w+|Traceback", (folder / "said.txt").read_text(encoding="utf-8"))))
    if given.presidio:
        process, port = start_presidio(given.presidio, folder, given.workers)
        try:
            act = make_requests("/analyze", {"language": "en"})
            done = await load(port, key, act, given.beside, given.clients, given.characters, "beside")
            out["Presidio, patterns"] = done.told()
        finally:
            process.terminate()
            process.wait(60)
        for name in ("allonym, default", "allonym, rules"):
            out[name]["times the rate of Presidio"] = round(out[name]["rate"] / out["Presidio, patterns"]["rate"], 2)
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--beside", type=float, default=20, help="seconds of each comparison")
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--characters", type=int, default=1000)
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--presidio", help="an interpreter with presidio-analyzer, flask and gunicorn")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        out = asyncio.run(measure(given, Path(folder)))
    print(f"{'':24}{'requests/s':>11}{'p50 ms':>9}{'p95 ms':>9}{'errors':>8}{'mixed':>7}")
    for name, row in out.items():
        if isinstance(row, dict) and "rate" in row:
            print(f"{name:24}{row['rate']:11}{row['p50']:9}{row['p95']:9}{row['errors']:8}{row['mixed']:7}")
    for what, value in out["memory"].items():
        print(f"memory in MB, {what}: {value}")
    print(json.dumps(out))


if __name__ == "__main__":
    main()
