"""How the cost of a character grows with the length of a dense text: 20 kB, 200 kB and 1 MB with the default policy.

    python benchmarks/growth.py [--sizes 20000 200000 1000000] [--rounds 1] [--policy default] [--seed 7]

The text is made up: account and card numbers, months that are given names as well ("April Stone", "on 3 May"), and
many people, so that nearly every line holds several findings that overlap. Seconds are those of the processor, on one
thread, by stage: what the detectors see, how it is settled, how mentions are linked, and how the plan is made and
applied. Growth is the cost of a character in the longest text divided by that in the shortest; a linear pipeline has 1.
Prints a table and, last, one line of JSON. Ends with 1 where the growth is over ``--limit``.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from itertools import pairwise

from allonym.detection.selection import find_candidates
from allonym.detection.turns import add_turns
from allonym.document import Document
from allonym.link import link
from allonym.models.tagger import load_tagger
from allonym.pipeline import resolve_candidates
from allonym.plan import apply
from allonym.policy import Policy
from allonym.replace import make_plan

KEY = b"a key of thirty-two characters.."
STAGES = ("detect", "resolve", "link", "plan", "total")
MONTHS = ("April", "May", "June", "August", "January", "March", "October", "December")
GIVEN_NAMES = "April May June August Anna Boris Carla David Elena Farid Greta Hugo Ines Jonas Karim Lucia Marek".split()
STEMS = "Stone Hart Beck Miller Novak Weber Rossi Kowal Lind Moreau Okafor Petrov Quinn Reyes Silva Tanaka".split()
ENDINGS = ("", "s", "man", "son", "field", "berg", "well", "ton", "worth", "ley")
SENTENCES = (
    "{given} {family} paid {amount} dollars from account {account} on {day} {month} {year}.",
    "Account number {account} of {given} {family} was closed in {month}.",
    "Card {card} belongs to Ms {family}, who called on {month} {day}.",
    "On {day}.{number}.{year} {given} asked {other} {family} about IBAN DE{digits} and order {order}.",
    "In {month} {given} {family} and {other} {second} met; reference {order}, phone +1 415 555 {last}.",
    "Write to {given}.{family}@example.com about invoice {account} of {month} {year}.",
)


def make_dense_text(size: int, seed: int) -> str:
    """About ``size`` characters of made-up sentences, full of numbers, months and names."""
    random_source = random.Random(seed)
    lines: list[str] = []
    length = 0
    while length < size:
        digits = "".join(random_source.choices("0123456789", k=40))
        line = random_source.choice(SENTENCES).format(
            given=random_source.choice(GIVEN_NAMES),
            other=random_source.choice(GIVEN_NAMES),
            family=random_source.choice(STEMS) + random_source.choice(ENDINGS),
            second=random_source.choice(STEMS) + random_source.choice(ENDINGS),
            month=random_source.choice(MONTHS),
            day=random_source.randint(1, 28),
            number=random_source.randint(1, 12),
            year=random_source.randint(1990, 2030),
            amount=random_source.randint(10, 9999),
            account=digits[:10],
            card=" ".join(digits[i : i + 4] for i in range(0, 16, 4)),
            digits=digits[10:30],
            order=f"{digits[30:34]}-{digits[34:38]}",
            last=f"01{digits[38:40]}",
        )
        lines.append(line)
        length += len(line) + 1
    return "\n".join(lines)[:size]


def measure_stages(text: str, policy: Policy) -> dict[str, float]:
    """Processor seconds of each stage for one text."""
    load_tagger()._remember_window_outputs.cache_clear()  # windows of an earlier round would flatter this one
    document = add_turns(Document("", text))
    clock = [time.process_time()]
    candidates = find_candidates(document, policy)
    clock.append(time.process_time())
    spans = resolve_candidates(document, policy, candidates)
    clock.append(time.process_time())
    linked = link(document, spans, policy.taxonomy)
    clock.append(time.process_time())
    apply(document, make_plan(document, linked, policy, key=KEY))
    clock.append(time.process_time())
    seconds = [after - before for before, after in pairwise(clock)]
    return dict(zip(STAGES, (*seconds, sum(seconds)), strict=True))


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--sizes", nargs="+", type=int, default=[20_000, 200_000, 1_000_000])
    options.add_argument("--rounds", type=int, default=1)
    options.add_argument("--policy", default="default")
    options.add_argument("--seed", type=int, default=7)
    options.add_argument("--limit", type=float, default=1.3)
    arguments = options.parse_args()
    policy = Policy.load(arguments.policy)
    measure_stages(make_dense_text(5_000, arguments.seed + 1), policy)  # the first call loads and warms up
    print(f"policy {policy.name}, microseconds for each character, the best of {arguments.rounds} rounds")
    print(f"{'characters':>11}" + "".join(f"{stage:>12}" for stage in STAGES))
    costs: dict[int, dict[str, float]] = {}
    for size in arguments.sizes:
        text = make_dense_text(size, arguments.seed)
        rounds = [measure_stages(text, policy) for _ in range(arguments.rounds)]
        best = min(rounds, key=lambda seconds: seconds["total"])
        costs[size] = {stage: 1e6 * best[stage] / len(text) for stage in STAGES}
        print(f"{size:>11,}" + "".join(f"{costs[size][stage]:>12.2f}" for stage in STAGES), flush=True)
    first, last = costs[min(costs)], costs[max(costs)]
    growth = {stage: round(last[stage] / first[stage], 3) for stage in STAGES}
    print(f"{'growth':>11}" + "".join(f"{growth[stage]:>12.2f}" for stage in STAGES))
    microseconds = {str(size): {stage: round(cost, 3) for stage, cost in row.items()} for size, row in costs.items()}
    row = {"benchmark": "growth", "policy": policy.name, "microseconds": microseconds, "growth": growth}
    print(json.dumps(row))
    return 0 if growth["total"] <= arguments.limit else 1


if __name__ == "__main__":
    sys.exit(main())
