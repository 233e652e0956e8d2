"""Named entity swapping: documents of a corpus exchange the names that would betray them (P1, arXiv 2505.21128).

>>> corpus = allonym.swap.load("calls/", protect="company")          # doctest: +SKIP
>>> releases = allonym.swap.search(corpus, seed=1)                   # doctest: +SKIP
>>> chosen = releases.best(utility_floor=0.9)                        # doctest: +SKIP
>>> print(releases.explain(chosen))                                  # doctest: +SKIP
>>> texts = releases.make(chosen).texts                              # doctest: +SKIP

Needs the extra ``swap``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from allonym.lazy import load_on_use

if TYPE_CHECKING:
    from allonym.swap.corpus import Chunk as Chunk
    from allonym.swap.corpus import Corpus as Corpus
    from allonym.swap.corpus import Slot as Slot
    from allonym.swap.corpus import Value as Value
    from allonym.swap.embedding import Embedder as Embedder
    from allonym.swap.embedding import open_embedder as open_embedder
    from allonym.swap.hyperparameters import grid as grid
    from allonym.swap.making import Made as Made
    from allonym.swap.making import make as make
    from allonym.swap.mixture import SphericalMixture as SphericalMixture
    from allonym.swap.reading import load as load
    from allonym.swap.release_search import search as search
    from allonym.swap.releases import Releases as Releases
    from allonym.swap.results import Attack as Attack
    from allonym.swap.results import Cluster as Cluster
    from allonym.swap.results import Outcome as Outcome
    from allonym.swap.results import Release as Release
    from allonym.swap.results import TableFit as TableFit
    from allonym.swap.risk import Task as Task
    from allonym.swap.risk import task_utility as task_utility
    from allonym.swap.run import Run as Run
    from allonym.swap.settings import Settings as Settings
    from allonym.swap.settings import presets as presets
    from allonym.swap.table import recoding as recoding
    from allonym.swap.table import tabulate as tabulate

__all__ = load_on_use(__name__, ("swapping", "swap", ("scipy", "sklearn", "jinja2")))
