"""Names for detectors, operators and readers: literal tables, entry points and ``register()``.

A registry maps a name to ``"module:attribute"``, so that nothing is imported before it is used. Other packages
add names through entry points in the group ``allonym.<kind>`` or by calling :meth:`Registry.register`.

Options of detectors and of the endpoint of a language model are the tables ``[detect]`` and ``[llm]`` of a policy.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import entry_points
from types import MappingProxyType
from typing import Any

from allonym.errors import UnknownNameError, UsageError
from allonym.settings import SettingGroup, declare_setting, list_settings


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
        "flair": "allonym.detection.adapters.recognizers:build_flair_detector",
        "gliner": "allonym.detection.adapters.gliner:build_detector",
        "llm": "allonym.detection.adapters.llm:build_detector",
        "mitie": "allonym.detection.adapters.recognizers:build_mitie_detector",
        "presidio": "allonym.detection.adapters.presidio:build_detector",
        "spacy": "allonym.detection.adapters.recognizers:build_spacy_detector",
        "transformers": "allonym.detection.adapters.transformers:build_detector",
        "word_tagger": "allonym.detection.adapters.recognizers:build_word_detector",
    },
)
"""Factories ``(Policy) -> ((Document) -> Iterable[Span])``."""

MODES = ("union", "intersection", "vote")
JSON_MODES = ("schema", "object", "none")


_LABELS = declare_setting(
    {}, "the model's labels to ours, if they differ; an empty one drops the label", noun="label or nothing"
)
_SCORE = declare_setting(0.85, "score of findings without a score", low=0, high=1)
_THRESHOLD = declare_setting(
    0.5, "least probability of a finding; scores are shifted so that it becomes 0.5", low=0, high=1
)
_BATCH = declare_setting(
    1, "texts that the model reads at once; above 1 is faster, but the last digits of scores may change", low=1
)


def _declare_path(says: str) -> Any:
    """Declare a file or folder beside the policy, or else a plain name."""
    return declare_setting("", says, noun="path")


class TaggerOptions(SettingGroup):
    """Options of the tagger."""

    model: str = _declare_path("folder of a tagger that 'allonym train ner' made; by default the embedded one")
    threads: int = declare_setting(1, "windows of a long text computed at once; results do not depend on it", low=1)
    gpu: bool = declare_setting(False, "use a GPU if the installed onnxruntime supports one")
    name_parts: bool = declare_setting(False, "label first and last names separately, instead of one PERSON")


class SpacyOptions(SettingGroup):
    """Options of spaCy."""

    model: str = _declare_path("folder of a pipeline, or name of an installed one")
    labels: Mapping[str, str] = _LABELS
    spans: str = declare_setting("", "group of doc.spans to read in addition to doc.ents")
    score: float = _SCORE
    batch_size: int = _BATCH


class FlairOptions(SettingGroup):
    """Options of Flair."""

    model: str = _declare_path("file of a sequence tagger")
    labels: Mapping[str, str] = _LABELS
    threshold: float = _THRESHOLD
    batch_size: int = _BATCH
    device: str = declare_setting("cpu", "where the model runs, as PyTorch names it: cpu, cuda, cuda:1")
    allow_download: bool = declare_setting(False, "whether the model may be fetched from the network")


class GlinerOptions(FlairOptions):
    """Options of GLiNER."""

    model: str = _declare_path("folder of a model, or its name on the hub")
    labels: Mapping[str, str] = declare_setting(
        {}, "further prompts to our labels; an empty one is not asked", noun="label or nothing"
    )


class TransformersOptions(FlairOptions):
    """Options of Transformers."""

    model: str = _declare_path("folder of a token classifier, or its name on the hub")


class WordTaggerOptions(SettingGroup):
    """Options of a small tagger with labels of its own."""

    model: str = _declare_path("clinical_spanish, or a folder that python -m allonym.train.multilingual wrote")
    labels: Mapping[str, str] = _LABELS
    threshold: float = declare_setting(0.3, "least chance of a word to be part of a finding", low=0, high=1)


class LlmOptions(SettingGroup):
    """Options of the language model as a detector."""

    labels: Mapping[str, str] = _LABELS
    words: int = declare_setting(400, "words of a window; neighbouring windows share 40", low=1)
    score: float = declare_setting(0.85, "score of all findings", low=0, high=1)


class PresidioOptions(SettingGroup):
    """Options of Presidio."""

    recognizers: tuple[str, ...] = declare_setting(
        (), "classes of predefined recognizers; by default those that need no model"
    )
    config: str = _declare_path("Presidio's YAML file of recognizers, instead of the list")
    model: str = _declare_path("spaCy pipeline for names and for context words; by default none")
    labels: Mapping[str, str] = _LABELS


class MitieOptions(SettingGroup):
    """Options of MITIE."""

    model: str = _declare_path("file of a named entity extractor, or the folder that allonym train wrote")
    features: str = _declare_path("file of its word features, if the model was saved without them")
    labels: Mapping[str, str] = _LABELS
    threshold: float = _THRESHOLD


class EnsembleOptions(SettingGroup):
    """Options of the ensemble."""

    members: tuple[str, ...] = declare_setting(
        (), "detectors, at least two, that run as members of this one only", noun="detector"
    )
    mode: str = declare_setting(
        "union",
        "findings that count: of any member (union), of all (intersection), or of some (vote)",
        one_of=MODES,
        noun="mode",
    )
    votes: int = declare_setting(2, "members that a vote needs", low=1)
    labels: Mapping[str, str] = declare_setting(
        {}, "modes of single labels; they also apply to labels below", one_of=MODES, noun="mode", key_noun="label"
    )


class DetectTable(SettingGroup):
    """what is looked for, by which detectors, and how strictly; a table for each that has options"""

    detectors: tuple[str, ...] = declare_setting(
        ("rules", "spoken", "lexicon", "speakers", "tagger"), "detectors that run", noun="detector"
    )
    labels: tuple[str, ...] = declare_setting((), "the only labels that are looked for, with those below", noun="label")
    exclude: tuple[str, ...] = declare_setting(
        (), "labels that are not looked for, nor those below; added to those of the extended policy", noun="label"
    )
    include: tuple[str, ...] = declare_setting(
        (), "labels that are looked for, with those below, although exclude names one above", noun="label"
    )
    technical: bool = declare_setting(
        True, "in code, logs and data, count only secrets, contact data, numbers of people and accounts, and names"
    )
    public_figures: str = declare_setting(
        "cover",
        "cover or keep: whether full names of well-known people stay, where no contact data stands beside them",
        one_of=("cover", "keep"),
    )
    operating_point: object = declare_setting(None, "how much of names the tagger covers", noun="operating point")
    operating_points: Mapping[str, object] = declare_setting(
        {}, "operating points of single labels", noun="operating point", key_noun="label"
    )
    ensemble: EnsembleOptions = EnsembleOptions()
    flair: FlairOptions = FlairOptions()
    gliner: GlinerOptions = GlinerOptions()
    llm: LlmOptions = LlmOptions()
    mitie: MitieOptions = MitieOptions()
    presidio: PresidioOptions = PresidioOptions()
    spacy: SpacyOptions = SpacyOptions()
    tagger: TaggerOptions = TaggerOptions()
    transformers: TransformersOptions = TransformersOptions()
    word_tagger: WordTaggerOptions = WordTaggerOptions()


DETECTOR_OPTIONS = {setting.name: setting.kind for setting in list_settings(DetectTable) if setting.is_group}
"""Detector to the group of its options."""


class LlmTable(SettingGroup):
    """the endpoint of a language model, for the operator and the detector llm"""

    url: str = declare_setting("", "address of an endpoint for chat completions, up to /v1; empty: no request is sent")
    model: str = declare_setting("", "name of the model, as the endpoint knows it")
    key_env: str = declare_setting("", "environment variable with the endpoint's key; empty: no key is sent")
    temperature: float = declare_setting(0.0, "sampling temperature, 0 or more; below 0 it is not sent")
    max_tokens: int = declare_setting(0, "most tokens of an answer; 0: the endpoint's default", low=0)
    timeout: float = declare_setting(
        60.0, "seconds for one request, up to the last byte of the answer", low=0, high=100_000
    )
    retries: int = declare_setting(4, "how often a request is repeated after a temporary error", low=0)
    requests_per_minute: int = declare_setting(0, "most requests per minute, for each process; 0: no limit", low=0)
    concurrency: int = declare_setting(4, "requests at the same time, for each process", low=1)
    json_mode: str = declare_setting(
        "schema",
        "how JSON is requested; if the endpoint refuses a mode, the next is used",
        one_of=JSON_MODES,
        noun="JSON mode",
    )
    cache: str = declare_setting(
        "", "folder of encrypted answers, for calls with a key; empty: no answers are kept", noun="folder"
    )
    prompts: Mapping[str, object] = declare_setting(
        {},
        "tables tags, names, detect, decode, summarise, rewrite; their parts replace ours",
        noun="prompt",
        key_noun="prompt name",
    )


LLM_PROMPTS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "tags": ("entities",),
        "names": ("entities",),
        "detect": ("labels", "text"),
        "decode": ("entities", "text"),
        "summarise": ("text",),
        "rewrite": ("entities", "text"),
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

ocr = Registry("ocr", {"rapidocr": "allonym.files.ocr:run_rapidocr", "tesseract": "allonym.files.ocr:run_tesseract"})
"""Functions ``(PIL image) -> words`` that read scanned pages; see :mod:`allonym.files.ocr`."""
