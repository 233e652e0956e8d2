"""A written release: the texts of one draw, their entities, and what the exchange and the fall-backs changed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from allonym.plan import Plan
from allonym.policy import Policy
from allonym.stats import Estimate
from allonym.swap.corpus import Corpus, Placed, digest_corpus
from allonym.swap.exchange import Sequence as Swaps
from allonym.swap.forms import Piece, check_edits, group_chunks, make_pieces
from allonym.swap.results import Outcome, Release
from allonym.swap.risk import STAND_IN
from allonym.swap.rows import Spread
from allonym.swap.space import (
    Moved,
    derive_seed,
    draw_sequence,
    embed_chunk_versions,
    list_prefix_lengths,
    measure_utility,
)
from allonym.swap.writing import Written, is_any_form_in_text, write

if TYPE_CHECKING:
    from allonym.swap.releases import Releases

_WORD = re.compile(r"\w+|[^\w\s]")


@dataclass(frozen=True, slots=True, repr=False)
class WrittenDraw:
    """A draw and its texts: the first ``swaps`` of the sequence, which put entities where ``placed`` says.

    Attributes:
        pieces: what is released, as the settings' ``release`` say; None: whole documents.
    """

    swaps: int
    sequence: Swaps
    placed: Placed
    written: Written
    pieces: tuple[Piece, ...] | None

    def name_piece_of_chunks(self, count: int) -> list[str | None] | None:
        """Return the id of the piece that each of so many chunks is in; None for one that is not released. None
        where whole documents are released."""
        if self.pieces is None:
            return None
        id_of = {chunk: piece.id for piece in self.pieces for chunk in piece.chunks}
        return [id_of.get(chunk) for chunk in range(count)]


@dataclass(frozen=True, slots=True, repr=False)
class Made(WrittenDraw):
    """One draw of a release, written out.

    Attributes:
        release: the release that was drawn; draw: number of the draw; swaps: how many were made.
        sequence: all swaps of the draw, of which the first ``swaps`` count.
        placed: slot to the slot whose entity takes its place.
        pieces: the released pieces by their ids, or None.
        written: plans and texts, see :class:`allonym.swap.writing.Written`.
        vectors: (n, d) of all chunks as released, with covariates.
        outcomes: one per changed chunk.
        numbers: the effect of exchange and fall-backs together: see :func:`make`.
    """

    release: Release
    draw: int
    vectors: Any
    outcomes: tuple[Outcome, ...]
    numbers: Mapping[str, Any]

    def __repr__(self) -> str:
        return f"Made(release {self.release.index}, draw {self.draw}, {len(self.outcomes)} chunks changed)"

    @property
    def texts(self) -> tuple[str, ...]:
        """The documents as written, whole."""
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
    policy: str | Path | Policy | None = None,
    key: bytes | str | None = None,
    spread: Spread | None = None,
    **options: Any,
) -> Made:
    """Draw a release and write its texts.

    Args:
        releases: of :func:`allonym.swap.search`.
        release: the one that was chosen.
        draw: number of the draw; those below ``settings.search.draws`` are the ones that were measured.
        policy: of the fall-backs; by default the one that the corpus was read with.
        key: secret of keyed fall-backs; by default one that is derived from the corpus and the seed.
        spread: the workers that draw, see :func:`allonym.scale.swap_workers`; None: this process. The same release.
        options: further ones of :func:`allonym.swap.writing.write`.

    Returns:
        :class:`Made`, whose ``numbers`` hold, fall-backs included: ``utility``, ``distance``, ``cosine`` of the changed
        chunks, and ``flags``; chunks ``changed``, of these ``exchanged``, and those ``holding`` an entity of the
        release's categories; ``swaps``; ``words`` changed, as a share; ``uniques`` of the release's table that
        lost an entity of its categories, with ``risk`` and ``remaining`` by population size; ``entities`` and those
        ``moved``, by category; how many have ``fallen`` back, by treatment; chunks ``left``, by reason.
    """
    corpus = releases.corpus
    drawn = draw_and_write_release(releases, release, draw, policy, key, spread, **options)
    texts = map_changed_chunk_texts(corpus, drawn.written)
    moved = embed_chunk_versions(releases.space, sorted(texts.items()))
    vectors = np.array(releases.space.raw)
    vectors[moved.chunks] = moved.raw
    outcomes = tuple(_iterate_outcomes(releases, drawn, moved))
    numbers = _collect_measures(releases, release, drawn, texts, moved)
    parts = (drawn.swaps, drawn.sequence, drawn.placed, drawn.written, drawn.pieces)
    return Made(*parts, release, draw, vectors, outcomes, numbers)


def map_changed_chunk_texts(corpus: Corpus, written: Written) -> dict[int, str]:
    """Return chunk to its new text, of those that changed."""
    return {i: new.text for i, new in enumerate(written.chunk_texts) if new.text != corpus.chunks[i].text}


def draw_and_write_release(
    releases: Releases,
    release: Release,
    number: int,
    policy: str | Path | Policy | None,
    key: bytes | str | None,
    spread: Spread | None = None,
    **options: Any,
) -> WrittenDraw:
    """Draw a release, with fall-backs by a policy, and write it; see :func:`make`."""
    corpus, settings = releases.corpus, releases.settings
    swaps, sequence = draw_release_sequence(releases, release, number, spread)
    placed = sequence.map_slots_to_donors(swaps)
    fallback = {c: settings.fallback_for(c) for c in corpus.swapped}
    chosen = Policy.load(policy or settings.read.policy or "swap")
    secret = key or derive_fallback_key(corpus, releases.seed)
    if "generalise" in fallback.values():
        options.setdefault("fluency", releases.space.ground.get_fluency())
    if settings.release.form == "documents":
        written = write(corpus, placed, policy=chosen, fallback=fallback, key=secret, **options)
        return WrittenDraw(swaps, sequence, placed, written, None)
    check_edits(corpus)
    groups = group_chunks(corpus, settings.release)
    written = write(corpus, placed, policy=chosen, fallback=fallback, key=secret, groups=groups, **options)
    texts = [chunk.text for chunk in written.chunk_texts]
    is_all = settings.release.form != "changed"
    released = set(range(len(texts))) if is_all else map_changed_chunk_texts(corpus, written).keys()
    form = settings.release
    draw = f"{digest_corpus(corpus)} {releases.seed} {form.form} {form.part} {release.index} {number}"
    pieces = make_pieces(groups, texts, released=released, policy=chosen, key=secret, draw=draw)
    return WrittenDraw(swaps, sequence, placed, written, pieces)


def derive_fallback_key(corpus: Corpus, seed: int) -> bytes:
    """Return a key for fall-backs if none is given: 32 bytes that only the owner of the originals can compute."""
    return blake2b(f"{seed} {digest_corpus(corpus)}".encode(), digest_size=32, person=b"swap fall-backs").digest()


def draw_release_sequence(
    releases: Releases, release: Release, number: int, spread: Spread | None = None
) -> tuple[int, Swaps]:
    """Return a draw of a release: the number of swaps of its sequence, and the sequence."""
    categories = release.categories
    sequence = draw_sequence(releases.space, categories, derive_seed(releases.seed, categories, number), spread)
    prefixes = list_prefix_lengths(len(sequence.swaps), releases.settings)
    return (prefixes[min(release.step, len(prefixes) - 1)] if prefixes else 0), sequence


def _iterate_outcomes(releases: Releases, drawn: WrittenDraw, moved: Moved) -> Iterator[Outcome]:
    corpus, space = releases.corpus, releases.space
    partners: dict[int, dict[int, None]] = {}
    for slot, donor in sorted(drawn.placed.items()):
        partners.setdefault(slot.chunk, {})[donor.chunk] = None
    for chunk, after, cosine in zip(moved.chunks.tolist(), moved.after.tolist(), moved.cosines.tolist(), strict=True):
        original, new = corpus.chunks[chunk], drawn.written.chunk_texts[chunk]
        yield Outcome(
            document=original.document,
            chunk=chunk,
            cluster=int(space.labels[chunk]),
            before=original.text,
            after=new.text,
            marks=tuple((*mark,) for mark in new.marks),
            marks_before=tuple((*mark,) for mark in new.marks_before),
            partners=tuple(partners.get(chunk, ())),
            cosine=cosine,
            distance=after - float(space.before[chunk]),
        )


def _collect_measures(
    releases: Releases, release: Release, drawn: WrittenDraw, texts: Mapping[int, str], moved: Moved
) -> dict[str, Any]:
    corpus, categories = releases.corpus, release.categories
    entities = Counter(v.category for chunk in corpus.chunks for v in chunk.values if v.category in corpus.swapped)
    exchanged = Counter(corpus.value_at(slot).category for slot in drawn.placed)
    utility = measure_utility(releases.space, moved)
    if not utility.misleading and any(STAND_IN in flag for r in releases.releases for flag in r.flags):
        # on the scale of the releases
        utility = replace(utility, value=utility.kept, flags=(*utility.flags, f"as for all releases: {STAND_IN}"))
    candidate = releases.candidates[categories]
    uniques = texts.keys() & candidate.uniques
    slots = {i: [(s, v) for s, v in corpus.slots_of(i) if v.category in categories] for i in uniques}
    m = sum(  # those that lost an entity: it was exchanged, or a fall-back removed it
        any(s in drawn.placed or not is_any_form_in_text(v.forms, texts[i]) for s, v in slots[i]) for i in uniques
    )
    risks = candidate.risks
    return {
        "utility": utility.value,
        "distance": utility.distance,
        "cosine": float(moved.cosines.mean()) if len(moved.cosines) else 1.0,
        "flags": list(utility.flags),
        "changed": len(texts),
        "exchanged": len(drawn.sequence.changed(drawn.swaps)),
        "holding": sum(any(v.category in categories for v in chunk.values) for chunk in corpus.chunks),
        "swaps": drawn.swaps,
        "words": estimate_changed_word_share(corpus, texts),
        "uniques": m,
        "risk": {n: (r.bounded_after(m) if releases.is_bounded else r.after(m)) for n, r in risks.items()},
        "remaining": {n: r.remaining(m) for n, r in risks.items()},
        "entities": {c: entities[c] for c in corpus.swapped},
        "moved": {c: exchanged[c] for c in corpus.swapped},
        "fallen": dict(drawn.written.fallen),
        "left": dict(drawn.sequence.left),
    }


def estimate_changed_word_share(corpus: Corpus, texts: Mapping[int, str]) -> Estimate:
    """Return the share of the corpus's words that the exchange changes; a word is a run of letters, or a sign.

    Args:
        texts: chunk to its new text.
    """
    total = changed = 0
    for i, chunk in enumerate(corpus.chunks):
        before = _WORD.findall(chunk.text)
        total += len(before)
        if i in texts and texts[i] != chunk.text:
            matcher = SequenceMatcher(None, before, _WORD.findall(texts[i]), autojunk=False)
            blocks = matcher.get_opcodes()
            changed += sum(max(i2 - i1, j2 - j1) for tag, i1, i2, j1, j2 in blocks if tag != "equal")
    return Estimate.exact(changed / total if total else 0.0, total)
