"""Options of commands that read annotated text: format, choice of documents, split into parts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

FILE = click.Path(exists=True, path_type=Path)


def parse_shares(ctx: click.Context, param: click.Parameter, value: str) -> tuple[float, float, float]:
    try:
        train, dev, test = (float(share) for share in value.split("/"))
    except ValueError:
        raise click.BadParameter("three shares such as 80/10/10 are required", ctx=ctx, param=param) from None
    return train, dev, test


def parse_columns(ctx: click.Context, param: click.Parameter, value: str) -> tuple[int, int]:
    try:
        token, tag = (int(number) for number in value.split(","))
    except ValueError:
        raise click.BadParameter("two columns such as 0,-1 are required", ctx=ctx, param=param) from None
    return token, tag


def parse_settings(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    out: dict[str, str] = {}
    for value in values:
        name, equals, setting = value.partition("=")
        if not (name and equals):
            raise click.BadParameter("NAME=VALUE is required, such as dropout=0.2", ctx=ctx, param=param)
        out[name.strip()] = setting.strip()
    return out


def reading_options(command: F) -> F:
    """Add options for reading annotated files; the command receives ``format`` and ``columns``."""
    for option in (
        click.option(
            "--columns",
            default="0,-1",
            show_default=True,
            metavar="TOKEN,TAG",
            callback=parse_columns,
            help="With --format conll: columns of the token and the tag, from 0; -1 is the last.",
        ),
        click.option(
            "--format",
            "format",
            metavar="NAME",
            help="jsonl, conll, spacy, brat, tab or presidio. By default recognised by suffix and content.",
        ),
    ):
        command = option(command)
    return command


def choosing_options(command: F) -> F:
    """Add options that choose documents: min_ratio, max_ratio, min_words, max_words, first_words and richest."""
    for option in reversed(
        (
            click.option(
                "--min-ratio",
                type=float,
                default=0.0,
                metavar="X",
                help="Use documents with at least X entities per word.",
            ),
            click.option(
                "--max-ratio",
                type=float,
                default=1.0,
                metavar="X",
                help="Use documents with fewer than X entities per word, such as 0.2.",
            ),
            click.option(
                "--min-words", type=click.IntRange(0), default=0, metavar="N", help="Use documents of at least N words."
            ),
            click.option("--max-words", type=click.IntRange(1), metavar="N", help="Use documents of at most N words."),
            click.option("--first-words", type=click.IntRange(1), metavar="N", help="Cut documents after N words."),
            click.option(
                "--richest",
                type=click.IntRange(1),
                metavar="N",
                help="Use only the N documents with the most entities per word.",
            ),
        )
    ):
        command = option(command)
    return command


def data_options(command: F) -> F:
    """Add the options that training and search share: parts, seed, label map, encoder, backend settings."""
    for option in reversed(
        (
            click.option(
                "--dev",
                type=FILE,
                metavar="FILE",
                help="Annotated file for choosing the epoch, instead of a part of FILE.",
            ),
            click.option(
                "--test", type=FILE, metavar="FILE", help="Annotated file for testing, instead of a part of FILE."
            ),
            click.option(
                "--parts",
                default="80/10/10",
                show_default=True,
                callback=parse_shares,
                metavar="SHARES",
                help="Shares of train, dev and test, in per cent; split by document.",
            ),
            click.option(
                "--seed", type=int, default=0, show_default=True, help="Seed of the split and of all random draws."
            ),
            click.option(
                "--label-map",
                type=click.Path(exists=True, dir_okay=False, path_type=Path),
                metavar="FILE",
                help='TOML file that maps the corpus\' labels, as NAME = ["LABEL", ...]; [] leaves spans out.',
            ),
            click.option(
                "--own-labels", is_flag=True, help="spaCy and MITIE: learn the labels of the corpus, unmapped."
            ),
            click.option("--encoder", default="", metavar="FOLDER|NAME", help="tagger: BERT encoder to start from."),
            click.option("--language", default="en", show_default=True, metavar="CODE", help="Language of the text."),
            click.option(
                "--set",
                "settings",
                multiple=True,
                callback=parse_settings,
                metavar="NAME=VALUE",
                help="Any option of the backend, such as dropout=0.2. Repeatable.",
            ),
        )
    ):
        command = option(command)
    return command
