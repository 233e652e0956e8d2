"""The questions of a first policy, for the command line and the page of the server, and what their answers are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple


class Question(NamedTuple):
    """A question: its name, its words, and its answers with their meaning; none where any language is an answer."""

    name: str
    words: str
    answers: Mapping[str, str]


LANGUAGE = Question("language", "Which language are the texts in?", {})
PROTECT = Question(
    "protect",
    "Whose data is it?",
    {
        "everyone": "anybody whom the texts name",
        "speakers": "people in interviews, calls and meetings",
        "patients": "patients: the 18 identifiers of HIPAA Safe Harbor",
        "eu": "people in the European Union: health, origin and belief, too",
        "users": "people who write to an assistant; what they ask about stays",
    },
)
DATES = Question(
    "dates",
    "What becomes of dates?",
    {
        "cover": "tags",
        "year": "the year stays",
        "shift": "all dates of a text move by the same days; needs a key",
        "keep": "they stay, but for dates of birth",
    },
)
ORGANISATIONS = Question("organisations", "What becomes of organisations?", {"cover": "replaced", "keep": "they stay"})
PUBLIC_FIGURES = Question(
    "public_figures",
    "What becomes of well-known people, such as heads of state?",
    {"cover": "replaced", "keep": "they stay"},
)
COME_BACK = Question(
    "come_back",
    "Must the originals come back?",
    {
        "no": "tags stay for good",
        "yes": "tags that a plan or a vault restores",
        "natural": "no, and the text shall read naturally: pseudonyms; needs a key",
    },
)
QUESTIONS = (LANGUAGE, PROTECT, DATES, ORGANISATIONS, PUBLIC_FIGURES, COME_BACK)


@dataclass(frozen=True, slots=True)
class Answers:
    """What somebody wants: a language, ISO 639-1, and of each other question a key of its answers."""

    language: str
    protect: str
    dates: str
    organisations: str
    public_figures: str
    come_back: str
