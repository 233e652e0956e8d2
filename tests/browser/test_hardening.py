"""The page of hardening: from two files to a level that is chosen, in a real browser."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.browser.desk import expect

pytestmark = pytest.mark.slow

DESCRIBED = {
    "Ada Quill": "ginger hair|guitar|folk songs|illness|red bicycle".split("|"),
    "Ben Marsh": "football|penalty|captain|ankle|tattoo".split("|"),
    "Cleo Vance": "novel|wizard|divorce|castle|owl".split("|"),
    "Dan Frost": "telescope|comet|physics|wheelchair|college".split("|"),
}


@pytest.fixture(scope="module")
def described(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Descriptions of four people, and the same anonymised: the paths of both files."""
    folder = tmp_path_factory.mktemp("described")
    rows: dict[str, list[str]] = {"original": [], "safe": []}
    for person, traits in DESCRIBED.items():
        for i in range(4):
            one, two, three = (traits[(i + k) % len(traits)] for k in range(3))
            text = (
                f"{{}} is known for the {one} and talks about the {two} in most interviews. A friend likes the {three}."
            )
            for version, name in (("original", person), ("safe", "PERSON_1")):
                row = {"id": f"{person}-{i}", "subject": person, "text": text.format(name)}
                rows[version].append(json.dumps(row) + "\n")
    paths = [folder / f"{version}.jsonl" for version in rows]
    for path, lines in zip(paths, rows.values(), strict=True):
        path.write_text("".join(lines), encoding="utf-8")
    return list(map(str, paths))


def test_a_level_of_hardening_is_chosen_on_its_frontier(
    open_page: Any, described: list[str], violations: Callable[[Any], list[str]], shoot: Callable[[Any, str], None]
) -> None:
    page = open_page(path="#/hardening")
    page.get_by_role("button", name="New hardening").first.click()
    for index, path in enumerate(described):
        page.locator("input[type=file]").nth(index).set_input_files(path)
    page.get_by_label("Field with the text").fill("text")
    page.get_by_label("Field with the person").fill("subject")
    page.get_by_role("button", name="Start").click()
    plane = page.get_by_role("listbox", name=re.compile("^Risk and content"))
    plane.wait_for(timeout=300_000)
    expect(page.get_by_text("Identified at worst:")).to_be_visible()
    expect(page.get_by_role("button", name="Chosen")).to_be_disabled()
    assert violations(page) == []
    shoot(page, "hardening-1440-light")

    plane.focus()
    for key in ("ArrowRight", "Home", "ArrowRight", "Enter"):
        page.keyboard.press(key)
    level = page.get_by_role("region", name="The level")
    name = level.get_by_role("heading").inner_text()
    assert re.fullmatch(r"Round \d+", name)
    expect(page.get_by_text("is measured once you choose it")).to_be_visible()
    page.get_by_role("button", name="Choose this level").click()
    expect(page.get_by_role("heading", name=f"{name}: intruders who had no say")).to_be_visible(timeout=60_000)
    page.get_by_role("heading", name="Texts before and after").click()
    page.locator(".pair mark").first.wait_for(timeout=60_000)
    number = name.split()[-1]
    with page.expect_download() as download:
        page.get_by_role("button", name=f"safe-level-{number}.jsonl").click()
    written = [json.loads(line) for line in Path(download.value.path()).read_text(encoding="utf-8").splitlines()]
    safe = [json.loads(line) for line in Path(described[1]).read_text(encoding="utf-8").splitlines()]
    assert [row["id"] for row in written] == [row["id"] for row in safe]
    assert [row["text"] for row in written] != [row["text"] for row in safe]

    small = open_page("390", scheme="dark", path=page.evaluate("location.hash"))
    small.get_by_role("listbox", name=re.compile("^Risk and content")).wait_for()
    expect(small.get_by_role("region", name="The level").get_by_role("heading")).to_have_text(name)
    assert small.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert violations(small) == []
    shoot(small, "hardening-390-dark")
