"""What ``allonym evaluate`` and ``harden`` write: nothing over what they read, all or none, and no word of a text."""

from __future__ import annotations

import json

import pytest
from tests.evaluate.small import PEOPLE, records, write

FORMS = {"id": "d00", "text": "I am (Orla)[MISSED_PERSON_NAME] here."}
PAIR = ("raw.jsonl", "safe.jsonl")
SUBJECT = ("--subject", "subject")


@pytest.fixture
def corpus(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "raw.jsonl", [{k: r[k] for k in ("id", "text", "meta")} for r in records()])
    write(tmp_path / "safe.jsonl", [{"id": r["id"], "text": r["safe"]} for r in records()])
    write(tmp_path / "marked.jsonl", [FORMS])
    write(tmp_path / "who.jsonl", [{"id": "d00", "context": "here"}])
    (tmp_path / "file").write_text("kept", encoding="utf-8")
    return tmp_path


def content(folder):
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (
            ("evaluate", "red-team", "sample", "marked.jsonl", "--metadata", "who.jsonl", "-o", "who.jsonl"),
            "never changed",
        ),
        (("evaluate", "residual", "marked.jsonl", "--metadata", "who.jsonl", "--queue", "who.jsonl"), "never changed"),
        (("evaluate", "residual", "marked.jsonl", "--queue", "q.csv", "--json", "file/n.json"), "file is a file"),
        (("evaluate", "residual", "marked.jsonl", "--queue", "file/q.csv", "--json", "n.json"), "file is a file"),
        (
            ("evaluate", "risk", *PAIR, "--review-above", "0.1", "--queue", "file/q.csv", "--json", "n.json"),
            "file is a file",
        ),
        (("harden", *PAIR, *SUBJECT, "-o", "h.jsonl", "--plans", "h.jsonl"), "named for two outputs"),
        (("harden", *PAIR, *SUBJECT, "-o", "h.jsonl", "--plans", "file/p.jsonl"), "file is a file"),
        (("harden", *PAIR, *SUBJECT, "-o", "h.jsonl", "--json", "file/n.json"), "file is a file"),
        (("harden", *PAIR, *SUBJECT, "-o", "safe.jsonl"), "never changed"),
        (("evaluate", "all", *PAIR, "--json", "file/n.json"), "file is a file"),
    ],
)
def test_what_cannot_be_written_is_said_before_anything_is(run, corpus, args, said):
    before = content(corpus)
    extra = () if args[1] == "red-team" else ("--quiet",)
    done = run(*args, "--overwrite", *extra)
    assert (done.code, done.out) == (2, "")
    assert said in done.err
    assert len(done.err.splitlines()) == 1
    assert content(corpus) == before


def test_answers_and_keys_are_never_written_over(run, corpus):
    study = ("evaluate", "intruder-study")
    pages = (*study, "judge", *PAIR, *SUBJECT, "--pages")
    assert run(*pages, "judging").code == 0
    before = content(corpus)
    for target in ("judging/key.json", "answers.json"):
        (corpus / "answers.json").write_text("{}", encoding="utf-8")
        done = run(*study, "gather", "judging/key.json", "answers.json", "-o", target, "--overwrite")
        assert done.code == 2
        assert "never changed" in done.err
    (corpus / "raw.jsonl").rename(corpus / "key.json")
    done = run(*study, "judge", "key.json", "safe.jsonl", "--format", "jsonl", *SUBJECT, "--pages", ".", "--overwrite")
    assert (done.code, "never changed" in done.err) == (2, True)
    assert (corpus / "key.json").read_bytes() == before["raw.jsonl"]


def test_a_queue_and_numbers_are_written_together(run, corpus):
    done = run("evaluate", "residual", "marked.jsonl", "--limit", "1", "--queue", "q.jsonl", "--json", "n.json")
    assert done.code == 0
    assert "written: q.jsonl and n.json" in done.err
    assert json.loads((corpus / "q.jsonl").read_text(encoding="utf-8"))["id"] == "d00"
    done = run("evaluate", "residual", "marked.jsonl", "--limit", "9", "--queue", "none.jsonl")
    assert (done.code, (corpus / "none.jsonl").read_bytes()) == (0, b"")
    done = run("evaluate", "risk", *PAIR, "--review-above", "0", "--queue", "r.csv", "--json", "r.json")
    assert done.code == 0, done.err
    assert (corpus / "r.csv").read_text(encoding="utf-8").startswith("id,risk\n")


@pytest.mark.parametrize("marks", ["Orla", 7, {"start": 0}])
def test_marks_that_are_no_list_are_an_error(run, corpus, marks):
    write(corpus / "wrong.jsonl", [{"id": "d00", "text": "Nothing here.", "marks": marks}])
    done = run("evaluate", "residual", "wrong.jsonl", "--json", "n.json")
    assert (done.code, (corpus / "n.json").exists()) == (1, False)
    assert "marks must be a list" in done.err
    assert "Orla" not in done.err


def test_an_interrupted_run_that_measured_nothing_leaves_nothing(run, corpus, monkeypatch):
    def stop(source):
        raise KeyboardInterrupt

    call = ("evaluate", "all", *PAIR, "--measure", "syntheticity", "--json", "n.json")
    with monkeypatch.context() as patched:
        patched.setattr("allonym.cli.evaluate.options.Source.read_pairs", stop)
        done = run(*call)
    assert done.code == 130
    assert "--resume" not in done.err
    assert not list(corpus.glob(".*"))
    (corpus / ".n.json.allonym-evaluate").mkdir()  # as a killed run leaves it
    assert run(*call).code == 0
    assert not list(corpus.glob(".*"))


def test_numbers_show_no_word_of_a_text(run, corpus):
    outs = ("--json", "n.json", "--report", "n.html")
    words = [w for name, said in PEOPLE.items() for w in (*name.split(), *said[1:], said[0].split()[-1])]
    for number, args in enumerate(
        (
            ("evaluate", "all", *PAIR, *SUBJECT, "--labels", "mood", "--group", "fame", "--review-above", "0"),
            ("evaluate", "intruder", *PAIR, *SUBJECT, "--group", "fame"),
            ("evaluate", "risk", *PAIR, *SUBJECT, "--review-above", "0", "--queue", "q.csv"),
            ("evaluate", "downstream", *PAIR, "--task", "mood=classify", "--repeats", "2", "--outputs", "raw.jsonl"),
            ("evaluate", "residual", "marked.jsonl", "--limit", "1", "--queue", "q.jsonl"),
            ("harden", *PAIR, *SUBJECT, "--plans", "plan.jsonl"),
        )
    ):
        before = set(corpus.iterdir())
        done = run(*args, *(f"{number}{o}" if o.startswith("n.") else o for o in outs))
        assert done.code == 0, done.err
        made = [p for p in corpus.iterdir() if p not in before]
        assert len(made) >= 2
        for shown in (done.out, done.err, *(p.read_text(encoding="utf-8") for p in made)):
            assert [w for w in words if w in shown] == [], args


def test_forms_that_are_named_twice(run, corpus):
    done = run("evaluate", "red-team", "summary", "marked.jsonl", "./marked.jsonl")
    assert (done.code, done.out) == (2, "")
    assert "named twice" in done.err
