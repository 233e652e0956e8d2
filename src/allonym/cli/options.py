"""Settings that several commands share, each declared once, and the policy, key and vault that they name."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

import click
from click.core import ParameterSource

from allonym.cli.terminal import print_stdin_note
from allonym.errors import UsageError
from allonym.settings import REQUIRED, SettingGroup, declare_setting

if TYPE_CHECKING:
    from allonym.document import Document
    from allonym.policy import Policy
    from allonym.vault import Secret, Vault


def _parse_term_list(text: str) -> tuple[str, Path]:
    label, equals, path = text.partition("=")
    if not (label and equals and path):
        raise ValueError("LABEL=PATH is required, such as PERSON=names.txt")
    return label.strip().upper(), Path(path)


def _parse_operating_point(text: str) -> str | float:
    from allonym.policy import check_operating_point

    try:
        point: str | float = float(text) if text[:1].isdigit() or text[:1] == "." else text
    except ValueError:
        point = text
    return check_operating_point(point, "--operating-point")


def declare_policy(
    default: str | None = "default", says: str = "preset (see: allonym policy list) or TOML file"
) -> Any:
    """Declare ``--policy``."""
    return declare_setting(default, says, noun="policy", option="-p, --policy NAME|FILE")


def declare_output(default: Any = None, noun: str = "", option: str = "-o, --output PATH") -> Any:
    """Declare ``--output``, of a command that writes one result."""
    return declare_setting(default, "where the result is written", noun=noun, option=option)


def declare_plans(noun: str) -> Any:
    """Declare ``--plans``, of a command that writes a ``new file`` or reads a ``file``."""
    return declare_setting(None, "file with the plan of each document, as JSON lines", noun=noun, option="PATH")


KEY_FILE = declare_setting(
    None,
    "file with the key of pseudonym, hash, encrypt and other keyed operators: a passphrase or at least 16 bytes. "
    "Or set ALLONYM_KEY",
    noun="file",
    option="PATH",
)
FORMAT = declare_setting(None, "format of standard input, or of a file with an unusual suffix", option="NAME")
FIELD = declare_setting(
    (), "column or dotted path of the text, such as review or user.name; by default all text", option="NAME"
)
METADATA = declare_setting(
    None, "table with a row per document: a column id or file, and any other columns", noun="file", option="FILE"
)
WORKERS = declare_setting(
    1, "processes; the output does not depend on them. With --runner ray: by default one per processor", low=1
)
RUNNER = declare_setting(
    "processes",
    "run in processes of this machine, or on Ray: on the cluster in RAY_ADDRESS, or else on one started for this run",
    one_of=("processes", "ray"),
)
SEED = declare_setting(0, "seed of all random choices", low=0, option="N")
RESUME = declare_setting(False, "continue an interrupted run of the same command")
OVERWRITE = declare_setting(False, "replace existing outputs")
QUIET = declare_setting(False, "show no progress, notes or summary", option="--quiet, -q")
FIRST_PERSON = declare_setting(REQUIRED, "person who stays", option="<PERSON>")
SAME_PERSON = declare_setting(REQUIRED, "person who is the same", option="<SAME>")
PERSON = declare_setting(REQUIRED, "person who has the name", option="<PERSON>")
PERSON_NAME = declare_setting(REQUIRED, "name that is somebody else's", option="<NAME>")
ACTOR = declare_setting(None, "name for the audit log", option="NAME")
JSON = declare_setting(False, "print JSON instead of tables", option="--json")
ORIGINALS = declare_setting(
    False,
    "with --plans: include the originals, so that `allonym restore` can undo the replacements. Protect that file as "
    "you protect the source",
)


def get_ray_worker_count(workers: int, parameter: str = "workers") -> int | None:
    """Return the number of workers for Ray: None if the parameter is not named, for one per processor."""
    source = click.get_current_context().get_parameter_source(parameter)
    return None if source is ParameterSource.DEFAULT else workers


class TextFields(SettingGroup):
    """The texts of a file: its fields and its format."""

    field: tuple[str, ...] = FIELD
    format: str | None = FORMAT

    def read_documents(
        self, source: str | Path, *, named: bool = True, policy: str | Policy = "default"
    ) -> Iterator[Document]:
        """Read the documents of a file, a folder, or standard input (``-``) as a run would."""
        from allonym.files import read_documents

        if source == "-":
            print_stdin_note()
        yield from read_documents(source, fields=self.field, format=self.format, named=named, policy=policy)


class PolicyChoice(SettingGroup):
    """A policy, and what narrows or extends it."""

    policy: str = declare_policy()
    label: tuple[str, ...] = declare_setting(
        (), "detect only this label and those below it", noun="label", option="LABEL"
    )
    dictionary: tuple[tuple[str, Path], ...] = declare_setting(
        (),
        "file of terms to detect: text with one term per line, or the first column of a CSV",
        option="LABEL=PATH",
        parse=_parse_term_list,
    )
    exclude_terms: Path | None = declare_setting(
        None, "file of terms that are never findings, in the format of --dictionary", noun="file", option="PATH"
    )
    operating_point: str | float | None = declare_setting(
        None,
        "threshold of the tagger: high-recall, balanced, high-precision, or the least probability of a finding, such "
        "as 0.2. Labels with a threshold of their own in the policy keep it",
        noun="operating point",
        option="NAME|NUMBER",
        parse=_parse_operating_point,
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


_SECRET_SOURCES = {
    "file PATH": "in a file: a passphrase or random bytes, at least 16",
    "env NAME": "in an environment variable; by default ALLONYM_VAULT_KEY",
    "keyring SERVICE/NAME": "in the keyring of the operating system",
}


def _declare_secret(source: str, what: str = "the vault's secret", prefix: str = "") -> Any:
    place = _SECRET_SOURCES[source].partition(";" if prefix else "\0")[0]
    noun = "file" if source == "file PATH" else ""
    return declare_setting(None, f"{what}, {place}", noun=noun, option=f"--{prefix}secret-{source}")


class SecretChoice(SettingGroup):
    """Where the secret of a vault is; the names of the options begin with ``PREFIX``."""

    PREFIX: ClassVar[str] = ""
    file: Path | None = _declare_secret("file PATH")
    environment: str | None = _declare_secret("env NAME")
    keyring: str | None = _declare_secret("keyring SERVICE/NAME")

    def list_options(self) -> list[str]:
        """Return the options that name a secret."""
        values = {"file": self.file, "env": self.environment, "keyring": self.keyring}
        return [f"--{self.PREFIX}secret-{end}" for end, value in values.items() if value is not None]

    def read_secret(self) -> Secret | None:
        """Read the secret, or return None if there is none; without a prefix, ALLONYM_VAULT_KEY is the default.

        Raises:
            UsageError: two secrets are named, or the secret is missing or too short.
        """
        from allonym.vault import secret_from_environment, secret_from_file, secret_from_keyring

        if len(named := self.list_options()) > 1:
            raise UsageError(f"{' and '.join(named)} cannot be combined: each names the secret")
        if self.file is not None:
            return secret_from_file(self.file)
        if self.keyring is not None:
            return secret_from_keyring(self.keyring)
        if self.environment is None:
            return None if self.PREFIX else secret_from_environment()
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


class ToSecret(SecretChoice):
    """A second secret, which a vault or a file gets."""

    PREFIX = "to-"
    file: Path | None = _declare_secret("file PATH", "the secret that the result gets", "to-")
    environment: str | None = _declare_secret("env NAME", "the secret that the result gets", "to-")
    keyring: str | None = _declare_secret("keyring SERVICE/NAME", "the secret that the result gets", "to-")


class FromSecret(SecretChoice):
    """A second secret, which a file has."""

    PREFIX = "from-"
    file: Path | None = _declare_secret("file PATH", "the secret of FILE", "from-")
    environment: str | None = _declare_secret("env NAME", "the secret of FILE", "from-")
    keyring: str | None = _declare_secret("keyring SERVICE/NAME", "the secret of FILE", "from-")


class VaultChoice(SettingGroup):
    """A vault, if one is named, and a scope in it."""

    where: str | None = declare_setting(
        None,
        "vault that stores originals with their replacements; see: allonym vault",
        option="--vault PATH|URL",
    )
    scope: str = declare_setting(
        "",
        "project or release. Replacements agree within a scope and differ between scopes; without scope and vault a "
        "person has other pseudonyms in each document. Who links a person's texts learns more about them",
        option="NAME",
    )
    secret: SecretChoice = SecretChoice()

    def __post_init__(self) -> None:
        if self.where is None and (named := self.secret.list_options()):
            raise click.UsageError(f"{named[0]} requires --vault")

    def open_vault(self) -> Vault | None:
        """Open the vault, if one is named. Raises as :meth:`SecretChoice.open_vault`."""
        return self.secret.open_vault(self.where) if self.where else None


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
