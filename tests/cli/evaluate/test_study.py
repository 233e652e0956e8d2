"""``allonym evaluate all`` and ``compare``: from files to a table, numbers and a page; resume, and what is wrong."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest
from tests.evaluate.small import PEOPLE, records, write

from allonym.evaluate.study import MEASURES

QUICK = ("--measure", "linkage", "--measure", "syntheticity", "--measure", "detection")


@pytest.fixture
def corpus(tmp_path, monkeypatch):
    """The small corpus in one file, and as two, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "both.jsonl")
    write(tmp_path / "raw.jsonl", [{k: r[k] for k in ("id", "text", "meta")} for r in records()])
    write(tmp_path / "safe.jsonl", [{"id": r["id"], "text": r["safe"]} for r in reversed(records())])
    return tmp_path


def test_numbers_page_and_table(run, corpus):
    done = run(
        "evaluate", "all", "raw.jsonl", "safe.jsonl", "--subject", "subject", *QUICK,
        "--json", "out.json", "--report", "out.html",
    )  # fmt: skip
    assert done.code == 0, done.err
    told = json.loads((corpus / "out.json").read_text(encoding="utf-8"))
    assert told["texts"] == 12
    assert set(told["measures"]) == {"linkage", "syntheticity"}
    assert told["skipped"][0]["measure"] == "detection"
    found = told["measures"]["linkage"]["panel"]["worst"]["identified"]["value"]
    assert re.search(rf"Risk: identified at worst +([\d.]+ % -> )?{100 * found:.1f} %", done.out)
    assert "Not measured: what was found, and what was missed (needs spans" in done.err
    page = (corpus / "out.html").read_text(encoding="utf-8")
    assert "What was not measured" in page
    assert not list(corpus.glob(".*allonym-evaluate"))
    for name in PEOPLE:
        assert name not in page + done.out + done.err + json.dumps(told)


def test_one_file_with_two_fields_gives_the_same(run, corpus):
    one = ("--subject", "subject", "--measure", "linkage", "--quiet")
    assert run("evaluate", "all", "raw.jsonl", "safe.jsonl", *one, "--json", "a.json").code == 0
    assert run("evaluate", "all", "both.jsonl", "--anonymised-field", "safe", *one, "--json", "b.json").code == 0
    first, second = (json.loads((corpus / n).read_text(encoding="utf-8")) for n in ("a.json", "b.json"))
    assert first["measures"] == second["measures"]


def test_with_text_says_so(run, corpus):
    done = run(
        "evaluate", "all", "both.jsonl", "--anonymised-field", "safe", "--measure", "syntheticity",
        "--report", "out.md", "--with-text",
    )  # fmt: skip
    assert done.code == 0
    assert "protect it as you protect the corpus" in done.err
    assert "words of the original texts" in (corpus / "out.md").read_text(encoding="utf-8")


def test_resume(run, corpus, monkeypatch):
    call = ("evaluate", "all", "both.jsonl", "--anonymised-field", "safe", "--subject", "subject", *QUICK[:4],
            "--json", "out.json")  # fmt: skip
    real = MEASURES["syntheticity"]

    def stop(inputs, texts, advance):
        raise KeyboardInterrupt

    monkeypatch.setattr("allonym.evaluate.study.MEASURES", {**MEASURES, "syntheticity": replace(real, run=stop)})
    done = run(*call)
    assert (done.code, (corpus / "out.json").exists()) == (130, False)
    assert "--resume" in done.err
    state = corpus / ".out.json.allonym-evaluate"
    assert [p.name.partition("-")[0] for p in state.iterdir()] == ["linkage"]
    assert run(*call).code == 2

    def never(inputs, texts, advance):
        raise AssertionError("taken again")

    changed = {**MEASURES, "linkage": replace(MEASURES["linkage"], run=never)}
    monkeypatch.setattr("allonym.evaluate.study.MEASURES", changed)
    assert run(*call, "--resume").code == 0
    assert set(json.loads((corpus / "out.json").read_text(encoding="utf-8"))["measures"]) == {"linkage", "syntheticity"}
    assert not state.exists()


def test_compare(run, corpus):
    done = run(
        "evaluate", "compare", "both.jsonl", "--anonymised-field", "safe", "--anonymised-field", "blank",
        "--human", "blank", "--subject", "subject", "--measure", "linkage", "--measure", "syntheticity",
        "--report", "out.html", "--json", "out.json",
    )  # fmt: skip
    assert done.code == 0, done.err
    assert re.search(r"made by +worst intruder +Identified at worst.*\n(.*\n)?safe +machine.*\nblank +people", done.out)
    told = json.loads((corpus / "out.json").read_text(encoding="utf-8"))
    values = {
        name: one["measures"]["linkage"]["panel"]["worst"]["identified"]["value"]
        for name, one in told["versions"].items()
    }
    assert values["blank"] < values["safe"]
    page = (corpus / "out.html").read_text(encoding="utf-8")
    assert "Side by side" in page
    assert "people" in page


def test_compare_of_files(run, corpus):
    done = run(
        "evaluate", "compare", "raw.jsonl", "safe.jsonl", "raw.jsonl", "--names", "tags,nothing",
        "--measure", "syntheticity",
    )  # fmt: skip
    assert done.code == 0, done.err
    assert re.search(r"\ntags +machine.*\nnothing +machine", done.out)


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        (("all", "raw.jsonl"), 2, "ANONYMISED is required"),
        (("all", "raw.jsonl", "none.jsonl"), 2, "there is no file"),
        (("all", "raw.jsonl", "safe.jsonl", "--measure", "linkag"), 2, "did you mean: linkage"),
        (("all", "raw.jsonl", "safe.jsonl", "--subject", "subjekt"), 2, "did you mean: subject"),
        (("all", "raw.jsonl", "safe.jsonl", "--report", "out.pdf"), 2, "--report must end in"),
        (("all", "raw.jsonl", "safe.jsonl", "--json", "safe.jsonl", "--overwrite"), 2, "which is never changed"),
        (("all", "raw.jsonl", "safe.jsonl", "--json", "both.jsonl"), 2, "exists"),
        (("all", "raw.jsonl", "safe.jsonl", "--resume"), 2, "--resume requires"),
        (("all", "raw.jsonl", "safe.jsonl", "--background", "raw.jsonl"), 2, "requires --subject"),
        (("compare", "raw.jsonl", "safe.jsonl"), 2, "at least two versions"),
        (("compare", "raw.jsonl", "safe.jsonl", "safe.jsonl"), 2, "different names"),
        (("compare", "raw.jsonl", "safe.jsonl", "raw.jsonl", "--names", "a"), 2, "got 1 for 2"),
        (("compare", "raw.jsonl", "safe.jsonl", "raw.jsonl", "--human", "people"), 2, "unknown version"),
    ],
)
def test_what_is_wrong(run, corpus, args, code, said):
    done = run("evaluate", *args)
    assert (done.code, done.out) == (code, "")
    assert said in done.err
    assert not list(corpus.glob(".*"))


def test_documents_without_a_partner(run, corpus):
    write(corpus / "fewer.jsonl", [{"id": r["id"], "text": r["safe"]} for r in records()[1:]])
    done = run("evaluate", "all", "raw.jsonl", "fewer.jsonl")
    assert done.code == 1
    assert "1 of the 12 documents of raw.jsonl are missing, the first is 1" in done.err


def test_a_background(run, corpus):
    others = [r for i, r in enumerate(records()) if i % 2]
    write(corpus / "known.jsonl", [{k: r[k] for k in ("id", "text", "meta")} for r in others])
    done = run(
        "evaluate", "all", "raw.jsonl", "safe.jsonl", "--subject", "subject", "--background", "known.jsonl",
        "--measure", "linkage", "--json", "out.json",
    )  # fmt: skip
    assert done.code == 0, done.err
    told = json.loads((corpus / "out.json").read_text(encoding="utf-8"))
    assert told["settings"]["background"] == 6
    assert told["measures"]["linkage"]["folds"] == 0
