"""A first policy for somebody's texts: a sample of them, what it suggests, and the policy that six answers make."""

from __future__ import annotations

import json
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from allonym.detection.languages import ENGLISH, identify_passages, name_languages, read_language_names
from allonym.detection.turns import find_turns
from allonym.document import Document
from allonym.errors import AllonymError, DataError, UnknownNameError, check_names
from allonym.files.items import list_sources
from allonym.files.run import read_documents
from allonym.pipeline import Anonymized, anonymize, detect
from allonym.plan import Edit
from allonym.policy import Policy
from allonym.project.questions import DATES, ORGANISATIONS, PROTECT, QUESTIONS, Answers
from allonym.serial import quote_toml

MOST_FILES, MOST_RECORDS, MOST_CHARACTERS = 20, 10, 6_000
"""Files of a sample, records of a file, and characters of a record that are read."""

LARGEST = 20_000_000
"""Bytes of a file from which on it is not read for a sample."""

_UNREAD: Mapping[str, str] = {
    "rules": "rules, lists and titles cover what they know, most names stay, and the run warns.",
    "cover": "each passage is covered as a whole.",
    "refuse": "the document gives no output.",
}
_UNREAD_IN_SHORT: Mapping[str, str] = {
    "rules": "most names stay",
    "cover": "passages are covered whole",
    "refuse": "texts are refused",
}
_REACH = 40  # characters shown on either side of the replacements of a passage
_LONGEST = 160  # characters of a passage
_MANY = 0.5  # share of the documents from which on a suggestion follows them
_SAMPLE_KEY = b"a key for looking at a sample only"


PRESETS: Mapping[str, str] = {
    "everyone": "default",
    "speakers": "transcripts",
    "patients": "hipaa-safe-harbor",
    "eu": "gdpr",
    "users": "chat",
}


@dataclass(frozen=True, slots=True)
class Sample:
    """A sample of texts.

    Attributes:
        documents: the texts, cut to ``MOST_CHARACTERS``.
        languages: characters by language, of the sample.
        labels: findings by label, in the sample.
        share_of: the share of documents, 0 to 1, that are ``conversations`` or are about ``health``.
        formats: files by format, of all that are there.
        refused: files that cannot be read, with the reason.
        others: files of formats that are not known.
    """

    documents: tuple[Document, ...] = field(repr=False)
    languages: Mapping[str, int]
    labels: Mapping[str, int]
    share_of: Mapping[str, float]
    formats: Mapping[str, int] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)
    others: int = 0


class Mark(NamedTuple):
    """A place in a passage: half-open code points, with the label of what is replaced there."""

    start: int
    end: int
    label: str


class Passage(NamedTuple):
    """A passage of a document before and after, with what is replaced in each, and where it stands."""

    name: str
    before: str
    after: str
    originals: tuple[Mark, ...]
    replacements: tuple[Mark, ...]


def take_sample(sources: Iterable[Path], without: Path | None = None) -> Sample:
    """Read a sample of files and folders, without one of them, such as an earlier policy.

    Raises:
        DataError: none of them holds text that can be read.
        UsageError: there is no such file.
    """
    items = [item for source in sources for item in list_sources(source, None)[0]]
    if without is not None:
        items = [item for item in items if item.source is None or item.source.resolve() != without.resolve()]
    if not items:
        raise DataError("there are no files to look at; name files or folders")
    formats = Counter(item.format.name for item in items if item.format is not None)
    refused = {item.name: item.refused for item in items if item.refused and item.format is not None}
    readable = [item for item in items if item.source and not item.refused and item.size <= LARGEST]
    documents: list[Document] = []
    reading = Policy.load("default").with_(ocr="")  # scans take long, and a sample needs none
    for item in readable[:: max(1, -(-len(readable) // MOST_FILES))]:
        assert item.source is not None
        try:
            documents += [
                Document(item.name, document.text, document.meta)
                for document in islice(read_documents(item.source, policy=reading), MOST_RECORDS)
            ]
        except AllonymError as error:
            refused[item.name] = str(error)
    if not any(document.text.strip() for document in documents):
        reasons = "".join(f"; {reason}" for reason in list(refused.values())[:3])
        raise DataError(f"none of {len(items)} files holds text that can be read{reasons}")
    others = sum(item.format is None for item in items)
    return replace(sample_documents(documents), formats=formats, refused=refused, others=others)


def sample_documents(documents: Iterable[Document]) -> Sample:
    """Look at texts: their languages, what identifies in them, and what they are.

    Args:
        documents: at least one that is not blank.

    Raises:
        DataError: all are blank.
    """
    sample = tuple(Document(each.id, each.text[:MOST_CHARACTERS], each.meta) for each in documents)
    if not any(document.text.strip() for document in sample):
        raise DataError("there is no text to look at")
    languages: Counter[str] = Counter()
    labels: Counter[str] = Counter()
    traits: Counter[str] = Counter()
    usual = Policy.load("default")
    policy = usual.with_(exclude=())
    for document in sample:
        for passage in identify_passages(document.text):
            languages[passage.language or ENGLISH] += passage.end - passage.start
        listed = [span.label for span in detect(document, policy)]
        labels.update(label for label in listed if usual.looks_for(label))
        traits["conversations"] += bool(document.turns or find_turns(document.text))
        traits["health"] += any("MEDICAL_TERM" in policy.taxonomy.lineage(label) for label in listed)
    share_of = {name: traits[name] / len(sample) for name in ("conversations", "health")}
    return Sample(sample, languages, labels, share_of)


def suggest_answers(
    sample: Sample, replies: Mapping[str, str] = MappingProxyType({})
) -> tuple[Answers, Mapping[str, str]]:
    """Return answers that fit a sample and the replies that somebody gave, and for some of the suggested ones why.

    Args:
        sample: the sample.
        replies: name of a question to the answer that somebody gave; a language by code or in English.

    Raises:
        UnknownNameError: no such question, or none of its answers.
    """
    check_names("question", replies, [question.name for question in QUESTIONS])
    for question in QUESTIONS:
        if question.answers and question.name in replies:
            check_names("answer", [replies[question.name]], question.answers, question.name.replace("_", " "))
    if "language" in replies:
        replies = {**replies, "language": resolve_language(replies["language"])}
    language = max(sample.languages, key=lambda code: sample.languages[code], default=ENGLISH)
    reasons = {"language": f"{name_languages([language])} in the sample"}
    protect = replies.get("protect", "everyone")
    if "protect" not in replies:
        if sample.share_of["conversations"] >= _MANY:
            protect, reasons["protect"] = "speakers", f"{sample.share_of['conversations']:.0%} are conversations"
        elif sample.share_of["health"] >= _MANY:
            protect, reasons["protect"] = "patients", f"{sample.share_of['health']:.0%} are about health"
    is_chat = protect == "users"
    dates = "year" if protect in ("patients", "eu") else "keep" if is_chat else "cover"
    others = "keep" if is_chat else "cover"
    for name, label in (("dates", "DATE"), ("organisations", "ORGANIZATION")):
        reasons[name] = f"{sample.labels.get(label, 0)} in the sample"
    fitting = Answers(language, protect, dates, others, others, "yes" if is_chat else "no")
    return replace(fitting, **replies), {name: reason for name, reason in reasons.items() if name not in replies}


def resolve_language(name: str) -> str:
    """Return the ISO 639-1 code of a language that is named by its code or in English.

    Raises:
        UnknownNameError: no such language.
    """
    codes = read_language_names()
    by_name = {language.lower(): code for code, language in codes.items()}
    plain = name.strip().lower()
    if plain not in codes and plain not in by_name:
        raise UnknownNameError("language", name, [*codes, *codes.values()])
    return plain if plain in codes else by_name[plain]


def write_policy(answers: Answers, name: str, about: str) -> str:
    """Return a policy as TOML with comments, for the preset that fits the answers.

    Args:
        answers: what is wanted.
        name: of the policy.
        about: what the answers were made from, for the first line.
    """
    base = Policy.load(choose_preset(answers))
    covered_labels = [*(["DATE"] if answers.dates != "keep" else [])]
    covered_labels += ["ORGANIZATION"] if answers.organisations == "cover" else []
    lacking = [label for label in covered_labels if not base.looks_for(label)]
    lines = [
        f"# A first policy for {about}. Change what you like, then: allonym policy check FILE",
        "# All keys: docs/reference/policies.md",
        "schema = 1",
        f"name = {quote_toml(name)}",
        f"extends = {json.dumps(base.name)}  # {PROTECT.answers[answers.protect]}",
        "",
        "# Names are looked for in this language, see docs/how-to/languages.md. In passages of others",
        f"# {_UNREAD[base.unknown_language]}",
        f"language = {json.dumps(ENGLISH)}",
        f"unknown_language = {json.dumps(base.unknown_language)}",
        "",
        "[detect]",
        "# cover or keep: heads of state, writers and others whom an encyclopaedia knows. Beside contact data or",
        "# a number they are covered all the same.",
        f"public_figures = {json.dumps(answers.public_figures)}",
    ]
    if lacking and not base.every:
        roots = [n for n in base.labels if not set(base.taxonomy.lineage(n)[1:]) & set(base.labels)]
        lines += [f"# What is looked for: the labels of {base.name}, and {', '.join(lacking)}."]
        lines += [f"labels = {json.dumps([*roots, *lacking])}"]
    elif lacking:
        lines += [f"include = {json.dumps(lacking)}"]
    lines += _write_detectors(answers, base)
    if answers.come_back == "natural":
        lines += ["", "# Substitutes of the same kind. They need a key: --key-file, or a vault.", "[default]"]
        lines += ['operator = "pseudonym"']
    lines += [
        "",
        f"# Dates: {_describe_dates(answers)}. Dates of birth are always covered.",
        *_write_dates(answers),
    ]
    lines += ["", f"# Organisations: {ORGANISATIONS.answers[answers.organisations]}.", "[rules.ORGANIZATION]"]
    lines += [f"operator = {json.dumps('keep' if answers.organisations == 'keep' else _get_operator(answers))}"]
    lines += ["", "# What only you know: names to find, and words that stay. Take away the # to use them."]
    lines += ["# [dictionary]", '# PERSON = ["Ada Brook"]', "# [exclusions]", '# "*" = ["Quill Street"]']
    text = "\n".join(lines) + "\n"
    Policy(name="").changed(tomllib.loads(text), "the first policy")
    return text


def _describe_dates(answers: Answers) -> str:
    is_natural = answers.dates == "cover" and answers.come_back == "natural"
    return "other dates stand in their place" if is_natural else DATES.answers[answers.dates]


def choose_preset(answers: Answers) -> str:
    """Return the name of the preset that the answers begin from."""
    everyone = {"yes": "reversible", "natural": "pseudonyms"}
    return (everyone if answers.protect == "everyone" else {}).get(answers.come_back, PRESETS[answers.protect])


def needs_key(answers: Answers) -> bool:
    """Tell whether the policy of these answers needs a key or a vault."""
    return answers.come_back == "natural" or answers.dates == "shift"


def list_warnings(answers: Answers) -> list[str]:
    """Return sentences on what these answers do not reach, in a policy as :func:`write_policy` makes it."""
    warnings = []
    if answers.language != ENGLISH:
        effect = _UNREAD_IN_SHORT[Policy.load(choose_preset(answers)).unknown_language]
        name = name_languages([answers.language])
        warnings += [f"no tagger reads {name}, so {effect}; see docs/how-to/languages.md for models"]
    if answers.protect == "patients" and answers.dates == "keep":
        warnings += ["HIPAA Safe Harbor lets only the year of a date stay"]
    return warnings


def choose_passages(sample: Sample, policy: Policy, most: int = 5) -> list[Passage]:
    """Return passages of a sample that show most of what the policy does, from as many files as possible."""
    by_file: dict[str, list[tuple[int, Passage]]] = {}
    for document in sample.documents:
        try:
            result = anonymize(document, policy, key=_SAMPLE_KEY)
        except DataError:  # the policy refuses it
            continue
        by_file.setdefault(document.id, []).extend(_list_passages(document, result))
    ranked: list[tuple[int, int, Passage]] = []
    for passages in by_file.values():
        passages.sort(key=lambda pair: -pair[0])
        ranked += [(turn, -score, passage) for turn, (score, passage) in enumerate(passages[:most])]
    ranked.sort(key=lambda row: row[:2])
    return [passage for _, _, passage in ranked[:most]]


def _list_passages(document: Document, result: Anonymized) -> Iterable[tuple[int, Passage]]:
    """Yield the lines in which something is replaced, each with the number of labels in it."""
    text, position = document.text, 0
    for line in text.splitlines(keepends=True):
        start, position = position, position + len(line)
        of_line = [e for e in result.plan.edits if start <= e.start and e.end <= position]
        edits = [e for e in of_line if e.end - of_line[0].start <= _LONGEST]
        if edits:
            left = max(start, edits[0].start - _REACH)
            end = position if edits == of_line else of_line[len(edits)].start  # nothing that is replaced stands there
            right = min(end, edits[-1].end + _REACH)
            ends = ("..." if left > start else "", "..." if right < position and text[right:position].strip() else "")
            yield len({e.label for e in edits}), _make_passage(document, left, edits, right, ends)


def _make_passage(document: Document, left: int, edits: Sequence[Edit], right: int, ends: tuple[str, str]) -> Passage:
    """Return what stands between two places of a document, with ``ends`` around it instead of white space."""
    shown = document.text[left:right].rstrip()
    reach = left + len(shown) - len(shown.lstrip())
    before = after = ends[0]
    originals, replacements = [], []
    for edit in edits:
        gap = document.text[reach : edit.start]
        before, after, reach = before + gap, after + gap, edit.end
        original = document.text[edit.start : edit.end]
        originals.append(Mark(len(before), len(before) + len(original), edit.label))
        replacements.append(Mark(len(after), len(after) + len(edit.replacement), edit.label))
        before, after = before + original, after + edit.replacement
    rest = document.text[reach : max(reach, left + len(shown))] + ends[1]
    return Passage(document.id, before + rest, after + rest, tuple(originals), tuple(replacements))


def _write_detectors(answers: Answers, base: Policy) -> list[str]:
    """Return comments on a pipeline for a language that the tagger does not read; nothing for English."""
    if answers.language == ENGLISH:
        return []
    names = [*(detector for detector in base.detectors if detector != "tagger"), "spacy"]
    return [
        f"# For a spaCy pipeline that reads {name_languages([answers.language])}: take away these #, and above",
        f"# language = {json.dumps(answers.language)}",
        f"# detectors = {json.dumps(names)}",
        "# [detect.spacy]",
        f'# model = "{answers.language}_core_news_md"',
    ]


def _get_operator(answers: Answers) -> str:
    return "pseudonym" if answers.come_back == "natural" else "tag"


def _write_dates(answers: Answers) -> Sequence[str]:
    operators = {
        "cover": [f'operator = "{_get_operator(answers)}"'],
        "year": ['operator = "generalise"', 'level = "year"'],
        "shift": ['operator = "shift_dates"', "max_days = 365"],
        "keep": ['operator = "keep"'],
    }
    return ["[rules.DATE]", *operators[answers.dates], "[rules.DATE_OF_BIRTH]", 'operator = "tag"']
