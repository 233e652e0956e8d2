"""The server's settings: from a file, the environment and options, in which order, and what is refused."""

from __future__ import annotations

import shutil
import subprocess
import tomllib
from dataclasses import fields
from pathlib import Path

import pytest

from allonym.errors import UnknownNameError, UsageError
from allonym.server.settings import Settings, load

ROOT = Path(__file__).resolve().parents[2]


def test_options_before_environment_before_file_before_defaults(tmp_path):
    file = tmp_path / "server.toml"
    file.write_text('port = 1\nrate = 2\nworkers = 3\nhosts = ["a.example"]\n', encoding="utf-8")
    environment = {"ALLONYM_RATE": "4.5", "ALLONYM_WORKERS": "5", "ALLONYM_HOSTS": "b.example, c.example"}
    made = load(file, environment, workers=6, timeout=None)
    assert (made.port, made.rate, made.workers, made.timeout) == (1, 4.5, 6, 60.0)
    assert made.hosts == ("b.example", "c.example")
    assert load(None, {"ALLONYM_CONFIG": str(file)}).port == 1
    assert load(None, {}) == Settings()


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("DATA", "/var/lib/allonym", Path("/var/lib/allonym")),
        ("PORT", "80", 80),
        ("ACCESS_LOG", "off", False),
        ("METRICS_OPEN", "YES", True),
        ("MAX_BODY_MB", "0.5", 0.5),
        ("CORS_ORIGINS", "https://a.example,", ("https://a.example",)),
    ],
)
def test_environment(name, text, value):
    assert getattr(load(None, {f"ALLONYM_{name}": text}), name.lower()) == value


@pytest.mark.parametrize(
    ("file", "says"),
    [
        ("ports = 1", "ports"),
        ("port = 1.5", "port must be an integer"),
        ("port = inf", "port must be an integer"),
        ("port = true", "port must be an integer"),
        ("port = 70000", "65535"),
        ("port = -1", "from 0 to 65535"),
        ("timeout = nan", "timeout"),
        ("session_hours = inf", "session_hours"),
        ("rate = '5'", "rate must be a number"),
        ("insecure = 1", "true or false"),
        ("hosts = 'a.example'", "must be a list"),
        ("data = 1", "data must be a path"),
        ("public_url = 'a.example'", "https://"),
        ("cors_origins = ['*']", "origins"),
        ("cors_origins = ['https://a.example/x']", "origins"),
        ("tls_key = 'key.pem'", "belong together"),
        ("public_url = 'https://['", "public_url must be an address"),
        ("cors_origins = ['https://[']", "cors_origins must list"),
        ("public_url = 'https://'", "public_url must be an address"),
        ("host = '0.0.0.0'", "behind_proxy"),
        ("host = 'a.example'", "behind_proxy"),
        ("host = '0.0.0.0'\ninsecure = true\npresidio_open = true", "loopback"),
        ("local = true\nhost = '0.0.0.0'\ninsecure = true", "local is for a loopback address"),
        ("local = true\nbehind_proxy = true", "behind_proxy"),
        ("local = true\npublic_url = 'https://a.example'", "public_url"),
        ("local = true\nhosts = ['a.example']", "hosts"),
        ("local = true\ncors_origins = ['https://a.example']", "cors_origins"),
        ("local = true\npresidio_open = true", "presidio_open"),
        ("= 1", "not valid TOML"),
    ],
)
def test_what_is_refused_says_where(tmp_path, file, says):
    path = tmp_path / "server.toml"
    path.write_text(file, encoding="utf-8")
    with pytest.raises((UsageError, UnknownNameError), match=says):
        load(path, {})


@pytest.mark.parametrize(("name", "text"), [("PORT", "x"), ("PORT", ""), ("INSECURE", "perhaps"), ("RATE", "nan")])
def test_environment_is_checked_too(name, text):
    with pytest.raises(UsageError, match=f"(?i){name}"):
        load(None, {f"ALLONYM_{name}": text})


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(UsageError, match="No such file"):
        load(tmp_path / "none.toml", {})
    (tmp_path / "latin.toml").write_bytes(b'host = "\xe9"')
    with pytest.raises(UsageError, match="not valid TOML"):
        load(tmp_path / "latin.toml", {})


@pytest.mark.parametrize(
    ("given", "loopback", "secure", "url"),
    [
        ({}, True, False, "http://127.0.0.1:9"),
        ({"host": "localhost"}, True, False, "http://localhost:9"),
        ({"host": "::1"}, True, False, "http://[::1]:9"),
        ({"host": "0.0.0.0", "insecure": True}, False, False, "http://127.0.0.1:9"),
        ({"tls_certificate": "c", "tls_key": "k", "host": "a.example"}, False, True, "https://a.example:9"),
        ({"public_url": "https://a.example/"}, True, True, "https://a.example"),
    ],
)
def test_what_follows(given, loopback, secure, url):
    made = Settings(**given)
    assert (made.is_on_loopback, made.is_reached_by_tls, made.get_url(9)) == (loopback, secure, url)


def test_the_file_that_is_deployed_has_every_setting_with_its_default():
    text = (ROOT / "deploy" / "server.toml").read_text(encoding="utf-8")
    lines = [line[2:] for line in text.splitlines() if line.startswith("# ") and " = " in line.split("#")[1]]
    told = tomllib.loads("\n".join(lines))
    assert list(told) == [one.name for one in fields(Settings)]
    for one in fields(Settings):
        default = str(one.default) if isinstance(one.default, Path) else one.default
        assert told[one.name] == (list(default) if isinstance(default, tuple) else default), one.name
    assert not tomllib.loads(text)


def test_the_files_of_deployment_are_yaml_and_name_settings():
    yaml = pytest.importorskip("yaml")
    names = {f"ALLONYM_{one.name}".upper() for one in fields(Settings)}
    compose = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text(encoding="utf-8"))
    told = set(compose["services"]["allonym"]["environment"])
    kinds = {}
    for part in yaml.safe_load_all((ROOT / "deploy" / "kubernetes.yaml").read_text(encoding="utf-8")):
        kinds[part["kind"]] = part
    (container,) = kinds["Deployment"]["spec"]["template"]["spec"]["containers"]
    told |= {one["name"] for one in container["env"]}
    assert told <= names and {"ALLONYM_ADMIN", "ALLONYM_ADMIN_PASSWORD_FILE"} <= told
    assert set(kinds) == {"Deployment", "PersistentVolumeClaim", "Service"}
    pod = kinds["Deployment"]["spec"]["template"]
    assert {mount["name"] for mount in container["volumeMounts"]} == {
        volume["name"] for volume in pod["spec"]["volumes"]
    }
    claims = [
        one["persistentVolumeClaim"]["claimName"] for one in pod["spec"]["volumes"] if "persistentVolumeClaim" in one
    ]
    assert claims == [kinds["PersistentVolumeClaim"]["metadata"]["name"]]
    labels, service = pod["metadata"]["labels"], kinds["Service"]["spec"]
    assert service["selector"] == labels == kinds["Deployment"]["spec"]["selector"]["matchLabels"]
    assert {port["targetPort"] for port in service["ports"]} == {port["name"] for port in container["ports"]}
    assert set(compose["services"]["allonym"]["secrets"]) == set(compose["secrets"])
    mounted = [volume.split(":")[0] for one in compose["services"].values() for volume in one["volumes"]]
    assert set(mounted) == set(compose["volumes"])
    build = compose["services"]["allonym"]["build"]
    assert (ROOT / "deploy" / build["context"] / build["dockerfile"]).is_file()


def test_the_container_file_copies_what_is_there_and_runs_as_nobody():
    lines = (ROOT / "deploy" / "Containerfile").read_text(encoding="utf-8").replace("\\\n", " ").splitlines()
    steps = [line.split(maxsplit=1) for line in lines if line and not line.startswith("#")]
    names = {step for step, _ in steps}
    assert names <= set("FROM RUN COPY ENV USER WORKDIR VOLUME EXPOSE STOPSIGNAL HEALTHCHECK ENTRYPOINT CMD".split())
    copied = [path for step, rest in steps if step == "COPY" and "--from" not in rest for path in rest.split()[:-1]]
    assert len(copied) > 4 and all((ROOT / path).exists() for path in copied)
    told = {word.partition("=")[0] for step, rest in steps if step == "ENV" for word in rest.split()}
    known = {f"ALLONYM_{one.name}".upper() for one in fields(Settings)} | {"ALLONYM_CONFIG"}
    assert {name for name in told if name.startswith("ALLONYM_")} <= known
    assert ["USER", "allonym"] in steps and "root" not in {rest for step, rest in steps if step == "USER"}
    (install,) = [rest for step, rest in steps if step == "RUN" and "/source[" in rest]
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    assert set(install.partition("/source[")[2].partition("]")[0].split(",")) <= set(extras)


def test_the_unit_is_one_that_systemd_takes(tmp_path):
    if not shutil.which("systemd-analyze"):
        pytest.skip("no systemd here")
    unit = (ROOT / "deploy" / "allonym.service").read_text(encoding="utf-8")
    (tmp_path / "allonym.service").write_text(unit.replace("/opt/allonym/bin/allonym", "/bin/true"), encoding="utf-8")
    command = ["systemd-analyze", "verify", "--man=no", str(tmp_path / "allonym.service")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "allonym.service" not in done.stderr, done.stderr
