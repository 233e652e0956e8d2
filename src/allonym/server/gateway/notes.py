"""The note that explains placeholders to the model, and whether the client wants JSON."""

from __future__ import annotations

from typing import Any

NOTE = (
    "Names and other details were replaced by placeholders such as {tag}. Each stands for one real thing, the same "
    "everywhere. Write a placeholder exactly as it stands, with its signs and its number, wherever you mean that "
    "thing, also in JSON and in the arguments of tools. Do not explain, translate, split or invent placeholders."
)
_INSTRUCTING = ("system", "developer")


def explain_in_chat(body: dict[str, Any], tag: str) -> None:
    """Add the note to the first message, if that instructs the model, else in a message before it."""
    note = NOTE.format(tag=tag)
    messages = body.setdefault("messages", [])
    first = messages[0] if messages else {}
    content = first.get("content")
    if first.get("role") not in _INSTRUCTING or not isinstance(content, (str, list)):
        messages.insert(0, {"role": "system", "content": note})
    elif isinstance(content, str):
        first["content"] = f"{content}\n\n{note}"
    else:
        content.append({"type": "text", "text": note})


def explain_in_response(body: dict[str, Any], tag: str) -> None:
    """Add the note to the instructions."""
    note = NOTE.format(tag=tag)
    instructions = body.get("instructions")
    body["instructions"] = f"{instructions}\n\n{note}" if instructions else note


def wants_json(body: dict[str, Any]) -> bool:
    """Whether the answer's text is to be JSON."""
    text = body.get("text")
    form = body.get("response_format") or (text.get("format") if isinstance(text, dict) else None)
    return isinstance(form, dict) and form.get("type") in ("json_object", "json_schema")
