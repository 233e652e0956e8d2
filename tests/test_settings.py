"""A setting is declared once: files, the environment, options, schemas and reference pages derive from the declaration."""

from __future__ import annotations

from collections.abc import Mapping
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
    schema = describe_schema(Outer)
    properties = schema["properties"]
    assert properties["size"] == {"description": "number of things", "type": "integer", "minimum": 1, "default": 3}
    assert properties["way"]["enum"] == ["fast", "slow"] and not schema["additionalProperties"]
    assert properties["sizes"] == {
        "description": "sizes", "type": "array", "items": {"type": "number", "minimum": 0}, "default": [1.0],
    }  # fmt: skip
    assert properties["states"]["additionalProperties"] == {"enum": ["on", "off"]}
    assert properties["inner"]["properties"]["share"]["maximum"] == 1
    assert describe_schema(Outer, {"new folder": {"type": "folder"}})["properties"]["folder"]["type"] == "folder"


def test_a_request_has_the_fields_of_a_group():
    from allonym.server.wire.base import make_model

    model = make_model("OuterIn", Inner)
    assert model().share == 0.5
    with pytest.raises(ValueError, match="less than or equal to 1"):
        model(share=2)
    schema = make_model(
        "Overrides", Outer, {"count": "size", "part": "inner.share"}, limits={"count": 9}, overrides=True
    )
    described = schema.model_json_schema()["properties"]
    assert schema().model_dump() == {"count": None, "part": None}
    assert described["count"]["anyOf"][0] == {"type": "integer", "minimum": 1, "maximum": 9}
    assert described["part"]["description"] == "share of the words"


class Longer(Outer):
    extra: int = declare_setting(8, "what was added", low=2, option="N")


def test_a_field_that_is_added_in_one_place_is_everywhere(tmp_path: Path):
    from allonym.server.wire.base import make_model

    def command(*, longer: Longer) -> None:
        click.echo(longer.extra)

    (tmp_path / "x.toml").write_text("extra = 9\n")
    assert "What was added.  [default: 8; x>=2]" in run_command(take_options, command, "--help")[0]
    assert run_command(take_options, command, "--extra", "5") == ("5\n", 0)
    assert load_settings(Longer, "X_", tmp_path / "x.toml", {}).extra == 9
    assert load_settings(Longer, "X_", None, {"X_EXTRA": "4"}).extra == 4
    field = {"description": "what was added", "type": "integer", "minimum": 2, "default": 8}
    assert make_model("LongerIn", Longer).model_json_schema()["properties"]["extra"] == {**field, "title": "Extra"}
    assert describe_schema(Longer)["properties"]["extra"] == field  # a form and the JSON schema
    assert (list_settings(Longer)[-1].name, list_settings(Longer)[-1].bounds) == ("extra", "2 or more")  # the reference
