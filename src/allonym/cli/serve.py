"""``allonym serve`` and ``allonym gateway``: the HTTP API with the workbench, and an OpenAI-compatible endpoint."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from secrets import token_urlsafe
from typing import TYPE_CHECKING, Any

import click

from allonym.cli.options import SecretChoice, read_key
from allonym.cli.signatures import take_options, take_overrides
from allonym.cli.terminal import print_note
from allonym.errors import UsageError, require_extra
from allonym.server.settings import Settings, load
from allonym.settings import SettingGroup, declare_setting

if TYPE_CHECKING:
    from allonym.server import gateway as protecting
    from allonym.vault import Vault


@click.command(short_help="Serve the HTTP API and the workbench.")
@take_options
@take_overrides(Settings)
def serve(
    *,
    config: Path | None = declare_setting(
        None, "TOML file with settings. By default ALLONYM_CONFIG", noun="new file", option="FILE"
    ),
    overrides: dict[str, Any],
) -> None:
    """Serve the HTTP API and the workbench, by default for this machine only.

    Every option is also a key of the settings file and an environment variable: --max-body-mb, max_body_mb,
    ALLONYM_MAX_BODY_MB. The first start prints a link for creating the first account, an administrator's. With --local
    nobody needs an account: each start prints a link for the one user, who runs the server.

    \b
    Examples:
      allonym serve
      allonym serve --local
      allonym serve --data /var/lib/allonym --port 8642
      allonym serve --config /etc/allonym/server.toml
    """
    settings = load(config, **overrides)
    with require_extra("allonym serve", "server"):
        from allonym.server.running import run
    run(settings, print_note)


class GatewayOverrides(SettingGroup):
    """Settings of the gateway that options change."""

    upstream: str | None = declare_setting(
        None, "base URL of the endpoint to forward to, such as https://api.openai.com/v1", option="URL"
    )
    host: str | None = declare_setting(
        None, "address to listen on. Addresses other than loopback require clients with keys", option="NAME"
    )
    port: int | None = declare_setting(None, "port to listen on; 0: any free one", low=0, high=65535, option="N")
    policy: str | None = declare_setting(None, "policy of requests that name none; by default chat", option="NAME|FILE")
    policies: tuple[str, ...] = declare_setting(
        (), "policy that clients may choose by the header X-Allonym-Policy", option="NAME|FILE"
    )
    vault: str | None = declare_setting(
        None, "vault for the placeholders of conversations; see: allonym vault", option="PATH|URL"
    )
    secret_file: str | None = declare_setting(
        None, "file with the vault's secret. By default ALLONYM_VAULT_KEY", option="PATH"
    )
    key_file: str | None = declare_setting(
        None, "file with the key of keyed operators. By default the vault's key", option="PATH"
    )
    explain: bool | None = declare_setting(
        None, "explain placeholders to the model, as by default", option="--explain/--no-explain"
    )
    media: tuple[str, ...] = declare_setting((), "content to send unchanged: image, audio or file", option="KIND")


@click.command(short_help="Run an OpenAI-compatible endpoint that protects requests.")
@take_options
def gateway(
    *,
    config: Path | None = declare_setting(
        None, "TOML file with settings; options and ALLONYM_GATEWAY_* take precedence", noun="file", option="FILE"
    ),
    new_key: bool = declare_setting(False, "print a new client key with its digest, and exit"),
    overrides: GatewayOverrides,
) -> None:
    """Run an OpenAI-compatible endpoint that anonymises requests to a language model and restores its answers.

    Programs only change their base URL. Content that cannot be protected is not sent.

    \b
    Examples:
      allonym gateway --upstream https://api.openai.com/v1
      allonym gateway --config gateway.toml
    """
    with require_extra("the gateway", "gateway"):
        import uvicorn

        from allonym.server.gateway import create_app
        from allonym.server.gateway.settings import digest_client_key
        from allonym.server.gateway.settings import load as load_gateway_settings
        from allonym.server.listening import open_listening_socket
    if new_key:
        key = "agw_" + token_urlsafe(32)
        click.echo(f'key: {key}\nkey_sha256 = "{digest_client_key(key)}"')
        return
    settings = load_gateway_settings(config, **vars(overrides))
    vault = _open_vault(settings)
    key_file = _resolve_setting_file(settings.key_file, "key_file")
    try:
        app = create_app(settings, vault=vault, key=read_key(key_file))
        with open_listening_socket(settings.host, settings.port) as place:
            _configure_request_log()
            shown = f"[{settings.host}]" if ":" in settings.host else settings.host
            address = f"http://{shown}:{place.getsockname()[1]}/v1"
            print_note(f"{address} protects what goes to {settings.upstream}", label="gateway:")
            how = uvicorn.Config(
                app, log_config=None, access_log=False, server_header=False, timeout_graceful_shutdown=30
            )
            uvicorn.Server(how).run(sockets=[place])
    finally:
        if vault is not None:
            vault.close()


def _open_vault(settings: protecting.Settings) -> Vault | None:
    if not settings.vault:
        if settings.secret_file:
            raise UsageError("secret_file requires vault")
        return None
    file = _resolve_setting_file(settings.secret_file, "secret_file")
    if file is None and not os.environ.get("ALLONYM_VAULT_KEY"):
        raise UsageError("the vault's secret is required: secret_file or ALLONYM_VAULT_KEY")
    return SecretChoice(file).open_vault(settings.vault)


def _resolve_setting_file(path: str | None, setting: str) -> Path | None:
    """Return the file that a setting names, if it names one. Raises :class:`UsageError` if there is none."""
    if path and not Path(path).is_file():
        raise UsageError(f"setting {setting}: there is no file {path}")
    return Path(path) if path else None


def _configure_request_log() -> None:
    """Log one line per request to standard error."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    log = logging.getLogger("allonym.gateway")
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    log.propagate = False
