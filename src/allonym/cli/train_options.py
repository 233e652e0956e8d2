"""Options of commands that read annotated text: format, choice of documents, parts, and settings of the training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from allonym.cli.options import COUNT, FILE, PATH, POSITIVE, flag, group_options, option
from allonym.errors import UsageError, check_names

if TYPE_CHECKING:
    from allonym.cli.options import Declaration
    from allonym.train.backends import Setup
    from allonym.train.records import Record

Shares = tuple[float, float, float]
Parts = tuple[list["Record"], list["Record"], list["Record"]]


def _parse_shares(ctx: click.Context, param: click.Parameter, value: str) -> Shares:
    try:
        train, dev, test = (float(share) for share in value.split("/"))
    except ValueError:
        raise click.BadParameter("three shares such as 80/10/10 are required", ctx=ctx, param=param) from None
    return train, dev, test


def _parse_columns(ctx: click.Context, param: click.Parameter, value: str) -> tuple[int, int]:
    try:
        token, tag = (int(number) for number in value.split(","))
    except ValueError:
        raise click.BadParameter("two columns such as 0,-1 are required", ctx=ctx, param=param) from None
    return token, tag


def _parse_settings(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    out: dict[str, str] = {}
    for value in values:
        name, equals, setting = value.partition("=")
        if not (name and equals):
            raise click.BadParameter("NAME=VALUE is required, such as dropout=0.2", ctx=ctx, param=param)
        out[name.strip()] = setting.strip()
    return out


def parts_option(help: str) -> Declaration:
    """Declare --parts."""
    return option("--parts SHARES", help, default="80/10/10", callback=_parse_shares)


class Reading(NamedTuple):
    """How annotated files are read."""

    format: str | None = option(
        "--format NAME", "jsonl, conll, spacy, brat, tab or presidio. By default recognised by suffix and content."
    )
    columns: tuple[int, int] = option(
        "--columns TOKEN,TAG",
        "With --format conll: columns of the token and the tag, from 0; -1 is the last.",
        default="0,-1",
        callback=_parse_columns,
    )

    def read_records(self, files: Sequence[Path]) -> list[Record]:
        """Read the records of all files."""
        from allonym.train.records import read_records

        return [record for path in files for record in read_records(path, self.format, self.columns)]


class Selection(NamedTuple):
    """Which documents are used: the arguments of :func:`allonym.train.select.choose_records`."""

    min_ratio: float = option(
        "--min-ratio X",
        "Use documents with at least X entities per word.",
        type=float,
        default=0.0,
        show_default=False,
    )
    max_ratio: float = option(
        "--max-ratio X",
        "Use documents with fewer than X entities per word, such as 0.2.",
        type=float,
        default=1.0,
        show_default=False,
    )
    min_words: int = option(
        "--min-words N", "Use documents of at least N words.", type=COUNT, default=0, show_default=False
    )
    max_words: int | None = option("--max-words N", "Use documents of at most N words.", type=POSITIVE)
    first_words: int | None = option("--first-words N", "Cut documents after N words.", type=POSITIVE)
    richest: int | None = option(
        "--richest N", "Use only the N documents with the most entities per word.", type=POSITIVE
    )

    def choose_records(self, records: Sequence[Record]) -> list[Record]:
        """Choose the documents."""
        from allonym.train.select import choose_records

        return choose_records(records, **self._asdict())


class Training(NamedTuple):
    """What training and search share: parts, seed, labels, encoder, language, and settings of the backend."""

    dev: Path | None = option(
        "--dev FILE", "Annotated file for choosing the epoch, instead of a part of FILE.", type=PATH
    )
    test: Path | None = option("--test FILE", "Annotated file for testing, instead of a part of FILE.", type=PATH)
    parts: Shares = parts_option("Shares of train, dev and test, in per cent; split by document.")
    seed: int = option("--seed", "Seed of the split and of all random draws.", type=int, default=0)
    label_map: Path | None = option(
        "--label-map FILE",
        'TOML file that maps the corpus\' labels, as NAME = ["LABEL", ...]; [] leaves spans out.',
        type=FILE,
    )
    own_labels: bool = flag("--own-labels", "spaCy and MITIE: learn the labels of the corpus, unmapped.")
    encoder: str = option("--encoder FOLDER|NAME", "tagger: BERT encoder to start from.", default="")
    language: str = option("--language CODE", "Language of the text.", default="en")
    settings: Mapping[str, str] = option(
        "--set NAME=VALUE",
        "Any option of the backend, such as dropout=0.2. Repeatable.",
        name="settings",
        multiple=True,
        callback=_parse_settings,
    )

    def make_setup(self) -> Setup:
        """Return the settings beside those of the backend."""
        from allonym.train.backends import Setup
        from allonym.train.labelmap import find_targets, read_label_map

        targets = find_targets if self.label_map is None else read_label_map(self.label_map).find_targets
        return Setup(self.encoder, self.language, targets, self.own_labels)

    def make_options(self, names: Sequence[str], settings: Mapping[str, Any]) -> dict[str, Any]:
        """Return the options of each backend. An option that no backend has is an error."""
        from dataclasses import fields

        from allonym.train.backends import get_options_type, make_options

        field_names = {name: {f.name for f in fields(get_options_type(name))} for name in names}
        everywhere = set().union(*field_names.values())
        check_names(f"option of {' or '.join(names)}", settings, everywhere)
        values = {"seed": self.seed, "language": self.language, **settings}
        return {name: make_options(name, {k: v for k, v in values.items() if k in field_names[name]}) for name in names}

    def split_records(self, records: Sequence[Record], reading: Reading) -> Parts:
        """Return the records for train, dev and test. A part with a file of its own is not split off.

        Raises:
            UsageError: no documents are left for training.
        """
        from allonym.train.select import split_records

        shares = (self.parts[0], 0.0 if self.dev else self.parts[1], 0.0 if self.test else self.parts[2])
        train, dev, test = split_records(records, shares, self.seed)
        dev = reading.read_records([self.dev]) if self.dev else dev
        test = reading.read_records([self.test]) if self.test else test
        if not train:
            raise UsageError("no documents are left for training; widen --parts or the choice of documents")
        return train, dev, test


reading_options = group_options("reading", Reading)
selection_options = group_options("selection", Selection)
training_options = group_options("training", Training)
