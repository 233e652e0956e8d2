"""Vectors from an endpoint for embeddings: OpenAI, vLLM, Ollama, the llama.cpp server and the like.

Texts leave the machine, so nothing is sent unless an address is named; a failure stops the run.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from allonym.errors import DataError, UsageError
from allonym.llm import Client
from allonym.registry import LLM_KEYS


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
        self._client = Client({name: key.default for name, key in LLM_KEYS.items()} | endpoint)
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
