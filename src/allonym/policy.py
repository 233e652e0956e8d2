"""Policies: which labels are looked for, with which thresholds, and what replaces them. Presets are in ``policies/``.

A policy file is strict TOML: unknown keys, labels, operators and detectors are errors that name the nearest known ones.
A label that a policy looks for and has no rule for is suppressed, never kept.
"""

from __future__ import annotations

import os
import threading
import time
import tomllib
from collections.abc import Collection, Iterable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import cache, partial
from hashlib import blake2b
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import Any, get_args

from allonym import registry
from allonym.errors import PolicyError, UnknownNameError, check_names, tell_policy_errors
from allonym.labels import TAXONOMY, UNREAD_TEXT, Kind, Label, Taxonomy
from allonym.pattern import PatternRule
from allonym.protocol import TAG_NAMES, check_options, check_tag_style
from allonym.settings import (
    REQUIRED,
    Setting,
    SettingGroup,
    declare_setting,
    find_setting,
    list_defaults,
    read_present_values,
)
from allonym.text.terms import TermList as TermList
from allonym.text.terms import read_terms as read_terms

_NO_LLM = MappingProxyType(list_defaults(registry.LlmTable))


@dataclass(frozen=True, slots=True)
class Rule:
    """What replaces a label: an operator with its options, and the score that a finding needs."""

    operator: str
    options: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}))
    threshold: float | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Policy:
    """What to find and how to replace it. Immutable; compared and hashed by identity.

    Attributes:
        name, description, language: for people and reports. Language is an ISO 639-1 code, or ``auto``.
        unknown_language: what becomes of passages in languages that no detector reads: ``rules`` looks in them for what
            needs no reading, ``cover`` covers them whole, and ``refuse`` refuses the document.
        threshold: score from 0 to 1 that a finding needs where its label's rule names none.
        detectors: names from the detector registry; all of them run.
        labels: the only labels that are looked for, where ``every`` is false.
        every: whether all labels of the taxonomy are looked for, except ``exclude``.
        exclude: labels that are not looked for, each with its descendants.
        include: labels below those of ``exclude`` that are looked for all the same, with their descendants.
        technical: whether only what identifies people counts in code, logs and data: secrets, contact data, numbers of
            people and accounts, and names.
        public_figures: ``cover``, or ``keep`` where full names of well-known people, and of characters and works of
            fiction, stay.
        rules: label to :class:`Rule`; a label without one takes its nearest ancestor's, else ``default``.
        default: the rule of last resort.
        style, names: how tags are written, and whose names of labels they show, one of ``protocol.TAG_NAMES``.
        dictionary: terms to find in every document.
        exclusions: terms that are never covered, per label (``"*"``: any label).
        metadata: label to the keys of ``Document.meta`` that list its terms for that document.
        columns: how columns of tables are treated, by their names: ``keep``, ``text``, or the label of the identifier
            that each cell is. Other columns are looked at.
        patterns: further pattern rules.
        countries: the only countries whose rules run; empty: all.
        operating_points: label to how much of names the tagger covers: one of ``OPERATING_POINTS``, or the
            least probability of a finding; ``"*"`` holds for all other labels.
        tables: detector to its options, see :meth:`settings`.
        subject: the key of ``Document.meta`` that names the person whom a document is about; empty: none.
        images: what becomes of pictures in files: ``remove`` replaces them by grey ones, ``keep`` keeps them without
            their metadata.
        ocr: name of the OCR that reads pictures and scanned pages; empty: files with scanned pages are refused.
        formulas: what becomes of cells of CSV and TSV that a spreadsheet may read as formulas: ``keep`` leaves them,
            ``neutralise`` writes an apostrophe in front of them.
        llm: the endpoint of a language model: all keys of ``registry.LlmTable``. Without a ``url`` none is asked.
        consistent: where an entity has the same keyed replacement: in the ``document``, in all documents of its
            ``subject``, or in the ``scope`` that the caller names. ``auto``: in the scope, but for pseudonyms where no
            scope is named and no vault keeps them: then in the document, in the file of a table, or in the subject.
        taxonomy: the labels, including those that the policy adds.
    """

    name: str
    description: str = ""
    language: str = "en"
    unknown_language: str = "rules"
    threshold: float = 0.5
    detectors: tuple[str, ...] = list_defaults(registry.DetectTable)["detectors"]
    labels: tuple[str, ...] = ()
    every: bool = True
    exclude: tuple[str, ...] = ()
    include: tuple[str, ...] = ()
    technical: bool = True
    public_figures: str = "cover"
    rules: Mapping[str, Rule] = field(default_factory=lambda: MappingProxyType({}))
    default: Rule = Rule("suppress")
    style: str = "[{label}_{n}]"
    names: str = ""
    dictionary: tuple[TermList, ...] = ()
    exclusions: tuple[TermList, ...] = ()
    metadata: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))
    columns: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    patterns: tuple[PatternRule, ...] = ()
    countries: tuple[str, ...] = ()
    operating_points: Mapping[str, str | float] = field(default_factory=lambda: MappingProxyType({"*": "high-recall"}))
    tables: Mapping[str, Mapping[str, object]] = field(default_factory=lambda: MappingProxyType({}))
    subject: str = ""
    consistent: str = "auto"
    images: str = "remove"
    ocr: str = "rapidocr"
    formulas: str = "keep"
    llm: Mapping[str, object] = field(default_factory=lambda: _NO_LLM)
    taxonomy: Taxonomy = field(default=TAXONOMY, repr=False)

    @classmethod
    def load(cls, source: str | Path | Policy) -> Policy:
        """Load a preset by name, or a policy from a TOML file. A policy is returned unchanged.

        A file that has not changed since it was last read, nor any that it names, gives the same object again.

        Raises:
            PolicyError: the file is not a valid policy; the message says where.
            UnknownNameError: there is no such preset, key, label, operator or detector.
        """
        if isinstance(source, Policy):
            return source
        if isinstance(source, str) and source in presets():
            return _read_preset(source)
        path = Path(source)
        if path.suffix != ".toml" and not path.exists():
            raise UnknownNameError("policy preset", str(source), presets())
        return _load_file(path)

    @classmethod
    def only(cls, labels: Iterable[str], *, threshold: float | None = None) -> Policy:
        """The default policy restricted to some labels, without their descendants.

        Args:
            labels: labels of the taxonomy.
            threshold: score from 0 to 1 that a finding needs; by default the default policy's. Between 0 and 1 it is
                the tagger's operating point as well.
        """
        chosen = (labels,) if isinstance(labels, str) else tuple(labels)
        base = _read_preset("default")
        for label in chosen:
            base.taxonomy.get(label)
        if threshold is not None:
            point = float(threshold) if 0 < threshold < 1 else None
            base = base.with_threshold(_check_threshold(threshold, "threshold"), point)
        return replace(base, name="only", labels=chosen, every=False, exclude=(), include=())

    def changed(self, table: Mapping[str, object], where: str) -> Policy:
        """A copy that a table changes, in the form of a policy file that extends this policy.

        Raises:
            PolicyError, UnknownNameError: as for a file; the message begins with ``where``.
        """
        return _read_policy(dict(table), where, None, self)

    def with_(self, **changes: Any) -> Policy:
        """A copy with some attributes changed."""
        return replace(self, **changes)

    def with_threshold(self, threshold: float, operating_point: str | float | None = None) -> Policy:
        """A copy in which all labels share one threshold, whatever their rules say.

        Args:
            threshold: score from 0 to 1 that a finding needs.
            operating_point: the tagger's operating point for all labels; None: the points stay as they are.
        """
        rules = MappingProxyType({label: replace(rule, threshold=None) for label, rule in self.rules.items()})
        points = self.operating_points if operating_point is None else MappingProxyType({"*": operating_point})
        default = replace(self.default, threshold=None)
        return replace(self, threshold=threshold, rules=rules, default=default, operating_points=points)

    def looks_for(self, label: str) -> bool:
        """Whether the policy looks for a label."""
        if label == UNREAD_TEXT:
            return self.unknown_language == "cover"
        return (self.every or label in self.labels) and not self.leaves_out(label)

    def leaves_out(self, label: str) -> bool:
        """Whether ``exclude`` names a label, or the nearest label above it that ``exclude`` or ``include`` names."""
        lineage = self.taxonomy.lineage(label)
        return next((name in self.exclude for name in lineage if name in self.exclude or name in self.include), False)

    def rule(self, label: str) -> Rule:
        """The rule for a label: its own, its nearest ancestor's, or the default."""
        return next((self.rules[name] for name in self.taxonomy.lineage(label) if name in self.rules), self.default)

    def threshold_for(self, label: str) -> float:
        """The score from 0 to 1 that a finding with this label needs."""
        rules = (self.rules[name] for name in self.taxonomy.lineage(label) if name in self.rules)
        return next((rule.threshold for rule in rules if rule.threshold is not None), self.threshold)

    def operating_point_for(self, label: str) -> str | float:
        """The tagger's operating point for a label: its own, its nearest ancestor's, or the overall one."""
        points = self.operating_points
        return next((points[name] for name in (*self.taxonomy.lineage(label), "*") if name in points), "high-recall")

    def settings(self, detector: str) -> Mapping[str, Any]:
        """The options of a detector: those of its table, else the defaults of ``registry.DETECTOR_OPTIONS``."""
        group = registry.DETECTOR_OPTIONS.get(detector)
        return MappingProxyType({**(list_defaults(group) if group else {}), **self.tables.get(detector, {})})

    def fingerprint(self) -> str:
        """A digest of the whole policy, including its lists of terms, for run reports and resume checks."""
        listed_below = "taxonomy operating_points tables llm images ocr formulas unknown_language columns".split()
        parts = [repr(getattr(self, name)) for name in self.__dataclass_fields__ if name not in listed_below]
        parts += [
            repr(sorted(self.operating_points.items())),
            repr(_sort_tables(self.tables)),
            repr(_sort_tables(self.llm)),
        ]
        parts += [f"columns {sorted(self.columns.items())!r}"] if self.columns else []
        parts += [self.images] if self.images != "remove" else []
        parts += [f"ocr {self.ocr}"] if self.ocr != "rapidocr" else []
        parts += [f"formulas {self.formulas}"] if self.formulas != "keep" else []
        parts += [f"unread {self.unknown_language}"] if self.unknown_language != "rules" else []
        parts += [repr(sorted((k, r.operator, sorted(r.options.items()), r.threshold) for k, r in self.rules.items()))]
        parts += ["\0".join((t.label, *t.terms)) for t in (*self.dictionary, *self.exclusions)]
        parts += [repr((lab.name, lab.parent)) for lab in self.taxonomy if lab.name not in TAXONOMY]
        return blake2b("\1".join(parts).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


@cache
def presets() -> tuple[str, ...]:
    """The names of the policies that come with allonym."""
    folder = files("allonym").joinpath("policies")
    return tuple(sorted(p.name[:-5] for p in folder.iterdir() if p.name.endswith(".toml")))


@cache
def _read_preset(name: str) -> Policy:
    return _parse_policy(files("allonym").joinpath("policies", f"{name}.toml").read_bytes(), f"preset {name}", None)


FileState = tuple[object, ...]
_UNSETTLED = 2_000_000_000  # nanoseconds in which a second change of a file may leave its times as they are
_MOST_FILES = 64
_loaded_files: dict[tuple[str, str], tuple[dict[Path, FileState], Policy]] = {}
_loaded_files_lock = threading.Lock()
_files_of_policy: ContextVar[dict[Path, FileState]] = ContextVar("_files_of_policy")


def _load_file(path: Path) -> Policy:
    """Read a policy's file, unless it and the files that it names are as they were when it was last read."""
    key = (str(path), os.path.abspath(path))  # what a policy names beside it is relative to the working folder
    states, policy = _loaded_files.get(key, ({}, None))
    if policy is None or any(_read_file_state(file) != state for file, state in states.items()):
        states = {}
        token = _files_of_policy.set(states)
        try:
            _note_file(path)
            policy = _parse_policy(path.read_bytes(), str(path), path.parent)
        except OSError as error:
            raise PolicyError(f"cannot read policy {path}: {error.strerror}") from None
        finally:
            _files_of_policy.reset(token)
        if path.is_file():  # a pipe is read once
            with _loaded_files_lock:
                while len(_loaded_files) >= _MOST_FILES:
                    _loaded_files.pop(next(iter(_loaded_files)))
                _loaded_files[key] = (states, policy)
    _files_of_policy.get({}).update(states)  # of the policy that extends this one
    return policy


def _note_file(path: Path) -> None:
    """Remember the state of a file, before it is read, for the policy that is being loaded."""
    _files_of_policy.get({})[path] = _read_file_state(path)


def _read_file_state(path: Path) -> FileState:
    """Times, size and inode of a file; also a digest, while it is so new that they might miss a further change."""
    try:
        status = path.stat()
        state = (status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)
        is_settled = time.time_ns() - max(state[:2]) > _UNSETTLED
        return state if is_settled or not path.is_file() else (*state, blake2b(path.read_bytes()).digest())
    except OSError:
        return ()


def _sort_tables(value: Any) -> Any:
    return sorted((k, _sort_tables(v)) for k, v in value.items()) if isinstance(value, Mapping) else value


# Reading. PolicyFile is the only list of what a policy file may hold; the JSON schema and the docs derive from it.

SCHEMA = 1
TREATMENTS = ("keep", "text")
"""What may become of a column, beside the labels of identifiers."""

OPERATING_POINTS = ("high-recall", "balanced", "high-precision")


class TagTable(SettingGroup):
    """style and names: how tags are written"""

    style: str = declare_setting("[{label}_{n}]", "form of a tag", noun="style")
    names: str = declare_setting(
        "",
        "scheme, or language (language: the texts'), whose names of labels tags show",
        one_of=TAG_NAMES,
        noun="scheme",
    )


class LabelRow(SettingGroup):
    """tables with name, parent, kind, risk, description: labels that the policy adds"""

    name: str = declare_setting(REQUIRED, "name, in capitals, digits and underscores", noun="label")
    parent: str | None = declare_setting(None, "label above", noun="label")
    kind: Kind = declare_setting("direct", "how much the label identifies", one_of=get_args(Kind))
    risk: int = declare_setting(3, "harm if the text is left in", low=0, high=5)
    description: str = declare_setting("", "meaning")

    def __post_init__(self) -> None:
        """Check the values, and the form of the name."""
        super().__post_init__()
        if not self.name.isidentifier() or self.name != self.name.upper():
            raise PolicyError(f"label name must be in capitals, digits and underscores, got {self.name!r}")


class PolicyFile(SettingGroup):
    """A policy file."""

    schema: int = declare_setting(SCHEMA, "version of this format; 1", low=SCHEMA, high=SCHEMA)
    name: str = declare_setting("", "name of the policy")
    extends: str = declare_setting("", "preset or file that this policy starts from")
    description: str = declare_setting("", "one line for people")
    language: str = declare_setting("en", "ISO 639-1 code of the texts' language; auto: that of most of each document")
    unknown_language: str = declare_setting(
        "rules",
        "passages in a language that no detector reads: rules (only rules and lists work there), cover (all of it is "
        "covered) or refuse (no output for its document)",
        one_of=("rules", "cover", "refuse"),
    )
    threshold: float = declare_setting(
        0.5, "score from 0 to 1 that a finding needs; the tagger's need their operating point", low=0, high=1
    )
    subject: str = declare_setting("", "metadata key that names whom a document is about")
    consistent: str = declare_setting(
        "auto",
        "document, subject or scope: where the same entity gets the same keyed replacement; auto: in the scope, but "
        "pseudonyms only if a scope is named or a vault keeps them, else in the document, table or subject",
        one_of=("auto", "document", "subject", "scope"),
    )
    ocr: str = declare_setting(
        "rapidocr",
        "rapidocr, tesseract or the name of another OCR that reads pictures and scanned pages; empty: they are refused",
        noun="OCR",
    )
    images: str = declare_setting(
        "remove",
        "remove or keep: whether pictures in files become grey; what they show is never searched",
        one_of=("remove", "keep"),
    )
    formulas: str = declare_setting(
        "keep",
        "keep or neutralise: whether cells of CSV and TSV that a spreadsheet may read as formulas get an apostrophe",
        one_of=("keep", "neutralise"),
    )
    countries: tuple[str, ...] = declare_setting((), "ISO 3166 codes whose rules run; empty: all")
    detect: registry.DetectTable = registry.DetectTable()
    llm: registry.LlmTable = registry.LlmTable()
    tag: TagTable = TagTable()
    default: object = declare_setting(None, "operator and options for labels without a rule", noun="rule")
    rules: Mapping[str, object] = declare_setting(
        {}, "label to operator, options and threshold", noun="rule", key_noun="label"
    )
    dictionary: Mapping[str, object] = declare_setting(
        {}, "label to a list of terms, or to {file, column}", noun="terms", key_noun="label"
    )
    exclusions: Mapping[str, object] = declare_setting(
        {}, "label or '*' to terms that are not findings, or to {file, column}", noun="terms"
    )
    metadata: Mapping[str, object] = declare_setting(
        {}, "label to the metadata keys that list its terms per document", noun="metadata keys", key_noun="label"
    )
    columns: Mapping[str, str] = declare_setting(
        {}, "name of a column of tables to keep, text, or the label of the identifier in its cells", noun="treatment"
    )
    labels: tuple[LabelRow, ...] = ()
    patterns: tuple[object, ...] = declare_setting(
        (), "tables with name, label, pattern, score, context ...: patterns that the policy adds", noun="pattern"
    )


_PLAIN_KEYS = tuple("description language unknown_language threshold subject consistent images ocr formulas".split())
_THRESHOLD = find_setting(PolicyFile, "threshold")


def _check_threshold(value: object, where: str) -> float:
    with tell_policy_errors():
        return float(_THRESHOLD.check_value(value, where))


def _check_string(value: object, where: str) -> str:
    if not isinstance(value, str):
        raise PolicyError(f"{where} must be a string, got {type(value).__name__}")
    return value


def _check_strings(value: object, where: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(v, str) for v in value):
        raise PolicyError(f"{where} must be a list of strings, got {type(value).__name__}")
    return tuple(value)


def _check_table(value: object, keys: Collection[str] | None, where: str) -> dict[str, Any]:
    """The table, if it has no other keys; None: it may have any."""
    if not isinstance(value, dict):
        raise PolicyError(f"{where} must be a table, got {type(value).__name__}")
    if keys is not None:
        check_names("key", value, keys, where)
    return value


def _parse_policy(data: bytes, where: str, folder: Path | None) -> Policy:
    try:
        raw = tomllib.loads(data.decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise PolicyError(f"{where}: not valid TOML: {error}") from None
    return _read_policy(raw, where, folder)


def _read_policy(raw: dict[str, Any], where: str, folder: Path | None, base: Policy | None = None) -> Policy:
    if raw.get("schema", SCHEMA) != SCHEMA:
        raise PolicyError(f"{where}: schema {raw['schema']!r} is not known; {SCHEMA} is required")
    with tell_policy_errors():
        table = read_present_values(PolicyFile, raw, where)  # types first: what names mean depends on two of the keys
        if parent := table.get("extends"):
            base = Policy.load(folder / parent if folder and parent.endswith(".toml") else parent)
        base = base or Policy(name="")
        rows = table.get("labels", ())
        taxonomy = base.taxonomy.extend(Label(r.name, r.parent, r.kind, r.risk, r.description) for r in rows)
        table = read_present_values(PolicyFile, raw, where, partial(_convert_value, taxonomy, folder))
    changes: dict[str, Any] = {key: table[key] for key in _PLAIN_KEYS if key in table}
    changes |= {"name": table.get("name") or Path(where).stem, "taxonomy": taxonomy, **table.get("tag", {})}
    if changes.get("consistent", base.consistent) == "subject" and not changes.get("subject", base.subject):
        raise PolicyError(f"{where}: consistent = 'subject' needs subject, the metadata key that names it")
    if "countries" in table:
        changes["countries"] = tuple(country.lower() for country in table["countries"])
    changes |= _merge_detect_table(table.get("detect", {}), taxonomy, f"{where}: detect", base)
    if "default" in table:
        changes["default"] = _read_rule(table["default"], f"{where}: default", base.default)
    rules = dict(base.rules)
    for name, row in table.get("rules", {}).items():
        fallback = changes.get("default", base.default)
        rules[name] = _read_rule(row, f"{where}: rules.{name}", rules.get(name), fallback)
    for key in ("dictionary", "exclusions"):
        items = table.get(key, {}).items()
        lists = [_read_term_list(n, v, f"{where}: {key}.{n}", folder, taxonomy) for n, v in items]
        changes[key] = (*getattr(base, key), *lists)
    return replace(
        base,
        **changes,
        llm=MappingProxyType({**base.llm, **table.get("llm", {})}),
        rules=MappingProxyType(rules),
        metadata=MappingProxyType({**base.metadata, **table.get("metadata", {})}),
        columns=MappingProxyType({**base.columns, **table.get("columns", {})}),
        patterns=(*base.patterns, *table.get("patterns", ())),
    )


def _merge_detect_table(table: dict[str, Any], taxonomy: Taxonomy, where: str, base: Policy) -> dict[str, Any]:
    out: dict[str, Any] = {key: table[key] for key in ("detectors", "technical", "public_figures") if key in table}
    for key, other in (("exclude", "include"), ("include", "exclude")):  # the file goes before what it extends
        inherited = (label for label in getattr(base, key) if label not in table.get(other, ()))
        out[key] = tuple(dict.fromkeys((*inherited, *table.get(key, ()))))
    if both := set(table.get("exclude", ())).intersection(table.get("include", ())):
        raise PolicyError(f"{where}: {min(both)} is in exclude and in include")
    if "labels" in table:
        out["labels"] = tuple(dict.fromkeys(d for name in table["labels"] for d in taxonomy.descendants(name)))
        out["every"] = False
    overall = {"*": table["operating_point"]} if "operating_point" in table else {}
    points = {**base.operating_points, **overall, **table.get("operating_points", {})}
    tables: dict[str, Mapping[str, Any]] = dict(base.tables)
    with_options = [name for name in table if name in registry.DETECTOR_OPTIONS]
    for name in with_options:
        tables[name] = MappingProxyType({**tables.get(name, {}), **table[name]})
    running = set(out.get("detectors", base.detectors))
    if "ensemble" in running:
        running.update(tables.get("ensemble", {}).get("members", ()))
    for name in with_options:
        if name not in running:
            raise PolicyError(f"{where}.{name} has options, but {name} is not among the detectors")
    return {**out, "operating_points": MappingProxyType(points), "tables": MappingProxyType(tables)}


def check_operating_point(value: Any, where: str) -> str | float:
    """Return an operating point: one of ``OPERATING_POINTS``, or a number between 0 and 1.

    Raises:
        UnknownNameError, PolicyError: it is neither.
    """
    if isinstance(value, str):
        check_names("operating point", (value,), OPERATING_POINTS, where)
        return value
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not 0 < value < 1:
        raise PolicyError(f"{where} must be {', '.join(OPERATING_POINTS)} or a number between 0 and 1, got {value!r}")
    return float(value)


def _convert_value(taxonomy: Taxonomy, folder: Path | None, setting: Setting, value: Any, where: str) -> Any:
    """Return what a policy keeps of a value, by what it names; names must be known."""
    match setting.noun:
        case "label":
            taxonomy.get(value, where)
        case "label or nothing" if value:
            taxonomy.get(value, where)
        case "detector":
            check_names("detector", (value,), registry.detectors.names(), where)
        case "OCR" if value:
            check_names("OCR", (value,), registry.ocr.names(), where)
        case "path" | "folder" if value:
            beside = (folder or Path()) / value
            _note_file(beside)
            return str(beside) if setting.noun == "folder" or beside.exists() else value
        case "operating point":
            return check_operating_point(value, where)
        case "metadata keys":
            return _check_strings(value, where)
        case "treatment":
            check_names("treatment", (value,), (*TREATMENTS, *(label.name for label in taxonomy)), where)
        case "style":
            _check_placeholder_style(value, where)
        case "prompt name":
            check_names("key", (value,), registry.LLM_PROMPTS, where)
        case "prompt":
            return _read_prompt(value, where)
        case "pattern":
            rule = PatternRule.from_row(value, where)
            taxonomy.get(rule.label, f"{where}: pattern {rule.name}")
            return rule
    return value


def _read_prompt(value: object, where: str) -> Mapping[str, object]:
    needed = registry.LLM_PROMPTS[where.rpartition(".")[2]]
    parts = _check_table(value, registry.LLM_PROMPT_PARTS, where)
    for part, text in parts.items():
        lacking = [n for n in needed if part == "user" and f"{{{n}}}" not in str(text)]
        if not isinstance(text, str) or lacking:
            content = f" that contains {{{lacking[0]}}}" if lacking else ""
            raise PolicyError(f"{where}.{part} must be a string{content}, got {type(text).__name__}")
    return MappingProxyType(dict(parts))


def _read_rule(raw: object, where: str, base: Rule | None, fallback: Rule | None = None) -> Rule:
    options = dict(_check_table(raw, None, where))
    threshold = options.pop("threshold", base.threshold if base else None)
    if threshold is not None:
        threshold = _check_threshold(threshold, f"{where}.threshold")
    operator = options.pop("operator", None)
    if operator is None:
        inherited = base or fallback
        if inherited is None:
            raise PolicyError(f"{where}: operator is required")
        operator, options = inherited.operator, {**inherited.options, **options}
    operator = _check_string(operator, f"{where}.operator")
    check_options(operator, options, where)
    return Rule(operator, MappingProxyType(options), threshold)


def _check_placeholder_style(style: str, where: str) -> None:
    check_tag_style(style, where)
    if style.format(label="A", n=1, form="") == style.format(label="B", n=1, form=""):
        raise PolicyError(f"{where}: {{label}} is required, got {style!r}")


def _read_term_list(label: str, value: object, where: str, folder: Path | None, taxonomy: Taxonomy) -> TermList:
    if label != "*":
        taxonomy.get(label, where)
    if isinstance(value, list):
        return TermList(label, _check_strings(value, where))
    source = _check_table(value, ("file", "column"), where)
    if not isinstance(source.get("file"), str):
        raise PolicyError(f"{where}.file must be a path")
    path = (folder or Path()) / source["file"]
    _note_file(path)
    return TermList(label, read_terms(path, source.get("column")))
