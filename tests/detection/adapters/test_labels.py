import pytest

from allonym.detection.adapters.labels import LabelMap, read_label_tables
from allonym.errors import PolicyError, UnknownNameError
from allonym.labels import TAXONOMY

MAPPED = [
    ("PER", "PERSON"),
    ("PERSON", "PERSON"),
    ("person", "PERSON"),
    ("ORG", "ORGANIZATION"),
    ("GPE", "LOCATION"),
    ("LOC", "LOCATION"),
    ("FAC", "FACILITY"),
    ("NORP", "ORIGIN"),
    ("NRP", "ORIGIN"),
    ("MISC", "OTHER_IDENTIFYING_ATTRIBUTE"),
    ("phone number", "PHONE_NUMBER"),
    ("email-address", "EMAIL_ADDRESS"),
    ("private_person", "PERSON"),
    ("private_address", "STREET_ADDRESS"),
    ("private_email", "EMAIL_ADDRESS"),
    ("private_phone", "PHONE_NUMBER"),
    ("private_url", "URL"),
    ("private_date", "DATE"),
    ("account_number", "ACCOUNT_NUMBER"),
    ("secret", "SECRET"),
]


@pytest.mark.parametrize(("foreign", "ours"), MAPPED)
def test_labels_of_models(policy, foreign, ours):
    assert LabelMap(policy("spacy"), "spacy", ("conll", "spacy"))(foreign) == ours


def test_the_policys_table_comes_first_and_may_leave_out(policy):
    labels = LabelMap(policy("spacy", 'labels = { GPE = "CITY", ODD = "TERM", DATE = "" }'), "spacy")
    assert [labels(name) for name in ("GPE", "ODD", "DATE", "ORG")] == ["CITY", "TERM", "", "ORGANIZATION"]


def test_what_nothing_maps_is_an_error_that_says_what_to_do(policy):
    with pytest.raises(PolicyError, match=r"labels FOO, ZAP are in no scheme.*\[detect\.spacy\.labels\].*\"FOO\" = "):
        LabelMap(policy("spacy"), "spacy", model_labels=["ZAP", "PER", "FOO"])
    with pytest.raises(PolicyError, match="labels FOO are in no scheme"):
        LabelMap(policy("spacy"), "spacy")("FOO")


def test_a_row_for_a_label_that_the_model_does_not_have(policy):
    one = policy("spacy", 'labels = { PERSN = "PERSON" }')
    with pytest.raises(UnknownNameError, match="unknown label of the model 'PERSN'; did you mean: PERSON"):
        LabelMap(one, "spacy", model_labels=["PERSON", "ORG"])


def test_a_coarse_label_becomes_one_that_the_policy_looks_for(policy):
    for looked, ours in ((("CITY",), "CITY"), (("CITY", "COUNTRY"), "COUNTRY"), (("PERSON",), "LOCATION")):
        one = policy("spacy").with_(every=False, labels=looked)
        assert LabelMap(one, "spacy", ("spacy",))("GPE") == ours


def test_labels_that_the_policy_adds_are_known(policy):
    one = policy("spacy", more="", rest='[[labels]]\nname = "STAR"\n')
    assert LabelMap(one, "spacy")("star") == "STAR"


def test_the_tables_name_labels_of_the_taxonomy():
    assert not [x for x in read_label_tables()["names"].values() if x not in TAXONOMY]
    # REGION and AWARD belong to the tagger's labels.
    assert not [x for x in read_label_tables()["prompts"] if x not in TAXONOMY and x not in ("REGION", "AWARD")]
    assert len(set(read_label_tables()["prompts"].values())) == len(read_label_tables()["prompts"])
