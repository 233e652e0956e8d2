"""The sample, what it suggests, and the policy that the answers make."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest

import allonym
from allonym.errors import DataError, UnknownNameError
from allonym.policy import Policy
from allonym.project.first_policy import (
    choose_passages,
    list_warnings,
    needs_key,
    resolve_language,
    suggest_answers,
    take_sample,
    write_policy,
)
from allonym.project.questions import QUESTIONS, Answers

CALL = "Pam: This is Pam Quill, of Quill & Daughters.\nJim: Hello Pam.\nPam: Mail pam@example.com by 3 May 2024.\n"
LETTER = "Ada Brook was born on 3 May 1974. She came to Leeds on 12 June 2019.\n"
ALL_ANSWERS = [Answers("en", *values) for values in product(*(question.answers for question in QUESTIONS[1:]))]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "call.txt").write_text(CALL, encoding="utf-8")
    (tmp_path / "table.csv").write_text("id,note\n1,Mail ada@example.com\n", encoding="utf-8")
    (tmp_path / "broken.pdf").write_bytes(b"no PDF")
    (tmp_path / "secret.key").write_bytes(b"a key")
    return tmp_path


def test_a_sample_counts_and_suggests(folder):
    sample = take_sample([folder])
    assert sample.formats == {"txt": 1, "csv": 1, "pdf": 1} and list(sample.refused) == ["broken.pdf"]
    assert sample.others == 1
    assert take_sample([folder], without=folder / "table.csv").formats == {"txt": 1, "pdf": 1}
    assert sample.labels["EMAIL_ADDRESS"] == 2 and max(sample.languages, key=sample.languages.get) == "en"
    assert "pam@" not in repr(sample)
    answers, reasons = suggest_answers(sample)
    assert (answers.language, answers.protect, answers.dates) == ("en", "speakers", "cover")
    assert reasons["protect"] == "50% are conversations"
    assert suggest_answers(sample, {"protect": "eu"})[0].dates == "year"


def test_files_without_text_are_refused(tmp_path):
    (tmp_path / "a.txt").write_text(" \n", encoding="utf-8")
    with pytest.raises(DataError, match="none of 1 files holds text"):
        take_sample([tmp_path])
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="name files or folders"):
        take_sample([tmp_path / "empty"])


def test_all_answers_make_policies_that_load(tmp_path):
    for answers in ALL_ANSWERS:
        path = tmp_path / "p.toml"
        path.write_text(write_policy(answers, "p \U0001f600", "two files"), encoding="utf-8")
        policy = Policy.load(path)
        assert policy.rule("DATE").operator != "keep" or answers.dates == "keep", answers
        assert answers.dates == "keep" or policy.looks_for("DATE"), answers
        assert answers.organisations == "keep" or policy.looks_for("ORGANIZATION"), answers
        assert policy.rule("DATE_OF_BIRTH").operator == "tag" and policy.looks_for("DATE_OF_BIRTH"), answers
        assert policy.public_figures == answers.public_figures, answers
        is_tagged = policy.rule("DATE").operator == "tag"
        assert ("# Dates: tags." in path.read_text(encoding="utf-8")) == is_tagged, answers


@pytest.mark.parametrize(
    ("changes", "lacks", "holds"),
    [
        ({}, "2019", "[DATE_1]"),
        ({"dates": "year"}, "June", "2019"),
        ({"dates": "keep"}, "1974", "12 June 2019"),
        ({"protect": "speakers"}, "June", "[DATE_1]"),
        ({"protect": "patients", "dates": "shift"}, "12 June 2019", "[DATE_OF_BIRTH_1]"),
        ({"come_back": "yes"}, "2019", "<DATE 1>"),
    ],
)
def test_dates_become_what_was_asked_for(tmp_path, changes, lacks, holds):
    answers = Answers(**{"language": "en", **dict.fromkeys(("dates", "organisations", "public_figures"), "cover"),
                         "protect": "everyone", "come_back": "no", **changes})  # fmt: skip
    path = tmp_path / "p.toml"
    path.write_text(write_policy(answers, "p", "one file"), encoding="utf-8")
    policy = Policy.load(path).with_(detectors=("rules", "lexicon"))
    text = allonym.anonymize(LETTER, policy, key=bytes(32)).text
    assert lacks not in text and holds in text and needs_key(answers) == (answers.dates == "shift")


def test_passages_come_from_several_files_and_show_no_original_after(folder):
    policy = Policy.load("default").with_(detectors=("rules", "speakers"))
    passages = choose_passages(take_sample([folder]), policy, 3)
    assert {passage.name for passage in passages} == {"call.txt", "table.csv"}
    assert all("@" in p.before and "@" not in p.after for p in passages if "@" in p.before)


def test_long_lines_are_cut_where_the_next_replacement_is(tmp_path):
    (tmp_path / "a.txt").write_text(" and ".join(f"ada{i}@example.com, {'x' * i}" for i in range(40)), encoding="utf-8")
    policy = Policy.load("default").with_(detectors=("rules",))
    (passage,) = choose_passages(take_sample([tmp_path]), policy)
    assert "@" not in passage.after and len(passage.before) < 300


@pytest.mark.parametrize(("protect", "passages"), [("everyone", 1), ("eu", 0)])
def test_a_language_without_a_tagger_has_a_policy_that_runs(tmp_path, protect, passages):
    (tmp_path / "brief.txt").write_text(
        "Sehr geehrte Frau Kowalski, der Termin wurde auf Freitag verschoben. Bitte schreiben Sie an weber@example.org, "
        "wenn Sie nicht kommen können.\n",
        encoding="utf-8",
    )
    sample = take_sample([tmp_path])
    answers, _ = suggest_answers(sample, {"protect": protect})
    assert answers.language == "de" and "German" in list_warnings(answers)[0]
    path = tmp_path / "p.toml"
    path.write_text(write_policy(answers, "p", "one file"), encoding="utf-8")
    assert len(choose_passages(sample, Policy.load(path))) == passages
    text = path.read_text(encoding="utf-8").replace('language = "en"', 'language = "de"')
    for name in ("detectors", "[detect.spacy]", "model"):
        text = text.replace(f"# {name}", name)
    path.write_text(text, encoding="utf-8")
    policy = Policy.load(path)
    assert policy.settings("spacy")["model"] == "de_core_news_md" and "tagger" not in policy.detectors


def test_the_page_of_the_manual_has_the_questions_and_their_answers():
    page = (Path(__file__).parents[2] / "docs/how-to/first-policy.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| ")]
    for question in QUESTIONS:
        (row,) = [row for row in rows if row.startswith(f"| {question.words} |")]
        assert all(f"`{answer}`" in row for answer in question.answers), question.name


def test_languages_are_known_by_code_and_name():
    assert (resolve_language("de"), resolve_language(" German ")) == ("de", "de")
    with pytest.raises(UnknownNameError):
        resolve_language("Klingonish")
