"""Presidio's configuration files, YAML or JSON, as plain values that know their lines.

A file may hold recognizers, a registry, the NLP engine, the analyzer, operators of the anonymizer, or a request to one
of its services; several in one file are fine.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from allonym.errors import DataError, hide_foreign_errors, require_extra

_NESTED = ("recognizer_registry", "nlp_configuration", "nlp_engine", "analyzer")
_OPERATOR_TABLES = ("anonymizers", "operators", "anonymizers_config")
_RECOGNIZER_LISTS = ("recognizers", "ad_hoc_recognizers")
_OF_NLP = frozenset({"nlp_engine_name", "models", "ner_model_configuration"})
_PLAIN = frozenset(
    {
        "supported_languages", "supported_language", "language", "default_score_threshold", "score_threshold",
        "global_regex_flags", "supported_countries", "allow_list", "entities",
    }
)  # fmt: skip


class LineTable(dict[str, Any]):
    """A mapping of a file, with its own line and the line of each key, from 1."""

    line = 0

    def __init__(self) -> None:
        super().__init__()
        self.key_lines: dict[str, int] = {}

    def get_line(self, key: str = "") -> int:
        """Return the line of a key, or of the mapping."""
        return self.key_lines.get(key, self.line)


class LineList(list[Any]):
    """A list of a file, with the line of each item, from 1."""

    def __init__(self) -> None:
        super().__init__()
        self.item_lines: list[int] = []


@dataclass(frozen=True, slots=True)
class Entry:
    """A value with its place, ``file:line``."""

    where: str
    value: Any = field(repr=False)


@dataclass(slots=True)
class PresidioFiles:
    """What the files hold.

    Attributes:
        recognizers: tables or names, in their order.
        operators: entity, or ``DEFAULT``, to a table with ``type``.
        nlp: key of the NLP engine's configuration to its value.
        plain: further keys, such as ``supported_languages``.
        unknown: keys that are no part of Presidio's configuration.
        is_whole: whether a registry is described, which holds nothing but its list.
    """

    recognizers: list[Entry] = field(default_factory=list)
    operators: dict[str, Entry] = field(default_factory=dict)
    nlp: dict[str, Entry] = field(default_factory=dict)
    plain: dict[str, Entry] = field(default_factory=dict)
    unknown: list[Entry] = field(default_factory=list)
    is_whole: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether nothing was found that could be converted."""
        return not (self.recognizers or self.operators or self.nlp or self.plain)


def read_files(paths: list[Path]) -> PresidioFiles:
    """Read configuration files; later ones complete earlier ones.

    Raises:
        MissingExtra: YAML needs a package.
        DataError: a file is not valid YAML or JSON, or holds nothing of Presidio's.
    """
    out = PresidioFiles()
    for path in paths:
        before = (len(out.recognizers), len(out.operators), len(out.nlp), len(out.plain))
        for value in _parse_file(path):
            _collect(value, path.name, out)
        if before == (len(out.recognizers), len(out.operators), len(out.nlp), len(out.plain)):
            raise DataError(
                f"{path} holds nothing of Presidio's configuration: recognizers, nlp_engine_name, models or operators"
            )
    return out


def _parse_file(path: Path) -> list[Any]:
    with hide_foreign_errors(f"{path} is not UTF-8", UnicodeDecodeError):
        text = path.read_text(encoding="utf-8-sig")
    with require_extra("YAML", "yaml"):
        import yaml
    if path.suffix.lower() == ".json":
        text = text.replace("\t", " ")  # YAML, which holds JSON, knows no tabs between values
    with hide_foreign_errors(f"{path} is not valid YAML or JSON", yaml.YAMLError, ValueError):
        nodes = list(yaml.compose_all(text, Loader=yaml.SafeLoader))
        return [_convert_node(node, yaml.SafeLoader("")) for node in nodes]


def _convert_node(node: Any, loader: Any) -> Any:
    """Return a node of YAML as plain values; tags that would make other objects are errors of PyYAML."""
    line = node.start_mark.line + 1
    if node.id == "mapping":
        table = LineTable()
        table.line = line
        for key, value in node.value:
            name = str(key.value)
            table[name] = _convert_node(value, loader)
            table.key_lines[name] = key.start_mark.line + 1
        return table
    if node.id == "sequence":
        values = LineList()
        for item in node.value:
            values.append(_convert_node(item, loader))
            values.item_lines.append(item.start_mark.line + 1)
        return values
    return loader.construct_object(node)


def _collect(value: Any, file: str, out: PresidioFiles) -> None:
    if isinstance(value, LineList):
        out.recognizers += _list_entries(value, file)
        return
    if not isinstance(value, LineTable):
        return
    if value and all(_is_operator(row) for row in value.values()):
        out.operators |= {name: Entry(f"{file}:{value.get_line(name)}", row) for name, row in value.items()}
        return
    for key, item in value.items():
        entry = Entry(f"{file}:{value.get_line(key)}", item)
        if key in _RECOGNIZER_LISTS and isinstance(item, LineList):
            out.recognizers += _list_entries(item, file)
            out.is_whole = out.is_whole or (key == "recognizers" and _is_registry(value, item))
        elif key in _OPERATOR_TABLES and isinstance(item, LineTable):
            out.operators |= {name: Entry(f"{file}:{item.get_line(name)}", row) for name, row in item.items()}
        elif key in _NESTED and isinstance(item, LineTable):
            _collect(item, file, out)
        elif key in _OF_NLP:
            out.nlp[key] = entry
        elif key in _PLAIN:
            out.plain[key] = entry
        elif key not in ("text", "analyzer_results"):  # of a request: the user's text
            out.unknown.append(Entry(entry.where, key))


def _is_registry(table: Mapping[str, Any], recognizers: LineList) -> bool:
    """Tell whether a file replaces Presidio's own list of recognizers, rather than adding to it."""
    has_predefined = any(
        isinstance(r, str) or (isinstance(r, dict) and r.get("type") == "predefined") for r in recognizers
    )
    return has_predefined or "supported_languages" in table or "global_regex_flags" in table


def _is_operator(row: Any) -> bool:
    return isinstance(row, dict) and isinstance(row.get("type", row.get("operator_name")), str) and "name" not in row


def _list_entries(values: LineList, file: str) -> Iterator[Entry]:
    for item, line in zip(values, values.item_lines, strict=True):
        yield Entry(f"{file}:{line}", item)
