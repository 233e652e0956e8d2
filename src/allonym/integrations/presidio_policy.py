"""A policy from Presidio's configuration, and a line about each part of it: what it became, or why nothing."""

from __future__ import annotations

import csv
import json
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

from allonym.errors import UsageError, hide_foreign_errors
from allonym.integrations.presidio_files import Entry, PresidioFiles, read_files
from allonym.integrations.python_patterns import translate_pattern
from allonym.labels import TAXONOMY
from allonym.policy import Policy
from allonym.serial import quote_toml
from allonym.text.controls import escape_controls

Status = Literal["same", "differs", "none"]
BOOST, LEAST_BOOSTED = 0.35, 0.4
"""How much a context word adds to a score in Presidio, and the least resulting score."""

OWN_SCORE = 0.9
"""Least score of a pattern that is no guess, so that its label goes before a built-in one of the same place."""

NAMES = ("PERSON", "LOCATION", "NRP", "DATE_TIME")
"""What Presidio's NLP engine finds where nothing is configured; organisations are ignored there."""

_OF_MODELS = {
    "SpacyRecognizer": "spacy", "StanzaRecognizer": "", "TransformersRecognizer": "transformers",
    "HuggingFaceNerRecognizer": "transformers", "MedicalNERRecognizer": "transformers", "GLiNERRecognizer": "gliner",
}  # fmt: skip
_SERVICES = re.compile("Azure|LangExtract|Remote")
_COUNTRY_NAMES = {"uk": "gb"}
_ENGLISH = "en"
_DEFAULT_FLAGS = 26  # DOTALL, MULTILINE and IGNORECASE, as in Presidio


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one part of the configuration.

    Attributes:
        where: ``file:line``.
        part: what stands there.
        status: ``same``; ``differs`` where it works otherwise; ``none`` where it has no counterpart.
        remark: what it became, or why not, and what to do.
    """

    where: str
    part: str
    status: Status
    remark: str


@dataclass(frozen=True, slots=True)
class ConvertedPolicy:
    """The policy as TOML with comments, and the outcomes in the order of the files."""

    toml: str = field(repr=False)
    outcomes: tuple[Outcome, ...] = ()


@cache
def read_recognizers() -> Mapping[str, tuple[str, ...]]:
    """Read Presidio's own recognizers: class to entities."""
    table = files("allonym").joinpath("integrations", "presidio_recognizers.tsv").read_text(encoding="utf-8")
    return {
        row["recognizer"]: tuple(row["entities"].split()) for row in csv.DictReader(table.splitlines(), delimiter="\t")
    }


def convert_files(
    paths: Iterable[Path], *, threshold: float | None = None, name: str = "from-presidio"
) -> ConvertedPolicy:
    """Convert Presidio's configuration to a policy.

    Args:
        paths: YAML or JSON: recognizers, registry, NLP engine, analyzer, operators.
        threshold: the ``score_threshold`` that the program passes to ``analyze``, 0 to 1; by default the one of the
            files, or else 0, as in Presidio.
        name: of the policy.

    Raises:
        MissingExtra: YAML needs a package.
        DataError: a file is not valid YAML or JSON, or holds nothing of Presidio's.
    """
    listed = list(paths)
    config = read_files(listed)
    with hide_foreign_errors(
        f"{', '.join(map(str, listed))}: a value is not of the type that Presidio takes",
        ValueError, TypeError, AttributeError, LookupError,
    ):  # fmt: skip
        converter = _Converter(config, threshold)
        text = converter.write(name, [path.name for path in listed])
    Policy(name="").changed(tomllib.loads(text), "the converted policy")  # it loads, or this is a defect
    return ConvertedPolicy(text, tuple(converter.outcomes))


class _Converter:
    def __init__(self, config: PresidioFiles, threshold: float | None) -> None:
        self.config = config
        self.outcomes: list[Outcome] = []
        self.labels: dict[str, str] = {}  # label to where it comes from
        self.new_labels: dict[str, str] = {}
        self.patterns: list[tuple[dict[str, object], str]] = []
        self.dictionary: dict[str, list[str]] = {}
        self.models: dict[str, tuple[str, str]] = {}  # detector to the place and the name of a model
        self.threshold = self._read_threshold(threshold)
        self.languages = self._read_languages()
        self.flags = int(self._get("global_regex_flags", _DEFAULT_FLAGS))
        self.countries = [
            _COUNTRY_NAMES.get(c.lower(), c.lower()) for c in map(str, self._get("supported_countries", []))
        ]
        for entry in config.recognizers:
            self._convert_recognizer(entry)
        self._convert_nlp()
        self._convert_entities()
        for entry in config.unknown:
            self._note(entry.where, str(entry.value), "none", "no key of Presidio's that is known here; left out")

    # What the files hold

    def _get(self, key: str, default: Any) -> Any:
        return self.config.plain[key].value if key in self.config.plain else default

    def _note(self, where: str, part: str, status: Status, remark: str) -> None:
        self.outcomes.append(Outcome(where, _make_line(part), status, _make_line(remark)))

    def _read_threshold(self, threshold: float | None) -> float:
        configured = self.config.plain.get("score_threshold") or self.config.plain.get("default_score_threshold")
        if configured:
            self._note(
                configured.where,
                "score threshold",
                "differs",
                f"{configured.value}: decides which patterns below count; allonym's own rules have scores of their own",
            )
        return threshold if threshold is not None else float(configured.value if configured else 0)

    def _read_languages(self) -> list[str]:
        named = self._get("supported_languages", None) or self._get("supported_language", None)
        named = named or self._get("language", None) or ["en"]
        languages = [str(named)] if isinstance(named, str) else [str(language) for language in named]
        if languages != [_ENGLISH]:
            keys = ("supported_languages", "supported_language", "language")
            self._note(
                next(self.config.plain[key].where for key in keys if key in self.config.plain),
                f"languages: {', '.join(languages)}",
                "differs",
                "allonym's tagger reads English; rules and lists work in all passages. For other names use a "
                "model, see docs/how-to/languages.md",
            )
        return languages

    def _find_labels(self, entity: str, origin: str) -> tuple[str, ...]:
        """Return the labels of an entity; one that is not known becomes a label of the policy."""
        labels = TAXONOMY.from_scheme(entity, "presidio") or ((entity,) if entity in TAXONOMY else ())
        if labels:
            return labels
        name = re.sub(r"\W+", "_", entity).strip("_").upper() or "CUSTOM"
        name = name if name.isidentifier() else f"X_{name}"
        self.new_labels.setdefault(name, origin)
        return (name,)

    def _add_labels(self, entity: str, origin: str) -> tuple[str, ...]:
        labels = self._find_labels(entity, origin)
        for label in labels:
            self.labels.setdefault(label, origin)
        return labels

    # Recognizers

    def _convert_recognizer(self, entry: Entry) -> None:
        row = {"name": entry.value, "type": "predefined"} if isinstance(entry.value, str) else entry.value
        if not isinstance(row, dict):
            self._note(entry.where, "recognizer", "none", "neither a name nor a table; left out")
            return
        name = str(row.get("name", "recognizer"))
        if row.get("enabled", True) is False:
            self._note(entry.where, name, "same", "disabled; left out")
        elif row.get("type") == "predefined" or str(row.get("class_name", "")) in read_recognizers():
            self._convert_predefined(entry.where, name, row)
        else:
            self._convert_custom(entry.where, name, row)

    def _convert_predefined(self, where: str, name: str, row: Mapping[str, Any]) -> None:
        recognizer = str(row.get("class_name", name))
        if recognizer in _OF_MODELS:
            entities = [str(e) for e in row.get("supported_entities") or NAMES]
            for entity in entities:
                self._add_labels(entity, where)
            detector, model = _OF_MODELS[recognizer], str(row.get("model_name") or "")
            self._note(
                where, name, "differs", f"allonym's own tagger finds {', '.join(entities)}; it needs no download"
            )
            if detector and model:
                self._offer_model(where, detector, model)
            return
        if recognizer not in read_recognizers():
            reason = (
                "sends text to a service, which allonym never does by itself"
                if _SERVICES.search(recognizer)
                else ("no recognizer of Presidio's that is known here; a class of your own: see docs/how-to/extend.md")
            )
            self._note(where, name, "none", reason)
            return
        entities = [str(row["supported_entity"])] if "supported_entity" in row else list(read_recognizers()[recognizer])
        labels = [label for entity in entities for label in self._add_labels(entity, where)]
        words = [word for language in row.get("supported_languages") or () for word in _list_context(language)]
        remark = f"built in: {', '.join(labels)}"
        if words or row.get("context") or row.get("score_thresholds"):
            remark += "; its own context words and scores stay as they are"
        self._note(where, name, "differs" if "; " in remark else "same", remark)

    def _convert_custom(self, where: str, name: str, row: Mapping[str, Any]) -> None:
        entities = (
            [row.get("supported_entity")] if row.get("supported_entity") else list(row.get("supported_entities") or ())
        )
        if not entities or not (row.get("patterns") or row.get("deny_list")):
            self._note(where, name, "none", "no supported_entity with patterns or a deny_list; left out")
            return
        languages = row.get("supported_languages") or (
            [row["supported_language"]] if row.get("supported_language") else []
        )
        codes = [str(language["language"] if isinstance(language, dict) else language) for language in languages]
        if codes and self.languages[0] not in codes:
            self._note(
                where, name, "differs", f"for {', '.join(codes)}; rules and lists of a policy run in every language"
            )
        entity = str(entities[0])
        label = self._add_labels(entity, where)[0]
        if label in TAXONOMY and label != entity:
            self._note(where, name, "same", f"{entity} is {label}")
        context = [*map(str, row.get("context") or ()), *(w for language in languages for w in _list_context(language))]
        thresholds = row.get("score_thresholds") or {}
        threshold = float(thresholds.get(entity, thresholds.get("default", self.threshold)))
        flags = int(row.get("global_regex_flags") or self.flags)
        file = where.rpartition(":")[0]
        lines = getattr(row.get("patterns"), "item_lines", [])
        for index, pattern in enumerate(row.get("patterns") or ()):
            place = f"{file}:{lines[index]}" if index < len(lines) else where
            self._convert_pattern(place, name, label, pattern, context, threshold, flags)
        if words := [str(word) for word in row.get("deny_list") or ()]:
            place = f"{file}:{row.get_line('deny_list')}" if hasattr(row, "get_line") else where
            self._convert_deny_list(place, name, label, words, float(row.get("deny_list_score") or 1), threshold)

    def _convert_deny_list(
        self, where: str, name: str, label: str, words: Sequence[str], score: float, threshold: float
    ) -> None:
        if score < threshold:
            self._note(where, f"{name}: deny_list", "none", f"{score:g} never reaches the threshold {threshold:g}")
            return
        self.dictionary.setdefault(label, []).extend(
            word for word in words if word not in self.dictionary.get(label, ())
        )
        self._note(where, f"{name}: deny_list", "same", f"[dictionary] {label}, {len(words)} terms")

    def _convert_pattern(
        self,
        where: str,
        recognizer: str,
        label: str,
        row: Any,
        context: Sequence[str],
        threshold: float,
        flags: int,
    ) -> None:
        if not isinstance(row, dict) or not isinstance(row.get("regex"), str):
            self._note(where, f"{recognizer}: pattern", "none", "no regex; left out")
            return
        part = f"{recognizer}: {row.get('name') or 'pattern'}"
        score = float(row.get("score") or 0.01)
        boosted = min(1.0, max(score + BOOST, LEAST_BOOSTED))
        if score < threshold and (not context or boosted < threshold):
            self._note(where, part, "none", f"{score:g} never reaches the threshold {threshold:g}")
            return
        try:
            translated = translate_pattern(row["regex"], flags)
        except UsageError as error:
            self._note(where, part, "none", f"{error}; rewrite it, or keep the recognizer: [detect.presidio] config")
            return
        rule: dict[str, object] = {"name": self._make_rule_name(part), "label": label, "pattern": translated.pattern}
        remarks = list(translated.remarks)
        if score >= threshold:
            rule["score"] = max(score, OWN_SCORE) if score >= 0.5 else 0.5
            if score < 0.5:
                remarks.append(f"score {score:g} reaches the threshold {threshold:g} alone, so it counts everywhere")
        else:
            rule |= {"score": min(score, 0.49), "context_score": max(boosted, 0.5)}
        if context:
            rule["context"] = [f"{word}*" for word in dict.fromkeys(w.strip().lower() for w in context) if word]
        rule["boundary"] = "none"  # the pattern says itself where it may begin
        self.patterns.append((rule, "; ".join([f"{where}: {quote_toml(row['regex'])}", *remarks])))
        self._note(where, part, "differs" if remarks else "same", "; ".join([f"[[patterns]] {rule['name']}", *remarks]))

    def _make_rule_name(self, part: str) -> str:
        plain = re.sub(r"[^a-z0-9]+", "-", part.lower()).strip("-") or "pattern"
        names = {rule["name"] for rule, _ in self.patterns}
        return next(n for n in (plain, *(f"{plain}-{i}" for i in range(2, len(names) + 3))) if n not in names)

    # Names

    def _convert_nlp(self) -> None:
        nlp = self.config.nlp
        settings = nlp["ner_model_configuration"].value if "ner_model_configuration" in nlp else {}
        settings = settings if isinstance(settings, dict) else {}
        engine = str(nlp["nlp_engine_name"].value) if "nlp_engine_name" in nlp else "spacy"
        if "nlp_engine_name" in nlp:
            self._note(
                nlp["nlp_engine_name"].where, f"NLP engine {engine}", "differs", "allonym's own tagger reads the text"
            )
        for model in nlp["models"].value if "models" in nlp and isinstance(nlp["models"].value, list) else ():
            self._convert_model(nlp["models"].where, engine, model)
        if not (self.config.is_whole or nlp or "entities" in self.config.plain):
            return
        mapping = settings.get("model_to_presidio_entity_mapping") or {}
        ignored = {str(mapping.get(name, name)) for name in settings.get("labels_to_ignore") or ()}
        entities = dict.fromkeys(map(str, mapping.values())) if mapping else dict.fromkeys(NAMES)
        origin = nlp["ner_model_configuration"].where if "ner_model_configuration" in nlp else "Presidio's NLP engine"
        for entity in entities:
            if entity not in ignored:
                self._add_labels(entity, origin)
        for key in ("low_score_entity_names", "low_confidence_score_multiplier"):
            if key in settings and any(settings[key] if isinstance(settings[key], list) else [settings[key]]):
                file = origin.rpartition(":")[0]
                where = f"{file}:{settings.get_line(key)}" if hasattr(settings, "get_line") else origin
                self._note(where, key, "none", "scores of the model; the tagger has an operating_point instead")

    def _convert_model(self, where: str, engine: str, model: Any) -> None:
        if not isinstance(model, dict):
            return
        names = model.get("model_name")
        code = str(model.get("lang_code", ""))
        name = str(names.get("transformers") or names.get("spacy")) if isinstance(names, dict) else str(names)
        detector = engine if engine in ("spacy", "transformers") else ""
        if detector:
            self._offer_model(where, detector, name)
        self._note(
            where,
            f"model {name} ({code})",
            "differs" if detector else "none",
            f"not needed; [detect.{detector}] in the policy runs it as well"
            if detector
            else "allonym has no adapter for it",
        )

    def _offer_model(self, where: str, detector: str, model: str) -> None:
        self.models.setdefault(detector, (where, model))

    def _convert_entities(self) -> None:
        if "entities" in self.config.plain:
            entry = self.config.plain["entities"]
            chosen = {label for e in entry.value for label in self._find_labels(str(e), entry.where)}
            self.labels = {label: origin for label, origin in self.labels.items() if label in chosen}
            self.labels |= {label: entry.where for label in sorted(chosen) if label not in self.labels}
            self._note(entry.where, "entities", "same", "[detect] labels")

    # Writing

    def write(self, name: str, sources: Sequence[str]) -> str:
        parts = [self._write_head(name, sources), self._write_detect(), self._write_operators(), self._write_lists()]
        return "\n".join(part for part in parts if part).rstrip("\n") + "\n"

    def _write_head(self, name: str, sources: Sequence[str]) -> str:
        lacking = [o for o in self.outcomes if o.status == "none"]
        lines = [
            f"# Made from Presidio's {', '.join(sources)}. Check it on your own text: allonym compare presidio FILES"
        ]
        lines += [f"# No counterpart: {o.where}  {o.part}: {o.remark}" for o in lacking]
        lines += [
            "schema = 1",
            f"name = {quote_toml(name)}",
            'extends = "default"',
            f'language = "{_ENGLISH}"' + self._comment_language(),
        ]
        if self.countries:
            lines.append(
                f"countries = {json.dumps(self.countries)}  # {self.config.plain['supported_countries'].where}"
            )
        return "\n".join(lines) + "\n"

    def _comment_language(self) -> str:
        others = [code for code in self.languages if code != _ENGLISH]
        return f"  # for names in {', '.join(others)}, see docs/how-to/languages.md" if others else ""

    def _write_detect(self) -> str:
        default = Policy.load("default")
        excluded = [label for label in self.labels if label in TAXONOMY and not default.looks_for(label)]
        lines = []
        if self.config.is_whole or "entities" in self.config.plain:
            lines += [
                "# What Presidio's configuration looks for. Without this list, all labels of the default policy count.",
                "labels = [",
            ]
            lines += [f"    {quote_toml(label)},  # {self.labels[label]}" for label in _list_roots(self.labels)]
            lines += ["]"]
        if excluded:
            lines += ["# The default policy leaves these out.", f"include = {json.dumps(excluded)}"]
        if self.models:
            tagger = ["tagger"] if self.languages[0] == _ENGLISH else []
            names = ", ".join(map(quote_toml, ("rules", "spoken", "lexicon", "speakers", *tagger, *self.models)))
            with_language = "" if tagger else f", and set language = {quote_toml(self.languages[0])}"
            lines += [
                f"# To run a model of Presidio's, take away the # here and before its table{with_language}.",
                f"# detectors = [{names}]",
            ]
        for detector, (where, model) in self.models.items():
            lines += ["", f"# [detect.{detector}]  # {where}", f"# model = {quote_toml(model)}"]
        return "\n".join(["[detect]", *lines]) + "\n" if lines else ""

    def _write_operators(self) -> str:
        operators = dict(self.config.operators)
        default = operators.pop("DEFAULT", None)
        comment = 'as Presidio writes it; "<{label}_{n}>" tells people apart'
        text = f'[tag]\nstyle = "<{{label}}>"  # {comment}\nnames = "presidio"\n'
        rule, comment = (
            self._convert_operator("DEFAULT", default) if default else ({"operator": "tag"}, "Presidio's default")
        )
        text += f"\n[default]  # {comment}\n{_write_rule(rule)}"
        for entity, entry in operators.items():
            rule, comment = self._convert_operator(entity, entry)
            labels = self._find_labels(entity, entry.where)
            text += "".join(f"\n[rules.{label}]  # {comment}\n{_write_rule(rule)}" for label in _list_roots(labels))
        return text

    def _convert_operator(self, entity: str, entry: Entry) -> tuple[dict[str, object], str]:
        row = entry.value if isinstance(entry.value, dict) else {}
        options = {**row, **(row.get("params") or {})}
        kind = str(row.get("type") or row.get("operator_name") or "")
        rule, status, remark = _translate_operator(kind, options)
        self._note(entry.where, f"{entity}: {kind or 'operator'}", status, remark)
        return rule, f"{entry.where}: {remark}"

    def _write_lists(self) -> str:
        text = ""
        for label, origin in self.new_labels.items():
            text += f"[[labels]]  # {origin}\nname = {quote_toml(label)}\n"
            text += 'description = "Entity of a Presidio recognizer"\n\n'
        for rule, comment in self.patterns:
            rows = "".join(f"{key} = {_write_value(value)}\n" for key, value in rule.items())
            text += f"[[patterns]]  # {comment}\n{rows}\n"
        if self.dictionary:
            text += "[dictionary]\n" + "".join(f"{k} = {_write_value(v)}\n" for k, v in self.dictionary.items()) + "\n"
        if allowed := [str(term) for term in self._get("allow_list", [])]:
            text += f'[exclusions]  # {self.config.plain["allow_list"].where}\n"*" = {_write_value(allowed)}\n'
        return text


def _list_roots(labels: Iterable[str]) -> list[str]:
    """Return the labels that are below none of the others."""
    chosen = list(labels)
    return [label for label in chosen if label not in TAXONOMY or not set(TAXONOMY.lineage(label)[1:]) & set(chosen)]


def _make_line(text: str) -> str:
    """Return a text as one line that may stand in a comment."""
    return escape_controls(" ".join(text.split()))


def _list_context(language: Any) -> list[str]:
    return [str(word) for word in language.get("context") or ()] if isinstance(language, dict) else []


def _translate_operator(kind: str, options: Mapping[str, Any]) -> tuple[dict[str, object], Status, str]:
    """Return the rule for an operator of Presidio's anonymizer, how like it is, and a remark."""
    match kind:
        case "replace" if options.get("new_value"):
            return {"operator": "suppress", "replacement": str(options["new_value"])}, "same", "the same words for all"
        case "replace":
            return {"operator": "tag"}, "same", "a tag"
        case "redact":
            return {"operator": "suppress"}, "same", "removed"
        case "keep":
            return {"operator": "keep"}, "same", "kept"
        case "mask":
            char = str(options.get("masking_char") or "*")[:1]
            return (
                {"operator": "mask", "char": char},
                "differs",
                "all is masked; keep_first and keep_last leave some readable",
            )
        case "hash":
            return (
                {"operator": "hash", "length": 64},
                "differs",
                "keyed hashes, other than Presidio's; needs --key-file",
            )
        case "encrypt":
            return (
                {"operator": "encrypt"},
                "differs",
                "needs --key-file; no key stands in a policy. Old texts: decrypt them there",
            )
        case "surrogate_ahds":
            return {"operator": "pseudonym"}, "differs", "offline pseudonyms in place of Azure's"
        case "custom":
            return (
                {"operator": "tag"},
                "none",
                "a function of a program: register an operator, docs/how-to/extend.md; now a tag",
            )
    return {"operator": "tag"}, "none", "no operator of Presidio's that is known here; now a tag"


def _write_rule(rule: Mapping[str, object]) -> str:
    return "".join(f"{key} = {_write_value(value)}\n" for key, value in rule.items())


def _write_value(value: object) -> str:
    if isinstance(value, str):
        return f"'{value}'" if "\\" in value and "'" not in value and value.isprintable() else quote_toml(value)
    return (
        f"[{', '.join(map(_write_value, value))}]"
        if isinstance(value, list)
        else f"{value:g}"
        if isinstance(value, float)
        else str(value)
    )
