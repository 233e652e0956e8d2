"""Utility loss, construct loss, identified texts against others, and all of it in one call, one section, one command."""

import json
import math
import random
import subprocess
import sys

import pytest

from allonym.errors import DataError, UnknownNameError, UsageError
from allonym.evaluate import construct_loss, contrasts, information_loss, placeholders, utility_loss
from allonym.evaluate.downstream_use import average_over_splits
from allonym.evaluate.information import count_parts_of_speech, open_tagger
from allonym.report import html, markdown
from allonym.report.evaluate.utility import information_section
from allonym.report.page import Bars, Page, Table, Tag
from allonym.stats.bayes import compare_paired
from allonym.stats.samples import average

GOOD = ["a warm and lovely film", "brave, bright and funny", "we loved the tender ending", "a lovely, funny evening"]
BAD = ["a dull and clumsy film", "grey, slow and tired", "we hated the clumsy ending", "a dull, slow evening"]


def corpus(n=60, seed=0):
    """Reviews with a name each, the same with tags, and whether they are good; the words tell, the names do not."""
    draw = random.Random(seed)
    before, after, labels = [], [], []
    for i in range(n):
        said = draw.choice(GOOD if i % 2 else BAD)
        name = draw.choice(["Ada Brook", "Cyd Dale", "Eve Farrow"])
        before.append(f"{said} by {name}. No {i} cats.")
        after.append(f"{said} by [PERSON_1]. No {i} cats.")
        labels.append("good" if i % 2 else "bad")
    return before, after, labels


# Utility loss


def test_what_the_label_hangs_on_is_kept():
    found = utility_loss(*corpus(), repeats=5)
    assert found.before.value == found.after.value == 1
    assert found.loss.value == 0 and found.loss.low <= 0 <= found.loss.high
    assert (found.texts, found.classes, found.repeats) == (60, 2, 5)
    assert found.chance.value == 0.5


def test_what_the_label_hangs_on_is_gone():
    before, _, labels = corpus(100)
    found = utility_loss(before, [f"[PERSON_1] number {i}" for i in range(100)], labels, repeats=6)
    assert found.loss.value > 0.3 and found.loss.low > 0
    assert found.reading.endswith("anonymised texts are worse")
    back = utility_loss([f"number {i}" for i in range(100)], before, labels, repeats=6)
    assert back.loss.high < 0 and back.reading.endswith("better")


def test_the_same_texts_lose_nothing_whatever_they_are():
    """Splits are shared by both versions: otherwise chance would tell them apart."""
    draw = random.Random(1)
    texts = [" ".join(draw.choices("abcdefgh", k=6)) for _ in range(80)]
    labels = [draw.choice("xyz") for _ in texts]
    found = utility_loss(texts, texts, labels, repeats=4)
    assert found.loss == average_over_splits([0.0] * 4, 1) and found.macro_loss.value == 0
    assert "includes 0" in found.reading


def test_the_interval_allows_for_overlapping_splits():
    values = [0.01, 0.02, 0.0, 0.03, 0.015]
    plain, wide = average(values), average_over_splits(values, 0.25)
    assert wide.value == plain.value
    assert (wide.high - wide.low) / (plain.high - plain.low) == pytest.approx(math.sqrt(1 + 5 * 0.25))


def test_groups_stay_on_one_side():
    """Each author has words of his own that give the label away: worth nothing for authors that were not seen."""
    authors = [f"author{i // 4}" for i in range(80)]
    labels = ["x" if (i // 4) % 2 else "y" for i in range(80)]
    texts = [f"signed {a} {a} {a}" for a in authors]
    apart = utility_loss(texts, texts, labels, groups=authors, repeats=5)
    mixed = utility_loss(texts, texts, labels, repeats=5)
    assert mixed.before.value == 1 and apart.before.value < 0.8
    assert apart.by_group and not mixed.by_group and math.isnan(mixed.random_loss.value)
    blank = ["signed" for _ in texts]
    beside = utility_loss(texts, blank, labels, groups=authors, repeats=5)
    assert beside.random_loss == utility_loss(texts, blank, labels, repeats=5).loss
    text = markdown(Page("", (information_section({"utility": beside.to_dict()}),)))
    assert (
        "whole subjects are held out" in text and "In random splits of single texts, as Kleinberg et al. 2022" in text
    )


def test_the_encoder_as_a_classifier():
    before, after, labels = corpus(24)
    assert utility_loss(before, after, labels, model="encoder", repeats=2).before.value > 0.7


@pytest.mark.parametrize(
    ("labels", "reason"),
    [
        (["a"] * 6, "one class only"),
        (["a"] * 5 + ["b"], "a class has one text only"),
        ([None, ""] * 3, "no text has a label"),
    ],
)
def test_what_cannot_be_learnt_has_no_number(labels, reason):
    found = utility_loss(["x y"] * 6, ["x y"] * 6, labels)
    assert math.isnan(found.loss.value) and reason in found.loss.method and reason in found.reading
    assert found.to_dict()["before"]["value"] is None


def test_texts_without_words_are_guessed():
    found = utility_loss(["."] * 20, ["!"] * 20, ["a", "b"] * 10, repeats=3)
    assert found.before.value == found.after.value == 0.5


def test_utility_refuses():
    with pytest.raises(DataError, match="one value for each text"):
        utility_loss(["a"], ["b"], [])
    with pytest.raises(UsageError, match="two repeats"):
        utility_loss(*corpus(8), repeats=1)
    with pytest.raises(UsageError, match="between 0 and 1"):
        utility_loss(*corpus(8), test=1)
    with pytest.raises(UnknownNameError, match="linear"):
        utility_loss(*corpus(8), model="linaer")


# Construct loss


def capitals(text):
    """Words in capitals are proper nouns, full stops punctuation, the rest nouns."""
    out, at = [], 0
    for word in text.split():
        start = text.index(word, at)
        at = start + len(word)
        out.append((start, at, "PUNCT" if word == "." else "PROPN" if word[0].isupper() else "NOUN"))
    return out


def test_counts_before_and_after():
    before = ["Ada met Cyd .", "the Dale cat .", "one dog Eve ran ."]
    after = ["[PERSON_1] met [PERSON_2] .", "the [PERSON_1] cat .", "one dog [PERSON_1] ran ."]
    found = construct_loss(before, after, tagger=capitals)
    rows = {c.part: c for c in found.counts}
    assert list(rows) == ["WORDS", "NOUN", "PROPN", "PUNCT"]
    assert found.placeholders == 4 and found.test == "paired"
    assert rows["PROPN"].before.value == pytest.approx(4 / 3) and rows["PROPN"].after.value == 0
    assert rows["NOUN"].after.value == pytest.approx(rows["NOUN"].before.value + 4 / 3)
    assert rows["PROPN"].mapped.value == rows["PROPN"].before.value
    assert rows["PROPN"].bayes == compare_paired([2, 1, 1], [0, 0, 0])
    assert rows["PROPN"].mapped_bayes.reason == "no pair differs"


def test_a_placeholder_is_one_word_whatever_the_tagger_makes_of_it():
    text = "PERSON_FIRSTNAME_1 met [DATE_2]"
    words = [(0, 6, "NOUN"), (6, 7, "PUNCT"), (7, 16, "NOUN"), (16, 18, "NUM"), (19, 22, "VERB"),
             (23, 24, "PUNCT"), (24, 28, "PROPN"), (28, 30, "NUM"), (30, 31, "PUNCT")]  # fmt: skip
    read, mapped = count_parts_of_speech(words, placeholders(text))
    assert read == {"NOUN": 1, "VERB": 1, "PROPN": 1}
    assert mapped == {"PROPN": 1, "VERB": 1, "NUM": 1}
    assert count_parts_of_speech([], placeholders(text)) == ({"X": 2}, {"PROPN": 1, "NUM": 1})


def test_the_embedded_tagger_and_mapping_back():
    names = [("Ada", "Brook"), ("Cyd", "Dale"), ("Eve", "Farrow"), ("Ann", "Hill")] * 5
    before = [f"{a} {b} walked home with {a}." if i % 2 else f"{a} walked home." for i, (a, b) in enumerate(names)]
    after = ["PERSON_FIRSTNAME_1 PERSON_LASTNAME_1 walked home with PERSON_FIRSTNAME_1." if i % 2 else
             "PERSON_FIRSTNAME_1 walked home." for i in range(20)]  # fmt: skip
    steps = []
    found = construct_loss(before, after, advance=lambda *s: steps.append(s))
    rows = {c.part: c for c in found.counts}
    assert rows["PROPN"].mapped.value == pytest.approx(rows["PROPN"].before.value, abs=0.2)
    assert rows["PROPN"].after.value < rows["PROPN"].mapped.value and rows["PROPN"].bayes.log > math.log(3)
    assert steps[-1] == (40, 40)
    assert construct_loss(before, after, threads=2) == found


def test_pairs_and_groups_are_other_tests():
    before = [f"{'word ' * (i % 5 + 1)}." for i in range(40)]
    after = [b.replace("word", "Word", 1) for b in before[:20]] + before[20:]
    pairs, groups = (construct_loss(before, after, tagger=capitals, independent=i) for i in (False, True))
    assert (pairs.test, groups.test) == ("paired", "unpaired")
    assert pairs.counts[1].bayes.log > groups.counts[1].bayes.log


def test_construct_refuses():
    with pytest.raises(DataError, match="required"):
        construct_loss([], [])
    with pytest.raises(UsageError, match="scale"):
        construct_loss(["a"], ["a"], scale=0)
    with pytest.raises(UsageError, match="embedded or spacy:MODEL"):
        open_tagger("spacy")
    with pytest.raises(DataError, match="not universal: NN"):
        construct_loss(["a"], ["a"], tagger=lambda t: [(0, 1, "NN")])
    empty = construct_loss(["."], [""], tagger=lambda t: [])
    assert math.isnan(empty.counts[0].before.value) and empty.counts[0].bayes.reading == "not measured"


@pytest.mark.slow
def test_spacy_by_name(tmp_path):
    spacy = pytest.importorskip("spacy")
    with pytest.raises(UsageError, match="cannot load"):
        open_tagger("spacy:no_such_pipeline")
    nlp = spacy.blank("en")
    nlp.add_pipe("attribute_ruler").add([[{"LOWER": {"REGEX": "[a-z]+"}}]], {"POS": "NOUN"})
    ruler = nlp.get_pipe("attribute_ruler")
    ruler.add([[{"IS_PUNCT": True}]], {"POS": "PUNCT"})
    nlp.to_disk(tmp_path / "rules")
    assert open_tagger(f"spacy:{tmp_path / 'rules'}")("Ada ran.") == [(0, 3, "NOUN"), (4, 7, "NOUN"), (7, 8, "PUNCT")]
    spacy.blank("en").to_disk(tmp_path / "blank")
    with pytest.raises(UsageError, match="no parts of speech"):
        open_tagger(f"spacy:{tmp_path / 'blank'}")


# Identified against the others


def test_contrasts_point_as_in_p3():
    found = contrasts({"removed": [3.0, 5.0, 1.0, 2.0, math.nan]}, [False, False, True, True, True])
    (one,) = found
    assert (one.hidden.value, one.found.value) == (4, 1.5)
    assert one.hidden_sd.value == pytest.approx(2**0.5) and one.d.value > 0
    assert one.found.n == 2


def test_contrasts_of_one_group_have_no_number():
    (one,) = contrasts({"x": [1.0, 2.0]}, [True, None])
    assert math.isnan(one.hidden.value) and math.isnan(one.d.value)
    with pytest.raises(DataError, match="x: one value for each text"):
        contrasts({"x": [1.0]}, [True, False])


# All of it


@pytest.fixture(scope="module")
def found():
    before, after, labels = corpus(24)
    seen = [i % 3 == 0 for i in range(24)]
    return information_loss(before, after, labels, seen, repeats=3, tagger=capitals)


def test_all_measures_in_one_call(found):
    told = found.to_dict()
    assert json.loads(json.dumps(told, allow_nan=False)) == told
    assert told["surface"]["removed"]["value"] > 0 and told["utility"]["loss"]["value"] is not None
    assert [c["name"] for c in told["contrasts"]][:2] == ["share removed", "frequency rank, original"]
    assert len(told["contrasts"]) == 6 and told["skipped"] == {}
    assert told["construct"]["scale"] == pytest.approx(2**-0.5)


def test_parts_are_left_out_and_said(found):
    before, after, _ = corpus(6)
    steps = []
    some = information_loss(before, after, measures=("surface", "utility"), advance=lambda *s: steps.append(s))
    assert some.utility is None and some.construct is None and some.similarity is None
    assert some.skipped == {"utility": "needs a label for each text"}
    assert steps == [(1000, 1000)]
    with pytest.raises(UnknownNameError, match="perplexity"):
        information_loss(before, after, measures=("perplexety",))
    with pytest.raises(DataError, match="required"):
        information_loss([], [])


def test_the_report(found):
    section = information_section(found.to_dict())
    page = Page("t", (section,))
    bars = [b for b in page.blocks() if isinstance(b, Bars)]
    assert [name for name, _ in bars[1].guides] == ["3 to 1 for a change", "3 to 1 for none"]
    assert all(abs(b.value) <= 10 for g in bars[1].groups for b in g.bars if b.value == b.value)
    tables = [b for b in page.blocks() if isinstance(b, Table)]
    titles = {t.title for t in tables}
    assert {"Identified texts against the others", "Parts of speech before and after"} <= titles
    made = html(page)
    assert "3 to 1 for none" in made and "guide reference" in made
    assert "3 to 1 for none" in markdown(page)
    for secret in ("Ada", "Farrow", "lovely", "clumsy"):
        assert secret not in made


def test_the_report_of_little():
    assert information_section({}) is None
    one = information_loss(["Ada ran."], ["[PERSON_1] ran."], ["x"], measures=("surface", "construct", "utility"))
    page = Page("t", (information_section(one.to_dict()),))
    tags = [
        c.text for t in page.blocks() if isinstance(t, Table) for r in t.rows for c in r.cells if isinstance(c, Tag)
    ]
    assert "two pairs are required" in tags
    assert "one class only" in html(page)


def pairs_file(tmp_path):
    before, after, labels = corpus(20)
    path = tmp_path / "pairs.jsonl"
    rows = [
        {"id": f"d{i}", "text": b, "safe": a, "mood": m, "found": i % 4 == 0}
        for i, (b, a, m) in enumerate(zip(before, after, labels, strict=True))
    ]
    path.write_text("".join(json.dumps(r) + "\n" for r in rows), "utf-8")
    return path


def command(path, *args, cwd, seed="0"):
    import os

    env = {**os.environ, "PYTHONPATH": "src", "PYTHONHASHSEED": seed}
    root = str(__import__("pathlib").Path(__file__).resolve().parents[2])
    line = [sys.executable, "-m", "allonym", "evaluate", "information", str(path), "--anonymised-field", "safe", *args]
    env["PYTHONPATH"] = f"{root}/src"
    return subprocess.run(line, capture_output=True, text=True, cwd=cwd, env=env, timeout=120)


@pytest.mark.slow
def test_the_command(tmp_path):
    path = pairs_file(tmp_path)
    told = []
    for seed in ("1", "2"):
        done = command(
            path, "--labels", "mood", "--identified", "found", "--repeats", "3", "--json", f"out{seed}.json",
            "--report", f"out{seed}.html", cwd=tmp_path, seed=seed,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        told.append((tmp_path / f"out{seed}.json").read_text("utf-8"))
    assert told[0] == told[1]
    assert json.loads(told[0])["information"]["utility"]["repeats"] == 3
    assert "share of words, placeholders" in done.stdout and "PROPN" in done.stdout and "Cohen's d" in done.stdout
    page = (tmp_path / "out1.html").read_text("utf-8")
    assert "Information loss" in page and "Farrow" not in page and "Farrow" not in done.stdout + done.stderr


def test_the_command_refuses(tmp_path):
    path = pairs_file(tmp_path)
    done = command(path, "--identified", "mood", "--measure", "surface", cwd=tmp_path)
    assert done.returncode == 1 and "yes or no" in done.stderr and "good" not in done.stderr
    done = command(path, "--model", "linea", cwd=tmp_path)
    assert done.returncode == 2 and "linear" in done.stderr
    done = command(path, "--tagger", "spacy", cwd=tmp_path)
    assert done.returncode == 2 and "spacy:MODEL" in done.stderr
