"""Hardening: the intruder loses the subject, the plan undoes, floors hold, and the command writes it all."""

from __future__ import annotations

import json
import math
import random

import pytest
from click.testing import CliRunner

from allonym.cli import app
from allonym.errors import DataError, UsageError
from allonym.evaluate.hardening import harden, rank_subjects, train_text_judges
from allonym.intruder.linkage import Linkage
from allonym.plan import Edit, Plan, apply, apply_edits, digest, invert_plan
from allonym.report import render
from allonym.report.evaluate.risk import hardening_section
from allonym.report.page import Page

PEOPLE = {
    "Ada Quill": "ginger hair guitar folk pregnancy illness".split(),
    "Ben Marsh": "football penalty captain ankle Dutch tattoo".split(),
    "Cleo Vance": "novel wizard author divorce castle owl".split(),
    "Dan Frost": "telescope comet physics wheelchair voice cambridge".split(),
}
FRAMES = (
    "{name} is known for the {0} and talks about the {1} in most interviews.",
    "People often mention the {2}, and a friend told us about the {3}.",
    "In the end it was the {4} that made {name} famous, not the {5}.",
    "{name} lives in a quiet street and walks to work every day.",
)


def corpus(each=6):
    """Original texts, anonymised ones with their plans, and subjects."""
    rng = random.Random(4)
    original, plans, subjects = [], [], []
    for name, traits in PEOPLE.items():
        for _ in range(each):
            own = rng.sample(traits, len(traits))
            text = " ".join(f.format(*own, name=name) for f in rng.sample(FRAMES, len(FRAMES)))
            edits, at = [], text.find(name)
            while at >= 0:
                edits.append(Edit(at, at + len(name), "PERSON_1", "PERSON", 1, "tag@1", name))
                at = text.find(name, at + 1)
            original.append(text)
            plans.append(Plan(digest(text), tuple(edits), (), digest(apply_edits(text, edits))))
            subjects.append(name)
    return original, [apply(o, p) for o, p in zip(original, plans, strict=True)], subjects, plans


@pytest.fixture(scope="module")
def made():
    original, anonymised, subjects, plans = corpus()
    return harden(original, anonymised, subjects, plans=plans)


def test_the_attacker_loses_nearly_all_and_the_judge_most(made):
    before, after = made.levels[0], made.chosen
    assert before.attacker.value > 0.9 and before.judge.value > 0.9
    assert after.attacker.value < 0.1
    assert after.judge.value < before.judge.value / 2
    assert made.still_found == round(after.attacker.value * len(made.texts))


def test_soft_identifiers_are_within_reach(made):
    text = " ".join(t.text for t in made.texts[:6]).lower()
    assert text.count("ginger") + text.count("guitar") < 12


def test_counts_hold_together(made):
    for level in (*made.levels, made.chosen):
        assert level.removed.value <= level.weighted.value <= 1
    shares = [level.weighted.value for level in made.levels[1:]]
    assert shares == sorted(shares)
    assert all(t.generalised + t.suppressed > 0 for t in made.texts)
    assert made.chosen.similarity.value < 1


def test_plans_lead_from_the_original_and_back(made):
    original, anonymised, subjects, _ = corpus()
    for text, one in zip(original, made.texts, strict=True):
        assert apply(text, one.plan) == one.text
        assert invert_plan(one.text, one.plan) == text
        assert "Quill" not in one.text and "PERSON_1" in one.text
        assert text not in repr(one) and one.text not in repr(one)
    alone = harden(original, anonymised, subjects)
    assert [apply(a, t.plan) for a, t in zip(anonymised, alone.texts, strict=True)] == [t.text for t in made.texts]


@pytest.mark.slow
def test_floors_hold(made):
    original, anonymised, subjects, _ = corpus()
    kept = harden(original, anonymised, subjects, most_removed=0.12)
    assert all(t.weighted <= 0.12 for t in kept.texts)
    assert kept.still_found > made.still_found
    near = harden(original, anonymised, subjects, least_similar=1.0)
    assert [t.text for t in near.texts] == anonymised


@pytest.mark.slow
def test_a_higher_rank_asks_for_more(made):
    original, anonymised, subjects, _ = corpus()
    second = harden(original, anonymised, subjects, rank=2, groups=["all"] * len(original))
    assert second.chosen.weighted.value > made.chosen.weighted.value
    assert sum(t.rank > 2 for t in second.texts) > sum(t.rank > 2 for t in made.texts)
    assert second.groups["all"][-1].to_dict() == second.chosen.to_dict()


def test_another_call_gives_the_same():
    original, anonymised, subjects, plans = corpus(2)
    one, again = (harden(original, anonymised, subjects, plans=plans) for _ in range(2))
    assert [t.plan for t in again.texts] == [t.plan for t in one.texts]
    assert json.dumps(again.to_dict()) == json.dumps(one.to_dict())


def test_what_cannot_be_done_is_said():
    original, anonymised, subjects, _ = corpus(2)
    with pytest.raises(DataError, match="got 8 and 7"):
        harden(original, anonymised[:-1], subjects)
    with pytest.raises(DataError, match="two subjects"):
        harden(original, anonymised, ["one"] * 8)
    with pytest.raises(UsageError, match="rank"):
        harden(original, anonymised, subjects, rank=0)
    with pytest.raises(UsageError, match="most_removed"):
        harden(original, anonymised, subjects, most_removed=2)


def test_empty_texts_and_subjects_known_from_one_text_only():
    original, anonymised, subjects, _ = corpus(3)
    found = harden([*original, "", "Eve Long plays chess."], [*anonymised, "", "[PERSON_1] plays chess."],
                   [*subjects, "Ada Quill", "Eve Long"])  # fmt: skip
    assert math.isnan(found.texts[-2].weighted) and found.texts[-2].text == ""
    assert found.texts[-1].rank == 0
    assert found.texts[-1].text == "[PERSON_1] plays chess."


def test_judges_never_learnt_from_what_they_judge():
    texts = ["alpha beta", "gamma delta", "epsilon zeta", "eta theta"] * 1
    judges = train_text_judges(texts, ["a", "a", "b", "b"], [""] * 4, Linkage("words"), folds=4)
    assert rank_subjects(texts, judges) == [2, 2, 2, 2]  # nothing shared: ties count against the intruder


def test_one_who_learns_from_hardened_texts_is_told(made):
    before, after = made.released
    assert before.n == after.n == len(made.texts) and 0 <= after.value <= 1
    assert made.to_dict()["released"]["after"]["value"] == after.value
    section = hardening_section(made.to_dict())
    out = render(Page("t", (section,)), "markdown")
    assert "know original texts only" in out and "Judge a release by that number" in out


def test_who_knows_one_subject_only_has_nothing_to_guess():
    """One text of the second subject, and more texts than folds: in one fold nobody else is known."""
    ada = [f"Ada has ginger hair and plays the guitar number {i}." for i in range(14)]
    texts, subjects = [*ada, "Ben repairs old cars in a garage."], ["Ada"] * 14 + ["Ben"]
    made = harden(texts, texts, subjects)
    assert made.texts[-1].rank == 0
    alone = [t for t, s in zip(made.texts[:-1], subjects, strict=False) if t.rank == 0]
    assert alone and all(t.text == text for t, text in zip(made.texts, texts, strict=True) if t.rank == 0)
    judges = train_text_judges(texts, subjects, [""] * 15, Linkage("words"))
    assert rank_subjects(texts, judges).count(0) >= 2


def test_nobody_is_judged_by_who_has_a_copy():
    original, _, subjects, _ = corpus()
    copies = [*original, *(t.upper().replace(" ", "  ") for t in original)]
    judges = train_text_judges(copies, subjects * 2, [""] * len(copies), Linkage("words"))
    half = len(original)
    assert all(judges[i].judge is judges[i + half].judge for i in range(half))


def test_the_report_shows_numbers_and_no_text(made):
    section = hardening_section(made.to_dict())
    assert section is not None
    for kind in ("html", "markdown", "json"):
        out = render(Page("t", (section,)), kind)
        assert "ginger" not in out and "Quill" not in out
    assert hardening_section({}) is None


def write(path, texts, subjects):
    rows = [{"id": f"t{i}", "text": t, "subject": s} for i, (t, s) in enumerate(zip(texts, subjects, strict=True))]
    path.write_text("".join(json.dumps(r) + "\n" for r in rows))


def test_the_command(tmp_path):
    original, anonymised, subjects, _ = corpus(3)
    before, after, out = (tmp_path / f"{n}.jsonl" for n in ("before", "after", "out"))
    write(before, original, subjects)
    write(after, anonymised, subjects)
    plan, numbers, page = tmp_path / "plans.jsonl", tmp_path / "n.json", tmp_path / "r.html"
    call = ["harden", str(before), str(after), "--subject", "subject", "-o", str(out), "--plans", str(plan), "--originals",
            "--json", str(numbers), "--report", str(page)]  # fmt: skip
    result = CliRunner().invoke(app, call)
    assert result.exit_code == 0, result.output
    assert "Judge finds the subject" in result.output
    hardened = [json.loads(line) for line in out.read_text().splitlines()]
    plans = [Plan.from_dict(json.loads(line)) for line in plan.read_text().splitlines()]
    assert [h["subject"] for h in hardened] == subjects
    for a, h, p in zip(anonymised, hardened, plans, strict=True):
        assert apply(a, p) == h["text"] != a
        assert invert_plan(h["text"], p) == a
    assert json.loads(numbers.read_text())["hardening"]["texts"] == len(original)
    assert "Hardening" in page.read_text() and "Quill" not in page.read_text() + numbers.read_text()
    assert plan.stat().st_mode & 0o077 == 0
    again = CliRunner().invoke(app, call)
    assert isinstance(again.exception, UsageError)
    nothing = CliRunner().invoke(app, call[:5])
    assert nothing.exit_code == 2
