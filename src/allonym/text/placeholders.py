"""Placeholders: replacements that show that something was removed, such as ``[PERSON_1]``, and what recognises them.

Every operator declares the :class:`Grammar` of what it writes, ``traits(grammar=...)``. :func:`find_placeholders`
recognises whatever the registered operators and the tools in :data:`PEERS` write, whatever the policy was. Pseudonyms,
generalised values and shifted dates are surrogates: they read like ordinary text and no grammar tells them from it.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import NamedTuple

from allonym.labels import SCHEMES, TAXONOMY, read_tag_names
from allonym.text.names import TAG_PARTS

__all__ = [
    "PEERS",
    "SURROGATES",
    "Grammar",
    "Placeholder",
    "find_placeholders",
    "is_placeholder",
    "remove_placeholders",
]


@dataclass(frozen=True, slots=True)
class Grammar:
    """How placeholders are written.

    Attributes:
        templates: placeholders with ``{label}``, ``{n}`` for a number, ``{form}`` for the part of a name behind it,
            and ``{code}``; all else stands for itself.
        code: regular expression for ``{code}``, without groups.
        signs: characters that cover letters and digits, such as ``*``.
        least: signs in a row that are required.
        labels: names that ``{label}`` may be; none: those of the taxonomy and its schemes, and in a numbered
            placeholder any name in capitals.
        specific: whether the code alone tells a placeholder, whatever its label.
    """

    templates: tuple[str, ...] = ()
    code: str = ""
    signs: str = ""
    least: int = 3
    labels: frozenset[str] = frozenset()
    specific: bool = False


SURROGATES = Grammar()
"""The grammar of operators that write no placeholders of their own: realistic or coarser values, or the text itself."""

PEERS = (
    # Textwash, the tables of P3, Presidio and Google DLP; a digest behind any of their separators.
    Grammar(
        tuple(
            f"{opening}{{label}}{separator}{field}{closing}"
            for opening, closing in ("[]", "<>")
            for separator in ("", "_", " ", "#", ":", "-")
            for field in ("{n}", "{code}")
            if separator or field == "{n}"
        ),
        code="[0-9A-F]{6,}",
    ),
    Grammar(("[{label}]", "<{label}>", "{{{label}}}", "{{{label}_{n}}}", "PRONOUN", "TITLE", "MR/MS")),
    Grammar(signs="X"),
    Grammar(signs="\u2588\u25a0", least=1),
)
"""What other tools write, and people who redact by hand."""

_PARTS_OF_SPEECH: Mapping[str, str] = {
    "PRON": "PRONOUN",
    "NUM": "NUMERIC AGE DATE_TIME PHONE_NUMBER",
    "ADJ": "ORIGIN MARITAL_STATUS SEXUAL_ORIENTATION",
    "NOUN": "OCCUPATION EMPLOYMENT_STATUS FAMILY_RELATION GENDER MEDICAL_TERM OTHER_IDENTIFYING_ATTRIBUTE TERM",
    "X": "EMAIL_ADDRESS ONLINE_ID",
}
"""Part of speech (Universal Dependencies) to the labels that, with those below them, stand for it; others: PROPN."""

_FURTHER_NAMES: Mapping[str, str] = {
    "PERSON": "NAME",
    "PERSON_FIRSTNAME": "FIRSTNAME",
    "PERSON_LASTNAME": "LASTNAME SURNAME",
    "TITLE": "MR_MS MR/MS",
    "ORGANIZATION": "ORGANISATION",
    "COMPANY": "COMPANY_NAME",
    "STREET_ADDRESS": "ADDRESS",
    "EMAIL_ADDRESS": "EMAIL E_MAIL",
    "PHONE_NUMBER": "PHONE",
    "NUMERIC": "NUMBER",
    "OTHER_IDENTIFYING_ATTRIBUTE": "OTHERATTRIBUTE",
    "": "REDACTED REMOVED DELETED MASKED",
}
"""Label to its names in placeholders that no scheme has; those of an empty label tell nothing."""

# In brackets a label is in any case and may have several words; without them, or in braces, it is in capitals.
_ANY_LABEL = "[A-Za-z](?:[A-Za-z0-9/_-]| (?=[A-Za-z])){0,63}?"
_CAPITAL_LABEL = "[A-Z](?:[A-Z0-9]|_(?=[A-Z])){1,63}?"
_WORDS = re.compile("[A-Za-z][A-Za-z /_-]*")
_ESCAPED = {"<": "(?:<|&lt;)", ">": "(?:>|&gt;)", '"': r'(?:\\?"|&quot;|&#34;)'}  # as XML and JSON write signs
_NOT_AFTER_WORD = "(?<![A-Za-z0-9])"
_POSSESSIVE = re.compile(r"['’]?s\b")
_MOST_SPACES = 3


@dataclass(frozen=True, slots=True)
class Placeholder:
    """A placeholder in a text: half-open offsets, its label, and the part of speech of what it stands for.

    Attributes:
        start, end: code points of the text.
        label: of the taxonomy; empty where the placeholder tells none.
        part: part of speech of Universal Dependencies.
    """

    start: int
    end: int
    label: str
    part: str


class _Form(NamedTuple):
    """One alternative of the pattern.

    Attributes:
        certain: whether it is a placeholder whatever its label.
        bracketed: whether something stands before the label.
    """

    certain: bool
    bracketed: bool


def find_placeholders(text: str, grammars: Iterable[Grammar] = ()) -> list[Placeholder]:
    """Find the placeholders of a text, in reading order and disjoint.

    A name in brackets alone is a placeholder only if it is a label of the taxonomy or of a scheme: ``[laughter]`` is
    none. With a number or a code, a name in capitals will do.

    Args:
        text: any text; signs may be escaped as in XML or JSON.
        grammars: further grammars, such as :func:`allonym.protocol.list_policy_grammars` gives for a policy.
    """
    from allonym import registry

    pattern, forms = _compile_grammars(tuple(grammars), registry.operators.names())
    placeholders = []
    position = 0
    while (match := pattern.search(text, position)) is not None:
        label = _read_label(match, forms)
        if label is None:
            position = match.start() + 1
            continue
        part = "X" if match.lastgroup == "cover" else _find_part_of_speech(label)
        placeholders.append(Placeholder(*match.span(), label, part))
        position = match.end()
    return placeholders


def is_placeholder(text: str, grammars: Iterable[Grammar] = ()) -> bool:
    """Whether the whole text, apart from blanks around it, is one placeholder."""
    text = text.strip()
    return [(p.start, p.end) for p in find_placeholders(text, grammars)] == [(0, len(text))]


def remove_placeholders(text: str, grammars: Iterable[Grammar] = ()) -> str:
    """The text with a blank in place of each placeholder and of a possessive ending behind it."""
    pieces, position = [], 0
    for placeholder in find_placeholders(text, grammars):
        pieces.append(text[position : placeholder.start])
        position = placeholder.end
        if possessive := _POSSESSIVE.match(text, position):
            position = possessive.end()
    return " ".join([*pieces, text[position:]])


def _list_declared_grammars(names: Iterable[str]) -> tuple[Grammar, ...]:
    """What the operators declare for rules without options; one that cannot be loaded wrote nothing."""
    from allonym import registry

    grammars = []
    for name in names:
        try:
            operator = registry.operators.get(name)
        except (ImportError, AttributeError):
            continue
        declare = getattr(getattr(operator, "traits", None), "grammar", None)
        if declare is not None:
            grammars.append(declare({}))
    return tuple(grammars)


@lru_cache(maxsize=64)
def _compile_grammars(
    grammars: tuple[Grammar, ...], operators: tuple[str, ...]
) -> tuple[re.Pattern[str], tuple[_Form, ...]]:
    """One pattern for all grammars, the operators' and peers' too: groups ``f0``, ``f1``, ..., ``literal``, ``cover``.

    Templates that differ only between label and end share a form. Its label is in the group ``l0``, its number or code,
    with all that stands around them, in ``m0``.
    """
    middles: dict[tuple[str, str, str, _Form], list[str]] = {}
    literals: list[str] = []
    covers: list[str] = []
    starts = ""
    for grammar in dict.fromkeys((*grammars, *_list_declared_grammars(operators), *PEERS)):
        starts += grammar.signs + "".join(_list_first_characters(template, grammar) for template in grammar.templates)
        if grammar.signs:
            covers.append(_build_mask_pattern(grammar.signs, grammar.least))
        for template in grammar.templates:
            head, middle, tail = _build_template_patterns(template, grammar.code)
            if head is None:
                literals.append(middle)
                continue
            form = _Form(grammar.specific or bool(grammar.labels), not head.startswith(_NOT_AFTER_WORD))
            middles.setdefault((head, _build_label_pattern(grammar, head), tail, form), []).append(middle)
    alternatives = []
    for index, ((head, label, tail, _), endings) in enumerate(middles.items()):
        marks = "|".join(dict.fromkeys(filter(None, endings)))
        mark = f"(?P<m{index}>{marks}){'?' if '' in endings else ''}" if marks else ""
        alternatives.append(f"(?P<f{index}>{head}(?P<l{index}>{label}){mark}{tail})")
    for name, patterns in (("literal", literals), ("cover", covers)):
        if patterns:
            alternatives.append(f"(?P<{name}>{'|'.join(dict.fromkeys(patterns))})")
    # Most places of a text are passed over by the look at one character.
    prefix = "".join(map(re.escape, sorted(set(starts))))
    return re.compile(f"(?=[{prefix}])(?:{'|'.join(alternatives)})"), tuple(form for *_, form in middles)


def _list_first_characters(template: str, grammar: Grammar) -> str:
    """The characters with which a filled template may begin."""
    literal, field, _, _ = next(iter(string.Formatter().parse(template)))
    if literal:
        return literal[0] + ("&\\" if literal[0] in _ESCAPED else "")
    if field == "label":
        return "".join(name[0] for name in grammar.labels) or string.ascii_uppercase
    return string.ascii_letters + string.digits


def _build_template_patterns(template: str, code: str) -> tuple[str | None, str, str]:
    """Patterns for what a template has up to its label, between label and end, and at the end.

    Without a label, the first is None and the second is for the whole template.
    """
    fields = {"n": r"\d+", "code": f"(?:{code})", "form": rf"(?:\.(?:{'|'.join(TAG_PARTS)}))?"}
    parts = [(literal, field) for literal, field, _, _ in string.Formatter().parse(template)]
    patterns = ["".join(_ESCAPED.get(c) or re.escape(c) for c in literal) for literal, _ in parts]
    filled = [pattern + fields.get(field or "", "") for pattern, (_, field) in zip(patterns, parts, strict=True)]
    names = [field for _, field in parts]
    ending = r"[A-Za-z]*" if names[-1] == "n" else r"(?!\w)" if template[-1].isalnum() or names[-1] else ""
    if "label" not in names:
        return None, (r"(?<!\w)" if template[0].isalnum() else "") + "".join(filled) + ending, ""
    place = names.index("label")
    head = "".join(filled[:place]) + patterns[place]
    if not parts[0][0][:1] or parts[0][0][0].isalnum():
        head = _NOT_AFTER_WORD + head
    if names[-1] is None and place < len(parts) - 1:
        return head, "".join(filled[place + 1 : -1]), patterns[-1] + ending
    return head, "".join(filled[place + 1 :]) + ending, ""


def _build_label_pattern(grammar: Grammar, head: str) -> str:
    """The pattern of a label behind ``head``."""
    if grammar.labels:
        return "|".join(map(re.escape, sorted(grammar.labels, key=lambda name: (-len(name), name))))
    if grammar.specific:
        return r"\w{1,64}"
    return _CAPITAL_LABEL if head in (_NOT_AFTER_WORD, r"\{") else _ANY_LABEL


def _build_mask_pattern(signs: str, least: int) -> str:
    """The pattern of a run of covering signs, with marks between them as in ``***@****.***``."""
    if signs.isalpha():
        return f"(?<![A-Za-z])[{signs}]{{{least},}}(?![A-Za-z])"
    sign = "".join(map(re.escape, signs))
    return f"[{sign}]{{{least},}}(?:[^\\w\\s{sign}]{{1,2}}[{sign}]+)*"


def _read_label(match: re.Match[str], forms: Sequence[_Form]) -> str | None:
    """The label that a match tells, empty where it tells none; None where the match is no placeholder."""
    group = match.lastgroup or ""
    if group == "cover":
        return ""
    if group == "literal":
        words = _WORDS.search(match[0])
        return _find_label_by_name(words[0] if words else "") or ""
    groups = match.groupdict()
    name, mark, form = groups["l" + group[1:]], groups.get("m" + group[1:]) or "", forms[int(group[1:])]
    label = _find_label_by_name(name)
    if label is None and (form.certain or (_looks_like_label(name) and (mark if form.bracketed else mark[:1] == "_"))):
        return ""
    return label


def _looks_like_label(name: str) -> bool:
    """Whether a name that no scheme has looks like a label."""
    return len(name) > 1 and name.isupper() and not any(map(str.isdigit, name)) and name.count(" ") <= _MOST_SPACES


@lru_cache(maxsize=4096)
def _find_label_by_name(name: str) -> str | None:
    """The label of the taxonomy with this name in any scheme; empty for a name that tells none, None for no name."""
    return _map_labels_by_name().get(_normalise_label_name(name.strip(" _")))


@cache
def _map_labels_by_name() -> Mapping[str, str]:
    """Every name of a label, folded. The taxonomy's own names go before those of the schemes."""
    names: dict[str, str] = {}
    for scheme in SCHEMES:
        for label in TAXONOMY:
            for name in label.names.get(scheme, ()):
                names.setdefault(_normalise_label_name(name), label.name)
    for tag_names in read_tag_names().values():
        for label_name, name in tag_names.items():
            names.setdefault(name, label_name)
    names |= {label.name: label.name for label in TAXONOMY}
    return names | {name: label for label, further in _FURTHER_NAMES.items() for name in further.split()}


def _normalise_label_name(name: str) -> str:
    return name.upper().replace(" ", "_").replace("-", "_")


@cache
def _find_part_of_speech(label: str) -> str:
    parts = {name: part for part, names in _PARTS_OF_SPEECH.items() for name in names.split()}
    return next((parts[name] for name in TAXONOMY.lineage(label) if name in parts), "PROPN")
