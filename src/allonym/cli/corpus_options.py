"""Options of the commands that read annotated text: how it is read, which documents count, how it is cut into parts."""

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


def columns_of(ctx: click.Context, param: click.Parameter, value: str) -> tuple[int, int]:
    try:
        token, tag = (int(number) for number in value.split(","))
    except ValueError:
        raise click.BadParameter("two columns such as 0,-1 are required", ctx=ctx, param=param) from None
    return token, tag


def settings_of(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    out: dict[str, str] = {}
    for value in values:
        name, equals, setting = value.partition("=")
        if not (name and equals):
            raise click.BadParameter("NAME=VALUE is required, such as dropout=0.2", ctx=ctx, param=param)
        out[name.strip()] = setting.strip()
    return out


def reading_options(command: F) -> F:
    """How annotated files are read: they arrive as format and columns."""
    for option in (
        click.option(
            "--columns",
            default="0,-1",
            show_default=True,
            metavar="TOKEN,TAG",
            callback=columns_of,
            help="Columns of a file in columns, from 0; -1 is the last.",
        ),
        click.option(
            "--format",
            "format",
            metavar="NAME",
            help="jsonl, conll, spacy, brat, tab or presidio; by default told by suffix and content.",
        ),
    ):
        command = option(command)
    return command


def choosing_options(command: F) -> F:
    """Which documents are used: they arrive as min_ratio, max_ratio, min_words, max_words, first_words and richest."""
    for option in reversed(
        (
            click.option("--min-ratio", type=float, default=0.0, metavar="X", help="Least entities per word."),
            click.option(
                "--max-ratio",
                type=float,
                default=1.0,
                metavar="X",
                help="Below so many entities per word, such as 0.2.",
            ),
            click.option(
                "--min-words", type=click.IntRange(0), default=0, metavar="N", help="Least words of a document."
            ),
            click.option("--max-words", type=click.IntRange(1), metavar="N", help="Most words of a document."),
            click.option(
                "--first-words", type=click.IntRange(1), metavar="N", help="Cut documents after so many words."
            ),
            click.option(
                "--richest",
                type=click.IntRange(1),
                metavar="N",
                help="Only so many documents, with most entities per word.",
            ),
        )
    ):
        command = option(command)
    return command


def data_options(command: F) -> F:
    """Parts, seed, label map and encoder, which training and search share."""
    for option in reversed(
        (
            click.option("--dev", type=FILE, metavar="FILE", help="Choose epochs by this file, not by a part of FILE."),
            click.option("--test", type=FILE, metavar="FILE", help="Judge by this file, not by a part of FILE."),
            click.option(
                "--parts",
                default="80/10/10",
                show_default=True,
                callback=parse_shares,
                metavar="SHARES",
                help="Shares to train on, to choose epochs by and to judge by; split by document.",
            ),
            click.option(
                "--seed", type=int, default=0, show_default=True, help="Of the split and of all that is drawn."
            ),
            click.option(
                "--label-map",
                type=click.Path(exists=True, dir_okay=False, path_type=Path),
                metavar="FILE",
                help='TOML with what the corpus\' labels mean, as NAME = ["LABEL", ...]; [] leaves spans out.',
            ),
            click.option("--own-labels", is_flag=True, help="spaCy and MITIE: learn the corpus' own labels, unmapped."),
            click.option("--encoder", default="", metavar="FOLDER|NAME", help="tagger: BERT to start from."),
            click.option("--language", default="en", show_default=True, metavar="CODE", help="Language of the text."),
            click.option(
                "--set",
                "settings",
                multiple=True,
                callback=settings_of,
                metavar="NAME=VALUE",
                help="Any option of the backend, such as dropout=0.2. Repeatable.",
            ),
        )
    ):
        command = option(command)
    return command
