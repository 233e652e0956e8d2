"""A release made: the texts of one draw, what stands in them, and what the exchange and the fall-backs did."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np

from allonym.errors import UnknownNameError
from allonym.keys import subkey
from allonym.plan import Plan
from allonym.policy import Policy
from allonym.stats import Estimate
from allonym.swap import checks
from allonym.swap.checks import Changed, Checks
from allonym.swap.corpus import Corpus, Placed, Slot
from allonym.swap.exchange import Sequence as Swaps
from allonym.swap.results import Outcome, Release
from allonym.swap.sampling import Grid, Moved, draw, measured, moved
from allonym.swap.shards import Here, Spread
from allonym.swap.state import corpus_digest
from allonym.swap.utility import STAND_IN
from allonym.swap.writing import Written, write

if TYPE_CHECKING:
    from allonym.intruder import Item
    from allonym.swap.releases import Releases

MODEL = "llm"
"""The intruder that the settings' keys ``llm_...`` are for."""

_WORD = re.compile(r"\w+|[^\w\s]")


@dataclass(frozen=True, slots=True, repr=False)
class Made:
    """One draw of a release, written out.

    Attributes:
        release: what it is a draw of; draw: its number; swaps: how many were made.
        sequence: all swaps of the draw, of which the first ``swaps`` count.
        placed: slot to the slot whose entity stands there.
        written: plans and texts, see :class:`allonym.swap.writing.Written`.
        vectors: (n, d) of all chunks as released, covariates in them.
        outcomes: one per chunk that is not what it was.
        numbers: what the whole, fall-backs included, did: see :func:`make`.
    """

    release: Release
    draw: int
    swaps: int
    sequence: Swaps
    placed: Mapping[Slot, Slot] = field(repr=False)
    written: Written
    vectors: Any = field(repr=False)
    outcomes: tuple[Outcome, ...] = field(repr=False)
    numbers: Mapping[str, Any] = field(repr=False)

    def __repr__(self) -> str:
        return f"Made(release {self.release.index}, draw {self.draw}, {len(self.outcomes)} chunks changed)"

    @property
    def texts(self) -> tuple[str, ...]:
        """The released documents."""
        return tuple(self.written.texts)

    @property
    def plans(self) -> tuple[Plan, ...]:
        """One plan per document, from its original text to the released one."""
        return tuple(self.written.plans)


def make(
    releases: Releases,
    release: Release,
    *,
    draw: int = 0,
    policy: str | Policy | None = None,
    key: bytes | str | None = None,
    spread: Spread | None = None,
    **options: Any,
) -> Made:
    """Draw a release and write its texts.

    Args:
        releases: of :func:`allonym.swap.search`.
        release: the one that was chosen.
        draw: number of the draw; those below ``settings.search.draws`` are the ones that were measured.
        policy: what the fall-backs follow; by default the one that the corpus was read with.
        key: secret of keyed fall-backs; by default one that follows from the corpus and the seed.
        spread: who draws, see :func:`allonym.scale.swap_workers`; None: this process. The same release.
        options: further ones of :func:`allonym.swap.writing.write`.

    Returns:
        :class:`Made`, whose ``numbers`` hold, fall-backs included: ``utility``, ``distance``, ``cosine`` of the changed
        chunks, and ``flags``; chunks ``changed``, of these ``exchanged``, and those ``holding`` an entity of the
        release's categories; ``swaps``; ``words`` changed, as a share; ``uniques`` of the release's table that
        lost an entity of its categories, with ``risk`` and ``remaining`` by population size; ``entities`` and those
        ``moved``, by category; how many have ``fallen`` back, by what became of them; chunks ``left``, by reason.
    """
    corpus = releases.corpus
    one = _written(releases, release, draw, policy, key, options, spread)
    texts = one.texts(corpus)
    now = moved(releases.space, texts)
    vectors = np.array(releases.space.raw)
    vectors[now.chunks] = now.raw
    outcomes = _outcomes(releases, one, now)
    numbers = _numbers(releases, release, one, texts, now)
    return Made(release, draw, one.swaps, one.sequence, one.placed, one.written, vectors, outcomes, numbers)


@dataclass(frozen=True, slots=True)
class _One:
    """A draw, written."""

    swaps: int
    sequence: Swaps
    placed: Mapping[Slot, Slot]
    written: Written

    def texts(self, corpus: Corpus) -> dict[int, str]:
        """Chunk to its text, of those that are not what they were."""
        return {i: new.text for i, new in enumerate(self.written.chunk_texts) if new.text != corpus.chunks[i].text}


def _written(
    releases: Releases,
    release: Release,
    number: int,
    policy: str | Policy | None,
    key: bytes | str | None,
    options: Mapping[str, Any],
    spread: Spread | None = None,
) -> _One:
    corpus, settings = releases.corpus, releases.settings
    swaps, sequence = sequence_of(releases, release, number, spread)
    placed = sequence.placed(swaps)
    fallback = {c: settings.fallback_for(c) for c in corpus.swapped}
    chosen = Policy.load(policy or settings.read.policy or "swap")
    secret = key or own_key(corpus, releases.seed)
    written = write(corpus, placed, policy=chosen, fallback=fallback, key=secret, **options)
    return _One(swaps, sequence, placed, written)


def own_key(corpus: Corpus, seed: int) -> bytes:
    """A key for fall-backs where none is given: 32 bytes that nobody can tell who does not hold the originals."""
    return blake2b(f"{seed} {corpus_digest(corpus)}".encode(), digest_size=32, person=b"swap fall-backs").digest()


def sequence_of(releases: Releases, release: Release, number: int, spread: Spread | None = None) -> tuple[int, Swaps]:
    """A draw of a release: how many swaps of its sequence, and the sequence."""
    from allonym.swap.search import seed_of

    settings = releases.settings
    sequence = draw(releases.space, release.categories, seed_of(releases.seed, release.categories, number), spread)
    prefixes = Grid(settings.exchange.swaps, settings.search.points).prefixes(len(sequence.swaps))
    step = min(releases.places[release.index].step, len(prefixes) - 1)
    return (prefixes[step] if prefixes else 0), sequence


def check(
    releases: Releases,
    release: Release,
    *,
    made: Made | None = None,
    background: Sequence[tuple[Item, str]] = (),
    options: Mapping[str, Mapping[str, object]] | None = None,
    progress: Callable[[str, int, int], object] | None = None,
    policy: str | Policy | None = None,
    key: bytes | str | None = None,
    spread: Spread | None = None,
    **how: Any,
) -> Checks:
    """See :meth:`allonym.swap.releases.Releases.check`."""
    settings = releases.settings.check
    secret = key or own_key(releases.corpus, releases.seed)
    own = None if made is None else made.draw
    others = [number for number in range(settings.runs) if number != own]
    drawn = (spread or Here()).each(_drawn, (releases, release, policy, secret, how), others)
    runs = []
    for number in range(settings.runs):
        if made is not None and number == own:
            runs.append(_changed(releases, _One(made.swaps, made.sequence, made.placed, made.written)))
        else:
            runs.append(next(drawn))
        if progress is not None:
            progress("draws", number + 1, settings.runs)
    return checks.check(
        releases.corpus,
        runs,
        settings.intruders,
        background=background,
        options=_options(releases, options, secret),
        most={MODEL: settings.llm_runs} if settings.llm_runs and MODEL in settings.intruders else None,
        folds=settings.folds,
        seed=releases.seed,
        progress=progress,
    )


def _drawn(common: tuple[Releases, Release, str | Policy | None, bytes | str, dict[str, Any]], number: int) -> Changed:
    releases, release, policy, secret, how = common
    return _changed(releases, _written(releases, release, number, policy, secret, how))


def _changed(releases: Releases, one: _One) -> Changed:
    texts = one.texts(releases.corpus)
    return Changed(texts, one.placed, {i: one.written.chunk_texts[i].marks for i in texts})


def _options(
    releases: Releases, given: Mapping[str, Mapping[str, object]] | None, secret: bytes | str
) -> dict[str, Mapping[str, object]]:
    """The intruders' options: what the settings say of a language model, and above it what is given."""
    how, corpus = releases.settings.check, releases.corpus
    out = dict(given or {})
    if MODEL in how.intruders:
        own: dict[str, object] = {
            "subject": corpus.protect.replace("_", " "),
            "kind": how.llm_kind,
            "reply": how.llm_reply,
            "listed": how.llm_listed,
            "aliases": _aliases(corpus, how.llm_aliases),
            "key": subkey(secret, "llm cache"),
        }
        out[MODEL] = {**own, **out.get(MODEL, {})}
    return out


def _aliases(corpus: Corpus, keys: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Protected value to its documents' values of these metadata keys.

    Raises:
        UnknownNameError: no document has such metadata.
    """
    found: dict[str, dict[str, None]] = {}
    for key in keys:
        if all(document.meta.get(key) is None for document in corpus.documents):
            known = {str(k) for document in corpus.documents for k in document.meta}
            raise UnknownNameError("metadata key", key, sorted(known), "check.llm_aliases")
        for document, own in zip(corpus.documents, corpus.classes, strict=True):
            value = document.meta.get(key)
            several = value if isinstance(value, (list, tuple)) else (value,)
            found.setdefault(own, {}).update(dict.fromkeys(str(v) for v in several if v is not None))
    return {own: tuple(names) for own, names in found.items()}


def _outcomes(releases: Releases, one: _One, now: Moved) -> tuple[Outcome, ...]:
    corpus, space = releases.corpus, releases.space
    partners: dict[int, dict[int, None]] = {}
    for slot, donor in sorted(one.placed.items()):
        partners.setdefault(slot.chunk, {})[donor.chunk] = None
    out = []
    for chunk, after, cosine in zip(now.chunks.tolist(), now.after.tolist(), now.cosines.tolist(), strict=True):
        this, new = corpus.chunks[chunk], one.written.chunk_texts[chunk]
        out.append(
            Outcome(
                document=this.document,
                chunk=chunk,
                cluster=int(space.labels[chunk]),
                before=this.text,
                after=new.text,
                marks=tuple(new.marks),
                marks_before=tuple(new.marks_before),
                partners=tuple(partners.get(chunk, ())),
                cosine=cosine,
                distance=after - float(space.before[chunk]),
            )
        )
    return tuple(out)


def _numbers(
    releases: Releases,
    release: Release,
    one: _One,
    texts: Mapping[int, str],
    now: Moved,
) -> dict[str, Any]:
    corpus = releases.corpus
    changed = set(texts)
    holding = sum(any(v.category in release.categories for v in chunk.values) for chunk in corpus.chunks)
    entities = Counter(v.category for chunk in corpus.chunks for v in chunk.values if v.category in corpus.swapped)
    gone = Counter(corpus.chunks[slot.chunk].values[slot.value].category for slot in one.placed)
    value = measured(releases.space, now)
    if not value.misleading and any(STAND_IN in flag for r in releases.releases for flag in r.flags):
        # on the scale of the releases
        value = replace(value, value=value.kept, flags=(*value.flags, f"as for all releases: {STAND_IN}"))
    alone = changed & releases.uniques[release.categories]
    m = sum(_touched(corpus, i, texts[i], one.placed, release.categories) for i in alone)
    risks = releases.risks[release.categories]
    bounded = releases.settings.search.risk == "bounded"
    return {
        "utility": value.value,
        "distance": value.distance,
        "cosine": float(now.cosines.mean()) if len(now.cosines) else 1.0,
        "flags": list(value.flags),
        "changed": len(changed),
        "exchanged": len(one.sequence.changed(one.swaps)),
        "holding": holding,
        "swaps": one.swaps,
        "words": changed_words(corpus, texts),
        "uniques": m,
        "risk": {n: (r.bounded_after(m) if bounded else r.after(m)) for n, r in risks.items()},
        "remaining": {n: r.remaining(m) for n, r in risks.items()},
        "entities": {c: entities[c] for c in corpus.swapped},
        "moved": {c: gone[c] for c in corpus.swapped},
        "fallen": dict(one.written.fallen),
        "left": dict(one.sequence.left),
    }


def _touched(corpus: Corpus, chunk: int, text: str, placed: Placed, categories: Sequence[str]) -> bool:
    """Whether an entity of these categories left the chunk: it was exchanged, or a fall-back took it."""
    own = ((Slot(chunk, at), v) for at, v in enumerate(corpus.chunks[chunk].values) if v.category in categories)
    return any(slot in placed or not checks.stands(value.forms, text) for slot, value in own)


def changed_words(corpus: Corpus, texts: Mapping[int, str]) -> Estimate:
    """The share of the corpus's words that are others after the exchange; a word is a run of letters, or a sign.

    Args:
        texts: chunk to its new text.
    """
    total = changed = 0
    for i, chunk in enumerate(corpus.chunks):
        before = _WORD.findall(chunk.text)
        total += len(before)
        if i in texts and texts[i] != chunk.text:
            changed += _different(before, _WORD.findall(texts[i]))
    return Estimate.exact(changed / total if total else 0.0, total)


def _different(before: list[str], after: list[str]) -> int:
    moves = SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    return sum(max(i2 - i1, j2 - j1) for tag, i1, i2, j1, j2 in moves if tag != "equal")
