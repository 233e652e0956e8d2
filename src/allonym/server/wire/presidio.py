"""Presidio's REST API. As in Presidio, unknown fields of a request are ignored."""

from __future__ import annotations

from typing import Annotated

from pydantic import ConfigDict, Field

from allonym.server.wire.base import Unit, Wire

Entity = Annotated[str, Field(min_length=1, max_length=200, examples=["PERSON"])]
_Texts = Annotated[list[str], Field(max_length=1000)]


class Loose(Wire):
    """The base class of requests: unknown fields are ignored."""

    model_config = ConfigDict(extra="ignore", hide_input_in_errors=True)


class PresidioError(Wire):
    """Every error of these routes."""

    error: str = Field(examples=["No text provided"])


class Pattern(Wire):
    """A pattern of RE2: no look-around, no back-references."""

    name: str = Field(max_length=200, examples=["zip code (weak)"])
    regex: str = Field(min_length=1, max_length=4000, examples=[r"(\b\d{5}(?:\-\d{4})?\b)"])
    score: Unit = Field(examples=[0.01])


class PatternRecognizer(Wire):
    """A recognizer for this request only: patterns, a deny list, or both."""

    supported_entity: Entity | None = None
    supported_entities: list[Entity] | None = Field(None, max_length=1, description="instead of supported_entity")
    name: str | None = Field(None, max_length=200)
    supported_language: str = Field("en", max_length=16)
    patterns: list[Pattern] | None = Field(None, max_length=100)
    deny_list: list[Annotated[str, Field(max_length=500)]] | None = Field(None, max_length=1000)
    deny_list_score: Unit = 1.0
    context: list[Annotated[str, Field(min_length=1, max_length=100)]] | None = Field(None, max_length=100)
    global_regex_flags: int | None = Field(None, ge=0, le=1023, description="of Python's re")
    version: str | None = Field(None, max_length=50, description="ignored")
    country_code: str | None = Field(None, max_length=8, description="ignored")

    @property
    def entity(self) -> str:
        """The type of its findings; empty where it has none."""
        return self.supported_entity or next(iter(self.supported_entities or ()), "")

    @property
    def shown_name(self) -> str:
        """Its name for explanations."""
        return self.name or "PatternRecognizer"


class AnalyzeRequest(Loose):
    """One or several texts to analyse."""

    text: str | _Texts | None = Field(None, examples=["Ada Brook's drivers license is AC432223"])
    language: str | None = Field(None, max_length=16, examples=["en"])
    correlation_id: str | None = Field(None, max_length=1000, description="accepted, not used")
    score_threshold: Unit | None = Field(None, description="by default as the server's policy says")
    entities: list[Entity] | None = Field(None, max_length=1000, description="Presidio's names, or our labels")
    return_decision_process: bool | None = None
    ad_hoc_recognizers: list[PatternRecognizer] | None = Field(None, max_length=100)
    context: list[Annotated[str, Field(max_length=200)]] | None = Field(None, max_length=100)
    allow_list: list[Annotated[str, Field(max_length=4000)]] | None = Field(None, max_length=1000)
    allow_list_match: str | None = Field("exact", max_length=16, description="exact, or regex (RE2)")
    regex_flags: int | None = Field(None, ge=0, le=1023, description="of Python's re, for allow_list")


class AnalysisExplanation(Wire):
    """The explanation of a finding."""

    recognizer: str
    pattern_name: str | None
    pattern: str | None
    original_score: float
    score: float
    textual_explanation: str | None
    score_context_improvement: float
    supportive_context_word: str
    validation_result: bool | None


class RecognizerResult(Wire):
    """A finding."""

    entity_type: str
    start: int
    end: int
    score: float
    analysis_explanation: AnalysisExplanation | None = None


class AnalyzerResult(Loose):
    """A result of /analyze, or an item of /anonymize."""

    start: int | None = Field(None, le=1 << 40)
    end: int | None = Field(None, le=1 << 40)
    entity_type: str | None = Field(None, max_length=200)
    score: float | None = Field(None, allow_inf_nan=False)


class OperatorConfig(Loose):
    """An operator with its options."""

    type: str | None = Field(None, max_length=64, examples=["replace"])
    new_value: str | None = Field(None, max_length=10_000)
    masking_char: str | None = Field(None, max_length=64)
    chars_to_mask: int | None = Field(None, le=1 << 40)
    from_end: bool | None = None
    hash_type: str | None = Field(None, max_length=64)
    salt: str | None = Field(None, max_length=10_000)
    key: str | None = Field(None, max_length=1000)


_Findings = Annotated[list[AnalyzerResult], Field(max_length=100_000)]
_Operators = Annotated[dict[str, OperatorConfig], Field(max_length=1000)]


class AnonymizeRequest(Loose):
    """Findings to replace in one or several texts."""

    text: str | _Texts | None = Field(None, examples=["hello, my name is Ada Brook"])
    analyzer_results: _Findings | list[_Findings] | None = Field(
        None, examples=[[{"start": 18, "end": 27, "score": 0.85, "entity_type": "PERSON"}]]
    )
    anonymizers: _Operators | None = Field(None, examples=[{"DEFAULT": {"type": "replace", "new_value": "SOMEBODY"}}])
    conflict_resolution: str | None = Field(None, max_length=64, description="merge_similar_or_contained by default")


class DeanonymizeRequest(Loose):
    """Items to undo in one or several texts."""

    text: str | _Texts | None = None
    anonymizer_results: _Findings | list[_Findings] | None = None
    deanonymizers: _Operators | None = Field(None, examples=[{"DEFAULT": {"type": "decrypt", "key": "0" * 16}}])


class OperatorEntity(Wire):
    """A replacement with its place in the new text."""

    start: int
    end: int
    entity_type: str
    text: str
    operator: str
    score: float | None = None


class AnonymizeResponse(Wire):
    """The new text."""

    text: str
    items: list[OperatorEntity] = Field(description="from the last to the first")


Results = list[RecognizerResult] | list[list[RecognizerResult]]
Engines = AnonymizeResponse | list[AnonymizeResponse]
