"""restore(anonymize(x)) == x, and what can be done for a text that was rewritten since."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allonym.document import Document, Entity, Span
from allonym.errors import RestoreError, UsageError
from allonym.pipeline import anonymize
from allonym.plan import Edit, Plan, apply, digest
from allonym.policy import Policy, Rule
from allonym.replace import make_plan
from allonym.replace.operators import encrypt_text
from allonym.restoration import Found, Restored, Restorer, restore
from allonym.vault import Vault
from allonym.vault.records import Known

KEY = b"a key only for the tests, 32 byte"
OTHER = b"another key for the tests 32 byte"
TAGS = Policy(name="tags", default=Rule("tag"))
ENCRYPT = Policy(name="encrypt", default=Rule("encrypt"))
GENUINE = encrypt_text("Jane", "PERSON", KEY)

surfaces = st.one_of(
    st.sampled_from(
        ["Jane", "Jane's", "6", "Inc.", "e\u0301", "\ud83d", "[PERSON_2]", GENUINE, GENUINE[:20], "a", " b "]
    ),
    st.text(min_size=1, max_size=5),
)
gaps = st.one_of(
    st.sampled_from(
        [
            "",
            " ",
            " an ",
            "th",
            "[PERSON_1]",
            "\r\n",
            "\udc00",
            GENUINE,
            GENUINE.lower(),
            GENUINE[9:],
            "[X:e1:",
            "]",
            "\\",
            "'s",
        ]
    ),
    st.text(max_size=5),
)
OPERATORS = ("tag", "sanitize", "wild_tag", "suppress", "mask", "hash", "encrypt", "generalise", "shift_dates")


@st.composite
def marked(draw):
    text, known = draw(gaps), {}
    for _ in range(draw(st.integers(0, 6))):
        surface, label = draw(surfaces), draw(st.sampled_from(["PERSON", "CITY", "DATE", "PASSWORD"]))
        known.setdefault((label, surface), []).append(Span(len(text), len(text) + len(surface), label))
        text += surface + draw(gaps)
    return Document("", text), [Entity(f"{k[0]}:{k[1]}", k[0], tuple(v)) for k, v in known.items()]


POLICIES = [
    Policy(name="p", default=Rule(o), style=s)
    for o in OPERATORS
    for s in ("[{label}_{n}]", "<{label} {n}{form}>", "{label}", "{n}")
]


@given(marked(), st.sampled_from(POLICIES))
def test_the_plan_restores_exactly(given_, policy):
    document, entities = given_
    plan = make_plan(document, entities, policy, key=KEY)
    made = apply(document, plan)
    assert restore(made, plan=plan).text == document.text
    saved = Plan.from_dict(plan.to_dict(originals=True))
    assert restore(made, plan=saved).text == document.text


@given(marked())
def test_the_key_alone_restores_exactly(given_):
    document, entities = given_
    made = apply(document, make_plan(document, entities, ENCRYPT, key=KEY))
    assert restore(made, key=KEY).text == document.text


@given(marked())
def test_layers_come_off_one_by_one(given_):
    document, entities = given_
    once = apply(document, make_plan(document, entities, ENCRYPT, key=KEY))
    twice = apply(once, make_plan(Document("", once), [], ENCRYPT, key=KEY))
    assert restore(twice, key=KEY).text == once
    assert restore(once, key=KEY).text == document.text


def build(*pieces, policy=TAGS, key=None):
    """Text from strings and (entity, label, surface)."""
    text, known = "", {}
    for piece in pieces:
        if isinstance(piece, str):
            text += piece
        else:
            name, label, surface = piece
            known.setdefault((name, label), []).append(Span(len(text), len(text) + len(surface), label))
            text += surface
    entities = [Entity(name, label, tuple(spans)) for (name, label), spans in known.items()]
    plan = make_plan(Document("", text), entities, policy, key=key)
    return apply(text, plan), plan


def test_a_rewritten_text_gets_its_originals_back():
    _, plan = build(("j", "PERSON", "Jane's"), " dog met ", ("a", "PERSON", "Ann Lee"), " in ", ("r", "CITY", "Rome."))
    done = restore("In [CITY_1], [PERSON_2] was met by the dog of [PERSON_1]!", plan=plan)
    assert done.text == "In Rome, Ann Lee was met by the dog of Jane!"
    assert (done.restored, done.unknown, done.notes) == (3, 0, ())
    assert done.found[0] == Found(3, 7, "exact", "CITY")
    assert [done.text[f.start : f.end] for f in done.found] == ["Rome", "Ann Lee", "Jane"]


def test_ten_is_not_one():
    style = TAGS.with_(style="{label}_{n}")
    parts = [p for i in range(12) for p in ((f"n{i}", "PERSON", f"Name{chr(97 + i)}"), ", ")]
    _, plan = build(*parts, policy=style)
    done = restore("PERSON_10 and PERSON_1; XPERSON_1, PERSON_123, MY_PERSON_1", plan=plan)
    assert done.text == "Namej and Namea; XPERSON_1, PERSON_123, MY_PERSON_1"


def test_originals_that_look_like_tags_or_patterns_are_not_read_again():
    _, plan = build(("a", "PERSON", r"\1 [CITY_1]"), " ", ("b", "CITY", "(a+)+$ [PERSON_1]"), policy=TAGS)
    tags = [e.replacement for e in plan.edits]
    done = restore(f"{tags[1]} | {tags[0]}", plan=plan)
    assert done.text == r"(a+)+$ [PERSON_1] | \1 [CITY_1]"


def test_hostile_styles_are_taken_literally():
    policy = TAGS.with_(style="[REDACTED_{label}_{n}].*")
    _, plan = build("see ", ("a", "PERSON", "Jane"), " and D", policy=policy)
    assert restore("D. [REDACTED_PERSON_1].*, REDACTEDxPERSON_1", plan=plan).text == "D. Jane, REDACTEDxPERSON_1"
    policy = TAGS.with_(style="({label}|.{n})+")
    _, plan = build("see ", ("a", "PERSON", "Jane"), " and D", policy=policy)
    assert restore("D(PERSON|.1)+, PERSON, 1, D", plan=plan).text == "DJane, PERSON, 1, D"


def test_surfaces_of_one_entity_come_back_in_order_or_in_full():
    made, plan = build(("j", "PERSON", "Ms Doe"), " is ", ("j", "PERSON", "Jane Doe"), ".")
    assert restore(made + "!", plan=plan).text == "Ms Doe is Jane Doe.!"
    fewer = restore("Only [PERSON_1].", plan=plan)
    assert fewer.text == "Only Jane Doe."
    assert fewer.notes == ("one PERSON has several names in the original; the fullest stands everywhere",)


def test_a_tag_that_carries_the_form_brings_back_that_form():
    policy = TAGS.with_(style="<{label} {n}{form}>")
    made, plan = build(
        "From: ", ("d", "PERSON", "Dorland, Chris"), "\n\nHi ", ("d", "PERSON", "Chris"), ", Mr ",
        ("d", "PERSON", "Dorland"), " sold ", ("a", "ORGANIZATION", "Ashdown Marine plc"), ". ",
        ("a", "ORGANIZATION", "Ashdown"), " is his. ", ("l", "PERSON", "Lee"), " knows ", ("l", "PERSON", "Lee"), ".",
        policy=policy,
    )  # fmt: skip
    assert made == (
        "From: <PERSON 1>\n\nHi <PERSON 1.given>, Mr <PERSON 1.family> sold <ORGANIZATION 1>. <ORGANIZATION 1.short> is "
        "his. <PERSON 2> knows <PERSON 2>."
    )
    done = restore(
        "Dear <PERSON 1.given>, <ORGANIZATION 1.short> wrote to Mr <PERSON 1.family> and <PERSON 2>.", plan=plan
    )
    assert done.text == "Dear Chris, Ashdown wrote to Mr Dorland and Lee." and not done.unknown


def test_a_replacement_of_two_entities_is_left_and_counted():
    _, plan = build(("a", "PERSON", "Jane"), " ", ("b", "PERSON", "Ann"), policy=TAGS.with_(style="[{label}]"))
    done = restore("So [PERSON] and [PERSON]", plan=plan)
    assert done.text == "So [PERSON] and [PERSON]"
    assert (done.restored, done.unknown) == (0, 2)


@pytest.mark.parametrize("operator", ["suppress", "mask", "generalise"])
def test_what_is_gone_is_counted(operator):
    _, plan = build("a ", ("a", "DATE", "12 May 2020"), " b", policy=Policy(name="p", default=Rule(operator)))
    done = restore("other 2020 **", plan=plan)
    assert (done.text, done.restored, done.unknown) == ("other 2020 **", 0, 1)


def test_a_dropped_tag_is_counted_and_is_no_error():
    _, plan = build(("a", "PERSON", "Jane"), " slept")
    missing = ("this text does not mention one PERSON of the original",)
    assert restore("slept", plan=plan) == Restored("slept", 0, 0, missing, missing=1)


def test_tokens_in_a_rewritten_text():
    made, plan = build(("a", "PERSON", "Jane's"), " in ", ("b", "CITY", "Rome"), policy=ENCRYPT, key=KEY)
    moved = " / ".join(reversed(made.split(" in ")))
    assert restore(moved, key=KEY).text == "Rome / Jane's"
    assert restore(moved, plan=plan).text == "Rome / Jane's"
    assert restore(moved.lower(), key=KEY).text == "Rome / Jane's"
    wrong = restore(moved, key=OTHER)
    assert (wrong.text, wrong.restored, wrong.unknown) == (moved, 0, 2)
    assert restore(f"{moved} {GENUINE}", plan=plan, key=KEY).text == "Rome / Jane's Jane"


def test_signs_around_a_tag_are_the_texts():
    _, plan = build(("a", "PERSON", "Jane"), " met ", ("b", "PERSON", "Ann"), " and ", ("c", "PERSON", "Eve"))
    for text, expected in (
        ("[[PERSON_1]] met [[PERSON_2]]", "[Jane] met [Ann]"),
        ("[[PERSON_1]]: Hi.\n[[PERSON_2]]: Hi.", "[Jane]: Hi.\n[Ann]: Hi."),
        ("[[PERSON_1]] met [PERSON_2], [[PERSON_3]]", "[Jane] met Ann, [Eve]"),
        ("(PERSON_1) met (PERSON_2)", "(Jane) met (Ann)"),
        ("[`PERSON_1`] met `PERSON_2`", "[`Jane`] met `Ann`"),
        ("{PERSON_1} met [ PERSON_2 ]", "Jane met Ann"),
        ("(PERSON_1) met PERSON_2", "(Jane) met Ann"),
        ("see [[PERSON_1]](#a) and [[PERSON_2]](#b)", "see [Jane](#a) and [Ann](#b)"),
    ):
        assert restore(text, plan=plan).text == expected


def test_what_only_numbers_tell_needs_the_plan():
    made = Plan(
        digest("B: Hi. Sunday."),
        (Edit(0, 1, "T", "PERSON", 1, "pseudonym@1", "B"), Edit(7, 13, "Monday", "DATE", 2, "pseudonym@1", "Sunday")),
        (),
        digest("T: Hi. Monday."),
    )
    assert restore("**T**: Hi. MONDAY.", plan=made).text == "**B**: Hi. SUNDAY."
    twice = restore("**T**: Hi T. MONDAY, monday.", plan=made)
    assert twice.text == "**T**: Hi T. MONDAY, monday." and twice.restored == 0
    known = [Known("T", "B", "PERSON", "pseudonym@1", "b")]
    assert Restorer(known).restore("T: Hi.").text == "T: Hi."


def test_a_slip_is_none_where_nothing_is_missing():
    text, made = "Mara and Maron", "Kelton and Maron"
    edits = (Edit(0, 4, "Kelton", "PERSON", 1, "pseudonym@1", "Mara"),)
    plan = Plan(digest(text), edits, (), digest(made))
    assert restore("Kelton, Kelson", plan=plan).text == "Mara, Kelson"
    assert restore("So Kelson", plan=plan).text == "So Mara"


@pytest.mark.parametrize("style", ["[{label}_{n}]", "<{label} {n}>", "##{label}{n}##"])
def test_backslashes_before_a_tag_that_nobody_touched_are_the_texts(tmp_path, style):
    text = "Keep \\jane.doe@example.com and \\\\jane.doe@example.com\\x as they are."
    with Vault.create(tmp_path / "v.sqlite", KEY) as vault:
        made = anonymize(text, Policy.load("default").with_(style=style), vault=vault, scope="a")
        assert made.text.count("\\") == 4 and "jane" not in made.text
        assert restore(made.text, vault=vault, scope="a").text == text
        assert restore(made.text + " ", plan=made.plan).text == text + " "


def test_a_vault_restores_its_scope_and_notes_it(tmp_path):
    with Vault.create(tmp_path / "v.sqlite", KEY) as vault:
        with vault.book("a") as book:
            book.remember("Emma Tyler", "Sarah Connor", "PERSON", "pseudonym@1", "sarah connor")
            book.remember(GENUINE, "Jane", "PERSON", "encrypt@1", "jane")
        text = f"Dear MS TYLER, {GENUINE.lower()} [PERSON:e1:{'A' * 52}]"
        done = restore(text, vault=vault, scope="a")
        assert done.text == f"Dear MS CONNOR, Jane [PERSON:e1:{'A' * 52}]"
        assert (done.restored, done.unknown) == (2, 1)
        with pytest.raises(RestoreError, match="this vault knows nothing in scope 'b'; it has: 'a'"):
            restore(text, vault=vault, scope="b")
        restore("", vault=vault, scope="a", actor="ada")
        assert vault.audit()[-1].actor == "ada"
        _, plan = build(("j", "PERSON", "Jane"), " slept")
        both = restore("[PERSON_1] and Emma", plan=plan, vault=vault, scope="a", key=KEY)
        assert both.text == "Jane and Sarah" and both.unknown == 0
        assert next(dict(e.counts) for e in vault.audit() if e.action == "restore") == {"restored": 2, "unknown": 1}


def test_what_restore_needs():
    made, plan = build(("a", "PERSON", "Jane"), " slept")
    with pytest.raises(UsageError, match="needs plan="):
        restore(made)
    for wrong in ("study.vault", b"study.vault", Vault, 7):
        with pytest.raises(UsageError, match=r"vault must be a Vault: Vault.open\('...', secret\)"):
            restore(made, vault=wrong)
    with pytest.raises(UsageError, match="16 bytes"):
        restore(made, key=b"short")
    with pytest.raises(RestoreError, match="holds no originals"):
        restore(made, plan=Plan.from_dict(plan.to_dict()))


def test_nothing_shows_the_text():
    made, plan = build(("a", "PERSON", "Zyxwvut"), " slept")
    for done in (restore(made, plan=plan), restore(made + " or not, [PERSON_1]", plan=plan)):
        assert "Zyxwvut" in done.text
        assert "Zyxwvut" not in repr(done) + "".join(done.notes)


def test_family_name_of_an_original_that_ends_a_sentence():
    # The full stop belonged to the sentence of the original, wherever the shorter form now stands.
    restorer = Restorer([Known("Sarah Connor", "Emma Tyler.", "PERSON", "pseudonym@1", "emma tyler")])
    assert restorer.restore("Then Connor, who was late, left.").text == "Then Tyler, who was late, left."
