"""Anonymise a file, a folder or a pipe: read chunks, process them in workers, write files atomically."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from allonym import __version__
from allonym.batch import Findings, Key, run_ordered
from allonym.document import Document, Span
from allonym.errors import AllonymError, DataError, EndpointError, RefusedContent, UsageError, VaultError
from allonym.files.items import (
    Item,
    check_outputs_distinct,
    check_target_suffix,
    check_targets_free,
    list_items,
    list_sources,
)
from allonym.files.journal import Journal
from allonym.files.names import count_identifying_names, give_safe_names, write_name_list
from allonym.files.output import ChunkOutput, LinesFile, Pipe, combine_output_digests, digest_file
from allonym.files.record import AnonymizedChunk, DocumentKey, Draft, Failure, Job, Tally
from allonym.files.runreport import RunReport, list_package_versions
from allonym.files.tasks import (
    BATCH,
    Place,
    Stretch,
    Task,
    anonymize_task,
    anonymize_tasks,
    detect_in_task,
    parse_all_chunks,
    read_tasks,
)
from allonym.keys import derive_operator_key
from allonym.partfile import PartFile, remove_part_files, sync_folder, write_file
from allonym.plan import ReaderScore, digest
from allonym.policy import Policy
from allonym.replace.cast import Corpus

if TYPE_CHECKING:
    from allonym.replace import Keeper

CHECKPOINT = 0.25
"""Least number of seconds between two lines of the journal."""

Advance = Callable[[int, int | None], None]


def anonymize_path(
    source: str | Path,
    target: str | Path,
    policy: str | Path | Policy = "default",
    *,
    key: Key = None,
    vault: Keeper | None = None,
    scope: str = "",
    fields: Sequence[str] | None = None,
    format: str | None = None,
    workers: int = 1,
    resume: bool = False,
    overwrite: bool = False,
    plans: str | Path | None = None,
    originals: bool = False,
    quotes: bool = False,
    report: str | Path | None = None,
    quarantine: str | Path | None = None,
    safe_names: bool = False,
    name_list: str | Path | None = None,
    batch_size: int = BATCH,
    progress: Advance | None = None,
    findings: Mapping[DocumentKey, tuple[Span, ...]] | None = None,
) -> RunReport:
    """Anonymise a file, a folder, or standard input, and write the result atomically.

    Args:
        source: a file, a folder (with all below it), or ``-`` for standard input. Never changed.
        target: the file to write, or a folder for a folder; ``-`` for standard output.
        policy: a preset's name, a TOML file's path, or a :class:`Policy`.
        key: secret of the keyed operators; by default the vault's own.
        vault: a :class:`allonym.vault.Vault`, which keeps replacements consistent in all files of a scope, or a
            :class:`allonym.replace.cast.Corpus`. It is written in the order of the texts.
        scope: names the project or release.
        fields: column names, or dotted paths, of the text to anonymise; by default all text except record ids.
        format: overrides the suffix; for standard input by default ``txt``.
        workers: number of processes; the output does not depend on it.
        resume: continue an interrupted run of the same call.
        overwrite: replace an existing target, and discard an interrupted run.
        plans: file for the plans as JSON lines.
        originals: include the originals in the plans, so that they can undo the run; that file is then as sensitive
            as the source.
        quotes: quote in the reason why a file is refused the covered texts that its result still contains; reasons
            are shown and written to ``quarantine``.
        report: file for the run report as JSON.
        quarantine: file for records that could not be processed, as JSON lines with id and reason; by default
            the target's name with ``.quarantine.jsonl``, created only if needed.
        safe_names: write files as ``folder-001/document-0001.docx``; the numbers follow their contents. The report,
            the plans and the quarantine file give these names, and number records without their ids.
        name_list: with ``safe_names``: file for the names of the sources beside those of the outputs, as CSV. It is as
            sensitive as the source.
        batch_size: approximate bytes of input in a batch.
        progress: called with (bytes read, all bytes or None) as results are written.
        findings: disjoint findings that are settled, such as by reviewers, in place of what the detectors find: by the
            id of a document and the digest of its text, see :func:`allonym.plan.digest`.

    Raises:
        UsageError: the call, the policy or a field is wrong, the target exists, or there is nothing to resume.
        DataError: a single file cannot be read, or has content that cannot be treated. Nothing is written.
        AllonymError: a worker died; the run can be resumed.
    """
    began = time.monotonic()
    with_plans = plans is not None
    job = Job(
        Policy.load(policy), key, tuple(fields or ()), with_plans, originals, vault, scope, quotes, dict(findings or {})
    )
    items, is_folder = list_items(source, target, format)
    if name_list is not None and not safe_names:
        raise UsageError("a list of names requires safe_names")
    if safe_names:
        if not Path(target).is_dir() and not is_folder:
            raise UsageError("safe_names names files in a folder; of a single file, TARGET can be a folder that exists")
        originals_of_names, items = items, give_safe_names(items, Path(target), is_folder, key)
    out = None if str(target) == "-" else Path(target) if is_folder else items[0].target
    if quarantine is None and out is not None:
        quarantine = out.with_name(f"{out.name}.quarantine.jsonl")
    if resume and (out is None or str(source) == "-"):
        raise UsageError("resume requires a file or folder to read and one to write")
    if resume and isinstance(vault, Corpus):
        raise UsageError("a run with its book in memory cannot be resumed; use a vault")
    if batch_size < 1:
        raise UsageError(f"batch_size must be 1 or more, got {batch_size}")
    settings = describe_settings(job, items, format, is_folder)
    extras = [Path(p) for p in (quarantine, plans, report, name_list) if p is not None]
    check_outputs_distinct(items, extras)
    check_target_suffix(items)
    identity = describe_run_identity(
        items, job, settings, quarantine, batch_size=batch_size, plans=str(plans), runner="processes"
    )
    if job.findings:
        identity["findings"] = digest(repr(sorted(job.findings.items())))
    if vault is not None and not isinstance(vault, Corpus):
        # With another vault, neither vault could restore the text written before.
        identity["vault"] = derive_operator_key(vault.operator_key, "journal").hex()[:32]
    journal = None
    if out is not None and str(source) != "-":
        journal = Journal(out, identity, key, resume=resume, overwrite=overwrite)
    extra_paths = (Path(quarantine) if quarantine else None, Path(plans) if plans else None)
    run = Run(items, job, journal, is_folder, *extra_paths, safe_names)
    keep = False
    try:
        check_targets_free(
            [] if run.resumed else [item.target for item in items],
            [] if run.resumed else extras,
            overwrite,
            Path(target) if is_folder else None,
        )
        run.restore_progress()
        with closing(cast(Any, _anonymize_tasks(items, run.read_tasks(batch_size), job, workers))) as results:
            for place, treated in results:
                run.write_chunk(place, treated)
                if progress:
                    progress(place.consumed, sum(i.size for i in items) or None)
        run.finish_quarantine_and_plans()
        run_report = run.make_report(settings, time.monotonic() - began)
        extras_done = [path for path in extras if run.was_complete and path.exists()]
        if name_list is not None and Path(name_list) not in extras_done:
            write_name_list(Path(name_list), originals_of_names, items)
        if report is not None and Path(report) not in extras_done:
            write_file(Path(report), run_report.to_json().encode())
        keep = resume and not overwrite and run.record_ending()
        return run_report
    except (KeyboardInterrupt, OSError, AllonymError) as error:
        # A run that was interrupted, or whose disk or that of its vault is full, can still be resumed.
        is_outside = not isinstance(error, (DataError, UsageError))
        is_outside = is_outside or (isinstance(error, (VaultError, EndpointError)) and run.has_written)
        keep = run.resumed or is_outside
        raise
    finally:
        run.close(keep_unfinished=keep)


def describe_settings(job: Job, items: Sequence[Item], format: str | None, is_folder: bool) -> dict[str, object]:
    """Return the settings of a run for its report; of secrets and names only whether there are any, and digests.

    Raises:
        UsageError: the file has no fields to choose from.
    """
    kind = items[0].format if items and not is_folder else None
    if job.fields and kind and not kind.fields:
        raise UsageError(f"a {kind.name} file has no fields to choose from; all its text is anonymised")
    settings: dict[str, object]
    settings = {"fields": list(job.fields), "format": format, "keyed": job.key is not None, "folder": is_folder}
    is_linking = job.policy.consistent == "scope" or (job.policy.consistent == "auto" and bool(job.vault or job.scope))
    if is_linking:
        settings["linked"] = True
    if job.vault is not None or job.scope:
        settings |= {"vault": job.vault is not None, "scoped": digest(job.scope) if job.scope else ""}
    return settings


def describe_run_identity(
    items: Sequence[Item], job: Job, settings: Mapping[str, object], quarantine: str | Path | None, **more: object
) -> dict[str, object]:
    """Return the settings that a resumed run must share. It has no secrets, and only digests of names."""
    listed = "\n".join(f"{item.name}\0{item.size}" for item in items)
    return {
        "version": __version__,
        "policy": job.policy.fingerprint(),
        "input": blake2b(listed.encode("utf-8", "surrogateescape"), digest_size=16).hexdigest(),
        "quarantine": str(quarantine),
        "originals": job.originals,
        **more,
        **settings,
    }


def _anonymize_tasks(
    items: Sequence[Item], tasks: Iterator[Task], job: Job, workers: int
) -> Iterator[tuple[Place, AnonymizedChunk]]:
    is_shared = job.vault is not None or any(item.format and item.format.shared for item in items)
    if not is_shared:
        yield from run_ordered(anonymize_task, tasks, job, workers)
        return
    seeing = job
    if job.vault is not None:
        seeing = replace(job, vault=None, key=job.vault.operator_key if job.key is None else job.key)
    # Whoever numbers across records does so in one place, in the order of the texts.
    detected: Iterator[tuple[Task, list[Findings] | None]] = ((task, None) for task in tasks)
    if workers > 1:
        detected = run_ordered(detect_in_task, tasks, seeing, workers)
    with closing(cast(Any, detected)) as detected_tasks:
        yield from anonymize_tasks(items, detected_tasks, job)


def _is_output_intact(item: Item, journal_line: Mapping[str, Any]) -> bool:
    """Tell whether the output of a finished file, as its line of the journal describes it, still exists."""
    if journal_line["refused"]:
        return True
    if item.target is None or not item.target.is_file() or item.target.stat().st_size != journal_line["size"]:
        return False
    return bool(digest_file(item.target) == journal_line["digest"])


def _digest_sources(items: Sequence[Item]) -> str:
    """Return the digest of the contents of all sources that a format reads."""
    sources = [(item.name, item.source) for item in items if item.source is not None and item.format is not None]
    return combine_output_digests([(name, digest_file(source)) for name, source in sources], is_folder=True)


class Run:
    """The state of a run: its outputs, its counts, and the current file.

    Args:
        items: the files, in order.
        job: the settings for all files.
        journal: the journal of its progress; None: the run cannot be resumed.
        is_folder: whether the files are those of a folder, so that a refused file does not end the run.
        quarantine, plans: files for the records left out, and for the plans; None: not written.
        has_safe_names: whether these files give no ids.
    """

    def __init__(
        self,
        items: list[Item],
        job: Job,
        journal: Journal | None,
        is_folder: bool,
        quarantine: Path | None,
        plans: Path | None,
        has_safe_names: bool = False,
    ) -> None:
        self.items, self.job, self.journal, self.is_folder = items, job, journal, is_folder
        self.has_safe_names = has_safe_names
        self.quarantine = LinesFile(quarantine, announce=self._make_announcer(quarantine))
        self.plans = LinesFile(plans, private=job.originals, announce=self._make_announcer(plans))
        self.tally = Tally()
        self.refused: list[tuple[str, str]] = []
        self.digests: list[tuple[str, str]] = []
        self.resumed = journal is not None and journal.resumed
        self.was_complete = False
        self.start, self.offset, self.read = 0, 0, ""
        self._out: ChunkOutput | None = None
        self._file_tally, self._line, self._skip = Tally(), 0, -1
        self._lengths = (0, 0)  # of the quarantine and plan files, at the beginning of the current file
        self._last = time.monotonic()

    @property
    def has_written(self) -> bool:
        """Whether there is an output, or a part of one."""
        return bool(self.digests or self.refused or self._out)

    def read_tasks(self, size: int) -> Iterator[Task]:
        """Yield all chunks of all files, from the point where the run stopped."""
        return read_tasks(self.items, self.job, self.is_folder, size, Stretch(self.start, self.offset, read=self.read))

    def _make_announcer(self, target: Path | None) -> Callable[[Path], object] | None:
        return partial(self.journal.announce_part, target) if self.journal and target else None

    def restore_progress(self) -> None:
        """Set the state of the run to the point in the journal, and cut its part files there.

        Raises:
            UsageError: the earlier run had ended, and its sources or outputs were changed since.
        """
        if self.journal is None:
            return
        targets = [item.target for item in self.items] + [lines.target for lines in (self.quarantine, self.plans)]
        if not self.resumed:
            remove_part_files(filter(None, targets))
            return
        lengths = (0, 0)
        file_lines = {line["done"]: line for line in self.journal.file_lines}  # a file may have been made again
        for index, finished_item in enumerate(self.items):
            if index not in file_lines:
                break
            line = file_lines[index]
            if not _is_output_intact(finished_item, line):
                self._check_not_changed_after_ending(finished_item, self.journal.ending)
                break
            lengths = line["q"], line["p"]
            self._count_finished_file(finished_item, line)
            self.start = index + 1
        if self.start == len(self.items) and self.journal.ending:
            if self.journal.ending["inputs"] != _digest_sources(self.items):
                raise UsageError(
                    "the run had ended, and a source has changed since; overwrite (--overwrite) begins again"
                )
            self.was_complete = True
        self._lengths = lengths
        line = self.journal.checkpoint
        item = self.items[self.start] if self.start < len(self.items) else None
        part = self.journal.find_part(item.target) if item and item.target else None
        if item and item.target and line.get("at") == self.start and part is not None:
            lengths, self._lengths = (line["q"], line["p"]), (line["q0"], line["p0"])
            self.offset, self.read, self._line = line["offset"], line["read"], line["line"]
            self._file_tally = Tally.from_dict(line["tally"])
            out = PartFile(item.target, old_part=part, length=line["out"], digest=line["digest"])
            self._out = ChunkOutput(item, out)
        part_paths = [self._out.part.path] if self._out else []
        for lines, length in zip((self.quarantine, self.plans), lengths, strict=True):
            if lines.target is not None:
                lines.resume_after(length, self.journal.find_part(lines.target))
                part_paths += [lines.part.path] if lines.part else []
        self.journal.remove_parts(*part_paths)
        remove_part_files(filter(None, targets), *part_paths)

    def _check_not_changed_after_ending(self, item: Item, ending: Mapping[str, Any]) -> None:
        if ending and item.target is not None and item.target.exists():
            raise UsageError(
                f"the run had ended, and {item.target} has changed since; overwrite (--overwrite) begins again"
            )

    def record_ending(self) -> bool:
        """Note in the journal that the run has ended, for the next call; tell whether there is a journal."""
        if self.journal is not None and not self.was_complete:
            self.journal.append({"ended": True, "inputs": _digest_sources(self.items)})
        return self.journal is not None

    def _count_finished_file(self, item: Item, line: Mapping[str, Any]) -> None:
        self.tally.add(Tally.from_dict(line["tally"]))
        if line["refused"]:
            self.refused.append((item.name, line["refused"]))
        else:
            self.digests.append((item.name, line["digest"]))

    def write_chunk(self, place: Place, treated: AnonymizedChunk) -> None:
        """Write an anonymised chunk."""
        if place.item == self._skip:
            return
        item = self.items[place.item]
        refused = treated.refused
        if not refused and item.format and not item.format.many and treated.failures:
            refused = treated.failures[0].reason
        if refused:
            self._refuse_file(place, item, refused)
            return
        if self._out is None:
            announce = self._make_announcer(item.target)
            self._out = ChunkOutput(item, PartFile(item.target, announce=announce) if item.target else Pipe())
        self._out.write(treated.data)
        for failure in treated.failures:
            reason = json.dumps(failure.reason, ensure_ascii=False)
            self._write_record_line(self.quarantine, item, failure.id, failure.line, f'"reason": {reason}')
        for id, line, plan in treated.plans:
            self._write_record_line(self.plans, item, id, line, f'"plan": {plan}')
        self._file_tally.add(treated.tally)
        self._line += treated.lines
        absent = self._list_absent_fields(item)
        if absent and (place.last or item.target is None):
            message = f"no record of {item.name} has the field {', '.join(absent)}"
            if len(absent) == len(self.job.fields) and (self.is_folder or item.target is None):
                self._refuse_file(place, item, message)
                return
            if place.last and not self.is_folder:
                raise UsageError(message)
        is_empty = self._out.part.length == 0 and not (item.format and item.format.writer)
        if place.last and is_empty and self._file_tally.quarantined:
            self._out.part.close(remove=True)
            self._out = None
            why = "none of its records could be processed"
            self._record_finished_file(place, item, size=0, digest="", refused=why)
        elif place.last:
            self._out.write_end()
            self._out.part.finish()
            size, digest = self._out.get_size_and_digest()
            self._out = None
            self._record_finished_file(place, item, size=size, digest=digest, refused="")
        elif self.journal and self._can_resume_inside(item) and time.monotonic() - self._last >= CHECKPOINT:
            self._write_checkpoint(self.journal, self._out.part, place)

    def _can_resume_inside(self, item: Item) -> bool:
        """Tell whether a run can go on in the middle of a file: not if only its beginning tells the next number."""
        kind = item.format
        return kind is not None and kind.is_resumable and not (kind.shared and self.job.vault is None)

    def _list_absent_fields(self, item: Item) -> list[str]:
        if not (item.format and item.format.fields and self._file_tally.documents):
            return []
        return [name for name in self.job.fields if not self._file_tally.treated[name]]

    def _write_record_line(self, file: LinesFile, item: Item, id: str, line: int, json_member: str) -> None:
        """Write a line about a record: where it is, and a member in JSON. ``line`` is counted within the chunk."""
        line += self._line
        row: dict[str, object] = {"file": item.name} if self.is_folder else {}
        unit = item.format.unit if item.format and item.format.many else ""
        row["id"] = (id if not self.has_safe_names else "") or (f"{unit} {line}" if unit else item.name)
        if unit:
            row[unit] = line
        file.write(f"{json.dumps(row, ensure_ascii=False)[:-1]}, {json_member}}}")

    def _refuse_file(self, place: Place, item: Item, why: str) -> None:
        if not self.is_folder:
            raise RefusedContent(f"{item.name}: {why}")
        if self._out:
            self._out.part.close(remove=True)
        for lines, length in zip((self.quarantine, self.plans), self._lengths, strict=True):
            if lines.part:
                lines.part.truncate_to(length)
        self._out = None
        self._skip = place.item
        self._file_tally = Tally()
        self.quarantine.write(json.dumps({"file": item.name, "id": item.name, "reason": why}, ensure_ascii=False))
        self._record_finished_file(place, item, size=0, digest="", refused=why)

    def _record_finished_file(self, place: Place, item: Item, **row: object) -> None:
        self._lengths = self.quarantine.length, self.plans.length
        q, p = self._lengths
        line = {"done": place.item, **row, "q": q, "p": p, "tally": self._file_tally.to_dict()}
        if self.journal:
            self._sync_quarantine_and_plans()
            self.journal.append(line)
        self._count_finished_file(item, line)
        self._file_tally, self._line = Tally(), 0

    def _write_checkpoint(self, journal: Journal, part: PartFile, place: Place) -> None:
        part.sync()
        self._sync_quarantine_and_plans()
        q0, p0 = self._lengths
        outputs = {"out": part.length, "digest": part.hash.hexdigest(), "q": self.quarantine.length}
        outputs |= {"p": self.plans.length, "q0": q0, "p0": p0, "tally": self._file_tally.to_dict()}
        journal.append({"at": place.item, "offset": place.end, "read": place.digest, "line": self._line, **outputs})
        self._last = time.monotonic()

    def _sync_quarantine_and_plans(self) -> None:
        for lines in (self.quarantine, self.plans):
            if lines.part and not lines.complete:
                lines.part.sync()

    def finish_quarantine_and_plans(self) -> None:
        """Rename the quarantine and plan files to their final names, once those of all outputs are on the disk."""
        if self.quarantine.part or self.plans.part:
            # A run that lost one of them to a power failure goes on with the part files of these two.
            for folder in sorted({item.target.parent for item in self.items if item.target is not None}):
                sync_folder(folder)
        self.quarantine.finish()
        self.plans.finish()

    def make_report(self, settings: Mapping[str, object], seconds: float) -> RunReport:
        """Return the report; its digest is that of the output, for a folder over the files' paths and digests."""
        policy = self.job.policy
        used = {"endpoint": True} if policy.llm.get("url") else {}
        return RunReport(
            settings={"policy": policy.name, "fingerprint": policy.fingerprint(), **used, **settings},
            versions=list_package_versions(policy),
            files=len(self.digests),
            refused=tuple(self.refused),
            digest=combine_output_digests(self.digests, self.is_folder),
            seconds=seconds,
            was_complete=self.was_complete,
            identifying_names=count_identifying_names(self.items, self.job.policy, self.is_folder),
            **self.tally.to_dict() | {"reader": ReaderScore(**self.tally.reader)},
        )

    def close(self, *, keep_unfinished: bool) -> None:
        """Close all files; without ``keep_unfinished`` the unfinished ones and the journal are removed."""
        for file in (self._out.part if self._out else None, self.quarantine, self.plans):
            if file is not None:
                file.close(remove=not keep_unfinished or self.journal is None)
        if self.journal:
            self.journal.close(remove=not keep_unfinished)


def read_documents(
    source: str | Path,
    *,
    fields: Sequence[str] | None = None,
    format: str | None = None,
    named: bool = True,
    policy: str | Path | Policy = "default",
) -> Iterator[Document]:
    """Yield the documents of a file, a folder or standard input (``-``), as a run would read them.

    Args:
        source, fields, format: as for :func:`anonymize_path`.
        named: use the file's name as the id of documents without one, unlike a run.
        policy: the policy of the run, for its OCR and its treatment of pictures.

    Raises:
        UsageError: there is no such file, format or field.
        DataError: a file cannot be read, or a record is malformed.
    """
    items, is_folder = list_sources(source, format)
    job = Job(Policy.load(policy), fields=tuple(fields or ()))
    for item, lines, parsed, _ in parse_all_chunks(items, job, is_folder):
        for piece in parsed.pieces if parsed else ():
            if isinstance(piece, Failure):
                raise DataError(item.describe_failure(lines, piece))
            if isinstance(piece, Draft) and piece.counted:
                document = piece.document
                yield replace(document, id=item.name) if named and not document.id else document
