"""Reviews: projects, the queue, marks and decisions, agreement, export, the organisation's own terms."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Annotated, Any, cast

from fastapi import APIRouter, Depends, Path, Query
from fastapi.responses import PlainTextResponse
from starlette.concurrency import run_in_threadpool

from allonym.document import Document, Span
from allonym.errors import RequestError
from allonym.labels import TAXONOMY
from allonym.models.tags import LABELS
from allonym.models.words import words
from allonym.plan import Edit
from allonym.server.access import Who, needs, services_of
from allonym.server.policies import policy_of
from allonym.server.reviews.lists import DICTIONARY, EXCLUSION, Term
from allonym.server.reviews.outcomes import outcome, training
from allonym.server.reviews.queue import SEATS, VERDICT_SEAT, Item, Project, Seat, Wanted
from allonym.server.reviews.readings import Reading, reading_of, residual, settled
from allonym.server.reviews.risk import Risk, assessed, ready
from allonym.server.services import Services
from allonym.server.treating import numbered, together
from allonym.server.wire import reviews as wire
from allonym.server.wire import texts

router = APIRouter(prefix="/v1", tags=["reviews"])
Within = Annotated[Services, Depends(services_of)]
Name = Annotated[str, Path(min_length=1, max_length=64)]
Id = Annotated[str, Path(min_length=1, max_length=200)]
Reviewer = Annotated[Who, needs("review")]
Adjudicator = Annotated[Who, needs("review", "adjudicate")]
Offset = Annotated[int, Query(ge=0, le=1 << 31)]
Limit = Annotated[int, Query(ge=1, le=1000)]
_AT_ONCE = 4
"""Documents of one request that are anonymised at the same time."""


@router.get("/projects", summary="Projects")
def projects(who: Reviewer, services: Within, offset: Offset = 0, limit: Limit = 100) -> wire.Projects:
    """All projects by name, and how many of their documents are in which state."""
    found = services.queue.projects()
    return wire.Projects(projects=[_project(p) for p in found[offset : offset + limit]], total=len(found))


@router.post("/projects", status_code=201, summary="Make a project")
def make_project(body: wire.NewProject, who: Adjudicator, services: Within) -> wire.ProjectOut:
    """A set of documents that are anonymised and reviewed under one policy. Needs the extra `evaluate`."""
    ready()
    policy = body.policy.model_dump() if isinstance(body.policy, texts.PolicyChoice) else body.policy
    services.policies.source(policy)
    made = services.queue.make(body.name, policy, who.name)
    services.accounts.record(who, "project made")
    return _project(made)


@router.get("/projects/{name}", summary="A project")
def project(name: Name, who: Reviewer, services: Within) -> wire.ProjectOut:
    """One project."""
    return _project(services.queue.projects(name)[0])


@router.delete("/projects/{name}", status_code=204, summary="Remove a project")
def remove_project(name: Name, who: Adjudicator, services: Within) -> None:
    """With its documents, all that was said of them, and its terms."""
    gone = services.queue.remove(name)
    services.accounts.record(who, "project removed", {"documents": gone})


@router.post("/projects/{name}/documents", summary="Put documents into the queue")
async def add_documents(name: Name, body: wire.NewDocuments, who: Adjudicator, services: Within) -> wire.Added:
    """They are anonymised under the project's policy and read a second time for what may have been missed: that gives
    the risk by which they are ordered. What is there already stays, so a request that broke off can be sent again."""
    await run_in_threadpool(ready)
    source = await run_in_threadpool(_source, services, name)
    most = services.settings.max_characters
    documents = [_document(one) for one in body.documents]
    for place, document in enumerate(documents):
        if len(document.text) > most:
            raise RequestError(f"documents[{place}]: at most {most} characters are treated here", 413, "TooLarge")
    ids = [one.id for one in body.documents]
    if len(set(ids)) < len(ids):
        raise RequestError("documents: an id stands twice", 409, "Taken")
    there = await run_in_threadpool(services.queue.known, name, ids, [d.text for d in documents])
    turn = asyncio.Semaphore(_AT_ONCE)

    async def one(id: str, document: Document) -> None:
        async with turn:
            made = await services.kernel.anonymize(document, source, services.vault.operator_key, f"review {name}")
            risk = await services.kernel.run(assessed, document, made.text, made.plan.edits, source)
            services.metrics.treated(len(document.text), dict(made.report.labels))
            await run_in_threadpool(_keep, services, name, id, document, made, source, risk)

    await together(one(i, d) for i, d, known in zip(ids, documents, there, strict=True) if not known)
    counts = {"added": there.count(False), "known": there.count(True)}
    await run_in_threadpool(services.accounts.record, who, "documents to review", counts)
    return wire.Added(**counts)


@router.get("/projects/{name}/documents", summary="The queue")
def documents(
    name: Name,
    who: Reviewer,
    services: Within,
    state: wire.State | None = None,
    order: wire.Order = "risk",
    offset: Offset = 0,
    limit: Limit = 100,
) -> wire.DocumentLines:
    """Documents by `risk`, by what the tagger may learn of them (`gain`), or as they were `added`. Other people's marks
    are not told, only how many have begun and are done."""
    lines, total = services.queue.lines(name, who.id, state=state, order=order, offset=offset, limit=limit)
    return wire.DocumentLines(documents=[wire.DocumentLine(**asdict(line)) for line in lines], total=total)


@router.get("/projects/{name}/documents/{id}", summary="A document to review")
def document(name: Name, id: Id, who: Reviewer, services: Within) -> wire.DocumentOut:
    """The original, what became of it, and the caller's own reading. Reviewers are blind to each other until both are
    done. `proposals` are stretches that a second reading would look at; much of it is no mistake."""
    item, own = services.queue.item(name, id), services.queue.reading(name, id, who)
    others: Mapping[int, Seat] = {}
    if item.state in ("disagreement", "done"):
        item, others = services.queue.both(name, id)
    spans, _ = numbered(item.document, item.spans, _source(services, name))
    marks, decisions = _said(own.reading)
    verdict = others.get(VERDICT_SEAT)
    return wire.DocumentOut(
        id=item.id,
        state=cast(wire.State, item.state),
        text=item.document.text,
        turns=[(t.speaker[0] if t.speaker else t.start, t.end) for t in item.document.turns],
        anonymised=item.anonymised,
        spans=spans,
        edits=[wire.EditOut(**e) for e in item.edits],
        proposals=[wire.ProposalOut(**p) for p in item.risk["proposals"]],
        risk=item.risk["expected"],
        bound=item.risk["bound"],
        direct=item.risk["direct"],
        reasons=[wire.ReasonOut(**r) for r in item.risk["reasons"]],
        version=own.version,
        done=own.done,
        marks=marks,
        decisions=decisions,
        others=[_reading(others[n]) for n in SEATS if n in others],
        settled=_reading(verdict) if verdict else None,
    )


@router.delete("/projects/{name}/documents/{id}", status_code=204, summary="Remove a document")
def remove_document(name: Name, id: Id, who: Adjudicator, services: Within) -> None:
    """With all that was said of it. Terms that came of it stay on their lists."""
    services.queue.drop(name, id)
    services.accounts.record(who, "document removed", {"documents": 1})


@router.put("/projects/{name}/documents/{id}/marks", summary="Save one's review")
async def put_marks(name: Name, id: Id, body: wire.ReadingIn, who: Reviewer, services: Within) -> wire.Saved:
    """All that the caller says of the document: it replaces what the caller said before. With a `version` that is not
    the stored one nothing is changed (409). The first two who save are its reviewers. Terms that `list` names are in
    force at once."""
    return await _save(name, id, body, who, services, verdict=False)


@router.put("/projects/{name}/documents/{id}/settled", summary="Decide")
async def put_settled(name: Name, id: Id, body: wire.ReadingIn, who: Adjudicator, services: Within) -> wire.Saved:
    """What holds, once both reviewers are done. With `done` the document is settled; `version` is that of the decision
    so far, 0 at first."""
    return await _save(name, id, body, who, services, verdict=True)


@router.get("/projects/{name}/agreement", summary="Agreement and residual risk")
def agreement(name: Name, who: Reviewer, services: Within) -> wire.Agreed:
    """How far reviewers agree, where both are done, with 95 % intervals over documents, and P2's residual risk of what
    is settled. On findings two agree easily, as both see them: `marks` tells of what was missed alone."""
    found = outcome(services.queue.items(name))
    return wire.Agreed(**found.to_dict())


@router.get("/projects/{name}/export", response_class=PlainTextResponse, summary="Training text")
def export(name: Name, who: Adjudicator, services: Within) -> PlainTextResponse:
    """The settled documents as JSON lines for `allonym train ner --from-reviews`. They hold the originals; the audit
    log tells who took them."""
    lines = list(training(name, services.queue.items(name, "done")))
    services.accounts.record(who, "reviews exported", {"documents": len(lines)})
    headers = {"content-disposition": 'attachment; filename="reviews.jsonl"', "cache-control": "no-store"}
    return PlainTextResponse("".join(lines), media_type="application/x-ndjson", headers=headers)


@router.get("/lists", summary="Terms that are always or never found")
def terms(
    who: Reviewer,
    services: Within,
    project: Annotated[str | None, Query(max_length=64)] = None,
    kind: wire.TermKind | None = None,
    offset: Offset = 0,
    limit: Limit = 100,
) -> wire.Terms:
    """All terms, or those of a project, the newest first."""
    found = [t for t in services.lists.terms(project) if kind in (None, t.kind)][::-1]
    return wire.Terms(entries=[_term(t) for t in found[offset : offset + limit]], total=len(found))


@router.post("/lists", status_code=201, summary="Always or never find a term")
def add_term(body: wire.NewTerm, who: Reviewer, services: Within) -> wire.TermOut:
    """In force at once. A term for all needs the permission `adjudicate`. The last decision on a term holds."""
    _may_list(who, body.project is None)
    made = services.lists.add(body.kind, body.label, body.term, who.name, body.project)
    services.accounts.record(who, f"term added: {body.kind}", {"all": int(body.project is None)})
    return _term(made)


@router.delete("/lists/{id}", status_code=204, summary="Remove a term")
def remove_term(id: Annotated[int, Path(ge=1, le=1 << 62)], who: Reviewer, services: Within) -> None:
    """In force at once."""
    known = next((t for t in services.lists.terms() if t.number == id), None)
    if known is None:
        raise RequestError(f"there is no term {id}", 404, "NotFound")
    _may_list(who, known.project is None)
    services.lists.remove(id)
    services.accounts.record(who, f"term removed: {known.kind}", {"all": int(known.project is None)})


async def _save(name: str, id: str, body: wire.ReadingIn, who: Who, services: Services, *, verdict: bool) -> wire.Saved:
    if "all" in {*(m.list for m in body.marks), *(d.list for d in body.decisions)}:
        _may_list(who, True)

    def read(item: Item) -> tuple[Reading, list[Wanted]]:
        text = item.document.text
        marks = [m.model_dump(exclude={"list"}) for m in body.marks]
        decisions = [d.model_dump(exclude={"list"}) for d in body.decisions]
        return reading_of(marks, decisions, text, item.spans), _wanted(body, text, name)

    seat, state = await run_in_threadpool(
        lambda: services.queue.save(name, id, who, body.version, body.done, read, verdict=verdict)
    )
    if verdict and body.done:
        await run_in_threadpool(services.accounts.record, who, "document settled", {"documents": 1})
    item = await run_in_threadpool(services.queue.item, name, id)
    source = await run_in_threadpool(_source, services, name)
    holds = await run_in_threadpool(settled, seat.reading, item.document.text, item.spans)
    made = await services.kernel.anonymize(
        item.document, source, services.vault.operator_key, f"review {name}", tuple(holds)
    )
    spans, _ = await services.kernel.run(numbered, item.document, made.spans, source)
    score = await services.kernel.run(residual, seat.reading, item.id, item.document.text)
    return wire.Saved(
        version=seat.version,
        done=seat.done,
        state=cast(wire.State, state),
        score=score,
        anonymised=made.text,
        edits=[wire.EditOut(**e) for e in _edits(made.plan.edits)],
        spans=spans,
    )


def _wanted(body: wire.ReadingIn, text: str, project: str) -> list[Wanted]:
    """The terms that go on lists. Never found: under the widest label of the finding, so that it comes back nowhere."""
    out: list[Wanted] = []
    for mark in body.marks:
        if mark.list:
            out.append(
                (DICTIONARY, mark.label, text[mark.start : mark.end], project if mark.list == "project" else None)
            )
    for said in body.decisions:
        if not said.list:
            continue
        place = project if said.list == "project" else None
        if said.verdict == "reject":
            out.append((EXCLUSION, TAXONOMY.lineage(said.label)[-1], text[said.start : said.end], place))
        else:
            start = said.start if said.new_start is None else said.new_start
            end = said.end if said.new_end is None else said.new_end
            out.append((DICTIONARY, said.new_label or said.label, text[start:end], place))
    return out


def _may_list(who: Who, everywhere: bool) -> None:
    if everywhere and not who.may("adjudicate"):
        raise RequestError("a term for all projects needs the permission 'adjudicate'", 403, "NotAllowed")


def _source(services: Services, name: str) -> str:
    return services.policies.source(services.queue.projects(name)[0].policy, name)


def _document(one: wire.NewDocument) -> Document:
    if one.turns is not None:
        return Document.conversation(one.id, [(turn.speaker, turn.text) for turn in one.turns])
    return Document(one.id, one.text or "")


def _keep(services: Services, name: str, id: str, document: Document, made: Any, source: str, risk: Risk) -> None:
    policy = policy_of(source)
    lineages = {name: policy.taxonomy.lineage(name) for name in LABELS}
    labels = [n for n, line in lineages.items() if not {*policy.exclude} & {*line} and any(map(policy.looks_for, line))]
    spans: Sequence[Span] = made.spans
    services.queue.add(
        name,
        id,
        document,
        made.text,
        _edits(made.plan.edits),
        spans,
        labels,
        risk.to_dict(),
        len(words(document.text)),
    )


def _edits(edits: Sequence[Edit]) -> list[dict[str, Any]]:
    return [{"start": e.start, "end": e.end, "replacement": e.replacement, "label": e.label} for e in edits]


def _project(made: Project) -> wire.ProjectOut:
    return wire.ProjectOut(
        name=made.name,
        policy=made.policy,
        owner=made.owner,
        created=made.created,
        documents=sum(made.states.values()),
        states=cast(dict[wire.State, int], dict(made.states)),
    )


def _reading(seat: Seat) -> wire.ReadingOut:
    marks, decisions = _said(seat.reading)
    return wire.ReadingOut(reviewer=seat.reader, version=seat.version, done=seat.done, marks=marks, decisions=decisions)


def _said(reading: Reading) -> tuple[list[wire.MarkIO], list[wire.DecisionIO]]:
    return [wire.MarkIO(**asdict(m)) for m in reading.marks], [wire.DecisionIO(**asdict(d)) for d in reading.decisions]


def _term(term: Term) -> wire.TermOut:
    return wire.TermOut(
        id=term.number,
        kind=cast(wire.TermKind, term.kind),
        label=term.label,
        term=term.term,
        project=term.project,
        by=term.owner,
        created=term.created,
    )
