"""The embedded tagger as a detector: names and soft identifiers in free text.

The probabilities of the labels that a policy looks for count together, each in units of its threshold: a word belongs
to an entity where they add up to one. So a policy never loses a name because the likeliest label is none of its own.
Where a policy looks for people but not for other names, the chances of these count too for a word that may be a person.
Scores are calibrated probabilities. The name parts of one person are one ``PERSON``, or several findings where the
policy's table for the tagger says ``name_parts = true``.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from allonym.detection import OPENING_MARKS, TAGGER
from allonym.detection.languages import hide_unread, read_model_languages
from allonym.detection.lexicon import TITLES, lower_alphanumerics
from allonym.detection.mentions import NAME_LABELS, is_written_with_care, uses_capitals
from allonym.detection.other_languages import build_reader, list_package_languages
from allonym.detection.speakers import locate_speaker_name
from allonym.detection.turns import find_field_names
from allonym.detection.words import is_calling, read_common_terms, read_dictionary, read_ordinary_words, read_word_list
from allonym.document import Document, Reach, Span
from allonym.errors import UsageError
from allonym.labels import TAXONOMY
from allonym.models.tagger import ENGLISH, Tagged, TaggerModel, load_tagger
from allonym.models.tags import LABELS, NAME_PARTS, decode_tags
from allonym.models.wordtagger import KINDS
from allonym.policy import Policy
from allonym.protocol import AUTO
from allonym.text.names import TITLES as NAME_TITLES
from allonym.text.names import find_given_name_variants
from allonym.text.words import find_words

_SHORTENED = 4
"""Letters of a given name that is cut short with a full stop, at most: ``Geo.``, ``Thos.``."""
_GAP = re.compile(r"[ \t\xa0]*+(?:\r?\n)?[ \t\xa0]*+\Z|\.?[ \t\xa0]*+[-’'][ \t\xa0]*+\Z|\.[ \t\xa0]*+\Z")
_LEAST = 0.001  # threshold; no network is surer that a word is no name
_NEARLY_NONE = 1e-12  # probability
_KEPT_SHARE = 0.5
"""How likely a label whose findings stay in the text counts, beside labels whose findings are replaced."""
_BEGIN = 2.0  # how much less likely than the chances say it is that an entity begins right after another
_HEAD = re.compile(
    r"[ \t\r]*\n|[^\n:]{1,60}:|[A-Z][A-Z &]{3,}(?:\n|\Z)|[ \t]*(?:\d{1,3}[.)]|[-*•–])[ \t]"
)  # what begins a paragraph, a turn or an item
_SENTENCE_END = re.compile(r"[\t;|]| {3,}|[a-z]{5}\. +(?=[A-Z\d])|[.!?] +(?=\d{1,2}\. )|[.!?] \d{1,2}\. +")
_WRAPPED = 50  # characters that a line has at least which was wrapped
_LONGEST_LINE = 100  # characters at which text is still wrapped
_NEXT_WORD = re.compile(r"\S+")
_SHORT = frozenset(
    "inc corp co ltd llc plc bros jr sr st mt ft dr dept univ assn intl ave blvd rd jan feb mar apr jun jul aug sep "
    "sept oct nov dec".split()
)
_STATES = read_word_list("us_states")
_ASKING = re.compile(r"(?:[Mm]ay|[Ww]ill|[Cc]an|[Cc]ould|[Ww]ould) (?:I|we|you|he|she|they|it|my|your|the)\b")
_WRITING = re.compile(r"(?i:e-?mail|mail|contact|write|copy|forward)(?: to)? [\w.+-]+@")
_FUNCTION = read_word_list("function_words")
_CODES = frozenset(name.replace("_", " ") for name in read_word_list("names_of_numbers"))
_THINGS = ("ORGANIZATION", "PRODUCT", "LAW", "LOCATION", "FACILITY", "STREET_ADDRESS")
_FINER = {
    "REGION": "US_STATE",
    "DATE": "DURATION",
    "STREET_ADDRESS": "GENERIC_ID",
    "OTHER_IDENTIFYING_ATTRIBUTE": "MEDICAL_CONDITION",
}  # what the words of a finding may make of a label
_CODE = re.compile(r"(?:[A-Z]\w{1,11} (?=(?:\S*\d){5}))?(?=(?:\S*\d){3})(?=\S{5})[^\W_]+(?:[-/._][^\W_]+)*")
_COUNT_OR_TIME = re.compile(r"\d{1,3}(?:,\d{3})+|\d{1,2}:\d{2}|\d+\.(?:1[3-9]|[2-9]\d|00)|\d+(?:\.\d+)? ?(?:[cm]?m|kg)")
"""A number with a comma for thousands, a time of day, a decimal number whose second part is no month, a measure."""
_GRADE, _GRADE_SCORE = re.compile(r"[A-Z]-?\d{1,2}|[A-Za-z][a-z]{3,}\d{1,2}"), 0.5
_LONG_NUMBER = re.compile(r"(?:\w+[-/.])*\d{5,}(?:[-/.]\w+)*|[A-Z]{1,4}[-/]\d{4}[-/]\d{1,6}")
_OLDEST = 130  # years
_LONGEST_WORD = 100  # letters
_NUMBERED_ROLE = re.compile(
    r"(?im)^[ \t]*(?:person|speaker|participant|respondent|interviewee|witness|caller|agent|voice) \d{1,4}(?=[ \t]*:)"
)
_STAMP = re.compile(r"\d{8}T\d{4,6}Z?")
_WORDED = ("PERSON", *NAME_PARTS, "ORGANIZATION", "STREET_ADDRESS", "FACILITY", "LOCATION", "CITY", "REGION", "COUNTRY")
_CAPITALISED = (*_WORDED, "PRODUCT", "EVENT", "WORK_OF_ART", "AWARD", "LAW")
_OTHER_NAMES = (*NAME_LABELS[1:], "FACILITY", "CITY", "REGION")
_POSSIBLE = 0.01
"""Chance of a person's name by which a name of another kind may be one: "Telf", which looks like a firm's."""
_AGED = re.compile(r"(?i)\bage[ds]? (?:of )?\Z")
_LOOSE = 0.5  # chance by which a function word at the end of a name belongs to it
_FAINT = 0.2  # the same of any word in small letters beside one with a capital
_CERTAIN, _SURE, _LIKELY, _UNLIKELY = 0.9, 0.6, 0.3, 0.1
"""Chances by which ordinary words are a name after all: alone at the start, where capitals say nothing, elsewhere; and
rare words with a capital within a sentence."""
_CALLER = re.compile(r"\b(?:calling|speaking|phoning|ringing|writing) (?:from|with|for|on behalf of) \Z")
_OPENS = re.compile(r"(?:\A|[.!?:\n])[ \t\"'*#>-]*\Z")
_DIGITS = read_word_list("digits")
_DATE_WORDS = read_word_list("date_words")
_NUMBER_ALONE = re.compile(r"\W*(?:\d{1,2}|\d+(?:\s*[+*^=x×]\s*\d+)+)\W*")
_CLOCK = re.compile(r"(?:[01]\d|2[0-3])[0-5]\d(?: ?h(?:rs|ours)?)?|[1-9](?:st|nd|rd|th) (?:yr|year|term|half)")
"""A time of day or a stage of life, which a date it is not; the years from 1600 to 2159 look the same."""
_YEAR = re.compile(r"1[6-9]\d\d|20\d\d|21[0-5]\d")
_AMOUNT = re.compile(r" \d[\d.,/]*(?: ?(?:mg|mcg|g|ml|units?)\b.*)?\Z")
_FOLLOWING = re.compile(r"(['’]s)?( [a-z]+)( [a-z]+)?")
_LENGTH = re.compile(
    r"(?i)(?:(?:about|around|nearly|almost|over|more than|less than|the|for|past|last|next|some|at least|up to)\s+)*"
    r"(?:an?|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty|thirty|forty|fifty|sixty|ninety"
    r"|several|many|few|a few|couple of|a couple of|half an?|\d+(?:[.,]\d+)?)(?:\s*(?:-|to|or)\s*\w+)?[\s-]+"
    r"(?:second|sec|minute|min|hour|hr|day|week|wk|month|mth|quarter|year|yr|decade)s?\Z"
)


def build_detector(policy: Policy) -> Callable[[Document], list[Span]]:
    """Build the tagger with the operating points of a policy.

    Raises:
        DataError: the model of ``[detect.tagger] model`` cannot be read.
        UsageError: the policy is for a language that the embedded model does not know.
    """
    settings = policy.settings("tagger")
    folder = Path(settings["model"]) if settings["model"] else ENGLISH
    others_read = list_package_languages() if folder == ENGLISH else frozenset[str]()
    if folder == ENGLISH and policy.language not in {"en", AUTO, *others_read}:
        raise UsageError(
            f"the embedded tagger knows English, the policy {policy.name!r} is for {policy.language!r}; train one with "
            "'allonym train ner' and name it in [detect.tagger] model, or leave the tagger out of detect.detectors"
        )
    if folder == ENGLISH and not any(_is_wanted(policy, label) for label in LABELS):
        return lambda document: []
    model = load_tagger(folder, settings["threads"], settings["gpu"])
    bars = read_thresholds(policy, model)
    others = read_thresholds(policy, model, is_wanted=False)
    rivals = {label: bar for label, bar in others.items() if label in _OTHER_NAMES and bars.keys() >= set(NAME_PARTS)}
    names = {label: _find_enabled_label(policy, label) for label in (*model.labels, "PERSON", *_FINER.values())}
    kept_labels = frozenset(label for label, name in names.items() if name and policy.rule(name).operator == "keep")
    name_parts = settings["name_parts"] or not names["PERSON"]  # who looks for last names alone must find them
    languages = read_model_languages(model.about.get("language"))
    kinds = {kind: name for kind in KINDS if (name := _find_enabled_label(policy, kind))}
    read_others = build_reader(lambda points: _read_kind_thresholds(policy, kinds, points)) if others_read else None

    def find_names(document: Document) -> list[Span]:
        findings = read_language(document)
        if read_others is None:
            return findings
        return sorted(findings + [replace(s, label=kinds[s.label]) for s in read_others(document)])

    def read_language(document: Document) -> list[Span]:
        document = hide_unread(document, languages)
        tagged = model(document.text)
        turns = [turn.start for turn in document.turns]
        findings = extract_spans(document.text, tagged, model.labels, bars, turns, kept_labels, rivals)
        selected = _filter_identifying_findings(document.text, join_name_parts(document.text, findings, turns))
        selected = _drop_roles(document, selected)
        if name_parts:  # the same words either way
            named = {p for s in selected if s.label == "PERSON" for p in range(s.start, s.end)}
            parts = [p for p in findings if p.label in NAME_PARTS and p.start in named]
            selected = sorted([s for s in selected if s.label != "PERSON"] + parts)
        return [Span(s.start, s.end, names[s.label], s.score, s.source) for s in selected if names[s.label]]

    find_names.languages = languages | others_read  # type: ignore[attr-defined]
    find_names.reads_disguise = False  # type: ignore[attr-defined]  # a network reads sentences, not what is left of them
    find_names.reads_technical = False  # type: ignore[attr-defined]
    return find_names


def _filter_identifying_findings(text: str, findings: Sequence[Span]) -> list[Span]:
    """Drop findings that cannot identify, and correct labels that the words of a finding give away."""
    out: list[Span] = []
    for n, span in enumerate(findings):
        label = span.label
        start, end = _trim_number_kind_name(text, span)
        surface = text[start:end]
        if start == end or _is_lone_letter(text, findings, n) or _has_only_function_words(surface):
            continue
        if not (label := _correct_number_label(surface, label, span.score)):
            continue
        if label in _WORDED and not any(map(str.isalpha, surface)):
            continue
        if " " not in surface and (_ASKING.match(text, start) or _WRITING.match(text, start)):
            continue
        if label in ("OCCUPATION", "ORGANIZATION") and _is_title_of_next(text, findings, n):
            continue
        if label == "PERSON" and _CALLER.search(text, max(0, start - 30), start):
            label = "ORGANIZATION"
        if label == "REGION" and "_".join(surface.lower().split()) in _STATES:
            label = "US_STATE"
        if label == "OTHER_IDENTIFYING_ATTRIBUTE" and _names_condition(surface):
            label = "MEDICAL_CONDITION"
        elif label == "DATE" and _LENGTH.match(text, start, end):
            label = "DURATION"
        elif _is_common_term(text, start, end, label) or (
            label == "DATE" and not _tells_date(surface) and text[start - 1 : start] not in ("'", "’")
        ):
            continue
        out.append(Span(start, end, label, span.score, span.source))
    return out


def _correct_number_label(surface: str, label: str, score: float) -> str:
    """The label of a finding, corrected for numbers and codes; empty if it is a count, a time, a grade or no word."""
    is_endless = len(surface) > _LONGEST_WORD and surface.isalpha()
    if is_endless or (label == "DATE" and _COUNT_OR_TIME.fullmatch(surface)):
        return ""
    if label == "STREET_ADDRESS" and score < _GRADE_SCORE and _GRADE.fullmatch(surface):
        return ""
    if _STAMP.fullmatch(surface):
        return "DATE"
    is_code = (
        (label == "STREET_ADDRESS" and _CODE.fullmatch(surface))
        or (label == "DATE" and _LONG_NUMBER.fullmatch(surface))
        or (label == "AGE" and surface.isdecimal() and (len(surface) > 3 or int(surface) > _OLDEST))
    )
    return "GENERIC_ID" if is_code else label


def _drop_roles(document: Document, findings: list[Span]) -> list[Span]:
    """The findings outside of names of fields, and of labels of turns that are roles, such as "Interviewer"."""
    text, labels = document.text, {turn.speaker for turn in document.turns if turn.speaker}
    surfaces = {text[a:b] for a, b in labels}
    roles = {surface for surface in surfaces if locate_speaker_name(surface) is None}
    numbered = (match.span() for match in _NUMBERED_ROLE.finditer(text))
    places = [*find_field_names(text), *((a, b) for a, b in labels if text[a:b] in roles), *numbered]
    reach = Reach(places)
    return [s for s in findings if not reach.contains(s.start, s.end)] if places else findings


def read_thresholds(policy: Policy, model: TaggerModel, *, is_wanted: bool = True) -> dict[str, float]:
    """The threshold of each label that a policy looks for: that of the label's rule, else of its operating point.

    Where ``is_wanted`` is false, those of the labels that it does not look for. A label for which the tagger's point
    has none is left out.
    """
    points: Mapping[str, Any] = model.about.get("points", {})
    out: dict[str, float] = {}
    for label in model.labels:
        if _is_wanted(policy, label) != is_wanted:
            continue
        tables = {name: table.get(label, table.get("*", 0.5)) for name, table in points.items()}
        if (threshold := _read_threshold(policy, label, tables)) is not None:
            out[label] = threshold
    return out


def _read_threshold(policy: Policy, label: str, points: Mapping[str, float | None]) -> float | None:
    """The threshold of a label: that of its rule, else of its operating point, of which ``points`` gives the value."""
    rules = (policy.rules[name] for name in policy.taxonomy.lineage(label) if name in policy.rules)
    rule_threshold = next((rule.threshold for rule in rules if rule.threshold is not None), None)
    if rule_threshold is not None:
        return rule_threshold
    point = policy.operating_point_for(label)
    threshold = points.get(point, 0.5) if isinstance(point, str) else point
    return None if threshold is None else float(threshold)


def _read_kind_thresholds(policy: Policy, kinds: Collection[str], points: Mapping[str, float]) -> dict[str, float]:
    """The thresholds of kinds of names in a language, given the language's operating points."""
    thresholds = {kind: _read_threshold(policy, kind, points) for kind in kinds}
    return {kind: max(_LEAST, threshold) for kind, threshold in thresholds.items() if threshold is not None}


def extract_spans(
    text: str,
    tagged: Tagged,
    labels: Sequence[str],
    thresholds: Mapping[str, float],
    turns: Sequence[int] = (),
    kept_labels: Collection[str] = (),
    rivals: Mapping[str, float] = MappingProxyType({}),
) -> list[Span]:
    """Extract the entities from a tagged text, disjoint and in reading order.

    Args:
        text: the text.
        tagged: the network's output for it.
        labels: the network's labels, in the order of its tags.
        thresholds: label to the probability that a word needs which can have this label alone, over 0 to 1. Labels
            that are missing do not count.
        turns: starts of the turns of a conversation; no entity continues across them.
        kept_labels: labels whose findings stay in the text; where another label is half as likely, that one is chosen.
        rivals: label to the threshold of names that nobody looks for; they count where a name of a person is possible.
    """
    if not len(tagged.borders):
        return []
    chances = tagged.tags.astype(np.float64)
    sums, evidence = sum_wanted_chances(chances, labels, thresholds, rivals)
    entity = evidence >= 1.0
    if not entity.any():
        return []
    chances[:, 0] = -np.inf
    chances[:, 1:][:, np.repeat([label not in thresholds for label in labels], 2)] = -np.inf
    shares = np.array([_KEPT_SHARE if label in kept_labels else 1.0 for label in labels])
    out: list[Span] = []
    is_careful = is_written_with_care(text, turns)
    breaks = _find_entity_breaks(text, tagged.borders, turns)
    starts = np.flatnonzero(entity & ~(np.r_[False, entity[:-1]] & ~breaks))
    ends = np.flatnonzero(entity & ~(np.r_[entity[1:], False] & ~np.r_[breaks[1:], False])) + 1
    for first, last in zip(starts.tolist(), ends.tolist(), strict=True):
        run = chances[first:last]
        mass = (np.exp(run[:, 1::2]) + np.exp(run[:, 2::2])) * shares
        run[0, 1::2] = np.logaddexp(run[0, 1::2], run[0, 2::2])  # what is inside here begins here
        run[:, 1::2] -= _BEGIN
        for a, b, kind in _split_entities(decode_tags(run).tolist()):
            label, words = _choose_label(mass[a:b], labels, kind), slice(first + a, first + b)
            weighs = label in _CAPITALISED or (is_careful and _is_bare_role_or_age(text, tagged.borders[words], label))
            if not (weighs and _is_ordinary(text, tagged.borders[words], float(sums[words].max()), is_careful)):
                out += _make_trimmed_spans(text, tagged, first + a, first + b, label, sums, is_careful)
    return out


def _is_bare_role_or_age(text: str, borders: Sequence[tuple[int, int]], label: str) -> bool:
    """Whether a finding is a number that the text does not call an age, or no calling of several words."""
    (start, _), (last, end) = borders[0], borders[-1]
    if label == "AGE":
        return len(borders) == 1 and not _AGED.search(text, max(0, start - 10), start)
    return label == "OCCUPATION" and not (len(borders) > 1 and is_calling(text[last:end]))


def _is_ordinary(text: str, borders: Sequence[tuple[int, int]], chance: float, is_careful: bool) -> bool:
    """Whether all words are ordinary, and neither capitals nor the chance of the likeliest of them make them a name.

    Words in small letters are ordinary where a text is written with care, whatever they are.
    """
    words = [word for a, b in borders if (word := text[a:b])[0].isalnum()]
    start = borders[0][0]
    is_first = bool(words) and words[0][1:].islower() and bool(_OPENS.search(text, max(0, start - 4), start))
    opens = is_first and len(words) == 1
    is_small = all(map(str.islower, words[1:] if is_first and not opens else words))
    if chance >= (_CERTAIN if opens else _SURE) or not words or text[start - 1 : start] in ("#", "@"):
        return False
    if is_small and is_careful and not (len(words) > 2 and _DIGITS.issuperset(words)):
        return True
    if not all(word.lower() in _FUNCTION or word.lower() in read_dictionary() for word in words):
        return False
    is_frequent = all(word.lower() in _FUNCTION or word.lower() in read_ordinary_words() for word in words)
    is_marked = not is_frequent and not is_small and not opens
    return chance < (_UNLIKELY if is_marked else _LIKELY) or (
        (is_small or (opens and is_frequent)) and uses_capitals(text)
    )


def sum_wanted_chances(
    chances: Any,
    labels: Sequence[str],
    thresholds: Mapping[str, float],
    rivals: Mapping[str, float] = MappingProxyType({}),
) -> tuple[Any, Any]:
    """Add up the probabilities of the labels that have a threshold, word by word.

    Args:
        chances: array ``(words, 1 + 2 * labels)`` of log probabilities.
        labels: the network's labels.
        thresholds, rivals: of :func:`extract_spans`.

    Returns:
        Two arrays ``(words,)``: the sum, 0 to 1, and the sum in units of the labels' thresholds, from 0; a word counts
        from 1. Neither a lower threshold nor a further label makes any of them smaller.
    """
    mass = np.exp(chances[:, 1::2]) + np.exp(chances[:, 2::2])
    sums, evidence = _add_up_chances(mass, labels, thresholds)
    if rivals:
        is_possible = mass[:, [label in NAME_PARTS for label in labels]].sum(axis=1) >= _POSSIBLE
        more_sums, more_evidence = _add_up_chances(mass, labels, rivals)
        sums += is_possible * more_sums
        evidence += is_possible * more_evidence
    return sums, evidence


def _add_up_chances(mass: Any, labels: Sequence[str], thresholds: Mapping[str, float]) -> tuple[Any, Any]:
    rates = np.array([1 / max(thresholds[label], _LEAST) if label in thresholds else 0.0 for label in labels])
    return (mass * (rates > 0)).sum(axis=1), (mass * rates).sum(axis=1)


def _choose_label(mass: Any, labels: Sequence[str], decoded: int) -> str:
    """The decoded label of an entity, or where another top-level label is likelier, the likeliest label under that."""
    if mass[:, decoded].min() > 0.5:  # no other can be
        return labels[decoded]
    family_mass = (mass[:, None, :] * _relate_labels(tuple(labels))).sum(axis=2)
    scores = np.log(family_mass + _NEARLY_NONE).sum(axis=0)
    if scores[decoded] == scores.max():
        return labels[decoded]
    label_scores = np.log(mass + _NEARLY_NONE).sum(axis=0)
    return labels[int(np.where(scores == scores.max(), label_scores, -np.inf).argmax())]


@cache
def _relate_labels(labels: tuple[str, ...]) -> Any:
    """A matrix of labels by labels: whether two are under the same top-level label."""
    tops = np.array([TAXONOMY.lineage(label)[-1] if label in TAXONOMY else label for label in labels])
    return tops[:, None] == tops


def _find_entity_breaks(text: str, borders: Sequence[tuple[int, int]], turns: Sequence[int]) -> Any:
    """Which words begin a paragraph, turn, cell, sentence, or the line after a short one: no entity goes on there."""
    out = np.zeros(len(borders), bool)
    starts = [a for a, _ in borders]
    sentences = (end.end() for end in _SENTENCE_END.finditer(text))
    for position in (*_find_entity_line_ends(text), *turns, *sentences):
        word = bisect_left(starts, position)
        if word < len(out):
            out[word] = True
    return out


def _find_entity_line_ends(text: str) -> list[int]:
    """The line ends that also end an entity: all except those inside text that was wrapped at a column.

    Where the first word of the next line had room in a line, nobody wrapped it.
    """
    out: list[int] = []
    start = 0
    column = max(map(len, text.split("\n")))
    while (end := text.find("\n", start)) >= 0:
        word = _NEXT_WORD.match(text, end + 1)
        has_room = word is not None and end - start + 1 + len(word[0]) <= min(column, _LONGEST_LINE)
        if end - start < _WRAPPED or has_room or _HEAD.match(text, end + 1):
            out.append(end + 1)
        start = end + 1
    return out


def _split_entities(tags: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    start = 0
    for i in range(1, len(tags) + 1):
        if i == len(tags) or tags[i] % 2:
            yield start, i, (tags[start] - 1) // 2
            start = i


def _make_trimmed_spans(
    text: str, tagged: Tagged, first: int, last: int, label: str, inside: Any, is_careful: bool
) -> list[Span]:
    words = [text[a:b] for a, b in tagged.borders[first:last]]
    i, j = 0, len(words)
    while i < j and not words[i][0].isalnum() and words[i][0] not in OPENING_MARKS:
        i += 1
    # a word may end with a combining accent
    while j > i and not any(map(str.isalnum, words[j - 1])) and not _is_last_mark_in_name(words, i, j):
        j -= 1
    while i < j and _is_loose_word(words[i], words, inside[first + i], is_careful):
        i += 1
    while j > i and _is_loose_word(words[j - 1], words, inside[first + j - 1], is_careful):
        j -= 1
    is_name = label in NAME_PARTS
    while is_name and i < j - 1 and lower_alphanumerics(words[i]) in TITLES and words[i + 1] not in ("'", "’", "-"):
        i += 2 if words[i + 1] == "." else 1
    is_title = is_name and all(lower_alphanumerics(word) in TITLES or word == "." for word in words[i:j])
    if is_title and not (label == NAME_PARTS[1] and _follows_name(text, tagged, first, inside)):
        return []  # a title alone, and no family name ("John Sergeant")
    if i >= j or not any(c.isalnum() for word in words[i:j] for c in word):
        return []
    score = round(min(1.0, float(inside[first + i : first + j].mean())), 4)
    return [Span(tagged.borders[first + i][0], tagged.borders[first + j - 1][1], label, score, TAGGER)]


def _follows_name(text: str, tagged: Tagged, index: int, inside: Any) -> bool:
    """Whether the word before a word is part of the same entity, more likely than not, with a space between them."""
    borders = tagged.borders[max(0, index - 1) : index + 1]
    return len(borders) == 2 and text[borders[0][1] : borders[1][0]] == " " and bool(inside[index - 1] >= 0.5)


def _is_loose_word(word: str, words: Sequence[str], chance: float, is_careful: bool) -> bool:
    """Whether a word at the end of an entity is a function word that hardly belongs to it: the "of" in "Ann Lee of"."""
    is_small = word.islower() or (word.isupper() and all(other.upper() == other for other in words))
    if not is_small or len(words) < 2:
        return False
    if len(word) > 1 and chance < _LOOSE and word.lower() in _FUNCTION:
        return True
    is_beside_name = is_careful and word.islower() and any(other[0].isupper() for other in words)
    return is_beside_name and chance < _FAINT and len(word) > 1


def _is_last_mark_in_name(words: Sequence[str], first: int, last: int) -> bool:
    """Whether the mark at the end belongs to the word before it: "Inc.", "U.S.", "J.", "(UK)", "5 %"."""
    mark = words[last - 1]
    if mark == ".":
        before = words[last - 2] if last - 2 >= first else ""
        return before.lower() in _SHORT or (len(before) == 1 and before.isalpha() and before.isupper())
    if mark == ")":
        return "(" in words[first:last]
    return mark in ("%", "+", "!") and last - 1 > first


def join_name_parts(text: str, findings: Sequence[Span], turns: Sequence[int] = ()) -> list[Span]:
    """Join touching name parts to one ``PERSON``; a given name after a family name, or a turn, begins another."""
    out: list[Span] = []
    parts: set[str] = set()
    ends = sorted((*_find_entity_line_ends(text), *turns)) if "\n" in text else []
    for span in findings:
        if span.label not in NAME_PARTS:
            out.append(span)
            parts = set()
            continue
        begins = span.label == NAME_PARTS[0] and NAME_PARTS[1] in parts and NAME_PARTS[0] in parts
        gap = text[out[-1].end : span.start] if parts else ""
        parted = (
            "\t" in gap
            or "   " in gap
            or ("\n" in gap and bisect_left(ends, out[-1].end) != bisect_right(ends, span.start))
        )
        if gap.startswith(". "):  # a sentence ends there, unless what it ends is short for a name
            last = text[out[-1].start : out[-1].end].split()[-1]
            parted = parted or len(last) > _SHORTENED or bool(find_given_name_variants(last.lower()))
        if parts and not begins and not parted and _GAP.match(gap):
            before = out[-1]
            long, short = before.end - before.start, span.end - span.start
            score = (before.score * long + span.score * short) / (long + short)
            out[-1] = Span(before.start, span.end, "PERSON", round(score, 4), TAGGER)
            parts.add(span.label)
        else:
            out.append(Span(span.start, span.end, "PERSON", span.score, span.source))
            parts = {span.label}
    return out


def _is_lone_letter(text: str, findings: Sequence[Span], index: int) -> bool:
    """Whether a finding is a single letter or digit and no part of a name, and so names nobody."""
    span = findings[index]
    if span.end - span.start > 4 or sum(map(str.isalnum, text[span.start : span.end])) > 1:
        return False
    before = index and span.start - findings[index - 1].end <= 2
    after = index + 1 < len(findings) and findings[index + 1].start - span.end <= 2
    return not before and not after


def _is_title_of_next(text: str, findings: Sequence[Span], index: int) -> bool:
    """Whether a finding is the title of the person found right after it: "Judge" in "Judge Wilmot"."""
    span, following = findings[index], findings[index + 1 : index + 2]
    if not following or following[0].label != "PERSON" or text[span.end : following[0].start].strip(" ."):
        return False
    return lower_alphanumerics(text[span.start : span.end]) in NAME_TITLES


def _has_only_function_words(surface: str) -> bool:
    """Whether a surface consists of function words, which identify nobody."""
    is_plain = surface.islower() or surface.lower() in ("am", "pm")
    return is_plain and all(word.lower() in _FUNCTION for word in find_words(surface))


def _tells_date(surface: str) -> bool:
    """Whether a finding places an event, by a month, a feast or a year, unlike "today" or "ten days"."""
    if any(map(str.isdigit, surface)):
        is_clock = _CLOCK.fullmatch(surface) and not _YEAR.fullmatch(surface)
        return not is_clock and not _NUMBER_ALONE.fullmatch(surface)
    return not _DATE_WORDS.isdisjoint(find_words(surface.lower()))


def _names_condition(surface: str) -> bool:
    """Whether a finding names a disease or a state of health, alone or with other words."""
    words = surface.lower().replace("’", "'").split()
    parts = (" ".join(words[i:j]) for i in range(len(words)) for j in range(i + 1, min(i + 3, len(words)) + 1))
    return any(part in read_common_terms("health") or part in read_common_terms("conditions") for part in parts)


def _is_common_term(text: str, start: int, end: int, label: str) -> bool:
    """Whether a finding is a medicine, a disease, an examination or software, alone or with the two words after it."""
    terms, surface = read_common_terms(), text[start:end].lower().replace("’", "'")
    term = _AMOUNT.sub("", surface)
    if ", " in term and all(part in terms for part in term.split(", ")):
        return True
    if term in terms and (label != "PERSON" or term not in read_common_terms("also_names")):
        return True
    following = _FOLLOWING.match(text, end)
    rest = [part.replace("’", "'") for part in following.groups("")] if following else []
    return bool(rest) and (surface + rest[0] + rest[1] in terms or surface + "".join(rest) in terms)


def _trim_number_kind_name(text: str, span: Span) -> tuple[int, int]:
    """The borders without the name of a kind of number: "IBAN DE89" becomes "DE89", and "VIN" alone is empty."""
    surface = text[span.start : span.end]
    words = surface.split(" ")
    if surface.lower() in _CODES and (span.label in _THINGS or surface.isupper()):
        return span.end, span.end
    for n in range(min(4, len(words) - 1), 0, -1):
        called = " ".join(words[:n])
        if called.lower() in _CODES and any(c.isdigit() or c == "@" for c in words[n]):
            return span.start + len(called) + 1, span.end
    return span.start, span.end


def _is_wanted(policy: Policy, label: str) -> bool:
    """Whether the policy looks for a label of the network, or for one that findings with this label may get."""
    return any(_find_enabled_label(policy, name) for name in (label, _FINER.get(label, label)))


def _find_enabled_label(policy: Policy, label: str) -> str:
    """The label or its nearest ancestor that the policy looks for; empty where there is none, or it is excluded."""
    if policy.leaves_out(label):
        return ""
    return next((name for name in policy.taxonomy.lineage(label) if policy.looks_for(name)), "")
