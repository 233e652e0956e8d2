"""The grid of hyperparameters: what would be chosen at each setting, and which settings fail."""

from __future__ import annotations

import json

import pytest
from tests.swap.corpora import corpus

import allonym
from allonym.swap.settings import Settings

SMALL = Settings.load("p1").with_(
    {
        "embed.name": "lsa",
        "mixture.restarts": 1,
        "exchange.swaps": 6,
        "grid.threshold": (50.0, 75.0),
        "grid.family": ("pkbd", "spcauchy"),
        "grid.clusters": (4, 500),
        "grid.min_weight": (0.005,),
        "search.population": (1e6, 1e12),
    }
)


def read(threshold):
    return corpus(topics=3 if threshold < 60 else 4)


@pytest.fixture(scope="module")
def found():
    return allonym.swap.grid(read, SMALL, seed=1)


def test_there_is_one_setting_per_point_and_population(found):
    assert len(found) == 2 * 2 * 2 * 2
    assert [(s.threshold, s.family, s.clusters, s.population) for s in found[:3]] == [
        (50.0, "pkbd", 4, 1e6),
        (50.0, "pkbd", 4, 1e12),
        (50.0, "pkbd", 500, 1e6),
    ]
    assert {s.chunks for s in found} == {108, 144}


def test_a_setting_says_what_the_search_would_choose(found):
    for one in found:
        if not one.converged:
            continue
        how = SMALL.with_(
            {
                "mixture.family": one.family,
                "mixture.clusters": one.clusters,
                "mixture.min_weight": one.min_weight,
                "search.choose_at": one.population,
            }
        )
        plain = allonym.swap.search(read(one.threshold), how, seed=1)
        assert one.categories == plain.best().categories
        assert sum(s.share for s in one.shares) == pytest.approx(1)
        assert {s.categories for s in one.shares} == {r.categories for r in plain.frontier}
        assert [(c, r) for c, r, _, _ in one.releases] == [(r.categories, r.swaps) for r in plain.releases]
        assert [x for *_, x in one.releases] == [plain.risk(r).value for r in plain.releases]


def test_what_cannot_be_fitted_is_told_with_its_reason(found):
    failed = [s for s in found if s.clusters == 500]
    assert len(failed) == 8
    assert all(not s.converged and not s.categories and "500 components" in s.reason for s in failed)
    assert all(s.converged and not s.reason for s in found if s.clusters == 4)


def test_it_is_plain_and_goes_on_where_it_stopped(found, tmp_path):
    again = allonym.swap.grid(read, SMALL, seed=1, state=tmp_path)
    third = allonym.swap.grid(read, SMALL, seed=1, state=tmp_path)
    assert again == third == found
    json.dumps([s.to_dict() for s in found], allow_nan=False)
