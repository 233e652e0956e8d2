"""Policies: how they are read, what they hold as values, and what is refused."""

import os
import pickle
from pathlib import Path

import pytest
from tests.rows import check_each_row

import allonym
from allonym.document import Document
from allonym.errors import PolicyError, UnknownNameError
from allonym.labels import TAXONOMY
from allonym.pattern import PatternRule
from allonym.policy import Policy, PolicyFile, Rule, TermList, presets, read_terms
from allonym.serial import to_plain
from allonym.settings import list_defaults, list_settings

KEY = b"a key only for the tests, 32 byte"

MINIMAL = 'schema = 1\nname = "mine"\n[default]\noperator = "suppress"\n'


def write(tmp_path, text, name="mine.toml"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


def load(tmp_path, text):
    return Policy.load(write(tmp_path, text))


# Reading


def test_minimal(tmp_path):
    policy = load(tmp_path, MINIMAL)
    assert (policy.name, policy.language, policy.threshold) == ("mine", "en", 0.5)
    assert policy.rule("PERSON") == Rule("suppress")


def test_what_has_no_rule_is_suppressed(tmp_path):
    policy = load(tmp_path, 'name = "x"\n[rules.PERSON]\noperator = "tag"\n')
    assert policy.rule("PERSON_LASTNAME").operator == "tag"
    assert policy.rule("EMAIL_ADDRESS").operator == "suppress"


def test_a_name_is_taken_from_the_file_where_there_is_none(tmp_path):
    assert load(tmp_path, "threshold = 0.4\n").name == "mine"


def test_a_rule_holds_for_what_lies_below_its_label(tmp_path):
    text = MINIMAL + '[rules.PERSON]\noperator = "tag"\nthreshold = 0.9\n[rules.EXECUTIVE]\noperator = "mask"\n'
    policy = load(tmp_path, text)
    assert [policy.rule(x).operator for x in ("PERSON", "PERSON_FIRSTNAME", "EXECUTIVE")] == ["tag", "tag", "mask"]
    assert policy.threshold_for("EXECUTIVE") == 0.9
    assert policy.threshold_for("URL") == 0.5


def test_labels_take_their_descendants_and_exclude_wins(tmp_path):
    policy = load(tmp_path, MINIMAL + '[detect]\nlabels = ["ONLINE_ID"]\nexclude = ["URL"]\n')
    assert policy.looks_for("IP_ADDRESS")
    assert not policy.looks_for("URL")
    assert not policy.looks_for("DOMAIN_NAME")
    assert not policy.looks_for("PERSON")


def test_exclude_adds_to_what_the_extended_policy_leaves_out(tmp_path):
    policy = load(tmp_path, 'extends = "default"\n[detect]\nexclude = ["URL", "PRODUCT"]\n')
    assert policy.exclude == (*Policy.load("default").exclude, "URL", "PRODUCT")
    text = "He said hello in English."
    assert allonym.anonymize(text, policy).text == text


def test_include_takes_labels_back_and_the_nearest_label_decides(tmp_path):
    policy = load(tmp_path, 'extends = "default"\n[detect]\ninclude = ["LANGUAGE", "MONEY"]\n')
    assert policy.looks_for("LANGUAGE") and policy.looks_for("MONEY")
    assert not policy.looks_for("NUMERIC") and not policy.looks_for("PERCENT") and not policy.looks_for("PRONOUN")
    again = policy.changed({"detect": {"exclude": ["MONEY"]}}, "t")
    assert not again.looks_for("MONEY") and again.looks_for("LANGUAGE")
    with pytest.raises(PolicyError, match="MONEY is in exclude and in include"):
        policy.changed({"detect": {"exclude": ["MONEY"], "include": ["MONEY"]}}, "t")


def test_extends_a_preset(tmp_path):
    policy = load(tmp_path, 'extends = "default"\n[rules.EMAIL_ADDRESS]\noperator = "suppress"\n')
    base = Policy.load("default")
    assert policy.rule("EMAIL_ADDRESS").operator == "suppress"
    assert policy.rule("PHONE_NUMBER") == base.rule("PHONE_NUMBER")
    assert policy.exclude == base.exclude
    assert policy.name == "mine"


def test_extends_a_file_beside_it(tmp_path):
    write(tmp_path, 'schema = 1\nname = "base"\nthreshold = 0.7\n', "base.toml")
    assert load(tmp_path, 'extends = "base.toml"\n').threshold == 0.7


def test_a_rule_that_extends_keeps_the_operator_and_adds_options(tmp_path):
    write(tmp_path, 'name = "base"\n[rules.PHONE_NUMBER]\noperator = "mask"\n', "base.toml")
    policy = load(tmp_path, 'extends = "base.toml"\n[rules.PHONE_NUMBER]\nthreshold = 0.9\n')
    assert policy.rule("PHONE_NUMBER").operator == "mask"
    assert policy.threshold_for("PHONE_NUMBER") == 0.9


def test_a_rule_without_an_operator_takes_the_default_rule(tmp_path):
    text = 'name = "x"\n[default]\noperator = "mask"\nkeep_last = 2\n[rules.PERSON]\nthreshold = 0.9\n'
    policy = load(tmp_path, text)
    assert policy.rule("PERSON") == Rule("mask", {"keep_last": 2}, 0.9)
    assert policy.threshold_for("EMAIL_ADDRESS") == 0.5


def test_labels_can_be_added(tmp_path):
    text = (
        MINIMAL
        + '[[labels]]\nname = "STAR"\nparent = "LOCATION"\nkind = "quasi"\nrisk = 1\n[dictionary]\nSTAR = ["Vega"]\n'
    )
    policy = load(tmp_path, text)
    assert policy.taxonomy.get("STAR").risk == 1
    assert policy.taxonomy.within("STAR", "LOCATION")
    assert "STAR" in [s.label for s in allonym.detect("We saw Vega rise.", policy)]
    assert "STAR" not in TAXONOMY


def test_patterns_can_be_added(tmp_path):
    text = (
        MINIMAL
        + '[detect]\nlabels = ["BADGE"]\n[[labels]]\nname = "BADGE"\n[[patterns]]\nname = "badge"\nlabel = "BADGE"\npattern = "BX-[0-9]{4}"\n'
    )
    policy = load(tmp_path, text)
    found = allonym.detect("Badge BX-1234, not BX-12345.", policy)
    assert [(s.start, s.end, s.label, s.source) for s in found] == [(6, 13, "BADGE", "rules:badge")]


def test_a_pattern_of_the_policy_goes_before_a_built_in_rule_of_the_same_place():
    badge = PatternRule("badge", "GENERIC_ID", "BX-[0-9]{4}", 0.4, context=("badge",))
    policy = Policy.load("default").with_(detectors=("rules",), patterns=(badge,))
    text = "Her badge is BX-0144, her staff number is 55-0144."
    assert [(text[s.start : s.end], s.label) for s in allonym.detect(text, policy)] == [
        ("BX-0144", "GENERIC_ID"),
        ("55-0144", "EMPLOYEE_ID"),
    ]


BAD = [
    ("colour = 1", UnknownNameError, "unknown key 'colour'"),
    ("treshold = 0.5", UnknownNameError, "did you mean: threshold"),
    ("threshold = 2", PolicyError, "threshold must be from 0 to 1, got 2"),
    ("threshold = true", PolicyError, "threshold must be a number"),
    ("name = 3", PolicyError, "name must be a string, got 3"),
    ("schema = 9", PolicyError, "schema 9 is not known; 1 is required"),
    ("schema = 'a", PolicyError, "not valid TOML"),
    ("extends = 'nosuch'", UnknownNameError, "unknown policy preset 'nosuch'"),
    ("[rules.EMAIL_ADRESS]\noperator='tag'", UnknownNameError, "did you mean: EMAIL_ADDRESS"),
    ("[rules.PERSON]\noperator='tagg'", UnknownNameError, "did you mean: tag"),
    ("[rules.PERSON]\noperator='tag'\ncolour='red'", UnknownNameError, "colour"),
    ("[rules.PERSON]\noperator=1", PolicyError, "rules.PERSON.operator must be a string, got int"),
    ("[rules.PERSON]\noperator='tag'\nthreshold=7", PolicyError, "threshold must be from 0 to 1"),
    ("[rules]\nPERSON='tag'", PolicyError, "rules.PERSON must be a table, got str"),
    ("[detect]\ndetectors=['ruels']", UnknownNameError, "did you mean: rules"),
    ("[detect]\nlabel=['PERSON']", UnknownNameError, "did you mean: labels"),
    ("[detect]\nlabels=['PERSONN']", UnknownNameError, "did you mean: PERSON"),
    ("[detect]\nexclude='PERSON'", PolicyError, "must be a list, got str"),
    ("[tag]\nstyle='[{n}]'", PolicyError, "{label} is required"),
    ("[tag]\nstyle='{{label}}_{n}'", PolicyError, "{label} is required"),
    ("[tag]\nstyle='<LABEL {n}>'", PolicyError, "{label} is required"),
    ("[tag]\nstyle='{label:.0}{n}'", PolicyError, "{label} is required"),
    ("[tag]\nstyle='{label}_{x}'", PolicyError, "only {label}, {n} and {form}"),
    ("[tag]\nstyle='{label}_{n.x}'", PolicyError, "only {label}, {n} and {form}"),
    ("[tag]\nnames='presido'", UnknownNameError, "did you mean: presidio"),
    ("[dictionary]\nPERSON=3", PolicyError, "must be a table, got int"),
    ("[dictionary]\nPERSN=['x']", UnknownNameError, "did you mean: PERSON"),
    ("[dictionary]\nPERSON={file='nowhere.txt'}", PolicyError, "cannot read term list"),
    ("[dictionary]\nPERSON={path='x'}", UnknownNameError, "unknown key 'path'"),
    ("[metadata]\nPERSON='names'", PolicyError, "must be a list of strings"),
    ("[[labels]]\nname='lower'", PolicyError, "must be in capitals"),
    ("[[labels]]\nname='PERSON'", PolicyError, "label PERSON exists already"),
    ("[[labels]]\nname='NEW'\nparent='PERSN'", UnknownNameError, "did you mean: PERSON"),
    ("[[labels]]\nname='NEW'\nparent=''", UnknownNameError, "unknown parent label ''"),
    ("[[labels]]\nname='NEW'\nrisk=9", PolicyError, "risk must be from 0 to 5"),
    (
        "[[labels]]\nname='NEW'\nkind='odd'",
        UnknownNameError,
        "labels[0].kind: unknown value 'odd'; known: direct, none, quasi",
    ),
    ("[[patterns]]\nname='p'\nlabel='PERSON'", PolicyError, "pattern is required"),
    ("[[patterns]]\nname='p'\nlabel='PERSN'\npattern='x'", UnknownNameError, "did you mean: PERSON"),
    ("[[patterns]]\nname='p'\nlabel='PERSON'\npattern='x'\nscore=3", PolicyError, "score must be from 0 to 1, got 3"),
    ("[[patterns]]\nname='p'\nlabel='PERSON'\npattern='x'\nregex='y'", UnknownNameError, "unknown key 'regex'"),
    ("[[patterns]]\nname='p'\nlabel='PERSON'\npattern='x'\nwindow=[1]", PolicyError, "two counts of characters"),
    ("countries='us'", PolicyError, "countries must be a list, got str"),
    ("[detect]\noperating_point='high-recal'", UnknownNameError, "did you mean: high-recall"),
    ("[detect]\noperating_point=1", PolicyError, "a number between 0 and 1, got 1"),
    ("[detect]\noperating_point=true", PolicyError, "a number between 0 and 1, got True"),
    ("[detect.operating_points]\nPERSN=0.1", UnknownNameError, "did you mean: PERSON"),
    ("[detect.operating_points]\nPERSON=[]", PolicyError, "operating_points.PERSON must be"),
    ("[detect]\noperating_points=3", PolicyError, "operating_points must be a table, got 3"),
    ("[detect]\nspacy=3", PolicyError, "detect.spacy must be a table, got 3"),
    ("[detect.spacyy]\nmodel='x'", UnknownNameError, "did you mean: spacy"),
    ("[detect.spacy]\nmodell='x'", UnknownNameError, "did you mean: model"),
    ("[detect.spacy]\nmodel='x'", PolicyError, "detect.spacy has options, but spacy is not among the detectors"),
    ("[detect.spacy]\nmodel=1", PolicyError, "detect.spacy.model must be a string, got 1"),
    ("[detect.spacy]\nscore=2", PolicyError, "detect.spacy.score must be from 0 to 1"),
    ("[detect.spacy]\nbatch_size=0", PolicyError, "detect.spacy.batch_size must be 1 or more, got 0"),
    ("[detect.spacy]\nlabels={GPE='LOCATON'}", UnknownNameError, "did you mean: LOCATION"),
    ("[detect.spacy]\nlabels={GPE=1}", PolicyError, "detect.spacy.labels.GPE must be a string, got 1"),
    ("[detect.flair]\nallow_download='yes'", PolicyError, "allow_download must be true or false, got str"),
    ("[detect.ensemble]\nmembers=['ruels']", UnknownNameError, "did you mean: rules"),
    ("[detect.ensemble]\nmode='unoin'", UnknownNameError, "did you mean: union"),
    ("[detect.ensemble]\nlabels={PERSN='vote'}", UnknownNameError, "did you mean: PERSON"),
    ("[detect.ensemble]\nlabels={PERSON='veto'}", UnknownNameError, "did you mean: vote"),
]


@pytest.mark.parametrize(("text", "kind", "says"), BAD, ids=[b[0] for b in BAD])
def test_what_is_wrong_is_said(tmp_path, text, kind, says):
    with pytest.raises(kind) as caught:
        load(tmp_path, text + "\n")
    assert says in str(caught.value)


def test_a_pattern_that_is_not_re2_is_refused_before_any_text_is_read(tmp_path):
    for pattern in ("(?=x)y", r"(a)\1", "[", "(?<!a)b"):
        text = MINIMAL + f"[[patterns]]\nname='p'\nlabel='PERSON'\npattern='{pattern}'\n"
        with pytest.raises(PolicyError, match="p"):
            allonym.detect("some text", load(tmp_path, text))


def test_an_unknown_preset_says_the_nearest():
    with pytest.raises(UnknownNameError, match="did you mean: earnings"):
        Policy.load("earning")


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(PolicyError, match=r"cannot read policy .*nowhere\.toml: No such file"):
        Policy.load(tmp_path / "nowhere.toml")


def test_every_key_is_explained():
    assert all(len(setting.says) > 3 for setting in list_settings(PolicyFile))


# Term lists


def test_terms_from_text_and_csv(tmp_path):
    plain = write(tmp_path, "\ufeffAda Brook\n\n  Cyd Dale \n", "names.txt")
    table = write(tmp_path, "id,name\n1,Ada Brook\n2,\n3,Cyd Dale\n", "names.csv")
    tabbed = write(tmp_path, "name\tid\nAda Brook\t1\nCyd Dale\t3\n", "names.tsv")
    assert read_terms(plain) == read_terms(table, "name") == read_terms(tabbed) == ("Ada Brook", "Cyd Dale")
    assert read_terms(table) == ("1", "2", "3")
    with pytest.raises(PolicyError, match="has no column 'who'; it has: id, name"):
        read_terms(table, "who")


def test_term_files_lie_beside_the_policy(tmp_path):
    write(tmp_path, "name,n\nQuill & Daughters,1\n", "orgs.csv")
    policy = load(tmp_path, MINIMAL + '[dictionary]\nORGANIZATION = { file = "orgs.csv", column = "name" }\n')
    assert policy.dictionary == (TermList("ORGANIZATION", ("Quill & Daughters",)),)


def test_a_term_list_does_not_show_its_terms():
    assert "Ada" not in repr(TermList("PERSON", ("Ada Brook",)))
    assert repr(TermList("PERSON", ("Ada Brook",))) == "TermList('PERSON', 1 terms)"


# As a value


def test_only():
    policy = Policy.only(["US_SSN", "URL"], threshold=0.0)
    assert policy.looks_for("URL")
    assert not policy.looks_for("DOMAIN_NAME")
    assert not policy.looks_for("PERSON")
    assert policy.threshold_for("US_SSN") == 0.0
    assert Policy.only("URL").labels == ("URL",)
    assert Policy.only(["TIME"]).looks_for("TIME")
    with pytest.raises(UnknownNameError, match="did you mean: URL"):
        Policy.only(["URLL"])
    for wrong in (1.5, -1):
        with pytest.raises(PolicyError, match="threshold must be from 0 to 1"):
            Policy.only(["URL"], threshold=wrong)
    with pytest.raises(PolicyError, match="threshold must be a number, got True"):
        Policy.only(["URL"], threshold=True)


def test_a_threshold_between_0_and_1_is_the_operating_point_too():
    usual = Policy.load("default").operating_points
    for threshold in (None, 0, 1):
        assert Policy.only(["PERSON"], threshold=threshold).operating_points == usual
    assert dict(Policy.only(["PERSON"], threshold=0.7).operating_points) == {"*": 0.7}


def test_with_leaves_the_policy_as_it_was():
    policy = Policy.load("default")
    other = policy.with_(threshold=0.9)
    assert (policy.threshold, other.threshold) == (0.5, 0.9)


@check_each_row("name", presets())
def test_a_policy_crosses_process_borders(name):
    policy = Policy.load(name)
    back = pickle.loads(pickle.dumps(policy))
    assert back.fingerprint() == policy.fingerprint()
    assert dict(back.rules) == dict(policy.rules)
    assert back.default == policy.default


def test_a_policy_with_labels_of_its_own_crosses_process_borders(tmp_path):
    policy = load(tmp_path, MINIMAL + '[[labels]]\nname = "STAR"\nparent = "LOCATION"\n[dictionary]\nSTAR = ["Vega"]\n')
    back = pickle.loads(pickle.dumps(policy))
    assert back.fingerprint() == policy.fingerprint()
    assert back.taxonomy.within("STAR", "LOCATION")


DETECTORS = """
[detect]
detectors = ["rules", "ensemble"]
operating_point = "balanced"
[detect.operating_points]
OCCUPATION = "high-precision"
PERSON = 0.125
[detect.ensemble]
members = ["spacy", "presidio"]
mode = "vote"
labels = { ORGANIZATION = "intersection" }
[detect.spacy]
model = "models/en"
labels = { GPE = "LOCATION", CARDINAL = "" }
"""


def test_operating_points(tmp_path):
    policy = load(tmp_path, DETECTORS)
    labels = ("URL", "OCCUPATION", "EMPLOYMENT_STATUS", "PERSON_LASTNAME")
    assert [policy.operating_point_for(x) for x in labels] == ["balanced", "high-precision", "high-precision", 0.125]
    assert Policy.load("default").operating_point_for("PERSON") == "high-recall"
    write(tmp_path, "[detect.operating_points]\nPERSON = 0.5\nAGE = 0.25\n", "base.toml")
    text = 'extends = "base.toml"\n[detect]\noperating_point = "balanced"\n[detect.operating_points]\nAGE = 0.75\n'
    assert dict(load(tmp_path, text).operating_points) == {"*": "balanced", "PERSON": 0.5, "AGE": 0.75}


def test_tables_of_detectors(tmp_path):
    policy = load(tmp_path, DETECTORS)
    spacy = policy.settings("spacy")
    assert (spacy["model"], spacy["score"], spacy["batch_size"]) == ("models/en", 0.85, 1)
    assert dict(spacy["labels"]) == {"GPE": "LOCATION", "CARDINAL": ""}
    assert policy.settings("ensemble")["members"] == ("spacy", "presidio")
    assert policy.settings("flair")["model"] == ""
    (tmp_path / "models" / "en").mkdir(parents=True)
    assert load(tmp_path, DETECTORS).settings("spacy")["model"] == str(tmp_path / "models" / "en")
    with pytest.raises(TypeError):
        policy.tables["spacy"]["labels"]["GPE"] = "CITY"


def test_a_table_adds_to_that_of_the_policy_it_extends(tmp_path):
    write(tmp_path, '[detect]\ndetectors = ["spacy"]\n[detect.spacy]\nmodel = "x"\nscore = 0.5\n', "base.toml")
    spacy = load(tmp_path, 'extends = "base.toml"\n[detect.spacy]\nscore = 0.75\n').settings("spacy")
    assert (spacy["model"], spacy["score"]) == ("x", 0.75)


def test_what_detectors_are_told_crosses_process_borders_and_counts(tmp_path):
    policy = load(tmp_path, DETECTORS)
    back = pickle.loads(pickle.dumps(policy))
    assert back.fingerprint() == policy.fingerprint()
    assert (back.operating_points, back.tables) == (policy.operating_points, policy.tables)
    changes = [("0.125", "0.25"), ("balanced", "high-recall"), ('"LOCATION"', '"CITY"'), ('"vote"', '"union"')]
    prints = {load(tmp_path, DETECTORS.replace(*change)).fingerprint() for change in changes}
    assert len(prints | {policy.fingerprint()}) == 5
    swapped = DETECTORS.replace('GPE = "LOCATION", CARDINAL = ""', 'CARDINAL = "", GPE = "LOCATION"')
    assert load(tmp_path, swapped).fingerprint() == policy.fingerprint()


def test_every_option_of_a_detector_has_a_default_that_may_be_written(tmp_path):
    for name, group in allonym.registry.DETECTOR_OPTIONS.items():
        assert all(len(setting.says) > 3 for setting in list_settings(group))
        options = to_plain(list_defaults(group))
        policy = Policy(name="empty").changed({"detect": {"detectors": [name], name: options}}, "here")
        assert policy.settings(name) == list_defaults(group)


def test_the_fingerprint_sees_what_matters(tmp_path):
    texts = [
        MINIMAL,
        MINIMAL.replace("suppress", "tag"),
        "threshold = 0.4\n" + MINIMAL,
        MINIMAL + '[rules.URL]\noperator = "mask"\n',
        MINIMAL + '[rules.URL]\noperator = "mask"\nthreshold = 0.1\n',
        MINIMAL + '[dictionary]\nPERSON = ["Ada"]\n',
        MINIMAL + '[dictionary]\nPERSON = ["Eve"]\n',
        MINIMAL + '[exclusions]\nPERSON = ["Ada"]\n',
        MINIMAL + '[[labels]]\nname = "STAR"\n',
        MINIMAL + '[detect]\nexclude = ["URL"]\n',
        MINIMAL + '[tag]\nstyle = "<{label}>"\n',
        MINIMAL + '[metadata]\nCOMPANY = ["company"]\n',
    ]
    prints = [load(tmp_path, text).fingerprint() for text in texts]
    assert len(set(prints)) == len(texts)
    assert load(tmp_path, texts[3]).fingerprint() == prints[3]


def test_rules_and_metadata_are_read_only():
    policy = Policy.load("earnings")
    with pytest.raises(TypeError):
        policy.rules["PERSON"] = Rule("keep")
    with pytest.raises(TypeError):
        policy.metadata["PERSON"] = ("x",)


def test_no_term_of_a_policy_shows_in_its_repr(tmp_path):
    policy = load(tmp_path, MINIMAL + '[dictionary]\nPERSON = ["Zaphrandel"]\n[exclusions]\n"*" = ["Quorbling"]\n')
    assert "Zaphrandel" not in repr(policy)
    assert "Quorbling" not in repr(policy)


def test_where_the_same_entity_is_replaced_alike(tmp_path):
    policy = load(tmp_path, 'extends = "default"\nsubject = "patient"\nconsistent = "subject"\n')
    assert (policy.subject, policy.consistent) == ("patient", "subject")
    assert policy.fingerprint() != policy.with_(consistent="document").fingerprint()
    with pytest.raises(UnknownNameError, match="scope"):
        load(tmp_path, 'extends = "default"\nconsistent = "scop"\n')
    with pytest.raises(PolicyError, match="needs subject"):
        load(tmp_path, 'extends = "default"\nconsistent = "subject"\n')


def test_pictures_go_unless_a_policy_keeps_them(tmp_path):
    kept = load(tmp_path, 'extends = "default"\nimages = "keep"\n')
    default = Policy.load("default")
    assert (default.images, kept.images) == ("remove", "keep")
    assert (
        default.fingerprint()
        == default.with_(images="remove").fingerprint()
        != kept.with_(name="default").fingerprint()
    )
    assert pickle.loads(pickle.dumps(kept)).images == "keep"
    with pytest.raises(UnknownNameError, match="images"):
        load(tmp_path, 'extends = "default"\nimages = "keap"\n')


@pytest.mark.parametrize(("consistent", "alike"), [("scope", True), ("document", False), ("subject", False)])
def test_a_name_is_replaced_alike_as_far_as_the_policy_says(consistent, alike):
    from allonym.pipeline import anonymize

    policy = Policy.load("wild-tags").with_(detectors=("rules",), subject="who", consistent=consistent)
    made = [anonymize(Document(n, "a@example.com", {"who": n}), policy, key=KEY).text for n in ("one", "two", "one")]
    assert (made[0] == made[1]) is alike and made[0] == made[2]


def test_a_file_that_has_not_changed_gives_the_same_policy(tmp_path):
    path = write(tmp_path, 'name = "x"\nthreshold = 0.4\n')
    first = Policy.load(path)
    assert Policy.load(str(path)) is first
    state = path.stat()
    write(tmp_path, 'name = "x"\nthreshold = 0.6\n')  # as long as before
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert Policy.load(path).threshold == 0.6


def test_a_changed_file_that_a_policy_names_changes_the_policy(tmp_path):
    write(tmp_path, 'name = "base"\n[dictionary]\nPERSON = {file = "people.txt"}\n', "base.toml")
    (tmp_path / "people.txt").write_text("Ada\n")
    path = write(tmp_path, 'extends = "base.toml"\nname = "x"\n')
    assert Policy.load(path).dictionary[0].terms == ("Ada",)
    (tmp_path / "people.txt").write_text("Eva\n")
    assert Policy.load(path).dictionary[0].terms == ("Eva",)
    write(tmp_path, 'name = "base"\nthreshold = 0.7\n', "base.toml")
    assert Policy.load(path).dictionary == ()


def test_a_settled_file_is_not_read_again(tmp_path, monkeypatch):
    path = write(tmp_path, 'name = "x"\n')
    os.utime(path, (1, 1))
    monkeypatch.setattr("allonym.policy._UNSETTLED", 0)
    first = Policy.load(path)
    monkeypatch.setattr(Path, "read_bytes", None)
    assert Policy.load(path) is first


def test_a_policy_that_became_invalid_is_refused(tmp_path):
    path = write(tmp_path, 'name = "x"\n')
    Policy.load(path)
    write(tmp_path, "nonsense = 1\n")
    with pytest.raises(UnknownNameError):
        Policy.load(path)
    path.unlink()
    with pytest.raises(PolicyError, match="cannot read"):
        Policy.load(path)
