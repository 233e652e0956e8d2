"""Execute the notebooks in docs/tutorials, offline and each in an empty folder, and store their outputs.

Run it after a change that affects an output. ``--check`` fails if any output differs from the stored one.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from traitlets.config import Config

TUTORIALS = Path(__file__).resolve().parent / "tutorials"
SECONDS = 300
STYLE = re.compile(r"<style>.*?</style>\n?", re.DOTALL)


def executed(path: Path) -> str:
    """Return the notebook with fresh outputs, as JSON. A failing cell raises an error."""
    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as sockets:
        # The messages go through the file system, so that no port is opened.
        config = Config(KernelManager={"transport": "ipc", "connection_file": f"{sockets}/kernel.json"})
        where = {"metadata": {"path": folder}}
        NotebookClient(notebook, config=config, timeout=SECONDS, resources=where, coalesce_streams=True).execute()
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    for cell in notebook.cells:
        cell.metadata = {}
        for output in cell.get("outputs", ()):
            output.pop("metadata", None) if output.output_type == "stream" else output.update(metadata={})
            if "text/html" in output.get("data", {}):  # the site has the style; notebook viewers drop it anyway
                output.data["text/html"] = STYLE.sub("", output.data["text/html"])
    return nbformat.writes(notebook, indent=1, sort_keys=True) + "\n"


def mask_scores(text: str) -> str:
    """Hide the tagger's scores: their last digit depends on the processor."""
    return re.sub(r"(?<=score )[01]\.\d\d(?=, tagger)|(?<=<td>)[01]\.\d\d(?=</td><td>tagger)", "0.__", text)


def main() -> int:
    # Remove the keys and settings of the person who runs it.
    for name in [name for name in os.environ if name.startswith(("ALLONYM_", "OPENAI_"))]:
        del os.environ[name]
    stale = []
    for path in sorted(TUTORIALS.glob("*.ipynb")):
        now = executed(path)
        if mask_scores(now) == mask_scores(path.read_text(encoding="utf-8")):
            continue
        if "--check" in sys.argv:
            stale.append(path.name)
        else:
            path.write_text(now, encoding="utf-8")
    if stale:
        sys.stderr.write(f"{', '.join(stale)}: run python docs/build_tutorials.py, then review the changes\n")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
