import html
import re
from dataclasses import asdict

import pytest
from tests.report.browser import BROWSER, Browser

from allonym.evaluate import sheets as sh
from allonym.evaluate.people import list_truths_and_judgements, people_study, read_descriptions
from allonym.evaluate.sheets import Subject
from allonym.report.intruder_study import study_page

TEXT = '[NAME] plays <b>the</b> harp & "sings" </script><script>alert(1)</script> {{ 7 * 7 }}'
IDS = [f"Zaphrandel-{i}" for i in range(6)]


def judging():
    return sh.make_judging_sheets(
        IDS, [f"{TEXT} {i}" for i in range(6)], ["Orla Brandreth"] * 6, ["famous"] * 6, judgements=1
    )


def page_of(made, number=1, **more):
    items = [asdict(made.entries[token]) for token in made.pages[number - 1]]
    return study_page(made.task, made.study, number, items, **more)


def test_a_judging_page_holds_the_texts_and_not_the_truth():
    made = judging()
    page = page_of(made)
    shown = [html.unescape(t) for t in re.findall(r"<blockquote[^>]*>(.*?)</blockquote>", page, re.S)]
    assert sorted(shown) == [f"{TEXT} {i}" for i in range(6)]
    for truth in ("Orla", "Brandreth", "famous", "Zaphrandel"):
        assert truth not in page
    assert "<script>alert" not in page and page.count("<script>") == 1
    assert page == page_of(judging())


def test_a_page_asks_nobody_for_anything():
    page = page_of(judging())
    assert "default-src 'none'" in html.unescape(page) and "unsafe" not in page
    assert not re.search(r"""(?:src|href|action)=["'](?!#)""", page)
    assert not re.search(r"url\(|@import|fetch\(|XMLHttpRequest|sendBeacon|localStorage", page)


def test_every_field_has_a_label():
    page = page_of(judging())
    fields = set(re.findall(r'<(?:input type="text"|textarea) id="(\w+)"', page))
    assert fields and fields == set(re.findall(r'<label for="(\w+)"', page))
    idents = re.findall(r' id="(\w+)"', page)
    assert len(idents) == len(set(idents))


def test_consent_and_least_length():
    made = sh.make_collection_sheets(
        [Subject("A & B", "famous", "https://example.org/?a=1&b=2", {"known for": "<i>"})], 1
    )
    page = page_of(made, least=321, consent="We keep <nothing>.")
    assert "We keep &lt;nothing&gt;." in page and "At least 321 characters" in page
    assert 'href="https://example.org/?a=1&amp;b=2"' in page and "A &amp; B" in page and "&lt;i&gt;" in page


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    if BROWSER is None:
        pytest.skip("there is no Chromium")
    found = Browser(tmp_path_factory.mktemp("browser"))
    yield found
    found.close()


FILL = """(step, name, value) => { const field = step.querySelector(`[name="${name}"]`);
  if (field.type === 'radio' || field.type === 'checkbox') field.click();
  else { field.value = value; field.dispatchEvent(new Event('input', {bubbles: true})); } }"""
NEXT = "document.querySelector('.step:not([hidden]) [data-move=\"1\"]').click()"
HEADING = "document.querySelector('.step:not([hidden]) h2').textContent"
ERROR = "(document.querySelector('.step:not([hidden]) .error:not([hidden])') || {}).textContent || ''"


def saved(browser, how):
    browser.run(f"document.querySelector('[data-save={how}]').click()")
    begun = browser.wait("Browser.downloadWillBegin")
    browser.wait("Browser.downloadProgress", guid=begun["guid"], state="completed")
    return browser.folder / begun["suggestedFilename"]


def test_what_a_judge_saves_is_read_back(browser, tmp_path):
    made = judging()
    path = tmp_path / "judge.html"
    path.write_text(page_of(made), encoding="utf-8")
    browser.open(path)
    browser.run(NEXT)
    assert browser.run(ERROR) == "Please tick the box if you agree to take part."
    browser.run("document.querySelector('[name=consent]').click()")
    browser.run("document.querySelector('#participant').value = 'k7'")
    browser.run(NEXT)
    assert browser.run(HEADING) == "Text 1 of 6" and browser.run("document.activeElement.tagName") == "H2"
    browser.run(NEXT)
    assert "whether you could identify" in browser.run(ERROR)
    browser.run(f"""(() => {{ const fill = {FILL};
      document.querySelectorAll('[data-item]').forEach((step, i) => {{
        step.querySelector(i % 2 ? '[value=no]' : '[value=yes]').click();
        fill(step, 'name', 'Orla "Brandrth", é'); fill(step, 'reason', 'the harp,\\nof course');
        fill(step, 'knowledge', i === 1 ? '' : 'sings'); }}); }})()""")
    assert browser.run("document.querySelector('.step:not([hidden]) [name=name]').offsetParent !== null")
    for _ in made.pages[0]:
        browser.run(NEXT)
    assert browser.run(HEADING) == "Save your answers"
    assert browser.run("document.querySelector('[data-done]').textContent") == "6 of 6 are answered."
    by_json, by_csv = ([g.fields for g in sh.read_answers([saved(browser, how)], made)] for how in ("json", "csv"))
    assert by_json == by_csv
    given = sh.read_answers([saved(browser, "json")], made)
    assert given[0].participant == "k7" and given[0].token == made.pages[0][0]
    assert given[0].fields == {
        "identified": "yes", "name": 'Orla "Brandrth", é', "knowledge": "", "reason": "the harp,\nof course",
    }  # fmt: skip
    assert given[1].fields["identified"] == "no" and given[1].fields["name"] == ""  # typed before "no" was chosen
    found = people_study(*list_truths_and_judgements(made, given))
    assert found.results.all.identified.value == 0.5
    asked = [e["params"]["request"]["url"] for e in browser.seen if e["method"] == "Network.requestWillBeSent"]
    assert all(url.startswith(("file:", "blob:")) for url in asked)


def test_a_description_needs_its_length(browser, tmp_path):
    made = sh.make_collection_sheets([Subject("Orla Brandreth", "famous"), Subject("Ivo Quist", "semi")], 1)
    path = tmp_path / "writer.html"
    path.write_text(page_of(made, least=20), encoding="utf-8")
    browser.open(path)
    browser.run("document.querySelector('[name=consent]').click()")
    browser.run(NEXT)
    fill = f"({FILL})(document.querySelector('.step:not([hidden])'), 'text', %r)"
    browser.run(fill % "  nineteen characters  ")
    browser.run(NEXT)
    assert browser.run(ERROR) == "20 characters at least are required; these are 19."
    browser.run(fill % "twenty characters, ok")
    browser.run(NEXT)
    assert browser.run(HEADING) == "Person 2 of 2"
    browser.run(fill % "\U0001f3b5")
    browser.run(NEXT)
    assert browser.run(ERROR) == "20 characters at least are required; these are 1."
    browser.run("document.querySelectorAll('[data-move=\"-1\"]')[1].click()")
    browser.run(fill % "an Ünusual person, who sails")
    rows = read_descriptions(made, sh.read_answers([saved(browser, "csv")], made), least=20)
    assert [(r["subject"], r["text"]) for r in rows] == [("Orla Brandreth", "an Ünusual person, who sails")]
