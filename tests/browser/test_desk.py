"""What is lost or kept on the page where a text is protected, its keys, and what it says when something fails."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.browser.conftest import NAME, Server
from tests.browser.desk import LETTER, card, expect, lacks, mark, paste, result, shows, source

pytestmark = pytest.mark.slow


@pytest.fixture
def letter(page: Any) -> Any:
    """The page with a letter that is annotated and previewed."""
    paste(page, LETTER)
    shows(page, "Kind regards\n[PERSON_2]")
    return page


# What must not be lost


def asked(page: Any, title: str, answer: str) -> None:
    """Answers a question."""
    question = page.get_by_role("dialog", name=title)
    question.wait_for()
    question.get_by_role("button", name=answer, exact=True).click()
    question.wait_for(state="hidden")


def test_the_plan_restores_after_the_text_has_changed(letter: Any) -> None:
    letter.keyboard.press("Control+Enter")
    letter.get_by_text("its plan is kept").wait_for()
    source(letter).click()
    letter.keyboard.press("Control+Home")
    letter.keyboard.insert_text("For Bea Stone. ")
    letter.locator(".state-line").get_by_text("Preview").wait_for()
    shows(letter, "For [PERSON_1]. Dear [PERSON_2],")
    letter.keyboard.press("Control+z")
    letter.get_by_text("its plan is kept").wait_for()
    letter.get_by_role("combobox", name="Policy", exact=True).select_option("pseudonyms")
    letter.locator(".state-line").get_by_text("Preview").wait_for()
    letter.get_by_role("button", name="Paste an answer").click()
    result(letter).click()
    letter.keyboard.insert_text("Thank [PERSON_2].")
    letter.get_by_text("have changed since").wait_for()
    letter.keyboard.press("Control+Enter")
    asked(letter, "Drop the answer?", "Cancel")
    letter.get_by_role("button", name="Restore", exact=True).click()
    letter.get_by_text("Thank Tobias Fenwick.").wait_for()
    letter.get_by_role("button", name="Back to the preview").click()
    asked(letter, "Drop the answer?", "Drop it")
    letter.locator(".state-line").get_by_text("Preview").wait_for()


def test_a_policy_that_cannot_be_read_is_not_chosen(letter: Any) -> None:
    policy = letter.get_by_role("combobox", name="Policy", exact=True)
    letter.context.set_offline(True)
    policy.select_option("pseudonyms")
    letter.get_by_text("The policy stays as it was").wait_for()
    expect(policy).to_have_value("default")
    letter.context.set_offline(False)
    letter.get_by_role("button", name="Try again").click()
    letter.wait_for_function("() => document.querySelector('.choices select').value === 'pseudonyms'")
    letter.get_by_text("The policy stays as it was").wait_for(state="hidden")
    letter.locator(".status[data-kind=live]").wait_for()
    letter.keyboard.press("Control+Enter")
    letter.get_by_text("its plan is kept").wait_for()
    assert "[PERSON" not in result(letter).inner_text() and "Fenwick" not in result(letter).inner_text()


def test_work_goes_only_when_asked(letter: Any, tmp_path: Path) -> None:
    mark(letter, "Marisol")
    card(letter).get_by_role("button", name="Reject").click()
    shows(letter, "Dear Marisol Quint,")
    letter.keyboard.press("Escape")
    letter.get_by_role("button", name="More").click()
    letter.get_by_role("menuitem", name="Try a letter").click()
    asked(letter, "Open the example?", "Cancel")
    file = tmp_path / "other.txt"
    file.write_text("Ida Moor wrote.", encoding="utf-8")
    letter.locator("input[type=file]").set_input_files(file)
    asked(letter, "Open another text?", "Cancel")
    letter.get_by_role("link", name="Jobs").click()
    letter.get_by_role("heading", name="Jobs", exact=True).wait_for()
    letter.get_by_role("button", name=NAME).click()
    letter.get_by_role("menuitem", name="Sign out").click()
    asked(letter, "Sign out?", "Cancel")
    letter.get_by_role("link", name="Protect").click()
    source(letter).wait_for()
    shows(letter, "Dear Marisol Quint,")
    letter.locator("input[type=file]").set_input_files(file)
    asked(letter, "Open another text?", "Open")
    shows(letter, "[PERSON_1] wrote.")
    letter.keyboard.press("Control+Enter")
    letter.get_by_text("its plan is kept").wait_for()
    letter.get_by_role("button", name="More").click()
    letter.get_by_role("menuitem", name="Clear the desk").click()
    asked(letter, "Clear the desk?", "Clear")
    letter.get_by_role("button", name="Try a letter").first.click()
    shows(letter, "[PERSON_1]")


def test_a_scope_just_typed_counts(letter: Any) -> None:
    letter.get_by_label("Keep in the vault under").click()
    letter.keyboard.type("case 7")
    letter.keyboard.press("Control+Enter")
    letter.get_by_text("kept in the vault under “case 7”").wait_for()


# Keys in selects and boxes


def focused(page: Any) -> str:
    """What has the keyboard: its name, or its words."""
    name: str = page.evaluate(
        "() => { const e = document.activeElement; return e.getAttribute('aria-label') ?? e.dataset.choice ?? e.id; }"
    )
    return name


def test_a_label_by_keys_counts_with_enter(letter: Any) -> None:
    source(letter).focus()
    letter.keyboard.press("Control+Home")
    letter.keyboard.press("F8")
    card(letter).wait_for()
    letter.keyboard.press("l")
    letter.keyboard.press("ArrowDown")
    letter.keyboard.press("ArrowDown")
    assert focused(letter) == "Label"
    expect(result(letter)).to_contain_text("Dear [PERSON_1],")
    letter.keyboard.press("Enter")
    shows(letter, "Dear [LOCATION_1],")
    assert focused(letter).startswith("Mention")
    letter.keyboard.press("m")
    letter.keyboard.press("ArrowDown")
    assert focused(letter).startswith("Merge")
    shows(letter, "my name is [PERSON_1]")
    letter.keyboard.press("Escape")
    shows(letter, "Dear [LOCATION_1],")
    letter.keyboard.press("F8")
    letter.keyboard.press("l")
    letter.keyboard.type("occ")
    letter.keyboard.press("Tab")
    shows(letter, "[OCCUPATION_1]")
    assert focused(letter).startswith("Start one to the left")


def test_choices_keep_the_keyboard(letter: Any) -> None:
    rows = letter.get_by_label("What replaces Person")
    rows.focus()
    rows.select_option("mask")
    shows(letter, "my name is ****")
    assert focused(letter) == "What replaces Person"
    rows.select_option("Do not look for it")
    shows(letter, "my name is Tobias Fenwick")
    letter.wait_for_function("() => document.activeElement.textContent.includes('Person')")
    assert focused(letter) == "Look for Person again"
    letter.get_by_text("Detectors", exact=True).click()
    letter.get_by_role("checkbox", name="rules").focus()
    letter.keyboard.press("Space")
    lacks(letter, "[EMAIL_ADDRESS_1]")
    assert focused(letter) == "rules"


def test_without_detectors_it_says_so(page: Any) -> None:
    paste(page, "Water is wet.")
    page.get_by_text("This policy finds nothing in this text.").wait_for()
    page.get_by_text("Detectors", exact=True).click()
    for name in ("lexicon", "rules", "speakers", "spoken", "tagger"):
        page.get_by_role("checkbox", name=name).uncheck()
    page.get_by_text("No detector is on").wait_for()


def test_detection_that_fails_is_told(page: Any, server: Server) -> None:
    request = page.context.request
    csrf = request.get(f"{server.url}/v1/session").json()["csrf"]
    toml = 'extends = "default"\n[detect]\ndetectors = ["rules", "spacy"]\n[detect.spacy]\nmodel = "nosuch"\n'
    stored = request.put(f"{server.url}/v1/policies/broken", data={"toml": toml}, headers={"X-CSRF-Token": csrf})
    assert stored.ok, stored.text()
    page.reload()
    paste(page, LETTER)
    shows(page, "[PERSON_2]")
    page.get_by_text("Detectors", exact=True).click()
    expect(page.get_by_role("checkbox", name="spacy")).to_have_count(0)
    page.get_by_role("combobox", name="Policy", exact=True).select_option("broken")
    page.locator(".result-pane").get_by_role("alert").wait_for()
    lacks(page, "PERSON")
    page.get_by_role("checkbox", name="spacy").uncheck()
    shows(page, "[EMAIL_ADDRESS_1]")
    expect(page.locator(".result-pane").get_by_role("alert")).to_have_count(0)


def test_a_stream_that_is_refused_is_no_lost_connection(open_page: Callable[..., Any]) -> None:
    page = open_page(path="#/settings")
    page.get_by_role("heading", name="Settings").wait_for()
    said = {"type": "error", "error": {"code": "PolicyError", "message": "not this one", "where": None}}

    def refuse(socket: Any) -> None:
        def answer(message: str) -> None:
            if json.loads(message)["type"] == "text":
                socket.send(json.dumps(said))
                socket.close(code=1008, reason="")

        socket.on_message(answer)

    page.route_web_socket("**/v1/stream", refuse)
    page.route("**/v1/detect", lambda route: route.fulfill(status=400, json={"error": said["error"]}))
    page.goto(page.url.partition("#")[0] + "#/protect")
    paste(page, LETTER)
    page.locator(".result-pane").get_by_role("alert").get_by_text("not this one").wait_for()
    page.locator(".status[data-kind=error]").wait_for()
    page.unroute("**/v1/detect")
    page.keyboard.type("x")
    shows(page, "[PERSON_2]")
