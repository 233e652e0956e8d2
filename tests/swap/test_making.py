"""A release made: texts, plans, outcomes, and the numbers of the whole with its fall-backs."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path

import numpy as np
import pytest
from tests.llm import server as at
from tests.llm.fixtures import server  # noqa: F401
from tests.swap.corpora import corpus
from tests.swap.elsewhere import Elsewhere

import allonym
from allonym.errors import UnknownNameError
from allonym.plan import apply
from allonym.swap.making import derive_fallback_key, estimate_changed_word_share
from allonym.swap.risk import STAND_IN
from allonym.swap.settings import Settings

ROOT = Path(__file__).resolve().parents[2]
OURS = Settings.load().with_(
    {
        "embed.name": "lsa",
        "mixture.clusters": 6,
        "mixture.restarts": 1,
        "search.draws": 1,
        "search.points": 4,
        "check.runs": 2,
        "fallback.Organization": "tag",
        "fallback.Person": "tag",
        "fallback.Location": "suppress",
    }
)


@pytest.fixture(scope="module")
def found():
    return allonym.swap.search(corpus(), OURS, seed=1)


@pytest.fixture(scope="module")
def made(found):
    return found.make(found.best())


def told(found, spread=None):
    """Everything but seconds, as one text."""
    one = found.make(found.best(), spread=spread)
    checks = found.check(made=one, spread=spread)
    values = found.to_dict(one, attacks=checks.attacks, guessed=checks.guessed())
    del values["timings"]
    return json.dumps(values, allow_nan=False) + "".join(one.texts) + "".join(p.to_json() for p in one.plans)


def test_plans_make_the_texts(found, made):
    for document, plan, text in zip(found.corpus.documents, made.plans, made.texts, strict=True):
        assert apply(document, plan) == text
        assert text != document.text


def test_outcomes_are_the_chunks_that_are_not_what_they_were(found, made):
    changed = [i for i, c in enumerate(made.written.chunk_texts) if c.text != found.corpus.chunks[i].text]
    assert [o.chunk for o in made.outcomes] == changed
    for one in made.outcomes:
        assert one.before == found.corpus.chunks[one.chunk].text
        assert one.after in made.texts[one.document]
        assert one.cluster == found.space.labels[one.chunk]
        for start, end, category, kind in one.marks:
            assert one.after[start:end].strip()
            assert category in found.corpus.categories
            assert kind in ("swap", "tag", "suppress", "pseudonym", "generalise")
        for partner in one.partners:
            assert found.corpus.class_of(partner) != found.corpus.class_of(one.chunk)


def test_the_numbers_are_those_of_the_released_chunks(found, made):
    chunks = [o.chunk for o in made.outcomes]
    raw, after = found.space.embed([o.after for o in made.outcomes], chunks)
    gain = found.space.mixture.component_log_density(after, found.space.labels[chunks]) - found.space.before[chunks]
    numbers = made.numbers
    assert numbers["distance"] == pytest.approx(float(gain.sum()), rel=1e-6, abs=1e-6)
    assert numbers["utility"] == pytest.approx(1 + float(gain.sum()) / found.space.total, rel=1e-9)
    cosines = (raw.astype(float) * found.space.raw[chunks].astype(float)).sum(axis=1)
    assert numbers["cosine"] == pytest.approx(float(cosines.mean()), abs=1e-6)
    assert [o.cosine for o in made.outcomes] == pytest.approx(cosines.tolist(), abs=1e-6)
    assert [o.distance for o in made.outcomes] == pytest.approx(gain.tolist(), rel=1e-6, abs=1e-5)
    assert made.vectors[chunks].tolist() == raw.tolist()
    rest = np.setdiff1d(np.arange(len(found.corpus.chunks)), chunks)
    assert made.vectors[rest].tolist() == found.space.raw[rest].tolist()
    assert numbers["changed"] == len(chunks)
    m = len(
        set(found.candidates[made.release.categories].uniques) & set(chunks)
    )  # of all categories: every change counts
    assert numbers["uniques"] == m
    table = next(t for t in found.tables if t.categories == made.release.categories)
    assert numbers["risk"][1e12].value == pytest.approx(1 - m / table.singles * table.bounded[1e12].value)


def test_what_was_made_is_on_the_scale_of_the_releases(found, made):
    flagged = replace(found.releases[0], flags=(f"misleads: {STAND_IN}",))
    one = replace(found, releases=(flagged, *found.releases[1:])).make(made.release)
    n, d = found.space.vectors.shape
    assert one.numbers["utility"] == pytest.approx(np.exp(one.numbers["distance"] / (n * d)))
    assert any(STAND_IN in flag for flag in one.numbers["flags"])
    assert not any(STAND_IN in flag for flag in made.numbers["flags"])


def test_every_entity_moves_or_falls_back(found, made):
    entities, moved, fallen = (made.numbers[name] for name in ("entities", "moved", "fallen"))
    assert sum(entities.values()) == sum(moved.values()) + sum(fallen.values())
    assert "keep" not in fallen
    assert sum(moved.values()) == len(made.placed)


def test_what_falls_back_counts_in_the_risk(found):
    early = next(r for r in found.releases if len(r.categories) == 2 and r.changed.value < 60)
    one = found.make(early)
    kept = replace(found, settings=OURS.with_(dict.fromkeys((f"fallback.{c}" for c in corpus().categories), "keep")))
    bare = kept.make(early)
    assert one.placed == bare.placed
    assert bare.numbers["changed"] == bare.numbers["exchanged"] == early.changed.value
    assert bare.numbers["utility"] == pytest.approx(early.utility.value)
    assert one.numbers["changed"] > bare.numbers["changed"]
    assert one.numbers["uniques"] > bare.numbers["uniques"]
    assert one.numbers["risk"][1e6].value < bare.numbers["risk"][1e6].value
    assert one.numbers["words"].value > bare.numbers["words"].value


def test_a_fall_back_of_another_category_takes_no_unique_away(found):
    early = next(r for r in found.releases if r.categories == ("Location", "Product"))
    only = dict.fromkeys((f"fallback.{c}" for c in corpus().categories), "keep")
    one = replace(found, settings=OURS.with_(only | {"fallback.Person": "tag"})).make(early)
    bare = replace(found, settings=OURS.with_(only)).make(early)
    assert one.numbers["changed"] > bare.numbers["changed"]
    alone = set(found.candidates[early.categories].uniques)
    assert len(alone & {o.chunk for o in one.outcomes}) > len(alone & {o.chunk for o in bare.outcomes})
    assert one.numbers["uniques"] == bare.numbers["uniques"]
    assert one.numbers["risk"] == bare.numbers["risk"]


def test_changed_words_are_a_share_of_all():
    one = corpus()
    texts = {0: one.chunks[0].text, 1: "", 2: one.chunks[2].text.replace("opened", "closed")}
    words = [len(re.findall(r"\w+|[^\w\s]", c.text)) for c in one.chunks]
    share = estimate_changed_word_share(one, texts)
    assert share.value == pytest.approx((words[1] + ("opened" in one.chunks[2].text)) / sum(words))
    assert estimate_changed_word_share(one, {}).value == 0


def test_another_draw_is_another_release_of_the_same_size(found, made):
    other = found.make(made.release, draw=1)
    assert other.placed != made.placed
    assert abs(len(other.placed) - len(made.placed)) < len(made.placed) / 4
    assert other.draw == 1


def test_intruders_judge_several_draws(found, made):
    checks = found.check(made=made)
    assert [a.intruder for a in checks.attacks] == ["entities", "words"]
    for attack in checks.attacks:
        assert attack.before.n == attack.after.n == 2
        assert sum(attack.table) >= len(made.outcomes) + 1
    assert set(checks.guessed()) == {o.chunk for o in made.outcomes}
    known = checks.attacks[0]
    assert known.after.value < known.before.value
    fewer = replace(found, settings=OURS.with_({"check.runs": 1, "check.intruders": ("words",)}))
    assert [a.before.n for a in fewer.check(made=made).attacks] == [1]


def test_who_draws_does_not_count(found):
    assert told(found, Elsewhere()) == told(found)


def test_keys_of_fall_backs_follow_from_the_corpus_and_the_seed():
    keys = {derive_fallback_key(corpus(), 1), derive_fallback_key(corpus(), 2), derive_fallback_key(corpus(seed=9), 1)}
    assert len(keys) == 3
    assert all(len(k) == 32 for k in keys)
    assert derive_fallback_key(corpus(), 1) in keys


def test_pseudonyms_without_a_key_are_the_same_every_time(found):
    named = replace(found, settings=OURS.with_({"fallback.Person": "pseudonym"}))
    first, second = named.make(named.releases[0]), named.make(named.releases[0])
    assert first.numbers["fallen"]["pseudonym"] > 0
    assert first.texts == second.texts
    other = named.make(named.releases[0], key="a key of sixteen bytes and more")
    assert other.texts != first.texts


@pytest.mark.slow
def test_two_hash_seeds_give_the_same_bytes(found):
    code = (
        "import sys; import tests.swap.test_making as t, allonym;"
        "sys.stdout.write(t.blake2b(t.told(allonym.swap.search(t.corpus(), t.OURS, seed=1)).encode()).hexdigest())"
    )
    want = blake2b(told(found).encode()).hexdigest()
    for seed in ("1", "2"):
        env = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, check=True)
        assert done.stdout == want


def test_nothing_of_the_corpus_shows(found, made):
    names = {f for c in found.corpus.chunks for v in c.values for f in v.forms}
    shown = repr(made) + repr(made.outcomes[0]) + repr(found) + repr(made.written) + repr(found.check(made=made))
    assert not [n for n in names if n in shown]
    values = found.to_dict(made, attacks=found.check(made=made).attacks, texts=False)
    text = json.dumps(values)
    assert not [n for n in names if n in text]


def test_a_language_model_is_asked_as_the_settings_say(found, server, tmp_path):  # noqa: F811
    pytest.importorskip("httpx")
    named = {d.meta["company"]: f"T{i}CK" for i, d in enumerate(found.corpus.documents)}
    documents = tuple(replace(d, meta={**d.meta, "ticker": [named[d.meta["company"]]]}) for d in found.corpus.documents)
    server.then = at.answer(json.dumps({"first": "T1CK", "second": ""}))
    told = {"intruders": ("llm",), "llm_runs": 1, "llm_kind": "board minute", "llm_reply": "ticker symbol"}
    changes = {f"check.{k}": v for k, v in (told | {"llm_aliases": ("ticker",), "llm_listed": True}).items()}
    ours = replace(found, corpus=replace(found.corpus, documents=documents), settings=OURS.with_(changes))
    options = {"llm": {"settings": {"url": server.url, "model": "m", "cache": str(tmp_path / "answers")}}}
    release = found.releases[0]
    checks = ours.check(release, options=options)
    outcomes = ours.make(release).outcomes
    assert sum(checks.attacks[0].table) == len(outcomes)  # one of the two draws
    own = sum(o.document == 1 for o in outcomes)  # who bears the ticker that is always guessed
    assert checks.attacks[0].before.value == pytest.approx(own / len(outcomes)) and own
    system = server.bodies[0]["messages"][0]["content"]
    assert "company of the following board minute" in system and "the ticker symbol of" in system
    assert all(c in system for c in found.corpus.classes)
    asked = len(server.seen)
    assert ours.check(release, options=options).attacks == checks.attacks
    assert len(server.seen) == asked  # the answers were kept
    with pytest.raises(UnknownNameError, match=r"check\.llm_aliases"):
        replace(ours, settings=ours.settings.with_({"check.llm_aliases": ("symbol",)})).check(release, options=options)
