"""What the routes work with, made once from the settings, and in which order it begins and ends."""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_hex

from allonym.errors import UsageError
from allonym.server.accounts import Accounts
from allonym.server.database import Database
from allonym.server.jobs.jobs import Jobs
from allonym.server.kernel import Kernel
from allonym.server.metrics import Metrics
from allonym.server.policies import Policies
from allonym.server.reviews import Queue, TermLists
from allonym.server.sealing import Sealing
from allonym.server.settings import Settings
from allonym.server.studies import Studies
from allonym.vault import Vault
from allonym.vault.keys import Secret, new_secret, secret_from_environment, secret_from_file
from allonym.vault.store import parse_address

FILES_AT_ONCE = 4
"""Uploads that are read into memory and treated at the same time."""


@dataclass(slots=True, repr=False)
class Services:
    """What routes get. Nothing of it shows a secret or a text.

    Attributes:
        settings: what the server was told.
        database: users, keys, jobs, reviews.
        sealing: for texts at rest.
        accounts: who there is.
        vault: what stands for what; open.
        policies: presets and stored ones.
        kernel: the processes that detect and anonymise.
        jobs: what goes on in the background.
        queue: projects and documents that people review.
        lists: the organisation's own terms, which policies hold to.
        studies: what invited people judge.
        metrics: for Prometheus.
        url: how browsers reach the server; set when it listens.
        file_turns: for uploads that are read into memory.
    """

    settings: Settings
    database: Database
    sealing: Sealing
    accounts: Accounts
    vault: Vault
    policies: Policies
    kernel: Kernel
    jobs: Jobs
    queue: Queue
    lists: TermLists
    studies: Studies
    metrics: Metrics
    url: str = ""
    file_turns: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(FILES_AT_ONCE))

    def start(self) -> None:
        """Begin what runs beside the requests."""
        self.kernel.start()
        self.jobs.start()

    def close(self) -> None:
        """End it, and close database and vault."""
        self.jobs.stop()
        self.kernel.close()
        self.vault.close()
        self.database.close()


def open_services(settings: Settings) -> Services:
    """Open the database and the vault, or make them where there are none.

    Raises:
        UsageError: the secret is too short.
        WrongKey: the vault opens with another secret.
        DatabaseError, VaultError: they cannot be opened.
    """
    folder = settings.data
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    secret = _secret(settings)
    database = Database(settings.database_url or folder / "server.sqlite")
    try:
        database.ready()
        sealing = Sealing(secret)
        policies = Policies(database, sealing, settings.default_policy)
        policies.lists = lists = TermLists(database, sealing)
        vault = _vault(settings, secret)
    except BaseException:
        database.close()
        raise
    metrics = Metrics()
    return Services(
        settings=settings,
        database=database,
        sealing=sealing,
        accounts=Accounts(database, settings.session_hours * 3600, settings.idle_minutes * 60),
        vault=vault,
        policies=policies,
        kernel=Kernel(settings.workers, policies.source(None)),
        jobs=Jobs(settings, database, sealing, policies, vault, metrics),
        queue=Queue(database, sealing, lists),
        lists=lists,
        studies=Studies(database, sealing),
        metrics=metrics,
        url=settings.url(settings.port),
    )


def _secret(settings: Settings) -> Secret:
    """The server's secret: from the file that is named, else the environment, else one made in the data folder."""
    if settings.secret_file:
        path = Path(settings.secret_file)
        if not path.is_file():
            raise UsageError(f"secret_file: no file at {path}")
        return secret_from_file(path)
    found = secret_from_environment()
    if found is not None:
        return found
    path = settings.data / "secret"
    if not path.exists():
        _make_secret(path)
    return secret_from_file(path)


def _make_secret(path: Path) -> None:
    """Write a new secret, whole and for good: what is sealed with it can be read with nothing else. Of two servers that
    come at once, both get the one of who was first."""
    part = path.with_name(f".secret-{token_hex(8)}")
    handle = os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    try:
        with os.fdopen(handle, "w") as file:
            file.write(new_secret() + "\n")
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileExistsError):
            os.link(part, path)
    finally:
        part.unlink()
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _vault(settings: Settings, secret: Secret) -> Vault:
    where = settings.vault_url or settings.database_url or str(settings.data / "vault.sqlite")
    url = parse_address(where)
    if url.get_backend_name() == "sqlite":
        there = Path(url.database or "").exists()
    else:
        there = _has_vault(where)
    return Vault.open(where, secret) if there else Vault.create(where, secret, actor="server")


def _has_vault(where: str) -> bool:
    import sqlalchemy as sa

    from allonym.vault.store import Store, meta

    place = Store(where)
    try:
        with place.connect_alone() as connection:
            return sa.inspect(connection).has_table(meta.name)
    finally:
        place.close()
