"""How often two people of one scope meet in one pseudonym, without a vault, in one pass with a book, and by formula.

    python benchmarks/pseudonym_meetings.py [--people 6000] [--origin english]

Draws people from the knowledge base's names of one origin, women and men alike, each in a document of its own, gives
them pseudonyms, and counts the people whose pseudonym another one has as well. The formula is the birthday problem's:
n(n-1)/2 pairs within a gender, each meeting with a chance of one in given names times family names.
"""

from __future__ import annotations

import argparse
import json
import random
from collections import Counter

from allonym.document import Document, Entity, Span
from allonym.kb import KnowledgeBase
from allonym.policy import Policy
from allonym.replace import make_plan
from allonym.replace.cast import Corpus

KEY = b"the key of this benchmark, 32 byte"


def make_pseudonyms(names: list[str], policy: Policy, keeper: Corpus | None) -> list[str]:
    """What stands for each name, each in its own document."""
    out = []
    for name in names:
        entity = Entity(f"PERSON:{name.lower()}", "PERSON", (Span(0, len(name), "PERSON"),))
        if keeper is None:
            plan = make_plan(Document("", name), [entity], policy, key=KEY)
        else:
            with keeper.book("") as book:
                plan = make_plan(Document("", name), [entity], policy, key=KEY, book=book)
        out.append(plan.edits[0].replacement)
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--people", type=int, default=6000)
    parser.add_argument("--origin", default="english")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    kb, draw, policy = KnowledgeBase.open(), random.Random(arguments.seed), Policy.load("pseudonyms")
    given = {gender: kb.names("first", arguments.origin, gender) for gender in "fm"}
    family = kb.names("last", arguments.origin)
    names: dict[str, None] = {}
    expected = 0.0
    for pool in given.values():
        wanted = len(names) + arguments.people // 2
        if wanted - len(names) > len(pool) * len(family) // 2:
            parser.error(f"{arguments.origin} has too few names for {arguments.people} people")
        while len(names) < wanted:
            names[f"{draw.choice(pool)} {draw.choice(family)}"] = None
        n = arguments.people // 2
        expected += n * (n - 1) / 2 / (len(pool) * len(family))
    figures: dict[str, object] = {
        "people": len(names),
        "origin": arguments.origin,
        "expected_pairs": round(expected, 1),
    }
    for how, keeper in (("without", None), ("with a book", Corpus(KEY))):
        made = make_pseudonyms(list(names), policy, keeper)
        shared = sum(n - 1 for n in Counter(made).values() if n > 1)
        tags = sum(m.startswith("[") for m in made)
        figures[how] = {"meet": shared, "tags": tags}
        print(f"{how:12} {shared:6} of {len(names)} share a pseudonym with somebody before, {tags} got a tag")
    print(f"{'formula':12} {expected:6.1f} pairs")
    print(json.dumps({"benchmark": "pseudonym_meetings", **figures}))


if __name__ == "__main__":
    main()
