"""No two entities of a document share a substitute, and none is a word that stands there anyway."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.replace.pseudonyms import KEY, kb, marked, play
from tests.rows import check_each_row

from allonym.document import Document
from allonym.link import link
from allonym.policy import Policy, Rule
from allonym.protocol import Setting, Wanted
from allonym.replace import make_plan
from allonym.replace.cast import make_cast
from allonym.replace.pseudonym import avoid_collisions

KEYS = [KEY, *(f"key {n} for the tests, of 32 bytes".encode() for n in range(5))]
SAME = [
    "{Finance Director|OCCUPATION}; {IT Solutions Director|OCCUPATION}; {President Director|OCCUPATION}",
    "{British|NATIONALITY}; {English|NATIONALITY}; {Scottish|NATIONALITY}",
    "{English|NATIONALITY}; {British|NATIONALITY}; {Welsh|NATIONALITY}",
    "{German|NATIONALITY}; {Germans|NATIONALITY}",
    "{Spanish|NATIONALITY}; {Spaniard|NATIONALITY}; {Spaniards|NATIONALITY}",
    "{F|PERSON}; {D|PERSON}; {C|PERSON}; {B|PERSON}",
    "{Mr. F.|PERSON}; {Mr. D.|PERSON}; {Mr. C.|PERSON}",
    "{a teacher|OCCUPATION}; {a school teacher|OCCUPATION}; {a lawyer|OCCUPATION}; {a tax lawyer|OCCUPATION}",
    "{Spanish|LANGUAGE}; {Catalan|LANGUAGE}; {Basque|LANGUAGE}; {Italian|LANGUAGE}",
    "{3 months old|AGE}; {2 months old|AGE}; {1 months old|AGE}",
]


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("text", SAME)
def test_two_entities_never_share_a_substitute(text, key):
    out = play(text, key=key).split("; ")
    assert len({o.casefold() for o in out}) == len(out), out


ORIGINS = [i for i in kb().pool("nationality") if ("en", "plural") in kb().labels(i)]
JOBS = [i.label for i in kb().pool("occupation")]
THINGS = st.one_of(
    st.sampled_from(JOBS).map(lambda t: (t, "OCCUPATION")),
    st.sampled_from([i.label for i in kb().pool("language")]).map(lambda t: (t, "LANGUAGE")),
    st.tuples(st.sampled_from(ORIGINS), st.sampled_from(("adjective", "noun", "plural"))).map(
        lambda p: (kb().labels(p[0])["en", p[1]], "NATIONALITY")
    ),
    st.sampled_from([i.label for i in kb().pool("country")]).map(lambda t: (t, "COUNTRY")),
    st.integers(1, 99).map(lambda n: (f"{n} years old", "AGE")),
    st.text("ABCDEFG", min_size=1, max_size=2).map(lambda t: (t, "PERSON")),
    st.text("ABCDEFG", min_size=1, max_size=2).map(lambda t: (t, "ORGANIZATION")),
)


@given(st.lists(THINGS, min_size=2, max_size=8, unique_by=lambda t: t[0].casefold()), st.sampled_from(KEYS))
def test_whatever_the_labels(things, key):
    text = "\n".join(f"{{{surface}|{label}}}" for surface, label in things)
    bare, spans = marked(text)
    document = Document("", bare)
    linked = link(document, spans)
    plan = make_plan(document, linked, Policy(name="p", default=Rule("pseudonym")), key=key)
    owners = {}
    for edit in plan.edits:
        owners.setdefault(edit.replacement.casefold(), set()).add(edit.entity)
    assert all(len(some) == 1 for some in owners.values())


@pytest.mark.parametrize("key", KEYS)
def test_forms_of_one_nationality_follow_one_country(key):
    adjective, plural = play("{German|NATIONALITY} and {Germans|NATIONALITY}", key=key).split(" and ")
    lands = [{i.country for i in kb().find(text, ("nationality",))} for text in (adjective, plural)]
    assert lands[0] & lands[1]


def test_one_original_keeps_one_substitute():
    first, second, language = play("{Spanish|NATIONALITY} / {Spanish|NATIONALITY} / {Spanish|LANGUAGE}").split(" / ")
    assert first == second and not language.startswith("[")
    text = "{John Connor|PERSON}, {Sarah Connor|PERSON} / {Connor|PERSON}"
    out = play(text)
    assert out.rpartition(" / ")[2] in out.partition(" / ")[0]


@pytest.mark.parametrize("key", KEYS)
def test_a_spelled_age_is_no_word_of_the_document(key):
    text = "She is {ten|AGE} years old. He counts to eight, nine and eleven."
    age = re.fullmatch(r"She is (.*) years old.*", play(text, key=key))[1]
    assert age == "twelve"
    every = "She is {ten|AGE}. They count to eight, Nine, eleven and twelve."
    assert play(every, key=key).startswith("She is [AGE_1].")


@pytest.mark.parametrize("key", KEYS)
def test_short_names_too(key):
    capitals = " ".join(c for c in "ABCDEFGHIJKLMNOPQRSTUVWXYZ")
    out = play(f"{{Q|ORGANIZATION}} met them. List: {capitals}.", key=key)
    assert re.match(r"\[ORGANIZATION_1\]", out) or not re.match(r"[A-Z] ", out)


def played(players, text, surfaces, labels=()):
    """What stands for surfaces under renderers that say so, by ``avoid_collisions`` alone."""
    bare, spans = marked(text)
    document = Document("", bare)
    places = tuple((s.start, s.end) for s in spans)
    setting = Setting(document, Policy(name="p", default=Rule("pseudonym")), KEY, places=places)
    remarks = []
    wanted = [
        Wanted(e, {}, i, e.label, "", tuple(bare[s.start : s.end] for s in e.spans))
        for i, e in enumerate(link(document, spans).entities)
    ]
    cast = make_cast(setting, kb(), remarks, wanted)
    out = avoid_collisions(cast, wanted, {w.entity.key: players.get for w in wanted})
    return [out[w.entity.key](s) for w in wanted for s in w.surfaces], remarks


def test_the_later_one_gets_none():
    out, remarks = played({"Ava": "Zoe", "Mia": "ZOE"}, "{Ava|PERSON} {Mia|PERSON}", ())
    assert out == ["Zoe", None]
    assert len(remarks) == 1 and "Zoe" not in remarks[0] and "Mia" not in remarks[0]


@check_each_row(
    "text, new, stays",
    [
        ("{Ava|PERSON} likes new york.", "New York", False),
        ("{Ava|PERSON} likes newyork and York.", "New York", True),
        ("{Ava|PERSON} saw a B movie.", "B", False),
        ("{Ava|PERSON} saw a b movie.", "B", True),
        ("{Ava|PERSON} saw {12|AGE}.", "12", True),
        ("{Ava|PERSON} saw 12 of them.", "12", True),
        ("{Ava|PERSON} saw 4711 of them.", "4711", False),
        ("{Ava|PERSON} met {Mia|PERSON}.", "mia", False),
    ],
)
def test_what_stands_in_the_text(text, new, stays):
    out, _ = played({"Ava": new, "Mia": "Zoe", "12": "13"}, text, ())
    assert out[0] == (new if stays else None)
