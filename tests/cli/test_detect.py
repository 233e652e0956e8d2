"""``allonym detect``."""

from __future__ import annotations

import json
import stat

import pytest

import allonym
from allonym.document import Span
from allonym.resolve import Decision

TEXT = "Write to jane.doe@example.com or pay with 4111 1111 1111 1111.\n"


def rows(out: str) -> list[dict]:
    return [json.loads(line) for line in out.splitlines()]


def test_a_pipe_gets_json_lines_that_say_what_the_library_says(run, untagged):
    result = run("detect", stdin=TEXT.encode())
    assert result.code == 0
    found = allonym.detect(TEXT, untagged)
    assert [(r["start"], r["end"], r["label"], r["source"]) for r in rows(result.out)] == [
        (s.start, s.end, s.label, s.source) for s in found
    ]
    assert {"EMAIL_ADDRESS", "CREDIT_CARD"} <= {s.label for s in found}
    assert "jane" not in result.out + result.err


def test_text_is_shown_on_request(run):
    for row in rows(run("detect", "--text", stdin=TEXT.encode()).out):
        assert row["text"] == TEXT[row["start"] : row["end"]]


def test_offsets_count_code_points_and_line_ends_stay(run):
    text = "\ufeff\U0001f600\r\n\u00e9 jane.doe@example.com"
    (row,) = rows(run("detect", "--label", "EMAIL_ADDRESS", "--text", stdin=text.encode()).out)
    assert row["start"] == len("\U0001f600\r\n\u00e9 ")
    assert row["text"] == "jane.doe@example.com"


def test_label_narrows_with_descendants_and_wins_over_the_policys_exclusions(run):
    text = b"Ring 415-555-0132 at 10:45 am, jane.doe@example.com"
    assert {r["label"] for r in rows(run("detect", "--label", "phone_number", stdin=text).out)} == {"PHONE_NUMBER"}
    assert {r["label"] for r in rows(run("detect", "--label", "TIME", stdin=text).out)} == {"TIME"}


def test_dictionary_and_exclusions_come_from_files(run, tmp_path):
    (tmp_path / "names.txt").write_text("Quillon Vex\n")
    (tmp_path / "not.csv").write_text("term,why\njane.doe@example.com,public\n")
    text = b"Quillon Vex wrote to jane.doe@example.com"
    names, public = f"PERSON={tmp_path / 'names.txt'}", str(tmp_path / "not.csv")
    found = rows(run("detect", "--dictionary", names, "--exclude-terms", public, stdin=text).out)
    assert [(r["start"], r["end"], r["label"]) for r in found] == [(0, 11, "PERSON")]


def test_a_dictionary_needs_label_and_path(run, tmp_path):
    (tmp_path / "names.txt").write_text("Quillon Vex\n")
    assert run("detect", "--dictionary", "names.txt").code == 2
    wrong = run("detect", "--dictionary", f"PERSN={tmp_path / 'names.txt'}")
    assert wrong.code == 2 and "did you mean: PERSON" in wrong.err


def test_the_operating_point_reaches_the_detectors(run, monkeypatch, tmp_path):
    from allonym import registry

    seen = []

    def build(policy):
        seen.append(dict(policy.operating_points))
        return lambda document: ()

    monkeypatch.setattr(registry.detectors, "_table", {**registry.detectors._table, "rules": build})
    mine = tmp_path / "mine.toml"
    mine.write_text('[detect]\ndetectors = ["rules"]\n[detect.operating_points]\nAGE = 0.25\n')
    for given, taken in (("balanced", "balanced"), ("0.2", 0.2), (".9", 0.9)):
        assert run("detect", "-p", str(mine), "--operating-point", given, stdin=b"x").code == 0
        assert seen[-1] == {"*": taken, "AGE": 0.25}
    assert run("anonymize", "-", "-p", str(mine), "--operating-point", "high-precision", stdin=b"x").code == 0
    assert seen[-1] == {"*": "high-precision", "AGE": 0.25}


@pytest.mark.parametrize(
    ("given", "says"), [("balancd", "did you mean: balanced"), ("1.5", "between 0 and 1"), ("0..1", "")]
)
def test_an_operating_point_that_is_none(run, given, says):
    wrong = run("detect", "--operating-point", given, stdin=b"x")
    assert wrong.code == 2 and says in " ".join(wrong.err.split())


def test_explain_tells_detector_rule_context_and_why_a_rival_lost(run, untagged):
    text = b"My social security number is 536-22-1234, thanks.\n"
    found = rows(run("detect", "--explain", stdin=text).out)
    kept = [r for r in found if r["outcome"] == "kept"]
    assert any(r["label"] == "US_SSN" and r["detector"] == "rules" and r["context"] for r in kept)
    lost = [r for r in found if r["outcome"] != "kept"]
    assert lost and all(r["because"] for r in lost)
    assert "536" not in json.dumps(found)
    assert len(found) == len(allonym.explain(text.decode(), untagged))


def test_explain_calls_nothing_below_a_threshold_that_it_reaches(run):
    text = "- Marisol Quint: My name is Marisol Quint.\n- Tobias Fenwick: Hi Marisol, this is Tobias Fenwick.\n"
    lost = [r for r in rows(run("detect", "--explain", stdin=text.encode()).out) if r["outcome"] == "below threshold"]
    assert lost == [r for r in lost if r["score"] < float(r["because"].removeprefix("needs "))]


def test_highlight_marks_findings_in_a_pipe_without_escape_codes(run):
    out = run("detect", "--highlight", stdin=TEXT.encode()).out
    assert out.startswith("Write to \u27e6jane.doe@example.com|EMAIL_ADDRESS\u27e7 or pay")
    assert "\x1b" not in out
    assert run("detect", "--highlight", "--explain").code == 2


def test_rows_of_a_table_are_documents(run, tmp_path):
    path = tmp_path / "reviews.csv"
    path.write_text("id,review,by\n7,good,a.b@example.com\n8,bad: c.d@example.com,e.f@example.com\n")
    found = rows(run("detect", str(path), "--field", "review", "--text").out)
    assert [(r["document"], r["text"]) for r in found] == [("8", "c.d@example.com")]


def test_bytes_that_are_no_text_are_refused_without_a_quote(run):
    result = run("detect", stdin=b"Zyxthrope \xff\xfe\xff")
    assert result.code == 1
    assert result.err.splitlines()[-1].startswith("error: ") and "byte 10" in result.err
    assert "Zyx" not in result.err


@pytest.mark.parametrize(
    ("loser", "winner", "reason"),
    [
        (Span(0, 5, "DATE", 0.6), Span(0, 5, "DATE_OF_BIRTH", 0.9), "stronger"),
        (Span(0, 5, "DATE", 0.9), Span(0, 9, "DATE_OF_BIRTH", 0.8), "longer"),
        (Span(0, 5, "DATE", 0.85), Span(0, 5, "DATE_OF_BIRTH", 0.9), "surer"),
        (Span(1, 5, "DATE", 0.9), Span(0, 4, "DATE_OF_BIRTH", 0.9), "earlier"),
        (Span(0, 5, "DATE_OF_BIRTH", 0.9), Span(0, 5, "DATE", 0.9), "first by name"),
        (Span(0, 9, "DATE", 0.85), Span(0, 5, "DATE", 0.85), "part of a stronger one"),
    ],
)
def test_the_reason_follows_the_order_in_which_candidates_win(loser, winner, reason):
    assert Decision(loser, "absorbed", winner).reason == reason
    assert Decision(loser, "kept").reason == ""


def test_names_in_free_text_are_found(run):
    text = b"Barack Obama met Angela Merkel in Berlin."
    found = rows(run("detect", "--text", "-p", "default", stdin=text).out)
    assert {"Barack Obama", "Angela Merkel", "Berlin"} <= {row["text"] for row in found}
    assert [row["label"] for row in found if "Obama" in row["text"]] == ["PERSON"]


def test_html_writes_a_page_and_prints_no_text(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_bytes(TEXT.encode())
    done = run("detect", "a.txt", "--html", "a.html")
    assert done.code == 0, done.err
    assert done.out == ""
    page = (tmp_path / "a.html").read_text("utf-8")
    assert "<mark" in page and "<title>Findings: a.txt</title>" in page
    assert stat.S_IMODE((tmp_path / "a.html").stat().st_mode) == 0o600
    assert run("detect", "a.txt", "--html", "a.txt").code == 2
    before = (tmp_path / "a.html").read_bytes()
    assert run("detect", "a.html", "--html", "a.html").code == 2  # what is read is never changed
    assert (tmp_path / "a.html").read_bytes() == before
    assert run("detect", "a.txt", "--html", "b.html", "--json").code == 2
    assert (tmp_path / "a.txt").read_bytes() == TEXT.encode()
    (tmp_path / "r.csv").write_text("id,review\n1,Mail ada@example.com\n2,Nothing\n", encoding="utf-8")
    assert run("detect", "r.csv", "--field", "review", "--html", "r.html").code == 0
    assert (tmp_path / "r.html").read_text("utf-8").count("<h2>") == 2


def test_findings_of_records_name_their_field(run, tmp_path):
    source = tmp_path / "a.jsonl"
    source.write_text('{"user": {"mail": "a@example.com"}, "text": "Hi b@example.com"}\n{"text": "c@example.com"}\n')
    found = [
        (r["record"], r["field"], r["field_start"], r["field_end"])
        for r in rows(run("detect", str(source), "--json").out)
    ]
    assert found == [(1, "user.mail", 0, 13), (1, "text", 3, 16), (2, "text", 0, 13)]
    source = tmp_path / "a.csv"
    source.write_text("id,note\nx1,Write to a@example.com\n")
    (row,) = rows(run("detect", str(source), "--json").out)
    assert (row["document"], row["record"], row["field"], row["field_start"]) == ("x1", 1, "note", 9)
