"""How long restoring takes: index of many replacements built, and a long text restored with it.

usage: python benchmarks/restore_speed.py [--mappings 10000] [--megabytes 1] [--runs 5]

Texts are made here: prose with a replacement every hundred characters, three of five rewritten (small letters, lost
brackets, shortened). Kinds: numbered tags, wild tags, people, and all three with codes. Also texts made
to be slow: brackets, labels, escapes, digits and one word without end. Prints processor seconds, the best of the runs,
and, last, one line of JSON.
"""

from __future__ import annotations

import argparse
import json
import time
from random import Random

from allonym.restoration import Restorer
from allonym.vault.records import Known

PROSE = """The committee met again in the morning and went through what had been sent in over the past weeks . Most of
it was short , some of it hard to read , and two letters came without any name at all . It was decided to write back to
everyone who had left an address , to ask for the figures of the last quarter , and to put off whatever could wait until
the report was there . Nobody objected , although several had hoped for more""".split()
SYLLABLES = "ba be bo ka ke ko la le lo ma me mo na ne no ra re ro sa se so ta te to va ve vo za ze zo".split()


def invent_name(rng: Random, syllables: int) -> str:
    return "".join(rng.choice(SYLLABLES) for _ in range(syllables)).capitalize()


def make_mappings(kind: str, count: int, rng: Random) -> list[Known]:
    out: dict[str, Known] = {}
    while len(out) < count:
        n = len(out) + 1
        chosen = rng.choice(("tags", "wild tags", "people", "codes")) if kind == "mixed" else kind
        if chosen == "tags":
            made, operator, label = f"[PERSON_{n}]", "tag@1", "PERSON"
        elif chosen == "wild tags":
            made, operator, label = f'<PERSON "{rng.getrandbits(32):08X}">', "wild_tag@1", "PERSON"
        elif chosen == "people":
            made, operator, label = f"{invent_name(rng, 3)} {invent_name(rng, 4)}", "pseudonym@1", "PERSON"
        else:
            made, operator, label = f"{rng.randrange(10**8, 10**9)}", "pseudonym@1", "ACCOUNT_NUMBER"
        own = f"{invent_name(rng, 2)} {invent_name(rng, 3)}" if chosen != "codes" else f"{rng.randrange(10**8, 10**9)}"
        out[made] = Known(made, own, label, operator, str(n))
    return list(out.values())


def make_text(known: list[Known], size: int, rng: Random) -> str:
    pieces: list[str] = []
    length = 0
    while length < size:
        one = rng.choice(known).replacement
        shown = rng.choice((one, one, one.lower(), one.strip("[]<>"), one.split()[-1]))
        start = rng.randrange(len(PROSE) - 26)
        piece = " ".join(PROSE[start : start + rng.randrange(12, 26)]) + f" {shown} "
        pieces.append(piece)
        length += len(piece)
    return "".join(pieces)[:size]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mappings", type=int, default=10_000)
    parser.add_argument("--megabytes", type=float, default=1.0)
    parser.add_argument("--runs", type=int, default=5)
    args = parser.parse_args()
    size = int(args.megabytes * 1_000_000)
    rng = Random(1)
    figures: dict[str, dict[str, float]] = {}
    print(f"{'':18}{'index s':>9}{'restore s':>11}{'both s':>9}{'restored':>10}")
    for kind in ("tags", "wild tags", "people", "mixed"):
        known = make_mappings(kind, args.mappings, rng)
        figures[kind] = time_restoring(kind, known, make_text(known, size, rng), args.runs)
    hostile = {
        "brackets": "[",
        "labels": "PERSON_",
        "backslashes": "\\",
        "ampersands": "&amp;",
        "digits": "1 2-",
        "one word": "a",
        "mark": "PERSON:e1:",
        "half names": "Ka ",
    }
    known = make_mappings("mixed", args.mappings, rng)
    for what, piece in hostile.items():
        figures[what] = time_restoring(what, known, piece * (size // len(piece)), 1)
    print(json.dumps({"benchmark": "restore_speed", "mappings": args.mappings, "characters": size, **figures}))


def time_restoring(what: str, known: list[Known], given: str, runs: int) -> dict[str, float]:
    best = (1e9, 0.0, 0.0)
    for _ in range(runs):
        start = time.process_time()
        restorer = Restorer(known)
        built = time.process_time()
        done = restorer.restore(given)
        end = time.process_time()
        best = min(best, (end - start, built - start, end - built))
    print(f"{what:18}{best[1]:9.3f}{best[2]:11.3f}{best[0]:9.3f}{done.restored:10}")
    return {"index": round(best[1], 4), "restore": round(best[2], 4), "both": round(best[0], 4)}


if __name__ == "__main__":
    main()
