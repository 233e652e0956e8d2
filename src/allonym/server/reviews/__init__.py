"""Reviews: people look at what anonymisation did, two of them for each document, the riskiest first.

``readings`` what one person says; ``queue`` who says it when; ``risk`` what is looked at first, and why; ``lists`` the
terms that follow from it; ``outcomes`` agreement, residual risk, training text.
"""

from __future__ import annotations

from allonym.server.reviews.lists import TermLists
from allonym.server.reviews.queue import Queue

__all__ = ["Queue", "TermLists"]
