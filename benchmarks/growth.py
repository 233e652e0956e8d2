"""How the cost of a character grows with the length of a text, for 22 kinds of dense text, from 20 kB to 10 MB.

    python benchmarks/growth.py [--sizes 20000 1000000 10000000] [--kinds names html] [--rounds 1] [--policy default]
        [--tagger] [--calls] [--seed 7] [--limit 1.2]

The texts are made up; "sentences" holds account and card numbers, months that are given names as well ("April Stone",
"on 3 May"), and many people, so that nearly every line holds several findings that overlap. Seconds are those of the
processor, on one thread, by stage: what the detectors see, how it is settled, how mentions are linked, how the plan is
made and applied, how the replacements are restored; their total; and how a plan with pseudonyms is made, for texts of
up to ``--pseudonyms-to`` characters, since that takes about a millisecond for each person. The tagger reads windows of
one length and so takes the same time for each character; it runs only with ``--tagger``. Growth is the cost of a
character in the longest text divided by that in the shortest; a linear pipeline has 1. Short texts are repeated until
they take ``--least`` seconds. Python's collector waits for the end of a text, as in our commands. ``--calls`` counts
calls of functions in place of microseconds: the same in each run, but blind to loops inside of a function. Prints a
table and, last, one line of JSON; the exit code is 1 where a growth is over ``--limit``.
"""

from __future__ import annotations

import argparse
import base64
import gc
import json
import random
import string
import sys
import time
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from types import FrameType
from typing import Any

from allonym.collector import pause_collector, slow_down_collector
from allonym.detection.selection import find_candidates
from allonym.detection.turns import add_turns
from allonym.document import Document
from allonym.link import link
from allonym.models.tagger import load_tagger
from allonym.pipeline import resolve_candidates
from allonym.plan import apply
from allonym.policy import Policy
from allonym.replace import make_plan
from allonym.restoration import restore

KEY = b"a key of thirty-two characters.."
STAGES = ("detect", "resolve", "link", "plan", "apply", "restore", "total", "pseudonyms")
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
    return make_text("sentences", size, seed)


def _write_sentence(random_source: random.Random) -> str:
    digits = _draw(random_source, string.digits, 40)
    return random_source.choice(SENTENCES).format(
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


def _draw(random_source: random.Random, letters: str, count: int) -> str:
    return "".join(random_source.choices(letters, k=count))


def _write_name(r: random.Random) -> str:
    return f"{r.choice(GIVEN_NAMES)} {r.choice(STEMS)}{r.choice(ENDINGS)}"


def _write_new_name(r: random.Random) -> str:
    """A name of a family that hardly any other line has."""
    family = f"{_draw(r, 'AEIOU', 1)}{_draw(r, 'blnrst', 1)}{_draw(r, 'aeilnorst', 6)}"
    return f"Dear Ms {r.choice(GIVEN_NAMES)} {family},"


def _write_log(r: random.Random) -> str:
    address = ".".join(str(r.randint(1, 254)) for _ in range(4))
    stamp = f"2024-0{r.randint(1, 9)}-{r.randint(10, 28)}T{r.randint(10, 23)}:{r.randint(10, 59)}:{r.randint(10, 59)}Z"
    user = r.choice(GIVEN_NAMES).lower()
    return f"{stamp} INFO [worker-{r.randint(1, 9)}] GET /users/{r.randint(1, 99999)} from {address} user={user}"


def _write_html(r: random.Random) -> str:
    anchor = f'<a href="mailto:u{r.randint(1, 9999)}@example.com">write</a>'
    return f'<tr class="row"><td>{_write_name(r)}</td><td>{anchor}</td></tr>'


def _write_json(r: random.Random) -> str:
    return json.dumps({"name": _write_name(r), "phone": f"+1 415 555 01{r.randint(10, 99)}", "id": r.randint(1, 10**9)})


def _write_row(r: random.Random) -> str:
    birthday = f"{r.randint(1, 28)}.{r.randint(1, 12)}.1980"
    return f"{r.randint(1, 10**6)},{_write_name(r)},{birthday},{r.randint(10**9, 10**10)}"


def _write_link(r: random.Random) -> str:
    path = f"{r.choice(STEMS).lower()}/{_draw(r, string.hexdigits, 12)}"
    return f"https://www.example.com/{path}?id={r.randint(1, 10**6)}"


KINDS: dict[str, tuple[str, Callable[[random.Random], str]]] = {
    "sentences": ("\n", _write_sentence),
    "names": (" ", lambda r: f"Ms {_write_name(r)}"),
    "one name": ("\n", lambda r: "Ms Mabel Pickersgill wrote."),
    "new names": ("\n", _write_new_name),
    "numbers": (" ", lambda r: str(r.randint(1, 10 ** r.randint(1, 16)))),
    "spaced digits": (" ", lambda r: r.choice(string.digits)),
    "dates": (", ", lambda r: f"{r.randint(1, 28)} {r.choice(MONTHS)} {r.randint(1950, 2030)}"),
    "one token": ("", lambda r: _draw(r, string.ascii_letters + string.digits, 64)),
    "one letter": ("", lambda r: "a" * 64),
    "commas": ("", lambda r: "," * 64),
    "blanks": ("", lambda r: " " * 64),
    "line breaks": ("", lambda r: "\n" * 64),
    "base64": ("\n", lambda r: base64.b64encode(r.randbytes(57)).decode()),
    "html": ("\n", _write_html),
    "json": ("\n", _write_json),
    "table": ("\n", _write_row),
    "logs": ("\n", _write_log),
    "addresses": ("; ", lambda r: f"{r.choice(GIVEN_NAMES).lower()}{r.randint(1, 10**5)}@example.org"),
    "links": (" ", _write_link),
    "turns": ("\n", lambda r: f"{r.choice(GIVEN_NAMES).upper()}: I spoke to {_write_name(r)}, I think."),
    "initials": (" ", lambda r: f"{r.choice(string.ascii_uppercase)}. {r.choice(STEMS)},"),
    "letters": (" ", lambda r: f"{r.choice('ÀÉÎÕÜ')}{_draw(r, 'àéîõüßñłđ', 5)} 山田{_draw(r, '太郎花子', 2)}"),
}
"""What stands between the pieces of a kind of text, and how a piece is written."""


def make_text(kind: str, size: int, seed: int) -> str:
    """About ``size`` characters of one of the :data:`KINDS` of text."""
    joint, write_piece = KINDS[kind]
    random_source = random.Random(seed)
    pieces: list[str] = []
    length = 0
    while length < size:
        pieces.append(write_piece(random_source))
        length += len(pieces[-1]) + len(joint)
    return joint.join(pieces)[:size]


def list_steps(text: str, policy: Policy, pseudonyms: Policy | None) -> list[Callable[[], object]]:
    """The steps of :data:`STAGES`, to be called in this order, each with what the one before it returned."""
    document = add_turns(Document("", text))
    memory: dict[str, Any] = {}

    def run_step(name: str, step: Callable[[], object]) -> Callable[[], object]:
        def run() -> None:
            memory[name] = step()

        return run

    steps = [
        run_step("candidates", lambda: find_candidates(document, policy)),
        run_step("spans", lambda: resolve_candidates(document, policy, memory["candidates"])),
        run_step("linked", lambda: link(document, memory["spans"], policy.taxonomy)),
        run_step("plan", lambda: make_plan(document, memory["linked"].entities, policy, key=KEY)),
        run_step("text", lambda: apply(document, memory["plan"])),
        run_step("restored", lambda: restore(memory["text"], plan=memory["plan"])),
    ]
    if pseudonyms is not None:
        steps.append(
            run_step("pseudonyms", lambda: make_plan(document, memory["linked"].entities, pseudonyms, key=KEY))
        )
    return steps


def measure_stages(text: str, policy: Policy, pseudonyms: Policy | None = None) -> dict[str, float]:
    """Processor seconds of each stage for one text, without pseudonyms where their policy is not given."""
    if "tagger" in policy.detectors:
        load_tagger()._remember_window_outputs.cache_clear()  # windows of an earlier round would flatter this one
    gc.collect()
    clock = [time.process_time()]
    with pause_collector():
        for step in list_steps(text, policy, pseudonyms):
            step()
            clock.append(time.process_time())
    seconds = [after - before for before, after in pairwise(clock)]
    common, last = seconds[:6], seconds[6:]
    return dict(zip(STAGES, (*common, sum(common), *last), strict=False))


def count_calls(text: str, policy: Policy, pseudonyms: Policy | None = None) -> dict[str, float]:
    """Calls of functions, those written in C included, for each stage of one text."""
    counts = []
    for step in list_steps(text, policy, pseudonyms):
        count = 0

        def count_event(frame: FrameType, event: str, argument: object) -> None:
            nonlocal count
            count += event in ("call", "c_call")

        former = sys.getprofile()
        sys.setprofile(count_event)
        try:
            step()
        finally:
            sys.setprofile(former)
        counts.append(float(count))
    return dict(zip(STAGES, (*counts[:6], sum(counts[:6]), *counts[6:]), strict=False))


def measure_costs(
    kind: str, size: int, seed: int, policies: tuple[Policy, Policy | None], rounds: int, least: float
) -> dict[str, float]:
    """Microseconds for each character by stage: the least of some rounds, each the mean of ``least`` seconds.

    Each repetition has a text of its own, since the automata of a text that they know cost less.
    """
    best: dict[str, float] = {}
    for _ in range(rounds):
        sums: Counter[str] = Counter()
        count = 0
        while not count or sums["total"] < least:
            sums.update(measure_stages(make_text(kind, size, seed), *policies))
            count += 1
            seed += 1
        costs = {stage: 1e6 * seconds / count / size for stage, seconds in sums.items()}
        best = min(best or costs, costs, key=lambda row: row["total"])
    return best


def compute_growth(costs: dict[int, dict[str, float]]) -> dict[str, float]:
    """By stage: the cost of a character at the largest size that has the stage, divided by that at the smallest."""
    first = costs[min(costs)]
    growth = {}
    for stage in first:
        last = costs[max(size for size, row in costs.items() if stage in row)]
        growth[stage] = round(last[stage] / first[stage], 3) if first[stage] else 1.0
    return growth


def write_cells(row: dict[str, float]) -> str:
    return "".join(f"{row[stage]:>11.3f}" for stage in STAGES if stage in row)


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--sizes", nargs="+", type=int, default=[20_000, 1_000_000, 10_000_000])
    options.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    options.add_argument("--rounds", type=int, default=1)
    options.add_argument("--least", type=float, default=0.5)
    options.add_argument("--policy", default="default")
    options.add_argument("--pseudonyms-to", type=int, default=200_000)
    options.add_argument("--tagger", action="store_true")
    options.add_argument("--calls", action="store_true")
    options.add_argument("--seed", type=int, default=7)
    options.add_argument("--limit", type=float, default=1.2)
    arguments = options.parse_args()
    slow_down_collector()
    policy = Policy.load(arguments.policy)
    if not arguments.tagger:
        policy = policy.with_(detectors=tuple(name for name in policy.detectors if name != "tagger"))
    pseudonyms = Policy.load("pseudonyms")
    # A new process builds automata over its first megabytes. That is paid once, so it is no part of the growth.
    for kind in ("sentences", "html", "logs"):
        measure_stages(make_text(kind, 200_000, arguments.seed + 1), policy)
    unit = "calls" if arguments.calls else "microseconds"
    print(f"policy {policy.name} ({', '.join(policy.detectors)}), {unit} for each character")
    print(f"{'kind':14}{'characters':>11}" + "".join(f"{stage:>11}" for stage in STAGES))
    rows: dict[str, dict[str, float]] = {}
    for kind in arguments.kinds:
        measure_stages(make_text(kind, 200_000, arguments.seed + 1), policy)
        costs: dict[int, dict[str, float]] = {}
        for size in arguments.sizes:
            policies = policy, pseudonyms if size <= arguments.pseudonyms_to else None
            if arguments.calls:
                calls = count_calls(make_text(kind, size, arguments.seed + 2), *policies)
                costs[size] = {stage: count / size for stage, count in calls.items()}
            else:
                costs[size] = measure_costs(kind, size, arguments.seed + 2, policies, arguments.rounds, arguments.least)
            print(f"{kind:14}{size:>11,}" + write_cells(costs[size]), flush=True)
        rows[kind] = compute_growth(costs)
        print(f"{kind:14}{'growth':>11}" + write_cells(rows[kind]), flush=True)
    worst = max(row["total"] for row in rows.values())
    print(json.dumps({"benchmark": "growth", "policy": policy.name, "growth": rows, "worst": worst}))
    return 0 if worst <= arguments.limit else 1


if __name__ == "__main__":
    sys.exit(main())
