"""spaCy's CNN from scratch: it learns a tiny corpus, writes a model that spaCy loads, and goes on where it stopped."""

from __future__ import annotations

import json

import pytest

from allonym.document import Span
from allonym.errors import DataError, MissingExtra, UnknownNameError, UsageError
from allonym.train import spacy_backend
from allonym.train.records import make_record
from allonym.train.score import score_model
from allonym.train.spacy_backend import Options, fit, load, make_config

spacy = pytest.importorskip("spacy")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning"),
]

FIRST = ["Ada", "Cyd", "Eve", "Pam", "Jim", "Ina"]
LAST = ["Brook", "Dale", "Farrow", "Quill"]
CITY = ["Elmford", "Oakham", "Ashby"]
SMALL = {"width": 16, "depth": 1, "rows": 200, "hidden_width": 16, "batch": 60, "patience": 0, "lr": 0.01}


def sentence(n):
    name = f"{FIRST[n % 6]} {LAST[n % 4]}"
    city = CITY[n % 3]
    text = f"Today {name} went to {city} by train."
    at = text.index(city)
    return make_record("", str(n), text, [(6, 6 + len(name), "PERSON"), (at, at + len(city), "CITY")])


TRAIN = [sentence(n) for n in range(24)]
DEV = [sentence(n) for n in range(24, 32)]


def test_it_learns_what_is_easy(tmp_path):
    rows = []
    made = fit(TRAIN, DEV, tmp_path / "model", options=Options(**SMALL, epochs=8), report=rows.append)
    assert [row["epoch"] for row in rows] == list(range(1, 9))
    assert made["labels"] == ["CITY", "PERSON"]
    assert made["f1"] == max(row["f1"] for row in rows) > 0.9
    assert rows[made["best"] - 1]["f1"] == made["f1"]
    predict = load(tmp_path / "model")
    assert score_model(predict, DEV).strict.f1 == made["f1"]
    (spans,) = predict(["Today Ada Brook went to Oakham by train."])
    assert spans == [Span(6, 15, "PERSON", 1.0, "spacy"), Span(24, 30, "CITY", 1.0, "spacy")]
    assert spacy.load(tmp_path / "model").pipe_names == ["ner"]
    assert {p.name for p in (tmp_path / "model").iterdir()} == {"config.cfg", "meta.json", "ner", "tokenizer", "vocab"}


def test_the_model_lists_no_word_of_the_text(tmp_path):
    fit(TRAIN, DEV, tmp_path, options=Options(**SMALL, epochs=1))
    everything = b"".join(p.read_bytes() for p in tmp_path.rglob("*") if p.is_file())
    assert b"PERSON" in everything
    long = [word for word in (*LAST, *CITY) if len(word) > 4]  # shorter ones may stand in the weights by chance
    assert not [word for word in long if word.encode() in everything]


def test_a_run_that_goes_on_gives_what_a_whole_run_gives(tmp_path):
    whole, halves = [], []
    options = Options(**SMALL, epochs=4, dropout=0.3)
    fit(TRAIN, DEV, tmp_path / "whole", options=options, report=whole.append)

    def stop(row):
        halves.append(row)
        if row["epoch"] == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit(TRAIN, DEV, tmp_path / "halves", options=options, report=stop)
    with pytest.raises(UsageError, match="the interrupted run had other options"):
        fit(TRAIN, DEV, tmp_path / "halves", options=Options(**SMALL, epochs=5), resume=True)
    fit(TRAIN, DEV, tmp_path / "halves", options=options, report=halves.append, resume=True)
    assert halves == whole
    models = [(tmp_path / name / "ner" / "model").read_bytes() for name in ("whole", "halves")]
    assert models[0] == models[1]
    assert not (tmp_path / "halves" / ".resume").exists()


def test_training_ends_when_nothing_gets_better(tmp_path):
    rows = []
    options = Options(**{**SMALL, "patience": 2, "lr": 1e-9}, epochs=9)
    made = fit(TRAIN, DEV, tmp_path, options=options, report=rows.append)
    assert (len(rows), made["epochs"], made["best"]) == (3, 3, 1)


def test_the_configuration_holds_the_options_and_is_one_that_spacy_trains_with(tmp_path):
    options = Options(language="pl", lr=0.0006121, hidden_width=32, dropout=0.08, maxout_pieces=3, batch=256, seed=5)
    text = make_config(options).to_str()
    read = spacy.util.load_config(write(tmp_path / "config.cfg", text), interpolate=True)
    assert read["nlp"]["lang"] == "pl"
    assert read["components"]["ner"]["model"]["hidden_width"] == 32
    assert read["components"]["ner"]["model"]["maxout_pieces"] == 3
    assert read["training"]["optimizer"]["learn_rate"] == 0.0006121
    assert (read["training"]["dropout"], read["training"]["batcher"]["size"], read["training"]["seed"]) == (
        0.08,
        256,
        5,
    )
    filled = spacy.util.load_model_from_config(read, auto_fill=True).config
    resolved = spacy.util.registry.resolve(filled["training"], schema=spacy.schemas.ConfigSchemaTraining)
    assert resolved["max_epochs"] == 30


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def test_spans_grow_to_tokens_and_shed_blanks(tmp_path):
    text = "DrAda  met \nCyd\n now"
    records = [make_record("", "1", text, [(2, 5, "PER"), (11, 16, "PER"), (12, 15, "FIRST")])]
    nlp = spacy.blank("en")
    (example,), moved = spacy_backend._make_examples(nlp, records)
    assert [(e.text, e.label_) for e in example.reference.ents] == [("DrAda", "PER"), ("Cyd", "PER")]
    assert moved == 2


def test_words_end_at_marks_in_the_model_too(tmp_path):
    text = "(nhc-36/8_b., H.) d'Ada"
    records = [make_record("", "1", text, [(5, 7, "ID"), (14, 15, "SEX"), (20, 23, "PER")])]
    nlp = spacy.blank("es")
    assert spacy_backend._make_examples(nlp, records)[1] > 0
    spacy_backend.make_tokenizer_split_marks(nlp)
    (example,), moved = spacy_backend._make_examples(nlp, records)
    words = ["(", "nhc", "-", "36", "/", "8", "_", "b", ".", ",", "H", ".", ")", "d", "'", "Ada"]
    assert [token.text for token in example.reference] == words
    assert moved == 0
    assert fit(records, [], tmp_path, options=Options(**SMALL, language="es", epochs=1))["moved"] == 0
    assert [token.text for token in spacy.load(tmp_path)(text)] == words
    assert fit(records, [], tmp_path, options=Options(**SMALL, language="es", epochs=1, split=False))["moved"] > 0


@pytest.mark.parametrize(
    ("records", "options", "error", "told"),
    [
        ([make_record("", "1", "no names", [])], Options(), DataError, "no training data"),
        ([], Options(), DataError, "no training data"),
        (TRAIN, Options(language="plx"), UnknownNameError, "did you mean: .*pl"),
    ],
)
def test_what_cannot_be_trained(tmp_path, records, options, error, told):
    with pytest.raises(error, match=told):
        fit(records, [], tmp_path, options=options)


def test_no_model_and_no_spacy(tmp_path, monkeypatch):
    with pytest.raises(DataError, match=r"config\.cfg is missing"):
        load(tmp_path)
    monkeypatch.setitem(__import__("sys").modules, "spacy", None)
    with pytest.raises(MissingExtra, match=r"\[spacy\]"):
        fit(TRAIN, DEV, tmp_path, options=Options())


def test_the_state_of_a_run_is_json(tmp_path):
    def stop(row):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit(TRAIN, DEV, tmp_path, options=Options(**SMALL, epochs=2), report=stop)
    state = json.loads((tmp_path / ".resume" / "state.json").read_text(encoding="utf-8"))
    assert (state["epoch"], state["options"]["epochs"]) == (1, 2)
    assert set(state["updates"].values()) == {max(state["updates"].values())}
