"""Places for vaults: a SQLite file, and a database of its own on a real PostgreSQL server where one is at hand.

``ALLONYM_TEST_POSTGRES`` is the URL of a server whose user may make databases, such as
``postgresql://postgres@127.0.0.1:5432/postgres``.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from allonym.vault import Vault

SECRET = b"a secret only for the tests, 32b"
SERVER = os.environ.get("ALLONYM_TEST_POSTGRES", "")


@pytest.fixture(params=["sqlite", "postgresql"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Where a vault can be made."""
    if request.param == "sqlite":
        yield str(tmp_path / "test.vault")
        return
    if not SERVER:
        pytest.skip("ALLONYM_TEST_POSTGRES names no server")
    pytest.importorskip("psycopg")
    import sqlalchemy as sa

    from allonym.vault.store import address

    name = f"allonym_test_{uuid.uuid4().hex}"
    server = sa.create_engine(address(SERVER), isolation_level="AUTOCOMMIT")
    with server.connect() as connection:
        connection.exec_driver_sql(f"CREATE DATABASE {name}")
    yield address(SERVER).set(database=name).render_as_string(hide_password=False)
    with server.connect() as connection:
        connection.exec_driver_sql(f"DROP DATABASE {name} WITH (FORCE)")
    server.dispose()


@pytest.fixture
def vault(where: str) -> Iterator[Vault]:
    """A new vault, on each kind of database."""
    with Vault.create(where, SECRET) as made:
        yield made


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A path for a vault in SQLite, for tests that look into the file."""
    return tmp_path / "test.vault"


@pytest.fixture
def file_vault(file: Path) -> Iterator[Vault]:
    """A new vault in SQLite."""
    with Vault.create(file, SECRET) as made:
        yield made


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Sets the vault's clock, in seconds since 1970."""

    def to(seconds: float) -> None:
        monkeypatch.setattr("allonym.vault.vault.time", type("clock", (), {"time": staticmethod(lambda: seconds)}))

    return to
