"""``allonym from-presidio`` and ``allonym compare presidio``."""

from __future__ import annotations

import sys

from allonym.detection.adapters.presidio import build_engine
from allonym.integrations import presidio_compare
from allonym.integrations.presidio_compare import Finding
from allonym.policy import Policy

RECOGNIZERS = "recognizers:\n  - name: Badge\n    supported_entity: BADGE_ID\n    deny_list: [BX]\n  - name: Own\n"


def test_the_policy_is_written_and_what_has_no_counterpart_is_listed(run, tmp_path):
    source, target = tmp_path / "r.yaml", tmp_path / "p.toml"
    source.write_text(RECOGNIZERS, encoding="utf-8")
    result = run("from-presidio", str(source), "-o", str(target))
    assert result.code == 0 and result.out == ""
    assert (
        "r.yaml:5: no counterpart: Own: " in result.err and "parts: 1 same, 0 differs, 1 no counterpart" in result.err
    )
    assert Policy.load(target).looks_for("BADGE_ID")
    again = run("from-presidio", str(source), "-o", str(target))
    assert again.code == 2 and "--overwrite" in again.err


def test_without_output_the_policy_is_printed(run, tmp_path):
    source = tmp_path / "r.yaml"
    source.write_text(RECOGNIZERS, encoding="utf-8")
    result = run("from-presidio", str(source), "--all")
    assert result.code == 0 and 'BADGE_ID = ["BX"]' in result.out and "r.yaml:4: same: Badge" in result.err


def test_compare_needs_presidio(run, tmp_path, monkeypatch):
    build_engine.cache_clear()
    monkeypatch.setitem(sys.modules, "tldextract.tldextract", None)
    text = tmp_path / "a.txt"
    text.write_text("Mail ada@example.com", encoding="utf-8")
    result = run("compare", "presidio", str(text))
    assert result.code == 2 and "[presidio]" in result.err


def test_compare_shows_what_only_one_covers(run, tmp_path, monkeypatch, untagged_file):
    monkeypatch.setattr(
        presidio_compare, "open_presidio", lambda *_: lambda text: [Finding(5, 20, "URL"), Finding(21, 26, "X")]
    )
    monkeypatch.setattr(presidio_compare, "describe_presidio", lambda model: "Presidio")
    source, page = tmp_path / "a.txt", tmp_path / "c.html"
    source.write_text("Mail ada@example.com Wanda", encoding="utf-8")
    result = run("compare", "presidio", str(source), "-p", str(untagged_file), "--report", str(page))
    assert result.code == 0 and "only Presidio covers" in result.out and "Wanda" in result.out
    assert "only allonym covers" not in result.out
    written = page.read_text(encoding="utf-8")
    assert "<h5>Presidio</h5>" in written and "X, not covered by the other" in written
