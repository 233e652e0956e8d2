"""Settings are declared once: as fields of a frozen dataclass that say what they mean and which values they may have.

::

    class Mixture(SettingGroup):
        clusters: int = declare_setting(0, "components to start from; 0: chosen by the criterion", low=0)
        family: str = declare_setting("spcauchy", "component density", one_of=("pkbd", "spcauchy"))

    class Settings(SettingGroup):
        mixture: Mixture = Mixture()  # a group in a group: a table of the file

A field is a ``str``, ``int``, ``float``, ``bool`` or ``Path``; a ``tuple[X, ...]`` of them (a list in a file, an option
that is repeated); a ``Mapping[str, X]`` (a table in a file, ``NAME=VALUE`` as an option); a group, a tuple of groups or
a mapping to groups; or ``X | None``. A field that is neither declared nor a group is no setting. A group checks its
values when it is made.

From its class derive

- options of a command: ``take_options`` and ``take_overrides`` of ``allonym.cli.signatures``
- keys of a TOML file: :func:`read_table`, or :func:`replace_values` for a file that changes a group
- the file, the environment and the options of a server: :func:`load_settings`
- fields of HTTP requests: ``add_settings`` of ``allonym.server.wire.base``
- the fields of a form, and a JSON schema: :func:`describe_schema`
- rows of the reference: :func:`list_settings`
"""

from __future__ import annotations

import math
import os
import tomllib
from collections.abc import Callable, Hashable, Mapping, Sequence
from copy import copy
from dataclasses import MISSING, Field, dataclass, field, fields, replace
from functools import cache, partial
from pathlib import Path
from types import MappingProxyType, NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, cast, dataclass_transform, get_args, get_origin, get_type_hints

from allonym.errors import UsageError, check_names
from allonym.serial import Serialisable, to_plain

REQUIRED: Any = MISSING
"""The default of a setting that must be given."""

G = TypeVar("G", bound="SettingGroup")
Convert = Callable[["Setting", Any, str], Any]
Schema = dict[str, Any]

_NOUNS = {int: "an integer", str: "a string", float: "a number", bool: "true or false", Path: "a path"}
_JSON_TYPES = {int: "integer", str: "string", float: "number", bool: "boolean", Path: "string"}
_WORDS = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}


def declare_setting(
    default: Any,
    says: str,
    *,
    low: float | None = None,
    high: float | None = None,
    one_of: Sequence[str] = (),
    noun: str = "",
    key_noun: str = "",
    option: str = "",
    parse: Callable[[str], Any] | None = None,
) -> Any:
    """Declare a setting, as the value of a field of a :class:`SettingGroup` or of a parameter of a command.

    Args:
        default: the value where none is given, or ``REQUIRED``.
        says: the meaning, as a phrase; help texts write it as a sentence.
        low, high: the least and the greatest number, of each item.
        one_of: the strings that are allowed, of each item.
        noun: what a string names, such as ``label`` or ``policy``; for a ``Path`` of a command ``file``, ``path`` or
            ``folder``, which must exist, ``new file`` or ``new folder``. Options are completed and checked by it.
        key_noun: what the keys of a table name.
        option: how the option is spelled, with a placeholder: ``-n, --name NAME``. By default it has the field's name;
            a placeholder alone, ``NAME``, leaves it that name, and ``<NAME>`` makes it an argument, by its place. A
            list or table whose placeholder ends in ``,...`` is one option with commas; any other is repeated.
        parse: returns the value of an option's text, of each item; raises ValueError with what is required.
    """
    about = {"says": says, "low": low, "high": high, "one_of": tuple(one_of), "noun": noun, "key_noun": key_noun}
    metadata = {**about, "option": option, "parse": parse}
    if isinstance(default, Mapping):
        return field(default_factory=lambda: MappingProxyType(dict(default)), metadata=metadata)
    return field(default=default, metadata=metadata)


@dataclass(frozen=True, slots=True)
class Setting:
    """A declared setting; see :func:`declare_setting`.

    Attributes:
        kind: type of the value, or of each item: ``str``, ``int``, ``float``, ``bool``, ``Path`` or a group.
        shape: whether it is ``one`` value, a ``list`` of them or a ``table`` from strings to them.
        optional: whether it may be None, for no value.
    """

    name: str
    kind: Any
    shape: Literal["one", "list", "table"]
    optional: bool
    default: Any
    says: str
    low: float | None = None
    high: float | None = None
    one_of: tuple[str, ...] = ()
    noun: str = ""
    key_noun: str = ""
    option: str = ""
    parse: Callable[[str], Any] | None = None

    @property
    def is_group(self) -> bool:
        """Whether its values are groups of settings."""
        return isinstance(self.kind, type) and issubclass(self.kind, SettingGroup)

    @property
    def is_one_group(self) -> bool:
        """Whether its value is a group: a table of a file with keys of its own."""
        return self.is_group and self.shape == "one"

    @property
    def long_option(self) -> str:
        """How its option is spelled unless it is declared otherwise: ``--with-hyphens``."""
        return f"--{self.name.replace('_', '-')}"

    @property
    def bounds(self) -> str:
        """The numbers that are allowed, in words: ``from 0 to 1``, ``1 or more``; empty: any."""
        if self.low is None:
            return ""
        return f"{self.low:g} or more" if self.high is None else f"from {self.low:g} to {self.high:g}"

    def check_value(self, value: Any, where: str, convert: Convert | None = None) -> Any:
        """Return a value in the form that the setting has: lists as tuples, integers as floats where those are meant.

        Args:
            where: begins the messages.
            convert: gets the setting, a checked item and its place, and returns what is kept. Keys of a table that
                name something are items of a setting with their ``key_noun`` as its ``noun``.

        Raises:
            UsageError: the value has another type, or is out of bounds.
            UnknownNameError: it is none of the values that are allowed, or one of its keys is not known.
        """
        if self.parse is not None or (value is None and self.optional):
            return value
        if self.shape == "list":
            if not isinstance(value, (list, tuple)):
                raise UsageError(f"{where} must be a list, got {_show_value(value)}")
            places = (where if self.kind in _NOUNS else f"{where}[{i}]" for i in range(len(value)))
            return tuple(self._check_item(item, place, convert) for item, place in zip(value, places, strict=True))
        if self.shape == "table":
            items = check_table(value, where).items()
            if convert and self.key_noun:
                key_setting = Setting(self.name, str, "one", False, REQUIRED, self.says, noun=self.key_noun)
                for key in value:
                    convert(key_setting, key, where)
            return MappingProxyType({key: self._check_item(item, f"{where}.{key}", convert) for key, item in items})
        return self._check_item(value, where, convert)

    def _check_item(self, value: Any, where: str, convert: Convert | None) -> Any:
        if self.is_group and not isinstance(value, self.kind):
            value = self.kind(**read_table(self.kind, value, where, convert))
        elif self.kind in _NOUNS:
            if self.kind is float and type(value) is int:
                value = float(value)
            elif self.kind is Path and isinstance(value, str):
                value = Path(value)
            if not isinstance(value, self.kind) or (isinstance(value, bool) and self.kind is not bool):
                raise UsageError(f"{where} must be {_NOUNS[self.kind]}, got {_show_value(value)}")
            if self.kind in (int, float):
                low = -math.inf if self.low is None else self.low
                high = math.inf if self.high is None else self.high
                if not (low <= value <= high and math.isfinite(value)):
                    raise UsageError(f"{where} must be {self.bounds or 'finite'}, got {value!r}")
            if self.one_of:
                check_names(self.noun or "value", (value,), self.one_of, where)
        return value if convert is None else convert(self, value, where)

    def read_text(self, text: str, where: str) -> Any:
        """Return the value that a text means; the items of a list or table are between commas.

        Raises:
            UsageError, UnknownNameError: as for :meth:`check_value`.
        """
        if self.shape == "one":
            return self.check_value(self._read_item(text, where), where)
        parts = [part.strip() for part in text.split(",") if part.strip()]
        if self.shape == "list":
            return self.check_value([self._read_item(part, where) for part in parts], where)
        return self.check_value(dict(self.read_pair(part, where) for part in parts), where)

    def read_pair(self, text: str, where: str) -> tuple[str, Any]:
        """Return the key and the value of ``NAME=VALUE``, an entry of a table. Raises as :meth:`check_value`."""
        name, equals, value = text.partition("=")
        if not (name.strip() and equals and value.strip()):
            form = self.option.rpartition(" ")[2] or "NAME=VALUE"
            raise UsageError(f"{where} must be {form}, got {text!r}")
        return name.strip(), self._read_item(value.strip(), where)

    def _read_item(self, text: str, where: str) -> Any:
        if self.parse is not None:
            return self.parse(text)
        if self.kind is bool:
            return _WORDS.get(text.lower(), text)
        try:
            return self.kind(text)
        except ValueError:
            raise UsageError(f"{where} must be {_NOUNS[self.kind]}, got {text!r}") from None


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
class SettingGroup(Serialisable):
    """Settings that belong together. Its subclasses are made frozen dataclasses without a decorator.

    Raises:
        UsageError, UnknownNameError: when it is made, if a value is not allowed.
    """

    def __init_subclass__(cls, *, repr: bool = True) -> None:
        for name, value in list(vars(cls).items()):
            if isinstance(value, Field):
                setattr(cls, name, copy(value))  # a declaration may be shared, and a dataclass writes into it
        super().__init_subclass__(repr=repr)

    def __post_init__(self) -> None:
        for setting in list_settings(type(self)):
            value = setting.check_value(getattr(self, setting.name), f"setting {setting.name}")
            object.__setattr__(self, setting.name, value)


def list_settings(group: type[SettingGroup]) -> tuple[Setting, ...]:
    """Return the settings of a group, in their order."""
    return _read_settings(cast(Hashable, group))


@cache
def _read_settings(group: Any) -> tuple[Setting, ...]:
    hints = get_type_hints(group)
    listed = (make_setting(f.name, hints[f.name], f) for f in fields(group))
    return tuple(setting for setting in listed if setting.says)


def make_setting(name: str, hint: Any, declared: Field[Any]) -> Setting:
    """Return the setting of a field, or of a parameter, from its type and its declaration.

    The meaning of a group is the first line of its docstring; that of a field that is not declared is empty.
    """
    optional = get_origin(hint) in (Union, UnionType) and NoneType in get_args(hint)
    if optional:
        others = [kind for kind in get_args(hint) if kind is not NoneType]
        hint = others[0] if len(others) == 1 else object
    origin, kinds = get_origin(hint), get_args(hint)
    about = dict(declared.metadata)
    shape: Literal["one", "list", "table"] = "one"
    if origin is tuple and kinds[-1] is Ellipsis:
        shape, hint = "list", kinds[0]
    elif isinstance(origin, type) and issubclass(origin, Mapping):
        shape, hint = "table", kinds[1]
    elif origin is Literal:
        hint, about = str, {**about, "one_of": kinds}
    if "says" not in about:
        is_group = isinstance(hint, type) and issubclass(hint, SettingGroup)
        about["says"] = (hint.__doc__ or "").partition("\n")[0] if is_group else ""
    default = declared.default if declared.default_factory is MISSING else declared.default_factory()
    return Setting(name, hint, shape, optional, default, **about)


def find_setting(group: type[SettingGroup], name: str) -> Setting:
    """Return a setting by its name, or by ``table.key`` one of a group in the group.

    Raises:
        UnknownNameError: there is none.
    """
    above, _, key = name.rpartition(".")
    holder = find_setting(group, above).kind if above else group
    settings = {setting.name: setting for setting in list_settings(holder)}
    check_names("setting", (key,), settings, above)
    return settings[key]


def check_table(value: object, where: str) -> Mapping[str, Any]:
    """Return a value that is a table. Raises :class:`UsageError` if it is none."""
    if not isinstance(value, Mapping):
        raise UsageError(f"{where} must be a table, got {_show_value(value)}")
    return value


def read_table(group: type[SettingGroup], table: object, where: str, convert: Convert | None = None) -> dict[str, Any]:
    """Return the values of the settings that a table of a file has, in the form that the group's fields have.

    Args:
        where: begins the messages: the file's name, or empty.
        convert: as for :meth:`Setting.check_value`.

    Raises:
        UsageError: it is no table, lacks a setting that is required, or a value is not what its setting needs.
        UnknownNameError: a key or a value is not known; the message names the nearest.
    """
    matched = _match_settings(group, table, where)
    names = {setting.name for setting, _, _ in matched}
    for setting in list_settings(group):
        if setting.default is REQUIRED and setting.name not in names:
            raise UsageError(f"{where}: {setting.name} is required")
    return {setting.name: setting.check_value(value, place, convert) for setting, value, place in matched}


def read_present_values(
    group: type[SettingGroup], table: object, where: str, convert: Convert | None = None
) -> dict[str, Any]:
    """Return what :func:`read_table` does, but of a group in the group only the values that the table has.

    Nothing is required.

    Raises:
        UsageError, UnknownNameError: as for :func:`read_table`.
    """
    present: dict[str, Any] = {}
    for setting, value, place in _match_settings(group, table, where):
        read = partial(read_present_values, setting.kind) if setting.is_one_group else setting.check_value
        present[setting.name] = read(value, place, convert)
    return present


def list_defaults(group: type[SettingGroup]) -> dict[str, Any]:
    """Return the default of each setting of a group."""
    return {setting.name: setting.default for setting in list_settings(group)}


def replace_values(base: G, table: object, where: str, convert: Convert | None = None) -> G:
    """Return a copy of a group that a table changes: keys of groups in it, and of tables, stay where it names others.

    Raises:
        UsageError, UnknownNameError: as for :func:`read_table`.
    """
    changes: dict[str, Any] = {}
    for setting, value, place in _match_settings(type(base), table, where):
        current = getattr(base, setting.name)
        if setting.is_one_group:
            changes[setting.name] = replace_values(current, value, place, convert)
            continue
        changed = setting.check_value(value, place, convert)
        changes[setting.name] = MappingProxyType({**current, **changed}) if setting.shape == "table" else changed
    return replace(base, **changes)


def _match_settings(group: type[SettingGroup], table: object, where: str) -> list[tuple[Setting, Any, str]]:
    """Return for each key of a table its setting, its value and its place; unknown keys are errors."""
    settings = {setting.name: setting for setting in list_settings(group)}
    values = check_table(table, where)
    check_names("key", values, settings, where)
    return [(settings[key], value, _join_place(where, key)) for key, value in values.items()]


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file. Raises :class:`UsageError` if it cannot be read."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"cannot read settings {path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: not valid TOML: {error}") from None


def load_settings(
    group: type[G],
    prefix: str,
    file: str | Path | None = None,
    environment: Mapping[str, str] | None = None,
    options: Mapping[str, Any] = MappingProxyType({}),
) -> G:
    """Return the settings: options before the environment, before the file, before the defaults.

    Args:
        prefix: begins the variables; ``PREFIX + "CONFIG"`` names the file where ``file`` is None.
        environment: by default the process's own.
        options: values; None and empty lists do not count.

    Raises:
        UsageError: the file cannot be read, or a value is not what its setting needs; says where.
        UnknownNameError: the file has a key that is no setting.
    """
    environment = os.environ if environment is None else environment
    source = file or environment.get(f"{prefix}CONFIG")
    values = read_table(group, read_toml(Path(source)), str(source)) if source else {}
    for setting in list_settings(group):
        variable = prefix + setting.name.upper()
        if variable in environment and not setting.is_group:
            values[setting.name] = setting.read_text(environment[variable], variable)
        if (option := options.get(setting.name)) not in (None, ()):
            values[setting.name] = setting.check_value(option, setting.long_option)
    return group(**values)


def describe_schema(settings: Sequence[Setting], named: Mapping[str, Schema] = MappingProxyType({})) -> Schema:
    """Return the JSON schema of a table with these settings; a form can be drawn from it.

    Args:
        named: the schema of a string that names a thing, by the setting's ``noun``.
    """
    required = [setting.name for setting in settings if setting.default is REQUIRED]
    return {
        "type": "object",
        "properties": {setting.name: _describe_setting(setting, named) for setting in settings},
        **({"required": required} if required else {}),
        "additionalProperties": False,
    }


def _describe_setting(setting: Setting, named: Mapping[str, Schema]) -> Schema:
    if setting.is_group:
        item = describe_schema(list_settings(setting.kind), named)
    elif setting.noun in named:
        item = dict(named[setting.noun])
    else:
        item = {"type": _JSON_TYPES[setting.kind]} if setting.kind in _JSON_TYPES else {}
        item = {"enum": list(setting.one_of)} if setting.one_of else item
        bounds = {"minimum": setting.low, "maximum": setting.high}
        item |= {key: bound for key, bound in bounds.items() if bound is not None}
    key_names = {"propertyNames": named[setting.key_noun]} if setting.key_noun in named else {}
    shapes: dict[str, Schema] = {
        "one": item,
        "list": {"type": "array", "items": item},
        "table": {"type": "object", **key_names, "additionalProperties": item},
    }
    says = {"description": setting.says} if setting.says else {}
    schema: Schema = {**says, **shapes[setting.shape]}
    if setting.default not in (REQUIRED, None) and not setting.is_group:
        schema["default"] = to_plain(setting.default)
    return schema


def _join_place(where: str, key: str) -> str:
    """Return ``FILE: key``, or ``FILE: table.key`` where the place is in a file already."""
    return f"{where}{'.' if ': ' in where else ': '}{key}" if where else key


def _show_value(value: object) -> str:
    return repr(value) if isinstance(value, (bool, int, float)) else type(value).__name__
