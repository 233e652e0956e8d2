"""Jobs of the kind ``harden``: the frontier of risk against content, and its levels, each written on request.

The first run measures every round and writes the level that hardening suggests. Its rounds stay in the job's folder,
so that another level is written without computing them again.
"""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from allonym.document import Document
from allonym.files.state import State
from allonym.server.jobs.names import append_to_stem
from allonym.server.jobs.swapping import describe_document, get_release_documents_path
from allonym.server.jobs.task import Outcome, Task, write_private, write_private_lines

if TYPE_CHECKING:
    from allonym.evaluate.hardening import Hardening
    from allonym.evaluate.pairs import Pairs

LEVELS = "levels"
"""Name in the state: the levels as they are shown, once all were measured and the suggested one was written."""


def harden(task: Task) -> Outcome:
    """Measure the frontier, write the level that hardening suggests, then those that were requested since."""
    pairs, background = read_compared_texts(task)
    state = State(task.folder.state)

    def write_level(level: int | None) -> Hardening:
        result = _harden_texts(task, pairs, background, level)
        _write_level_documents(task, pairs, result)
        state.store_value(name_level_panel(result.texts[0].level), result.panel.to_dict())
        return result

    stored = state.load_value(LEVELS)
    if stored is None:
        result = write_level(None)
        numbers = result.to_dict()
        suggested = result.texts[0].level
        _write_level_files(task, pairs, result)
        shown = {"levels": numbers["levels"], "suggested": suggested, "chance": numbers["panel"]["worst"]["chance"]}
        stored = state.store_value(LEVELS, shown)
    chosen = task.list_chosen_releases(stored["suggested"])
    for level in dict.fromkeys([*chosen, *task.releases.get("make", ())]):
        is_made = get_release_documents_path(task.folder.made, level).exists()
        is_written = level not in chosen or _get_report_path(task, level).exists()
        if not (is_made and is_written):
            result = write_level(level)
            if not is_written:
                _write_level_files(task, pairs, result)
    summary = {"texts": len(pairs), "chosen": chosen[-1], "panel": state.load_value(name_level_panel(chosen[-1]))}
    return summary, [result for level in chosen for result in _describe_level_files(task, level)]


def read_compared_texts(task: Task) -> tuple[Pairs, list[tuple[str, str]]]:
    """Read the texts before and after anonymisation, and the further texts that intruders search, with their subjects.

    Raises:
        UsageError, DataError: as :func:`allonym.evaluate.pairs.read_pairs`.
    """
    from allonym.evaluate.pairs import read_pairs

    options = task.options
    original, outside = (task.get_input_file_or_folder(role) for role in ("files", "background"))
    assert original is not None
    pairs = read_pairs(
        original,
        task.get_input_file_or_folder("anonymised"),
        field=options["fields"],
        anonymised_field=options["anonymised_fields"],
        metadata=task.get_metadata_table(),
    )
    background: list[tuple[str, str]] = []
    if outside is not None:
        texts = read_pairs(outside, outside, field=options["fields"])
        subjects = texts.labels(options["subject"]) if options["subject"] else []
        background = [(text, subject) for text, subject in zip(texts.original, subjects, strict=True) if subject]
    return pairs, background


def name_level_panel(level: int) -> str:
    """Return the name, in the state, of what the panel reaches on the texts of a level."""
    return f"panel-{level}"


def _harden_texts(task: Task, pairs: Pairs, background: list[tuple[str, str]], level: int | None) -> Hardening:
    from allonym.evaluate.hardening import harden as harden_texts

    options = task.options
    return harden_texts(
        pairs.original,
        pairs.anonymised,
        pairs.labels(options["subject"]),
        rank=options["rank"],
        most_removed=options["most_removed"],
        frontier=True,
        level=level,
        background=background,
        seed=options["seed"],
        state=task.folder.state,
        advance=partial(task.store_progress, "hardening"),
    )


def _write_level_documents(task: Task, pairs: Pairs, result: Hardening) -> None:
    """Write the texts before and after hardening, a line for each."""
    rows = zip(pairs.ids, pairs.anonymised, result.texts, strict=True)
    documents = ((Document(task.replace_stored_file_names(id), text), after) for id, text, after in rows)
    path = get_release_documents_path(task.folder.made, result.texts[0].level)
    write_private_lines(path, (json.dumps(describe_document(doc, after.text, after.plan)) for doc, after in documents))


def _write_level_files(task: Task, pairs: Pairs, result: Hardening) -> None:
    """Write the anonymised files again with the hardened texts, and the report, which is written last."""
    from allonym import report
    from allonym.evaluate.pairs import rewrite_texts
    from allonym.report.evaluate.risk import hardening_section

    level = result.texts[0].level
    source, target = _find_anonymised_source(task), _get_level_folder(task, level)
    rewrite_texts(
        source,
        target if source.is_dir() else target / source.name,
        pairs.anonymised,
        [text.plan for text in result.texts],
        field=task.options["anonymised_fields"] or task.options["fields"],
        overwrite=True,
    )
    section = hardening_section(result.to_dict())
    page = report.Page("Hardening", () if section is None else (section,))
    write_private(_get_report_path(task, level), report.render(page, "html"))


def _find_anonymised_source(task: Task) -> Path:
    """Return the file or folder whose texts are hardened: the originals' where these hold both versions."""
    source = task.get_input_file_or_folder("anonymised") or task.get_input_file_or_folder("files")
    assert source is not None
    return source


def _get_level_folder(task: Task, level: int) -> Path:
    return task.folder.out / f"level-{level}"


def _get_report_path(task: Task, level: int) -> Path:
    return task.folder.out / f"report-{level}.html"


def _describe_level_files(task: Task, level: int) -> list[dict[str, str]]:
    """Return the results of a level: the files under the user's names, with the level's number, and the report."""
    role = "anonymised" if task.list_uploads("anonymised") else "files"
    folder = _get_level_folder(task, level)
    shown: list[tuple[str, Path]] = [
        (append_to_stem(name, f"level-{level}"), folder / stored)
        for stored, name in task.map_stored_to_shown_names(role).items()
    ]
    shown.append((f"report-{level}.html", _get_report_path(task, level)))
    return [task.describe_result(name, path) for name, path in shown if path.exists()]
