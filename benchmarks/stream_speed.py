"""How long annotation takes while somebody types, over the WebSocket of a real server.

usage: python benchmarks/stream_speed.py [--workers 2] [--versions 100] [--others]

A text of 2,000 characters grows by a character in its middle, ``--versions`` times, each sent when the one before has
been answered; then one of 100,000 characters, ten times. Times are from sending to the answer, as a page sees them.
``--others``: another client keeps a text of 100,000 characters at work meanwhile, as far as the 2,000 are concerned.
Texts are the made-up calls that come with allonym. Prints a small table and, last, one line of JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import quantiles
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.service_round_trip import run_server
from websockets.sync.client import ClientConnection, connect

EXAMPLES = Path(__file__).resolve().parents[1] / "src" / "allonym" / "examples" / "calls.jsonl"


def make_text(size: int) -> str:
    """Calls one after the other, each time with other letters where they repeat."""
    calls = "\n".join(json.loads(line)["text"] for line in EXAMPLES.read_text("utf-8").splitlines())
    out = calls
    while len(out) < size:
        out += "\n" + calls.replace("a", "ao", len(out) % 97)
    return out[:size]


@contextmanager
def open_stream(url: str, key: str) -> Iterator[ClientConnection]:
    """A stream that annotates."""
    place = url.replace("http", "ws", 1) + "/v1/stream"
    with connect(place, additional_headers={"Authorization": f"Bearer {key}"}, max_size=1 << 26) as socket:
        socket.send(json.dumps({"type": "open", "mode": "annotate"}))
        yield socket


def time_answer(socket: ClientConnection, version: int, text: str) -> float:
    """Milliseconds until a version is answered."""
    begun = time.perf_counter()
    socket.send(json.dumps({"type": "text", "version": version, "text": text}))
    answer = json.loads(socket.recv(timeout=120))
    if answer.get("version") != version or answer["type"] != "spans":
        raise SystemExit(f"an answer of the type {answer['type']}")
    return (time.perf_counter() - begun) * 1000


def time_typing(socket: ClientConnection, text: str, versions: int) -> list[float]:
    """The first answer's time, then those of each further version."""
    middle = len(text) // 2
    return [time_answer(socket, i, text[:middle] + "x" * i + text[middle:]) for i in range(versions + 1)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--versions", type=int, default=100)
    parser.add_argument("--others", action="store_true")
    args = parser.parse_args()
    out: dict[str, Any] = {"benchmark": "stream_speed", "workers": args.workers, "others": args.others}
    out["load_before"] = os.getloadavg()[0]
    with run_server(args.workers, "detect") as (url, key):
        over = threading.Event()

        def other() -> None:
            with open_stream(url, key) as socket:
                long, version = make_text(100_000), 0
                while not over.is_set():
                    time_answer(socket, version, long + " x" * version)
                    version += 1

        busy = threading.Thread(target=other)
        if args.others:
            busy.start()
        with open_stream(url, key) as socket:
            for size, versions in ((2_000, args.versions), (100_000, 10)):
                first, *times = time_typing(socket, make_text(size), versions)
                over.set()
                shares = quantiles(times, n=20)
                row = {"first": first, "p50": shares[9], "p95": shares[18], "worst": max(times)}
                out[str(size)] = {name: round(value, 1) for name, value in row.items()}
                print(f"{size:8} characters: " + ", ".join(f"{name} {value:.0f} ms" for name, value in row.items()))
        if args.others:
            busy.join()
    print(json.dumps(out))


if __name__ == "__main__":
    main()
