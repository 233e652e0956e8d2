"""Jobs that are interrupted: processes killed, servers stopped and killed, two servers on one folder, what is left."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from contextlib import contextmanager

import pytest
from anyio.to_thread import current_default_thread_limiter

for needed in ("argon2", "fastapi", "httpx", "multipart", "prometheus_client"):
    pytest.importorskip(needed)

from benchmarks.jobs_kill import compare_killed_jobs as killed  # noqa: E402
from benchmarks.jobs_kill import job_processes, make_records  # noqa: E402
from starlette.concurrency import run_in_threadpool  # noqa: E402

from allonym.errors import DatabaseError, RequestError  # noqa: E402
from allonym.files.state import State  # noqa: E402
from allonym.server.access import ROLES, Caller  # noqa: E402
from allonym.server.database import jobs as table  # noqa: E402
from allonym.server.database import users  # noqa: E402
from allonym.server.jobs import runner, swapping  # noqa: E402
from allonym.server.jobs.task import (  # noqa: E402
    Folder,
    InputFile,
    Spec,
    make_ending,
)
from allonym.server.services import open_services  # noqa: E402
from allonym.server.settings import Settings  # noqa: E402

pytestmark = pytest.mark.slow

ANN = Caller(1, "ann", "admin", frozenset(ROLES["admin"]))
ROWS = make_records(2500, 1)
SOURCE = {"toml": None, "confidence": None, "operators": {}, "off": [], "dictionary": {}, "exclude": {}}
OPTIONS = {"policy": {"name": "default", "detectors": ["rules"]}, "fields": ["text"]}


@contextmanager
def services(folder, **settings):
    made = open_services(Settings(data=folder, **settings))
    try:
        if made.accounts.has_no_users():
            row = {"id": ANN.id, "name": ANN.name, "role": ANN.role, "password": "", "active": True, "created": 0}
            with made.database.open_write_transaction() as connection:
                connection.execute(users.insert(), [row])
        yield made
    finally:
        made.jobs.runner.stop()
        made.vault.close()
        made.database.close()


def submit(jobs, data=ROWS, **options):
    with jobs.open_upload_folder() as folder:
        (folder.arriving / "1").write_bytes(data)
        texts = {"kind": "anonymize", "options": json.dumps({**OPTIONS, **options})}
        return jobs.make_job(ANN, texts, [InputFile("files", "rows.jsonl", "1", len(data))], folder).id


def until(met, within=240.0):
    end = time.monotonic() + within
    while not met():
        assert time.monotonic() < end
        time.sleep(0.02)


def ended(jobs, id):
    until(lambda: jobs.get_job(ANN, id).state not in ("queued", "running"))
    return jobs.get_job(ANN, id)


def at_work(jobs, id):
    """Wait until its process has done a part."""
    until(lambda: (job := jobs.get_job(ANN, id)).state == "running" and 0 < job.progress.done < job.progress.of)


def processes():
    return [pid for pid, parent in job_processes() if parent == os.getpid()]


def output(jobs, id):
    return jobs.get_result_path_and_media_type(ANN, id, "rows-safe.jsonl")[0].read_bytes()


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """What an undisturbed job makes."""
    with services(tmp_path_factory.mktemp("whole") / "data") as made:
        made.jobs.runner.start()
        id = submit(made.jobs, scope="s")
        assert ended(made.jobs, id).state == "done"
        return output(made.jobs, id)


def test_a_server_that_stops_leaves_its_jobs_to_the_next(tmp_path, whole):
    with services(tmp_path / "data") as made:
        made.jobs.runner.start()
        first, second = (submit(made.jobs, scope=s) for s in "sz")
        at_work(made.jobs, first)
        made.jobs.runner.stop()
        assert not processes()
        assert [made.jobs.get_job(ANN, id).state for id in (first, second)] == ["queued", "queued"]
        assert list((tmp_path / "data" / "jobs" / first / "out").glob(".*journal"))
    with services(tmp_path / "data") as made:
        made.jobs.runner.start()
        assert [ended(made.jobs, id).state for id in (first, second)] == ["done", "done"]
        assert output(made.jobs, first) == output(made.jobs, second) == whole
        assert len(made.vault.known("s")) == len(made.vault.known("z"))


def test_a_process_that_dies_is_followed_by_another(tmp_path, whole):
    with services(tmp_path / "data") as made:
        made.jobs.runner.start()
        id = submit(made.jobs, scope="s")
        at_work(made.jobs, id)
        (pid,) = processes()
        os.kill(pid, signal.SIGKILL)
        job = ended(made.jobs, id)
        assert (job.state, job.error) == ("done", None)
        assert output(made.jobs, id) == whole


def test_a_process_that_dies_again_and_again_ends_the_job_with_its_reason(tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "MOST_DEATHS", 2)
    monkeypatch.setattr(runner, "_RETRY_SECONDS", (0.0,))
    with services(tmp_path / "data") as made:
        made.jobs.runner.start()
        id = submit(made.jobs)
        killed = set()
        for _ in range(2):
            until(lambda: set(processes()) - killed)
            (pid,) = set(processes()) - killed
            os.kill(pid, signal.SIGKILL)  # before it has done anything
            killed.add(pid)
        job = ended(made.jobs, id)
        assert job.state == "failed" and "2 times at the same place, last with signal 9" in job.error
        until(lambda: [p.name for p in (tmp_path / "data" / "jobs" / id).iterdir()] == ["lock"])  # soon after it ended


@pytest.fixture
def unable(monkeypatch):
    """Makes the system unable to start a process, so often."""

    def so_often(times):
        left, begin = [times], runner.subprocess.Popen

        def start(*args, **options):
            if left[0]:
                left[0] -= 1
                raise BlockingIOError(11, "Resource temporarily unavailable")
            return begin(*args, **options)

        monkeypatch.setattr(runner.subprocess, "Popen", start)

    monkeypatch.setattr(runner, "_RETRY_SECONDS", (0.0,))
    return so_often


def test_a_job_whose_process_cannot_be_started_begins_later(tmp_path, unable):
    with services(tmp_path / "data") as made:
        id = submit(made.jobs, b'{"text": "mail ada@example.com"}\n')
        unable(2)
        made.jobs.runner.start()
        assert ended(made.jobs, id).state == "done"


def test_a_job_whose_process_can_never_be_started_fails_with_the_reason(tmp_path, unable):
    with services(tmp_path / "data") as made:
        first, second = (submit(made.jobs, b'{"text": "mail ada@example.com"}\n') for _ in range(2))
        unable(runner.MOST_DEATHS * 2)
        made.jobs.runner.start()
        for id in (first, second):
            job = ended(made.jobs, id)
            assert job.state == "failed" and "Resource temporarily unavailable" in job.error


def test_a_job_of_which_the_end_could_not_be_noted_is_looked_at_again(tmp_path, monkeypatch):
    with services(tmp_path / "data") as made:
        queue, left = made.jobs._queue, [1]
        note = queue.store_ending_or_requeue

        def end(*args):
            if left[0]:
                left[0] -= 1
                raise DatabaseError("the database is away")
            note(*args)

        monkeypatch.setattr(queue, "store_ending_or_requeue", end)
        made.jobs.runner.start()
        assert ended(made.jobs, submit(made.jobs, b'{"text": "mail ada@example.com"}\n')).state == "done"
        assert not left[0]


def test_work_that_was_done_is_not_done_again(tmp_path):
    with services(tmp_path / "data") as made:
        made.jobs.runner.start()
        id = submit(made.jobs, b'{"text": "mail ada@example.com"}\n')
        before = ended(made.jobs, id)
        made.jobs.runner.stop()
        path = tmp_path / "data" / "jobs" / id / "out" / "file-00001.jsonl"
        written = path.stat().st_mtime_ns
        with made.database.open_write_transaction() as connection:  # as if the server had been killed before it knew
            connection.execute(table.update().values(state="running", ended=None, told=None))
        made.jobs.runner.start()
        after = ended(made.jobs, id)
        assert after.model_dump(exclude={"ended", "expires"}) == before.model_dump(exclude={"ended", "expires"})
        assert path.stat().st_mtime_ns == written


def test_a_run_that_was_whole_when_its_process_died_is_not_run_again(tmp_path, monkeypatch):
    """Killed after the last file was renamed and before the job said that it had ended."""
    from allonym.server.jobs import work
    from allonym.server.jobs.task import Task

    source = json.dumps({**SOURCE, "name": "default", "detectors": ["rules"]})
    options = {"scope": None, "fields": [], "plans": True, "originals": False}
    sent = (InputFile("files", "a.txt", "file-00001.txt", 0), InputFile("files", "b.txt", "file-00002.txt", 0))
    task = Task(Folder(tmp_path), Spec("anonymize", "a", "ann", sent, options, source))
    task.folder.get_input_folder("files").mkdir(parents=True)
    for one in sent:
        (task.folder.get_input_folder("files") / one.stored).write_text(f"mail {one.shown[0]}@example.com")
    first = work.anonymize(task)

    def again(*args, **options):
        raise AssertionError("run again")

    monkeypatch.setattr(work, "anonymize_path", again)
    assert work.anonymize(task) == first
    assert [m["name"] for m in first[1]] == ["a-safe.txt", "b-safe.txt", "plans.jsonl", "report.json"]


def test_of_two_servers_one_runs_the_jobs_and_the_other_takes_over(tmp_path, whole):
    with services(tmp_path / "data") as one, services(tmp_path / "data") as other:
        one.jobs.runner.start()
        until(lambda: one.jobs.runner._lock is not None)
        other.jobs.runner.start()
        id = submit(other.jobs, scope="s")
        at_work(one.jobs, id)
        assert other.jobs.runner._lock is None and len(processes()) == 1
        one.jobs.runner.stop()
        assert ended(other.jobs, id).state == "done"
        assert output(other.jobs, id) == whole
        again = submit(one.jobs)
        assert asyncio.run(other.jobs.cancel_job(ANN, again)).state == "cancelled"


def test_the_jobs_of_a_removed_user_go_in_all_data_folders(tmp_path, monkeypatch):
    with services(tmp_path / "data") as one:
        where = f"sqlite:///{tmp_path}/data/server.sqlite"
        monkeypatch.setenv("ALLONYM_VAULT_KEY", (tmp_path / "data" / "secret").read_text().strip())
        with services(tmp_path / "other", database_url=where, vault_url=str(tmp_path / "vault.sqlite")) as other:
            id = submit(other.jobs)
            one.jobs.remove_user_jobs(ANN.id)
            other.jobs.runner.start()
            until(lambda: not (tmp_path / "other" / "jobs" / id).exists())


def test_an_upload_of_a_user_who_was_removed_meanwhile_is_no_job(tmp_path):
    with services(tmp_path / "data") as made:
        for gone in (users.update().values(active=False), users.delete()):
            with made.database.open_write_transaction() as connection:
                connection.execute(gone)
            with pytest.raises(RequestError) as caught:
                submit(made.jobs)
            assert caught.value.status == 401
        assert made.jobs.list_jobs(ANN, 0, 9).total == 0
        assert [p.name for p in (tmp_path / "data" / "jobs").iterdir() if p.is_dir()] == []


def swap_that_is_done(jobs):
    """As far as the routes of releases look at it; its id."""
    id, files = "abcd", (InputFile("files", "a.txt", "file-00001.txt", 1),)
    folder = jobs.runner.get_job_folder(id)
    folder.made.mkdir(parents=True)
    number = {"value": 0.0, "low": 0.0, "high": 0.0}
    names = ("changed", "share", "risk", "remaining", "utility", "uniques", "cosine", "distance_per_chunk")
    release = dict.fromkeys(names, number) | {"id": 0, "categories": [], "swaps": 0, "moves": 0, "flags": []}
    shown = {"releases": [{**release, "on_frontier": True}], "population": 1.0, "populations": [1.0], "why": ""}
    State(folder.state).store_value(swapping.RELEASES, shown)
    jobs._queue.add_job(id, ANN.id, ANN.name, Spec("swap", "a.txt", "ann", files, {}))
    results = [{"name": "a.txt", "path": "out/a.txt"}]
    jobs._queue.store_ending_or_requeue(id, "done", make_ending("done", None, {"chosen": 0}, results))
    return id


@pytest.mark.parametrize("what", ["get_or_make_release_documents", "cancel_job", "remove_job"])
def test_who_waits_holds_no_thread(tmp_path, what):
    """Routes share few threads."""
    with services(tmp_path / "data") as made:  # nobody runs the jobs
        id = swap_that_is_done(made.jobs) if what == "get_or_make_release_documents" else submit(made.jobs)
        more = (0, 0, 9, 60.0) if what == "get_or_make_release_documents" else ()

        async def beside():
            current_default_thread_limiter().total_tokens = 1
            waiting = asyncio.create_task(getattr(made.jobs, what)(ANN, id, *more))
            while not made.jobs.runner._wake.is_set() and not waiting.done():
                await asyncio.sleep(0.01)
            for _ in range(5):
                assert await run_in_threadpool(made.jobs._queue.find_job, id) and not waiting.done()
            if what == "get_or_make_release_documents":
                swapping.get_release_documents_path(made.jobs.runner.get_job_folder(id).made, 0).write_text("")
            elif what == "cancel_job":
                made.jobs._queue.store_ending_or_requeue(id, "cancelled", make_ending("cancelled"))
            else:
                made.jobs._queue.remove_job(id)
            return await waiting

        answer = asyncio.run(beside())
        if what == "get_or_make_release_documents":
            assert answer.ready
        else:
            assert answer is None if what == "remove_job" else answer.state == "cancelled"


def test_files_go_when_their_time_is_over(tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "_CLEAN_SECONDS", 0.0)
    with services(tmp_path / "data", keep_results_hours=0.0) as made:
        made.jobs.runner.start()
        id = submit(made.jobs, b'{"text": "mail ada@example.com"}\n')

        def gone():
            try:
                made.jobs.get_job(ANN, id)
            except RequestError as error:
                return error.status == 404
            return False

        until(gone)
        until(lambda: not (tmp_path / "data" / "jobs" / id).exists())


def test_uploads_that_broke_off_go_but_not_those_under_way(tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "_CLEAN_SECONDS", 0.0)
    with services(tmp_path / "data") as made:
        left = Folder(tmp_path / "data" / "jobs" / "left")
        left.create()
        with made.jobs.open_upload_folder() as coming:
            made.jobs.runner.start()
            until(lambda: not left.path.exists())
            assert coming.path.exists()
            until(lambda: made.jobs.runner._cleaned > 0)
            assert coming.path.exists()


@pytest.mark.parametrize("step", ["create", "lock"])
def test_an_upload_that_begins_while_folders_are_cleared_is_not_cleared_away(tmp_path, monkeypatch, step):
    with services(tmp_path / "data") as made:
        usual, clear = getattr(Folder, step), [made.jobs.runner._remove_expired_jobs_and_uploads]

        def before_it_is_locked(folder):
            done = usual(folder)
            while clear:
                clear.pop()()
            return done

        monkeypatch.setattr(Folder, step, before_it_is_locked)
        with made.jobs.open_upload_folder() as coming:
            (coming.arriving / "1").write_bytes(b"x")
        assert not clear


def test_jobs_end_complete_after_kills_of_a_real_server(tmp_path):
    result = killed(2, 400, 5, 3, tmp_path)
    assert result["jobs"] == 6
    assert (result["different"], result["orphans"], result["folders_left"]) == (0, 0, 0)
