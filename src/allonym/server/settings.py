"""The server's settings, from which the file, the environment, the command line and the documentation derive."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from allonym.errors import UsageError
from allonym.server.access import ROLES
from allonym.settings import SettingGroup, declare_setting, load_settings

MB = 1 << 20


class Settings(SettingGroup):
    """The server's settings: each field is a key of its TOML file, an ``ALLONYM_NAME`` and an option ``--name``."""

    data: Path = declare_setting(
        Path("allonym-data"), "folder for the database, the vault, the secret and the jobs' files"
    )
    host: str = declare_setting(
        "127.0.0.1", "address to listen on; another than loopback needs TLS, a proxy or --insecure"
    )
    port: int = declare_setting(8642, "port to listen on; 0: any free one", low=0, high=65_535)
    hosts: tuple[str, ...] = declare_setting((), "further host names of the server")
    public_url: str = declare_setting("", "how browsers reach the server, for links; by default http://HOST:PORT")
    tls_certificate: str = declare_setting("", "PEM file with the certificate chain")
    tls_key: str = declare_setting("", "PEM file with its private key")
    behind_proxy: bool = declare_setting(
        False, "a proxy on this machine ends TLS and passes the client's address on (X-Forwarded-*)"
    )
    local: bool = declare_setting(
        False, "one user without an account, by a link that each start prints; only on loopback"
    )
    insecure: bool = declare_setting(False, "allow other addresses than loopback without TLS")
    admin: str = declare_setting(
        "", "name of the administrator whom the first start makes; by default it prints a link for the first account"
    )
    admin_password_file: str = declare_setting("", "file with the password of that administrator")
    oidc_issuer: str = declare_setting(
        "", "issuer of single sign-on by OpenID Connect, such as https://login.example.org; by default none"
    )
    oidc_client_id: str = declare_setting("", "the server's name at the issuer")
    oidc_secret_file: str = declare_setting("", "file with the client's secret; by default the client is public")
    oidc_name: str = declare_setting("single sign-on", "what the button for signing in calls the issuer")
    oidc_scopes: tuple[str, ...] = declare_setting(("profile",), "scopes to ask for besides openid")
    oidc_user_claim: str = declare_setting("preferred_username", "claim with the name of an account")
    oidc_role_claim: str = declare_setting("groups", "claim, or dotted path, with the values that decide on the role")
    oidc_roles: tuple[str, ...] = declare_setting((), "VALUE=ROLE: the role that a value of the claim gives")
    database_url: str = declare_setting(
        "", "database for users, jobs and reviews; by default SQLite in the data folder"
    )
    vault_url: str = declare_setting("", "the vault: a path or URL; by default beside the database")
    secret_file: str = declare_setting(
        "", "file whose secret opens the vault; by default ALLONYM_VAULT_KEY, or one in data"
    )
    workers: int = declare_setting(0, "processes that detect and anonymise; 0: as many as processors", low=0)
    job_workers: int = declare_setting(1, "jobs that run at the same time", low=1)
    max_body_mb: float = declare_setting(10.0, "largest body of a request, except for uploads", low=0.001)
    max_upload_mb: float = declare_setting(1024.0, "largest upload of files", low=0.001)
    max_characters: int = declare_setting(1_000_000, "longest text that is processed while the client waits", low=1)
    rate: float = declare_setting(200.0, "requests per second that one client may make; 0: any number", low=0)
    user_daily_mb: float = declare_setting(
        0.0, "megabytes that one user may send in a day, by UTC; 0: any number", low=0
    )
    most_waiting: int = declare_setting(
        256, "requests that may wait for a process; further ones get 503 and a time to try again", low=0
    )
    timeout: float = declare_setting(60.0, "seconds that a request may take", low=0.1)
    body_timeout: float = declare_setting(20.0, "seconds without a byte after which an upload is ended", low=0.1)
    head_timeout: float = declare_setting(10.0, "seconds in which the head of a request must arrive", low=0.1)
    connections: int = declare_setting(1000, "connections at the same time", low=1)
    session_hours: float = declare_setting(12.0, "hours after which users must sign in again", low=0.01)
    idle_minutes: float = declare_setting(
        120.0, "minutes without a request after which users must sign in again", low=0.1
    )
    keep_results_hours: float = declare_setting(24.0, "hours for which the results of a job are kept", low=0)
    default_policy: str = declare_setting("default", "policy for requests that name none")
    cors_origins: tuple[str, ...] = declare_setting((), "origins whose pages may call the API; none by default")
    metrics_open: bool = declare_setting(False, "/metrics needs no key")
    presidio_open: bool = declare_setting(False, "the Presidio-compatible routes need no key; only on loopback")
    access_log: bool = declare_setting(True, "a line for each request, without any text")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.public_url and not _is_http_url(self.public_url):
            raise UsageError("setting public_url must be an address such as https://names.example.org")
        for origin in self.cors_origins:
            if not _is_http_url(origin) or urlsplit(origin).path:
                raise UsageError("setting cors_origins must list origins such as https://app.example.org")
        if bool(self.tls_certificate) != bool(self.tls_key):
            raise UsageError("settings tls_certificate and tls_key belong together; one of them is missing")
        if not (self.is_on_loopback or self.tls_key or self.behind_proxy or self.insecure):
            raise UsageError(
                f"host {self.host!r} is reached from other machines: set tls_certificate and tls_key, or behind_proxy "
                "if a proxy on this machine ends TLS, or insecure"
            )
        if self.local and not self.is_on_loopback:
            raise UsageError(f"local is for a loopback address such as 127.0.0.1, got host {self.host!r}")
        for name in ("behind_proxy", "public_url", "hosts", "cors_origins", "insecure", "presidio_open", "oidc_issuer"):
            if self.local and getattr(self, name):
                raise UsageError(f"local does not go with {name}: only pages of this machine's own server may use it")
        self._check_single_sign_on()
        if self.presidio_open and (not self.is_on_loopback or self.behind_proxy):
            raise UsageError("presidio_open is for loopback addresses only, and not behind a proxy")

    def _check_single_sign_on(self) -> None:
        if not self.oidc_issuer:
            return
        if not is_tls_or_loopback(self.oidc_issuer):
            raise UsageError("setting oidc_issuer must be an https address; http is for loopback alone")
        if not self.oidc_client_id or not self.oidc_roles:
            raise UsageError("oidc_issuer needs oidc_client_id, and oidc_roles such as staff=annotator")
        for pair in self.oidc_roles:
            value, _, role = pair.rpartition("=")
            if not value or role not in ROLES:
                raise UsageError(f"setting oidc_roles: {pair!r} is not VALUE=ROLE; roles: {', '.join(ROLES)}")

    @property
    def is_on_loopback(self) -> bool:
        """Whether only this machine can reach the server."""
        return is_loopback(self.host)

    @property
    def is_reached_by_tls(self) -> bool:
        """Whether browsers reach the server through TLS."""
        return bool(self.tls_key) or self.public_url.startswith("https://")

    def get_url(self, port: int) -> str:
        """Return the address for browsers."""
        if self.public_url:
            return self.public_url.rstrip("/")
        host = "127.0.0.1" if self.host in ("0.0.0.0", "::") else self.host
        name = f"[{host}]" if ":" in host else host
        return f"{'https' if self.tls_key else 'http'}://{name}:{port}"


def _is_http_url(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        return False


def is_tls_or_loopback(url: str) -> bool:
    """Whether an address is reached by TLS, or is on this machine."""
    return _is_http_url(url) and (url.startswith("https://") or is_loopback(urlsplit(url).hostname or ""))


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def load(file: str | Path | None = None, environment: Mapping[str, str] | None = None, **options: Any) -> Settings:
    """Load the settings: options before the environment (``ALLONYM_NAME``), before the file, before the defaults.

    Args:
        file: a TOML file; by default what ALLONYM_CONFIG names, if it is set.
        environment: by default the process's own.
        options: values that are not None.

    Raises:
        UsageError: the file cannot be read, or a value is not what its setting needs; says where.
        UnknownNameError: the file has a key that is no setting.
    """
    return load_settings(Settings, "ALLONYM_", file, environment, options)
