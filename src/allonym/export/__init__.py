"""Training sets for language models: anonymised texts as conversations or as prompts with completions (P2, section 5).

One document is in one split alone, and so is all of one caller where a field tells the caller. A manifest beside the
files says by which policy they were anonymised, how many of what they hold, and what risk was measured.
"""

from __future__ import annotations

from allonym.export.manifest import Manifest
from allonym.export.run import export_path
from allonym.export.shapes import Chat, Prompts, Shape, Task, read_tasks
from allonym.export.split import Split

__all__ = ["Chat", "Manifest", "Prompts", "Shape", "Split", "Task", "export_path", "read_tasks"]
