"""Cards of persons in mails, meetings and descriptions: what is left of each, and what hardening for all costs.

    python benchmarks/person_cards.py MAILS.jsonl MEETINGS.jsonl.gz DESCRIPTIONS.jsonl.gz [--policy names] [--show 20]

Each file is JSON Lines with a ``text``. Documents are drawn with a fixed seed until the persons are reached, a third
from each file; a meeting is cut to its first 4,000 characters, at a line. They are anonymised with a policy (``names``
masks names, addresses and numbers of people only), read for cards, hardened until --limit people fit each person, and
read anew.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
from collections import Counter
from pathlib import Path
from types import MappingProxyType

from allonym import anonymize
from allonym.evaluate import harden_persons, person_cards
from allonym.evaluate.cards import Card
from allonym.policy import Policy, Rule

_LONGEST = 4000
_NAMES = ("PERSON", "EMAIL_ADDRESS", "PHONE_NUMBER", "ONLINE_ID", "GENERIC_ID", "GOVERNMENT_ID")


def read_texts(path: Path) -> list[str]:
    """Return the texts of a file, long ones cut at a line."""
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as lines:
        texts = [str(json.loads(line)["text"]) for line in lines]
    return [text if len(text) <= _LONGEST else text[: text.rfind("\n", 0, _LONGEST)] for text in texts]


def mask_names_only() -> Policy:
    """Return a policy that looks for everything, as ``default`` does, and masks names, addresses and numbers alone."""
    rules = MappingProxyType({label: Rule("tag") for label in _NAMES})
    return Policy.load("default").with_(rules=rules, default=Rule("keep"))


def draw_documents(path: Path, persons: int, policy: str, seed: int, limit: int) -> list[tuple[str, str]]:
    """Draw documents of a file, as original and anonymised, until they hold so many persons."""
    texts = read_texts(path)
    random.Random(seed).shuffle(texts)
    pairs: list[tuple[str, str]] = []
    count = 0
    for text in texts:
        if count >= persons:
            break
        if len(text) < 200:
            continue
        safe = anonymize(text, mask_names_only() if policy == "names" else policy, key=b"benchmark of cards").text
        pairs.append((text, safe))
        count += person_cards([safe], [text], limit=limit).persons
    return pairs


def print_card(card: Card, text: str) -> None:
    """Print a card for a reader who checks it against its text."""
    print(f"  {card.name} [{card.sort}, {card.mentions} mentions]{' BELOW' * card.below}")
    for fact in card.facts:
        near = text[max(0, fact.start - 60) : fact.end + 30].replace("\n", " / ")
        print(f"    - {fact.kind}: {fact.value!r} ({fact.rule}; {fact.low:g} to {fact.high:g})   ... {near}")
    print(f"    {card.statement}")


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--persons", type=int, default=100)
    parser.add_argument("--limit", type=int, default=5)
    parser.add_argument("--policy", default="default")
    parser.add_argument("--seed", type=int, default=25)
    parser.add_argument("--show", type=int, default=0, help="print so many cards with facts, with their texts")
    parser.add_argument("--texts", action="store_true", help="print the hardened texts")
    options = parser.parse_args()
    share = -(-options.persons // len(options.files))
    figures: dict[str, object] = {"policy": options.policy, "limit": options.limit}
    drawn: list[tuple[Card, str]] = []
    all_pairs: list[tuple[str, str]] = []
    print(f"{'file':36} {'docs':>4} {'persons':>7} {'facts':>5} {'below':>6} {'after':>6} {'words':>6}  sorts")
    for path in [*options.files, None]:
        pairs = all_pairs
        if path is not None:
            pairs = draw_documents(path, share, options.policy, options.seed, options.limit)
            all_pairs += pairs
        safe, original = [after for _, after in pairs], [before for before, _ in pairs]
        result = harden_persons(safe, original, limit=options.limit)
        cards, name = result.before.cards, path.name if path else "all"
        if path is not None:
            drawn += [(card, safe[int(card.document) - 1]) for card in cards]
        sorts = Counter(card.sort for card in cards)
        facts = sum(len(card.facts) for card in cards)
        row = (result.before.below.value, result.after.below.value, result.words_changed.value)
        print(
            f"{name[:36]:36} {len(pairs):4} {len(cards):7} {facts:5} {row[0]:6.1%} {row[1]:6.1%} {row[2]:6.2%}  "
            + ", ".join(f"{sort} {n}" for sort, n in sorts.most_common())
        )
        figures[name] = {
            "documents": len(pairs),
            "persons": len(cards),
            "facts": facts,
            "sorts": dict(sorts),
            "below": row[0],
            "after": row[1],
            "words_changed": row[2],
            "changes": result.changes,
            "by_intruder": {n: e.value for n, e in result.before.by_intruder.items()},
            "kinds": dict(result.before.kinds),
            "unattributed": result.before.unattributed,
            "persons_after": result.after.persons,
        }
        for card in result.after.cards if path else ():
            if card.below:
                print("  still below:", ", ".join(f"{f.kind} {f.value!r}" for f in card.facts))
        if options.texts and path is not None:
            for text in result.texts:
                print(f"\n{text.text}\n---")
    if options.show:
        drawn = [row for row in drawn if row[0].facts] or drawn
        random.Random(options.seed).shuffle(drawn)
        for number, (card, text) in enumerate(drawn[: options.show], 1):
            print(f"\n=== {number} ===\n{text}\n")
            print_card(card, text)
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
