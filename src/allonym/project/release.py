"""Signed releases: a ZIP with the files of a project in their formats, a report, and a manifest of digests.

The manifest names every other file with its SHA-256 and is signed with Ed25519 (RFC 8032). The key derives from the
vault's, so that all releases of a project have the same; whoever knows the public key can tell that a release is whole
and comes from the project. The same state of a project gives the same bytes.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from allonym import __version__
from allonym.errors import DataError, MissingExtra, UsageError
from allonym.evaluate.cards import person_cards
from allonym.files.run import anonymize_path
from allonym.files.runreport import RunReport
from allonym.partfile import PartFile
from allonym.project.project import Project
from allonym.report import render, statement_page
from allonym.text.words import count_nouns

SCHEMA = 1
MANIFEST, SIGNATURE, REPORT, DOCUMENTS = "manifest.json", "manifest.sig", "report.json", "documents"
STATEMENT = "statement"
_PURPOSE = "project release signature"
_TIME = (1980, 1, 1, 0, 0, 0)  # the earliest that a ZIP can tell
_MOST_MANIFEST = 1 << 26
_PIECE = 1 << 20


@dataclass(frozen=True, slots=True)
class Release:
    """A release that was written.

    Attributes:
        path: of the ZIP.
        files: in it, without report and manifest.
        sha256: of the ZIP, 64 hexadecimal digits.
        public_key: that verifies it, 64 hexadecimal digits.
        report: of the run.
        reviewed, documents: documents that two reviewers have settled, and all.
    """

    path: Path
    files: int
    sha256: str
    public_key: str
    report: RunReport = field(repr=False)
    reviewed: int
    documents: int


@dataclass(frozen=True, slots=True)
class VerifiedRelease:
    """A release whose files are those that its manifest names, and whose signature is right.

    Attributes:
        files: named in the manifest.
        public_key: that the signature was checked with.
        is_known_key: whether the caller named this key; otherwise the ZIP tells only that it is whole.
        manifest: what it says.
    """

    files: int
    public_key: str
    is_known_key: bool
    manifest: Mapping[str, Any] = field(repr=False)


def get_public_key(project: Project) -> str:
    """Return the public key of a project's releases, 64 hexadecimal digits."""
    return str(_load_private_key(project).public_key().public_bytes_raw().hex())


def write_release(
    project: Project,
    target: str | Path | None = None,
    *,
    unreviewed: bool = False,
    incomplete: bool = False,
    cards: bool = False,
    overwrite: bool = False,
    workers: int = 1,
) -> Release:
    """Anonymise all files of a project anew, and write them as a signed ZIP, atomically.

    Args:
        project: with files.
        target: the ZIP; by default ``releases/release-001.zip`` and so on in the project's folder.
        unreviewed: write it although documents are not settled by two reviewers.
        incomplete: leave out files and records that cannot be written.
        cards: count what is left about each person, and how many people fit it, for the statement and the report. It
            reads all texts once more; English.
        overwrite: replace an existing target.
        workers: number of processes.

    Raises:
        UsageError: there are no files, reviews are open, or the target exists.
        DataError: a file or record cannot be written.
        MissingExtra: ``cards`` needs the extra ``evaluate``.
    """
    if not project.files:
        raise UsageError(f"{project.folder} has no files; add some before a release")
    if target is not None:
        _check_target(Path(target), overwrite)
    project.update()
    _check_and_count_reviewed(project, unreviewed)
    with project.open_sources() as sources:
        reviewed, documents = _check_and_count_reviewed(project, unreviewed)  # others may have changed something
        path = Path(target) if target is not None else _choose_target(project)
        out = sources.with_name("safe")
        report = anonymize_path(
            sources,
            out,
            project.base_policy,
            vault=project.vault,
            scope=project.scope,
            findings=project.collect_settled_findings(),
            safe_names=True,
            quarantine=sources.with_name("quarantine.jsonl"),
            workers=workers,
        )
        if report.exit_code and not incomplete:
            numbers = sorted({Path(name).stem for name, _ in report.refused})
            reasons = "; ".join(sorted({reason for _, reason in report.refused}))
            raise DataError(
                f"{count_nouns(report.quarantined, 'record')} and {count_nouns(len(report.refused), 'file')} "
                "cannot be written"
                + (f" ({', '.join(numbers)}: {reasons})" if numbers else "")
                + "; --incomplete (incomplete=True) leaves them out"
            )
        names = {f"{DOCUMENTS}/{p.relative_to(out).as_posix()}": p for p in out.rglob("*") if p.is_file()}
        people = _make_cards(project) if cards else None
        digest = _write_zip(path, names, _describe_run(report), project, (reviewed, documents), people)
        counts = {"files": len(names), "reviewed": reviewed, "documents": documents}
        project.record_release({"name": path.name, "sha256": digest, **counts})
    return Release(path, len(names), digest, get_public_key(project), report, reviewed, documents)


def verify_release(path: str | Path, public_key: str | None = None) -> VerifiedRelease:
    """Check that a release holds exactly what its manifest names, and that the manifest is signed.

    Args:
        path: of the ZIP.
        public_key: that the project's owner published, 64 hexadecimal digits; None: the one that the ZIP names, which
            tells that it is whole, but not whose it is.

    Raises:
        DataError: it is no release, it was changed, or another key signed it.
    """
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            if len(set(names)) != len(names) or not {MANIFEST, SIGNATURE} <= set(names):
                raise DataError(f"{path} is no release of a project")
            if archive.getinfo(MANIFEST).file_size > _MOST_MANIFEST or archive.getinfo(SIGNATURE).file_size != 64:
                raise DataError(f"{path} is no release of a project")
            data, signature = archive.read(MANIFEST), archive.read(SIGNATURE)
            manifest = json.loads(data)
            key = str(manifest["public_key"])
            if public_key is not None and key != public_key.strip().lower():
                raise DataError(f"{path} names another key than the one that was given")
            Ed25519PublicKey.from_public_bytes(bytes.fromhex(key)).verify(signature, data)
            rows = {str(row["name"]): row for row in manifest["files"]}
            if set(rows) != set(names) - {MANIFEST, SIGNATURE}:
                raise DataError(f"{path} holds other files than its manifest names")
            for name, row in rows.items():
                if archive.getinfo(name).file_size != row["size"] or _digest_member(archive, name) != row["sha256"]:
                    raise DataError(f"{path}: {name} was changed")
    except InvalidSignature:
        raise DataError(f"{path}: the signature of its manifest is wrong") from None
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from None
    except (
        zipfile.BadZipFile,
        zlib.error,
        EOFError,
        ValueError,
        LookupError,
        TypeError,
        NotImplementedError,
        RuntimeError,
    ) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{path} is no release of a project, or is damaged") from None
    return VerifiedRelease(len(rows), key, public_key is not None, manifest)


def _load_private_key(project: Project) -> Any:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    return Ed25519PrivateKey.from_private_bytes(project.derive_key(_PURPOSE))


def _check_target(path: Path, overwrite: bool) -> None:
    if path.suffix.lower() != ".zip":
        raise UsageError(f"a release is a .zip file, got {path.suffix or 'no ending'}")
    if path.exists() and not overwrite:
        raise UsageError(f"{path} exists; --overwrite (overwrite=True in Python) replaces it")


def _choose_target(project: Project) -> Path:
    """Return the path of the next release. A file there that no release was recorded for is what a crash has left."""
    names = {row["name"] for row in project.releases}
    numbers = count(len(project.releases) + 1)
    return project.folder / "releases" / next(n for n in map("release-{:03}.zip".format, numbers) if n not in names)


def _check_and_count_reviewed(project: Project, unreviewed: bool) -> tuple[int, int]:
    """Return how many documents are settled, and how many there are."""
    documents = sum(file.documents for file in project.files)
    reviewed = sum(file.states.get("done", 0) for file in project.files)
    if reviewed < documents and not unreviewed:
        raise UsageError(
            f"{documents - reviewed} of {documents} documents are not settled by two reviewers; "
            "--unreviewed (unreviewed=True in Python) releases them all the same, and the manifest says so"
        )
    return reviewed, documents


def _describe_run(report: RunReport) -> dict[str, Any]:
    """Return the run's report without what differs from run to run."""
    return {name: value for name, value in report.to_dict().items() if name != "seconds"}


def _describe_reviews(project: Project, counts: tuple[int, int]) -> dict[str, Any]:
    """Return how the files were reviewed, in numbers."""
    reviews: dict[str, Any] = {"settled": counts[0], "documents": counts[1]}
    try:
        result = project.measure_reviews()
    except MissingExtra:
        return reviews
    return reviews | {name: value for name, value in result.to_dict().items() if name != "documents"}


def _make_cards(project: Project) -> dict[str, Any]:
    """Return a card for each person of each document, without words of the texts."""
    items = [item for file in project.files for item in project.read_documents(file.number) if item.has_text]
    texts = [item.anonymised for item in items]
    result = person_cards(texts, [item.document.text for item in items], ids=[item.id for item in items])
    return result.to_dict()


def _write_zip(
    path: Path,
    files: Mapping[str, Path],
    run: Mapping[str, Any],
    project: Project,
    counts: tuple[int, int],
    cards: Mapping[str, Any] | None,
) -> str:
    """Write the ZIP, and return its SHA-256."""
    report = {"run": run, "reviews": _describe_reviews(project, counts), "terms": len(project.terms)}
    if cards is not None:
        report["cards"] = cards
    papers = dict((_write_statement(report, len(files)), (REPORT, _dump(report))))
    rows: list[dict[str, Any]] = [
        {"name": name, "sha256": hashlib.sha256(data).hexdigest(), "size": len(data)} for name, data in papers.items()
    ]
    for name, file in sorted(files.items()):
        with file.open("rb") as stream:
            rows.append({"name": name, "sha256": _digest_stream(stream), "size": file.stat().st_size})
    manifest = _dump(
        {
            "schema": SCHEMA,
            "made_by": f"allonym {__version__}",
            "policy": {"name": project.base_policy.name, "fingerprint": project.base_policy.fingerprint()},
            "reviewed": {"settled": counts[0], "documents": counts[1]},
            "public_key": get_public_key(project),
            "files": sorted(rows, key=lambda row: str(row["name"])),
        }
    )
    signature = _load_private_key(project).sign(manifest)
    part = PartFile(path)
    try:
        with zipfile.ZipFile(part.stream, "w") as archive:
            for name, data in ((MANIFEST, manifest), (SIGNATURE, signature), *papers.items()):
                archive.writestr(_describe_member(name), data)
            for name, file in sorted(files.items()):
                with file.open("rb") as stream, archive.open(_describe_member(name), "w", force_zip64=True) as member:
                    while block := stream.read(_PIECE):
                        member.write(block)
        part.stream.seek(0)
        digest = _digest_stream(part.stream)
        part.finish()
    finally:
        part.close(remove=True)
    return digest


def _write_statement(report: Mapping[str, Any], files: int) -> tuple[str, bytes]:
    """Return the name and the content of the release's statement: HTML, or Markdown where HTML cannot be drawn."""
    page = statement_page(report["run"], cards=report.get("cards"), reviews=report["reviews"], files=files)
    try:
        return f"{STATEMENT}.html", render(page).encode()
    except MissingExtra:
        return f"{STATEMENT}.md", render(page, "markdown").encode()


def _describe_member(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, _TIME)
    info.compress_type = zipfile.ZIP_DEFLATED
    info.external_attr = 0o644 << 16
    info.create_system = 3
    return info


def _dump(value: Mapping[str, Any]) -> bytes:
    return (json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False) + "\n").encode("utf-8", "backslashreplace")


def _digest_member(archive: zipfile.ZipFile, name: str) -> str:
    with archive.open(name) as stream:
        return _digest_stream(stream)


def _digest_stream(stream: Any) -> str:
    state = hashlib.sha256()
    while block := stream.read(_PIECE):
        state.update(block)
    return state.hexdigest()
