"""A setting is declared once: files, the environment, options, schemas and reference pages derive from the declaration."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import click
import pytest
from click.testing import CliRunner

from allonym.cli.signatures import take_options, take_overrides
from allonym.errors import UnknownNameError, UsageError
from allonym.settings import (
    REQUIRED,
    SettingGroup,
    declare_setting,
    describe_schema,
    find_setting,
    list_settings,
    load_settings,
    read_table,
    replace_values,
)


class Inner(SettingGroup):
    """How it is done."""

    share: float = declare_setting(0.5, "share of the words", low=0, high=1)
    kinds: tuple[str, ...] = declare_setting((), "kinds of words", one_of=("noun", "verb"), option="KIND")


class Outer(SettingGroup):
    size: int = declare_setting(3, "number of things", low=1, option="-n, --size N")
    name: str = declare_setting("", "name of the thing", option="NAME")
    way: Literal["fast", "slow"] = declare_setting("fast", "how it goes")
    folder: Path | None = declare_setting(None, "where it goes", noun="new folder", option="DIR")
    loud: bool = declare_setting(False, "say it loudly")
    kept: bool = declare_setting(True, "keep it")
    states: Mapping[str, str] = declare_setting({}, "state of each", one_of=("on", "off"), option="NAME=STATE")
    sizes: tuple[float, ...] = declare_setting((1.0,), "sizes", low=0, option="N,...")
    inner: Inner = Inner()
    note: str = ""  # not declared: no setting


def test_what_is_declared_is_listed():
    assert [s.name for s in list_settings(Outer)] == (
        ["size", "name", "way", "folder", "loud", "kept", "states", "sizes", "inner"]
    )
    assert find_setting(Outer, "inner.share").bounds == "from 0 to 1"
    with pytest.raises(UnknownNameError, match="did you mean: share"):
        find_setting(Outer, "inner.shar")


WRONG = [
    ({"sise": 3}, "x: unknown key 'sise'; did you mean: size, sizes"),
    ({"size": "3"}, "x: size must be an integer, got str"),
    ({"size": True}, "x: size must be an integer, got True"),
    ({"size": 0}, "x: size must be 1 or more, got 0"),
    ({"sizes": [1, float("inf")]}, "x: sizes must be 0 or more, got inf"),
    ({"sizes": 1}, "x: sizes must be a list, got 1"),
    ({"way": "fats"}, "x: way: unknown value 'fats'; did you mean: fast"),
    ({"loud": "yes"}, "x: loud must be true or false, got str"),
    ({"states": {"a": "of"}}, "x: states.a: unknown value 'of'; did you mean: off, on"),
    ({"inner": {"share": 2}}, "x: inner.share must be from 0 to 1, got 2.0"),
    ({"inner": {"kinds": ["nouns"]}}, "x: inner.kinds: unknown value 'nouns'; did you mean: noun"),
    ({"inner": 1}, "x: inner must be a table, got 1"),
    ({"note": "x"}, "x: unknown key 'note'; did you mean: name"),
]


@pytest.mark.parametrize(("table", "message"), WRONG)
def test_a_wrong_key_or_value_is_an_error_that_says_where(table: dict[str, Any], message: str):
    for read in (lambda: read_table(Outer, table, "x"), lambda: replace_values(Outer(), table, "x")):
        with pytest.raises(UsageError) as error:
            read()
        assert str(error.value) == message


def test_a_group_checks_its_values():
    with pytest.raises(UsageError, match="setting size must be 1 or more, got 0"):
        Outer(size=0)
    assert Outer(sizes=[1, 2]).sizes == (1.0, 2.0)  # type: ignore[arg-type]


def test_a_table_changes_only_what_it_names():
    base = Outer(states={"a": "on", "b": "on"}, inner=Inner(0.2, ("noun",)))
    changed = replace_values(base, {"states": {"b": "off"}, "inner": {"share": 1}}, "x")
    assert changed.states == {"a": "on", "b": "off"}
    assert changed.inner == Inner(1.0, ("noun",))


def test_options_come_before_the_environment_and_that_before_the_file(tmp_path: Path):
    file = tmp_path / "x: toml"
    file.write_text('size = 5\nname = "file"\nsizes = [3]\n[inner]\nshare = 0.1\n')
    environment = {"X_CONFIG": str(file), "X_NAME": "variable", "X_SIZES": "1, 2", "X_LOUD": "on", "X_STATES": "a=off"}
    loaded = load_settings(Outer, "X_", None, environment, {"size": 7, "name": None, "sizes": ()})
    assert (loaded.size, loaded.name, loaded.sizes, loaded.loud) == (7, "variable", (1.0, 2.0), True)
    assert loaded.states == {"a": "off"} and loaded.inner.share == 0.1
    for variable, text, message in (
        ("X_SIZE", "many", "X_SIZE must be an integer, got 'many'"),
        ("X_LOUD", "perhaps", "X_LOUD must be true or false, got str"),
        ("X_WAY", "fat", "X_WAY: unknown value 'fat'"),
    ):
        with pytest.raises(UsageError, match=message):
            load_settings(Outer, "X_", None, {variable: text})


def run_command(decorator: Any, function: Any, *args: str) -> tuple[str, int]:
    result = CliRunner().invoke(click.command()(decorator(function)), args)
    return result.output, result.exit_code


def test_a_command_gets_arguments_options_and_groups():
    seen: list[Any] = []

    def command(
        source: Path,
        targets: tuple[str, ...] = declare_setting((), "results", option="<TARGET>"),
        *,
        first: str = declare_setting(REQUIRED, "the first", option="X"),
        count: int = declare_setting(2, "how many", low=0),
    ) -> None:
        seen.append((source, targets, first, count))

    assert run_command(take_options, command, "a", "b", "c", "--first", "x", "--count", "4") == ("", 0)
    assert seen == [(Path("a"), ("b", "c"), "x", 4)]
    shown, _ = run_command(take_options, command, "--help")
    assert "SOURCE [TARGET...]" in shown and "The first.  [required]" in shown and "How many.  [default: 2" in shown


def take_outer(*, outer: Outer) -> None:
    click.echo(repr(outer))


OPTIONS: list[tuple[list[str], Outer]] = [
    ([], Outer()),
    (["-n", "5", "--name", "x", "--way", "slow", "--loud", "--no-kept"], Outer(5, "x", "slow", None, True, False)),
    (["--states", "a=on", "--states", "b=off"], Outer(states={"a": "on", "b": "off"})),
    (["--sizes", "1,2.5"], Outer(sizes=(1.0, 2.5))),
    (["--share", "0.1", "--kinds", "noun", "--kinds", "verb"], Outer(inner=Inner(0.1, ("noun", "verb")))),
    (["--folder", "new"], Outer(folder=Path("new"))),
]


@pytest.mark.parametrize(("args", "expected"), OPTIONS)
def test_the_options_of_a_group_make_an_instance(args: list[str], expected: Outer):
    assert run_command(take_options, take_outer, *args) == (f"{expected!r}\n", 0)


@pytest.mark.parametrize(
    "args", [["--size", "0"], ["--way", "x"], ["--share", "2"], ["--states", "a"], ["--sizes", "x"]]
)
def test_a_wrong_option_is_an_error(args: list[str]):
    _, code = run_command(take_options, take_outer, *args)
    assert code != 0


def test_the_help_shows_what_is_declared():
    shown, _ = run_command(take_options, take_outer, "--help")
    for text in (
        "-n, --size N",
        "Number of things.  [default: 3; x>=1]",
        "--kept / --no-kept",
        "Repeatable.",
        "[fast|slow]",
    ):
        assert text in shown


def test_overrides_are_only_what_is_given():
    def command(*, changes: dict[str, object]) -> None:
        click.echo(repr(changes))

    decorator = take_overrides(Outer, "size", "kept", "inner.share", "sizes", into="changes")
    assert run_command(decorator, command) == ("{}\n", 0)
    given = run_command(decorator, command, "--share", "0", "--no-kept", "--sizes", "1")
    assert given == ("{'kept': False, 'inner.share': 0.0, 'sizes': (1.0,)}\n", 0)
    assert "Number of things.  [default: 3]" in run_command(decorator, command, "--help")[0]


def test_the_schema_says_what_is_allowed():
    schema = describe_schema(list_settings(Outer))
    properties = schema["properties"]
    assert properties["size"] == {"description": "number of things", "type": "integer", "minimum": 1, "default": 3}
    assert properties["way"]["enum"] == ["fast", "slow"] and not schema["additionalProperties"]
    assert properties["sizes"] == {
        "description": "sizes", "type": "array", "items": {"type": "number", "minimum": 0}, "default": [1.0],
    }  # fmt: skip
    assert properties["states"]["additionalProperties"] == {"enum": ["on", "off"]}
    assert properties["inner"]["properties"]["share"]["maximum"] == 1
    folders = describe_schema(list_settings(Outer), {"new folder": {"type": "folder"}})
    assert folders["properties"]["folder"]["type"] == "folder"


def test_a_request_has_fields_for_settings():
    from allonym.server.wire.base import Wire, add_settings

    @add_settings((replace(find_setting(Outer, "size"), name="count", high=9), *list_settings(Inner)))
    class OuterIn(Wire):
        """What is asked for."""

        note: str = ""

    assert OuterIn().model_dump() == {"note": "", "count": None, "share": None, "kinds": None}
    with pytest.raises(ValueError, match="less than or equal to 1"):
        OuterIn(share=2)
    described = OuterIn.model_json_schema()
    assert (described["title"], described["description"]) == ("OuterIn", "What is asked for.")
    assert described["properties"]["count"]["anyOf"][0] == {"type": "integer", "minimum": 1, "maximum": 9}
    assert described["properties"]["share"]["description"] == "share of the words"


class Longer(Outer):
    extra: int = declare_setting(8, "what was added", low=2, option="N")


def test_a_field_that_is_added_in_one_place_is_everywhere(tmp_path: Path):
    from allonym.server.wire.base import Wire, add_settings

    def command(*, longer: Longer) -> None:
        click.echo(longer.extra)

    (tmp_path / "x.toml").write_text("extra = 9\n")
    assert "What was added.  [default: 8; x>=2]" in run_command(take_options, command, "--help")[0]
    assert run_command(take_options, command, "--extra", "5") == ("5\n", 0)
    assert load_settings(Longer, "X_", tmp_path / "x.toml", {}).extra == 9
    assert load_settings(Longer, "X_", None, {"X_EXTRA": "4"}).extra == 4
    settings = list_settings(Longer)
    added = {"minimum": 2, "type": "integer"}
    request = add_settings(settings[-1:])(Wire).model_json_schema()["properties"]["extra"]
    assert (request["anyOf"][0], request["description"]) == (added, "what was added")
    assert describe_schema(settings)["properties"]["extra"] == {**added, "description": "what was added", "default": 8}
    assert (settings[-1].name, settings[-1].bounds) == ("extra", "2 or more")  # the reference


SURFACES = """
import json, sys
from importlib.machinery import SourceFileLoader
from pathlib import Path

CHANGES = {
    "allonym.swap.settings": ("    draws: int", '    extra: int = declare_setting(8, "what was added", low=2)\\n    draws: int'),
    "allonym.cli.swap": ('"search.draws"', '"search.draws", "search.extra"'),
    "allonym.server.wire.jobs": ('"search.draws", ', '"search.draws", "search.extra", '),
}
compile_module = SourceFileLoader.get_code

def get_code(loader, name):
    if name not in CHANGES:
        return compile_module(loader, name)
    text, (old, new) = Path(loader.path).read_text(encoding="utf-8"), CHANGES[name]
    assert text.count(old) == 1
    return compile(text.replace(old, new), loader.path, "exec")

SourceFileLoader.get_code = get_code
sys.path.insert(0, sys.argv[1])

import build_reference
from click.testing import CliRunner
from allonym.cli.swap import swap
from allonym.server.jobs.swapping import make_swap_settings
from allonym.server.routes.choices import describe_swap_settings
from allonym.server.wire.jobs import SwapOptions
from allonym.swap.settings import Settings

print(json.dumps({
    "command": CliRunner().invoke(swap, ["--help"]).output,
    "file": Settings.load(sys.argv[2]).search.extra,
    "request": SwapOptions.model_json_schema()["properties"]["extra"],
    "search": make_swap_settings(SwapOptions(protect="x", extra=4).model_dump()).search.extra,
    "form": describe_swap_settings(None)["properties"]["extra"],
    "reference": build_reference.swapping(),
}))
"""


def test_a_setting_that_is_added_to_swapping_is_on_every_surface(tmp_path: Path):
    pytest.importorskip("fastapi")
    (tmp_path / "x.toml").write_text("[search]\nextra = 9\n")
    docs = Path(__file__).parent.parent / "docs"
    child = [sys.executable, "-c", SURFACES, str(docs), str(tmp_path / "x.toml")]
    done = subprocess.run(child, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    command = " ".join(found["command"].split())
    assert re.search(r"--extra [A-Z ]+RANGE What was added\. \[default: 8\]", command), command[-1500:]
    assert (found["file"], found["search"]) == (9, 4)
    schema = {"minimum": 2, "type": "integer"}
    assert found["request"]["anyOf"][0] == schema and found["request"]["description"] == "what was added"
    assert found["form"] == {**schema, "description": "what was added", "default": 8}
    assert "| `search.extra` | `8` | 2 or more | what was added |" in found["reference"]
