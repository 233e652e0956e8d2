"""``allonym demo`` and its examples."""

from __future__ import annotations

import re
import subprocess
import sys
import webbrowser
from importlib.resources import files

import pytest
from tests.cli.conftest import SRC

from allonym.cli import demo
from allonym.cli.demo import CORPUS, EXAMPLES, PAGE

# What the examples hold that rules and lists must find.
IDENTIFIERS = [
    "Quint", "F-E-N-W-I-C-K", "Mr. Fenwick", "415-555-0132", "tobias dot fenwick at example dot com",
    "four one, nine zero two seven", "Ines", "ifenwick84", "March 14, 1981", "4111 1111 1111 1111", "203.0.113.24",
    "Osei", "3 May 1974", "946 0958", "amara.osei@example.org", "0044 0532", "12 34 56 C", "https://osei.example/cv",
    "a.osei[at]", "1M8GDM9AXKP042788", "Tanabe", "555-0147", "Doyle", "lorcan@", "5555 5555 5555 4444",
]  # fmt: skip


def test_the_examples_hold_what_is_listed_here():
    text = "".join(files("allonym").joinpath("examples", n).read_text(encoding="utf-8") for n in EXAMPLES)
    assert all(one in text for one in IDENTIFIERS)


def test_before_holds_everything_and_after_nothing(run):
    result = run("demo")
    assert result.code == 0
    before = "\n".join(line for line in result.out.splitlines() if line.startswith("- "))
    after = "\n".join(line for line in result.out.splitlines() if line.startswith("+ "))
    assert [one for one in IDENTIFIERS if one not in before] == []
    assert [one for one in IDENTIFIERS if one in after] == []
    assert "\x1b" not in result.out
    kept = (
        "Thank you for calling",
        "and is [AGE_1]",
        "from support was wonderful",
        "Good kettle. I paid $39.90 with card [",
    )
    assert [words for words in kept if words not in after] == []


@pytest.mark.parametrize("name", ["transcripts", "textwash", "reversible"])
def test_other_policies(run, name):
    result = run("demo", "--policy", name)
    assert result.code == 0
    assert not [line for line in result.out.splitlines() if line.startswith("+ ") and "4111 1111" in line]


def test_save_writes_the_examples_into_a_new_folder(run, tmp_path):
    folder = tmp_path / "try"
    assert run("demo", "--save", str(folder)).code == 0
    assert {p.name for p in folder.iterdir()} == {*EXAMPLES, CORPUS}
    again = run("demo", "--save", str(folder))
    assert again.code == 2 and "--save needs a new folder" in again.err


def test_an_answer_is_restored(run):
    out = run("demo").out
    assert "  I shall call [PERSON_2] on [PHONE_NUMBER_1].\n  I shall call Tobias Fenwick on 415-555-0132.\n" in out


@pytest.mark.parametrize("has_screen", [True, False])
def test_open_writes_a_page_and_opens_it_on_a_screen(run, tmp_path, monkeypatch, has_screen):
    opened = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(demo, "has_screen", lambda: has_screen)
    monkeypatch.setattr(webbrowser, "open", lambda address: not opened.append(address))
    result = run("demo", "--open")
    assert result.code == 0 and PAGE in result.err
    assert opened == ([(tmp_path / PAGE).as_uri()] if has_screen else [])
    page = (tmp_path / PAGE).read_text(encoding="utf-8")
    assert "5 of 5 texts come back exactly" in page and "worst of three intruders is the" in page
    assert re.findall(r"(?:src|href)=", page) == []
    assert "are invented" in page and "Keep it as safe" not in page


def test_the_page_needs_no_further_package(tmp_path):
    code = (
        "import sys\n"
        "sys.modules |= dict.fromkeys(('jinja2', 'scipy', 'sklearn', 'rouge_score', 'wordfreq'))\n"
        "from allonym.cli import main\n"
        "main(['demo', '--open'])\n"
    )
    environment = {"PYTHONPATH": str(SRC), "PATH": "/usr/bin:/bin"}
    process = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, timeout=60
    )
    assert process.returncode == 0, process.stderr
    assert "worst of three intruders" in (tmp_path / PAGE).read_text(encoding="utf-8")
