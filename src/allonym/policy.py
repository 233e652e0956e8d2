"""Policies: which labels are looked for, with which thresholds, and what replaces them. Presets are in ``policies/``.

A policy file is strict TOML: unknown keys, labels, operators and detectors are errors that name the nearest known ones.
A label that a policy looks for and has no rule for is suppressed, never kept.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from hashlib import blake2b
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import Any, get_args

from allonym import registry
from allonym.errors import PolicyError, UnknownNameError, check_names
from allonym.labels import SCHEMES, TAXONOMY, Kind, Label, Taxonomy
from allonym.pattern import PatternRule, has_toml_type
from allonym.protocol import check_options
from allonym.text.terms import TermList as TermList
from allonym.text.terms import read_terms as read_terms

SCHEMA = 1
_NO_LLM = MappingProxyType({name: key.default for name, key in registry.LLM_KEYS.items()})


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
        name, description, language: for people and reports. Language is an ISO 639-1 code.
        threshold: score from 0 to 1 that a finding needs where its label's rule names none.
        detectors: names from the detector registry; all of them run.
        labels: the only labels that are looked for, where ``every`` is false.
        every: whether all labels of the taxonomy are looked for, except ``exclude``.
        exclude: labels that are not looked for, each with its descendants.
        rules: label to :class:`Rule`; a label without one takes its nearest ancestor's, else ``default``.
        default: the rule of last resort.
        style, names: how tags are written, and the scheme whose names they show (``""``: allonym's own).
        dictionary: terms to find in every document.
        exclusions: terms that are never covered, per label (``"*"``: any label).
        metadata: label to the keys of ``Document.meta`` that list its terms for that document.
        patterns: further pattern rules.
        countries: the only countries whose rules run; empty: all.
        operating_points: label to the tagger's balance of recall and precision: one of ``OPERATING_POINTS``, or the
            least probability of a finding; ``"*"`` holds for all other labels.
        tables: detector to its options, see :meth:`settings`.
        subject: the key of ``Document.meta`` that names the person whom a document is about; empty: none.
        images: what becomes of pictures in files: ``remove`` replaces them by grey ones, ``keep`` keeps them without
            their metadata.
        ocr: name of the OCR that reads scanned pages; empty: files with scanned pages are refused.
        llm: the endpoint of a language model: all keys of ``registry.LLM_KEYS``. Without a ``url`` none is asked.
        consistent: where an entity has the same keyed replacement: in the ``document``, in all documents of its
            ``subject``, or in the ``scope`` that the caller names.
        taxonomy: the labels, including those that the policy adds.
    """

    name: str
    description: str = ""
    language: str = "en"
    threshold: float = 0.5
    detectors: tuple[str, ...] = ("rules", "spoken", "lexicon", "speakers", "tagger")
    labels: tuple[str, ...] = ()
    every: bool = True
    exclude: tuple[str, ...] = ()
    rules: Mapping[str, Rule] = field(default_factory=lambda: MappingProxyType({}))
    default: Rule = Rule("suppress")
    style: str = "[{label}_{n}]"
    names: str = ""
    dictionary: tuple[TermList, ...] = ()
    exclusions: tuple[TermList, ...] = ()
    metadata: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))
    patterns: tuple[PatternRule, ...] = ()
    countries: tuple[str, ...] = ()
    operating_points: Mapping[str, str | float] = field(default_factory=lambda: MappingProxyType({"*": "high-recall"}))
    tables: Mapping[str, Mapping[str, object]] = field(default_factory=lambda: MappingProxyType({}))
    subject: str = ""
    consistent: str = "scope"
    images: str = "remove"
    ocr: str = ""
    llm: Mapping[str, object] = field(default_factory=lambda: _NO_LLM)
    taxonomy: Taxonomy = field(default=TAXONOMY, repr=False)

    @classmethod
    def load(cls, source: str | Path | Policy) -> Policy:
        """Load a preset by name, or a policy from a TOML file. A policy is returned unchanged.

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
        try:
            data = path.read_bytes()
        except OSError as error:
            raise PolicyError(f"cannot read policy {path}: {error.strerror}") from None
        return _parse_policy(data, str(path), path.parent)

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
            base = base.with_threshold(_check_value_form("unit", threshold, "threshold"), point)
        return replace(base, name="only", labels=chosen, every=False, exclude=())

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
        if not self.every and label not in self.labels:
            return False
        return not any(a in self.exclude for a in self.taxonomy.lineage(label))

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
        """The options of a detector: those of its table, else the defaults of ``registry.DETECTOR_KEYS``."""
        defaults = {name: key.default for name, key in registry.DETECTOR_KEYS.get(detector, {}).items()}
        return MappingProxyType({**defaults, **self.tables.get(detector, {})})

    def fingerprint(self) -> str:
        """A digest of the whole policy, including its lists of terms, for run reports and resume checks."""
        listed_below = ("taxonomy", "operating_points", "tables", "llm", "images", "ocr")
        parts = [repr(getattr(self, name)) for name in self.__dataclass_fields__ if name not in listed_below]
        parts += [
            repr(sorted(self.operating_points.items())),
            repr(_sort_tables(self.tables)),
            repr(_sort_tables(self.llm)),
        ]
        parts += [self.images] if self.images != "remove" else []
        parts += [f"ocr {self.ocr}"] if self.ocr else []
        parts += [repr(sorted((k, r.operator, sorted(r.options.items()), r.threshold) for k, r in self.rules.items()))]
        parts += ["\0".join((t.label, *t.terms)) for t in (*self.dictionary, *self.exclusions)]
        parts += [repr((lab.name, lab.parent)) for lab in self.taxonomy if lab.name not in TAXONOMY]
        return blake2b("\1".join(parts).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def presets() -> tuple[str, ...]:
    """The names of the policies that come with allonym."""
    folder = files("allonym").joinpath("policies")
    return tuple(sorted(p.name[:-5] for p in folder.iterdir() if p.name.endswith(".toml")))


@cache
def _read_preset(name: str) -> Policy:
    return _parse_policy(files("allonym").joinpath("policies", f"{name}.toml").read_bytes(), f"preset {name}", None)


def _sort_tables(value: Any) -> Any:
    return sorted((k, _sort_tables(v)) for k, v in value.items()) if isinstance(value, Mapping) else value


# Reading. KEYS is the only list of what a policy file may hold; the JSON schema and the docs derive from it.

KEYS: Mapping[str, tuple[type, str]] = MappingProxyType(
    {
        "schema": (int, "version of this format; 1"),
        "name": (str, "name of the policy"),
        "extends": (str, "preset or file that this policy starts from"),
        "description": (str, "one line for people"),
        "language": (str, "ISO 639-1 code of the texts' language"),
        "threshold": (float, "score from 0 to 1 that a finding needs; the tagger's need their operating point"),
        "subject": (str, "metadata key that names whom a document is about"),
        "consistent": (str, "document, subject or scope: where the same entity gets the same keyed replacement"),
        "ocr": (str, "name of the OCR that reads scanned pages of a PDF, such as tesseract; empty: they are refused"),
        "images": (str, "remove or keep: whether pictures in files become grey; what they show is never searched"),
        "countries": (list, "ISO 3166 codes whose rules run; empty: all"),
        "detect": (dict, "what is looked for, by which detectors, and how strictly; a table for each that has options"),
        "llm": (dict, "the endpoint of a language model, for the operator and the detector llm"),
        "tag": (dict, "style and names: how tags are written"),
        "default": (dict, "operator and options for labels without a rule"),
        "rules": (dict, "label to operator, options and threshold"),
        "dictionary": (dict, "label to a list of terms, or to {file, column}"),
        "exclusions": (dict, "label or '*' to terms that are not findings, or to {file, column}"),
        "metadata": (dict, "label to the metadata keys that list its terms per document"),
        "labels": (list, "tables with name, parent, kind, risk, description: labels that the policy adds"),
        "patterns": (list, "tables with name, label, pattern, score, context ...: patterns that the policy adds"),
    }
)
_TYPE_NAMES = {int: "an integer", str: "a string", float: "a number", list: "a list", dict: "a table"}
DETECT_LISTS = ("detectors", "labels", "exclude")
DETECT_KEYS = (*DETECT_LISTS, "operating_point", "operating_points", *sorted(registry.DETECTOR_KEYS))
OPERATING_POINTS = ("high-recall", "balanced", "high-precision")
CONSISTENT = ("document", "subject", "scope")
IMAGES = ("remove", "keep")
PLAIN_KEYS = ("description", "language", "subject", "consistent", "images", "ocr")
TAG_KEYS = ("style", "names")
LABEL_KEYS = ("name", "parent", "kind", "risk", "description")
_MOST = 1e6  # of any number in a policy
_FORMS: Mapping[str, tuple[type, str, Callable[[Any], bool]]] = {
    "unit": (float, "a number from 0 to 1", lambda value: 0 <= value <= 1),
    "number": (float, "a number", lambda value: abs(value) <= _MOST),
    "count": (int, "an integer from 1", lambda value: value >= 1),
    "natural": (int, "an integer from 0", lambda value: value >= 0),
    "flag": (bool, "true or false", lambda _: True),
}
"""Kind of a value to its type, what messages say of it, and which values of the type will do."""


def _check_value_form(kind: str, value: Any, where: str) -> Any:
    cls, expected, is_valid = _FORMS[kind]
    if not has_toml_type(value, cls) or not is_valid(value):
        raise PolicyError(f"{where} must be {expected}, got {value!r}")
    return cls(value)


def _check_string(value: object, where: str) -> str:
    if not isinstance(value, str):
        raise PolicyError(f"{where} must be a string, got {type(value).__name__}")
    return value


def _check_choice(kind: str, value: str, choices: Collection[str], where: str) -> str:
    check_names(kind, (value,), choices, where)
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
    _check_table(raw, KEYS, where)
    for key, value in raw.items():
        kind = KEYS[key][0]
        if not has_toml_type(value, kind):
            raise PolicyError(f"{where}: {key} must be {_TYPE_NAMES[kind]}, got {type(value).__name__}")
    if raw.get("schema", SCHEMA) != SCHEMA:
        raise PolicyError(f"{where}: schema {raw['schema']!r} is not known; {SCHEMA} is required")
    parent = raw.get("extends", "")
    if parent:
        parent_path = folder / parent if folder and parent.endswith(".toml") else parent
        base = Policy.load(parent_path)
    base = base or Policy(name="")
    changes: dict[str, Any] = {key: raw[key] for key in PLAIN_KEYS if key in raw}
    changes["name"] = raw.get("name") or Path(where).stem
    if "threshold" in raw:
        changes["threshold"] = _check_value_form("unit", raw["threshold"], f"{where}: threshold")
    for key, choices in (("consistent", CONSISTENT), ("images", IMAGES)):
        _check_choice("value", raw.get(key, choices[0]), choices, f"{where}: {key}")
    if raw.get("ocr"):
        _check_choice("OCR", raw["ocr"], registry.ocr.names(), f"{where}: ocr")
    if changes.get("consistent", base.consistent) == "subject" and not changes.get("subject", base.subject):
        raise PolicyError(f"{where}: consistent = 'subject' needs subject, the metadata key that names it")
    if "countries" in raw:
        changes["countries"] = tuple(c.lower() for c in _check_strings(raw["countries"], f"{where}: countries"))
    taxonomy = base.taxonomy
    if "labels" in raw:
        taxonomy = taxonomy.extend(_read_label(row, f"{where}: labels[{i}]") for i, row in enumerate(raw["labels"]))
        changes["taxonomy"] = taxonomy
    changes |= _read_detect(raw.get("detect", {}), taxonomy, where, folder, base)
    if "llm" in raw:
        options = _read_options(registry.LLM_KEYS, raw["llm"], taxonomy, f"{where}: llm", folder)
        changes["llm"] = MappingProxyType({**base.llm, **options})
    tag = _check_table(raw.get("tag", {}), TAG_KEYS, f"{where}: tag")
    if "style" in tag:
        changes["style"] = _check_placeholder_style(tag["style"], f"{where}: tag.style")
    if "names" in tag:
        changes["names"] = tag["names"] and _check_choice("scheme", tag["names"], SCHEMES, f"{where}: tag.names")
    if "default" in raw:
        changes["default"] = _read_rule(raw["default"], f"{where}: default", base.default)
    if "rules" in raw:
        rules = dict(base.rules)
        for name, row in raw["rules"].items():
            taxonomy.get(name, f"{where}: rules")
            fallback = changes.get("default", base.default)
            rules[name] = _read_rule(row, f"{where}: rules.{name}", rules.get(name), fallback)
        changes["rules"] = MappingProxyType(rules)
    for key, current in (("dictionary", base.dictionary), ("exclusions", base.exclusions)):
        if key in raw:
            lists = [_read_term_list(n, v, f"{where}: {key}.{n}", folder, taxonomy) for n, v in raw[key].items()]
            changes[key] = (*current, *lists)
    if "metadata" in raw:
        metadata = dict(base.metadata)
        for name, keys in raw["metadata"].items():
            taxonomy.get(name, f"{where}: metadata")
            metadata[name] = _check_strings(keys, f"{where}: metadata.{name}")
        changes["metadata"] = MappingProxyType(metadata)
    if "patterns" in raw:
        rows = [PatternRule.from_row(row, f"{where}: patterns[{i}]") for i, row in enumerate(raw["patterns"])]
        for row in rows:
            taxonomy.get(row.label, f"{where}: pattern {row.name}")
        changes["patterns"] = (*base.patterns, *rows)
    return replace(base, **changes)


def _read_detect(raw: object, taxonomy: Taxonomy, where: str, folder: Path | None, base: Policy) -> dict[str, Any]:
    where = f"{where}: detect"
    detect = _check_table(raw, DETECT_KEYS, where)
    out: dict[str, Any] = {}
    for key in DETECT_LISTS:
        if key in detect:
            out[key] = _check_strings(detect[key], f"{where}.{key}")
    check_names("detector", out.get("detectors", ()), registry.detectors.names(), f"{where}.detectors")
    for key in ("labels", "exclude"):
        for name in out.get(key, ()):
            taxonomy.get(name, f"{where}.{key}")
    if "labels" in out:
        out["labels"] = tuple(dict.fromkeys(d for name in out["labels"] for d in taxonomy.descendants(name)))
        out["every"] = False
    points = dict(base.operating_points)
    if "operating_point" in detect:
        points["*"] = check_operating_point(detect["operating_point"], f"{where}.operating_point")
    for name, value in _check_table(detect.get("operating_points", {}), None, f"{where}.operating_points").items():
        taxonomy.get(name, f"{where}.operating_points")
        points[name] = check_operating_point(value, f"{where}.operating_points.{name}")
    out["operating_points"] = MappingProxyType(points)
    tables: dict[str, Mapping[str, Any]] = dict(base.tables)
    with_options = [name for name in detect if name in registry.DETECTOR_KEYS]
    for name in with_options:
        options = _read_options(registry.DETECTOR_KEYS[name], detect[name], taxonomy, f"{where}.{name}", folder)
        tables[name] = MappingProxyType({**tables.get(name, {}), **options})
    out["tables"] = MappingProxyType(tables)
    running = set(out.get("detectors", base.detectors))
    if "ensemble" in running:
        running.update(tables.get("ensemble", {}).get("members", ()))
    for name in with_options:
        if name not in running:
            raise PolicyError(f"{where}.{name} has options, but {name} is not among the detectors")
    return out


def check_operating_point(value: Any, where: str) -> str | float:
    """Return an operating point: one of ``OPERATING_POINTS``, or a number between 0 and 1.

    Raises:
        UnknownNameError, PolicyError: it is neither.
    """
    if isinstance(value, str):
        return _check_choice("operating point", value, OPERATING_POINTS, where)
    if not has_toml_type(value, float) or not 0 < value < 1:
        raise PolicyError(f"{where} must be {', '.join(OPERATING_POINTS)} or a number between 0 and 1, got {value!r}")
    return float(value)


def _read_options(
    keys: Mapping[str, registry.Key], raw: object, taxonomy: Taxonomy, where: str, folder: Path | None
) -> dict[str, object]:
    return {
        name: _read_option(keys[name].kind, value, taxonomy, f"{where}.{name}", folder)
        for name, value in _check_table(raw, keys, where).items()
    }


def _read_option(kind: str, value: Any, taxonomy: Taxonomy, where: str, folder: Path | None) -> object:
    if kind in _FORMS:
        return _check_value_form(kind, value, where)
    if kind == "names":
        names = _check_strings(value, where)
        if where.endswith("ensemble.members"):
            check_names("detector", names, registry.detectors.names(), where)
        return names
    if kind == "labels":
        for foreign, label in _check_table(value, None, where).items():
            if not isinstance(label, str):
                raise PolicyError(f"{where}.{foreign} must be a label, got {type(label).__name__}")
            if label:
                taxonomy.get(label, f"{where}.{foreign}")
    if kind == "modes":
        for label, mode in _check_table(value, None, where).items():
            taxonomy.get(label, where)
            _check_choice("mode", mode, registry.MODES, f"{where}.{label}")
    if kind in ("labels", "modes"):
        return MappingProxyType(dict(value))
    if kind == "prompts":
        return _read_prompts(value, where)
    value = _check_string(value, where)
    if kind == "mode":
        return _check_choice("mode", value, registry.MODES, where)
    if kind == "json":
        return _check_choice("JSON mode", value, registry.JSON_MODES, where)
    beside = (folder or Path()) / value
    return str(beside) if value and (kind == "folder" or (kind == "path" and beside.exists())) else value


def _read_prompts(value: object, where: str) -> Mapping[str, object]:
    for name, parts in _check_table(value, registry.LLM_PROMPTS, where).items():
        for part, text in _check_table(parts, registry.LLM_PROMPT_PARTS, f"{where}.{name}").items():
            lacking = [n for n in registry.LLM_PROMPTS[name] if part == "user" and f"{{{n}}}" not in str(text)]
            if not isinstance(text, str) or lacking:
                needed = f" that holds {{{lacking[0]}}}" if lacking else ""
                raise PolicyError(f"{where}.{name}.{part} must be a string{needed}, got {type(text).__name__}")
    return MappingProxyType({name: MappingProxyType(dict(parts)) for name, parts in dict(value).items()})  # type: ignore[call-overload]


def _read_rule(raw: object, where: str, base: Rule | None, fallback: Rule | None = None) -> Rule:
    options = dict(_check_table(raw, None, where))
    threshold = options.pop("threshold", base.threshold if base else None)
    if threshold is not None:
        threshold = _check_value_form("unit", threshold, f"{where}.threshold")
    operator = options.pop("operator", None)
    if operator is None:
        inherited = base or fallback
        if inherited is None:
            raise PolicyError(f"{where}: operator is required")
        operator, options = inherited.operator, {**inherited.options, **options}
    operator = _check_string(operator, f"{where}.operator")
    check_options(operator, options, where)
    return Rule(operator, MappingProxyType(options), threshold)


def _check_placeholder_style(value: object, where: str) -> str:
    style = _check_string(value, where)
    try:
        shown = style.format(label="LABEL", n=1)
    except (AttributeError, KeyError, IndexError, ValueError):
        raise PolicyError(f"{where}: only {{label}} and {{n}} may stand in braces, got {style!r}") from None
    if "LABEL" not in shown:
        raise PolicyError(f"{where}: {{label}} is required, got {style!r}")
    return style


def _read_label(row: object, where: str) -> Label:
    data = _check_table(row, LABEL_KEYS, where)
    name, kind, risk = data.get("name"), data.get("kind", "direct"), data.get("risk", 3)
    if not isinstance(name, str) or not name.isidentifier() or name != name.upper():
        raise PolicyError(f"{where}.name must be in capitals, digits and underscores, got {name!r}")
    if kind not in get_args(Kind):
        raise PolicyError(f"{where}.kind must be direct, quasi or none, got {kind!r}")
    if not isinstance(risk, int) or not 0 <= risk <= 5:
        raise PolicyError(f"{where}.risk must be an integer from 0 to 5, got {risk!r}")
    return Label(name, data.get("parent"), kind, risk, str(data.get("description", "")))


def _read_term_list(label: str, value: object, where: str, folder: Path | None, taxonomy: Taxonomy) -> TermList:
    if label != "*":
        taxonomy.get(label, where)
    if isinstance(value, list):
        return TermList(label, _check_strings(value, where))
    source = _check_table(value, ("file", "column"), where)
    if not isinstance(source.get("file"), str):
        raise PolicyError(f"{where}.file must be a path")
    path = (folder or Path()) / source["file"]
    return TermList(label, read_terms(path, source.get("column")))
