"""The presets: that they are complete, and what each looks for, replaces and leaves."""

import tomllib
from importlib.resources import files

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.rows import check_each_row

import allonym
from allonym import policy as policy_module
from allonym.labels import TAXONOMY
from allonym.policy import Policy, presets

PRESETS = (
    *(
        "chat",
        "clinical-spanish",
        "default",
        "earnings",
        "gdpr",
        "hipaa-safe-harbor",
        "pseudonyms",
        "reversible",
        "sanitize",
        "swap",
    ),
    *("textwash", "transcripts", "wild-tags"),
)
KEY = b"a key only for the tests, 32 byte"


def test_the_presets_that_come_with_allonym():
    assert presets() == PRESETS


@check_each_row("name", PRESETS)
def test_a_preset_is_complete(name):
    policy = Policy.load(name)
    assert policy.name == name
    assert policy.description.endswith(".")
    assert policy.description not in [label.description for label in policy.taxonomy]
    further = {"earnings": {"spoken"}, "clinical-spanish": {"word_tagger"}}.get(name, {"spoken", "speakers", "tagger"})
    assert set(policy.detectors) == {"rules", "lexicon"} | further
    assert policy.settings("tagger")["name_parts"] == (name == "textwash")
    assert Policy.load(name) is policy
    raw = tomllib.loads(files("allonym").joinpath("policies", f"{name}.toml").read_text(encoding="utf-8"))
    assert raw["schema"] == 1
    assert "extends" not in raw or raw["extends"] in PRESETS


@check_each_row("name", sorted({*PRESETS} - {"chat"}))
def test_no_preset_but_the_one_for_prompts_keeps_what_it_detects(name):
    policy = Policy.load(name)
    operators = {policy.rule(label.name).operator for label in TAXONOMY if policy.looks_for(label.name)}
    assert "keep" not in operators


def test_the_preset_for_prompts_keeps_what_a_question_is_about():
    policy = Policy.load("chat")
    kept = {label.name for label in TAXONOMY if policy.rule(label.name).operator == "keep"}
    assert {"ORGANIZATION", "PRODUCT", "LOCATION", "DATE", "OCCUPATION"} <= kept
    assert not kept & {"COMPANY", "TICKER", "STREET_ADDRESS", "LOCATION_COORDINATES", "DATE_OF_BIRTH"}
    direct = {lab.name for lab in TAXONOMY if lab.kind == "direct" and lab.risk >= 4 and policy.looks_for(lab.name)}
    assert direct and not kept & direct


def test_public_figures_stay_in_prompts_and_private_people_go():
    text = "Barack Obama met Ada Brook in Berlin."
    assert allonym.anonymize(text, "chat").text == "Barack Obama met <PERSON 1> in Berlin."


@check_each_row("name", sorted({*PRESETS} - {"earnings", "chat", "clinical-spanish"}))
def test_names_in_free_text_go_under_every_preset_but_earnings(name):
    text = "Barack Obama met Angela Merkel in Berlin."
    made = allonym.anonymize(text, name, key=KEY)
    assert " met " in made.text
    assert not [word for word in ("Barack", "Obama", "Angela", "Merkel", "Berlin") if word in made.text]
    assert allonym.anonymize(text, "earnings").text == text


def test_a_small_text_under_each_preset_without_the_tagger(cases):
    wrong = []
    for case in cases("policies"):
        document = allonym.Document("case", case["text"], case.get("meta", {}))
        if "turns" in case:
            document = allonym.Document.conversation("case", case["turns"], case.get("meta", {}))
        preset = Policy.load(case["policy"])
        policy = preset.with_(detectors=tuple(name for name in preset.detectors if name != "tagger"))
        made = allonym.anonymize(document, policy, key=KEY).text
        if made != case["expected"]:
            wrong.append(f"{case['policy']}: {made!r} instead of {case['expected']!r}")
    assert not wrong, "\n".join(wrong)


def test_every_preset_has_cases(cases):
    assert {case["policy"] for case in cases("policies")} == set(PRESETS)


def test_transcripts_leaves_out_what_the_paper_leaves_out():
    policy = Policy.load("transcripts")
    assert not any(policy.looks_for(label) for label in ("ETHNIC_GROUP", "GENDER", "DATE", "TIME"))
    assert all(
        policy.looks_for(label) for label in ("PERSON", "ORGANIZATION", "DATE_OF_BIRTH", "SPELLED_WORD", "NUMERIC")
    )


def test_transcripts_looks_for_every_type_of_the_papers_table():
    policy = Policy.load("transcripts")
    table = {label.name for label in TAXONOMY if label.names.get("p2")}
    assert len(table) >= 35
    assert not [label for label in table if not policy.looks_for(label)]


def test_textwash_names_every_category_as_textwash_does():
    policy = Policy.load("textwash")
    assert policy.names == "textwash"
    for label in TAXONOMY:
        if policy.looks_for(label.name):
            assert policy.taxonomy.to_scheme(label.name, "textwash") or label.name in ("PERSON", "EXECUTIVE", "AGE"), (
                label
            )


def test_earnings_touches_only_direct_identifiers():
    policy = Policy.load("earnings")
    wanted = {label.name for label in TAXONOMY if policy.looks_for(label.name)}
    assert {"COMPANY", "TICKER", "EXECUTIVE", "URL", "EMAIL_ADDRESS", "PHONE_NUMBER"} <= wanted
    assert not wanted & {"PERSON", "ORGANIZATION", "LOCATION", "DATE", "MONEY", "NUMERIC", "PERCENT"}
    assert {"COMPANY", "EXECUTIVE"} <= set(policy.metadata)


@check_each_row(
    "identifier",
    [
        *("PERSON", "LOCATION", "STREET_ADDRESS", "US_ZIP_CODE", "DATE", "DATE_OF_BIRTH", "AGE", "PHONE_NUMBER"),
        *("FAX_NUMBER", "EMAIL_ADDRESS", "US_SSN", "MEDICAL_RECORD_NUMBER", "US_HEALTH_INSURANCE_MEMBER_ID", "US_MBI"),
        *("ACCOUNT_NUMBER", "BANK_ACCOUNT", "US_DRIVER_LICENSE", "MEDICAL_LICENSE", "VEHICLE_IDENTIFICATION_NUMBER"),
        *("LICENSE_PLATE", "SERIAL_NUMBER", "IMEI_HARDWARE_ID", "URL", "IP_ADDRESS", "GENERIC_ID", "UUID"),
    ],
)
def test_safe_harbor_looks_for_each_identifier(identifier):
    assert Policy.load("hipaa-safe-harbor").looks_for(identifier)


@check_each_row(
    "label",
    [
        *("PERSON", "EMAIL_ADDRESS", "IP_ADDRESS", "HTTP_COOKIE", "LOCATION_COORDINATES", "NATIONAL_ID"),
        *("ETHNIC_GROUP", "POLITICAL_GROUP", "RELIGION", "TRADE_UNION", "MEDICAL_TERM", "SEXUAL_ORIENTATION"),
    ],
)
def test_gdpr_looks_for_personal_data_and_special_categories(label):
    assert Policy.load("gdpr").looks_for(label)


def test_reversible_round_trip_with_look_alikes():
    text = "Mail jane.doe@example.com or [EMAIL_ADDRESS_1], <EMAIL_ADDRESS 1>, call 212-555-0142."
    made = allonym.anonymize(text, "reversible", key=KEY)
    assert "jane.doe" not in made.text
    assert allonym.restore(made.text, plan=made.plan).text == text


PIECES = st.one_of(
    st.text(max_size=12),
    st.sampled_from(
        [
            *(" ada@example.com ", " 212-555-0142,", "Mr. Brook", "my name is Ada Brook. ", "aged 41 ", "3 May 2019"),
            *(
                "<EMAIL 1>",
                "[PERSON_1]",
                "[Company Name]",
                "PRONOUN",
                "she ",
                "the Brooks' ",
                "\r\n",
                "e\u0301",
                "\u200b",
            ),
            *(
                "ada\u200b@example.com",
                "A-D-A ",
                "four one five two ",
                "\u202e192.0.2.7\u202c",
                "\ud800",
                "an ",
                "62704",
            ),
        ]
    ),
)


@pytest.mark.parametrize("name", PRESETS)
@given(pieces=st.lists(PIECES, max_size=8))
@settings(max_examples=40)
def test_any_text_under_any_preset_comes_back_with_its_plan(name, pieces):
    text = "".join(pieces)
    made = allonym.anonymize(text, name, key=KEY)
    assert allonym.restore(made.text, plan=made.plan).text == text
    at = 0
    for edit in made.plan.edits:
        assert edit.original == text[edit.start : edit.end]
        assert edit.start >= at
        at = edit.end


@check_each_row("name", PRESETS)
def test_every_preset_says_what_it_does_not_find(name):
    assert "Not found: " in Policy.load(name).description


def test_presets_are_read_once():
    assert policy_module._read_preset("default") is Policy.load("default")
