"""What the documents that two reviewers have read promise about all documents of a project.

Only a random draw proves something about the rest, so documents count from the first of the random order on, without a
gap: the riskiest, which reviewers usually read first, would not do. Nor would documents of which a reviewer has not
seen every word.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from allonym.errors import UsageError
from allonym.project.agreement import count_unseen_words
from allonym.project.readings import Reading
from allonym.project.seats import ReviewDocument, describe_reading_spans, get_settled_reading

if TYPE_CHECKING:
    from allonym.evaluate.promises import Promise
    from allonym.project.project import Project


def make_promise(
    project: Project,
    limit: float = 0.01,
    *,
    confidence: float = 0.95,
    unit: str = "entities",
    advance: Callable[[int, int], None] | None = None,
) -> Promise:
    """Return what may be promised about all documents of a project.

    The corrections of the project are left out, since they came from reading.

    Args:
        project: with documents of its random draw read.
        limit, confidence, unit: of :func:`allonym.evaluate.promises.make_promise`.
        advance: called with the number of documents done, and of all.

    Raises:
        UsageError: nothing was read, or a value is out of range.
        MissingExtra: the extra ``evaluate`` is not installed.
    """
    from allonym.evaluate.promises import make_promise as promise_limit
    from allonym.evaluate.promises import measure_losses

    read = list_read_documents(project)
    if not read:
        raise UsageError(
            "no document of the random draw was read wholly by two reviewers; review --export SHEET --drawn N writes a "
            "sheet of the first N, and both reviewers have to fill in every row"
        )
    documents = [[(item.document, describe_reading_spans(item, reading))] for item, reading in read]
    losses = measure_losses(documents, project.base_policy, advance=advance)
    population = sum(file.documents for file in project.files)
    return promise_limit(losses, limit, confidence=confidence, population=population, unit=unit)


def list_read_documents(project: Project) -> list[tuple[ReviewDocument, Reading]]:
    """Return the documents of the random draw up to the first that is not settled, or was not wholly seen by two."""
    out = []
    for item, seats in project.list_documents(order="drawn"):
        reading = get_settled_reading(item, seats)
        if reading is None or count_unseen_words(item.document.text, seats):
            break
        out.append((item, reading))
    return out
