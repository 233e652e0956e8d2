"""The documentation is executed: Python blocks run in order, what they print is compared, policies are read, links lead."""

from __future__ import annotations

import contextlib
import io
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import click
import pytest

from allonym import registry
from allonym.files import readers
from allonym.intruder import intruders
from allonym.policy import Policy, presets
from allonym.settings import list_settings
from allonym.swap.embedding import embedders
from allonym.swap.sections import sections
from allonym.swap.settings import Settings
from allonym.swap.settings import presets as swap_presets

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
WRITTEN = [page for page in PAGES if page.parent.name != "reference"]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def blocks(page: Path) -> list[tuple[str, str]]:
    return BLOCK.findall(page.read_text(encoding="utf-8"))


def page_id(page: Path) -> str:
    return str(page.relative_to(ROOT))


WITH_PYTHON = [page for page in WRITTEN if any(kind == "python" for kind, _ in blocks(page))]


@pytest.mark.slow
@pytest.mark.parametrize("page", WITH_PYTHON, ids=page_id)
def test_python_blocks_do_what_they_say(page, monkeypatch):
    for kind in (registry.detectors, registry.operators, embedders, intruders, sections):
        monkeypatch.setattr(kind, "_table", dict(kind._table))
    names: dict[str, object] = {"__name__": "docs"}
    printed = None
    for kind, text in blocks(page):
        if kind == "python":
            said = io.StringIO()
            with contextlib.redirect_stdout(said):
                exec(compile(text, page_id(page), "exec"), names)
            printed = said.getvalue()
        elif kind == "text" and printed:
            assert text == printed
            printed = None


def test_some_pages_have_python():
    assert {"README.md", "docs/tutorial.md"} <= {page_id(page) for page in WITH_PYTHON}


OF_SWAPPING = {setting.name for setting in list_settings(Settings)}


def test_policies_and_settings_in_the_documentation_are_valid(tmp_path):
    (tmp_path / "companies.csv").write_text("name\nQuill\n", encoding="utf-8")
    (tmp_path / "users.csv").write_text("full_name\nAda Brook\n", encoding="utf-8")
    (tmp_path / "companies.txt").write_text("Quill\n", encoding="utf-8")
    read = {Policy: 0, Settings: 0}
    for page in WRITTEN:
        for kind, text in blocks(page):
            if kind == "toml" and re.search("^upstream = ", text, re.MULTILINE):
                from allonym.server.gateway import load

                (tmp_path / "gateway.toml").write_text(text, encoding="utf-8")
                assert load(tmp_path / "gateway.toml", {}).upstream
            elif kind == "toml" and re.search("^public_url = ", text, re.MULTILINE):
                from allonym.server.settings import load as load_server_settings

                (tmp_path / "server.toml").write_text(text, encoding="utf-8")
                assert load_server_settings(tmp_path / "server.toml", {}).public_url
            elif kind == "toml" and "[project" not in text:
                what = Settings if OF_SWAPPING & set(tomllib.loads(text)) else Policy
                path = tmp_path / f"{what.__name__}{read[what]}.toml"
                path.write_text(text, encoding="utf-8")
                what.load(path)
                read[what] += 1
    assert read[Policy] >= 3 and read[Settings] >= 1


def test_links_lead_somewhere():
    wrong = []
    for page in PAGES:
        for target in re.findall(
            r"\]\(([^)#\s]+)[^)]*\)",
            re.sub(r"``.+?``|`[^`]+`", "", re.sub(BLOCK, "", page.read_text(encoding="utf-8"))),
        ):
            if not re.match(r"\w+:", target) and not (page.parent / target).exists():
                wrong.append(f"{page_id(page)}: {target}")
    assert not wrong


def test_every_page_is_in_the_table_of_contents():
    folder = ROOT / "docs"
    listed = set(re.findall(r"\]\(([\w/-]+\.md)\)", (folder / "README.md").read_text(encoding="utf-8")))
    assert {str(p.relative_to(folder)) for p in folder.rglob("*.md")} - {"README.md"} == listed


@pytest.mark.parametrize(
    ("page", "names"),
    [
        ("docs/reference/policies.md", presets()),
        ("docs/reference/formats.md", tuple(f".{name}" for name in readers.names())),
        ("docs/explanation/operators.md", registry.operators.names()),
        ("docs/explanation/detection.md", registry.detectors.names()),
        ("docs/how-to/swap.md", swap_presets()),
    ],
)
def test_tables_written_by_hand_miss_nothing(page, names):
    text = (ROOT / page).read_text(encoding="utf-8")
    assert not [name for name in names if f"`{name}`" not in text]


def test_shell_examples_use_commands_and_options_that_exist():
    from allonym import cli

    for page in WRITTEN:
        for kind, text in blocks(page):
            if kind not in ("sh", "console"):
                continue
            for call in re.findall(r"\ballonym ([^|&#\n]+)", text):
                words = call.split()
                command = cli.app.get_command(None, words[0])
                assert command is not None, call
                while isinstance(command, click.Group):
                    words = words[1:]
                    command = command.get_command(None, words[0])
                    assert command is not None, call
                options = {o for p in command.params for o in p.opts}
                assert {w for w in words if w.startswith("-") and w != "-"} <= options, (page_id(page), call)


@pytest.mark.slow
def test_the_reference_is_up_to_date():
    done = subprocess.run(
        [sys.executable, str(ROOT / "docs" / "build_reference.py"), "--check"],
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": str(ROOT / "src"), "PATH": "/usr/bin:/bin", "PYTHONIOENCODING": "utf-8"},
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_the_thirty_examples_are_up_to_date():
    check = [sys.executable, str(ROOT / "docs" / "build_examples.py"), "--check"]
    done = subprocess.run(check, capture_output=True, check=False, encoding="utf-8")
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_the_tutorials_say_what_they_said():
    pytest.importorskip("nbclient", reason="the extra docs is not installed")
    pytest.importorskip("ipykernel", reason="the extra docs is not installed")
    check = [sys.executable, str(ROOT / "docs" / "build_tutorials.py"), "--check"]
    done = subprocess.run(check, capture_output=True, check=False, encoding="utf-8")
    assert done.returncode == 0, done.stderr


def test_the_readme_is_short_and_says_how_to_start_and_what_is_not_guaranteed():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    first = text.partition("\n## ")[0]
    assert len(text.splitlines()) < 120 and len(first.splitlines()) <= 45
    for said in ("pip install . && allonym demo", "pip install -e '.[dev]' && pytest", "**Not guaranteed.**"):
        assert said in first
    code = next(body for kind, body in blocks(ROOT / "README.md") if kind == "python")
    assert len([line for line in code.splitlines() if line.strip()]) <= 6


def test_the_pictures_of_the_readme_show_what_comes_out_and_what_holds(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    from build_images import IMAGES, draw_badges, draw_before_after

    assert (IMAGES / "before-after.svg").read_text(encoding="utf-8") == draw_before_after()
    assert (IMAGES / "badges.svg").read_text(encoding="utf-8") == draw_badges()


def test_no_page_names_a_figure_without_its_command():
    for line in (ROOT / "docs" / "figures.md").read_text(encoding="utf-8").splitlines():
        cells = [c.strip() for c in line.strip("|").split("|")]
        if line.startswith("|") and len(cells) == 3 and re.search(r"\d", cells[1]):
            assert cells[2].startswith("`") or cells[2].startswith("["), line
