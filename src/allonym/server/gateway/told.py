"""What the model is told of placeholders, and whether the client wants JSON."""

from __future__ import annotations

from typing import Any

NOTE = (
    "Names and other details were replaced by placeholders such as {tag}. Each stands for one real thing, the same "
    "everywhere. Write a placeholder exactly as it stands, with its signs and its number, wherever you mean that "
    "thing, also in JSON and in the arguments of tools. Do not explain, translate, split or invent placeholders."
)
_INSTRUCTING = ("system", "developer")


def in_chat(body: dict[str, Any], tag: str) -> None:
    """Tell it at the end of the first message, where that instructs the model, else in a message before it."""
    note = NOTE.format(tag=tag)
    messages = body.setdefault("messages", [])
    first = messages[0] if messages else {}
    said = first.get("content")
    if first.get("role") not in _INSTRUCTING or not isinstance(said, (str, list)):
        messages.insert(0, {"role": "system", "content": note})
    elif isinstance(said, str):
        first["content"] = f"{said}\n\n{note}"
    else:
        said.append({"type": "text", "text": note})


def in_response(body: dict[str, Any], tag: str) -> None:
    """Tell it at the end of the instructions."""
    note = NOTE.format(tag=tag)
    said = body.get("instructions")
    body["instructions"] = f"{said}\n\n{note}" if said else note


def wants_json(body: dict[str, Any]) -> bool:
    """Whether the answer's text is to be JSON."""
    text = body.get("text")
    form = body.get("response_format") or (text.get("format") if isinstance(text, dict) else None)
    return isinstance(form, dict) and form.get("type") in ("json_object", "json_schema")
