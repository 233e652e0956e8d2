"""A project walked through in a browser: from 20 files to a signed release, alone and with two reviewers."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.browser.conftest import Server
from tests.browser.desk import expect

from allonym.project import verify_release

docx = pytest.importorskip("docx")
canvas = pytest.importorskip("reportlab.pdfgen.canvas")

pytestmark = pytest.mark.slow

PEOPLE = ("Marisol Quint", "Tobias Fenwick", "Adela Norcross", "Rufus Pemberton", "Imogen Thackray")
COUNT_CLICKS = (
    "addEventListener('click', (event) => { if (event.isTrusted) window.clicks = (window.clicks ?? 0) + 1; }, true)"
)


def write_files(folder: Path, count: int) -> list[Path]:
    """``count`` files of each of four formats, about the same people."""
    files = []
    folder.mkdir()
    for number in range(count):
        person, other = PEOPLE[number % 5], PEOPLE[(number + 1) % 5]
        lines = [
            f"Interview {number + 1} with {person}.",
            f"{person} told us how {other} moved the workshop to Leeds.",
            f"The Larkspur method helped; write to {person.split()[0].lower()}@example.com.",
        ]
        letter = docx.Document()
        for line in lines:
            letter.add_paragraph(line)
        letter.save(folder / f"{person} {number}.docx")
        rows = f"name,note\n{person},Met {other} on 3 March.\n{other},Lives in Leeds.\n"
        (folder / f"table {number}.csv").write_text(rows, encoding="utf-8")
        (folder / f"notes {number}.txt").write_text("\n".join(lines), encoding="utf-8")
        page = canvas.Canvas(str(folder / f"scan {number}.pdf"))
        for position, line in enumerate(lines):
            page.drawString(60, 780 - 24 * position, line)
        page.save()
        names = (f"{person} {number}.docx", f"table {number}.csv", f"notes {number}.txt", f"scan {number}.pdf")
        files += [folder / name for name in names]
    return files


def make_project(page: Any, files: list[Path], name: str = "") -> None:
    page.get_by_role("link", name="Projects", exact=True).click()
    page.get_by_role("button", name="New project").first.click()
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Choose…").click()
    chooser.value.set_files([str(file) for file in files])
    if name:
        page.get_by_label("Name").fill(name)
    page.get_by_role("button", name="Anonymise all").click()
    page.get_by_text(f"{len(files)} files added").wait_for(timeout=300_000)


def take_release(page: Any, folder: Path) -> Path:
    with page.expect_download() as download:
        page.get_by_role("button", name="Download release 1").click()
    target = folder / "release.zip"
    download.value.save_as(target)
    return target


def list_texts(file: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(file.read_bytes())) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_alone_from_twenty_files_to_the_release(
    open_page: Any, shoot: Callable[[Any, str], None], tmp_path: Path, violations: Callable[..., list[str]]
) -> None:
    page = open_page()
    page.add_init_script(COUNT_CLICKS)
    page.reload()
    files = write_files(tmp_path / "files", 5)
    assert len(files) == 20
    make_project(page, files)
    surface = page.get_by_role("region", name="Findings").get_by_role("button", name="Larkspur", exact=True)
    if not surface.count():
        surface = page.get_by_role("region", name="Findings").get_by_role("button", name="Leeds", exact=True)
    surface.first.wait_for()
    shoot(page, "project-findings-1440-light")
    surface.first.click()
    page.get_by_role("heading", name="Mention").wait_for()
    shoot(page, "project-card-1440-light")
    page.get_by_role("button", name="Never find this").click()
    page.get_by_role("heading", name="Corrections").wait_for(timeout=120_000)
    shoot(page, "project-corrected-1440-light")
    page.get_by_role("tab", name="Release").click()
    page.get_by_label("settled by two reviewers").check()
    page.get_by_role("button", name="Release", exact=True).click()
    page.get_by_text("The release is written and signed").wait_for(timeout=300_000)
    shoot(page, "project-release-1440-light")
    file = take_release(page, tmp_path)
    assert page.evaluate("window.clicks") <= 10
    verified = verify_release(file)
    assert verified.files == 22
    texts = list_texts(file)
    assert {Path(name).suffix for name in texts} == {".html", ".json", ".sig", ".docx", ".csv", ".txt", ".pdf"}
    for name, data in texts.items():
        assert not any(person.split()[1] in name for person in PEOPLE)
        if name.endswith((".txt", ".csv", ".json")):
            assert not any(person.split()[1].encode() in data for person in PEOPLE), name
    assert not violations(page)


def test_two_reviewers_settle_and_release(
    open_page: Any,
    server: Server,
    another: Callable[[str, str], Any],
    shoot: Callable[[Any, str], None],
    tmp_path: Path,
) -> None:
    owner, ben = open_page(), open_page(state=another("ben of the project", "reviewer"))
    make_project(owner, write_files(tmp_path / "files", 1), "Two readers")
    owner.get_by_role("tab", name="Files").click()
    owner.get_by_label("User").fill("ben of the project")
    owner.get_by_role("button", name="Let in").click()
    owner.get_by_text("Also in the project").wait_for()
    expect(owner.get_by_text("ben of the project").first).to_be_visible()
    shoot(owner, "project-files-1440-light")
    correct_in_review(owner, shoot)
    ben.get_by_role("link", name="Projects", exact=True).click()
    ben.get_by_role("link", name="Two readers").click()
    for page in (owner, ben):
        read_all(page, marks_first=page is ben, shoot=shoot)
    owner.get_by_role("tab", name="Review").click()
    owner.get_by_label("Disagreement").check(force=True)
    owner.get_by_role("table").get_by_role("link").first.click()
    owner.get_by_role("region", name="Differences").wait_for()
    shoot(owner, "project-settle-1440-light")
    owner.get_by_role("region", name="Differences").get_by_role("button").first.click()
    owner.get_by_role("button", name="Settle", exact=True).click()
    owner.get_by_role("tab", name="Agreement").click()
    owner.get_by_text("Looked at by both").wait_for()
    shoot(owner, "project-agreement-1440-light")
    owner.get_by_role("tab", name="Release").click()
    owner.get_by_role("button", name="Release", exact=True).click()
    owner.get_by_text("The release is written and signed").wait_for(timeout=300_000)
    verified = verify_release(take_release(owner, tmp_path))
    assert verified.manifest["reviewed"]["settled"] == verified.manifest["reviewed"]["documents"] > 0


def correct_in_review(page: Any, shoot: Callable[[Any, str], None]) -> None:
    """Never find a word in the whole project, from the card of a mention in a document."""
    page.get_by_role("tab", name="Review").click()
    page.get_by_role("table").get_by_role("link", name="notes 0.txt").click()
    text = page.get_by_role("group", name="Original text")
    text.get_by_role("button", name="Larkspur").click()
    page.keyboard.press("x")
    page.get_by_text("rejected", exact=True).wait_for()
    shoot(page, "project-mention-1440-light")
    page.get_by_role("button", name="In the whole project").click()
    page.get_by_text("It is never found from now on").wait_for(timeout=120_000)
    text.wait_for()
    expect(text.locator(".finding", has_text="Larkspur")).to_have_count(0)
    expect(text.locator(".finding").first).to_be_visible()
    page.get_by_role("link", name="Two readers").click()


def read_all(page: Any, *, marks_first: bool, shoot: Callable[[Any, str], None]) -> None:
    """Look at each document until its words count as read, and press Done; one of them marks a word first."""
    page.get_by_role("tab", name="Review").click()
    page.get_by_role("table").get_by_role("link").first.click()
    is_first = True
    while True:
        page.get_by_role("group", name="Original text").wait_for()
        page.wait_for_timeout(2500)
        if is_first and marks_first:
            select_word(page)
            page.get_by_role("button", name="Missed").click()
            page.get_by_text("Saved", exact=True).wait_for()
            shoot(page, "project-review-1440-light")
        is_first = False
        before = page.url
        page.get_by_role("button", name="Done, next").click()
        page.wait_for_function("url => location.href !== url", arg=before)
        if page.url.count("/") < before.count("/"):
            return


def select_word(page: Any) -> None:
    """Select a word that nothing covers."""
    page.evaluate(
        """() => {
          const root = document.querySelector("[aria-label='Original text']");
          const walk = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
          for (let node = walk.nextNode(); node; node = walk.nextNode()) {
            for (const word of ["workshop", "Interview", "Met", "Lives"]) {
              const at = node.data.indexOf(word);
              if (at >= 0) return getSelection().setBaseAndExtent(node, at, node, at + word.length);
            }
          }
          throw new Error("there is no such word");
        }"""
    )
    page.get_by_role("heading", name="Selected text").wait_for()
