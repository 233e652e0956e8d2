"""The secret that a server makes for itself."""

from __future__ import annotations

import os

import pytest

pytest.importorskip("fastapi")

from allonym.server import services
from allonym.server.settings import Settings


@pytest.fixture
def settings(tmp_path, monkeypatch):
    monkeypatch.delenv("ALLONYM_VAULT_KEY", raising=False)
    return Settings(data=tmp_path)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_of_two_servers_that_begin_at_once_both_have_the_same_secret(settings, monkeypatch):
    make, others = services.new_secret, []

    def while_another_begins():
        monkeypatch.setattr(services, "new_secret", make)
        others.append(services._load_or_create_secret(settings))
        return make()

    monkeypatch.setattr(services, "new_secret", while_another_begins)
    assert [services._load_or_create_secret(settings)] == others == [services._load_or_create_secret(settings)]
    assert names(settings.data) == ["secret"]
    assert (settings.data / "secret").stat().st_mode & 0o777 == 0o600


def test_a_secret_is_there_for_good_or_not_at_all(settings, monkeypatch):
    sync, synced = os.fsync, []

    def broken(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", broken)
    with pytest.raises(OSError, match="No space"):
        services._load_or_create_secret(settings)
    assert names(settings.data) == []

    def noted(handle):
        synced.append((os.path.basename(os.readlink(f"/proc/self/fd/{handle}")), names(settings.data)))
        sync(handle)

    monkeypatch.setattr(os, "fsync", noted)
    services._load_or_create_secret(settings)
    (part, before), (folder, after) = synced
    assert before == [part] and part != "secret"
    assert folder == settings.data.name and after == ["secret"]
