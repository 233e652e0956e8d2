"""Generate labelled training text from templates and lists, for types that no open corpus annotates.

The templates, the lists and the names are in the folder ``synthetic``; all of them were written for allonym. A template
is a line of text with

- ``{list}``: an entry of a list, marked with the label of the list, if it has one; ``{~list}`` the same unmarked,
  ``{^list}`` with a capital letter, ``{_list}`` in lower case, ``{!list}`` in capitals; ``{#3-40}`` a whole number;
- ``{A}``, ``{B}``, ``{C}``: people of the text, in one of the usual forms of a full name; ``{A.f}`` first name,
  ``{A.l}`` last name, ``{A.fl}`` both, ``{A.rev}`` "Last, First", ``{A.i}`` "F. Last", ``{A.t}`` title and last name,
  ``{A.tf}`` title and full name, ``{A.s}`` any short form that fits a later mention, ``{A.he}``, ``{A.His}``,
  ``{A.man}`` and so on; without ``A.`` these words mean A;
- ``<one|another|>``: one of several texts; ``[DATE text]``: text marked with a label; ``a~``: a or an; ``\\n``: a
  new line.

Spans cover names without titles, places and organisations without a leading article, addresses without the city, dates
with their words ("the third of March", "two years ago") but without prepositions, and ages such as "34-year-old", "aged
45", "52" or "late thirties". If lists are nested, the outermost label counts.
"""

from __future__ import annotations

import random
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import accumulate
from typing import Any

LISTS = ("everyday", "people", "places", "things", "time")
MARKS = {label: label for label in "AGE AWARD CITY COUNTRY DATE EVENT LAW MONEY ORIGIN REGION TIME".split()} | {
    "FAC": "FACILITY",
    "FIRST": "PERSON_FIRSTNAME",
    "LANG": "LANGUAGE",
    "LAST": "PERSON_LASTNAME",
    "LOC": "LOCATION",
    "OCC": "OCCUPATION",
    "ORG": "ORGANIZATION",
    "PROD": "PRODUCT",
    "QTY": "QUANTITY",
    "WORK": "WORK_OF_ART",
    "X": "OTHER_IDENTIFYING_ATTRIBUTE",
}
# The spans of these labels keep a leading article, which belongs to the title, the phrase or the date.
KEEP_ARTICLE = {"WORK_OF_ART", "OTHER_IDENTIFYING_ATTRIBUTE", "DATE", "TIME", "MONEY", "QUANTITY", "AGE"}
_MALE = "he him his hers himself man boy son brother husband father gentleman guy".split()
_FEMALE = "she her her hers herself woman girl daughter sister wife mother lady girl".split()
WORDS = {
    "f": dict(zip(_MALE, _FEMALE, strict=True)),
    "m": dict(zip(_MALE, _MALE, strict=True)) | {"hers": "his"},
}
TITLES = {
    "f": ("Mrs", "Mrs.", "Ms", "Ms.", "Ms", "Miss", "Dr", "Dr.", "Prof.", "Professor"),
    "m": ("Mr", "Mr.", "Mr", "Mr.", "Dr", "Dr.", "Prof.", "Professor"),
}
_FORMS = {"s": ("f", "l", "l", "t", "f"), "any": ("fl",) * 15 + ("mid", "midi", "i", "rev2", "mid", "ii")}
"""Forms of a name to draw from, where a template leaves the choice."""

SURNAME_FIRST = {"chinese", "korean", "hungarian", "vietnamese", "japanese"}
AN = re.compile(r"(?!uni|use|usu|eu|one\b|one-|u\.?[ks]\b|ut|ug|uru|ubu)[aeiou]|hour|honou?r|honest|heir|8|1[18](?!\d)")
AN_LETTERS = re.compile(r"(MP|MBA|NGO|FBI|NHS|HR|[AEFHILMNORSX])(?![a-z'’A-Z])")

Piece = tuple[str, str]
Node = tuple[str, Any]


@dataclass(frozen=True, slots=True)
class Person:
    """A person of a text: ``gender`` is f or m, ``origin`` is that of the first name."""

    first: str
    last: str
    middle: str
    gender: str
    origin: str
    title: str


@dataclass(frozen=True, slots=True)
class Rule:
    """A parsed list: the label of its entries ('' for none) and the entries."""

    label: str
    entries: tuple[tuple[Node, ...], ...]


@cache
def read_name_rows() -> tuple[tuple[str, str, str, tuple[str, ...]], ...]:
    """Return the rows of the table of names: origin, ``first`` or ``last``, gender (f, m, '' for last), names."""
    lines = (line.split("\t") for line in _read_file("names.tsv").splitlines() if line and not line.startswith("#"))
    return tuple(
        (origin, part, gender, tuple(name.strip() for name in listed.split(",")))
        for origin, part, gender, listed in lines
    )


def _read_file(name: str) -> str:
    return files("allonym.train").joinpath("synthetic", name).read_text(encoding="utf-8")


@cache
def _list_held_out_names() -> frozenset[str]:
    """Return the names held out from training text: every third of a list, wherever they recur."""
    return frozenset(name for _, _, _, listed in read_name_rows() for name in listed[2::3])


@cache
def _select_name_pools(held_out: bool) -> dict[tuple[str, str, str], tuple[str, ...]]:
    return {
        (origin, part, gender): tuple(name for name in listed if (name in _list_held_out_names()) == held_out)
        for origin, part, gender, listed in read_name_rows()
    }


# Parsing


def parse_template(template: str) -> tuple[Node, ...]:
    """Parse a template: ("text", str), ("slot", str), ("alt", tuple of node tuples), ("mark", (label, nodes))."""
    nodes, rest = _parse_nodes(template.replace("\\n", "\n").replace("a~", "a\x01").replace("A~", "A\x01"), "")
    if rest:
        raise ValueError(f"template {template!r}: {rest!r} is left over")
    return nodes


def _parse_nodes(text: str, until: str) -> tuple[tuple[Node, ...], str]:
    nodes: list[Node] = []
    while text and text[0] not in until:
        if text[0] == "{":
            slot, _, text = text[1:].partition("}")
            nodes.append(("slot", slot))
        elif text[0] == "<":
            options = []
            text = "|" + text[1:]
            while text[:1] == "|":
                option, text = _parse_nodes(text[1:], "|>")
                options.append(option)
            if text[:1] != ">":
                raise ValueError("a template has < without >")
            nodes.append(("alt", tuple(options)))
            text = text[1:]
        elif mark := re.match(r"\[([A-Z]+) ", text):
            inner, text = _parse_nodes(text[mark.end() :], "]")
            if text[:1] != "]":
                raise ValueError("a template has [ without ]")
            nodes.append(("mark", (MARKS[mark[1]], inner)))
            text = text[1:]
        else:
            end = re.compile(r"[{<\[" + re.escape(until) + "]").search(text, 1)
            cut = end.start() if end else len(text)
            nodes.append(("text", text[:cut]))
            text = text[cut:]
    return tuple(nodes), text


@cache
def _read_grammar_rules() -> dict[str, Rule]:
    rules = {}
    for name in LISTS:
        for key, table in tomllib.loads(_read_file(f"{name}.toml")).items():
            entries = (e.strip() for e in table["items"].replace("\n", ";").split(";"))
            rules[key] = Rule(table.get("label", ""), tuple(parse_template(e) for e in entries if e))
    return rules


@cache
def read_templates_by_register() -> dict[str, dict[str, tuple[tuple[Node, ...], ...]]]:
    """Read the templates by register and kind: open and follow are chained, single is alone, plain has no span."""
    templates: dict[str, dict[str, tuple[tuple[Node, ...], ...]]] = {}
    folder = files("allonym.train").joinpath("synthetic", "templates")
    for entry in sorted(folder.iterdir(), key=lambda e: e.name):
        for register, kinds in tomllib.loads(entry.read_text(encoding="utf-8")).items():
            parsed = {kind: tuple(parse_template(t) for t in text.splitlines() if t) for kind, text in kinds.items()}
            templates[register] = parsed
    return templates


# Filling


class _TemplateFiller:
    """Fills the templates of one text, whose people stay the same throughout."""

    def __init__(self, rng: random.Random, held_out: bool) -> None:
        self.rng = rng
        self.pools = _select_name_pools(held_out)
        self.people: dict[str, Person] = {}

    def get_person(self, key: str) -> Person:
        if key not in self.people:
            self.people[key] = self._invent_person()
        return self.people[key]

    def _invent_person(self) -> Person:
        rng = self.rng
        origins = _list_origins()
        origin, gender = rng.choice(origins), rng.choice("fm")
        family = origin if rng.random() < 0.88 else rng.choice(origins)
        first = rng.choice(self.pools[origin, "first", gender])
        last = rng.choice(self.pools[family, "last", ""])
        middle = rng.choice(self.pools[origin, "first", gender])
        if rng.random() < 0.04:
            last += rng.choice("- ") + rng.choice(self.pools[family, "last", ""])
        return Person(first, last, middle, gender, origin, rng.choice(TITLES[gender]))

    def fill(self, nodes: tuple[Node, ...], label: str = "") -> list[Piece]:
        pieces: list[Piece] = []
        for kind, value in nodes:
            if kind == "text":
                pieces.append((value, label))
            elif kind == "slot":
                pieces += self._fill_slot(value, label)
            elif kind == "alt":
                pieces += self.fill(self.rng.choice(value), label)
            else:
                pieces += self._label_pieces(self.fill(value[1], "-"), value[0], label)
        return pieces

    def _label_pieces(self, pieces: list[Piece], own_label: str, outer: str) -> list[Piece]:
        text = "".join(t for t, _ in pieces)
        if outer:
            return [(text, outer)]
        if own_label not in KEEP_ARTICLE and (article := re.match(r"(the|an?) ", text)):
            return [(article[0], ""), (text[article.end() :], own_label)]
        return [(text, own_label)]

    def _fill_slot(self, slot: str, label: str) -> list[Piece]:
        rng = self.rng
        if slot[0] == "#":
            low, _, high = slot[1:].partition("-")
            return [(str(rng.randint(int(low), int(high))), label)]
        if slot[0] in "~^_!":
            pieces = self._fill_slot(slot[1:], label or ("-" if slot[0] == "~" else ""))
            if slot[0] == "~":
                return [("".join(t for t, _ in pieces), label)]
            if slot[0] in "_!":
                return [(t.lower() if slot[0] == "_" else t.upper(), labels) for t, labels in pieces]
            return [(pieces[0][0][:1].upper() + pieces[0][0][1:], pieces[0][1]), *pieces[1:]]
        if slot in ("first", "last"):
            gender = rng.choice("fm") if slot == "first" else ""
            name = rng.choice(self.pools[rng.choice(_list_origins()), slot, gender])
            return [(name, label or f"PERSON_{slot.upper()}NAME")]
        head, _, form = slot.partition(".")
        if head in ("A", "B", "C", "D"):
            return [(t, label or labels) for t, labels in self._write_name(self.get_person(head), form or "any")]
        if slot.lower() in WORDS["f"]:
            return [(t, label) for t, _ in self._write_name(self.get_person("A"), slot)]
        rule = _read_grammar_rules()[slot]
        pieces = self.fill(rng.choice(rule.entries), label or ("-" if rule.label else ""))
        return self._label_pieces(pieces, rule.label, label) if rule.label else pieces

    def _write_name(self, person: Person, form: str) -> list[Piece]:
        rng = self.rng
        first, last = (person.first, "PERSON_FIRSTNAME"), (person.last, "PERSON_LASTNAME")
        initial, blank = (person.first[0] + ".", "PERSON_FIRSTNAME"), (" ", "")
        if form.lower() in WORDS["f"]:
            word = WORDS[person.gender][form.lower()]
            return [(word.capitalize() if form[0].isupper() else word, "")]
        form = rng.choice(_FORMS[form]) if form in _FORMS else form
        title = (person.title + " ", "")
        middle = (person.middle, "PERSON_FIRSTNAME")
        shapes: dict[str, list[Piece]] = {
            "f": [first],
            "l": [last],
            "fl": [first, blank, last],
            "rev": [last, (", ", ""), first],
            "REV": [(person.last.upper(), last[1]), (", ", ""), first],
            "i": [initial, blank, last],
            "fi": [first, blank, (person.last[0] + ".", last[1])],
            "t": [title, last],
            "tf": [title, first, blank, last],
            "mid": [first, blank, middle, blank, last],
            "midi": [first, blank, (person.middle[0] + ".", middle[1]), blank, last],
            "ii": [initial, blank, (person.middle[0] + ".", middle[1]), blank, last],
            "rev2": [last, blank, first] if person.origin in SURNAME_FIRST else [first, blank, last],
        }
        return shapes[form]


@cache
def _list_origins() -> tuple[str, ...]:
    return tuple(dict.fromkeys(origin for origin, _, _, _ in read_name_rows()))


def _assemble_text(pieces: list[Piece]) -> tuple[str, list[dict[str, Any]]]:
    text = ""
    spans: list[dict[str, Any]] = []
    for part, label in pieces:
        if part == "the " and text.lower().endswith(("the ", "a\x01 ", " a ")):
            continue
        if text.endswith("\x01") or "\x01" in text[-3:]:
            head, _, tail = text.rpartition("\x01")
            if not (tail + part).strip():
                text += part
                continue
            ahead = (tail + part).lstrip(" \"“'‘")
            text = head + ("n" if _takes_an(ahead) else "") + tail
        start = len(text)
        if "\x01" in part[:-2]:
            part = re.sub("\x01(?= ?(.{1,12}))", lambda m: "n" if _takes_an(m[1]) else "", part)
        text += part
        if label and label != "-" and part:
            spans.append({"start": start, "end": start + len(part), "label": label, "text": part})
    return text.replace("\x01", ""), spans


def _takes_an(word: str) -> bool:
    return bool(AN_LETTERS.match(word) or AN.match(word.lower())) if word else False


# Texts


def _choose_templates(rng: random.Random, held_out: bool) -> tuple[str, list[tuple[Node, ...]]]:
    """Choose a register and the templates of a text; three of ten texts have few spans or none."""
    everything = read_templates_by_register()
    kind = rng.choices(("plain", "chain", "single"), (30, 33, 37))[0]
    register_kind = {"plain": "plain", "chain": "follow", "single": "single"}[kind]
    # The templates of wordnames contain names that are ordinary words; none of these is held out.
    left_out = "wordnames" if held_out else ""
    usable = [name for name, kinds in everything.items() if register_kind in kinds and name != left_out]
    power = 1.3 if kind == "plain" else 0.8  # much of the plain text is everyday text, which varies most
    sizes = list(accumulate(len(everything[name][register_kind]) ** power for name in usable))
    name = rng.choices(usable, cum_weights=sizes)[0]
    kinds = everything[name]
    if kind == "single":
        return f"{name}/single", [rng.choice(kinds["single"])]
    if kind == "plain":
        return f"{name}/plain", rng.sample(kinds["plain"], min(len(kinds["plain"]), rng.randint(1, 4)))
    chosen = [rng.choice(kinds["open"]), *rng.sample(kinds["follow"], min(len(kinds["follow"]), rng.randint(1, 7)))]
    if "plain" in kinds and rng.random() < 0.3:
        chosen.insert(rng.randint(1, len(chosen)), rng.choice(kinds["plain"]))
    return f"{name}/chain", chosen


def generate_texts(n: int, seed: int, held_out: bool = False) -> Iterator[dict[str, Any]]:
    """Yield ``n`` labelled texts as records {"id", "doc_id", "text", "spans", "meta"}.

    Spans are half-open in code points, sorted and disjoint. Their labels are the tagger's (``allonym/labels.tsv``), and
    every span of these types is marked. The same ``n`` and ``seed`` give the same texts on any machine. ``meta`` has
    the template, and the origin and gender of the first person's name, if any. ``held_out`` uses only the names held
    out from training, for evaluation on unseen names.
    """
    rng = random.Random(seed)
    for i in range(n):
        writer = _TemplateFiller(rng, held_out)
        template, parts = _choose_templates(rng, held_out)
        pieces: list[Piece] = []
        lines = template.startswith(("chat", "turns"))
        blank = "\n" if lines else rng.choice((" ", " ", " ", " ", "\n", "\n\n"))
        for j, nodes in enumerate(parts):
            if j:
                pieces.append((blank, ""))
            pieces += writer.fill(nodes)
        text, spans = _assemble_text(pieces)
        meta = {"source": "allonym-synthetic", "template": template}
        named = any(span["label"].startswith("PERSON") for span in spans)
        if named and (person := writer.people.get("A")):
            meta |= {"origin": person.origin, "gender": person.gender}
        name = f"synthetic-{seed}-{i}"
        yield {"id": name, "doc_id": name, "text": text, "spans": spans, "meta": meta}
