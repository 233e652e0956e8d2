"""What the gateway does to prompts: harmless ones that it changes, and identifiers that it lets through.

usage: python benchmarks/prompts.py [FILE] [--policy chat] [--limit N] [--show]

FILE is JSONL, by default tests/cases/prompts.jsonl: forty ordinary prompts and thirty with identifiers, invented and
marked («Ada Brook») before anything was run on them. A file with a field ``text`` holds prompts without marks. Each is
the only message of a request for chat completions, and goes through what the gateway does before it sends a request.

changed   ordinary prompts, or prompts without marks, that are not sent as they are
left      marked places of which a letter or digit is sent

``--show`` prints them. The last line is JSON with every figure.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.readers import MarkedText, parse_marks

import allonym
from allonym.policy import Policy
from allonym.server.gateway.protect import ENDPOINTS, Preparer
from allonym.server.gateway.settings import Settings

PROMPTS = Path(__file__).resolve().parent.parent / "tests" / "cases" / "prompts.jsonl"


def read_prompts(path: Path = PROMPTS) -> Iterator[MarkedText]:
    """The prompts of a file without their marks."""
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            if "marked" in row:
                yield parse_marks(row["id"], "prompt", row["marked"])
            else:
                yield MarkedText(row["id"], "prompt", row["text"], ())


def send_prompts(prompts: Iterable[MarkedText], policy: str) -> Iterator[tuple[MarkedText, str]]:
    """Each prompt, and what the gateway sends in its place."""
    preparer = Preparer(Settings(upstream="http://127.0.0.1:9/v1", policy=policy, explain=False), None, None, 1)
    loaded = preparer.policies[policy]
    for prompt in prompts:
        body = {"model": "m", "messages": [{"role": "user", "content": prompt.text}]}
        request = preparer.protect_request(ENDPOINTS[0], json.dumps(body).encode(), loaded, "")
        yield prompt, json.loads(request.body)["messages"][0]["content"]


def list_left_places(prompt: MarkedText, sent: str, policy: str) -> list[str]:
    """The marked places of which something is sent, or that stand in it."""
    result = allonym.anonymize(prompt.text, policy)
    covered = {position for edit in result.plan.edits for position in range(edit.start, edit.end)}
    out = []
    for place in prompt.places:
        surface = prompt.text[place.start : place.end]
        is_bare = any(prompt.text[i].isalnum() and i not in covered for i in range(place.start, place.end))
        if is_bare or surface in sent:
            out.append(surface)
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", nargs="?", type=Path, default=PROMPTS)
    parser.add_argument("--policy", default=Settings(upstream="http://127.0.0.1:9/v1").policy)
    parser.add_argument("--limit", type=int, default=0, help="stop after so many prompts")
    parser.add_argument("--show", action="store_true", help="print what is changed, and what is left")
    args = parser.parse_args()
    Policy.load(args.policy)
    ordinary = changed = places = 0
    left: list[str] = []
    for number, (prompt, sent) in enumerate(send_prompts(read_prompts(args.file), args.policy), 1):
        if prompt.places:
            places += len(prompt.places)
            left += list_left_places(prompt, sent, args.policy)
        else:
            ordinary += 1
            changed += sent != prompt.text
            if args.show and sent != prompt.text:
                print(f"{prompt.id}: {sent[:300]!r}")
        if number == args.limit:
            break
    if args.show:
        print("left:", left)
    print(f"{changed} of {ordinary} ordinary prompts changed, {len(left)} of {places} identifiers left")
    figures = {"ordinary": ordinary, "changed": changed, "places": places, "left": len(left)}
    print(json.dumps({"benchmark": "prompts", "policy": args.policy, **figures}))


if __name__ == "__main__":
    main()
