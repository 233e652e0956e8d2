"""The page where a text is protected, in a real browser against a real server."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.browser.conftest import NAME, PASSWORD, SIZES, Server
from tests.browser.desk import LETTER, card, expect, lacks, mark, paste, result, select, shows, source

pytestmark = pytest.mark.slow

LONG = 100_000
SHIFTS = """() => {
  window.shifted = 0;
  new PerformanceObserver((list) => { for (const e of list.getEntries()) window.shifted += e.value; })
    .observe({ type: "layout-shift", buffered: false });
}"""


def coloured(page: Any) -> dict[str, int]:
    """How many stretches are drawn in each colour."""
    found: dict[str, int] = page.evaluate("Object.fromEntries([...CSS.highlights].map(([name, h]) => [name, h.size]))")
    return {name: n for name, n in found.items() if n}


@pytest.fixture
def letter(page: Any) -> Any:
    """The page with a letter that is annotated and previewed."""
    paste(page, LETTER)
    shows(page, "Kind regards\n[PERSON_2]")
    return page


# Signing in


def test_signing_in_and_out(server: Server, open_page: Callable[..., Any]) -> None:
    page = open_page(state=None)
    page.get_by_label("Name").fill(NAME)
    page.get_by_label("Password").fill("not the right one at all")
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("alert").wait_for()
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    source(page).wait_for()
    page.get_by_role("button", name=NAME).click()
    page.get_by_role("menuitem", name="Sign out").click()
    page.get_by_role("heading", name="Sign in").wait_for()
    page.goto(f"{server.url}/#/jobs")
    page.get_by_role("heading", name="Sign in").wait_for()


def test_a_link_that_was_used_says_so(server: Server, open_page: Callable[..., Any]) -> None:
    page = open_page(state=None, path=server.link.partition("/#")[1][1:] + server.link.partition("/#")[2])
    page.get_by_label("Name").fill("eve")
    page.get_by_label("Password", exact=True).fill("short")
    page.get_by_role("button", name="Make my account").click()
    page.get_by_text("At least 12 characters are needed.").wait_for()
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_label("Password, once more").fill(PASSWORD)
    page.get_by_role("button", name="Make my account").click()
    page.get_by_role("alert").wait_for()


# Annotating


def test_what_is_pasted_is_annotated(letter: Any) -> None:
    letter.locator(".status[data-kind=live]").wait_for()
    assert coloured(letter)["person"] >= 6  # three in the text, three in the preview
    assert {"place", "contact"} <= set(coloured(letter))
    legend = letter.get_by_role("group", name="Labels in the text")
    assert "Person3" in legend.inner_text().replace("\n", "")
    assert "not yet" not in result(letter).inner_text()
    assert "Fenwick" not in result(letter).inner_text()


def test_it_annotates_without_the_socket(open_page: Callable[..., Any]) -> None:
    page = open_page(path="#/settings")
    page.route_web_socket("**/v1/stream", lambda socket: socket.close())
    page.goto(page.url.partition("#")[0] + "#/protect")
    paste(page, LETTER)
    shows(page, "[PERSON_2]")


def test_passages_that_no_detector_reads_are_told(page: Any) -> None:
    german = "Das Treffen wurde auf nächsten Dienstag verschoben, weil die Handwerker noch in der Küche arbeiten.\n"
    paste(page, german)
    told = page.locator(".result-pane .state-line").get_by_text("Names were not looked for in 99 % of the text: German")
    told.wait_for()
    page.get_by_role("button", name="Anonymise", exact=True).click()
    page.locator(".result-pane .badge", has_text="Anonymised").wait_for()
    told.wait_for()


def test_markup_stays_text(page: Any) -> None:
    paste(page, 'Ask Ada Brook <img src=x onerror="document.title=1"><b>now</b>')
    shows(page, "[PERSON_1]")
    page.keyboard.press("Control+Enter")
    page.get_by_role("radio", name="Differences").check()
    page.locator(".diff ins").first.wait_for()
    page.get_by_role("tab", name="Mentions").click()
    page.locator(".mention-row").first.wait_for()
    assert page.evaluate("document.querySelectorAll('img, .pane-body b').length") == 0
    assert page.title() != "1"


# Correcting


def test_rejecting_and_taking_it_back(letter: Any) -> None:
    mark(letter, "Tobias Fenwick")
    letter.get_by_label("also the other mention").check()
    card(letter).get_by_role("button", name="Reject").click()
    shows(letter, "Kind regards\nTobias Fenwick")
    letter.keyboard.press("Escape")
    letter.keyboard.press("Control+z")
    shows(letter, "Kind regards\n[PERSON_2]")
    letter.keyboard.press("Control+Shift+z")
    shows(letter, "my name is Tobias Fenwick")


def test_relabelling(letter: Any) -> None:
    mark(letter, "Marisol")
    card(letter).get_by_label("Label", exact=True).select_option("OCCUPATION")
    shows(letter, "Dear [OCCUPATION_1],")
    letter.get_by_role("button", name="Undo").click()
    shows(letter, "Dear [PERSON_1],")


def test_adding_what_was_missed(letter: Any) -> None:
    select(letter, "Kind regards")
    letter.keyboard.press("Alt+Enter")
    adding = letter.get_by_role("dialog", name="Mark this as a mention")
    adding.get_by_label("Label").select_option("OTHER_IDENTIFYING_ATTRIBUTE")
    adding.get_by_role("button", name="Mark").click()
    shows(letter, "[OTHER_IDENTIFYING_ATTRIBUTE_1]")
    assert "Kind regards" not in result(letter).inner_text()


def test_moving_edges(letter: Any) -> None:
    mark(letter, "Marisol")
    letter.get_by_role("button", name="Start one to the left").click(modifiers=["Shift"])
    lacks(letter, "Dear")
    letter.get_by_role("button", name="End one to the left").click(modifiers=["Shift"])
    shows(letter, "] Quint,")
    for _ in range(2):
        letter.get_by_role("button", name="Undo").click()
    shows(letter, "Dear [PERSON_1],")


def test_merging_and_splitting(letter: Any) -> None:
    mark(letter, "Marisol")
    same = card(letter).get_by_label("Merge with another entity")
    same.select_option(label="Tobias Fenwick (Person)")
    shows(letter, "Kind regards\n[PERSON_1]")
    letter.keyboard.press("Escape")
    mark(letter, "Tobias Fenwick", 1)
    letter.get_by_role("button", name="Split off").click()
    shows(letter, "Kind regards\n[PERSON_2]")
    shows(letter, "Dear [PERSON_1],\n\nmy name is [PERSON_1]")


def test_corrections_survive_typing(letter: Any) -> None:
    mark(letter, "Marisol")
    card(letter).get_by_role("button", name="Reject").click()
    shows(letter, "Dear Marisol Quint,")
    letter.keyboard.press("Escape")
    letter.keyboard.press("Control+Home")
    letter.keyboard.type("For Bea Stone. ")
    shows(letter, "For [PERSON_1]. Dear Marisol Quint,")
    letter.keyboard.press("Control+z")
    shows(letter, "Dear Marisol Quint,")
    lacks(letter, "For ")
    letter.keyboard.press("Control+z")
    shows(letter, "Dear [PERSON_1],")


def test_typing_deleting_and_lines(page: Any) -> None:
    source(page).click()
    page.keyboard.type("One 👩‍🚀 two")
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    page.keyboard.type("three")
    for _ in range(3):
        page.keyboard.press("ArrowLeft")
    page.keyboard.press("Backspace")
    page.keyboard.press("Delete")
    text = "() => document.querySelector('.text-pane .editor').firstChild.data"
    assert page.evaluate(text) == "One 👩‍🚀 two\n\ntee"
    page.keyboard.press("Control+a")
    page.keyboard.press("Backspace")
    assert page.evaluate(text) == ""
    page.keyboard.press("Control+z")
    assert page.evaluate(text) == "One 👩‍🚀 two\n\ntee"


def test_choosing_what_replaces(letter: Any) -> None:
    letter.get_by_label("What replaces Person").select_option("mask")
    shows(letter, "my name is ****")
    letter.get_by_label("What replaces Phone number").select_option("Do not look for it")
    lacks(letter, "[PHONE_NUMBER_1]")
    letter.get_by_role("button", name="Look for Phone number again").click()
    shows(letter, "[PHONE_NUMBER_1]")
    letter.get_by_role("combobox", name="Policy", exact=True).select_option("pseudonyms")
    lacks(letter, "[")
    lacks(letter, "Fenwick")


# Anonymising and restoring


def test_anonymise_edit_restore(letter: Any) -> None:
    letter.get_by_role("button", name="Anonymise").click()
    letter.get_by_text("its plan is kept in this window only").wait_for()
    result(letter).click()
    letter.keyboard.press("Control+a")
    letter.keyboard.insert_text("[PERSON_1] should answer person_2 at [EMAIL_ADDRESS_1], not [EMAIL_ADDRESS_7].")
    letter.get_by_role("button", name="Restore", exact=True).click()
    restored = letter.get_by_role("region", name="Restored text")
    restored.wait_for()
    expect(restored).to_contain_text("Marisol Quint should answer Tobias Fenwick")
    expect(restored.locator("mark.back")).to_have_count(3)
    expect(restored.locator(".rule")).to_have_count(1)
    expect(restored.locator("mark.unknown")).to_have_text("[EMAIL_ADDRESS_7]")
    letter.get_by_role("button", name="Copy").click()
    assert "tobias.fenwick@example.com" in letter.evaluate("navigator.clipboard.readText()")


@pytest.mark.parametrize(("policy", "unknown"), [("reversible", "<PERSON 70>"), ("wild-tags", '<PERSON "4DF9179B">')])
def test_tags_that_stay_unknown_are_shown(letter: Any, policy: str, unknown: str) -> None:
    letter.get_by_role("combobox", name="Policy", exact=True).select_option(policy)
    shows(letter, "Dear <")
    letter.get_by_role("button", name="Anonymise").click()
    letter.get_by_text("its plan is kept in this window only").wait_for()
    known = result(letter).inner_text().partition("Dear ")[2].partition(",")[0]
    result(letter).click()
    letter.keyboard.press("Control+a")
    letter.keyboard.insert_text(f"{known} asks {unknown}.")
    letter.get_by_role("button", name="Restore", exact=True).click()
    restored = letter.get_by_role("region", name="Restored text")
    restored.wait_for()
    assert restored.locator("mark.back").all_text_contents() == ["Marisol Quint"]
    assert restored.locator("mark.unknown").all_text_contents() == [unknown]


def test_what_was_typed_last_is_covered_too(letter: Any) -> None:
    mark(letter, "Marisol")
    card(letter).get_by_role("button", name="Reject").click()
    letter.keyboard.press("Escape")
    letter.keyboard.press("Control+Home")
    letter.keyboard.insert_text("For Bea Stone. ")
    letter.keyboard.press("Control+Enter")  # before the server has seen the new name
    letter.get_by_text("its plan is kept").wait_for()
    assert result(letter).inner_text().startswith("For [PERSON_1]. Dear Marisol Quint,")


def test_without_the_server_it_says_so(letter: Any) -> None:
    letter.context.set_offline(True)
    letter.locator(".status[data-kind=offline]").wait_for()
    letter.keyboard.press("Control+Enter")
    letter.get_by_role("alert").get_by_text("The server does not answer").wait_for()
    letter.context.set_offline(False)
    letter.locator(".status[data-kind=live]").wait_for()
    letter.keyboard.press("Control+Enter")
    letter.get_by_text("its plan is kept").wait_for()


def test_differences(letter: Any) -> None:
    letter.get_by_role("radio", name="Differences").check()
    shown = letter.get_by_role("region", name="Differences")
    expect(shown.locator("del").first).to_have_text("Marisol Quint")
    expect(shown.locator("ins").first).to_have_text("[PERSON_1]")
    letter.get_by_role("radio", name="Side by side").check()
    cells = shown.locator(".diff-line").filter(has_text="Dear Marisol Quint,").locator(".diff-side")
    cells.first.wait_for()
    assert cells.all_text_contents() == ["Dear Marisol Quint,", "Dear [PERSON_1],"]


def test_a_scope_of_the_vault_restores_later(letter: Any, server: Server) -> None:
    letter.get_by_label("Keep in the vault under").fill("letters")
    letter.keyboard.press("Tab")
    letter.get_by_role("button", name="Anonymise").click()
    letter.get_by_text("kept in the vault under “letters”").wait_for()
    letter.reload()
    letter.get_by_label("Keep in the vault under").fill("letters")
    letter.keyboard.press("Tab")
    letter.get_by_role("button", name="Paste an answer").click()
    result(letter).click()
    letter.keyboard.insert_text("Write to [PERSON_2].")
    letter.keyboard.press("Control+Shift+Enter")
    letter.get_by_text("Write to Tobias Fenwick.").wait_for()


def test_who_may_not_restore_is_told_why(open_page: Callable[..., Any], another: Callable[[str, str], Any]) -> None:
    page = open_page(state=another("ben", "annotator"))
    paste(page, LETTER)
    shows(page, "[PERSON_2]")
    page.keyboard.press("Control+Enter")
    page.get_by_text("its plan is kept").wait_for()
    assert page.get_by_role("button", name="Restore", exact=True).is_disabled()
    page.get_by_text("Your role may not restore originals").wait_for()
    expect(page.get_by_role("link", name="Studies")).to_have_count(0)


# Keyboard, screen readers


def test_by_keyboard_alone(page: Any) -> None:
    source(page).wait_for()
    page.wait_for_function("() => document.activeElement?.getAttribute('aria-label') === 'Text to protect'")
    page.keyboard.type("Ada Brook wrote to Bea Stone.")
    shows(page, "[PERSON_1] wrote to [PERSON_2].")
    page.keyboard.press("F8")
    card(page).wait_for()
    page.keyboard.press("n")
    page.keyboard.press("r")
    shows(page, "[PERSON_1] wrote to Bea Stone.")
    page.keyboard.press("r")
    shows(page, "[PERSON_1] wrote to [PERSON_2].")
    page.keyboard.press("Shift+ArrowLeft")
    shows(page, "[PERSON_1] wrote to [PERSON_2] Stone.")
    page.keyboard.press("Escape")
    page.keyboard.press("Control+z")
    shows(page, "[PERSON_1] wrote to [PERSON_2].")
    page.keyboard.press("Control+Enter")
    page.get_by_text("its plan is kept").wait_for()
    page.keyboard.press("Control+Shift+Enter")
    page.get_by_role("region", name="Restored text").wait_for()
    page.keyboard.press("F6")
    page.keyboard.press("?")
    page.get_by_role("dialog", name="Keyboard shortcuts").wait_for()
    page.keyboard.press("Escape")


def test_the_list_of_mentions(letter: Any) -> None:
    letter.get_by_role("tab", name="Mentions").click()
    rows = letter.locator(".mention-row")
    rows.first.wait_for()
    expect(rows.first).to_contain_text("Marisol Quint")
    rows.first.focus()
    letter.keyboard.press("ArrowDown")
    letter.keyboard.press("r")
    shows(letter, "my name is Tobias Fenwick")
    letter.get_by_label("Filter by label").select_option("EMAIL_ADDRESS")
    letter.wait_for_function("() => document.querySelectorAll('.mention-row').length === 1")
    rows.first.click()
    card(letter).wait_for()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(open_page: Callable[..., Any], violations: Callable[..., list[str]], scheme: str) -> None:
    page = open_page(scheme=scheme)
    source(page).wait_for()
    page.get_by_role("combobox", name="Policy", exact=True).wait_for()
    assert violations(page) == []
    paste(page, LETTER)
    shows(page, "[PERSON_2]")
    page.keyboard.press("Control+Enter")
    page.get_by_text("its plan is kept").wait_for()
    page.keyboard.press("Control+Shift+Enter")
    page.get_by_role("region", name="Restored text").wait_for()
    page.get_by_role("tab", name="Mentions").click()
    page.locator(".mention-row").first.wait_for()
    page.keyboard.press("F8")
    card(page).wait_for()
    assert violations(page) == []
    page.keyboard.press("Escape")
    page.get_by_role("radio", name="Differences").check()
    page.get_by_role("radio", name="Conversation").check()
    page.keyboard.press("Control+/")
    page.get_by_role("dialog", name="Keyboard shortcuts").wait_for()
    assert violations(page) == []


def test_axe_finds_nothing_wrong_with_signing_in(
    open_page: Callable[..., Any], violations: Callable[..., list[str]]
) -> None:
    page = open_page(state=None, scheme="dark")
    page.get_by_role("heading", name="Sign in").wait_for()
    assert violations(page) == []


# Conversations and files


def test_a_conversation(page: Any) -> None:
    page.get_by_role("button", name="Try a conversation").click()
    turns = page.locator(".turn")
    turns.first.wait_for()
    expect(turns).to_have_count(9)
    page.get_by_role("combobox", name="Speaker").fill("Marisol Quint")
    page.get_by_label("What they say").fill("Goodbye, Mr. Fenwick.")
    page.keyboard.press("Enter")
    page.wait_for_function("() => document.querySelectorAll('.turn').length === 10")
    shows(page, ": Goodbye, Mr. [PERSON_")
    turns.first.locator(".mention").first.focus()
    page.keyboard.press("Enter")
    card(page).wait_for()


def test_a_conversation_begins_before_its_first_turn(page: Any) -> None:
    paste(page, "Call of Ada Brook\n\nPam: Is Bea Stone there?\nJim: No.\n")
    shows(page, "[PERSON_1]")
    page.get_by_role("radio", name="Conversation").check()
    turns = page.locator(".turn .says")
    turns.first.locator(".mention").wait_for()
    assert turns.all_text_contents() == ["Call of Ada Brook", "Is Bea Stone there?", "No."]


def test_files_are_opened_and_saved(letter: Any, tmp_path: Path) -> None:
    lines = [{"id": "a", "text": "Ada Brook called."}, {"id": "b", "text": "Bea Stone wrote."}]
    file = tmp_path / "calls.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    letter.locator("input[type=file]").set_input_files(file)
    letter.get_by_label("Document", exact=True).wait_for()
    shows(letter, "[PERSON_1] called.")
    letter.get_by_role("button", name="Next document").click()
    shows(letter, "[PERSON_1] wrote.")
    letter.get_by_role("button", name="Save").click()
    with letter.expect_download() as download:
        letter.get_by_role("menuitem", name="calls-anonymised.jsonl").click()
    saved = Path(download.value.path()).read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["text"] for line in saved] == ["[PERSON_1] called.", "[PERSON_1] wrote."]


def test_a_word_file_keeps_its_format(page: Any, tmp_path: Path) -> None:
    docx = pytest.importorskip("docx", reason="python-docx is not installed")
    file = tmp_path / "letter.docx"
    written = docx.Document()
    written.add_paragraph("Yours, ").add_run("Ada Brook").bold = True
    written.save(str(file))
    source(page).wait_for()
    page.locator("input[type=file]").set_input_files(file)
    shows(page, "Yours, [PERSON_1]")
    page.keyboard.press("Control+Enter")
    page.get_by_role("button", name="Save").click()
    with page.expect_download() as download:
        page.get_by_role("menuitem", name="letter-anonymised.docx").click()
    assert download.value.suggested_filename == "letter-anonymised.docx"
    target = tmp_path / "saved.docx"
    download.value.save_as(target)
    assert docx.Document(str(target)).paragraphs[0].text == "Yours, [PERSON_1]"


def test_nothing_of_the_text_stays_in_the_browser(letter: Any) -> None:
    letter.get_by_role("button", name="Anonymise").click()
    letter.get_by_text("its plan is kept").wait_for()
    kept = letter.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}, location.href, document.cookie])")
    assert "Fenwick" not in kept and "PERSON" not in kept


# Sizes


def test_a_long_text_stays_still(page: Any) -> None:
    text = (LETTER * (LONG // len(LETTER) + 1))[:LONG]
    source(page).wait_for()
    page.get_by_role("combobox", name="Policy", exact=True).wait_for()
    page.evaluate(SHIFTS)
    paste(page, text)
    page.locator(".status[data-kind=live]").get_by_text("100,000 characters").wait_for(timeout=60_000)
    page.locator(".chip").first.wait_for()
    page.keyboard.press("Control+Home")
    page.keyboard.type("Ida Moor wrote. ")
    page.locator(".status[data-kind=live]").get_by_text("100,016 characters").wait_for(timeout=60_000)
    assert page.evaluate("window.shifted") < 0.01
    drawn = coloured(page)
    assert 0 < sum(drawn.values()) < 1_000  # only what is near the window
    page.locator(".text-pane .editor").evaluate("e => { e.scrollTop = e.scrollHeight / 2; }")
    page.wait_for_timeout(300)
    assert sum(coloured(page).values()) > 0


def test_a_narrow_window_has_tabs(open_page: Callable[..., Any]) -> None:
    page = open_page(size="390")
    paste(page, LETTER)
    page.locator(".status").get_by_text(" mentions").wait_for()
    assert not result(page).is_visible()
    page.get_by_role("radio", name="Policy").check()
    page.get_by_role("combobox", name="Policy", exact=True).wait_for()
    page.get_by_role("button", name="Anonymise").click()
    result(page).wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") == SIZES["390"]["width"]
    page.get_by_role("button", name="Pages").click()
    page.get_by_role("menuitemradio", name="Jobs").wait_for()


def test_places_count_code_points(page: Any) -> None:
    source(page).wait_for()
    found = page.evaluate(
        """async () => {
          const { Points, applied } = await import("/static/js/protect/points.js");
          const text = "a👩‍🚀b😀c";
          const points = new Points(text);
          const there = [...Array(text.length + 1).keys()].map((i) => points.toPoints(i));
          const back = [...Array([...text].length + 1).keys()].map((i) => points.toUnits(i));
          const edits = [{ start: 4, end: 5, replacement: "[X]", label: "PERSON", entity: 1 }];
          return { there, back, made: applied(text, edits).text };
        }"""
    )
    text = "a👩\u200d🚀b😀c"
    units = [len(text[:i].encode("utf-16-le")) // 2 for i in range(len(text) + 1)]
    assert found["back"] == units
    assert [found["there"][u] for u in units] == list(range(len(text) + 1))
    assert found["made"] == "a👩\u200d🚀[X]😀c"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", sorted(SIZES))
def test_pictures(open_page: Callable[..., Any], shoot: Callable[[Any, str], None], size: str, scheme: str) -> None:
    page = open_page(size=size, scheme=scheme)
    source(page).wait_for()
    shoot(page, f"protect-empty-{size}-{scheme}")
    page.get_by_role("button", name="Try a letter").first.click()
    shows(page, "[PERSON_2]")
    page.locator(".chip").first.wait_for()
    shoot(page, f"protect-text-{size}-{scheme}")
    page.keyboard.press("F8")
    card(page).wait_for()
    shoot(page, f"protect-card-{size}-{scheme}")
    page.keyboard.press("Escape")
    if size == "390":
        page.get_by_role("radio", name="Policy").check()
        shoot(page, f"protect-policy-{size}-{scheme}")
    page.keyboard.press("Control+Enter")
    page.get_by_text("its plan is kept").wait_for()
    page.keyboard.press("Control+Shift+Enter")
    page.get_by_role("region", name="Restored text").wait_for()
    shoot(page, f"protect-restored-{size}-{scheme}")
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (background == "rgb(15, 20, 18)") == (scheme == "dark")
