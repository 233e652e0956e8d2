"""What several tests need: case tables, a policy without the tagger, and Hypothesis settings that keep the suite fast."""

from __future__ import annotations

import json
import os
import re
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

# Tests start hundreds of processes: where Python is told to keep no bytecode, each would compile every module again.
if os.environ.pop("PYTHONDONTWRITEBYTECODE", None):
    sys.dont_write_bytecode = False

# Processes side by side, each with threads that wait by spinning, are many times slower than one thread each.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
from hypothesis import HealthCheck, settings

from allonym.policy import Policy
from allonym.vault import keys

ROOT = Path(__file__).resolve().parent.parent
CASES = ROOT / "tests" / "cases"
_ALL_SLOW = re.compile(r"^pytestmark = (?:\[\s*)?pytest\.mark\.slow", re.MULTILINE)
UNTAGGED = ("rules", "spoken", "lexicon", "speakers")

settings.register_profile(
    "allonym", max_examples=60, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("allonym")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--examples",
        type=int,
        default=0,
        metavar="N",
        help="only the properties, with N times as many examples, at random",
    )


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Files of which no test is asked for are not even imported: many that are slow import torch and the like."""
    wanted = config.getoption("markexpr")
    if wanted not in ("slow", "not slow") or collection_path.suffix != ".py":
        return None
    text = collection_path.read_text(encoding="utf-8")
    is_unwanted = "mark.slow" not in text if wanted == "slow" else _ALL_SLOW.search(text)
    return True if is_unwanted else None


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """Slow tests wait for other processes half of their time: three of them keep two cores busy."""
    cores = os.cpu_count() or 1
    return cores + cores // 2 if config.getoption("markexpr") == "slow" else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    times = config.getoption("--examples")
    if not times:
        return
    functions = {item: getattr(item.obj, "__func__", item.obj) for item in items if isinstance(item, pytest.Function)}
    properties = {item: f for item, f in functions.items() if getattr(f, "is_hypothesis_test", False)}
    for f in set(properties.values()):
        own = getattr(f, "_hypothesis_internal_use_settings", settings())  # no public way leads to what was decorated
        more = settings(
            own, max_examples=times * own.max_examples, derandomize=False, suppress_health_check=list(HealthCheck)
        )
        f._hypothesis_internal_use_settings = more
    items[:] = properties


@pytest.fixture(scope="session", autouse=True)
def _cheap_passphrases() -> Iterator[None]:
    """New vaults take the least work per passphrase; ``tests/vault/test_keys.py`` checks the real cost."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(keys, "_NEW_ROUNDS", min(keys._ROUNDS))
        yield


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository's top folder."""
    return ROOT


@pytest.fixture(scope="session")
def untagged() -> Policy:
    """The default policy without the tagger: what it finds is the same with every model."""
    return Policy.load("default").with_(detectors=UNTAGGED)


@pytest.fixture(scope="session")
def untagged_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same as a file, for the command line."""
    path = tmp_path_factory.mktemp("policies") / "untagged.toml"
    path.write_text(f'extends = "default"\n[detect]\ndetectors = {list(UNTAGGED)}\n', encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def postgres_database() -> Callable[[], AbstractContextManager[str]]:
    """Makes a database of its own for a while, on the server that ``ALLONYM_TEST_POSTGRES`` names: a URL whose user
    may make databases, such as ``postgresql://postgres@127.0.0.1:5432/postgres``. Gives the database's URL; tests
    that need it are skipped where no server is named."""
    where = os.environ.get("ALLONYM_TEST_POSTGRES", "")
    if not where:
        pytest.skip("ALLONYM_TEST_POSTGRES names no server")
    pytest.importorskip("psycopg")
    import sqlalchemy as sa

    from allonym.vault.store import parse_address

    @contextmanager
    def made() -> Iterator[str]:
        name = f"allonym_test_{uuid.uuid4().hex}"
        server = sa.create_engine(parse_address(where), isolation_level="AUTOCOMMIT")
        with server.connect() as connection:
            connection.exec_driver_sql(f"CREATE DATABASE {name}")
        try:
            yield parse_address(where).set(database=name).render_as_string(hide_password=False)
        finally:
            with server.connect() as connection:
                connection.exec_driver_sql(f"DROP DATABASE {name} WITH (FORCE)")
            server.dispose()

    return made


@pytest.fixture(scope="session")
def cases() -> Callable[[str], list[dict[str, Any]]]:
    """Reads a table of ``tests/cases`` by its name."""

    def read(name: str) -> list[dict[str, Any]]:
        lines = (CASES / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
        return [json.loads(line) for line in lines if line.strip()]

    return read
