"""Terms that a project always or never finds: corrections by surface, in one document or in all.

A term cannot be on both lists of one place: the last decision holds, and one of a document wins over the project's.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from allonym.document import Document
from allonym.errors import AllonymError, UsageError
from allonym.labels import TAXONOMY
from allonym.pipeline import detect
from allonym.policy import Policy, TermList

DICTIONARY, EXCLUSION = "dictionary", "exclusion"
ANY = "*"
"""The label of an exclusion that holds for all labels."""
_LEAST, _LONGEST = 2, 200  # letters and digits; characters


@dataclass(frozen=True, slots=True)
class Term:
    """A term that is always found (``dictionary``) or never (``exclusion``), in one document or in all (None)."""

    kind: str
    label: str
    term: str = field(repr=False)
    document: str | None = None

    @property
    def place(self) -> tuple[str | None, str]:
        """What the last decision on a term is known by."""
        return self.document, self.term.casefold()


def add_terms_to_policy(policy: Policy, terms: Iterable[Term], document: str | None = None) -> Policy:
    """Return a policy with the terms of all documents and those of one; a document's own win."""
    chosen: dict[str, Term] = {}
    for term in sorted(terms, key=lambda term: term.document is not None):
        if term.document in (None, document):
            chosen[term.term.casefold()] = term
    if not chosen:
        return policy
    lists: dict[str, dict[str, list[str]]] = {DICTIONARY: {}, EXCLUSION: {}}
    for _, term in sorted(chosen.items()):
        lists[term.kind].setdefault(term.label, []).append(term.term)
    find, leave = ([TermList(label, tuple(words)) for label, words in sorted(lists[kind].items())] for kind in lists)
    # What was said last wins over the policy's own lists.
    kinds = {name: term.kind for name, term in chosen.items()}
    dictionary = (*_drop_terms(policy.dictionary, kinds, EXCLUSION), *find)
    return policy.with_(dictionary=dictionary, exclusions=(*_drop_terms(policy.exclusions, kinds, DICTIONARY), *leave))


def _drop_terms(lists: Iterable[TermList], kinds: dict[str, str], kind: str) -> list[TermList]:
    """Return lists without the terms that are of a kind now."""
    remaining = ((t.label, tuple(word for word in t.terms if kinds.get(word.casefold()) != kind)) for t in lists)
    return [TermList(label, words) for label, words in remaining if words]


def check_and_normalise_term(kind: str, label: str, term: str) -> str:
    """Return a term as it is stored, on one line and without needless blanks.

    Raises:
        UsageError, UnknownNameError: it is no term: less than two letters or digits, more than 200 characters,
            several lines, or no such label.
    """
    if not (label == ANY and kind == EXCLUSION):
        TAXONOMY.get(label, "label")
    text = " ".join(term.split())
    if "\n" in term.strip() or len(text) > _LONGEST or sum(map(str.isalnum, text)) < _LEAST:
        raise UsageError(f"term: one line of {_LEAST} letters or digits and at most {_LONGEST} characters is required")
    if not _is_usable_term(kind, label, text):
        raise UsageError("term: letters or digits that the dictionary can find again are required")
    return text


def _is_usable_term(kind: str, label: str, term: str) -> bool:
    """Whether detectors can use a term. Each is tried first, because one that they refuse would stop every request."""
    listed, document = (TermList(label, (term,)),), Document("", term)
    dictionary = (TermList("PERSON", (term,)),) if kind == EXCLUSION else listed
    policy = Policy(name="list", detectors=("lexicon",), dictionary=dictionary)
    try:
        findings = detect(document, policy)
        if kind == DICTIONARY:
            return bool(findings)
        remaining = detect(document, policy.with_(exclusions=listed))
        return bool(findings) and not (remaining and label in (ANY, "PERSON"))
    except AllonymError:
        return False
