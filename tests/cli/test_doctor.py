"""``allonym doctor``, and the walls around a process without network."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from tests.cli.conftest import SRC

from allonym.cli import doctor
from allonym.cli.offline import OfflineRun


def run_python(code: str) -> str:
    """Run code in a process of its own, for walls stay; return what it prints."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=60,
        env={"PYTHONPATH": str(SRC), "PATH": "/usr/bin:/bin"},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_part_is_checked(run):
    result = run("doctor", "--json")
    rows = [json.loads(line) for line in result.out.splitlines()]
    names = {"versions", "packages", "extras", "tagger", "names", "run", "disk", "locale"}
    assert names <= {row["name"] for row in rows}
    problems = [row for row in rows if row["status"] == "problem"]
    assert result.code == bool(problems)
    assert [row["words"] for row in rows if row["name"] == "run"] == [
        "a sentence was anonymised (3 replacements) and restored"
    ]


def test_a_problem_is_told_with_what_to_do(run, monkeypatch):
    monkeypatch.setattr(doctor, "LEAST_PYTHON", (99, 1))
    monkeypatch.setattr(doctor, "LEAST_SPACE", 10**30)
    result = run("doctor")
    assert result.code == 1 and "Python 99.1 is the oldest" in result.out and "error: 3 problems" in result.err


@pytest.mark.parametrize(
    ("package", "wanted", "fault"),
    [
        ("click", ">=8.1", ""),
        ("click", "", ""),
        ("click", ">=99", "99 is required"),
        ("no-such-package-here", ">=1", "no-such-package-here"),
    ],
)
def test_packages_that_lack_or_are_too_old(package, wanted, fault):
    told_fault = doctor._find_fault(package, wanted)
    assert (fault in told_fault) and bool(told_fault) == bool(fault)


@pytest.mark.parametrize(
    ("seen", "problems"),
    [
        (OfflineRun("namespace", "", 1, "Network is unreachable", {}, {}, 0, 9), []),
        (OfflineRun("", "no namespaces here", exit_code=0), []),
        (OfflineRun("seccomp", refusal="", exit_code=0), ["barrier"]),
        (OfflineRun("seccomp", refusal="no", attempts={"socket.connect": 2}, exit_code=1), ["demo", "Python"]),
        (OfflineRun("namespace", refusal="no", packets={"Tcp.ActiveOpens": 1}, exit_code=0), ["kernel"]),
    ],
)
def test_what_a_run_without_network_shows(seen, problems):
    checks = list(doctor.list_offline_checks(seen))
    assert [check.name for check in checks if check.status == "problem"] == problems


def test_pythons_attempts_are_refused_and_counted():
    out = run_python(
        "import socket, tempfile, os\n"
        "from allonym.cli.offline import NetworkWatch\n"
        "watch = NetworkWatch()\n"
        "for attempt in (lambda: socket.create_connection(('127.0.0.1', 9)), lambda: socket.gethostbyname('a.example')):\n"
        "    try: attempt()\n"
        "    except PermissionError as error: print('refused')\n"
        "path = os.path.join(tempfile.mkdtemp(), 's')\n"
        "server = socket.socket(socket.AF_UNIX); server.bind(path); server.listen()\n"
        "socket.socket(socket.AF_UNIX).connect(path)\n"
        "print(sum(watch.attempts.values()))\n"
    )
    assert out.split() == ["refused", "refused", "2"]


@pytest.mark.parametrize("wall", ["refuse_sockets", "enter_namespace"])
def test_the_system_refuses_where_it_can(wall):
    out = run_python(
        "import socket, subprocess\n"
        "from allonym.cli import offline\n"
        "before = offline.try_connection()\n"
        f"try: offline.{wall}()\n"
        "except OSError as error: print('cannot')\n"
        "else:\n"
        "    print(bool(offline.try_connection()))\n"
        "    socket.socket(socket.AF_UNIX)\n"
        "    child = 'import allonym.cli.offline as o; print(bool(o.try_connection()))'\n"
        "    import sys; print(subprocess.run([sys.executable, '-c', child], capture_output=True, text=True).stdout)\n"
    )
    if out.strip() == "cannot":
        pytest.skip("this system does not let a process refuse itself the network")
    assert out.split() == ["True", "True"]


@pytest.mark.slow
def test_the_demo_runs_without_network(run):
    result = run("doctor", "--offline")
    assert result.code == 0 and "0 attempts to use the network" in result.out


@pytest.mark.slow
def test_a_command_that_uses_the_network_is_seen(tmp_path):
    text = tmp_path / "a.txt"
    text.write_text("Mail ada@example.com", encoding="utf-8")
    policy = tmp_path / "p.toml"
    table = '[llm]\nurl = "http://127.0.0.1:9/v1"\nmodel = "m"\n[default]\noperator = "llm"\non_failure = "fail"\n'
    policy.write_text(f'extends = "default"\n{table}', encoding="utf-8")
    (key := tmp_path / "k").write_bytes(bytes(32))
    target = str(tmp_path / "b.txt")
    seen = doctor.run_in_process(["anonymize", str(text), target, "-p", str(policy), "--key-file", str(key)])
    assert seen.attempts and seen.exit_code != 0


def test_no_module_of_the_working_folder_is_run(tmp_path, monkeypatch):
    (tmp_path / "json.py").write_text("raise SystemExit(7)")
    monkeypatch.chdir(tmp_path)
    assert doctor.run_in_process(["--version"]).exit_code == 0
