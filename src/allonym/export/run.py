"""From a source to the files of a training set: read, make examples, split, and write all or nothing."""

from __future__ import annotations

import heapq
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import field, replace
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from allonym.batch import Failure, Key, run_ordered
from allonym.document import Document
from allonym.errors import DataError, UsageError
from allonym.export.examples import Job, Shaped, make_examples, read_field_text, reduce_to_text
from allonym.export.shapes import Shape
from allonym.export.split import NAMES, Split
from allonym.files import read_documents
from allonym.files.items import check_targets_free, list_items
from allonym.files.output import LinesFile, combine_output_digests, digest_file
from allonym.files.runreport import list_package_versions
from allonym.partfile import PartFile
from allonym.pipeline import detect
from allonym.policy import Policy
from allonym.serial import Serialisable

if TYPE_CHECKING:
    from allonym.replace import Keeper

SCHEMA = 1
FILE = "manifest.json"
BATCH = 32
"""Documents that a worker gets at once."""

CHECK = (
    "allonym vault digests VAULT --secret-file KEY -o FILE.digests",
    "allonym evaluate generations OUTPUTS.jsonl --field completion --digests FILE.digests --baseline BEFORE.jsonl",
)
"""Commands that check the outputs of a model trained on the set for originals."""

Risk = Callable[[Sequence[str], Sequence[str]], Mapping[str, Any]]
"""From the originals and the anonymised texts of a sample to a description of their risk. The originals are empty
where the texts were anonymised before."""


class Manifest(Serialisable):
    """The content of ``manifest.json``.

    Attributes:
        shape: ``chat``, ``sft`` or ``sft-instruction``.
        policy: its name and fingerprint, whether a key and a vault were given, and whether the texts were anonymised
            ``here`` or ``before``; then with the digest of the run's report.
        versions: versions of allonym and of the packages that decide on findings.
        split: shares, seed, whether it is keyed, and by what documents are grouped.
        counts: documents read, in the set, and left out; examples by task.
        left_out: documents left out, by reason.
        files: name to counts of examples, documents and groups (``units``), bytes, and BLAKE2b (32 bytes).
        labels, operators: mentions per label and edits per operator, of the documents in the set.
        prompts: digest of the fixed texts of all examples, and the number of findings in them, which should be 0.
        risk: the measured risk; ``none`` says why none was measured.
    """

    shape: str
    policy: Mapping[str, Any]
    versions: Mapping[str, str]
    split: Mapping[str, Any]
    counts: Mapping[str, Any]
    left_out: Mapping[str, int]
    files: Mapping[str, Mapping[str, Any]]
    labels: Mapping[str, int]
    operators: Mapping[str, int]
    prompts: Mapping[str, Any]
    risk: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self, texts: bool = False) -> dict[str, Any]:
        """Plain values for JSON."""
        return {"schema": SCHEMA, **Serialisable.to_dict(self), "check": list(CHECK)}

    def to_json(self) -> str:
        """:meth:`to_dict` as indented JSON with a final line end."""
        return json.dumps(self.to_dict(), ensure_ascii=False, indent=2, allow_nan=False) + "\n"

    @property
    def exit_code(self) -> int:
        """0 where every document is in the set, 1 where one was left out."""
        return int(bool(self.left_out))


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
    _check_source_and_target(source, target, outputs, overwrite)
    if anonymised is not None:
        _check_run_digest(source, target, format, anonymised)
    tally = _Tally(split, sample if risk else 0)
    with ExitStack() as stack:
        outs = {name: PartFile(path) for name, path in files.items()}
        left_out = LinesFile(quarantine, private=True)  # ids may tell who it was
        stack.callback(left_out.close, remove=True)
        for out in outs.values():
            stack.callback(out.close, remove=True)
        sources = _read_sources(read_documents(source, fields=fields, format=format), bool(fields), group)
        batches = iter(lambda: list(islice(sources, BATCH)), [])
        for batch in run_ordered(make_examples, batches, job, workers if vault is None else 1):
            for outcome in batch:
                tally.write_outcome(outcome, outs, left_out)
                if progress is not None:
                    progress(tally.read)
        if not tally.tasks:
            common = tally.reasons.most_common(1)
            raise DataError(f"{source}: no document makes an example" + (f": {common[0][0]}" if common else ""))
        contents = tally.describe_counts_and_files(outs)
        manifest = Manifest(
            shape=shape.name,
            policy=_describe_policy(job, anonymised),
            versions=list_package_versions(policy),
            split={
                "shares": list(split.shares),
                "seed": split.seed,
                "keyed": split.key is not None,
                "by": group or "text",
            },
            prompts=_describe_prompts(shape, policy),
            risk=_measure_risk(risk, tally),
            **contents,
        )
        manifest_file = PartFile(target / FILE)
        stack.callback(manifest_file.close, remove=True)
        manifest_file.write(manifest.to_json().encode())
        (target / FILE).unlink(missing_ok=True)  # a manifest never stands beside files of another set
        for out in outs.values():
            if out.target.name in contents["files"]:
                out.finish()
        for name in NAMES if overwrite else ():  # files of an earlier set
            if f"{name}.jsonl" not in contents["files"]:
                (target / f"{name}.jsonl").unlink(missing_ok=True)
        left_out.finish()
        manifest_file.finish()
    return manifest


def _check_source_and_target(source: str | Path, target: Path, outputs: Iterable[Path], overwrite: bool) -> None:
    if str(source) == "-":
        raise UsageError("a training set is made from a file or folder, not from standard input")
    if target.exists() and not target.is_dir():
        raise UsageError(f"{target} is a file; a folder is required")
    outputs = list(outputs)
    source_path, target_path = Path(source).resolve(), target.resolve()
    is_inside = source_path.is_dir() and source_path in (target_path, *target_path.parents)
    if is_inside or any(path.resolve() == source_path for path in outputs):
        raise UsageError(f"{target} is, or lies in, the source, which is never changed; choose another folder")
    check_targets_free(outputs, (), overwrite)


def _check_run_digest(source: str | Path, target: Path, format: str | None, report: Mapping[str, Any]) -> None:
    """Check by the digest in a run's report that the source is what the run wrote."""
    settings, required = report.get("settings"), report.get("digest")
    if not isinstance(settings, Mapping) or "fingerprint" not in settings or not required:
        raise UsageError("the report of the run that anonymised the source is required: allonym anonymize --report")
    items, is_folder = list_items(source, target, format)
    rows = [(item.name, digest_file(item.source)) for item in items if item.source is not None and not item.refused]
    if combine_output_digests(rows, is_folder) != required:
        raise DataError(f"{source} is not what the run wrote whose report was given: their digests differ")


def _read_sources(
    documents: Iterable[Document], has_named_fields: bool, group: str
) -> Iterator[tuple[Document, str] | Failure]:
    """The documents, each with its id or number and its group; one without the field that groups them is left out."""
    for number, document in enumerate(documents, 1):
        document = reduce_to_text(document, has_named_fields=has_named_fields)
        if not document.id:
            document = replace(document, id=str(number))
        try:
            yield document, " ".join(read_field_text(document, group).split()) if group else ""
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
        self._file_counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._units: defaultdict[str, set[bytes]] = defaultdict(set)
        self._sample: list[tuple[float, int, tuple[str, str]]] = []

    def write_outcome(self, outcome: Shaped | Failure, outs: Mapping[str, PartFile], left_out: LinesFile) -> None:
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
        self._file_counts[name].update(examples=len(outcome.examples), documents=1)
        unit = outcome.unit.encode("utf-8", "surrogatepass")
        self._units[name].add(blake2b(unit, digest_size=16).digest())
        if self._sample_size:
            entry = (-self._split.draw(f"sample {self.read}"), -self.read, outcome.texts)
            push = heapq.heappush if len(self._sample) < self._sample_size else heapq.heappushpop
            push(self._sample, entry)

    def list_sample(self) -> tuple[list[str], list[str]]:
        """Originals and anonymised texts, in the order of the source."""
        texts = [pair for _, _, pair in sorted(self._sample, key=lambda entry: -entry[1])]
        return [before for before, _ in texts], [after for _, after in texts]

    def describe_counts_and_files(self, outs: Mapping[str, PartFile]) -> dict[str, Any]:
        """Return the manifest's counts, and what it says of each file that has examples."""
        files = {
            out.target.name: {
                **self._file_counts[name],
                "units": len(self._units[name]),
                "bytes": out.length,
                "blake2b": out.hash.hexdigest(),
            }
            for name, out in outs.items()
            if name in self._file_counts
        }
        tables = {"left_out": self.reasons, "labels": self.labels, "operators": self.operators}
        described: dict[str, Any] = {name: dict(sorted(table.items())) for name, table in tables.items()}
        examples = dict(sorted(self.tasks.items()))
        counts = {"read": self.read, "documents": self.documents, "left_out": self.reasons.total()}
        return {**described, "counts": {**counts, "examples": examples}, "files": files}


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
