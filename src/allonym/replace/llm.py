"""Fictional values from a language model: P5's encoding (``mode = "tags"``), P4's LLM-PS (``mode = "names"``).

The model only makes proposals: for each entity one value, as JSON. The edits are the plan's, so no other text can
change. Each value is verified: it has a plausible form for its label, repeats no word of an original or of the
document, and belongs to no other entity. What is missing or refused is asked for once more; what is then still missing
gets an offline pseudonym, so that the step cannot fail because of the model.

Where an entity has several surfaces ("Sarah Connor", "Ms Connor", "Sarah") the model invents one full name, and the
surfaces are made from it here.
"""

from __future__ import annotations

import hmac
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from itertools import count
from typing import Literal, cast

from allonym.document import Interval
from allonym.errors import EndpointError
from allonym.keys import derive_operator_key
from allonym.llm.answers import parse_cut_answer
from allonym.llm.client import Client, Recorded, Request, client_for
from allonym.llm.templates import build_messages, make_object_schema
from allonym.plan import digest
from allonym.protocol import Mention, Setting, Wanted, traits
from allonym.replace import proposals
from allonym.replace.cast import find_plain_words
from allonym.replace.covering import find_repeats
from allonym.replace.proposals import ModelRenderers, Proposals, find_fullest_surface, read_word_lists
from allonym.text.names import normalize_surface

WORDS = 1200
"""Words of a window of text."""
MOST = 50
"""Entities that one request asks for."""
OFFLINE = "llm offline"
_COVER = "[...]"
_CODE = re.compile(r"[0-9A-F]{8,}|E[0-9]+")
_HEX = re.compile(r"(?=([0-9A-F]{8}))")


@dataclass(frozen=True, slots=True)
class Query:
    """An entity that the model is asked for: its code in the request, its family, and its name for the ledger."""

    code: str
    family: str
    name: str
    target: Wanted = field(repr=False)


def make_renderers(targets: Sequence[Wanted], setting: Setting, remarks: list[str]) -> ModelRenderers:
    """Choose a value for each entity: the vault's, else the model's, else an offline pseudonym.

    Raises:
        UsageError: there is no key, or the policy names no endpoint.
        EndpointError: values are missing and the rule says ``on_failure = "fail"``.
    """
    client = client_for(setting.policy.llm, derive_operator_key(setting.key, "llm cache"))
    asker = _Asker(client, Proposals("llm", targets, setting, remarks), setting, _make_queries(targets, setting))
    queries = asker.queries
    trouble = ""
    missing = asker.list_unanswered_queries()
    if setting.book is not None:  # an entity that had no value of the model before keeps its pseudonym
        missing = [query for query in missing if setting.book.recall(OFFLINE, query.name) is None]
    for again in (False, True):
        missing = [query for query in missing if query.code not in asker.values]
        try:
            for mode, ask in (("tags", asker.ask_values_by_text), ("names", asker.ask_values_by_name)):
                if some := [query for query in missing if query.target.options.get("mode", "tags") == mode]:
                    ask(some, again)
        except Recorded:
            raise
        except EndpointError as error:
            trouble = str(error)
            break
    lacking = asker.list_unanswered_queries()
    failed = [q for q in lacking if q.target.options.get("on_failure") == "fail" and q in missing]
    if failed:
        raise EndpointError(trouble or f"llm: no usable values for {len(failed)} of {len(queries)} entities")
    if asker.counts["requests"]:
        names = ("requests", "prompt_tokens", "completion_tokens", "absent", "refused", "unreadable")
        counts = [f"{asker.counts[n]} {n.replace('_', ' ')}" for n in names if asker.counts[n]]
        remarks.append(f"llm: {', '.join(counts)}")
    if setting.book is not None:
        for query in lacking:
            setting.book.enter(OFFLINE, query.name, query.name)
    values = {i: asker.values[query.code] for i, query in enumerate(queries) if query.code in asker.values}
    return asker.proposals.make_renderers(values, trouble)


@traits(keyed=True, repeats=True, prepare=make_renderers)
def llm(
    mention: Mention,
    setting: Setting,
    *,
    mode: Literal["tags", "names"] = "tags",
    on_failure: Literal["offline", "fail"] = "offline",
) -> str:
    """Write a fictional value from the language model that the policy's table ``[llm]`` names; see the how-to.

    The model's answers are verified, and change nothing but mentions. With a vault, an entity keeps its value in all
    documents of a scope; without one, each document is asked for by itself.

    Args:
        mode: ``tags`` sends the text with a keyed tag in place of every entity, never an original (P5's encoding).
            ``names`` sends the entities' names with their labels, and no text: originals leave (P4's LLM-PS).
        on_failure: what happens to an entity for which the model has no usable value after all tries: ``offline``
            gives it what the operator ``pseudonym`` would, ``fail`` makes the document fail.
    """
    return cast(ModelRenderers, setting.prepared["llm"]).render(mention, setting)


def _make_queries(targets: Sequence[Wanted], setting: Setting) -> list[Query]:
    """Give each entity a code that tells nothing: keyed by document, so that it cannot link two documents."""
    secret = derive_operator_key(setting.key, "llm tag")
    document = digest(setting.document.text)
    used = set(_HEX.findall(setting.document.text))
    out = []
    for target in targets:
        name = proposals.make_ledger_key(target, setting)
        messages = (f"{document}\0{name}\0{attempt}".encode("utf-8", "surrogatepass") for attempt in count())
        codes = (hmac.digest(secret, message, "sha256")[:4].hex().upper() for message in messages)
        code = next(code for code in codes if code not in used)
        used.add(code)
        out.append(Query(code, proposals.get_label_family(target, setting), name, target))
    return out


class _Asker:
    """Asks the model for the values of one document.

    Attributes:
        values: code of a query to its value; the vault's are there from the start.
        counts: requests, tokens, and what was wrong with the answers.
    """

    def __init__(self, client: Client, proposals: Proposals, setting: Setting, queries: Sequence[Query]) -> None:
        self.client = client
        self.proposals = proposals
        self.setting = setting
        self.queries = queries
        self.counts: Counter[str] = Counter()
        recalled = {query.code: proposals.assign(query.target, ()) for query in queries}
        self.values = {code: value for code, value in recalled.items() if value is not None}
        self._originals = proposals.originals - read_word_lists()["generic"]

    def list_unanswered_queries(self) -> list[Query]:
        """Return the queries that have no value yet."""
        return [query for query in self.queries if query.code not in self.values]

    def ask_values_by_text(self, queries: Sequence[Query], again: bool) -> None:
        """Ask for values by windows of the text in reading order; the later ones see what the earlier ones gave."""
        waiting = {query.code: query for query in queries}
        for text, codes in _make_windows(self.setting, self.queries):
            here = [waiting.pop(code) for code in codes if code in waiting]
            for i in range(0, len(here), MOST):
                part = {query.code: query for query in here[i : i + MOST]}
                rows = [f"{code}: {query.target.label}" for code, query in part.items()]
                chosen = [f"{code}: {self.values[code]}\n" for code in codes if code in self.values]
                already_chosen = "Already chosen:\n" + "".join(chosen) if chosen else ""
                self._ask_model("tags", again, part, entities="\n".join(rows), known=already_chosen, text=text)

    def ask_values_by_name(self, queries: Sequence[Query], again: bool) -> None:
        """Ask for values by the entities' names, without the text."""
        for i in range(0, len(queries), MOST):
            part = {f"E{n}": query for n, query in enumerate(queries[i : i + MOST], 1)}
            names = {code: _join_lines(find_fullest_surface(query.target)) for code, query in part.items()}
            rows = [f"{code}: {query.target.label}: {names[code]}" for code, query in part.items()]
            used = [_join_lines(self.values[q.code]) for q in self.queries if q.code in self.values][-MOST:]
            already_used = "Already used: " + "; ".join(used) + "\n" if used else ""
            self._ask_model("names", again, part, entities="\n".join(rows), known=already_used)

    def _ask_model(self, prompt: str, again: bool, queries: Mapping[str, Query], **slots: str) -> None:
        language = self.setting.policy.language
        content = build_messages(prompt, self.client.prompts, again=again, language=language, **slots)
        entities = make_object_schema({code: {"type": "string"} for code in queries})
        reply = self.client.ask(Request(content, make_object_schema({"entities": entities}), "entities"))
        self.counts.update(requests=1, prompt_tokens=reply.prompt_tokens, completion_tokens=reply.completion_tokens)
        answer = parse_cut_answer(reply.content)
        values = answer.get("entities", answer) if answer is not None else None
        if not isinstance(values, Mapping):
            self.counts["unreadable"] += 1
            return
        proposed: dict[str, str] = {}
        for key, value in values.items():
            match = _CODE.search(str(key).upper())
            if match is not None and match[0] in queries and isinstance(value, str):
                proposed.setdefault(match[0], value)
        self.counts["absent"] += len(queries) - len(proposed)
        for code, value in proposed.items():
            query = queries[code]
            value = value.strip().strip("\"'“”").strip()
            fits = _is_plausible(value, query, self._originals)
            chosen = self.proposals.assign(query.target, (value,)) if fits else None
            if chosen is None:
                self.counts["refused"] += 1
            else:
                self.values[query.code] = chosen


def _make_windows(setting: Setting, queries: Sequence[Query]) -> Iterator[tuple[str, list[str]]]:
    """Yield windows of the text with a tag for each mention, and the codes in each, in reading order.

    Mentions that other operators replace are covered, too; so is what tells of them elsewhere.
    """
    text = setting.document.text
    tags: dict[Interval, tuple[str, str]] = {}
    for query in queries:
        tag = f'<{query.target.label} "{query.code}">'
        tags |= {(span.start, span.end): (tag, query.code) for span in query.target.entity.spans}
    pieces: list[tuple[str, str]] = []  # text or tag, and its code
    position = 0
    for start, end in sorted({*tags, *setting.places, *find_repeats(text, [*setting.places, *tags])}):
        pieces += [(text[position:start], ""), tags.get((start, end), (_COVER, ""))]
        position = end
    pieces.append((text[position:], ""))
    parts = [(p, code) for piece, code in pieces for p in ([piece] if code else re.split(r"(?<=\s)", piece))]
    for start in range(0, len(parts), WORDS):
        window = parts[start : start + WORDS]
        codes = dict.fromkeys(code for _, code in window if code)
        if codes:
            yield "".join(part for part, _ in window), list(codes)


def _join_lines(text: str) -> str:
    return " ".join(text.split())


# Answers


def _is_plausible(value: str, query: Query, originals: Set[str]) -> bool:
    """Whether a value is plausible for its entity and echoes no original."""
    like = find_fullest_surface(query.target)
    has_letters = any(c.isalpha() for c in value)
    if not proposals.is_possible_value(value) or not any(c.isalnum() for c in value):
        return False
    if normalize_surface(value) in read_word_lists()["placeholders"]:
        return False
    if ("@" in like) != ("@" in value) or (has_letters and not any(c.isalpha() for c in like)):
        return False
    if query.family == "PERSON":
        if not has_letters or "@" in value or any(c.isdigit() for c in value):
            return False
        if len(proposals.split_name(value)) < min(2, len(proposals.list_plain_names(like))):
            return False
    return not any(_holds_original(word, originals) for word in find_plain_words(value))


def _holds_original(word: str, originals: Set[str]) -> bool:
    """Whether a word is one of the originals, or holds one of four letters and more in its first 40."""
    size = min(len(word), 40)
    return word in originals or any(word[a:b] in originals for a in range(size - 3) for b in range(a + 4, size + 1))
