"""Do pseudonyms invent facts? Counts what goes wrong in passages of all kinds, under the policy ``pseudonyms``.

usage: python benchmarks/pseudonym_passages.py [FILE] [--keys 3] [--show FIGURE ...] [--texts KIND ...]

FILE is JSONL, by default the eighty passages of tests/cases/pseudonym_passages.jsonl; twenty others, which were
written when these had few faults left, are in pseudonym_passages_unseen.jsonl beside it. A row has ``kind``, ``text``,
``people`` (the words of their names), ``together`` (groups of places, peoples, languages, postal codes and telephone
numbers of one country), ``gender`` (given name to what the passage says of it).

For each key it counts
- words: ordinary words in small letters that became a name or a firm, and first words of a sentence that did,
- tags, by label,
- years that stand where they stood, in what was found and elsewhere,
- mismatches: members of a group whose new country is not that of the group,
- firms, and other organisations, that the knowledge base knows and that replace others,
- pieces of people's names, and runs of six digits and more, that a replacement keeps; and names that nothing covers,
- replacements that equal their originals,
- telephone numbers that are not reserved, of countries that reserve some,
- genders that contradict the passage.

Beside the passages it gives 300 names, drawn evenly from all origins and genders of the knowledge base, and all its
companies to the operator, and counts substitutes of the same gender and origin, and those that are a real firm.

The sum of words, tags, years and mismatches is the worst of the keys. ``--show`` prints the cases of a figure,
``--texts`` the passages of a kind with originals beside replacements. Prints a table and, last, one line of JSON.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache, partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import phonenumbers

import allonym
from allonym.detection.words import read_ordinary_words
from allonym.document import Document, Span
from allonym.kb import KnowledgeBase
from allonym.kb.base import PLACES
from allonym.pipeline import replace_found
from allonym.plan import Edit
from allonym.policy import Policy
from allonym.replace.tables import read_toml, read_tsv
from allonym.replace.wording import describe_shape
from allonym.text.names import normalize_surface

PASSAGES = Path(__file__).resolve().parent.parent / "tests/cases/pseudonym_passages.jsonl"
KEY = b"the key of the passages, number "
FIRST_FOUR = ("words", "tags", "years", "mismatches")
FIGURES = (
    *FIRST_FOUR, "first words", "years elsewhere", "firms", "organizations", "pieces", "long numbers",
    "uncovered names", "equal", "phones", "genders",
)  # fmt: skip
_TAG = re.compile(r"\[?[A-Z][A-Z_]+_\d+\]?")
_WORD = re.compile(r"[^\W\d_]+")
_SUPPORTED = sorted(phonenumbers.SUPPORTED_REGIONS)
_YEAR = re.compile(
    r"(?<![\w.,/+-])(?:1[89]|20)[0-9]{2}(?![\w/]|[.,]\d)|(?<=[/.\-])(?:19|20)[0-9]{2}\b|\b(?:19|20)[0-9]{2}(?=-)"
)
_NUMBER = re.compile(r"\d{6,}")
_FUNCTION = frozenset("a an the of and in on at to for with by or from as his her their our my your its is was".split())
_ATTRIBUTES = ("occupation", "language", "nationality", "title")
_NO_NAMES = ("DATE_TIME", "AGE", "EMAIL_ADDRESS", "ONLINE_ID")
_CONTENT = (
    ("company", "bank", "newspaper"),
    ("university", "school", "hospital", "agency", "team", "museum", "org", "party"),
)


class Case(NamedTuple):
    """One thing that went wrong: the passage, its original, its replacement."""

    passage: int
    old: str
    new: str


def list_cases(row: dict[str, Any], edits: Sequence[Edit], kb: KnowledgeBase) -> Iterator[tuple[str, str, str]]:
    """Yield figure, original and replacement of all that went wrong in a passage."""
    text = row["text"]
    taxonomy = Policy.load("pseudonyms").taxonomy
    people = {normalize_surface(word) for word in row["people"]}
    reserved = _read_reserved_regions()
    for edit in edits:
        old, new = text[edit.start : edit.end], edit.replacement
        family = taxonomy.get_family(edit.label)
        if old.lower() in ("a", "an"):
            continue
        if _TAG.search(new):
            yield "tags", old, new
            continue
        if (
            family not in _NO_NAMES
            and _is_ordinary(old, people, kb)
            and not _is_ordinary(new, set(), kb, new=True, old=old)
        ):
            if old.islower():
                yield "words", old, new
            elif _is_first_word(text, edit.start) and " " not in old:
                yield "first words", old, new
        if family == "DATE_TIME":
            pairs = zip(_YEAR.findall(old), _YEAR.findall(new), strict=False)
            yield from (("years", a, b) for a, b in pairs if a == b)
        if old.casefold() == new.casefold():
            yield "equal", old, new
        plain = normalize_surface(new)
        yield from (("pieces", old, new) for w in people if len(w) > 3 and w in normalize_surface(old) and w in plain)
        yield from (("long numbers", old, new) for run in _NUMBER.findall(old) if run in new)
        if family == "ORGANIZATION":
            for figure, kinds in zip(("firms", "organizations"), _CONTENT, strict=True):
                if _names_known_organization(kb, old, new, kinds):
                    yield figure, old, new
        if edit.label == "PHONE_NUMBER" and not _is_reserved(new, reserved):
            yield "phones", old, new
    yield from _list_uncovered(text, edits, people)
    yield from _list_mismatches(row, edits, kb)
    for name, gender in row.get("gender", {}).items():
        for edit in edits:
            if edit.start <= text.find(name) < edit.end and gender:
                words = [w for w in _WORD.findall(edit.replacement) if kb.gender(w)]
                if words and kb.gender(words[0]) not in (gender, "n"):
                    yield "genders", name, edit.replacement


def _is_ordinary(text: str, people: set[str], kb: KnowledgeBase, *, new: bool = False, old: str = "") -> bool:
    """Whether all words of a text are ordinary ones: of an original also those that are in no list of names.

    Of a ``new`` text only those of the list, and peoples, languages and occupations.
    """
    words = _WORD.findall(text)
    ordinary = read_ordinary_words() | _FUNCTION | (_read_substitutes() if new else frozenset())
    ends = (" ".join(words[i:]) for i in range(len(words)))
    if new and any(kb.find(form, _ATTRIBUTES) for end in ends for form in (end, end.rstrip("s"))):
        return True
    if new and not text.islower() and len(words) > 1:
        return False

    def is_ordinary_word(word: str) -> bool:
        if any(name in normalize_surface(word) for name in people):
            return False
        return (
            word.lower() in ordinary
            or word in old
            or (not new and not kb.name_facts(word) and not kb.find(word, PLACES))
        )

    return bool(words) and len(max(words, key=len)) > 2 and all(map(is_ordinary_word, words))


@cache
def _read_substitutes() -> frozenset[str]:
    """Return the ordinary words that stand for others, in either number."""
    tables = read_toml("ordinary.toml")
    words = _WORD.findall(" ".join((*tables["lists"], *tables["general"].values())))
    return frozenset(form for word in words for form in (word, f"{word}s", f"{word}es"))


def _is_first_word(text: str, start: int) -> bool:
    return text[start : start + 1].isupper() and re.search(r"(?:\A|[\n.:!?]\s*)\Z", text[:start]) is not None


def _list_uncovered(text: str, edits: Sequence[Edit], people: set[str]) -> Iterator[tuple[str, str, str]]:
    borders = [0, *(p for e in edits for p in (e.start, e.end)), len(text)]
    for start, end in list(pairwise(borders))[::2]:
        outside = text[start:end]
        yield from (("years elsewhere", m[0], m[0]) for m in _YEAR.finditer(outside))
        names = (w for w in _WORD.findall(outside) if w[0].isupper() and normalize_surface(w) in people and len(w) > 2)
        yield from (("uncovered names", w, w) for w in names)


def _names_known_organization(kb: KnowledgeBase, old: str, new: str, kinds: Sequence[str]) -> bool:
    words = new.split()
    names = {" ".join(words[:n]).strip(" ,.") for n in range(1, len(words) + 1)} if words else set()
    known = {n for n in names if (len(n) > 2 or n == new) and any(i.label for i in kb.find(n, kinds))}
    return bool(known) and not any(n in old for n in known)


# Countries


def _list_mismatches(row: dict[str, Any], edits: Sequence[Edit], kb: KnowledgeBase) -> Iterator[tuple[str, str, str]]:
    """Yield the members of each group whose new country is not that of most of the group."""
    text = row["text"]
    for group in row.get("together", ()):
        members = [(old, new, _find_countries(kb, new)) for old in group for new in _list_new_forms(text, edits, old)]
        known = [(old, new, codes) for old, new, codes in members if codes]
        if not known:
            continue
        votes = Counter(code for _, _, codes in known for code in codes)
        best = max(sorted(votes), key=lambda code: votes[code])
        yield from (("mismatches", old, new) for old, new, codes in known if best not in codes)


def _list_new_forms(text: str, edits: Sequence[Edit], old: str) -> list[str]:
    """Return what stands in place of a surface, wherever it stands; of an address, the part that it is."""
    out = []
    for match in re.finditer(re.escape(old), text):
        for edit in edits:
            if edit.start <= match.start() and match.end() <= edit.end and not _TAG.search(edit.replacement):
                surface, new = text[edit.start : edit.end], edit.replacement
                if surface == old or "," not in surface:
                    out.append(new)
                else:
                    parts, news = re.split(r"\s*,\s*", surface), re.split(r"\s*,\s*", new)
                    i = next((i for i, part in enumerate(parts) if old in part), 0)
                    out.append(news[i] if len(parts) == len(news) else new)
    return out


def _find_countries(kb: KnowledgeBase, text: str) -> set[str]:
    """Return the countries that a replacement may belong to; none where nothing tells."""
    bare = re.sub(r"\b(?:the|[A-Z]{2})\s+(?=\w)", "", text.strip())
    digits = sum(map(str.isdigit, bare))
    if digits >= 7 and not any(c.isalpha() for c in bare) and not _find_postcode_countries(bare):
        return _find_phone_countries(bare)
    words = re.sub(r"\S*\d\S*", " ", bare).strip(" ,").split()
    out: set[str] = set()
    for name in (bare, *(" ".join(words[i:]) for i in range(len(words))), *(" ".join(words[:i]) for i in (2, 1))):
        if name:
            out |= {i.country for i in kb.find(name, ("country", "region", "city", "nationality")) if i.country}
            for language in kb.find(name, ("language",)):
                out |= {c.country for c in kb.inverse(language, "language")}
        if out:
            return out
    return _find_postcode_countries(bare) if digits else set()


def _find_phone_countries(text: str) -> set[str]:
    if text.startswith("+"):
        number = phonenumbers.parse(text, None)
        return set(phonenumbers.COUNTRY_CODE_TO_REGION_CODE.get(number.country_code, ()))
    out = set()
    for code in phonenumbers.SUPPORTED_REGIONS:
        try:
            number = phonenumbers.parse(text, code)
        except phonenumbers.NumberParseException:
            continue
        if phonenumbers.is_possible_number(number) and (
            text[0] != "0" or phonenumbers.ndd_prefix_for_region(code, True) == "0"
        ):
            out.add(code)
    return out


def _find_postcode_countries(text: str) -> set[str]:
    shape = describe_shape(text)
    tail = re.sub(r"\AA9+A?(?= )", "A9", shape) if " " in shape else shape
    tail = re.sub(r"\AAA9+A?(?= )", "A9", tail)
    return {c for c, row in read_toml()["postcodes"].items() if "form" in row and row["form"] in (shape, tail)}


def _read_reserved_regions() -> dict[str, list[str]]:
    out: dict[str, list[str]] = {}
    for region, _, number, *_ in read_tsv("phones.tsv"):
        out.setdefault(region, []).append(number)
    return out


def _is_reserved(text: str, reserved: dict[str, list[str]]) -> bool:
    """Whether a number is reserved, or no country that it may belong to reserves any."""
    digits = re.sub(r"\D", "", text)
    if re.search(r"55501\d\d\Z", digits) or not digits:
        return True
    patterns = [p for rows in reserved.values() for p in rows]
    if any(re.search(re.sub("x", r"\\d", p) + r"\Z", digits) for p in patterns):
        return True
    codes = _find_phone_countries(text) if text.startswith("+") else set(filter(partial(_is_valid, text), _SUPPORTED))
    reserving = {*reserved, "US", "CA"}
    return codes.isdisjoint(reserving) if text.startswith("+") else not codes or not codes <= reserving


def _is_valid(text: str, region: str) -> bool:
    try:
        return phonenumbers.is_valid_number(phonenumbers.parse(text, region))
    except phonenumbers.NumberParseException:
        return False


def replace_one(text: str, label: str, policy: Policy) -> str:
    """Return what the policy writes for a text that is one mention."""
    return replace_found(Document("", text), [Span(0, len(text), label)], policy, key=KEY + b"0").text


def measure_names(kb: KnowledgeBase, policy: Policy, count: int = 300) -> dict[str, int]:
    """Count the names whose substitute is of their gender, or of either, and whose words are both of their origin."""
    groups = [(o, g) for o in kb.origins() for g in "fm" if min(map(len, _list_pools(kb, o, g))) >= 30]
    kept = Counter(names=count, gender=0, origin=0)
    for i in range(count):
        origin, gender = groups[i % len(groups)]
        given, family = _list_pools(kb, origin, gender)
        words = replace_one(
            f"{given[7919 * i % len(given)]} {family[7907 * i % len(family)]}", "PERSON", policy
        ).split()
        first = [fact for fact in kb.name_facts(words[0]) if fact.part == "first"]
        last = [fact for fact in kb.name_facts(words[-1]) if fact.part == "last"]
        kept["gender"] += any(fact.gender in (gender, "n") for fact in first)
        kept["origin"] += all(any(fact.origin == origin for fact in facts) for facts in (first, last))
    return dict(kept)


def _list_pools(kb: KnowledgeBase, origin: str, gender: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return kb.names("first", origin, gender), kb.names("last", origin, gender)


def measure_firms(kb: KnowledgeBase, policy: Policy) -> dict[str, int]:
    """Count the companies of the knowledge base that became another one of it."""
    names = [item.label for item in kb.pool("company")]
    news = [replace_one(name, "ORGANIZATION", policy) for name in names]
    real = sum(_names_known_organization(kb, old, new, _CONTENT[0]) for old, new in zip(names, news, strict=True))
    return {"firms": len(names), "real": real}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, nargs="?", default=PASSAGES)
    parser.add_argument("--keys", type=int, default=3)
    parser.add_argument("--show", nargs="*", default=[])
    parser.add_argument("--texts", nargs="*", default=None)
    asked = parser.parse_args()
    rows = [json.loads(line) for line in asked.file.read_text(encoding="utf-8").splitlines()]
    kb, policy = KnowledgeBase.open(None), Policy.load("pseudonyms")
    found = [allonym.detect(row["text"], policy) for row in rows]
    figures: list[dict[str, int]] = []
    labels: Counter[str] = Counter()
    for number in range(asked.keys):
        cases: dict[str, list[Case]] = {figure: [] for figure in FIGURES}
        for i, row in enumerate(rows):
            document = Document(str(i), row["text"])
            result = replace_found(document, found[i], policy, key=KEY + str(number).encode())
            for figure, old, new in list_cases(row, result.plan.edits, kb):
                cases[figure].append(Case(i, old, new))
                if figure == "tags":
                    labels[new.strip("[]").rpartition("_")[0]] += 1
            if asked.texts is not None and not number and (not asked.texts or row["kind"] in asked.texts):
                print(f"== {i} {row['kind']}\n{mark_edits(row['text'], result.plan.edits)}\n")
        figures.append({figure: len(cases[figure]) for figure in FIGURES})
        for figure in asked.show:
            print(
                *(
                    f"{figure}: key {number}, {i} {rows[i]['kind']}: {old!r} -> {new!r}"
                    for i, old, new in cases[figure]
                ),
                sep="\n",
            )
    print(f"{len(rows)} passages, {sum(map(len, found))} findings")
    for figure in FIGURES:
        print(f"{figure:18}" + "".join(f"{row[figure]:6}" for row in figures))
    names, firms = measure_names(kb, policy), measure_firms(kb, policy)
    print(f"{names['names']} names: gender kept {names['gender']}, origin kept {names['origin']}")
    print(f"{firms['firms']} firms: {firms['real']} became another real one")
    worst = max(sum(row[figure] for figure in FIRST_FOUR) for row in figures)
    print(f"{'first four':18}{worst:6} with the worst key")
    print("tags by label:", ", ".join(f"{label} {n / asked.keys:.1f}" for label, n in labels.most_common(12)))
    print(
        json.dumps(
            {
                "benchmark": "pseudonym_passages",
                "passages": len(rows),
                "first_four": worst,
                "keys": figures,
                **names,
                **firms,
            }
        )
    )


def mark_edits(text: str, edits: Sequence[Edit]) -> str:
    """Return a text with ``{original|replacement}`` for each edit."""
    out, position = "", 0
    for edit in edits:
        out += text[position : edit.start] + f"{{{text[edit.start : edit.end]}|{edit.replacement}}}"
        position = edit.end
    return out + text[position:]


if __name__ == "__main__":
    main()
