"""How much each user may send in a day."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable

from allonym.errors import RequestError
from allonym.server.settings import MB

_DAY = 86_400  # seconds


class Quota:
    """The bytes that each user sent since midnight UTC, or since the server's start. They are kept in memory alone.

    A request counts when it ends, whatever became of it, so that the last one of a day may go over the quota.

    Args:
        most_mb: megabytes a day; 0: any number.
        get_time: seconds since 1970.
    """

    def __init__(self, most_mb: float, get_time: Callable[[], float] = time.time) -> None:
        self._most_mb, self._get_time = most_mb, get_time
        self._day = 0
        self._bytes = Counter[int]()

    def check_may_send(self, user_id: int) -> None:
        """Check that a user may send something today.

        Raises:
            RequestError: the quota is used up (429); ``retry_after`` is midnight.
        """
        if self._most_mb and self._count_today()[user_id] >= self._most_mb * MB:
            message = f"you sent {self._most_mb:g} MB today, as much as this server takes from a user in a day (UTC)"
            raise RequestError(message, 429, "QuotaUsed", retry_after=_DAY - int(self._get_time()) % _DAY)

    def add_bytes(self, user_id: int, size: int) -> None:
        """Count what a user sent; 0 is nobody."""
        if self._most_mb and user_id:
            self._count_today()[user_id] += size

    def _count_today(self) -> Counter[int]:
        day = int(self._get_time()) // _DAY
        if day != self._day:
            self._day = day
            self._bytes.clear()
        return self._bytes
