"""Intruder studies: texts, invitations, the task of an invited person, results."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from allonym.server.wire.base import Name, Wire
from allonym.server.wire.reviews import EstimateOut, Id


class NewStudyText(Wire):
    """A text that people judge, and the truth, which they do not see."""

    id: Id
    text: str = Field(min_length=1, max_length=100_000)
    subject: str = Field(min_length=1, max_length=200, description="the true name")
    group: str = Field("", max_length=64, description="fame class, or any other")


class NewStudy(Wire):
    """The motivated intruder test of Kleinberg et al. 2022, with people."""

    name: Name
    texts: list[NewStudyText] = Field(min_length=1, max_length=5000)
    judgements: int = Field(3, ge=1, le=100, description="how many people read each text")
    per_page: int = Field(10, ge=1, le=100, description="texts for one person, at most")
    seed: int = Field(0, description="another one deals the texts otherwise")
    guesses: int = Field(3, ge=1, le=3, description="names that a person may give for a text")
    consent: str = Field("", max_length=10_000, description="what people agree to; empty: our words")
    aliases: dict[str, list[str]] = Field({}, description="true name to further names that count as it")


class StudyOut(Wire):
    """A study in short."""

    id: int
    name: str
    owner: str
    created: int
    texts: int
    pages: int = Field(description="how many people are needed, one for each page")
    invited: int
    begun: int
    finished: int


class Studies(Wire):
    """Studies, the newest first."""

    studies: list[StudyOut]
    total: int


class Invited(Wire):
    """The progress of an invited person. Only a digest of the link's token is stored."""

    page: int
    state: Literal["invited", "begun", "finished", "expired"]
    answered: int
    of: int
    expires: int


class StudyRow(Wire):
    """The answers to one text."""

    text: str
    subject: str
    group: str
    guesses: list[str]
    similarity: float | None
    identified: bool
    rank: int
    judgements: int


class StudyRate(Wire):
    """A line of the tables."""

    name: str
    group: str
    texts: int
    judgements: int
    similarity: EstimateOut = Field(description="of the first guess with the true name, 0 to 1, mean")
    spread: float | None = Field(description="standard deviation of the similarities")
    identified: EstimateOut = Field(description="share of texts")
    error: float | None = Field(description="standard error of that share, as Kleinberg et al. 2022 compute it")


class StudyResults(Wire):
    """Tables 3 to 8 of Kleinberg et al. 2022, as far as there are answers."""

    judgements: int
    judges: int
    unread: int
    cut: float = Field(description="similarity from which on a name counts as found")
    overall: StudyRate
    groups: list[StudyRate]
    subjects: list[StudyRate]
    ranks: dict[str, EstimateOut] = Field(description="k to the share of texts found within k guesses")
    rows: list[StudyRow]
    found_by_any: EstimateOut
    claims: dict[str, int]
    agreement: EstimateOut = Field(description="share of claims to know the person, or not, that are true")
    chance_corrected: EstimateOut
    trusted: EstimateOut
    by_chance: EstimateOut
    alike: EstimateOut
    confidence_right: EstimateOut = Field(description="how sure people were of a right guess, 0 to 100")
    confidence_wrong: EstimateOut = Field(description="how sure people were of a wrong guess, 0 to 100")
    revealed: list[tuple[str, Any]] = Field(description="words of the reasons where the person was identified")
    kept: list[tuple[str, Any]] = Field(description="words of what was learnt where not")


class StudyDetail(StudyOut):
    """A study with its invitations and results."""

    invitations: list[Invited]
    results: StudyResults | None


class InvitePeople(Wire):
    """People to invite."""

    count: int = Field(1, ge=1, le=1000)
    days: float = Field(30, gt=0, le=365)


class InvitationLink(Wire):
    """A link for one person; it is shown this once."""

    link: str
    page: int
    expires: int


class InvitationLinks(Wire):
    """Links, one for each person."""

    invitations: list[InvitationLink]


class TaskItem(Wire):
    """A text to judge."""

    token: str
    text: str


class AnswerIO(Wire):
    """A person's answer to a text."""

    identified: Literal["yes", "no"]
    names: list[Annotated[str, Field(max_length=200)]] = Field([], max_length=3, description="the likeliest first")
    confidence: Annotated[float, Field(ge=0, le=100)] = Field(0, description="of the first guess")
    knowledge: str = Field("", max_length=4000, description="what could be found out")
    reason: str = Field("", max_length=4000, description="what revealed it")


class ItemAnswer(AnswerIO):
    """An answer with the text that it is about."""

    item: str = Field(max_length=16)


class Task(Wire):
    """The task of an invited person."""

    study: str
    title: str
    instructions: list[str]
    consent: str
    guesses: int
    items: list[TaskItem]
    answers: dict[str, AnswerIO] = Field(description="by token: what was answered so far")
    done: bool
    expires: int


class Answers(Wire):
    """Answers, one by one or together; one that comes again replaces the one before."""

    answers: list[ItemAnswer] = Field([], max_length=100)
    done: bool = Field(False, description="they are final")


class Received(Wire):
    """The progress of the task."""

    answered: int
    of: int
    done: bool
