"""Does one person get one pseudonym, and do two persons get two? Given the gold mentions, against coreference chains.

usage: python benchmarks/consistency.py EMAILS [--people CHAINS --texts TEXTS] [--errors PATH] [--operator pseudonym]

EMAILS is the training part of emailcoref (Enron threads, JSONL: text, spans with label, entity_ids and pronoun). Its
PER mentions are taken that are an e-mail address or hold a capitalised word of a name: no pronouns, no common nouns
(``the Marketer``, ``SME``, ``A&M player``), no mention of several persons. CHAINS is
``benchmarks/gold/textwash_50_people.jsonl``, marks without texts; TEXTS holds the texts by id.

The mentions go through ``link`` and ``make_plan`` of the default policy with the operator. Two mentions have one
person's pseudonym where they belong to one entity, or where their names were replaced by the same full name. An e-mail
address belongs to the new person whose family name stands in its new local part, or whose given name does where no
family name does; where that fits several, they must agree with the rest of the local part. "linked" looks at the
entities alone, addresses left out, which ``link`` keeps apart from names.

"without repetition" leaves out the one description that repeats a sentence eleven times.

Pairs are counted within a document, over all documents ("pairs"), and as the mean over documents ("by document").
Prints a table, the errors by kind, and, last, one line of JSON. ``--errors`` writes the wrong pairs to a file: they are
of real people, keep it to yourself.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import allonym
from allonym import registry
from allonym.detection.turns import add_turns
from allonym.link import link
from allonym.policy import Policy, Rule
from allonym.replace import make_plan
from allonym.text.names import normalize_surface

KEY = b"benchmark of consistency"
REPETITIVE = "textwash1-semifamous_55_d_3_4"
"""One sentence eleven times, with given and family name apart: two thirds of all pairs of one person."""
COMMON = frozenset(
    "a an the all any other 2 3 team group sme betas bro's assoc administrative assistant director coordinators prez "
    "cheerleader cheerleaders freshmen graduate player players contact friend marketer commission associates emca dl "
    "spr".split()
)


class Marked(NamedTuple):
    """A gold mention: half-open code points, and the person it means."""

    start: int
    end: int
    chain: str


@dataclass(frozen=True, slots=True)
class Text:
    id: str
    text: str
    mentions: tuple[Marked, ...]


def read_json_lines(path: Path) -> Iterator[Any]:
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def read_emails(path: Path) -> Iterator[Text]:
    for record in read_json_lines(path):
        found: list[Marked] = []
        for s in sorted(record["spans"], key=lambda s: (s["start"], -s["end"])):
            surface = record["text"][s["start"] : s["end"]]
            if s["label"] != "PER" or s["pronoun"] or len(s["entity_ids"]) != 1 or not names_somebody(surface):
                continue
            if not found or s["start"] >= found[-1].end:
                found.append(Marked(s["start"], s["end"], s["entity_ids"][0]))
        yield Text(record["id"], record["text"], tuple(found))


def names_somebody(surface: str) -> bool:
    """Whether a mention is an address, or a name with a capital letter and no common noun."""
    if "@" in surface:
        return True
    words = re.findall(r"[\w'&]+", surface)
    return any(w[0].isupper() for w in words) and not any(w.lower() in COMMON for w in words)


def read_descriptions(chains: Path, texts: Path) -> Iterator[Text]:
    """The marked descriptions. Raises ``SystemExit`` where a text is missing or another."""
    by_id = {r["id"]: r["text"] for r in read_json_lines(texts)}
    for row in read_json_lines(chains):
        text = by_id.get(row["id"], "")
        if sha256(text.encode()).hexdigest() != row["sha256"]:
            sys.exit(f"{texts}: the text {row['id']} is missing or is not the one that was marked")
        yield Text(row["id"], text, tuple(Marked(*m) for m in row["mentions"]))


def guess_label(surface: str) -> str:
    return "EMAIL_ADDRESS" if "@" in surface else "PERSON"


class Outcome(NamedTuple):
    """What became of a mention: the entity it was linked to, and what stands for it (empty: operator not run)."""

    entity: int
    replacement: str


def list_outcomes(text: Text, policy: Policy | None) -> list[Outcome]:
    """For each mention of the text, in order."""
    document = add_turns(allonym.Document("", text.text))
    spans = [allonym.Span(m.start, m.end, guess_label(text.text[m.start : m.end]), 1.0, "gold") for m in text.mentions]
    linked = link(document, spans)
    ordered = sorted(linked.entities, key=lambda e: e.spans[0].start)
    serial = {(s.start, s.end): n for n, e in enumerate(ordered, 1) for s in e.spans}
    stands: dict[int, str] = {}
    if policy is not None:
        plan = make_plan(document, linked, policy, key=KEY)
        places = {m.start: m for m in text.mentions}
        for edit in plan.edits:
            for at in range(edit.start, edit.end):
                if at in places:
                    stands[at] = edit.replacement
    return [Outcome(serial[m.start, m.end], stands.get(m.start, "")) for m in text.mentions]


def name_personas(found: Sequence[Outcome], kinds: Sequence[str]) -> list[object]:
    """The new person of each mention: equal where two mentions show one person.

    Names: that of the entity, where two entities with the same fullest replacement are one. Addresses: see above.
    """
    forms: dict[int, set[str]] = defaultdict(set)
    for one, kind in zip(found, kinds, strict=True):
        if kind != "EMAIL_ADDRESS":
            forms[one.entity].add(normalize_surface(one.replacement))
    fullest = {n: max(f, key=lambda x: (len(name_words(x)), len(x), x)) for n, f in forms.items()}
    whole = {n: frozenset(name_words(f)) for n, f in fullest.items()}
    merged: dict[frozenset[str], int] = {}
    person: dict[int, int] = {}
    for n in sorted(whole):
        person[n] = merged.setdefault(whole[n], n) if len(whole[n]) > 1 else n
    out: list[object] = []
    for one, kind in zip(found, kinds, strict=True):
        if kind != "EMAIL_ADDRESS":
            out.append(person[one.entity])
        else:
            out.append(find_bearer(one.replacement, {person[n]: fullest[n] for n in whole}))
    return out


def name_words(name: str) -> list[str]:
    return [
        w for w in re.findall(r"[^\W\d_]+", normalize_surface(name)) if w not in ("mr", "mrs", "ms", "dr", "jr", "sr")
    ]


def find_bearer(address: str, names: Mapping[int, str]) -> object:
    """Whose address this is: the person whose name words it holds best, else nobody's but its own."""
    local = normalize_surface(address.rpartition("@")[0])
    letters = "".join(re.findall(r"[^\W\d_]+", local))
    fits: dict[int, int] = {}
    for who, name in names.items():
        words = name_words(name)
        told = [w for w in words if len(w) > 2 and w in letters]
        if told:
            rest = letters
            for w in sorted(told, key=len, reverse=True):
                rest = rest.replace(w, "", 1)
            first = [w[0] for w in words if w not in told]
            fits[who] = sum(map(len, told)) + (2 if rest and rest[0] in first else -2 * bool(rest))
    best = max(fits.values(), default=0)
    who_best = [who for who, score in fits.items() if score == best]
    return who_best[0] if len(who_best) == 1 else ("address", letters)


Pair = tuple[str, int, int, bool]
"""The text's id, two of its mentions, and whether they mean one person."""


def count_outcomes(
    texts: Iterable[Text], policy: Policy | None
) -> tuple[dict[str, Any], Counter[str], list[dict[str, object]]]:
    """The figures over all texts, the errors by kind, and the wrong pairs themselves."""
    one: list[tuple[int, int]] = []  # right pairs and pairs, per document, of one person
    two: list[tuple[int, int]] = []
    kinds_of_error: Counter[str] = Counter()
    wrong: list[dict[str, object]] = []
    mentions = 0
    for text in texts:
        kinds = [guess_label(text.text[m.start : m.end]) for m in text.mentions]
        found = list_outcomes(text, policy)
        who = name_personas(found, kinds) if policy is not None else [o.entity for o in found]
        used = [i for i, k in enumerate(kinds) if policy is not None or k != "EMAIL_ADDRESS"]
        mentions += len(used)
        tally = {True: [0, 0], False: [0, 0]}
        for i, j in combinations(used, 2):
            same = text.mentions[i].chain == text.mentions[j].chain
            right = (who[i] == who[j]) == same
            tally[same][0] += right
            tally[same][1] += 1
            if not right:
                a, b = (text.text[m.start : m.end] for m in (text.mentions[i], text.mentions[j]))
                kind = ("split: " if same else "merged: ") + pair_kind(a, b)
                kinds_of_error[kind] += 1
                shown = [found[i].replacement, found[j].replacement]
                wrong.append({"id": text.id, "kind": kind, "originals": [a, b], "replacements": shown})
        one.append((tally[True][0], tally[True][1]))
        two.append((tally[False][0], tally[False][1]))
    figures: dict[str, Any] = {"documents": len(one), "mentions": mentions}
    for name, rows in (("one_person", one), ("two_persons", two)):
        right_pairs, pairs = sum(r for r, _ in rows), sum(n for _, n in rows)
        shares = [r / n for r, n in rows if n]
        figures |= {
            f"{name}_pairs": pairs,
            name: round(right_pairs / pairs, 4) if pairs else None,
            f"{name}_by_document": round(sum(shares) / len(shares), 4) if shares else None,
        }
    return figures, kinds_of_error, wrong


def pair_kind(a: str, b: str) -> str:
    """What is hard about a pair of mentions, by their forms alone."""
    addresses = ("@" in a) + ("@" in b)
    if addresses:
        return "two addresses" if addresses == 2 else "address and name"
    x, y = name_words(a), name_words(b)
    if sorted(x) == sorted(y):
        return "same words"
    for one, other in ((x, y), (y, x)):
        if all(len(w) == 1 for w in one) or (len(one) == 1 and len(one[0]) <= 2):
            return "initials"
        if len(one) == 1 < len(other):
            return "part of a name" if one[0] in other else "short or other given name"
    if len(x) == 1 == len(y):
        return "two single names"
    shared = [w for w in x if w in y and len(w) > 1]
    if len(shared) > 1:
        return "middle names"
    return "one name word shared" if shared else "no word shared"


def make_policy(operator: str) -> Policy:
    return Policy.load("default").with_(default=Rule(operator), rules={})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("emails", type=Path)
    parser.add_argument("--people", type=Path)
    parser.add_argument("--texts", type=Path)
    parser.add_argument("--errors", type=Path)
    parser.add_argument("--operator", default="pseudonym")
    args = parser.parse_args()
    if (args.people is None) != (args.texts is None):
        parser.error("--people and --texts go together")
    sets = {"e-mails": list(read_emails(args.emails))}
    if args.people is not None:
        sets["descriptions"] = list(read_descriptions(args.people, args.texts))
        sets["without repetition"] = [t for t in sets["descriptions"] if t.id != REPETITIVE]
    policies: dict[str, Policy | None] = {"linked": None}
    if args.operator in registry.operators.names():
        policies[args.operator] = make_policy(args.operator)
    print(f"{'':30}{'documents':>10}{'mentions':>10}{'one person':>12}{'by doc':>8}{'two persons':>13}{'by doc':>8}")
    figures: dict[str, Any] = {"benchmark": "consistency"}
    errors: list[dict[str, object]] = []
    kinds: dict[str, Counter[str]] = {}
    for name, texts in sets.items():
        for how, policy in policies.items():
            row, kinds[f"{name}, {how}"], wrong = count_outcomes(texts, policy)
            errors += [{"set": name, "how": how, **w} for w in wrong]
            figures[f"{name}, {how}"] = row
            shares = (
                row[k] for k in ("one_person", "one_person_by_document", "two_persons", "two_persons_by_document")
            )
            cells = ["-" if s is None else f"{s:.2%}" for s in shares]
            print(
                f"{name + ', ' + how:30}{row['documents']:10}{row['mentions']:10}"
                f"{cells[0]:>12}{cells[1]:>8}{cells[2]:>13}{cells[3]:>8}"
            )
    for name, counted in kinds.items():
        print(f"wrong pairs, {name}: " + ("; ".join(f"{k} {n}" for k, n in counted.most_common()) or "none"))
    if args.errors is not None:
        args.errors.write_text("".join(json.dumps(e, ensure_ascii=False) + "\n" for e in errors), "utf-8")
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
