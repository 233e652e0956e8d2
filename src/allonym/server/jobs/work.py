"""What the kinds of jobs do: anonymise, restore, evaluate. Each can be killed at any moment and run again.

All of it is calls of the library; here is only where files lie and what they are called.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from allonym import __version__
from allonym.errors import DataError
from allonym.files import anonymize_path
from allonym.files.journal import journal_path
from allonym.files.output import Lines
from allonym.files.state import State
from allonym.server.jobs import names
from allonym.server.jobs.swapping import swap
from allonym.server.jobs.task import Ending, Made, Task, result, write_text
from allonym.server.policies import policy_of


def anonymize(task: Task) -> Ending:
    """Files of any format; of several, one that is refused does not hinder the others."""
    options, out = task.options, task.folder.out
    source = task.source("files")
    assert source is not None
    several = source.is_dir()
    target = out / (source.name if not several else "files")
    report, plans, quarantine = out / "report.json", out / "plans.jsonl", out / "quarantine.jsonl"
    state = State(task.folder.state)
    if state.find("version") != __version__:  # nothing goes on from what another version wrote
        shutil.rmtree(out, ignore_errors=True)
        state.keep("version", __version__)
    if not report.exists() or journal_path(target).exists():
        anonymize_path(
            source,
            target,
            policy_of(task.spec.policy),
            key=task.key,
            vault=None if options["scope"] is None else task.vault,
            scope=options["scope"] or "",
            fields=options["fields"] or None,
            resume=True,
            overwrite=True,  # with no run to go on with: what lies there was never given out
            plans=plans if options["plans"] or options["originals"] else None,
            originals=options["originals"],
            report=report,
            quarantine=quarantine,
            progress=task.advance("anonymising"),
        )
    told = json.loads(report.read_bytes())
    shown = task.shown()
    refused = [{"name": shown.get(r["file"], r["file"]), "reason": task.said(r["reason"])} for r in told["refused"]]
    if several and not told["files"]:
        raise DataError(f"no file could be treated: {refused[0]['name']}: {refused[0]['reason']}")
    results = list(_with_names(task, (target / n for n in shown) if several else (target,), "safe"))
    for path in (plans, quarantine):
        if path.exists():
            results.append(result(task, path.name, _named(path, task.folder.out / "named" / path.name, shown)))
    told["refused"] = refused
    write_text(out / "named" / "report.json", json.dumps(told, ensure_ascii=False, indent=2) + "\n")
    results.append(result(task, "report.json", out / "named" / "report.json"))
    counts = ("documents", "characters", "files", "quarantined", "labels", "operators", "offline", "refused", "seconds")
    return {name: told[name] for name in counts}, results


def restore(task: Task) -> Ending:
    """Plain texts, with the vault's scope or a plan."""
    from allonym.files.restoring import restore_files

    options = task.options
    sent = [one.stored for one in task.sent("files")]
    files = [(task.folder.inputs("files") / name, task.folder.out / name) for name in sent]
    done = restore_files(
        files,
        plan=options["plan"],
        vault=None if options["scope"] is None else task.vault,
        key=task.key if options["plan"] is None else None,
        scope=options["scope"] or "",
        actor=task.spec.actor,
        advance=task.advance("restoring"),
    )
    results = list(_with_names(task, (target for _, target in files), "restored"))
    return {**done.to_dict(), "notes": list(done.notes)}, results


def evaluate(task: Task) -> Ending:
    """Every measure that the inputs allow, as report.html and report.json."""
    from allonym import report
    from allonym.evaluate.measures import MEASURES
    from allonym.evaluate.reading import read_pairs
    from allonym.evaluate.study import evaluate as measured
    from allonym.train.records import read_records

    options, out = task.options, task.folder.out
    original, gold, outside = (task.source(role) for role in ("files", "gold", "background"))
    assert original is not None
    pairs = read_pairs(
        original,
        task.source("anonymised"),
        field=options["fields"],
        anonymised_field=options["anonymised_fields"],
        metadata=task.table(),
    )
    known: list[tuple[str, str]] = []
    if outside is not None:
        texts = read_pairs(outside, outside, field=options["fields"])
        subjects = texts.labels(options["subject"]) if options["subject"] else []
        known = [(text, of) for text, of in zip(texts.original, subjects, strict=True) if of]
    done = measured(
        pairs,
        gold=None if gold is None else read_records(gold),
        labels=options["labels"],
        subjects=options["subject"],
        groups=options["group"],
        background=known,
        measures=options["measures"],
        review_above=options["review_above"],
        texts=options["texts"],
        seed=options["seed"],
        advance=task.stages({name: one.title for name, one in MEASURES.items()}),
        state=task.folder.state,
    )
    told = task.renamed(done.to_dict())
    for name, shown in (("gold", "gold"), ("labels", "labels"), ("subjects", "subject")):
        for row in told["skipped"]:
            row["reason"] = row["reason"].replace(f"(--{shown})", f"({name})")
    page = report.render(report.evaluation_page(told, texts=options["texts"]), "html")
    whole = {"allonym": __version__, **told}
    write_text(out / "report.json", json.dumps(whole, ensure_ascii=False, indent=1, allow_nan=False) + "\n")
    write_text(out / "report.html", page)
    results = [result(task, name, out / name) for name in ("report.html", "report.json")]
    return {name: told[name] for name in ("texts", "headlines", "skipped")}, results


def _with_names(task: Task, paths: Iterable[Path], mark: str) -> Iterator[Made]:
    """The results that are files of the user's, under their own names with a mark."""
    shown, taken = task.shown(), set[str]()
    for path in paths:
        if path.exists():
            name = names.apart(names.with_mark(shown[path.name], mark), taken)
            taken.add(names.folded(name))
            yield result(task, name, path)


def _named(source: Path, target: Path, shown: Mapping[str, str]) -> Path:
    """JSON lines with the names that are shown in ``file`` and ``id``."""
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    out = Lines(target)
    try:
        with source.open(encoding="utf-8") as lines:
            for line in lines:
                row = json.loads(line)
                for key in ("file", "id"):
                    if key in row:
                        row[key] = shown.get(row[key], row[key])
                out.write(json.dumps(row, ensure_ascii=False))
        out.finish()
    finally:
        out.close(remove=True)
    os.chmod(target, 0o600)
    return target


WORK: Mapping[str, Callable[[Task], Ending]] = {
    "anonymize": anonymize,
    "restore": restore,
    "swap": swap,
    "evaluate": evaluate,
}
"""Kinds of jobs. What each gives: a summary without any text, and the results."""
