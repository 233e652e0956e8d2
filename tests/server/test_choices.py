"""Labels, operators, detectors and policies over HTTP."""

from __future__ import annotations

from tests.rows import check_each_row

from allonym import registry
from allonym.labels import TAXONOMY
from allonym.policy import presets
from allonym.project.questions import QUESTIONS
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
    assert not any(detectors[name] for name in ("ensemble", "llm", "spacy", "transformers", "word_tagger"))


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


def test_a_first_policy_asks_what_init_asks_and_follows_the_answers(annotator, admin):
    texts = [{"name": "letter.txt", "text": "Ada Brook came to Leeds on 12 June 2019. Call Ada."}]
    first = annotator.post("/v1/first-policy", json={"texts": texts}).json()
    assert [(one["name"], one["words"]) for one in first["questions"]] == [(q.name, q.words) for q in QUESTIONS]
    asked = {one["name"]: one for one in first["questions"]}
    assert asked["language"]["answer"] == "en" and asked["language"]["answers"]["de"] == "German"
    assert asked["dates"]["answer"] == "cover" and asked["dates"]["reason"] == "1 in the sample"
    assert not first["keyed"] and not first["warnings"]
    (passage,) = first["passages"]
    assert (passage["id"], passage["before"]) == ("letter.txt", texts[0]["text"])
    assert "Ada" not in passage["after"]
    marked = [passage["before"][span["start"] : span["end"]] for span in passage["before_spans"]]
    assert marked == ["Ada Brook", "Leeds", "12 June 2019", "Ada"]
    written = [passage["after"][span["start"] : span["end"]] for span in passage["spans"]]
    assert written == ["[PERSON_1]", "[CITY_1]", "[DATE_1]", "[PERSON_1]"]
    body = {"texts": texts, "answers": {"protect": "patients", "dates": "shift", "language": "German"}}
    then = annotator.post("/v1/first-policy", json=body).json()
    assert then["keyed"] and "German" in then["warnings"][0] and 'extends = "hipaa-safe-harbor"' in then["toml"]
    assert (
        admin.put("/v1/policies/ours", json={"toml": then["toml"]}).json()["rules"]["DATE"]["operator"] == "shift_dates"
    )


@check_each_row(
    "body, status, near",
    [
        ({"texts": []}, 422, "texts"),
        ({"texts": [{"text": " "}]}, 422, "no text to look at"),
        ({"texts": [{"text": "Ada"}], "answers": {"dates": "kep"}}, 400, "keep"),
        ({"texts": [{"text": "Ada"}], "answers": {"dats": "keep"}}, 400, "dates"),
        ({"texts": [{"text": "Ada"}], "answers": {"language": "Germann"}}, 400, "German"),
    ],
)
def test_a_first_policy_refuses_what_it_cannot_use(annotator, body, status, near):
    answer = annotator.post("/v1/first-policy", json=body)
    assert answer.status_code == status and near in answer.text
