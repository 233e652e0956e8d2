import json
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allonym.errors import DataError, KnowledgeBaseError, UsageError
from allonym.evaluate import sheets as sh
from allonym.evaluate.people import (
    Judgement,
    Truth,
    list_reason_words,
    list_truths_and_judgements,
    people_study,
    read_descriptions,
    select_top_terms,
)
from allonym.evaluate.sheets import Subject, deal_hands, fictitious_people, read_subjects
from allonym.intruder.persons import Answer
from allonym.report.evaluate.intruders import people_section
from allonym.report.html_page import html
from allonym.report.page import Page


def yes(text, judge, name, reason="", knowledge=""):
    return Judgement(text, judge, Answer(True, (name,) if name else (), reason, knowledge))


def no(text, judge, knowledge="", name=""):
    return Judgement(text, judge, Answer(False, (name,) if name else (), "", knowledge))


TRUTHS = [
    Truth("a", "Orla Brandreth", "famous"),
    Truth("b", "Orla Brandreth", "famous"),
    Truth("c", "Ivo Quist", "made"),
]


def test_similarity_is_averaged_before_the_cut():
    """Two of three right judges do not make an identified text: (1 + 1 + 0) / 3 < 0.75."""
    said = [
        yes("a", "1", "Orla Brandreth"),
        yes("a", "2", "orla brandreth"),
        no("a", "3"),
        yes("b", "1", "Orla Brandreth"),
    ]
    found = people_study(TRUTHS, said)
    a, b = found.results.rows
    assert a.similarity == pytest.approx(2 / 3) and not a.identified and a.judgements == 3
    assert b.similarity == 1 and b.identified
    assert found.results.all.identified.value == 0.5
    assert found.unread == 1
    assert found.per_text.value == 2 and found.found_by_any.value == 1
    loose = people_study(TRUTHS, said, cut=0.6)
    assert loose.results.all.identified.value == 1 and loose.cut == 0.6


def test_self_report_against_truth():
    said = [
        yes("a", "1", "Orla Brandreth"), yes("b", "1", "Zed"), no("c", "1"),
        no("a", "2", name="Orla Brandreth"), no("b", "2"), yes("c", "2", ""),
    ]  # fmt: skip
    found = people_study(TRUTHS, said)
    assert dict(found.claims) == {"claimed_right": 1, "claimed_wrong": 2, "denied_right": 1, "denied_wrong": 2}
    assert found.agreement.value == 0.5
    sklearn = pytest.importorskip("sklearn.metrics")
    claimed, right = [1, 1, 0, 0, 0, 1], [1, 0, 0, 1, 0, 0]
    assert found.chance_corrected.value == pytest.approx(sklearn.cohen_kappa_score(claimed, right))
    assert found.trusted.value == pytest.approx(1 / 3)
    assert found.agreement.low <= 0.5 <= found.agreement.high


def test_agreement_of_judges():
    """Krippendorff's alpha by hand: units (1, 1), (1, 0), (0, 0): 5 same of 6 values each."""
    said = [
        yes("a", "1", "Orla Brandreth"), yes("a", "2", "Orla Brandreth"),
        yes("b", "1", "Orla Brandreth"), no("b", "2"), no("c", "1"), no("c", "2"),
    ]  # fmt: skip
    # n = 6, three right, three wrong: observed disagreement 2 / 6, expected 2 * 3 * 3 / (6 * 5).
    assert people_study(TRUTHS, said).alike.value == pytest.approx(1 - (2 / 6) / (18 / 30))
    same = people_study(TRUTHS, [no("a", "1"), no("a", "2")])
    assert same.alike.method == "none: all judgements are the same"
    assert people_study(TRUTHS, [no("a", "1")]).alike.method == "none: no text has two judgements"


def test_aliases_and_mere_likeness():
    said = [yes("c", "1", "Lord Ivor of Q")]
    assert not people_study(TRUTHS, said).results.all.identified.value
    assert people_study(TRUTHS, said, aliases={"Ivo Quist": ["Lord Ivor of Q"]}).results.all.identified.value == 1
    like = people_study([Truth("a", "Ann Bole"), Truth("b", "Nan Lobe")], [yes("a", "1", "Ann Bole")])
    assert like.by_chance.value == 1  # the same characters


def test_reasons_as_in_the_tables_of_the_paper():
    assert list_reason_words("He's in line to the throne; the women's rights, J.K., non-binary formula 1") == [
        "line", "throne", "womens", "rights", "j.k", "non-binary", "formula", "1",
    ]  # fmt: skip
    found = dict(select_top_terms(["in line to the throne", "royal family, line to the throne"], 20))
    assert found["line_throne"] == 2 and found["royal_family_line"] == 1 and "throne_royal" not in found
    assert select_top_terms(["red hair", "hair"], 2) == (("hair", 2), ("red", 1))
    assert select_top_terms([]) == () == select_top_terms(["the of and"])
    assert len(select_top_terms(["one two three four five six"], 10)) == 10


def test_reasons_of_found_and_not_found_are_apart():
    said = [
        yes("a", "1", "Orla Brandreth", "ginger hair"),
        no("a", "2", "plays the harp"),
        yes("b", "1", "Zed", "a guess"),
    ]
    found = people_study(TRUTHS, said)
    assert found.revealed == {"Orla Brandreth": (("ginger", 1), ("hair", 1), ("ginger_hair", 1))}
    assert {t for t, _ in found.kept_all} == {"plays", "harp", "plays_harp", "guess"}
    plain = json.dumps(found.to_dict())
    assert "ginger" not in plain and "Orla" not in plain and "ginger" not in repr(found)
    assert found.to_dict(texts=True)["terms"]["revealed_all"][0] == ["ginger", 1]


def test_nobody_said_anything():
    found = people_study(TRUTHS, [])
    assert found.unread == 3 and found.results.all.identified.method.startswith("none:")
    assert json.dumps(found.to_dict(), allow_nan=False)
    assert people_section(found.to_dict()) is not None


@pytest.mark.parametrize(
    ("truths", "said", "message"),
    [
        ([*TRUTHS, TRUTHS[0]], [], "stands twice"),
        (TRUTHS, [no("x", "1")], "truth is not given"),
        (TRUTHS, [no("a", "1"), no("a", "1")], "same text twice"),
    ],
)
def test_judgements_that_do_not_fit(truths, said, message):
    with pytest.raises(DataError, match=message):
        people_study(truths, said)


def test_the_section_shows_no_words_unless_asked():
    found = people_study(
        TRUTHS, [yes("a", "1", "Orla Brandreth", "ginger hair"), no("a", "2", "harp"), no("b", "2", "harp")]
    )
    page = html(Page("p", (people_section(found.to_dict()),)))
    assert "ginger" not in page and "Orla" not in page and "People who tried to identify" in page
    shown = html(Page("p", (people_section(found.to_dict(texts=True), texts=True),)))
    assert "ginger_hair" in shown and "Orla Brandreth" in shown
    assert "ginger" not in html(Page("p", (people_section(found.to_dict(texts=True)),))).replace("Orla", "")
    assert people_section({}) is None


@given(st.integers(1, 25), st.integers(1, 12), st.integers(1, 12), st.integers(0, 5))
def test_hands_are_fair(items, hands, size, seed):
    from random import Random

    size = min(size, items)
    dealt = deal_hands(items, [size] * hands, Random(seed))
    counts = [sum(i in hand for hand in dealt) for i in range(items)]
    assert all(len(set(hand)) == size for hand in dealt)
    assert max(counts) - min(counts) <= 1


def study(n=24, **more):
    ids = [f"adele-{i}" for i in range(n)]
    groups = ["famous"] * (n // 2) + ["made"] * (n - n // 2)
    return sh.make_judging_sheets(
        ids, [f"text {i}" for i in range(n)], [f"Subject {i % 3}" for i in range(n)], groups, **more
    )


def test_every_text_gets_its_judgements():
    made = study()
    read = [token for page in made.pages for token in page]
    assert {read.count(t) for t in made.entries} == {3}
    assert all(len(page) <= 10 for page in made.pages)
    assert all(len({made.entries[t].group for t in page}) == 1 for page in made.pages)
    assert made == study() and made.pages != study(seed=1).pages and made.study != study(seed=1).study
    few = study(n=50, judges=6)  # 6 pages of ten for 25 texts: two or three judgements each
    read = [token for page in few.pages for token in page]
    assert {read.count(t) for t in few.entries} == {2, 3}


def test_the_key_knows_and_keeps_no_text(tmp_path):
    made = study()
    path = tmp_path / "key.json"
    path.write_text(made.to_key_json(), encoding="utf-8")
    assert "text 3" not in made.to_key_json() and "Subject" not in repr(made)
    again = sh.read_key(path)
    assert again.pages == made.pages and again.study == made.study
    assert {t: e.subject for t, e in again.entries.items()} == {t: e.subject for t, e in made.entries.items()}


def answers(made, page=1, **more):
    said = {"identified": "yes", "name": "Subject 1", "knowledge": "", "reason": "Zaphrandel"}
    out = {"form": sh.FORM, "version": 1, "study": made.study, "task": made.task, "page": page, "participant": ""}
    return {**out, "answers": [{"item": t, **said} for t in made.pages[page - 1]], **more}


def read(tmp_path, made, *given):
    paths = []
    for i, one in enumerate(given):
        paths.append(tmp_path / f"{i}.json")
        paths[-1].write_text(one if isinstance(one, str) else json.dumps(one), encoding="utf-8")
    return sh.read_answers(paths, made)


def test_answers_become_judgements(tmp_path):
    made = study()
    found = read(tmp_path, made, answers(made), answers(made, 2), answers(made, 1, participant="k"))
    truths, judged = list_truths_and_judgements(made, found)
    assert len(judged) == 2 * len(made.pages[0]) + len(made.pages[1]) and len(truths) == 24
    assert {j.judge for j in judged} == {"1", "2", "1 k"}
    result = people_study(truths, judged)
    assert result.judges == 3
    assert "Zaphrandel" not in repr(found)
    unanswered = answers(made, 3)
    unanswered["answers"][0]["identified"] = ""
    assert len(read(tmp_path, made, unanswered)) == len(made.pages[2]) - 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"study": "other"}, "belongs to another study"),
        ({"task": "collect"}, "answers to the task judge are required"),
        ({"page": 99}, "about nothing on a page"),
        ({"page": "Zaphrandel"}, "about nothing on a page"),
        ({"form": "x"}, "answers as a page saves them"),
        ({"answers": [{"item": "Zaphrandel"}]}, "about nothing on a page"),
        ({"answers": 3}, "answers as a page saves them"),
    ],
)
def test_answers_that_do_not_fit(tmp_path, change, message):
    made = study()
    with pytest.raises(DataError, match=message) as caught:
        read(tmp_path, made, {**answers(made), **change})
    assert "Zaphrandel" not in str(caught.value) and "0.json" in str(caught.value)


@pytest.mark.parametrize("content", ["", "{", "[1]", "a,b\n1,2\n", '{"form": 3}'])
def test_files_that_hold_no_answers(tmp_path, content):
    with pytest.raises(DataError, match="answers as a page saves them"):
        read(tmp_path, study(), content)
    (tmp_path / "key.json").write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match="the key of a study"):
        sh.read_key(tmp_path / "key.json")


def test_the_same_answers_twice(tmp_path):
    made = study()
    with pytest.raises(DataError, match=r"1\.json, answer 1: the same page, participant and text are in 0\.json"):
        read(tmp_path, made, answers(made), answers(made))


@pytest.mark.parametrize(
    ("more", "error"),
    [
        ({"judges": 1, "per_page": 3}, "judges required"),
        ({"judgements": 0}, "1 or more"),
    ],
)
def test_judging_that_cannot_be(more, error):
    with pytest.raises(UsageError, match=error):
        study(**more)


@pytest.mark.parametrize(
    ("ids", "texts", "subjects", "error"),
    [
        ([], [], [], "one text at least"),
        (["a"], ["t", "u"], ["s"], "for each id"),
        (["a", "a"], ["t", "u"], ["s", "s"], "stands twice"),
        (["a"], [" "], ["s"], "1 of 1 texts are empty"),
        (["a"], ["t"], [""], "no subject"),
    ],
)
def test_texts_that_nobody_can_judge(ids, texts, subjects, error):
    with pytest.raises(DataError, match=error):
        sh.make_judging_sheets(ids, texts, subjects)


def test_people_who_do_not_exist():
    made = fictitious_people(30, seed=4)
    assert made == fictitious_people(30, seed=4) != fictitious_people(30, seed=5)
    assert len({s.name for s in made}) == 30
    assert all(set(s.facts) == {"relationship", "job", "age", "lives in"} and s.group == "fictitious" for s in made)
    assert made[0].name not in repr(made)
    assert fictitious_people(0) == []
    with pytest.raises(UsageError, match="are possible, got"):
        fictitious_people(10**6)
    with pytest.raises(KnowledgeBaseError, match="origin"):
        fictitious_people(1, origin="martian")


def test_writers_get_one_of_each_group_in_order(tmp_path):
    pool = [*(Subject(f"F{i}", "famous") for i in range(3)), *(Subject(f"S{i}", "semi") for i in range(2))]
    made = sh.make_collection_sheets(pool, 6)
    assert all([made.entries[t].group for t in page] == ["famous", "semi"] for page in made.pages)
    assert len({page[0] for page in made.pages[:3]}) == 3
    said = {
        **answers(made),
        "answers": [{"item": made.pages[0][0], "text": "x" * 500}, {"item": made.pages[0][1], "text": ""}],
    }
    found = read(tmp_path, made, said)
    rows = read_descriptions(made, found, least=500)
    assert [(r["group"], len(r["text"])) for r in rows] == [("famous", 500)]
    with pytest.raises(DataError, match=r"page 1, p\d: 501 characters at least required, got 500"):
        read_descriptions(made, found, least=501)
    with pytest.raises(DataError, match="key of a judging study"):
        list_truths_and_judgements(made, found)
    with pytest.raises(UsageError, match="'semi' has 2 people, 3"):
        sh.make_collection_sheets(pool, 2, each=3)
    with pytest.raises(DataError, match="one person at least"):
        sh.make_collection_sheets([], 2)


@pytest.mark.parametrize(
    ("content", "error"),
    [
        ("name\nA\n", "row 2: the columns group and name"),
        ("group,name\nf,\n", "row 2"),
        ("group,name\nf,Zaphrandel\nf,zaphrandel\n", "row 3: the name stands twice"),
        ("group,name,link\nf,A,javascript:x\n", "row 2: a link must begin"),
        ("group,name\n", "one person at least"),
    ],
)
def test_pools_that_cannot_be_read(tmp_path, content, error):
    path = tmp_path / "pool.csv"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match=error) as caught:
        read_subjects(path)
    assert "andrel" not in str(caught.value)


@pytest.mark.slow
def test_the_same_under_any_hash_seed():
    script = (
        "from tests.evaluate.test_people import *\n"
        "f = people_study(TRUTHS, [yes('a','1','Orla Brandreth','ginger hair'), no('a','2','harp'), yes('c','1','Q','red')])\n"
        "print(json.dumps(f.to_dict(texts=True)), study().pages, [s.name for s in fictitious_people(5)])"
    )
    out = [
        subprocess.run([sys.executable, "-c", script], env={"PYTHONHASHSEED": s, "PYTHONPATH": ":".join(sys.path)},
                       capture_output=True, check=True, text=True).stdout
        for s in ("1", "2")
    ]  # fmt: skip
    assert out[0] == out[1] and "ginger" in out[0]
