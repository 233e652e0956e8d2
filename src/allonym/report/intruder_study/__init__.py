"""Pages of an intruder study: one HTML file per judge or writer, which sends nothing and saves its answers as a file.

A judge's page holds anonymised texts under tokens, never whom they are about; a writer's page holds the people to be
described. Styles and script are inside; a content security policy allows these and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from allonym.report.html_page import load_template_environment, make_style_and_script_values, read_resource

if TYPE_CHECKING:
    from jinja2 import Environment

CONSENT = (
    "Taking part is voluntary, and you may stop at any time by closing this page. Only what you write here is used, to "
    "measure how well texts were anonymised. Please do not write anything about yourself."
)
"""What people agree to, unless the study says something else."""
FORM = "allonym intruder study"
TITLES = {"judge": "Who is it?", "collect": "Describe these people"}
_NOUNS = {"judge": "Text", "collect": "Person"}
INSTRUCTIONS: Mapping[str, tuple[str, ...]] = {
    "judge": (
        "In the following texts names and other details were replaced. Please play an adversary: your task is to find "
        "out who the person is that each text is about.",
        "After reading a text, say whether you could identify the person, who you think it is or what you could find "
        "out, and which part of the text revealed it. Use whatever you know, and take the time that you need.",
    ),
    "collect": (
        "Please write a description of each of the following people, in the style of the first paragraph of an "
        "encyclopedia entry: who the person is, what they do, where they come from, what they are known for, how they "
        "live.",
        "Each description needs at least {least} characters. Use your own words and do not copy from anywhere.",
    ),
}
"""What people are told, by task; ``{least}`` stands for the characters that a description needs."""


def study_page(
    task: str,
    study: str,
    page: int,
    items: Sequence[Mapping[str, Any]],
    *,
    least: int = 500,
    consent: str = "",
    fictitious: str = "fictitious",
) -> str:
    """One page as HTML. The same arguments give the same bytes.

    Args:
        task: ``judge`` or ``collect``.
        study: its name, which answers carry.
        page: number of the page, from 1.
        items: of a judge's page ``token`` and ``text``; of a writer's ``token``, ``subject``, ``group``, ``link`` and
            ``facts``. What else an item holds is not shown.
        least: characters that a description needs.
        consent: what people agree to; empty: :data:`CONSENT`.
        fictitious: the group of people who do not exist.

    Raises:
        MissingExtra: Jinja2 is not installed.
    """
    shown = ("token", "text") if task == "judge" else ("token", "subject", "group", "link", "facts")
    template = _load_environment().get_template("study.html")
    style = read_resource("templates/style.css") + read_resource("intruder_study/templates/study.css")
    return template.render(
        form=FORM,
        task=task,
        study=study,
        page=page,
        title=TITLES[task],
        noun=_NOUNS[task],
        instructions=[p.format(least=least) for p in INSTRUCTIONS[task]],
        consent=consent.strip() or CONSENT,
        items=[{name: item[name] for name in shown} for item in items],
        least=least,
        fictitious=fictitious,
        footer="This file holds everything it shows and asks no other computer for anything.",
        **make_style_and_script_values(style, read_resource("intruder_study/templates/study.js")),
    )


@cache
def _load_environment() -> Environment:
    return load_template_environment("allonym.report.intruder_study", "pages of an intruder study", "evaluate")
