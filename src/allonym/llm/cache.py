"""Answers on disk: encrypted, named by a keyed digest of the request, safe for many processes at once.

Both keys derive from the caller's secret, so that neither a request nor an answer can be read or guessed from the
folder. A file that cannot be opened (another key, a damaged disk) counts as missing.

OpenAI's batch files, which P5 used (section 3.3), fill the folder as well: one request or one result a line. A
request's ``custom_id`` is its name in the cache, so that a run finds the result there. The request itself is readable
in the file, because the endpoint has to read it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from allonym.keys import Cipher, expand_key
from allonym.partfile import write_file

if TYPE_CHECKING:
    from allonym.llm.client import Client

URL = "/v1/chat/completions"
_VERSION = b"allonym llm answer 1"


class Cache:
    """A folder of answers.

    Args:
        folder: created when needed, for the owner only.
        key: 32 random bytes or more.
    """

    def __init__(self, folder: str | Path, key: bytes) -> None:
        self._folder = Path(folder)
        self._naming = expand_key(key, b"name")
        self._cipher = Cipher(expand_key(key, b"seal"))

    def name(self, request: bytes) -> str:
        """Return the request's name, 64 hexadecimal digits; also its ``custom_id`` in batch files."""
        return expand_key(self._naming, request).hex()

    def get(self, name: str) -> bytes | None:
        """Return the answer with that name; None where there is none that this key opens."""
        try:
            return self._cipher.unseal(self._make_path(name).read_bytes(), _VERSION + name.encode())
        except OSError:
            return None

    def put(self, name: str, answer: bytes) -> None:
        """Store an answer. The file exists completely or not at all, whoever else writes it at the same time.

        Raises:
            OSError: the folder cannot be written.
        """
        path = self._make_path(name)
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        sealed = self._cipher.seal(answer, _VERSION + name.encode())
        write_file(path, sealed, private=True, is_durable=False)

    def _make_path(self, name: str) -> Path:
        return self._folder / name[:2] / f"{name[2:]}.bin"


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
    counts.update(_store_result_line(line, client) for line in results if line.strip())
    return counts


def _store_result_line(line: str, client: Client) -> str:
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
