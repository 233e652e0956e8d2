"""From a source to the files of a training set: read, anonymise, shape, split, write all or nothing."""

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

from allonym.batch import Key, Result, run_ordered, run_records
from allonym.document import Document, Interval
from allonym.errors import DataError, UsageError
from allonym.export.manifest import FILE, Manifest
from allonym.export.records import Record, assembled, record_of, speakers
from allonym.export.shapes import Shape
from allonym.export.split import NAMES, Split
from allonym.files import read_documents
from allonym.files.items import list_items
from allonym.files.output import Lines, PartFile, digest_of
from allonym.files.runreport import versions
from allonym.pipeline import detect
from allonym.policy import Policy

if TYPE_CHECKING:
    from allonym.replace import Keeper

BATCH = 32
"""Documents that a worker gets at once."""

Risk = Callable[[Sequence[str], Sequence[str]], Mapping[str, Any]]
"""Originals and anonymised texts of a sample to what is to be said of their risk. The originals are empty where the
texts were anonymised before."""


@dataclass(frozen=True, slots=True)
class Job:
    """What every batch needs: how to anonymise, and what to make. ``before``: the texts are anonymised already."""

    policy: Policy
    shape: Shape
    key: Key = field(default=None, repr=False)
    vault: Keeper | None = field(default=None, repr=False)
    scope: str = ""
    before: bool = False


@dataclass(frozen=True, slots=True)
class Made:
    """What became of a document.

    Attributes:
        id: its id.
        reason: why it is left out; empty where it is not. It holds no text.
        examples: (task, example as a line of JSON).
        labels, operators: counts.
        texts: before and after, for the sample whose risk is measured.
        unit: what stays together with it: of its text what no replacement took, so that texts which become the same
            are in one split; or the value of the field by which documents are grouped.
    """

    id: str
    reason: str = ""
    examples: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    labels: Mapping[str, int] = field(default_factory=dict)
    operators: Mapping[str, int] = field(default_factory=dict)
    texts: tuple[str, str] = field(default=("", ""), repr=False)
    unit: str = field(default="", repr=False)


def make(job: Job, records: Sequence[Record]) -> list[Made]:
    """Anonymise some documents and shape them: the function that the workers run."""
    wanted: list[Document | str] = []
    for record in records:
        try:
            wanted.append(assembled(record, job.shape.fields, turns=job.shape.turns))
        except DataError as error:
            wanted.append(str(error))
    documents = [one for one in wanted if isinstance(one, Document)]
    if job.before:
        results = iter([Result(d.id, d.part_texts()) for d in documents])
    else:
        done = run_records(documents, job.policy, job.key, plans=False, vault=job.vault, scope=job.scope)
        results = iter(done)
    out = []
    for record, one in zip(records, wanted, strict=True):
        if isinstance(one, str):
            out.append(Made(record.id, one))
            continue
        result = next(results)
        if result.parts is None:
            out.append(Made(record.id, result.error or "unknown"))
            continue
        try:
            found = job.shape.examples(speakers(record) if job.shape.turns else (), result.parts)
        except DataError as failed:
            out.append(Made(record.id, str(failed)))
            continue
        lines = tuple((task, json.dumps(example, ensure_ascii=False)) for task, example in found)
        before = "" if job.before else "\n".join(one.part_texts())
        counts = dict(result.labels), dict(result.operators)
        unit = _outline(record.document.text, result.covered)
        out.append(Made(record.id, "", lines, *counts, (before, "\n".join(result.parts)), unit))
    return out


def _outline(text: str, covered: Sequence[Interval]) -> str:
    """A text without what was replaced, with single blanks."""
    pieces, at = [], 0
    for start, end in sorted(place for place in covered if place[0] < len(text)):  # behind it are the fields
        pieces.append(text[at:start])
        at = max(at, end)
    return " ".join("\0".join([*pieces, text[at:]]).split())


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
    loaded, split, target = Policy.load(policy), split or Split(), Path(target)
    if vault is not None and key is None:
        key = vault.operator_key
    job = Job(loaded, shape, key, vault, scope, anonymised is not None)
    files = {name: target / f"{name}.jsonl" for name in split.names}
    aside = target / "quarantine.jsonl"
    _check(source, target, [*(target / f"{name}.jsonl" for name in NAMES), target / FILE, aside], overwrite)
    tally = _Tally(split, sample if risk else 0)
    if anonymised is not None:
        _check_run(source, target, format, anonymised)
    with ExitStack() as stack:
        outs = {name: PartFile(path) for name, path in files.items()}
        left = Lines(aside, private=True)  # ids may tell who it was
        stack.callback(left.close, remove=True)
        for out in outs.values():
            stack.callback(out.close, remove=True)
        batches = _batches(_units(read_documents(source, fields=fields, format=format), bool(fields), group))
        for made in run_ordered(_work, batches, job, workers if vault is None else 1):
            for one in made:
                tally.take(one, outs, left)
                if progress is not None:
                    progress(tally.read)
        if not tally.examples:
            why = tally.reasons.most_common(1)
            raise DataError(f"{source}: no document makes an example" + (f": {why[0][0]}" if why else ""))
        counted = tally.files(outs)
        manifest = Manifest(
            shape.name,
            _said(job, anonymised, vault),
            MappingProxyType(versions()),
            {"shares": list(split.shares), "seed": split.seed, "keyed": split.key is not None, "by": group or "text"},
            tally.counts(),
            dict(sorted(tally.reasons.items())),
            counted,
            dict(sorted(tally.labels.items())),
            dict(sorted(tally.operators.items())),
            _prompts(shape, loaded),
        )
        manifest = replace(manifest, risk=_risk(risk, tally))
        told = PartFile(target / FILE)
        stack.callback(told.close, remove=True)
        told.write(manifest.to_json().encode())
        (target / FILE).unlink(missing_ok=True)  # a manifest never stands beside files of another set
        for out in outs.values():
            if out.target.name in counted:
                out.finish()
        for name in NAMES if overwrite else ():  # of the set before
            if f"{name}.jsonl" not in counted:
                (target / f"{name}.jsonl").unlink(missing_ok=True)
        left.finish()
        told.finish()
    return manifest


def _check(source: str | Path, target: Path, made: Iterable[Path], overwrite: bool) -> None:
    if str(source) == "-":
        raise UsageError("a training set is made of a file or folder, since its documents are read before it is split")
    if target.exists() and not target.is_dir():
        raise UsageError(f"{target} is a file; a folder is required")
    read, into = Path(source).resolve(), target.resolve()
    inside = read.is_dir() and read in (into, *into.parents)
    if inside or any(path.resolve() == read for path in made):
        raise UsageError(f"{target} is, or lies in, what is read, which is never changed")
    if not overwrite and (there := next((path for path in made if path.exists()), None)):
        raise UsageError(f"{there} exists; overwriting must be asked for")


def _check_run(source: str | Path, target: Path, format: str | None, report: Mapping[str, Any]) -> None:
    """See that the source is what the run wrote, by the digest in its report."""
    settings, wanted = report.get("settings"), report.get("digest")
    if not isinstance(settings, Mapping) or "fingerprint" not in settings or not wanted:
        raise UsageError("the report of the run that anonymised the source is required: allonym anonymize --report")
    items, folder = list_items(source, target, format)
    rows = [(item.name, digest_of(item.source)) for item in items if item.source is not None and not item.refused]
    told = "\n".join(f"{name}\0{digest}" for name, digest in rows).encode("utf-8", "surrogateescape")
    found = blake2b(told, digest_size=32).hexdigest() if folder else rows[0][1]
    if found != wanted:
        raise DataError(f"{source} is not what the run wrote whose report was given: their digests differ")


Unit = tuple[str, Record, str]
"""The value of the field by which documents are grouped, the record, and why it is left out."""


def _units(documents: Iterable[Document], chosen: bool, group: str) -> Iterator[Unit]:
    for number, document in enumerate(documents, 1):
        record = record_of(document, chosen=chosen)
        if not record.id:
            record = replace(record, id=str(number))
        try:
            yield (" ".join(record.value(group).split()) if group else ""), record, ""
        except DataError as error:
            yield "", record, str(error)


def _batches(units: Iterator[Unit]) -> Iterator[list[Unit]]:
    return iter(lambda: list(islice(units, BATCH)), [])


def _work(job: Job, units: list[Unit]) -> list[Made]:
    made = iter(make(job, [record for _, record, reason in units if not reason]))
    done = [(group, Made(record.id, reason) if reason else next(made)) for group, record, reason in units]
    return [replace(one, unit=group) if group else one for group, one in done]


class _Tally:
    """Counts, and the sample whose risk is measured: the documents with the smallest draws."""

    def __init__(self, split: Split, sample: int) -> None:
        self._split, self._size = split, sample
        self.read = self.kept = self.examples = 0
        self.reasons: Counter[str] = Counter()
        self.tasks: Counter[str] = Counter()
        self.labels: Counter[str] = Counter()
        self.operators: Counter[str] = Counter()
        self._per: dict[str, Counter[str]] = {}
        self._units: dict[str, set[bytes]] = {}
        self._sample: list[tuple[float, int, tuple[str, str]]] = []

    def take(self, made: Made, outs: Mapping[str, PartFile], left: Lines) -> None:
        """Write one document's examples into its split, or why there are none."""
        self.read += 1
        if made.reason:
            self.reasons[made.reason] += 1
            left.write(json.dumps({"id": made.id, "reason": made.reason}, ensure_ascii=False))
            return
        name = self._split.of(made.unit)
        for task, line in made.examples:
            outs[name].write(line.encode("utf-8", "backslashreplace") + b"\n")
            self.tasks[task] += 1
        self.kept += 1
        self.examples += len(made.examples)
        self.labels.update(made.labels)
        self.operators.update(made.operators)
        self._per.setdefault(name, Counter()).update({"examples": len(made.examples), "documents": 1})
        self._units.setdefault(name, set()).add(_mark(made.unit))
        if self._size:
            entry = (-self._split.draw(f"sample {self.read}"), -self.read, made.texts)
            push = heapq.heappush if len(self._sample) < self._size else heapq.heappushpop
            push(self._sample, entry)

    def sample(self) -> tuple[list[str], list[str]]:
        """Originals and anonymised texts, in the order of the source."""
        texts = [pair for _, _, pair in sorted(self._sample, key=lambda entry: -entry[1])]
        return [before for before, _ in texts], [after for _, after in texts]

    def counts(self) -> dict[str, Any]:
        """Of documents and examples."""
        left = self.reasons.total()
        return {
            "read": self.read,
            "documents": self.kept,
            "left_out": left,
            "examples": dict(sorted(self.tasks.items())),
        }

    def files(self, outs: Mapping[str, PartFile]) -> dict[str, dict[str, Any]]:
        """Of each file that has examples."""
        return {
            out.target.name: {
                **self._per[name],
                "units": len(self._units[name]),
                "bytes": out.length,
                "blake2b": out.hash.hexdigest(),
            }
            for name, out in outs.items()
            if name in self._per
        }


def _mark(unit: str) -> bytes:
    return blake2b(unit.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _said(job: Job, anonymised: Mapping[str, Any] | None, vault: object) -> dict[str, Any]:
    if anonymised is None:
        keyed = {"keyed": job.key is not None, "vault": vault is not None}
        return {"name": job.policy.name, "fingerprint": job.policy.fingerprint(), "anonymised": "here", **keyed}
    settings = anonymised["settings"]
    told = {"name": settings.get("policy"), "fingerprint": settings["fingerprint"], "anonymised": "before"}
    return {
        **told,
        "keyed": settings.get("keyed"),
        "vault": settings.get("vault", False),
        "run": anonymised.get("digest"),
    }


def _prompts(shape: Shape, policy: Policy) -> dict[str, Any]:
    given = shape.prompts
    said = blake2b("\0".join(given).encode("utf-8", "surrogatepass"), digest_size=32).hexdigest()
    return {"texts": len(given), "blake2b": said, "findings": sum(len(detect(text, policy)) for text in given)}


def _risk(risk: Risk | None, tally: _Tally) -> Mapping[str, Any]:
    if risk is None:
        return {"none": "not asked for"}
    before, after = tally.sample()
    return {"documents": len(after), **risk(before if any(before) else [], after)}
