"""The methods behind embedders: words of the corpus itself, models on this machine, and endpoints."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.utils.extmath import randomized_svd

from allonym.errors import DataError, MissingExtra, UsageError
from allonym.llm import Client
from allonym.registry import LlmTable
from allonym.settings import list_defaults

_SMALL = 1e-6  # singular values below this share of the largest hold rounding only


class Lsa:
    """Vectors from the words of a corpus, in any language that puts spaces between words.

    Words are counted on a log scale. Those of a single text, or of more than half of the texts, count only where a
    corpus has few others.

    Args:
        components: most dimensions; fewer where the corpus has fewer, 2 at least.
        seed: of the SVD.
    """

    keep = False

    def __init__(self, components: int = 100, seed: int = 0) -> None:
        self._components = max(2, components)
        self._seed = seed
        self._vectorizer: Any = None
        self._axes: Any = None
        self._middle: Any = None
        self.identity = ""

    def fit(self, texts: Sequence[str]) -> Lsa:
        """Learn from a corpus.

        Raises:
            DataError: no text has a word.
        """
        out = Lsa(self._components, self._seed)
        table = None
        # Few texts share few words: where one rule leaves too little, the next is tried.
        for min_df, max_df in ((2, 0.5), (2, 1.0), (1, 1.0)):
            vectorizer = TfidfVectorizer(
                sublinear_tf=True, min_df=min_df, max_df=max_df, token_pattern=r"(?u)\b\w\w+\b"
            )
            try:
                table = vectorizer.fit_transform(texts)
            except ValueError:
                continue
            empty = int((table.getnnz(axis=1) == 0).sum())
            if empty * 10 <= len(texts) and min(table.shape) > 2:
                break
        if table is None:
            raise DataError(f"embedder 'lsa': none of {len(texts)} texts holds a word of two letters or more")
        if min(table.shape) <= self._components + 1:
            _, sizes, axes = np.linalg.svd(table.toarray(), full_matrices=False)
        else:
            _, sizes, axes = randomized_svd(table, self._components, n_iter=7, random_state=self._seed)
        axes = axes[: self._components][sizes[: self._components] > _SMALL * sizes[0]]
        signs = np.sign(axes[np.arange(len(axes)), np.abs(axes).argmax(axis=1)])  # the same for either solver
        out._axes = np.zeros((max(2, len(axes)), table.shape[1]))
        out._axes[: len(axes)] = axes * signs[:, None]
        out._vectorizer = vectorizer
        rows = table @ out._axes.T
        length = np.linalg.norm(rows, axis=1, keepdims=True)
        mean = np.asarray(rows / np.where(length < _SMALL, 1, length)).mean(axis=0)
        out._middle = mean if mean @ mean else np.ones(len(mean))
        digest = hashlib.sha256(f"{self._components} {self._seed}".encode())
        for text in texts:
            digest.update(b"\0" + text.encode("utf-8", "surrogatepass"))
        out.identity = f"lsa {digest.hexdigest()[:16]}"
        return out

    def encode(self, texts: Sequence[str]) -> Any:
        """Return a float64 array ``(len(texts), d)``; a text without words of the corpus has its mean direction."""
        rows = self._vectorizer.transform(texts) @ self._axes.T
        rows[np.linalg.norm(rows, axis=1) < _SMALL] = self._middle
        return rows


class _Pretrained:
    """A method that learns nothing from a corpus."""

    keep = True

    def fit(self, texts: Sequence[str]) -> Self:
        return self


class Encoder(_Pretrained):
    """The sentence encoder that ships with allonym: English, 384 dimensions, offline.

    Args:
        model: folder of another one, with ``encoder.onnx`` and its words.
        threads: texts that are computed at the same time; vectors do not depend on it.
        gpu: use a GPU where the installed onnxruntime has one.
    """

    def __init__(self, model: str | Path = "", threads: int = 1, gpu: bool = False) -> None:
        from allonym.models.encoder import load_encoder
        from allonym.models.tagger import ENGLISH

        folder = Path(model) if model else ENGLISH
        self._encoder = load_encoder(folder, threads, gpu)
        self.identity = f"encoder {_hash_file(folder / 'encoder.onnx')}"

    def encode(self, texts: Sequence[str]) -> Any:
        return self._encoder.encode(texts)


class SentenceTransformers(_Pretrained):
    """A model of the package sentence-transformers (Reimers and Gurevych 2019, doi:10.18653/v1/D19-1410).

    Args:
        model: its folder, or its name on the hub if it is on this machine already.
        device: where it runs, as PyTorch names it.
        batch_size: texts that it reads at once; above 1 it is faster, but the last digits of vectors may change.
        allow_download: whether the model may be fetched from the network.
    """

    def __init__(
        self, model: str | Path = "", device: str = "cpu", batch_size: int = 32, allow_download: bool = False
    ) -> None:
        from allonym.detection.adapters.offline import block_model_hubs

        if not model:
            raise UsageError("embedder 'sentence-transformers': model is required, a folder or a name")
        try:
            from sentence_transformers import SentenceTransformer
        except ImportError:
            raise MissingExtra("the embedder sentence-transformers", "sentence-transformers") from None
        with block_model_hubs("sentence-transformers", str(model), allow_download=allow_download, floor="embed"):
            self._model = SentenceTransformer(str(model), device=device, local_files_only=not allow_download)
        self._batch = max(1, batch_size)
        self.identity = f"sentence-transformers {model}"

    def encode(self, texts: Sequence[str]) -> Any:
        how = {"convert_to_numpy": True, "normalize_embeddings": True, "show_progress_bar": False}
        table = np.array(self._model.encode(list(texts), batch_size=self._batch, **how), np.float32)
        table[[not any(c.isalnum() for c in text) for text in texts]] = 0
        return table


def _hash_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]


class Remote:
    """An endpoint for embeddings.

    Args:
        url: its address, up to ``/v1``.
        model: name of the model, as the endpoint knows it, e.g. ``text-embedding-3-small`` (P1 2.2.1).
        key_env: environment variable with the endpoint's key; empty: none is sent.
        dimensions: length of the vectors, for models that offer a choice; 0: the model's own.
        batch_size: texts of one request.
        concurrency: requests at the same time.
        timeout: seconds for one request.
        retries: how often a request is sent again after errors that may pass.
        requests_per_minute: 0: no limit.

    Raises:
        UsageError: no address or no model is named.
    """

    keep = True
    local = True  # the endpoint does the work

    def __init__(
        self,
        url: str = "",
        model: str = "",
        key_env: str = "",
        dimensions: int = 0,
        batch_size: int = 64,
        concurrency: int = 4,
        timeout: float = 60.0,
        retries: int = 4,
        requests_per_minute: int = 0,
    ) -> None:
        if not url or not model:
            raise UsageError("embedder 'openai': url and model are required; nothing is sent unless they are named")
        if min(batch_size, concurrency) < 1 or dimensions < 0:
            raise UsageError("embedder 'openai': batch_size and concurrency start at 1, dimensions at 0")
        limits = {"timeout": timeout, "retries": retries, "requests_per_minute": requests_per_minute}
        endpoint = {"url": url, "model": model, "key_env": key_env, "concurrency": concurrency, **limits}
        self._client = Client(list_defaults(LlmTable) | endpoint)
        self._dimensions, self._batch, self._concurrency = dimensions, batch_size, concurrency
        self._width = dimensions
        self.identity = f"openai {url.rstrip('/')} {model} {dimensions}"

    def fit(self, texts: Sequence[str]) -> Remote:
        return self

    def encode(self, texts: Sequence[str]) -> Any:
        """Return a float32 array ``(len(texts), d)``. A text without letters and digits is not sent, and has zeros.

        Raises:
            EndpointError: a request got no usable answer after all tries.
            DataError: two answers differ in length, or no text has letters or digits and the length is not known yet.
        """
        numbers = [i for i, text in enumerate(texts) if any(c.isalnum() for c in text)]
        groups = [numbers[start : start + self._batch] for start in range(0, len(numbers), self._batch)]
        if not groups and not self._width:
            raise DataError(f"embedder 'openai': none of {len(texts)} texts has letters or digits")

        def request_vectors(group: Sequence[int]) -> Any:
            # A lone surrogate has no UTF-8.
            encodable = [texts[i].encode("utf-8", "replace").decode() for i in group]
            return self._client.embed(encodable, dimensions=self._dimensions)

        with ThreadPoolExecutor(self._concurrency) as pool:
            answers = list(pool.map(request_vectors, groups))
        widths = {len(v) for vectors in answers for v in vectors} | ({self._width} if self._width else set())
        if len(widths) != 1:
            raise DataError("embedder 'openai': the endpoint gave vectors of different lengths")
        (self._width,) = widths
        out = np.zeros((len(texts), self._width), np.float32)
        for group, vectors in zip(groups, answers, strict=True):
            out[group] = vectors
        return out
