"""Reviews: people look at what anonymisation did, two of them for each document, the riskiest first.

``readings`` is what one person says, ``queue`` who may say it when, ``risk`` the order of the documents and the reasons
for it, ``lists`` the terms that follow from decisions, ``outcomes`` agreement, residual risk and training text.
"""

from __future__ import annotations

from allonym.server.reviews.lists import TermLists
from allonym.server.reviews.queue import ReviewQueue

__all__ = ["ReviewQueue", "TermLists"]
