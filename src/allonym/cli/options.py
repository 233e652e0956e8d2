"""Options that several commands share, and the policy and key that they lead to."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.shell_completion import CompletionItem

from allonym.errors import UsageError

if TYPE_CHECKING:
    from allonym.policy import Policy

F = TypeVar("F", bound=Callable[..., Any])


def _presets(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from allonym.policy import presets

    names = [CompletionItem(n) for n in presets() if n.startswith(incomplete)]
    return names or [CompletionItem(incomplete, type="file")]


def _labels(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from allonym.labels import TAXONOMY

    wanted = incomplete.upper()
    return [CompletionItem(lab.name, help=lab.description) for lab in TAXONOMY if lab.name.startswith(wanted)]


def _pairs(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> tuple[tuple[str, Path], ...]:
    out = []
    for value in values:
        label, equals, path = value.partition("=")
        if not (label and equals and path):
            raise click.BadParameter("LABEL=PATH is required, such as PERSON=names.txt", ctx=ctx, param=param)
        out.append((label.strip().upper(), Path(path)))
    return tuple(out)


policy_option = click.option(
    "-p",
    "--policy",
    default="default",
    show_default=True,
    metavar="NAME|FILE",
    shell_complete=_presets,
    help="A preset (see: allonym policy list) or a TOML file.",
)


def _point(ctx: click.Context, param: click.Parameter, value: str | None) -> str | float | None:
    from allonym.policy import operating_point

    if value is None:
        return None
    try:
        return operating_point(float(value) if value[:1].isdigit() or value[:1] == "." else value, "--operating-point")
    except ValueError as error:
        raise click.BadParameter(str(error), ctx=ctx, param=param) from None


def _points(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from allonym.policy import OPERATING_POINTS

    return [CompletionItem(name) for name in OPERATING_POINTS if name.startswith(incomplete)]


def policy_options(command: F) -> F:
    """The options that choose and narrow a policy.

    They arrive as policy, label, dictionary, exclude_terms and operating_point.
    """
    for option in reversed(
        (
            policy_option,
            click.option(
                "--label",
                multiple=True,
                metavar="LABEL",
                shell_complete=_labels,
                help="Look only for this label and those below it. Repeatable.",
            ),
            click.option(
                "--dictionary",
                multiple=True,
                metavar="LABEL=PATH",
                callback=_pairs,
                help="Find all terms of this file: text with one a line, or CSV whose first column counts. Repeatable.",
            ),
            click.option(
                "--exclude-terms",
                type=click.Path(exists=True, dir_okay=False, path_type=Path),
                metavar="PATH",
                help="Terms that are no findings, in a file like those of --dictionary.",
            ),
            click.option(
                "--operating-point",
                metavar="NAME|NUMBER",
                callback=_point,
                shell_complete=_points,
                help="How strict the tagger is: high-recall, balanced, high-precision, or the least probability of a "
                "finding, such as 0.2. Labels for which the policy has one of their own keep it.",
            ),
        )
    ):
        command = option(command)
    return command


key_option = click.option(
    "--key-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="PATH",
    help="Secret of hash, encrypt and shift_dates: a passphrase or random bytes, 16 at least. Or set ALLONYM_KEY.",
)

format_option = click.option("--format", "format", metavar="NAME", help="Format of stdin, or of an unusual suffix.")
field_option = click.option(
    "--field",
    multiple=True,
    metavar="NAME",
    help="Column or dotted path that holds text, such as review or user.name. Repeatable; by default all text.",
)


def chosen_policy(
    name: str,
    label: tuple[str, ...] = (),
    dictionary: tuple[tuple[str, Path], ...] = (),
    exclude_terms: Path | None = None,
    operating_point: str | float | None = None,
) -> Policy:
    """The policy that the options of :func:`policy_options` describe.

    Raises:
        PolicyError, UnknownNameError: the policy, a label or a list is not valid.
    """
    from allonym.policy import Policy, TermList, read_terms

    policy = Policy.load(name)
    taxonomy = policy.taxonomy
    if label:
        asked = [taxonomy.get(one.upper(), "--label").name for one in label]
        wanted = tuple(dict.fromkeys(d for one in asked for d in taxonomy.descendants(one)))
        still = tuple(e for e in policy.exclude if not any(taxonomy.within(one, e) for one in asked))
        policy = policy.with_(labels=wanted, every=False, exclude=still)
    if dictionary:
        lists = [TermList(taxonomy.get(one, "--dictionary").name, read_terms(path)) for one, path in dictionary]
        policy = policy.with_(dictionary=(*policy.dictionary, *lists))
    if exclude_terms is not None:
        policy = policy.with_(exclusions=(*policy.exclusions, TermList("*", read_terms(exclude_terms))))
    if operating_point is not None:
        policy = policy.with_(operating_points=MappingProxyType({**policy.operating_points, "*": operating_point}))
    return policy


def read_key(path: Path | None) -> bytes | str | None:
    """The key in a file, or else the one in ALLONYM_KEY, or else None.

    Readable text is a passphrase (a ``str``, without the line ends at its end), anything else is random bytes.

    Raises:
        UsageError: the key is too short.
    """
    import os

    if path is not None:
        data, where = path.read_bytes(), str(path)
    elif given := os.environ.get("ALLONYM_KEY"):
        data, where = os.fsencode(given), "ALLONYM_KEY"
    else:
        return None
    key: bytes | str = data
    try:
        line = data.decode("utf-8").rstrip("\r\n")
    except UnicodeDecodeError:
        line = ""
    if line and line.isprintable():
        key = line
    from allonym.replace.keyed import MIN_KEY_BYTES

    if (size := len(key.encode() if isinstance(key, str) else key)) < MIN_KEY_BYTES:
        raise UsageError(f"{where}: a key needs at least {MIN_KEY_BYTES} bytes, got {size}")
    return key
