"""``allonym demo`` and its examples."""

from __future__ import annotations

from importlib.resources import files

import pytest

from allonym.cli.demo import CORPUS, EXAMPLES

# What the examples hold that rules and lists must find.
IDENTIFIERS = [
    "Quint", "Fenwicks", "F-E-N-W-I-C-K", "Mr. Fenwick", "415-555-0132", "tobias dot fenwick at example dot com",
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
