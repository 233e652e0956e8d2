"""Jobs on files and corpora, and evaluations of a few texts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from allonym.server.wire.base import Count, LabelledPlace, Name, Unit, Wire, add_settings
from allonym.server.wire.texts import Kept, Policy
from allonym.settings import Setting, find_setting, list_settings
from allonym.swap.frontier import Rule
from allonym.swap.settings import Settings

Kind = Literal["anonymize", "restore", "swap", "evaluate", "harden", "project"]
State = Literal["queued", "running", "done", "failed", "cancelled"]
Field_ = Annotated[str, Field(min_length=1, max_length=200)]
Fields = Annotated[list[Field_], Field(max_length=100)]


class AnonymizeOptions(Wire):
    """Options of the kind `anonymize`: files of any format."""

    policy: Policy = None
    scope: str | None = Field(
        None, max_length=200, description="stores originals and replacements in the vault, under this name"
    )
    fields: Fields = Field([], description="columns or dotted paths that hold text; by default all text")
    format: Name | None = Field(None, description="format of all files, whatever their names say")
    plans: bool = Field(False, description="a further result: the plan of each document")
    originals: bool = Field(False, description="the plans hold the originals; they are then as sensitive")


class RestoreOptions(Kept):
    """Options of the kind `restore`: files of all formats but PDF and pictures. A plan is that of one text file."""


_OFFERED = (
    *("exchange.strategy", "read.section", "read.min_size", "read.max_size", "search.size", "search.population"),
    *("search.draws", "search.points", "mixture.clusters", "mixture.family", "mixture.restarts", "embed.name"),
    *("check.intruders", "check.runs", "release.form", "release.part"),
)
_DIFFERENCES: Mapping[str, Mapping[str, Any]] = {
    "read.section": {"one_of": ("all", "presentation")},
    "search.size": {"name": "swap_size", "high": 20},
    "search.draws": {"high": 100},
    "search.points": {"high": 200},
    "mixture.clusters": {"high": 10_000},
    "mixture.restarts": {"high": 50},
    "embed.name": {"name": "embedder", "one_of": ("encoder", "lsa")},
    "check.intruders": {"one_of": ("entities", "words")},
    "check.runs": {"high": 50},
    "release.part": {"high": 1000},
}
"""Settings that have another name in a request, or fewer values."""

SWAP_SETTINGS: Mapping[str, Setting] = {
    path: replace(find_setting(Settings, path), **_DIFFERENCES.get(path, {})) for path in _OFFERED
}
"""The settings of swapping that requests and forms offer, by ``table.key``."""


@add_settings((*SWAP_SETTINGS.values(), *list_settings(Rule)))
class SwapOptions(Wire):
    """Options of the kind `swap`: the documents of a corpus exchange names, as in `allonym swap`."""

    protect: Field_ = Field(description="metadata that nobody should guess: company, author", examples=["company"])
    policy: Policy = Field("swap", description="decides what is detected, and what replaces direct identifiers")
    settings: Name = Field("default", description="a preset: default, p1, earnings")
    fields: Fields = Field([])
    format: Name | None = None
    rest: Literal["drop", "anonymize"] = "drop"
    categories: dict[Name, Name] = Field({}, description="category to swap, fixed, change or free")
    fallback: dict[Name, Name] = Field({}, description="category, or *, to the operator for what cannot be exchanged")
    check: bool = Field(True, description="whether intruders guess, before and after")
    label: Field_ | None = Field(None, description="metadata whose prediction tells the utility for a task")
    seed: Count = 0
    texts: bool = Field(True, description="the report shows chunks before and after")


class EvaluateOptions(Wire):
    """Options of the kind `evaluate`: the originals as `files`, the other version as `anonymised`."""

    fields: Fields = Field([])
    anonymised_fields: Fields = Field([], description="of the other version; with one file only, its second field")
    format: Name | None = None
    labels: Field_ | None = Field(None, description="metadata that a classifier learns")
    subject: Field_ | None = Field(None, description="metadata that says whom a text is about")
    group: Field_ | None = None
    document: Field_ | None = Field(None, description="metadata with the document of which a text is a part")
    review_above: float | None = Field(None, ge=0, le=1)
    measures: list[Name] | None = None
    seed: Count = 0
    texts: bool = Field(False, description="the report may show words of the texts")


class HardenOptions(Wire):
    """Options of the kind `harden`: the originals as `files`, the version to harden as `anonymised`, in English."""

    subject: Field_ = Field(description="metadata that says whom a text is about", examples=["person"])
    fields: Fields = Field([])
    anonymised_fields: Fields = Field([], description="of the other version; with one file only, its second field")
    format: Name | None = None
    rank: int = Field(1, ge=1, le=1000, description="the subject's rank must become worse than this")
    most_removed: Unit = Field(0.6, description="most of the content words to remove or generalise, as a share")
    seed: Count = 0


class ProjectOptions(Wire):
    """Options of the kind `project`: files to add to a project of files, or, without files, a release of it."""

    project: str = Field(pattern="^[0-9a-f]{16}$", description="its id")
    action: Literal["add", "release"] = "add"
    unreviewed: bool = Field(False, description="release documents that two reviewers have not settled")
    incomplete: bool = Field(False, description="leave out of a release what cannot be written")
    cards: bool = Field(False, description="say in a release's statement what is left about each person; English")


class Progress(Wire):
    """The progress of a job."""

    done: int = 0
    of: int = 0
    stage: str = ""


class ResultOut(Wire):
    """A file that a job made."""

    name: str
    size: int
    media_type: str


class Job(Wire):
    """A job with its state and results."""

    id: str
    kind: Kind
    name: str = Field(description="of its first file")
    owner: str
    state: State
    progress: Progress
    options: dict[str, Any] = Field(description="as they were chosen, without the policy's own lists")
    created: int
    started: int | None = None
    ended: int | None = None
    expires: int | None = Field(None, description="when its files are removed")
    error: str | None = None
    results: list[ResultOut] = Field([])
    summary: dict[str, Any] = Field({})


class Jobs(Wire):
    """Jobs, newest first."""

    jobs: list[Job]
    total: int


class Number(Wire):
    """A measured number with its interval."""

    value: float | None
    low: float | None = None
    high: float | None = None


class ReleaseNumbers(Wire):
    """The effect of a release."""

    changed: Number = Field(description="chunks changed")
    share: Number = Field(description="chunks changed, of all")
    risk: Number
    remaining: Number = Field(description="expected population uniques left")
    utility: Number
    uniques: Number
    cosine: Number
    distance_per_chunk: Number = Field(description="nats")


class ReleaseOut(ReleaseNumbers):
    """One release of the corpus; its numbers are means over draws, without fall-backs."""

    id: int
    categories: list[str]
    swaps: int
    written: ReleaseNumbers | None = Field(None, description="of the draw that was written, with fall-backs")
    moves: float = Field(description="entities that changed places")
    flags: list[str]
    on_frontier: bool
    chosen: bool


class Baseline(Wire):
    """The corpus without any exchange."""

    risk: float = 1.0
    utility: float = 1.0


class Releases(Wire):
    """All releases of a swap at the population size by which one is chosen."""

    releases: list[ReleaseOut]
    baseline: Baseline
    population: float
    populations: list[float]
    chosen: int
    why: str


class LevelOut(Wire):
    """One point of the frontier of hardening; its numbers are those of the rounds."""

    id: int = Field(description="of its round; 0: as anonymised")
    gone: Number = Field(description="share of the originals' content words that are gone")
    worst: Number = Field(description="share of texts whose subject the worst of the three intruders identifies")
    naive: Number
    blind: Number
    adaptive: Number
    removed: Number = Field(description="share of words gone, general words counted as left")
    similarity: Number = Field(description="mean cosine with the original")
    chosen: bool
    panel: dict[str, Any] | None = Field(None, description="what intruders reach who had no say, once it was written")


class Levels(Wire):
    """The frontier of hardening: risk against content kept."""

    levels: list[LevelOut]
    chosen: int
    suggested: int = Field(description="the first at which all intruders do clearly worse than guessing, or the last")
    chance: Number = Field(description="what guessing reaches")


class Choice(Wire):
    """The release, or the level of hardening, to choose."""

    release: Count


class MarkedAfter(LabelledPlace):
    """A stretch of a released document; an empty one shows where text was removed."""

    kind: str = Field(description="swap, or the operator that replaced it", examples=["swap"])


class Beside(Wire):
    """A document before and after."""

    id: str
    before: str
    after: str
    before_spans: list[LabelledPlace]
    spans: list[MarkedAfter]


class Documents(Wire):
    """Documents of a release or a level, before and after."""

    documents: list[Beside]
    total: int
    ready: bool = Field(description="false: the release is being made; ask again")


class Evaluate(Wire):
    """Texts before and after, in the same order."""

    original: Annotated[list[str], Field(min_length=1, max_length=1000)]
    anonymised: Annotated[list[str], Field(min_length=1, max_length=1000)]
    measures: list[Name] | None = Field(None, max_length=20, description="by default all that the texts allow")
    labels: Annotated[list[Field_], Field(max_length=1000)] | None = Field(None, description="the class of each text")
    subjects: Annotated[list[Field_], Field(max_length=1000)] | None = Field(None, description="whom each is about")
    seed: Count = 0

    @model_validator(mode="after")
    def _check_equal_lengths(self) -> Evaluate:
        for name in ("anonymised", "labels", "subjects"):
            values = getattr(self, name)
            if values is not None and len(values) != len(self.original):
                raise ValueError(f"{name} must have as many items as original")
        return self


class SkippedOut(Wire):
    """A measure that was not computed."""

    measure: str
    title: str
    reason: str


class Evaluated(Wire):
    """The results, as in the `report.json` of a job."""

    texts: int
    measures: dict[str, Any]
    headlines: list[dict[str, Any]]
    skipped: list[SkippedOut]
