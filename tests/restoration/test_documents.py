"""From a vault of many documents: the right document, exactly, and nothing that is no replacement."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from allonym.errors import RestoreError, UsageError
from allonym.pipeline import anonymize
from allonym.plan import Edit, Plan, apply_edits, digest
from allonym.replace.operators import add_check_digit
from allonym.restoration import Restorer, restore, restore_stream
from allonym.restoration.lookup import list_surfaces
from allonym.vault import Vault

KEY = b"a key only for the tests, 32 byte"


def keep(vault, document, text, *pairs):
    """Enter a document as anonymising does it: (original, replacement, label) in reading order."""
    edits, position = [], 0
    for number, (original, replacement, label) in enumerate(pairs, 1):
        start = text.index(original, position)
        position = start + len(original)
        edits.append(Edit(start, position, replacement, label, number, "pseudonym@1", original))
    made = apply_edits(text, edits)
    with vault.book("s") as book:
        for edit in edits:
            book.remember(edit.replacement, edit.original, edit.label, edit.operator, edit.original.lower())
        book.keep_plan(document, Plan(digest(text), tuple(edits), (), digest(made)), made)
    return made


ADA = ("Ada Brook", "Emma Tyler", "PERSON")
LEEDS = ("Leeds", "Hamburg", "CITY")


@pytest.fixture
def vault(tmp_path):
    with Vault.create(tmp_path / "v.sqlite", KEY) as made:
        yield made


def bring(vault, text, **more):
    return restore(text, vault=vault, scope="s", **more)


def test_what_only_the_document_tells_comes_back_exactly(vault):
    texts = [
        f"On page 45, {name} was {age} in May; {name.split()[0]} left."
        for name, age in (("Ada Brook", 43), ("Cyd Dale", 61), ("Eve Ford", 29))
    ]
    made = [
        keep(
            vault,
            f"letter {i}",
            text,
            (name, f"Emma {family}", "PERSON"),
            (str(age), "45", "AGE"),
            ("May", "June", "DATE_TIME"),
            (name.split()[0], "Emma", "PERSON"),
        )
        for i, (text, name, age, family) in enumerate(
            zip(texts, ("Ada Brook", "Cyd Dale", "Eve Ford"), (43, 61, 29), ("Tyler", "Stone", "Holm"), strict=True)
        )
    ]
    for i, (text, output) in enumerate(zip(texts, made, strict=True)):
        done = bring(vault, output)
        assert (done.text, done.unknown, done.documents) == (text, 0, (f"letter {i}",))
        assert {one.evidence for one in done.found} == {"output"}


def test_an_edited_text_finds_its_document(vault):
    text = "Ada Brook came to Leeds.\nShe was 43 years old then. Ada left in May."
    made = keep(vault, "a", text, ADA, LEEDS, ("43", "45", "AGE"), ("Ada", "Emma", "PERSON"), ("May", "June", "DATE"))
    keep(vault, "b", "Cyd was 61 in Rome.", ("Cyd", "Emma", "PERSON"), ("61", "45", "AGE"), ("Rome", "Essen", "CITY"))
    edited = "New first line, page 45.\n" + made.replace("came to", "went to") + "\nYours, Emma Tyler"
    done = bring(vault, edited)
    assert done.text == "New first line, page 45.\n" + text.replace("came to", "went to") + "\nYours, Ada Brook"
    assert done.documents == ("a",)
    assert "sentence" in {one.evidence for one in done.found}


def test_several_documents_of_one_output_are_named_and_the_caller_chooses(vault):
    made = [
        keep(vault, name, f"{name} is {age}.", (name, "Emma", "PERSON"), (str(age), "45", "AGE"))
        for name, age in (("Ada", 43), ("Cyd", 43))
    ]
    assert made[0] == made[1]
    done = bring(vault, made[0])
    assert (done.text, sorted(done.documents), done.unknown) == ("Emma is 43.", ["Ada", "Cyd"], 1)
    assert "name the document" in done.residue[0].why
    assert bring(vault, made[0], document="Cyd").text == "Cyd is 43."
    with pytest.raises(RestoreError, match="no document 'Bob'"):
        bring(vault, made[0], document="Bob")
    with pytest.raises(UsageError, match="vault="):
        restore(made[0], key=KEY, document="Cyd")


def test_where_only_one_of_the_documents_replaced_a_word_it_is_left_and_listed(vault):
    keep(vault, "a", "Emma is here, aged 45.", ("45", "45", "AGE"))
    keep(vault, "b", "Ada is here, aged 45.", ("Ada", "Emma", "PERSON"), ("45", "45", "AGE"))
    done = bring(vault, "Emma is here, aged 45.")
    assert (done.text, done.restored, done.unknown) == ("Emma is here, aged 45.", 1, 1)
    assert sorted(done.documents) == ["a", "b"]
    assert [done.text[one.start : one.end] for one in done.residue] == ["Emma"]


def test_a_document_without_replacements_stays_as_it_is(vault):
    keep(vault, "a", "Ada Brook of Leeds", ADA, LEEDS)
    text = keep(vault, "b", "Emma Tyler of Hamburg came.")
    done = bring(vault, text)
    assert (done.text, done.found, done.unknown, done.documents) == (text, (), 0, ("b",))


def test_passages_that_were_removed_side_by_side_come_back(vault):
    text = "AdaBrook left."
    made = keep(vault, "a", text, ("Ada", "", "PERSON"), ("Brook", "", "PERSON"))
    assert bring(vault, made).text == text


UNRELATED = (
    "Don't ask. Das Essen war gut, und Hamburg ist schön.",
    "M. Tyler came from Hamburg in May, aged 45.",
    "the emma crater; EMMA is an acronym; tyler_emma = load('hamburg')",
    "Emmas Tylers Hamburger Hamburgs",
)


@pytest.mark.parametrize("text", UNRELATED)
def test_a_text_of_nobody_is_left_alone(vault, text):
    keep(
        vault,
        "a",
        "Ada Brook of Leeds, Rob of York, 43",
        ADA,
        LEEDS,
        ("Rob", "Don", "PERSON"),
        ("York", "Essen", "CITY"),
        ("43", "45", "AGE"),
    )
    done = bring(vault, text)
    assert done.text == text and done.found == ()
    assert "".join(restore_stream([text], vault=vault, scope="s")) == text
    assert Restorer.from_vault(vault, "s").restore(text).text == text


def test_its_document_is_the_evidence_for_what_any_text_may_have(vault):
    keep(vault, "a", "Ada Brook of Leeds", ADA, LEEDS)
    keep(vault, "b", "Cyd Dale of York", ("Cyd Dale", "Eve Stone", "PERSON"), ("York", "Essen", "CITY"))
    done = bring(vault, "Emma Tyler: Mrs Tyler moved from Hamburg to Essen.")
    assert done.text == "Ada Brook: Mrs Brook moved from Leeds to Essen."
    assert [one.evidence for one in done.found] == ["replacement", "full name", "document"]
    assert [done.text[one.start : one.end] for one in done.residue] == ["Essen"] and done.unknown == 1
    alone = bring(vault, "Mrs Tyler moved from Hamburg.")
    assert alone.text == "Mrs Tyler moved from Hamburg." and alone.unknown == 2


def test_a_stream_takes_what_came_before_as_evidence(vault):
    keep(vault, "a", "Ada Brook of Leeds", ADA, LEEDS)
    pieces = ["In Hamburg, Emma ", "Tyler said: I love Ham", "burg."]
    assert "".join(restore_stream(pieces, vault=vault, scope="s")) == "In Hamburg, Ada Brook said: I love Leeds."


def test_with_a_plan_too_a_changed_form_needs_evidence():
    text = "Ada Brook of Leeds, 43"
    edits = (
        Edit(0, 9, "Emma Tyler", "PERSON", 1, "pseudonym@1", "Ada Brook"),
        Edit(13, 18, "Essen", "CITY", 2, "pseudonym@1", "Leeds"),
        Edit(20, 22, "45", "AGE", 3, "pseudonym@1", "43"),
    )
    plan = Plan(digest(text), edits, (), digest(apply_edits(text, edits)))
    for given_text, expected in (
        ("Das Essen war gut.", "Das Essen war gut."),
        ("A tyler and Emma, 45.", "A tyler and Emma, 45."),
        ("Mrs Tyler came.", "Mrs Brook came."),
        ("In Essen, Tyler was 45.", "In Leeds, Brook was 43."),
        ("Emma Tyler said: Emma went.", "Ada Brook said: Ada went."),
    ):
        assert restore(given_text, plan=plan).text == expected


def test_one_common_word_in_a_long_text_is_no_evidence_of_a_plan_with_many():
    names = ("Ewa", "Walter", "Petra", "Oskar", "Nadia", "Leon")
    originals = ("Ada", "Ben", "Cyd", "Dov", "Eve", "Fay")
    text, position, edits = ", ".join(originals), 0, []
    for serial, (name, original) in enumerate(zip(names, originals, strict=True), 1):
        position = text.index(original, position)
        edits.append(Edit(position, position + 3, name, "PERSON", serial, "pseudonym@1", original))
    plan = Plan(digest(text), tuple(edits), (), digest(apply_edits(text, edits)))
    long = " The report says that it rained all day." * 20
    assert restore("Ewa came." + long, plan=plan).text == "Ewa came." + long
    assert restore("Ewa came.", plan=plan).text == "Ada came."
    assert restore("Ewa met Walter." + long, plan=plan).text == "Ada met Ben." + long


def test_an_age_in_words_is_in_any_text(vault):
    keep(vault, "a", "Ada is 18 years old", ("Ada", "Emma", "PERSON"), ("18 years old", "20 years old", "AGE"))
    assert bring(vault, "Nobody is 20 years old here.").text == "Nobody is 20 years old here."


def test_placeholders_that_nobody_made_and_doubled_ones_are_noticed(vault):
    made = anonymize("Write to ada.brook@example.com now.", "reversible", vault=vault, scope="s")
    done = bring(vault, made.text + " <EMAIL 1> <EMAIL 1>, <EMAIL 7>, <PERSON 3>")
    assert done.text.endswith("now. ada.brook@example.com ada.brook@example.com, <EMAIL 7>, <PERSON 3>")
    whys = [one.why for one in done.residue]
    assert len(whys) == done.unknown == 3
    assert "twice" in whys[0] and "not known" in whys[1] and "invented" in whys[2]


@settings(max_examples=30, deadline=None)
@given(st.lists(st.text("Ada Emma45.\n\r\u2028'é\u00ad<>1", max_size=30), min_size=1, max_size=4), st.data())
def test_whatever_the_documents_each_comes_back(tmp_path_factory, texts, data):
    with Vault.create(tmp_path_factory.mktemp("v") / "v.sqlite", KEY) as vault:
        outputs = {}
        for i, text in enumerate(texts):
            words = [word for word in dict.fromkeys(text.split()) if word in ("Ada", "45", "Emma")]
            pairs = [(word, data.draw(st.sampled_from(["Emma", "45", "<PERSON 1>"])), "PERSON") for word in words]
            pairs = sorted(pairs, key=lambda pair: text.index(pair[0]))
            try:
                outputs[f"d{i}"] = text, keep(vault, f"d{i}", text, *pairs)
            except ValueError:  # a word within another: not in this order
                continue
        for document, (text, made) in outputs.items():
            assert bring(vault, made, document=document).text == text


def test_a_large_scope_is_looked_up_and_not_read(vault, monkeypatch):
    made = keep(vault, "d1", "Ada Brook left Leeds. The end.", ADA, LEEDS)
    with vault.book("s") as book:
        book.remember("<PERSON 7>", "Tom Ellery", "PERSON", "tag@1", "tom ellery")
        book.remember("030 1234567", "030 7654321", "PHONE_NUMBER", "pseudonym@1", "030 7654321")
        book.remember("Bath", "Graz", "CITY", "pseudonym@1", "graz")
    answer = "So EMMA TYLER has gone from Hamburg; PERSON_7, [Person 7] and 030 1234567 know. Ask Mr Tylr."
    small = restore(answer, vault=vault, scope="s")
    told = "So ADA BROOK has gone from Leeds; Tom Ellery, Tom Ellery and 030 7654321 know. Ask Mr Brook."
    assert small.text == told
    monkeypatch.setattr("allonym.restoration.bring.MOST_LOADED", 2)
    with monkeypatch.context() as patch:
        patch.setattr(Vault, "known", lambda *_: pytest.fail("the whole scope was read"))
        assert restore(answer, vault=vault, scope="s").text == small.text
        assert restore(made, vault=vault, scope="s").text == "Ada Brook left Leeds. The end."
        restorer = Restorer.from_vault(vault, "s")
        assert restorer.restore("Emma Tyler: hello, Emma.").text == "Ada Brook: hello, Ada."
        assert restorer.restore("Nobody left Bath.").text == "Nobody left Bath."
    assert restorer.shared == 0
    assert "".join(restorer.stream(["Emma Ty", "ler left."])) == "Ada Brook left."
    with pytest.raises(RestoreError, match="knows nothing"):
        Restorer.from_vault(vault, "t")


@pytest.mark.parametrize(
    "answer",
    [
        "EMMA CLARK, Emma\nClark and Emma&nbsp;Clark's house",
        "Emma O’Neil\u2011Weiss, Emma O'Neil-Weiss",
        "คุณสมชาย ใจดี มา",
        "[Person 1], PERSON_1 and <Osoba 1>",
        "call +49 30 1234567 or emma.clark@example.com.",
    ],
)
def test_a_large_scope_restores_what_a_small_one_does(answer, vault, monkeypatch):
    with vault.book("s") as book:
        for replacement, original, label in (
            ("Emma Clark", "Ada Brook", "PERSON"),
            ("Emma O'Neil-Weiss", "Zoe Quill-Hart", "PERSON"),
            ("สมชาย ใจดี", "มานะ สุขใจ", "PERSON"),
            ("<PERSON 1>", "Tom Ellery", "PERSON"),
            ("+49 30 1234567", "+49 40 7654321", "PHONE_NUMBER"),
            ("emma.clark@example.com", "ada@example.org", "EMAIL_ADDRESS"),
        ):
            operator = "tag@1" if "<" in replacement else "pseudonym@1"
            book.remember(replacement, original, label, operator, original)
    small = restore(answer, vault=vault, scope="s")
    monkeypatch.setattr("allonym.restoration.bring.MOST_LOADED", 2)
    assert restore(answer, vault=vault, scope="s") == small
    assert small.restored and not small.unknown


def test_a_wild_code_with_one_slip_is_found_in_a_large_scope(vault, monkeypatch):
    code = add_check_digit("8F3A21C0")
    with vault.book("s") as book:
        book.remember(f'<PERSON "{code}">', "Ada Brook", "PERSON", "wild_tag@1", "ada")
        book.remember('<PERSON "77FF0A31">', "Tom Ellery", "PERSON", "wild_tag@1", "tom")  # before check digits
    slips = [code[:i] + new + code[i + 1 :] for i in range(len(code)) for new in ("", "6") if code[i] != new]
    slips += [code, f"{code[:4]}B{code[4:]}"]
    monkeypatch.setattr("allonym.restoration.bring.MOST_LOADED", 1)
    for slip in slips:
        assert restore(f'So <PERSON "{slip}"> said.', vault=vault, scope="s").text == "So Ada Brook said.", slip
    assert restore('So <PERSON "77FF0A31"> said.', vault=vault, scope="s").text == "So Tom Ellery said."


def test_a_number_behind_any_word_is_no_code_to_be_corrected():
    assert {surface for surface in list_surfaces("paid 4471082") if "4471082" not in surface} == {"paid"}
    assert '<person "44710829">' in list_surfaces("<PERSON 4471082>")


def test_originals_that_are_looked_up_together_come_oldest_first(vault):
    with vault.book("s") as book:
        for number in range(1, 1200):
            book.remember(f"<PERSON {number}>", f"Name {number}", "PERSON", "tag@1", f"name {number}")
    looked_up = vault.find_all("s", {f"<PERSON {number}>" for number in range(1, 1200, 2)})
    assert list(looked_up) == [entry for entry in vault.known("s") if int(entry.entity[5:]) % 2]


JOBS = (("singer", "tenor", "OCCUPATION"), ("2011", "2014", "DATE"))


def test_a_rewritten_text_finds_its_document_by_its_replacements(vault):
    keep(vault, "one", "Ada Brook, a singer, left in 2011.", ADA, *JOBS)
    other = (("drummer", "tenor", "OCCUPATION"), ("1999", "2014", "DATE"))
    keep(vault, "two", "Cyd Dale, a drummer, left in 1999.", ("Cyd Dale", "Guy Lund", "PERSON"), *other)
    result = bring(vault, "> In **2014** the *tenor* went away: GUY LUND.")
    assert result.text == "> In **1999** the *drummer* went away: CYD DALE."
    assert result.documents == ("two",)


def test_few_replacements_or_several_documents_show_none(vault):
    keep(vault, "one", "Ada Brook, a singer, left in 2011.", ADA, *JOBS)
    text = "In 2014 a tenor sang."
    assert bring(vault, text).text == text  # nobody is named
    keep(vault, "two", "Ada Brook, a drummer, left.", ADA, ("drummer", "tenor", "OCCUPATION"))
    keep(vault, "three", "Ada Brook, a piper, left.", ADA, ("piper", "tenor", "OCCUPATION"))
    result = bring(vault, "The tenor was called Emma Tyler.")
    assert "tenor" in result.text and result.unknown
