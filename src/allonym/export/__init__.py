"""Training sets for language models: anonymised texts as conversations or as prompts with completions (P2, section 5).

Every document is in a single split, and so are all documents of one caller where a field names the caller. A manifest
beside the files records the policy, counts of the contents, and the measured risk.
"""

from __future__ import annotations

from allonym.export.run import Manifest, export_path
from allonym.export.shapes import Chat, Prompts, Shape, Task, read_tasks
from allonym.export.split import Split

__all__ = ["Chat", "Manifest", "Prompts", "Shape", "Split", "Task", "export_path", "read_tasks"]
