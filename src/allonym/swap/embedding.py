"""Vectors of texts: embedders by name, each text computed once, and cached on disk if a folder is named.

A vector is a float32 row of length 1, so that cosine similarity is a dot product (P1 2.2.1).
"""

from __future__ import annotations

import hashlib
import inspect
import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from allonym.errors import DataError, UsageError, hide_foreign_errors
from allonym.registry import Registry
from allonym.swap.corpus import ignore_progress
from allonym.swap.rows import Spread, ThisProcess

Vectors = NDArray[np.float32]

embedders = Registry(
    "embedder",
    {
        "lsa": "allonym.swap.embedders:Lsa",
        "encoder": "allonym.swap.embedders:Encoder",
        "sentence-transformers": "allonym.swap.embedders:SentenceTransformers",
        "openai": "allonym.swap.embedders:Remote",
    },
)
"""Factories ``(**options) -> Method``."""

_FILE = "vectors.sqlite"
_WAIT = 60.0  # seconds to wait for another process to finish its write
_MANY = 500  # digests per query
_BATCH = 256  # texts between two writes to the disk


class VectorCache:
    """Vectors on disk by digest: one SQLite file, safe for many processes at once.

    The texts are not in it. But anyone who can guess a text can find out whether it is there, and a vector shows what
    its text is about: the file is for its owner only, and as sensitive as the texts.

    Args:
        folder: created if necessary, for the owner only.

    Raises:
        DataError: the folder cannot be used, or its file holds no vectors.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / _FILE
        with hide_foreign_errors(f"cache of vectors: {folder} cannot be used", OSError):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            os.close(os.open(self._path, os.O_CREAT | os.O_RDWR, 0o600))
        with self._connect() as db:
            db.execute("create table if not exists vectors (name blob primary key, vector blob not null) without rowid")

    @contextmanager
    def _connect(self) -> Iterator[sqlite3.Connection]:
        # A connection of its own for every use: none crosses a thread or a fork.
        with (
            hide_foreign_errors(f"cache of vectors: {self._path} cannot be used", sqlite3.Error),
            closing(sqlite3.connect(self._path, timeout=_WAIT)) as db,
            db,
        ):
            yield db

    def get(self, names: Sequence[bytes]) -> list[Vectors | None]:
        """Return the vectors of these names, None where there is none."""
        rows: dict[bytes, Vectors] = {}
        with self._connect() as db:
            for start in range(0, len(names), _MANY):
                some = names[start : start + _MANY]
                marks = ",".join("?" * len(some))
                for name, data in db.execute(f"select name, vector from vectors where name in ({marks})", some):
                    rows[bytes(name)] = np.frombuffer(data, "<f4").astype(np.float32)
        return [rows.get(name) for name in names]

    def put(self, vectors: Mapping[bytes, Vectors]) -> None:
        """Write vectors, all or none of them; those that are there already stay."""
        rows = [(name, row.astype("<f4").tobytes()) for name, row in vectors.items()]
        with self._connect() as db:
            db.executemany("insert or ignore into vectors values (?, ?)", rows)


class Method(Protocol):
    """What a registered factory returns.

    Attributes:
        identity: name, model and options, everything that a vector depends on but its text; two methods of one identity
            give the same vectors. Empty before a method that learns from a corpus was fitted.
        keep: whether its vectors are worth caching on disk.
        local: true if no other process should compute for it; may be left out.
    """

    identity: str
    keep: bool

    def fit(self, texts: Sequence[str]) -> Method:
        """Return the method fitted on a corpus; itself if it learns nothing."""
        ...

    def encode(self, texts: Sequence[str]) -> Any:
        """Return a float array ``(len(texts), d)``. A row of zeros: the text has no content."""
        ...


class Embedder:
    """A method with its cache.

    Texts without content get the same unit vector, never zeros, which no distribution on the sphere can take.

    Args:
        name: as it was asked for.
        method: computes the vectors.
        cache: folder of vectors; None: no cache.
    """

    def __init__(self, name: str, method: Method, cache: Path | None = None) -> None:
        self.name = name
        self._method = method
        self._folder = cache
        self._cache = VectorCache(cache) if cache is not None and method.keep else None
        self._spread: Spread | None = None

    def __reduce__(self) -> tuple[object, ...]:
        return (Embedder, (self.name, self._method))  # another process computes alone, without a cache

    def __repr__(self) -> str:
        return f"Embedder({self.identity or self.name!r})"

    @property
    def identity(self) -> str:
        """Everything that a vector depends on but its text; see :class:`Method`."""
        return self._method.identity

    def fit(self, texts: Sequence[str]) -> Embedder:
        """Return the embedder fitted on a corpus; required for ``lsa``, harmless for others.

        Raises:
            DataError: nothing can be learnt from these texts.
        """
        return Embedder(self.name, self._method.fit(texts), self._folder).over(self._spread)

    def over(self, spread: Spread | None) -> Embedder:
        """Return the embedder with workers that compute its texts, 256 at a time; None: this process. Same vectors.

        A method whose ``local`` is true always computes in this process, as one that asks an endpoint does.
        """
        out = Embedder(self.name, self._method, self._folder)
        out._spread = None if getattr(self._method, "local", False) else spread
        return out

    def encode(self, texts: Sequence[str], *, progress: Callable[[int], object] = ignore_progress) -> Vectors:
        """Compute the vectors of texts.

        Args:
            texts: any; each distinct one is computed once.
            progress: called with the number of distinct texts that are done.

        Returns:
            float32 array ``(len(texts), d)``, rows of length 1.

        Raises:
            UsageError: the method has to be fitted first.
            DataError: the method did not return finite vectors of one length.
            EndpointError: an endpoint did not answer.
        """
        if not self.identity:
            raise UsageError(f"embedder {self.name!r} learns from a corpus: call fit(texts) first")
        place = {text: i for i, text in enumerate(dict.fromkeys(texts))}
        distinct = list(place)
        rows: dict[int, Vectors] = {}
        if self._cache is not None:
            names = [_hash_text(self.identity, text) for text in distinct]
            rows = {i: row for i, row in enumerate(self._cache.get(names)) if row is not None}
        missing = [i for i in range(len(distinct)) if i not in rows]
        batches = [missing[start : start + _BATCH] for start in range(0, len(missing), _BATCH)]
        spread = self._spread or ThisProcess()
        arrays = spread.map_items(_encode_texts, self._method, ([distinct[i] for i in batch] for batch in batches))
        for batch, array in zip(batches, arrays, strict=True):
            vectors = self._to_unit_vectors(array, len(batch))
            if self._cache is not None:
                self._cache.put({names[i]: row for i, row in zip(batch, vectors, strict=True)})
            rows |= zip(batch, vectors, strict=True)
            progress(len(rows))
        if not rows:
            return np.zeros((0, 1), np.float32)
        if len({len(row) for row in rows.values()}) != 1:
            raise DataError(f"embedder {self.name!r}: vectors of different lengths; is the cache of another model?")
        table = np.stack([rows[i] for i in range(len(distinct))])
        return table[[place[text] for text in texts]]

    def _to_unit_vectors(self, array: Any, n: int) -> Vectors:
        table = np.array(array, np.float64)
        if table.ndim != 2 or table.shape[0] != n or not table.shape[1] or not np.isfinite(table).all():
            raise DataError(f"embedder {self.name!r}: {n} finite vectors are required, got an array of {table.shape}")
        length = np.linalg.norm(table, axis=1)
        table[length == 0] = 1
        length[length == 0] = table.shape[1] ** 0.5
        unit: Vectors = (table / length[:, None]).astype(np.float32)
        return unit


def open_embedder(name: str = "encoder", *, cache: str | Path | None = None, **options: object) -> Embedder:
    """Open an embedder by name.

    Args:
        name: ``lsa`` (words of the corpus itself; fitted), ``encoder`` (the one that ships with allonym),
            ``sentence-transformers``, ``openai`` (any endpoint of that form), or a registered name.
        cache: folder where vectors are cached by a digest of their text; it is as sensitive as the texts. Processes may
            share it. ``lsa`` does not use it, since it is quicker than a disk.
        options: of the method, see :mod:`allonym.swap.embedders`; None: the default.

    Raises:
        UnknownNameError: there is no such embedder.
        UsageError: it does not take such options, or an endpoint is not named.
        MissingExtra: its package is not installed.
        DataError: its model does not exist.
    """
    factory = cast(Callable[..., Method], embedders.get(name, "embedder"))
    options = {key: value for key, value in options.items() if value is not None}
    parameters = inspect.signature(factory).parameters
    if not any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        unknown = sorted(set(options) - set(parameters))
        if unknown:
            raise UsageError(f"embedder {name!r} takes {', '.join(parameters)}; got {', '.join(unknown)}")
    return Embedder(name, factory(**options), None if cache is None else Path(cache))


def _encode_texts(method: Method, texts: Sequence[str]) -> Any:
    return method.encode(texts)


def _hash_text(identity: str, text: str) -> bytes:
    return hashlib.sha256(f"{identity}\0{text}".encode("utf-8", "surrogatepass")).digest()
