"""Jobs of the kind ``swap``: a search that goes on where it stopped, releases for a plot, each written when asked for.

After the search the corpus and the releases stay in the job's folder, so that another release can be made of them.
"""

from __future__ import annotations

import json
import pickle
import shutil
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from allonym import __version__
from allonym.files.output import Lines, PartFile
from allonym.files.state import State
from allonym.server.jobs.task import Ending, Made, Task, result
from allonym.server.policies import policy_of

if TYPE_CHECKING:
    from allonym.plan import Plan
    from allonym.swap import Made as Release
    from allonym.swap import Releases, Run
    from allonym.swap.settings import Settings

T = TypeVar("T")
WHOLE, SHOWN = "whole", "releases"
"""Names in the state: that the search and its outputs are there; the releases as they are shown."""

_EPOCH = (1980, 1, 1, 0, 0, 0)


def swap(task: Task) -> Ending:
    """Search, write the release that the rule chooses, then those that were asked for since."""
    from allonym.swap.run import STAGES

    run, state = _run(task), State(task.folder.state)
    for place in (task.folder.out, task.folder.made):
        place.mkdir(mode=0o700, exist_ok=True)
    told = task.stages({**STAGES, "release": "writing"})
    corpus = None
    if not _path(task, "releases").exists():
        corpus = _kept(_path(task, "corpus"), lambda: run.load(advance=told))
    label = task.options["label"]
    found: Releases = _kept(
        _path(task, "releases"), lambda: run.search(task.folder.state, told, label=label, corpus=corpus)
    )
    whole = state.find(WHOLE)
    if whole is None:
        whole = _outputs(task, run, found, state, told)
    chosen = list(dict.fromkeys([whole["chosen"], *task.wanted.get("choose", ())]))
    steps = list(dict.fromkeys([*chosen, *task.wanted.get("make", ())]))
    for done, number in enumerate(steps):
        told("release", done, len(steps))
        _release(task, run, found, number, write=number in chosen)
    results = [_released(task, number) for number in chosen]
    results += [result(task, n, task.folder.out / n) for n in ("report.html", "numbers.json")]
    return {**whole, "chosen": chosen[-1]}, results


def settings_of(options: Mapping[str, Any]) -> Settings:
    """The settings of a search that a job's options describe.

    Raises:
        UsageError, UnknownNameError: a value is not known.
    """
    from allonym.swap.categories import checked
    from allonym.swap.settings import Settings, presets

    if options["settings"] not in presets():
        from allonym.errors import UnknownNameError

        raise UnknownNameError("preset of swapping", options["settings"], presets(), "options.settings")
    given = {
        "read.section": options["section"],
        "read.min_size": options["min_size"],
        "read.max_size": options["max_size"],
        "search.size": options["swap_size"],
        "search.full": None if options["swap_size"] is None else False,
        "search.points": options["points"],
        "search.population": tuple(options["population"]) or None,
        "search.draws": options["draws"],
        "mixture.clusters": options["clusters"],
        "mixture.family": options["family"],
        "mixture.restarts": options["restarts"],
        "embed.name": options["embedder"],
        "check.runs": options["runs"],
        "check.intruders": () if not options["check"] else tuple(options["intruders"] or ()) or None,
    }
    changes: dict[str, object] = {name: value for name, value in given.items() if value is not None}
    states = options["categories"]
    changes |= {f"categories.{name}": state for name, state in (checked(states) if states else {}).items()}
    changes |= {f"fallback.{name}": way for name, way in options["fallback"].items()}
    return Settings.load(options["settings"]).with_(changes)


def rule_of(options: Mapping[str, Any]) -> dict[str, float]:
    """By what a release is chosen."""
    names = ("risk_cap", "utility_floor", "slope", "offset")
    return {name: options[name] for name in names if options[name] is not None}


def _run(task: Task) -> Run:
    from allonym.swap import Run

    options, source = task.options, task.source("files")
    assert source is not None
    reading = {"fields": options["fields"] or None, "metadata": task.table(), "rest": options["rest"]}
    return Run(
        source=source,
        protect=options["protect"],
        settings=settings_of(options),
        policy=policy_of(task.spec.policy),
        reading=reading,
        rule=rule_of(options),
        key=task.key,
        seed=options["seed"],
    )


def _path(task: Task, name: str) -> Path:
    """Of something kept whole. It is ours alone: nobody else may write into the folder."""
    return task.folder.state / f"{name}-{__version__}.pickle"


def _kept(path: Path, make: Callable[[], T]) -> T:
    """What lies at a path, else what is made, which is put there whole."""
    if path.exists():
        with path.open("rb") as stream:
            return pickle.load(stream)  # type: ignore[no-any-return]
    value = make()
    part = PartFile(path)
    try:
        part.write(pickle.dumps(value))
        part.finish()
    finally:
        part.close(remove=True)
    return value


def _outputs(task: Task, run: Run, found: Releases, state: State, told: Any) -> dict[str, Any]:
    """Check and write what the rule chooses; the report and all numbers."""
    from allonym import report

    background = task.source("background")
    done = run.whole(
        found,
        background=background,
        label=task.options["label"],
        texts=task.options["texts"],
        state=task.folder.state,
        advance=told,
    )
    state.keep(SHOWN, shown(found, done.told["why"]))
    numbers = task.renamed(done.told)
    beside = {
        task.folder.out / "numbers.json": json.dumps(numbers, ensure_ascii=False, indent=1, allow_nan=False) + "\n",
        task.folder.out / "report.html": report.render(report.swap_page(numbers), "html"),
    }
    run.write(found, done.made, None, beside=beside)
    _texts(task, found, done.made)
    attacks = [{n: one[n] for n in ("intruder", "before", "after", "chance")} for one in done.told["attacks"]]
    kept: dict[str, Any] = state.keep(
        WHOLE,
        {
            "chosen": done.made.release.index,
            "documents": len(found.corpus.documents),
            "chunks": len(found.corpus.chunks),
            "releases": len(found.releases),
            "warnings": list(found.warnings),
            "attacks": attacks,
        },
    )
    return kept


def shown(found: Releases, why: str) -> dict[str, Any]:
    """The releases as the plot and the list show them; what is chosen is not among it."""
    from allonym.swap.plain import plain

    front = {r.index for r in found.frontier}
    rows = [
        {
            "id": r.index,
            "categories": list(r.categories),
            "swaps": r.swaps,
            "changed": _number(r.changed),
            "share": _number(r.share),
            "risk": _number(found.risk(r)),
            "utility": _number(r.utility),
            "uniques": _number(r.uniques),
            "cosine": _number(r.cosine),
            "distance_per_chunk": _number(r.distance_per_chunk),
            "moves": found.places[r.index].moves,
            "flags": list(r.flags),
            "on_frontier": r.index in front,
        }
        for r in found.releases
    ]
    sizes = list(found.settings.search.population)
    return {"releases": rows, "population": plain(found.population), "populations": sizes, "why": why}


def _number(estimate: Any) -> dict[str, Any]:
    from allonym.swap.plain import plain

    told = plain(estimate)
    return {name: told[name] for name in ("value", "low", "high")}


def texts_path(folder_made: Path, number: int) -> Path:
    """Where the documents of a release lie, before and after."""
    return folder_made / f"{number}.jsonl"


def _release(task: Task, run: Run, found: Releases, number: int, *, write: bool) -> None:
    """Make a release where it is not there yet: its documents beside the originals, and its files if it is chosen."""
    target = task.folder.out / _file(task, number)
    if texts_path(task.folder.made, number).exists() and (target.exists() or not write):
        return
    made = found.make(found.release(number), policy=run.policy, key=run.key)
    _texts(task, found, made)
    if write and not target.exists():
        if len(task.sent("files")) == 1:
            run.write(found, made, target, overwrite=True)
        else:
            _packed(task, run, found, made, target)


def _file(task: Task, number: int) -> str:
    sent = task.sent("files")
    suffix = ".zip" if len(sent) > 1 else sent[0].stored.partition(".")[1] + sent[0].stored.partition(".")[2]
    return f"release-{number}{suffix}"


def _released(task: Task, number: int) -> Made:
    name = _file(task, number)
    return result(task, name, task.folder.out / name)


def _packed(task: Task, run: Run, found: Releases, made: Release, target: Path) -> None:
    """A release of several files as one: under their own names, with nothing in it that changes from run to run."""
    folder = task.folder.state / "release"
    shutil.rmtree(folder, ignore_errors=True)
    run.write(found, made, folder, overwrite=True)
    part = PartFile(target)
    try:
        with zipfile.ZipFile(part.stream, "w", zipfile.ZIP_DEFLATED) as archive:
            for stored, name in task.shown().items():
                info = zipfile.ZipInfo(name, _EPOCH)
                info.compress_type, info.external_attr = zipfile.ZIP_DEFLATED, 0o600 << 16
                archive.writestr(info, (folder / stored).read_bytes())
        part.finish()
    finally:
        part.close(remove=True)
        shutil.rmtree(folder, ignore_errors=True)


def _texts(task: Task, found: Releases, made: Release) -> None:
    """The documents before and after, a line for each."""
    path = texts_path(task.folder.made, made.release.index)
    if path.exists():
        return
    names = task.shown()
    lines = Lines(path, private=True)
    try:
        for document, plan, after in zip(found.corpus.documents, made.plans, made.texts, strict=True):
            before_spans, spans = _marked(plan)
            row = {
                "id": names.get(document.id, document.id),
                "before": document.text,
                "after": after,
                "before_spans": before_spans,
                "spans": spans,
            }
            lines.write(json.dumps(row, ensure_ascii=True))
        lines.finish()
    finally:
        lines.close(remove=True)


def _marked(plan: Plan) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """What was replaced, in the original and in the released text."""
    before, after, moved = [], [], 0
    for edit in plan.edits:
        start = edit.start + moved
        kind = edit.operator.partition("@")[0]
        before.append({"start": edit.start, "end": edit.end, "label": edit.label})
        after.append({"start": start, "end": start + len(edit.replacement), "label": edit.label, "kind": kind})
        moved += len(edit.replacement) - (edit.end - edit.start)
    return before, after


def documents(path: Path, offset: int, limit: int) -> tuple[list[dict[str, Any]], int]:
    """Some documents of a release that was made, and how many there are."""
    out: list[dict[str, Any]] = []
    total = 0
    for total, line in enumerate(_lines(path), 1):
        if offset < total <= offset + limit:
            out.append(json.loads(line))
    return out, total


def _lines(path: Path) -> Iterator[str]:
    with path.open(encoding="ascii") as stream:
        yield from stream
