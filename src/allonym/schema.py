"""The JSON Schema of policy files, derived from the settings by which :mod:`allonym.policy` reads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from allonym import registry
from allonym.labels import TAXONOMY
from allonym.pattern import PatternRule
from allonym.policy import OPERATING_POINTS, TREATMENTS, PolicyFile
from allonym.protocol import get_operator, list_option_settings
from allonym.settings import Schema, describe_schema, list_settings

DIALECT = "https://json-schema.org/draft/2020-12/schema"

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
        "treatment": {"anyOf": [{"enum": list(TREATMENTS)}, _LABEL]},
        "prompt": prompt,
        "prompt name": {"enum": list(registry.LLM_PROMPTS)},
        "word": _STRING,
        "window": {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 2},
    }
    named["pattern"] = describe_schema(list_settings(PatternRule), named)
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


def _describe_rule() -> Schema:
    """Describe a rule: each operator has its own options, which are its keyword-only parameters."""
    names = list(registry.operators.names())
    shared: Schema = {"operator": {"enum": names}, "threshold": _UNIT}
    cases = []
    for name in names:
        chosen = {"properties": {"operator": {"const": name}}, "required": ["operator"]}
        options = describe_schema(tuple(list_option_settings(get_operator(name)).values()))
        options["properties"] = {**shared, **options["properties"]}
        cases.append({"if": chosen, "then": options})
    return {"type": "object", "properties": shared, "allOf": cases}
