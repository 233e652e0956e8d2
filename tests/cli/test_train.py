"""``allonym train``: each command from files to report, its options, and what it says where something is missing."""

from __future__ import annotations

import csv
import json
import re
import shlex
import shutil
from pathlib import Path

import click
import pytest

from allonym import cli
from allonym.errors import write_install_command
from allonym.train.records import make_record, read_records, write_jsonl

ROOT = Path(__file__).resolve().parents[2]
FIRST = ["Ada", "Cyd", "Eve", "Pam", "Jim", "Ina"]
LAST = ["Brook", "Dale", "Farrow", "Quill"]
CITY = ["Elmford", "Oakham", "Ashby"]
SMALL = ("--set", "width=16", "--set", "depth=1", "--set", "rows=200", "--set", "hidden_width=16", "--batch", "60")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")


def sentence(n):
    name, city = f"{FIRST[n % 6]} {LAST[n % 4]}", CITY[n % 3]
    text = f"On day {n} {name} went to {city}."
    a, b = text.index(name), text.index(city)
    return make_record("", f"s{n}", text, [(a, a + len(name), "PER"), (b, b + len(city), "GPE")])


@pytest.fixture
def corpus(tmp_path):
    path = tmp_path / "corpus.jsonl"
    write_jsonl(path, [sentence(n) for n in range(40)])
    return path


def test_density(run, corpus, tmp_path):
    (tmp_path / "news.conll").write_text("Ada B-PER\nran O\n", encoding="utf-8")
    done = run("train", "density", str(corpus), str(tmp_path / "news.conll"))
    assert done.code == 0
    rows = {line.split("  ")[0]: line.split()[-3:] for line in done.out.splitlines()}
    assert rows["documents"] == ["40", "1", "41"]
    assert rows["PER"] == [f"{1000 * 40 / 360:.2f}", "500.00", f"{1000 * 41 / 362:.2f}"]
    assert rows["GPE"][1] == "-"
    done = run("train", "density", str(corpus), "--json")
    assert json.loads(done.out)["labels"]["PER"] == {"spans": 40, "per_1000": 1000 * 40 / 360}


def test_split(run, corpus, tmp_path):
    done = run("train", "split", str(corpus), "--output", str(tmp_path / "parts"))
    assert done.code == 0
    parts = [read_records(tmp_path / "parts" / f"{name}.jsonl") for name in ("train", "dev", "test")]
    assert [len(part) for part in parts] == [32, 4, 4]
    assert sorted(r["id"] for part in parts for r in part) == sorted(r["id"] for r in read_records(corpus))
    assert done.out.splitlines()[1].split() == ["train", "32", "32", "288", "64"]
    again = run(
        "train", "split", str(corpus), "--output", str(tmp_path / "other"), "--seed", "1", "--parts", "50/25/25"
    )
    assert again.code == 0
    assert len(read_records(tmp_path / "other" / "train.jsonl")) == 20
    done = run(
        "train", "split", str(corpus), "--output", str(tmp_path / "few"), "--richest", "10", "--first-words", "4"
    )
    assert all(len(r["spans"]) <= 1 for r in read_records(tmp_path / "few" / "train.jsonl"))
    assert len(read_records(tmp_path / "few" / "train.jsonl")) == 8


@pytest.mark.slow
def test_training_spacy(run, corpus, tmp_path):
    pytest.importorskip("spacy")
    out = tmp_path / "out"
    done = run(
        "train", "ner", str(corpus), "--backend", "spacy", "--output", str(out), "--epochs", "8", "--lr", "0.01", *SMALL
    )
    assert done.code == 0, done.err
    assert [line.partition("  ")[0] for line in done.err.splitlines()] == [
        f"spacy: epoch {n} of 8" for n in range(1, 9)
    ]
    report = json.loads((out / "report.json").read_text(encoding="utf-8"))
    assert report["parts"]["train"] == {"documents": 32, "records": 32, "words": 288, "entities": 64}
    told = report["backends"]["spacy"]
    assert (told["options"]["lr"], told["options"]["width"], told["options"]["batch"]) == (0.01, 16, 60)
    assert len(told["epochs"]) == 8
    assert told["test"]["strict"]["f1"] > 0.8
    rows = {" ".join(line.split()[:-1]): line.split()[-1] for line in done.out.splitlines()}
    assert rows["measure"] == "spacy"
    assert rows["F1, whole spans"] == f"{told['test']['strict']['f1']:.4f}"
    assert {"F1 B-PERSON", "F1 I-PERSON", "F1 B-LOCATION"} <= set(rows)
    assert (out / "spacy" / "config.cfg").exists()
    words = {*FIRST, *LAST, *CITY}
    assert not [w for w in words if w in done.out + done.err + (out / "report.json").read_text(encoding="utf-8")]


@pytest.mark.slow
def test_own_labels_label_map_and_own_parts(run, corpus, tmp_path):
    pytest.importorskip("spacy")
    few = ["--backend", "spacy", "--epochs", "1", "-q", *SMALL]
    done = run("train", "ner", str(corpus), *few, "--own-labels", "--output", str(tmp_path / "own"))
    assert done.code == 0, done.err
    assert done.err == ""
    assert labels(tmp_path / "own") == ["GPE", "PER"]
    (tmp_path / "map.toml").write_text('GPE = ["CITY"]\nPER = []\n', encoding="utf-8")
    done = run(
        "train", "ner", str(corpus), *few, "--label-map", str(tmp_path / "map.toml"), "--output", str(tmp_path / "mapped"),
        "--dev", str(corpus), "--test", str(corpus),
    )  # fmt: skip
    assert done.code == 0, done.err
    assert labels(tmp_path / "mapped") == ["CITY"]
    report = json.loads((tmp_path / "mapped" / "report.json").read_text(encoding="utf-8"))
    assert [report["parts"][name]["records"] for name in ("train", "dev", "test")] == [40, 40, 40]


def labels(out):
    return json.loads((out / "report.json").read_text(encoding="utf-8"))["backends"]["spacy"]["made"]["labels"]


@pytest.mark.slow
def test_training_the_tagger(run, corpus, tmp_path):
    for name in ("torch", "safetensors", "onnx", "onnxruntime"):
        pytest.importorskip(name)
    from tests.models.make_tiny import write_encoder

    encoder = write_encoder(tmp_path / "encoder")
    call = ["train", "ner", str(corpus), "--encoder", str(encoder), "--output", str(tmp_path / "out")]
    done = run(*call, "--epochs", "2", "--batch", "256", "--set", "bf16=false", "--set", "speech=0")
    assert done.code == 0, done.err
    assert done.err.count("tagger: epoch") == 2
    report = json.loads((tmp_path / "out" / "report.json").read_text(encoding="utf-8"))
    told = report["backends"]["tagger"]
    assert (told["options"]["bf16"], told["options"]["speech"], told["options"]["epochs"]) == (False, 0.0, 2)
    assert told["test"]["tags"]["B-PERSON"]["gold"] == told["test"]["tags"]["B-LOCATION"]["gold"] == 4
    assert set(told["test"]["spans"]) <= {"PERSON", "LOCATION"}  # what the corpus cannot judge is not counted
    assert (tmp_path / "out" / "tagger" / "tagger.onnx").exists()
    assert done.out.startswith("measure")


@pytest.fixture
def tiny_copy(tmp_path):
    """A folder with the tiny tagger, a folder with a corpus, and a recipe that lists it."""
    from tests.models.make_tiny import TINY

    records = [{**sentence(n), "id": f"s{n}"} for n in range(300)]
    write_jsonl(tmp_path / "data" / "mine.jsonl", records)
    (tmp_path / "mine.toml").write_text('[[source]]\npath = "mine.jsonl"\nkind = "diaries"\n', encoding="utf-8")
    return Path(shutil.copytree(TINY, tmp_path / "model"))


@pytest.mark.slow
def test_a_recipe_with_a_last_stage(run, tiny_copy, tmp_path):
    torch = pytest.importorskip("torch")
    from tests.models.make_tiny import write_encoder

    (tmp_path / "two.toml").write_text(
        "[options]\nepochs = 1\nbatch = 256\nbf16 = false\n\n[finish]\nshare = 0.5\nepochs = 2\nlr = 1e-4\n\n"
        '[[source]]\npath = "mine.jsonl"\nwhole = true\n',
        encoding="utf-8",
    )
    encoder = write_encoder(tmp_path / "encoder")
    call = ("train", "ner", "--recipe", str(tmp_path / "two.toml"), "--data", str(tmp_path / "data"))
    call += ("--encoder", str(encoder), "--output", str(tmp_path / "out"))
    done = run(*call)
    assert done.code == 0, done.err
    work = tmp_path / "out" / "work"
    stages = [
        (work / name).read_text(encoding="utf-8").splitlines() for name in ("epochs.jsonl", "finish/epochs.jsonl")
    ]
    assert [len(rows) for rows in stages] == [1, 2]
    first, last = (
        torch.load(file, weights_only=True)["model"] for file in (work / "best.pt", work / "finish" / "best.pt")
    )
    assert any(not first[name].equal(value) for name, value in last.items())
    weights = (tmp_path / "out" / "tagger.onnx").read_bytes()
    (work / "finish" / "checkpoint.pt").unlink()  # cut off between the stages
    assert run(*call, "--resume").code == 0
    assert (tmp_path / "out" / "tagger.onnx").read_bytes() == weights
    done = run(*call[:6], "--base", str(tiny_copy), "--output", str(tmp_path / "further"))
    assert done.code == 0, done.err
    assert not (tmp_path / "further" / "work" / "best.pt").exists()  # the last stage alone
    assert (tmp_path / "further" / "tagger.onnx").read_bytes() != (tiny_copy / "tagger.onnx").read_bytes()


@pytest.mark.slow
def test_calibrating_a_tagger(run, tiny_copy, tmp_path):
    pytest.importorskip("torch")
    file = tiny_copy / "tagger.json"
    before = json.loads(file.read_text(encoding="utf-8"))
    call = ("train", "calibrate", str(tiny_copy), "--data", str(tmp_path / "data"))
    done = run(*call, "--recipe", str(tmp_path / "mine.toml"))
    assert done.code == 0, done.err
    after = json.loads(file.read_text(encoding="utf-8"))
    assert {name for name in after if after[name] != before.get(name)} == {"temperature", "points", "measured"}
    shares = [after["measured"][point]["diaries"]["covered"] for point in ("high-recall", "balanced", "high-precision")]
    assert [share >= least for share, least in zip(shares, (0.99, 0.98, 0.95), strict=True)] == [True] * 3
    assert "diaries" in done.out and f"{100 * shares[1]:.1f}" in done.out
    assert not [w for w in {*FIRST, *LAST, *CITY} if w in done.out + done.err + file.read_text(encoding="utf-8")]
    (tmp_path / "none.toml").write_text('[[source]]\npath = "mine.jsonl"\nwhole = true\n', encoding="utf-8")
    none = run(*call, "--recipe", str(tmp_path / "none.toml"))
    assert (none.code, "no source keeps documents" in none.err) == (1, True)


@pytest.fixture
def one_thread():
    """Threads wait for each other longer than so small a network takes."""
    torch = pytest.importorskip("torch")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.slow
def test_training_a_tagger_further(run, corpus, tmp_path, monkeypatch, one_thread):
    for name in ("safetensors", "onnx", "onnxruntime"):
        pytest.importorskip(name)
    from tests.models.make_tiny import TINY

    from allonym.train import build

    monkeypatch.setattr(build, "_LEAST_REHEARSED", 10)
    out = tmp_path / "out"
    quick = ["--epochs", "6", "--lr", "0.003", "--batch", "256"]
    quick += [a for o in ("bf16=false", "head_lr=0.01", "average=0", "dropout=0", "swap=0") for a in ("--set", o)]
    done = run("train", "ner", str(corpus), "--base", str(TINY), "--output", str(out), *quick)
    assert done.code == 0, done.err
    assert done.err.count("tagger: epoch") == 6
    assert done.out.splitlines()[0].split() == ["measure", "tagger", "before", "tagger", "after"]
    report = json.loads((out / "report.json").read_text(encoding="utf-8"))
    told = report["backends"]["tagger"]
    assert (report["parts"]["train"]["records"], told["made"]["trained_on"]["records"]) == (32, 32)
    assert (told["made"]["base"], told["options"]["lr"]) == ("tiny", 0.003)
    assert told["test"]["strict"]["f1"] > told["before"]["strict"]["f1"]
    assert told["test"]["covered"] > told["before"]["covered"]
    words = {*FIRST, *LAST, *CITY}
    assert not [w for w in words if w in done.out + done.err + (out / "report.json").read_text(encoding="utf-8")]
    policy = tmp_path / "policy.toml"
    policy.write_text(f'extends = "default"\n[detect.tagger]\nmodel = "{out / "tagger"}"\n', encoding="utf-8")
    used = run("anonymize", str(corpus), "-o", str(tmp_path / "safe.jsonl"), "--policy", str(policy))
    assert used.code == 0, used.err


@pytest.mark.slow
def test_side_by_side(run, corpus, tmp_path, monkeypatch):
    pytest.importorskip("spacy")
    from allonym.train import mitie_backend

    trained = []

    def fit(records, dev, out, *, options, report, resume):
        trained.append((len(records), options.beta))
        return {"epochs": 1, "f1": 1.0}

    monkeypatch.setattr(mitie_backend, "fit", fit)
    monkeypatch.setattr(mitie_backend, "load", lambda folder: lambda texts: [[] for _ in texts])
    both = ["--backend", "spacy", "--compare", "mitie", "--epochs", "1", "--set", "beta=0.7", *SMALL]
    done = run("train", "ner", str(corpus), *both, "--output", str(tmp_path))
    assert done.code == 0, done.err
    assert trained == [(32, 0.7)]
    assert done.out.splitlines()[0].split() == ["measure", "spacy", "mitie"]
    report = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert list(report["backends"]) == ["spacy", "mitie"]
    assert report["backends"]["mitie"]["test"]["strict"]["recall"] == 0


@pytest.mark.slow
def test_search(run, corpus, tmp_path):
    for name in ("spacy", "optuna", "matplotlib", "sklearn"):
        pytest.importorskip(name)
    space = tmp_path / "space.toml"
    space.write_text(
        "[lr]\nlow = 0.0001\nhigh = 0.01\nlog = true\n[dropout]\nlow = 0.0\nhigh = 0.5\n", encoding="utf-8"
    )
    out = tmp_path / "search"
    small = [*SMALL[:-2], "--set", "batch=60", "--set", "epochs=1"]
    call = ["train", "search", str(corpus), "--backend", "spacy", "--space", str(space), "--output", str(out), *small]
    done = run(*call, "--trials", "2")
    assert done.code == 0, done.err
    assert done.err.count("trial ") >= 2
    assert {line.split()[0] for line in done.out.splitlines()} == {"option", "lr", "dropout"}
    done = run(*call, "--trials", "3")
    rows = list(csv.DictReader((out / "trials.csv").read_text(encoding="utf-8").splitlines()))
    assert [row["trial"] for row in rows] == ["0", "1", "2"]
    best = json.loads((out / "best.json").read_text(encoding="utf-8"))
    assert best["score"] == pytest.approx(max(float(row["score"]) for row in rows), abs=1e-6)
    assert {p.name for p in out.iterdir()} == {
        "best.json", "importance.csv", "parallel.png", "parallel.svg", "study.db", "trials.csv",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (["ner", "--output", "x"], "a FILE is required"),
        (["ner", "--output", "x", "--recipe", "english", "--data", "y"], "a recipe requires --encoder"),
        (["ner", "CORPUS", "--output", "x", "--encoder", "/no/such/folder"], "no such folder"),
        (["ner", "CORPUS", "--output", "x", "--backend", "spacy", "--set", "drop-out=1"], "did you mean: dropout"),
        (["ner", "CORPUS", "--output", "x", "--backend", "mitie", "--epochs", "3"], "unknown option of mitie 'epochs'"),
        (["ner", "CORPUS", "--output", "x", "--backend", "spacy", "--set", "width=wide"], "a whole number is required"),
        (["ner", "CORPUS", "--output", "x", "--backend", "spacy", "--set", "width"], "must be NAME=VALUE"),
        (["ner", "CORPUS", "--output", "x", "--backend", "spacy", "--parts", "80/20"], "three shares such as 80/10/10"),
        (
            ["ner", "CORPUS", "--output", "x", "--backend", "spacy", "--min-words", "99"],
            "no documents are left for training",
        ),
        (["ner", "CORPUS", "--output", "x", "--recipe", "english"], "--recipe cannot be combined"),
        (["ner", "--output", "x", "--recipe", "english"], "--recipe needs --data"),
        (["ner", "CORPUS", "--output", "x", "--data", "y"], "--data requires --recipe"),
        (["ner", "CORPUS", "--output", "x", "--base", "english", "--encoder", "y"], "give one of them"),
        (["ner", "CORPUS", "--output", "x", "--base", "english", "--backend", "spacy"], "requires the backend tagger"),
        (["ner", "CORPUS", "--output", "x", "--base", "englsh"], "unknown tagger 'englsh'"),
        (["density", "CORPUS", "--columns", "0"], "two columns such as 0,-1"),
        (["density", "CORPUS", "--format", "jsonlines"], "did you mean: jsonl"),
    ],
)
def test_what_is_wrong_is_told(run, corpus, tmp_path, monkeypatch, args, told):
    if "tagger" in told or "folder" in told:
        pytest.importorskip("torch")
    if {"spacy", "mitie"} & set(args):
        pytest.importorskip("spacy")
    monkeypatch.chdir(tmp_path)
    done = run("train", *(str(corpus) if arg == "CORPUS" else arg for arg in args))
    assert done.code == 2
    assert told in done.err
    assert not (tmp_path / "x").exists()


def test_broken_data_is_told_without_its_text(run, tmp_path):
    path = tmp_path / "bad.jsonl"
    path.write_text('{"text": "Zaphrandel"\n', encoding="utf-8")
    done = run("train", "density", str(path))
    assert done.code == 1
    assert "bad.jsonl:1: not JSON" in done.err
    assert "Zaphrandel" not in done.err


@pytest.mark.parametrize(
    ("module", "args", "extra"),
    [("spacy", ["ner", "--backend", "spacy"], "spacy"), ("mitie", ["ner", "--backend", "mitie"], "mitie"),
     ("optuna", ["search", "--backend", "spacy"], "train")],
)  # fmt: skip
def test_a_missing_extra_names_the_command(run, corpus, tmp_path, monkeypatch, module, args, extra):
    monkeypatch.setitem(__import__("sys").modules, module, None)
    done = run("train", args[0], str(corpus), *args[1:], "--output", str(tmp_path / "x"))
    assert done.code == 2
    assert write_install_command(extra) in done.err


def test_the_page_shows_commands_and_options_that_exist():
    page = (ROOT / "docs" / "how-to" / "train-a-tagger.md").read_text(encoding="utf-8")
    calls = re.findall(r"^allonym (train [^#\n]+(?:\\\n[^#\n]+)*)", page, re.MULTILINE)
    assert len(calls) >= 6
    used = set()
    for call in calls:
        words = shlex.split(call.replace("\\\n", " "))
        command: click.Command | None = cli.app
        while isinstance(command, click.Group):
            command = command.get_command(click.Context(command), words.pop(0))
        assert command is not None, call
        used.add(command.name)
        known = {name for p in command.params for name in p.opts}
        assert {w for w in words if re.match(r"-{1,2}[a-z]", w)} <= known, call
    assert used == {"ner", "calibrate", "split", "density", "search"}
