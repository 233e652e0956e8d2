"""Vectors of texts: embedders by name, each text computed once, and kept on disk if a folder is named.

A vector is a float32 row of length 1, so that cosine similarity is a dot product (P1 2.2.1). Vectors say much of what a
text says: a folder of them is as sensitive as the texts.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from allonym.errors import DataError, MissingExtra, UsageError
from allonym.registry import Registry
from allonym.swap.shards import Spread
from allonym.swap.vectors import Kept

Vectors = NDArray[np.float32]

embedders = Registry(
    "embedder",
    {
        "lsa": "allonym.swap.lsa:Lsa",
        "encoder": "allonym.swap.embedding:Encoder",
        "sentence-transformers": "allonym.swap.embedding:SentenceTransformers",
        "openai": "allonym.swap.remote:Remote",
    },
)
"""Factories ``(**options) -> Method``."""

_PIECE = 256  # texts between two writes to the disk


class Method(Protocol):
    """What a registered factory makes.

    Attributes:
        identity: name, model and options, everything that a vector depends on but its text; two methods of one identity
            give the same vectors. Empty before a method that learns from a corpus was fitted.
        keep: whether its vectors are worth keeping on disk.
        local: true where no other process should compute for it; may be left out.
    """

    identity: str
    keep: bool

    def fit(self, texts: Sequence[str]) -> Method:
        """The method fitted on a corpus; itself where it learns nothing."""
        ...

    def encode(self, texts: Sequence[str]) -> Any:
        """Float array ``(len(texts), d)``. A row of zeros: the text says nothing."""
        ...


class Embedder:
    """A method with its cache.

    Texts that say nothing get the same unit vector, never zeros, which no distribution on the sphere can take.

    Args:
        name: as it was asked for.
        method: what computes.
        cache: folder of vectors; None: none are kept.
    """

    def __init__(self, name: str, method: Method, cache: Path | None = None) -> None:
        self.name = name
        self._method = method
        self._folder = cache
        self._kept = Kept(cache) if cache is not None and method.keep else None
        self._spread: Spread | None = None

    def __reduce__(self) -> tuple[object, ...]:
        return (Embedder, (self.name, self._method))  # whoever gets it computes alone, and keeps nothing

    def __repr__(self) -> str:
        return f"Embedder({self.identity or self.name!r})"

    @property
    def identity(self) -> str:
        """Everything that a vector depends on but its text; see :class:`Method`."""
        return self._method.identity

    def fit(self, texts: Sequence[str]) -> Embedder:
        """The embedder fitted on a corpus; needed by ``lsa``, harmless for others.

        Raises:
            DataError: nothing can be learnt from these texts.
        """
        return Embedder(self.name, self._method.fit(texts), self._folder).over(self._spread)

    def over(self, spread: Spread | None) -> Embedder:
        """The embedder whose texts are computed by others, 256 at a time; vectors are the same. None: by itself.

        A method whose ``local`` is true always computes by itself, as one that asks an endpoint does.
        """
        out = Embedder(self.name, self._method, self._folder)
        out._spread = None if getattr(self._method, "local", False) else spread
        return out

    def encode(self, texts: Sequence[str], *, progress: Callable[[int], object] | None = None) -> Vectors:
        """The vectors of texts.

        Args:
            texts: any; each distinct one is computed once.
            progress: called with the number of texts that are done, of all distinct ones.

        Returns:
            float32 array ``(len(texts), d)``, rows of length 1.

        Raises:
            UsageError: the method has to be fitted first.
            DataError: the method gave something else than finite vectors of one length.
            EndpointError: an endpoint did not answer.
        """
        if not self.identity:
            raise UsageError(f"embedder {self.name!r} learns from a corpus: call fit(texts) first")
        place = {text: i for i, text in enumerate(dict.fromkeys(texts))}
        distinct = list(place)
        rows: dict[int, Vectors] = {}
        if self._kept is not None:
            names = [_digest(self.identity, text) for text in distinct]
            rows = {i: row for i, name in enumerate(self._kept.get(names)) if (row := name) is not None}
        missing = [i for i in range(len(distinct)) if i not in rows]
        done = len(rows)
        pieces = [missing[at : at + _PIECE] for at in range(0, len(missing), _PIECE)]
        told = ([distinct[i] for i in some] for some in pieces)
        computed = (
            map(self._method.encode, told) if self._spread is None else self._spread.each(_encode, self._method, told)
        )
        for some, found in zip(pieces, computed, strict=True):
            made = self._unit(found, len(some))
            if self._kept is not None:
                self._kept.put({names[i]: row for i, row in zip(some, made, strict=True)})
            rows |= zip(some, made, strict=True)
            done += len(some)
            if progress is not None:
                progress(done)
        if not rows:
            return np.zeros((0, 1), np.float32)
        if len({len(row) for row in rows.values()}) != 1:
            raise DataError(f"embedder {self.name!r}: vectors of different lengths; is the cache of another model?")
        table = np.stack([rows[i] for i in range(len(distinct))])
        return table[[place[text] for text in texts]]

    def _unit(self, made: Any, n: int) -> Vectors:
        table = np.array(made, np.float64)
        if table.ndim != 2 or table.shape[0] != n or not table.shape[1] or not np.isfinite(table).all():
            raise DataError(f"embedder {self.name!r}: {n} finite vectors are required, got an array of {table.shape}")
        length = np.linalg.norm(table, axis=1)
        table[length == 0] = 1
        length[length == 0] = table.shape[1] ** 0.5
        unit: Vectors = (table / length[:, None]).astype(np.float32)
        return unit


def open_embedder(name: str = "encoder", *, cache: str | Path | None = None, **options: object) -> Embedder:
    """An embedder by name.

    Args:
        name: ``lsa`` (words of the corpus itself; fitted), ``encoder`` (the one that ships with allonym),
            ``sentence-transformers``, ``openai`` (any endpoint of that form), or what another package registered.
        cache: folder where vectors are kept by a digest of their text; it is as sensitive as the texts. Processes may
            share it. Not used by ``lsa``, which is quicker than a disk.
        options: of the method, see :class:`Encoder`, :class:`SentenceTransformers`, :class:`allonym.swap.lsa.Lsa` and
            :class:`allonym.swap.remote.Remote`; None: the default.

    Raises:
        UnknownNameError: there is no such embedder.
        UsageError: it does not take such options, or an endpoint is not named.
        MissingExtra: its package is not installed.
        DataError: its model is not there.
    """
    factory = cast(Callable[..., Method], embedders.get(name, "embedder"))
    said = {key: value for key, value in options.items() if value is not None}
    known = inspect.signature(factory).parameters
    if not any(p.kind is p.VAR_KEYWORD for p in known.values()):
        wrong = sorted(set(said) - set(known))
        if wrong:
            raise UsageError(f"embedder {name!r} takes {', '.join(known)}; got {', '.join(wrong)}")
    return Embedder(name, factory(**said), None if cache is None else Path(cache))


def _encode(method: Method, texts: Sequence[str]) -> Any:
    return method.encode(texts)


def _digest(identity: str, text: str) -> bytes:
    return hashlib.sha256(f"{identity}\0{text}".encode("utf-8", "surrogatepass")).digest()


class Encoder:
    """The sentence encoder that ships with allonym: English, 384 dimensions, offline.

    Args:
        model: folder of another one, with ``encoder.onnx`` and its words.
        threads: texts that are computed at the same time; vectors do not depend on it.
        gpu: use a GPU where the installed onnxruntime has one.
    """

    keep = True

    def __init__(self, model: str | Path = "", threads: int = 1, gpu: bool = False) -> None:
        from allonym.models.encoder import load_encoder
        from allonym.models.tagger import ENGLISH

        folder = Path(model) if model else ENGLISH
        self._encoder = load_encoder(folder, threads, gpu)
        self.identity = f"encoder {_file_digest(folder / 'encoder.onnx')}"

    def fit(self, texts: Sequence[str]) -> Encoder:
        return self

    def encode(self, texts: Sequence[str]) -> Any:
        return self._encoder.encode(texts)


class SentenceTransformers:
    """A model of the package sentence-transformers (Reimers and Gurevych 2019, doi:10.18653/v1/D19-1410).

    Args:
        model: its folder, or its name on the hub if it is on this machine already.
        device: where it runs, as PyTorch names it.
        batch_size: texts that it reads at once; over 1 is faster, and the last digits of vectors may change.
        allow_download: whether the model may be fetched from the network.
    """

    keep = True

    def __init__(
        self, model: str | Path = "", device: str = "cpu", batch_size: int = 32, allow_download: bool = False
    ) -> None:
        from allonym.detect.adapters.offline import load_offline

        if not model:
            raise UsageError("embedder 'sentence-transformers': model is required, a folder or a name")
        try:
            from sentence_transformers import SentenceTransformer
        except ImportError:
            raise MissingExtra("the embedder sentence-transformers", "sentence-transformers") from None
        with load_offline("sentence-transformers", str(model), allow_download=allow_download, floor="embed"):
            self._model = SentenceTransformer(str(model), device=device, local_files_only=not allow_download)
        self._batch = max(1, batch_size)
        self.identity = f"sentence-transformers {model}"

    def fit(self, texts: Sequence[str]) -> SentenceTransformers:
        return self

    def encode(self, texts: Sequence[str]) -> Any:
        made = self._model.encode(
            list(texts),
            batch_size=self._batch,
            convert_to_numpy=True,
            normalize_embeddings=True,
            show_progress_bar=False,
        )
        table = np.array(made, np.float32)
        table[[not any(c.isalnum() for c in text) for text in texts]] = 0
        return table


def _file_digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]
