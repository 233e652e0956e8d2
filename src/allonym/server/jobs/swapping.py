"""Jobs of the kind ``swap``: a search that continues where it stopped, and its releases, each written on request.

After the search the corpus and the releases stay in the job's folder, so that further releases can be made of them.
"""

from __future__ import annotations

import json
import pickle
import shutil
import zipfile
from collections.abc import Callable, Mapping
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from allonym import __version__
from allonym.files.state import State
from allonym.partfile import PartFile, write_file
from allonym.plan import locate_replacements
from allonym.server.jobs.task import Outcome, Task, write_private_lines
from allonym.server.policies import load_policy
from allonym.server.wire import jobs as wire
from allonym.settings import list_settings
from allonym.swap.frontier import Rule
from allonym.swap.settings import Settings, presets

if TYPE_CHECKING:
    from allonym.document import Document
    from allonym.plan import Plan
    from allonym.swap import Made, Releases, Run

T = TypeVar("T")
SUMMARY, RELEASES = "whole", "releases"
"""Names in the state: the summary, once the search and its outputs are complete; the releases as they are shown."""

_EPOCH = (1980, 1, 1, 0, 0, 0)
_NUMBERS = ("changed", "share", "risk", "remaining", "utility", "uniques", "cosine", "distance_per_chunk")


def swap(task: Task) -> Outcome:
    """Search, write the release that the rule chooses, then those that were requested since."""
    from allonym.swap.run import STAGES

    run, state = _make_swap_run(task), State(task.folder.state)
    advance = task.make_stage_progress_callback({**STAGES, "release": "writing"})

    def search() -> Releases:
        corpus = _load_pickle_or_make(task, "corpus", lambda: run.load(advance=advance))
        return run.search(task.folder.state, advance, label=task.options["label"], corpus=corpus)

    releases = _load_pickle_or_make(task, "releases", search)
    summary = state.load_value(SUMMARY)
    if summary is None:
        summary = _write_release_and_report(task, run, releases, state, advance)
    chosen = task.list_chosen_releases(summary["chosen"])
    numbers = list(dict.fromkeys([*chosen, *task.releases.get("make", ())]))
    for count, number in enumerate(numbers):
        advance("release", count, len(numbers))
        _write_release_if_missing(task, run, releases, number, with_files=number in chosen)
    files = [*(_make_release_file_name(task, number) for number in chosen), "report.html", "numbers.json"]
    return {**summary, "chosen": chosen[-1]}, [task.describe_result(name, task.folder.out / name) for name in files]


def make_swap_settings(options: Mapping[str, Any]) -> Settings:
    """Return the settings of a search that a job's options describe.

    Raises:
        UsageError, UnknownNameError: a value is not known.
    """
    from allonym.errors import UnknownNameError
    from allonym.swap.categories import parse_categories

    if options["settings"] not in presets():
        raise UnknownNameError("preset of swapping", options["settings"], presets(), "options.settings")
    values = {path: options.get(setting.name) for path, setting in wire.SWAP_SETTINGS.items()}
    changes: dict[str, object] = {path: value for path, value in values.items() if value not in (None, [])}
    if "search.size" in changes:
        changes["search.full"] = False
    if not options["check"]:
        changes["check.intruders"] = ()
    states = options["categories"]
    changes |= {f"categories.{name}": state for name, state in (parse_categories(states) if states else {}).items()}
    changes |= {f"fallback.{name}": way for name, way in options["fallback"].items()}
    return Settings.load(options["settings"]).with_(changes)


def _make_swap_run(task: Task) -> Run:
    from allonym.swap import Run

    options, source = task.options, task.get_input_file_or_folder("files")
    assert source is not None
    return Run(
        source=source,
        protect=options["protect"],
        settings=make_swap_settings(options),
        policy=load_policy(task.spec.policy),
        reading={
            "fields": options["fields"] or None,
            "metadata": task.get_metadata_table(),
            "rest": options["rest"],
        },
        rule={rule.name: options[rule.name] for rule in list_settings(Rule) if options[rule.name] is not None},
        key=task.key,
        seed=options["seed"],
    )


def _load_pickle_or_make(task: Task, name: str, make_value: Callable[[], T]) -> T:
    """Return a pickled value of the state; where there is none, make it and write it there.

    Unpickling is safe: nobody else may write into the folder.
    """
    path = task.folder.state / f"{name}-{__version__}.pickle"
    if path.exists():
        with path.open("rb") as stream:
            return pickle.load(stream)  # type: ignore[no-any-return]
    value = make_value()
    write_file(path, pickle.dumps(value))
    return value


def _write_release_and_report(task: Task, run: Run, releases: Releases, state: State, advance: Any) -> dict[str, Any]:
    """Check and write the release that the rule chooses, the report and all numbers; return the summary."""
    from allonym import report

    result = run.whole(
        releases,
        background=task.get_input_file_or_folder("background"),
        label=task.options["label"],
        texts=task.options["texts"],
        state=task.folder.state,
        advance=advance,
    )
    state.store_value(RELEASES, _describe_releases(releases, result.values["why"]))
    numbers = task.replace_stored_file_names(result.values)
    beside = {
        task.folder.out / "numbers.json": json.dumps(numbers, ensure_ascii=False, indent=1, allow_nan=False) + "\n",
        task.folder.out / "report.html": report.render(report.swap_page(numbers), "html"),
    }
    run.write(releases, result.made, None, beside=beside)
    _write_release_documents(task, releases, result.made)
    attacks = [{n: attack[n] for n in ("intruder", "before", "after", "chance")} for attack in result.values["attacks"]]
    summary: dict[str, Any] = state.store_value(
        SUMMARY,
        {
            "chosen": result.made.release.index,
            "documents": len(releases.corpus.documents),
            "chunks": len(releases.corpus.chunks),
            "releases": len(releases.releases),
            "warnings": list(releases.warnings),
            "panel": result.values["panel"],
            "attacks": attacks,
        },
    )
    return summary


def _describe_releases(releases: Releases, choice_reason: str) -> dict[str, Any]:
    """Return the releases as the plot and the list show them, without the choice."""
    from allonym.serial import to_plain

    frontier = {release.index for release in releases.frontier}
    rows = []
    for release in releases.releases:
        at_size = {"risk": releases.risk(release), "remaining": release.remaining[releases.population]}
        values = {**to_plain(release), **to_plain(at_size)}
        row = _select_interval_ends(values)
        row |= {name: values[name] for name in ("categories", "swaps", "flags")}
        rows.append({**row, "id": release.index, "moves": release.moves, "on_frontier": release.index in frontier})
    sizes = list(releases.settings.search.population)
    return {"releases": rows, "population": to_plain(releases.population), "populations": sizes, "why": choice_reason}


def _select_interval_ends(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: {part: values[name][part] for part in ("value", "low", "high")} for name in _NUMBERS}


def name_written_numbers(release_id: int) -> str:
    """Return the name, in the state, of the numbers of a release as it was written."""
    return f"written-{release_id}"


def _store_written_numbers(task: Task, releases: Releases, made: Made) -> None:
    from allonym.serial import to_plain
    from allonym.stats import Estimate

    numbers, size, changed = made.numbers, releases.population, made.numbers["changed"]
    counted = {name: numbers[name] for name in ("changed", "utility", "uniques", "cosine")}
    counted |= {
        "share": changed / len(releases.corpus.chunks),
        "distance_per_chunk": numbers["distance"] / (changed or 1),
    }
    values = {name: Estimate.exact(value) for name, value in counted.items()}
    values |= {name: numbers[name][size] for name in ("risk", "remaining")}
    plain = _select_interval_ends(to_plain(values))
    State(task.folder.state).store_value(name_written_numbers(made.release.index), plain)


def get_release_documents_path(folder: Path, release_id: int) -> Path:
    """Return the path of the documents of a release, before and after."""
    return folder / f"{release_id}.jsonl"


def _write_release_if_missing(task: Task, run: Run, releases: Releases, release_id: int, *, with_files: bool) -> None:
    """Make a release unless it exists: its documents beside the originals, and its files if it is chosen."""
    target = task.folder.out / _make_release_file_name(task, release_id)
    if get_release_documents_path(task.folder.made, release_id).exists() and (target.exists() or not with_files):
        return
    corpus = releases.make(releases.release(release_id), policy=run.policy, key=run.key)
    _write_release_documents(task, releases, corpus)
    if with_files and not target.exists():
        if len(task.list_uploads("files")) == 1 or corpus.pieces is not None:
            run.write(releases, corpus, target, overwrite=True)
        else:
            _zip_release_files(task, run, releases, corpus, target)


def _make_release_file_name(task: Task, release_id: int) -> str:
    files = task.list_uploads("files")
    if task.options.get("form") not in (None, "documents"):
        return f"release-{release_id}.jsonl"
    suffix = ".zip" if len(files) > 1 else "".join(files[0].stored.partition(".")[1:])
    return f"release-{release_id}{suffix}"


def _zip_release_files(task: Task, run: Run, releases: Releases, made: Made, target: Path) -> None:
    """Write a release of several files as one archive, under their shown names; equal releases give equal bytes."""
    folder = task.folder.state / "release"
    shutil.rmtree(folder, ignore_errors=True)
    run.write(releases, made, folder, overwrite=True)
    part = PartFile(target)
    try:
        with zipfile.ZipFile(part.stream, "w", zipfile.ZIP_DEFLATED) as archive:
            for stored, name in task.map_stored_to_shown_names().items():
                info = zipfile.ZipInfo(name, _EPOCH)
                info.compress_type, info.external_attr = zipfile.ZIP_DEFLATED, 0o600 << 16
                archive.writestr(info, (folder / stored).read_bytes())
        part.finish()
    finally:
        part.close(remove=True)
        shutil.rmtree(folder, ignore_errors=True)


def _write_release_documents(task: Task, releases: Releases, made: Made) -> None:
    """Write the documents before and after, a line for each, and the numbers of the draw."""
    _store_written_numbers(task, releases, made)
    path = get_release_documents_path(task.folder.made, made.release.index)
    if path.exists():
        return
    names = task.map_stored_to_shown_names()
    documents = zip(releases.corpus.documents, made.texts, made.plans, strict=True)
    write_private_lines(path, (json.dumps(describe_document(*document, names)) for document in documents))


def describe_document(
    document: Document, after: str, plan: Plan, shown_names: Mapping[str, str] = MappingProxyType({})
) -> dict[str, Any]:
    """Return a document's text before and after, with the spans of its plan's edits in both."""
    before_spans, spans = [], []
    for start, end, edit in locate_replacements(plan.edits):
        kind = edit.operator.partition("@")[0]
        before_spans.append({"start": edit.start, "end": edit.end, "label": edit.label})
        spans.append({"start": start, "end": end, "label": edit.label, "kind": kind})
    texts = {"id": shown_names.get(document.id, document.id), "before": document.text, "after": after}
    return {**texts, "before_spans": before_spans, "spans": spans}


def read_release_documents(path: Path, offset: int, limit: int) -> wire.Documents:
    """Return a page of the documents of a release, which may not exist yet."""
    if not path.exists():
        return wire.Documents(documents=[], total=0, ready=False)
    with path.open(encoding="ascii") as lines:
        skipped = sum(1 for _ in islice(lines, offset))
        page = [wire.Beside.model_validate(json.loads(line)) for line in islice(lines, limit)]
        return wire.Documents(documents=page, total=skipped + len(page) + sum(1 for _ in lines), ready=True)
