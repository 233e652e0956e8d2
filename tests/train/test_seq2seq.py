"""Parallel corpora, and models that are trained on them: what is learned, resumed, measured and used."""

from __future__ import annotations

import json
import random

import pytest

from allonym.cli import main
from allonym.document import Document
from allonym.errors import DataError, UsageError
from allonym.policy import Policy, Rule
from allonym.replace.rewriter import LENGTH
from allonym.train.parallel import Pair, make_pairs, split_pairs

KEY = b"a key only for the tests, 32 byte"
FIRST = "Ada Ben Cleo Dan Eva Finn Gwen Hugo Iris Jack Kate Liam".split()
OTHER = "Mia Noah Olga Paul Rosa Sam Tina Udo Vera Walt Xena Yuri".split()


def policy():
    return Policy(name="p", detectors=("lexicon",), default=Rule("tag", {"style": "{label} {n}"}))


def named(names, text):
    return Document("", text, {"people": names})


def test_pairs_hold_what_the_policy_does():
    rules = policy().with_(default=Rule("suppress", {"replacement": "Somebody"}), metadata={"PERSON": ("people",)})
    text = "Ada came. " + "Nothing else happened that day in the whole of the little town. " * 4 + "Then Ben left."
    found = list(make_pairs([named(["Ada", "Ben"], text), named(["Cleo"], "Cleo slept.")], rules, None))
    assert "".join(p.source for p in found if p.document == 0).replace(" ", "") == text.replace(" ", "")
    assert found[0].source.startswith("Ada came.") and found[0].target.startswith("Somebody came.")
    assert found[0].places == ((0, 3),)
    assert [p.target for p in found if p.document == 1] == ["Somebody slept."]
    assert all(len(p.source) <= LENGTH for p in found)
    assert "Ada" not in repr(found)


def test_tags_are_nothing_to_learn():
    rules = policy().with_(metadata={"PERSON": ("people",)})
    found = list(make_pairs([named(["Ada"], "Ada came.\n" + "It rained all day long. " * 8)], rules, None))
    assert found and not any("PERSON" in p.target or "Ada" in p.source for p in found)


def test_no_document_is_on_both_sides():
    found = [Pair(str(i), str(i), (), i // 3) for i in range(30)]
    train, held = split_pairs(found, 0.2, 1)
    assert len(held) == 6 and len(train) == 24
    assert not {p.document for p in train} & {p.document for p in held}
    assert split_pairs(found[:3], 0.2, 1) == (found[:3], [])


# With torch


def corpus(n, seed):
    """Sentences about people, each with another name in its place."""
    rng = random.Random(seed)
    out = []
    for i in range(n):
        who, new = rng.choice(FIRST), rng.choice(OTHER)
        before, behind = rng.choice(("", "Then ", "So ")), rng.choice((" came.", " left us.", " saw it."))
        place = (len(before), len(before) + len(who))
        out.append(Pair(before + who + behind, before + new + behind, (place,), i))
    return out


@pytest.fixture(scope="module")
def training():
    pytest.importorskip("torch", reason="torch is not installed")
    pytest.importorskip("transformers", reason="transformers is not installed")
    from allonym.train import seq2seq

    return seq2seq


def start(training, pairs, causal=False):
    return training.create_model(
        "tiny", [t for p in pairs for t in (p.source, p.target)], causal=causal, seed=1, tokens=32
    )


def options(training, **more):
    return training.Options(**{"lr": 3e-3, "batch": 16, "tokens": 32, "rows": 2, "steps": 100, **more})


@pytest.fixture(scope="module")
def trained(training, tmp_path_factory):
    out = tmp_path_factory.mktemp("model")
    train, held = corpus(200, 1), corpus(20, 2)
    rows = training.fit(start(training, train), train, held, out, options=options(training))
    return out, rows


@pytest.mark.slow
def test_it_learns_to_replace_names(trained):
    out, rows = trained
    assert [row["step"] for row in rows] == [0, 50, 100]
    assert rows[0]["kept"] > 0.5  # it begins as a copier
    assert rows[-1]["loss"] < rows[0]["loss"] / 2
    assert rows[-1]["usable"] > 0.8
    assert rows[-1]["leaked"] == 0.0
    assert rows[-1]["kept"] > 0.9
    assert json.loads((out / "learning.json").read_text("utf-8")) == rows
    assert not (out / "checkpoint.pt").exists()


@pytest.mark.slow
def test_the_operator_uses_it(trained):
    from allonym.document import Entity, Span
    from allonym.plan import apply
    from allonym.replace import make_plan

    out, _ = trained
    rules = Policy(name="p", default=Rule("seq2seq", {"model": str(out)}))
    text = "Then Gwen left us."
    document = Document("1", text)
    plan = make_plan(document, [Entity("PERSON:gwen", "PERSON", (Span(5, 9, "PERSON"),))], rules, key=KEY)
    new = apply(document, plan)
    assert new.split()[1] in OTHER and new.replace(new.split()[1], "Gwen") == text


@pytest.mark.slow
def test_an_interrupted_run_goes_on_as_it_would_have(training, tmp_path):
    train, held = corpus(40, 1), corpus(8, 2)
    settings = options(training, steps=8, rows=2)
    whole = training.fit(start(training, train), train, held, tmp_path / "whole", options=settings)

    class Stopped(Exception):
        pass

    def stop(done, total):
        if done == 6:
            raise Stopped

    where = tmp_path / "parts"
    with pytest.raises(Stopped):
        training.fit(start(training, train), train, held, where, options=settings, report_step=stop)
    rows = training.fit(start(training, train), train, held, where, options=settings, resume=True)
    assert rows[:2] == whole[:2]
    assert rows[-1]["loss"] == pytest.approx(whole[-1]["loss"], abs=1e-6)
    other = options(training, steps=9, rows=2)
    with pytest.raises(Stopped):
        training.fit(start(training, train), train, held, where, options=settings, report_step=stop)
    with pytest.raises(UsageError, match="other options"):
        training.fit(start(training, train), train, held, where, options=other, resume=True)


@pytest.mark.slow
def test_causal_models_learn_and_are_loaded_as_such(training, tmp_path):
    from allonym.replace.rewriter import load_rewriter

    train, held = corpus(60, 1), corpus(8, 2)
    rows = training.fit(
        start(training, train, causal=True), train, held, tmp_path, options=options(training, steps=30, rows=1)
    )
    assert rows[-1]["loss"] < rows[0]["loss"]
    model = load_rewriter(str(tmp_path))
    assert model.causal
    alone = [model.rewrite([p.source])[0] for p in held[:4]]
    assert model.rewrite([p.source for p in held[:4]]) == alone  # what fills a batch up changes nothing


@pytest.mark.slow
def test_nothing_to_learn_is_an_error(training, tmp_path):
    same = [Pair("a b", "a b", ())]
    with pytest.raises(DataError, match="changes no passage"):
        training.fit(start(training, corpus(4, 1)), same, [], tmp_path, options=options(training))
    with pytest.raises(UsageError, match="tiny, small, base"):
        training.create_model("huge", [], causal=False, seed=1)


@pytest.mark.slow
def test_a_missing_model_is_told_plainly(training, tmp_path):
    from allonym.replace.rewriter import load_rewriter

    with pytest.raises(DataError, match="cannot load the model"):
        load_rewriter(str(tmp_path / "none"))
    with pytest.raises(UsageError, match="option model"):
        load_rewriter("")


@pytest.mark.slow
def test_command(training, tmp_path, capsys):
    texts = tmp_path / "texts"
    texts.mkdir()
    for i, name in enumerate(FIRST):
        (texts / f"{i}.txt").write_text(f"{name} Smith came to see us. Then {name} left again.\n", encoding="utf-8")
    (tmp_path / "p.toml").write_text(
        'schema = 1\nextends = "pseudonyms"\n[detect]\ndetectors = ["lexicon"]\nlabels = ["PERSON"]\n'
        f"[dictionary]\nPERSON = {json.dumps([f'{n} Smith' for n in FIRST])}\n",
        encoding="utf-8",
    )
    (tmp_path / "key").write_bytes(KEY)
    call = ["train", "seq2seq", str(texts), str(tmp_path / "out"), "--policy", str(tmp_path / "p.toml")]
    call += ["--key-file", str(tmp_path / "key")]

    def run(*more):
        try:
            code = main([*call, *more])
        except SystemExit as end:
            code = end.code
        return code, capsys.readouterr().err

    code, told = run("--from-scratch", "tiny", "--steps", "2", "--dev", "0.2")
    assert not code, told
    assert (tmp_path / "out" / "model.safetensors").exists() and (tmp_path / "out" / "learning.json").exists()
    assert "step 2 of 2" in told
    code, told = run("--model", str(tmp_path / "out"), "--steps", "1", "-q")
    assert not code, told
    assert "step" not in told
    for wrong in ([], ["--model", "x", "--from-scratch", "tiny"], ["--model", "x", "--causal"]):
        assert run(*wrong)[0] == 2
