"""The manual as a site: it builds without a warning, leads nowhere wrong, loads nothing, and its search finds answers."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlparse

import pytest
from lxml import html

for package in ("mkdocs", "material", "latex2mathml"):
    pytest.importorskip(package, reason="the extra docs is not installed")

ROOT = Path(__file__).resolve().parent.parent


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
