"""Options that several commands share, and the policy, key and vault that they name."""

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
    from allonym.vault import Secret, Vault

F = TypeVar("F", bound=Callable[..., Any])


def _complete_presets(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from allonym.policy import presets

    names = [CompletionItem(n) for n in presets() if n.startswith(incomplete)]
    return names or [CompletionItem(incomplete, type="file")]


def _complete_labels(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from allonym.labels import TAXONOMY

    prefix = incomplete.upper()
    return [CompletionItem(lab.name, help=lab.description) for lab in TAXONOMY if lab.name.startswith(prefix)]


def _parse_pairs(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> tuple[tuple[str, Path], ...]:
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
    shell_complete=_complete_presets,
    help="A preset (see: allonym policy list) or a TOML file.",
)


def _parse_point(ctx: click.Context, param: click.Parameter, value: str | None) -> str | float | None:
    from allonym.policy import check_operating_point

    if value is None:
        return None
    try:
        return check_operating_point(
            float(value) if value[:1].isdigit() or value[:1] == "." else value, "--operating-point"
        )
    except ValueError as error:
        raise click.BadParameter(str(error), ctx=ctx, param=param) from None


def _complete_points(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from allonym.policy import OPERATING_POINTS

    return [CompletionItem(name) for name in OPERATING_POINTS if name.startswith(incomplete)]


def policy_options(command: F) -> F:
    """Add the options that choose and narrow a policy.

    The command receives policy, label, dictionary, exclude_terms and operating_point.
    """
    for option in reversed(
        (
            policy_option,
            click.option(
                "--label",
                multiple=True,
                metavar="LABEL",
                shell_complete=_complete_labels,
                help="Detect only this label and those below it. Repeatable.",
            ),
            click.option(
                "--dictionary",
                multiple=True,
                metavar="LABEL=PATH",
                callback=_parse_pairs,
                help="File of terms to detect: text with one term per line, or the first column of a CSV. Repeatable.",
            ),
            click.option(
                "--exclude-terms",
                type=click.Path(exists=True, dir_okay=False, path_type=Path),
                metavar="PATH",
                help="File of terms that are never findings, in the format of --dictionary.",
            ),
            click.option(
                "--operating-point",
                metavar="NAME|NUMBER",
                callback=_parse_point,
                shell_complete=_complete_points,
                help="Threshold of the tagger: high-recall, balanced, high-precision, or the least probability of a "
                "finding, such as 0.2. Labels with a threshold of their own in the policy keep it.",
            ),
        )
    ):
        command = option(command)
    return command


key_option = click.option(
    "--key-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="PATH",
    help="File with the key of pseudonym, hash, encrypt and other keyed operators: a passphrase or at least 16 bytes. "
    "Or set ALLONYM_KEY.",
)

format_option = click.option(
    "--format", "format", metavar="NAME", help="Format of standard input, or of a file with an unusual suffix."
)
field_option = click.option(
    "--field",
    multiple=True,
    metavar="NAME",
    help="Column or dotted path of the text, such as review or user.name. Repeatable; by default all text.",
)


def chosen_policy(
    name: str,
    label: tuple[str, ...] = (),
    dictionary: tuple[tuple[str, Path], ...] = (),
    exclude_terms: Path | None = None,
    operating_point: str | float | None = None,
) -> Policy:
    """Return the policy that the options of :func:`policy_options` describe.

    Raises:
        PolicyError, UnknownNameError: the policy, a label or a list is not valid.
    """
    from allonym.policy import Policy, TermList, read_terms

    policy = Policy.load(name)
    taxonomy = policy.taxonomy
    if label:
        requested_labels = [taxonomy.get(label_name.upper(), "--label").name for label_name in label]
        all_labels = tuple(
            dict.fromkeys(d for label_name in requested_labels for d in taxonomy.descendants(label_name))
        )
        still = tuple(
            e for e in policy.exclude if not any(taxonomy.within(label_name, e) for label_name in requested_labels)
        )
        policy = policy.with_(labels=all_labels, every=False, exclude=still)
    if dictionary:
        lists = [
            TermList(taxonomy.get(label_name, "--dictionary").name, read_terms(path)) for label_name, path in dictionary
        ]
        policy = policy.with_(dictionary=(*policy.dictionary, *lists))
    if exclude_terms is not None:
        policy = policy.with_(exclusions=(*policy.exclusions, TermList("*", read_terms(exclude_terms))))
    if operating_point is not None:
        policy = policy.with_(operating_points=MappingProxyType({**policy.operating_points, "*": operating_point}))
    return policy


def read_key(path: Path | None) -> bytes | str | None:
    """Return the key in a file, or else the one in ALLONYM_KEY, or else None.

    Readable text is a passphrase (a ``str``, without the line ends at its end), anything else is random bytes.

    Raises:
        UsageError: the key is too short.
    """
    import os

    if path is not None:
        data, where = path.read_bytes(), str(path)
    elif secret := os.environ.get("ALLONYM_KEY"):
        data, where = os.fsencode(secret), "ALLONYM_KEY"
    else:
        return None
    key: bytes | str = data
    try:
        line = data.decode("utf-8").rstrip("\r\n")
    except UnicodeDecodeError:
        line = ""
    if line and line.isprintable():
        key = line
    from allonym.keys import MIN_KEY_BYTES

    if (size := len(key.encode() if isinstance(key, str) else key)) < MIN_KEY_BYTES:
        raise UsageError(f"{where}: a key needs at least {MIN_KEY_BYTES} bytes, got {size}")
    return key


def secret_options(command: F) -> F:
    """Add the options for a vault's secret. The command receives secret_file, secret_env and secret_keyring."""
    return _secret_options("", "The vault's secret", " By default ALLONYM_VAULT_KEY.")(command)


def other_secret_options(prefix: str, what: str, otherwise: str) -> Callable[[F], F]:
    """Add the same options for a second secret; ``prefix`` stands in front of their names."""
    return _secret_options(f"{prefix}-", what, otherwise)


def _secret_options(prefix: str, what: str, otherwise: str) -> Callable[[F], F]:
    def add_options(command: F) -> F:
        for option in reversed(
            (
                click.option(
                    f"--{prefix}secret-file",
                    type=click.Path(exists=True, dir_okay=False, path_type=Path),
                    metavar="PATH",
                    help=f"{what}, in a file: a passphrase or random bytes, at least 16.",
                ),
                click.option(
                    f"--{prefix}secret-env",
                    metavar="NAME",
                    help=f"{what}, in an environment variable.{otherwise}",
                ),
                click.option(
                    f"--{prefix}secret-keyring",
                    metavar="SERVICE/NAME",
                    help=f"{what}, in the keyring of the operating system.",
                ),
            )
        ):
            command = option(command)
        return command

    return add_options


def vault_options(command: F) -> F:
    """Add the options that choose a vault and a scope in it.

    The command receives vault, scope, secret_file, secret_env and secret_keyring.
    """
    command = secret_options(command)
    for option in reversed(
        (
            click.option(
                "--vault",
                metavar="PATH|URL",
                help="Vault that stores originals with their replacements; see: allonym vault.",
            ),
            click.option(
                "--scope",
                default="",
                metavar="NAME",
                help="Project or release. Replacements agree within a scope and differ between scopes.",
            ),
        )
    ):
        command = option(command)
    return command


def read_vault_secret(
    file: Path | None, environment: str | None, keyring: str | None, *, prefix: str = ""
) -> Secret | None:
    """Return the secret that an option of :func:`secret_options` names, or None.

    Without a prefix, the secret in ALLONYM_VAULT_KEY is the default.

    Raises:
        UsageError: two secrets are named, or the secret is missing or too short.
    """
    from allonym.vault import secret_from_environment, secret_from_file, secret_from_keyring

    if sum(source is not None for source in (file, environment, keyring)) > 1:
        names = ", ".join(f"--{prefix}secret-{end}" for end in ("file", "env", "keyring"))
        raise UsageError(f"only one of {names} can be given")
    if file is not None:
        return secret_from_file(file)
    if keyring is not None:
        return secret_from_keyring(keyring)
    if environment is not None:
        secret = secret_from_environment(environment)
        if secret is None:
            raise UsageError(f"the environment variable {environment} is empty or not set")
        return secret
    return None if prefix else secret_from_environment()


def open_vault(vault: str, secret_file: Path | None, secret_env: str | None, secret_keyring: str | None) -> Vault:
    """Open the vault that the options name.

    Raises:
        UsageError: no secret is named.
        VaultError, WrongKey: there is no such vault, or the secret does not open it.
    """
    from allonym.vault import Vault

    secret = read_vault_secret(secret_file, secret_env, secret_keyring)
    if secret is None:
        raise UsageError("the vault's secret is required: --secret-file, --secret-keyring or ALLONYM_VAULT_KEY")
    return Vault.open(vault, secret)
