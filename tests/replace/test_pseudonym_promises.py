"""What the operator ``pseudonym`` promises, whoever finds the names: here a list does."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.rows import check_each_row

from allonym import Document, Policy, anonymize, restore
from allonym.errors import UsageError
from allonym.policy import TermList
from allonym.replace.cast import Corpus
from allonym.vault import Vault

KEY = b"a key only for the tests, 32 byte"
PEOPLE = ("Sarah Connor", "John Connor", "Jürgen Hoffmann", "Katarzyna Nowak", "Siobhan Gallagher", "Maria de la Cruz")
PLACES = ("Leeds", "Madrid", "Gdańsk", "Austin")
FIRMS = ("Ashdown Marine plc", "University of Leeds", "Nowak & Sons")
LISTS = (TermList("PERSON", PEOPLE), TermList("CITY", PLACES), TermList("ORGANIZATION", FIRMS))
POLICY = Policy.load("pseudonyms").with_(
    detectors=("rules", "spoken", "lexicon", "speakers"), dictionary=LISTS, consistent="scope"
)
WORD = re.compile(r"[^\W\d_]{3,}")
OURS = frozenset(w.lower() for term in (*PEOPLE, *PLACES, *FIRMS) for w in WORD.findall(term))
STAYS = frozenset("university the and sons plc of marine van der von maria".split())

PIECE = st.sampled_from(
    [
        *(*PEOPLE, *PLACES, *FIRMS, "Mr Connor", "Ms Connor", "the Connors", "sarah.connor@example.com", "3 May 2019"),
        *("met", "in", "and", ".", ",", "\n", "'s", "born", "a", "4111 1111 1111 1111", "[PERSON_1]", "Spain"),
    ]
)
TEXT = st.lists(PIECE, max_size=14).map(" ".join)


def made(text: str, key: bytes = KEY, scope: str = "", policy: Policy = POLICY, **more: object):
    return anonymize(Document("d", text), policy, key=key, scope=scope, **more)


@settings(max_examples=40)
@given(TEXT)
def test_the_plan_brings_every_text_back(text):
    done = made(text)
    assert restore(done.text, plan=done.plan).text == text


@settings(max_examples=40)
@given(TEXT)
def test_no_word_of_an_original_survives_in_its_place(text):
    for edit in made(text).plan.edits:
        if edit.operator.startswith("pseudonym"):
            was = {w.lower() for w in WORD.findall(edit.original)} & OURS - STAYS
            assert not was & {w.lower() for w in WORD.findall(edit.replacement)}, edit.label


@settings(max_examples=40)
@given(TEXT)
def test_two_entities_never_share_a_name(text):
    names: dict[str, set[str]] = {}
    for edit in made(text).plan.edits:
        if edit.operator.startswith("pseudonym") and edit.label in ("CITY", "ORGANIZATION", "EMAIL_ADDRESS"):
            names.setdefault(edit.replacement.casefold(), set()).add(edit.original.casefold())
    assert all(len(originals) == 1 for originals in names.values())


@settings(max_examples=30)
@given(TEXT)
def test_what_is_put_stands_nowhere_else_in_the_text(text):
    done = made(text)
    before = {w.lower() for w in WORD.findall(text)}
    for edit in done.plan.edits:
        if edit.operator.startswith("pseudonym") and edit.label in ("PERSON", "CITY"):
            new = {w.lower() for w in WORD.findall(edit.replacement)} - {w.lower() for w in WORD.findall(edit.original)}
            assert not new & before, edit.label


@check_each_row("name", [*PEOPLE, *PLACES])
def test_the_first_choice_is_the_same_in_every_document(name):
    alone = made(name).text
    assert made(f"It rains. {name} knows it.").text == f"It rains. {alone} knows it."
    assert made(f"{name}, said {name}").text == f"{alone}, said {alone}"
    seen = {made(name, key).text for key in (KEY, KEY[::-1], KEY + b"!", b"another key of this test")}
    assert len(seen) > 1
    assert len({made(name, scope=scope).text for scope in ("", "one", "two", "three")}) > 1


def test_one_person_is_one_person_in_all_surfaces():
    text = "Sarah Connor, Ms Connor, Sarah, S. Connor, CONNOR, Connor, Sarah; sarah.connor@example.com. The Connors."
    others = ("Ms Connor", "Sarah", "S. Connor", "CONNOR", "The Connors")
    policy = POLICY.with_(dictionary=(TermList("PERSON", (*PEOPLE, *others)),))
    out = made(text, policy=policy).text
    given_name, family = out.split(",")[0].split()
    assert f"Ms {family}," in out and f" {given_name}, " in out and f"{given_name[0]}. {family}" in out
    assert family.upper() in out and f"{given_name.lower()}.{family.lower()}@" in out
    assert re.search(rf"The {family}(e?s|z)\.", out) or f"The {family[:-1]}ies." in out


def test_relatives_still_share_a_name():
    first, second = made("Sarah Connor and John Connor").text.split(" and ")
    assert first.split()[-1] == second.split()[-1] and first.split()[0] != second.split()[0]


def test_a_club_follows_its_town():
    policy = POLICY.with_(dictionary=(*LISTS, TermList("ORGANIZATION", ("Leeds United",))))
    town, club = made("Leeds: Leeds United", policy=policy).text.split(": ")
    assert club == f"{town} United"


def test_neutral_names():
    from allonym.kb import KnowledgeBase
    from allonym.policy import Rule

    kb = KnowledgeBase.open()
    neutral = POLICY.with_(default=Rule("pseudonym", {"names": "neutral"}))
    for person in ("Sarah Connor", "John Connor"):
        given_name = made(person, policy=neutral).text.split()[0]
        assert any(fact.gender == "n" for fact in kb.name_facts(given_name)) or given_name in kb.names("first", "", "n")


def test_a_key_is_needed():
    with pytest.raises(UsageError, match="needs a key"):
        anonymize("Sarah Connor", POLICY)


@pytest.mark.parametrize("keeper", ["corpus", "vault"])
def test_where_a_book_is_kept_nobody_meets_in_one_pseudonym(keeper, tmp_path):
    names = [f"{given} {family}" for given in ("Anna", "Jane", "Ruth", "Emma") for family in ("Connor", "Hall", "Webb")]
    policy = POLICY.with_(dictionary=(TermList("PERSON", tuple(names)),))
    book = Corpus(KEY) if keeper == "corpus" else Vault.create(tmp_path / "v.vault", KEY)
    out = [anonymize(Document(str(i), n), policy, vault=book, scope="s").text for i, n in enumerate(names)]
    assert len(set(out)) == len(names)
    again = [anonymize(Document(str(i), n), policy, vault=book, scope="s").text for i, n in enumerate(names)]
    assert again == out
    if keeper == "vault":
        assert [restore(text, vault=book, scope="s").text for text in out] == names
        assert restore(f"{out[0].upper()}'S FRIEND", vault=book, scope="s").text == f"{names[0].upper()}'S FRIEND"


def test_dates_of_a_subject_keep_their_distance():
    from datetime import date

    policy = POLICY.with_(subject="patient")
    days = []
    for text in ("Seen on 2019-05-03.", "Seen on 2019-05-17."):
        out = anonymize(Document(text, text, {"patient": "p1"}), policy, key=KEY).text
        days.append(date.fromisoformat(out[8:18]))
    assert (days[1] - days[0]).days == 14 and days[0] != date(2019, 5, 3)


def test_a_document_moves_to_the_country_that_is_asked_for():
    from allonym.errors import PolicyError
    from allonym.policy import Rule

    moving = POLICY.with_(default=Rule("pseudonym", {"country": "PT"}))
    out = made("Leeds. Madrid. Leeds.", policy=moving).text
    from allonym.kb import KnowledgeBase

    assert KnowledgeBase.open().find(out.split(".")[0], ("city",), "PT")
    with pytest.raises(PolicyError, match="XX"):
        made("Leeds", policy=POLICY.with_(default=Rule("pseudonym", {"country": "XX"})))


def test_one_knowledge_base_for_all_rules(tmp_path):
    from shutil import copy

    from allonym.errors import KnowledgeBaseError, PolicyError
    from allonym.kb import KnowledgeBase
    from allonym.policy import Rule

    path = str(copy(KnowledgeBase.open().path, tmp_path / "own.sqlite"))
    own, shipped = Rule("pseudonym", {"kb": path}), Rule("pseudonym")
    policy = POLICY.with_(default=shipped, rules={"PERSON": own})
    assert made("Sarah Connor in Leeds", policy=policy).text == made("Sarah Connor in Leeds").text
    other = Rule("pseudonym", {"kb": str(copy(path, tmp_path / "other.sqlite"))})
    with pytest.raises(PolicyError, match="same knowledge base"):
        made("in Leeds", policy=POLICY.with_(default=other, rules={"PERSON": own}))
    broken = tmp_path / "broken.sqlite"
    broken.write_text("no knowledge")
    for wrong in (tmp_path / "none.sqlite", broken):
        file = tmp_path / "policy.toml"
        file.write_text(f'extends = "pseudonyms"\n[rules.PERSON]\noperator = "pseudonym"\nkb = "{wrong.as_posix()}"\n')
        with pytest.raises(KnowledgeBaseError, match=wrong.name):
            Policy.load(str(file))
