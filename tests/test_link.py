"""One referent, one entity. The cases mark mentions as {text|LABEL} and show the numbered tags that come out."""

import random
import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allonym.document import Document, Span
from allonym.link import link
from allonym.link.people import Group
from allonym.plan import apply
from allonym.policy import Policy
from allonym.replace import make_plan
from allonym.text.names import can_be_same_person, list_filing_keys, list_lookup_keys

POLICY = Policy(name="tags", default=Policy.load("default").default)
GIVEN_NAMES = (
    "robert rob bob bobby r b william bill liam will marie maria amrie mraie j jonas joans elizabeth liz beth".split()
)
MARK = re.compile(r"\{([^|{}]*)\|([A-Z_]+)\}")


def read(case):
    if "text" in case:
        text, spans = unmark(case["text"])
        return Document("", text), spans
    document = Document.conversation("", case["turns"])
    marked = document.text
    text, spans = unmark(marked)
    plain = [(unmark(who)[0], unmark(said)[0]) for who, said in case["turns"]]
    document = Document.conversation("", plain)
    assert document.text == text
    return document, spans


def unmark(marked):
    out, spans, at = "", [], 0
    for m in MARK.finditer(marked):
        out += marked[at : m.start()]
        spans.append(Span(len(out), len(out) + len(m[1]), m[2]))
        out += m[1]
        at = m.end()
    return out + marked[at:], spans


def test_cases(cases):
    failed = []
    for case in cases("link"):
        document, spans = read(case)
        linked = link(document, spans, POLICY.taxonomy)
        got = apply(document, make_plan(document, linked, POLICY))
        if got != case["want"] or len(linked.notes) != case["notes"]:
            failed.append((case["case"], got, linked.notes))
    assert not failed, "\n".join(map(str, failed))


def test_families_and_teams(cases):
    """B-cubed F1 on the given mentions, marked ``{Ada|WHO}``: nobody is merged with anybody."""
    precision = recall = 0.0
    mentions, merged = 0, []
    for case in cases("families"):
        text, gold = unmark(case["text"])
        people = {span.start: span.label for span in gold}
        sizes = Counter(people.values())
        linked = link(Document("", text), [Span(s.start, s.end, "PERSON") for s in gold])
        for entity in linked.entities:
            shares = Counter(people[span.start] for span in entity.spans)
            precision += sum(n * n / len(entity.spans) for n in shares.values())
            recall += sum(n * n / sizes[person] for person, n in shares.items())
            if len(shares) > 1:
                merged.append((case["case"], sorted(shares)))
        mentions += len(gold)
    assert not merged
    assert len(cases("families")) >= 60
    assert 2 * precision * recall / (precision + recall) / mentions >= 0.95


def test_the_order_of_spans_does_not_matter(cases):
    shuffle = random.Random(7).shuffle
    for case in cases("link"):
        document, spans = read(case)
        want = link(document, spans)
        for _ in range(3):
            shuffle(spans)
            assert link(document, spans) == want


def test_the_same_name_has_the_same_key_in_every_document():
    def key(marked):
        text, spans = unmark(marked)
        return link(Document("", text), spans).entities[0].key

    keys = {
        key("{Sarah Connor|PERSON}"),
        key("Then {SARAH CONNOR|PERSON}, {Sarah|PERSON}"),
        key("{Ms Connor|PERSON}: {Connor, Sarah|PERSON}"),
    }
    assert keys == {"PERSON:sarah connor"}
    assert key("{Acme Ltd|ORGANIZATION}") == key("{Acme|COMPANY}") == "ORGANIZATION:acme"


def test_entities_of_one_document_have_different_keys(cases):
    for case in cases("link"):
        document, spans = read(case)
        keys = [e.key for e in link(document, spans).entities]
        assert len(set(keys)) == len(keys), case["case"]


def test_notes_and_repr_hold_no_text(cases):
    for case in cases("link"):
        document, spans = read(case)
        linked = link(document, spans)
        shown = repr(linked) + "".join(linked.notes)
        for span in spans:
            surface = document.text[span.start : span.end]
            if len(surface) > 3:
                assert surface not in shown


def test_repr_of_a_group_holds_no_text():
    assert "brook" not in repr(Group("PERSON:ada brook", forms=[("ada", "brook")]))


names = st.sampled_from(
    [
        "Mark",
        "Marc",
        "M-A-R-K",
        "Mark Lee",
        "M. Lee",
        "Lee",
        "Lees",
        "Mr Lee",
        "Mrs Lee",
        "Lee, Mark",
        "Ann Lee",
        "A.",
        "--",
        "'s",
    ]
)
surfaces = st.one_of(names, st.text(min_size=1, max_size=6))
labels = st.sampled_from(
    [
        "PERSON",
        "PERSON_LASTNAME",
        "EXECUTIVE",
        "TITLE",
        "SPELLED_WORD",
        "ORGANIZATION",
        "CREDIT_CARD",
        "URL",
        "NOT_A_LABEL",
    ]
)


gaps = st.sampled_from(
    [" ", ", ", ". ", " and ", ", her partner ", " is his wife ", " family. The ", "'s son ", " née "]
)


@given(st.lists(st.tuples(surfaces, labels, gaps), max_size=10), st.randoms())
def test_every_span_is_in_exactly_one_entity(pieces, chance):
    text, spans = "", []
    for surface, label, gap in pieces:
        spans.append(Span(len(text), len(text) + len(surface), label))
        text += surface + gap
    document = Document("", text)
    linked = link(document, spans)
    assert sorted(s for e in linked.entities for s in e.spans) == spans
    assert [e.spans[0] for e in linked.entities] == sorted(e.spans[0] for e in linked.entities)
    assert all(e.spans == tuple(sorted(e.spans)) for e in linked.entities)
    chance.shuffle(spans)
    assert link(document, spans) == linked
    again = link(document, spans)
    assert [e.key for e in again.entities] == [e.key for e in linked.entities]


@pytest.mark.parametrize("count", [400])
def test_many_people_are_not_compared_with_each_other(count):
    text, spans = "", []
    for i in range(count):
        name = f"Ann{chr(97 + i % 26)} Name{'abcdefghij'[i % 10]}{'klmnopqrst'[i // 10 % 10]}{'uvwxyzabcd'[i // 100]}"
        spans.append(Span(len(text), len(text) + len(name), "PERSON"))
        text += name + ". "
    assert len(link(Document("", text), spans).entities) == count


def test_a_name_repeated_beside_itself_makes_few_people():
    """So that each is compared with few, however often a text says "Hart and Hart"."""
    text, spans = unmark("{Hart|PERSON} and " * 400)
    assert len(link(Document("", text), spans).entities) < 20


@given(st.sampled_from(GIVEN_NAMES), st.sampled_from(GIVEN_NAMES))
def test_given_names_of_one_person_share_a_key(first, second):
    """So that a name is compared with those only whom it may fit, and not with all who bear the family name."""
    shared = list_lookup_keys(first) & list_filing_keys(second)
    assert shared or not can_be_same_person((first, "hart"), (second, "hart"))


def test_a_cell_with_joined_words_is_the_person_of_that_name():
    text = "Ada Brook, ada-brook, Ada-Marie"
    spans = [Span(0, 9, "PERSON"), Span(11, 20, "PERSON", 1.0, "column"), Span(22, 31, "PERSON")]
    assert [entity.spans for entity in link(Document("", text), spans).entities] == [tuple(spans[:2]), (spans[2],)]
