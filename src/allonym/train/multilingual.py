"""Trains the small taggers of other languages (:mod:`allonym.models.wordtagger`).

usage: python -m allonym.train.multilingual DATA OUT [--recipe languages] [--epochs N]

DATA is a folder with the JSONL files that the recipe names, below ``train/words``: ``languages``, ``polish`` or
``clinical_spanish``. OUT gets ``weights.npz`` and ``model.json``, and ``checkpoint.pt`` while the training lasts, from
which a second run goes on. Each corpus is divided by document
(:func:`~allonym.train.corpus.assign_train_dev_test`); operating points are chosen on the dev parts, figures come from
the test parts, and from corpora that nothing was trained on (:mod:`allonym.train.multilingual_score`).
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import sys
import tomllib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from allonym.errors import DataError, require_extra
from allonym.kb import KnowledgeBase
from allonym.models.wordtagger import WordLists, WordTagger, hash_language, hash_words, list_gaps, split_words
from allonym.train.corpus import assign_train_dev_test
from allonym.train.dictionaries import DICTIONARIES
from allonym.train.multilingual_score import OPEN, Sentence, measure_model, measure_strict_f1

with require_extra("training the tagger", "train"):
    import torch
    from torch import Tensor, nn
    from torch.nn import functional

_IN = 64
_BATCH = 3000  # words
_PIECE = 120  # words of a text that are read at once
_WORD_FEATURES = 6  # those that tell a word itself, which are left out now and then
_SMALL, _BIG = 0.07, 0.03  # share of the texts that are shown in small letters, and in capitals
_LEAST_SHARE = 3e-7  # of all words, from which on a word is frequent enough to be listed
_LISTED = {"hr": "sh", "sr": "sh", "no": "nb"}  # as wordfreq calls them
_SWAP = 0.2  # share of the names that are swapped for one of the knowledge base
_NAMES = {  # names and cities of these languages hardly have other forms in a sentence
    "de": ("german", "DE"),
    "fr": ("french", "FR"),
    "nl": ("dutch", "NL"),
    "es": ("spanish", "ES"),
    "pt": ("portuguese", "PT"),
    "sv": ("scandinavian", "SE"),
    "da": ("scandinavian", "DK"),
    "no": ("scandinavian", "NO"),
}


@dataclass(slots=True)
class Batch:
    """Pieces of texts: rows (texts, words, features), languages (texts), tags and whether a word is there."""

    rows: Tensor
    languages: Tensor
    tags: Tensor
    is_word: Tensor


class Network(nn.Module):
    """The network of :class:`~allonym.models.wordtagger.WordTagger` in torch."""

    def __init__(self, recipe: dict[str, Any]) -> None:
        super().__init__()
        tags, width = 1 + 2 * len(recipe["labels"]), recipe["width"]
        self.table = nn.Embedding(recipe["rows"], _IN)
        nn.init.normal_(self.table.weight, std=0.1)
        self.first = nn.Linear(_IN, width)
        self.layers = nn.ModuleList(
            nn.Conv1d(width, width, 3, padding=distance, dilation=distance) for distance in recipe["layers"]
        )
        self.last = nn.Linear(width, tags)
        self.dropout = recipe.get("dropout", 0.2)
        self.chain = nn.Parameter(torch.zeros(tags, tags))

    def forward(self, batch: Batch, keep: Tensor) -> Tensor:
        """Return scores ``(texts, words, tags)``; ``keep``, shaped as the rows, says how much a feature counts."""
        texts, words, _ = batch.rows.shape
        x = functional.embedding_bag(
            batch.rows.flatten(0, 1), self.table.weight, per_sample_weights=keep.flatten(0, 1), mode="sum"
        ).view(texts, words, -1)
        x = x + self.table(batch.languages)[:, None]
        mask = batch.is_word[..., None].float()
        x = functional.dropout(torch.tanh(self.first(x)), self.dropout, self.training) * mask
        for layer in self.layers:
            y = functional.relu(layer(x.transpose(1, 2)).transpose(1, 2))
            x = (x + functional.dropout(y, self.dropout, self.training)) * mask
        return self.last(x)  # type: ignore[no-any-return]

    def compute_loss(self, batch: Batch, keep: Tensor) -> Tensor:
        """The mean over words of minus the log chance of all sequences of tags that the corpus allows."""
        scores = self(batch, keep)
        tags = torch.arange(scores.shape[-1])
        allowed = (batch.tags[..., None] == tags) | (batch.tags[..., None] == OPEN)
        scores = (scores - scores.amax(-1, keepdim=True).detach()).exp()
        both = torch.cat([scores, scores * allowed])  # of any sequence, and of those that are right
        is_word, chain = torch.cat([batch.is_word, batch.is_word]).unbind(1), self.chain.exp()
        columns = both.unbind(1)
        ahead = columns[0]
        total = ahead.sum(-1)
        ahead, logs = ahead / total[:, None], total.log()
        for column, is_there in zip(columns[1:], is_word[1:], strict=True):
            row = (ahead @ chain) * column + 1e-30
            total = row.sum(-1)
            ahead = torch.where(is_there[:, None], row / total[:, None], ahead)
            logs = logs + torch.where(is_there, total.log(), 0.0)
        everything, right = logs.chunk(2)
        return (everything - right).sum() / batch.is_word.sum()


def read_corpus(path: Path, recipe: dict[str, Any]) -> dict[str, list[Sentence]]:
    """Read a corpus: part (train, dev, test) to sentences. The outermost of nested names counts."""
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as file:
        records = [json.loads(line) for line in file]
    parts = assign_train_dev_test(records)
    kinds = {label: n for n, labels in enumerate(recipe["labels"].values()) for label in labels}
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
                    tags[n] = OPEN if is_open else 1 + 2 * kinds[label] + (not is_first)
                    is_first = False
        language = recipe.get("same", {}).get(record["meta"]["lang"], record["meta"]["lang"])
        out[parts[str(record["id"])]].append(Sentence(language, path.name.split(".")[0], record["text"], borders, tags))
    return out


@dataclass(slots=True)
class Piece:
    """Words of a text, what stands before each, and their tags."""

    words: list[str]
    gaps: list[str]
    tags: list[int]


class Batches:
    """Makes batches of pieces of texts, in chance order and of about equal lengths, each time in other variants.

    Some texts are shown in small letters or capitals, names of people and cities are swapped for others of the
    language, and a share of all findings (``mentions`` of the recipe) for others of their label.
    """

    def __init__(self, sentences: Sequence[Sentence], recipe: dict[str, Any], lists: WordLists | None) -> None:
        self._sentences, self._lists = sentences, lists
        self._size, self._labels = recipe["rows"], tuple(recipe["labels"])
        self._shares, self._mentioned = recipe.get("shares", {}), recipe.get("mentions", 0.0)
        self.words = sum(len(s.borders) * self._shares.get(s.source, 1) for s in sentences)
        """Words of an epoch, about."""
        self._mentions: dict[int, list[Piece]] = defaultdict(list)
        for sentence in sentences if self._mentioned else ():
            piece = _cut_piece(sentence, 0, len(sentence.borders))
            for start, end in _list_runs(piece.tags):
                self._mentions[piece.tags[start]].append(
                    Piece(piece.words[start:end], piece.gaps[start:end], piece.tags[start:end])
                )

    def __call__(self, chance: random.Random) -> Iterator[Batch]:
        """The batches of an epoch."""
        cuts = []
        for sentence in self._sentences:
            if chance.random() >= self._shares.get(sentence.source, 1):
                continue
            length = len(sentence.borders)
            shift = chance.randrange(_PIECE) if length > _PIECE else 0
            borders = [0, *range(_PIECE - shift, length, _PIECE), length]
            cuts += [(sentence, a, b) for a, b in pairwise(borders) if b > a]
        chance.shuffle(cuts)
        pool = 2000
        for start in range(0, len(cuts), pool):
            group = sorted(cuts[start : start + pool], key=lambda cut: cut[2] - cut[1])
            batches: list[list[tuple[Sentence, int, int]]] = [[]]
            for cut in group:
                if (cut[2] - cut[1]) * (len(batches[-1]) + 1) > _BATCH:
                    batches.append([])
                batches[-1].append(cut)
            chance.shuffle(batches)
            yield from (self._make_batch(batch, chance) for batch in batches if batch)

    def _make_batch(self, cuts: Sequence[tuple[Sentence, int, int]], chance: random.Random) -> Batch:
        pieces = [self._vary(_cut_piece(*cut), cut[0].language, chance) for cut in cuts]
        languages = [cut[0].language if chance.random() < 0.9 else "" for cut in cuts]
        features = [
            hash_words(piece.words, piece.gaps, language, self._size, self._lists)
            for piece, language in zip(pieces, languages, strict=True)
        ]
        length = max(map(len, features))
        rows = np.zeros((len(pieces), length, features[0].shape[1]), np.int64)
        tags = np.full((len(pieces), length), OPEN)
        is_word = np.zeros((len(pieces), length), bool)
        for i, (piece, feature) in enumerate(zip(pieces, features, strict=True)):
            count = len(feature)
            rows[i, :count], tags[i, :count], is_word[i, :count] = feature, piece.tags, True
        codes = np.array([hash_language(language, self._size) for language in languages])
        return Batch(*map(torch.from_numpy, (rows, codes, tags, is_word)))

    def _vary(self, piece: Piece, language: str, chance: random.Random) -> Piece:
        if self._mentioned:
            piece = self._swap_mentions(piece, chance)
        if language in _NAMES:
            _swap_names(piece, language, self._labels, chance)
        draw = chance.random()
        if draw < _SMALL + _BIG:
            piece.words = [word.lower() if draw < _SMALL else word.upper() for word in piece.words]
        return piece

    def _swap_mentions(self, piece: Piece, chance: random.Random) -> Piece:
        out, last = Piece([], [], []), 0
        for start, end in _list_runs(piece.tags):
            if chance.random() < self._mentioned and self._mentions[piece.tags[start]]:
                other = chance.choice(self._mentions[piece.tags[start]])
                out.words += piece.words[last:start] + other.words
                out.gaps += piece.gaps[last : start + 1] + other.gaps[1:]
                out.tags += piece.tags[last:start] + other.tags
                last = end
        return Piece(out.words + piece.words[last:], out.gaps + piece.gaps[last:], out.tags + piece.tags[last:])


def _cut_piece(sentence: Sentence, start: int, end: int) -> Piece:
    borders = sentence.borders[start:end]
    gaps = list_gaps(sentence.text, sentence.borders[max(0, start - 1) : end])[-len(borders) :]
    return Piece([sentence.text[a:b] for a, b in borders], gaps, list(sentence.tags[start:end]))


def _list_runs(tags: Sequence[int]) -> Iterator[tuple[int, int]]:
    """The half-open places of whole findings."""
    for start, tag in enumerate(tags):
        if tag > 0 and tag % 2:
            end = start + 1
            while end < len(tags) and tags[end] == tag + 1:
                end += 1
            yield start, end


def _swap_names(piece: Piece, language: str, labels: Sequence[str], chance: random.Random) -> None:
    """Swap some names of people and cities for others of the language."""
    first, last, cities = _list_names(language)
    swaps = False
    for n, (word, tag) in enumerate(zip(piece.words, piece.tags, strict=True)):
        if tag % 2:
            swaps = chance.random() < _SWAP
        if tag > 0 and swaps and len(word) > 2 and word[0].isupper() and word[1:].islower():
            label = labels[(tag - 1) // 2]
            if label.startswith(("PERSON", "NOMBRE")):
                piece.words[n] = chance.choice(first if tag % 2 and chance.random() < 0.7 else last)
            elif label in ("LOCATION", "TERRITORIO"):
                piece.words[n] = chance.choice(cities)


@cache
def _list_names(language: str) -> tuple[Sequence[str], Sequence[str], Sequence[str]]:
    """Given names, family names and cities, each of one word."""
    origin, country = _NAMES[language]
    kb = KnowledgeBase.open()
    cities = [item.label for item in kb.pool("city", country=country)]
    first, last, cities = (
        [n for n in names if n.isalpha()] for names in (kb.names("first", origin), kb.names("last", origin), cities)
    )
    return first, last, cities


def train_network(
    sentences: Sequence[Sentence],
    recipe: dict[str, Any],
    lists: WordLists | None,
    checkpoint: Path,
    report: Callable[[str], object],
) -> Network:
    """Train for the recipe's epochs; the rate falls to zero at their end.

    Args:
        checkpoint: a file that is written after each epoch; if it is there, the training goes on from it.
        report: called with a line now and then.
    """
    torch.manual_seed(1)
    torch.set_num_threads(1)
    network, chance = Network(recipe), random.Random(1)
    optimizer = torch.optim.Adam(network.parameters(), lr=recipe["rate"], fused=True)
    batches, unknown = Batches(sentences, recipe, lists), recipe.get("unknown", 0.3)
    words_read, step, first = 0, 0, 0
    if checkpoint.exists():
        state = torch.load(checkpoint, weights_only=True)
        network.load_state_dict(state["network"])
        optimizer.load_state_dict(state["optimizer"])
        chance.setstate(state["chance"])
        torch.set_rng_state(state["torch"])
        words_read, step, first = state["words_read"], state["step"], state["epoch"]
    for epoch in range(first, recipe["epochs"]):
        losses = []
        for batch in batches(chance):
            left = max(0.0, 1 - words_read / (recipe["epochs"] * batches.words))
            for group in optimizer.param_groups:
                group["lr"] = recipe["rate"] * min(1.0, (step + 1) / 100) * left
            keep = torch.ones(batch.rows.shape)
            keep[..., :_WORD_FEATURES] *= (torch.rand(*batch.rows.shape[:2], 1) > unknown).float()
            keep[..., :_WORD_FEATURES] *= (torch.rand(*batch.rows.shape[:2], _WORD_FEATURES) > 0.1).float()
            loss = network.compute_loss(batch, keep)
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            nn.utils.clip_grad_norm_(network.parameters(), 5.0)
            optimizer.step()
            losses.append(loss.item())
            words_read, step = words_read + int(batch.is_word.sum()), step + 1
        state = {"network": network.state_dict(), "optimizer": optimizer.state_dict(), "chance": chance.getstate()}
        state |= {"torch": torch.get_rng_state(), "words_read": words_read, "step": step, "epoch": epoch + 1}
        torch.save(state, checkpoint)
        report(f"epoch {epoch + 1} of {recipe['epochs']}: loss {sum(losses) / len(losses):.4f}\n")
    return network.eval()


def collect_lists(languages: Iterable[str], has_dictionaries: bool) -> WordLists:
    """Collect frequent words of languages (wordfreq), names of the knowledge base, and what dictionaries know."""
    with require_extra("training the tagger", "train"):
        import wordfreq
    table: dict[int, int] = {}
    listed_languages = wordfreq.available_languages()
    for language in languages:
        listed = _LISTED.get(language, language)
        for word, share in wordfreq.get_frequency_dict(listed).items() if listed in listed_languages else ():
            if share >= _LEAST_SHARE and word.isalpha():
                table[WordLists.hash(word, language)] = min(7, 1 + int(np.log10(share / _LEAST_SHARE) * 2))
    kb, names = KnowledgeBase.open(), defaultdict[int, int](int)
    places = [item.label for kind in ("city", "country", "region") for item in kb.pool(kind)]
    for bit, listed_names in ((1, kb.list_known_names("first")), (2, kb.list_known_names("last")), (4, places)):
        for name in listed_names:
            names[WordLists.hash(name)] |= bit
    table |= names
    for language in set(languages) & set(DICTIONARIES) if has_dictionaries else ():
        for word, value in DICTIONARIES[language]().items():
            table[WordLists.hash(word, WordLists.in_dictionary(language))] = value
    keys = np.array(sorted(table), np.uint32)
    return WordLists(keys, np.array([table[int(key)] for key in keys], np.uint8), has_dictionaries)


def save_network(network: Network, lists: WordLists | None, folder: Path, about: dict[str, Any]) -> None:
    """Write the weights, the table as int8, and what is known about them."""
    weights = {name: value.detach().numpy() for name, value in network.state_dict().items()}
    table = weights.pop("table.weight")
    scale = np.maximum(np.abs(table).max(1, keepdims=True), 1e-9) / 127
    arrays: dict[str, Any] = {name: value.astype(np.float16) for name, value in weights.items()}
    arrays |= {"table": np.round(table / scale).astype(np.int8), "table.scale": scale.astype(np.float16)}
    if lists:
        arrays |= {"lists.keys": lists.keys, "lists.values": lists.values}
    np.savez_compressed(folder / "weights.npz", **arrays)
    (folder / "model.json").write_text(json.dumps(about, indent=1, sort_keys=True) + "\n", "utf-8")


def load_parts(data: Path, recipe: dict[str, Any]) -> dict[str, list[Sentence]]:
    """Load the corpora of a recipe: train, dev and test parts, and ``beside``, those that nothing is trained on.

    Raises:
        DataError: a file of the recipe is not in the folder.
    """
    paths = {path.name.split(".")[0]: path for path in sorted(data.iterdir())}
    parts: dict[str, list[Sentence]] = defaultdict(list)
    for kind in ("train", "test"):
        for name in recipe[kind]:
            if name not in paths:
                raise DataError(f"{data}: {name}.jsonl.gz is missing; the recipe names the files that it takes")
            for part, sentences in read_corpus(paths[name], recipe).items():
                parts[part if kind == "train" else "beside"] += sentences
    return parts


def load_recipe(name: str) -> dict[str, Any]:
    """Load a recipe below ``train/words``; a list of labels becomes a table."""
    recipe = tomllib.loads(files("allonym.train").joinpath("words", f"{name}.toml").read_text("utf-8"))
    if isinstance(recipe["labels"], list):
        recipe["labels"] = {label: [label] for label in recipe["labels"]}
    return recipe


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--recipe", default="languages", choices=("languages", "polish", "clinical_spanish"))
    parser.add_argument("--epochs", type=int)
    options = parser.parse_args()
    recipe = load_recipe(options.recipe)
    recipe["epochs"] = options.epochs or recipe["epochs"]
    parts = load_parts(options.data, recipe)
    options.out.mkdir(parents=True, exist_ok=True)
    languages, has_dictionaries = sorted({s.language for s in parts["train"]}), recipe.get("dictionaries", False)
    lists = collect_lists(languages, has_dictionaries) if recipe["lists"] else None
    trained = parts["train"] + (parts["dev"] if recipe.get("dev") else [])
    network = train_network(trained, recipe, lists, options.out / "checkpoint.pt", sys.stderr.write)
    about: dict[str, Any] = {"format": 3, "gaps": True, "dictionaries": has_dictionaries, "licence": recipe["licence"]}
    about |= {"labels": list(recipe["labels"]), "layers": recipe["layers"]}
    save_network(network, lists, options.out, about)
    model = WordTagger(options.out)
    if recipe.get("dev"):  # no operating points can be chosen
        languages = sorted({sentence.language for sentence in parts["test"]})
        about |= {"languages": languages, "measured": {"strict_f1": measure_strict_f1(model, parts["test"])}}
    else:
        about |= measure_model(model, parts["dev"], parts["test"], parts["beside"])
    save_network(network, lists, options.out, about)


if __name__ == "__main__":
    main()
