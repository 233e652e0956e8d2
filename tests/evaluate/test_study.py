"""A whole evaluation: what runs, what is skipped and why, going on after an interruption, versions side by side."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pytest
from tests.evaluate.small import PEOPLE, records, write

from allonym.errors import DataError, UnknownNameError, UsageError
from allonym.evaluate import Pairs, compare, evaluate, read_pairs
from allonym.evaluate import study as table
from allonym.evaluate.study import HEADLINES, MEASURES, NEEDS, get_nested_value, list_headlines, match_gold_records

QUICK = ("linkage", "document_risk", "syntheticity")


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    """The small corpus with tags for names."""
    return read_pairs(write(tmp_path_factory.mktemp("study") / "all.jsonl"), anonymised_field="safe")


def counting(monkeypatch):
    """Which measures are taken from now on."""
    taken = []

    def told(name, measure):
        def run(inputs, texts, advance):
            taken.append(name)
            return measure.run(inputs, texts, advance)

        return replace(measure, run=run)

    changed = {name: told(name, measure) for name, measure in MEASURES.items()}
    monkeypatch.setattr("allonym.evaluate.study.MEASURES", changed)
    return taken


def test_what_the_inputs_allow(pairs):
    found = evaluate(pairs, measures=("detection", "linkage", "syntheticity"))
    assert list(found.measures) == ["syntheticity"]
    assert found.skipped == {
        "detection": "needs spans that people marked in the originals (--gold)",
        "linkage": "needs whom each text is about (--subject)",
    }
    told = found.to_dict()
    assert [row["measure"] for row in told["skipped"]] == ["detection", "linkage"]
    json.dumps(told, allow_nan=False)


@pytest.mark.parametrize(("measure", "module"), [("residual", "rereading"), ("syntheticity", "synthetic_text")])
def test_a_missing_package_of_all_measures_ends_the_run(pairs, monkeypatch, measure, module):
    class Missing:
        def find_spec(self, name, path=None, target=None):
            if name == f"allonym.evaluate.{module}":
                raise ModuleNotFoundError("No module named 'wordfreq'", name="wordfreq")

    monkeypatch.setattr(sys, "meta_path", [Missing(), *sys.meta_path])
    monkeypatch.delitem(sys.modules, f"allonym.evaluate.{module}", raising=False)
    monkeypatch.delitem(vars(import_module("allonym.evaluate")), module, raising=False)
    with pytest.raises(ModuleNotFoundError, match="wordfreq"):
        evaluate(pairs, measures=(measure,))


def test_linkage_and_its_headline(pairs):
    found = evaluate(pairs, subjects="subject", groups=["all"] * len(pairs), measures=QUICK)
    assert set(found.measures) == set(QUICK)
    lines = {row["key"]: row for row in found.headlines}
    assert lines["linkage"]["value"] == found.measures["linkage"]["all"]["after"]
    assert lines["linkage"]["before"]["value"] == 1
    assert lines["linkage"]["side"] == "risk"


def test_nothing_of_a_text_is_told_or_kept(pairs, tmp_path):
    found = evaluate(pairs, subjects="subject", measures=QUICK, state=tmp_path / "state")
    kept = "".join(path.read_text(encoding="utf-8") for path in (tmp_path / "state").iterdir())
    for said in (json.dumps(found.to_dict()), kept, repr(found), repr(pairs)):
        for name in PEOPLE:
            assert name not in said
        for word in ("cellist", "heather", "Quillmark"):
            assert word not in said


def test_with_texts_nothing_is_kept(pairs, tmp_path):
    found = evaluate(pairs, subjects="subject", measures=QUICK, texts=True, state=tmp_path / "state")
    assert "signs" in found.measures["syntheticity"]
    assert not (tmp_path / "state").exists()


def test_finished_measures_are_not_taken_again(pairs, tmp_path, monkeypatch):
    taken = counting(monkeypatch)
    first = evaluate(pairs, subjects="subject", measures=QUICK, state=tmp_path)
    assert taken == list(QUICK)
    again = evaluate(pairs, subjects="subject", measures=QUICK, state=tmp_path)
    assert taken == list(QUICK)
    assert again.measures == first.measures
    assert again.seconds == {}


def test_other_inputs_are_measured_anew(pairs, tmp_path, monkeypatch):
    taken = counting(monkeypatch)
    evaluate(pairs, subjects="subject", measures=QUICK, state=tmp_path)
    evaluate(pairs, subjects="fame", measures=QUICK, state=tmp_path)  # syntheticity does not look at subjects
    assert taken == [*QUICK, "linkage", "document_risk"]
    evaluate(pairs, subjects="fame", measures=("syntheticity",), seed=1, state=tmp_path)
    assert taken[-1] == "syntheticity"
    other = replace(pairs, anonymised=(*pairs.anonymised[:-1], "Nothing."))
    evaluate(other, measures=("syntheticity",), seed=1, state=tmp_path)
    assert len(taken) == len(QUICK) + 4


def test_goes_on_after_an_interruption(pairs, tmp_path, monkeypatch):
    real = MEASURES["syntheticity"]

    def stop(inputs, texts, advance):
        raise KeyboardInterrupt

    monkeypatch.setattr("allonym.evaluate.study.MEASURES", {**MEASURES, "syntheticity": replace(real, run=stop)})
    with pytest.raises(KeyboardInterrupt):
        evaluate(pairs, subjects="subject", measures=QUICK, state=tmp_path)
    monkeypatch.undo()
    taken = counting(monkeypatch)
    whole = evaluate(pairs, subjects="subject", measures=QUICK, state=tmp_path)
    assert taken == ["syntheticity"]
    assert whole.measures == evaluate(pairs, subjects="subject", measures=QUICK).measures


def test_a_measure_that_cannot_be_taken_is_skipped_with_its_reason(pairs, monkeypatch):
    def fails(inputs, texts, advance):
        raise DataError("too little of it")

    changed = {**MEASURES, "syntheticity": replace(MEASURES["syntheticity"], run=fails)}
    monkeypatch.setattr("allonym.evaluate.study.MEASURES", changed)
    found = evaluate(pairs, subjects="subject", measures=("linkage", "syntheticity"))
    assert found.skipped == {"syntheticity": "too little of it"}
    assert "linkage" in found.measures


def test_progress(pairs):
    seen = []
    evaluate(pairs, measures=("syntheticity",), advance=lambda *step: seen.append(step))
    assert seen[-1] == ("syntheticity", 1, 1)
    assert {name for name, _, _ in seen} == {"syntheticity"}


def test_what_is_wrong(pairs):
    with pytest.raises(UnknownNameError, match="did you mean: linkage"):
        evaluate(pairs, measures=["linkages"])
    with pytest.raises(UsageError, match="a measure at least"):
        evaluate(pairs, measures=[])
    with pytest.raises(UnknownNameError, match="subject"):
        evaluate(pairs, subjects="subjekt")
    with pytest.raises(DataError, match="one value for each text is required; got 1 for 12"):
        evaluate(pairs, labels=["one"])
    with pytest.raises(DataError, match="1 text at least required"):
        evaluate(Pairs((), (), (), ()))
    with pytest.raises(DataError, match="12 of 12 originals have no record"):
        evaluate(pairs, gold=[{"text": "other", "spans": []}])


def test_gold_goes_by_text(pairs):
    gold = [{"text": text, "spans": [], "number": i} for i, text in enumerate(pairs.original)]
    assert [record["number"] for record in match_gold_records(pairs, reversed(gold))] == list(range(len(pairs)))


def test_subjects_may_be_known_of_some_texts_only(pairs):
    some = [dict(meta) for meta in pairs.meta]
    some[0]["meta"] = {}
    some[0].pop("subject")
    found = evaluate(replace(pairs, meta=tuple(some)), subjects="subject", measures=["linkage"])
    assert found.measures["linkage"]["all"]["texts"] == len(pairs) - 1


def test_versions_side_by_side(tmp_path):
    path = write(tmp_path / "all.jsonl")
    versions = {name: read_pairs(path, anonymised_field=name) for name in ("safe", "blank")}
    found = compare(versions, human=["blank"], subjects="subject", measures=["linkage"])
    told = found.to_dict()
    assert list(told["versions"]) == ["safe", "blank"]
    assert told["human"] == ["blank"]
    assert told["versions"]["safe"]["measures"] == evaluate(versions["safe"], subjects="subject", measures=["linkage"]).to_dict()["measures"]  # fmt: skip
    with pytest.raises(UnknownNameError, match="version"):
        compare(versions, human=["other"])
    with pytest.raises(DataError, match="two anonymised versions"):
        compare({"safe": versions["safe"]})
    other = read_pairs(write(tmp_path / "b.jsonl", records()[:3]), anonymised_field="safe")
    with pytest.raises(DataError, match="blank: the originals are not those of safe"):
        compare({"safe": versions["safe"], "blank": other})


def test_the_table_is_sound():
    for name, measure in MEASURES.items():
        assert measure.title, name
        assert set(measure.needs) <= set(NEEDS)
        assert {*measure.needs, *measure.uses} <= set(table.Inputs.__slots__)
    assert {line.measure for line in HEADLINES} <= set(MEASURES)
    assert len({line.key for line in HEADLINES}) == len(HEADLINES)


def test_headlines_of_nothing():
    assert list_headlines({}) == []
    assert list_headlines({"linkage": {}}) == []
    assert get_nested_value({"a": {"b": 1}}, "a.b") == 1
    assert get_nested_value({"a": 1}, "a.b") is None


CODE = """
import json, sys
sys.path[:0] = {paths!r}
from tests.evaluate.small import write
from allonym.evaluate import evaluate, read_pairs
from pathlib import Path
pairs = read_pairs(write(Path(sys.argv[1])), anonymised_field="safe")
told = evaluate(pairs, subjects="subject", groups="fame", measures=("linkage", "syntheticity")).to_dict()
told.pop("seconds")
print(json.dumps(told))
"""


@pytest.mark.slow
def test_numbers_do_not_hang_on_the_hash_seed(tmp_path):
    root = Path(__file__).resolve().parents[2]
    code = CODE.format(paths=[str(root), str(root / "src")])
    out = [
        subprocess.run(
            [sys.executable, "-c", code, str(tmp_path / "a.jsonl")],
            env={"PYTHONHASHSEED": seed, "PATH": ""},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert out[0] == out[1]


def test_gold_leads_to_detection(pairs):
    gold = []
    for id, text in zip(pairs.ids, pairs.original, strict=True):
        name = next(name for name in PEOPLE if name in text)
        start = text.index(name)
        span = {"start": start, "end": start + len(name), "label": "PERSON_NAME", "text": name}
        gold.append({"id": id, "doc_id": id, "text": text, "spans": [span], "meta": {}})
    found = evaluate(pairs, gold=gold, measures=["detection"])
    (line,) = found.headlines
    assert (line["key"], line["value"]["value"]) == ("missed", 0)
    kept = evaluate(replace(pairs, anonymised=pairs.original), gold=gold, measures=["detection"])
    assert kept.headlines[0]["value"]["value"] == 1
