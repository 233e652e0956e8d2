"""Presidio's REST API: a client of its analyzer or anonymizer service works with this address instead."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request, Response, Security
from fastapi.exceptions import RequestValidationError
from fastapi.responses import PlainTextResponse
from fastapi.routing import APIRoute
from fastapi.security import HTTPAuthorizationCredentials
from starlette.concurrency import run_in_threadpool

from allonym.errors import RequestError
from allonym.policy import Policy
from allonym.server.access import Who, bearer, cookie, identified, services_of
from allonym.server.accounts import OPEN
from allonym.server.policies import policy_of
from allonym.server.presidio import adhoc, analysis, names, operators
from allonym.server.problems import invalid, problem
from allonym.server.services import Services
from allonym.server.treating import together
from allonym.server.wire import presidio as wire

NOBODY = Who(0, OPEN, OPEN, frozenset(("detect", "anonymize", "restore")))
"""Who calls without a key where the setting ``presidio_open`` lets them."""

_AT_ONCE = 4
_PARSING = "Failed to parse /analyze request for AnalyzerEngine.analyze()."
_SHOWN: dict[int | str, dict[str, Any]] = {
    code: {"model": wire.PresidioError} for code in (400, 401, 403, 413, 422, 429, 503)
}


class Route(APIRoute):
    """A route whose errors have Presidio's shape."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """See the base class."""
        inner = super().get_route_handler()

        async def handler(request: Request) -> Response:
            try:
                return await inner(request)
            except RequestValidationError as error:
                told = invalid(error.errors())["error"]
                analyze = request.url.path == "/analyze"
                said = f"{told['where']}: {told['message']}" if told["where"] else told["message"]
                return _refused(400 if analyze else 422, f"{_PARSING if analyze else 'Invalid input,'} {said}")
            except Exception as error:  # whatever fails keeps Presidio's shape; problem() tells no more than is meant
                status, body = problem(error)
                return _refused(status, body["error"]["message"])

        return handler


def _refused(status: int, message: str) -> Response:
    headers = {"WWW-Authenticate": 'Bearer realm="allonym"'} if status == 401 else None
    return _answer({"error": message}, status, headers)


def opened(permission: str) -> Any:
    """As :func:`allonym.server.access.needs`; without credentials :data:`NOBODY`, where ``presidio_open`` is set."""

    def caller(
        request: Request,
        session: Annotated[str | None, Security(cookie)] = None,
        key: Annotated[HTTPAuthorizationCredentials | None, Security(bearer)] = None,
    ) -> Who:
        settings = services_of(request).settings
        if settings.presidio_open and settings.loopback and not settings.behind_proxy and not (session or key):
            return NOBODY
        who = identified(request, session, key.credentials if key else None)
        if not who.may(permission):
            raise RequestError(f"this needs the permission {permission!r}", 403, "NotAllowed")
        return who

    caller.permissions = (permission,)  # type: ignore[attr-defined]
    return Depends(caller)


router = APIRouter(tags=["presidio"], route_class=Route, responses=_SHOWN)
Within = Annotated[Services, Depends(services_of)]
Language = Annotated[str | None, Query(max_length=16, examples=["en"])]


@router.post("/analyze", summary="Presidio: find", response_model=wire.Results)
async def presidio_analyze(
    body: wire.AnalyzeRequest, who: Annotated[Who, opened("detect")], services: Within
) -> Response:
    """As Presidio's analyzer service, by the server's default policy. Labels without a name in Presidio have ours."""
    if not body.text:
        raise RequestError("No text provided", 400, "InvalidRequest")
    if not body.language:
        raise RequestError("No language provided", 400, "InvalidRequest")
    texts = [body.text] if isinstance(body.text, str) else body.text
    _check_size(texts, services)
    query, policy = await run_in_threadpool(_query, body, services)
    turn = asyncio.Semaphore(_AT_ONCE)
    count = 0

    async def one(text: str) -> list[dict[str, Any]]:
        nonlocal count
        async with turn:
            if query.recognizers and count > adhoc.MOST:
                return []
            found = await services.kernel.run(analysis.analysed, text, query)
        count += len(found)
        return found

    results = await together(map(one, texts))
    if query.recognizers and count > adhoc.MOST:
        raise adhoc.too_many()
    for text, found in zip(texts, results, strict=True):
        types = Counter(one["entity_type"] for one in found if one["entity_type"] in names.known(policy))
        services.metrics.treated(len(text), types)
    return _answer(results[0] if isinstance(body.text, str) else results)


@router.get("/recognizers", summary="Presidio: what finds", response_model=list[str])
def presidio_recognizers(
    who: Annotated[Who, opened("detect")], services: Within, language: Language = None
) -> list[str]:
    """The detectors of the server's default policy, the rules by their tables."""
    return list(names.recognizers(_speaking(services, language)))


@router.get("/supportedentities", summary="Presidio: what is found", response_model=list[str])
def presidio_supported_entities(
    who: Annotated[Who, opened("detect")], services: Within, language: Language = None
) -> list[str]:
    """The entity types that the server's default policy finds."""
    return list(names.supported(_speaking(services, language)))


@router.post("/anonymize", summary="Presidio: replace", response_model=wire.Engines)
async def presidio_anonymize(
    body: wire.AnonymizeRequest, who: Annotated[Who, opened("anonymize")], services: Within
) -> Response:
    """As Presidio's anonymizer service; but no overlap lets text through that a result covers."""
    given, chosen, conflicts = await run_in_threadpool(_asked, body, services)
    made = []
    for text, found in given:
        made.append(await services.kernel.run(operators.anonymized, text, found, chosen, conflicts))
        operators.check_made(sum(len(text) for text, _ in made))
    return await run_in_threadpool(_engines, made, isinstance(body.text, list))


def _asked(
    body: wire.AnonymizeRequest, services: Services
) -> tuple[list[tuple[str, list[operators.Finding]]], dict[str, operators.Operator], str]:
    """Each text with its findings, what is to be done with them, and how overlaps are settled."""
    if not body.model_fields_set:
        raise RequestError("Invalid request json", 400, "InvalidRequest")
    chosen = _operators(body.anonymizers)
    if any(one.name == "custom" for one in chosen.values()):
        raise RequestError("Custom type anonymizer is not supported", 400, "InvalidRequest")
    conflicts = body.conflict_resolution or operators.MERGE
    if conflicts not in operators.CONFLICTS:
        raise operators.invalid(f"Invalid conflict_resolution; one of {', '.join(operators.CONFLICTS)} is required")
    texts, found = _pairs(body.text, body.analyzer_results, "analyzer_results", services)
    given = [(t, _findings(rows, "analyzer result", scored=True)) for t, rows in zip(texts, found, strict=True)]
    return given, chosen, conflicts


@router.post("/deanonymize", summary="Presidio: decrypt", response_model=wire.Engines)
def presidio_deanonymize(
    body: wire.DeanonymizeRequest, who: Annotated[Who, opened("restore")], services: Within
) -> Response:
    """As Presidio's anonymizer service: what `encrypt` wrote, here or there, under the same key. Audited."""
    if not body.model_fields_set:
        raise RequestError("Invalid request json", 400, "InvalidRequest")
    chosen = _operators(body.deanonymizers)
    texts, found = _pairs(body.text, body.anonymizer_results or [], "anonymizer_results", services)
    made = [
        operators.deanonymized(text, _findings(rows, "result"), chosen) for text, rows in zip(texts, found, strict=True)
    ]
    services.accounts.record(who, "deanonymize", {"items": sum(len(items) for _, items in made)})
    return _engines(made, isinstance(body.text, list))


@router.get("/anonymizers", summary="Presidio: operators", response_model=list[str])
def presidio_anonymizers(who: Annotated[Who, opened("anonymize")]) -> list[str]:
    """What `/anonymize` can do."""
    return list(operators.ANONYMIZERS)


@router.get("/deanonymizers", summary="Presidio: operators that undo", response_model=list[str])
def presidio_deanonymizers(who: Annotated[Who, opened("anonymize")]) -> list[str]:
    """What `/deanonymize` can undo."""
    return list(operators.DEANONYMIZERS)


@router.get("/health", summary="Presidio: does it live?", response_class=PlainTextResponse)
def presidio_health() -> str:
    """Open to anybody."""
    return "allonym's Presidio-compatible service is up"


def _query(body: wire.AnalyzeRequest, services: Services) -> tuple[analysis.Query, Policy]:
    """What a request asks of each text, and the policy.

    Raises:
        RequestError: nothing can find what is asked for, or a pattern is refused.
    """
    source = services.policies.source(None)
    policy = policy_of(source)
    language = body.language or ""
    analysis.refuse_language(language, policy)
    brought = tuple(_recognizer(one, i) for i, one in enumerate(body.ad_hoc_recognizers or ()))
    brought = tuple(
        one
        for one, given in zip(brought, body.ad_hoc_recognizers or (), strict=True)
        if given.supported_language == language
    )
    entities = tuple(dict.fromkeys(body.entities)) if body.entities else None
    if entities is not None:
        brought = tuple(one for one in brought if one.entity in entities)
        if not brought and not any(names.labels_of(one, policy) for one in entities):
            raise RequestError(analysis.NOBODY, 400, "NotSupported")
    if body.allow_list_match not in (None, "exact", "regex"):
        raise RequestError("allow_list_match must either be set to 'exact' or 'regex'.", 400, "InvalidRequest")
    query = analysis.Query(
        source=source,
        entities=entities,
        threshold=body.score_threshold,
        explain=bool(body.return_decision_process),
        recognizers=brought,
        context=tuple(body.context or ()),
        allow=tuple(body.allow_list or ()),
        allow_patterns=body.allow_list_match == "regex",
        flags=int(adhoc.FLAGS) if body.regex_flags is None else body.regex_flags,
    )
    analysis.check(query)
    return query, policy


def _recognizer(given: wire.PatternRecognizer, number: int) -> adhoc.Recognizer:
    where = f"{_PARSING} ad_hoc_recognizers[{number}]"
    if given.supported_entity is not None and given.supported_entities is not None:
        raise RequestError(f"{where} has both supported_entity and supported_entities", 400, "InvalidRequest")
    entity = given.supported_entity or next(iter(given.supported_entities or ()), None)
    if not entity:
        raise RequestError("Pattern recognizer should be initialized with entity", 400, "InvalidRequest")
    if not given.patterns and not given.deny_list:
        message = "Pattern recognizer should be initialized with patterns or with deny list"
        raise RequestError(message, 400, "InvalidRequest")
    return adhoc.Recognizer(
        name=given.name or "PatternRecognizer",
        entity=entity,
        patterns=tuple(adhoc.Pattern(one.name, one.regex, one.score) for one in given.patterns or ()),
        words=tuple(given.deny_list or ()),
        words_score=given.deny_list_score,
        context=tuple(given.context or ()),
        flags=int(adhoc.FLAGS) if given.global_regex_flags is None else given.global_regex_flags,
    )


def _speaking(services: Services, language: str | None) -> Policy:
    policy = policy_of(services.policies.source(None))
    if language:
        analysis.refuse_language(language, policy)
    return policy


def _operators(given: dict[str, wire.OperatorConfig] | None) -> dict[str, operators.Operator]:
    out = {}
    for entity, one in (given or {}).items():
        if not one.type:
            raise operators.invalid("Invalid input, operator config must contain operator_name")
        out[entity] = operators.Operator(one.type, one.model_dump(exclude={"type"}, exclude_none=True))
    return out


def _pairs(
    text: str | list[str] | None, rows: Any, name: str, services: Services
) -> tuple[list[str], list[list[wire.AnalyzerResult]]]:
    """Each text with its findings."""
    if rows is None:
        raise operators.invalid("Invalid input, request must contain analyzer results")
    nested = bool(rows) and isinstance(rows[0], list)
    if isinstance(text, list):
        texts, found = text, rows or [[] for _ in text]
        if len(found) != len(texts) or (rows and not nested):
            raise operators.invalid(f"Invalid input, '{name}' must contain one list of results per item in 'text'")
    else:
        texts, found = [text or ""], [rows]
        if nested:
            raise operators.invalid(f"Invalid input, '{name}' must be one list of results where 'text' is one text")
    _check_size(texts, services)
    return texts, found


def _check_size(texts: Sequence[str], services: Services) -> None:
    most = services.settings.max_characters
    if sum(map(len, texts)) > most:
        raise RequestError(f"a request has at most {most} characters of text", 413, "TooLarge")


def _findings(rows: Sequence[wire.AnalyzerResult], kind: str, *, scored: bool = False) -> list[operators.Finding]:
    out = []
    for row in rows:
        for name in ("start", "end", "entity_type"):
            if getattr(row, name) in (None, ""):
                raise operators.invalid(f"Invalid input, result must contain {name}")
        if scored and row.score is None:
            raise operators.invalid(f"Invalid input, {kind} must contain score")
        assert row.start is not None and row.end is not None and row.entity_type is not None
        if row.start < 0 or row.end < 0:
            raise operators.invalid("Invalid input, result start and end must be positive")
        if row.start > row.end:
            raise operators.invalid(
                f"Invalid input, start index '{row.start}' must be smaller than end index '{row.end}'"
            )
        out.append(operators.Finding(row.start, row.end, row.entity_type, row.score))
    return out


def _engines(made: Sequence[tuple[str, list[operators.Item]]], many: bool) -> Response:
    rows = [{"text": text, "items": [asdict(item) for item in items]} for text, items in made]
    return _answer(rows if many else rows[0])


def _answer(content: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """JSON in ASCII: what a request brought may hold half a surrogate pair, which UTF-8 cannot."""
    return Response(json.dumps(content), status, headers, media_type="application/json")
