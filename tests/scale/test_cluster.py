"""Which cluster is used, and what is said where there is none; Ray itself does not start here."""

from __future__ import annotations

import socket

import pytest

from allonym.errors import UsageError
from allonym.scale import cluster


class Recorded:
    """In Ray's place: what it was asked for."""

    def __init__(self) -> None:
        self.asked: list[dict[str, object]] = []

    def is_initialized(self) -> bool:
        return False

    def shutdown(self) -> None:
        pass

    def init(self, **asked: object) -> None:
        self.asked.append(asked)


@pytest.fixture
def ray(monkeypatch):
    made = Recorded()
    monkeypatch.setattr(cluster, "import_ray", lambda: made)
    return made


@pytest.mark.parametrize("scheme", ["", "ray://"])
def test_an_address_where_nobody_listens_is_told_at_once(ray, monkeypatch, scheme):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # nobody else can listen there, and this does not
        monkeypatch.setenv("RAY_ADDRESS", f"{scheme}127.0.0.1:{taken.getsockname()[1]}")
        with (
            pytest.raises(UsageError, match=r"no cluster answers there \(Connection refused\)"),
            cluster.connect_ray(),
        ):
            pass
    assert ray.asked == []


def test_who_listens_is_asked(ray, monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as there:
        address = f"127.0.0.1:{there.getsockname()[1]}"
        monkeypatch.setenv("RAY_ADDRESS", address)
        with cluster.connect_ray() as connected:
            assert connected is ray
    assert [asked["address"] for asked in ray.asked] == [address]


def test_a_cluster_of_its_own_never_writes_to_disk_what_it_holds(ray, monkeypatch):
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    with cluster.connect_ray(2, store_bytes=0):
        (asked,) = ray.asked
    assert asked["address"] == "local" and asked["object_store_memory"] is None
    assert asked["_system_config"] == {"automatic_object_spilling_enabled": False}
