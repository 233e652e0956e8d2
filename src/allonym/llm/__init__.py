"""Language models behind an endpoint for chat completions: OpenAI, vLLM, Ollama, the llama.cpp server and their like.

Strictly opt-in. A policy's table ``[llm]`` names the endpoint; where it names none, nothing here opens a connection.
What is sent is what the prompts hold (:mod:`.templates`); what comes back is data that the caller verifies
(:mod:`.answers`). Answers are kept in an encrypted folder if the policy names one (:mod:`.cache`), which batch
files can fill as well. :mod:`.decoding` brings fictional names back to their tags.
"""

from __future__ import annotations

from allonym.llm.client import Client, Recorded, Reply, Request, client_for, recording, unlocked
from allonym.llm.decoding import Located, decode

__all__ = ["Client", "Located", "Recorded", "Reply", "Request", "client_for", "decode", "recording", "unlocked"]
