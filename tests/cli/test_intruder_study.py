"""``allonym evaluate intruder-study`` and ``evaluate guess``: from texts to pages, from answers to numbers."""

from __future__ import annotations

import html
import json
import re

import pytest
from tests.llm import server as at
from tests.llm.fixtures import server  # noqa: F401

MARKER = "Zaphrandel"
STUDY = ("evaluate", "intruder-study")


@pytest.fixture
def corpus(tmp_path):
    rows = [
        {"id": f"{MARKER}{i}", "text": f"{MARKER} number {i} sails", "subject": f"{MARKER} Quist", "group": "famous",
         "safe": f"[NAME] number {i} sails"}
        for i in range(6)
    ]  # fmt: skip
    path = tmp_path / "corpus.jsonl"
    path.write_text("".join(json.dumps(r) + "\n" for r in rows), encoding="utf-8")
    return path


def judge(run, corpus, out, *more):
    fields = ("--field", "text", "--anonymised-field", "safe")
    return run(*STUDY, "judge", str(corpus), *fields, "--pages", str(out), "--subject", "subject", *more)


def fill(out, folder, name):
    """The answers that the pages would save."""
    folder.mkdir()
    for page in sorted((out / "pages").iterdir()):
        text = page.read_text(encoding="utf-8")
        study, number = re.search(r'data-study="(\w+)"', text)[1], re.search(r'data-page="(\d+)"', text)[1]
        said = {"identified": "yes", "name": name, "knowledge": "", "reason": "red sails"}
        answers = [{"item": t, **said} for t in re.findall(r'data-item="(\w+)"', text)]
        made = {"form": "allonym intruder study", "version": 1, "study": study, "task": "judge", "page": int(number)}
        (folder / f"{number}.json").write_text(
            json.dumps({**made, "participant": "", "answers": answers}), encoding="utf-8"
        )


def test_from_texts_to_pages_to_numbers(run, corpus, tmp_path):
    out = tmp_path / "judging"
    made = judge(run, corpus, out, "--group", "group")
    assert made.code == 0, made.err
    pages = sorted((out / "pages").iterdir())
    assert len(pages) == 3 and "do not share it" in made.err
    assert all(MARKER not in p.read_text(encoding="utf-8") for p in pages)
    assert (out / "key.json").stat().st_mode & 0o077 == 0
    fill(out, tmp_path / "answers", f"{MARKER} Quist")
    found = run(
        *STUDY, "analyse", str(out / "key.json"), str(tmp_path / "answers"),
        "--json", str(tmp_path / "n.json"), "--report", str(tmp_path / "r.html"),
    )  # fmt: skip
    assert found.code == 0, found.err
    assert "100.00 %" in found.out and MARKER not in found.out
    numbers = json.loads((tmp_path / "n.json").read_text(encoding="utf-8"))["people"]
    assert numbers["results"]["all"]["identified"]["value"] == 1 and numbers["judgements"] == 18
    for name in ("n.json", "r.html"):
        text = (tmp_path / name).read_text(encoding="utf-8")
        assert MARKER not in text and "sails" not in text
    shown = run(
        *STUDY, "analyse", str(out / "key.json"), str(tmp_path / "answers"), "--with-text",
        "--report", str(tmp_path / "s.html"),
    )  # fmt: skip
    assert shown.code == 0 and "red_sails" in (tmp_path / "s.html").read_text(encoding="utf-8")


def test_the_same_pages_again_and_none_over_others(run, corpus, tmp_path):
    for name in ("one", "two"):
        assert judge(run, corpus, tmp_path / name).code == 0
    for page in sorted((tmp_path / "one" / "pages").iterdir()):
        assert page.read_bytes() == (tmp_path / "two" / "pages" / page.name).read_bytes()
    again = judge(run, corpus, tmp_path / "one")
    assert again.code == 2 and "exist" in again.err
    assert judge(run, corpus, tmp_path / "one", "--overwrite", "--seed", "3").code == 0


def test_descriptions_are_collected(run, tmp_path):
    pool = tmp_path / "pool.csv"
    pool.write_text("group,name\nfamous,Wendell Marrow\n", encoding="utf-8")
    out = tmp_path / "study"
    made = run(*STUDY, "collect", str(out), "--pool", str(pool), "--fictitious", "2", "--writers", "2", "--least", "20")
    assert made.code == 0, made.err
    page = html.unescape((out / "pages" / "collect-1.html").read_text(encoding="utf-8"))
    assert "Wendell Marrow" in page and "This person does not exist" in page
    study, items = re.search(r'data-study="(\w+)"', page)[1], re.findall(r'data-item="(\w+)"', page)
    rows = "".join(f'"{study}","collect","1","","{t}","{MARKER} was here all the time"\n' for t in items)
    answers = tmp_path / "a.csv"
    answers.write_text("study,task,page,participant,item,text\n" + rows, encoding="utf-8")
    got = run(*STUDY, "gather", str(out / "key.json"), str(answers), "-o", str(tmp_path / "c.jsonl"), "--least", "20")
    assert got.code == 0, got.err
    corpus = [json.loads(line) for line in (tmp_path / "c.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [r["group"] for r in corpus] == ["famous", "fictitious"] and corpus[0]["subject"] == "Wendell Marrow"
    short = run(*STUDY, "gather", str(out / "key.json"), str(answers), "-o", str(tmp_path / "d.jsonl"))
    assert short.code == 1 and "500 characters at least required, got 32" in short.err and MARKER not in short.err
    empty = run(*STUDY, "collect", str(tmp_path / "none"), "--least", "0")
    assert (empty.code, empty.out) == (2, "") and "--least" in empty.err
    wrong = run(*STUDY, "analyse", str(out / "key.json"), str(answers))
    assert wrong.code == 1 and MARKER not in wrong.err


def test_a_folder_without_answers(run, corpus, tmp_path):
    judge(run, corpus, tmp_path / "j")
    (tmp_path / "none").mkdir()
    found = run(*STUDY, "analyse", str(tmp_path / "j" / "key.json"), str(tmp_path / "none"))
    assert found.code == 2 and "contains no answers" in found.err


@pytest.fixture
def policy(server, tmp_path):  # noqa: F811
    pytest.importorskip("httpx")
    path = tmp_path / "asks.toml"
    path.write_text(f'name = "asks"\nextends = "default"\n[llm]\nurl = "{server.url}"\nmodel = "m"\n', encoding="utf-8")
    return path


def test_a_language_model_guesses(run, corpus, server, policy, tmp_path):  # noqa: F811
    said = {"identified": True, "guesses": [f"{MARKER} Quist"], "reason": "sails", "knowledge": ""}
    server.then = at.answer(json.dumps(said))
    found = run(
        "evaluate", "guess", "persons", str(corpus), "--field", "text", "--anonymised-field", "safe", "--subject", "subject",
        "--policy", str(policy), "--json", str(tmp_path / "n.json"), "--report", str(tmp_path / "r.html"),
    )  # fmt: skip
    assert found.code == 0, found.err
    assert all(MARKER not in b["messages"][-1]["content"] for b in server.bodies) and len(server.bodies) == 6
    numbers = json.loads((tmp_path / "n.json").read_text(encoding="utf-8"))["guess_persons"]["after"]
    assert numbers["results"]["all"]["identified"]["value"] == 1
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "A language model that tried to identify" in page and MARKER not in page


def test_a_language_model_infers_attributes(run, server, policy, tmp_path):  # noqa: F811
    rows = [{"text": "a", "safe": "b", "profile": {"age": 31}}, {"text": "c", "safe": "d", "profile": {"age": 60}}]
    path = tmp_path / "c.jsonl"
    path.write_text("".join(json.dumps(r) + "\n" for r in rows), encoding="utf-8")
    server.then = at.answer('{"age": ["33", "58"]}')
    base = ("evaluate", "guess", "attributes", str(path), "--field", "text", "--anonymised-field", "safe")
    found = run(*base, "--attribute", "age=profile.age", "--policy", str(policy), "--report", str(tmp_path / "r.md"))
    assert found.code == 0, found.err
    assert "50.0 %" in found.out and "100.0 %" in found.out
    wrong = run(*base, "--attribute", "shoes", "--policy", str(policy))
    assert wrong.code == 2 and "unknown attribute 'shoes'" in wrong.err


def test_nothing_is_sent_unless_an_endpoint_is_named(run, corpus):
    found = run(
        "evaluate",
        "guess",
        "persons",
        str(corpus),
        "--field",
        "text",
        "--anonymised-field",
        "safe",
        "--subject",
        "subject",
    )
    assert found.code == 2 and "llm.url is required" in found.err
