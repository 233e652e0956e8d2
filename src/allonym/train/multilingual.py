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
import math
import random
import sys
import tomllib
from collections import Counter, defaultdict
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
from allonym.models.nametagger import NameTagger
from allonym.models.wordtagger import WordLists, WordTagger, hash_language, hash_words, list_gaps, split_words
from allonym.train.corpus import assign_train_dev_test
from allonym.train.dictionaries import DICTIONARIES
from allonym.train.export import make_tagger_graph, save_onnx_model
from allonym.train.multilingual_score import OPEN, Sentence, measure_model, measure_strict_f1
from allonym.train.network import compute_chain_loss, find_allowed_tags
from allonym.train.pretrained import encode_windows, start_network, write_pieces

with require_extra("training the tagger", "train"):
    import torch
    from torch import Tensor, nn
    from torch.nn import functional

_IN = 64
_BATCH = 3000  # words
_PIECE = 120  # words of a text that are read at once
_WORD_FEATURES = 6  # those that tell a word itself, which are left out now and then
_SMALL, _BIG = 0.07, 0.03  # share of the texts that are shown in small letters, and in capitals
_OFTEN = 100  # batches
_LEAST_SHARE = 3e-7  # of all words, from which on a word is frequent enough to be listed
_LEAST_SHARE_OF_PIECES = 3e-6  # from which on a word has a say in the choice of pieces
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
        self.dropout, self.unknown = recipe.get("dropout", 0.2), recipe.get("unknown", 0.3)
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
        allowed = find_allowed_tags(batch.tags, scores.shape[-1])
        return compute_chain_loss(scores, allowed, batch.is_word, self.chain)

    def draw_loss(self, batch: Batch) -> Tensor:
        """The loss of a batch, with dropout and with features left out by chance."""
        keep = torch.ones(batch.rows.shape)
        keep[..., :_WORD_FEATURES] *= (torch.rand(*batch.rows.shape[:2], 1) > self.unknown).float()
        keep[..., :_WORD_FEATURES] *= (torch.rand(*batch.rows.shape[:2], _WORD_FEATURES) > 0.1).float()
        return self.compute_loss(batch, keep)

    def make_parameter_groups(self, recipe: dict[str, Any]) -> list[dict[str, Any]]:
        """The parameters with their rate."""
        return [{"params": list(self.parameters()), "rate": recipe["rate"]}]


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
        source = path.name.split(".")[0]
        document = str(record.get("doc_id", ""))
        out[parts[str(record["id"])]].append(Sentence(language, source, record["text"], borders, tags, document))
    return out


@dataclass(slots=True)
class Piece:
    """Words of a text, what stands before each, and their tags."""

    words: list[str]
    gaps: list[str]
    tags: list[int]


Cut = tuple[Sentence, int, int]
"""A text, and the half-open words of it."""

Encode = Callable[[Sequence[Piece], Sequence[str]], Any]
"""From pieces and their languages to a batch for a network."""


def encode_hashed(recipe: dict[str, Any], lists: WordLists | None) -> Encode:
    """Make the function that gives :class:`Network` its batches."""
    size = recipe["rows"]

    def encode(pieces: Sequence[Piece], languages: Sequence[str]) -> Batch:
        features = [
            hash_words(piece.words, piece.gaps, language, size, lists)
            for piece, language in zip(pieces, languages, strict=True)
        ]
        length = max(map(len, features))
        rows = np.zeros((len(pieces), length, features[0].shape[1]), np.int64)
        tags = np.full((len(pieces), length), OPEN)
        is_word = np.zeros((len(pieces), length), bool)
        for i, (piece, feature) in enumerate(zip(pieces, features, strict=True)):
            count = len(feature)
            rows[i, :count], tags[i, :count], is_word[i, :count] = feature, piece.tags, True
        codes = np.array([hash_language(language, size) for language in languages])
        return Batch(*map(torch.from_numpy, (rows, codes, tags, is_word)))

    return encode


def _count_words(cut: Sequence[Cut]) -> int:
    return sum(end - start for _, start, end in cut)


class Batches:
    """Makes batches of pieces of texts, in chance order and of about equal lengths, each time in other variants.

    Some texts are shown in small letters or capitals, names of people and cities are swapped for others of the
    language, and a share of all findings (``mentions`` of the recipe) for others of their label.
    """

    def __init__(self, sentences: Sequence[Sentence], recipe: dict[str, Any], encode: Encode) -> None:
        self._sentences, self._encode = sentences, encode
        self._labels, self._together = tuple(recipe["labels"]), recipe.get("together", 0.0)
        self._length, self._most = recipe.get("length", _PIECE), recipe.get("batch", _BATCH)
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
        cuts: list[list[Cut]] = []
        for sentence in self._sentences:
            if chance.random() >= self._shares.get(sentence.source, 1):
                continue
            size, length = len(sentence.borders), self._length
            shift = chance.randrange(length) if size > length else 0
            borders = [0, *range(length - shift, size, length), size]
            parts = [(sentence, a, b) for a, b in pairwise(borders) if b > a]
            before = cuts[-1] if cuts else []
            if (
                before
                and before[-1][0].document == sentence.document != ""
                and _count_words(before) + size <= length
                and chance.random() < self._together
            ):
                before += parts
            else:
                cuts += [[part] for part in parts]
        chance.shuffle(cuts)
        pool = 2000
        for start in range(0, len(cuts), pool):
            group = sorted(cuts[start : start + pool], key=_count_words)
            batches: list[list[list[Cut]]] = [[]]
            for cut in group:
                if _count_words(cut) * (len(batches[-1]) + 1) > self._most:
                    batches.append([])
                batches[-1].append(cut)
            chance.shuffle(batches)
            yield from (self._make_batch(batch, chance) for batch in batches if batch)

    def _make_batch(self, cuts: Sequence[list[Cut]], chance: random.Random) -> Any:
        joined = [_join_pieces([_cut_piece(*part) for part in cut]) for cut in cuts]
        pieces = [self._vary(piece, cut[0][0].language, chance) for piece, cut in zip(joined, cuts, strict=True)]
        languages = [cut[0][0].language if chance.random() < 0.9 else "" for cut in cuts]
        return self._encode(pieces, languages)

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


def _join_pieces(pieces: Sequence[Piece]) -> Piece:
    """Pieces of one document as one, each on its line, as the texts began."""
    words, gaps, tags = ([x for piece in pieces for x in getattr(piece, name)] for name in ("words", "gaps", "tags"))
    return Piece(words, gaps, tags)


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
    network: Any,
    sentences: Sequence[Sentence],
    recipe: dict[str, Any],
    encode: Encode,
    checkpoint: Path,
    report: Callable[[str], object],
) -> Any:
    """Train for the recipe's epochs, which may end within one; the rate falls to zero at their end.

    Args:
        network: a :class:`Network` or a :class:`~allonym.train.network.NameNetwork`.
        encode: makes its batches.
        checkpoint: a file that is written after each epoch; if it is there, the training goes on from it.
        report: called with a line now and then.
    """
    torch.manual_seed(1)
    torch.set_num_threads(1)
    chance = random.Random(1)
    optimizer = torch.optim.Adam(network.make_parameter_groups(recipe), lr=recipe["rate"], fused=True)
    batches = Batches(sentences, recipe, encode)
    words_read, step, first = 0, 0, 0
    if checkpoint.exists():
        state = torch.load(checkpoint, weights_only=True)
        network.load_state_dict(state["network"])
        optimizer.load_state_dict(state["optimizer"])
        chance.setstate(state["chance"])
        torch.set_rng_state(state["torch"])
        words_read, step, first = state["words_read"], state["step"], state["epoch"]
    total = recipe["epochs"] * batches.words
    for epoch in range(first, math.ceil(recipe["epochs"])):
        losses = []
        for batch in batches(chance):
            left = 1 - words_read / total
            if left <= 0:
                break
            for group in optimizer.param_groups:
                group["lr"] = group["rate"] * min(1.0, (step + 1) / 100) * left
            loss = network.draw_loss(batch)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(network.parameters(), 5.0)
            optimizer.step()
            losses.append(loss.item())
            words_read, step = words_read + int(batch.is_word.sum()), step + 1
            if step % _OFTEN == 0:
                last = losses[-_OFTEN:]
                mean = sum(last) / len(last)
                report(f"epoch {epoch + 1}, {words_read} words: loss {mean:.4f}\n")
        state = {"network": network.state_dict(), "optimizer": optimizer.state_dict(), "chance": chance.getstate()}
        state |= {"torch": torch.get_rng_state(), "words_read": words_read, "step": step, "epoch": epoch + 1}
        torch.save(state, checkpoint)
        report(f"epoch {epoch + 1} of {recipe['epochs']}: loss {sum(losses) / max(1, len(losses)):.4f}\n")
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
    write_description(folder, about)


def write_description(folder: Path, about: dict[str, Any]) -> None:
    """Write ``model.json``: what is known about a model."""
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
    parser.add_argument("--epochs", type=float)
    options = parser.parse_args()
    torch.manual_seed(1)
    recipe = load_recipe(options.recipe)
    recipe["epochs"] = options.epochs or recipe["epochs"]
    parts = load_parts(options.data, recipe)
    options.out.mkdir(parents=True, exist_ok=True)
    trained = parts["train"] + (parts["dev"] if recipe.get("dev") else [])
    checkpoint, report = options.out / "checkpoint.pt", sys.stderr.write
    about: dict[str, Any] = {"format": 3, "licence": recipe["licence"], "labels": list(recipe["labels"])}
    model: WordTagger | NameTagger
    if recipe.get("encoder"):
        words = list_words(trained)
        network, pieces = start_network(words, recipe)
        write_pieces(pieces, network.encoder, options.out)
        train_network(network, trained, recipe, encode_windows(pieces), checkpoint, report)
        about |= {"chain": network.chain.tolist()}
        save_onnx_model(make_tagger_graph(network), options.out / "tagger.onnx")
        write_description(options.out, about)
        model = NameTagger(options.out)
    else:
        languages, has_dictionaries = {s.language for s in parts["train"]}, recipe.get("dictionaries", False)
        lists = collect_lists(sorted(languages), has_dictionaries) if recipe["lists"] else None
        hashed = train_network(Network(recipe), trained, recipe, encode_hashed(recipe, lists), checkpoint, report)
        about |= {"gaps": True, "dictionaries": has_dictionaries, "layers": recipe["layers"]}
        save_network(hashed, lists, options.out, about)
        model = WordTagger(options.out)
    if recipe.get("dev"):  # no operating points can be chosen
        tested = sorted({sentence.language for sentence in parts["test"]})
        about |= {"languages": tested, "measured": {"strict_f1": measure_strict_f1(model, parts["test"])}}
    else:
        about |= measure_model(model, parts["dev"], parts["test"], parts["beside"])
    write_description(options.out, about)


def list_words(sentences: Iterable[Sentence]) -> Iterator[tuple[str, float]]:
    """Words of texts and, with small letters and a capital, of the frequency lists of their languages."""
    with require_extra("training the tagger", "train"):
        import wordfreq
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for sentence in sentences:
        counts[sentence.language].update(sentence.text[a:b] for a, b in sentence.borders)
    for words in counts.values():
        total = words.total()
        yield from ((word, count / total) for word, count in words.items() if count > 1)
    listed_languages = wordfreq.available_languages()
    for code in sorted({_LISTED.get(code, code) for code in counts} & listed_languages.keys()):
        for word, share in wordfreq.get_frequency_dict(code).items():
            if share >= _LEAST_SHARE_OF_PIECES:
                yield from ((word, share / 2), (word.capitalize(), share / 2))


if __name__ == "__main__":
    main()
