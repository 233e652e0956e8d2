"""Settings from a file, the environment and options, for a dataclass whose fields are the settings."""

from __future__ import annotations

import math
import os
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import field as dataclass_field
from dataclasses import fields
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from allonym.errors import UsageError, check_names

_WORDS = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}
Reader = Callable[[object, str], Any]


def define_setting(default: Any, description: str, least: float | None = None, most: float | None = None) -> Any:
    """Define a setting as a field of a dataclass: its default, its description, and its least and greatest value."""
    return dataclass_field(default=default, metadata={"says": description, "least": least, "most": most})


def check_bounds(settings: Any) -> None:
    """Check that every number lies within its bounds.

    Raises:
        UsageError: one does not.
    """
    for field in fields(settings):
        value, least, most = (getattr(settings, field.name), *map(field.metadata.get, ("least", "most")))
        if least is not None and not (value >= least and math.isfinite(value)):
            raise UsageError(f"setting {field.name} must be {least} or more, got {value!r}")
        if most is not None and value > most:
            raise UsageError(f"setting {field.name} must be {most} or less, got {value!r}")


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def gather_settings(
    settings_class: Any,
    variable_prefix: str,
    file: str | Path | None,
    environment: Mapping[str, str] | None,
    options: Mapping[str, Any],
    readers: Mapping[str, Reader] | None = None,
) -> dict[str, Any]:
    """Return the values of all settings that are set: options before the environment, before the file.

    Args:
        settings_class: the dataclass.
        variable_prefix: begins the variables; ``PREFIX + "CONFIG"`` names the file where ``file`` is None.
        environment: by default the process's own.
        options: values; None and empty ones do not count.
        readers: of fields that only the file can set.

    Raises:
        UsageError: the file cannot be read, or a value is not what its setting needs; says where.
        UnknownNameError: the file has a key that is no setting.
    """
    environment = os.environ if environment is None else environment
    readers = readers or {}
    defaults = {field.name: field.default for field in fields(settings_class)}
    values: dict[str, Any] = {}
    source = file or environment.get(variable_prefix + "CONFIG") or None
    if source is not None:
        table = _read_toml(Path(source))
        check_names("setting", table, defaults, str(source))
        for name, value in table.items():
            where = f"{source}: {name}"
            values[name] = (
                readers[name](value, where) if name in readers else check_setting(defaults[name], value, where)
            )
    for name, default in defaults.items():
        if name in readers:
            continue
        variable = variable_prefix + name.upper()
        if variable in environment:
            values[name] = _parse_setting(default, environment[variable], variable)
        if options.get(name) not in (None, ()):
            values[name] = check_setting(default, options[name], f"--{name.replace('_', '-')}")
    return values


def check_setting(default: Any, value: Any, where: str) -> Any:
    """Return the value, if it has the type of a setting with this default.

    Raises:
        UsageError: it is not.
    """
    if isinstance(default, bool):
        if not isinstance(value, bool):
            raise UsageError(f"{where} must be true or false, got {value!r}")
        return value
    if isinstance(default, (int, float)):
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not is_number or (isinstance(default, int) and value % 1 != 0):
            form = "an integer" if isinstance(default, int) else "a number"
            raise UsageError(f"{where} must be {form}, got {value!r}")
        return type(default)(value)
    if isinstance(default, tuple):
        if not isinstance(value, (list, tuple)) or not all(isinstance(v, str) for v in value):
            raise UsageError(f"{where} must be a list of strings, got {type(value).__name__}")
        return tuple(value)
    if not isinstance(value, (str, Path)):
        raise UsageError(f"{where} must be a string, got {type(value).__name__}")
    return type(default)(value)


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"cannot read settings {path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: not valid TOML: {error}") from None


def _parse_setting(default: Any, text: str, where: str) -> Any:
    if isinstance(default, bool):
        if text.lower() not in _WORDS:
            raise UsageError(f"{where} must be true or false, got {text!r}")
        return _WORDS[text.lower()]
    if isinstance(default, (int, float)):
        try:
            return type(default)(text)
        except ValueError:
            raise UsageError(f"{where} must be a number, got {text!r}") from None
    if isinstance(default, tuple):
        return tuple(part.strip() for part in text.split(",") if part.strip())
    return type(default)(text)
