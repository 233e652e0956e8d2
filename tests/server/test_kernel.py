"""The processes that detect: one dies, one works for nobody, all end with the server."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from multiprocessing import active_children
from pathlib import Path

import pytest

pytest.importorskip("fastapi")

from allonym.document import Document
from allonym.errors import PolicyError, RequestError
from allonym.server.kernel import Kernel, WorkerError
from allonym.server.processing import TextTask

pytestmark = pytest.mark.slow

RULES = '{"confidence": null, "detectors": ["rules"], "dictionary": {}, "exclude": {}, "name": "default", "off": [], "operators": {}, "toml": null}'
LOOP = asyncio.Runner()
TASK = TextTask(Document("", "Write to ada.brook@example.com"), RULES)


@pytest.fixture(scope="module")
def kernel():
    made = Kernel(2, RULES, 9)
    LOOP.run(made.start())
    yield made
    made.close()


def who() -> int:
    return os.getpid()


def slowly(seconds: float) -> int:
    time.sleep(seconds)
    return os.getpid()


def dying(path: str, times: int) -> str:
    """End without a word, so often."""
    with open(path, "a", encoding="utf-8") as file:
        file.write(".")
    if Path(path).stat().st_size <= times:
        os.kill(os.getpid(), signal.SIGKILL)
    return "lived"


def refusing() -> None:
    raise PolicyError("policy: threshold must be a number")


def failing() -> None:
    raise KeyError("Ada Brook's secret")


def big() -> bytes:
    return bytes(20_000_000)


async def until_it_ended(process: int) -> None:
    for _ in range(200):
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return
        await asyncio.sleep(0.05)
    raise AssertionError("a worker lives on")


def test_finds(kernel):
    spans = LOOP.run(kernel.run(TextTask.get_or_detect_spans, TASK))
    assert [(s.label, s.start, s.end) for s in spans] == [("EMAIL_ADDRESS", 9, 30)]
    assert LOOP.run(kernel.run(TextTask.anonymize, TASK)).text == "Write to [EMAIL_ADDRESS_1]"


def test_as_many_work_at_once_as_there_are(kernel):
    async def all_of_them():
        return await asyncio.gather(*(kernel.run(slowly, 0.3) for _ in range(6)))

    assert len(set(LOOP.run(all_of_them()))) == 2


def test_where_many_wait_further_ones_are_refused_at_once():
    kernel = Kernel(1, RULES, 2)

    async def crowd():
        await kernel.start()
        waiting = [asyncio.create_task(kernel.run(slowly, 0.2)) for _ in range(3)]
        await asyncio.sleep(0.05)
        with pytest.raises(RequestError) as refused:
            await kernel.run(who)
        assert (refused.value.status, refused.value.code, refused.value.retry_after) == (503, "Busy", 5)
        return await asyncio.gather(*waiting), await kernel.run(who)

    try:
        done, later = LOOP.run(crowd())
    finally:
        kernel.close()
    assert {*done, later} == {later}


def test_the_process_that_worked_last_is_asked_first(kernel):
    """It remembers the text that a page has just sent."""

    async def ask() -> set[int]:
        return {await kernel.run(who) for _ in range(6)}

    assert len(LOOP.run(ask())) == 1


def test_errors_arrive_as_they_are_and_others_without_their_words(kernel, caplog):
    with pytest.raises(PolicyError, match="threshold"):
        LOOP.run(kernel.run(refusing))
    with pytest.raises(WorkerError) as caught:
        LOOP.run(kernel.run(failing))
    assert "KeyError" in str(caught.value) and "Ada" not in f"{caught.value!r}{caught.value.__cause__}{caplog.text}"
    assert len(LOOP.run(kernel.run(big))) == 20_000_000


def test_a_task_whose_process_died_is_done_again_once(kernel, tmp_path):
    assert LOOP.run(kernel.run(dying, str(tmp_path / "once"), 1)) == "lived"
    with pytest.raises(RequestError) as caught:
        LOOP.run(kernel.run(dying, str(tmp_path / "twice"), 2))
    assert caught.value.status == 503
    assert LOOP.run(kernel.run(TextTask.get_or_detect_spans, TASK))


def test_a_dying_process_takes_nobody_with_it(kernel, tmp_path):
    async def beside():
        slow = asyncio.create_task(kernel.run(slowly, 1.0))
        await asyncio.sleep(0.1)
        with pytest.raises(RequestError):
            await kernel.run(dying, str(tmp_path / "twice"), 9)
        return await slow

    before = {LOOP.run(kernel.run(who)) for _ in range(2)}
    assert LOOP.run(beside()) in before


def test_a_process_that_is_killed_from_outside_comes_again(kernel):
    for _ in range(4):
        os.kill(LOOP.run(kernel.run(who)), signal.SIGKILL)
    assert LOOP.run(kernel.run(TextTask.get_or_detect_spans, TASK))


def test_a_process_that_cannot_be_started_is_tried_again(monkeypatch):
    from multiprocessing.context import SpawnProcess

    kernel, begin, left = Kernel(1, RULES, 9), SpawnProcess.start, [2]

    def start(process):
        if left[0]:
            left[0] -= 1
            raise BlockingIOError(11, "Resource temporarily unavailable")
        begin(process)

    LOOP.run(kernel.start())
    worker = LOOP.run(kernel.run(who))
    os.kill(worker, signal.SIGKILL)
    LOOP.run(until_it_ended(worker))
    monkeypatch.setattr(SpawnProcess, "start", start)
    open_before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(RequestError) as caught:
        LOOP.run(kernel.run(who))
    assert caught.value.status == 503
    assert len(os.listdir("/proc/self/fd")) <= open_before
    kernel._lanes[0].kill()  # also where there is none
    assert LOOP.run(kernel.run(who))
    kernel.close()


def test_who_waits_no_more_holds_nobody_up(kernel):
    async def impatient():
        started = [asyncio.create_task(kernel.run(slowly, 300.0)) for _ in range(4)]
        await asyncio.sleep(0.5)
        for task in started:
            task.cancel()
        await asyncio.gather(*started, return_exceptions=True)
        return await asyncio.wait_for(kernel.run(TextTask.get_or_detect_spans, TASK), 60)

    assert LOOP.run(impatient())
    until = time.monotonic() + 10
    while kernel._free.qsize() < len(kernel._lanes):
        assert time.monotonic() < until
        time.sleep(0.01)


def test_a_process_that_loads_is_left_to_the_next_who_asks():
    """Otherwise nobody who waits shorter than it takes to load would ever get an answer."""
    kernel = Kernel(1, RULES, 9)

    async def ask_and_leave() -> set[int]:
        others = {p.pid for p in active_children()}
        asking = asyncio.create_task(kernel.run(who))
        while not (loading := {p.pid for p in active_children()} - others):
            await asyncio.sleep(0.001)
        asking.cancel()
        await asyncio.wait([asking])
        return loading

    assert LOOP.run(ask_and_leave()) == {LOOP.run(kernel.run(who))}
    kernel.close()


def test_what_cannot_be_loaded_is_told_at_the_start():
    kernel = Kernel(1, RULES.replace('"rules"', '"no such detector"'), 9)
    with pytest.raises(Exception, match="no such detector"):
        LOOP.run(kernel.start())
    kernel.close()


SERVER = f"""
import asyncio, os, sys, time
from allonym.server.kernel import Kernel

def who():
    return os.getpid()

if __name__ == "__main__":
    kernel = Kernel(2, {RULES!r}, 9)
    asyncio.run(kernel.start())
    print(*[lane.pid for lane in kernel._lanes], flush=True)
    time.sleep(300)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="POSIX")
def test_workers_end_when_the_server_is_killed(tmp_path):
    script = tmp_path / "server.py"
    script.write_text(SERVER, encoding="utf-8")
    with subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True) as server:
        workers = [int(one) for one in server.stdout.readline().split()]
        server.kill()
    assert len(workers) == 2
    for one in workers:
        LOOP.run(until_it_ended(one))
