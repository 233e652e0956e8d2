"""What a terminal is shown: colour and a progress bar there, neither in a pipe."""

from __future__ import annotations

import io
import os
import pty
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.console import Console

import allonym
from allonym.cli.options import read_key
from allonym.cli.terminal import format_json_line
from allonym.text.controls import escape_controls

RULES = ("-p", "rules.toml")


def on_a_terminal(*args: str, cwd: Path, stdout: bool = True, env: dict[str, str] | None = None) -> tuple[int, str]:
    """Run ``allonym`` with standard error, and standard output too, on a pseudo-terminal."""
    (cwd / RULES[1]).write_text('extends = "default"\n[detect]\ndetectors = ["rules"]\n')
    ours, theirs = pty.openpty()
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("ALLONYM", "NO_COLOR"))}
    source = str(Path(allonym.__file__).parents[1])
    process = subprocess.Popen(
        [sys.executable, "-m", "allonym", *args],
        stdin=subprocess.DEVNULL,
        stdout=theirs if stdout else subprocess.PIPE,
        stderr=theirs,
        cwd=cwd,
        env={**inherited, "PYTHONPATH": source, "TERM": "xterm-256color", "COLUMNS": "100", **(env or {})},
    )
    os.close(theirs)
    shown = b""
    while True:
        try:
            data = os.read(ours, 65536)
        except OSError:  # how Linux says that the other end is closed
            break
        if not data:
            break
        shown += data
    os.close(ours)
    if process.stdout:
        process.stdout.close()
    return process.wait(60), shown.decode()


def test_a_terminal_gets_a_table_in_colour_and_no_json(tmp_path):
    (tmp_path / "a.txt").write_text("to jane.doe@example.com")
    code, shown = on_a_terminal("detect", "a.txt", *RULES, cwd=tmp_path)
    assert code == 0
    assert "\x1b[" in shown and "EMAIL_ADDRESS" in shown and "{" not in shown
    assert "jane" not in shown
    assert "jane.doe@example.com" in on_a_terminal("detect", "a.txt", "--highlight", *RULES, cwd=tmp_path)[1]


@pytest.mark.parametrize("args", [("demo",), ("labels",), ("policy", "list"), ("detect", "a.txt", "--explain")])
def test_no_color_is_respected(tmp_path, args):
    (tmp_path / "a.txt").write_text("to jane.doe@example.com")
    code, shown = on_a_terminal(*args, cwd=tmp_path, env={"NO_COLOR": "1"})
    assert code == 0
    assert not any(f"\x1b[{n}" in shown for n in range(30, 50))


@pytest.mark.parametrize(("takes", "shown"), [(0.9, False), (1.1, True)])
def test_only_a_run_that_takes_its_time_has_a_progress_bar(monkeypatch, takes, shown):
    bars, said = import_module("allonym.cli.terminal"), io.StringIO()
    clock = iter([0.0, takes * bars.PATIENCE])
    monkeypatch.setattr(bars, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    monkeypatch.setattr(bars, "is_terminal", lambda **_: True)
    monkeypatch.setattr(bars, "make_console", lambda **_: Console(file=said, force_terminal=True))
    with bars.show_byte_progress(enabled=True) as advance:
        advance(5, 10)
    assert ("\u2501" in said.getvalue()) == shown


@pytest.mark.slow
def test_a_long_run_has_a_progress_bar(tmp_path):
    (tmp_path / "a.txt").write_text("to jane.doe@example.com")
    (tmp_path / "long.jsonl").write_text('{"text": "to jane.doe@example.com, 415-555-0132"}\n' * 20_000)
    _, long = on_a_terminal("anonymize", "long.jsonl", "out.jsonl", *RULES, cwd=tmp_path)
    assert "\u2501" in long and "B/s" in long
    _, quiet = on_a_terminal("anonymize", "a.txt", "c.txt", "--quiet", *RULES, cwd=tmp_path)
    assert quiet == ""


def test_a_text_cannot_steer_the_terminal(tmp_path):
    (tmp_path / "a.txt").write_text("\x1b]0;owned\x07 \x9b31m \u202e to jane.doe@example.com\n")
    for flags in (("--highlight",), ("--text",), ("--explain", "--text")):
        _, shown = on_a_terminal("detect", "a.txt", *flags, *RULES, cwd=tmp_path)
        assert "\x1b]" not in shown and "\x07" not in shown and "\x9b" not in shown and "\u202e" not in shown


def test_visible_keeps_length_and_lines_on_request():
    text = "a\tb\r\n\x1b[31m\u202e\x85\ud800"
    assert len(escape_controls(text)) == len(escape_controls(text, lines=True)) == len(text)
    assert escape_controls(text, lines=True).startswith("a\tb\u240d\n\u241b[31m\u00b7")
    assert escape_controls(text).isprintable()


def test_format_json_lines_can_always_be_encoded():
    assert format_json_line({"a": "caf\u00e9"}) == '{"a": "caf\u00e9"}'
    assert format_json_line({"a": "\ud800"}) == '{"a": "\\ud800"}'


def test_keys_are_passphrases_where_readable_and_bytes_elsewhere(tmp_path, monkeypatch):
    path = tmp_path / "key"
    path.write_bytes(b"correct horse battery\r\n")
    assert read_key(path) == "correct horse battery"
    random = bytes(range(130, 160)) + b"\n"
    path.write_bytes(random)
    assert read_key(path) == random
    monkeypatch.setenv("ALLONYM_KEY", "")
    assert read_key(None) is None


def test_a_line_end_in_a_name_makes_no_line_of_its_own(run, tmp_path):
    (tmp_path / "in.txt").write_text("ada@example.com")
    result = run("anonymize", str(tmp_path / "in.txt"), str(tmp_path / "a\nerror: all is well\x1b[2J.docx"))
    assert result.code == 2 and "is called a .docx file" in result.err
    assert result.err.count("\n") == 1 and "\x1b" not in result.err
