"""The gateway's settings, from which the file, the environment, the command line and the documentation derive."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field, replace
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import Any

from allonym.errors import UsageError
from allonym.llm.client import describe_wrong_address
from allonym.server.settings import is_loopback
from allonym.settings import SettingGroup, declare_setting, load_settings

_DIGEST = re.compile(r"[0-9a-f]{64}")
_NAME = re.compile(r"[\w.-]{1,64}")


class Client(SettingGroup):
    """A program that may use the gateway, a table ``[clients.NAME]`` of the file.

    Attributes:
        name: for the log and the vault; :class:`Settings` gives it.
    """

    name: str = ""
    key_sha256: str = field(default="", repr=False, metadata={"says": "SHA-256 of its key, 64 hexadecimal digits"})
    policy: str = declare_setting("", "policy for requests that name none; empty: the gateway's")
    policies: tuple[str, ...] = declare_setting((), "further policies that it may name; empty: the gateway's")
    scope: str = declare_setting("", "begins the names of its conversations in the vault; by default its name")
    upstream_key_env: str = declare_setting(
        "", "environment variable with the key that the upstream gets for it; empty: the gateway's"
    )


class Settings(SettingGroup):
    """The settings of the gateway: keys of its TOML file and, but for clients, ``ALLONYM_GATEWAY_NAME`` variables."""

    upstream: str = declare_setting("", "address of the OpenAI-compatible endpoint, such as https://api.openai.com/v1")
    host: str = declare_setting("127.0.0.1", "address to listen on; others than loopback need clients with keys")
    port: int = declare_setting(8643, "port to listen on; 0: any free one", low=0, high=65_535)
    hosts: tuple[str, ...] = declare_setting((), "further host names under which the gateway is called")
    policy: str = declare_setting("chat", "policy for requests that name none")
    policies: tuple[str, ...] = declare_setting((), "further policies that the header X-Allonym-Policy may name")
    upstream_key_env: str = declare_setting(
        "", "environment variable with the upstream's key; by default the client's is sent"
    )
    vault: str = declare_setting("", "vault for conversations; its secret is in secret_file or ALLONYM_VAULT_KEY")
    secret_file: str = declare_setting("", "file with the vault's secret")
    key_file: str = declare_setting("", "file with the secret of keyed operators; by default the vault's own")
    explain: bool = declare_setting(True, "tell the model in a system message what placeholders are")
    tools: str = declare_setting(
        "protect",
        "descriptions and examples in tools and schemas: protect them, or keep them",
        one_of=("protect", "keep"),
    )
    media: tuple[str, ...] = declare_setting(
        (), "parts of messages that are sent as they are: image, audio, file", one_of=("image", "audio", "file")
    )
    internal_tools: tuple[str, ...] = declare_setting(
        (), "tools of the client that get originals in their calls; *: all; others get placeholders"
    )
    hosted_tools: tuple[str, ...] = declare_setting((), "types of tools that the upstream runs and that may be used")
    parameters: tuple[str, ...] = declare_setting((), "further parameters of requests that are sent as they are")
    words: tuple[str, ...] = declare_setting((), "further words that fields such as service_tier may hold")
    max_body_mb: float = declare_setting(8.0, "largest body of a request", low=0.001)
    max_characters: int = declare_setting(400_000, "most text in a request", low=1)
    body_timeout: float = declare_setting(20.0, "seconds in which a request must have arrived", low=0.1)
    connect_timeout: float = declare_setting(10.0, "seconds to wait for a connection to the upstream", low=0.1)
    timeout: float = declare_setting(600.0, "seconds without a byte after which the upstream is given up", low=0.1)
    threads: int = declare_setting(0, "threads that look for names; 0: as many as processors", low=0)
    clients: Mapping[str, Client] = declare_setting({}, "programs with keys of their own, by name; only in the file")

    def __post_init__(self) -> None:
        super().__post_init__()
        clients = {name: _name_client(name, client) for name, client in self.clients.items()}
        object.__setattr__(self, "clients", MappingProxyType(clients))
        if not self.upstream:
            raise UsageError(
                "upstream is required: --upstream URL, ALLONYM_GATEWAY_UPSTREAM, or upstream in the settings file"
            )
        if wrong := describe_wrong_address(self.upstream, "upstream", "upstream_key_env"):
            raise UsageError(wrong)
        if len({client.key_sha256 for client in clients.values()}) < len(clients):
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


def _name_client(name: str, client: Client) -> Client:
    """Return a client with its name, and with the digest of its key in lower case."""
    if not _NAME.fullmatch(name):
        raise UsageError(f"clients: a name is made of letters, digits, '_', '-' and '.', got {name!r}")
    digest = client.key_sha256.lower()
    if not _DIGEST.fullmatch(digest):
        raise UsageError(
            f"clients.{name}.key_sha256 must be 64 hexadecimal digits; 'allonym gateway --new-key' makes a key"
        )
    return replace(client, name=name, key_sha256=digest)


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
    return load_settings(Settings, "ALLONYM_GATEWAY_", file, environment, options)
