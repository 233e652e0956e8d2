"""Findings and anonymised texts from files: by id or by order, and what does not fit."""

from __future__ import annotations

import json

import pytest

from allonym.errors import DataError
from allonym.evaluate.findings import read_anonymised_texts, read_findings, read_plan_findings
from allonym.pipeline import anonymize
from allonym.train.records import make_record, write_jsonl

TEXTS = ["Ada Brook ran", "Cyd sat in Elmford", "nobody"]
GOLD = [make_record("", id, text, []) for id, text in zip("abc", TEXTS, strict=True)]


def places(found):
    return [[(s.start, s.end, s.label) for s in spans] for spans in found]


def test_spans_go_with_ids_else_with_their_order(tmp_path):
    marks = [[(0, 9, "PER")], [(11, 18, "LOC")], []]
    there = [make_record("", id, text, m) for id, text, m in zip("abc", TEXTS, marks, strict=True)]
    path = tmp_path / "found.jsonl"
    write_jsonl(path, there[::-1])
    assert places(read_findings(path, GOLD)) == marks
    write_jsonl(path, [{**r, "id": f"x{i}"} for i, r in enumerate(there)])
    assert places(read_findings(path, GOLD)) == marks
    write_jsonl(path, [{**r, "id": f"x{i}"} for i, r in enumerate(there[::-1])])
    with pytest.raises(DataError, match="text 1 is not that of the gold"):
        read_findings(path, GOLD)
    write_jsonl(path, there[:2])
    with pytest.raises(DataError, match="got 2 for 3"):
        read_findings(path, GOLD)


def test_masked_places_as_tab_reads_them(tmp_path):
    path = tmp_path / "masked.json"
    path.write_text(json.dumps({"b": [[11, 18], [0, 3]], "a": [], "c": []}), encoding="utf-8")
    assert places(read_findings(path, GOLD)) == [[], [(0, 3, ""), (11, 18, "")], []]
    path.write_text(json.dumps({"b": [[11, 18]]}), encoding="utf-8")
    with pytest.raises(DataError, match="text 1 of the gold has no masked places"):
        read_findings(path, GOLD)
    for bad in ([0, 99], [3, 3], ["0", 3], [True, 3], 7):
        path.write_text(json.dumps({"a": [bad], "b": [], "c": []}), encoding="utf-8")
        with pytest.raises(DataError, match=r"text 1: \[start, end\]"):
            read_findings(path, GOLD)


def test_anonymised_texts_of_a_file_and_of_a_folder(tmp_path):
    path = tmp_path / "after.jsonl"
    rows = [{"id": id, "text": text.upper()} for id, text in zip("cab", ("nobody", *TEXTS[:2]), strict=True)]
    path.write_text("".join(json.dumps(r) + "\n" for r in rows), encoding="utf-8")
    assert read_anonymised_texts(path, GOLD) == [t.upper() for t in TEXTS]
    folder = tmp_path / "after"
    folder.mkdir()
    for id, text in zip("abc", TEXTS, strict=True):
        (folder / f"{id}.txt").write_text(text.upper(), encoding="utf-8")
    assert read_anonymised_texts(folder, GOLD[::-1]) == [t.upper() for t in TEXTS[::-1]]
    with pytest.raises(DataError, match="got 3 for 2"):
        read_anonymised_texts(folder, [{**r, "id": "z" + r["id"]} for r in GOLD[:2]])


def test_plans_go_with_their_texts(tmp_path):
    texts = ["Write to ada.brook@example.org now.", "nothing", "Call cyd@example.org"]
    plans = [anonymize(text, "default").plan for text in texts]
    path = tmp_path / "plans.jsonl"
    lines = [
        json.dumps({"id": "x\u2028", "plan": plans[2].to_dict()}, ensure_ascii=False),
        json.dumps({"id": "y", **plans[0].to_dict()}),
        "",
        json.dumps({"plan": plans[1].to_json()}),
    ]
    path.write_text("\n".join(lines), encoding="utf-8")
    assert places(read_plan_findings(path, texts))[0] == [(9, 30, "EMAIL_ADDRESS")]
    assert places(read_plan_findings(path, texts))[1] == []
    with pytest.raises(DataError, match="1 of 4 texts have no plan, the first is number 4"):
        read_plan_findings(path, [*texts, "another"])
    path.write_text('{"plan": {"schema": 9}}', encoding="utf-8")
    with pytest.raises(DataError, match=r"plans\.jsonl:1: not a plan"):
        read_plan_findings(path, texts)
