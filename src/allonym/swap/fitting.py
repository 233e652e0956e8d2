"""From a corpus to the space in which exchanges are drawn and measured: vectors, covariates, mixture."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from allonym.errors import DataError, UsageError
from allonym.swap.corpus import Corpus
from allonym.swap.covariates import Residual, design, donor_groups, fit_residual
from allonym.swap.density import FAMILIES
from allonym.swap.embedding import Embedder, open_embedder
from allonym.swap.exchange import Ground, Rules
from allonym.swap.mixture import SphericalMixture
from allonym.swap.sampling import Space
from allonym.swap.selection import Fit, fit_all
from allonym.swap.settings import AUTO, Exchange, Mixture, Settings
from allonym.swap.shards import Spread

Advance = Callable[[str, int, int], None]
"""Progress: the stage's name, how much of it is done, of how much."""


@dataclass(frozen=True, slots=True)
class Embedded:
    """The corpus as vectors.

    Attributes:
        embedder: fitted; vectors: (n, d) unit rows, covariates taken out.
        raw: as the embedder gave them; taken: the covariates' effect, None where there are none.
    """

    embedder: Embedder
    raw: Any = field(repr=False)
    vectors: Any = field(repr=False)
    taken: Residual | None = field(repr=False, default=None)

    def __call__(self, texts: Sequence[str], chunks: Sequence[int]) -> tuple[Any, Any]:
        """Vectors of other texts of these chunks, as the embedder gives them and with the covariates taken out."""
        made = self.embedder.encode(list(texts))
        return made, made if self.taken is None else self.taken(made, chunks)


def embed(
    corpus: Corpus,
    settings: Settings,
    *,
    cache: Path | None = None,
    workers: int = 1,
    advance: Advance | None = None,
    spread: Spread | None = None,
) -> Embedded:
    """The vectors of the corpus's chunks.

    Args:
        cache: folder of vectors.
        workers: threads of the embedder.
        spread: who embeds, these texts and all further ones; None: this process.

    Raises:
        DataError: there are no chunks.
    """
    if not corpus.chunks:
        raise DataError("the corpus has no chunks; is the section that is read in these documents?")
    how = settings.embed
    options = {
        "model": how.model or None,
        "url": how.url or None,
        "key_env": how.key_env or None,
        "threads": workers if how.name == "encoder" and spread is None else None,
    }
    embedder = open_embedder(how.name, cache=cache, **options).over(spread)
    texts = [chunk.text for chunk in corpus.chunks]
    if advance is not None:
        advance("embed", 0, len(texts))
    embedder = embedder.fit(texts)
    told = None if advance is None else (lambda done: advance("embed", done, len(set(texts))))
    raw = embedder.encode(texts, progress=told)
    if not how.covariates or how.use != "residual":
        return Embedded(embedder, raw, raw)
    taken = fit_residual(raw, design(corpus, how.covariates))
    return Embedded(embedder, raw, taken(raw), taken)


def groups(corpus: Corpus, settings: Settings) -> tuple[str, ...] | None:
    """Per chunk the group in which its donors must be; None where the settings ask for none."""
    if not settings.embed.covariates or settings.embed.use != "donors":
        return None
    keys = [donor_groups(corpus, key) for key in settings.embed.covariates]
    return tuple("\x1f".join(parts) for parts in zip(*keys, strict=True))


def fit_mixtures(
    vectors: Any, how: Mixture, *, seed: int, advance: Advance | None = None, spread: Spread | None = None
) -> tuple[Fit, ...]:
    """Every mixture that the settings ask for, fitted; ``spread``: who works, None: threads of this process.

    Raises:
        UsageError: more components than chunks are asked for.
    """
    numbers = (how.clusters,) if how.clusters else how.candidates
    if numbers and max(numbers) > len(vectors):
        raise UsageError(
            f"mixture.clusters: {max(numbers)} components need as many chunks at least; there are {len(vectors)}"
        )
    return fit_all(
        vectors,
        numbers,
        FAMILIES if how.family == AUTO else (how.family,),
        advance=None if advance is None else lambda done, total: advance("mixture", done, total),
        spread=spread,
        min_weight=how.min_weight,
        start=how.start,
        restarts=how.restarts,
        max_iter=how.max_iter,
        tol=how.tol,
        batch_size=how.batch_size or None,
        shard_size=how.shard_size,
        seed=seed,
    )


def make_space(corpus: Corpus, embedded: Embedded, mixture: SphericalMixture, settings: Settings) -> Space:
    """Where exchanges are drawn and measured."""
    vectors = embedded.vectors
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
        rules=rules(settings.exchange, corpus.swapped),
        ground=Ground.of(corpus),
        groups=groups(corpus, settings),
        allowed=_concentrated(mixture.cosines_, settings.exchange.min_concentration),
    )


def rules(how: Exchange, categories: Sequence[str]) -> Rules:
    """The exchange's rules."""
    return Rules(
        categories=tuple(categories),
        need=how.need,
        partners=how.partners,
        counts=how.counts,
        unswapped_differ=how.unswapped_differ,
        agree=how.agree,
        differ=how.differ,
        returns=how.returns,
        weights=how.weights,
        temperature=how.temperature,
        fit=how.fit,
        min_fit=how.min_fit,
        min_cosine=how.min_cosine,
        count_penalty=how.count_penalty,
        rounds=how.rounds,
        target_share=how.target_share,
        cycles=how.cycles,
        beyond=how.beyond,
        max_swaps=how.swaps or None,
    )


def _concentrated(cosines: Any, least: float) -> frozenset[int] | None:
    """Clusters whose members have an expected cosine of ``least`` or more with the mean direction; None: all."""
    return None if least <= 0 else frozenset(int(k) for k in np.flatnonzero(cosines >= least))
