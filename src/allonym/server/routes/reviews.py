"""Reviews: projects, the queue, marks and decisions, agreement, export, the organisation's own terms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query
from fastapi.responses import Response
from starlette.concurrency import run_in_threadpool

from allonym.document import Document
from allonym.errors import RequestError
from allonym.labels import TAXONOMY
from allonym.plan import Edit
from allonym.project.agreement import measure_reviews
from allonym.project.policies import list_wanted_tagger_labels
from allonym.project.readings import (
    FindingDecision,
    LeakMark,
    Reading,
    apply_reading,
    make_checked_reading,
    score_residual_risk,
)
from allonym.project.risks import Risk, assess_risk, require_evaluate_extra
from allonym.project.seats import SEATS, VERDICT_SEAT, ReviewDocument, UserReading, format_settled_training_lines
from allonym.project.terms import DICTIONARY, EXCLUSION
from allonym.serial import to_plain
from allonym.server.access import Caller
from allonym.server.policies import load_policy
from allonym.server.processing import NO_TEXT, TextTask, dump_policy_choice, make_document, run_concurrently
from allonym.server.reviews.queue import ListedTerm
from allonym.server.routes.parameters import Adjudicator, AnyServices, Limit, Name, Number, Offset, Reviewer
from allonym.server.scopes import REVIEW
from allonym.server.services import Services
from allonym.server.wire import reviews as wire

router = APIRouter(prefix="/v1", tags=["reviews"])
Id = Annotated[str, Path(min_length=1, max_length=200)]


def _check_reviewer_of_project(name: Name, caller: Reviewer, services: AnyServices) -> Caller:
    services.scopes.check_may_open(caller, REVIEW + name)
    return caller


def _check_adjudicator_of_project(name: Name, caller: Adjudicator, services: AnyServices) -> Caller:
    services.scopes.check_may_open(caller, REVIEW + name)
    return caller


ProjectReviewer = Annotated[Caller, Depends(_check_reviewer_of_project)]
ProjectAdjudicator = Annotated[Caller, Depends(_check_adjudicator_of_project)]


@router.get("/projects", summary="Projects")
def list_projects(caller: Reviewer, services: AnyServices, offset: Offset = 0, limit: Limit = 100) -> wire.Projects:
    """Those that the caller made or was let into, by name, and how many of their documents are in each state."""
    projects = [p for p in services.queue.list_projects() if services.scopes.find_role(caller, REVIEW + p.name)]
    return wire.Projects(projects=projects[offset : offset + limit], total=len(projects))


@router.post("/projects", status_code=201, summary="Make a project")
def make_project(body: wire.NewProject, caller: Adjudicator, services: AnyServices) -> wire.ProjectOut:
    """A set of documents that are anonymised and reviewed under one policy. The caller owns it, and lets others in by a
    grant of the scope `review NAME` (`/v1/scopes/grants`). Needs the extra `evaluate`."""
    require_evaluate_extra()
    policy = dump_policy_choice(body.policy)
    services.policies.make_policy_json(policy)
    project = services.queue.make_project(body.name, policy, caller.name)
    services.scopes.register_project(caller, REVIEW + body.name)
    services.accounts.record_action(caller, "project made")
    return project


@router.get("/projects/{name}", summary="A project")
def get_project(name: Name, caller: ProjectReviewer, services: AnyServices) -> wire.ProjectOut:
    """One project, and how many of its documents are in each state."""
    return services.queue.list_projects(name)[0]


@router.delete("/projects/{name}", status_code=204, summary="Remove a project")
def remove_project(name: Name, caller: ProjectAdjudicator, services: AnyServices) -> None:
    """For its owner: remove a project with its documents, their readings, and its terms."""
    services.scopes.check_may_open(caller, REVIEW + name, is_owner=True)
    removed = services.queue.remove_project(name)
    services.scopes.remove_scope(REVIEW + name)
    services.accounts.record_action(caller, "project removed", {"documents": removed})


@router.post("/projects/{name}/documents", summary="Put documents into the queue")
async def add_documents(
    name: Name, body: wire.NewDocuments, caller: ProjectAdjudicator, services: AnyServices
) -> wire.Added:
    """Documents are anonymised under the project's policy and read a second time for what may have been missed, which
    gives the risk that they are ordered by. Documents that are there already stay, so a request that broke off can be
    sent again."""
    await run_in_threadpool(require_evaluate_extra)
    new_task = await run_in_threadpool(_make_project_task, name, services)
    most = services.settings.max_characters
    documents = [make_document(document, document.id) for document in body.documents]
    for index, document in enumerate(documents):
        if len(document.text) > most:
            raise RequestError(f"documents[{index}]: at most {most} characters are treated here", 413, "TooLarge")
    if len({document.id for document in documents}) < len(documents):
        raise RequestError("documents: two have the same id", 409, "Taken")
    new = await run_in_threadpool(services.queue.select_new_documents, name, documents)

    async def add_document(document: Document) -> None:
        result = await services.kernel.run(TextTask.anonymize, replace(new_task, document=document))
        risk = await services.kernel.run(_assess_risk, document, result.text, result.plan.edits, new_task.source)
        services.metrics.count_processed_text(len(document.text), dict(result.report.labels))
        labels = await run_in_threadpool(list_wanted_tagger_labels, new_task.policy)
        item = ReviewDocument(document.id, document, result.text, result.plan.edits, tuple(result.spans), labels, risk)
        await run_in_threadpool(services.queue.add_document_if_new, name, item)

    await run_concurrently(add_document, new)
    counts = {"added": len(new), "known": len(documents) - len(new)}
    await run_in_threadpool(services.accounts.record_action, caller, "documents to review", counts)
    return wire.Added(**counts)


@router.get("/projects/{name}/documents", summary="The queue")
def list_documents(
    name: Name,
    caller: ProjectReviewer,
    services: AnyServices,
    state: wire.State | None = None,
    order: wire.Order = "risk",
    offset: Offset = 0,
    limit: Limit = 100,
) -> wire.DocumentLines:
    """Documents by `risk`, by what the tagger may learn from them (`gain`), or as they were `added`. Other people's
    marks are not shown, only how many reviewers have begun and are done."""
    lines, total = services.queue.list_documents(name, caller.id, state=state, order=order, offset=offset, limit=limit)
    return wire.DocumentLines(documents=lines, total=total)


@router.get("/projects/{name}/documents/{id}", summary="A document to review")
def get_document(name: Name, id: Id, caller: ProjectReviewer, services: AnyServices) -> wire.DocumentOut:
    """The original, the anonymised text, and the caller's own reading. Reviewers are blind to each other until both are
    done. `proposals` are stretches that a second reading would look at; many of them are no mistakes."""
    item, seat, seats = services.queue.get_document_and_readings(name, id, caller)
    spans, _ = _make_project_task(name, services, item.document).number_entities(item.spans)
    verdict = seats.get(VERDICT_SEAT)
    values = {
        **to_plain(item.risk),
        "id": item.id,
        "state": item.state,
        "text": item.document.text,
        "turns": [(t.speaker[0] if t.speaker else t.start, t.end) for t in item.document.turns],
        "anonymised": item.anonymised,
        "spans": spans,
        "edits": [wire.EditOut.from_object(edit) for edit in item.edits],
        "risk": item.risk.expected if item.risk else 0.0,
        "version": seat.version,
        "done": seat.done,
        **seat.reading.to_dict(),
        "others": [_describe_review(seats[n]) for n in SEATS if n in seats],
        "settled": _describe_review(verdict) if verdict else None,
    }
    return wire.DocumentOut.from_values(values)


@router.delete("/projects/{name}/documents/{id}", status_code=204, summary="Remove a document")
def remove_document(name: Name, id: Id, caller: ProjectAdjudicator, services: AnyServices) -> None:
    """Remove a document with its readings. Terms that came of it stay on their lists."""
    services.queue.remove_document(name, id)
    services.accounts.record_action(caller, "document removed", {"documents": 1})


@router.put("/projects/{name}/documents/{id}/marks", summary="Save one's review")
async def save_review(
    name: Name, id: Id, body: wire.ReadingIn, caller: ProjectReviewer, services: AnyServices
) -> wire.Saved:
    """The caller's whole reading of the document; it replaces the one before. If another `version` is stored than the
    one that is sent, nothing is changed (409). The first two who save are the document's reviewers. Terms that `list`
    names are in force at once."""
    return await _save_reading(name, id, body, caller, services, is_verdict=False)


@router.put("/projects/{name}/documents/{id}/settled", summary="Decide")
async def save_verdict(
    name: Name, id: Id, body: wire.ReadingIn, caller: ProjectAdjudicator, services: AnyServices
) -> wire.Saved:
    """The reading that holds, once both reviewers are done. With `done` the document is settled; `version` is that of
    the decision so far, 0 at first."""
    return await _save_reading(name, id, body, caller, services, is_verdict=True)


@router.get("/projects/{name}/agreement", summary="Agreement and residual risk")
def get_agreement(name: Name, caller: ProjectReviewer, services: AnyServices) -> wire.Agreed:
    """How far reviewers agree where both are done, with 95 % intervals over documents, and the residual risk of the
    settled documents. Two agree easily on findings, which both see: `marks` compares only what was missed."""
    return wire.Agreed.model_validate(measure_reviews(services.queue.list_documents_and_readings(name)).to_dict())


class JsonLines(Response):
    """JSON values, one a line."""

    media_type = "application/x-ndjson"


@router.get("/projects/{name}/export", response_class=JsonLines, summary="Training text")
def export_reviews(name: Name, caller: ProjectAdjudicator, services: AnyServices) -> JsonLines:
    """The settled documents as JSON lines for `allonym train ner`. They hold the originals; the audit
    log shows who took them."""
    lines = list(format_settled_training_lines(name, services.queue.list_documents_and_readings(name, "done")))
    services.accounts.record_action(caller, "reviews exported", {"documents": len(lines)})
    headers = {"content-disposition": 'attachment; filename="reviews.jsonl"', "cache-control": "no-store"}
    return JsonLines("".join(lines), headers=headers)


@router.get("/lists", summary="Terms that are always or never found")
def list_terms(
    caller: Reviewer,
    services: AnyServices,
    project: Annotated[str | None, Query(max_length=64)] = None,
    kind: wire.TermKind | None = None,
    offset: Offset = 0,
    limit: Limit = 100,
) -> wire.Terms:
    """The terms for all projects and those of the caller's projects, or those of one project, the newest first."""
    if project is not None:
        services.scopes.check_may_open(caller, REVIEW + project)
    terms = [term for term in services.lists.list_terms(project) if kind in (None, term.kind)][::-1]
    names = {term.project for term in terms}
    open_names = {name for name in names if name is None or services.scopes.find_role(caller, REVIEW + name)}
    matches = [term for term in terms if term.project in open_names]
    return wire.Terms(entries=matches[offset : offset + limit], total=len(matches))


@router.post("/lists", status_code=201, summary="Always or never find a term")
def add_term(body: wire.NewTerm, caller: Reviewer, services: AnyServices) -> wire.TermOut:
    """In force at once. A term for all projects needs the permission `adjudicate`. The last decision on a term
    holds."""
    _check_term_permission(caller, body.project, services)
    term = services.lists.add_term(body.kind, body.label, body.term, caller.name, body.project)
    services.accounts.record_action(caller, f"term added: {body.kind}", {"all": int(body.project is None)})
    return term


@router.delete("/lists/{id}", status_code=204, summary="Remove a term")
def remove_term(id: Number, caller: Reviewer, services: AnyServices) -> None:
    """In force at once."""
    term = services.lists.get_term(id)
    _check_term_permission(caller, term.project, services)
    services.lists.remove_term(id)
    services.accounts.record_action(caller, f"term removed: {term.kind}", {"all": int(term.project is None)})


async def _save_reading(
    name: str, id: str, body: wire.ReadingIn, caller: Caller, services: Services, *, is_verdict: bool
) -> wire.Saved:
    """Save a review or a verdict, and return what the document becomes under it."""
    if "all" in {*(m.list for m in body.marks), *(d.list for d in body.decisions)}:
        _check_term_permission(caller, None, services)

    def read(item: ReviewDocument) -> tuple[Reading, list[ListedTerm]]:
        text = item.document.text
        marks = [LeakMark(m.start, m.end, m.kind, m.label) for m in body.marks]
        decisions = [FindingDecision(**d.model_dump(exclude={"list"})) for d in body.decisions]
        reading = make_checked_reading(marks, decisions, text, item.spans, body.opened)
        return reading, _collect_listed_terms(body, text, name)

    def save() -> tuple[UserReading, ReviewDocument, TextTask]:
        seat, item = services.queue.save_reading(name, id, caller, body.version, body.done, read, is_verdict=is_verdict)
        if is_verdict and body.done:
            services.accounts.record_action(caller, "document settled", {"documents": 1})
        holding = apply_reading(seat.reading, item.document.text, item.spans)
        return seat, item, replace(_make_project_task(name, services, item.document), spans=holding)

    seat, item, task = await run_in_threadpool(save)
    result, spans = await services.kernel.run(TextTask.anonymize_and_number_entities, task)
    score = await services.kernel.run(score_residual_risk, seat.reading, item.id, item.document.text)
    values = {
        "version": seat.version,
        "done": seat.done,
        "state": item.state,
        "score": score,
        "anonymised": result.text,
        "edits": [wire.EditOut.from_object(edit) for edit in result.plan.edits],
        "spans": spans,
    }
    return wire.Saved.from_values(values)


def _assess_risk(document: Document, anonymised: str, edits: Sequence[Edit], policy_json: str) -> Risk:
    """Assess the risk of a document in a worker, to which a policy goes as JSON."""
    return assess_risk(document, anonymised, edits, load_policy(policy_json))


def _collect_listed_terms(body: wire.ReadingIn, text: str, project: str) -> list[ListedTerm]:
    """Return the terms that go on lists. A rejected one gets the widest label of the finding, so that it never returns
    under another."""
    terms: list[ListedTerm] = []
    entries: list[wire.MarkIO | wire.DecisionIO] = [*body.marks, *body.decisions]
    for entry in entries:
        if not entry.list:
            continue
        kind, label, start, end = DICTIONARY, entry.label, entry.start, entry.end
        if isinstance(entry, wire.DecisionIO):
            if entry.verdict == "reject":
                kind, label = EXCLUSION, TAXONOMY.get_family(label)
            else:
                label = entry.new_label or label
                start = start if entry.new_start is None else entry.new_start
                end = end if entry.new_end is None else entry.new_end
        terms.append((kind, label, text[start:end], project if entry.list == "project" else None))
    return terms


def _check_term_permission(caller: Caller, project: str | None, services: Services) -> None:
    """Check that a caller may change the terms of a project; None: those for all projects."""
    if project is not None:
        services.scopes.check_may_open(caller, REVIEW + project)
    elif "adjudicate" not in caller.permissions:
        raise RequestError("a term for all projects needs the permission 'adjudicate'", 403, "NotAllowed")


def _make_project_task(project: str, services: Services, document: Document = NO_TEXT) -> TextTask:
    """Return the task of processing a document as its project says."""
    source = services.policies.make_policy_json(services.queue.list_projects(project)[0].policy, project)
    return TextTask(document, source, services.vault.operator_key, REVIEW + project)


def _describe_review(seat: UserReading) -> wire.ReadingOut:
    return wire.ReadingOut(reviewer=seat.reader, version=seat.version, done=seat.done, **seat.reading.to_dict())
