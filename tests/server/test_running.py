"""A server as a process: how it ends, what becomes of what runs, and a database that is away for a while."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("uvicorn")
httpx2 = pytest.importorskip("httpx2")

LONG = {"text": "Ada Brook met Cyd Dale in Springfield. " * 300}


def children(process: int) -> list[int]:
    """Those of all its threads."""
    found: list[int] = []
    for task in Path(f"/proc/{process}/task").iterdir():
        found += map(int, (task / "children").read_text(encoding="ascii").split())
    return found


def lives(process: int) -> bool:
    try:
        with open(f"/proc/{process}/stat", encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.slow
def test_a_signal_lets_what_runs_finish(make_live, tmp_path):
    with make_live(tmp_path) as live, socket.create_connection(("127.0.0.1", live.port), timeout=120) as asking:
        sync = pytest.importorskip("websockets.sync.client")
        exceptions = pytest.importorskip("websockets.exceptions")
        headers = {"Authorization": f"Bearer {live.token}"}
        with sync.connect(live.url.replace("http", "ws") + "/v1/stream", additional_headers=headers) as stream:
            stream.send(json.dumps({"type": "open", "mode": "annotate"}))
            body = json.dumps(LONG).encode()
            head = f"POST /v1/detect HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {live.token}\r\n"
            head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
            asking.sendall(head.encode() + body)
            with live.client() as client:  # what was sent before this has been taken
                assert client.get("/healthz").status_code == 200
            workers = children(live.process.pid)
            live.process.send_signal(signal.SIGTERM)
            with pytest.raises(exceptions.ConnectionClosed) as closed:
                stream.recv(timeout=60)
            assert closed.value.rcvd is not None and closed.value.rcvd.code == 1012
        came = b""
        while piece := asking.recv(65_536):
            came += piece
        with pytest.raises(httpx2.TransportError):
            httpx2.get(f"{live.url}/healthz", timeout=30)
        status, told = came.split()[1], json.loads(came.partition(b"\r\n\r\n")[2])
        if status == b"200":
            assert told["spans"]
        else:  # it took longer than the server waits
            assert (status, told["error"]["code"]) == (b"503", "Ending")
        live.process.wait(60)
        for _ in range(100):
            if not [one for one in workers if lives(one)]:
                break
            time.sleep(0.1)
        assert workers and not [one for one in workers if lives(one)]
        said = live.said.read_text(encoding="utf-8")
        assert "Traceback" not in said and "unexpected" not in said


@pytest.mark.slow
def test_a_killed_server_leaves_no_process_and_starts_again(make_live, tmp_path):
    with make_live(tmp_path) as live:
        with live.client() as client:
            made = client.post("/v1/anonymize", json={"text": "Write to ada@example.com", "scope": "s"}).json()["text"]
        token, workers = live.token, children(live.process.pid)
        live.process.kill()
        live.process.wait()
        for _ in range(100):
            if not [one for one in workers if lives(one)]:
                break
            time.sleep(0.1)
        assert workers and not [one for one in workers if lives(one)]
    (tmp_path / "said.txt").unlink()
    with make_live(tmp_path) as again:
        again.token = token
        with again.client() as client:
            back = client.post("/v1/restore", json={"text": made, "scope": "s"})
            assert back.json()["text"] == "Write to ada@example.com"
        assert "setup?token" not in again.said.read_text(encoding="utf-8")


@pytest.mark.slow
def test_a_database_that_is_away_for_a_while(make_live, tmp_path, postgres_database):
    import sqlalchemy as sa

    from allonym.vault.store import parse_address

    with postgres_database() as url:
        name = parse_address(url).database
        server = sa.create_engine(parse_address(url).set(database="postgres"), isolation_level="AUTOCOMMIT")

        def run(*statements: str) -> None:
            with server.connect() as connection:
                for one in statements:
                    connection.exec_driver_sql(one)

        gone = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'"
        with make_live(tmp_path, ALLONYM_DATABASE_URL=url) as live, live.client() as client:
            assert not (live.data / "server.sqlite").exists() and not (live.data / "vault.sqlite").exists()
            kept = client.post("/v1/anonymize", json={"text": "Write to ada@example.com", "scope": "s"})
            assert kept.status_code == 200
            run(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false", gone)
            time.sleep(6)  # what is remembered is forgotten
            for path in ("/readyz", "/v1/users"):
                response = client.get(path)
                assert response.status_code == 503 and response.json()["error"]["code"] == "DatabaseError", path
                assert "ada" not in response.text and name not in response.json()["error"]["code"]
            assert client.get("/healthz").status_code == 200
            run(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")
            for _ in range(50):
                if client.get("/readyz").status_code == 200:
                    break
                time.sleep(0.2)
            back = client.post("/v1/restore", json={"text": kept.json()["text"], "scope": "s"})
            assert back.status_code == 200 and back.json()["text"] == "Write to ada@example.com"
            said = live.said.read_text(encoding="utf-8")
            assert "Traceback" not in said and "allonym@" not in said
        server.dispose()


FAILING = """
import sys
from allonym.cli import main
from allonym.errors import MissingExtra
from allonym.server.kernel import Kernel

def start(kernel):
    raise {error}

Kernel.start = start
main(["serve", "--data", sys.argv[1], "--port", "0"])
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        ("MissingExtra('the detector', 'spacy')", 2, ["error: the detector needs an optional package"]),
        ("KeyError('Ada Brook')", 1, ["error: unexpected KeyError", "for the traceback"]),
    ],
)
def test_a_start_that_fails_says_why_in_a_line(tmp_path, error, code, said):
    script = FAILING.format(error=error)
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.returncode == code and not done.stdout
    lines = done.stderr.splitlines()
    assert [line[: len(words)] for line, words in zip(lines, said, strict=True)] == said


@pytest.mark.slow
@pytest.mark.parametrize("content", [None, "no certificate"])
def test_tls_that_cannot_begin_is_told_before_anything_is_made(tmp_path, content):
    files = [str(tmp_path / name) for name in ("c.pem", "k.pem")]
    if content is not None:
        for one in files:
            Path(one).write_text(content)
    options = ["--tls-certificate", files[0], "--tls-key", files[1]]
    done = subprocess.run(
        [sys.executable, "-m", "allonym", "serve", "--data", str(tmp_path / "data"), "--port", "0", *options],
        capture_output=True,
        text=True,
        check=False,
    )
    (line,) = done.stderr.splitlines()
    assert done.returncode == 2 and line.startswith("error: settings tls_certificate and tls_key: ")
    assert line.endswith("No such file or directory" if content is None else "in PEM and without a password")
    assert not (tmp_path / "data").exists()


def test_the_first_start_makes_the_administrator_that_the_settings_name(tmp_path):
    from allonym.errors import RequestError, UsageError
    from allonym.server.app import create_app
    from allonym.server.running import _make_first_admin
    from allonym.server.settings import Settings

    (tmp_path / "password").write_text("a long enough passphrase\n", encoding="utf-8")
    data = tmp_path / "data"
    services = create_app(Settings(data=data)).state.services
    link, _ = services.accounts.make_account_link("admin")
    for file in ("", str(tmp_path / "none")):
        with pytest.raises(UsageError, match="admin_password_file"):
            _make_first_admin(services, Settings(data=data, admin="root", admin_password_file=file))
    _make_first_admin(services, Settings(data=data, admin="root", admin_password_file=str(tmp_path / "password")))
    assert not services.accounts.has_no_users()
    assert services.accounts.sign_in("root", "a long enough passphrase")
    with pytest.raises(RequestError, match="link"):
        services.accounts.make_account(link, "mallory", "a long enough passphrase")


HEAPS = """
import ctypes, threading
from allonym.server.running import limit_allocator_arenas

limit_allocator_arenas()
barrier = threading.Barrier(9)

def work():
    texts = [bytes(1000) for _ in range(100)]
    barrier.wait()

threads = [threading.Thread(target=work) for _ in range(8)]
for thread in threads:
    thread.start()
barrier.wait()
for thread in threads:
    thread.join()
libc = ctypes.CDLL(None)
libc.fopen.restype = ctypes.c_void_p
stream = ctypes.c_void_p(libc.fopen(b"/dev/stdout", b"w"))
libc.malloc_info(0, stream)
libc.fclose(stream)
"""


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_info"), reason="the C library is not glibc")
def test_threads_share_two_heaps():
    """Eight threads at once would have eight, each of which keeps what its requests gave back."""
    environment = {k: v for k, v in os.environ.items() if k != "MALLOC_ARENA_MAX"}
    run = subprocess.run([sys.executable, "-c", HEAPS], check=True, capture_output=True, text=True, env=environment)
    assert run.stdout.count("<heap nr") == 2
