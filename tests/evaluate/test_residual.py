"""A corpus' residual risk: a corpus summed up by hand, P2's criterion, and whether scores are normal."""

from __future__ import annotations

import json
import math
import subprocess
import sys

import numpy as np
import pytest
import scipy.stats

from allonym.errors import DataError, UnknownNameError, UsageError
from allonym.evaluate import Marked, residual_risk, second_reading
from allonym.evaluate.marking import read_marks
from allonym.evaluate.residual import NO_VALUE, Scoring, measure_normality

# Scores by hand: support 0, 3, 5, 2 (mean 2.5); sales 0, 9 (mean 4.5); one conversation without a context: 1.
TEXTS = [
    ("s1", "support", "All fine here."),
    ("s2", "support", "I am (Ines)[MISSED_PERSON_NAME_PARTIAL]. (Ines)[MISSED_PERSON_NAME_PARTIAL] speaking."),
    ("s3", "support", "I am (Ines Torvald)[MISSED_PERSON_NAME] from (Novaplan)[MISSED_ORGANIZATION_NAME]."),
    ("s4", "support", "In (Leeds)(MISSED_LOCATION), I said."),
    ("a1", "sales", "Nothing at all."),
    ("a2", "sales", "(Bo Lindqvist)([MISSED_PERSON_NAME]), call (555 0188)[MISSED_PHONE]."),
    ("n1", None, "I am (41)[MISSED_AGE]."),
]


def corpus() -> list[Marked]:
    return [read_marks(t, id, {} if c is None else {"context": c}) for id, c, t in TEXTS]


def test_a_corpus_checked_by_hand() -> None:
    found = residual_risk(corpus(), by="context")
    assert [s.score for s, _ in found.conversations] == [0, 3, 5, 2, 0, 9, 1]
    rows = {row.name: row for row in (*found.groups, found.total)}
    assert list(rows) == [NO_VALUE, "sales", "support", "Total"]
    support, sales, total = rows["support"], rows["sales"], rows["Total"]
    assert (support.count, sales.count, total.count) == (4, 2, 7)
    assert support.mean.value == 2.5
    assert support.sd.value == pytest.approx(math.sqrt(13 / 3))  # deviations 2.5, 0.5, 2.5, 0.5
    assert support.p95.value == pytest.approx(4.7)  # between 3 and 5, 0.85 of the way
    assert support.max.value == 5
    assert support.bound.value == pytest.approx(2.5 + math.sqrt(13 / 3))
    assert (support.passes, sales.passes) == (True, False)
    assert sales.sd.value == pytest.approx(math.sqrt(40.5))
    assert total.mean.value == pytest.approx(20 / 7)
    assert total.above.value == pytest.approx(1 / 7)
    assert total.direct.value == pytest.approx(2 / 7)
    assert found.histogram == ((0, 2), (1, 1), (2, 1), (3, 1), (4, 0), (5, 1), (6, 0), (7, 0), (8, 0), (9, 1))
    assert [(s.id, g) for s, g in found.queue] == [("a2", "sales")]
    kinds = {t.tag: (t.items, t.mentions, t.conversations, t.risk) for t in found.types}
    assert kinds["PERSON_NAME"] == (2, 2, 2, 10)
    assert kinds["PERSON_NAME_PARTIAL"] == (1, 2, 1, 3)
    assert kinds["ORGANIZATION_NAME"] == (1, 1, 1, 0)
    assert [t.tag for t in found.types][:2] == ["PERSON_NAME", "PHONE"]


def test_one_conversation_has_no_spread_and_no_verdict() -> None:
    total = residual_risk(corpus()[1:2]).total
    assert math.isnan(total.sd.value) and math.isnan(total.bound.value)
    assert total.sd.method == "none: two conversations at least are required"
    assert total.passes is None
    assert total.normality.off is None
    assert total.mean.value == 3


def test_intervals_are_those_of_others() -> None:
    scores = [s.score for s, _ in residual_risk(corpus()).conversations] * 6
    total = residual_risk([c for _ in range(6) for c in corpus()]).total
    low, high = scipy.stats.t.interval(0.95, 41, np.mean(scores), scipy.stats.sem(scores))
    assert (total.mean.low, total.mean.high) == pytest.approx((low, high))
    wilson = scipy.stats.binomtest(6, 42).proportion_ci(method="wilson")
    assert (total.above.low, total.above.high) == pytest.approx((wilson.low, wilson.high))
    assert total.sd.value == pytest.approx(np.std(scores, ddof=1))
    assert total.sd.low < total.sd.value < total.sd.high


def test_scores_are_tested_for_being_normal() -> None:
    rng = np.random.default_rng(3)
    bell = rng.normal(2, 1, 400)
    found = measure_normality(bell.tolist(), 5)
    assert found.test == "Shapiro-Wilk"
    assert found.p.value == pytest.approx(scipy.stats.shapiro(bell).pvalue)
    assert found.off is False
    assert found.implied.value == pytest.approx(scipy.stats.norm.sf(5, bell.mean(), bell.std(ddof=1)))
    counts = rng.poisson(0.3, 6000) * 5
    many = measure_normality(counts.tolist(), 5)
    assert many.test == "D'Agostino-Pearson"
    assert many.p.value == pytest.approx(scipy.stats.normaltest(counts).pvalue)
    assert many.off is True
    assert measure_normality(bell[:20].tolist()).off is not None
    assert "20 values at least" in measure_normality([*counts[:18].tolist(), 500.0]).p.method
    for same in ([], [1.0, 2.0], [4.0] * 29, bell[:19].tolist()):
        assert measure_normality(same).off is None
        assert math.isnan(measure_normality(same).implied.value)


def test_16_percent_where_mean_and_sd_meet_the_limit() -> None:
    bell = scipy.stats.norm.ppf((np.arange(2000) + 0.5) / 2000)
    bell = (bell - bell.mean()) / bell.std(ddof=1) * 2 + 3  # mean + SD is 5
    assert measure_normality(bell.tolist(), 5).implied.value == pytest.approx(0.1587, abs=1e-4)  # P2, footnote 10


def test_the_other_reading_of_emails_is_told_where_it_matters() -> None:
    assert residual_risk(corpus()).other is None
    mail = [*corpus(), read_marks("at (jo two one)[MISSED_EMAIL_PARTIAL] [EMAIL_1]", "m1")]
    text, table = (residual_risk(mail, scoring=Scoring(r)) for r in ("text", "table"))
    assert text.other is not None and table.other is not None
    assert (text.other[0], table.other[0]) == ("table", "text")
    assert text.other[1].value == table.total.bound.value
    assert table.other[1] == text.total.bound


def test_the_limit_moves_queue_share_and_verdict() -> None:
    found = residual_risk(corpus(), limit=2)
    assert [s.id for s, _ in found.queue] == ["a2", "s3", "s2"]
    assert found.total.above.value == pytest.approx(3 / 7)
    assert found.total.passes is False


def test_wrong_calls() -> None:
    with pytest.raises(DataError, match="got 0"):
        residual_risk([])
    with pytest.raises(UnknownNameError, match="context"):
        residual_risk(corpus(), by="contxt")
    with pytest.raises(UsageError, match="limit"):
        residual_risk(corpus(), limit=float("nan"))


def test_plain_values_are_json_without_any_text() -> None:
    told = json.dumps(residual_risk(corpus(), by="context").to_dict(), allow_nan=False)
    assert not [word for word in ("Ines", "Torvald", "Leeds", "Lindqvist", "0188", "Novaplan") if word in told]


@pytest.mark.slow
def test_another_hash_seed_changes_nothing() -> None:
    code = (
        "import json; from tests.evaluate.test_residual import corpus; from allonym.evaluate import *;"
        "texts = ['Please ask Zora Blindt of Quarnex in Leeds about it.'] * 2;"
        "read = second_reading(None, texts).to_dict();"
        "print(json.dumps([residual_risk(corpus(), by='context').to_dict(), read], default=str))"
    )
    runs = {
        subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, env=environment(seed)).stdout
        for seed in ("1", "2")
    }
    assert len(runs) == 1


def environment(seed: str) -> dict[str, str]:
    import os
    from pathlib import Path

    root = Path(__file__).parents[2]
    return {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": f"{root / 'src'}{os.pathsep}{root}"}


def test_progress_is_told() -> None:
    seen: list[tuple[int, int]] = []
    residual_risk(corpus(), advance=lambda done, of: seen.append((done, of)))
    assert seen == [(i, 7) for i in range(1, 8)]
    assert second_reading(None, ["x"]).proposals == 0
