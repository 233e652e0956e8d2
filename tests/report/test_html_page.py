import importlib
import re
import sys
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser

import pytest
from tests.report.browser import BROWSER, Browser

from allonym import report
from allonym.errors import MissingExtra, UsageError
from allonym.report.html_page import html, list_filters, list_sort_keys, read_resource, split_passage
from allonym.report.page import (
    Axis,
    Bar,
    Bars,
    Beside,
    Block,
    Bubble,
    Bubbles,
    Chart,
    Column,
    Details,
    Figure,
    Figures,
    Group,
    Guide,
    Key,
    Mark,
    Matrix,
    Multiples,
    Notice,
    Page,
    Passage,
    Point,
    Reader,
    Row,
    Section,
    Series,
    Settings,
    Square,
    Table,
    Tabs,
    Tag,
    Text,
)
from allonym.stats import Estimate, mean

module = importlib.import_module("allonym.report.html_page")
EVIL = '</script><script>alert("x")</script><img src=x onerror=alert(1)>\'"&amp;{{ 7*7 }}'
VOID = {"meta", "input", "br", "img", "link", "hr"}


def everything(word: str) -> Page:
    """A page of every kind of block, with a word wherever a text can stand."""
    chart = Chart(
        word,
        Axis(word),
        Axis(word, "share"),
        (Series(word, (Point(1, 0.2, word, ((word, word),)), Point(mean([2, 3]), 0.3, word, (), "chosen")), 0, "thin"),
         Series(word, (Point(1, 0.1), Point(float("nan"), 0.4), Point(2, 0.5, "", (), "hollow")), 11, "dashed")),
        (Guide(word, ((0, 0), (1, 1)), "frontier"),),
        word,
        "lower right",
        "wide",
        word,
    )  # fmt: skip
    passage = Passage(
        word, word, word, (Mark(0, 2, word),), (Mark(1, 3, word, 2, "other"),), (Tag(word, "good"),),
        ((word, word),), {word: word, "x": "1"}, {word: 0.5},
    )  # fmt: skip
    blocks: tuple[Block, ...] = (
        Text(word),
        Notice(word, "sensitive", (word,)),
        Figures((Figure(word, 0.5, word, before=0.75),)),
        Table(
            word,
            (Column(word, "text", None, word), Column(word, "number")),
            (Row((Key(word, 1), 0.5), "chosen"),),
            word,
            1,
        ),
        chart,
        Bars(
            word,
            Axis(word, "share"),
            (Group(word, (Bar(word, mean([0.1, 0.3]), 1, ((word, word),)),), 0.05),),
            word,
            word,
        ),
        Bubbles(
            word,
            (Bubble(0, 0, 5, 0.1, word, word, ((word, word),)), Bubble(1, 2, 9, 1.0, "b", dashed=True)),
            word,
            word,
            (0, 1),
        ),
        Matrix(word, (word,), ((word, (Square(3, 0.9, None, word),)),), word, "count", None, word),
        Beside((Settings(((word, ((word, word),)),)),)),
        Details(word, (Text(word),)),
        Tabs(word, ((word, (Text(word),)), ("b", (Text("c"),))), 1),
        Multiples(word, (chart, chart), word),
        Reader(word, (passage, Passage("b", "", "")), (Key(word, 0),), word),
        Section(word, (Text(word),)),
    )
    return Page(word, (Section(word, blocks), Section(word, ())), word, (Text(word, "lead"),), word)


class Reading(HTMLParser):
    """Collects elements, and checks that they nest."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.text = ""

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def read(text: str) -> Reading:
    reading = Reading()
    reading.feed(text)
    reading.close()
    assert not reading.open
    return reading


def test_every_kind_of_block_is_drawn():
    kinds = {b.kind for b in everything("a").blocks()}
    assert kinds == {kind.__name__.lower() for kind in Block.__subclasses__()}
    assert read(html(everything("a")))


def test_what_comes_from_data_is_text():
    made = html(everything(EVIL))
    assert EVIL not in made and "<img" not in made
    found = read(made)
    assert [tag for tag, _ in found.elements].count("script") == 1
    assert not [a for _, attrs in found.elements for a in attrs if a.startswith("on")]
    assert EVIL in found.text


def test_nothing_is_asked_of_another_host():
    made = html(everything("see https://example.org/x"))
    found = read(made)
    for tag, attrs in found.elements:
        assert tag not in ("link", "img", "iframe", "object", "embed", "base", "form")
        assert "src" not in attrs and "style" not in attrs
        assert attrs.get("href", "#").startswith("#")
    own = html(everything("a"))
    assert (
        "http:" not in own
        and "https:" not in own
        and "//" not in re.sub(r"^\s*//.*$", "", own, flags=re.M).replace("://", "!")
    )
    assert "@import" not in own and "url(" not in own.replace("url(#", "!")


def test_only_the_own_script_and_style_may_run():
    made = html(everything("a"))
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', made)[1].replace("&#39;", "'")
    for name, kind in (("style", "style-src"), ("script", "script-src")):
        inside = re.search(rf"<{name}>(.*?)</{name}>", made, re.DOTALL)[1]
        wanted = b64encode(sha256(inside.encode()).digest()).decode()
        assert f"{kind} 'sha256-{wanted}'" in policy
    assert policy.startswith("default-src 'none'") and "unsafe" not in policy
    assert made.index("Content-Security-Policy") < made.index("<style>") < made.index("<script>")


def test_names_on_the_page_are_unique_and_links_lead():
    found = read(html(everything("a")))
    names = [attrs["id"] for _, attrs in found.elements if "id" in attrs]
    assert len(names) == len(set(names))
    for _, attrs in found.elements:
        wanted = [attrs[k].lstrip("#") for k in ("href",) if k in attrs] + attrs.get("aria-labelledby", "").split()
        wanted += re.findall(r"url\(#([^)]*)\)", attrs.get("clip-path", ""))
        assert set(wanted) <= set(names)


def test_pictures_have_a_title_and_a_description():
    made = html(everything("a"))
    pictures = re.findall(r'<svg class="plot.*?</svg>', made, re.DOTALL)
    assert len(pictures) == 5
    for picture in pictures:
        assert 'role="img"' in picture and "<title id=" in picture and "<desc id=" in picture


def test_the_same_page_gives_the_same_bytes():
    assert html(everything("a")) == html(everything("a"))


def test_marks_cut_a_text_without_losing_any_of_it():
    marks = [Mark(4, 6, "b"), Mark(0, 2, "a"), Mark(5, 8, "c"), Mark(9, 99, "d"), Mark(3, 3, "none")]
    cut = list(split_passage("0123456789", marks))
    assert "".join(t for t, _ in cut) == "0123456789"
    assert [(t, m.label) for t, m in cut if m] == [("01", "a"), ("45", "b"), ("67", "c"), ("9", "d")]


def test_filters_offer_what_chooses_in_natural_order():
    passages = [Passage("", "", "", traits={"Cluster": str(i), "same": "x"}, orders={"D": 1.0}) for i in (10, 9, 1)]
    reader = Reader("", tuple(passages))
    assert list_filters(reader) == [("Cluster", ["1", "9", "10"])]
    assert list_sort_keys(reader) == ["D"]


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    module._load_environment.cache_clear()
    with pytest.raises(MissingExtra, match=r"\[swap\]"):
        html(everything("a"))


@pytest.mark.parametrize(("name", "start"), [("a.html", "<!doctype"), ("a.md", "# a"), ("a.json", "{")])
def test_a_page_is_written_as_its_name_says(tmp_path, name, start):
    report.write(everything("a"), tmp_path / name)
    assert (tmp_path / name).read_text(encoding="utf-8").startswith(start)


def test_lone_surrogates_do_not_stop_the_writing(tmp_path):
    for name in ("a.html", "a.md", "a.json"):
        report.write(everything("a\ud800b"), tmp_path / name)
        assert (tmp_path / name).stat().st_size > 1000


def test_other_endings_and_places_are_errors(tmp_path):
    with pytest.raises(UsageError, match=r"must end in \.html"):
        report.write(everything("a"), tmp_path / "a.odt")
    with pytest.raises(UsageError, match=r"cannot write report a\.md"):
        report.write(everything("a"), tmp_path / "no" / "a.md")
    with pytest.raises(UsageError, match="not as 'pdf'"):
        report.render(everything("a"), "pdf")


def test_estimates_say_what_they_rest_on():
    estimate = Estimate(0.5, 0.4, 0.6, 9, "Wilson, 95 %")
    page = Page("a", (Section("b", (Table("", (Column("", "number", 2),), (Row((estimate,)),)),)),))
    made = html(page)
    assert 'title="Wilson, 95 %; n = 9"' in made and "[0.40, 0.60]" in made and 'data-v="0.5"' in made


# Colours


def palettes() -> dict[str, dict[str, str]]:
    style = read_resource("templates/style.css")
    light = dict(re.findall(r"--([\w-]+): (#\w{6})", style.split("@media")[0]))
    dark = dict(re.findall(r"--([\w-]+): (#\w{6})", style.split(':root[data-theme="dark"]')[1].split("}")[0]))
    return {"light": light, "dark": dark}


def contrast(one: str, other: str) -> float:
    """Contrast ratio of WCAG 2.1."""

    def luminance(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        r, g, b = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
        return 0.2126 * r + 0.7152 * g + 0.0722 * b

    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_texts_and_marks_stand_out(theme):
    colours = palettes()[theme]
    for ground in ("paper", "card"):
        for text in ("ink", "soft", "faint"):
            assert contrast(colours[text], colours[ground]) >= 4.5, (text, ground)
    for i in range(8):
        assert contrast(colours[f"c{i}"], colours["card"]) >= 3, i
    for name in ("good", "bad", "warn"):
        assert contrast(colours[name], colours[f"{name}-soft"]) >= 4.5, name
    for i in range(1, 8):
        assert contrast(colours[f"l{i}"], colours["card" if i > 4 else "ink"]) >= 4.5, i


def test_the_dark_colours_are_the_same_by_choice_and_by_system():
    style = read_resource("templates/style.css")
    system = re.search(r':root:not\(\[data-theme="light"\]\) \{(.*?)\}', style, re.DOTALL)[1]
    choice = re.search(r':root\[data-theme="dark"\] \{(.*?)\}', style, re.DOTALL)[1]
    assert system.split() == choice.split()


@pytest.mark.skipif(BROWSER is None, reason="there is no Chromium")
def test_the_address_chooses_the_theme(tmp_path):
    path = tmp_path / "report.html"
    path.write_text(html(Page("Report", [])), encoding="utf-8")
    browser = Browser(tmp_path)
    try:
        browser.open(path)
        for asked, worn in (
            ("theme=dark", "dark"),
            ("light", "dark"),
            ("theme=light", "light"),
            ("theme=system", None),
        ):
            browser.run(f"new Promise((tell) => {{ onhashchange = () => tell(0); location.hash = '{asked}'; }})")
            assert browser.run("document.documentElement.dataset.theme") == worn
    finally:
        browser.close()
