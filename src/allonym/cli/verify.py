"""``allonym verify``: read a result back and look for text that should be gone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from allonym.cli.options import KEY_FILE, PolicyChoice, declare_plans, read_key
from allonym.cli.signatures import take_options
from allonym.cli.terminal import print_note, print_table, report_failure
from allonym.errors import DataError, MissingExtra, PlanMismatch, UsageError
from allonym.settings import REQUIRED, declare_setting

if TYPE_CHECKING:
    from allonym.document import Document
    from allonym.plan import Edit, Plan
    from allonym.policy import Policy


@click.command(short_help="Check a PDF or office file for covered text.")
@take_options
def verify(
    safe: Path = declare_setting(REQUIRED, "file to check", noun="file", option="<SAFE>"),
    *,
    original: Path | None = declare_setting(
        None, "the original of SAFE; the policy is applied to it again", noun="file", option="SOURCE"
    ),
    plans: Path | None = declare_plans("file"),
    choice: PolicyChoice,
    key_file: Path | None = KEY_FILE,
) -> None:
    """Check that SAFE, a PDF, picture, DOCX or XLSX, no longer contains covered text, using independent readers.

    Covered text is what the plan of SAFE replaces, or else what the policy detects in the original. If the original
    also contains a covered text as an ordinary word, it may occur as often in SAFE; without --original it may not, and
    the plans must contain the originals. No replacement may keep a word of the name of a person, an organisation or a
    mailbox.

    The exit code is 1 if covered text is left; labels and places are shown, but not the text.

    \b
    Examples:
      allonym verify letter-safe.pdf --original letter.pdf
      allonym verify letter-safe.pdf --original letter.pdf --plans plans.jsonl
      allonym verify letter-safe.pdf --plans plans.jsonl
    """
    from allonym.files import format_of
    from allonym.files.ocr import find_ocr_reader
    from allonym.files.verify import VIEWS, find_leftovers_in_file

    name = format_of(safe.name)[0].name
    if name not in VIEWS:
        raise UsageError(f"verify reads {', '.join(VIEWS)}; {safe} is {name}, whose text can be searched as it is")
    if original is None and plans is None:
        raise click.UsageError("--original or --plans is required, to know the covered text")
    policy = choice.load_policy()
    document = None if original is None else _read_document(original, policy)
    plan = None if plans is None else _read_plan(plans, {p.name for p in (safe, original) if p is not None})
    edits, expected = _find_edits(document, plan, policy, read_key(key_file))
    covered = list(dict.fromkeys((e.label, original) for e, original in edits))
    texts = [text for _, text in covered]
    if name in ("pdf", "png", "jpg") and find_ocr_reader(policy.ocr) is not None:
        name = f"{name}+{policy.ocr}"
    elif name in ("png", "jpg"):
        raise MissingExtra("A picture", "ocr")
    leftovers = find_leftovers_in_file(safe.read_bytes(), name, texts, expected)
    kinds = Counter((covered[leftover.index][0], place) for leftover in leftovers for place in leftover.places)
    if kinds:
        print_table(["label", "where", "texts"], [(k, p, n) for (k, p), n in sorted(kinds.items())], right=(2,))
        raise report_failure(f"{safe} still contains {len(leftovers)} of {len(texts)} covered texts")
    labels = Counter(_list_labels_of_kept_names(edits, policy))
    if labels:
        print_table(["label", "where", "texts"], [(k, "replacement", n) for k, n in sorted(labels.items())], right=(2,))
        raise report_failure(f"{labels.total()} of {len(texts)} replacements keep a word of the name that they cover")
    print_note(f"{safe} contains none of {len(texts)} covered texts", label="verified:")


def _read_document(path: Path, policy: Policy) -> Document:
    """Read a file that is one document, as a run with this policy does."""
    from allonym.files import format_of
    from allonym.files.record import Chunk, Draft, Job

    parsed = format_of(path.name)[0].parse(Chunk(path.read_bytes()), Job(policy))
    drafts = [piece.document for piece in parsed.pieces if isinstance(piece, Draft)]
    if len(drafts) != 1:
        raise DataError(f"{path} must be one document, got {len(drafts)}")
    return drafts[0]


def _read_plan(path: Path, names: set[str]) -> Plan:
    """Read the plan of a document with one of these names, or the only plan of the file."""
    from allonym.plan import read_plan_rows

    try:
        rows = read_plan_rows(path.read_text(encoding="utf-8"), path)
    except UnicodeDecodeError:
        raise PlanMismatch(f"{path} is not a file of plans: it is not UTF-8") from None
    if len(rows) > 1:
        rows = [(r, plan) for r, plan in rows if {Path(str(r.get(k, ""))).name for k in ("file", "id")} & names]
    if len(rows) != 1:
        raise PlanMismatch(f"{path} contains {len(rows)} plans of this file; one is required")
    return rows[0][1]


def _find_edits(
    document: Document | None, plan: Plan | None, policy: Policy, key: bytes | str | None
) -> tuple[list[tuple[Edit, str]], str]:
    """Return the edits that cover a text, each with this text, and the text that may occur in the result."""
    from allonym.pipeline import anonymize
    from allonym.plan import apply

    if document is not None:
        plan = anonymize(document, policy, key=key).plan if plan is None else plan
        expected = apply(document, plan)
        return [(e, document.text[e.start : e.end]) for e in plan.edits if e.start < e.end], expected
    assert plan is not None
    if any(e.original is None for e in plan.edits):
        raise PlanMismatch("the plan holds no originals: also give --original, or write the plan with --originals")
    return [(e, e.original) for e in plan.edits if e.original], "\n".join(e.replacement for e in plan.edits)


def _list_labels_of_kept_names(edits: Iterable[tuple[Edit, str]], policy: Policy) -> list[str]:
    """Return the labels of the names of which a replacement keeps a word; each pair of texts counts once."""
    from allonym.kb import KnowledgeBase
    from allonym.replace.kept import find_kept_names

    kb = KnowledgeBase.open(None)
    family = policy.taxonomy.get_family
    replaced = dict.fromkeys((e.label, old, e.replacement) for e, old in edits if not e.operator.startswith("keep"))
    return [label for label, old, new in replaced if find_kept_names(old, new, label, family(label), kb)]
