"""Presidio's REST API: clients of its analyzer or anonymizer service can use this address instead."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import PlainTextResponse
from fastapi.routing import APIRoute
from starlette.concurrency import run_in_threadpool

from allonym.policy import Policy
from allonym.server.access import Caller
from allonym.server.policies import load_policy
from allonym.server.presidio import adhoc, analysis, operators
from allonym.server.presidio.adhoc import make_refusal
from allonym.server.problems import describe_error, make_error_headers, make_invalid_request_body
from allonym.server.processing import run_concurrently
from allonym.server.routes.parameters import AnyServices, make_permission_dependency
from allonym.server.services import Services
from allonym.server.settings import Settings
from allonym.server.wire import presidio as wire

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
                problem = make_invalid_request_body(error.errors())["error"]
                prefix = f"{problem['where']}: " if problem["where"] else ""
                is_analyze = request.url.path == "/analyze"
                lead = _PARSING if is_analyze else "Invalid input,"
                return _make_json_response(
                    {"error": f"{lead} {prefix}{problem['message']}"}, 400 if is_analyze else 422
                )
            except Exception as error:  # any failure keeps Presidio's shape; an unexpected one shows its type alone
                status, body = describe_error(error)
                headers = make_error_headers(error, status)
                return _make_json_response({"error": body["error"]["message"]}, status, headers)

        return handle_request


def _is_presidio_open(settings: Settings) -> bool:
    return settings.presidio_open and settings.is_on_loopback and not settings.behind_proxy


router = APIRouter(tags=["presidio"], route_class=Route, responses=_ERRORS)
Detecting = Annotated[Caller, make_permission_dependency("detect", is_open=_is_presidio_open)]
Anonymizing = Annotated[Caller, make_permission_dependency("anonymize", is_open=_is_presidio_open)]
Restoring = Annotated[Caller, make_permission_dependency("restore", is_open=_is_presidio_open)]
Language = Annotated[str | None, Query(max_length=16, examples=["en"])]


@router.post("/analyze", summary="Presidio: find", response_model=wire.Results)
async def analyze_text(body: wire.AnalyzeRequest, caller: Detecting, services: AnyServices) -> Response:
    """As Presidio's analyzer service, by the server's default policy. Labels without a name in Presidio keep ours."""
    if not body.text:
        raise make_refusal("No text provided")
    if not body.language:
        raise make_refusal("No language provided")
    texts = [body.text] if isinstance(body.text, str) else body.text
    _check_total_length(texts, services)
    source, query = await run_in_threadpool(_make_policy_source_and_query, body, services)
    count = 0

    async def analyze_one(text: str) -> list[dict[str, Any]]:
        nonlocal count
        if query.ad_hoc_recognizers and count > adhoc.MOST:
            return []
        findings = await services.kernel.run(analysis.analyze_text, text, source, query)
        count += len(findings)
        return findings

    results = await run_concurrently(analyze_one, texts)
    if query.ad_hoc_recognizers:
        adhoc.check_match_count(count)
    types_of_labels = analysis.list_all_entity_types(load_policy(source))
    for text, findings in zip(texts, results, strict=True):
        types = Counter(f["entity_type"] for f in findings if f["entity_type"] in types_of_labels)
        services.metrics.count_processed_text(len(text), types)
    return _make_json_response(results[0] if isinstance(body.text, str) else results)


@router.get("/recognizers", summary="Presidio: recognizers", response_model=list[str])
def list_recognizers(caller: Detecting, services: AnyServices, language: Language = None) -> list[str]:
    """The detectors of the server's default policy, the rules by their tables."""
    return list(analysis.list_recognizers(_get_default_policy(services, language)))


@router.get("/supportedentities", summary="Presidio: entity types", response_model=list[str])
def list_supported_entities(caller: Detecting, services: AnyServices, language: Language = None) -> list[str]:
    """The entity types that the server's default policy finds."""
    return list(analysis.list_supported_entity_types(_get_default_policy(services, language)))


@router.post("/anonymize", summary="Presidio: replace", response_model=wire.Engines)
async def anonymize_text(body: wire.AnonymizeRequest, caller: Anonymizing, services: AnyServices) -> Response:
    """As Presidio's anonymizer service, but no overlap lets text through that a result covers."""
    results = []
    for values in await run_in_threadpool(_list_anonymize_arguments, body, services):
        results.append(await services.kernel.run(operators.anonymize_text, *values))
        operators.check_output_size(sum(len(text) for text, _ in results))
    return await run_in_threadpool(_make_results_response, results, isinstance(body.text, list))


def _list_anonymize_arguments(body: wire.AnonymizeRequest, services: Services) -> list[tuple[Any, ...]]:
    """Return each text with its findings, the operators, and how conflicts are resolved."""
    if not body.model_fields_set:
        raise make_refusal("Invalid request json")
    chosen = _validate_operator_configs(body.anonymizers)
    if any(operator.type == "custom" for operator in chosen.values()):
        raise make_refusal("Custom type anonymizer is not supported")
    conflicts = body.conflict_resolution or operators.MERGE
    if conflicts not in operators.CONFLICTS:
        raise make_refusal(f"Invalid conflict_resolution; one of {', '.join(operators.CONFLICTS)} is required", 422)
    pairs = _pair_texts_with_results(body.text, body.analyzer_results, "analyzer_results", services)
    return [(text, _make_findings(rows, needs_score=True), chosen, conflicts) for text, rows in pairs]


@router.post("/deanonymize", summary="Presidio: decrypt", response_model=wire.Engines)
def deanonymize_text(body: wire.DeanonymizeRequest, caller: Restoring, services: AnyServices) -> Response:
    """As Presidio's anonymizer service: undo `encrypt`, of this service or Presidio's, under the same key. Audited."""
    if not body.model_fields_set:
        raise make_refusal("Invalid request json")
    chosen = _validate_operator_configs(body.deanonymizers)
    pairs = _pair_texts_with_results(body.text, body.anonymizer_results or [], "anonymizer_results", services)
    results = [operators.deanonymize_text(text, _make_findings(rows), chosen) for text, rows in pairs]
    services.accounts.record_action(caller, "deanonymize", {"items": sum(len(items) for _, items in results)})
    return _make_results_response(results, isinstance(body.text, list))


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


def _make_policy_source_and_query(body: wire.AnalyzeRequest, services: Services) -> tuple[str, wire.AnalyzeRequest]:
    """Return what describes the policy, and the request for each text, with those recognizers that count.

    Raises:
        RequestError: no detector finds the requested entities, or a pattern is refused.
    """
    source, language = services.policies.make_policy_json(None), body.language or ""
    policy = load_policy(source)
    analysis.check_language(language, policy)
    for number, recognizer in enumerate(body.ad_hoc_recognizers or ()):
        _check_recognizer(recognizer, number)
    chosen = [r for r in body.ad_hoc_recognizers or () if r.supported_language == language]
    if body.entities:
        chosen = [recognizer for recognizer in chosen if recognizer.entity in body.entities]
        if not chosen and not any(analysis.find_labels_of_type(entity, policy) for entity in body.entities):
            raise make_refusal(analysis.NO_RECOGNIZER)
    if body.allow_list_match not in (None, "exact", "regex"):
        raise make_refusal("allow_list_match must either be set to 'exact' or 'regex'.")
    query = body.model_copy(update={"text": None, "ad_hoc_recognizers": chosen})
    analysis.check_query_patterns(query)
    return source, query


def _check_recognizer(recognizer: wire.PatternRecognizer, index: int) -> None:
    if recognizer.supported_entity is not None and recognizer.supported_entities is not None:
        raise make_refusal(f"{_PARSING} ad_hoc_recognizers[{index}] has both supported_entity and supported_entities")
    if not recognizer.entity:
        raise make_refusal("Pattern recognizer should be initialized with entity")
    if not recognizer.patterns and not recognizer.deny_list:
        raise make_refusal("Pattern recognizer should be initialized with patterns or with deny list")


def _get_default_policy(services: Services, language: str | None) -> Policy:
    """Return the server's default policy; any other language is refused."""
    policy = load_policy(services.policies.make_policy_json(None))
    if language:
        analysis.check_language(language, policy)
    return policy


def _validate_operator_configs(configs: dict[str, wire.OperatorConfig] | None) -> dict[str, wire.OperatorConfig]:
    """Return the operators of a request by the types that they are for; each has a name."""
    for config in (configs or {}).values():
        if not config.type:
            raise make_refusal("Invalid input, operator config must contain operator_name", 422)
    return configs or {}


def _pair_texts_with_results(
    text: str | list[str] | None, rows: Any, field_name: str, services: Services
) -> list[tuple[str, list[wire.AnalyzerResult]]]:
    """Return each text with its results."""
    if rows is None:
        raise make_refusal("Invalid input, request must contain analyzer results", 422)
    many, nested = isinstance(text, list), bool(rows) and isinstance(rows[0], list)
    texts = text if isinstance(text, list) else [text or ""]
    results = (rows or [[] for _ in texts]) if many else [rows]
    if (rows and many != nested) or len(results) != len(texts):
        lists = "contain one list of results per item in 'text'"
        one_list = "be one list of results where 'text' is one text"
        raise make_refusal(f"Invalid input, '{field_name}' must {lists if many else one_list}", 422)
    _check_total_length(texts, services)
    return list(zip(texts, results, strict=True))


def _check_total_length(texts: Sequence[str], services: Services) -> None:
    most = services.settings.max_characters
    if sum(map(len, texts)) > most:
        raise make_refusal(f"a request has at most {most} characters of text", 413)


def _make_findings(rows: Sequence[wire.AnalyzerResult], *, needs_score: bool = False) -> list[operators.Finding]:
    """Check the results of a request and return them as findings."""
    findings = []
    for row in rows:
        for name in ("start", "end", "entity_type"):
            if getattr(row, name) in (None, ""):
                raise make_refusal(f"Invalid input, result must contain {name}", 422)
        if needs_score and row.score is None:
            raise make_refusal("Invalid input, analyzer result must contain score", 422)
        assert row.start is not None and row.end is not None and row.entity_type is not None
        if row.start < 0 or row.end < 0:
            raise make_refusal("Invalid input, result start and end must be positive", 422)
        if row.start > row.end:
            message = f"Invalid input, start index '{row.start}' must be smaller than end index '{row.end}'"
            raise make_refusal(message, 422)
        findings.append(operators.Finding(row.start, row.end, row.entity_type, row.score))
    return findings


def _make_results_response(results: Sequence[tuple[str, list[operators.Item]]], is_list: bool) -> Response:
    rows = [{"text": text, "items": items} for text, items in results]
    return _make_json_response(rows if is_list else rows[0])


def _make_json_response(content: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """Answer with JSON in ASCII: texts of a request may hold half a surrogate pair, which UTF-8 cannot encode."""
    return Response(json.dumps(content), status, headers, media_type="application/json")
