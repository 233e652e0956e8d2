"""Trains the small tagger of many languages (:mod:`allonym.models.wordtagger`) and measures it.

usage: python -m allonym.train.multilingual DATA OUT [--minutes 5]

DATA is a folder with the JSONL files of ``multilingual.toml``. OUT gets ``weights.npz`` and ``model.json``. Each
corpus is divided by document (:func:`~allonym.train.corpus.assign_train_dev_test`); operating points are chosen on the
dev parts, figures come from the test parts, and from corpora that nothing was trained on.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import sys
import time
import tomllib
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from allonym.errors import DataError, require_extra
from allonym.models.wordtagger import FEATURES, KINDS, ROWS, WordTagger, hash_features, hash_language, split_words
from allonym.train.corpus import assign_train_dev_test

with require_extra("training the tagger", "train"):
    import torch
    from torch import Tensor, nn
    from torch.nn import functional

_TAGS = 1 + 2 * len(KINDS)
_OPEN = -100  # the loss leaves such words out
_LAYERS, _IN, _WIDTH = 3, 64, 128
_BATCH = 3000  # words
_POINTS = {"high-recall": 0.08, "balanced": 0.06, "high-precision": 0.02}
_LEAST_COVERED, _AT = 0.9, "high-recall"
_FEWEST = 300  # words of names that a figure needs
_SAME = {"nb": "no", "nn": "no"}

Read = Callable[[str, str], tuple[list[tuple[int, int]], Any]]
"""From a text and its language to the places of its words and their chances, as :class:`WordTagger`."""


@dataclass(slots=True)
class Sentence:
    """A text with the tag of each word: 0 for none, ``_OPEN`` where the corpus does not say."""

    language: str
    source: str
    text: str
    borders: list[tuple[int, int]]
    tags: list[int]


class Network(nn.Module):
    """The network of :class:`~allonym.models.wordtagger.WordTagger` in torch."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(ROWS, _IN)
        nn.init.normal_(self.table.weight, std=0.1)
        self.first = nn.Linear(_IN, _WIDTH)
        self.layers = nn.ModuleList(nn.Conv1d(_WIDTH, _WIDTH, 3, padding=1) for _ in range(_LAYERS))
        self.last = nn.Linear(_WIDTH, _TAGS)

    def forward(self, rows: Tensor, languages: Tensor, keep: Tensor) -> Tensor:
        """Return logits ``(texts, words, tags)`` for rows ``(texts, words, features)``; ``keep`` zeroes features."""
        x = (self.table(rows) * keep[..., None]).sum(2) + self.table(languages)[:, None]
        mask = (rows.sum(2) > 0).float()[..., None]
        x = functional.dropout(torch.tanh(self.first(x)), 0.2, self.training) * mask
        for layer in self.layers:
            y = functional.relu(layer(x.transpose(1, 2)).transpose(1, 2))
            x = (x + functional.dropout(y, 0.2, self.training)) * mask
        return self.last(x)  # type: ignore[no-any-return]


def read_corpus(path: Path, recipe: dict[str, Any]) -> dict[str, list[Sentence]]:
    """Read a corpus: part (train, dev, test) to sentences."""
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as file:
        records = [json.loads(line) for line in file]
    parts = assign_train_dev_test(records)
    kinds = {label: n for n, kind in enumerate(KINDS) for label in recipe[kind]}
    out: dict[str, list[Sentence]] = defaultdict(list)
    for record in records:
        borders = split_words(record["text"])
        tags = [0] * len(borders)
        outer = [span for span in record["spans"] if not span.get("inner")]
        for span in sorted(outer, key=lambda s: s["start"] - s["end"]):
            label, is_first = span["label"], True
            is_open = label in recipe["open"] or span.get("implied")
            if label not in kinds and not is_open:
                continue
            for n, (start, end) in enumerate(borders):
                if start < span["end"] and end > span["start"] and tags[n] == 0:
                    tags[n] = _OPEN if is_open else 1 + 2 * kinds[label] + (not is_first)
                    is_first = False
        language = _SAME.get(record["meta"]["lang"], record["meta"]["lang"])
        out[parts[str(record["id"])]].append(Sentence(language, path.name.split(".")[0], record["text"], borders, tags))
    return out


def _make_batches(sentences: Sequence[Sentence], chance: random.Random) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Batches of rows, languages and tags, in chance order; every tenth text in small letters, some in capitals."""
    pieces = [(s, n) for s in sentences for n in range(0, max(1, len(s.borders)), 120) if s.borders]
    chance.shuffle(pieces)
    pool = 2000
    for start in range(0, len(pieces), pool):
        group = sorted(pieces[start : start + pool], key=lambda p: min(120, len(p[0].borders) - p[1]))
        batches: list[list[tuple[Sentence, int]]] = [[]]
        longest = 0
        for sentence, n in group:
            longest = max(longest, min(120, len(sentence.borders) - n))
            if longest * (len(batches[-1]) + 1) > _BATCH:
                batches.append([])
            batches[-1].append((sentence, n))
        chance.shuffle(batches)
        for batch in batches:
            if batch:
                yield _make_tensors(batch, chance)


def _make_tensors(batch: Sequence[tuple[Sentence, int]], chance: random.Random) -> tuple[Tensor, Tensor, Tensor]:
    length = max(min(120, len(s.borders) - n) for s, n in batch)
    rows = np.zeros((len(batch), length, FEATURES), np.int64)
    tags = np.full((len(batch), length), _OPEN)
    for i, (sentence, n) in enumerate(batch):
        draw = chance.random()
        text = sentence.text
        words = [text[a:b] for a, b in sentence.borders[n : n + 120]]
        if draw < 0.1:
            words = [word.lower() if draw < 0.07 else word.upper() for word in words]
        rows[i, : len(words)] = [hash_features(word) for word in words]
        tags[i, : len(words)] = sentence.tags[n : n + 120]
    languages = [hash_language(s.language if chance.random() < 0.9 else "") for s, _ in batch]
    return torch.from_numpy(rows), torch.tensor(languages), torch.from_numpy(tags)


def train_network(
    sentences: Sequence[Sentence], minutes: float, rate: float, report: Callable[[str], object]
) -> Network:
    """Train for a time; the rate falls to zero at its end. ``report`` is called with a line now and then."""
    torch.manual_seed(1)
    torch.set_num_threads(1)
    network, chance = Network(), random.Random(1)
    optimizer = torch.optim.Adam(network.parameters(), lr=rate)
    start, step = time.monotonic(), 0
    while True:
        for rows, languages, tags in _make_batches(sentences, chance):
            passed = (time.monotonic() - start) / (60 * minutes)
            if passed >= 1:
                return network.eval()
            for group in optimizer.param_groups:
                group["lr"] = rate * min(1.0, (step + 1) / 100) * (1 - passed)
            keep = torch.ones(rows.shape)
            keep[..., :6] *= (torch.rand(*rows.shape[:2], 1) > 0.25).float()  # as if the word were unknown
            keep[..., :6] *= (torch.rand(*rows.shape[:2], 6) > 0.1).float()
            loss = functional.cross_entropy(network(rows, languages, keep).flatten(0, 1), tags.flatten())
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            step += 1
            if step % 100 == 0:
                report(f"step {step}: {loss.item():.4f}, {100 * passed:.0f} % of the time\n")


def save_network(network: Network, folder: Path, about: dict[str, Any]) -> None:
    """Write the weights, the table as int8, and what is known about them."""
    folder.mkdir(parents=True, exist_ok=True)
    weights = {name: value.detach().numpy() for name, value in network.state_dict().items()}
    table = weights.pop("table.weight")
    scale = np.maximum(np.abs(table).max(1, keepdims=True), 1e-9) / 127
    arrays: dict[str, Any] = {name: value.astype(np.float16) for name, value in weights.items()}
    arrays |= {"table": np.round(table / scale).astype(np.int8), "table.scale": scale.astype(np.float32)}
    np.savez_compressed(folder / "weights.npz", **arrays)
    (folder / "model.json").write_text(json.dumps(about, indent=1, sort_keys=True) + "\n", "utf-8")


def judge_words(read: Read, sentences: Sequence[Sentence]) -> tuple[Any, Any, Any, Any]:
    """Judge words: arrays of their chance to be in a name, letters, whether they are, and the name's number or -1."""
    chances, sizes, is_name, names = [], [], [], []
    name = -1
    for sentence in sentences:
        _, table = read(sentence.text, sentence.language)
        for n, tag in enumerate(sentence.tags):
            word = sentence.text[slice(*sentence.borders[n])]
            if tag == _OPEN:
                continue
            name += tag % 2
            chances.append(1 - table[n, 0])
            sizes.append(len(word) if word.isalnum() else 0)
            is_name.append(tag > 0)
            names.append(name if tag else -1)
    return np.array(chances), np.array(sizes), np.array(is_name, bool), np.array(names)


def choose_threshold(judged: tuple[Any, Any, Any, Any], needless: float) -> float:
    """The lowest chance at which at most a share of the letters outside of names is covered."""
    chances, sizes, is_name, _ = judged
    outside = chances[~is_name], sizes[~is_name]
    order = np.argsort(-outside[0])
    covered = np.cumsum(outside[1][order]) / max(1, outside[1].sum())
    last = int(np.searchsorted(covered, needless, "right"))
    return max(0.005, float(outside[0][order][min(last, len(order) - 1)]))


def measure_cover(judged: tuple[Any, Any, Any, Any], threshold: float) -> dict[str, float]:
    """Shares: name words covered, names wholly missed, and letters outside of names covered."""
    chances, sizes, is_name, names = judged
    hit = chances > threshold
    real = is_name & (sizes > 0)
    everything, touched = set(names[real].tolist()), set(names[real & hit].tolist())
    return {
        "covered": round(float(hit[real].mean()), 4),
        "missed": round(1 - len(touched) / max(1, len(everything)), 4),
        "needless": round(float((sizes * hit)[~is_name].sum() / max(1, sizes[~is_name].sum())), 4),
        "words": int(real.sum()),
    }


def measure_strict_f1(read: Read, sentences: Sequence[Sentence]) -> float:
    """F1 of names with exact borders and kind, of the likeliest tags; words that a corpus leaves open do not count."""
    right = predicted = gold = 0
    for sentence in sentences:
        tags = np.array(sentence.tags)
        guess = np.where(tags == _OPEN, 0, read(sentence.text, sentence.language)[1].argmax(1))
        a, b = _list_names(np.where(tags == _OPEN, 0, tags)), _list_names(guess)
        right, predicted, gold = right + len(a & b), predicted + len(b), gold + len(a)
    return round(2 * right / max(1, predicted + gold), 4)


def _list_names(tags: Any) -> set[tuple[int, int, int]]:
    out: set[tuple[int, int, int]] = set()
    start = kind = 0
    for n, tag in enumerate([*tags.tolist(), 0]):
        if kind and (tag == 0 or tag % 2 or (tag + 1) // 2 != kind):
            out.add((start, n, kind))
            kind = 0
        if tag and not kind:
            start, kind = n, (tag + 1) // 2
    return out


def measure_model(
    model: WordTagger, dev: Sequence[Sentence], test: Sequence[Sentence], beside: Sequence[Sentence]
) -> dict[str, Any]:
    """Choose operating points on the dev parts, and measure them by language on the test parts and other corpora."""
    read = lru_cache(maxsize=None)(model)
    points: dict[str, dict[str, float]] = {name: {} for name in _POINTS}
    measured: dict[str, Any] = {}
    for code in sorted({s.language for s in test}):
        judged = judge_words(read, [s for s in dev if s.language == code])
        for name, needless in _POINTS.items():
            points[name][code] = round(choose_threshold(judged, needless), 4)
        groups = {"test": [s for s in test if s.language == code]}
        for sentence in (*groups["test"], *(s for s in beside if s.language == code)):
            groups.setdefault(sentence.source, []).append(sentence)
        for group, sentences in groups.items():
            figures: dict[str, Any] = {"strict_f1": measure_strict_f1(read, sentences)}
            judged = judge_words(read, sentences)
            figures |= {name: measure_cover(judged, points[name][code]) for name in _POINTS}
            measured.setdefault(code, {})[group] = figures
    earned = [
        code
        for code, groups in measured.items()
        if groups["test"][_AT]["words"] >= _FEWEST
        and groups["test"][_AT]["covered"] >= _LEAST_COVERED
        and groups["test"][_AT]["needless"] <= 0.09
    ]
    return {"points": points, "measured": measured, "languages": earned}


def load_parts(data: Path) -> dict[str, list[Sentence]]:
    """Load the corpora of the recipe: train, dev and test parts, and ``beside``, those that nothing is trained on.

    Raises:
        DataError: a file of the recipe is not in the folder.
    """
    recipe = _read_recipe()
    paths = {path.name.split(".")[0]: path for path in sorted(data.iterdir())}
    parts: dict[str, list[Sentence]] = defaultdict(list)
    for kind in ("train", "test"):
        for name in recipe[kind]:
            if name not in paths:
                raise DataError(f"{data}: {name}.jsonl.gz is missing; multilingual.toml names the files that it takes")
            for part, sentences in read_corpus(paths[name], recipe).items():
                parts[part if kind == "train" else "beside"] += sentences
    return parts


def _read_recipe() -> dict[str, Any]:
    return tomllib.loads(files("allonym.train").joinpath("multilingual.toml").read_text("utf-8"))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--minutes", type=float, default=5)
    options = parser.parse_args()
    parts = load_parts(options.data)
    network = train_network(parts["train"], options.minutes, _read_recipe()["rate"], sys.stderr.write)
    about: dict[str, Any] = {"format": 1, "layers": _LAYERS, "licence": "CC BY-SA 4.0"}
    save_network(network, options.out, about)
    about |= measure_model(WordTagger(options.out), parts["dev"], parts["test"], parts["beside"])
    save_network(network, options.out, about)


if __name__ == "__main__":
    main()
