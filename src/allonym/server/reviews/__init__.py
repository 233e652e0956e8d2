"""Reviews: people look at what anonymisation did, two of them for each document, the riskiest first.

``readings`` is what one person says, and what a second reading proposes: the order of the documents and the reasons
for it. ``queue`` is who may say it when, ``lists`` the terms that follow from decisions, ``outcomes`` agreement,
residual risk and training text.
"""

from __future__ import annotations

from allonym.server.reviews.lists import TermLists
from allonym.server.reviews.queue import ReviewQueue

__all__ = ["ReviewQueue", "TermLists"]
