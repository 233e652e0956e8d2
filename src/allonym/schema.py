"""The JSON Schema of policy files, derived from the tables by which :mod:`allonym.policy` reads them."""

from __future__ import annotations

import inspect
import types
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from allonym import registry
from allonym.labels import SCHEMES, TAXONOMY, Kind
from allonym.pattern import PatternRule
from allonym.policy import CONSISTENT, DETECT_KEYS, IMAGES, KEYS, LABEL_KEYS, OPERATING_POINTS, SCHEMA, TAG_KEYS

DIALECT = "https://json-schema.org/draft/2020-12/schema"

Schema = dict[str, object]

_TYPES = {int: "integer", str: "string", float: "number", list: "array", dict: "object", bool: "boolean"}
_STRING: Schema = {"type": "string"}
_STRINGS: Schema = {"type": "array", "items": _STRING}
_UNIT: Schema = {"type": "number", "minimum": 0, "maximum": 1}
_LABEL: Schema = {"$ref": "#/$defs/label"}
_LABELS: Schema = {"type": "array", "items": _LABEL}
_RULE: Schema = {"$ref": "#/$defs/rule"}
_TERMS: Schema = {"$ref": "#/$defs/terms"}
_POINT: Schema = {
    "anyOf": [{"enum": list(OPERATING_POINTS)}, {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}]
}


def policy_schema() -> Schema:
    """Return a JSON Schema (draft 2020-12) of policy files, with the detectors, operators and labels of this process.

    It accepts every file that :meth:`allonym.policy.Policy.load` accepts; what only the loader can know (whether a
    pattern compiles, a file exists, a label is added by the policy itself) it leaves to it.
    """
    tag_keys = {"style": _STRING, "names": {"enum": ["", *SCHEMES]}}
    label_keys = {
        "name": _LABEL,
        "parent": _LABEL,
        "kind": {"enum": list(get_args(Kind))},
        "risk": {"type": "integer", "minimum": 0, "maximum": 5},
        "description": _STRING,
    }
    values: dict[str, Schema] = {
        "schema": {"const": SCHEMA},
        "threshold": _UNIT,
        "consistent": {"enum": list(CONSISTENT)},
        "images": {"enum": list(IMAGES)},
        "countries": _STRINGS,
        "detect": _describe_detect_table(),
        "llm": _describe_options_table(registry.LLM_KEYS),
        "tag": _describe_object({key: tag_keys[key] for key in TAG_KEYS}),
        "default": _RULE,
        "rules": _describe_table_by_label(_RULE),
        "dictionary": _describe_table_by_label(_TERMS),
        "exclusions": {"type": "object", "additionalProperties": _TERMS},
        "metadata": _describe_table_by_label(_STRINGS),
        "labels": {
            "type": "array",
            "items": _describe_object({key: label_keys[key] for key in LABEL_KEYS}, ("name",)),
        },
        "patterns": {"type": "array", "items": _describe_pattern_rule()},
    }
    properties: Schema = {
        key: {"description": says, "type": _TYPES[kind], **values.get(key, {})} for key, (kind, says) in KEYS.items()
    }
    return {
        "$schema": DIALECT,
        "title": "allonym policy",
        **_describe_object(properties),
        "$defs": {
            "label": {"anyOf": [{"enum": [lab.name for lab in TAXONOMY]}, {"pattern": "^[A-Z][A-Z0-9_]*$"}]},
            "rule": _describe_rule(),
            "terms": {"anyOf": [_STRINGS, _describe_object({"file": _STRING, "column": _STRING}, ("file",))]},
        },
    }


def _describe_object(properties: Mapping[str, object], required: Sequence[str] = ()) -> Schema:
    listed = {"required": list(required)} if required else {}
    return {"type": "object", "properties": dict(properties), **listed, "additionalProperties": False}


def _describe_table_by_label(value: Schema) -> Schema:
    return {"type": "object", "propertyNames": _LABEL, "additionalProperties": value}


def _describe_detect_table() -> Schema:
    tables = {name: _describe_options_table(keys) for name, keys in registry.DETECTOR_KEYS.items()}
    properties = {
        "detectors": {"type": "array", "items": {"enum": list(registry.detectors.names())}},
        "labels": _LABELS,
        "exclude": _LABELS,
        "operating_point": _POINT,
        "operating_points": _describe_table_by_label(_POINT),
        **tables,
    }
    return _describe_object({key: properties[key] for key in DETECT_KEYS})


def _describe_options_table(keys: Mapping[str, registry.Key]) -> Schema:
    """Describe the table of a detector, or the table ``[llm]``."""
    mode: Schema = {"enum": list(registry.MODES)}
    prompt = _describe_object(dict.fromkeys(registry.LLM_PROMPT_PARTS, _STRING))
    kinds: dict[str, Schema] = {
        "unit": _UNIT,
        "count": {"type": "integer", "minimum": 1},
        "natural": {"type": "integer", "minimum": 0},
        "number": {"type": "number"},
        "json": {"enum": list(registry.JSON_MODES)},
        "prompts": _describe_object(dict.fromkeys(registry.LLM_PROMPTS, prompt)),
        "flag": {"type": "boolean"},
        "names": _STRINGS,
        "labels": {"type": "object", "additionalProperties": {"anyOf": [_LABEL, {"const": ""}]}},
        "mode": mode,
        "modes": _describe_table_by_label(mode),
    }
    return _describe_object(
        {name: {"description": key.description, **kinds.get(key.kind, _STRING)} for name, key in keys.items()}
    )


def _describe_pattern_rule() -> Schema:
    says = _read_descriptions(PatternRule)
    properties = {
        name: {"description": says.get(name, ""), **_describe_type(hint)}
        for name, hint in get_type_hints(PatternRule).items()
    }
    properties["label"] |= _LABEL
    return _describe_object(properties, ("name", "label", "pattern"))


def _describe_rule() -> Schema:
    """Describe a rule: each operator has its own options, which are its keyword-only parameters."""
    names = list(registry.operators.names())
    shared: Schema = {"operator": {"enum": names}, "threshold": _UNIT}
    cases = []
    for name in names:
        chosen = {"properties": {"operator": {"const": name}}, "required": ["operator"]}
        allowed = {**shared, **_map_option_schemas(registry.operators.get(name))}
        cases.append({"if": chosen, "then": {"properties": allowed, "additionalProperties": False}})
    return {"type": "object", "properties": shared, "allOf": cases}


def _map_option_schemas(operator: Any) -> Schema:
    """Map each option of an operator to its schema."""
    out: Schema = {}
    for parameter in inspect.signature(operator, eval_str=True).parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY:
            value = parameter.default
            plain = isinstance(value, (str, int, float, bool, list, tuple))
            out[parameter.name] = _describe_type(parameter.annotation) | ({"default": value} if plain else {})
    return out


def _describe_type(hint: Any) -> Schema:
    origin, args = get_origin(hint), get_args(hint)
    if origin is Literal:
        return {"enum": list(args)}
    if origin in (types.UnionType, Union):
        kinds = [_describe_type(a) for a in args if a is not types.NoneType]
        return kinds[0] if len(kinds) == 1 else {"anyOf": kinds}
    if origin is tuple and args[-1] is not Ellipsis:
        return {"type": "array", "items": _describe_type(args[0]), "minItems": len(args), "maxItems": len(args)}
    kind = {tuple: list, Sequence: list, Mapping: dict}.get(origin or hint, origin or hint)
    if kind not in _TYPES:
        return {}
    out: Schema = {"type": _TYPES[kind]}
    if kind is list and args:
        out["items"] = _describe_type(args[0])
    return out


def _read_descriptions(cls: type) -> dict[str, str]:
    """Read what the ``Attributes:`` section of a docstring says about each attribute, on one line each."""
    out: dict[str, str] = {}
    name = ""
    for line in inspect.cleandoc(cls.__doc__ or "").partition("Attributes:\n")[2].splitlines():
        head, colon, rest = line.strip().partition(": ")
        if line.startswith("    ") and not line.startswith("     ") and colon and head.isidentifier():
            name = head
            out[name] = rest
        elif name and line.strip():
            out[name] += " " + line.strip()
    return out
