"""A command's arguments and options, from the signature of its function.

::

    @click.command(short_help="Count the words of a file.")
    @take_options
    def count(source: Path, *, longest: int = declare_setting(10, "words that are shown", low=1), run: Run) -> None: ...

``source`` is an argument, ``--longest`` an option, and ``run`` an instance of the group ``Run``, whose settings are
further options. :func:`take_overrides` adds options for the keys of a settings file.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import Field, field
from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast, get_type_hints

import click
from click.shell_completion import CompletionItem

from allonym.cli import spell_british
from allonym.errors import AllonymError, check_names
from allonym.settings import REQUIRED, Setting, SettingGroup, find_setting, list_settings, make_setting

if TYPE_CHECKING:

    class Declaration(Any):  # type: ignore[misc]
        """An option or an argument: it decorates commands."""

        def __call__(self, command: F) -> F: ...


F = TypeVar("F", bound=Callable[..., Any])

PATHS: Mapping[str, click.Path] = {
    "file": click.Path(exists=True, dir_okay=False, path_type=Path),
    "path": click.Path(exists=True, path_type=Path),
    "folder": click.Path(exists=True, file_okay=False, path_type=Path),
    "new file": click.Path(dir_okay=False, path_type=Path),
    "new folder": click.Path(file_okay=False, path_type=Path),
    "": click.Path(path_type=Path),
}
"""The noun of a setting of the type ``Path``, to the check of its option."""


def with_options(*options: Declaration) -> Declaration:
    """Return a decorator that adds options, in this order."""

    def add_options(command: F) -> F:
        for decorate in reversed(options):
            command = decorate(command)
        return command

    return add_options  # type: ignore[return-value]


def take_options(command: F) -> F:
    """Give a command the arguments and options that its parameters declare.

    Positional parameters are arguments. Keyword-only ones are options, if their default is ``declare_setting(...)``; if
    their type is a group of settings, they stand for the options of the group, and the command gets an instance of it.
    Other parameters get their values from other decorators.
    """
    hints = get_type_hints(command)
    settings = []
    for name, parameter in inspect.signature(command).parameters.items():
        declared = parameter.default if isinstance(parameter.default, Field) else field()
        is_argument = parameter.kind is parameter.POSITIONAL_OR_KEYWORD
        if is_argument and declared is not parameter.default and hints[name] is not click.Context:
            declared = field(metadata={"says": "argument", "option": f"<{name.upper()}>"})
        setting = make_setting(name, hints[name], declared)
        if setting.says:
            settings.append(setting)

    @wraps(command)
    def run(*args: Any, **values: Any) -> Any:
        return command(*args, **pop_setting_values(settings, "", values), **values)

    return with_options(*list_declarations(settings, ""))(run)  # type: ignore[return-value]


def take_overrides(group: type[SettingGroup], *names: str, into: str = "overrides") -> Declaration:
    """Return a decorator that adds an option for each setting of a group, for those who read it from a file too.

    Args:
        group: the settings.
        names: the only settings that get options; ``table.key`` names one of a group in the group.
        into: parameter of the command that gets the values of the options that are used, by these names.
    """
    chosen = {name: find_setting(group, name) for name in names or (setting.name for setting in list_settings(group))}
    keys = {name: f"{into}__{name.replace('.', '__')}" for name in chosen}

    def add_options(command: F) -> F:
        @wraps(command)
        def run(*args: Any, **values: Any) -> Any:
            options = {name: _get_value(chosen[name], values.pop(key)) for name, key in keys.items()}
            overrides = {name: value for name, value in options.items() if value not in (None, (), {})}
            return command(*args, **{into: overrides}, **values)

        declared = (_declare_option(chosen[name], key, is_override=True) for name, key in keys.items())
        return with_options(*declared)(run)  # type: ignore[return-value]

    return add_options  # type: ignore[return-value]


def list_declarations(settings: Iterable[Setting], prefix: str) -> Iterator[Declaration]:
    """Yield the options of settings; a command gets their values under names that begin with ``prefix``."""
    for setting in settings:
        if setting.is_group:
            yield from list_declarations(list_settings(setting.kind), f"{prefix}{setting.name}__")
        else:
            yield _declare_option(setting, prefix + setting.name)


def pop_setting_values(settings: Iterable[Setting], prefix: str, values: dict[str, Any]) -> dict[str, Any]:
    """Move the values of settings out of those of a command; groups are made of theirs."""
    out: dict[str, Any] = {}
    for setting in settings:
        if setting.is_group:
            inner = pop_setting_values(list_settings(setting.kind), f"{prefix}{setting.name}__", values)
            out[setting.name] = setting.kind(**inner)
        else:
            out[setting.name] = _get_value(setting, values.pop(prefix + setting.name))
    return out


def _get_value(setting: Setting, value: Any) -> Any:
    return dict(value) if setting.shape == "table" and value is not None else value


def _declare_option(setting: Setting, name: str, *, is_override: bool = False) -> Declaration:
    """Declare the option, or the argument, of a setting whose value the command gets as ``name``."""
    words = setting.option.split()
    names = [word.strip(",") for word in words if word.startswith("-")] or [setting.long_option]
    placeholder = words[-1] if words and not words[-1].startswith("-") else ""
    is_required, is_repeated = setting.default is REQUIRED, setting.shape != "one" and not placeholder.endswith(",...")
    details: dict[str, Any] = {"type": _make_type(setting, is_repeated), "required": is_required and not is_override}
    if not (is_required or is_override):
        details["default"] = setting.default
    if setting.noun in _COMPLETIONS:
        details["shell_complete"] = _COMPLETIONS[setting.noun]
    if placeholder.startswith("<"):
        if is_repeated:  # none is () anyway, and Click before 8.3 takes no default for it
            details.pop("default", None)
        shown = placeholder.strip("<>") + "..." * is_repeated
        details |= {"metavar": shown if is_required else f"[{shown}]", "nargs": -1 if is_repeated else 1}
        return cast("Declaration", click.argument(name, **details))
    if placeholder:
        details["metavar"] = placeholder
    if setting.kind is bool:
        details |= {"type": None, "is_flag": True}
        if (setting.default or is_override) and "/" not in names[-1]:
            names[-1] += f"/--no-{names[-1].removeprefix('--')}"
    says = f"{setting.says[0].upper()}{setting.says[1:].removesuffix('.')}."
    if is_repeated:
        details["multiple"], says = True, f"{says} Repeatable."
    if is_override:
        details["default"] = None
        if setting.default not in ("", ()) and setting.kind is not bool:
            says += f"  [default: {setting.default}]"
    has_default = setting.default is not False and setting.default not in (REQUIRED, None, "", (), {})
    details["show_default"] = has_default and not is_override
    return cast("Declaration", click.option(*names, name, help=says, **details))


class _Text(click.ParamType):  # type: ignore[type-arg]
    """A value that a setting reads from a text."""

    name = "text"

    def __init__(self, read: Callable[[str], Any]) -> None:
        self.read = read

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        try:
            return self.read(value)
        except AllonymError:
            raise
        except ValueError as error:
            self.fail(str(error), param, ctx)


class _Choice(click.Choice):  # type: ignore[type-arg]
    """One of some strings. Another is an error that names the nearest."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        value = {spell_british(choice): choice for choice in self.choices}.get(spell_british(value), value)
        check_names("value", (value,), self.choices, param.opts[-1] if param else "")
        return value


def _make_type(setting: Setting, is_repeated: bool) -> Any:
    where = setting.long_option
    if setting.shape == "table" and is_repeated:
        return _Text(lambda text: setting.read_pair(text, where))
    if setting.shape != "one" and not is_repeated:
        return _Text(lambda text: setting.read_text(text, where))
    if setting.parse is not None:
        return _Text(setting.parse)
    if setting.one_of:
        return _Choice(setting.one_of)
    if setting.kind is Path:
        return PATHS[setting.noun]
    ranges: dict[Any, Any] = {int: click.IntRange, float: click.FloatRange}
    return ranges[setting.kind](setting.low, setting.high) if setting.bounds else setting.kind


def _make_completion(place: str, *, files: bool = True) -> Callable[..., list[CompletionItem]]:
    """Return a function that completes the names at ``module:attribute``, or else the name of a file."""
    module, _, attribute = place.partition(":")

    def complete_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        names = getattr(import_module(module), attribute)
        listed = names() if callable(names) else names
        items = [CompletionItem(name) for name in listed if name.startswith(incomplete)]
        if files and not items:
            items.append(CompletionItem(incomplete, type="file"))
        return items

    return complete_names


def complete_labels(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete the name of a label."""
    from allonym.labels import TAXONOMY

    prefix = incomplete.upper()
    return [CompletionItem(lab.name, help=lab.description) for lab in TAXONOMY if lab.name.startswith(prefix)]


_COMPLETIONS: Mapping[str, Callable[..., Any]] = {
    "policy": _make_completion("allonym.policy:presets"),
    "label": complete_labels,
    "operating point": _make_completion("allonym.policy:OPERATING_POINTS", files=False),
    "swap preset": _make_completion("allonym.swap.settings:presets"),
}
"""The noun of a setting, to the completion of its option."""
