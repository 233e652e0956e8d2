"""Tables by column: each column is looked at once, by its name and a sample of its cells, and that decides for all.

A column is kept (numbers, categories), covered cell by cell (names, numbers of customers, dates), or read as prose.
What cannot be decided is prose. A cell that is not like the sample of its kept column is prose as well.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from importlib.resources import files
from pathlib import Path

from allonym.batch import join_fields, split_field_name
from allonym.document import KEPT, PROSE
from allonym.errors import check_names
from allonym.files.fields import FieldKeys, format_masked_keys, is_persons_name, is_record_id
from allonym.policy import Policy
from allonym.serial import quote_toml
from allonym.settings import read_toml

SAMPLE_BYTES = 1 << 18
"""Bytes at the beginning of a file that are looked at."""

SAMPLE_ROWS = 500
_READ = 40  # different values of a column that detectors read
_LONGEST_READ = 200  # characters of a value that they read
_MOST = 0.6  # share of values with one finding each by which a column is known
_SOME = 0.34  # share of them that a column of plain categories may have
_NEARLY_ALL = 0.9  # share of people's names in a column that is called like one of categories
_WHOLE = 0.9  # share of the letters and digits of a value that a finding of it covers
_LIKE = 0.8  # share of dates or numbers by which a column is one of them
_LEAST_CODE = 8  # digits
_LEAST_DIGITS = 4  # of a number that a rule may call a code
_CATEGORIES = 50
_LONGEST_ABBREVIATION = 3
_SHORT, _FEW_WORDS = 60, 6  # characters and words of a category or a name

_AMOUNT = r"(?:\d{1,3}(?:[.,'’ \u00a0\u202f]\d{3})+|\d+)(?:[.,]\d+)?|[.,]\d+"
_SIGN = r"[-+−]"
_UNIT = r"(?:[€$£¥%‰°]|[A-Z]{3}|US\$|kr|zł|Kč|CHF)"
_NUMBER = re.compile(rf"\(?{_SIGN}?\s?{_UNIT}?\s?{_SIGN}?(?:{_AMOUNT})(?:[eE][-+]?\d+)?\s?{_UNIT}?\)?")
_CLOCK = r"\d{1,2}[:.]\d{2}(?:[:.]\d{2})?(?:[.,]\d+)?\s?(?:[ap]\.?m\.?)?\s?(?:Z|UTC|[-+]\d{2}:?\d{2})?"
_DATE = re.compile(
    r"(?:(?:\d{4}([-/.])\d{1,2}\1\d{1,2}|\d{1,2}([-/.])\d{1,2}\2(?:\d{4}|\d{2})"
    r"|\d{1,2}[. -]+[^\W\d_]{3,10}[., -]+\d{2,4}|[^\W\d_]{3,10}\.? \d{1,2}(?:st|nd|rd|th)?,? \d{4}|\d{8}T?)"
    rf"(?:[T ,]+{_CLOCK})?)",
    re.IGNORECASE,
)
_DECIMAL = re.compile(rf"{_SIGN}?\d+[.,](?:\d{{1,2}}|\d{{4,}})")
_COMPACT = re.compile(r"\d{8}T?")
_CODE_OF_PERSON = re.compile(r"[A-Z]{1,4}[-_./]?\d{2,}(?:[-_./]?[A-Z0-9])*")
_NAME = re.compile(r"[^\W\d][\w .\-/()'’]{0,39}")
_WIDE_NAME = re.compile(r"[^\W\d](?:[\w .\-/()'’#°:?&%+]|\n){0,59}")
_LIKELY_FIELD = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)+|[a-z]+(?:[A-Z][a-z0-9]+)+")
_DIGITS_ONLY = frozenset(
    ("PHONE_NUMBER", "FAX_NUMBER", "US_SSN", "CREDIT_CARD", "IBAN_CODE", "POSTAL_CODE", "US_ZIP_CODE")
)
"""Labels of which each value has a digit."""
_WORDED = frozenset(("PERSON", "ORGANIZATION", "LOCATION", "OCCUPATION", "ONLINE_ID"))


@dataclass(frozen=True, slots=True)
class Column:
    """What was decided about a column.

    Attributes:
        name: as reports show it.
        role: of its cells: ``KEPT``, ``PROSE``, or a label.
        reason: why, for people; holds no cell.
        filled, different: number of cells of the sample that hold something, and of different values.
        values: the values of a column that is kept as categories; None: any number, or, if the user chose, anything.
        chosen: whether the user decided, against what the sample says.
        treated: whether its cells are anonymised at all.
    """

    name: str
    role: str
    reason: str
    filled: int = 0
    different: int = 0
    values: frozenset[str] | None = field(default=None, repr=False)
    chosen: bool = False
    treated: bool = True

    @property
    def treatment(self) -> str:
        """The decision as a policy writes it: ``keep``, ``text`` or a label."""
        return "keep" if self.role == KEPT or not self.treated else self.role or "text"

    def get_cell_role(self, value: str) -> str:
        """Return the role of one cell: that of its column, or prose where it does not look like the others."""
        value = value.strip()
        if self.name and not self.chosen and is_sum(value):
            return KEPT
        if is_missing(value) and self.name:
            return KEPT
        if self.role == PROSE:
            return KEPT if not self.chosen and (is_state(value) or (len(value) == 1 and value.isascii())) else PROSE
        if self.role != KEPT:
            is_date = self.role.startswith("DATE")
            if self.role in _DIGITS_ONLY and not self.chosen and not any(map(str.isdigit, value)):
                return PROSE  # "closed" among telephones
            return PROSE if is_date and len(value) > _SHORT and not _DATE.fullmatch(value) else self.role
        if self.chosen or (value in self.values if self.values is not None else is_number(value)):
            return KEPT
        return KEPT if is_state(value) else PROSE


UNKNOWN = Column("", PROSE, "")
"""For cells that belong to no column."""


def write_treatments(columns: Iterable[Column]) -> str:
    """Return the table ``[columns]`` of a policy, as TOML, with what was decided about columns, and why."""
    lines = {c.name: f"{quote_toml(c.name)} = {quote_toml(c.treatment)}  # {c.reason}" for c in columns}
    head = (
        "# keep, text, or the label of the identifier in the cells; allonym labels list shows the labels\n[columns]\n"
    )
    return head + "\n".join(lines.values()) + "\n"


def read_treatments(path: Path, policy: Policy) -> Policy:
    """Return a policy with the treatments of columns in a TOML file.

    Raises:
        UsageError, UnknownNameError: the file is not valid, or a treatment is not known.
    """
    table = read_toml(path)
    check_names("key", table, ("columns",), str(path))
    return policy.with_(columns=policy.changed(table, str(path)).columns)


@cache
def _read_words() -> Mapping[str, Mapping[str, frozenset[str]]]:
    """Return table -> key -> phrases of ``columns.toml``."""
    raw = tomllib.loads(files("allonym.files").joinpath("columns.toml").read_text(encoding="utf-8"))
    return {
        table: {key: frozenset(" ".join(p.split()) for p in text.split(";")) for key, text in rows.items()}
        for table, rows in raw.items()
    }


@lru_cache(maxsize=1024)
def _split_name(name: str) -> str:
    """Return the words of a column's name, without what stands in brackets, numbers at its end, and signs."""
    words = re.sub(r"\([^)]*\)|\[[^\]]*\]", " ", name)
    words = re.sub(r"[^\w]+", " ", split_field_name(words.rpartition("!")[2]))
    return re.sub(r"[\s\d]+\Z", "", words).strip() or words.strip()


def _ends_with(words: str, phrases: Iterable[str]) -> int:
    """Return the length of the longest of the phrases that the words end with, or 0."""
    return max((len(p) for p in phrases if words == p or words.endswith(f" {p}")), default=0)


@lru_cache(maxsize=4096)
def find_label_of_name(name: str) -> str:
    """Return the label that a column's name tells, or an empty string."""
    words = _split_name(name.rpartition(".")[2] if "." in name.strip(".") and " " not in name else name)
    exact = next((label for label, phrases in _read_words()["exact"].items() if words in phrases), "")
    if exact:
        return exact
    lengths = {label: _ends_with(words, phrases) for label, phrases in _read_words()["ending"].items()}
    label = max(lengths, key=lambda name: lengths[name])
    return label if lengths[label] else ""


def find_role_of_number(name: str, value: str, policy: Policy) -> str:
    """Return the label that a name tells about a number below it, as in a table; prose where it tells none.

    Where the policy does not look for the label, the number is kept.
    """
    label = find_label_of_name(name)
    if not label or not _can_hold(label, [value], policy):
        return PROSE
    return (_choose_label(label, policy) if policy.every or policy.labels else PROSE) or KEPT


def is_missing(value: str) -> bool:
    """Tell whether a cell holds nothing, or a word for that."""
    value = value.strip()
    return not value or value.lower() in _read_words()["missing"]["words"]


def is_sum(value: str) -> bool:
    """Tell whether a cell says that its row has sums."""
    return value.strip().rstrip(":").lower() in _read_words()["sums"]["words"]


def is_state(value: str) -> bool:
    """Tell whether a cell holds a state, such as paid, or a way to pay or to send."""
    return value.strip().lower() in _read_words()["states"]["words"]


def are_compass_points(values: Sequence[str]) -> bool:
    """Tell whether several values are points of the compass; one alone may be somebody's name."""
    return len(values) > 1 and all(value.strip().lower() in _read_words()["compass"]["words"] for value in values)


def is_number(value: str) -> bool:
    """Tell whether a cell holds a number, with or without a currency or a unit."""
    return _NUMBER.fullmatch(value.strip()) is not None


def is_date(value: str) -> bool:
    """Tell whether a cell holds a date, with or without a time. Eight digits alone count, if they can be one."""
    value = value.strip()
    if not _DATE.fullmatch(value):
        return False
    if not _COMPACT.fullmatch(value):
        return True
    return value[:2] in ("19", "20") and "01" <= value[4:6] <= "12" and "01" <= value[6:8] <= "31"


def decide_columns(
    columns: Sequence[tuple[str, str, Sequence[str]]], policy: Policy, fields: Sequence[str] = ()
) -> tuple[Column, ...]:
    """Decide how the columns of a table are treated.

    Args:
        columns: (name, name for reports, sample of values) of each.
        policy: its detectors read the sample, and its table ``columns`` goes before everything else.
        fields: the only columns that are treated; they are never kept as they are. Empty: all.
    """
    return tuple(_decide_column(name, shown, values, policy, fields) for name, shown, values in columns)


def decide_fields(values: Mapping[FieldKeys, Sequence[str]], policy: Policy) -> dict[FieldKeys, Column]:
    """Decide how the fields of records are treated, from a sample of the values of each path."""
    samples = [(".".join(path), format_masked_keys(path), texts) for path, texts in values.items()]
    return dict(zip(values, decide_columns(samples, policy), strict=True))


def _decide_column(name: str, shown: str, values: Sequence[str], policy: Policy, fields: Sequence[str]) -> Column:
    values = [v.strip() for v in values if not is_missing(v)]
    different = list(dict.fromkeys(values))
    counts = len(values), len(different)
    treatment = policy.columns.get(name, policy.columns.get(shown))
    if fields and name not in fields:
        return Column(shown, KEPT, "not among the fields", *counts, treated=False)
    if treatment not in (None, "keep"):
        return Column(shown, PROSE if treatment == "text" else str(treatment), "chosen", *counts, chosen=True)
    if not fields and values and all(is_record_id((name,), v) for v in values):
        if treatment == "keep" or not _are_codes_of_people(values):
            return Column(shown, KEPT, "record id", *counts, treated=False)
        role = _choose_label("GENERIC_ID", policy) or KEPT
        return Column(shown, role, "codes, each once", *counts, chosen=role == KEPT)
    role, reason, categories = _judge_values(name, values, different, policy)
    if treatment == "keep":
        return Column(shown, KEPT, "chosen", *counts, values=categories, chosen=role != KEPT)
    if role == KEPT and fields:
        role, reason, categories = PROSE, "named as a field", None
    return Column(shown, role, reason, *counts, values=categories)


def find_role_of_id(name: str, text: str, policy: Policy) -> str:
    """Return the label of a record id as people bear them, such as P-0147, in a record of no table; others are kept."""
    is_kept = policy.columns.get(name) == "keep" or not _CODE_OF_PERSON.fullmatch(text)
    return KEPT if is_kept else _choose_label("GENERIC_ID", policy) or KEPT


_Judgement = tuple[str, str, frozenset[str] | None]


def _judge_values(name: str, values: Sequence[str], different: Sequence[str], policy: Policy) -> _Judgement:
    """Return the role of a column, the reason, and the values of a category."""
    if not values:
        return PROSE, "empty", None
    if not (policy.every or policy.labels):
        return PROSE, "the policy looks for nothing", None
    label = find_label_of_name(name)
    if label == "PERSON" and all(map(_CODE_OF_PERSON.fullmatch, different)):
        return _choose_label("GENERIC_ID", policy) or KEPT, "codes of people", frozenset(different)
    if label and _can_hold(label, values, policy):
        return _choose_label(label, policy), "its name", None
    stated = _share(different, is_state)
    if stated == 1 or are_compass_points(different):
        return KEPT, f"{len(different)} states", frozenset(different)
    dated = sum(map(is_date, values)) / len(values)
    numeric = sum(map(is_number, values)) / len(values)
    if dated >= _LIKE and not numeric > dated:
        return _choose_label("DATE", policy), "dates", None
    sample = [value[:_LONGEST_READ] for value in different[:: max(1, len(different) // _READ)][:_READ]]
    label, share = _choose_fitting_label(_find_labels(name, sample, policy, models=False), values, policy)
    if numeric >= _LIKE:
        is_direct = bool(label) and policy.taxonomy.get(label).kind == "direct"
        if label and share >= _MOST and (is_direct or policy.taxonomy.within(label, "POSTAL_CODE")):
            return label, f"{_format_share(share)} of the sample is {label}", None
        if _are_long_codes(values):
            return _choose_label("GENERIC_ID", policy), f"numbers of {len(values[0])} digits each", None
        return KEPT, "numbers", None
    if label and share >= _MOST:
        return label, f"{_format_share(share)} of the sample is {label}", None
    is_short = all(len(v) <= _SHORT and len(v.split()) <= _FEW_WORDS for v in different)
    repeats = len(different) <= _CATEGORIES and len(different) * 2 <= len(values)
    is_plain = stated >= _SOME or _ends_with(_split_name(name), _read_words()["keep"]["words"]) > 0
    if repeats:
        sample = [value[:_LONGEST_READ] for value in different]
    labels = _find_labels(name, sample, policy, models=True)
    labels = ["" if is_state(v) else x for v, x in zip(sample, labels, strict=True)]
    if repeats:  # "DF" and "new" may be found, but in a column of few values they are no names
        labels = [x if _is_like_name(v) else "" for v, x in zip(sample, labels, strict=True)]
    label, share = _choose_fitting_label(labels, values, policy)
    if is_short and is_plain:
        # What a column is called goes before what its words look like: Finance is no company, and Open nobody.
        named = {
            v
            for v, x in zip(sample, labels, strict=True)
            if x and policy.taxonomy.within(x, "PERSON") and _is_like_name(v)
        }
        if len(named) >= _NEARLY_ALL * len(sample):
            return label, f"{_format_share(share)} of the sample is {label}", None
        if (repeats or not share) and len(named) <= _SOME * len(sample):
            return KEPT, f"its name and {len(different)} different values", frozenset(sample) - named
    elif is_short and share >= _MOST:
        return label, f"{_format_share(share)} of the sample is {label}", None
    elif is_short and repeats and not share:
        return KEPT, f"{len(different)} values that repeat", frozenset(different)
    return PROSE, "text", None


def _are_codes_of_people(values: Sequence[str]) -> bool:
    """Tell whether ids are codes as people bear them: capitals, then digits, as in P-0147, each once."""
    return len(values) > 1 and len({*values}) == len(values) and all(map(_CODE_OF_PERSON.fullmatch, values))


def _are_long_codes(values: Sequence[str]) -> bool:
    """Tell whether numbers are codes by their look: whole, long, of one length, and no seconds since 1970."""
    length = len(values[0])
    if length < _LEAST_CODE or not all(v.isdigit() and len(v) == length for v in values):
        return False
    if all(v.endswith("000") for v in values):  # round amounts
        return False
    return len({*values}) > 1 and not (length in (10, 13, 16, 19) and all(v[0] == "1" for v in values))


def _is_count_or_measure(value: str) -> bool:
    """Tell whether a value is a number that is too short for a code, or has decimals."""
    is_short = sum(map(str.isdigit, value)) < _LEAST_DIGITS
    return is_number(value) and (is_short or _DECIMAL.fullmatch(value) is not None)


def _format_share(share: float) -> str:
    return f"{share:.0%}".replace("%", " %")


def _choose_label(label: str, policy: Policy) -> str:
    """Return the label, or the nearest one above it that the policy looks for; prose where it looks for none."""
    return next((name for name in policy.taxonomy.lineage(label) if policy.looks_for(name)), PROSE)


def _can_hold(label: str, values: Sequence[str], policy: Policy) -> bool:
    """Tell whether values look as those of a label must, so that "phone" with yes and no is no column of numbers.

    Values that are mostly longer than any identifier are texts: "mail" often holds the mails themselves.
    """
    if _share(values, lambda v: len(v) > _LONGEST_READ) > 0.5:
        return False
    family = policy.taxonomy.get_family(label)
    if label in ("STREET_ADDRESS", "POSTAL_CODE"):
        return True
    if label == "EMAIL_ADDRESS":
        return _share(values, lambda v: "@" in v) >= 0.3
    if label in ("DATE_OF_BIRTH", "LOCATION_COORDINATES") or family == "AGE":
        return _share(values, lambda v: any(map(str.isdigit, v))) >= 0.5
    if family in _WORDED and label != "IP_ADDRESS":
        is_worded = _share(values, lambda v: sum(map(str.isalpha, v)) > 1) >= 0.7
        return is_worded and len({*values}) > 1 and not _are_answers(values)
    return _share(values, lambda v: sum(map(str.isdigit, v)) >= 3) >= 0.5


def _are_answers(values: Sequence[str]) -> bool:
    """Tell whether all values are answers such as yes and no."""
    return _read_words()["answers"]["words"].issuperset(v.lower() for v in values)


def _share(values: Sequence[str], test: Callable[[str], bool]) -> float:
    return sum(map(test, values)) / len(values)


def _is_like_name(value: str) -> bool:
    return " " in value or (not value.islower() and len(value) > _LONGEST_ABBREVIATION)


def _find_labels(name: str, sample: Sequence[str], policy: Policy, *, models: bool) -> list[str]:
    """Return for each value of a sample the label of a finding that covers it, or an empty string.

    ``models``: read by all detectors, and not by rules alone.
    """
    from allonym.pipeline import detect

    document = join_fields("", [(name, value, "\n") for value in sample])
    spans = detect(document, policy if models else _keep_rules_only(policy))
    labels: list[str] = []
    for a, b in document.parts:
        longest = max((s for s in spans if a <= s.start and s.end <= b), key=len, default=None)
        covers = longest is not None and _count_signs(document.text[longest.start : longest.end])
        labels.append(longest.label if longest and covers >= _WHOLE * _count_signs(document.text[a:b]) else "")
    return labels


def _choose_fitting_label(labels: Sequence[str], values: Sequence[str], policy: Policy) -> tuple[str, float]:
    """Return the label of most values of a sample, and the share of values that have any.

    Counts and measures are no codes, whatever their column is called.
    """
    label, share = _choose_common_label(labels, policy)
    if label and policy.taxonomy.get(label).kind == "direct" and label != "LOCATION_COORDINATES":
        is_code = label.endswith(("NUMBER", "ID"))
        if _share(values, _is_count_or_measure) > 0.5 or (is_code and not _can_hold(label, values, policy)):
            return "", 0.0
    return label, share


def _count_signs(text: str) -> int:
    return sum(map(str.isalnum, text))


def _choose_common_label(labels: Sequence[str], policy: Policy) -> tuple[str, float]:
    """Return the label of most values of a sample, and the share of values that have any."""
    some = list(filter(None, labels))
    if not some:
        return "", 0.0
    families = Counter(map(policy.taxonomy.get_family, some))
    family, _ = families.most_common(1)[0]
    label, times = Counter(x for x in some if policy.taxonomy.get_family(x) == family).most_common(1)[0]
    if times < _MOST * families[family]:
        label = _choose_label(family, policy) or label
    return label, len(some) / len(labels)


@lru_cache(maxsize=16)
def _keep_rules_only(policy: Policy) -> Policy:
    return policy.with_(detectors=tuple(d for d in policy.detectors if d == "rules"))


def is_unusual_name(name: str, policy: Policy) -> bool:
    """Tell whether the name of a column must not reach a report: it is empty, or something is found in it."""
    from allonym.pipeline import detect

    if not name.strip() or is_persons_name(name.strip()):
        return True
    is_expected = is_known_name(name) or any(name in keys for keys in policy.metadata.values())
    return not is_expected and bool(detect(name, policy))


def is_known_name(name: str) -> bool:
    """Tell whether a name consists of, or ends with, the words of columns' names."""
    lists = _read_words()
    vocabulary = lists["keep"]["words"] | lists["headers"]["words"]
    return bool(_ends_with(_split_name(name), vocabulary) or find_label_of_name(name))


def is_common_title(text: str) -> bool:
    """Tell whether a text, such as the name of a sheet, is all of a word of columns' names."""
    words = _split_name(text)
    return any(words in _read_words()[table]["words"] for table in ("keep", "headers"))


def is_header(cells: Sequence[str], rows: Sequence[Sequence[str]], policy: Policy, fields: Sequence[str] = ()) -> bool:
    """Tell whether the first row certainly has the names of columns, and no data.

    Args:
        cells: the first row.
        rows: a sample of the others.
        policy: what its detectors find may be data.
        fields: names of columns; a row that holds them all is a header.
    """
    names = [cell.strip() for cell in cells]
    if fields and set(fields) <= set(names):
        return True
    filled = [name for name in names if name]
    if not filled:
        return False
    are_names = all(_WIDE_NAME.fullmatch(name) and not is_persons_name(name) for name in filled)
    if repeated := [name for name, times in Counter(filled).items() if times > 1]:
        is_above_others = any(_differs_in_kind(i, name, rows) for i, name in enumerate(names) if name)
        return are_names and is_above_others and all(map(is_known_name, repeated))
    metadata = {split_field_name(key) for keys in policy.metadata.values() for key in keys}
    named = [is_known_name(name) for name in filled]
    if any(split_field_name(name) in metadata for name in filled):
        return True
    plain = [_NAME.fullmatch(name) is not None for name in filled]
    if any(is_date(name) or "@" in name or len(re.sub(r"\D", "", name)) > 6 for name in filled):
        return False
    if any(is_number(name) for name in filled):
        return any(named) and all(n for n, name in zip(named, filled, strict=True) if not is_number(name))
    if any(named) and (all(plain) or sum(named) * 2 >= len(named)):
        return True
    if sum(named) > 1 and are_names:
        return True
    if all(_LIKELY_FIELD.fullmatch(name) for name in filled):
        return True
    if any(_differs_in_kind(i, name, rows) for i, name in enumerate(names) if name):
        return True
    from allonym.pipeline import detect

    # Where nothing is found in a first row, it makes no difference whether it is data.
    unknown = [name for name, is_known in zip(filled, named, strict=True) if not is_known]
    return all(len(span) == 1 for span in detect("\n".join(unknown), policy))  # one letter names a column, nobody


def _differs_in_kind(index: int, name: str, rows: Sequence[Sequence[str]]) -> bool:
    """Tell whether the cells below a word are numbers, dates or addresses."""
    below = [row[index].strip() for row in rows if index < len(row) and not is_missing(row[index])]
    return len(below) > 1 and all(is_number(v) or is_date(v) or "@" in v for v in below)
