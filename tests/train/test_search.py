"""The search: it finds the better half, goes on where it stopped, and tells what mattered."""

from __future__ import annotations

import csv
import io

import pytest

from allonym.errors import DataError, MissingExtra, UnknownNameError, UsageError
from allonym.train.backends import BACKENDS, make_options
from allonym.train.search import (
    Importance,
    Parameter,
    Trial,
    format_trials,
    parse_space,
    plot_trials,
    rank_options,
    read_space,
    search_parameters,
)

SPACE = (
    Parameter("lr", 0.001, 0.1, log=True),
    Parameter("pieces", 1, 3, whole=True),
    Parameter("batch", choices=(128, 256)),
)


def objective(values):
    assert set(values) == {"lr", "pieces", "batch"}
    assert 0.001 <= values["lr"] <= 0.1 and values["pieces"] in (1, 2, 3) and values["batch"] in (128, 256)
    return 0.5 + values["pieces"] / 10


@pytest.fixture
def optuna():
    return pytest.importorskip("optuna")


def test_trials_are_kept_and_the_search_goes_on(optuna, tmp_path):
    study = tmp_path / "new" / "study.db"
    seen = []
    first = search_parameters(objective, SPACE, study, trials=2, report=seen.append)
    assert first == seen
    assert [t.number for t in first] == [0, 1]
    calls = []
    more = search_parameters(lambda v: calls.append(v) or objective(v), SPACE, study, trials=3)
    assert len(calls) == 1
    assert more[:2] == first
    assert more[2].values != more[0].values
    assert all(t.score == objective(t.values) and t.seconds >= 0 for t in more)
    assert search_parameters(objective, SPACE, study, trials=1) == more
    with pytest.raises(UsageError, match="has another search space"):
        search_parameters(objective, SPACE[:2], study, trials=9)
    assert len(search_parameters(objective, SPACE, study, trials=1, name="other")) == 1


def test_the_same_seed_draws_the_same(optuna, tmp_path):
    runs = [
        search_parameters(objective, SPACE, tmp_path / f"{n}.db", trials=2, seed=s) for n, s in enumerate((1, 1, 2))
    ]
    drawn = [[t.values for t in run] for run in runs]
    assert drawn[0] == drawn[1] != drawn[2]


def test_a_trial_that_fails_ends_the_search_and_is_not_counted(optuna, tmp_path):
    def broken(values):
        raise DataError("nothing to train on")

    with pytest.raises(DataError, match="nothing to train on"):
        search_parameters(broken, SPACE, tmp_path / "study.db", trials=2)
    assert len(search_parameters(objective, SPACE, tmp_path / "study.db", trials=1)) == 1


def test_what_is_no_study(optuna, tmp_path):
    (tmp_path / "text.db").write_text("not a database at all, but long enough to be looked at", encoding="utf-8")
    with pytest.raises(DataError, match="not a usable study"):
        search_parameters(objective, SPACE, tmp_path / "text.db", trials=1)


TRIALS = [
    Trial(
        n,
        {"lr": 0.001 * 10 ** (n % 3), "pieces": 1 + n % 3, "batch": (128, 256)[n // 3 % 2]},
        0.5 + (n // 3 % 2) / 4,
        1.0,
    )
    for n in range(12)
]


def test_importance_finds_what_mattered():
    pytest.importorskip("sklearn")
    found = rank_options(TRIALS, SPACE)
    assert found[0].name == "batch"
    assert found[0].correlation == pytest.approx(1)
    assert sum(one.share for one in found) == pytest.approx(1)
    assert found[0].share > 0.9
    assert rank_options(TRIALS[:1], SPACE) == []
    constant = [Trial(t.number, {**t.values, "pieces": 1}, t.score, 1.0) for t in TRIALS]
    assert Importance("pieces", 0.0, None) in rank_options(constant, SPACE)


def test_trials_as_csv():
    rows = list(csv.DictReader(io.StringIO(format_trials(TRIALS[:2], SPACE))))
    assert rows[1] == {"trial": "1", "score": "0.500000", "seconds": "1.0", "lr": "0.01", "pieces": "2", "batch": "128"}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_plot_is_drawn_the_same_each_time(tmp_path):
    pytest.importorskip("matplotlib")
    for name in ("a.svg", "b.svg", "c.png"):
        plot_trials(TRIALS, SPACE, tmp_path / name)
    drawn = (tmp_path / "a.svg").read_bytes()
    assert drawn == (tmp_path / "b.svg").read_bytes()
    assert drawn.count(b"<path") > len(TRIALS)
    assert (tmp_path / "c.png").read_bytes().startswith(b"\x89PNG")
    plot_trials(TRIALS[:1], SPACE, tmp_path / "one.svg")


@pytest.mark.parametrize(
    ("parameter", "value", "place"),
    [
        (SPACE[0], 0.001, 0),
        (SPACE[0], 0.01, 0.5),
        (SPACE[0], 0.1, 1),
        (SPACE[1], 2, 0.5),
        (SPACE[2], 256, 1),
        (Parameter("one", choices=("x",)), "x", 0),
    ],
)
def test_places(parameter, value, place):
    assert parameter.scale_to_unit(value) == pytest.approx(place)


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_shipped_spaces_name_options_that_exist(backend):
    space = read_space(backend)
    middle = {p.name: p.choices[0] if p.choices else (int(p.low) if p.whole else p.low) for p in space}
    try:
        made = make_options(backend, middle)
    except MissingExtra:
        pytest.skip("needs the extra")
    assert all(getattr(made, name) == value for name, value in middle.items())


@pytest.mark.parametrize(
    ("tables", "error", "told"),
    [
        ({}, UsageError, "no option to search over"),
        ({"lr": 3}, UsageError, r"a table \[lr\]"),
        ({"lr": {"lo": 1}}, UnknownNameError, "did you mean: lo"),
        ({"lr": {"low": 1, "high": 1}}, UsageError, "lr: choices, or low < high"),
        ({"lr": {"low": 0, "high": 1, "log": True}}, UsageError, "0 < low < high"),
        ({"lr": {"low": "a", "high": 1}}, UsageError, "must be numbers"),
        ({"lr": {"choices": 3}}, UsageError, "choices must be a list"),
    ],
)
def test_a_space_must_make_sense(tables, error, told):
    with pytest.raises(error, match=told):
        parse_space(tables, "space.toml")


def test_a_space_of_the_users_own(tmp_path):
    path = tmp_path / "space.toml"
    path.write_text('[lr]\nlow = 0.1\nhigh = 0.2\n[kind]\nchoices = ["a", "b"]\n', encoding="utf-8")
    assert read_space("spacy", path) == (Parameter("lr", 0.1, 0.2), Parameter("kind", choices=("a", "b")))
    path.write_text("[lr", encoding="utf-8")
    with pytest.raises(UsageError, match="cannot be read as TOML"):
        read_space("spacy", path)


def test_without_optuna(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "optuna", None)
    with pytest.raises(MissingExtra, match=r"\[train\]"):
        search_parameters(objective, SPACE, tmp_path / "study.db", trials=1)
