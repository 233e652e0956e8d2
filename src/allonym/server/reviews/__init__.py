"""Reviews: people look at what anonymisation did, two of them for each document, the riskiest first.

``queue`` keeps projects, documents and readings in the server's database; what a reading means, who may save one when,
and how far two agree is in :mod:`allonym.project`.
"""
