"""The JSON Schema of policy files, derived from the tables by which :mod:`allonym.policy` reads them."""

from __future__ import annotations

import inspect
import types
from collections.abc import Mapping, Sequence
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
    """A JSON Schema (draft 2020-12) of policy files, with the detectors, operators and labels known here and now.

    It accepts every file that :meth:`allonym.policy.Policy.load` accepts; what only the loader can know (whether a
    pattern compiles, a file exists, a label is added by the policy itself) it leaves to it.
    """
    known: dict[str, dict[str, object]] = {
        "schema": {"const": SCHEMA},
        "threshold": _UNIT,
        "consistent": {"enum": list(CONSISTENT)},
        "images": {"enum": list(IMAGES)},
        "countries": _STRINGS,
        "detect": _closed(DETECT_KEYS, _detect_key),
        "llm": _closed(tuple(registry.LLM_KEYS), lambda name: _keyed(registry.LLM_KEYS[name])),
        "tag": _closed(TAG_KEYS, _tag_key),
        "default": {"$ref": "#/$defs/rule"},
        "rules": _per_label({"$ref": "#/$defs/rule"}),
        "dictionary": _per_label({"$ref": "#/$defs/terms"}),
        "exclusions": {"type": "object", "additionalProperties": {"$ref": "#/$defs/terms"}},
        "metadata": _per_label(_STRINGS),
        "labels": {"type": "array", "items": _closed(LABEL_KEYS, _label_key, ("name",))},
        "patterns": {"type": "array", "items": _pattern()},
    }
    properties: dict[str, object] = {
        key: {"description": says, "type": _TYPES[kind], **known.get(key, {})} for key, (kind, says) in KEYS.items()
    }
    return {
        "$schema": DIALECT,
        "title": "allonym policy",
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
        "$defs": {
            "label": {"anyOf": [{"enum": [lab.name for lab in TAXONOMY]}, {"pattern": "^[A-Z][A-Z0-9_]*$"}]},
            "rule": _rule(),
            "terms": {"anyOf": [_STRINGS, _closed(("file", "column"), lambda _: {"type": "string"}, ("file",))]},
        },
    }


def _closed(keys: tuple[str, ...], of: Any, required: tuple[str, ...] = ()) -> dict[str, object]:
    out: dict[str, object] = {"type": "object", "properties": {key: of(key) for key in keys}}
    if required:
        out["required"] = list(required)
    return out | {"additionalProperties": False}


def _per_label(value: Mapping[str, object]) -> dict[str, object]:
    return {"type": "object", "propertyNames": _LABEL, "additionalProperties": value}


def _detect_key(key: str) -> dict[str, object]:
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
        return _closed(tuple(keys), lambda name: _keyed(keys[name]))
    return dict(_STRINGS)


def _keyed(key: registry.Key) -> dict[str, object]:
    return {"description": key.says, **_option(key.kind)}


def _option(kind: str) -> dict[str, object]:
    """The schema of an option of a detector, or of the table ``[llm]``."""
    mode: dict[str, object] = {"enum": list(registry.MODES)}
    kinds: dict[str, dict[str, object]] = {
        "unit": _UNIT,
        "count": {"type": "integer", "minimum": 1},
        "natural": {"type": "integer", "minimum": 0},
        "number": {"type": "number"},
        "json": {"enum": list(registry.JSON_MODES)},
        "prompts": _closed(
            tuple(registry.LLM_PROMPTS),
            lambda _: _closed(registry.LLM_PROMPT_PARTS, lambda _: {"type": "string"}),
        ),
        "flag": {"type": "boolean"},
        "names": _STRINGS,
        "labels": {"type": "object", "additionalProperties": {"anyOf": [_LABEL, {"const": ""}]}},
        "mode": mode,
        "modes": _per_label(mode),
    }
    return dict(kinds.get(kind, {"type": "string"}))


def _tag_key(key: str) -> dict[str, object]:
    return {"enum": ["", *SCHEMES]} if key == "names" else {"type": "string"}


def _label_key(key: str) -> dict[str, object]:
    if key == "kind":
        return {"enum": list(get_args(Kind))}
    if key == "risk":
        return {"type": "integer", "minimum": 0, "maximum": 5}
    if key in ("name", "parent"):
        return dict(_LABEL)
    return {"type": "string"}


def _pattern() -> dict[str, object]:
    says = _attributes(PatternRule)
    hints = get_type_hints(PatternRule)
    properties = {f.name: {"description": says.get(f.name, ""), **_typed(hints[f.name])} for f in fields(PatternRule)}
    properties["label"] |= _LABEL
    required = ["name", "label", "pattern"]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _rule() -> dict[str, object]:
    """A rule: each operator has its own options, which are its keyword-only parameters."""
    names = list(registry.operators.names())
    shared: dict[str, object] = {"operator": {"enum": names}, "threshold": _UNIT}
    cases = []
    for name in names:
        chosen = {"properties": {"operator": {"const": name}}, "required": ["operator"]}
        allowed = {"properties": {**shared, **_options(registry.operators.get(name))}, "additionalProperties": False}
        cases.append({"if": chosen, "then": allowed})
    return {"type": "object", "properties": shared, "allOf": cases}


def _options(operator: Any) -> dict[str, object]:
    out: dict[str, object] = {}
    for parameter in inspect.signature(operator, eval_str=True).parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY:
            value = parameter.default
            plain = isinstance(value, (str, int, float, bool, list, tuple))
            out[parameter.name] = _typed(parameter.annotation) | ({"default": value} if plain else {})
    return out


def _typed(hint: Any) -> dict[str, object]:
    origin, args = get_origin(hint), get_args(hint)
    if origin is Literal:
        return {"enum": list(args)}
    if origin in (types.UnionType, Union):
        kinds = [_typed(a) for a in args if a is not types.NoneType]
        return kinds[0] if len(kinds) == 1 else {"anyOf": kinds}
    if origin is tuple and args[-1] is not Ellipsis:
        return {"type": "array", "items": _typed(args[0]), "minItems": len(args), "maxItems": len(args)}
    kind = {tuple: list, Sequence: list, Mapping: dict}.get(origin or hint, origin or hint)
    if kind not in _TYPES:
        return {}
    out: dict[str, object] = {"type": _TYPES[kind]}
    if kind is list and args:
        out["items"] = _typed(args[0])
    return out


def _attributes(cls: type) -> dict[str, str]:
    """What the ``Attributes:`` section of a docstring says about each attribute, on one line."""
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
