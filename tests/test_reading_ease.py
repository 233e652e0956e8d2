"""What new users read is easy: Flesch's reading ease at least 50, no sentence of more than 35 words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from allonym.cli import app
from allonym.evaluate.surface_measures import surface

ROOT = Path(__file__).resolve().parent.parent
LEAST_EASE = 50.0
MOST_WORDS = 35
PAGES = [ROOT / "README.md", ROOT / "docs" / "tutorial.md", *sorted((ROOT / "docs" / "how-to").glob("*.md"))]
_FENCE = re.compile(r"^( *)(`{3,}|~{3,}).*?^\1\2[ `~]*$", re.DOTALL | re.MULTILINE)
_MARKUP = re.compile(r"!?\[([^]]*)\]\([^)]*\)|[*_]{1,3}(?=\S)|(?<=\S)[*_]{1,3}|<[^>]+>")
_END = re.compile(r"(?<=[.!?:;])[\"')*]*\s+(?=[\"'(*]*[A-Z0-9`])|\n{2,}")
_CODE = re.compile(r"(``?)([^`]+?)\1")


def _list_blocks(markdown: str) -> Iterator[str]:
    """Yield paragraphs, items and cells as lines of plain text."""
    text = _FENCE.sub("\n", markdown)
    block = ""
    for line in [*text.split("\n"), ""]:
        bare = line.strip()
        if bare.startswith("|"):
            yield from (cell for cell in bare.strip("|").split("|") if re.search("[a-z]", cell))
            continue
        begins = re.match(r"(?:[-*+]|\d+\.|#+|>)\s+", bare)
        if (not bare or begins) and block:
            yield block
            block = ""
        block = f"{block} {bare[begins.end() :] if begins else bare}".strip()


def _list_sentences(markdown: str) -> list[str]:
    blocks = (_MARKUP.sub(lambda found: found[1] or "", _CODE.sub("`code`", block)) for block in _list_blocks(markdown))
    sentences = (sentence.strip() for block in blocks for sentence in _END.split(block))
    return [sentence for sentence in sentences if len(sentence.split()) > 2]


def _measure(name: str, sentences: list[str]) -> list[str]:
    """Return what is wrong with some sentences."""
    whole = "\n".join(sentence if sentence[-1] in ".!?" else f"{sentence}." for sentence in sentences)
    ease = surface([whole], [whole]).ease.before.value
    wrong = [f"{name}: reading ease {ease:.0f}"] if ease < LEAST_EASE else []
    return wrong + [f"{name}: {len(s.split())} words: {s}" for s in sentences if len(s.split()) > MOST_WORDS]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_is_easy_to_read(page):
    sentences = _list_sentences(page.read_text(encoding="utf-8"))
    assert len(sentences) > 5
    assert not (wrong := _measure(str(page.relative_to(ROOT)), sentences)), "\n".join(wrong)


def _list_commands(group: click.Group, name: str) -> Iterator[tuple[str, click.Command]]:
    with click.Context(group) as context:
        for part in group.list_commands(context):
            command = group.get_command(context, part)
            assert command is not None
            yield f"{name} {part}", command
            if isinstance(command, click.Group):
                yield from _list_commands(command, f"{name} {part}")


def test_help_is_easy_to_read():
    """That of all commands together, since many helps have two sentences; each sentence is short."""
    assert isinstance(app, click.Group)
    helps = {name: (command.help or "").split("\b")[0] for name, command in _list_commands(app, "allonym")}
    sentences = {name: _list_sentences(text) for name, text in helps.items()}
    wrong = _measure("help", [sentence for listed in sentences.values() for sentence in listed])
    assert len(sentences) > 60 and not wrong, "\n".join(wrong)


def test_long_and_hard_sentences_are_seen():
    long = f"One {'two three four ' * 12}end."
    hard = "Organisational responsibilities necessitate comprehensive interdisciplinary considerations."
    assert _list_sentences(f"# Title\n\nA [short](x.md) one here. {long}\n\n- `code`\n  and more of it") == [
        "A short one here.", long, "`code` and more of it",
    ]  # fmt: skip
    assert len(_measure("page", [long])) == 1 and "reading ease" in _measure("page", [hard])[0]
