"""Python's collector of cycles: it waits for the end of a document in our processes, and never in a caller's."""

import gc
from contextlib import suppress

import pytest

from allonym import collector


@pytest.fixture
def ours(monkeypatch):
    thresholds = gc.get_threshold()
    monkeypatch.setattr(collector, "_is_ours", False)
    monkeypatch.setattr(collector, "_NEW_OBJECTS", 2000)
    collector.slow_down_collector()
    yield
    gc.set_threshold(*thresholds)


def test_the_collector_waits_and_goes_on_after_an_error(ours):
    with suppress(ValueError), collector.pause_collector():
        assert not gc.isenabled()
        with collector.pause_collector():
            pass
        assert not gc.isenabled()
        raise ValueError
    assert gc.isenabled()


def test_a_callers_collector_is_left_alone(monkeypatch):
    monkeypatch.setattr(collector, "_is_ours", False)
    with collector.pause_collector():
        assert gc.isenabled()


def test_no_round_in_the_midst_of_a_long_text(ours, tmp_path):
    from allonym.files import anonymize_path
    from allonym.policy import Policy

    (tmp_path / "in.txt").write_text("Write to ada@example.com. " * 4000)
    rounds = []

    def note(phase, about):
        rounds.append(about["generation"])

    gc.collect()
    gc.callbacks.append(note)
    try:
        anonymize_path(tmp_path / "in.txt", tmp_path / "out.txt", Policy.load("default").with_(detectors=("rules",)))
    finally:
        gc.callbacks.remove(note)
    assert len(rounds) <= 6  # a beginning and an end each; some 40 without a pause
