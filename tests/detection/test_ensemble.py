import pytest
from hypothesis import given
from hypothesis import strategies as st

import allonym
from allonym import registry
from allonym.detection.ensemble import Ensemble, build_detector
from allonym.document import Document, Span, merge_intervals
from allonym.errors import DataError, PolicyError
from allonym.policy import Policy

POLICY = Policy(name="x")
TEXT = Document("", "x" * 40)


def ensemble(mode, votes=2, modes=None, **members):
    built = {name: (lambda document, spans=spans: spans) for name, spans in members.items()}
    return Ensemble(POLICY.taxonomy, dict(sorted(built.items())), mode, votes, modes or {})(TEXT)


A = [Span(0, 10, "PERSON", 0.9, "a:model"), Span(20, 25, "ORGANIZATION", 0.6, "a:model")]
B = [Span(5, 12, "PERSON_LASTNAME", 0.5, "b:model"), Span(20, 25, "LOCATION", 0.7, "b:model")]
C = [Span(11, 15, "PERSON", 0.7, "c:model")]


def test_a_union_is_all_as_it_is():
    assert ensemble("union", a=A, b=B, c=C) == sorted(A + B + C)


def test_a_vote_keeps_whole_what_enough_members_agree_on():
    assert ensemble("vote", a=A, b=B, c=C) == [
        Span(0, 10, "PERSON", 0.7, "ensemble:a+b"),
        Span(5, 12, "PERSON_LASTNAME", pytest.approx(0.7), "ensemble:a+b+c"),
        Span(11, 15, "PERSON", 0.6, "ensemble:b+c"),
    ]
    assert [(s.start, s.end) for s in ensemble("vote", 3, a=A, b=B, c=C)] == [(5, 12)]


def test_an_intersection_is_what_all_mark():
    assert ensemble("intersection", a=A, b=B) == [
        Span(5, 10, "PERSON", 0.7, "ensemble:a+b"),
        Span(5, 10, "PERSON_LASTNAME", 0.7, "ensemble:a+b"),
    ]
    assert ensemble("intersection", a=A, b=B, c=C) == []


def test_an_intersection_with_holes():
    many = [Span(0, 3, "PERSON"), Span(6, 9, "PERSON")]
    assert [(s.start, s.end) for s in ensemble("intersection", a=[Span(1, 8, "PERSON")], b=many)] == [(1, 3), (6, 8)]


def test_the_mode_may_differ_by_label_and_holds_below_it():
    modes = {"PERSON": "intersection", "ORGANIZATION": "union"}
    found = ensemble("vote", modes=modes, a=A, b=B)
    assert [(s.start, s.end, s.label) for s in found] == [
        (5, 10, "PERSON"),
        (5, 10, "PERSON_LASTNAME"),
        (20, 25, "ORGANIZATION"),
    ]


def test_a_member_s_own_findings_do_not_agree_with_each_other():
    assert ensemble("vote", a=[Span(0, 4, "PERSON"), Span(2, 6, "PERSON")], b=[]) == []


SPANS = st.lists(
    st.builds(
        lambda start, length, label, score: Span(start, start + length, label, score, "m:model"),
        *(st.integers(0, 30), st.integers(1, 9)),
        *(st.sampled_from(["PERSON", "EXECUTIVE", "CITY", "ORGANIZATION"]), st.sampled_from([0.1, 0.3, 0.7, 0.9])),
    ),
    max_size=5,
)


@given(spans=st.lists(SPANS, min_size=2, max_size=4), mode=st.sampled_from(registry.MODES), data=st.data())
def test_the_order_of_members_and_of_findings_makes_no_difference(spans, mode, data):
    members = {f"m{i}": one for i, one in enumerate(spans)}
    other = {name: data.draw(st.permutations(members[name])) for name in data.draw(st.permutations(list(members)))}
    made = [
        Ensemble(POLICY.taxonomy, {name: (lambda document, s=s: s) for name, s in given.items()}, mode, 2, {})(TEXT)
        for given in (members, other)
    ]
    assert made[0] == made[1]


@given(spans=st.lists(SPANS, min_size=2, max_size=4))
def test_each_mode_covers_no_more_than_the_one_before(spans):
    members = {f"m{i}": s for i, s in enumerate(spans)}

    def covered(mode, votes=2):
        return {
            p
            for a, b in merge_intervals((s.start, s.end) for s in ensemble(mode, votes, **members))
            for p in range(a, b)
        }

    assert covered("union") == {p for one in spans for s in one for p in range(s.start, s.end)}
    assert covered("intersection") <= covered("vote", len(spans)) <= covered("vote") <= covered("union")
    for one in spans:
        group = {POLICY.taxonomy.lineage(s.label)[-1] for s in ensemble("intersection", **members)}
        assert group <= {POLICY.taxonomy.lineage(s.label)[-1] for s in one}


# From the policy


@pytest.fixture
def members(monkeypatch):
    table = {
        **registry.detectors._table,
        "first": lambda policy: lambda document: [Span(0, 3, "PERSON", 0.9, "first:x")],
        "second": lambda policy: lambda document: [Span(0, 5, "PERSON", 0.7, "second:x"), Span(6, 8, "AGE", 0.7)],
    }
    monkeypatch.setattr(registry.detectors, "_table", table)


def load(tmp_path, lines, detectors='["ensemble"]'):
    path = tmp_path / "mine.toml"
    path.write_text(f"[detect]\ndetectors = {detectors}\n[detect.ensemble]\n{lines}\n", encoding="utf-8")
    return Policy.load(path)


def test_members_by_name(members, tmp_path):
    lines = 'members = ["second", "first"]\n'
    assert [(s.start, s.end) for s in allonym.detect("Ada B 41", load(tmp_path, lines))] == [(0, 5), (6, 8)]
    policy = load(tmp_path, lines + 'mode = "vote"\nlabels = { AGE = "union" }')
    assert [(s.start, s.end) for s in build_detector(policy)(Document("", "Ada B 41"))] == [(0, 3), (0, 5), (6, 8)]
    policy = load(tmp_path, lines + 'mode = "intersection"')
    documents = [Document("", "Ada B 41"), Document("", "Ada B 41")]
    assert (
        build_detector(policy).many(documents)
        == [[Span(0, 3, "PERSON", pytest.approx(0.8), "ensemble:first+second")]] * 2
    )


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        ("", "must name two detectors at least"),
        ('members = ["rules"]', "must name two detectors at least"),
        ('members = ["rules", "rules"]', "each once"),
        ('members = ["rules", "ensemble"]', "cannot hold the ensemble itself"),
        ('members = ["rules", "spoken"]\nvotes = 3', "votes must be at most 2"),
    ],
)
def test_members_that_make_no_sense(tmp_path, lines, says):
    with pytest.raises(PolicyError, match=says):
        build_detector(load(tmp_path, lines))


def test_a_member_cannot_run_for_itself_too(tmp_path):
    with pytest.raises(PolicyError, match="rules also runs on its own"):
        build_detector(load(tmp_path, 'members = ["rules", "spoken"]', '["ensemble", "rules"]'))


def test_a_member_that_fails_fails_the_document(members, monkeypatch, tmp_path):
    def broken(policy):
        def detect(document):
            raise ValueError(document.text)

        return detect

    monkeypatch.setitem(registry.detectors._table, "first", broken)
    with pytest.raises(DataError, match="a detector failed with ValueError"):
        allonym.detect("Ada", load(tmp_path, 'members = ["first", "second"]'))
