"""The JSON Schema of policy files, derived from the settings by which :mod:`allonym.policy` reads them."""

from __future__ import annotations

import inspect
import types
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from allonym import registry
from allonym.labels import TAXONOMY
from allonym.pattern import PatternRule
from allonym.policy import OPERATING_POINTS, PolicyFile
from allonym.settings import Schema, describe_schema, list_settings

DIALECT = "https://json-schema.org/draft/2020-12/schema"

_TYPES = {int: "integer", str: "string", float: "number", list: "array", dict: "object", bool: "boolean"}
_STRING: Schema = {"type": "string"}
_STRINGS: Schema = {"type": "array", "items": _STRING}
_UNIT: Schema = {"type": "number", "minimum": 0, "maximum": 1}
_LABEL: Schema = {"$ref": "#/$defs/label"}
_POINT: Schema = {
    "anyOf": [{"enum": list(OPERATING_POINTS)}, {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}]
}


def policy_schema() -> Schema:
    """Return a JSON Schema (draft 2020-12) of policy files, with the detectors, operators and labels of this process.

    It accepts every file that :meth:`allonym.policy.Policy.load` accepts; what only the loader can know (whether a
    pattern compiles, a file exists, a label is added by the policy itself) it leaves to it.
    """
    prompt = _describe_object(dict.fromkeys(registry.LLM_PROMPT_PARTS, _STRING))
    named: dict[str, Schema] = {
        "label": _LABEL,
        "label or nothing": {"anyOf": [_LABEL, {"const": ""}]},
        "detector": {"enum": list(registry.detectors.names())},
        "operating point": _POINT,
        "rule": {"$ref": "#/$defs/rule"},
        "terms": {"$ref": "#/$defs/terms"},
        "metadata keys": _STRINGS,
        "prompt": prompt,
        "prompt name": {"enum": list(registry.LLM_PROMPTS)},
        "pattern": _describe_pattern_rule(),
    }
    return {
        "$schema": DIALECT,
        "title": "allonym policy",
        **describe_schema(list_settings(PolicyFile), named),
        "$defs": {
            "label": {"anyOf": [{"enum": [lab.name for lab in TAXONOMY]}, {"pattern": "^[A-Z][A-Z0-9_]*$"}]},
            "rule": _describe_rule(),
            "terms": {"anyOf": [_STRINGS, _describe_object({"file": _STRING, "column": _STRING}, ("file",))]},
        },
    }


def _describe_object(properties: Mapping[str, object], required: Sequence[str] = ()) -> Schema:
    listed = {"required": list(required)} if required else {}
    return {"type": "object", "properties": dict(properties), **listed, "additionalProperties": False}


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
