"""Settings: presets, strict TOML, changes by name, digests."""

from __future__ import annotations

import pickle
from dataclasses import replace

import pytest

from allonym.errors import UnknownNameError, UsageError
from allonym.settings import find_setting, list_settings
from allonym.swap.settings import FALLBACKS, STRATEGIES, Exchange, Settings, presets
from allonym.swap.validity import Rules


def test_presets_load_and_are_named_as_their_files():
    assert presets() == ("default", "earnings", "p1")
    for name in presets():
        assert Settings.load(name).name == name
        assert Settings.load(name).description


def test_p1_is_the_papers_protocol():
    paper = Settings.load("p1")
    assert {c for c, s in paper.categories.items() if s == "swap"} == {"Organization", "Person", "Product", "Location"}
    assert (paper.categories["Date"], paper.categories["Event"]) == ("fixed", "change")
    how = paper.exchange
    assert (how.need, how.partners, how.counts, how.weights) == ("both", "same", "min", "uniform")
    assert (how.rounds, how.cycles, how.swaps, how.unswapped_differ) == (1, False, 30, True)
    assert (paper.search.size, paper.search.full, paper.search.draws) == (2, False, 1)
    assert paper.search.population == (1e6, 1e12, 1e18)
    assert paper.read.section == "all"
    assert paper.check.runs == 30
    assert paper.fallback_for("Organization") == "keep"


def test_the_default_lifts_what_the_paper_leaves_behind():
    ours = Settings.load()
    assert ours.categories["Term"] == "swap"
    assert (ours.exchange.need, ours.exchange.counts, ours.exchange.weights) == ("any", "all", "cosine")
    assert ours.exchange.rounds > 1 and ours.exchange.cycles and ours.search.full
    assert all(ours.fallback_for(c) in FALLBACKS and ours.fallback_for(c) != "keep" for c in ours.categories)


def test_earnings_is_the_default_but_for_the_section():
    ours, calls = Settings.load(), Settings.load("earnings")
    assert calls.read.section == "presentation"
    assert calls.with_({"read.section": ours.read.section}).fingerprint() == ours.fingerprint()


def test_a_file_extends_a_preset_or_another_file(tmp_path):
    first = tmp_path / "first.toml"
    first.write_text('extends = "p1"\n[mixture]\nclusters = 7\n', encoding="utf-8")
    second = tmp_path / "second.toml"
    second.write_text('extends = "first.toml"\nname = "mine"\n[categories]\nTICKER = "swap"\n', encoding="utf-8")
    made = Settings.load(second)
    assert (made.name, made.mixture.clusters, made.mixture.family) == ("mine", 7, "pkbd")
    assert list(made.categories)[-1] == "TICKER"
    assert Settings.load(str(first)).name == "first"


@pytest.mark.parametrize(
    ("text", "error", "said"),
    [
        ("mixtur = 3", UnknownNameError, "did you mean: mixture"),
        ("[mixture]\nclsters = 3", UnknownNameError, "mixture: unknown key 'clsters'; did you mean: clusters"),
        ('[mixture]\nfamily = "pkb"', UnknownNameError, "did you mean: pkbd"),
        ("[mixture]\nclusters = 1.5", UsageError, "mixture.clusters must be an integer, got 1.5"),
        ("[mixture]\nclusters = true", UsageError, "must be an integer, got True"),
        ("[read]\nthreshold = 101", UsageError, "read.threshold must be from 0 to 100, got 101.0"),
        ("[read]\nmin_size = 9\nmax_size = 8", UsageError, "min_size must be at most read.max_size"),
        ("[search]\npopulation = 1e6", UsageError, "search.population must be a list, got 1000000.0"),
        ("[search]\npopulation = [nan]", UsageError, "search.population must be 1 or more"),
        ('[search]\npopulation = ["x"]', UsageError, "search.population must be a number, got str"),
        ('[categories]\nOrganization = "swop"', UnknownNameError, "did you mean: swap"),
        ('[fallback]\nOrganization = "pseudonyms"', UnknownNameError, "did you mean: pseudonym"),
        ("read = 1", UsageError, "read must be a table, got 1"),
        ("name = 1", UsageError, "name must be a string"),
        ("schema = 2", UsageError, "schema 2 is not known; 1 is required"),
        ("= 1", UsageError, "not valid TOML"),
        (
            '[exchange]\nstrategy = "papr"',
            UnknownNameError,
            "exchange.strategy: unknown value 'papr'; did you mean: paper",
        ),
        ("exchange = 1", UsageError, "exchange must be a table, got 1"),
        ('extends = "defualt"', UnknownNameError, "did you mean: default"),
    ],
)
def test_what_is_wrong_in_a_file_is_said(tmp_path, text, error, said):
    path = tmp_path / "mine.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(error, match=r".") as caught:
        Settings.load(path)
    assert said in str(caught.value)


def test_a_strategy_sets_the_exchange_and_a_value_beside_it_wins(tmp_path):
    assert Settings.load("p1").exchange == replace(Exchange(strategy="paper", **STRATEGIES["paper"]), swaps=30)
    assert Settings.load().exchange == Exchange(strategy="entities", **STRATEGIES["entities"])
    path = tmp_path / "mine.toml"
    path.write_text('extends = "p1"\n[exchange]\nstrategy = "chunks"\nrounds = 2\n', encoding="utf-8")
    made = Settings.load(path)
    assert made.exchange == Exchange(strategy="chunks", fit=0.0, rounds=2)
    assert Settings.load("p1").with_({"exchange.rounds": 2, "exchange.strategy": "chunks"}).exchange == made.exchange
    assert set(STRATEGIES) == set(find_setting(Settings, "exchange.strategy").one_of) - {"none"}


def test_strategies_are_the_three_ways_to_exchange():
    rules = {name: Rules(**values, categories=("Person",)) for name, values in STRATEGIES.items()}
    assert {n: (r.draws_uniform_pairs, r.matches_slots) for n, r in rules.items()} == {
        "paper": (True, False),
        "chunks": (False, False),
        "entities": (False, True),
    }


def test_a_missing_file_and_a_misspelt_preset(tmp_path):
    with pytest.raises(UsageError, match="cannot read settings"):
        Settings.load(tmp_path / "none.toml")
    with pytest.raises(UnknownNameError, match="did you mean: earnings"):
        Settings.load("earnigs")


def test_changes_by_name():
    made = Settings.load().with_(
        {"mixture.clusters": 9, "search.population": (10.0, 20.0), "categories.Person": "free"}
    )
    assert (made.mixture.clusters, made.search.population, made.categories["Person"]) == (9, (10.0, 20.0), "free")
    assert Settings.load().mixture.clusters == 0
    for wrong in ("mixture", "mixtures.clusters", "mixture.cluster"):
        with pytest.raises(UnknownNameError):
            Settings.load().with_({wrong: 3})


def test_the_digest_follows_the_values_and_not_the_name(tmp_path):
    base = Settings.load()
    assert base.with_({"mixture.clusters": 9}).fingerprint() != base.fingerprint()
    assert base.with_({"mixture.clusters": 9}).fingerprint("exchange") == base.fingerprint("exchange")
    copy = tmp_path / "copy.toml"
    copy.write_text('extends = "default"\n', encoding="utf-8")
    assert Settings.load(copy).fingerprint() == base.fingerprint()


@pytest.mark.parametrize("name", presets())
def test_settings_cross_process_borders(name):
    made = Settings.load(name).with_({"search.population": (5e3,), "fallback.Person": "keep"})
    again = pickle.loads(pickle.dumps(made))
    assert again == made
    assert again.fingerprint() == made.fingerprint()


def test_every_setting_is_described():
    tables = [table for table in list_settings(Settings) if table.is_group]
    rows = [(table.name, setting) for table in tables for setting in list_settings(table.kind)]
    assert len(rows) > 40
    assert all(setting.says and not setting.says.endswith(".") for _, setting in rows)
    values = Settings().to_dict()
    for table, setting in rows:
        shown = {"strategy": "none", **values[table]}[setting.name]
        assert (tuple(shown) if isinstance(shown, list) else shown) == setting.default
