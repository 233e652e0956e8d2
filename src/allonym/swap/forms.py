"""The form of a release: documents as they were, or pieces of them that nothing ties together.

A document that is released whole can be recognised by all of its passages together. Pieces of it that are released
apart have to be put together first. So a piece carries nothing but its text: a new id, drawn with the key, gives no
document, place or order away; tags are numbered anew in each piece; what falls back to a pseudonym gets another one in
each piece; pieces are sorted by their ids.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path

from allonym.errors import UsageError
from allonym.keys import derive_operator_key
from allonym.partfile import write_file
from allonym.policy import Policy
from allonym.protocol import get_operator, get_operator_traits, list_policy_grammars
from allonym.swap.corpus import Corpus
from allonym.swap.settings import Form
from allonym.text.placeholders import Grammar, find_placeholders

_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of a document that is released apart from the others.

    Attributes:
        id: 16 hexadecimal digits that only the holder of the key can draw again.
        chunks: the corpus's chunks that it consists of, neighbours of one document.
        text: as released. Hidden from ``repr``.
    """

    id: str
    chunks: tuple[int, ...]
    text: str = field(repr=False)


def group_chunks(corpus: Corpus, settings: Form) -> tuple[tuple[int, ...], ...]:
    """Return the chunks that are released together, in the order of the corpus."""
    of_documents: list[list[int]] = [[] for _ in corpus.documents]
    for i, chunk in enumerate(corpus.chunks):
        of_documents[chunk.document].append(i)
    most = {"documents": max(1, len(corpus.chunks)), "parts": settings.part}.get(settings.form, 1)
    return tuple(tuple(chunks[k : k + most]) for chunks in of_documents for k in range(0, len(chunks), most))


def make_pieces(
    groups: Sequence[Sequence[int]],
    texts: Sequence[str],
    *,
    released: AbstractSet[int],
    policy: Policy,
    key: bytes | str,
    draw: str,
) -> tuple[Piece, ...]:
    """Return the pieces that are released, sorted by their ids.

    Args:
        groups: of :func:`group_chunks`.
        texts: of all chunks, as written.
        released: chunks; a group without any is left out.
        policy: what wrote the tags.
        key: secret of the ids.
        draw: names corpus, release and draw, so that two releases share no id.
    """
    secret, grammars = derive_operator_key(key, "swap pieces"), list_policy_grammars(policy)
    out: dict[str, Piece] = {}
    for chunks in groups:
        text = renumber_tags("".join(texts[i] for i in chunks), grammars).strip()
        if not text or released.isdisjoint(chunks):
            continue
        name = f"{draw} {chunks[0]} {len(chunks)}"
        id = blake2b(name.encode(), key=secret, digest_size=8).hexdigest()
        out[id] = Piece(id, tuple(chunks), text)
    return tuple(out[id] for id in sorted(out))


def renumber_tags(text: str, grammars: Iterable[Grammar] = ()) -> str:
    """Number the tags of a text anew, each kind from 1 by its first mention: a number counts a document's entities."""
    out, position = [], 0
    numbers_of: dict[str, dict[str, str]] = {}
    for tag in find_placeholders(text, grammars):
        number = _find_last_number(written := text[tag.start : tag.end])
        if number is None:
            continue
        a, b = number
        numbers = numbers_of.setdefault(f"{written[:a]}\0{written[b:]}", {})
        out += [text[position : tag.start + a], numbers.setdefault(written[a:b], str(len(numbers) + 1))]
        position = tag.start + b
    return "".join((*out, text[position:]))


def _find_last_number(tag: str) -> tuple[int, int] | None:
    numbers = [match.span() for match in _NUMBER.finditer(tag)]
    return numbers[-1] if numbers else None


def list_piece_places(corpus: Corpus, pieces: Iterable[Piece] | None) -> dict[int, list[dict[str, str | int]]]:
    """Return document to its pieces, each with ``id``, ``start`` and ``end`` in the original, in reading order."""
    out: dict[int, list[dict[str, str | int]]] = {}
    for piece in sorted(pieces or (), key=lambda piece: piece.chunks):
        first, last = corpus.chunks[piece.chunks[0]], corpus.chunks[piece.chunks[-1]]
        out.setdefault(first.document, []).append({"id": piece.id, "start": first.start, "end": last.end})
    return out


def check_edits(corpus: Corpus) -> None:
    """Raise :class:`~allonym.errors.UsageError` if a direct identifier has the same keyed replacement in all pieces."""
    names = {(edit.operator.partition("@")[0], edit.label) for plan in corpus.plans for edit in plan.edits}
    for name, label in sorted(names):
        if get_operator_traits(get_operator(name)).keyed:
            raise UsageError(
                f"release.form: the policy replaces {label} by {name}, which ties the pieces of a document together; "
                "let it write tags"
            )


def write_pieces(pieces: Sequence[Piece], target: str | Path, *, overwrite: bool = False) -> int:
    """Write pieces as JSON Lines with ``id`` and ``text``, completely or not at all; return how many there are.

    Raises:
        UsageError: the target is no JSON Lines file, or exists.
    """
    path = check_target(target)
    if path.exists() and not overwrite:
        raise UsageError(f"{path} exists; --overwrite replaces it")
    rows = (json.dumps({"id": piece.id, "text": piece.text}, ensure_ascii=False) + "\n" for piece in pieces)
    write_file(path, "".join(rows).encode("utf-8", "backslashreplace"))
    return len(pieces)


def check_target(target: str | Path) -> Path:
    """Return the path of pieces; raise :class:`~allonym.errors.UsageError` unless it is a JSON Lines file."""
    path = Path(target)
    if path.suffix.lower() != ".jsonl" or path.is_dir():
        raise UsageError(f"{path}: pieces of documents are written to a file whose name ends in .jsonl")
    return path
