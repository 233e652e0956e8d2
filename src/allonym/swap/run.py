"""One swap from a corpus to its outputs: search, choice, release, checks; and the state of an interrupted one.

Needs the extra ``swap``.
"""

from __future__ import annotations

import gc
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from allonym.files.output import LinesFile
from allonym.intruder import Item
from allonym.partfile import PartFile
from allonym.policy import Policy
from allonym.swap.checks import make_intruder_item
from allonym.swap.corpus import Advance, Corpus
from allonym.swap.forms import list_piece_places, write_pieces
from allonym.swap.hyperparameters import Setting
from allonym.swap.hyperparameters import grid as search_grid
from allonym.swap.making import Made
from allonym.swap.reading import load, rewrite
from allonym.swap.release_search import search
from allonym.swap.releases import Releases
from allonym.swap.results import Release
from allonym.swap.risk import list_metadata_values, task_utility
from allonym.swap.rows import Spread
from allonym.swap.settings import Settings

STAGES: Mapping[str, str] = {
    "read": "reading",
    "embed": "vectors",
    "mixture": "clusters",
    "tables": "tables",
    "sequences": "exchanges",
    "drawn": "releases",
    "check entities": "intruder 1",
    "check words": "intruder 2",
    "grid": "grid",
}
"""The stages, in order, with their names for a display of progress."""


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a run: all releases, the one that was made, and every number as plain values."""

    releases: Releases
    made: Made
    values: dict[str, Any] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Run:
    """One swap: its source, how it is read, and the choice.

    Attributes:
        source: file or folder.
        protect: the metadata key that nobody may guess.
        settings: of the search.
        policy: of detection, and of direct identifiers.
        reading: further arguments of :func:`allonym.swap.load`.
        rule: arguments of :meth:`allonym.swap.Releases.best`.
        key: secret of keyed operators.
        seed: of all random choices.
        workers: processes that read; any number gives the same bytes.
        spread: other workers, see :func:`allonym.scale.swap_workers`; None: this machine. The same bytes.
    """

    source: str | Path
    protect: str
    settings: Settings
    policy: str | Path | Policy = "swap"
    reading: Mapping[str, Any] = field(default_factory=dict)
    rule: Mapping[str, float] = field(default_factory=dict)
    key: bytes | str | None = field(default=None, repr=False)
    seed: int = 0
    workers: int = 1
    spread: Spread | None = field(default=None, repr=False)

    def load(
        self, settings: Settings | None = None, advance: Advance | None = None, source: str | Path | None = None
    ) -> Corpus:
        """Read the corpus, or another one in the same way; by default with the run's settings."""
        return load(
            source or self.source,
            self.protect,
            settings=settings or self.settings,
            policy=self.policy,
            key=self.key,
            workers=self.workers,
            progress=advance,
            spread=self.spread,
            **self.reading,
        )

    def intruder_options(self) -> dict[str, dict[str, object]]:
        """Return the options of intruders beside the settings: the endpoint of a language model."""
        if "llm" not in self.settings.check.intruders:
            return {}
        return {"llm": {"settings": Policy.load(self.policy).llm}}

    def search(
        self,
        state: Path | None = None,
        advance: Advance | None = None,
        *,
        label: str | None = None,
        corpus: Corpus | None = None,
    ) -> Releases:
        """Measure every release.

        Args:
            state: folder of finished parts, from which an interrupted search goes on.
            advance: called with (stage, done, total).
            label: metadata that a task will predict; it is checked before the work begins.
            corpus: as :meth:`load` returned it; by default it is read.
        """
        corpus = self.load(advance=advance) if corpus is None else corpus
        gc.freeze()  # it stays to the end, and may be millions of objects to pass over each time
        if label:
            list_metadata_values(corpus, label)
        return search(corpus, self.settings, **self._search_options(state, advance))

    def _search_options(self, state: Path | None, advance: Advance | None) -> dict[str, Any]:
        workers = {"workers": self.workers, "spread": self.spread}
        return {"seed": self.seed, "progress": advance, "state": state, **workers}

    def best(self, releases: Releases) -> tuple[Release, str]:
        """Return the release that the rule chooses, and why."""
        best = releases.best(**self.rule)
        return best, releases.why(best, **self.rule)

    def whole(
        self,
        releases: Releases,
        *,
        background: Path | None = None,
        label: str | None = None,
        grid: bool = False,
        texts: bool = True,
        state: Path | None = None,
        advance: Advance | None = None,
    ) -> Result:
        """Choose a release, write its texts, and let intruders check it.

        Args:
            releases: of :meth:`search`.
            background: further texts that intruders learn from.
            label: metadata whose prediction gives the utility for a task.
            grid: whether to search over a grid of settings too.
            texts: whether the plain values may hold words of the corpus.
            state, advance: as for :meth:`search`.
        """
        best, why = self.best(releases)
        corpus = releases.make(best, policy=self.policy, key=self.key, spread=self.spread)
        checks = None
        if self.settings.check.intruders:
            outside: list[tuple[Item, str]] = []
            if background is not None:
                other = self.load(source=background)
                outside = [(make_intruder_item(other, i), other.class_of(i)) for i in range(len(other.chunks))]
            checks = releases.check(
                best,
                made=corpus,
                policy=self.policy,
                key=self.key,
                background=outside,
                options=self.intruder_options(),
                progress=advance,
                spread=self.spread,
            )
        documents = {}
        if checks is not None:
            documents[best.index] = next(row for row in checks.panel.rows if row.name == "document")
            for one_more in releases.select_frontier(self.settings.check.frontier, best):
                documents[one_more.index] = releases.find_documents(one_more, policy=self.policy, key=self.key)
        task = task_utility(releases.corpus, label, releases.space.raw, corpus.vectors) if label else None
        points: tuple[Setting, ...] = ()
        if grid:
            points = search_grid(
                lambda t: self.load(self.settings.with_({"read.threshold": t})),
                self.settings,
                **self._search_options(state, advance),
            )
        values = releases.to_dict(
            corpus,
            chosen=best,
            why=why,
            attacks=checks.attacks if checks else (),
            panel=checks.panel if checks else None,
            guessed=checks.guessed() if checks else None,
            documents=documents,
            task=task,
            grid=points,
            texts=texts,
        )
        return Result(releases, corpus, values)

    def write(
        self,
        releases: Releases,
        made: Made,
        target: Path | None,
        *,
        plans: Path | None = None,
        originals: bool = False,
        beside: Mapping[Path, str] | None = None,
        overwrite: bool = False,
    ) -> None:
        """Write every output completely, or none.

        Args:
            releases, made: the releases, and the one to write.
            target: the corpus as released, in its own format; pieces of documents as JSON lines.
            plans: file for a plan per document, as JSON lines, with the ids of its pieces and where they stand in it;
                ``originals``: with the replaced text.
            beside: further files and their content; for their owner alone.
            overwrite: replace existing files.
        """
        parts: list[LinesFile | PartFile] = []
        try:
            if plans is not None:
                lines = LinesFile(plans, private=originals or made.pieces is not None)
                parts.append(lines)
                places = list_piece_places(releases.corpus, made.pieces)
                for number, (document, plan) in enumerate(zip(releases.corpus.documents, made.plans, strict=True)):
                    row = {"id": document.id, **plan.to_dict(originals=originals)}
                    if made.pieces is not None:
                        row["pieces"] = places.get(number, [])
                    lines.write(json.dumps(row, ensure_ascii=False))
            for path, text in (beside or {}).items():
                parts.append(part := PartFile(path, private=True))  # it may hold originals
                part.write(text.encode("utf-8", "backslashreplace"))
            if target is not None and made.pieces is not None:
                write_pieces(made.pieces, target, overwrite=overwrite)
            elif target is not None:
                policy, key = self.policy, self.key
                rewrite(releases.corpus, self.source, target, made.plans, policy=policy, key=key, overwrite=overwrite)
            for part_ in parts:
                part_.finish()
        except BaseException:  # no partial file stays
            for part_ in parts:
                part_.close(remove=True)
            raise
