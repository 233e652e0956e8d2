"""The work of the kinds of jobs: anonymise, restore, evaluate. Each can be killed at any moment and run again.

The work itself is done by the library; this module decides where files lie and how they are named.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path

from allonym import __version__
from allonym.errors import DataError
from allonym.files import anonymize_path, format_of
from allonym.files.items import append_written_suffix
from allonym.files.journal import journal_path
from allonym.files.state import State
from allonym.plan import Plan
from allonym.server.jobs import names
from allonym.server.jobs.hardening import harden, read_compared_texts
from allonym.server.jobs.swapping import swap
from allonym.server.jobs.task import Outcome, Task, write_private, write_private_lines
from allonym.server.policies import load_policy

_COUNTS = tuple("documents characters files quarantined labels operators offline unread refused seconds".split())


def anonymize(task: Task) -> Outcome:
    """Anonymise files of any format; one that is refused does not affect the others."""
    options, out = task.options, task.folder.out
    source = task.get_input_file_or_folder("files")
    assert source is not None
    several = source.is_dir()
    target = out / "files" if several else _get_written_path(out / source.name)
    report_path, plans, quarantine = out / "report.json", out / "plans.jsonl", out / "quarantine.jsonl"
    state = State(task.folder.state)
    if state.load_value("version") != __version__:  # nothing continues what another version wrote
        shutil.rmtree(out, ignore_errors=True)
        state.store_value("version", __version__)
    if not report_path.exists() or journal_path(target).exists():
        anonymize_path(
            source,
            target,
            load_policy(task.spec.policy),
            key=task.key,
            vault=None if options["scope"] is None else task.vault,
            scope=options["scope"] or "",
            fields=options["fields"] or None,
            resume=True,
            overwrite=True,  # where no run can be resumed: these files were never given out
            plans=plans if options["plans"] or options["originals"] else None,
            originals=options["originals"],
            report=report_path,
            quarantine=quarantine,
            progress=partial(task.store_progress, "anonymising"),
        )
    report = json.loads(report_path.read_bytes())
    shown = task.map_stored_to_shown_names()
    refused = [
        {"name": shown.get(row["file"], row["file"]), "reason": task.hide_paths_in_message(row["reason"])}
        for row in report["refused"]
    ]
    if several and not report["files"]:
        raise DataError(f"no file could be treated: {refused[0]['name']}: {refused[0]['reason']}")
    results = list(
        _describe_results(task, (_get_written_path(target / name) for name in shown) if several else (target,), "safe")
    )
    for path in (plans, quarantine):
        if path.exists():
            write_private_lines(out / "named" / path.name, _replace_names_in_json_lines(path, shown))
            results.append(task.describe_result(path.name, out / "named" / path.name))
    report["refused"] = refused
    write_private(out / "named" / "report.json", json.dumps(report, ensure_ascii=False, indent=2) + "\n")
    results.append(task.describe_result("report.json", out / "named" / "report.json"))
    return {name: report[name] for name in _COUNTS}, results


def restore(task: Task) -> Outcome:
    """Restore files, with the vault's scope or a plan."""
    from allonym.files.restoring import restore_files

    options, folder = task.options, task.folder
    files = [(folder.get_input_folder("files") / f.stored, folder.out / f.stored) for f in task.list_uploads("files")]
    report = restore_files(
        files,
        plans=() if options["plan"] is None else [Plan.from_dict(options["plan"])],
        vault=None if options["scope"] is None else task.vault,
        key=task.key if options["plan"] is None else None,
        scope=options["scope"] or "",
        actor=task.spec.actor,
        advance=partial(task.store_progress, "restoring"),
    )
    results = list(_describe_results(task, (target for _, target in files), "restored"))
    return {**report.to_dict(), "notes": list(report.notes)}, results


def evaluate(task: Task) -> Outcome:
    """Compute every measure that the inputs allow, as report.html and report.json."""
    from allonym import report
    from allonym.evaluate import study
    from allonym.evaluate.study import MEASURES
    from allonym.train.records import read_records

    options, out = task.options, task.folder.out
    gold = task.get_input_file_or_folder("gold")
    pairs, background = read_compared_texts(task)
    results = study.evaluate(
        pairs,
        gold=None if gold is None else read_records(gold),
        labels=options["labels"],
        subjects=options["subject"],
        groups=options["group"],
        documents=options["document"],
        background=background,
        measures=options["measures"],
        review_above=options["review_above"],
        texts=options["texts"],
        seed=options["seed"],
        advance=task.make_stage_progress_callback({name: measure.title for name, measure in MEASURES.items()}),
        state=task.folder.state,
    )
    numbers = task.replace_stored_file_names(results.to_dict())
    for name, option in (("gold", "gold"), ("labels", "labels"), ("subjects", "subject")):
        for row in numbers["skipped"]:
            row["reason"] = row["reason"].replace(f"(--{option})", f"({name})")
    content = json.dumps({"allonym": __version__, **numbers}, ensure_ascii=False, indent=1, allow_nan=False)
    write_private(out / "report.json", content + "\n")
    write_private(out / "report.html", report.render(report.evaluation_page(numbers, texts=options["texts"]), "html"))
    files = [task.describe_result(name, out / name) for name in ("report.html", "report.json")]
    return {name: numbers[name] for name in ("texts", "headlines", "skipped")}, files


def lead_project(task: Task) -> Outcome:
    """Add files to a project, or write a release of it, which stays in the project's folder."""
    from allonym.project import Project, write_release
    from allonym.server.fileprojects import FOLDER

    assert task.vault is not None
    folder = task.folder.path.parent.parent / FOLDER / task.options["project"]
    if not folder.is_dir():
        raise DataError("the project was removed")
    project = Project(folder, task.vault)
    if task.options["action"] == "release":
        task.store_progress("writing the release", 0, 1)
        flags = {name: task.options.get(name, False) for name in ("unreviewed", "incomplete", "cards")}
        if not project.files:
            raise DataError("the project has no files; add some before a release")
        release = write_release(project, **flags)
        counts = {name: getattr(release, name) for name in ("files", "reviewed", "documents", "sha256", "public_key")}
        return {"release": len(project.releases), **counts}, []
    sources, names = task.folder.get_input_folder("files"), task.map_stored_to_shown_names()
    added = project.add(
        [sources / stored for stored in names], names=names, advance=partial(task.store_progress, "anonymising")
    )
    stored_names = {shown: stored for stored, shown in names.items()}
    refused = [
        {"name": stored_names.get(name, name), "reason": reason.replace(name, "the file")}
        for name, reason in added.refused
    ]
    documents = sum(file.documents for file in added.files)
    return {"files": len(added.files), "documents": documents, "known": len(added.duplicates), "refused": refused}, []


def _get_written_path(target: Path) -> Path:
    """Return where the result of a file of this stored name is written: with another suffix for some formats."""
    return append_written_suffix(target, format_of(target.name)[0])


def _describe_results(task: Task, paths: Iterable[Path], addition: str) -> Iterator[dict[str, str]]:
    """Yield the results that are the existing paths, under the user's own names with an addition such as ``safe``."""
    shown, used = task.map_stored_to_shown_names(), set[str]()
    for path in paths:
        if path.exists():
            is_other = path.name not in shown  # a mail of Outlook becomes one with another suffix
            name = names.append_to_stem(shown[path.stem if is_other else path.name], addition)
            name += path.suffix if is_other else ""
            yield task.describe_result(names.reserve_unique_name(name, used), path)


def _replace_names_in_json_lines(source: Path, shown_names: Mapping[str, str]) -> Iterator[str]:
    """Yield JSON lines with the shown names in ``file`` and ``id``."""
    with source.open(encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            row |= {key: shown_names.get(row[key], row[key]) for key in ("file", "id") if key in row}
            yield json.dumps(row, ensure_ascii=False)


WORK: Mapping[str, Callable[[Task], Outcome]] = {
    "anonymize": anonymize,
    "restore": restore,
    "swap": swap,
    "evaluate": evaluate,
    "harden": harden,
    "project": lead_project,
}
"""The work of each kind, which returns a summary without any text, and the results."""
