"""The gateway's settings, and its command."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys

import httpx
import pytest
from click.testing import CliRunner
from tests.rows import check_each_row

from allonym.cli.serve import gateway as command
from allonym.errors import MissingExtra, UnknownNameError, UsageError, write_install_command
from allonym.server.gateway import Client, Settings, load
from allonym.server.gateway.settings import digest_client_key

URL = "http://127.0.0.1:1/v1"
FILE = f"""
upstream = "https://api.example.com/v1"
policy = "default"
policies = ["sanitize"]
max_body_mb = 2

[clients.billing]
key_sha256 = "{digest_client_key("agw_1")}"
policy = "sanitize"
scope = "money"
"""


def test_options_go_before_the_environment_before_the_file(tmp_path):
    file = tmp_path / "gateway.toml"
    file.write_text(FILE)
    environment = {
        "ALLONYM_GATEWAY_POLICY": "gdpr",
        "ALLONYM_GATEWAY_PORT": "9",
        "ALLONYM_GATEWAY_MEDIA": "image, file",
    }
    read = load(file, environment, port=10, policies=(), vault=None)
    assert (read.upstream, read.policy, read.port, read.policies) == (
        "https://api.example.com/v1",
        "gdpr",
        10,
        ("sanitize",),
    )
    assert read.media == ("image", "file") and read.max_body_mb == 2.0 and read.explain
    billing = Client(name="billing", key_sha256=digest_client_key("agw_1"), policy="sanitize", scope="money")
    assert read.clients == {"billing": billing}
    assert load(None, {"ALLONYM_GATEWAY_CONFIG": str(file)}).policy == "default"
    assert digest_client_key("agw_1") not in repr(read)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "upstream is required"),
        ("upstream = 3", "upstream must be a string, got 3"),
        (f'upstream = "{URL}"\nupsteam = "x"', "unknown key 'upsteam'; did you mean: upstream"),
        (f'upstream = "{URL}"\nport = "x"', "port must be an integer, got str"),
        (f'upstream = "{URL}"\nport = true', "port must be an integer, got True"),
        (f'upstream = "{URL}"\nport = 65536', "port must be from 0 to 65535, got 65536"),
        (f'upstream = "{URL}"\nexplain = 1', "explain must be true or false"),
        (f'upstream = "{URL}"\npolicies = "x"', "policies must be a list"),
        (f'upstream = "{URL}"\nmax_body_mb = 0', "max_body_mb must be 0.001 or more"),
        (f'upstream = "{URL}"\ntools = "kept"', "unknown value 'kept'; did you mean: keep"),
        (f'upstream = "{URL}"\nmedia = ["images"]', "unknown value 'images'; did you mean: image"),
        (f'upstream = "{URL}"\nclients = 1', "clients must be a table"),
        (f'upstream = "{URL}"\n[clients.a]\nkey = "x"', "clients.a: unknown key 'key'"),
        (f'upstream = "{URL}"\n[clients.a]\nkey_sha256 = "x"', "clients.a.key_sha256 must be 64 hexadecimal digits"),
        (f'upstream = "{URL}"\n[clients."a b"]\nkey_sha256 = "x"', "a name is made of letters"),
        (f'upstream = "{URL}"\n[clients.a]\nkey_sha256 = "{"0" * 64}"\n[clients.b]\nkey_sha256 = "{"0" * 64}"', "the same key"),
        ("upstream = ", "not valid TOML"),
    ],
)  # fmt: skip
def test_errors_say_where(text, message, tmp_path):
    file = tmp_path / "gateway.toml"
    file.write_text(text)
    with pytest.raises(UsageError, match=message):
        load(file, {})


@check_each_row("url", ["ftp://x/v1", "x", "http://", "http://u:p@x/v1", "http://x/v1?key=1", "http://x:99999/v1", "file:///etc", "http://[x"])  # fmt: skip
def test_addresses_that_are_none(url):
    with pytest.raises(UsageError, match="upstream must"):
        Settings(upstream=url)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7", "gateway.example.com"])
def test_other_machines_reach_it_only_with_keys(host):
    with pytest.raises(UsageError, match="needs clients with keys"):
        Settings(upstream=URL, host=host)
    assert Settings(upstream=URL, host=host, clients={"a": Client(key_sha256="0" * 64)}).host == host
    assert Settings(upstream=URL, host="::1").loopback


def test_the_environment_says_where_it_is_wrong():
    for name, value in (("PORT", "many"), ("EXPLAIN", "perhaps")):
        with pytest.raises(UsageError, match=f"ALLONYM_GATEWAY_{name} must be"):
            load(None, {"ALLONYM_GATEWAY_UPSTREAM": URL, f"ALLONYM_GATEWAY_{name}": value})
    with pytest.raises(UnknownNameError, match="unknown value 'all'"):
        load(None, {"ALLONYM_GATEWAY_UPSTREAM": URL, "ALLONYM_GATEWAY_TOOLS": "all"})


# The command


def test_a_new_key_and_its_digest():
    done = CliRunner().invoke(command, ["--new-key"])
    key, digest = re.fullmatch("key: (.+)\nkey_sha256 = (.+)\n", done.output).groups()
    made = Settings(upstream=URL, clients={"a": Client(key_sha256=digest_client_key(key).upper())})
    assert made.clients["a"].key_sha256 == digest_client_key(key)
    assert re.fullmatch(r"agw_[A-Za-z0-9_-]{43}", key)
    assert digest == f'"{digest_client_key(key)}"'


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "upstream is required"),
        (["--upstream", URL, "--policy", "nosuch"], "unknown policy preset 'nosuch'"),
        (["--upstream", URL, "--policy", "pseudonyms"], "needs a key"),
        (["--upstream", URL, "--host", "0.0.0.0"], "needs clients with keys"),
        (["--upstream", URL, "--key-file", "nosuch.key"], "setting key_file: there is no file nosuch.key"),
        (["--upstream", URL, "--vault", "x", "--secret-file", "nosuch.key"], "setting secret_file: there is no file"),
        (["--upstream", URL, "--vault", "nosuch.vault"], "secret is required: secret_file or ALLONYM_VAULT_KEY"),
        (["--upstream", URL, "--secret-file", "some.key"], "requires vault"),
    ],
)
def test_what_is_missing_is_said_at_the_start(options, message, monkeypatch):
    for name in list(os.environ):
        if name.startswith("ALLONYM_"):
            monkeypatch.delenv(name)
    done = CliRunner().invoke(command, options)
    assert done.exit_code
    assert isinstance(done.exception, UsageError) and message in str(done.exception)


def test_the_extra_is_named_where_it_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    done = CliRunner().invoke(command, ["--upstream", URL])
    assert isinstance(done.exception, MissingExtra)
    assert write_install_command("gateway") in str(done.exception)


def test_it_serves_until_it_is_told_to_end(upstream, untagged_reversible, root):
    options = ["--upstream", upstream.url, "--port", "0", "--policy", untagged_reversible]
    environment = {**os.environ, "PYTHONPATH": str(root / "src")}
    process = subprocess.Popen(
        [sys.executable, "-m", "allonym", "gateway", *options], stderr=subprocess.PIPE, text=True, env=environment
    )
    told = re.search(
        r"gateway: (http://127\.0\.0\.1:[1-9]\d+)/v1 protects what goes to (\S+)", process.stderr.readline()
    )
    try:
        address = told[1]
        assert told[2] == upstream.url
        asked = {"model": "echo-1", "messages": [{"role": "user", "content": "Ada Brook"}]}
        got = httpx.post(f"{address}/v1/chat/completions", json=asked, timeout=20)
        assert got.json()["choices"][0]["message"]["content"] == "Ada Brook"
        assert "server" not in got.headers
    finally:
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=30)
    assert process.returncode in (0, -signal.SIGTERM)
    assert "found=PERSON:1" in said and "Ada" not in said
