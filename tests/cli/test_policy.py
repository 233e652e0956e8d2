"""``allonym policy`` and the JSON Schema behind it."""

from __future__ import annotations

import json
import tomllib
from importlib.resources import files

import pytest
from tests.models.make_tiny import TINY
from tests.rows import check_each_row

from allonym import registry
from allonym.errors import AllonymError
from allonym.models.tagger import read_description
from allonym.policy import OPERATING_POINTS, Policy, PolicyFile, presets
from allonym.schema import policy_schema
from allonym.settings import list_defaults

SCHEMA = policy_schema()


def fits(value: object, schema: dict, where: str = "") -> str:
    """Why ``value`` does not fit the schema, or nothing: the part of JSON Schema that ours uses."""
    if "$ref" in schema:
        schema = SCHEMA["$defs"][schema["$ref"].rsplit("/", 1)[1]] | {k: v for k, v in schema.items() if k != "$ref"}
    kinds = {"string": str, "integer": int, "array": list, "object": dict, "boolean": bool, "number": (int, float)}
    kind = schema.get("type")
    if kind and (not isinstance(value, kinds[kind]) or (isinstance(value, bool) and kind != "boolean")):
        return f"{where} is no {kind}"
    if "const" in schema and value != schema["const"]:
        return f"{where} is not {schema['const']}"
    if "enum" in schema and value not in schema["enum"]:
        return f"{where} is not in the list"
    if isinstance(value, (int, float)) and not schema.get("minimum", value) <= value <= schema.get("maximum", value):
        return f"{where} is out of range"
    if "exclusiveMinimum" in schema and not schema["exclusiveMinimum"] < value < schema["exclusiveMaximum"]:
        return f"{where} is out of range"
    if isinstance(value, str) and "pattern" in schema:
        import re

        if not re.search(schema["pattern"], value):
            return f"{where} does not match"
    if "anyOf" in schema and all(fits(value, s, where) for s in schema["anyOf"]):
        return f"{where} fits no alternative"
    if isinstance(value, list):
        if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
            return f"{where} has the wrong length"
        for i, item in enumerate(value):
            if why := fits(item, schema.get("items", {}), f"{where}[{i}]"):
                return why
    if isinstance(value, dict):
        known = schema.get("properties", {})
        if missing := [r for r in schema.get("required", []) if r not in value]:
            return f"{where} lacks {missing}"
        for key, item in value.items():
            if why := fits(key, schema.get("propertyNames", {}), f"{where} name {key}"):
                return why
            rest = schema.get("additionalProperties", {})
            if key not in known and rest is False:
                return f"{where}.{key} is not known"
            if why := fits(item, known.get(key, rest), f"{where}.{key}"):
                return why
    for case in schema.get("allOf", []):
        if not fits(value, case["if"], where) and (why := fits(value, case["then"], where)):
            return why
    return ""


@check_each_row("name", presets())
def test_the_schema_accepts_every_preset(name):
    data = tomllib.loads(files("allonym").joinpath("policies", f"{name}.toml").read_text(encoding="utf-8"))
    assert fits(data, SCHEMA) == ""


GOOD = """
schema = 1
extends = "default"
threshold = 0.4
countries = ["de", "US"]
[detect]
exclude = ["DATE", "BADGE"]
[tag]
style = "<{label}:{n}>"
names = "tab"
[default]
operator = "suppress"
[rules]
US_SSN = { operator = "mask", keep_last = 4, threshold = 0.3 }
BADGE = { operator = "tag", threshold = 0.9 }
[dictionary]
PERSON = ["Ada Brook"]
[exclusions]
"*" = ["May"]
[metadata]
COMPANY = ["company"]
[[labels]]
name = "BADGE"
parent = "GENERIC_ID"
kind = "direct"
risk = 3
[[patterns]]
name = "badge"
label = "BADGE"
pattern = 'B-\\d{5}'
window = [40, 40]
context = ["badge"]
"""


def test_schema_and_loader_accept_the_same_full_policy(tmp_path):
    (tmp_path / "mine.toml").write_text(GOOD)
    assert Policy.load(tmp_path / "mine.toml").threshold == 0.4
    assert fits(tomllib.loads(GOOD), SCHEMA) == ""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("threshold = 0.4", "threshold = 4"),
        ("threshold = 0.4", 'threshold = "high"'),
        ("threshold = 0.4", "treshold = 0.4"),
        ("schema = 1", "schema = 2"),
        ("exclude =", "excluded ="),
        ('names = "tab"', 'names = "tap"'),
        ('operator = "suppress"', 'operator = "supress"'),
        ("keep_last = 4", 'keep_last = "4"'),
        ("keep_last = 4", "keep_lest = 4"),
        ('PERSON = ["Ada Brook"]', "PERSON = [1]"),
        ('PERSON = ["Ada Brook"]', 'PERSON = { column = "a" }'),
        ('kind = "direct"', 'kind = "sort of"'),
        ("risk = 3", "risk = 6"),
        ('name = "badge"\nlabel = "BADGE"', 'name = "badge"'),
        ("window = [40, 40]", "window = [40]"),
        ('context = ["badge"]', 'context = "badge"'),
    ],
)
def test_schema_and_loader_refuse_the_same_mistakes(tmp_path, old, new):
    assert old in GOOD
    bad = GOOD.replace(old, new, 1)
    (tmp_path / "mine.toml").write_text(bad)
    with pytest.raises(AllonymError):
        Policy.load(tmp_path / "mine.toml")
    assert fits(tomllib.loads(bad), SCHEMA) != ""


DETECTORS = """
[detect]
detectors = ["rules", "ensemble"]
operating_point = "balanced"
[detect.operating_points]
OCCUPATION = "high-precision"
PERSON = 0.125
[detect.ensemble]
members = ["spacy", "flair"]
mode = "vote"
votes = 2
labels = { ORGANIZATION = "union" }
[detect.spacy]
model = "models/en"
labels = { GPE = "LOCATION", CARDINAL = "" }
score = 0.75
batch_size = 8
[detect.flair]
model = "models/ner.pt"
allow_download = true
"""


def test_schema_and_loader_accept_the_same_options_of_detectors(tmp_path):
    (tmp_path / "mine.toml").write_text(DETECTORS)
    assert Policy.load(tmp_path / "mine.toml").settings("spacy")["batch_size"] == 8
    assert fits(tomllib.loads(DETECTORS), SCHEMA) == ""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"balanced"', '"balancd"'),
        ('operating_point = "balanced"', "operating_point = 1.0"),
        ('operating_point = "balanced"', "operating_point = 0"),
        ("OCCUPATION =", "occupation ="),
        ("PERSON = 0.125", "PERSON = 1.5"),
        ('mode = "vote"', 'mode = "veto"'),
        ("votes = 2", "votes = 0"),
        ('["spacy", "flair"]', '"spacy"'),
        ('"union"', '"all"'),
        ('model = "models/en"', "model = 1"),
        ('CARDINAL = ""', 'CARDINAL = "nothing"'),
        ("score = 0.75", "score = 75"),
        ("batch_size = 8", "batch_size = 0.5"),
        ("batch_size = 8", "batchsize = 8"),
        ("allow_download = true", 'allow_download = "yes"'),
        ("[detect.flair]", "[detect.flare]"),
    ],
)
def test_schema_and_loader_refuse_the_same_mistakes_in_options(tmp_path, old, new):
    assert old in DETECTORS
    bad = DETECTORS.replace(old, new, 1)
    (tmp_path / "mine.toml").write_text(bad)
    with pytest.raises(AllonymError):
        Policy.load(tmp_path / "mine.toml")
    assert fits(tomllib.loads(bad), SCHEMA) != ""


def test_the_schema_names_what_is_known_here_and_now():
    assert set(SCHEMA["properties"]) == set(list_defaults(PolicyFile))
    assert all(row["description"] for row in SCHEMA["properties"].values())
    assert all(SCHEMA["properties"]["patterns"]["items"]["properties"][k]["description"] for k in ("score", "window"))
    assert SCHEMA["$defs"]["rule"]["properties"]["operator"]["enum"] == list(registry.operators.names())


def test_schema_command_prints_it(run):
    assert json.loads(run("policy", "schema").out) == json.loads(json.dumps(SCHEMA))


def test_list_names_every_preset_with_its_description(run):
    out = run("policy", "list").out
    for name in presets():
        assert any(line.startswith(name) and Policy.load(name).description in line for line in out.splitlines())


@pytest.mark.parametrize("name", presets())
def test_show_tells_the_rule_of_every_label(run, name):
    told = json.loads(run("policy", "show", name, "--json").out)
    policy = Policy.load(name)
    assert set(told["labels"]) == {lab.name for lab in policy.taxonomy if policy.looks_for(lab.name)}
    for label, row in told["labels"].items():
        assert row["operator"] == policy.rule(label).operator
        assert row["threshold"] == policy.threshold_for(label)


def test_show_has_a_row_where_the_rule_changes_and_counts_terms(run, tmp_path):
    (tmp_path / "mine.toml").write_text(GOOD)
    out = run("policy", "show", str(tmp_path / "mine.toml")).out
    rows = {line.split()[0]: line for line in out.splitlines() if line}
    assert rows["US_SSN"].split() == ["US_SSN", "mask", "keep_last=4", "0.30"]
    assert "BADGE" not in rows, "excluded, so not looked for"
    assert "EMAIL_ADDRESS" not in rows, "as everything else"
    assert "1 term for PERSON" in out and "Ada" not in out


def test_check_says_ok_or_ends_with_2(run, tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(GOOD)
    good = run("policy", "check", str(path))
    assert good.code == 0 and good.err.splitlines()[-1] == "ok"
    path.write_text(GOOD.replace("exclude", "exlude"))
    bad = run("policy", "check", str(path))
    assert bad.code == 2
    assert bad.err.startswith(f"error: {path}: detect: unknown key 'exlude'; did you mean: exclude")


def test_check_needs_no_key_for_a_policy_that_does(run, tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('extends = "default"\nname = "mine"\n[default]\noperator = "encrypt"\n')
    good = run("policy", "check", str(path))
    assert good.code == 0 and "needs a key" in good.out


def test_check_finds_a_pattern_that_does_not_compile(run, tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(GOOD.replace("B-", "(B-"))
    bad = run("policy", "check", str(path))
    assert bad.code == 2
    assert "badge" in bad.err and bad.err.startswith("error: ")


@pytest.mark.parametrize("name", presets())
def test_check_accepts_every_preset(run, name):
    assert run("policy", "check", name).code == 0


def test_show_tells_what_the_tagger_covers_by_kind_of_text(run):
    lines = run("policy", "show", "default").out.splitlines()
    head = next(n for n, line in enumerate(lines) if line.startswith("% of names covered"))
    rows = {line.rsplit(maxsplit=6)[0]: line.split()[-6:] for line in lines[head + 1 :]}
    about = read_description()["measured"]
    assert set(rows) == set(about["balanced"]) and len(rows) > 5
    for kind, cells in rows.items():
        shares = [about[point][kind][name] for point in OPERATING_POINTS for name in ("covered", "needless")]
        assert cells == ["-" if share is None else f"{100 * share:.1f}" for share in shares]
    assert json.loads(run("policy", "show", "default", "--json").out)["measured"] == about


@pytest.mark.parametrize("text", ['detectors = ["rules"]', f'tagger = {{ model = "{TINY}" }}'])
def test_show_tells_nothing_of_a_tagger_that_is_not_there_or_was_not_measured(run, tmp_path, text):
    (tmp_path / "mine.toml").write_text(f'extends = "default"\n[detect]\n{text}\n')
    done = run("policy", "show", str(tmp_path / "mine.toml"))
    assert done.code == 0 and "names covered" not in done.out
