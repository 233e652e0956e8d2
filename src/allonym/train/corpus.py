"""Training sources: the corpora of a recipe, how they are read, and their train, dev and test parts."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from hashlib import blake2b
from importlib.resources import files
from pathlib import Path
from typing import Any

from allonym.errors import DataError, UsageError, check_names
from allonym.models.tags import LABELS
from allonym.models.words import split_words
from allonym.train.examples import Example, Lists, list_annotated_labels, make_example
from allonym.train.labelmap import find_targets
from allonym.train.ordinary import NAMES, find_ordinary_words, make_ordinary_example
from allonym.train.records import read_json_lines
from allonym.train.synthetic import generate_texts, read_name_rows
from allonym.train.written import SOURCE, read_written_records

Record = Mapping[str, Any]
_SENTENCE = re.compile(r"-\d{4}\Z")  # sentence ids of Universal Dependencies
_PUD = re.compile(r"\A([nw]\d{5})-\d{4}\Z")  # UD PUD gives the sentence, not the document
_SMALL = 300  # documents; smaller corpora are divided exactly


@dataclass(frozen=True, slots=True)
class Source:
    """One corpus of a recipe.

    Attributes:
        path: file, relative to the data folder; ``synthetic`` for generated text, ``written`` for the texts of
            :mod:`allonym.train.written`.
        kind: kind of text, by which operating points are measured; by default the file's name.
        keep, silver: see :func:`allonym.train.examples.make_example`; ``keep = "ordinary"`` reads unlabelled text with
            :func:`allonym.train.ordinary.make_ordinary_example`, for training only.
        field: name of the field with the spans.
        drop: labels whose spans are ordinary words, such as slots of a dialogue system that are no names.
        repeat: number of times per epoch; a fraction shows a part.
        finish: the same in the last stage; by default ``repeat`` times the stage's ``share``.
        join: join the sentences of one document into one text.
        skip: leave out documents whose id begins with this.
        count: number of texts to generate, for ``synthetic``.
        whole: hold out no part.
    """

    path: str
    kind: str = ""
    keep: str = "all"
    silver: bool = False
    field: str = "spans"
    drop: tuple[str, ...] = ()
    repeat: float = 1.0
    finish: float | None = None
    join: bool = False
    skip: tuple[str, ...] = ()
    count: int = 0
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Recipe:
    """The recipe of a tagger: options of the trainer, and sources in order.

    ``finish`` has the options of a last stage; ``share``, the part of the sources that it shows per epoch; and ``way``,
    the share of the way from the weights before it that counts, by default all. Without it there is no such stage.
    """

    name: str
    sources: tuple[Source, ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    licence: str = ""
    finish: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def load(cls, source: str | Path) -> Recipe:
        """Load a shipped recipe by name, or a TOML file.

        Raises:
            UsageError: the file does not exist, or has unknown keys.
        """
        shipped = files("allonym.train").joinpath("recipes", f"{source}.toml")
        path = Path(source)
        try:
            text = shipped.read_text("utf-8") if shipped.is_file() else path.read_text("utf-8")
            data = tomllib.loads(text)
        except OSError as error:
            raise UsageError(f"cannot read recipe {path}: {error.strerror}") from None
        except tomllib.TOMLDecodeError as error:
            raise UsageError(f"recipe {path}: {error}") from None
        sources = []
        for n, entry in enumerate(data.pop("source", []), 1):
            check_names("key", entry, Source.__dataclass_fields__, f"recipe {source}, source {n}")
            if "path" not in entry:
                raise UsageError(f"recipe {source}, source {n}: path is missing")
            sources.append(Source(**{**entry, **{name: tuple(entry.get(name, ())) for name in ("skip", "drop")}}))
        if not sources:
            raise UsageError(f"recipe {source}: no [[source]]")
        check_names("key", data, ("name", "licence", "options", "finish", "source"), f"recipe {source}")
        tables = data.get("options", {}), data.get("licence", ""), data.get("finish", {})
        return cls(data.get("name", path.stem), tuple(sources), *tables)


def get_source_name(record: Record) -> str:
    """Return the corpus of a record, from its metadata."""
    return str(record.get("meta", {}).get("source", ""))


def assign_train_dev_test(records: Sequence[Record]) -> dict[str, str]:
    """Assign each record id to ``train``, ``dev`` or ``test`` by document: a third to test, a tenth to dev.

    Records of one template, document or text are always in the same part. The split depends on these keys alone, so it
    is the same on any machine. Corpora of fewer than 300 documents are divided exactly, in the order of keyed hashes.
    """
    keys = _make_split_keys(records)
    distinct = sorted({(_hash_to_int(key), key) for key in keys})
    part: dict[str, str] = {}
    for n, (digest, key) in enumerate(distinct):
        share = n / len(distinct) if len(distinct) < _SMALL else digest / 2**64
        part[key] = "test" if share < 1 / 3 else "dev" if share < 1 / 3 + 0.1 else "train"
    return {str(r.get("id", i)): part[key] for i, (r, key) in enumerate(zip(records, keys, strict=True))}


def _make_split_keys(records: Sequence[Record]) -> list[str]:
    documents = [_get_document_name(record) for record in records]
    members = Counter(documents)
    out = []
    for record, document in zip(records, documents, strict=True):
        alone = members[document] == 1 and "template_id" not in record.get("meta", {})
        out.append(" ".join(record["text"].split()) if alone else document)
    return out


def _get_document_name(record: Record) -> str:
    meta = record.get("meta", {})
    if "template_id" in meta:
        return f"template {meta.get('source', '')} {meta['template_id']}"
    if "doc_id" in record:
        return _PUD.sub(r"\1", str(record["doc_id"]))
    return _SENTENCE.sub("", str(record.get("id")))


def _hash_to_int(key: str) -> int:
    return int.from_bytes(blake2b(key.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")


def load_corpus(recipe: Recipe, data: Path, part: str = "train") -> Iterator[tuple[Source, list[Example]]]:
    """Return the examples of each source of a recipe that belong to ``part``.

    Raises:
        DataError: a file is missing or broken.
    """
    lists = make_training_lists()
    ordinary: frozenset[str] = frozenset()
    if part == "train":
        unlabelled = [source for source in recipe.sources if source.keep == "ordinary"]
        ordinary = find_ordinary_words((r["text"] for s in unlabelled for r in _read_records(s, data)), lists)
    for source in recipe.sources:
        if source.path == "synthetic":
            count, seed = (source.count, 1) if part == "train" else (max(200, source.count // 20), 2)
            if part != "test":
                yield source, _set_kind(source, generate_synthetic_examples(count, seed))
            continue
        name = Path(source.path).name.partition(".")[0]
        if source.keep == "ordinary":
            if part == "train":
                yield source, [make_ordinary_example(r, name, ordinary) for r in _read_records(source, data)]
            continue
        records = _read_records(source, data)
        annotated_labels = (
            NAMES | {"DATE", "AGE"} if name == SOURCE else list_annotated_labels(records, name, find_targets)
        )
        parts = assign_train_dev_test(records)
        chosen = records if source.whole and part == "train" else [r for r in records if parts[str(r["id"])] == part]
        if source.whole and part != "train":
            continue
        make = partial(make_example, keep=source.keep, silver=source.silver)
        joined = join_sentences_to_records(chosen) if source.join else chosen
        yield source, _set_kind(source, (make(r, name, annotated_labels, find_targets, lists) for r in joined))


def _set_kind(source: Source, examples: Iterable[Example]) -> list[Example]:
    return [replace(example, source=source.kind or example.source) for example in examples]


def _read_records(source: Source, data: Path) -> list[dict[str, Any]]:
    if source.path == SOURCE:
        return list(read_written_records())
    path = data / source.path
    if not path.exists():
        raise DataError(f"{path}: the recipe requires this file; give the folder of the corpora with --data")
    records = [r for _, r in read_json_lines(path) if not str(r["id"]).startswith(source.skip or ("\0",))]
    return [{**r, "spans": [s for s in r.get(source.field, ()) if s["label"] not in source.drop]} for r in records]


def generate_synthetic_examples(count: int, seed: int) -> Iterator[Example]:
    """Yield examples of generated text, in which every label is annotated."""
    lists = make_training_lists()
    for record in generate_texts(count, seed):
        yield make_example(record, "synthetic", frozenset(LABELS), lambda label, _: frozenset([label]), lists)


_MOST_JOINED = 5


def join_sentences_to_records(records: Sequence[Record]) -> list[dict[str, Any]]:
    """Join up to five sentences of one document to a record; their number depends on the first sentence's id."""
    out: list[dict[str, Any]] = []
    remaining = 0
    for record in records:
        document = _get_document_name(record)
        if out and remaining and out[-1]["doc_id"] == document:
            remaining -= 1
            last = out[-1]
            shift = len(last["text"]) + 1
            last["text"] += " " + record["text"]
            moved = [{**s, "start": s["start"] + shift, "end": s["end"] + shift} for s in record.get("spans", ())]
            last["spans"] = [*last["spans"], *moved]
            if "tokens" in record:
                last["tokens"] = [*last["tokens"], *record["tokens"]]
                last["upos"] = [*last["upos"], *record["upos"]]
            continue
        remaining = _hash_to_int(str(record["id"])) % _MOST_JOINED
        out.append({**record, "doc_id": document, "spans": list(record.get("spans", ()))})
    return out


_TERMS = {
    "OCCUPATION": ("post", "job", "art_job", "sport_job", "unusual_job", "occs"),
    "ORIGIN": ("nationality", "ethnic", "religious", "political", "people", "person_of"),
    "LANGUAGE": ("lang",),
}
_PLACES = {"COUNTRY": "country", "REGION": "region", "CITY": "city"}


@cache
def make_training_lists() -> Lists:
    """Return the lists of :mod:`allonym.train.synthetic` without the names held out from training."""
    folder = files("allonym.train").joinpath("synthetic")
    texts = (folder.joinpath(f"{name}.toml").read_text("utf-8") for name in ("people", "places"))
    people, places = map(tomllib.loads, texts)
    first: set[str] = set()
    last: set[str] = set()
    for _, part, _, names in read_name_rows():
        (first if part == "first" else last).update(name.lower() for i, name in enumerate(names) if i % 3 != 2)
    return Lists(
        frozenset(first),
        frozenset(last),
        {label: _fold_terms(places[table]) for label, table in _PLACES.items()},
        {label: frozenset().union(*(_fold_terms(people[t]) for t in tables)) for label, tables in _TERMS.items()},
    )


def _fold_terms(table: Mapping[str, str]) -> frozenset[str]:
    items = (" ".join(item.split()).lower() for item in re.split(r"[;\n]", table["items"]))
    return frozenset(" ".join(i[a:b] for a, b in split_words(i)) for i in items if i and "{" not in i)
