"""Adversarial rewriting against a local server that plays a model by rules: a good one, and a hostile one.

    python benchmarks/adversarial.py [--texts 240]

The attacker infers age, place, work and ties; the rewriter generalises, or answers with originals, inventions, numbers,
markup and nothing. All texts are invented. Prints what is inferred before and after, what it cost, what was refused by
kind, and how many texts their plans restore; last, one line of JSON.
"""

from __future__ import annotations

import argparse
import json
import sys
from itertools import cycle
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.evaluate import rule_model
from tests.llm import server as at

from allonym.evaluate import rewrite_adversarially
from allonym.intruder.persons import open_client
from allonym.plan import invert_plan

ATTRIBUTES = ("age", "place", "occupation", "relationship")
HOSTILE: tuple[Any, ...] = (
    "Odalric", "a murderer", "of 99 years", "<b>x</b>", "[PERSON 2]", 7, "not a person", "some a of in at on to", None,
)  # fmt: skip


def play_hostile_model(answers: Any) -> Any:
    """Return a rewriter that answers with the next hostile value for each phrase, and sometimes with no JSON."""

    def rewrite(body: Any) -> str:
        values = {number: next(answers) for number, _, _ in rule_model.list_asked(body)}
        return "I cannot help with that." if None in values.values() else json.dumps({"phrases": values})

    return rule_model.play_model(rewrites=rewrite)


def main() -> None:
    """Run both models."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--texts", type=int, default=240)
    size = parser.parse_args().texts
    original, anonymised, profiles, subjects = rule_model.make_corpus(size)
    numbers = {}
    for name, model in (("good", rule_model.play_model()), ("hostile", play_hostile_model(cycle(HOSTILE)))):
        server = at.Server()
        server.then = at.made(model)
        client = open_client({"url": server.url, "model": "rules", "retries": 0, "concurrency": 1})
        result = rewrite_adversarially(
            original, anonymised, client, profiles=profiles, subjects=subjects, attributes=ATTRIBUTES
        )
        client.close()
        server.stop()
        restored = sum(
            invert_plan(text.text, text.plan) == before for before, text in zip(anonymised, result.texts, strict=True)
        )
        leaks = sum("odalric" in text.text.lower() or "murderer" in text.text for text in result.texts)
        print(f"{name} model: {restored} of {size} texts restored, {leaks} with an original or an invention")
        for rate in result.rates:
            print(f"  {rate.name:14}{rate.before.value:7.1%} -> {rate.after.value:.1%}")
        print(
            f"  of {result.words} words {result.generalised} generalised, {result.suppressed} removed; "
            f"{result.repaired} phrases repaired; {result.requests} answers"
        )
        for kind, count in result.refused.items():
            print(f"  refused: {kind}: {count}")
        numbers[name] = {**result.to_dict(), "restored": restored, "leaks": leaks}
    print(json.dumps(numbers))


if __name__ == "__main__":
    main()
