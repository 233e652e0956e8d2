"""The demo in a process whose network is refused: ``python -m allonym.cli.offline``, for ``allonym doctor --offline``.

Two walls stand around it. Python's audit hook refuses and counts every attempt to resolve or to reach another computer.
It does not see native code, so the system refuses as well where it can: a network namespace without devices, or else a
filter of system calls (seccomp) that allows no socket but those of the machine itself.
"""

from __future__ import annotations

import ctypes
import io
import json
import os
import platform
import re
import socket
import struct
import sys
from collections import Counter
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal

Barrier = Literal["namespace", "seccomp", ""]

_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000
_PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS, _SECCOMP_MODE_FILTER = 22, 38, 2
_ARCHITECTURES = {"x86_64": (0xC000003E, 41), "aarch64": (0xC00000B7, 198)}
"""Machine to the kernel's number for it, and that of the system call ``socket``."""

_X32 = 0x40000000
"""From this number on, system calls of x86_64 are those of its 32-bit form, which the filter refuses as a whole."""

_IO_URING_SETUP = 425

_TEST_ADDRESS = ("192.0.2.1", 9)
"""Reserved for documentation (RFC 5737): nobody has it."""

_WATCHED = re.compile(
    r"socket\.(connect|getaddrinfo|gethostbyname|gethostbyaddr|getnameinfo|sendto|sendmsg|bind)|urllib\.Request|"
    r"(http\.client|smtplib|ftplib|poplib|imaplib|nntplib|telnetlib)\..*connect|.*\.connect$"
)
_COUNTERS = {"Ip": ("OutRequests", "OutNoRoutes"), "Tcp": ("ActiveOpens",), "Udp": ("OutDatagrams",)}


@dataclass(slots=True)
class OfflineRun:
    """What was seen.

    Attributes:
        barrier: what the system refused the network by; empty: nothing but Python's hook.
        reason: why no barrier of the system could be set up; empty where one stands.
        devices: network devices that the process could see; -1: unknown.
        refusal: what the system said to a test connection, behind the barrier.
        attempts: Python's attempts to use the network, by audit event.
        packets: counters of the kernel for this namespace that are not 0; None without a namespace.
        exit_code: of the command.
        output: characters that it wrote.
        error: the last line that it wrote on standard error.
    """

    barrier: Barrier = ""
    reason: str = ""
    devices: int = -1
    refusal: str = ""
    attempts: dict[str, int] = field(default_factory=dict)
    packets: dict[str, int] | None = None
    exit_code: int = -1
    output: int = 0
    error: str = ""


class NetworkWatch:
    """An audit hook that refuses and counts attempts to use the network; it stays for the life of the process."""

    def __init__(self) -> None:
        self.attempts: Counter[str] = Counter()
        self.is_on = True
        sys.addaudithook(self._hear)

    def _hear(self, event: str, arguments: tuple[object, ...]) -> None:
        if not self.is_on or not _WATCHED.fullmatch(event) or event.startswith("sqlite3."):
            return
        if event.startswith("socket.") and len(arguments) > 1 and isinstance(arguments[1], (str, bytes)):
            sender = arguments[0]  # a name in the file system is an address of this machine
            if getattr(sender, "family", None) == getattr(socket, "AF_UNIX", -1):
                return
        self.attempts[event] += 1
        raise PermissionError(f"the network is refused here ({event})")


def enter_namespace() -> None:
    """Move this process into a network namespace of its own, without any device but a loopback that is down.

    Raises:
        OSError: the system does not let it.
    """
    if not sys.platform.startswith("linux"):
        raise OSError(f"{platform.system()} has no network namespaces")
    library = ctypes.CDLL(None, use_errno=True)
    flags = _CLONE_NEWNET if os.geteuid() == 0 else _CLONE_NEWNET | _CLONE_NEWUSER
    if library.unshare(flags) != 0 and library.unshare(_CLONE_NEWNET | _CLONE_NEWUSER) != 0:
        raise OSError(f"no network namespace: {os.strerror(ctypes.get_errno())}")


def refuse_sockets() -> None:
    """Let the kernel refuse every socket of this process but those of the machine itself (``AF_UNIX``), from now on.

    Raises:
        OSError: the system does not let it, or the machine is not known here.
    """
    if not sys.platform.startswith("linux") or platform.machine() not in _ARCHITECTURES:
        raise OSError(f"no filter of system calls for {platform.system()} on {platform.machine()}")
    architecture, number = _ARCHITECTURES[platform.machine()]
    load, equal, at_least, give = 0x20, 0x15, 0x35, 0x06  # of BPF: a word of the call's data, two tests, the answer
    allow, refuse = 0x7FFF0000, 0x00050000 | 1  # EPERM
    steps = [
        (load, 0, 0, 4),  # the architecture
        (equal, 0, 7, architecture),
        (load, 0, 0, 0),  # the number of the call
        (at_least, 5, 0, _X32),
        (equal, 4, 0, _IO_URING_SETUP),  # a ring could make sockets, too
        (equal, 0, 2, number),
        (load, 0, 0, 16),  # its first argument, the family
        (equal, 0, 1, int(socket.AF_UNIX)),
        (give, 0, 0, allow),
        (give, 0, 0, refuse),
    ]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
    program = struct.pack("HP", len(steps), ctypes.addressof(code))
    library = ctypes.CDLL(None, use_errno=True)
    zero = ctypes.c_ulong(0)
    if library.prctl(_PR_SET_NO_NEW_PRIVS, ctypes.c_ulong(1), zero, zero, zero) != 0 or library.prctl(
        _PR_SET_SECCOMP, ctypes.c_ulong(_SECCOMP_MODE_FILTER), ctypes.create_string_buffer(program), zero, zero
    ):
        raise OSError(f"no filter of system calls: {os.strerror(ctypes.get_errno())}")


def raise_barrier(run: OfflineRun) -> None:
    """Set up the strongest barrier of the system, and note it, or why there is none."""
    reasons = []
    for name, build in (("namespace", enter_namespace), ("seccomp", refuse_sockets)):
        try:
            build()
        except (OSError, AttributeError) as error:
            reasons.append(str(error))
        else:
            run.barrier = name  # type: ignore[assignment]
            break
    else:
        run.reason = "; ".join(reasons)
    devices = Path("/proc/self/net/dev")
    if run.barrier == "namespace" and devices.exists():
        run.devices = len(devices.read_text(encoding="ascii").splitlines()) - 2


def read_packet_counters() -> dict[str, int]:
    """Read what the kernel counts of this namespace: packets, connections and datagrams that left or tried to."""
    lines = [line.split() for line in Path("/proc/self/net/snmp").read_text(encoding="ascii").splitlines()]
    out = {}
    for names, values in zip(lines[::2], lines[1::2], strict=True):
        protocol = names[0].rstrip(":")
        table = dict(zip(names[1:], map(int, values[1:]), strict=True))
        out.update({f"{protocol}.{name}": table[name] for name in _COUNTERS.get(protocol, ()) if name in table})
    return out


def try_connection() -> str:
    """Try to reach an address that nobody has; return what the system says, empty where it lets it."""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            sender.connect(_TEST_ADDRESS)  # of datagrams: only looks for a way there
    except OSError as error:
        return error.strerror or type(error).__name__
    return ""


def run_offline(arguments: list[str]) -> OfflineRun:
    """Run a command of allonym in this process, behind the walls, for good."""
    run = OfflineRun()
    raise_barrier(run)
    watch = NetworkWatch()
    output, errors = io.StringIO(), io.StringIO()
    with redirect_stdout(output), redirect_stderr(errors):
        from allonym.cli import main

        try:
            main(arguments)
        except SystemExit as end:
            run.exit_code = end.code if isinstance(end.code, int) else 1
    run.output = len(output.getvalue())
    run.error = (errors.getvalue().strip().splitlines() or [""])[-1]
    run.attempts = dict(watch.attempts)
    if run.barrier == "namespace":
        run.packets = {name: count for name, count in read_packet_counters().items() if count}
    if run.barrier:
        watch.is_on = False  # the system's barrier alone
        run.refusal = try_connection()
    return run


if __name__ == "__main__":
    print(json.dumps(asdict(run_offline(sys.argv[1:]))))
