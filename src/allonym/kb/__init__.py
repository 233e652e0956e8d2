"""The knowledge base behind pseudonyms: names of people, places, organisations and other things, and what is similar.

One SQLite file comes with the package, made by ``allonym kb build``; ``allonym kb import-wikidata`` makes a larger one.
"""

from allonym.kb.base import KINDS, ORGANISATIONS, PLACES, Item, KnowledgeBase, NameFact

__all__ = ["KINDS", "ORGANISATIONS", "PLACES", "Item", "KnowledgeBase", "NameFact"]
