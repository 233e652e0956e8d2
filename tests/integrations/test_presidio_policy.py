"""Policies made from Presidio's configuration."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

import allonym
from allonym.errors import DataError
from allonym.integrations.presidio_policy import convert_files, read_recognizers
from allonym.labels import TAXONOMY
from allonym.policy import Policy

RECOGNIZERS = """\
supported_languages: [en]
recognizers:
  - name: CreditCardRecognizer
    type: predefined
  - name: UsSsnRecognizer
    type: predefined
    enabled: false
  - AzureAILanguageRecognizer
  - name: AzureAILanguageRecognizer
    type: predefined
  - name: Badge
    supported_entity: BADGE_ID
    patterns:
      - name: strong
        regex: '\\bBX-\\d{4}\\b'
        score: 0.8
      - name: weak
        regex: '\\b\\d{6}\\b'
        score: 0.1
      - name: never
        regex: 'never'
        score: 0.01
    context: [staff]
  - name: Titles
    supported_entity: TITLE
    deny_list: [Mr., Dr.]
"""
OPERATORS = {
    "DEFAULT": {"type": "replace", "new_value": "<GONE>"},
    "BADGE_ID": {"operator_name": "mask", "params": {"masking_char": "#", "chars_to_mask": 4, "from_end": True}},
    "EMAIL_ADDRESS": {"type": "encrypt", "key": "WmZq4t7w!z%C&F)J"},
    "PHONE_NUMBER": {"type": "custom"},
}


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_a_registry_with_operators_finds_and_replaces_what_presidio_would(tmp_path):
    files = [
        write(tmp_path, "r.yaml", RECOGNIZERS),
        write(tmp_path, "o.json", json.dumps({"anonymizers": OPERATORS}, indent="\t")),
    ]
    converted = convert_files(files, threshold=0.4)
    policy = Policy.load(write(tmp_path, "p.toml", converted.toml)).with_(detectors=("rules", "lexicon"))
    text = "Mr. Quill, card 4111 1111 1111 1111, SSN 536-22-1234, BX-1234, staff 654321."
    out = allonym.anonymize(text, policy, key=bytes(32)).text
    assert out == "<GONE> Quill, card <GONE>, SSN 536-22-1234, ##-####, staff ######."
    assert allonym.anonymize("Order 123456", policy, key=bytes(32)).text == "Order 123456"


def test_every_part_has_an_outcome_with_its_line(tmp_path):
    converted = convert_files([write(tmp_path, "r.yaml", RECOGNIZERS)], threshold=0.4)
    assert [(o.where, o.part, o.status) for o in converted.outcomes] == [
        ("r.yaml:3", "CreditCardRecognizer", "same"),
        ("r.yaml:5", "UsSsnRecognizer", "same"),
        ("r.yaml:8", "AzureAILanguageRecognizer", "none"),
        ("r.yaml:9", "AzureAILanguageRecognizer", "none"),
        ("r.yaml:14", "Badge: strong", "same"),
        ("r.yaml:17", "Badge: weak", "same"),
        ("r.yaml:20", "Badge: never", "same"),
        ("r.yaml:26", "Titles: deny_list", "same"),
    ]
    assert converted.toml.count("# No counterpart: ") == 2


def test_without_a_threshold_every_pattern_counts(tmp_path):
    rules = tomllib.loads(convert_files([write(tmp_path, "r.yaml", RECOGNIZERS)]).toml)["patterns"]
    assert [rule["score"] for rule in rules] == [0.9, 0.5, 0.5]


def test_no_key_of_an_operator_is_copied(tmp_path):
    converted = convert_files([write(tmp_path, "o.json", json.dumps(OPERATORS))])
    assert "WmZq" not in converted.toml + repr(converted)
    assert [(o.part, o.status) for o in converted.outcomes] == [
        ("DEFAULT: replace", "same"),
        ("BADGE_ID: mask", "differs"),
        ("EMAIL_ADDRESS: encrypt", "differs"),
        ("PHONE_NUMBER: custom", "none"),
    ]


def test_recognizers_alone_extend_the_default_policy(tmp_path):
    plain = "recognizers:\n  - name: Zip\n    supported_entity: ZIP\n    deny_list: [Q]\n"
    policy = Policy.load(write(tmp_path, "p.toml", convert_files([write(tmp_path, "r.yml", plain)]).toml))
    assert policy.looks_for("EMAIL_ADDRESS") and policy.looks_for("ZIP")


def test_the_nlp_engine_names_labels_and_offers_its_model(tmp_path):
    nlp = "nlp_engine_name: spacy\nmodels:\n- lang_code: en\n  model_name: en_core_web_lg\n"
    converted = convert_files([write(tmp_path, "nlp.yaml", nlp)])
    as_offered = converted.toml.replace("# detectors", "detectors").replace("# [detect", "[detect")
    policy = Policy.load(write(tmp_path, "p.toml", as_offered.replace("# model", "model")))
    assert policy.settings("spacy")["model"] == "en_core_web_lg" and "spacy" in policy.detectors
    assert policy.looks_for("TIME")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\n", "holds nothing"),
        ("[", "not valid YAML"),
        ("recognizers: [{name: A, type: predefined, class_name: IpRecognizer, supported_languages: 3}]", "type"),
    ],
)
def test_files_that_are_no_configuration_are_refused(tmp_path, text, message):
    with pytest.raises(DataError, match=message):
        convert_files([write(tmp_path, "x.yaml", text)])


def test_presidios_recognizers_have_labels():
    lacking = [e for es in read_recognizers().values() for e in es if not TAXONOMY.from_scheme(e, "presidio")]
    assert [e for e in lacking if e not in TAXONOMY] == []


def test_names_with_line_ends_stay_in_their_comment(tmp_path):
    row = {"name": "A\nthreshold = 0.9\u0007", "supported_entity": "E\n[x]", "deny_list": ['Q\n\u0007"']}
    operators = {"DEFAULT": {"type": "odd\nthreshold = 0.9"}, "E\n[x]": {"type": "redact"}}
    text = json.dumps({"recognizers": [row, {"name": row["name"]}], "operators": operators})
    policy = Policy.load(write(tmp_path, "p.toml", convert_files([write(tmp_path, "r.json", text)]).toml))
    assert policy.threshold == 0.5 and policy.dictionary[-1].terms == ('Q\n\x07"',)


def test_a_policy_for_another_language_runs(tmp_path):
    registry = "supported_languages: [es]\nrecognizers:\n- name: EmailRecognizer\n  type: predefined\n"
    converted = convert_files([write(tmp_path, "r.yaml", registry)])
    assert converted.outcomes[0].part == "languages: es" and converted.outcomes[0].where == "r.yaml:1"
    policy = Policy.load(write(tmp_path, "p.toml", converted.toml))
    assert "<EMAIL_ADDRESS>" in allonym.anonymize("Escriba a ana@example.org, por favor.", policy).text


def test_an_entity_of_the_user_goes_before_a_built_in_one(tmp_path):
    badge = {"name": "badge", "regex": "BX-[0-9]{4}", "score": 0.6}
    row = {"name": "Badge", "supported_entity": "BADGE_ID", "patterns": [badge]}
    path = write(tmp_path, "p.toml", convert_files([write(tmp_path, "r.json", json.dumps([row]))]).toml)
    (span,) = allonym.detect("His badge is BX-1234.", Policy.load(path).with_(detectors=("rules",)))
    assert span.label == "BADGE_ID"
