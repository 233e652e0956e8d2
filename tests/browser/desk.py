"""What tests of the page where a text is protected do with it."""

from __future__ import annotations

from typing import Any

LETTER = (
    "Dear Marisol Quint,\n\nmy name is Tobias Fenwick and I live at 27 Pemberton Lane, Leeds LS1 4DY. Please write to "
    "tobias.fenwick@example.com or call +44 20 7946 0958.\n\nKind regards\nTobias Fenwick\n"
)


def expect(locator: Any) -> Any:
    """Assertions that wait, since the page draws again while it is read."""
    from playwright.sync_api import expect as wait_for

    wait_for.set_options(timeout=30_000)
    return wait_for(locator)


def source(page: Any) -> Any:
    return page.get_by_role("textbox", name="Text to protect")


def result(page: Any) -> Any:
    return page.get_by_role("textbox", name="Result")


def card(page: Any) -> Any:
    return page.get_by_role("dialog", name="Mention")


def paste(page: Any, text: str) -> None:
    """Pastes as a person does: the editor gets one insertion."""
    source(page).click()
    page.keyboard.insert_text(text)


def shows(page: Any, text: str) -> None:
    """Waits until the result, or its preview, holds a text."""
    page.wait_for_function(
        "text => document.querySelector('.result-pane .editor').textContent.includes(text)", arg=text
    )


def lacks(page: Any, text: str) -> None:
    page.wait_for_function(
        "text => !document.querySelector('.result-pane .editor').textContent.includes(text)", arg=text
    )


def mark(page: Any, words: str, nth: int = 0) -> None:
    """Presses on a mention in the text."""
    place = page.evaluate(
        """([words, nth]) => {
          const node = document.querySelector(".text-pane .editor").firstChild;
          let at = -1;
          for (let i = 0; i <= nth; i += 1) at = node.data.indexOf(words, at + 1);
          const range = document.createRange();
          range.setStart(node, at + 1);
          range.setEnd(node, at + 2);
          const box = range.getBoundingClientRect();
          return [box.left + box.width / 2, box.top + box.height / 2];
        }""",
        [words, nth],
    )
    page.mouse.click(*place)
    card(page).wait_for()


def select(page: Any, words: str) -> None:
    """Selects words in the text, as the keyboard does."""
    source(page).focus()
    page.evaluate(
        """words => {
          const node = document.querySelector(".text-pane .editor").firstChild;
          const at = node.data.indexOf(words);
          getSelection().setBaseAndExtent(node, at, node, at + words.length);
        }""",
        words,
    )
