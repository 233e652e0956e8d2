"""A document as HTML: its findings, or the edits of a plan. It is made only on request.

No other object of the package shows text in a notebook. The HTML holds its own style, no script, and asks nobody for
anything; everything that comes from the document is escaped. Labels of a family share a colour; the workbench has the
same families and colours (``server/static/js/families.js``, ``server/static/css/base.css``), and a test compares them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import pairwise
from pathlib import Path

from allonym.detection.languages import describe_unread
from allonym.detection.selection import count_unread_characters
from allonym.detection.turns import add_turns
from allonym.document import Document, Interval, Span
from allonym.errors import UsageError, hide_foreign_errors
from allonym.labels import TAXONOMY, Taxonomy
from allonym.partfile import write_file
from allonym.pipeline import Anonymized, AnyPolicy, detect
from allonym.plan import Edit, Plan, apply
from allonym.policy import Policy
from allonym.report.html_page import read_resource, write_content_security_policy
from allonym.resolve import resolve
from allonym.restoration.edits import ARTICLE, adapts_surroundings
from allonym.text.words import count_nouns

_STYLE = "templates/display.css"
SENSITIVE = "This page holds the original text. Keep it as safe as the text itself."
_LINE = re.compile(r"[^\n]*(?:\n(?:[ \t\r]*\n)*)?")
# Control characters have no place in HTML; they show as their pictures.
_SEEN = {i: 0x2400 + i for i in range(32) if chr(i) not in "\t\n\r"} | {0x7F: 0x2421}
_SEEN |= dict.fromkeys(range(0xD800, 0xE000), 0xFFFD)


_Numbers = Mapping[tuple[str, int], int]
"""Label and entity to the entity's number among those of its label."""


@dataclass(frozen=True, slots=True)
class _Mark:
    """A marked span; ``label`` follows the words, ``hint`` shows when it is pointed at."""

    start: int
    end: int
    family: str
    label: str
    hint: str


@dataclass(frozen=True, slots=True, repr=False)
class Display:
    """The result of :func:`display`. Its ``repr`` shows no text; a notebook shows the HTML, which holds the text.

    Attributes:
        document: what is shown.
        spans: what was found in it, sorted; empty where a plan is shown.
        plan: what is put where; None where findings are shown.
        unread: characters of the passages in which names were not looked for, by language.
    """

    document: Document
    spans: tuple[Span, ...]
    plan: Plan | None
    taxonomy: Taxonomy
    unread: Mapping[str, int] = field(default_factory=dict)

    def __repr__(self) -> str:
        what = f"{len(self.spans)} findings" if self.plan is None else f"{len(self.plan.edits)} edits"
        return f"Display({len(self.document.text)} characters, {what})"

    def _repr_html_(self) -> str:
        return f"<style>{read_resource('templates/display.css')}</style>\n{self._draw_view()}"

    @property
    def html(self) -> str:
        """A whole page that stands alone: it loads nothing, follows the system's light or dark, and can be printed."""
        return draw_page([self])

    def save(self, path: str | Path) -> None:
        """Write :attr:`html` into a file that only its owner may read; it replaces what was there.

        Raises:
            UsageError: the name does not end in ``.html`` or ``.htm``, or the file cannot be written.
        """
        save_page([self], path)

    @property
    def title(self) -> str:
        """What is shown, and the id of the document if it has one."""
        return f"{'Findings' if self.plan is None else 'Before and after'}: {self.document.id}".rstrip(": ")

    def _draw_view(self) -> str:
        text, plan, taxonomy = self.document.text, self.plan, self.taxonomy
        rows = _split_rows(self.document)
        speakers = _find_speakers(self.document, rows)
        kind = " turns" if self.document.turns else ""
        if plan is None:
            overlap = any(a.overlaps(b) for a, b in pairwise(self.spans))
            shown = resolve(self.spans, taxonomy) if overlap else self.spans
            marks = [_make_finding_mark(span, taxonomy) for span in shown]
            body = [
                f'<div class="row"><div class="cell" dir="auto">{cell}</div></div>'
                for cell in _draw_marked_rows(text, rows, marks, speakers)
            ]
            labels, choice = [s.label for s in self.spans], ""
            summary = count_nouns(len(self.spans), "finding")
            cells = [(f"{s.start}–{s.end}", s.label, f"{s.score:.2f}", s.source) for s in self.spans]
            table = _draw_table("All findings", ("Where", "Label", "Score", "Found by"), cells)
        else:
            numbers = _number_entities(plan.edits)
            marks = [_make_edit_mark(edit, taxonomy, numbers) for edit in plan.edits if edit.end > edit.start]
            body = [_HEADS]
            replaced = _draw_replaced_rows(text, rows, plan.edits, speakers, taxonomy, numbers)
            for cell, after in zip(_draw_marked_rows(text, rows, marks, speakers), replaced, strict=True):
                body.append(
                    f'<div class="row"><div class="cell before" dir="auto">{cell}</div>'
                    f'<div class="cell after" dir="auto">{after}</div></div>'
                )
            real = [edit for edit in plan.edits if not adapts_surroundings(edit)]
            labels, choice, kind = [edit.label for edit in real], _CHOICE, " pair" + kind
            named = len({edit.entity for edit in real if edit.entity})
            summary = f"{count_nouns(len(real), 'replacement')} for {count_nouns(named, 'entity', 'entities')}"
            cells = [(f"{e.start}–{e.end}", e.label, str(e.entity or ""), e.operator) for e in plan.edits]
            table = _draw_table("All edits", ("Where", "Label", "Entity", "Operator"), cells)
        summary += f" in {len(text):,} characters"
        warning = f'<p class="care">{escape(describe_unread(self.unread, len(text)))}</p>\n' if self.unread else ""
        return (
            f'<section class="allonym" aria-label="{escape(summary)}">\n'
            f'<div class="top"><p class="sum">{summary}</p>{choice}</div>\n{warning}'
            f'{_draw_legend(labels, taxonomy)}<div class="lines{kind}" lang="und">\n'
            + "\n".join(body)
            + f"\n</div>\n{table}</section>"
        )


def display(
    document: str | Document,
    spans_or_plan: Iterable[Span] | Plan | Anonymized | None = None,
    *,
    policy: AnyPolicy = "default",
) -> Display:
    """Show a document: its findings, or with a plan the text before and after.

    In a notebook the result shows itself; :attr:`Display.html` and :meth:`Display.save` make a page that stands alone.
    Both hold the text, and a notebook that is saved keeps them. Its ``repr`` holds none.

    Args:
        document: a text or a :class:`Document`; a conversation shows turn by turn.
        spans_or_plan: what was found; or a plan, or what :func:`anonymize` made, to see before and after side by
            side. By default what :func:`detect` finds.
        policy: what :func:`detect` goes by; its labels, too, where they are not those of the taxonomy.

    Raises:
        PolicyError, UnknownNameError: the policy is not valid or not known.
        PlanMismatch: the plan was made for another text.
        UsageError: a span reaches past the end of the text, or neither spans nor a plan were given.
    """
    document = add_turns(document if isinstance(document, Document) else Document("", document))
    loaded = Policy.load(policy)
    if spans_or_plan is None:
        unread = count_unread_characters(document, loaded)
        return Display(document, detect(document, loaded), None, loaded.taxonomy, unread)
    plan = spans_or_plan.plan if isinstance(spans_or_plan, Anonymized) else spans_or_plan
    if isinstance(plan, Plan):
        apply(document, plan)  # refuses another text
        unread = dict(spans_or_plan.report.unread) if isinstance(spans_or_plan, Anonymized) else {}
        return Display(document, (), plan, loaded.taxonomy, unread)
    try:
        spans = tuple(sorted(plan))
    except TypeError:
        spans = ("",)  # type: ignore[assignment]
    if not all(isinstance(span, Span) for span in spans):
        raise UsageError("display needs spans, a plan, or what anonymize returned")
    if spans and max(span.end for span in spans) > len(document.text):
        raise UsageError(f"a span ends at {max(s.end for s in spans)}, and the text at {len(document.text)}")
    return Display(document, spans, None, loaded.taxonomy)


def draw_page(
    views: Sequence[Display], title: str = "", *, note: str = SENSITIVE, facts: Sequence[tuple[str, str]] = ()
) -> str:
    """Draw one page of several documents, as :attr:`Display.html` is of one.

    Args:
        views: the documents.
        title: by default the first one's.
        note: what stands below the title.
        facts: names and values that stand before the documents; a value may have several lines.
    """
    style = read_resource(_STYLE)
    title = _escape_text(title or next((view.title for view in views), "Findings"))
    parts = [
        f"<h2>{_escape_text(view.title)}</h2>\n{view._draw_view()}" if len(views) > 1 else view._draw_view()
        for view in views
    ]
    rows = "".join(f"<dt>{_escape_text(name)}</dt><dd>{_escape_text(value)}</dd>" for name, value in facts)
    facts_list = f'<dl class="facts">{rows}</dl>\n' if rows else ""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(write_content_security_policy(style))}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n<meta name="referrer" content="no-referrer">\n'
        f'<meta name="robots" content="noindex">\n<title>{title}</title>\n<style>{style}</style>\n</head>\n'
        f'<body class="allonym-page">\n<main>\n<h1>{title}</h1>\n<p class="care">{_escape_text(note)}</p>\n{facts_list}'
        + "\n".join(parts)
        + f"\n<footer>{_write_footer()}</footer>\n</main>\n</body>\n</html>\n"
    )


def save_page(views: Sequence[Display], path: str | Path, title: str = "") -> None:
    """Write :func:`draw_page` into a file that only its owner may read; it replaces what was there.

    Raises:
        UsageError: the name does not end in ``.html`` or ``.htm``, or the file cannot be written.
    """
    path = Path(path)
    check_page_name(path)
    if not path.parent.is_dir():
        raise UsageError(f"cannot write page {path}: there is no folder {path.parent}")
    with hide_foreign_errors(f"cannot write page {path}", OSError, error=UsageError):
        write_file(path, draw_page(views, title).encode("utf-8"), private=True)


def check_page_name(path: Path) -> None:
    """Raise an error unless a path ends like a page."""
    if path.suffix.lower() not in (".html", ".htm"):
        raise UsageError(f"page {path.name}: must end in .html, got {path.suffix or 'no ending'}")


_CHOICE = (
    '<form method="dialog" aria-label="What to show">'  # a dialog's form outside of one is never sent
    + "".join(
        f'<label><input type="radio" name="show" value="{value}"{" checked" * (value == "both")}>{name}</label>'
        for value, name in (("both", "Side by side"), ("before", "Before"), ("after", "After"))
    )
    + "</form>"
)

_HEADS = '<div class="row heads"><div class="cell before">Before</div><div class="cell after">After</div></div>'


def _split_rows(document: Document) -> list[Interval]:
    """Split the text into rows: before each turn, or after each line."""
    text = document.text
    if document.turns:
        cuts = sorted({0, *(t.speaker[0] if t.speaker else t.start for t in document.turns), len(text)})
        return list(pairwise(cuts)) or [(0, 0)]
    return [m.span() for m in _LINE.finditer(text) if m.end() > m.start()] or [(0, 0)]


def _find_speakers(document: Document, rows: list[Interval]) -> list[Interval]:
    """Return the span of each row's speaker; (0, 0) for none."""
    speaker_at = {turn.speaker[0]: turn.speaker for turn in document.turns if turn.speaker}
    return [speaker_at.get(start, (0, 0)) for start, _ in rows]


def _draw_marked_rows(text: str, rows: list[Interval], marks: list[_Mark], speakers: list[Interval]) -> Iterator[str]:
    """Draw the rows with the marks in them, which are sorted and disjoint."""
    i = 0
    for (start, end), speaker in zip(rows, speakers, strict=True):
        pieces, position = [], start
        while position < end and i < len(marks) and marks[i].start < end:
            mark = marks[i]
            a, b = max(mark.start, start), min(mark.end, end)
            pieces += [_draw_plain(text, position, a, speaker), _draw_marked(text[a:b], mark, is_whole=mark.end <= end)]
            position = b
            if mark.end > end:
                break
            i += 1
        pieces.append(_draw_plain(text, position, end, speaker))
        yield "".join(pieces)


def _draw_replaced_rows(
    text: str,
    rows: list[Interval],
    edits: Sequence[Edit],
    speakers: list[Interval],
    taxonomy: Taxonomy,
    numbers: _Numbers,
) -> Iterator[str]:
    i, position = 0, 0  # the next edit, and how far the text is written or gone
    for number, (start, end) in enumerate(rows):
        pieces = []
        position = max(position, start)
        last = number == len(rows) - 1
        while i < len(edits) and (edits[i].start < end or last):
            edit = edits[i]
            pieces += [
                _draw_plain(text, position, edit.start, speakers[number]),
                _draw_replacement(edit, taxonomy, numbers),
            ]
            position = edit.end
            i += 1
        pieces.append(_draw_plain(text, position, end, speakers[number]) if position < end else "")
        yield "".join(pieces)


def _draw_plain(text: str, start: int, end: int, speaker: Interval) -> str:
    a, b = max(start, speaker[0]), min(end, speaker[1])
    if a >= b:
        return _escape_text(text[start:end])
    return f'{_escape_text(text[start:a])}<span class="who">{_escape_text(text[a:b])}</span>{_escape_text(text[b:end])}'


def _draw_marked(words: str, mark: _Mark, *, is_whole: bool) -> str:
    label = f"<small>{_escape_text(mark.label)}</small>" if is_whole and mark.label else ""
    return f'<mark class="f-{mark.family}" title="{_escape_text(mark.hint)}">{_escape_text(words)}{label}</mark>'


def _make_finding_mark(span: Span, taxonomy: Taxonomy) -> _Mark:
    name = format_label(span.label)
    hint = f"{name}, score {span.score:.2f}" + (f", {span.source}" if span.source else "")
    return _Mark(span.start, span.end, find_family(span.label, taxonomy), name, hint)


def _number_entities(edits: Sequence[Edit]) -> _Numbers:
    """Number the entities of each label by their first mention, as tags do."""
    numbers: dict[tuple[str, int], int] = {}
    counts: Counter[str] = Counter()
    for edit in edits:
        if edit.entity and (edit.label, edit.entity) not in numbers:
            counts[edit.label] += 1
            numbers[edit.label, edit.entity] = counts[edit.label]
    return numbers


def _make_edit_mark(edit: Edit, taxonomy: Taxonomy, numbers: _Numbers) -> _Mark:
    if adapts_surroundings(edit):
        is_article = edit.operator.startswith(ARTICLE)
        hint = "article that follows the next word" if is_article else "quotes that the syntax needs"
        return _Mark(edit.start, edit.end, "other", "", hint)
    label = f"{format_label(edit.label)} {numbers.get((edit.label, edit.entity), '')}".rstrip()
    return _Mark(edit.start, edit.end, find_family(edit.label, taxonomy), label, f"{label}, {edit.operator}")


def _draw_replacement(edit: Edit, taxonomy: Taxonomy, numbers: _Numbers) -> str:
    mark = _make_edit_mark(edit, taxonomy, numbers)
    number = f"<small>{numbers[edit.label, edit.entity]}</small>" if edit.entity and mark.label else ""
    gone = "" if edit.replacement.strip() else " gone"
    words = _escape_text(edit.replacement) or "∅" * bool(gone)
    return f'<mark class="f-{mark.family}{gone}" title="{_escape_text(mark.hint)}">{words}{number}</mark>'


def _draw_legend(labels: Iterable[str], taxonomy: Taxonomy) -> str:
    counted = Counter(labels)
    if not counted:
        return ""
    order = sorted(counted, key=lambda x: (FAMILIES.index(find_family(x, taxonomy)), -counted[x], x))
    items = "".join(
        f'<li class="f-{find_family(label, taxonomy)}">{_escape_text(format_label(label))} '
        f"<b>{counted[label]:,}</b></li>"
        for label in order
    )
    return f'<ul class="legend" aria-label="Kinds">{items}</ul>\n'


def _draw_table(name: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    if not rows:
        return ""
    heads = "".join(f'<th scope="col">{column}</th>' for column in head)
    body = "\n".join("<tr>" + "".join(f"<td>{_escape_text(c)}</td>" for c in row) + "</tr>" for row in rows)
    return (
        f'<details><summary>{name}</summary>\n<div class="scroll" tabindex="0" role="region" aria-label="{name}">'
        f"<table>\n<thead><tr>{heads}</tr></thead>\n<tbody>\n{body}\n</tbody></table></div></details>\n"
    )


def _escape_text(text: str) -> str:
    return escape(text.translate(_SEEN))


def _write_footer() -> str:
    from allonym import __version__

    return f"Made by allonym {__version__}. This file asks no other computer for anything."


ROOTS = {
    "person": ("PERSON", "PRONOUN", "SPELLED_WORD"),
    "organization": ("ORGANIZATION", "PRODUCT", "TRADE_UNION"),
    "place": ("LOCATION",),
    "time": ("DATE_TIME",),
    "contact": ("EMAIL_ADDRESS", "PHONE_NUMBER", "ONLINE_ID"),
    "official": ("GOVERNMENT_ID", "GENERIC_ID", "DEVICE_ID", "VEHICLE_ID"),
    "finance": ("FINANCIAL_ID", "NUMERIC"),
    "trait": (
        *("ORIGIN", "GENDER", "SEXUAL_ORIENTATION", "FAMILY_RELATION", "MARITAL_STATUS"),
        *("AGE", "OCCUPATION", "IMMIGRATION_STATUS", "LANGUAGE"),
    ),
    "health": ("MEDICAL_TERM",),
    "secret": ("SECRET",),
    "other": (),
}
"""Family to the labels that it has, with all below them; ``other`` has the rest."""

FAMILIES = tuple(ROOTS)
_FAMILY_OF = {label: name for name, labels in ROOTS.items() for label in labels}
_SHORT = frozenset(
    "ID IP URL IBAN SSN NINO VIN UUID US UK DE API MAC IMEI IMSI PIN CVV VAT NHS AWS SWIFT HTTP ABA".split()
)


def find_family(label: str, taxonomy: Taxonomy = TAXONOMY) -> str:
    """Return the family of a label; ``other`` for an unknown one.

    >>> find_family("US_SSN")
    'official'
    """
    return next((_FAMILY_OF[name] for name in taxonomy.lineage(label) if name in _FAMILY_OF), "other")


def format_label(label: str) -> str:
    """Return the name of a label for people.

    >>> format_label("EMAIL_ADDRESS"), format_label("US_SSN")
    ('Email address', 'US SSN')
    """
    words = label.split("_")
    parts = [w if w in _SHORT or (i == 0 and len(w) == 2) else w.lower() for i, w in enumerate(words)]
    joined = " ".join(parts)
    return joined[:1].upper() + joined[1:]
