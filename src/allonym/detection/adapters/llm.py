"""The detector ``llm``: a language model lists what identifies, as in the first step of P4's LLM-PS (section 3.3).

The text is sent to the endpoint of the policy's table ``[llm]``, in windows. It returns strings and labels, and their
positions are looked up here, so a string that it invents marks nothing. A window without an answer makes the document
fail: a missing finding must not go unnoticed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from allonym.detection import ANY_LANGUAGE
from allonym.detection.adapters import Adapter, Found, cut_windows, split_words
from allonym.detection.adapters.labels import LabelMap, read_label_tables
from allonym.errors import EndpointError, PolicyError
from allonym.labels import TAXONOMY
from allonym.llm.client import Reply, Request, ask_and_read, client_for
from allonym.llm.templates import TEXT, build_messages, make_list_schema, make_object_schema
from allonym.policy import Policy

OVERLAP = 40
"""Words that two windows share."""
LEAST = 60
"""A window of more words than this is cut in two where the model's answer cannot be used; else it is asked again."""
OTHER = "OTHER_IDENTIFYING_ATTRIBUTE"
"""The label of what the model gives a label that nobody knows."""
LONGEST = 200
"""Characters of a string that is looked up in other spellings, too; a longer one only letter by letter."""
_SPACES = re.compile(r"\s+")
_QUOTES = {"'": "['’‘ʼ]", "’": "['’‘ʼ]", '"': '["“”„]', "-": "[-‐‑–]"}


def build_detector(policy: Policy) -> Adapter:
    """Build the detector for the endpoint that ``[llm]`` names, with the options of ``[detect.llm]``.

    Raises:
        UsageError, PolicyError: no endpoint or no model is named, or the policy looks for no label that has a prompt.
    """
    settings = policy.settings("llm")
    size, score = settings["words"], settings["score"]
    labels = _describe_labels(policy)
    listed = "\n".join(f"- {label}: {says}" for label, says in labels.items())
    client_for(policy.llm)  # what is wrong with the table is told now
    row = make_object_schema({"text": TEXT, "label": {**TEXT, "enum": sorted(labels)}})
    schema = make_object_schema({"entities": make_list_schema(row)})

    def read_texts(texts: Sequence[str]) -> list[list[Found]]:
        client = client_for(policy.llm)
        places = [(i, text[a:b]) for i, text in enumerate(texts) for a, b in cut_windows(text, size, OVERLAP)]
        rows: list[set[tuple[str, str]]] = [set() for _ in texts]
        again = False
        while places:
            messages = (build_messages("detect", client.prompts, again=again, text=t, labels=listed) for _, t in places)
            requests = [Request(message, schema, "entities") for message in messages]
            pending: list[tuple[int, str]] = []
            for (i, text), answer_rows in zip(places, ask_and_read(client, requests, _parse_reply_names), strict=True):
                if answer_rows is not None:
                    rows[i].update(answer_rows)
                    continue
                parts = _halve_long_text(text)
                if again and len(parts) == 1:
                    raise EndpointError("llm: twice an answer that is not the JSON that was asked for")
                pending += ((i, part) for part in parts)
            places, again = pending, True
        return [
            [Found(a, b, label, score) for name, label in sorted(rows) for a, b in find_loose_occurrences(text, name)]
            for text, rows in zip(texts, rows, strict=True)
        ]

    # A label that the model invents still counts, and disguised views are not sent once more.
    labels_out = LabelMap(policy, "llm", fallback=OTHER)
    return Adapter("llm", read_texts, labels_out, reads_disguise=False, languages=ANY_LANGUAGE)


def _describe_labels(policy: Policy) -> dict[str, str]:
    """Label to its description: the labels with zero-shot prompts and the policy's own, where it looks for them."""
    descriptions = {label: says for label, says in read_label_tables()["prompts"].items() if label in policy.taxonomy}
    added = {lab.name: lab.description or lab.name.lower() for lab in policy.taxonomy if lab.name not in TAXONOMY}
    out = {label: says for label, says in (descriptions | added).items() if policy.looks_for(label)}
    if not out:
        raise PolicyError("detect.llm: the policy looks for no label that the model can be asked for")
    return out


def _parse_reply_names(reply: Reply) -> list[tuple[str, str]] | None:
    """The strings and labels of an answer; None where it is cut off, refused, or not of the required form."""
    listed = (reply.answer or {}).get("entities")
    if not isinstance(listed, list):
        return None
    out = []
    for row in listed:
        name, label = (row.get("text"), row.get("label")) if isinstance(row, Mapping) else (None, None)
        if not isinstance(name, str) or not isinstance(label, str):
            return None
        if any(c.isalnum() for c in name):
            out.append((name, label))
    return out


def _halve_long_text(text: str) -> list[str]:
    """A long text in two overlapping parts; a short one unchanged."""
    size = len(split_words(text))
    if size <= LEAST:
        return [text]
    return [text[a:b] for a, b in cut_windows(text, size * 0.6, min(OVERLAP, size * 0.15))]


def _find_substrings(text: str, name: str) -> Iterator[tuple[int, int]]:
    """Find where a text holds exactly this string, also inside words."""
    position = text.find(name)
    while position >= 0:
        yield position, position + len(name)
        position = text.find(name, position + len(name))


def find_loose_occurrences(text: str, name: str) -> list[tuple[int, int]]:
    """Find where a text holds a string, also in other spellings.

    Exact occurrences come first; where there are none, others may differ in blanks, quotation marks, hyphens and case.
    Occurrences inside words count only where there are no others. A string of more than 200 characters must be exact.
    """
    if len(name := name.strip()) > LONGEST:
        return list(_find_substrings(text, name))
    pieces = _SPACES.split(name)
    exact = r"\s+".join(re.escape(piece) for piece in pieces)
    loose = r"\s+".join("".join(_QUOTES.get(c, re.escape(c)) for c in piece) for piece in pieces)
    if len(name) < 2 and name.isascii():
        return [] if not name.isalnum() else [m.span() for m in re.finditer(rf"(?<!\w){exact}(?!\w)", text)]
    for form, flags in ((exact, 0), (loose, re.IGNORECASE)):
        for pattern in (rf"(?<!\w){form}(?!\w)", form):
            if intervals := [m.span() for m in re.finditer(pattern, text, flags)]:
                return intervals
    return []
