"""``allonym doctor``: whether everything that a run needs is there, and whether it runs without network."""

from __future__ import annotations

import importlib.metadata
import json as json_format
import locale
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

import click

from allonym import __version__
from allonym.cli.options import JSON
from allonym.cli.signatures import take_options
from allonym.cli.terminal import format_json_line, report_failure
from allonym.errors import AllonymError, write_install_command
from allonym.settings import declare_setting
from allonym.text.controls import escape_controls

if TYPE_CHECKING:
    from allonym.cli.offline import OfflineRun

Status = Literal["ok", "note", "problem"]
COLOURS = {"ok": "green", "note": "yellow", "problem": "red"}

LEAST_PYTHON = (3, 11)
LEAST_SPACE = 500_000_000
"""Bytes that should be free where a run writes."""

SECONDS = 300
"""Time limit of the demo in a process of its own."""

_REQUIREMENT = re.compile(r"([\w.-]+)(?:\[[^\]]*\])?\s*([^;]*)(?:;\s*(.*))?")
_NO_EXTRAS = frozenset({"dev", "docs", "release"})  # for people who work on allonym


class Check(NamedTuple):
    """What was checked, how it stands, and what to do about it."""

    status: Status
    name: str
    words: str
    advice: str = ""


@click.command(short_help="Check the installation; prove that it runs offline.")
@take_options
def doctor(
    *,
    offline: bool = declare_setting(False, "run the demo in a process whose network is refused, and say what it saw"),
    json: bool = JSON,
) -> None:
    """Check versions, packages, models, disk and locale; the exit code is 1 if there is a problem.

    With --offline, the demo runs in a process of its own. The system refuses it the network where it can: by a network
    namespace without devices, or else by a filter of system calls. An audit hook counts what Python tries.

    \b
    Examples:
      allonym doctor
      allonym doctor --offline
    """
    checks = list(list_offline_checks(run_in_process(["demo"])) if offline else list_checks())
    for check in checks:
        if json:
            click.echo(format_json_line(check._asdict()))
            continue
        advice = f"; {check.advice}" if check.advice else ""
        status = click.style(check.status.ljust(7), fg=COLOURS[check.status], bold=True)
        click.echo(f"{status}  {check.name.ljust(9)}  {escape_controls(check.words + advice)}")
    problems = sum(check.status == "problem" for check in checks)
    if problems:
        raise report_failure(f"{problems} problem{'s' * (problems != 1)}")


def list_checks() -> Iterator[Check]:
    """Yield all checks of this installation."""
    yield _check_versions()
    yield from _check_packages()
    for name, try_part in (("tagger", _try_tagger), ("names", _try_knowledge_base), ("run", _try_run)):
        yield _check_part(name, try_part)
    yield from _check_space()
    yield _check_locale()


def list_offline_checks(run: OfflineRun) -> Iterator[Check]:
    """Yield what a run without network showed."""
    if run.barrier == "namespace":
        words = f"a network namespace of its own with {run.devices - 1} devices beside the loopback"
    elif run.barrier == "seccomp":
        words = "the kernel refused every socket but those of this machine"
    else:
        words = f"this system refused nothing: {run.reason}"
    if not run.barrier:
        yield Check("note", "barrier", words, "Python's own attempts were watched; see the page on proving it")
    elif run.refusal:
        yield Check("ok", "barrier", f"{words}; a test connection failed: {run.refusal}")
    else:
        yield Check("problem", "barrier", f"{words}, but a test connection went through")
    if run.exit_code == 0:
        yield Check("ok", "demo", f"ran to its end and wrote {run.output:,} characters")
    else:
        yield Check("problem", "demo", f"ended with exit code {run.exit_code}: {run.error}")
    counts = ", ".join(f"{name} {count}" for name, count in sorted(run.attempts.items()))
    status: Status = "problem" if run.attempts else "ok"
    yield Check(
        status, "Python", f"{sum(run.attempts.values())} attempts to use the network{': ' * bool(counts)}{counts}"
    )
    if run.packets is not None:
        counts = ", ".join(f"{name} {count}" for name, count in sorted(run.packets.items()))
        words = counts or "0 packets, 0 connections, 0 datagrams left or tried to"
        yield Check("problem" if counts else "ok", "kernel", words)


def run_in_process(arguments: list[str]) -> OfflineRun:
    """Run a command of allonym in a process of its own without network.

    Raises:
        Exit: the process ended without a result, or took longer than :data:`SECONDS`.
    """
    from allonym.cli.offline import OfflineRun

    try:
        process = subprocess.run(
            [sys.executable, "-P", "-m", "allonym.cli.offline", *arguments],  # no module of the working folder is run
            capture_output=True,
            timeout=SECONDS,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        return OfflineRun(**json_format.loads(process.stdout))
    except (ValueError, TypeError):
        raise report_failure(f"the run without network ended with code {process.returncode} and no result") from None
    except subprocess.TimeoutExpired:
        raise report_failure(f"the run without network took longer than {SECONDS} s") from None


def _check_versions() -> Check:
    words = f"allonym {__version__}, Python {platform.python_version()}, {platform.system()} {platform.machine()}"
    words += f", {os.cpu_count() or 1} processors"
    if sys.version_info < LEAST_PYTHON:
        return Check(
            "problem", "versions", words, f"Python {'.'.join(map(str, LEAST_PYTHON))} is the oldest that works"
        )
    return Check("ok", "versions", words)


def _check_packages() -> Iterator[Check]:
    """Yield whether the packages that allonym requires are there, and which extras are complete."""
    try:
        requirements = importlib.metadata.requires("allonym") or []
    except importlib.metadata.PackageNotFoundError:
        yield Check("note", "packages", "allonym runs from its source and is not installed", "pip install -e .")
        return
    lacking: dict[str, list[str]] = {"": []}
    for requirement in requirements:
        match = _REQUIREMENT.fullmatch(requirement)
        if match is None or match[1] == "allonym" or ("win32" in (match[3] or "") and sys.platform == "win32"):
            continue
        extra = re.search(r"extra == ['\"]([^'\"]+)", match[3] or "")
        fault = _find_fault(match[1], match[2])
        names = lacking.setdefault(extra[1] if extra else "", [])
        if fault:
            names.append(fault)
    if faults := lacking.pop(""):
        yield Check("problem", "packages", ", ".join(faults), write_install_command("").replace("[]", ""))
    else:
        yield Check("ok", "packages", "all that are required are installed")
    extras = {name: faults for name, faults in sorted(lacking.items()) if name not in _NO_EXTRAS}
    complete = [name for name, faults in extras.items() if not faults]
    yield Check("ok", "extras", f"installed: {', '.join(complete) or 'none'}")
    if len(complete) < len(extras):
        absent = ", ".join(name for name, faults in extras.items() if faults)
        yield Check("ok", "extras", f"not installed: {absent}", f"where you need one: {write_install_command('NAME')}")
    if old := sorted({fault for faults in extras.values() for fault in faults if " is required" in fault}):
        yield Check("note", "extras", f"too old: {'; '.join(old)}")


def _find_fault(package: str, specifier: str) -> str:
    """Return what is wrong with a package: that it lacks, or is too old; empty where nothing is."""
    try:
        version = importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return package
    least = re.search(r">=\s*([\d.]+)", specifier)
    if least and _read_numbers(version) < _read_numbers(least[1]):
        return f"{package} {version}, {least[1]} is required"
    return ""


def _read_numbers(version: str) -> tuple[int, ...]:
    release = re.match(r"[\d.]*", version)
    return tuple(int(part) for part in (release[0] if release else "").split(".") if part)


def _check_part(name: str, try_part: Callable[[], str]) -> Check:
    try:
        return Check("ok", name, try_part())
    except AllonymError as error:
        return Check("problem", name, str(error), "install allonym again")
    except Exception as error:  # whatever breaks here would break a run
        return Check("problem", name, f"fails with {type(error).__name__}", "install allonym again")


def _try_tagger() -> str:
    from allonym.models.tagger import ENGLISH, TaggerModel

    TaggerModel(ENGLISH)
    size = sum(file.stat().st_size for file in ENGLISH.iterdir())
    return f"the tagger loads ({size / 1e6:.0f} MB, English)"


def _try_knowledge_base() -> str:
    from allonym.kb import KnowledgeBase

    base = KnowledgeBase.open()
    return f"the knowledge base behind pseudonyms opens, with names of {len(base.origins())} origins"


def _try_run() -> str:
    from allonym import anonymize, restore
    from allonym.errors import DataError

    text = "Ada Brook lives in Leeds and writes from ada@example.com."
    result = anonymize(text)
    if restore(result.text, plan=result.plan).text != text or "Ada" in result.text or "@" in result.text:
        raise DataError(f"a sentence was not treated as it must be: {len(result.plan.edits)} replacements")
    return f"a sentence was anonymised ({len(result.plan.edits)} replacements) and restored"


def _check_space() -> Iterator[Check]:
    for what, folder in (("temporary folder", Path(tempfile.gettempdir())), ("this folder", Path.cwd())):
        free = shutil.disk_usage(folder).free
        words = (
            f"{free / 1e9:.1f} GB free in the {what}"
            if what != "this folder"
            else f"{free / 1e9:.1f} GB free in {what}"
        )
        if not os.access(folder, os.W_OK):
            yield Check(
                "problem" if what != "this folder" else "note", "disk", f"you may not write to {folder}", "see TMPDIR"
            )
        elif free < LEAST_SPACE:
            yield Check("problem", "disk", words, f"a run needs some {LEAST_SPACE / 1e6:.0f} MB, and twice its input")
        else:
            yield Check("ok", "disk", words)


def _check_locale() -> Check:
    names = {locale.getpreferredencoding(False), sys.stdout.encoding or "", sys.getfilesystemencoding()}
    others = sorted(name for name in names if name.lower().replace("-", "").replace("_", "") != "utf8")
    if others:
        return Check(
            "problem", "locale", f"text is written as {', '.join(others)}", "set PYTHONUTF8=1, or LANG=C.UTF-8"
        )
    return Check("ok", "locale", "UTF-8")
