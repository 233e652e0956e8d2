"""One swap from a corpus to everything that is written: search, choice, release, checks; what an interrupted one keeps.

Needs the extra ``swap``.
"""

from __future__ import annotations

import gc
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from allonym.files.output import Lines, PartFile
from allonym.intruder import Item
from allonym.policy import Policy
from allonym.swap.checks import item_before
from allonym.swap.corpus import Corpus
from allonym.swap.grid import Setting
from allonym.swap.grid import grid as grid_of
from allonym.swap.making import Made
from allonym.swap.reading import load, rewrite
from allonym.swap.releases import Releases
from allonym.swap.results import Release
from allonym.swap.search import search
from allonym.swap.settings import Settings
from allonym.swap.shards import Spread
from allonym.swap.task import labels_of, task_utility

Advance = Callable[[str, int, int], None]
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
"""What the stages are called where their progress is shown, in their order."""


@dataclass(frozen=True, slots=True)
class Result:
    """What a run found: all releases, the one that was made, and every number as plain values."""

    releases: Releases
    made: Made
    told: dict[str, Any] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Run:
    """One swap: what is read, how, and what is chosen.

    Attributes:
        source: file or folder.
        protect: the metadata key that nobody may guess.
        settings: of the search.
        policy: what is looked for, and what direct identifiers become.
        reading: further arguments of :func:`allonym.swap.load`.
        rule: arguments of :meth:`allonym.swap.Releases.best`.
        key: secret of keyed operators.
        seed: of all that is drawn.
        workers: processes that read; any number gives the same bytes.
        spread: who works instead, see :func:`allonym.scale.swap_workers`; None: this machine. The same bytes.
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
        """The corpus, or another, as these settings read it; by default the run's own."""
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
        """What intruders must know beside the settings: the endpoint of a language model."""
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
        """Every release, measured.

        Args:
            state: folder of finished parts, from which an interrupted search goes on.
            advance: called with (stage, done, of how many).
            label: metadata that a task will predict; what is wrong with it is told before the work.
            corpus: as :meth:`load` gave it; by default it is read.
        """
        corpus = self.load(advance=advance) if corpus is None else corpus
        gc.freeze()  # it stays to the end, and may be millions of objects to pass over each time
        if label:
            labels_of(corpus, label)
        return search(
            corpus,
            self.settings,
            seed=self.seed,
            progress=advance,
            state=state,
            workers=self.workers,
            spread=self.spread,
        )

    def best(self, found: Releases) -> tuple[Release, str]:
        """The release that the rule chooses, and why."""
        best = found.best(**self.rule)
        return best, found.why(best, **self.rule)

    def whole(
        self,
        found: Releases,
        *,
        background: Path | None = None,
        label: str | None = None,
        grid: bool = False,
        texts: bool = True,
        state: Path | None = None,
        advance: Advance | None = None,
    ) -> Result:
        """Choose, make, check.

        Args:
            found: of :meth:`search`.
            background: further texts that intruders learn from.
            label: metadata whose prediction tells the utility for a task.
            grid: say how the choice hangs on the settings.
            texts: the plain values may show words of the corpus.
            state, advance: as for :meth:`search`.
        """
        best, why = self.best(found)
        made = found.make(best, policy=self.policy, key=self.key, spread=self.spread)
        checks = None
        if self.settings.check.intruders:
            outside = [] if background is None else _background(self.load(source=background))
            checks = found.check(
                best,
                made=made,
                policy=self.policy,
                key=self.key,
                background=outside,
                options=self.intruder_options(),
                progress=_renamed(advance),
                spread=self.spread,
            )
        task = task_utility(found.corpus, label, found.space.raw, made.vectors) if label else None
        points: tuple[Setting, ...] = ()
        if grid:
            points = grid_of(
                lambda t: self.load(self.settings.with_({"read.threshold": t})),
                self.settings,
                seed=self.seed,
                progress=advance,
                state=state,
                workers=self.workers,
                spread=self.spread,
            )
        told = found.to_dict(
            made,
            chosen=best,
            why=why,
            attacks=checks.attacks if checks else (),
            guessed=checks.guessed() if checks else None,
            task=task,
            grid=points,
            texts=texts,
        )
        return Result(found, made, told)

    def write(
        self,
        found: Releases,
        made: Made,
        target: Path | None,
        *,
        plans: Path | None = None,
        originals: bool = False,
        beside: Mapping[Path, str] | None = None,
        overwrite: bool = False,
    ) -> None:
        """Every output whole, or none.

        Args:
            found, made: the releases, and the one to write.
            target: the corpus as released, in its own format.
            plans: file for a plan per document, as JSON lines; ``originals``: what was replaced too.
            beside: further files and what they hold; for their owner alone.
            overwrite: replace what exists.
        """
        parts: list[Lines | PartFile] = []
        try:
            if plans is not None:
                lines = Lines(plans, private=originals)
                parts.append(lines)
                for document, one in zip(found.corpus.documents, made.plans, strict=True):
                    told = {"id": document.id, **one.to_dict(originals=originals)}
                    lines.write(json.dumps(told, ensure_ascii=False))
            for path, text in (beside or {}).items():
                parts.append(part := PartFile(path))
                part.path.chmod(0o600)  # it may hold originals
                part.write(text.encode("utf-8", "backslashreplace"))
            if target is not None:
                policy, key = self.policy, self.key
                rewrite(found.corpus, self.source, target, made.plans, policy=policy, key=key, overwrite=overwrite)
            for part_ in parts:
                part_.finish()
        except BaseException:  # nothing half written stays
            for part_ in parts:
                part_.close(remove=True)
            raise


def _background(corpus: Corpus) -> list[tuple[Item, str]]:
    """Chunks of another corpus, as intruders see them, with the protected value of each."""
    return [(item_before(corpus, i), corpus.class_of(i)) for i in range(len(corpus.chunks))]


def _renamed(advance: Advance | None) -> Advance | None:
    """Progress of the checks: the stage is told with the intruder's name."""
    if advance is None:
        return None
    return lambda stage, done, total: advance("drawn" if stage == "draws" else f"check {stage}", done, total)
