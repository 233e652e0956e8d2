"""Names of people in the endings of their language, in passages in Polish: "z Tomaszem Kowalskim".

The base form is told by what is a listed name, by the case that the words of a name share, and by the other names of
the document. A name that fits nothing else stays as it is written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from allonym.detection.languages import identify_passages
from allonym.detection.listed_names import get_name_weight
from allonym.document import Reach, Span
from allonym.text.inflection import Ending, list_bases_in_case
from allonym.text.words import LETTERS

_LANGUAGE = "pl"
_CASES = 5  # the vocative, the sixth, is hardly ever that of a name of which others speak
_SHORTEST = 3
_LISTED = 40  # weight of a family name that is in no ending: "Jan Kowalski" beside "Anna Kowalska"
_REPEATED = 30  # weight of a base form that the document has as a name


@dataclass(frozen=True, slots=True)
class BaseForm:
    """A name without its endings, and its words: as written, without ending, and the ending; no ``repr`` shows them."""

    surface: str
    words: tuple[tuple[str, str, Ending], ...]

    def __repr__(self) -> str:
        return f"BaseForm({len(self.words)} words)"


def find_base_forms_of_names(text: str, spans: Sequence[Span]) -> dict[tuple[int, int], BaseForm]:
    """Find the base forms of those mentions of people that are inflected: start and end of the mention to its form.

    Args:
        text: the text.
        spans: mentions of people in it.
    """
    if not any(_may_be_inflected(text[span.start : span.end]) for span in spans):
        return {}  # languages take longer to tell
    polish = [(p.start, p.end) for p in identify_passages(text) if p.language == _LANGUAGE]
    if not polish:
        return {}
    reach = Reach(polish)
    inside = [span for span in spans if reach.contains(span.start, span.end)]
    written = {word for span in inside for word in LETTERS.findall(text, span.start, span.end)}
    forms: dict[tuple[int, int], BaseForm] = {}
    for span in sorted(inside, key=lambda s: (-text.count(" ", s.start, s.end), s.start)):  # "Kowalskiego" last
        if (form := _find_base_form(text, span, written)) is not None:
            forms[span.start, span.end] = form
            written.update(base for _, base, _ in form.words)
    return forms


def _list_name_words(text: str, start: int, end: int) -> list[re.Match[str]]:
    """Return the words of a mention that may have endings; none where its family name is a listed one."""
    words = [m for m in LETTERS.finditer(text, start, end) if m[0][0].isupper() and len(m[0]) >= _SHORTEST]
    return [] if len(words) > 1 and _weigh(words[-1][0], "last") >= _LISTED else words


@lru_cache(maxsize=4096)
def _may_be_inflected(name: str) -> bool:
    return any(_has_bases(word[0]) for word in _list_name_words(name, 0, len(name)))


@lru_cache(maxsize=4096)
def _has_bases(word: str) -> bool:
    return any(next(_list_bases(word, case), None) for case in range(_CASES))


def _find_base_form(text: str, span: Span, written: set[str]) -> BaseForm | None:
    words = _list_name_words(text, span.start, span.end)
    if not words:
        return None
    parts = ["first"] * (len(words) - 1) + ["last"] if len(words) > 1 else ["any"]
    nominative = sum(_weigh(w[0], part) for w, part in zip(words, parts, strict=True))
    best, best_rank = None, (nominative, 0)
    for case in range(_CASES):
        bases = [_choose_base(w[0], case, part, written) for w, part in zip(words, parts, strict=True)]
        weight = sum(
            _weigh(base[0], part) + _REPEATED * (base[0] in written and base[0] != w[0]) if base else _weigh(w[0], part)
            for base, w, part in zip(bases, words, parts, strict=True)
        )
        rank = (weight, sum(base is not None for base in bases))
        if any(bases) and weight > nominative and rank > best_rank:
            best, best_rank = bases, rank
    if best is None:
        return None
    surface, position = "", span.start
    changes = []
    for word, base in zip(words, best, strict=True):
        surface += text[position : word.start()] + (base[0] if base else word[0])
        position = word.end()
        if base:
            changes.append((word[0], *base))
    return BaseForm(surface + text[position : span.end], tuple(changes))


def _choose_base(word: str, case: int, part: str, written: set[str]) -> tuple[str, Ending] | None:
    """The likeliest base form of a word in a case; None where it has none that differs."""
    candidates = list(_list_bases(word, case))
    return max(candidates, key=lambda c: (c[0] in written, _weigh(c[0], part), -len(c[0]), c[0]), default=None)


def _list_bases(word: str, case: int) -> Iterator[tuple[str, Ending]]:
    for base, ending in list_bases_in_case(word.lower(), _LANGUAGE, case):
        yield (base.upper() if word.isupper() else base.capitalize()), ending


def _weigh(word: str, part: str) -> int:
    if part == "any":
        return max(get_name_weight(word, "first", _SHORTEST), get_name_weight(word, "last", _SHORTEST))
    return get_name_weight(word, part, _SHORTEST)


def list_written_words(forms: Mapping[tuple[int, int], BaseForm]) -> dict[str, tuple[str, Ending]]:
    """Map the written words of some base forms to the words without ending, and the ending."""
    return {word: (base, ending) for form in forms.values() for word, base, ending in form.words}
