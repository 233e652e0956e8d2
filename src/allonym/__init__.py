"""allonym makes text safe to share and proves it.

>>> import allonym
>>> allonym.anonymize("Write to jane.doe@example.com").text
'Write to [EMAIL_ADDRESS_1]'

Everything here works offline. See the documentation for policies, operators and detectors.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING

from allonym.lazy import load_on_use

if TYPE_CHECKING:
    from allonym.document import Document as Document
    from allonym.document import Entity as Entity
    from allonym.document import Span as Span
    from allonym.document import Turn as Turn
    from allonym.errors import AllonymError as AllonymError
    from allonym.errors import DataError as DataError
    from allonym.errors import UsageError as UsageError
    from allonym.labels import from_scheme as from_scheme
    from allonym.labels import to_scheme as to_scheme
    from allonym.pipeline import anonymize as anonymize
    from allonym.pipeline import anonymize_many as anonymize_many
    from allonym.pipeline import detect as detect
    from allonym.pipeline import detect_many as detect_many
    from allonym.pipeline import explain as explain
    from allonym.pipeline import restore_many as restore_many
    from allonym.plan import Anonymized as Anonymized
    from allonym.plan import Edit as Edit
    from allonym.plan import Plan as Plan
    from allonym.policy import Policy as Policy
    from allonym.report.display import display as display
    from allonym.restoration import Restored as Restored
    from allonym.restoration import restore as restore
    from allonym.restoration import restore_stream as restore_stream
    from allonym.vault import Vault as Vault

__version__ = "0.1.0"

# From 1.32 on, onnxruntime notes its use in the user's cache folder and sends that to its makers.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

__all__ = sorted((*load_on_use(__name__), "__version__"))


def __getattr__(name: str) -> object:
    if name in ("evaluate", "swap"):  # packages with extras of their own
        return import_module(f"allonym.{name}")
    raise AttributeError
