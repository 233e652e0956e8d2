"""The server's settings: one table, from which the file, the environment, the command line and the docs derive."""

from __future__ import annotations

import math
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from allonym.errors import UnknownNameError, UsageError

PREFIX = "ALLONYM_"
MB = 1 << 20
_DATA = Path("allonym-data")


def _setting(default: Any, says: str, least: float | None = None) -> Any:
    return field(default=default, metadata={"says": says, "least": least})


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the server is told: each field is a key of its TOML file, an ``ALLONYM_NAME`` and an option ``--name``."""

    data: Path = _setting(_DATA, "folder for the database, the vault, the secret and the jobs' files")  # noqa: RUF009
    host: str = _setting("127.0.0.1", "address to listen on; another than loopback needs TLS, a proxy or --insecure")
    port: int = _setting(8642, "port to listen on; 0: any free one", 0)
    hosts: tuple[str, ...] = _setting((), "further host names under which the server is called")
    public_url: str = _setting("", "how browsers reach the server, for links; by default http://HOST:PORT")
    tls_certificate: str = _setting("", "PEM file with the certificate chain")
    tls_key: str = _setting("", "PEM file with its private key")
    behind_proxy: bool = _setting(False, "a proxy on this machine ends TLS and says who calls (X-Forwarded-*)")
    insecure: bool = _setting(False, "allow other addresses than loopback without TLS")
    database_url: str = _setting("", "database for users, jobs and reviews; by default SQLite in the data folder")
    vault_url: str = _setting("", "the vault: a path or URL; by default beside the database")
    secret_file: str = _setting("", "file whose secret opens the vault; by default ALLONYM_VAULT_KEY, or one in data")
    workers: int = _setting(0, "processes that detect and anonymise; 0: as many as processors", 0)
    job_workers: int = _setting(1, "jobs that run at the same time", 1)
    max_body_mb: float = _setting(10.0, "largest body of a request, but for uploads", 0.001)
    max_upload_mb: float = _setting(1024.0, "largest upload of files", 0.001)
    max_characters: int = _setting(1_000_000, "longest text that is treated while the client waits", 1)
    rate: float = _setting(200.0, "requests a second that one client may make; 0: any number", 0)
    timeout: float = _setting(60.0, "seconds that a request may take", 0.1)
    body_timeout: float = _setting(20.0, "seconds without a byte after which an upload is ended", 0.1)
    head_timeout: float = _setting(10.0, "seconds in which the head of a request has to come", 0.1)
    connections: int = _setting(1000, "connections at the same time", 1)
    session_hours: float = _setting(12.0, "hours after which one has to sign in again", 0.01)
    idle_minutes: float = _setting(120.0, "minutes without a request after which one has to sign in again", 0.1)
    keep_results_hours: float = _setting(24.0, "hours for which the results of a job are kept", 0)
    default_policy: str = _setting("default", "policy for requests that name none")
    cors_origins: tuple[str, ...] = _setting((), "origins whose pages may call the API; none by default")
    metrics_open: bool = _setting(False, "/metrics needs no key")
    presidio_open: bool = _setting(False, "the Presidio-compatible routes need no key; only on loopback")
    access_log: bool = _setting(True, "a line for each request, without any text")

    def __post_init__(self) -> None:
        for one in fields(self):
            value, least = getattr(self, one.name), one.metadata["least"]
            if least is not None and not (value >= least and math.isfinite(value)):
                raise UsageError(f"setting {one.name} must be {least} or more, got {value!r}")
        if self.port > 65_535:
            raise UsageError(f"setting port must be 65535 or less, got {self.port}")
        if self.public_url and urlsplit(self.public_url).scheme not in ("http", "https"):
            raise UsageError("setting public_url must begin with https:// or http://")
        for origin in self.cors_origins:
            if not urlsplit(origin).netloc or urlsplit(origin).path:
                raise UsageError("setting cors_origins must list origins such as https://app.example.org")
        if bool(self.tls_certificate) != bool(self.tls_key):
            raise UsageError("settings tls_certificate and tls_key belong together; one of them is missing")
        if not (self.loopback or self.tls_key or self.behind_proxy or self.insecure):
            raise UsageError(
                f"host {self.host!r} is reached from other machines: set tls_certificate and tls_key, or behind_proxy "
                "where a proxy on this machine ends TLS, or insecure"
            )
        if self.presidio_open and not self.loopback:
            raise UsageError("presidio_open is for loopback addresses only")

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach the server."""
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    @property
    def secure(self) -> bool:
        """Whether browsers reach the server through TLS."""
        return bool(self.tls_key) or self.public_url.startswith("https://")

    def url(self, port: int) -> str:
        """How browsers reach the server."""
        if self.public_url:
            return self.public_url.rstrip("/")
        host = "127.0.0.1" if self.host in ("0.0.0.0", "::") else self.host
        shown = f"[{host}]" if ":" in host else host
        return f"{'https' if self.tls_key else 'http'}://{shown}:{port}"


def load(file: str | Path | None = None, environment: Mapping[str, str] | None = None, **options: Any) -> Settings:
    """The settings: options before the environment, before the file, before the defaults.

    Args:
        file: a TOML file; by default what ALLONYM_CONFIG names, if it is set.
        environment: by default the process's own.
        options: values that are not None.

    Raises:
        UsageError: the file cannot be read, or a value is not what its setting needs; says where.
        UnknownNameError: the file has a key that is no setting.
    """
    environment = os.environ if environment is None else environment
    known = {one.name: one for one in fields(Settings)}
    values: dict[str, Any] = {}
    source = file or environment.get(PREFIX + "CONFIG") or None
    if source is not None:
        for name, value in _read(Path(source)).items():
            if name not in known:
                raise UnknownNameError("setting", name, known, str(source))
            values[name] = _checked(known[name].default, value, f"{source}: {name}")
    for name, one in known.items():
        variable = PREFIX + name.upper()
        if variable in environment:
            values[name] = _from_text(one.default, environment[variable], variable)
        if options.get(name) is not None:
            values[name] = _checked(one.default, options[name], f"--{name.replace('_', '-')}")
    return Settings(**values)


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"cannot read settings {path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: not valid TOML: {error}") from None


def _from_text(default: Any, text: str, where: str) -> Any:
    if isinstance(default, bool):
        words = {
            "1": True,
            "true": True,
            "yes": True,
            "on": True,
            "0": False,
            "false": False,
            "no": False,
            "off": False,
        }
        if text.lower() not in words:
            raise UsageError(f"{where} must be true or false, got {text!r}")
        return words[text.lower()]
    if isinstance(default, (int, float)):
        try:
            return type(default)(text)
        except ValueError:
            raise UsageError(f"{where} must be a number, got {text!r}") from None
    if isinstance(default, tuple):
        return tuple(part.strip() for part in text.split(",") if part.strip())
    return type(default)(text)


def _checked(default: Any, value: Any, where: str) -> Any:
    if isinstance(default, bool):
        if not isinstance(value, bool):
            raise UsageError(f"{where} must be true or false, got {value!r}")
        return value
    if isinstance(default, (int, float)):
        number = _number(default, value)
        if number is None:
            kind = "an integer" if isinstance(default, int) else "a number"
            raise UsageError(f"{where} must be {kind}, got {value!r}")
        return number
    if isinstance(default, tuple):
        if not isinstance(value, (list, tuple)) or not all(isinstance(v, str) for v in value):
            raise UsageError(f"{where} must be a list of strings, got {type(value).__name__}")
        return tuple(value)
    if not isinstance(value, (str, Path)):
        raise UsageError(f"{where} must be a string, got {type(value).__name__}")
    return type(default)(value)


def _number(default: float, value: object) -> float | None:
    """The value as a number of the default's kind; None where it is none."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    if isinstance(default, int):
        return int(value) if math.isfinite(value) and value == int(value) else None
    return float(value)
