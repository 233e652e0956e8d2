"""A word feature file of MITIE's, written without MITIE: for tests, and to try the backend where no other is at hand.

Word vectors are the singular vectors of how often words stand beside each other; what a word looks like is told by its
last letters. The layout is that of dlib's serialisation: an integer is a length byte, whose top bit is its sign, and
its bytes; a real number is mantissa and exponent; strings, tables and matrices begin with their sizes.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections import Counter
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

import numpy as np

from allonym.models.words import split_words


def write_features(path: Path, texts: Iterable[str], *, dimensions: int = 20, vocabulary: int = 20000) -> Path:
    sentences = [[plain(text[a:b]) for a, b in split_words(text)] for text in texts]
    counts = Counter(word for sentence in sentences for word in sentence)
    known = sorted(sorted(counts, key=lambda w: (-counts[w], w))[:vocabulary])
    vectors = word_vectors(sentences, known, dimensions)
    substrings, morph = morphology([*known])
    rows = np.stack([looks(word, substrings, morph) for word in known])
    morph *= 1 / max(np.abs(rows).mean(), 1e-9)
    rows = np.stack([looks(word, substrings, morph) for word in known])
    vectors *= 1 / max(np.abs(vectors).mean(), 1e-9)
    full = np.concatenate([np.zeros((len(known), 1)), vectors, rows], axis=1).astype(np.float32)
    out = [
        text_("mitie::total_word_feature_extractor"),
        whole(2),
        whole(zlib.crc32(full.tobytes())),
        whole(1 + dimensions),
    ]
    out.append(whole(len(known)))
    for word, row in zip(known, full, strict=True):
        out += [text_(word), matrix(row[:, None])]
    out += [whole(1), whole(1), whole(0x1FFF), whole(13), whole(0xFFFFFFFF), whole(4)]
    table = [0] * 0x2000
    for bucket, name in substrings.values():
        table[bucket] = name
    out += [whole(len(table)), *map(whole, table), whole(256), *map(whole, CRC), matrix(morph.astype(np.float32))]
    path.write_bytes(b"".join(out))
    return path


def plain(word: str) -> str:
    return "".join("#" if c in "0123456789" else c for c in word)


def word_vectors(sentences: list[list[str]], known: list[str], dimensions: int) -> np.ndarray:
    at = {word: i for i, word in enumerate(known)}
    common = {w: i for i, (w, _) in enumerate(Counter(w for s in sentences for w in s).most_common(400))}
    beside = np.zeros((len(known), 2 * len(common)), dtype=np.float32)
    for sentence in sentences:
        for before, after in pairwise(sentence):
            if before in common and after in at:
                beside[at[after], common[before]] += 1
            if after in common and before in at:
                beside[at[before], len(common) + common[after]] += 1
    beside = np.sqrt(beside / np.maximum(beside.sum(axis=1, keepdims=True), 1))
    left, size, _ = np.linalg.svd(beside, full_matrices=False)
    out = np.zeros((len(known), dimensions))
    used = min(dimensions, left.shape[1])
    out[:, :used] = left[:, :used] * size[:used]
    return out


def morphology(known: list[str]) -> tuple[dict[str, tuple[int, int]], np.ndarray]:
    endings = Counter(f"{word[-n:]}*" for word in known for n in (1, 2, 3) if len(word) > n)
    starts = Counter(f"*{word[:1]}" for word in known)
    chosen = [name for name, _ in (endings + starts).most_common(300)]
    substrings = {name: (crc(name) & 0x1FFF, (crc(name) >> 13) & 0xFFFF) for name in chosen}
    rng = np.random.default_rng(0)
    morph = np.zeros((0x2000, 10))
    for bucket, _ in substrings.values():
        morph[bucket] = rng.normal(size=10)
    return substrings, morph


def looks(word: str, substrings: dict[str, tuple[int, int]], morph: np.ndarray) -> np.ndarray:
    held = [f"*{word[:1]}", *(f"{word[-n:]}*" for n in (1, 2, 3) if len(word) > n)]
    return sum((morph[substrings[name][0]] for name in held if name in substrings), np.zeros(morph.shape[1]))


def _crc_table() -> list[int]:
    out = []
    for i in range(256):
        for _ in range(8):
            i = (i >> 1) ^ 0xEDB88320 if i & 1 else i >> 1
        out.append(i)
    return out


CRC = _crc_table()


def crc(name: str) -> int:
    h = 0xFFFFFFFF
    for byte in name.encode():
        h = (h >> 8) ^ CRC[(h ^ byte) & 0xFF]
    return h


def whole(number: int) -> bytes:
    size = max(1, (abs(number).bit_length() + 7) // 8)
    return struct.pack("B", size | (0x80 if number < 0 else 0)) + abs(number).to_bytes(size, "little")


def real(number: float) -> bytes:
    fraction, exponent = math.frexp(number)
    mantissa = int(fraction * 2**24)
    return whole(mantissa) + whole(exponent - 24)


def text_(value: str) -> bytes:
    data = value.encode()
    return whole(len(data)) + data


def matrix(values: np.ndarray) -> bytes:
    return whole(-values.shape[0]) + whole(-values.shape[1]) + b"".join(real(float(v)) for v in values.ravel())
