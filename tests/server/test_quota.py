"""What a user may send in a day: counted by user, refused with the time to try again, new at midnight."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("fastapi")

from allonym.errors import RequestError
from allonym.server.quota import Quota

NOON = 1_700_000_000 // 86_400 * 86_400 + 43_200
"""A day at 12:00 UTC, in seconds since 1970."""


def test_each_user_has_an_own_quota_until_midnight() -> None:
    clock = [NOON]
    quota = Quota(1.0, lambda: clock[0])
    quota.add_bytes(7, 1 << 20)
    quota.add_bytes(8, (1 << 20) - 1)
    quota.check_may_send(8)
    with pytest.raises(RequestError, match="1 MB today") as refused:
        quota.check_may_send(7)
    assert (refused.value.status, refused.value.retry_after) == (429, 43_200)
    clock[0] += 43_199
    with pytest.raises(RequestError):
        quota.check_may_send(7)
    clock[0] += 1
    quota.check_may_send(7)


def test_without_a_quota_nothing_is_refused() -> None:
    quota = Quota(0.0)
    quota.add_bytes(7, 1 << 40)
    quota.check_may_send(7)


def test_a_user_who_sent_it_all_may_read_and_remove_but_not_send(make_site: Any, tmp_path: Any) -> None:
    with make_site(tmp_path / "data", user_daily_mb=0.001) as site:
        program, again, other = site.program("reviewer"), site.program("reviewer"), site.program("annotator")
        body = {"text": "x" * 1100, "policy": {"detectors": ["rules"]}}
        assert program.post("/v1/plans/apply", json=body).status_code == 422  # what was refused counts as well
        refused = again.post("/v1/detect", json={"text": "x"})
        assert refused.status_code == 429 and refused.json()["error"]["code"] == "QuotaUsed"
        assert 0 < int(refused.headers["retry-after"]) <= 86_400
        assert again.get("/v1/labels").status_code == 200
        assert again.delete("/v1/jobs/12345").status_code == 404
        assert other.post("/v1/plans/apply", json={"text": "x"}).status_code == 422
        presidio = again.post("/analyze", json={"text": "x", "language": "en"})
        assert presidio.status_code == 429 and "retry-after" in presidio.headers


def test_messages_of_a_stream_count(make_site: Any, tmp_path: Any) -> None:
    with make_site(tmp_path / "data", user_daily_mb=0.001) as site:
        headers = {"Authorization": f"Bearer {site.key('annotator')}"}
        with site.client().websocket_connect("ws://127.0.0.1:8642/v1/stream", headers=headers) as stream:
            stream.send_json({"type": "open", "mode": "annotate", "policy": {"detectors": ["rules"]}})
            stream.send_json({"surprise": "x" * 1100})
            assert stream.receive_json()["error"]["code"] == "QuotaUsed"
