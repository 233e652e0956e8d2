"""From a corpus to the space in which exchanges are drawn and measured: vectors, covariates, mixture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from allonym.errors import DataError, UsageError
from allonym.swap.corpus import Advance, Corpus, ignore_progress
from allonym.swap.covariates import Residual, build_design, fit_residual, list_donor_groups
from allonym.swap.density import FAMILIES
from allonym.swap.embedding import Embedder, open_embedder
from allonym.swap.mixture import SphericalMixture
from allonym.swap.rows import Spread
from allonym.swap.sampling import Space
from allonym.swap.selection import Fit, fit_all
from allonym.swap.settings import AUTO, Exchange, Mixture, Settings
from allonym.swap.validity import Ground, Rules

NO_CHUNKS = "the corpus has no chunks; is the section that is read in these documents?"


@dataclass(frozen=True, slots=True)
class Embedded:
    """The corpus as vectors.

    Attributes:
        embedder: fitted; vectors: (n, d) unit rows without the covariates' effect.
        raw: as the embedder gave them; residual: removes the covariates' effect, None where there are none.
    """

    embedder: Embedder
    raw: Any = field(repr=False)
    vectors: Any = field(repr=False)
    residual: Residual | None = field(repr=False, default=None)

    def __call__(self, texts: Sequence[str], chunks: Sequence[int]) -> tuple[Any, Any]:
        """Return vectors of other texts of these chunks, as the embedder gives them and without the covariates."""
        raw = self.embedder.encode(list(texts))
        return raw, raw if self.residual is None else self.residual(raw, chunks)


def embed_corpus(
    corpus: Corpus,
    settings: Settings,
    *,
    cache: Path | None = None,
    workers: int = 1,
    advance: Advance = ignore_progress,
    spread: Spread | None = None,
) -> Embedded:
    """Compute the vectors of the corpus's chunks.

    Args:
        cache: folder of vectors.
        workers: threads of the embedder.
        spread: the workers that embed these texts and all further ones; None: this process.

    Raises:
        DataError: there are no chunks.
    """
    if not corpus.chunks:
        raise DataError(NO_CHUNKS)
    embed = settings.embed
    options: dict[str, object] = {name: getattr(embed, name) or None for name in ("model", "url", "key_env")}
    options["threads"] = workers if embed.name == "encoder" and spread is None else None
    embedder = open_embedder(embed.name, cache=cache, **options).over(spread)
    texts = [chunk.text for chunk in corpus.chunks]
    advance("embed", 0, len(texts))
    embedder = embedder.fit(texts)
    raw = embedder.encode(texts, progress=lambda count: advance("embed", count, len(set(texts))))
    if not embed.covariates or embed.use != "residual":
        return Embedded(embedder, raw, raw)
    residual = fit_residual(raw, build_design(corpus, embed.covariates))
    return Embedded(embedder, raw, residual(raw), residual)


def _list_chunk_groups(corpus: Corpus, settings: Settings) -> tuple[str, ...] | None:
    """Return per chunk the group in which its donors must be; None where the settings ask for none."""
    if not settings.embed.covariates or settings.embed.use != "donors":
        return None
    keys = [list_donor_groups(corpus, key) for key in settings.embed.covariates]
    return tuple("\x1f".join(parts) for parts in zip(*keys, strict=True))


def fit_mixtures(
    vectors: Any,
    settings: Mixture,
    *,
    seed: int,
    advance: Advance = ignore_progress,
    spread: Spread | None = None,
) -> tuple[Fit, ...]:
    """Fit every mixture that the settings ask for; ``spread``: the workers, None: threads of this process.

    Raises:
        UsageError: more components than chunks are asked for.
    """
    numbers = (settings.clusters,) if settings.clusters else settings.candidates
    if numbers and max(numbers) > len(vectors):
        need = f"{max(numbers)} components need as many chunks at least"
        raise UsageError(f"mixture.clusters: {need}; there are {len(vectors)}")
    families = FAMILIES if settings.family == AUTO else (settings.family,)
    names = ("min_weight", "start", "restarts", "max_iter", "tol", "shard_size")
    options = {name: getattr(settings, name) for name in names} | {"batch_size": settings.batch_size or None}
    return fit_all(vectors, numbers, families, advance=partial(advance, "mixture"), spread=spread, seed=seed, **options)


def make_space(corpus: Corpus, embedded: Embedded, mixture: SphericalMixture, settings: Settings) -> Space:
    """Return the space in which exchanges are drawn and measured."""
    vectors, least = embedded.vectors, settings.exchange.min_concentration
    labels = np.asarray(mixture.predict(vectors))
    before = np.asarray(mixture.component_log_density(vectors, labels), np.float64)
    return Space(
        corpus=corpus,
        raw=embedded.raw,
        vectors=vectors,
        embed=embedded,
        mixture=mixture,
        labels=labels,
        before=before,
        total=float(before.sum()),
        rules=make_rules(settings.exchange, corpus.swapped),
        ground=Ground.of(corpus),
        groups=_list_chunk_groups(corpus, settings),
        allowed=None if least <= 0 else frozenset(int(k) for k in np.flatnonzero(mixture.cosines_ >= least)),
    )


def make_rules(settings: Exchange, categories: Sequence[str]) -> Rules:
    """Return the rules of an exchange of these categories by the settings."""
    return Rules(**{f.name: getattr(settings, f.name) for f in fields(settings)}, categories=tuple(categories))
