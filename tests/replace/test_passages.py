"""Eighty passages of fifteen kinds with pseudonyms: few invented facts, and every text comes back."""

import json

import pytest
from benchmarks.pseudonym_passages import FIGURES, FIRST_FOUR, KEY, PASSAGES, list_cases
from tests.replace.pseudonyms import kb

from allonym import detect, restore
from allonym.document import Document
from allonym.pipeline import replace_found
from allonym.policy import Policy

UNSEEN = PASSAGES.with_name("pseudonym_passages_unseen.jsonl")
MOST = {"words": 2, "tags": 3, "mismatches": 1, "genders": 4, "first words": 2, "organizations": 2}
MOST |= {"uncovered names": 2, "years elsewhere": 2}
"""The most cases of a figure; none of the others."""


@pytest.fixture(scope="module")
def passages():
    policy = Policy.load("pseudonyms")
    rows = [json.loads(line) for line in PASSAGES.read_text(encoding="utf-8").splitlines()]
    return policy, [(row, detect(row["text"], policy)) for row in rows]


def test_passages_that_were_written_later_have_few_faults():
    policy = Policy.load("pseudonyms")
    cases = []
    for i, line in enumerate(UNSEEN.read_text(encoding="utf-8").splitlines()):
        row = json.loads(line)
        made = replace_found(Document(str(i), row["text"]), detect(row["text"], policy), policy, key=KEY + b"0")
        assert restore(made.text, plan=made.plan).text == row["text"]
        cases += [case for case in list_cases(row, made.plan.edits, kb()) if case[0] in FIRST_FOUR]
    assert len(cases) <= 1, cases


@pytest.mark.parametrize("number", [0, 1])
def test_pseudonyms_invent_few_facts(passages, number):
    policy, rows = passages
    cases = {figure: [] for figure in FIGURES}
    for i, (row, spans) in enumerate(rows):
        made = replace_found(Document(str(i), row["text"]), spans, policy, key=KEY + str(number).encode())
        assert restore(made.text, plan=made.plan).text == row["text"]
        for figure, old, new in list_cases(row, made.plan.edits, kb()):
            cases[figure].append((i, old, new))
    assert len(rows) == 80 and len({row["kind"] for row, _ in rows}) == 15
    assert not {figure: some for figure, some in cases.items() if len(some) > MOST.get(figure, 0)}
    assert sum(len(cases[figure]) for figure in FIRST_FOUR) <= 5
