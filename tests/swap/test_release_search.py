"""The search: candidates, numbers recomputed by hand, determinism, resume, choice, bad input."""

from __future__ import annotations

import importlib
import json
import math
import os
import re
import subprocess
import sys
from dataclasses import replace
from itertools import accumulate, pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.swap.corpora import CATEGORIES, corpus

import allonym
from allonym.errors import DataError, UnknownNameError, UsageError
from allonym.stats import Estimate
from allonym.swap.corpus import Slot
from allonym.swap.making import draw_release_sequence
from allonym.swap.settings import Settings
from allonym.swap.space import Point, _draw_weighted_chunks, list_prefix_lengths
from allonym.swap.writing import make_swapped_text

HERE = Path(__file__).resolve().parent
searching = importlib.import_module("allonym.swap.release_search")  # the module; the name is the function's
LSA = {"embed.name": "lsa", "mixture.restarts": 2}
PAPER = Settings.load("p1").with_({**LSA, "mixture.clusters": 6})
OURS = Settings.load().with_({**LSA, "mixture.clusters": 6, "search.draws": 2, "search.points": 8})


def numbers(found):
    return json.dumps([[r.categories, r.swaps, *shown(r)] for r in found.releases])


def shown(r):
    fields = ("changed", "share", "uniques", "utility", "distance", "distance_per_chunk", "cosine")
    maps = ("risk", "bounded", "remaining")
    return [getattr(r, f).to_dict() for f in fields] + [
        {str(n): e.to_dict() for n, e in getattr(r, m).items()} for m in maps
    ]


@pytest.fixture(scope="module")
def ours():
    return allonym.swap.search(corpus(), OURS, seed=1)


@pytest.fixture(scope="module")
def paper():
    return allonym.swap.search(corpus(), PAPER, seed=1)


# Candidates


def test_the_papers_space_is_all_pairs_at_every_number_of_swaps_that_can_be_reached(paper):
    asked = searching.list_category_sets(corpus(), PAPER)
    assert len(asked) == math.comb(4, 2)
    kinds = dict.fromkeys(r.categories for r in paper.releases)
    assert set(kinds) | set(paper.dropped) == set(asked)
    for kind in kinds:
        rows = [r for r in paper.releases if r.categories == kind]
        assert [r.swaps for r in rows] == list(range(1, len(rows) + 1))
        assert len(rows) <= 30
        assert [r.changed.value for r in rows] == [2 * r.swaps for r in rows]  # pairs, each chunk once


def test_the_default_adds_all_categories_together(ours):
    kinds = list(dict.fromkeys(r.categories for r in ours.releases))
    assert kinds[-1] == CATEGORIES
    assert len(kinds) == math.comb(4, 2) + 1
    assert all(len([r for r in ours.releases if r.categories == k]) <= 8 for k in kinds)
    assert all(r.changed.n == 2 for r in ours.releases)


def test_prefixes_are_nested(ours):
    for kind in dict.fromkeys(r.categories for r in ours.releases):
        rows = [r for r in ours.releases if r.categories == kind]
        for before, after in pairwise(rows):
            assert before.swaps <= after.swaps
            assert before.changed.value <= after.changed.value
            assert before.uniques.value <= after.uniques.value
            assert all(before.risk[n].value >= after.risk[n].value for n in after.risk)


@given(st.integers(0, 60), st.integers(1, 40), st.integers(0, 500))
@settings(max_examples=80, deadline=None)
def test_the_grid_of_prefixes(most, points, length):
    made = list_prefix_lengths(length, OURS.with_({"exchange.swaps": most, "search.points": points}))
    assert list(made) == sorted(made)
    assert all(1 <= r <= length for r in made)
    if most:
        assert len(set(made)) == len(made) <= min(points, most)
        assert most not in made or made[-1] == most
        if length >= most:
            assert made[-1] == most
            assert most > points or made == tuple(range(1, most + 1))
    elif length:
        assert len(made) == points
        assert made[-1] == length


# Numbers


def test_every_number_of_a_release_is_what_a_plain_count_gives(ours):
    release = next(r for r in ours.releases if r.categories == ("Organization", "Product") and r.changed.value > 9)
    space = ours.space
    cells = [tuple(c.keys(q) for q in CATEGORIES) for c in ours.corpus.chunks]  # R counts by all swapped ones
    uniques = {i for i, cell in enumerate(cells) if any(cell) and cells.count(cell) == 1}
    assert tuple(sorted(uniques)) == ours.candidates[release.categories].uniques
    seen = {"changed": [], "uniques": [], "distance": [], "cosine": [], "utility": []}
    for number in range(2):
        swaps, sequence = draw_release_sequence(ours, release, number)
        placed = sequence.map_slots_to_donors(swaps)
        chunks = sorted({slot.chunk for slot in placed})
        _, after = space.embed([make_swapped_text(ours.corpus, i, placed) for i in chunks], chunks)
        labels = space.labels[chunks]
        gain = space.mixture.component_log_density(after, labels) - space.before[chunks]
        seen["changed"].append(len(chunks))
        seen["uniques"].append(len(uniques & set(chunks)))
        seen["distance"].append(float(gain.sum()))
        seen["utility"].append(1 + float(gain.sum()) / space.total)
        cosines = [float(a @ b) for a, b in zip(after.astype(float), space.vectors[chunks].astype(float), strict=True)]
        seen["cosine"].append(sum(cosines) / len(cosines))
    for name, values in seen.items():
        assert getattr(release, name).value == pytest.approx(sum(values) / 2, rel=1e-6)
        spread = abs(values[0] - values[1]) / 2**0.5
        estimate = getattr(release, name)
        assert (estimate.high - estimate.low) / 2 == pytest.approx(spread, rel=1e-5, abs=1e-9)
    fit = next(t for t in ours.tables if t.categories == CATEGORIES)
    assert fit.singles == len(uniques)
    p = fit.p[1e12].value
    m = sum(seen["uniques"]) / 2
    assert release.risk[1e12].value == pytest.approx(1 - m / fit.singles * p, rel=1e-12)
    assert release.bounded[1e12].value == pytest.approx(1 - m / fit.singles * fit.bounded[1e12].value, rel=1e-12)
    assert release.remaining[1e12].value == pytest.approx((fit.singles - m) * p, rel=1e-12)


@pytest.mark.parametrize("beyond", [True, False])
def test_entities_only_change_places(ours, beyond):
    if not beyond:
        ours = allonym.swap.search(corpus(), OURS.with_({"exchange.beyond": False}), seed=1)
    release = ours.best()
    swaps, sequence = draw_release_sequence(ours, release, 0)
    placed = sequence.map_slots_to_donors(swaps)
    assert sorted(placed) == sorted(placed.values())
    for slot, donor in placed.items():
        a, b = ours.corpus.chunks[slot.chunk], ours.corpus.chunks[donor.chunk]
        assert ours.corpus.class_of(slot.chunk) != ours.corpus.class_of(donor.chunk)
        assert a.values[slot.value].category == b.values[donor.value].category
        assert beyond or ours.space.labels[slot.chunk] == ours.space.labels[donor.chunk]
        assert isinstance(slot, Slot)


# Determinism and resume


def test_the_same_seed_gives_the_same_numbers_and_another_does_not(ours):
    again = allonym.swap.search(corpus(), OURS, seed=1, workers=2)
    assert numbers(again) == numbers(ours)
    assert numbers(allonym.swap.search(corpus(), OURS, seed=2)) != numbers(ours)


@pytest.mark.slow
def test_two_hash_seeds_give_the_same_numbers(ours):
    code = (
        "import sys; import tests.swap.test_release_search as t, allonym;"
        "sys.stdout.write(t.numbers(allonym.swap.search(t.corpus(), t.OURS, seed=1)))"
    )
    for seed in ("1", "2"):
        env = {
            **os.environ,
            "PYTHONHASHSEED": seed,
            "PYTHONPATH": f"{HERE.parents[1] / 'src'}{os.pathsep}{HERE.parents[1]}",
        }
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, check=True)
        assert done.stdout == numbers(ours)


def test_an_interrupted_search_goes_on_and_gives_the_same_numbers(ours, tmp_path, monkeypatch):
    calls = []
    real = searching.draw_sequence

    def stopping(space, categories, seed, spread=None):
        calls.append(categories)
        if len(calls) == 6:
            raise KeyboardInterrupt
        return real(space, categories, seed, spread)

    monkeypatch.setattr(searching, "draw_sequence", stopping)
    with pytest.raises(KeyboardInterrupt):
        allonym.swap.search(corpus(), OURS, seed=1, state=tmp_path / "state")
    assert len(list((tmp_path / "state").glob("sequence-*.json"))) == 5
    again = allonym.swap.search(corpus(), OURS, seed=1, state=tmp_path / "state")
    assert len(calls) == 6 + 14 - 5
    assert numbers(again) == numbers(ours)
    third = allonym.swap.search(corpus(), OURS, seed=1, state=tmp_path / "state")
    assert len(calls) == 15
    assert numbers(third) == numbers(ours)


def test_a_state_of_another_corpus_or_seed_is_not_used(tmp_path):
    few = OURS.with_({"search.draws": 1, "search.points": 2})
    plain = numbers(allonym.swap.search(corpus(), few, seed=2))
    allonym.swap.search(corpus(seed=5), few, seed=2, state=tmp_path)
    allonym.swap.search(corpus(), few, seed=3, state=tmp_path)
    allonym.swap.search(corpus(), few.with_({"exchange.rounds": 1}), seed=2, state=tmp_path)
    assert numbers(allonym.swap.search(corpus(), few, seed=2, state=tmp_path)) == plain


def test_nothing_is_written_without_a_state(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    allonym.swap.search(corpus(), PAPER, seed=1)
    assert not list(tmp_path.iterdir())


# Choice


def test_without_a_constraint_the_most_is_moved_on_the_frontier(ours):
    chosen = ours.best()
    kept = [r for r in ours.frontier if r.utility.value >= 0.9]
    assert chosen.moves == max(r.moves for r in kept)
    assert chosen.categories == CATEGORIES
    assert "moves the most entities" in ours.explain(chosen) and "a utility of 0.9;" in ours.explain(chosen)
    least = round(max(r.cosine.value for r in kept) - 0.005, 3)
    alike = replace(ours, settings=OURS.with_({"search.min_cosine": least}))
    assert alike.best().moves == max(r.moves for r in kept if r.cosine.value >= least)
    assert f"a utility of 0.9 and a mean cosine of {least:g}" in alike.explain(alike.best())
    strict = replace(ours, settings=OURS.with_({"search.min_cosine": 0.999}))
    assert strict.best().cosine.value == max(r.cosine.value for r in kept)
    assert "none of the frontier keeps a utility of 0.9 and a mean cosine of 0.999" in strict.explain(strict.best())


@pytest.mark.parametrize(
    "choice",
    [{}, {"choose": "risk"}, {"min_cosine": 0.75}, {"min_cosine": 0.999}, {"min_utility": 1.0}, {"min_utility": 0.0}],
)
@pytest.mark.parametrize("uniques", ["all", "exchanged"])
def test_no_release_beats_the_default_choice(ours, uniques, choice):
    settings = OURS.with_({"search.uniques": uniques, **{f"search.{k}": v for k, v in choice.items()}})
    releases = allonym.swap.search(corpus(), settings, seed=1) if uniques == "exchanged" else ours
    releases = replace(releases, settings=settings)
    points = releases.points()
    utility, risk = points[releases.best().index]
    assert not [p for p in points if p[0] >= utility and p[1] <= risk and p != (utility, risk)]


def test_the_papers_choice_is_the_lowest_risk(paper):
    assert paper.risk(paper.best()).value == min(paper.risk(r).value for r in paper.releases)
    assert "lowest risk of those on the frontier" in paper.explain(paper.best())


def test_constraints(ours):
    cap = sorted(ours.risk(r).value for r in ours.releases)[len(ours.releases) // 2]
    capped = ours.best(risk_cap=cap)
    within = [r for r in ours.releases if ours.risk(r).value <= cap]
    assert min(capped.utility.value, 1) == max(min(r.utility.value, 1) for r in within)
    floor = float(np.median([min(r.utility.value, 1) for r in ours.releases]))
    kept = ours.best(utility_floor=floor)
    assert ours.risk(kept).value == min(ours.risk(r).value for r in ours.releases if r.utility.value >= floor)
    assert ours.best(slope=0.0) == min(ours.frontier, key=lambda r: ours.risk(r).value)
    assert f"at least {floor:g}" in ours.why(kept, utility_floor=floor)
    with pytest.raises(DataError, match="no release"):
        ours.best(risk_cap=0.0)
    with pytest.raises(UsageError, match="offset requires a slope"):
        ours.best(offset=1.0)


def test_the_frontier_holds_what_nothing_beats(ours):
    for size in (1e6, 1e12, 1e18):
        front = ours.frontier_at(size)
        for one in ours.releases:
            beaten = any(
                min(o.utility.value, 1) >= min(one.utility.value, 1)
                and ours.risk(o, size).value <= ours.risk(one, size).value
                and (min(o.utility.value, 1), ours.risk(o, size).value)
                != (min(one.utility.value, 1), ours.risk(one, size).value)
                for o in ours.releases
            )
            assert (one in front) == (not beaten)
    assert ours.frontier == ours.frontier_at(1e12)
    with pytest.raises(UsageError, match="population 10 is none"):
        ours.frontier_at(10)


def test_every_release_can_be_explained_without_a_word_of_the_corpus(ours):
    words = {v.key for c in ours.corpus.chunks for v in c.values}
    for release in ours.releases:
        said = ours.explain(release)
        assert ("It is on the frontier" in said) == (release in ours.frontier)
        assert not [w for w in words if w in said.lower()]
    assert not [w for w in words if w in repr(ours).lower() + repr(ours.best()).lower()]
    with pytest.raises(UnknownNameError):
        ours.explain(10_000)


def test_neighbours_on_the_frontier_are_better_in_one_of_both(ours):
    for release in ours.releases:
        utility, risk = ours.points()[release.index]
        for word, at, sign in (("More useful is", 0, 1), ("Less risky is", 1, -1)):
            for said in re.findall(rf"{word} [^.]*?, with risk (\d\.\d+) and utility (\d\.\d+)", ours.explain(release)):
                named = (float(said[1]), float(said[0]))
                assert sign * (named[at] - (utility, risk)[at]) >= -1e-4
    tied = replace(ours, releases=tuple(replace(r, utility=Estimate.exact(1.2)) for r in ours.releases))
    assert not [r for r in tied.releases if "More useful" in tied.explain(r)]


def test_the_spread_of_draws_is_not_the_models_interval(ours, paper):
    floor = min(r.utility.value for r in ours.releases)
    for release in ours.releases:
        drawn = [
            1 - m / len(ours.candidates[release.categories].uniques)
            for m in (release.uniques.low, release.uniques.high)
        ]
        p = ours.candidates[release.categories].risks[1e12].bounded.value
        assert ours._get_risk_sd(release) == pytest.approx((drawn[0] - drawn[1]) / 2 * p, abs=1e-12)
    assert "standard deviation of the draws" in ours.why(ours.best(utility_floor=floor), utility_floor=floor)
    alone = paper.best(utility_floor=0.0)
    assert "standard deviation" not in paper.why(alone, utility_floor=0.0)  # one draw has no spread


# Options of the search


def test_covariates_are_taken_out_of_the_vectors_or_restrict_donors():
    made = allonym.swap.search(corpus(), OURS.with_({"embed.covariates": ("sector",)}), seed=1)
    plain = allonym.swap.search(corpus(), OURS, seed=1)
    sector = np.array([c.document % 2 for c in corpus().chunks])

    def gap(found):
        x = found.space.vectors
        return float(np.linalg.norm(x[sector == 0].mean(axis=0) - x[sector == 1].mean(axis=0)))

    assert gap(made) < gap(plain) / 2
    changes = {"embed.covariates": ("sector",), "embed.use": "donors"}
    apart = allonym.swap.search(corpus(), OURS.with_(changes), seed=1)
    swaps, sequence = draw_release_sequence(apart, apart.releases[-1], 0)
    placed = sequence.map_slots_to_donors(swaps)
    assert placed
    assert all(sector[a.chunk] == sector[b.chunk] for a, b in placed.items())


def test_the_number_of_components_is_chosen_by_the_criterion():
    made = allonym.swap.search(corpus(), OURS.with_({"mixture.clusters": 0, "mixture.family": "auto"}), seed=1)
    assert {f.family for f in made.fits} == {"pkbd", "spcauchy"}
    sound = [f for f in made.fits if not f.degenerate]
    assert made.chosen_fit.bic == min(f.bic for f in sound)
    assert len(made.clusters) == made.chosen_fit.left


def test_clusters_of_low_concentration_take_no_part():
    cosines = allonym.swap.search(corpus(), OURS, seed=1).chosen_fit.mixture.cosines_
    least = float(np.median(cosines))
    made = allonym.swap.search(corpus(), OURS.with_({"exchange.min_concentration": least}), seed=1)
    weak = {k for k, c in enumerate(made.chosen_fit.mixture.cosines_) if c < least}
    swaps, sequence = draw_release_sequence(made, made.releases[-1], 0)
    assert weak
    assert not weak & {int(made.space.labels[slot.chunk]) for slot in sequence.map_slots_to_donors(swaps)}


def test_stages_are_told():
    told = []
    allonym.swap.search(corpus(), PAPER, progress=lambda *said: told.append(said))
    assert list(dict.fromkeys(stage for stage, _, _ in told)) == ["embed", "mixture", "tables", "sequences"]
    assert all(0 <= done <= total for _, done, total in told)
    assert told[-1] == ("sequences", 6, 6)


# Bad input


def test_one_document_only():
    with pytest.raises(DataError, match="two documents at least, got 1"):
        allonym.swap.search(corpus(documents=1), OURS)


def test_no_chunks():
    with pytest.raises(DataError, match="no chunks"):
        allonym.swap.search(replace(corpus(), chunks=()), OURS)


def test_nothing_is_swapped():
    with pytest.raises(UsageError, match="no category has the state swap"):
        allonym.swap.search(replace(corpus(), categories=dict.fromkeys(CATEGORIES, "free")), OURS)


def test_a_category_without_entities_is_no_candidate():
    states = {**dict.fromkeys(CATEGORIES, "swap"), "Term": "swap"}
    made = allonym.swap.search(replace(corpus(), categories=states), OURS, seed=1)
    assert not any("Term" in r.categories for r in made.releases)
    assert made.dropped["Person", "Term"] == "no chunk has an entity of Term"
    told = [w for w in made.warnings if "since no chunk has an entity of Term" in w]
    assert len(told) == 1
    assert told[0].startswith("Organization + Term, Person + Term,")


def test_no_entity_at_all():
    bare = replace(corpus(), chunks=tuple(replace(c, values=()) for c in corpus().chunks))
    with pytest.raises(DataError, match="nothing can be exchanged in this corpus: Organization"):
        allonym.swap.search(bare, OURS)


def test_chunks_that_are_all_the_same():
    one = corpus().chunks[0]
    size = one.end - one.start
    text = one.text * 3
    documents = tuple(replace(d, text=text) for d in corpus().documents)
    values = one.values
    chunks = tuple(
        replace(
            one,
            document=d,
            start=k * size,
            end=(k + 1) * size,
            values=tuple(
                replace(v, spans=tuple(replace(s, start=s.start + k * size, end=s.end + k * size) for s in v.spans))
                for v in values
            ),
        )
        for d in range(len(documents))
        for k in range(3)
    )
    same = replace(corpus(), documents=documents, chunks=chunks)
    with pytest.raises(DataError, match="no two chunks are a valid pair"):
        allonym.swap.search(same, OURS.with_({"mixture.clusters": 2}))


def test_more_components_than_chunks():
    with pytest.raises(UsageError, match="1000 components need as many chunks at least; there are 144"):
        allonym.swap.search(corpus(), OURS.with_({"mixture.clusters": 1000}))


def test_a_population_smaller_than_the_sample():
    with pytest.raises(UsageError, match="a population of 100 is smaller than the corpus, 144 chunks"):
        allonym.swap.search(corpus(), OURS.with_({"search.population": (100.0,)}))


def test_a_choice_at_a_population_that_is_none():
    with pytest.raises(UsageError, match=r"choose_at must be one of search.population \(1e\+06\), got 1e\+09"):
        allonym.swap.search(corpus(), OURS.with_({"search.population": (1e6,), "search.choose_at": 1e9}))
    with pytest.raises(UsageError, match="at least is required, got none"):
        allonym.swap.search(corpus(), OURS.with_({"search.population": ()}))


def test_mixtures_in_batches_and_from_one_kind_of_start():
    found = allonym.swap.search(corpus(), OURS.with_({"mixture.batch_size": 50, "mixture.start": "soft"}), seed=1)
    mixture = found.chosen_fit.mixture
    assert (mixture.batch_size, mixture.start) == (50, "soft")
    whole = allonym.swap.search(corpus(), OURS.with_({"mixture.start": "soft"}), seed=1)
    assert found.chosen_fit.log_likelihood != whole.chosen_fit.log_likelihood
    assert found.chosen_fit.log_likelihood > 0.9 * whole.chosen_fit.log_likelihood


def test_one_class_only():
    with pytest.raises(DataError, match="no two chunks are a valid pair"):
        allonym.swap.search(replace(corpus(), classes=("Firm",) * 6), OURS)


def test_a_sample_of_changed_chunks_estimates_what_all_give(ours):
    some = allonym.swap.search(corpus(), OURS.with_({"search.sample": 48}), seed=1)
    assert any("estimated from 48" in w for w in some.warnings)
    assert not any("estimated" in w for w in ours.warnings)
    for a, b in zip(ours.releases, some.releases, strict=True):
        assert (a.categories, a.swaps, a.changed, a.uniques, a.risk) == (
            b.categories,
            b.swaps,
            b.changed,
            b.uniques,
            b.risk,
        )
        assert b.cosine.value == pytest.approx(a.cosine.value, abs=0.1)
    assert numbers(some) != numbers(ours)
    assert numbers(allonym.swap.search(corpus(), OURS.with_({"search.sample": 144}), seed=1)) == numbers(ours)


@given(st.lists(st.integers(0, 30), min_size=1, max_size=12), st.integers(1, 40), st.integers(0, 9))
@settings(max_examples=60, deadline=None)
def test_drawn_chunks_stand_for_all_of_their_stratum(sizes, sample, seed):
    edges = [0, *accumulate(sizes)]
    added = [list(range(a, b)) for a, b in pairwise(edges)]
    weights = _draw_weighted_chunks(added, sample, seed)
    assert len(weights) <= max(sample, sum(map(bool, added)))
    for fresh in added:
        assert sum(weights.get(c, 0) for c in fresh) == pytest.approx(len(fresh))
    assert weights == _draw_weighted_chunks(added, sample, seed)


def test_releases_are_compared_on_one_scale():
    from allonym.swap.risk import compute_utility

    def point(before, after):
        u = compute_utility(before, after, 10.0, n=4, d=8)
        return Point(1, 1, u.changed, 0, u.value, u.distance, 1.0, u.misleading, u.flags)

    light, heavy = point([5.0], [0.0]), point([5.0] * 4, [1.0] * 4)
    assert not light.misleading and heavy.misleading
    assert light.utility < heavy.utility  # the ratio beside its stand-in: the heavier one would look better
    draws = {("A",): [(light,)], ("B",): [(heavy,)]}
    together = searching.unify_utility_scale(draws, 4, 8)
    assert together["A",][0][0].utility == math.exp(-5 / 32) > together["B",][0][0].utility == math.exp(-16 / 32)
    assert together["A",][0][0].flags
    assert searching.unify_utility_scale({("A",): [(light,)]}, 4, 8) == {("A",): [(light,)]}
