"""Labels, operators, detectors and policies over HTTP."""

from __future__ import annotations

from tests.rows import check_each_row

from allonym import registry
from allonym.labels import TAXONOMY
from allonym.policy import presets
from allonym.server.wire.jobs import SwapOptions

MINE = 'extends = "default"\n[rules.PERSON]\noperator = "mask"\n[dictionary]\nPERSON = ["Zaphrandel"]\n'


def test_labels_operators_and_detectors_are_those_of_the_library(annotator):
    labels = annotator.get("/v1/labels").json()["labels"]
    assert [one["name"] for one in labels] == [one.name for one in TAXONOMY]
    operators = {one["name"]: one for one in annotator.get("/v1/operators").json()["operators"]}
    assert set(operators) == set(registry.operators.names())
    assert operators["tag"]["reversible"] and not operators["suppress"]["reversible"]
    assert operators["pseudonym"]["keyed"] and not operators["tag"]["keyed"]
    assert all(one["description"] for one in operators.values())
    detectors = {one["name"]: one["available"] for one in annotator.get("/v1/detectors").json()["detectors"]}
    assert set(detectors) == set(registry.detectors.names())
    assert detectors["rules"] and detectors["tagger"]
    assert not any(detectors[name] for name in ("ensemble", "llm", "spacy", "transformers"))


def test_the_settings_of_swapping_describe_a_form(annotator):
    told = annotator.get("/v1/swap-settings").json()
    described = told["properties"]
    assert told["presets"]["default"]["Term"] == "swap" and told["presets"]["p1"]["Event"] == "change"
    assert set(told["states"]) == {"swap", "fixed", "change", "free"}
    assert described["form"]["enum"] == ["documents", "parts", "chunks", "changed"]
    assert set(described) < set(SwapOptions.model_fields)
    assert described["draws"] == {**described["draws"], "type": "integer", "minimum": 1, "maximum": 100, "default": 2}
    assert described["embedder"]["enum"] == ["encoder", "lsa"]
    assert described["strategy"]["description"] and described["population"]["items"] == {"type": "number", "minimum": 1}


def test_presets_come_first(annotator):
    listed = annotator.get("/v1/policies").json()["policies"]
    assert [one["name"] for one in listed][: len(presets())] == list(presets())
    keyed = {one["name"] for one in listed if one["keyed"]}
    assert {"pseudonyms", "wild-tags"} <= keyed and "default" not in keyed


def test_a_stored_policy_is_used_like_a_preset(admin, annotator):
    stored = admin.put("/v1/policies/house rules", json={"toml": MINE})
    assert stored.status_code == 200, stored.text
    assert stored.json()["rules"]["PERSON"]["operator"] == "mask"
    made = annotator.post("/v1/anonymize", json={"text": "Zaphrandel left.", "policy": "house rules"}).json()
    assert made["text"] == "********** left."
    assert "house rules" in [one["name"] for one in annotator.get("/v1/policies").json()["policies"]]
    seen = annotator.get("/v1/policies/house rules").json()
    assert seen["toml"] is None
    assert admin.get("/v1/policies/house rules").json()["toml"] == MINE
    assert admin.delete("/v1/policies/house rules").status_code == 204
    gone = annotator.post("/v1/anonymize", json={"text": "x", "policy": "house rules"})
    assert (gone.status_code, gone.json()["error"]["code"]) == (400, "UnknownNameError")
    assert annotator.get("/v1/policies/house rules").status_code == 404


def test_a_changed_policy_holds_at_once(admin, annotator):
    for operator, text in (("mask", "**********"), ("suppress", "")):
        admin.put("/v1/policies/changing", json={"toml": MINE.replace("mask", operator)})
        made = annotator.post("/v1/anonymize", json={"text": "Zaphrandel", "policy": "changing"}).json()
        assert made["text"] == text


@check_each_row(
    "toml, near",
    [
        ("this is no toml", "not valid TOML"),
        ('extends = "nosuch"', "unknown policy preset"),
        ('extends = "other.toml"', "unknown policy preset"),
        ('[dictionary]\nPERSON = { file = "/etc/passwd" }', "reads no file"),
        ('[exclusions]\n"*" = { file = "/etc/passwd" }', "reads no file"),
        ("[rules.PERSIN]\noperator = 'tag'", "PERSON"),
        ("threshold = 7", "from 0 to 1"),
        ("nosuch = 1", "unknown key"),
    ],
)
def test_a_policy_that_will_not_do_is_told_where(admin, toml, near):
    done = admin.put("/v1/policies/wrong", json={"toml": toml})
    assert done.status_code == 400, done.text
    assert near in done.json()["error"]["message"]
    assert "policy wrong" in done.json()["error"]["message"]
    assert "root:" not in done.text
    assert admin.get("/v1/policies/wrong").status_code == 404


def test_a_preset_keeps_its_name(admin):
    assert admin.put("/v1/policies/default", json={"toml": MINE}).status_code == 409
    assert admin.delete("/v1/policies/default").status_code == 404
