"""The gateway's settings, from which the file, the environment, the command line and the documentation derive."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from hashlib import sha256
from pathlib import Path
from typing import Any

from allonym.errors import UsageError, check_names
from allonym.llm.client import describe_wrong_address
from allonym.server.options import check_bounds, check_setting, define_setting, gather_settings, is_loopback

PREFIX = "ALLONYM_GATEWAY_"
CHOICES: Mapping[str, tuple[str, ...]] = {"tools": ("protect", "keep")}
MEDIA = ("image", "audio", "file")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_NAME = re.compile(r"[\w.-]{1,64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """A program that may use the gateway, a table ``[clients.NAME]`` of the file.

    Attributes:
        name: for the log and the vault.
        key_sha256: SHA-256 of its key, 64 hexadecimal digits.
        policy, policies: as in :class:`Settings`; empty: the gateway's.
        scope: begins the names of its conversations in the vault; by default its name.
        upstream_key_env: the environment variable with the key that the upstream gets for it; empty: the gateway's.
    """

    name: str
    key_sha256: str = field(default="", repr=False)
    policy: str = ""
    policies: tuple[str, ...] = ()
    scope: str = ""
    upstream_key_env: str = ""

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise UsageError(f"clients: a name is made of letters, digits, '_', '-' and '.', got {self.name!r}")
        object.__setattr__(self, "key_sha256", self.key_sha256.lower())
        if not _DIGEST.fullmatch(self.key_sha256):
            raise UsageError(
                f"clients.{self.name}.key_sha256 must be 64 hexadecimal digits; 'allonym gateway --new-key' makes a key"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of the gateway: keys of its TOML file and, but for clients, ``ALLONYM_GATEWAY_NAME`` variables.

    Attributes:
        clients: programs with keys of their own; only in the file.
    """

    upstream: str = define_setting("", "address of the OpenAI-compatible endpoint, such as https://api.openai.com/v1")
    host: str = define_setting("127.0.0.1", "address to listen on; others than loopback need clients with keys")
    port: int = define_setting(8643, "port to listen on; 0: any free one", 0, 65_535)
    hosts: tuple[str, ...] = define_setting((), "further host names under which the gateway is called")
    policy: str = define_setting("reversible", "policy for requests that name none")
    policies: tuple[str, ...] = define_setting((), "further policies that the header X-Allonym-Policy may name")
    upstream_key_env: str = define_setting(
        "", "environment variable with the upstream's key; by default the client's is sent"
    )
    vault: str = define_setting("", "vault for conversations; its secret is in secret_file or ALLONYM_VAULT_KEY")
    secret_file: str = define_setting("", "file with the vault's secret")
    key_file: str = define_setting("", "file with the secret of keyed operators; by default the vault's own")
    explain: bool = define_setting(True, "tell the model in a system message what placeholders are")
    tools: str = define_setting("protect", "descriptions and examples in tools and schemas: protect them, or keep them")
    media: tuple[str, ...] = define_setting((), "parts of messages that are sent as they are: image, audio, file")
    hosted_tools: tuple[str, ...] = define_setting((), "types of tools that the upstream runs and that may be used")
    parameters: tuple[str, ...] = define_setting((), "further parameters of requests that are sent as they are")
    words: tuple[str, ...] = define_setting((), "further words that fields such as service_tier may hold")
    max_body_mb: float = define_setting(8.0, "largest body of a request", 0.001)
    max_characters: int = define_setting(400_000, "most text in a request", 1)
    body_timeout: float = define_setting(20.0, "seconds in which a request must have arrived", 0.1)
    connect_timeout: float = define_setting(10.0, "seconds to wait for a connection to the upstream", 0.1)
    timeout: float = define_setting(600.0, "seconds without a byte after which the upstream is given up", 0.1)
    threads: int = define_setting(0, "threads that look for names; 0: as many as processors", 0)
    clients: tuple[Client, ...] = ()

    def __post_init__(self) -> None:
        check_bounds(self)
        for name, choices in CHOICES.items():
            check_names("value", [getattr(self, name)], choices, f"setting {name}")
        check_names("value", self.media, MEDIA, "setting media")
        if not self.upstream:
            raise UsageError(
                "upstream is required: --upstream URL, ALLONYM_GATEWAY_UPSTREAM, or upstream in the settings file"
            )
        if wrong := describe_wrong_address(self.upstream, "upstream", "upstream_key_env"):
            raise UsageError(wrong)
        if len({client.key_sha256 for client in self.clients}) < len(self.clients):
            raise UsageError("two clients have the same key")
        if not self.loopback and not self.clients:
            raise UsageError(
                f"host {self.host!r} is reached from other machines: that needs clients with keys, tables "
                "[clients.NAME] in the settings file"
            )

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach the gateway."""
        return is_loopback(self.host)


def digest_client_key(key: str) -> str:
    """Return the digest that the settings hold in place of a client's key."""
    return sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


def load(file: str | Path | None = None, environment: Mapping[str, str] | None = None, **options: Any) -> Settings:
    """Load the settings: options before the environment, before the file, before the defaults.

    Args:
        file: a TOML file; by default what ALLONYM_GATEWAY_CONFIG names, if it is set.
        environment: by default the process's own.
        options: values that are not None and not empty.

    Raises:
        UsageError: the file cannot be read, or a value is not what its setting needs; says where.
        UnknownNameError: the file has a key that is no setting.
    """
    return Settings(**gather_settings(Settings, PREFIX, file, environment, options, {"clients": _parse_client_tables}))


def _parse_client_tables(value: object, where: str) -> tuple[Client, ...]:
    if not isinstance(value, dict):
        raise UsageError(f"{where} must be tables [clients.NAME], got {type(value).__name__}")
    defaults = {field.name: () if field.name == "policies" else "" for field in fields(Client) if field.name != "name"}
    clients = []
    for name, table in value.items():
        if not isinstance(table, dict):
            raise UsageError(f"{where}.{name} must be a table, got {type(table).__name__}")
        check_names("key", table, defaults, f"{where}.{name}")
        values = {key: check_setting(defaults[key], value, f"{where}.{name}.{key}") for key, value in table.items()}
        clients.append(Client(name=name, **values))
    return tuple(clients)
