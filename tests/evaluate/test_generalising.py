"""General words, sentences that stay whole or go, drafts, and two plans as one."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.rows import check_each_row

from allonym.errors import PlanMismatch
from allonym.evaluate.general_words import list_general_replacements, list_words_and_placeholders
from allonym.evaluate.generalising import Draft
from allonym.evaluate.rewording import chain_plans, make_edits
from allonym.evaluate.roughness import measure_roughness
from allonym.plan import Edit, Plan, apply, apply_edits, digest, invert_plan


def changed(text, *wanted, last=False):
    """The text with these words changed to their first or last choice."""
    words = list_words_and_placeholders(text)
    told = {
        i: c[-1 if last else 0]
        for i, w in enumerate(words)
        if w.lower_text in wanted and (c := list_general_replacements(words, i))
    }
    return apply_edits(text, make_edits(text, words, told))


@check_each_row(
    "text, wanted, out",
    [
        ("She plays the guitar.", ["guitar"], "She plays the music."),
        ("She has ginger hair.", ["ginger"], "She has hair."),
        ("She has ginger hair.", ["ginger", "hair"], "She has features."),
        ("He likes tennis, golf and cricket.", ["tennis", "golf", "cricket"], "He likes sport."),
        ("He owns an enormous house.", ["enormous"], "He owns a house."),
        ("He is an actor.", ["actor"], "He is a performer."),
        ("She married a singer in June.", ["married"], "She had a singer in June."),
        ("The nurse was sacked.", ["sacked"], "The nurse was involved."),
        ("She lived in a street.", ["lived"], "She was in a street."),
        ("They moved to the coast.", ["moved"], "They went to the coast."),
        ("She likes to swim.", ["likes"], "She comes to swim."),
        ("He wants to launch a brand.", ["launch"], "He wants to have a brand."),
        ("She has very rare qualities.", ["rare"], "She has qualities."),
        ("He had treatment.", ["treatment"], "He had illness."),
        ("She is sporty and tall.", ["sporty"], "She is tall."),
        ("She is sporty and tall.", ["tall"], "She is sporty."),
        ("She is sporty, kind and tall.", ["kind"], "She is sporty and tall."),
        ("She is sporty, kind and tall.", ["sporty", "kind", "tall"], "She is special."),
        ("She is both shy and tall.", ["shy"], "She is both special and tall."),
        ("She is either shy or tall.", ["tall"], "She is either shy or special."),
        ("She is not shy but tall.", ["shy"], "She is not special but tall."),
        ("He has a very warm and soothing voice.", ["soothing"], "He has a very warm voice."),
        ("He has a very warm and soothing voice.", ["warm", "soothing", "voice"], "He has a very special feature."),
        ("He is kind but shy.", ["kind", "shy"], "He is special."),
        ("She has curly hair.", ["hair"], "She has curly features."),
        ("Surprisingly, he left.", ["surprisingly"], "He left."),
        ("Currently she sings. Currently LOCATION_1 sings.", ["currently"], "She sings. LOCATION_1 sings."),
        ("He was born in Leeds, Yorkshire.", ["leeds", "yorkshire"], "He was born in some place."),
        ("She met PERSON_FIRSTNAME_1 Obberly.", ["obberly"], "She met PERSON_FIRSTNAME_1."),
        ("He went out with processes.", ["went", "processes"], "He was with activities."),
        ("It was a court-ruled decision.", ["court"], "It was a ruled decision."),
        ("She has dyspraxia.", ["dyspraxia"], "She has illness."),
        # verbs go with what follows them
        ("She worked as a nurse.", ["worked"], "She acted as a nurse."),
        ("He signed up to ORGANIZATION_3.", ["signed"], "He went to ORGANIZATION_3."),
        ("PERSON_1 sang well at the age of NUMERIC_3.", ["sang"], "PERSON_1 was well at the age of NUMERIC_3."),
        ("She started playing football.", ["started", "playing"], "She kept having football."),
        ("He toured LOCATION_2 and left.", ["toured", "left"], "He knew LOCATION_2 and went on."),
        ("She married PERSON_1's sister.", ["married"], "She had PERSON_1's sister."),
        ("He did not play in LOCATION_1.", ["play"], "He did not stay in LOCATION_1."),
        ("Now based in LOCATION_4, she sings.", ["based"], "Now involved in LOCATION_4, she sings."),
        ("It is believed that she left.", ["believed"], "It is thought that she left."),
        ("He thought PRONOUN was ill.", ["thought"], "He said PRONOUN was ill."),
        ("He was handed the prize.", ["handed"], "He was given the prize."),
        ("He was signed by the team.", ["signed"], "He was noticed by the team."),
        ("He is buried in LOCATION_1.", ["buried"], "He is in LOCATION_1."),
        ("He was banned from driving.", ["banned", "driving"], "He was kept from something."),
        ("These are the books she has written.", ["written"], "These are the books she has had."),
        ("They helped a seated guest.", ["seated"], "They helped a guest."),
        ("She was a shy, determined player.", ["determined"], "She was a shy player."),
        ("He became an OCCUPATION_2.", ["became"], "He was an OCCUPATION_2."),
        ('She is known for writing "OTHER_1".', ["writing"], 'She is known for making "OTHER_1".'),
        ("He was often referred to by the name.", ["referred"], "He was often noticed by the name."),
        (
            "PRONOUN started playing when PRONOUN was ten.",
            ["playing"],
            "PRONOUN started something when PRONOUN was ten.",
        ),
        ("He could choose which team he led.", ["choose"], "He could say which team he led."),
        ("It is the medicine that PRONOUN needed.", ["needed"], "It is the medicine that PRONOUN had."),
        # plain verbs of their meaning
        ("She wrote three novels.", ["wrote", "novels"], "She made three works."),
        ("He won a medal.", ["won"], "He got a medal."),
        ("She attended ORGANIZATION_1.", ["attended"], "She went to ORGANIZATION_1."),
        ("The firm was founded by PERSON_1.", ["founded"], "The firm was started by PERSON_1."),
        ("He hopes to sing.", ["hopes"], "He wants to sing."),
        ("He studied the hopes of men.", ["studied"], "He had the hopes of men."),
        ("He set out and won.", ["won"], "He set out and went on."),
        # nouns and adjectives in their phrases
        ("She was the youngest of NUMERIC_2 brothers.", ["youngest"], "She was the one of NUMERIC_2 brothers."),
        ("He was a highly skilled player.", ["skilled"], "He was a player."),
        ("PERSON_1 was a published OCCUPATION_4.", ["published"], "PERSON_1 was an OCCUPATION_4."),
        ("A dapper young OTHER_1, PRONOUN left.", ["dapper"], "A young OTHER_1, PRONOUN left."),
        ("It was the first ever robot.", ["first"], "It was the robot."),
        ("He left (alone) then.", ["alone"], "He left then."),
        ("The midfielder/striker left.", ["midfielder", "striker"], "The athlete left."),
        ("He played golf at school.", ["school"], "He played golf at some place."),
        ("There were a number of offences.", ["number", "offences"], "There were a number of things."),
        ("He was an OCCUPATION_5 and tackle.", ["tackle"], "He was an OCCUPATION_5."),
        ("He was both an OCCUPATION_5 and tackle.", ["tackle"], "He was both an OCCUPATION_5 and person."),
        ("He owns a quibblet.", ["quibblet"], "He owns something."),
        ("She studied at the Polytechnic of LOCATION_1.", ["polytechnic"], "She studied at the group of LOCATION_1."),
        ("Many songs have names.", ["songs"], "Many things have names."),
        ("She is a half-sister of PERSON_1.", ["sister"], "She is a relative of PERSON_1."),
        ("A wealthy, eccentric and very tall man left.", ["wealthy", "eccentric", "tall"], "A special man left."),
        ("She was well educated.", ["educated"], "She was special."),
        ("It helped him to Leeds.", ["leeds"], "It helped him to some place."),
        ("He studied in county cricket.", ["county", "cricket"], "He studied in sport."),
        ("He worked in archiving.", ["archiving"], "He worked in something."),
        # numbers become ranges
        ("She was born in 1974.", ["1974"], "She was born in the 1970s."),
        ("She won 17 titles.", ["17"], "She won more than ten titles."),
        ("She won more than 235 titles.", ["235"], "She won more than 200 titles."),
        ("Seventeen big cups.", ["seventeen"], "More than ten big cups."),
        ("She won three medals.", ["three"], "She won several medals."),
        ("He died aged 34, at the age of 56.", ["34", "56"], "He died aged over 30, at the age of over 50."),
        ("He left at 10:30 with 5.5 points.", ["10", "30", "5"], "He left at 10:30 with 5.5 points."),
        ("He left his 17 dogs.", ["17"], "He left his dogs."),
    ],
)
def test_words_become_general(text, wanted, out):
    assert changed(text, *wanted) == out


def test_the_second_choice_is_more_general():
    assert changed("She plays the guitar.", "guitar", last=True) == "She plays something."


def test_the_second_choice_of_a_number_is_vague():
    assert changed("She won 17 titles in 1974.", "17", "1974", last=True) == "She won several titles in some year."


def test_signs_and_long_rows_of_digits_are_no_numbers_to_count_with():
    number = "9" * 5000
    assert changed(f"A house of 90 m\u00b2 has {number} rooms.", number) == "A house of 90 m\u00b2 has several rooms."
    words = list_words_and_placeholders("A house of 90 \u00b2 has rooms.")
    assert all("\u00b2" not in list_general_replacements(words, i) for i in range(len(words)))


def test_an_article_follows_what_comes_after_a_word_that_went():
    assert changed("She is a famous [OCCUPATION_1].", "famous") == "She is an [OCCUPATION_1]."


def test_function_words_and_placeholders_have_no_choice():
    text = "PERSON_FIRSTNAME_1 is not the one who was there with [ORGANIZATION_2]."
    words = list_words_and_placeholders(text)
    assert [w.text for w in words if w.label is not None] == ["PERSON_FIRSTNAME_1", "[ORGANIZATION_2]"]
    assert not any(
        list_general_replacements(words, i)
        for i, w in enumerate(words)
        if w.label is not None or w.lower_text in ("not", "the", "was")
    )


DRAFT = "She was born in LOCATION_1. PRONOUN has dyspraxia and the tallest house. They say so."


def test_a_sentence_goes_as_a_whole_and_the_last_one_stays():
    draft = Draft(DRAFT, DRAFT)
    for sentence in range(3):
        draft.make_move(next(m for m in draft.list_moves() if m.part == sentence))
        if not any(m.part >= 0 for m in draft.list_moves()):
            break
    assert draft.render() == "They say so."
    assert draft.compute_share_gone() == pytest.approx(1 - 2 / draft.total)


def test_a_sentence_in_which_all_words_are_general_says_nothing_and_goes():
    text = "She was born in LOCATION_1. PRONOUN wrote novels. They say so."
    draft = Draft(text, text)
    draft.make_move(next(m for m in draft.list_moves() if draft.words[m.words[0]].text == "novels"))
    assert draft.render() == "She was born in LOCATION_1. PRONOUN wrote works. They say so."
    draft.make_move(next(m for m in draft.list_moves() if draft.words[m.words[0]].text == "wrote"))
    assert draft.render() == "She was born in LOCATION_1. They say so."


def test_the_last_sentence_stays_though_it_says_nothing():
    draft = Draft("He wrote novels.", "He wrote novels.")
    for wanted in ("wrote", "novels"):
        draft.make_move(next(m for m in draft.list_moves() if draft.words[m.words[0]].text == wanted))
    assert draft.render() == "He made works."


def test_a_sentence_behind_one_that_went_does_not_begin_with_a_connective():
    text = "She is a singer. Also very funny. But so tall. So tall. So he left. However, she stays."
    draft = Draft(text, text)
    for sentence in (0, 2, 4):
        draft.make_move(next(m for m in draft.list_moves() if m.part == sentence))
    assert draft.render() == "Very funny. So tall. She stays."


@check_each_row(
    "text, word, step, rough",
    [
        ("She is a shy singer.", "singer", 0, 0.0),
        ("She is a shy singer.", "singer", 1, 1.0),  # a person
        ("She met the singers.", "singers", 0, 0.0),
        ("She released a ballad.", "ballad", 0, 1.0),  # a music
        ("She released the ballad.", "ballad", 0, 0.0),
        ("He was governor.", "governor", 0, 1.0),  # was leader
        ("She loved the ascent.", "ascent", 0, 1.0),
        ("She wrote novels.", "wrote", 0, 0.1),
        ("She wrote novels.", "wrote", 1, 0.6),
        ("She lived in LOCATION_1.", "lived", 0, 0.5),
        ("The nurse was sacked.", "sacked", 0, 1.0),
        ("He became an OCCUPATION_2.", "became", 0, 0.0),
        ("She is tall.", "tall", 0, 1.0),  # special
        ("She has a tall horse.", "tall", 0, 0.0),
        ("She has a nice face.", "nice", 0, 1.0),  # a face
        ("He met her brother PERSON_2.", "brother", 0, 1.0),  # her PERSON_2
        ("He won 17 medals.", "17", 0, 0.0),
    ],
)
def test_general_words_that_say_nothing_are_rough(text, word, step, rough):
    words = list_words_and_placeholders(text)
    i = next(i for i, w in enumerate(words) if w.text == word)
    assert measure_roughness(words, i, step, list_general_replacements(words, i)[step]) == rough


def test_what_says_nothing_costs_more_and_its_phrase_less():
    text = "She was tall in the hills of Wales. They say so."
    draft = Draft(text, text)

    def find_move(cost, word, part):
        moves = [m for m in draft.list_moves(cost) if (m.part >= 0) == part]
        return next(m for m in moves if draft.words[m.words[-1]].text in (word, "."))

    assert find_move(3.0, "tall", False).cost == pytest.approx(find_move(0.0, "tall", False).cost + 3)
    before = find_move(3.0, "tall", True)
    draft.make_move(find_move(0.0, "tall", False))
    after = find_move(3.0, "tall", True)
    assert not before.is_due and after.is_due and after.cost < before.cost


def test_rare_words_and_superlatives_are_hints():
    draft = Draft(DRAFT, DRAFT)
    assert [draft.words[i].text for i in draft.list_hints()] == ["dyspraxia", "tallest"]


def test_content_gone_counts_general_words_as_gone():
    draft = Draft("She plays the guitar.", "She plays the guitar.")
    assert draft.compute_share_gone() == 0
    draft.make_move(next(m for m in draft.list_moves() if draft.words[m.words[0]].text == "guitar"))
    assert draft.render() == "She plays the music." and draft.compute_share_gone() == 0.5


WORDS = "a an the ginger hair guitar singer has plays PRONOUN PERSON_1 and , . very famous old nurse was is in 12 But tall Also Leeds out ( ) - 's\n"


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(WORDS.split(" ")), max_size=25), st.randoms(use_true_random=False))
def test_drafts_only_lose_and_their_edits_undo(pieces, random):
    text = " ".join(pieces)
    draft = Draft(text, text)
    last = 0.0
    for _ in range(random.randint(0, 12)):
        if moves := draft.list_moves():
            draft.make_move(random.choice(moves))
        if draft.total:
            assert draft.compute_share_gone() >= last
            last = draft.compute_share_gone()
    edits = draft.make_edits()
    out = draft.render()
    plan = Plan(digest(text), tuple(edits), (), digest(out))
    assert apply(text, plan) == out
    assert invert_plan(out, plan) == text
    assert draft.dropped or out.count("PERSON_1") == text.count("PERSON_1")
    weights = [(i, i + 1, 1.0) for i in range(len(out))]
    assert sum(draft.sum_by_word(weights)) == pytest.approx(len(out)) or not draft.words or not out
    copy = Draft(text, text)
    copy.state = draft.state
    assert copy.render() == out


@settings(max_examples=100, deadline=None)
@given(st.text("abcd ", max_size=20), st.data())
def test_two_plans_as_one(text, data):
    def plan(of):
        cuts = sorted(data.draw(st.lists(st.integers(0, len(of)), max_size=8, unique=True)))
        edits = tuple(
            Edit(a, b, data.draw(st.text("xyz ", max_size=3)), "PERSON", n + 1, "t@1", of[a:b])
            for n, (a, b) in enumerate(zip(cuts[::2], cuts[1::2], strict=False))
        )
        return Plan(digest(of), edits, (), digest(apply_edits(of, edits)))

    first = plan(text)
    between = apply(text, first)
    second = plan(between)
    both = chain_plans(text, first, second)
    assert apply(text, both) == apply(between, second)
    assert invert_plan(apply(text, both), both) == text


def test_plans_that_do_not_follow_are_refused():
    one = Plan(digest("abc"), (), (), digest("abc"))
    with pytest.raises(PlanMismatch):
        chain_plans("abc", one, Plan(digest("other"), (), (), digest("other")))
