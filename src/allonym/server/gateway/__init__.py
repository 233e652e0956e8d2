"""The gateway: an OpenAI-compatible endpoint that protects what goes to a language model and restores what comes back.

    allonym gateway --upstream https://api.openai.com/v1

A request is read by a table of what each of its fields may hold. All of its text becomes one document, so that names
found in one message are covered in every other, and only what is made of that document is sent. What the tables do not
know, and what cannot be protected, is refused.
"""

from __future__ import annotations

from allonym.server.gateway.app import create_app
from allonym.server.gateway.settings import Client, Settings, load

__all__ = ["Client", "Settings", "create_app", "load"]
