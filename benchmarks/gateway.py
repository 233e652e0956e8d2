"""What the LLM gateway adds to the time of a request, beside the same requests sent straight to the upstream.

usage: python benchmarks/gateway.py FILE... [--prompts 60] [--characters 2000] [--clients 1 8] [--turns 8]

FILE is JSONL (field text), plain or gzipped; prompts are stretches of its texts that do not overlap, so that each is
new to the gateway. The upstream answers at once with the last message's first 400 characters, whole or one character
per event, and runs in a process of its own, as the gateway does (`allonym gateway --upstream`, policy "reversible").
Each prompt goes both ways, one after the other, the first way by turns; what is added is the difference of the two, in
one run. All share this machine's processors.

fresh       milliseconds added to a whole answer, for prompts not seen before, with so many clients at once
first       milliseconds added until the first characters of a streamed answer
held        characters that a streamed answer is behind the upstream at most, and the longest placeholder among them
turns       milliseconds added to the last turns of conversations that grow by a question of 200 and an answer of 400
            characters each turn, the whole history sent again

Prints a table and, last, one line of JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import httpx

UPSTREAM = """
import json, sys
import uvicorn
from starlette.applications import Starlette
from starlette.responses import JSONResponse, StreamingResponse
from starlette.routing import Route

END = chr(10) * 2

def event(delta, finish=None):
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return "data: " + json.dumps({"id": "c", "choices": [choice]}) + END

async def chat(request):
    body = await request.json()
    text = body["messages"][-1]["content"][:400]
    if not body.get("stream"):
        choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        return JSONResponse({"id": "c", "object": "chat.completion", "choices": [choice]})
    async def events():
        for sign in text:
            yield event({"content": sign})
        yield event({}, "stop") + "data: [DONE]" + END
    return StreamingResponse(events(), media_type="text/event-stream")

app = Starlette(routes=[Route("/v1/chat/completions", chat, methods=["POST"])])
uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="error", access_log=False)
"""


def read_texts(paths: Sequence[Path]) -> Iterator[str]:
    """The texts of some files."""
    for path in paths:
        opener = gzip.open if path.suffix == ".gz" else open
        with opener(path, "rt", encoding="utf-8") as lines:
            for line in lines:
                yield json.loads(line)["text"]


def cut_stretches(paths: Sequence[Path], count: int, size: int) -> list[str]:
    """So many different texts of ``size`` characters."""
    out: list[str] = []
    rest = ""
    for text in read_texts(paths):
        rest += text + "\n\n"
        while len(rest) >= size and len(out) < count:
            out.append(rest[:size])
            rest = rest[size:]
        if len(out) == count:
            return out
    raise SystemExit(f"there is text for {len(out)} prompts of {size} characters; {count} are needed")


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


@contextmanager
def run_server(arguments: Sequence[str], port: int, path: str) -> Iterator[str]:
    """The address of a server that is started as a process."""
    process = subprocess.Popen([sys.executable, *arguments], stderr=subprocess.DEVNULL)
    address = f"http://127.0.0.1:{port}"
    try:
        for _ in range(600):
            if process.poll() is not None:
                raise SystemExit(f"{arguments[:3]} ended with {process.returncode}")
            try:
                httpx.get(address + path, timeout=1)
                break
            except httpx.HTTPError:
                time.sleep(0.05)
        yield address
    finally:
        process.terminate()
        process.wait(20)


def make_request_body(messages: list[dict[str, str]], **more: Any) -> dict[str, Any]:
    """A request."""
    return {"model": "echo", "messages": messages, **more}


async def timed(http: httpx.AsyncClient, address: str, asked: dict[str, Any]) -> float:
    """Milliseconds until the whole answer is there."""
    start = time.perf_counter()
    answer = await http.post(f"{address}/v1/chat/completions", json=asked)
    took = (time.perf_counter() - start) * 1000
    said = answer.json()["choices"][0]["message"]["content"]
    assert said and not re.search(r"<PERSON \d+>", said), "a placeholder was left"  # at 400 characters one may be cut
    return took


async def first(http: httpx.AsyncClient, address: str, asked: dict[str, Any]) -> float:
    """Milliseconds until the first characters of a streamed answer are there."""
    start = time.perf_counter()
    took = 0.0
    text = ""
    async with http.stream("POST", f"{address}/v1/chat/completions", json=asked) as answer:
        async for line in answer.aiter_lines():
            if line.startswith("data: {"):
                text += json.loads(line[6:])["choices"][0]["delta"].get("content") or ""
                took = took or (time.perf_counter() - start) * 1000 * bool(text)
    assert text and not re.search(r"<PERSON \d+>", text), "a placeholder was left"
    return took


async def added(way: Any, ways: Sequence[str], requests: Sequence[dict[str, Any]], clients: int) -> list[float]:
    """What the gateway adds to each request, with so many clients at once."""
    out: list[float] = []
    waiting = list(enumerate(requests))

    async def client() -> None:
        async with httpx.AsyncClient(timeout=60, trust_env=False) as http:
            while waiting:
                n, asked = waiting.pop()
                took = {}
                for address in ways if n % 2 else ways[::-1]:
                    took[address] = await way(http, address, asked)
                out.append(took[ways[1]] - took[ways[0]])

    await asyncio.gather(*(client() for _ in range(clients)))
    return out


def measure_held_back(prompts: Sequence[str]) -> tuple[int, int]:
    """How many characters a restored stream is behind at most, and the longest placeholder."""
    from allonym.pipeline import anonymize
    from allonym.restoration import Restorer

    most = longest = 0
    for prompt in prompts:
        made = anonymize(prompt, "reversible")
        longest = max([longest, *(len(edit.replacement.strip()) for edit in made.plan.edits)])
        arriving = Restorer.from_plan(made.plan).arriving()
        waiting = ""
        for sign in made.text:
            waiting += sign
            if arriving.feed(sign):
                most = max(most, len(waiting) - 1)
                waiting = ""
    return most, longest


def make_conversations(prompts: Sequence[str], turns: int) -> list[list[dict[str, Any]]]:
    """Requests of conversations, turn by turn."""
    out = []
    for prompt in prompts:
        pieces = [prompt[i : i + 200] for i in range(0, 600 * turns, 200)]
        messages: list[dict[str, str]] = []
        asked = []
        for turn in range(turns):
            messages = [*messages, {"role": "user", "content": pieces[3 * turn]}]
            asked.append(make_request_body(messages))
            messages = [*messages, {"role": "assistant", "content": pieces[3 * turn + 1] + pieces[3 * turn + 2]}]
        out.append(asked)
    return out


def find_median_and_p95(values: Sequence[float]) -> tuple[float, float]:
    """Median and 95th percentile."""
    ordered = sorted(values)
    return round(median(ordered), 1), round(ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))], 1)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("files", type=Path, nargs="+", metavar="FILE")
    options.add_argument("--prompts", type=int, default=60)
    options.add_argument("--characters", type=int, default=2000)
    options.add_argument("--clients", type=int, nargs="+", default=[1, 8])
    options.add_argument("--turns", type=int, default=8)
    given = options.parse_args()
    rounds = len(given.clients) + 1
    prompts = cut_stretches(given.files, given.prompts * rounds, given.characters)
    size = 600 * given.turns
    talks = cut_stretches(given.files, len(prompts) * given.characters // size + 9, size)[-8:]  # behind the prompts
    figures: dict[str, Any] = {}
    upstream, port = free_port(), free_port()
    gateway = ["-m", "allonym", "gateway", "--upstream", f"http://127.0.0.1:{upstream}/v1", "--port", str(port)]
    with (
        run_server(["-c", UPSTREAM, str(upstream)], upstream, "/") as straight,
        run_server(gateway, port, "/healthz") as through,
    ):
        ways = (straight, through)
        asyncio.run(added(timed, ways, [make_request_body([{"role": "user", "content": "Hello"}])] * 20, 1))
        for n, clients in enumerate(given.clients):
            some = prompts[n * given.prompts : (n + 1) * given.prompts]
            requests = [make_request_body([{"role": "user", "content": one}]) for one in some]
            start = time.perf_counter()
            figures[f"fresh, {clients} at once"] = find_median_and_p95(
                asyncio.run(added(timed, ways, requests, clients))
            )
            figures[f"rate, {clients} at once"] = round(len(some) / (time.perf_counter() - start), 1)
        some = prompts[-given.prompts :]
        requests = [make_request_body([{"role": "user", "content": one}], stream=True) for one in some]
        figures["first"] = find_median_and_p95(asyncio.run(added(first, ways, requests, 1)))
        late = []
        for asked in make_conversations(talks, given.turns):
            late += asyncio.run(added(timed, ways, asked, 1))[given.turns // 2 :]
        figures["turns"] = find_median_and_p95(late)
    most, longest = measure_held_back(some[:10])
    figures["held"], figures["longest placeholder"] = most, longest
    for name, value in figures.items():
        shown = "median {} ms, 95 % {} ms".format(*value) if isinstance(value, tuple) else value
        print(f"{name:22} {shown}")
    print(json.dumps({re.sub(r"\W+", "_", name): value for name, value in figures.items()}))


if __name__ == "__main__":
    main()
