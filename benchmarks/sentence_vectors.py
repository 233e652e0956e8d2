"""How close the shipped int8 sentence vectors are to those of the encoder in float32 with its own tokenizer; speed.

usage: python benchmarks/sentence_vectors.py FILE --encoder FOLDER [--limit 500]

FILE is JSONL with "text"; FOLDER holds all-MiniLM-L6-v2 (config.json, model.safetensors, tokenizer.json). Needs torch,
safetensors and tokenizers. Texts are cut to 1,000 characters. Prints the cosine of each pair of vectors for one text
(mean, lowest), Spearman's correlation of all cosines between different texts, texts per second of both on one core,
and, last, one line of JSON.
"""

from __future__ import annotations

import argparse
import json
import time
from itertools import islice
from pathlib import Path

import numpy as np

from allonym.models.encoder import SentenceEncoder
from allonym.train.records import read_json_lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--encoder", type=Path, required=True)
    parser.add_argument("--limit", type=int, default=500)
    given = parser.parse_args()
    texts = [r["text"][:1000] for _, r in islice(read_json_lines(given.file), given.limit)]
    ours = SentenceEncoder()
    start = time.perf_counter()
    own = ours.encode(texts)
    own_s = time.perf_counter() - start
    start = time.perf_counter()
    theirs = compute_reference_vectors(texts, given.encoder)
    their_s = time.perf_counter() - start
    same = (own * theirs).sum(axis=1)
    upper = np.triu_indices(len(texts), 1)
    order = [np.argsort(np.argsort((m @ m.T)[upper])).astype(float) for m in (own, theirs)]
    rank = float(np.corrcoef(order[0], order[1])[0, 1])
    print(f"texts {len(texts)}: cosine with float32 mean {same.mean():.4f}, lowest {same.min():.4f}; ranks {rank:.4f}")
    print(f"texts per second {len(texts) / own_s:.0f}, float32 {len(texts) / their_s:.0f}: {their_s / own_s:.1f} times")
    figures = {
        "cosine_mean": float(same.mean()),
        "cosine_min": float(same.min()),
        "spearman": rank,
        "speed_ratio": their_s / own_s,
    }
    print(
        json.dumps(
            {"benchmark": "sentence_vectors", "texts": len(texts)} | {k: round(v, 4) for k, v in figures.items()}
        )
    )


def compute_reference_vectors(texts: list[str], folder: Path) -> np.ndarray:
    """Unit vectors of the encoder in float32 on one thread, one text at a time, at most 256 pieces."""
    import torch
    from tokenizers import Tokenizer

    from allonym.train.network import Encoder

    torch.set_num_threads(1)
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(256)
    encoder = Encoder.read(folder, 0.0, shapes=False).eval()
    out = []
    with torch.inference_mode():
        for text in texts:
            mean = encoder(torch.tensor([tokenizer.encode(text).ids]), None)[0].mean(dim=0)
            out.append((mean / mean.norm()).numpy())
    return np.stack(out)


if __name__ == "__main__":
    main()
