"""``allonym swap``: from files to the released corpus, plans, numbers and page; dry run, resume, and what is wrong."""

from __future__ import annotations

import importlib
import json
import re
from pathlib import Path

import pytest
from tests.swap.corpora import CATEGORIES, corpus

from allonym.files import read_documents
from allonym.plan import Plan, apply

MARKER = "Zaphrandel"
SETTINGS = """
extends = "default"
[categories]
Term = "free"
[embed]
name = "lsa"
[mixture]
clusters = 5
restarts = 1
[search]
draws = 2
points = 5
[read]
min_size = 60
max_size = 200
[check]
runs = 2
[grid]
clusters = [4, 1000]
family = ["spcauchy"]
min_weight = [0.005]
[fallback]
Organization = "pseudonym"
Location = "tag"
"""


def rows(documents=5):
    made = corpus(documents=documents, topics=3)
    return [
        {
            "id": d.id,
            "company": f"{c} Plc",
            "sector": d.meta["sector"],
            "text": f"Welcome to the {c} Plc call. {d.text}",
        }
        for d, c in zip(made.documents, ("Quillmark", "Fernwick", "Brodale", "Kestrelon", "Tamsinol"), strict=False)
    ]


@pytest.fixture(scope="session")
def files(tmp_path_factory):
    """A corpus, a policy that knows its names, and settings that are quick."""
    folder = tmp_path_factory.mktemp("swap")
    (folder / "calls.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows()), encoding="utf-8")
    names = {c: [] for c in CATEGORIES}
    for chunk in corpus(documents=5, topics=3).chunks:
        for value in chunk.values:
            names[value.category] += [f for f in value.forms if f not in names[value.category]]
    lists = "\n".join(f"{c.upper()} = {json.dumps(sorted(names[c]))}" for c in CATEGORIES)
    policy = f'extends = "swap"\n[detect]\ndetectors = ["rules", "lexicon"]\n[dictionary]\n{lists}\n'
    (folder / "policy.toml").write_text(policy, encoding="utf-8")
    (folder / "quick.toml").write_text(SETTINGS, encoding="utf-8")
    return folder


@pytest.fixture
def swap(run, files, tmp_path, monkeypatch):
    """Runs the command on the corpus in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def call(*args, source="calls.jsonl"):
        common = ("--protect", "company", "--field", "text", "-p", str(files / "policy.toml"))
        settings = () if "-s" in args or "--preset" in args else ("-s", str(files / "quick.toml"))
        return run("swap", str(files / source), *common, *settings, *args)

    return call


def read(path):
    return [json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="session")
def outputs(files, tmp_path_factory):
    """What one run writes."""
    from allonym.cli import main

    folder = tmp_path_factory.mktemp("out")
    options = ("-o", "safe.jsonl", "--plans", "plans.jsonl", "--json", "all.json", "--report", "report.html")
    named = [str(folder / o) if "." in o else o for o in options]
    with pytest.raises(SystemExit) as ended:
        main(["swap", str(files / "calls.jsonl"), "--protect", "company", "--field", "text", "--label", "sector",
              "-p", str(files / "policy.toml"), "-s", str(files / "quick.toml"), "--grid", *named])  # fmt: skip
    assert not ended.value.code
    return folder


def test_the_corpus_comes_back_in_its_format_with_names_exchanged(outputs):
    safe = read(outputs / "safe.jsonl")
    assert [list(r) for r in safe] == [list(r) for r in rows()]
    assert [r["id"] for r in safe] == [r["id"] for r in rows()]
    for old, new in zip(rows(), safe, strict=True):
        assert old["text"] != new["text"]
        name = old["company"].removesuffix(" Plc")
        assert name not in new["text"]
        assert name not in new["company"]
    own = [
        {v.forms[0] for c in corpus(documents=5, topics=3).chunks if c.document == d for v in c.values}
        for d in range(5)
    ]
    came = 0
    for d, new in enumerate(safe):
        others = set().union(*(own[e] for e in range(5) if e != d)) - own[d]
        came += sum(name in new["text"] for name in others)
    assert came > 30


def test_plans_make_the_released_texts(outputs):
    plans = read(outputs / "plans.jsonl")
    safe = read(outputs / "safe.jsonl")
    assert [p["id"] for p in plans] == [r["id"] for r in rows()]
    for plan, new in zip(plans, safe, strict=True):
        operators = {e["operator"].partition("@")[0] for e in plan["edits"]}
        assert "swap" in operators
        assert all("original" not in e for e in plan["edits"])
        released = [e["replacement"] for e in plan["edits"] if e["operator"] == "swap@1"]
        assert released
        assert all(r in new["text"] for r in released)


def test_every_number_is_written(outputs):
    told = json.loads((outputs / "all.json").read_text(encoding="utf-8"))
    assert {"corpus", "settings", "warnings", "populations", "tables", "stability", "mixture", "releases", "frontier",
            "chosen", "population", "why", "attacks", "task", "fallback", "leftover", "outcomes", "grid", "timings"} <= set(told)  # fmt: skip
    assert told["corpus"]["documents"] == 5
    assert 0 < told["corpus"]["changed_words"]["value"] < 0.5
    assert {a["intruder"] for a in told["attacks"]} == {"entities", "words"}
    for attack in told["attacks"]:
        assert attack["before"]["n"] == 2  # runs
    known = next(a for a in told["attacks"] if a["intruder"] == "entities")
    assert known["after"]["value"] < known["before"]["value"]
    assert told["task"]["label"] == "sector"
    assert [(g["clusters"], g["converged"]) for g in told["grid"]] == [(4, True)] * 3 + [(1000, False)] * 3
    chosen = told["releases"][told["chosen"]]
    assert str(round(chosen["swaps"])) in told["why"].replace(",", "")
    assert told["released"]["changed"] == len(told["outcomes"])
    for one in told["outcomes"]:
        assert one["before"] != one["after"]
        assert one["marks"] or one["marks_before"]  # what was removed leaves no mark after
        assert set(one["guessed"]) <= {"entities", "words"}
    assert any(kind == "swap" for one in told["outcomes"] for *_, kind in one["marks"])


def test_the_page_holds_everything_itself(outputs):
    page = (outputs / "report.html").read_text(encoding="utf-8")
    assert page.lstrip().lower().startswith("<!doctype html>")
    assert not re.findall(r"""(?:src|href)=["']https?://""", page)
    assert "entities" in page


def test_nothing_else_is_left_behind(outputs):
    assert sorted(p.name for p in outputs.iterdir()) == ["all.json", "plans.jsonl", "report.html", "safe.jsonl"]


def test_a_second_run_writes_the_same_bytes(outputs, swap, tmp_path):
    done = swap("-o", "safe.jsonl", "--plans", "plans.jsonl", "--workers", "2", "--no-check")
    assert done.code == 0, done.err
    for name in ("safe.jsonl", "plans.jsonl"):
        assert (tmp_path / name).read_bytes() == (outputs / name).read_bytes()


def test_passages_are_released_apart_and_only_the_plans_tell_whose_they_are(swap, tmp_path):
    done = swap("-o", "safe.jsonl", "--plans", "plans.jsonl", "--form", "chunks", "--no-check")
    assert done.code == 0, done.err
    safe, plans = read(tmp_path / "safe.jsonl"), read(tmp_path / "plans.jsonl")
    assert f"{len(safe)} pieces of 5 documents (chunks), apart" in done.err
    assert {tuple(row) for row in safe} == {("id", "text")}
    assert sorted(piece["id"] for plan in plans for piece in plan["pieces"]) == [row["id"] for row in safe]
    assert (tmp_path / "plans.jsonl").stat().st_mode & 0o77 == 0
    assert not any(row["id"] in (tmp_path / "safe.jsonl").read_text(encoding="utf-8") for row in rows())
    refused = swap("-o", "safe.csv", "--form", "parts", "--no-check")
    assert refused.code == 2 and "ends in .jsonl" in refused.err


def test_another_seed_draws_another_release(outputs, swap, tmp_path):
    assert swap("-o", "safe.jsonl", "--seed", "5", "--no-check").code == 0
    assert (tmp_path / "safe.jsonl").read_bytes() != (outputs / "safe.jsonl").read_bytes()


def test_the_summary_is_short_and_names_nobody(swap):
    done = swap("-o", "safe.jsonl")
    assert done.code == 0, done.err
    assert done.out == ""
    lines = [line for line in done.err.splitlines() if not line.startswith("note:")]
    told = {line[:13].strip(): line[13:] for line in lines}
    assert list(told) == [
        "protection",
        "intruders",
        "exchanged",
        "the rest",
        "changed",
        "released",
        "usefulness",
        "rare chunks",
        "guessed",
        "written",
    ]
    assert "The worst of the panel, the " in lines[0] and " intruder, identifies " in lines[0]
    assert all(len(line) < 160 for line in lines)
    assert re.fullmatch(r"[\d,]+ of [\d,]+ names and terms: [A-Z].*", told["exchanged"])
    assert "of 1; a changed chunk keeps 0." in told["usefulness"]
    assert " before, " in told["rare chunks"] and "N =" not in told["rare chunks"]
    assert "by names and terms " in told["guessed"] and "% now; by all words " in told["guessed"]
    names = {f for c in corpus(documents=5, topics=3).chunks for v in c.values for f in v.forms}
    assert not [n for n in names if n in done.err]
    assert swap("-o", "other.jsonl", "-q", "--no-check").err == ""


def test_no_texts_means_no_texts(swap, tmp_path):
    assert swap("--json", "all.json", "--report", "report.html", "--no-texts").code == 0
    names = {f for c in corpus(documents=5, topics=3).chunks for v in c.values for f in v.forms}
    for name in ("all.json", "report.html"):
        text = (tmp_path / name).read_text(encoding="utf-8")
        assert not [n for n in names if n in text]
        assert "Quillmark" not in text


def test_dry_run_writes_nothing_and_shows_the_choice(swap, tmp_path):
    done = swap("--dry-run")
    assert done.code == 0, done.err
    head, *body = done.out.splitlines()
    assert head.split()[:3] == ["categories", "swaps", "chunks"]
    assert sum(line.startswith("chosen") for line in body) == 1
    assert "It is chosen because" in done.out
    assert "nothing was written" in done.err
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_constraints_choose(swap):
    done = swap("--dry-run", "--slope", "1")
    assert "slope 1" in done.out
    done = swap("--dry-run", "--risk-cap", "0.0001", "--population", "1e6", "--categories", "Person=free,Location=free")
    assert done.code == 1
    assert "no release has a risk of at most 0.0001" in done.err


def test_options_override_settings(swap, tmp_path):
    done = swap(
        "--json", "all.json", "--no-check", "--clusters", "3", "--family", "pkbd", "--draws", "1", "--swap-size", "3",
        "--population", "1e9", "--categories", "person=fixed, Event=change", "--seed", "4",
    )  # fmt: skip
    assert done.code == 0, done.err
    told = json.loads((tmp_path / "all.json").read_text(encoding="utf-8"))
    assert told["settings"]["mixture"]["family"] == "pkbd"
    assert told["settings"]["mixture"]["clusters"] == 3
    assert told["settings"]["categories"]["Person"] == "fixed"
    assert told["populations"] == [1e9]
    assert told["settings"]["seed"] == 4
    assert {tuple(r["categories"]) for r in told["releases"]} == {("Organization", "Product", "Location")} or {
        tuple(sorted(r["categories"])) for r in told["releases"]
    } == {("Location", "Organization", "Product")}
    assert told["attacks"] == []


def test_the_papers_protocol(swap, tmp_path):
    done = swap(
        "--preset", "p1", "--embedder", "lsa", "--clusters", "4", "--json", "all.json", "-o", "safe.jsonl", "--no-check"
    )
    assert done.code == 0, done.err
    told = json.loads((tmp_path / "all.json").read_text(encoding="utf-8"))
    assert all(len(r["categories"]) == 2 and r["changed"]["value"] == 2 * r["swaps"] for r in told["releases"])
    assert set(told["fallback"]) <= {"keep"}
    assert told["released"]["changed"] == told["released"]["exchanged"]


def test_an_interrupted_run_goes_on(outputs, swap, tmp_path, monkeypatch):
    searching = importlib.import_module("allonym.swap.release_search")
    real, calls = searching.draw_sequence, []

    def stopping(*args):
        calls.append(args)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return real(*args)

    monkeypatch.setattr(searching, "draw_sequence", stopping)
    done = swap("-o", "safe.jsonl", "--no-check")
    assert done.code == 130
    assert "with --resume to continue" in done.err
    assert [p.name for p in tmp_path.iterdir()] == [".safe.jsonl.allonym-swap"]
    again = swap("-o", "safe.jsonl", "--no-check")
    assert again.code == 2
    assert "an unfinished run lies at" in again.err
    before = len(calls)
    done = swap("-o", "safe.jsonl", "--no-check", "--resume")
    assert done.code == 0, done.err
    assert len(calls) - before < 14
    assert [p.name for p in tmp_path.iterdir()] == ["safe.jsonl"]
    assert (tmp_path / "safe.jsonl").read_bytes() == (outputs / "safe.jsonl").read_bytes()


def test_a_folder_of_texts_with_a_table_of_metadata(run, files, tmp_path):
    calls = tmp_path / "calls"
    calls.mkdir()
    for r in rows():
        (calls / f"{r['id']}.txt").write_text(r["text"], encoding="utf-8")
    table = tmp_path / "calls.csv"
    table.write_text("file,hospital\n" + "".join(f"{r['id']}.txt,{r['company']}\n" for r in rows()), encoding="utf-8")
    done = run("swap", str(calls), "-o", str(tmp_path / "safe"), "--protect", "hospital", "--metadata", str(table),
               "-p", str(files / "policy.toml"), "-s", str(files / "quick.toml"), "--no-check")  # fmt: skip
    assert done.code == 0, done.err
    assert sorted(p.name for p in (tmp_path / "safe").iterdir()) == sorted(p.name for p in calls.iterdir())
    for r in rows():
        text = (tmp_path / "safe" / f"{r['id']}.txt").read_text(encoding="utf-8")
        assert r["company"].removesuffix(" Plc") not in text
        assert text != r["text"]


# What is wrong


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ((), "an output is required"),
        (("-o", "x.jsonl", "--resume", "--dry-run"), "--dry-run writes nothing"),
        (("--dry-run", "-o", "x.jsonl"), "--dry-run writes nothing"),
        (("-o", "x.jsonl", "--no-texts"), "--no-texts requires"),
        (("-o", "x.jsonl", "--offset", "1"), "an offset requires a slope"),
        (("-o", "x.jsonl", "--no-check", "--intruder", "words"), "require --check"),
        (("-o", "x.jsonl", "--categories", "Organisation=swap"), "did you mean: Organization"),
        (("-o", "x.jsonl", "--categories", "Organization=swop"), "did you mean: swap"),
        (("-o", "x.jsonl", "--population", "many"), "--population must be a number, got 'many'"),
        (("-o", "x.jsonl", "--population", "10"), "is smaller than the corpus"),
        (("-o", "x.jsonl", "--clusters", "5000"), "components need as many chunks"),
        (("-o", "x.jsonl", "--embedder", "lsaa"), "did you mean: lsa"),
        (("-o", "x.jsonl", "--intruder", "wrods"), "did you mean: words"),
        (("-o", "x.jsonl", "--report", "x.pdf"), "must end in"),
        (("-o", "x.jsonl", "--json", "x.jsonl"), "named for two outputs"),
        (("-s", "erningz", "-o", "x.jsonl"), "did you mean: earnings"),
    ],
)
def test_what_is_wrong_with_the_call(swap, tmp_path, args, said):
    done = swap(*args)
    assert done.code == 2, done.err
    assert said in done.err
    assert not list(tmp_path.iterdir())


def test_outputs_are_not_overwritten_unless_asked(swap, tmp_path):
    (tmp_path / "safe.jsonl").write_text("mine", encoding="utf-8")
    done = swap("-o", "safe.jsonl")
    assert done.code == 2
    assert (tmp_path / "safe.jsonl").read_text(encoding="utf-8") == "mine"
    assert swap("-o", "safe.jsonl", "--overwrite", "--no-check").code == 0
    assert (tmp_path / "safe.jsonl").read_text(encoding="utf-8") != "mine"


@pytest.mark.parametrize("name", ["calls.jsonl", "meta.csv", "more.jsonl", "quick.toml", "folder/calls.jsonl"])
def test_what_is_read_is_never_overwritten(run, files, tmp_path, name):
    (tmp_path / "folder").mkdir()
    for kept in ("calls.jsonl", "more.jsonl", "folder/calls.jsonl"):
        (tmp_path / kept).write_bytes((files / "calls.jsonl").read_bytes())
    (tmp_path / "quick.toml").write_bytes((files / "quick.toml").read_bytes())
    (tmp_path / "meta.csv").write_text("id,company\n" + "".join(f"{r['id']},{r['company']}\n" for r in rows()))
    before = {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    source = tmp_path / ("folder" if "/" in name else "calls.jsonl")
    for option in ("--json", "--plans"):
        done = run("swap", str(source), "--protect", "company", "--field", "text", "-p", str(files / "policy.toml"),
                   "-s", str(tmp_path / "quick.toml"), "--metadata", str(tmp_path / "meta.csv"),
                   "--background", str(tmp_path / "more.jsonl"), option, str(tmp_path / name), "--overwrite")  # fmt: skip
        assert done.code == 2, done.err
        assert "an input of the run" in done.err
    assert {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()} == before


def test_the_current_folder_may_be_the_target(swap, tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    done = swap("-o", ".", "--no-check")
    assert done.code == 0, done.err
    assert [p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*.jsonl*")] == ["here/calls.jsonl"]
    assert [p.name for p in tmp_path.iterdir()] == ["here"]


@pytest.mark.slow
def test_a_wrong_constraint_keeps_what_was_drawn(outputs, swap, tmp_path):
    done = swap("-o", "safe.jsonl", "--no-check", "--utility-floor", "1.5")
    assert done.code, done.err
    assert list((tmp_path / ".safe.jsonl.allonym-swap").glob("*.json"))
    assert swap("-o", "safe.jsonl", "--no-check", "--resume").code == 0
    assert (tmp_path / "safe.jsonl").read_bytes() == (outputs / "safe.jsonl").read_bytes()
    assert [p.name for p in tmp_path.iterdir()] == ["safe.jsonl"]


def test_no_such_metadata(run, files, tmp_path):
    done = run("swap", str(files / "calls.jsonl"), "--protect", "author", "-o", str(tmp_path / "x.jsonl"))
    assert done.code == 2
    assert "author" in done.err
    assert not list(tmp_path.iterdir())


def test_one_document_only(run, files, tmp_path):
    (tmp_path / "one.jsonl").write_text(json.dumps(rows()[0]) + "\n", encoding="utf-8")
    done = run(
        "swap", str(tmp_path / "one.jsonl"), "--protect", "company", "--dry-run", "-p", str(files / "policy.toml")
    )
    assert done.code == 1
    assert "two" in done.err or "2" in done.err


def test_no_entity_of_any_swapped_category(run, files, tmp_path):
    text = "The weather is fine today and it will stay so. We talk about it a lot, and nothing else is said here. "
    lines = [json.dumps({"id": str(i), "company": f"Firm{i}", "text": f"{text}{i}. " * 3}) + "\n" for i in range(4)]
    (tmp_path / "plain.jsonl").write_text("".join(lines), encoding="utf-8")
    done = run("swap", str(tmp_path / "plain.jsonl"), "--protect", "company", "--field", "text", "--dry-run",
               "-p", str(files / "policy.toml"), "-s", str(files / "quick.toml"))  # fmt: skip
    assert done.code == 1
    assert "nothing can be exchanged" in done.err
    assert "no chunk has an entity of" in done.err


def test_errors_never_quote_the_corpus(run, files, tmp_path):
    rows_ = [
        {"id": f"{i}{MARKER}", "company": MARKER, "text": f"{MARKER} said {MARKER} in {MARKER}."} for i in range(3)
    ]
    (tmp_path / "x.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows_), encoding="utf-8")
    for more in (("--dry-run",), ("--dry-run", "--preset", "p1"), ("-o", str(tmp_path / "y.jsonl"))):
        done = run("swap", str(tmp_path / "x.jsonl"), "--protect", "company", "-p", str(files / "policy.toml"), *more)
        assert done.code in (1, 2)
        assert MARKER not in done.out + done.err


def test_help_has_examples(run):
    done = run("swap", "--help")
    assert done.code == 0
    assert "Examples:" in done.out
    assert "allonym swap calls/ -o safe/ --protect company --report report.html" in done.out
    for name in ("--protect", "--resume", "--dry-run", "--no-check", "--grid", "--key-file"):
        assert name in done.out


def test_the_plan_applies_to_the_document(outputs, files):
    """Where all of a document is chunked and nothing is dropped, its plan alone makes the released text."""
    for plan, row, new in zip(read(outputs / "plans.jsonl"), rows(), read(outputs / "safe.jsonl"), strict=True):
        fields = ("text", "company")
        document = next(d for d in read_documents(files / "calls.jsonl", fields=fields) if d.id == row["id"])
        assert new["text"] in apply(document.text, Plan.from_dict(plan))


def test_a_label_that_is_none_is_told_before_the_work_is_done(swap):
    done = swap("--json", "all.json", "--label", "colour")
    assert done.code == 1 and "no document has the metadata key 'colour'" in done.err
    assert not list(Path().iterdir())


def test_no_repr_shows_a_key_or_a_text():
    from allonym.swap import Settings
    from allonym.swap.run import Result, Run

    run = Run("a", "company", Settings(), key=MARKER.encode())
    assert MARKER not in repr(run) + repr(Result(None, None, {"why": MARKER}))
