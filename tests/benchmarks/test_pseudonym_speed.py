"""benchmarks/pseudonym_speed.py: the documents that it times."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.pseudonym_speed import cut_documents, replace_all

import allonym
from allonym.policy import Policy, Rule


def test_texts_are_cut_at_spaces_and_as_many_as_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "texts.jsonl"
    text = "Ada met Bo. " * 50
    path.write_text(json.dumps({"text": text}) + "\n" + json.dumps({"text": "Cy left."}) + "\n", "utf-8")
    found = cut_documents(path, 10_000, 100)
    assert "".join(found) == text + "Cy left."
    assert all(len(t) <= 100 for t in found)
    assert all(t.startswith(" ") for t in found[1:-1])
    assert sum(map(len, cut_documents(path, 250, 100))) < 400


def test_what_is_timed_replaces_the_findings() -> None:
    policy = Policy.load("default").with_(default=Rule("tag"), rules={})
    spans = (allonym.Span(0, 3, "PERSON"), allonym.Span(8, 10, "PERSON"))
    assert replace_all("Ada met Bo.", spans, policy) == "[PERSON_1] met [PERSON_2]."
