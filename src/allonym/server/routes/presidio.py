"""Presidio's REST API: clients of its analyzer or anonymizer service can use this address instead."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import PlainTextResponse
from fastapi.routing import APIRoute
from starlette.concurrency import run_in_threadpool

from allonym.errors import RequestError
from allonym.policy import Policy
from allonym.server.access import Caller, require_permissions
from allonym.server.policies import load_policy
from allonym.server.presidio import adhoc, analysis, operators
from allonym.server.problems import CHALLENGE, describe_error, describe_invalid_request
from allonym.server.processing import gather_results
from allonym.server.routes.parameters import AnyServices
from allonym.server.services import Services
from allonym.server.settings import Settings
from allonym.server.wire import presidio as wire

_AT_ONCE = 4
_PARSING = "Failed to parse /analyze request for AnalyzerEngine.analyze()."
_ERRORS: dict[int | str, dict[str, Any]] = {
    code: {"model": wire.PresidioError} for code in (400, 401, 403, 413, 422, 429, 503)
}


class Route(APIRoute):
    """A route whose errors have Presidio's shape."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """See the base class."""
        inner = super().get_route_handler()

        async def handle_request(request: Request) -> Response:
            try:
                return await inner(request)
            except RequestValidationError as error:
                problem = describe_invalid_request(error.errors())["error"]
                prefix = f"{problem['where']}: " if problem["where"] else ""
                is_analyze = request.url.path == "/analyze"
                lead = _PARSING if is_analyze else "Invalid input,"
                return _answer_error(400 if is_analyze else 422, f"{lead} {prefix}{problem['message']}")
            except Exception as error:  # any failure keeps Presidio's shape; an unexpected one shows its type alone
                status, body = describe_error(error)
                return _answer_error(status, body["error"]["message"])

        return handle_request


def _answer_error(status: int, message: str) -> Response:
    return _answer_json({"error": message}, status, {"WWW-Authenticate": CHALLENGE} if status == 401 else None)


def _is_presidio_open(settings: Settings) -> bool:
    return settings.presidio_open and settings.loopback and not settings.behind_proxy


router = APIRouter(tags=["presidio"], route_class=Route, responses=_ERRORS)
Detecting = Annotated[Caller, require_permissions("detect", is_open=_is_presidio_open)]
Anonymizing = Annotated[Caller, require_permissions("anonymize", is_open=_is_presidio_open)]
Restoring = Annotated[Caller, require_permissions("restore", is_open=_is_presidio_open)]
Language = Annotated[str | None, Query(max_length=16, examples=["en"])]


@router.post("/analyze", summary="Presidio: find", response_model=wire.Results)
async def analyze_text(body: wire.AnalyzeRequest, caller: Detecting, services: AnyServices) -> Response:
    """As Presidio's analyzer service, by the server's default policy. Labels without a name in Presidio keep ours."""
    if not body.text:
        raise _make_bad_request_error("No text provided")
    if not body.language:
        raise _make_bad_request_error("No language provided")
    texts = [body.text] if isinstance(body.text, str) else body.text
    _check_total_length(texts, services)
    query, policy = await run_in_threadpool(_make_query, body, services)
    turn = asyncio.Semaphore(_AT_ONCE)
    count = 0

    async def analyze_one(text: str) -> list[dict[str, Any]]:
        nonlocal count
        async with turn:
            if query.recognizers and count > adhoc.MOST:
                return []
            findings = await services.kernel.run(analysis.analyze_text, text, query)
        count += len(findings)
        return findings

    results = await gather_results(map(analyze_one, texts))
    if query.recognizers and count > adhoc.MOST:
        raise adhoc.make_too_many_matches_error()
    for text, findings in zip(texts, results, strict=True):
        types = Counter(f["entity_type"] for f in findings if f["entity_type"] in analysis.list_entity_types(policy))
        services.metrics.count_text(len(text), types)
    return _answer_json(results[0] if isinstance(body.text, str) else results)


@router.get("/recognizers", summary="Presidio: recognizers", response_model=list[str])
def list_recognizers(caller: Detecting, services: AnyServices, language: Language = None) -> list[str]:
    """The detectors of the server's default policy, the rules by their tables."""
    return list(analysis.list_recognizers(_get_policy(services, language)))


@router.get("/supportedentities", summary="Presidio: entity types", response_model=list[str])
def list_supported_entities(caller: Detecting, services: AnyServices, language: Language = None) -> list[str]:
    """The entity types that the server's default policy finds."""
    return list(analysis.list_supported_types(_get_policy(services, language)))


@router.post("/anonymize", summary="Presidio: replace", response_model=wire.Engines)
async def anonymize_text(body: wire.AnonymizeRequest, caller: Anonymizing, services: AnyServices) -> Response:
    """As Presidio's anonymizer service, but no overlap lets text through that a result covers."""
    findings, chosen, conflicts = await run_in_threadpool(_read_findings, body, services)
    results = []
    for text, spans in findings:
        results.append(await services.kernel.run(operators.anonymize_text, text, spans, chosen, conflicts))
        operators.check_output_size(sum(len(text) for text, _ in results))
    return await run_in_threadpool(_answer_results, results, isinstance(body.text, list))


def _read_findings(
    body: wire.AnonymizeRequest, services: Services
) -> tuple[list[tuple[str, list[operators.Finding]]], dict[str, operators.Operator], str]:
    """Return each text with its findings, the operators, and how conflicts are resolved."""
    if not body.model_fields_set:
        raise _make_bad_request_error("Invalid request json")
    chosen = _read_operators(body.anonymizers)
    if any(operator.name == "custom" for operator in chosen.values()):
        raise _make_bad_request_error("Custom type anonymizer is not supported")
    conflicts = body.conflict_resolution or operators.MERGE
    if conflicts not in operators.CONFLICTS:
        raise operators.make_invalid_request_error(
            f"Invalid conflict_resolution; one of {', '.join(operators.CONFLICTS)} is required"
        )
    pairs = _pair_results(body.text, body.analyzer_results, "analyzer_results", services)
    return [(text, _make_findings(rows, "analyzer result", scored=True)) for text, rows in pairs], chosen, conflicts


@router.post("/deanonymize", summary="Presidio: decrypt", response_model=wire.Engines)
def deanonymize_text(body: wire.DeanonymizeRequest, caller: Restoring, services: AnyServices) -> Response:
    """As Presidio's anonymizer service: undo `encrypt`, of this service or Presidio's, under the same key. Audited."""
    if not body.model_fields_set:
        raise _make_bad_request_error("Invalid request json")
    chosen = _read_operators(body.deanonymizers)
    pairs = _pair_results(body.text, body.anonymizer_results or [], "anonymizer_results", services)
    results = [operators.deanonymize_text(text, _make_findings(rows, "result"), chosen) for text, rows in pairs]
    services.accounts.record_action(caller, "deanonymize", {"items": sum(len(items) for _, items in results)})
    return _answer_results(results, isinstance(body.text, list))


@router.get("/anonymizers", summary="Presidio: operators", response_model=list[str])
def list_anonymizers(caller: Anonymizing) -> list[str]:
    """The operators of `/anonymize`."""
    return list(operators.ANONYMIZERS)


@router.get("/deanonymizers", summary="Presidio: operators that undo", response_model=list[str])
def list_deanonymizers(caller: Anonymizing) -> list[str]:
    """The operators of `/deanonymize`."""
    return list(operators.DEANONYMIZERS)


@router.get("/health", summary="Presidio: is it alive?", response_class=PlainTextResponse)
def check_health() -> str:
    """Open to anybody."""
    return "allonym's Presidio-compatible service is up"


def _make_query(body: wire.AnalyzeRequest, services: Services) -> tuple[analysis.Query, Policy]:
    """Return the query of a request for each text, and the policy.

    Raises:
        RequestError: no detector finds the requested entities, or a pattern is refused.
    """
    source = services.policies.describe_choice(None)
    policy = load_policy(source)
    language = body.language or ""
    analysis.check_language(language, policy)
    recognizers = [(_make_recognizer(r, i), r.supported_language) for i, r in enumerate(body.ad_hoc_recognizers or ())]
    chosen = tuple(recognizer for recognizer, supported in recognizers if supported == language)
    entities = tuple(dict.fromkeys(body.entities)) if body.entities else None
    if entities is not None:
        chosen = tuple(recognizer for recognizer in chosen if recognizer.entity in entities)
        if not chosen and not any(analysis.find_entity_labels(entity, policy) for entity in entities):
            raise RequestError(analysis.NO_RECOGNIZER, 400, "NotSupported")
    if body.allow_list_match not in (None, "exact", "regex"):
        raise _make_bad_request_error("allow_list_match must either be set to 'exact' or 'regex'.")
    query = analysis.Query(
        source=source,
        entities=entities,
        threshold=body.score_threshold,
        explain=bool(body.return_decision_process),
        recognizers=chosen,
        context=tuple(body.context or ()),
        allow=tuple(body.allow_list or ()),
        allow_patterns=body.allow_list_match == "regex",
        flags=int(adhoc.FLAGS) if body.regex_flags is None else body.regex_flags,
    )
    analysis.check_patterns(query)
    return query, policy


def _make_recognizer(body: wire.PatternRecognizer, number: int) -> adhoc.Recognizer:
    if body.supported_entity is not None and body.supported_entities is not None:
        raise _make_bad_request_error(
            f"{_PARSING} ad_hoc_recognizers[{number}] has both supported_entity and supported_entities"
        )
    entity = body.supported_entity or next(iter(body.supported_entities or ()), None)
    if not entity:
        raise _make_bad_request_error("Pattern recognizer should be initialized with entity")
    if not body.patterns and not body.deny_list:
        raise _make_bad_request_error("Pattern recognizer should be initialized with patterns or with deny list")
    return adhoc.Recognizer(
        name=body.name or "PatternRecognizer",
        entity=entity,
        patterns=tuple(adhoc.Pattern(p.name, p.regex, p.score) for p in body.patterns or ()),
        words=tuple(body.deny_list or ()),
        words_score=body.deny_list_score,
        context=tuple(body.context or ()),
        flags=int(adhoc.FLAGS) if body.global_regex_flags is None else body.global_regex_flags,
    )


def _get_policy(services: Services, language: str | None) -> Policy:
    policy = load_policy(services.policies.describe_choice(None))
    if language:
        analysis.check_language(language, policy)
    return policy


def _read_operators(configs: dict[str, wire.OperatorConfig] | None) -> dict[str, operators.Operator]:
    chosen = {}
    for entity, config in (configs or {}).items():
        if not config.type:
            raise operators.make_invalid_request_error("Invalid input, operator config must contain operator_name")
        chosen[entity] = operators.Operator(config.type, config.model_dump(exclude={"type"}, exclude_none=True))
    return chosen


def _pair_results(
    text: str | list[str] | None, rows: Any, name: str, services: Services
) -> list[tuple[str, list[wire.AnalyzerResult]]]:
    """Return each text with its results."""
    if rows is None:
        raise operators.make_invalid_request_error("Invalid input, request must contain analyzer results")
    nested = bool(rows) and isinstance(rows[0], list)
    if isinstance(text, list):
        texts, results = text, rows or [[] for _ in text]
        if len(results) != len(texts) or (rows and not nested):
            raise operators.make_invalid_request_error(
                f"Invalid input, '{name}' must contain one list of results per item in 'text'"
            )
    else:
        texts, results = [text or ""], [rows]
        if nested:
            raise operators.make_invalid_request_error(
                f"Invalid input, '{name}' must be one list of results where 'text' is one text"
            )
    _check_total_length(texts, services)
    return list(zip(texts, results, strict=True))


def _check_total_length(texts: Sequence[str], services: Services) -> None:
    most = services.settings.max_characters
    if sum(map(len, texts)) > most:
        raise RequestError(f"a request has at most {most} characters of text", 413, "TooLarge")


def _make_findings(rows: Sequence[wire.AnalyzerResult], kind: str, *, scored: bool = False) -> list[operators.Finding]:
    findings = []
    for row in rows:
        for name in ("start", "end", "entity_type"):
            if getattr(row, name) in (None, ""):
                raise operators.make_invalid_request_error(f"Invalid input, result must contain {name}")
        if scored and row.score is None:
            raise operators.make_invalid_request_error(f"Invalid input, {kind} must contain score")
        assert row.start is not None and row.end is not None and row.entity_type is not None
        if row.start < 0 or row.end < 0:
            raise operators.make_invalid_request_error("Invalid input, result start and end must be positive")
        if row.start > row.end:
            raise operators.make_invalid_request_error(
                f"Invalid input, start index '{row.start}' must be smaller than end index '{row.end}'"
            )
        findings.append(operators.Finding(row.start, row.end, row.entity_type, row.score))
    return findings


def _answer_results(results: Sequence[tuple[str, list[operators.Item]]], many: bool) -> Response:
    rows = [{"text": text, "items": [asdict(item) for item in items]} for text, items in results]
    return _answer_json(rows if many else rows[0])


def _answer_json(content: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """Answer with JSON in ASCII: texts of a request may hold half a surrogate pair, which UTF-8 cannot encode."""
    return Response(json.dumps(content), status, headers, media_type="application/json")


def _make_bad_request_error(message: str) -> RequestError:
    return RequestError(message, 400, "InvalidRequest")
