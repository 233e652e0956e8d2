"""The report of a run: counts, settings, versions and digests. It contains no text of documents."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from dataclasses import field
from functools import cache
from hashlib import blake2b
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from pathlib import Path
from typing import Any

from allonym.detection import TAGGER
from allonym.detection.languages import describe_unread, name_languages
from allonym.detection.other_languages import advise_package
from allonym.labels import UNREAD_TEXT
from allonym.plan import ReaderScore
from allonym.policy import Policy
from allonym.serial import Serialisable
from allonym.text.controls import escape_controls
from allonym.text.words import count_nouns

SCHEMA = 1
_DEPENDENCIES = (
    "google-re2", "numpy", "onnxruntime", "phonenumberslite", "py3langid", "python-stdnum", "cryptography", "lxml",
    "pyarrow",
)  # fmt: skip


class RunReport(Serialisable):
    """The report of a run.

    Attributes:
        documents: number of records, including those in quarantine, but for the files that were refused.
        quarantined: records left out because they could not be processed.
        characters: code points of the documents written.
        files: files written.
        refused: (file, reason) of the files of a folder that were not written.
        labels, operators: mentions per label, edits per operator.
        offline: number of replacements from the offline pseudonyms instead of the language model.
        unread: characters of the passages in which names were not looked for, by the ISO 639 code of their language.
        languages: the same of all passages that are not English.
        exceptions: cells of columns that are kept, in which an identifier was found and covered.
        reader: sums over the documents of what disturbs a reader, see :class:`~allonym.plan.ReaderScore`.
        treated, left: how often each field was anonymised, and left unchanged; content other than text is included, as
            ``pictures left out``.
        encodings: files that are not in UTF-8, by their encoding, which is kept.
        identifying_names: names of files and folders written that seem to hold a person's name or another identifier.
        identifying_headers: columns whose name in the first row seems to hold a name or an identifier and stays, as
            ``column 1``, with the number of files.
        identifying_ids: records whose id holds a word of a person's name that was covered in them.
        settings: policy, its fingerprint, whether a key was given, fields and format.
        versions: of allonym, Python and the packages that decide on findings; where a network ran, the digest of
            the English model and the kind of the processor, for which the bytes are the same.
        digest: BLAKE2b of the output; of a folder: over the files' paths and digests, in order.
        seconds: wall clock time, since the last resume.
        was_complete: whether an earlier call with ``resume`` had done all of it, so that this one wrote nothing.
    """

    documents: int = 0
    quarantined: int = 0
    characters: int = 0
    files: int = 0
    refused: tuple[tuple[str, str], ...] = ()
    labels: Mapping[str, int] = field(default_factory=dict)
    operators: Mapping[str, int] = field(default_factory=dict)
    reader: ReaderScore = field(default_factory=ReaderScore)
    treated: Mapping[str, int] = field(default_factory=dict)
    left: Mapping[str, int] = field(default_factory=dict)
    settings: Mapping[str, object] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    digest: str = ""
    seconds: float = 0.0
    offline: int = 0
    unread: Mapping[str, int] = field(default_factory=dict)
    languages: Mapping[str, int] = field(default_factory=dict)
    exceptions: int = 0
    encodings: Mapping[str, int] = field(default_factory=dict)
    identifying_names: int = 0
    identifying_ids: int = 0
    identifying_headers: Mapping[str, int] = field(default_factory=dict)
    was_complete: bool = False

    @property
    def exit_code(self) -> int:
        """0 if everything was written, 1 if a record or a file was left out."""
        return int(bool(self.quarantined or self.refused))

    def to_dict(self, texts: bool = False) -> dict[str, Any]:
        """Return a plain dictionary for JSON."""
        refused = [{"file": name, "reason": reason} for name, reason in self.refused]
        values = Serialisable.to_dict(self) | {"refused": refused, "seconds": round(self.seconds, 3)}
        return {"schema": SCHEMA, **values}

    def to_json(self) -> str:
        """Return :meth:`to_dict` as indented JSON with a final line end."""
        return json.dumps(self.to_dict(), ensure_ascii=False, indent=2) + "\n"

    def to_text(self) -> str:
        """Return the report as lines of text, without its digests."""
        speed = self.characters / self.seconds / 1e6 if self.seconds > 0.05 else 0.0
        rate = f", {speed:.2f} M characters/s" if speed >= 0.005 else ""
        lines = [
            f"{count_nouns(self.documents, 'document')}, {count_nouns(self.characters, 'character')}, "
            f"{count_nouns(self.files, 'file')} written, {self.seconds:.1f} s{rate}",
            f"policy {self.settings.get('policy')}, allonym {self.versions.get('allonym')}",
        ]
        if self.was_complete:
            lines[0] = "already complete: an earlier run wrote everything, from the same sources with the same settings"
        for title, counts in (("replaced", self.labels), ("operators", self.operators)):
            if counts:
                lines.append(f"{title}:")
                ordered = sorted(counts.items(), key=lambda kv: (-kv[1], kv[0]))
                lines += [f"  {name:<28}{count:>10,}" for name, count in ordered]
        if self.reader.replaced:
            lines.append(self.reader.to_text())
        beside = {name: n for name, n in self.treated.items() if is_beside_text(name)}
        if beside:
            lines.append(f"beside the text: {', '.join(f'{name} ({n:,})' for name, n in beside.items())}")
        fields = [name for name in self.treated if name not in beside]
        for title, names in (("fields treated", fields), ("fields left unchanged", [*self.left])):
            if names:
                lines.append(f"{title}: {', '.join(names)}")
        if fields and not self.settings.get("fields"):
            lines.append("--field NAME treats the named fields alone; --dry-run tells why each is treated")
        if self.encodings:
            listed = ", ".join(f"{name} ({count_nouns(n, 'file')})" for name, n in self.encodings.items())
            lines.append(f"encodings kept: {listed}; letters that they lack are written as the nearest ones")
        if self.exceptions:
            lines.append(f"columns left unchanged: {count_nouns(self.exceptions, 'cell')} covered, with an identifier")
        if self.identifying_names:
            what = count_nouns(self.identifying_names, "name")
            lines.append(f"warning: {what} of files or folders may identify somebody; --safe-names gives others")
        if self.identifying_ids:
            what = count_nouns(self.identifying_ids, "record")
            lines.append(f"warning: the ids of {what} hold a name; treat their column too, such as by --columns")
        if self.identifying_headers:
            listed = ", ".join(self.identifying_headers)
            lines.append(
                f"warning: the headers of {listed} may identify somebody, and stay; rename them in the original"
            )
        if self.settings.get("linked") and "pseudonym" in self.operators:
            lines.append(
                "pseudonyms agree in all documents of the scope: whoever has other pseudonymised texts of a person can "
                "recognise that person by them"
            )
        if self.offline:
            lines.append(f"model: {self.offline:,} values came from the offline pseudonyms; the plans' notes say why")
        if self.languages:
            listed = ", ".join(f"{name_languages([code])} ({n:,} characters)" for code, n in self.languages.items())
            lines.append(f"passages that are not English: {listed}")
        if self.unread:
            covered = UNREAD_TEXT in self.labels
            what = describe_unread(self.unread, self.characters, is_covered=covered)
            lines.append(f"warning: {what}{advise_package(self.unread)}")
        if self.quarantined:
            lines.append(f"{count_nouns(self.quarantined, 'record')} in quarantine, not in the output")
        for name, why in self.refused:
            lines.append(escape_controls(f"not written: {name}: {why}"))
        return "\n".join(lines) + "\n"


def is_beside_text(name: str) -> bool:
    """Tell whether a name among what was treated is that of content other than text, such as ``pictures left out``."""
    return name.endswith((" left out", " kept", " read by OCR"))


def list_package_versions(policy: Policy) -> dict[str, str]:
    """Return the versions of allonym, Python and the packages that decide on findings.

    Where a detector of the policy is a tagger, the model and the processor are named, too.
    """
    from allonym import __version__

    out = {"allonym": __version__, "python": platform.python_version()}
    for name in _DEPENDENCIES:
        try:
            out[name] = version(name)
        except PackageNotFoundError:
            continue
    if TAGGER in policy.detectors:
        out |= {"english model": _digest_english_model(), "processor": describe_processor()}
    return out


@cache
def _digest_english_model() -> str:
    folder = Path(str(files("allonym.models"))) / "english"
    return blake2b((folder / "tagger.onnx").read_bytes(), digest_size=8).hexdigest()


def describe_processor() -> str:
    """Return the processor's kind and its widest vector instructions, on which the last digits of scores depend."""
    import numpy as np

    config: Mapping[str, Any] = np.show_config(mode="dicts") or {}
    extensions = config.get("SIMD Extensions", {})
    return " ".join((platform.machine(), *(extensions.get("found") or extensions.get("baseline") or ())[-1:]))
