"""OpenAI's batch files, which P5 used (section 3.3): one request or one result a line.

A request's ``custom_id`` is its name in the cache, so that a run finds the result there. That name is a keyed digest;
the request itself is readable in the file, because the endpoint has to read it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from allonym.llm.client import Client

URL = "/v1/chat/completions"


def format_batch_lines(requests: Mapping[str, Mapping[str, object]]) -> Iterable[str]:
    """Yield the lines of a batch file for the requests that :func:`allonym.llm.recording` recorded."""
    for name, body in requests.items():
        row = {"custom_id": name, "method": "POST", "url": URL, "body": body}
        yield json.dumps(row, separators=(",", ":")) + "\n"


def store_results(results: Iterable[str], client: Client) -> Mapping[str, int]:
    """Store the answers of a file of results in the client's cache.

    Args:
        results: the lines of one file or several; lines of an error file may be among them.

    Returns:
        counts: ``kept`` answers; ``failed``: the endpoint reports an error; ``unusable``: cut off, refused or no JSON;
        ``unreadable``: a line that is no result.

    Raises:
        OSError: the cache cannot be written.
    """
    counts = Counter({"kept": 0, "failed": 0, "unusable": 0, "unreadable": 0})
    counts.update(_store_result(line, client) for line in results if line.strip())
    return counts


def _store_result(line: str, client: Client) -> str:
    try:
        row: Any = json.loads(line)
        name, response = row["custom_id"], row.get("response")
        if not isinstance(name, str) or len(name) != 64 or set(name) - set("0123456789abcdef"):
            return "unreadable"
        if row.get("error") or not response or response.get("status_code") != 200:
            return "failed"
        data = json.dumps(response["body"]).encode()
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return "unreadable"
    return "kept" if client.keep(name, data) else "unusable"
