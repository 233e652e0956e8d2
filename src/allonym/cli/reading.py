"""Read the input of commands that write nothing."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from allonym.cli.terminal import print_note
from allonym.errors import DataError

if TYPE_CHECKING:
    from allonym.document import Document
    from allonym.policy import Policy


def print_terminal_note() -> None:
    """Note that standard input is read from a terminal, where the program would seem to hang."""
    if sys.stdin.isatty():
        print_note("reading from the terminal; Ctrl-D ends the text")


def stdin_bytes() -> bytes:
    """Read all of standard input."""
    print_terminal_note()
    return sys.stdin.buffer.read()


def decode_text(data: bytes, where: str) -> str:
    """Decode UTF-8, dropping a byte order mark and keeping line ends.

    Raises:
        DataError: the data is not UTF-8; the message names the byte's position.
    """
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{where} is not UTF-8: byte {error.start} does not fit") from None


def read_documents(
    source: str,
    *,
    fields: Sequence[str] = (),
    format: str | None = None,
    named: bool = True,
    policy: str | Policy = "default",
) -> Iterator[Document]:
    """Read the documents of a file, a folder, or standard input (``-``) as a run would."""
    from allonym.files import read_documents

    if source == "-":
        print_terminal_note()
    yield from read_documents(source, fields=fields, format=format, named=named, policy=policy)
