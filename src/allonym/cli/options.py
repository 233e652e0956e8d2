"""Options that several commands share, and the policy, key and vault that they name."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from allonym.cli.terminal import print_stdin_note
from allonym.errors import UsageError

if TYPE_CHECKING:
    from allonym.document import Document
    from allonym.policy import Policy
    from allonym.vault import Secret, Vault

    class Declaration(Any):  # type: ignore[misc]
        """An option: it decorates commands, and may be the default of any field (see :func:`group_options`)."""

        def __call__(self, command: F) -> F: ...


F = TypeVar("F", bound=Callable[..., Any])

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
PATH = click.Path(exists=True, path_type=Path)
NEW_FILE = click.Path(dir_okay=False, path_type=Path)
NEW_FOLDER = click.Path(file_okay=False, path_type=Path)
POSITIVE = click.IntRange(1)
COUNT = click.IntRange(0)
SHARE = click.FloatRange(0, 1)


def option(declaration: str, help: str, *, name: str = "", **settings: Any) -> Declaration:
    """Declare an option as its help shows it; a default is shown there too, unless it is empty.

    Args:
        declaration: spellings and placeholder of the value, such as ``-o, --output FILE``.
        help: what the option does.
        name: parameter of the command that gets the value; by default, the long spelling's.
        settings: further arguments of :func:`click.option`.
    """
    *others, last = declaration.split(", ")
    spelling, _, placeholder = last.partition(" ")
    if placeholder:
        settings["metavar"] = placeholder
    settings.setdefault("show_default", settings.get("default") not in (None, ""))
    names = (*others, spelling, *([name] if name else []))
    return cast("Declaration", click.option(*names, help=help, **settings))


def flag(declaration: str, help: str, *, name: str = "") -> Declaration:
    """Declare an option without a value: see :func:`option`."""
    return option(declaration, help, name=name, is_flag=True)


def argument(name: str, **settings: Any) -> Declaration:
    """Declare an argument: see :func:`click.argument`."""
    return cast("Declaration", click.argument(name, **settings))


def with_options(*options: Declaration) -> Declaration:
    """Return a decorator that adds options, in this order."""

    def add_options(command: F) -> F:
        for decorate in reversed(options):
            command = decorate(command)
        return command

    return add_options  # type: ignore[return-value]


def group_options(name: str, make: Callable[..., Any], *options: Declaration) -> Declaration:
    """Return a decorator that adds options whose values a command receives as one.

    Args:
        name: parameter of the command.
        make: gets the options' values, by name, and returns the value for the command.
        options: the options. By default ``make`` is a NamedTuple, and the default of each field declares its option,
            or the options of a group within the group.
    """
    if options:
        declared = with_options(*options)
        names = [str(parameter.name) for parameter in click.command()(declared(lambda: None)).params]
    else:
        declared = with_options(*make._field_defaults.values())  # type: ignore[attr-defined]
        names = list(make._fields)  # type: ignore[attr-defined]

    def add_options(command: F) -> F:
        @wraps(command)
        def run(*args: Any, **values: Any) -> Any:
            return command(*args, **{name: make(**{n: values.pop(n) for n in names})}, **values)

        return declared(run)  # type: ignore[return-value]

    return add_options  # type: ignore[return-value]


def complete_presets(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete the name of a policy, or of a file."""
    from allonym.policy import presets

    return complete_presets_and_files(presets(), incomplete)


def complete_presets_and_files(presets: Iterable[str], incomplete: str) -> list[CompletionItem]:
    """Complete the name of a preset, or of a file."""
    names = [CompletionItem(name) for name in presets if name.startswith(incomplete)]
    return names or [CompletionItem(incomplete, type="file")]


def complete_labels(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete the name of a label."""
    from allonym.labels import TAXONOMY

    prefix = incomplete.upper()
    return [CompletionItem(lab.name, help=lab.description) for lab in TAXONOMY if lab.name.startswith(prefix)]


def _complete_operating_points(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from allonym.policy import OPERATING_POINTS

    return [CompletionItem(name) for name in OPERATING_POINTS if name.startswith(incomplete)]


def _parse_term_lists(
    ctx: click.Context, param: click.Parameter, values: tuple[str, ...]
) -> tuple[tuple[str, Path], ...]:
    out = []
    for value in values:
        label, equals, path = value.partition("=")
        if not (label and equals and path):
            raise click.BadParameter("LABEL=PATH is required, such as PERSON=names.txt", ctx=ctx, param=param)
        out.append((label.strip().upper(), Path(path)))
    return tuple(out)


def _parse_operating_point(ctx: click.Context, param: click.Parameter, value: str | None) -> str | float | None:
    from allonym.policy import check_operating_point

    if value is None:
        return None
    try:
        point: str | float = float(value) if value[:1].isdigit() or value[:1] == "." else value
    except ValueError:
        point = value
    return check_operating_point(point, "--operating-point")


policy_option = option(
    "-p, --policy NAME|FILE",
    "A preset (see: allonym policy list) or a TOML file.",
    default="default",
    shell_complete=complete_presets,
)
key_option = option(
    "--key-file PATH",
    "File with the key of pseudonym, hash, encrypt and other keyed operators: a passphrase or at least 16 bytes. "
    "Or set ALLONYM_KEY.",
    type=FILE,
)
format_option = option("--format NAME", "Format of standard input, or of a file with an unusual suffix.")
field_option = option(
    "--field NAME",
    "Column or dotted path of the text, such as review or user.name. Repeatable; by default all text.",
    multiple=True,
)
workers_option = option(
    "--workers",
    "Number of processes; the output does not depend on it. With --runner ray: by default one per processor.",
    type=POSITIVE,
    default=1,
)


def runner_option(note: str) -> Declaration:
    """Declare --runner; ``note`` ends its help."""
    return option(
        "--runner",
        "Run in processes of this machine, or on Ray: on the cluster in RAY_ADDRESS, or else on one started for this "
        f"run. {note}",
        type=click.Choice(("processes", "ray")),
        default="processes",
    )


def get_ray_worker_count(workers: int) -> int | None:
    """Return the number of workers for Ray: None if it is not named, for one per processor."""
    source = click.get_current_context().get_parameter_source("workers")
    return None if source is ParameterSource.DEFAULT else workers


class TextFields(NamedTuple):
    """The texts of a file: its fields and its format."""

    field: tuple[str, ...] = field_option
    format: str | None = format_option

    def read_documents(
        self, source: str | Path, *, named: bool = True, policy: str | Policy = "default"
    ) -> Iterator[Document]:
        """Read the documents of a file, a folder, or standard input (``-``) as a run would."""
        from allonym.files import read_documents

        if source == "-":
            print_stdin_note()
        yield from read_documents(source, fields=self.field, format=self.format, named=named, policy=policy)


class PolicyChoice(NamedTuple):
    """A policy, and what narrows or extends it."""

    policy: str = policy_option
    label: tuple[str, ...] = option(
        "--label LABEL",
        "Detect only this label and those below it. Repeatable.",
        multiple=True,
        shell_complete=complete_labels,
    )
    dictionary: tuple[tuple[str, Path], ...] = option(
        "--dictionary LABEL=PATH",
        "File of terms to detect: text with one term per line, or the first column of a CSV. Repeatable.",
        multiple=True,
        callback=_parse_term_lists,
    )
    exclude_terms: Path | None = option(
        "--exclude-terms PATH", "File of terms that are never findings, in the format of --dictionary.", type=FILE
    )
    operating_point: str | float | None = option(
        "--operating-point NAME|NUMBER",
        "Threshold of the tagger: high-recall, balanced, high-precision, or the least probability of a finding, such "
        "as 0.2. Labels with a threshold of their own in the policy keep it.",
        callback=_parse_operating_point,
        shell_complete=_complete_operating_points,
    )

    def load_policy(self) -> Policy:
        """Load the policy with its changes.

        Raises:
            PolicyError, UnknownNameError: the policy, a label or a list is not valid.
        """
        from allonym.policy import Policy, TermList, read_terms

        policy = Policy.load(self.policy)
        taxonomy = policy.taxonomy
        if self.label:
            roots = [taxonomy.get(name.upper(), "--label").name for name in self.label]
            labels = tuple(dict.fromkeys(below for root in roots for below in taxonomy.descendants(root)))
            still = tuple(e for e in policy.exclude if not any(taxonomy.within(root, e) for root in roots))
            policy = policy.with_(labels=labels, every=False, exclude=still)
        if self.dictionary:
            lists = (TermList(taxonomy.get(name, "--dictionary").name, read_terms(p)) for name, p in self.dictionary)
            policy = policy.with_(dictionary=(*policy.dictionary, *lists))
        if self.exclude_terms is not None:
            policy = policy.with_(exclusions=(*policy.exclusions, TermList("*", read_terms(self.exclude_terms))))
        if (point := self.operating_point) is not None:
            policy = policy.with_(operating_points=MappingProxyType({**policy.operating_points, "*": point}))
        return policy


class SecretChoice(NamedTuple):
    """Where the secret of a vault is; the names of the options begin with ``prefix``."""

    file: Path | None = None
    environment: str | None = None
    keyring: str | None = None
    prefix: str = ""

    @property
    def has_secret_option(self) -> bool:
        """Whether an option names a secret."""
        return any(source is not None for source in self[:3])

    def read_secret(self) -> Secret | None:
        """Read the secret, or return None if there is none; without a prefix, ALLONYM_VAULT_KEY is the default.

        Raises:
            UsageError: two secrets are named, or the secret is missing or too short.
        """
        from allonym.vault import secret_from_environment, secret_from_file, secret_from_keyring

        if sum(source is not None for source in self[:3]) > 1:
            names = ", ".join(f"--{self.prefix}secret-{end}" for end in ("file", "env", "keyring"))
            raise UsageError(f"only one of {names} can be given")
        if self.file is not None:
            return secret_from_file(self.file)
        if self.keyring is not None:
            return secret_from_keyring(self.keyring)
        if self.environment is None:
            return None if self.prefix else secret_from_environment()
        secret = secret_from_environment(self.environment)
        if secret is None:
            raise UsageError(f"the environment variable {self.environment} is empty or not set")
        return secret

    def open_vault(self, where: str) -> Vault:
        """Open a vault with the secret.

        Raises:
            UsageError: no secret is named.
            VaultError, WrongKey: there is no such vault, or the secret does not open it.
        """
        from allonym.vault import Vault

        secret = self.read_secret()
        if secret is None:
            raise UsageError("the vault's secret is required: --secret-file, --secret-keyring or ALLONYM_VAULT_KEY")
        return Vault.open(where, secret)


class VaultChoice(NamedTuple):
    """A vault, if one is named, and a scope in it."""

    where: str | None
    scope: str
    secret: SecretChoice

    def open_vault(self) -> Vault | None:
        """Open the vault, if one is named. Raises as :meth:`SecretChoice.open_vault`."""
        return self.secret.open_vault(self.where) if self.where else None


def _declare_secret_options(prefix: str, what: str, otherwise: str) -> tuple[Declaration, ...]:
    return (
        option(
            f"--{prefix}secret-file PATH", f"{what}, in a file: a passphrase or random bytes, at least 16.", type=FILE
        ),
        option(f"--{prefix}secret-env NAME", f"{what}, in an environment variable.{otherwise}"),
        option(f"--{prefix}secret-keyring SERVICE/NAME", f"{what}, in the keyring of the operating system."),
    )


def other_secret_options(prefix: str, what: str, otherwise: str) -> Declaration:
    """Add the options for a second secret, ``--to-secret-file`` ... The command receives it as ``to_secret`` ..."""

    def make_choice(**values: Any) -> SecretChoice:
        return SecretChoice(*values.values())._replace(prefix=f"{prefix}-")

    return group_options(f"{prefix}_secret", make_choice, *_declare_secret_options(f"{prefix}-", what, otherwise))


def _make_secret_choice(secret_file: Path | None, secret_env: str | None, secret_keyring: str | None) -> SecretChoice:
    return SecretChoice(secret_file, secret_env, secret_keyring)


def _make_vault_choice(vault: str | None, scope: str, **secret: Any) -> VaultChoice:
    for name, value in secret.items():
        if vault is None and value is not None:
            raise click.UsageError(f"--{name.replace('_', '-')} requires --vault")
    return VaultChoice(vault, scope, _make_secret_choice(**secret))


_SECRET = _declare_secret_options("", "The vault's secret", " By default ALLONYM_VAULT_KEY.")
secret_options = group_options("secret", _make_secret_choice, *_SECRET)
vault_options = group_options(
    "vault",
    _make_vault_choice,
    option("--vault PATH|URL", "Vault that stores originals with their replacements; see: allonym vault."),
    option(
        "--scope NAME",
        "Project or release. Replacements agree within a scope and differ between scopes.",
        default="",
    ),
    *_SECRET,
)
policy_options = group_options("choice", PolicyChoice)
text_options = group_options("texts", TextFields)


def read_key(path: Path | None) -> bytes | str | None:
    """Return the key in a file, or else the one in ALLONYM_KEY, or else None.

    Readable text is a passphrase (a ``str``, without the line ends at its end), anything else is random bytes.

    Raises:
        UsageError: the key is too short.
    """
    from allonym.keys import MIN_KEY_BYTES

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
    if (size := len(key.encode() if isinstance(key, str) else key)) < MIN_KEY_BYTES:
        raise UsageError(f"{where}: a key needs at least {MIN_KEY_BYTES} bytes, got {size}")
    return key
