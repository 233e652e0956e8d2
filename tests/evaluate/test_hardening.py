"""Hardening: intruders lose the subject, the plan undoes, limits hold, and the command writes it all and resumes."""

from __future__ import annotations

import json
import math
import random

import pytest
from click.testing import CliRunner

from allonym.cli import app
from allonym.errors import DataError, UsageError
from allonym.evaluate import hardening
from allonym.evaluate.hardening import harden
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


def test_every_intruder_loses_most_subjects(made):
    before, after = made.levels[0], made.chosen
    assert min(before.naive.value, before.blind.value, before.adaptive.value) > 0.9
    assert after.worst.value < before.worst.value / 2
    assert made.panel.worst.identified.value < made.panel.worst.before.value
    assert made.still_found == sum(text.rank == 1 for text in made.texts)


def test_soft_identifiers_are_within_reach(made):
    text = " ".join(t.text for t in made.texts[:6]).lower()
    assert text.count("ginger") + text.count("guitar") < 12


def test_counts_hold_together(made):
    shares = [level.gone.value for level in made.levels]
    assert shares == sorted(shares) and shares[0] < shares[-1] <= 0.6 + 1e-9
    assert made.chosen.gone.value == pytest.approx(sum(t.gone for t in made.texts) / len(made.texts))
    assert made.generalised + made.suppressed > 0
    assert made.chosen.similarity.value < 1
    for level in made.levels:
        assert level.worst.value == max(level.naive.value, level.blind.value, level.adaptive.value)


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
def test_limits_hold(made):
    original, anonymised, subjects, _ = corpus()
    kept = harden(original, anonymised, subjects, most_removed=0.2)
    assert kept.chosen.gone.value < made.chosen.gone.value and kept.chosen.gone.value < 0.25
    assert kept.chosen.worst.value > made.chosen.worst.value
    near = harden(original, anonymised, subjects, least_similar=1.0)
    assert [t.text for t in near.texts] == anonymised


@pytest.mark.slow
def test_the_frontier_goes_on_beyond_the_choice(made):
    original, anonymised, subjects, _ = corpus()
    wide = harden(original, anonymised, subjects, frontier=True)
    assert [t.text for t in wide.texts] == [t.text for t in made.texts]
    assert len(wide.levels) > len(made.levels) and wide.levels[-1].gone.value > 0.6


@pytest.mark.slow
def test_a_level_that_is_asked_for_is_chosen(tmp_path, made):
    original, anonymised, subjects, plans = corpus()
    settings = {"plans": plans, "state": tmp_path}
    suggested = harden(original, anonymised, subjects, **settings)
    level = suggested.texts[0].level - 1
    asked = harden(original, anonymised, subjects, level=level, **settings)
    assert suggested.to_dict() == made.to_dict()
    assert {text.level for text in asked.texts} == {level}
    assert asked.chosen.to_dict() == made.levels[level].to_dict()
    assert asked.chosen.gone.value < made.chosen.gone.value
    with pytest.raises(UsageError, match=rf"level must be from 0 to {len(made.levels) - 1}"):
        harden(original, anonymised, subjects, level=len(made.levels), **settings)


def test_a_higher_rank_asks_for_more(made):
    original, anonymised, subjects, _ = corpus()
    second = harden(original, anonymised, subjects, rank=2, groups=["all"] * len(original), most_removed=1)
    assert second.chosen.gone.value > made.chosen.gone.value - 0.05  # greedy steps differ
    assert second.groups["all"][-1].to_dict() == second.chosen.to_dict()


def test_an_interrupted_run_goes_on_where_it_was(tmp_path, made, monkeypatch):
    original, anonymised, subjects, plans = corpus()

    def stop(number, total):
        if number == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        harden(original, anonymised, subjects, plans=plans, state=tmp_path, advance=stop)
    kept = sorted(tmp_path.glob("*.json"))
    assert len(kept) == 3 and "ginger" not in kept[0].read_text()
    measured = []
    rounds, measure = hardening._Rounds, hardening._Rounds._measure_texts
    monkeypatch.setattr(rounds, "_measure_texts", lambda self: measured.append(1) or measure(self))
    again = harden(original, anonymised, subjects, plans=plans, state=tmp_path)
    assert [t.plan for t in again.texts] == [t.plan for t in made.texts]
    assert again.to_dict() == made.to_dict()
    assert len(measured) == len(made.levels) - 3


def test_what_people_use_goes_though_no_intruder_does():
    """Rare words and superlatives stand in one text only, so linkage learns nothing from them."""
    texts = [
        f"{name} likes the {a} and the {b} very much. The street is quiet."
        for name, (a, b) in {"Ada": ("garden", "river"), "Ben": ("market", "castle")}.items()
        for _ in range(4)
    ]
    texts[0] += " A doctor saw heterochromia iridis there. It was the tallest and only house."
    hard = harden(texts, texts, ["Ada"] * 4 + ["Ben"] * 4, most_removed=0.9).texts[0].text
    assert all(word not in hard for word in ("heterochromia", "iridis", "tallest", "only"))


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
    assert math.isnan(found.texts[-2].gone) and found.texts[-2].text == ""
    assert found.texts[-1].rank == 0
    assert found.texts[-1].text == "[PERSON_1] plays chess."


def test_the_report_begins_with_the_worst_of_the_panel(made):
    out = render(Page("t", (hardening_section(made.to_dict()),)), "markdown")
    assert out.index(f"by the {made.panel.worst.name} intruder") < out.index("Content gone")


def test_who_knows_one_subject_only_has_nothing_to_guess():
    """One text of the second subject, and more texts than folds: in one fold nobody else is known."""
    ada = [f"Ada has ginger hair and plays the guitar number {i}." for i in range(14)]
    texts, subjects = [*ada, "Ben repairs old cars in a garage."], ["Ada"] * 14 + ["Ben"]
    made = harden(texts, texts, subjects)
    assert made.texts[-1].rank == 0 and made.texts[-1].text == texts[-1]


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
    assert result.output.index("Identified at worst") < result.output.index("Content gone")
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
    public = tmp_path / "public"
    public.mkdir()
    for name, traits in PEOPLE.items():
        (public / f"{name}.txt").write_text(f"What is known: {' '.join(traits)}.")
    searched = CliRunner().invoke(app, [*call, "--overwrite", "--background", str(public)])
    assert searched.exit_code == 0, searched.output
    rows = {row["name"]: row for row in json.loads(numbers.read_text())["hardening"]["panel"]["rows"]}
    words = rows["background words"]
    assert words["before"]["value"] > 0.9 > words["identified"]["value"]
    assert [json.loads(line) for line in out.read_text().splitlines()] == hardened
