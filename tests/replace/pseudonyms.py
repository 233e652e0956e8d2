"""Plays marked texts, ``{text|LABEL}``, for the tests of pseudonyms."""

import re

from allonym.document import Document, Span
from allonym.kb import KnowledgeBase
from allonym.link import link
from allonym.plan import apply
from allonym.policy import Policy, Rule
from allonym.replace import make_plan

KEY = b"a key only for the tests, 32 byte"
MARK = re.compile(r"\{([^|{}]*)\|([A-Z_]+)\}")


def kb():
    return KnowledgeBase.open()


def marked(text):
    """The text without its marks, and the spans that they mark."""
    out, spans, at = "", [], 0
    for m in MARK.finditer(text):
        out += text[at : m.start()]
        spans.append(Span(len(out), len(out) + len(m[1]), m[2]))
        out += m[1]
        at = m.end()
    return out + text[at:], spans


def play(text, options=None, keep=(), key=KEY, language="en", scope="", book=None):
    """The marked text with pseudonyms."""
    bare, spans = marked(text)
    policy = Policy(
        name="p",
        language=language,
        consistent="scope",
        default=Rule("pseudonym", options or {}),
        rules={label: Rule("keep") for label in keep},
    )
    document = Document("", bare)
    plan = make_plan(document, link(document, spans), policy, key=key, scope=scope, book=book)
    return apply(document, plan)
