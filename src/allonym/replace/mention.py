"""What an operator sees, what may be said about an operator, and how its options are checked."""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar, cast

from allonym import registry
from allonym.document import Document, Entity, Span
from allonym.errors import PolicyError, UnknownNameError, UsageError

if TYPE_CHECKING:
    from allonym.policy import Policy


@dataclass(frozen=True, slots=True)
class Mention:
    """One place of a document that is about to be replaced.

    Attributes:
        text: what stands there, without a possessive ending or the sentence's own punctuation. Hidden from ``repr``.
        span: the place that was detected.
        entity: the referent; all its mentions should get the same replacement where the operator allows it.
        number: the entity's number among those whose tags look alike, in reading order, from 1; 0 where a vault
            numbers those alone that get a tag.
        label: the label as the policy's tags write it.
        tag: the tag that the policy writes for this entity, e.g. ``[PERSON_1]``; what to return where all else fails.
        index: which of the entity's mentions this is, from 0.
    """

    text: str = field(repr=False)
    span: Span
    entity: Entity
    number: int
    label: str
    tag: str
    index: int = 0


@dataclass(frozen=True, slots=True)
class Setting:
    """What an operator may know beyond the mention.

    Attributes:
        document: the whole document. Hidden from ``repr``, as is the key.
        policy: the policy in force.
        key: the caller's secret as it was given, or None; see :func:`allonym.replace.keyed.subkey`.
        scope: names the release; keyed values of two scopes cannot be linked.
        book: the scope's pages of a vault, open for writing; None where there is none.
        places: where anything is about to be replaced, as (start, end) in reading order.
        prepared: what each operator's ``prepare`` made of the document, by the operator's name.
    """

    document: Document = field(repr=False)
    policy: Policy = field(repr=False)
    key: bytes | str | None = field(default=None, repr=False)
    scope: str = ""
    book: Book | None = field(default=None, repr=False)
    places: tuple[tuple[int, int], ...] = field(default=(), repr=False)
    prepared: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}), repr=False)


class Book(Protocol):
    """One scope of a vault, inside the transaction that belongs to a document.

    ``kind`` names a space of values (``tag:[PERSON_{n}]``, ``family name``): within a kind, no two keys share a value.
    """

    def about(self, subject: str) -> None:
        """Say whom what follows is about; empty: nobody."""

    def recall(self, kind: str, key: str) -> str | None:
        """The value of ``key``; None where it has none yet."""

    def enter(self, kind: str, key: str, value: str) -> bool:
        """Give ``key`` a value; False, and nothing happens, where another key of the kind has it already."""

    def number(self, kind: str) -> int:
        """The kind's next number, from 1; no number comes twice."""

    def remember(self, replacement: str, original: str, label: str, operator: str, entity: str) -> None:
        """Keep that ``replacement`` stands for ``original``, so that the vault can bring it back."""


class Keeper(Protocol):
    """What keeps books: a vault, or one pass over a corpus."""

    @property
    def operator_key(self) -> bytes | str | None:
        """Secret of the keyed operators where the caller names none."""

    def book(self, scope: str, subject: str = "") -> AbstractContextManager[Book]:
        """The scope's book, for one transaction."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """An entity that is about to be replaced by an operator that prepares itself.

    Attributes:
        entity: the referent.
        options: the options of the rule that holds for its label.
        number, label, tag: as in :class:`Mention`.
        surfaces: its mentions' texts in reading order, as in ``Mention.text``. Hidden from ``repr``.
    """

    entity: Entity
    options: Mapping[str, object]
    number: int
    label: str
    tag: str
    surfaces: tuple[str, ...] = field(repr=False)


class Operator(Protocol):
    """The form of an operator. Options follow as keyword-only parameters with defaults."""

    def __call__(self, mention: Mention, setting: Setting, /) -> str: ...


@dataclass(frozen=True, slots=True)
class Traits:
    """What the planner needs to know about an operator. A plain function has the defaults.

    Attributes:
        version: stands in plans after the name, e.g. ``tag@1``.
        keyed: needs a key.
        keeps: leaves the text as it is; no edit is made.
        repeats: may return the very text that it was given, e.g. the year of a date that is only a year.
        exact: can be undone from the replacement alone, so that nothing beside it may be adapted.
        lossy: many originals share a replacement, so that none can be looked up.
        style: how its tags are written where neither the rule nor anything else says so; None: as the policy says.
        prepare: called once per document with all entities that the operator is about to replace, in reading order,
            and before any of them is; what it returns is found in ``Setting.prepared``. Its remarks go into the plan.
        check: looks at the options' values; raises :class:`PolicyError`, given the options and where they stand.
    """

    version: int = 1
    keyed: bool = False
    keeps: bool = False
    repeats: bool = False
    exact: bool = False
    lossy: bool = False
    style: str | None = None
    prepare: Callable[[Sequence[Wanted], Setting, list[str]], object] | None = None
    check: Callable[[Mapping[str, Any], str], None] | None = None


PLAIN = Traits()
F = TypeVar("F", bound=Callable[..., str])


def traits(
    *,
    version: int = 1,
    keyed: bool = False,
    keeps: bool = False,
    repeats: bool = False,
    exact: bool = False,
    lossy: bool = False,
    style: str | None = None,
    prepare: Callable[[Sequence[Wanted], Setting, list[str]], object] | None = None,
    check: Callable[[Mapping[str, Any], str], None] | None = None,
) -> Callable[[F], F]:
    """Decorates an operator with its :class:`Traits`."""

    def decorate(operator: F) -> F:
        operator.traits = Traits(  # type: ignore[attr-defined]
            version, keyed, keeps, repeats, exact, lossy, style, prepare, check
        )
        return operator

    return decorate


def traits_of(operator: object) -> Traits:
    """The operator's traits; the defaults for a plain function."""
    found = getattr(operator, "traits", PLAIN)
    return found if isinstance(found, Traits) else PLAIN


def get_operator(name: str, where: str = "") -> Operator:
    """The operator called ``name``; raises :class:`UnknownNameError` with near matches."""
    found = registry.operators.get(name, where)
    if not callable(found):
        raise UsageError(f"operator {name!r} must be a function, got {type(found).__name__}")
    return cast(Operator, found)


def _options(operator: Operator) -> Mapping[str, object]:
    signature = inspect.signature(operator, eval_str=True)
    return {p.name: p.annotation for p in signature.parameters.values() if p.kind is p.KEYWORD_ONLY}


def check_options(operator: str, options: Mapping[str, object], where: str) -> None:
    """Check a rule's options against the operator's own parameters.

    Args:
        operator: a name from ``allonym.registry.operators``.
        options: what the policy says.
        where: the place in the policy, for the message.

    Raises:
        UnknownNameError: no such operator or option; names the nearest.
        PolicyError: an option has the wrong type or a value out of range.
    """
    found = get_operator(operator, where)
    known = _options(found)
    for name, value in options.items():
        if name not in known:
            if not known:
                raise PolicyError(f"{where}: operator {operator!r} takes no options, got {name!r}")
            raise UnknownNameError("option", name, known, f"{where}: operator {operator!r}")
        if not _fits(value, known[name]):
            raise PolicyError(f"{where}.{name} must be {_said(known[name])}, got {value!r}")
    check = traits_of(found).check
    if check is not None:
        check(options, where)


def _fits(value: object, wanted: object) -> bool:
    if wanted in (inspect.Parameter.empty, Any):
        return True
    origin = typing.get_origin(wanted)
    if origin is Literal:
        return value in typing.get_args(wanted)
    if origin in (typing.Union, types.UnionType):
        return any(_fits(value, one) for one in typing.get_args(wanted))
    kind = origin or wanted
    if not isinstance(kind, type):
        return True
    if isinstance(value, bool):
        return kind is bool
    if kind is float:
        return isinstance(value, (int, float))
    if issubclass(kind, (list, tuple)) and isinstance(value, (list, tuple)):
        inner = [one for one in typing.get_args(wanted) if one is not Ellipsis]
        return not inner or all(_fits(one, inner[0]) for one in value)
    return isinstance(value, kind)


_SAID = {int: "an integer", str: "a string", float: "a number", bool: "true or false", list: "a list", tuple: "a list"}


def _said(wanted: object) -> str:
    origin = typing.get_origin(wanted)
    arguments = typing.get_args(wanted)
    if origin is Literal:
        return "one of " + ", ".join(repr(a) for a in arguments)
    if origin in (typing.Union, types.UnionType):
        return " or ".join(_said(a) for a in arguments if a is not type(None))
    kind = origin or wanted
    return _SAID.get(kind, getattr(kind, "__name__", str(kind))) if isinstance(kind, type) else str(kind)
