"""Names for detectors, operators and readers: literal tables, entry points and ``register()``.

A registry maps a name to ``"module:attribute"``, so that nothing is imported before it is used. Other packages
add names through entry points in the group ``allonym.<kind>`` or by calling :meth:`Registry.register`.

``DETECTOR_KEYS`` lists the keys of a detector's table in a policy, ``[detect.NAME]``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import entry_points
from types import MappingProxyType
from typing import Literal

from allonym.errors import UnknownNameError, UsageError


class Registry:
    """The components of one kind, by name."""

    def __init__(self, kind: str, table: Mapping[str, str]) -> None:
        self.kind = kind
        self._table: dict[str, object] = dict(table)
        self._scanned = False

    def register(self, name: str, value: object) -> None:
        """Add ``name``; ``value`` is the component itself or ``"module:attribute"``. A registered name is an error."""
        if name in self._table:
            raise UsageError(f"{self.kind} {name!r} is registered already")
        self._table[name] = value

    def names(self) -> tuple[str, ...]:
        """Return all registered names, including those from entry points, sorted."""
        self._scan_entry_points()
        return tuple(sorted(self._table))

    def get(self, name: str, where: str = "") -> object:
        """Return the component called ``name``; raises :class:`UnknownNameError` with near matches."""
        if name not in self._table:
            self._scan_entry_points()
        try:
            value = self._table[name]
        except KeyError:
            raise UnknownNameError(self.kind, name, self._table, where) from None
        if isinstance(value, str):
            module, _, attribute = value.partition(":")
            value = getattr(import_module(module), attribute)
            self._table[name] = value
        return value

    def _scan_entry_points(self) -> None:
        if self._scanned:
            return
        self._scanned = True
        for point in entry_points(group=f"allonym.{self.kind}s"):
            self._table.setdefault(point.name, point.value)


detectors = Registry(
    "detector",
    {
        "rules": "allonym.detection.rules:build_detector",
        "spoken": "allonym.detection.spoken:build_detector",
        "lexicon": "allonym.detection.lexicon:build_detector",
        "speakers": "allonym.detection.speakers:build_detector",
        "tagger": "allonym.detection.tagger:build_detector",
        "ensemble": "allonym.detection.ensemble:build_detector",
        "flair": "allonym.detection.adapters.flair:build_detector",
        "gliner": "allonym.detection.adapters.gliner:build_detector",
        "llm": "allonym.detection.adapters.llm:build_detector",
        "mitie": "allonym.detection.adapters.mitie:build_detector",
        "presidio": "allonym.detection.adapters.presidio:build_detector",
        "spacy": "allonym.detection.adapters.spacy:build_detector",
        "transformers": "allonym.detection.adapters.transformers:build_detector",
    },
)
"""Factories ``(Policy) -> ((Document) -> Iterable[Span])``."""

MODES = ("union", "intersection", "vote")
JSON_MODES = ("schema", "object", "none")


@dataclass(frozen=True, slots=True)
class Key:
    """One key of a detector's table in a policy.

    Attributes:
        kind: the type of the value. ``path`` is a file or folder beside the policy, or else a plain name; ``unit`` a
            number from 0 to 1, ``count`` an integer from 1, ``names`` a list of strings, ``labels`` a table from a
            model's labels to ours (``""`` drops a label), ``modes`` a table from our labels to a mode of the ensemble,
            ``number`` a number, ``natural`` an integer from 0, ``folder`` a path beside the policy that need not exist
            yet, ``json`` one of ``JSON_MODES``, ``prompts`` a table as in ``LLM_PROMPTS``.
        default: the value if the table does not have the key.
        description: what the key does, for people.
    """

    kind: Literal[
        "text", "path", "flag", "unit", "count", "names", "labels", "mode", "modes",
        "number", "natural", "folder", "json", "prompts",
    ]  # fmt: skip
    default: object
    description: str


_LABELS = Key(
    "labels", MappingProxyType({}), "the model's labels to ours, if they differ; an empty one drops the label"
)
_THRESHOLD = Key("unit", 0.5, "least probability of a finding; scores are shifted so that it becomes 0.5")
_BATCH = Key(
    "count", 1, "texts that the model reads at once; above 1 is faster, but the last digits of scores may change"
)
_DEVICE = Key("text", "cpu", "where the model runs, as PyTorch names it: cpu, cuda, cuda:1")
_DOWNLOAD = Key("flag", False, "whether the model may be fetched from the network")
_TORCH_KEYS = {
    "labels": _LABELS,
    "threshold": _THRESHOLD,
    "batch_size": _BATCH,
    "device": _DEVICE,
    "allow_download": _DOWNLOAD,
}

DETECTOR_KEYS: Mapping[str, Mapping[str, Key]] = MappingProxyType(
    {
        "tagger": {
            "model": Key("path", "", "folder of a tagger that 'allonym train ner' made; by default the embedded one"),
            "threads": Key("count", 1, "windows of a long text computed at once; results do not depend on it"),
            "gpu": Key("flag", False, "use a GPU if the installed onnxruntime supports one"),
            "name_parts": Key("flag", False, "label first and last names separately, instead of one PERSON"),
        },
        "spacy": {
            "model": Key("path", "", "folder of a pipeline, or name of an installed one"),
            "labels": _LABELS,
            "spans": Key("text", "", "group of doc.spans to read in addition to doc.ents"),
            "score": Key("unit", 0.85, "score of findings without a score"),
            "batch_size": _BATCH,
        },
        "flair": {"model": Key("path", "", "file of a sequence tagger"), **_TORCH_KEYS},
        "gliner": {
            "model": Key("path", "", "folder of a model, or its name on the hub"),
            **_TORCH_KEYS,
            "labels": Key("labels", MappingProxyType({}), "further prompts to our labels; an empty one is not asked"),
        },
        "transformers": {
            "model": Key("path", "", "folder of a token classifier, or its name on the hub"),
            **_TORCH_KEYS,
        },
        "llm": {
            "labels": _LABELS,
            "words": Key("count", 400, "words of a window; neighbouring windows share 40"),
            "score": Key("unit", 0.85, "score of all findings"),
        },
        "presidio": {
            "recognizers": Key("names", (), "classes of predefined recognizers; by default those that need no model"),
            "config": Key("path", "", "Presidio's YAML file of recognizers, instead of the list"),
            "model": Key("path", "", "spaCy pipeline for names and for context words; by default none"),
            "labels": _LABELS,
        },
        "mitie": {
            "model": Key("path", "", "file of a named entity extractor, or the folder that allonym train wrote"),
            "features": Key("path", "", "file of its word features, if the model was saved without them"),
            "labels": _LABELS,
            "threshold": _THRESHOLD,
        },
        "ensemble": {
            "members": Key("names", (), "detectors, at least two, that run as members of this one only"),
            "mode": Key(
                "mode",
                "union",
                "findings that count: of any member (union), of all (intersection), or of some (vote)",
            ),
            "votes": Key("count", 2, "members that a vote needs"),
            "labels": Key("modes", MappingProxyType({}), "modes of single labels; they also apply to labels below"),
        },
    }
)
"""The keys of each detector's table."""

LLM_KEYS: Mapping[str, Key] = MappingProxyType(
    {
        "url": Key("text", "", "address of an endpoint for chat completions, up to /v1; empty: no request is sent"),
        "model": Key("text", "", "name of the model, as the endpoint knows it"),
        "key_env": Key("text", "", "environment variable with the endpoint's key; empty: no key is sent"),
        "temperature": Key("number", 0.0, "sampling temperature, 0 or more; below 0 it is not sent"),
        "max_tokens": Key("natural", 0, "most tokens of an answer; 0: the endpoint's default"),
        "timeout": Key("number", 60.0, "seconds for one request, up to the last byte of the answer"),
        "retries": Key("natural", 4, "how often a request is repeated after a temporary error"),
        "requests_per_minute": Key("natural", 0, "most requests per minute, for each process; 0: no limit"),
        "concurrency": Key("count", 4, "requests at the same time, for each process"),
        "json_mode": Key("json", "schema", "how JSON is requested; if the endpoint refuses a mode, the next is used"),
        "cache": Key("folder", "", "folder of encrypted answers, for calls with a key; empty: no answers are kept"),
        "prompts": Key(
            "prompts",
            MappingProxyType({}),
            "tables tags, names, detect, decode, summarise; their parts replace ours",
        ),
    }
)
"""The keys of a policy's table ``[llm]``."""

LLM_PROMPTS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "tags": ("entities",),
        "names": ("entities",),
        "detect": ("labels", "text"),
        "decode": ("entities", "text"),
        "summarise": ("text",),
    }
)
"""The names in braces that the part ``user`` of each prompt must contain."""

LLM_PROMPT_PARTS = ("system", "example", "answer", "user", "again")
"""Parts of a prompt: the system message, one example with its answer, the request, and the message that follows if the
first answer could not be used."""

operators = Registry(
    "operator",
    {
        "keep": "allonym.replace.operators:keep",
        "suppress": "allonym.replace.operators:suppress",
        "tag": "allonym.replace.operators:tag",
        "sanitize": "allonym.replace.operators:sanitize",
        "wild_tag": "allonym.replace.operators:wild_tag",
        "pseudonym": "allonym.replace.pseudonym:pseudonym",
        "llm": "allonym.replace.llm:llm",
        "seq2seq": "allonym.replace.proposals:seq2seq",
        "mask": "allonym.replace.operators:mask",
        "hash": "allonym.replace.operators:hash",
        "encrypt": "allonym.replace.operators:encrypt",
        "generalise": "allonym.replace.generalise:generalise",
        "shift_dates": "allonym.replace.dates:shift_dates",
    },
)
"""Operators; see :mod:`allonym.replace` for the protocol."""

ocr = Registry("ocr", {"tesseract": "allonym.files.pdf.scans:run_tesseract"})
"""Functions ``(PIL image) -> words`` that read scanned pages; see :mod:`allonym.files.pdf.scans`."""
