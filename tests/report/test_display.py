import inspect
import json
import pkgutil
import re
from html import unescape
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.report.browser import BROWSER, Browser

import allonym
from allonym.document import Document, Span
from allonym.errors import PlanMismatch, UsageError
from allonym.labels import TAXONOMY
from allonym.plan import Edit, Plan, apply_edits, digest
from allonym.policy import Policy
from allonym.report.display import FAMILIES, ROOTS, Display, draw_page, find_family, format_label

SRC = Path(allonym.__file__).parent
STATIC = SRC / "server" / "static"
RULES = Policy.load("default").with_(detectors=("rules",))
EVIL = '</style><script>alert("x")</script><img src=x onerror=alert(1)>\'"&amp;'
TEXT = f"Mail {EVIL} ada@example.com\r\n\r\nor call 212-555-0142.\nBye\u202e\0"


KNOWN = set(
    "lang charset http-equiv content name class aria-label title dir method type value checked tabindex role scope".split()
)


def attributes(html: str) -> set[str]:
    found: set[str] = set()

    class Reader(HTMLParser):
        def handle_starttag(self, tag, attrs):
            found.update(name for name, _ in attrs)

    Reader().feed(html)
    return found


def shown(html: str, kind: str = "cell") -> str:
    """What a reader sees of the text: the cells without marks and labels."""
    cells = re.findall(rf'<div class="{kind}" dir="auto">(.*?)</div>', html, re.DOTALL)
    return unescape(re.sub(r"<[^>]+>", "", re.sub(r"<small>.*?</small>", "", "".join(cells))))


def test_findings_are_marked_and_the_text_is_whole():
    view = allonym.display(TEXT, policy=RULES)
    assert [s.label for s in view.spans] == ["EMAIL_ADDRESS", "PHONE_NUMBER"]
    assert shown(view._repr_html_()) == TEXT.replace("\0", "\u2400")
    marks = re.findall(r'<mark class="f-(\w+)" title="([^"]*)">(.*?)<small>(.*?)</small></mark>', view._repr_html_())
    assert [(m[0], m[2], m[3]) for m in marks] == [
        ("contact", "ada@example.com", "Email address"),
        ("contact", "212-555-0142", "Phone number"),
    ]
    assert marks[0][1].startswith("Email address, score 0.95, rules:")
    assert '<li class="f-contact">Phone number <b>1</b></li>' in view.html
    assert f"<td>{view.spans[1].start}–{view.spans[1].end}</td><td>PHONE_NUMBER</td>" in view.html


def test_a_repr_shows_no_text_and_nobody_else_shows_html():
    view = allonym.display(TEXT, policy=RULES)
    assert repr(view) == str(view) == f"{view}" == f"Display({len(TEXT)} characters, 2 findings)"
    made = allonym.anonymize(TEXT, RULES)
    assert repr(allonym.display(TEXT, made)) == f"Display({len(TEXT)} characters, 2 edits)"
    showing = [p for p in SRC.rglob("*.py") if re.search(r"def _repr_(?!mimebundle)\w+_\(", p.read_text("utf-8"))]
    assert [p.name for p in showing] == ["display.py"]
    for module in pkgutil.iter_modules([str(SRC)]):
        if module.name in ("document", "pipeline", "plan", "restore", "vault", "policy", "batch"):
            for _, kind in inspect.getmembers(import_module(f"allonym.{module.name}"), inspect.isclass):
                assert not hasattr(kind, "_repr_html_"), kind


def test_everything_is_escaped_and_nothing_is_loaded():
    document = Document(EVIL, TEXT)
    spans = [Span(0, 5, EVIL, 0.5, EVIL), Span(5, 9, "PERSON", 0.5, EVIL)]
    for html in (
        allonym.display(document, spans).html,
        allonym.display(document, allonym.anonymize(document, RULES)).html,
    ):
        body = html.partition("</style>")[2]
        assert "<script" not in html and "<img" not in html and "<style" not in body and "onerror=alert(1)>" not in html
        assert attributes(html) <= KNOWN and not re.search(r"url\(|@import|https?:", html)
        assert "default-src 'none'" in unescape(html)
        html.encode()
    assert allonym.display("a\ud800b").html.encode()


@given(
    st.text("ab c\n\r\u05d0", max_size=30),
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 6), st.sampled_from(["", "X", "Y\nZ", "<b>"])), max_size=6),
)
@settings(max_examples=60, deadline=None)
def test_before_is_the_text_and_after_what_the_plan_makes(text, places):
    edits, end = [], 0
    for start, size, said in sorted(places):
        if end <= start and start + size <= len(text):
            edits.append(Edit(start, start + size, said, "PERSON", len(edits) + 1, "tag@1", text[start : start + size]))
            end = start + size
    plan = Plan(digest(text), tuple(edits), (), digest(apply_edits(text, edits)))
    html = allonym.display(text, plan).html
    assert shown(html, "cell before") == text
    assert shown(html, "cell after").replace("∅", "") == apply_edits(text, edits)


def test_a_conversation_goes_turn_by_turn():
    call = Document.conversation("call", [("Pam", "Mail pam@example.com\n\nplease."), (None, "..."), ("Jim", "Yes.")])
    html = allonym.display(call, policy=RULES).html
    assert html.count('<div class="cell"') == 3
    assert html.count('<span class="who">') == 2
    assert shown(html) == call.text
    found = allonym.display("Pam: Hello?\nJim: Hi.\n", policy=RULES)
    assert found.html.count('<span class="who">') == 2
    both = allonym.display(call, allonym.anonymize(call, RULES))
    assert both.html.count('<span class="who">Pam</span>') == 2
    assert shown(both.html, "cell after") == allonym.anonymize(call, RULES).text


def test_a_mark_over_lines_and_turns_is_cut_not_lost():
    call = Document.conversation("", [("Pam", "one\ntwo"), ("Jim", "three")])
    wide = Span(5, len(call.text) - 2, "PERSON", 1.0)
    html = allonym.display(call, [wide]).html
    assert shown(html) == call.text
    assert html.count("<mark") == 2 and html.count("<small>Person</small>") == 1
    plan = Plan(digest(call.text), (Edit(5, len(call.text) - 2, "[X]", "PERSON", 1, "tag@1"),))
    assert shown(allonym.display(call, plan).html, "cell after") == apply_edits(call.text, plan.edits)


def test_spans_that_overlap_are_resolved_and_all_are_listed():
    spans = [Span(0, 4, "PERSON", 0.9), Span(2, 8, "LOCATION", 0.5)]
    html = allonym.display("abcdefgh", iter(spans)).html
    assert shown(html) == "abcdefgh"
    assert html.count("<mark") == 2
    assert html.count("<td>PERSON</td>") + html.count("<td>LOCATION</td>") == 2


def test_what_was_given_decides_and_what_is_wrong_is_said():
    made = allonym.anonymize("Mail ada@example.com", RULES)
    assert allonym.display("Mail ada@example.com", made) == allonym.display("Mail ada@example.com", made.plan)
    assert allonym.display("Mail ada@example.com", []).spans == ()
    with pytest.raises(PlanMismatch):
        allonym.display("Mail eve@example.com", made)
    with pytest.raises(UsageError, match="a span ends at 9, and the text at 4"):
        allonym.display("Mail", [Span(0, 9, "PERSON")])
    for wrong in ("Mail", 5, [("a", 1)], [None]):
        with pytest.raises(UsageError, match="needs spans, a plan, or what anonymize returned"):
            allonym.display("Mail", wrong)


def test_it_is_saved_as_a_page(tmp_path):
    view = allonym.display(Document("a.txt", "Mail ada@example.com"), policy=RULES)
    view.save(tmp_path / "a.html")
    assert (tmp_path / "a.html").read_text("utf-8") == view.html
    assert "<title>Findings: a.txt</title>" in view.html
    with pytest.raises(UsageError, match=r"must end in \.html, got \.txt"):
        view.save(tmp_path / "a.txt")
    with pytest.raises(UsageError, match="cannot write page"):
        view.save(tmp_path / "none" / "a.html")
    two = draw_page([view, view], "Two")
    assert "<title>Two</title>" in two and two.count("<h2>") == 2


def test_labels_of_the_policy_have_the_family_of_their_parent(tmp_path):
    path = tmp_path / "own.toml"
    path.write_text(
        'extends = "default"\n[detect]\ndetectors = ["rules"]\n[[labels]]\nname = "BADGE"\nparent = "GOVERNMENT_ID"\n'
        '[[patterns]]\nname = "badge"\nlabel = "BADGE"\npattern = \'BX-\\d{4}\'\n',
        encoding="utf-8",
    )
    assert '<mark class="f-official"' in allonym.display("Badge BX-1234", policy=path).html


def test_families_and_colours_are_those_of_the_workbench():
    script = (STATIC / "js" / "families.js").read_text("utf-8")
    theirs = dict(re.findall(r"(\w+): \"(\w+)\"", script.partition("};")[0]))
    assert theirs == {label: name for name, labels in ROOTS.items() for label in labels}
    assert set(theirs) <= {label.name for label in TAXONOMY}
    short = re.search(r"SHORT = new Set\((\[.*?\])\)", script)
    assert all(format_label(f"A_{word}") == f"A {word}" for word in json.loads(short[1]))
    assert (
        format_label("EMAIL_ADDRESS") == "Email address"
        and find_family("CITY") == "place"
        and find_family("NEVER") == "other"
    )
    sheets = ((STATIC / "css" / "base.css"), SRC / "report" / "templates" / "display.css")
    named = "|".join(FAMILIES)
    tokens = [dict(re.findall(rf"--((?:{named})(?:-line)?): (.*?);", p.read_text("utf-8"))) for p in sheets]
    own = {k: v for k, v in tokens[1].items() if v.startswith("light-dark")}
    assert len(own) == 2 * len(FAMILIES)
    assert own == tokens[0]


@pytest.mark.skipif(BROWSER is None, reason="no Chromium here")
@pytest.mark.slow
def test_in_a_browser(tmp_path):
    axe = pytest.importorskip("axe_playwright_python", reason="axe-playwright-python is not installed")
    call = Document.conversation("call", [("Pam", f"Mail pam@example.com {EVIL}"), ("Jim", "Born 3 May 1985.")] * 5)
    allonym.display(call, allonym.anonymize(call, RULES)).save(tmp_path / "both.html")
    rules = (Path(axe.__file__).parent / "axe.min.js").read_text("utf-8")
    browser = Browser(tmp_path)
    try:
        for scheme in ("light", "dark"):
            browser.do("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
            browser.open(tmp_path / "both.html")
            browser.run(f"{rules};0")
            found = browser.run("axe.run().then(r => r.violations.map(v => v.id + ' ' + v.nodes[0].html))")
            assert found == []
        asked = [m["params"]["request"]["url"] for m in browser.seen if m["method"] == "Network.requestWillBeSent"]
        assert all(url.startswith("file:") for url in asked)
        seen = "[...document.querySelectorAll('.row:not(.heads) .cell')].map(c => c.offsetWidth > 0 ? 1 : 0).join('')"
        assert browser.run(seen) == "11" * 10
        for value, wanted in (("before", "10"), ("after", "01"), ("both", "11")):
            browser.run(f"document.querySelector('[value={value}]').click()")
            assert browser.run(seen) == wanted * 10
        assert (
            browser.run("document.querySelector('form').requestSubmit(); document.documentElement.scrollWidth") <= 1100
        )
        assert browser.run("location.href").endswith("both.html")
    finally:
        browser.close()


def test_a_display_is_a_display():
    assert isinstance(allonym.display(""), Display)
    assert "0 findings in 0 characters" in allonym.display("").html
