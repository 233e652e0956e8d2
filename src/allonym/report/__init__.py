"""Reports: pages of blocks, as one self-contained HTML file, as Markdown, or as JSON.

::

    from allonym import report

    page = report.swap_page(releases.to_dict())
    report.write(page, "report.html")
    report.vega(releases)["plane"]  # in a notebook
"""

from __future__ import annotations

from pathlib import Path

from allonym.errors import UsageError, hide_foreign_errors
from allonym.partfile import write_file
from allonym.report.evaluate.page import compare_page, evaluation_page
from allonym.report.html_page import html
from allonym.report.markdown_page import markdown
from allonym.report.page import Block, Page
from allonym.report.pdf_page import pdf
from allonym.report.statement import statement_page
from allonym.report.swap import swap_page
from allonym.report.vega_plots import Plot, vega

__all__ = [
    "Block",
    "Page",
    "Plot",
    "compare_page",
    "evaluation_page",
    "html",
    "markdown",
    "pdf",
    "render",
    "statement_page",
    "swap_page",
    "vega",
    "write",
]

FORMATS = {".html": "html", ".htm": "html", ".md": "markdown", ".json": "json"}


def render(page: Page, form: str = "html") -> str:
    """A page as ``html``, ``markdown`` or ``json``.

    Raises:
        UsageError: no such form.
        MissingExtra: HTML needs Jinja2.
    """
    if form == "html":
        return html(page)
    if form == "markdown":
        return markdown(page)
    if form == "json":
        return page.to_json()
    raise UsageError(f"a report is written as html, markdown or json, not as {form!r}")


def write(page: Page, path: str | Path) -> None:
    """Write a page as its path's ending says: ``.html``, ``.md``, ``.json``, or ``.pdf``, which has no charts.

    Raises:
        UsageError: another ending, or the file cannot be written.
        MissingExtra: HTML needs Jinja2, PDF reportlab.
    """
    path = Path(path)
    formats = {**FORMATS, ".pdf": "pdf"}
    form = formats.get(path.suffix.lower())
    if form is None:
        raise UsageError(f"report {path.name}: must end in {', '.join(formats)}, got {path.suffix or 'no ending'}")
    data = pdf(page) if form == "pdf" else render(page, form).encode("utf-8", "replace")
    with hide_foreign_errors(f"cannot write report {path.name}", OSError, error=UsageError):
        write_file(path, data, makes_folders=False)
