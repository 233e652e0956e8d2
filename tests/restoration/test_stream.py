"""What arrives in pieces comes back as the whole does, and no more is held back than may still become something."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.rows import check_each_row

from allonym.errors import RestoreError, UsageError
from allonym.plan import Edit, Plan, digest
from allonym.replace.operators import encrypt_text
from allonym.restoration import Restorer, restore, restore_stream
from allonym.vault.records import Known

KEY = b"a key only for the tests, 32 byte"
SEALED = encrypt_text("Jane Doe of Rome", "PERSON", KEY)
KNOWN = [
    Known("[PERSON_1]", "Sarah Connor", "PERSON", "tag@1", "a"),
    Known("[EMAIL_ADDRESS_2]", "s@x.org", "EMAIL_ADDRESS", "tag@1", "b"),
    Known('<PERSON "8F3A21C0">', "Kyle Reese", "PERSON", "wild_tag@1", "c"),
    Known("Emma Lou Tyler", "Ada May Brook", "PERSON", "pseudonym@1", "d"),
    Known("Lakeside Bank plc", "Quill Bank plc", "COMPANY", "pseudonym@1", "e"),
    Known("+49 30 1234567", "+49 30 7654321", "PHONE_NUMBER", "pseudonym@1", "f"),
    Known("12 May 2020", "3 March 2019", "DATE", "pseudonym@1", "g"),
    Known("e.tyler@example.com", "a.brook@quill.net", "EMAIL_ADDRESS", "pseudonym@1", "h"),
    Known("@@ID7@@", "Jo", "PERSON", "tag@1", "i"),
    Known("§§", "Li", "PERSON", "tag@1", "j"),
    Known("山田太郎", "佐藤花子", "PERSON", "pseudonym@1", "k"),
    Known(encrypt_text("Tom", "PERSON", KEY), "Tom", "PERSON", "encrypt@1", "l"),
]
PIECES = [one.replacement for one in KNOWN] + [
    "Emma", "Tyler", "E. L. Tyler", "Tyler, Emma", "Tylers", "Tylerem", "emma lou", "Ty-\nler", "Emma\nLou  Tyler", "E.T.",
    "PERSON_1", "person_1", "PERSON 1", "[[PERSON_1]]", "\\[PERSON\\_1\\]", "&lt;PERSON &quot;8F3A21C0&quot;&gt;", "[PERSN_1",
    "PERSON_1]", "[ PERSON_1 ]", "[PERSON_9]", "[EMAIL_\nADDRESS_2]", "[PER", "SON_1]", "LAKESIDE BANK", "Lakeside", "LBP",
    "030/1234567", "0049 30 1234 567", "May 12, 2020", "2020-05-12", "12.", "E.TYLER@EXAMPLE.COM", SEALED, SEALED.lower(),
    SEALED[1:-1], SEALED[:40] + "\n" + SEALED[40:], SEALED[:30], ":e1:", "e1", "§", "山田", "太郎さん", "\u200b", "\u00ad", "&",
    "&#", "&#91;", "&amp;", "lt;", "amp;", "\\", "\\u00", "%5", "%5B", "[", "]", "<", ">", "(", ")", '"', "'s", "’s", "_", "-", "\n", "\r\n", " ", "  ",
    " and ", ", ", ". ", "the report of a person", "1", "49", "+", "\ud83d", "é", "e\u0301", "a", "'owi",
]  # fmt: skip

texts = st.lists(st.one_of(st.sampled_from(PIECES), st.sampled_from(PIECES), st.text(max_size=3)), max_size=14).map(
    "".join
)


@st.composite
def chunked(draw):
    text = draw(texts)
    cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=12)))
    return text, [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]


@given(chunked())
@example(("ATy-\nler", ["ATy-", "\nler"]))
def test_in_any_pieces_it_is_what_the_whole_is(given_):
    text, chunks = given_
    restorer = Restorer(KNOWN, key=KEY)
    whole = restorer.restore(text).text
    assert "".join(restorer.stream(chunks)) == whole
    assert "".join(restorer.stream(text)) == whole


@given(texts)
def test_only_what_was_found_changes(text):
    done = Restorer(KNOWN, key=KEY).restore(text)
    kept, at = [], 0
    for found in done.found:
        kept.append(re.escape(done.text[at : found.start]))
        at = found.end
    kept.append(re.escape(done.text[at:]))
    assert re.fullmatch(".+?".join(kept), text, re.DOTALL)


def plan_of(*pairs):
    made = "".join(f"{r} " for r, _ in pairs)
    text = "".join(f"{o} " for _, o in pairs)
    edits, at = [], 0
    for i, (replacement, original) in enumerate(pairs):
        edits.append(Edit(at, at + len(original), replacement, "PERSON", i + 1, "tag@1", original))
        at += len(original) + 1
    return Plan(digest(text), tuple(edits), (), digest(made))


def test_a_plan_and_a_key_in_pieces():
    plan = plan_of(("[PERSON_1]", "Sarah"), ("[PERSON_2]", "Kyle"))
    chunks = ["So [PER", "SON_2", "] and ", SEALED[:9], SEALED[9:30], SEALED[30:], " and PERSON", "_1."]
    whole = "So Kyle and Jane Doe of Rome and Sarah."
    assert "".join(restore_stream(chunks, plan=plan, key=KEY)) == whole
    assert restore("".join(chunks), plan=plan, key=KEY).text == whole


def test_what_is_needed_is_said_before_the_first_piece():
    with pytest.raises(UsageError, match="needs plan="):
        restore_stream(iter([]))


def test_little_is_held_back():
    restorer = Restorer(KNOWN)
    said = []

    def pieces():
        for word in ("Today ", "the ", "office ", "called ", "[PERSON", "_1]", " and", " nobody", " else."):
            yield word
            said.append(word)

    out = []
    for made in restorer.stream(pieces()):
        out.append((len(said), made))
    assert "".join(made for _, made in out) == "Today the office called Sarah Connor and nobody else."
    by_piece = dict(out)
    assert [by_piece[i] for i in range(4)] == ["Today ", "the ", "office ", "called "]
    assert by_piece[6].startswith("Sarah Connor")


@check_each_row("piece", ["a", "[", "[[PERSON_", "PERSON:e1:", "\\", "&", "&amp;", "1", "1 ", "Lou ", "A" * 70 + " "])
@pytest.mark.slow
def test_what_is_held_back_is_bounded(piece):
    restorer = Restorer(KNOWN, key=KEY)
    size, done, most = 0, 0, 0
    chunk = piece * (1000 // len(piece))

    def pieces():
        nonlocal size
        for _ in range(20):
            size += len(chunk)
            yield chunk

    for made in restorer.stream(pieces()):
        most = max(most, size - done - len(made))
        done += len(made)
    assert most <= 2000


def test_a_space_that_the_plan_put_between_two_mentions_is_no_part_of_either():
    text, edits = (
        "Jo, x",
        (Edit(0, 2, "PERSON_1", "PERSON", 1, "tag@1", "Jo"), Edit(2, 4, " CITY_1 ", "CITY", 2, "tag@1", ", ")),
    )
    plan = Plan(digest(text), edits, (), digest("PERSON_1 CITY_1 x"))
    for chunks in (["PERSON_1 CITY_1 y"], "PERSON_1 CITY_1 y"):
        assert "".join(restore_stream(chunks, plan=plan)) == restore("PERSON_1 CITY_1 y", plan=plan).text == "Jo , y"


ARTICLED = [
    Known("Arrow Bank plc", "Quill Bank plc", "COMPANY", "pseudonym@1", "a"),
    Known("Arrow Bank plc", "a", "COMPANY", "article@1", ""),
    Known("<CITY 1>", "Ulm", "CITY", "tag@1", "b"),
]
AROUND = [
    "an ",
    "a ",
    "An ",
    " an\n",
    "Arrow Bank plc",
    "Arr",
    "ow Bank plc",
    " ",
    ". ",
    "Serie A ",
    "<CITY 1>",
    "n",
    "an",
]


@given(st.lists(st.sampled_from(AROUND), max_size=9), st.integers(1, 6))
def test_articles_in_pieces(pieces, size):
    text = "".join(pieces)
    restorer = Restorer(ARTICLED)
    whole = restorer.restore(text).text
    assert "".join(restorer.stream(text[i : i + size] for i in range(0, len(text), size))) == whole
    assert "".join(restorer.stream(pieces)) == whole


def test_pieces_that_are_handed_over():
    arriving = Restorer(ARTICLED).arriving()
    fed = [arriving.feed(piece) for piece in ("At ", "an ", "Arrow", " Bank plc, <CITY", " 1>, <CITY 9", "")]
    assert fed[:4] == ["At ", "", "", "a Quill Bank plc"]
    assert "".join(fed) + arriving.end() == "At a Quill Bank plc, Ulm, <CITY 9"
    assert (arriving.restored, arriving.unknown, arriving.end()) == (2, 0, "")


def test_from_a_plan_and_what_the_plan_does_not_know():
    plan = plan_of(("[PERSON_1]", "Sarah"))
    assert Restorer.from_plan(plan).restore("Ask [PERSON_1].").text == "Ask Sarah."
    with pytest.raises(RestoreError, match="holds no originals"):
        Restorer.from_plan(Plan.from_dict(plan.to_dict()))
