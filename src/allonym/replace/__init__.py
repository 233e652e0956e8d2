"""Operators, which make replacements, and the plan that holds all edits of a document.

An operator is a function ``(mention, setting, *, option=default, ...) -> str``. It gets one :class:`Mention` and
returns its replacement. Its keyword-only parameters are its options in a policy; their names and types are checked when
the policy is read. Pick one by name from ``allonym.registry.operators``, or register your own::

    def shout(mention: Mention, setting: Setting, *, sign: str = "!") -> str:
        return mention.label + sign

    allonym.registry.operators.register("shout", shout)

An operator that has to know all entities of a document before it replaces the first has a ``prepare`` among its
:func:`traits`; see :class:`Traits`.

An operator that fails, that returns no string or that returns the text it was given makes the whole document fail.
"""

from __future__ import annotations

from allonym.protocol import Book, Keeper, Mention, Operator, Setting, Traits, Wanted, check_options, traits
from allonym.replace.compose import Linkage, make_plan, subject_of

__all__ = [
    "Book",
    "Keeper",
    "Linkage",
    "Mention",
    "Operator",
    "Setting",
    "Traits",
    "Wanted",
    "check_options",
    "make_plan",
    "subject_of",
    "traits",
]
