"""The embedded tagger as a detector, with the tiny model beside the tests of the models, and with hand-made chances."""

from __future__ import annotations

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.rows import check_each_row

import allonym
from allonym.detection import Detector, detect_each
from allonym.detection.tagger import build_detector, extract_spans, join_name_parts, read_thresholds
from allonym.detection.words import read_common_terms, read_ordinary_words
from allonym.document import Document, Span
from allonym.errors import DataError, UsageError
from allonym.kb import KnowledgeBase
from allonym.models.tagger import Tagged, TaggerModel, _load_tagger, load_tagger
from allonym.models.tags import LABELS, PARTS, list_tag_names
from allonym.models.words import split_words
from allonym.policy import Policy

TINY = Path(__file__).parent.parent / "models/tiny"
TOKENS = [
    "Ann",
    "Lee",
    "smith",
    "London",
    "the",
    "bank of",
    " ",
    " ",
    " ",
    "\n",
    ". ",
    ", ",
    "-",
    "'s",
    "(",
    ")",
    "$300",
    "1999",
    "\u0308",
]
TEXT = st.text(st.characters(), max_size=60)
LONG = st.builds(lambda seed, n: "".join(Random(seed).choices(TOKENS, k=n)), st.integers(0, 9999), st.integers(0, 500))
CHANCE = st.floats(0.01, 0.99)


def policy(point: Any = 0.5, *, folder: Path = TINY, points: dict[str, Any] | None = None, **table: Any) -> Policy:
    return Policy.load("default").with_(
        operating_points={"*": point, **(points or {})}, tables={"tagger": {"model": str(folder), **table}}
    )


@cache
def finder(point: Any = 0.5, **table: Any) -> Detector:
    return build_detector(policy(point, **table))


def found(text: str, point: Any = 0.5, **table: Any) -> list[Span]:
    return list(finder(point, **table)(Document("d", text)))


def said(text: str, tags: str) -> Tagged:
    """Chances as if the network were nearly sure of ``tags``: one of ``O B-x I-x`` a word, or ``B-x:0.6``."""
    borders = split_words(text)
    rows = np.full((len(borders), 1 + 2 * len(LABELS)), 1e-6)
    for row, tag in zip(rows, tags.split(), strict=True):
        name, _, chance = tag.partition(":")
        short = {"F": "PERSON_FIRSTNAME", "L": "PERSON_LASTNAME", "C": "CITY", "ORG": "ORGANIZATION"}
        begin, _, label = name.partition("-")
        at = list_tag_names(LABELS).index(f"{begin}-{short.get(label, label)}" if label else "O")
        row[at] += float(chance or 0.99)
        row[0] += 1 - row.sum()
    return Tagged(borders, np.log(rows).astype(np.float32), np.zeros((len(borders), len(PARTS)), np.float32))


def read(text: str, tags: str, bar: float = 0.5) -> list[Span]:
    return extract_spans(text, said(text, tags), LABELS, dict.fromkeys(LABELS, bar))


def told(text: str, some: list[Span]) -> list[tuple[str, str]]:
    return [(text[s.start : s.end], s.label) for s in some]


# What holds for any text


@given(TEXT | LONG, st.sampled_from([0.2, 0.5, 0.8]), st.booleans())
def test_spans_are_disjoint_and_begin_and_end_with_words(text: str, point: float, name_parts: bool) -> None:
    starts, ends = ({border[i] for border in split_words(text)} for i in (0, 1))
    at = 0
    for span in found(text, point, name_parts=name_parts):
        assert at <= span.start and span.start in starts and span.end in ends
        assert any(c.isalnum() for c in text[span.start : span.end])
        assert 0 <= span.score <= 1 and span.source == "tagger"
        at = span.end


def test_the_tiny_model_finds_a_good_deal() -> None:
    text = "Ann Lee works at the Acme Bank in London. Mr. Smith, 45, is from New York.\n" * 9
    assert 20 < len(found(text)) < 200
    assert len({s.label for s in found(text)}) > 3


@settings(max_examples=12)  # each loads the model several times
@given(st.lists(LONG | TEXT, min_size=1, max_size=3), st.randoms(use_true_random=False))
def test_neither_order_nor_company_nor_threads_nor_repetition_matter(texts: list[str], rng: Any) -> None:
    alone = {text: list(build_fresh()(Document("d", text))) for text in dict.fromkeys(texts)}
    shuffled = [*texts, *texts]
    rng.shuffle(shuffled)
    for some in (finder(0.5), build_fresh(threads=3), build_fresh()):
        documents = [Document(str(i), text) for i, text in enumerate(shuffled)]
        assert detect_each(some, documents) == [alone[text] for text in shuffled]
    shared = build_fresh(threads=2)
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda t: list(shared(Document("d", t))), shuffled)) == [alone[t] for t in shuffled]


def build_fresh(**table: Any) -> Detector:
    _load_tagger.cache_clear()  # nothing is remembered from earlier calls
    return build_detector(policy(**table))


@given(LONG, LONG)
def test_what_stands_windows_away_does_not_matter(text: str, after: str) -> None:
    model = load_tagger(TINY)
    alone, whole = model(text), model(f"{text}\n{after}")
    sure = max(0, len(alone.borders) - 126)  # words of the last window may have other neighbours
    assert (alone.tags[:sure] == whole.tags[:sure]).all()
    assert [*whole.borders[: len(alone.borders)]] == [*alone.borders]


def test_threads_change_no_bit() -> None:
    text = "Ann Lee works at the bank of London, she said.\n" * 200
    one, four = TaggerModel(TINY), TaggerModel(TINY, threads=4)
    assert (one(text).tags == four(text).tags).all()
    assert (one(text).tags == one(text).tags).all()


def test_chances_are_chances() -> None:
    tags = load_tagger(TINY)("Ann Lee works at the bank of London.").tags
    assert np.allclose(np.exp(tags).sum(axis=1), 1, atol=1e-5)


# Bars


@given(TEXT | LONG, CHANCE, CHANCE)
def test_a_lower_bar_never_uncovers_a_word(text: str, one: float, other: float) -> None:
    low, high = sorted((one, other))
    tagged = load_tagger(TINY)(text)
    wide, narrow = (extract_spans(text, tagged, LABELS, dict.fromkeys(LABELS, bar)) for bar in (low, high))
    assert covered(text, narrow) <= covered(text, wide)


@given(LONG, st.sampled_from(LABELS), CHANCE)
def test_a_lower_bar_for_one_label_never_uncovers_a_word(text: str, label: str, bar: float) -> None:
    tagged = load_tagger(TINY)(text)
    high = dict.fromkeys(LABELS, max(bar, 0.6))
    wide, narrow = (extract_spans(text, tagged, LABELS, bars) for bars in ({**high, label: bar}, high))
    assert covered(text, narrow) <= covered(text, wide)


CHANCES = st.builds(
    lambda seed, sharpness: np.random.default_rng(seed).dirichlet(np.full(1 + 2 * len(LABELS), sharpness), 9),
    st.integers(0, 9999),
    st.sampled_from([0.02, 0.1, 1.0]),
)
SEVERAL = st.lists(st.sampled_from(LABELS), min_size=1, unique=True)
WORDS = "aldra birvo cedrin damzel elmar firgo gorzi hazlun ivkor"


def test_a_name_that_may_be_a_person_is_found_where_nobody_looks_for_firms():
    words = "We met Telf and Gribbo"
    borders = split_words(words)
    chances = np.full((len(borders), 1 + 2 * len(LABELS)), 1e-9)
    chances[:, 0] = 1.0
    firm, person = (1 + 2 * LABELS.index(label) for label in ("ORGANIZATION", "PERSON_LASTNAME"))
    for n, chance in ((2, 0.05), (4, 0.001)):
        chances[n, [0, firm, person]] = (0.25 - chance, 0.75, chance)
    parts = np.zeros((len(borders), len(PARTS)), np.float32)
    tagged = Tagged(borders, np.log(chances).astype(np.float32), parts)
    bars = {"PERSON_FIRSTNAME": 0.3, "PERSON_LASTNAME": 0.3}
    assert extract_spans(words, tagged, LABELS, bars) == []
    found = extract_spans(words, tagged, LABELS, bars, rivals={"ORGANIZATION": 0.3})
    assert [(words[s.start : s.end], s.label) for s in found] == [("Telf", "PERSON_LASTNAME")]


@given(CHANCES, SEVERAL, SEVERAL, st.dictionaries(st.sampled_from(LABELS), CHANCE), CHANCE)
def test_who_looks_for_more_labels_never_covers_fewer_words(
    chances: Any, labels: list[str], more: list[str], thresholds: dict[str, float], usual: float
) -> None:
    parts = np.zeros((len(chances), len(PARTS)), np.float32)
    tagged = Tagged(split_words(WORDS), np.log(chances + 1e-9).astype(np.float32), parts)
    few, many = (
        extract_spans(WORDS, tagged, LABELS, {label: thresholds.get(label, usual) for label in some})
        for some in (labels, [*labels, *more])
    )
    assert covered(WORDS, few) <= covered(WORDS, many)
    assert {s.label for s in few} <= set(labels)


def test_chances_under_one_top_level_label_count_together_for_the_label() -> None:
    chances = np.full((2, 1 + 2 * len(LABELS)), 1e-6)
    some = (("PERSON_FIRSTNAME", 0.4), ("CITY", 0.22), ("REGION", 0.2), ("COUNTRY", 0.1))
    for label, chance in some:
        at = list_tag_names(LABELS).index(f"B-{label}")
        chances[:, at] = chance, 1e-6
        chances[:, at + 1] = 1e-6, chance
    chances[:, 0] = 1 - chances.sum(axis=1)
    tagged = Tagged(split_words("Alder Birch"), np.log(chances).astype(np.float32), np.zeros((2, 17), np.float32))
    for wanted, label in ((LABELS, "CITY"), (("PERSON_FIRSTNAME", "REGION"), "PERSON_FIRSTNAME")):
        spans = extract_spans("Alder Birch", tagged, LABELS, dict.fromkeys(wanted, 0.5))
        assert told("Alder Birch", spans) == [("Alder Birch", label)]


@check_each_row(
    "thresholds, wanted",
    [
        ({"PERSON_FIRSTNAME": 0.1}, [("Rowan", "PERSON_FIRSTNAME")]),  # though ORGANIZATION is likelier
        ({"PERSON_FIRSTNAME": 0.3}, []),
        ({"PERSON_FIRSTNAME": 0.3, "PERSON_LASTNAME": 0.3}, [("Rowan", "PERSON_FIRSTNAME")]),  # .2 and .15 together
        ({"PERSON_FIRSTNAME": 0.4, "ORGANIZATION": 0.9}, [("Rowan", "ORGANIZATION")]),  # .2 / .4 + .5 / .9
        ({"PERSON_FIRSTNAME": 0.5, "ORGANIZATION": 0.9}, []),
        ({"ORGANIZATION": 0.4}, [("Rowan", "ORGANIZATION")]),
        ({"CITY": 0.01}, []),
    ],
)
def test_the_chances_of_wanted_labels_count_together(thresholds, wanted) -> None:
    chances = np.full((1, 1 + 2 * len(LABELS)), 1e-6)
    for label, chance in (("PERSON_FIRSTNAME", 0.2), ("PERSON_LASTNAME", 0.15), ("ORGANIZATION", 0.5)):
        chances[0, list_tag_names(LABELS).index(f"B-{label}")] = chance
    chances[0, 0] = 1 - chances.sum()
    tagged = Tagged(split_words("Rowan"), np.log(chances).astype(np.float32), np.zeros((1, len(PARTS)), np.float32))
    assert told("Rowan", extract_spans("Rowan", tagged, LABELS, thresholds)) == wanted


def covered(text: str, some: list[Span]) -> set[tuple[int, int]]:
    borders = [(a, b) for a, b in split_words(text) if text[a].isalnum()]
    return {(a, b) for a, b in borders if any(s.start <= a and b <= s.end for s in some)}


@pytest.mark.parametrize(("bar", "wanted"), [(0.5, ["Ann", "Rome"]), (0.65, ["Rome"]), (0.75, [])])
def test_a_bar_is_compared_with_the_chance_of_being_anything(bar: float, wanted: list[str]) -> None:
    text = "Ann in Rome"
    assert [t for t, _ in told(text, read(text, "B-F:0.6 O B-C:0.7", bar))] == wanted


def test_scores_are_the_mean_chance_of_the_words() -> None:
    (span,) = read("New York", "B-C:0.6 I-C:0.8")
    assert span.score == pytest.approx(0.7, abs=0.001)


@pytest.mark.parametrize(
    ("given_", "city", "other"),
    [
        (policy("high-recall"), 0.125, 0.25),
        (policy("balanced"), 0.5, 0.5),
        (policy("high-precision"), 0.875, 0.75),
        (policy(0.33), 0.33, 0.33),
        (policy("balanced", points={"CITY": "high-recall"}), 0.125, 0.5),
        (policy("balanced", points={"LOCATION": 0.4}), 0.4, 0.5),
        (policy("balanced", points={"LOCATION": 0.4, "CITY": 0.6}), 0.6, 0.5),
    ],
)
def test_operating_points(given_: Policy, city: float, other: float) -> None:
    thresholds = read_thresholds(given_.with_(rules={}, exclude=()), load_tagger(TINY))
    assert thresholds["CITY"] == city
    assert thresholds["ORGANIZATION"] == other
    assert set(thresholds) == set(LABELS)


@check_each_row(
    "labels, exclude, wanted",
    [
        (["PERSON"], [], {"PERSON_FIRSTNAME", "PERSON_LASTNAME"}),
        (["PERSON_LASTNAME"], [], {"PERSON_LASTNAME"}),
        (["LOCATION"], ["COUNTRY"], {"REGION", "CITY", "STREET_ADDRESS", "FACILITY", "LOCATION"}),
        (["US_STATE"], [], {"REGION"}),
        (["DURATION", "CITY"], [], {"DATE", "CITY"}),
        (["EMAIL_ADDRESS"], [], set()),
    ],
)
def test_labels_that_a_policy_does_not_look_for_have_no_threshold(labels, exclude, wanted) -> None:
    only = Policy.only(labels).with_(exclude=tuple(exclude))
    assert set(read_thresholds(only, load_tagger(TINY))) == wanted


def test_the_table_of_an_earlier_version_is_read(tmp_path: Path) -> None:
    folder = broken(tmp_path / "model")
    about = json.loads((folder / "tagger.json").read_text())
    about |= {"points": {"high-recall": {"*": 0.06, "AGE": 0.25}}, "sure": {"high-recall": 0.5}}
    (folder / "tagger.json").write_text(json.dumps(about))
    given_ = policy("high-recall", folder=folder).with_(rules={})
    thresholds = read_thresholds(given_, load_tagger(folder))
    assert (thresholds["CITY"], thresholds["AGE"]) == (0.06, 0.25)


def test_a_label_without_a_threshold_counts_only_where_a_policy_sets_a_number() -> None:
    label = "OTHER_IDENTIFYING_ATTRIBUTE"
    model, shipped = load_tagger(), Policy.load("default")
    assert label not in read_thresholds(shipped, model)
    numbers = {**shipped.operating_points, label: 0.4}
    assert read_thresholds(shipped.with_(operating_points=numbers), model)[label] == 0.4


def test_the_threshold_of_a_rule_goes_before_the_operating_point(tmp_path: Path) -> None:
    file = tmp_path / "p.toml"
    file.write_text(
        f"schema = 1\n[detect]\ndetectors = ['tagger']\noperating_point = 0.2\n[detect.tagger]\nmodel = '{TINY}'\n"
        "[rules.LOCATION]\noperator = 'tag'\nthreshold = 0.6\n[rules.CITY]\noperator = 'tag'\nthreshold = 0.7\n"
    )
    thresholds = read_thresholds(Policy.load(file), load_tagger(TINY))
    assert (thresholds["CITY"], thresholds["COUNTRY"], thresholds["EVENT"]) == (0.7, 0.6, 0.2)


def test_a_policy_runs_it(tmp_path: Path) -> None:
    file = tmp_path / "p.toml"
    file.write_text(f"schema = 1\n[detect]\ndetectors = ['tagger']\n[detect.tagger]\nmodel = '{TINY}'\n")
    text = "Ann Lee works at the Acme Bank in London."
    assert [s for s in allonym.detect(text, file) if s.source == "tagger"]


# Spans of chances


@check_each_row(
    "text, tags, wanted",
    [
        ("in Rome .", "O B-C O", [("Rome", "CITY")]),
        ("New York Paris", "B-C I-C B-C", [("New York", "CITY"), ("Paris", "CITY")]),
        ("Acme Rome", "B-ORG B-C", [("Acme", "ORGANIZATION"), ("Rome", "CITY")]),
        ("Rome, Acme", "B-C I-C B-ORG", [("Rome", "CITY"), ("Acme", "ORGANIZATION")]),
        ("in Rome", "O I-C", [("Rome", "CITY")]),
        ("$ 5", "B-MONEY I-MONEY", [("$ 5", "MONEY")]),
        ("5 %.", "B-QUANTITY I-QUANTITY I-QUANTITY", [("5 %", "QUANTITY")]),
        ('"Rome"', "B-C I-C I-C", [("Rome", "CITY")]),
        ("in Bogota\u0301", "O B-C", [("Bogota\u0301", "CITY")]),
        ("x " * 26 + "Rome\n2. Acme", "O " * 26 + "B-C I-C I-C I-C", [("Rome", "CITY"), ("2. Acme", "CITY")]),
        ("...", "B-C", []),
        ("- ( %", "B-C I-C I-C", []),
        ("", "", []),
    ],
)
def test_spans(text: str, tags: str, wanted: list[tuple[str, str]]) -> None:
    assert told(text, read(text, tags)) == wanted


@check_each_row(
    "text, tags, wanted",
    [
        ("Ann Lee left", "B-F B-L O", ["Ann Lee"]),
        ("Ann", "B-F", ["Ann"]),
        ("Lee", "B-L", ["Lee"]),
        ("Ann Mary Lee", "B-F B-F B-L", ["Ann Mary Lee"]),
        ("Ann B. Lee", "B-F I-F O B-L", ["Ann B. Lee"]),
        ("Ann Smith-Lee", "B-F B-L O B-L", ["Ann Smith-Lee"]),
        ("Ann O'Hara", "B-F B-L O B-L", ["Ann O'Hara"]),
        ("Ann Lee Bob Roy", "B-F B-L B-F B-L", ["Ann Lee", "Bob Roy"]),
        ("Ann\nLee", "B-F B-L", ["Ann", "Lee"]),
        (
            "x x x x x x x x x x x x x x x x x x x x x x x x x x Ann\nLee",
            "O O O O O O O O O O O O O O O O O O O O O O O O O O B-F B-L",
            ["Ann\nLee"],
        ),
        ("Ann\n\nLee", "B-F B-L", ["Ann", "Lee"]),
        ("Ann, Bob", "B-F O B-F", ["Ann", "Bob"]),
        ("Ann and Bob", "B-F O B-F", ["Ann", "Bob"]),
        ("Lee Ann", "B-L B-F", ["Lee Ann"]),
        ("Ann Rome Lee", "B-F B-C B-L", ["Ann", "Lee"]),
        ("Geo. Smith", "B-F O B-L", ["Geo. Smith"]),
        ("met Liz. Ann left", "O B-F O B-F O", ["Liz", "Ann"]),
        ("née Lee", "B-L I-L", ["Lee"]),
        ("saw Judge Lee", "O B-F B-L", ["Lee"]),
        ("Jack Lord left", "B-F B-L O", ["Jack Lord"]),
        ("met Clara Nilsen. Demir left", "O B-F B-L O B-L O", ["Clara Nilsen", "Demir"]),
    ],
)
def test_name_parts_become_whole_names(text: str, tags: str, wanted: list[str]) -> None:
    parts = read(text, tags)
    whole = [s for s in join_name_parts(text, parts) if s.label != "CITY"]
    assert [text[s.start : s.end] for s in whole] == wanted
    assert {s.label for s in whole} == {"PERSON"}
    assert covered(text, parts) <= covered(text, join_name_parts(text, parts))


@given(LONG)
def test_name_parts_apart_or_whole_cover_the_same_words(text: str) -> None:
    apart, whole = found(text, name_parts=True), found(text)
    one, other = ({(a, b) for a, b in covered(text, some) if b - a > 1} for some in (apart, whole))
    assert one == other  # a lone letter counts beside a name only
    assert not {"PERSON_FIRSTNAME", "PERSON_LASTNAME"} & {s.label for s in whole}
    assert "PERSON" not in {s.label for s in apart}


def test_who_looks_for_last_names_alone_finds_them() -> None:
    text = "Ann Lee works at the Acme Bank in London. Mr. Smith, 45, is from New York.\n" * 9
    only = Policy.only(["PERSON_LASTNAME"]).with_(operating_points={"*": 0.5}, tables={"tagger": {"model": str(TINY)}})
    got = list(build_detector(only)(Document("d", text)))
    assert len(got) > 8
    assert {s.label for s in got} == {"PERSON_LASTNAME"}
    assert covered(text, got) <= covered(text, found(text))


def test_labels_that_are_not_looked_for_go_to_their_parent_or_away() -> None:
    text = "Ann Lee works at the Acme Bank in London. Mr. Smith, 45, is from New York.\n" * 9
    only = Policy.only(["LOCATION"]).with_(operating_points={"*": 0.5}, tables={"tagger": {"model": str(TINY)}})
    got = list(build_detector(only)(Document("d", text)))
    assert len(got) > 8
    assert {s.label for s in got} == {"LOCATION"}
    assert covered(text, got) <= covered(text, found(text))


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("three years", "DURATION"),
        ("about two to three weeks", "DURATION"),
        ("a few days", "DURATION"),
        ("2.5 hours", "DURATION"),
        ("ten-minute", "DURATION"),
        ("May 1999", "DATE"),
        ("two years ago", ""),
        ("today", ""),
        ("42 * 17", ""),
        ("third of may nineteen seventy", "DATE"),
        ("the 1990s", "DATE"),
        ("Monday", "DATE"),
    ],
)
def test_lengths_of_time_are_durations(text: str, wanted: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tags = " ".join(["B-DATE", *["I-DATE"] * (len(split_words(text)) - 1)])
    model = load_tagger(TINY)
    monkeypatch.setattr(TaggerModel, "__call__", lambda self, text: said(text, tags))
    assert model.labels == LABELS
    assert [s.label for s in build_detector(policy().with_(exclude=()))(Document("d", text))] == [wanted] * bool(wanted)


COMMON = [
    ("Chief complaint: cough", "B-OCCUPATION O O O", []),
    ("We use Postgres here", "O O B-PRODUCT O", []),
    ("takes Donepezil 5 mg daily", "O B-PRODUCT I-PRODUCT I-PRODUCT O", []),
    ("has Parkinson's disease now", "O B-L O O O O", []),
    ("Romberg negative today", "B-L O O", []),
    ("Dr Romberg wrote", "O B-L O", ["Romberg"]),
    ("Mr Slack left", "O B-L O", ["Slack"]),
    ("Post it on Slack please", "O O O B-C O", []),
    ("Postgres Ltd grew", "B-ORG I-ORG O", ["Postgres Ltd"]),
]


@pytest.mark.parametrize(("text", "tags", "wanted"), COMMON)
def test_common_terms_are_no_names(text: str, tags: str, wanted: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TaggerModel, "__call__", lambda self, text: said(text, tags))
    got = build_detector(policy())(Document("d", text))
    assert [text[s.start : s.end] for s in got] == wanted


@pytest.mark.parametrize(
    ("text", "tags", "wanted"),
    [
        ("We crossed the mountains today", "O O O B-LOCATION:0.5 O", []),
        ("We crossed the Mountains today", "O O O B-LOCATION:0.5 O", ["Mountains"]),
        ("We crossed the mountains today", "O O O B-LOCATION:0.7 O", ["mountains"]),
        ("Scour was there. We saw it", "B-ORG:0.5 O O O O O O", ["Scour"]),
        ("Records were there. We saw it", "B-ORG:0.5 O O O O O O", []),
        ("the bank of Elmford here", "O B-ORG:0.5 I-ORG:0.5 I-ORG:0.5 O", ["bank of Elmford"]),
        ("we crossed the mountains today", "O O O B-LOCATION:0.5 O", ["mountains"]),
        ("The Greek press loved it", "O B-ORIGIN:0.9 B-ORG:0.5 O O", ["Greek"]),
        ("we met Ann Lee of Quill", "O O B-F B-L I-L:0.45 O", ["Ann", "Lee"]),
        ("we met Ann Lee of Quill", "O O B-F B-L I-L:0.7 O", ["Ann", "Lee of"]),
    ],
)
def test_ordinary_words_need_capitals_or_a_better_chance(text: str, tags: str, wanted: list[str]) -> None:
    assert [text[s.start : s.end] for s in read(text, tags, 0.4)] == wanted


def test_lists_of_common_terms_hold_no_frequent_family_names() -> None:
    surnames = set("smith johnson baker may grant frank hope bell graham parkinson crohn hodgkin".split())
    assert not surnames & read_common_terms() and not surnames & read_ordinary_words()


def test_terms_that_are_given_names_too_are_listed_as_such() -> None:
    kb = KnowledgeBase.open()
    terms = (term for term in read_common_terms() - read_common_terms("also_names") if term.isalpha())
    assert not [t for t in terms if any(fact.part == "first" for fact in kb.name_facts(t.capitalize()))]


def test_people_named_like_a_medicine_or_a_program_are_found() -> None:
    text = "I told Yasmin about it. Then Tia came. Pip left early."
    found = {text[s.start : s.end] for s in allonym.detect(text, "default")}
    assert found == {"Yasmin", "Tia", "Pip"}


# What can be wrong


def test_the_embedded_model_is_for_english() -> None:
    with pytest.raises(UsageError, match=r"knows English, the policy '.*' is for 'de'"):
        build_detector(Policy.load("default").with_(language="de"))


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"nowhere: no such folder"):
        build_detector(policy(folder=tmp_path / "nowhere"))


FILES = ("tagger.json", "tagger.onnx", "words.npy", "word_scales.npy", "vocab.txt")


def broken(folder: Path) -> Path:
    return Path(shutil.copytree(TINY, folder))


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_is_told(tmp_path: Path, name: str) -> None:
    folder = broken(tmp_path / "model")
    (folder / name).unlink()
    with pytest.raises(DataError, match=str(folder)):
        build_detector(policy(folder=folder))


@pytest.mark.parametrize(
    ("name", "content"),
    [(name, content) for name in FILES for content in (b"\xff\xfe nothing of the kind", b"[]", b"")],
)
def test_a_broken_file_is_told(tmp_path: Path, name: str, content: bytes) -> None:
    folder = broken(tmp_path / "model")
    (folder / name).write_bytes(content)
    with pytest.raises(DataError, match=str(folder)):
        build_detector(policy(folder=folder))


def test_a_model_of_another_version_is_told(tmp_path: Path) -> None:
    folder = broken(tmp_path / "model")
    file = folder / "tagger.json"
    file.write_text(file.read_text().replace('"format": 1', '"format": 2'))
    with pytest.raises(DataError, match="format 2, this version reads 1"):
        build_detector(policy(folder=folder))


CANARY = "Xylophonia"


def test_nothing_that_is_shown_holds_the_text(tmp_path: Path) -> None:
    model = TaggerModel(TINY)
    tagged = model(f"{CANARY} Lee lives in {CANARY}.")
    find = build_detector(policy(0.1))
    shown = (model, tagged, find, find(Document("d", CANARY)), vars(model)["_embed"], vars(model)["_embed"].pieces)
    assert CANARY.lower() not in " ".join(map(repr, shown)).lower()


def test_a_model_that_does_not_fit_its_table_says_nothing_of_the_text(tmp_path: Path) -> None:
    folder = broken(tmp_path / "model")
    file = folder / "tagger.json"
    file.write_text(file.read_text().replace('"AGE",', ""))
    with pytest.raises(DataError) as caught:
        allonym.detect(f"{CANARY} Lee", policy(folder=folder).with_(detectors=("tagger",)))
    assert CANARY not in str(caught.value) + repr(caught.value) + repr(caught.value.__context__)


def test_no_finding_goes_on_in_the_next_turn():
    talk = Document.conversation("", [(None, "x " * 30 + "Ann"), (None, "Lee")])
    turns = [turn.start for turn in talk.turns]
    for tags in ("O " * 30 + "B-F B-L", "O " * 30 + "B-C I-C"):
        tagged = said(talk.text, tags)
        for borders, wanted in (((), ["Ann\nLee"]), (turns, ["Ann", "Lee"])):
            some = extract_spans(talk.text, tagged, LABELS, dict.fromkeys(LABELS, 0.5), turns=borders)
            assert [talk.text[s.start : s.end] for s in join_name_parts(talk.text, some, borders)] == wanted
    talk = Document.conversation("", [("Pam", " ".join(["Tom Stone"] * 5)), (None, "Tom Stone")])
    found = allonym.detect(talk)
    assert found and not [s for s in found if "\n" in talk.text[s.start : s.end]]
