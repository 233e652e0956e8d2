"""What is left where an answer would carry an original elsewhere."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allonym.errors import UsageError
from allonym.plan import Edit, Plan, digest
from allonym.restoration import Restorer, restore, restore_stream
from allonym.restoration.destination import Destination, list_whole_addresses

TEXT = "Ada Brook wrote to ada@example.com from https://in.example/ada."
SENT = "<PERSON 1> wrote to <EMAIL 1> from <LINK 1>."


def make_plan():
    places = (("Ada Brook", "PERSON", "<PERSON 1>"), ("ada@example.com", "EMAIL_ADDRESS", "<EMAIL 1>"),
              ("https://in.example/ada", "URL", "<LINK 1>"))  # fmt: skip
    edits = []
    for number, (original, label, tag) in enumerate(places):
        start = TEXT.index(original)
        edits.append(Edit(start, start + len(original), tag, label, number + 1, "tag@1", original))
    return Plan(digest(TEXT), edits)


PLAN = make_plan()
RESTORER = Restorer.from_plan(PLAN)
CASES = [
    # an address that may be asked for
    ("![x](https://e.example/?q=<PERSON 1>)", "![x](https://e.example/?q=<PERSON 1>)"),
    ("![x](https://e.example/?q= <PERSON 1> ) <PERSON 1>", "![x](https://e.example/?q= <PERSON 1> ) Ada Brook"),
    ("[<PERSON 1>](https://e.example/<EMAIL 1>)", "[Ada Brook](https://e.example/<EMAIL 1>)"),
    ("See https://e.example/<PERSON 1>/x and <PERSON 1>.", "See https://e.example/<PERSON 1>/x and Ada Brook."),
    ("https://e.example/?a=<PERSON 9>&b=<PERSON 1>", "https://e.example/?a=<PERSON 9>&b=<PERSON 1>"),
    ("https://<PERSON 1>.e.example", "https://<PERSON 1>.e.example"),
    ("https://e.example/?q=%3CPERSON%201%3E", "https://e.example/?q=%3CPERSON%201%3E"),
    ("https:\\/\\/e.example\\/<PERSON 1>", "https:\\/\\/e.example\\/<PERSON 1>"),
    ("e.example/<PERSON 1>, <PERSON 1>", "e.example/<PERSON 1>, Ada Brook"),
    ("www.e.example?<PERSON 1> <PERSON 1>", "www.e.example?<PERSON 1> Ada Brook"),
    ("[x][1]\n\n[1]: //e.example/<PERSON 1>\n<PERSON 1>", "[x][1]\n\n[1]: //e.example/<PERSON 1>\nAda Brook"),
    ("<img src='//e.example/?<PERSON 1> <EMAIL 1>'> <PERSON 1>", "<img src='//e.example/?<PERSON 1> <EMAIL 1>'> Ada Brook"),
    ("a { background: url(//e.example/<PERSON 1>) } <PERSON 1>", "a { background: url(//e.example/<PERSON 1>) } Ada Brook"),
    ("![x](<PERSON 1>)", "![x](<PERSON 1>)"),
    ("https://e.example/?x=(mailto:<EMAIL 1>)", "https://e.example/?x=(mailto:<EMAIL 1>)"),
    ("mailto:<EMAIL 1>?body=<PERSON 1>", "mailto:<EMAIL 1>?body=<PERSON 1>"),
    ("javascript:send('<PERSON 1>')", "javascript:send('<PERSON 1>')"),
    ("https://e.example/" + "a" * 5000 + "<PERSON 1> <PERSON 1>", "https://e.example/" + "a" * 5000 + "<PERSON 1> Ada Brook"),
    ("[x]: //e.example/" + "a" * 5000 + "<PERSON 1> <PERSON 1>", "[x]: //e.example/" + "a" * 5000 + "<PERSON 1> Ada Brook"),
    ("<img src=//192.0.2.1/?q=<PERSON 1>> <PERSON 1>", "<img src=//192.0.2.1/?q=<PERSON 1>> Ada Brook"),
    ('@import "//192.0.2.1/<PERSON 1>"; <PERSON 1>', '@import "//192.0.2.1/<PERSON 1>"; Ada Brook'),
    ("<a href=http:\\\\192.0.2.1\\<PERSON 1>>", "<a href=http:\\\\192.0.2.1\\<PERSON 1>>"),
    ('https://192.0.2.1/?q=a"<PERSON 1> <PERSON 1>', 'https://192.0.2.1/?q=a"<PERSON 1> Ada Brook'),
    ("![x](https://e.example/a)b?q=<PERSON 1> <PERSON 1>", "![x](https://e.example/a)b?q=<PERSON 1> Ada Brook"),
    # an address of the person, or of the user
    ("[<EMAIL 1>](mailto:<EMAIL 1>).", "[ada@example.com](mailto:ada@example.com)."),
    ("<mailto:<EMAIL 1>>", "<mailto:ada@example.com>"),
    ("[here](<LINK 1>) and <LINK 1>", "[here](https://in.example/ada) and https://in.example/ada"),
    ("https://crm.example/<PERSON 1>?x=1, <PERSON 1>", "https://crm.example/Ada Brook?x=1, Ada Brook"),
    ("[it](https://crm.example/<PERSON 1>?x=1)", "[it](https://crm.example/Ada Brook?x=1)"),
    ("https://crm.example/<PERSON 1>?x=12", "https://crm.example/<PERSON 1>?x=12"),
    ("https://e.example/?https://crm.example/<PERSON 1>?x=1", "https://e.example/?https://crm.example/<PERSON 1>?x=1"),
    # no address
    ("<https://e.example> <PERSON 1>", "<https://e.example> Ada Brook"),
    ('{"url":"https://e.example","name":"<PERSON 1>"}', '{"url":"https://e.example","name":"Ada Brook"}'),
    ("x = 1; //<PERSON 1>", "x = 1; //Ada Brook"),
    ("C:\\\\Users\\\\<PERSON 1>", "C:\\\\Users\\\\Ada Brook"),
    ('<a href="https://e.example/">"<PERSON 1>"</a>', '<a href="https://e.example/">"Ada Brook"</a>'),
    ("<PERSON 1>: and/or x.y", "Ada Brook: and/or x.y"),
    (SENT, TEXT),
]  # fmt: skip
KNOWN = Destination(list_whole_addresses("Look at https://crm.example/<PERSON 1>?x=1."))


@pytest.mark.parametrize(("text", "answer"), CASES)
def test_addresses_keep_their_placeholders(text, answer):
    restored = RESTORER.restore(text, KNOWN)
    assert restored.text == answer
    left = sum(restored.text.count(tag) for tag in ("<PERSON 1>", "<EMAIL 1>", "%3CPERSON%201%3E"))
    assert len([rest for rest in restored.residue if "address" in rest.why]) == left


@given(st.lists(st.sampled_from([text for text, _ in CASES]), min_size=1, max_size=3), st.integers(1, 40))
def test_a_stream_is_treated_as_the_whole(texts, size):
    text = " ".join(texts)
    arriving = RESTORER.arriving(KNOWN)
    pieces = [arriving.feed(text[i : i + size]) for i in range(0, len(text), size)]
    whole = RESTORER.restore(text, KNOWN)
    assert "".join(pieces) + arriving.end() == whole.text
    assert arriving.restored == whole.restored


def test_what_stood_in_the_request_is_nobodys():
    destination = Destination(refused=frozenset({"<person 1>"}))
    restored = RESTORER.restore("<person 1> and <PERSON 1>", destination)
    assert restored.text == "<person 1> and Ada Brook"
    assert [rest.why.partition(",")[0] for rest in restored.residue] == [
        "a replacement for PERSON stood in the text before anything was replaced"
    ]


def test_the_text_itself_is_restored_whole_and_an_answer_is_not():
    text = "See https://e.example/<PERSON 1>"
    assert restore(text, plan=PLAN).text == "See https://e.example/Ada Brook"
    assert restore(text, plan=PLAN, destination="answer").text == text
    with pytest.raises(UsageError, match="'document' or 'answer'"):
        restore(text, plan=PLAN, destination="elsewhere")
    pieces = [text[i : i + 5] for i in range(0, len(text), 5)]
    assert "".join(restore_stream(pieces, plan=PLAN)) == "See https://e.example/Ada Brook"
    assert "".join(restore_stream(pieces, plan=PLAN, destination="answer")) == text
    with pytest.raises(UsageError, match="'document' or 'answer'"):
        restore_stream(pieces, plan=PLAN, destination="elsewhere")
