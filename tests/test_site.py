"""The manual as a site: it builds without a warning, leads nowhere wrong, loads nothing, and its search finds answers."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag, urlparse

import pytest
from lxml import html

for package in ("mkdocs", "material", "latex2mathml"):
    pytest.importorskip(package, reason="the extra docs is not installed")

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parent.parent
CHROMIUM = os.environ.get("ALLONYM_CHROMIUM", "/usr/bin/chromium")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as CONTRIBUTING.md says."""
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
    )
    assert done.returncode == 0 and not done.stderr, done.stderr
    return folder


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[str, html.HtmlElement]:
    return {str(path.relative_to(site)): html.parse(str(path)).getroot() for path in site.rglob("*.html")}


def addresses(page: html.HtmlElement) -> Iterator[tuple[str, str]]:
    for element, attribute, address, _ in page.iterlinks():
        yield f"{element.tag} {attribute} {element.get('rel', '')}".strip(), address


def test_no_page_loads_anything_from_elsewhere(pages):
    loaded = [
        (name, what, address)
        for name, page in pages.items()
        for what, address in addresses(page)
        if urlparse(address).netloc and not what.startswith("a href")
    ]
    assert not loaded


def test_each_link_leads_to_a_page_and_to_a_place_on_it(site, pages):
    places = {name: {e.get("id") for e in page.iter() if e.get("id")} for name, page in pages.items()}
    wrong = []
    for name, page in pages.items():
        if name == "404.html":
            continue  # it is served for any address, and so its own are absolute
        for _, address in addresses(page):
            address, fragment = urldefrag(address)
            if urlparse(address).scheme:
                continue
            target = (site / name).parent / unquote(address) if address else site / name
            key = os.path.relpath(target, site)
            if not target.exists() or (fragment and key in places and unquote(fragment) not in places[key]):
                wrong.append((name, address, fragment))
    assert not wrong


def test_every_page_is_in_the_navigation(site, pages):
    listed = set(pages["index.html"].xpath("//nav[contains(@class, 'md-nav')]//a/@href"))
    assert set(pages) - {"404.html", "changelog.html", "sources.html", "index.html"} <= listed


def test_formulas_are_drawn_when_the_site_is_built(pages):
    formulas = "//*[@class='arithmatex']"
    assert len(pages["explanation/statistics.html"].xpath(f"{formulas}/math")) > 20
    assert not [name for name, page in pages.items() if page.xpath(f"{formulas}[not(math)]")]


QUESTIONS = {
    "how do I avoid false positives": "false-positives",
    "same pseudonym for the same person in all documents": "same-person",
    "partial names and coreference": "same-person",
    "overlapping entities": "overlaps",
    "faster batch": "speed-and-memory",
    "memory usage": "speed-and-memory",
    "German language": "languages",
    "custom recognizer deny list": "own-lists-and-patterns",
    "structured data CSV columns": "structured-data",
    "get the originals back": "restore",
    "streaming answer": "streaming",
    "redact scanned PDF": "pdf",
    "evaluate precision and recall": "evaluate",
    "Spark": "scale",
    "residual risk when names are masked": "residual-risk",
    "spoken phone numbers": "transcripts",
    "hash join records": "join-records",
    "docker": "docker",
    "kubernetes": "docker",
    "migrate": "migrate",
    "erase person": "erase-a-person",
    "GDPR": "pseudonymisation",
    "ethics board": "evaluate",
    "celebrities": "false-positives",
    "latin-1": "questions",
    "prove offline": "prove-offline",
    "pseudonymize": "pseudonymisation",
    "anonymize interviews": "interviews",
    "organizations in my policy": "first-policy",
    "generalize": "operators",
    "color": "notebooks",
}
"""Questions of users of such tools in their words and spelling, and the page that answers each."""


@contextlib.contextmanager
def static_server(folder: Path) -> Iterator[str]:
    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if not Path(CHROMIUM).exists():
        pytest.skip(f"no browser at {CHROMIUM}; ALLONYM_CHROMIUM names another")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as running:
        started = running.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield started
        started.close()


@pytest.mark.parametrize("where", ["static server", "file system"])
def test_the_search_finds_the_answers_and_asks_no_other_server(where, site, browser):
    with static_server(site) as address:
        base = address if where == "static server" else site.as_uri()
        page = browser.new_page()
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.goto(f"{base}/index.html")
        field, items = page.locator("input.md-search__input"), ".md-search-result__item"
        field.click()
        found = {}
        for question in QUESTIONS:
            page.evaluate(f"document.querySelectorAll('{items}').forEach(e => e.classList.add('old'))")
            field.fill(question)
            page.keyboard.press("End")  # the search listens to keys
            page.wait_for_function(f"document.querySelector('{items}') && !document.querySelector('{items}.old')")
            links = page.eval_on_selector_all(f"{items} a:first-of-type", "all => all.map(a => a.pathname)")
            found[question] = list(dict.fromkeys(link.rpartition("/")[2] for link in links))[:3]
        page.close()
    assert {q: pages for q, pages in found.items() if f"{QUESTIONS[q]}.html" not in pages} == {}
    assert not [url for url in asked if not url.startswith((base, "about:", "data:"))]
