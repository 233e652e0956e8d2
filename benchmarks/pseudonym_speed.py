"""What pseudonyms cost beside detection: time of both, of tags, and the share that is added.

usage: python benchmarks/pseudonym_speed.py FILE [--characters 100000] [--rounds 5] [--operator pseudonym]

FILE is JSONL (field text), plain or gzipped; its texts are cut into documents of about 2,000 characters. Detection is
the default policy's, with the tagger. "pseudonyms" is linking, choosing and writing with the operator, on the findings
of that detection; "tags" the same with numbered tags. The three take turns in one process on each document, so that a
busy machine slows all of them alike. A round is ``--characters`` of text that no round before it has seen, since both
sides remember what they saw; one more, before the first, warms up models and the knowledge base. Figures are CPU
seconds, medians of the rounds. Prints a table and, last, one line of JSON.
"""

from __future__ import annotations

import argparse
import gzip
import json
import time
from pathlib import Path
from statistics import median

import allonym
from allonym.detection.turns import add_turns
from allonym.link import link
from allonym.plan import apply
from allonym.policy import Policy, Rule
from allonym.replace import make_plan

KEY = b"benchmark of pseudonyms"


def cut_documents(path: Path, characters: int, size: int = 2000) -> list[str]:
    """Texts of about ``size`` characters, cut at spaces, ``characters`` in all."""
    out: list[str] = []
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            text = json.loads(line)["text"]
            while text and characters > 0:
                end = text.rfind(" ", size // 2, size) if len(text) > size else len(text)
                end = end if end > 0 else size
                out.append(text[:end])
                text, characters = text[end:], characters - end
    return out


def replace_all(text: str, spans: tuple[allonym.Span, ...], policy: Policy) -> str:
    document = add_turns(allonym.Document("", text))
    plan = make_plan(document, link(document, spans, policy.taxonomy), policy, key=KEY)
    return apply(document, plan)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--characters", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--operator", default="pseudonym")
    args = parser.parse_args()
    texts = cut_documents(args.file, args.characters * (args.rounds + 1))
    share = -(-len(texts) // (args.rounds + 1))
    policy = Policy.load("default")
    tags, pseudonyms = (policy.with_(default=Rule(name), rules={}) for name in ("tag", args.operator))
    seconds: dict[str, list[float]] = {"detection": [], "tags": [], "pseudonyms": []}
    mentions = 0
    for n in range(args.rounds + 1):
        spent = dict.fromkeys(seconds, 0.0)
        for text in texts[n * share : (n + 1) * share]:
            began = time.process_time()
            spans = allonym.detect(text, policy)
            found = time.process_time()
            replace_all(text, spans, tags)
            tagged = time.process_time()
            replace_all(text, spans, pseudonyms)
            spent["pseudonyms"] += time.process_time() - tagged
            spent["tags"] += tagged - found
            spent["detection"] += found - began
            mentions += len(spans) * (n > 0)
        for name, value in spent.items() if n else ():
            seconds[name].append(value)
    figures = {name: median(values) for name, values in seconds.items()}
    size = sum(map(len, texts[share:])) // args.rounds
    print(f"{args.rounds} rounds of {size:,} characters, {mentions} mentions in all")
    print(f"{'':14}{'seconds':>9}{'chars/s':>12}{'of detection':>14}")
    for name, value in figures.items():
        print(f"{name:14}{value:9.3f}{size / value:12,.0f}{value / figures['detection']:14.1%}")
    added = [p / d for p, d in zip(seconds["pseudonyms"], seconds["detection"], strict=True)]
    print(
        json.dumps(
            {
                "benchmark": "pseudonym_speed",
                "rounds": args.rounds,
                "characters": size,
                "mentions": mentions,
                **{f"{name}_s": round(value, 4) for name, value in figures.items()},
                "added": round(median(added), 4),
            }
        )
    )


if __name__ == "__main__":
    main()
