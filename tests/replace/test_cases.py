"""Operators and the sentence around them. The cases mark mentions as {text|LABEL}."""

import re

from allonym.document import Document, Entity, Span
from allonym.plan import apply
from allonym.policy import Policy, Rule
from allonym.replace import check_options, make_plan

MARK = re.compile(r"\{([^|{}]*)\|([A-Z_]+)\}")


def entities(marked):
    out, found, at = "", {}, 0
    for m in MARK.finditer(marked):
        out += marked[at : m.start()]
        span = Span(len(out), len(out) + len(m[1]), m[2])
        found.setdefault((m[1], m[2]), []).append(span)
        out += m[1]
        at = m.end()
    return out + marked[at:], [Entity(f"{label}:{text}", label, tuple(s)) for (text, label), s in found.items()]


def test_cases(cases):
    failed = []
    for case in cases("replace"):
        text, found = entities(case["text"])
        operator, options = case.get("operator", "tag"), case.get("options", {})
        check_options(operator, options, case["case"])
        policy = Policy(name="p", default=Rule(operator, options), **case.get("policy", {}))
        got = apply(text, make_plan(Document("", text), found, policy))
        if got != case["want"]:
            failed.append((case["case"], got, case["want"]))
    assert not failed, "\n".join(map(str, failed))
