"""What the command line says where the Ray runner cannot do what is asked; Ray itself is not needed for it."""

from __future__ import annotations

import sys

import pytest

from allonym.cli import main
from allonym.errors import write_install_command


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--runner", "ray", "--unique"], "--unique needs one process"),
        (["--runner", "ray", "--vault", "v"], "--key-file"),
        (["--runner", "ray", "--dry-run"], "--dry-run cannot be combined"),
    ],
)
def test_what_needs_one_process_is_refused(options, said, tmp_path, capsys):
    (tmp_path / "a.txt").write_text("x")
    with pytest.raises(SystemExit) as ended:
        main(["anonymize", str(tmp_path / "a.txt"), str(tmp_path / "b.txt"), *options])
    assert ended.value.code == 2 and said in capsys.readouterr().err
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]


@pytest.mark.parametrize("call", [["-", "x"], ["x"], ["x", "-"]])
def test_a_pipe_is_refused(call, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["anonymize", *call, "--runner", "ray"])
    assert ended.value.code == 2 and "a SOURCE and a TARGET" in capsys.readouterr().err


def test_a_uri_needs_the_runner_and_is_not_shown(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["anonymize", "s3://id:secret@bucket/a", "b"])
    shown = capsys.readouterr().err
    assert ended.value.code == 2 and "s3:// URI requires --runner ray" in shown and "secret" not in shown


def test_without_ray_the_command_says_what_to_install(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    (tmp_path / "a.txt").write_text("x")
    with pytest.raises(SystemExit) as ended:
        main(["anonymize", str(tmp_path / "a.txt"), str(tmp_path / "b.txt"), "--runner", "ray"])
    assert ended.value.code == 2 and write_install_command("ray") in capsys.readouterr().err
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]
