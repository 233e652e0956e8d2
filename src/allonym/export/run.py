"""From a source to the files of a training set: read, anonymise, shape, split, and write all or nothing."""

from __future__ import annotations

import heapq
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from allonym.batch import Failure, Key, run_ordered, run_records
from allonym.document import Document, Interval
from allonym.errors import DataError, UsageError
from allonym.export.manifest import FILE, Manifest
from allonym.export.records import append_fields, extract_text, list_speakers, read_field
from allonym.export.shapes import Shape
from allonym.export.split import NAMES, Split
from allonym.files import read_documents
from allonym.files.items import list_items
from allonym.files.output import Lines, PartFile, digest_file
from allonym.files.runreport import list_versions
from allonym.pipeline import detect
from allonym.plan import Anonymized, Report
from allonym.policy import Policy

if TYPE_CHECKING:
    from allonym.replace import Keeper

BATCH = 32
"""Documents that a worker gets at once."""

Risk = Callable[[Sequence[str], Sequence[str]], Mapping[str, Any]]
"""From the originals and the anonymised texts of a sample to a description of their risk. The originals are empty
where the texts were anonymised before."""


@dataclass(frozen=True, slots=True)
class Job:
    """How to anonymise and shape every batch. ``before``: the texts are anonymised already."""

    policy: Policy
    shape: Shape
    key: Key = field(default=None, repr=False)
    vault: Keeper | None = field(default=None, repr=False)
    scope: str = ""
    before: bool = False


@dataclass(frozen=True, slots=True)
class Source:
    """A document of the source; ``group`` is the value of the field by which documents are grouped."""

    document: Document
    group: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class Shaped:
    """A document that is in the training set.

    Attributes:
        examples: (task, example as a line of JSON).
        report: what was replaced; empty where the texts were anonymised before.
        texts: before and after, for the sample whose risk is measured.
        unit: documents with the same unit are in one split: the value of the field by which documents are grouped, or
            the text without its replaced intervals, so that texts that become the same stay together.
    """

    examples: tuple[tuple[str, str], ...] = field(repr=False)
    report: Report
    texts: tuple[str, str] = field(repr=False)
    unit: str = field(repr=False)


def make_examples(job: Job, sources: Sequence[Source | Failure]) -> list[Shaped | Failure]:
    """Anonymise and shape some documents, in order: the function that the workers run."""
    assembled = [
        source if isinstance(source, Failure) else _assemble_document(job, source.document) for source in sources
    ]
    documents = [document for document in assembled if isinstance(document, Document)]
    anonymised: Iterable[Anonymized | Failure | Document] = documents
    if not job.before:
        anonymised = run_records(documents, job.policy, job.key, vault=job.vault, scope=job.scope)
    outcomes = iter(anonymised)
    shaped: list[Shaped | Failure] = []
    for source, document in zip(sources, assembled, strict=True):
        outcome = document if isinstance(document, Failure) else next(outcomes)
        if isinstance(source, Failure) or isinstance(document, Failure) or isinstance(outcome, Failure):
            assert isinstance(outcome, Failure)
            shaped.append(outcome)
        else:
            shaped.append(_shape_document(job, source, document, outcome))
    return shaped


def _assemble_document(job: Job, document: Document) -> Document | Failure:
    try:
        return append_fields(document, job.shape.fields, turns=job.shape.turns)
    except DataError as error:
        return Failure(document.id, 0, str(error))


def _shape_document(job: Job, source: Source, document: Document, outcome: Anonymized | Document) -> Shaped | Failure:
    """The examples of a document; ``outcome`` is ``document`` itself where it was anonymised before."""
    result = outcome if isinstance(outcome, Anonymized) else None
    originals = document.part_texts()
    parts = result.parts if result else originals
    speakers = list_speakers(source.document) if job.shape.turns else ()
    try:
        examples = job.shape.examples(speakers, parts)
    except DataError as error:
        return Failure(document.id, 0, str(error))
    return Shaped(
        examples=tuple((task, json.dumps(example, ensure_ascii=False)) for task, example in examples),
        report=result.report if result else Report(),
        texts=("\n".join(originals) if result else "", "\n".join(parts)),
        unit=source.group or _outline_text(source.document.text, result.plan.covered_intervals if result else ()),
    )


def _outline_text(text: str, covered: Sequence[Interval]) -> str:
    """A text without its replaced intervals, with single blanks."""
    pieces: list[str] = []
    position = 0
    for start, end in sorted(interval for interval in covered if interval[0] < len(text)):  # behind it are the fields
        pieces.append(text[position:start])
        position = max(position, end)
    return " ".join("\0".join([*pieces, text[position:]]).split())


def export_path(
    source: str | Path,
    target: str | Path,
    shape: Shape,
    policy: str | Path | Policy = "default",
    *,
    key: Key = None,
    vault: Keeper | None = None,
    scope: str = "",
    anonymised: Mapping[str, Any] | None = None,
    fields: Sequence[str] = (),
    format: str | None = None,
    split: Split | None = None,
    group: str = "",
    risk: Risk | None = None,
    sample: int = 200,
    workers: int = 1,
    overwrite: bool = False,
    progress: Callable[[int], None] | None = None,
) -> Manifest:
    """Write a training set: a JSON Lines file for each split that has examples, and ``manifest.json``.

    A document that cannot be processed, or makes no example, is left out and listed by id and reason in
    ``quarantine.jsonl``.

    Args:
        source: a file, or a folder with all below it, of any format that allonym reads. Never changed.
        target: the folder; it is made where there is none.
        shape: what examples look like.
        policy: how to anonymise: a preset's name, a TOML file's path, or a :class:`Policy`.
        key: secret of the keyed operators; by default the vault's own.
        vault, scope: as for :func:`allonym.files.anonymize_path`.
        anonymised: the source is anonymised already, and this is the report of the run that did it.
        fields: field names, or dotted paths, that hold the text; by default turns where there are any, else ``text``,
            else all of it.
        format: overrides what the suffix says.
        split: shares; by default 0.8, 0.1 and 0.1.
        group: field whose documents stay together, such as that of the caller; empty: texts do that are the same
            without what is replaced in them.
        risk: measures the residual risk of a sample; None: it is not measured.
        sample: documents of that sample, drawn by digest.
        workers: processes; any number gives the same bytes. With a vault, one does it all.
        overwrite: replace files of the target that exist.
        progress: called with how many documents are done.

    Raises:
        UsageError: the call or the policy is wrong, or a file exists.
        DataError: a file cannot be read, or no document makes an example. Nothing is written.
    """
    policy, split, target = Policy.load(policy), split or Split(), Path(target)
    if vault is not None and key is None:
        key = vault.operator_key
    job = Job(policy, shape, key, vault, scope, anonymised is not None)
    files = {name: target / f"{name}.jsonl" for name in split.names}
    quarantine = target / "quarantine.jsonl"
    outputs = [*(target / f"{name}.jsonl" for name in NAMES), target / FILE, quarantine]
    _check_paths(source, target, outputs, overwrite)
    if anonymised is not None:
        _check_run(source, target, format, anonymised)
    tally = _Tally(split, sample if risk else 0)
    with ExitStack() as stack:
        outs = {name: PartFile(path) for name, path in files.items()}
        left_out = Lines(quarantine, private=True)  # ids may tell who it was
        stack.callback(left_out.close, remove=True)
        for out in outs.values():
            stack.callback(out.close, remove=True)
        sources = _read_sources(read_documents(source, fields=fields, format=format), bool(fields), group)
        batches = iter(lambda: list(islice(sources, BATCH)), [])
        for batch in run_ordered(make_examples, batches, job, workers if vault is None else 1):
            for outcome in batch:
                tally.add(outcome, outs, left_out)
                if progress is not None:
                    progress(tally.read)
        if not tally.tasks:
            common = tally.reasons.most_common(1)
            raise DataError(f"{source}: no document makes an example" + (f": {common[0][0]}" if common else ""))
        file_counts = tally.count_files(outs)
        manifest = Manifest(
            shape=shape.name,
            policy=_describe_policy(job, anonymised),
            versions=MappingProxyType(list_versions()),
            split={
                "shares": list(split.shares),
                "seed": split.seed,
                "keyed": split.key is not None,
                "by": group or "text",
            },
            counts=tally.count_documents(),
            left_out=dict(sorted(tally.reasons.items())),
            files=file_counts,
            labels=dict(sorted(tally.labels.items())),
            operators=dict(sorted(tally.operators.items())),
            prompts=_describe_prompts(shape, policy),
            risk=_measure_risk(risk, tally),
        )
        manifest_file = PartFile(target / FILE)
        stack.callback(manifest_file.close, remove=True)
        manifest_file.write(manifest.to_json().encode())
        (target / FILE).unlink(missing_ok=True)  # a manifest never stands beside files of another set
        for out in outs.values():
            if out.target.name in file_counts:
                out.finish()
        for name in NAMES if overwrite else ():  # files of an earlier set
            if f"{name}.jsonl" not in file_counts:
                (target / f"{name}.jsonl").unlink(missing_ok=True)
        left_out.finish()
        manifest_file.finish()
    return manifest


def _check_paths(source: str | Path, target: Path, outputs: Iterable[Path], overwrite: bool) -> None:
    if str(source) == "-":
        raise UsageError("a training set is made from a file or folder, not from standard input")
    if target.exists() and not target.is_dir():
        raise UsageError(f"{target} is a file; a folder is required")
    outputs = list(outputs)
    source_path, target_path = Path(source).resolve(), target.resolve()
    is_inside = source_path.is_dir() and source_path in (target_path, *target_path.parents)
    if is_inside or any(path.resolve() == source_path for path in outputs):
        raise UsageError(f"{target} is, or lies in, the source, which is never changed; choose another folder")
    if not overwrite and (existing := next((path for path in outputs if path.exists()), None)):
        raise UsageError(f"{existing} exists; overwriting must be asked for")


def _check_run(source: str | Path, target: Path, format: str | None, report: Mapping[str, Any]) -> None:
    """Check by the digest in a run's report that the source is what the run wrote."""
    settings, required = report.get("settings"), report.get("digest")
    if not isinstance(settings, Mapping) or "fingerprint" not in settings or not required:
        raise UsageError("the report of the run that anonymised the source is required: allonym anonymize --report")
    items, is_folder = list_items(source, target, format)
    rows = [(item.name, digest_file(item.source)) for item in items if item.source is not None and not item.refused]
    listing = "\n".join(f"{name}\0{digest}" for name, digest in rows).encode("utf-8", "surrogateescape")
    digest = blake2b(listing, digest_size=32).hexdigest() if is_folder else rows[0][1]
    if digest != required:
        raise DataError(f"{source} is not what the run wrote whose report was given: their digests differ")


def _read_sources(documents: Iterable[Document], chosen: bool, group: str) -> Iterator[Source | Failure]:
    """The documents, each with its id or number; one without the field that groups documents is left out."""
    for number, document in enumerate(documents, 1):
        document = extract_text(document, chosen=chosen)
        if not document.id:
            document = replace(document, id=str(number))
        try:
            yield Source(document, " ".join(read_field(document, group).split()) if group else "")
        except DataError as error:
            yield Failure(document.id, 0, str(error))


class _Tally:
    """Counts, and the sample whose risk is measured: the documents with the smallest draws."""

    def __init__(self, split: Split, sample: int) -> None:
        self._split, self._sample_size = split, sample
        self.read = self.documents = 0
        self.reasons: Counter[str] = Counter()
        self.tasks: Counter[str] = Counter()
        self.labels: Counter[str] = Counter()
        self.operators: Counter[str] = Counter()
        self._file_counts: dict[str, Counter[str]] = {}
        self._units: dict[str, set[bytes]] = {}
        self._sample: list[tuple[float, int, tuple[str, str]]] = []

    def add(self, outcome: Shaped | Failure, outs: Mapping[str, PartFile], left_out: Lines) -> None:
        """Write a document's examples into its split, or the reason why it makes none."""
        self.read += 1
        if isinstance(outcome, Failure):
            self.reasons[outcome.reason] += 1
            left_out.write(json.dumps({"id": outcome.id, "reason": outcome.reason}, ensure_ascii=False))
            return
        name = self._split.choose_split(outcome.unit)
        for task, line in outcome.examples:
            outs[name].write(line.encode("utf-8", "backslashreplace") + b"\n")
            self.tasks[task] += 1
        self.documents += 1
        self.labels.update(outcome.report.labels)
        self.operators.update(outcome.report.operators)
        counts = {"examples": len(outcome.examples), "documents": 1}
        self._file_counts.setdefault(name, Counter()).update(counts)
        unit = blake2b(outcome.unit.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        self._units.setdefault(name, set()).add(unit)
        if self._sample_size:
            entry = (-self._split.draw(f"sample {self.read}"), -self.read, outcome.texts)
            push = heapq.heappush if len(self._sample) < self._sample_size else heapq.heappushpop
            push(self._sample, entry)

    def list_sample(self) -> tuple[list[str], list[str]]:
        """Originals and anonymised texts, in the order of the source."""
        texts = [pair for _, _, pair in sorted(self._sample, key=lambda entry: -entry[1])]
        return [before for before, _ in texts], [after for _, after in texts]

    def count_documents(self) -> dict[str, Any]:
        """Counts of documents and examples."""
        return {
            "read": self.read,
            "documents": self.documents,
            "left_out": self.reasons.total(),
            "examples": dict(sorted(self.tasks.items())),
        }

    def count_files(self, outs: Mapping[str, PartFile]) -> dict[str, dict[str, Any]]:
        """Counts and digest of each file that has examples."""
        return {
            out.target.name: {
                **self._file_counts[name],
                "units": len(self._units[name]),
                "bytes": out.length,
                "blake2b": out.hash.hexdigest(),
            }
            for name, out in outs.items()
            if name in self._file_counts
        }


def _describe_policy(job: Job, anonymised: Mapping[str, Any] | None) -> dict[str, Any]:
    if anonymised is None:
        return {
            "name": job.policy.name,
            "fingerprint": job.policy.fingerprint(),
            "anonymised": "here",
            "keyed": job.key is not None,
            "vault": job.vault is not None,
        }
    settings = anonymised["settings"]
    return {
        "name": settings.get("policy"),
        "fingerprint": settings["fingerprint"],
        "anonymised": "before",
        "keyed": settings.get("keyed"),
        "vault": settings.get("vault", False),
        "run": anonymised.get("digest"),
    }


def _describe_prompts(shape: Shape, policy: Policy) -> dict[str, Any]:
    digest = blake2b("\0".join(shape.prompts).encode("utf-8", "surrogatepass"), digest_size=32).hexdigest()
    findings = sum(len(detect(text, policy)) for text in shape.prompts)
    return {"texts": len(shape.prompts), "blake2b": digest, "findings": findings}


def _measure_risk(risk: Risk | None, tally: _Tally) -> Mapping[str, Any]:
    if risk is None:
        return {"none": "not asked for"}
    before, after = tally.list_sample()
    return {"documents": len(after), **risk(before if any(before) else [], after)}
