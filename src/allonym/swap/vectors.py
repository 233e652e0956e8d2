"""Vectors on disk: one SQLite file, found by a digest of embedder and text, safe for many processes at once.

Texts are not in it. But who can guess a text can find out whether it is there, and a vector tells what its text is
about: the file is for its owner only, and as sensitive as the texts.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from allonym.errors import DataError

_FILE = "vectors.sqlite"
_WAIT = 60.0  # seconds for another process to finish its write
_MANY = 500  # digests asked for at once


class Kept:
    """Vectors by digest.

    Args:
        folder: is made where it is needed, for the owner only.

    Raises:
        DataError: the folder cannot be used, or its file is none of vectors.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / _FILE
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            os.close(os.open(self._path, os.O_CREAT | os.O_RDWR, 0o600))
        except OSError as error:
            raise DataError(f"cache of vectors: {folder} cannot be used ({type(error).__name__})") from None
        with self._open() as db:
            db.execute("create table if not exists vectors (name blob primary key, vector blob not null) without rowid")

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        # A connection of its own for every use: none crosses a thread or a fork.
        try:
            with closing(sqlite3.connect(self._path, timeout=_WAIT)) as db, db:
                yield db
        except sqlite3.Error as error:
            raise DataError(f"cache of vectors: {self._path} cannot be used ({type(error).__name__})") from None

    def get(self, names: Sequence[bytes]) -> list[NDArray[np.float32] | None]:
        """The vectors of these names, None where there is none."""
        found: dict[bytes, NDArray[np.float32]] = {}
        with self._open() as db:
            for at in range(0, len(names), _MANY):
                some = names[at : at + _MANY]
                marks = ",".join("?" * len(some))
                for name, data in db.execute(f"select name, vector from vectors where name in ({marks})", some):
                    found[bytes(name)] = np.frombuffer(data, "<f4").astype(np.float32)
        return [found.get(name) for name in names]

    def put(self, vectors: Mapping[bytes, NDArray[np.float32]]) -> None:
        """Keep vectors, all or none of them; what is there already stays."""
        with self._open() as db:
            db.executemany(
                "insert or ignore into vectors values (?, ?)",
                [(name, row.astype("<f4").tobytes()) for name, row in vectors.items()],
            )
