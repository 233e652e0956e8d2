"""The services that routes work with, made once from the settings, and the order in which they start and close."""

from __future__ import annotations

import asyncio
import os
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path

import sqlalchemy as sa

from allonym.errors import UsageError
from allonym.partfile import write_file
from allonym.server.accounts import Accounts
from allonym.server.database import Database, Sealing
from allonym.server.fileprojects import FileProjects
from allonym.server.jobs.jobs import Jobs
from allonym.server.kernel import Kernel
from allonym.server.metrics import Metrics
from allonym.server.oidc import SingleSignOn
from allonym.server.policies import Policies, TermLists
from allonym.server.quota import Quota
from allonym.server.reviews.queue import ReviewQueue
from allonym.server.scopes import REVIEW, Scopes
from allonym.server.settings import Settings
from allonym.vault import Vault
from allonym.vault.keys import Secret, new_secret, secret_from_environment, secret_from_file
from allonym.vault.store import Store, meta, parse_address

FILES_AT_ONCE = 4
"""Uploads that are read into memory and processed at the same time."""


@dataclass(slots=True, repr=False)
class Services:
    """The services of one application. They show no secret and no text.

    Attributes:
        settings: of the server.
        database: users, keys, jobs, reviews.
        sealing: for texts at rest.
        accounts: users, sessions, keys, the audit log.
        vault: originals and replacements; open.
        scopes: who may use which scope of the vault.
        file_projects: from files to signed releases.
        policies: presets and stored ones.
        kernel: the processes that detect and anonymise.
        quota: how much each user may send.
        jobs: work in the background.
        queue: projects and documents under review.
        lists: the organisation's own terms, which policies include.
        metrics: for Prometheus.
        single_sign_on: where the settings name an issuer.
        url: the address for browsers; set when the server listens.
        file_turns: limits uploads that are read into memory.
    """

    settings: Settings
    database: Database
    sealing: Sealing
    accounts: Accounts
    vault: Vault
    scopes: Scopes
    file_projects: FileProjects
    policies: Policies
    kernel: Kernel
    quota: Quota
    jobs: Jobs
    queue: ReviewQueue
    lists: TermLists
    metrics: Metrics
    single_sign_on: SingleSignOn | None = None
    url: str = ""
    file_turns: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(FILES_AT_ONCE))

    async def start(self) -> None:
        """Start the processes and jobs that run beside the requests."""
        await self.kernel.start()
        self.jobs.runner.start()

    def close(self) -> None:
        """Stop them, and close the vault and the database."""
        self.jobs.runner.stop()
        self.kernel.close()
        self.vault.close()
        self.database.close()


def open_services(settings: Settings) -> Services:
    """Open the database and the vault, or create them where there are none.

    Raises:
        UsageError: the secret is too short.
        WrongKey: the vault opens with another secret.
        DatabaseError, VaultError: they cannot be opened.
    """
    folder = settings.data
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    secret = _load_or_create_secret(settings)
    database = Database(settings.database_url or folder / "server.sqlite")
    try:
        database.create_or_migrate()
        sealing = Sealing(secret)
        lists = TermLists(database, sealing)
        single_sign_on = SingleSignOn(settings, sealing) if settings.oidc_issuer else None
        policies = Policies(database, sealing, lists, settings.default_policy)
        vault = _open_or_create_vault(settings, secret)
    except BaseException:
        database.close()
        raise
    metrics, scopes = Metrics(), Scopes(database, sealing, vault)
    file_projects = FileProjects(folder, database, sealing, policies, vault, scopes)
    file_projects.remove_abandoned_work_folders()
    queue = ReviewQueue(database, sealing, lists)
    for project in queue.list_projects():  # of before projects had owners
        scopes.register_without_owner(REVIEW + project.name)
    accounts = Accounts(database, settings.session_hours * 3600, settings.idle_minutes * 60)
    if not settings.local:
        accounts.end_local_sessions()
    return Services(
        settings=settings,
        database=database,
        sealing=sealing,
        accounts=accounts,
        vault=vault,
        scopes=scopes,
        file_projects=file_projects,
        policies=policies,
        kernel=Kernel(settings.workers, policies.make_policy_json(None), settings.most_waiting),
        quota=Quota(settings.user_daily_mb),
        jobs=Jobs(settings, database, sealing, policies, vault, scopes, metrics),
        queue=queue,
        lists=lists,
        metrics=metrics,
        single_sign_on=single_sign_on,
        url=settings.get_url(settings.port),
    )


def _load_or_create_secret(settings: Settings) -> Secret:
    """Return the server's secret: from the file that the settings name, else the environment, else the data folder."""
    if settings.secret_file:
        path = Path(settings.secret_file)
        if not path.is_file():
            raise UsageError(f"secret_file: no file at {path}")
        return secret_from_file(path)
    secret = secret_from_environment()
    if secret is not None:
        return secret
    path = settings.data / "secret"
    if not path.exists():
        _create_secret_file(path)
    return secret_from_file(path)


def _create_secret_file(path: Path) -> None:
    """Write a new secret, atomically and durably: without it, nothing that is sealed can be read again. If two servers
    start at the same time, both get the secret of the faster one."""
    with suppress(FileExistsError):
        write_file(path, f"{new_secret()}\n".encode("ascii"), private=True, replaces=False)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _open_or_create_vault(settings: Settings, secret: Secret) -> Vault:
    where = settings.vault_url or settings.database_url or str(settings.data / "vault.sqlite")
    url = parse_address(where)
    exists = Path(url.database or "").exists() if url.get_backend_name() == "sqlite" else _has_vault_tables(where)
    return Vault.open(where, secret) if exists else Vault.create(where, secret, actor="server")


def _has_vault_tables(vault_url: str) -> bool:
    with closing(Store(vault_url)) as store, store.connect_outside_transaction() as connection:
        return sa.inspect(connection).has_table(meta.name)
