"""The JSON Schema of policy files, derived from the tables by which :mod:`allonym.policy` reads them."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from allonym import registry
from allonym.labels import SCHEMES, TAXONOMY, Kind
from allonym.pattern import PatternRule
from allonym.policy import CONSISTENT, DETECT_KEYS, IMAGES, KEYS, LABEL_KEYS, OPERATING_POINTS, SCHEMA, TAG_KEYS

DIALECT = "https://json-schema.org/draft/2020-12/schema"

_TYPES = {int: "integer", str: "string", float: "number", list: "array", dict: "object", bool: "boolean"}
_STRINGS: dict[str, object] = {"type": "array", "items": {"type": "string"}}
_UNIT: dict[str, object] = {"type": "number", "minimum": 0, "maximum": 1}
_LABEL: dict[str, object] = {"$ref": "#/$defs/label"}
_LABELS: dict[str, object] = {"type": "array", "items": _LABEL}
_POINT: dict[str, object] = {
    "anyOf": [{"enum": list(OPERATING_POINTS)}, {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}]
}


def policy_schema() -> dict[str, object]:
    """Return a JSON Schema (draft 2020-12) of policy files, with the detectors, operators and labels of this process.

    It accepts every file that :meth:`allonym.policy.Policy.load` accepts; what only the loader can know (whether a
    pattern compiles, a file exists, a label is added by the policy itself) it leaves to it.
    """
    values: dict[str, dict[str, object]] = {
        "schema": {"const": SCHEMA},
        "threshold": _UNIT,
        "consistent": {"enum": list(CONSISTENT)},
        "images": {"enum": list(IMAGES)},
        "countries": _STRINGS,
        "detect": _describe_object(DETECT_KEYS, _describe_detect_key),
        "llm": _describe_object(tuple(registry.LLM_KEYS), lambda name: _describe_key(registry.LLM_KEYS[name])),
        "tag": _describe_object(TAG_KEYS, _describe_tag_key),
        "default": {"$ref": "#/$defs/rule"},
        "rules": _per_label({"$ref": "#/$defs/rule"}),
        "dictionary": _per_label({"$ref": "#/$defs/terms"}),
        "exclusions": {"type": "object", "additionalProperties": {"$ref": "#/$defs/terms"}},
        "metadata": _per_label(_STRINGS),
        "labels": {"type": "array", "items": _describe_object(LABEL_KEYS, _describe_label_key, ("name",))},
        "patterns": {"type": "array", "items": _describe_pattern()},
    }
    properties: dict[str, object] = {
        key: {"description": says, "type": _TYPES[kind], **values.get(key, {})} for key, (kind, says) in KEYS.items()
    }
    return {
        "$schema": DIALECT,
        "title": "allonym policy",
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
        "$defs": {
            "label": {"anyOf": [{"enum": [lab.name for lab in TAXONOMY]}, {"pattern": "^[A-Z][A-Z0-9_]*$"}]},
            "rule": _describe_rule(),
            "terms": {
                "anyOf": [_STRINGS, _describe_object(("file", "column"), lambda _: {"type": "string"}, ("file",))]
            },
        },
    }


def _describe_object(
    keys: tuple[str, ...], describe: Callable[[str], object], required: tuple[str, ...] = ()
) -> dict[str, object]:
    out: dict[str, object] = {"type": "object", "properties": {key: describe(key) for key in keys}}
    if required:
        out["required"] = list(required)
    return out | {"additionalProperties": False}


def _per_label(value: Mapping[str, object]) -> dict[str, object]:
    return {"type": "object", "propertyNames": _LABEL, "additionalProperties": value}


def _describe_detect_key(key: str) -> dict[str, object]:
    if key in ("labels", "exclude"):
        return dict(_LABELS)
    if key == "detectors":
        return {"type": "array", "items": {"enum": list(registry.detectors.names())}}
    if key == "operating_point":
        return dict(_POINT)
    if key == "operating_points":
        return _per_label(_POINT)
    if key in registry.DETECTOR_KEYS:
        keys = registry.DETECTOR_KEYS[key]
        return _describe_object(tuple(keys), lambda name: _describe_key(keys[name]))
    return dict(_STRINGS)


def _describe_key(key: registry.Key) -> dict[str, object]:
    return {"description": key.description, **_describe_option(key.kind)}


def _describe_option(kind: str) -> dict[str, object]:
    """Describe an option of a detector, or of the table ``[llm]``."""
    mode: dict[str, object] = {"enum": list(registry.MODES)}
    kinds: dict[str, dict[str, object]] = {
        "unit": _UNIT,
        "count": {"type": "integer", "minimum": 1},
        "natural": {"type": "integer", "minimum": 0},
        "number": {"type": "number"},
        "json": {"enum": list(registry.JSON_MODES)},
        "prompts": _describe_object(
            tuple(registry.LLM_PROMPTS),
            lambda _: _describe_object(registry.LLM_PROMPT_PARTS, lambda _: {"type": "string"}),
        ),
        "flag": {"type": "boolean"},
        "names": _STRINGS,
        "labels": {"type": "object", "additionalProperties": {"anyOf": [_LABEL, {"const": ""}]}},
        "mode": mode,
        "modes": _per_label(mode),
    }
    return dict(kinds.get(kind, {"type": "string"}))


def _describe_tag_key(key: str) -> dict[str, object]:
    return {"enum": ["", *SCHEMES]} if key == "names" else {"type": "string"}


def _describe_label_key(key: str) -> dict[str, object]:
    if key == "kind":
        return {"enum": list(get_args(Kind))}
    if key == "risk":
        return {"type": "integer", "minimum": 0, "maximum": 5}
    if key in ("name", "parent"):
        return dict(_LABEL)
    return {"type": "string"}


def _describe_pattern() -> dict[str, object]:
    says = _read_attributes(PatternRule)
    hints = get_type_hints(PatternRule)
    properties = {
        f.name: {"description": says.get(f.name, ""), **_describe_type(hints[f.name])} for f in fields(PatternRule)
    }
    properties["label"] |= _LABEL
    required = ["name", "label", "pattern"]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _describe_rule() -> dict[str, object]:
    """Describe a rule: each operator has its own options, which are its keyword-only parameters."""
    names = list(registry.operators.names())
    shared: dict[str, object] = {"operator": {"enum": names}, "threshold": _UNIT}
    cases = []
    for name in names:
        chosen = {"properties": {"operator": {"const": name}}, "required": ["operator"]}
        allowed = {
            "properties": {**shared, **_describe_options(registry.operators.get(name))},
            "additionalProperties": False,
        }
        cases.append({"if": chosen, "then": allowed})
    return {"type": "object", "properties": shared, "allOf": cases}


def _describe_options(operator: Any) -> dict[str, object]:
    out: dict[str, object] = {}
    for parameter in inspect.signature(operator, eval_str=True).parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY:
            value = parameter.default
            plain = isinstance(value, (str, int, float, bool, list, tuple))
            out[parameter.name] = _describe_type(parameter.annotation) | ({"default": value} if plain else {})
    return out


def _describe_type(hint: Any) -> dict[str, object]:
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
    out: dict[str, object] = {"type": _TYPES[kind]}
    if kind is list and args:
        out["items"] = _describe_type(args[0])
    return out


def _read_attributes(cls: type) -> dict[str, str]:
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
