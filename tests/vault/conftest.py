"""Places for vaults: a SQLite file, and a database of its own on a real PostgreSQL server where one is at hand."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from allonym.vault import Vault

SECRET = b"a secret only for the tests, 32b"


@pytest.fixture(params=["sqlite", "postgresql"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Where a vault can be made."""
    if request.param == "sqlite":
        yield str(tmp_path / "test.vault")
        return
    with request.getfixturevalue("postgres_database")() as url:
        yield url


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
