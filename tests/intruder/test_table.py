import json
import math

import pytest

from allonym.errors import DataError
from allonym.intruder.protocol import Row, tabulate_rows


def texts(hits, n, subject="s", group="g", **more):
    return [Row(f"{subject}{i}", subject, group, (), i / n, i < hits, **more) for i in range(n)]


@pytest.mark.parametrize(
    ("hits", "n", "rate", "error"),
    [
        (2, 43, 4.65, 3.25),  # P3 Table 4
        (13, 40, 32.50, 7.50),
        (23, 59, 38.98, 6.40),  # P3 Table 7
        (27, 49, 55.10, 7.18),
        (8, 398, 2.01, 0.70),  # P3 Table 3
    ],
)
def test_rates_and_errors_of_the_paper(hits, n, rate, error):
    line = tabulate_rows("people", texts(hits, n)).subjects[0]
    assert round(100 * line.identified.value, 2) == rate
    assert round(100 * line.error, 2) == error


def test_groups_and_subjects_are_sorted_and_add_up():
    rows = [*texts(1, 4, "zoe", "famous"), *texts(0, 3, "abe", "famous"), *texts(2, 2, "moe", "fictitious")]
    found = tabulate_rows("people", rows)
    assert [(s.group, s.name, s.texts) for s in found.subjects] == [
        ("famous", "abe", 3), ("famous", "zoe", 4), ("fictitious", "moe", 2),
    ]  # fmt: skip
    assert [g.name for g in found.groups] == ["famous", "fictitious"]
    assert found.all.identified.value == pytest.approx(3 / 9)
    assert found.all.similarity.value == pytest.approx(sum(r.similarity for r in rows) / 9)


def test_the_wilson_interval():
    statsmodels = pytest.importorskip("statsmodels.stats.proportion")
    line = tabulate_rows("x", texts(3, 20)).all.identified
    assert (line.low, line.high) == pytest.approx(statsmodels.proportion_confint(3, 20, method="wilson"))


def test_ranks_only_where_they_are_known():
    rows = [Row(str(i), "s", guesses=("a", "b", "c"), rank=r) for i, r in enumerate((1, 3, 0, 2))]
    found = tabulate_rows("llm", rows, top=(1, 2, 3, 5))
    assert {k: e.value for k, e in found.ranks.items()} == {1: 0.25, 2: 0.5, 3: 0.75}
    assert tabulate_rows("people", [Row("1", "s")]).ranks == {}


def test_names_are_told_only_when_asked_for():
    found = tabulate_rows("llm", [Row("t1", "Zaphrandel", "g", ("Zaphrandel",), 1.0, True)])
    assert "Zaphrandel" not in json.dumps(found.to_dict()) and "Zaphrandel" not in repr(found)
    assert found.to_dict()["subjects"][0]["name"] == "subject 1"
    assert found.to_dict(texts=True)["rows"][0]["subject"] == "Zaphrandel"


def test_nothing_to_count():
    found = tabulate_rows("people", [])
    assert math.isnan(found.all.identified.value) and math.isnan(found.all.error)
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["all"]["identified"]["value"] is None
    one = tabulate_rows("people", [Row("1", "s", similarity=math.nan, identified=True)])
    assert one.all.identified.value == 1 and math.isnan(one.all.error)
    assert one.all.similarity.method.startswith("none:")


def test_a_text_has_one_row():
    with pytest.raises(DataError, match="one row for each text"):
        tabulate_rows("people", [Row("1", "Zaphrandel"), Row("1", "b")])
