"""What turns docs/, which reads on its own, into a site: navigation, pages from outside, notebooks, formulas."""

from __future__ import annotations

import html
import json
import posixpath
import re
from hashlib import sha256
from pathlib import Path
from typing import Any

import latex2mathml.converter
from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parent.parent.parent
STYLE = ROOT / "src" / "allonym" / "report" / "templates" / "display.css"
"""Of what ``allonym.display`` shows; notebooks are stored without it."""
OUTSIDE = {
    "README.md": "overview.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changes.md",
    "changelog.d/README.md": "changelog.md",
    "SECURITY.md": "security.md",
    "CITATION.cff": "citation.txt",
    "LICENSE": "LICENSE.txt",
    "NOTICE": "NOTICE.txt",
    "src/allonym/kb/SOURCES.md": "sources.md",
    "src/allonym/models/english/CARD.md": "model-card.md",
    "src/allonym/models/clinical_spanish/CARD.md": "model-card-clinical-spanish.md",
}
"""What pages of the manual lead to outside docs/, and what it is called on the site."""
LESS_LIKELY = re.compile(r"reference/|(examples|figures|changes|changelog|contributing|overview|README)\.md")
"""Pages that hold every word there is, and would stand first in any search."""
LINK = re.compile(r"^(`{3,}).*?^\1|(`+)(?:.|\n(?!\n))+?\2|\]\(([^)#\s]*)((?:#[^)\s]*)?)\)", re.DOTALL | re.MULTILINE)
EDGES = "e=e+s+o.id"
"""How the search (lunr) writes an edge of its automaton: a digit and the number of a node run into one another, two
different nodes become one, and a query for a word that no page has ends in an error."""
outputs: dict[str, str] = {}
"""What stands in pages for outputs of notebooks that are HTML, which no Markdown must touch."""
FORMULA = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.DOTALL)


def on_config(config: Any) -> Any:
    """The navigation is the list in docs/README.md: a section for each heading, a page for each line's first link."""
    nav: list[Any] = [{"Home": "README.md"}]
    inside = [nav]
    for line in (ROOT / "docs" / "README.md").read_text(encoding="utf-8").splitlines():
        if heading := re.match(r"(##+) (.+)", line):
            del inside[len(heading[1]) - 1 :]
            inside.append([])
            inside[-2].append({heading[2]: inside[-1]})
        elif item := re.match(r"- \[([^]]+)]\(([^)#]+)\)", line):
            inside[-1].append({item[1]: site_path("docs/README.md", item[2])})
    config["nav"] = nav
    return config


def on_files(files: Any, config: Any) -> Any:
    for source, page in OUTSIDE.items():
        files.append(File.generated(config, page, content=(ROOT / source).read_text(encoding="utf-8")))
    for notebook in [file for file in files if file.src_uri.endswith(".ipynb")]:
        text = as_markdown(Path(notebook.abs_src_path))
        files.append(File.generated(config, notebook.src_uri.removesuffix(".ipynb") + ".md", content=text))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    here = page.file.src_uri
    if LESS_LIKELY.match(here):
        page.meta["search"] = {"boost": 0.4}
    source = next((source for source, name in OUTSIDE.items() if name == here), f"docs/{here}")

    def led(link: re.Match[str]) -> str:
        if not link[3] or re.match(r"\w+:", link[3]) or link[3].startswith("./"):  # ./: the notebook itself
            return link[0]
        target = site_path(source, link[3])
        return f"]({posixpath.relpath(target, posixpath.dirname(here) or '.')}{link[4]})"

    return LINK.sub(led, markdown)


def on_page_content(content: str, page: Any, config: Any, files: Any) -> str:
    def drawn(formula: re.Match[str]) -> str:
        display = "block" if formula[1] == "div" else "inline"
        mathml = latex2mathml.converter.convert(html.unescape(formula[2]).strip(), display=display)
        return f'<{formula[1]} class="arithmatex">{mathml}</{formula[1]}>'

    for mark, output in outputs.items():
        content = content.replace(mark, output)
    return FORMULA.sub(drawn, content)


def on_post_build(config: Any) -> None:
    """The worker of the search asks for both spellings of a word, and tells all nodes of its automaton apart."""
    for worker in Path(config["site_dir"]).glob("assets/javascripts/workers/search.*.min.js"):
        spellings = (Path(__file__).parent / "spellings.js").read_text(encoding="utf-8")
        program = worker.read_text(encoding="utf-8")
        if program.count(EDGES) != 1:
            raise ValueError(f"{worker.name} writes edges in another way than {EDGES}: see docs/site/hooks.py")
        program = program.replace(EDGES, 'e=e+s+"<"+o.id+">"')
        worker.write_text(f"{spellings}\n{program}", encoding="utf-8")


def site_path(source: str, target: str) -> str:
    """Where on the site the page is that a page of the repository names, relative to the site's sources."""
    path = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
    if path.startswith("docs/"):
        return re.sub(r"\.ipynb$", ".md", path.removeprefix("docs/"))
    return OUTSIDE.get(path, path)


def as_markdown(path: Path) -> str:
    """An executed notebook as a page: its Markdown, its code, and what each cell said."""
    parts = []
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        text = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(text)
            continue
        parts.append(fenced(text, "python"))
        parts.extend(shown(output) for output in cell["outputs"])
    name = path.name
    parts.insert(1, f"This page is a notebook: [{name}](./{name}). Everything below ran as it stands.")
    return "\n\n".join(parts) + "\n"


def shown(output: dict[str, Any]) -> str:
    data = output.get("data", {})
    if "text/html" in data:
        whole = f"<style>{STYLE.read_text(encoding='utf-8')}</style>" + "".join(data["text/html"])
        mark = f"<!-- output {sha256(whole.encode()).hexdigest()} -->"
        # A shadow tree keeps the page's style out of it, and its style out of the page.
        outputs[mark] = f'<div class="output"><template shadowrootmode="open">{whole}</template></div>'
        return mark
    text = "".join(output.get("text") or data["text/plain"])
    return f'<div class="output" markdown="1">\n{fenced(text, "text")}\n</div>'


def fenced(text: str, language: str) -> str:
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", text)), default=0))
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"
